#include "fold.h"

#include <stdlib.h>
#include <string.h>

void run_extend(struct run *run, const struct cursor *c, int64_t start, struct windows at_start, int64_t now)
{
    const struct wat_curve *curve = c->curve;
    if (now <= start)
        return;
    if (start > run->end) { /* another run */
        run->begun = at_start;
        run->covered = at_start.opened;
    }
    run->end = now;
    for (run->touched = later(run->touched, at_start.closed); run->touched < c->windows.opened; run->touched++)
        run->high += curve->high[run->touched];
    for (; run->covered < c->windows.closed; run->covered++)
        run->low += curve->low[run->covered];
}

int fold_more_rows(struct fold *fold, int64_t rows)
{
    if (column_resize_zero(&fold->row_memory, rows * (int64_t)sizeof(struct row)))
        return WAT_MEMORY;
    fold->rows = fold->row_memory.data;
    if (fold->cursor.curve->edges) {
        if (column_resize(&fold->bound_memory, rows * (int64_t)sizeof(struct bounds)))
            return WAT_MEMORY;
        fold->bounds = fold->bound_memory.data;
        static const struct run none = {.begun = {UINT32_MAX, UINT32_MAX}, .end = INT64_MIN};
        for (int64_t i = fold->rows_room; i < rows; i++)
            fold->bounds[i] = (struct bounds){none, none};
    }
    fold->rows_room = rows;
    return WAT_OK;
}

int fold_more_depth(struct fold *fold)
{
    int64_t room = 2 * fold->depth_room + 64;
    struct open_span *open = realloc(fold->open, (size_t)room * sizeof *open);
    if (!open)
        return WAT_MEMORY;
    fold->open = open;
    fold->depth_room = room;
    return WAT_OK;
}

int fold_begin(struct fold *fold, const struct wat_curve *curve, int64_t rows)
{
    memset(fold, 0, sizeof *fold);
    return cursor_open(&fold->cursor, curve) || fold_more_rows(fold, rows) || fold_more_depth(fold) ? WAT_MEMORY
                                                                                                    : WAT_OK;
}

void fold_free(struct fold *fold)
{
    cursor_close(&fold->cursor);
    free(fold->open);
    wat_free(fold->row_memory.data, fold->row_memory.bytes);
    wat_free(fold->bound_memory.data, fold->bound_memory.bytes);
}

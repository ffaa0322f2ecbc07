#include "fold.h"

#include <stdlib.h>
#include <string.h>

int fold_more_rows(struct fold *fold, int64_t rows)
{
    if (column_resize_zero(&fold->row_memory, rows * (int64_t)sizeof(struct row)))
        return WAT_MEMORY;
    fold->rows = fold->row_memory.data;
    if (fold->cursor.low) {
        if (column_resize_zero(&fold->bound_memory, rows * (int64_t)sizeof(struct bounds)))
            return WAT_MEMORY;
        fold->bounds = fold->bound_memory.data;
        for (int64_t i = fold->rows_room; i < rows; i++)
            fold->bounds[i].self.end = fold->bounds[i].total.end = INT64_MIN;
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

#include "fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int fold_more_rows(struct fold *fold, int64_t rows)
{
    int64_t parts = rows * fold->curves;
    if (column_resize(&fold->rows, rows * (int64_t)sizeof(struct row))
        || column_resize(&fold->parts, parts * (int64_t)sizeof(struct part))
        || (fold->bounded && column_resize(&fold->bounds, parts * (int64_t)sizeof(struct bounds))))
        return WAT_MEMORY;
    struct row *all = fold->rows.data;
    for (int64_t i = fold->rows_room; i < rows; i++) /* the rest is zero */
        all[i].self_run_end = all[i].total_run_end = INT64_MIN;
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
    struct open_part *parts = realloc(fold->open_parts, (size_t)(room * fold->curves + 1) * sizeof *parts);
    if (!parts)
        return WAT_MEMORY;
    fold->open_parts = parts;
    fold->depth_room = room;
    return WAT_OK;
}

int fold_begin(struct fold *fold, const struct wat_curve *curves, int64_t count, const struct wat_keys *keys)
{
    memset(fold, 0, sizeof *fold);
    fold->keys = keys;
    fold->now = INT64_MIN;
    fold->cursors = calloc((size_t)count + 1, sizeof *fold->cursors);
    if (!fold->cursors)
        return WAT_MEMORY;
    for (; fold->curves < count; fold->curves++) {
        fold->bounded |= curves[fold->curves].edges != NULL;
        if (cursor_open(&fold->cursors[fold->curves], &curves[fold->curves])) {
            fold->curves++;
            return WAT_MEMORY;
        }
    }
    if (keys->by_path && paths_open(&fold->paths))
        return WAT_MEMORY;
    return fold_more_rows(fold, keys->by_path ? 64 : keys->rows) || fold_more_depth(fold) ? WAT_MEMORY : WAT_OK;
}

void fold_free(struct fold *fold)
{
    for (int64_t i = 0; i < fold->curves; i++)
        cursor_close(&fold->cursors[i]);
    free(fold->cursors);
    free(fold->open);
    free(fold->open_parts);
    wat_free(fold->rows.data, fold->rows.bytes);
    wat_free(fold->parts.data, fold->parts.bytes);
    wat_free(fold->bounds.data, fold->bounds.bytes);
    paths_close(&fold->paths);
}

static int make(struct wat_column *column, int64_t length)
{
    column->length = length;
    return column_resize(column, length * 8);
}

static int make_columns(struct wat_fold *out, int64_t rows, int64_t curves, int bounded)
{
    struct wat_column *per_row[] = {&out->calls, &out->self_ticks, &out->total_ticks};
    struct wat_column *per_part[] = {&out->self_value, &out->total_value, &out->self_covered, &out->total_covered};
    struct wat_column *bounds[] = {&out->self_low, &out->self_high, &out->total_low, &out->total_high};
    for (int i = 0; i < 3; i++)
        if (make(per_row[i], rows))
            return WAT_MEMORY;
    for (int i = 0; i < 4; i++)
        if (make(per_part[i], rows * curves) || (bounded && make(bounds[i], rows * curves)))
            return WAT_MEMORY;
    return WAT_OK;
}

static void take_bounds(struct fold *fold, struct wat_fold *out, int64_t row, int64_t c, int64_t to)
{
    struct bounds *b = &COLUMN(fold->bounds, struct bounds)[row * fold->curves + c];
    int known = fold->cursors[c].low != NULL;
    if (known) {
        run_add(&b->self, &fold->cursors[c]);
        run_add(&b->total, &fold->cursors[c]);
    }
    COLUMN(out->self_low, double)[to] = known ? b->self.low : NAN;
    COLUMN(out->self_high, double)[to] = known ? b->self.high : NAN;
    COLUMN(out->total_low, double)[to] = known ? b->total.low : NAN;
    COLUMN(out->total_high, double)[to] = known ? b->total.high : NAN;
}

int fold_end(struct fold *fold, struct wat_fold *out)
{
    int64_t rows = fold->keys->by_path ? fold->paths.frame.length : fold->keys->rows;
    int code = make_columns(out, rows, fold->curves, fold->bounded);
    for (int64_t i = 0; i < rows && !code; i++) {
        const struct row *row = &COLUMN(fold->rows, struct row)[i];
        COLUMN(out->calls, int64_t)[i] = row->calls;
        COLUMN(out->self_ticks, int64_t)[i] = row->self_ticks;
        COLUMN(out->total_ticks, int64_t)[i] = row->total_ticks;
        for (int64_t c = 0; c < fold->curves; c++) {
            const struct part *part = &COLUMN(fold->parts, struct part)[i * fold->curves + c];
            int64_t to = c * rows + i;
            COLUMN(out->self_value, double)[to] = part->self_value;
            COLUMN(out->total_value, double)[to] = part->total_value;
            COLUMN(out->self_covered, int64_t)[to] = part->self_covered;
            COLUMN(out->total_covered, int64_t)[to] = part->total_covered;
            if (fold->bounded)
                take_bounds(fold, out, i, c, to);
        }
    }
    out->path_frame = fold->paths.frame;
    out->path_parent = fold->paths.parent;
    fold_free(fold);
    return code;
}

#include "rollup.h"

#include <string.h>

int rollup_begin(struct rollup *rollup, const struct wat_curve *curves, int64_t count, const struct wat_keys *keys)
{
    static const int64_t ever[2] = {-(INT64_C(1) << 61), INT64_C(1) << 61};
    static const struct wat_curve nothing = {.piece_start = ever, .piece_end = ever + 1, .pieces = 1};
    memset(rollup, 0, sizeof *rollup);
    rollup->keys = keys;
    rollup->curves = count;
    rollup->fold = calloc((size_t)count + 1, sizeof *rollup->fold);
    if (!rollup->fold || (keys->by_path && paths_open(&rollup->paths)))
        return WAT_MEMORY;
    while (rollup->folds < (count ? count : 1)) {
        struct fold *fold = &rollup->fold[rollup->folds++];
        if (fold_begin(fold, count ? &curves[rollup->folds - 1] : &nothing, keys->by_path ? 64 : keys->rows))
            return WAT_MEMORY;
    }
    return WAT_OK;
}

int64_t rollup_new_path(struct paths *paths, struct fold *folds, int64_t count, int32_t frame)
{
    int64_t row = path_new(paths, folds->top->row, frame);
    for (int64_t i = 0; i < count && row >= folds[i].rows_room; i++)
        if (fold_more_rows(&folds[i], row + row / 2 + 64))
            return -1;
    return row;
}

int rollup_bounded(const struct rollup *rollup)
{
    for (int64_t i = 0; i < rollup->folds; i++)
        if (rollup->fold[i].runs)
            return 1;
    return 0;
}

static int make(struct wat_column *column, int64_t length)
{
    column->length = length;
    return column_resize(column, length * 8);
}

static int make_columns(struct wat_fold *out, int64_t rows, int64_t curves, int bounded)
{
    struct wat_column *per_row[] = {&out->calls, &out->self_ticks, &out->total_ticks};
    struct wat_column *per_curve[] = {&out->self_value, &out->total_value, &out->self_covered, &out->total_covered};
    struct wat_column *bounds[] = {&out->self_low, &out->self_high, &out->total_low, &out->total_high};
    int code = WAT_OK;
    for (int i = 0; i < 3; i++)
        code |= make(per_row[i], rows);
    for (int i = 0; i < 4; i++)
        code |= make(per_curve[i], rows * curves) | (bounded ? make(bounds[i], rows * curves) : WAT_OK);
    return code;
}

static void take_rows(const struct fold *fold, int64_t rows, struct wat_fold *out)
{
    for (int64_t i = 0; i < rows; i++) {
        COLUMN(out->calls, int64_t)[i] = fold->rows[i].calls;
        COLUMN(out->self_ticks, int64_t)[i] = fold->rows[i].self_ticks;
        COLUMN(out->total_ticks, int64_t)[i] = fold->rows[i].total_ticks;
    }
}

static void take_values(const struct fold *fold, int64_t rows, int64_t at, struct wat_fold *out)
{
    for (int64_t i = 0; i < rows; i++) {
        COLUMN(out->self_value, double)[at + i] = fold->rows[i].self_value;
        COLUMN(out->total_value, double)[at + i] = fold->rows[i].total_value;
        COLUMN(out->self_covered, int64_t)[at + i] = fold->rows[i].self_ticks - fold->uncovered[i].self;
        COLUMN(out->total_covered, int64_t)[at + i] = fold->rows[i].total_ticks - fold->uncovered[i].total;
    }
}

static void take_bounds(struct fold *fold, int64_t rows, int64_t at, struct wat_fold *out)
{
    fold_settle(fold, fold->cursor.windows);
    for (int64_t i = 0; i < rows; i++) {
        const struct run *runs = fold_runs(fold, i);
        COLUMN(out->self_low, double)[at + i] = runs[SELF].low;
        COLUMN(out->self_high, double)[at + i] = runs[SELF].high;
        COLUMN(out->total_low, double)[at + i] = runs[TOTAL].low;
        COLUMN(out->total_high, double)[at + i] = runs[TOTAL].high;
    }
}

int rollup_end(struct rollup *rollup, struct wat_fold *out, int code)
{
    int64_t rows = rollup->keys->by_path ? rollup->paths.frame.length : rollup->keys->rows;
    int bounded = rollup_bounded(rollup);
    if (!code)
        code = make_columns(out, rows, rollup->curves, bounded);
    if (!code)
        take_rows(rollup->fold, rows, out);
    for (int64_t i = 0; i < rollup->curves && !code; i++) {
        take_values(&rollup->fold[i], rows, i * rows, out);
        if (bounded)
            take_bounds(&rollup->fold[i], rows, i * rows, out);
    }
    for (int64_t i = 0; i < rollup->folds; i++)
        fold_free(&rollup->fold[i]);
    free(rollup->fold);
    paths_close(&rollup->paths);
    out->path_frame = rollup->paths.frame;
    out->path_parent = rollup->paths.parent;
    return code;
}

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

/* So many more elements of eight bytes. */
static int extend(struct wat_column *column, int64_t more)
{
    int64_t bytes = (column->length + more) * 8, grown = column->length ? column_more(column->bytes) : 0;
    column->length += more;
    return bytes <= column->bytes && column->data ? WAT_OK : column_resize(column, bytes > grown ? bytes : grown);
}

static int extend_columns(struct wat_fold *out, int64_t rows, int64_t curves, int bounded)
{
    struct wat_column *per_row[] = {&out->calls, &out->self_ticks, &out->total_ticks};
    struct wat_column *per_curve[] = {&out->self_value, &out->total_value, &out->self_covered, &out->total_covered};
    struct wat_column *bounds[] = {&out->self_low, &out->self_high, &out->total_low, &out->total_high};
    int code = WAT_OK;
    for (int i = 0; i < 3; i++)
        code |= extend(per_row[i], rows);
    for (int i = 0; i < 4; i++)
        code |= extend(per_curve[i], rows * curves) | (bounded ? extend(bounds[i], rows * curves) : WAT_OK);
    return code;
}

static int extend_paths(struct wat_fold *out, const struct paths *paths)
{
    int64_t before = out->path_frame.length, rows = paths->frame.length;
    if (extend(&out->path_frame, rows) | extend(&out->path_parent, rows))
        return WAT_MEMORY;
    if (rows) {
        memcpy(COLUMN(out->path_frame, int64_t) + before, paths->frame.data, (size_t)rows * 8);
        memcpy(COLUMN(out->path_parent, int64_t) + before, paths->parent.data, (size_t)rows * 8);
    }
    return WAT_OK;
}

/* The rows that were ever entered, behind those that are there. */
static int take_entered(const struct fold *fold, int64_t rows, struct wat_fold *out)
{
    int code = WAT_OK;
    for (int64_t i = 0; i < rows && !code; i++)
        if (fold->rows[i].calls || fold->rows[i].total_ticks)
            code = COLUMN_ADD(out->row, int64_t, i);
    return code;
}

/* Rows of a fold by their numbers; NULL: from 0 on. */
static void take_rows(const struct fold *fold, const int64_t *row, int64_t rows, int64_t to, struct wat_fold *out)
{
    for (int64_t i = 0; i < rows; i++, to++) {
        const struct row *from = &fold->rows[row ? row[i] : i];
        COLUMN(out->calls, int64_t)[to] = from->calls;
        COLUMN(out->self_ticks, int64_t)[to] = from->self_ticks;
        COLUMN(out->total_ticks, int64_t)[to] = from->total_ticks;
    }
}

static void take_values(const struct fold *fold, const int64_t *row, int64_t rows, int64_t to, struct wat_fold *out)
{
    for (int64_t i = 0; i < rows; i++, to++) {
        const struct row *from = &fold->rows[row ? row[i] : i];
        const struct uncovered *uncovered = &fold->uncovered[row ? row[i] : i];
        COLUMN(out->self_value, double)[to] = from->self_value;
        COLUMN(out->total_value, double)[to] = from->total_value;
        COLUMN(out->self_covered, int64_t)[to] = from->self_ticks - uncovered->self;
        COLUMN(out->total_covered, int64_t)[to] = from->total_ticks - uncovered->total;
    }
}

static void take_bounds(struct fold *fold, const int64_t *row, int64_t rows, int64_t to, struct wat_fold *out)
{
    fold_settle(fold, fold->cursor.windows);
    for (int64_t i = 0; i < rows; i++, to++) {
        const struct run *runs = fold_runs(fold, row ? row[i] : i);
        COLUMN(out->self_low, double)[to] = runs[SELF].low;
        COLUMN(out->self_high, double)[to] = runs[SELF].high;
        COLUMN(out->total_low, double)[to] = runs[TOTAL].low;
        COLUMN(out->total_high, double)[to] = runs[TOTAL].high;
    }
}

int rollup_end(struct rollup *rollup, int entered_only, struct wat_fold *out, int code)
{
    int64_t rows = rollup->keys->by_path ? rollup->paths.frame.length : rollup->keys->rows;
    int64_t to = out->calls.length, at = out->self_value.length;
    const int64_t *row = NULL;
    int bounded = rollup_bounded(rollup);
    entered_only = entered_only && !rollup->keys->by_path; /* a path is there because it was entered */
    if (!code && entered_only) {
        int64_t before = out->row.length;
        code = take_entered(rollup->fold, rows, out);
        rows = out->row.length - before;
        row = COLUMN(out->row, int64_t) + before;
    }
    if (!code)
        code = extend_columns(out, rows, rollup->curves, bounded);
    if (!code && rollup->keys->by_path)
        code = extend_paths(out, &rollup->paths);
    if (!code)
        take_rows(rollup->fold, row, rows, to, out);
    for (int64_t i = 0; i < rollup->curves && !code; i++) {
        take_values(&rollup->fold[i], row, rows, at + i * rows, out);
        if (bounded)
            take_bounds(&rollup->fold[i], row, rows, at + i * rows, out);
    }
    for (int64_t i = 0; i < rollup->folds; i++)
        fold_free(&rollup->fold[i]);
    free(rollup->fold);
    paths_close(&rollup->paths);
    return code;
}

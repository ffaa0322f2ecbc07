/* Spans rolled up against curves as they open and close, in one pass and without being kept. reference.py (fold) says
 * what each sum means and in which order it is added up; the sums here have the same bits. */
#ifndef WAT_FOLD_H
#define WAT_FOLD_H

#include "cursor.h"
#include "paths.h"

/* one row of the result; `run_end`s are where its last stretch of time ends so far */
struct row {
    int64_t calls, self_ticks, total_ticks, open;
    int64_t self_run_end, total_run_end;
};

/* … against one curve */
struct part {
    double self_value, total_value;
    int64_t self_covered, total_covered;
};

/* … its bounds: the sums so far, and the windows around the run that is not added yet */
struct bound {
    double low, high;
    int32_t opened_at_start, closed_at_start, opened_at_end, closed_at_end, next;
};

struct bounds {
    struct bound self, total;
};

struct open_span {
    int64_t row, start, children_ticks;
};

struct open_part {
    double value, children_value;
    int64_t covered, children_covered;
    int32_t opened, closed;
};

struct fold {
    const struct wat_keys *keys;
    int64_t curves;
    int bounded;
    struct cursor *cursors;
    struct paths paths;
    int64_t rows_room;
    struct wat_column rows, parts, bounds; /* struct row; struct part and struct bounds per (row, curve) */
    int64_t depth, depth_room;
    struct open_span *open;      /* by depth */
    struct open_part *open_parts; /* by (depth, curve) */
    int64_t now;
};

int fold_begin(struct fold *fold, const struct wat_curve *curves, int64_t count, const struct wat_keys *keys);
int fold_more_rows(struct fold *fold, int64_t rows);
int fold_more_depth(struct fold *fold);

/* Hand the results over and free the rest. */
int fold_end(struct fold *fold, struct wat_fold *out);
void fold_free(struct fold *fold);

/* Add the run that is under way to the sums. */
static inline void run_add(struct bound *b, const struct cursor *c)
{
    if (b->closed_at_end > b->opened_at_start)
        b->low += c->low[b->closed_at_end] - c->low[b->opened_at_start];
    int32_t first = b->closed_at_start > b->next ? b->closed_at_start : b->next;
    if (b->opened_at_end > first)
        b->high += c->high[b->opened_at_end] - c->high[first];
    b->next = b->opened_at_end;
}

static inline void fold_move(struct fold *fold, int64_t time)
{
    for (int64_t c = 0; c < fold->curves; c++)
        cursor_move(&fold->cursors[c], time);
}

/* The innermost span's row held the time since the last event. */
static inline void fold_self_run(struct fold *fold, int64_t row, int64_t time)
{
    struct row *r = &COLUMN(fold->rows, struct row)[row];
    int64_t since = fold->now;
    if (time <= since)
        return;
    struct bounds *bounds = &COLUMN(fold->bounds, struct bounds)[row * fold->curves];
    int touches = since <= r->self_run_end;
    r->self_run_end = time;
    for (int64_t i = 0; i < fold->curves; i++) {
        const struct cursor *c = &fold->cursors[i];
        struct bound *b = &bounds[i].self;
        if (!c->low)
            continue;
        if (!touches) {
            run_add(b, c);
            b->opened_at_start = c->opened_earlier, b->closed_at_start = c->closed_earlier;
        }
        b->opened_at_end = c->opened, b->closed_at_end = c->closed;
    }
}

static inline void fold_total_run(struct fold *fold, const struct open_span *span, const struct open_part *at_start,
                                  int64_t time)
{
    struct row *r = &COLUMN(fold->rows, struct row)[span->row];
    if (time <= span->start)
        return;
    struct bounds *bounds = &COLUMN(fold->bounds, struct bounds)[span->row * fold->curves];
    int touches = span->start <= r->total_run_end;
    r->total_run_end = time;
    for (int64_t i = 0; i < fold->curves; i++) {
        const struct cursor *c = &fold->cursors[i];
        struct bound *b = &bounds[i].total;
        if (!c->low)
            continue;
        if (!touches) {
            run_add(b, c);
            b->opened_at_start = at_start[i].opened, b->closed_at_start = at_start[i].closed;
        }
        b->opened_at_end = c->opened, b->closed_at_end = c->closed;
    }
}

/* The row of a frame, −1: it does not count. */
static inline int64_t fold_row_of_frame(const struct wat_keys *keys, int64_t frame)
{
    int64_t row = frame >= 0 && frame < keys->frames ? keys->row[frame] : -1;
    return row < keys->rows ? row : -1;
}

/* A span of a frame that counts opens. */
static inline int fold_open(struct fold *fold, int32_t frame, int resumed, int64_t time)
{
    int64_t depth = fold->depth, row;
    fold_move(fold, time);
    if (fold->bounded && depth)
        fold_self_run(fold, fold->open[depth - 1].row, time);
    fold->now = time;
    if (__builtin_expect(depth == fold->depth_room, 0) && fold_more_depth(fold))
        return WAT_MEMORY;
    if (fold->keys->by_path) {
        row = path_of(&fold->paths, depth ? fold->open[depth - 1].row : -1, frame);
        if (row < 0 || (row >= fold->rows_room && fold_more_rows(fold, row + row / 2 + 64)))
            return WAT_MEMORY;
    } else {
        row = fold->keys->row[frame];
    }
    struct row *r = &COLUMN(fold->rows, struct row)[row];
    r->calls += !resumed;
    r->open++;
    fold->open[depth] = (struct open_span){row, time, 0};
    struct open_part *parts = &fold->open_parts[depth * fold->curves];
    for (int64_t i = 0; i < fold->curves; i++) {
        const struct cursor *c = &fold->cursors[i];
        parts[i] = (struct open_part){c->value, 0, c->covered, 0, c->opened, c->closed};
    }
    fold->depth++;
    return WAT_OK;
}

/* The span opened last closes. */
static inline void fold_close(struct fold *fold, int64_t time)
{
    int64_t depth = fold->depth - 1;
    struct open_span *span = &fold->open[depth];
    struct open_part *parts = &fold->open_parts[depth * fold->curves];
    struct open_part *above = depth ? parts - fold->curves : NULL;
    struct row *r = &COLUMN(fold->rows, struct row)[span->row];
    struct part *sums = &COLUMN(fold->parts, struct part)[span->row * fold->curves];
    int outermost = !--r->open;
    int64_t ticks = (int64_t)((uint64_t)time - (uint64_t)span->start);
    fold_move(fold, time);
    if (fold->bounded) {
        fold_self_run(fold, span->row, time);
        if (outermost)
            fold_total_run(fold, span, parts, time);
    }
    fold->now = time;
    r->self_ticks += ticks - span->children_ticks;
    r->total_ticks += outermost ? ticks : 0;
    if (depth)
        span[-1].children_ticks += ticks;
    for (int64_t i = 0; i < fold->curves; i++) {
        double total = fold->cursors[i].value - parts[i].value;
        int64_t covered = fold->cursors[i].covered - parts[i].covered;
        sums[i].self_value += total - parts[i].children_value;
        sums[i].self_covered += covered - parts[i].children_covered;
        if (outermost) {
            sums[i].total_value += total;
            sums[i].total_covered += covered;
        }
        if (depth) {
            above[i].children_value += total;
            above[i].children_covered += covered;
        }
    }
    fold->depth--;
}

#endif

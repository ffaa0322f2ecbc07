/* Spans rolled up against one curve as they open and close, in one pass and without being kept. reference.py (fold) says
 * what each sum means and in which order it is added up; the sums here have the same bits. */
#ifndef WAT_FOLD_H
#define WAT_FOLD_H

#include "columns.h"
#include "cursor.h"

/* one row of the result */
struct row {
    int64_t calls, open; /* open: how many of its spans are open now */
    int64_t self_ticks, total_ticks, self_uncovered, total_uncovered;
    double self_value, total_value;
};

/* a bound of a row: the sums so far, and the run of time it held last */
struct run {
    double low, high;
    struct windows begun; /* at its start, or at a later moment before any of them changed */
    uint32_t covered, touched; /* the first windows that it can still cover, and touch as the first of the row's runs */
    int64_t end; /* or an earlier moment of the stretch in which it began */
};

struct bounds {
    struct run self, total;
};

struct open_span {
    int64_t row, start;
    double value; /* value, uncovered, windows: the curve at the start */
    int64_t uncovered;
    struct windows windows;
    int64_t children_ticks, children_uncovered;
    double children_value;
};

struct fold {
    struct cursor cursor;
    int64_t now; /* of the last event */
    int64_t depth, depth_room, rows_room;
    struct row *rows;
    struct bounds *bounds;  /* by row; NULL: the curve has none */
    struct open_span *open; /* by depth */
    struct wat_column row_memory, bound_memory;
};

int fold_begin(struct fold *fold, const struct wat_curve *curve, int64_t rows);
int fold_more_rows(struct fold *fold, int64_t rows);
int fold_more_depth(struct fold *fold);
void fold_free(struct fold *fold);

static inline uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The row held the time from `start` to `now`, where the cursor is. */
void run_extend(struct run *run, const struct cursor *c, int64_t start, struct windows at_start, int64_t now);

/* The same. Most pieces lie in the stretch of time in which the row's run began: what they touch is counted already,
 * and what they cover is decided by the piece that leaves the stretch. */
static inline void run_hold(struct run *run, const struct cursor *c, int64_t start, struct windows at_start, int64_t now)
{
    if (__builtin_expect(!same_windows(run->begun, c->windows) || !same_windows(at_start, c->windows), 0))
        run_extend(run, c, start, at_start, now);
}

/* Time goes on to this moment; with bounds, what passed belongs to the innermost span's row. `bounded` is a constant
 * where it is known, so that the rest is not even compiled. */
static inline __attribute__((always_inline)) void fold_pass(struct fold *fold, int64_t time, int bounded)
{
    struct cursor *c = &fold->cursor;
    struct windows before = c->windows;
    cursor_move(c, time);
    if (bounded) {
        if (fold->depth)
            run_hold(&fold->bounds[fold->open[fold->depth - 1].row].self, c, fold->now, before, time);
        fold->now = time;
    }
}

/* A span of that row, for which there is room, opens. */
static inline __attribute__((always_inline)) int fold_open(struct fold *fold, int64_t row, int resumed, int64_t time,
                                                           int bounded)
{
    fold_pass(fold, time, bounded);
    if (__builtin_expect(fold->depth == fold->depth_room, 0) && fold_more_depth(fold))
        return WAT_MEMORY;
    const struct cursor *c = &fold->cursor;
    struct open_span *span = &fold->open[fold->depth++];
    fold->rows[row].calls += !resumed;
    fold->rows[row].open++;
    *span = (struct open_span){.row = row, .start = time, .value = c->value, .uncovered = c->uncovered};
    if (bounded)
        span->windows = c->windows;
    return WAT_OK;
}

/* Time that the curve does not cover passed inside a span; `caller` is its caller's entry, NULL if it has none. */
static inline void fold_uncovered(struct row *row, int64_t ticks, int64_t children, struct open_span *caller)
{
    row->self_uncovered += ticks - children;
    row->total_uncovered += row->open ? 0 : ticks;
    if (caller)
        caller->children_uncovered += ticks;
}

/* The span opened last closes. */
static inline __attribute__((always_inline)) void fold_close(struct fold *fold, int64_t time, int bounded)
{
    fold_pass(fold, time, bounded);
    const struct cursor *c = &fold->cursor;
    struct open_span *span = &fold->open[--fold->depth], *caller = fold->depth ? span - 1 : NULL;
    struct row *row = &fold->rows[span->row];
    double total = c->value - span->value;
    int64_t ticks = time - span->start;
    row->self_value += total - span->children_value;
    row->self_ticks += ticks - span->children_ticks;
    row->open--;
    if (caller) {
        caller->children_value += total;
        caller->children_ticks += ticks;
    }
    if (__builtin_expect(c->uncovered != span->uncovered, 0))
        fold_uncovered(row, c->uncovered - span->uncovered, span->children_uncovered, caller);
    if (row->open)
        return;
    row->total_value += total;
    row->total_ticks += ticks;
    if (bounded)
        run_hold(&fold->bounds[span->row].total, c, span->start, span->windows, time);
}

/* A span opens and closes with nothing inside it: the same as fold_open and fold_close, without the stack. */
static inline __attribute__((always_inline)) void fold_leaf(struct fold *fold, int64_t at, int64_t start, int64_t end,
                                                            int bounded)
{
    struct cursor *c = &fold->cursor;
    struct row *row = &fold->rows[at];
    struct open_span *caller = fold->depth ? &fold->open[fold->depth - 1] : NULL;
    fold_pass(fold, start, bounded);
    double value = c->value;
    int64_t uncovered = c->uncovered, ticks = end - start;
    struct windows windows = c->windows;
    cursor_move(c, end);
    double total = c->value - value;
    row->calls++;
    row->self_value += total;
    row->self_ticks += ticks;
    if (caller) {
        caller->children_value += total;
        caller->children_ticks += ticks;
    }
    if (__builtin_expect(c->uncovered != uncovered, 0))
        fold_uncovered(row, c->uncovered - uncovered, 0, caller);
    if (!row->open) {
        row->total_value += total;
        row->total_ticks += ticks;
    }
    if (bounded) {
        fold->now = end;
        run_hold(&fold->bounds[at].self, c, start, windows, end);
        if (!row->open)
            run_hold(&fold->bounds[at].total, c, start, windows, end);
    }
}

#endif

/* Spans rolled up against one curve as they open and close, in one pass and without being kept. reference.py (fold) says
 * what each sum means and in which order it is added up; the sums here have the same bits.
 *
 * Bounds are sums over windows of time: a row *touches* a window in which it holds any time, and *covers* one that a run
 * of its time, without a gap, holds from end to end. Between two moments at which a window opens or closes there is a
 * stretch in which it does not matter how often a row came and went, so a row is noted once per stretch, and what it
 * touched is added up when the stretch ends. Only what lasts from one stretch into the next can cover anything, and is
 * looked at by itself. */
#ifndef WAT_FOLD_H
#define WAT_FOLD_H

#include "columns.h"
#include "cursor.h"

enum { SELF, TOTAL, HELD_SELF = 1 << SELF, HELD_TOTAL = 1 << TOTAL };

/* one row of the result, in one line of cache */
struct row {
    _Alignas(64) int64_t calls;
    int64_t self_ticks, total_ticks;
    double self_value, total_value;
    uint64_t noted;  /* the stretch in which it was noted last, and what it held there: HELD_SELF, HELD_TOTAL */
    int32_t open;    /* how many of its spans are open now */
    uint32_t lasted; /* which of its runs came into their last stretch from the one before */
};

/* ticks outside the curve's pieces, by row */
struct uncovered {
    int64_t self, total;
};

/* a bound of a row: the sums so far, and how far they go */
struct run {
    double low, high;
    uint32_t covered, touched; /* the first windows that the run can still cover, and the row touch */
    int64_t end;               /* of a run that lasted */
};

struct open_span {
    int64_t row, start;
    double value; /* value, uncovered, windows: the curve at the start */
    int64_t uncovered;
    struct windows windows;
    double children_value;
    int64_t children_ticks, children_uncovered;
};

struct fold {
    struct cursor cursor;
    struct row *rows;
    struct uncovered *uncovered;
    struct open_span *open;       /* the first one is a sentinel, row −1 */
    struct open_span *top, *last; /* the innermost, and the last there is room for */
    int64_t rows_room;
    /* with bounds */
    int64_t now;      /* of the last event */
    uint64_t stretch; /* a number that grows by four at least and is never 0 */
    int64_t noted;
    uint32_t *notes;  /* the rows that were noted in this stretch */
    struct run *runs; /* 2 · row + SELF or TOTAL; NULL: the curve has no bounds */
};

int fold_begin(struct fold *fold, const struct wat_curve *curve, int64_t rows);
int fold_more_rows(struct fold *fold, int64_t rows);
int fold_more_depth(struct fold *fold);
void fold_free(struct fold *fold);

static inline int64_t fold_depth(const struct fold *fold)
{
    return fold->top - fold->open;
}

/* A row takes another's place; the rows from `from` to `until` are new again. */
void fold_move_row(struct fold *fold, int64_t row, int64_t to);
void fold_clear_rows(struct fold *fold, int64_t from, int64_t until);

/* The bounds of a row, SELF and TOTAL; NaN where the curve has none. */
const struct run *fold_runs(const struct fold *fold, int64_t row);

/* Add up what was noted while the windows were these. */
void fold_settle(struct fold *fold, struct windows windows);

/* The cursor goes to a moment outside its stretch of the curve; 1 if a window opened or closed before it. */
int fold_seek(struct fold *fold, int64_t time);

/* The row held the time from `start`, when the windows were these, to `now`, where the cursor is. */
void run_extend(struct fold *fold, int64_t row, int which, int64_t start, struct windows at_start, int64_t now);

/* It held the time from these moments to `now`, all of it in this stretch. */
static inline void run_hold(struct fold *fold, int64_t at, int64_t self, int64_t total, int64_t now)
{
    struct row *row = &fold->rows[at];
    unsigned held = (unsigned)(self < now) * HELD_SELF | (unsigned)(total < now) * HELD_TOTAL;
    if (__builtin_expect(row->lasted & held, 0)) {
        run_extend(fold, at, SELF, self, fold->cursor.windows, now);
        run_extend(fold, at, TOTAL, total, fold->cursor.windows, now);
        return;
    }
    uint64_t noted = row->noted, stretch = fold->stretch;
    fold->notes[fold->noted] = (uint32_t)at;
    fold->noted += noted < stretch; /* no branch: it could not be foretold */
    row->noted = (noted < stretch ? stretch : noted) | held;
}

/* Time goes on to this moment. Returns the curve's value; *changed says whether a window opened or closed. */
static inline __attribute__((always_inline)) double fold_pass(struct fold *fold, int64_t time, int *changed)
{
    *changed = cursor_beyond(&fold->cursor, time) && fold_seek(fold, time);
    return cursor_value(&fold->cursor, time);
}

/* What passed since the last event was the innermost span's own. */
static inline __attribute__((always_inline)) void fold_own(struct fold *fold, int64_t time, int changed,
                                                           struct windows before)
{
    int64_t row = fold->top->row;
    if (__builtin_expect(changed, 0) && row >= 0)
        run_extend(fold, row, SELF, fold->now, before, time);
    else if (row >= 0)
        run_hold(fold, row, fold->now, time, time);
    fold->now = time;
}

/* A span of that row, for which there is room, opens. `bounded` is a constant where it is known, so that the rest is not
 * even compiled; so it is below. */
static inline __attribute__((always_inline)) int fold_open(struct fold *fold, int64_t row, int resumed, int64_t time,
                                                           int bounded)
{
    struct windows before = fold->cursor.windows;
    int changed;
    double value = fold_pass(fold, time, &changed);
    if (bounded)
        fold_own(fold, time, changed, before);
    if (__builtin_expect(fold->top == fold->last, 0) && fold_more_depth(fold))
        return WAT_MEMORY;
    struct open_span *span = ++fold->top;
    fold->rows[row].calls += !resumed;
    fold->rows[row].open++;
    *span = (struct open_span){
        .row = row, .start = time, .value = value, .uncovered = cursor_uncovered(&fold->cursor, time)};
    if (bounded)
        span->windows = fold->cursor.windows;
    return WAT_OK;
}

/* Time that the curve does not cover passed inside a span of the row. */
static inline void fold_uncovered(struct fold *fold, int64_t row, int64_t ticks, int64_t children)
{
    fold->uncovered[row].self += ticks - children;
    fold->uncovered[row].total += fold->rows[row].open ? 0 : ticks;
    fold->top->children_uncovered += ticks;
}

/* The span opened last closes. */
static inline __attribute__((always_inline)) void fold_close(struct fold *fold, int64_t time, int bounded)
{
    struct windows before = fold->cursor.windows;
    int changed;
    double value = fold_pass(fold, time, &changed);
    const struct open_span *span = fold->top--;
    struct row *row = &fold->rows[span->row];
    double total = value - span->value;
    int64_t ticks = time - span->start, uncovered = cursor_uncovered(&fold->cursor, time) - span->uncovered;
    row->self_value += total - span->children_value;
    row->self_ticks += ticks - span->children_ticks;
    row->open--;
    fold->top->children_value += total;
    fold->top->children_ticks += ticks;
    if (__builtin_expect(uncovered != 0, 0))
        fold_uncovered(fold, span->row, uncovered, span->children_uncovered);
    if (!row->open) {
        row->total_value += total;
        row->total_ticks += ticks;
    }
    if (!bounded)
        return;
    int64_t own = fold->now;
    fold->now = time;
    if (__builtin_expect(same_windows(span->windows, fold->cursor.windows), 1)) {
        run_hold(fold, span->row, own, row->open ? time : span->start, time);
        return;
    }
    run_extend(fold, span->row, SELF, own, changed ? before : fold->cursor.windows, time);
    if (!row->open)
        run_extend(fold, span->row, TOTAL, span->start, span->windows, time);
}

/* A span opens and closes with nothing inside it: the same as fold_open and fold_close, without the stack. */
static inline __attribute__((always_inline)) void fold_leaf(struct fold *fold, int64_t at, int64_t start, int64_t end,
                                                            int bounded)
{
    struct windows before = fold->cursor.windows;
    int changed;
    double value = fold_pass(fold, start, &changed);
    if (bounded)
        fold_own(fold, start, changed, before);
    int64_t uncovered = cursor_uncovered(&fold->cursor, start), ticks = end - start;
    before = fold->cursor.windows;
    double total = fold_pass(fold, end, &changed) - value;
    struct row *row = &fold->rows[at];
    row->calls++;
    row->self_value += total;
    row->self_ticks += ticks;
    fold->top->children_value += total;
    fold->top->children_ticks += ticks;
    uncovered = cursor_uncovered(&fold->cursor, end) - uncovered;
    if (__builtin_expect(uncovered != 0, 0))
        fold_uncovered(fold, at, uncovered, 0);
    if (!row->open) {
        row->total_value += total;
        row->total_ticks += ticks;
    }
    if (!bounded)
        return;
    fold->now = end;
    if (__builtin_expect(!changed, 1)) {
        run_hold(fold, at, start, row->open ? end : start, end);
        return;
    }
    run_extend(fold, at, SELF, start, before, end);
    if (!row->open)
        run_extend(fold, at, TOTAL, start, before, end);
}

#endif

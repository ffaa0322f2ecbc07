/* A curve read at one moment after the other: its value, the time it does not cover, and the windows of its bounds.
 * Between two steps of any of these all is linear or constant, so a cursor keeps the stretch it stands in and looks
 * further only when a moment falls outside. reference.py (evaluate, _covered, _windows) says the same in NumPy. */
#ifndef WAT_CURSOR_H
#define WAT_CURSOR_H

#include "wattribute.h"

/* How many windows open before a moment, and how many close at it or before: the same pair, the same stretch of time. */
struct windows {
    uint32_t opened, closed;
};

static inline int same_windows(struct windows a, struct windows b)
{
    return a.opened == b.opened && a.closed == b.closed;
}

/* Moments, both ends included; none if low > high. */
struct moments {
    int64_t low, high;
};

struct cursor {
    const struct wat_curve *curve;
    int64_t *before; /* covered ticks before each piece */
    /* the stretch in use: moments from … from + width */
    int64_t from;
    uint64_t width;
    double slope, y0;
    int64_t x0;
    /* in this stretch */
    int64_t base, passing; /* see cursor_uncovered; passing: −1 where no piece covers, else 0 */
    struct windows windows;
    /* where the parts of the curve that were found last hold */
    struct moments linear, piece, same;
    int64_t knot, pieces; /* how many begin before */
    int64_t passed;       /* knots whose pages were given up */
};

int cursor_open(struct cursor *cursor, const struct wat_curve *curve);
void cursor_close(struct cursor *cursor);

static inline int cursor_beyond(const struct cursor *cursor, int64_t time)
{
    return __builtin_expect((uint64_t)time - (uint64_t)cursor->from > cursor->width, 0);
}

/* Find the stretch of a moment. */
void cursor_seek(struct cursor *cursor, int64_t time);

/* Ticks outside the pieces from some beginning to a moment of the stretch in use: outside of a piece they grow with it. */
static inline int64_t cursor_uncovered(const struct cursor *cursor, int64_t time)
{
    return cursor->base + (time & cursor->passing);
}

/* The value at a moment of the stretch in use. */
static inline double cursor_value(const struct cursor *cursor, int64_t time)
{
    return cursor->slope * (double)(time - cursor->x0) + cursor->y0;
}

#endif

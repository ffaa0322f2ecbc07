#include "cursor.h"
#include "spill.h"

#include <stdlib.h>
#include <string.h>

enum { NEAR = 8 }; /* steps that are taken one by one */

/* How many of the ascending a[0 … n−1] are ≤ t: a search that starts at a guess and doubles its steps. */
static int64_t hunt(const int64_t *a, int64_t n, int64_t guess, int64_t t)
{
    int64_t low = 0, high = n, step = 1; /* the answer is in low … high */
    if (guess < n && a[guess] <= t) {
        for (low = guess + 1; low < n && low < guess + NEAR; low++)
            if (a[low] > t)
                return low;
        while (low + step < n && a[low + step] <= t)
            low += step + 1, step *= 2;
        if (low + step < n)
            high = low + step;
    } else {
        high = guess < n ? guess : n;
        while (high - step > 0 && a[high - step] > t)
            high -= step, step *= 2;
        if (high - step > 0)
            low = high - step;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (a[middle] <= t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static int holds(struct moments moments, int64_t t)
{
    return t >= moments.low && t <= moments.high;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void seek_value(struct cursor *c, int64_t t)
{
    const struct wat_curve *curve = c->curve;
    const int64_t *x = curve->times;
    const double *y = curve->values;
    int64_t n = curve->knots, j;
    c->slope = 0, c->x0 = t, c->y0 = n ? y[0] : 0;
    c->linear = (struct moments){INT64_MIN, INT64_MAX};
    if (n < 2)
        return;
    j = c->knot = hunt(x, n, c->knot, t);
    if (curve->on_disk && j - c->passed >= 2 * PASSED) {
        pages_passed(x + c->passed, (j - PASSED - c->passed) * 8);
        pages_passed(y + c->passed, (j - PASSED - c->passed) * 8);
        c->passed = j - PASSED;
    }
    c->linear = (struct moments){j ? x[j - 1] : INT64_MIN, j < n ? x[j] - 1 : INT64_MAX};
    if (j == n)
        c->y0 = y[n - 1];
    else if (j) {
        c->slope = (y[j] - y[j - 1]) / (double)(x[j] - x[j - 1]);
        c->x0 = x[j - 1], c->y0 = y[j - 1];
    }
}

static void seek_piece(struct cursor *c, int64_t t)
{
    const int64_t *start = c->curve->piece_start, *end = c->curve->piece_end;
    int64_t n = c->curve->pieces, k = c->pieces = hunt(start, n, c->pieces, t);
    if (k && t < end[k - 1]) {
        c->piece = (struct moments){start[k - 1], end[k - 1] - 1};
        c->base = start[k - 1] - c->before[k - 1], c->passing = 0;
    } else {
        c->piece = (struct moments){k ? end[k - 1] : INT64_MIN, k < n ? start[k] - 1 : INT64_MAX};
        c->base = -c->before[k], c->passing = -1;
    }
}

/* Window i opens after edges[i] − latency and closes at edges[i + 1]. */
static void seek_windows(struct cursor *c, int64_t t)
{
    const int64_t *edges = c->curve->edges, latency = c->curve->latency, n = c->curve->windows;
    int64_t opened = hunt(edges, n, c->windows.opened, saturating_add(t, latency - 1));
    int64_t closed = hunt(edges + 1, n, c->windows.closed, t);
    c->same.low =
        later(opened ? saturating_add(edges[opened - 1], 1 - latency) : INT64_MIN, closed ? edges[closed] : INT64_MIN);
    c->same.high = earlier(opened < n ? saturating_add(edges[opened], -latency) : INT64_MAX,
                           closed < n ? edges[closed + 1] - 1 : INT64_MAX);
    c->windows = (struct windows){(uint32_t)opened, (uint32_t)closed};
}

void cursor_seek(struct cursor *c, int64_t t)
{
    if (!holds(c->linear, t))
        seek_value(c, t);
    if (!holds(c->piece, t))
        seek_piece(c, t);
    if (!holds(c->same, t))
        seek_windows(c, t);
    c->from = later(c->linear.low, later(c->piece.low, c->same.low));
    c->width = (uint64_t)earlier(c->linear.high, earlier(c->piece.high, c->same.high)) - (uint64_t)c->from;
}

int cursor_open(struct cursor *c, const struct wat_curve *curve)
{
    memset(c, 0, sizeof *c);
    c->curve = curve;
    c->before = malloc((size_t)(curve->pieces + 1) * sizeof *c->before);
    if (!c->before)
        return WAT_MEMORY;
    c->before[0] = 0;
    for (int64_t i = 0; i < curve->pieces; i++)
        c->before[i + 1] = c->before[i] + (curve->piece_end[i] - curve->piece_start[i]);
    c->linear = c->piece = c->same = (struct moments){INT64_MAX, INT64_MIN};
    if (!curve->edges)
        c->same = (struct moments){INT64_MIN, INT64_MAX};
    cursor_seek(c, 0);
    return WAT_OK;
}

void cursor_close(struct cursor *c)
{
    free(c->before);
}

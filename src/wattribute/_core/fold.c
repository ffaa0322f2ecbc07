#include "fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void touch(struct run *run, const double *high, uint32_t from, uint32_t until)
{
    uint32_t at = run->touched > from ? run->touched : from;
    double sum = run->high;
    for (; at < until; at++)
        sum += high[at];
    run->high = sum;
    run->touched = at;
}

void fold_settle(struct fold *fold, struct windows windows)
{
    const double *high = fold->cursor.curve->high;
    for (int64_t i = 0; i < fold->noted; i++) {
        int64_t row = fold->notes[i];
        struct run *runs = &fold->runs[2 * row];
        uint64_t held = fold->rows[row].noted;
        if (held & HELD_SELF)
            touch(&runs[SELF], high, windows.closed, windows.opened);
        if (held & HELD_TOTAL)
            touch(&runs[TOTAL], high, windows.closed, windows.opened);
    }
    fold->noted = 0;
}

static uint64_t number_of(struct windows windows)
{
    return ((uint64_t)windows.opened + windows.closed + 1) << 2;
}

int fold_seek(struct fold *fold, int64_t time)
{
    struct cursor *c = &fold->cursor;
    struct windows before = c->windows;
    cursor_seek(c, time);
    if (same_windows(before, c->windows))
        return 0;
    fold_settle(fold, before);
    fold->stretch = number_of(c->windows);
    return 1;
}

void run_extend(struct fold *fold, int64_t row, int which, int64_t start, struct windows at_start, int64_t now)
{
    const struct cursor *c = &fold->cursor;
    uint32_t *lasted = &fold->rows[row].lasted, held = 1u << which;
    struct run *run = &fold->runs[2 * row + which];
    if (now <= start)
        return;
    if (!(*lasted & held) || start > run->end) { /* another run */
        run->covered = at_start.opened;
        *lasted &= ~held; /* so that the rest of it in this stretch is only noted */
    }
    if (!same_windows(at_start, c->windows))
        *lasted |= held;
    run->end = now;
    touch(run, c->curve->high, at_start.closed, c->windows.opened);
    for (; run->covered < c->windows.closed; run->covered++)
        run->low += c->curve->low[run->covered];
}

/* Zeros that begin with a line of cache. calloc, because of a million rows most are never touched and then cost nothing;
 * what it gave is kept in front. */
static void *zeros(size_t bytes)
{
    void *given = calloc(1, bytes + sizeof given + 63);
    if (!given)
        return NULL;
    char *data = (char *)(((uintptr_t)given + sizeof given + 63) & ~(uintptr_t)63);
    memcpy(data - sizeof given, &given, sizeof given);
    return data;
}

static void zeros_free(void *data)
{
    void *given = NULL;
    if (data)
        memcpy(&given, (char *)data - sizeof given, sizeof given);
    free(given);
}

/* A larger array, the new part of it zero, in place of the one that `array` points to. */
static int more(void *array, size_t before, size_t bytes)
{
    void *old, *data = zeros(bytes);
    if (!data)
        return WAT_MEMORY;
    memcpy(&old, array, sizeof old);
    if (before)
        memcpy(data, old, before);
    zeros_free(old);
    memcpy(array, &data, sizeof data);
    return WAT_OK;
}

int fold_more_rows(struct fold *fold, int64_t rows)
{
    size_t old = (size_t)fold->rows_room, new = (size_t)rows, spare = fold->notes ? 1 : 0;
    if (more(&fold->rows, old * sizeof *fold->rows, new * sizeof *fold->rows)
        || more(&fold->uncovered, old * sizeof *fold->uncovered, new * sizeof *fold->uncovered))
        return WAT_MEMORY;
    if (fold->cursor.curve->edges /* a note is written behind the last one before it is known whether it counts */
        && (more(&fold->runs, 2 * old * sizeof *fold->runs, 2 * new * sizeof *fold->runs)
            || more(&fold->notes, (old + spare) * sizeof *fold->notes, (new + 1) * sizeof *fold->notes)))
        return WAT_MEMORY;
    fold->rows_room = rows;
    return WAT_OK;
}

void fold_move_row(struct fold *fold, int64_t row, int64_t to)
{
    fold->rows[to] = fold->rows[row];
    fold->rows[to].noted = 0; /* that was settled; what comes is noted again */
    fold->uncovered[to] = fold->uncovered[row];
    for (int which = SELF; which <= TOTAL && fold->runs; which++)
        fold->runs[2 * to + which] = fold->runs[2 * row + which];
}

void fold_clear_rows(struct fold *fold, int64_t from, int64_t until)
{
    size_t rows = (size_t)(until - from);
    memset(fold->rows + from, 0, rows * sizeof *fold->rows);
    memset(fold->uncovered + from, 0, rows * sizeof *fold->uncovered);
    if (fold->runs)
        memset(fold->runs + 2 * from, 0, 2 * rows * sizeof *fold->runs);
}

const struct run *fold_runs(const struct fold *fold, int64_t row)
{
    static const struct run unknown[2] = {{.low = NAN, .high = NAN}, {.low = NAN, .high = NAN}};
    return fold->runs ? &fold->runs[2 * row] : unknown;
}

int fold_more_depth(struct fold *fold)
{
    int64_t depth = fold_depth(fold), room = 2 * depth + 64;
    struct open_span *open = realloc(fold->open, (size_t)room * sizeof *open);
    if (!open)
        return WAT_MEMORY;
    fold->open = open;
    fold->top = open + depth;
    fold->last = open + room - 1;
    return WAT_OK;
}

int fold_begin(struct fold *fold, const struct wat_curve *curve, int64_t rows)
{
    memset(fold, 0, sizeof *fold);
    if (cursor_open(&fold->cursor, curve) || fold_more_rows(fold, rows) || fold_more_depth(fold))
        return WAT_MEMORY;
    *fold->open = (struct open_span){.row = -1};
    fold->stretch = number_of(fold->cursor.windows);
    return WAT_OK;
}

void fold_free(struct fold *fold)
{
    cursor_close(&fold->cursor);
    free(fold->open);
    zeros_free(fold->rows);
    zeros_free(fold->uncovered);
    zeros_free(fold->runs);
    zeros_free(fold->notes);
}

/* A device's energy split evenly between the users that are active at a moment: everybody's busy intervals merged in time
 * order. attribution/shares.py (Knots, split) says the same in NumPy, in several arrays as long as the result. */
#include "columns.h"
#include "cursor.h"

#include <stdlib.h>
#include <string.h>

/* One user's moments of change, or (without ends) moments at which nobody's part changes. */
struct changes {
    const int64_t *start, *end;
    int64_t count, next; /* start, end, start, end … */
};

struct merge {
    struct changes *all;
    int64_t *heap, length; /* numbers of those not used up, the earliest first */
};

static int64_t moment(const struct changes *changes)
{
    if (!changes->end)
        return changes->start[changes->next];
    return (changes->next & 1 ? changes->end : changes->start)[changes->next / 2];
}

static int used_up(const struct changes *changes)
{
    return changes->next >= (changes->end ? 2 : 1) * changes->count;
}

static void sift_down(struct merge *merge, int64_t at)
{
    int64_t moved = merge->heap[at], time = moment(&merge->all[moved]);
    for (int64_t below; (below = 2 * at + 1) < merge->length; at = below) {
        int64_t *heap = merge->heap;
        if (below + 1 < merge->length && moment(&merge->all[heap[below + 1]]) < moment(&merge->all[heap[below]]))
            below++;
        if (time <= moment(&merge->all[heap[below]]))
            break;
        heap[at] = heap[below];
    }
    merge->heap[at] = moved;
}

/* The first change is done. */
static void merge_step(struct merge *merge)
{
    struct changes *first = &merge->all[merge->heap[0]];
    first->next++;
    if (used_up(first))
        merge->heap[0] = merge->heap[--merge->length];
    if (merge->length)
        sift_down(merge, 0);
}

static void merge_begin(struct merge *merge, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!used_up(&merge->all[i]))
            merge->heap[merge->length++] = i;
    for (int64_t i = merge->length / 2; i-- > 0;)
        sift_down(merge, i);
}

/* All changes at the earliest moment: how many more are active after it; whether a fixed moment was among them. */
static int64_t merge_moment(struct merge *merge, int64_t time, int *fixed)
{
    int64_t more = 0;
    *fixed = 0;
    while (merge->length && moment(&merge->all[merge->heap[0]]) == time) {
        const struct changes *first = &merge->all[merge->heap[0]];
        if (first->end)
            more += first->next & 1 ? -1 : 1;
        else
            *fixed = 1;
        merge_step(merge);
    }
    return more;
}

static double share_of(int64_t active)
{
    return active > 0 ? 1.0 / (double)active : 0;
}

/* The knots one after the other, and how many users are active after each: S rises by an active user's share of what E
 * rose since the one before. */
static int make_knots(struct merge *merge, const struct wat_curve *energy, int64_t first, int64_t last,
                      struct wat_split *out, struct wat_column *users)
{
    struct wat_curve values = *energy;
    struct cursor cursor;
    int64_t active = 0, before = 0; /* before: how many were active since the last knot */
    double e = 0, s = 0;
    values.edges = NULL;
    if (cursor_open(&cursor, &values))
        return WAT_MEMORY;
    int code = WAT_OK;
    while (merge->length && !code) {
        int64_t time = moment(&merge->all[merge->heap[0]]);
        int fixed;
        active += merge_moment(merge, time, &fixed);
        if (!fixed && (time < first || time > last))
            continue;
        if (cursor_beyond(&cursor, time))
            cursor_seek(&cursor, time);
        double now = cursor_value(&cursor, time);
        if (out->times.length) {
            s += (now - e) * share_of(before);
            out->idle += before > 0 ? 0 : now - e;
        }
        e = now, before = active;
        code = COLUMN_ADD(out->times, int64_t, time) || COLUMN_ADD(out->values, double, s)
                       || COLUMN_ADD(*users, int32_t, (int32_t)active)
                   ? WAT_MEMORY
                   : WAT_OK;
    }
    cursor_close(&cursor);
    return code;
}

/* The share between a knot and the next one. */
static double share_at(const struct wat_column *users, int64_t knot)
{
    return knot + 1 < users->length ? share_of(COLUMN(*users, int32_t)[knot]) : 0;
}

/* The least and the greatest share in each window; one that is empty has that of its first moment. */
static int make_bounds(const struct wat_curve *energy, const struct wat_column *users, struct wat_split *out)
{
    const int64_t *times = out->times.data, knots = out->times.length;
    int64_t opens = 0;
    if (column_resize(&out->least, energy->windows * 8) || column_resize(&out->greatest, energy->windows * 8))
        return WAT_MEMORY;
    for (int64_t i = 0; i < energy->windows; i++) {
        int64_t open = energy->edges[i] - energy->latency, close = energy->edges[i + 1];
        while (opens + 1 < knots && times[opens + 1] <= open)
            opens++;
        double least = share_at(users, opens), greatest = least;
        for (int64_t at = opens + 1; at < knots && times[at] < close; at++) {
            double share = share_at(users, at);
            least = share < least ? share : least;
            greatest = share > greatest ? share : greatest;
        }
        COLUMN(out->least, double)[i] = least;
        COLUMN(out->greatest, double)[i] = greatest;
    }
    out->least.length = out->greatest.length = energy->windows;
    return WAT_OK;
}

int wat_split(const struct wat_curve *energy, int64_t first, int64_t last, const int64_t *const *start,
              const int64_t *const *end, const int64_t *count, int64_t users, struct wat_split *out)
{
    const int64_t ends[2] = {first, last};
    struct merge merge = {calloc((size_t)users + 2, sizeof *merge.all), calloc((size_t)users + 2, sizeof *merge.heap), 0};
    struct wat_column active = {NULL, 0, 0}; /* how many users are, by knot */
    memset(out, 0, sizeof *out);
    int code = merge.all && merge.heap ? WAT_OK : WAT_MEMORY;
    for (int64_t i = 0; i < users && !code; i++)
        merge.all[i] = (struct changes){start[i], end[i], count[i], 0};
    if (!code) {
        merge.all[users] = (struct changes){energy->times, NULL, energy->knots, 0};
        merge.all[users + 1] = (struct changes){ends, NULL, 2, 0};
        merge_begin(&merge, users + 2);
        code = make_knots(&merge, energy, first, last, out, &active);
    }
    if (!code && energy->edges)
        code = make_bounds(energy, &active, out);
    free(merge.all);
    free(merge.heap);
    column_trim(&out->times, 8), column_trim(&out->values, 8);
    wat_free(active.data, active.bytes);
    return code;
}

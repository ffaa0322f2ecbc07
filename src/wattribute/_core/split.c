/* A device's energy split evenly between the users that are active at a moment: everybody's busy intervals merged in time
 * order. attribution/shares.py (Knots, split) says the same in NumPy, in several arrays as long as the result; here nothing
 * is as long as the result but the result, and that may be on disk. */
#include "columns.h"
#include "cursor.h"
#include "spill.h"

#include <stdlib.h>
#include <string.h>

/* One user's moments of change, or (without ends) moments at which no user's part changes. */
struct changes {
    const int64_t *start, *end;
    int64_t count, next; /* start, end, start, end … */
    int on_disk;         /* and mapped: what was read need not stay in memory */
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
    if (first->on_disk && !(first->next % (2 * PASSED))) {
        pages_passed(first->start + first->next / 2 - PASSED, PASSED * 8);
        pages_passed(first->end + first->next / 2 - PASSED, PASSED * 8);
    }
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

/* A stretch between two knots whose share may still be the extreme of a window to come. Each beats all behind it, so there
 * is one per share at most: a ring of as many as there may be users, and none, has room for all. */
struct stretch {
    int64_t until;
    double share;
};

struct extremes {
    struct stretch *ring;
    int64_t room, first, count;
    int sign; /* 1: the greatest share, −1: the least */
};

static struct stretch *extreme(const struct extremes *extremes, int64_t i)
{
    int64_t at = extremes->first + i;
    return &extremes->ring[at < extremes->room ? at : at - extremes->room];
}

static void extremes_add(struct extremes *extremes, struct stretch stretch)
{
    double share = extremes->sign * stretch.share;
    while (extremes->count && extremes->sign * extreme(extremes, extremes->count - 1)->share <= share)
        extremes->count--;
    *extreme(extremes, extremes->count++) = stretch;
}

/* Of the stretches that last longer than `open`. */
static double extremes_share(struct extremes *extremes, int64_t open)
{
    while (extreme(extremes, 0)->until <= open) {
        extremes->first = extremes->first + 1 < extremes->room ? extremes->first + 1 : 0;
        extremes->count--;
    }
    return extreme(extremes, 0)->share;
}

/* The least and the greatest share in each window, as knots come. Windows open and close in the same order, so that every
 * stretch comes and goes once, however far the latency reaches back. */
struct bounds {
    const struct wat_curve *energy;
    struct extremes least, greatest;
    struct wat_split *out;
    int64_t window; /* the first that has not closed */
};

static int bounds_open(struct bounds *bounds, const struct wat_curve *energy, int64_t users, struct wat_split *out)
{
    size_t bytes = (size_t)(users + 2) * sizeof(struct stretch);
    *bounds =
        (struct bounds){energy, {malloc(bytes), users + 2, 0, 0, -1}, {malloc(bytes), users + 2, 0, 0, 1}, out, 0};
    return !bounds->least.ring || !bounds->greatest.ring || column_resize(&out->least, energy->windows * 8)
                   || column_resize(&out->greatest, energy->windows * 8)
               ? WAT_MEMORY
               : WAT_OK;
}

/* No stretch that begins before `time` is to come. */
static void bounds_pass(struct bounds *bounds, int64_t time)
{
    const struct wat_curve *energy = bounds->energy;
    for (; bounds->window < energy->windows && energy->edges[bounds->window + 1] <= time; bounds->window++) {
        int64_t open = energy->edges[bounds->window] - energy->latency;
        COLUMN(bounds->out->least, double)[bounds->window] = extremes_share(&bounds->least, open);
        COLUMN(bounds->out->greatest, double)[bounds->window] = extremes_share(&bounds->greatest, open);
    }
}

/* The share from a knot to the next one. */
static void bounds_add(struct bounds *bounds, int64_t from, int64_t until, double share)
{
    if (bounds->least.count)
        bounds_pass(bounds, from);
    extremes_add(&bounds->least, (struct stretch){until, share});
    extremes_add(&bounds->greatest, (struct stretch){until, share});
}

static void bounds_close(struct bounds *bounds)
{
    struct wat_split *out = bounds->out;
    if (bounds->least.count)
        bounds_pass(bounds, INT64_MAX);
    out->least.length = out->greatest.length = bounds->window;
    free(bounds->least.ring);
    free(bounds->greatest.ring);
}

/* The knots one after the other: S rises by an active user's share of what E rose since the one before. */
static int make_knots(struct merge *merge, const struct wat_curve *energy, int64_t first, int64_t last,
                      struct bounds *bounds, struct spill *spill, struct wat_split *out)
{
    struct wat_curve values = *energy;
    struct cursor cursor;
    int64_t active = 0, before = 0, knot = 0; /* before: how many were active since the last knot */
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
            if (bounds)
                bounds_add(bounds, knot, time, share_of(before));
        }
        e = now, before = active, knot = time;
        if (8 * (out->times.length + 1) > out->times.bytes)
            code = spill_grow(&spill[0], &out->times);
        if (!code && 8 * (out->values.length + 1) > out->values.bytes)
            code = spill_grow(&spill[1], &out->values);
        if (!code) {
            COLUMN(out->times, int64_t)[out->times.length++] = time;
            COLUMN(out->values, double)[out->values.length++] = s;
        }
    }
    if (bounds && out->times.length)
        bounds_add(bounds, knot, INT64_MAX, 0); /* no share is known after the last one */
    cursor_close(&cursor);
    return code;
}

int wat_split(const struct wat_curve *energy, int64_t first, int64_t last, const int64_t *const *start,
              const int64_t *const *end, const int64_t *count, const uint8_t *on_disk, int64_t users,
              const char *folder, struct wat_split *out)
{
    const int64_t ends[2] = {first, last};
    struct merge merge = {calloc((size_t)users + 2, sizeof *merge.all), calloc((size_t)users + 2, sizeof *merge.heap),
                          0};
    struct spill spill[2] = {{folder, -1}, {folder, -1}};
    struct bounds bounds = {0};
    memset(out, 0, sizeof *out);
    int code = merge.all && merge.heap ? WAT_OK : WAT_MEMORY;
    for (int64_t i = 0; i < users && !code; i++)
        merge.all[i] = (struct changes){start[i], end[i], count[i], 0, on_disk[i]};
    if (!code && energy->edges)
        code = bounds_open(&bounds, energy, users, out);
    if (!code) {
        merge.all[users] = (struct changes){energy->times, NULL, energy->knots, 0, 0};
        merge.all[users + 1] = (struct changes){ends, NULL, 2, 0, 0};
        merge_begin(&merge, users + 2);
        code = make_knots(&merge, energy, first, last, energy->edges ? &bounds : NULL, spill, out);
    }
    if (energy->edges)
        bounds_close(&bounds);
    free(merge.all);
    free(merge.heap);
    out->on_disk = spill_close(&spill[0], &out->times) & spill_close(&spill[1], &out->values);
    column_trim(&out->times, 8), column_trim(&out->values, 8);
    return code;
}

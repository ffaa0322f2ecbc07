/* Level-of-detail bins of one lane in one pass, and sums per frame over a stretch of time.
 *
 * walk() turns the nested spans of a lane into its innermost segments, in ascending time. Three sinks take them: bins()
 * (each closed bin hands its per-frame times to its parent bin, so every level is exact), sums() and blocks(). Energy
 * is S(b) - S(a) of the lane's curve, for the innermost span whose frame is kept. reference_tiles.py says the same in
 * NumPy.
 */
#include <stdint.h>
#include <stdlib.h>

#include "wattribute.h"

typedef struct {
    int64_t rows;
    const int64_t *start, *end;
    const int32_t *frame;
    const int64_t *parent; /* a row of this lane, or -1 */
    const uint8_t *resumed;
    int64_t frames;
    const uint8_t *keep; /* per frame: does it receive energy? */
    int64_t knots;
    const int64_t *time; /* the lane's curve S(t), flat outside */
    const double *value;
} lane_t;

typedef struct {
    double energy;
    float busy;    /* part of the bin inside a span, 0..1 */
    float peak;    /* largest slope of S while a kept span was open, per tick */
    int32_t frame; /* the longest by innermost time; the lowest of equals; -1: none */
    uint32_t calls;
} bin_t;

/* ---- the curve, read forward ---- */

typedef struct {
    const lane_t *lane;
    int64_t at; /* times[at] <= the last moment asked for, or -1 before the first knot */
    int64_t last_t;
    double last_s;
} cursor_t;

static void seek(cursor_t *c, int64_t t)
{
    int64_t low = -1, high = c->lane->knots;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (c->lane->time[middle] <= t)
            low = middle;
        else
            high = middle;
    }
    c->at = low;
    c->last_t = INT64_MIN;
}

static double slope(const lane_t *l, int64_t i)
{
    if (i < 0 || i + 1 >= l->knots)
        return 0.0;
    return (l->value[i + 1] - l->value[i]) / (double)(l->time[i + 1] - l->time[i]);
}

static double level(const lane_t *l, int64_t i, int64_t t)
{
    if (l->knots == 0)
        return 0.0;
    if (i < 0)
        return l->value[0];
    return l->value[i] + slope(l, i) * (double)(t - l->time[i]);
}

/* S(b) - S(a); *peak rises to the largest slope in between */
static double used(cursor_t *c, int64_t a, int64_t b, double *peak)
{
    const lane_t *l = c->lane;
    if (l->knots == 0)
        return 0.0;
    while (c->at + 1 < l->knots && l->time[c->at + 1] <= a)
        c->at++;
    double from = c->last_t == a ? c->last_s : level(l, c->at, a);
    double s = slope(l, c->at);
    if (s > *peak)
        *peak = s;
    while (c->at + 1 < l->knots && l->time[c->at + 1] < b) {
        c->at++;
        s = slope(l, c->at);
        if (s > *peak)
            *peak = s;
    }
    c->last_t = b;
    c->last_s = level(l, c->at, b);
    return c->last_s - from;
}

/* ---- the innermost segments of nested spans ---- */

typedef struct sink {
    void (*segment)(struct sink *, int64_t a, int64_t b, int32_t frame, int32_t kept);
    void (*call)(struct sink *, int64_t t, int32_t frame);
} sink_t;

typedef struct {
    int64_t *row;
    int32_t *kept;
    int64_t depth, room;
} nest_t;

static int grow(nest_t *s)
{
    int64_t room = s->room ? 2 * s->room : 64;
    int64_t *row = realloc(s->row, (size_t)room * sizeof *row);
    if (row)
        s->row = row;
    int32_t *kept = realloc(s->kept, (size_t)room * sizeof *kept);
    if (kept)
        s->kept = kept;
    if (!row || !kept)
        return -1;
    s->room = room;
    return 0;
}

static void emit(const lane_t *l, const nest_t *s, sink_t *sink, int64_t a, int64_t b, int64_t t0, int64_t t1)
{
    if (a < t0)
        a = t0;
    if (b > t1)
        b = t1;
    if (s->depth == 0 || a >= b)
        return;
    sink->segment(sink, a, b, l->frame[s->row[s->depth - 1]], s->kept[s->depth - 1]);
}

static int walk(const lane_t *l, int64_t t0, int64_t t1, sink_t *sink)
{
    nest_t s = {0};
    int64_t now = t0;
    for (int64_t i = 0; i <= l->rows; i++) {
        int64_t parent = i < l->rows ? l->parent[i] : -1;
        while (s.depth && s.row[s.depth - 1] != parent) {
            int64_t end = l->end[s.row[s.depth - 1]];
            emit(l, &s, sink, now, end, t0, t1);
            if (end > now)
                now = end;
            s.depth--;
        }
        if (i == l->rows)
            break;
        int64_t start = l->start[i];
        emit(l, &s, sink, now, start, t0, t1);
        if (start > now)
            now = start;
        if (s.depth == s.room && grow(&s)) {
            free(s.row);
            free(s.kept);
            return -1;
        }
        int32_t frame = l->frame[i];
        s.row[s.depth] = i;
        s.kept[s.depth] = l->keep[frame] ? frame : (s.depth ? s.kept[s.depth - 1] : -1);
        s.depth++;
        if (!l->resumed[i] && start >= t0 && start < t1)
            sink->call(sink, start, frame);
    }
    free(s.row);
    free(s.kept);
    return 0;
}

/* ---- sink 1: bins of 2^depth, and the levels above ---- */

typedef struct {
    int64_t bin; /* open bin of this level, or -1 */
    double energy, peak;
    int64_t busy;
    uint32_t calls;
    int64_t *ticks; /* per frame */
    int32_t *touched;
    int64_t n;
} open_t;

typedef struct {
    sink_t sink;
    cursor_t curve;
    int64_t t0, width, bin_start, bin_end;
    int depth, levels;
    open_t level[64];
    bin_t *out;
} bins_t;

static void shut(bins_t *b, int level)
{
    open_t *o = &b->level[level], *up = level + 1 < b->levels ? &b->level[level + 1] : NULL;
    if (o->bin < 0)
        return;
    int l = b->depth - level; /* level 0 is the finest */
    bin_t *out = b->out + (((int64_t)1 << l) - ((int64_t)1 << (b->depth - b->levels + 1))) + o->bin;
    if (up && up->bin != o->bin / 2) {
        shut(b, level + 1);
        up->bin = o->bin / 2;
    }
    int64_t best = 0;
    int32_t frame = -1;
    for (int64_t i = 0; i < o->n; i++) {
        int32_t f = o->touched[i];
        int64_t t = o->ticks[f];
        if (t > best || (t == best && f < frame)) {
            best = t;
            frame = f;
        }
        if (up) {
            if (up->ticks[f] == 0)
                up->touched[up->n++] = f;
            up->ticks[f] += t;
        }
        o->ticks[f] = 0;
    }
    if (up) {
        up->energy += o->energy;
        up->busy += o->busy;
        up->calls += o->calls;
        if (o->peak > up->peak)
            up->peak = o->peak;
    }
    out->energy = o->energy;
    out->busy = (float)((double)o->busy / ((double)b->width * (double)((int64_t)1 << level)));
    out->peak = (float)o->peak;
    out->frame = frame;
    out->calls = o->calls;
    o->bin = -1;
    o->n = o->busy = 0;
    o->calls = 0;
    o->energy = o->peak = 0.0;
}

static open_t *open_bin(bins_t *b, int64_t t)
{
    open_t *o = &b->level[0];
    if (o->bin >= 0 && t < b->bin_end)
        return o;
    int64_t bin = (t - b->t0) / b->width;
    shut(b, 0);
    o->bin = bin;
    b->bin_start = b->t0 + bin * b->width;
    b->bin_end = b->bin_start + b->width;
    return o;
}

static void bins_segment(sink_t *sink, int64_t a, int64_t b, int32_t frame, int32_t kept)
{
    bins_t *s = (bins_t *)sink;
    while (a < b) {
        open_t *o = open_bin(s, a);
        int64_t e = b < s->bin_end ? b : s->bin_end;
        if (o->ticks[frame] == 0)
            o->touched[o->n++] = frame;
        o->ticks[frame] += e - a;
        o->busy += e - a;
        if (kept >= 0)
            o->energy += used(&s->curve, a, e, &o->peak);
        a = e;
    }
}

static void bins_call(sink_t *sink, int64_t t, int32_t frame)
{
    (void)frame;
    open_bin((bins_t *)sink, t)->calls++;
}

/* `out` has 2^(depth+1) - 2^(depth-levels+1) bins, coarsest level first; returns -1 when memory ran out */
WAT_API int wattribute_bins(const lane_t *lane, int64_t t0, int64_t width, int depth, int levels, bin_t *out)
{
    bins_t b = {.sink = {bins_segment, bins_call},
                .curve = {.lane = lane},
                .t0 = t0,
                .width = width,
                .depth = depth,
                .levels = levels,
                .out = out};
    int status = 0;
    int64_t t1 = t0 + (width << depth);
    int64_t all = ((int64_t)2 << depth) - ((int64_t)1 << (depth - levels + 1));
    for (int64_t i = 0; i < all; i++)
        out[i] = (bin_t){.frame = -1};
    for (int i = 0; i < levels; i++) {
        b.level[i].bin = -1;
        b.level[i].ticks = calloc((size_t)lane->frames + 1, sizeof(int64_t));
        b.level[i].touched = calloc((size_t)lane->frames + 1, sizeof(int32_t));
        if (!b.level[i].ticks || !b.level[i].touched)
            status = -1;
    }
    seek(&b.curve, t0);
    if (!status)
        status = walk(lane, t0, t1, &b.sink);
    if (!status)
        for (int i = 0; i < levels; i++)
            shut(&b, i);
    for (int i = 0; i < levels; i++) {
        free(b.level[i].ticks);
        free(b.level[i].touched);
    }
    return status;
}

/* ---- sink 2: sums per frame ---- */

typedef struct {
    sink_t sink;
    cursor_t curve;
    int64_t *ticks, *calls;
    double *energy, peak;
} sums_t;

static void sums_segment(sink_t *sink, int64_t a, int64_t b, int32_t frame, int32_t kept)
{
    sums_t *s = (sums_t *)sink;
    s->ticks[frame] += b - a;
    if (kept >= 0)
        s->energy[kept] += used(&s->curve, a, b, &s->peak);
}

static void sums_call(sink_t *sink, int64_t t, int32_t frame)
{
    (void)t;
    ((sums_t *)sink)->calls[frame]++;
}

/* adds to ticks, calls and energy, which have a value per frame */
WAT_API int wattribute_sums(const lane_t *lane, int64_t t0, int64_t t1, int64_t *ticks, int64_t *calls, double *energy)
{
    sums_t s = {
        .sink = {sums_segment, sums_call}, .curve = {.lane = lane}, .ticks = ticks, .calls = calls, .energy = energy};
    seek(&s.curve, t0);
    return walk(lane, t0, t1, &s.sink);
}

/* ---- sink 3: sums per block of time and frame ---- */

typedef struct {
    sink_t sink;
    cursor_t curve;
    int64_t t0, width, frames, block, block_end;
    int64_t first, last; /* the time that the curve covers */
    int64_t *covered;
    double *energy, peak;
} blocks_t;

static void blocks_segment(sink_t *sink, int64_t a, int64_t b, int32_t frame, int32_t kept)
{
    blocks_t *s = (blocks_t *)sink;
    (void)frame;
    while (kept >= 0 && a < b) {
        if (a >= s->block_end) {
            s->block = (a - s->t0) / s->width;
            s->block_end = s->t0 + (s->block + 1) * s->width;
        }
        int64_t e = b < s->block_end ? b : s->block_end, at = s->block * s->frames + kept;
        int64_t from = a > s->first ? a : s->first, to = e < s->last ? e : s->last;
        s->energy[at] += used(&s->curve, a, e, &s->peak);
        if (to > from)
            s->covered[at] += to - from;
        a = e;
    }
}

static void blocks_call(sink_t *sink, int64_t t, int32_t frame)
{
    (void)sink, (void)t, (void)frame;
}

/* adds to covered and energy, which have a value per frame, block behind block, of so many blocks from t0 on */
WAT_API int wattribute_blocks(const lane_t *lane, int64_t t0, int64_t width, int64_t blocks, int64_t *covered,
                              double *energy)
{
    blocks_t s = {.sink = {blocks_segment, blocks_call},
                  .curve = {.lane = lane},
                  .t0 = t0,
                  .width = width,
                  .frames = lane->frames,
                  .block_end = t0 + width,
                  .first = lane->knots ? lane->time[0] : 0,
                  .last = lane->knots ? lane->time[lane->knots - 1] : 0,
                  .covered = covered,
                  .energy = energy};
    seek(&s.curve, t0);
    return walk(lane, t0, t0 + blocks * width, &s.sink);
}

/* Events → span columns and metric columns. */
#include "columns.h"
#include "many.h"
#include "metrics.h"
#include "nesting.h"
#include "records.h"

enum { MOST_AHEAD = 1 << 19 }; /* rows */

struct sink {
    struct nesting nesting;
    int metrics_wanted;
    int64_t reserved;    /* rows there is memory for in all */
    int64_t before;      /* rows of other locations */
    int64_t spans, room; /* this one's: rows used, rows there is memory for */
    int64_t *start, *end, *parent;
    int32_t *frame, *depth;
    uint8_t *resumed;
    struct wat_column open; /* rows of the open spans, innermost last */
    struct wat_spans *out;
    struct wat_metrics *metrics;
};

static int reserve(struct sink *sink, int64_t rows)
{
    struct wat_spans *out = sink->out;
    if (column_resize(&out->start, rows * 8) || column_resize(&out->end, rows * 8)
        || column_resize(&out->frame, rows * 4) || column_resize(&out->parent, rows * 8)
        || column_resize(&out->depth, rows * 4) || column_resize_zero(&out->resumed, rows))
        return WAT_MEMORY;
    sink->reserved = rows;
    return WAT_OK;
}

/* Memory for so many rows of this location. */
static int make_room(struct sink *sink, int64_t rows)
{
    struct wat_spans *out = sink->out;
    int64_t before = sink->before, least = before + rows;
    if (least > sink->reserved) {
        int64_t more = sink->reserved ? column_more(8 * sink->reserved + 512) / 8 : 0;
        if (reserve(sink, least > more ? least : more))
            return WAT_MEMORY;
    }
    sink->start = COLUMN(out->start, int64_t) + before, sink->end = COLUMN(out->end, int64_t) + before;
    sink->frame = COLUMN(out->frame, int32_t) + before, sink->parent = COLUMN(out->parent, int64_t) + before;
    sink->depth = COLUMN(out->depth, int32_t) + before, sink->resumed = COLUMN(out->resumed, uint8_t) + before;
    sink->room = sink->reserved - before;
    return WAT_OK;
}

/* A new row, without its end; −1: no memory. */
static inline int64_t add_row(struct sink *sink, int32_t frame, int64_t time)
{
    int64_t row = sink->spans, depth = sink->open.length;
    if (__builtin_expect(row == sink->room, 0) && make_room(sink, row + 1))
        return -1;
    sink->start[row] = time;
    sink->frame[row] = frame;
    sink->parent[row] = depth ? COLUMN(sink->open, int64_t)[depth - 1] : -1;
    sink->depth[row] = (int32_t)depth;
    return sink->spans++;
}

static inline int open_span(struct sink *sink, int32_t frame, int resumed, int64_t time)
{
    int64_t row = add_row(sink, frame, time);
    if (row < 0)
        return WAT_MEMORY;
    if (resumed) /* else it is zero already */
        sink->resumed[row] = 1;
    return COLUMN_ADD(sink->open, int64_t, row);
}

static inline int leaf_span(struct sink *sink, int32_t frame, int64_t start, int64_t end)
{
    int64_t row = add_row(sink, frame, start);
    if (row < 0)
        return WAT_MEMORY;
    sink->end[row] = end;
    return WAT_OK;
}

static inline int close_span(struct sink *sink, int64_t time)
{
    sink->end[COLUMN(sink->open, int64_t)[--sink->open.length]] = time;
    return WAT_OK;
}

static int on_metric(struct sink *sink, const struct event *event)
{
    const struct nesting *n = &sink->nesting;
    return sink->metrics_wanted ? metrics_select(sink->metrics, event, n->location, &n->local->maps[METRIC_MAP])
                                : WAT_OK;
}

#include "nest.h"
#include "walk.h"

static void finish(struct sink *sink)
{
    struct wat_spans *out = sink->out;
    int64_t rows = sink->before + sink->spans;
    out->start.length = out->end.length = out->frame.length = out->parent.length = rows;
    out->depth.length = out->resumed.length = rows;
    column_trim(&out->start, 8), column_trim(&out->end, 8), column_trim(&out->frame, 4);
    column_trim(&out->parent, 8), column_trim(&out->depth, 4), column_trim(&out->resumed, 1);
    wat_free(sink->open.data, sink->open.bytes);
}

/* A guess at the number of spans, no more than the file can hold; an Enter and a Leave take four bytes at least. */
static int64_t expected_spans(const struct walk *walk, uint64_t declared)
{
    uint64_t most = walk->chunks.file_bytes / 4;
    return (int64_t)(declared / 2 < most ? declared / 2 : most) + 16;
}

/* One location's spans behind those that are there. */
static int append(struct sink *sink, const struct wat_location *location, struct wat_report *report)
{
    struct walk walk;
    sink->before += sink->spans, sink->spans = 0, sink->open.length = 0;
    if (walk_open(&walk, location, location->offset_ticks, report))
        return report->code;
    int code = nesting_open(&sink->nesting, location, &walk.local, report);
    if (!code)
        code = make_room(sink, expected_spans(&walk, location->declared));
    if (code)
        report->code = code;
    else
        walk_all(&walk, sink, report);
    if (report->code != WAT_MEMORY)
        nesting_finish(sink, &sink->nesting);
    nesting_close(&sink->nesting);
    walk_close(&walk);
    return report->code;
}

int wat_read_spans(const struct wat_location *location, int metrics, struct wat_spans *out,
                   struct wat_metrics *out_metrics, struct wat_report *report)
{
    struct sink sink = {.out = out, .metrics = out_metrics, .metrics_wanted = metrics};
    memset(out, 0, sizeof *out);
    memset(out_metrics, 0, sizeof *out_metrics);
    append(&sink, location, report);
    finish(&sink);
    metrics_trim(out_metrics);
    return report->code;
}

/* The rows that so many small locations will need, so that columns need not grow: a single one tells better itself, and
 * what is declared is not trusted far. */
static int64_t rows_ahead(const struct wat_many *many)
{
    uint64_t rows = 0;
    for (int64_t i = 0; i < many->count && rows < MOST_AHEAD; i++)
        rows += many->declared[i] / 2 < MOST_AHEAD ? many->declared[i] / 2 + 16 : MOST_AHEAD;
    return many->count < 2 ? 0 : rows < MOST_AHEAD ? (int64_t)rows : MOST_AHEAD;
}

int wat_read_many_spans(const struct wat_many *many, struct wat_spans *out, int64_t *ends, struct wat_report *reports)
{
    struct in_turn turn;
    struct sink sink = {.out = out};
    memset(out, 0, sizeof *out);
    if (turn_open(&turn, many))
        return WAT_MEMORY;
    int64_t rows = rows_ahead(many);
    int code = rows ? reserve(&sink, rows) : WAT_OK;
    for (int64_t i = 0; i < many->count && code != WAT_MEMORY; i++) {
        code = append(&sink, turn_at(&turn, i), &reports[i]);
        ends[i] = sink.before + sink.spans;
    }
    turn_close(&turn);
    finish(&sink);
    return code == WAT_MEMORY ? WAT_MEMORY : WAT_OK;
}

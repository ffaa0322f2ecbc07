/* Events → when the location was inside a span. */
#include "columns.h"
#include "nesting.h"
#include "records.h"

struct sink {
    struct nesting nesting;
    struct wat_column *start, *end;
    int64_t depth, since;
};

static inline int open_span(struct sink *sink, int32_t frame, int resumed, int64_t time)
{
    (void)frame, (void)resumed;
    if (!sink->depth++)
        sink->since = time;
    /* room for the interval it may become, so that closing cannot fail */
    return sink->start->bytes < 8 * (sink->start->length + 1)
                   && (column_grow(sink->start, 8) || column_grow(sink->end, 8))
               ? WAT_MEMORY
               : WAT_OK;
}

static inline int close_span(struct sink *sink, int64_t time)
{
    int64_t n = sink->start->length, *end = sink->end->data;
    if (--sink->depth || time <= sink->since)
        return WAT_OK;
    if (n && sink->since <= end[n - 1]) {
        end[n - 1] = time;
        return WAT_OK;
    }
    COLUMN(*sink->start, int64_t)[n] = sink->since;
    end[n] = time;
    sink->start->length = sink->end->length = n + 1;
    return WAT_OK;
}

static inline int leaf_span(struct sink *sink, int32_t frame, int64_t start, int64_t end)
{
    if (sink->depth)
        return WAT_OK;
    int code = open_span(sink, frame, 0, start);
    if (!code)
        close_span(sink, end);
    return code;
}

static int on_metric(struct sink *sink, const struct event *event)
{
    (void)sink, (void)event;
    return WAT_OK;
}

#include "nest_walk.h"

int wat_read_busy(const struct wat_location *location, struct wat_column *start, struct wat_column *end,
                  struct wat_report *report)
{
    struct sink sink = {.start = start, .end = end};
    memset(start, 0, sizeof *start);
    memset(end, 0, sizeof *end);
    nest_walk(location, &sink, report);
    column_trim(start, 8), column_trim(end, 8);
    return report->code;
}

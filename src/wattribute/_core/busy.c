/* Events → when the location was inside a span. */
#include "columns.h"
#include "nesting.h"
#include "records.h"
#include "spill.h"

struct sink {
    struct nesting nesting;
    struct wat_column *start, *end;
    struct spill spill[2];
    int64_t depth, since;
    int code; /* why there is no room */
};

static __attribute__((noinline)) int more_room(struct sink *sink)
{
    sink->code = spill_grow(&sink->spill[0], sink->start);
    if (!sink->code)
        sink->code = spill_grow(&sink->spill[1], sink->end);
    return sink->code ? WAT_MEMORY : WAT_OK; /* at once: what is open cannot be closed */
}

static inline int open_span(struct sink *sink, int32_t frame, int resumed, int64_t time)
{
    (void)frame, (void)resumed;
    if (!sink->depth++)
        sink->since = time;
    /* room for the interval it may become, so that closing cannot fail */
    return __builtin_expect(sink->start->bytes < 8 * (sink->start->length + 1), 0) ? more_room(sink) : WAT_OK;
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

int wat_read_busy(const struct wat_location *location, const char *folder, struct wat_column *start,
                  struct wat_column *end, int32_t *on_disk, struct wat_report *report)
{
    struct sink sink = {.start = start, .end = end, .spill = {{folder, -1}, {folder, -1}}};
    memset(start, 0, sizeof *start);
    memset(end, 0, sizeof *end);
    nest_walk(location, &sink, report);
    *on_disk = spill_close(&sink.spill[0], start) & spill_close(&sink.spill[1], end);
    column_trim(start, 8), column_trim(end, 8);
    return report->code = sink.code ? sink.code : report->code;
}

/* Events → a row per span against curves, handed over piece by piece. */
#include "nesting.h"
#include "records.h"
#include "stream.h"

struct sink {
    struct nesting nesting;
    struct wat_stream *stream;
    int64_t most;
    wat_full full;
    int stopped;
};

static inline int open_span(struct sink *sink, int32_t frame, int resumed, int64_t time)
{
    if (__builtin_expect(sink->stream->rows >= sink->most, 0) && !sink->stopped && sink->full())
        sink->stopped = 1;
    if (sink->stopped)
        return WAT_IO; /* the consumer has stopped */
    return stream_enter(sink->stream, 0, frame, resumed, time, time);
}

static inline int close_span(struct sink *sink, int64_t time)
{
    if (sink->stream->levels.length)
        stream_leave(sink->stream, time);
    return WAT_OK;
}

static inline int leaf_span(struct sink *sink, int32_t frame, int64_t start, int64_t end)
{
    int code = open_span(sink, frame, 0, start);
    return code ? code : close_span(sink, end);
}

static int on_metric(struct sink *sink, const struct event *event)
{
    (void)sink, (void)event;
    return WAT_OK;
}

#include "nest_walk.h"

int wat_read_rows(const struct wat_location *location, struct wat_stream *stream, int64_t most, wat_full full,
                  struct wat_report *report)
{
    struct sink sink = {.stream = stream, .most = most, .full = full};
    nest_walk(location, &sink, report);
    return report->code;
}

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
        return WAT_IO; /* nobody takes them any more */
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

#include "nest.h"
#include "walk.h"

int wat_read_rows(const struct wat_location *location, struct wat_stream *stream, int64_t most, wat_full full,
                  struct wat_report *report)
{
    struct walk walk;
    struct sink sink = {.stream = stream, .most = most, .full = full};
    if (walk_open(&walk, location, location->offset_ticks, report))
        return report->code;
    report->code = nesting_open(&sink.nesting, location, &walk.local, report);
    if (!report->code)
        walk_all(&walk, &sink, report);
    if (report->code != WAT_MEMORY)
        nesting_finish(&sink, &sink.nesting);
    nesting_close(&sink.nesting);
    walk_close(&walk);
    return report->code;
}

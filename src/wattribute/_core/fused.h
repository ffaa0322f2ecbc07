/* Events → energy in one pass: the decoder and nesting feed the roll-up, and no span is ever kept. A template: the file
 * that includes it defines FUSED, the name of the function it makes, and
 *
 *     open_rows(rollup, frame, resumed, time), close_rows(rollup, time), leaf_rows(rollup, frame, start, end)
 *
 * which do what rollup_open, rollup_close and rollup_leaf do.
 */
#include "nesting.h"
#include "records.h"
#include "rollup.h"

struct sink {
    struct nesting nesting;
    struct rollup *rollup;
};

static inline __attribute__((always_inline)) int open_span(struct sink *sink, int32_t frame, int resumed, int64_t time)
{
    return open_rows(sink->rollup, frame, resumed, time);
}

static inline __attribute__((always_inline)) int close_span(struct sink *sink, int64_t time)
{
    const struct fold *fold = sink->rollup->fold;
    close_rows(sink->rollup, time);
    return __builtin_expect(fold->depth, 1) ? WAT_OK : rollup_busy(sink->rollup, fold->open->start, time);
}

static inline __attribute__((always_inline)) int leaf_span(struct sink *sink, int32_t frame, int64_t start, int64_t end)
{
    int code = sink->rollup->fold->depth ? WAT_OK : rollup_busy(sink->rollup, start, end);
    return code ? code : leaf_rows(sink->rollup, frame, start, end);
}

static int on_metric(struct sink *sink, const struct event *event)
{
    (void)sink, (void)event;
    return WAT_OK;
}

#include "nest_walk.h"

void FUSED(const struct wat_location *location, struct rollup *rollup, struct wat_report *report)
{
    struct sink sink = {.rollup = rollup};
    nest_walk(location, &sink, report);
}

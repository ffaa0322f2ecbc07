/* Events → energy in one pass: the decoder and nesting feed the roll-up, and no span is ever kept. A template: the file
 * that includes it defines FUSED, the name of the function it makes, and
 *
 *     open_rows(sink, frame, resumed, time), close_rows(sink, time), leaf_rows(sink, frame, start, end)
 *
 * which do what rollup_open, rollup_close and rollup_leaf do with sink->rollup, or with sink->fold, its first fold.
 */
#include "nesting.h"
#include "records.h"
#include "rollup.h"

struct sink {
    struct nesting nesting;
    struct fold fold; /* out of the roll-up while this works: the compiler knows where it is */
    const int32_t *row;
    struct rollup *rollup;
};

static inline __attribute__((always_inline)) int open_span(struct sink *sink, int32_t frame, int resumed, int64_t time)
{
    return open_rows(sink, frame, resumed, time);
}

static inline __attribute__((always_inline)) int close_span(struct sink *sink, int64_t time)
{
    close_rows(sink, time);
    const struct fold *fold = FIRST(sink);
    return __builtin_expect(fold->top != fold->open, 1) ? WAT_OK : rollup_busy(sink->rollup, fold->top[1].start, time);
}

static inline __attribute__((always_inline)) int leaf_span(struct sink *sink, int32_t frame, int64_t start, int64_t end)
{
    const struct fold *fold = FIRST(sink);
    int code = fold->top != fold->open ? WAT_OK : rollup_busy(sink->rollup, start, end);
    return code ? code : leaf_rows(sink, frame, start, end);
}

static int on_metric(struct sink *sink, const struct event *event)
{
    (void)sink, (void)event;
    return WAT_OK;
}

#include "nest_walk.h"

void FUSED(const struct wat_location *location, struct rollup *rollup, struct wat_report *report)
{
    struct sink sink = {.fold = *rollup->fold, .row = rollup->keys->row, .rollup = rollup};
    nest_walk(location, &sink, report);
    if (FIRST(&sink) == &sink.fold)
        *rollup->fold = sink.fold;
}

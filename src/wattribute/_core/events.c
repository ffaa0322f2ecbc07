/* Every event record as columns: for those who compare decoders. */
#include "columns.h"
#include "local.h"
#include "metrics.h"
#include "records.h"

struct sink {
    const struct local *local;
    struct wat_events *out;
    struct wat_metrics *metrics;
};

static int add(struct sink *sink, int64_t time, unsigned kind, uint64_t ref)
{
    return COLUMN_ADD(sink->out->time, int64_t, time) || COLUMN_ADD(sink->out->kind, uint8_t, (uint8_t)kind)
                   || COLUMN_ADD(sink->out->ref, uint64_t, ref)
               ? WAT_MEMORY
               : WAT_OK;
}

static inline int on_enter(struct sink *sink, uint32_t local_id, int64_t time)
{
    return add(sink, time, ENTER, map_id(&sink->local->maps[REGION_MAP], local_id));
}

static inline int on_leave(struct sink *sink, uint32_t local_id, int64_t time)
{
    return add(sink, time, LEAVE, map_id(&sink->local->maps[REGION_MAP], local_id));
}

static inline int on_leaf(struct sink *sink, uint32_t local_id, int64_t start, int64_t end)
{
    int code = on_enter(sink, local_id, start);
    return code ? code : on_leave(sink, local_id, end);
}

static int on_event(struct sink *sink, const struct event *event)
{
    int metric = event->kind == METRIC;
    if (!metric && (event->kind < CALLING_CONTEXT_ENTER || event->kind > CALLING_CONTEXT_SAMPLE))
        return add(sink, event->time, event->kind, 0);
    uint64_t id;
    if (!compressed(event->at, event->end, &id))
        return WAT_CORRUPT;
    uint32_t ref = map_id(&sink->local->maps[metric ? METRIC_MAP : CONTEXT_MAP], (uint32_t)id);
    int code = metric ? metrics_add(sink->metrics, event, ref) : WAT_OK;
    return code ? code : add(sink, event->time, event->kind, ref);
}

#include "walk.h"

int wat_read_events(const struct wat_location *location, struct wat_events *out, struct wat_metrics *metrics,
                    struct wat_report *report)
{
    struct walk walk;
    struct sink sink = {&walk.local, out, metrics};
    memset(out, 0, sizeof *out);
    memset(metrics, 0, sizeof *metrics);
    if (walk_open(&walk, location, 0, report))
        return report->code;
    walk_all(&walk, &sink, report);
    walk_close(&walk);
    column_trim(&out->time, 8), column_trim(&out->kind, 1), column_trim(&out->ref, 8);
    metrics_trim(metrics);
    return report->code;
}

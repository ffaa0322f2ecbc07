/* Events → metric columns alone: where no spans are wanted. */
#include "metrics.h"
#include "local.h"
#include "many.h"
#include "records.h"

struct sink {
    const struct wat_location *location;
    const struct local *local;
    struct wat_metrics *out;
    struct wat_report *report;
    int wanted;
};

static inline int on_enter(struct sink *sink, uint32_t local_id, int64_t time)
{
    (void)sink, (void)local_id, (void)time;
    return WAT_OK;
}

static inline int on_leave(struct sink *sink, uint32_t local_id, int64_t time)
{
    (void)sink, (void)local_id, (void)time;
    return WAT_OK;
}

static inline int on_leaf(struct sink *sink, uint32_t local_id, int64_t start, int64_t end)
{
    (void)sink, (void)local_id, (void)start, (void)end;
    return WAT_OK;
}

static int on_event(struct sink *sink, const struct event *event)
{
    note_program(sink->report, event);
    return event->kind == METRIC && sink->wanted
               ? metrics_select(sink->out, event, sink->location, &sink->local->maps[METRIC_MAP])
               : WAT_OK;
}

#include "walk.h"

/* One location's metrics behind those that are there. */
static int append(const struct wat_location *location, int wanted, struct wat_metrics *out, struct wat_report *report)
{
    struct walk walk;
    struct sink sink = {location, &walk.local, out, report, wanted};
    if (walk_open(&walk, location, location->offset_ticks, report))
        return report->code;
    walk_all(&walk, &sink, report);
    walk_close(&walk);
    return report->code;
}

int wat_read_metrics(const struct wat_location *location, int wanted, struct wat_metrics *out,
                     struct wat_report *report)
{
    memset(out, 0, sizeof *out);
    append(location, wanted, out, report);
    metrics_trim(out);
    return report->code;
}

int wat_read_many_metrics(const struct wat_many *many, struct wat_metrics *out, int64_t (*ends)[2],
                          struct wat_report *reports)
{
    struct in_turn turn;
    memset(out, 0, sizeof *out);
    if (turn_open(&turn, many))
        return WAT_MEMORY;
    int code = WAT_OK;
    for (int64_t i = 0; i < many->count && code != WAT_MEMORY; i++) {
        code = append(turn_at(&turn, i), 1, out, &reports[i]);
        ends[i][0] = out->time.length, ends[i][1] = out->type.length;
    }
    turn_close(&turn);
    metrics_trim(out);
    return code == WAT_MEMORY ? WAT_MEMORY : WAT_OK;
}

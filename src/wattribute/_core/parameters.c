/* Unsigned parameters of a location as columns: when they were recorded, and their values. Score-P writes the callsite
 * of a kernel as one, on the thread that launches it and on the stream that runs it. */
#include "columns.h"
#include "local.h"
#include "records.h"

struct sink {
    struct wat_column *time, *value;
};

static inline int on_enter(struct sink *sink, uint32_t local_id, int64_t time)
{
    (void)sink, (void)local_id, (void)time;
    return WAT_OK;
}

static inline int on_leave(struct sink *sink, uint32_t local_id, int64_t time)
{
    return on_enter(sink, local_id, time);
}

static inline int on_leaf(struct sink *sink, uint32_t local_id, int64_t start, int64_t end)
{
    (void)end;
    return on_enter(sink, local_id, start);
}

static int on_event(struct sink *sink, const struct event *event)
{
    uint64_t values[2]; /* parameter, value */
    if (event->kind != PARAMETER_UNSIGNED_INT)
        return WAT_OK;
    if (fields(event, 2, 0, values))
        return WAT_CORRUPT;
    return COLUMN_ADD(*sink->time, int64_t, event->time) || COLUMN_ADD(*sink->value, uint64_t, values[1]) ? WAT_MEMORY
                                                                                                          : WAT_OK;
}

#include "walk.h"

int wat_read_parameters(const struct wat_location *location, struct wat_column *time, struct wat_column *value,
                        struct wat_report *report)
{
    struct walk walk;
    struct sink sink = {time, value};
    memset(time, 0, sizeof *time);
    memset(value, 0, sizeof *value);
    if (walk_open(&walk, location, location->offset_ticks, report))
        return report->code;
    walk_all(&walk, &sink, report);
    walk_close(&walk);
    column_trim(time, 8), column_trim(value, 8);
    return report->code;
}

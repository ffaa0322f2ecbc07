/* Metric events as columns: one row per event in time, id and n; one per member in type and bits. */
#ifndef WAT_METRICS_H
#define WAT_METRICS_H

#include "columns.h"
#include "local.h"
#include "records.h"

static inline int metrics_add(struct wat_metrics *out, const struct event *event, uint32_t id)
{
    uint64_t value;
    const uint8_t *at = compressed(event->at, event->end, &value), *end = event->end;
    int64_t before = out->type.length;
    if (!at || at >= end)
        return WAT_CORRUPT;
    unsigned members = *at++;
    for (unsigned i = 0; i < members && at; i++) {
        uint8_t type = at < end ? *at : 0;
        at = compressed(at + 1, end, &value);
        if (at && (COLUMN_ADD(out->type, uint8_t, type) || COLUMN_ADD(out->bits, uint64_t, value)))
            return WAT_MEMORY;
    }
    if (!at) { /* a damaged event is not delivered, nor any part of it */
        out->type.length = out->bits.length = before;
        return WAT_CORRUPT;
    }
    return COLUMN_ADD(out->time, int64_t, event->time) || COLUMN_ADD(out->id, uint32_t, id)
                   || COLUMN_ADD(out->n, uint8_t, (uint8_t)members)
               ? WAT_MEMORY
               : WAT_OK;
}

/* The event as columns if its metric is wanted. */
static inline int metrics_select(struct wat_metrics *out, const struct event *event,
                                 const struct wat_location *location, const struct id_map *map)
{
    uint64_t local_id;
    if (!compressed(event->at, event->end, &local_id))
        return WAT_CORRUPT;
    uint32_t id = map_id(map, (uint32_t)local_id);
    if (location->metric && (id >= location->metrics || !location->metric[id]))
        return WAT_OK;
    return metrics_add(out, event, id);
}

static inline void metrics_trim(struct wat_metrics *out)
{
    column_trim(&out->time, 8), column_trim(&out->id, 4), column_trim(&out->n, 1);
    column_trim(&out->type, 1), column_trim(&out->bits, 8);
}

#endif

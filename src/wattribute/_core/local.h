/* A location's local definitions: id maps and the clock. */
#ifndef WAT_LOCAL_H
#define WAT_LOCAL_H

#include "wattribute.h"

#include <math.h>

enum { REGION_MAP = 3, METRIC_MAP = 5, CONTEXT_MAP = 10, MAPS = 11 };

/* Local → global ids. Dense: value[id]. Sparse: pairs, ascending by key. Ids without an entry are global already. */
struct id_map {
    uint32_t *key; /* NULL: dense */
    uint32_t *value;
    uint64_t count;
};

/* Between two clock offsets: time = raw + offset + slope · (raw − begin). */
struct clock_piece {
    uint64_t begin, reach; /* reach: the latest end of this piece and those before it */
    int64_t offset;
    double slope;
};

struct clock {
    struct clock_piece *pieces;
    uint64_t count;
    uint64_t shift; /* subtracted from every time */
    /* the piece in use, for raw times from … from + width */
    uint64_t from, width, begin, constant;
    double slope;
};

struct local {
    struct id_map maps[MAPS];
    struct clock clock;
};

/* Read a .def file ("" or absent: no maps, no offsets); on failure *byte says where and nothing is left allocated. */
int local_open(struct local *local, const char *path, uint64_t chunk, uint64_t shift, uint64_t *byte);
void local_close(struct local *local);

uint32_t map_id(const struct id_map *map, uint32_t id);

/* Find the piece of a raw time. */
void clock_seek(struct clock *clock, uint64_t raw);

/* Corrected time of a raw one. llrint is unspecified, not undefined, where a hostile slope leaves 64 bits. */
static inline int64_t clock_time(struct clock *clock, uint64_t raw)
{
    if (__builtin_expect(raw - clock->from > clock->width, 0))
        clock_seek(clock, raw);
    double drift = clock->slope * (double)(int64_t)(raw - clock->begin);
    return (int64_t)(raw + clock->constant + (uint64_t)llrint(drift));
}

#endif

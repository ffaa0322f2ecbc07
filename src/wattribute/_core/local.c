#define _GNU_SOURCE
#include "local.h"

#include "input.h"

#include <stdlib.h>
#include <unistd.h>

struct offset {
    uint64_t time;
    int64_t offset;
};

struct offsets {
    struct offset *all;
    uint64_t count, room;
};

/* The first piece that reaches raw, or the last one. */
void clock_seek(struct clock *clock, uint64_t raw)
{
    if (!clock->count) { /* no correction at any time */
        clock->from = 0, clock->width = UINT64_MAX, clock->begin = 0, clock->slope = 0;
        clock->constant = 0 - clock->shift;
        return;
    }
    uint64_t low = 0, high = clock->count - 1;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (raw <= clock->pieces[middle].reach)
            high = middle;
        else
            low = middle + 1;
    }
    const struct clock_piece *piece = &clock->pieces[low];
    clock->from = low ? piece[-1].reach + 1 : 0;
    clock->width = (low + 1 == clock->count ? UINT64_MAX : piece->reach) - clock->from;
    clock->begin = piece->begin;
    clock->slope = piece->slope;
    clock->constant = (uint64_t)piece->offset - clock->shift;
}

static int clock_make(struct clock *clock, const struct offsets *offsets)
{
    if (offsets->count < 2) /* one offset corrects nothing */
        return WAT_OK;
    clock->pieces = malloc((offsets->count - 1) * sizeof *clock->pieces);
    if (!clock->pieces)
        return WAT_MEMORY;
    clock->count = offsets->count - 1;
    uint64_t reach = 0;
    for (uint64_t i = 0; i < clock->count; i++) {
        const struct offset *a = &offsets->all[i], *b = a + 1;
        if (b->time > reach)
            reach = b->time;
        int64_t change = (int64_t)((uint64_t)b->offset - (uint64_t)a->offset);
        double slope = b->time > a->time ? (double)change / (double)(b->time - a->time) : 0;
        clock->pieces[i] = (struct clock_piece){a->time, reach, a->offset, slope};
    }
    return WAT_OK;
}

static int read_offset(struct offsets *offsets, const uint8_t *at, const uint8_t *end)
{
    uint64_t offset;
    if (end - at < 8 || !compressed(at + 8, end, &offset))
        return WAT_CORRUPT;
    if (offsets->count == offsets->room) {
        uint64_t room = 2 * offsets->room + 4;
        struct offset *more = realloc(offsets->all, room * sizeof *more);
        if (!more)
            return WAT_MEMORY;
        offsets->all = more, offsets->room = room;
    }
    offsets->all[offsets->count++] = (struct offset){load64(at), (int64_t)offset};
    return WAT_OK;
}

struct pair {
    uint32_t key, value;
    uint64_t order;
};

static int by_key(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Sort a sparse map's pairs; of equal keys the last one counts. */
static int sparse_map(struct id_map *map, struct pair *pairs, uint64_t count)
{
    qsort(pairs, count, sizeof *pairs, by_key);
    map->key = malloc((count + 1) * sizeof *map->key);
    if (!map->key)
        return WAT_MEMORY;
    for (uint64_t i = 0; i < count; i++) {
        if (map->count && map->key[map->count - 1] == pairs[i].key)
            map->count--;
        map->key[map->count] = pairs[i].key;
        map->value[map->count++] = pairs[i].value;
    }
    return WAT_OK;
}

static int read_map(struct local *local, const uint8_t *at, const uint8_t *end)
{
    uint64_t count, key = 0, value;
    if (at >= end)
        return WAT_CORRUPT;
    unsigned which = *at;
    at = compressed(at + 1, end, &count);
    if (!at || at >= end || count > (uint64_t)(end - at)) /* an id takes a byte at least */
        return WAT_CORRUPT;
    int sparse = *at++ != 0;
    struct id_map map = {NULL, malloc((count + 1) * sizeof *map.value), 0};
    struct pair *pairs = sparse ? malloc((count + 1) * sizeof *pairs) : NULL;
    uint64_t kept = 0;
    int code = map.value && (pairs || !sparse) ? WAT_OK : WAT_MEMORY;
    for (uint64_t i = 0; i < count && !code; i++) {
        if (sparse)
            at = compressed(at, end, &key);
        at = compressed(at, end, &value);
        if (!at)
            code = WAT_CORRUPT;
        else if (!sparse)
            map.value[map.count++] = (uint32_t)value;
        else if (key <= UINT32_MAX) /* a longer key is no id */
            pairs[kept] = (struct pair){(uint32_t)key, (uint32_t)value, kept}, kept++;
    }
    if (!code && sparse)
        code = sparse_map(&map, pairs, kept);
    free(pairs);
    if (code || which >= MAPS) {
        free(map.key);
        free(map.value);
        return code;
    }
    free(local->maps[which].key);
    free(local->maps[which].value);
    local->maps[which] = map;
    return WAT_OK;
}

/* One definition: type, length (a byte, or 0xFF and eight), payload. */
static int read_definition(struct local *local, struct offsets *offsets, const struct chunks *chunks,
                           const uint8_t **at)
{
    const uint8_t *p = *at, *end = chunks->buffer + chunks->size, *payload = p + 2;
    if (end - p < 2)
        return past_end(chunks);
    uint64_t length = p[1];
    if (length == 0xFF) {
        if (end - p < 10)
            return past_end(chunks);
        length = load64(p + 2);
        payload = p + 10;
    }
    if (length > (uint64_t)(end - payload))
        return past_end(chunks);
    *at = payload + length;
    int code = *p == 5 ? read_map(local, payload, *at) : *p == 6 ? read_offset(offsets, payload, *at) : WAT_OK;
    if (code)
        *at = p;
    return code;
}

static int read_definitions(struct local *local, struct offsets *offsets, struct chunks *chunks, uint64_t *byte)
{
    for (;;) {
        int code = chunks_next(chunks, byte);
        if (code)
            return code;
        const uint8_t *at = chunks->buffer + HEADER_BYTES, *end = chunks->buffer + chunks->size;
        while (at < end && *at > 2 && !code)
            code = read_definition(local, offsets, chunks, &at);
        *byte = chunks->start + (uint64_t)(at - chunks->buffer);
        if (code)
            return code;
        if (at >= end)
            return past_end(chunks);
        if (*at == 2)
            return WAT_OK;
    }
}

int local_open(struct local *local, const char *path, uint64_t chunk, uint64_t shift, uint64_t *byte)
{
    struct chunks chunks;
    struct offsets offsets = {NULL, 0, 0};
    memset(local, 0, sizeof *local);
    local->clock.shift = shift;
    *byte = 0;
    int code = *path ? chunks_open(&chunks, path, chunk) : WAT_MISSING;
    if (!code) {
        code = read_definitions(local, &offsets, &chunks, byte);
        chunks_close(&chunks);
    } else if (code == WAT_MISSING) {
        code = WAT_OK;
    }
    if (!code)
        code = clock_make(&local->clock, &offsets);
    free(offsets.all);
    if (code)
        local_close(local);
    else
        clock_seek(&local->clock, 0);
    return code;
}

void local_close(struct local *local)
{
    for (int i = 0; i < MAPS; i++) {
        free(local->maps[i].key);
        free(local->maps[i].value);
    }
    free(local->clock.pieces);
}

uint32_t map_id(const struct id_map *map, uint32_t id)
{
    if (!map->key)
        return id < map->count ? map->value[id] : id;
    uint64_t low = 0, high = map->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (map->key[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < map->count && map->key[low] == id ? map->value[low] : id;
}

/* A location's stack of open frames: the state behind nest.h. */
#ifndef WAT_NESTING_H
#define WAT_NESTING_H

#include "local.h"
#include "open_keys.h"
#include "tasks.h"

#include <stdlib.h>

/* keys of stack entries: a frame row, or a number no frame row can be */
#define UNDEFINED_REGION(id) (-1 - (int64_t)(id))
#define UNDEFINED_CONTEXT(id) (-1 - ((int64_t)1 << 32) - (int64_t)(id))
#define COPY(matching) ((int64_t)((uint64_t)1 << 62 | ((matching) & (((uint64_t)1 << 62) - 1))))

enum { MOST_DIRECT_IDS = 1 << 20 };

struct nesting {
    const struct wat_location *location;
    const struct local *local;
    struct clock *clock;
    struct wat_report *report;
    int32_t *frame_of; /* local region id → frame row, −1: undefined, left out, or not in this table */
    uint32_t direct;   /* its length */
    struct entry *stack;
    int64_t height, room;
    int64_t base;  /* where the running task's part of the stack begins */
    int64_t plain; /* entries from here on are the running task's and not indexed: they are closed without much ado */
    struct open_keys open;
    int64_t last; /* time of the last event */
    struct tasks tasks;
    struct task task;       /* the one that runs; generation 0: the location's own */
    int32_t *context_depth; /* 0: not looked at, −1: undefined; made when the first context is met */
    int32_t *chain;         /* scratch */
};

static inline int visible(const struct nesting *n, int32_t frame)
{
    return frame >= 0 && frame < n->location->frames && n->location->keep[frame];
}

static inline int32_t frame_of_region(const struct nesting *n, uint32_t region)
{
    return region < n->location->regions ? n->location->region[region] : -1;
}

static inline int nesting_open(struct nesting *n, const struct wat_location *location, struct local *local,
                               struct wat_report *report)
{
    const struct id_map *map = &local->maps[REGION_MAP];
    uint64_t ids = (uint64_t)location->regions;
    uint64_t mapped = map->key && map->count ? (uint64_t)map->key[map->count - 1] + 1 : map->count;
    if (mapped > ids)
        ids = mapped;
    memset(n, 0, sizeof *n);
    n->location = location, n->local = local, n->clock = &local->clock, n->report = report, n->last = INT64_MIN;
    n->direct = ids < MOST_DIRECT_IDS ? (uint32_t)ids : MOST_DIRECT_IDS;
    n->frame_of = malloc((n->direct + 1) * sizeof *n->frame_of);
    n->room = 256;
    n->stack = malloc((size_t)n->room * sizeof *n->stack);
    if (!n->frame_of || !n->stack)
        return WAT_MEMORY;
    for (uint32_t id = 0; id < n->direct; id++) {
        int32_t frame = frame_of_region(n, map_id(map, id));
        n->frame_of[id] = visible(n, frame) ? frame : -1;
    }
    return WAT_OK;
}

static inline void nesting_close(struct nesting *n)
{
    free(n->frame_of);
    free(n->stack);
    free(n->context_depth);
    free(n->chain);
    tasks_free(&n->tasks);
    open_keys_free(&n->open);
}

/* The time at which an event takes effect: time only goes forward. */
static inline int64_t advance(struct nesting *n, int64_t time)
{
    if (__builtin_expect(time < n->last, 0)) {
        n->report->backward++;
        return n->last;
    }
    return n->last = time;
}

static inline int more_stack(struct nesting *n)
{
    struct entry *more = realloc(n->stack, 2 * (size_t)n->room * sizeof *more);
    if (!more)
        return WAT_MEMORY;
    n->stack = more;
    n->room *= 2;
    return WAT_OK;
}

static inline int push(struct nesting *n, struct entry entry)
{
    if (__builtin_expect(n->height == n->room, 0) && more_stack(n))
        return WAT_MEMORY;
    n->stack[n->height++] = entry;
    return WAT_OK;
}

/* After the base or the index changed. */
static inline void set_plain(struct nesting *n)
{
    n->plain = n->base > n->open.indexed ? n->base : n->open.indexed;
}

/* Whether an Enter opened it: no calling context, copy or pause. */
static inline int is_entered(const struct nesting *n, const struct entry *entry)
{
    return entry->context < 0 && entry->key < COPY(0) && entry->key != n->location->off;
}

/* The innermost entry of the running task that has this key; −1: none, −2: no memory. */
static inline int64_t find_open(struct nesting *n, int64_t key)
{
    int64_t at = n->height - 1;
    for (int64_t last = at - NEAR_TOP; at >= n->base && at > last; at--)
        if (n->stack[at].key == key)
            return at;
    if (at < n->base)
        return -1;
    if (open_keys_index(&n->open, n->stack, n->height))
        return -2;
    set_plain(n);
    const struct open_key *slot = open_key_slot(&n->open, key);
    return slot->used && slot->last >= n->base ? slot->last : -1;
}

/* The number of contexts from the root to this one, −1 if it, or a caller of it, is undefined or calls itself. */
static inline int32_t depth_of_context(struct nesting *n, int64_t context)
{
    const int32_t *parent = n->location->context_parent;
    int64_t contexts = n->location->contexts, steps = 0, at = context;
    if (context >= contexts)
        return -1;
    while (at >= 0 && at < contexts && !n->context_depth[at] && steps <= contexts)
        at = parent[at], steps++;
    int known = at < 0 || (at < contexts && n->context_depth[at] > 0);
    int32_t depth = known ? (int32_t)((at < 0 ? 0 : n->context_depth[at]) + steps) : -1;
    for (at = context; at >= 0 && at < contexts && !n->context_depth[at]; at = parent[at])
        n->context_depth[at] = known ? depth-- : -1;
    return n->context_depth[context];
}

#endif

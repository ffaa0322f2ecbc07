/* Call paths, numbered as they are met: a path is its caller's path and a frame. */
#ifndef WAT_PATHS_H
#define WAT_PATHS_H

#include "columns.h"

#include <stdlib.h>

struct paths {
    struct wat_column frame, parent; /* int64_t, by path */
    struct path_slot *slots;         /* hash table, a quarter of it in use at most */
    uint64_t mask;
};

struct path_slot {
    uint64_t key;
    int64_t path; /* −1: free */
};

static inline uint64_t path_key(int64_t parent, int64_t frame)
{
    return (uint64_t)(parent + 1) << 32 | (uint32_t)frame;
}

/* The slot of a path, or the free one where it belongs. */
static inline struct path_slot *path_slot(const struct paths *paths, uint64_t key)
{
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    for (uint64_t at = hash >> 32 ^ hash >> 52;; at++) {
        struct path_slot *slot = &paths->slots[at & paths->mask];
        if (slot->key == key || slot->path < 0)
            return slot;
    }
}

static inline int paths_rehash(struct paths *paths, uint64_t slots)
{
    struct path_slot *old = paths->slots;
    paths->slots = malloc(slots * sizeof *paths->slots);
    if (!paths->slots) {
        paths->slots = old;
        return WAT_MEMORY;
    }
    paths->mask = slots - 1;
    for (uint64_t i = 0; i < slots; i++)
        paths->slots[i] = (struct path_slot){UINT64_MAX, -1};
    for (int64_t path = 0; path < paths->frame.length; path++) {
        uint64_t key = path_key(COLUMN(paths->parent, int64_t)[path], COLUMN(paths->frame, int64_t)[path]);
        *path_slot(paths, key) = (struct path_slot){key, path};
    }
    free(old);
    return WAT_OK;
}

static inline int paths_open(struct paths *paths)
{
    return paths_rehash(paths, 256);
}

static inline void paths_close(struct paths *paths)
{
    free(paths->slots);
    wat_free(paths->frame.data, paths->frame.bytes);
    wat_free(paths->parent.data, paths->parent.bytes);
}

/* The number of a path that was not met before; −1: no memory. */
static inline int64_t path_new(struct paths *paths, int64_t parent, int64_t frame)
{
    uint64_t key = path_key(parent, frame);
    int64_t path = paths->frame.length;
    if ((uint64_t)path * 4 > paths->mask && paths_rehash(paths, 2 * (paths->mask + 1)))
        return -1;
    if (COLUMN_ADD(paths->frame, int64_t, frame) || COLUMN_ADD(paths->parent, int64_t, parent))
        return -1;
    *path_slot(paths, key) = (struct path_slot){key, path};
    return path;
}

/* The path of `frame` called from path `parent` (−1: from outside); −1: not met before. */
static inline int64_t path_find(const struct paths *paths, int64_t parent, int64_t frame)
{
    return path_slot(paths, path_key(parent, frame))->path;
}

#endif

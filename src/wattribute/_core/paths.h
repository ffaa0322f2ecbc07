/* Call paths, numbered as they are met: a path is its caller's path and a frame. */
#ifndef WAT_PATHS_H
#define WAT_PATHS_H

#include "columns.h"

#include <stdlib.h>

struct paths {
    struct wat_column frame, parent; /* int64_t, by path */
    struct wat_column recent;        /* struct recent, by path + 1: the callee met last */
    int64_t *slots;                  /* hash table: path, −1: free */
    uint64_t mask;
};

struct recent {
    int64_t frame, path;
};

static inline uint64_t path_hash(int64_t parent, int64_t frame)
{
    uint64_t h = ((uint64_t)parent + 1) * 0x9E3779B97F4A7C15u ^ (uint64_t)frame * 0xC2B2AE3D27D4EB4Fu;
    return h ^ h >> 29;
}

static inline int paths_rehash(struct paths *paths, uint64_t slots)
{
    int64_t *table = malloc(slots * sizeof *table);
    if (!table)
        return WAT_MEMORY;
    for (uint64_t i = 0; i < slots; i++)
        table[i] = -1;
    for (int64_t path = 0; path < paths->frame.length; path++) {
        uint64_t at = path_hash(COLUMN(paths->parent, int64_t)[path], COLUMN(paths->frame, int64_t)[path]);
        while (table[at & (slots - 1)] >= 0)
            at++;
        table[at & (slots - 1)] = path;
    }
    free(paths->slots);
    paths->slots = table;
    paths->mask = slots - 1;
    return WAT_OK;
}

static inline int paths_open(struct paths *paths)
{
    struct recent none = {-1, -1};
    return COLUMN_ADD(paths->recent, struct recent, none) ? WAT_MEMORY : paths_rehash(paths, 64);
}

/* Frees all but frame and parent, which are results. */
static inline void paths_close(struct paths *paths)
{
    wat_free(paths->recent.data, paths->recent.bytes);
    free(paths->slots);
}

static inline int64_t path_new(struct paths *paths, int64_t parent, int64_t frame)
{
    struct recent none = {-1, -1};
    if ((uint64_t)paths->frame.length * 2 > paths->mask && paths_rehash(paths, 2 * (paths->mask + 1)))
        return -1;
    uint64_t at = path_hash(parent, frame);
    while (paths->slots[at & paths->mask] >= 0)
        at++;
    if (COLUMN_ADD(paths->frame, int64_t, frame) || COLUMN_ADD(paths->parent, int64_t, parent)
        || COLUMN_ADD(paths->recent, struct recent, none))
        return -1;
    return paths->slots[at & paths->mask] = paths->frame.length - 1;
}

/* The path of `frame` called from path `parent` (−1: from outside); −1: no memory. */
static inline int64_t path_of(struct paths *paths, int64_t parent, int64_t frame)
{
    struct recent *recent = &COLUMN(paths->recent, struct recent)[parent + 1];
    if (recent->frame == frame)
        return recent->path;
    int64_t path = -1;
    for (uint64_t at = path_hash(parent, frame); (path = paths->slots[at & paths->mask]) >= 0; at++)
        if (COLUMN(paths->frame, int64_t)[path] == frame && COLUMN(paths->parent, int64_t)[path] == parent)
            break;
    if (path < 0)
        path = path_new(paths, parent, frame);
    if (path >= 0)
        COLUMN(paths->recent, struct recent)[parent + 1] = (struct recent){frame, path};
    return path;
}

#endif

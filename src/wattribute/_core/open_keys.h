/* Where a key is open on a location's stack. The stack itself answers for its top; only a search that finds nothing there
 * makes an index, of all entries at that moment, so that a usual trace pays nothing. Every entry is indexed once at most:
 * what a search costs does not depend on how deep the stack is. */
#ifndef WAT_OPEN_KEYS_H
#define WAT_OPEN_KEYS_H

#include "tasks.h"

enum { NEAR_TOP = 4 }; /* entries that are looked at one by one */

struct open_key {
    int64_t key;
    int64_t last; /* the innermost entry that has it, of those that are indexed; −1: none */
    int64_t owed; /* leaves that will come for what was closed without one */
    int used;
};

struct open_keys {
    struct open_key *slots; /* hash table, half of it in use at most; made when it is first needed */
    uint64_t mask, keys;
    int64_t *below; /* by indexed entry: the next one below it that has the same key, −1: none */
    int64_t indexed, room;
};

static inline struct open_key *open_key_slot(const struct open_keys *open, int64_t key)
{
    uint64_t at = (uint64_t)key * 0x9E3779B97F4A7C15u;
    for (at ^= at >> 32;; at++) {
        struct open_key *slot = &open->slots[at & open->mask];
        if (!slot->used || slot->key == key)
            return slot;
    }
}

/* The slot of a key, made if it is new; NULL: no memory. */
static inline struct open_key *open_key(struct open_keys *open, int64_t key)
{
    if (!open->slots || 2 * open->keys > open->mask) {
        struct open_keys more = {.mask = open->slots ? 2 * open->mask + 1 : 63};
        more.slots = calloc(more.mask + 1, sizeof *more.slots);
        if (!more.slots)
            return NULL;
        for (uint64_t i = 0; open->slots && i <= open->mask; i++)
            if (open->slots[i].used)
                *open_key_slot(&more, open->slots[i].key) = open->slots[i];
        free(open->slots);
        open->slots = more.slots, open->mask = more.mask;
    }
    struct open_key *slot = open_key_slot(open, key);
    if (!slot->used) {
        *slot = (struct open_key){key, -1, 0, 1};
        open->keys++;
    }
    return slot;
}

/* Index all entries of a stack; WAT_OK or WAT_MEMORY. */
static inline int open_keys_index(struct open_keys *open, const struct entry *stack, int64_t height)
{
    if (height > open->room) {
        int64_t room = 2 * height, *more = realloc(open->below, (size_t)room * sizeof *more);
        if (!more)
            return WAT_MEMORY;
        open->below = more, open->room = room;
    }
    for (; open->indexed < height; open->indexed++) {
        struct open_key *slot = open_key(open, stack[open->indexed].key);
        if (!slot)
            return WAT_MEMORY;
        open->below[open->indexed] = slot->last;
        slot->last = open->indexed;
    }
    return WAT_OK;
}

/* The stack is about to be no higher than this. */
static inline void open_keys_cut(struct open_keys *open, const struct entry *stack, int64_t height)
{
    while (open->indexed > height) {
        int64_t at = --open->indexed;
        open_key_slot(open, stack[at].key)->last = open->below[at];
    }
}

static inline void open_keys_free(struct open_keys *open)
{
    free(open->slots);
    free(open->below);
}

#endif

/* Tasks that were switched away from, with the frames they had open. */
#ifndef WAT_TASKS_H
#define WAT_TASKS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wattribute.h"

struct entry {
    int64_t key;     /* what a Leave must say to close it */
    int32_t frame;   /* −1: undefined */
    int32_t context; /* −1: not from a calling context */
};

struct task {
    uint32_t team, creator, generation;
};

struct suspended {
    struct suspended *next;
    struct task task;
    int64_t height;
    struct entry stack[];
};

enum { TASK_BUCKETS = 1024 };

struct tasks {
    struct suspended **buckets; /* made when the first task is suspended */
};

static inline int same_task(struct task a, struct task b)
{
    return a.team == b.team && a.creator == b.creator && a.generation == b.generation;
}

static inline uint32_t task_bucket(struct task task)
{
    return (task.team * 31 + task.creator * 17 + task.generation) * 2654435761u >> 22;
}

static inline int tasks_suspend(struct tasks *tasks, struct task task, const struct entry *stack, int64_t height)
{
    if (!height)
        return WAT_OK;
    if (!tasks->buckets)
        tasks->buckets = calloc(TASK_BUCKETS, sizeof *tasks->buckets);
    size_t bytes = (size_t)height * sizeof *stack;
    struct suspended *new = tasks->buckets ? malloc(sizeof *new + bytes) : NULL;
    if (!new)
        return WAT_MEMORY;
    struct suspended **bucket = &tasks->buckets[task_bucket(task)];
    new->next = *bucket, new->task = task, new->height = height;
    memcpy(new->stack, stack, bytes);
    *bucket = new;
    return WAT_OK;
}

/* Remove a suspended task; the caller frees it. NULL: there is none. */
static inline struct suspended *tasks_take(struct tasks *tasks, struct task task)
{
    if (!tasks->buckets)
        return NULL;
    struct suspended **at = &tasks->buckets[task_bucket(task)];
    while (*at && !same_task((*at)->task, task))
        at = &(*at)->next;
    struct suspended *found = *at;
    if (found)
        *at = found->next;
    return found;
}

static inline int64_t tasks_open_spans(const struct tasks *tasks)
{
    int64_t open = 0;
    for (int i = 0; tasks->buckets && i < TASK_BUCKETS; i++)
        for (const struct suspended *task = tasks->buckets[i]; task; task = task->next)
            open += task->height;
    return open;
}

static inline void tasks_free(struct tasks *tasks)
{
    for (int i = 0; tasks->buckets && i < TASK_BUCKETS; i++)
        for (struct suspended *task = tasks->buckets[i], *next; task; task = next) {
            next = task->next;
            free(task);
        }
    free(tasks->buckets);
}

#endif

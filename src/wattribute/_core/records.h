/* Event records: their kinds, and an event as a sink sees it. */
#ifndef WAT_RECORDS_H
#define WAT_RECORDS_H

#include "input.h"

/* clang-format off */
enum {
    TIMESTAMP = 5, ATTRIBUTES = 6, FIRST_KIND = 10, BUFFER_FLUSH = 10, MEASUREMENT_ON_OFF = 11, ENTER = 12, LEAVE = 13,
    METRIC = 31, PARAMETER_UNSIGNED_INT = 34, RMA_PUT = 46, RMA_GET = 47, RMA_ATOMIC = 48, RMA_OP_COMPLETE_BLOCKING = 49,
    RMA_OP_COMPLETE_NON_BLOCKING = 50, RMA_OP_COMPLETE_REMOTE = 52, THREAD_TASK_SWITCH = 60, THREAD_TASK_COMPLETE = 61,
    CALLING_CONTEXT_ENTER = 66, CALLING_CONTEXT_LEAVE = 67, CALLING_CONTEXT_SAMPLE = 68, PROGRAM_BEGIN = 83,
    PROGRAM_END = 84, LAST_KIND = 92
};
/* clang-format on */

/* Records whose payload is one compressed integer without a length byte. */
static inline int is_singleton(unsigned kind)
{
    return kind <= 30
           && (1u << kind
               & (1u << 12 | 1u << 13 | 1u << 16 | 1u << 17 | 1u << 20 | 1u << 21 | 1u << 24 | 1u << 28 | 1u << 29
                  | 1u << 30));
}

struct event {
    unsigned kind;
    int64_t time;
    const uint8_t *at, *end; /* payload */
};

/* The first `count` compressed integers of a payload, `plain` of them (0: none) followed by a byte to skip. */
static inline int fields(const struct event *event, int count, int plain, uint64_t *values)
{
    const uint8_t *at = event->at;
    for (int i = 0; i < count; i++) {
        at = compressed(at, event->end, &values[i]);
        if (!at)
            return WAT_CORRUPT;
        at += i + 1 == plain;
    }
    return WAT_OK;
}

/* Remember when the program began and ended. */
static inline void note_program(struct wat_report *report, const struct event *event)
{
    if (event->kind == PROGRAM_END)
        report->program[1] = event->time;
    if (event->kind == PROGRAM_BEGIN && report->program[0] == -1)
        report->program[0] = event->time;
}

#endif

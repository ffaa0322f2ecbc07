/* The record loop, a template: reads one location's .evt file and hands every event to the file that includes this one.
 * That file defines beforehand
 *
 *     struct sink
 *     static inline int on_enter(struct sink *, uint32_t local_id, int64_t time);
 *     static inline int on_leave(struct sink *, uint32_t local_id, int64_t time);
 *     static inline int on_leaf(struct sink *, uint32_t local_id, int64_t start, int64_t end);    both at once
 *     static int on_event(struct sink *, const struct event *);      every other kind
 *
 * which return a status. Enter and Leave are nearly all of a large trace, so they have a path of their own, and an Enter
 * whose Leave follows at once has another. */
#ifndef WAT_WALK_H
#define WAT_WALK_H

#include "input.h"
#include "local.h"
#include "records.h"

enum { LONGEST_LEAF = 2 * (9 + 10) }; /* two timestamps, an Enter and a Leave */

/* Where the walk stands. */
struct walk {
    struct chunks chunks;
    struct local local;
    const uint8_t *at;
    int64_t time;
    int64_t *counts;
};

/* Find a record's payload; WAT_OK, or why it cannot be. */
static inline int payload_of(const struct walk *walk, const uint8_t *end, struct event *event)
{
    const uint8_t *at = walk->at;
    if (end - at < 2)
        return past_end(&walk->chunks);
    if (is_singleton(event->kind)) {
        unsigned s = at[1];
        event->at = at + 1;
        event->end = at + 2 + (s == 0xFF ? 0 : s);
        return s > 8 && s != 0xFF ? WAT_CORRUPT : event->end > end ? past_end(&walk->chunks) : WAT_OK;
    }
    uint64_t length = at[1];
    event->at = at + 2;
    if (length == 0xFF) {
        if (end - at < 10)
            return past_end(&walk->chunks);
        length = load64(at + 2);
        event->at = at + 10;
    }
    if (length > (uint64_t)(end - event->at))
        return past_end(&walk->chunks);
    event->end = event->at + length;
    return WAT_OK;
}

/* Any one record, checked at every step. */
static int walk_record(struct walk *walk, struct sink *sink)
{
    const uint8_t *end = walk->chunks.buffer + walk->chunks.size;
    struct event event = {.kind = *walk->at, .time = walk->time};
    if (event.kind == TIMESTAMP) {
        if (end - walk->at < 9)
            return past_end(&walk->chunks);
        walk->time = clock_time(&walk->local.clock, load64(walk->at + 1));
        walk->at += 9;
        return WAT_OK;
    }
    if (event.kind < FIRST_KIND && event.kind != ATTRIBUTES)
        return WAT_CORRUPT;
    int code = payload_of(walk, end, &event);
    if (code)
        return code;
    if (event.kind >= FIRST_KIND) {
        uint64_t id = 0;
        if (event.kind == ENTER || event.kind == LEAVE) {
            compressed(event.at, event.end, &id);
            code = event.kind == ENTER ? on_enter(sink, (uint32_t)id, event.time)
                                       : on_leave(sink, (uint32_t)id, event.time);
        } else {
            code = on_event(sink, &event);
        }
        if (code)
            return code;
        walk->counts[event.kind]++;
    }
    walk->at = event.end;
    return WAT_OK;
}

/* The bytes of a record of `size` bytes of id, and of the id alone. */
static const uint64_t record_mask[8] = {0xFFFF,         0xFFFFFF,         0xFFFFFFFF, 0xFFFFFFFFFF,
                                        0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF, UINT64_MAX, UINT64_MAX};
static const uint32_t id_mask[8] = {0, 0xFF, 0xFFFF, 0xFFFFFF, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};

/* Timestamps, Enter and Leave as long as the longest group of them cannot pass the end; stops at the first record of
 * another kind. A record's eight bytes hold all of it that counts, an id has 32 bits. */
static inline int walk_fast(struct walk *walk, struct sink *sink)
{
    if (walk->chunks.size < LONGEST_LEAF)
        return WAT_OK;
    const uint8_t *at = walk->at, *last = walk->chunks.buffer + walk->chunks.size - LONGEST_LEAF;
    int64_t time = walk->time, enters = 0, leaves = 0;
    int code = WAT_OK;
    while (at <= last && !code) {
        const uint8_t *next = at;
        if (*at == TIMESTAMP) {
            time = clock_time(&walk->local.clock, load64(at + 1));
            next = at + 9;
        }
        uint64_t record = load64(next);
        if ((record & 0xF8FE) != ENTER) /* neither Enter nor Leave, or more than seven bytes of id */
            break;
        unsigned size = record >> 8 & 7;
        uint32_t id = (uint32_t)(record >> 16) & id_mask[size];
        at = next + 2 + size;
        if (record & 1) {
            code = on_leave(sink, id, time);
            leaves++;
            continue;
        }
        next = *at == TIMESTAMP ? at + 9 : at;
        enters++;
        if (((record ^ load64(next)) & record_mask[size]) != (ENTER ^ LEAVE)) {
            code = on_enter(sink, id, time);
            continue;
        }
        int64_t start = time;
        if (next > at)
            time = clock_time(&walk->local.clock, load64(at + 1));
        code = on_leaf(sink, id, start, time);
        leaves++;
        at = next + 2 + size;
    }
    /* a timestamp before another kind of record is read again there */
    walk->at = at;
    walk->time = time;
    walk->counts[ENTER] += enters;
    walk->counts[LEAVE] += leaves;
    return code;
}

/* The records of one chunk up to its end mark (0 … 2), which *mark receives. */
static int walk_chunk(struct walk *walk, struct sink *sink, unsigned *mark)
{
    const uint8_t *end = walk->chunks.buffer + walk->chunks.size;
    walk->at = walk->chunks.buffer + HEADER_BYTES;
    for (;;) {
        int code = walk_fast(walk, sink);
        if (code)
            return code;
        if (walk->at >= end)
            return past_end(&walk->chunks);
        *mark = *walk->at;
        if (*mark < 3)
            return WAT_OK;
        code = walk_record(walk, sink);
        if (code)
            return code;
    }
}

static int64_t walk_total(const struct walk *walk)
{
    int64_t total = 0;
    for (int kind = FIRST_KIND; kind < 256; kind++)
        total += walk->counts[kind];
    return total;
}

static int walk_chunks(struct walk *walk, struct sink *sink, uint64_t *byte)
{
    uint64_t miscounted = UINT64_MAX; /* the first chunk whose header disagrees with what is in it */
    unsigned mark = 0;
    while (mark != 2) {
        uint64_t seen = (uint64_t)walk_total(walk);
        int code = chunks_next(&walk->chunks, byte);
        if (code)
            return code;
        int wrong = walk->chunks.first != seen + 1;
        code = walk_chunk(walk, sink, &mark);
        *byte = walk->chunks.start + (uint64_t)(walk->at - walk->chunks.buffer);
        if (code)
            return code;
        if ((wrong || (walk->chunks.last && walk->chunks.last != (uint64_t)walk_total(walk)))
            && miscounted == UINT64_MAX)
            miscounted = walk->chunks.start;
    }
    *byte = miscounted == UINT64_MAX ? 0 : miscounted;
    return miscounted == UINT64_MAX ? WAT_OK : WAT_COUNT;
}

/* Open a location's files; the sink may then look at walk->local and walk->chunks. A failure is in the report. */
static int walk_open(struct walk *walk, const struct wat_location *location, uint64_t shift, struct wat_report *report)
{
    memset(report, 0, sizeof *report);
    report->program[0] = report->program[1] = -1;
    walk->time = 0;
    walk->counts = report->counts;
    report->code = local_open(&walk->local, location->local, location->def_chunk, shift, &report->byte);
    report->in_local = report->code != WAT_OK;
    if (report->code)
        return report->code;
    walk->time = clock_time(&walk->local.clock, 0);
    report->code = chunks_open(&walk->chunks, location->evt, location->evt_chunk);
    if (report->code)
        local_close(&walk->local);
    return report->code;
}

static void walk_all(struct walk *walk, struct sink *sink, struct wat_report *report)
{
    report->code = walk_chunks(walk, sink, &report->byte);
    report->events = walk_total(walk);
    for (int kind = LAST_KIND + 1; kind < 256; kind++)
        report->unknown += walk->counts[kind];
}

static void walk_close(struct walk *walk)
{
    chunks_close(&walk->chunks);
    local_close(&walk->local);
}

#endif

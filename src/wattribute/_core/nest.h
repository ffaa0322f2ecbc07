/* Events that enter, leave, sample or switch become spans: a template like walk.h, of which it defines the four hooks.
 * The file that includes it defines beforehand a struct sink with a member `struct nesting nesting` and
 *
 *     static inline int open_span(struct sink *, int32_t frame, int resumed, int64_t time);
 *     static inline int close_span(struct sink *, int64_t time);    the one opened last; not WAT_OK: no need to go on
 *     static inline int leaf_span(struct sink *, int32_t frame, int64_t start, int64_t end);    both at once
 *     static int on_metric(struct sink *, const struct event *);
 *
 * reference_nesting.py says the same in Python. */
#ifndef WAT_NEST_H
#define WAT_NEST_H

#include "nesting.h"
#include "records.h"

static __attribute__((noinline)) int open_entry(struct sink *sink, struct nesting *n, struct entry entry, int resumed,
                                                int64_t time)
{
    int code = push(n, entry);
    return !code && visible(n, entry.frame) ? open_span(sink, entry.frame, resumed, time) : code;
}

static __attribute__((noinline)) void close_down_to(struct sink *sink, struct nesting *n, int64_t height, int64_t time)
{
    if (n->open.indexed > height) {
        open_keys_cut(&n->open, n->stack, height);
        set_plain(n);
    }
    while (n->height > height)
        if (visible(n, n->stack[--n->height].frame))
            close_span(sink, time);
}

/* Close the innermost entry with that key and all above it; *closed: whether there is one. */
static int close_to(struct sink *sink, struct nesting *n, int64_t key, int64_t time, int *closed)
{
    int64_t at = find_open(n, key);
    *closed = at >= 0;
    if (at < 0)
        return at == -1 ? WAT_OK : WAT_MEMORY;
    n->report->repaired += at < n->height - 1;
    for (int64_t above = at + 1; above < n->height; above++) {
        if (!is_entered(n, &n->stack[above]))
            continue;
        struct open_key *slot = open_key(&n->open, n->stack[above].key);
        if (!slot)
            return WAT_MEMORY;
        slot->owed++;
    }
    close_down_to(sink, n, at, time);
    return WAT_OK;
}

/* Whether a leave with this key was still to come for something that was closed without one; it has come now. */
static int take_owed(struct nesting *n, int64_t key)
{
    struct open_key *slot = n->open.slots ? open_key_slot(&n->open, key) : NULL;
    return slot && slot->used && slot->owed > 0 ? slot->owed--, 1 : 0;
}

static __attribute__((noinline)) int enter_slowly(struct sink *sink, struct nesting *n, uint32_t local_id, int64_t time)
{
    uint32_t region = map_id(&n->local->maps[REGION_MAP], local_id);
    int32_t frame = frame_of_region(n, region);
    n->report->undefined += frame < 0;
    return open_entry(sink, n, (struct entry){frame >= 0 ? frame : UNDEFINED_REGION(region), frame, -1}, 0, time);
}

/* A leave closes the innermost open span of its region, else, as a runtime may rename a task that runs, the innermost of
 * all. One that comes after its span was closed together with one below closes nothing. */
static __attribute__((noinline)) int leave_slowly(struct sink *sink, struct nesting *n, uint32_t local_id, int64_t time)
{
    uint32_t region = map_id(&n->local->maps[REGION_MAP], local_id);
    int32_t frame = frame_of_region(n, region);
    int64_t key = frame >= 0 ? frame : UNDEFINED_REGION(region);
    int closed, code = close_to(sink, n, key, time, &closed);
    if (code || closed)
        return code;
    if (take_owed(n, key) || n->height <= n->base || !is_entered(n, &n->stack[n->height - 1])) {
        n->report->orphans++;
        return WAT_OK;
    }
    n->report->renamed++;
    close_down_to(sink, n, n->height - 1, time);
    return WAT_OK;
}

static int switch_task(struct sink *sink, struct nesting *n, struct task task, int64_t time)
{
    if (!task.generation)
        task = (struct task){0, 0, 0}; /* the location's own stack, under any name */
    if (same_task(task, n->task))
        return WAT_OK;
    if (n->task.generation) {
        if (tasks_suspend(&n->tasks, n->task, n->stack + n->base, n->height - n->base))
            return WAT_MEMORY;
        close_down_to(sink, n, n->base, time);
    }
    n->task = task;
    n->base = task.generation ? n->height : 0;
    set_plain(n);
    struct suspended *again = task.generation ? tasks_take(&n->tasks, task) : NULL;
    int code = WAT_OK;
    for (int64_t i = 0; again && i < again->height && !code; i++)
        code = open_entry(sink, n, again->stack[i], 1, time);
    free(again);
    return code;
}

static void complete_task(struct sink *sink, struct nesting *n, struct task task, int64_t time)
{
    if (task.generation && same_task(task, n->task)) {
        n->report->unclosed += n->height - n->base;
        close_down_to(sink, n, n->base, time);
        n->task = (struct task){0, 0, 0};
        n->base = 0;
        set_plain(n);
        return;
    }
    struct suspended *dropped = tasks_take(&n->tasks, task);
    n->report->unclosed += dropped ? dropped->height : 0;
    free(dropped);
}

/* The stack becomes the chain of calls that ends in `context` (−1: none): close what is not common, open what is new. */
static int become_context(struct sink *sink, struct nesting *n, int64_t context, int64_t time)
{
    int32_t depth = context < 0 ? 0 : n->context_depth[context], known = 0;
    for (int32_t i = depth; i--; context = n->location->context_parent[context])
        n->chain[i] = (int32_t)context;
    int64_t height = n->base;
    for (int64_t at = n->base; at < n->height; at++) {
        if (n->stack[at].context >= 0) {
            if (known == depth || n->chain[known] != n->stack[at].context)
                break;
            known++, height = at + 1;
        } else if (!known) {
            height = at + 1; /* entered by hand below the first context */
        }
    }
    close_down_to(sink, n, height, time);
    int code = WAT_OK;
    for (; known < depth && !code; known++) {
        int32_t c = n->chain[known], frame = n->location->context_frame[c];
        n->report->undefined += frame < 0;
        code = open_entry(sink, n, (struct entry){frame >= 0 ? frame : UNDEFINED_CONTEXT(c), frame, c}, 0, time);
    }
    return code;
}

static int meet_context(struct sink *sink, struct nesting *n, uint32_t local_id, int leave, int64_t time)
{
    int64_t context = map_id(&n->local->maps[CONTEXT_MAP], local_id);
    if (!n->context_depth) {
        n->context_depth = calloc((size_t)n->location->contexts + 1, sizeof *n->context_depth);
        n->chain = malloc(((size_t)n->location->contexts + 1) * sizeof *n->chain);
        if (!n->context_depth || !n->chain)
            return WAT_MEMORY;
    }
    if (depth_of_context(n, context) < 0) {
        n->report->undefined++;
        return WAT_OK;
    }
    return become_context(sink, n, leave ? n->location->context_parent[context] : context, time);
}

/* Whatever is still open ends with the last event. */
static void nesting_finish(struct sink *sink, struct nesting *n)
{
    n->report->unclosed += n->height + tasks_open_spans(&n->tasks);
    close_down_to(sink, n, 0, n->last);
}

static int measurement(struct sink *sink, struct nesting *n, int on, int64_t time)
{
    int32_t off = n->location->off;
    if (off < 0)
        return WAT_OK;
    int closed;
    if (on)
        return close_to(sink, n, off, time, &closed);
    int64_t at = find_open(n, off);
    if (at != -1)
        return at >= 0 ? WAT_OK : WAT_MEMORY;
    return open_entry(sink, n, (struct entry){off, off, -1}, 0, time);
}

static int flush(struct sink *sink, struct nesting *n, int64_t stop, int64_t time)
{
    int32_t frame = n->location->flush;
    if (frame < 0)
        return WAT_OK;
    int code = open_entry(sink, n, (struct entry){frame, frame, -1}, 0, time);
    if (stop > n->last)
        n->last = stop;
    if (!code)
        close_down_to(sink, n, n->height - 1, n->last);
    return code;
}

static int copy_begins(struct sink *sink, struct nesting *n, const struct event *event, int32_t frame)
{
    uint64_t v[5];
    int atomic = event->kind == RMA_ATOMIC;
    if (fields(event, atomic ? 5 : 4, atomic ? 2 : 0, v))
        return WAT_CORRUPT;
    int64_t time = advance(n, event->time);
    return frame < 0 ? WAT_OK : open_entry(sink, n, (struct entry){COPY(v[atomic ? 4 : 3]), frame, -1}, 0, time);
}

static inline int on_enter(struct sink *sink, uint32_t local_id, int64_t time)
{
    struct nesting *n = &sink->nesting;
    time = advance(n, time);
    int32_t frame = local_id < n->direct ? n->frame_of[local_id] : -1;
    if (__builtin_expect(frame < 0, 0))
        return enter_slowly(sink, n, local_id, time);
    if (push(n, (struct entry){frame, frame, -1}))
        return WAT_MEMORY;
    return open_span(sink, frame, 0, time);
}

static inline int on_leave(struct sink *sink, uint32_t local_id, int64_t time)
{
    struct nesting *n = &sink->nesting;
    time = advance(n, time);
    int32_t frame = local_id < n->direct ? n->frame_of[local_id] : -1;
    if (__builtin_expect(frame < 0 || n->height <= n->plain || n->stack[n->height - 1].key != frame, 0))
        return leave_slowly(sink, n, local_id, time);
    n->height--;
    return close_span(sink, time);
}

static inline int on_leaf(struct sink *sink, uint32_t local_id, int64_t start, int64_t end)
{
    struct nesting *n = &sink->nesting;
    int32_t frame = local_id < n->direct ? n->frame_of[local_id] : -1;
    start = advance(n, start);
    if (__builtin_expect(frame < 0, 0)) {
        int code = enter_slowly(sink, n, local_id, start);
        return code ? code : leave_slowly(sink, n, local_id, advance(n, end));
    }
    return leaf_span(sink, frame, start, advance(n, end));
}

/* What each of the other kinds does to the stack; a payload that is too short for it is damage. */
static int nest_event(struct sink *sink, struct nesting *n, const struct event *event)
{
    uint64_t v[3];
    switch (event->kind) {
    case BUFFER_FLUSH:
        if (event->end - event->at < 8)
            return WAT_CORRUPT;
        return flush(sink, n, clock_time(n->clock, load64(event->at)), advance(n, event->time));
    case MEASUREMENT_ON_OFF:
        if (event->end == event->at)
            return WAT_CORRUPT;
        return measurement(sink, n, *event->at == 1, advance(n, event->time));
    case RMA_PUT:
        return copy_begins(sink, n, event, n->location->put);
    case RMA_GET:
        return copy_begins(sink, n, event, n->location->get);
    case RMA_ATOMIC:
        return copy_begins(sink, n, event, n->location->atomic);
    case RMA_OP_COMPLETE_BLOCKING:
    case RMA_OP_COMPLETE_NON_BLOCKING:
    case RMA_OP_COMPLETE_REMOTE:
        if (fields(event, 2, 0, v))
            return WAT_CORRUPT;
        int closed;
        return close_to(sink, n, COPY(v[1]), advance(n, event->time), &closed);
    case THREAD_TASK_SWITCH:
    case THREAD_TASK_COMPLETE:
        if (fields(event, 3, 0, v))
            return WAT_CORRUPT;
        struct task task = {(uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]};
        if (event->kind == THREAD_TASK_SWITCH)
            return switch_task(sink, n, task, advance(n, event->time));
        complete_task(sink, n, task, advance(n, event->time));
        return WAT_OK;
    case CALLING_CONTEXT_ENTER:
    case CALLING_CONTEXT_LEAVE:
    case CALLING_CONTEXT_SAMPLE:
        if (fields(event, 1, 0, v))
            return WAT_CORRUPT;
        return meet_context(sink, n, (uint32_t)v[0], event->kind == CALLING_CONTEXT_LEAVE, advance(n, event->time));
    default:
        advance(n, event->time);
        return WAT_OK;
    }
}

static int on_event(struct sink *sink, const struct event *event)
{
    struct wat_report *report = sink->nesting.report;
    int code = nest_event(sink, &sink->nesting, event);
    if (!code && event->kind == METRIC)
        code = on_metric(sink, event);
    note_program(report, event);
    return code;
}

#endif

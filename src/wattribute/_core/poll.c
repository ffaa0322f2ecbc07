/* Meters read at their times without Python, whose code goes cold between two readings and then costs far more.
 * The rules are those of recorders/schedule.py (MeterSchedule) and meters/sources.py, its twins: the same rows come of both. */
#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "wattribute.h"

enum { MOST_BYTES = 128 };                   /* of a file that are looked at */
static const int64_t STEP_NS = 2000000;      /* schedule.STEP_NS: closer readings come exactly */
static const int64_t NO_READING = INT64_MIN; /* journal.NO_READING, in the place of a time */

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The sum of the words whose bits are set in `wanted`; 0: one of them is missing or not a number. */
static int sum_words(const char *text, uint32_t wanted, int64_t *sum)
{
    *sum = 0;
    for (; wanted; wanted >>= 1) {
        int64_t number = 0;
        text += strspn(text, " \n\t");
        size_t length = strcspn(text, " \n\t");
        if (wanted & 1) {
            int negative = length && *text == '-';
            if (length == (size_t)negative)
                return 0;
            for (size_t i = negative; i < length; i++) {
                if (text[i] < '0' || text[i] > '9')
                    return 0;
                if (__builtin_mul_overflow(number, 10, &number))
                    return 0;
                if (__builtin_add_overflow(number, text[i] - '0', &number))
                    return 0;
            }
            if (__builtin_add_overflow(*sum, negative ? -number : number, sum))
                return 0;
        }
        text += length;
    }
    return 1;
}

/* 1: the number that a source says now */
static int ask(struct wat_source *source, int64_t *value)
{
    char text[MOST_BYTES + 1];
    uint64_t bits = 0;
    ssize_t length;
    switch (source->kind) {
    case WAT_WORDS:
        length = pread(source->argument, text, MOST_BYTES, 0);
        if (length <= 0)
            return 0;
        text[length] = 0;
        return sum_words(text, source->words, value);
    case WAT_EVENT:
        if (read(source->argument, &bits, 8) != 8)
            return 0;
        break;
    case WAT_CALL:
        *source->failed = source->call(source->handle, source->answer);
        break;
    case WAT_CALL_WITH:
        *source->failed = source->call_with(source->handle, (unsigned)source->argument, source->answer);
        break;
    }
    if (source->kind != WAT_EVENT) { /* WAT_SAME: what the call before it has filled in */
        if (*source->failed || (source->refused && *source->refused))
            return 0;
        memcpy(&bits, source->value, (size_t)source->bytes);
    }
    *value = (int64_t)bits;
    return bits <= INT64_MAX;
}

int64_t wat_read_sources(const struct wat_meter *meter, int64_t *row)
{
    int64_t began = clock_ns(), before = began;
    for (int64_t i = 0; i < meter->slots; i++)
        row[2 * i] = NO_READING, row[2 * i + 1] = 0;
    for (int64_t i = 0; i < meter->count; i++) {
        struct wat_source *source = &meter->sources[i];
        if (began - source->asked_ns < source->pause_ns)
            continue;
        source->asked_ns = began;
        int64_t value, is_known = ask(source, &value), after = clock_ns();
        if (is_known)
            row[2 * source->slot] = before + (after - before) / 2, row[2 * source->slot + 1] = value;
        before = after;
    }
    return before;
}

/* 1: the time has come; 0: something can be read from `file`, or a signal came */
static int wait_until(int file, int64_t until_ns)
{
    int64_t left_ns = until_ns - clock_ns();
    if (left_ns > STEP_NS) { /* up to a millisecond late, which costs less than to be exact */
        struct pollfd polled = {file, POLLIN, 0};
        left_ns = left_ns / 1000000 + 1;
        return poll(&polled, 1, left_ns > 1000000 ? 1000000 : (int)left_ns) == 0;
    }
    struct timeval left = {0, left_ns > 0 ? (int)(left_ns / 1000) : 0};
    fd_set files;
    FD_ZERO(&files);
    FD_SET(file, &files);
    return select(file + 1, &files, NULL, NULL, &left) == 0;
}

/* MeterSchedule.schedule: in step with the earlier readings, a late one does not make the next one early */
static void schedule(struct wat_meter *meter, int64_t now)
{
    int64_t every = meter->interval_ns, behind = now + every / 2 - (meter->due_ns + every);
    meter->due_ns += every * (1 + (behind > 0 ? (behind + every - 1) / every : 0));
}

int64_t wat_poll(struct wat_meter *meters, int64_t count, int file, int64_t enough_ns, int64_t latest_ns, int64_t *rows,
                 int64_t room)
{
    int64_t *row = rows, round = 0;
    for (int64_t i = 0; i < count; i++)
        round += 2 + 2 * meters[i].slots;
    while (room - (row - rows) >= round) {
        int64_t due = latest_ns;
        for (int64_t i = 0; i < count; i++)
            if (meters[i].due_ns < due)
                due = meters[i].due_ns;
        if (!wait_until(file, due))
            break;
        int64_t now = clock_ns();
        for (int64_t i = 0; i < count && now >= due; i++) {
            struct wat_meter *meter = &meters[i];
            if (meter->due_ns - (meter->interval_ns > STEP_NS ? meter->interval_ns / 2 : 0) > now)
                continue;
            row[0] = i;
            row[1] = wat_read_sources(meter, row + 2);
            row += 2 + 2 * meter->slots;
            schedule(meter, now);
        }
        if (now >= enough_ns || now >= latest_ns)
            break;
    }
    return row - rows;
}

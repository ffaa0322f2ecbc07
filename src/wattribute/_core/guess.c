/* A guess at when a location was inside a span, from the first and the last bytes of its file: a program's thread mostly
 * begins with its outermost span and ends with it. wat_read_fold finds out whether the guess was right. */
#define _GNU_SOURCE
#include "local.h"
#include "many.h"
#include "records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK = 512 };

/* The record behind this one; NULL if none fits there. */
static const uint8_t *behind(const uint8_t *at, const uint8_t *end)
{
    uint64_t length = 0;
    if (end - at < 2 || (*at < FIRST_KIND && *at != TIMESTAMP && *at != ATTRIBUTES))
        return NULL;
    if (*at == TIMESTAMP)
        return end - at < 9 ? NULL : at + 9;
    length = at[1];
    if (is_singleton(*at) && length > 8)
        return length == 0xFF ? at + 2 : NULL;
    if (length == 0xFF || length > (uint64_t)(end - at - 2))
        return NULL;
    return at + 2 + length;
}

/* The raw time of the first Enter that makes a span. */
static int first_enter(const struct wat_location *location, const struct local *local, const uint8_t *at,
                       const uint8_t *end, uint64_t *time)
{
    for (const uint8_t *next; (next = behind(at, end)); at = next) {
        uint64_t id;
        if (*at == TIMESTAMP)
            *time = load64(at + 1);
        if (*at != ENTER || !compressed(at + 1, end, &id))
            continue;
        uint32_t region = map_id(&local->maps[REGION_MAP], (uint32_t)id);
        int32_t frame = region < location->regions ? location->region[region] : -1;
        if (frame >= 0 && frame < location->frames && location->keep[frame])
            return 1;
    }
    return 0;
}

/* The raw time of the last Leave: records that begin with a timestamp somewhere and end with the file. */
static int last_leave(const uint8_t *begin, const uint8_t *end, uint64_t *found)
{
    for (const uint8_t *from = end; from-- > begin;) {
        uint64_t time = 0;
        int leaves = 0;
        const uint8_t *at = from;
        for (const uint8_t *next; *from == TIMESTAMP && at < end && (next = behind(at, end)); at = next) {
            if (*at == TIMESTAMP)
                time = load64(at + 1);
            if (*at == LEAVE)
                leaves = 1, *found = time;
        }
        if (at == end && leaves)
            return 1;
    }
    return 0;
}

/* The first and the last bytes of a file; 0 if it is none. */
static int look(const char *path, uint8_t *head, size_t *head_bytes, uint8_t *tail, size_t *tail_bytes)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t first = -1, last = -1;
    if (!fstat(fd, &about) && S_ISREG(about.st_mode)) {
        first = pread(fd, head, LOOK, 0);
        last = pread(fd, tail, LOOK, about.st_size > LOOK ? about.st_size - LOOK : 0);
    }
    close(fd);
    *head_bytes = (size_t)first, *tail_bytes = (size_t)last;
    return first > HEADER_BYTES && last > HEADER_BYTES;
}

/* 1: start and end are what to expect */
static int guess_busy(const struct wat_location *location, int64_t *start, int64_t *end)
{
    uint8_t head[LOOK + SLACK] = {0}, tail[LOOK + SLACK] = {0};
    size_t head_bytes, tail_bytes;
    struct local local;
    uint64_t byte, first = 0, last = 0;
    if (!look(location->evt, head, &head_bytes, tail, &tail_bytes)
        || local_open(&local, location->local, location->def_chunk, location->offset_ticks, &byte))
        return 0;
    /* a file ends with 02 01 */
    int guessed = first_enter(location, &local, head + HEADER_BYTES, head + head_bytes, &first)
                  && last_leave(tail, tail + tail_bytes - 2, &last);
    if (guessed) {
        *start = clock_time(&local.clock, first);
        *end = clock_time(&local.clock, last);
    }
    local_close(&local);
    return guessed && *end > *start;
}

int wat_guess_many_busy(const struct wat_many *many, int64_t (*moments)[2], uint8_t *guessed)
{
    struct in_turn turn;
    if (turn_open(&turn, many))
        return WAT_MEMORY;
    for (int64_t i = 0; i < many->count; i++)
        guessed[i] = (uint8_t)guess_busy(turn_at(&turn, i), &moments[i][0], &moments[i][1]);
    turn_close(&turn);
    return WAT_OK;
}

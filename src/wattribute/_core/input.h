/* Files → chunks → integers. A chunk is read() into one buffer, so a file that shrinks or grows meanwhile cannot hurt. */
#ifndef WAT_INPUT_H
#define WAT_INPUT_H

#include "wattribute.h"

#include <string.h>

enum { HEADER_BYTES = 18, SMALLEST_CHUNK = 32, SLACK = 32 };

struct chunks {
    int fd;
    uint8_t *buffer;      /* followed by SLACK zero bytes */
    uint64_t chunk;       /* bytes of a whole chunk */
    uint64_t room;        /* bytes of the buffer: no more than the file had when it was opened */
    uint64_t start;       /* of this chunk in the file */
    uint64_t size;        /* of this chunk, 0 before the first */
    uint64_t file_bytes;  /* when it was opened */
    uint64_t first, last; /* numbers of this chunk's first and last event, as its header says */
};

/* Open a chunked file; on failure nothing is left open. */
int chunks_open(struct chunks *chunks, const char *path, uint64_t chunk);

/* Read the next chunk and its header; on failure *byte says where. */
int chunks_next(struct chunks *chunks, uint64_t *byte);

void chunks_close(struct chunks *chunks);

/* A record may not leave its chunk; in a chunk that is short itself the file was cut. */
static inline int past_end(const struct chunks *chunks)
{
    return chunks->size == chunks->chunk ? WAT_CORRUPT : WAT_TRUNCATED;
}

static inline uint64_t load64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* The low s bytes of eight; s is 0 … 8. */
static inline uint64_t low_bytes(uint64_t value, unsigned s)
{
    static const uint64_t mask[9] = {
        0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF, UINT64_MAX};
    return value & mask[s];
}

/* A compressed integer (size byte, then that many bytes; 0xFF: all ones) and the position behind it, or NULL when it
 * passes `end` or is none. Up to SLACK bytes behind `end` may be looked at. */
static inline const uint8_t *compressed(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    if (!at || at >= end)
        return NULL;
    unsigned s = *at++;
    if (s <= 8) {
        *value = low_bytes(load64(at), s);
        return s <= (uint64_t)(end - at) ? at + s : NULL;
    }
    *value = UINT64_MAX;
    return s == 0xFF ? at : NULL;
}

#endif

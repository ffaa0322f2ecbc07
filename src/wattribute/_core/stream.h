/* Spans that come in pieces, rolled up as they come: by keys, or each one for itself. What is open when a piece ends stays
 * open; what is closed can be taken away, so that memory holds a piece and the open spans, not the location. */
#ifndef WAT_STREAM_H
#define WAT_STREAM_H

#include "rollup.h"

enum {
    ABSENT = -2
}; /* a row in keys: the span does not even count in the depth of others; −1: only that it has no row */

/* a span that is open; it has a row, only a depth, or nothing */
struct level {
    int64_t number, end;
    int32_t counts, has_row;
};

/* a span that has a row of its own */
struct each {
    int64_t start, end;
    int32_t frame, depth, closed;
};

struct wat_stream {
    const struct wat_keys *keys;
    struct rollup rollup;
    int each;                 /* a row per span; then rollup.keys are not looked at */
    int64_t rows, rows_room;  /* of them, those not taken yet */
    struct wat_column spans;  /* struct each, by row */
    struct wat_column levels; /* struct level */
    int64_t depth;            /* levels that count */
};

int stream_enter(struct wat_stream *stream, int64_t number, int32_t frame, int resumed, int64_t start, int64_t end);
void stream_leave(struct wat_stream *stream, int64_t time);

#endif

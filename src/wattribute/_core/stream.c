#include "stream.h"

#include <stdlib.h>
#include <string.h>

static struct level *top(struct wat_stream *stream)
{
    return COLUMN(stream->levels, struct level) + stream->levels.length - 1;
}

/* A row for a span that opens now; −1: no memory. */
static int64_t own_row(struct wat_stream *stream, struct each span)
{
    if (stream->rows == stream->rows_room) {
        int64_t room = stream->rows_room + stream->rows_room / 2 + 64;
        for (int64_t i = 0; i < stream->rollup.folds; i++)
            if (fold_more_rows(&stream->rollup.fold[i], room))
                return -1;
        if (column_resize(&stream->spans, room * (int64_t)sizeof span))
            return -1;
        stream->rows_room = room;
    }
    COLUMN(stream->spans, struct each)[stream->rows] = span;
    return stream->rows++;
}

static int open_each(struct wat_stream *stream, int32_t frame, int resumed, int64_t time)
{
    int64_t row = own_row(stream, (struct each){time, time, frame, (int32_t)stream->depth, 0});
    return rollup_open_row(&stream->rollup, row, resumed, time);
}

int stream_enter(struct wat_stream *stream, int64_t number, int32_t frame, int resumed, int64_t start, int64_t end)
{
    int64_t row = row_of_frame(stream->keys, frame);
    struct level level = {number, end, row != ABSENT, row >= 0};
    int code = WAT_OK;
    if (level.has_row)
        code = stream->each ? open_each(stream, frame, resumed, start)
                            : rollup_open(&stream->rollup, frame, resumed, start);
    stream->depth += level.counts;
    return code ? code : COLUMN_ADD(stream->levels, struct level, level);
}

void stream_leave(struct wat_stream *stream, int64_t time)
{
    struct level level = *top(stream);
    stream->levels.length--;
    stream->depth -= level.counts;
    if (!level.has_row)
        return;
    if (stream->each) {
        const struct fold *first = stream->rollup.fold;
        struct each *span = COLUMN(stream->spans, struct each) + first->top->row;
        span->end = time;
        span->closed = 1;
    }
    rollup_close(&stream->rollup, time);
}

struct wat_stream *wat_stream_open(const struct wat_curve *curves, int64_t count, const struct wat_keys *keys, int each)
{
    static const struct wat_keys none = {0};
    struct wat_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->keys = keys;
    stream->each = each;
    if (!rollup_begin(&stream->rollup, curves, count, each ? &none : keys))
        return stream;
    struct wat_fold nothing = {0};
    wat_stream_close(stream, &nothing, WAT_MEMORY);
    return NULL;
}

int wat_stream_feed(struct wat_stream *stream, int64_t first, const int64_t *start, const int64_t *end,
                    const int32_t *frame, const int64_t *parent, const uint8_t *resumed, int64_t n)
{
    int code = WAT_OK;
    for (int64_t i = 0; i < n && !code; i++) {
        while (stream->levels.length && top(stream)->number != parent[i])
            stream_leave(stream, top(stream)->end);
        code = stream_enter(stream, first + i, frame[i], resumed[i], start[i], end[i]);
    }
    return code;
}

void wat_stream_finish(struct wat_stream *stream)
{
    while (stream->levels.length)
        stream_leave(stream, top(stream)->end);
}

static int make_columns(struct wat_rows *out, int64_t rows, int64_t curves, int bounded)
{
    struct wat_column *shared[] = {&out->start, &out->end, &out->self_ticks};
    struct wat_column *narrow[] = {&out->frame, &out->depth};
    struct wat_column *own[] = {&out->self_covered, &out->total_covered, &out->self_value, &out->total_value,
                                &out->self_low,     &out->self_high,     &out->total_low,  &out->total_high};
    int code = WAT_OK;
    for (int i = 0; i < 3; i++)
        code |= column_resize(shared[i], rows * 8), shared[i]->length = rows;
    for (int i = 0; i < 2; i++)
        code |= column_resize(narrow[i], rows * 4), narrow[i]->length = rows;
    for (int i = 0; i < (bounded ? 8 : 4); i++)
        code |= column_resize(own[i], rows * curves * 8), own[i]->length = rows * curves;
    return code ? WAT_MEMORY : WAT_OK;
}

static void take_fold(const struct wat_stream *stream, struct fold *fold, int64_t to, struct wat_rows *out)
{
    fold_settle(fold, fold->cursor.windows);
    const struct each *span = stream->spans.data;
    for (int64_t i = 0; i < stream->rows; i++) {
        const struct row *row = &fold->rows[i];
        if (!span[i].closed)
            continue;
        COLUMN(out->self_covered, int64_t)[to] = row->self_ticks - fold->uncovered[i].self;
        COLUMN(out->total_covered, int64_t)[to] = row->total_ticks - fold->uncovered[i].total;
        COLUMN(out->self_value, double)[to] = row->self_value;
        COLUMN(out->total_value, double)[to] = row->total_value;
        if (out->self_low.data) {
            const struct run *runs = fold_runs(fold, i);
            COLUMN(out->self_low, double)[to] = runs[SELF].low;
            COLUMN(out->self_high, double)[to] = runs[SELF].high;
            COLUMN(out->total_low, double)[to] = runs[TOTAL].low;
            COLUMN(out->total_high, double)[to] = runs[TOTAL].high;
        }
        to++;
    }
}

/* The open spans' rows become the first ones; the others are new again. */
static void keep_open(struct wat_stream *stream)
{
    struct rollup *rollup = &stream->rollup;
    int64_t open = fold_depth(rollup->fold);
    struct each *span = stream->spans.data;
    for (int64_t d = 0; d < open; d++) /* rows of open spans ascend with their depth, so none is overwritten */
        span[d] = span[rollup->fold->open[d + 1].row];
    for (int64_t i = 0; i < rollup->folds; i++) {
        struct fold *fold = &rollup->fold[i];
        for (int64_t d = 0; d < open; d++) {
            fold_move_row(fold, fold->open[d + 1].row, d);
            fold->open[d + 1].row = d;
        }
        fold_clear_rows(fold, open, stream->rows);
    }
    stream->rows = open;
}

int wat_stream_take(struct wat_stream *stream, struct wat_rows *out)
{
    struct rollup *rollup = &stream->rollup;
    int64_t closed = stream->rows - fold_depth(rollup->fold), to = 0;
    const struct each *span = stream->spans.data;
    memset(out, 0, sizeof *out);
    if (make_columns(out, closed, rollup->curves, rollup_bounded(rollup)))
        return WAT_MEMORY;
    for (int64_t i = 0; i < stream->rows; i++) {
        if (!span[i].closed)
            continue;
        COLUMN(out->start, int64_t)[to] = span[i].start;
        COLUMN(out->end, int64_t)[to] = span[i].end;
        COLUMN(out->frame, int32_t)[to] = span[i].frame;
        COLUMN(out->depth, int32_t)[to] = span[i].depth;
        COLUMN(out->self_ticks, int64_t)[to++] = rollup->fold->rows[i].self_ticks;
    }
    for (int64_t i = 0; i < rollup->curves; i++)
        take_fold(stream, &rollup->fold[i], i * closed, out);
    keep_open(stream);
    return WAT_OK;
}

int wat_stream_close(struct wat_stream *stream, struct wat_fold *out, int code)
{
    memset(out, 0, sizeof *out);
    code = rollup_end(&stream->rollup, 0, out,
                      stream->each ? WAT_MEMORY : code); /* by span there is nothing to hand over */
    wat_free(stream->spans.data, stream->spans.bytes);
    wat_free(stream->levels.data, stream->levels.bytes);
    code = stream->each ? WAT_OK : code;
    free(stream);
    return code;
}

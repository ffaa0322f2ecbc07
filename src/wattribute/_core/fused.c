/* Events → energy in one pass: the decoder and nesting feed the roll-up, and no span is ever kept. */
#include "fold.h"
#include "nesting.h"
#include "records.h"

struct sink {
    struct nesting nesting;
    struct fold fold;
};

static inline int open_span(struct sink *sink, int32_t frame, int resumed, int64_t time)
{
    return fold_open(&sink->fold, frame, resumed, time);
}

static inline void close_span(struct sink *sink, int64_t time)
{
    fold_close(&sink->fold, time);
}

static int on_metric(struct sink *sink, const struct event *event)
{
    (void)sink, (void)event;
    return WAT_OK;
}

#include "nest.h"
#include "walk.h"

/* Frames that have no row are left out like those not kept. */
static uint8_t *frames_with_rows(const struct wat_location *location, const struct wat_keys *keys)
{
    uint8_t *keep = malloc((size_t)location->frames + 1);
    for (int64_t i = 0; keep && i < location->frames; i++)
        keep[i] = location->keep[i] && fold_row_of_frame(keys, i) >= 0;
    return keep;
}

int wat_read_fold(const struct wat_location *given, const struct wat_curve *curves, int64_t count,
                  const struct wat_keys *keys, struct wat_fold *out, struct wat_report *report)
{
    struct walk walk;
    struct sink sink;
    struct wat_location location = *given;
    uint8_t *keep = frames_with_rows(given, keys);
    location.keep = keep;
    memset(out, 0, sizeof *out);
    memset(&sink.nesting, 0, sizeof sink.nesting);
    int code = fold_begin(&sink.fold, curves, count, keys);
    if (!keep || code)
        code = WAT_MEMORY;
    else if (!walk_open(&walk, &location, location.offset_ticks, report)) {
        code = nesting_open(&sink.nesting, &location, &walk.local, report);
        if (!code)
            walk_all(&walk, &sink, report);
        if (!code && report->code != WAT_MEMORY)
            nesting_finish(&sink, &sink.nesting);
        nesting_close(&sink.nesting);
        walk_close(&walk);
    }
    free(keep);
    if (!code && report->code != WAT_MEMORY)
        code = fold_end(&sink.fold, out);
    else
        fold_free(&sink.fold);
    if (code)
        report->code = code;
    return report->code;
}

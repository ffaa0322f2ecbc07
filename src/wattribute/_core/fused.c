/* wat_read_fold: chooses the loop for the case at hand, and defines the general one. */
#include "rollup.h"

#define open_rows(sink, frame, resumed, time) rollup_open((sink)->rollup, frame, resumed, time)
#define leaf_rows(sink, frame, start, end) rollup_leaf((sink)->rollup, frame, start, end)
#define close_rows(sink, time) rollup_close((sink)->rollup, time)
#define FIRST(sink) ((sink)->rollup->fold)
#define FUSED fused_any
#include "fused.h"

void fused_plain(const struct wat_location *, struct rollup *, struct wat_report *);
void fused_bounded(const struct wat_location *, struct rollup *, struct wat_report *);
void fused_path(const struct wat_location *, struct rollup *, struct wat_report *);

/* Frames that have no row are left out like those not kept. */
static uint8_t *frames_with_rows(const struct wat_location *location, const struct wat_keys *keys)
{
    uint8_t *keep = malloc((size_t)location->frames + 1);
    for (int64_t i = 0; keep && i < location->frames; i++)
        keep[i] = location->keep[i] && row_of_frame(keys, i) >= 0;
    return keep;
}

int wat_read_fold(const struct wat_location *given, const struct wat_curve *curves, int64_t count,
                  const struct wat_keys *keys, const int64_t *expected, struct wat_fold *out,
                  struct wat_report *report)
{
    struct rollup rollup;
    struct wat_location location = *given;
    uint8_t *keep = frames_with_rows(given, keys);
    location.keep = keep;
    memset(out, 0, sizeof *out);
    int code = rollup_begin(&rollup, curves, count, keys) || !keep ? WAT_MEMORY : WAT_OK;
    rollup.expected = expected;
    if (code)
        report->code = code;
    else if (rollup.folds > 1 || (keys->by_path && !rollup.fold->runs))
        fused_any(&location, &rollup, report);
    else if (keys->by_path)
        fused_path(&location, &rollup, report);
    else if (rollup.fold->runs)
        fused_bounded(&location, &rollup, report);
    else
        fused_plain(&location, &rollup, report);
    free(keep);
    if (expected && rollup.met != 1 && report->code != WAT_MEMORY)
        report->code = WAT_OTHERWISE;
    code = rollup_end(&rollup, out, report->code == WAT_MEMORY ? WAT_MEMORY : WAT_OK);
    if (code)
        report->code = code;
    return report->code;
}

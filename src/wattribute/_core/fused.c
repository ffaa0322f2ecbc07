/* wat_read_fold: chooses the loop for the case at hand, and defines the general one. */
#include "many.h"
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

/* One location, its results behind those that are there. */
static int append(const struct wat_location *location, const struct wat_curve *curves, int64_t count,
                  const struct wat_keys *keys, const int64_t *expected, int entered_only, struct wat_fold *out,
                  struct wat_report *report)
{
    struct rollup rollup;
    int code = rollup_begin(&rollup, curves, count, keys);
    rollup.expected = expected;
    if (code)
        report->code = code;
    else if (rollup.folds > 1 || (keys->by_path && !rollup.fold->runs))
        fused_any(location, &rollup, report);
    else if (keys->by_path)
        fused_path(location, &rollup, report);
    else if (rollup.fold->runs)
        fused_bounded(location, &rollup, report);
    else
        fused_plain(location, &rollup, report);
    if (expected && rollup.met != 1 && report->code != WAT_MEMORY)
        report->code = WAT_OTHERWISE;
    code = rollup_end(&rollup, entered_only, out, report->code == WAT_MEMORY ? WAT_MEMORY : WAT_OK);
    if (code)
        report->code = code;
    return report->code;
}

int wat_read_fold(const struct wat_location *given, const struct wat_curve *curves, int64_t count,
                  const struct wat_keys *keys, const int64_t *expected, struct wat_fold *out, struct wat_report *report)
{
    struct wat_location location = *given;
    uint8_t *keep = frames_with_rows(given, keys);
    location.keep = keep;
    memset(out, 0, sizeof *out);
    report->code = WAT_MEMORY;
    if (keep)
        append(&location, curves, count, keys, expected, 0, out, report);
    free(keep);
    return report->code;
}

int64_t wat_read_many_folds(const struct wat_many *given, const struct wat_curve *curves, int64_t count,
                            const struct wat_keys *keys, const int64_t *first, const int64_t (*expected)[2],
                            int entered_only, struct wat_fold *out, int64_t *ends, struct wat_report *reports)
{
    struct in_turn turn;
    struct wat_location like = *given->like;
    struct wat_many many = *given;
    int64_t i = 0;
    uint8_t *keep = frames_with_rows(given->like, keys);
    memset(out, 0, sizeof *out);
    like.keep = keep, many.like = &like;
    reports[0].code = WAT_MEMORY;
    if (keep && !turn_open(&turn, &many)) {
        for (int code = WAT_OK; i < many.count && code != WAT_MEMORY && code != WAT_OTHERWISE; i++) {
            const int64_t *when = expected ? expected[i] : NULL;
            code = append(turn_at(&turn, i), curves + first[i], count, keys, when, entered_only, out, &reports[i]);
            ends[i] = out->calls.length;
        }
        turn_close(&turn);
    }
    free(keep);
    return i;
}

/* Spans rolled up against several curves, by frame or by call path: one fold per curve, and how frames become rows. */
#ifndef WAT_ROLLUP_H
#define WAT_ROLLUP_H

#include "fold.h"
#include "paths.h"

struct rollup {
    const struct wat_keys *keys;
    int64_t curves; /* as given; there is one fold at least, for calls and ticks */
    int64_t folds;
    struct fold *fold;
    struct paths paths;
    const int64_t *expected; /* when the location is expected to be inside a span: start and end; NULL: no matter */
    int met;                 /* how often it was as expected, −1: it was not */
};

int rollup_begin(struct rollup *rollup, const struct wat_curve *curves, int64_t count, const struct wat_keys *keys);

/* Put the results behind those that are there; the rest is freed in any case. */
int rollup_end(struct rollup *rollup, int entered_only, struct wat_fold *out, int code);

/* Whether a curve has bounds. */
int rollup_bounded(const struct rollup *rollup);

/* The location was inside spans from `start` to `end`. */
static inline int rollup_busy(struct rollup *rollup, int64_t start, int64_t end)
{
    if (!rollup->expected || end <= start)
        return WAT_OK;
    rollup->met = !rollup->met && start == rollup->expected[0] && end == rollup->expected[1] ? 1 : -1;
    return rollup->met < 0 ? WAT_OTHERWISE : WAT_OK;
}

/* The row of a frame, −1: it does not count. */
static inline int64_t row_of_frame(const struct wat_keys *keys, int64_t frame)
{
    int64_t row = frame >= 0 && frame < keys->frames ? keys->row[frame] : -1;
    return row < keys->rows ? row : -1;
}

/* The row of a call path that is new, and room for it in all folds; −1: no memory. */
int64_t rollup_new_path(struct paths *paths, struct fold *folds, int64_t count, int32_t frame);

/* The row of the call path of a span of that frame that opens now; −1: no memory. */
static inline int64_t rollup_path(struct paths *paths, struct fold *folds, int64_t count, int32_t frame)
{
    int64_t row = path_find(paths, folds->top->row, frame);
    return __builtin_expect(row >= 0, 1) ? row : rollup_new_path(paths, folds, count, frame);
}

/* The row of a span of that frame that opens now; −1: no memory. */
static inline int64_t rollup_row(struct rollup *rollup, int32_t frame)
{
    return rollup->keys->by_path ? rollup_path(&rollup->paths, rollup->fold, rollup->folds, frame)
                                 : rollup->keys->row[frame];
}

/* A span of that row opens; −1: no memory. */
static inline int rollup_open_row(struct rollup *rollup, int64_t row, int resumed, int64_t time)
{
    int code = row < 0 ? WAT_MEMORY : WAT_OK;
    for (int64_t i = 0; i < rollup->folds && !code; i++)
        code = fold_open(&rollup->fold[i], row, resumed, time, rollup->fold[i].runs != NULL);
    return code;
}

/* A span of a frame that counts opens. */
static inline int rollup_open(struct rollup *rollup, int32_t frame, int resumed, int64_t time)
{
    return rollup_open_row(rollup, rollup_row(rollup, frame), resumed, time);
}

/* One opens and closes with nothing inside it. */
static inline int rollup_leaf(struct rollup *rollup, int32_t frame, int64_t start, int64_t end)
{
    int64_t row = rollup_row(rollup, frame);
    for (int64_t i = 0; i < rollup->folds && row >= 0; i++)
        fold_leaf(&rollup->fold[i], row, start, end, rollup->fold[i].runs != NULL);
    return row < 0 ? WAT_MEMORY : WAT_OK;
}

/* The span opened last closes. */
static inline void rollup_close(struct rollup *rollup, int64_t time)
{
    for (int64_t i = 0; i < rollup->folds; i++)
        fold_close(&rollup->fold[i], time, rollup->fold[i].runs != NULL);
}

#endif

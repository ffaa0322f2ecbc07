/* The usual case of wat_read_fold by call path: one curve with bounds. */
#include "rollup.h"

#define path_row(sink, frame) rollup_path(&(sink)->rollup->paths, &(sink)->fold, 1, frame)
#define open_rows(sink, frame, resumed, time) open_path(&(sink)->fold, path_row(sink, frame), resumed, time)
#define leaf_rows(sink, frame, start, end) leaf_path(&(sink)->fold, path_row(sink, frame), start, end)
#define close_rows(sink, time) fold_close(&(sink)->fold, time, 1)
#define FIRST(sink) (&(sink)->fold)
#define FUSED fused_path
void FUSED(const struct wat_location *, struct rollup *, struct wat_report *);

static inline __attribute__((always_inline)) int open_path(struct fold *fold, int64_t row, int resumed, int64_t time)
{
    return row < 0 ? WAT_MEMORY : fold_open(fold, row, resumed, time, 1);
}

static inline __attribute__((always_inline)) int leaf_path(struct fold *fold, int64_t row, int64_t start, int64_t end)
{
    if (row >= 0)
        fold_leaf(fold, row, start, end, 1);
    return row < 0 ? WAT_MEMORY : WAT_OK;
}

#include "fused.h"

/* The usual case of wat_read_fold with bounds: one curve, by frame. */
#include "rollup.h"

#define open_rows(sink, frame, resumed, time) \
    fold_open(&(sink)->fold, (sink)->row[frame], resumed, time, 1)
#define leaf_rows(sink, frame, start, end) \
    (fold_leaf(&(sink)->fold, (sink)->row[frame], start, end, 1), WAT_OK)
#define close_rows(sink, time) fold_close(&(sink)->fold, time, 1)
#define FIRST(sink) (&(sink)->fold)
#define FUSED fused_bounded
void FUSED(const struct wat_location *, struct rollup *, struct wat_report *);
#include "fused.h"

/* The usual case of wat_read_fold without bounds: one curve, by frame. */
#include "rollup.h"

#define open_rows(rollup, frame, resumed, time) \
    fold_open((rollup)->fold, (rollup)->keys->row[frame], resumed, time, 0)
#define leaf_rows(rollup, frame, start, end) \
    (fold_leaf((rollup)->fold, (rollup)->keys->row[frame], start, end, 0), WAT_OK)
#define close_rows(rollup, time) fold_close((rollup)->fold, time, 0)
#define FUSED fused_plain
void FUSED(const struct wat_location *, struct rollup *, struct wat_report *);
#include "fused.h"

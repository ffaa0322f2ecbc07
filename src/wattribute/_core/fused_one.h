/* The usual case of wat_read_fold: one curve, by frame. The file that includes it defines FUSED, the name of the function
 * it makes, and BOUNDED, whether the curve has bounds. */
#include "rollup.h"

#define open_rows(sink, frame, resumed, time) fold_open(&(sink)->fold, (sink)->row[frame], resumed, time, BOUNDED)
#define leaf_rows(sink, frame, start, end) (fold_leaf(&(sink)->fold, (sink)->row[frame], start, end, BOUNDED), WAT_OK)
#define close_rows(sink, time) fold_close(&(sink)->fold, time, BOUNDED)
#define FIRST(sink) (&(sink)->fold)
void FUSED(const struct wat_location *, struct rollup *, struct wat_report *);
#include "fused.h"

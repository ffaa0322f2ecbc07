/* The same roll-ups over span columns that are in memory already. */
#include "columns.h"
#include "rollup.h"

#include <stdlib.h>
#include <string.h>

int wat_busy(const int64_t *start, const int64_t *end, const int32_t *frame, int64_t n, const uint8_t *keep,
             int64_t frames, struct wat_column *out_start, struct wat_column *out_end)
{
    int64_t reach = INT64_MIN;
    int code = WAT_OK;
    memset(out_start, 0, sizeof *out_start);
    memset(out_end, 0, sizeof *out_end);
    for (int64_t i = 0; i < n && !code; i++) {
        if (end[i] <= start[i] || (keep && (frame[i] < 0 || frame[i] >= frames || !keep[frame[i]])))
            continue;
        if (!out_start->length || start[i] > reach) {
            code = COLUMN_ADD(*out_start, int64_t, start[i]) || COLUMN_ADD(*out_end, int64_t, end[i]) ? WAT_MEMORY : 0;
            reach = end[i];
        } else if (end[i] > reach) {
            reach = COLUMN(*out_end, int64_t)[out_end->length - 1] = end[i];
        }
    }
    return code;
}

/* Spans in the order they began, a parent before its children: a span ends when one comes that is not inside it. */
int wat_fold(const int64_t *start, const int64_t *end, const int32_t *frame, const int64_t *parent,
             const uint8_t *resumed, int64_t n, const struct wat_curve *curves, int64_t count,
             const struct wat_keys *keys, struct wat_fold *out)
{
    struct rollup rollup;
    struct wat_column stack = {NULL, 0, 0}; /* rows of the open spans */
    memset(out, 0, sizeof *out);
    int code = rollup_begin(&rollup, curves, count, keys);
    for (int64_t i = 0; i <= n && !code; i++) {
        int64_t inside = i < n ? parent[i] : -1;
        while (stack.length && COLUMN(stack, int64_t)[stack.length - 1] != inside) {
            int64_t ended = COLUMN(stack, int64_t)[--stack.length];
            if (row_of_frame(keys, frame[ended]) >= 0)
                rollup_close(&rollup, end[ended]);
        }
        if (i == n)
            break;
        if (row_of_frame(keys, frame[i]) >= 0)
            code = rollup_open(&rollup, frame[i], resumed[i], start[i]);
        if (!code)
            code = COLUMN_ADD(stack, int64_t, i);
    }
    wat_free(stack.data, stack.bytes);
    return rollup_end(&rollup, 0, out, code);
}

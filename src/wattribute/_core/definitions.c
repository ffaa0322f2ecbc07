/* Global definitions as numbers: the records of traces.def whose fields are integers, one row each. What is odd is left
 * to readers/otf2/definitions.py, which goes on where this stops. */
#include "columns.h"
#include "input.h"

/* a row: kind, begin and end of the payload, 1 if `field` holds its fields, which are −1 where they are undefined */
struct definition {
    int64_t kind, begin, end, decoded, field[WAT_FIELDS];
};

/* The fields of a record by its layout (c compressed integer, 1 byte); 0 if that is not all there is to it. */
static int decode(const char *layout, const uint8_t *at, const uint8_t *end, int64_t *field)
{
    int i = 0;
    for (; layout[i] && i < WAT_FIELDS; i++) {
        uint64_t value;
        if (at >= end || (layout[i] != 'c' && layout[i] != '1'))
            return 0;
        if (layout[i] == '1') {
            field[i] = *at++;
            continue;
        }
        int undefined = *at == 0xFF;
        at = compressed(at, end, &value);
        if (!at || (value > INT64_MAX && !undefined))
            return 0;
        field[i] = (int64_t)value;
    }
    return i && !layout[i];
}

/* `data` is followed by SLACK bytes that may be looked at; returns the byte up to which all is in `out`. */
int64_t wat_read_definitions(const uint8_t *data, int64_t size, int64_t chunk, const char *const *layouts,
                             struct wat_column *out)
{
    int64_t at = 0;
    memset(out, 0, sizeof *out);
    while (at < size) {
        struct definition row = {.kind = data[at]};
        int64_t chunk_end = chunk > 0 ? (at / chunk + 1) * chunk : 0;
        if (row.kind == 3 && chunk_end && at % chunk == 0 && size - at >= HEADER_BYTES && data[at + 1] == 0x42) {
            at += HEADER_BYTES;
            continue;
        }
        if (row.kind == 0 && chunk_end) {
            at = chunk_end;
            continue;
        }
        if (row.kind < 5 || size - at < 2 || data[at + 1] == 0xFF)
            break;
        row.begin = at + 2, row.end = row.begin + data[at + 1];
        if (row.end > size || row.end > chunk_end)
            break;
        row.decoded = decode(layouts[row.kind], data + row.begin, data + row.end, row.field);
        if (COLUMN_ADD(*out, struct definition, row))
            break;
        at = row.end;
    }
    return at < size ? at : size;
}

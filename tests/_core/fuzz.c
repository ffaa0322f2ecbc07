/* Damages event and definition files in every way it can think of and reads them with every reader of the core; built
 * with sanitizers, which abort on the first misstep. What is read must also make sense.
 *
 * usage: fuzz FOLDER FILES SEED: FOLDER holds seeds N.evt and N.def, and is where damaged copies are written. */
#include "wattribute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 16, FRAMES = 40, CONTEXTS = 6, REGIONS = 32, DAMAGED = 1000 /* the id of what is read */ };

struct file {
    uint8_t *bytes;
    size_t size;
};

static uint64_t state;

static uint64_t dice(uint64_t sides)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return sides ? state % sides : 0;
}

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static struct file load(const char *path)
{
    struct file file = {NULL, 0};
    FILE *in = fopen(path, "rb");
    if (!in)
        return file;
    file.bytes = malloc(1 << 20);
    file.size = fread(file.bytes, 1, 1 << 19, in);
    fclose(in);
    return file;
}

static void save(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *out = fopen(path, "wb");
    MUST(out);
    MUST(fwrite(bytes, 1, size, out) == size);
    fclose(out);
}

/* One change: a byte, a word, a cut, a piece moved, removed or written twice. */
static size_t damage(uint8_t *bytes, size_t size)
{
    static const uint8_t telling[] = {0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13, 31, 46, 49, 60, 61, 66, 67, 68, 0x7F, 0xFF};
    size_t at = dice(size), length = dice(40) + 1, to = dice(size);
    uint64_t word = dice(3) ? dice(300) : (uint64_t)-1 - dice(20);
    switch (dice(9)) {
    case 0: bytes[at] ^= (uint8_t)(1 << dice(8)); break;
    case 1: bytes[at] = telling[dice(sizeof telling)]; break;
    case 2: bytes[at] = (uint8_t)dice(256); break;
    case 3: if (at + 8 <= size) memcpy(bytes + at, &word, 8); break;
    case 4: return dice(4) ? size : at;
    case 5: if (at + length <= size && to + length <= size) memmove(bytes + to, bytes + at, length); break;
    case 6: if (at + length <= size) { memmove(bytes + at, bytes + at + length, size - at - length); size -= length; } break;
    case 7: if (at + length <= size) { memmove(bytes + at + length, bytes + at, size - at); size += length; } break;
    default: memset(bytes + at, (int)dice(2) * 255, at + length <= size ? length : size - at);
    }
    return size;
}

static size_t damaged_copy(const struct file *file, uint8_t *bytes)
{
    size_t size = file->size;
    memcpy(bytes, file->bytes, size);
    for (uint64_t i = dice(6); i-- && size > 1 && size < 1 << 19;)
        size = damage(bytes, size);
    return size;
}

static void drop(struct wat_column *columns, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *columns; i++)
        wat_free(columns[i].data, columns[i].bytes);
}
#define DROP(columns) drop((struct wat_column *)&(columns), sizeof(columns))

static int64_t counted(const struct wat_report *report)
{
    int64_t total = 0;
    for (int i = 0; i < 256; i++)
        total += report->counts[i];
    return total;
}

/* The bytes of a file as global definitions: rows stay inside them, and no byte beyond the slack is looked at. */
static void definitions(const char *path)
{
    const char *layouts[256];
    struct wat_column rows;
    static uint8_t bytes[1 << 16];
    for (int kind = 0; kind < 256; kind++)
        layouts[kind] = kind % 3 ? "cc1cc" : kind % 2 ? "cs" : "ccc1cccc11cc";
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    uint8_t *data = calloc(size + 32, 1); /* of its own, so that the sanitizer sees its end */
    memcpy(data, bytes, size);
    int64_t stop = wat_read_definitions(data, (int64_t)size, dice(4) ? 512 : (int64_t)dice(700), layouts, &rows);
    MUST(stop >= 0 && stop <= (int64_t)size);
    for (int64_t i = 0; i < rows.length; i++) {
        const int64_t *row = (int64_t *)rows.data + i * (4 + WAT_FIELDS);
        MUST(row[0] >= 5 && row[0] < 256 && row[1] <= row[2] && row[2] <= stop);
    }
    wat_free(rows.data, rows.bytes);
    free(data);
}

/* Between two others in one call the location gives the spans and the metrics that it gives alone. */
static void read_many(const struct wat_location *location, const char *folder, const struct wat_spans *alone,
                      const struct wat_report *report)
{
    static struct wat_report reports[3];
    const uint64_t id[] = {0, DAMAGED, 0}, declared[] = {dice(500), location->declared, UINT64_MAX};
    struct wat_many many = {location, folder, id, declared, 3};
    struct wat_spans spans;
    struct wat_metrics metrics;
    int64_t ends[3], ends_of_metrics[3][2];
    MUST(wat_read_many_spans(&many, &spans, ends, reports) == WAT_OK);
    MUST(!memcmp(&reports[1], report, sizeof *report));
    MUST(ends[1] - ends[0] == alone->start.length && ends[2] - ends[1] == ends[0] && spans.start.length == ends[2]);
    size_t rows = (size_t)alone->start.length;
    if (rows) {
        MUST(!memcmp((int64_t *)spans.start.data + ends[0], alone->start.data, 8 * rows));
        MUST(!memcmp((int64_t *)spans.end.data + ends[0], alone->end.data, 8 * rows));
        MUST(!memcmp((int64_t *)spans.parent.data + ends[0], alone->parent.data, 8 * rows));
        MUST(!memcmp((uint8_t *)spans.resumed.data + ends[0], alone->resumed.data, rows));
    }
    DROP(spans);
    MUST(wat_read_many_metrics(&many, &metrics, ends_of_metrics, reports) == WAT_OK);
    MUST(ends_of_metrics[2][0] == metrics.time.length && ends_of_metrics[2][1] == metrics.bits.length);
    DROP(metrics);
    uint8_t found[3];
    MUST(wat_find_many(&many, found) == WAT_OK && found[0] && found[2]);
}

static struct wat_stream *taken_from;
static int64_t taken;

static int take_rows(void)
{
    struct wat_rows rows;
    wat_stream_take(taken_from, &rows);
    taken += rows.start.length;
    DROP(rows);
    return 0;
}

static void read_all(const struct wat_location *location, const char *folder, const struct wat_curve *curves)
{
    static struct wat_report report, again;
    int32_t row[FRAMES];
    struct wat_events events;
    struct wat_metrics metrics;
    struct wat_spans spans;
    struct wat_column start, end;
    struct wat_fold fold;
    for (int i = 0; i < FRAMES; i++)
        row[i] = i % 7 - 1;

    definitions(location->local);
    definitions(location->evt);
    wat_read_events(location, &events, &metrics, &report);
    MUST(report.code >= WAT_OK && report.code < WAT_MEMORY);
    MUST(events.time.length == counted(&report) && events.kind.length == events.time.length);
    MUST(metrics.time.length == metrics.n.length && metrics.type.length == metrics.bits.length);
    DROP(events), DROP(metrics);

    wat_read_metrics(location, 1, &metrics, &again);
    DROP(metrics);
    wat_read_spans(location, 1, &spans, &metrics, &again);
    DROP(spans), DROP(metrics);

    wat_read_spans(location, 0, &spans, &metrics, &report);
    for (int64_t i = 0; i < spans.start.length; i++) {
        MUST(((int64_t *)spans.end.data)[i] >= ((int64_t *)spans.start.data)[i]);
        MUST(((int64_t *)spans.parent.data)[i] < i && ((int64_t *)spans.parent.data)[i] >= -1);
        MUST(((int32_t *)spans.frame.data)[i] >= 0 && ((int32_t *)spans.frame.data)[i] < FRAMES);
    }

    read_many(location, folder, &spans, &report);
    int32_t on_disk;
    wat_read_busy(location, NULL, &start, &end, &on_disk, &again);
    MUST(!memcmp(&again, &report, sizeof report));
    for (int64_t i = 0; i < start.length; i++) {
        MUST(((int64_t *)end.data)[i] > ((int64_t *)start.data)[i]);
        MUST(!i || ((int64_t *)start.data)[i] > ((int64_t *)end.data)[i - 1]);
    }
    static const int32_t same_row[FRAMES];
    struct wat_keys one_row = {same_row, FRAMES, 1, 0};
    const uint64_t ids[2] = {DAMAGED, DAMAGED}, declared[2] = {location->declared, location->declared};
    struct wat_many twice = {location, folder, ids, declared, 2};
    static struct wat_report both[2];
    int64_t expected[2][2], ends[2];
    static const int64_t first[2];
    uint8_t guessed[2];
    MUST(wat_guess_many_busy(&twice, expected, guessed) == WAT_OK);
    MUST(guessed[0] == guessed[1]);
    if (guessed[0]) {
        int64_t done = wat_read_many_folds(&twice, curves, 1, &one_row, first, expected, 0, &fold, ends, both);
        int right = start.length == 1 && *(int64_t *)start.data == expected[0][0] && *(int64_t *)end.data == expected[0][1];
        MUST(both[0].code == WAT_OTHERWISE ? done == 1 : done == 2 && right && !memcmp(&both[1], &report, sizeof report));
        DROP(fold);
    }
    for (int entered_only = 0; entered_only < 2; entered_only++) {
        struct wat_keys keys = {row, FRAMES, 6, 0};
        MUST(wat_read_many_folds(&twice, curves, 2, &keys, first, NULL, entered_only, &fold, ends, both) == 2);
        MUST(!memcmp(&both[1], &report, sizeof report));
        MUST(ends[1] == 2 * ends[0] && fold.calls.length == ends[1] && fold.total_value.length == 2 * ends[1]);
        MUST(entered_only ? fold.row.length == ends[1] : ends[0] == 6);
        DROP(fold);
    }
    DROP(start), DROP(end);

    for (int by_path = 0; by_path < 2; by_path++)
        for (int count = 0; count < 3; count++) {
            struct wat_keys keys = {row, FRAMES, 6, by_path};
            wat_read_fold(location, curves, count, &keys, NULL, &fold, &again);
            MUST(!memcmp(&again, &report, sizeof report));
            MUST(by_path || fold.calls.length == 6);
            MUST(fold.self_value.length == fold.calls.length * count);
            DROP(fold);
            wat_fold(spans.start.data, spans.end.data, spans.frame.data, spans.parent.data, spans.resumed.data,
                     spans.start.length, curves, count, &keys, &fold);
            DROP(fold);
        }
    struct wat_keys keys = {row, FRAMES, 6, 0};
    struct wat_stream *stream = wat_stream_open(curves, 2, &keys, 1);
    taken = 0, taken_from = stream;
    wat_read_rows(location, stream, 3, take_rows, &again);
    MUST(!memcmp(&again, &report, sizeof report));
    take_rows();
    int64_t with_row = 0;
    for (int64_t i = 0; i < spans.start.length; i++)
        with_row += row[((int32_t *)spans.frame.data)[i]] >= 0;
    MUST(taken == with_row);
    wat_stream_close(stream, &fold, 0);
    DROP(spans), DROP(metrics);
}

static void tables(struct wat_location *location)
{
    static int32_t region[REGIONS], frame[CONTEXTS], parent[CONTEXTS];
    static uint8_t keep[FRAMES], metric[4];
    for (int i = 0; i < REGIONS; i++)
        region[i] = dice(9) ? (int32_t)dice(FRAMES) : -1;
    for (int i = 0; i < CONTEXTS; i++) {
        frame[i] = (int32_t)dice(FRAMES) - 1;
        parent[i] = dice(2) ? i - 1 : (int32_t)dice(CONTEXTS + 2) - 1; /* now and then a circle, or out of range */
    }
    for (int i = 0; i < FRAMES; i++)
        keep[i] = dice(8) != 0;
    for (int i = 0; i < 4; i++)
        metric[i] = dice(2) != 0;
    location->region = region, location->regions = (int64_t)dice(REGIONS + 1);
    location->context_frame = frame, location->context_parent = parent, location->contexts = (int64_t)dice(CONTEXTS + 1);
    location->keep = keep, location->frames = FRAMES;
    location->metric = dice(3) ? NULL : metric, location->metrics = 4;
    location->put = 33, location->get = 34, location->atomic = 35;
    location->flush = dice(4) ? 36 : -1, location->off = dice(4) ? 37 : -1;
}

int main(int argc, char **argv)
{
    static const uint64_t sizes[] = {0, 1, 31, 32, 64, 100, 512, 1024, 1 << 18, 1 << 20, UINT64_MAX};
    static uint8_t bytes[1 << 20];
    struct file evt[SEEDS], def[SEEDS];
    char name[4096], evt_path[4096], def_path[4096];
    int seeds = 0;
    if (argc != 4)
        return 2;
    state = strtoull(argv[3], NULL, 10) * 2654435761u + 88172645463325252u;
    for (; seeds < SEEDS; seeds++) {
        snprintf(name, sizeof name, "%s/%d.evt", argv[1], seeds);
        evt[seeds] = load(name);
        snprintf(name, sizeof name, "%s/%d.def", argv[1], seeds);
        def[seeds] = load(name);
        if (!evt[seeds].bytes || !def[seeds].bytes)
            break;
    }
    MUST(seeds);
    snprintf(evt_path, sizeof evt_path, "%s/%d.evt", argv[1], DAMAGED);
    snprintf(def_path, sizeof def_path, "%s/%d.def", argv[1], DAMAGED);
    int64_t times[] = {-5, 0, 40, 41, 5000, 100000}, edge = times[5];
    double values[] = {0, 1, 2.5, 2.5, 7, 90}, low[] = {.1, .2, 0, 1, 2}, high[] = {1, 1.5, 0, 4.5, 83};
    struct wat_curve curves[] = {{times, values, 6, times, &edge, 1, times, low, high, 5, 30},
                                 {times, values, 6, times, times + 1, 1, NULL, NULL, NULL, 0, 0}};
    for (long i = 0; i < atol(argv[2]); i++) {
        int seed = (int)dice((uint64_t)seeds);
        struct wat_location location = {.evt = evt_path, .local = def_path, .offset_ticks = dice(1000)};
        location.evt_chunk = dice(4) ? 512 : sizes[dice(11)], location.def_chunk = dice(4) ? 512 : sizes[dice(11)];
        location.declared = dice(2) ? dice(5000) : UINT64_MAX;
        tables(&location);
        save(evt_path, bytes, damaged_copy(&evt[seed], bytes));
        if (dice(2))
            save(def_path, bytes, damaged_copy(&def[seed], bytes));
        else
            save(def_path, def[seed].bytes, def[seed].size);
        read_all(&location, argv[1], curves);
    }
    for (int i = 0; i <= seeds && i < SEEDS; i++)
        free(evt[i].bytes), free(def[i].bytes);
    printf("%s files read, none did harm\n", argv[2]);
    return 0;
}

/* The C core's face: plain pointers and lengths in, columns and a status out. No Python, no global state: any number of
 * calls may run at once. _core/otf2.py and _core/kernels.py are the ctypes side; reference*.py say the same in Python. */
#ifndef WATTRIBUTE_H
#define WATTRIBUTE_H

#include <stddef.h>
#include <stdint.h>

enum { WAT_FIELDS = 12 }; /* of a definition, at most */

#define WAT_API __attribute__((visibility("default")))

/* in the order of records.CODES */
enum wat_code {
    WAT_OK,
    WAT_MISSING,
    WAT_PERMISSION,
    WAT_IO,
    WAT_EMPTY,
    WAT_ENDIAN,
    WAT_TRUNCATED,
    WAT_CORRUPT,
    WAT_COUNT,
    WAT_MEMORY,
    WAT_OTHERWISE, /* of wat_read_fold: the location was not busy as expected; it stopped there */
    WAT_SPACE      /* of wat_read_busy and wat_split: no room in the folder for what outgrows memory */
};

/* one location's files and the look-up tables of records.Tables */
struct wat_location {
    const char *evt, *local;
    uint64_t evt_chunk, def_chunk, offset_ticks, declared;
    const int32_t *region;
    int64_t regions;
    const int32_t *context_frame, *context_parent;
    int64_t contexts;
    const uint8_t *keep;
    int64_t frames;
    const uint8_t *metric; /* NULL: keep all */
    int64_t metrics;
    int32_t put, get, atomic, flush, off;
};

/* locations of one archive whose files are named by their ids (folder/7.evt) and that have all else in common */
struct wat_many {
    const struct wat_location *like; /* any of them: evt, local and declared are not looked at */
    const char *folder;
    const uint64_t *id, *declared;
    int64_t count;
};

/* what every reading of a location reports */
struct wat_report {
    int32_t code, in_local; /* in_local: the damage is in the .def file */
    uint64_t byte;
    int64_t counts[256];
    int64_t program[2];
    int64_t orphans, repaired, unclosed, undefined, backward, renamed;
    int64_t events, unknown; /* in all, and of kinds that are not known */
};

/* memory that the caller gives back with wat_free */
struct wat_column {
    void *data;
    int64_t length; /* elements */
    int64_t bytes;  /* allocated */
};

struct wat_spans {
    struct wat_column start, end, frame, parent, depth, resumed;
};

struct wat_metrics {
    struct wat_column time, id, n, type, bits;
};

struct wat_events {
    struct wat_column time, kind, ref;
};

/* model.Curve; edges == NULL: no bounds */
struct wat_curve {
    const int64_t *times;
    const double *values;
    int64_t knots;
    const int64_t *piece_start, *piece_end;
    int64_t pieces;
    const int64_t *edges;
    const double *low, *high;
    int64_t windows, latency;
    int32_t on_disk; /* times and values are pages of a file: those that were passed are given up */
};

/* shares.Split of users who share evenly: S(t), the least and greatest share in each window of bounds, and idle */
struct wat_split {
    struct wat_column times, values, least, greatest;
    double idle;
    int32_t on_disk; /* times and values are pages of a file */
};

/* model.Keys */
struct wat_keys {
    const int32_t *row;
    int64_t frames, rows;
    int32_t by_path;
};

/* model.Fold: per row, or per (curve, row) row-major; bounds only if a curve has edges; paths only by path */
struct wat_fold {
    struct wat_column calls, self_ticks, total_ticks;
    struct wat_column self_covered, total_covered, self_value, total_value;
    struct wat_column self_low, self_high, total_low, total_high;
    struct wat_column path_frame, path_parent;
    struct wat_column row; /* by row: its number, where only those that were entered are returned */
};

/* a row per span: model.SpanRows; those from self_covered on per (curve, row) */
struct wat_rows {
    struct wat_column start, end, frame, depth, self_ticks;
    struct wat_column self_covered, total_covered, self_value, total_value;
    struct wat_column self_low, self_high, total_low, total_high;
};

/* how a number is asked for; in the order of polling.CALL … */
enum wat_kind { WAT_CALL, WAT_CALL_WITH, WAT_SAME, WAT_WORDS, WAT_EVENT };

/* One number that a meter reads again and again. Calls fill in `answer` and return 0; the number are the unsigned `bytes`
 * at `value`, if `failed` (where the call's code goes) and `refused` (in the answer, or NULL) hold 0. */
struct wat_source {
    int32_t kind, slot; /* slot: its place in a row */
    union {
        int (*call)(void *handle, void *answer);
        int (*call_with)(void *handle, unsigned argument, void *answer);
    };
    void *handle, *answer;
    const void *value;
    const int32_t *refused;
    int32_t *failed;
    int32_t bytes, argument; /* argument: of the call, or an open file */
    uint32_t words;          /* WAT_WORDS: bits of the words of the file that are added up */
    int64_t pause_ns, asked_ns;
};

struct wat_meter {
    struct wat_source *sources;
    int64_t count, slots, due_ns, interval_ns;
};

struct wat_stream;

/* called when there are as many rows as wanted; not 0: stop */
typedef int (*wat_full)(void);

WAT_API void wat_free(void *data, int64_t bytes);

WAT_API int wat_read_events(const struct wat_location *, struct wat_events *, struct wat_metrics *,
                            struct wat_report *);
WAT_API int wat_read_parameters(const struct wat_location *, struct wat_column *time, struct wat_column *value,
                                struct wat_report *);
WAT_API int wat_read_spans(const struct wat_location *, int metrics, struct wat_spans *, struct wat_metrics *,
                           struct wat_report *);
WAT_API int wat_read_metrics(const struct wat_location *, int wanted, struct wat_metrics *, struct wat_report *);
/* Many locations in one call, one behind the other in the columns; for each where its rows end (of metrics: its events
 * and their members), and a report. */
WAT_API int wat_read_many_spans(const struct wat_many *, struct wat_spans *, int64_t *ends, struct wat_report *reports);
WAT_API int wat_read_many_metrics(const struct wat_many *, struct wat_metrics *, int64_t (*ends)[2],
                                  struct wat_report *reports);
/* 1 for each whose event file is there, is a file, is not empty and may be read */
WAT_API int wat_find_many(const struct wat_many *, uint8_t *found);
/* `folder`: where large results go, NULL: into memory; `on_disk`: whether they are pages of a file */
WAT_API int wat_read_busy(const struct wat_location *, const char *folder, struct wat_column *start,
                          struct wat_column *end, int32_t *on_disk, struct wat_report *);
/* `expected`: NULL, or the start and the end of the one interval that wat_read_busy would find */
WAT_API int wat_read_fold(const struct wat_location *, const struct wat_curve *, int64_t curves,
                          const struct wat_keys *, const int64_t *expected, struct wat_fold *, struct wat_report *);
/* Many locations in one call, each against `curves` curves from number `first` on (all have bounds or none has): per-row
 * columns one location behind the other, and so (curve, row) columns; for each where its rows end, and a report. Gives
 * how many were folded: it stops behind one that was not busy as expected. */
WAT_API int64_t wat_read_many_folds(const struct wat_many *, const struct wat_curve *, int64_t curves,
                                    const struct wat_keys *, const int64_t *first, const int64_t (*expected)[2],
                                    int entered_only, struct wat_fold *, int64_t *ends, struct wat_report *reports);
/* For each the start and the end that wat_read_fold may expect, where `guessed` becomes 1 */
WAT_API int wat_guess_many_busy(const struct wat_many *, int64_t (*moments)[2], uint8_t *guessed);

WAT_API int64_t wat_read_definitions(const uint8_t *data, int64_t size, int64_t chunk, const char *const *layouts,
                                     struct wat_column *rows);

WAT_API int wat_busy(const int64_t *start, const int64_t *end, const int32_t *frame, int64_t n, const uint8_t *keep,
                     int64_t frames, struct wat_column *out_start, struct wat_column *out_end);
/* Users are given by their busy intervals; knots are the moments between `first` and `last` at which one of them starts
 * or stops, and those of the curve. `on_disk`: whether a user's intervals are pages of a file; `folder`: where large
 * results go, NULL: into memory. */
WAT_API int wat_split(const struct wat_curve *energy, int64_t first, int64_t last, const int64_t *const *start,
                      const int64_t *const *end, const int64_t *count, const uint8_t *on_disk, int64_t users,
                      const char *folder, struct wat_split *);
WAT_API int wat_fold(const int64_t *start, const int64_t *end, const int32_t *frame, const int64_t *parent,
                     const uint8_t *resumed, int64_t n, const struct wat_curve *, int64_t curves,
                     const struct wat_keys *, struct wat_fold *);

/* Spans that come in pieces, numbered from `first`; curves and keys have to live as long as the stream. `each`: a row per
 * span, to be taken between pieces; otherwise the roll-up comes with wat_stream_close. */
WAT_API struct wat_stream *wat_stream_open(const struct wat_curve *, int64_t curves, const struct wat_keys *, int each);
WAT_API int wat_stream_feed(struct wat_stream *, int64_t first, const int64_t *start, const int64_t *end,
                            const int32_t *frame, const int64_t *parent, const uint8_t *resumed, int64_t n);
WAT_API void wat_stream_finish(struct wat_stream *);
WAT_API int wat_stream_take(struct wat_stream *, struct wat_rows *);
WAT_API int wat_stream_close(struct wat_stream *, struct wat_fold *, int code);
WAT_API int wat_read_rows(const struct wat_location *, struct wat_stream *, int64_t most, wat_full,
                          struct wat_report *);

/* Ask a meter's sources whose pauses are over; per slot of `row` (time, value), and the time when that was done. */
WAT_API int64_t wat_read_sources(const struct wat_meter *, int64_t *row);
/* Read meters when they are due, until a reading at or after `enough_ns`, until `latest_ns`, or until something comes in
 * `file`. Rows: (number of the meter, time when it was read, per slot (time, value)); gives how much of `room` is filled. */
WAT_API int64_t wat_poll(struct wat_meter *, int64_t meters, int file, int64_t enough_ns, int64_t latest_ns,
                         int64_t *rows, int64_t room);

#endif

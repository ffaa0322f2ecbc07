/* The watch over a Python process: watch.c; recorders/watch.py is the ctypes side. Linux only. */
#ifndef WATTRIBUTE_WATCH_H
#define WATTRIBUTE_WATCH_H

#include "wattribute.h"

enum { WAT_STACK_RUNS = 1 << 30, WAT_STACK_WAITS = 1 << 29, WAT_DELAY_LANE = 1 << 30 }; /* as in layouts.py */
#define WAT_MEMORY_LANE UINT32_MAX                                                      /* layouts.MEMORY_LANE */
#define WAT_NATIVE_LANE (UINT32_MAX - 1)                                                /* layouts.NATIVE_LANE */
#define WAT_COUNTER_LANE (UINT32_MAX - 2)                                               /* layouts.COUNTER_LANE */
#define WAT_MOST_COUNTERS 16                                                            /* watch.MOST_COUNTERS */

/* where the interpreter keeps what, in bytes; in the order of watch.Layout */
struct wat_layout {
    int64_t state_next, state_ident, state_frame, state_size;
    int64_t has_cframe, cframe_frame; /* the frame is found by way of another structure */
    int64_t frame_code, frame_previous, frame_instruction, frame_owner, frame_size;
    int64_t object_type;
    int64_t code_file, code_name, code_first, code_flags, code_lines, code_bytes, code_size;
    int64_t string_length, string_state, string_kind, string_ascii, string_compact;
    int64_t bytes_length, bytes_data;
    int64_t is_pep626; /* Python 3.10: the table of lines, and the instruction is a number */
};

struct wat_watch_order {
    struct wat_layout layout;
    uint64_t code_type, hidden; /* hidden: a thread that is not recorded */
    void *interpreter;
    void *(*thread_head)(void *interpreter);
    int64_t interval_ns, task_offset, page_bytes, counter_pause_ns;
    int32_t names_file, samples_file, memory_file, request_file;
    int32_t stacks, lines;
    uint32_t first_lane;
    int32_t counters, counter_files[WAT_MOST_COUNTERS]; /* quick energy counters, read at looks */
};

struct wat_watch;

/* From the start of a pthread_t to the kernel's number of the thread; -1: not there. */
WAT_API int64_t wat_watch_task_offset(void);
WAT_API struct wat_watch *wat_watch_open(const struct wat_watch_order *);
/* The calling thread's code objects, innermost first, and what the innermost is called: to compare with what is known. */
WAT_API int64_t wat_watch_check(struct wat_watch *, uint64_t state, uint64_t *codes, int64_t room, char *text,
                                int64_t size);
/* Where all threads stand; of the calling one the stack too, without its `skipped` innermost frames (-1: none). Gives
 * its lane. */
WAT_API uint32_t wat_watch_begin(struct wat_watch *, uint64_t ident, int skipped);
WAT_API int wat_watch_start(struct wat_watch *);
WAT_API void wat_watch_pause(struct wat_watch *);
/* `is_end`: say that every thread is gone; 0 in the child of a fork, whose parent's files are not its own. */
WAT_API void wat_watch_close(struct wat_watch *, int is_end);

#endif

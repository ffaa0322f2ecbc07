/* A thread that looks at the stacks and CPU clocks of a Python process from inside it, without the GIL.
 *
 * It never stops or signals the program. Frames are copied with process_vm_readv from the process itself: an address that
 * is stale gives an error, not a fault. What was copied while the program ran on may be torn: a stack counts only if it
 * leads through code objects to its outermost frame, otherwise it is read again. Addresses of the interpreter's fields
 * come from recorders/watch.py, which compares a first walk with what the interpreter says before it trusts them.
 * Rows are those of journal/layouts.py, names those of recorders/stacks.py. */
#define _GNU_SOURCE
#include "watch.h"

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    MOST_PAGES = 64,    /* of one thread that are copied at once */
    MOST_FRAMES = 2048, /* of a stack; what lies further out is not looked at */
    TRIES = 3,
    MOST_NAME = 2000,   /* characters */
    PIECE = 3 << 16,    /* bytes of the file of samples that are mapped at a time: whole rows and whole pages */
    HOUSE_NS = 4000000, /* between two looks at the list of threads, resident memory, native threads */
    MOST_LANES = 1 << 16,
    BATCH = 128,     /* threads whose states are copied at once */
    MOST_STATE = 256 /* bytes of one */
};
static const int64_t TRUSTED_NS = 20000000;   /* so long a code object is taken to be the one that was there */
static const int64_t SMEARED_NS = 300000;     /* a look that takes longer was interrupted */
static const int64_t CONTENDED_NS = 50000000; /* so often it is judged whether threads wait for CPUs */
static const int64_t ASLEEP_NS = 100000000;   /* nothing has run for so long: look less often */
static const int64_t NATIVE_STEP_NS = 500000; /* CPU time of native threads that is worth a row */
static const int MOST_COST = 50;              /* a tick is followed by so many times what it cost: 2 % of a core */

_Static_assert(PIECE % 24 == 0 && PIECE % (1 << 16) == 0, "rows and pages must not be cut");

struct page {
    uint64_t address;
    int is_used; /* by the last walk */
    uint8_t data[PAGE];
};

struct lane {
    uint64_t state, ident; /* address of the thread state; pthread_t */
    uint32_t number;
    int task, hidden, is_listed, is_visited;
    enum { SEEN, PRESENT, BORN } age; /* PRESENT: not looked at yet, there at the beginning; BORN: since then */
    int schedstat, syscall;           /* open files, -1: none */
    uint64_t schedstat_inode, syscall_inode;
    int64_t cpu, delay, contended_at, contended_delay;
    int is_contended;           /* it waits for a CPU for more than a twentieth of the time */
    int is_skipped;             /* nothing was written at the last look, as nothing had changed */
    uint32_t stack, state_seen; /* at the last look */
    int blocked_in;             /* number of the system call, -1: none or unknown */
    uint64_t leaf[2];           /* innermost frame, and where in its code it is */
    int same_leaf;
    uint64_t *frames; /* of the last walk: address of the frame, address of its code */
    int depth;
    int pages;
    struct page *page;
};

struct code {
    uint64_t address, file, name;
    int64_t checked;
    int32_t line, number, flags;
};

struct entry { /* of a table: key → number */
    uint64_t a, b;
    uint32_t number;
};

struct table {
    struct entry *entries;
    size_t used, room;
};

struct text {
    char *data;
    size_t used, room;
};

struct wat_watch {
    struct wat_watch_order order;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int stopping, is_started;
    pid_t pid;
    struct lane *lanes[MOST_LANES];
    int count;
    uint32_t next_lane;
    struct code *codes;
    size_t codes_used, codes_room;
    struct table by_address, frames, stacks;
    struct text names;
    uint64_t *walked; /* frame, code, instruction: of the walk under way */
    uint8_t *piece;
    off_t piece_start, file_used;
    int64_t before, moved_at, listed_at, listed_before, resident;
    int64_t gone_cpu, own_cpu, native, native_written, native_base, native_quiet, native_at;
    uint64_t random, names_inode, samples_inode, counter_inodes[WAT_MOST_COUNTERS], counter_events[WAT_MOST_COUNTERS];
    int64_t counters_due;
};

static int64_t clock_of(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now))
        return -1;
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t thread_cpu(int task)
{
    return clock_of((clockid_t)((~(unsigned)task << 3) | 6)); /* CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED */
}

/* ---- memory of this process, which may change or vanish at any moment */

static int copy(const struct wat_watch *watch, uint64_t address, void *to, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(watch->pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static uint64_t word(const struct wat_watch *watch, uint64_t address)
{
    uint64_t value;
    return copy(watch, address, &value, 8) ? value : 0;
}

/* Pages that the last walk of this thread needed, in one call. */
static void copy_pages(const struct wat_watch *watch, struct lane *lane)
{
    struct iovec local[MOST_PAGES], remote[MOST_PAGES];
    int kept = 0;
    for (int i = 0; i < lane->pages; i++)
        if (lane->page[i].is_used)
            lane->page[kept].address = lane->page[i].address, lane->page[kept++].is_used = 0;
    lane->pages = kept;
    for (int i = 0; i < kept; i++) {
        local[i] = (struct iovec){lane->page[i].data, PAGE};
        remote[i] = (struct iovec){(void *)(uintptr_t)lane->page[i].address, PAGE};
    }
    ssize_t bytes = process_vm_readv(watch->pid, local, lane->pages, remote, lane->pages, 0);
    int whole = bytes < 0 ? 0 : (int)(bytes / PAGE);
    lane->pages = whole < lane->pages ? whole : lane->pages;
}

static const uint8_t *page_of(const struct wat_watch *watch, struct lane *lane, uint64_t address)
{
    uint64_t start = address & ~(uint64_t)(PAGE - 1);
    for (int i = 0; i < lane->pages; i++)
        if (lane->page[i].address == start) {
            lane->page[i].is_used = 1;
            return lane->page[i].data;
        }
    if (lane->pages == MOST_PAGES || !copy(watch, start, lane->page[lane->pages].data, PAGE))
        return NULL;
    lane->page[lane->pages].address = start, lane->page[lane->pages].is_used = 1;
    return lane->page[lane->pages++].data;
}

static int fetch(const struct wat_watch *watch, struct lane *lane, uint64_t address, void *to, size_t bytes)
{
    for (size_t done = 0, part; done < bytes; done += part) {
        size_t from = (address + done) & (PAGE - 1);
        const uint8_t *page = page_of(watch, lane, address + done);
        if (page == NULL)
            return copy(watch, address, to, bytes);
        part = bytes - done < PAGE - from ? bytes - done : PAGE - from;
        memcpy((uint8_t *)to + done, page + from, part);
    }
    return 1;
}

static uint64_t fetch_word(const struct wat_watch *watch, struct lane *lane, uint64_t address)
{
    uint64_t value;
    return address && fetch(watch, lane, address, &value, 8) ? value : 0;
}

/* ---- tables */

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9E3779B97F4A7C15) ^ (b + UINT64_C(0x7F4A7C15)) * UINT64_C(0xC2B2AE3D27D4EB4F);
    return x ^ x >> 29;
}

static struct entry *slot(struct table *table, uint64_t a, uint64_t b)
{
    size_t at = mixed(a, b) & (table->room - 1);
    while (table->entries[at].number && (table->entries[at].a != a || table->entries[at].b != b))
        at = (at + 1) & (table->room - 1);
    return &table->entries[at];
}

/* The number under a key, 0: none; with `number` it is stored. Numbers begin at 1. */
static uint32_t look_up(struct table *table, uint64_t a, uint64_t b, uint32_t number)
{
    if (2 * table->used >= table->room) {
        struct table larger = {NULL, 0, table->room ? 2 * table->room : 256};
        larger.entries = calloc(larger.room, sizeof *larger.entries);
        if (larger.entries == NULL)
            return 0;
        for (size_t i = 0; i < table->room; i++)
            if (table->entries[i].number)
                *slot(&larger, table->entries[i].a, table->entries[i].b) = table->entries[i], larger.used++;
        free(table->entries);
        *table = larger;
    }
    struct entry *entry = slot(table, a, b);
    if (number) {
        table->used += !entry->number;
        *entry = (struct entry){a, b, number};
    }
    return entry->number;
}

/* ---- names: JSON lines */

static int reserve(struct text *text, size_t more)
{
    if (text->used + more <= text->room)
        return 1;
    size_t room = 2 * (text->used + more);
    char *data = realloc(text->data, room);
    if (data == NULL)
        return 0;
    text->data = data, text->room = room;
    return 1;
}

static void put(struct text *text, const char *words)
{
    size_t length = strlen(words);
    if (reserve(text, length + 1)) {
        memcpy(text->data + text->used, words, length + 1);
        text->used += length;
    }
}

static void put_number(struct text *text, const char *before, int64_t number)
{
    char words[96];
    snprintf(words, sizeof words, "%s%lld", before, (long long)number);
    put(text, words);
}

static void put_unit(struct text *text, uint32_t unit)
{
    char words[16];
    snprintf(words, sizeof words, "\\u%04x", (unsigned)unit);
    put(text, words);
}

static void put_character(struct text *text, uint32_t c)
{
    char plain[3] = {0};
    if (c == '"' || c == '\\') {
        plain[0] = '\\', plain[1] = (char)c;
        put(text, plain);
    } else if (c >= 32 && c < 127) {
        plain[0] = (char)c;
        put(text, plain);
    } else if (c < 0x10000) {
        put_unit(text, c);
    } else {
        put_unit(text, 0xD800 + ((c - 0x10000) >> 10));
        put_unit(text, 0xDC00 + ((c - 0x10000) & 0x3FF));
    }
}

/* A str object, quoted. */
static void put_string(const struct wat_watch *watch, struct text *text, uint64_t object)
{
    const struct wat_layout *at = &watch->order.layout;
    static __thread uint8_t data[4 * MOST_NAME];
    uint64_t length = word(watch, object + at->string_length);
    uint32_t state = (uint32_t)word(watch, object + at->string_state), kind = state >> at->string_kind & 7;
    int is_ascii = state >> (at->string_kind + 4) & 1;
    if (length > MOST_NAME)
        length = MOST_NAME;
    put(text, "\"");
    if (kind != 1 && kind != 2 && kind != 4)
        length = 0;
    if (length && copy(watch, object + (is_ascii ? at->string_ascii : at->string_compact), data, length * kind))
        for (uint64_t i = 0; i < length; i++) {
            uint32_t c = 0;
            memcpy(&c, data + i * kind, kind);
            put_character(text, c);
        }
    put(text, "\"");
}

static void put_function(const struct wat_watch *watch, struct text *text, uint64_t code, int32_t line)
{
    const struct wat_layout *at = &watch->order.layout;
    put(text, "\"name\": ");
    put_string(watch, text, word(watch, code + at->code_name));
    put(text, ", \"file\": ");
    put_string(watch, text, word(watch, code + at->code_file));
    put_number(text, ", \"line\": ", line);
}

/* ---- lines */

static int64_t variable(const uint8_t *bytes, int64_t length, int64_t *at)
{
    int64_t value = 0;
    for (int shift = 0; *at < length; shift += 6) {
        uint8_t byte = bytes[(*at)++];
        value |= (int64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

/* The line of a code's instruction: PEP 626 in Python 3.10, the table of locations from 3.11 on. */
static int32_t line_of(const struct wat_watch *watch, uint64_t code, int32_t first, int64_t instruction)
{
    const struct wat_layout *layout = &watch->order.layout;
    static __thread uint8_t bytes[1 << 16];
    uint64_t object = word(watch, code + layout->code_lines);
    int64_t length = (int64_t)word(watch, object + layout->bytes_length), line = first, position = 0, at = 0;
    int32_t result = first;
    if (length <= 0 || length > (int64_t)sizeof bytes || !copy(watch, object + layout->bytes_data, bytes, length))
        return first;
    while (at < length && position <= instruction) {
        int64_t width;
        int has_line = 1;
        if (layout->is_pep626) {
            if (at + 1 >= length)
                break;
            int delta = (int8_t)bytes[at + 1];
            width = bytes[at];
            at += 2;
            has_line = delta != -128;
            line += has_line ? delta : 0;
        } else {
            int kind = bytes[at] >> 3 & 15;
            width = 2 * ((bytes[at] & 7) + 1);
            at++;
            if (kind == 15) {
                has_line = 0;
            } else if (kind >= 13) {
                int64_t delta = variable(bytes, length, &at);
                line += delta & 1 ? -(delta >> 1) : delta >> 1;
                for (int i = 0; kind == 14 && i < 3; i++)
                    variable(bytes, length, &at);
            } else {
                line += kind >= 10 ? kind - 10 : 0;
                at += kind >= 10 ? 2 : 1;
            }
        }
        position += width;
        if (has_line)
            result = (int32_t)line;
    }
    return result;
}

/* ---- stacks */

/* Which code object this is, -1: none. One that has been freed may lie under the address of another. */
static int32_t code_at(struct wat_watch *watch, uint64_t address, int64_t now)
{
    const struct wat_layout *at = &watch->order.layout;
    uint32_t known = look_up(&watch->by_address, address, 0, 0);
    if (known && now - watch->codes[known - 1].checked < TRUSTED_NS)
        return (int32_t)known - 1;
    uint8_t object[256];
    if (address & 7 || !copy(watch, address, object, (size_t)at->code_size))
        return -1;
    struct code code = {.address = address, .checked = now};
    uint64_t type;
    memcpy(&type, object + at->object_type, 8);
    if (type != watch->order.code_type)
        return -1;
    memcpy(&code.file, object + at->code_file, 8);
    memcpy(&code.name, object + at->code_name, 8);
    memcpy(&code.line, object + at->code_first, 4);
    memcpy(&code.flags, object + at->code_flags, 4);
    if (known) {
        struct code *before = &watch->codes[known - 1];
        before->checked = now;
        if (before->file == code.file && before->name == code.name && before->line == code.line)
            return (int32_t)known - 1;
    }
    if (watch->codes_used == watch->codes_room) {
        size_t room = watch->codes_room ? 2 * watch->codes_room : 256;
        struct code *larger = realloc(watch->codes, room * sizeof code);
        if (larger == NULL)
            return -1;
        watch->codes = larger, watch->codes_room = room;
    }
    code.number = (int32_t)watch->codes_used;
    watch->codes[watch->codes_used++] = code;
    look_up(&watch->by_address, address, 0, (uint32_t)watch->codes_used);
    return code.number;
}

static uint32_t frame_number(struct wat_watch *watch, int32_t number, int32_t line)
{
    uint32_t frame = look_up(&watch->frames, (uint64_t)number + 1, (uint64_t)line, 0);
    if (frame)
        return frame - 1;
    const struct code *code = &watch->codes[number];
    frame = (uint32_t)watch->frames.used + 1;
    look_up(&watch->frames, (uint64_t)number + 1, (uint64_t)line, frame);
    put_number(&watch->names, "{\"frame\": ", frame - 1);
    put(&watch->names, ", ");
    put_function(watch, &watch->names, code->address, line ? line : code->line);
    put_number(&watch->names, ", \"code\": ", number);
    put(&watch->names, code->flags & 0x2A0 ? ", \"suspends\": true}\n" : "}\n"); /* stacks.SUSPENDS */
    return frame - 1;
}

/* The frames of a thread into `walked`, innermost first: how many, -1 if they lead nowhere. */
static int walk(struct wat_watch *watch, struct lane *lane)
{
    const struct wat_layout *at = &watch->order.layout;
    uint64_t frame = fetch_word(watch, lane, lane->state + at->state_frame);
    int depth = 0;
    if (at->has_cframe)
        frame = fetch_word(watch, lane, frame + at->cframe_frame);
    for (int steps = 0; frame && depth < MOST_FRAMES && steps < 2 * MOST_FRAMES; steps++) {
        uint8_t row[128];
        uint64_t code, previous, instruction = 0;
        if (frame & 7 || !fetch(watch, lane, frame, row, (size_t)at->frame_size))
            return -1;
        memcpy(&code, row + at->frame_code, 8);
        memcpy(&previous, row + at->frame_previous, 8);
        memcpy(&instruction, row + at->frame_instruction, at->is_pep626 ? 4 : 8);
        code &= ~UINT64_C(3);                                   /* tags of references, from Python 3.14 on */
        if (at->frame_owner == 0 || row[at->frame_owner] < 3) { /* else a frame of C's own */
            watch->walked[3 * depth] = frame;
            watch->walked[3 * depth + 1] = code;
            watch->walked[3 * depth++ + 2] = instruction;
        }
        frame = previous;
    }
    return depth;
}

/* The number of the stack that `walked` holds, 0 if it is none. */
static uint32_t stack_number(struct wat_watch *watch, struct lane *lane, int depth, int skipped, int64_t now)
{
    const struct wat_layout *at = &watch->order.layout;
    uint32_t stack = 0;
    for (int i = depth - 1; i >= skipped; i--) {
        uint64_t frame = watch->walked[3 * i], code = watch->walked[3 * i + 1], known = 0;
        int from_end = depth - 1 - i; /* the outermost frames rarely change */
        if (from_end < lane->depth && lane->frames[2 * from_end] == frame && lane->frames[2 * from_end + 1] == code)
            known = look_up(&watch->by_address, code, 0, 0);
        int32_t number = known ? (int32_t)known - 1 : code_at(watch, code, now), line = 0;
        if (number < 0)
            return 0;
        if (watch->order.lines) {
            uint64_t instruction = watch->walked[3 * i + 2];
            int64_t offset = at->is_pep626 ? 2 * (int64_t)(int32_t)instruction
                                           : (int64_t)(instruction - code - (uint64_t)at->code_bytes);
            line = line_of(watch, code, watch->codes[number].line, offset);
        }
        uint32_t here = frame_number(watch, number, line), below = look_up(&watch->stacks, stack, here, 0);
        if (!below) {
            below = (uint32_t)watch->stacks.used + 1;
            look_up(&watch->stacks, stack, here, below);
            put_number(&watch->names, "{\"stack\": ", below);
            put_number(&watch->names, ", \"parent\": ", stack);
            put_number(&watch->names, ", \"frame\": ", here);
            put(&watch->names, "}\n");
        }
        stack = below;
    }
    uint64_t *frames = realloc(lane->frames, sizeof *frames * 2 * (size_t)(depth + 1));
    if (frames != NULL) {
        lane->frames = frames, lane->depth = depth;
        for (int i = 0; i < depth; i++)
            frames[2 * i] = watch->walked[3 * (depth - 1 - i)],
                       frames[2 * i + 1] = watch->walked[3 * (depth - 1 - i) + 1];
    }
    return stack;
}

/* The stack of a thread now; the one that was seen last if it changes too quickly. */
static uint32_t stack_of(struct wat_watch *watch, struct lane *lane, int skipped, int64_t now)
{
    for (int i = 0; i < TRIES; i++) {
        copy_pages(watch, lane);
        int depth = walk(watch, lane);
        uint32_t stack = depth < 0 ? 0 : stack_number(watch, lane, depth, skipped, now);
        if (stack || depth == 0) {
            uint64_t leaf[2] = {depth ? watch->walked[0] : 0, depth ? watch->walked[2] : 0};
            lane->same_leaf = !memcmp(leaf, lane->leaf, sizeof leaf);
            memcpy(lane->leaf, leaf, sizeof leaf);
            return stack;
        }
        lane->pages = 0, lane->depth = 0;
    }
    return lane->stack;
}

/* ---- rows */

static uint64_t inode(int file)
{
    struct stat about;
    return fstat(file, &about) ? 0 : (uint64_t)about.st_ino;
}

/* A program that closes all files, as daemons do, may have another one under the number. */
static int is_ours(int file, uint64_t number)
{
    return number && inode(file) == number;
}

/* The kernel's number of an event; 0: another file. All events are one inode. */
static uint64_t event_number(int file)
{
    uint64_t number = 0;
    return ioctl(file, PERF_EVENT_IOC_ID, &number) ? 0 : number;
}

static void row(struct wat_watch *watch, int64_t time, int64_t value, uint32_t lane, uint32_t stack)
{
    if (watch->piece == NULL || watch->file_used == watch->piece_start + PIECE) {
        if (watch->piece != NULL)
            munmap(watch->piece, PIECE);
        watch->piece_start = watch->file_used;
        watch->piece = NULL;
        if (!is_ours(watch->order.samples_file, watch->samples_inode)
            || posix_fallocate(watch->order.samples_file, watch->piece_start, PIECE))
            return; /* a full disk must not stop the program */
        void *piece =
            mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, watch->order.samples_file, watch->piece_start);
        if (piece == MAP_FAILED)
            return;
        watch->piece = piece;
    }
    uint8_t *to = watch->piece + (watch->file_used - watch->piece_start);
    memcpy(to + 8, &value, 8);
    memcpy(to + 16, &lane, 4);
    memcpy(to + 20, &stack, 4);
    memcpy(to, &time, 8); /* last: a row without a time was not finished */
    watch->file_used += 24;
}

static void write_names(struct wat_watch *watch)
{
    size_t done = 0;
    if (watch->names.used && !is_ours(watch->order.names_file, watch->names_inode))
        watch->names.used = 0;
    while (done < watch->names.used) {
        ssize_t bytes = write(watch->order.names_file, watch->names.data + done, watch->names.used - done);
        if (bytes <= 0 && errno != EINTR)
            break;
        done += bytes > 0 ? (size_t)bytes : 0;
    }
    watch->names.used = 0;
}

/* ---- threads */

static int opened(int task, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", task, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int64_t delay_of(const struct lane *lane)
{
    char text[96];
    ssize_t length = lane->schedstat < 0 ? 0 : pread(lane->schedstat, text, sizeof text - 1, 0);
    if (length <= 0)
        return lane->delay;
    text[length] = 0;
    const char *second = strchr(text, ' ');
    return second ? strtoll(second, NULL, 10) : lane->delay;
}

/* Whether it wants the CPU; if not, in which system call it waits. */
static int is_runnable(struct lane *lane)
{
    char text[128];
    ssize_t length = lane->syscall < 0 ? 0 : pread(lane->syscall, text, sizeof text - 1, 0);
    lane->blocked_in = -1;
    if (length <= 0)
        return 0;
    text[length] = 0;
    if (text[0] == 'r') /* "running" */
        return 1;
    lane->blocked_in = atoi(text);
    return 0;
}

static void drop(struct wat_watch *watch, int number)
{
    struct lane *lane = watch->lanes[number];
    watch->gone_cpu += lane->cpu;
    if (is_ours(lane->schedstat, lane->schedstat_inode))
        close(lane->schedstat);
    if (is_ours(lane->syscall, lane->syscall_inode))
        close(lane->syscall);
    free(lane->frames);
    free(lane->page);
    free(lane);
    watch->lanes[number] = watch->lanes[--watch->count];
}

static struct lane *new_lane(struct wat_watch *watch, uint64_t state, uint64_t ident)
{
    int32_t task = 0;
    if (watch->count == MOST_LANES || !copy(watch, ident + (uint64_t)watch->order.task_offset, &task, 4) || task <= 0)
        return NULL;
    for (int i = 0; i < watch->count; i++) /* until it runs, a new thread's state has its parent's ident (3.10, 3.11) */
        if (watch->lanes[i]->task == task && watch->lanes[i]->state != state)
            return NULL;
    int64_t cpu = thread_cpu(task);
    struct lane *lane = cpu < 0 ? NULL : calloc(1, sizeof *lane);
    if (lane == NULL || (lane->page = malloc(MOST_PAGES * sizeof *lane->page)) == NULL) {
        free(lane);
        return NULL;
    }
    lane->state = state, lane->ident = ident, lane->task = task, lane->cpu = cpu;
    lane->schedstat = opened(task, "schedstat");
    lane->syscall = opened(task, "syscall");
    lane->schedstat_inode = inode(lane->schedstat), lane->syscall_inode = inode(lane->syscall);
    lane->delay = -1, lane->age = BORN, lane->blocked_in = -1;
    lane->hidden = ident == watch->order.hidden;
    if (!lane->hidden) {
        lane->number = watch->next_lane++;
        put_number(&watch->names, "{\"lane\": ", lane->number);
        put_number(&watch->names, ", \"name\": \"thread\", \"thread\": ", (int64_t)ident);
        put(&watch->names, "}\n");
        write_names(watch); /* before the helper writes a better name: the last one counts */
        uint64_t request[2] = {lane->number, ident};
        if (watch->order.request_file >= 0 && write(watch->order.request_file, request, sizeof request) < 0)
            lane->hidden = 0; /* it keeps the name that it has */
    }
    watch->lanes[watch->count++] = lane;
    return lane;
}

/* Rows of thread states and the kernel's numbers of their threads, of `count` lanes in one call: 1, if all are there. */
static int copy_states(const struct wat_watch *watch, int count, uint8_t (*states)[MOST_STATE], int32_t *tasks)
{
    struct iovec local[2 * BATCH], remote[2 * BATCH];
    size_t size = (size_t)watch->order.layout.state_size;
    for (int i = 0; i < count; i++) {
        uint64_t task = watch->lanes[i]->ident + (uint64_t)watch->order.task_offset;
        local[2 * i] = (struct iovec){states[i], size}, local[2 * i + 1] = (struct iovec){&tasks[i], 4};
        remote[2 * i] = (struct iovec){(void *)(uintptr_t)watch->lanes[i]->state, size};
        remote[2 * i + 1] = (struct iovec){(void *)(uintptr_t)task, 4};
    }
    ssize_t bytes = process_vm_readv(watch->pid, local, 2 * (unsigned)count, remote, 2 * (unsigned)count, 0);
    return bytes == (ssize_t)((size + 4) * (size_t)count);
}

/* Threads that have come and gone, by the interpreter's list. */
static void list_threads(struct wat_watch *watch, int64_t now)
{
    const struct wat_layout *at = &watch->order.layout;
    uint64_t state = (uint64_t)(uintptr_t)watch->order.thread_head(watch->order.interpreter);
    uint8_t states[BATCH][MOST_STATE];
    int32_t tasks[BATCH];
    int before = watch->count, copied = before < BATCH ? before : BATCH;
    if (!copy_states(watch, copied, states, tasks))
        copied = 0;
    int is_whole = 1; /* a state that is freed meanwhile leads nowhere */
    for (int i = 0; i < before; i++)
        watch->lanes[i]->is_listed = 0, watch->lanes[i]->is_visited = 0;
    for (int i = 0; state && i < MOST_LANES; i++) {
        uint8_t row[MOST_STATE];
        uint64_t ident, next;
        int known = 0;
        while (known < before && watch->lanes[known]->state != state)
            known++;
        if (known < copied)
            memcpy(row, states[known], (size_t)at->state_size);
        else if (!(is_whole = copy(watch, state, row, (size_t)at->state_size)))
            break;
        memcpy(&ident, row + at->state_ident, 8);
        memcpy(&next, row + at->state_next, 8);
        if (known < before)
            watch->lanes[known]->is_visited = 1;
        if (known < before && watch->lanes[known]->ident == ident) {
            int32_t task = known < copied ? tasks[known] : 0; /* another thread may have got the same addresses */
            if (known >= copied && !copy(watch, ident + (uint64_t)watch->order.task_offset, &task, 4))
                task = 0;
            watch->lanes[known]->is_listed = task == watch->lanes[known]->task;
        }
        if (ident && (known == before || !watch->lanes[known]->is_listed))
            new_lane(watch, state, ident);
        state = next;
    }
    for (int i = before - 1; i >= 0; i--) {
        struct lane *lane = watch->lanes[i];
        if (lane->is_listed || !(is_whole || lane->is_visited))
            continue;
        if (!lane->hidden && lane->age != BORN)
            row(watch, now, lane->cpu, lane->number, 0);
        drop(watch, i);
    }
}

static void write_look(struct wat_watch *watch, const struct lane *lane, int64_t at)
{
    row(watch, at, lane->cpu, lane->number, lane->stack ? lane->stack | lane->state_seen : 0);
}

static void write_delay(struct wat_watch *watch, struct lane *lane, int64_t at)
{
    int64_t delay = delay_of(lane);
    if (delay != lane->delay)
        row(watch, at, lane->delay = delay, lane->number | WAT_DELAY_LANE, 0);
}

/* On a CPU, waiting for one, or blocked: a thread that has got `spent` of CPU time in `lasted`. */
static uint32_t state_of(struct lane *lane, int64_t spent, int64_t lasted)
{
    lane->blocked_in = -1;
    if (2 * spent > lasted)
        return WAT_STACK_RUNS;
    return is_runnable(lane) ? WAT_STACK_WAITS : 0;
}

static void look(struct wat_watch *watch, struct lane *lane)
{
    int64_t began = thread_cpu(lane->task), at = clock_of(CLOCK_MONOTONIC);
    uint32_t stack = lane->stack, state = 0;
    if (began < 0)
        return; /* it has just ended */
    int has_run = began != lane->cpu || lane->age != SEEN;
    lane->cpu = began;
    lane->same_leaf = !has_run;
    if (lane->hidden)
        return;
    if (has_run) {
        watch->moved_at = at;
        for (int i = 0; i < TRIES; i++) {
            if (watch->order.stacks)
                stack = stack_of(watch, lane, 0, at);
            int64_t ended = thread_cpu(lane->task), now = clock_of(CLOCK_MONOTONIC);
            state = state_of(lane, ended - began, now - at);
            if (now - at < SMEARED_NS || i == TRIES - 1)
                break;
            began = ended, at = now; /* we lost the CPU on the way: what was read is not of one moment */
        }
        lane->cpu = began;
        if (lane->state_seen == WAT_STACK_WAITS)
            write_delay(watch, lane, at);
    } else {
        /* what is blocked and has not run is still blocked, unless it waits for a CPU on a machine with too few */
        state = lane->state_seen || lane->is_contended ? state_of(lane, 0, 1) : 0;
        if (state == lane->state_seen) {
            lane->is_skipped = 1;
            return;
        }
    }
    if (lane->age == BORN) { /* it began since the list was read, with a clock at zero */
        int64_t longest = at - watch->listed_before, length = began > longest / 2 ? began : longest / 2;
        row(watch, at - (length < longest ? length : longest), 0, lane->number, 0);
    } else if (lane->is_skipped) {
        write_look(watch, lane, watch->before);
    }
    lane->stack = stack, lane->state_seen = state, lane->age = SEEN, lane->is_skipped = 0;
    write_look(watch, lane, at);
}

/* CPU time of threads that have no Python stack goes to the thread that is inside a native call: one that computes
 * itself, as callers of BLAS do, otherwise the only one that waits for another thread. */
static void native(struct wat_watch *watch, int64_t now, int64_t all)
{
    int64_t known = watch->gone_cpu;
    uint32_t computing = 0, waiting = 0;
    int computing_count = 0, waiting_count = 0;
    for (int i = 0; i < watch->count; i++) {
        const struct lane *lane = watch->lanes[i];
        known += lane->cpu;
        if (lane->hidden)
            continue;
        if (lane->state_seen && lane->same_leaf)
            computing = lane->number, computing_count++;
        if (!lane->state_seen && lane->blocked_in == SYS_futex)
            waiting = lane->number, waiting_count++;
    }
    watch->own_cpu = clock_of(CLOCK_THREAD_CPUTIME_ID);
    if (watch->native_base == INT64_MIN) /* rather too much, and later rather too little: what is left over is sure */
        watch->native_base = clock_of(CLOCK_PROCESS_CPUTIME_ID) - known - watch->own_cpu;
    int64_t value = all - known - watch->own_cpu - watch->native_base;
    if (value > watch->native)
        watch->native = value;
    if (watch->native - watch->native_written < NATIVE_STEP_NS / 10)
        watch->native_quiet = now;
    if (watch->native - watch->native_written < NATIVE_STEP_NS)
        return;
    if (watch->native_quiet > watch->native_at)
        row(watch, watch->native_quiet, watch->native_written, WAT_NATIVE_LANE, 0);
    watch->native_written = watch->native, watch->native_at = now;
    row(watch, now, watch->native, WAT_NATIVE_LANE,
        computing_count == 1                     ? computing
        : !computing_count && waiting_count == 1 ? waiting
                                                 : 0);
}

static void weigh(struct wat_watch *watch, int64_t now)
{
    char text[128];
    if (watch->order.memory_file < 0)
        return;
    ssize_t length = pread(watch->order.memory_file, text, sizeof text - 1, 0);
    if (length <= 0)
        return;
    text[length] = 0;
    const char *second = strchr(text, ' ');
    int64_t resident = second ? strtoll(second, NULL, 10) * watch->order.page_bytes : 0;
    if (resident != watch->resident)
        row(watch, now, watch->resident = resident, WAT_MEMORY_LANE, 0);
}

/* What a counter says: text in a file, or the count of an event; negative: the program closed it. */
static int64_t counter_value(struct wat_watch *watch, int i)
{
    int file = watch->order.counter_files[i];
    int64_t count;
    char text[64];
    if (watch->counter_events[i])
        return event_number(file) == watch->counter_events[i] && read(file, &count, 8) == 8 ? count : -1;
    ssize_t length = is_ours(file, watch->counter_inodes[i]) ? pread(file, text, sizeof text - 1, 0) : 0;
    if (length <= 0)
        return -1;
    text[length] = 0;
    return strtoll(text, NULL, 10);
}

/* Energy counters that move as often as we look: functions that take turns between two readings of the sampler would
 * share what it reads. */
static void read_counters(struct wat_watch *watch, int64_t now)
{
    if (now < watch->counters_due)
        return;
    watch->counters_due = now + watch->order.counter_pause_ns;
    for (int i = 0; i < watch->order.counters; i++) {
        int64_t before = clock_of(CLOCK_MONOTONIC), value = counter_value(watch, i);
        int64_t after = clock_of(CLOCK_MONOTONIC);
        if (value >= 0 && after - before <= SMEARED_NS) /* else we lost the CPU on the way */
            row(watch, before + (after - before) / 2, value, WAT_COUNTER_LANE, (uint32_t)i);
    }
}

/* What need not be known at every look. */
static void keep_house(struct wat_watch *watch, int64_t now)
{
    list_threads(watch, now);
    watch->listed_before = watch->listed_at, watch->listed_at = now;
    for (int i = 0; i < watch->count; i++) {
        struct lane *lane = watch->lanes[i];
        if (!lane->hidden)
            write_delay(watch, lane, now);
        if (now - lane->contended_at > CONTENDED_NS) {
            lane->is_contended = lane->delay - lane->contended_delay > (now - lane->contended_at) / 20;
            lane->contended_at = now, lane->contended_delay = lane->delay;
        }
    }
    weigh(watch, now);
}

static void tick(struct wat_watch *watch)
{
    int64_t now = clock_of(CLOCK_MONOTONIC);
    int is_due = now - watch->listed_at >= HOUSE_NS;
    if (is_due)
        keep_house(watch, now);
    if (watch->order.counters)
        read_counters(watch, now);
    /* before the threads' own clocks: what they compute meanwhile must not count as native threads' time */
    int64_t all = is_due ? clock_of(CLOCK_PROCESS_CPUTIME_ID) : 0;
    for (int i = 0; i < watch->count; i++)
        look(watch, watch->lanes[i]);
    if (is_due)
        native(watch, now, all);
    write_names(watch);
    watch->before = now;
}

/* A short slice of CPU at a time, but soon, where the scheduler can be asked for that (Linux 6.12). */
static void be_prompt(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } wish = {.size = sizeof wish};
    if (syscall(SYS_sched_getattr, 0, &wish, sizeof wish, 0) == 0 && wish.policy == 0) {
        wish.runtime = 100000;
        (void)!syscall(SYS_sched_setattr, 0, &wish, 0);
    }
}

static void *run(void *argument)
{
    struct wat_watch *watch = argument;
    be_prompt();
    int64_t cost = 0, ticks = 0, interval = watch->order.interval_ns;
    watch->gone_cpu += watch->own_cpu; /* of the thread before a pause */
    watch->own_cpu = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stopping) {
        int64_t now = clock_of(CLOCK_MONOTONIC), length = interval;
        if (now - watch->moved_at > ASLEEP_NS)
            length *= 4;
        if (length < MOST_COST * cost)
            length = MOST_COST * cost;
        /* not in step with the program, independent of its rhythm: half to one and a half times as long */
        watch->random ^= watch->random << 13, watch->random ^= watch->random >> 7, watch->random ^= watch->random << 17;
        int64_t until = now + length / 2 + (int64_t)(watch->random % (uint64_t)length);
        struct timespec time = {until / 1000000000, until % 1000000000};
        int woken = 0;
        while (!watch->stopping && woken != ETIMEDOUT)
            woken = pthread_cond_timedwait(&watch->wake, &watch->lock, &time);
        if (watch->stopping)
            break;
        int64_t before = watch->own_cpu;
        tick(watch);
        ticks++;
        if (watch->own_cpu != before) {
            int64_t spent = (watch->own_cpu - before) / ticks; /* with the way here */
            cost = cost ? (7 * cost + spent) / 8 : spent;
            ticks = 0;
        }
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* ---- what Python calls */

int wat_watch_start(struct wat_watch *watch)
{
    sigset_t all, before;
    watch->stopping = 0;
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&watch->thread, NULL, run, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    watch->is_started = !code;
    return code;
}

void wat_watch_pause(struct wat_watch *watch)
{
    if (!watch->is_started)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stopping = 1;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    watch->is_started = 0;
}

uint32_t wat_watch_begin(struct wat_watch *watch, uint64_t ident, int skipped)
{
    int64_t now = clock_of(CLOCK_MONOTONIC);
    uint32_t number = 0;
    watch->before = watch->moved_at = watch->listed_at = now;
    list_threads(watch, now);
    for (int i = 0; i < watch->count; i++) {
        struct lane *lane = watch->lanes[i];
        if (lane->hidden)
            continue;
        row(watch, now, lane->cpu, lane->number, 0);
        lane->age = PRESENT;
        number = lane->ident == ident ? lane->number : number;
        if (lane->ident == ident && skipped >= 0 && watch->order.stacks) {
            lane->stack = stack_of(watch, lane, skipped, now), lane->state_seen = WAT_STACK_RUNS;
            write_look(watch, lane, now);
            lane->depth = 0; /* without those that were skipped it is no stack to compare with */
        }
    }
    weigh(watch, now);
    write_names(watch);
    return number;
}

struct wat_watch *wat_watch_open(const struct wat_watch_order *order)
{
    struct wat_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL || (watch->walked = malloc(MOST_FRAMES * 3 * sizeof *watch->walked)) == NULL) {
        free(watch);
        return NULL;
    }
    watch->order = *order;
    watch->pid = getpid();
    watch->names_inode = inode(order->names_file), watch->samples_inode = inode(order->samples_file);
    for (int i = 0; i < order->counters; i++) {
        watch->counter_inodes[i] = inode(order->counter_files[i]);
        watch->counter_events[i] = event_number(order->counter_files[i]);
    }
    watch->next_lane = order->first_lane;
    watch->native_base = INT64_MIN;
    watch->random = (uint64_t)clock_of(CLOCK_MONOTONIC) * 2654435761u | 1;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&watch->lock, NULL);
    return watch;
}

void wat_watch_close(struct wat_watch *watch, int is_end)
{
    int64_t now = clock_of(CLOCK_MONOTONIC);
    if (is_end)
        keep_house(watch, now);
    while (watch->count) {
        struct lane *lane = watch->lanes[watch->count - 1];
        if (is_end && !lane->hidden && lane->age != BORN) {
            int64_t cpu = thread_cpu(lane->task);
            if (lane->is_skipped)
                write_look(watch, lane, watch->before);
            row(watch, now, cpu < 0 ? lane->cpu : cpu, lane->number, 0);
        }
        drop(watch, watch->count - 1);
    }
    if (watch->piece != NULL)
        munmap(watch->piece, PIECE);
    if (is_end && is_ours(watch->order.samples_file, watch->samples_inode)
        && ftruncate(watch->order.samples_file, watch->file_used))
        errno = 0; /* the rows behind the last are empty */
    free(watch->by_address.entries);
    free(watch->frames.entries);
    free(watch->stacks.entries);
    free(watch->codes);
    free(watch->names.data);
    free(watch->walked);
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

int64_t wat_watch_check(struct wat_watch *watch, uint64_t state, uint64_t *codes, int64_t room, char *text,
                        int64_t size)
{
    struct lane lane = {.state = state};
    lane.page = malloc(MOST_PAGES * sizeof *lane.page);
    int depth = lane.page ? walk(watch, &lane) : -1;
    free(lane.page);
    for (int i = 0; i < depth && i < room; i++)
        codes[i] = watch->walked[3 * i + 1];
    int32_t number = depth > 0 ? code_at(watch, codes[0], 0) : -1;
    if (number < 0)
        return -1;
    int64_t offset = watch->order.layout.is_pep626
                         ? 2 * (int64_t)(int32_t)watch->walked[2]
                         : (int64_t)(watch->walked[2] - codes[0] - (uint64_t)watch->order.layout.code_bytes);
    put_function(watch, &watch->names, codes[0], line_of(watch, codes[0], watch->codes[number].line, offset));
    if ((int64_t)watch->names.used >= size)
        return -1;
    memcpy(text, watch->names.data, watch->names.used + 1);
    watch->names.used = 0;
    return depth;
}

int64_t wat_watch_task_offset(void)
{
    const uint8_t *self = (const uint8_t *)(uintptr_t)pthread_self();
    int32_t task = (int32_t)syscall(SYS_gettid), value;
    for (int64_t at = 0; at < 2048; at += 4) {
        struct iovec local = {&value, 4}, remote = {(void *)(self + at), 4};
        if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 4)
            return -1;
        if (value == task)
            return at;
    }
    return -1;
}
#endif

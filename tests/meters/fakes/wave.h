/* What the fake libraries share: a state file, power waveforms on the monotonic clock, failures per function.
 *
 * The file named by an environment variable holds lines of words:
 *   devices N | period_ms P | start_ns T           counters refresh every P ms, counted from T (CLOCK_MONOTONIC)
 *   gpu I constant WATTS                           waveforms
 *   gpu I square HIGH LOW PERIOD_S DUTY
 *   gpu I table PATH                               a recording: lines "seconds draw average instant" (W), each held until the next
 *   gpu I capability MAJOR MINOR
 *   gpu I base MJ | frozen | reset_at S | jump_at S J | name TEXT | mig N | silent | lost   quirks of one device
 *   fail FUNCTION CODE                             that function returns CODE; −1: it never returns
 *   process I PID SM_PERCENT [SEEN_US]             on a card, last seen at work then (else now)
 *   instance I NUMBER SLICES PID SM_PERCENT        a MIG instance of a card whose performance monitor works
 * It is read again whenever it changes.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_GPUS 16
#define MAX_LINES 64

typedef struct {
    double high, low, period, duty, reset_at, jump_at, jump_j;
    unsigned long long base_mj;
    int frozen, silent, mig, lost, major, minor;
    char name[96];
    struct Row *rows;
    int count;
} Gpu;

struct Row { double s, watts[3], joules; };
enum { DRAW, AVERAGE, INSTANT };

static struct {
    int devices, fails, processes, instances;
    double period_s;
    long long start_ns;
    Gpu gpu[MAX_GPUS];
    struct { char name[96]; int code; } fail[MAX_LINES];
    struct { int gpu; unsigned pid, sm; unsigned long long seen_us; } process[MAX_LINES];
    struct { int gpu; unsigned number, slices, pid, sm; } instance[MAX_LINES];
} state;

static void read_table(Gpu *g, char *path) {
    path[strcspn(path, "\n")] = 0;
    FILE *file = fopen(path, "r");
    struct Row row = {0};
    if (!file) return;
    while (fscanf(file, "%lf %lf %lf %lf", &row.s, &row.watts[0], &row.watts[1], &row.watts[2]) == 4) {
        struct Row *last = g->count ? &g->rows[g->count - 1] : NULL;
        row.joules = last ? last->joules + last->watts[DRAW] * (row.s - last->s) : 0;
        g->rows = realloc(g->rows, (size_t)(g->count + 1) * sizeof row);
        g->rows[g->count++] = row;
    }
    fclose(file);
}

static void read_gpu(char *rest, int index, const char *what) {
    Gpu *g = &state.gpu[index];
    if (!strcmp(what, "constant")) { g->high = g->low = atof(rest); g->period = 1; g->duty = 1; }
    else if (!strcmp(what, "square")) sscanf(rest, "%lf %lf %lf %lf", &g->high, &g->low, &g->period, &g->duty);
    else if (!strcmp(what, "table")) read_table(g, rest);
    else if (!strcmp(what, "capability")) sscanf(rest, "%d %d", &g->major, &g->minor);
    else if (!strcmp(what, "base")) g->base_mj = strtoull(rest, NULL, 10);
    else if (!strcmp(what, "frozen")) g->frozen = 1;
    else if (!strcmp(what, "silent")) g->silent = 1;
    else if (!strcmp(what, "lost")) g->lost = 1;
    else if (!strcmp(what, "jump_at")) sscanf(rest, "%lf %lf", &g->jump_at, &g->jump_j);
    else if (!strcmp(what, "reset_at")) g->reset_at = atof(rest);
    else if (!strcmp(what, "mig")) g->mig = atoi(rest);
    else if (!strcmp(what, "name")) { snprintf(g->name, sizeof g->name, "%s", rest); g->name[strcspn(g->name, "\n")] = 0; }
}

static void load(const char *variable) {
    static struct timespec seen;
    const char *path = getenv(variable);
    struct stat now;
    if (!path || stat(path, &now)) return;
    if (now.st_mtim.tv_sec == seen.tv_sec && now.st_mtim.tv_nsec == seen.tv_nsec) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    seen = now.st_mtim;
    for (int i = 0; i < MAX_GPUS; i++) free(state.gpu[i].rows);
    memset(&state, 0, sizeof state);
    state.devices = 1; state.period_s = 0.1;
    for (int i = 0; i < MAX_GPUS; i++) { state.gpu[i].period = 1; state.gpu[i].major = 8; strcpy(state.gpu[i].name, "Fake A100"); }
    char line[256], word[96], what[96];
    int index, at;
    while (fgets(line, sizeof line, file)) {
        double number; long long big; unsigned pid, sm, which, slices; unsigned long long at_us = 0;
        if (sscanf(line, "devices %d", &index) == 1) state.devices = index;
        else if (sscanf(line, "period_ms %lf", &number) == 1) state.period_s = number / 1e3;
        else if (sscanf(line, "start_ns %lld", &big) == 1) state.start_ns = big;
        else if (sscanf(line, "fail %95s %d", word, &index) == 2 && state.fails < MAX_LINES) {
            snprintf(state.fail[state.fails].name, 96, "%s", word); state.fail[state.fails++].code = index;
        } else if (sscanf(line, "process %d %u %u %llu", &index, &pid, &sm, &at_us) >= 3 && state.processes < MAX_LINES) {
            state.process[state.processes].gpu = index; state.process[state.processes].pid = pid;
            state.process[state.processes].seen_us = at_us;
            state.process[state.processes++].sm = sm;
        } else if (sscanf(line, "instance %d %u %u %u %u", &index, &which, &slices, &pid, &sm) == 5 && state.instances < MAX_LINES) {
            state.instance[state.instances].gpu = index; state.instance[state.instances].number = which;
            state.instance[state.instances].slices = slices; state.instance[state.instances].pid = pid;
            state.instance[state.instances++].sm = sm;
        } else if (sscanf(line, "gpu %d %95s %n", &index, what, &at) == 2 && index >= 0 && index < MAX_GPUS)
            read_gpu(line + at, index, what);
    }
    fclose(file);
}

static int failing(const char *function) {
    for (int i = 0; i < state.fails; i++)
        if (!strcmp(state.fail[i].name, function)) {
            while (state.fail[i].code == -1) pause();
            return state.fail[i].code;
        }
    return 0;
}

/* Seconds since the waveform began, and the latest refresh of the sensor before that. */
static double elapsed_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)(t.tv_sec * 1000000000LL + t.tv_nsec - state.start_ns) / 1e9;
}
static double refreshed_s(void) { return floor(elapsed_s() / state.period_s) * state.period_s; }

/* The row of a recording that is in force; the first one before it began. */
static const struct Row *row_at(const Gpu *g, double s) {
    int low = 0, high = g->count;
    while (high - low > 1) { int middle = (low + high) / 2; if (g->rows[middle].s <= s) low = middle; else high = middle; }
    return &g->rows[low];
}

static double field_w(const Gpu *g, double s, int field) {
    if (g->count) return row_at(g, s)->watts[field];
    double phase = s / g->period - floor(s / g->period);
    return phase < g->duty ? g->high : g->low;
}
static double power_w(const Gpu *g, double s) { return field_w(g, s, DRAW); }
static double energy_j(const Gpu *g, double s) {
    if (g->count) { const struct Row *row = row_at(g, s); return row->joules + row->watts[DRAW] * (s - row->s); }
    double whole = floor(s / g->period), phase = s - whole * g->period, on = g->duty * g->period;
    double one = g->high * on + g->low * (g->period - on);
    return whole * one + (phase < on ? g->high * phase : g->high * on + g->low * (phase - on));
}
/* The counter in joules as last refreshed; a reset (driver reload) starts it again from nothing. */
static double counter_j(const Gpu *g) {
    double s = g->frozen ? 0 : refreshed_s();
    if (g->reset_at > 0 && s >= g->reset_at) return energy_j(g, s) - energy_j(g, g->reset_at);
    return (double)g->base_mj / 1e3 + energy_j(g, s) + (g->jump_at > 0 && s >= g->jump_at ? g->jump_j : 0);
}

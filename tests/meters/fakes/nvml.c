/* A fake libnvidia-ml.so.1: the functions that energy tools call, driven by the file $FAKE_NVML (see wave.h).
 * -DOLD_DRIVER leaves out what drivers before Volta lack: the energy counter and field values. */
#include "wave.h"

typedef struct { unsigned id, scope; long long time, latency; int type, ret; union { double d; unsigned u; unsigned long long q; } value; } Field;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; unsigned long long time; unsigned sm, mem, enc, dec; } ProcessUse;
typedef struct { unsigned pid; unsigned long long memory; unsigned gi, ci; } Process;
typedef void *Device;

enum { OK = 0, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, INVALID = 2, DRIVER_NOT_LOADED = 9 };
#define INDEX(d) ((int)(intptr_t)(d) - 1)
#define GPU(d) (&state.gpu[INDEX(d) & 15])
#define BEGIN load("FAKE_NVML"); { int code = failing(__func__); if (code) return code; }
#define REACH if (GPU(d)->lost) return 15; /* NVML_ERROR_GPU_IS_LOST */
#define TEXT(format, ...) { snprintf(text, length, format, ##__VA_ARGS__); return OK; }

int nvmlInitWithFlags(unsigned flags) { (void)flags; if (!getenv("FAKE_NVML")) return DRIVER_NOT_LOADED; BEGIN return OK; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) {
    return code == UNSUPPORTED ? "Not Supported" : code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "fake error";
}
int nvmlSystemGetDriverVersion(char *text, unsigned length) { BEGIN TEXT("535.104.05") }
int nvmlSystemGetNVMLVersion(char *text, unsigned length) { BEGIN TEXT("12.535.104.05") }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { BEGIN *version = 12020; return OK; }
int nvmlSystemGetCudaDriverVersion(int *version) { BEGIN *version = 12020; return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { BEGIN *count = (unsigned)state.devices; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    BEGIN
    if ((int)index >= state.devices) return INVALID;
    Device d = (Device)(intptr_t)(index + 1);
    REACH
    *device = d;
    return OK;
}
int nvmlDeviceGetName(Device d, char *text, unsigned length) { BEGIN TEXT("%s", GPU(d)->name) }
int nvmlDeviceGetUUID(Device d, char *text, unsigned length) { BEGIN TEXT("GPU-fake-%04d", INDEX(d)) }
int nvmlDeviceGetIndex(Device d, unsigned *index) { BEGIN *index = (unsigned)INDEX(d); return OK; }
int nvmlDeviceGetPciInfo_v3(Device d, Pci *pci) {
    BEGIN
    memset(pci, 0, sizeof *pci);
    pci->bus = (unsigned)INDEX(d) + 1;
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    return OK;
}
int nvmlDeviceGetArchitecture(Device d, unsigned *arch) { (void)d; BEGIN *arch = 7; return OK; }
int nvmlDeviceGetCudaComputeCapability(Device d, int *major, int *minor) { BEGIN *major = GPU(d)->major; *minor = GPU(d)->minor; return OK; }

int nvmlDeviceGetPowerUsage(Device d, unsigned *mw) {
    BEGIN
    REACH
    if (GPU(d)->silent) return UNSUPPORTED;
    *mw = (unsigned)lround(1e3 * power_w(GPU(d), refreshed_s()));
    return OK;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetTotalEnergyConsumption(Device d, unsigned long long *mj) {
    BEGIN
    REACH
    if (GPU(d)->silent) return UNSUPPORTED;
    *mj = (unsigned long long)(counter_j(GPU(d)) * 1e3);
    return OK;
}
int nvmlDeviceGetFieldValues(Device d, int count, Field *fields) {
    BEGIN
    REACH
    double s = refreshed_s();
    for (int i = 0; i < count; i++) {
        Field *f = &fields[i];
        f->ret = OK; f->time = 0; f->latency = 0; f->type = 1;
        if (GPU(d)->silent || f->scope) f->ret = UNSUPPORTED;
        else if (f->id == 186) f->value.u = (unsigned)lround(1e3 * field_w(GPU(d), s, INSTANT));
        else if (f->id == 185 && GPU(d)->count) f->value.u = (unsigned)lround(1e3 * field_w(GPU(d), s, AVERAGE));
        else if (f->id == 185) f->value.u = (unsigned)lround(1e3 * (energy_j(GPU(d), s) - energy_j(GPU(d), s - 1)));
        else if (f->id == 83) { f->type = 3; f->value.q = (unsigned long long)(counter_j(GPU(d)) * 1e3); }
        else f->ret = UNSUPPORTED;
    }
    return OK;
}
#endif
int nvmlDeviceGetUtilizationRates(Device d, Utilization *use) {
    BEGIN
    REACH
    use->gpu = power_w(GPU(d), refreshed_s()) >= GPU(d)->high ? 100 : 0; use->memory = 20;
    return OK;
}
int nvmlDeviceGetMemoryInfo(Device d, Memory *m) { (void)d; BEGIN m->total = 40ull << 30; m->used = 4ull << 30; m->free = m->total - m->used; return OK; }
int nvmlDeviceGetTemperature(Device d, unsigned sensor, unsigned *c) { (void)sensor; BEGIN *c = 40 + (unsigned)INDEX(d); return OK; }
int nvmlDeviceGetClockInfo(Device d, unsigned type, unsigned *mhz) { (void)d; BEGIN *mhz = type == 2 ? 1215 : 1410; return OK; }
int nvmlDeviceGetPowerManagementLimit(Device d, unsigned *mw) { (void)d; BEGIN *mw = 400000; return OK; }
int nvmlDeviceGetPowerManagementDefaultLimit(Device d, unsigned *mw) { (void)d; BEGIN *mw = 400000; return OK; }
int nvmlDeviceGetEnforcedPowerLimit(Device d, unsigned *mw) { (void)d; BEGIN *mw = 400000; return OK; }
int nvmlDeviceGetPowerManagementLimitConstraints(Device d, unsigned *low, unsigned *high) { (void)d; BEGIN *low = 100000; *high = 400000; return OK; }
int nvmlDeviceGetComputeMode(Device d, unsigned *mode) { (void)d; BEGIN *mode = 0; return OK; }
int nvmlDeviceGetPersistenceMode(Device d, unsigned *mode) { (void)d; BEGIN *mode = 1; return OK; }
/* A MIG instance has a handle of its own: the row of `state.instance`, above the card's. */
#define INSTANCE(d) ((int)((intptr_t)(d) >> 8) - 1)
int nvmlDeviceGetComputeRunningProcesses_v3(Device d, unsigned *count, Process *list) {
    BEGIN
    unsigned have = 0, room = list ? *count : 0;
    for (int i = 0; i < (INSTANCE(d) < 0 ? state.processes : 1); i++) if (INSTANCE(d) >= 0 || state.process[i].gpu == INDEX(d)) {
        if (have < room) { memset(&list[have], 0, sizeof *list); list[have].pid = INSTANCE(d) < 0 ? state.process[i].pid : state.instance[INSTANCE(d)].pid; }
        have++;
    }
    *count = have;
    return have <= room ? OK : TOO_SMALL;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(Device d, unsigned *count, Process *list) { (void)d; (void)list; BEGIN *count = 0; return OK; }
int nvmlDeviceGetProcessUtilization(Device d, ProcessUse *list, unsigned *count, unsigned long long since) {
    BEGIN
    unsigned have = 0, room = *count;
    for (int i = 0; i < state.processes; i++) {
        unsigned long long seen_us = state.process[i].seen_us ? state.process[i].seen_us : (unsigned long long)(1e6 * elapsed_s());
        if (state.process[i].gpu != INDEX(d) || !state.process[i].sm || seen_us <= since) continue;
        if (list && have < room) { memset(&list[have], 0, sizeof *list); list[have].pid = state.process[i].pid; list[have].sm = state.process[i].sm; list[have].time = seen_us; }
        have++;
    }
    *count = have;
    return !have ? NOT_FOUND : list && have <= room ? OK : TOO_SMALL;
}
int nvmlDeviceGetMigMode(Device d, unsigned *now, unsigned *pending) {
    BEGIN
    if (!GPU(d)->mig) return UNSUPPORTED;
    *now = *pending = 1;
    return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(Device d, unsigned *count) { BEGIN *count = GPU(d)->mig ? 7 : 0; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(Device d, unsigned index, Device *mig) {
    BEGIN
    if ((int)index >= GPU(d)->mig) return NOT_FOUND;
    *mig = d;
    for (int i = 0, seen = 0; i < state.instances; i++)
        if (state.instance[i].gpu == INDEX(d) && seen++ == (int)index) *mig = (Device)((intptr_t)d | (intptr_t)(i + 1) << 8);
    return OK;
}
typedef struct { unsigned processors, copy, decoder, encoder, jpeg, ofa, slices, compute_slices; unsigned long long memory_mb; } Attributes;
typedef struct { unsigned version, supported; } Support;
typedef struct { unsigned version, count; int *before, *after; struct { unsigned id; int code; double value; char *texts[3]; } metrics[1]; } Metrics;
int nvmlDeviceGetGpuInstanceId(Device d, unsigned *number) {
    BEGIN
    if (INSTANCE(d) < 0) return UNSUPPORTED;
    *number = state.instance[INSTANCE(d)].number;
    return OK;
}
int nvmlDeviceGetAttributes_v2(Device d, Attributes *about) {
    BEGIN
    if (INSTANCE(d) < 0) return UNSUPPORTED;
    memset(about, 0, sizeof *about);
    about->slices = state.instance[INSTANCE(d)].slices;
    return OK;
}
int nvmlGpmQueryDeviceSupport(Device d, Support *about) { (void)d; BEGIN about->supported = state.instances > 0; return OK; }
int nvmlGpmSampleAlloc(int **sample) { BEGIN *sample = calloc(1, sizeof **sample); return OK; }
int nvmlGpmSampleFree(int *sample) { free(sample); return OK; }
int nvmlGpmMigSampleGet(Device d, unsigned number, int *sample) {
    BEGIN
    for (int i = 0; i < state.instances; i++)
        if (state.instance[i].gpu == INDEX(d) && state.instance[i].number == number) { *sample = i; return OK; }
    return NOT_FOUND;
}
int nvmlGpmMetricsGet(Metrics *order) {
    BEGIN
    if (*order->before != *order->after || order->metrics[0].id != 2) return INVALID;
    order->metrics[0].code = OK;
    order->metrics[0].value = state.instance[*order->after].sm;
    return OK;
}

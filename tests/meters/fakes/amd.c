/* A fake librocm_smi64.so, or with -DAMDSMI libamd_smi.so, driven by the file $FAKE_AMD (see wave.h).
 * Like the real ones it says a count is 15.3 µJ although it is 2^-16 J, and gives the device's own time in ns. */
#include "wave.h"

enum { OK = 0, UNSUPPORTED = 2, NO_DATA = 0xe };
#define BEGIN load("FAKE_AMD"); { int code = failing(__func__); if (code) return code; }
#define DEVICE_CLOCK_NS 777000000000LL /* the device's clock does not start with ours */

static int energy(const Gpu *g, uint64_t *counts, float *resolution, uint64_t *time) {
    if (g->silent) return UNSUPPORTED;
    *counts = (uint64_t)(counter_j(g) * 65536.0);
    *resolution = 15.3f;
    *time = (uint64_t)(refreshed_s() * 1e9) + DEVICE_CLOCK_NS;
    return OK;
}
static uint64_t microwatts(const Gpu *g) { return (uint64_t)llround(1e6 * power_w(g, refreshed_s())); }

#ifndef AMDSMI
#define GPU(i) (&state.gpu[(i) & 15])
int rsmi_init(uint64_t flags) { (void)flags; if (!getenv("FAKE_AMD")) return 8; BEGIN return OK; }
int rsmi_shut_down(void) { return OK; }
int rsmi_num_monitor_devices(uint32_t *count) { BEGIN *count = (uint32_t)state.devices; return OK; }
int rsmi_dev_energy_count_get(uint32_t i, uint64_t *counts, float *resolution, uint64_t *time) { BEGIN return energy(GPU(i), counts, resolution, time); }
int rsmi_dev_power_ave_get(uint32_t i, uint32_t sensor, uint64_t *uw) { (void)sensor; BEGIN if (GPU(i)->silent) return UNSUPPORTED; *uw = microwatts(GPU(i)); return OK; }
int rsmi_dev_current_socket_power_get(uint32_t i, uint64_t *uw) { return rsmi_dev_power_ave_get(i, 0, uw); }
int rsmi_dev_busy_percent_get(uint32_t i, uint32_t *percent) { BEGIN *percent = power_w(GPU(i), refreshed_s()) >= GPU(i)->high ? 100 : 0; return OK; }
int rsmi_dev_temp_metric_get(uint32_t i, uint32_t sensor, int metric, int64_t *mc) { (void)sensor; (void)metric; BEGIN *mc = 45000 + 1000 * (int64_t)i; return OK; }
int rsmi_dev_memory_usage_get(uint32_t i, int type, uint64_t *bytes) { (void)i; (void)type; BEGIN *bytes = 8ull << 30; return OK; }
int rsmi_dev_memory_total_get(uint32_t i, int type, uint64_t *bytes) { (void)i; (void)type; BEGIN *bytes = 64ull << 30; return OK; }
int rsmi_dev_power_cap_get(uint32_t i, uint32_t sensor, uint64_t *uw) { (void)i; (void)sensor; BEGIN *uw = 560000000; return OK; }
int rsmi_dev_name_get(uint32_t i, char *text, size_t length) { BEGIN snprintf(text, length, "%s", GPU(i)->name); return OK; }
int rsmi_dev_unique_id_get(uint32_t i, uint64_t *id) { BEGIN *id = 0xabc0 + i; return OK; }
int rsmi_dev_pci_id_get(uint32_t i, uint64_t *id) { BEGIN *id = (uint64_t)(0xc1 + i) << 8; return OK; }
#else
typedef void *Handle;
#define INDEX(h) ((int)(intptr_t)(h) - 1)
#define GPU(h) (&state.gpu[INDEX(h) & 15])
typedef struct { uint64_t socket_power; uint32_t current, average; uint64_t gfx, soc, mem; uint32_t limit, pad; uint64_t reserved[18]; } Power;
typedef struct { uint32_t gfx, umc, mm, reserved[13]; } Usage;
typedef struct { char name[256]; uint32_t vendor; char rest[1024]; } Asic;
int amdsmi_init(uint64_t flags) { (void)flags; if (!getenv("FAKE_AMD")) return 34; BEGIN return OK; }
int amdsmi_shut_down(void) { return OK; }
int amdsmi_get_socket_handles(uint32_t *count, Handle *list) {
    BEGIN
    if (list) for (uint32_t i = 0; i < *count; i++) list[i] = (Handle)(intptr_t)(i + 1);
    else *count = (uint32_t)state.devices;
    return OK;
}
int amdsmi_get_processor_handles(Handle socket, uint32_t *count, Handle *list) { BEGIN if (list && *count) list[0] = socket; *count = 1; return OK; }
int amdsmi_get_energy_count(Handle h, uint64_t *counts, float *resolution, uint64_t *time) { BEGIN return energy(GPU(h), counts, resolution, time); }
int amdsmi_get_power_info(Handle h, Power *p) {
    BEGIN
    if (GPU(h)->silent) return UNSUPPORTED;
    memset(p, 0, sizeof *p);
    p->socket_power = microwatts(GPU(h)) / 1000000; p->current = p->average = (uint32_t)p->socket_power;
    return OK;
}
int amdsmi_get_gpu_activity(Handle h, Usage *u) { BEGIN memset(u, 0, sizeof *u); u->gfx = power_w(GPU(h), refreshed_s()) >= GPU(h)->high ? 100 : 0; return OK; }
int amdsmi_get_temp_metric(Handle h, int sensor, int metric, int64_t *c) { (void)h; (void)sensor; (void)metric; BEGIN *c = 45; return OK; }
int amdsmi_get_gpu_memory_usage(Handle h, int type, uint64_t *bytes) { (void)h; (void)type; BEGIN *bytes = 8ull << 30; return OK; }
int amdsmi_get_gpu_memory_total(Handle h, int type, uint64_t *bytes) { (void)h; (void)type; BEGIN *bytes = 64ull << 30; return OK; }
int amdsmi_get_gpu_asic_info(Handle h, Asic *a) { BEGIN snprintf(a->name, sizeof a->name, "%s", GPU(h)->name); return OK; }
int amdsmi_get_gpu_device_uuid(Handle h, unsigned *length, char *text) { BEGIN snprintf(text, *length, "amd-fake-%04d", INDEX(h)); return OK; }
int amdsmi_get_gpu_bdf_id(Handle h, uint64_t *id) { BEGIN *id = (uint64_t)(0xc1 + INDEX(h)) << 8; return OK; }
#endif

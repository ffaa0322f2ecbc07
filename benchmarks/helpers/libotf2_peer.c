/* The same work with libotf2's local readers: `count` the events, or `append` them to columns as a C program would.
 * usage: libotf2_peer ANCHOR count|callbacks|append; prints events, wall and CPU seconds. */
#include <otf2/otf2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct columns {
    uint64_t *time, *metric_time, *metric_value;
    uint32_t *region, *metric;
    uint8_t *enter;
    size_t calls, calls_room, metrics, metrics_room;
};

struct locations {
    uint64_t *id, *events;
    size_t count, room;
};

static int append;
static uint64_t callbacks_seen;

static void *grown(void *column, size_t room, size_t element)
{
    void *more = realloc(column, room * element);
    if (!more)
        abort();
    return more;
}

static void call(struct columns *c, uint64_t time, uint32_t region, int enter)
{
    callbacks_seen++;
    if (!append)
        return;
    if (c->calls == c->calls_room) {
        c->calls_room = c->calls_room ? 2 * c->calls_room : 1024;
        c->time = grown(c->time, c->calls_room, 8);
        c->region = grown(c->region, c->calls_room, 4);
        c->enter = grown(c->enter, c->calls_room, 1);
    }
    c->time[c->calls] = time;
    c->region[c->calls] = region;
    c->enter[c->calls++] = (uint8_t)enter;
}

static OTF2_CallbackCode on_enter(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t position, void *data,
                                  OTF2_AttributeList *list, OTF2_RegionRef region)
{
    (void)location, (void)position, (void)list;
    call(data, time, region, 1);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_leave(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t position, void *data,
                                  OTF2_AttributeList *list, OTF2_RegionRef region)
{
    (void)location, (void)position, (void)list;
    call(data, time, region, 0);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_metric(OTF2_LocationRef location, OTF2_TimeStamp time, uint64_t position, void *data,
                                   OTF2_AttributeList *list, OTF2_MetricRef metric, uint8_t members,
                                   const OTF2_Type *types, const OTF2_MetricValue *values)
{
    struct columns *c = data;
    (void)location, (void)position, (void)list, (void)types;
    callbacks_seen++;
    for (uint8_t i = 0; append && i < members; i++) {
        if (c->metrics == c->metrics_room) {
            c->metrics_room = c->metrics_room ? 2 * c->metrics_room : 1024;
            c->metric_time = grown(c->metric_time, c->metrics_room, 8);
            c->metric_value = grown(c->metric_value, c->metrics_room, 8);
            c->metric = grown(c->metric, c->metrics_room, 4);
        }
        c->metric_time[c->metrics] = time;
        c->metric_value[c->metrics] = values[i].unsigned_int;
        c->metric[c->metrics++] = metric;
    }
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode on_location(void *data, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type,
                                     uint64_t events, OTF2_LocationGroupRef group)
{
    struct locations *all = data;
    (void)name, (void)type, (void)group;
    if (all->count == all->room) {
        all->room = 2 * all->room + 64;
        all->id = grown(all->id, all->room, 8);
        all->events = grown(all->events, all->room, 8);
    }
    all->id[all->count] = self;
    all->events[all->count++] = events;
    return OTF2_CALLBACK_SUCCESS;
}

static void read_definitions(OTF2_Reader *reader, struct locations *all)
{
    OTF2_GlobalDefReader *definitions = OTF2_Reader_GetGlobalDefReader(reader);
    OTF2_GlobalDefReaderCallbacks *callbacks = OTF2_GlobalDefReaderCallbacks_New();
    uint64_t read;
    OTF2_GlobalDefReaderCallbacks_SetLocationCallback(callbacks, on_location);
    OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, all);
    OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &read);
    OTF2_GlobalDefReaderCallbacks_Delete(callbacks);
    OTF2_Reader_CloseGlobalDefReader(reader, definitions);
}

static uint64_t read_location(OTF2_Reader *reader, uint64_t id, uint64_t events, int callbacks_wanted, void *columns)
{
    uint64_t read = 0;
    OTF2_DefReader *local = OTF2_Reader_GetDefReader(reader, id);
    if (local) {
        OTF2_Reader_ReadAllLocalDefinitions(reader, local, &read);
        OTF2_Reader_CloseDefReader(reader, local);
    }
    OTF2_EvtReader *source = OTF2_Reader_GetEvtReader(reader, id);
    OTF2_EvtReaderCallbacks *callbacks = OTF2_EvtReaderCallbacks_New();
    if (callbacks_wanted) {
        OTF2_EvtReaderCallbacks_SetEnterCallback(callbacks, on_enter);
        OTF2_EvtReaderCallbacks_SetLeaveCallback(callbacks, on_leave);
        OTF2_EvtReaderCallbacks_SetMetricCallback(callbacks, on_metric);
    }
    OTF2_Reader_RegisterEvtCallbacks(reader, source, callbacks, columns);
    OTF2_EvtReaderCallbacks_Delete(callbacks);
    read = 0;
    OTF2_Reader_ReadLocalEvents(reader, source, events, &read);
    OTF2_Reader_CloseEvtReader(reader, source);
    return read;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    append = !strcmp(argv[2], "append");
    int callbacks = append || !strcmp(argv[2], "callbacks");
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    struct locations all = {0};
    OTF2_Reader *reader = OTF2_Reader_Open(argv[1]);
    if (!reader)
        return 1;
    OTF2_Reader_SetSerialCollectiveCallbacks(reader);
    read_definitions(reader, &all);
    for (size_t i = 0; i < all.count; i++)
        OTF2_Reader_SelectLocation(reader, all.id[i]);
    OTF2_Reader_OpenDefFiles(reader);
    OTF2_Reader_OpenEvtFiles(reader);
    uint64_t events = 0;
    struct columns *columns = calloc(all.count + 1, sizeof *columns);
    for (size_t i = 0; i < all.count; i++)
        events += read_location(reader, all.id[i], all.events[i], callbacks, &columns[i]);
    OTF2_Reader_CloseDefFiles(reader);
    OTF2_Reader_CloseEvtFiles(reader);
    OTF2_Reader_Close(reader);
    printf("%llu %.6f %.6f\n", (unsigned long long)events, seconds(CLOCK_MONOTONIC) - wall,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}

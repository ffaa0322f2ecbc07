/* One pass over a location for a sink that nests: opened, walked, finished and closed. As nest.h and walk.h, which it
 * brings in, it is included after ``struct sink`` and what the sink does with spans and readings. */
#ifndef WAT_NEST_WALK_H
#define WAT_NEST_WALK_H

#include "nest.h"
#include "walk.h"

static void nest_walk(const struct wat_location *location, struct sink *sink, struct wat_report *report)
{
    struct walk walk;
    if (walk_open(&walk, location, location->offset_ticks, report))
        return;
    report->code = nesting_open(&sink->nesting, location, &walk.local, report);
    if (!report->code)
        walk_all(&walk, sink, report);
    if (report->code != WAT_MEMORY)
        nesting_finish(sink, &sink->nesting);
    nesting_close(&sink->nesting);
    walk_close(&walk);
}

#endif

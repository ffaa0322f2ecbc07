/* Many locations in one call, one after the other: for each its files are named, the rest they have in common. */
#ifndef WAT_MANY_H
#define WAT_MANY_H

#include "wattribute.h"

struct in_turn {
    const struct wat_many *many;
    struct wat_location location; /* the one at hand */
    char *evt, *local;            /* its paths */
    size_t stem;                  /* bytes of the folder and the slash behind it */
};

/* Returns WAT_OK or WAT_MEMORY. */
int turn_open(struct in_turn *turn, const struct wat_many *many);

/* Location i, valid until the next one is asked for. */
const struct wat_location *turn_at(struct in_turn *turn, int64_t i);

void turn_close(struct in_turn *turn);

#endif

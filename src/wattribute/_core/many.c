#define _GNU_SOURCE
#include "many.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST_NAME = 32 }; /* an id of 64 bits and a suffix */

int turn_open(struct in_turn *turn, const struct wat_many *many)
{
    size_t folder = strlen(many->folder);
    turn->many = many;
    turn->location = *many->like;
    turn->stem = folder + 1;
    turn->evt = malloc(2 * (turn->stem + LONGEST_NAME));
    if (!turn->evt)
        return WAT_MEMORY;
    turn->local = turn->evt + turn->stem + LONGEST_NAME;
    memcpy(turn->evt, many->folder, folder);
    turn->evt[folder] = '/';
    memcpy(turn->local, turn->evt, turn->stem);
    turn->location.evt = turn->evt, turn->location.local = turn->local;
    return WAT_OK;
}

const struct wat_location *turn_at(struct in_turn *turn, int64_t i)
{
    snprintf(turn->evt + turn->stem, LONGEST_NAME, "%" PRIu64 ".evt", turn->many->id[i]);
    snprintf(turn->local + turn->stem, LONGEST_NAME, "%" PRIu64 ".def", turn->many->id[i]);
    turn->location.declared = turn->many->declared[i];
    return &turn->location;
}

void turn_close(struct in_turn *turn)
{
    free(turn->evt);
}

int wat_find_many(const struct wat_many *many, uint8_t *found)
{
    struct in_turn turn;
    if (turn_open(&turn, many))
        return WAT_MEMORY;
    int folder = open(many->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* its path is walked once */
    for (int64_t i = 0; i < many->count; i++) {
        struct stat about;
        const char *name = turn_at(&turn, i)->evt + turn.stem;
        found[i] = folder >= 0 && !fstatat(folder, name, &about, 0) && S_ISREG(about.st_mode) && about.st_size
                   && !faccessat(folder, name, R_OK, 0);
    }
    if (folder >= 0)
        close(folder);
    turn_close(&turn);
    return WAT_OK;
}

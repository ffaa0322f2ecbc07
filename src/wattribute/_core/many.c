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

int each_open(struct each *each, const struct wat_many *many)
{
    size_t folder = strlen(many->folder);
    each->many = many;
    each->location = *many->like;
    each->stem = folder + 1;
    each->evt = malloc(2 * (each->stem + LONGEST_NAME));
    if (!each->evt)
        return WAT_MEMORY;
    each->local = each->evt + each->stem + LONGEST_NAME;
    memcpy(each->evt, many->folder, folder);
    each->evt[folder] = '/';
    memcpy(each->local, each->evt, each->stem);
    each->location.evt = each->evt, each->location.local = each->local;
    return WAT_OK;
}

const struct wat_location *each_at(struct each *each, int64_t i)
{
    snprintf(each->evt + each->stem, LONGEST_NAME, "%" PRIu64 ".evt", each->many->id[i]);
    snprintf(each->local + each->stem, LONGEST_NAME, "%" PRIu64 ".def", each->many->id[i]);
    each->location.declared = each->many->declared[i];
    return &each->location;
}

void each_close(struct each *each)
{
    free(each->evt);
}

int wat_find_many(const struct wat_many *many, uint8_t *found)
{
    struct each each;
    if (each_open(&each, many))
        return WAT_MEMORY;
    int folder = open(many->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* its path is walked once */
    for (int64_t i = 0; i < many->count; i++) {
        struct stat about;
        const char *name = each_at(&each, i)->evt + each.stem;
        found[i] = folder >= 0 && !fstatat(folder, name, &about, 0) && S_ISREG(about.st_mode) && about.st_size
                   && !faccessat(folder, name, R_OK, 0);
    }
    if (folder >= 0)
        close(folder);
    each_close(&each);
    return WAT_OK;
}

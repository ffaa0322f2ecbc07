#define _GNU_SOURCE
#include "spill.h"

#include "columns.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FROM = 1 << 20, STEP = 1 << 20, PAGE = 4096 };

#ifdef __linux__
static int nameless(const char *folder)
{
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0)
        return file;
    char name[4096];
    if (snprintf(name, sizeof name, "%s/wattribute-XXXXXX", folder) >= (int)sizeof name)
        return -1;
    file = mkostemp(name, O_CLOEXEC);
    if (file >= 0)
        unlink(name);
    return file;
}

/* The column moves from memory into a file. */
static int spill_begin(struct spill *spill, struct wat_column *column)
{
    int64_t bytes = (column->bytes / STEP + 1) * STEP;
    spill->file = nameless(spill->folder);
    /* blocks are taken beforehand: a write to a page for which there is none left would end the process */
    if (spill->file < 0 || posix_fallocate(spill->file, 0, bytes))
        return WAT_SPACE;
    void *data = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spill->file, 0);
    if (data == MAP_FAILED)
        return WAT_MEMORY;
    memcpy(data, column->data, (size_t)column->length * 8);
    wat_free(column->data, column->bytes);
    column->data = data;
    column->bytes = bytes;
    return WAT_OK;
}

int spill_grow(struct spill *spill, struct wat_column *column)
{
    int64_t bytes = column->bytes;
    if (!spill->folder || bytes + bytes / 2 + 1024 < FROM)
        return column_grow(column, 8);
    if (spill->file < 0)
        return spill_begin(spill, column);
    if (posix_fallocate(spill->file, bytes, STEP))
        return WAT_SPACE;
    pages_passed(column->data, bytes);
    void *data = mremap(column->data, (size_t)bytes, (size_t)(bytes + STEP), MREMAP_MAYMOVE);
    if (data == MAP_FAILED)
        return WAT_MEMORY;
    column->data = data;
    column->bytes = bytes + STEP;
    return WAT_OK;
}
#else
int spill_grow(struct spill *spill, struct wat_column *column)
{
    (void)spill;
    return column_grow(column, 8);
}
#endif

int spill_close(struct spill *spill, const struct wat_column *column)
{
    if (spill->file < 0)
        return 0;
    close(spill->file);
    pages_passed(column->data, column->bytes);
    return 1;
}

void pages_passed(const void *data, int64_t bytes)
{
    const uintptr_t in_page = PAGE - 1;
    uintptr_t from = ((uintptr_t)data + in_page) & ~in_page, until = ((uintptr_t)data + (uintptr_t)bytes) & ~in_page;
    if (until > from)
        madvise((void *)from, until - from, MADV_DONTNEED);
}

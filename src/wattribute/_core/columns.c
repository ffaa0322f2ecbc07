#define _GNU_SOURCE
#include "columns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES_FROM = 1 << 20, HUGE = 2 << 20 };

static int64_t rounded(int64_t bytes)
{
    return bytes < PAGES_FROM ? bytes : (bytes + 4095) & ~(int64_t)4095;
}

#ifdef __linux__
/* New pages; where huge ones fit, they begin at a multiple of their size. */
static void *pages(int64_t bytes)
{
    size_t more = bytes >= HUGE ? HUGE : 0, size = (size_t)bytes;
    char *data = mmap(NULL, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    if (more) {
        size_t skip = -(uintptr_t)data & (HUGE - 1);
        if (skip)
            munmap(data, skip);
        if (more - skip)
            munmap(data + skip + size, more - skip);
        data += skip;
    }
    return data;
}

static void *resized_pages(void *data, int64_t old, int64_t bytes)
{
    int how = 0;
    void *to = NULL;
    if (bytes > old) { /* into a place where huge pages fit again */
        to = pages(bytes);
        if (!to)
            return NULL;
        how = MREMAP_MAYMOVE | MREMAP_FIXED;
    }
    void *moved = mremap(data, (size_t)old, (size_t)bytes, how, to);
    return moved == MAP_FAILED ? NULL : moved;
}
#endif

void wat_free(void *data, int64_t bytes)
{
#ifdef __linux__
    if (bytes >= PAGES_FROM) {
        munmap(data, (size_t)bytes);
        return;
    }
#endif
    (void)bytes;
    free(data);
}

int64_t column_more(int64_t bytes)
{
    bytes += bytes / 2;
    return bytes < HUGE ? bytes : (bytes + HUGE - 1) & ~(int64_t)(HUGE - 1); /* so that a huge page can be the last */
}

int column_resize(struct wat_column *column, int64_t bytes)
{
    bytes = rounded(bytes < 1 ? 1 : bytes);
    void *data = NULL;
#ifdef __linux__
    if (column->bytes >= PAGES_FROM && bytes >= PAGES_FROM) {
        data = resized_pages(column->data, column->bytes, bytes);
    } else if (bytes >= PAGES_FROM || column->bytes >= PAGES_FROM) {
        data = bytes >= PAGES_FROM ? pages(bytes) : malloc((size_t)bytes);
        if (data && column->data) {
            memcpy(data, column->data, (size_t)(bytes < column->bytes ? bytes : column->bytes));
            wat_free(column->data, column->bytes);
        }
    } else
#endif
        data = realloc(column->data, (size_t)bytes);
    if (!data)
        return WAT_MEMORY;
    if (bytes < PAGES_FROM && bytes > column->bytes)
        memset((char *)data + column->bytes, 0, (size_t)(bytes - column->bytes));
#ifdef __linux__
    if (bytes >= HUGE)
        madvise(data, (size_t)bytes, MADV_HUGEPAGE);
#endif
    column->data = data;
    column->bytes = bytes;
    return WAT_OK;
}

int column_grow(struct wat_column *column, size_t element)
{
    return column_resize(column, column_more(column->bytes + 64 * (int64_t)element));
}

void column_trim(struct wat_column *column, size_t element)
{
    int64_t bytes = column->length * (int64_t)element;
    if (bytes + 4096 < column->bytes)
        column_resize(column, bytes);
}

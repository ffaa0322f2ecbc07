#define _GNU_SOURCE
#include "columns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES_FROM = 1 << 20, HUGE = 2 << 20 };

/* Pages come as whole huge ones: 4 KiB at a time, faults would cost more than decoding does. */
static int64_t rounded(int64_t bytes)
{
    return bytes < PAGES_FROM ? bytes : (bytes + HUGE - 1) & ~(int64_t)(HUGE - 1);
}

#ifdef __linux__
/* New pages; they begin at a multiple of a huge page's size. */
static void *pages(int64_t bytes)
{
    size_t size = (size_t)bytes;
    char *data = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    size_t skip = -(uintptr_t)data & (HUGE - 1);
    if (skip)
        munmap(data, skip);
    munmap(data + skip + size, HUGE - skip);
    madvise(data + skip, size, MADV_HUGEPAGE);
    return data + skip;
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
    return rounded(bytes + bytes / 2);
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
    column->data = data;
    column->bytes = bytes;
    return WAT_OK;
}

int column_resize_zero(struct wat_column *column, int64_t bytes)
{
    int64_t before = column->bytes;
    if (column_resize(column, bytes))
        return WAT_MEMORY;
#ifdef __linux__
    if (column->bytes >= PAGES_FROM) /* new pages are zero */
        return WAT_OK;
#endif
    if (column->bytes > before)
        memset((char *)column->data + before, 0, (size_t)(column->bytes - before));
    return WAT_OK;
}

int column_grow(struct wat_column *column, size_t element)
{
    return column_resize(column, column_more(column->bytes + 64 * (int64_t)element));
}

void column_trim(struct wat_column *column, size_t element)
{
    int64_t bytes = column->length * (int64_t)element;
    if (column->bytes < PAGES_FROM && bytes < column->bytes) /* pages that were not written cost nothing */
        column_resize(column, bytes);
}

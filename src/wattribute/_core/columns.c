#define _GNU_SOURCE
#include "columns.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGES_FROM = 1 << 20, HUGE_FROM = 8 << 20 };

static int64_t rounded(int64_t bytes)
{
    return bytes < PAGES_FROM ? bytes : (bytes + 4095) & ~(int64_t)4095;
}

#ifdef __linux__
static void *pages(int64_t bytes)
{
    void *data = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void *resized_pages(void *data, int64_t old, int64_t bytes)
{
    void *moved = mremap(data, (size_t)old, (size_t)bytes, MREMAP_MAYMOVE);
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
    if (bytes >= HUGE_FROM)
        madvise(data, (size_t)bytes, MADV_HUGEPAGE);
#endif
    column->data = data;
    column->bytes = bytes;
    return WAT_OK;
}

int column_grow(struct wat_column *column, size_t element)
{
    return column_resize(column, column->bytes + column->bytes / 2 + 64 * (int64_t)element);
}

void column_trim(struct wat_column *column, size_t element)
{
    int64_t bytes = column->length * (int64_t)element;
    if (bytes + 4096 < column->bytes)
        column_resize(column, bytes);
}

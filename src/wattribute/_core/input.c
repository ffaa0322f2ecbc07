#define _GNU_SOURCE
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int code_of_errno(void)
{
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
        return WAT_MISSING;
    case EACCES:
    case EPERM:
        return WAT_PERMISSION;
    case ENOMEM:
        return WAT_MEMORY;
    default:
        return WAT_IO;
    }
}

int chunks_open(struct chunks *chunks, const char *path, uint64_t chunk)
{
    struct stat about;
    memset(chunks, 0, sizeof *chunks);
    /* not blocking: a pipe of that name would wait for a writer */
    chunks->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (chunks->fd < 0)
        return code_of_errno();
    int code = WAT_OK;
    if (fstat(chunks->fd, &about) || !S_ISREG(about.st_mode))
        code = WAT_IO;
    else if (!about.st_size)
        code = WAT_EMPTY;
    else if (chunk < SMALLEST_CHUNK)
        code = WAT_CORRUPT;
    if (!code) {
        chunks->file_bytes = (uint64_t)about.st_size;
        chunks->chunk = chunk;
        chunks->room = chunk < chunks->file_bytes ? chunk : chunks->file_bytes;
        chunks->buffer = malloc(chunks->room + SLACK);
        if (!chunks->buffer)
            code = WAT_MEMORY;
    }
    if (code)
        close(chunks->fd);
    return code;
}

/* read() until the buffer is full or the file ends; −1 on an error. */
static int64_t fill(struct chunks *chunks)
{
    uint64_t have = 0;
    while (have < chunks->room) {
        ssize_t got = read(chunks->fd, chunks->buffer + have, chunks->room - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (!got)
            break;
        have += (uint64_t)got;
    }
    memset(chunks->buffer + have, 0, SLACK);
    return (int64_t)have;
}

int chunks_next(struct chunks *chunks, uint64_t *byte)
{
    uint64_t before = chunks->size;
    *byte = chunks->start += before;
    if (before && before < chunks->chunk) /* after a short chunk nothing can follow */
        return WAT_TRUNCATED;
    int64_t size = fill(chunks);
    if (size < 0)
        return WAT_IO;
    chunks->size = (uint64_t)size;
    if (size < HEADER_BYTES)
        return WAT_TRUNCATED;
    const uint8_t *header = chunks->buffer;
    if (header[0] != 3 || (header[1] != 0x42 && header[1] != 0x23))
        return WAT_CORRUPT;
    if (header[1] == 0x23)
        return WAT_ENDIAN;
    chunks->first = load64(header + 2);
    chunks->last = load64(header + 10);
    return WAT_OK;
}

void chunks_close(struct chunks *chunks)
{
    free(chunks->buffer);
    close(chunks->fd);
}

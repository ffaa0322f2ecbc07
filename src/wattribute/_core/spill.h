/* Columns that outgrow memory: from a size on they are pages of a file that has no name, which the system may write and
 * forget. They are read and freed as any others. */
#ifndef WAT_SPILL_H
#define WAT_SPILL_H

#include "wattribute.h"

enum { PASSED = 1 << 16 }; /* elements of eight bytes after which those behind are given up */

struct spill {
    const char *folder; /* NULL: columns stay in memory */
    int file;           /* −1: none yet */
};

/* Make room for more elements of eight bytes. WAT_OK, WAT_MEMORY or WAT_SPACE: the folder is full, or no file can be made. */
int spill_grow(struct spill *spill, struct wat_column *column);

/* Close the file of a column, which lives as long as its pages; 1 if there was one. */
int spill_close(struct spill *spill, const struct wat_column *column);

/* These bytes, pages of a file, are not needed in memory for now. */
void pages_passed(const void *data, int64_t bytes);

#endif

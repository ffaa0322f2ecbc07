/* Growable columns. Small ones live on the heap; large ones are pages of their own, which grow by moving page tables
 * (no copy), take huge pages, and cost memory only where they were written. */
#ifndef WAT_COLUMNS_H
#define WAT_COLUMNS_H

#include "wattribute.h"

/* Make room for `bytes` bytes. Returns WAT_OK or WAT_MEMORY (the column is as before). */
int column_resize(struct wat_column *column, int64_t bytes);

/* The same for a column that only grows, all of whose unwritten bytes are zero. */
int column_resize_zero(struct wat_column *column, int64_t bytes);

/* A good size for a column that has outgrown so many bytes: half as much again. */
int64_t column_more(int64_t bytes);

/* Make room for at least one more element. */
int column_grow(struct wat_column *column, size_t element);

/* Give back what is not used. */
void column_trim(struct wat_column *column, size_t element);

#define COLUMN(column, type) ((type *)(column).data)

/* Append one value; evaluates to a status. */
#define COLUMN_ADD(column, type, value)                                                                                \
    (((int64_t)sizeof(type) * ((column).length + 1) > (column).bytes && column_grow(&(column), sizeof(type)))          \
         ? WAT_MEMORY                                                                                                  \
         : (COLUMN(column, type)[(column).length++] = (value), WAT_OK))

#endif

/* pull_keys.h - check the keys of archive queries: accession numbers and UIDs as users enter them. Pure functions. */
#ifndef NOCTULE_SERVICE_COMMON_PULL_PULL_KEYS_H
#define NOCTULE_SERVICE_COMMON_PULL_PULL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define PULL_ACCESSION_SIZE 17 /* 16 characters and the terminator */

/* Returns whether a query may use the accession number unchanged: printable ASCII without wildcards
 * (*, ?, \) and without blanks at the ends. */
bool pull_accession_fits(const char *accession);
bool pull_uid_fits(const char *uid);
/* Returns whether one request may have this number of items. */
bool pull_count_fits(size_t count);

#endif

/* pull_keys.h - what may be asked of an archive by: accession numbers and UIDs, as people write them. Pure. */
#ifndef NOCTULE_SERVICE_COMMON_PULL_PULL_KEYS_H
#define NOCTULE_SERVICE_COMMON_PULL_PULL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define PULL_ACCESSION_SIZE 17 /* 16 characters and the end */

/* It can be asked for as it is: ASCII that is printed, and no pattern (*, ?, \), without blanks around it. */
bool pull_accession_fits(const char *accession);
bool pull_uid_fits(const char *uid);
/* So many items can be asked for at once. */
bool pull_count_fits(size_t count);

#endif

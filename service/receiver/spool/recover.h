/*
 * recover.h - what lies in series/ when the intake starts, so that files without rows get rows.
 *
 * Any thread, one at a time.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_RECOVER_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_RECOVER_H

#include "service/receiver/inbox/inbox_seen.h"
#include "service/receiver/spool/import.h"

struct recover;

int recover_open(struct store *store, struct recover **recover);
void recover_close(struct recover *recover);

/*
 * Reads up to `count` headers and fills the reports of as many items as there were good files;
 * *found tells. Those in `with_rows` (NULL: none) by their keys are passed over. A file that is not what its place says is left alone with a line in the log.
 * Returns 1 while there may be more, 0 at the end, -errno when series/ cannot be read.
 */
int recover_step(struct recover *recover, struct import_item *const *items, size_t count,
                 struct seen_files *with_rows, size_t *found);

#endif

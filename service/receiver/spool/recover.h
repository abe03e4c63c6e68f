/*
 * recover.h - find files in series/ that have no row when the receiver starts, so that they get rows.
 *
 * Must be used by one thread at a time.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_RECOVER_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_RECOVER_H

#include "service/receiver/inbox/inbox_seen.h"
#include "service/receiver/spool/import.h"

struct recover;

int recover_open(struct store *store, struct recover **recover);
void recover_close(struct recover *recover);

/* Reads at most `count` headers and fills the reports of the first *found items. Skips files whose keys are in
 * `with_rows`, which may be NULL. A file whose header does not match its path is logged and left unchanged. Returns 1
 * while there may be more, 0 at the end, or -errno if series/ cannot be read. */
int recover_step(struct recover *recover, struct import_item *const *items, size_t count, struct seen_files *with_rows,
                 size_t *found);

#endif

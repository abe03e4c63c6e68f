/*
 * pull_accessions.h - the accession store: accession numbers to retrieve, which no row may hold in the clear. Each
 * batch has a file in the root (LAYOUT_PULL) that only the service may read. It is removed when the batch's last item
 * has ended.
 *
 * All calls block and return 0 or -errno. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PULL_PULL_ACCESSIONS_H
#define NOCTULE_SERVICE_DAEMON_PULL_PULL_ACCESSIONS_H

#include "service/common/pull/pull_keys.h"
#include "service/daemon/core.h"

#include <stddef.h>

/* Stores the accession numbers of a batch by line; NULL: that line has none. They are on disk on return. */
int pull_accessions_store(const struct core *core, int64_t batch, const char *const *accessions, size_t count);
/* Reads one accession number. Returns -ENOENT if it is not stored. */
int pull_accessions_find(const struct core *core, int64_t batch, int32_t line, char accession[PULL_ACCESSION_SIZE]);
/* Removes the files of batches that no longer need them. No transaction may be open. */
void pull_accessions_sweep(const struct core *core);

#endif

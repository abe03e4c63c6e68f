/*
 * pull_accessions.h - the accession numbers that are to be asked for, which no row may have as they are: a file of the root for each
 * batch (LAYOUT_PULL), which only the service may read, and which goes when the last of them has ended.
 *
 * Calls block, and return 0 or -errno. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PULL_PULL_ACCESSIONS_H
#define NOCTULE_SERVICE_DAEMON_PULL_PULL_ACCESSIONS_H

#include "service/common/pull/pull_keys.h"
#include "service/daemon/core.h"

#include <stddef.h>

/* Those of a batch, by their line; NULL: that line has none. On disk when it returns. */
int vault_keep(const struct core *core, int64_t batch, const char *const *accessions, size_t count);
/* -ENOENT: it is not there. */
int vault_find(const struct core *core, int64_t batch, int32_t line,
               char accession[PULL_ACCESSION_SIZE]);
/* Removes the files of batches that need them no more; while no transaction is open. */
void vault_sweep(const struct core *core);

#endif

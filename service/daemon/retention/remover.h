/*
 * remover.h - removes files in two steps: the loop renames them into removed/, then a thread deletes them.
 *
 * Files in removed/ are not referenced any more. A file that appears at the old path meanwhile is therefore new, and
 * stays. An original in an inbox is not renamed: it is deleted if it is still the file that was received.
 */
#ifndef NOCTULE_SERVICE_DAEMON_RETENTION_REMOVER_H
#define NOCTULE_SERVICE_DAEMON_RETENTION_REMOVER_H

#include "config/config.h"
#include "db/retention_rows.h"

#include <stdatomic.h>
#include <stdbool.h>

struct remover_item {
    struct queue_removal removal;
    int folder;           /* of an original: descriptor of its inbox; else -1 */
    const char *relative; /* path below the inbox */
    bool gone;            /* it is removed, or the remaining file is not the service's own */
    int error;            /* else the reason, as -errno */
};

/* Opens an original's inbox and takes over the removal. */
void remover_take(struct remover_item *item, const struct queue_removal *removal, const struct conf *conf);
void remover_release(struct remover_item *item);

/* Renames the file into removed/, in the loop; does nothing for an original. Stores an error in the item. */
void remover_set_aside(const char *root, struct remover_item *item);

/* Deletes the files, in the thread. Setting `stop` ends it early. */
void remover_delete(const char *root, struct remover_item *items, size_t count, atomic_bool *stop);

#endif

/*
 * remover.h - files that go: set aside at once, which is one rename and the loop's; deleted at leisure, which is
 * a thread's.
 *
 * What lies in removed/ belongs to nobody any more. So what comes to the old place meanwhile is new, and stays.
 * An original of an inbox is not set aside: it goes if it is still what was taken in.
 */
#ifndef NOCTULE_SERVICE_DAEMON_RETENTION_REMOVER_H
#define NOCTULE_SERVICE_DAEMON_RETENTION_REMOVER_H

#include "config/config.h"
#include "db/retention_rows.h"

#include <stdatomic.h>
#include <stdbool.h>

struct remover_item {
    struct queue_removal removal;
    int folder;           /* of an original: its inbox, open; else -1 */
    const char *relative; /* below it */
    bool gone;            /* nothing of it is left, or what is left is none of ours */
    int error;            /* else why not */
};

/* Opens what an original needs; takes the removal over. */
void remover_take(struct remover_item *item, const struct queue_removal *removal,
                  const struct conf *conf);
void remover_release(struct remover_item *item);

/* The loop's part; of an original nothing. An error stays with the item. */
void remover_set_aside(const char *root, struct remover_item *item);

/* The thread's part. `stop` lets it end early. */
void remover_delete(const char *root, struct remover_item *items, size_t count, atomic_bool *stop);

#endif

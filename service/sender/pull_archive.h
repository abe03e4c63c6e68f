/*
 * pull_archive.h - a courier's dealings with archives that are asked for studies: FIND and MOVE, each of them a piece of work of
 * the loop's thread pool. All calls are made from the loop's thread.
 */
#ifndef NOCTULE_SERVICE_SENDER_PULL_ARCHIVE_H
#define NOCTULE_SERVICE_SENDER_PULL_ARCHIVE_H

#include "service/common/settings.h"
#include "service/common/wire/child.h"

struct puller {
    struct child *child;
    struct pull_task *tasks;     /* under way */
    void (*idle)(void *context); /* the last of them has ended */
    void *context;
};

/* FIND, MOVE and STOP_PULL, which is read to its end; each of the first two is answered by exactly one FOUND or MOVED. */
void puller_handle(struct puller *puller, struct settings *settings, struct proto_reader *reader);
/* What is under way is given back as soon as its peer lets it. */
void puller_stop(struct puller *puller);

#endif

/* pull_archive.h - retrieves studies from archives in a sender process: FIND and MOVE, each as work
 * of the loop's thread pool. Loop thread only. */
#ifndef NOCTULE_SERVICE_SENDER_PULL_ARCHIVE_H
#define NOCTULE_SERVICE_SENDER_PULL_ARCHIVE_H

#include "service/common/settings.h"
#include "service/common/wire/child.h"

struct pull_archive {
    struct child *child;
    struct pull_task *tasks;     /* requests under way */
    void (*idle)(void *context); /* called when the last one has ended */
    void *context;
};

/* Handles FIND, MOVE and STOP_PULL, reading the frame to its end. Each of the first two is answered
 * by exactly one FOUND or MOVED. */
void pull_archive_handle(struct pull_archive *archive, struct settings *settings, struct proto_reader *reader);
/* Cancels the requests as soon as the peers allow it, and returns them. */
void pull_archive_stop(struct pull_archive *archive);

#endif

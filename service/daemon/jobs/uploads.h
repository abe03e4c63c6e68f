/*
 * uploads.h - corrected masks that persons upload through the web UI.
 *
 *     UPLOAD, descriptor --> copied to released/.NAME, synced (pool thread) --> EXAMINE --> EXAMINED
 *         --> trial of the correction --> row and audit row, committed --> released/NAME, DECIDED
 *
 * The receiver then imports released/NAME as it does every file, and its ARRIVED makes the job that measures the masks. A
 * file without a row was not acknowledged: uploads_sweep() removes it. A file with a row is never lost.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_UPLOADS_H
#define NOCTULE_SERVICE_DAEMON_JOBS_UPLOADS_H

#include "service/daemon/core.h"

struct uploads;

int uploads_open(struct core *core, struct uploads **uploads);
/* Publishes the files that have rows, and removes the others. Call before the receiver starts. */
void uploads_sweep(struct core *core);

/* Begins an upload by a person whose role was checked. Returns 0 if it answers with a DECIDED itself, or -errno with a
 * text. */
int uploads_begin(struct uploads *uploads, const struct message_upload *message, struct error *error);
/* Reads EXAMINED. */
void uploads_frame(struct uploads *uploads, struct proto_reader *reader);
void uploads_receiver_gone(struct uploads *uploads);
/* Drops all that is not acknowledged. */
void uploads_web_gone(struct uploads *uploads);
/* The loop must run once more. NULL is allowed. */
void uploads_close(struct uploads *uploads);

/* Finds the upload of an object that arrived: by its source, or by the SOP Instance UID of a recovered file. Returns 0,
 * -ENOENT if it has none, or another -errno. Sets *name ("": the file in released/ is still to come). */
int uploads_find(struct core *core, const char *source, const char *sop_instance_uid, struct queue_upload *upload,
                 const char **name);

#endif

/*
 * receiver_private.h - shared by the files of the receiver process: receiver.c (main loop, frames),
 * receiver_batches.c (files in progress), receiver_start.c (recovery), receiver_inspection.c, receiver_examination.c and
 * receiver_inboxes.c (configuration). Must not be included elsewhere.
 *
 * All state belongs to the loop's thread; see receiver.c.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_RECEIVER_PRIVATE_H
#define NOCTULE_SERVICE_RECEIVER_RECEIVER_PRIVATE_H

#include "service/common/settings.h"
#include "service/common/wire/child.h"
#include "service/receiver/inbox/inbox.h"
#include "service/receiver/net/listener.h"
#include "service/receiver/net/receive.h"
#include "service/receiver/spool/import_tokens.h"
#include "service/receiver/spool/recover.h"

#include <sys/queue.h>

#define RECEIVER_BATCHES     4  /* max number of batches imported at a time */
#define RECEIVER_BATCH_FILES 32 /* max number of files per batch */

/* A file that was found and waits for a batch. */
struct ready {
    STAILQ_ENTRY(ready) next;
    struct inbox *inbox;
    struct file_stamp stamp;
    int error;
    bool reported;
    char relative[];
};

struct receiver_batch {
    struct receiver *receiver;
    uv_work_t work;
    bool busy;
    int64_t reserve_bytes;
    size_t count;
    struct import_token *items[RECEIVER_BATCH_FILES];
    struct import_item *imports[RECEIVER_BATCH_FILES];
};

struct receiver {
    uv_loop_t loop;
    struct child child;
    struct settings *settings;
    const struct conf *conf; /* owned by the settings */
    struct store *store;
    struct inbox **inboxes;
    size_t inbox_count;
    struct conf_inbox released; /* the last inbox: released/ */

    STAILQ_HEAD(ready_queue, ready) ready;
    struct import_tokens tokens;
    struct receiver_batch batches[RECEIVER_BATCHES];

    struct receive_queue *queue;
    struct callers *rejected; /* callers that the daemon must record */
    struct listener *listener;

    struct receiver_batch recovery; /* items for the files that recover_step finds */
    struct recover *recover;
    struct seen_files *with_rows; /* keys of the files in series/ that have rows; NULL: unknown */
    bool known;                   /* the daemon has sent all known files */
    size_t recover_pending;       /* its unanswered items */
    size_t recover_found;
    int recover_more; /* result of the last step */
    int64_t recovered;

    uv_work_t begin;
    int begin_error;
    bool beginning, begun; /* store_begin has run: files may be received */
    bool listening;        /* the listener has been configured */

    uv_prepare_t turn;
    uv_timer_t again, retry, callers, drain, stop;
    int64_t retry_at_ms, retry_delay_ms; /* 0: no recent failure */
    bool paused, stopping;
    char reported[512]; /* the problems last reported to the daemon */
    bool reported_open, reported_any;
    size_t working; /* number of pool works, except those of the inboxes */
};

/* ------------------------------------------------------------------------ receiver.c ------ */

int64_t receiver_now_ms(const struct receiver *receiver);
/* Queues pool work and counts it. Its `after` must decrement intake->working. */
void receiver_queue_work(struct receiver *receiver, uv_work_t *work, uv_work_cb run, uv_after_work_cb after);
void receiver_send_frame(struct receiver *receiver, struct proto_writer *writer);

/* ---------------------------------------------------------------- receiver_batches.c ------ */

/* Callbacks for inboxes: found files join the ready list, and files that were removed are reported to the daemon. */
extern const struct inbox_events receiver_inbox_events;
/* Drops files in the ready list of an inbox that closes; NULL: of all inboxes. */
void receiver_forget_ready(struct receiver *receiver, const struct inbox *inbox);
/* Starts batches of ready files while there is space. */
void receiver_start_batches(struct receiver *receiver);
void receiver_batch_add(struct receiver_batch *batch, struct import_token *item);
/* Drops the items of a batch. */
void receiver_batch_abandon(struct receiver *receiver, struct receiver_batch *batch);
/* Takes handovers. Received files have priority over those of inboxes, since a sender waits for the answer. */
void receiver_take_handovers(struct receiver *receiver);

void receiver_send_item(struct receiver *receiver, struct import_token *item);
/* Sends frames again that have been unanswered for this time. */
void receiver_send_again(struct receiver *receiver, int64_t older_than_ms);
/* Finishes the original, once the daemon has the row. */
void receiver_finish_original(struct receiver *receiver, struct import_token *item);
/* Releases an item. */
void receiver_close_item(struct receiver *receiver, struct import_token *item, enum inbox_fate fate);

/* Delays further work after a transient error. The delay doubles with each error. */
void receiver_delay(struct receiver *receiver, int error);

/* ------------------------------------------------------------------ receiver_start.c ------ */

/* Prepares reception, unless that is in progress or delayed. */
void receiver_begin(struct receiver *receiver);
/* Starts the next step of the search for files in series/ without a row. */
void receiver_start_recovery(struct receiver *receiver);

/* Request the files that the daemon knows, and read its answer. Inboxes are not read before. */
void receiver_request_known(struct receiver *receiver);
void receiver_add_known(struct receiver *receiver, struct proto_reader *reader);

/* Reports to the daemon whether files can be received, if that has changed. */
void receiver_report_reception(struct receiver *receiver);

/* ------------------------------------------------------------- receiver_inspection.c ------ */

/* Answers an INSPECT frame. An error is kept in the reader. */
void receiver_inspect(struct receiver *receiver, struct proto_reader *reader);

/* ------------------------------------------------------------ receiver_examination.c ------ */

/* Answers an EXAMINE frame. An error is kept in the reader. */
void receiver_examine(struct receiver *receiver, struct proto_reader *reader);

/* ---------------------------------------------------------------- receiver_inboxes.c ------ */

/* Opens, changes and closes inboxes according to the configuration. Returns 0 or -errno. */
int receiver_apply_inboxes(struct receiver *receiver, const struct conf *conf);
/* Returns the inbox with this path, or NULL. */
struct inbox *receiver_find_inbox(const struct receiver *receiver, const char *path);
/* Applies a new configuration; for child_role. After an error the child sends RENEW. */
int receiver_reload(void *context, struct conf *conf, struct error *error);

#endif

/*
 * receiver_private.h - what the parts of the intake process share: receiver.c (the course, frames),
 * receiver_batches.c (files on their way), receiver_start.c (recovery), receiver_inspection.c and
 * receiver_inboxes.c (configuration). Private to them.
 *
 * All of it belongs to the loop's thread; see receiver.c.
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

#define INTAKE_BATCHES     4  /* batches being imported at a time */
#define INTAKE_BATCH_FILES 32 /* files in one */

/* A find that waits for its turn. */
struct ready {
    STAILQ_ENTRY(ready) next;
    struct inbox *inbox;
    struct file_stamp stamp;
    int error;
    bool told;
    char relative[];
};

struct intake_batch {
    struct intake *intake;
    uv_work_t work;
    bool busy;
    int64_t reserve_bytes;
    size_t count;
    struct in_hand_item *items[INTAKE_BATCH_FILES];
    struct import_item *imports[INTAKE_BATCH_FILES];
};

struct intake {
    uv_loop_t loop;
    struct child child;
    struct settings *settings;
    const struct conf *conf; /* of the settings */
    struct store *store;
    struct inbox **inboxes;
    size_t inbox_count;
    struct conf_inbox released; /* the last of the inboxes: released/ */

    STAILQ_HEAD(ready_queue, ready) ready;
    struct in_hand in_hand;
    struct intake_batch batches[INTAKE_BATCHES];

    struct receiver *receiver;
    struct listener *listener;

    struct intake_batch recovery; /* items for what recover_step finds */
    struct recover *recover;
    struct seen_files
        *with_rows;         /* what lies in series/ and has rows, by its keys; NULL: not known */
    bool known;             /* the daemon has told of all that is taken in */
    size_t recover_in_hand; /* items of it not yet answered */
    size_t recover_found;
    int recover_more; /* result of the last step */
    int64_t recovered;

    uv_work_t begin;
    int begin_error;
    bool beginning, begun; /* store_begin has been done: files may be taken in */
    bool listening;        /* the listener has been configured */

    uv_prepare_t turn;
    uv_timer_t again, retry, callers, drain, stop;
    int64_t retry_at_ms, retry_delay_ms; /* 0: nothing has failed lately */
    bool paused, stopping;
    char told[512]; /* the trouble that the daemon was last told of */
    bool told_open, told_any;
    size_t working; /* works in the pool other than the inboxes' own */
};

/* ------------------------------------------------------------------------ receiver.c ------ */

int64_t intake_now_ms(const struct intake *intake);
/* Counts the work until its `after` has taken it off intake->working. */
void intake_queue_work(struct intake *intake, uv_work_t *work, uv_work_cb run,
                       uv_after_work_cb after);
void intake_send_frame(struct intake *intake, struct proto_writer *writer);

/* ---------------------------------------------------------------- receiver_batches.c ------ */

/* What an inbox has found joins the ready list; the daemon is told what it has forgotten. */
extern const struct inbox_events intake_inbox_events;
/* What was handed out by an inbox that closes (NULL: by any) and is not yet begun. */
void intake_forget_ready(struct intake *intake, const struct inbox *inbox);
/* Batches of what is ready, as long as there is room. */
void intake_start_batches(struct intake *intake);
void intake_batch_add(struct intake_batch *batch, struct in_hand_item *item);
/* What a batch holds is not gone on with. */
void intake_batch_abandon(struct intake *intake, struct intake_batch *batch);
/* Received files go before those of the inboxes: somebody waits for an answer. */
void intake_take_handovers(struct intake *intake);

void intake_send_item(struct intake *intake, struct in_hand_item *item);
/* Frames without an answer for so long go out again. */
void intake_send_again(struct intake *intake, int64_t older_than_ms);
/* The daemon has it: the original may go, or the sender is answered. */
void intake_finish_original(struct intake *intake, struct in_hand_item *item);
void intake_answer_sender(struct intake *intake, struct in_hand_item *item);
/* The file's way ends here. */
void intake_close_item(struct intake *intake, struct in_hand_item *item, enum inbox_fate fate);

/* Something has failed that may pass: nothing begins for a while, twice as long each time. */
void intake_hold_back(struct intake *intake, int error);

/* ------------------------------------------------------------------ receiver_start.c ------ */

/* Makes ready to take files in, unless that is under way or held back. */
void intake_begin(struct intake *intake);
/* The next of what lies in series/ without a row, perhaps. */
void intake_start_recovery(struct intake *intake);

/* Asks the daemon what it knows, and what it answers: nothing is read before. */
void intake_ask_known(struct intake *intake);
void intake_know(struct intake *intake, struct proto_reader *reader);

/* Tells the daemon whether files can come in, when that changes. */
void intake_tell_reception(struct intake *intake);

/* ------------------------------------------------------------- receiver_inspection.c ------ */

/* Answers an INSPECT frame. What is wrong is latched as an error in the reader. */
void intake_inspect(struct intake *intake, struct proto_reader *reader);

/* ---------------------------------------------------------------- receiver_inboxes.c ------ */

/* Opens, changes and closes inboxes as the configuration says. */
int intake_apply_inboxes(struct intake *intake, const struct conf *conf);
/* NULL: there is none of this path. */
struct inbox *intake_find_inbox(const struct intake *intake, const char *path);
/* Something keeps one from being looked at. */
bool intake_lacks_an_inbox(const struct intake *intake);
/* The whole new configuration, or RENEW; for child_role. */
int intake_reload(void *context, struct conf *conf, struct error *error);

#endif

/*
 * receiver_start.c - the start of the receiver: prepare the store, open the listener, report both
 * to the daemon, receive the known files, and find files in series/ without a row. Those are
 * reported batch by batch while other work runs.
 */
#include "service/receiver/receiver_private.h"

#include "service/common/log.h"
#include "service/receiver/spool/store.h"

#include <stdio.h>
#include <string.h>

#define RECOVER_WINDOW 64 /* max number of items for recovered files */

/* --------------------------------------------------------------------------- known ------ */

void
intake_ask_known(struct intake *intake)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_ASK_KNOWN);
    intake_send_frame(intake, &writer);
}

/* A file that does not fit in memory is reported again. */
static void
intake_know_row(struct intake *intake, uint64_t key)
{
    if (intake->with_rows || seen_files_open(&intake->with_rows) == 0)
        seen_files_add(intake->with_rows, key);
}

static void
intake_begin_inboxes(struct intake *intake)
{
    intake->known = true;
    for (size_t i = 0; i < intake->inbox_count; i++)
        inbox_begin(intake->inboxes[i]);
}

void
intake_know(struct intake *intake, struct proto_reader *reader)
{
    struct message_known known;
    struct message_known_file file;
    if (message_read_known(reader, &known) != 0)
        return;
    struct inbox *inbox = *known.inbox ? intake_find_inbox(intake, known.inbox) : NULL;
    while (message_next_known_file(reader, &file)) {
        if (inbox)
            inbox_know(inbox, (uint64_t)file.key, (uint64_t)file.look);
        else if (!*known.inbox && !intake->known)
            intake_know_row(intake, (uint64_t)file.key);
    }
    if (!known.last)
        intake_ask_known(intake);
    else if (!intake->known && !intake->stopping)
        intake_begin_inboxes(intake);
}

/* ------------------------------------------------------------------------ recovery ------ */

static void
on_recover(uv_work_t *work)
{
    struct intake *intake = work->data;
    intake->recover_more =
        recover_step(intake->recover, intake->recovery.imports, intake->recovery.count,
                     intake->with_rows, &intake->recover_found);
}

static void
end_recovery(struct intake *intake)
{
    recover_close(intake->recover);
    intake->recover = NULL;
    seen_files_close(intake->with_rows);
    intake->with_rows = NULL;
    if (intake->recover_more < 0)
        log_error("recover.failed", LOG_STR("error", strerror(-intake->recover_more)));
    else
        log_info("recover.done", LOG_INT("files", intake->recovered));
}

static void
after_recover(uv_work_t *work, int status)
{
    (void)status;
    struct intake *intake = work->data;
    struct intake_batch *batch = &intake->recovery;
    intake->working--;
    batch->busy = false;
    if (intake->stopping) {
        intake_batch_abandon(intake, batch);
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (i < intake->recover_found)
            intake_send_item(intake, batch->items[i]);
        else
            intake_close_item(intake, batch->items[i], INBOX_GONE);
    }
    batch->count = 0;
    intake->recovered += (int64_t)intake->recover_found;
    if (intake->recover_more <= 0)
        end_recovery(intake);
}

void
intake_start_recovery(struct intake *intake)
{
    struct intake_batch *batch = &intake->recovery;
    if (!intake->recover || !intake->known || batch->busy)
        return;
    static const struct file_stamp none = {0};
    while (batch->count < INTAKE_BATCH_FILES && intake->recover_in_hand < RECOVER_WINDOW &&
           in_hand_room(&intake->in_hand) > 0) {
        struct in_hand_item *item = in_hand_add(&intake->in_hand, NULL, NULL, &none);
        if (!item)
            break;
        intake->recover_in_hand++;
        intake_batch_add(batch, item);
    }
    if (batch->count == 0)
        return;
    batch->busy = true;
    batch->work.data = intake;
    intake_queue_work(intake, &batch->work, on_recover, after_recover);
}

/* --------------------------------------------------------------------------- begin ------ */

static void
on_begin(uv_work_t *work)
{
    struct intake *intake = work->data;
    intake->begin_error = store_begin(intake->store);
    if (!intake->begin_error)
        intake->begin_error = recover_open(intake->store, &intake->recover);
}

/* Opens the ports once files can be received. If that is delayed, opens them anyway: senders are
 * then answered to try again. */
static void
listen_now(struct intake *intake)
{
    if (!intake->listening)
        listener_configure(intake->listener, intake->settings);
    intake->listening = true;
}

static void
after_begin(uv_work_t *work, int status)
{
    (void)status;
    struct intake *intake = work->data;
    intake->working--;
    intake->beginning = false;
    if (intake->stopping)
        return;
    if (intake->begin_error)
        intake_hold_back(intake, intake->begin_error);
    else
        intake->begun = true;
    listen_now(intake);
}

void
intake_begin(struct intake *intake)
{
    if (intake->beginning || intake_now_ms(intake) < intake->retry_at_ms)
        return;
    intake->beginning = true;
    intake->begin.data = intake;
    intake_queue_work(intake, &intake->begin, on_begin, after_begin);
}

/* ----------------------------------------------------------------------- reception ------ */

/* Returns whether each inbox has been scanned or cannot be. Appends the reasons to `trouble`. */
static bool
inboxes_are_known(const struct intake *intake, char *trouble, size_t size)
{
    for (size_t i = 0; i < intake->inbox_count; i++) {
        const char *why = inbox_problem(intake->inboxes[i]);
        if (!why)
            return false;
        const size_t length = strlen(trouble);
        if (*why)
            snprintf(trouble + length, size - length, "%sinbox %s: %s", length ? "; " : "",
                     inbox_path(intake->inboxes[i]), why);
    }
    return true;
}

void
intake_tell_reception(struct intake *intake)
{
    char trouble[sizeof intake->told] = "";
    struct proto_writer writer;
    if (!intake->listening)
        return;
    const bool open = !listener_lacks(intake->listener, trouble, sizeof trouble);
    const bool known = inboxes_are_known(intake, trouble, sizeof trouble);
    if (!known || (intake->told_any && open == intake->told_open && !strcmp(trouble, intake->told)))
        return;
    intake->told_any = true;
    intake->told_open = open;
    memcpy(intake->told, trouble, sizeof trouble);
    message_write_receiving(&writer, &(struct message_receiving){.open = open, .trouble = trouble});
    intake_send_frame(intake, &writer);
}

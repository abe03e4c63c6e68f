/* receiver_start.c - the start of the receiver: prepare the store, open the listener, report both
 * to the daemon, receive the known files, and find files in series/ without a row. Those are
 * reported batch by batch while other work runs. */
#include "service/receiver/receiver_private.h"

#include "service/common/log.h"
#include "service/receiver/spool/store.h"

#include <stdio.h>
#include <string.h>

#define RECOVER_WINDOW 64 /* max number of items for recovered files */

/* --------------------------------------------------------------------------- known ------ */

void
receiver_request_known(struct receiver *receiver)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_ASK_KNOWN);
    receiver_send_frame(receiver, &writer);
}

void
receiver_add_known(struct receiver *receiver, struct proto_reader *reader)
{
    struct message_known known;
    struct message_known_file file;
    if (message_read_known(reader, &known) != 0)
        return;
    struct inbox *inbox = *known.inbox ? receiver_find_inbox(receiver, known.inbox) : NULL;
    while (message_next_known_file(reader, &file)) {
        if (inbox)
            inbox_know(inbox, (uint64_t)file.key, (uint64_t)file.look);
        else if (!*known.inbox && !receiver->known &&
                 (receiver->with_rows || seen_files_open(&receiver->with_rows) == 0))
            /* A file that does not fit in memory is reported again. */
            seen_files_add(receiver->with_rows, (uint64_t)file.key);
    }
    if (!known.last) {
        receiver_request_known(receiver);
    } else if (!receiver->known && !receiver->stopping) {
        receiver->known = true;
        for (size_t i = 0; i < receiver->inbox_count; i++)
            inbox_begin(receiver->inboxes[i]);
    }
}

/* ------------------------------------------------------------------------ recovery ------ */

static void
on_recover(uv_work_t *work)
{
    struct receiver *receiver = work->data;
    receiver->recover_more = recover_step(receiver->recover, receiver->recovery.imports, receiver->recovery.count,
                                          receiver->with_rows, &receiver->recover_found);
}

static void
after_recover(uv_work_t *work, int status)
{
    (void)status;
    struct receiver *receiver = work->data;
    struct receiver_batch *batch = &receiver->recovery;
    receiver->working--;
    batch->busy = false;
    if (receiver->stopping) {
        receiver_batch_abandon(receiver, batch);
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (i < receiver->recover_found)
            receiver_send_item(receiver, batch->items[i]);
        else
            receiver_close_item(receiver, batch->items[i], INBOX_GONE);
    }
    batch->count = 0;
    receiver->recovered += (int64_t)receiver->recover_found;
    if (receiver->recover_more > 0)
        return;
    recover_close(receiver->recover);
    receiver->recover = NULL;
    seen_files_close(receiver->with_rows);
    receiver->with_rows = NULL;
    if (receiver->recover_more < 0)
        log_error("recover.failed", LOG_STR("error", strerror(-receiver->recover_more)));
    else
        log_info("recover.done", LOG_INT("files", receiver->recovered));
}

void
receiver_start_recovery(struct receiver *receiver)
{
    struct receiver_batch *batch = &receiver->recovery;
    if (!receiver->recover || !receiver->known || batch->busy)
        return;
    static const struct file_stamp none = {0};
    while (batch->count < RECEIVER_BATCH_FILES && receiver->recover_pending < RECOVER_WINDOW &&
           import_tokens_room(&receiver->tokens) > 0) {
        struct import_token *item = import_token_add(&receiver->tokens, NULL, NULL, &none);
        if (!item)
            break;
        receiver->recover_pending++;
        receiver_batch_add(batch, item);
    }
    if (batch->count == 0)
        return;
    batch->busy = true;
    batch->work.data = receiver;
    receiver_queue_work(receiver, &batch->work, on_recover, after_recover);
}

/* --------------------------------------------------------------------------- begin ------ */

static void
on_begin(uv_work_t *work)
{
    struct receiver *receiver = work->data;
    receiver->begin_error = store_begin(receiver->store);
    if (!receiver->begin_error)
        receiver->begin_error = recover_open(receiver->store, &receiver->recover);
}

static void
after_begin(uv_work_t *work, int status)
{
    (void)status;
    struct receiver *receiver = work->data;
    receiver->working--;
    receiver->beginning = false;
    if (receiver->stopping)
        return;
    if (receiver->begin_error)
        receiver_delay(receiver, receiver->begin_error);
    else
        receiver->begun = true;
    /* Open the ports once files can be received. If that is delayed, open them anyway: senders are
     * then answered to try again. */
    if (!receiver->listening)
        listener_configure(receiver->listener, receiver->settings);
    receiver->listening = true;
}

void
receiver_begin(struct receiver *receiver)
{
    if (receiver->beginning || receiver_now_ms(receiver) < receiver->retry_at_ms)
        return;
    receiver->beginning = true;
    receiver->begin.data = receiver;
    receiver_queue_work(receiver, &receiver->begin, on_begin, after_begin);
}

/* ----------------------------------------------------------------------- reception ------ */

void
receiver_report_reception(struct receiver *receiver)
{
    char problem[sizeof receiver->reported] = "";
    struct proto_writer writer;
    if (!receiver->listening)
        return;
    const bool open = !listener_lacks(receiver->listener, problem, sizeof problem);
    /* Report only once each inbox has been scanned or cannot be. */
    for (size_t i = 0; i < receiver->inbox_count; i++) {
        const char *why = inbox_problem(receiver->inboxes[i]);
        if (!why)
            return;
        const size_t length = strlen(problem);
        if (*why)
            snprintf(problem + length, sizeof problem - length, "%sinbox %s: %s", length ? "; " : "",
                     inbox_conf(receiver->inboxes[i])->path, why);
    }
    if (receiver->reported_any && open == receiver->reported_open && !strcmp(problem, receiver->reported))
        return;
    receiver->reported_any = true;
    receiver->reported_open = open;
    memcpy(receiver->reported, problem, sizeof problem);
    message_write_receiving(&writer, &(struct message_receiving){.open = open, .problem = problem});
    receiver_send_frame(receiver, &writer);
}

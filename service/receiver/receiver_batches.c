/* receiver_batches.c - files in progress: from the ready list into batches, to the daemon, and
 * after its STORED to the end of the original or the answer to the sender. */
#include "service/receiver/receiver_private.h"

#include "base/test_hook.h"
#include "service/common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS   30000

/* ------------------------------------------------------------------------- items ------ */

void
receiver_send_item(struct receiver *receiver, struct import_token *item)
{
    struct proto_writer writer;
    import_token_write(item, &writer);
    item->sent = true;
    item->sent_ms = receiver_now_ms(receiver);
    receiver_send_frame(receiver, &writer);
    if (item->import.outcome == IMPORT_ARRIVED)
        crash_point("intake_after_arrived");
}

void
receiver_send_again(struct receiver *receiver, int64_t older_than_ms)
{
    for (size_t i = 0; i < IMPORT_TOKENS_MAX; i++) {
        struct import_token *item = receiver->tokens.slots[i];
        if (item && item->sent && receiver_now_ms(receiver) - item->sent_ms >= older_than_ms)
            receiver_send_item(receiver, item);
    }
}

void
receiver_close_item(struct receiver *receiver, struct import_token *item, enum inbox_fate fate)
{
    if (import_token_find(&receiver->tokens, item->import.token) == item)
        import_token_drop(&receiver->tokens, item);
    if (item->inbox)
        inbox_done(item->inbox, item->import.relative, &item->import.stamp, fate);
    else if (item->handover)
        receive_answer(receiver->queue, item->handover, HANDOVER_DROPPED);
    else
        receiver->recover_pending--;
    import_token_free(item);
}

static void
receiver_on_found(void *context, struct inbox *inbox, const struct inbox_find *find)
{
    struct receiver *receiver = context;
    size_t length = strlen(find->relative) + 1;
    struct ready *ready = malloc(sizeof *ready + length);
    if (!ready) {
        inbox_done(inbox, find->relative, &find->stamp, INBOX_AGAIN);
        return;
    }
    *ready = (struct ready){.inbox = inbox, .stamp = find->stamp, .error = find->error, .reported = find->reported};
    memcpy(ready->relative, find->relative, length);
    STAILQ_INSERT_TAIL(&receiver->ready, ready, next);
}

/* If this message is lost, it is sent again after the next start. */
static void
receiver_on_forgot(void *context, struct inbox *inbox, const uint64_t *keys, size_t count)
{
    struct proto_writer writer;
    if (inbox_conf(inbox)->after != CONF_KEEP)
        return;
    message_write_forget(&writer, &(struct message_forget){.inbox = inbox_conf(inbox)->path});
    for (size_t i = 0; i < count; i++)
        message_add_forgotten_file(&writer, &(struct message_forgotten_file){.key = (int64_t)keys[i]});
    receiver_send_frame(context, &writer);
}

const struct inbox_events receiver_inbox_events = {receiver_on_found, receiver_on_forgot};

void
receiver_forget_ready(struct receiver *receiver, const struct inbox *inbox)
{
    for (struct ready *ready = STAILQ_FIRST(&receiver->ready), *next; ready; ready = next) {
        next = STAILQ_NEXT(ready, next);
        if (inbox && ready->inbox != inbox)
            continue;
        STAILQ_REMOVE(&receiver->ready, ready, ready, next);
        inbox_done(ready->inbox, ready->relative, &ready->stamp, INBOX_GONE);
        free(ready);
    }
}

/* ----------------------------------------------------------------------- originals ------ */

static void
on_finish(uv_work_t *work)
{
    struct import_token *item = work->data;
    const struct receiver *receiver = item->owner;
    crash_point("intake_after_stored_before_original");
    import_retire(receiver->store, &item->import.report);
    item->import.error = import_finish(&item->import, item->move_to);
}

static void
after_finish(uv_work_t *work, int status)
{
    (void)status;
    struct import_token *item = work->data;
    struct receiver *receiver = item->owner;
    const int error = item->import.error;
    enum inbox_fate fate = INBOX_LATER;
    receiver->working--;
    if (error == -EACCES) /* the target folder may have been replaced */
        child_check_places(&receiver->child, receiver->conf);
    if (!error)
        fate = import_leaves(&item->import) ? INBOX_LEFT : INBOX_GONE;
    else if (error == -ESTALE)
        fate = INBOX_AGAIN;
    else if (error == -ENOENT)
        fate = INBOX_GONE;
    else
        log_warn("original.kept", LOG_STR("inbox", item->import.folder), LOG_INT("inode", item->import.stamp.inode),
                 LOG_STR("error", strerror(-error)));
    receiver_close_item(receiver, item, fate);
}

void
receiver_finish_original(struct receiver *receiver, struct import_token *item)
{
    if (item->import.report.replaced == 0 && (!item->inbox || import_leaves(&item->import))) {
        const bool unread = item->import.outcome == IMPORT_UNREADABLE;
        receiver_close_item(receiver, item, unread ? INBOX_LATER : INBOX_LEFT);
        return;
    }
    import_token_drop(&receiver->tokens, item);
    item->owner = receiver;
    item->work.data = item;
    receiver_queue_work(receiver, &item->work, on_finish, after_finish);
}

/* ------------------------------------------------------------------------- batches ------ */

void
receiver_delay(struct receiver *receiver, int error)
{
    const int64_t now = receiver_now_ms(receiver);
    if (now < receiver->retry_at_ms)
        return; /* another batch had the same error */
    receiver->retry_delay_ms = receiver->retry_delay_ms ? 2 * receiver->retry_delay_ms : RETRY_FIRST_MS;
    if (receiver->retry_delay_ms > RETRY_MAX_MS)
        receiver->retry_delay_ms = RETRY_MAX_MS;
    receiver->retry_at_ms = now + receiver->retry_delay_ms;
    log_error("import.delayed", LOG_STR("error", strerror(-error)), LOG_INT("retry_ms", receiver->retry_delay_ms));
    if (error == -EACCES) /* a folder of the spool may have been replaced */
        child_check_places(&receiver->child, receiver->conf);
}

static void
log_taken(const struct import_token *item)
{
    const struct import_report *report = &item->import.report;
    if (item->import.outcome == IMPORT_ARRIVED)
        log_debug("file.arrived", LOG_STR("path", report->path), LOG_INT("bytes", report->size));
    else /* must not log the original's name or the message: both may contain a patient's name */
        log_warn("file.quarantined", LOG_STR("code", code_name(report->code)), LOG_STR("inbox", item->import.folder),
                 LOG_INT("inode", item->import.stamp.inode));
}

static void
receiver_dispatch(struct receiver *receiver, struct import_token *item)
{
    switch (item->import.outcome) {
    case IMPORT_UNREADABLE:
        if (item->reported) {
            receiver_close_item(receiver, item, INBOX_LATER);
            break;
        }
        /* fall through */
    case IMPORT_ARRIVED:
    case IMPORT_QUARANTINED:
        log_taken(item);
        receiver_send_item(receiver, item);
        break;
    case IMPORT_OWN_RESULT:
        log_debug("file.own_result", LOG_STR("inbox", item->import.folder), LOG_INT("inode", item->import.stamp.inode));
        receiver_finish_original(receiver, item);
        break;
    case IMPORT_CHANGED:
        receiver_close_item(receiver, item, INBOX_AGAIN);
        break;
    case IMPORT_GONE:
        receiver_close_item(receiver, item, INBOX_GONE);
        break;
    case IMPORT_RETRY:
        receiver_delay(receiver, item->import.error);
        import_token_drop(&receiver->tokens, item);
        receiver_on_found(receiver, item->inbox,
                          &(struct inbox_find){.relative = item->import.relative,
                                               .stamp = item->import.stamp,
                                               .reported = item->reported});
        import_token_free(item);
        break;
    }
}

void
receiver_batch_abandon(struct receiver *receiver, struct receiver_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        receiver_close_item(receiver, batch->items[i], INBOX_AGAIN);
    batch->count = 0;
}

static void
on_import(uv_work_t *work)
{
    struct receiver_batch *batch = work->data;
    import_batch(batch->receiver->store, batch->reserve_bytes, batch->imports, batch->count);
}

static void
after_import(uv_work_t *work, int status)
{
    (void)status;
    struct receiver_batch *batch = work->data;
    struct receiver *receiver = batch->receiver;
    receiver->working--;
    batch->busy = false;
    if (receiver->stopping) {
        receiver_batch_abandon(receiver, batch);
        return;
    }
    bool delayed = false;
    for (size_t i = 0; i < batch->count; i++)
        delayed = delayed || batch->imports[i]->outcome == IMPORT_RETRY;
    if (!delayed)
        receiver->retry_delay_ms = 0;
    for (size_t i = 0; i < batch->count; i++)
        receiver_dispatch(receiver, batch->items[i]);
    batch->count = 0;
}

void
receiver_batch_add(struct receiver_batch *batch, struct import_token *item)
{
    batch->items[batch->count] = item;
    batch->imports[batch->count++] = &item->import;
}

void
receiver_start_batches(struct receiver *receiver)
{
    for (size_t i = 0; i < RECEIVER_BATCHES; i++) {
        struct receiver_batch *batch = &receiver->batches[i];
        while (!batch->busy && !STAILQ_EMPTY(&receiver->ready) && batch->count < RECEIVER_BATCH_FILES &&
               import_tokens_room(&receiver->tokens) > 0) {
            /* The first file becomes an item of the batch. An unreadable file is reported at once. */
            struct ready *ready = STAILQ_FIRST(&receiver->ready);
            STAILQ_REMOVE_HEAD(&receiver->ready, next);
            struct import_token *item =
                import_token_add(&receiver->tokens, ready->inbox, ready->relative, &ready->stamp);
            if (!item) {
                inbox_done(ready->inbox, ready->relative, &ready->stamp, INBOX_AGAIN);
            } else {
                item->reported = ready->reported;
                item->released = strcmp(inbox_conf(ready->inbox)->path, receiver->released.path) == 0;
                if (ready->error) {
                    import_unreadable(&item->import, ready->error);
                    receiver_dispatch(receiver, item);
                } else {
                    receiver_batch_add(batch, item);
                }
            }
            free(ready);
        }
        if (batch->busy || batch->count == 0)
            continue;
        batch->receiver = receiver;
        batch->busy = true;
        batch->reserve_bytes = (int64_t)(receiver->conf->min_free_mib * 1024.0 * 1024.0);
        batch->work.data = batch;
        receiver_queue_work(receiver, &batch->work, on_import, after_import);
    }
}

void
receiver_take_handovers(struct receiver *receiver)
{
    struct handover *handover;
    while (import_tokens_room(&receiver->tokens) > 0 && (handover = receive_next(receiver->queue))) {
        struct import_token *item = import_token_add_handover(&receiver->tokens, handover);
        if (!item) {
            receive_answer(receiver->queue, handover, HANDOVER_DROPPED);
            continue;
        }
        if (!handover->commitment && !handover->unwanted)
            log_taken(item);
        receiver_send_item(receiver, item);
    }
}

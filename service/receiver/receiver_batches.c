/*
 * receiver_batches.c - files in progress: from the ready list into batches, to the daemon, and
 * after its STORED to the end of the original or the answer to the sender.
 */
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
intake_send_item(struct intake *intake, struct in_hand_item *item)
{
    struct proto_writer writer;
    in_hand_frame(item, &writer);
    item->sent = true;
    item->sent_ms = intake_now_ms(intake);
    intake_send_frame(intake, &writer);
    if (item->import.outcome == IMPORT_ARRIVED)
        crash_point("intake_after_arrived");
}

void
intake_send_again(struct intake *intake, int64_t older_than_ms)
{
    for (size_t i = 0; i < IN_HAND_MAX; i++) {
        struct in_hand_item *item = intake->in_hand.slots[i];
        if (item && item->sent && intake_now_ms(intake) - item->sent_ms >= older_than_ms)
            intake_send_item(intake, item);
    }
}

void
intake_close_item(struct intake *intake, struct in_hand_item *item, enum inbox_fate fate)
{
    if (in_hand_find(&intake->in_hand, item->import.token) == item)
        in_hand_drop(&intake->in_hand, item);
    if (item->inbox)
        inbox_done(item->inbox, item->import.relative, &item->import.stamp, fate);
    else if (item->handover)
        receiver_answer(intake->receiver, item->handover, HANDOVER_DROPPED);
    else
        intake->recover_in_hand--;
    in_hand_free(item);
}

static void
add_ready(struct intake *intake, struct inbox *inbox, const struct inbox_find *find)
{
    size_t length = strlen(find->relative) + 1;
    struct ready *ready = malloc(sizeof *ready + length);
    if (!ready) {
        inbox_done(inbox, find->relative, &find->stamp, INBOX_AGAIN);
        return;
    }
    *ready = (struct ready){
        .inbox = inbox, .stamp = find->stamp, .error = find->error, .told = find->told};
    memcpy(ready->relative, find->relative, length);
    STAILQ_INSERT_TAIL(&intake->ready, ready, next);
}

static void
intake_on_found(void *context, struct inbox *inbox, const struct inbox_find *find)
{
    struct intake *intake = context;
    add_ready(intake, inbox, find);
}

/* If this message is lost, it is sent again after the next start. */
static void
intake_on_forgot(void *context, struct inbox *inbox, const uint64_t *keys, size_t count)
{
    struct proto_writer writer;
    if (inbox_after(inbox) != CONF_KEEP)
        return;
    message_write_forget(&writer, &(struct message_forget){.inbox = inbox_path(inbox)});
    for (size_t i = 0; i < count; i++)
        message_add_forgotten_file(&writer,
                                   &(struct message_forgotten_file){.key = (int64_t)keys[i]});
    intake_send_frame(context, &writer);
}

const struct inbox_events intake_inbox_events = {intake_on_found, intake_on_forgot};

void
intake_forget_ready(struct intake *intake, const struct inbox *inbox)
{
    for (struct ready *ready = STAILQ_FIRST(&intake->ready), *next; ready; ready = next) {
        next = STAILQ_NEXT(ready, next);
        if (inbox && ready->inbox != inbox)
            continue;
        STAILQ_REMOVE(&intake->ready, ready, ready, next);
        inbox_done(ready->inbox, ready->relative, &ready->stamp, INBOX_GONE);
        free(ready);
    }
}

/* ----------------------------------------------------------------------- originals ------ */

static enum inbox_fate
fate_of(const struct in_hand_item *item, int error)
{
    const bool left = import_leaves(&item->import);
    if (!error)
        return left ? INBOX_LEFT : INBOX_GONE;
    if (error == -ESTALE)
        return INBOX_AGAIN;
    if (error == -ENOENT)
        return INBOX_GONE;
    log_warn("original.kept", LOG_STR("inbox", item->import.folder),
             LOG_INT("inode", item->import.stamp.inode), LOG_STR("error", strerror(-error)));
    return INBOX_LATER;
}

static void
on_finish(uv_work_t *work)
{
    struct in_hand_item *item = work->data;
    const struct intake *intake = item->owner;
    crash_point("intake_after_stored_before_original");
    import_retire(intake->store, &item->import.report);
    item->import.error = import_finish(&item->import, item->move_to);
}

static void
after_finish(uv_work_t *work, int status)
{
    (void)status;
    struct in_hand_item *item = work->data;
    struct intake *intake = item->owner;
    intake->working--;
    if (item->import.error == -EACCES) /* the target folder may have been replaced */
        child_check_places(&intake->child, intake->conf);
    intake_close_item(intake, item, fate_of(item, item->import.error));
}

void
intake_finish_original(struct intake *intake, struct in_hand_item *item)
{
    if (item->import.report.replaced == 0 && (!item->inbox || import_leaves(&item->import))) {
        const bool unread = item->import.outcome == IMPORT_UNREADABLE;
        intake_close_item(intake, item, unread ? INBOX_LATER : INBOX_LEFT);
        return;
    }
    in_hand_drop(&intake->in_hand, item);
    item->owner = intake;
    item->work.data = item;
    intake_queue_work(intake, &item->work, on_finish, after_finish);
}

/* ------------------------------------------------------------------------- batches ------ */

void
intake_hold_back(struct intake *intake, int error)
{
    const int64_t now = intake_now_ms(intake);
    if (now < intake->retry_at_ms)
        return; /* another batch had the same error */
    intake->retry_delay_ms = intake->retry_delay_ms ? 2 * intake->retry_delay_ms : RETRY_FIRST_MS;
    if (intake->retry_delay_ms > RETRY_MAX_MS)
        intake->retry_delay_ms = RETRY_MAX_MS;
    intake->retry_at_ms = now + intake->retry_delay_ms;
    log_error("import.delayed", LOG_STR("error", strerror(-error)),
              LOG_INT("retry_ms", intake->retry_delay_ms));
    if (error == -EACCES) /* a folder of the spool may have been replaced */
        child_check_places(&intake->child, intake->conf);
}

static void
put_back(struct intake *intake, struct in_hand_item *item)
{
    const struct inbox_find find = {
        .relative = item->import.relative, .stamp = item->import.stamp, .told = item->told};
    in_hand_drop(&intake->in_hand, item);
    add_ready(intake, item->inbox, &find);
    in_hand_free(item);
}

static void
log_taken(const struct in_hand_item *item)
{
    const struct import_report *report = &item->import.report;
    if (item->import.outcome == IMPORT_ARRIVED)
        log_debug("file.arrived", LOG_STR("path", report->path), LOG_INT("bytes", report->size));
    else /* must not log the original's name or the message: both may contain a patient's name */
        log_warn("file.quarantined", LOG_STR("code", code_name(report->code)),
                 LOG_STR("inbox", item->import.folder), LOG_INT("inode", item->import.stamp.inode));
}

static void
intake_dispatch(struct intake *intake, struct in_hand_item *item)
{
    switch (item->import.outcome) {
    case IMPORT_UNREADABLE:
        if (item->told) {
            intake_close_item(intake, item, INBOX_LATER);
            break;
        }
        /* fall through */
    case IMPORT_ARRIVED:
    case IMPORT_QUARANTINED:
        log_taken(item);
        intake_send_item(intake, item);
        break;
    case IMPORT_OWN_RESULT:
        log_debug("file.own_result", LOG_STR("inbox", item->import.folder),
                  LOG_INT("inode", item->import.stamp.inode));
        intake_finish_original(intake, item);
        break;
    case IMPORT_CHANGED:
        intake_close_item(intake, item, INBOX_AGAIN);
        break;
    case IMPORT_GONE:
        intake_close_item(intake, item, INBOX_GONE);
        break;
    case IMPORT_RETRY:
        intake_hold_back(intake, item->import.error);
        put_back(intake, item);
        break;
    }
}

void
intake_batch_abandon(struct intake *intake, struct intake_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        intake_close_item(intake, batch->items[i], INBOX_AGAIN);
    batch->count = 0;
}

static void
on_import(uv_work_t *work)
{
    struct intake_batch *batch = work->data;
    import_batch(batch->intake->store, batch->reserve_bytes, batch->imports, batch->count);
}

static void
after_import(uv_work_t *work, int status)
{
    (void)status;
    struct intake_batch *batch = work->data;
    struct intake *intake = batch->intake;
    intake->working--;
    batch->busy = false;
    if (intake->stopping) {
        intake_batch_abandon(intake, batch);
        return;
    }
    bool delayed = false;
    for (size_t i = 0; i < batch->count; i++)
        delayed = delayed || batch->imports[i]->outcome == IMPORT_RETRY;
    if (!delayed)
        intake->retry_delay_ms = 0;
    for (size_t i = 0; i < batch->count; i++)
        intake_dispatch(intake, batch->items[i]);
    batch->count = 0;
}

void
intake_batch_add(struct intake_batch *batch, struct in_hand_item *item)
{
    batch->items[batch->count] = item;
    batch->imports[batch->count++] = &item->import;
}

/* Turns the first file of the list into an item, and adds that to the batch. An unreadable file is
 * reported at once. */
static void
pick_up(struct intake *intake, struct intake_batch *batch)
{
    struct ready *ready = STAILQ_FIRST(&intake->ready);
    STAILQ_REMOVE_HEAD(&intake->ready, next);
    struct in_hand_item *item =
        in_hand_add(&intake->in_hand, ready->inbox, ready->relative, &ready->stamp);
    if (!item) {
        inbox_done(ready->inbox, ready->relative, &ready->stamp, INBOX_AGAIN);
    } else {
        item->told = ready->told;
        item->released = strcmp(inbox_path(ready->inbox), intake->released.path) == 0;
        if (ready->error) {
            import_unreadable(&item->import, ready->error);
            intake_dispatch(intake, item);
        } else {
            intake_batch_add(batch, item);
        }
    }
    free(ready);
}

static struct intake_batch *
intake_idle_batch(struct intake *intake)
{
    for (size_t i = 0; i < INTAKE_BATCHES; i++) {
        if (!intake->batches[i].busy)
            return &intake->batches[i];
    }
    return NULL;
}

void
intake_start_batches(struct intake *intake)
{
    struct intake_batch *batch;
    while (!STAILQ_EMPTY(&intake->ready) && in_hand_room(&intake->in_hand) > 0 &&
           (batch = intake_idle_batch(intake))) {
        while (!STAILQ_EMPTY(&intake->ready) && batch->count < INTAKE_BATCH_FILES &&
               in_hand_room(&intake->in_hand) > 0)
            pick_up(intake, batch);
        if (batch->count == 0)
            continue;
        batch->intake = intake;
        batch->busy = true;
        batch->reserve_bytes = (int64_t)(intake->conf->min_free_mib * 1024.0 * 1024.0);
        batch->work.data = batch;
        intake_queue_work(intake, &batch->work, on_import, after_import);
    }
}

/* ----------------------------------------------------------------------- receiver ------ */

void
intake_take_handovers(struct intake *intake)
{
    struct handover *handover;
    while (in_hand_room(&intake->in_hand) > 0 && (handover = receiver_next(intake->receiver))) {
        struct in_hand_item *item = in_hand_add_handover(&intake->in_hand, handover);
        if (!item) {
            receiver_answer(intake->receiver, handover, HANDOVER_DROPPED);
            continue;
        }
        if (!handover->commitment && !handover->unwanted)
            log_taken(item);
        intake_send_item(intake, item);
    }
}

void
intake_answer_sender(struct intake *intake, struct in_hand_item *item)
{
    in_hand_drop(&intake->in_hand, item);
    receiver_answer(intake->receiver, item->handover, HANDOVER_STORED);
    in_hand_free(item);
}

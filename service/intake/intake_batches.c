/*
 * intake_batches.c - files on their way: from the ready list into batches, to the daemon, and after
 * its STORED to their end, which is the original's or the sender's answer.
 */
#include "service/intake/intake_private.h"

#include "service/common/crash_point.h"
#include "service/common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS   30000

/* ------------------------------------------------------------------------- parcels ------ */

void
intake_send_parcel(struct intake *intake, struct parcel *parcel)
{
    struct proto_writer writer;
    parcel_frame(parcel, &writer);
    parcel->sent = true;
    parcel->sent_ms = intake_now_ms(intake);
    intake_send_frame(intake, &writer);
    if (parcel->item.outcome == IMPORT_ARRIVED)
        crash_point("intake_after_arrived");
}

void
intake_send_again(struct intake *intake, int64_t older_than_ms)
{
    for (size_t i = 0; i < IN_HAND_MAX; i++) {
        struct parcel *parcel = intake->in_hand.slots[i];
        if (parcel && parcel->sent && intake_now_ms(intake) - parcel->sent_ms >= older_than_ms)
            intake_send_parcel(intake, parcel);
    }
}

void
intake_close_parcel(struct intake *intake, struct parcel *parcel, enum inbox_fate fate)
{
    if (in_hand_find(&intake->in_hand, parcel->item.token) == parcel)
        in_hand_drop(&intake->in_hand, parcel);
    if (parcel->inbox)
        inbox_done(parcel->inbox, parcel->item.relative, &parcel->item.stamp, fate);
    else if (parcel->handover)
        receiver_answer(intake->receiver, parcel->handover, HANDOVER_DROPPED);
    else
        intake->recover_in_hand--;
    parcel_free(parcel);
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

void
intake_on_found(void *context, struct inbox *inbox, const struct inbox_find *find)
{
    struct intake *intake = context;
    add_ready(intake, inbox, find);
}

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
fate_of(const struct parcel *parcel, int error)
{
    const bool left = import_leaves(&parcel->item);
    if (!error)
        return left ? INBOX_LEFT : INBOX_GONE;
    if (error == -ESTALE)
        return INBOX_AGAIN;
    if (error == -ENOENT)
        return INBOX_GONE;
    log_warn("original.kept", LOG_STR("inbox", parcel->item.folder),
             LOG_INT("inode", parcel->item.stamp.inode), LOG_STR("error", strerror(-error)));
    return INBOX_LATER;
}

static void
on_finish(uv_work_t *work)
{
    struct parcel *parcel = work->data;
    crash_point("intake_after_stored_before_original");
    parcel->item.error = import_finish(&parcel->item, parcel->move_to);
}

static void
after_finish(uv_work_t *work, int status)
{
    (void)status;
    struct parcel *parcel = work->data;
    struct intake *intake = parcel->owner;
    intake->working--;
    intake_close_parcel(intake, parcel, fate_of(parcel, parcel->item.error));
}

void
intake_finish_original(struct intake *intake, struct parcel *parcel)
{
    if (!parcel->inbox || import_leaves(&parcel->item)) {
        const bool unread = parcel->item.outcome == IMPORT_UNREADABLE;
        intake_close_parcel(intake, parcel, unread ? INBOX_LATER : INBOX_LEFT);
        return;
    }
    in_hand_drop(&intake->in_hand, parcel);
    parcel->owner = intake;
    parcel->work.data = parcel;
    intake_queue_work(intake, &parcel->work, on_finish, after_finish);
}

/* ------------------------------------------------------------------------- batches ------ */

void
intake_hold_back(struct intake *intake, int error)
{
    const int64_t now = intake_now_ms(intake);
    if (now < intake->retry_at_ms)
        return; /* another batch met the same */
    intake->retry_delay_ms = intake->retry_delay_ms ? 2 * intake->retry_delay_ms : RETRY_FIRST_MS;
    if (intake->retry_delay_ms > RETRY_MAX_MS)
        intake->retry_delay_ms = RETRY_MAX_MS;
    intake->retry_at_ms = now + intake->retry_delay_ms;
    log_error("import.delayed", LOG_STR("error", strerror(-error)),
              LOG_INT("retry_ms", intake->retry_delay_ms));
}

static void
put_back(struct intake *intake, struct parcel *parcel)
{
    const struct inbox_find find = {
        .relative = parcel->item.relative, .stamp = parcel->item.stamp, .told = parcel->told};
    in_hand_drop(&intake->in_hand, parcel);
    add_ready(intake, parcel->inbox, &find);
    parcel_free(parcel);
}

static void
log_taken(const struct parcel *parcel)
{
    const struct import_report *report = &parcel->item.report;
    if (parcel->item.outcome == IMPORT_ARRIVED)
        log_debug("file.arrived", LOG_STR("path", report->path), LOG_INT("bytes", report->size));
    else /* neither the original's name nor the sentence: both may hold a patient's name */
        log_warn("file.quarantined", LOG_STR("code", code_name(report->code)),
                 LOG_STR("inbox", parcel->item.folder), LOG_INT("inode", parcel->item.stamp.inode));
}

static void
intake_dispatch(struct intake *intake, struct parcel *parcel)
{
    switch (parcel->item.outcome) {
    case IMPORT_UNREADABLE:
        if (parcel->told) {
            intake_close_parcel(intake, parcel, INBOX_LATER);
            break;
        }
        /* fall through */
    case IMPORT_ARRIVED:
    case IMPORT_QUARANTINED:
        log_taken(parcel);
        intake_send_parcel(intake, parcel);
        break;
    case IMPORT_OWN_RESULT:
        log_debug("file.own_result", LOG_STR("inbox", parcel->item.folder),
                  LOG_INT("inode", parcel->item.stamp.inode));
        intake_finish_original(intake, parcel);
        break;
    case IMPORT_CHANGED:
        intake_close_parcel(intake, parcel, INBOX_AGAIN);
        break;
    case IMPORT_GONE:
        intake_close_parcel(intake, parcel, INBOX_GONE);
        break;
    case IMPORT_RETRY:
        intake_hold_back(intake, parcel->item.error);
        put_back(intake, parcel);
        break;
    }
}

void
intake_batch_abandon(struct intake *intake, struct intake_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        intake_close_parcel(intake, batch->parcels[i], INBOX_AGAIN);
    batch->count = 0;
}

static void
on_import(uv_work_t *work)
{
    struct intake_batch *batch = work->data;
    import_batch(batch->intake->store, batch->reserve_bytes, batch->items, batch->count);
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
        delayed = delayed || batch->items[i]->outcome == IMPORT_RETRY;
    if (!delayed)
        intake->retry_delay_ms = 0;
    for (size_t i = 0; i < batch->count; i++)
        intake_dispatch(intake, batch->parcels[i]);
    batch->count = 0;
}

void
intake_batch_add(struct intake_batch *batch, struct parcel *parcel)
{
    batch->parcels[batch->count] = parcel;
    batch->items[batch->count++] = &parcel->item;
}

/* The first of the list becomes a parcel, in the batch or, unreadable as it is, on its way. */
static void
pick_up(struct intake *intake, struct intake_batch *batch)
{
    struct ready *ready = STAILQ_FIRST(&intake->ready);
    STAILQ_REMOVE_HEAD(&intake->ready, next);
    struct parcel *parcel =
        in_hand_add(&intake->in_hand, ready->inbox, ready->relative, &ready->stamp);
    if (!parcel) {
        inbox_done(ready->inbox, ready->relative, &ready->stamp, INBOX_AGAIN);
    } else {
        parcel->told = ready->told;
        if (ready->error) {
            import_unreadable(&parcel->item, ready->error);
            intake_dispatch(intake, parcel);
        } else {
            intake_batch_add(batch, parcel);
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
        struct parcel *parcel = in_hand_add_handover(&intake->in_hand, handover);
        if (!parcel) {
            receiver_answer(intake->receiver, handover, HANDOVER_DROPPED);
            continue;
        }
        if (!handover->commitment)
            log_taken(parcel);
        intake_send_parcel(intake, parcel);
    }
}

void
intake_answer_sender(struct intake *intake, struct parcel *parcel)
{
    in_hand_drop(&intake->in_hand, parcel);
    receiver_answer(intake->receiver, parcel->handover, HANDOVER_STORED);
    parcel_free(parcel);
}

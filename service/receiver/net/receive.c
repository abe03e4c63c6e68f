/*
 * receive.c - see receive.h.
 *
 * A handover has two owners: the thread that waits for its answer, and the loop's item. Each
 * releases it separately. If the thread stops waiting, the item still awaits the daemon's answer.
 */
#include "service/receiver/net/receive.h"

#include "base/test_hook.h"
#include "service/common/log.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#define ANSWER_SECONDS 20  /* to wait for the daemon; senders commonly wait 30 s */
#define MAX_LOST       256 /* max number of reports queued for the loop */

static const char refused_reason[] = "reception was paused or the disk was low";

struct receive_queue {
    struct store *store;
    uv_async_t wake;

    pthread_mutex_t lock;
    STAILQ_HEAD(handover_queue, handover) waiting;
    bool allowed, paused, stopped;
    int lost; /* number of queued reports of lost instances */
};

/* ------------------------------------------------------------------------ statuses ------ */

/* With "out of resources" the sender should try again. Any other status means a failure of this service. */
static uint16_t
receive_status_of_error(int error)
{
    switch (error) {
    case -ENOSPC:
    case -EDQUOT:
    case -EFBIG:
    case -ENOMEM:
    case -EMFILE:
    case -ENFILE:
        return DICOM_OUT_OF_RESOURCES;
    default:
        return DICOM_PROCESSING_FAILURE;
    }
}

/* Distinguishes errors in the content of the data set from errors in its form. */
static uint16_t
receive_status_of_code(enum code code)
{
    switch (code) {
    case CODE_COMMAND_MISMATCH:
    case CODE_SOP_CLASS_UNSUPPORTED:
    case CODE_TAG_MISSING:
    case CODE_TAG_INVALID:
    case CODE_UID_INVALID:
        return DICOM_DATA_SET_MISMATCH;
    case CODE_DUPLICATE_UID_DIFFERENT:
        return DICOM_DUPLICATE_INSTANCE;
    default:
        return DICOM_CANNOT_UNDERSTAND;
    }
}

/* ------------------------------------------------------------------------ handovers ----- */

static void
destroy_handover(struct handover *handover)
{
    free(handover->commitment);
    import_forget(&handover->item);
    pthread_cond_destroy(&handover->answered);
    free(handover);
}

static struct handover *
new_handover(void)
{
    struct handover *handover = calloc(1, sizeof *handover);
    if (!handover)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&handover->answered, &attributes);
    pthread_condattr_destroy(&attributes);
    handover->references = 1;
    return handover;
}

static void
release_locked(struct handover *handover)
{
    if (--handover->references == 0)
        destroy_handover(handover);
}

/* Queues the handover for the loop. The caller must then call await_answer. */
static void
give(struct receive_queue *queue, struct handover *handover)
{
    pthread_mutex_lock(&queue->lock);
    if (queue->stopped) {
        handover->answer = HANDOVER_DROPPED;
    } else {
        handover->references++;
        STAILQ_INSERT_TAIL(&queue->waiting, handover, next);
        uv_async_send(&queue->wake);
    }
    pthread_mutex_unlock(&queue->lock);
}

/* Waits for the daemon's answer and releases the handover. Returns HANDOVER_OPEN if there is none in time. */
static enum handover_answer
await_answer(struct receive_queue *queue, struct handover *handover)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += ANSWER_SECONDS;
    int error = 0;
    pthread_mutex_lock(&queue->lock);
    while (handover->answer == HANDOVER_OPEN && !error)
        error = pthread_cond_timedwait(&handover->answered, &queue->lock, &deadline);
    const enum handover_answer outcome = handover->answer;
    release_locked(handover);
    pthread_mutex_unlock(&queue->lock);
    return outcome;
}

static enum handover_answer
receive_hand_over(struct receive_queue *queue, struct handover *handover)
{
    give(queue, handover);
    return await_answer(queue, handover);
}

static struct handover *
file_handover(const struct dicom_store *store)
{
    struct handover *handover = new_handover();
    if (!handover)
        return NULL;
    const struct dicom_association_request *association = store->association;
    snprintf(handover->sender, sizeof handover->sender, "%s", association->calling_ae);
    snprintf(handover->called_ae, sizeof handover->called_ae, "%s", association->called_ae);
    snprintf(handover->folder, sizeof handover->folder, "scu:%s", association->calling_ae);
    snprintf(handover->relative, sizeof handover->relative, "%s", store->sop_instance_uid);
    handover->item.folder = handover->folder;
    handover->item.relative = handover->relative;
    return handover;
}

/* Reports an instance that was not stored; series_uid is "" if its header did not arrive. Does not
 * wait: the sender is gone, or its answer does not depend on the report. */
static void
report_lost(struct receive_queue *queue, const struct reception *reception, const char *series_uid, const char *why)
{
    struct handover *handover = file_handover(reception->store);
    if (!handover)
        return;
    struct import_report *report = &handover->item.report;
    handover->item.outcome = IMPORT_QUARANTINED;
    report->code = CODE_NOT_RECEIVED;
    snprintf(report->series_uid, sizeof report->series_uid, "%s", series_uid);
    snprintf(report->sop_instance_uid, sizeof report->sop_instance_uid, "%s", reception->store->sop_instance_uid);
    snprintf(report->message, sizeof report->message, "Its C-STORE began, but it was not stored: %s. Send it again.",
             why);
    handover->lost = true;
    pthread_mutex_lock(&queue->lock);
    const bool room = queue->lost < MAX_LOST;
    queue->lost += room;
    pthread_mutex_unlock(&queue->lock);
    if (room)
        give(queue, handover);
    else
        log_warn("receive.unreported", LOG_STR("sop", handover->relative));
    pthread_mutex_lock(&queue->lock);
    release_locked(handover);
    pthread_mutex_unlock(&queue->lock);
}

/* Acknowledges an instance that a source sent for our own C-MOVE and that is not kept as an image:
 * its class is not processed, it is one of our results, or it is quarantined. After a failure
 * status, archives such as Orthanc would end the C-MOVE before the images. The daemon must count
 * the instance first, so that the pulled item is complete without it. */
static uint16_t
receive_drop(struct receive_queue *queue, const struct reception *reception, const char *study_uid,
             const char *series_uid)
{
    const struct dicom_store *store = reception->store;
    struct handover *handover = file_handover(store);
    if (!handover)
        return DICOM_OUT_OF_RESOURCES;
    struct import_report *report = &handover->item.report;
    handover->unwanted = true;
    snprintf(report->study_uid, sizeof report->study_uid, "%s", study_uid);
    snprintf(report->series_uid, sizeof report->series_uid, "%s", series_uid);
    snprintf(report->sop_class_uid, sizeof report->sop_class_uid, "%s", store->sop_class_uid);
    snprintf(report->sop_instance_uid, sizeof report->sop_instance_uid, "%s", store->sop_instance_uid);
    return receive_hand_over(queue, handover) == HANDOVER_STORED ? DICOM_SUCCESS : DICOM_OUT_OF_RESOURCES;
}

/* --------------------------------------------------------------------------- files ------ */

static bool
is_disk_low(const struct receive_queue *queue, double min_free_mib)
{
    struct statvfs disk;
    return fstatvfs(store_fd(queue->store), &disk) == 0 &&
           (double)disk.f_bavail * (double)disk.f_frsize < min_free_mib * 1024.0 * 1024.0;
}

uint16_t
receive_begin(struct receive_queue *queue, double min_free_mib, const struct reception *reception)
{
    *reception->staged = (struct staged){.fd = -1};
    if (reception->store->unwanted && !reception->requested)
        return DICOM_SOP_CLASS_NOT_SUPPORTED;
    pthread_mutex_lock(&queue->lock);
    const bool allowed = queue->allowed && !queue->stopped;
    *reception->refused = queue->paused || is_disk_low(queue, min_free_mib);
    pthread_mutex_unlock(&queue->lock);
    uint16_t status = DICOM_OUT_OF_RESOURCES;
    const char *why = refused_reason;
    if (allowed && (!*reception->refused || *reception->series_uid)) {
        const int error = store_create(queue->store, reception->staged);
        *reception->refused |= reception->store->unwanted;
        if (!error)
            return DICOM_SUCCESS;
        log_error("receive.create", LOG_STR("error", strerror(-error)));
        if (!*reception->refused)
            status = receive_status_of_error(error);
        why = strerror(-error);
    }
    /* The header has not arrived, so the series is unknown. If the association has stored no other
     * instance, no report is needed, since the sender must send all of them again. */
    if (*reception->series_uid)
        report_lost(queue, reception, "", why);
    return status;
}

int
receive_room(const struct receive_queue *queue, double min_free_mib, bool refused)
{
    return refused || is_disk_low(queue, min_free_mib) ? -ENOSPC : 0;
}

static const char *
abandon_reason(int error)
{
    switch (error) {
    case -ECONNABORTED:
        return "the sender broke the association";
    case -EFBIG:
        return "it is larger than dicom.max_instance_mib";
    default:
        return strerror(-error);
    }
}

uint16_t
receive_abandon(struct receive_queue *queue, const struct reception *reception, int error)
{
    const bool broken_off = error == -ECONNABORTED;
    struct dicom_identity identity = {0};
    char path[PATH_MAX];
    if (store_staged_path(queue->store, reception->staged, path, sizeof path) == 0)
        dicom_identify(path, &identity);
    store_discard(queue->store, reception->staged);
    if (reception->store->unwanted)
        return broken_off ? DICOM_OUT_OF_RESOURCES
                          : receive_drop(queue, reception, identity.study_uid, identity.series_uid);
    if (!broken_off && !*reception->refused)
        log_error("receive.write", LOG_STR("error", strerror(-error)));
    report_lost(queue, reception, identity.series_uid, *reception->refused ? refused_reason : abandon_reason(error));
    return receive_status_of_error(error);
}

/* The daemon commits the row while the folder is synced. If the power fails after the commit and
 * before the sync, a row without a file remains, and the daemon reports it at its start. The sender
 * got no success, so it sends the file again. The same applies if the sync fails. */
static uint16_t
receive_seal_arrived(struct receive_queue *queue, struct handover *handover)
{
    crash_point("receive_after_rename_before_arrived");
    give(queue, handover);
    crash_point("receive_after_arrived_before_seal");
    const int error = import_seal(queue->store, &handover->item);
    const struct import_report report = handover->item.report;
    const enum handover_answer outcome = await_answer(queue, handover);
    if (error) {
        log_error("receive.failed", LOG_STR("error", strerror(-error)));
        return receive_status_of_error(error);
    }
    if (outcome == HANDOVER_OPEN)
        log_warn("receive.unanswered", LOG_INT("seconds", ANSWER_SECONDS));
    if (outcome == HANDOVER_DROPPED)
        log_warn("receive.dropped", LOG_STR("reason", "the receiver stops, or is out of memory"));
    if (outcome != HANDOVER_STORED)
        return DICOM_OUT_OF_RESOURCES;
    crash_point("receive_after_stored_before_answer");
    import_retire(queue->store, &report);
    return DICOM_SUCCESS;
}

static uint16_t
receive_finish(struct receive_queue *queue, const struct reception *reception, struct handover *handover)
{
    const struct import_item *item = &handover->item;
    const struct import_report report = item->report; /* outlives the handover */
    bool is_stored;
    uint16_t status = receive_status_of_error(item->error);
    if (*report.series_uid)
        memcpy(reception->series_uid, report.series_uid, DICOM_UID_SIZE);
    switch (item->outcome) {
    case IMPORT_ARRIVED:
        return receive_seal_arrived(queue, handover);
    case IMPORT_QUARANTINED:
        is_stored = receive_hand_over(queue, handover) == HANDOVER_STORED;
        /* A source that sends it for our own C-MOVE gets success, as receive_drop explains: the
         * file is durable in the quarantine, and the pulled item counts it. */
        if (reception->requested && is_stored && *report.path)
            return receive_drop(queue, reception, report.study_uid, report.series_uid);
        return receive_status_of_code(report.code);
    case IMPORT_OWN_RESULT:
        status = reception->requested ? receive_drop(queue, reception, report.study_uid, report.series_uid)
                                      : DICOM_SOP_CLASS_NOT_SUPPORTED;
        break;
    case IMPORT_RETRY:
    case IMPORT_UNREADABLE:
    case IMPORT_CHANGED:
    case IMPORT_GONE:
        if (item->error != -ECONNABORTED)
            log_error("receive.failed", LOG_STR("error", strerror(-item->error)));
        report_lost(queue, reception, report.series_uid, abandon_reason(item->error));
        break;
    }
    destroy_handover(handover);
    return status;
}

static bool
receive_sender_gone(const void *context)
{
    return dicom_sender_is_gone(context);
}

uint16_t
receive_end(struct receive_queue *queue, const struct reception *reception)
{
    if (*reception->refused)
        return receive_abandon(queue, reception, -ENOSPC);
    const struct dicom_store *store = reception->store;
    struct handover *handover = file_handover(store);
    if (!handover)
        return receive_abandon(queue, reception, -ENOMEM);
    const struct dicom_requestor sender = {receive_sender_gone, store};
    const struct import_claim claim = {store->sop_class_uid, store->sop_instance_uid, &sender};
    handover->item.resent = reception->resent;
    import_received(queue->store, reception->staged, &claim, &handover->item);
    return receive_finish(queue, reception, handover);
}

/* --------------------------------------------------------------------- commitments ------ */

uint16_t
receive_committed(struct receive_queue *queue, const char *calling_ae, const struct dicom_commitment *commitment)
{
    struct handover *handover = new_handover();
    if (!handover)
        return DICOM_PROCESSING_FAILURE;
    snprintf(handover->sender, sizeof handover->sender, "%s", calling_ae);
    /* The copy and its references are one allocation. */
    const size_t size = commitment->count * sizeof *commitment->references;
    struct dicom_commitment *copy = malloc(sizeof *copy + size);
    if (!copy) {
        destroy_handover(handover);
        return DICOM_PROCESSING_FAILURE;
    }
    *copy = *commitment;
    copy->references = (struct dicom_commitment_reference *)(copy + 1);
    if (size)
        memcpy(copy + 1, commitment->references, size);
    handover->commitment = copy;
    return receive_hand_over(queue, handover) == HANDOVER_STORED ? DICOM_SUCCESS : DICOM_PROCESSING_FAILURE;
}

/* ------------------------------------------------------------------- loop's thread ------ */

int
receive_open(uv_loop_t *loop, struct store *store, struct receive_queue **out)
{
    struct receive_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    queue->store = store;
    STAILQ_INIT(&queue->waiting);
    int error = uv_async_init(loop, &queue->wake, NULL);
    if (error) {
        free(queue);
        return error;
    }
    pthread_mutex_init(&queue->lock, NULL); /* cannot fail */
    *out = queue;
    return 0;
}

void
receive_allow(struct receive_queue *queue, bool allowed, bool paused)
{
    pthread_mutex_lock(&queue->lock);
    queue->allowed = allowed;
    queue->paused = paused;
    pthread_mutex_unlock(&queue->lock);
}

struct handover *
receive_next(struct receive_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    struct handover *handover = STAILQ_FIRST(&queue->waiting);
    if (handover) {
        STAILQ_REMOVE_HEAD(&queue->waiting, next);
        queue->lost -= handover->lost;
    }
    pthread_mutex_unlock(&queue->lock);
    return handover;
}

static void
answer_locked(struct handover *handover, enum handover_answer answer)
{
    handover->answer = answer;
    pthread_cond_signal(&handover->answered);
    release_locked(handover);
}

void
receive_answer(struct receive_queue *queue, struct handover *handover, enum handover_answer answer)
{
    pthread_mutex_lock(&queue->lock);
    answer_locked(handover, answer);
    pthread_mutex_unlock(&queue->lock);
}

void
receive_stop(struct receive_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->stopped = true;
    while (!STAILQ_EMPTY(&queue->waiting)) {
        struct handover *handover = STAILQ_FIRST(&queue->waiting);
        STAILQ_REMOVE_HEAD(&queue->waiting, next);
        answer_locked(handover, HANDOVER_DROPPED);
    }
    uv_close((uv_handle_t *)&queue->wake, NULL);
    pthread_mutex_unlock(&queue->lock);
}

void
receive_free(struct receive_queue *queue)
{
    if (!queue)
        return;
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

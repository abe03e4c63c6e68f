/*
 * intake.c - the intake process: finds files, makes them durable, tells the daemon, and only when
 * the daemon has the row on disk touches the original.
 *
 *   inbox --> ready list --> parcel (token) --> lane: import_batch --> ARRIVED | QUARANTINED
 *                                                                            |
 *   inbox_done <-- import_finish (pool thread) <---------------------- STORED(token)
 *
 *   listener --> association's thread --> reception --> parcel (token) --> ARRIVED | QUARANTINED
 *                                            0x0000 <---------------------- STORED(token)
 *
 * Messages are hints: a frame without a STORED is sent again, and after a restart everything that
 * is still there is reported anew; rows are idempotent. At most PARCELS_WINDOW files are between
 * their start and their STORED; the inboxes wait with the rest (inbox.h bounds it), and so do
 * senders.
 *
 * All state belongs to the loop's thread. Pool threads see the items of one batch, one recover, one
 * inspect, or one parcel, and the loop does not touch those meanwhile.
 */
#include "channel.h"
#include "crash_point.h"
#include "inbox.h"
#include "inspect.h"
#include "listener.h"
#include "log.h"
#include "parallel.h"
#include "parcels.h"
#include "reception.h"
#include "recover.h"
#include "role.h"
#include "settings.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define POOL_THREADS                                                                               \
    "16" /* lanes, inspections, one step an inbox; a hung share keeps only its own */
#define LANES           4  /* batches being imported at a time */
#define BATCH           32 /* files in one */
#define RECOVER_WINDOW  64 /* parcels that recovered files may take up */
#define INSPECT_THREADS 4
#define DESCRIPTORS     8192
#define ALIVE_MS        5000
#define RESEND_MS       30000
#define DRAIN_MS        5000 /* a daemon that does not answer holds up the end no longer */
#define STOP_MS         5000 /* nor does a file system that hangs */
#define RETRY_FIRST_MS  200
#define RETRY_MAX_MS    30000

/* A find that waits for its turn. */
struct ready {
    struct ready *next;
    struct inbox *inbox;
    struct file_stamp stamp;
    int error;
    bool told;
    char relative[];
};

struct lane {
    struct intake *intake;
    uv_work_t work;
    bool busy;
    int64_t reserve_bytes;
    size_t count;
    struct parcel *parcels[BATCH];
    struct import_item *items[BATCH];
};

struct intake {
    uv_loop_t loop;
    struct channel *channel;
    struct settings *settings;
    const struct conf *conf; /* of the settings */
    struct store *store;
    struct inbox **inboxes;
    size_t inbox_count;

    struct ready *ready, **ready_end;
    struct parcels parcels;
    struct lane lanes[LANES];

    struct reception *reception;
    struct listener *listener;

    struct lane recovery; /* parcels for what recover_step finds */
    struct recover *recover;
    size_t recover_in_hand; /* parcels of it not yet answered */
    size_t recover_found;
    int recover_more; /* result of the last step */
    int64_t recovered;

    uv_work_t begin;
    int begin_error;
    bool beginning, begun; /* store_begin has been done: files may be taken in */
    bool listening;        /* the listener has been configured */

    uv_prepare_t turn;
    uv_timer_t alive, retry, drain, stop;
    int64_t retry_at_ms, retry_delay_ms; /* 0: nothing has failed lately */
    bool paused, draining, stopping;
    size_t working; /* works in the pool other than the inboxes' own */
    int status;     /* the process's */
};

struct inspection {
    struct intake *intake;
    struct inspect *inspect;
    uv_work_t work;
};

static void stop(struct intake *intake);

static void end_turns(struct intake *intake);

static int64_t
now_ms(const struct intake *intake)
{
    return (int64_t)uv_now(&intake->loop);
}

static void
queue_work(struct intake *intake, uv_work_t *work, uv_work_cb run, uv_after_work_cb after)
{
    intake->working++;
    uv_queue_work(&intake->loop, work, run, after); /* fails only for want of a callback */
}

/* ------------------------------------------------------------------------- parcels ------ */

static void
send_frame(struct intake *intake, struct proto_writer *writer)
{
    int error = channel_send(intake->channel, writer);
    if (error && error != -EPIPE) /* the end of the pipe is told by channel_events.end */
        log_error("intake.send", LOG_STR("error", strerror(-error)));
}

static void
send_parcel(struct intake *intake, struct parcel *parcel)
{
    struct proto_writer writer;
    parcel_frame(parcel, &writer);
    parcel->sent = true;
    parcel->sent_ms = now_ms(intake);
    send_frame(intake, &writer);
    if (parcel->item.outcome == IMPORT_ARRIVED)
        crash_point("intake_after_arrived");
}

/* Frames without an answer for so long go out again. */
static void
send_again(struct intake *intake, int64_t older_than_ms)
{
    for (size_t i = 0; i < PARCELS_WINDOW; i++) {
        struct parcel *parcel = intake->parcels.slots[i];
        if (parcel && parcel->sent && now_ms(intake) - parcel->sent_ms >= older_than_ms)
            send_parcel(intake, parcel);
    }
}

/* The file's way ends here. */
static void
close_parcel(struct intake *intake, struct parcel *parcel, enum inbox_fate fate)
{
    if (parcels_find(&intake->parcels, parcel->item.token) == parcel)
        parcels_drop(&intake->parcels, parcel);
    if (parcel->inbox)
        inbox_done(parcel->inbox, parcel->item.relative, &parcel->item.stamp, fate);
    else if (parcel->handover)
        reception_drop(intake->reception, parcel->handover);
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
    *intake->ready_end = ready;
    intake->ready_end = &ready->next;
}

static struct ready *
take_ready(struct intake *intake)
{
    struct ready *ready = intake->ready;
    intake->ready = ready->next;
    if (!intake->ready)
        intake->ready_end = &intake->ready;
    return ready;
}

static void
on_found(void *context, struct inbox *inbox, const struct inbox_find *find)
{
    struct intake *intake = context;
    add_ready(intake, inbox, find);
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
    close_parcel(intake, parcel, fate_of(parcel, parcel->item.error));
}

static void
finish_original(struct intake *intake, struct parcel *parcel)
{
    if (!parcel->inbox || import_leaves(&parcel->item)) {
        const bool unread = parcel->item.outcome == IMPORT_UNREADABLE;
        close_parcel(intake, parcel, unread ? INBOX_LATER : INBOX_LEFT);
        return;
    }
    parcels_drop(&intake->parcels, parcel);
    parcel->owner = intake;
    parcel->work.data = parcel;
    queue_work(intake, &parcel->work, on_finish, after_finish);
}

/* --------------------------------------------------------------------------- lanes ------ */

static void
hold_back(struct intake *intake, int error)
{
    const int64_t now = now_ms(intake);
    if (now < intake->retry_at_ms)
        return; /* another lane met the same */
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
    parcels_drop(&intake->parcels, parcel);
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
        log_warn("file.quarantined", LOG_STR("code", report->code),
                 LOG_STR("inbox", parcel->item.folder), LOG_INT("inode", parcel->item.stamp.inode));
}

static void
deliver(struct intake *intake, struct parcel *parcel)
{
    switch (parcel->item.outcome) {
    case IMPORT_UNREADABLE:
        if (parcel->told) {
            close_parcel(intake, parcel, INBOX_LATER);
            break;
        }
        /* fall through */
    case IMPORT_ARRIVED:
    case IMPORT_QUARANTINED:
        log_taken(parcel);
        send_parcel(intake, parcel);
        break;
    case IMPORT_OWN_RESULT:
        log_debug("file.own_result", LOG_STR("inbox", parcel->item.folder),
                  LOG_INT("inode", parcel->item.stamp.inode));
        finish_original(intake, parcel);
        break;
    case IMPORT_CHANGED:
        close_parcel(intake, parcel, INBOX_AGAIN);
        break;
    case IMPORT_GONE:
        close_parcel(intake, parcel, INBOX_GONE);
        break;
    case IMPORT_RETRY:
        hold_back(intake, parcel->item.error);
        put_back(intake, parcel);
        break;
    }
}

static void
abandon(struct intake *intake, struct lane *lane)
{
    for (size_t i = 0; i < lane->count; i++)
        close_parcel(intake, lane->parcels[i], INBOX_AGAIN);
    lane->count = 0;
}

static void
on_import(uv_work_t *work)
{
    struct lane *lane = work->data;
    import_batch(lane->intake->store, lane->reserve_bytes, lane->items, lane->count);
}

static void
after_import(uv_work_t *work, int status)
{
    (void)status;
    struct lane *lane = work->data;
    struct intake *intake = lane->intake;
    intake->working--;
    lane->busy = false;
    if (intake->stopping) {
        abandon(intake, lane);
        return;
    }
    bool delayed = false;
    for (size_t i = 0; i < lane->count; i++)
        delayed = delayed || lane->items[i]->outcome == IMPORT_RETRY;
    if (!delayed)
        intake->retry_delay_ms = 0;
    for (size_t i = 0; i < lane->count; i++)
        deliver(intake, lane->parcels[i]);
    lane->count = 0;
}

static void
add_to_lane(struct lane *lane, struct parcel *parcel)
{
    lane->parcels[lane->count] = parcel;
    lane->items[lane->count++] = &parcel->item;
}

/* The first of the list becomes a parcel, in the lane or, unreadable as it is, on its way. */
static void
pick_up(struct intake *intake, struct lane *lane)
{
    struct ready *ready = take_ready(intake);
    struct parcel *parcel =
        parcels_add(&intake->parcels, ready->inbox, ready->relative, &ready->stamp);
    if (!parcel) {
        inbox_done(ready->inbox, ready->relative, &ready->stamp, INBOX_AGAIN);
    } else {
        parcel->told = ready->told;
        if (ready->error) {
            import_unreadable(&parcel->item, ready->error);
            deliver(intake, parcel);
        } else {
            add_to_lane(lane, parcel);
        }
    }
    free(ready);
}

static struct lane *
free_lane(struct intake *intake)
{
    for (size_t i = 0; i < LANES; i++) {
        if (!intake->lanes[i].busy)
            return &intake->lanes[i];
    }
    return NULL;
}

static bool
may_begin(const struct intake *intake)
{
    return intake->begun && !intake->paused && !intake->draining && !intake->stopping &&
           now_ms(intake) >= intake->retry_at_ms;
}

static void
start_lanes(struct intake *intake)
{
    struct lane *lane;
    while (intake->ready && parcels_room(&intake->parcels) > 0 && (lane = free_lane(intake))) {
        while (intake->ready && lane->count < BATCH && parcels_room(&intake->parcels) > 0)
            pick_up(intake, lane);
        if (lane->count == 0)
            continue;
        lane->intake = intake;
        lane->busy = true;
        lane->reserve_bytes = (int64_t)(intake->conf->min_free_mib * 1024.0 * 1024.0);
        lane->work.data = lane;
        queue_work(intake, &lane->work, on_import, after_import);
    }
}

/* ----------------------------------------------------------------------- reception ------ */

/* Received files go before those of the inboxes: somebody waits for an answer. */
static void
take_handovers(struct intake *intake)
{
    struct handover *handover;
    while (parcels_room(&intake->parcels) > 0 && (handover = reception_next(intake->reception))) {
        struct parcel *parcel = parcels_add_handover(&intake->parcels, handover);
        if (!parcel) {
            reception_drop(intake->reception, handover);
            continue;
        }
        if (!handover->commitment)
            log_taken(parcel);
        send_parcel(intake, parcel);
    }
}

/* They only wake the loop: on_turn does the rest. */
static void
on_handover(void *context)
{
    (void)context;
}

static void
on_association_ended(void *context)
{
    (void)context;
}

static void
answer_sender(struct intake *intake, struct parcel *parcel)
{
    parcels_drop(&intake->parcels, parcel);
    reception_stored(intake->reception, parcel->handover);
    parcel_free(parcel);
}

/* ------------------------------------------------------------------------ recovery ------ */

static void
on_recover(uv_work_t *work)
{
    struct intake *intake = work->data;
    intake->recover_more = recover_step(intake->recover, intake->recovery.items,
                                        intake->recovery.count, &intake->recover_found);
}

static void
end_recovery(struct intake *intake)
{
    recover_close(intake->recover);
    intake->recover = NULL;
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
    struct lane *lane = &intake->recovery;
    intake->working--;
    lane->busy = false;
    if (intake->stopping) {
        abandon(intake, lane);
        return;
    }
    for (size_t i = 0; i < lane->count; i++) {
        if (i < intake->recover_found)
            send_parcel(intake, lane->parcels[i]);
        else
            close_parcel(intake, lane->parcels[i], INBOX_GONE);
    }
    lane->count = 0;
    intake->recovered += (int64_t)intake->recover_found;
    if (intake->recover_more <= 0)
        end_recovery(intake);
}

static void
start_recovery(struct intake *intake)
{
    struct lane *lane = &intake->recovery;
    if (!intake->recover || lane->busy)
        return;
    static const struct file_stamp none = {0};
    while (lane->count < BATCH && intake->recover_in_hand < RECOVER_WINDOW &&
           parcels_room(&intake->parcels) > 0) {
        struct parcel *parcel = parcels_add(&intake->parcels, NULL, NULL, &none);
        if (!parcel)
            break;
        intake->recover_in_hand++;
        add_to_lane(lane, parcel);
    }
    if (lane->count == 0)
        return;
    lane->busy = true;
    lane->work.data = intake;
    queue_work(intake, &lane->work, on_recover, after_recover);
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

/* Not before files can be taken in, unless that is delayed: then senders are told to come again. */
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
        hold_back(intake, intake->begin_error);
    else
        intake->begun = true;
    listen_now(intake);
}

static void
begin(struct intake *intake)
{
    if (intake->beginning || now_ms(intake) < intake->retry_at_ms)
        return;
    intake->beginning = true;
    intake->begin.data = intake;
    queue_work(intake, &intake->begin, on_begin, after_begin);
}

/* ----------------------------------------------------------------------- inspection ------ */

static void
on_inspect(uv_work_t *work)
{
    struct inspection *inspection = work->data;
    int threads = parallel_processors();
    inspect_run(inspection->inspect, threads < INSPECT_THREADS ? threads : INSPECT_THREADS);
}

static void
after_inspect(uv_work_t *work, int status)
{
    (void)status;
    struct inspection *inspection = work->data;
    struct intake *intake = inspection->intake;
    intake->working--;
    if (!intake->stopping) {
        struct proto_writer writer;
        inspect_answer(inspection->inspect, &writer);
        send_frame(intake, &writer);
    }
    inspect_free(inspection->inspect);
    free(inspection);
}

static int
inspect(struct intake *intake, struct proto_reader *reader)
{
    struct inspection *inspection = calloc(1, sizeof *inspection);
    if (!inspection)
        return -ENOMEM;
    int error = inspect_open(reader, &inspection->inspect);
    if (error) {
        free(inspection);
        return error;
    }
    inspection->intake = intake;
    inspection->work.data = inspection;
    queue_work(intake, &inspection->work, on_inspect, after_inspect);
    return 0;
}

/* ------------------------------------------------------------------- configuration ------ */

static struct inbox *
find_inbox(const struct intake *intake, const char *path)
{
    for (size_t i = 0; i < intake->inbox_count; i++) {
        if (strcmp(inbox_path(intake->inboxes[i]), path) == 0)
            return intake->inboxes[i];
    }
    return NULL;
}

static bool
is_configured(const struct conf *conf, const char *path)
{
    for (size_t i = 0; i < conf->inbox_count; i++) {
        if (strcmp(conf->inboxes[i].path, path) == 0)
            return true;
    }
    return false;
}

/* What was handed out by an inbox that closes and is not yet begun. */
static void
forget_ready(struct intake *intake, const struct inbox *inbox)
{
    struct ready **link = &intake->ready;
    while (*link) {
        struct ready *ready = *link;
        if (inbox && ready->inbox != inbox) {
            link = &ready->next;
            continue;
        }
        *link = ready->next;
        inbox_done(ready->inbox, ready->relative, &ready->stamp, INBOX_GONE);
        free(ready);
    }
    intake->ready_end = link;
}

static void
close_inbox(struct intake *intake, struct inbox *inbox)
{
    inbox_close(inbox);
    forget_ready(intake, inbox);
}

static int
open_or_configure(struct intake *intake, const struct conf_inbox *conf, struct inbox **inbox)
{
    *inbox = find_inbox(intake, conf->path);
    if (*inbox)
        return inbox_configure(*inbox, conf);
    return inbox_open(&intake->loop, conf, intake->conf->root, on_found, intake, inbox);
}

/* Opens, changes and closes inboxes as the configuration says. */
static int
apply_inboxes(struct intake *intake, const struct conf *conf)
{
    struct inbox **inboxes = calloc(conf->inbox_count + 1, sizeof(struct inbox *));
    if (!inboxes)
        return -ENOMEM;
    size_t count = 0;
    int error = 0;
    for (size_t i = 0; i < conf->inbox_count; i++) {
        int failed = open_or_configure(intake, &conf->inboxes[i], &inboxes[count]);
        if (inboxes[count])
            count++;
        error = failed ? failed : error;
    }
    for (size_t i = 0; i < intake->inbox_count; i++) {
        if (!is_configured(conf, inbox_path(intake->inboxes[i])))
            close_inbox(intake, intake->inboxes[i]);
    }
    free(intake->inboxes);
    intake->inboxes = inboxes;
    intake->inbox_count = count;
    return error;
}

static void
reload(struct intake *intake, const char *config_file)
{
    struct conf *conf;
    char reason[CONF_REASON];
    int error = conf_load(config_file, &conf, reason, sizeof reason);
    if (error) {
        log_error("intake.reload", LOG_STR("error", reason));
        return;
    }
    if (strcmp(conf->root, intake->conf->root) != 0) {
        log_error("intake.reload", LOG_STR("error", "the root changes only with a restart"));
        conf_free(conf);
        return;
    }
    struct settings *settings;
    struct dicom_fault fault;
    error = settings_open(conf, &settings, &fault);
    if (error || fault.code[0]) {
        log_error("intake.reload", LOG_STR("error", error ? strerror(-error) : fault.sentence));
        if (!error)
            settings_drop(settings);
        return;
    }
    log_set_level(conf->log_level);
    error = apply_inboxes(intake, conf);
    if (error)
        log_error("intake.reload", LOG_STR("error", strerror(-error)));
    settings_drop(intake->settings);
    intake->settings = settings;
    intake->conf = conf;
    if (intake->listening)
        listener_configure(intake->listener, settings);
}

/* -------------------------------------------------------------------------- frames ------ */

static void
on_stored(struct intake *intake, int64_t token)
{
    struct parcel *parcel = parcels_find(&intake->parcels, token);
    if (!parcel || !parcel->sent) /* the answer to a frame that was sent twice comes twice */
        return;
    if (parcel->handover)
        answer_sender(intake, parcel);
    else
        finish_original(intake, parcel);
}

static int
take_frame(struct intake *intake, struct proto_reader *reader)
{
    int64_t token;
    const char *text;
    int error;
    switch ((int)reader->type) {
    case PROTO_STORED:
        token = proto_get_i64(reader);
        error = proto_end(reader);
        if (!error)
            on_stored(intake, token);
        return error;
    case PROTO_INSPECT:
        return inspect(intake, reader);
    case PROTO_PAUSE:
        text = proto_get_str(reader);
        error = proto_end(reader);
        if (!error)
            log_info("intake.paused", LOG_STR("why", text));
        intake->paused = true;
        return error;
    case PROTO_RESUME:
        intake->paused = false;
        send_again(intake, 0);
        return proto_end(reader);
    case PROTO_RELOAD:
        text = proto_get_str(reader);
        error = proto_end(reader);
        if (!error)
            reload(intake, text);
        return error;
    case PROTO_DRAIN:
        intake->draining = true;
        return proto_end(reader);
    default:
        return -EBADMSG;
    }
}

static void
on_drain_timeout(uv_timer_t *timer)
{
    stop(timer->data);
}

static void
on_frame(void *context, struct channel *channel, struct proto_reader *reader)
{
    (void)channel;
    struct intake *intake = context;
    const bool was_draining = intake->draining;
    int error = take_frame(intake, reader);
    if (error) {
        log_error("intake.frame", LOG_STR("type", proto_type_name(reader->type)),
                  LOG_STR("error", strerror(-error)));
        intake->status = EXIT_FAILURE;
        stop(intake);
        return;
    }
    if (intake->draining && !was_draining)
        uv_timer_start(&intake->drain, on_drain_timeout, DRAIN_MS, 0);
}

static void
on_end(void *context, struct channel *channel, int status)
{
    (void)channel;
    struct intake *intake = context;
    if (status && status != -ECONNRESET) {
        log_error("intake.pipe", LOG_STR("error", strerror(-status)));
        intake->status = EXIT_FAILURE;
    }
    stop(intake);
}

static void
say_hello(struct intake *intake)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_HELLO);
    proto_put_str(&writer, "intake");
    proto_put_str(&writer, proto_build_id());
    send_frame(intake, &writer);
}

/* ---------------------------------------------------------------------- the course ------ */

/* Only wakes the loop: on_turn does the rest. */
static void
on_retry(uv_timer_t *timer)
{
    (void)timer;
}

static void
drain(struct intake *intake)
{
    listener_stop(intake->listener);
    if (intake->parcels.count == 0 && intake->working == 0 && listener_idle(intake->listener))
        stop(intake);
}

/* Once a turn of the loop, after all that happened in it: begins whatever can begin now. */
static void
on_turn(uv_prepare_t *turn)
{
    struct intake *intake = turn->data;
    if (intake->stopping) {
        if (listener_idle(intake->listener))
            end_turns(intake);
        return;
    }
    take_handovers(intake);
    reception_allow(intake->reception, intake->begun && !intake->paused && !intake->draining);
    if (intake->draining) {
        drain(intake);
        return;
    }
    if (!intake->begun)
        begin(intake);
    if (may_begin(intake)) {
        start_lanes(intake);
        start_recovery(intake);
    }
    const int64_t now = now_ms(intake);
    if (now < intake->retry_at_ms)
        uv_timer_start(&intake->retry, on_retry, (uint64_t)(intake->retry_at_ms - now), 0);
}

static void
on_alive(uv_timer_t *timer)
{
    struct intake *intake = timer->data;
    struct proto_writer writer;
    proto_start(&writer, PROTO_ALIVE);
    send_frame(intake, &writer);
    if (!intake->paused)
        send_again(intake, RESEND_MS);
}

static void
on_stop_timeout(uv_timer_t *timer)
{
    struct intake *intake = timer->data;
    log_warn("intake.hung", LOG_INT("works", intake->working));
    _exit(intake->status);
}

/* The last association is over: no thread is left that would wake the loop. */
static void
end_turns(struct intake *intake)
{
    listener_close(intake->listener);
    uv_close((uv_handle_t *)&intake->turn, NULL);
}

/* The loop ends by itself when the last association is over and the last work in the pool has come
 * back. */
static void
stop(struct intake *intake)
{
    if (intake->stopping)
        return;
    intake->stopping = true;
    listener_stop(intake->listener);
    reception_stop(intake->reception);
    for (size_t i = 0; i < intake->inbox_count; i++)
        inbox_close(intake->inboxes[i]);
    forget_ready(intake, NULL);
    for (size_t i = 0; i < PARCELS_WINDOW; i++) {
        struct parcel *parcel = intake->parcels.slots[i];
        if (parcel && parcel->sent)
            close_parcel(intake, parcel, INBOX_GONE);
    }
    channel_close(intake->channel);
    uv_close((uv_handle_t *)&intake->alive, NULL);
    uv_close((uv_handle_t *)&intake->retry, NULL);
    uv_close((uv_handle_t *)&intake->drain, NULL);
    uv_timer_start(&intake->stop, on_stop_timeout, STOP_MS, 0);
    uv_unref((uv_handle_t *)&intake->stop);
}

/* ----------------------------------------------------------------- opening, closing ------ */

static int
open_settings(struct intake *intake, const char *config_file)
{
    char reason[CONF_REASON];
    struct conf *conf;
    int error = conf_load(config_file, &conf, reason, sizeof reason);
    if (error) {
        log_error("intake.config", LOG_STR("error", reason));
        return error;
    }
    log_set_level(conf->log_level);
    struct dicom_fault fault;
    error = settings_open(conf, &intake->settings, &fault);
    if (error)
        return error;
    if (fault.code[0])
        log_error("intake.tls", LOG_STR("code", fault.code), LOG_STR("error", fault.sentence));
    intake->conf = intake->settings->conf;
    return 0;
}

static int
open_files(struct intake *intake, const char *config_file)
{
    int error = open_settings(intake, config_file);
    if (error)
        return error;
    error = store_open(intake->conf->root, &intake->store);
    if (error) {
        log_error("intake.root", LOG_STR("root", intake->conf->root),
                  LOG_STR("error", strerror(-error)));
        settings_drop(intake->settings);
    }
    return error;
}

static int
open_listener(struct intake *intake)
{
    int error =
        reception_open(&intake->loop, intake->store, on_handover, intake, &intake->reception);
    if (!error)
        error = listener_open(&intake->loop, intake->reception, on_association_ended, intake,
                              &intake->listener);
    return error;
}

static int
open_loop(struct intake *intake)
{
    const struct channel_events events = {.frame = on_frame, .end = on_end, .context = intake};
    int error = uv_loop_init(&intake->loop);
    if (error)
        return error;
    uv_timer_t *const timers[] = {&intake->alive, &intake->retry, &intake->drain, &intake->stop};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(&intake->loop, timers[i]); /* has no way to fail */
        timers[i]->data = intake;
    }
    uv_prepare_init(&intake->loop, &intake->turn);
    intake->turn.data = intake;
    uv_prepare_start(&intake->turn, on_turn);
    error = channel_open(&intake->loop, ROLE_FD, &events, &intake->channel);
    if (!error)
        error = open_listener(intake);
    if (error)
        return error;
    say_hello(intake);
    uv_timer_start(&intake->alive, on_alive, ALIVE_MS, ALIVE_MS);
    return apply_inboxes(intake, intake->conf);
}

static void
close_all(struct intake *intake)
{
    uv_close((uv_handle_t *)&intake->stop, NULL);
    uv_run(&intake->loop, UV_RUN_DEFAULT);
    uv_loop_close(&intake->loop);
    recover_close(intake->recover);
    listener_free(intake->listener);
    reception_free(intake->reception);
    store_close(intake->store);
    settings_drop(intake->settings);
    free(intake->inboxes);
}

/* The usual limit of 1024 is for programs that use select; an association needs two. */
static void
raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int
intake_main(const struct role_args *args)
{
    static struct intake intake; /* one a process; too large for the stack */
    intake.ready_end = &intake.ready;
    setenv("UV_THREADPOOL_SIZE", POOL_THREADS, 0); /* read at the first work */
    signal(SIGXFSZ, SIG_IGN);                      /* a limit on file sizes is a full disk */
    raise_descriptors();
    dicom_init();
    if (open_files(&intake, args->config_file) != 0)
        return EXIT_FAILURE;
    int error = open_loop(&intake);
    if (error) {
        log_error("intake.open", LOG_STR("error", strerror(-error)));
        return EXIT_FAILURE;
    }
    uv_run(&intake.loop, UV_RUN_DEFAULT);
    close_all(&intake);
    return intake.status;
}

/*
 * receiver.c - the receiver process (role `intake`): finds files, makes them durable and reports
 * them to the daemon. It must not change an original before the daemon has the row on disk.
 *
 *     inbox --> ready list --> item (token) --> batch: import_batch --> ARRIVED | QUARANTINED
 *                                                                              |
 *     inbox_done <-- import_finish (pool thread) <---------------------- STORED(token)
 *
 *     listener --> association's thread --> receiver --> item (token) --> ARRIVED | QUARANTINED
 *                                              0x0000 <---------------------- STORED(token)
 *
 * Messages may be repeated: a frame without a STORED is sent again. After a restart all files found
 * are reported again, except those that the daemon names as known; rows are idempotent. At most
 * IN_HAND_MAX files are between their start and their STORED. Further files wait in the inboxes
 * (limited by inbox.h), and senders wait, too.
 *
 * All state belongs to the loop's thread. A pool thread uses the items of one batch, one recovery,
 * one inspection, or one item. The loop must not use those at the same time.
 */
#include "service/receiver/receiver_private.h"

#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/log.h"
#include "service/common/role.h"
#include "service/receiver/spool/store.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* For batches, inspections, and one step per inbox; a hung network share blocks only its own. */
#define POOL_THREADS "16"
#define DESCRIPTORS  8192
#define AGAIN_MS     5000 /* interval of the search for unanswered frames */
#define RESEND_MS    30000
#define DRAIN_MS     5000      /* max delay of the exit by a daemon that does not answer */
#define KEPT_FREE    (1 << 20) /* bytes per arena */
#define STOP_MS      5000      /* max delay of the exit by a file system that hangs */

static void intake_stop(void *context);

int64_t
intake_now_ms(const struct intake *intake)
{
    return (int64_t)uv_now(&intake->loop);
}

void
intake_queue_work(struct intake *intake, uv_work_t *work, uv_work_cb run, uv_after_work_cb after)
{
    intake->working++;
    uv_queue_work(&intake->loop, work, run, after); /* fails only without a callback */
}

static void
on_drain_timeout(uv_timer_t *timer)
{
    intake_stop(timer->data);
}

/* Sends a frame. If that fails, the process must end, since the daemon would wait for the frame;
 * the next process starts anew. It ends after this loop iteration, because the caller still uses
 * the state. */
void
intake_send_frame(struct intake *intake, struct proto_writer *writer)
{
    const int error = channel_send(intake->child.channel, writer);
    if (!error || error == -EPIPE) /* child_role.end reports the end of the pipe */
        return;
    child_note_failure(&intake->child, error);
    uv_timer_start(&intake->drain, on_drain_timeout, 0, 0);
}

/* -------------------------------------------------------------------------- frames ------ */

static void
handle_stored(struct intake *intake, struct proto_reader *reader)
{
    struct message_stored stored;
    struct in_hand_item *item = message_read_stored(reader, &stored) == 0
                                    ? in_hand_find(&intake->in_hand, stored.token)
                                    : NULL;
    if (!item || !item->sent) /* a frame that was sent twice is answered twice */
        return;
    if (item->handover)
        intake_answer_sender(intake, item);
    else
        intake_finish_original(intake, item);
}

static void
handle_gone(struct intake *intake, struct proto_reader *reader)
{
    struct message_gone gone;
    struct in_hand_item *item =
        message_read_gone(reader, &gone) == 0 ? in_hand_find(&intake->in_hand, gone.token) : NULL;
    if (item && item->sent)
        intake_close_item(intake, item, INBOX_AGAIN);
}

static void
handle_pause(struct intake *intake, struct proto_reader *reader)
{
    struct message_pause pause;
    if (message_read_pause(reader, &pause) != 0)
        return;
    log_info("intake.paused", LOG_STR("why", pause.why));
    intake->paused = true;
}

static void
intake_on_message(void *context, struct proto_reader *reader)
{
    struct intake *intake = context;
    if (reader->type == PROTO_STORED) {
        handle_stored(intake, reader);
    } else if (reader->type == PROTO_GONE) {
        handle_gone(intake, reader);
    } else if (reader->type == PROTO_INSPECT) {
        intake_inspect(intake, reader);
    } else if (reader->type == PROTO_KNOWN) {
        intake_know(intake, reader);
    } else if (reader->type == PROTO_PAUSE) {
        handle_pause(intake, reader);
    } else if (reader->type != PROTO_RESUME) {
        reader->error = -EBADMSG;
    } else if (proto_end(reader) == 0) {
        intake->paused = false;
        intake_send_again(intake, 0);
    }
}

static void
intake_on_drain(void *context)
{
    struct intake *intake = context;
    uv_timer_start(&intake->drain, on_drain_timeout, DRAIN_MS, 0);
}

static const struct child_role intake_role = {.name = "intake",
                                              .confined = CONFINE_INTAKE,
                                              .message = intake_on_message,
                                              .reload = intake_reload,
                                              .drain = intake_on_drain,
                                              .end = intake_stop};

/* ---------------------------------------------------------------------- the course ------ */

static bool
may_begin(const struct intake *intake)
{
    return intake->begun && !intake->paused && !intake->child.draining && !intake->stopping &&
           intake_now_ms(intake) >= intake->retry_at_ms;
}

/* Only wakes the loop; on_turn does the work. */
static void
on_retry(uv_timer_t *timer)
{
    (void)timer;
}

/* Reports rejected callers to the daemon. */
static void
intake_report_callers(struct intake *intake)
{
    struct proto_writer writer;
    int64_t wait_ms;
    if (listener_report_callers(intake->listener, intake_now_ms(intake), &writer, &wait_ms))
        intake_send_frame(intake, &writer);
    else if (wait_ms > 0)
        uv_timer_start(&intake->callers, on_retry, (uint64_t)wait_ms, 0);
}

static void
intake_drain(struct intake *intake)
{
    listener_stop(intake->listener);
    if (intake->in_hand.count == 0 && intake->working == 0 && listener_idle(intake->listener))
        intake_stop(intake);
}

/* Runs once per loop iteration, after all events: starts all work that can start now. */
static void
on_turn(uv_prepare_t *turn)
{
    struct intake *intake = turn->data;
    if (intake->stopping) {
        if (listener_idle(intake->listener)) { /* no thread is left that could wake the loop */
            listener_close(intake->listener);
            uv_close((uv_handle_t *)&intake->turn, NULL);
        }
        return;
    }
    intake_take_handovers(intake);
    receiver_allow(intake->receiver, intake->begun && !intake->child.draining, intake->paused);
    if (intake->child.draining) {
        intake_drain(intake);
        return;
    }
    if (!intake->begun)
        intake_begin(intake);
    intake_tell_reception(intake);
    intake_report_callers(intake);
    if (may_begin(intake)) {
        intake_start_batches(intake);
        intake_start_recovery(intake);
    }
    const int64_t now = intake_now_ms(intake);
    if (now < intake->retry_at_ms)
        uv_timer_start(&intake->retry, on_retry, (uint64_t)(intake->retry_at_ms - now), 0);
}

static void
on_again(uv_timer_t *timer)
{
    struct intake *intake = timer->data;
    if (!intake->paused)
        intake_send_again(intake, RESEND_MS);
    if (intake_lacks_an_inbox(intake))
        child_check_places(&intake->child, intake->conf);
}

static void
on_stop_timeout(uv_timer_t *timer)
{
    struct intake *intake = timer->data;
    log_warn("intake.hung", LOG_INT("works", intake->working));
    _exit(child_status(&intake->child));
}

/* The loop ends by itself after the last association and the last pool work. */
static void
intake_stop(void *context)
{
    struct intake *intake = context;
    if (intake->stopping)
        return;
    intake->stopping = true;
    listener_stop(intake->listener);
    receiver_stop(intake->receiver);
    for (size_t i = 0; i < intake->inbox_count; i++)
        inbox_close(intake->inboxes[i]);
    intake_forget_ready(intake, NULL);
    for (size_t i = 0; i < IN_HAND_MAX; i++) {
        struct in_hand_item *item = intake->in_hand.slots[i];
        if (item && item->sent)
            intake_close_item(intake, item, INBOX_GONE);
    }
    child_close(&intake->child);
    uv_close((uv_handle_t *)&intake->again, NULL);
    uv_close((uv_handle_t *)&intake->retry, NULL);
    uv_close((uv_handle_t *)&intake->callers, NULL);
    uv_close((uv_handle_t *)&intake->drain, NULL);
    uv_timer_start(&intake->stop, on_stop_timeout, STOP_MS, 0);
    uv_unref((uv_handle_t *)&intake->stop);
}

/* ----------------------------------------------------------------- opening, closing ------ */

static int
open_settings(struct intake *intake, const char *config_file)
{
    struct error error;
    struct conf *conf;
    int rc = conf_load(config_file, &conf, &error);
    if (rc) {
        log_error("intake.config", LOG_STR("error", error.message));
        return rc;
    }
    log_set_level(conf->log_level);
    rc = settings_open(conf, true, &intake->settings, &error);
    if (rc)
        return rc;
    if (error.code != CODE_NONE)
        log_error("intake.tls", LOG_STR("code", code_name(error.code)),
                  LOG_STR("error", error.message));
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
        return error;
    }
    store_want_digests(intake->store, conf_uses_slurm(intake->conf));
    return 0;
}

static int
open_loop(struct intake *intake)
{
    int error = uv_loop_init(&intake->loop);
    if (error)
        return error;
    uv_timer_t *const timers[] = {&intake->again, &intake->retry, &intake->callers, &intake->drain,
                                  &intake->stop};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(&intake->loop, timers[i]); /* cannot fail */
        timers[i]->data = intake;
    }
    uv_prepare_init(&intake->loop, &intake->turn);
    intake->turn.data = intake;
    uv_prepare_start(&intake->turn, on_turn);
    error = receiver_open(&intake->loop, intake->store, &intake->receiver);
    if (!error)
        error = listener_open(&intake->loop, intake->receiver, &intake->listener);
    if (!error)
        error = call_filter_install(CONFINE_INTAKE);
    if (!error)
        error = child_open(&intake->child, &intake->loop, &intake_role, intake);
    if (error)
        return error;
    uv_timer_start(&intake->again, on_again, AGAIN_MS, AGAIN_MS);
    intake_ask_known(intake);
    return intake_apply_inboxes(intake, intake->conf);
}

static void
close_all(struct intake *intake)
{
    uv_close((uv_handle_t *)&intake->stop, NULL);
    uv_run(&intake->loop, UV_RUN_DEFAULT);
    uv_loop_close(&intake->loop);
    recover_close(intake->recover);
    seen_files_close(intake->with_rows);
    listener_free(intake->listener);
    receiver_free(intake->receiver);
    store_close(intake->store);
    settings_drop(intake->settings);
    free(intake->inboxes);
    free(intake->released.path);
}

/* The usual limit of 1024 is meant for programs that use select. An association needs two
 * descriptors. */
static void
raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * Returns the memory of a large series as soon as it is freed. Otherwise the allocator adapts its
 * threshold and keeps as much at the end of each thread's arena, where malloc_trim does not release
 * it.
 */
static void
keep_little_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, KEPT_FREE);
    mallopt(M_MMAP_THRESHOLD, KEPT_FREE);
}

int
receiver_main(const struct role_args *args)
{
    static struct intake intake; /* one per process; too large for the stack */
    STAILQ_INIT(&intake.ready);
    setenv("UV_THREADPOOL_SIZE", POOL_THREADS, 0); /* read when the first work is queued */
    raise_descriptors();
    keep_little_memory();
    dicom_init();
    int error = open_files(&intake, args->config_file);
    if (error)
        return child_start_status(error);
    error = confine_self(CONFINE_INTAKE, intake.conf);
    if (!error)
        error = open_loop(&intake);
    if (error) {
        log_error("intake.open", LOG_STR("error", strerror(-error)));
        return child_start_status(error);
    }
    uv_run(&intake.loop, UV_RUN_DEFAULT);
    close_all(&intake);
    return child_status(&intake.child);
}

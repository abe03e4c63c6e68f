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
 * Messages may be repeated: a frame without a STORED is sent again. After a restart all files found are reported again,
 * except those that the daemon names as known; rows are idempotent. At most IMPORT_TOKENS_MAX files are between their
 * start and their STORED. Further files wait in the inboxes (limited by inbox.h), and senders wait, too.
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

static void receiver_stop(void *context);

int64_t
receiver_now_ms(const struct receiver *receiver)
{
    return (int64_t)uv_now(&receiver->loop);
}

void
receiver_queue_work(struct receiver *receiver, uv_work_t *work, uv_work_cb run, uv_after_work_cb after)
{
    receiver->working++;
    uv_queue_work(&receiver->loop, work, run, after); /* fails only without a callback */
}

static void
on_drain_timeout(uv_timer_t *timer)
{
    receiver_stop(timer->data);
}

/* Sends a frame. If that fails, the process must end, since the daemon would wait for the frame; the next process
 * starts anew. It ends after this loop iteration, because the caller still uses the state. */
void
receiver_send_frame(struct receiver *receiver, struct proto_writer *writer)
{
    const int error = channel_send(receiver->child.channel, writer);
    if (!error || error == -EPIPE) /* child_role.end reports the end of the pipe */
        return;
    child_note_failure(&receiver->child, error);
    uv_timer_start(&receiver->drain, on_drain_timeout, 0, 0);
}

/* -------------------------------------------------------------------------- frames ------ */

static void
handle_stored(struct receiver *receiver, struct proto_reader *reader)
{
    struct message_stored stored;
    struct import_token *item =
        message_read_stored(reader, &stored) == 0 ? import_token_find(&receiver->tokens, stored.token) : NULL;
    if (!item || !item->sent) /* a frame that was sent twice is answered twice */
        return;
    if (item->handover) {
        import_token_drop(&receiver->tokens, item);
        receive_answer(receiver->queue, item->handover, HANDOVER_STORED);
        import_token_free(item);
    } else {
        receiver_finish_original(receiver, item);
    }
}

static void
receiver_on_message(void *context, struct proto_reader *reader)
{
    struct receiver *receiver = context;
    struct message_gone gone;
    struct message_pause pause;
    if (reader->type == PROTO_STORED) {
        handle_stored(receiver, reader);
    } else if (reader->type == PROTO_GONE && message_read_gone(reader, &gone) == 0) {
        struct import_token *item = import_token_find(&receiver->tokens, gone.token);
        if (item && item->sent)
            receiver_close_item(receiver, item, INBOX_AGAIN);
    } else if (reader->type == PROTO_INSPECT) {
        receiver_inspect(receiver, reader);
    } else if (reader->type == PROTO_EXAMINE) {
        receiver_examine(receiver, reader);
    } else if (reader->type == PROTO_KNOWN) {
        receiver_add_known(receiver, reader);
    } else if (reader->type == PROTO_PAUSE && message_read_pause(reader, &pause) == 0) {
        log_info("intake.paused", LOG_STR("why", pause.why));
        receiver->paused = true;
    } else if (reader->type != PROTO_RESUME) {
        reader->error = -EBADMSG;
    } else if (proto_end(reader) == 0) {
        receiver->paused = false;
        receiver_send_again(receiver, 0);
    }
}

static void
receiver_on_drain(void *context)
{
    struct receiver *receiver = context;
    uv_timer_start(&receiver->drain, on_drain_timeout, DRAIN_MS, 0);
}

static const struct child_role receiver_role = {.name = "intake",
                                                .confined = CONFINE_INTAKE,
                                                .message = receiver_on_message,
                                                .reload = receiver_reload,
                                                .drain = receiver_on_drain,
                                                .end = receiver_stop};

/* ---------------------------------------------------------------------- the course ------ */

/* Only wakes the loop; on_turn does the work. */
static void
on_retry(uv_timer_t *timer)
{
    (void)timer;
}

/* Runs once per loop iteration, after all events: starts all work that can start now. */
static void
on_turn(uv_prepare_t *turn)
{
    struct receiver *receiver = turn->data;
    if (receiver->stopping) {
        if (listener_idle(receiver->listener)) { /* no thread is left that could wake the loop */
            listener_close(receiver->listener);
            uv_close((uv_handle_t *)&receiver->turn, NULL);
        }
        return;
    }
    receiver_take_handovers(receiver);
    receive_allow(receiver->queue, receiver->begun && !receiver->child.draining, receiver->paused);
    if (receiver->child.draining) {
        listener_stop(receiver->listener);
        if (receiver->tokens.count == 0 && receiver->working == 0 && listener_idle(receiver->listener))
            receiver_stop(receiver);
        return;
    }
    if (!receiver->begun)
        receiver_begin(receiver);
    receiver_report_reception(receiver);
    const int64_t now = receiver_now_ms(receiver);
    struct proto_writer callers;
    int64_t wait_ms;
    if (callers_report(receiver->rejected, now, &callers, &wait_ms))
        receiver_send_frame(receiver, &callers);
    else if (wait_ms > 0)
        uv_timer_start(&receiver->callers, on_retry, (uint64_t)wait_ms, 0);
    if (receiver->begun && !receiver->paused && now >= receiver->retry_at_ms) {
        receiver_start_batches(receiver);
        receiver_start_recovery(receiver);
    }
    if (now < receiver->retry_at_ms)
        uv_timer_start(&receiver->retry, on_retry, (uint64_t)(receiver->retry_at_ms - now), 0);
}

static void
on_again(uv_timer_t *timer)
{
    struct receiver *receiver = timer->data;
    if (!receiver->paused)
        receiver_send_again(receiver, RESEND_MS);
    bool lacks_inbox = false;
    for (size_t i = 0; i < receiver->inbox_count && !lacks_inbox; i++) {
        const char *problem = inbox_problem(receiver->inboxes[i]);
        lacks_inbox = problem && *problem;
    }
    if (lacks_inbox)
        child_check_places(&receiver->child, receiver->conf);
}

static void
on_stop_timeout(uv_timer_t *timer)
{
    struct receiver *receiver = timer->data;
    log_warn("intake.hung", LOG_INT("works", receiver->working));
    _exit(child_status(&receiver->child));
}

/* The loop ends by itself after the last association and the last pool work. */
static void
receiver_stop(void *context)
{
    struct receiver *receiver = context;
    if (receiver->stopping)
        return;
    receiver->stopping = true;
    listener_stop(receiver->listener);
    receive_stop(receiver->queue);
    for (size_t i = 0; i < receiver->inbox_count; i++)
        inbox_close(receiver->inboxes[i]);
    receiver_forget_ready(receiver, NULL);
    for (size_t i = 0; i < IMPORT_TOKENS_MAX; i++) {
        struct import_token *item = receiver->tokens.slots[i];
        if (item && item->sent)
            receiver_close_item(receiver, item, INBOX_GONE);
    }
    child_close(&receiver->child);
    uv_close((uv_handle_t *)&receiver->again, NULL);
    uv_close((uv_handle_t *)&receiver->retry, NULL);
    uv_close((uv_handle_t *)&receiver->callers, NULL);
    uv_close((uv_handle_t *)&receiver->drain, NULL);
    uv_timer_start(&receiver->stop, on_stop_timeout, STOP_MS, 0);
    uv_unref((uv_handle_t *)&receiver->stop);
}

/* ----------------------------------------------------------------- opening, closing ------ */

static int
open_files(struct receiver *receiver, const char *config_file)
{
    struct error error;
    struct conf *conf;
    int rc = conf_load(config_file, &conf, &error);
    if (rc) {
        log_error("intake.config", LOG_STR("error", error.message));
        return rc;
    }
    log_set_level(conf->log_level);
    rc = settings_open(conf, true, &receiver->settings, &error);
    if (rc)
        return rc;
    if (error.code != CODE_NONE)
        log_error("intake.tls", LOG_STR("code", code_name(error.code)), LOG_STR("error", error.message));
    receiver->conf = receiver->settings->conf;
    rc = store_open(receiver->conf->root, &receiver->store);
    if (rc) {
        log_error("intake.root", LOG_STR("root", receiver->conf->root), LOG_STR("error", strerror(-rc)));
        settings_drop(receiver->settings);
        return rc;
    }
    store_want_digests(receiver->store, conf_uses_slurm(receiver->conf));
    return 0;
}

static int
open_loop(struct receiver *receiver)
{
    int error = uv_loop_init(&receiver->loop);
    if (error)
        return error;
    uv_timer_t *const timers[] = {&receiver->again, &receiver->retry, &receiver->callers, &receiver->drain,
                                  &receiver->stop};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(&receiver->loop, timers[i]); /* cannot fail */
        timers[i]->data = receiver;
    }
    uv_prepare_init(&receiver->loop, &receiver->turn);
    receiver->turn.data = receiver;
    uv_prepare_start(&receiver->turn, on_turn);
    error = receive_open(&receiver->loop, receiver->store, &receiver->queue);
    receiver->rejected = callers_new();
    if (!error && !receiver->rejected)
        error = -ENOMEM;
    if (!error)
        error = listener_open(&receiver->loop, receiver->queue, receiver->rejected, &receiver->listener);
    if (!error)
        error = call_filter_install(CONFINE_INTAKE);
    if (!error)
        error = child_open(&receiver->child, &receiver->loop, &receiver_role, receiver);
    if (error)
        return error;
    uv_timer_start(&receiver->again, on_again, AGAIN_MS, AGAIN_MS);
    receiver_request_known(receiver);
    return receiver_apply_inboxes(receiver, receiver->conf);
}

int
receiver_main(const struct role_args *args)
{
    static struct receiver receiver; /* one per process; too large for the stack */
    STAILQ_INIT(&receiver.ready);
    setenv("UV_THREADPOOL_SIZE", POOL_THREADS, 0); /* read when the first work is queued */
    /* The usual limit of 1024 is meant for programs that use select. An association needs two descriptors. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    /* Return the memory of a large series as soon as it is freed. Otherwise the allocator adapts its threshold and
     * keeps as much at the end of each thread's arena, where malloc_trim does not release it. */
    mallopt(M_TRIM_THRESHOLD, KEPT_FREE);
    mallopt(M_MMAP_THRESHOLD, KEPT_FREE);
    dicom_init();
    int error = open_files(&receiver, args->config_file);
    if (error)
        return child_start_status(error);
    error = confine_self(CONFINE_INTAKE, receiver.conf);
    if (!error)
        error = open_loop(&receiver);
    if (error) {
        log_error("intake.open", LOG_STR("error", strerror(-error)));
        return child_start_status(error);
    }
    uv_run(&receiver.loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&receiver.stop, NULL);
    uv_run(&receiver.loop, UV_RUN_DEFAULT);
    uv_loop_close(&receiver.loop);
    recover_close(receiver.recover);
    seen_files_close(receiver.with_rows);
    listener_free(receiver.listener);
    callers_free(receiver.rejected);
    receive_free(receiver.queue);
    store_close(receiver.store);
    settings_drop(receiver.settings);
    free(receiver.inboxes);
    free(receiver.released.path);
    return child_status(&receiver.child);
}

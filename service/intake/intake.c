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
#include "service/intake/intake_private.h"

#include "service/common/log.h"
#include "service/common/messages.h"
#include "service/common/role.h"
#include "service/intake/spool/store.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define POOL_THREADS                                                                               \
    "16" /* lanes, inspections, one step an inbox; a hung share keeps only its own */
#define DESCRIPTORS 8192
#define ALIVE_MS    5000
#define RESEND_MS   30000
#define DRAIN_MS    5000 /* a daemon that does not answer holds up the end no longer */
#define STOP_MS     5000 /* nor does a file system that hangs */

static void stop(struct intake *intake);

static void end_turns(struct intake *intake);

int64_t
intake_now_ms(const struct intake *intake)
{
    return (int64_t)uv_now(&intake->loop);
}

void
intake_queue_work(struct intake *intake, uv_work_t *work, uv_work_cb run, uv_after_work_cb after)
{
    intake->working++;
    uv_queue_work(&intake->loop, work, run, after); /* fails only for want of a callback */
}

void
intake_send_frame(struct intake *intake, struct proto_writer *writer)
{
    int error = channel_send(intake->channel, writer);
    if (error && error != -EPIPE) /* the end of the pipe is told by channel_events.end */
        log_error("intake.send", LOG_STR("error", strerror(-error)));
}

/* -------------------------------------------------------------------------- frames ------ */

static void
on_stored(struct intake *intake, int64_t token)
{
    struct parcel *parcel = parcels_find(&intake->parcels, token);
    if (!parcel || !parcel->sent) /* the answer to a frame that was sent twice comes twice */
        return;
    if (parcel->handover)
        intake_answer_sender(intake, parcel);
    else
        intake_finish_original(intake, parcel);
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
        return intake_inspect(intake, reader);
    case PROTO_PAUSE:
        text = proto_get_str(reader);
        error = proto_end(reader);
        if (!error)
            log_info("intake.paused", LOG_STR("why", text));
        intake->paused = true;
        return error;
    case PROTO_RESUME:
        intake->paused = false;
        intake_send_again(intake, 0);
        return proto_end(reader);
    case PROTO_RELOAD:
        text = proto_get_str(reader);
        error = proto_end(reader);
        if (!error)
            intake_reload(intake, text);
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
        log_error("intake.frame", LOG_STR("type", message_name(reader->type)),
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
    intake_send_frame(intake, &writer);
}

/* ---------------------------------------------------------------------- the course ------ */

static bool
may_begin(const struct intake *intake)
{
    return intake->begun && !intake->paused && !intake->draining && !intake->stopping &&
           intake_now_ms(intake) >= intake->retry_at_ms;
}

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
    intake_take_handovers(intake);
    reception_allow(intake->reception, intake->begun && !intake->paused && !intake->draining);
    if (intake->draining) {
        drain(intake);
        return;
    }
    if (!intake->begun)
        intake_begin(intake);
    if (may_begin(intake)) {
        intake_start_lanes(intake);
        intake_start_recovery(intake);
    }
    const int64_t now = intake_now_ms(intake);
    if (now < intake->retry_at_ms)
        uv_timer_start(&intake->retry, on_retry, (uint64_t)(intake->retry_at_ms - now), 0);
}

static void
on_alive(uv_timer_t *timer)
{
    struct intake *intake = timer->data;
    struct proto_writer writer;
    proto_start(&writer, PROTO_ALIVE);
    intake_send_frame(intake, &writer);
    if (!intake->paused)
        intake_send_again(intake, RESEND_MS);
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
    intake_forget_ready(intake, NULL);
    for (size_t i = 0; i < PARCELS_WINDOW; i++) {
        struct parcel *parcel = intake->parcels.slots[i];
        if (parcel && parcel->sent)
            intake_close_parcel(intake, parcel, INBOX_GONE);
    }
    channel_close(intake->channel);
    uv_close((uv_handle_t *)&intake->alive, NULL);
    uv_close((uv_handle_t *)&intake->retry, NULL);
    uv_close((uv_handle_t *)&intake->drain, NULL);
    uv_timer_start(&intake->stop, on_stop_timeout, STOP_MS, 0);
    uv_unref((uv_handle_t *)&intake->stop);
}

/* ----------------------------------------------------------------- opening, closing ------ */

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

static int
open_settings(struct intake *intake, const char *config_file)
{
    char reason[CONF_REASON];
    struct conf *conf;
    int rc = conf_load(config_file, &conf, reason, sizeof reason);
    if (rc) {
        log_error("intake.config", LOG_STR("error", reason));
        return rc;
    }
    log_set_level(conf->log_level);
    struct error error;
    rc = settings_open(conf, &intake->settings, &error);
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
    return intake_apply_inboxes(intake, intake->conf);
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

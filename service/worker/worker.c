/*
 * worker.c - the role that computes: jobs come in over fd 3, files go out to the outbox, and what
 * came of it goes back over fd 3.
 *
 * One libuv loop in the main thread owns the channel; lanes.c owns the threads. The pipe is the
 * worker's life: when it ends every job is stopped and nothing of it stays, for the daemon (or the
 * one after it) will run it again.
 */
#include "service/common/messages.h"
#include "service/common/role.h"

#include "config/config.h"
#include "service/common/channel.h"
#include "service/common/crash_point.h"
#include "service/common/log.h"
#include "service/common/parallel.h"
#include "service/worker/lanes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALIVE_MS         5000
#define FEATURES_A_FRAME 512 /* some 100 KiB: the daemon does other things in between */

struct worker {
    uv_loop_t loop;
    uv_timer_t alive;
    uv_async_t news; /* the lanes have something to tell */
    struct channel *channel;
    struct lanes *lanes;
    bool draining;
    bool lost;   /* the device has failed, and the daemon was told */
    bool failed; /* the daemon broke the rules, or its pipe did */
};

/* ------------------------------------------------------------------------------- telling ---- */

/* A frame that cannot be sent leaves the daemon waiting for ever: rather die and be restarted. */
static void
send_frame(struct worker *worker, struct proto_writer *writer)
{
    int error = channel_send(worker->channel, writer);
    if (error == 0)
        return;
    log_error("worker.send", LOG_STR("error", strerror(-error)));
    worker->failed = true;
    uv_stop(&worker->loop);
}

static void
tell_progress(struct worker *worker, const struct lanes_event *event)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_PROGRESS);
    proto_put_i64(&writer, event->job);
    proto_put_str(&writer, event->stage);
    proto_put_f64(&writer, event->fraction);
    send_frame(worker, &writer);
}

static void
put_results(struct proto_writer *writer, const struct pipeline_report *report)
{
    proto_put_i64(writer, report->result_count);
    for (int32_t i = 0; i < report->result_count; i++) {
        const struct pipeline_result *result = &report->results[i];
        proto_put_str(writer, result->kind);
        proto_put_str(writer, result->file);
        proto_put_str(writer, result->sop_class_uid);
        proto_put_str(writer, result->sop_instance_uid);
        proto_put_str(writer, result->series_uid);
        proto_put_i64(writer, result->size);
        proto_put_i64(writer, result->frames);
    }
}

static void
put_feature(struct proto_writer *writer, const struct feature *feature)
{
    proto_put_i64(writer, feature->segment);
    proto_put_str(writer, feature->label);
    proto_put_str(writer, feature->family);
    proto_put_str(writer, feature->name);
    proto_put_str(writer, feature->meaning);
    proto_put_str(writer, feature->ibsi);
    proto_put_f64(writer, feature->value);
    proto_put_str(writer, feature->absence);
    proto_put_str(writer, feature->unit);
    proto_put_str(writer, feature->aggregation);
    proto_put_str(writer, feature->aggregation_ibsi);
    proto_put_str(writer, feature->discretisation);
    proto_put_i64(writer, feature->levels);
    proto_put_f64(writer, feature->bin_width);
    proto_put_i64(writer, feature->distance);
    proto_put_i64(writer, feature->symmetric);
    proto_put_i64(writer, feature->has_range);
    proto_put_f64(writer, feature->range[0]);
    proto_put_f64(writer, feature->range[1]);
    proto_put_str(writer, feature->directions);
}

static void
tell_features(struct worker *worker, int64_t job, const struct feature *features, size_t count)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_FEATURES);
    proto_put_i64(&writer, job);
    proto_put_i64(&writer, (int64_t)count);
    for (size_t i = 0; i < count; i++)
        put_feature(&writer, &features[i]);
    send_frame(worker, &writer);
}

static void
tell_histogram(struct worker *worker, int64_t job, const struct feature_histogram *histogram)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_HISTOGRAM);
    proto_put_i64(&writer, job);
    proto_put_i64(&writer, histogram->segment);
    proto_put_str(&writer, histogram->label);
    proto_put_str(&writer, histogram->pattern);
    proto_put_str(&writer, histogram->settings);
    proto_put_i64(&writer, PROTO_CODES);
    for (int i = 0; i < PROTO_CODES; i++)
        proto_put_i64(&writer, (int64_t)histogram->counts[i]);
    send_frame(worker, &writer);
}

/* Before its DONE, which says that there are no more. */
static void
tell_measurements(struct worker *worker, int64_t job, const struct feature_set *set)
{
    for (size_t at = 0; at < set->count && !worker->failed; at += FEATURES_A_FRAME) {
        size_t left = set->count - at;
        tell_features(worker, job, set->items + at,
                      left < FEATURES_A_FRAME ? left : FEATURES_A_FRAME);
    }
    for (size_t i = 0; i < set->histogram_count && !worker->failed; i++)
        tell_histogram(worker, job, &set->histograms[i]);
    crash_point("worker_after_features_before_done");
}

static void
tell_done(struct worker *worker, const struct lanes_event *event)
{
    const struct pipeline_report *report = &event->report;
    struct proto_writer writer;
    if (report->verdict == PROTO_VERDICT_DONE)
        tell_measurements(worker, event->job, &report->features);
    if (worker->failed)
        return;
    proto_start(&writer, PROTO_DONE);
    proto_put_i64(&writer, event->job);
    proto_put_i64(&writer, report->verdict);
    proto_put_str(&writer, code_name(report->error.code));
    proto_put_str(&writer, report->error.message);
    proto_put_str(&writer, report->error.file[0]);
    proto_put_str(&writer, report->error.file[1]);
    proto_put_i64(&writer, report->empty);
    proto_put_f64(&writer, report->read_seconds);
    proto_put_f64(&writer, report->compute_seconds);
    proto_put_f64(&writer, report->write_seconds);
    proto_put_f64(&writer, report->verify_seconds);
    proto_put_f64(&writer, report->total_seconds);
    proto_put_i64(&writer, report->voxels);
    proto_put_i64(&writer, report->segmented_voxels);
    proto_put_i64(&writer, report->peak_bytes);
    proto_put_str(&writer, report->backend);
    proto_put_str(&writer, report->note);
    put_results(&writer, report);
    send_frame(worker, &writer);
    log_debug("worker.done", LOG_INT("job", event->job),
              LOG_STR("verdict", pipeline_verdict_name(report->verdict)),
              LOG_STR("code", code_name(report->error.code)),
              LOG_NUM("seconds", report->total_seconds));
}

/* Before the job that found out is told of: otherwise its lane would be given another. */
static void
tell_loss(struct worker *worker)
{
    struct proto_writer writer;
    if (worker->lost || !lanes_lost(worker->lanes))
        return;
    worker->lost = worker->draining = true;
    log_error("worker.device_lost", LOG_STR("device", lanes_description(worker->lanes)));
    proto_start(&writer, PROTO_DEVICE_LOST);
    proto_put_str(&writer, lanes_description(worker->lanes));
    send_frame(worker, &writer);
}

static void
on_news(uv_async_t *news)
{
    struct worker *worker = news->data;
    struct lanes_event event;
    while (!worker->failed && lanes_next_event(worker->lanes, &event)) {
        tell_loss(worker);
        switch (event.kind) {
        case LANES_PROGRESS:
            tell_progress(worker, &event);
            break;
        case LANES_DONE:
            tell_done(worker, &event);
            pipeline_report_clear(&event.report);
            break;
        }
    }
    if (worker->draining && lanes_idle(worker->lanes))
        uv_stop(&worker->loop);
}

static void
wake(void *context)
{
    struct worker *worker = context;
    uv_async_send(&worker->news);
}

static void
on_alive(uv_timer_t *timer)
{
    struct worker *worker = timer->data;
    struct proto_writer writer;
    proto_start(&writer, PROTO_ALIVE);
    send_frame(worker, &writer);
}

/* ------------------------------------------------------------------------------- hearing ---- */

static void
break_off(struct worker *worker, const char *why)
{
    log_error("worker.protocol", LOG_STR("why", why));
    worker->failed = true;
    uv_stop(&worker->loop);
}

static void
on_run(struct worker *worker, struct proto_reader *reader)
{
    int64_t job = proto_get_i64(reader);
    const char *file = proto_get_str(reader);
    if (proto_end(reader) != 0)
        break_off(worker, "a RUN that is none");
    else if (lanes_run(worker->lanes, job, file) != 0)
        break_off(worker, "no memory for a job");
    else if (worker->draining)
        lanes_give_back(worker->lanes);
}

static void
on_stop_job(struct worker *worker, struct proto_reader *reader)
{
    int64_t job = proto_get_i64(reader);
    if (proto_end(reader) != 0)
        break_off(worker, "a STOP_JOB that is none");
    else
        lanes_stop(worker->lanes, job);
}

/* What a job computes with is part of it, and the daemon restarts workers whose lanes change. */
static void
on_reload(struct worker *worker, struct proto_reader *reader)
{
    const char *file = proto_get_str(reader);
    char reason[CONF_REASON];
    struct conf *conf;
    if (proto_end(reader) != 0) {
        break_off(worker, "a RELOAD that is none");
        return;
    }
    if (conf_load(file, &conf, reason, sizeof reason) != 0) {
        log_warn("worker.reload", LOG_STR("error", reason));
        return;
    }
    log_set_level(conf->log_level);
    conf_free(conf);
}

static void
on_drain(struct worker *worker, struct proto_reader *reader)
{
    if (proto_end(reader) != 0) {
        break_off(worker, "a DRAIN that is none");
        return;
    }
    worker->draining = true;
    lanes_give_back(worker->lanes);
}

static void
on_frame(void *context, struct channel *channel, struct proto_reader *reader)
{
    struct worker *worker = context;
    (void)channel;
    if (reader->type == PROTO_RUN)
        on_run(worker, reader);
    else if (reader->type == PROTO_STOP_JOB)
        on_stop_job(worker, reader);
    else if (reader->type == PROTO_RELOAD)
        on_reload(worker, reader);
    else if (reader->type == PROTO_DRAIN)
        on_drain(worker, reader);
    else
        break_off(worker, message_name(reader->type));
}

static void
on_end(void *context, struct channel *channel, int status)
{
    struct worker *worker = context;
    (void)channel;
    if (status != 0)
        break_off(worker, strerror(-status));
    uv_stop(&worker->loop);
}

/* -------------------------------------------------------------------------------- a life ---- */

/*
 * Computing may take all it can get, but not from the daemon, which has promises to keep; and when
 * memory runs out, a worker is what costs one attempt and nothing else. Neither has to succeed.
 */
static void
step_back(void)
{
    static const char score[] = "500";
    errno = 0;
    if (nice(5) == -1 && errno != 0)
        log_debug("worker.nice", LOG_STR("error", strerror(errno)));
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, score, sizeof score - 1) < 0)
        log_debug("worker.oom_score", LOG_STR("error", strerror(errno)));
    if (fd >= 0)
        close(fd);
}

/* Of each job: the configured number, or this worker's part of the processors. */
static int
threads_of(const struct conf *conf, const struct role_args *args)
{
    int part = parallel_processors() / (args->share > 0 ? args->share : 1);
    if (conf->compute.threads > 0)
        return conf->compute.threads;
    return part > 0 ? part : 1;
}

static int
open_lanes(struct worker *worker, const struct conf *conf, const struct role_args *args)
{
    char reason[KERNELS_REASON];
    const struct lanes_options options = {.device = args->device,
                                          .threads = threads_of(conf, args),
                                          .count = conf->compute.lanes,
                                          .wake = wake,
                                          .context = worker};
    int error = lanes_open(&options, &worker->lanes, reason, sizeof reason);
    if (error)
        log_error("worker.device", LOG_STR("device", args->device), LOG_STR("error", reason));
    else
        log_info("worker.ready", LOG_STR("device", lanes_description(worker->lanes)),
                 LOG_INT("lanes", conf->compute.lanes), LOG_INT("threads", options.threads));
    return error;
}

static void
say_hello(struct worker *worker)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_HELLO);
    proto_put_str(&writer, "worker");
    proto_put_str(&writer, proto_build_id());
    send_frame(worker, &writer);
}

static void
serve(struct worker *worker)
{
    say_hello(worker);
    uv_timer_start(&worker->alive, on_alive, ALIVE_MS, ALIVE_MS);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    /* The lanes first: they wake the loop's handles. Then what is queued goes out. */
    lanes_close(worker->lanes);
    worker->lanes = NULL;
    channel_close(worker->channel);
}

static int
open_and_serve(struct worker *worker, const struct conf *conf, const struct role_args *args)
{
    const struct channel_events events = {.frame = on_frame, .end = on_end, .context = worker};
    int error = open_lanes(worker, conf, args);
    if (error) {
        worker->lost = strcmp(args->device, "cpu") != 0;
        return error;
    }
    error = channel_open(&worker->loop, ROLE_FD, &events, &worker->channel);
    if (error == 0)
        serve(worker);
    lanes_close(worker->lanes);
    return error;
}

static int
run_worker(struct worker *worker, const struct conf *conf, const struct role_args *args)
{
    int error = uv_loop_init(&worker->loop);
    if (error)
        return error;
    uv_timer_init(&worker->loop, &worker->alive);
    worker->alive.data = worker->news.data = worker;
    error = uv_async_init(&worker->loop, &worker->news, on_news);
    if (error == 0) {
        error = open_and_serve(worker, conf, args);
        uv_close((uv_handle_t *)&worker->news, NULL);
    }
    uv_close((uv_handle_t *)&worker->alive, NULL);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    uv_loop_close(&worker->loop);
    return error;
}

int
worker_main(const struct role_args *args)
{
    struct worker worker = {0};
    struct conf *conf;
    char reason[CONF_REASON];
    int error = conf_load(args->config_file, &conf, reason, sizeof reason);
    if (error) {
        log_error("worker.config", LOG_STR("error", reason));
        return EXIT_FAILURE;
    }
    log_set_level(conf->log_level);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an errno, not a death */
    step_back();
    dicom_init();
    error = run_worker(&worker, conf, args);
    conf_free(conf);
    if (error)
        log_error("worker.start", LOG_STR("error", strerror(-error)));
    if (worker.lost && !worker.failed)
        return ROLE_EXIT_DEVICE;
    return error || worker.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

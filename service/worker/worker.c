/*
 * worker.c - the role that computes: jobs arrive over fd 3, files are written to the outbox, and
 * the outcomes are sent back over fd 3.
 *
 * One libuv loop in the main thread owns the channel; slots.c owns the threads. When the pipe ends,
 * every job is stopped and its output removed, because this daemon or the next will run it again.
 */
#include "service/common/role.h"

#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/log.h"
#include "service/common/parallel.h"
#include "service/common/wire/child.h"
#include "service/pipeline/pipeline_report.h"
#include "service/worker/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define REST_SECONDS 30
#define OWN_BYTES    ((double)(512 << 20)) /* of a worker, in addition to its jobs */

struct worker_process {
    struct child child;
    uv_loop_t loop;
    uv_async_t news; /* the slots have events */
    struct slots *slots;
    enum confine_role confined;
    bool draining;
    bool lost; /* the device has failed, and DEVICE_LOST was sent */
};

/* ------------------------------------------------------------------------------- sending ---- */

static bool
worker_take_frame(void *context, struct proto_writer *frame)
{
    struct worker_process *worker = context;
    child_send(&worker->child, frame);
    return !worker->child.failed;
}

/* Sends DEVICE_LOST before the outcome of the failed job: otherwise its slot would get another
 * job. */
static void
send_loss(struct worker_process *worker)
{
    struct proto_writer writer;
    if (worker->lost || !slots_device_lost(worker->slots))
        return;
    worker->lost = worker->draining = true;
    log_error("worker.device_lost", LOG_STR("device", slots_description(worker->slots)));
    const struct message_device_lost message = {.why = slots_description(worker->slots)};
    message_write_device_lost(&writer, &message);
    child_send(&worker->child, &writer);
}

static void
worker_on_news(uv_async_t *news)
{
    struct worker_process *worker = news->data;
    struct slots_event event;
    struct proto_writer writer;
    while (!worker->child.failed && slots_next_event(worker->slots, &event)) {
        send_loss(worker);
        switch (event.kind) {
        case SLOTS_PROGRESS:
            report_write_progress(&writer, event.job, event.stage, event.fraction);
            child_send(&worker->child, &writer);
            break;
        case SLOTS_DONE:
            report_write(event.job, &event.report, worker_take_frame, worker);
            log_debug("worker.done", LOG_INT("job", event.job), LOG_STR("verdict", pipeline_outcome(&event.report)),
                      LOG_STR("code", code_name(event.report.error.code)),
                      LOG_NUM("seconds", event.report.total_seconds));
            pipeline_report_clear(&event.report);
            break;
        case SLOTS_RESERVED:
            message_write_reserved(&writer, &(struct message_reserved){event.token, event.free_bytes, event.enough});
            child_send(&worker->child, &writer);
            break;
        }
    }
    if (worker->draining && slots_idle(worker->slots))
        uv_stop(&worker->loop);
}

static void
worker_wake(void *context)
{
    struct worker_process *worker = context;
    uv_async_send(&worker->news);
}

/* ------------------------------------------------------------------------------ messages ---- */

static void
worker_on_message(void *context, struct proto_reader *reader)
{
    struct worker_process *worker = context;
    struct message_run run;
    struct message_stop_job stop;
    struct message_reserve reserve;
    if (reader->type == PROTO_RUN && message_read_run(reader, &run) == 0) {
        if (slots_run(worker->slots, run.job, run.job_file) != 0)
            child_fail(&worker->child, "no memory for a job");
        else if (worker->draining)
            slots_return_queued(worker->slots);
    } else if (reader->type == PROTO_STOP_JOB && message_read_stop_job(reader, &stop) == 0) {
        slots_stop(worker->slots, stop.job);
    } else if (reader->type == PROTO_RESERVE && message_read_reserve(reader, &reserve) == 0) {
        slots_leave(worker->slots, reserve.token, reserve.bytes);
    } else {
        reader->error = -EBADMSG;
    }
}

static void
worker_on_drain(void *context)
{
    struct worker_process *worker = context;
    worker->draining = true;
    slots_return_queued(worker->slots);
}

/* Has no reload: a job file contains its own settings, and the daemon restarts workers when their
 * slots change. */
static const struct child_role worker_role = {.name = "worker", .message = worker_on_message, .drain = worker_on_drain};

/* ---------------------------------------------------------------------------- the process ---- */

/*
 * Lowers the process's priority, so that the daemon gets processor time first, and makes the worker
 * the first to be killed when memory runs out, since that costs only one attempt. Failures are only
 * logged.
 */
static void
lower_priority(void)
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

/* Returns the memory limit of one job, in bytes. */
static int64_t
memory_of(const struct conf *conf)
{
    const double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double configured = conf->jobs.memory_mib * (1 << 20);
    return (int64_t)(configured > 0 ? configured : machine);
}

/* Returns the bytes that count against RLIMIT_DATA now, or -errno. */
static int64_t
bound_data(void)
{
    long long kib;
    char line[128];
    int64_t data = -ENODATA;
    FILE *status = fopen("/proc/self/status", "re");
    if (!status)
        return -errno;
    while (data < 0 && fgets(line, sizeof line, status))
        if (sscanf(line, "VmData: %lld kB", &kib) == 1)
            data = (int64_t)kib * 1024;
    fclose(status);
    return data;
}

/*
 * Limits the process permanently to the limit of a job per lane, 64 MiB for each of its threads,
 * and its own needs, beyond its current use: memory that is not counted before a job begins
 * (decoded files, written results) cannot exceed it. Must be called after the device is open, since
 * a GPU driver maps memory that it never uses.
 */
static void
bound_lanes(const struct conf *conf, int threads)
{
    const double lanes = conf->compute.lanes;
    const double bytes = lanes * ((double)memory_of(conf) + (64 << 20) * (double)threads) + OWN_BYTES;
    if (!(conf->jobs.memory_mib > 0))
        return;
    const int64_t data = bound_data();
    const rlim_t bound = (rlim_t)(data + (int64_t)bytes);
    int rc = data < 0 ? (int)data : 0;
    if (rc == 0 && setrlimit(RLIMIT_DATA, &(struct rlimit){bound, bound}) < 0)
        rc = -errno;
    if (rc)
        log_warn("worker.memory", LOG_STR("error", strerror(-rc)));
}

static int
open_slots(struct worker_process *worker, const struct conf *conf, const struct role_args *args)
{
    /* A job that runs alone has the configured number of threads, or this worker's share. */
    const int share = parallel_processors() / (args->share > 0 ? args->share : 1);
    const int threads = conf->compute.threads > 0 ? conf->compute.threads : share;
    /* Pinned memory per lane of a GPU; on processors, allocation is cheap. */
    const int64_t limit = memory_of(conf), wanted = (int64_t)(conf->compute.keep_mib * (1 << 20));
    const int64_t keep = wanted < limit ? wanted : limit;
    const bool is_cpu = strcmp(args->device, "cpu") == 0;
    struct error error;
    const struct slots_options options = {.device = args->device,
                                          .threads = threads > 0 ? threads : 1,
                                          .max_bytes = limit,
                                          .count = conf->compute.lanes,
                                          .keep_bytes = is_cpu ? 0 : keep,
                                          .rest_seconds = REST_SECONDS,
                                          .wake = worker_wake,
                                          .context = worker};
    int rc = slots_open(&options, &worker->slots, &error);
    if (rc) {
        log_error("worker.device", LOG_STR("device", args->device), LOG_STR("error", error.message));
        return rc;
    }
    bound_lanes(conf, options.threads);
    log_info("worker.ready", LOG_STR("device", slots_description(worker->slots)), LOG_INT("lanes", conf->compute.lanes),
             LOG_INT("threads", options.threads));
    return 0;
}

static int
open_and_serve(struct worker_process *worker, const struct conf *conf, const struct role_args *args)
{
    int error = open_slots(worker, conf, args);
    if (error) {
        worker->lost = strcmp(args->device, "cpu") != 0;
        return error;
    }
    error = call_filter_install(worker->confined);
    if (error == 0)
        error = child_open(&worker->child, &worker->loop, &worker_role, worker);
    if (error == 0)
        uv_run(&worker->loop, UV_RUN_DEFAULT);
    /* Close the slots first: they wake the loop's handles. Then send the queued frames. */
    slots_close(worker->slots);
    worker->slots = NULL;
    if (error == 0)
        child_close(&worker->child);
    return error;
}

int
worker_main(const struct role_args *args)
{
    struct worker_process worker = {0};
    struct conf *conf;
    struct error error;
    int rc = conf_load(args->config_file, &conf, &error);
    if (rc) {
        log_error("worker.config", LOG_STR("error", error.message));
        return child_start_status(rc);
    }
    log_set_level(conf->log_level);
    lower_priority();
    dicom_init();
    worker.confined = strcmp(args->device, "cpu") == 0 ? CONFINE_WORKER : CONFINE_GPU_WORKER;
    rc = confine_self(worker.confined, conf);
    if (!rc && (rc = uv_loop_init(&worker.loop)) == 0) {
        worker.news.data = &worker;
        rc = uv_async_init(&worker.loop, &worker.news, worker_on_news);
        if (rc == 0) {
            rc = open_and_serve(&worker, conf, args);
            uv_close((uv_handle_t *)&worker.news, NULL);
        }
        uv_run(&worker.loop, UV_RUN_DEFAULT);
        uv_loop_close(&worker.loop);
    }
    conf_free(conf);
    if (rc)
        log_error("worker.start", LOG_STR("error", strerror(-rc)));
    if (worker.lost && !worker.child.failed)
        return ROLE_EXIT_DEVICE;
    return rc ? child_start_status(rc) : child_status(&worker.child);
}

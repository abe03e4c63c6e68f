/*
 * bench_queue.c - measures the instance rows and job state changes per second that the queue makes durable. Also
 * measures the time to find the next of many queued jobs. Prints a JSON line per case.
 *
 *   bench_queue [SECONDS]   seconds per case; 2
 *
 * The database is in a new folder in the current one, which must be on the disk to measure.
 *
 * Rows are written as in the daemon: one transaction per iteration of its loop. It has one change per message: here
 * 64, or 1 as in an idle daemon.
 */
#include "db/queue.h"
#include "tests/tools/seconds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOW_MS  INT64_C(1769825000000)
#define LANES   32
#define SAMPLES 1000000

static struct queue *queue;

static void
check(int rc, const char *what)
{
    if (rc < 0) {
        fprintf(stderr, "bench_queue: %s: %s (%s)\n", what, strerror(-rc), queue ? queue_reason(queue) : "");
        exit(1);
    }
}

/* ------------------------------------------------------------------------------ the changes -- */

/* Adds the next instance; 300 make a series. */
static void
add_instance(int64_t number)
{
    char series[64], sop[64], path[160];
    enum queue_arrival arrival;
    int64_t id;
    snprintf(series, sizeof series, "1.3.6.1.4.1.14519.5.2.1.6279.6001.%lld", (long long)(100000000 + number / 300));
    snprintf(sop, sizeof sop, "1.3.6.1.4.1.14519.5.2.1.6279.6002.%lld", (long long)(number * 7919 % 1000000007));
    snprintf(path, sizeof path, "series/%s/%s.dcm", series, sop);
    struct queue_instance instance = {.sop_instance_uid = sop,
                                      .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
                                      .transfer_syntax_uid = "1.2.840.10008.1.2.1",
                                      .series_uid = series,
                                      .study_uid = "1.2.3",
                                      .modality = "CT",
                                      .body_part = "HEAD",
                                      .series_description = "Head 5 mm",
                                      .path = path,
                                      .source = "inbox:drop",
                                      .size = 525312,
                                      .frames = 1};
    check(queue_add_instance(queue, &instance, NOW_MS, &arrival, &id), "instance");
}

/* Makes the rows of jobs of one pipeline, each with its own series, before the timing. */
static void
make_jobs(int64_t count)
{
    char uid[64];
    struct queue_ids running;
    struct queue_stack stack = {.name = "", .accepted = true, .planes = 30, .spacing_mm = 5};
    check(queue_begin(queue), "begin");
    for (int64_t i = 0; i < count; i++) {
        int64_t series, job;
        add_instance(300 * i);
        snprintf(uid, sizeof uid, "1.3.6.1.4.1.14519.5.2.1.6279.6001.%lld", (long long)(100000000 + i));
        check(queue_find_series(queue, uid, &series), "find");
        check(queue_settle(queue, series, 1, "bench", &stack, 1, NOW_MS), "settle");
        check(queue_add_job(queue,
                            &(struct queue_new_job){.series_id = series,
                                                    .revision = 1,
                                                    .stack = "",
                                                    .pipeline = "pipeline",
                                                    .settings = "name = \"bench\";",
                                                    .priority = 5},
                            NOW_MS, &job, &running),
              "add job");
    }
    check(queue_commit(queue), "commit");
}

/* Changes LANES jobs READY -> RUNNING, then RUNNING -> DONE, and so on. */
static void
change_job(int64_t number)
{
    static const struct queue_figures figures = {.read_seconds = 0.1,
                                                 .compute_seconds = 0.2,
                                                 .write_seconds = 0.1,
                                                 .verify_seconds = 0.1,
                                                 .total_seconds = 0.5,
                                                 .voxels = 7864320,
                                                 .segmented_voxels = 100000,
                                                 .peak_bytes = 200 << 20,
                                                 .backend = "cpu",
                                                 .note = ""};
    static const struct queue_result result = {.kind = "seg",
                                               .path = "outbox/1/seg.dcm",
                                               .sop_class_uid = "1.2.840.10008.5.1.4.1.1.66.4",
                                               .sop_instance_uid = "2.25.1",
                                               .series_uid = "2.25.2",
                                               .size = 100000,
                                               .frames = 30};
    int64_t round = number / (2 * LANES), lane = number % LANES;
    int64_t job = 1 + round * LANES + lane;
    if (number % (2 * LANES) < LANES)
        check(queue_start_job(queue, job, "worker-0", (int32_t)lane, NOW_MS), "start");
    else
        check(queue_finish_job(queue, job, &(struct queue_finish){QUEUE_DONE, &figures, &result, 1, CODE_NONE, ""},
                               NOW_MS),
              "finish");
}

static void
ask_what_is_ready(int64_t number)
{
    struct queue_job *jobs;
    size_t count;
    (void)number;
    check(queue_ready(queue, NOW_MS, 0, LANES, "", &jobs, &count), "ready");
    for (size_t i = 0; i < count; i++)
        queue_job_clear(&jobs[i]);
    free(jobs);
}

/* ------------------------------------------------------------------------------------ a case -- */

static int
compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

struct measure {
    int64_t changes;
    int commits;
    double seconds, median_ms, p99_ms;
};

/* Commits `batch` changes at a time for `seconds`, or until `limit` changes are made. */
static struct measure
run(void (*change)(int64_t), int batch, double seconds, int64_t limit)
{
    static double times[SAMPLES];
    struct measure m = {0};
    double start = seconds_of(CLOCK_MONOTONIC);
    while (m.seconds < seconds && m.commits < SAMPLES && m.changes + batch <= limit) {
        double begun = seconds_of(CLOCK_MONOTONIC);
        check(queue_begin(queue), "begin");
        for (int i = 0; i < batch; i++)
            change(m.changes++);
        check(queue_commit(queue), "commit");
        times[m.commits++] = seconds_of(CLOCK_MONOTONIC) - begun;
        m.seconds = seconds_of(CLOCK_MONOTONIC) - start;
    }
    qsort(times, (size_t)m.commits, sizeof *times, compare);
    m.median_ms = times[m.commits / 2] * 1e3;
    m.p99_ms = times[m.commits * 99 / 100] * 1e3;
    return m;
}

static void
open_fresh(char *folder, size_t size, char *path, size_t path_size)
{
    struct error error = {0};
    snprintf(folder, size, "bench-queue-XXXXXX");
    if (!mkdtemp(folder))
        check(-errno, "mkdtemp");
    snprintf(path, path_size, "%s/noctule.db", folder);
    int rc = queue_open(path, &queue, &error);
    if (rc < 0)
        fprintf(stderr, "%s\n", error.message);
    check(rc, "open");
}

static void
close_and_remove(const char *folder, const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    queue_close(queue);
    queue = NULL;
    for (size_t i = 0; i < 3; i++) {
        char file[96];
        snprintf(file, sizeof file, "%s%s", path, suffixes[i]);
        unlink(file);
    }
    if (rmdir(folder) < 0)
        check(-errno, folder);
}

static void
bench(const char *name, void (*change)(int64_t), void (*make)(int64_t), int64_t jobs, int batch, double seconds)
{
    char folder[32], path[64];
    open_fresh(folder, sizeof folder, path, sizeof path);
    if (make)
        make(jobs);
    struct measure m = run(change, batch, seconds, make ? 2 * jobs : INT64_MAX);
    printf("{\"case\": \"%s\", \"batch\": %d, \"changes\": %lld, \"seconds\": %.3f, "
           "\"per_second\": %.0f, \"commit_median_ms\": %.3f, \"commit_p99_ms\": %.3f}\n",
           name, batch, (long long)m.changes, m.seconds, (double)m.changes / m.seconds, m.median_ms, m.p99_ms);
    fflush(stdout);
    close_and_remove(folder, path);
}

int
main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2.0;
    if (argc > 2 || seconds <= 0) {
        fprintf(stderr, "usage: bench_queue [SECONDS]\n");
        return 2;
    }
    bench("instance rows", add_instance, NULL, 0, 64, seconds);
    bench("instance rows", add_instance, NULL, 0, 1, seconds);
    bench("job state changes", change_job, make_jobs, 64000, 64, seconds);
    bench("job state changes", change_job, make_jobs, 64000, 1, seconds);
    bench("what is ready, of 1000 jobs", ask_what_is_ready, make_jobs, 1000, 1, seconds);
    bench("what is ready, of 100000 jobs", ask_what_is_ready, make_jobs, 100000, 1, seconds);
    return 0;
}

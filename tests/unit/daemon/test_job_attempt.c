/*
 * A worker's reports about a job: valid frames are recorded completely with the job, and invalid
 * ones are rejected.
 */
#include "service/daemon/jobs/executor.h"
#include "service/daemon/slurm/slurm_executor.h"

#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/jobs.h"
#include "service/pipeline/pipeline_report.h"
#include "tests/unit/db/sample.h"

#include <float.h>
#include <math.h>

static struct sample s;
static struct core core;
static struct conf conf;
static struct attempts attempts;
static int64_t job;
static struct job_attempt *attempt;

static void
set_up(void)
{
    static const struct batch_events no_events = {0};
    sample_open(&s);
    job = sample_job(s.queue, "1.2.3");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    core = (struct core){.root = s.folder, .conf = &conf, .queue = s.queue};
    ck_assert_int_eq(uv_loop_init(&core.loop), 0);
    due_init(&core.jobs_due, &core.loop);
    due_init(&core.deliveries_due, &core.loop);
    ck_assert_int_eq(batch_open(&core.loop, s.queue, &no_events, &core.batch), 0);
    ck_assert_int_eq(local_executor_open(&core, &core.local), 0);
    ck_assert_int_eq(slurm_executor_open(&core, &core.slurm), 0);
    core.executors[0] = local_executor_base(core.local);
    core.executors[1] = slurm_executor_base(core.slurm);
    ck_assert_int_eq(jobs_open(&core, core.executors, &core.jobs), 0);
    ck_assert_int_eq(deliveries_open(&core, &core.deliveries), 0);
    attempts = (struct attempts){.core = &core, .type = &job_attempt_type};
    attempt = job_attempt_new(&attempts, job, 1);
    ck_assert_ptr_nonnull(attempt);
}

static void
tear_down(void)
{
    attempts_free(&attempts);
    jobs_close(core.jobs);
    local_executor_close(core.local);
    slurm_executor_close(core.slurm);
    deliveries_close(core.deliveries);
    batch_close(core.batch);
    uv_close((uv_handle_t *)&core.jobs_due.timer, NULL);
    uv_close((uv_handle_t *)&core.deliveries_due.timer, NULL);
    uv_run(&core.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&core.loop), 0);
    sample_close(&s);
}

/* ------------------------------------------------------------------------------- frames ---- */

static const struct feature usual = {
    .segment = 1,
    .label = "Brain",
    .family = "glcm",
    .name = "joint_entropy",
    .meaning = "Joint entropy",
    .ibsi = "TU9B",
    .value = 1.0 / 3,
    .missing_reason = "",
    .unit = "1",
    .settings = "aggregation=3d-merged;aggregation_ibsi_code=IAZD;discretisation=fixed-bin-number;"
                "distance=1;levels=32;symmetric=true",
};

static void
add_feature(struct proto_writer *writer, const struct feature *feature, int64_t segment)
{
    const struct message_feature row = {
        .segment = segment,
        .label = feature->label,
        .family = feature->family,
        .name = feature->name,
        .meaning = feature->meaning,
        .ibsi = feature->ibsi,
        .value = feature->value,
        .missing_reason = feature->missing_reason,
        .unit = feature->unit,
        .settings = feature->settings,
    };
    message_add_feature(writer, &row);
}

/* As the executor does: the message is read before the attempt gets it. */
static int
read_frame(struct proto_reader *reader, enum job_end *end)
{
    union message_any message;
    if (message_read(reader, reader->type, &message))
        return reader->error;
    return reader->type == PROTO_DONE ? job_attempt_on_done(attempt, reader, &message.done, end)
                                      : job_attempt_read_measurements(attempt, reader, &message);
}

static int
read_message(struct proto_writer *writer, enum job_end *end)
{
    struct proto_stream stream = {0};
    struct proto_reader reader;
    ck_assert_int_eq(proto_finish(writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer->bytes, writer->size), 0);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    int error = read_frame(&reader, end);
    memset(stream.bytes, 0xee, stream.size); /* no pointer into the frame may be left */
    proto_stream_release(&stream);
    proto_release(writer);
    return error;
}

static int
read_features(const struct feature *features, int64_t count, int64_t message)
{
    struct proto_writer writer;
    message_write_features(&writer, &(struct message_features){.job = job});
    for (int64_t i = 0; i < count; i++)
        add_feature(&writer, &features[i], features[i].segment);
    memcpy(writer.bytes + writer.count_at, &message, sizeof message);
    return read_message(&writer, NULL);
}

static int
read_histogram(const char *pattern, int64_t codes, int64_t count)
{
    struct proto_writer writer;
    const struct message_histogram histogram = {.job = job, .segment = 1, .label = "Brain", .pattern = pattern};
    message_write_histogram(&writer, &histogram);
    for (int64_t i = 0; i < codes; i++)
        message_add_count(&writer, &(struct message_count){.voxels = count});
    return read_message(&writer, NULL);
}

static const struct message_segment usual_segment = {
    .number = 1,
    .label = "Brain",
    .method = "range",
    .voxels = 8,
    .millilitres = 0.5,
    .mean = 1.0 / 3,
    .minimum = -1,
    .maximum = 2,
    .last_column = 1,
    .last_row = 1,
    .last_slice = 1,
    .x = 0.5,
    .y = 0.5,
    .z = 0.5,
};

static const struct message_breach usual_breach = {.number = 1,
                                                   .label = "Brain",
                                                   .expectation = "volume_ml",
                                                   .found = 0.5,
                                                   .low = 1,
                                                   .high = 2,
                                                   .text = "Brain: volume 0.5 ml, expected 1 to 2"};

static int
read_segments(const struct message_segment *segments, int count)
{
    struct proto_writer writer;
    message_write_segments(&writer, &(struct message_segments){.job = job, .unit = "Bq/ml"});
    for (int i = 0; i < count; i++)
        message_add_segment(&writer, &segments[i]);
    return read_message(&writer, NULL);
}

static int
read_breach(const struct message_breach *breach)
{
    struct proto_writer writer;
    message_write_breaches(&writer, &(struct message_breaches){.job = job});
    message_add_breach(&writer, breach);
    return read_message(&writer, NULL);
}

static enum job_end
read_done(enum proto_verdict verdict)
{
    static const struct message_result result = {.kind = "seg",
                                                 .file = "seg.dcm",
                                                 .sop_class = "1.2",
                                                 .sop_instance = "2.25.7",
                                                 .series = "2.25.8",
                                                 .size = 1,
                                                 .frames = 1};
    struct proto_writer writer;
    enum job_end end = JOB_END_CANCELLED;
    const struct message_done done = {.job = job,
                                      .verdict = verdict,
                                      .read_seconds = 1,
                                      .compute_seconds = 1,
                                      .write_seconds = 1,
                                      .verify_seconds = 1,
                                      .total_seconds = 1,
                                      .voxels = 1,
                                      .segmented = 1,
                                      .peak_bytes = 1,
                                      .backend = "cpu"};
    message_write_done(&writer, &done);
    if (verdict == PROTO_VERDICT_DONE)
        message_add_result(&writer, &result);
    ck_assert_int_eq(read_message(&writer, &end), 0);
    return end;
}

/* Ends the job with the reported outcome and commits. */
static void
record(enum job_end end)
{
    job_attempt_end(attempt, end, true);
    attempts_write(&attempts);
    ck_assert_int_eq(batch_commit(core.batch), 0);
    ck_assert_uint_eq(attempts_count(&attempts), 0);
    sample_assert_sound(s.queue);
}

/* -------------------------------------------------------------------------------- tests ---- */

START_TEST(measurements_are_recorded_with_the_end)
{
    struct feature features[] = {usual, usual, usual};
    features[1].settings = "distance=2";
    features[2].segment = 0;
    ck_assert_int_eq(read_features(features, 2, 2), 0);
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS, 3), 0);
    ck_assert_int_eq(read_features(features + 2, 1, 1), 0);
    assert_answer(&s, "SELECT count(*) FROM v_features", "0");
    record(read_done(PROTO_VERDICT_DONE));
    assert_answer(&s,
                  "SELECT group_concat(place || ' ' || segment || ' ' || distance || ' ' || "
                  "(value = 1.0 / 3), ', ') FROM (SELECT * FROM v_features ORDER BY place)",
                  "1 1 1 1, 2 1 2 1, 3 0 1 1");
    assert_answer(&s, "SELECT sum(c.value) FROM v_pattern_histograms h, json_each(h.counts) c", "768");
    assert_answer(&s, "SELECT state || features FROM v_jobs", "DONE3");
}

END_TEST

START_TEST(segments_and_breaches_are_recorded_with_the_end)
{
    const struct message_segment segments[] = {usual_segment,
                                               {.number = 2,
                                                .label = "Tumour",
                                                .method = "object",
                                                .mean = NAN,
                                                .minimum = NAN,
                                                .maximum = NAN,
                                                .last_column = -1,
                                                .last_row = -1,
                                                .last_slice = -1,
                                                .x = NAN,
                                                .y = NAN,
                                                .z = NAN}};
    ck_assert_int_eq(read_segments(segments, 2), 0);
    ck_assert_int_eq(read_breach(&usual_breach), 0);
    assert_answer(&s, "SELECT count(*) FROM v_segments", "0");
    record(read_done(PROTO_VERDICT_DONE));
    assert_answer(&s,
                  "SELECT group_concat(segment || ' ' || label || ' ' || voxels || ' ' || volume_ml "
                  "|| ' ' || coalesce(mean = 1.0 / 3, 'none') || ' ' || coalesce(last_slice, '') || "
                  "' ' || unit, ', ') FROM (SELECT * FROM v_segments ORDER BY segment)",
                  "1 Brain 8 0.5 1 1 Bq/ml, 2 Tumour 0 0.0 none  Bq/ml");
    assert_answer(&s, "SELECT expectation || ' ' || low || ' ' || high FROM v_breaches", "volume_ml 1.0 2.0");
}

END_TEST

/* A working worker cannot send these. */
START_TEST(impossible_segments_are_rejected)
{
    struct message_segment bad[] = {usual_segment, usual_segment, usual_segment, usual_segment,
                                    usual_segment, usual_segment, usual_segment};
    bad[0].number = 0;
    bad[1].voxels = -1;
    bad[2].millilitres = -1;
    bad[3].mean = INFINITY;
    bad[4].voxels = 0;
    bad[5].last_row = -1;
    bad[6].first_slice = -1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(read_segments(&bad[i], 1), -EBADMSG);
        job_attempt_clear_report(attempt);
    }
    ck_assert_int_eq(read_segments(&usual_segment, 1), 0);
    /* all segments are in one frame */
    ck_assert_int_eq(read_segments(&usual_segment, 1), -EBADMSG);
    struct message_breach breach = usual_breach;
    breach.expectation = "";
    ck_assert_int_eq(read_breach(&breach), -EBADMSG);
}

END_TEST

/* An attempt that fails has no measurements. */
START_TEST(measurements_of_a_failed_attempt_are_dropped)
{
    ck_assert_int_eq(read_features(&usual, 1, 1), 0);
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS, 3), 0);
    ck_assert_int_eq(read_segments(&usual_segment, 1), 0);
    ck_assert_int_eq(read_breach(&usual_breach), 0);
    record(read_done(PROTO_VERDICT_REJECT));
    assert_answer(&s, "SELECT state FROM v_jobs", "FAILED");
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM v_features) || "
                  "(SELECT count(*) FROM v_pattern_histograms) || "
                  "(SELECT count(*) FROM v_segments) || (SELECT count(*) FROM v_breaches)",
                  "0000");
}

END_TEST

/* Rows that a table rejects must end the job with a message instead of being retried forever. */
START_TEST(the_same_feature_twice_fails_the_job)
{
    struct feature features[] = {usual, usual};
    ck_assert_int_eq(read_features(features, 2, 2), 0);
    record(read_done(PROTO_VERDICT_DONE));
    assert_answer(&s, "SELECT state || ' ' || code FROM v_jobs", "FAILED RECORD_FAILED");
    assert_answer(&s, "SELECT message FROM v_jobs",
                  "the report of the worker cannot be recorded: the feature joint_entropy of segment 1 "
                  "is there twice with the same settings");
    assert_answer(&s, "SELECT count(*) FROM v_results", "0");
}

END_TEST

START_TEST(the_same_histogram_twice_fails_the_job)
{
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS, 3), 0);
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS, 3), 0);
    record(read_done(PROTO_VERDICT_DONE));
    assert_answer(&s, "SELECT state || ' ' || code FROM v_jobs", "FAILED RECORD_FAILED");
    assert_answer(&s, "SELECT message FROM v_jobs",
                  "the report of the worker cannot be recorded: the histogram lbp of segment 1 is "
                  "there twice with the same settings");
}

END_TEST

static void
assert_broken(const struct feature *feature)
{
    ck_assert_int_eq(read_features(feature, 1, 1), -EBADMSG);
}

START_TEST(impossible_features_are_rejected)
{
    static const double numbers[] = {NAN, INFINITY, -INFINITY};
    static const char *const settings[] = {
        "bin_width=nan",
        "bin_width=inf",
        "bin_width=-inf",
        "bin_width=-1",
        "bin_width=",
        "bin_width=1x",
        "range_low=nan",
        "range_high=inf",
        "range_high=0;range_low=1",
        "range_low=-inf",
        "levels=-1",
        "levels=4294967296",
        "distance=-1",
        "distance=1.5",
        "symmetric=1",
        "levels=1;levels=2",
        "levels=1;distance=1",
        "levels",
        "levels=1;",
        ";levels=1",
        "=1",
        "levels=1;;unit=2",
        "LEVELS=1",
        "levels=1=2",
    };
    struct feature feature;
    for (int i = 0; i < 3; i++)
        assert_broken((feature = usual, feature.value = numbers[i], &feature));
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        assert_broken((feature = usual, feature.settings = settings[i], &feature));
    assert_broken((feature = usual, feature.segment = -1, &feature));
    assert_broken((feature = usual, feature.name = "", &feature));
    feature = usual;
    feature.value = -DBL_MAX;
    ck_assert_int_eq(read_features(&feature, 1, 1), 0);
}

END_TEST

START_TEST(a_segment_number_beyond_32_bits_is_rejected)
{
    struct proto_writer writer;
    message_write_features(&writer, &(struct message_features){.job = job});
    add_feature(&writer, &usual, INT64_C(1) << 32);
    ck_assert_int_eq(read_message(&writer, NULL), -EBADMSG);
}

END_TEST

START_TEST(missing_counts_are_rejected)
{
    ck_assert_int_eq(read_features(&usual, 1, -1), -EBADMSG);
    ck_assert_int_eq(read_features(&usual, 1, 0), -EBADMSG);
    ck_assert_int_eq(read_features(&usual, 1, 2), -EBADMSG);
    ck_assert_int_eq(read_features(&usual, 1, PROTO_MAX_FEATURES), -EBADMSG);
    ck_assert_int_eq(read_features(&usual, 1, INT64_MAX), -EBADMSG);
    ck_assert_int_eq(read_features(&usual, 1, INT64_MIN), -EBADMSG);
}

END_TEST

START_TEST(impossible_histograms_are_rejected)
{
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS - 1, 1), -EBADMSG);
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS + 1, 1), -EBADMSG);
    ck_assert_int_eq(read_histogram("lbp", 0, 1), -EBADMSG);
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS, -1), -EBADMSG);
    ck_assert_int_eq(read_histogram("", PROTO_HISTOGRAM_ROWS, 1), -EBADMSG);
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS, INT64_MAX), 0);
}

END_TEST

/* More features than any pipeline computes: the worker is broken and must not fill the memory. */
START_TEST(too_many_features_are_rejected)
{
    enum { A_FRAME = 8192 };
    struct feature *features = calloc(A_FRAME, sizeof *features);
    for (int i = 0; i < A_FRAME; i++)
        features[i] = usual;
    for (int message = 0; message < PROTO_MAX_FEATURES; message += A_FRAME)
        ck_assert_int_eq(read_features(features, A_FRAME, A_FRAME), 0);
    ck_assert_int_eq(read_features(features, 1, 1), -EBADMSG);
    free(features);
}

END_TEST

START_TEST(too_many_histograms_are_rejected)
{
    for (int message = 0; message < PROTO_MAX_HISTOGRAMS; message++)
        ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS, 1), 0);
    ck_assert_int_eq(read_histogram("lbp", PROTO_HISTOGRAM_ROWS, 1), -EBADMSG);
}

END_TEST

START_TEST(too_much_text_is_rejected)
{
    struct feature feature = usual;
    size_t size = PROTO_MAX_FRAME - 1024;
    char *label = calloc(1, size + 1);
    memset(label, 'x', size);
    feature.label = label;
    for (size_t message = 0; message + PROTO_MAX_FRAME <= PROTO_MAX_MEASUREMENTS; message += PROTO_MAX_FRAME)
        ck_assert_int_eq(read_features(&feature, 1, 1), 0);
    ck_assert_int_eq(read_features(&feature, 1, 1), -EBADMSG);
    free(label);
}

END_TEST

/* A failed commit loses no data: the rows are written again. */
START_TEST(a_lost_end_is_written_again)
{
    job_attempt_end(attempt, read_done(PROTO_VERDICT_DONE), true);
    attempts_write(&attempts);
    batch_abort(core.batch, -ENOSPC);
    ck_assert_uint_eq(attempts_count(&attempts), 1);
    assert_answer(&s, "SELECT state FROM v_jobs", "RUNNING");
    attempts_write(&attempts);
    ck_assert_int_eq(batch_commit(core.batch), 0);
    ck_assert_uint_eq(attempts_count(&attempts), 0);
    assert_answer(&s, "SELECT state FROM v_jobs", "DONE");
}

END_TEST

/* The row's state stays: the job was cancelled before its end was recorded. */
START_TEST(a_late_end_has_no_effect)
{
    bool was_running;
    enum job_end end = read_done(PROTO_VERDICT_DONE);
    ck_assert_int_eq(queue_cancel_job(s.queue, job, SAMPLE_NOW, &was_running), 0);
    ck_assert(was_running);
    record(end);
    assert_answer(&s, "SELECT state FROM v_jobs", "CANCELLED");
    assert_answer(&s, "SELECT count(*) FROM v_results", "0");
}

END_TEST

/* A worker reports a job that it was not sent, or reports an end twice. */
START_TEST(frames_of_an_unknown_job_are_rejected)
{
    static const enum proto_type types[] = {PROTO_PROGRESS, PROTO_FEATURES, PROTO_HISTOGRAM,
                                            PROTO_SEGMENTS, PROTO_BREACHES, PROTO_DONE};

    conf.compute.lanes = 2;
    local_executor_worker_ready(core.local, 0);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct proto_writer writer;
        struct proto_stream stream = {0};
        struct proto_reader reader;
        const int64_t fields[48] = {job};
        message_write(&writer, types[i], fields);
        ck_assert_int_eq(proto_finish(&writer), 0);
        ck_assert_int_eq(proto_feed(&stream, writer.bytes, writer.size), 0);
        ck_assert_int_eq(proto_next(&stream, &reader), 1);
        local_executor_frame(core.local, 0, &reader);
        ck_assert_int_eq(reader.error, -EBADMSG);
        proto_stream_release(&stream);
        proto_release(&writer);
    }
    assert_answer(&s, "SELECT state FROM v_jobs", "RUNNING");
}

END_TEST

/* ------------------------------------------------------------------------------- stages ---- */

/* Runs in worker 0, as far as the executor knows. */
static struct job_attempt *
running_attempt(void)
{
    struct job_attempt *running = job_attempt_new(core.executors[0]->attempts, job, 1);
    ck_assert_ptr_nonnull(running);
    running->executor = core.executors[0];
    running->started = true;
    running->deadline_at = UINT64_MAX;
    return running;
}

static int
tell_stage(const char *stage)
{
    struct proto_writer writer;
    struct proto_stream stream = {0};
    struct proto_reader reader;
    report_write_progress(&writer, job, stage, 0.5);
    ck_assert_int_eq(proto_finish(&writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer.bytes, writer.size), 0);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    local_executor_frame(core.local, 0, &reader);
    const int rc = proto_end(&reader);
    proto_stream_release(&stream);
    proto_release(&writer);
    return rc;
}

static void
tick(void)
{
    jobs_tick(core.jobs);
    ck_assert_int_eq(batch_commit(core.batch), 0);
}

#define STAGE_OF_JOB "SELECT stage || ' ' || (stage_since IS NOT NULL) FROM v_jobs"

START_TEST(stages_are_stored_with_the_tick)
{
    struct job_attempt *running = running_attempt();
    assert_answer(&s, STAGE_OF_JOB, " 0");
    for (int i = 0; pipeline_stages[i]; i++) {
        char expected[64];
        ck_assert_int_eq(tell_stage(pipeline_stages[i]), 0);
        ck_assert_int_eq(batch_commit(core.batch), 0);
        snprintf(expected, sizeof expected, "%s 1", pipeline_stages[i]);
        tick();
        assert_answer(&s, STAGE_OF_JOB, expected);
    }
    /* The time is that of the report, not of the row; a repeated report changes no time. */
    running->stage_ms = SAMPLE_NOW + 5000;
    running->stage_noted = false;
    tick();
    ck_assert_int_eq(tell_stage("verify"), 0);
    tick();
    assert_answer(&s, "SELECT stage_since FROM v_jobs", "2026-01-31T02:03:25.000Z");

    /* The stage belongs to the attempt: the next one begins without. */
    ck_assert_int_eq(queue_return_job(s.queue, job, "", SAMPLE_NOW + 6000), 0);
    assert_answer(&s, STAGE_OF_JOB, " 0");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 7000), 0);
    assert_answer(&s, STAGE_OF_JOB, " 0");
}

END_TEST

START_TEST(a_lost_stage_is_stored_again)
{
    running_attempt();
    ck_assert_int_eq(tell_stage("pixels"), 0);
    jobs_tick(core.jobs);
    batch_abort(core.batch, -ENOSPC);
    assert_answer(&s, STAGE_OF_JOB, " 0");
    tick();
    assert_answer(&s, STAGE_OF_JOB, "pixels 1");
}

END_TEST

START_TEST(impossible_stages_are_rejected)
{
    running_attempt();
    ck_assert_int_eq(tell_stage(""), -EBADMSG);
    ck_assert_int_eq(tell_stage("fifteen-letters"), 0);
    ck_assert_int_eq(tell_stage("sixteen--letters"), -EBADMSG);
}

END_TEST

/* ---- as written by worker/report.c ---- */

static enum job_end
read_report(const struct pipeline_report *report)
{
    struct proto_writer writer;
    enum job_end end = JOB_END_CANCELLED;
    report_write_done(&writer, job, report);
    ck_assert_int_eq(read_message(&writer, &end), 0);
    return end;
}

START_TEST(the_report_of_a_good_job_is_accepted)
{
    static struct pipeline_result results[] = {{.kind = "seg", .file = "seg.dcm", .sop_instance_uid = "2.25.7"}};
    const struct pipeline_report report = {
        .verdict = PROTO_VERDICT_DONE, .results = results, .result_count = 1, .backend = "cpu"};
    struct feature features[] = {usual, usual};
    features[1].segment = 0;
    features[1].value = 0;
    features[1].missing_reason = "EMPTY_REGION";
    static const struct feature_histogram histogram = {.label = "Brain", .pattern = "lbp"};
    struct proto_writer writer;
    report_write_features(&writer, job, features, 2);
    ck_assert_int_eq(read_message(&writer, NULL), 0);
    report_write_histogram(&writer, job, &histogram);
    ck_assert_int_eq(read_message(&writer, NULL), 0);
    ck_assert_int_eq(read_report(&report), JOB_END_DONE);
    record(JOB_END_DONE);
    assert_answer(&s, "SELECT count(*) FROM v_features", "2");
}

END_TEST

START_TEST(the_report_of_an_empty_job_is_accepted)
{
    const struct pipeline_report report = {.verdict = PROTO_VERDICT_DONE, .empty = true, .error = {.code = CODE_EMPTY}};
    ck_assert_int_eq(read_report(&report), JOB_END_EMPTY);
}

END_TEST

/* The results are stored and not delivered. */
START_TEST(the_report_of_an_unexpected_result_is_accepted)
{
    static struct pipeline_result results[] = {{.kind = "seg", .file = "seg.dcm", .sop_instance_uid = "2.25.7"}};
    const struct pipeline_report report = {.verdict = PROTO_VERDICT_DONE,
                                           .review = true,
                                           .results = results,
                                           .result_count = 1,
                                           .error = {.code = CODE_EXPECTATION_BROKEN, .message = "Brain: 31 ml"}};
    ck_assert_int_eq(read_report(&report), JOB_END_REVIEW);
    record(JOB_END_REVIEW);
    assert_answer(&s, "SELECT state || ' ' || code || ' ' || message || ' ' || result_path FROM v_jobs",
                  "REVIEW EXPECTATION_BROKEN Brain: 31 ml outbox/1/seg.dcm");
    assert_answer(&s, "SELECT count(*) FROM v_deliveries", "0");
}

END_TEST

/* Corrected masks as expected are under review all the same. */
START_TEST(the_report_of_corrected_masks_is_accepted)
{
    const struct pipeline_report report = {.verdict = PROTO_VERDICT_DONE,
                                           .review = true,
                                           .empty = true,
                                           .error = {.code = CODE_CORRECTED, .message = "a person corrected Brain"}};
    ck_assert_int_eq(read_report(&report), JOB_END_REVIEW);
    record(JOB_END_REVIEW);
    assert_answer(&s, "SELECT state || ' ' || code FROM v_jobs", "REVIEW CORRECTED");
}

END_TEST

START_TEST(a_review_without_a_reason_is_rejected)
{
    struct proto_writer writer;
    enum job_end end = JOB_END_CANCELLED;
    message_write_done(&writer,
                       &(struct message_done){.job = job, .verdict = PROTO_VERDICT_DONE, .review = 1, .empty = 1});
    ck_assert_int_eq(read_message(&writer, &end), -EBADMSG);
}

END_TEST

START_TEST(the_report_of_a_rejected_job_is_accepted)
{
    const struct pipeline_report report = {
        .verdict = PROTO_VERDICT_REJECT,
        .error = {.code = CODE_MISSING_SLICE, .message = "One is missing.", .file = {"/a", "/b"}}};
    ck_assert_int_eq(read_report(&report), JOB_END_REJECTED);
    record(JOB_END_REJECTED);
    assert_answer(&s, "SELECT code FROM v_jobs", "MISSING_SLICE");
}

END_TEST

SAMPLE_MAIN("service_job_attempt", set_up, tear_down, measurements_are_recorded_with_the_end,
            segments_and_breaches_are_recorded_with_the_end, impossible_segments_are_rejected,
            measurements_of_a_failed_attempt_are_dropped, the_same_feature_twice_fails_the_job,
            the_same_histogram_twice_fails_the_job, a_lost_end_is_written_again, a_late_end_has_no_effect,
            impossible_features_are_rejected, a_segment_number_beyond_32_bits_is_rejected, missing_counts_are_rejected,
            impossible_histograms_are_rejected, too_many_features_are_rejected, too_many_histograms_are_rejected,
            too_much_text_is_rejected, frames_of_an_unknown_job_are_rejected, stages_are_stored_with_the_tick,
            a_lost_stage_is_stored_again, impossible_stages_are_rejected, the_report_of_corrected_masks_is_accepted,
            the_report_of_an_unexpected_result_is_accepted, a_review_without_a_reason_is_rejected,
            the_report_of_a_good_job_is_accepted, the_report_of_an_empty_job_is_accepted,
            the_report_of_a_rejected_job_is_accepted)

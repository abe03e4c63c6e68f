/*
 * Runs of programs in the daemon: planned for jobs, started in order, recorded with each of their ends, and on GPUs. The
 * pool of child processes is a fake: this file defines the functions of child_pool.h.
 */
#include "service/daemon/programs/programs.h"

#include "db/program_rows.h"
#include "service/common/clock.h"
#include "service/common/program/program_order.h"
#include "service/daemon/jobs/workers.h"
#include "service/daemon/programs/program_plan.h"
#include "tests/unit/db/sample.h"

#define GPU_A "GPU-aaaaaaaa-0000-4000-8000-000000000000"
#define GPU_B "GPU-bbbbbbbb-0000-4000-8000-000000000000"

/* -------------------------------------------------------------------------- the fake pool ---- */

enum { SLOTS = 16, FRAMES = 64 };

struct fake_slot {
    char role[16];
    bool is_ready;
    int fills, empties, reloads, kills;
    union message_any last[128]; /* by type */
    int sent[128];
};

static struct fake_slot fake[SLOTS];
static int fake_count;

int
pool_reserve(struct pool *pool, const char *role, int number)
{
    (void)pool;
    (void)number;
    snprintf(fake[fake_count].role, sizeof fake[0].role, "%s", role);
    return fake_count++;
}

void
pool_fill(struct pool *pool, int slot, const struct pool_device *device)
{
    (void)pool;
    (void)device;
    fake[slot].fills++;
}

void
pool_empty(struct pool *pool, int slot)
{
    (void)pool;
    fake[slot].empties++;
}

void
pool_reload(struct pool *pool, int slot)
{
    (void)pool;
    fake[slot].reloads++;
}

void
pool_kill(struct pool *pool, int slot, const char *why)
{
    (void)pool;
    (void)why;
    fake[slot].kills++;
}

bool
pool_ready(const struct pool *pool, int slot)
{
    (void)pool;
    return fake[slot].is_ready;
}

/* Keeps the last message of each type. */
int
pool_send(struct pool *pool, int slot, struct proto_writer *writer)
{
    static struct proto_stream streams[SLOTS][128]; /* hold the strings */
    struct proto_stream *stream = &streams[slot][writer->type];
    struct proto_reader reader;
    (void)pool;
    proto_stream_release(stream);
    *stream = (struct proto_stream){0};
    ck_assert_int_eq(proto_finish(writer), 0);
    ck_assert_int_eq(proto_feed(stream, writer->bytes, writer->size), 0);
    ck_assert_int_eq(proto_next(stream, &reader), 1);
    ck_assert_int_eq(message_read(&reader, reader.type, &fake[slot].last[reader.type]), 0);
    fake[slot].sent[reader.type]++;
    proto_release(writer);
    return fake[slot].is_ready ? 0 : -EPIPE;
}

/* ------------------------------------------------------------------------------- the site ---- */

static struct sample s;
static struct core core;
static int64_t series;

#define COMMAND "command = [ \"/bin/net\", \"{in}\", \"{out}\" ]; max_attempts = 2;"
#define SEGMENT(label, value)                                                                                          \
    "{ label = \"" label "\"; method = \"program\"; program = \"net\"; value = " value                                 \
    "; type = { code = \"12738006\"; scheme = \"SCT\"; meaning = \"Brain\"; }; }"

static const char settings[] =
    "root = \"/nowhere\"; %s jobs = { retry_seconds = 600.0; max_attempts = 3; }; "
    "programs = ( { name = \"net\"; algorithm = { name = \"net\"; version = \"1\"; }; %s } ); "
    "pipelines = ( { name = \"one\"; segments = ( " SEGMENT("A", "1") ", " SEGMENT(
        "B", "2") " ); }, "
                  "{ name = \"two\"; segments = ( " SEGMENT("A", "3") " ); } %s );";

/* Further options, and further pipelines. */
static const char *more_options = "", *more_pipelines = "";

static void
configure(const char *more)
{
    struct error error = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/noctule.conf", s.folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, settings, more_options, more, more_pipelines);
    fclose(file);
    if (core.conf)
        conf_free(core.conf);
    ck_assert_msg(conf_load(path, &core.conf, &error) == 0, "%s", error.message);
}

/* Twice, since a commit may make work. */
static void
turn(void)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(batch_begin(core.batch), 0);
        programs_before_commit(core.programs);
        ck_assert_int_eq(batch_commit(core.batch), 0);
    }
}

static void
on_failure(struct core *of, const char *why)
{
    (void)of;
    (void)why;
}

static void
set_up_with(const char *more)
{
    static const struct batch_events events = {0};
    char folder[128];
    memset(fake, 0, sizeof fake);
    fake_count = 0;
    sample_open(&s);
    core = (struct core){.root = s.folder, .queue = s.queue, .on_db_failure = on_failure};
    snprintf(folder, sizeof folder, "%s/programs", s.folder);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    configure(more);
    ck_assert_int_eq(uv_loop_init(&core.loop), 0);
    due_init(&core.jobs_due, &core.loop);
    due_init(&core.programs_due, &core.loop);
    due_init(&core.deliveries_due, &core.loop);
    ck_assert_int_eq(batch_open(&core.loop, s.queue, &events, &core.batch), 0);
    ck_assert_int_eq(workers_open(&core, &core.workers), 0);
    ck_assert_int_eq(programs_open(&core, &core.programs), 0);
    series = sample_series(s.queue, "1.2.3", 3);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
}

static void
set_up(void)
{
    set_up_with(COMMAND);
    programs_reload(core.programs);
    fake[0].is_ready = true;
}

static void
tear_down(void)
{
    programs_close(core.programs);
    core.programs = NULL;
    workers_close(core.workers);
    batch_close(core.batch);
    uv_close((uv_handle_t *)&core.jobs_due.timer, NULL);
    uv_close((uv_handle_t *)&core.programs_due.timer, NULL);
    uv_close((uv_handle_t *)&core.deliveries_due.timer, NULL);
    uv_run(&core.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&core.loop), 0);
    conf_free(core.conf);
    sample_assert_sound(s.queue);
    sample_close(&s);
}

/* Plans in a batch, as the daemon does. */
static void
plan(int64_t job, bool revive, bool again)
{
    ck_assert_int_eq(batch_begin(core.batch), 0);
    ck_assert_int_eq(again ? programs_again(&core, job, "root") : programs_plan(&core, job, revive), 0);
    ck_assert_int_eq(batch_commit(core.batch), 0);
}

static int64_t
add_job(const char *pipeline)
{
    char *text = conf_pipeline_to_text(conf_find_pipeline(core.conf, pipeline));
    const struct queue_new_job job = {
        .series_id = series, .revision = 1, .stack = "", .pipeline = pipeline, .settings = text};
    struct queue_ids running;
    int64_t id;
    ck_assert_int_eq(queue_add_job(s.queue, &job, clock_unix_ms(), &id, &running), 0);
    free(running.at);
    free(text);
    plan(id, false, false);
    return id;
}

static struct queue_run
run_of(int64_t job)
{
    struct queue_run *runs, run;
    size_t count;
    ck_assert_int_eq(queue_job_runs(s.queue, job, &runs, &count), 0);
    ck_assert_uint_eq(count, 1);
    run = runs[0];
    free(runs);
    return run;
}

static void
assert_run(int64_t job, int64_t id, enum queue_run_state state, int attempts, const char *ran_as)
{
    struct queue_run run = run_of(job);
    ck_assert_int_eq(run.id, id);
    ck_assert_int_eq(run.state, state);
    ck_assert_int_eq(run.attempts, attempts);
    ck_assert_str_eq(run.ran_as, ran_as);
    queue_run_clear(&run);
}

static void
assert_job(int64_t job, enum queue_job_state state, const char *code)
{
    char sql[128];
    ck_assert_int_eq(sample_state(s.queue, job), state);
    snprintf(sql, sizeof sql, "SELECT coalesce(code, '') FROM job WHERE id = %lld", (long long)job);
    ck_assert_str_eq(sample_ask(&s, sql), code);
}

/* --------------------------------------------------------------------------------- frames ---- */

static void
receive(int slot, struct proto_writer *writer, int expected)
{
    struct proto_stream stream = {0};
    struct proto_reader reader;
    const int worker = workers_find(core.workers, slot);
    ck_assert_int_eq(proto_finish(writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer->bytes, writer->size), 0);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    if (worker >= 0)
        programs_reserved(core.programs, (size_t)worker, &reader);
    else
        programs_frame(core.programs, slot, &reader);
    ck_assert_int_eq(proto_end(&reader), expected);
    memset(stream.bytes, 0xee, stream.size); /* no pointer into the frame may be left */
    proto_stream_release(&stream);
    proto_release(writer);
}

static void
receive_checks(const char *identity, enum code code, const char *message)
{
    struct proto_writer writer;
    message_write_programs(&writer, NULL);
    message_add_checked_program(
        &writer, &(struct message_checked_program){
                     .name = "net", .identity = identity, .sandbox = "own", .code = code, .message = message});
    receive(0, &writer, 0);
    turn();
}

static void
receive_ended(int64_t run, enum program_end end, enum code code)
{
    struct proto_writer writer;
    const struct message_program_ended ended = {.run = run,
                                                .end = end,
                                                .code = code,
                                                .message = "for a reason",
                                                .sha256 = end == PROGRAM_END_WELL ? "ab12" : "",
                                                .sandbox = "own",
                                                .size = 100,
                                                .labels = 2,
                                                .labelled = 7,
                                                .peak_bytes = 4096,
                                                .starts = 1};
    message_write_program_ended(&writer, &ended);
    receive(0, &writer, 0);
    turn();
}

static void
assert_started(int64_t run, int count)
{
    turn();
    ck_assert_int_eq(fake[0].sent[PROTO_PROGRAM_RUN], count);
    ck_assert_int_eq(fake[0].last[PROTO_PROGRAM_RUN].program_run.run, run);
}

/* Reads the order of the last PROGRAM_RUN. */
static struct program_order *
last_order(void)
{
    struct program_order *order;
    struct error error = {0};
    const char *path = fake[0].last[PROTO_PROGRAM_RUN].program_run.order;
    ck_assert_msg(program_order_read(path, &order, &error) == 0, "%s: %s", path, error.message);
    return order;
}

/* ---------------------------------------------------------------------------------- tests ---- */

START_TEST(jobs_share_a_run_and_get_its_mask)
{
    receive_checks("id1", CODE_NONE, "");
    const int64_t one = add_job("one"), two = add_job("two");
    assert_run(one, 1, QUEUE_RUN_READY, 0, "");
    assert_run(two, 1, QUEUE_RUN_READY, 0, "");
    assert_job(one, QUEUE_DELAYED, "PROGRAM_WAITING");
    assert_started(1, 1);
    assert_run(one, 1, QUEUE_RUN_RUNNING, 1, "");
    struct program_order *order = last_order();
    ck_assert_int_eq(order->run, 1);
    ck_assert_str_eq(order->identity, "id1");
    ck_assert_uint_eq(order->input_count, 3);
    ck_assert_uint_eq(order->accepted_count, 3);
    ck_assert_str_eq(order->gpu, "");
    program_order_free(order);
    receive_ended(1, PROGRAM_END_WELL, CODE_NONE);
    assert_job(one, QUEUE_READY, "");
    assert_job(two, QUEUE_READY, "");
    struct queue_job job;
    struct job_mask *masks;
    struct conf_pipeline *pipeline;
    size_t count;
    ck_assert_int_eq(queue_get_job(s.queue, one, &job), 0);
    ck_assert_int_eq(conf_pipeline_from_text(job.settings, &pipeline, NULL), 0);
    ck_assert_int_eq(programs_masks(&core, &job, pipeline, &masks, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(masks[0].sha256, "ab12");
    ck_assert_str_eq(masks[0].identity, "id1");
    ck_assert_msg(strstr(masks[0].path, "/programs/1/mask"), "%s", masks[0].path);
    job_masks_free(masks, count);
    conf_pipeline_free(pipeline);
    queue_job_clear(&job);
    ck_assert_uint_eq(programs_unrecorded(core.programs), 0);
}

END_TEST

/* As after another way to READY than those that plan runs. */
START_TEST(a_job_without_its_mask_does_not_start)
{
    char *text = conf_pipeline_to_text(conf_find_pipeline(core.conf, "one"));
    const struct queue_new_job new_job = {
        .series_id = series, .revision = 1, .stack = "", .pipeline = "one", .settings = text};
    struct queue_ids running;
    struct queue_job job;
    struct job_mask *masks;
    size_t count;
    int64_t id;
    receive_checks("id1", CODE_NONE, "");
    ck_assert_int_eq(queue_add_job(s.queue, &new_job, clock_unix_ms(), &id, &running), 0);
    free(running.at);
    ck_assert_int_eq(queue_get_job(s.queue, id, &job), 0);
    ck_assert_int_eq(batch_begin(core.batch), 0);
    ck_assert_int_eq(programs_masks(&core, &job, conf_find_pipeline(core.conf, "one"), &masks, &count), -ENODATA);
    ck_assert_int_eq(batch_commit(core.batch), 0);
    ck_assert_ptr_null(masks);
    assert_job(id, QUEUE_DELAYED, "PROGRAM_WAITING");
    assert_started(1, 1);
    queue_job_clear(&job);
    free(text);
}

END_TEST

START_TEST(a_job_waits_for_an_unknown_identity)
{
    const int64_t job = add_job("one");
    assert_job(job, QUEUE_DELAYED, "PROGRAM_WAITING");
    receive_checks("", CODE_PROGRAM_UNAVAILABLE, "/bin/net does not exist");
    assert_job(job, QUEUE_DELAYED, "PROGRAM_WAITING");
    ck_assert_str_eq(sample_ask(&s, "SELECT message FROM job"), "It waits for program net: /bin/net does not exist");
    ck_assert_str_eq(sample_ask(&s, "SELECT count(*) FROM program_run"), "0");
    receive_checks("id1", CODE_NONE, "");
    assert_started(1, 1);
}

END_TEST

START_TEST(a_new_identity_replaces_a_run)
{
    receive_checks("id1", CODE_NONE, "");
    fake[0].is_ready = false;
    const int64_t job = add_job("one");
    turn();
    assert_run(job, 1, QUEUE_RUN_READY, 0, "");
    receive_checks("id2", CODE_NONE, "");
    assert_run(job, 2, QUEUE_RUN_READY, 0, "");
    ck_assert_str_eq(sample_ask(&s, "SELECT state FROM program_run WHERE id = 1"), "CANCELLED");
    fake[0].is_ready = true;
    due_now(&core.programs_due);
    assert_started(2, 1);
    /* It has changed again, unnoticed until it was started. */
    receive_ended(2, PROGRAM_END_ILL, CODE_PROGRAM_CHANGED);
    ck_assert_str_eq(sample_ask(&s, "SELECT state FROM program_run WHERE id = 2"), "CANCELLED");
    assert_job(job, QUEUE_DELAYED, "PROGRAM_WAITING");
    ck_assert_int_eq(fake[0].sent[PROTO_PROGRAM_RUN], 1);
    receive_checks("id3", CODE_NONE, "");
    assert_started(3, 2);
}

END_TEST

START_TEST(a_removed_program_fails_its_jobs)
{
    receive_checks("id1", CODE_NONE, "");
    fake[0].is_ready = false;
    const int64_t job = add_job("one");
    conf_program_free(core.conf->programs);
    core.conf->programs = NULL;
    core.conf->program_count = 0;
    programs_reload(core.programs);
    turn();
    assert_job(job, QUEUE_FAILED, "PROGRAM_UNKNOWN");
    ck_assert_str_eq(sample_ask(&s, "SELECT count(*) FROM program"), "0");
}

END_TEST

/* The delay of a run that is to be repeated passes. */
static void
pass_delay(void)
{
    ck_assert_int_eq(sqlite3_exec(s.queue->db.handle,
                                  "UPDATE program_run SET not_before_at = '2000-01-01T00:00:00.000Z' "
                                  "WHERE state = 'DELAYED'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    due_now(&core.programs_due);
}

START_TEST(a_transient_failure_is_repeated_and_a_permanent_one_is_not)
{
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one");
    assert_started(1, 1);
    receive_ended(1, PROGRAM_END_ILL, CODE_PROGRAM_CRASHED);
    pass_delay();
    assert_started(1, 2);
    assert_run(job, 1, QUEUE_RUN_RUNNING, 2, "");
    receive_ended(1, PROGRAM_END_ILL, CODE_PROGRAM_CRASHED);
    assert_run(job, 1, QUEUE_RUN_FAILED, 2, "");
    assert_job(job, QUEUE_FAILED, "PROGRAM_CRASHED");
    ck_assert_msg(strstr(sample_ask(&s, "SELECT message FROM job"), "run 1 of net, attempt 2: for a reason"), "%s",
                  sample_ask(&s, "SELECT message FROM job"));
    /* Another job fails at once; a retry repeats the run. */
    const int64_t other = add_job("two");
    assert_job(other, QUEUE_FAILED, "PROGRAM_CRASHED");
    int64_t next;
    ck_assert_int_eq(sample_retry(s.queue, other, false, &next), 0);
    plan(next, true, false);
    assert_started(1, 3);
    receive_ended(1, PROGRAM_END_ILL, CODE_PROGRAM_NO_OUTPUT);
    assert_job(other, QUEUE_FAILED, "PROGRAM_NO_OUTPUT");
}

END_TEST

START_TEST(a_retry_before_the_check_repeats_the_run)
{
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one");
    int64_t next;
    assert_started(1, 1);
    receive_ended(1, PROGRAM_END_ILL, CODE_PROGRAM_FAILED);
    assert_job(job, QUEUE_FAILED, "PROGRAM_FAILED");
    programs_reload(core.programs); /* as after a start of the daemon: no identity is known */
    ck_assert_int_eq(sample_retry(s.queue, job, false, &next), 0);
    plan(next, true, false);
    turn();
    assert_run(next, 1, QUEUE_RUN_READY, 0, "");
    assert_job(next, QUEUE_DELAYED, "PROGRAM_WAITING");
    if (_i == 0) {
        receive_checks("id1", CODE_NONE, "");
        assert_started(1, 2);
    } else {
        receive_checks("id2", CODE_NONE, "");
        assert_started(2, 2);
    }
    assert_job(next, QUEUE_DELAYED, "PROGRAM_WAITING");
}

END_TEST

START_TEST(the_end_of_the_process_ends_its_run)
{
    const struct pool_gone died = {.was_ready = true, .why = "", .signal = 9};
    const struct pool_gone drained = {.was_ready = true, .ordered = true, .why = ""};
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one");
    assert_started(1, 1);
    programs_gone(core.programs, 0, &drained);
    assert_started(1, 2);
    assert_run(job, 1, QUEUE_RUN_RUNNING, 1, "");
    programs_gone(core.programs, 0, &died);
    turn();
    assert_run(job, 1, QUEUE_RUN_DELAYED, 1, "");
    pass_delay();
    assert_started(1, 3);
    programs_gone(core.programs, 0, &died);
    turn();
    assert_job(job, QUEUE_FAILED, "CRASHED");
}

END_TEST

START_TEST(a_process_that_does_not_respond_is_killed)
{
    const struct pool_gone killed = {.was_ready = true, .why = "it did not end a program in time", .signal = 9};
    struct proto_writer writer;
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one");
    core.conf->jobs.deadline_seconds = 0.01;
    assert_started(1, 1);
    message_write_program_stage(&writer, &(struct message_program_stage){.run = 1, .stage = "run"});
    receive(0, &writer, 0);
    usleep(50000);
    uv_update_time(&core.loop);
    programs_tick(core.programs);
    ck_assert_int_eq(fake[0].kills, 0); /* the program has its own deadline */
    programs_gone(core.programs, 0, &(struct pool_gone){.was_ready = true, .ordered = true, .why = ""});
    assert_started(1, 2);
    usleep(50000);
    uv_update_time(&core.loop);
    programs_tick(core.programs);
    ck_assert_int_eq(fake[0].kills, 1);
    programs_gone(core.programs, 0, &killed);
    turn();
    assert_run(job, 1, QUEUE_RUN_DELAYED, 1, "");
    ck_assert_str_eq(sample_ask(&s, "SELECT code FROM program_run"), "PROGRAM_TOO_LONG");
}

END_TEST

START_TEST(an_unwanted_run_is_stopped)
{
    bool was_running;
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one");
    assert_started(1, 1);
    programs_tick(core.programs);
    ck_assert_int_eq(fake[0].sent[PROTO_PROGRAM_STOP], 0);
    ck_assert_int_eq(queue_cancel_job(s.queue, job, clock_unix_ms(), &was_running), 0);
    programs_tick(core.programs);
    ck_assert_int_eq(fake[0].sent[PROTO_PROGRAM_STOP], 1);
    receive_ended(1, PROGRAM_END_STOPPED, CODE_NONE);
    ck_assert_str_eq(sample_ask(&s, "SELECT state FROM program_run"), "CANCELLED");
}

END_TEST

START_TEST(runs_are_returned_when_the_daemon_stops)
{
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one");
    assert_started(1, 1);
    core.draining = true;
    programs_stop_all(core.programs);
    ck_assert_int_eq(fake[0].sent[PROTO_PROGRAM_STOP], 1);
    receive_ended(1, PROGRAM_END_STOPPED, CODE_NONE);
    assert_run(job, 1, QUEUE_RUN_READY, 0, "");
    ck_assert_uint_eq(programs_unrecorded(core.programs), 0);
}

END_TEST

START_TEST(a_lost_batch_loses_no_outcome)
{
    struct proto_writer writer;
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one");
    assert_started(1, 1);
    message_write_program_ended(&writer,
                                &(struct message_program_ended){.run = 1, .end = PROGRAM_END_WELL, .sha256 = "ab"});
    receive(0, &writer, 0);
    ck_assert_int_eq(batch_begin(core.batch), 0);
    programs_before_commit(core.programs);
    batch_abort(core.batch, -EIO);
    assert_run(job, 1, QUEUE_RUN_RUNNING, 1, "");
    ck_assert_uint_eq(programs_unrecorded(core.programs), 1);
    turn();
    assert_run(job, 1, QUEUE_RUN_DONE, 1, "");
}

END_TEST

START_TEST(a_run_is_made_again_on_request)
{
    int64_t next;
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one");
    assert_started(1, 1);
    receive_ended(1, PROGRAM_END_WELL, CODE_NONE);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, clock_unix_ms()), 0);
    ck_assert_int_eq(queue_fail_job(s.queue, job, CODE_CRASHED, "", "", "", clock_unix_ms()), 0);
    ck_assert_int_eq(sample_retry(s.queue, job, false, &next), 0);
    plan(next, true, false);
    assert_job(next, QUEUE_READY, ""); /* the mask is there */
    plan(next, true, true);
    assert_job(next, QUEUE_DELAYED, "PROGRAM_WAITING");
    assert_started(2, 2);
    receive_ended(2, PROGRAM_END_WELL, CODE_NONE);
    assert_job(next, QUEUE_READY, "");
}

END_TEST

START_TEST(impossible_reports_end_the_process)
{
    struct proto_writer writer;
    receive_checks("id1", CODE_NONE, "");
    add_job("one");
    assert_started(1, 1);
    const struct message_program_ended bad[] = {
        {.run = 2, .end = PROGRAM_END_WELL, .sha256 = "ab"},
        {.run = 1, .end = PROGRAM_END_WELL},
        {.run = 1, .end = PROGRAM_END_ILL},
        {.run = 1, .end = 3, .sha256 = "ab"},
        {.run = 1, .end = PROGRAM_END_WELL, .sha256 = "ab", .starts = 2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        message_write_program_ended(&writer, &bad[i]);
        receive(0, &writer, -EBADMSG);
    }
    message_write_program_stage(&writer, &(struct message_program_stage){.run = 7, .stage = "run"});
    receive(0, &writer, -EBADMSG);
}

END_TEST

/* The program has two attempts, and a job three. */
START_TEST(the_last_attempt_of_a_program_fails_at_a_restart)
{
    static const struct queue_run_end ill = {.code = CODE_PROGRAM_CRASHED,
                                             .message = "",
                                             .sha256 = "",
                                             .sandbox = "own",
                                             .peak_bytes = -1,
                                             .write_seconds = -1,
                                             .program_seconds = -1,
                                             .read_seconds = -1};
    struct queue_run *runs;
    size_t count;
    int returned;
    fake[0].is_ready = false;
    receive_checks("id1", CODE_NONE, "");
    const int64_t job = add_job("one"), now = clock_unix_ms();
    ck_assert_int_eq(queue_start_run(s.queue, 1, 0, "", "", now), 0);
    ck_assert_int_eq(queue_delay_run(s.queue, 1, now, "", true, &ill, now), 0);
    ck_assert_int_eq(queue_ready_runs(s.queue, now, 0, 8, "", &runs, &count), 0);
    queue_runs_free(runs, count);
    ck_assert_int_eq(queue_start_run(s.queue, 1, 0, "", "", now), 0);
    ck_assert_int_eq(programs_recover(&core, now, &returned), 0);
    ck_assert_int_eq(returned, 0);
    assert_run(job, 1, QUEUE_RUN_FAILED, 2, "");
    assert_job(job, QUEUE_FAILED, "CRASHED");
}

END_TEST

/* ----------------------------------------------------------------------------------- GPUs ---- */

enum { PROGRAM_SLOT = 0, PROBE_SLOT, WORKER_A, WORKER_B };

static void
worker_ready(size_t worker)
{
    fake[workers_slot(core.workers, worker)].is_ready = true;
    workers_ready(core.workers, worker);
    programs_worker_ready(core.programs, worker);
}

/* Two GPUs of 10 GiB. */
static void
set_up_gpus(const char *more)
{
    static const char *const names[] = {GPU_A, GPU_B};
    static const struct pool_gone gone = {.was_ready = true, .ordered = true, .why = ""};
    struct proto_writer writer;
    struct proto_stream stream = {0};
    struct proto_reader reader;
    set_up_with(more);
    programs_reload(core.programs);
    ck_assert_int_eq(workers_start(core.workers), 0);
    message_write_devices(&writer, NULL);
    for (int i = 0; i < 2; i++)
        message_add_device(
            &writer,
            &(struct message_device){.index = i, .uuid = names[i], .name = "GPU", .memory_bytes = INT64_C(10) << 30});
    ck_assert_int_eq(proto_finish(&writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer.bytes, writer.size), 0);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    workers_probe_frame(core.workers, &reader);
    workers_probe_gone(core.workers, &gone);
    proto_stream_release(&stream);
    proto_release(&writer);
    fake[PROGRAM_SLOT].is_ready = true;
    worker_ready(0);
    worker_ready(1);
    usleep(1100000); /* before it may be lent; the loop's clock follows */
    uv_update_time(&core.loop);
    receive_checks("id1", CODE_NONE, "");
}

static void
answer_reserve(int slot, int64_t free_bytes, bool enough)
{
    struct proto_writer writer;
    const int64_t token = fake[slot].last[PROTO_RESERVE].reserve.token;
    message_write_reserved(&writer, &(struct message_reserved){token, free_bytes, enough});
    receive(slot, &writer, 0);
    turn();
}

START_TEST(a_share_is_reserved_before_the_start)
{
    set_up_gpus(COMMAND "gpu = \"shared\"; gpu_memory_mib = 4096;");
    const int64_t job = add_job("one");
    turn();
    ck_assert_int_eq(fake[WORKER_A].last[PROTO_RESERVE].reserve.bytes, INT64_C(4) << 30);
    ck_assert_int_eq(fake[WORKER_B].last[PROTO_RESERVE].reserve.bytes, 0);
    assert_run(job, 1, QUEUE_RUN_READY, 0, "");
    answer_reserve(WORKER_A, INT64_C(9) << 30, true);
    assert_started(1, 1);
    assert_run(job, 1, QUEUE_RUN_RUNNING, 1, "shared");
    struct program_order *order = last_order();
    ck_assert_str_eq(order->gpu, GPU_A);
    program_order_free(order);
    receive_ended(1, PROGRAM_END_WELL, CODE_NONE);
    ck_assert_int_eq(fake[WORKER_A].last[PROTO_RESERVE].reserve.bytes, 0);
    answer_reserve(WORKER_A, INT64_C(8) << 30, true);
    ck_assert_str_eq(sample_ask(&s, "SELECT detail FROM event WHERE kind = 'GPU_MEMORY_KEPT'"),
                     GPU_A ": 1024 MiB less are free than before program net");
    tear_down();
}

END_TEST

/* Two processes are kept for the next runs on both GPUs. The third one computes without a GPU. */
START_TEST(a_program_without_a_gpu_does_not_wait_for_those_with_one)
{
    struct proto_writer writer;
    more_options = "compute = { programs = 3; };";
    more_pipelines = ", { name = \"three\"; segments = ( { label = \"C\"; method = \"program\"; program = \"light\"; "
                     "value = 1; type = { code = \"12738006\"; scheme = \"SCT\"; meaning = \"Brain\"; }; } ); }";
    set_up_gpus(COMMAND "gpu = \"shared\"; gpu_memory_mib = 4096; }, "
                        "{ name = \"light\"; algorithm = { name = \"light\"; version = \"1\"; }; " COMMAND);
    fake[1].is_ready = fake[2].is_ready = true;
    message_write_programs(&writer, NULL);
    for (int i = 0; i < 2; i++)
        message_add_checked_program(
            &writer,
            &(struct message_checked_program){
                .name = i ? "light" : "net", .identity = "id1", .sandbox = "own", .code = CODE_NONE, .message = ""});
    receive(0, &writer, 0);
    for (int i = 0; i < 70; i++) {
        char uid[32];
        snprintf(uid, sizeof uid, "1.3.%d", i);
        series = sample_series(s.queue, uid, 3);
        ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
        add_job("one");
    }
    const int64_t job = add_job("three");
    turn();
    ck_assert_int_eq(fake[0].sent[PROTO_PROGRAM_RUN] + fake[1].sent[PROTO_PROGRAM_RUN], 0);
    ck_assert_int_eq(fake[2].sent[PROTO_PROGRAM_RUN], 1);
    assert_run(job, 71, QUEUE_RUN_RUNNING, 1, "");
    tear_down();
    more_options = more_pipelines = "";
}

END_TEST

START_TEST(a_whole_gpu_is_lent_and_returned)
{
    const struct pool_gone gone = {.was_ready = true, .ordered = true, .why = ""};
    set_up_gpus(COMMAND "gpu = \"whole\";");
    const int fills = fake[WORKER_A].fills;
    const int64_t job = add_job("one");
    turn();
    ck_assert_int_eq(fake[WORKER_A].empties, 1);
    ck_assert(!workers_usable(core.workers, 0) && workers_usable(core.workers, 1));
    ck_assert_int_eq(fake[PROGRAM_SLOT].sent[PROTO_PROGRAM_RUN], 0);
    fake[WORKER_A].is_ready = false;
    workers_gone(core.workers, 0, &gone);
    due_now(&core.programs_due);
    assert_started(1, 1);
    assert_run(job, 1, QUEUE_RUN_RUNNING, 1, "whole");
    ck_assert_int_eq(fake[WORKER_A].fills, fills);
    receive_ended(1, PROGRAM_END_WELL, CODE_NONE);
    ck_assert_int_eq(fake[WORKER_A].fills, fills + 1);
    ck_assert_str_eq(sample_ask(&s, "SELECT count(*) FROM event WHERE kind IN ('GPU_LENT', 'GPU_RETURNED')"), "2");
    worker_ready(0);
    ck_assert(workers_usable(core.workers, 0));
    tear_down();
}

END_TEST

START_TEST(a_lack_of_gpu_memory_leads_to_the_whole_gpu_then_to_the_processors)
{
    const struct pool_gone gone = {.was_ready = true, .ordered = true, .why = ""};
    set_up_gpus(COMMAND "gpu = \"shared\"; gpu_memory_mib = 100; cpu_command = [ \"/bin/net\", \"{in}\", \"{out}\" ];");
    const int64_t job = add_job("one");
    turn();
    answer_reserve(WORKER_A, INT64_C(9) << 30, true);
    assert_started(1, 1);
    receive_ended(1, PROGRAM_END_ILL, CODE_PROGRAM_GPU_OUT_OF_MEMORY);
    turn();
    assert_run(job, 1, QUEUE_RUN_READY, 0, "whole");
    ck_assert_int_eq(fake[WORKER_A].empties + fake[WORKER_B].empties, 1);
    const int lent = fake[WORKER_A].empties ? WORKER_A : WORKER_B;
    fake[lent].is_ready = false;
    workers_gone(core.workers, (size_t)workers_find(core.workers, lent), &gone);
    due_now(&core.programs_due);
    assert_started(1, 2);
    receive_ended(1, PROGRAM_END_ILL, CODE_PROGRAM_GPU_OUT_OF_MEMORY);
    assert_started(1, 3);
    assert_run(job, 1, QUEUE_RUN_RUNNING, 1, "cpu");
    struct program_order *order = last_order();
    ck_assert_int_eq(order->as, PROGRAM_AS_CPU);
    ck_assert_str_eq(order->gpu, "");
    program_order_free(order);
    receive_ended(1, PROGRAM_END_WELL, CODE_NONE);
    assert_job(job, QUEUE_READY, "");
    tear_down();
}

END_TEST

START_TEST(a_share_that_fits_nowhere_is_out_of_memory)
{
    set_up_gpus(COMMAND "gpu = \"shared\"; gpu_memory_mib = 20480;");
    const int64_t job = add_job("one");
    turn();
    turn();
    assert_run(job, 1, QUEUE_RUN_READY, 0, "whole");
    tear_down();
}

END_TEST

START_TEST(a_warm_process_keeps_its_share_until_it_is_cold)
{
    struct proto_writer writer;
    set_up_gpus("command = [ \"/bin/net\" ]; gpu = \"shared\"; gpu_memory_mib = 4096; warm = true;");
    add_job("one");
    turn();
    answer_reserve(WORKER_A, INT64_C(9) << 30, true);
    assert_started(1, 1);
    const int reserves = fake[WORKER_A].sent[PROTO_RESERVE];
    receive_ended(1, PROGRAM_END_WELL, CODE_NONE);
    ck_assert_int_eq(fake[WORKER_A].sent[PROTO_RESERVE], reserves);
    const int64_t other = sample_series(s.queue, "1.2.4", 3);
    ck_assert_int_eq(sample_settle(s.queue, other, 1), 0);
    series = other;
    add_job("one");
    assert_started(2, 2);
    ck_assert_int_eq(fake[WORKER_A].sent[PROTO_RESERVE], reserves);
    receive_ended(2, PROGRAM_END_WELL, CODE_NONE);
    message_write_program_cold(&writer, &(struct message_program_cold){"net"});
    receive(PROGRAM_SLOT, &writer, 0);
    turn();
    ck_assert_int_eq(fake[WORKER_A].last[PROTO_RESERVE].reserve.bytes, 0);
    tear_down();
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("daemon_programs");
    TCase *runs = tcase_create("runs"), *gpus = tcase_create("gpus");
    tcase_add_checked_fixture(runs, set_up, tear_down);
    tcase_add_test(runs, jobs_share_a_run_and_get_its_mask);
    tcase_add_test(runs, a_job_without_its_mask_does_not_start);
    tcase_add_test(runs, a_job_waits_for_an_unknown_identity);
    tcase_add_test(runs, a_new_identity_replaces_a_run);
    tcase_add_test(runs, a_removed_program_fails_its_jobs);
    tcase_add_test(runs, a_transient_failure_is_repeated_and_a_permanent_one_is_not);
    tcase_add_loop_test(runs, a_retry_before_the_check_repeats_the_run, 0, 2);
    tcase_add_test(runs, the_end_of_the_process_ends_its_run);
    tcase_add_test(runs, a_process_that_does_not_respond_is_killed);
    tcase_add_test(runs, an_unwanted_run_is_stopped);
    tcase_add_test(runs, runs_are_returned_when_the_daemon_stops);
    tcase_add_test(runs, a_lost_batch_loses_no_outcome);
    tcase_add_test(runs, a_run_is_made_again_on_request);
    tcase_add_test(runs, impossible_reports_end_the_process);
    tcase_add_test(runs, the_last_attempt_of_a_program_fails_at_a_restart);
    tcase_add_test(gpus, a_share_is_reserved_before_the_start);
    tcase_add_test(gpus, a_program_without_a_gpu_does_not_wait_for_those_with_one);
    tcase_add_test(gpus, a_whole_gpu_is_lent_and_returned);
    tcase_add_test(gpus, a_lack_of_gpu_memory_leads_to_the_whole_gpu_then_to_the_processors);
    tcase_add_test(gpus, a_share_that_fits_nowhere_is_out_of_memory);
    tcase_add_test(gpus, a_warm_process_keeps_its_share_until_it_is_cold);
    suite_add_tcase(suite, runs);
    suite_add_tcase(suite, gpus);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

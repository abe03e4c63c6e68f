/*
 * The queries of the daemon's turn cost the same with 200 waiting rows and with 3,200: an index
 * finds the first ones. Held and delayed rows, and those for unreachable destinations, are not
 * read.
 */
#include "db/program_rows.h"
#include "tests/unit/db/sample.h"
#include "tests/unit/growth.h"
#include "tests/unit/suite.h"

#define ROUNDS 100

/* The sizes are FEW and 16 * FEW. With a sanitizer only the larger one runs, and its cost is not compared: 800 rows
 * fill some hundred pages and take a quarter of the time. */
#define FEW (GROWTH_JUDGED ? 200 : 50)

static struct sample s;

static void
set_up(void)
{
    sample_open(&s);
}

static void
tear_down(void)
{
    sample_close(&s);
}

static int64_t
add_job(int64_t series, const char *pipeline, int32_t priority)
{
    int64_t job;
    struct queue_ids running;
    ck_assert_int_eq(queue_add_job(s.queue,
                                   &(struct queue_new_job){series, 1, "", pipeline, "name = \"p\";", priority, false,
                                                           NULL, false, 0, NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                                   SAMPLE_NOW, &job, &running),
                     0);
    return job;
}

/* Adds jobs of n series: each has one waiting job of a pipeline. */
static void
add_jobs(const char *pipeline, size_t n, int32_t priority, void (*also)(int64_t job))
{
    for (size_t i = 0; i < n; i++) {
        char uid[32];
        snprintf(uid, sizeof uid, "1.2.%zu", i);
        enum queue_arrival arrival;
        int64_t series;
        ck_assert_int_eq(sample_add(s.queue, uid, 1, &arrival, &series), 0);
        if (arrival == QUEUE_NEW)
            ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
        const int64_t job = add_job(series, pipeline, priority);
        if (also)
            also(job);
    }
}

static void
hold(const char *kind, const char *name)
{
    ck_assert_int_eq(queue_hold(s.queue, &(struct queue_hold){kind, name, "jane", ""}, SAMPLE_NOW), 0);
}

static void
delay(int64_t job)
{
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_delay_job(s.queue, job, SAMPLE_NOW + 86400000, false, CODE_DISK_FULL, "", SAMPLE_NOW), 0);
}

static void
send_to_pacs(int64_t job)
{
    static const char *const to[] = {"PACS"};
    struct queue_result result = sample_result;
    char uid[64];
    snprintf(uid, sizeof uid, "2.25.%lld", (long long)job);
    result.sop_instance_uid = uid;
    result.destinations = to;
    result.destination_count = 1;
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW),
                     0);
}

static void
need_a_program(int64_t job)
{
    struct queue_job of;
    struct queue_run run;
    ck_assert_int_eq(queue_get_job(s.queue, job, &of), 0);
    const struct queue_need need = {of.series_id, 1, "", "net", "s", "p", "g", "abc"};
    ck_assert_int_eq(queue_need_run(s.queue, &need, false, SAMPLE_NOW, &run), 0);
    ck_assert_int_eq(queue_tie_run(s.queue, job, run.id, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_job_awaits_programs(s.queue, job, "", SAMPLE_NOW), 0);
    queue_run_clear(&run);
    queue_job_clear(&of);
}

static void
wait_for_a_lane(size_t n)
{
    add_jobs("p", n, 5, NULL);
}

static void
wait_of_many_pipelines(size_t n)
{
    for (int i = 0; i < 10; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        add_jobs(name, n / 10, i, NULL);
    }
}

static void
wait_for_their_pipeline(size_t n)
{
    hold("pipeline", "held");
    add_jobs("held", n, 9, NULL);
    add_jobs("p", 10, 5, NULL);
}

static void
wait_for_the_queue(size_t n)
{
    hold("queue", "");
    add_jobs("p", n, 5, NULL);
}

static void
wait_for_their_time(size_t n)
{
    add_jobs("p", n, 5, delay);
}

static void
wait_for_an_archive(size_t n)
{
    add_jobs("p", n, 5, send_to_pacs);
}

static void
wait_for_a_held_archive(size_t n)
{
    hold("destination", "PACS");
    add_jobs("p", n, 5, send_to_pacs);
}

static void
wait_for_a_program(size_t n)
{
    add_jobs("p", n, 5, need_a_program);
}

static const struct {
    const char *name;
    void (*make)(size_t n);
    size_t jobs, deliveries, runs; /* returned by a query */
} kinds[] = {
    {"a lane", wait_for_a_lane, 8, 0, 0},
    {"a lane, of ten pipelines", wait_of_many_pipelines, 8, 0, 0},
    {"a held pipeline", wait_for_their_pipeline, 8, 0, 0},
    {"a held queue", wait_for_the_queue, 0, 0, 0},
    {"their time", wait_for_their_time, 0, 0, 0},
    {"an archive", wait_for_an_archive, 0, 8, 0},
    {"a held archive", wait_for_a_held_archive, 0, 0, 0},
    {"a program", wait_for_a_program, 0, 0, 8},
};

/* The queries of the daemon's jobs.c and deliveries.c at each event. */
static void
ask_all(size_t jobs_expected, size_t deliveries_expected, size_t runs_expected)
{
    struct queue_run *runs;
    size_t run_count;
    struct queue_job *jobs;
    struct queue_delivery *deliveries;
    size_t job_count, delivery_count;
    int64_t due_ms;
    ck_assert_int_eq(queue_ready(s.queue, SAMPLE_NOW, 0, 8, "", &jobs, &job_count), 0);
    ck_assert_uint_eq(job_count, jobs_expected);
    for (size_t i = 0; i < job_count; i++)
        queue_job_clear(&jobs[i]);
    free(jobs);
    queue_next_due(s.queue, &due_ms);
    ck_assert_int_eq(queue_due_deliveries(s.queue, SAMPLE_NOW + 1, 8, NULL, 0, &deliveries, &delivery_count), 0);
    ck_assert_uint_eq(delivery_count, deliveries_expected);
    for (size_t i = 0; i < delivery_count; i++)
        queue_delivery_clear(&deliveries[i]);
    free(deliveries);
    queue_next_delivery(s.queue, NULL, 0, &due_ms);
    ck_assert_int_eq(queue_ready_runs(s.queue, SAMPLE_NOW, 0, 8, "", &runs, &run_count), 0);
    ck_assert_uint_eq(run_count, runs_expected);
    for (size_t i = 0; i < run_count; i++)
        queue_run_clear(&runs[i]);
    free(runs);
    ck_assert_int_eq(queue_next_run_due(s.queue, &due_ms), 0);
}

/* In one batch: after each commit, tests read all rows. */
static double
cost(const void *context, size_t n)
{
    const int kind = *(const int *)context;
    sample_open(&s);
    ck_assert_int_eq(queue_begin(s.queue), 0);
    kinds[kind].make(n);
    const double begun = growth_clock();
    for (int i = 0; i < ROUNDS; i++)
        ask_all(kinds[kind].jobs, kinds[kind].deliveries, kinds[kind].runs);
    const double seconds = growth_clock() - begun;
    queue_rollback(s.queue);
    sample_close(&s);
    return seconds;
}

START_TEST(waiting_rows_are_not_read)
{
    char name[64];
    snprintf(name, sizeof name, "what waits for %s", kinds[_i].name);
    expect_flat(name, cost, &_i, FEW);
}

END_TEST

START_TEST(the_first_jobs_have_the_highest_priority)
{
    struct queue_job *jobs;
    size_t count;
    wait_of_many_pipelines(100);
    hold("pipeline", "j");
    ck_assert_int_eq(queue_ready(s.queue, SAMPLE_NOW, 0, 25, "", &jobs, &count), 0);
    ck_assert_uint_eq(count, 25);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(jobs[i].priority, i < 10 ? 8 : i < 20 ? 7 : 6);
        ck_assert(i % 10 == 0 || jobs[i - 1].id < jobs[i].id);
        queue_job_clear(&jobs[i]);
    }
    free(jobs);
}

END_TEST

/* Checks the check of the other tests of db/: see plans.h. */
START_TEST(table_scans_are_distinguished_from_searches)
{
    sqlite3 *db = s.queue->db.handle;
    sqlite3_trace_v2(db, 0, NULL, NULL);
    ck_assert(plans_walks(db, "SCAN job"));
    ck_assert(plans_walks(db, "SCAN j USING COVERING INDEX job_state"));
    ck_assert(!plans_walks(db, "SCAN j USING INDEX job_ready"));
    ck_assert(!plans_walks(db, "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)"));
    ck_assert(!plans_walks(db, "SCAN CONSTANT ROW"));
}

END_TEST

int
main(void)
{
    TCase *tests = tcase_create("waiting");
    TCase *growth = tcase_create("growth");
    Suite *suite = suite_create("db_waiting");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_first_jobs_have_the_highest_priority);
    tcase_add_test(tests, table_scans_are_distinguished_from_searches);
    tcase_set_timeout(growth, 120);
    tcase_add_loop_test(growth, waiting_rows_are_not_read, 0, sizeof kinds / sizeof *kinds);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, growth);
    return suite_run(suite);
}

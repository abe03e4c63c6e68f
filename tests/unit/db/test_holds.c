/*
 * Held jobs do not start and held deliveries are not sent, until they are released; and changes of
 * priority.
 */
#include "tests/unit/db/sample.h"

static struct sample s;

static void
open_sample(void)
{
    sample_open(&s);
}

static void
close_sample(void)
{
    sample_close(&s);
}

static int
hold(const char *kind, const char *name)
{
    return queue_hold(s.queue, &(struct queue_hold){kind, name, "jane", "maintenance"}, SAMPLE_NOW + 2500);
}

static int
release(const char *kind, const char *name)
{
    return queue_release(s.queue, &(struct queue_hold){kind, name, "joe", NULL}, SAMPLE_NOW + 2600);
}

/* "1 2": the jobs that could start now. */
static const char *
ready(void)
{
    static char text[64];
    struct queue_job *jobs;
    size_t count, used = 0;
    ck_assert_int_eq(queue_ready(s.queue, SAMPLE_NOW + 60000, 0, 64, "", &jobs, &count), 0);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i ? " " : "", (int)jobs[i].id);
        queue_job_clear(&jobs[i]);
    }
    free(jobs);
    return text;
}

/* "PACS OLD": destinations with a due delivery; and "+" if there is a time to wait for. */
static const char *
due(void)
{
    static char text[64];
    struct queue_delivery *deliveries;
    size_t count, used = 0;
    int64_t then;
    ck_assert_int_eq(queue_due_deliveries(s.queue, SAMPLE_NOW + 60000, 9, NULL, 0, &deliveries, &count), 0);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s ", deliveries[i].destination);
        queue_delivery_clear(&deliveries[i]);
    }
    free(deliveries);
    snprintf(text + used, sizeof text - used, "%s", queue_next_delivery(s.queue, NULL, 0, &then) == 0 ? "+" : "");
    return text;
}

START_TEST(held_jobs_do_not_start)
{
    static const struct {
        const char *kind, *name, *left, *held;
    } cases[] = {{"job", "1", "2 3", "job  "},        {"pipeline", "head-ct", "3", "pipeline pipeline "},
                 {"pipeline", "head", "1 2 3", "  "}, {"destination", "head-ct", "1 2 3", "  "},
                 {"jobs", "", "", "jobs jobs jobs"},  {"queue", "", "", "queue queue queue"}};

    struct queue_ids running;
    int64_t series, other;
    sample_job(s.queue, "1.2.1");
    sample_job(s.queue, "1.2.2");
    ck_assert_int_eq(queue_find_series(s.queue, "1.2.2", &series), 0);
    const struct queue_new_job job = {.series_id = series,
                                      .revision = 1,
                                      .stack = "",
                                      .pipeline = "other",
                                      .settings = "name = \"other\";",
                                      .priority = 5};
    ck_assert_int_eq(queue_add_job(s.queue, &job, SAMPLE_NOW, &other, &running), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(hold(cases[i].kind, cases[i].name), 0);
        ck_assert_int_eq(hold(cases[i].kind, cases[i].name), -EEXIST);
        ck_assert_str_eq(ready(), cases[i].left);
        sample_reopen(&s); /* a restart */
        ck_assert_str_eq(ready(), cases[i].left);
        assert_answer(&s, "SELECT group_concat(held, ' ') FROM v_jobs", cases[i].held);
        ck_assert_int_eq(release(cases[i].kind, cases[i].name), 0);
        ck_assert_int_eq(release(cases[i].kind, cases[i].name), -ENOENT);
        ck_assert_str_eq(ready(), "1 2 3");
    }
    assert_answer(&s, "SELECT count(*) FROM v_holds", "0");
    assert_answer(&s,
                  "SELECT group_concat(kind || coalesce(job, '') || ' ' || detail, ';') FROM "
                  "(SELECT * FROM v_events WHERE kind IN ('HELD', 'RELEASED') LIMIT 3)",
                  "HELD1 job 1, by jane: maintenance;RELEASED1 job 1, by joe;"
                  "HELD pipeline head-ct, by jane: maintenance");
}

END_TEST

START_TEST(held_deliveries_are_not_sent)
{
    static const char *const to[] = {"OLD", "PACS"};
    int64_t job = sample_job(s.queue, "1.2.1");
    struct queue_result result = sample_result;
    result.destinations = to;
    result.destination_count = 2;
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    ck_assert_str_eq(due(), "OLD PACS +");
    ck_assert_int_eq(hold("destination", "OLD"), 0);
    ck_assert_str_eq(due(), "PACS +");
    assert_answer(&s, "SELECT group_concat(destination || held, ' ') FROM v_deliveries", "OLDdestination PACS");
    assert_answer(&s, "SELECT held FROM v_night", "destination OLD");
    ck_assert_int_eq(hold("queue", ""), 0);
    ck_assert_str_eq(due(), ""); /* without a wakeup */
    assert_answer(&s, "SELECT held FROM v_night", "destination OLD; queue");
    ck_assert_int_eq(release("queue", ""), 0);
    ck_assert_int_eq(release("destination", "OLD"), 0);
    ck_assert_str_eq(due(), "OLD PACS +");
    assert_answer(&s, "SELECT held IS NULL FROM v_night", "1");
}

END_TEST

/* ---- what is held grows no older ---- */

#define MINUTE 60000

/* Adds a waiting delivery to each of these, made at SAMPLE_NOW. */
static void
waiting_deliveries(const char *const *to, size_t count)
{
    int64_t job = sample_job(s.queue, "1.2.1");
    struct queue_result result = sample_result;
    const struct queue_finish finish = {QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""};
    result.destinations = to;
    result.destination_count = count;
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job, &finish, SAMPLE_NOW), 0);
}

static void
hold_at(const char *kind, const char *name, int minute)
{
    const struct queue_hold hold = {kind, name, "jane", ""};
    ck_assert_int_eq(queue_hold(s.queue, &hold, SAMPLE_NOW + minute * MINUTE), 0);
}

static void
release_at(const char *kind, const char *name, int minute)
{
    const struct queue_hold hold = {kind, name, "joe", ""};
    ck_assert_int_eq(queue_release(s.queue, &hold, SAMPLE_NOW + minute * MINUTE), 0);
}

/* "5 30": the age of each at that time, in minutes, by number. */
static const char *
ages_at(int minute)
{
    static char text[64];
    size_t used = 0;
    text[0] = '\0';
    for (int64_t id = 1; id <= 2; id++) {
        struct queue_delivery delivery;
        ck_assert_int_eq(queue_get_delivery(s.queue, id, &delivery), 0);
        const int64_t age_ms = SAMPLE_NOW + minute * MINUTE - delivery.since_ms;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%g", id > 1 ? " " : "", (double)age_ms / MINUTE);
        queue_delivery_clear(&delivery);
    }
    return text;
}

START_TEST(held_items_do_not_age)
{
    static const char *const to[] = {"OLD", "PACS"};
    waiting_deliveries(to, 2);
    hold_at("destination", "OLD", 10);
    release_at("destination", "OLD", 30);
    ck_assert_str_eq(ages_at(30), "10 30");
    hold_at("queue", "", 40);
    release_at("queue", "", 100);
    ck_assert_str_eq(ages_at(100), "20 40");
    hold_at("pipeline", "head-ct", 100); /* not related to sending */
    release_at("pipeline", "head-ct", 200);
    ck_assert_str_eq(ages_at(200), "120 140");
}

END_TEST

/* In any order of their beginnings and ends, no minute is missed or subtracted twice. */
START_TEST(overlapping_holds_count_once)
{
    static const char *const to[] = {"OLD", "PACS"};
    waiting_deliveries(to, 2);
    hold_at("destination", "OLD", 10);
    hold_at("queue", "", 20);
    release_at("destination", "OLD", 30);
    ck_assert_str_eq(ages_at(40), "30 40"); /* so far the ten minutes before the other */
    release_at("queue", "", 40);
    ck_assert_str_eq(ages_at(40), "10 20");
    hold_at("queue", "", 50);
    hold_at("destination", "OLD", 60);
    release_at("destination", "OLD", 70);
    release_at("queue", "", 80);
    ck_assert_str_eq(ages_at(80), "20 30");
    hold_at("destination", "OLD", 90);
    hold_at("queue", "", 100);
    release_at("queue", "", 110);
    ck_assert_str_eq(ages_at(110), "50 50");
    release_at("destination", "OLD", 120);
    ck_assert_str_eq(ages_at(120), "30 60");
}

END_TEST

START_TEST(items_created_during_a_hold_are_held)
{
    static const char *const to[] = {"OLD", "PACS"};
    hold_at("destination", "OLD", -60);
    waiting_deliveries(to, 2);
    ck_assert_int_eq(queue_clock_was_set(s.queue, 5 * MINUTE), 0); /* the hold is as old as before */
    release_at("destination", "OLD", 35);
    ck_assert_str_eq(ages_at(35), "0 30");
    hold_at("destination", "PACS", 35);
    ck_assert_int_eq(queue_start_delivery(s.queue, 2, SAMPLE_NOW + 35 * MINUTE), 0);
    release_at("destination", "PACS", 65); /* it was being sent during the hold */
    ck_assert_str_eq(ages_at(65), "30 60");
}

END_TEST

START_TEST(items_do_not_age_while_the_service_is_down)
{
    static const char *const to[] = {"OLD", "PACS"};
    int32_t returned;
    waiting_deliveries(to, 2);
    hold_at("destination", "OLD", 10);
    ck_assert_int_eq(queue_note(s.queue, "STOP", "", SAMPLE_NOW + 20 * MINUTE), 0);
    sample_reopen(&s);
    ck_assert_int_eq(queue_recover(s.queue, 3, SAMPLE_NOW + 120 * MINUTE, &returned), 0);
    ck_assert_str_eq(ages_at(120), "120 20");
    release_at("destination", "OLD", 130);
    ck_assert_str_eq(ages_at(130), "10 30");
    ck_assert_int_eq(queue_recover(s.queue, 3, SAMPLE_NOW + 110 * MINUTE, &returned), 0);
    ck_assert_str_eq(ages_at(130), "10 30"); /* a clock that was set back meanwhile */
}

END_TEST

START_TEST(a_job_is_held_until_it_has_ended)
{
    bool was_running;
    int64_t job = sample_job(s.queue, "1.2.1"), same;
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(hold("job", "1"), 0); /* it continues */
    ck_assert_int_eq(queue_return_job(s.queue, job, "drain", SAMPLE_NOW), 0);
    ck_assert_str_eq(ready(), "");
    ck_assert_int_eq(queue_cancel_job(s.queue, job, SAMPLE_NOW, &was_running), 0);
    assert_answer(&s, "SELECT count(*) FROM v_holds", "0");
    ck_assert_int_eq(hold("job", "1"), -EAGAIN);
    ck_assert_int_eq(hold("job", "4711"), -ENOENT);
    ck_assert_int_eq(release("job", "4711"), -ENOENT);
    ck_assert_int_eq(sample_retry(s.queue, job, false, &same), 0);
    ck_assert_str_eq(ready(), "1");
}

END_TEST

START_TEST(only_existing_items_can_be_held)
{
    static const struct {
        const char *kind, *name;
    } cases[] = {{"queue", "x"}, {"pipeline", ""}, {"destination", ""}, {"job", ""}, {"series", "1"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(hold(cases[i].kind, cases[i].name), -EINVAL);
    assert_answer(&s, "SELECT count(*) FROM v_events", "0");
}

END_TEST

START_TEST(the_priority_of_a_queued_job_can_change)
{
    int64_t first = sample_job(s.queue, "1.2.1"), second = sample_job(s.queue, "1.2.2");
    ck_assert_str_eq(ready(), "1 2");
    ck_assert_int_eq(queue_set_priority(s.queue, second, 9, "jane", SAMPLE_NOW), 0);
    ck_assert_str_eq(ready(), "2 1");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'JOB_PRIORITY' AND job = 2", "5 to 9, by jane");
    ck_assert_int_eq(queue_start_job(s.queue, first, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_set_priority(s.queue, first, 9, "jane", SAMPLE_NOW), -EAGAIN);
    ck_assert_int_eq(queue_set_priority(s.queue, 4711, 9, "jane", SAMPLE_NOW), -ENOENT);
    ck_assert_int_eq(queue_delay_job(s.queue, first, SAMPLE_NOW + 9000, false, CODE_NONE, "", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_set_priority(s.queue, first, -7, "jane", SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT group_concat(priority, ' ') FROM v_jobs", "-7 9");
}

END_TEST

SAMPLE_MAIN("db_holds", open_sample, close_sample, held_jobs_do_not_start, held_deliveries_are_not_sent,
            held_items_do_not_age, overlapping_holds_count_once, items_created_during_a_hold_are_held,
            items_do_not_age_while_the_service_is_down, a_job_is_held_until_it_has_ended,
            only_existing_items_can_be_held, the_priority_of_a_queued_job_can_change)

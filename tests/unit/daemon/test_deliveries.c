/*
 * Deliveries with a real queue, a real pool and this program as the sender process: with --role it
 * behaves as the destination's name says.
 */
#include "service/daemon/delivery/deliveries.h"

#include "service/common/clock.h"
#include "service/common/wire/messages.h"
#include "service/daemon/series/inspection.h"
#include "tests/unit/db/sample.h"
#include "tests/unit/starved_malloc.h"

#include <signal.h>
#include <sys/socket.h>

/* -------------------------------------------------------------------- the sender process ----- */

static void
sender_write(struct proto_writer *writer)
{
    if (proto_finish(writer) || send(3, writer->bytes, writer->size, MSG_NOSIGNAL) < 0)
        _exit(90);
    proto_release(writer);
}

static void
sender_read(struct proto_stream *stream, struct proto_reader *reader)
{
    char bytes[512];
    while (proto_next(stream, reader) == 0) {
        ssize_t size = recv(3, bytes, sizeof bytes, 0);
        if (size <= 0)
            _exit(0);
        if (proto_feed(stream, bytes, (size_t)size))
            _exit(91);
    }
}

/* Reports "1.2.3" for every instance. */
static void
sender_report(const struct message_deliver *message, bool ok)
{
    struct proto_writer writer;
    const struct message_reference reference = {
        .sop_instance = message->sop_instance, .ok = ok, .failure_reason = ok ? 0 : 0x0112};
    const struct message_committed committed = {.destination = message->destination, .transaction_uid = "1.2.3"};
    message_write_committed(&writer, &committed);
    message_add_reference(&writer, &reference);
    sender_write(&writer);
}

static void
sender_answer(int64_t delivery, enum proto_delivery outcome, int64_t status, enum code code,
              enum proto_commitment commitment)
{
    const bool request = commitment == PROTO_COMMITMENT_REQUESTED;
    struct proto_writer writer;
    const struct message_delivered delivered = {.delivery = delivery,
                                                .outcome = outcome,
                                                .dimse_status = status,
                                                .code = code,
                                                .message = code ? "so it is" : "",
                                                .commitment = commitment,
                                                .transaction_uid = request ? "1.2.3" : ""};
    message_write_delivered(&writer, &delivered);
    sender_write(&writer);
}

static void
sender_on_deliver(struct proto_reader *reader)
{
    struct message_deliver message;
    if (message_read_deliver(reader, &message) || *message.file != '/')
        _exit(93);
    const int64_t delivery = message.delivery;
    const char *const to = message.destination;
    bool up = access(getenv("COURIER_UP"), F_OK) == 0;
    if (strcmp(to, "takes") == 0 || (up && strcmp(to, "is-down") == 0))
        sender_answer(delivery, PROTO_DELIVERY_SENT, 0, CODE_NONE, PROTO_COMMITMENT_NONE);
    else if (strcmp(to, "is-down") == 0)
        sender_answer(delivery, PROTO_DELIVERY_TRANSIENT, -1, CODE_PEER_UNREACHABLE, PROTO_COMMITMENT_NONE);
    else if (strcmp(to, "refuses") == 0)
        sender_answer(delivery, PROTO_DELIVERY_PERMANENT, 0xa900, CODE_STORE_REFUSED, PROTO_COMMITMENT_NONE);
    else if (strcmp(to, "no-seg") == 0)
        sender_answer(delivery, PROTO_DELIVERY_PERMANENT, -1, CODE_NO_PRESENTATION_CONTEXT, PROTO_COMMITMENT_NONE);
    else if (strcmp(to, "returns") == 0)
        sender_answer(delivery, PROTO_DELIVERY_RETURNED, -1, CODE_RETURNED, PROTO_COMMITMENT_NONE);
    else if (strcmp(to, "kills") == 0)
        raise(SIGKILL);
    else if (strcmp(to, "lies") == 0)
        sender_answer(delivery + 1000, PROTO_DELIVERY_SENT, 0, CODE_NONE, PROTO_COMMITMENT_NONE);
    else if (strcmp(to, "broken") == 0)
        sender_answer(delivery, 17, 0, CODE_NONE, PROTO_COMMITMENT_NONE);
    else if (strcmp(to, "refuses-commit") == 0)
        sender_answer(delivery, PROTO_DELIVERY_SENT, 0, CODE_COMMIT_FAILED, PROTO_COMMITMENT_REFUSED);
    else if (strncmp(to, "commits", 7) == 0) {
        bool early = strcmp(to, "commits-early") == 0;
        if (early)
            sender_report(&message, true);
        sender_answer(delivery, PROTO_DELIVERY_SENT, 0, CODE_NONE, PROTO_COMMITMENT_REQUESTED);
        if (!early && strcmp(to, "commits-never") != 0)
            sender_report(&message, strcmp(to, "commits-not") != 0);
    }
    /* "is-slow" sends no report. */
}

static void
sender_main(void)
{
    struct proto_writer writer;
    const struct message_hello hello = {.role = "courier", .build_id = proto_build_id()};
    message_write_hello(&writer, &hello);
    sender_write(&writer);
    struct proto_stream stream = {0};
    for (;;) {
        struct proto_reader reader;
        sender_read(&stream, &reader);
        if (reader.type == PROTO_DELIVER)
            sender_on_deliver(&reader);
        else if (reader.type == PROTO_DRAIN)
            _exit(0);
    }
}

/* ------------------------------------------------------------------------- the daemon ------ */

#define LOOK_SECONDS 120.0 /* longer than any test takes */

static struct sample s;
static struct core core;
static struct senders couriers;
static struct conf conf;
static char names[][16] = {
    "takes",  "is-down", "refuses",       "no-seg",       "returns",     "kills",         "lies",
    "broken", "is-slow", "commits-early", "commits-late", "commits-not", "commits-never", "refuses-commit",
};
#define DESTINATIONS (sizeof names / sizeof names[0])
static struct conf_destination destinations[DESTINATIONS];
static uv_timer_t wake;
static char up[96]; /* while this file exists, "is-down" is up */

static void
on_ready(void *context, int slot)
{
    (void)context;
    (void)slot;
    due_now(&core.deliveries_due);
}

static void
on_frame(void *context, int slot, struct proto_reader *reader)
{
    (void)context;
    (void)slot;
    deliveries_frame(core.deliveries, reader);
}

static void
on_gone(void *context, int slot, const struct pool_gone *gone)
{
    (void)context;
    deliveries_sender_gone(core.deliveries, slot, gone);
}

static void
on_ending(void *context)
{
    (void)context;
    deliveries_before_commit(core.deliveries);
}

static void
on_wake(uv_timer_t *timer)
{
    (void)timer;
    deliveries_tick(core.deliveries);
}

static void
set_up_conf(void)
{
    static char root[] = "/nowhere";
    memset(destinations, 0, sizeof destinations);
    for (size_t i = 0; i < DESTINATIONS; i++) {
        destinations[i].name = names[i];
        destinations[i].commit = strcmp(names[i], "commits-never") == 0;
        destinations[i].commit_seconds = 0.2;
    }
    destinations[3].fallback = names[0];
    conf = (struct conf){
        .root = root,
        .destinations = destinations,
        .destination_count = DESTINATIONS,
        .delivery = {.retry_seconds = 0.05,
                     .retry_max_seconds = 5, /* longer than a sender process takes to start */
                     .give_up_seconds = 3600,
                     .breaker_failures = 1000,
                     .breaker_seconds = 0.2},
    };
}

static void
set_up(void)
{
    static const struct pool_timing timing = {
        .hello = 10000, .silence = 60000, .term = 2000, .young = 60000, .first_wait = 10, .longest_wait = 40};
    const struct batch_events batch_events = {on_ending, NULL, NULL};
    const struct pool_options pool_options = {.program = "/proc/self/exe",
                                              .config_file = "/nowhere",
                                              .timing = timing,
                                              .events = {on_ready, on_frame, on_gone, NULL}};
    sample_open(&s);
    snprintf(up, sizeof up, "%s/up", s.folder);
    setenv("COURIER_UP", up, 1);
    set_up_conf();
    core = (struct core){.root = "/nowhere", .conf = &conf, .queue = s.queue, .senders = &couriers};
    ck_assert_int_eq(uv_loop_init(&core.loop), 0);
    due_init(&core.deliveries_due, &core.loop);
    ck_assert_int_eq(batch_open(&core.loop, s.queue, &batch_events, &core.batch), 0);
    ck_assert_int_eq(pool_open(&core.loop, &pool_options, &core.pool), 0);
    ck_assert_int_eq(inspections_open(&core, &core.inspections), 0);
    ck_assert_int_eq(deliveries_open(&core, &core.deliveries), 0);
    uv_timer_init(&core.loop, &wake);
    uv_timer_start(&wake, on_wake, 50, 50);
}

static void
tear_down(void)
{
    core.draining = true;
    pool_drain(core.pool);
    pool_kill_all(core.pool, "the test is over");
    while (pool_living(core.pool))
        uv_run(&core.loop, UV_RUN_ONCE);
    batch_close(core.batch);
    pool_close(core.pool);
    deliveries_close(core.deliveries);
    free(couriers.spare);
    couriers = (struct senders){0};
    inspections_close(core.inspections);
    uv_close((uv_handle_t *)&wake, NULL);
    uv_close((uv_handle_t *)&core.deliveries_due.timer, NULL);
    uv_run(&core.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&core.loop), 0);
    sample_close(&s);
}

/* Adds a DONE job with one result for one destination. */
static void
add_delivery(const char *destination)
{
    static int number;
    char series[32], sop[32];
    snprintf(series, sizeof series, "1.2.%d", ++number);
    snprintf(sop, sizeof sop, "2.25.%d", number);
    struct queue_result result = sample_result;
    result.sop_instance_uid = sop;
    result.destinations = &destination;
    result.destination_count = 1;
    int64_t now_ms = clock_unix_ms(), job = sample_job(s.queue, series);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, now_ms), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""},
                                      now_ms),
                     0);
}

static void
add_deliveries(const char *destination, int count)
{
    for (int i = 0; i < count; i++)
        add_delivery(destination);
}

static void
courier_switch_on(void)
{
    FILE *file = fopen(up, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
}

#define COUNT(state) "SELECT count(*) FROM v_deliveries WHERE state = '" state "'"

/* Runs the daemon until the query returns this value. */
static void
run_until(const char *sql, const char *expected)
{
    double deadline = clock_seconds() + LOOK_SECONDS;
    while (strcmp(sample_ask(&s, sql), expected) != 0) {
        ck_assert_msg(clock_seconds() < deadline, "%s: %s, not %s", sql, sample_ask(&s, sql), expected);
        uv_run(&core.loop, UV_RUN_ONCE);
    }
}

/* Runs the daemon until all deliveries due now were checked: a later delivery has been sent. */
static void
run_past_due(void)
{
    int sent = atoi(sample_ask(&s, COUNT("SENT")));
    char expected[16];
    snprintf(expected, sizeof expected, "%d", sent + 1);
    add_delivery("takes");
    due_now(&core.deliveries_due);
    run_until(COUNT("SENT"), expected);
}

/* --------------------------------------------------------------------------- the tests ----- */

START_TEST(due_deliveries_are_sent)
{
    add_deliveries("takes", 30);
    run_until(COUNT("SENT"), "30");
    assert_answer(&s, "SELECT DISTINCT attempts FROM v_deliveries", "1");
    ck_assert_uint_eq(deliveries_unrecorded(core.deliveries), 0);
}

END_TEST

START_TEST(later_deliveries_are_sent)
{
    add_delivery("takes");
    run_until(COUNT("SENT"), "1");
    add_delivery("takes");
    due_now(&core.deliveries_due);
    run_until(COUNT("SENT"), "2");
}

END_TEST

static const struct {
    const char *destination, *expression, *answer;
} ends[] = {
    {"refuses", "state || ' ' || code || ' ' || attempts || ' ' || dimse_status_hex", "FAILED STORE_REFUSED 1 0xA900"},
    {"is-down", "code || ' ' || (attempts >= 3)", "PEER_UNREACHABLE 1"},
    {"no-seg", "group_concat(destination || ' ' || state, ', ')", "no-seg FAILED, takes SENT"},
    {"returns", "code || ' ' || (attempts > 1)", "RETURNED 1"},
    {"kills", "code || ' ' || (attempts > 1)", "COURIER_DIED 1"},
    {"lies", "code || ' ' || (attempts > 1)", "COURIER_DIED 1"},
    {"broken", "code || ' ' || (attempts > 1)", "COURIER_DIED 1"},
    {"not-configured", "state || ' ' || code || ' ' || attempts", "FAILED NO_SUCH_DESTINATION 0"},
    {"commits-early", "state || ' ' || commitment", "SENT COMMITTED"},
    {"commits-late", "state || ' ' || commitment", "SENT COMMITTED"},
    {"refuses-commit", "state || ' ' || commitment || ' ' || code || ' ' || attempts", "SENT FAILED COMMIT_FAILED 1"},
    {"commits-not", "code || ' ' || (attempts > 1)", "COMMITMENT_FAILED 1"},
    {"commits-never", "code || ' ' || (attempts > 1)", "COMMITMENT_TIMEOUT 1"},
};

/* In each case another destination gets its deliveries and is not charged. */
START_TEST(the_table_of_ends)
{
    char sql[300];
    snprintf(sql, sizeof sql, "SELECT %s FROM (SELECT * FROM v_deliveries WHERE job = 1 ORDER BY delivery)",
             ends[_i].expression);
    add_delivery(ends[_i].destination);
    add_delivery("takes");
    run_until("SELECT state || ' ' || attempts FROM v_deliveries WHERE job = 2", "SENT 1");
    run_until(sql, ends[_i].answer);
}

END_TEST

START_TEST(the_number_under_way_is_limited)
{
    add_deliveries("is-slow", 10);
    add_deliveries("takes", 10);
    run_until(COUNT("SENT"), "10");
    run_until(COUNT("SENDING"), "4"); /* its sender may start later than the other's */
    assert_answer(&s, COUNT("PENDING"), "6");
    ck_assert_uint_eq(deliveries_under_way(core.deliveries, NULL), 4);
}

END_TEST

START_TEST(a_down_destination_is_paused_and_resumed)
{
    conf.delivery.breaker_failures = 3;
    conf.delivery.retry_seconds = conf.delivery.retry_max_seconds = 0.001;
    add_deliveries("is-down", 10);
    double start = clock_seconds();
    run_until("SELECT count(*) FROM v_events WHERE kind = 'DESTINATION_DOWN' AND detail LIKE "
              "'is-down%'",
              "1");
    add_deliveries("takes", 10);
    due_now(&core.deliveries_due);
    run_until(COUNT("SENT"), "10");
    run_until("SELECT sum(attempts) >= 9 FROM v_deliveries WHERE destination = 'is-down'", "1");
    /* Four at first, and one for each of the two that fail before the third opens it; then one per
     * 0.2 s. Without the breaker they would come in milliseconds. */
    ck_assert_double_gt(clock_seconds() - start, 2 * conf.delivery.breaker_seconds);
    assert_answer(&s, "SELECT count(*) FROM v_events WHERE kind = 'DESTINATION_UP'", "0");
    courier_switch_on();
    run_until(COUNT("SENT"), "20");
    assert_answer(&s, "SELECT count(*) FROM v_events WHERE kind = 'DESTINATION_UP'", "1");
}

END_TEST

START_TEST(a_destination_that_kills_its_sender_is_down)
{
    conf.delivery.breaker_failures = 2;
    add_delivery("kills");
    run_until("SELECT count(*) FROM v_events WHERE kind = 'DESTINATION_DOWN' AND detail LIKE "
              "'kills%'",
              "1");
    assert_answer(&s, "SELECT code FROM v_deliveries", "COURIER_DIED");
}

END_TEST

START_TEST(hurry_skips_the_breaker_delay)
{
    conf.delivery.breaker_failures = 1;
    conf.delivery.breaker_seconds = 86400;
    add_delivery("is-down");
    run_until("SELECT count(*) FROM v_events WHERE kind = 'DESTINATION_DOWN'", "1");
    courier_switch_on();
    run_until("SELECT not_before_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now') FROM v_deliveries", "1");
    run_past_due();
    assert_answer(&s, "SELECT state FROM v_deliveries WHERE job = 1", "DELAYED");
    deliveries_retry_now(core.deliveries);
    run_until(COUNT("SENT"), "2");
}

END_TEST

START_TEST(deliveries_fail_after_give_up_seconds)
{
    conf.delivery.give_up_seconds = 0.3;
    add_delivery("is-down");
    run_until("SELECT state || ' ' || code || ' ' || (message LIKE 'so it is; given up after %') "
              "FROM v_deliveries",
              "FAILED PEER_UNREACHABLE 1");
}

END_TEST

START_TEST(a_stopped_sender_returns_its_deliveries)
{
    add_deliveries("is-slow", 6);
    run_until(COUNT("SENDING"), "4");
    core.draining = true;
    pool_drain(core.pool);
    run_until("SELECT count(*) FROM v_deliveries WHERE state = 'PENDING' AND attempts = 0", "6");
}

END_TEST

START_TEST(a_new_configuration_is_followed)
{
    add_delivery("is-slow");
    add_delivery("takes");
    conf.destination_count = 1;
    ck_assert_int_eq(deliveries_reload(core.deliveries), 0);
    run_until("SELECT group_concat(state, ' ') FROM (SELECT * FROM v_deliveries ORDER BY delivery)", "FAILED SENT");
    conf.destination_count = DESTINATIONS;
    ck_assert_int_eq(deliveries_reload(core.deliveries), 0);
    add_delivery("commits-late");
    due_now(&core.deliveries_due);
    run_until(COUNT("SENT"), "2");
}

END_TEST

/* For each allocation that may fail: deliveries to a new destination must not fail meanwhile. */
START_TEST(a_new_configuration_without_memory_is_followed_later)
{
    conf.destination_count = 1;
    ck_assert_int_eq(deliveries_reload(core.deliveries), 0);
    add_delivery("commits-late");
    conf.destination_count = DESTINATIONS;
    hit = false;
    countdown = 1 + _i;
    const int rc = deliveries_reload(core.deliveries);
    countdown = 0;
    ck_assert_int_eq(rc, hit ? -ENOMEM : 0);
    deliveries_before_commit(core.deliveries);
    run_until(COUNT("SENT"), "1");
}

END_TEST

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--role") == 0)
        sender_main();
    signal(SIGPIPE, SIG_IGN); /* as in main.c */
    Suite *suite = suite_create("service_deliveries");
    TCase *tests = tcase_create("deliveries");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, due_deliveries_are_sent);
    tcase_add_test(tests, later_deliveries_are_sent);
    tcase_add_loop_test(tests, the_table_of_ends, 0, sizeof ends / sizeof ends[0]);
    tcase_add_test(tests, the_number_under_way_is_limited);
    tcase_add_test(tests, a_down_destination_is_paused_and_resumed);
    tcase_add_test(tests, a_destination_that_kills_its_sender_is_down);
    tcase_add_test(tests, hurry_skips_the_breaker_delay);
    tcase_add_test(tests, deliveries_fail_after_give_up_seconds);
    tcase_add_test(tests, a_stopped_sender_returns_its_deliveries);
    tcase_add_test(tests, a_new_configuration_is_followed);
    tcase_add_loop_test(tests, a_new_configuration_without_memory_is_followed_later, 0, 2 + (int)DESTINATIONS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

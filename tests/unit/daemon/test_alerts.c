/*
 * Alerts of the daemon, from its state to the lines of /readyz: ids, times, expiry, no file names.
 */
#include "service/daemon/alert_daemon.h"

#include "base/text.h"
#include "db/report.h"
#include "service/common/clock.h"
#include "service/common/wire/messages.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/executor.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/jobs/workers.h"
#include "service/daemon/pull/pull_scheduler.h"
#include "service/daemon/slurm/slurm_executor.h"
#include "service/web/pages/web_alerts.h"
#include "tests/unit/db/sample.h"

#include <errno.h>

static struct sample s;
static struct core core;
static struct conf conf;
static struct web_alerts web_alerts;

/* The web UI's end of the pipe, by --wrap. */
static int frames; /* number of frames, and the latest error of one */
static int frame_error;

bool __wrap_pool_ready(const struct pool *pool, int slot);
int __wrap_pool_send(struct pool *pool, int slot, struct proto_writer *writer);

bool
__wrap_pool_ready(const struct pool *pool, int slot)
{
    (void)pool;
    return slot == core.web;
}

int
__wrap_pool_send(struct pool *pool, int slot, struct proto_writer *writer)
{
    struct proto_stream stream = {0};
    struct proto_reader reader;
    (void)pool;
    ck_assert_int_eq(slot, core.web);
    ck_assert_int_eq(proto_finish(writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer->bytes, writer->size), 0);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    web_alerts_receive(&web_alerts, &reader, 5000);
    frame_error = proto_end(&reader);
    frames++;
    proto_stream_release(&stream);
    proto_release(writer);
    return 0;
}

static void
set_up(void)
{
    static const struct batch_events no_events = {0};
    static const struct pool_options no_children = {.program = "", .config_file = ""};
    sample_open(&s);
    core = (struct core){.root = s.folder, .conf = &conf, .queue = s.queue};
    web_alerts_clear(&web_alerts);
    ck_assert_int_eq(uv_loop_init(&core.loop), 0);
    due_init(&core.jobs_due, &core.loop);
    due_init(&core.deliveries_due, &core.loop);
    ck_assert_int_eq(batch_open(&core.loop, s.queue, &no_events, &core.batch), 0);
    ck_assert_int_eq(pool_open(&core.loop, &no_children, &core.pool), 0);
    core.web = pool_reserve(core.pool, "page", 0);
    ck_assert_int_eq(local_executor_open(&core, &core.local), 0);
    ck_assert_int_eq(slurm_executor_open(&core, &core.slurm), 0);
    core.executors[0] = local_executor_base(core.local);
    core.executors[1] = slurm_executor_base(core.slurm);
    ck_assert_int_eq(jobs_open(&core, core.executors, &core.jobs), 0);
    ck_assert_int_eq(workers_open(&core, &core.workers), 0);
    ck_assert_int_eq(deliveries_open(&core, &core.deliveries), 0);
    ck_assert_int_eq(pulls_open(&core, &core.pulls), 0);
}

static void
tear_down(void)
{
    jobs_close(core.jobs);
    local_executor_close(core.local);
    slurm_executor_close(core.slurm);
    workers_close(core.workers);
    deliveries_close(core.deliveries);
    pulls_close(core.pulls);
    batch_close(core.batch);
    pool_close(core.pool);
    uv_close((uv_handle_t *)&core.jobs_due.timer, NULL);
    uv_close((uv_handle_t *)&core.deliveries_due.timer, NULL);
    uv_run(&core.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&core.loop), 0);
    web_alerts_clear(&web_alerts);
    sample_close(&s);
}

static char readyz[2048];

/* Returns the text of /readyz this many milliseconds after the daemon's message. */
static const char *
readyz_after(int64_t millis, bool with_subject)
{
    struct text_stream stream;
    struct report *report;
    struct error error;
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
    web_alerts.made_ms = 0;
    ck_assert_int_eq(web_alerts_make(&web_alerts, &conf, report, 5000 + millis, &error), 0);
    ck_assert_int_eq(text_open(&stream), 0);
    const bool is_ready = web_alerts_write(&web_alerts.list, with_subject, stream.out);
    ck_assert_int_eq(text_close(&stream), 0);
    ck_assert_int_eq(is_ready, strncmp(stream.bytes, "ok\n", 3) == 0);
    snprintf(readyz, sizeof readyz, "%s", stream.bytes);
    free(stream.bytes);
    report_close(report);
    return readyz;
}

static const char *
message(void)
{
    alert_daemon_send(&core);
    ck_assert_int_eq(frame_error, 0);
    return readyz_after(0, true);
}

START_TEST(broken_conditions_are_reported)
{
    ck_assert_str_eq(message(), "starting: no files are received yet (broken)\n");
    core.reception.open = true;
    ck_assert_str_eq(message(), "ok\n");
    core.disk_low = core.db_failed = core.draining = true;
    core.disk_low_since_ms = SAMPLE_NOW + 4000;
    ck_assert_str_eq(message(), "stopping: noctuled is stopping (broken)\n"
                                "database: the database cannot be used (broken)\n"
                                "disk: less than min_free_mib is free, reception is stopped "
                                "(broken, since 2026-01-31T02:03:24.000Z)\n");
    core.disk_low = core.db_failed = core.draining = false;
    ck_assert_str_eq(message(), "ok\n");
}

END_TEST

/* /readyz needs no token, so its text must not contain file names. */
START_TEST(no_file_is_named)
{
    struct alerts alerts = {0};
    core.reception.since_ms = SAMPLE_NOW + 4000;
    strcpy(core.reception.problem, "port 104 is not open; inbox /home/jane: it is gone");
    ck_assert_str_eq(message(), "reception: a port is not open, or an inbox is not watched "
                                "(broken, since 2026-01-31T02:03:24.000Z)\n");
    alert_daemon_add(&core, &alerts);
    const struct alert *alert = alerts_find(&alerts, "reception");
    ck_assert_ptr_nonnull(alert);
    ck_assert_str_eq(alert->text, core.reception.problem);
    ck_assert_int_eq(alert->size, 2); /* a second one is worse */
    alerts_clear(&alerts);
}

END_TEST

START_TEST(subjects_need_the_token)
{
    struct alerts alerts = {0};
    alerts_add(&alerts, ALERT_courier, "PACS", ALERT_ATTENTION, 0, "the courier for PACS died");
    web_alerts.lines = alerts_to_lines(&alerts);
    web_alerts.received_ms = 5000;
    alerts_clear(&alerts);
    ck_assert_str_eq(readyz_after(0, true),
                     "ok\ncourier:PACS: a process that delivers or retrieves keeps ending or does "
                     "not respond (attention)\n");
    ck_assert_str_eq(readyz_after(0, false),
                     "ok\ncourier: a process that delivers or retrieves keeps ending or does not "
                     "respond (attention)\n");
}

END_TEST

START_TEST(a_silent_daemon_is_an_alert)
{
    static const char silent[] = "daemon: noctuled does not respond (broken)\n";
    ck_assert_str_eq(readyz_after(0, true), silent);
    core.reception.open = true;
    ck_assert_str_eq(message(), "ok\n");
    ck_assert_str_eq(readyz_after(10000, true), "ok\n");
    ck_assert_str_eq(readyz_after(10001, true), silent);
}

END_TEST

START_TEST(without_a_web_ui_no_alerts_are_sent)
{
    frames = 0;
    const int page = core.web;
    core.web = -1;
    alert_daemon_send(&core);
    core.web = page;
    ck_assert_int_eq(frames, 0);
}

END_TEST

static struct report_ack found;

static int
take_ack(void *context, const struct report_ack *ack)
{
    found = *ack;
    ++*(int *)context;
    return 0;
}

/* Returns the number of acknowledgements in the database. */
static int
acks(void)
{
    struct report *report;
    struct error error;
    int count = 0;
    ck_assert_int_eq(batch_commit(core.batch), 0);
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
    ck_assert_int_eq(report_each_ack(report, take_ack, &count, &error), 0);
    report_close(report);
    return count;
}

static int
acknowledge(const char *alert, bool undo)
{
    struct error error;
    const struct message_ack request = {.alert = alert, .reason = "known", .login = "", .undo = undo};
    ck_assert(core_change(&core));
    return alert_daemon_acknowledge(&core, &request, "jane", &error);
}

START_TEST(an_acknowledgement_ends_with_the_condition)
{
    core.reception.open = true;
    strcpy(core.reception.problem, "port 104 is not open");
    ck_assert_int_eq(acknowledge("nothing", false), -ENOENT);
    ck_assert_int_eq(acknowledge("reception", false), 0);
    ck_assert_int_eq(acks(), 1);
    ck_assert_str_eq(message(), "reception: a port is not open, or an inbox is not watched "
                                "(broken, acknowledged)\n");
    strcpy(core.reception.problem, "port 104 is not open; port 2762 is not open"); /* worse */
    ck_assert_str_eq(message(), "reception: a port is not open, or an inbox is not watched (broken)\n");
    *core.reception.problem = '\0';
    /* after a start the condition may reappear within a minute */
    core.started_ms = clock_steady_ms();
    alert_daemon_tick(&core);
    ck_assert_int_eq(acks(), 1);
    core.started_ms = clock_steady_ms() - 61000;
    alert_daemon_tick(&core);
    ck_assert_int_eq(acks(), 0);
    core.disk_low = true;
    ck_assert_int_eq(acknowledge("disk", false), -EPERM);
    ck_assert_int_eq(acknowledge("disk", true), -ENOENT);
}

END_TEST

SAMPLE_MAIN("daemon_alerts", set_up, tear_down, broken_conditions_are_reported, no_file_is_named,
            subjects_need_the_token, a_silent_daemon_is_an_alert, without_a_web_ui_no_alerts_are_sent,
            an_acknowledgement_ends_with_the_condition)

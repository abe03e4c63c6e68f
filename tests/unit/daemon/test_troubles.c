/* What the daemon tells its page of how it is, from the one end to the other: what /readyz says of it, and to whom. */
#include "service/daemon/troubles.h"

#include "base/text.h"
#include "service/daemon/cluster/cluster.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/jobs/local_executor.h"
#include "service/daemon/jobs/workers.h"
#include "service/daemon/pull/pulls.h"
#include "service/page/condition.h"
#include "tests/unit/db/sample.h"

#include <errno.h>

static struct sample s;
static struct core core;
static struct conf conf;
static struct condition condition;

/* The page's end, by --wrap. */
static int heard; /* frames; the latest error of one */
static int heard_error;

bool __wrap_pool_ready(const struct pool *pool, int slot);
int __wrap_pool_send(struct pool *pool, int slot, struct proto_writer *writer);

bool
__wrap_pool_ready(const struct pool *pool, int slot)
{
    (void)pool;
    return slot == core.page;
}

int
__wrap_pool_send(struct pool *pool, int slot, struct proto_writer *writer)
{
    struct proto_stream stream = {0};
    struct proto_reader reader;
    (void)pool;
    ck_assert_int_eq(slot, core.page);
    ck_assert_int_eq(proto_finish(writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer->bytes, writer->size), 0);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    condition_hear(&condition, &reader, 5000);
    heard_error = proto_end(&reader);
    heard++;
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
    condition = (struct condition){0};
    ck_assert_int_eq(uv_loop_init(&core.loop), 0);
    due_init(&core.jobs_due, &core.loop);
    due_init(&core.deliveries_due, &core.loop);
    ck_assert_int_eq(batch_open(&core.loop, s.queue, &no_events, &core.batch), 0);
    ck_assert_int_eq(pool_open(&core.loop, &no_children, &core.pool), 0);
    core.page = pool_reserve(core.pool, "page", 0);
    ck_assert_int_eq(local_executor_open(&core, &core.local), 0);
    ck_assert_int_eq(cluster_open(&core, &core.cluster), 0);
    core.executors[0] = local_executor_base(core.local);
    core.executors[1] = cluster_base(core.cluster);
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
    cluster_close(core.cluster);
    workers_close(core.workers);
    deliveries_close(core.deliveries);
    pulls_close(core.pulls);
    batch_close(core.batch);
    pool_close(core.pool);
    uv_close((uv_handle_t *)&core.jobs_due.timer, NULL);
    uv_close((uv_handle_t *)&core.deliveries_due.timer, NULL);
    uv_run(&core.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&core.loop), 0);
    sample_close(&s);
}

static char said[2048];

/* What /readyz says so long after the daemon spoke; "": it is ready. */
static const char *
said_after(int64_t millis)
{
    struct text_stream stream;
    ck_assert_int_eq(text_open(&stream), 0);
    const bool any = condition_write(&condition, 5000 + millis, stream.out);
    ck_assert_int_eq(text_close(&stream), 0);
    ck_assert_int_eq(any, stream.size > 0);
    snprintf(said, sizeof said, "%s", stream.bytes);
    free(stream.bytes);
    return said;
}

static const char *
told(void)
{
    troubles_tell_page(&core);
    ck_assert_int_eq(heard_error, 0);
    return said_after(0);
}

START_TEST(what_is_broken_is_told)
{
    ck_assert_str_eq(told(), "starting: nothing is taken in yet\n");
    core.reception.open = true;
    ck_assert_str_eq(told(), "");
    core.disk_low = core.trouble = core.draining = true;
    core.disk_low_since_ms = SAMPLE_NOW + 4000;
    ck_assert_str_eq(told(), "stopping: noctuled is stopping\n"
                             "database: the database cannot be written\n"
                             "disk: less than min_free_mib is free, and nothing is taken in "
                             "(since 2026-01-31T02:03:24.000Z)\n");
    core.disk_low = core.trouble = core.draining = false;
    ck_assert_str_eq(told(), "");
}

END_TEST

/* Whoever asks is not asked for a token. */
START_TEST(which_file_it_is_is_not_told)
{
    core.reception.since_ms = SAMPLE_NOW + 4000;
    strcpy(core.reception.trouble, "inbox /home/jane: it is gone");
    ck_assert_str_eq(told(), "reception: a port is not open, or an inbox is not watched "
                             "(since 2026-01-31T02:03:24.000Z)\n");
    char *text = troubles_to_text(&core);
    ck_assert_ptr_nonnull(strstr(text, "inbox /home/jane: it is gone\n"));
    free(text);
}

END_TEST

START_TEST(what_was_told_long_ago_does_not_hold)
{
    static const char silent[] = "daemon: noctuled has not told in the last 10 s how it is\n";
    ck_assert_str_eq(said_after(0), silent);
    core.reception.open = true;
    ck_assert_str_eq(told(), "");
    ck_assert_str_eq(said_after(10000), "");
    ck_assert_str_eq(said_after(10001), silent);
}

END_TEST

START_TEST(without_a_page_nobody_is_told)
{
    heard = 0;
    const int page = core.page;
    core.page = -1;
    troubles_tell_page(&core);
    core.page = page;
    ck_assert_int_eq(heard, 0);
}

END_TEST

START_TEST(what_no_daemon_says_is_refused)
{
    static const int64_t kinds[][2] = {{-1, 0}, {TROUBLE_KINDS, 0}, {0, 0}};
    core.reception.open = true;
    told();
    for (size_t i = 0; i < 3; i++) {
        struct proto_writer writer;
        message_write_condition(&writer, NULL);
        for (int row = 0; row < 2; row++)
            message_add_hindrance(&writer, &(struct message_hindrance){.kind = kinds[i][row]});
        __wrap_pool_send(core.pool, core.page, &writer);
        ck_assert_int_eq(heard_error, -EBADMSG);
        ck_assert_str_eq(said_after(0), "");
    }
}

END_TEST

/* The list for administrators has each of them. */
START_TEST(each_kind_is_in_the_documents)
{
    static const char *const kinds[] = {
#define TROUBLE(kind, message) #kind,
#include "service/common/troubles.def"
    };
    char *text = NULL, row[64];
    size_t size = 0;
    FILE *file = fopen(NOCTULE_SOURCE_DIR "/docs/operations.md", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(getdelim(&text, &size, '\0', file), 0);
    fclose(file);
    for (int i = 0; i < TROUBLE_KINDS; i++) {
        snprintf(row, sizeof row, "\n| `%s` | ", kinds[i]);
        ck_assert_msg(strstr(text, row), "docs/operations.md, /readyz: the row of %s", kinds[i]);
    }
    free(text);
}

END_TEST

SAMPLE_MAIN("daemon_troubles", set_up, tear_down, what_is_broken_is_told,
            which_file_it_is_is_not_told, what_was_told_long_ago_does_not_hold,
            without_a_page_nobody_is_told, what_no_daemon_says_is_refused,
            each_kind_is_in_the_documents)

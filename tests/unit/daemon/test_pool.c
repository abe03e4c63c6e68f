/*
 * Child processes that behave, and some that do not. This program is its own child: with --role it
 * behaves as the role's name says.
 */
#include "service/daemon/child_pool.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "tests/unit/starved_malloc.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ----------------------------------------------------------------------- the children ------ */

static void
child_send(struct proto_writer *writer)
{
    if (proto_finish(writer) || send(3, writer->bytes, writer->size, MSG_NOSIGNAL) < 0)
        _exit(90);
    proto_release(writer);
}

static void
child_hello(const char *role, const char *build)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_HELLO);
    proto_put_str(&writer, role);
    proto_put_str(&writer, build);
    child_send(&writer);
}

static void
child_write(enum proto_type type)
{
    struct proto_writer writer;
    proto_start(&writer, type);
    child_send(&writer);
}

/* Waits for a frame; exits when the pipe ends. */
static enum proto_type
child_read(void)
{
    static struct proto_stream stream;
    struct proto_reader reader;
    char bytes[512];
    while (proto_next(&stream, &reader) == 0) {
        ssize_t size = recv(3, bytes, sizeof bytes, 0);
        if (size <= 0)
            _exit(0);
        if (proto_feed(&stream, bytes, (size_t)size))
            _exit(91);
    }
    return reader.type;
}

static void
child_wait_for_the_end(void)
{
    for (;;)
        child_read();
}

/* Sends HELLO, answers each PING with an ANSWER, exits at DRAIN. */
static void
child_good(const char *role)
{
    child_hello(role, proto_build_id());
    for (;;) {
        enum proto_type type = child_read();
        if (type == PROTO_DRAIN)
            _exit(0);
        if (type == PROTO_PING)
            child_write(PROTO_ANSWER);
    }
}

/* Sends HELLO, answers each RELOAD with an ANSWER, sends RENEW at a PING and exits at DRAIN. */
static void
child_reloads(const char *role)
{
    child_hello(role, proto_build_id());
    for (;;) {
        enum proto_type type = child_read();
        if (type == PROTO_DRAIN)
            _exit(0);
        if (type == PROTO_RELOAD)
            child_write(PROTO_ANSWER);
        if (type != PROTO_PING)
            continue;
        struct proto_writer writer;
        message_write_renew(&writer, &(struct message_renew){.why = "it is old"});
        child_send(&writer);
        child_write(PROTO_ANSWER); /* the reply to its current work */
    }
}

static void
run_child(const char *role)
{
    if (strcmp(role, "reloads") == 0)
        child_reloads(role);
    if (strcmp(role, "good") == 0 || strcmp(role, "good2") == 0)
        child_good(role);
    if (strcmp(role, "silent") == 0)
        child_wait_for_the_end();
    if (strcmp(role, "exits") == 0)
        _exit(7);
    if (strcmp(role, "hangs-up") == 0) {
        child_hello(role, proto_build_id());
        close(3);
        pause();
    }
    if (strcmp(role, "shares") == 0)
        _exit(0); /* with a share: see main() */
    if (strcmp(role, "other-build") == 0)
        child_hello(role, "0123456789");
    if (strcmp(role, "other-role") == 0)
        child_hello("intake", proto_build_id());
    if (strcmp(role, "no-hello") == 0)
        child_write(PROTO_ALIVE);
    if (strcmp(role, "long-hello") == 0) {
        struct proto_writer writer;
        proto_start(&writer, PROTO_HELLO);
        proto_put_str(&writer, role);
        proto_put_str(&writer, proto_build_id());
        proto_put_i64(&writer, 1);
        child_send(&writer);
    }
    if (strcmp(role, "garbage") == 0) {
        child_hello(role, proto_build_id());
        if (write(3, "\xff\xff\xff\xff\xff\xff", 6) != 6)
            _exit(92);
    }
    if (strcmp(role, "bad-frame") == 0) {
        child_hello(role, proto_build_id());
        struct proto_writer writer;
        proto_start(&writer, PROTO_ANSWER);
        proto_put_i64(&writer, 1); /* the handler reads no field: bytes are left over */
        child_send(&writer);
        child_write(PROTO_ANSWER); /* must be ignored */
    }
    if (strcmp(role, "says-and-dies") == 0) {
        child_hello(role, proto_build_id());
        child_write(PROTO_ANSWER);
        raise(SIGKILL);
    }
    if (strcmp(role, "hangs-up") == 0) {
        child_hello(role, proto_build_id());
        close(3);
        for (;;)
            pause();
    }
    if (strcmp(role, "falls-silent") == 0) {
        child_hello(role, proto_build_id());
        child_write(PROTO_ALIVE);
    }
    if (strcmp(role, "no-term") == 0) {
        signal(SIGTERM, SIG_IGN);
        child_hello(role, proto_build_id());
    }
    if (strcmp(role, "does-not-read") == 0) {
        child_hello(role, proto_build_id());
        for (;;)
            pause();
    }
    if (strcmp(role, "counts-files") == 0) {
        int open_files = 0;
        for (int fd = 4; fd < 64; fd++)
            open_files += fcntl(fd, F_GETFD) >= 0;
        _exit(open_files);
    }
    child_wait_for_the_end();
}

/* --------------------------------------------------------------------------- the pool ------ */

/* A child may take long to start on a busy machine, so only tests of these timers shorten them
 * (be_hasty). */
static struct pool_timing quick = {
    .hello = 60000, .silence = 60000, .term = 200, .young = 60000, .calm = 60000, .first_wait = 10, .longest_wait = 40};

static uv_loop_t loop;
static struct pool *pool;

static struct {
    int ready, frames, gone;
    struct pool_gone last;
    bool kill_on_frame;
} seen;

static void
on_time(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static void
on_ready(void *context, int slot)
{
    (void)context;
    (void)slot;
    seen.ready++;
}

static void
on_frame(void *context, int slot, struct proto_reader *reader)
{
    (void)context;
    ck_assert_int_eq(reader->type, PROTO_ANSWER);
    seen.frames++;
    if (seen.kill_on_frame)
        pool_kill(pool, slot, "the handler wants it");
}

static void
on_gone(void *context, int slot, const struct pool_gone *gone)
{
    (void)context;
    ck_assert(!pool_ready(pool, slot));
    seen.gone++;
    seen.last = *gone;
}

static void
set_up_pool(const struct pool_timing *timing)
{
    const struct pool_options options = {.program = "/proc/self/exe",
                                         .config_file = "/nowhere",
                                         .timing = *timing,
                                         .events = {on_ready, on_frame, on_gone, NULL}};
    memset(&seen, 0, sizeof seen);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(pool_open(&loop, &options, &pool), 0);
}

static void
set_up(void)
{
    set_up_pool(&quick);
}

#define turn_until(condition)                                                                                          \
    while (!(condition))                                                                                               \
    uv_run(&loop, UV_RUN_ONCE)

static void
tear_down(void)
{
    pool_drain(pool);
    pool_kill_all(pool, "the test is over");
    turn_until(pool_living(pool) == 0);
    pool_close(pool);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* Sets shorter limits, in milliseconds, for HELLO and for silence. */
static void
be_hasty(uint64_t hello, uint64_t silence)
{
    struct pool_timing hasty = quick;
    hasty.hello = hello;
    hasty.silence = silence;
    tear_down();
    set_up_pool(&hasty);
}

START_TEST(a_good_child_becomes_ready_answers_and_drains)
{
    int slot = pool_add(pool, "good", 3);
    ck_assert_int_eq(slot, 0);
    ck_assert_int_eq(pool_send_empty(pool, slot, PROTO_PING), -EPIPE);
    turn_until(seen.ready == 1);
    ck_assert(pool_ready(pool, slot));
    ck_assert_int_eq(pool_send_empty(pool, slot, PROTO_PING), 0);
    turn_until(seen.frames == 1);
    pool_drain(pool);
    ck_assert(!pool_ready(pool, slot));
    turn_until(pool_living(pool) == 0);
    ck_assert_int_eq(seen.gone, 1);
    ck_assert(seen.last.ordered && seen.last.was_ready);
    ck_assert_str_eq(seen.last.why, "");
    ck_assert_int_eq(seen.last.signal, 0);
}

END_TEST

START_TEST(a_restart_is_immediate)
{
    int slot = pool_add(pool, "good", 0);
    turn_until(seen.ready == 1);
    pool_fill(pool, slot, NULL);
    turn_until(seen.ready == 2);
    ck_assert_int_eq(seen.gone, 1);
    ck_assert(seen.last.ordered);
}

END_TEST

START_TEST(a_slot_is_filled_and_emptied)
{
    int slot = pool_reserve(pool, "shares", 0);
    ck_assert_uint_eq(pool_living(pool), 0);
    pool_fill(pool, slot, &(struct pool_device){"GPU-1", 17});
    turn_until(seen.gone == 1);
    ck_assert_int_eq(seen.last.exit_status, 17);
    pool_fill(pool, slot, &(struct pool_device){"GPU-1", 20});
    turn_until(seen.last.exit_status == 20);
    pool_fill(pool, slot, NULL); /* the next one is started without a device */
    turn_until(seen.last.exit_status == 0);
    pool_empty(pool, slot);
    turn_until(pool_living(pool) == 0);
    int gone = seen.gone;
    uv_timer_t timer;
    uv_timer_init(&loop, &timer);
    bool over = false;
    timer.data = &over;
    uv_timer_start(&timer, on_time, 2 * quick.longest_wait, 0);
    turn_until(over);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(seen.gone, gone);
}

END_TEST

START_TEST(an_unneeded_child_ends)
{
    int slot = pool_add(pool, "good", 0);
    turn_until(seen.ready == 1);
    pool_empty(pool, slot);
    turn_until(seen.gone == 1);
    ck_assert(seen.last.ordered);
    ck_assert_uint_eq(pool_living(pool), 0);
    pool_fill(pool, slot, NULL);
    turn_until(seen.ready == 2);
}

END_TEST

START_TEST(a_starting_child_can_be_replaced)
{
    be_hasty(300, quick.silence);
    int slot = pool_add(pool, "silent", 0);
    pool_fill(pool, slot, NULL);
    turn_until(seen.gone == 1);
    ck_assert(seen.last.ordered && !seen.last.was_ready);
    ck_assert_str_eq(seen.last.why, "a new one is to take its place");
    turn_until(seen.gone == 2);
    ck_assert(!seen.last.ordered); /* the second one is as silent, and had no order to end */
}

END_TEST

START_TEST(a_starting_child_gets_reload_when_ready)
{
    int slot = pool_add(pool, "reloads", 0);
    pool_set_config(pool, "/elsewhere", "root = \"/\";");
    pool_reload(pool, slot);
    turn_until(seen.frames == 1);
    pool_reload(pool, slot);
    turn_until(seen.frames == 2);
    ck_assert_int_eq(seen.gone, 0);
    /* the next has read the new file, and gets no RELOAD */
    pool_kill(pool, slot, "the test wants it");
    turn_until(seen.ready == 2);
    pool_send_empty(pool, slot, PROTO_PING);
    turn_until(seen.frames == 3);
}

END_TEST

/* There is no memory for the frame: the next child has read the new configuration. */
START_TEST(a_child_that_cannot_be_sent_reload_is_replaced)
{
    int slot = pool_add(pool, "reloads", 0);
    turn_until(seen.ready == 1);
    hit = false;
    countdown = 1 + _i;
    pool_reload(pool, slot);
    countdown = 0;
    turn_until(hit ? seen.ready == 2 : seen.frames == 1);
    ck_assert_int_eq(seen.frames, !hit);
}

END_TEST

static void
on_any_trouble(void *context, const struct pool_alert *problem)
{
    (void)problem;
    *(bool *)context = true;
}

START_TEST(a_child_that_sends_renew_is_replaced)
{
    int slot = pool_add(pool, "reloads", 0);
    for (int times = 1; times <= 4; times++) { /* more often than children may die without a delay */
        turn_until(seen.ready == times);
        pool_send_empty(pool, slot, PROTO_PING);
        turn_until(seen.gone == times);
        ck_assert_int_eq(seen.frames, times); /* frames sent while it exits count */
        ck_assert(seen.last.ordered && seen.last.was_ready);
        ck_assert_str_eq(seen.last.why, "");
    }
    turn_until(seen.ready == 5);
    bool problem = false;
    pool_each_alert(pool, on_any_trouble, &problem);
    ck_assert(!problem);
}

END_TEST

START_TEST(slots_are_independent)
{
    int first = pool_add(pool, "good", 0), second = pool_add(pool, "good2", 1);
    turn_until(seen.ready == 2);
    pool_kill(pool, first, "the test wants it");
    turn_until(seen.gone == 1);
    ck_assert(pool_ready(pool, second));
    turn_until(seen.ready == 3);
}

END_TEST

/* Each of these is killed before it is ready; `why` is the start of the reason. */
static const struct {
    const char *role, *why;
    bool was_ready;
} misfits[] = {
    {"silent", "no HELLO in time", false},
    {"exits", "", false},
    {"other-build", "it is of another build", false},
    {"other-role", "it did not begin with HELLO", false},
    {"no-hello", "it did not begin with HELLO", false},
    {"long-hello", "it did not begin with HELLO", false},
    {"garbage", "its frames are broken", true},
    {"bad-frame", "it sent a broken frame", true},
    {"falls-silent", "it gave no sign of life", true},
    {"hangs-up", "", true},
};

START_TEST(misbehaving_children_are_killed_and_replaced)
{
    be_hasty(strcmp(misfits[_i].role, "silent") == 0 ? 300 : quick.hello,
             strcmp(misfits[_i].role, "falls-silent") == 0 ? 400 : quick.silence);
    pool_add(pool, misfits[_i].role, 0);
    turn_until(seen.gone == 2);
    ck_assert_int_eq(seen.ready, misfits[_i].was_ready ? 2 : 0);
    ck_assert_int_eq(seen.last.was_ready, misfits[_i].was_ready);
    ck_assert(!seen.last.ordered);
    ck_assert_int_eq(strncmp(seen.last.why, misfits[_i].why, strlen(misfits[_i].why)), 0);
    ck_assert(*misfits[_i].why || !*seen.last.why);
    ck_assert_int_eq(seen.frames, strcmp(misfits[_i].role, "bad-frame") == 0 ? 2 : 0);
}

END_TEST

START_TEST(frames_sent_before_a_crash_are_processed)
{
    pool_add(pool, "says-and-dies", 0);
    turn_until(seen.gone == 1);
    ck_assert_int_eq(seen.frames, 1);
    ck_assert_int_eq(seen.last.signal, SIGKILL);
    ck_assert_str_eq(seen.last.why, "");
}

END_TEST

START_TEST(a_child_that_ignores_term_is_killed)
{
    int slot = pool_add(pool, "no-term", 0);
    turn_until(seen.ready == 1);
    pool_kill(pool, slot, "the test wants it");
    turn_until(seen.gone == 1);
    ck_assert_int_eq(seen.last.signal, SIGKILL);
    ck_assert_str_eq(seen.last.why, "the test wants it");
}

END_TEST

START_TEST(a_child_that_hangs_up_and_stays_is_killed)
{
    pool_add(pool, "hangs-up", 0);
    turn_until(seen.gone == 1);
    ck_assert_int_eq(seen.last.signal, SIGKILL);
}

END_TEST

START_TEST(a_child_that_does_not_read_is_killed)
{
    int slot = pool_add(pool, "does-not-read", 0);
    turn_until(seen.ready == 1);
    char *text = calloc(1, 1u << 20);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', (1u << 20) - 1);
    for (int i = 0; i < 40; i++) {
        struct proto_writer writer;
        proto_start(&writer, PROTO_RELOAD);
        proto_put_str(&writer, text);
        pool_send(pool, slot, &writer);
    }
    free(text);
    turn_until(seen.gone == 1);
    ck_assert_str_eq(seen.last.why, "it does not read its messages");
}

END_TEST

START_TEST(a_handler_may_kill_its_child)
{
    seen.kill_on_frame = true;
    int slot = pool_add(pool, "good", 0);
    turn_until(seen.ready == 1);
    pool_send_empty(pool, slot, PROTO_PING);
    turn_until(seen.gone == 1);
    ck_assert_str_eq(seen.last.why, "the handler wants it");
}

END_TEST

START_TEST(a_missing_program_is_retried)
{
    const struct pool_options options = {.program = "/nowhere/noctuled",
                                         .config_file = "/nowhere",
                                         .timing = quick,
                                         .events = {on_ready, on_frame, on_gone, NULL}};
    tear_down();
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(pool_open(&loop, &options, &pool), 0);
    pool_add(pool, "good", 0);
    uint64_t begin = uv_now(&loop);
    turn_until(uv_now(&loop) - begin > 100);
    ck_assert_int_eq(seen.ready, 0);
    ck_assert_uint_eq(pool_living(pool), 0);
}

END_TEST

static struct {
    int count;
    struct pool_alert last;
} message;

static void
on_db_failure(void *context, const struct pool_alert *problem)
{
    ck_assert_ptr_eq(context, pool);
    message.count++;
    message.last = *problem;
}

/* Returns the alert text of the pool's only child; "" if it is well. */
static const char *
problem(void)
{
    message.count = 0;
    pool_each_alert(pool, on_db_failure, pool);
    ck_assert_int_le(message.count, 1);
    return message.count ? message.last.text : "";
}

START_TEST(repeated_deaths_raise_an_alert_with_the_reason)
{
    const int64_t before = clock_unix_ms();
    pool_add(pool, "good", 0);
    turn_until(seen.ready == 1);
    pool_add(pool, "exits", 7);
    turn_until(seen.gone == 3);
    ck_assert_ptr_nonnull(strstr(problem(), "died 3 times, the last time with exit status 7"));
    ck_assert_str_eq(message.last.role, "exits");
    ck_assert_int_eq(message.last.number, 7);
    ck_assert(!message.last.works);
    ck_assert_int_ge(message.last.since_ms, before);
    ck_assert_int_le(message.last.since_ms, clock_unix_ms());
}

END_TEST

START_TEST(one_death_and_a_restart_raise_no_alert)
{
    int slot = pool_add(pool, "says-and-dies", 0);
    turn_until(seen.gone == 1);
    ck_assert_ptr_nonnull(strstr(problem(), "died 1 time, the last time by signal 9"));
    turn_until(seen.gone >= 2 && seen.ready >= 2);
    pool_empty(pool, slot);
    ck_assert_str_eq(problem(), "");
}

END_TEST

START_TEST(a_pause_of_the_machine_ends_no_child)
{
    be_hasty(quick.hello, 400);
    int slot = pool_add(pool, "good", 3);
    turn_until(seen.ready == 1);
    ck_assert_int_eq(pool_send_empty(pool, slot, PROTO_PING), 0);
    usleep(1200 * 1000); /* the answer waits in the pipe while the loop stands still */
    turn_until(seen.frames == 1 || seen.gone == 1);
    ck_assert_int_eq(seen.gone, 0);
    ck_assert(pool_ready(pool, slot));
}

END_TEST

START_TEST(silence_raises_an_alert_before_the_kill)
{
    be_hasty(quick.hello, 2000);
    bool ticked = false;
    uv_timer_t tick; /* keeps the loop running */
    uv_timer_init(&loop, &tick);
    tick.data = &ticked;
    uv_timer_start(&tick, on_time, 5, 5);
    pool_add(pool, "falls-silent", 0);
    turn_until(seen.ready == 1);
    ck_assert_str_eq(problem(), "");
    turn_until(*problem());
    ck_assert_int_eq(seen.gone, 0);
    ck_assert_ptr_nonnull(strstr(message.last.text, "hangs: no message for "));
    ck_assert(!message.last.works);
    turn_until(seen.gone == 1);
    ck_assert_ptr_nonnull(strstr(problem(), "died 1 time, the last time it was ended"));
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}

END_TEST

START_TEST(the_alert_of_a_hang_up_has_no_empty_reason)
{
    pool_add(pool, "hangs-up", 0);
    turn_until(*problem());
    ck_assert_str_eq(message.last.text, "is exiting");
    turn_until(seen.gone == 1);
}

END_TEST

START_TEST(only_fd_3_is_inherited)
{
    ck_assert_int_ge(open("/dev/null", O_RDONLY | O_CLOEXEC), 4);
    pool_add(pool, "good", 0);
    pool_add(pool, "counts-files", 1);
    turn_until(seen.gone == 1);
    ck_assert_int_eq(seen.last.exit_status, 0);
}

END_TEST

START_TEST(draining_stops_replacements)
{
    pool_add(pool, "exits", 0);
    turn_until(seen.gone == 1);
    pool_drain(pool);
    turn_until(pool_living(pool) == 0);
    int gone = seen.gone;
    uint64_t begin = uv_now(&loop);
    while (uv_now(&loop) - begin < 200 && uv_run(&loop, UV_RUN_ONCE))
        ck_assert_int_eq(seen.gone, gone);
}

END_TEST

START_TEST(delays_grow_for_children_that_keep_dying)
{
    const struct pool_timing timing = {.first_wait = 250, .longest_wait = 30000};

    static const struct {
        bool was_ready;
        int deaths;
        uint64_t wait;
    } cases[] = {
        {false, 1, 250},    {false, 2, 500},         {false, 3, 1000},  {false, 7, 16000}, {false, 8, 30000},
        {false, 99, 30000}, {false, 1 << 30, 30000}, {true, 0, 0},      {true, 1, 0},      {true, 2, 0},
        {true, 3, 250},     {true, 4, 500},          {true, 50, 30000}, {false, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_uint_eq(pool_wait(&timing, cases[i].was_ready, cases[i].deaths), cases[i].wait);
}

END_TEST

int
main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc > 10 && strcmp(argv[2], "shares") == 0 && strcmp(argv[7], "--device") == 0 &&
        strcmp(argv[8], "GPU-1") == 0 && strcmp(argv[9], "--share") == 0)
        return atoi(argv[10]);
    if (argc > 2 && strcmp(argv[1], "--role") == 0)
        run_child(argv[2]);
    log_open("test", "error");
    /* descriptors left open by the caller of this test are not the pool's */
    close_range(3, ~0u, 0);
    Suite *suite = suite_create("service_pool");
    TCase *tests = tcase_create("pool");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_good_child_becomes_ready_answers_and_drains);
    tcase_add_test(tests, a_restart_is_immediate);
    tcase_add_test(tests, a_slot_is_filled_and_emptied);
    tcase_add_test(tests, an_unneeded_child_ends);
    tcase_add_test(tests, a_starting_child_can_be_replaced);
    tcase_add_test(tests, a_starting_child_gets_reload_when_ready);
    tcase_add_loop_test(tests, a_child_that_cannot_be_sent_reload_is_replaced, 0, 4);
    tcase_add_test(tests, a_child_that_sends_renew_is_replaced);
    tcase_add_test(tests, slots_are_independent);
    tcase_add_loop_test(tests, misbehaving_children_are_killed_and_replaced, 0, sizeof misfits / sizeof misfits[0]);
    tcase_add_test(tests, frames_sent_before_a_crash_are_processed);
    tcase_add_test(tests, a_child_that_ignores_term_is_killed);
    tcase_add_test(tests, a_child_that_hangs_up_and_stays_is_killed);
    tcase_add_test(tests, a_child_that_does_not_read_is_killed);
    tcase_add_test(tests, a_handler_may_kill_its_child);
    tcase_add_test(tests, a_missing_program_is_retried);
    tcase_add_test(tests, repeated_deaths_raise_an_alert_with_the_reason);
    tcase_add_test(tests, one_death_and_a_restart_raise_no_alert);
    tcase_add_test(tests, a_pause_of_the_machine_ends_no_child);
    tcase_add_test(tests, silence_raises_an_alert_before_the_kill);
    tcase_add_test(tests, the_alert_of_a_hang_up_has_no_empty_reason);
    tcase_add_test(tests, only_fd_3_is_inherited);
    tcase_add_test(tests, draining_stops_replacements);
    tcase_add_test(tests, delays_grow_for_children_that_keep_dying);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

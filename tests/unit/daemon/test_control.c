/*
 * The control socket: requests and replies, and untrusted clients.
 */
#include "service/daemon/control.h"

#include "service/common/log.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char root[64], socket_path[128];
static uv_loop_t loop;
static struct control *control;

static struct {
    int requests;
    struct control_request last;
    char series[128];
    int64_t client;
    bool answer;
} seen;

static void
on_request(void *context, int64_t client, const struct control_request *request)
{
    (void)context;
    seen.requests++;
    static const struct message_answer no_job = {.status = -ENOENT, .message = "no such job"};
    seen.last = *request;
    if (request->type == PROTO_COMPLETE)
        snprintf(seen.series, sizeof seen.series, "%s", request->message.complete.series_uid);
    seen.client = client;
    if (seen.answer)
        control_answer(control, client, &no_job);
}

static const struct control_events events = {on_request, NULL};

static void
set_up(void)
{
    char folder[128];
    strcpy(root, "/tmp/noctule-test-control-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(folder, sizeof folder, "%s/run", root);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    snprintf(socket_path, sizeof socket_path, "%s/run/control.sock", root);
    memset(&seen, 0, sizeof seen);
    seen.answer = true;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(control_open(&loop, root, &events, &control), 0);
}

static void
tear_down(void)
{
    char folder[128];
    control_close(control);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_int_lt(access(socket_path, F_OK), 0);
    snprintf(folder, sizeof folder, "%s/run", root);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(rmdir(root), 0);
}

static int
connect_client(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void
send_frame(int fd, struct proto_writer *writer)
{
    ck_assert_int_eq(proto_finish(writer), 0);
    ck_assert_int_eq(send(fd, writer->bytes, writer->size, MSG_NOSIGNAL), (ssize_t)writer->size);
    proto_release(writer);
}

/* Runs the loop until the client has a reply (returns 1) or is disconnected (0). */
static int
read_answer(int fd, int64_t *status, char *message, size_t message_size)
{
    struct proto_stream stream = {0};
    struct proto_reader reader;
    int got = 0;
    while (got == 0) {
        char bytes[512];
        uv_run(&loop, UV_RUN_NOWAIT);
        ssize_t size = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (size == 0 || (size < 0 && errno == ECONNRESET))
            break;
        if (size > 0)
            ck_assert_int_eq(proto_feed(&stream, bytes, (size_t)size), 0);
        got = proto_next(&stream, &reader);
    }
    if (got == 1) {
        ck_assert_int_eq(reader.type, PROTO_ANSWER);
        struct message_answer answer;
        ck_assert_int_eq(message_read_answer(&reader, &answer), 0);
        *status = answer.status;
        snprintf(message, message_size, "%s", answer.message);
    }
    proto_stream_release(&stream);
    return got;
}

static void
assert_works(void)
{
    int64_t status;
    char message[64];
    struct proto_writer writer;
    int fd = connect_client();
    proto_start(&writer, PROTO_PING);
    send_frame(fd, &writer);
    ck_assert_int_eq(read_answer(fd, &status, message, sizeof message), 1);
    close(fd);
}

START_TEST(requests_are_answered)
{
    static const struct {
        enum proto_type type;
        int64_t job;
        const char *series;
    } cases[] = {{PROTO_RETRY, 17, ""}, {PROTO_CANCEL, -1, ""}, {PROTO_COMPLETE, 0, "1.2.3"}, {PROTO_PING, 0, ""}};

    int fd = connect_client();
    for (int i = 0; i < 4; i++) {
        int64_t status;
        char message[64];
        struct proto_writer writer;
        if (cases[i].type == PROTO_COMPLETE)
            message_write_complete(&writer, &(struct message_complete){.series_uid = cases[i].series});
        else
            proto_start(&writer, cases[i].type);
        if (cases[i].type == PROTO_RETRY || cases[i].type == PROTO_CANCEL)
            proto_put_i64(&writer, cases[i].job);
        for (int flags = cases[i].type == PROTO_RETRY ? 3 : 0; flags > 0; flags--)
            proto_put_i64(&writer, 0);
        send_frame(fd, &writer);
        ck_assert_int_eq(read_answer(fd, &status, message, sizeof message), 1);
        ck_assert_int_eq(status, -ENOENT);
        ck_assert_str_eq(message, "no such job");
        ck_assert_int_eq(seen.requests, i + 1);
        ck_assert_int_eq(seen.last.type, cases[i].type);
        ck_assert_uint_eq(seen.last.user, getuid());
        if (cases[i].type == PROTO_RETRY)
            ck_assert_int_eq(seen.last.message.retry.job, cases[i].job);
        else if (cases[i].type == PROTO_CANCEL)
            ck_assert_int_eq(seen.last.message.cancel.job, cases[i].job);
        else if (cases[i].type == PROTO_COMPLETE)
            ck_assert_str_eq(seen.series, cases[i].series);
    }
    close(fd);
}

END_TEST

START_TEST(the_socket_is_the_owners_only)
{
    struct stat status;
    ck_assert_int_eq(stat(socket_path, &status), 0);
    ck_assert(S_ISSOCK(status.st_mode));
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
}

END_TEST

static const struct {
    const char *what, *bytes;
    size_t size;
} garbage[] = {
    {"absurd length", "\xff\xff\xff\xff\x01\x00", 6},
    {"no length", "\0\0\0\0\0\0", 6},
    {"text", "GET / HTTP/1.1\r\n\r\n", 18},
    {"unknown type", "\x02\0\0\0\xe7\x03", 6},
    {"a child's frame", "\x02\0\0\0\x02\0", 6},
    {"RETRY without a job", "\x02\0\0\0\x40\0", 6},
    {"RETRY with half a job", "\x06\0\0\0\x40\0\1\2\3\4", 10},
    {"PING with more", "\x03\0\0\0\x43\0x", 7},
    {"COMPLETE with a NUL", "\x09\0\0\0\x42\0\x03\0\0\0a\0b", 13},
    {"COMPLETE too long", "\x06\0\0\0\x42\0\xff\0\0\0", 10},
};

START_TEST(garbage_closes_only_its_connection)
{
    int64_t status;
    char message[64];
    int fd = connect_client();
    ck_assert_int_eq(send(fd, garbage[_i].bytes, garbage[_i].size, MSG_NOSIGNAL), (ssize_t)garbage[_i].size);
    ck_assert_msg(read_answer(fd, &status, message, sizeof message) == 0, "%s", garbage[_i].what);
    ck_assert_int_eq(seen.requests, 0);
    close(fd);
    assert_works();
}

END_TEST

START_TEST(a_reply_to_a_closed_client_is_dropped)
{
    struct proto_writer writer;
    seen.answer = false;
    int fd = connect_client();
    proto_start(&writer, PROTO_PING);
    send_frame(fd, &writer);
    while (seen.requests == 0)
        uv_run(&loop, UV_RUN_ONCE);
    int64_t gone = seen.client;
    close(fd);
    seen.answer = true;
    assert_works();
    ck_assert_int_ne(seen.client, gone);
    control_answer(control, gone, &(struct message_answer){.message = "too late"});
    control_answer(control, 4711, &(struct message_answer){.message = "nobody"});
}

END_TEST

/* Returns whether the client is disconnected. */
static bool
is_hung_up(int fd)
{
    char byte;
    uv_run(&loop, UV_RUN_NOWAIT);
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void
send_ping(int fd)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_PING);
    send_frame(fd, &writer);
}

START_TEST(new_clients_displace_idle_ones)
{
    int fds[140], hung_up = 0;
    seen.answer = false;
    for (int i = 0; i < 140; i++) {
        fds[i] = connect_client();
        uv_run(&loop, UV_RUN_NOWAIT); /* the backlog is shorter than this */
        if (i > 0)
            continue;
        send_ping(fds[0]); /* the first waits for a reply and must stay */
        while (seen.requests == 0)
            uv_run(&loop, UV_RUN_ONCE);
    }
    const int64_t first = seen.client;
    for (int i = 1; i < 140; i++)
        hung_up += is_hung_up(fds[i]);
    ck_assert_int_eq(hung_up, 140 - 128);
    for (int i = 1; i <= 140 - 128; i++)
        ck_assert_msg(is_hung_up(fds[i]), "client %d was silent for longest", i);
    seen.answer = true;
    assert_works(); /* a new client always gets a connection */
    control_answer(control, first, &(struct message_answer){.message = "late"});
    int64_t status;
    char message[64];
    ck_assert_int_eq(read_answer(fds[0], &status, message, sizeof message), 1);
    ck_assert_str_eq(message, "late");
    for (int i = 0; i < 140; i++)
        close(fds[i]);
    assert_works();
}

START_TEST(waiting_clients_are_closed_if_all_wait)
{
    int fds[128];
    seen.answer = false;
    for (int i = 0; i < 128; i++) {
        fds[i] = connect_client();
        send_ping(fds[i]);
        while (seen.requests <= i)
            uv_run(&loop, UV_RUN_ONCE);
    }
    seen.answer = true;
    assert_works();
    ck_assert(is_hung_up(fds[0]));
    for (int i = 0; i < 128; i++)
        close(fds[i]);
}

END_TEST

START_TEST(connections_wait_while_no_descriptor_is_left)
{
    struct rlimit usual, none;
    int64_t status;
    char message[64];
    int fd = connect_client();
    send_ping(fd);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){0, usual.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 3; i++)
        uv_run(&loop, UV_RUN_ONCE); /* accept() fails, then the listener pauses */
    ck_assert_int_eq(seen.requests, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
    ck_assert_int_eq(read_answer(fd, &status, message, sizeof message), 1);
    close(fd);
}

END_TEST

START_TEST(a_leftover_socket_is_replaced)
{
    char kept[128];
    snprintf(kept, sizeof kept, "%s/run/kept", root);
    ck_assert_int_eq(link(socket_path, kept), 0);
    control_close(control);
    ck_assert_int_eq(rename(kept, socket_path), 0); /* as left by a killed daemon */
    ck_assert_int_eq(control_open(&loop, root, &events, &control), 0);
    assert_works();
}

END_TEST

START_TEST(a_long_root_is_no_obstacle)
{
    char deep[512], run[600];
    control_close(control);
    snprintf(deep, sizeof deep, "%s/%0150d", root, 7);
    snprintf(run, sizeof run, "%s/run", deep);
    ck_assert_int_eq(mkdir(deep, 0700), 0);
    ck_assert_int_eq(mkdir(run, 0700), 0);
    ck_assert_int_eq(control_open(&loop, deep, &events, &control), 0);
    snprintf(run, sizeof run, "%s/run/control.sock", deep);
    ck_assert_int_eq(access(run, F_OK), 0);
    control_close(control);
    ck_assert_int_lt(access(run, F_OK), 0);
    snprintf(run, sizeof run, "%s/run", deep);
    ck_assert_int_eq(rmdir(run), 0);
    ck_assert_int_eq(rmdir(deep), 0);
    ck_assert_int_eq(control_open(&loop, root, &events, &control), 0);
}

END_TEST

START_TEST(a_missing_folder_is_an_error)
{
    struct control *other;
    ck_assert_int_eq(control_open(&loop, "/nowhere/at/all", &events, &other), -ENOENT);
}

END_TEST

int
main(void)
{
    signal(SIGPIPE, SIG_IGN);
    log_open("test", "error");
    Suite *suite = suite_create("service_control");
    TCase *tests = tcase_create("control");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, requests_are_answered);
    tcase_add_test(tests, the_socket_is_the_owners_only);
    tcase_add_loop_test(tests, garbage_closes_only_its_connection, 0, sizeof garbage / sizeof garbage[0]);
    tcase_add_test(tests, a_reply_to_a_closed_client_is_dropped);
    tcase_add_test(tests, new_clients_displace_idle_ones);
    tcase_add_test(tests, waiting_clients_are_closed_if_all_wait);
    tcase_add_test(tests, connections_wait_while_no_descriptor_is_left);
    tcase_add_test(tests, a_leftover_socket_is_replaced);
    tcase_add_test(tests, a_long_root_is_no_obstacle);
    tcase_add_test(tests, a_missing_folder_is_an_error);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

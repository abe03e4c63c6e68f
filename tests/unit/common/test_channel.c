/* Channels over socket pairs: partial reads, large frames, hang-ups, invalid data, peers that do
 * not read. */
#include "service/common/wire/channel.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct seen {
    int frames;
    int64_t last;
    size_t last_length;
    int ends;
    int status;
    bool close_in_frame;
};

static uv_loop_t loop;
static struct seen seen;
static struct channel *channel;
static int own, peer;

static void
on_frame(void *context, struct channel *from, struct proto_reader *reader)
{
    struct seen *s = context;
    s->last = proto_get_i64(reader);
    s->last_length = strlen(proto_get_str(reader));
    ck_assert_int_eq(proto_end(reader), 0);
    s->frames++;
    if (s->close_in_frame) {
        channel_close(from);
        channel = NULL;
    }
}

static void
on_end(void *context, struct channel *from, int status)
{
    struct seen *s = context;
    s->ends++;
    s->status = status;
    channel_close(from);
    channel = NULL;
}

static void
open_pair(void)
{
    static const struct channel_events events = {on_frame, on_end, &seen};
    int ends[2];
    memset(&seen, 0, sizeof seen);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    own = ends[0];
    peer = ends[1];
    ck_assert_int_eq(channel_open(&loop, ends[0], &events, &channel), 0);
}

static void
close_pair(void)
{
    channel_close(channel);
    channel = NULL;
    if (peer >= 0)
        close(peer);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0); /* no handle is left */
}

/* Runs the loop until the condition holds; ctest's time limit is the deadline. */
#define turn_until(condition)                                                                                          \
    while (!(condition))                                                                                               \
    uv_run(&loop, UV_RUN_ONCE)

static struct proto_writer
message(int64_t number, size_t length)
{
    struct proto_writer writer;
    char *text = malloc(length + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', length);
    text[length] = 0;
    proto_start(&writer, PROTO_RUN);
    proto_put_i64(&writer, number);
    proto_put_str(&writer, text);
    free(text);
    ck_assert_int_eq(proto_finish(&writer), 0);
    return writer;
}

START_TEST(a_frame_in_single_bytes_arrives_once)
{
    struct proto_writer writer = message(42, 10);
    for (size_t i = 0; i < writer.size; i++) {
        ck_assert_int_eq(seen.frames, 0);
        ck_assert_int_eq(write(peer, writer.bytes + i, 1), 1);
        uv_run(&loop, UV_RUN_ONCE);
    }
    proto_release(&writer);
    turn_until(seen.frames == 1);
    ck_assert_int_eq(seen.last, 42);
    ck_assert_uint_eq(seen.last_length, 10);
}

END_TEST

START_TEST(many_frames_in_one_write_arrive_in_order)
{
    for (int i = 0; i < 100; i++) {
        struct proto_writer writer = message(i, 3);
        ck_assert_int_eq(write(peer, writer.bytes, writer.size), (ssize_t)writer.size);
        proto_release(&writer);
    }
    turn_until(seen.frames == 100);
    ck_assert_int_eq(seen.last, 99);
}

END_TEST

/* Larger than any socket buffer, so both ends must write and read in parts. */
START_TEST(a_large_frame_arrives)
{
    static const struct channel_events events = {on_frame, on_end, &seen};
    struct channel *other;
    ck_assert_int_eq(channel_open(&loop, peer, &events, &other), 0);
    peer = -1;
    struct proto_writer writer = message(7, 4u << 20);
    size_t size = writer.size;
    ck_assert_int_eq(channel_send(other, &writer), 0);
    ck_assert_ptr_null(writer.bytes);
    ck_assert_uint_eq(channel_backlog(other), size);
    turn_until(seen.frames == 1);
    ck_assert_uint_eq(seen.last_length, 4u << 20);
    turn_until(channel_backlog(other) == 0);
    channel_close(other);
}

END_TEST

START_TEST(frames_before_a_hang_up_are_read)
{
    struct proto_writer writer = message(5, 1);
    ck_assert_int_eq(write(peer, writer.bytes, writer.size), (ssize_t)writer.size);
    proto_release(&writer);
    close(peer);
    peer = -1;
    turn_until(seen.ends == 1);
    ck_assert_int_eq(seen.frames, 1);
    ck_assert_int_eq(seen.status, 0);
}

END_TEST

START_TEST(sending_to_a_closed_peer_fails_without_a_signal)
{
    close(peer);
    peer = -1;
    struct proto_writer writer = message(1, 1);
    ck_assert_int_eq(channel_send(channel, &writer), 0);
    turn_until(seen.ends == 1);
    ck_assert_ptr_null(channel);
}

END_TEST

START_TEST(garbage_ends_the_channel_with_ebadmsg)
{
    ck_assert_int_eq(write(peer, "\xff\xff\xff\xff garbage", 12), 12);
    turn_until(seen.ends == 1);
    ck_assert_int_eq(seen.status, -EBADMSG);
    ck_assert_int_eq(seen.frames, 0);
}

END_TEST

START_TEST(closing_inside_a_frame_stops_the_rest)
{
    seen.close_in_frame = true;
    for (int i = 0; i < 3; i++) {
        struct proto_writer writer = message(i, 3);
        ck_assert_int_eq(write(peer, writer.bytes, writer.size), (ssize_t)writer.size);
        proto_release(&writer);
    }
    turn_until(seen.frames > 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(seen.frames, 1);
    ck_assert_int_eq(seen.ends, 0);
}

END_TEST

START_TEST(close_sends_queued_frames)
{
    size_t size = 0, got = 0;
    for (int i = 0; i < 3; i++) {
        struct proto_writer writer = message(i, 1u << 20);
        size += writer.size;
        ck_assert_int_eq(channel_send(channel, &writer), 0);
    }
    channel_close(channel);
    channel = NULL;
    while (got < size) {
        char buffer[65536];
        uv_run(&loop, UV_RUN_NOWAIT);
        ssize_t here = recv(peer, buffer, sizeof buffer, MSG_DONTWAIT);
        ck_assert(here > 0 || (here < 0 && errno == EAGAIN));
        got += here > 0 ? (size_t)here : 0;
    }
}

END_TEST

/* close_pair would hang if the peer could delay the close. */
START_TEST(a_peer_that_never_reads_does_not_delay_a_close)
{
    struct proto_writer writer = message(1, 4u << 20);
    ck_assert_int_eq(channel_send(channel, &writer), 0);
    channel_close(channel);
    channel = NULL;
    uint64_t before = uv_now(&loop);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_uint_le(uv_now(&loop) - before, 10000);
}

END_TEST

/* The peer is open and waits for the lost frame. */
START_TEST(a_failed_write_ends_the_channel)
{
    struct proto_writer writer = message(1, 10);
    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(other, 0);
    ck_assert_int_eq(dup2(other, own), own);
    close(other);
    ck_assert_int_eq(channel_send(channel, &writer), 0);
    turn_until(seen.ends == 1);
    ck_assert_int_lt(seen.status, 0);
}

END_TEST

START_TEST(an_oversized_message_is_not_sent)
{
    struct proto_writer writer = message(1, 1);
    char *text = calloc(1, PROTO_MAX_FRAME);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', PROTO_MAX_FRAME - 1);
    proto_put_str(&writer, text);
    free(text);
    ck_assert_int_eq(channel_send(channel, &writer), -EMSGSIZE);
    ck_assert_ptr_null(writer.bytes);
    ck_assert_uint_eq(channel_backlog(channel), 0);
}

END_TEST

int
main(void)
{
    signal(SIGPIPE, SIG_IGN);
    Suite *suite = suite_create("service_channel");
    TCase *tests = tcase_create("channel");
    tcase_add_checked_fixture(tests, open_pair, close_pair);
    tcase_add_test(tests, a_frame_in_single_bytes_arrives_once);
    tcase_add_test(tests, many_frames_in_one_write_arrive_in_order);
    tcase_add_test(tests, a_large_frame_arrives);
    tcase_add_test(tests, frames_before_a_hang_up_are_read);
    tcase_add_test(tests, sending_to_a_closed_peer_fails_without_a_signal);
    tcase_add_test(tests, garbage_ends_the_channel_with_ebadmsg);
    tcase_add_test(tests, closing_inside_a_frame_stops_the_rest);
    tcase_add_test(tests, close_sends_queued_frames);
    tcase_add_test(tests, a_peer_that_never_reads_does_not_delay_a_close);
    tcase_add_test(tests, a_failed_write_ends_the_channel);
    tcase_add_test(tests, an_oversized_message_is_not_sent);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

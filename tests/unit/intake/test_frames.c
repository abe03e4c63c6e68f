/*
 * test_frames.c - frames that cannot be sent. The daemon would wait for them forever, so the
 * receiver must exit, and a new process starts again.
 */
#include "service/receiver/receiver_private.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <sysexits.h>

static int send_error;

int __wrap_channel_send(struct channel *channel, struct proto_writer *writer);

int
__wrap_channel_send(struct channel *channel, struct proto_writer *writer)
{
    (void)channel;
    proto_release(writer);
    return send_error;
}

static const struct child_role role = {.name = "intake"};

/* Sends a frame that is rejected with `error`. Checks whether the receiver ends, and its status. */
static void
expect_end(int error, bool ends, int status)
{
    static struct receiver receiver;
    struct proto_writer writer;
    receiver = (struct receiver){.child.role = &role};
    ck_assert_int_eq(uv_loop_init(&receiver.loop), 0);
    uv_timer_init(&receiver.loop, &receiver.drain);
    send_error = error;
    proto_start(&writer, PROTO_ASK_KNOWN);
    receiver_send_frame(&receiver, &writer);
    ck_assert_int_eq(uv_is_active((uv_handle_t *)&receiver.drain), ends);
    ck_assert_int_eq(child_status(&receiver.child), status);
    uv_close((uv_handle_t *)&receiver.drain, NULL);
    uv_run(&receiver.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&receiver.loop), 0);
}

START_TEST(an_unsendable_frame_ends_the_receiver)
{
    expect_end(0, false, EXIT_SUCCESS);
    expect_end(-EPIPE, false, EXIT_SUCCESS);
    expect_end(-ENOMEM, true, EX_TEMPFAIL);
    expect_end(-EMSGSIZE, true, EXIT_FAILURE);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("intake_frames");
    TCase *tests = tcase_create("frames");
    tcase_add_test(tests, an_unsendable_frame_ends_the_receiver);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

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
    static struct intake intake;
    struct proto_writer writer;
    intake = (struct intake){.child.role = &role};
    ck_assert_int_eq(uv_loop_init(&intake.loop), 0);
    uv_timer_init(&intake.loop, &intake.drain);
    send_error = error;
    proto_start(&writer, PROTO_ASK_KNOWN);
    intake_send_frame(&intake, &writer);
    ck_assert_int_eq(uv_is_active((uv_handle_t *)&intake.drain), ends);
    ck_assert_int_eq(child_status(&intake.child), status);
    uv_close((uv_handle_t *)&intake.drain, NULL);
    uv_run(&intake.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&intake.loop), 0);
}

START_TEST(what_cannot_be_told_ends_the_intake)
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
    tcase_add_test(tests, what_cannot_be_told_ends_the_intake);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

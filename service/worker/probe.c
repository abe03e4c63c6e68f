/*
 * probe.c - the role that finds the GPUs. It runs only for a short time, so that the daemon never
 * loads the driver, and a driver that hangs or crashes ends only this process.
 *
 *     HELLO, DEVICES; then it waits for DRAIN or the end of the pipe.
 */
#include "service/common/role.h"

#include "base/test_hook.h"
#include "kernels/gpu.h"
#include "service/common/log.h"
#include "service/common/wire/child.h"

#include <errno.h>
#include <string.h>

#define MAX_GPUS 64

/* Rejects all messages: the probe takes no requests. */
static void
probe_on_message(void *context, struct proto_reader *reader)
{
    (void)context;
    reader->error = -EBADMSG;
}

int
probe_main(const struct role_args *args)
{
    static const struct child_role role = {.name = "probe", .message = probe_on_message};
    struct kernels_gpu gpus[MAX_GPUS];
    struct proto_writer writer;
    struct child child;
    uv_loop_t loop;
    (void)args;
    int error = uv_loop_init(&loop);
    if (!error)
        error = child_open(&child, &loop, &role, NULL);
    if (error) {
        log_error("probe.start", LOG_STR("error", strerror(-error)));
        return child_start_status(error);
    }
    crash_point("probe_before_devices");
    const int count = kernels_gpus(gpus, MAX_GPUS);
    message_write_devices(&writer, NULL);
    for (int i = 0; i < count && i < MAX_GPUS; i++) {
        const struct message_device device = {
            .index = gpus[i].index, .uuid = gpus[i].uuid, .name = gpus[i].name, .memory_bytes = gpus[i].memory_bytes};
        message_add_device(&writer, &device);
    }
    child_send(&child, &writer);
    uv_run(&loop, UV_RUN_DEFAULT);
    child_close(&child);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return child_status(&child);
}

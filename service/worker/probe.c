/*
 * probe.c - the role that looks which GPUs there are: a short life, so that the daemon never loads
 * the driver and a driver that hangs or crashes harms nobody.
 *
 *     HELLO, DEVICES; then it waits for DRAIN, or for the end of the pipe.
 */
#include "service/common/role.h"

#include "kernels/kernels.h"
#include "service/common/crash_point.h"
#include "service/common/log.h"
#include "service/common/proto.h"
#include "service/worker/fake_gpus.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MOST_GPUS 64

/* fd 3 blocks, and the daemon reads: nothing is left to wait for. */
static int
send_frame(struct proto_writer *writer)
{
    int error = proto_finish(writer);
    for (size_t sent = 0; !error && sent < writer->size;) {
        ssize_t count = send(ROLE_FD, writer->bytes + sent, writer->size - sent, MSG_NOSIGNAL);
        if (count > 0)
            sent += (size_t)count;
        else if (count < 0 && errno != EINTR)
            error = -errno;
    }
    proto_release(writer);
    return error;
}

static int
say_hello(void)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_HELLO);
    proto_put_str(&writer, "probe");
    proto_put_str(&writer, proto_build_id());
    return send_frame(&writer);
}

static int
tell_devices(void)
{
    struct kernels_gpu gpus[MOST_GPUS];
    int count =
        fake_gpus_in_use() ? fake_gpus_list(gpus, MOST_GPUS) : kernels_gpus(gpus, MOST_GPUS);
    if (count > MOST_GPUS)
        count = MOST_GPUS;
    struct proto_writer writer;
    proto_start(&writer, PROTO_DEVICES);
    proto_put_i64(&writer, count);
    for (int i = 0; i < count; i++) {
        proto_put_i64(&writer, gpus[i].index);
        proto_put_str(&writer, gpus[i].uuid);
        proto_put_str(&writer, gpus[i].name);
        proto_put_i64(&writer, gpus[i].memory_bytes);
    }
    return send_frame(&writer);
}

int
probe_main(const struct role_args *args)
{
    char byte;
    (void)args;
    int error = say_hello();
    crash_point("probe_before_devices");
    if (!error)
        error = tell_devices();
    if (error) {
        log_error("probe.send", LOG_STR("error", strerror(-error)));
        return EXIT_FAILURE;
    }
    while (recv(ROLE_FD, &byte, 1, 0) < 0 && errno == EINTR)
        ;
    return EXIT_SUCCESS;
}

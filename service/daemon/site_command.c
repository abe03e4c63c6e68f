#include "service/daemon/site_command.h"

#include "base/durable.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TERM_MILLIS   5000 /* from SIGTERM to SIGKILL */
#define OUTPUT_MILLIS 1000 /* to read its last output after its end */
#define HANDLES       3

struct site_command {
    uv_process_t process;
    uv_pipe_t output;
    uv_timer_t deadline;
    int open; /* handles that are not closed yet */
    bool exited, silent, late, killed;
    int64_t exit_status;
    int signal;
    char text[SITE_COMMAND_MESSAGE]; /* the end of its output */
    size_t used;
    char chunk[4096];
    const char *limit;
    uint64_t timeout_ms;
    void (*done)(void *context, const char *failure);
    void *context;
};

static void
site_command_on_close(uv_handle_t *handle)
{
    struct site_command *command = handle->data;
    if (--command->open == 0)
        free(command);
}

static void
site_command_end(struct site_command *command)
{
    uv_close((uv_handle_t *)&command->process, site_command_on_close);
    uv_close((uv_handle_t *)&command->output, site_command_on_close);
    uv_close((uv_handle_t *)&command->deadline, site_command_on_close);
}

static void
site_command_finish(struct site_command *command)
{
    char failure[SITE_COMMAND_MESSAGE] = "";
    void (*const done)(void *, const char *) = command->done;
    void *const context = command->context;
    if (command->late || command->exit_status || command->signal) {
        char how[128] = "", text[SITE_COMMAND_MESSAGE] = "", *rest = NULL;
        size_t used = 0;
        command->text[command->used] = '\0';
        /* Join lines: "mail: no route to host; noctule: ...". */
        for (char *line = strtok_r(command->text, "\r\n", &rest); line && used < sizeof text;
             line = strtok_r(NULL, "\r\n", &rest))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? "; " : "", line);
        if (command->late)
            snprintf(how, sizeof how, "it took longer than %s (%g s)%s", command->limit,
                     (double)command->timeout_ms / 1000, *text ? ": " : "");
        else if (!*text && command->signal)
            snprintf(how, sizeof how, "it was ended by signal %d", command->signal);
        else if (!*text)
            snprintf(how, sizeof how, "it ended with status %d", (int)command->exit_status);
        const size_t length = (size_t)snprintf(failure, SITE_COMMAND_MESSAGE, "%s", how);
        snprintf(failure + length, SITE_COMMAND_MESSAGE - length, "%s", text);
    }
    site_command_end(command);
    done(context, failure);
}

static void
site_command_on_deadline(uv_timer_t *timer)
{
    struct site_command *command = timer->data;
    if (command->exited) {
        site_command_finish(command); /* another process keeps its output open */
        return;
    }
    kill(-command->process.pid, command->late ? SIGKILL : SIGTERM);
    command->late = true;
    uv_timer_start(timer, site_command_on_deadline, TERM_MILLIS, 0);
}

static void
site_command_on_exit(uv_process_t *process, int64_t exit_status, int signal_number)
{
    struct site_command *command = process->data;
    command->exited = true;
    command->exit_status = exit_status;
    command->signal = signal_number;
    if (command->late)
        kill(-command->process.pid, SIGKILL); /* processes of the group that ignored SIGTERM */
    uv_timer_start(&command->deadline, site_command_on_deadline, OUTPUT_MILLIS, 0);
    if (command->silent)
        site_command_finish(command);
}

static void
site_command_on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
    struct site_command *command = handle->data;
    (void)size;
    *buffer = uv_buf_init(command->chunk, sizeof command->chunk);
}

static void
site_command_on_output(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct site_command *command = stream->data;
    const size_t room = sizeof command->text - 1;
    if (size < 0) {
        command->silent = true;
        uv_read_stop(stream);
        if (command->exited)
            site_command_finish(command);
        return;
    }
    const size_t taken = (size_t)size < room ? (size_t)size : room;
    const size_t kept = command->used < room - taken ? command->used : room - taken;
    memmove(command->text, command->text + command->used - kept, kept);
    memcpy(command->text + kept, buffer->base + (size_t)size - taken, taken);
    command->used = kept + taken;
}

/* Starts the process. Its standard output is dropped, the end of its error output is kept. `input` is a descriptor, or
 * -1 for none. */
static int
site_command_start_with(uv_loop_t *loop, const struct site_command_options *options, int input,
                        struct site_command **command)
{
    struct site_command *made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    uv_stdio_container_t stdio[] = {
        {.flags = input < 0 ? UV_IGNORE : UV_INHERIT_FD, .data.fd = input},
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&made->output},
    };
    const uv_process_options_t process = {
        .exit_cb = site_command_on_exit,
        .file = options->arguments[0],
        .args = options->arguments,
        /* a process group of its own, so that all of it can be ended */
        .flags = UV_PROCESS_DETACHED,
        .stdio = stdio,
        .stdio_count = sizeof stdio / sizeof stdio[0],
    };
    made->open = HANDLES;
    made->limit = options->limit;
    made->timeout_ms = options->timeout_ms;
    made->done = options->done;
    made->context = options->context;
    made->process.data = made->output.data = made->deadline.data = made;
    uv_timer_init(loop, &made->deadline); /* cannot fail */
    uv_pipe_init(loop, &made->output, 0); /* cannot fail */
    int rc = uv_spawn(loop, &made->process, &process);
    if (!rc)
        rc = uv_read_start((uv_stream_t *)&made->output, site_command_on_alloc, site_command_on_output);
    if (rc) {
        site_command_cancel(made);
        return rc;
    }
    uv_timer_start(&made->deadline, site_command_on_deadline, options->timeout_ms, 0);
    *command = made;
    return 0;
}

int
site_command_start(uv_loop_t *loop, const struct site_command_options *options, struct site_command **command)
{
    int input = -1, rc = 0;
    /* Before the handles: libuv must not close a process handle that uv_spawn() did not get. */
    if (options->input) {
        input = memfd_create("input", MFD_CLOEXEC);
        rc = input < 0 ? -errno : durable_write_all(input, options->input, strlen(options->input));
        if (rc == 0 && lseek(input, 0, SEEK_SET) < 0)
            rc = -errno;
    }
    if (rc == 0)
        rc = site_command_start_with(loop, options, input, command);
    if (input >= 0)
        close(input);
    return rc;
}

void
site_command_cancel(struct site_command *command)
{
    if (!command)
        return;
    if (command->process.pid > 0 && !command->exited)
        kill(-command->process.pid, SIGKILL);
    site_command_end(command);
}

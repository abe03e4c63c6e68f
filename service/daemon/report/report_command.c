/* report_command.c - see report_command.h. */
#include "service/daemon/report/report_command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TERM_MILLIS   5000 /* from SIGTERM to SIGKILL */
#define OUTPUT_MILLIS 1000 /* to read its last output after its end */
#define HANDLES       3

struct report_command {
    uv_process_t process;
    uv_pipe_t output;
    uv_timer_t deadline;
    int open; /* handles that are not closed yet */
    bool exited, silent, late, killed;
    int64_t exit_status;
    int signal;
    char text[REPORT_COMMAND_MESSAGE]; /* the end of its output */
    size_t used;
    char chunk[4096];
    uint64_t timeout_ms;
    void (*done)(void *context, const char *failure);
    void *context;
};

static void
report_command_on_close(uv_handle_t *handle)
{
    struct report_command *command = handle->data;
    if (--command->open == 0)
        free(command);
}

static void
report_command_end(struct report_command *command)
{
    uv_close((uv_handle_t *)&command->process, report_command_on_close);
    uv_close((uv_handle_t *)&command->output, report_command_on_close);
    uv_close((uv_handle_t *)&command->deadline, report_command_on_close);
}

/* Signals the whole process group. */
static void
report_command_kill(const struct report_command *command, int number)
{
    kill(-command->process.pid, number);
}

/* Joins lines: "mail: no route to host; noctule: ...". */
static void
report_command_join_lines(char *text)
{
    char joined[REPORT_COMMAND_MESSAGE] = "", *rest = NULL;
    size_t used = 0;
    for (char *line = strtok_r(text, "\r\n", &rest); line && used < sizeof joined;
         line = strtok_r(NULL, "\r\n", &rest))
        used +=
            (size_t)snprintf(joined + used, sizeof joined - used, "%s%s", used ? "; " : "", line);
    strcpy(text, joined);
}

static void
report_command_failure(struct report_command *command, char failure[REPORT_COMMAND_MESSAGE])
{
    char how[128] = "";
    command->text[command->used] = '\0';
    report_command_join_lines(command->text);
    if (command->late)
        snprintf(how, sizeof how, "it took longer than report.timeout_seconds (%g s)%s",
                 (double)command->timeout_ms / 1000, *command->text ? ": " : "");
    else if (!*command->text && command->signal)
        snprintf(how, sizeof how, "it was ended by signal %d", command->signal);
    else if (!*command->text)
        snprintf(how, sizeof how, "it ended with status %d", (int)command->exit_status);
    const size_t length = (size_t)snprintf(failure, REPORT_COMMAND_MESSAGE, "%s", how);
    snprintf(failure + length, REPORT_COMMAND_MESSAGE - length, "%s", command->text);
}

static void
report_command_finish(struct report_command *command)
{
    char failure[REPORT_COMMAND_MESSAGE] = "";
    void (*const done)(void *, const char *) = command->done;
    void *const context = command->context;
    if (command->late || command->exit_status || command->signal)
        report_command_failure(command, failure);
    report_command_end(command);
    done(context, failure);
}

static void
report_command_on_deadline(uv_timer_t *timer)
{
    struct report_command *command = timer->data;
    if (command->exited) {
        report_command_finish(command); /* another process keeps its output open */
        return;
    }
    report_command_kill(command, command->late ? SIGKILL : SIGTERM);
    command->late = true;
    uv_timer_start(timer, report_command_on_deadline, TERM_MILLIS, 0);
}

static void
report_command_finish_if_over(struct report_command *command)
{
    if (command->exited && command->silent)
        report_command_finish(command);
}

static void
report_command_on_exit(uv_process_t *process, int64_t exit_status, int signal_number)
{
    struct report_command *command = process->data;
    command->exited = true;
    command->exit_status = exit_status;
    command->signal = signal_number;
    if (command->late)
        report_command_kill(command, SIGKILL); /* processes of the group that ignored SIGTERM */
    uv_timer_start(&command->deadline, report_command_on_deadline, OUTPUT_MILLIS, 0);
    report_command_finish_if_over(command);
}

static void
report_command_on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
    struct report_command *command = handle->data;
    (void)size;
    *buffer = uv_buf_init(command->chunk, sizeof command->chunk);
}

static void
report_command_on_output(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct report_command *command = stream->data;
    const size_t room = sizeof command->text - 1;
    if (size < 0) {
        command->silent = true;
        uv_read_stop(stream);
        report_command_finish_if_over(command);
        return;
    }
    const size_t taken = (size_t)size < room ? (size_t)size : room;
    const size_t kept = command->used < room - taken ? command->used : room - taken;
    memmove(command->text, command->text + command->used - kept, kept);
    memcpy(command->text + kept, buffer->base + (size_t)size - taken, taken);
    command->used = kept + taken;
}

/* Sets the path of noctule in the daemon's own folder. */
static int
report_command_program(char path[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0)
        return -errno;
    path[length] = '\0';
    char *name = strrchr(path, '/') + 1;
    if (name + sizeof "noctule" > path + PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(name, "noctule");
    return 0;
}

/* Starts noctule. Its standard output is dropped; its error output and all output of the command
 * are kept. */
static int
report_command_spawn(uv_loop_t *loop, const struct report_command_options *order, char *program,
                     struct report_command *command)
{
    char name[] = "noctule", config[] = "--config", report[] = "report", send[] = "--send";
    char since[] = "--since", until[] = "--until";
    char *arguments[] = {name,         config, order->config_file, report, send, since,
                         order->since, until,  order->until,       NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&command->output},
    };
    const uv_process_options_t options = {
        .exit_cb = report_command_on_exit,
        .file = program,
        .args = arguments,
        /* a process group of its own, so that all of it can be ended */
        .flags = UV_PROCESS_DETACHED,
        .stdio = stdio,
        .stdio_count = sizeof stdio / sizeof stdio[0],
    };
    return uv_spawn(loop, &command->process, &options);
}

int
report_command_start(uv_loop_t *loop, const struct report_command_options *options,
                     struct report_command **command)
{
    char program[PATH_MAX];
    int rc = report_command_program(program);
    struct report_command *made = rc ? NULL : calloc(1, sizeof *made);
    if (!made)
        return rc ? rc : -ENOMEM;
    made->open = HANDLES;
    made->timeout_ms = options->timeout_ms;
    made->done = options->done;
    made->context = options->context;
    made->process.data = made->output.data = made->deadline.data = made;
    uv_timer_init(loop, &made->deadline); /* cannot fail */
    uv_pipe_init(loop, &made->output, 0); /* cannot fail */
    rc = report_command_spawn(loop, options, program, made);
    if (!rc)
        rc = uv_read_start((uv_stream_t *)&made->output, report_command_on_alloc,
                           report_command_on_output);
    if (rc) {
        report_command_cancel(made);
        return rc;
    }
    uv_timer_start(&made->deadline, report_command_on_deadline, options->timeout_ms, 0);
    *command = made;
    return 0;
}

void
report_command_cancel(struct report_command *command)
{
    if (!command)
        return;
    if (command->process.pid > 0 && !command->exited)
        report_command_kill(command, SIGKILL);
    report_command_end(command);
}

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

#define TERM_MILLIS  5000 /* from SIGTERM to SIGKILL */
#define WORDS_MILLIS 1000 /* to read its last output after its end */
#define HANDLES      3

struct sending {
    uv_process_t process;
    uv_pipe_t words;
    uv_timer_t deadline;
    int open; /* handles that are not closed yet */
    bool exited, silent, late, killed;
    int64_t exit_status;
    int signal;
    char said[SENDING_MESSAGE]; /* the end of its output */
    size_t used;
    char chunk[4096];
    uint64_t timeout_ms;
    void (*done)(void *context, const char *failure);
    void *context;
};

static void
sending_on_close(uv_handle_t *handle)
{
    struct sending *sending = handle->data;
    if (--sending->open == 0)
        free(sending);
}

static void
sending_end(struct sending *sending)
{
    uv_close((uv_handle_t *)&sending->process, sending_on_close);
    uv_close((uv_handle_t *)&sending->words, sending_on_close);
    uv_close((uv_handle_t *)&sending->deadline, sending_on_close);
}

/* Signals the whole process group. */
static void
sending_kill(const struct sending *sending, int number)
{
    kill(-sending->process.pid, number);
}

/* Joins lines: "mail: no route to host; noctule: ...". */
static void
sending_join_lines(char *text)
{
    char joined[SENDING_MESSAGE] = "", *rest = NULL;
    size_t used = 0;
    for (char *line = strtok_r(text, "\r\n", &rest); line && used < sizeof joined;
         line = strtok_r(NULL, "\r\n", &rest))
        used +=
            (size_t)snprintf(joined + used, sizeof joined - used, "%s%s", used ? "; " : "", line);
    strcpy(text, joined);
}

static void
sending_failure(struct sending *sending, char failure[SENDING_MESSAGE])
{
    char how[128] = "";
    sending->said[sending->used] = '\0';
    sending_join_lines(sending->said);
    if (sending->late)
        snprintf(how, sizeof how, "it took longer than report.timeout_seconds (%g s)%s",
                 (double)sending->timeout_ms / 1000, *sending->said ? ": " : "");
    else if (!*sending->said && sending->signal)
        snprintf(how, sizeof how, "it was ended by signal %d", sending->signal);
    else if (!*sending->said)
        snprintf(how, sizeof how, "it ended with status %d", (int)sending->exit_status);
    const size_t length = (size_t)snprintf(failure, SENDING_MESSAGE, "%s", how);
    snprintf(failure + length, SENDING_MESSAGE - length, "%s", sending->said);
}

static void
sending_finish(struct sending *sending)
{
    char failure[SENDING_MESSAGE] = "";
    void (*const done)(void *, const char *) = sending->done;
    void *const context = sending->context;
    if (sending->late || sending->exit_status || sending->signal)
        sending_failure(sending, failure);
    sending_end(sending);
    done(context, failure);
}

static void
sending_on_deadline(uv_timer_t *timer)
{
    struct sending *sending = timer->data;
    if (sending->exited) {
        sending_finish(sending); /* another process keeps its output open */
        return;
    }
    sending_kill(sending, sending->late ? SIGKILL : SIGTERM);
    sending->late = true;
    uv_timer_start(timer, sending_on_deadline, TERM_MILLIS, 0);
}

static void
sending_finish_if_over(struct sending *sending)
{
    if (sending->exited && sending->silent)
        sending_finish(sending);
}

static void
sending_on_exit(uv_process_t *process, int64_t exit_status, int signal_number)
{
    struct sending *sending = process->data;
    sending->exited = true;
    sending->exit_status = exit_status;
    sending->signal = signal_number;
    if (sending->late)
        sending_kill(sending, SIGKILL); /* processes of the group that ignored SIGTERM */
    uv_timer_start(&sending->deadline, sending_on_deadline, WORDS_MILLIS, 0);
    sending_finish_if_over(sending);
}

static void
sending_give_chunk(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
    struct sending *sending = handle->data;
    (void)size;
    *buffer = uv_buf_init(sending->chunk, sizeof sending->chunk);
}

static void
sending_on_words(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct sending *sending = stream->data;
    const size_t room = sizeof sending->said - 1;
    if (size < 0) {
        sending->silent = true;
        uv_read_stop(stream);
        sending_finish_if_over(sending);
        return;
    }
    const size_t taken = (size_t)size < room ? (size_t)size : room;
    const size_t kept = sending->used < room - taken ? sending->used : room - taken;
    memmove(sending->said, sending->said + sending->used - kept, kept);
    memcpy(sending->said + kept, buffer->base + (size_t)size - taken, taken);
    sending->used = kept + taken;
}

/* Sets the path of noctule in the daemon's own folder. */
static int
sending_program(char path[PATH_MAX])
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
sending_spawn(uv_loop_t *loop, const struct sending_order *order, char *program,
              struct sending *sending)
{
    char name[] = "noctule", config[] = "--config", report[] = "report", send[] = "--send";
    char since[] = "--since", until[] = "--until";
    char *arguments[] = {name,         config, order->config_file, report, send, since,
                         order->since, until,  order->until,       NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&sending->words},
    };
    const uv_process_options_t options = {
        .exit_cb = sending_on_exit,
        .file = program,
        .args = arguments,
        /* a process group of its own, so that all of it can be ended */
        .flags = UV_PROCESS_DETACHED,
        .stdio = stdio,
        .stdio_count = sizeof stdio / sizeof stdio[0],
    };
    return uv_spawn(loop, &sending->process, &options);
}

int
sending_start(uv_loop_t *loop, const struct sending_order *order, struct sending **sending)
{
    char program[PATH_MAX];
    int rc = sending_program(program);
    struct sending *made = rc ? NULL : calloc(1, sizeof *made);
    if (!made)
        return rc ? rc : -ENOMEM;
    made->open = HANDLES;
    made->timeout_ms = order->timeout_ms;
    made->done = order->done;
    made->context = order->context;
    made->process.data = made->words.data = made->deadline.data = made;
    uv_timer_init(loop, &made->deadline); /* cannot fail */
    uv_pipe_init(loop, &made->words, 0);  /* cannot fail */
    rc = sending_spawn(loop, order, program, made);
    if (!rc)
        rc = uv_read_start((uv_stream_t *)&made->words, sending_give_chunk, sending_on_words);
    if (rc) {
        sending_cancel(made);
        return rc;
    }
    uv_timer_start(&made->deadline, sending_on_deadline, order->timeout_ms, 0);
    *sending = made;
    return 0;
}

void
sending_cancel(struct sending *sending)
{
    if (!sending)
        return;
    if (sending->process.pid > 0 && !sending->exited)
        sending_kill(sending, SIGKILL);
    sending_end(sending);
}

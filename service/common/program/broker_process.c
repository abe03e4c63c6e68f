/* broker_process.c - the process of the broker: requests, the children that it awaits, and its answers. */
#include "service/common/program/broker_private.h"

#include "base/array.h"
#include "base/durable.h"
#include "service/common/clock.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/log.h"
#include "service/common/program/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_MS 5    /* between the first checks of a child: the interval doubles */
#define CHECK_MS 250  /* between later ones */
#define IDLE_MS  1000 /* between two checks of warm programs that have no case */
#define FIRST_FD 3    /* above the standard descriptors */

/* ------------------------------------------------------------------------------ the socket ---- */

static bool
broker_read_all(int fd, void *bytes, size_t size)
{
    for (char *at = bytes; size > 0;) {
        const ssize_t got = read(fd, at, size);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        at += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* Reads one request. STOP is applied at once, the others wait in their order. */
static void
broker_take(struct broker_process *process)
{
    struct broker_request request = {.text = NULL};
    bool there = broker_read_all(process->fd, &request.head, sizeof request.head);
    if (there)
        request.text = calloc(1, request.head.size + 1);
    there = there && request.text && broker_read_all(process->fd, request.text, request.head.size);
    if (!there) {
        process->gone = true;
        free(request.text);
        return;
    }
    if (request.head.verb == BROKER_STOP) {
        const int64_t run = request.head.run;
        process->stopped = process->stopped || run == process->run;
        for (size_t i = 0; i < process->waiting_count; i++)
            process->waiting[i].stopped = process->waiting[i].stopped || process->waiting[i].head.run == run;
        free(request.text);
        return;
    }
    struct broker_request *grown =
        array_grow(process->waiting, &process->waiting_room, process->waiting_count + 1, sizeof *grown);
    if (!grown) {
        process->gone = true; /* the parent starts another broker */
        free(request.text);
        return;
    }
    process->waiting = grown;
    grown[process->waiting_count++] = request;
}

void
broker_answer(struct broker_process *process, const struct broker_answer *answer)
{
    if (durable_write_all(process->fd, answer, sizeof *answer) != 0)
        process->gone = true;
}

void
broker_answer_cold(struct broker_process *process, const char *name)
{
    struct broker_answer answer = {.event = BROKER_COLD};
    snprintf(answer.checked.name, sizeof answer.checked.name, "%s", name);
    broker_answer(process, &answer);
}

/* ------------------------------------------------------------------------------- children ---- */

/* Finds the reply in the lines of standard output. */
static void
broker_take_reply(struct broker_reply *reply, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size && !reply->there; i++) {
        if (bytes[i] != '\n') {
            if (reply->used < sizeof reply->line)
                reply->line[reply->used] = bytes[i];
            reply->used++;
            continue;
        }
        reply->well = reply->used == 2 && memcmp(reply->line, "OK", 2) == 0;
        reply->there = reply->well || (reply->used >= 5 && memcmp(reply->line, "ERROR", 5) == 0);
        reply->used = 0;
    }
}

/* Reads all output that is there, at most 1 MiB. */
static void
broker_take_output(struct broker_watch *watch, int number)
{
    char bytes[65536];
    for (int turn = 0; turn < 16 && watch->outputs[number] >= 0; turn++) {
        const ssize_t size = read(watch->outputs[number], bytes, sizeof bytes);
        if (size == 0)
            watch->outputs[number] = -1; /* the program closed it, and may still run */
        if (size <= 0)
            return;
        watch->last_sign = clock_seconds();
        output_tail_add(watch->tail, bytes, (size_t)size);
        if (watch->reply && number == 0)
            broker_take_reply(watch->reply, bytes, (size_t)size);
    }
}

/* Takes output and requests until the time has passed or the child may have ended. */
static void
broker_poll(struct broker_process *process, struct broker_watch *watch, int pidfd, int milliseconds)
{
    struct pollfd ready[] = {{.fd = pidfd, .events = POLLIN},
                             {.fd = process->gone ? -1 : process->fd, .events = POLLIN},
                             {.fd = watch->outputs[0], .events = POLLIN},
                             {.fd = watch->outputs[1], .events = POLLIN}};
    if (poll(ready, sizeof ready / sizeof *ready, milliseconds) <= 0)
        return;
    if (ready[1].revents)
        broker_take(process);
    for (int i = 0; i < 2; i++)
        if (ready[2 + i].revents)
            broker_take_output(watch, i);
}

/* Sets the status if the child has ended, and the peak of its largest process: a value that this process does not explain,
 * of which it is a copy before it executes another program. */
static bool
broker_reap(struct broker_watch *watch)
{
    struct rusage own = {.ru_maxrss = 0}, used = {.ru_maxrss = 0};
    if (wait4(watch->pid, &watch->status, WNOHANG, &used) == 0)
        return false;
    getrusage(RUSAGE_SELF, &own);
    if (used.ru_maxrss > own.ru_maxrss && used.ru_maxrss * 1024 > watch->peak_bytes)
        watch->peak_bytes = used.ru_maxrss * 1024;
    return true;
}

int
broker_await(struct broker_process *process, struct broker_watch *watch, struct error *error)
{
    const int pidfd = (int)syscall(SYS_pidfd_open, watch->pid, 0);
    int64_t interval = FIRST_MS, next = clock_steady_ms();
    int rc = 0;
    bool signalled = false;
    watch->last_sign = clock_seconds();
    while (!(watch->reply && watch->reply->there && rc == 0) && !broker_reap(watch)) {
        if (rc == 0 && (process->stopped || process->gone))
            rc = -ECANCELED;
        if (rc == 0 && watch->check && clock_steady_ms() >= next) {
            rc = watch->check(watch->context, watch, error);
            next = clock_steady_ms() + interval;
            interval = 2 * interval < CHECK_MS ? 2 * interval : CHECK_MS;
        }
        if (rc && !signalled)
            kill(watch->pid, watch->end_signal);
        signalled = rc != 0;
        broker_poll(process, watch, pidfd, (int)interval);
    }
    if (watch->end_signal == SIGTERM && WIFSIGNALED(watch->status)) /* a keeper that could not end all itself */
        process_tree_end(watch->pid, &watch->status);
    broker_take_output(watch, 0);
    broker_take_output(watch, 1);
    if (pidfd >= 0)
        close(pidfd);
    return rc;
}

/* --------------------------------------------------------------------------------- steps ---- */

/* A step in its own process. `fd` takes the result. */
static _Noreturn void
broker_step_main(const struct broker_step *step, int fd, pid_t parent)
{
    struct broker_result result = {.rc = -EACCES};
    const struct command_places places = {
        .inputs = step->inputs, .input_count = step->input_count, .output = step->output};
    prctl(PR_SET_NAME, "noctule-step");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(fd, FIRST_FD) < 0 || close_range(FIRST_FD + 1, ~0u, 0) < 0)
        _exit(1);
    if (confine_command(CONFINE_PROGRAM_STEP, &places) != 0 || call_filter_install(CONFINE_PROGRAM_STEP) != 0)
        error_set(&result.error, result.rc, CODE_PROGRAM_SANDBOX, "the step that %s cannot be confined", step->name);
    else
        step->run(step->context, &result);
    _exit(durable_write_all(FIRST_FD, &result, sizeof result) != 0);
}

struct broker_limit {
    const struct broker_step *step;
    double until;
};

static int
broker_check_step(void *context, struct broker_watch *watch, struct error *error)
{
    const struct broker_limit *limit = context;
    (void)watch;
    if (limit->step->limit_seconds > 0 && clock_seconds() > limit->until)
        return error_set(error, -ETIMEDOUT, CODE_PROGRAM_TOO_LONG, "the step that %s took longer than %g s",
                         limit->step->name, limit->step->limit_seconds);
    return 0;
}

int
broker_run_step(struct broker_process *process, const struct broker_step *step, struct broker_result *result,
                struct error *error)
{
    struct broker_limit limit = {.step = step, .until = clock_seconds() + step->limit_seconds};
    struct broker_watch watch = {
        .end_signal = SIGKILL, .outputs = {-1, -1}, .check = broker_check_step, .context = &limit};
    const pid_t parent = getpid();
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set_system(error, -errno, "start a step");
    watch.pid = fork();
    if (watch.pid == 0)
        broker_step_main(step, ends[1], parent);
    int rc = watch.pid < 0 ? error_set_system(error, -errno, "start a step") : 0;
    close(ends[1]);
    if (!rc)
        rc = broker_await(process, &watch, error);
    if (!rc && WIFSIGNALED(watch.status)) {
        rc = error_set(error, -EIO, CODE_PROGRAM_CRASHED, "the step that %s was ended by signal %d", step->name,
                       WTERMSIG(watch.status));
    } else if (!rc && !broker_read_all(ends[0], result, sizeof *result)) {
        rc = error_set(error, -EIO, CODE_PROGRAM_CRASHED, "the step that %s has no result", step->name);
    } else if (!rc) {
        struct error *from = &result->error; /* the texts of another process may lack their end */
        from->message[sizeof from->message - 1] = '\0';
        from->file[0][sizeof from->file[0] - 1] = from->file[1][sizeof from->file[1] - 1] = '\0';
        rc = result->rc;
        if (rc)
            *error = *from;
    }
    close(ends[0]);
    return rc;
}

/* ------------------------------------------------------------------------------- digests ---- */

static void
broker_digest_step(const void *context, struct broker_result *result)
{
    result->rc = program_digest_make(context, &result->of.digest, &result->error);
}

int
broker_digest(struct broker_process *process, const struct conf_program *program, struct program_digest *digest,
              struct error *error)
{
    char stamp[65], *inputs[64];
    struct broker_result result;
    struct broker_step step = {
        .name = "digests the program", .inputs = inputs, .run = broker_digest_step, .context = program};
    *digest = (struct program_digest){0};
    int rc = program_digest_stamp(program, stamp, error);
    for (size_t i = 0; rc == 0 && i < process->digest_count; i++)
        if (strcmp(process->digests[i].stamp, stamp) == 0) {
            *digest = process->digests[i].digest;
            return 0;
        }
    if (rc)
        return rc;
    inputs[step.input_count++] = program->command[0];
    if (program->cpu_command_count > 0)
        inputs[step.input_count++] = program->cpu_command[0];
    for (size_t i = 0; i < program->weights_count && step.input_count < sizeof inputs / sizeof *inputs; i++)
        inputs[step.input_count++] = program->weights[i];
    rc = broker_run_step(process, &step, &result, error);
    if (rc)
        return rc;
    *digest = result.of.digest;
    struct broker_digest *grown =
        array_grow(process->digests, &process->digest_room, process->digest_count + 1, sizeof *grown);
    if (!grown)
        return 0;
    process->digests = grown;
    memcpy(grown[process->digest_count].stamp, stamp, sizeof stamp);
    grown[process->digest_count++].digest = *digest;
    return 0;
}

/* ------------------------------------------------------------------------------ requests ---- */

int
broker_choose_sandbox(const struct broker_process *process, const struct conf_program *program, enum sandbox_kind *kind,
                      struct error *error)
{
    const struct sandbox_probe *probe = &process->probe;
    *kind = program->container ? SANDBOX_CONTAINER : probe->kind;
    if (*kind == SANDBOX_NONE)
        return error_set(error, -ENOTSUP, CODE_PROGRAM_SANDBOX, "no sandbox works here: %s", probe->why);
    if (!program->container && !program->host_network && !probe->no_network)
        return error_set(error, -ENOTSUP, CODE_PROGRAM_SANDBOX, "no sandbox without a network works here: %s",
                         probe->why);
    return 0;
}

static void
broker_check_one(struct broker_process *process, const struct conf_program *program)
{
    struct broker_answer answer = {.event = BROKER_CHECKED};
    struct program_checked *checked = &answer.checked;
    struct program_digest digest;
    enum sandbox_kind kind;
    snprintf(checked->name, sizeof checked->name, "%s", program->name);
    int rc = broker_digest(process, program, &digest, &checked->error);
    if (rc == 0) {
        memcpy(checked->identity, digest.identity, sizeof checked->identity);
        memcpy(checked->program_sha256, digest.program_sha256, sizeof checked->program_sha256);
        memcpy(checked->weights_sha256, digest.weights_sha256, sizeof checked->weights_sha256);
        checked->weights_bytes = digest.weights_bytes;
        rc = broker_choose_sandbox(process, program, &kind, &checked->error);
    }
    if (rc == 0)
        snprintf(checked->sandbox, sizeof checked->sandbox, "%s", sandbox_name(kind));
    broker_answer(process, &answer);
}

static void
broker_run_order(struct broker_process *process, const struct broker_request *request)
{
    struct broker_answer answer = {.event = BROKER_ENDED, .run = request->head.run, .outcome.end = PROGRAM_END_ILL};
    struct program_order *order;
    const int rc = request->head.verb == BROKER_RUN
                       ? program_order_read(request->text, &order, &answer.outcome.error)
                       : program_order_from_text(request->text, &order, &answer.outcome.error);
    process->run = request->head.run;
    process->stopped = request->stopped;
    if (rc == 0)
        broker_execute(process, order, &answer.outcome);
    else
        error_normalise(&answer.outcome.error, rc);
    process->run = 0;
    process->stopped = false;
    program_order_free(order);
    broker_answer(process, &answer);
}

static void
broker_serve(struct broker_process *process, const struct broker_request *request)
{
    const enum broker_verb verb = request->head.verb;
    struct conf *conf = NULL;
    struct error error = {0};
    if (verb == BROKER_RUN || verb == BROKER_ORDER) {
        broker_run_order(process, request);
    } else if (verb == BROKER_CHECK) {
        if (conf_from_text(request->text, &conf, &error) != 0)
            log_error("program.config", LOG_STR("error", error.message));
        if (conf)
            broker_warm_check(process, conf);
        for (size_t i = 0; conf && i < conf->program_count && !process->gone; i++)
            broker_check_one(process, &conf->programs[i]);
        conf_free(conf);
        broker_answer(process, &(struct broker_answer){.event = BROKER_CHECKED});
    } else if (verb == BROKER_COOL && broker_warm_end(process, request->text) == 0) {
        broker_answer_cold(process, request->text);
    }
}

_Noreturn void
broker_main(int fd, const struct program_steps *steps, const char *root)
{
    struct broker_process process = {.fd = FIRST_FD, .steps = steps, .root = root};
    prctl(PR_SET_NAME, "noctule-broker");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setsid(); /* Ctrl-C ends the parent, and its end must end this process */
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    if (dup2(fd, FIRST_FD) < 0 || close_range(FIRST_FD + 1, ~0u, 0) < 0)
        _exit(1);
    fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
    sandbox_probe(&process.probe);
    if (process.probe.why[0])
        log_debug("program.sandbox", LOG_STR("sandbox", sandbox_name(process.probe.kind)),
                  LOG_STR("why", process.probe.why));
    while (!process.gone) {
        if (process.waiting_count == 0) {
            struct pollfd ready = {.fd = process.fd, .events = POLLIN};
            if (poll(&ready, 1, process.warm ? IDLE_MS : -1) > 0)
                broker_take(&process);
            broker_warm_check(&process, NULL);
            continue;
        }
        const struct broker_request request = process.waiting[0];
        memmove(process.waiting, process.waiting + 1, --process.waiting_count * sizeof request);
        broker_serve(&process, &request);
        free(request.text);
    }
    broker_warm_end(&process, "");
    _exit(0);
}

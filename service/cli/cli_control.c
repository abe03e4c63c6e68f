/*
 * cli_control.c - the commands that send requests to the daemon: retry, cancel, complete, accept,
 * reject, resend, ping and others. purge is in purge_command.c.
 *
 * A command opens one connection. For each argument it sends one frame and reads one ANSWER. Calls
 * block, with a time limit.
 */
#include "service/cli/control_requests.h"

#include "db/report.h"
#include "service/common/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns a connected descriptor or -errno. */
static int
connect_daemon(const char *root, int seconds)
{
    const struct timeval timeout = {.tv_sec = seconds};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = sizeof address.sun_path;
    int folder = -1, rc = 0;
    if (snprintf(address.sun_path, size, "%s/" LAYOUT_CONTROL_SOCKET, root) >= (int)size) {
        /* A path that is too long goes through the open root folder. */
        folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
            return -errno;
        snprintf(address.sun_path, size, "/proc/self/fd/%d/" LAYOUT_CONTROL_SOCKET, folder);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        rc = -errno;
    if (folder >= 0)
        close(folder);
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

/* Reads the next frame, which points into the stream. Returns 0 or -errno. */
static int
control_receive(int fd, struct proto_stream *stream, struct proto_reader *reader)
{
    int rc;
    while ((rc = proto_next(stream, reader)) == 0) {
        char bytes[4096];
        ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
        if (got == 0)
            return -ECONNRESET;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        rc = proto_feed(stream, bytes, (size_t)got);
        if (rc < 0)
            return rc;
    }
    return rc < 0 ? rc : 0;
}

/* Sends a frame and reads the ANSWER, which points into the stream. Returns 0 for any answer, else
 * -errno. */
static int
control_exchange(int fd, struct proto_writer *writer, struct proto_stream *stream, struct message_answer *answer)
{
    struct proto_reader reader;
    int rc = proto_finish(writer);
    size_t sent = 0;
    while (rc == 0 && sent < writer->size) {
        ssize_t done = send(fd, writer->bytes + sent, writer->size - sent, MSG_NOSIGNAL);
        if (done >= 0)
            sent += (size_t)done;
        else if (errno != EINTR)
            rc = -errno;
    }
    proto_release(writer);
    if (rc == 0)
        rc = control_receive(fd, stream, &reader);
    return rc < 0 ? rc : message_read_answer(&reader, answer);
}

/* Returns the process that holds the flock of a file or folder, or 0. Reads it from the kernel,
 * because trying the lock could block a daemon that starts. */
static int
find_lock_holder(const char *path)
{
    char line[256];
    struct stat lock;
    FILE *locks = stat(path, &lock) == 0 ? fopen("/proc/locks", "re") : NULL;
    int found = 0, pid;
    unsigned major_number, minor_number;
    unsigned long long inode;
    while (locks && !found && fgets(line, sizeof line, locks)) {
        if (sscanf(line, "%*d: FLOCK ADVISORY WRITE %d %x:%x:%llu ", &pid, &major_number, &minor_number, &inode) == 4 &&
            inode == lock.st_ino && makedev(major_number, minor_number) == lock.st_dev)
            found = pid;
    }
    if (locks)
        fclose(locks);
    return found;
}

int
cli_find_daemon(const char *root)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" LAYOUT_LOCK, root);
    int found = find_lock_holder(path);
    if (!found)
        found = find_lock_holder(root);
    if (found)
        return found;
    struct ucred peer = {0}; /* the process that listens on the control socket */
    socklen_t size = sizeof peer;
    const int fd = connect_daemon(root, 1);
    if (fd < 0)
        return 0;
    const int rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    close(fd);
    return rc < 0 ? 0 : (int)peer.pid;
}

const char *
cli_no_answer(const char *root, int seconds, int rc, char *why, size_t size)
{
    char process[32] = "";
    const int daemon = cli_find_daemon(root);
    if (daemon)
        snprintf(process, sizeof process, " (process %d)", daemon);
    if (rc == -EACCES || rc == -EPERM) { /* only the daemon's own user or root may connect */
        char path[PATH_MAX];
        struct stat folder;
        snprintf(path, sizeof path, "%s/" LAYOUT_RUN, root);
        const struct passwd *owner = stat(path, &folder) == 0 ? getpwuid(folder.st_uid) : NULL;
        snprintf(why, size, "no permission to connect to noctuled: run this as %s%s",
                 owner ? owner->pw_name : "its user", owner && owner->pw_uid == 0 ? "" : " or root");
        return "unknown";
    }
    if (rc == -EAGAIN || rc == -ETIMEDOUT) {
        snprintf(why, size, "noctuled%s did not answer within %d seconds", process, seconds);
        return "not answering";
    }
    if (daemon) {
        snprintf(why, size, "noctuled%s runs but cannot be reached: %s", process, strerror(-rc));
        return "not answering";
    }
    if (rc == -ENOENT || rc == -ECONNREFUSED || rc == -ENOTDIR) {
        snprintf(why, size, "noctuled does not run with root %s", root);
        return "not running";
    }
    snprintf(why, size, "noctuled cannot be reached: %s", strerror(-rc));
    return "unknown";
}

static int
no_daemon(const char *root, int rc)
{
    char why[PATH_MAX + 64];
    const char *state = cli_no_answer(root, CLI_DAEMON_SECONDS, rc, why, sizeof why);
    cli_print_error("%s%s", why,
                    strcmp(state, "not running") == 0
                        ? ": start it (systemctl start noctule, or noctuled --config FILE)"
                    : strcmp(state, "not answering") == 0 ? ": it may be starting or busy; try again, or read its log"
                                                          : "");
    return EXIT_NO_DAEMON;
}

/* `before` is printed before a body. */
static int
print_answer(const char *what, const struct message_answer *answer, const char *before)
{
    if (*answer->body)
        printf("%s%s", before, answer->body);
    else if (answer->status == 0)
        printf("%s%s\n", *answer->message ? answer->message : what, *answer->message ? "" : ": done");
    else if (*answer->message)
        cli_print_error("%s", answer->message);
    else
        cli_print_error("%s: %s", what, strerror((int)-answer->status));
    if (answer->status == 0)
        return EXIT_OK;
    return answer->status == -ENOENT ? EXIT_NOT_FOUND : EXIT_PARTIAL;
}

int
control_request_all(const char *root, const struct cli_request *request, char **arguments, int count,
                    const void *options)
{
    int fd = connect_daemon(root, CLI_DAEMON_SECONDS);
    if (fd < 0)
        return no_daemon(root, fd);
    int status = EXIT_OK, rc = 0;
    bool printed = false; /* a body */
    fputs(request->array ? "[\n" : "", stdout);
    for (int i = 0; i < count && rc >= 0; i++) {
        char what[80];
        struct proto_writer writer;
        struct proto_stream stream = {0};
        struct message_answer answer;
        const char *before = request->array && printed ? ",\n" : "";
        snprintf(what, sizeof(what), "%s%s%s", request->noun, arguments[i] ? " " : "",
                 arguments[i] ? arguments[i] : "");
        request->write(&writer, request->type, arguments[i], options);
        rc = control_exchange(fd, &writer, &stream, &answer);
        printed |= rc >= 0 && *answer.body;
        const int one = rc < 0 ? no_daemon(root, rc) : print_answer(what, &answer, before);
        if (one != EXIT_OK && one != status) /* equal failures keep their code */
            status = status == EXIT_OK ? one : EXIT_PARTIAL;
        proto_stream_release(&stream);
    }
    close(fd);
    fputs(request->array ? "]\n" : "", stdout);
    return status;
}

static void
write_cancel(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    struct message_cancel message = {0};
    (void)options;
    cli_parse_number(job, &message.job);
    message_write(writer, type, &message);
}

struct retry {
    bool current, force, program, failed, dry_run;
    struct report_filter filter; /* filter of --failed */
};

static void
write_retry(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    const struct retry *retry = options;
    struct message_retry message = {.current = retry->current, .again = retry->force, .program = retry->program};
    cli_parse_number(job, &message.job);
    message_write(writer, type, &message);
}

const char *
control_login(char *login, size_t size)
{
    if (getlogin_r(login, size) != 0)
        *login = 0;
    return login;
}

struct complete {
    bool accept_missing;
};

static void
write_series(struct proto_writer *writer, enum proto_type type, const char *series_uid, const void *options)
{
    const struct complete *complete = options;
    char login[256];
    const struct message_complete message = {.series_uid = series_uid,
                                             .accept_missing = complete->accept_missing,
                                             .login = control_login(login, sizeof(login))};
    message_write(writer, type, &message);
}

/* Sends a request for each argument, or one request without an argument. */
static int
control_request(const struct cli_call *call, const struct cli_request *request, bool once)
{
    char *none = NULL;
    return control_request_all(call->context->conf->root, request, once ? &none : call->arguments,
                               once ? 1 : call->count, call->options);
}

int
control_run(struct cli_call *call)
{
    return control_request(call, call->command->request, false);
}

#define JOBS(least_)                                                                                                   \
    .kind = &cli_job, .min_arguments = (least_), .max_arguments = INT_MAX, .needs = "one or more job numbers"

const struct cli_command cli_cancel = {.name = "cancel",
                                       .help = "cancel jobs, running ones too",
                                       .usage = {"JOB..."},
                                       JOBS(1),
                                       .run = control_run,
                                       .request =
                                           &(const struct cli_request){PROTO_CANCEL, "job", write_cancel, false}};

/* Sends a request for all rows that match the filter. If `would` is not NULL, only lists them with
 * this verb. */
static int
control_request_matching(const struct cli_context *context, const struct cli_request *request,
                         const struct report_list *list, const struct report_filter *filter, const void *options,
                         const char *would)
{
    struct report *report;
    struct error error = {0};
    char **keys;
    size_t count;
    int status = cli_open_report(context->conf, &report);
    if (status != EXIT_OK)
        return status;
    int rc = report_keys(report, list, filter, &keys, &count, &error);
    report_close(report);
    if (rc < 0) {
        cli_print_error("%s", error.message);
        return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
    }
    if (count == 0 && request->array)
        puts("[]");
    else if (count == 0)
        printf("no matching %s\n", request->noun);
    else if (!would)
        status = control_request_all(context->conf->root, request, keys, (int)count, options);
    for (size_t i = 0; i < count; i++) {
        if (would)
            printf("%s %s: would %s\n", request->noun, keys[i], would);
        free(keys[i]);
    }
    free(keys);
    return status;
}

static int
retry_check(struct cli_call *call)
{
    const struct retry *retry = call->options;
    const struct report_filter *filter = &retry->filter;
    const char *name = call->command->name;
    if (!retry->failed && (filter->pipeline || filter->code || filter->since))
        return cli_usage_error(name, "--pipeline, --code and --since need --failed");
    if (!retry->failed && retry->dry_run)
        return cli_usage_error(name, "--dry-run needs --failed");
    if (retry->failed && call->count > 0)
        return cli_usage_error(name, "--failed takes no job numbers");
    if (!retry->failed && call->count == 0)
        return cli_usage_error(name, "needs one or more job numbers, or --failed");
    return EXIT_OK;
}

static int
retry_run(struct cli_call *call)
{
    static const struct cli_request request = {PROTO_RETRY, "job", write_retry, false};
    struct retry *retry = call->options;
    retry->filter.state = "FAILED";
    retry->filter.current = true;
    if (!retry->failed)
        return control_request(call, &request, false);
    return control_request_matching(call->context, &request, &report_jobs, &retry->filter, retry,
                                    retry->dry_run ? "run again" : NULL);
}

const struct cli_command cli_retry = {
    .name = "retry",
    .help = "run jobs again",
    .usage = {"[--current] [--force] [--program] JOB...", "--failed [OPTION]..."},
    .options =
        (const struct cli_option[]){
            {"current", 0, &cli_flag, CLI_AT(struct retry, current),
             .help = "use the pipeline's current configuration; default: that of the job"},
            {"force", 0, &cli_flag, CLI_AT(struct retry, force),
             .help = "include jobs that are DONE, EMPTY, under review or REJECTED"},
            {"program", 0, &cli_flag, CLI_AT(struct retry, program),
             .help = "run the programs of its segments again, too; default: use their masks; implies --force"},
            {"failed", 0, &cli_flag, CLI_AT(struct retry, failed), .help = "all jobs in state FAILED"},
            {"pipeline", 0, &cli_pipeline, CLI_AT(struct retry, filter.pipeline),
             .help = "with --failed: only jobs of this pipeline"},
            {"code", 0, &cli_text, CLI_AT(struct retry, filter.code), .help = "with --failed: only jobs with this code",
             .noun = "CODE"},
            {"since", 0, &cli_when, CLI_AT(struct retry, filter.since),
             .help = "with --failed: only jobs that ended since: 2026-01-31, or 36h ago"},
            {"dry-run", 0, &cli_flag, CLI_AT(struct retry, dry_run), .help = "list the jobs without running them"},
            {0}},
    .size = sizeof(struct retry),
    JOBS(0),
    .check = retry_check,
    .run = retry_run};

struct submit {
    const char *pipeline, *stacks; /* NULL if not given */
    bool rules, all, force, dry_run, json;
    struct report_filter filter; /* filter of --all */
};

static void
write_submit(struct proto_writer *writer, enum proto_type type, const char *series_uid, const void *options)
{
    const struct submit *submit = options;
    char login[256];
    const struct message_submit message = {
        .series_uid = series_uid,
        .pipeline = submit->pipeline ? submit->pipeline : "",
        .stacks = submit->stacks ? submit->stacks : "",
        .again = submit->force,
        .dry_run = submit->dry_run,
        .json = submit->json,
        .login = control_login(login, sizeof(login)),
    };
    message_write(writer, type, &message);
}

static int
submit_check(struct cli_call *call)
{
    struct submit *submit = call->options;
    const char *name = call->command->name;
    const bool none = call->count == 0;
    submit->all |= submit->rules && none; /* --rules without series applies to all */
    if ((submit->pipeline != NULL) == submit->rules)
        return cli_usage_error(name, "needs --pipeline or --rules");
    if (submit->all != none)
        return cli_usage_error(name, "needs Series Instance UIDs or --all");
    if (submit->stacks && submit->rules)
        return cli_usage_error(name, "--stacks needs --pipeline");
    if (submit->filter.since && !submit->all)
        return cli_usage_error(name, "--since needs --all or --rules");
    return EXIT_OK;
}

static int
submit_run(struct cli_call *call)
{
    struct submit *submit = call->options;
    const struct cli_request request = {PROTO_SUBMIT, "series", write_submit, submit->json};
    const struct conf_pipeline *pipeline;
    int status = submit->pipeline ? cli_find_pipeline(call->context->conf, submit->pipeline, &pipeline) : EXIT_OK;
    if (status != EXIT_OK)
        return status;
    submit->filter.state = "SETTLED";
    submit->filter.current = true;
    return submit->all
               ? control_request_matching(call->context, &request, &report_series, &submit->filter, submit, NULL)
               : control_request(call, &request, false);
}

const struct cli_command cli_submit = {
    .name = "submit",
    .help = "create jobs for stored series: with a pipeline, or by the current rules",
    .usage = {"--pipeline NAME [OPTION]... SERIES_UID...", "--pipeline NAME --all [--since WHEN] [OPTION]...",
              "--rules [OPTION]... SERIES_UID...", "--rules [--since WHEN] [OPTION]..."},
    .options =
        (const struct cli_option[]){
            {"pipeline", 0, &cli_pipeline, CLI_AT(struct submit, pipeline), .help = "pipeline to run"},
            {"stacks", 0, &cli_text, CLI_AT(struct submit, stacks),
             .help = "stacks of each series: all, first, last, b0, or a pattern of names", .noun = "WHICH"},
            {"rules", 0, &cli_flag, CLI_AT(struct submit, rules),
             .help = "apply the rules and AE titles of the daemon's configuration"},
            {"all", 0, &cli_flag, CLI_AT(struct submit, all), .help = "all complete series"},
            {"since", 0, &cli_when, CLI_AT(struct submit, filter.since),
             .help = "only series with instances received since: 2026-01-31, or 36h ago"},
            {"force", 0, &cli_flag, CLI_AT(struct submit, force),
             .help = "run again even if a job with this pipeline has ended"},
            {"dry-run", 0, &cli_flag, CLI_AT(struct submit, dry_run), .help = "list the jobs without creating them"},
            CLI_JSON(struct submit),
            {0}},
    .size = sizeof(struct submit),
    .kind = &cli_uid,
    .max_arguments = INT_MAX,
    .check = submit_check,
    .run = submit_run};

const struct cli_command cli_complete = {
    .name = "complete",
    .help = "treat series as complete now, and check refused ones again",
    .usage = {"[--accept-missing] SERIES_UID..."},
    .options = (const struct cli_option[]){{"accept-missing", 0, &cli_flag, CLI_AT(struct complete, accept_missing),
                                            .help = "accept missing instances, also after INCOMPLETE_SERIES"},
                                           {0}},
    .size = sizeof(struct complete),
    .kind = &cli_uid,
    .min_arguments = 1,
    .max_arguments = INT_MAX,
    .needs = "one or more Series Instance UIDs",
    .run = control_run,
    .request = &(const struct cli_request){PROTO_COMPLETE, "series", write_series, false}};

struct hold {
    const char *pipeline, *destination;
    bool queue;
    const char *reason;
    const char *kind, *name; /* set by hold_check; NULL: jobs */
};

static void
write_hold(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    const struct hold *hold = options;
    char login[256];
    const struct message_hold message = {.kind = hold->kind ? hold->kind : "job",
                                         .name = hold->kind ? hold->name : job,
                                         .reason = hold->reason ? hold->reason : "",
                                         .login = control_login(login, sizeof(login))};
    message_write(writer, type, &message); /* RELEASE has the same fields */
}

static int
hold_check(struct cli_call *call)
{
    struct hold *hold = call->options;
    if ((hold->pipeline != NULL) + (hold->destination != NULL) + hold->queue + (call->count > 0) != 1)
        return cli_usage_error(call->command->name, "needs job numbers, --pipeline, --destination or --queue");
    hold->kind = hold->pipeline ? "pipeline" : hold->destination ? "destination" : hold->queue ? "queue" : NULL;
    hold->name = hold->pipeline ? hold->pipeline : hold->destination ? hold->destination : "";
    return EXIT_OK;
}

/* Runs `hold` and `release`. */
static int
hold_run(struct cli_call *call)
{
    const struct hold *hold = call->options;
    const struct cli_request request = {call->command == &cli_hold ? PROTO_HOLD : PROTO_RELEASE,
                                        hold->kind ? hold->kind : "job", write_hold, false};
    return control_request(call, &request, hold->kind != NULL);
}

#define HOLD_OPTIONS                                                                                                   \
    {"pipeline", 0, &cli_pipeline, CLI_AT(struct hold, pipeline), .help = "all jobs of this pipeline"},                \
        {"destination", 0, &cli_destination, CLI_AT(struct hold, destination),                                         \
         .help = "all deliveries to this destination"},                                                                \
    {                                                                                                                  \
        "queue", 0, &cli_flag, CLI_AT(struct hold, queue), .help = "all jobs and all deliveries"                       \
    }

const struct cli_command cli_hold = {
    .name = "hold",
    .help = "hold jobs, a pipeline or a destination until noctule release",
    .usage = {"[--reason WORDS] JOB...", "[--reason WORDS] --pipeline NAME", "[--reason WORDS] --destination NAME",
              "[--reason WORDS] --queue"},
    .options = (const struct cli_option[]){HOLD_OPTIONS,
                                           {"reason", 0, &cli_text, CLI_AT(struct hold, reason),
                                            .help = "text shown with the hold; must not name patients"},
                                           {0}},
    .size = sizeof(struct hold),
    JOBS(0),
    .check = hold_check,
    .run = hold_run};

const struct cli_command cli_release_held = {.name = "release",
                                             .help = "release held jobs, pipelines or destinations",
                                             .usage = {"JOB...", "--pipeline NAME", "--destination NAME", "--queue"},
                                             .options = (const struct cli_option[]){HOLD_OPTIONS, {0}},
                                             .size = sizeof(struct hold),
                                             JOBS(0),
                                             .check = hold_check,
                                             .run = hold_run};

struct priority {
    int64_t priority;
};

static void
write_priority(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    char login[256];
    const struct priority *wanted = options;
    struct message_priority message = {.priority = wanted->priority, .login = control_login(login, sizeof(login))};
    cli_parse_number(job, &message.job);
    message_write(writer, type, &message);
}

static int
priority_check(struct cli_call *call)
{
    struct priority *priority = call->options;
    const char *name = call->command->name;
    int64_t job;
    char *end;
    if (cli_parse_number(call->arguments[0], &job) < 0)
        return cli_usage_error(name, "\"%s\" is not a job number", call->arguments[0]);
    errno = 0;
    priority->priority = strtoll(call->arguments[1], &end, 10);
    call->count = 1;
    if (errno || end == call->arguments[1] || *end)
        return cli_usage_error(name, "\"%s\" is not a priority: use a number from -1000 to 1000", call->arguments[1]);
    return EXIT_OK;
}

const struct cli_command cli_priority = {
    .name = "priority",
    .help = "set the priority of a waiting job: -1000 to 1000, larger numbers run first",
    .usage = {"JOB N"},
    .size = sizeof(struct priority),
    .min_arguments = 2,
    .max_arguments = 2,
    .needs = "a job number and a priority",
    .check = priority_check,
    .run = control_run,
    .request = &(const struct cli_request){PROTO_PRIORITY, "job", write_priority, false}};

/* Options of `accept` and `reject`. */
struct rejection {
    const char *reason;          /* NULL: accept */
    bool delivery;               /* the numbers are of deliveries */
    struct report_filter filter; /* for accept without job numbers */
    bool dry_run;
};

static void
write_word(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    char login[256];
    const struct rejection *rejection = options;
    struct message_reject reject = {.reason = rejection->reason, .login = control_login(login, sizeof login)};
    struct message_accept accept = {.login = reject.login};
    cli_parse_number(job, rejection->delivery ? &reject.delivery : &reject.job);
    accept.job = reject.job;
    accept.delivery = reject.delivery;
    message_write(writer, type, rejection->reason ? (const void *)&reject : &accept);
}

static int
accept_check(struct cli_call *call)
{
    const struct rejection *accepted = call->options;
    const bool chosen = accepted->filter.pipeline || accepted->filter.code;
    const char *name = call->command->name;
    if (chosen && call->count > 0)
        return cli_usage_error(name, "--pipeline and --code take no job numbers");
    if (chosen && accepted->delivery)
        return cli_usage_error(name, "--delivery needs the numbers of deliveries");
    if (!chosen && accepted->dry_run)
        return cli_usage_error(name, "--dry-run needs --pipeline or --code");
    if (!chosen && call->count == 0)
        return cli_usage_error(name, "needs one or more job numbers, --pipeline or --code");
    return EXIT_OK;
}

/* Selects current results only: superseded and corrected ones cannot be accepted. */
static int
accept_run(struct cli_call *call)
{
    static const struct cli_request request = {PROTO_ACCEPT, "job", write_word, false};
    static const struct cli_request delivery = {PROTO_ACCEPT, "delivery", write_word, false};
    struct rejection *accepted = call->options;
    if (call->count > 0)
        return control_request(call, accepted->delivery ? &delivery : &request, false);
    accepted->filter.state = "REVIEW";
    accepted->filter.current = true;
    return control_request_matching(call->context, &request, &report_jobs, &accepted->filter, accepted,
                                    accepted->dry_run ? "be accepted" : NULL);
}

const struct cli_command cli_accept = {
    .name = "accept",
    .help = "accept results under review and deliver them, or deliveries under review",
    .usage = {"JOB...", "[--dry-run] --pipeline NAME | --code CODE", "--delivery DELIVERY..."},
    .options = (const struct cli_option[]){{"pipeline", 0, &cli_pipeline, CLI_AT(struct rejection, filter.pipeline),
                                            .help = "all results under review of this pipeline"},
                                           {"code", 0, &cli_text, CLI_AT(struct rejection, filter.code),
                                            .help = "all results under review with this code", .noun = "CODE"},
                                           {"dry-run", 0, &cli_flag, CLI_AT(struct rejection, dry_run),
                                            .help = "list the results without accepting them"},
                                           {"delivery", 0, &cli_flag, CLI_AT(struct rejection, delivery),
                                            .help = "the numbers are of deliveries: send these files"},
                                           {0}},
    .size = sizeof(struct rejection),
    JOBS(0),
    .check = accept_check,
    .run = accept_run};

static int
reject_check(struct cli_call *call)
{
    struct rejection *rejection = call->options;
    const char *name = call->command->name;
    int64_t job;
    if (cli_parse_number(call->arguments[0], &job) < 0)
        return cli_usage_error(name, "\"%s\" is not a %s number", call->arguments[0],
                               rejection->delivery ? "delivery" : "job");
    rejection->reason = call->arguments[1];
    call->count = 1;
    return *rejection->reason ? EXIT_OK : cli_usage_error(name, "needs a reason");
}

const struct cli_command cli_reject = {
    .name = "reject",
    .help = "reject the result of a job under review, or a delivery; it is not delivered",
    .usage = {"JOB REASON", "--delivery DELIVERY REASON"},
    .options =
        (const struct cli_option[]){
            {"delivery", 0, &cli_flag, CLI_AT(struct rejection, delivery), .help = "the number is of a delivery"}, {0}},
    .more = "The reason must be one argument, in quotes if it has several words. It is shown with "
            "the job and must not name patients.",
    .size = sizeof(struct rejection),
    .min_arguments = 2,
    .max_arguments = 2,
    .needs = "a number and a reason, in quotes if it has several words",
    .check = reject_check,
    .run = control_run,
    .request = &(const struct cli_request){PROTO_REJECT, "job", write_word, false}};

static void
write_undo(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    char login[256];
    struct message_undo message = {.login = control_login(login, sizeof login)};
    (void)options;
    cli_parse_number(job, &message.job);
    message_write(writer, type, &message);
}

const struct cli_command cli_undo = {.name = "undo",
                                     .help =
                                         "undo decisions of the web UI on results under review, until they take effect",
                                     .usage = {"JOB..."},
                                     JOBS(1),
                                     .run = control_run,
                                     .request = &(const struct cli_request){PROTO_UNDO, "job", write_undo, false}};

/* Options of `resend` for all deliveries of a job or a destination. */
struct resend {
    int64_t job;             /* 0 if not given */
    const char *destination; /* NULL if not given */
    bool not_arrived;
};

static int
resend_check(struct cli_call *call)
{
    const struct resend *resend = call->options;
    const char *name = call->command->name;
    if ((call->count > 0) + (resend->job != 0) + (resend->destination != NULL) != 1)
        return cli_usage_error(name, "needs delivery numbers, or --job, or --destination");
    if (call->count > 0 && resend->not_arrived)
        return cli_usage_error(name, "--failed needs --job or --destination");
    return EXIT_OK;
}

static void
write_resend(struct proto_writer *writer, enum proto_type type, const char *delivery, const void *options)
{
    const struct resend *resend = options;
    struct message_resend message = {.job = resend->job,
                                     .destination = resend->destination ? resend->destination : "",
                                     .not_arrived = resend->not_arrived};
    if (delivery)
        cli_parse_number(delivery, &message.delivery);
    message_write(writer, type, &message);
}

static int
resend_run(struct cli_call *call)
{
    static const struct cli_request by_number = {PROTO_RESEND, "delivery", write_resend, false};
    static const struct cli_request by_option = {PROTO_RESEND, "resend", write_resend, false};
    return control_request(call, call->count > 0 ? &by_number : &by_option, call->count == 0);
}

const struct cli_command cli_resend = {
    .name = "resend",
    .help = "send results again",
    .usage = {"DELIVERY...", "--job JOB [--failed]", "--destination NAME [--failed]"},
    .options =
        (const struct cli_option[]){
            {"job", 0, &cli_job, CLI_AT(struct resend, job), .help = "all results of this job"},
            {"destination", 0, &cli_destination, CLI_AT(struct resend, destination),
             .help = "all results for this destination"},
            {"failed", 0, &cli_flag, CLI_AT(struct resend, not_arrived), .help = "only results that have not arrived"},
            {0}},
    .size = sizeof(struct resend),
    .kind = &cli_id,
    .max_arguments = INT_MAX,
    .check = resend_check,
    .run = resend_run};

int
cli_ping_daemon(const char *root, int seconds, char **message, char **alerts)
{
    *message = *alerts = NULL;
    int fd = connect_daemon(root, seconds);
    if (fd < 0)
        return fd;
    struct proto_writer writer;
    struct proto_stream stream = {0};
    struct message_answer answer;
    proto_start(&writer, PROTO_PING);
    const int rc = control_exchange(fd, &writer, &stream, &answer);
    if (rc == 0) {
        *message = strdup(answer.message);
        *alerts = strdup(answer.body);
    }
    proto_stream_release(&stream);
    close(fd);
    return rc < 0 ? rc : (int)answer.status;
}

#define RELOAD_SECONDS 120 /* opening ports takes time; systemd allows a reload 90 s or more */

static int
reload_run(struct cli_call *call)
{
    const char *root = call->context->conf->root;
    char login[256];
    const struct message_reload_config message = {.login = control_login(login, sizeof login)};
    const int fd = connect_daemon(root, RELOAD_SECONDS);
    struct proto_writer writer;
    struct proto_stream stream = {0};
    struct message_answer answer;
    int rc = fd < 0 ? fd : 0, status = EXIT_NO_DAEMON;
    if (rc == 0) {
        message_write(&writer, PROTO_RELOAD_CONFIG, &message);
        rc = control_exchange(fd, &writer, &stream, &answer);
    }
    if (rc < 0) {
        char why[PATH_MAX + 64];
        cli_no_answer(root, RELOAD_SECONDS, rc, why, sizeof why);
        cli_print_error("%s", why);
    } else {
        status = print_answer("reload", &answer, "");
        if (answer.status == -EINVAL)
            status = EXIT_CONFIG;
    }
    proto_stream_release(&stream);
    if (fd >= 0)
        close(fd);
    return status;
}

const struct cli_command cli_reload = {
    .name = "reload",
    .help = "reload the configuration and wait for the outcome",
    .more = "Exit status: 0 if the new configuration is in force and its ports are open, 1 if a "
            "port is not open, 5 if the configuration is refused. The old one then stays in force.",
    .run = reload_run};

static int
ping_run(struct cli_call *call)
{
    const char *root = call->context->conf->root;
    char *message, *alerts;
    int rc = cli_ping_daemon(root, CLI_DAEMON_SECONDS, &message, &alerts);
    if (rc == 0)
        printf("noctuled answers; root %s\n", root);
    else if (message)
        cli_print_error("%s", message);
    else
        no_daemon(root, rc);
    free(message);
    free(alerts);
    return rc == 0 ? EXIT_OK : EXIT_NO_DAEMON;
}

const struct cli_command cli_ping = {
    .name = "ping", .help = "check that the daemon runs and receives files", .run = ping_run};

/*
 * cli_control.c - the commands that speak to the daemon: retry, cancel, complete, accept, reject, resend,
 * ping ...; purge.c has purge.
 *
 * One connection per command, one frame and one ANSWER per thing asked for; blocking, with a timeout.
 */
#include "service/cli/control.h"

#include "db/report.h"
#include "service/common/layout.h"
#include "service/common/wire/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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

#define TIMEOUT_SECONDS 10

/*
 * The address of the socket in the root folder. A path too long for sockaddr_un goes through the
 * open folder; *folder is that descriptor, to be closed after connecting, or -1.
 */
static int
socket_address(const char *root, struct sockaddr_un *address, int *folder)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *folder = -1;
    char *path = address->sun_path;
    size_t size = sizeof(address->sun_path);
    int length = snprintf(path, size, "%s/" LAYOUT_CONTROL_SOCKET, root);
    if (length >= 0 && (size_t)length < size)
        return 0;
    *folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0)
        return -errno;
    snprintf(path, size, "/proc/self/fd/%d/" LAYOUT_CONTROL_SOCKET, *folder);
    return 0;
}

static int
connect_within(int fd, const struct sockaddr_un *address)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
        connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return -errno;
    return 0;
}

/* A connected descriptor, or a negative errno. */
static int
connect_daemon(const char *root)
{
    struct sockaddr_un address;
    int folder;
    int rc = socket_address(root, &address, &folder);
    if (rc < 0)
        return rc;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rc = fd < 0 ? -errno : connect_within(fd, &address);
    if (folder >= 0)
        close(folder);
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

static int
control_send(int fd, struct proto_writer *writer)
{
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
    return rc;
}

/* The next frame; it points into the stream. */
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

/* Sends the frame and reads the ANSWER, which points into the stream: 0 when there is one, whatever
 * it says. */
static int
control_ask(int fd, struct proto_writer *writer, struct proto_stream *stream,
            struct message_answer *answer)
{
    struct proto_reader reader;
    int rc = control_send(fd, writer);
    if (rc == 0)
        rc = control_receive(fd, stream, &reader);
    return rc < 0 ? rc : message_read_answer(&reader, answer);
}

/*
 * The process that works in this root; 0: none, or it cannot be seen. The kernel is asked: a lock
 * that is tried would be in the way of a daemon that starts.
 */
static int
control_find_daemon(const char *root)
{
    char path[PATH_MAX], line[256];
    struct stat lock;
    snprintf(path, sizeof path, "%s/" LAYOUT_LOCK, root);
    FILE *locks = stat(path, &lock) == 0 ? fopen("/proc/locks", "re") : NULL;
    int found = 0, pid;
    unsigned major_number, minor_number;
    unsigned long long inode;
    while (locks && !found && fgets(line, sizeof line, locks)) {
        if (sscanf(line, "%*d: FLOCK ADVISORY WRITE %d %x:%x:%llu ", &pid, &major_number,
                   &minor_number, &inode) == 4 &&
            inode == lock.st_ino && makedev(major_number, minor_number) == lock.st_dev)
            found = pid;
    }
    if (locks)
        fclose(locks);
    return found;
}

/* Only its own user and root may ask the daemon. */
static void
control_describe_refusal(const char *root, char *why, size_t size)
{
    char path[PATH_MAX];
    struct stat folder;
    snprintf(path, sizeof path, "%s/" LAYOUT_RUN, root);
    const struct passwd *owner = stat(path, &folder) == 0 ? getpwuid(folder.st_uid) : NULL;
    snprintf(why, size, "this user may not ask noctuled: only %s%s may",
             owner ? owner->pw_name : "its own user",
             owner && owner->pw_uid == 0 ? "" : " and root");
}

const char *
cli_no_answer(const char *root, int rc, char *why, size_t size)
{
    char process[32] = "";
    const int daemon = control_find_daemon(root);
    if (daemon)
        snprintf(process, sizeof process, " (process %d)", daemon);
    if (rc == -EACCES || rc == -EPERM) {
        control_describe_refusal(root, why, size);
        return "unknown";
    }
    if (rc == -EAGAIN || rc == -ETIMEDOUT) {
        snprintf(why, size, "noctuled%s did not answer within %d seconds", process,
                 TIMEOUT_SECONDS);
        return "not answering";
    }
    if (daemon) {
        snprintf(why, size, "noctuled%s runs, but cannot be asked: %s", process, strerror(-rc));
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
    cli_no_answer(root, rc, why, sizeof why);
    cli_complain("%s", why);
    return EXIT_NO_DAEMON;
}

/* `before`: printed before a body. */
static int
print_answer(const char *what, const struct message_answer *answer, const char *before)
{
    if (*answer->body)
        printf("%s%s", before, answer->body);
    else if (answer->status == 0)
        printf("%s%s\n", *answer->message ? answer->message : what,
               *answer->message ? "" : ": done");
    else if (*answer->message)
        cli_complain("%s", answer->message);
    else
        cli_complain("%s: %s", what, strerror((int)-answer->status));
    if (answer->status == 0)
        return EXIT_OK;
    return answer->status == -ENOENT ? EXIT_NOT_FOUND : EXIT_PARTIAL;
}

/* What came of asking: the daemon is gone; a body was printed. */
struct asked {
    bool lost, told;
};

/* One thing asked for and the answer printed, `before` before a body. */
static int
control_ask_about(int fd, const char *root, const char *what, struct proto_writer *writer,
                  const char *before, struct asked *asked)
{
    struct proto_stream stream = {0};
    struct message_answer answer;
    const int rc = control_ask(fd, writer, &stream, &answer);
    asked->lost = rc < 0;
    asked->told |= rc == 0 && *answer.body;
    const int status = rc < 0 ? no_daemon(root, rc) : print_answer(what, &answer, before);
    proto_stream_release(&stream);
    return status;
}

/* Several failures of one kind keep their exit code; unlike ones are a partial failure. */
static int
worse(int before, int now)
{
    if (now == EXIT_OK || now == before)
        return before;
    return before == EXIT_OK ? now : EXIT_PARTIAL;
}

/* What `resend` was asked for: deliveries by number, all of a job, or all of a destination. */
struct resend {
    char **deliveries;
    int delivery_count;
    int64_t job;             /* 0: not given */
    const char *destination; /* "": not given */
    bool not_arrived;
};

int
control_ask_all(const char *root, const struct question *question, char **arguments, int count,
                const void *options)
{
    int fd = connect_daemon(root);
    if (fd < 0)
        return no_daemon(root, fd);
    int status = EXIT_OK;
    struct asked asked = {false, false};
    fputs(question->array ? "[\n" : "", stdout);
    for (int i = 0; i < count && !asked.lost; i++) {
        char what[80];
        struct proto_writer writer;
        snprintf(what, sizeof(what), "%s%s%s", question->noun, arguments[i] ? " " : "",
                 arguments[i] ? arguments[i] : "");
        question->write(&writer, question->type, arguments[i], options);
        status =
            worse(status, control_ask_about(fd, root, what, &writer,
                                            question->array && asked.told ? ",\n" : "", &asked));
    }
    close(fd);
    fputs(question->array ? "]\n" : "", stdout);
    return status;
}

static bool
control_is_job(const char *argument)
{
    int64_t job;
    return cli_parse_number(argument, &job) == 0;
}

static void
write_cancel(struct proto_writer *writer, enum proto_type type, const char *job,
             const void *options)
{
    struct message_cancel message = {0};
    (void)options;
    cli_parse_number(job, &message.job);
    message_write(writer, type, &message);
}

/* What `retry` was asked for. */
struct retry {
    bool current, force, failed;
    struct report_filter filter; /* of --failed */
};

static void
write_retry(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    const struct retry *retry = options;
    struct message_retry message = {.current = retry->current, .again = retry->force};
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

/* `options`: the flag --accept-missing. */
static void
write_series(struct proto_writer *writer, enum proto_type type, const char *series_uid,
             const void *options)
{
    const bool *accept_missing = options;
    char login[256];
    const struct message_complete message = {.series_uid = series_uid,
                                             .accept_missing = *accept_missing,
                                             .login = control_login(login, sizeof(login))};
    message_write(writer, type, &message);
}

static int
control_ask_each(const struct cli_context *context, const struct question *question,
                 char **arguments, int count, const void *options)
{
    if (count < 1 || arguments[0][0] == '-')
        return cli_usage_error(question->command, "needs %s", question->needs);
    for (int i = 0; i < count; i++)
        if (!question->is_one(arguments[i]))
            return cli_usage_error(question->command, "\"%s\" is not %s", arguments[i],
                                   question->one);
    return control_ask_all(context->conf->root, question, arguments, count, options);
}

static int
cli_cancel(const struct cli_context *context, int argc, char **argv)
{
    static const struct question question = {
        PROTO_CANCEL,   "job",          write_cancel, "cancel", "one or more job numbers",
        "a job number", control_is_job, false};
    return control_ask_each(context, &question, argv + 1, argc - 1, NULL);
}

/* About all rows that the filter chooses. */
static int
control_ask_chosen(const struct cli_context *context, const struct question *question,
                   const struct report_list *list, const struct report_filter *filter,
                   const void *options)
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
        cli_complain("%s", error.message);
        return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
    }
    if (count == 0 && question->array)
        puts("[]");
    else if (count == 0)
        printf("there is no such %s\n", question->noun);
    else
        status = control_ask_all(context->conf->root, question, keys, (int)count, options);
    for (size_t i = 0; i < count; i++)
        free(keys[i]);
    free(keys);
    return status;
}

static int
cli_retry(const struct cli_context *context, int argc, char **argv)
{
    static const struct question question = {PROTO_RETRY,
                                             "job",
                                             write_retry,
                                             "retry",
                                             "one or more job numbers, or --failed",
                                             "a job number",
                                             control_is_job,
                                             false};
    char since[CLI_TIME];
    struct retry retry = {.filter = {.state = "FAILED"}};
    struct report_filter *filter = &retry.filter;
    const struct cli_option options[] = {{"current", .flag = &retry.current},
                                         {"force", .flag = &retry.force},
                                         {"failed", .flag = &retry.failed},
                                         {"pipeline", .text = &filter->pipeline},
                                         {"code", .text = &filter->code},
                                         {"since", .text = &filter->since},
                                         {.name = NULL}};
    int status = cli_parse_options(argc, argv, options);
    if (status != EXIT_OK)
        return status;
    if (cli_parse_since(&filter->since, since) < 0)
        return cli_usage_error(argv[0], "\"%s\" is no time", filter->since);
    if (!retry.failed && (filter->pipeline || filter->code || filter->since))
        return cli_usage_error(argv[0], "--pipeline, --code and --since go with --failed");
    if (!retry.failed)
        return control_ask_each(context, &question, argv + optind, argc - optind, &retry);
    if (optind < argc)
        return cli_usage_error(argv[0], "--failed takes no job numbers");
    filter->current = true;
    return control_ask_chosen(context, &question, &report_jobs, filter, &retry);
}

/* What `submit` was asked for. */
struct submit {
    const char *pipeline, *stacks; /* NULL: not given */
    bool rules, all, force, dry_run, json;
    struct report_filter filter; /* of --all */
};

static void
write_submit(struct proto_writer *writer, enum proto_type type, const char *series_uid,
             const void *options)
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
parse_submit(int argc, char **argv, struct submit *submit, char since[CLI_TIME])
{
    const struct cli_option options[] = {{"pipeline", .text = &submit->pipeline},
                                         {"stacks", .text = &submit->stacks},
                                         {"rules", .flag = &submit->rules},
                                         {"all", .flag = &submit->all},
                                         {"since", .text = &submit->filter.since},
                                         {"force", .flag = &submit->force},
                                         {"dry-run", .flag = &submit->dry_run},
                                         {"json", .flag = &submit->json},
                                         {.name = NULL}};
    int status = cli_parse_options(argc, argv, options);
    if (status != EXIT_OK)
        return status;
    if (cli_parse_since(&submit->filter.since, since) < 0)
        return cli_usage_error(argv[0], "\"%s\" is no time", submit->filter.since);
    const bool none = optind == argc;
    submit->all |= submit->rules && none; /* the rules are for everything */
    if ((submit->pipeline != NULL) == submit->rules)
        return cli_usage_error(argv[0], "needs --pipeline or --rules");
    if (submit->all != none)
        return cli_usage_error(argv[0], "needs Series Instance UIDs or --all");
    if (submit->stacks && submit->rules)
        return cli_usage_error(argv[0], "--stacks goes with --pipeline");
    if (submit->filter.since && !submit->all)
        return cli_usage_error(argv[0], "--since goes with --all or --rules");
    return EXIT_OK;
}

static int
cli_submit(const struct cli_context *context, int argc, char **argv)
{
    char since[CLI_TIME];
    struct submit submit = {.filter = {.state = "SETTLED", .current = true}};
    const struct conf_pipeline *pipeline;
    int status = parse_submit(argc, argv, &submit, since);
    if (status == EXIT_OK && submit.pipeline)
        status = cli_find_pipeline(context->conf, submit.pipeline, &pipeline);
    if (status != EXIT_OK)
        return status;
    const struct question question = {PROTO_SUBMIT,           "series", write_submit, "submit",
                                      "Series Instance UIDs", "a UID",  cli_is_uid,   submit.json};
    return submit.all
               ? control_ask_chosen(context, &question, &report_series, &submit.filter, &submit)
               : control_ask_each(context, &question, argv + optind, argc - optind, &submit);
}

static int
cli_complete(const struct cli_context *context, int argc, char **argv)
{
    static const struct question question = {
        PROTO_COMPLETE, "series",   write_series, "complete", "one or more Series Instance UIDs",
        "a UID",        cli_is_uid, false};
    bool accept_missing = false;
    const struct cli_option options[] = {{"accept-missing", .flag = &accept_missing},
                                         {.name = NULL}};
    int status = cli_parse_options(argc, argv, options);
    return status == EXIT_OK
               ? control_ask_each(context, &question, argv + optind, argc - optind, &accept_missing)
               : status;
}

/* What `hold` and `release` were asked for. */
struct hold {
    const char *kind, *name; /* NULL: jobs */
    const char *reason;
};

static void
write_hold(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    const struct hold *hold = options;
    char login[256];
    const struct message_hold message = {.kind = hold->kind ? hold->kind : "job",
                                         .name = hold->kind ? hold->name : job,
                                         .reason = hold->reason,
                                         .login = control_login(login, sizeof(login))};
    message_write(writer, type, &message); /* RELEASE has the same fields */
}

static int
parse_hold(int argc, char **argv, struct hold *hold)
{
    const char *pipeline = NULL, *destination = NULL;
    bool queue = false;
    const struct cli_option options[] = {{"pipeline", .text = &pipeline},
                                         {"destination", .text = &destination},
                                         {"queue", .flag = &queue},
                                         {"reason", .text = &hold->reason},
                                         {.name = NULL}};
    int status = cli_parse_options(argc, argv, options);
    if (status != EXIT_OK)
        return status;
    if ((pipeline != NULL) + (destination != NULL) + queue + (optind < argc) != 1)
        return cli_usage_error(argv[0], "needs job numbers, --pipeline, --destination or --queue");
    hold->kind = pipeline ? "pipeline" : destination ? "destination" : queue ? "queue" : NULL;
    hold->name = pipeline ? pipeline : destination ? destination : "";
    return EXIT_OK;
}

static int
cli_hold(const struct cli_context *context, int argc, char **argv)
{
    struct hold hold = {.reason = ""};
    int status = parse_hold(argc, argv, &hold);
    if (status != EXIT_OK)
        return status;
    const bool holds = strcmp(argv[0], "hold") == 0;
    const struct question question = {holds ? PROTO_HOLD : PROTO_RELEASE,
                                      hold.kind ? hold.kind : "job",
                                      write_hold,
                                      argv[0],
                                      "job numbers",
                                      "a job number",
                                      control_is_job,
                                      false};
    char *none = NULL;
    return hold.kind ? control_ask_all(context->conf->root, &question, &none, 1, &hold)
                     : control_ask_each(context, &question, argv + optind, argc - optind, &hold);
}

static void
write_priority(struct proto_writer *writer, enum proto_type type, const char *job,
               const void *options)
{
    char login[256];
    struct message_priority message = {.priority = *(const int64_t *)options,
                                       .login = control_login(login, sizeof(login))};
    cli_parse_number(job, &message.job);
    message_write(writer, type, &message);
}

static int
cli_priority(const struct cli_context *context, int argc, char **argv)
{
    static const struct question question = {
        PROTO_PRIORITY, "job",          write_priority, "priority", "a job number and a priority",
        "a job number", control_is_job, false};
    char *end = NULL;
    errno = 0;
    const int64_t priority = argc == 3 ? strtoll(argv[2], &end, 10) : 0;
    if (argc != 3)
        return cli_usage_error(argv[0], "needs %s", question.needs);
    if (errno || end == argv[2] || *end)
        return cli_usage_error(argv[0], "\"%s\" is no priority", argv[2]);
    return control_ask_each(context, &question, argv + 1, 1, &priority);
}

/* `options`: the reason of a rejection; NULL: it is accepted. */
static void
write_word(struct proto_writer *writer, enum proto_type type, const char *job, const void *options)
{
    char login[256];
    struct message_reject reject = {.reason = options, .login = control_login(login, sizeof login)};
    struct message_accept accept = {.login = reject.login};
    cli_parse_number(job, &reject.job);
    accept.job = reject.job;
    message_write(writer, type, options ? (const void *)&reject : &accept);
}

static int
cli_accept(const struct cli_context *context, int argc, char **argv)
{
    static const struct question question = {
        PROTO_ACCEPT,   "job",          write_word, "accept", "one or more job numbers",
        "a job number", control_is_job, false};
    const struct cli_option options[] = {{.name = NULL}};
    int status = cli_parse_options(argc, argv, options);
    return status == EXIT_OK
               ? control_ask_each(context, &question, argv + optind, argc - optind, NULL)
               : status;
}

static int
cli_reject(const struct cli_context *context, int argc, char **argv)
{
    static const struct question question = {
        PROTO_REJECT,   "job",          write_word, "reject", "a job number and a reason",
        "a job number", control_is_job, false};
    const struct cli_option options[] = {{.name = NULL}};
    int status = cli_parse_options(argc, argv, options);
    if (status != EXIT_OK)
        return status;
    if (argc - optind != 2 || !*argv[optind + 1])
        return cli_usage_error(argv[0], "needs %s, in quotes where it is of several words",
                               question.needs);
    return control_ask_each(context, &question, argv + optind, 1, argv[optind + 1]);
}

static int
parse_resend(int argc, char **argv, struct resend *resend)
{
    *resend = (struct resend){.destination = ""};
    const struct cli_option options[] = {{"job", .number = &resend->job, .noun = "job number"},
                                         {"destination", .text = &resend->destination},
                                         {"failed", .flag = &resend->not_arrived},
                                         {.name = NULL}};
    int status = cli_parse_options(argc, argv, options);
    resend->deliveries = argv + optind;
    resend->delivery_count = argc - optind;
    return status;
}

static int
check_resend(const char *command, const struct resend *resend)
{
    int64_t number;
    if ((resend->delivery_count > 0) + (resend->job != 0) + (resend->destination[0] != '\0') != 1)
        return cli_usage_error(command, "needs delivery numbers, or --job, or --destination");
    if (resend->delivery_count > 0 && resend->not_arrived)
        return cli_usage_error(command, "--failed goes with --job or --destination");
    for (int i = 0; i < resend->delivery_count; i++)
        if (cli_parse_number(resend->deliveries[i], &number) < 0)
            return cli_usage_error(command, "\"%s\" is not a delivery number",
                                   resend->deliveries[i]);
    return EXIT_OK;
}

static void
write_resend(struct proto_writer *writer, enum proto_type type, const char *delivery,
             const void *options)
{
    const struct resend *resend = options;
    struct message_resend message = {
        .job = resend->job, .destination = resend->destination, .not_arrived = resend->not_arrived};
    if (delivery)
        cli_parse_number(delivery, &message.delivery);
    message_write(writer, type, &message);
}

static int
cli_resend(const struct cli_context *context, int argc, char **argv)
{
    struct resend resend;
    int status = parse_resend(argc, argv, &resend);
    if (status == EXIT_OK)
        status = check_resend(argv[0], &resend);
    if (status != EXIT_OK)
        return status;
    static const struct question by_number = {PROTO_RESEND, "delivery", .write = write_resend};
    static const struct question by_option = {PROTO_RESEND, "resend", .write = write_resend};
    char *none = NULL;
    return resend.delivery_count > 0
               ? control_ask_all(context->conf->root, &by_number, resend.deliveries,
                                 resend.delivery_count, &resend)
               : control_ask_all(context->conf->root, &by_option, &none, 1, &resend);
}

int
cli_ask_daemon(const char *root, char **message, char **troubles)
{
    *message = *troubles = NULL;
    int fd = connect_daemon(root);
    if (fd < 0)
        return fd;
    struct proto_writer writer;
    struct proto_stream stream = {0};
    struct message_answer answer;
    proto_start(&writer, PROTO_PING);
    const int rc = control_ask(fd, &writer, &stream, &answer);
    if (rc == 0) {
        *message = strdup(answer.message);
        *troubles = strdup(answer.body);
    }
    proto_stream_release(&stream);
    close(fd);
    return rc < 0 ? rc : (int)answer.status;
}

static int
cli_ping(const struct cli_context *context, int argc, char **argv)
{
    if (argc > 1)
        return cli_usage_error(argv[0], "takes no arguments");
    char *message, *troubles;
    int rc = cli_ask_daemon(context->conf->root, &message, &troubles);
    if (rc == 0)
        printf("noctuled answers; root %s\n", context->conf->root);
    else if (message)
        cli_complain("%s", message);
    else
        no_daemon(context->conf->root, rc);
    free(message);
    free(troubles);
    return rc == 0 ? EXIT_OK : EXIT_NO_DAEMON;
}

const struct cli_command cli_control_commands[] = {
    {"retry", true, cli_retry,
     "[--current] [--force] JOB... | --failed [--pipeline P] [--code CODE] [--since WHEN]",
     "run jobs again; --current: with the pipeline as it is now; --force: also what went well"},
    {"submit", true, cli_submit,
     "SERIES_UID... | --all [--since WHEN] --pipeline P [--stacks S] | --rules [--force] "
     "[--dry-run]",
     "make jobs of stored series: for a pipeline, or what the rules say now"},
    {"cancel", true, cli_cancel, "JOB...", "cancel jobs, running ones too"},
    {"hold", true, cli_hold,
     "[--reason WORDS] JOB... | --pipeline NAME | --destination NAME | --queue",
     "start no such job, send nothing there, until it is released"},
    {"release", true, cli_hold, "JOB... | --pipeline NAME | --destination NAME | --queue",
     "let what was held go on"},
    {"priority", true, cli_priority, "JOB N", "change the priority of a job that waits"},
    {"complete", true, cli_complete, "[--accept-missing] SERIES_UID...",
     "count series as complete now, judge refused ones again; --accept-missing: as they are"},
    {"accept", true, cli_accept, "JOB...",
     "take results under review as they are, and deliver them"},
    {"reject", true, cli_reject, "JOB REASON", "end a job under review; nothing is delivered"},
    {"resend", true, cli_resend,
     "DELIVERY... | --job JOB [--failed] | --destination NAME [--failed]",
     "send results once more; --failed: only those that have not arrived"},
    {"purge", true, cli_purge,
     "SERIES_UID... | --patient ID | --before WHEN [--undelivered] [--dry-run] [--yes] [--json]",
     "remove series now: images, results, quarantined files, and names; asks first"},
    {"ping", true, cli_ping, "", "ask whether the daemon runs and takes files in"},
    {0},
};

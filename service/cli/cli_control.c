/*
 * cli_control.c - the commands that speak to the daemon: retry, cancel, complete, resend, ping.
 *
 * One connection a command, one frame and one ANSWER a thing asked for; blocking, with a timeout.
 */
#include "service/cli/cli.h"

#include "service/common/layout.h"
#include "service/common/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_SECONDS 10
#define SENTENCE_SIZE   1024

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
send_frame(int fd, struct proto_writer *writer)
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
receive_frame(int fd, struct proto_stream *stream, struct proto_reader *reader)
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

/* Sends the frame and reads the ANSWER: 0 when there is one, whatever it says. */
static int
ask(int fd, struct proto_writer *writer, int64_t *status, char *sentence, size_t sentence_size)
{
    int rc = send_frame(fd, writer);
    if (rc < 0)
        return rc;
    struct proto_stream stream = {0};
    struct proto_reader reader;
    rc = receive_frame(fd, &stream, &reader);
    if (rc == 0 && reader.type != PROTO_ANSWER)
        rc = -EBADMSG;
    if (rc == 0) {
        *status = proto_get_i64(&reader);
        snprintf(sentence, sentence_size, "%s", proto_get_str(&reader));
        rc = proto_end(&reader);
    }
    proto_stream_release(&stream);
    return rc;
}

static int
no_daemon(const char *root, int rc)
{
    if (rc == -ENOENT || rc == -ECONNREFUSED || rc == -ENOTDIR)
        cli_complain("noctuled is not running with root %s", root);
    else if (rc == -EAGAIN || rc == -ETIMEDOUT)
        cli_complain("noctuled did not answer within %d seconds", TIMEOUT_SECONDS);
    else
        cli_complain("noctuled cannot be reached: %s", strerror(-rc));
    return EXIT_NO_DAEMON;
}

/* One thing asked for and the answer printed; *lost is set when the daemon is gone. */
static int
ask_about(int fd, const char *root, const char *what, struct proto_writer *writer, bool *lost)
{
    int64_t status = 0;
    char sentence[SENTENCE_SIZE];
    int rc = ask(fd, writer, &status, sentence, sizeof(sentence));
    if (rc < 0) {
        *lost = true;
        return no_daemon(root, rc);
    }
    if (status == 0) {
        printf("%s%s\n", sentence[0] ? sentence : what, sentence[0] ? "" : ": done");
        return EXIT_OK;
    }
    if (sentence[0])
        cli_complain("%s", sentence);
    else
        cli_complain("%s: %s", what, strerror((int)-status));
    return status == -ENOENT ? EXIT_NOT_FOUND : EXIT_PARTIAL;
}

/* Several failures of one kind keep their exit code; unlike ones are a partial failure. */
static int
worse(int before, int now)
{
    if (now == EXIT_OK || now == before)
        return before;
    return before == EXIT_OK ? now : EXIT_PARTIAL;
}

static int
refuse_options(int argc, char **argv, const char *needs)
{
    if (argc < 2 || argv[1][0] == '-')
        return cli_usage_error(argv[0], "needs %s", needs);
    return EXIT_OK;
}

static int
control_jobs(const struct cli_context *context, int argc, char **argv, enum proto_type type)
{
    int status = refuse_options(argc, argv, "one or more job numbers");
    if (status != EXIT_OK)
        return status;
    int64_t job;
    for (int i = 1; i < argc; i++)
        if (cli_parse_number(argv[i], &job) < 0)
            return cli_usage_error(argv[0], "\"%s\" is not a job number", argv[i]);

    const char *root = context->conf->root;
    int fd = connect_daemon(root);
    if (fd < 0)
        return no_daemon(root, fd);
    bool lost = false;
    for (int i = 1; i < argc && !lost; i++) {
        char what[64];
        struct proto_writer writer;
        cli_parse_number(argv[i], &job);
        snprintf(what, sizeof(what), "job %lld", (long long)job);
        proto_start(&writer, type);
        proto_put_i64(&writer, job);
        status = worse(status, ask_about(fd, root, what, &writer, &lost));
    }
    close(fd);
    return status;
}

int
cli_retry(const struct cli_context *context, int argc, char **argv)
{
    return control_jobs(context, argc, argv, PROTO_RETRY);
}

int
cli_cancel(const struct cli_context *context, int argc, char **argv)
{
    return control_jobs(context, argc, argv, PROTO_CANCEL);
}

int
cli_complete(const struct cli_context *context, int argc, char **argv)
{
    int status = refuse_options(argc, argv, "one or more Series Instance UIDs");
    if (status != EXIT_OK)
        return status;
    for (int i = 1; i < argc; i++)
        if (strlen(argv[i]) > 64 || argv[i][strspn(argv[i], "0123456789.")] || !argv[i][0])
            return cli_usage_error(argv[0], "\"%s\" is not a UID", argv[i]);

    const char *root = context->conf->root;
    int fd = connect_daemon(root);
    if (fd < 0)
        return no_daemon(root, fd);
    bool lost = false;
    for (int i = 1; i < argc && !lost; i++) {
        char what[80];
        struct proto_writer writer;
        snprintf(what, sizeof(what), "series %s", argv[i]);
        proto_start(&writer, PROTO_COMPLETE);
        proto_put_str(&writer, argv[i]);
        status = worse(status, ask_about(fd, root, what, &writer, &lost));
    }
    close(fd);
    return status;
}

/* What `resend` was asked for: deliveries by number, all of a job, or all of a destination. */
struct resend {
    char **deliveries;
    int delivery_count;
    int64_t job;             /* 0: not given */
    const char *destination; /* "": not given */
    bool not_arrived;
};

static int
parse_resend(int argc, char **argv, struct resend *resend)
{
    static const struct option options[] = {{"job", required_argument, NULL, 'J'},
                                            {"destination", required_argument, NULL, 'd'},
                                            {"failed", no_argument, NULL, 'f'},
                                            {NULL, 0, NULL, 0}};
    int option;
    *resend = (struct resend){.destination = ""};
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'J':
            if (cli_parse_number(optarg, &resend->job) < 0)
                return cli_usage_error(argv[0], "\"%s\" is not a job number", optarg);
            break;
        case 'd':
            resend->destination = optarg;
            break;
        case 'f':
            resend->not_arrived = true;
            break;
        default:
            return cli_usage_error(argv[0], "wrong options");
        }
    }
    resend->deliveries = argv + optind;
    resend->delivery_count = argc - optind;
    return EXIT_OK;
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

static int
ask_resend(int fd, const char *root, int64_t delivery, const struct resend *resend, bool *lost)
{
    char what[64] = "resend";
    struct proto_writer writer;
    if (delivery)
        snprintf(what, sizeof(what), "delivery %lld", (long long)delivery);
    proto_start(&writer, PROTO_RESEND);
    proto_put_i64(&writer, delivery);
    proto_put_i64(&writer, resend->job);
    proto_put_str(&writer, resend->destination);
    proto_put_i64(&writer, resend->not_arrived);
    return ask_about(fd, root, what, &writer, lost);
}

int
cli_resend(const struct cli_context *context, int argc, char **argv)
{
    struct resend resend;
    int status = parse_resend(argc, argv, &resend);
    if (status == EXIT_OK)
        status = check_resend(argv[0], &resend);
    if (status != EXIT_OK)
        return status;

    const char *root = context->conf->root;
    int fd = connect_daemon(root);
    if (fd < 0)
        return no_daemon(root, fd);
    bool lost = false;
    if (resend.delivery_count == 0)
        status = ask_resend(fd, root, 0, &resend, &lost);
    for (int i = 0; i < resend.delivery_count && !lost; i++) {
        int64_t delivery;
        cli_parse_number(resend.deliveries[i], &delivery);
        status = worse(status, ask_resend(fd, root, delivery, &resend, &lost));
    }
    close(fd);
    return status;
}

int
cli_daemon_answers(const char *root)
{
    int fd = connect_daemon(root);
    if (fd < 0)
        return fd;
    struct proto_writer writer;
    int64_t status = 0;
    char sentence[SENTENCE_SIZE];
    proto_start(&writer, PROTO_PING);
    int rc = ask(fd, &writer, &status, sentence, sizeof(sentence));
    close(fd);
    return rc < 0 ? rc : (int)status;
}

int
cli_ping(const struct cli_context *context, int argc, char **argv)
{
    if (argc > 1)
        return cli_usage_error(argv[0], "takes no arguments");
    int rc = cli_daemon_answers(context->conf->root);
    if (rc < 0)
        return no_daemon(context->conf->root, rc);
    printf("noctuled answers; root %s\n", context->conf->root);
    return EXIT_OK;
}

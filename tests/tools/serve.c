/*
 * serve.c - a storage SCP for the tests of dicom_serve: listens on a free loopback port, with one thread per
 * connection.
 *
 *   serve FOLDER [--echo-only AE] [--refuse WHAT AE] [--full-after BYTES] [--max-pdu N] [--acse N]
 *                [--dimse N] [--idle N] [--tls CERT KEY CA] [--require-peer]
 *
 * Prints "port N", then one line per event: admit, opened, begin, end, committed, closed, served. At the end of its
 * standard input, waits for the end of the associations and exits with 0.
 */
#include "dicom/net/scp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct settings {
    const char *folder;
    const char *echo_only_ae;
    const char *refused_ae;
    enum dicom_admission refusal;
    long full_after; /* max size of a file, RLIMIT_FSIZE; 0: no limit */
    struct dicom_tls_settings tls;
    struct dicom_serve_options serve;
};

static struct settings settings;

struct visit {
    struct visit *next;
    pthread_t thread;
    int fd;
    int file;
    char path[512];
};

static struct visit *visits; /* all visits since the start */

static enum dicom_admission
admit(void *context, const struct dicom_association_request *request)
{
    (void)context;
    printf("admit %s %s %s tls=%d cn=%s sha256=%s\n", request->calling_ae, request->called_ae, request->host,
           request->tls, request->certificate_name, request->certificate_fingerprint);
    if (settings.echo_only_ae && strcmp(settings.echo_only_ae, request->calling_ae) == 0)
        return DICOM_ADMIT_ECHO;
    if (settings.refused_ae && strcmp(settings.refused_ae, request->calling_ae) == 0)
        return settings.refusal;
    return DICOM_ADMIT;
}

static uint16_t
store_begin(void *context, const struct dicom_store *store, int *fd)
{
    struct visit *visit = context;
    printf("begin %s %s %s\n", store->sop_class_uid, store->sop_instance_uid, store->transfer_syntax_uid);
    snprintf(visit->path, sizeof(visit->path), "%s/%s.part", settings.folder, store->sop_instance_uid);
    visit->file = open(visit->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (visit->file < 0)
        return DICOM_OUT_OF_RESOURCES;
    *fd = visit->file;
    return DICOM_SUCCESS;
}

static uint16_t
store_end(void *context, const struct dicom_store *store, int64_t bytes, int error)
{
    struct visit *visit = context;
    char final[512];
    snprintf(final, sizeof(final), "%s/%s.dcm", settings.folder, store->sop_instance_uid);
    close(visit->file);
    if (error ? unlink(visit->path) != 0 : rename(visit->path, final) != 0)
        perror(visit->path);
    printf("end %s %lld %d\n", store->sop_instance_uid, (long long)bytes, error);
    return error ? DICOM_OUT_OF_RESOURCES : DICOM_SUCCESS;
}

static uint16_t
committed(void *context, const struct dicom_association_request *association, const struct dicom_commitment *commitment)
{
    (void)context;
    printf("committed %s %s %zu", association->calling_ae, commitment->transaction_uid, commitment->count);
    for (size_t i = 0; i < commitment->count; i++)
        printf(" %s=%u", commitment->references[i].sop_instance_uid,
               (unsigned)commitment->references[i].failure_reason);
    printf("\n");
    return DICOM_SUCCESS;
}

static void
opened(void *context, const struct dicom_association_request *association)
{
    (void)context;
    printf("opened %s\n", association->calling_ae);
}

static void
closed(void *context, const struct dicom_association_request *association,
       const struct dicom_association_totals *totals, int rc, const struct error *error)
{
    (void)context;
    printf("closed %s %llu %llu %llu %d %s\n", association->calling_ae, (unsigned long long)totals->instances,
           (unsigned long long)totals->refused, (unsigned long long)totals->bytes, rc, code_name(error->code));
}

static void *
serve(void *argument)
{
    struct visit *visit = argument;
    const struct dicom_receiver receiver = {
        .context = visit,
        .admit = admit,
        .store_begin = store_begin,
        .store_end = store_end,
        .committed = committed,
        .opened = opened,
        .closed = closed,
    };
    struct error error = {0};
    const int rc = dicom_serve(visit->fd, &settings.serve, &receiver, &error);
    printf("served %d %s %s\n", rc, code_name(error.code), error.message);
    return NULL;
}

static void
start(int fd)
{
    const int on = 1;
    struct visit *visit = calloc(1, sizeof(*visit));
    if (!visit || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
        abort();
    visit->fd = fd;
    visit->next = visits;
    visits = visit;
    if (pthread_create(&visit->thread, NULL, serve, visit) != 0)
        abort();
}

static int
listen_on_loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        perror("listen");
        exit(1);
    }
    printf("port %d\n", ntohs(address.sin_port));
    return fd;
}

static enum dicom_admission
refusal_named(const char *name)
{
    return strcmp(name, "calling") == 0  ? DICOM_REFUSE_CALLING
           : strcmp(name, "called") == 0 ? DICOM_REFUSE_CALLED
           : strcmp(name, "busy") == 0   ? DICOM_REFUSE_BUSY
                                         : DICOM_REFUSE_HOST;
}

static uint32_t
number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

static void
read_arguments(char **argv)
{
    settings.folder = *argv++;
    settings.serve = (struct dicom_serve_options){
        .max_pdu = DICOM_PDU_MAX,
        .acse_seconds = 30,
        .dimse_seconds = 30,
        .idle_seconds = 30,
        .max_instance = UINT64_C(1) << 32,
    };
    for (; *argv; argv++) {
        if (strcmp(*argv, "--echo-only") == 0) {
            settings.echo_only_ae = *++argv;
        } else if (strcmp(*argv, "--refuse") == 0) {
            settings.refusal = refusal_named(*++argv);
            settings.refused_ae = *++argv;
        } else if (strcmp(*argv, "--full-after") == 0) {
            settings.full_after = strtol(*++argv, NULL, 10);
        } else if (strcmp(*argv, "--max-pdu") == 0) {
            settings.serve.max_pdu = number(*++argv);
        } else if (strcmp(*argv, "--acse") == 0) {
            settings.serve.acse_seconds = number(*++argv);
        } else if (strcmp(*argv, "--dimse") == 0) {
            settings.serve.dimse_seconds = number(*++argv);
        } else if (strcmp(*argv, "--idle") == 0) {
            settings.serve.idle_seconds = number(*++argv);
        } else if (strcmp(*argv, "--min-rate") == 0) {
            settings.serve.min_rate = number(*++argv);
        } else if (strcmp(*argv, "--max-instance") == 0) {
            settings.serve.max_instance = number(*++argv);
        } else if (strcmp(*argv, "--tls") == 0) {
            settings.tls.certificate = *++argv;
            settings.tls.key = *++argv;
            settings.tls.ca = *++argv;
        } else if (strcmp(*argv, "--require-peer") == 0) {
            settings.tls.require_peer = true;
        } else {
            fprintf(stderr, "serve: %s?\n", *argv);
            exit(2);
        }
    }
}

/* Makes writes beyond the limit fail with EFBIG, like ENOSPC on a full disk. */
static void
limit_files(void)
{
    const struct rlimit limit = {(rlim_t)settings.full_after, (rlim_t)settings.full_after};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
}

static void
accept_until_eof(int listener)
{
    struct pollfd fds[2] = {{listener, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
        if (fds[1].revents)
            return;
        if (fds[0].revents) {
            const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0)
                start(fd);
        }
    }
}

int
main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_arguments(argv + 1);
    if (settings.full_after)
        limit_files();
    dicom_init();
    struct dicom_tls *tls = NULL;
    struct error error;
    if (settings.tls.certificate && dicom_tls_open(&settings.tls, true, &tls, &error) != 0) {
        printf("fault %s %s\n", code_name(error.code), error.message);
        return 1;
    }
    settings.serve.tls = tls;
    settings.serve.stop_fd = eventfd(0, EFD_CLOEXEC);
    const int listener = listen_on_loopback();
    accept_until_eof(listener);
    close(listener);
    if (eventfd_write(settings.serve.stop_fd, 1) != 0)
        abort();
    while (visits) {
        struct visit *visit = visits;
        visits = visit->next;
        if (pthread_join(visit->thread, NULL) != 0)
            abort();
        free(visit);
    }
    dicom_tls_close(tls);
    close(settings.serve.stop_fd);
    return 0;
}

/* cli_echo.c - `noctule echo`: tests a destination without the daemon. See cli.h. */
#include "service/cli/cli.h"

#include "dicom/net/scu.h"
#include "service/common/settings.h"
#include "service/common/stow/stow.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANSWER_SIZE 512

static double
echo_within(double configured, double seconds)
{
    return seconds > 0 ? fmin(configured, seconds) : configured;
}

/* Builds a peer from a destination or a source. Both have the options of AE_ROWS. */
#define ECHO_PEER(called)                                                                                              \
    {                                                                                                                  \
        .calling_ae = (called)->calling_ae_title, .called_ae = (called)->ae_title, .host = (called)->host,             \
        .port = (called)->port, .certificate = (called)->certificate, .connect_seconds = (called)->connect_seconds,    \
        .dimse_seconds = (called)->dimse_seconds                                                                       \
    }

/* `peer` must come from ECHO_PEER. */
static int
echo_ae(const struct conf *conf, bool with_tls, double seconds, struct dicom_peer *peer, char *answer, size_t size,
        struct error *error)
{
    if (with_tls && !(peer->tls = settings_open_tls(&conf->dicom.tls, false, error)))
        return -EINVAL;
    peer->connect_seconds = echo_within(peer->connect_seconds, seconds);
    peer->acse_seconds = echo_within(conf->dicom.acse_seconds, seconds);
    peer->dimse_seconds = echo_within(peer->dimse_seconds, seconds);
    peer->max_pdu = (uint32_t)conf->dicom.max_pdu_kib << 10;
    const int rc = dicom_echo(peer, answer, size, error);
    dicom_tls_close(peer->tls);
    return rc;
}

int
cli_echo_destination(const struct conf *conf, const struct conf_destination *destination, double seconds, char *answer,
                     size_t size, struct error *error)
{
    struct dicom_peer peer = ECHO_PEER(destination);
    const char *folder = destination->folder;
    struct stat status;
    if (folder) {
        int rc = faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
        if (rc == 0 && stat(folder, &status) == 0 && !S_ISDIR(status.st_mode))
            rc = -ENOTDIR;
        if (rc)
            return error_set(error, rc, CODE_NONE, "this user cannot write the folder %s: %s", folder, strerror(-rc));
        snprintf(answer, size, "this user can write the folder %s", folder);
        return 0;
    }
    if (!destination->stow)
        return echo_ae(conf, destination->tls, seconds, &peer, answer, size, error);
    struct conf_destination bounded = *destination;
    struct stow *stow;
    bounded.connect_seconds = echo_within(destination->connect_seconds, seconds);
    bounded.dimse_seconds = echo_within(destination->dimse_seconds, seconds);
    int rc = stow_open(&bounded, &stow, error);
    if (rc)
        return rc;
    rc = stow_echo(stow, answer, size, error);
    stow_close(stow);
    return rc;
}

int
cli_echo_source(const struct conf *conf, const struct conf_source *source, double seconds, char *answer, size_t size,
                struct error *error)
{
    struct dicom_peer peer = ECHO_PEER(source);
    return echo_ae(conf, source->tls, seconds, &peer, answer, size, error);
}

static int
echo_run(struct cli_call *call)
{
    const struct conf *conf = call->context->conf;
    const struct conf_destination *destination = conf_find_destination(conf, call->arguments[0]);
    char answer[ANSWER_SIZE] = "";
    struct error error;
    if (!destination) {
        cli_print_error("the configuration has no destination \"%s\" (noctule destinations lists them)",
                        call->arguments[0]);
        return EXIT_NOT_FOUND;
    }
    dicom_init();
    if (cli_echo_destination(conf, destination, 0, answer, sizeof answer, &error) < 0) {
        cli_print_error("%s: %s%s%s", destination->name, code_name(error.code), error.code ? ": " : "", error.message);
        return EXIT_PARTIAL;
    }
    printf("%s: %s\n", destination->name, answer);
    return EXIT_OK;
}

const struct cli_command cli_echo = {.name = "echo",
                                     .help = "test the connection to a destination (C-ECHO, STOW-RS, folder)",
                                     .usage = {"DESTINATION"},
                                     .kind = &cli_destination,
                                     .min_arguments = 1,
                                     .max_arguments = 1,
                                     .needs = "the name of one destination",
                                     .as_written = true,
                                     .run = echo_run};

/*
 * cli_echo.c - `noctule echo`: is a destination there? Asked directly, by this process as its user;
 * no daemon is needed.
 */
#include "service/cli/cli.h"

#include "dicom/net/scu.h"
#include "service/common/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GREETING_SIZE 256

static int
echo_folder(const struct conf_destination *destination)
{
    if (access(destination->folder, W_OK | X_OK) == 0) {
        printf("%s: the folder %s can be written by this user\n", destination->name,
               destination->folder);
        return EXIT_OK;
    }
    cli_complain("%s: the folder %s cannot be written by this user: %s", destination->name,
                 destination->folder, strerror(errno));
    return EXIT_PARTIAL;
}

static int
echo_ae(const struct conf *conf, const struct conf_destination *destination)
{
    char greeting[GREETING_SIZE] = "";
    struct error error;
    struct dicom_tls *tls = NULL;
    dicom_init();
    if (destination->tls)
        tls = settings_open_tls(&conf->dicom.tls, false, &error);
    int rc = destination->tls && !tls ? -EINVAL : 0;
    if (rc == 0) {
        const struct dicom_peer peer = {.calling_ae = destination->calling_ae_title,
                                        .called_ae = destination->ae_title,
                                        .host = destination->host,
                                        .port = destination->port,
                                        .tls = tls,
                                        .certificate = destination->certificate,
                                        .connect_seconds = destination->connect_seconds,
                                        .acse_seconds = conf->dicom.acse_seconds,
                                        .dimse_seconds = destination->dimse_seconds,
                                        .max_pdu = (uint32_t)conf->dicom.max_pdu_kib << 10};
        rc = dicom_echo(&peer, greeting, sizeof(greeting), &error);
        dicom_tls_close(tls);
    }
    if (rc < 0) {
        cli_complain("%s: %s: %s", destination->name, code_name(error.code), error.message);
        return EXIT_PARTIAL;
    }
    printf("%s: %s\n", destination->name, greeting);
    return EXIT_OK;
}

static int
echo_run(struct cli_call *call)
{
    const struct conf *conf = call->context->conf;
    const struct conf_destination *destination = conf_find_destination(conf, call->arguments[0]);
    if (!destination) {
        cli_complain("there is no destination \"%s\" in the configuration", call->arguments[0]);
        return EXIT_NOT_FOUND;
    }
    return destination->folder ? echo_folder(destination) : echo_ae(conf, destination);
}

const struct cli_command cli_echo = {.name = "echo",
                                     .help = "ask a destination whether it is there (C-ECHO)",
                                     .usage = {"DESTINATION"},
                                     .kind = &cli_destination,
                                     .least = 1,
                                     .most = 1,
                                     .needs = "the name of one destination",
                                     .run = echo_run};

/* doctor_network.c - checks ports, TLS files, destinations and sources. */
#include "service/cli/cli.h"
#include "service/cli/doctor/doctor.h"
#include "service/common/bind_at.h"
#include "service/common/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WARN_DAYS 30

/* ------------------------------------------------------------------------------- ports ---- */

struct own_port {
    const char *group; /* of the configuration */
    const char *bind;
    int port;
};

/* Lists the configured ports and returns their number. */
static size_t
port_list(const struct conf *conf, struct own_port ports[3])
{
    const struct own_port all[] = {
        {.group = "dicom", .bind = conf->dicom.bind, .port = conf->dicom.port},
        {.group = "dicom", .bind = conf->dicom.bind, .port = conf->dicom.tls_port},
        {.group = "page", .bind = conf->page.bind, .port = conf->page.port},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].port != 0)
            ports[count++] = all[i];
    return count;
}

size_t
doctor_count_ports(const struct conf *conf)
{
    struct own_port ports[3];
    return port_list(conf, ports);
}

static void
port_in_use(struct examination *examination, const struct own_port *own)
{
    const int port = own->port;
    const struct doctor *doctor = examination->doctor;
    const bool answers = !doctor->daemon_why[0];
    char alert[32] = "the page"; /* begins the alert of the web UI's process */
    if (strcmp(own->group, "dicom") == 0)
        snprintf(alert, sizeof alert, "port %d is not open", port); /* as in the listener's alert */
    if (!answers && doctor->daemon_pid == 0)
        doctor_find(examination, DOCTOR_BROKEN,
                    "another program uses port %d (ss -tlnp shows it): stop it, or change the port", port);
    else if (answers && doctor->daemon_alerts && strstr(doctor->daemon_alerts, alert))
        doctor_find(examination, DOCTOR_BROKEN,
                    "another program uses port %d, and noctuled waits for it (ss -tlnp shows the "
                    "program): stop it, or change the port",
                    port);
    else if (!answers)
        doctor_find(examination, DOCTOR_ATTENTION, "port %d is in use, perhaps by noctuled, which does not answer",
                    port);
    else
        doctor_fine(examination, "%d is open in noctuled", port);
}

void
doctor_check_port(struct examination *examination)
{
    const struct doctor *doctor = examination->doctor;
    struct own_port ports[3];
    port_list(doctor->conf, ports);
    const struct own_port *own = &ports[examination->index];
    const int port = own->port, fd = bind_at(own->bind, port);
    if (fd >= 0)
        close(fd);
    if (fd == -EADDRINUSE)
        port_in_use(examination, own);
    else if (fd == -EACCES && doctor->is_service && strcmp(doctor->daemon_state, "running") != 0)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "user %s cannot bind port %d: use 11112, or add "
                    "AmbientCapabilities=CAP_NET_BIND_SERVICE to the unit (noctuled(8))",
                    doctor->user, port);
    else if (fd == -EACCES) /* the unit may grant the capability */
        doctor_fine(examination, "%d; see the daemon's alerts for its state", port);
    else if (fd < 0)
        doctor_find(examination, DOCTOR_BROKEN, "cannot bind port %d of %s: %s%s%s%s", port,
                    own->bind[0] ? own->bind : "every address", strerror(-fd), fd == -EADDRNOTAVAIL ? ": " : "",
                    fd == -EADDRNOTAVAIL ? own->group : "",
                    fd == -EADDRNOTAVAIL ? ".bind is not an address of this machine" : "");
    else if (strcmp(doctor->daemon_state, "running") == 0)
        doctor_find(examination, DOCTOR_BROKEN,
                    "noctuled runs but does not listen on port %d: reload a changed configuration "
                    "(systemctl reload noctule)",
                    port);
    else
        doctor_fine(examination, "%d is free", port);
}

/* --------------------------------------------------------------------------------- TLS ---- */

size_t
doctor_count_tls(const struct conf *conf)
{
    return conf->dicom.tls.certificate || conf->dicom.tls.ca ? 1 : 0;
}

/* Checks the dates of all certificates in a file. The one that expires first decides. */
static void
tls_dates(struct examination *examination, const char *path)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    int first_days = INT_MAX, days, seconds;
    X509 *certificate;
    while (file && (certificate = PEM_read_X509(file, NULL, NULL, NULL))) {
        if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
            doctor_find(examination, DOCTOR_BROKEN, "%s is not valid yet: check the clock, or wait", path);
        if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) == 1) {
            days = days < 0 || seconds < 0 ? -1 : days;
            first_days = days < first_days ? days : first_days;
        }
        X509_free(certificate);
    }
    if (file)
        fclose(file);
    if (first_days < 0)
        doctor_find(examination, DOCTOR_BROKEN,
                    "%s has expired, so peers refuse it: renew it, then systemctl reload noctule", path);
    else if (first_days < WARN_DAYS)
        doctor_find(examination, DOCTOR_ATTENTION, "%s expires in %d days: renew it", path, first_days);
    else if (first_days < INT_MAX)
        doctor_fine(examination, "certificates are valid for at least %d days", first_days);
}

static void
tls_revocations(struct examination *examination, const char *path)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    X509_CRL *list;
    bool over = false;
    while (file && (list = PEM_read_X509_CRL(file, NULL, NULL, NULL))) {
        const ASN1_TIME *next = X509_CRL_get0_nextUpdate(list);
        over |= next && X509_cmp_current_time(next) < 0;
        X509_CRL_free(list);
    }
    if (file)
        fclose(file);
    if (over)
        doctor_find(examination, DOCTOR_BROKEN,
                    "%s is past its next update, so all peers are refused: fetch a new list", path);
}

void
doctor_check_tls(struct examination *examination)
{
    const struct conf *conf = examination->doctor->conf;
    const struct conf_tls *files = &conf->dicom.tls;
    const char *const paths[] = {files->certificate, files->key, files->ca, files->crl};
    struct stat status;
    struct error error;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (paths[i] && faccessat(AT_FDCWD, paths[i], R_OK, AT_EACCESS) < 0) {
            doctor_failed(examination, errno, paths[i], "create it, readable by the service's group");
            return;
        }
    }
    struct dicom_tls *tls = settings_open_tls(files, conf->dicom.tls_port > 0, &error);
    if (!tls) {
        doctor_find(examination, DOCTOR_BROKEN,
                    "%s Use the key of the certificate, both in PEM format without a pass phrase.", error.message);
        return;
    }
    dicom_tls_close(tls);
    tls_dates(examination, files->certificate);
    tls_dates(examination, files->ca);
    tls_revocations(examination, files->crl);
    if (files->key && stat(files->key, &status) == 0 && status.st_mode & S_IRWXO)
        doctor_find(examination, DOCTOR_ATTENTION, "every user of this machine can read the key %s: chmod 0640",
                    files->key);
}

/* ------------------------------------------------------------------------ destinations ---- */

static void
ae_is_silent(struct examination *examination, const char *name, const char *ours, const struct error *error)
{
    doctor_find(examination, DOCTOR_BROKEN,
                "%s: %s Check that it is running, that host, port and AE titles are correct, and that it accepts %s.",
                name, error->message, ours);
}

void
doctor_check_destination(struct examination *examination)
{
    const struct conf *conf = examination->doctor->conf;
    const struct conf_destination *destination = &conf->destinations[examination->index];
    char answer[512] = "";
    struct error error = {0};
    const int rc = cli_echo_destination(conf, destination, DOCTOR_SECONDS, answer, sizeof answer, &error);
    if (rc == 0)
        doctor_fine(examination, "%s: %s", destination->name, answer);
    else if (destination->folder)
        doctor_failed(examination, -rc, destination->folder,
                      "create or mount it, and allow the service's user to write");
    else if (destination->stow)
        doctor_find(examination, DOCTOR_BROKEN,
                    "%s: %s Check that it is running, and that the address and the credentials are correct.",
                    destination->name, error.message);
    else
        ae_is_silent(examination, destination->name, destination->calling_ae_title, &error);
}

/* ----------------------------------------------------------------------------- sources ---- */

/* C-ECHO is allowed outside the source's window. */
void
doctor_check_source(struct examination *examination)
{
    const struct conf *conf = examination->doctor->conf;
    const struct conf_source *source = &conf->pull.sources[examination->index];
    char answer[512] = "";
    struct error error = {0};
    if (cli_echo_source(conf, source, DOCTOR_SECONDS, answer, sizeof answer, &error) == 0)
        doctor_fine(examination, "%s: %s", source->name, answer);
    else
        ae_is_silent(examination, source->name, source->calling_ae_title, &error);
}

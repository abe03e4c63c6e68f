#include "service/common/settings.h"

#include <errno.h>
#include <stdlib.h>

static bool
settings_need_tls(const struct conf *conf, bool server)
{
    if (server)
        return conf->dicom.tls_port > 0;
    for (size_t i = 0; i < conf->destination_count; i++) {
        if (conf->destinations[i].tls)
            return true;
    }
    for (size_t i = 0; i < conf->pull.source_count; i++) {
        if (conf->pull.sources[i].tls)
            return true;
    }
    return false;
}

struct dicom_tls *
settings_open_tls(const struct conf_tls *conf, bool server, struct error *error)
{
    const struct dicom_tls_settings files = {
        .certificate = conf->certificate,
        .key = conf->key,
        .ca = conf->ca,
        .crl = conf->crl,
        .require_peer = server && conf->require_peer,
    };
    struct dicom_tls *tls = NULL;
    return dicom_tls_open(&files, server, &tls, error) == 0 ? tls : NULL;
}

int
settings_open(struct conf *conf, bool server, struct settings **out, struct error *error)
{
    *error = (struct error){0};
    struct settings *settings = calloc(1, sizeof *settings);
    if (!settings) {
        conf_free(conf);
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "not enough memory for the settings");
    }
    settings->conf = conf;
    if (settings_need_tls(conf, server))
        settings->tls = settings_open_tls(&conf->dicom.tls, server, error);
    atomic_init(&settings->references, 1);
    *out = settings;
    return 0;
}

int
settings_open_all(struct conf *conf, bool server, struct settings **settings, struct error *error)
{
    int rc = settings_open(conf, server, settings, error);
    if (rc || error->code == CODE_NONE)
        return rc;
    settings_drop(*settings);
    return -EACCES;
}

struct settings *
settings_keep(struct settings *settings)
{
    atomic_fetch_add(&settings->references, 1);
    return settings;
}

void
settings_drop(struct settings *settings)
{
    if (!settings || atomic_fetch_sub(&settings->references, 1) > 1)
        return;
    if (settings->tls)
        dicom_tls_close(settings->tls);
    conf_free(settings->conf);
    free(settings);
}

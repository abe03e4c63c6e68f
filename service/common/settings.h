/*
 * settings.h - a configuration that outlives its reload, with the TLS files that it names:
 * associations and deliveries keep the one they began with.
 *
 * Reference-counted; immutable once open. Any thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_SETTINGS_H
#define NOCTULE_SERVICE_COMMON_SETTINGS_H

#include "config/config.h"
#include "dicom/net/scp.h"

#include <stdatomic.h>

struct settings {
    struct conf *conf;
    struct dicom_tls *tls; /* NULL: not needed, or its files cannot be used */
    atomic_int references; /* settings.c's */
};

/*
 * Takes over `conf`, also when it fails (-ENOMEM). TLS is for the port when `server`, otherwise for
 * the destinations and sources. Where its files cannot be used there is no `tls`, and the error says why.
 */
int settings_open(struct conf *conf, bool server, struct settings **settings, struct error *error);
/* The same, but TLS files that cannot be used are a failure (-EACCES): a child that runs may be
 * confined to others, and one that starts is not yet. */
int settings_open_all(struct conf *conf, bool server, struct settings **settings,
                      struct error *error);
struct settings *settings_keep(struct settings *settings);
void settings_drop(struct settings *settings); /* NULL is allowed */

/* TLS alone, for who answers (`server`) or calls; NULL with the error: its files cannot be used. */
struct dicom_tls *settings_open_tls(const struct conf_tls *conf, bool server, struct error *error);

#endif

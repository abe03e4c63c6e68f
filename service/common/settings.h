/*
 * settings.h - a configuration with its open TLS files, kept across reloads. An association or
 * delivery uses one settings object from its start to its end.
 *
 * Reference-counted, immutable once open, thread-safe.
 */
#ifndef NOCTULE_SERVICE_COMMON_SETTINGS_H
#define NOCTULE_SERVICE_COMMON_SETTINGS_H

#include "config/config.h"
#include "dicom/net/scp.h"

#include <stdatomic.h>

struct settings {
    struct conf *conf;
    struct dicom_tls *tls; /* NULL: not needed, or the TLS files cannot be used */
    atomic_int references; /* private to settings.c */
};

/* Opens the settings and takes ownership of `conf`, also on failure (-ENOMEM). If `server`, TLS is
 * for the listening port, otherwise for destinations and sources. If the TLS files cannot be used,
 * returns 0 with tls NULL and the reason in the error. */
int settings_open(struct conf *conf, bool server, struct settings **settings, struct error *error);
/* Opens the settings like settings_open, but returns -EACCES if the TLS files cannot be used. A child that must keep
 * its old settings may be confined to other files; a new child is not yet confined. */
int settings_open_all(struct conf *conf, bool server, struct settings **settings, struct error *error);
struct settings *settings_keep(struct settings *settings);
void settings_drop(struct settings *settings); /* NULL is allowed */

/* Opens TLS alone, for a listener (`server`) or a caller. Returns NULL with the error if its files cannot be used. */
struct dicom_tls *settings_open_tls(const struct conf_tls *conf, bool server, struct error *error);

#endif

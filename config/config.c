/*
 * config.c - loading: the file's text, the option table, then paths and checks of the whole.
 */
#include "config/config.h"

#include "config/options.h"
#include "config/read.h"
#include "config/source.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(enum conf_after) == sizeof(unsigned) &&
                   sizeof(enum conf_shape_kind) == sizeof(unsigned) &&
                   sizeof(enum conf_method) == sizeof(unsigned) &&
                   sizeof(enum discretisation) == sizeof(unsigned) &&
                   sizeof(enum aggregation) == sizeof(unsigned),
               "choices are stored as unsigned");
_Static_assert(sizeof(struct texture_offset) == 3 * sizeof(int), "offsets are stored as int[3]");

/* The absolute path without "//", "/./" and a slash at its end, so that paths can be compared. */
static void
conf_tidy_path(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        from += strspn(from, "/");
        size_t length = strcspn(from, "/");
        bool is_dot = length == 1 && from[0] == '.';
        if (length > 0 && !is_dot) {
            *to++ = '/';
            memmove(to, from, length);
            to += length;
        }
        from += length;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

static int
conf_make_absolute(char **path, const char *folder)
{
    if (!*path)
        return 0;
    if ((*path)[0] != '/') {
        char *absolute;
        if (asprintf(&absolute, "%s/%s", folder, *path) < 0)
            return -ENOMEM;
        free(*path);
        *path = absolute;
    }
    conf_tidy_path(*path);
    return 0;
}

static int
conf_override_root(struct conf *conf, const char *root)
{
    char *copy = strdup(root);
    if (!copy)
        return -ENOMEM;
    free(conf->root);
    conf->root = copy;
    if (root[0] == '/')
        return 0;
    char *here = getcwd(NULL, 0);
    if (!here)
        return -ENOMEM;
    int rc = conf_make_absolute(&conf->root, here);
    free(here);
    return rc;
}

static int
conf_resolve_paths(struct conf *conf, const char *root_override)
{
    int rc = root_override ? conf_override_root(conf, root_override) : 0;
    if (rc == 0)
        conf_tidy_path(conf->root);
    for (size_t i = 0; i < conf->inbox_count && rc == 0; i++) {
        rc = conf_make_absolute(&conf->inboxes[i].path, conf->root);
        if (rc == 0)
            rc = conf_make_absolute(&conf->inboxes[i].move_to, conf->root);
    }
    for (size_t i = 0; i < conf->destination_count && rc == 0; i++)
        rc = conf_make_absolute(&conf->destinations[i].folder, conf->root);
    char **files[] = {&conf->dicom.tls.certificate, &conf->dicom.tls.key, &conf->dicom.tls.ca};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && rc == 0; i++)
        rc = conf_make_absolute(files[i], conf->root);
    return rc;
}

/* One form of many, so that fingerprints can be compared. */
static void
conf_tidy_fingerprint(char *fingerprint)
{
    char *to = fingerprint;
    for (const char *from = fingerprint; *from; from++)
        if (*from != ':')
            *to++ = (char)tolower((unsigned char)*from);
    *to = '\0';
}

/* The text that inet_ntop has for it, which is what a caller's address is compared as. */
static int
conf_tidy_address(char **address)
{
    struct in6_addr ipv6;
    char text[INET6_ADDRSTRLEN];
    if (!*address || inet_pton(AF_INET6, *address, &ipv6) != 1)
        return 0; /* of an IPv4 address there is one text only */
    if (IN6_IS_ADDR_V4MAPPED(&ipv6))
        inet_ntop(AF_INET, &ipv6.s6_addr[12], text, sizeof(text));
    else
        inet_ntop(AF_INET6, &ipv6, text, sizeof(text));
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*address);
    *address = copy;
    return 0;
}

static int
conf_resolve_peers(struct conf_dicom *dicom)
{
    int rc = 0;
    for (size_t i = 0; i < dicom->peer_count && rc == 0; i++) {
        if (dicom->peers[i].certificate)
            conf_tidy_fingerprint(dicom->peers[i].certificate);
        rc = conf_tidy_address(&dicom->peers[i].host);
    }
    return rc;
}

static int
conf_resolve_calling_titles(struct conf *conf)
{
    for (size_t i = 0; i < conf->destination_count; i++) {
        struct conf_destination *destination = &conf->destinations[i];
        if (destination->folder || destination->calling_ae_title)
            continue;
        destination->calling_ae_title = strdup(conf->dicom.titles[0].ae_title);
        if (!destination->calling_ae_title)
            return -ENOMEM;
    }
    return 0;
}

static int
conf_resolve(void *object, const void *root_override)
{
    struct conf *conf = object;
    int rc = conf_resolve_paths(conf, root_override);
    if (rc == 0)
        rc = conf_resolve_peers(&conf->dicom);
    return rc < 0 ? rc : conf_resolve_calling_titles(conf);
}

int
conf_load_with_root(const char *path, const char *root_override, struct conf **conf,
                    struct error *error)
{
    struct source source;
    struct conf *loaded = calloc(1, sizeof(*loaded));
    if (!loaded)
        return source_out_of_memory(error);
    int rc = source_read_file(&source, path, error);
    if (rc == 0)
        rc = read_source(&source, &option_root, loaded, conf_resolve, root_override, error);
    source_release(&source);
    if (rc < 0) {
        conf_free(loaded);
        return rc;
    }
    *conf = loaded;
    return 0;
}

int
conf_load(const char *path, struct conf **conf, struct error *error)
{
    return conf_load_with_root(path, NULL, conf, error);
}

void
conf_free(struct conf *conf)
{
    if (conf)
        option_clear(&option_root, conf);
    free(conf);
}

char *
conf_to_text(const struct conf *conf)
{
    return write_section(&option_root, conf, false);
}

const struct conf_pipeline *
conf_find_pipeline(const struct conf *conf, const char *name)
{
    for (size_t i = 0; i < conf->pipeline_count; i++)
        if (strcmp(conf->pipelines[i].name, name) == 0)
            return &conf->pipelines[i];
    return NULL;
}

const struct conf_destination *
conf_find_destination(const struct conf *conf, const char *name)
{
    for (size_t i = 0; i < conf->destination_count; i++)
        if (strcmp(conf->destinations[i].name, name) == 0)
            return &conf->destinations[i];
    return NULL;
}

const struct conf_destination *
conf_find_destination_ae(const struct conf *conf, const char *ae_title)
{
    for (size_t i = 0; i < conf->destination_count; i++) {
        const char *title = conf->destinations[i].ae_title;
        if (title && strcmp(title, ae_title) == 0)
            return &conf->destinations[i];
    }
    return NULL;
}

const struct conf_title *
conf_find_title(const struct conf *conf, const char *ae_title)
{
    for (size_t i = 0; i < conf->dicom.title_count; i++)
        if (strcmp(conf->dicom.titles[i].ae_title, ae_title) == 0)
            return &conf->dicom.titles[i];
    return NULL;
}

/* Where results go is no part of what they are. */
static char *
conf_pipeline_text(const struct conf_pipeline *pipeline, bool identity)
{
    struct conf_pipeline settings = *pipeline;
    settings.deliver = NULL;
    settings.deliver_count = 0;
    return write_section(&option_pipeline, &settings, identity);
}

char *
conf_pipeline_to_text(const struct conf_pipeline *pipeline)
{
    return conf_pipeline_text(pipeline, false);
}

char *
conf_pipeline_identity(const struct conf_pipeline *pipeline)
{
    return conf_pipeline_text(pipeline, true);
}

int
conf_pipeline_from_text(const char *text, struct conf_pipeline **pipeline, struct error *error)
{
    struct source source;
    struct conf_pipeline *loaded = calloc(1, sizeof(*loaded));
    if (!loaded)
        return source_out_of_memory(error);
    int rc = source_read_text(&source, "pipeline", text, error);
    if (rc == 0)
        rc = read_source(&source, &option_pipeline, loaded, NULL, NULL, error);
    source_release(&source);
    if (rc < 0) {
        conf_pipeline_free(loaded);
        return rc;
    }
    *pipeline = loaded;
    return 0;
}

void
conf_pipeline_free(struct conf_pipeline *pipeline)
{
    if (pipeline)
        option_clear(&option_pipeline, pipeline);
    free(pipeline);
}

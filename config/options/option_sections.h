/*
 * option_sections.h - the sections of the option table, and the functions that their files share;
 * private to config/options/.
 *
 * To add an option, add a member in config.h and a row in this folder. unit_test_config_options
 * then fails with the text to add to noctule.conf, and NOCTULE_WRITE_MANUAL=1 makes it write
 * noctule.conf(5). A new row of a pipeline that has a default must be .later (options.h).
 *
 * Each file has the rows of its sections, and the checks that depend on several rows. A check is a
 * function over the structs of config.h. It must not report consequences of a lost member (LOST).
 */
#ifndef NOCTULE_CONFIG_OPTIONS_OPTION_SECTIONS_H
#define NOCTULE_CONFIG_OPTIONS_OPTION_SECTIONS_H

#include "config/options.h"

#define SECTION(array, type)                                                                                           \
    .rows = (array), .row_count = sizeof(array) / sizeof((array)[0]), .size = sizeof(struct type)
#define AT(type, field) .offset = offsetof(type, field)
/* The first columns of a row; the option has the name of its member. */
#define ROW(type, kind, member) #member, &option_##kind, offsetof(struct type, member)
#define LIMITS(low, high)       .min = (low), .max = (high)
#define ENDS                    .array = {.count = 2, .ends = true}
#define MANY(type, field)       .count_offset = offsetof(type, field)
#define EITHER(type, field, value)                                                                                     \
    .mark = &(const struct option_mark)                                                                                \
    {                                                                                                                  \
        offsetof(type, field), true, (value)                                                                           \
    }
#define GIVEN(type, field)                                                                                             \
    .mark = &(const struct option_mark)                                                                                \
    {                                                                                                                  \
        .offset = offsetof(type, field)                                                                                \
    }
#define ESTIMABLE(type, field) .offset = offsetof(type, field.value), .fallback = "", GIVEN(type, field.given)

/* The option is only allowed if the option `with` has one of these values (bit n for choice n). */
#define ONLY_WITH(with, values)                                                                                        \
    .uses = (const struct option_use[])                                                                                \
    {                                                                                                                  \
        {(with), (values)},                                                                                            \
        {                                                                                                              \
            NULL, 0                                                                                                    \
        }                                                                                                              \
    }

extern const char *const option_space_choices[]; /* of enum conf_space */
extern const struct option_section option_inbox, option_dicom, option_destination, option_delivery, option_pull,
    option_retention, option_notify, option_page, option_segment, option_expect, option_texture, option_filter,
    option_attribute, option_rule, option_compute, option_program, option_code;

/* The row of a rule, and of a title with a pipeline. */
#define STACKS_ROW(type)                                                                                               \
    {                                                                                                                  \
        ROW(type, text, stacks), "", LIMITS(1, 128),                                                                   \
            .form = &form_dicom,                                                                                       \
            .help = "volumes of a series to process: \"all\", \"first\", \"last\", \"b0\" (without "                   \
                    "diffusion weighting), or a pattern for their names, such as \"echo 1*\"; by "                     \
                    "default all, but a series with more than 8 is rejected with TOO_MANY_STACKS"                      \
    }

extern const char *const newest_choices[];
extern const char *const result_choices[]; /* of enum conf_result, which are also kinds in v_results */

/* The row of an inbox, and of a peer. */
#define RESENT_ROW(type)                                                                                               \
    {                                                                                                                  \
        ROW(type, choice, resent), "\"refuse\"",                                                                       \
            .choices = newest_choices,                                                                                 \
            .help = "handling of an instance with the SOP Instance UID of a stored one but other "                     \
                    "data: \"refuse\" it with DUPLICATE_UID_DIFFERENT, or replace the stored one "                     \
                    "by the \"newest\" and check the series again"                                                     \
    }

/* The rows of a remote AE: a destination, or a source. */
#define AE_ROWS(type)                                                                                                  \
    {ROW(type, text, ae_title), "", LIMITS(1, 16), .form = &form_ae, .help = "AE title of the remote AE"},             \
        {ROW(type, text, host), "", LIMITS(1, 253), .help = "host name, IPv4 or IPv6 address of the remote AE"},       \
        {ROW(type, integer, port), "0", LIMITS(0, 65535), .help = "TCP port of the remote AE; an AE requires it"},     \
        {ROW(type, text, calling_ae_title), "", LIMITS(1, 16), .form = &form_ae,                                       \
         .help = "our calling AE title; by default the first of dicom.titles"},                                        \
        {ROW(type, boolean, tls), "false",                                                                             \
         .help = "connect by TLS, with the certificates of dicom.tls; the remote certificate "                         \
                 "must be valid for host"},                                                                            \
    {                                                                                                                  \
        ROW(type, text, certificate), "", LIMITS(64, 95),                                                              \
            .form = &form_fingerprint,                                                                                 \
            .help = "SHA-256 fingerprint of the required TLS certificate, in hexadecimal; "                            \
                    "replaces the check of the host name"                                                              \
    }
#define CONNECT_ROW(type)                                                                                              \
    {                                                                                                                  \
        ROW(type, number, connect_seconds), "10.0", LIMITS(0.1, 600), .help = "timeout for opening a connection"       \
    }
/* Reports a host with a colon that is no IPv6 address. The second function returns whether
 * dicom.tls.ca, which outgoing TLS needs, is missing. */
void option_check_host(const char *host, const struct option_spot *spot);
bool option_lacks_authorities(const struct conf *conf, const struct option_spot *spot);

/* Report an error or a warning of an option, given by its path below the section: "dicom.port". A
 * warning concerns a setting that is valid, but probably not intended. */
void option_refuse(const struct option_spot *spot, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void option_warn(const struct option_spot *spot, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes the "FILE:LINE" of an option. */
void option_put_place(const struct option_spot *spot, const char *option, char *place, size_t size);

/* Returns the path of a list element, or of one of its options: ELEMENT("segments", 1, ".label").
 * The path is valid until the end of the block. */
#define OPTION_KEY                   64
#define ELEMENT(list, index, option) option_key((char[OPTION_KEY]){0}, (list), (index), (option))
const char *option_key(char path[OPTION_KEY], const char *list, size_t index, const char *option);

/* Returns whether the caller wants warnings and no error has been reported. Child processes of the daemon want none. */
bool option_wants_warnings(const struct option_spot *spot);

/* Returns whether a member, or a part of it, was rejected. */
#define LOST(spot, member) option_lost((spot), &(member), sizeof(member))
/* Does the same with a list and its elements. */
#define LOST_ANY(spot, list, count)                                                                                    \
    (LOST(spot, list) || ((count) > 0 && option_lost((spot), (list), (count) * sizeof((list)[0]))))
bool option_lost(const struct option_spot *spot, const void *member, size_t size);

/*
 * A list whose elements begin with their name, which is NULL if it was rejected:
 * NAMED(spot, "pipelines", conf->pipelines, conf->pipeline_count).
 */
struct option_named {
    const struct option_spot *spot;
    const char *list;
    const void *elements;
    size_t count, size;
    bool lost;
};

#define NAMED(spot, list, elements, count)                                                                             \
    (struct option_named)                                                                                              \
    {                                                                                                                  \
        (spot), (list), (elements), (count), sizeof((elements)[0]), LOST(spot, elements)                               \
    }
const char *option_name(const struct option_named *named, size_t index);
/* Returns the index of the first element of that name, or count if it is absent. */
size_t option_find_name(const struct option_named *named, const char *name);
/* Returns whether there is no element of that name. Returns false if a name was rejected, because
 * it may be this one. */
bool option_lacks(const struct option_named *named, const char *name);
/* Reports elements with the name of an earlier one: '"x" is the name of an earlier pipeline'. */
void option_refuse_duplicates(const struct option_named *named, const char *option, const char *is);

/* Returns whether both are NULL, or equal texts. */
bool option_is_same(const char *a, const char *b);

/* Returns the part of `path` below `folder`: "" if they are equal, NULL if it lies outside. */
const char *option_path_below(const char *path, const char *folder);

/* Reports a path within or around Noctule's own folders: results must not be received again nor be
 * mixed with originals. Returns whether the path is valid. */
bool option_check_apart_from_root(const struct conf *conf, const char *path, const char *option,
                                  const struct option_spot *spot);

/* Replaces the root of the configuration by another one, which paths are relative to. Returns 0 or -ENOMEM. */
int conf_resolve_root(void *object, char *const *root);

/* Checks across sections; they run after paths are absolute. */
void option_check_inboxes(const struct conf *conf, const struct option_spot *spot);
void option_check_destinations(const struct conf *conf, const struct option_spot *spot);
void option_check_sources(const struct conf *conf, const struct option_spot *spot);
void option_check_pipelines(const struct conf *conf, const struct option_spot *spot);
/* Checks programs, and the segments that name one. */
void option_check_programs(const struct conf *conf, const struct option_spot *spot);
void option_check_rules(const struct conf *conf, const struct option_spot *spot);
/* Checks the number of different attributes in all rules. */
void option_check_attributes(const struct conf *conf, const struct option_spot *spot);
/* Returns whether both name the same attribute and test it alike. */
bool option_attribute_asks_same(const struct conf_attribute *a, const struct conf_attribute *b);
void option_check_slurm(const struct conf *conf, const struct option_spot *spot);
void option_check_web(const struct conf *conf, const struct option_spot *spot);
void option_check_notify(const struct conf *conf, const struct option_spot *spot);
void option_check_retention(const struct conf *conf, const struct option_spot *spot);

/* Warn about valid settings that are probably not intended. */
void option_warn_programs(const struct conf *conf, const struct option_spot *spot);
void option_warn_rules(const struct conf *conf, const struct option_spot *spot);
void option_warn_network(const struct conf *conf, const struct option_spot *spot);

#endif

/*
 * sections.h - the sections of the option table, and what their files share; private to
 * config/options/.
 *
 * To add an option: a member in config.h, a row here. unit.config_options says what noctule.conf and
 * noctule.conf(5) lack then; a row of a pipeline that has a default is .later (options.h).
 *
 * A file has the rows of its sections, and the checks of what rows cannot say alone: functions over
 * the structs of config.h that refuse what is wrong. They see what is left where rows refused
 * something, and conclude nothing from what is lost.
 */
#ifndef NOCTULE_SECTIONS_H
#define NOCTULE_SECTIONS_H

#include "config/options.h"

#define ROWS(array)       .rows = (array), .row_count = sizeof(array) / sizeof((array)[0])
#define AT(type, field)   .offset = offsetof(type, field)
#define LIMITS(low, high) .min = (low), .max = (high)
#define MANY(type, field) .count_offset = offsetof(type, field)
#define EITHER(type, field, value)                                                                 \
    .mark = &(const struct option_mark)                                                            \
    {                                                                                              \
        offsetof(type, field), true, (value)                                                       \
    }
#define GIVEN(type, field)                                                                         \
    .mark = &(const struct option_mark)                                                            \
    {                                                                                              \
        .offset = offsetof(type, field)                                                            \
    }
#define ESTIMABLE(type, field)                                                                     \
    .offset = offsetof(type, field.value), .fallback = "", GIVEN(type, field.given)

extern const struct option_section option_inbox, option_dicom, option_destination, option_delivery,
    option_pull, option_retention, option_report, option_page, option_segment, option_expect,
    option_texture, option_attribute, option_rule, option_compute;

/* Of a rule, and of a title with a pipeline. */
#define STACKS_ROW(type)                                                                           \
    {                                                                                              \
        "stacks", &option_text, AT(type, stacks), "", LIMITS(1, 128),                              \
            .form = &form_dicom,                                                                   \
            .help = "which of a series' volumes: \"all\", \"first\", \"last\", \"b0\" (without "   \
                    "diffusion "                                                                   \
                    "weighting), or a pattern for their names, such as \"echo 1*\"; all when not " \
                    "given, "                                                                      \
                    "but none of more than 8: TOO_MANY_STACKS"                                     \
    }

extern const char *const newest_choices[];

/* Of an inbox, and of a peer. */
#define RESENT_ROW(type)                                                                           \
    {                                                                                              \
        "resent", &option_choice, AT(type, resent), "\"refuse\"",                                  \
            .choices = newest_choices,                                                             \
            .help =                                                                                \
                "what has the SOP Instance UID of a stored instance and another data set, such "   \
                "as one with a corrected header: \"refuse\" it with "                              \
                "DUPLICATE_UID_DIFFERENT, or let the \"newest\" take the place of the other, "     \
                "and its series be judged anew"                                                    \
    }

/* Of who is called: a destination, and a source. */
#define AE_ROWS(type)                                                                              \
    {"ae_title",    &option_text,     AT(type, ae_title),    "",                                   \
     LIMITS(1, 16), .form = &form_ae, .help = "its AE title"},                                     \
        {"host", &option_text,   AT(type, host),                                                   \
         "",     LIMITS(1, 253), .help = "its name, or its IPv4 or IPv6 address"},                 \
        {"port", &option_integer,  AT(type, port),                                                 \
         "0",    LIMITS(0, 65535), .help = "its port; an AE needs one"},                           \
        {"calling_ae_title",                                                                       \
         &option_text,                                                                             \
         AT(type, calling_ae_title),                                                               \
         "",                                                                                       \
         LIMITS(1, 16),                                                                            \
         .form = &form_ae,                                                                         \
         .help = "what Noctule calls itself there; the first of dicom.titles when not given"},     \
        {"tls", &option_boolean, AT(type, tls), "false",                                           \
         .help = "call by TLS, with the certificates of dicom.tls; its certificate has to be for " \
                 "host"},                                                                          \
    {                                                                                              \
        "certificate", &option_text, AT(type, certificate), "", LIMITS(64, 95),                    \
            .form = &form_fingerprint,                                                             \
            .help = "the SHA-256 fingerprint of its TLS certificate, in hexadecimal, which is "    \
                    "asked for in place of its host's name"                                        \
    }
#define CONNECT_ROW(type)                                                                          \
    {                                                                                              \
        "connect_seconds", &option_number, AT(type, connect_seconds), "10.0", LIMITS(0.1, 600),    \
            .help = "how long a connection may take to come about"                                 \
    }
/* What AE_ROWS cannot say alone: a host that looks like an address is one; TLS needs dicom.tls.ca. */
void check_host(const char *host, const struct option_spot *spot);
bool lacks_authorities(const struct conf *conf, const struct option_spot *spot);

/* What is wrong, and with which option below the section ("segments.[1].label"). */
void option_refuse(const struct option_spot *spot, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with an option of a list's element: ("segments", 1, ".label"). */
void option_refuse_of(const struct option_spot *spot, const char *list, size_t index,
                      const char *option, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* What is good and not what somebody can mean, of a list's element. */
void option_doubt(const struct option_spot *spot, const char *list, size_t index,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same of an option below the section ("dicom.port"). */
void option_doubt_at(const struct option_spot *spot, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "FILE:LINE" of a list's element. */
void option_put_place(const struct option_spot *spot, const char *list, size_t index, char *place,
                      size_t size);
/* Returns whether the caller wants doubts. The processes that a configuration is handed to do not. */
bool option_doubts_are_asked(const struct option_spot *spot);
/* Was nothing refused so far? */
bool option_all_well(const struct option_spot *spot);

/* Was a member refused, or something in it? */
#define LOST(spot, member) option_lost((spot), &(member), sizeof(member))
bool option_lost(const struct option_spot *spot, const void *member, size_t size);

/*
 * A list whose elements begin with their name, which is NULL where it was refused: NAMED(spot,
 * "pipelines", conf->pipelines, conf->pipeline_count).
 */
struct option_named {
    const struct option_spot *spot;
    const char *list;
    const void *elements;
    size_t count, size;
    bool lost;
};

#define NAMED(spot, list, elements, count)                                                         \
    (struct option_named)                                                                          \
    {                                                                                              \
        (spot), (list), (elements), (count), sizeof((elements)[0]), LOST(spot, elements)           \
    }
const char *option_name(const struct option_named *named, size_t index);
/* The first of that name; count where there is none. */
size_t option_find_name(const struct option_named *named, const char *name);
/* Is there certainly none of that name? Not where one was refused, which may be it. */
bool option_lacks(const struct option_named *named, const char *name);
/* Refuses those that have the name of an earlier one: '"x" is the name of an earlier pipeline'. */
void option_refuse_twins(const struct option_named *named, const char *option, const char *is);

/* Are both not given, or the same text? */
bool option_is_same(const char *a, const char *b);

/* A range, whose lower end comes first. */
void check_ends(const double ends[2], const char *option, const struct option_spot *spot);

/* What is left of `path` below `folder`: "" when they are the same, NULL when it is elsewhere. */
const char *option_path_below(const char *path, const char *folder);

/* Noctule's own files must neither be taken in again nor be mixed with originals. */
bool check_apart_from_root(const struct conf *conf, const char *path, const char *option,
                           const struct option_spot *spot);

/* What has to agree with other sections, once paths are absolute. */
void check_inboxes(const struct conf *conf, const struct option_spot *spot);
void check_destinations(const struct conf *conf, const struct option_spot *spot);
void check_sources(const struct conf *conf, const struct option_spot *spot);
void check_pipelines(const struct conf *conf, const struct option_spot *spot);
void check_rules(const struct conf *conf, const struct option_spot *spot);
/* How many different attributes rules may name. */
void check_attributes(const struct conf *conf, const struct option_spot *spot);
/* Do both name the same attribute? And ask the same of it? */
bool attribute_is_same(const struct conf_attribute *a, const struct conf_attribute *b);
bool attribute_asks_same(const struct conf_attribute *a, const struct conf_attribute *b);
void check_slurm(const struct conf *conf, const struct option_spot *spot);
void check_page(const struct conf *conf, const struct option_spot *spot);
void check_retention(const struct conf *conf, const struct option_spot *spot);

/* Doubts whether it is meant as it is. */
void doubt_rules(const struct conf *conf, const struct option_spot *spot);
void doubt_network(const struct conf *conf, const struct option_spot *spot);

#endif

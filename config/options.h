/*
 * options.h - the option table, private to config/: one row per option.
 *
 * Reading, defaults, errors of unknown options, conf_to_text and the tests of noctule.conf use these
 * rows; no other code contains an option's name. A section is a group of
 * the file and the struct that it fills. The table is immutable and safe to use from any thread.
 */
#ifndef NOCTULE_CONFIG_OPTIONS_H
#define NOCTULE_CONFIG_OPTIONS_H

#include "config/config.h"

struct option_kind;
struct option_section;

/* The required format of a text, besides its length. */
struct option_form {
    const char *allowed;            /* its characters; NULL: any */
    bool (*fits)(const char *text); /* NULL: every text fits */
    const char *refusal;            /* the error message */
    /* Replaces the text by its canonical form. Returns 0 or -ENOMEM. NULL: keep the text. */
    int (*tidy)(char **text);
};

extern const struct option_form form_name, /* A-Z a-z 0-9 _ - */
    form_dicom,                            /* no backslash, which separates values in DICOM */
    form_ae,                               /* an AE title: value representation AE of PS3.5, without padding */
    form_address,                          /* an IPv4 or IPv6 address, or "" */
    form_host,                             /* a host name */
    form_caller,                           /* an IPv4 or IPv6 address; tidied to the form of inet_ntop() */
    form_fingerprint,                      /* 32 bytes in hexadecimal, as openssl prints them */
    form_gpu,                              /* the index of a GPU, or its UUID, as nvidia-smi -L prints it */
    form_absolute,                         /* a path from / */
    form_url,                              /* http:// or https://, a host, and optionally a path */
    form_mode,                             /* octal permissions */
    form_zone,                             /* the name of a time zone */
    form_viewer;                           /* a URL with {study_uid} and {series_uid} */

/*
 * A condition of a row. If `choices` is not 0, the option_choice, option_graded or option_flags named `with` must
 * have one of these values (bit n for choice n). Else the option_integers named `with` must not be
 * given. `with` must be an earlier row of the section. If the condition is not met, the option is
 * an error, has no default and is not written.
 */
struct option_use {
    const char *with;
    unsigned choices;
};

/* A member that records whether the option is given: an enum, or a bool. */
struct option_mark {
    size_t offset;
    bool alternative; /* exactly one of these rows must be given; it sets the enum to `value` */
    unsigned value;
};

/* The form of an option in older files and in all identities: within `group`, which is an option of
 * the same section, and with `word` for `choice`. The section of the group lists the row in
 * `moved`. */
struct option_past {
    const char *group;
    bool always;      /* the old option had a default, so identities always contain it */
    const char *word; /* NULL: no change */
    unsigned choice;
};

struct option_row {
    const char *name;
    const struct option_kind *kind;
    size_t offset;
    const char *fallback; /* the default in file syntax; NULL: required; "": may be absent */
    double min, max;      /* of the value, the characters of a text, or the elements of a list */
    const char *help;

    union {                                   /* depends on the kind */
        const struct option_form *form;       /* text, names; NULL: any */
        const char *const *choices;           /* word, choice, flags, switch; ends with NULL */
        const struct option_section *section; /* group, part, list, range */

        struct {
            size_t count;    /* numbers, integers: per element */
            bool uniform;    /* numbers: a single number sets all of them; integers: it is the only element */
            bool ends;       /* numbers: the two ends of a range, the lower one first */
            size_t elements; /* integers: the max number; the min is 1 */
        } array;
    };

    size_t count_offset;           /* list, names, integers: the size_t with their number */
    const struct option_use *uses; /* all must be met; ends with NULL. NULL: no conditions */
    const struct option_mark *mark;
    const struct option_past *past; /* NULL: unchanged */
    const char *was;                /* the name in older files and in all identities; NULL: unchanged */
    /* Newer than the first UIDs. At its default, the option is omitted from the identity, so that
     * the UIDs of existing pipelines do not change (conf_pipeline_identity). */
    bool later;
};

/* The group of the file that a checked object was read from; for error messages. */
struct option_spot;

struct option_section {
    const struct option_row *rows;
    size_t row_count;
    size_t size; /* of the struct */
    /* Reports errors that depend on several rows (option_refuse); may be NULL. A rejected member is
     * 0 or NULL and is lost (LOST): the check must not report consequences of it. The check of
     * option_root runs after paths are absolute. */
    void (*check)(const void *object, const struct option_spot *spot);
    /* Changes the object before the check; NULL: leaves it. Returns 0 or -ENOMEM. */
    int (*prepare)(void *object, char *const *root);
    const char *const *moved; /* rows that moved to the outer section; ends with NULL */
};

extern const struct option_section option_root, option_pipeline;

/* The kinds of options, with the type of the member that each fills (kinds/kinds.h). */
extern const struct option_kind option_text, /* char * */
    option_regex,                            /* a pointer to struct conf_regex */
    option_window, option_moments,           /* a pointer to struct conf_window */
    option_path,                             /* char *, absolute and without "//" and "/./" */
    option_word,                             /* char *, one of the choices */
    option_choice,                           /* an enum: the index of the choice */
    option_graded,                           /* the same; in the file, the first two are false and true */
    option_flags,                            /* unsigned: bit n for choice n; an array of strings in the file */
    option_switch,                           /* bool, as one of two choices; the first is false */
    option_number,                           /* double */
    option_integer,                          /* int */
    option_boolean,                          /* bool */
    option_numbers,                          /* double[count] */
    option_range,    /* a struct that begins with double[2]; in the file two numbers or a group */
    option_integers, /* a pointer to int[count] each, and a size_t: [ 1, 2 ], ( [ 1, 2 ], ... ) */
    option_names,    /* a pointer to char *, and a size_t; an array of strings of 1 to 64 characters in the file */
    option_strings,  /* the same with 1 to 4000 characters */
    option_group,    /* a section within the same struct */
    option_part,     /* a pointer to a struct; NULL: not given */
    option_parts,    /* a pointer to structs, and a size_t; in the file a group or a list */
    option_list,     /* the same; in the file always a list */
    option_segments, /* the same; or "all labels" of the program that option_labelled names */
    option_labelled, /* no member */
    option_profile;  /* no member: the name of a file with settings for the section */

/* Makes the path absolute, relative to the folder, and removes "//" and "/./".
 * Returns 0 or -ENOMEM. */
int option_make_absolute(char **path, const char *folder);

/* Returns the row of that name or former name, or NULL if it is absent. */
const struct option_row *option_find(const struct option_section *section, const char *name);

/* Returns the first condition of the row that the object does not meet, or NULL. */
const struct option_use *option_unmet_use(const struct option_section *section, const struct option_row *row,
                                          const void *object);

/* Frees the memory that the section's rows own within the object, not the object itself. */
void option_clear(const struct option_section *section, void *object);

#endif

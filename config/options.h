/*
 * options.h - the option table, private to config/: one row per option.
 *
 * Reading, defaults, unknown keys, conf_to_text, conf_options and the tests of noctule.conf all
 * follow from these rows; nothing else knows an option's name. A section is a group of the file and
 * the struct it fills. Immutable; safe from any thread.
 */
#ifndef NOCTULE_OPTIONS_H
#define NOCTULE_OPTIONS_H

#include "config/config.h"

struct option_kind;
struct option_section;

/* What a text has to look like beyond its length. */
struct option_form {
    bool (*fits)(const char *text);
    const char *refusal;
    int (*tidy)(char **text); /* to the one form that is compared; 0 or -ENOMEM; NULL: as it is */
};

extern const struct option_form form_name, /* A-Z a-z 0-9 _ - */
    form_dicom,                            /* no backslash, which separates values in DICOM */
    form_ae,          /* an AE title: value representation AE of PS3.5, without padding */
    form_address,     /* an IPv4 or IPv6 address, or nothing */
    form_host,        /* a host's name */
    form_caller,      /* the same, as inet_ntop writes it */
    form_fingerprint, /* 32 bytes in hexadecimal, as openssl prints them */
    form_gpu,         /* the index of a GPU, or its UUID, as nvidia-smi -L prints it */
    form_absolute,    /* a path from / */
    form_url;         /* http:// or https://, a host, perhaps a path */

/*
 * A row that is used only where an earlier option_choice or option_flags of its section, named here,
 * has one of these values (bit n for choice n), or where an earlier option_integers is not given (no
 * choices); elsewhere it is refused, has no default and is not written.
 */
struct option_use {
    const char *with;
    unsigned choices;
};

/* A member that says whether the option is given: an enum, or a bool. */
struct option_mark {
    size_t offset;
    bool alternative; /* of a section's rows that have it exactly one is given, and sets the enum */
    unsigned value;
};

/* How files of before, and identities for ever, write an option: in this group of its section, whose
 * `moved` names the row, and with another word for one of its choices. */
struct option_past {
    const char *group;
    bool always;      /* there it had a default, which an identity tells */
    const char *word; /* NULL: none */
    unsigned choice;
};

struct option_row {
    const char *name;
    const struct option_kind *kind;
    size_t offset;
    const char *fallback; /* as it would be written; NULL: required; "": not given means none */
    double min, max;      /* of the value; characters of a string; elements of a list or array */
    const char *help;

    union {                                   /* what the kind asks for */
        const struct option_form *form;       /* text, names; NULL: any */
        const char *const *choices;           /* word, choice, flags, switch; ends with NULL */
        const struct option_section *section; /* group, part, list, range */

        struct {
            size_t count;    /* numbers, integers: of one element */
            bool uniform;    /* numbers: one number fills them all */
            size_t elements; /* integers: at most, at least 1 */
        } array;
    };

    size_t count_offset;           /* list, names, integers: of the size_t */
    const struct option_use *uses; /* all of them; ends with NULL. NULL: used always */
    const struct option_mark *mark;
    const struct option_past *past; /* NULL: as now */
    const char *was; /* its name in files of before and in identities for ever; NULL: as now */
    /* Came after UIDs were first made of these rows: at its default it is not part of the identity,
     * so that the UIDs of pipelines that do not use it stay (conf_pipeline_identity). */
    bool later;
};

/* Where a check has something to refuse: the group of the file that its object was read from. */
struct option_spot;

struct option_section {
    const struct option_row *rows;
    size_t row_count;
    size_t size; /* of the struct */
    /* Refuses what the rows cannot say alone (option_refuse). NULL: nothing more. What rows refused is
     * 0 and lost (LOST), a text NULL; nothing is to be concluded from it. Of the whole
     * configuration: once paths are absolute. */
    void (*check)(const void *object, const struct option_spot *spot);
    const char *const *moved; /* rows that the section around it has now; ends with NULL */
};

extern const struct option_section option_root, option_pipeline;

/* The kinds of value that a row can have, by the member that it fills (kinds/kinds.h). */
extern const struct option_kind option_text, /* char * */
    option_regex,                            /* a pointer to struct conf_regex */
    option_window, option_moments,           /* a pointer to struct conf_window */
    option_path,                             /* char *, absolute and without "//" and "/./" */
    option_word,                             /* char *, one of the choices */
    option_choice,                           /* an enum: the number of the choice */
    option_flags,   /* unsigned: bit n for choice n; an array of strings in the file */
    option_switch,  /* bool, as one of two choices; the first is false */
    option_number,  /* double */
    option_integer, /* int */
    option_boolean, /* bool */
    option_numbers, /* double[count] */
    option_range, /* a struct that begins with double[2], in the file; or a section that fills it */
    option_integers, /* a pointer to int[count] each, and a size_t: [ 1, 2 ], ( [ 1, 2, 3 ], ... ) */
    option_names,    /* a pointer to char *, and a size_t; an array of strings in the file */
    option_group,    /* a section within the same struct */
    option_part,     /* a pointer to a section; NULL: not given */
    option_parts,    /* a pointer to sections, and a size_t: one of them, or a list */
    option_list,     /* the same: always a list */
    option_profile;  /* no member: what settings its section begins with, of a file */

/* As option_path: a path that is relative is below the folder. 0 or -ENOMEM. */
int option_make_absolute(char **path, const char *folder);

const struct option_row *option_find(const struct option_section *section, const char *name);

/* Why the row has no use, given what the object has already: NULL, or the use that is not met. */
const struct option_use *option_useless(const struct option_section *section,
                                        const struct option_row *row, const void *object);

/* Frees what the section's rows own within the object, not the object itself. */
void option_clear(const struct option_section *section, void *object);

#endif

/*
 * options.h - the option table, private to config/: one row an option.
 *
 * Reading, defaults, unknown keys, conf_to_text, conf_options and the tests of noctule.conf all
 * follow from these rows; nothing else knows an option's name. A section is a group of the file and
 * the struct it fills. Immutable; safe from any thread.
 */
#ifndef NOCTULE_OPTIONS_H
#define NOCTULE_OPTIONS_H

#include "config/config.h"

enum option_kind {
    OPTION_TEXT,    /* char * */
    OPTION_WORD,    /* char *, one of the choices */
    OPTION_CHOICE,  /* an enum: the number of the choice */
    OPTION_FLAGS,   /* unsigned: bit n for choice n; an array of strings in the file */
    OPTION_NUMBER,  /* double */
    OPTION_INTEGER, /* int */
    OPTION_BOOLEAN, /* bool */
    OPTION_SWITCH,  /* bool, as one of two choices; the first is false */
    OPTION_NUMBERS, /* double[count]; one number fills them all where `uniform` is set */
    OPTION_NAMES,   /* a pointer to char *, and a size_t; an array of strings in the file */
    /* A pointer to int[count] each, and a size_t; [ 1, 2 ], and ( [ 1, 2, 3 ], ... ) where count is
     * not 1. */
    OPTION_INTEGERS,
    OPTION_GROUP, /* a section within the same struct */
    OPTION_PART,  /* a pointer to a section; NULL: not given */
    OPTION_LIST,  /* a pointer to sections, and a size_t */
};

enum option_form {
    FORM_FREE,
    FORM_NAME,        /* A-Z a-z 0-9 _ - */
    FORM_DICOM,       /* no backslash, which separates values in DICOM */
    FORM_AE,          /* an AE title: value representation AE of PS3.5, without padding */
    FORM_ADDRESS,     /* an IPv4 or IPv6 address, or nothing */
    FORM_FINGERPRINT, /* 32 bytes in hexadecimal, as openssl prints them */
    FORM_GPU,         /* the index of a GPU, or its UUID, as nvidia-smi -L prints it */
    FORM_ABSOLUTE,    /* a path from / */
    FORM_PATH,        /* a path; a relative one is below the root folder */
};

struct option_section;

struct option_row {
    const char *name;
    enum option_kind kind;
    size_t offset;
    const char *fallback; /* as it would be written; NULL: required; "": not given means none */
    double lo, hi;        /* of the value; characters of a string; elements of a list or array */
    const char *help;
    enum option_form form;
    const char *const *choices; /* ends with NULL */
    const struct option_section *section;
    size_t count;        /* OPTION_NUMBERS, OPTION_INTEGERS */
    size_t count_offset; /* OPTION_LIST, OPTION_NAMES, OPTION_INTEGERS */
    size_t most;         /* OPTION_INTEGERS: elements, at least 1 */
    bool uniform;
    /* Alternatives: exactly one of a section's rows that have it is given, and sets the unit. */
    bool alternative;
    size_t unit_offset;
    enum conf_unit unit;
    /* A row that is used only where an earlier OPTION_CHOICE or OPTION_FLAGS of its section, named
     * here, has one of these values (bit n for choice n); elsewhere it is refused, has no default
     * and is not written. NULL: used always. */
    const char *with;
    unsigned with_choices;
    /* The same where an earlier OPTION_INTEGERS, named here, is given. NULL: used always. */
    const char *instead;
    /* Without a default: the bool that says whether the file gives it. */
    bool optional;
    size_t given_offset;
};

/* What a check finds wrong, and with which option below its section ("segments.[1].label"). */
struct option_complaint {
    char option[160];
    char text[256];
};

struct option_section {
    const struct option_row *rows;
    size_t row_count;
    size_t size; /* of the struct */
    /* What the rows cannot say alone; false with the complaint filled. NULL: nothing more. */
    bool (*check)(const void *object, struct option_complaint *complaint);
};

extern const struct option_section option_root, option_pipeline;

/* What has to agree between sections, once paths are absolute. */
bool option_check_root(const void *conf, struct option_complaint *complaint);

const struct option_row *option_find(const struct option_section *section, const char *name);

/* Does the object have what stands instead of the row? */
bool option_replaced(const struct option_section *section, const struct option_row *row,
                     const void *object);

/* Is the row used, given what the object has already? */
bool option_applies(const struct option_section *section, const struct option_row *row,
                    const void *object);

/* Frees what the section's rows own within the object, not the object itself. */
void option_clear(const struct option_section *section, void *object);

#endif

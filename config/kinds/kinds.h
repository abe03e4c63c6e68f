/*
 * kinds.h - reads, writes, frees and describes the values of options by their kind; private to
 * config/. To add a kind, define one struct option_kind in this folder and declare it in options.h.
 */
#ifndef NOCTULE_CONFIG_KINDS_KINDS_H
#define NOCTULE_CONFIG_KINDS_KINDS_H

#include "config/findings.h"
#include "config/options.h"

#include <stdio.h>
#include <string.h>

#include <libconfig.h>

struct option_reader {
    const struct source *source;
    char *const *root; /* the folder of relative paths; *root is NULL if it was rejected */
    struct findings *findings;
};

struct option_writer {
    FILE *out;
    int depth;
    bool identity; /* omit newer options at their default; keep moved options in place */
    int *rc;       /* set to -errno if a default could not be compared */
    /* In an identity: the outer section of a group and its object, for options that moved there. */
    const struct option_section *around;
    const void *object;
};

/* Reads the setting into `field`, which is the row's member of its struct, or an element of that
 * member. Returns 0, -EINVAL with a finding (reading continues), or another -errno (it stops). */
typedef int option_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting,
                        void *field);

struct option_kind {
    option_read *read; /* NULL: the option is read elsewhere */
    /* NULL: there is no member, and the option is never written */
    void (*write)(const struct option_writer *writer, const struct option_row *row, const void *field);
    /* Returns whether there is a value. NULL: always. */
    bool (*has)(const struct option_writer *writer, const struct option_row *row, const void *field);
    /* Frees the value. NULL: it needs no memory. */
    void (*clear)(const struct option_row *row, void *field);
    const char *type; /* for manuals; NULL: use describe */
    void (*describe)(const struct option_row *row, char *type, size_t size);
    const char *limits; /* the unit of the row's limits: "", " characters"; NULL: no limits */
    const char *below;  /* separates its name from those of its section's options; NULL: no section */
};

/* Return the row's member of the object. */
static inline void *
option_field(const struct option_row *row, void *object)
{
    return (char *)object + row->offset;
}

static inline const void *
option_value(const struct option_row *row, const void *object)
{
    return (const char *)object + row->offset;
}

/* The elements of a list, of names or of integers. */
struct option_elements {
    char *at; /* NULL: not given */
    size_t count;
};

static inline struct option_elements
option_elements(const struct option_row *row, const void *field)
{
    const char *object = (const char *)field - row->offset;
    struct option_elements elements;
    memcpy(&elements.at, field, sizeof(elements.at));
    memcpy(&elements.count, object + row->count_offset, sizeof(elements.count));
    return elements;
}

/* For kinds with a pointer member. */
bool option_not_null(const struct option_writer *writer, const struct option_row *row, const void *field);
void option_free(const struct option_row *row, void *field);
/* For kinds whose member is a struct with a section. */
void option_clear_group(const struct option_row *row, void *field);

struct option_spot {
    const struct option_reader *reader;
    config_setting_t *group;
};

/* Report an error or a warning (`wrong` is false) of a setting. Return -EINVAL, or another -errno
 * if reading must stop. */
int read_find(const struct option_reader *reader, bool wrong, const config_setting_t *setting, const char *text);
int read_fail(const struct option_reader *reader, const config_setting_t *setting, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns whether reading must stop. */
bool read_stops(int rc);
/* Returns the more severe of two results; the first of two equal ones. */
int read_worse(int rc, int next);
/* Returns `rc`, or findings.stop. Marks the member as lost if rc is -EINVAL. */
int read_lose(const struct option_reader *reader, const void *member, size_t size, int rc);

/* Parses a source with all its layers. Returns 0, or -EINVAL or -ENOMEM with an error. */
int read_parse_source(const struct source *source, config_t *config, struct error *error);
/* Parses one layer of a source; line numbers are relative to the layer. */
int read_parse_layer(const struct source *source, size_t number, config_t *config, struct error *error);
/* Returns the setting of the row in the group, or that of its alternative; NULL if there is
 * none. */
config_setting_t *read_given(const struct option_section *section, const struct option_row *row,
                             config_setting_t *group);

/* Line number and hook of a copied setting. If line is 0, the line of the original plus
 * lines_before. */
struct copied {
    unsigned line, lines_before;
    const void *hook;
};

/* Copies a setting and its children into another one. Returns 0 or -ENOMEM. */
int overlay_copy_setting(config_setting_t *into, const config_setting_t *from, const struct copied *as,
                         config_setting_t **copied);

/* Merges the other layers of a source into the first one, which is parsed in `config`. Returns 0,
 * or -EINVAL or -ENOMEM with an error. */
int overlay_merge(const struct source *source, config_t *config, struct error *error);

/* Records the file and line of each element of the named lists. Returns 0 or -ENOMEM. */
int overlay_record_places(const struct source *source, const config_setting_t *root, struct conf_findings *all);

/* Adds the settings of the profile that the group names, except those that the group has itself.
 * Does nothing if the section has no profiles. Returns 0, -EINVAL with a finding, or another
 * -errno. */
int profile_apply(const struct option_reader *reader, const struct option_section *section, config_setting_t *group);
/* Returns whether a profile added the setting. Such a setting may be unused without an error. */
bool profile_added(const config_setting_t *setting);

/* Returns whether the setting is an array or a list. */
bool read_is_sequence(const config_setting_t *setting);
/* Stores a copy of the text in the field. Returns 0 or -ENOMEM. */
int read_copy(const char *text, void *field);
option_read read_text, read_segments;
int read_section(const struct option_reader *reader, const struct option_section *section, config_setting_t *group,
                 void *object);

/* Reads the elements of the setting into the field, each with `read`. Reports an error if their
 * number is not within min .. max. */
int read_elements(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting,
                  double min, double max, size_t size, void *field, option_read *read);

/* Reads the setting with `read` as the only element of the field. */
int read_one(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, size_t size,
             void *field, option_read *read);

/* Writes the row's choices with a set bit: "a", "b" or "c". */
#define CHOICES_SIZE 256
#define ALL_CHOICES  ~0u
void read_name_choices(const struct option_row *row, unsigned wanted, char text[CHOICES_SIZE]);

void write_text(FILE *out, const char *text);
void write_string(const struct option_writer *writer, const struct option_row *row, const void *field);
/* For kinds with a pointer to a struct that begins with its text. */
void write_text_of(const struct option_writer *writer, const struct option_row *row, const void *field);
void write_rows(const struct option_writer *writer, const struct option_section *section, const void *object);
/* Writes the rows of the outer section that were in the group `name` before. */
void write_past_rows(const struct option_writer *writer, const struct option_section *around, const void *object,
                     const char *name);
/* Returns whether the row is written. */
bool write_wanted(const struct option_writer *writer, const struct option_section *section,
                  const struct option_row *row, const void *object);

/*
 * Parses the source and fills `object` with its values and the defaults. The object must be zeroed
 * and have the section's size. Relative paths are relative to *root; a section without paths may
 * pass NULL. All findings are added to `all` (may be NULL). Returns 0, or -EINVAL or -ENOMEM with an
 * error. The caller must clear the object with option_clear() in any case.
 */
int read_source(const struct source *source, const struct option_section *section, void *object, char *const *root,
                struct conf_findings *all, struct error *error);

/* Returns the root folder, as far as the source can be parsed; "" if it is not given, NULL if there
 * is no memory. The caller must free it. */
char *read_root(const struct source *source);

/* Returns the object as text, which read_source() reads back to the same values; NULL if there is
 * no memory. With `identity`, omits newer options at their default (option_row.later). The caller
 * must free the text. */
char *write_section(const struct option_section *section, const void *object, bool identity);
/* Does the same with the rows from `first` to `last` only, as an identity. */
char *write_identity_of(const struct option_section *section, const char *first, const char *last, const void *object);

#endif

/*
 * kinds.h - what a kind of option is: how its value is read, written, freed and described; private
 * to config/. A new kind is one struct option_kind in this folder, named in options.h.
 */
#ifndef NOCTULE_KINDS_H
#define NOCTULE_KINDS_H

#include "config/findings.h"
#include "config/options.h"

#include <stdio.h>
#include <string.h>

#include <libconfig.h>

struct option_reader {
    const struct source *source;
    char *const *root; /* what relative paths are below, by the time that one is read; to NULL where
                        * that was refused */
    struct findings *findings;
};

struct option_writer {
    FILE *out;
    int depth;
    bool identity; /* without what is later and at its default, and with the past of what moved */
    int *rc;       /* -errno where it cannot be told what is at its default */
    /* Of a group in an identity: the section around it, whose past rows it has, and its object. */
    const struct option_section *around;
    const void *object;
};

/* `field` is the row's member of the struct that its section fills, or an element of it. 0, -EINVAL
 * with a finding, upon which reading goes on, or another -errno, upon which it stops. */
typedef int option_read(const struct option_reader *reader, const struct option_row *row,
                        config_setting_t *setting, void *field);

struct option_kind {
    option_read *read;
    void (*write)(const struct option_writer *writer, const struct option_row *row,
                  const void *field);
    /* NULL: there always is a value. */
    bool (*has)(const struct option_writer *writer, const struct option_row *row,
                const void *field);
    /* NULL: it owns nothing. */
    void (*clear)(const struct option_row *row, void *field);
    const char *type; /* in words; NULL: describe says it */
    void (*describe)(const struct option_row *row, char *type, size_t size);
    const char *limits; /* what the row's limits are of: "", " characters"; NULL: it has none */
    const char *below;  /* between its name and those of the options of its section; NULL: none */
};

/* The row's member. */
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

/* Of a list, names or integers. */
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

/* What owns a pointer and was not given. */
bool option_not_null(const struct option_writer *writer, const struct option_row *row,
                     const void *field);
void option_free(const struct option_row *row, void *field);

/* Where a section's check is asked. */
struct option_spot {
    const struct option_reader *reader;
    config_setting_t *group;
};

/* An error, or a doubt; -EINVAL, or why to stop. */
int read_find(const struct option_reader *reader, bool wrong, const config_setting_t *setting,
              const char *text);
/* An error. */
int read_fail(const struct option_reader *reader, const config_setting_t *setting,
              const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Does reading stop? Which of two results is told? */
bool read_stops(int rc);
int read_worse(int rc, int next);
/* Returns `rc`; of -EINVAL the member is lost. */
int read_lose(const struct option_reader *reader, const void *member, size_t size, int rc);

/* A source as libconfig has it: 0, -EINVAL or -ENOMEM with an error. */
int read_parse_source(const struct source *source, config_t *config, struct error *error);
/* The same of one of its layers alone; its lines are counted from its first. */
int read_parse_layer(const struct source *source, size_t number, config_t *config,
                     struct error *error);
/* What the group gives for the row: that option, or another where exactly one is given; NULL. */
config_setting_t *read_given(const struct option_section *section, const struct option_row *row,
                             config_setting_t *group);

/* How a setting is copied below another: with all below it, as if it stood on this line (0: on its own, so
 * many lines further down), and with this hook. */
struct copied {
    unsigned line, lines_before;
    const void *hook;
};

int copy_setting(config_setting_t *into, const config_setting_t *from, const struct copied *as,
                 config_setting_t **copied);

/* Reads the layers of a source over the first of them, which is parsed. 0, -EINVAL or -ENOMEM, with an
 * error. */
int overlay_merge(const struct source *source, config_t *config, struct error *error);

/* Where what files have in each other's place came from in the end; 0 or -ENOMEM. */
int overlay_tell_places(const struct source *source, const config_setting_t *root,
                        struct conf_findings *all);

/* Gives the group what the profile has that it names and it has not itself; nothing where its section
 * has no profiles. 0, -EINVAL with a finding, or another -errno. */
int profile_apply(const struct option_reader *reader, const struct option_section *section,
                  config_setting_t *group);
/* Did it come from there? Then it is no mistake of the file that it has no use. */
bool profile_gave(const config_setting_t *setting);

bool read_is_sequence(const config_setting_t *setting);
/* The field owns a copy of the text. */
int read_copy(const char *text, void *field);
option_read read_text;
int read_section(const struct option_reader *reader, const struct option_section *section,
                 config_setting_t *group, void *object);

/* Gives the field the setting's elements, each as `read` reads it, which have to be of a number
 * within min .. max. */
int read_elements(const struct option_reader *reader, const struct option_row *row,
                  config_setting_t *setting, double min, double max, size_t size, void *field,
                  option_read *read);

/* Writes "a", "b" or "c": those of the row's choices whose bits are set. */
#define CHOICES_SIZE 256
#define ALL_CHOICES  ~0u
void read_name_choices(const struct option_row *row, unsigned wanted, char text[CHOICES_SIZE]);

void write_text(FILE *out, const char *text);
void write_string(const struct option_writer *writer, const struct option_row *row,
                  const void *field);
void write_rows(const struct option_writer *writer, const struct option_section *section,
                const void *object);
/* The rows of the section around that the group `name` had. */
void write_past_rows(const struct option_writer *writer, const struct option_section *around,
                     const void *object, const char *name);
/* Is the row part of what is written? */
bool write_wanted(const struct option_writer *writer, const struct option_section *section,
                  const struct option_row *row, const void *object);

#endif

/*
 * input.h - the input of `noctule run` and `noctule explain`: files and folders, sorted into images
 * of series, annotation objects and skipped files; and the units that `run` makes of them.
 */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_H

#include "base/error.h"
#include "config/config.h"
#include "dicom/read/annotation/object_peek.h"
#include "dicom/read/geometry/geometry.h"
#include "service/common/confine/confine_places.h"
#include "service/common/json.h"
#include "service/pipeline/headers.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* ------------------------------------------------------------------------ input_collect.c ---- */

struct collection {
    char **paths; /* absolute; in the order of the inputs, by name within a folder */
    size_t count;
    size_t capacity;
    bool flat; /* do not descend into subfolders */
};

/* Adds a file, or every regular file below a folder. Follows symbolic links and adds dangling ones.
 * Skips names and folders that begin with a dot, and names that end in .part or .tmp. Returns 0, or
 * -errno with the unreadable path in *where. The caller must free *where. */
int input_collect(struct collection *collection, const char *input, char **where);
/* Adds a path unchanged. Returns 0 or -ENOMEM. */
int input_collect_add(struct collection *collection, const char *path);
/* Sorts by path. input_collect_has needs a sorted collection. */
void input_collect_sort(struct collection *collection);
bool input_collect_has(const struct collection *collection, const char *path);
void input_collect_free(struct collection *collection);

/* ----------------------------------------------------------------------- input_confined.c ---- */

/*
 * Confines a command before it reads foreign files (service/common/confine). The process may still
 * read the folders of its files, write to `places`, and use its open descriptors. Must be called
 * once, before other threads start. `others` are additional input files. `places` has no inputs;
 * its output exists, and `kept` is the folder in which the output path was created, so that it can
 * be removed again. Returns 0, or -errno after an error message.
 */
int cli_confine(enum confine_role role, const struct collection *files, char *const *others, size_t other_count,
                const struct command_places *places);

/* Installs the system call filter. Must be called after the compute device is open. Returns 0, or
 * -errno after an error message. */
int cli_confine_calls(enum confine_role role);

/* ------------------------------------------------------------------------ input_skipped.c ---- */

/* Files that are skipped without an error, with the reasons. */
struct input_skipped {
    struct input_skipped_file {
        const char *path; /* borrowed */
        enum code code;
        char *message;
    } * files;

    size_t count, room;
};

/* Adds a file. Returns 0 or -ENOMEM. */
int input_skipped_add(struct input_skipped *all, const char *path, enum code code, const char *message);
/* Prints the files on standard error: one line per file, or, if there are too many, per code and
 * folder, or per code. */
void input_skipped_print(struct input_skipped *all);
/* Writes the JSON array "passed_over" of {file, code, message}. */
void input_skipped_put(struct input_skipped *all, struct json *json);
/* Writes the JSON array "warnings" of the same, with those of the first `count` files that cannot
 * be read. */
void input_skipped_put_damaged(const struct headers *headers, char *const *paths, size_t count, struct json *json);
void input_skipped_clear(struct input_skipped *all);

/* ------------------------------------------------------------------------ input_objects.c ---- */

/* RTSTRUCT, SEG and SR objects. */
struct input_objects {
    struct input_object {
        char *path; /* borrowed */
        struct object_peek *peek;
    } * items;

    size_t count, room;
};

/* Adds a file that is no image to the objects, or to the skipped files, as the error of its header requires. `all`
 * is NULL if they are not wanted. Returns 0 or -ENOMEM. */
int input_objects_sort(struct input_objects *all, struct input_skipped *skipped, char *path, const struct error *error);
/* Returns whether the object refers to the series, its images or its frame of reference. */
bool input_object_is_of(const struct object_peek *peek, const struct headers *series);
void input_objects_free(struct input_objects *all);

/* ------------------------------------------------------------------------- input_sorted.c ---- */

struct sorted_series {
    struct headers headers; /* instances are borrowed from the given headers */
    char **paths;
    /* of the whole series: DUPLICATE_UID_DIFFERENT, SERIES_TOO_LARGE or CODE_NONE */
    struct error refusal;
    struct error damage; /* INCOMPLETE_SERIES for its first unreadable file, or CODE_NONE */
    size_t damaged;      /* number of unreadable files */
};

struct sorted {
    struct sorted_series *series; /* in order of first appearance */
    size_t count;
    size_t orphans; /* unreadable files of unknown or absent series */
};

/* Returns whether an error means that the file is not an image to process, which is not a failure.
 * A file named .dcm that is not DICOM may be a damaged image and is a failure. */
bool input_sorted_is_other(const struct error *error);

/* Sorts the files into series. `paths` has headers->count elements; both must outlive the result.
 * Of equal files with one SOP Instance UID the first is used, and the others are added to
 * `skipped`. An unreadable file is missing in the series of its header, else in those of its
 * folder. A series beyond the limits of `series_limits` is refused. Returns 0 or -errno. */
int input_sorted_make(const struct headers *headers, char *const *paths, const struct conf_series *series_limits,
                      struct input_skipped *skipped, struct sorted *sorted);
void input_sorted_free(struct sorted *sorted);

/* Refuses every accepted stack of a series with unreadable files, and sets the reason of
 * INCOMPLETE_SERIES. */
void input_sorted_refuse_damaged(const struct sorted_series *series, struct geometry_series *grouped);

/* -------------------------------------------------------------------------- input_units.c ---- */

/* A stack of a series: one job, or refused before output is written. */
struct unit {
    const struct headers *headers; /* of its series; owned by struct units */
    char **paths;                  /* headers->count elements, borrowed */
    char stack[sizeof((struct geometry_stack *)0)->name];
    struct error refusal;     /* CODE_NONE: run it */
    char note[200];           /* accepted missing files or slices, or "" */
    char *output;             /* folder */
    char group[NAME_MAX + 1]; /* of a request with groups; else "" */
};

struct units {
    struct unit *items; /* by series in order of first appearance, then by stack */
    size_t count;
    struct sorted sorted;
    size_t stacks; /* stacks that may be processed, before the selection */
};

struct units_request {
    const struct headers *headers; /* borrowed */
    char *const *paths;            /* headers->count elements */
    const struct conf_pipeline *pipeline;
    const struct conf_series *series_limits;
    const char *stack;   /* stack name; NULL: see `stacks` */
    const char *stacks;  /* as the option of a rule; NULL: all, unless there are too many */
    bool accept_missing; /* run incomplete series */
    const char *output;
    struct input_skipped *skipped; /* skipped files are added here */
    /*
     * Inputs, each absolute, whose files make groups, such as patients: the folders in the only input, or else each of
     * the inputs. NULL: no groups.
     */
    char *const *groups;
    size_t group_count;
};

/* Sorts and checks the files. One unit goes into `output` itself. Several units go into folders
 * below it, named "<Modality>-<Series Number>-<Series Description>". The Series Instance UID
 * replaces a missing or ambiguous number, and "-<stack>" follows if a series has several stacks.
 * With groups, each goes into a folder of its group. Returns 0 or -errno with a message. */
int input_units_make(const struct units_request *request, struct units *units, struct error *error);
void input_units_free(struct units *units);

#endif

/* input_sorted.h - sorts files into series, and notes unreadable files. */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_SORTED_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_SORTED_H

#include "service/cli/input/input_skipped.h"
#include "service/pipeline/headers.h"

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

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

/* Sorts the files. `paths` has headers->count elements; both must outlive the result. Of equal
 * files with one SOP Instance UID the first is used, and the others are added to `skipped`. An
 * unreadable file is missing in the series of its header, else in those of its folder. A series
 * beyond the limits of `series_limits` is refused. Returns 0 or -errno. */
int input_sorted_make(const struct headers *headers, char *const *paths,
                      const struct conf_series *series_limits, struct input_skipped *skipped,
                      struct sorted *sorted);
void input_sorted_free(struct sorted *sorted);

/* Refuses every accepted stack of a series with unreadable files, and sets the reason of
 * INCOMPLETE_SERIES. */
void input_sorted_refuse_damaged(const struct sorted_series *series,
                                 struct geometry_series *grouped);

#endif

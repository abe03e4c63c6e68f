/*
 * input_sorted.h - a heap of files, sorted into series: what of each is there, and what cannot be read.
 */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_SORTED_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_SORTED_H

#include "service/cli/input/input_skipped.h"
#include "service/pipeline/headers.h"

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

struct sorted_series {
    struct headers headers; /* its instances are borrowed from the headers given */
    char **paths;
    struct error refusal; /* of all of it: DUPLICATE_UID_DIFFERENT, SERIES_TOO_LARGE, CODE_NONE */
    struct error
        damage;     /* INCOMPLETE_SERIES for its first file that cannot be read, or CODE_NONE */
    size_t damaged; /* how many cannot */
};

struct sorted {
    struct sorted_series *series; /* in order of first appearance */
    size_t count;
    size_t orphans; /* files that cannot be read and whose series is not known, or not here */
};

/* Whether a file of this error does not belong here, and is no failure: it is no image of ours. What
 * is called .dcm and is none may be what is left of one. */
bool sorted_is_other_thing(const struct error *error);

/*
 * `paths`: headers->count of them; both are borrowed. Of files with one SOP Instance UID and the
 * same data set the first counts, and the others are passed over. A file that cannot be read is
 * missing in the series that its header names, else in those of the other files in its folder. A
 * series is refused that is larger than `most` lets it be. 0 or -errno.
 */
int sorted_make(const struct headers *headers, char *const *paths, const struct conf_series *most,
                struct passed_over *passed_over, struct sorted *sorted);
void sorted_free(struct sorted *sorted);

/* What is known to be missing refuses every stack that nothing else does, or says why it is
 * INCOMPLETE_SERIES. */
void sorted_refuse_damaged(const struct sorted_series *series, struct geometry_series *grouped);

#endif

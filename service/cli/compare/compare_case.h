/*
 * compare_case.h - compares the regions of two sets of annotation objects that belong to one series.
 */
#ifndef NOCTULE_SERVICE_CLI_COMPARE_COMPARE_CASE_H
#define NOCTULE_SERVICE_CLI_COMPARE_COMPARE_CASE_H

#include "service/cli/compare/compare_volume.h"
#include "service/common/agreement.h"
#include "service/common/json.h"
#include "service/pipeline/segment/object.h"

/* An RTSTRUCT or a SEG of one of the two sides. */
struct compare_object {
    const char *path; /* borrowed */
    enum conf_object_kind kind;
    enum agreement_mask side;
    /* lines "series UID" and "frame UID": series that it refers to, and frames of reference of its regions */
    char *references;
    bool used; /* it belongs to a case */
};

/* A pair of regions. */
struct compare_row {
    const char *series_uid; /* borrowed from the headers; "" without images */
    const char *paths[AGREEMENT_MASKS];
    char regions[AGREEMENT_MASKS][DICOM_LO_SIZE];
    struct agreement agreement;
    struct error error; /* CODE_NONE: `agreement` is filled */
};

struct compare_rows {
    struct compare_row *items; /* free with free() */
    size_t count, room;
};

struct compare_request {
    char *const *pairs; /* "FOUND=REFERENCE", patterns of region names; none: equal names, or the only regions */
    size_t pair_count;
    double tolerance_mm;
    int threads;
};

/* Reads the references of an annotation object. Returns 0; -EINVAL with the error if it is none. */
int compare_object_open(const char *path, struct compare_object *object, struct error *error);
/* Returns whether the object refers to the series, or has its frame of reference; or whether two objects share one. */
bool compare_object_is_of(const struct compare_object *object, const struct dicom_instance *image);
bool compare_objects_share(const struct compare_object *a, const struct compare_object *b);

/*
 * Compares all pairs of regions of the objects of one series, and adds their rows. `series`: NULL without images. Returns
 * 0, or -errno with the error if the case as a whole cannot be compared.
 */
int compare_case(const struct compare_request *request, const struct headers *series,
                 const struct compare_object *const *objects, size_t count, struct compare_rows *rows,
                 struct error *error);

/* ------------------------------------------------------------------------- compare_print.c ---- */

/* Prints all rows, then a summary of each pair of regions that several cases have. */
void compare_print(const struct compare_rows *rows, double tolerance_mm, bool json);

/* Writes the names and measures of a row without an error into an open JSON object. */
void compare_put_measures(struct json *json, const struct compare_row *row);

#endif

/*
 * suv_series.h - the headers of a PET series with the values of a stack in SUV.
 *
 * The factor of each slice multiplies its slope and intercept. Decoding, kernels and results use the changed headers, so
 * they need no other change.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SUV_SERIES_H
#define NOCTULE_SERVICE_PIPELINE_SUV_SERIES_H

#include "config/config.h"
#include "dicom/read/suv/suv.h"
#include "service/pipeline/headers.h"

/* How the values were converted. */
struct suv_conversion {
    bool given; /* the pipeline has a unit; else all below is unset */
    struct suv_found found;
    char text[512]; /* the factor and all that it was computed from, for people */
};

struct suv_series {
    struct suv_conversion is;
    struct headers headers;     /* if given; instances of other stacks, errors and codes are borrowed */
    struct dicom_instance *own; /* the changed instances */
    size_t own_count;
};

/*
 * Reads the attributes of the whole series and changes copies of the headers of the stack. Without a unit of
 * the pipeline it returns at once. Headers and stack are borrowed. Returns 0, -ENOMEM, or -errno with a code SUV_* or one of reading.
 * The caller must call suv_series_release() also after an error.
 */
int suv_series_make(const struct conf_pipeline *pipeline, const struct headers *headers,
                    const struct geometry_stack *stack, struct suv_series *series, struct error *error);
void suv_series_release(struct suv_series *series);

#endif

/*
 * provenance.h - the algorithm and the codes that an annotation object states for one region: a
 * segment of a Segmentation, or a region of interest of an RT Structure Set.
 *
 * A provenance is immutable. Several holders may share one. Each hold needs a release, from any
 * thread.
 */
#ifndef NOCTULE_DICOM_READ_ANNOTATION_PROVENANCE_H
#define NOCTULE_DICOM_READ_ANNOTATION_PROVENANCE_H

#include "base/concept.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An item of the Algorithm Identification Macro (PS3.3 10.16). Texts are "" if absent. */
struct provenance_algorithm {
    struct coded_concept family; /* value NULL: absent, or an incomplete code */
    struct coded_concept code;   /* Algorithm Name Code Sequence, as `family` */
    const char *name, *version, *parameters, *source;
};

/* Texts are UTF-8, with "?" for bytes outside the file's character set. */
struct provenance {
    /* AUTOMATIC, SEMIAUTOMATIC or MANUAL; "" if the object has another value or no value. */
    const char *type;
    const char *const *names; /* Segment Algorithm Name, or ROI Generation Description */
    size_t name_count;
    const struct provenance_algorithm *algorithms;
    size_t algorithm_count;
    /* Codes of a segment, or of the last observation of a region. Value NULL: absent, or an
     * incomplete code. */
    struct coded_concept category, property, modifier, region;
    const char *manufacturer, *model, *software; /* of the equipment that wrote the object */
};

/* Provenance of an object that states no algorithm and no codes. Hold and release have no effect
 * on it. */
extern const struct provenance provenance_unstated;

/* Adds a holder and returns the provenance. NULL is allowed. */
const struct provenance *provenance_hold(const struct provenance *provenance);
void provenance_release(const struct provenance *provenance);

#ifdef __cplusplus
}
#endif
#endif

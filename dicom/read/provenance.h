/*
 * provenance.h - the algorithm and the codes that an annotation object states for one region: a segment of a
 * Segmentation, or a region of interest of an RT Structure Set.
 *
 * A provenance never changes. Several holders may share one: each hold needs a release, from any thread.
 */
#ifndef NOCTULE_PROVENANCE_H
#define NOCTULE_PROVENANCE_H

#include "base/concept.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An item of the Algorithm Identification Macro (PS3.3 10.16). Texts are "" where the object lacks them. */
struct provenance_algorithm {
    struct coded_concept family; /* value NULL: absent, or not a whole code */
    struct coded_concept code;   /* Algorithm Name Code Sequence; likewise */
    const char *name, *version, *parameters, *source;
};

/* Texts are UTF-8, "?" for bytes that are not in the file's character set. */
struct provenance {
    /* AUTOMATIC, SEMIAUTOMATIC or MANUAL; "": the object has no such value. */
    const char *type;
    const char *const *names; /* Segment Algorithm Name, or ROI Generation Description */
    size_t name_count;
    const struct provenance_algorithm *algorithms;
    size_t algorithm_count;
    /* Codes of a segment, or of the last observation of a region; value NULL: absent, or not a whole code. */
    struct coded_concept category, property, modifier, region;
    const char *manufacturer, *model, *software; /* of the equipment that wrote the object */
};

/* That of an object that states nothing; holding and releasing it has no effect. */
extern const struct provenance provenance_unstated;

/* NULL stays NULL. */
const struct provenance *provenance_hold(const struct provenance *provenance);
void provenance_release(const struct provenance *provenance);

#ifdef __cplusplus
}
#endif
#endif

/*
 * tables.h - what was measured as files: features.json, features.csv, patterns.json and
 * matrices.json for people, the report (sr.dcm) and the maps of patterns (pmap-lbp.dcm ...) for
 * archives.
 *
 * Part of the results (objects.h): files go to hidden names, objects are read back, and all of it
 * is published with the rest.
 */
#ifndef NOCTULE_TEXTURE_RESULTS_H
#define NOCTULE_TEXTURE_RESULTS_H

#include "kernels/texture/texture.h"
#include "service/pipeline/output.h"
#include "service/pipeline/pipeline.h"

#include "dicom/objects/seg/seg.h"

#define TEXTURE_RESULTS 4 /* at most: a report and three maps */

struct texture_results {
    const struct conf_pipeline *pipeline; /* with texture */
    const struct geometry_stack *stack;
    struct dicom_instance *const *instances;
    struct output *output;
    uint8_t *const *maps; /* TEXTURE_PATTERNS of them; NULL: not made */
    const struct pipeline_watch *watch;
    struct pipeline_report *report; /* its features are told */
};

/* features.json and features.csv, patterns.json where patterns were measured, and matrices.json
 * where the pipeline asks for it. 0 or -errno with the report's error filled, as below. */
int texture_results_write_tables(const struct texture_results *results);

/*
 * The report and the maps that the pipeline asks for, listed in the report's results as "sr" and
 * "pmap"; `seg` is what the SEG is written from. -EAGAIN when an object did not read back as
 * written.
 */
int texture_results_write_objects(const struct texture_results *results,
                                  const struct seg_request *seg);

#endif

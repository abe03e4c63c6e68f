/*
 * on_planes.h - the segments for DICOM objects: on the planes that these refer to, with
 * descriptions.
 *
 * Without straightening, segments are used as they are. Segments of a straightened stack are
 * converted by the nearest voxel (grid.h), and the descriptions state it. Regions that were drawn
 * on the planes and not changed stay as drawn.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_ON_PLANES_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_ON_PLANES_H

#include "service/pipeline/results/results.h"

/* One of each per segment of the pipeline, in its order; hidden ones may be absent. */
struct on_planes {
    size_t count;
    struct image_mask *masks;
    const uint16_t **maps; /* of connectedness; NULL: no map */
    char **descriptions;   /* Segment Description */
    uint64_t **own_bits;   /* storage for a straightened stack */
    uint16_t **own_maps;
};

/* Returns 0 or -ENOMEM; call on_planes_release() in both cases. */
int on_planes_make(const struct results_request *request, struct on_planes *placed,
                   struct error *error);
void on_planes_release(struct on_planes *placed);

#endif

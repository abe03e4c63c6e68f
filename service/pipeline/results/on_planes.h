/*
 * on_planes.h - what was found, as objects have it: on the planes that they refer to, and described.
 *
 * Of a stack that is computed on as it is, that is what was found; of a straightened one it is put back
 * by the nearest voxel (grid.h), and the descriptions say so; but regions that were drawn there, and
 * nothing else was done with, are as they were.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_ON_PLANES_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_ON_PLANES_H

#include "service/pipeline/results/results.h"

/* One of each per segment of the pipeline, in its order; of hidden ones there may be none. */
struct on_planes {
    size_t count;
    struct image_mask *masks;
    const uint16_t **maps; /* of connectedness; NULL: none */
    char **descriptions;   /* Segment Description */
    uint64_t **own_bits;   /* storage of a straightened stack's */
    uint16_t **own_maps;
};

/* -ENOMEM; on_planes_release takes it back also then. */
int on_planes_make(const struct results_request *request, struct on_planes *placed,
                   struct error *error);
void on_planes_release(struct on_planes *placed);

#endif

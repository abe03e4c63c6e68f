/*
 * components.h - counts the components of a mask: voxels that share a face belong to the same one.
 *
 * The mask is cut into bands of slices. A sweep of a band joins runs of voxels with those of the
 * previous row and slice, and keeps only the band's lowest slice and two others. Several threads
 * may sweep bands, one band each; the joints between bands come last.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_COMPONENTS_H
#define NOCTULE_SERVICE_PIPELINE_COMPONENTS_H

#include "base/image.h"

struct components;

/*
 * Makes at most `bands` bands, and not more than there are slices. Borrows extent and mask. Returns
 * 0 or -ENOMEM.
 */
int components_begin(const struct image_extent *extent, const struct image_mask *mask, int64_t bands,
                     struct components **components);
int64_t components_bands(const struct components *components);

/* Sweeps a band. Call it once per band. Returns 0 or -ENOMEM. */
int components_sweep(struct components *components, int64_t band);

/* Joins the bands. All must be swept. Returns 0 or -ENOMEM. */
int components_join(const struct components *components, int64_t *count);

void components_free(struct components *components); /* or NULL */

/* Neighbouring voxels of a row of a slice, from first to last, and the component within the slice. */
struct component_run {
    int64_t row, first, last, component;
};

/*
 * Lists the runs of a slice, whose rows begin at `rows`, in the order of components and then of rows. Voxels that share
 * an edge belong to the same component. The caller must free *runs. Returns 0 or -ENOMEM.
 */
int components_of_slice(const struct image_extent *extent, const uint64_t *rows, struct component_run **runs,
                        size_t *count);

#endif

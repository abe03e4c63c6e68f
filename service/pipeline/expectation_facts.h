/*
 * expectation_facts.h - measures the mask of a segment: box, centroid, touched faces, values and
 * the number of components. Several threads share one pass over the slices of all masks, and over bands of large slices.
 *
 * All results are exact: voxels are counted and values are summed as stored integers, one sum per
 * slice.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_EXPECTATION_FACTS_H
#define NOCTULE_SERVICE_PIPELINE_EXPECTATION_FACTS_H

#include "service/pipeline/expectations.h"

enum expect_face {
    EXPECT_FACE_FIRST_COLUMN,
    EXPECT_FACE_LAST_COLUMN,
    EXPECT_FACE_FIRST_ROW,
    EXPECT_FACE_LAST_ROW,
    EXPECT_FACE_LOWEST_SLICE,
    EXPECT_FACE_HIGHEST_SLICE,
    /* next to a row's first or last voxel: the edge of a round field of view */
    EXPECT_FACE_PADDING,
    EXPECT_FACES
};

/* The measures of one slice. */
struct expect_slice {
    struct expect_window box; /* around its voxels; empty: no voxel */
    unsigned faces;           /* set of the faces that a slice can have */
    int64_t voxels, stored;   /* number, and sum of the stored values */
    int32_t lowest, highest;  /* of their stored values, if there are voxels */
    int64_t columns, rows;    /* sums of their indices */
    /* voxels at each face that a slice can have; at a column's face and at padding, rows with one */
    int64_t contact[EXPECT_FACES];
};

/* A mask and the requested measures; everything but the results is borrowed. */
struct expect_facts {
    const struct expect_volume *volume;
    const struct image_mask *mask; /* NULL: not wanted */
    bool faces;
    struct expect_slice *slices;
};

/* Fills the results of `count` masks. Returns 0, -ENOMEM, or the error of a backend; call expect_facts_clear() also after an
 * error. */
int expect_facts_find(struct expect_facts *facts, size_t count, int threads, struct error *error);
void expect_facts_clear(struct expect_facts *facts, size_t count);

/* Counts the components of a mask. Returns 0 or -ENOMEM. */
int expect_facts_components(const struct expect_facts *facts, int64_t *count);

/*
 * Fills the measures of a mask with at least one voxel. The mean is computed from the sums of the
 * slices in double precision, ascending, in real-world values.
 */
void expect_facts_measure(const struct expect_facts *facts, struct segment_measures *measures);
/* Returns the number of voxels of the box. */
int64_t expect_box_voxels(const struct segment_measures *measures);
/* Returns a set of enum expect_face. */
unsigned expect_facts_faces(const struct expect_facts *facts);
/* Returns the number of voxels at a face. */
int64_t expect_facts_contact(const struct expect_facts *facts, enum expect_face face);
/* Returns the sum of the voxels' indices along an axis. */
int64_t expect_facts_sum(const struct expect_facts *facts, int axis);

#endif

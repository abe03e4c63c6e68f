/*
 * expectation_facts.h - measures the mask of a segment: its box, its centroid, the faces that it touches,
 * its values and the number of its pieces. One pass over the slices, which several threads share.
 *
 * Everything is exact: voxels are counted and values summed as stored integers, one sum a slice.
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
    EXPECT_FACE_PADDING, /* beside a row's first or last voxel: where a round field of view ends */
    EXPECT_FACES
};

/* What a slice tells of a mask. */
struct expect_slice {
    struct expect_window box; /* around its voxels; empty: there are none */
    unsigned faces;           /* a set, of those that a slice can tell of */
    int64_t voxels, stored;   /* how many, and the sum of their stored values */
    int32_t lowest, highest;  /* of their stored values, if there are voxels */
    int64_t columns, rows;    /* sums of their indices */
};

/* A mask, and what is asked of it; all but the answers is borrowed. */
struct expect_facts {
    const struct expect_volume *volume;
    const struct image_mask *mask;
    bool faces, components;
    struct expect_slice *slices;
    struct components *bands; /* that components are counted in */
    int64_t component_count;
};

/* From what is asked to the answers: 0 or -ENOMEM; expect_facts_clear afterwards in any case. */
int expect_facts_find(struct expect_facts *facts);
void expect_facts_clear(struct expect_facts *facts);

/* Fills the measures of a mask that is not empty. The mean is made of the slices' sums in double
 * precision, ascending, in real-world values. */
void expect_facts_measure(const struct expect_facts *facts, struct segment_measures *measures);
/* Returns the number of voxels of the box. */
int64_t expect_box_voxels(const struct segment_measures *measures);
/* A set of enum expect_face. */
unsigned expect_facts_faces(const struct expect_facts *facts);

#endif

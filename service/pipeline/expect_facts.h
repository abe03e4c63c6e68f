/*
 * expect_facts.h - what a segment's mask is like: where it lies, what it touches, what its values
 * are and into how many pieces it falls. One pass over the slices, which several threads take.
 *
 * Everything is exact: voxels are counted and values summed as stored integers, one sum a slice.
 */
#ifndef NOCTULE_EXPECT_FACTS_H
#define NOCTULE_EXPECT_FACTS_H

#include "service/pipeline/expect.h"

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
};

/* A mask, and what is asked of it; all but the answers is borrowed. */
struct expect_facts {
    const struct expect_volume *volume;
    const struct image_mask *mask;
    bool boxes, faces, values, components;
    struct expect_slice *slices;
    struct components *bands; /* that components are counted in */
    int64_t component_count;
};

/* From what is asked to the answers, boxes with faces: 0 or -ENOMEM; expect_facts_clear afterwards in any case. */
int expect_facts_find(struct expect_facts *facts);
void expect_facts_clear(struct expect_facts *facts);

/* Of a mask that is not empty. The mean is made of the slices' sums in double precision, ascending,
 * in real-world values. */
double expect_facts_mean(const struct expect_facts *facts);
/* How many have voxels. */
int64_t expect_facts_slices(const struct expect_facts *facts);
/* Of the box around it. */
int64_t expect_facts_box_voxels(const struct expect_facts *facts);
/* A set of enum expect_face. */
unsigned expect_facts_faces(const struct expect_facts *facts);

#endif

/*
 * ref_enclosed.h - casts rays by the definition of kernels/enclosed/enclosed.h, one voxel and one direction at a time, and makes
 * cases.
 */
#ifndef NOCTULE_REF_ENCLOSED_H
#define NOCTULE_REF_ENCLOSED_H

#include "kernels/enclosed/enclosed.h"

/* A mask with random padding bits, and a request without a place for the result. */
struct enclosed_case {
    struct image_extent extent;
    uint64_t *mask;
    struct enclosed_request request;
};

/* A random case, small enough for the reference, or of this extent. */
void enclosed_make_case(struct enclosed_case *each, uint64_t seed);
void enclosed_make_case_of(struct enclosed_case *each, struct image_extent extent, uint64_t seed);
void enclosed_free_case(struct enclosed_case *each);

/* Returns the words of a mask of the case. */
size_t enclosed_words(const struct enclosed_case *each);

/* Sets `bits`, of the mask's size, to the result. */
void ref_enclosed(const struct enclosed_case *each, uint64_t *bits);

/* Runs a whole job. Returns its first error. */
int enclosed_run_case(struct kernels_lane *lane, const struct enclosed_case *each, uint64_t *bits, struct error *error);

#endif

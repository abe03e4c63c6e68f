/*
 * ref_image_type.h - image types by the definition of kernels/filter/image_type.h, in extended precision and the plainest
 * form; and random cases. tests/integ/test_image_types.py compares with pyradiomics itself.
 */
#ifndef NOCTULE_REF_IMAGE_TYPE_H
#define NOCTULE_REF_IMAGE_TYPE_H

#include "kernels/filter/image_type.h"

struct image_type_case {
    struct image_extent extent;
    double *values;
    struct image_type_demand demand;
};

void image_type_make_case(struct image_type_case *each, uint64_t seed);
void image_type_free_case(struct image_type_case *each);

/* Returns the case with all bands of its wavelet, and responses in a box. It has the same values. */
struct image_type_case image_type_boxed(const struct image_type_case *each, uint64_t seed);
int64_t image_type_box_voxels(const struct image_type_case *box);
/* Returns the voxel of the volume of a voxel of the box. */
int64_t image_type_box_voxel(const struct image_type_case *box, int64_t i);

/* Writes the responses, NAN where they are absent. */
void ref_image_type(const struct image_type_case *each, long double *responses);

/* Returns the max difference of a response: of doubles, or of results that are rounded to 32 bits. */
long double ref_image_type_off(const struct image_type_case *each);

/* Runs a whole job. Returns its first error. Sets the responses to memory of the lane. */
int image_type_run_case(struct kernels_lane *lane, const struct image_type_case *each,
                        const double *responses[IMAGE_TYPE_BANDS], struct error *error);

#endif

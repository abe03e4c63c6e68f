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

/* Writes the responses, NAN where they are absent. */
void ref_image_type(const struct image_type_case *each, long double *responses);

/* Returns the max difference of a response: of doubles, or of results that are rounded to 32 bits. */
long double ref_image_type_off(const struct image_type_case *each);

/* Runs a whole job. Returns its first error. Sets *responses to memory of the lane. */
int image_type_run_case(struct kernels_lane *lane, const struct image_type_case *each, const double **responses,
                        struct error *error);

#endif

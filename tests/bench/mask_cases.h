/* mask_cases.h - the cases mask/... of noctule-bench, for both backends and for the GPU's own. */
#ifndef NOCTULE_MASK_CASES_H
#define NOCTULE_MASK_CASES_H

#include "kernels/mask/mask.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MASK_CASE_STEPS = 8 };

/*
 * Body: an elliptical cylinder with lungs that have vessels, bones with marrow, a table that touches it, and specks.
 * Noise: 31 voxels in 100, near the threshold at which 6-connected clusters join.
 */
enum mask_content {
    MASK_BODY,
    MASK_LUNGS, /* of that body, with the airways */
    MASK_NOISE,
};

struct mask_case {
    const char *name;
    const char *description;
    enum mask_content content;
    struct image_extent extent;
    double spacing[3];
    struct kernels_mask_step steps[MASK_CASE_STEPS];
    size_t count;
    bool only_by_name;
};

extern const struct mask_case mask_cases[];
extern const size_t mask_case_count;

/* Sets voxels of the content to 1. */
void mask_case_draw(enum mask_content content, struct image_extent extent, uint8_t *in);

struct kernels_mask_demand mask_case_demand(const struct mask_case *chosen);

/* Parses "keep=3", "fill-slices", "cut-bridges=2.5,corners", "open=2,slice". Returns false if the text is invalid. */
bool mask_case_parse(const char *text, struct kernels_mask_step *step);

/* Returns the min bytes of bits that every step must read and write. */
int64_t mask_case_floor(struct image_extent extent);

#ifdef __cplusplus
}
#endif
#endif

/*
 * ref_mask.h - masks by the definitions of kernels/mask/mask.h, voxel by voxel. Also makes random jobs and compares
 * the results of a lane.
 */
#ifndef NOCTULE_REF_MASK_H
#define NOCTULE_REF_MASK_H

#include "kernels/mask/mask.h"

enum { REF_MASKS = 3, REF_MASK_STEPS = 5, REF_MASK_SETS = 2 };

/* A volume, and requests. A request may name the result of the one before. */
struct ref_mask_job {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    struct kernels_mask_demand demand;
    size_t count;

    struct ref_mask_request {
        struct kernels_mask_request given; /* its sets begin with those below */
        struct image_range *ranges;
        struct kernels_mask_step steps[REF_MASK_STEPS];
        uint64_t *own[3 * REF_MASK_SETS + 1];
        const uint64_t *any_of[REF_MASK_SETS], *within[REF_MASK_SETS + 1], *minus[REF_MASK_SETS + 1];
        bool within_before, minus_before; /* adds the previous result */
    } requests[REF_MASKS];
};

/* The result of a request; bits padded with zeros. */
struct ref_mask_found {
    uint64_t *bits;
    int64_t voxels, found, kept, first[3], last[3];
};

/*
 * ref_mask_of makes a volume with 100 where `in` is set. It has one request with these steps, up to REF_MASK_STEPS,
 * and balls of up to 100 mm. ref_mask_random makes a random job. The caller must free both with ref_mask_free.
 */
struct ref_mask_job *ref_mask_of(struct image_extent extent, const double spacing[3], const uint8_t *in,
                                 const struct kernels_mask_step *steps, size_t count);
struct ref_mask_job *ref_mask_random(uint64_t seed);
void ref_mask_free(struct ref_mask_job *job);

/* Computes the results by the definitions, request by request. */
void ref_mask_expect(const struct ref_mask_job *job, struct ref_mask_found *found);
void ref_mask_found_free(const struct ref_mask_job *job, struct ref_mask_found *found);

/*
 * Runs the job on the lane. Returns "" if all results are as expected, else a message about the first difference or
 * error. The message is valid until the next call. If rc is not NULL, sets it to the first error.
 */
const char *ref_mask_compare(struct kernels_lane *lane, const struct ref_mask_job *job,
                             const struct ref_mask_found *expected, int *rc);

/*
 * Applies one step to bytes, 0 or 1 per voxel of the job's volume. Sets `found` and `kept` like the result, but only if
 * the step finds components.
 */
void ref_mask_step(const struct ref_mask_job *job, const struct kernels_mask_step *step, uint8_t *in, int64_t *found,
                   int64_t *kept);

#endif

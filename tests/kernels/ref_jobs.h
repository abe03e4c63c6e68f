/*
 * ref_jobs.h - whole jobs, level set and fuzzy connectedness together: what the references say of
 * one, and whether a lane says the same.
 */
#ifndef NOCTULE_REF_JOBS_H
#define NOCTULE_REF_JOBS_H

#include "kernels/fuzzy/fuzzy.h"
#include "tests/kernels/ref_drive.h"

enum { REF_MOST = 4 }; /* labels, and objects */

struct ref_whole {
    struct ref_job job; /* the volume, the labels, who announces its slices in which order */
    const struct kernels_fuzzy_object *objects;
    size_t object_count;
    bool relative;
    bool fuzzy_first; /* before the level set */
};

/* The lane's, as kernels.h says. */
struct ref_results {
    struct image_mask masks[REF_MOST];
    struct kernels_fuzzy_result fuzzy[REF_MOST];
};

/*
 * Voxels into the lane, slices announced, everything run. 0 or the first error, with its message
 * where the call has one. If seconds is not NULL it becomes the time from kernels_volume_begin to
 * the results, without the time that this function takes to copy the voxels into the lane. Without
 * voxels none are copied: a benchmark may run on what the job before, of the same extent and
 * demand, has left there.
 */
int ref_run(struct kernels_lane *lane, const struct ref_whole *whole, struct ref_results *results,
            double *seconds, struct error *error);

/* One label or object; bits as kernels.h lays them out. */
struct ref_outcome {
    uint64_t *bits;
    int64_t voxels;
    int8_t *codes; /* of a label */
    uint16_t *map; /* of an object */
};

struct ref_expected {
    struct ref_outcome labels[REF_MOST];
    struct ref_outcome objects[REF_MOST];
};

/* By the references; ref_expected_free takes it back. */
void ref_expect(const struct ref_whole *whole, struct ref_expected *expected);
void ref_expected_free(struct ref_expected *expected);

/*
 * Runs the job on the lane and compares masks, counts, codes, objects and maps. "" when all are
 * equal, else a message about the first thing that is not, or about an error; the callee's, until
 * the thread's next call.
 */
const char *ref_compare(struct kernels_lane *lane, const struct ref_whole *whole,
                        const struct ref_expected *expected);

/*
 * A job of its own memory, made of random numbers: extents odd and thin, all pixel types, up to
 * REF_MOST labels with shapes, dense masks, ranges a slice and padding, and objects with seeds,
 * maps and padding, or only one of the two.
 */
struct ref_whole *ref_random_job(uint64_t seed);
void ref_random_job_free(struct ref_whole *whole);

/* order[0 .. count - 1] becomes a random permutation. */
void ref_shuffle(uint64_t *random, int64_t *order, int64_t count);

/* Words of a mask of this extent. */
int64_t ref_mask_words(struct image_extent extent);

#endif

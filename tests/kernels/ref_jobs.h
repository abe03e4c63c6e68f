/*
 * ref_jobs.h - whole jobs of level set and fuzzy connectedness together. Computes the references' results and
 * compares them with those of a lane.
 */
#ifndef NOCTULE_REF_JOBS_H
#define NOCTULE_REF_JOBS_H

#include "kernels/fuzzy/fuzzy.h"
#include "tests/kernels/ref_drive.h"

enum { REF_MOST = 4 }; /* max labels, and max objects */

struct ref_whole {
    struct ref_job job; /* the volume, the labels, the announcing threads and their order */
    const struct kernels_fuzzy_object *objects;
    size_t object_count;
    bool relative;
    bool fuzzy_first; /* before the level set */
};

/* Memory of the lane, as kernels.h specifies. */
struct ref_results {
    struct image_mask masks[REF_MOST];
    struct kernels_fuzzy_result fuzzy[REF_MOST];
};

/*
 * Copies the voxels into the lane, announces slices, and runs everything. Returns 0 or the first error, with its
 * message if the call has one. If seconds is not NULL, sets it to the time from kernels_volume_begin to the results,
 * without the copy of the voxels. Without voxels, copies none: a benchmark may use those of the previous job, which
 * must have the same extent and demand.
 */
int ref_run(struct kernels_lane *lane, const struct ref_whole *whole, struct ref_results *results, double *seconds,
            struct error *error);

/* Result of one label or object. Bits have the layout of kernels.h. */
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

/* Computes the results by the references. The caller must free them with ref_expected_free. */
void ref_expect(const struct ref_whole *whole, struct ref_expected *expected);
void ref_expected_free(struct ref_expected *expected);

/*
 * Runs the job on the lane and compares masks, counts, codes, objects and maps. Returns "" if all are equal, else a
 * message about the first difference or error. The message is valid until the thread's next call.
 */
const char *ref_compare(struct kernels_lane *lane, const struct ref_whole *whole, const struct ref_expected *expected);

/*
 * Makes a random job with its own memory. Extents are odd and thin, pixel types vary. It has labels, objects or both.
 * Up to REF_MOST labels have shapes, dense masks, ranges per slice and padding; objects have seeds, maps and padding.
 */
struct ref_whole *ref_random_job(uint64_t seed);
void ref_random_job_free(struct ref_whole *whole);

/* Sets order[0 .. count - 1] to a random permutation. */
void ref_shuffle(uint64_t *random, int64_t *order, int64_t count);

/* Returns the words of a mask of this extent. */
int64_t ref_mask_words(struct image_extent extent);

#endif

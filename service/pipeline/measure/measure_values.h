/*
 * measure_values.h - computes the features of counted sets in threads of its own, while the lane
 * counts for the next families. The values of a set depend on its counts only, so any thread
 * computes the same values. On a lane that can run operations concurrently (kernels_lane_beside)
 * these threads also start the counting.
 *
 * It serves many jobs, one after the other: starting and joining threads would cost a job half a
 * millisecond. The thread that completes a set calls the caller's `tell`, for several sets at a
 * time.
 *
 * One thread, the caller's, adds sets and takes them back in the same order. A family with the same
 * `count` as an earlier one (family.h) shares its counts, which stay until the last such set is
 * freed.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_VALUES_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_VALUES_H

#include "service/pipeline/measure/measure_keep.h"

/*
 * Memory limit of all sets in progress, if there are several. All families of 512x512x300 in 3-D
 * need 145 MiB for 64 levels, and 196 for 256 levels at three distances: they do not wait.
 */
#define VALUING_HELD ((size_t)256 << 20)

/* A set in progress. */
struct valued {
    struct measured measured; /* of `region` */
    /* as it was when the set was added: `prepared` belongs to its family */
    struct feature_region region;
    const uint64_t *counts; /* NULL: it counts no voxels, or has no values to compute */
    /*
     * The first set with these counts, it or an earlier one; NULL: it counts no voxels. The first
     * set has:
     */
    struct valued *counting;

    enum { VALUING_NOT_COUNTED, VALUING_COUNTS, VALUING_COUNTED } counted;

    uint64_t *own_counts;
    int count_rc; /* of `count` */
    struct error error;
    bool followed; /* a later set shares the counts and frees them */
    size_t bytes;  /* maximum bytes of the counts, and of the values during computation */
    struct feature_value values[FEATURE_FAMILY_MAX];
    bool made;                   /* values exist without counts: from an earlier group, or missing */
    bool taken;                  /* a thread computes them or has computed them */
    int rc;                      /* of `values`, or of `tell` */
    struct feature_set features; /* its features; empty when the set is freed */
    bool ready;                  /* its values were requested; valuing_wait() reads it */
};

struct valuing;

/* A form in progress: data that a family computes from a region's mask alone. */
struct formed {
    const struct feature_family *family;
    struct feature_region region; /* with its mask and the volume */
    void *form;
    size_t taken, ready; /* number of parts: taken by threads, and complete */
    int rc;
};

/* Opens it without threads: they start when there is work. Returns NULL if there is no memory. */
struct valuing *valuing_open(void);

/*
 * Callbacks for the values of a set, and for its counts, if it has any. Each returns 0 or -ENOMEM.
 */
struct valuing_tell {
    int (*tell)(void *context, struct valued *valued); /* may be NULL */
    void *context;
};

/*
 * Prepares for at most `sets` sets of a region and at most `threads` threads besides the caller; if
 * they also count, there are more threads, which mostly sleep. Threads of earlier jobs stay.
 * Returns 0 or -ENOMEM.
 */
int valuing_prepare(struct valuing *valuing, size_t sets, int threads, bool count, struct valuing_tell tell);

/*
 * Starts the forms of a family from the region's mask, before the sets that need them. Returns 0 or
 * -ENOMEM.
 */
int valuing_form(struct valuing *valuing, const struct feature_family *family, const struct feature_region *region);

/*
 * Returns whether there is room for a set of this size, or its counts exist; otherwise the caller
 * must free a set first.
 */
bool valuing_has_room(const struct valuing *valuing, const struct measured *measured, size_t bytes);

/* Returns the next set, zeros but for its description. */
struct valued *valuing_begin(struct valuing *valuing, const struct measured *measured, size_t bytes);

/*
 * Counts the set, unless an earlier one shares the counts. Returns errors of the family's `count`.
 */
int valuing_count(struct valuing *valuing, struct valued *valued, struct error *error);

/* Returns the result of counting a set that was taken back. */
int valuing_count_failed(const struct valued *valued, struct error *error);

/* Adds the set, for counting and computing unless that is done. */
void valuing_add(struct valuing *valuing, struct valued *valued);

/*
 * Returns the next set to take back when its values are complete; meanwhile computes values of
 * other sets. NULL: there are no more.
 */
struct valued *valuing_wait(struct valuing *valuing);

/* Waits until all sets so far are counted; meanwhile computes values. The lane is then not used until others are added. */
void valuing_wait_for_counts(struct valuing *valuing);

/* Frees the counts of a set that was taken back. */
void valuing_let_go(struct valuing *valuing);

/* Frees all counts and drops values that are not begun; the next region may follow. */
void valuing_clear(struct valuing *valuing);

void valuing_close(struct valuing *valuing);

#endif

#include "tests/kernels/ref_drive.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct announcer {
    struct kernels_lane *lane;
    int64_t slices;
    const int64_t *order;
    int64_t next;
    int error;
};

static void *
announce_slices(void *argument)
{
    struct announcer *announcer = argument;
    int64_t i;

    while ((i = __atomic_fetch_add(&announcer->next, 1, __ATOMIC_RELAXED)) < announcer->slices) {
        int64_t z = announcer->order ? announcer->order[i] : i;
        int error = kernels_volume_ready(announcer->lane, z, 1, NULL);
        if (error)
            __atomic_store_n(&announcer->error, error, __ATOMIC_RELAXED);
    }
    return NULL;
}

int
ref_announce(struct kernels_lane *lane, int64_t slices, int threads, const int64_t *order)
{
    struct announcer announcer = {.lane = lane, .slices = slices, .order = order};
    pthread_t *others = calloc((size_t)threads, sizeof(*others));

    if (!others)
        abort();
    for (int i = 1; i < threads; i++)
        if (pthread_create(&others[i], NULL, announce_slices, &announcer))
            abort();
    announce_slices(&announcer);
    for (int i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    free(others);
    return announcer.error;
}

double
ref_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int
ref_segment(struct kernels_lane *lane, const struct ref_job *job, struct image_mask *masks, double *seconds)
{
    size_t bytes = (size_t)(job->extent.columns * job->extent.rows * job->extent.slices) * image_pixel_size(job->pixel);
    const struct kernels_level_set_demand labels = {job->label_count};
    const struct kernels_demand demand = {.of[KERNELS_LEVEL_SET] = &labels};
    double begun = ref_clock(), copied;
    void *voxels;
    int error = 0;

    error = kernels_volume_begin(lane, job->extent, job->pixel, &demand, &voxels, NULL);
    if (error)
        return error;
    begun -= ref_clock();
    memcpy(voxels, job->voxels, bytes);
    copied = ref_clock();
    if (!job->no_hint)
        error = kernels_level_set_begin(lane, job->labels, job->label_count, NULL);
    if (!error)
        error = ref_announce(lane, job->extent.slices, job->threads, job->order);
    if (!error)
        error = kernels_level_set_run(lane, job->labels, job->label_count, masks, NULL);
    if (seconds)
        *seconds = ref_clock() - copied - begun;
    return error;
}

/*
 * backend.h - what a compute backend is: one struct of functions, none of them optional but those
 * of texture.
 *
 * lane.c and texture.c check every argument and keep the order of calls, so a backend sees only
 * calls that make sense. A new backend is one file with one struct that is entered in the table of
 * lane.c; its device and lane structs begin with the two structs below.
 */
#ifndef NOCTULE_BACKEND_H
#define NOCTULE_BACKEND_H

#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kernels_device {
    const struct kernels_backend *backend;
    int threads;
    char description[256];
};

enum lane_phase {
    LANE_EMPTY,     /* no job */
    LANE_VOLUME,    /* memory reserved */
    LANE_LABELS,    /* level set labels named */
    LANE_SEGMENTED, /* masks exist */
};

/*
 * The part of a lane that lane.c owns; backends read it. Only the announcement fields change
 * while several threads are inside the lane, by atomic operations.
 */
struct kernels_lane {
    struct kernels_device *device;
    enum lane_phase phase;
    struct image_extent extent;
    enum image_pixel pixel;
    struct kernels_demand demand;
    bool fuzzy_done;     /* this job's kernels_fuzzy_run has been called */
    uint64_t *announced; /* one bit a slice */
    size_t announced_words;
    int64_t slices_ready; /* slices whose volume_ready has returned */
};

struct kernels_backend {
    const char *name;
    /* -ENODEV: there is no such device here, and "auto" looks further. */
    int (*device_open)(const struct kernels_device_options *options, struct kernels_device **device,
                       char *reason, size_t reason_size);
    void (*device_close)(struct kernels_device *device);
    int (*lane_open)(struct kernels_device *device, struct kernels_lane **lane, char *reason,
                     size_t reason_size);
    void (*lane_close)(struct kernels_lane *lane);
    /* The job's extent, pixel type and demand stand in the lane already. */
    int (*volume_begin)(struct kernels_lane *lane, void **voxels, char *reason, size_t reason_size);
    int (*level_set_begin)(struct kernels_lane *lane, const struct kernels_level_set_label *labels,
                           char *reason, size_t reason_size);
    int (*volume_ready)(struct kernels_lane *lane, int64_t first, int64_t count);
    int (*level_set_finish)(struct kernels_lane *lane, struct image_mask *masks, char *reason,
                            size_t reason_size);
    int (*level_set_codes)(struct kernels_lane *lane, size_t label, int8_t *codes);
    int (*fuzzy_run)(struct kernels_lane *lane, const struct kernels_fuzzy_object *objects,
                     bool relative, struct kernels_fuzzy_result *results, char *reason,
                     size_t reason_size);
    int (*volume_range)(struct kernels_lane *lane, struct image_range padding,
                        struct image_range *range);
    /* texture.h, at any time once every slice is announced; NULL: not on this backend. */
    int (*glcm_run)(struct kernels_lane *lane, const struct texture_glcm *request, uint64_t *counts,
                    char *reason, size_t reason_size);
    int (*histogram_run)(struct kernels_lane *lane, const uint64_t *region, bool per_slice,
                         uint64_t *counts, char *reason, size_t reason_size);
    int (*patterns_run)(struct kernels_lane *lane, const struct texture_patterns *request,
                        char *reason, size_t reason_size);
};

extern const struct kernels_backend kernels_backend_cpu;
#ifdef NOCTULE_CUDA
extern const struct kernels_backend kernels_backend_cuda;
int cuda_gpus(struct kernels_gpu *gpus, int capacity); /* kernels_gpus */
#endif

/* Writes the sentence and returns `error`; a null or empty buffer is left alone. */
int kernels_fail(int error, char *reason, size_t reason_size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Slices whose kernels_volume_ready has not returned yet. */
int64_t kernels_slices_missing(struct kernels_lane *lane);

/* Processors this process may run on. */
int kernels_processors(void);

#ifdef __cplusplus
}
#endif
#endif

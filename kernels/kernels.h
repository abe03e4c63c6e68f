/*
 * kernels.h - the compute backends behind one C interface.
 *
 * A device is one CPU set or one GPU. A lane of a device runs one job at a time: a volume arrives
 * in it slice by slice, is worked on, and gives back bits and small numbers. Integer results are
 * bit-identical on every backend and equal to the references in tests/kernels.
 *
 * Shapes:   voxel (x, y, z) = (column, row, slice), x fastest; indices are 64-bit; at most 2^33
 * voxels. Errors:   every call returns 0 or a negative errno and, where it takes one, writes a
 * sentence into the caller's `reason` buffer (KERNELS_REASON bytes are always enough). Memory: all
 * of a lane's memory is reserved by kernels_volume_begin (it grows between jobs, never inside one).
 * Pointers that a lane hands out are the lane's and live until the next kernels_volume_begin or
 * kernels_lane_close on it. Threads:  different lanes may be used from different threads at once.
 * Within one lane only kernels_volume_ready may be called from several threads at the same time.
 */
#ifndef NOCTULE_KERNELS_H
#define NOCTULE_KERNELS_H

#include "base/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNELS_REASON     256
#define KERNELS_MAX_VOXELS (INT64_C(1) << 33)

enum kernels_shape_kind {
    KERNELS_SPHERE,    /* (x-cx)^2 + (y-cy)^2 + (z-cz)^2 <= radius[0]^2 (paper 001) */
    KERNELS_ELLIPSOID, /* ((x-cx)/rx)^2 + ((y-cy)/ry)^2 + ((z-cz)/rz)^2 <= 1 */
    KERNELS_BOX,       /* |x-cx| <= rx, |y-cy| <= ry, |z-cz| <= rz */
};

/*
 * A parametric initial curve in voxel coordinates; voxel centres lie at integers. The tests above
 * are evaluated in double precision, in the written order (x term + y term) + z term, without fused
 * multiply-add, so that all backends agree. A radius of 0 is allowed (a point, a plane): a term
 * whose difference is 0 is 0 whatever the radius. Negative or non-finite numbers are -EINVAL.
 */
struct kernels_shape {
    enum kernels_shape_kind kind;
    double center[3];
    double radius[3];
};

/*
 * One label of the level set of paper 001: its initial region is the union of its shapes and of its
 * dense mask (the paper's first form of an initial curve), and a voxel is in range when its stored
 * value lies in ranges[z] and not in padding. Labels evolve independently. The arrays are borrowed
 * until kernels_level_set_finish returns.
 */
struct kernels_level_set_label {
    const struct kernels_shape *shapes;
    size_t shape_count;
    const struct image_range *ranges; /* one a slice, or one for all: range_count is either */
    size_t range_count;
    struct image_range
        padding; /* stored values never in range (PS3.3 C.7.5.1.1.2); lo > hi: none */
    /* Laid out like struct image_mask's bits, whose padding bits may be anything; NULL: none. */
    const uint64_t *mask;
};

struct kernels_voxel {
    int64_t x, y, z;
};

/*
 * One object of fuzzy connectedness (paper 003, Udupa and Samarasekera 1996), 6-connected. With
 *   first[s]  = weight * exp(-(s / 2 - mean)^2 / (2 sigma^2))                 s = a + b
 *   second[d] = (1 - weight) * exp(-(d / 2)^2 / (2 homogeneity_sigma^2))      d = |a - b|
 * the affinity of two neighbours of stored values a and b is floor(65535 * (first + second)) in
 * double precision without fused multiply-add, at most 65535; it is 0 when either value is padding.
 * The scene of a voxel is the largest, over all paths from a seed, of the smallest affinity on the
 * path; 65535 at a seed. The object is where scene > threshold. Seeds lie in the volume (-EINVAL
 * otherwise); a seed that is padding counts as any other, and reaches nothing. Sigmas are > 0, the
 * weight is in 0..1, everything is finite, and so are the sigmas' squares, which are not 0 either,
 * in double precision.
 */
struct kernels_fuzzy_object {
    const struct kernels_voxel *seeds;
    size_t seed_count; /* 0: the scene is 0 everywhere */
    double mean, sigma;
    double homogeneity_sigma;
    double weight;
    uint16_t threshold;
    struct image_range padding; /* lo > hi: none */
    bool scene;                 /* is the scene wanted back? */
};

/* The lane owns both. */
struct kernels_fuzzy_result {
    struct image_mask object;
    const uint16_t *scene; /* one a voxel, x fastest, tightly packed; NULL when not wanted */
};

struct kernels_device;
struct kernels_lane;

struct kernels_device_options {
    const char *backend; /* "auto" (CUDA where there is a GPU, else the CPU), "cuda", "cpu" */
    const char *device;  /* of CUDA: its index or UUID ("GPU-..."); NULL or "": the first */
    int threads; /* CPU threads a lane may use; 0: one a processor this process may run on */
};

#define KERNELS_UUID 48

/* A GPU that can be opened: what kernels_device_options.device takes. */
struct kernels_gpu {
    int index;
    char uuid[KERNELS_UUID]; /* "GPU-" and 36 characters */
    char name[64];
    int64_t memory_bytes;
};

/* Lists at most `capacity` GPUs and returns how many there are; 0 also without a driver or where
 * the CUDA backend was not built. Creates no context. */
int kernels_gpus(struct kernels_gpu *gpus, int capacity);

/* Opens a device; kernels_device_close takes it back. The device outlives its lanes. */
int kernels_device_open(const struct kernels_device_options *options,
                        struct kernels_device **device, char *reason, size_t reason_size);
void kernels_device_close(struct kernels_device *device);

/* "cpu" or "cuda"; and a sentence for people: processor or GPU, threads, instruction set. */
const char *kernels_device_backend(const struct kernels_device *device);
const char *kernels_device_description(const struct kernels_device *device);

/* CPU threads a lane may use, at least 1. */
int kernels_device_threads(const struct kernels_device *device);

int kernels_lane_open(struct kernels_device *device, struct kernels_lane **lane, char *reason,
                      size_t reason_size);
void kernels_lane_close(struct kernels_lane *lane);

/* What a job will ask for: memory is reserved by it. */
struct kernels_demand {
    size_t level_set_labels;
    size_t fuzzy_objects;
    size_t fuzzy_scenes; /* of them whose scene is wanted */
    bool fuzzy_relative;
    bool texture; /* texture.h is called */
};

/*
 * Starts a job: reserves what a volume of this extent and pixel type with this demand needs and
 * returns in *voxels where slice z belongs: row-major, tightly packed, at byte offset z * rows *
 * columns * size; pinned memory on a GPU's lane. -ENOMEM when it does not fit (on a GPU: run the
 * job on the CPU), -E2BIG above KERNELS_MAX_VOXELS, -EIO when the device has failed: then every
 * further call on it is -EIO too, and only a new process gets it back.
 */
int kernels_volume_begin(struct kernels_lane *lane, struct image_extent extent,
                         enum image_pixel pixel, const struct kernels_demand *demand, void **voxels,
                         char *reason, size_t reason_size);

/*
 * Names the labels of the level set before the first slice is announced, so that work that only
 * ever grows starts while later slices are still being decoded. `count` is what
 * kernels_volume_begin was told.
 */
int kernels_level_set_begin(struct kernels_lane *lane, const struct kernels_level_set_label *labels,
                            size_t count, char *reason, size_t reason_size);

/*
 * Announces that slices first .. first + count - 1 are decoded. Each slice is announced exactly
 * once, in any order, from any thread; larger slabs (8 MiB and more) upload faster on a GPU.
 */
int kernels_volume_ready(struct kernels_lane *lane, int64_t first, int64_t count);

/*
 * Paper 001, stages 1 and 2, to convergence, for every label; needs every slice announced (-EBUSY
 * otherwise). masks has one element a label.
 */
int kernels_level_set_finish(struct kernels_lane *lane, struct image_mask *masks, char *reason,
                             size_t reason_size);

/*
 * Paper 001, stage 3 with resolution 2f(1): the state codes of one label after
 * kernels_level_set_finish, one int8 a voxel (columns * rows * slices bytes, x fastest, the
 * caller's): 2 inside with an outside 6-neighbour, 1 inside, -1 outside with an inside 6-neighbour,
 * -2 outside. Neighbours beyond the volume do not exist and make no border.
 */
int kernels_level_set_codes(struct kernels_lane *lane, size_t label, int8_t *codes);

/*
 * Paper 003, to convergence, for every object; needs every slice announced (-EBUSY otherwise), once
 * a job, before or after the level set. With `relative` a voxel that is above the thresholds of
 * several objects belongs to that of them whose scene is strictly the largest there, and to none
 * when the strongest two are equally strong (Saha and Udupa 2001). objects and results have one
 * element for each of the demand's objects, and `scene` is set in as many as it said.
 */
int kernels_fuzzy_run(struct kernels_lane *lane, const struct kernels_fuzzy_object *objects,
                      size_t count, bool relative, struct kernels_fuzzy_result *results,
                      char *reason, size_t reason_size);

/* Smallest and largest stored value of the announced volume, padding excluded; -ENODATA if none is
 * left. */
int kernels_volume_range(struct kernels_lane *lane, struct image_range padding,
                         struct image_range *range);

#ifdef __cplusplus
}
#endif
#endif

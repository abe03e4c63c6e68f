/*
 * kernels.h - the compute backends behind one C interface: devices, lanes, and the volume in a lane.
 *
 * A device is one CPU set or one GPU. A lane of a device runs one job at a time: a volume arrives in
 * it slice by slice, operations work on it (level_set.h, fuzzy.h, texture.h, range.h) and give back
 * bits and small numbers. Integer results are bit-identical on every backend and equal to the
 * references in tests/kernels.
 *
 * Shapes: as in base/image.h; at most 2^33 voxels.
 * Errors: every call returns 0 or a negative errno and, where it takes one, fills the struct error:
 * VOLUME_TOO_LARGE (-E2BIG), COMPUTE_DEVICE_LOST (-EIO), else COMPUTE_FAILED.
 * Memory: all of a lane's memory is reserved by kernels_volume_begin (it grows between jobs, never
 * inside one). Pointers that a lane hands out are the lane's and live until the next
 * kernels_volume_begin or kernels_lane_close on it.
 * Threads: different lanes may be used from different threads at once. Within one lane only
 * kernels_volume_ready may be called from several threads at the same time, and once every slice is
 * there the operations' runs, which take turns.
 */
#ifndef NOCTULE_KERNELS_H
#define NOCTULE_KERNELS_H

#include "base/error.h"
#include "base/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNELS_MAX_VOXELS (INT64_C(1) << 33)

struct kernels_device;
struct kernels_lane;

struct kernels_device_options {
    const char *backend; /* "auto" (CUDA where there is a GPU, else the CPU), "cuda", "cpu" */
    const char *device;  /* of CUDA: its index or UUID ("GPU-..."); NULL or "": the first */
    int threads; /* CPU threads a lane may use; 0: one per processor this process may run on */
};

/* Opens a device; kernels_device_close takes it back. The device outlives its lanes. */
int kernels_device_open(const struct kernels_device_options *options,
                        struct kernels_device **device, struct error *error);
void kernels_device_close(struct kernels_device *device);

/* "cpu" or "cuda"; and for people: processor or GPU, threads, instruction set. */
const char *kernels_device_backend(const struct kernels_device *device);
const char *kernels_device_description(const struct kernels_device *device);

/* CPU threads a lane may use, at least 1. */
int kernels_device_threads(const struct kernels_device *device);

int kernels_lane_open(struct kernels_device *device, struct kernels_lane **lane,
                      struct error *error);
void kernels_lane_close(struct kernels_lane *lane);

/* Of its device. */
int kernels_lane_threads(const struct kernels_lane *lane);

/* Whether runs of several threads are under way beside each other: on a GPU, where threads wait for what they queued. */
bool kernels_lane_beside(const struct kernels_lane *lane);

/*
 * Between jobs: takes `bytes` of the host's memory, pinned on a GPU's lane, so that volumes that need no more find it
 * there. On the CPUs its pages come as they are written to. What the lane has already counts. 0 or -errno: then jobs take
 * what they need.
 */
int kernels_lane_reserve(struct kernels_lane *lane, int64_t bytes);

/* What can be done with a volume. */
enum kernels_op_id {

#define OP(NAME, name) KERNELS_##NAME,
#include "kernels/ops.def"
#undef OP
    KERNELS_OPS, /* how many there are */
};

/*
 * What a job will ask for: memory is reserved by it. For each operation its demand, as its header
 * says, and NULL for what is not asked for. Borrowed by kernels_volume_begin.
 */
struct kernels_demand {
    const void *of[KERNELS_OPS];
    int64_t most_bytes;   /* of the host's memory that the job may take; 0: what there is */
    int64_t beside_bytes; /* of that, what it takes outside of the lane */
};

/* The demand of operations that take no more than to be asked for. */
extern const bool kernels_asked;

/*
 * Starts a job: reserves what a volume of this extent and pixel type with this demand needs and
 * returns in *voxels where slice z belongs: row-major, tightly packed, at byte offset z * rows *
 * columns * size; pinned memory on a GPU's lane. -ENOMEM when it does not fit (on a GPU: run the
 * job on the CPU), -E2BIG above KERNELS_MAX_VOXELS and above the demand's most_bytes, -EIO when the device has failed: then every
 * further call on it is -EIO too, and only a new process gets it back.
 */
int kernels_volume_begin(struct kernels_lane *lane, struct image_extent extent,
                         enum image_pixel pixel, const struct kernels_demand *demand, void **voxels,
                         struct error *error);

/* What the lane's volume was begun with of the host's memory, as most_bytes counts it. */
int64_t kernels_lane_bytes(const struct kernels_lane *lane);

/*
 * Announces that slices first .. first + count - 1 are decoded. Each slice is announced exactly
 * once (-EALREADY), in any order, from any thread; larger slabs (8 MiB and more) upload faster on a GPU.
 */
int kernels_volume_ready(struct kernels_lane *lane, int64_t first, int64_t count,
                         struct error *error);

#ifdef __cplusplus
}
#endif
#endif

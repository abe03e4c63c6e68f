/*
 * kernels.h - one C interface to all compute backends: devices, lanes, and the volume in a lane.
 *
 * A device is one set of CPUs or one GPU. A lane of a device runs one job at a time. It receives a
 * volume slice by slice, runs operations on it (level_set.h, fuzzy.h, texture.h, range.h) and
 * returns bits and small numbers. Integer results are bit-identical on every backend and equal to
 * the references in tests/kernels.
 *
 * Shapes: as in base/image.h; at most 2^33 voxels.
 * Errors: every call returns 0 or a negative errno and, where it takes one, fills the struct error:
 * VOLUME_TOO_LARGE (-E2BIG), COMPUTE_DEVICE_LOST (-EIO), otherwise COMPUTE_FAILED.
 * Memory: kernels_volume_begin reserves all memory of a lane, which grows between jobs only. The
 * lane owns the pointers that it returns. They are valid until the next kernels_volume_begin or
 * kernels_lane_close.
 * Threads: threads may use different lanes at once. Within one lane, only kernels_volume_ready and
 * kernels_rows_ready may run in several threads at once and, when every slice is ready, the runs of operations, which take
 * turns.
 */
#ifndef NOCTULE_KERNELS_KERNELS_H
#define NOCTULE_KERNELS_KERNELS_H

#include "base/error.h"
#include "base/image.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNELS_MAX_VOXELS (INT64_C(1) << 33)

struct kernels_device;
struct kernels_lane;

struct kernels_device_options {
    const char *backend; /* "auto" (CUDA if there is a GPU, otherwise the CPU), "cuda", "cpu" */
    const char *device;  /* CUDA: index or UUID ("GPU-..."); NULL or "": the first device */
    int threads;         /* max CPU threads per lane; 0: the number of processors of this process */
};

/* Opens a device. The caller must close it with kernels_device_close, after its lanes. */
int kernels_device_open(const struct kernels_device_options *options, struct kernels_device **device,
                        struct error *error);
void kernels_device_close(struct kernels_device *device);

/* Returns "cpu" or "cuda"; and a description: processor or GPU, threads, instruction set. */
const char *kernels_device_backend(const struct kernels_device *device);
const char *kernels_device_description(const struct kernels_device *device);

/* Returns the max CPU threads per lane, at least 1. */
int kernels_device_threads(const struct kernels_device *device);

/* Memory of a GPU, in bytes. */
struct kernels_gpu_memory {
    int64_t usable; /* by lanes and other programs together */
    int64_t free;
    int64_t held; /* by the lanes of this device */
};

/* Limits the lanes of a GPU from their next volume on: they leave `bytes` of its usable memory to other programs. Volumes
 * that then do not fit get -ENOMEM. Any thread may call. Has no effect on the CPU. */
void kernels_device_leave(struct kernels_device *device, int64_t bytes);
/* Returns 0, or a negative errno: -ENOTSUP on the CPU. */
int kernels_device_memory(struct kernels_device *device, struct kernels_gpu_memory *memory);

int kernels_lane_open(struct kernels_device *device, struct kernels_lane **lane, struct error *error);
void kernels_lane_close(struct kernels_lane *lane);

/* Returns the max CPU threads of the lane's device. */
int kernels_lane_threads(const struct kernels_lane *lane);

/* Returns whether runs of several threads may overlap: true on a GPU, where threads wait for their
 * queued work. */
bool kernels_lane_beside(const struct kernels_lane *lane);

/* Calls body(context, i) once for every i in 0 .. count - 1, in any order, on this thread and on idle threads of the lane's
 * device (NULL: on this thread). Any thread may call. The order must not change results. */
void kernels_lane_for(const struct kernels_lane *lane, int64_t count, void (*body)(void *context, int64_t i),
                      void *context);

/*
 * Reserves `bytes` of host memory between jobs, pinned on a GPU's lane, for later volumes. Memory
 * that the lane holds already counts. On the CPU, pages become resident when written. Returns 0 or
 * a negative errno; after an error, jobs reserve their own memory.
 */
int kernels_lane_reserve(struct kernels_lane *lane, int64_t bytes);

/* Operations on a volume. */
enum kernels_op_id {

#define OP(NAME, name) KERNELS_##NAME,
#include "kernels/ops.def"
#undef OP
    KERNELS_OPS, /* number of operations */
};

/* Operations that a job may request; memory is reserved for them. `of` has each operation's demand,
 * as its header describes, or NULL. kernels_volume_begin borrows it. */
struct kernels_demand {
    const void *of[KERNELS_OPS];
    int64_t most_bytes;   /* max bytes of host memory for the job; 0: no limit */
    int64_t beside_bytes; /* the part of most_bytes that the job uses outside the lane */
};

/* The demand of operations that have no parameters for it. */
extern const bool kernels_asked;

/*
 * Starts a job: reserves memory for a volume of this extent and pixel type with this demand. Sets
 * *voxels to the memory for slices, pinned on a GPU's lane. Slice z belongs at byte offset z * rows
 * * columns * size, row-major and tightly packed. Returns -ENOMEM if it does not fit (on a GPU, the
 * caller should run the job on the CPU). Returns -E2BIG above KERNELS_MAX_VOXELS or the demand's
 * most_bytes. Returns -EIO if the device has failed: every further call on it returns -EIO, and
 * only a new process can recover it.
 */
int kernels_volume_begin(struct kernels_lane *lane, struct image_extent extent, enum image_pixel pixel,
                         const struct kernels_demand *demand, void **voxels, struct error *error);

/* Return the memory that kernels_volume_begin lent, and the pixel type. */
const void *kernels_volume_voxels(const struct kernels_lane *lane);
enum image_pixel kernels_volume_pixel(const struct kernels_lane *lane);

/* Returns the host memory of the lane's volume in bytes, as most_bytes counts it. */
int64_t kernels_lane_bytes(const struct kernels_lane *lane);

/*
 * Announces that slices first .. first + count - 1 are decoded. The caller must announce each slice
 * once (-EALREADY), in any order, from any thread. Slabs of 8 MiB and more upload faster on a GPU.
 */
int kernels_volume_ready(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error);

/* Announces rows first .. first + count - 1 of slice z, likewise: a large slice is uploaded in pieces. */
int kernels_rows_ready(struct kernels_lane *lane, int64_t z, int64_t first, int64_t count, struct error *error);

#ifdef __cplusplus
}
#endif
#endif

/*
 * cuda.cuh - what the files of the CUDA backend share.
 *
 * device.cu owns the device, lane.cu the lanes, their memory and the uploads,
 * range.cu the value range; level_set_cuda.cu, fuzzy_cuda.cu, glcm_cuda.cu and
 * patterns_cuda.cu are one algorithm each. All
 * memory is taken in volume_begin: each algorithm says what it needs (cuda_*_needs), the backend
 * lets the lane's two arenas grow to the sum, and each takes its pieces (cuda_*_place). Nothing is
 * allocated inside a job.
 *
 * A lane has three streams. `upload` carries the voxels to the device, slab by slab; `work` carries
 * every kernel; `download` what comes back beside them. An event a slab orders work after upload.
 * Host threads of one lane meet at its mutex: kernels_volume_ready may come from several.
 *
 * Every call of the CUDA runtime stands inside CUDA_TRY (or CUDA_OF where its error is handled),
 * so that a test can let any one of them fail.
 */
#ifndef NOCTULE_CUDA_CUH
#define NOCTULE_CUDA_CUH

#include "kernels/backend.h"
#include "kernels/cuda/fault.h"

#include <cuda_runtime.h>
#include <pthread.h>

/* Memory that grows between jobs and is carved up inside one. */
struct cuda_arena {
    bool pinned; /* host memory that the GPU's copy engines reach; else device memory */
    unsigned char *memory;
    size_t size;
    size_t used;
};

/* A piece of `bytes` at the next multiple of 256; the arena was reserved for it. */
void *cuda_arena_take(struct cuda_arena *arena, size_t bytes);

/* What an algorithm takes from the two arenas; sums of pieces rounded up to 256 bytes each. */
struct cuda_needs {
    size_t device;
    size_t pinned;
};

/* Adds a piece of count * size bytes to one of the sums; false on overflow. */
bool cuda_needs_add(size_t *sum, size_t count, size_t size);

struct cuda_device {
    struct kernels_device base;
    int index;
    int multiprocessors;
    size_t l2_bytes;
    size_t shared_per_block;      /* at most, after cudaFuncSetAttribute */
    bool failed;                  /* by an error that only a new process gets rid of; atomic */
    bool failing;                 /* taken, atomically, by who writes `failure` */
    char failure[KERNELS_REASON]; /* why; written before failed */
    pthread_mutex_t memory;       /* one lane at a time takes memory */
};

struct cuda_level_set; /* of level_set_cuda.cu */
struct cuda_fuzzy;     /* of fuzzy_cuda.cu */
struct cuda_texture;   /* of texture_cuda.cuh */

struct cuda_lane {
    struct kernels_lane base;
    cudaStream_t upload, work, download;
    struct cuda_arena device, pinned;
    pthread_mutex_t mutex;
    void *host_voxels;   /* pinned; where the decoder writes */
    void *device_voxels; /* the same on the device, x fastest, tightly packed */
    cudaEvent_t uploaded;
    int64_t slab_count;
    int64_t *slab_missing; /* slices that are not announced yet, one a slab; atomic */
    int64_t slab_capacity;
    uint32_t *device_extremes; /* of cuda_volume_range: 2 */
    uint32_t *host_extremes;
    struct cuda_level_set *level_set;
    struct cuda_fuzzy *fuzzy;
    struct cuda_texture *texture;
};

static inline struct cuda_lane *
cuda_lane_of(struct kernels_lane *lane)
{
    return (struct cuda_lane *)lane;
}

static inline struct cuda_device *
cuda_device_of(const struct kernels_lane *lane)
{
    return (struct cuda_device *)lane->device;
}

/*
 * The errno of a CUDA error: -ENOMEM for memory; -EIO for all others, after which the device counts
 * as failed. Writes a sentence that names the call into the reason (may be NULL).
 */
int cuda_failed(struct cuda_device *device, cudaError_t error, const char *call, char *reason,
                size_t reason_size);

/* Makes the device the calling thread's; -EIO once it has failed. Every entry begins with it. */
int cuda_enter(struct cuda_device *device, char *reason, size_t reason_size);

/* The table's two. */
int cuda_device_open(const struct kernels_device_options *options, struct kernels_device **device,
                     char *reason, size_t reason_size);
void cuda_device_close(struct kernels_device *device);

/* fault.h: the error that a test wants in place of the next call, else cudaSuccess. */
cudaError_t cuda_fault(void);

/* The result of a call, or the error that a test wants in its place. */
#define CUDA_OF(call) (cuda_fault_or([&] { return (call); }))

template <typename Call>
static inline cudaError_t
cuda_fault_or(const Call &call)
{
    cudaError_t wanted = cuda_fault();

    return wanted != cudaSuccess ? wanted : call();
}

/* Leaves the function with the errno when a call fails; `reason` and `reason_size` are in scope. */
#define CUDA_TRY(device, call)                                                                     \
    do {                                                                                           \
        cudaError_t cuda_error_ = CUDA_OF(call);                                                   \
        if (cuda_error_ != cudaSuccess)                                                            \
            return cuda_failed((device), cuda_error_, #call, reason, reason_size);                 \
    } while (0)

/* A kernel launch's own error. */
#define CUDA_LAUNCHED(device) CUDA_TRY(device, cudaGetLastError())

/*
 * The level set. The backend calls begin before the first slab; slab, on the lane's mutex, once the
 * upload of slices first .. first + count - 1 has been queued and `work` has been told to wait for
 * it; finish once all slabs have been queued. Open and close come once a lane.
 */
int cuda_level_set_open(struct cuda_lane *lane);
void cuda_level_set_close(struct cuda_lane *lane);
bool cuda_level_set_needs(const struct cuda_lane *lane, struct cuda_needs *needs);
void cuda_level_set_place(struct cuda_lane *lane);
int cuda_level_set_begin(struct cuda_lane *lane, const struct kernels_level_set_label *labels,
                         char *reason, size_t reason_size);
int cuda_level_set_slab(struct cuda_lane *lane, int64_t first, int64_t count, char *reason,
                        size_t reason_size);
int cuda_level_set_finish(struct cuda_lane *lane, struct image_mask *masks, char *reason,
                          size_t reason_size);
int cuda_level_set_codes(struct cuda_lane *lane, size_t label, int8_t *codes);

/* Smallest and largest stored value that is not padding, once all slabs have been queued; waits
 * for the answer. -ENODATA when there is none. */
int cuda_volume_range(struct cuda_lane *lane, struct image_range padding, struct image_range *range,
                      char *reason, size_t reason_size);

/* Fuzzy connectedness: all at once, after the last slab. */
int cuda_fuzzy_open(struct cuda_lane *lane);
void cuda_fuzzy_close(struct cuda_lane *lane);
bool cuda_fuzzy_needs(const struct cuda_lane *lane, struct cuda_needs *needs);
void cuda_fuzzy_place(struct cuda_lane *lane);
int cuda_fuzzy_run(struct cuda_lane *lane, const struct kernels_fuzzy_object *objects,
                   bool relative, struct kernels_fuzzy_result *results, char *reason,
                   size_t reason_size);

/* Texture, once all slabs have been queued, on `work` after them; texture.h. */
int cuda_texture_open(struct cuda_lane *lane);
void cuda_texture_close(struct cuda_lane *lane);
bool cuda_texture_needs(const struct cuda_lane *lane, struct cuda_needs *needs);
void cuda_texture_place(struct cuda_lane *lane);
int cuda_glcm_run(struct cuda_lane *lane, const struct texture_glcm *request, uint64_t *counts,
                  char *reason, size_t reason_size);
int cuda_histogram_run(struct cuda_lane *lane, const uint64_t *region, bool per_slice,
                       uint64_t *counts, char *reason, size_t reason_size);
int cuda_patterns_run(struct cuda_lane *lane, const struct texture_patterns *request, char *reason,
                      size_t reason_size);

#endif

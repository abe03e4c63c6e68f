/*
 * cuda.cuh - declarations shared by the files of the CUDA backend.
 *
 * device.cu owns the device. lane.cu owns lanes, memory and uploads. Operations are in the folders
 * of their algorithms. volume_begin reserves all memory: the lane's two arenas grow to the
 * operations' needs (op.h), and each operation takes its pieces. A job itself allocates no memory.
 *
 * A lane has three streams. `upload` copies the voxels to the device slab by slab, `work` runs
 * every kernel, and `download` copies results at the same time. One event per copy orders work
 * after upload. Operations with a known set of slices wait only for those. The lane's mutex
 * serialises its host threads: several may call kernels_volume_ready, and runs take turns
 * (results.cu).
 *
 * Every call of the CUDA runtime must be inside CUDA_TRY (or CUDA_OF, if the caller handles the
 * error), so that tests can make it fail.
 */
#ifndef NOCTULE_KERNELS_CUDA_CUDA_CUH
#define NOCTULE_KERNELS_CUDA_CUDA_CUH

#include "kernels/cpu/cpu_pool.h"
#include "kernels/cuda/fault.h"
#include "kernels/op.h"

#include <cuda_runtime.h>
#include <pthread.h>

/* Memory that grows between jobs and is divided into pieces during one. */
struct cuda_block {
    bool pinned; /* pinned host memory for the GPU's copy engines; otherwise device memory */
    bool mapped; /* pinned pages of mmap */
    unsigned char *memory;
    size_t size;
};

/* Takes a piece of an arena for count * each elements. `each` must not overflow. */
template <typename Element>
static inline void
cuda_take(struct kernels_arena *arena, Element **piece, size_t count, size_t each = 1)
{
    *piece = (Element *)kernels_take(arena, count, each * sizeof(Element));
}

struct cuda_device {
    struct kernels_device base;
    int index;
    int multiprocessors;
    size_t l2_bytes;
    size_t shared_per_block; /* the maximum after cudaFuncSetAttribute */
    bool failed;             /* by an error that requires a new process; atomic */
    bool failing;            /* taken atomically by the writer of `failure` */
    char failure[256];       /* reason; written before failed */
    pthread_mutex_t memory;  /* serialises reservations of all lanes; guards the next two */
    size_t held;             /* device memory of all lanes */
    size_t left;             /* device memory left to other programs */
    struct cpu_pool *pool;   /* few threads, for host reads while waiting, and for new pages */
};

/* Results in transfer to the host, whose waiting threads have left the turn. */
enum { CUDA_RESULTS = 16, CUDA_RESULTS_BYTES = 8 << 20 };

struct cuda_result {
    unsigned char *memory; /* pinned, for this result only */
    cudaEvent_t arrived;   /* threads sleep until this event */
    bool taken;
};

struct cuda_results {
    struct cuda_result each[CUDA_RESULTS];
    unsigned char *memory; /* CUDA_RESULTS_BYTES, reserved with the job; NULL: none */
    size_t used;           /* bytes; 0 again when no result is taken */
    int taken;
};

struct cuda_lane {
    struct kernels_lane base;
    cudaStream_t upload, work, download;
    struct cuda_block device, pinned;
    pthread_mutex_t mutex;
    void *host_voxels;   /* pinned; the decoder's target */
    void *device_voxels; /* device copy, x fastest, tightly packed */
    int64_t slab_count;
    int64_t *slab_left; /* pieces per slab that are not queued yet */
    int64_t slab_capacity;
    int64_t slab_pieces;    /* copies per slab: 1, or several of rows if a slice is large */
    int64_t *piece_missing; /* rows per piece not announced yet; atomic */
    cudaEvent_t *uploaded;  /* one per piece */
    bool *piece_queued;     /* its upload is queued */
    bool *piece_awaited;    /* `work` waits for the piece */
    int64_t piece_capacity;
    pthread_mutex_t turn; /* held by the thread that queues work; taken before `mutex` */
    bool *has_turn;       /* whether its last owner still holds it */
    struct cuda_results results;
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

/* Converts a CUDA error: returns -ENOMEM for memory, otherwise -EIO and marks the device as failed.
 * The message names the call. */
int cuda_failed(struct cuda_device *device, cudaError_t status, const char *call, struct error *error);

/* Makes all work queued from here on wait for slices first .. end - 1, which must be announced. */
int cuda_await_slices(struct cuda_lane *lane, int64_t first, int64_t end, struct error *error);

/* As cuda_await_slices, for rows of the whole volume: row y of slice z is z * rows + y. */
int cuda_await_rows(struct cuda_lane *lane, int64_t first, int64_t end, struct error *error);

/* Returns whether the upload of rows first .. end - 1 is queued. Call it from `queued` and `ready`. */
bool cuda_rows_are_queued(const struct cuda_lane *lane, int64_t first, int64_t end);

/* Makes the device current in the calling thread. Returns -EIO if the device has failed. */
int cuda_enter(struct cuda_device *device, struct error *error);

/* results.cu: turns (op.h). A run that has given up its turn must no longer use memory that it
 * shares with other runs. cuda_turn_give_up returns the argument of cuda_turn_take_again. */
int cuda_turn_take(struct kernels_lane *lane, const struct kernels_op *op, bool *has_turn, struct error *error);
void cuda_turn_take_again(struct cuda_lane *lane, bool *has_turn);
bool *cuda_turn_give_up(struct cuda_lane *lane);
void cuda_turn_leave(struct kernels_lane *lane);

/* Takes memory for a result of this size. Returns NULL if no room is left at the moment. */
struct cuda_result *cuda_result_take(struct cuda_lane *lane, size_t bytes);
void cuda_result_give_back(struct cuda_lane *lane, struct cuda_result *result);

/* Copies bytes from the device to the host as the last work of a run. If there is room, gives up
 * the turn while it waits: the run must not use its memory afterwards. */
int cuda_result_copy(struct cuda_lane *lane, void *to, const void *from, size_t bytes, struct error *error);

/* As cuda_result_copy, into a result that the caller reads. Sets *has_turn for
 * cuda_turn_take_again. */
int cuda_result_fetch(struct cuda_lane *lane, struct cuda_result *result, const void *from, size_t bytes,
                      bool **has_turn, struct error *error);

/* Device memory left free for contexts, printf buffers and kernels that load late. */
enum { CUDA_DEVICE_RESERVE = 512 << 20 };

/* Device entries of the backend's table. */
int cuda_device_open(const struct kernels_device_options *options, struct kernels_device **device, struct error *error);
void cuda_device_close(struct kernels_device *device);
void cuda_device_leave(struct kernels_device *device, size_t bytes);
int cuda_device_memory(struct kernels_device *device, struct kernels_gpu_memory *memory);

/* fault.h: returns the error that a test injects into the next call, otherwise cudaSuccess. */
cudaError_t cuda_fault(void);

/* Returns the result of a call, or the injected error. */
#define CUDA_OF(call)                                                                                                  \
    ([&] {                                                                                                             \
        const cudaError_t cuda_wanted_ = cuda_fault();                                                                 \
        return cuda_wanted_ != cudaSuccess ? cuda_wanted_ : (call);                                                    \
    }())

/* Returns the errno from the function if the call fails. `error` must be in scope. */
#define CUDA_TRY(device, call)                                                                                         \
    do {                                                                                                               \
        cudaError_t cuda_error_ = CUDA_OF(call);                                                                       \
        if (cuda_error_ != cudaSuccess)                                                                                \
            return cuda_failed((device), cuda_error_, #call, error);                                                   \
    } while (0)

/* Queues a copy of `count` elements on the lane's work stream, to or from the device. Returns as
 * CUDA_TRY. */
#define CUDA_SEND(lane, to, from, count)                                                                               \
    CUDA_TRY(cuda_device_of(&(lane)->base),                                                                            \
             cudaMemcpyAsync(to, from, (count) * sizeof(*(from)), cudaMemcpyHostToDevice, (lane)->work))
#define CUDA_FETCH(lane, to, from, count)                                                                              \
    CUDA_TRY(cuda_device_of(&(lane)->base),                                                                            \
             cudaMemcpyAsync(to, from, (count) * sizeof(*(from)), cudaMemcpyDeviceToHost, (lane)->work))

/* Checks for the error of a kernel launch. */
#define CUDA_LAUNCHED(device) CUDA_TRY(device, cudaGetLastError())

#endif

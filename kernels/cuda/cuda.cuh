/*
 * cuda.cuh - what the files of the CUDA backend share.
 *
 * device.cu owns the device, lane.cu the lanes, their memory and the uploads; the operations stand
 * with their algorithms. All memory is taken in volume_begin: the lane's two arenas grow to what
 * the operations have counted (op.h), and each takes its pieces. Nothing is allocated inside a job.
 *
 * A lane has three streams. `upload` carries the voxels to the device, slab by slab; `work` carries
 * every kernel; `download` what comes back beside them. An event per slab orders work after upload:
 * operations that know which slices they read wait for those alone.
 * Host threads of one lane meet at its mutex: kernels_volume_ready may come from several;
 * runs, which may, too, take turns (results.cu).
 *
 * Every call of the CUDA runtime stands inside CUDA_TRY (or CUDA_OF where its error is handled),
 * so that a test can let any one of them fail.
 */
#ifndef NOCTULE_CUDA_CUH
#define NOCTULE_CUDA_CUH

#include "kernels/cpu/pool.h"
#include "kernels/cuda/fault.h"
#include "kernels/op.h"

#include <cuda_runtime.h>
#include <pthread.h>

/* Memory that grows between jobs and is carved up inside one. */
struct cuda_block {
    bool pinned; /* host memory that the GPU's copy engines reach; else device memory */
    unsigned char *memory;
    size_t size;
};

/* A piece of an arena for count * each elements, of which `each` cannot overflow. */
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
    size_t shared_per_block; /* at most, after cudaFuncSetAttribute */
    bool failed;             /* by an error that only a new process gets rid of; atomic */
    bool failing;            /* taken, atomically, by who writes `failure` */
    char failure[256];       /* why; written before failed */
    pthread_mutex_t memory;  /* one lane at a time takes memory */
    struct cpu_pool *pool;   /* of few threads, for what is read on the host and waited for */
};

/* Results on their way to the host, that those who wait for them have left the turn for. */
enum { CUDA_RESULTS = 16, CUDA_RESULTS_BYTES = 8 << 20 };

struct cuda_result {
    unsigned char *memory; /* pinned, this one's alone */
    cudaEvent_t arrived;   /* threads sleep until then */
    bool taken;
};

struct cuda_results {
    struct cuda_result each[CUDA_RESULTS];
    unsigned char *memory; /* CUDA_RESULTS_BYTES, with the job; NULL: none */
    size_t used;           /* of it; 0 again once none is taken */
    int taken;
};

struct cuda_lane {
    struct kernels_lane base;
    cudaStream_t upload, work, download;
    struct cuda_block device, pinned;
    pthread_mutex_t mutex;
    void *host_voxels;     /* pinned; where the decoder writes */
    void *device_voxels;   /* the same on the device, x fastest, tightly packed */
    cudaEvent_t *uploaded; /* one per slab */
    int64_t slab_count;
    int64_t *slab_missing; /* slices that are not announced yet, one per slab; atomic */
    bool *slab_awaited;    /* work waits for it */
    int64_t slab_capacity;
    pthread_mutex_t turn; /* of who queues work; taken before `mutex` */
    bool *has_turn;       /* whether who took it last has it still */
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

/*
 * The errno of a CUDA error: -ENOMEM for memory; -EIO for all others, after which the device counts
 * as failed. The message names the call.
 */
int cuda_failed(struct cuda_device *device, cudaError_t status, const char *call,
                struct error *error);

/* Has all work that is queued from here on wait for slices first .. end - 1, which are announced. */
int cuda_await_slices(struct cuda_lane *lane, int64_t first, int64_t end, struct error *error);

/* Makes the device the calling thread's; -EIO once it has failed. */
int cuda_enter(struct cuda_device *device, struct error *error);

/*
 * results.cu. Turns (op.h): once a run has left its turn all memory that it shares is others'. What is returned is for
 * cuda_turn_take_again, with which it begins anew.
 */
int cuda_turn_take(struct kernels_lane *lane, const struct kernels_op *op, bool *has_turn,
                   struct error *error);
void cuda_turn_take_again(struct cuda_lane *lane, bool *has_turn);
bool *cuda_turn_give_up(struct cuda_lane *lane);
void cuda_turn_leave(struct kernels_lane *lane);

/* Events of results; cuda_results_close also after an error. */
int cuda_results_open(struct cuda_lane *lane, struct error *error);
void cuda_results_close(struct cuda_lane *lane);

/* So many bytes for a result; NULL: there is no room at the moment. */
struct cuda_result *cuda_result_take(struct cuda_lane *lane, size_t bytes);
void cuda_result_give_back(struct cuda_lane *lane, struct cuda_result *result);

/* Copies bytes from the device to the host, the last thing that a run queues: where there is room it leaves the turn
 * while it waits, and nothing that it has placed is its own any more. */
int cuda_result_copy(struct cuda_lane *lane, void *to, const void *from, size_t bytes,
                     struct error *error);

/* Likewise into a result, for who looks at it there; has_turn is for cuda_turn_take_again. */
int cuda_result_fetch(struct cuda_lane *lane, struct cuda_result *result, const void *from,
                      size_t bytes, bool **has_turn, struct error *error);

/* The table's two. */
int cuda_device_open(const struct kernels_device_options *options, struct kernels_device **device,
                     struct error *error);
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

/* Leaves the function with the errno when a call fails; `error` is in scope. */
#define CUDA_TRY(device, call)                                                                     \
    do {                                                                                           \
        cudaError_t cuda_error_ = CUDA_OF(call);                                                   \
        if (cuda_error_ != cudaSuccess)                                                            \
            return cuda_failed((device), cuda_error_, #call, error);                               \
    } while (0)

/* Queues a copy of `count` elements on the lane's work, to the device or back; leaves as CUDA_TRY. */
#define CUDA_SEND(lane, to, from, count)                                                           \
    CUDA_TRY(cuda_device_of(&(lane)->base), cudaMemcpyAsync(to, from, (count) * sizeof(*(from)),   \
                                                            cudaMemcpyHostToDevice, (lane)->work))
#define CUDA_FETCH(lane, to, from, count)                                                          \
    CUDA_TRY(cuda_device_of(&(lane)->base), cudaMemcpyAsync(to, from, (count) * sizeof(*(from)),   \
                                                            cudaMemcpyDeviceToHost, (lane)->work))

/* A kernel launch's own error. */
#define CUDA_LAUNCHED(device) CUDA_TRY(device, cudaGetLastError())

#endif

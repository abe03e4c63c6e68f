/*
 * voxelwise_cuda.cu - maps of features on the GPU: a thread per voxel.
 *
 * The voxels are computed in batches. A batch has the levels and values of its slices and those within the radius. Counts of a
 * window are in shared memory if a block of threads has room for them, else in device memory, as are numbers. The number of
 * threads is limited by that memory; each computes several voxels. Maximal correlation coefficients are computed before
 * (mcc_cuda.cu).
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/voxelwise/mcc_cuda.cuh"

enum {
    VOXELWISE_THREADS = 64,
    VOXELWISE_BATCH = 1 << 16,  /* max voxels of a batch */
    VOXELWISE_SLICES = 16,      /* of a batch, besides those within the radius */
    VOXELWISE_ROOM = 256 << 20, /* bytes for the memory of windows, and before it for their coefficients */
};

struct cuda_voxelwise {
    struct voxelwise_tables *tables, *host_tables;
    uint16_t *levels;
    double *values, *maps;
    int64_t *voxels;
    unsigned char *room;
    struct mcc_memory mcc;
};

static_assert(VOXELWISE_ROOM >= MCC_ROOM, "the coefficients of a part need room");

/* The memory of a thread: bytes of counts, with its window, and of numbers. */
struct voxelwise_shares {
    size_t counts, numbers;
    bool shared; /* counts are in shared memory */
};

/* Arguments of the kernel, except for the plan. */
struct voxelwise_batch {
    struct voxelwise_shares shares;
    const int64_t *voxels;
    int64_t first; /* the voxel at which the volumes of the plan begin */
    int64_t count, stride;
    double *maps;
    unsigned char *room;
    const double *coefficients; /* [direction][VOXELWISE_BATCH]; NULL: not wanted */
};

static struct cuda_voxelwise *
cuda_voxelwise_state(const struct kernels_lane *lane)
{
    return (struct cuda_voxelwise *)kernels_state(lane, KERNELS_VOXELWISE);
}

template <enum voxelwise_family family>
static __global__ void
__launch_bounds__(VOXELWISE_THREADS) voxelwise_windows(const __grid_constant__ struct voxelwise_plan plan,
                                                       const __grid_constant__ struct voxelwise_batch batch)
{
    extern __shared__ unsigned char voxelwise_counts_of_block[];
    const int64_t threads = (int64_t)gridDim.x * VOXELWISE_THREADS;
    const int64_t thread = (int64_t)blockIdx.x * VOXELWISE_THREADS + threadIdx.x;
    unsigned char *counts = batch.shares.shared ? voxelwise_counts_of_block + threadIdx.x * batch.shares.counts
                                                : batch.room + (size_t)thread * batch.shares.counts;
    unsigned char *numbers = batch.room + (batch.shares.shared ? 0 : (size_t)threads * batch.shares.counts) +
                             (size_t)thread * batch.shares.numbers;
    struct voxelwise_memory memory;

    memory.window = (uint16_t *)counts;
    memory.counts = memory.window + voxelwise_voxels(&plan);
    memory.numbers = (double *)numbers;
    memory.apart = VOXELWISE_BATCH;
    for (int64_t i = thread; i < batch.count; i += threads) {
        memory.coefficients = batch.coefficients ? batch.coefficients + i : NULL;
        voxelwise_voxel(&plan, family, &memory, batch.voxels[i] - batch.first, batch.maps + i, batch.stride);
    }
}

static void
cuda_voxelwise_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_voxelwise *own = cuda_voxelwise_state(lane);
    const size_t slice = (size_t)(lane->extent.columns * lane->extent.rows);

    cuda_take(&memory->device, &own->tables, 1);
    cuda_take(&memory->device, &own->levels, slice, 2 * VOXELWISE_MAX_RADIUS + VOXELWISE_SLICES);
    cuda_take(&memory->device, &own->values, slice, 2 * VOXELWISE_MAX_RADIUS + VOXELWISE_SLICES);
    cuda_take(&memory->device, &own->voxels, VOXELWISE_BATCH);
    cuda_take(&memory->device, &own->maps, VOXELWISE_BATCH, VOXELWISE_MOST);
    cuda_take(&memory->device, &own->room, VOXELWISE_ROOM);
    mcc_place(&memory->device, &own->mcc, VOXELWISE_BATCH);
    cuda_take(&memory->host, &own->host_tables, 1);
}

/* By enum voxelwise_family. */
static void (*const voxelwise_kernels[])(struct voxelwise_plan, struct voxelwise_batch) = {
    voxelwise_windows<VOXELWISE_FAMILY_first_order>, voxelwise_windows<VOXELWISE_FAMILY_glcm>,
    voxelwise_windows<VOXELWISE_FAMILY_glrlm>,       voxelwise_windows<VOXELWISE_FAMILY_glszm>,
    voxelwise_windows<VOXELWISE_FAMILY_ngldm>,       voxelwise_windows<VOXELWISE_FAMILY_ngtdm>,
};

/* Queues the windows of a batch. */
static int
voxelwise_queue(struct cuda_lane *lane, enum voxelwise_family family, const struct voxelwise_plan *plan,
                struct voxelwise_batch *batch, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const size_t counts = (size_t)voxelwise_voxels(plan) + voxelwise_counts(family, plan->radius, plan->levels);
    const size_t words = (counts * sizeof(uint16_t) + 3) / 4;
    void (*const kernel)(struct voxelwise_plan, struct voxelwise_batch) = voxelwise_kernels[family];

    /* An odd number of words: the same places of a warp's threads are in different banks. */
    batch->shares.counts = (words | 1) * 4;
    batch->shares.numbers = voxelwise_numbers(family, plan->radius, plan->levels) * sizeof(double);
    batch->shares.shared = batch->shares.counts * VOXELWISE_THREADS <= device->shared_per_block;

    const size_t shared = batch->shares.shared ? batch->shares.counts * VOXELWISE_THREADS : 0;
    size_t each = batch->shares.numbers;

    if (!batch->shares.shared) {
        batch->shares.counts = (batch->shares.counts + 7) / 8 * 8; /* numbers follow them */
        each += batch->shares.counts;
    }
    const size_t most = VOXELWISE_ROOM / ((each > 0 ? each : 1) * VOXELWISE_THREADS);
    const size_t blocks = (size_t)(batch->count + VOXELWISE_THREADS - 1) / VOXELWISE_THREADS;

    CUDA_TRY(device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    kernel<<<(unsigned)(blocks < most ? blocks : most), VOXELWISE_THREADS, shared, lane->work>>>(*plan, *batch);
    CUDA_LAUNCHED(device);
    return 0;
}

/* Sends the volumes of a batch's slices. Returns the number of voxels of the batch in *count. */
static int
voxelwise_send(struct cuda_lane *lane, struct cuda_voxelwise *own, const struct voxelwise_task *task, int64_t done,
               struct voxelwise_plan *plan, struct voxelwise_batch *batch, struct error *error)
{
    const struct voxelwise_request *request = task->request;
    const int64_t slice = request->size[0] * request->size[1], z = request->voxels[done] / slice;
    const int64_t first = z > plan->radius ? z - plan->radius : 0;
    int64_t last = z, count = 0;

    while (count < VOXELWISE_BATCH && done + count < request->count &&
           request->voxels[done + count] / slice < z + VOXELWISE_SLICES)
        last = request->voxels[done + count++] / slice;
    const int64_t end = last + plan->radius + 1 < request->size[2] ? last + plan->radius + 1 : request->size[2];

    plan->size[0] = request->size[0];
    plan->size[1] = request->size[1];
    plan->size[2] = end - first;
    batch->first = first * slice;
    batch->count = count;
    CUDA_SEND(lane, own->levels, request->levels + batch->first, (size_t)((end - first) * slice));
    if (task->features[VOXELWISE_FAMILY_first_order])
        CUDA_SEND(lane, own->values, request->values + batch->first, (size_t)((end - first) * slice));
    CUDA_SEND(lane, own->voxels, request->voxels + done, (size_t)count);
    return 0;
}

/* Computes a batch, and copies its maps to the host. */
static int
voxelwise_run_batch(struct cuda_lane *lane, struct cuda_voxelwise *own, const struct voxelwise_task *task, int64_t done,
                    int64_t *count, struct error *error)
{
    struct voxelwise_plan plan = task->plan;
    struct voxelwise_batch batch = {};
    double *maps = task->request->maps + done;
    int rc = voxelwise_send(lane, own, task, done, &plan, &batch, error);

    plan.grey = own->levels;
    plan.values = own->values;
    plan.tables = own->tables;
    batch.voxels = own->voxels;
    batch.maps = own->maps;
    batch.room = own->room;
    batch.stride = VOXELWISE_BATCH;
    *count = batch.count;
    for (int family = 0; family < VOXELWISE_FAMILIES && rc == 0; family++) {
        plan.features = task->features[family];
        if (plan.features == 0)
            continue;
        batch.coefficients = NULL;
        if (voxelwise_correlates(&plan, (enum voxelwise_family)family)) {
            const struct mcc_batch mcc = {own->mcc,        own->voxels, batch.first,   batch.count,
                                          VOXELWISE_BATCH, own->room,   VOXELWISE_ROOM};

            batch.coefficients = own->mcc.coefficients;
            rc = mcc_queue(lane, &plan, &mcc, error);
            if (rc)
                break;
        }
        rc = voxelwise_queue(lane, (enum voxelwise_family)family, &plan, &batch, error);
        for (int f = 0; f < __builtin_popcount(plan.features) && rc == 0; f++, maps += task->request->stride)
            CUDA_FETCH(lane, maps, own->maps + (size_t)f * VOXELWISE_BATCH, (size_t)batch.count);
    }
    if (rc == 0)
        CUDA_TRY(cuda_device_of(&lane->base), cudaStreamSynchronize(lane->work));
    return rc;
}

static int
cuda_voxelwise_run(struct kernels_lane *base, const void *request, struct error *error)
{
    const struct voxelwise_task *task = (const struct voxelwise_task *)request;
    struct cuda_voxelwise *own = cuda_voxelwise_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    int rc = 0;

    voxelwise_tables_make(task->plan.radius, task->plan.levels, own->host_tables);
    CUDA_SEND(lane, own->tables, own->host_tables, 1);
    for (int64_t done = 0, count = 0; done < task->request->count && rc == 0; done += count)
        rc = voxelwise_run_batch(lane, own, task, done, &count, error);
    return rc;
}

const struct kernels_op cuda_voxelwise_op = {
    .name = "the maps of features",
    .state_size = sizeof(struct cuda_voxelwise),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cuda_voxelwise_place,
    .run = cuda_voxelwise_run,
};

/*
 * zones_cuda.cu - zones of levels on the GPU. Voxels are united by links from larger numbers to
 * smaller ones; the pass that follows links to roots changes none. Distances are swept along each
 * axis. Zones come back some voxels at a time, in any order: by size, and then by distance.
 */
#include "kernels/texture/boxed_cuda.cuh"
#include "kernels/texture/zones/zone_tally.h"

enum { THREADS = 256, ZONES_BLOCKS = 4096 };

struct cuda_zones {
    struct cuda_boxed boxed;
    uint32_t *parents, *values;
    uint16_t *distances;
};

struct zones_job {
    struct cuda_box box;
    uint64_t voxels; /* of the box */
    uint32_t *parents, *values;
    uint16_t *distances;         /* NULL: not asked for */
    enum texture_zone_kind kind; /* of the values at hand */
    int64_t first[3];
    const uint64_t *region;
    uint32_t volume_rows, words_per_row;
    bool in_slice, per_slice;
};

static struct cuda_zones *
cuda_zones_state(const struct kernels_lane *lane)
{
    return (struct cuda_zones *)kernels_state(lane, KERNELS_ZONES);
}

/* Numbers of voxels count those of the box alone. */
struct zones_place {
    int32_t x, y, z;
};

static __device__ __forceinline__ struct zones_place
zones_place_of(const struct zones_job &job, uint64_t i)
{
    const uint64_t row = i / (uint64_t)job.box.size[0];

    return {(int32_t)(i - row * (uint64_t)job.box.size[0]),
            (int32_t)(row % (uint64_t)job.box.size[1]), (int32_t)(row / (uint64_t)job.box.size[1])};
}

static __device__ __forceinline__ uint32_t
cuda_zones_find(const volatile uint32_t *parents, uint32_t voxel)
{
    for (uint32_t parent = parents[voxel]; parent != voxel; parent = parents[voxel])
        voxel = parent;
    return voxel;
}

static __device__ void
cuda_zones_unite(uint32_t *parents, uint32_t a, uint32_t b)
{
    for (;;) {
        a = cuda_zones_find(parents, a);
        b = cuda_zones_find(parents, b);
        if (a == b)
            return;
        const uint32_t larger = a > b ? a : b, smaller = a > b ? b : a;

        if (atomicCAS(&parents[larger], larger, smaller) == larger)
            return;
    }
}

static __global__ void
__launch_bounds__(THREADS) zones_begin(struct zones_job job)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < job.voxels;
         i += (uint64_t)gridDim.x * THREADS)
        job.parents[i] = (uint32_t)i;
}

static __global__ void
__launch_bounds__(THREADS) zones_begin_values(struct zones_job job)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < job.voxels;
         i += (uint64_t)gridDim.x * THREADS)
        job.values[i] = job.kind == TEXTURE_ZONE_DISTANCES ? UINT32_MAX : 0;
}

static __global__ void
__launch_bounds__(THREADS) zones_unite_voxels(struct zones_job job)
{
    const int64_t columns = job.box.size[0], slice = columns * job.box.size[1];

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < job.voxels;
         i += (uint64_t)gridDim.x * THREADS) {
        const uint16_t *at = cuda_box_voxel(&job.box, 0, i);

        if (*at == 0)
            continue;
        for (int32_t z = job.in_slice ? 0 : -1; z <= 0; z++)
            for (int32_t y = -1; y <= (z < 0 ? 1 : 0); y++)
                for (int32_t x = -1; x <= (z < 0 || y < 0 ? 1 : -1); x++)
                    if (at[z * job.box.slice + y * job.box.row + x] == *at)
                        cuda_zones_unite(job.parents, (uint32_t)i,
                                         (uint32_t)((int64_t)i + z * slice + y * columns + x));
    }
}

static __global__ void
__launch_bounds__(THREADS) zones_add_voxels(struct zones_job job)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < job.voxels;
         i += (uint64_t)gridDim.x * THREADS) {
        if (*cuda_box_voxel(&job.box, 0, i) == 0)
            continue;
        const uint32_t root = cuda_zones_find(job.parents, (uint32_t)i);

        if (job.kind == TEXTURE_ZONE_DISTANCES)
            atomicMin(&job.values[root], (uint32_t)job.distances[i]);
        else
            atomicAdd(&job.values[root], 1u);
    }
}

/* 0 outside of the region, else farther than anything. */
static __global__ void
__launch_bounds__(THREADS) zones_begin_distances(struct zones_job job)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < job.voxels;
         i += (uint64_t)gridDim.x * THREADS) {
        const struct zones_place at = zones_place_of(job, i);
        const size_t row = (size_t)((job.first[2] + at.z) * job.volume_rows + job.first[1] + at.y);

        job.distances[i] =
            texture_in_region(job.region, row, job.words_per_row, (uint32_t)(job.first[0] + at.x))
                ? UINT16_MAX
                : 0;
    }
}

/* A thread goes there and back along a line of this axis; beyond its ends nothing is of the region. */
static __global__ void
__launch_bounds__(THREADS) zones_sweep(struct zones_job job, int axis)
{
    const uint64_t columns = (uint64_t)job.box.size[0], rows = (uint64_t)job.box.size[1];
    const uint64_t strides[3] = {1, columns, columns * rows};
    const uint64_t length = (uint64_t)job.box.size[axis], stride = strides[axis];

    for (uint64_t line = (uint64_t)blockIdx.x * THREADS + threadIdx.x; line < job.voxels / length;
         line += (uint64_t)gridDim.x * THREADS) {
        uint16_t *at = job.distances + line / stride * stride * length + line % stride;
        uint32_t before = 0;

        for (uint64_t i = 0; i < length; i++) {
            before = before + 1 < at[i * stride] ? before + 1 : at[i * stride];
            at[i * stride] = (uint16_t)before;
        }
        before = 0;
        for (uint64_t i = length; i-- > 0;) {
            before = before + 1 < at[i * stride] ? before + 1 : at[i * stride];
            at[i * stride] = (uint16_t)before;
        }
    }
}

/* Zones whose roots are voxels first .. end - 1: their keys, behind their number. */
static __global__ void
__launch_bounds__(THREADS)
    cuda_zones_list(struct zones_job job, uint64_t first, uint64_t end, unsigned long long *keys)
{
    for (uint64_t i = first + (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < end;
         i += (uint64_t)gridDim.x * THREADS) {
        const uint32_t level = *cuda_box_voxel(&job.box, 0, i);

        if (level == 0 || job.parents[i] != (uint32_t)i)
            continue;
        keys[1 + atomicAdd(&keys[0], 1ull)] = texture_zone_key(
            job.per_slice ? job.first[2] + zones_place_of(job, i).z : 0, level, job.values[i]);
    }
}

static void
cuda_zones_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_zones *own = cuda_zones_state(lane);
    const size_t voxels = (size_t)image_voxels(&lane->extent);

    cuda_boxed_place(lane, memory, &own->boxed);
    cuda_take(&memory->device, &own->parents, voxels);
    cuda_take(&memory->device, &own->values, voxels);
    cuda_take(&memory->device, &own->distances, voxels);
}

static int
zones_tally_keys(const struct kernels_lane *lane, const unsigned long long *keys, uint64_t count,
                 struct zone_tally *tally, struct error *error)
{
    for (uint64_t i = 0; i < count; i++)
        if (zone_tally_add(tally, keys[i], 1))
            return kernels_no_memory(lane, error);
    return 0;
}

static int
zones_fetch(struct cuda_lane *lane, const struct zones_job *job, struct zone_tally *tally,
            struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_counted *counted = &cuda_zones_state(&lane->base)->boxed.counted;
    const uint64_t batch = TEXTURE_COUNTERS - 1;

    for (uint64_t first = 0; first < job->voxels; first += batch) {
        const uint64_t end = first + batch < job->voxels ? first + batch : job->voxels;
        uint64_t found;
        int rc;

        CUDA_TRY(device, cudaMemsetAsync(counted->counts, 0, sizeof(uint64_t), lane->work));
        cuda_zones_list<<<ZONES_BLOCKS, THREADS, 0, lane->work>>>(*job, first, end,
                                                                  counted->counts);
        CUDA_LAUNCHED(device);
        rc = cuda_counted_fetch(lane, counted, 1, &found, error);
        if (rc == 0 && found > 0)
            CUDA_FETCH(lane, counted->host_counts, counted->counts, found + 1);
        if (rc == 0 && found > 0)
            CUDA_TRY(device, cudaStreamSynchronize(lane->work));
        if (rc == 0)
            rc = zones_tally_keys(&lane->base, counted->host_counts + 1, found, tally, error);
        if (rc)
            return rc;
    }
    return 0;
}

/* Once voxels are united. */
static int
zones_run_kind(struct cuda_lane *lane, struct zones_job *job, enum texture_zone_kind kind,
               struct zone_tally *tallies, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);

    job->kind = kind;
    zones_begin_values<<<ZONES_BLOCKS, THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    zones_add_voxels<<<ZONES_BLOCKS, THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    return zones_fetch(lane, job, &tallies[kind], error);
}

static int
zones_measure_all(struct cuda_lane *lane, const struct zones_job *job, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);

    zones_begin_distances<<<ZONES_BLOCKS, THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    for (int axis = 0; axis < (job->in_slice ? 2 : 3); axis++) {
        zones_sweep<<<ZONES_BLOCKS, THREADS, 0, lane->work>>>(*job, axis);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

static int
zones_run_all(struct cuda_lane *lane, struct zones_job *job, struct zone_tally *tallies,
              struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    int rc;

    zones_begin<<<ZONES_BLOCKS, THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    zones_unite_voxels<<<ZONES_BLOCKS, THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    rc = zones_run_kind(lane, job, TEXTURE_ZONE_SIZES, tallies, error);
    if (rc || !job->distances)
        return rc;
    rc = zones_measure_all(lane, job, error);
    return rc ? rc : zones_run_kind(lane, job, TEXTURE_ZONE_DISTANCES, tallies, error);
}

static int
cuda_zones_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_zones_request *request = (const struct texture_zones_request *)given;
    const struct cuda_zones *own = cuda_zones_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    const struct glcm_volume volume = cuda_texture_volume(lane);
    struct zones_job job = {};
    struct texture_box box;
    int rc;

    texture_box_of(request->zones->region, &base->extent, &box);
    rc = cuda_boxed_fill(lane, &own->boxed, &request->zones->levels, request->zones->region, 1,
                         &job.box, error);
    if (rc || box.size[0] == 0)
        return rc;
    memcpy(job.first, box.first, sizeof(job.first));
    job.voxels = (uint64_t)(box.size[0] * box.size[1] * box.size[2]);
    job.parents = own->parents;
    job.values = own->values;
    job.distances = request->zones->distances ? own->distances : NULL;
    job.region = request->zones->region ? own->boxed.counted.region : NULL;
    job.volume_rows = volume.rows;
    job.words_per_row = volume.words_per_row;
    job.in_slice = request->zones->in_slice;
    job.per_slice = request->zones->per_slice;
    return zones_run_all(lane, &job, request->tallies, error);
}

const struct kernels_op cuda_zones_op = {
    .name = "texture (zones)",
    .state_size = sizeof(struct cuda_zones),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cuda_zones_place,
    .run = cuda_zones_run,
};

#include "tests/bench/wang2016.cuh"

#include "tests/bench/gpu_bench.cuh"

#define ITERATIONS_UNASKED 16

struct place {
    int64_t at[3];
    size_t voxel;
};

static __device__ bool
own_place(const struct fuzzy_grid &grid, struct place *place)
{
    place->at[0] = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    place->at[1] = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    place->at[2] = (int64_t)blockIdx.z * blockDim.z + threadIdx.z;
    place->voxel = (size_t)((place->at[2] * grid.size[1] + place->at[1]) * grid.size[0] + place->at[0]);
    return place->at[0] < grid.size[0] && place->at[1] < grid.size[1] && place->at[2] < grid.size[2];
}

/* Finds the voxel's neighbour 0 .. 5. Returns false if there is none. */
static __device__ bool
neighbour_of(const struct fuzzy_grid &grid, const struct place &place, int which, size_t *voxel)
{
    int axis = which >> 1;
    int64_t step[3] = {1, grid.size[0], grid.size[0] * grid.size[1]};
    bool forward = (which & 1) != 0;

    *voxel = (size_t)((int64_t)place.voxel + (forward ? step[axis] : -step[axis]));
    return forward ? place.at[axis] + 1 < grid.size[axis] : place.at[axis] > 0;
}

static __device__ uint32_t
affinity_between(const struct fuzzy_volume &volume, size_t one, size_t other)
{
    const struct fuzzy_lookup &lookup = volume.lookup;
    int32_t a = ((const int16_t *)volume.voxels)[one] - lookup.low;
    int32_t b = ((const int16_t *)volume.voxels)[other] - lookup.low;
    double scaled = __dmul_rn(65535.0, __dadd_rn(lookup.first[a + b], lookup.second[abs(a - b)]));

    return scaled >= 65535.0 ? 65535u : (uint32_t)scaled;
}

static __global__ void
update_neighbours(const struct wang2016_memory memory, const struct fuzzy_volume volume)
{
    struct place place;
    uint32_t own;

    if (!own_place(volume.grid, &place) || memory.front[place.voxel] == 0)
        return;
    memory.front[place.voxel] = 0;
    own = memory.map[place.voxel];
#pragma unroll
    for (int i = 0; i < 6; i++) {
        size_t other;
        uint32_t least;

        if (!neighbour_of(volume.grid, place, i, &other))
            continue;
        least = min(own, affinity_between(volume, place.voxel, other));
        if (least > memory.map[other] && atomicMax(&memory.map[other], least) < least)
            memory.next_front[other] = 1;
    }
}

static __global__ void
advance_front(const struct wang2016_memory memory, const struct fuzzy_grid grid)
{
    struct place place;

    if (!own_place(grid, &place) || memory.next_front[place.voxel] == 0)
        return;
    memory.next_front[place.voxel] = 0;
    memory.front[place.voxel] = 1;
    *memory.changed = 1;
}

static __device__ uint32_t
best_of_neighbours(const struct wang2016_memory &memory, const struct fuzzy_volume &volume, const struct place &place)
{
    uint32_t best = 0;

#pragma unroll
    for (int i = 0; i < 6; i++) {
        size_t other;

        if (neighbour_of(volume.grid, place, i, &other))
            best =
                max(best, min(*(volatile uint32_t *)&memory.map[other], affinity_between(volume, place.voxel, other)));
    }
    return best;
}

static __global__ void
update_blocks(const struct wang2016_memory memory, const struct fuzzy_volume volume)
{
    struct place place;
    bool inside = own_place(volume.grid, &place), changed;

    do {
        uint32_t best = inside ? best_of_neighbours(memory, volume, place) : 0;

        changed = inside && atomicMax(&memory.map[place.voxel], best) < best;
    } while (__syncthreads_or(changed) != 0);
}

static dim3
blocks_of(const struct fuzzy_grid *grid, dim3 block)
{
    return dim3((unsigned)fuzzy_ceil(grid->size[0], block.x), (unsigned)fuzzy_ceil(grid->size[1], block.y),
                (unsigned)fuzzy_ceil(grid->size[2], block.z));
}

void
wang2016_begin(const struct wang2016_memory *memory, const struct image_extent *extent,
               const struct kernels_voxel *seed, cudaStream_t stream)
{
    size_t voxels = (size_t)(extent->columns * extent->rows * extent->slices);
    size_t voxel = (size_t)((seed->z * extent->rows + seed->y) * extent->columns + seed->x);
    const uint32_t full = 65535;

    GPU_BENCH_TRY(cudaMemsetAsync(memory->map, 0, voxels * sizeof(uint32_t), stream));
    GPU_BENCH_TRY(cudaMemsetAsync(memory->front, 0, voxels, stream));
    GPU_BENCH_TRY(cudaMemsetAsync(memory->next_front, 0, voxels, stream));
    GPU_BENCH_TRY(cudaMemcpyAsync(memory->map + voxel, &full, sizeof full, cudaMemcpyHostToDevice, stream));
    GPU_BENCH_TRY(cudaMemsetAsync(memory->front + voxel, 1, 1, stream));
}

int
wang2016_converge(const struct wang2016_memory *memory, const struct fuzzy_volume *volume, cudaStream_t stream)
{
    const dim3 block(64, 4, 1);
    const dim3 blocks = blocks_of(&volume->grid, block);
    int changed = 1, iterations = 0;

    while (changed != 0) {
        GPU_BENCH_TRY(cudaMemsetAsync(memory->changed, 0, sizeof(int), stream));
        for (int i = 0; i < ITERATIONS_UNASKED; i++, iterations++) {
            update_neighbours<<<blocks, block, 0, stream>>>(*memory, *volume);
            advance_front<<<blocks, block, 0, stream>>>(*memory, volume->grid);
        }
        GPU_BENCH_TRY(cudaMemcpyAsync(&changed, memory->changed, sizeof(int), cudaMemcpyDeviceToHost, stream));
        GPU_BENCH_TRY(cudaStreamSynchronize(stream));
    }
    return iterations;
}

void
wang2016_correct(const struct wang2016_memory *memory, const struct fuzzy_volume *volume, int iterations,
                 cudaStream_t stream)
{
    const dim3 block(8, 8, 8);

    for (int i = 0; i < iterations; i++)
        update_blocks<<<blocks_of(&volume->grid, block), block, 0, stream>>>(*memory, *volume);
    GPU_BENCH_TRY(cudaGetLastError());
}

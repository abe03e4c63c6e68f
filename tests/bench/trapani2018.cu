#include "tests/bench/trapani2018.cuh"

enum {
    EDGE = 8,        /* threads per block */
    SPAN = 2 * EDGE, /* voxels */
    HALO = SPAN + 2,
    HALO_VOXELS = HALO * HALO * HALO,
    THREADS = EDGE * EDGE * EDGE,
};

static const int8_t OUTSIDE_VOLUME = 0;

/* Counts rows of the whole volume in 32 bits, but voxels in 64. */
struct place {
    int x, y, z;
};

__device__ static bool
exists(const struct trapani2018 &run, struct place at)
{
    return at.x >= 0 && at.x < (int)run.extent.columns && at.y >= 0 && at.y < (int)run.extent.rows && at.z >= 0 &&
           at.z < (int)run.extent.slices;
}

__device__ static int64_t
index_of(const struct trapani2018 &run, struct place at)
{
    return (int64_t)(at.z * (int)run.extent.rows + at.y) * (int)run.extent.columns + at.x;
}

__device__ static int32_t
value_of(const struct trapani2018 &run, int64_t i)
{
    switch (run.pixel) {
    case IMAGE_UINT8:
        return ((const uint8_t *)run.voxels)[i];
    case IMAGE_INT16:
        return ((const int16_t *)run.voxels)[i];
    case IMAGE_UINT16:
        return ((const uint16_t *)run.voxels)[i];
    }
    return 0;
}

__device__ static bool
in_sphere(const struct kernels_shape &sphere, struct place at)
{
    double dx = (double)at.x - sphere.center[0], dy = (double)at.y - sphere.center[1];
    double dz = (double)at.z - sphere.center[2];
    double square = __dadd_rn(__dadd_rn(__dmul_rn(dx, dx), __dmul_rn(dy, dy)), __dmul_rn(dz, dz));

    return square <= __dmul_rn(sphere.radius[0], sphere.radius[0]);
}

__device__ static struct place
corner_of_block()
{
    return {(int)blockIdx.x * SPAN, (int)blockIdx.y * SPAN, (int)blockIdx.z * SPAN};
}

/* Returns voxel `i` of 2 x 2 x 2 of this thread. They are adjacent in memory. */
__device__ static struct place
own_voxel(int i)
{
    struct place corner = corner_of_block();

    return {corner.x + 2 * (int)threadIdx.x + i % 2, corner.y + 2 * (int)threadIdx.y + i / 2 % 2,
            corner.z + 2 * (int)threadIdx.z + i / 4};
}

__device__ static size_t
own_block()
{
    return ((size_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

__device__ static bool
first_thread()
{
    return threadIdx.x + threadIdx.y + threadIdx.z == 0;
}

__global__ void
__launch_bounds__(THREADS) stage_1(struct trapani2018 run)
{
    bool open = false;

    for (int i = 0; i < 8; i++) {
        struct place at = own_voxel(i);

        if (!exists(run, at))
            continue;
        int32_t value = value_of(run, index_of(run, at));
        bool in_range = run.range.lo <= value && value <= run.range.hi;
        bool inside = in_sphere(run.sphere, at);

        run.states[index_of(run, at)] = (int8_t)(in_range ? (inside ? 1 : -1) : (inside ? 2 : -2));
        open |= in_range != inside;
    }
    open = __syncthreads_or(open);
    if (first_thread())
        run.active[own_block()] = open;
}

__device__ static void
load_states(const struct trapani2018 &run, int8_t *states)
{
    struct place corner = corner_of_block();
    int thread = (int)((threadIdx.z * EDGE + threadIdx.y) * EDGE + threadIdx.x);

    for (int i = thread; i < HALO_VOXELS; i += THREADS) {
        struct place at = {corner.x + i % HALO - 1, corner.y + i / HALO % HALO - 1, corner.z + i / (HALO * HALO) - 1};

        states[i] = exists(run, at) ? run.states[index_of(run, at)] : OUTSIDE_VOLUME;
    }
    __syncthreads();
}

/* Returns the index in the block's states with their halo. The voxels of a thread are one block of threads apart. */
__device__ static int
spread_voxel(int i)
{
    int x = (int)threadIdx.x + i % 2 * EDGE, y = (int)threadIdx.y + i / 2 % 2 * EDGE;
    int z = (int)threadIdx.z + i / 4 * EDGE;

    return ((z + 1) * HALO + y + 1) * HALO + x + 1;
}

__device__ static bool
beside(const volatile int8_t *states, int i, int8_t state)
{
    return states[i - 1] == state || states[i + 1] == state || states[i - HALO] == state || states[i + HALO] == state ||
           states[i - HALO * HALO] == state || states[i + HALO * HALO] == state;
}

__device__ static bool
evolve(volatile int8_t *states, int i)
{
    if (states[i] == -1 && beside(states, i, 1))
        states[i] = 1;
    else if (states[i] == 2 && beside(states, i, -2))
        states[i] = -2;
    else
        return false;
    return true;
}

/*
 * The paper's inner loop, which the whole block must repeat. If a thread stopped alone, its neighbours would not
 * reach it, and each pass would move the front by only a voxel or two.
 */
__global__ void
__launch_bounds__(THREADS) stage_2(struct trapani2018 run)
{
    __shared__ int8_t states[HALO_VOXELS];
    bool changed = false, again = true, open = false;

    if (!run.active[own_block()])
        return;
    load_states(run, states);
    while (again) {
        again = false;
        for (int i = 0; i < 8; i++)
            again |= evolve(states, spread_voxel(i));
        again = __syncthreads_or(again);
        changed |= again;
    }
    for (int i = 0; i < 8; i++) {
        int8_t state = states[((2 * threadIdx.z + i / 4 + 1) * HALO + 2 * threadIdx.y + i / 2 % 2 + 1) * HALO +
                              2 * threadIdx.x + i % 2 + 1];

        open |= state == -1 || state == 2;
        if (changed && exists(run, own_voxel(i)))
            run.states[index_of(run, own_voxel(i))] = state;
    }
    open = __syncthreads_or(open);
    if (first_thread()) {
        run.active[own_block()] = open;
        if (changed)
            *run.changed = 1;
    }
}

__global__ void
__launch_bounds__(THREADS) stage_3(struct trapani2018 run)
{
    __shared__ int8_t states[HALO_VOXELS];

    load_states(run, states);
    for (int i = 0; i < 8; i++) {
        int at = ((2 * (int)threadIdx.z + i / 4 + 1) * HALO + 2 * (int)threadIdx.y + i / 2 % 2 + 1) * HALO +
                 2 * (int)threadIdx.x + i % 2 + 1;
        const int near[6] = {at - 1, at + 1, at - HALO, at + HALO, at - HALO * HALO, at + HALO * HALO};
        bool inside = states[at] > 0, border = false;

        for (int n = 0; n < 6; n++)
            border |= states[near[n]] != OUTSIDE_VOLUME && (states[near[n]] > 0) != inside;
        /* Write in place: magnitudes change, but signs do not, and only signs of neighbours are read. */
        if (exists(run, own_voxel(i)))
            run.states[index_of(run, own_voxel(i))] = (int8_t)((inside ? 1 : -2) + border);
    }
}

static dim3
grid_of(struct image_extent extent)
{
    return dim3((unsigned)((extent.columns - 1) / SPAN + 1), (unsigned)((extent.rows - 1) / SPAN + 1),
                (unsigned)((extent.slices - 1) / SPAN + 1));
}

size_t
trapani2018_blocks(struct image_extent extent)
{
    dim3 grid = grid_of(extent);

    return (size_t)grid.x * grid.y * grid.z;
}

int
trapani2018_run(const struct trapani2018 *run, cudaStream_t stream)
{
    const dim3 grid = grid_of(run->extent), block(EDGE, EDGE, EDGE);
    int passes = 0;

    stage_1<<<grid, block, 0, stream>>>(*run);
    do {
        *run->changed = 0;
        stage_2<<<grid, block, 0, stream>>>(*run);
        cudaStreamSynchronize(stream);
        passes++;
    } while (*run->changed);
    stage_3<<<grid, block, 0, stream>>>(*run);
    return passes;
}

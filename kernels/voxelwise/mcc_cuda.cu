/*
 * mcc_cuda.cu - see mcc_cuda.cuh.
 *
 * Voxels are sorted by the number of levels in their windows. Matrices of up to 32 rows are reduced in registers: half as many
 * threads as rows have two columns each, so that a warp has 2, 4 or 8 matrices. Rows leave a matrix in order, and the others move
 * down by one register, so that the loops are short. Then each thread searches the eigenvalues of one reduced matrix.
 *
 * Rows are counted from the last level: row t has level n - 1 - t of mcc.h.
 */
#include "kernels/voxelwise/mcc_cuda.cuh"

enum { MCC_THREADS = 128, MCC_WARPS = MCC_THREADS / 32 };

#define MCC_WARP 0xffffffffu

/* Arguments of the kernels, except for the plan. A part of a batch begins at a voxel. */
struct mcc_part {
    struct mcc_batch batch;
    int64_t begin;
    int count;
    double *diagonal, *squares; /* [rows][matrices of the list] */
};

MCC_SUMS(mcc_sums, double, static __device__ inline)

/* Returns the levels that occur in the window of a voxel of a part. */
static __device__ inline int
mcc_levels(const struct voxelwise_plan &plan, const struct mcc_part &part, int voxel)
{
    int levels = 0;

    for (int word = 0; word * 32 < plan.levels; word++)
        levels += __popc(part.batch.memory.occurring[word * MCC_VOXELS + voxel]);
    return levels;
}

/* Finds the levels of each window, and lists the voxels. */
static __global__ void
__launch_bounds__(MCC_THREADS)
    mcc_sort(const __grid_constant__ struct voxelwise_plan plan, const __grid_constant__ struct mcc_part part)
{
    const int i = (int)(blockIdx.x * MCC_THREADS + threadIdx.x);
    uint32_t words[MCC_WORDS] = {};
    int levels = 0, list = 0;

    if (i >= part.count)
        return;
    const int64_t voxel = part.batch.voxels[part.begin + i] - part.batch.first;
    const int64_t columns = plan.size[0], rows = plan.size[1], slices = plan.size[2], r = plan.radius;
    const int64_t x = voxel % columns, y = voxel / columns % rows, z = voxel / columns / rows;

    for (int64_t c = max(z - r, (int64_t)0); c <= min(z + r, slices - 1); c++)
        for (int64_t b = max(y - r, (int64_t)0); b <= min(y + r, rows - 1); b++)
            for (int64_t a = max(x - r, (int64_t)0); a <= min(x + r, columns - 1); a++) {
                const int level = plan.grey[(c * rows + b) * columns + a] - 1;

                if (level >= 0)
                    words[level / 32] |= 1u << level % 32;
            }
    for (int word = 0; word * 32 < plan.levels; word++) {
        part.batch.memory.occurring[word * MCC_VOXELS + i] = words[word];
        levels += __popc(words[word]);
    }
    if (levels < 2)
        return;
    while (list < MCC_LISTS - 1 && levels > 8 << list)
        list++;
    part.batch.memory.lists[list * MCC_VOXELS + atomicAdd(&part.batch.memory.listed[list], 1)] = i;
}

/* A matrix to make: its direction, and the window of its voxel. */
struct mcc_item {
    struct voxelwise_direction way;
    int64_t corner[3]; /* of the window */
    int voxel, number, levels;
    uint32_t occurring[MCC_WORDS];
};

/* Finds a matrix of a list. */
static __device__ inline void
mcc_find(const struct voxelwise_plan &plan, const struct mcc_part &part, int list, int index, struct mcc_item *item)
{
    const int listed = part.batch.memory.listed[list];

    item->number = index / listed;
    item->voxel = part.batch.memory.lists[list * MCC_VOXELS + index % listed];
    item->levels = mcc_levels(plan, part, item->voxel);
    for (int word = 0; word * 32 < plan.levels; word++)
        item->occurring[word] = part.batch.memory.occurring[word * MCC_VOXELS + item->voxel];
    voxelwise_find_direction(&plan, item->number, &item->way);
    const int64_t voxel = part.batch.voxels[part.begin + item->voxel] - part.batch.first;

    item->corner[0] = voxel % plan.size[0] - plan.radius;
    item->corner[1] = voxel / plan.size[0] % plan.size[1] - plan.radius;
    item->corner[2] = voxel / plan.size[0] / plan.size[1] - plan.radius;
}

/* Returns the row of the level of a voxel of the volume; -1: it is beyond the volume or has no level. */
static __device__ inline int
mcc_row(const struct voxelwise_plan &plan, const struct mcc_item &item, const int64_t at[3])
{
    int row = 0;

    for (int axis = 0; axis < 3; axis++)
        if (at[axis] < 0 || at[axis] >= plan.size[axis])
            return -1;
    const int level = plan.grey[(at[2] * plan.size[1] + at[1]) * plan.size[0] + at[0]] - 1;

    if (level < 0)
        return -1;
    for (int word = level / 32; word * 32 < plan.levels; word++) /* levels above this one */
        row += __popc(item.occurring[word] & (word == level / 32 ? 0xfffffffeu << level % 32 : 0xffffffffu));
    return row;
}

/* Calls `add` with the rows of each pair, in both orders. Threads take turns. */
template <typename Add>
static __device__ inline void
mcc_pairs(const struct voxelwise_plan &plan, const struct mcc_item &item, int thread, int threads, const Add &add)
{
    const struct voxelwise_direction &way = item.way;
    const int wide = way.end[0] - way.first[0], high = way.end[1] - way.first[1], deep = way.end[2] - way.first[2];

    for (int pair = thread; pair < wide * high * deep; pair += threads) {
        const int64_t from[3] = {item.corner[0] + way.first[0] + pair % wide,
                                 item.corner[1] + way.first[1] + pair / wide % high,
                                 item.corner[2] + way.first[2] + pair / wide / high};
        const int64_t to[3] = {from[0] + way.step[0], from[1] + way.step[1], from[2] + way.step[2]};
        const int a = mcc_row(plan, item, from), b = mcc_row(plan, item, to);

        if (a >= 0 && b >= 0) {
            add(a, b);
            add(b, a);
        }
    }
}

/* Returns the sum of the values of `threads` threads, by halves. */
template <typename Value>
static __device__ inline Value
mcc_sum(Value value, int threads)
{
    for (int bits = threads / 2; bits > 0; bits /= 2)
        value += __shfl_xor_sync(MCC_WARP, value, bits);
    return value;
}

struct __align__(16) mcc_pair
{
    double u, w;
};

/* A matrix of up to SIDE rows in SIDE / 2 threads: this thread's columns, `thread` and thread + SIDE / 2, from row `first` on. */
template <int SIDE> struct mcc_columns {
    double left[(size_t)SIDE], right[(size_t)SIDE];
    int thread, first, levels;
    struct mcc_pair *row; /* shared: u and w of the reflection, by row; 0 beyond the matrix */
};

/* Makes the elements from counts: element r, c is in the lower half of counts[r][c] if c < SIDE / 2, else in the upper. */
template <int SIDE>
static __device__ __forceinline__ void
mcc_fill(struct mcc_columns<SIDE> &columns, const uint32_t (*counts)[(size_t)SIDE / 2])
{
    const int thread = columns.thread;
    int here[2] = {};

    for (int r = 0; r < SIDE; r++) {
        here[0] += (int)(counts[r][thread] & 0xffff);
        here[1] += (int)(counts[r][thread] >> 16);
    }
    const double total = mcc_sum(here[0] + here[1], SIDE / 2);
    struct mcc_pair own[2]; /* counts and factors */

    for (int side = 0; side < 2; side++) {
        own[side].u = here[side];
        own[side].w = here[side] > 0 ? 1 / sqrt(here[side] * total) : 0;
        columns.row[thread + side * SIDE / 2] = own[side];
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < SIDE; r++) {
        const struct mcc_pair row = columns.row[r];
        const uint32_t both = counts[r][thread];

        columns.left[r] = ((double)(both & 0xffff) * total - row.u * own[0].u) * (row.w * own[0].w);
        columns.right[r] = ((double)(both >> 16) * total - row.u * own[1].u) * (row.w * own[1].w);
    }
    __syncwarp();
    for (int side = 0; side < 4; side++)
        columns.row[thread + side * SIDE / 2] = {0, 0};
}

/* Removes the first row of at most ROWS. Returns the square of the element below the diagonal. */
template <int SIDE, int ROWS>
static __device__ __forceinline__ double
mcc_remove(struct mcc_columns<SIDE> &columns)
{
    const int first = columns.first, next = first + 1, half = SIDE / 2, thread = columns.thread;
    const bool lefts = thread > first, rights = thread + half > first;
    double u[2] = {lefts ? columns.left[0] : 0, rights ? columns.right[0] : 0}, y[2] = {};
    const double square = mcc_sum(u[0] * u[0] + u[1] * u[1], half);
    const double end = __shfl_sync(MCC_WARP, next < half ? u[0] : u[1], next % half, half);
    const bool reflects = first < columns.levels - 2 && square >= MCC_NONE;
    const double root = sqrt(square), inverse = reflects ? 1 / (square + fabs(end) * root) : 0;

    if (thread == next)
        u[0] = end > 0 ? end + root : end - root;
    if (thread + half == next)
        u[1] = end > 0 ? end + root : end - root;
    columns.row[thread].u = u[0];
    columns.row[thread + half].u = u[1];
    __syncwarp();
#pragma unroll
    for (int r = ROWS - 1; r > 0; r--) {
        const double other = columns.row[first + r].u;

        y[0] += columns.left[r] * other;
        y[1] += columns.right[r] * other;
    }
    y[0] *= inverse;
    y[1] *= inverse;
    const double k = mcc_sum(y[0] * u[0] + y[1] * u[1], half) * (0.5 * inverse);
    const double w[2] = {lefts ? y[0] - k * u[0] : 0, rights ? y[1] - k * u[1] : 0};

    columns.row[thread].w = w[0];
    columns.row[thread + half].w = w[1];
    __syncwarp();
#pragma unroll
    for (int r = 1; r < ROWS; r++) {
        const struct mcc_pair other = columns.row[first + r];

        columns.left[r - 1] = columns.left[r] - (other.u * w[0] + other.w * u[0]);
        columns.right[r - 1] = columns.right[r] - (other.u * w[1] + other.w * u[1]);
    }
    columns.left[ROWS - 1] = columns.right[ROWS - 1] = 0;
    __syncwarp();
    return square >= MCC_NONE ? square : 0;
}

/* Removes rows while at least ROWS - SIDE / 4 + 1 of the `most` rows of the warp's matrices remain, and writes the rest. */
template <int SIDE, int ROWS>
static __device__ __forceinline__ void
mcc_remove_rows(struct mcc_columns<SIDE> &columns, int most, double *diagonal, double *squares, int64_t apart)
{
    while (most - columns.first > ROWS - SIDE / 4) {
        const int first = columns.first, level = columns.levels - 1 - first;
        const double own = first < SIDE / 2 ? columns.left[0] : columns.right[0];
        const double square = mcc_remove<SIDE, ROWS>(columns);

        if (columns.thread == first % (SIDE / 2) && level >= 0) {
            diagonal[level * apart] = own;
            if (level > 0)
                squares[(level - 1) * apart] = square;
        }
        columns.first++;
    }
}

/* Reduces the matrices of a list. */
template <int SIDE>
static __global__ void
__launch_bounds__(MCC_THREADS) mcc_reduce(const __grid_constant__ struct voxelwise_plan plan,
                                          const __grid_constant__ struct mcc_part part, int list)
{
    enum { LANES = SIDE / 2, ITEMS = 32 / LANES };

    /* A row or an element more: the same places of a warp's matrices are in different banks. */
    __shared__ uint32_t counts[MCC_WARPS * ITEMS][SIDE + 1][LANES];
    __shared__ struct mcc_pair rows[MCC_WARPS * ITEMS][2 * SIDE + 1];
    const int warp = (int)threadIdx.x / 32, own = (int)threadIdx.x / LANES;
    const int all = part.batch.memory.listed[list] * MCC_DIRECTIONS;
    struct mcc_columns<SIDE> columns;
    struct mcc_item item;

    columns.thread = (int)threadIdx.x % LANES;
    columns.row = rows[own];
    for (int64_t begin = ((int64_t)blockIdx.x * MCC_WARPS + warp) * ITEMS; begin < all;
         begin += (int64_t)gridDim.x * MCC_WARPS * ITEMS) {
        const int index = (int)begin + own % ITEMS;
        int most;

        for (int r = 0; r < SIDE; r++)
            counts[own][r][columns.thread] = 0;
        __syncwarp();
        item.levels = 0;
        if (index < all) {
            mcc_find(plan, part, list, index, &item);
            mcc_pairs(plan, item, columns.thread, LANES,
                      [&](int a, int b) { atomicAdd(&counts[own][a][b % LANES], b < LANES ? 1u : 1u << 16); });
        }
        __syncwarp();
        columns.first = 0;
        columns.levels = most = item.levels;
        for (int bits = 16; bits >= LANES; bits /= 2)
            most = max(most, __shfl_xor_sync(MCC_WARP, most, bits));
        mcc_fill<SIDE>(columns, counts[own]);
        __syncwarp();
        mcc_remove_rows<SIDE, SIDE>(columns, most, part.diagonal + index, part.squares + index, all);
        mcc_remove_rows<SIDE, SIDE * 3 / 4>(columns, most, part.diagonal + index, part.squares + index, all);
        mcc_remove_rows<SIDE, SIDE / 2>(columns, most, part.diagonal + index, part.squares + index, all);
        mcc_remove_rows<SIDE, SIDE / 4>(columns, most, part.diagonal + index, part.squares + index, all);
    }
}

/* Searches an eigenvalue of a reduced matrix, with this sign of the diagonal. */
static __device__ inline double
mcc_find_largest(const double *diagonal, const double *squares, int64_t apart, int levels, double sign)
{
    struct mcc_search search = {1, 1, 0, false};

    while (!search.done) {
        struct mcc_sums sums = {};
        bool negative = true;

        for (int i = 0; i < levels; i++) {
            const double q = sign * diagonal[i * apart] - search.x - sums.c;

            negative &= q < 0;
            mcc_sums_add(&sums, q, i + 1 < levels ? squares[i * apart] : 0);
        }
        mcc_next(&search, negative, sums.first, sums.second, levels);
    }
    return search.x;
}

/* Writes the coefficients of a list from the reduced matrices. */
static __global__ void
__launch_bounds__(MCC_THREADS) mcc_search_all(const __grid_constant__ struct voxelwise_plan plan,
                                              const __grid_constant__ struct mcc_part part, int list)
{
    const int listed = part.batch.memory.listed[list], all = listed * MCC_DIRECTIONS;

    for (int index = (int)(blockIdx.x * MCC_THREADS + threadIdx.x); index < all;
         index += (int)(gridDim.x * MCC_THREADS)) {
        const int voxel = part.batch.memory.lists[list * MCC_VOXELS + index % listed];
        const int levels = mcc_levels(plan, part, voxel);
        const double *diagonal = part.diagonal + index, *squares = part.squares + index;
        const double largest = fmax(mcc_find_largest(diagonal, squares, all, levels, 1),
                                    mcc_find_largest(diagonal, squares, all, levels, -1));

        part.batch.memory.coefficients[index / listed * part.batch.stride + part.begin + voxel] = fmax(0.0, largest);
    }
}

/* A matrix of n rows, at most MOST, in a warp: row by row, and vectors; all in shared memory or the matrix in device memory. */
template <int MOST> struct mcc_large {
    double *matrix, *u, *w, *diagonal, *squares;
    int n, lane;
};

enum { MCC_VECTORS = 4 };

/* Makes a matrix from its pairs. */
template <int MOST>
static __device__ inline void
mcc_fill_large(const struct mcc_large<MOST> &large, const struct voxelwise_plan &plan, const struct mcc_item &item)
{
    const int n = large.n, lane = large.lane;
    unsigned long long *const counts = (unsigned long long *)large.matrix;
    double *const levels = large.u, *const factors = large.w;
    unsigned long long pairs = 0;

    for (int i = lane; i < n * n; i += 32)
        counts[i] = 0;
    __syncwarp();
    mcc_pairs(plan, item, lane, 32, [&](int a, int b) { atomicAdd(&counts[a * n + b], 1ull); });
    __syncwarp();
    for (int i = lane; i < n; i += 32) {
        unsigned long long count = 0;

        for (int k = 0; k < n; k++)
            count += counts[k * n + i];
        pairs += count;
        levels[i] = (double)count;
    }
    const double total = (double)mcc_sum(pairs, 32);

    for (int i = lane; i < n; i += 32)
        factors[i] = levels[i] > 0 ? 1 / sqrt(levels[i] * total) : 0;
    __syncwarp();
    for (int k = 0; k < n; k++)
        for (int i = lane; i < n; i += 32)
            large.matrix[k * n + i] =
                ((double)counts[k * n + i] * total - levels[k] * levels[i]) * (factors[k] * factors[i]);
    __syncwarp();
}

/* Applies a reflection to the rows after the first. */
template <int MOST>
static __device__ inline void
mcc_reflect_large(const struct mcc_large<MOST> &large, int first, double inverse)
{
    const int n = large.n, lane = large.lane;
    double u[(size_t)MOST / 32], y[(size_t)MOST / 32] = {}, k = 0;

#pragma unroll
    for (int part = 0; part < MOST / 32; part++)
        u[part] = lane + part * 32 < n ? large.u[lane + part * 32] : 0;
    for (int row = n - 1; row > first; row--) {
        const double other = large.u[row];

#pragma unroll
        for (int part = 0; part < MOST / 32; part++)
            if (lane + part * 32 < n)
                y[part] += large.matrix[row * n + lane + part * 32] * other;
    }
#pragma unroll
    for (int part = 0; part < MOST / 32; part++) {
        y[part] *= inverse;
        k += y[part] * u[part];
    }
    k = mcc_sum(k, 32) * (0.5 * inverse);
#pragma unroll
    for (int part = 0; part < MOST / 32; part++) {
        y[part] -= k * u[part];
        if (lane + part * 32 < n)
            large.w[lane + part * 32] = y[part];
    }
    __syncwarp();
    for (int row = first + 1; row < n; row++) {
        const double other_u = large.u[row], other_w = large.w[row];

#pragma unroll
        for (int part = 0; part < MOST / 32; part++)
            if (lane + part * 32 > first && lane + part * 32 < n)
                large.matrix[row * n + lane + part * 32] -= other_u * y[part] + other_w * u[part];
    }
    __syncwarp();
}

/* Removes row `first`. */
template <int MOST>
static __device__ inline void
mcc_remove_large(const struct mcc_large<MOST> &large, int first)
{
    const int n = large.n, next = first + 1;
    double square = 0;

    for (int i = large.lane; i < n; i += 32) {
        large.u[i] = i > first ? large.matrix[first * n + i] : 0;
        square += large.u[i] * large.u[i];
    }
    square = mcc_sum(square, 32);
    __syncwarp();
    const double end = next < n ? large.u[next] : 0, root = sqrt(square);

    __syncwarp();
    if (large.lane == 0) {
        large.diagonal[n - next] = large.matrix[first * n + first];
        if (next < n) {
            large.squares[n - 1 - next] = square >= MCC_NONE ? square : 0;
            large.u[next] = end > 0 ? end + root : end - root;
        }
    }
    __syncwarp();
    if (next < n - 1 && square >= MCC_NONE)
        mcc_reflect_large(large, first, 1 / (square + fabs(end) * root));
}

/* Computes the coefficients of a list with a warp per matrix, `each` bytes of the room after the last one, or in shared memory. */
template <int MOST>
static __global__ void __launch_bounds__(32)
    mcc_correlate(const __grid_constant__ struct voxelwise_plan plan, const __grid_constant__ struct mcc_part part,
                  int list, size_t each)
{
    extern __shared__ __align__(16) unsigned char mcc_block[];
    const int all = part.batch.memory.listed[list] * MCC_DIRECTIONS;
    double *const vectors = (double *)mcc_block;
    struct mcc_large<MOST> large;
    struct mcc_item item;

    large.lane = (int)threadIdx.x;
    large.u = vectors;
    large.w = vectors + MOST;
    large.diagonal = vectors + 2 * MOST;
    large.squares = vectors + 3 * MOST;
    large.matrix = each > 0 ? (double *)(part.batch.room + blockIdx.x * each) : vectors + MCC_VECTORS * MOST;
    for (int index = (int)blockIdx.x; index < all; index += (int)gridDim.x) {
        double largest = 0;

        mcc_find(plan, part, list, index, &item);
        large.n = item.levels;
        mcc_fill_large(large, plan, item);
        for (int first = 0; first < large.n; first++)
            mcc_remove_large(large, first);
        __syncwarp();
        if (large.lane < 2)
            largest = mcc_find_largest(large.diagonal, large.squares, 1, large.n, large.lane > 0 ? -1 : 1);
        largest = fmax(largest, __shfl_xor_sync(MCC_WARP, largest, 1));
        if (large.lane == 0)
            part.batch.memory.coefficients[item.number * part.batch.stride + part.begin + item.voxel] =
                fmax(0.0, largest);
        __syncwarp();
    }
}

void
mcc_place(struct kernels_arena *device, struct mcc_memory *memory, size_t stride)
{
    cuda_take(device, &memory->occurring, MCC_VOXELS, MCC_WORDS);
    cuda_take(device, &memory->lists, MCC_VOXELS, MCC_LISTS);
    cuda_take(device, &memory->listed, MCC_LISTS);
    cuda_take(device, &memory->coefficients, stride, MCC_DIRECTIONS);
}

static void (*const mcc_reductions[MCC_SIDES])(struct voxelwise_plan, struct mcc_part,
                                               int) = {mcc_reduce<8>, mcc_reduce<16>, mcc_reduce<32>};

static void (*const mcc_correlations[2])(struct voxelwise_plan, struct mcc_part, int,
                                         size_t) = {mcc_correlate<VOXELWISE_MAX_LEVELS>, mcc_correlate<64>};

/* Queues the kernels of a part, whose lists the host does not know: each has enough blocks for any. */
static int
mcc_queue_part(struct cuda_lane *lane, const struct voxelwise_plan *plan, struct mcc_part *part, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const int64_t matrices = (int64_t)part->count * MCC_DIRECTIONS;
    const int most = plan->levels < voxelwise_voxels(plan) ? plan->levels : voxelwise_voxels(plan);

    CUDA_TRY(device, cudaMemsetAsync(part->batch.memory.listed, 0, (MCC_LISTS) * sizeof(int32_t), lane->work));
    mcc_sort<<<(unsigned)((part->count + MCC_THREADS - 1) / MCC_THREADS), MCC_THREADS, 0, lane->work>>>(*plan, *part);
    CUDA_LAUNCHED(device);
    for (int list = 0; list < MCC_SIDES && (list == 0 || most > 4 << list); list++) {
        const int64_t items = MCC_WARPS * (64 >> (3 + list)), blocks = (matrices + items - 1) / items;
        const int64_t enough = (int64_t)device->multiprocessors * 16;

        part->diagonal = (double *)part->batch.room;
        part->squares = part->diagonal + matrices * (8 << list);
        mcc_reductions[list]<<<(unsigned)(blocks < enough ? blocks : enough), MCC_THREADS, 0, lane->work>>>(
            *plan, *part, list);
        CUDA_LAUNCHED(device);
        mcc_search_all<<<(unsigned)((matrices + MCC_THREADS - 1) / MCC_THREADS), MCC_THREADS, 0, lane->work>>>(
            *plan, *part, list);
        CUDA_LAUNCHED(device);
    }
    for (int list = MCC_SIDES; list < MCC_LISTS && most > 4 << list; list++) {
        const bool shared = list < MCC_LISTS - 1;
        const size_t each = shared ? 0 : (size_t)most * (size_t)most * sizeof(double);
        const size_t bytes =
            (size_t)(shared ? 64 * (64 + MCC_VECTORS) : VOXELWISE_MAX_LEVELS * MCC_VECTORS) * sizeof(double);
        const size_t room = shared ? (size_t)matrices : part->batch.room_bytes / each;
        const size_t enough = (size_t)device->multiprocessors * 16;

        mcc_correlations[shared]<<<(unsigned)(room < enough ? room : enough), 32, bytes, lane->work>>>(*plan, *part,
                                                                                                       list, each);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

int
mcc_queue(struct cuda_lane *lane, const struct voxelwise_plan *plan, const struct mcc_batch *batch, struct error *error)
{
    struct mcc_part part = {};
    int rc = 0;

    part.batch = *batch;
    for (part.begin = 0; part.begin < batch->count && rc == 0; part.begin += part.count) {
        part.count = (int)min(batch->count - part.begin, (int64_t)MCC_VOXELS);
        rc = mcc_queue_part(lane, plan, &part, error);
    }
    return rc;
}

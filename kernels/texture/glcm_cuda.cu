/*
 * glcm_cuda.cu - grey level co-occurrence matrices and value histograms (paper 002) on the GPU.
 *
 * Levels are codes of one byte, 0 .. L - 1, and L for what does not count. Where the table is a
 * plain shift of bytes (floor(g L / 256)) and there is no region, the stored values are shifted as
 * they are read; else a pass writes the codes first. glcm_pairs.cu counts the pairs of codes, or
 * glcm_bits.cu where there are few levels, whose codes are other ones; here is what is done before
 * and after, the counting of so many levels that their counters do not fit, and the value
 * histograms.
 */
#include "kernels/texture/texture_cuda.cuh"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 1024,
    WARP = 32,
    A_THREAD = GLCM_A_THREAD,
    A_SPAN = WARP * A_THREAD,
    VALUES_HALF = 1 << 15, /* counters of 16-bit values that fit shared memory */
    SLICES_OF_LINES = 16,  /* from so many on lines go through them */
};

static struct divider
divider_of(uint32_t by)
{
    struct divider divider = {by, 0, 31};
    uint32_t log = 0;

    while ((UINT64_C(1) << log) < by)
        log++;
    divider.factor = (uint32_t)(((UINT64_C(1) << (31 + log)) + by - 1) / by);
    divider.shift = 31 + log;
    return divider;
}

static __device__ __forceinline__ uint32_t
divide(uint32_t number, struct divider divider)
{
    return (uint32_t)((uint64_t)number * divider.factor >> divider.shift);
}

struct codes {
    uint32_t word[4];
};

static __device__ void
clear_counters(uint32_t *counters, uint32_t count)
{
    for (uint32_t i = threadIdx.x; i < count; i += THREADS)
        counters[i] = 0;
    __syncthreads();
}

/* All copies of a counter; each thread begins with another bank. */
static __device__ unsigned long long
sum_copies(const uint32_t *counters, uint32_t counter, uint32_t copies)
{
    unsigned long long sum = 0;

    for (uint32_t i = 0; i < copies; i++)
        sum += counters[counter * copies + ((i + threadIdx.x) & (copies - 1))];
    return sum;
}

/* Codes */

/* 16 stored values, 0 where the row has no more of them. */
template <typename Value>
static __device__ __forceinline__ void
load_values(const Value *row, uint32_t x, uint32_t columns, Value values[A_THREAD])
{
    const uint32_t words_of = A_THREAD * sizeof(Value) / sizeof(uint4);

    if (columns % A_THREAD == 0) {
        const uint4 *from = (const uint4 *)(row + x);
        uint4 loaded[words_of];

#pragma unroll
        for (uint32_t i = 0; i < words_of; i++)
            loaded[i] = __ldg(from + i);
        memcpy(values, loaded, sizeof(loaded));
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < A_THREAD; i++)
        values[i] = x + i < columns ? row[x + i] : 0;
}

/* Codes of slices first .. first + gridDim.y - 1, table 0 being that of the first. */
template <typename Value>
static __global__ void
__launch_bounds__(THREADS) make_codes(struct glcm_volume volume, uint32_t first)
{
    __shared__ uint16_t shared_table[256];
    const uint32_t z = first + blockIdx.y;
    const uint16_t *table =
        volume.tables + (volume.table_a_slice ? (size_t)blockIdx.y << 8 * sizeof(Value) : 0);

    if (sizeof(Value) == 1) {
        if (threadIdx.x < 256)
            shared_table[threadIdx.x] = table[threadIdx.x];
        __syncthreads();
    }
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < volume.rows * volume.pieces.by;
         i += gridDim.x * THREADS) {
        uint32_t y = divide(i, volume.pieces), x = (i - y * volume.pieces.by) * A_THREAD;
        size_t row = (size_t)z * volume.rows + y;
        size_t piece = row * volume.words_per_row * 4 + x / A_THREAD;
        uint32_t in = volume.region ? ((const uint16_t *)volume.region)[piece] : 0xFFFF;
        uint32_t counted = 0;
        Value values[A_THREAD];
        struct codes codes = {{0, 0, 0, 0}};

        load_values((const Value *)volume.voxels + row * volume.columns, x, volume.columns, values);
#pragma unroll
        for (uint32_t k = 0; k < A_THREAD; k++) {
            uint32_t value = (uint32_t)values[k] ^ volume.bias;
            uint32_t level = sizeof(Value) == 1 ? shared_table[value] : __ldg(table + value);
            bool counts = level != 0 && (in >> k & 1) != 0 && x + k < volume.columns;

            codes.word[k / 4] |= (counts ? level - 1 << volume.code_shift : volume.none)
                                 << 8 * (k % 4);
            counted |= (uint32_t)counts << k;
        }
        *(uint4 *)(volume.codes + row * volume.pitch + x) =
            make_uint4(codes.word[0], codes.word[1], codes.word[2], codes.word[3]);
        if (volume.counted)
            volume.counted[piece] = (uint16_t)counted;
    }
}

/*
 * Many levels: part blockIdx.x of set blockIdx.y, a matrix, those of its rows (of levels) that are
 * in turn blockIdx.z. A code does not say any more that a voxel does not count; the bits do.
 */
static __global__ void
__launch_bounds__(THREADS)
    glcm_count_many(struct glcm_volume volume, uint32_t levels, uint32_t in_turn,
                    uint32_t slice_count, const struct glcm_set *sets, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    const struct glcm_set set = sets[blockIdx.y];
    const uint64_t *counted = (const uint64_t *)volume.counted;
    const uint32_t lowest = blockIdx.z * in_turn;
    const uint64_t rows = (uint64_t)slice_count * volume.rows;
    uint32_t *counters = (uint32_t *)shared_counters;

    counts += (size_t)set.matrix[0] * levels * levels;
    clear_counters(counters, in_turn * levels);
    for (uint64_t i = rows * blockIdx.x / gridDim.x + threadIdx.x / WARP;
         i < rows * (blockIdx.x + 1) / gridDim.x; i += THREADS / WARP) {
        int32_t y = (int32_t)(i % volume.rows);
        int32_t z = set.first_slice + (int32_t)(i / volume.rows);
        size_t a_row = (size_t)z * volume.rows + (size_t)y;
        size_t b_row = (size_t)((int64_t)a_row + (int64_t)set.z[0] * volume.rows + set.y[0]);

        if ((uint32_t)z >= volume.slices || (uint32_t)(y + set.y[0]) >= volume.rows ||
            (uint32_t)(z + set.z[0]) >= volume.slices)
            continue;
        for (uint32_t x = threadIdx.x % WARP; x < volume.columns; x += WARP) {
            uint32_t other = x + (uint32_t)set.x[0];
            uint32_t a = volume.codes[a_row * volume.pitch + x] - lowest;

            if (a >= in_turn || other >= volume.columns ||
                !texture_in_region(counted, a_row, volume.words_per_row, x) ||
                !texture_in_region(counted, b_row, volume.words_per_row, other))
                continue;
            atomicAdd(&counters[a * levels + volume.codes[b_row * volume.pitch + other]], 1u);
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < in_turn * levels; i += THREADS) {
        const uint32_t a = lowest + i / levels, b = i % levels;

        if (counters[i] != 0 && a < levels)
            atomicAdd(&counts[set.reversed[0] ? b * levels + a : a * levels + b],
                      (unsigned long long)counters[i]);
    }
}

/* Value histograms */

/*
 * Part blockIdx.x of slices first .. first + slice_count - 1 of histogram blockIdx.y, of its values
 * those of half blockIdx.z (there is one half of bytes). Bytes have a counter for each lane.
 */
template <typename Value>
static __global__ void
__launch_bounds__(THREADS) count_values(struct glcm_volume volume, uint32_t first,
                                        uint32_t slice_count, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    const uint32_t values = sizeof(Value) == 1 ? 256 : VALUES_HALF;
    const uint32_t copies = sizeof(Value) == 1 ? WARP : 1;
    const uint32_t lowest = blockIdx.z * values;
    const uint64_t rows = (uint64_t)slice_count * volume.rows;
    const size_t first_row = (size_t)(first + blockIdx.y) * volume.rows;
    uint32_t *counters = (uint32_t *)shared_counters + threadIdx.x % copies;

    clear_counters((uint32_t *)shared_counters, values * copies);
    for (uint64_t i = rows * blockIdx.x / gridDim.x + threadIdx.x / WARP;
         i < rows * (blockIdx.x + 1) / gridDim.x; i += THREADS / WARP) {
        const Value *row = (const Value *)volume.voxels + (first_row + i) * volume.columns;

#pragma unroll 4
        for (uint32_t x = threadIdx.x % WARP; x < volume.columns; x += WARP) {
            uint32_t value = (__ldg(row + x) ^ volume.bias) - lowest;

            if (value < values &&
                texture_in_region(volume.region, first_row + i, volume.words_per_row, x))
                atomicAdd(&counters[value * copies], 1u);
        }
    }
    __syncthreads();
    counts += (size_t)blockIdx.y * values * gridDim.z + lowest;
    for (uint32_t i = threadIdx.x; i < values; i += THREADS) {
        unsigned long long sum = sum_copies((const uint32_t *)shared_counters, i, copies);

        if (sum != 0)
            atomicAdd(&counts[i], sum);
    }
}

/* A lane */

static size_t
values_of(const struct cuda_lane *lane)
{
    return lane->base.pixel == IMAGE_UINT8 ? 256 : 65536;
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t
most(size_t a, size_t b)
{
    return a > b ? a : b;
}

int
cuda_texture_open(struct cuda_lane *lane)
{
    lane->texture = (struct cuda_texture *)calloc(1, sizeof(*lane->texture));
    if (!lane->texture)
        return -ENOMEM;
    for (int i = 0; i < TEXTURE_MAP_BATCHES; i++) {
        cudaEvent_t *events[2] = {&lane->texture->made[i], &lane->texture->fetched[i]};

        for (cudaEvent_t *event : events) {
            cudaError_t error = CUDA_OF(cudaEventCreateWithFlags(event, cudaEventDisableTiming));

            if (error != cudaSuccess) {
                cuda_texture_close(lane);
                return cuda_failed(cuda_device_of(&lane->base), error, "cudaEventCreateWithFlags",
                                   NULL, 0);
            }
        }
    }
    return 0;
}

void
cuda_texture_close(struct cuda_lane *lane)
{
    for (int i = 0; i < TEXTURE_MAP_BATCHES; i++) {
        if (lane->texture->made[i])
            (void)cudaEventDestroy(lane->texture->made[i]);
        if (lane->texture->fetched[i])
            (void)cudaEventDestroy(lane->texture->fetched[i]);
    }
    free(lane->texture);
    lane->texture = NULL;
}

/* Sizes of the lane's pieces for its volume. */
static void
size_pieces(const struct cuda_lane *lane, struct cuda_texture *texture)
{
    size_t columns = (size_t)lane->base.extent.columns;
    size_t rows = (size_t)(lane->base.extent.rows * lane->base.extent.slices);

    texture->code_pitch = (columns + A_THREAD - 1) / A_THREAD * A_THREAD;
    texture->map_pitch = (columns + 3) / 4 * 4;
    texture->map_rows = least(rows, most(1, TEXTURE_MAP_BYTES / texture->map_pitch));
    texture->words = (columns + 63) / 64 * rows;
}

bool
cuda_texture_needs(const struct cuda_lane *lane, struct cuda_needs *needs)
{
    size_t rows = (size_t)(lane->base.extent.rows * lane->base.extent.slices);
    struct cuda_texture sizes = {};
    size_t maps;

    if (!lane->base.demand.texture)
        return true;
    size_pieces(lane, &sizes);
    maps = TEXTURE_PATTERNS * TEXTURE_MAP_BATCHES * sizes.map_rows;
    return cuda_needs_add(&needs->device, rows, sizes.code_pitch) &&
           cuda_needs_add(&needs->device, sizes.words, sizeof(uint64_t)) &&
           cuda_needs_add(&needs->device, TEXTURE_TABLES * values_of(lane), sizeof(uint16_t)) &&
           cuda_needs_add(&needs->device, TEXTURE_MATRICES, sizeof(struct glcm_set)) &&
           cuda_needs_add(&needs->pinned, TEXTURE_MATRICES, sizeof(struct glcm_set)) &&
           cuda_needs_add(&needs->device, TEXTURE_COUNTERS, sizeof(uint64_t)) &&
           cuda_needs_add(&needs->pinned, TEXTURE_COUNTERS, sizeof(uint64_t)) &&
           cuda_needs_add(&needs->device, maps, sizes.map_pitch) &&
           cuda_needs_add(&needs->device, TEXTURE_MAP_BATCHES, 256) &&
           cuda_needs_add(&needs->pinned, maps, sizes.map_pitch) &&
           cuda_needs_add(&needs->pinned, TEXTURE_MAP_BATCHES, 256);
}

void
cuda_texture_place(struct cuda_lane *lane)
{
    struct cuda_texture *texture = lane->texture;
    size_t rows = (size_t)(lane->base.extent.rows * lane->base.extent.slices);
    size_t maps;

    if (!lane->base.demand.texture)
        return;
    size_pieces(lane, texture);
    maps = TEXTURE_PATTERNS * texture->map_rows * texture->map_pitch;
    texture->codes = (uint8_t *)cuda_arena_take(&lane->device, rows * texture->code_pitch);
    texture->region = (uint64_t *)cuda_arena_take(&lane->device, texture->words * sizeof(uint64_t));
    texture->tables = (uint16_t *)cuda_arena_take(&lane->device, TEXTURE_TABLES * values_of(lane) *
                                                                     sizeof(uint16_t));
    texture->sets = (struct glcm_set *)cuda_arena_take(&lane->device,
                                                       TEXTURE_MATRICES * sizeof(struct glcm_set));
    texture->host_sets = (struct glcm_set *)cuda_arena_take(
        &lane->pinned, TEXTURE_MATRICES * sizeof(struct glcm_set));
    texture->counts =
        (unsigned long long *)cuda_arena_take(&lane->device, TEXTURE_COUNTERS * sizeof(uint64_t));
    texture->host_counts =
        (unsigned long long *)cuda_arena_take(&lane->pinned, TEXTURE_COUNTERS * sizeof(uint64_t));
    for (int i = 0; i < TEXTURE_MAP_BATCHES; i++) {
        texture->maps[i] = (uint8_t *)cuda_arena_take(&lane->device, maps);
        texture->host_maps[i] = (uint8_t *)cuda_arena_take(&lane->pinned, maps);
    }
}

int
cuda_texture_region(struct cuda_lane *lane, const uint64_t *region, const uint64_t **on_device,
                    char *reason, size_t reason_size)
{
    struct cuda_texture *texture = lane->texture;

    *on_device = region ? texture->region : NULL;
    if (region)
        CUDA_TRY(cuda_device_of(&lane->base),
                 cudaMemcpyAsync(texture->region, region, texture->words * sizeof(uint64_t),
                                 cudaMemcpyHostToDevice, lane->work));
    return 0;
}

static struct glcm_volume
volume_of(const struct cuda_lane *lane)
{
    const struct image_extent *extent = &lane->base.extent;
    struct glcm_volume volume = {};

    volume.voxels = lane->device_voxels;
    volume.bias = lane->base.pixel == IMAGE_INT16 ? 0x8000 : 0;
    volume.columns = (uint32_t)extent->columns;
    volume.rows = (uint32_t)extent->rows;
    volume.slices = (uint32_t)extent->slices;
    volume.words_per_row = (volume.columns + 63) / 64;
    volume.pitch = (uint32_t)lane->texture->code_pitch;
    volume.pieces = divider_of(volume.pitch / A_THREAD);
    volume.codes = lane->texture->codes;
    return volume;
}

/* Waits for `work`, and hands over counters that stand in pinned memory. */
static int
fetch_counts(struct cuda_lane *lane, size_t counters, uint64_t *counts, char *reason,
             size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_texture *texture = lane->texture;

    CUDA_TRY(device,
             cudaMemcpyAsync(texture->host_counts, texture->counts, counters * sizeof(uint64_t),
                             cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    memcpy(counts, texture->host_counts, counters * sizeof(uint64_t));
    return 0;
}

/* A request's plan */

/* How many bits floor(g L / 256) shifts by, if the table is that; else 0. */
static uint32_t
shift_of(const struct texture_levels *levels)
{
    uint32_t shift = 1;

    while (shift < 8 && 256 >> shift != levels->levels)
        shift++;
    for (uint32_t value = 0; shift < 8 && value < 256; value++)
        if (levels->level_of[value] != (value >> shift) + 1)
            return 0;
    return shift < 8 ? shift : 0;
}

static uint32_t
copies_that_fit(size_t counters, size_t shared)
{
    uint32_t copies = WARP;

    while (copies > 1 && counters * copies * sizeof(uint32_t) > shared)
        copies /= 2;
    return copies;
}

static void
plan_counters(const struct texture_glcm *request, size_t shared, struct glcm_plan *plan)
{
    size_t levels = (size_t)request->levels.levels, k = levels + 1;

    plan->many = k * k * sizeof(uint32_t) > shared;
    if (plan->many) {
        plan->in_turn = (uint32_t)(shared / (levels * sizeof(uint32_t)));
        plan->shared = plan->in_turn * levels * sizeof(uint32_t);
        return;
    }
    plan->image.copies = copies_that_fit(k * k, shared);
}

/* Few lines become many parts, so that all warps of a block have one. */
static void
plan_lines(bool per_slice, struct glcm_image *image)
{
    uint32_t slices = per_slice ? 1 : image->slices, beside;

    image->in_z = slices >= SLICES_OF_LINES;
    image->length = (int32_t)(image->in_z ? image->slices : image->row_count);
    image->others = image->in_z ? image->row_count : image->slices;
    image->stride = (size_t)image->pitch * (image->in_z ? image->row_count : 1);
    image->across = (image->pitch + A_SPAN - 1) / A_SPAN;
    beside = image->across * (image->in_z ? image->row_count : slices);
    image->parts = (uint32_t)most(1, least((size_t)image->length, THREADS / WARP / beside));
    image->steps = ((uint32_t)image->length + image->parts - 1) / image->parts;
    image->lines = beside * image->parts;
}

static void
plan_bits(struct glcm_plan *plan)
{
    plan->volume.code_shift = GLCM_BITS_SHIFT;
    plan->volume.none = GLCM_BITS_NONE;
    plan->image.surplus = plan->shifted ? plan->image.shift - GLCM_BITS_SHIFT : 0;
}

static void
make_plan(const struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan)
{
    const struct image_extent *extent = &lane->base.extent;
    struct glcm_image *image = &plan->image;

    plan_counters(request, cuda_device_of(&lane->base)->shared_per_block, plan);
    plan->volume = volume_of(lane);
    if (!request->region && lane->base.pixel == IMAGE_UINT8 && request->levels.table_count == 1 &&
        extent->columns % A_THREAD == 0 && !plan->many)
        image->shift = shift_of(&request->levels);
    plan->shifted = image->shift != 0;
    plan->slices = request->per_slice ? 1 : (uint32_t)extent->slices;
    image->rows = plan->shifted ? (const uint8_t *)lane->device_voxels : lane->texture->codes;
    image->pitch = plan->shifted ? (uint32_t)extent->columns : plan->volume.pitch;
    image->row_count = (uint32_t)extent->rows;
    image->slices = (uint32_t)extent->slices;
    image->mask = (0xFFu >> image->shift) * 0x01010101u;
    image->levels = (uint32_t)request->levels.levels;
    image->none = image->levels * 0x01010101u;
    plan->volume.none = plan->many ? 0 : (uint8_t)image->levels;
    plan->volume.counted = plan->many ? (uint16_t *)lane->texture->region : NULL;
    plan->bits = glcm_bits_take(request, image, plan->slices);
    if (plan->bits)
        plan_bits(plan);
    else
        plan_lines(request->per_slice, image);
}

/* Spans are numbered in 31 bits; what has more has rows of a few voxels, and 2^31 of them. */
static bool
is_too_long(const struct cuda_lane *lane)
{
    const struct image_extent *extent = &lane->base.extent;
    size_t spans = (lane->texture->code_pitch + A_THREAD + A_SPAN - 1) / A_SPAN;

    return spans * (size_t)extent->rows * (size_t)extent->slices > INT32_MAX;
}

/* Tables may be many: so many slices at a time as there is room for. */
static int
queue_codes(struct cuda_lane *lane, const struct texture_glcm *request,
            const struct glcm_volume *volume, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const bool each = volume->table_a_slice;
    const size_t slices = volume->slices, values = values_of(lane);
    const size_t batch = each ? (size_t)TEXTURE_TABLES : (size_t)TEXTURE_MATRICES;

    for (size_t first = 0; first < slices; first += batch) {
        size_t count = least(batch, slices - first);
        size_t pieces = (size_t)volume->rows * volume->pieces.by;
        size_t parts = most(1, least((pieces + THREADS - 1) / THREADS,
                                     (size_t)device->multiprocessors * 2 / count));
        dim3 grid((unsigned)parts, (unsigned)count);

        if (each || first == 0)
            CUDA_TRY(device, cudaMemcpyAsync(lane->texture->tables,
                                             request->levels.level_of + (each ? first * values : 0),
                                             (each ? count : 1) * values * sizeof(uint16_t),
                                             cudaMemcpyHostToDevice, lane->work));
        if (lane->base.pixel == IMAGE_UINT8)
            make_codes<uint8_t><<<grid, THREADS, 0, lane->work>>>(*volume, (uint32_t)first);
        else
            make_codes<uint16_t><<<grid, THREADS, 0, lane->work>>>(*volume, (uint32_t)first);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

/* Blocks of a matrix, such that no counter of a block overflows. */
static unsigned
parts_of(const struct cuda_lane *lane, size_t matrices)
{
    const struct image_extent *extent = &lane->base.extent;
    size_t voxels = (size_t)(extent->columns * extent->rows * extent->slices);
    size_t processors = (size_t)cuda_device_of(&lane->base)->multiprocessors;

    return (unsigned)most(most(1, processors / matrices), (voxels >> 30) + 1);
}

static void
launch_sets(struct cuda_lane *lane, const struct glcm_plan *plan)
{
    const struct cuda_texture *texture = lane->texture;
    if (plan->many) {
        const size_t sets = plan->share.sets;
        const dim3 grid(parts_of(lane, sets), (unsigned)sets,
                        (plan->image.levels + plan->in_turn - 1) / plan->in_turn);

        glcm_count_many<<<grid, THREADS, plan->shared, lane->work>>>(
            plan->volume, plan->image.levels, plan->in_turn, plan->slices, texture->sets,
            texture->counts);
    } else if (plan->bits) {
        glcm_bits_launch(&plan->image, plan->slices, &plan->share,
                         (size_t)cuda_device_of(&lane->base)->multiprocessors, texture->sets,
                         texture->counts, lane->work);
    } else {
        glcm_pairs_launch(&plan->image, &plan->share, texture->sets, texture->counts, lane->work);
    }
}

static int
allow_shared(struct cuda_device *device, char *reason, size_t reason_size)
{
    const int bytes = (int)device->shared_per_block;
    const cudaFuncAttribute most_of = cudaFuncAttributeMaxDynamicSharedMemorySize;

    CUDA_TRY(device, glcm_pairs_allow(device->shared_per_block));
    CUDA_TRY(device, glcm_bits_allow(device->shared_per_block));
    CUDA_TRY(device, cudaFuncSetAttribute(glcm_count_many, most_of, bytes));
    CUDA_TRY(device, cudaFuncSetAttribute(count_values<uint16_t>, most_of, bytes));
    return 0;
}

int
cuda_glcm_begin(struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan,
                char *reason, size_t reason_size)
{
    int error;

    if (is_too_long(lane))
        return kernels_fail(-E2BIG, reason, reason_size, "there are too many rows for the GPU");
    make_plan(lane, request, plan);
    plan->volume.tables = lane->texture->tables;
    plan->volume.table_a_slice = request->levels.table_count > 1;
    error = allow_shared(cuda_device_of(&lane->base), reason, reason_size);
    if (error || plan->shifted)
        return error;
    error = cuda_texture_region(lane, request->region, &plan->volume.region, reason, reason_size);
    return error ? error : queue_codes(lane, request, &plan->volume, reason, reason_size);
}

int
cuda_glcm_send(struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan,
               size_t first, size_t count, char *reason, size_t reason_size)
{
    struct cuda_texture *texture = lane->texture;

    if (plan->bits)
        plan->share = glcm_arrange_bits(request, first, count, texture->host_sets);
    else
        plan->share =
            glcm_arrange(request, first, count, &plan->image,
                         (size_t)cuda_device_of(&lane->base)->multiprocessors, texture->host_sets);
    CUDA_TRY(cuda_device_of(&lane->base),
             cudaMemcpyAsync(texture->sets, texture->host_sets,
                             plan->share.sets * sizeof(struct glcm_set), cudaMemcpyHostToDevice,
                             lane->work));
    return 0;
}

int
cuda_glcm_count(struct cuda_lane *lane, const struct glcm_plan *plan, size_t count, char *reason,
                size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const size_t counters = count * plan->image.levels * plan->image.levels;

    CUDA_TRY(device,
             cudaMemsetAsync(lane->texture->counts, 0, counters * sizeof(uint64_t), lane->work));
    launch_sets(lane, plan);
    CUDA_LAUNCHED(device);
    return 0;
}

int
cuda_glcm_run(struct cuda_lane *lane, const struct texture_glcm *request, uint64_t *counts,
              char *reason, size_t reason_size)
{
    const size_t size = (size_t)request->levels.levels * (size_t)request->levels.levels;
    const size_t matrices =
        request->offset_count * (request->per_slice ? (size_t)lane->base.extent.slices : 1);
    const size_t batch = least(TEXTURE_MATRICES, TEXTURE_COUNTERS / size);
    struct glcm_plan plan = {};
    int error = cuda_glcm_begin(lane, request, &plan, reason, reason_size);

    for (size_t first = 0; error == 0 && first < matrices; first += batch) {
        size_t count = least(batch, matrices - first);

        error = cuda_glcm_send(lane, request, &plan, first, count, reason, reason_size);
        if (error == 0)
            error = cuda_glcm_count(lane, &plan, count, reason, reason_size);
        if (error == 0)
            error = fetch_counts(lane, count * size, counts + first * size, reason, reason_size);
    }
    return error;
}

/* Histograms first .. first + count - 1, each of slice_count slices. */
static int
run_histograms(struct cuda_lane *lane, const struct glcm_volume *volume, size_t first, size_t count,
               uint32_t slice_count, uint64_t *counts, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_texture *texture = lane->texture;
    const size_t values = values_of(lane);
    dim3 grid(parts_of(lane, count), (unsigned)count, values == 256 ? 1 : 2);

    CUDA_TRY(device,
             cudaMemsetAsync(texture->counts, 0, count * values * sizeof(uint64_t), lane->work));
    if (lane->base.pixel == IMAGE_UINT8)
        count_values<uint8_t><<<grid, THREADS, 256 * WARP * sizeof(uint32_t), lane->work>>>(
            *volume, (uint32_t)first, slice_count, texture->counts);
    else
        count_values<uint16_t><<<grid, THREADS, VALUES_HALF * sizeof(uint32_t), lane->work>>>(
            *volume, (uint32_t)first, slice_count, texture->counts);
    CUDA_LAUNCHED(device);
    return fetch_counts(lane, count * values, counts + first * values, reason, reason_size);
}

int
cuda_histogram_run(struct cuda_lane *lane, const uint64_t *region, bool per_slice, uint64_t *counts,
                   char *reason, size_t reason_size)
{
    const size_t histograms = per_slice ? (size_t)lane->base.extent.slices : 1;
    const size_t batch = TEXTURE_COUNTERS / values_of(lane);
    struct glcm_volume volume = volume_of(lane);
    const uint32_t slice_count = per_slice ? 1 : volume.slices;
    int error = allow_shared(cuda_device_of(&lane->base), reason, reason_size);

    if (!error)
        error = cuda_texture_region(lane, region, &volume.region, reason, reason_size);
    for (size_t first = 0; error == 0 && first < histograms; first += batch)
        error = run_histograms(lane, &volume, first, least(batch, histograms - first), slice_count,
                               counts, reason, reason_size);
    return error;
}

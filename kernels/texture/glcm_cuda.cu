/*
 * glcm_cuda.cu - grey level co-occurrence matrices (Hong 2018) on the GPU, and host code shared by
 * the texture operations.
 *
 * Levels are 8-bit codes 0 .. L - 1, and L for voxels that do not count. If the table is a plain
 * shift of bytes (floor(g L / 256)) and there is no region, stored values are shifted when read.
 * Otherwise a separate pass writes the codes. glcm_pairs.cu counts the pairs of codes. glcm_bits.cu
 * does so for few levels, with different codes. This file prepares and finishes the counting, and
 * counts levels whose counters do not fit in shared memory.
 */
#include "kernels/texture/texture_cuda.cuh"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 1024,
    WARP = 32,
    PER_THREAD = GLCM_PER_THREAD,
    A_SPAN = WARP * PER_THREAD,
    SLICES_OF_LINES = 16, /* min slices for lines along z */
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

struct codes {
    uint32_t word[4];
};

/* Codes */

/* Loads 16 stored values, with 0 beyond the row's end. */
template <typename Value>
static __device__ __forceinline__ void
cuda_glcm_load_values(const Value *row, uint32_t x, uint32_t columns, Value values[PER_THREAD])
{
    const uint32_t words_of = PER_THREAD * sizeof(Value) / sizeof(uint4);

    if (columns % PER_THREAD == 0) {
        const uint4 *from = (const uint4 *)(row + x);
        uint4 loaded[words_of];

#pragma unroll
        for (uint32_t i = 0; i < words_of; i++)
            loaded[i] = __ldg(from + i);
        memcpy(values, loaded, sizeof(loaded));
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < PER_THREAD; i++)
        values[i] = x + i < columns ? row[x + i] : 0;
}

/* Writes the codes of slices first .. first + gridDim.y - 1. Table 0 must be that of the first. */
template <typename Value>
static __global__ void
__launch_bounds__(THREADS) make_codes(struct glcm_volume volume, struct glcm_source source, uint32_t first)
{
    __shared__ uint16_t shared_table[256];
    const uint32_t z = first + blockIdx.y;
    const uint16_t *table = volume.tables + (volume.table_per_slice ? (size_t)blockIdx.y << 8 * sizeof(Value) : 0);

    if (sizeof(Value) == 1) {
        if (threadIdx.x < 256)
            shared_table[threadIdx.x] = table[threadIdx.x];
        __syncthreads();
    }
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < volume.rows * volume.pieces.by;
         i += gridDim.x * THREADS) {
        uint32_t y = (uint32_t)((uint64_t)i * volume.pieces.factor >> volume.pieces.shift); /* i / pieces.by */
        uint32_t x = (i - y * volume.pieces.by) * PER_THREAD;
        size_t row = (size_t)z * volume.rows + y;
        size_t from = (size_t)(source.first[2] + z) * source.rows + source.first[1] + y;
        uint32_t column = source.first[0] + x;
        size_t piece = from * source.words_per_row * 4 + column / PER_THREAD;
        uint32_t in = volume.region ? ((const uint16_t *)volume.region)[piece] : 0xFFFF;
        uint32_t counted = 0;
        Value values[PER_THREAD];
        struct codes codes = {{0, 0, 0, 0}};

        cuda_glcm_load_values((const Value *)volume.voxels + from * source.columns, column, source.columns, values);
#pragma unroll
        for (uint32_t k = 0; k < PER_THREAD; k++) {
            uint32_t value = (uint32_t)values[k] ^ volume.bias;
            uint32_t level = sizeof(Value) == 1 ? shared_table[value] : __ldg(table + value);
            bool counts = level != 0 && (in >> k & 1) != 0 && x + k < volume.columns;

            codes.word[k / 4] |= (counts ? level - 1 << volume.code_shift : volume.none) << 8 * (k % 4);
            counted |= (uint32_t)counts << k;
        }
        *(uint4 *)(volume.codes + row * volume.pitch + x) =
            make_uint4(codes.word[0], codes.word[1], codes.word[2], codes.word[3]);
        if (volume.counted)
            volume.counted[row * volume.words_per_row * 4 + x / PER_THREAD] = (uint16_t)counted;
    }
}

/* Counts many levels: part blockIdx.x of matrix blockIdx.y, for row group blockIdx.z of the levels.
 * Codes cannot mark voxels that do not count, so that bits do. */
static __global__ void
__launch_bounds__(THREADS)
    glcm_count_many(struct glcm_volume volume, uint32_t levels, uint32_t in_turn, uint32_t slice_count,
                    const struct glcm_set *sets, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared_counters[];
    const struct glcm_set set = sets[blockIdx.y];
    const uint64_t *counted = (const uint64_t *)volume.counted;
    const uint32_t lowest = blockIdx.z * in_turn;
    const uint64_t rows = (uint64_t)slice_count * volume.rows;
    uint32_t *counters = (uint32_t *)shared_counters;

    counts += (size_t)set.matrix[0] * levels * levels;
    texture_clear_counters<THREADS>(counters, in_turn * levels);
    for (uint64_t i = rows * blockIdx.x / gridDim.x + threadIdx.x / WARP; i < rows * (blockIdx.x + 1) / gridDim.x;
         i += THREADS / WARP) {
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
            atomicAdd(&counts[set.reversed[0] ? b * levels + a : a * levels + b], (unsigned long long)counters[i]);
    }
}

/* A lane */

void
cuda_counted_place(const struct kernels_lane *lane, struct kernels_memory *memory, struct cuda_counted *counted)
{
    const struct image_extent *extent = &lane->extent;

    counted->words = ((size_t)extent->columns + 63) / 64 * (size_t)(extent->rows * extent->slices);
    cuda_take(&memory->device, &counted->region, counted->words);
    cuda_take(&memory->device, &counted->counts, TEXTURE_COUNTERS);
    cuda_take(&memory->host, &counted->host_counts, TEXTURE_COUNTERS);
}

int
cuda_counted_region(struct cuda_lane *lane, const struct cuda_counted *counted, const uint64_t *region,
                    const uint64_t **on_device, struct error *error)
{
    const struct texture_region_state *held = texture_region_held(&lane->base, region);
    const int64_t first = held ? held->box.first[2] : 0;
    const int rc = cuda_await_slices(lane, first, held ? first + held->box.size[2] : lane->base.extent.slices, error);

    *on_device = cuda_region_bits(lane, region);
    if (rc || !region || *on_device)
        return rc;
    *on_device = counted->region;
    CUDA_SEND(lane, counted->region, region, counted->words);
    return 0;
}

int
cuda_counted_fetch(struct cuda_lane *lane, const struct cuda_counted *counted, size_t counters, uint64_t *counts,
                   bool last, struct error *error)
{
    if (last)
        return cuda_result_copy(lane, counts, counted->counts, counters * sizeof(*counts), error);
    CUDA_FETCH(lane, counted->host_counts, counted->counts, counters);
    CUDA_TRY(cuda_device_of(&lane->base), cudaStreamSynchronize(lane->work));
    memcpy(counts, counted->host_counts, counters * sizeof(uint64_t));
    return 0;
}

struct glcm_volume
cuda_texture_volume(const struct cuda_lane *lane)
{
    const struct image_extent *extent = &lane->base.extent;
    struct glcm_volume volume = {};

    volume.voxels = lane->device_voxels;
    volume.bias = lane->base.pixel == IMAGE_INT16 ? 0x8000 : 0;
    volume.columns = (uint32_t)extent->columns;
    volume.rows = (uint32_t)extent->rows;
    volume.slices = (uint32_t)extent->slices;
    volume.words_per_row = (volume.columns + 63) / 64;
    return volume;
}

unsigned
cuda_texture_parts(const struct cuda_lane *lane, size_t matrices)
{
    size_t voxels = (size_t)image_voxels(&lane->base.extent);
    size_t processors = (size_t)cuda_device_of(&lane->base)->multiprocessors;

    return (unsigned)texture_most(texture_most(1, processors / matrices), (voxels >> 30) + 1);
}

static void
cuda_glcm_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_glcm *own = cuda_glcm_of(cuda_lane_of(lane));
    size_t columns = (size_t)lane->extent.columns;

    own->code_pitch = (columns + PER_THREAD - 1) / PER_THREAD * PER_THREAD;
    cuda_take(&memory->device, &own->codes, (size_t)(lane->extent.rows * lane->extent.slices), own->code_pitch);
    cuda_counted_place(lane, memory, &own->counted);
    cuda_take(&memory->device, &own->tables, TEXTURE_TABLES, texture_values(cuda_lane_of(lane)));
    cuda_take(&memory->device, &own->sets, TEXTURE_MATRICES);
    cuda_take(&memory->host, &own->host_sets, TEXTURE_MATRICES);
}

/* A request's plan */

/* Returns the shift if the table is floor(g L / 256), otherwise 0. */
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
    plan->image.copies = WARP;
    while (plan->image.copies > 1 && k * k * plan->image.copies * sizeof(uint32_t) > shared)
        plan->image.copies /= 2;
}

/* Splits few lines into many parts, so that all warps of a block have work. */
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
    image->parts = (uint32_t)texture_most(1, texture_least((size_t)image->length, THREADS / WARP / beside));
    image->steps = ((uint32_t)image->length + image->parts - 1) / image->parts;
    image->lines = beside * image->parts;
}

/* Plans the part of the volume with codes: the region's box, aligned to whole pieces, or one voxel
 * if it is empty. Matrices per slice need all slices. */
static void
plan_box(const struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan)
{
    struct glcm_volume *volume = &plan->volume;
    struct texture_box box;

    *volume = cuda_texture_volume(lane);
    plan->source = {{0, 0, 0}, volume->columns, volume->rows, volume->words_per_row};
    texture_region_box(&lane->base, request->per_slice ? NULL : request->region, &box);
    for (int axis = 0; axis < 3; axis++)
        plan->source.first[axis] = (uint32_t)box.first[axis];
    plan->source.first[0] -= plan->source.first[0] % PER_THREAD;
    volume->columns = (uint32_t)texture_most(1, (size_t)(box.first[0] + box.size[0]) - plan->source.first[0]);
    volume->rows = (uint32_t)texture_most(1, (size_t)box.size[1]);
    volume->slices = (uint32_t)texture_most(1, (size_t)box.size[2]);
    volume->words_per_row = (volume->columns + 63) / 64;
    volume->pitch = (volume->columns + PER_THREAD - 1) / PER_THREAD * PER_THREAD;
    volume->pieces = divider_of(volume->pitch / PER_THREAD);
}

static void
make_plan(const struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan)
{
    const struct image_extent *extent = &lane->base.extent;
    const struct cuda_glcm *own = cuda_glcm_of(lane);
    struct glcm_image *image = &plan->image;

    plan_counters(request, cuda_device_of(&lane->base)->shared_per_block, plan);
    plan_box(lane, request, plan);
    plan->volume.codes = own->codes;
    if (!request->region && lane->base.pixel == IMAGE_UINT8 && request->levels.table_count == 1 &&
        extent->columns % PER_THREAD == 0 && !plan->many)
        image->shift = shift_of(&request->levels);
    plan->shifted = image->shift != 0;
    plan->slices = request->per_slice ? 1 : plan->volume.slices;
    image->rows = plan->shifted ? (const uint8_t *)lane->device_voxels : own->codes;
    image->pitch = plan->shifted ? (uint32_t)extent->columns : plan->volume.pitch;
    image->row_count = plan->volume.rows;
    image->slices = plan->volume.slices;
    image->mask = (0xFFu >> image->shift) * 0x01010101u;
    image->levels = (uint32_t)request->levels.levels;
    image->none = image->levels * 0x01010101u;
    plan->volume.none = plan->many ? 0 : (uint8_t)image->levels;
    plan->volume.counted = plan->many ? (uint16_t *)own->counted.region : NULL;
    plan->bits = glcm_bits_take(request, image, plan->slices);
    if (!plan->bits) {
        plan_lines(request->per_slice, image);
        return;
    }
    plan->volume.code_shift = GLCM_BITS_SHIFT;
    plan->volume.none = GLCM_BITS_NONE;
    image->surplus = plan->shifted ? image->shift - GLCM_BITS_SHIFT : 0;
}

/* Handles as many slices at a time as tables fit. */
static int
queue_codes(struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan, struct error *error)
{
    struct glcm_volume *volume = &plan->volume;
    struct cuda_device *device = cuda_device_of(&lane->base);
    const bool each = volume->table_per_slice;
    const size_t slices = volume->slices;
    const size_t batch = each ? (size_t)TEXTURE_TABLES : (size_t)TEXTURE_MATRICES;

    for (size_t first = 0; first < slices; first += batch) {
        size_t count = texture_least(batch, slices - first);
        size_t pieces = (size_t)volume->rows * volume->pieces.by;
        size_t parts = texture_most(
            1, texture_least((pieces + THREADS - 1) / THREADS, (size_t)device->multiprocessors * 2 / count));
        dim3 grid((unsigned)parts, (unsigned)count);

        const int rc = each || first == 0 ? cuda_levels_send(lane, &request->levels, plan->source.first[2] + first,
                                                             count, cuda_glcm_of(lane)->tables, &volume->tables, error)
                                          : 0;

        if (rc)
            return rc;
        if (lane->base.pixel == IMAGE_UINT8)
            make_codes<uint8_t><<<grid, THREADS, 0, lane->work>>>(*volume, plan->source, (uint32_t)first);
        else
            make_codes<uint16_t><<<grid, THREADS, 0, lane->work>>>(*volume, plan->source, (uint32_t)first);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

int
cuda_glcm_begin(struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    const size_t spans = (cuda_glcm_of(lane)->code_pitch + PER_THREAD + A_SPAN - 1) / A_SPAN;
    int rc;

    /* Spans have 31-bit numbers. More spans occur only with 2^31 rows of a few voxels. */
    if (spans * (size_t)extent->rows * (size_t)extent->slices > INT32_MAX)
        return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE, "there are too many rows for the GPU");
    make_plan(lane, request, plan);
    plan->volume.table_per_slice = request->levels.table_count > 1;
    if (plan->shifted)
        return 0;
    rc = cuda_counted_region(lane, &cuda_glcm_of(lane)->counted, request->region, &plan->volume.region, error);
    return rc ? rc : queue_codes(lane, request, plan, error);
}

int
cuda_glcm_send(struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan, size_t first,
               size_t count, struct error *error)
{
    struct cuda_glcm *own = cuda_glcm_of(lane);
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaEventSynchronize(own->sent));
    if (plan->bits)
        plan->share = glcm_arrange_bits(request, first, count, own->host_sets);
    else
        plan->share =
            glcm_arrange(request, first, count, &plan->image, (size_t)device->multiprocessors, own->host_sets);
    CUDA_SEND(lane, own->sets, own->host_sets, plan->share.sets);
    CUDA_TRY(device, cudaEventRecord(own->sent, lane->work));
    return 0;
}

int
cuda_glcm_count(struct cuda_lane *lane, const struct glcm_plan *plan, size_t count, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_glcm *own = cuda_glcm_of(lane);
    const size_t counters = count * plan->image.levels * plan->image.levels, sets = plan->share.sets;
    const size_t most = device->shared_per_block;

    CUDA_TRY(device, cudaMemsetAsync(own->counted.counts, 0, counters * sizeof(uint64_t), lane->work));
    if (plan->many) {
        const dim3 grid(cuda_texture_parts(lane, sets), (unsigned)sets,
                        (plan->image.levels + plan->in_turn - 1) / plan->in_turn);

        CUDA_TRY(device, cudaFuncSetAttribute(glcm_count_many, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));
        glcm_count_many<<<grid, THREADS, plan->shared, lane->work>>>(plan->volume, plan->image.levels, plan->in_turn,
                                                                     plan->slices, own->sets, own->counted.counts);
    } else if (plan->bits) {
        CUDA_TRY(device, glcm_bits_launch(&plan->image, plan->slices, &plan->share, (size_t)device->multiprocessors,
                                          own->sets, own->counted.counts, most, lane->work));
    } else {
        CUDA_TRY(device,
                 glcm_pairs_launch(&plan->image, &plan->share, own->sets, own->counted.counts, most, lane->work));
    }
    CUDA_LAUNCHED(device);
    return 0;
}

static int
cuda_glcm_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_glcm_request *asked = (const struct texture_glcm_request *)given;
    const struct texture_glcm *request = asked->glcm;
    struct cuda_lane *lane = cuda_lane_of(base);
    const size_t size = (size_t)request->levels.levels * (size_t)request->levels.levels;
    const size_t matrices = request->offset_count * (request->per_slice ? (size_t)base->extent.slices : 1);
    const size_t batch = texture_least(TEXTURE_MATRICES, TEXTURE_COUNTERS / size);
    struct glcm_plan plan = {};
    int rc = cuda_glcm_begin(lane, request, &plan, error);

    for (size_t first = 0; rc == 0 && first < matrices; first += batch) {
        size_t count = texture_least(batch, matrices - first);

        rc = cuda_glcm_send(lane, request, &plan, first, count, error);
        if (rc == 0)
            rc = cuda_glcm_count(lane, &plan, count, error);
        if (rc == 0)
            rc = cuda_counted_fetch(lane, &cuda_glcm_of(lane)->counted, count * size, asked->counts + first * size,
                                    first + count >= matrices, error);
    }
    return rc;
}

static int
cuda_glcm_open(struct kernels_lane *lane, struct error *error)
{
    CUDA_TRY(cuda_device_of(lane),
             cudaEventCreateWithFlags(&cuda_glcm_of(cuda_lane_of(lane))->sent, cudaEventDisableTiming));
    return 0;
}

static void
cuda_glcm_close(struct kernels_lane *lane)
{
    (void)cudaEventDestroy(cuda_glcm_of(cuda_lane_of(lane))->sent);
}

const struct kernels_op cuda_glcm_op = {
    .name = "texture (co-occurrence)",
    .state_size = sizeof(struct cuda_glcm),
    .transient = true,
    .awaits = true,
    .open = cuda_glcm_open,
    .close = cuda_glcm_close,
    .needs = kernels_op_asked,
    .place = cuda_glcm_place,
    .run = cuda_glcm_run,
};

/*
 * enclosed_cuda.cu - enclosed voxels on the GPU: a kernel per family of sheets, with a block per sheet. The block has one bit per
 * voxel of its sheet in shared memory, for the ray that it casts, and the counters in registers. Three more rays of m voxels, m
 * steps apart, make rays of 4 m voxels.
 */
#include "kernels/enclosed/enclosed_cuda.cuh"

enum { ENCLOSED_SHEET_WORDS = 16384 }; /* the largest sheet: 512 threads with 32 words each */

struct cuda_enclosed {
    uint32_t words_per_row, words, sheet_words;
    uint64_t *mask, *bits, *counts; /* counts: the digits of the volume's counters, after one another */
};

static bool
cuda_enclosed_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_enclosed *own = (struct cuda_enclosed *)kernels_state(lane, KERNELS_ENCLOSED);
    const struct image_extent *extent = &lane->extent;
    const int64_t words_per_row = (extent->columns - 1) / 64 + 1;
    const int64_t rows = extent->rows > extent->slices ? extent->rows : extent->slices;

    (void)demand;
    own->words_per_row = (uint32_t)words_per_row;
    own->words = (uint32_t)(words_per_row * extent->rows * extent->slices);
    own->sheet_words = (uint32_t)(words_per_row * rows);
    return words_per_row * rows <= ENCLOSED_SHEET_WORDS && words_per_row * extent->rows * extent->slices <= INT32_MAX &&
           own->sheet_words * sizeof(uint64_t) + 1024 <= cuda_device_of(lane)->shared_per_block;
}

static void
cuda_enclosed_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_enclosed *own = (struct cuda_enclosed *)kernels_state(lane, KERNELS_ENCLOSED);

    cuda_take(&memory->device, &own->mask, own->words);
    cuda_take(&memory->device, &own->bits, own->words);
    cuda_take(&memory->device, &own->counts, ENCLOSED_DIGITS, own->words);
}

/* A family of sheets, and the memory that its kernel reads and writes. */
struct enclosed_cast {
    struct enclosed_family family;
    int32_t columns, rows, slices;
    int32_t words_per_row, words;
    uint64_t tail; /* the valid bits of the last word of a row */
    const uint64_t *mask;
    uint64_t *bits, *counts;
    int32_t at_least; /* 0: store the counters; otherwise the result */
};

/* Returns a word of the sheet in shared memory, each voxel that of the voxel at this step. */
static __device__ __forceinline__ uint64_t
enclosed_fetch(const struct enclosed_cast &cast, const uint64_t *plane, int32_t rows, int32_t row, int32_t word,
               int32_t x, int32_t down)
{
    const int32_t low = word + (x >> 6), bits = x & 63;
    const uint64_t *from = plane + (row + down) * cast.words_per_row + low;
    uint64_t fetched = 0;

    if ((uint32_t)(row + down) >= (uint32_t)rows)
        return 0;
    if ((uint32_t)low < (uint32_t)cast.words_per_row)
        fetched = from[0] >> bits;
    if (bits != 0 && (uint32_t)(low + 1) < (uint32_t)cast.words_per_row)
        fetched |= from[1] << (64 - bits);
    return fetched;
}

/* Returns the voxels whose next voxel on a knight's ray, or a voxel between the two, lies in the mask. */
static __device__ __forceinline__ uint64_t
enclosed_begin_knight(const struct enclosed_cast &cast, const struct enclosed_ray &ray, const uint64_t *plane,
                      int32_t rows, int32_t row, int32_t word)
{
    const int32_t x = ray.x > 0 ? 1 : -1, down = ray.row > 0 ? 1 : -1;
    /* The bits whose voxel ray.x columns further lies in the volume. */
    const int32_t first = max(-ray.x - 64 * word, 0), end = min(cast.columns - ray.x - 64 * word, 64);

    if ((uint32_t)(row + ray.row) >= (uint32_t)rows || first >= 64 || end <= first)
        return 0;
    return (enclosed_fetch(cast, plane, rows, row, word, ray.x, ray.row) |
            enclosed_fetch(cast, plane, rows, row, word, ray.x / 2, ray.row / 2) |
            enclosed_fetch(cast, plane, rows, row, word, x, down)) &
           (~UINT64_C(0) >> (64 - (end - first)) << first);
}

/* The words t, t + blockDim.x, ... of the sheet, of thread t. */
template <uint32_t WORDS> struct enclosed_words {
    int32_t rows, count; /* of the sheet */
    int32_t row[WORDS], word[WORDS], place[WORDS];
    uint64_t mask[WORDS], own[WORDS], counts[ENCLOSED_DIGITS][WORDS];
};

#define ENCLOSED_EACH(i, index)                                                                                        \
    _Pragma("unroll (WORDS <= 8 ? WORDS : 1)") for (int32_t i = 0, index = (int32_t)threadIdx.x; i < (int32_t)WORDS;   \
                                                    i++, index += (int32_t)blockDim.x)

/* Loads the mask, and the counters so far. Returns whether the mask has a voxel among the words. */
template <uint32_t WORDS>
static __device__ __forceinline__ bool
enclosed_load(const struct enclosed_cast &cast, struct enclosed_words<WORDS> &words)
{
    const struct enclosed_family &family = cast.family;
    const struct enclosed_sheet sheet = enclosed_sheet_of(cast.rows, cast.slices, family.y, family.z, blockIdx.x);
    uint64_t any = 0;

    words.rows = (int32_t)sheet.rows;
    words.count = words.rows * cast.words_per_row;
    ENCLOSED_EACH(i, index)
    {
        const int32_t row = index / cast.words_per_row, word = index - row * cast.words_per_row;
        const int64_t y = sheet.y + row * family.y, z = sheet.z + row * family.z;
        const bool in = index < words.count;

        words.row[i] = row;
        words.word[i] = word;
        words.place[i] = (int32_t)((z * cast.rows + y) * cast.words_per_row + word);
        words.mask[i] = in ? cast.mask[words.place[i]] : 0;
        if (word == cast.words_per_row - 1)
            words.mask[i] &= cast.tail;
        any |= words.mask[i];
#pragma unroll
        for (int32_t digit = 0; digit < ENCLOSED_DIGITS; digit++)
            words.counts[digit][i] =
                in && family.before >> digit ? cast.counts[(int64_t)digit * cast.words + words.place[i]] : 0;
    }
    return any != 0;
}

/* Shows the block `own` of all its threads. */
template <uint32_t WORDS>
static __device__ __forceinline__ void
enclosed_show(const struct enclosed_words<WORDS> &words, uint64_t *plane)
{
    __syncthreads();
    ENCLOSED_EACH(i, index)
    if (index < words.count)
        plane[index] = words.own[i];
    __syncthreads();
}

/* Sets `own` to the voxels whose ray meets the mask. */
template <uint32_t WORDS>
static __device__ __forceinline__ void
enclosed_cast_ray(const struct enclosed_cast &cast, const struct enclosed_ray &ray, struct enclosed_words<WORDS> &words,
                  uint64_t *plane)
{
    const int32_t voxels = ray.voxels - ray.knight;

    ENCLOSED_EACH(i, index)
    words.own[i] = words.mask[i];
    enclosed_show(words, plane);
    if (ray.knight) {
        ENCLOSED_EACH(i, index)
        if (index < words.count)
            words.own[i] = enclosed_begin_knight(cast, ray, plane, words.rows, words.row[i], words.word[i]);
        enclosed_show(words, plane);
    }
    for (int32_t m = 1; m < voxels; m = min(4 * m, voxels)) {
        ENCLOSED_EACH(i, index)
        for (int32_t k = 1; k < 4 && index < words.count; k++) {
            const int32_t by = min(k * m, voxels - m);

            words.own[i] |=
                enclosed_fetch(cast, plane, words.rows, words.row[i], words.word[i], by * ray.x, by * ray.row);
        }
        if (4 * m < voxels)
            enclosed_show(words, plane);
    }
}

/* Adds `own`, and the mask if `knight`, to the counters. */
template <uint32_t WORDS>
static __device__ __forceinline__ void
enclosed_count(struct enclosed_words<WORDS> &words, bool knight)
{
    ENCLOSED_EACH(i, index)
    {
        uint64_t carry = knight ? words.own[i] | words.mask[i] : words.own[i];

        (void)index;
#pragma unroll
        for (int32_t digit = 0; digit < ENCLOSED_DIGITS; digit++) {
            const uint64_t count = words.counts[digit][i];

            words.counts[digit][i] = count ^ carry;
            carry &= count;
        }
    }
}

/* Stores the counters or the result. */
template <uint32_t WORDS>
static __device__ __forceinline__ void
enclosed_store(const struct enclosed_cast &cast, const struct enclosed_words<WORDS> &words)
{
    const int32_t addend = (1 << ENCLOSED_DIGITS) - cast.at_least; /* carries from the limit on */

    ENCLOSED_EACH(i, index)
    if (index < words.count) {
        const uint64_t valid = words.word[i] == cast.words_per_row - 1 ? cast.tail : ~UINT64_C(0);
        uint64_t carry = 0;

#pragma unroll
        for (int32_t digit = 0; digit < ENCLOSED_DIGITS; digit++) {
            const uint64_t count = words.counts[digit][i];

            carry = addend >> digit & 1 ? carry | count : carry & count;
            if (cast.at_least == 0)
                cast.counts[(int64_t)digit * cast.words + words.place[i]] = count;
        }
        if (cast.at_least > 0)
            cast.bits[words.place[i]] = carry & valid;
    }
}

template <uint32_t WORDS, int32_t THREADS>
__global__ void
__launch_bounds__(THREADS) enclosed_cast_sheet(const __grid_constant__ struct enclosed_cast cast)
{
    extern __shared__ uint64_t enclosed_plane[];
    struct enclosed_words<WORDS> words;

    if (__syncthreads_or(enclosed_load(cast, words)))
        for (int32_t r = 0; r < cast.family.count; r++) {
            const struct enclosed_ray ray = cast.family.rays[r];

            enclosed_cast_ray(cast, ray, words, enclosed_plane);
            enclosed_count(words, ray.knight);
        }
    enclosed_store(cast, words);
}

template <uint32_t WORDS, int32_t THREADS>
static int
enclosed_queue(struct cuda_lane *lane, const struct enclosed_cast *cast, uint32_t sheets, uint32_t sheet_words,
               struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const auto kernel = enclosed_cast_sheet<WORDS, THREADS>;
    const uint32_t bytes = sheet_words * (uint32_t)sizeof(uint64_t);
    const uint32_t threads = ((sheet_words - 1) / WORDS + 32) / 32 * 32;

    CUDA_TRY(device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<sheets, threads, bytes, lane->work>>>(*cast);
    CUDA_LAUNCHED(device);
    return 0;
}

int
cuda_enclosed_queue(struct cuda_lane *lane, const struct enclosed_plan *plan, struct error *error)
{
    const struct cuda_enclosed *own = (const struct cuda_enclosed *)kernels_state(&lane->base, KERNELS_ENCLOSED);
    const struct image_extent *extent = &lane->base.extent;
    struct enclosed_cast cast = {};
    int rc = 0;

    cast.columns = (int32_t)extent->columns;
    cast.rows = (int32_t)extent->rows;
    cast.slices = (int32_t)extent->slices;
    cast.words_per_row = (int32_t)own->words_per_row;
    cast.words = (int32_t)own->words;
    cast.tail = ~UINT64_C(0) >> (63 - (extent->columns - 1) % 64);
    cast.mask = own->mask;
    cast.bits = own->bits;
    cast.counts = own->counts;
    for (int32_t i = 0; i < plan->count && rc == 0; i++) {
        cast.family = plan->families[i];
        cast.at_least = i == plan->count - 1 ? plan->request->at_least : 0;
        const uint32_t sheets = (uint32_t)enclosed_sheets(extent, cast.family.y, cast.family.z);
        const struct enclosed_sheet middle =
            enclosed_sheet_of(extent->rows, extent->slices, cast.family.y, cast.family.z,
                              (int64_t)sheets / 2); /* no sheet has more rows */
        const uint32_t words = (uint32_t)(middle.rows * cast.words_per_row);

        if (words <= 4 * 256)
            rc = enclosed_queue<4, 256>(lane, &cast, sheets, words, error);
        else if (words <= 8 * 512)
            rc = enclosed_queue<8, 512>(lane, &cast, sheets, words, error);
        else
            rc = enclosed_queue<32, 512>(lane, &cast, sheets, words, error);
    }
    return rc;
}

static int
cuda_enclosed_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct enclosed_plan *plan = (const struct enclosed_plan *)given;
    const struct cuda_enclosed *own = (const struct cuda_enclosed *)kernels_state(base, KERNELS_ENCLOSED);
    struct cuda_lane *lane = cuda_lane_of(base);

    CUDA_SEND(lane, own->mask, plan->request->mask, (size_t)own->words);
    const int rc = cuda_enclosed_queue(lane, plan, error);
    return rc ? rc
              : cuda_result_copy(lane, plan->request->bits, own->bits, (size_t)own->words * sizeof(*own->bits), error);
}

const struct kernels_op cuda_enclosed_op = {
    .name = "enclosed voxels",
    .state_size = sizeof(struct cuda_enclosed),
    .transient = true,
    .needs = cuda_enclosed_needs,
    .place = cuda_enclosed_place,
    .run = cuda_enclosed_run,
};

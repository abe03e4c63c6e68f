/*
 * glcm_bits.cu - counts the pairs of grey level co-occurrence matrices (Hong 2018) of up to eight
 * levels by bit products.
 *
 * Let A have a row for each level of the neighbours and a column for each voxel, 1 if the voxel's
 * neighbour has that level. Let B be the same for the voxels themselves. A times B transposed is
 * the matrix. The tensor cores multiply 16 x 256 by 256 x 8 bits in one instruction, which is two
 * matrices of 256 voxels. The four matrices of distance 1 take two. The remaining work is making A
 * and B. Voxels that do not count have 0 in both columns.
 *
 * A warp takes a strip: 32 words of 32 voxels, one word per lane, and then those of the next rows.
 * Each lane makes the eight masks of its word, one per level. The warp exchanges them in shared
 * memory, so that a lane gets eight words of one level's mask, the layout of the product. The masks
 * of some rows stay there as neighbours for other rows. Neighbours in x are shifted words, with
 * bits from the next lane. The first and last word of a strip only provide these bits, and belong
 * to the neighbouring strips.
 *
 * The slices of a volume form one long row, with an empty word between two.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/texture/texture_cuda.cuh"

#include <stdlib.h>

enum {
    WARP = 32,
    WARPS = 8,
    THREADS = WARPS * WARP,
    BLOCKS = 3, /* per multiprocessor */
    BUFFERS = 3,
    LEVELS = 8,
    SUMS = GLCM_PLACES * LEVELS * LEVELS,
    WORD = 32,            /* voxels */
    WORDS = 8,            /* words of a lane in the product */
    OWN_WORDS = WARP - 2, /* own words of a strip */
    /* bytes of a level's masks; all lanes use different banks */
    PITCH = (WARP + 4) * sizeof(uint32_t),
    ROW = LEVELS * PITCH,   /* bytes of a row's masks */
    ROWS_OF_BAND = 1 << 18, /* max rows before a counter overflows */
    MOST_BEHIND = 8,        /* max rows above a voxel's row with neighbours */
    SPARE_ROWS = 2,         /* rows of masks: the current and the next */
    OWN = 1 << GLCM_PLACE_OWN,
    RIGHT = 1 << GLCM_PLACE_RIGHT,
    ABOVE = 1 << GLCM_PLACE_ABOVE,
    LEFT = 1 << GLCM_PLACE_LEFT,
    OTHERS = RIGHT | ABOVE | LEFT,
};

static const uint32_t all_bits = 0xFFFFFFFF;

/* Distribution of the image: a warp takes the rows of a band of a strip. */
struct split {
    uint32_t words;  /* per row of a slice, including the empty one */
    uint32_t slices; /* per set */
    uint32_t strips, bands;
    uint32_t blocks; /* per set */
    uint32_t kept;   /* rows of masks per warp */
};

/* 32 codes. */
struct bits_codes {
    uint4 half[2];
};

/* A lane's word of the strip. */
struct word {
    const uint8_t *at;
    bool has[2]; /* halves inside the image */
    uint32_t there;
};

/* Masks of one level for eight words, and for those next to them. */
struct masks {
    uint32_t word[WORDS];
    uint32_t before, after;
};

/* A lane's state for the product. */
struct product {
    uint32_t before, after; /* all ones if the strip goes on there */
    uint32_t first, last;   /* all ones if those words belong to the strip */
    int32_t x[GLCM_PLACES];
    int32_t sums[2][4];
};

/* Places of a warp's masks in shared memory: of the row, and of the one `behind`. */
struct ring {
    unsigned char *write;
    const unsigned char *read;
    uint32_t size, here, behind;
};

/* Selects bits of `a` where `of_a` is 1, otherwise of `b`. The compiler would use two
 * instructions. */
static __device__ __forceinline__ uint32_t
pick(uint32_t a, uint32_t b, uint32_t of_a)
{
    return ptx_logic<0xE2>(a, of_a, b);
}

/* Transposes bits 7, 6, 5 and 4 of 32 codes into words. First packs two codes per byte, then swaps
 * bytes, pairs of bits and bits between words. */
static __device__ __forceinline__ void
make_planes(const struct bits_codes &codes, uint32_t planes[4])
{
    const uint32_t evens = 0x55555555, pairs = 0x33333333, halves = 0x0F0F0F0F;
    const uint4 &a = codes.half[0], &b = codes.half[1];
    const uint32_t of[4] = {pick(a.x >> 4, a.y, halves), pick(a.z >> 4, a.w, halves), pick(b.x >> 4, b.y, halves),
                            pick(b.z >> 4, b.w, halves)};
    const uint32_t low[2] = {__byte_perm(of[0], of[1], 0x5140), __byte_perm(of[2], of[3], 0x5140)};
    const uint32_t high[2] = {__byte_perm(of[0], of[1], 0x7362), __byte_perm(of[2], of[3], 0x7362)};
    const uint32_t byte[4] = {__byte_perm(low[0], low[1], 0x5410), __byte_perm(low[0], low[1], 0x7632),
                              __byte_perm(high[0], high[1], 0x5410), __byte_perm(high[0], high[1], 0x7632)};
    const uint32_t upper[2] = {pick(byte[0] >> 2, byte[2], pairs), pick(byte[1] >> 2, byte[3], pairs)};
    const uint32_t lower[2] = {pick(byte[0], byte[2] << 2, pairs), pick(byte[1], byte[3] << 2, pairs)};

    planes[0] = pick(upper[0] >> 1, upper[1], evens);
    planes[1] = pick(upper[0], upper[1] << 1, evens);
    planes[2] = pick(lower[0] >> 1, lower[1], evens);
    planes[3] = pick(lower[0], lower[1] << 1, evens);
}

static __device__ __forceinline__ uint32_t
next_of(const struct ring &ring, uint32_t place)
{
    return place + ROW == ring.size ? 0 : place + ROW;
}

/* Makes the eight masks of a lane's word of the row after `here`. Stored values have no bit for
 * voxels that do not count. */
template <bool SHIFTED>
static __device__ __forceinline__ void
make_next(const struct bits_codes &codes, uint32_t there, const struct ring &ring)
{
    unsigned char *at = ring.write + next_of(ring, ring.here);
    uint32_t planes[4];

    make_planes(codes, planes);
    if (!SHIFTED)
        there &= ~planes[3];
#pragma unroll
    for (uint32_t level = 0; level < LEVELS; level++)
        *(uint32_t *)(at + level * PITCH) = there & (level & 4 ? planes[0] : ~planes[0]) &
                                            (level & 2 ? planes[1] : ~planes[1]) & (level & 1 ? planes[2] : ~planes[2]);
}

template <bool BEFORE, bool AFTER>
static __device__ __forceinline__ struct masks
read_masks(const struct product &product, const unsigned char *at)
{
    const uint4 low = *(const uint4 *)at, high = *(const uint4 *)(at + sizeof(low));
    struct masks masks = {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}, 0, 0};

    if (BEFORE)
        masks.before = __shfl_up_sync(all_bits, masks.word[WORDS - 1], 1) & product.before;
    if (AFTER)
        masks.after = __shfl_down_sync(all_bits, masks.word[0], 1) & product.after;
    return masks;
}

/* Returns word i of the neighbours x (0 .. 31) voxels to the right. */
static __device__ __forceinline__ uint32_t
to_the_right(const struct masks &masks, int i, int32_t x)
{
    return __funnelshift_r(masks.word[i], i == WORDS - 1 ? masks.after : masks.word[i + 1], (uint32_t)x);
}

/* Counts a row's pairs. `other` is the row behind. A product adds the pairs of 256 voxels to two matrices. */
template <int PLACES>
static __device__ __forceinline__ void
count_here(const struct ring &ring, struct product *product)
{
    const struct masks own = read_masks<false, (PLACES & OWN) != 0>(*product, ring.read + ring.here);
    struct masks other = {};

    if (PLACES & OTHERS)
        other = read_masks<(PLACES & LEFT) != 0, (PLACES & RIGHT) != 0>(*product, ring.read + ring.behind);
#pragma unroll
    for (int i = 0; i < WORDS; i += 2) {
        uint32_t voxels[2], of[GLCM_PLACES][2];

#pragma unroll
        for (int k = 0; k < 2; k++) {
            voxels[k] = own.word[i + k];
            of[GLCM_PLACE_OWN][k] = PLACES & OWN ? to_the_right(own, i + k, product->x[GLCM_PLACE_OWN]) : 0;
            of[GLCM_PLACE_RIGHT][k] = PLACES & RIGHT ? to_the_right(other, i + k, product->x[GLCM_PLACE_RIGHT]) : 0;
            of[GLCM_PLACE_ABOVE][k] = PLACES & ABOVE ? other.word[i + k] : 0;
            of[GLCM_PLACE_LEFT][k] = PLACES & LEFT
                                         ? __funnelshift_l(i + k == 0 ? other.before : other.word[i + k - 1],
                                                           other.word[i + k], (uint32_t)-product->x[GLCM_PLACE_LEFT])
                                         : 0;
        }
        if (i == 0)
            voxels[0] &= product->first;
        if (i == WORDS - 2)
            voxels[1] &= product->last;
        if (PLACES & (OWN | RIGHT))
            ptx_multiply_bits(product->sums[0], of[GLCM_PLACE_OWN][0], of[GLCM_PLACE_RIGHT][0], of[GLCM_PLACE_OWN][1],
                              of[GLCM_PLACE_RIGHT][1], voxels[0], voxels[1]);
        if (PLACES & (ABOVE | LEFT))
            ptx_multiply_bits(product->sums[1], of[GLCM_PLACE_ABOVE][0], of[GLCM_PLACE_LEFT][0],
                              of[GLCM_PLACE_ABOVE][1], of[GLCM_PLACE_LEFT][1], voxels[0], voxels[1]);
    }
}

static __device__ __forceinline__ void
glcm_bits_advance(struct ring *ring)
{
    ring->here = next_of(*ring, ring->here);
    ring->behind = next_of(*ring, ring->behind);
}

/* Calls use(codes) for each of `count` rows, while later rows load. */
template <typename Use>
static __device__ __forceinline__ void
glcm_bits_each_row(const struct glcm_image &image, struct word *word, uint32_t count, const Use &use)
{
    struct bits_codes codes[BUFFERS] = {};
    const auto fetch = [&](struct bits_codes *into) {
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (word->has[i])
                into->half[i] = __ldg((const uint4 *)word->at + i);
        word->at += image.pitch;
    };

    glcm_each_row(codes, count, fetch, use);
}

/* Counts rows first .. last - 1 of a strip. Makes the next row's masks while a row is counted. Rows
 * above the image have no masks. */
template <bool SHIFTED, int PLACES>
static __device__ __forceinline__ void
count_strip(const struct glcm_image &image, struct word word, uint32_t first, uint32_t last, struct ring ring,
            struct product *product)
{
    const uint32_t behind = ring.size / ROW - SPARE_ROWS, before = min(first, behind);

    word.at += (size_t)(first - before) * image.pitch;
    for (uint32_t k = before; k < behind; k++, glcm_bits_advance(&ring))
        make_next<SHIFTED>({}, 0, ring);
    glcm_bits_each_row(image, &word, before + 1, [&](const struct bits_codes &codes) {
        make_next<SHIFTED>(codes, word.there, ring);
        glcm_bits_advance(&ring);
    });
    glcm_bits_each_row(image, &word, last - first - 1, [&](const struct bits_codes &codes) {
        __syncwarp();
        make_next<SHIFTED>(codes, word.there, ring);
        count_here<PLACES>(ring, product);
        glcm_bits_advance(&ring);
    });
    __syncwarp();
    count_here<PLACES>(ring, product);
}

template <bool SHIFTED, int PLACES>
static __device__ __forceinline__ void
glcm_bits_count_part(const struct glcm_image &image, const struct split &split, const struct glcm_set &set,
                     uint32_t strip, uint32_t band, unsigned char *masks, struct product *product)
{
    const uint32_t first = (uint32_t)((uint64_t)image.row_count * band / split.bands);
    const uint32_t last = (uint32_t)((uint64_t)image.row_count * (band + 1) / split.bands);
    const uint32_t lane = threadIdx.x % WARP, index = strip * OWN_WORDS + lane;
    const uint32_t slice = index / split.words, x = index % split.words * WORD;
    const bool begins = lane % 4 == 0, ends = lane % 4 == 3;
    struct word word;
    struct ring ring;

    word.at = image.rows + ((size_t)set.first_slice + slice) * image.row_count * image.pitch + x;
    word.has[0] = slice < split.slices && x < image.pitch;
    word.has[1] = slice < split.slices && x + WORD / 2 < image.pitch;
    word.there = (word.has[0] ? 0x0000FFFF : 0) | (word.has[1] ? 0xFFFF0000 : 0);
    ring.size = (PLACES & OTHERS ? (uint32_t)set.behind + SPARE_ROWS : SPARE_ROWS) * ROW;
    ring.write = masks + lane * sizeof(uint32_t);
    ring.read = masks + lane / 4 * PITCH + lane % 4 * WORDS * sizeof(uint32_t);
    ring.here = ring.size - ROW;
    ring.behind = ROW;
    for (int place = 0; place < GLCM_PLACES; place++)
        product->x[place] = set.x[place];
    product->before = begins ? 0 : all_bits;
    product->after = ends ? 0 : all_bits;
    product->first = begins && strip > 0 ? 0 : all_bits;
    product->last = ends && strip + 1 < split.strips ? 0 : all_bits;
    count_strip<SHIFTED, PLACES>(image, word, first, last, ring, product);
}

/* Counts a warp's part of a set. */
template <bool SHIFTED>
static __device__ __forceinline__ struct product
count_any(const struct glcm_image &image, const struct split &split, const struct glcm_set &set, uint32_t index,
          unsigned char *masks)
{
    const uint32_t strip = index % split.strips, band = index / split.strips;
    struct product product = {};

    if (band >= split.bands)
        return product;
    switch (set.places) {
    case OWN:
        glcm_bits_count_part<SHIFTED, OWN>(image, split, set, strip, band, masks, &product);
        return product;
    case RIGHT:
        glcm_bits_count_part<SHIFTED, RIGHT>(image, split, set, strip, band, masks, &product);
        return product;
    case ABOVE:
        glcm_bits_count_part<SHIFTED, ABOVE>(image, split, set, strip, band, masks, &product);
        return product;
    case LEFT:
        glcm_bits_count_part<SHIFTED, LEFT>(image, split, set, strip, band, masks, &product);
        return product;
    default:
        glcm_bits_count_part<SHIFTED, OWN | OTHERS>(image, split, set, strip, band, masks, &product);
        return product;
    }
}

/* The blocks of a set are consecutive. The counts must be 0 initially. */
template <bool SHIFTED>
static __global__ void
__launch_bounds__(THREADS, BLOCKS)
    glcm_bits_count_sets(const __grid_constant__ struct glcm_image image, const __grid_constant__ struct split split,
                         const struct glcm_set *sets, unsigned long long *counts)
{
    extern __shared__ __align__(16) unsigned char shared[];
    const struct glcm_set &set = sets[blockIdx.x / split.blocks];
    const uint32_t warp = threadIdx.x / WARP, neighbour = threadIdx.x % WARP / 4, voxel = threadIdx.x % 4 * 2;
    uint32_t *sums = (uint32_t *)shared;
    struct product product;

    for (uint32_t i = threadIdx.x; i < SUMS; i += THREADS)
        sums[i] = 0;
    __syncthreads();
    product = count_any<SHIFTED>(image, split, set, blockIdx.x % split.blocks * WARPS + warp,
                                 shared + SUMS * sizeof(*sums) + warp * split.kept * ROW);
#pragma unroll
    for (uint32_t place = 0; place < GLCM_PLACES; place++)
#pragma unroll
        for (uint32_t k = 0; k < 2; k++)
            atomicAdd(&sums[(place * LEVELS + voxel + k) * LEVELS + neighbour],
                      (uint32_t)product.sums[place / 2][place % 2 * 2 + k]);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < SUMS; i += THREADS) {
        const uint32_t place = i / (LEVELS * LEVELS), levels = image.levels;
        const uint32_t a = i / LEVELS % LEVELS >> image.surplus, b = i % LEVELS >> image.surplus;
        const uint32_t at = set.reversed[place] ? b * levels + a : a * levels + b;

        if (sums[i] != 0 && set.places >> place & 1)
            atomicAdd(&counts[(size_t)set.matrix[place] * levels * levels + at], (unsigned long long)sums[i]);
    }
}

/* Returns the words of the long row of `slices` slices. */
static size_t
words_of(const struct glcm_image *image, size_t slices)
{
    return ((image->pitch + WORD - 1) / WORD + 1) * slices - 1;
}

static size_t
strips_of(size_t words)
{
    return words <= WARP ? 1 : (words - 2 + OWN_WORDS - 1) / OWN_WORDS;
}

bool
glcm_bits_take(const struct texture_glcm *request, const struct glcm_image *image, size_t slices)
{
    const size_t words = words_of(image, slices), voxels = image->pitch * slices;
    const size_t room = strips_of(words) * WARP * WORD;

    for (size_t i = 0; i < request->offset_count; i++) {
        const struct texture_offset *offset = &request->offsets[i];

        if (offset->z != 0 || abs(offset->x) >= WORD || abs(offset->y) > MOST_BEHIND)
            return false;
    }
    /* If more than half of the lanes have no voxels, counting pairs of a single matrix is
     * faster. */
    return request->levels.levels <= LEVELS && words <= INT32_MAX && voxels >= room / 2;
}

cudaError_t
glcm_bits_launch(const struct glcm_image *image, size_t slices, const struct glcm_share *share, size_t processors,
                 const struct glcm_set *sets, unsigned long long *counts, size_t most, cudaStream_t stream)
{
    /* Make as many bands as warps run at a time. No counter of a block may overflow. */
    const size_t strips = strips_of(words_of(image, slices));
    const size_t blocks = texture_most(1, processors * BLOCKS / share->sets);
    const size_t bands = texture_most(blocks * WARPS / strips, image->row_count / ROWS_OF_BAND + 1);
    struct split split = {};

    split.words = (image->pitch + WORD - 1) / WORD + 1;
    split.slices = (uint32_t)slices;
    split.strips = (uint32_t)strips;
    split.bands = (uint32_t)(bands < image->row_count ? bands : image->row_count);
    split.blocks = (uint32_t)((split.bands * strips + WARPS - 1) / WARPS);
    split.kept = share->behind + SPARE_ROWS;
    const size_t shared = SUMS * sizeof(uint32_t) + (size_t)WARPS * split.kept * ROW;
    const auto count = image->shift != 0 ? glcm_bits_count_sets<true> : glcm_bits_count_sets<false>;
    const cudaError_t status = cudaFuncSetAttribute(count, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);

    if (status == cudaSuccess)
        count<<<split.blocks * share->sets, THREADS, shared, stream>>>(*image, split, sets, counts);
    return status;
}

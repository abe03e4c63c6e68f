/*
 * texture_cuda.cuh - what the operations of texture on the GPU share: glcm_cuda.cu, with glcm_sets.cu,
 * glcm_pairs.cu and glcm_bits.cu, histogram_cuda.cu and patterns_cuda.cu.
 *
 * Results of any size come back through buffers of a fixed one: matrices, tables and maps are
 * worked on in batches that fit.
 */
#ifndef NOCTULE_TEXTURE_CUDA_CUH
#define NOCTULE_TEXTURE_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/texture/texture.h"

enum {
    TEXTURE_TABLES = 16,          /* tables of levels at a time */
    TEXTURE_COUNTERS = 2 << 20,   /* counters at a time */
    TEXTURE_MATRICES = 65535,     /* matrices at a time: a grid's most in y */
    TEXTURE_MAP_BYTES = 16 << 20, /* codes of one map at a time, or a row of them */
    TEXTURE_MAP_BATCHES = 2,      /* one comes back while the next is made */
};

/* Division of numbers below 2^31 by one that is not known before (Granlund and Montgomery). */
struct divider {
    uint32_t by, factor, shift;
};

/* Rows that a lane reads at once: its own, and up to two of neighbours. */
enum { GLCM_NONE = -1, GLCM_OWN, GLCM_ROWS = 3, GLCM_FAR };

/* Where a set's matrices have their neighbours. KEPT: that other row is the one before or after, so
 * that it was read just before. */
enum glcm_kind {
    GLCM_SINGLE_OWN, /* one matrix: in the same row */
    GLCM_SINGLE,     /* in another one */
    GLCM_SINGLE_KEPT,
    GLCM_SINGLE_FAR, /* anywhere */
    GLCM_BOTH_OWN,   /* two matrices: both in the same row */
    GLCM_ONE_OWN,    /* the first one */
    GLCM_ONE_OWN_KEPT,
    GLCM_ONE_ROW, /* both in the same other row */
    GLCM_ONE_ROW_KEPT,
    GLCM_TWO_ROWS,
    GLCM_KINDS,
};

/* Where matrices of few levels have theirs: in the voxel's row, or all in one row above it. */
enum glcm_place {
    GLCM_PLACE_OWN, /* x above 0 */
    GLCM_PLACE_RIGHT,
    GLCM_PLACE_ABOVE, /* x is 0 */
    GLCM_PLACE_LEFT,
    GLCM_PLACES,
};

/* Matrices that a block counts at once: one or two, or of few levels up to four. */
struct glcm_set {
    int32_t x[GLCM_PLACES], y[GLCM_PLACES], z[GLCM_PLACES]; /* the offsets */
    bool reversed[GLCM_PLACES];   /* counted by the opposite offset: [neighbour][voxel] */
    uint32_t matrix[GLCM_PLACES]; /* which of those that are counted */
    enum glcm_kind kind;
    uint32_t places, behind; /* of few levels: a bit a matrix; how many rows above that row is */
    int32_t first_slice;     /* of those that have neighbours there; need not be of the volume */
    uint32_t first_block, parts; /* the blocks that share it, where there are not few levels */
};

struct glcm_share {
    uint32_t sets, blocks; /* of all sets together */
    uint32_t behind;       /* of few levels: the most of a set */
};

enum { GLCM_PER_THREAD = 16 }; /* codes of a load */

struct glcm_image {
    const uint8_t *rows; /* codes, or stored values that a shift turns into them */
    uint32_t pitch;      /* of a row, a multiple of 16 */
    uint32_t row_count;  /* of a slice */
    uint32_t slices;
    uint32_t shift, mask;    /* of stored values, four in a word; shift 0: codes */
    uint32_t none;           /* four times the code of what does not count */
    uint32_t levels, copies; /* copies: of a counter, a power of 2, at most 32 */
    uint32_t surplus;        /* of few levels: bits of the three that are not the level's */
    /* Lines: as many codes of a row as a warp takes at once, then those of the next rows in y, or
     * in z. Where there are few, each is several parts. */
    bool in_z;
    int32_t length;        /* rows in that direction */
    uint32_t others;       /* rows in the other one */
    size_t stride;         /* bytes from row to row */
    uint32_t across;       /* lines beside each other in a row */
    uint32_t parts, steps; /* of a line; rows of a part */
    uint32_t lines;        /* of a set, parts counted */
};

struct glcm_volume {
    const void *voxels;
    uint32_t bias; /* makes stored values of 2 bytes count from their smallest */
    uint32_t columns, rows, slices, words_per_row;
    uint32_t pitch;        /* of a row of codes */
    struct divider pieces; /* of 16 codes in a row */
    uint8_t *codes;
    const uint64_t *region;
    uint16_t *counted; /* for many levels: a bit a voxel, laid out like a region; else NULL */
    const uint16_t *tables;
    bool table_per_slice;
    uint8_t none;
    uint8_t code_shift; /* where a code has the level */
};

/* Where codes are from: the volume that is a part of, and where it begins there, x at a multiple of 16. */
struct glcm_source {
    uint32_t first[3];
    uint32_t columns, rows, words_per_row;
};

/* How a request is counted. */
struct glcm_plan {
    struct glcm_image image;
    struct glcm_volume volume; /* as far as codes reach: the box of the region */
    struct glcm_source source;
    bool shifted;            /* stored values are shifted as they are read */
    bool many;               /* glcm_count_many */
    bool bits;               /* glcm_bits.cu */
    uint32_t slices;         /* of a matrix */
    struct glcm_share share; /* of the sets that were sent */
    size_t shared;           /* many: bytes of counters */
    uint32_t in_turn;        /* many: levels whose counters fit */
};

/* Rows of codes on their way: `rows` of each of `slices`, in maps with nothing between. */
struct pattern_rows {
    uint32_t first_slice, slices;
    uint32_t first, rows; /* row 0 of codes belongs to the voxels' row 1 */
};

struct pattern_job {
    const void *voxels;
    uint32_t columns, row_count;
    uint32_t pitch; /* of maps */
    struct pattern_rows part;
    uint8_t *maps[TEXTURE_PATTERNS]; /* NULL: not wanted */
    bool strict, integer_average;
    /* A byte m times the threshold, up or (`strict`) down, is (factor * m + offset) >> 16. */
    uint32_t factor, offset;
    int32_t threshold; /* millionths */
    uint32_t zero;     /* 0, which the compiler is not told */
};

/* What all three operations count with. */
struct cuda_counted {
    size_t words; /* of a region */
    uint64_t *region;
    unsigned long long *counts, *host_counts; /* TEXTURE_COUNTERS */
};

struct cuda_glcm {
    struct cuda_counted counted;
    size_t code_pitch; /* bytes of a row of codes, a multiple of 16 */
    uint8_t *codes;
    uint16_t *tables; /* of levels */
    struct glcm_set *sets, *host_sets;
    cudaEvent_t sent; /* the latter are free */
};

/*
 * Has *tables be where in the device's memory the tables of slices first .. first + count - 1 are, or the one of all:
 * where the lane holds it, or `own`, which has room for them, and gets them.
 */
int cuda_levels_send(struct cuda_lane *lane, const struct texture_levels *levels, size_t first,
                     size_t count, uint16_t *own, const uint16_t **tables, struct error *error);

static inline struct cuda_glcm *
cuda_glcm_of(const struct cuda_lane *lane)
{
    return (struct cuda_glcm *)kernels_state(&lane->base, KERNELS_GLCM);
}

static inline size_t
texture_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t
texture_most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Of a pixel. */
static inline size_t
texture_values(const struct cuda_lane *lane)
{
    return lane->base.pixel == IMAGE_UINT8 ? 256 : 65536;
}

void cuda_counted_place(const struct kernels_lane *lane, struct kernels_memory *memory,
                        struct cuda_counted *counted);

/* The bits of the region that the lane holds, queued on `work`; NULL where it does not hold this one. */
const uint64_t *cuda_region_bits(const struct cuda_lane *lane, const uint64_t *region);

/* Where the bits of a region are on the device, sent on `work` unless the lane holds it; NULL stays NULL. Work waits for
 * the slices of its box. */
int cuda_counted_region(struct cuda_lane *lane, const struct cuda_counted *counted,
                        const uint64_t *region, const uint64_t **on_device, struct error *error);

/* Waits for `work`, and hands over the first counters. */
int cuda_counted_fetch(struct cuda_lane *lane, const struct cuda_counted *counted, size_t counters,
                       uint64_t *counts, struct error *error);

/* The same, of a run that queues nothing more: where it can it leaves the turn while it waits. */
int cuda_counted_fetch_last(struct cuda_lane *lane, const struct cuda_counted *counted,
                            size_t counters, uint64_t *counts, struct error *error);

/* The lane's volume, without codes. */
struct glcm_volume cuda_texture_volume(const struct cuda_lane *lane);

/* Blocks of a matrix, such that no counter of a block overflows. */
unsigned cuda_texture_parts(const struct cuda_lane *lane, size_t matrices);

template <uint32_t THREADS>
static __device__ __forceinline__ void
texture_clear_counters(uint32_t *counters, uint32_t count)
{
    for (uint32_t i = threadIdx.x; i < count; i += THREADS)
        counters[i] = 0;
    __syncthreads();
}

/* Whether voxel x of a row is in the region; every one is in NULL. */
static __device__ __forceinline__ bool
texture_in_region(const uint64_t *region, size_t row, uint32_t words_per_row, uint32_t x)
{
    return region == NULL || (region[row * words_per_row + x / 64] >> x % 64 & 1) != 0;
}

/* 16 bytes of values of a row, in four words. */
enum { TEXTURE_PIECE_WORDS = 4 };

template <typename Value> struct texture_piece {
    static const uint32_t OF_WORD = sizeof(uint32_t) / sizeof(Value),
                          VALUES = TEXTURE_PIECE_WORDS * OF_WORD;
    uint32_t in; /* a bit a value: those of the region */
    uint32_t words[TEXTURE_PIECE_WORDS];

    __device__ __forceinline__ uint32_t value(uint32_t k) const
    {
        return words[k / OF_WORD] >> k % OF_WORD * 8 * sizeof(Value) &
               ((1u << 8 * sizeof(Value)) - 1);
    }
};

/* Reads no word that has nothing of the row. */
static __device__ __forceinline__ void
texture_load_unaligned(const void *from, uint32_t bytes, uint32_t words[TEXTURE_PIECE_WORDS])
{
    const uint32_t past = (uintptr_t)from % sizeof(uint32_t);
    const uint32_t *aligned = (const uint32_t *)((uintptr_t)from - past);
    uint32_t last = __ldg(aligned);

#pragma unroll
    for (uint32_t i = 0; i < TEXTURE_PIECE_WORDS; i++) {
        const uint32_t next =
            (i + 1) * sizeof(uint32_t) < past + bytes ? __ldg(aligned + i + 1) : 0;

        words[i] = __funnelshift_r(last, next, past * 8);
        last = next;
    }
}

/* That which lies there, from column x of a row on, a multiple of its values; bits are the row's (NULL: all are of the
 * region). */
template <typename Value>
static __device__ __forceinline__ void
texture_load_piece(const Value *at, const uint64_t *bits, uint32_t columns, uint32_t x,
                   struct texture_piece<Value> *piece)
{
    typedef typename std::conditional<sizeof(Value) == 1, uint16_t, uint8_t>::type Bits;
    const uint32_t values = texture_piece<Value>::VALUES, left = columns - x;

    piece->in = left < values ? (1u << left) - 1 : (1u << values) - 1;
    if (bits)
        piece->in &= __ldg((const Bits *)bits + x / values);
    if (piece->in == 0)
        return;
    if (columns % values == 0) {
        const uint4 loaded = __ldg((const uint4 *)at);

        memcpy(piece->words, &loaded, sizeof(loaded));
        return;
    }
    texture_load_unaligned(at, min(left, values) * (uint32_t)sizeof(Value), piece->words);
}

/* 1 for each value of word i that is of the region. */
template <typename Value>
static __device__ __forceinline__ uint32_t
texture_piece_ones(const struct texture_piece<Value> &piece, uint32_t i)
{
    const uint32_t of_word = texture_piece<Value>::OF_WORD;
    const uint32_t bits = piece.in >> of_word * i & ((1u << of_word) - 1);

    return sizeof(Value) == 1 ? bits * 0x00204081 & 0x01010101 : bits * 0x8001 & 0x00010001;
}

/* `steps` rows of codes through fetch(into) and count(fetched), each in its order; the loads of some
 * are under way while others are counted. */
template <uint32_t BUFFERS, typename Fetched, typename Fetch, typename Count>
static __device__ __forceinline__ void
glcm_each_row(Fetched (&fetched)[BUFFERS], uint32_t steps, const Fetch &fetch, const Count &count)
{
#pragma unroll
    for (uint32_t k = 0; k < BUFFERS - 1; k++)
        if (k < steps)
            fetch(&fetched[k]);
    for (uint32_t i = 0; i < steps; i += BUFFERS)
#pragma unroll
        for (uint32_t k = 0; k < BUFFERS; k++) {
            if (i + k >= steps)
                return;
            if (i + k + BUFFERS - 1 < steps)
                fetch(&fetched[(k + BUFFERS - 1) % BUFFERS]);
            count(fetched[k]);
        }
}

/* A request's parts, as the operations put them together; bench times them one by one. All go to a
 * stream, and none waits for it. */

/* Fills the plan, and queues what precedes counting: region, codes. */
int cuda_glcm_begin(struct cuda_lane *lane, const struct texture_glcm *request,
                    struct glcm_plan *plan, struct error *error);

/* Sends matrices first .. first + count - 1 of the request; the plan then knows their sets. */
int cuda_glcm_send(struct cuda_lane *lane, const struct texture_glcm *request,
                   struct glcm_plan *plan, size_t first, size_t count, struct error *error);

/* Counts what was sent, into texture->counts. */
int cuda_glcm_count(struct cuda_lane *lane, const struct glcm_plan *plan, size_t count,
                    struct error *error);

/*
 * glcm_sets.cu. Arranges matrices first .. first + count - 1 of a request, two in a set where that
 * is allowed, best with neighbours in one row. `sets` has room for `count`. Where there are fewer
 * sets than processors, those that take longer get more of them.
 */
struct glcm_share glcm_arrange(const struct texture_glcm *request, size_t first, size_t count,
                               const struct glcm_image *image, size_t processors,
                               struct glcm_set *sets);

/* Of few levels: up to four matrices in a set, those that stand next to each other. */
struct glcm_share glcm_arrange_bits(const struct texture_glcm *request, size_t first, size_t count,
                                    struct glcm_set *sets);

/* glcm_pairs.cu. Lets its kernels take so many bytes of shared memory. */
cudaError_t glcm_pairs_allow(size_t shared);

/* Whether a matrix of this offset can be one of two in a set; x is at least 0. */
bool glcm_pairs_near(const struct texture_offset *offset);

/* Adds the sets' pairs to `counts`. */
void glcm_pairs_launch(const struct glcm_image *image, const struct glcm_share *share,
                       const struct glcm_set *sets, unsigned long long *counts,
                       cudaStream_t stream);

/*
 * glcm_bits.cu. Whether it counts the request faster, in matrices of so many slices. It wants
 * levels in the three upper bits of codes, and GLCM_BITS_NONE for what does not count.
 */
enum { GLCM_BITS_SHIFT = 5, GLCM_BITS_NONE = 1 << 4 };

bool glcm_bits_take(const struct texture_glcm *request, const struct glcm_image *image,
                    size_t slices);

cudaError_t glcm_bits_allow(size_t shared);

/* Adds the sets' pairs to `counts`. */
void glcm_bits_launch(const struct glcm_image *image, size_t slices, const struct glcm_share *share,
                      size_t processors, const struct glcm_set *sets, unsigned long long *counts,
                      cudaStream_t stream);

/* Codes of a part of a volume; fills `factor` and `offset` of the job. */
void cuda_patterns_launch(const struct texture_patterns *request, struct pattern_job *job,
                          enum image_pixel pixel, cudaStream_t stream);

#endif

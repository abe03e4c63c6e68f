/*
 * texture_cuda.cuh - declarations shared by the texture operations of the GPU: glcm_*.cu,
 * histogram_cuda.cu and patterns_cuda.cu.
 *
 * Results of any size return through buffers of fixed size: matrices, tables and maps are processed
 * in batches.
 */
#ifndef NOCTULE_KERNELS_TEXTURE_TEXTURE_CUDA_CUH
#define NOCTULE_KERNELS_TEXTURE_TEXTURE_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/texture/texture.h"

enum {
    TEXTURE_TABLES = 16,          /* tables of levels at a time */
    TEXTURE_COUNTERS = 4 << 20,   /* counters at a time */
    TEXTURE_MATRICES = 65535,     /* matrices at a time: a grid's limit in y */
    TEXTURE_MAP_BYTES = 16 << 20, /* codes per map at a time, at least a row */
    TEXTURE_MAP_BATCHES = 2,      /* one is copied while the next is made */
};

static_assert(TEXTURE_MAX_LEVELS * TEXTURE_MAX_RUN <= TEXTURE_COUNTERS, "there is room for a matrix of runs");

/* Division of numbers below 2^31 by a runtime constant (Granlund and Montgomery). */
struct divider {
    uint32_t by, factor, shift;
};

/* Rows that a lane reads at once: its own, and up to two neighbour rows. */
enum { GLCM_NONE = -1, GLCM_OWN, GLCM_ROWS = 3, GLCM_FAR };

/* Places of the neighbours of a set's matrices. KEPT: the other row is the previous or next, and
 * was just read. */
enum glcm_kind {
    GLCM_SINGLE_OWN, /* one matrix: same row */
    GLCM_SINGLE,     /* another row */
    GLCM_SINGLE_KEPT,
    GLCM_SINGLE_FAR, /* anywhere */
    GLCM_BOTH_OWN,   /* two matrices: same row */
    GLCM_ONE_OWN,    /* the first in the same row */
    GLCM_ONE_OWN_KEPT,
    GLCM_ONE_ROW, /* both in one other row */
    GLCM_ONE_ROW_KEPT,
    GLCM_TWO_ROWS,
    GLCM_KINDS,
};

/* Places of the neighbours of matrices of few levels: in the voxel's row, or all in one row above
 * it. */
enum glcm_place {
    GLCM_PLACE_OWN, /* x above 0 */
    GLCM_PLACE_RIGHT,
    GLCM_PLACE_ABOVE, /* x is 0 */
    GLCM_PLACE_LEFT,
    GLCM_PLACES,
};

/* Matrices that a block counts at once: one or two, or up to four of few levels. */
struct glcm_set {
    int32_t x[GLCM_PLACES], y[GLCM_PLACES], z[GLCM_PLACES]; /* the offsets */
    bool reversed[GLCM_PLACES];                             /* counted by the opposite offset: [neighbour][voxel] */
    uint32_t matrix[GLCM_PLACES];                           /* index among the counted matrices */
    enum glcm_kind kind;
    uint32_t places, behind;     /* few levels: one bit per matrix; number of rows above */
    int32_t first_slice;         /* first slice of voxels with neighbours; may lie outside the volume */
    uint32_t first_block, parts; /* the set's blocks, except with few levels */
};

struct glcm_share {
    uint32_t sets, blocks; /* total of all sets */
    uint32_t behind;       /* few levels: the max of all sets */
};

enum { GLCM_PER_THREAD = 16 }; /* codes per load */

struct glcm_image {
    const uint8_t *rows; /* codes, or stored values that a shift converts */
    uint32_t pitch;      /* bytes per row, a multiple of 16 */
    uint32_t row_count;  /* per slice */
    uint32_t slices;
    uint32_t shift, mask;    /* for four stored values per word; shift 0: codes */
    uint32_t none;           /* code of voxels that do not count, in all four bytes */
    uint32_t levels, copies; /* copies: per counter, a power of 2, at most 32 */
    uint32_t surplus;        /* few levels: unused bits of the three for levels */
    /* Lines: the codes of a row that a warp takes at once, then those of the next rows in y or z.
     * Few lines are split into parts. */
    bool in_z;
    int32_t length;        /* rows along that direction */
    uint32_t others;       /* rows across it */
    size_t stride;         /* bytes from row to row */
    uint32_t across;       /* adjacent lines in a row */
    uint32_t parts, steps; /* parts per line; rows per part */
    uint32_t lines;        /* per set, including parts */
};

struct glcm_volume {
    const void *voxels;
    uint32_t bias; /* makes 16-bit stored values relative to their smallest */
    uint32_t columns, rows, slices, words_per_row;
    uint32_t pitch;        /* bytes per row of codes */
    struct divider pieces; /* divides by the pieces of 16 codes per row */
    uint8_t *codes;
    const uint64_t *region;
    uint16_t *counted; /* many levels: one bit per voxel, laid out like a region; otherwise NULL */
    const uint16_t *tables;
    bool table_per_slice;
    uint8_t none;
    uint8_t code_shift; /* position of the level in a code */
};

/* Source of codes: the whole volume, and the part's position in it, x at a multiple of 16. */
struct glcm_source {
    uint32_t first[3];
    uint32_t columns, rows, words_per_row;
};

/* Plan for counting a request. */
struct glcm_plan {
    struct glcm_image image;
    struct glcm_volume volume; /* the part with codes: the region's box */
    struct glcm_source source;
    bool shifted;            /* stored values are shifted when read */
    bool many;               /* glcm_count_many */
    bool bits;               /* glcm_bits.cu */
    uint32_t slices;         /* per matrix */
    struct glcm_share share; /* of the sets sent */
    size_t shared;           /* many: bytes of counters */
    uint32_t in_turn;        /* many: max levels whose counters fit */
};

/* Rows of codes to copy: `rows` of each of `slices`, in maps without padding. */
struct pattern_rows {
    uint32_t first_slice, slices;
    uint32_t first, rows; /* row 0 of codes belongs to voxel row 1 */
};

struct pattern_job {
    const void *voxels;
    uint32_t columns, row_count;
    uint32_t pitch; /* of maps */
    struct pattern_rows part;
    uint8_t *maps[TEXTURE_PATTERNS]; /* NULL: not wanted */
    bool strict, integer_average;
    /* For a byte m, the threshold times m, rounded up or (`strict`) down, is (factor * m + offset)
     * >> 16. */
    uint32_t factor, offset;
    int32_t threshold; /* millionths */
    uint32_t zero;     /* 0, hidden from the compiler */
};

/* Memory shared by all three operations. */
struct cuda_counted {
    size_t words; /* of a region */
    uint64_t *region;
    unsigned long long *counts, *host_counts; /* TEXTURE_COUNTERS */
};

struct cuda_glcm {
    struct cuda_counted counted;
    size_t code_pitch; /* bytes per row of codes, a multiple of 16 */
    uint8_t *codes;
    uint16_t *tables; /* of levels */
    struct glcm_set *sets, *host_sets;
    cudaEvent_t sent; /* the tables may be overwritten */
};

/* Sets *tables to the device address of the tables of slices first .. first + count - 1, or of the
 * single one. They are the lane's held levels, or are sent to `own`, which must have room. */
int cuda_levels_send(struct cuda_lane *lane, const struct texture_levels *levels, size_t first, size_t count,
                     uint16_t *own, const uint16_t **tables, struct error *error);

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

/* Returns the number of values of the pixel type. */
static inline size_t
texture_values(const struct cuda_lane *lane)
{
    return lane->base.pixel == IMAGE_UINT8 ? 256 : 65536;
}

void cuda_counted_place(const struct kernels_lane *lane, struct kernels_memory *memory, struct cuda_counted *counted);

/* Returns the held region's bits, queued on `work`, or NULL if the lane does not hold this
 * region. */
const uint64_t *cuda_region_bits(const struct cuda_lane *lane, const uint64_t *region);

/* Sets *on_device to the region's bits, sent on `work` unless held; NULL stays NULL. Work waits for
 * the slices of its box. */
int cuda_counted_region(struct cuda_lane *lane, const struct cuda_counted *counted, const uint64_t *region,
                        const uint64_t **on_device, struct error *error);

/* Waits for `work`, and copies the first counters. If it is the last work of a run, gives up the
 * turn while it waits, if possible. */
int cuda_counted_fetch(struct cuda_lane *lane, const struct cuda_counted *counted, size_t counters, uint64_t *counts,
                       bool last, struct error *error);

/* Returns the lane's volume, without codes. */
struct glcm_volume cuda_texture_volume(const struct cuda_lane *lane);

/* Returns the blocks per matrix, so that no counter of a block overflows. */
unsigned cuda_texture_parts(const struct cuda_lane *lane, size_t matrices);

template <uint32_t THREADS>
static __device__ __forceinline__ void
texture_clear_counters(uint32_t *counters, uint32_t count)
{
    for (uint32_t i = threadIdx.x; i < count; i += THREADS)
        counters[i] = 0;
    __syncthreads();
}

/* Returns whether voxel x of a row is in the region. A NULL region has all voxels. */
static __device__ __forceinline__ bool
texture_in_region(const uint64_t *region, size_t row, uint32_t words_per_row, uint32_t x)
{
    return region == NULL || (region[row * words_per_row + x / 64] >> x % 64 & 1) != 0;
}

/* 16 bytes of values of a row, in four words. */
enum { TEXTURE_PIECE_WORDS = 4 };

template <typename Value> struct texture_piece {
    static const uint32_t OF_WORD = sizeof(uint32_t) / sizeof(Value), VALUES = TEXTURE_PIECE_WORDS * OF_WORD;
    uint32_t in; /* one bit per value: in the region */
    uint32_t words[TEXTURE_PIECE_WORDS];

    __device__ __forceinline__ uint32_t value(uint32_t k) const
    {
        return words[k / OF_WORD] >> k % OF_WORD * 8 * sizeof(Value) & ((1u << 8 * sizeof(Value)) - 1);
    }
};

/* Skips words that lie wholly outside the row. */
static __device__ __forceinline__ void
texture_load_unaligned(const void *from, uint32_t bytes, uint32_t words[TEXTURE_PIECE_WORDS])
{
    const uint32_t past = (uintptr_t)from % sizeof(uint32_t);
    const uint32_t *aligned = (const uint32_t *)((uintptr_t)from - past);
    uint32_t last = __ldg(aligned);

#pragma unroll
    for (uint32_t i = 0; i < TEXTURE_PIECE_WORDS; i++) {
        const uint32_t next = (i + 1) * sizeof(uint32_t) < past + bytes ? __ldg(aligned + i + 1) : 0;

        words[i] = __funnelshift_r(last, next, past * 8);
        last = next;
    }
}

/* Loads a piece from column x of a row, a multiple of its values. `bits` are the row's (NULL: all
 * are in the region). */
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

/* Returns a 1 for each value of word i in the region. */
template <typename Value>
static __device__ __forceinline__ uint32_t
texture_piece_ones(const struct texture_piece<Value> &piece, uint32_t i)
{
    const uint32_t of_word = texture_piece<Value>::OF_WORD;
    const uint32_t bits = piece.in >> of_word * i & ((1u << of_word) - 1);

    return sizeof(Value) == 1 ? bits * 0x00204081 & 0x01010101 : bits * 0x8001 & 0x00010001;
}

/* Calls fetch(into) and count(fetched) for `steps` rows of codes, each in order. Rows load while
 * others are counted. */
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

/* Steps of a request, which the operations combine and the benchmark times separately. They queue
 * work on a stream and do not wait. */

/* Fills the plan, and queues the work before counting: region and codes. */
int cuda_glcm_begin(struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan,
                    struct error *error);

/* Sends matrices first .. first + count - 1 of the request, and stores their sets in the plan. */
int cuda_glcm_send(struct cuda_lane *lane, const struct texture_glcm *request, struct glcm_plan *plan, size_t first,
                   size_t count, struct error *error);

/* Counts the sent matrices into texture->counts. */
int cuda_glcm_count(struct cuda_lane *lane, const struct glcm_plan *plan, size_t count, struct error *error);

/*
 * glcm_sets.cu: arranges matrices first .. first + count - 1 of a request, two per set if allowed,
 * preferably with neighbours in one row. `sets` must have room for `count`. If sets are fewer than
 * processors, slower sets get more of them.
 */
struct glcm_share glcm_arrange(const struct texture_glcm *request, size_t first, size_t count,
                               const struct glcm_image *image, size_t processors, struct glcm_set *sets);

/* As glcm_arrange for few levels: up to four adjacent matrices per set. */
struct glcm_share glcm_arrange_bits(const struct texture_glcm *request, size_t first, size_t count,
                                    struct glcm_set *sets);

/* glcm_pairs.cu: adds the sets' pairs to `counts`. Kernels may use up to `most` bytes of shared memory, which must be
 * the same for all lanes of a device. */
cudaError_t glcm_pairs_launch(const struct glcm_image *image, const struct glcm_share *share,
                              const struct glcm_set *sets, unsigned long long *counts, size_t most,
                              cudaStream_t stream);

/* glcm_bits.cu: whether it counts the request faster, for matrices of `slices` slices. It needs
 * levels in the three upper bits of codes, and GLCM_BITS_NONE for voxels that do not count. */
enum { GLCM_BITS_SHIFT = 5, GLCM_BITS_NONE = 1 << 4 };

bool glcm_bits_take(const struct texture_glcm *request, const struct glcm_image *image, size_t slices);

/* As glcm_pairs_launch. */
cudaError_t glcm_bits_launch(const struct glcm_image *image, size_t slices, const struct glcm_share *share,
                             size_t processors, const struct glcm_set *sets, unsigned long long *counts, size_t most,
                             cudaStream_t stream);

/* Computes the codes of a part of a volume. Fills `factor` and `offset` of the job. */
void cuda_patterns_launch(const struct texture_patterns *request, struct pattern_job *job, enum image_pixel pixel,
                          cudaStream_t stream);

#endif

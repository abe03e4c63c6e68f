/* boxed_cuda.cuh - levels of the box around a region on the GPU, for neighbours_cuda.cu and
 * runs_cuda.cu. */
#ifndef NOCTULE_KERNELS_TEXTURE_BOXED_CUDA_CUH
#define NOCTULE_KERNELS_TEXTURE_BOXED_CUDA_CUH

#include "kernels/texture/texture_cuda.cuh"

/* Forms of levels in a box: 16-bit; 16-bit with BOXED_MARK, except 0; 8-bit, for at most 255
 * levels. */
enum boxed_form { BOXED_LEVELS, BOXED_MARKED, BOXED_BYTES };

enum {
    BOXED_MARK = 0x1000,
    BOXED_ALIGN = 16, /* alignment, and number of zeros before each row */
    BOXED_LEAD = 128, /* elements before the first row, for words that extend beyond rows */
};

/* As struct texture_boxed, in device memory. */
struct cuda_box {
    uint16_t *
        /* at the box's first voxel; 8-bit or 16-bit, surrounded by zeros (cuda_box_slice) */
        levels;
    int64_t row, slice;  /* elements from one to the next; a row is a multiple of BOXED_ALIGN */
    int64_t size[3];     /* 0: empty region */
    int64_t first_slice; /* in the volume */
    int32_t margin;      /* min number of zeros around the box */
};

/* Memory of operations on boxes. */
struct cuda_boxed {
    struct cuda_counted counted;
    uint16_t *levels;
    uint16_t *tables; /* TEXTURE_TABLES */
};

void cuda_boxed_place(struct kernels_lane *lane, struct kernels_memory *memory, struct cuda_boxed *own);

/* Queues the filling of the box, with a margin of zeros. The zeros before the first row are aligned
 * for any word. */
int cuda_boxed_fill(struct cuda_lane *lane, const struct cuda_boxed *own, const struct texture_levels *levels,
                    const uint64_t *region, int32_t margin, enum boxed_form form, struct cuda_box *box,
                    struct error *error);

/* A box as bytes in device memory: levels, or values of the volume. Bytes outside its rows and
 * slices are undefined. */
struct cuda_bytes {
    const uint8_t *first;  /* at the box's first voxel; 4-byte aligned */
    int64_t row, slice;    /* bytes from one to the next; multiples of 4 */
    const uint16_t *table; /* levels of values; NULL: the bytes are levels */
    /* Region of values: bits of the box's first row, from the volume's column 0. NULL: every
     * voxel. */
    const uint32_t *region;
    int64_t region_row, region_slice; /* words from one to the next */
    uint32_t bit;                     /* of the box's first voxel */
};

/* Sets the place of the box's bytes. Queues their filling if needed: for 16-bit values, and with
 * one table per slice. Levels must be at most 255. */
int cuda_boxed_bytes(struct cuda_lane *lane, const struct cuda_boxed *own, const struct texture_levels *levels,
                     const uint64_t *region, struct cuda_box *box, struct cuda_bytes *bytes, struct error *error);

/* Returns the zeros before the first row of the box's first slice. */
template <typename Level>
static __host__ __device__ __forceinline__ Level *
cuda_box_slice(const struct cuda_box *box, int64_t z)
{
    return (Level *)box->levels + z * box->slice - box->margin * box->row - BOXED_ALIGN;
}

#endif

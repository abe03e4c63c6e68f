/*
 * boxed_cuda.cuh - levels of the box around a region on the GPU, for what looks at neighbours:
 * neighbours_cuda.cu and runs_cuda.cu.
 */
#ifndef NOCTULE_BOXED_CUDA_CUH
#define NOCTULE_BOXED_CUDA_CUH

#include "kernels/texture/texture_cuda.cuh"

/* How a box has its levels: in two bytes; in two bytes and with BOXED_MARK, all but 0; in one byte, where
 * there are at most 255. */
enum boxed_form { BOXED_LEVELS, BOXED_MARKED, BOXED_BYTES };

enum {
    BOXED_MARK = 0x1000,
    BOXED_ALIGN = 16, /* and that many zeros before each row */
    BOXED_LEAD = 128, /* elements before the first, for words that reach beyond the rows */
};

/* As struct texture_boxed has them, all in device memory. */
struct cuda_box {
    uint16_t *
        levels; /* of the box's first voxel; zeros around it, of one byte or two (cuda_box_slice) */
    int64_t row, slice;  /* from one to the next; a row is a multiple of BOXED_ALIGN */
    int64_t size[3];     /* 0: an empty region */
    int64_t first_slice; /* of the volume */
    int32_t margin;      /* so many zeros, at least */
};

/* What such an operation counts with. */
struct cuda_boxed {
    struct cuda_counted counted;
    uint16_t *levels;
    uint16_t *tables; /* TEXTURE_TABLES */
};

void cuda_boxed_place(struct kernels_lane *lane, struct kernels_memory *memory,
                      struct cuda_boxed *own);

/* Queues the filling of the box, with so many zeros around it. The first row, zeros before it, is aligned
 * for any word. */
int cuda_boxed_fill(struct cuda_lane *lane, const struct cuda_boxed *own,
                    const struct texture_levels *levels, const uint64_t *region, int32_t margin,
                    enum boxed_form form, struct cuda_box *box, struct error *error);

/* A box as bytes, in device memory: levels, or values of the volume. What is beside its rows and slices is
 * anything. */
struct cuda_bytes {
    const uint8_t *first;  /* of the box's first voxel; its address is a multiple of 4 */
    int64_t row, slice;    /* from one to the next, such multiples, too */
    const uint16_t *table; /* of values; NULL: they are levels */
    /* Of values: bits of the box's first row, from the volume's column 0 on; NULL: all are of the region. */
    const uint32_t *region;
    int64_t region_row, region_slice; /* words from one to the next */
    uint32_t bit;                     /* of the box's first voxel */
};

/* Where the box's bytes are; the filling is queued, if it takes one: values of two bytes, and such as have a table
 * for each slice. Levels are at most 255. */
int cuda_boxed_bytes(struct cuda_lane *lane, const struct cuda_boxed *own,
                     const struct texture_levels *levels, const uint64_t *region,
                     struct cuda_box *box, struct cuda_bytes *bytes, struct error *error);

/* The zeros before the box's first row of its first slice: of levels of one or two bytes. */
template <typename Level>
static __host__ __device__ __forceinline__ Level *
cuda_box_slice(const struct cuda_box *box, int64_t z)
{
    return (Level *)box->levels + z * box->slice - box->margin * box->row - BOXED_ALIGN;
}

/* A voxel of the box's slices first .. , by its number among them. */
static __device__ __forceinline__ const uint16_t *
cuda_box_voxel(const struct cuda_box *box, int64_t first, uint64_t i)
{
    const uint64_t columns = (uint64_t)box->size[0], rows = (uint64_t)box->size[1];
    const uint64_t row = i / columns;

    return box->levels + (first + (int64_t)(row / rows)) * box->slice +
           (int64_t)(row % rows) * box->row + (int64_t)(i - row * columns);
}

#endif

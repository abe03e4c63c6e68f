#include "kernels/texture/boxed_cuda.cuh"

enum {
    BOXED_THREADS = 256,
    BOXED_TURNS = 4,     /* per thread, if one slice has enough work */
    BOXED_SLICES = 4096, /* max slices at a time */
    BOXED_VALUES = 256,  /* entries of an 8-bit table */
};

/* Source of the box's rows. */
struct boxed_source {
    struct glcm_volume volume;
    const uint16_t *tables;
    size_t values;    /* entries per table; 0: one table for all slices */
    int64_t first[3]; /* first voxel of the box in the volume */
    uint32_t mark;    /* mark of nonzero levels */
};

/* Loads BOXED_ALIGN values of a row word by word, without reading beyond the row's end. */
template <typename Word, typename Value>
static __device__ __forceinline__ void
boxed_load_words(const Value *from, uint32_t left, Value values[BOXED_ALIGN])
{
    const uint32_t of_word = sizeof(Word) / sizeof(Value);

#pragma unroll
    for (uint32_t i = 0; i < BOXED_ALIGN; i += of_word)
        if (i < left) {
            const Word loaded = __ldg((const Word *)(from + i));

            memcpy(values + i, &loaded, sizeof(loaded));
        }
}

/* `x` must be a multiple of BOXED_ALIGN. */
template <typename Value>
static __device__ __forceinline__ void
boxed_load(const struct glcm_volume &volume, size_t row, uint32_t x, Value values[BOXED_ALIGN])
{
    const Value *from = (const Value *)volume.voxels + row * volume.columns + x;
    const uint32_t left = volume.columns - x;

    if (volume.columns % BOXED_ALIGN == 0)
        boxed_load_words<uint4>(from, left, values);
    else if (volume.columns % 4 == 0 && sizeof(Value) == 1)
        boxed_load_words<uint32_t>(from, left, values);
    else if (volume.columns % 4 == 0)
        boxed_load_words<uint2>(from, left, values);
    else
        boxed_load_words<Value>(from, left, values);
}

static __device__ __forceinline__ uint32_t
boxed_marked(const struct boxed_source &source, uint32_t level)
{
    return level != 0 ? level | source.mark : 0;
}

/* Finds the levels of BOXED_ALIGN voxels, which may lie outside the box. 8-bit values use the block's copy of their
 * table, `table_made`. */
template <typename Value, typename Level>
static __device__ __forceinline__ void
boxed_make(const struct boxed_source &source, const struct cuda_box &box, const Level *table_made,
           const uint16_t *table, const int32_t at[3], Level made[BOXED_ALIGN])
{
    const struct glcm_volume &volume = source.volume;
    const size_t row = (size_t)(source.first[2] + at[2]) * volume.rows + (size_t)(source.first[1] + at[1]);
    const uint32_t x = (uint32_t)(source.first[0] + at[0]), left = (uint32_t)box.size[0] - (uint32_t)at[0];
    const uint32_t all = (1u << BOXED_ALIGN) - 1;
    __align__(16) Value values[BOXED_ALIGN] = {};
    uint32_t inside; /* one bit per voxel: in the box and the region */

#pragma unroll
    for (int k = 0; k < BOXED_ALIGN; k++)
        made[k] = 0;
    for (int axis = 0; axis < 3; axis++)
        if ((uint32_t)at[axis] >= (uint32_t)box.size[axis])
            return;
    inside = left < BOXED_ALIGN ? (1u << left) - 1 : all;
    if (volume.region)
        inside &= (uint32_t)(__ldg(volume.region + row * volume.words_per_row + x / 64) >> x % 64);
    if (inside == 0)
        return;
    boxed_load<Value>(volume, row, x, values);
#pragma unroll
    for (int k = 0; k < BOXED_ALIGN; k++)
        if constexpr (sizeof(Value) == 1)
            made[k] = table_made[values[k]];
        else
            made[k] = (Level)boxed_marked(source, __ldg(table + (values[k] ^ volume.bias)));
    if (inside == all)
        return;
#pragma unroll
    for (int k = 0; k < BOXED_ALIGN; k++)
        made[k] = (inside >> k & 1) != 0 ? made[k] : 0;
}

/*
 * Fills slices first .. end - 1, including those of the margin, BOXED_ALIGN elements at a time, and
 * the zeros behind them. Table 0 is that of slice `of_tables`. Levels of 8-bit values are looked up
 * in shared memory.
 */
template <typename Value, typename Level>
static __global__ void
__launch_bounds__(BOXED_THREADS)
    boxed_fill_slices_of(struct boxed_source source, struct cuda_box box, int32_t first, int32_t end, int32_t of_tables)
{
    __shared__ Level table_made[BOXED_VALUES];
    const uint32_t across = (uint32_t)box.row / BOXED_ALIGN;
    const uint32_t pieces = (uint32_t)(box.slice / BOXED_ALIGN) + 1;

    for (int32_t z = first + (int32_t)blockIdx.y; z < end; z += (int32_t)gridDim.y) {
        const uint16_t *table = source.tables + (size_t)(z - of_tables) * source.values;
        Level *levels = cuda_box_slice<Level>(&box, z);

        if (sizeof(Value) == 1) {
            __syncthreads();
            if ((uint32_t)z < (uint32_t)box.size[2])
                for (uint32_t i = threadIdx.x; i < BOXED_VALUES; i += BOXED_THREADS)
                    table_made[i] = (Level)boxed_marked(source, table[i]);
            __syncthreads();
        }
        for (uint32_t i = blockIdx.x * BOXED_THREADS + threadIdx.x; i < pieces; i += gridDim.x * BOXED_THREADS) {
            const int32_t at[3] = {(int32_t)(i % across * BOXED_ALIGN) - BOXED_ALIGN,
                                   (int32_t)(i / across) - box.margin, z};
            uint4 *to = (uint4 *)(levels + (size_t)i * BOXED_ALIGN);
            __align__(16) Level made[BOXED_ALIGN];

            boxed_make<Value>(source, box, table_made, table, at, made);
#pragma unroll
            for (uint32_t k = 0; k < sizeof(made) / sizeof(uint4); k++)
                to[k] = ((const uint4 *)made)[k];
        }
    }
}

/* Returns the length of a row with one piece of zeros before it. The next row's zeros are behind
 * it. */
static size_t
boxed_row(int64_t columns)
{
    return (size_t)(columns + 2 * BOXED_ALIGN - 1) / BOXED_ALIGN * BOXED_ALIGN;
}

void
cuda_boxed_place(struct kernels_lane *lane, struct kernels_memory *memory, struct cuda_boxed *own)
{
    const struct image_extent *extent = &lane->extent;
    const size_t rows = (size_t)(extent->rows + 2 * TEXTURE_MAX_DISTANCE);
    const size_t slices = (size_t)(extent->slices + 2 * TEXTURE_MAX_DISTANCE);

    cuda_take(&memory->device, &own->levels, boxed_row(extent->columns + BOXED_ALIGN) * rows * slices + 2 * BOXED_LEAD);
    cuda_take(&memory->device, &own->tables, TEXTURE_TABLES, texture_values(cuda_lane_of(lane)));
    cuda_counted_place(lane, memory, &own->counted);
}

/* With one table per slice, fills as many slices at a time as tables fit. */
template <typename Level>
static int
boxed_fill_all(struct cuda_lane *lane, const struct cuda_boxed *own, const struct texture_levels *levels,
               struct boxed_source *source, const struct cuda_box *box, struct error *error)
{
    const bool per_slice = levels->table_count > 1;
    const int32_t slices = (int32_t)box->size[2], batch = per_slice ? (int32_t)TEXTURE_TABLES : slices;
    const size_t pieces = (size_t)box->slice / BOXED_ALIGN, turn = BOXED_THREADS * BOXED_TURNS;

    source->values = per_slice ? texture_values(lane) : 0;
    for (int32_t z = 0; z < slices; z += batch) {
        const int32_t end = z + batch < slices ? z + batch : slices;
        int rc = cuda_levels_send(lane, levels, (size_t)(source->first[2] + z), (size_t)(end - z), own->tables,
                                  &source->tables, error);

        if (rc)
            return rc;
        const int32_t from = z == 0 ? -box->margin : z, to = end == slices ? end + box->margin : end;
        const dim3 grid((unsigned)(pieces / turn + 1), (unsigned)texture_least((size_t)(to - from), BOXED_SLICES));

        if (lane->base.pixel == IMAGE_UINT8)
            boxed_fill_slices_of<uint8_t, Level><<<grid, BOXED_THREADS, 0, lane->work>>>(*source, *box, from, to, z);
        else
            boxed_fill_slices_of<uint16_t, Level><<<grid, BOXED_THREADS, 0, lane->work>>>(*source, *box, from, to, z);
        CUDA_LAUNCHED(cuda_device_of(&lane->base));
    }
    return 0;
}

/* Sets the place of the box and the source of its rows except tables. */
static int
boxed_begin(struct cuda_lane *lane, const struct cuda_boxed *own, const uint64_t *region, struct cuda_box *box,
            struct boxed_source *source, struct error *error)
{
    struct texture_box found;

    texture_region_box(&lane->base, region, &found);
    *box = {};
    *source = {};
    for (int axis = 0; axis < 3; axis++) {
        source->first[axis] = found.first[axis];
        box->size[axis] = found.size[axis];
    }
    if (box->size[0] == 0)
        return 0;
    box->size[0] += source->first[0] % BOXED_ALIGN; /* align to whole words of the volume */
    source->first[0] -= source->first[0] % BOXED_ALIGN;
    box->first_slice = found.first[2];
    source->volume = cuda_texture_volume(lane);
    return cuda_counted_region(lane, &own->counted, region, &source->volume.region, error);
}

int
cuda_boxed_fill(struct cuda_lane *lane, const struct cuda_boxed *own, const struct texture_levels *levels,
                const uint64_t *region, int32_t margin, enum boxed_form form, struct cuda_box *box, struct error *error)
{
    struct boxed_source source;
    const int rc = boxed_begin(lane, own, region, box, &source, error);

    if (rc || box->size[0] == 0)
        return rc;
    box->margin = margin;
    box->row = (int64_t)boxed_row(box->size[0]);
    box->slice = box->row * (box->size[1] + 2 * margin);
    const int64_t first = BOXED_LEAD + margin * (box->slice + box->row) + BOXED_ALIGN;

    box->levels = form == BOXED_BYTES ? (uint16_t *)((uint8_t *)own->levels + first) : own->levels + first;
    source.mark = form == BOXED_MARKED ? BOXED_MARK : 0;
    return form == BOXED_BYTES ? boxed_fill_all<uint8_t>(lane, own, levels, &source, box, error)
                               : boxed_fill_all<uint16_t>(lane, own, levels, &source, box, error);
}

int
cuda_boxed_bytes(struct cuda_lane *lane, const struct cuda_boxed *own, const struct texture_levels *levels,
                 const uint64_t *region, struct cuda_box *box, struct cuda_bytes *bytes, struct error *error)
{
    struct boxed_source source;
    int rc;

    *bytes = {};
    if (lane->base.pixel != IMAGE_UINT8 || lane->base.extent.columns % 4 != 0 || levels->table_count != 1) {
        rc = cuda_boxed_fill(lane, own, levels, region, 1, BOXED_BYTES, box, error);
        bytes->first = (const uint8_t *)box->levels;
        bytes->row = box->row;
        bytes->slice = box->slice;
        return rc;
    }
    /* The values of the volume serve: they are bytes in word-aligned rows, with one table. */
    rc = boxed_begin(lane, own, region, box, &source, error);
    if (rc || box->size[0] == 0)
        return rc;
    const struct glcm_volume *volume = &source.volume;
    const int64_t row = source.first[2] * volume->rows + source.first[1];

    bytes->row = volume->columns;
    bytes->slice = bytes->row * volume->rows;
    bytes->first = (const uint8_t *)volume->voxels + row * bytes->row + source.first[0];
    bytes->bit = (uint32_t)source.first[0];
    bytes->region_row = volume->words_per_row * 2;
    bytes->region_slice = bytes->region_row * volume->rows;
    if (volume->region)
        bytes->region = (const uint32_t *)volume->region + row * bytes->region_row;
    return cuda_levels_send(lane, levels, 0, 1, own->tables, &bytes->table, error);
}

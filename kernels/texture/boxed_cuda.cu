/* boxed_cuda.cu - see boxed_cuda.cuh. */
#include "kernels/texture/boxed_cuda.cuh"

enum { BOXED_THREADS = 256, BOXED_BLOCKS = 4096 };

/* What a slice of the box is made of. */
struct boxed_source {
    struct glcm_volume volume;
    const uint16_t *tables;
    size_t values;    /* of a table; 0: there is one for all */
    int64_t first[3]; /* of the box, in the volume */
};

/* Slices first .. first + count - 1 of the box, table 0 being that of the first. */
template <typename Value>
static __global__ void
__launch_bounds__(BOXED_THREADS)
    boxed_fill_voxels(struct boxed_source source, struct cuda_box box, int64_t first, int64_t count)
{
    const uint64_t voxels = (uint64_t)(count * box.size[0] * box.size[1]);

    for (uint64_t i = (uint64_t)blockIdx.x * BOXED_THREADS + threadIdx.x; i < voxels;
         i += (uint64_t)gridDim.x * BOXED_THREADS) {
        const int64_t x = (int64_t)(i % (uint64_t)box.size[0]);
        const int64_t in_slices = (int64_t)(i / (uint64_t)box.size[0]);
        const int64_t y = in_slices % box.size[1], z = in_slices / box.size[1];
        const int64_t row =
            (source.first[2] + first + z) * source.volume.rows + source.first[1] + y;
        const int64_t column = source.first[0] + x;
        const uint32_t value =
            ((const Value *)source.volume.voxels)[row * source.volume.columns + column] ^
            source.volume.bias;

        if (texture_in_region(source.volume.region, (size_t)row, source.volume.words_per_row,
                              (uint32_t)column))
            box.levels[(first + z) * box.slice + y * box.row + x] =
                source.tables[(size_t)z * source.values + value];
    }
}

static size_t
boxed_voxels(const struct image_extent *extent, int64_t margin)
{
    return (size_t)(extent->columns + 2 * margin) * (size_t)(extent->rows + 2 * margin) *
           (size_t)(extent->slices + 2 * margin);
}

void
cuda_boxed_place(struct kernels_lane *lane, struct kernels_memory *memory, struct cuda_boxed *own)
{
    cuda_take(&memory->device, &own->levels, boxed_voxels(&lane->extent, TEXTURE_MAX_DISTANCE));
    cuda_take(&memory->device, &own->tables, TEXTURE_TABLES, texture_values(cuda_lane_of(lane)));
    cuda_counted_place(lane, memory, &own->counted);
}

static int
boxed_fill_slices(struct cuda_lane *lane, const struct boxed_source *source,
                  const struct cuda_box *box, int64_t first, int64_t count, struct error *error)
{
    if (lane->base.pixel == IMAGE_UINT8)
        boxed_fill_voxels<uint8_t>
            <<<BOXED_BLOCKS, BOXED_THREADS, 0, lane->work>>>(*source, *box, first, count);
    else
        boxed_fill_voxels<uint16_t>
            <<<BOXED_BLOCKS, BOXED_THREADS, 0, lane->work>>>(*source, *box, first, count);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

/* With a table for each slice as many slices at a time as there is room for tables. */
static int
boxed_fill_all(struct cuda_lane *lane, const struct cuda_boxed *own,
               const struct texture_levels *levels, struct boxed_source *source,
               const struct cuda_box *box, struct error *error)
{
    const size_t values = texture_values(lane);
    const bool per_slice = levels->table_count > 1;
    const int64_t batch = per_slice ? (int64_t)TEXTURE_TABLES : box->size[2];

    source->values = per_slice ? values : 0;
    for (int64_t z = 0; z < box->size[2]; z += batch) {
        const int64_t count = z + batch < box->size[2] ? batch : box->size[2] - z;
        const uint16_t *tables =
            levels->level_of + (per_slice ? (size_t)(source->first[2] + z) * values : 0);
        int rc;

        CUDA_SEND(lane, own->tables, tables, (per_slice ? (size_t)count : 1) * values);
        rc = boxed_fill_slices(lane, source, box, z, count, error);
        if (rc)
            return rc;
    }
    return 0;
}

int
cuda_boxed_fill(struct cuda_lane *lane, const struct cuda_boxed *own,
                const struct texture_levels *levels, const uint64_t *region, int64_t margin,
                struct cuda_box *box, struct error *error)
{
    struct boxed_source source = {};
    struct texture_box found;
    int rc;

    texture_box_of(region, &lane->base.extent, &found);
    *box = {};
    for (int axis = 0; axis < 3; axis++) {
        source.first[axis] = found.first[axis];
        box->size[axis] = found.size[axis];
    }
    if (box->size[0] == 0)
        return 0;
    box->first_slice = found.first[2];
    box->row = box->size[0] + 2 * margin;
    box->slice = box->row * (box->size[1] + 2 * margin);
    box->levels = own->levels + margin * (box->slice + box->row + 1);
    source.volume = cuda_texture_volume(lane);
    source.tables = own->tables;
    rc = cuda_counted_region(lane, &own->counted, region, &source.volume.region, error);
    if (rc)
        return rc;
    CUDA_TRY(cuda_device_of(&lane->base),
             cudaMemsetAsync(own->levels, 0,
                             (size_t)(box->slice * (box->size[2] + 2 * margin)) * sizeof(uint16_t),
                             lane->work));
    return boxed_fill_all(lane, own, levels, &source, box, error);
}

/* region_cuda.cu - a held region on the GPU: its box, its bits in the device's memory, and where results of it come to. */
#include "kernels/texture/texture_cuda.cuh"

#include <string.h>

struct cuda_region {
    struct texture_region_state held;
    size_t words; /* of a slice */
    uint64_t *bits, *host_bits;
    bool sent; /* the copy from the host's may be under way */
};

static struct cuda_region *
cuda_region_state(const struct kernels_lane *lane)
{
    return (struct cuda_region *)kernels_state(lane, KERNELS_REGION);
}

static void
cuda_region_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_region *own = cuda_region_state(lane);
    const struct image_extent *extent = &lane->extent;

    texture_region_release(lane);
    own->sent = false;
    own->words = ((size_t)extent->columns + 63) / 64 * (size_t)extent->rows;
    cuda_take(&memory->device, &own->bits, own->words, (size_t)extent->slices);
    cuda_take(&memory->host, &own->host_bits, own->words, (size_t)extent->slices);
    cuda_take(&memory->host, &cuda_lane_of(lane)->results.memory, CUDA_RESULTS_BYTES);
}

/* The bits of a slice where the copy engines reach them, and zeros for those since the last one that had any: what is
 * sent is of the first to the last of them. */
static void
region_keep_slice(struct cuda_region *own, const uint64_t *slice, int64_t last, int64_t z)
{
    const size_t bytes = own->words * sizeof(*slice);

    if (last >= 0)
        memset(own->host_bits + (size_t)(last + 1) * own->words, 0, (size_t)(z - last - 1) * bytes);
    memcpy(own->host_bits + (size_t)z * own->words, slice, bytes);
}

/* Slices are read once, for the box and for the copy. */
static void
region_read(const struct kernels_lane *lane, const uint64_t *bits, struct cuda_region *own)
{
    struct texture_box_ends ends;

    texture_box_begin(&ends);
    for (int64_t z = 0; z < lane->extent.slices; z++) {
        const uint64_t *slice = bits + (size_t)z * own->words;
        const int64_t last = ends.last[2];

        if (texture_box_add_slice(slice, &lane->extent, z, &ends))
            region_keep_slice(own, slice, last, z);
    }
    texture_box_end(&ends, &own->held.box);
}

static int
cuda_region_run(struct kernels_lane *base, const void *bits, struct error *error)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    struct cuda_region *own = cuda_region_state(base);

    if (own->sent)
        CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    region_read(base, (const uint64_t *)bits, own);
    const size_t first = (size_t)own->held.box.first[2] * own->words;

    CUDA_TRY(device, cudaMemsetAsync(own->bits, 0,
                                     own->words * (size_t)base->extent.slices * sizeof(*own->bits),
                                     lane->work));
    CUDA_SEND(lane, own->bits + first, own->host_bits + first,
              (size_t)own->held.box.size[2] * own->words);
    own->sent = true;
    own->held.bits = (const uint64_t *)bits;
    return 0;
}

const uint64_t *
cuda_region_bits(const struct cuda_lane *lane, const uint64_t *region)
{
    return texture_region_held(&lane->base, region) ? cuda_region_state(&lane->base)->bits : NULL;
}

const struct kernels_op cuda_region_op = {
    .name = "a held region",
    .state_size = sizeof(struct cuda_region),
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_region_place,
    .run = cuda_region_run,
};

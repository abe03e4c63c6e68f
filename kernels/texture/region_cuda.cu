/* region_cuda.cu - a held region on the GPU: its box, its bits and levels in device memory, and
 * memory for its results. */
#include "kernels/texture/texture_cuda.cuh"

#include <string.h>

enum {
    READ_SLICES = 8,       /* per thread at a time */
    READ_WORDS = 64 << 10, /* of a larger slice */
    PULL_THREADS = 256,
    PULL_BLOCKS = 4 /* per multiprocessor */
};

struct cuda_region {
    struct texture_region_state held;
    size_t words; /* per slice */
    uint64_t *bits, *host_bits;
    uint16_t *table, *host_table; /* of levels */
    bool bits_sent, table_sent;   /* the copy from host_bits or host_table may be in progress */
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
    own->bits_sent = own->table_sent = false;
    own->words = ((size_t)extent->columns + 63) / 64 * (size_t)extent->rows;
    cuda_take(&memory->device, &own->bits, own->words, (size_t)extent->slices);
    cuda_take(&memory->host, &own->host_bits, own->words, (size_t)extent->slices);
    cuda_take(&memory->device, &own->table, texture_values(cuda_lane_of(lane)));
    cuda_take(&memory->host, &own->host_table, texture_values(cuda_lane_of(lane)));
    cuda_take(&memory->host, &cuda_lane_of(lane)->results.memory, CUDA_RESULTS_BYTES);
}

/* State shared by threads that read the bits. */
struct region_reading {
    const struct image_extent *extent;
    const uint64_t *bits;
    struct cuda_region *own;
    bool copies;   /* the bits are not in pinned memory */
    int64_t bands; /* parts per slice, if slices are large; else 1 */
    pthread_mutex_t mutex;
    struct texture_box_ends ends; /* of all slices read so far */
};

/* Reads band i of a slice's rows. */
static void
region_read_band(const struct region_reading *reading, int64_t i, struct texture_box_ends *ends)
{
    const int64_t z = i / reading->bands, rows = reading->extent->rows;
    const int64_t first = i % reading->bands * rows / reading->bands;
    const int64_t end = (i % reading->bands + 1) * rows / reading->bands;
    const size_t row_words = reading->own->words / (size_t)rows;
    const size_t at = (size_t)z * reading->own->words + (size_t)first * row_words;
    const struct image_extent band = {reading->extent->columns, end - first, 1};

    if (texture_box_add_slice(reading->bits + at, &band, z, ends)) {
        ends->first[1] += first;
        ends->last[1] += first;
    }
    if (reading->copies)
        memcpy(reading->own->host_bits + at, reading->bits + at, (size_t)(end - first) * row_words * sizeof(uint64_t));
}

/* Reads part i of the slices, or of a slice's rows, once: for the box and for the copy, if one is needed. */
static void
region_read_part(void *context, int64_t i)
{
    struct region_reading *reading = (struct region_reading *)context;
    const size_t words = reading->own->words;
    struct texture_box_ends ends;

    texture_box_begin(&ends);
    if (reading->bands > 1)
        region_read_band(reading, i, &ends);
    for (int64_t z = i * READ_SLICES; reading->bands == 1 && z < (i + 1) * READ_SLICES && z < reading->extent->slices;
         z++) {
        const uint64_t *slice = reading->bits + (size_t)z * words;

        (void)texture_box_add_slice(slice, reading->extent, z, &ends);
        if (reading->copies)
            memcpy(reading->own->host_bits + (size_t)z * words, slice, words * sizeof(*slice));
    }
    pthread_mutex_lock(&reading->mutex);
    texture_box_add(&reading->ends, &ends);
    pthread_mutex_unlock(&reading->mutex);
}

/* Copies with threads instead of a copy engine, which would first finish the volume's slabs, needed
 * or not. */
static __global__ void
__launch_bounds__(PULL_THREADS) region_pull(const uint64_t *from, uint64_t *to, size_t words)
{
    for (size_t i = (size_t)blockIdx.x * PULL_THREADS + threadIdx.x; i < words; i += (size_t)gridDim.x * PULL_THREADS)
        to[i] = from[i];
}

static int
cuda_region_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_hold *hold = (const struct texture_hold *)given;
    struct cuda_region *own = cuda_region_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    const size_t values = texture_values(lane);

    /* Wait until the host memory that is about to be written has been sent. */
    if (hold->bits ? own->bits_sent : own->table_sent) {
        CUDA_TRY(device, cudaStreamSynchronize(lane->work));
        own->bits_sent = own->table_sent = false;
    }
    if (!hold->bits) {
        memcpy(own->host_table, hold->level_of, values * sizeof(*hold->level_of));
        CUDA_SEND(lane, own->table, own->host_table, values);
        own->table_sent = true;
        own->held.level_of = hold->level_of;
        return 0;
    }
    const int64_t slices = base->extent.slices;
    const size_t bands = texture_most(1, texture_least(own->words / READ_WORDS, (size_t)base->extent.rows));
    /* Masks of the lane are in its pinned memory, and later ones are made only after a wait for its work. */
    const auto *bits = (const unsigned char *)hold->bits;
    const bool is_pinned = bits >= lane->pinned.memory && bits < lane->pinned.memory + lane->pinned.size;
    const uint64_t *from = is_pinned ? hold->bits : own->host_bits;
    struct region_reading reading = {&base->extent, hold->bits,     own,
                                     !is_pinned,    (int64_t)bands, PTHREAD_MUTEX_INITIALIZER};

    texture_box_begin(&reading.ends);
    cpu_pool_for(device->pool, reading.bands > 1 ? slices * reading.bands : (slices + READ_SLICES - 1) / READ_SLICES,
                 region_read_part, &reading);
    texture_box_end(&reading.ends, &own->held.box);
    const size_t first = (size_t)own->held.box.first[2] * own->words,
                 count = (size_t)own->held.box.size[2] * own->words;

    CUDA_TRY(device,
             cudaMemsetAsync(own->bits, 0, own->words * (size_t)base->extent.slices * sizeof(*own->bits), lane->work));
    region_pull<<<(unsigned)(device->multiprocessors * PULL_BLOCKS), PULL_THREADS, 0, lane->work>>>(
        from + first, own->bits + first, count);
    CUDA_LAUNCHED(device);
    own->bits_sent = true;
    own->held.bits = hold->bits;
    return 0;
}

const uint64_t *
cuda_region_bits(const struct cuda_lane *lane, const uint64_t *region)
{
    return texture_region_held(&lane->base, region) ? cuda_region_state(&lane->base)->bits : NULL;
}

int
cuda_levels_send(struct cuda_lane *lane, const struct texture_levels *levels, size_t first, size_t count, uint16_t *own,
                 const uint16_t **tables, struct error *error)
{
    const struct cuda_region *region = cuda_region_state(&lane->base);
    const bool held = region->held.level_of == levels->level_of && levels->table_count == 1;
    const size_t values = texture_values(lane);

    *tables = held ? region->table : own;
    if (!held && levels->table_count == 1)
        CUDA_SEND(lane, own, levels->level_of, values);
    else if (!held)
        CUDA_SEND(lane, own, levels->level_of + first * values, count * values);
    return 0;
}

const struct kernels_op cuda_region_op = {
    .name = "a held region",
    .state_size = sizeof(struct cuda_region),
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_region_place,
    .run = cuda_region_run,
};

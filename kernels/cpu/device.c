/*
 * device.c - the CPU backend: device, lanes, memory, and the value range of a volume.
 *
 * Memory comes from mmap in huge pages where the system gives them; the pages become resident as
 * they are written, so a lane costs what its job touches.
 */
#include "kernels/cpu/device.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

enum {
    HUGE_PAGE = 1 << 21,
    NAME_LENGTH = 49, /* a processor's brand string with its end */
};

static void
block_free(struct cpu_block *block)
{
    if (block->memory)
        munmap(block->memory, block->size);
    *block = (struct cpu_block){0};
}

int
cpu_block_reserve(struct cpu_block *block, size_t size)
{
    void *memory;

    if (size <= block->size)
        return 0;
    block_free(block);
    if (size > SIZE_MAX - HUGE_PAGE)
        return -ENOMEM;
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -ENOMEM;
    madvise(memory, size, MADV_HUGEPAGE); /* only advice: slower without */
    *block = (struct cpu_block){memory, size};
    return 0;
}

int
kernels_processors(void)
{
    cpu_set_t set;
    long online;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t holds */
    return online > 0 ? (int)online : 1;
}

static void
processor_name(char name[NAME_LENGTH])
{
    snprintf(name, NAME_LENGTH, "CPU");
#ifdef __x86_64__
    unsigned words[12];

    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                         &words[4 * i + 3]))
            return;
    memcpy(name, words, sizeof(words));
    name[NAME_LENGTH - 1] = '\0';
    for (size_t length = strlen(name); length > 0 && name[length - 1] == ' '; length--)
        name[length - 1] = '\0';
#endif
}

static void
describe(struct cpu_device *device)
{
    char name[NAME_LENGTH];
    int threads = device->base.threads;

    processor_name(name);
    snprintf(device->base.description, sizeof(device->base.description), "%s, %d thread%s, %s",
             name, threads, threads == 1 ? "" : "s", device->isa->name);
}

int
cpu_device_open(const struct kernels_device_options *options, const char *isa,
                struct kernels_device **result, char *reason, size_t reason_size)
{
    struct cpu_device *device = calloc(1, sizeof(*device));
    int error;

    if (!device)
        return kernels_fail(-ENOMEM, reason, reason_size, "no memory to open the CPU device");
    device->base.backend = &kernels_backend_cpu;
    device->base.threads = options->threads > 0 ? options->threads : kernels_processors();
    device->isa = isa_find(isa);
    if (!device->isa) {
        error = kernels_fail(-ENODEV, reason, reason_size, "this processor does not run %s", isa);
        goto fail;
    }
    error = cpu_pool_open(device->base.threads, &device->pool);
    if (error) {
        kernels_fail(error, reason, reason_size, "cannot start %d threads: %s",
                     device->base.threads, strerror(-error));
        goto fail;
    }
    describe(device);
    *result = &device->base;
    return 0;

fail:
    free(device);
    return error;
}

static int
device_open(const struct kernels_device_options *options, struct kernels_device **device,
            char *reason, size_t reason_size)
{
    return cpu_device_open(options, NULL, device, reason, reason_size);
}

static void
device_close(struct kernels_device *base)
{
    struct cpu_device *device = (struct cpu_device *)base;

    cpu_pool_close(device->pool);
    free(device);
}

static int
lane_open(struct kernels_device *device, struct kernels_lane **result, char *reason,
          size_t reason_size)
{
    struct cpu_lane *lane = calloc(1, sizeof(*lane));

    (void)device;
    if (!lane)
        return kernels_fail(-ENOMEM, reason, reason_size, "no memory to open a lane");
    *result = &lane->base;
    return 0;
}

static void
lane_close(struct kernels_lane *base)
{
    struct cpu_lane *lane = cpu_lane_of(base);

    block_free(&lane->textured);
    block_free(&lane->connected);
    block_free(&lane->bits);
    block_free(&lane->voxels);
    free(lane);
}

static int64_t
slice_voxels(const struct kernels_lane *lane)
{
    return lane->extent.columns * lane->extent.rows;
}

static int
volume_begin(struct kernels_lane *base, void **voxels, char *reason, size_t reason_size)
{
    struct cpu_lane *lane = cpu_lane_of(base);
    size_t bytes =
        (size_t)(slice_voxels(base) * base->extent.slices) * image_pixel_size(base->pixel);

    if (cpu_block_reserve(&lane->voxels, bytes) || cpu_level_set_reserve(lane) ||
        cpu_fuzzy_reserve(lane) || cpu_texture_reserve(lane))
        return kernels_fail(-ENOMEM, reason, reason_size,
                            "no memory for %lld x %lld x %lld voxels, %zu labels, %zu objects%s",
                            (long long)base->extent.columns, (long long)base->extent.rows,
                            (long long)base->extent.slices, base->demand.level_set_labels,
                            base->demand.fuzzy_objects, base->demand.texture ? " and texture" : "");
    *voxels = lane->voxels.memory;
    return 0;
}

static int
volume_ready(struct kernels_lane *base, int64_t first, int64_t count)
{
    for (int64_t z = first; z < first + count; z++)
        cpu_level_set_slice(cpu_lane_of(base), z);
    return 0;
}

/* The value range, slice by slice on all threads, united under a mutex. */
struct extremes_job {
    struct cpu_lane *lane;
    struct isa_extremes empty; /* where every slice begins */
    pthread_mutex_t mutex;
    struct isa_extremes extremes;
};

static void
slice_extremes(void *context, int64_t z)
{
    struct extremes_job *job = context;
    const struct kernels_lane *lane = &job->lane->base;
    const struct isa *isa = cpu_device_of(lane)->isa;
    struct isa_extremes own = job->empty;
    int64_t count = slice_voxels(lane);

    if (lane->pixel == IMAGE_UINT8)
        isa->extremes8((const uint8_t *)job->lane->voxels.memory + z * count, count, &own);
    else
        isa->extremes16((const uint16_t *)job->lane->voxels.memory + z * count, count, &own);
    pthread_mutex_lock(&job->mutex);
    if (own.smallest < job->extremes.smallest)
        job->extremes.smallest = own.smallest;
    if (own.largest > job->extremes.largest)
        job->extremes.largest = own.largest;
    pthread_mutex_unlock(&job->mutex);
}

static int
volume_range(struct kernels_lane *base, struct image_range padding, struct image_range *range)
{
    int32_t low = base->pixel == IMAGE_INT16 ? INT16_MIN : 0;
    int32_t high = low + (base->pixel == IMAGE_UINT8 ? UINT8_MAX : UINT16_MAX);
    struct extremes_job job = {.lane = cpu_lane_of(base)};
    struct isa_extremes *empty = &job.empty;

    padding.lo = padding.lo > low ? padding.lo : low;
    padding.hi = padding.hi < high ? padding.hi : high;
    empty->bias = base->pixel == IMAGE_INT16 ? 0x8000 : 0;
    empty->smallest = (uint16_t)(high - low);
    if (padding.lo <= padding.hi) {
        empty->skipping = true;
        empty->skip.low = (uint16_t)(padding.lo - low);
        empty->skip.span = (uint16_t)(padding.hi - padding.lo);
    }
    job.extremes = *empty;
    pthread_mutex_init(&job.mutex, NULL);
    cpu_pool_for(cpu_device_of(base)->pool, base->extent.slices, slice_extremes, &job);
    pthread_mutex_destroy(&job.mutex);
    /* Nothing but padding leaves smallest above largest. */
    if (job.extremes.smallest > job.extremes.largest)
        return -ENODATA;
    range->lo = low + job.extremes.smallest;
    range->hi = low + job.extremes.largest;
    return 0;
}

const struct kernels_backend kernels_backend_cpu = {
    .name = "cpu",
    .device_open = device_open,
    .device_close = device_close,
    .lane_open = lane_open,
    .lane_close = lane_close,
    .volume_begin = volume_begin,
    .level_set_begin = cpu_level_set_begin,
    .volume_ready = volume_ready,
    .level_set_finish = cpu_level_set_finish,
    .level_set_codes = cpu_level_set_codes,
    .fuzzy_run = cpu_fuzzy_run,
    .volume_range = volume_range,
    .glcm_run = cpu_glcm_run,
    .histogram_run = cpu_histogram_run,
    .patterns_run = cpu_patterns_run,
};

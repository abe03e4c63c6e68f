/*
 * device.c - the CPU backend: device, lanes and their memory.
 *
 * Memory comes from mmap, in huge pages if the system provides them. Pages become resident when
 * written, so that a lane costs only the memory that its job touches.
 */
#include "kernels/cpu/device.h"

#include <errno.h>
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
    NAME_LENGTH = 49, /* length of a processor's brand string with its terminator */
};

static void
cpu_block_free(struct cpu_block *block)
{
    if (block->memory)
        munmap(block->memory, block->size);
    *block = (struct cpu_block){0};
}

/* Returns 0, or -ENOMEM with an empty block. */
static int
cpu_block_reserve(struct cpu_block *block, size_t size)
{
    void *memory;

    if (size <= block->size)
        return 0;
    cpu_block_free(block);
    if (size > SIZE_MAX - HUGE_PAGE)
        return -ENOMEM;
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -ENOMEM;
    madvise(memory, size, MADV_HUGEPAGE); /* optional: slower if it fails */
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
    online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t can hold */
    return online > 0 ? (int)online : 1;
}

static void
processor_name(char name[NAME_LENGTH])
{
    snprintf(name, NAME_LENGTH, "CPU");
#ifdef __x86_64__
    unsigned words[12];

    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]))
            return;
    memcpy(name, words, sizeof(words));
    name[NAME_LENGTH - 1] = '\0';
    for (size_t length = strlen(name); length > 0 && name[length - 1] == ' '; length--)
        name[length - 1] = '\0';
#endif
}

int
cpu_device_open(const struct kernels_device_options *options, const char *isa, struct kernels_device **result,
                struct error *error)
{
    struct cpu_device *device = calloc(1, sizeof(*device));
    char name[NAME_LENGTH];
    int rc;

    if (!device)
        return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory to open the CPU device");
    device->base.backend = &kernels_backend_cpu;
    device->base.threads = options->threads > 0 ? options->threads : kernels_processors();
    device->isa = isa_find(isa);
    if (!device->isa) {
        rc = error_set(error, -ENODEV, CODE_COMPUTE_FAILED, "this processor does not run %s", isa);
        goto fail;
    }
    rc = cpu_pool_open(device->base.threads, &device->pool);
    if (rc) {
        error_set(error, rc, CODE_COMPUTE_FAILED, "cannot start %d threads: %s", device->base.threads, strerror(-rc));
        goto fail;
    }
    device->base.pool = device->pool;
    processor_name(name);
    snprintf(device->base.description, sizeof(device->base.description), "%s, %d thread%s, %s", name,
             device->base.threads, device->base.threads == 1 ? "" : "s", device->isa->name);
    *result = &device->base;
    return 0;

fail:
    free(device);
    return rc;
}

static int
device_open(const struct kernels_device_options *options, struct kernels_device **device, struct error *error)
{
    return cpu_device_open(options, NULL, device, error);
}

static void
device_close(struct kernels_device *base)
{
    struct cpu_device *device = (struct cpu_device *)base;

    cpu_pool_close(device->pool);
    free(device);
}

static int
cpu_lane_open(struct kernels_device *device, struct kernels_lane **result, struct error *error)
{
    struct cpu_lane *lane = calloc(1, sizeof(*lane));

    (void)device;
    if (!lane)
        return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory to open a lane");
    *result = &lane->base;
    return 0;
}

static void
cpu_lane_close(struct kernels_lane *base)
{
    struct cpu_lane *lane = cpu_lane_of(base);

    cpu_block_free(&lane->work);
    cpu_block_free(&lane->voxels);
    free(lane);
}

static int
cpu_lane_reserve(struct kernels_lane *lane, size_t bytes)
{
    return cpu_block_reserve(&cpu_lane_of(lane)->voxels, bytes);
}

static int
cpu_lane_enter(struct kernels_lane *lane, struct error *error)
{
    (void)lane;
    (void)error;
    return 0;
}

static int
cpu_volume_begin(struct kernels_lane *base, struct kernels_memory *memory, void **voxels, struct error *error)
{
    struct cpu_lane *lane = cpu_lane_of(base);
    const struct image_extent *extent = &base->extent;
    size_t bytes = (size_t)(extent->columns * extent->rows * extent->slices) * image_pixel_size(base->pixel);

    if (cpu_block_reserve(&lane->voxels, bytes) || cpu_block_reserve(&lane->work, memory->host.used))
        return kernels_no_memory(base, error);
    *voxels = lane->voxels.memory;
    memory->host.memory = lane->work.memory;
    return 0;
}

const struct kernels_backend kernels_backend_cpu = {
    .name = "cpu",
    .device_open = device_open,
    .device_close = device_close,
    .lane_open = cpu_lane_open,
    .lane_close = cpu_lane_close,
    .lane_reserve = cpu_lane_reserve,
    .lane_enter = cpu_lane_enter,
    .volume_begin = cpu_volume_begin,
    .ops =
        {
#define OP(NAME, name) &cpu_##name##_op,
#include "kernels/ops.def"
#undef OP
        },
};

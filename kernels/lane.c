/* lane.c - the table of backends, the life cycle of a lane, the memory of operations, and the order
 * of calls. Checks the order once for all backends. */
#include "kernels/cpu/cpu_pool.h"
#include "kernels/op.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 256 }; /* alignment of an arena's pieces */

/* In the order of "auto". */
static const struct kernels_backend *const backends[] = {
#ifdef NOCTULE_CUDA
    &kernels_backend_cuda,
#endif
    &kernels_backend_cpu,
};

enum { BACKEND_COUNT = sizeof(backends) / sizeof(backends[0]) };

const bool kernels_asked = true;

/* --------------------------------------------------------------------------- devices ---- */

int
kernels_device_open(const struct kernels_device_options *options, struct kernels_device **device, struct error *error)
{
    bool any = strcmp(options->backend, "auto") == 0;

    if (options->threads < 0)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "%d threads is not a number of threads",
                         options->threads);
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (!any && strcmp(options->backend, backends[i]->name) != 0)
            continue;
        int rc = backends[i]->device_open(options, device, error);
        if (!any || rc != -ENODEV)
            return rc;
    }
    return error_set(error, -ENODEV, CODE_COMPUTE_FAILED, "there is no compute backend \"%s\"", options->backend);
}

void
kernels_device_close(struct kernels_device *device)
{
    if (device)
        device->backend->device_close(device);
}

void
kernels_device_leave(struct kernels_device *device, int64_t bytes)
{
    if (device->backend->device_leave)
        device->backend->device_leave(device, (size_t)bytes);
}

int
kernels_device_memory(struct kernels_device *device, struct kernels_gpu_memory *memory)
{
    return device->backend->device_memory ? device->backend->device_memory(device, memory) : -ENOTSUP;
}

const char *
kernels_device_backend(const struct kernels_device *device)
{
    return device->backend->name;
}

const char *
kernels_device_description(const struct kernels_device *device)
{
    return device->description;
}

int
kernels_device_threads(const struct kernels_device *device)
{
    return device->threads;
}

/* ----------------------------------------------------------------------------- lanes ---- */

int
kernels_lane_threads(const struct kernels_lane *lane)
{
    return lane->device->threads;
}

void
kernels_lane_for(const struct kernels_lane *lane, int64_t count, void (*body)(void *context, int64_t i), void *context)
{
    if (lane)
        cpu_pool_for(lane->device->pool, count, body, context);
    for (int64_t i = 0; i < count && !lane; i++)
        body(context, i);
}

bool
kernels_lane_beside(const struct kernels_lane *lane)
{
    return lane->device->backend->turn_take != NULL;
}

static const struct kernels_op *
lane_op(const struct kernels_lane *lane, int id)
{
    return lane->device->backend->ops[id];
}

int
kernels_lane_open(struct kernels_device *device, struct kernels_lane **result, struct error *error)
{
    struct kernels_lane *lane;
    int rc = device->backend->lane_open(device, &lane, error);

    if (rc)
        return rc;
    lane->device = device;
    for (int i = 0; i < KERNELS_OPS && rc == 0; i++) {
        const struct kernels_op *op = lane_op(lane, i);

        lane->state[i] = calloc(1, op->state_size + 1); /* some have no state */
        if (!lane->state[i])
            rc = error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory to open a lane for %s", op->name);
        else if (op->open)
            rc = op->open(lane, error);
        if (rc) {
            free(lane->state[i]); /* close is not called */
            lane->state[i] = NULL;
        }
    }
    if (rc)
        kernels_lane_close(lane);
    else
        *result = lane;
    return rc;
}

void
kernels_lane_close(struct kernels_lane *lane)
{
    if (!lane)
        return;
    for (int i = KERNELS_OPS - 1; i >= 0; i--) {
        if (lane->state[i] && lane_op(lane, i)->close)
            lane_op(lane, i)->close(lane);
        free(lane->state[i]);
    }
    free(lane->rows_left);
    lane->device->backend->lane_close(lane);
}

int
kernels_lane_reserve(struct kernels_lane *lane, int64_t bytes)
{
    int rc = lane->device->backend->lane_enter(lane, NULL);

    return rc ? rc : lane->device->backend->lane_reserve(lane, (size_t)bytes);
}

/* ---------------------------------------------------------------------------- memory ---- */

void *
kernels_take(struct kernels_arena *arena, size_t count, size_t size)
{
    size_t begin = arena->used, bytes;

    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, (size_t)PIECE - 1, &bytes) ||
        __builtin_add_overflow(begin, bytes / PIECE * PIECE, &arena->used))
        arena->too_large = true;
    return arena->memory ? arena->memory + begin : NULL;
}

bool
kernels_op_asked(struct kernels_lane *lane, const void *demand)
{
    (void)lane;
    (void)demand;
    return true;
}

/* Sets which operations the job may use. Returns false if a size overflows. */
static bool
choose_ops(struct kernels_lane *lane, const struct kernels_demand *demand)
{
    bool fits = true;

    for (int i = 0; i < KERNELS_OPS; i++) {
        const struct kernels_op *op = lane_op(lane, i);

        lane->phase[i] = !op->needs || demand->of[i] ? KERNELS_OP_READY : KERNELS_OP_ABSENT;
        if (op->needs && demand->of[i] && !op->needs(lane, demand->of[i]))
            fits = false;
    }
    return fits;
}

/* Places persistent pieces one after the other. The transient ones follow, all at the same
 * address. */
static bool
place_ops(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct kernels_memory begin, end;

    for (int i = 0; i < KERNELS_OPS; i++)
        if (lane->phase[i] != KERNELS_OP_ABSENT && lane_op(lane, i)->place && !lane_op(lane, i)->transient)
            lane_op(lane, i)->place(lane, memory);
    for (int i = 0; i < KERNELS_OPS; i++)
        if (lane->phase[i] != KERNELS_OP_ABSENT && lane_op(lane, i)->keep)
            lane_op(lane, i)->keep(lane, memory);
    begin = end = *memory;
    for (int i = 0; i < KERNELS_OPS; i++) {
        const struct kernels_op *op = lane_op(lane, i);

        if (lane->phase[i] == KERNELS_OP_ABSENT || !op->place || !op->transient)
            continue;
        *memory = begin;
        op->place(lane, memory);
        end.host.used = memory->host.used > end.host.used ? memory->host.used : end.host.used;
        end.device.used = memory->device.used > end.device.used ? memory->device.used : end.device.used;
        end.host.too_large |= memory->host.too_large;
        end.device.too_large |= memory->device.too_large;
    }
    *memory = end;
    return !memory->host.too_large && !memory->device.too_large;
}

int
kernels_no_memory(const struct kernels_lane *lane, struct error *error)
{
    const struct image_extent *extent = &lane->extent;
    char names[128] = "";

    for (int i = 0; i < KERNELS_OPS; i++)
        if (lane->phase[i] != KERNELS_OP_ABSENT && lane_op(lane, i)->needs) {
            size_t length = strlen(names);

            snprintf(names + length, sizeof(names) - length, ", %s", lane_op(lane, i)->name);
        }
    return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory for %lld x %lld x %lld voxels%s",
                     (long long)extent->columns, (long long)extent->rows, (long long)extent->slices, names);
}

/* ---------------------------------------------------------------------------- volume ---- */

static int
check_extent(const struct image_extent *extent, struct error *error)
{
    int64_t voxels;

    if (extent->columns < 1 || extent->rows < 1 || extent->slices < 1)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "a volume of %lld x %lld x %lld voxels does not exist",
                         (long long)extent->columns, (long long)extent->rows, (long long)extent->slices);
    if (__builtin_mul_overflow(extent->columns, extent->rows, &voxels) ||
        __builtin_mul_overflow(voxels, extent->slices, &voxels) || voxels > KERNELS_MAX_VOXELS)
        return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                         "%lld x %lld x %lld voxels are more than the limit of %lld", (long long)extent->columns,
                         (long long)extent->rows, (long long)extent->slices, (long long)KERNELS_MAX_VOXELS);
    return 0;
}

/* Checks the job's limit before any memory is taken. */
static int
check_most(struct kernels_lane *lane, const struct kernels_demand *demand, size_t work, struct error *error)
{
    const struct image_extent *extent = &lane->extent;
    const double mib = 1 << 20;
    const double bytes =
        (double)work + (double)demand->beside_bytes +
        (double)(extent->columns * extent->rows * extent->slices) * (double)image_pixel_size(lane->pixel);

    lane->bytes = (int64_t)bytes;
    if (demand->most_bytes <= 0 || bytes <= (double)demand->most_bytes)
        return 0;
    return error_set(error, -E2BIG, CODE_JOB_TOO_LARGE,
                     "%lld x %lld x %lld voxels need %.0f MiB of memory, and a job may take %.0f",
                     (long long)extent->columns, (long long)extent->rows, (long long)extent->slices, bytes / mib,
                     (double)demand->most_bytes / mib);
}

/* Counts the needs of all operations, reserves them in the backend, and places them. */
static int
reserve_volume(struct kernels_lane *lane, const struct kernels_demand *demand, void **voxels, struct error *error)
{
    const struct kernels_backend *backend = lane->device->backend;
    const size_t slices = (size_t)lane->extent.slices;
    struct kernels_memory memory = {0};
    int rc = backend->lane_enter(lane, error);

    if (rc)
        return rc;
    if (slices > lane->rows_left_capacity) {
        int64_t *grown = realloc(lane->rows_left, slices * sizeof(*grown));
        if (!grown)
            return kernels_no_memory(lane, error);
        lane->rows_left = grown;
        lane->rows_left_capacity = slices;
    }
    for (size_t z = 0; z < slices; z++)
        lane->rows_left[z] = lane->extent.rows;
    if (!choose_ops(lane, demand) || !place_ops(lane, &memory))
        return kernels_no_memory(lane, error);
    rc = check_most(lane, demand, memory.host.used, error);
    if (rc)
        return rc;
    rc = backend->volume_begin(lane, &memory, voxels, error);
    if (rc)
        return rc;
    memory.host.used = memory.device.used = 0;
    place_ops(lane, &memory);
    return 0;
}

int
kernels_volume_begin(struct kernels_lane *lane, struct image_extent extent, enum image_pixel pixel,
                     const struct kernels_demand *demand, void **voxels, struct error *error)
{
    int rc = check_extent(&extent, error);

    lane->has_volume = false;
    if (rc)
        return rc;
    if (image_pixel_size(pixel) == 0)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "%d is not a pixel type", (int)pixel);
    lane->extent = extent;
    lane->pixel = pixel;
    lane->rows_ready = 0;
    rc = reserve_volume(lane, demand, voxels, error);
    lane->has_volume = rc == 0;
    lane->voxels = *voxels;
    return rc;
}

const void *
kernels_volume_voxels(const struct kernels_lane *lane)
{
    return lane->voxels;
}

enum image_pixel
kernels_volume_pixel(const struct kernels_lane *lane)
{
    return lane->pixel;
}

int64_t
kernels_lane_bytes(const struct kernels_lane *lane)
{
    return lane->has_volume ? lane->bytes : 0;
}

/* Announces rows of slices first .. end - 1: `count` rows of each, from its row `row` on. */
static int
announce_rows(struct kernels_lane *lane, int64_t first, int64_t end, int64_t row, int64_t count, struct error *error)
{
    const struct kernels_backend *backend = lane->device->backend;
    int rc = 0;

    for (int64_t z = first; z < end && rc == 0; z++) {
        /* The thread that announces the last rows of a slice sees all other threads' writes to it. */
        const int64_t left = __atomic_sub_fetch(&lane->rows_left[z], count, __ATOMIC_ACQ_REL);

        if (left < 0)
            return error_set(error, -EALREADY, CODE_COMPUTE_FAILED, "slice %lld comes twice", (long long)z);
        if (left == 0 && !backend->rows_ready)
            rc = kernels_slices_arrived(lane, z, 1, error);
    }
    if (rc == 0 && backend->rows_ready)
        rc = backend->rows_ready(lane, first * lane->extent.rows + row, (end - first) * count, error);
    if (rc == 0)
        __atomic_fetch_add(&lane->rows_ready, (end - first) * count, __ATOMIC_RELEASE);
    return rc;
}

int
kernels_volume_ready(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error)
{
    if (!lane->has_volume || first < 0 || count < 0 || first > lane->extent.slices ||
        count > lane->extent.slices - first)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "the lane has no such slices");
    return announce_rows(lane, first, first + count, 0, lane->extent.rows, error);
}

int
kernels_rows_ready(struct kernels_lane *lane, int64_t z, int64_t first, int64_t count, struct error *error)
{
    if (!lane->has_volume || z < 0 || z >= lane->extent.slices || first < 0 || count < 0 || first > lane->extent.rows ||
        count > lane->extent.rows - first)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "the lane has no such rows");
    return count > 0 ? announce_rows(lane, z, z + 1, first, count, error) : 0;
}

/* ------------------------------------------------------------------------ operations ---- */

int
kernels_slices_arrived(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error)
{
    int rc = 0;

    for (int i = 0; i < KERNELS_OPS && rc == 0; i++)
        if (lane->phase[i] == KERNELS_OP_BEGUN)
            rc = lane_op(lane, i)->ready(lane, first, count, error);
    return rc;
}

static int
check_phase(const struct kernels_lane *lane, enum kernels_op_id id, struct error *error)
{
    if (!lane->has_volume || lane->phase[id] == KERNELS_OP_ABSENT)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "%s must be in the demand of kernels_volume_begin",
                         lane_op(lane, id)->name);
    return 0;
}

int
kernels_op_begin(struct kernels_lane *lane, enum kernels_op_id id, const void *request, struct error *error)
{
    const struct kernels_op *op = lane_op(lane, id);
    int rc = check_phase(lane, id, error);

    if (rc)
        return rc;
    if (lane->rows_ready > 0 || lane->phase[id] == KERNELS_OP_BEGUN)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "%s is begun once, before the first slice is announced",
                         op->name);
    rc = lane->device->backend->lane_enter(lane, error);
    if (rc == 0)
        rc = op->begin(lane, request, error);
    if (rc == 0)
        lane->phase[id] = KERNELS_OP_BEGUN;
    return rc;
}

int
kernels_op_check(struct kernels_lane *lane, enum kernels_op_id id, struct error *error)
{
    int rc = check_phase(lane, id, error);

    if (rc)
        return rc;
    const int64_t missing =
        lane->extent.slices - __atomic_load_n(&lane->rows_ready, __ATOMIC_ACQUIRE) / lane->extent.rows;

    if (missing > 0)
        rc = error_set(error, -EBUSY, CODE_COMPUTE_FAILED, "%lld of %lld slices are not announced", (long long)missing,
                       (long long)lane->extent.slices);
    return rc;
}

int
kernels_op_run(struct kernels_lane *lane, enum kernels_op_id id, const void *request, struct error *error)
{
    const struct kernels_backend *backend = lane->device->backend;
    bool has_turn = false;
    int rc = kernels_op_check(lane, id, error);

    if (rc == 0)
        rc = backend->lane_enter(lane, error);
    if (rc)
        return rc;
    if (backend->turn_take)
        rc = backend->turn_take(lane, lane_op(lane, id), &has_turn, error);
    if (rc == 0)
        rc = lane_op(lane, id)->run(lane, request, error);
    if (lane->phase[id] == KERNELS_OP_BEGUN)
        lane->phase[id] = KERNELS_OP_READY;
    if (has_turn)
        backend->turn_leave(lane);
    return rc;
}

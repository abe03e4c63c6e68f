/*
 * smooth_cpu.c - ranges of Gaussian-filtered values on the CPU. A thread filters consecutive slices along x and y, and
 * keeps as many of them as the filter along z needs. The volume is read once, except for the slices around these.
 */
#include "kernels/range/range_cpu.h"
#include "kernels/smooth/smooth_plan.h"

#include <string.h>

enum { SMOOTH_TAPS = 2 * SMOOTH_MAX_RADIUS + 1 };

struct cpu_smooth {
    struct smooth_demand demand;
    int64_t radius[3]; /* the largest of the job */
    int64_t pitch;     /* values of a row with room for groups of ISA_SMOOTH */
    int64_t runs_most; /* max runs of slices, each with its memory */
    int16_t *lines;    /* a clipped row with its surroundings, a filtered row, and rows filtered along x */
    int16_t *slices;   /* filtered along x and y */
    uint64_t *bins;
};

struct smooth_job {
    struct cpu_lane *lane;
    const struct smooth_plan *plan;
    const struct cpu_smooth *own;
    struct isa_interval pass[2];
    bool any; /* values can be in range */
    int64_t runs;
};

/* The memory of a run of slices. Rings have one row or slice per weight. */
struct smooth_space {
    int16_t *line, *filtered, *rows, *slices;
    uint64_t *bins;
};

static struct cpu_smooth *
cpu_smooth_state(const struct kernels_lane *lane)
{
    return kernels_state(lane, KERNELS_SMOOTH);
}

static bool
cpu_smooth_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_smooth *own = cpu_smooth_state(lane);
    const int64_t slices = lane->extent.slices;
    struct smooth_plan plan;

    own->demand = *(const struct smooth_demand *)demand;
    smooth_plan_radii(&own->demand, &plan);
    for (int axis = 0; axis < 3; axis++) /* a run refuses a larger one */
        own->radius[axis] = plan.radius[axis] < 0 ? SMOOTH_MAX_RADIUS : plan.radius[axis];
    own->pitch = (lane->extent.columns + ISA_SMOOTH - 1) / ISA_SMOOTH * ISA_SMOOTH;
    /* The slices around a run are filtered twice. */
    own->runs_most = slices / (2 * own->radius[2] + 1);
    own->runs_most = own->runs_most < 1 ? 1 : own->runs_most;
    if (own->runs_most > lane->device->threads)
        own->runs_most = lane->device->threads;
    return true;
}

static size_t
smooth_line_values(const struct cpu_smooth *own)
{
    return (size_t)(own->pitch * (2 * own->radius[1] + 3) + 2 * own->radius[0] + ISA_SMOOTH);
}

static size_t
smooth_slice_values(const struct cpu_smooth *own, const struct kernels_lane *lane)
{
    return (size_t)(own->pitch * lane->extent.rows * (2 * own->radius[2] + 1));
}

static void
cpu_smooth_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_smooth *own = cpu_smooth_state(lane);
    const size_t runs = (size_t)own->runs_most;

    own->lines = kernels_take(&memory->host, runs, smooth_line_values(own) * sizeof(*own->lines));
    own->slices = kernels_take(&memory->host, runs, smooth_slice_values(own, lane) * sizeof(*own->slices));
    own->bins = kernels_take(&memory->host, runs, SMOOTH_MAX_BINS * sizeof(*own->bins));
}

static struct smooth_space
smooth_space_of(const struct smooth_job *job, int64_t run)
{
    const struct cpu_smooth *own = job->own;
    struct smooth_space space;

    space.filtered = own->lines + (size_t)run * smooth_line_values(own);
    space.rows = space.filtered + own->pitch;
    space.line = space.rows + own->pitch * (2 * own->radius[1] + 1);
    space.slices = own->slices + (size_t)run * smooth_slice_values(own, &job->lane->base);
    space.bins = own->bins + run * SMOOTH_MAX_BINS;
    return space;
}

static int64_t
smooth_within(int64_t i, int64_t side)
{
    return i < 0 ? 0 : i < side ? i : side - 1;
}

/* Filters along an axis: the taps are rows of a ring of `count` rows, `stride` values apart. */
static void
smooth_row(const struct smooth_job *job, int axis, int64_t i, int64_t side, const int16_t *ring, int64_t stride,
           int16_t *filtered)
{
    const int radius = job->plan->radius[axis];
    const int16_t *taps[SMOOTH_TAPS];

    for (int k = -radius; k <= radius; k++)
        taps[radius + k] = ring + smooth_within(i + k, side) % (2 * radius + 1) * stride;
    cpu_device_of(&job->lane->base)->isa->smooth16(taps, job->plan->weights[axis], radius, job->own->pitch, filtered);
}

/* Clips row y of slice z and filters it along x. */
static void
smooth_along_x(const struct smooth_job *job, const struct smooth_space *space, int64_t y, int64_t z)
{
    const struct image_extent *extent = &job->lane->base.extent;
    const int radius = job->plan->radius[0];
    const int16_t *taps[SMOOTH_TAPS];
    int16_t *row = space->line + radius;

    range_clip_row(job->lane, &job->plan->clip, z * extent->rows + y, (uint16_t *)row);
    for (int k = 1; k <= radius; k++) {
        row[-k] = row[0];
        row[extent->columns - 1 + k] = row[extent->columns - 1];
    }
    for (int k = 0; k <= 2 * radius; k++)
        taps[k] = space->line + k;
    cpu_device_of(&job->lane->base)
        ->isa->smooth16(taps, job->plan->weights[0], radius, job->own->pitch,
                        space->rows + y % (2 * job->plan->radius[1] + 1) * job->own->pitch);
}

/* Filters slice z along x and y. */
static void
smooth_slice(const struct smooth_job *job, const struct smooth_space *space, int64_t z)
{
    const int64_t rows = job->lane->base.extent.rows, pitch = job->own->pitch;
    int16_t *slice = space->slices + z % (2 * job->plan->radius[2] + 1) * rows * pitch;
    int64_t next = 0;

    for (int64_t y = 0; y < rows; y++) {
        for (; next <= smooth_within(y + job->plan->radius[1], rows); next++)
            smooth_along_x(job, space, next, z);
        smooth_row(job, 1, y, rows, space->rows, pitch, slice + y * pitch);
    }
}

static void
smooth_count(const struct smooth_job *job, const struct smooth_space *space, int64_t row)
{
    const struct smooth_request *request = job->plan->request;
    const int64_t columns = job->lane->base.extent.columns;
    const uint64_t *region = request->region ? request->region + row * ((columns + 63) / 64) : NULL;

    for (int64_t x = 0; x < columns; x++) {
        if (region && region[x / 64] == 0) {
            x |= 63;
            continue;
        }
        if (region && !(region[x / 64] >> x % 64 & 1))
            continue;
        const uint32_t bin = smooth_bin(space->filtered[x], request->lo, request->first, request->width);

        if (bin < (uint32_t)request->bins)
            space->bins[bin]++;
    }
}

/* Filters a row along z and uses its values. */
static void
smooth_finish_row(const struct smooth_job *job, const struct smooth_space *space, int64_t y, int64_t z)
{
    const struct smooth_request *request = job->plan->request;
    const struct image_extent *extent = &job->lane->base.extent;
    const int64_t words = (extent->columns + 63) / 64, row = z * extent->rows + y;

    smooth_row(job, 2, z, extent->slices, space->slices + y * job->own->pitch, extent->rows * job->own->pitch,
               space->filtered);
    if (request->bits && job->any)
        cpu_device_of(&job->lane->base)
            ->isa->pack16((const uint16_t *)space->filtered, extent->columns, job->pass, request->bits + row * words);
    else if (request->bits)
        memset(request->bits + row * words, 0, (size_t)words * sizeof(*request->bits));
    if (request->histogram)
        smooth_count(job, space, row);
}

static void
smooth_run_of_slices(void *context, int64_t run)
{
    const struct smooth_job *job = context;
    const struct smooth_request *request = job->plan->request;
    const struct smooth_space space = smooth_space_of(job, run);
    const int64_t slices = job->lane->base.extent.slices, radius = job->plan->radius[2];
    const int64_t first = run * slices / job->runs, end = (run + 1) * slices / job->runs;
    int64_t next = first > radius ? first - radius : 0;

    memset(space.bins, 0, SMOOTH_MAX_BINS * sizeof(*space.bins));
    for (int64_t z = first; z < end; z++) {
        for (; next <= smooth_within(z + radius, slices); next++)
            smooth_slice(job, &space, next);
        for (int64_t y = 0; y < job->lane->base.extent.rows; y++)
            smooth_finish_row(job, &space, y, z);
    }
    for (int i = 0; request->histogram && i < request->bins; i++)
        __atomic_fetch_add(&request->histogram[i], space.bins[i], __ATOMIC_RELAXED);
}

static int
cpu_smooth_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct smooth_plan *plan = given;
    struct smooth_job job = {.lane = cpu_lane_of(lane), .plan = plan, .own = cpu_smooth_state(lane)};
    struct image_range range;

    (void)error;
    job.runs = job.own->runs_most;
    job.any = smooth_range(plan->request, &range);
    job.pass[0] = job.pass[1] = (struct isa_interval){(uint16_t)range.lo, (uint16_t)(range.hi - range.lo)};
    if (plan->request->histogram)
        memset(plan->request->histogram, 0, (size_t)plan->request->bins * sizeof(*plan->request->histogram));
    cpu_pool_for(cpu_device_of(lane)->pool, job.runs, smooth_run_of_slices, &job);
    return 0;
}

const struct kernels_op cpu_smooth_op = {
    .name = "the Gaussian filter",
    .state_size = sizeof(struct cpu_smooth),
    .transient = true,
    .needs = cpu_smooth_needs,
    .place = cpu_smooth_place,
    .run = cpu_smooth_run,
};

/*
 * smooth_cpu.c - ranges of Gaussian-filtered values on the CPU. A thread filters a band of rows through all slices. It
 * keeps as many rows filtered along x, and slices of the band filtered along x and y, as the next filter needs, so that
 * these stay in its cache and the volume is read once.
 */
#include "kernels/range/range_cpu.h"
#include "kernels/smooth/smooth_plan.h"

#include <string.h>

enum {
    SMOOTH_TAPS = 2 * SMOOTH_MAX_RADIUS + 1,
    SMOOTH_BAND = 1 << 18, /* values of the slices of a band, if the radii permit it */
    SMOOTH_VALUES = 1 << 16,
    PASSED_WORDS = 8,
};

struct cpu_smooth {
    struct smooth_demand demand;
    int64_t radius[3]; /* the largest of the job */
    int64_t pitch;     /* values of a row with room for groups of ISA_SMOOTH */
    int64_t height;    /* rows of a band */
    int64_t space;     /* values per thread */
    int16_t *values;
    uint64_t *counts; /* SMOOTH_VALUES per thread */
};

struct smooth_job {
    struct cpu_lane *lane;
    const struct smooth_plan *plan;
    const struct cpu_smooth *own;
    void (*filter)(const int16_t *const *taps, const int16_t *weights, int radius, int64_t count, int16_t *filtered);
    struct isa_interval pass[2];
    bool any;              /* values can be in range */
    int64_t claimed, next; /* memory and bands, atomic */
};

/* The memory of a thread, and the box of voxels to filter. Rings have one row or slice per weight. */
struct smooth_space {
    int16_t *line, *filtered, *rows, *slices;
    uint64_t *counts;
    int64_t first[3], end[3]; /* words, rows, slices */
};

static bool
cpu_smooth_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_smooth *own = kernels_state(lane, KERNELS_SMOOTH);
    const int64_t threads = lane->device->threads, rows = lane->extent.rows;
    struct smooth_plan plan;

    own->demand = *(const struct smooth_demand *)demand;
    smooth_plan_radii(&own->demand, &plan);
    for (int axis = 0; axis < 3; axis++) /* a run refuses a larger one */
        own->radius[axis] = plan.radius[axis] < 0 ? SMOOTH_MAX_RADIUS : plan.radius[axis];
    own->pitch = (lane->extent.columns + ISA_SMOOTH - 1) / ISA_SMOOTH * ISA_SMOOTH;
    own->height = SMOOTH_BAND / (own->pitch * (2 * own->radius[2] + 1));
    if (own->height > (rows + threads - 1) / threads)
        own->height = (rows + threads - 1) / threads;
    /* The rows around a band are filtered along x once more. */
    if (own->height < 2 * own->radius[1] + 1)
        own->height = 2 * own->radius[1] + 1;
    own->space = 2 * own->radius[0] + ISA_SMOOTH +
                 own->pitch * (2 + 2 * own->radius[1] + 1 + own->height * (2 * own->radius[2] + 1));
    return true;
}

static void
cpu_smooth_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_smooth *own = kernels_state(lane, KERNELS_SMOOTH);
    const size_t threads = (size_t)lane->device->threads;

    own->values = kernels_take(&memory->host, threads, (size_t)own->space * sizeof(*own->values));
    own->counts = kernels_take(&memory->host, threads, SMOOTH_VALUES * sizeof(*own->counts));
}

static int64_t
smooth_within(int64_t i, int64_t side)
{
    return i < 0 ? 0 : i < side ? i : side - 1;
}

/* Filters along an axis: the taps are rows of a ring, `stride` values apart. */
static void
smooth_row(const struct smooth_job *job, const struct smooth_space *space, int axis, int64_t i, const int16_t *ring,
           int64_t stride, int16_t *filtered)
{
    const struct image_extent *extent = &job->lane->base.extent;
    const int64_t side = axis == 1 ? extent->rows : extent->slices;
    const int radius = job->plan->radius[axis];
    const int16_t *taps[SMOOTH_TAPS];

    for (int k = -radius; k <= radius; k++)
        taps[radius + k] = ring + smooth_within(i + k, side) % (2 * radius + 1) * stride;
    job->filter(taps, job->plan->weights[axis], radius, 64 * (space->end[0] - space->first[0]), filtered);
}

/* Clips the columns of row y of slice z and filters them along x. */
static void
smooth_along_x(const struct smooth_job *job, const struct smooth_space *space, int64_t y, int64_t z)
{
    const struct image_extent *extent = &job->lane->base.extent;
    const int radius = job->plan->radius[0];
    const int64_t left = 64 * space->first[0] - radius, right = 64 * space->end[0] + radius;
    const int64_t first = smooth_within(left, extent->columns), last = smooth_within(right - 1, extent->columns);
    const int16_t *taps[SMOOTH_TAPS];

    range_clip_voxels(job->lane, &job->plan->clip, (z * extent->rows + y) * extent->columns + first, last - first + 1,
                      (uint16_t *)space->line + first - left);
    for (int64_t x = left; x < first; x++)
        space->line[x - left] = space->line[first - left];
    for (int64_t x = last + 1; x <= last + radius && x < right; x++)
        space->line[x - left] = space->line[last - left];
    for (int k = 0; k <= 2 * radius; k++)
        taps[k] = space->line + k;
    job->filter(taps, job->plan->weights[0], radius, right - left - 2 * radius,
                space->rows + y % (2 * job->plan->radius[1] + 1) * job->own->pitch);
}

/* Filters the rows of slice z along x and y. */
static void
smooth_slice(const struct smooth_job *job, const struct smooth_space *space, int64_t z)
{
    const int64_t rows = job->lane->base.extent.rows, pitch = job->own->pitch, radius = job->plan->radius[1];
    int16_t *slice = space->slices + z % (2 * job->plan->radius[2] + 1) * job->own->height * pitch;
    int64_t next = smooth_within(space->first[1] - radius, rows);

    for (int64_t y = space->first[1]; y < space->end[1]; y++) {
        for (; next <= smooth_within(y + radius, rows); next++)
            smooth_along_x(job, space, next, z);
        smooth_row(job, space, 1, y, space->rows, pitch, slice + (y - space->first[1]) * pitch);
    }
}

/* Filters a row along z and uses its values. */
static void
smooth_finish_row(const struct smooth_job *job, const struct smooth_space *space, int64_t y, int64_t z)
{
    const struct smooth_request *request = job->plan->request;
    const struct image_extent *extent = &job->lane->base.extent;
    const int64_t words = (extent->columns + 63) / 64, row = z * extent->rows + y, pitch = job->own->pitch;
    const int64_t last = 64 * space->end[0] < extent->columns ? 64 * space->end[0] : extent->columns;
    const uint16_t *values = (const uint16_t *)space->filtered;

    smooth_row(job, space, 2, z, space->slices + (y - space->first[1]) * pitch, job->own->height * pitch,
               space->filtered);
    for (int64_t word = space->first[0]; request->histogram && word < space->end[0]; word++) {
        const int64_t count = extent->columns - 64 * word < 64 ? extent->columns - 64 * word : 64;
        const uint64_t bits = request->region ? request->region[row * words + word] : ~UINT64_C(0);

        for (int64_t x = 0; bits != 0 && x < count; x++)
            space->counts[values[64 * (word - space->first[0]) + x]] += bits >> x & 1;
    }
    for (int64_t word = space->first[0], some; request->bits && word < space->end[0]; word += some) {
        uint64_t passed[PASSED_WORDS] = {0};

        some = space->end[0] - word < PASSED_WORDS ? space->end[0] - word : PASSED_WORDS;
        if (job->any)
            cpu_device_of(&job->lane->base)
                ->isa->pack16(values + 64 * (word - space->first[0]),
                              last - 64 * word < 64 * some ? last - 64 * word : 64 * some, job->pass, passed);
        for (int64_t i = 0; i < some; i++)
            request->bits[row * words + word + i] =
                passed[i] & (request->region ? request->region[row * words + word + i] : ~UINT64_C(0));
    }
}

/* Limits the box to the words of the region. */
static void
smooth_limit(const struct smooth_job *job, struct smooth_space *space)
{
    const struct smooth_space all = *space;
    const int64_t words = all.end[0], rows = job->lane->base.extent.rows;

    for (int axis = 0; axis < 3; axis++) {
        space->first[axis] = all.end[axis];
        space->end[axis] = all.first[axis];
    }
    for (int64_t z = 0; z < all.end[2]; z++)
        for (int64_t y = all.first[1]; y < all.end[1]; y++) {
            const uint64_t *row = job->plan->request->region + (z * rows + y) * words;

            for (int64_t word = 0; word < words; word++) {
                const int64_t at[3] = {word, y, z};

                for (int axis = 0; axis < 3 && row[word] != 0; axis++) {
                    space->first[axis] = at[axis] < space->first[axis] ? at[axis] : space->first[axis];
                    space->end[axis] = at[axis] >= space->end[axis] ? at[axis] + 1 : space->end[axis];
                }
            }
        }
}

static void
smooth_band(const struct smooth_job *job, struct smooth_space *space, int64_t first)
{
    const struct smooth_request *request = job->plan->request;
    const struct image_extent *extent = &job->lane->base.extent;
    const int64_t radius = job->plan->radius[2], words = (extent->columns + 63) / 64;
    const int64_t end = first + job->own->height < extent->rows ? first + job->own->height : extent->rows;

    *space = (struct smooth_space){space->line,
                                   space->filtered,
                                   space->rows,
                                   space->slices,
                                   space->counts,
                                   {0, first, 0},
                                   {words, end, extent->slices}};
    /* Words outside of the region are 0; of a region in the same memory they are already. */
    for (int64_t z = 0; request->bits && request->region && request->region != request->bits && z < extent->slices; z++)
        memset(request->bits + (z * extent->rows + first) * words, 0,
               (size_t)((end - first) * words) * sizeof(uint64_t));
    if (request->region)
        smooth_limit(job, space);
    for (int64_t z = space->first[2], next = smooth_within(z - radius, extent->slices); z < space->end[2]; z++) {
        for (; next <= smooth_within(z + radius, extent->slices); next++)
            smooth_slice(job, space, next);
        for (int64_t y = space->first[1]; y < space->end[1]; y++)
            smooth_finish_row(job, space, y, z);
    }
}

/* The work of a thread: claims its memory, filters bands, and adds its counts to their bins. */
static void
smooth_bands(void *context)
{
    struct smooth_job *job = context;
    const struct smooth_request *request = job->plan->request;
    const struct cpu_smooth *own = job->own;
    const int64_t claimed = __atomic_fetch_add(&job->claimed, 1, __ATOMIC_RELAXED);
    struct smooth_space space = {.counts = own->counts + claimed * SMOOTH_VALUES};
    const int32_t zero = request->lo + job->plan->middle;

    space.filtered = own->values + claimed * own->space;
    space.rows = space.filtered + own->pitch;
    space.slices = space.rows + own->pitch * (2 * own->radius[1] + 1);
    space.line = space.slices + own->pitch * own->height * (2 * own->radius[2] + 1);
    if (request->histogram)
        memset(space.counts, 0, SMOOTH_VALUES * sizeof(*space.counts));
    for (int64_t band;
         (band = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) * own->height < job->lane->base.extent.rows;)
        smooth_band(job, &space, band * own->height);
    for (int32_t value = INT16_MIN; request->histogram && value <= INT16_MAX; value++) {
        const uint32_t bin = smooth_bin(value, zero, request->first, request->width);

        if (bin < (uint32_t)request->bins && space.counts[(uint16_t)value] > 0)
            __atomic_fetch_add(&request->histogram[bin], space.counts[(uint16_t)value], __ATOMIC_RELAXED);
    }
}

static int
cpu_smooth_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct smooth_plan *plan = given;
    const struct isa *isa = cpu_device_of(lane)->isa;
    struct smooth_job job = {
        .lane = cpu_lane_of(lane),
        .plan = plan,
        .own = kernels_state(lane, KERNELS_SMOOTH),
        .filter = plan->narrow ? isa->smooth15 : isa->smooth16,
    };
    struct image_range range = {0};

    (void)error;
    job.any = smooth_range(plan, &range);
    job.pass[0] = job.pass[1] = (struct isa_interval){(uint16_t)range.lo, (uint16_t)(range.hi - range.lo)};
    if (plan->request->histogram)
        memset(plan->request->histogram, 0, (size_t)plan->request->bins * sizeof(*plan->request->histogram));
    cpu_pool_run(cpu_device_of(lane)->pool, smooth_bands, &job);
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

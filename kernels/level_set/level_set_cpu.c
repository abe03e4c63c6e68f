/*
 * level_set_cpu.c - the level set of Trapani 2018 on the CPU.
 *
 * Stage 1 computes two bits per voxel and label: in range, and inside the initial region. If labels
 * were announced, it runs in kernels_volume_ready on the thread that decoded the slice, while that
 * is in the cache. Otherwise it runs on all threads at the beginning of the run. Stage 2 is
 * flood.c. Its cost is the number of runs of equal range within words. If there are far fewer runs
 * along y or z than along x (corridors along y or z), the bits are first packed along that axis.
 * Stage 3 is computed from the final bits on request.
 */
#include "kernels/cpu/device.h"
#include "kernels/level_set/flood.h"
#include "kernels/level_set/level_set.h"
#include "kernels/level_set/level_set_shape.h"
#include "kernels/range/range_cpu.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum {
    ALIGNMENT = 64,
    /* Other axes are considered if words have more runs than this on average... */
    RUNS_PER_WORD = 2,
    /* ... and used if they have this many times fewer: repacking costs three passes. */
    WORTH_TURNING = 3,
};

static struct bits_extent
cpu_level_set_extent_of(const struct kernels_lane *lane)
{
    return bits_extent(lane->extent.columns, lane->extent.rows, lane->extent.slices);
}

/*
 * Returns the extent of the volume packed along y, (y, x, z), or along z, (z, x, y): new x, y, z.
 * Both keep together the planes that are transposed as one matrix. A cache line between slices
 * spreads a column of words, one per slice, over cache sets if the bytes of a slice are a power of
 * two.
 */
static struct bits_extent
extent_along(const struct bits_extent *extent, int axis)
{
    const int64_t *size = extent->size;
    struct bits_extent turned = *extent;

    if (axis != 0) {
        turned = bits_extent(size[axis], size[0], size[3 - axis]);
        turned.words_per_slice += ALIGNMENT / (int64_t)sizeof(uint64_t);
    }
    return turned;
}

/* Thin volumes do not pack well along their short axes. */
static bool
may_turn(const struct bits_extent *extent, int axis)
{
    struct bits_extent turned = extent_along(extent, axis);
    int64_t words = bits_words(extent);

    return bits_words(&turned) <= words + words / 4;
}

/* One label. */
struct cpu_label {
    struct kernels_level_set_label given;
    uint64_t *range;  /* one bit per voxel: in range; work space after the flood begins */
    uint64_t *inside; /* the initial region, then the final one */
    int64_t voxels;   /* number of bits set in inside */
    int64_t runs;     /* runs of in-range voxels within rows */
};

struct cpu_level_set {
    struct kernels_level_set_demand demand;
    const struct kernels_level_set_label *begun; /* from the hint; NULL: no hint, or already run */
    bool found;                                  /* the regions are final */
    struct cpu_label *labels;
    uint64_t *turned;  /* work space: the range bits packed along another axis */
    void *flood_space; /* work space */
};

struct level_set_sizes {
    size_t words;  /* of inside */
    size_t turned; /* of range and of the turned range, for any axis */
    size_t flood;  /* bytes */
};

static bool
cpu_level_set_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_level_set *own = kernels_state(lane, KERNELS_LEVEL_SET);

    own->demand = *(const struct kernels_level_set_demand *)demand;
    return true;
}

static void
level_set_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_level_set *own = kernels_state(lane, KERNELS_LEVEL_SET);
    struct kernels_arena *arena = &memory->host;
    struct bits_extent extent = cpu_level_set_extent_of(lane);
    struct level_set_sizes sizes = {.words = (size_t)bits_words(&extent)};

    for (int axis = 0; axis < 3; axis++) {
        struct bits_extent turned = extent_along(&extent, axis);
        size_t words = (size_t)bits_words(&turned), flood = tiles_space(&turned);

        if (!may_turn(&extent, axis))
            continue;
        sizes.turned = words > sizes.turned ? words : sizes.turned;
        sizes.flood = flood > sizes.flood ? flood : sizes.flood;
    }
    size_t count = own->demand.labels;
    uint64_t *inside, *range;

    own->begun = NULL;
    own->found = false;
    own->labels = kernels_take(arena, count, sizeof(*own->labels));
    inside = kernels_take(arena, count, sizes.words * sizeof(*inside));
    range = kernels_take(arena, count, sizes.turned * sizeof(*range));
    own->turned = kernels_take(arena, sizes.turned, sizeof(*own->turned));
    own->flood_space = kernels_take(arena, sizes.flood, 1);
    for (size_t i = 0; arena->memory && i < count; i++) {
        own->labels[i].inside = inside + i * sizes.words;
        own->labels[i].range = range + i * sizes.turned;
    }
}

/* Stores the labels. No slice is prepared yet. */
static int
cpu_level_set_begin(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct level_set_request *request = given;
    struct cpu_level_set *own = kernels_state(lane, KERNELS_LEVEL_SET);

    (void)error;
    for (size_t i = 0; i < request->count; i++) {
        own->labels[i].given = request->labels[i];
        own->labels[i].voxels = 0;
        own->labels[i].runs = 0;
    }
    own->begun = request->labels;
    own->found = false;
    return 0;
}

/* Draws the initial region in a slice. Returns its number of voxels. */
static int64_t
draw_slice(const struct cpu_lane *lane, const struct cpu_label *label, int64_t z, uint64_t *bits)
{
    const struct bits_extent extent = cpu_level_set_extent_of(&lane->base);
    const uint64_t tail = ~UINT64_C(0) >> (63 - (extent.size[0] - 1) % 64);
    const int64_t words = extent.words_per_slice;
    int64_t voxels = 0;

    if (label->given.mask)
        memcpy(bits, label->given.mask + z * words, (size_t)words * sizeof(*bits));
    else
        memset(bits, 0, (size_t)words * sizeof(*bits));
    for (int64_t last = extent.words_per_row - 1; label->given.mask && last < words; last += extent.words_per_row)
        bits[last] &= tail;
    for (int64_t i = 0; label->given.mask && i < words; i++)
        voxels += __builtin_popcountll(bits[i]);

    for (size_t i = 0; i < label->given.shape_count; i++) {
        const struct kernels_shape *shape = &label->given.shapes[i];
        struct shape_interval slices = shape_extent(shape, 2, extent.size[2]);
        struct shape_interval rows = shape_extent(shape, 1, extent.size[1]);

        if (z < slices.first || z > slices.last)
            continue;
        for (int64_t y = rows.first; y <= rows.last; y++) {
            struct shape_interval columns = shape_row(shape, y, z, extent.size[0]);
            voxels += bits_set(bits + y * extent.words_per_row, columns.first, columns.last);
        }
    }
    return voxels;
}

/* Runs stage 1 of a slice. */
static void
prepare_slice(void *context, int64_t z)
{
    struct cpu_lane *lane = context;
    struct cpu_level_set *own = kernels_state(&lane->base, KERNELS_LEVEL_SET);
    struct bits_extent extent = cpu_level_set_extent_of(&lane->base);
    const int64_t words = extent.words_per_slice, first = z * words;

    for (size_t i = 0; i < own->demand.labels; i++) {
        struct cpu_label *label = &own->labels[i];
        uint64_t *range = label->range + first, *inside = label->inside + first;
        int64_t runs = range_pack_slice(lane, label->given.ranges[label->given.range_count > 1 ? z : 0],
                                        label->given.padding, z, range);
        int64_t voxels = draw_slice(lane, label, z, inside);

        for (size_t m = 0; m < label->given.within_count; m++)
            for (int64_t word = 0; word < words; word++)
                range[word] &= label->given.within[m][first + word];
        if (label->given.within_count > 0) { /* an upper bound of the number of runs */
            runs = 0;
            for (int64_t word = 0; word < words; word++)
                runs += __builtin_popcountll(range[word] & ~(range[word] << 1));
        }
        if (label->given.strict && voxels > 0) { /* remove voxels not in range */
            voxels = 0;
            for (int64_t word = 0; word < words; word++) {
                inside[word] &= range[word];
                voxels += __builtin_popcountll(inside[word]);
            }
        }
        __atomic_fetch_add(&label->runs, runs, __ATOMIC_RELAXED);
        __atomic_fetch_add(&label->voxels, voxels, __ATOMIC_RELAXED);
    }
}

static int
cpu_level_set_ready(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error)
{
    (void)error;
    for (int64_t z = first; z < first + count; z++)
        prepare_slice(lane, z);
    return 0;
}

/* Counts the runs along y and z, slice by slice. */
struct count_job {
    const struct isa *isa;
    struct bits_extent extent;
    const uint64_t *range;
    int64_t runs[3];
};

static void
count_slice(void *context, int64_t z)
{
    struct count_job *job = context;
    int64_t row = job->extent.words_per_row, slice = job->extent.words_per_slice;
    const uint64_t *bits = job->range + z * slice;
    int64_t along_y = 0, along_z = 0;

    along_y = job->isa->count_new(bits + row, bits, slice - row);
    if (z > 0)
        along_z = job->isa->count_new(bits, bits - slice, slice);
    __atomic_fetch_add(&job->runs[1], along_y, __ATOMIC_RELAXED);
    __atomic_fetch_add(&job->runs[2], along_z, __ATOMIC_RELAXED);
}

static int
choose_axis(const struct cpu_lane *lane, const struct cpu_label *label)
{
    const struct cpu_device *device = cpu_device_of(&lane->base);
    struct count_job job = {.isa = device->isa, .extent = cpu_level_set_extent_of(&lane->base)};
    int best = 0;

    if (label->runs <= RUNS_PER_WORD * bits_words(&job.extent))
        return 0;
    job.range = label->range;
    job.runs[0] = label->runs;
    cpu_pool_for(device->pool, job.extent.size[2], count_slice, &job);
    for (int axis = 1; axis < 3; axis++)
        if (may_turn(&job.extent, axis) && job.runs[axis] < job.runs[best] &&
            job.runs[axis] < job.runs[0] / WORTH_TURNING)
            best = axis;
    return best;
}

/* Packs a volume along another axis, or back along x, plane by plane. Planes before the first or
 * after the last one to turn must be 0. */
struct turn_job {
    const struct isa *isa;
    struct bits_matrix source;
    struct bits_matrix target;
    int64_t source_step; /* words from plane to plane */
    int64_t target_step;
    int64_t first;
    int64_t last;
};

static void
turn_plane(void *context, int64_t i)
{
    const struct turn_job *job = context;
    struct bits_matrix source = job->source, target = job->target;

    source.words += i * job->source_step;
    target.words += i * job->target_step;
    if (job->first <= i && i <= job->last)
        bits_transpose(job->isa, &source, &target);
    else
        memset(target.words, 0, (size_t)(target.stride * target.rows) * sizeof(uint64_t));
}

/* Returns the job for planes of the volume packed along x that become slices when packed along
 * axis. */
static struct turn_job
turn_from(const struct isa *isa, const struct bits_extent *extent, int axis, uint64_t *upright, uint64_t *turned)
{
    struct bits_extent other = extent_along(extent, axis);
    int64_t row = extent->words_per_row, slice = extent->words_per_slice;

    return (struct turn_job){
        .isa = isa,
        .source = {upright, extent->size[axis], extent->size[0], axis == 1 ? row : slice},
        .target = {turned, extent->size[0], extent->size[axis], other.words_per_row},
        .source_step = axis == 1 ? slice : row,
        .target_step = other.words_per_slice,
        .first = 0,
        .last = other.size[2] - 1,
    };
}

static void
cpu_level_set_widen(struct tiles_box *box, int axis, int64_t first, int64_t last)
{
    box->first[axis] = first < box->first[axis] ? first : box->first[axis];
    box->last[axis] = last > box->last[axis] ? last : box->last[axis];
}

/* Finds a small box of voxels around the initial region, in the axes of the volume packed along
 * `axis`. Returns false if it lies outside the volume. */
static bool
cpu_level_set_find_box(const struct kernels_level_set_label *label, const struct bits_extent *extent, int axis,
                       struct tiles_box *box)
{
    static const int axis_of[3][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1}};
    struct tiles_box upright = {{INT64_MAX, INT64_MAX, INT64_MAX}, {-1, -1, -1}};

    for (size_t s = 0; s < label->shape_count; s++) {
        struct shape_interval sides[3];
        bool any = true;

        for (int i = 0; i < 3; i++) {
            sides[i] = shape_extent(&label->shapes[s], i, extent->size[i]);
            any = any && sides[i].first <= sides[i].last;
        }
        for (int i = 0; i < 3 && any; i++)
            cpu_level_set_widen(&upright, i, sides[i].first, sides[i].last);
    }
    /* Use whole words of the mask: the columns of the box may exceed it by 63. */
    for (int64_t row = 0; label->mask && row < extent->size[1] * extent->size[2]; row++)
        for (int64_t x = 0; x < extent->words_per_row; x++) {
            int64_t beyond = 64 * x + 63, last = extent->size[0] - 1;

            if (!label->mask[row * extent->words_per_row + x])
                continue;
            cpu_level_set_widen(&upright, 0, 64 * x, beyond < last ? beyond : last);
            cpu_level_set_widen(&upright, 1, row % extent->size[1], row % extent->size[1]);
            cpu_level_set_widen(&upright, 2, row / extent->size[1], row / extent->size[1]);
        }
    for (int i = 0; i < 3; i++) {
        box->first[i] = upright.first[axis_of[axis][i]];
        box->last[i] = upright.last[axis_of[axis][i]];
    }
    return upright.last[0] >= 0;
}

/* Turns the range bits into the work space, and the region into the place of the range bits. Turns
 * the result back. */
static int64_t
flood_turned(struct cpu_lane *lane, struct cpu_label *label, int axis, const struct tiles_box *box)
{
    const struct cpu_device *device = cpu_device_of(&lane->base);
    struct bits_extent extent = cpu_level_set_extent_of(&lane->base), other = extent_along(&extent, axis);
    const struct cpu_level_set *own = kernels_state(&lane->base, KERNELS_LEVEL_SET);
    struct flood_volume volume = {other, own->turned, label->range, own->flood_space};
    struct turn_job range = turn_from(device->isa, &extent, axis, label->range, own->turned);
    struct turn_job inside = turn_from(device->isa, &extent, axis, label->inside, label->range);
    struct turn_job back = inside;

    back.source = inside.target;
    back.target = inside.source;
    back.source_step = inside.target_step;
    back.target_step = inside.source_step;
    int64_t growth;

    inside.first = box->first[2];
    inside.last = box->last[2];
    cpu_pool_for(device->pool, other.size[2], turn_plane, &range);
    cpu_pool_for(device->pool, other.size[2], turn_plane, &inside);
    growth = flood_run(&volume, box, device->isa, device->pool);
    cpu_pool_for(device->pool, other.size[2], turn_plane, &back);
    return growth;
}

static int
cpu_level_set_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct level_set_request *request = given;
    struct cpu_lane *lane = cpu_lane_of(base);
    struct cpu_level_set *own = kernels_state(base, KERNELS_LEVEL_SET);

    if (own->begun != request->labels) {
        cpu_level_set_begin(base, request, error);
        cpu_pool_for(cpu_device_of(base)->pool, base->extent.slices, prepare_slice, lane);
    }
    for (size_t i = 0; i < request->count; i++) {
        struct cpu_label *label = &own->labels[i];

        const struct cpu_device *device = cpu_device_of(base);
        struct bits_extent extent = cpu_level_set_extent_of(base);
        const struct flood_volume volume = {extent, label->range, label->inside, own->flood_space};
        int axis = choose_axis(lane, label);
        struct tiles_box box;

        if (cpu_level_set_find_box(&label->given, &extent, axis, &box))
            label->voxels +=
                axis == 0 ? flood_run(&volume, &box, device->isa, device->pool) : flood_turned(lane, label, axis, &box);
        request->masks[i] = (struct image_mask){label->inside, extent.words_per_row, label->voxels};
    }
    own->begun = NULL;
    own->found = true;
    return 0;
}

const struct kernels_op cpu_level_set_op = {
    .name = "the level set",
    .state_size = sizeof(struct cpu_level_set),
    .needs = cpu_level_set_needs,
    .place = level_set_place,
    .begin = cpu_level_set_begin,
    .ready = cpu_level_set_ready,
    .run = cpu_level_set_run,
};

struct codes_job {
    struct bits_extent extent;
    const uint64_t *inside;
    int8_t *codes;
};

/* Returns the bits of the word at `at` with a 6-neighbour, inside the volume, whose bit is set in
 * inside ^ flip. x is in words. Does not clear bits beyond the last column. */
static uint64_t
cpu_level_set_beside(const struct codes_job *job, const int64_t where[3], int64_t at, uint64_t flip)
{
    const struct bits_extent *extent = &job->extent;
    int64_t step[3] = {1, extent->words_per_row, extent->words_per_slice};
    int64_t size[3] = {extent->words_per_row, extent->size[1], extent->size[2]};
    uint64_t tail = where[0] + 1 == size[0] ? ~UINT64_C(0) >> (63 - (extent->size[0] - 1) % 64) : ~UINT64_C(0);
    uint64_t own = (job->inside[at] ^ flip) & tail;
    uint64_t near = own << 1 | own >> 1;

    if (where[0] > 0)
        near |= (job->inside[at - 1] ^ flip) >> 63;
    if (where[0] + 1 < size[0])
        near |= (job->inside[at + 1] ^ flip) << 63;
    for (int axis = 1; axis < 3; axis++) {
        if (where[axis] > 0)
            near |= job->inside[at - step[axis]] ^ flip;
        if (where[axis] + 1 < size[axis])
            near |= job->inside[at + step[axis]] ^ flip;
    }
    return near;
}

/* Spreads bit i of `bits` to byte i of the result: 0 or 1. */
static uint64_t
spread_bits(uint64_t bits)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t picked = (bits & 0xFF) * ones & UINT64_C(0x8040201008040201);

    return (picked + 0x7F * ones) >> 7 & ones;
}

static void
code_slice(void *context, int64_t z)
{
    const struct codes_job *job = context;
    const struct bits_extent *extent = &job->extent;
    int64_t columns = extent->size[0];

    for (int64_t y = 0; y < extent->size[1]; y++) {
        int64_t row = z * extent->size[1] + y;
        for (int64_t x = 0; x < extent->words_per_row; x++) {
            int64_t where[3] = {x, y, z}, at = row * extent->words_per_row + x;
            uint64_t inside = job->inside[at];
            uint64_t border = (inside & cpu_level_set_beside(job, where, at, ~UINT64_C(0))) |
                              (~inside & cpu_level_set_beside(job, where, at, 0));
            int64_t left = columns - 64 * x, count = left < 64 ? left : 64;

            /* Eight codes at a time: 1 or -2, plus 1 at a border. No byte carries into the next. */
            for (int64_t i = 0; i < count; i += 8) {
                const uint64_t outside = UINT64_C(0xFEFEFEFEFEFEFEFE) ^ spread_bits(inside >> i) * 0xFF;
                const uint64_t eight = htole64(outside + spread_bits(border >> i));

                if (count - i >= 8)
                    memcpy(job->codes + row * columns + 64 * x + i, &eight, 8);
                else
                    memcpy(job->codes + row * columns + 64 * x + i, &eight, (size_t)(count - i));
            }
        }
    }
}

static int
cpu_level_set_codes_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct level_set_codes_request *request = given;
    const struct cpu_level_set *own = kernels_state(lane, KERNELS_LEVEL_SET);

    if (lane->phase[KERNELS_LEVEL_SET] == KERNELS_OP_ABSENT || !own->found || request->label >= own->demand.labels)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no label %zu", request->label);
    struct codes_job job = {cpu_level_set_extent_of(lane), own->labels[request->label].inside, request->codes};
    cpu_pool_for(cpu_device_of(lane)->pool, lane->extent.slices, code_slice, &job);
    return 0;
}

const struct kernels_op cpu_level_set_codes_op = {.name = "state codes", .run = cpu_level_set_codes_run};

/*
 * gabor_cpu.c - Gabor filters on the CPU. A thread filters a slice at a time: pairs of lines along a, columns along b, and
 * for each angle columns and lines back. FFT_LANES pairs, columns or lines are transformed together.
 */
#include "kernels/filter/spectral_cpu.h"

struct gabor_task {
    struct cpu_lane *lane;
    const struct cpu_spectral *own;
    const struct filter_task *filter;
    int plane;             /* index */
    int64_t count;         /* of items of the stage */
    int64_t claimed, next; /* memory and items, atomic */
    double scale;          /* code / pooled modulus */
    void (*stage)(const struct gabor_task *task, struct fft_lanes *memory, int64_t i);
};

/* The memory of a thread. */
struct gabor_space {
    struct fft_lanes *lines;   /* three lengths */
    struct fft_lanes *rows;    /* groups of k(a) along a, per line */
    struct fft_lanes *columns; /* groups of k(a), per place k(b) */
    struct fft_lanes *back;    /* groups of places of an angle, per line */
    double *pooled;            /* per voxel of the slice */
};

static const struct gabor_plane *
task_plane(const struct gabor_task *task)
{
    return &task->own->gabor.plan.plane[task->plane];
}

static int64_t
groups_of(int64_t count)
{
    return (count + FFT_LANES - 1) / FFT_LANES;
}

static int64_t
gabor_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void
cpu_gabor_size(struct cpu_gabor *own)
{
    int64_t pooled = 0;

    own->columns = own->halves = own->longest = 0;
    for (int p = 0; p < own->plan.planes; p++) {
        const struct gabor_axis *a = &own->plan.plane[p].axis[0], *b = &own->plan.plane[p].axis[1];

        own->halves = gabor_larger(own->halves, groups_of(own->plan.plane[p].half) * b->fft.side);
        own->columns = gabor_larger(own->columns, groups_of(a->fft.side) * b->fft.side);
        own->longest = gabor_larger(own->longest, gabor_larger(a->fft.side, b->fft.side));
        pooled = gabor_larger(pooled, groups_of(a->side * b->side));
    }
    own->space = 3 * own->longest + 2 * own->halves + own->columns + pooled;
}

void
cpu_gabor_place(const struct kernels_lane *lane, struct cpu_gabor *own, struct kernels_memory *memory)
{
    for (int p = 0; p < own->plan.planes; p++)
        for (int i = 0; i < 2; i++)
            own->roots[p][i] =
                kernels_take(&memory->host, (size_t)own->plan.plane[p].axis[i].fft.values, sizeof(*own->roots[p][i]));
    own->transfer = kernels_take(&memory->host, (size_t)own->plan.angles * (size_t)own->columns,
                                 FFT_LANES * sizeof(*own->transfer));
    own->sums = NULL;
    if (own->plan.planes > 1)
        own->sums = kernels_take(&memory->host, (size_t)image_voxels(&lane->extent), sizeof(*own->sums));
    own->spaces = kernels_take(&memory->host, (size_t)lane->device->threads, (size_t)own->space * sizeof(*own->spaces));
}

static struct gabor_space
gabor_space_of(const struct cpu_gabor *own, struct fft_lanes *memory)
{
    struct gabor_space space = {.lines = memory};

    space.rows = memory + 3 * own->longest;
    space.columns = space.rows + own->halves;
    space.back = space.columns + own->halves;
    space.pooled = &space.back[own->columns].part[0][0];
    return space;
}

/* Returns the transfer function of an angle: groups of k(a), per place k(b), of FFT_LANES values. */
static double *
gabor_transfer(const struct cpu_gabor *own, int64_t angle)
{
    return own->transfer + angle * own->columns * FFT_LANES;
}

/* Makes the transfer function of an angle. */
static void
gabor_make_transfer(const struct gabor_task *task, struct fft_lanes *memory, int64_t angle)
{
    const struct cpu_gabor *own = &task->own->gabor;
    const struct gabor_space space = gabor_space_of(own, memory);
    const struct gabor_plane *plane = task_plane(task);
    const struct gabor_kernel *kernel = &own->plan.kernel[angle];
    const int64_t across = plane->axis[0].fft.side, down = plane->axis[1].fft.side;
    const int64_t count = kernel->count[task->plane];
    const double scale = 1 / ((double)across * (double)down);
    double *transfer = gabor_transfer(own, angle);

    for (int64_t j = 0; j < down; j += FFT_LANES) {
        const struct fft_lanes *found;

        for (int64_t i = 0; i < across; i++)
            for (int lane = 0; lane < FFT_LANES; lane++) {
                struct fft_value sum = {0};

                if (j + lane < down)
                    sum = gabor_sum(&own->plan, plane, kernel, i, j + lane);
                space.lines[i].part[0][lane] = sum.re;
                space.lines[i].part[1][lane] = sum.im;
            }
        found = spectral_transform(task->lane, &plane->axis[0].fft, false, space.lines, space.lines);
        for (int64_t t = 0; t < groups_of(count) * FFT_LANES; t++)
            for (int lane = 0; lane < FFT_LANES && j + lane < down; lane++)
                for (int part = 0; part < 2; part++)
                    space.back[t / FFT_LANES * down + j + lane].part[part][t % FFT_LANES] =
                        found[(kernel->first[task->plane] + t) % across].part[part][lane];
    }
    for (int64_t g = 0; g < groups_of(count); g++) {
        const struct fft_lanes *found;

        for (int64_t j = 0; j < down; j++)
            space.lines[j] = space.back[g * down + j];
        found = spectral_transform(task->lane, &plane->axis[1].fft, false, space.lines, space.lines);
        for (int64_t k = 0; k < down; k++)
            for (int lane = 0; lane < FFT_LANES; lane++)
                transfer[(g * down + k) * FFT_LANES + lane] = found[k].part[0][lane] * scale;
    }
}

/* Returns the voxel at (a, b) of a slice. */
static int64_t
gabor_voxel(const struct gabor_task *task, int64_t slice, int64_t a, int64_t b)
{
    const struct image_extent *extent = &task->lane->base.extent;
    const int64_t strides[3] = {1, extent->columns, image_slice_voxels(extent)};
    const struct gabor_plane *plane = task_plane(task);

    return slice * strides[plane->slices] + a * strides[plane->axis[0].axis] + b * strides[plane->axis[1].axis];
}

/* Transforms lines b .. b + 2 FFT_LANES - 1 of a slice along a. */
static void
gabor_lines(const struct gabor_task *task, const struct gabor_space *space, int64_t slice, int64_t b)
{
    const struct gabor_plane *plane = task_plane(task);
    const struct gabor_axis *along = &plane->axis[0];
    const int64_t places = along->fft.side, lines = plane->axis[1].side;
    const struct fft_lanes *found;

    for (int64_t i = 0; i < places; i++) {
        const int64_t a = filter_place(i - along->before, along->side, task->own->gabor.plan.boundary);

        for (int64_t line = 0; line < 2 * FFT_LANES; line++)
            space->lines[i].part[line % 2][line / 2] =
                a >= 0 && i < along->side + 2 * along->before && b + line < lines
                    ? spectral_input(task->lane, task->filter->request, gabor_voxel(task, slice, a, b + line))
                    : 0;
    }
    found = spectral_transform(task->lane, &along->fft, false, space->lines, space->lines);
    for (int64_t k = 0; k < plane->half; k++) {
        const struct fft_lanes *low = &found[k], *high = &found[k > 0 ? places - k : 0];
        struct fft_lanes *row = space->rows + k / FFT_LANES * lines + b;

        for (int lane = 0; lane < FFT_LANES && b + 2 * lane < lines; lane++) {
            const struct fft_value p = {low->part[0][lane], low->part[1][lane]};
            const struct fft_value q = {high->part[0][lane], high->part[1][lane]};

            row[2 * lane].part[0][k % FFT_LANES] = (p.re + q.re) / 2;
            row[2 * lane].part[1][k % FFT_LANES] = (p.im - q.im) / 2;
            if (b + 2 * lane + 1 < lines) {
                row[2 * lane + 1].part[0][k % FFT_LANES] = (p.im + q.im) / 2;
                row[2 * lane + 1].part[1][k % FFT_LANES] = (q.re - p.re) / 2;
            }
        }
    }
}

/* Transforms the columns of a slice along b. */
static void
gabor_columns(const struct gabor_task *task, const struct gabor_space *space)
{
    const struct gabor_plane *plane = task_plane(task);
    const struct gabor_axis *along = &plane->axis[1];
    const int64_t places = along->fft.side;

    for (int64_t g = 0; g < groups_of(plane->half); g++) {
        const struct fft_lanes *found;

        for (int64_t j = 0; j < places; j++) {
            const int64_t b = filter_place(j - along->before, along->side, task->own->gabor.plan.boundary);

            space->lines[j] = b >= 0 && j < along->side + 2 * along->before ? space->rows[g * along->side + b]
                                                                            : (struct fft_lanes){{{0}}};
        }
        found = spectral_transform(task->lane, &along->fft, false, space->lines, space->lines);
        for (int64_t k = 0; k < places; k++)
            space->columns[g * places + k] = found[k];
    }
}

/* Multiplies columns with the transfer function of an angle, and transforms them back along b. */
static void
gabor_columns_back(const struct gabor_task *task, const struct gabor_space *space, int64_t angle)
{
    const struct gabor_plane *plane = task_plane(task);
    const struct gabor_axis *along = &plane->axis[1];
    const struct gabor_kernel *kernel = &task->own->gabor.plan.kernel[angle];
    const int64_t places = along->fft.side, across = plane->axis[0].fft.side, count = kernel->count[task->plane];
    const double *transfer = gabor_transfer(&task->own->gabor, angle);

    for (int64_t g = 0; g < groups_of(count); g++) {
        const struct fft_lanes *found;

        for (int64_t t = g * FFT_LANES; t < (g + 1) * FFT_LANES; t++) {
            const int64_t ka = (kernel->first[task->plane] + t) % across, lane = t % FFT_LANES;
            const bool above = ka >= plane->half;
            const int64_t half = above ? across - ka : ka;

            for (int64_t k = 0; k < places; k++) {
                const struct fft_lanes *from =
                    &space->columns[half / FFT_LANES * places + (above && k > 0 ? places - k : k)];
                const double gain = transfer[(g * places + k) * FFT_LANES + lane];

                space->lines[k].part[0][lane] = from->part[0][half % FFT_LANES] * gain;
                space->lines[k].part[1][lane] =
                    (above ? -from->part[1][half % FFT_LANES] : from->part[1][half % FFT_LANES]) * gain;
            }
        }
        found = spectral_transform(task->lane, &along->fft, true, space->lines, space->lines);
        for (int64_t b = 0; b < along->side; b++)
            space->back[g * along->side + b] = found[along->before + b];
    }
}

/* Transforms lines b .. b + FFT_LANES - 1 back along a, and pools their moduli. */
static void
gabor_lines_back(const struct gabor_task *task, const struct gabor_space *space, int64_t angle, int64_t b)
{
    const struct gabor_plane *plane = task_plane(task);
    const struct gabor_axis *along = &plane->axis[0];
    const struct gabor_kernel *kernel = &task->own->gabor.plan.kernel[angle];
    const int64_t places = along->fft.side, lines = plane->axis[1].side;
    const int64_t count = kernel->count[task->plane];
    const struct fft_lanes *found;

    for (int64_t i = 0; i < places - count; i++)
        space->lines[(kernel->first[task->plane] + count + i) % places] = (struct fft_lanes){{{0}}};
    for (int64_t t = 0; t < count; t++) {
        const struct fft_lanes *from = &space->back[t / FFT_LANES * lines + b];
        struct fft_lanes *to = &space->lines[(kernel->first[task->plane] + t) % places];

        for (int lane = 0; lane < FFT_LANES; lane++)
            for (int part = 0; part < 2; part++)
                to->part[part][lane] = b + lane < lines ? from[lane].part[part][t % FFT_LANES] : 0;
    }
    found = spectral_transform(task->lane, &along->fft, true, space->lines, space->lines);
    for (int lane = 0; lane < FFT_LANES && b + lane < lines; lane++)
        for (int64_t a = 0; a < along->side; a++) {
            const struct fft_lanes *value = &found[along->before + a];
            const double re = value->part[0][lane], im = value->part[1][lane];
            double *pooled = &space->pooled[(b + lane) * along->side + a];

            *pooled = gabor_pool(task->own->gabor.plan.pooling, angle == 0, *pooled, sqrt(re * re + im * im));
        }
}

/* Adds the moduli of a slice to those of other planes. Writes codes after the last one. */
static void
gabor_finish(const struct gabor_task *task, const struct gabor_space *space, int64_t slice)
{
    const struct cpu_gabor *own = &task->own->gabor;
    const struct gabor_plane *plane = task_plane(task);

    for (int64_t b = 0; b < plane->axis[1].side; b++)
        for (int64_t a = 0; a < plane->axis[0].side; a++) {
            const int64_t voxel = gabor_voxel(task, slice, a, b);
            const double pooled = gabor_pool(own->plan.pooling, task->plane == 0, own->sums ? own->sums[voxel] : 0,
                                             space->pooled[b * plane->axis[0].side + a]);

            if (task->plane == own->plan.planes - 1)
                task->own->codes[voxel] = filter_code(pooled * task->scale);
            else
                own->sums[voxel] = pooled;
        }
}

static void
gabor_slice(const struct gabor_task *task, struct fft_lanes *memory, int64_t slice)
{
    const struct gabor_space space = gabor_space_of(&task->own->gabor, memory);
    const int64_t lines = task_plane(task)->axis[1].side;

    for (int64_t b = 0; b < lines; b += 2 * FFT_LANES)
        gabor_lines(task, &space, slice, b);
    gabor_columns(task, &space);
    for (int64_t angle = 0; angle < task->own->gabor.plan.angles; angle++) {
        gabor_columns_back(task, &space, angle);
        for (int64_t b = 0; b < lines; b += FFT_LANES)
            gabor_lines_back(task, &space, angle, b);
    }
    gabor_finish(task, &space, slice);
}

static void
gabor_body(void *context)
{
    struct gabor_task *task = context;
    const struct cpu_gabor *own = &task->own->gabor;
    struct fft_lanes *memory = own->spaces + __atomic_fetch_add(&task->claimed, 1, __ATOMIC_RELAXED) * own->space;

    for (int64_t i; (i = __atomic_fetch_add(&task->next, 1, __ATOMIC_RELAXED)) < task->count;)
        task->stage(task, memory, i);
}

static void
gabor_run_stage(struct gabor_task *task, void (*stage)(const struct gabor_task *, struct fft_lanes *, int64_t),
                int64_t count)
{
    task->stage = stage;
    task->count = count;
    task->claimed = task->next = 0;
    cpu_pool_run(cpu_device_of(&task->lane->base)->pool, gabor_body, task);
}

void
cpu_gabor_run(struct cpu_lane *lane, struct cpu_spectral *own, const struct filter_task *filter)
{
    const struct image_extent *extent = &lane->base.extent;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    struct gabor_task task = {.lane = lane, .own = own, .filter = filter};

    task.scale = gabor_scale(&own->gabor.plan, filter->step);
    for (task.plane = 0; task.plane < own->gabor.plan.planes; task.plane++) {
        struct gabor_plane *plane = &own->gabor.plan.plane[task.plane];

        for (int i = 0; i < 2; i++)
            fft_fill(&plane->axis[i].fft, own->gabor.roots[task.plane][i]);
        gabor_run_stage(&task, gabor_make_transfer, own->gabor.plan.angles);
        gabor_run_stage(&task, gabor_slice, sides[plane->slices]);
    }
}

/*
 * enclosed_cpu.c - enclosed voxels on the CPU, sheet by sheet, one bit per voxel. Doubling finds the voxels whose ray meets the
 * mask: a ray of 2 m voxels meets it if the ray of m voxels does, or that of the voxel m steps away. A sheet is turned so that
 * words of the same columns follow each other, row by row: all of them move by the same shift.
 */
#include "kernels/cpu/bits.h"
#include "kernels/cpu/device.h"
#include "kernels/enclosed/enclosed.h"

#include <string.h>

/* The planes of a sheet, one bit per voxel: the mask, two to work in, and the digits of the counters. */
enum { MASK, ONE, OTHER, COUNTS, PLANES = COUNTS + ENCLOSED_DIGITS };

struct cpu_enclosed {
    size_t sheet_words;      /* at most */
    uint64_t *planes;        /* PLANES per thread */
    uint64_t *nothing;       /* zeros, for the columns beside the volume */
    uint64_t *counts;        /* the digits of the volume's counters, after one another */
    struct bits_extent bits; /* of the volume */
};

static void
cpu_enclosed_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_enclosed *own = kernels_state(lane, KERNELS_ENCLOSED);
    const struct image_extent *extent = &lane->extent;
    const int64_t rows = extent->rows > extent->slices ? extent->rows : extent->slices;
    const size_t threads = (size_t)cpu_device_of(lane)->base.threads;

    own->bits = bits_extent(extent->columns, extent->rows, extent->slices);
    own->sheet_words = (size_t)(own->bits.words_per_row * rows);
    own->planes = kernels_take(&memory->host, threads * PLANES, own->sheet_words * sizeof(*own->planes));
    own->nothing = kernels_take(&memory->host, (size_t)rows, sizeof(*own->nothing));
    own->counts = kernels_take(&memory->host, ENCLOSED_DIGITS, (size_t)bits_words(&own->bits) * sizeof(*own->counts));
}

/* A family of sheets, which threads take one by one. */
struct enclosed_job {
    const struct enclosed_plan *plan;
    const struct enclosed_family *family;
    const struct cpu_enclosed *own;
    const struct isa *isa;
    int64_t sheets;
    int64_t next_thread, next_sheet; /* atomic */
};

/* A sheet in the planes of a thread: word w of its row r is number w * rows + r of a plane. */
struct sheet_planes {
    const struct enclosed_job *job;
    struct enclosed_sheet sheet;
    int64_t words; /* of a row */
    uint64_t *planes[PLANES];
};

static int64_t
sheet_words(const struct sheet_planes *at)
{
    return at->sheet.rows * at->words;
}

/* Returns the first word of the sheet in the volume, and the distance of its rows. */
static int64_t
sheet_begin(const struct sheet_planes *at, int64_t *step)
{
    const struct enclosed_family *family = at->job->family;
    const int64_t slice = at->job->own->bits.words_per_slice;

    *step = family->z * slice + family->y * at->words;
    return at->sheet.z * slice + at->sheet.y * at->words;
}

/* Copies a plane from the volume. */
static void
sheet_gather(const struct sheet_planes *at, const uint64_t *from, uint64_t *to)
{
    const int64_t rows = at->sheet.rows, words = at->words;
    int64_t step, row = sheet_begin(at, &step);

    for (int64_t r = 0; r < rows; r++, row += step)
        for (int64_t w = 0; w < words; w++)
            to[w * rows + r] = from[row + w];
}

static void
sheet_scatter(const struct sheet_planes *at, const uint64_t *from, uint64_t *to)
{
    const int64_t rows = at->sheet.rows, words = at->words;
    int64_t step, row = sheet_begin(at, &step);

    for (int64_t r = 0; r < rows; r++, row += step)
        for (int64_t w = 0; w < words; w++)
            to[row + w] = from[w * rows + r];
}

/* Clears the bits behind the last column. */
static void
sheet_trim(const struct sheet_planes *at, uint64_t *plane)
{
    const uint64_t tail = ~UINT64_C(0) >> (63 - (at->job->own->bits.size[0] - 1) % 64);

    for (int64_t i = sheet_words(at) - at->sheet.rows; i < sheet_words(at); i++)
        plane[i] &= tail;
}

/* Loads the mask, and the counters so far. Returns false if the mask has no voxel in the sheet. */
static bool
sheet_load(const struct sheet_planes *at)
{
    const struct enclosed_job *job = at->job;
    const int64_t words = sheet_words(at);
    const int digits = job->family->before > 0 ? enclosed_digits(job->family->before) : 0;

    sheet_gather(at, job->plan->request->mask, at->planes[MASK]);
    sheet_trim(at, at->planes[MASK]);
    for (int digit = 0; digit < digits; digit++)
        sheet_gather(at, job->own->counts + digit * bits_words(&job->own->bits), at->planes[COUNTS] + digit * words);
    memset(at->planes[COUNTS] + digits * words, 0, (size_t)((ENCLOSED_DIGITS - digits) * words) * sizeof(uint64_t));
    return !bits_row_is_empty(at->planes[MASK], words);
}

/* Stores the counters, or after the last family the voxels whose counter is at least the request's. */
static void
sheet_store(const struct sheet_planes *at)
{
    const struct enclosed_job *job = at->job;
    const struct enclosed_plan *plan = job->plan;
    const int digits = enclosed_digits(job->family->before + job->family->count);
    const int addend = (1 << ENCLOSED_DIGITS) - plan->request->at_least; /* carries from the limit on */
    const int64_t words = sheet_words(at);
    uint64_t *to = at->planes[ONE];

    if (job->family != &plan->families[plan->count - 1]) {
        for (int digit = 0; digit < digits; digit++)
            sheet_scatter(at, at->planes[COUNTS] + digit * words,
                          job->own->counts + digit * bits_words(&job->own->bits));
        return;
    }
    memset(to, 0, (size_t)words * sizeof(*to));
    for (int digit = 0; digit < ENCLOSED_DIGITS; digit++) {
        const uint64_t *count = at->planes[COUNTS] + digit * words;
        const uint64_t carry = addend >> digit & 1 ? ~UINT64_C(0) : 0;

        for (int64_t i = 0; i < words; i++)
            to[i] = (to[i] & count[i]) | (carry & (to[i] | count[i]));
    }
    sheet_trim(at, to);
    sheet_scatter(at, to, plan->request->bits);
}

/* A step in a sheet. */
struct sheet_step {
    int64_t x, row;
};

/* Sets `to` to own | from, each voxel of `from` counting for the voxel one step before, in rows first .. end - 1. */
static void
sheet_unite(const struct sheet_planes *at, const uint64_t *own, const uint64_t *from, struct sheet_step step,
            int64_t first, int64_t end, uint64_t *to)
{
    const int64_t rows = at->sheet.rows, word = step.x >> 6;
    const uint64_t *nothing = at->job->own->nothing;

    for (int64_t w = 0; w < at->words; w++) {
        const int64_t low = w + word, high = low + 1;
        const struct isa_shifted shifted = {
            .own = own + w * rows + first,
            .low = low >= 0 && low < at->words ? from + low * rows + first + step.row : nothing,
            .high = high >= 0 && high < at->words ? from + high * rows + first + step.row : nothing,
            .shift = (int)(step.x & 63)};

        at->job->isa->unite_shifted(&shifted, end - first, to + w * rows + first);
    }
}

/* Finds the rows that have a row at this distance in the sheet: first .. end - 1. */
static bool
rows_with(const struct sheet_planes *at, int64_t distance, int64_t *first, int64_t *end)
{
    *first = distance < 0 ? -distance : 0;
    *end = distance > 0 ? at->sheet.rows - distance : at->sheet.rows;
    return *first < *end;
}

/* Finds the voxels whose next voxel on a knight's ray, or a voxel between the two, lies in the mask. */
static void
sheet_begin_knight(const struct sheet_planes *at, const struct enclosed_ray *ray, uint64_t *to)
{
    const int64_t rows = at->sheet.rows;
    const struct sheet_step steps[] = {
        {ray->x, ray->row}, {ray->x / 2, ray->row / 2}, {ray->x > 0 ? 1 : -1, ray->row > 0 ? 1 : -1}};
    int64_t first, end;

    memset(to, 0, (size_t)(rows * at->words) * sizeof(*to));
    if (!rows_with(at, ray->row, &first, &end))
        return;
    for (int i = 0; i < 3; i++)
        sheet_unite(at, to, at->planes[MASK], steps[i], first, end, to);
    for (int64_t w = 0; w < at->words; w++) {
        uint64_t bits = 0; /* those whose voxel ray->x columns further lies in the volume */

        for (int64_t bit = 0; bit < 64; bit++) {
            const int64_t column = 64 * w + bit + ray->x;

            bits |= (uint64_t)(column >= 0 && column < at->job->own->bits.size[0]) << bit;
        }
        for (int64_t r = first; bits != ~UINT64_C(0) && r < end; r++)
            to[w * rows + r] &= bits;
    }
}

/* Returns the plane of the voxels whose ray meets the mask. */
static const uint64_t *
sheet_cast(const struct sheet_planes *at, const struct enclosed_ray *ray)
{
    const int64_t words = sheet_words(at), rows = at->sheet.rows, columns = at->job->own->bits.size[0];
    const int64_t voxels = ray->voxels - ray->knight;
    uint64_t *own = at->planes[ray->knight ? OTHER : MASK];
    int to = ONE;

    if (ray->knight)
        sheet_begin_knight(at, ray, own);
    for (int64_t m = 1, by; m < voxels; m += by) {
        struct sheet_step step;
        int64_t first, end;

        by = m < voxels - m ? m : voxels - m;
        step = (struct sheet_step){by * ray->x, by * ray->row};
        if (!rows_with(at, step.row, &first, &end) || step.x >= columns || -step.x >= columns)
            break;
        sheet_unite(at, own, own, step, first, end, at->planes[to]);
        for (int64_t w = 0; w < at->words; w++) { /* the other rows stay */
            memcpy(at->planes[to] + w * rows, own + w * rows, (size_t)first * sizeof(*own));
            memcpy(at->planes[to] + w * rows + end, own + w * rows + end, (size_t)(rows - end) * sizeof(*own));
        }
        own = at->planes[to];
        to = ONE + OTHER - to;
    }
    if (ray->knight) {
        const struct isa_shifted both = {.own = own, .low = at->planes[MASK], .high = at->planes[MASK], .shift = 0};

        at->job->isa->unite_shifted(&both, words, own);
    }
    return own;
}

static void
cast_on_thread(void *context)
{
    struct enclosed_job *job = context;
    const struct enclosed_family *family = job->family;
    const int64_t thread = __atomic_fetch_add(&job->next_thread, 1, __ATOMIC_RELAXED);
    struct sheet_planes at = {.job = job, .words = job->own->bits.words_per_row};
    int64_t number;

    while ((number = __atomic_fetch_add(&job->next_sheet, 1, __ATOMIC_RELAXED)) < job->sheets) {
        at.sheet = enclosed_sheet_of(job->plan->extent.rows, job->plan->extent.slices, family->y, family->z, number);
        for (int plane = 0; plane < PLANES; plane++)
            at.planes[plane] = job->own->planes + (size_t)thread * PLANES * job->own->sheet_words +
                               (size_t)(plane * at.sheet.rows * at.words);
        const bool any = sheet_load(&at);

        for (int ray = 0; any && ray < family->count; ray++)
            job->isa->count_up(sheet_cast(&at, &family->rays[ray]), sheet_words(&at),
                               enclosed_digits(family->before + ray + 1), at.planes[COUNTS]);
        sheet_store(&at);
    }
}

static int
cpu_enclosed_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct enclosed_plan *plan = given;
    const struct cpu_enclosed *own = kernels_state(lane, KERNELS_ENCLOSED);
    const int64_t rows = lane->extent.rows > lane->extent.slices ? lane->extent.rows : lane->extent.slices;

    (void)error;
    memset(own->nothing, 0, (size_t)rows * sizeof(*own->nothing));
    for (int32_t i = 0; i < plan->count; i++) {
        const struct enclosed_family *family = &plan->families[i];
        struct enclosed_job job = {.plan = plan,
                                   .family = family,
                                   .own = own,
                                   .isa = cpu_device_of(lane)->isa,
                                   .sheets = enclosed_sheets(&plan->extent, family->y, family->z)};

        cpu_pool_run(cpu_device_of(lane)->pool, cast_on_thread, &job);
    }
    return 0;
}

const struct kernels_op cpu_enclosed_op = {
    .name = "enclosed voxels",
    .state_size = sizeof(struct cpu_enclosed),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_enclosed_place,
    .run = cpu_enclosed_run,
};

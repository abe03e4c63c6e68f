/* look_outline.c - see look.h. */
#include "service/pipeline/expect/look.h"

#include "base/error.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Voxels of an outline, and those of them near another segment. */
struct outline_count {
    int64_t voxels, near;
};

struct near_outline {
    const struct expect_look *look;
    const struct segment_measures *measures;
    struct image_mask around;     /* its voxels that `inside` does not have, or the reverse */
    bool outside;                 /* `around` is the larger one */
    struct image_mask near;       /* the other segment, grown */
    struct outline_count *slices; /* one per slice */
    bool has_axes;
    struct expect_axes axes;
    struct outline_count parts[3][2]; /* the first and the last third of the box along each axis of the patient */
};

static const char *const part_names[3][2] = {
    {"on the right", "on the left"}, {"in front", "at the back"}, {"at the base", "at the top"}};

/* Counts a voxel in the outer thirds of the box in which it lies. */
static void
outline_add_part(struct near_outline *outline, const int64_t at[3], bool is_near)
{
    for (int p = 0; outline->has_axes && p < 3; p++) {
        const int axis = outline->axes.along[p];
        const int64_t first = outline->measures->first[axis], size = outline->measures->last[axis] - first + 1;
        const int64_t third = at[axis] < first ? 0 : 3 * (at[axis] - first) / size;
        if (third == 1)
            continue;
        struct outline_count *part = &outline->parts[p][(third > 1) != outline->axes.reversed[p]];
        part->voxels++;
        part->near += is_near;
    }
}

static void
outline_count_slice(struct near_outline *outline, int64_t z)
{
    const struct expect_look *look = outline->look;
    const struct image_mask *own = &look->volume->masks[look->segment];
    const int64_t rows = look->volume->extent.rows, words = own->words_per_row;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t w = 0; w < words; w++) {
            const int64_t i = (z * rows + y) * words + w;
            const uint64_t inside = own->bits[i], around = outline->around.bits[i], near = outline->near.bits[i];
            for (uint64_t bits = outline->outside ? around & ~inside : inside & ~around; bits; bits &= bits - 1) {
                const int bit = __builtin_ctzll(bits);
                const int64_t at[3] = {64 * w + bit, y, z};
                outline->slices[z].voxels++;
                outline->slices[z].near += (int64_t)(near >> bit & 1);
                outline_add_part(outline, at, near >> bit & 1);
            }
        }
}

static double
outline_share(const struct outline_count *count)
{
    return count->voxels > 0 ? (double)count->near / (double)count->voxels : 0;
}

/* Returns "; worst at the base", or "". */
static const char *
outline_worst(const struct near_outline *outline, char text[LOOK_NAME])
{
    double worst = 2;
    text[0] = '\0';
    for (int p = 2; outline->has_axes && p >= 0; p--)
        for (int end = 0; end < 2; end++) {
            const struct outline_count *part = &outline->parts[p][end];
            if (part->voxels == 0 || outline_share(part) >= worst)
                continue;
            worst = outline_share(part);
            snprintf(text, LOOK_NAME, "; worst %s", part_names[p][end]);
        }
    return text;
}

static int
outline_compare_shares(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Finds the mean of the slices' shares, and their 5th percentile. Returns 0 or -ENOMEM. */
static int
outline_slices(const struct near_outline *outline, double *mean, double *low)
{
    const int64_t first = outline->measures->first[2], count = outline->measures->last[2] - first + 1;
    double *shares = malloc((size_t)count * sizeof *shares), sum = 0;
    if (!shares)
        return error_set_system(outline->look->error, -ENOMEM, "measure the outline of segments");
    for (int64_t i = 0; i < count; i++)
        sum += shares[i] = outline_share(&outline->slices[first + i]);
    qsort(shares, (size_t)count, sizeof *shares, outline_compare_shares);
    *mean = sum / (double)count;
    *low = shares[count / 20];
    free(shares);
    return 0;
}

static void
look_at_outline_share(const struct near_outline *outline, const struct conf_near *near, double found, double least,
                      const char *where)
{
    const struct expect_breach breach = look_breach("near", found, least, 1);
    char number[LOOK_NUMBER], name[LOOK_NAME], worst[LOOK_NAME];
    if (found < least)
        look_add(outline->look, &breach, "the outline lies off %s: %s %% of it within %.10g mm%s, %.10g %% expected%s",
                 look_name(near->label, name), look_number(&breach, 100, 2, number), near->mm, where, 100 * least,
                 outline_worst(outline, worst));
}

/* Compares the shares of an outline whose slices are counted. */
static int
look_at_outline(const struct near_outline *outline, const struct conf_near *near)
{
    const int64_t slices = outline->look->volume->extent.slices;
    struct outline_count whole = {0};
    double mean = 0, low = 0;
    for (int64_t z = 0; z < slices; z++) {
        whole.voxels += outline->slices[z].voxels;
        whole.near += outline->slices[z].near;
    }
    if (near->space == CONF_SPACE_VOLUME) {
        look_at_outline_share(outline, near, outline_share(&whole), near->share, "");
        return 0;
    }
    const int rc = outline_slices(outline, &mean, &low);
    if (rc == 0) {
        look_at_outline_share(outline, near, mean, near->share, " in the mean slice");
        look_at_outline_share(outline, near, low, near->slice_share, " in the worst slices");
    }
    return rc;
}

int
look_at_near(const struct expect_look *look, const struct segment_measures *measures, const struct conf_near *near)
{
    const bool in_slice = near->space == CONF_SPACE_SLICE, outside = near->outline_mm > 0;
    const struct kernels_mask_step around = {.kind = outside ? KERNELS_MASK_GROW : KERNELS_MASK_SHRINK,
                                             .amount = outside ? near->outline_mm
                                                               : LOOK_OUTLINE_STEPS * look->volume->spacing[1],
                                             .in_slice = in_slice},
                                   grow = {.kind = KERNELS_MASK_GROW, .amount = near->mm, .in_slice = in_slice};
    struct kernels_mask_request request = {.padding = {1, 0}, .step_count = 1};
    struct near_outline outline = {.look = look, .measures = measures, .outside = outside};
    outline.has_axes = look_axes(look, NULL, &outline.axes);
    request.found = look->volume->masks[look->segment].bits;
    request.steps = &around;
    int rc = look_make(look, 0, &request, &outline.around);
    request.found = look_mask(look, near->label)->bits;
    request.steps = &grow;
    if (rc == 0)
        rc = look_make(look, 1, &request, &outline.near);
    if (rc)
        return rc;
    outline.slices = calloc((size_t)look->volume->extent.slices, sizeof *outline.slices);
    if (!outline.slices)
        return error_set_system(look->error, -ENOMEM, "measure the outline of segments");
    for (int64_t z = 0; z < look->volume->extent.slices; z++)
        outline_count_slice(&outline, z);
    rc = look_at_outline(&outline, near);
    free(outline.slices);
    return rc;
}

/* Makes the mask of tissue of at least this thickness within a closing, without the segment. */
static int
solidity_find_dense(const struct expect_look *look, const struct image_mask *closing, double thick_mm,
                    struct image_mask *dense)
{
    static const double tissue[2] = {-200, 1e9};
    const struct expect_volume *volume = look->volume;
    const struct kernels_mask_step open = {.kind = KERNELS_MASK_OPEN, .amount = thick_mm / 2};
    const size_t slices = (size_t)volume->extent.slices;
    struct image_range *ranges = malloc(slices * sizeof *ranges);
    if (!ranges)
        return error_set_system(look->error, -ENOMEM, "measure the gaps of segments");
    for (size_t z = 0; z < slices; z++)
        ranges[z] = volume_stored_range(tissue, volume->rescale[z].slope, volume->rescale[z].intercept,
                                        image_pixel_range(volume->pixel));
    const struct kernels_mask_request request = {.ranges = ranges,
                                                 .range_count = slices,
                                                 .padding = {1, 0},
                                                 .within = &closing->bits,
                                                 .within_count = 1,
                                                 .minus = &volume->masks[look->segment].bits,
                                                 .minus_count = 1,
                                                 .steps = &open,
                                                 .step_count = 1};
    const int rc = look_make(look, 1, &request, dense);
    free(ranges);
    return rc;
}

int
look_at_solidity(const struct expect_look *look, const struct conf_solidity *solidity)
{
    const struct image_mask *own = &look->volume->masks[look->segment];
    const double *spacing = look->volume->spacing;
    const uint64_t *within = solidity->within ? look_mask(look, solidity->within)->bits : NULL;
    const struct kernels_mask_step close = {.kind = KERNELS_MASK_CLOSE, .amount = solidity->mm};
    const struct kernels_mask_request request = {.padding = {1, 0},
                                                 .found = own->bits,
                                                 .within = &within,
                                                 .within_count = within != NULL,
                                                 .steps = &close,
                                                 .step_count = 1};
    char number[LOOK_NUMBER];
    struct image_mask closing, dense;
    int rc = look_make(look, 0, &request, &closing);
    if (rc)
        return rc;
    const double voxels = (double)(closing.voxels > 1 ? closing.voxels : 1);
    const struct expect_breach gaps = look_breach("solidity", (double)own->voxels / voxels, solidity->at_least, 1);
    if (gaps.found < solidity->at_least)
        look_add(look, &gaps, "it has gaps: %s %% of its closing by %.10g mm, at least %.10g %% expected",
                 look_number(&gaps, 100, 2, number), solidity->mm, 100 * solidity->at_least);
    if (solidity->thick_mm <= 0)
        return 0;
    rc = solidity_find_dense(look, &closing, solidity->thick_mm, &dense);
    if (rc)
        return rc;
    const struct expect_breach thick = look_breach(
        "solidity", (double)dense.voxels * (spacing[0] * spacing[1] * spacing[2] / 1000), 0, solidity->dense_ml);
    if (thick.found > solidity->dense_ml)
        look_add(look, &thick, "%s ml of tissue thicker than %.10g mm lie in its gaps, at most %.10g ml expected",
                 look_number(&thick, 1, 3, number), solidity->thick_mm, solidity->dense_ml);
    return 0;
}

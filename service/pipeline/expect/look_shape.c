/* look_shape.c - see look.h. */
#include "service/pipeline/expect/look.h"

#include "base/error.h"
#include "service/pipeline/components.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* Directions along the axes of enum expect_axis, ascending. */
static const char *const shape_ends[3][2] = {{"right", "left"}, {"front", "back"}, {"lowest", "highest"}};

void
look_at_extent(const struct expect_look *look, const struct segment_measures *measures,
               const struct conf_extent_mm *extent)
{
    const struct {
        enum expect_axis axis;
        const struct conf_bounds *bounds;
        const char *before;
    } sides[] = {{EXPECT_HEAD, &extent->height, "height "},
                 {EXPECT_BACK, &extent->depth, "depth "},
                 {EXPECT_LEFT, &extent->width, "width "}};

    struct expect_axes axes;
    if (!look_axes(look, "extent_mm", &axes))
        return;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        const int a = axes.along[sides[i].axis];
        if (sides[i].bounds->given)
            look_compare(look, "extent_mm", sides[i].bounds->at,
                         (double)(measures->last[a] - measures->first[a] + 1) * look->volume->spacing[a],
                         sides[i].before, " mm");
    }
}

/* Returns the area of contact in cm2. Padding is at the ends of rows. */
static double
face_area(const struct expect_look *look, const struct expect_facts *facts, enum expect_face face)
{
    const double *spacing = look->volume->spacing;
    const int axis = face == EXPECT_FACE_PADDING ? 0 : (int)face / 2;
    return (double)expect_facts_contact(facts, face) * spacing[axis == 0] * spacing[axis == 2 ? 1 : 2] / 100;
}

static void
look_at_face(const struct expect_look *look, const struct conf_limit *limit, double area, const char *place)
{
    const struct expect_breach breach = look_breach("face_cm2", area, 0, limit->at);
    char number[LOOK_NUMBER];
    if (limit->given && area > limit->at)
        look_add(look, &breach, "cut off %s: %s cm2, at most %.10g cm2 expected", place,
                 look_number(&breach, 1, 3, number), limit->at);
}

void
look_at_face_area(const struct expect_look *look, const struct expect_facts *facts, const struct conf_face_cm2 *faces)
{
    struct expect_axes axes;
    char worst[40] = "at padding";
    double most = face_area(look, facts, EXPECT_FACE_PADDING);
    if (!look_axes(look, "face_cm2", &axes))
        return;
    for (int p = 0; p < 3; p++)
        for (int end = 0; end < 2; end++) {
            const int face = 2 * axes.along[p] + (axes.reversed[p] ? 1 - end : end);
            const double area = face_area(look, facts, (enum expect_face)face);
            if (p == EXPECT_HEAD)
                look_at_face(look, end ? &faces->highest : &faces->lowest, area,
                             end ? "by the highest face" : "by the lowest face");
            else if (area > most) {
                snprintf(worst, sizeof worst, "at the %s", shape_ends[p][end]);
                most = area;
            }
        }
    look_at_face(look, &faces->sides, most, worst);
}

static bool
shape_has(const struct image_mask *mask, const struct image_extent *extent, const int64_t at[3])
{
    const uint64_t *row = mask->bits + (at[2] * extent->rows + at[1]) * mask->words_per_row;
    return row[at[0] / 64] >> (at[0] % 64) & 1;
}

enum { MIRROR_SHIFTS = 13 }; /* up to 6 voxels either way */

/* Counts the voxels whose mirror image is in the mask, too: at `sum` minus their index, for each sum. */
static void
mirror_count(const struct expect_look *look, const struct segment_measures *measures, int axis, int64_t first_sum,
             int64_t counts[MIRROR_SHIFTS])
{
    const struct image_extent *extent = &look->volume->extent;
    const struct image_mask *mask = &look->volume->masks[look->segment];
    const int64_t *first = measures->first, *last = measures->last;
    int64_t at[3];
    for (at[2] = first[2]; at[2] <= last[2]; at[2]++)
        for (at[1] = first[1]; at[1] <= last[1]; at[1]++)
            for (at[0] = first[0]; at[0] <= last[0]; at[0]++) {
                int64_t mirrored[3] = {at[0], at[1], at[2]};
                if (!shape_has(mask, extent, at))
                    continue;
                for (int i = 0; i < MIRROR_SHIFTS; i++) {
                    mirrored[axis] = first_sum + i - at[axis];
                    if (mirrored[axis] >= first[axis] && mirrored[axis] <= last[axis])
                        counts[i] += shape_has(mask, extent, mirrored);
                }
            }
}

void
look_at_mirror(const struct expect_look *look, const struct expect_facts *facts,
               const struct segment_measures *measures, double share)
{
    const int64_t voxels = facts->mask->voxels;
    int64_t counts[MIRROR_SHIFTS] = {0}, most = 0;
    struct expect_axes axes;
    char number[LOOK_NUMBER];
    if (!look_axes(look, "mirror", &axes))
        return;
    const int axis = axes.along[EXPECT_LEFT];
    const int64_t sum = expect_facts_sum(facts, axis);
    mirror_count(look, measures, axis, (4 * sum + voxels) / (2 * voxels) - MIRROR_SHIFTS / 2, counts);
    for (int i = 0; i < MIRROR_SHIFTS; i++)
        most = counts[i] > most ? counts[i] : most;
    const struct expect_breach breach = look_breach("mirror", (double)most / (double)voxels, share, 1);
    if (breach.found < share)
        look_add(look, &breach, "left and right differ: %s %% of it is symmetric, at least %.10g %% expected",
                 look_number(&breach, 100, 2, number), 100 * share);
}

/* Counts the components of a slice. */
static int
slice_parts(const struct expect_look *look, int64_t z, int64_t *count)
{
    const struct image_mask *mask = &look->volume->masks[look->segment];
    struct image_extent extent = look->volume->extent;
    struct image_mask slice = *mask;
    struct components *components;
    slice.bits += z * extent.rows * mask->words_per_row;
    extent.slices = 1;
    int rc = components_begin(&extent, &slice, 1, &components);
    if (rc)
        return rc;
    rc = components_sweep(components, 0);
    if (rc == 0)
        rc = components_join(components, count);
    components_free(components);
    return rc;
}

int
look_at_slice_parts(const struct expect_look *look, const struct segment_measures *measures, double limit)
{
    int64_t most = 0, count;
    for (int64_t z = measures->first[2]; z <= measures->last[2]; z++) {
        if (slice_parts(look, z, &count))
            return error_set_system(look->error, -ENOMEM, "count the parts in slices");
        most = count > most ? count : most;
    }
    const struct expect_breach breach = look_breach("slice_parts", (double)most, 1, limit);
    if (breach.found > limit)
        look_add(look, &breach, "%.10g parts in a slice, at most %.10g expected", breach.found, limit);
    return 0;
}

void
look_at_dropped(const struct expect_look *look, const struct conf_dropped *dropped)
{
    const double *spacing = look->volume->spacing, ml = spacing[0] * spacing[1] * spacing[2] / 1000;
    const double found = (double)look->volume->masks[look->segment].voxels * ml;
    const double of = dropped->label ? (double)look_mask(look, dropped->label)->voxels * ml : 0;
    const struct expect_breach breach = look_breach("dropped", found, 0, fmax(dropped->ml, dropped->share * of));
    char number[LOOK_NUMBER], name[LOOK_NAME];
    if (found <= breach.allowed[1])
        return;
    look_number(&breach, 1, 3, number);
    if (dropped->label)
        look_add(look, &breach, "%s ml beside %s, at most %.3g ml expected", number, look_name(dropped->label, name),
                 breach.allowed[1]);
    else
        look_add(look, &breach, "%s ml, at most %.3g ml expected", number, breach.allowed[1]);
}

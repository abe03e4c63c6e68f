/* look_profile.c - see look.h. */
#include "service/pipeline/expect/look.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Numbers of voxels of a mask per section, from the feet to the head. */
struct profile {
    int64_t *voxels, count;
    int64_t first, last; /* sections with voxels; last < first: none */
    int64_t largest;
    double mm; /* distance of the sections */
};

static void
profile_add_row(const uint64_t *row, int64_t words, int64_t *voxels)
{
    for (int64_t w = 0; w < words; w++)
        for (uint64_t bits = row[w]; bits; bits &= bits - 1)
            voxels[64 * w + __builtin_ctzll(bits)]++;
}

/* Makes the profile of a mask. The caller must free its voxels. Returns 0 or -ENOMEM. */
static int
profile_make(const struct expect_look *look, const struct expect_axes *axes, const struct image_mask *mask,
             struct profile *profile)
{
    const struct image_extent *extent = &look->volume->extent;
    const int64_t sizes[3] = {extent->columns, extent->rows, extent->slices}, words = mask->words_per_row;
    const int axis = axes->along[EXPECT_HEAD];
    *profile = (struct profile){.count = sizes[axis], .last = -1, .mm = look->volume->spacing[axis]};
    profile->voxels = calloc((size_t)sizes[axis], sizeof *profile->voxels);
    if (!profile->voxels)
        return error_set_system(look->error, -ENOMEM, "measure the areas of segments");
    for (int64_t row = 0; row < extent->slices * extent->rows; row++) {
        const uint64_t *bits = mask->bits + row * words;
        if (axis == 0)
            profile_add_row(bits, words, profile->voxels);
        for (int64_t w = 0; axis > 0 && w < words; w++)
            profile->voxels[axis == 1 ? row % extent->rows : row / extent->rows] += __builtin_popcountll(bits[w]);
    }
    for (int64_t i = 0; axes->reversed[EXPECT_HEAD] && i < sizes[axis] / 2; i++) {
        const int64_t swapped = profile->voxels[i];
        profile->voxels[i] = profile->voxels[sizes[axis] - 1 - i];
        profile->voxels[sizes[axis] - 1 - i] = swapped;
    }
    for (int64_t i = 0; i < sizes[axis]; i++)
        if (profile->voxels[i] > 0) {
            profile->first = profile->last < 0 ? i : profile->first;
            profile->last = i;
            profile->largest = profile->voxels[i] > profile->largest ? profile->voxels[i] : profile->largest;
        }
    return 0;
}

/* Makes the profiles of the segment and of another one (NULL: of the segment alone). Adds a breach
 * and returns 1 if one of them is not known. Returns 0 or -ENOMEM otherwise. */
static int
profile_pair(const struct expect_look *look, const char *expectation, const char *label, struct profile *own,
             struct profile *other)
{
    const struct expect_breach breach = {.expectation = expectation};
    struct expect_axes axes;
    char name[LOOK_NAME];
    int rc = 0;
    if (label && look_mask(look, label)->voxels == 0)
        look_add(look, &breach, "it cannot be compared: %s is empty", look_name(label, name));
    else if (look_axes(look, expectation, &axes)) {
        rc = profile_make(look, &axes, &look->volume->masks[look->segment], own);
        return rc == 0 && label ? profile_make(look, &axes, look_mask(look, label), other) : rc;
    }
    return 1;
}

static int64_t
profile_sections(const struct profile *profile, double mm)
{
    const int64_t sections = (int64_t)floor(mm / profile->mm + 0.5);
    return sections > 1 ? sections : 1;
}

/* Finds the largest change, and the first of the two sections. */
static double
profile_change(const struct profile *own, const struct profile *whole, int64_t step, int64_t *at)
{
    const struct profile *range = whole ? whole : own;
    double largest = 0;
    *at = range->first;
    for (int64_t i = range->first; i + step <= range->last; i++) {
        double areas[2];
        for (int end = 0; end < 2; end++) {
            const int64_t section = i + end * step, of = whole ? whole->voxels[section] : own->largest;
            areas[end] = (double)own->voxels[section] / (double)(of > 1 ? of : 1);
        }
        if (fabs(areas[1] - areas[0]) > largest) {
            largest = fabs(areas[1] - areas[0]);
            *at = i;
        }
    }
    return largest;
}

int
look_at_jump(const struct expect_look *look, const struct conf_jump *jump)
{
    struct profile own = {0}, whole = {0};
    char number[LOOK_NUMBER], name[LOOK_NAME];
    int64_t at;
    int rc = profile_pair(look, "jump", jump->label, &own, &whole);
    if (rc)
        goto out;
    const struct profile *range = jump->label ? &whole : &own;
    const int64_t step = profile_sections(&own, jump->mm);
    struct expect_breach breach =
        look_breach("jump", profile_change(&own, jump->label ? &whole : NULL, step, &at), 0, jump->most);
    if (range->last - range->first < step) {
        breach.bounded = false;
        look_add(look, &breach, "it is too short to compare its areas over %.10g mm", jump->mm);
    } else if (breach.found > jump->most)
        look_add(look, &breach,
                 "its area jumps by %s %% of %s within %.10g mm, %.0f mm above the lowest section; at most "
                 "%.10g %% expected",
                 look_number(&breach, 100, 2, number), jump->label ? look_name(jump->label, name) : "the largest",
                 jump->mm, (double)(at - range->first) * own.mm, 100 * jump->most);
out:
    free(own.voxels);
    free(whole.voxels);
    return rc < 0 ? rc : 0;
}

int
look_at_ends(const struct expect_look *look, double most)
{
    struct profile own = {0}, unused;
    char number[LOOK_NUMBER];
    int rc = profile_pair(look, "ends", NULL, &own, &unused);
    for (int top = 0; rc == 0 && top < 2; top++) {
        const double area = (double)own.voxels[top ? own.last : own.first] / (double)own.largest;
        const struct expect_breach breach = look_breach("ends", area, 0, most);
        if (area > most)
            look_add(look, &breach,
                     "cut off at its %s: the %s section has %s %% of the largest area, at most %.10g %% expected",
                     top ? "top" : "base", top ? "highest" : "lowest", look_number(&breach, 100, 2, number),
                     100 * most);
    }
    free(own.voxels);
    return rc < 0 ? rc : 0;
}

static void
look_at_distance(const struct expect_look *look, const struct conf_beside *beside, const char *ends, double mm,
                 double most)
{
    const struct expect_breach breach = look_breach("beside", mm, 0, most);
    char number[LOOK_NUMBER], name[LOOK_NAME];
    if (mm > most)
        look_add(look, &breach, "its %s and that of %s are %s mm apart, at most %.10g mm expected", ends,
                 look_name(beside->label, name), look_number(&breach, 1, 3, number), most);
}

/* Returns the smaller of two sums of areas divided by the larger one. */
static double
profile_ratio(const struct profile *a, const struct profile *b, int64_t from, int64_t sections)
{
    int64_t sums[2] = {0, 0};
    for (int64_t i = from; i < from + sections && i < a->count; i++) {
        sums[0] += a->voxels[i];
        sums[1] += b->voxels[i];
    }
    const int64_t low = sums[0] < sums[1] ? sums[0] : sums[1], high = sums[0] + sums[1] - low;
    return high > 0 ? (double)low / (double)high : 0;
}

static void
look_at_ratio(const struct expect_look *look, const struct conf_beside *beside, double found, double least,
              const char *part)
{
    const struct expect_breach breach = look_breach("beside", found, least, 1);
    char number[LOOK_NUMBER], name[LOOK_NAME];
    if (found < least)
        look_add(look, &breach,
                 "beside %s, the smaller %sarea is %s %% of the larger over %.10g mm, at least %.10g %% expected",
                 look_name(beside->label, name), part, look_number(&breach, 100, 2, number), beside->over_mm,
                 100 * least);
}

int
look_at_beside(const struct expect_look *look, const struct conf_beside *beside)
{
    enum { BASE_MM = 25, TOP_MM = 15 }; /* ends that are not compared */

    struct profile own = {0}, other = {0};
    double worst = 2, worst_upper = 2;
    int rc = profile_pair(look, "beside", beside->label, &own, &other);
    if (rc)
        goto out;
    look_at_distance(look, beside, "top", (double)llabs(own.last - other.last) * own.mm, beside->tops_mm);
    look_at_distance(look, beside, "base", (double)llabs(own.first - other.first) * own.mm, beside->bases_mm);
    const int64_t low = own.first > other.first ? own.first : other.first;
    const int64_t high = own.last < other.last ? own.last : other.last;
    const int64_t from = low + (int64_t)(BASE_MM / own.mm), to = high - (int64_t)(TOP_MM / own.mm);
    const int64_t sections = profile_sections(&own, beside->over_mm);
    const int64_t middle = (int64_t)floor((double)from + 0.45 * (double)(to - from));
    for (int64_t i = from; i == from || i <= to - sections; i++) {
        const double ratio = profile_ratio(&own, &other, i, sections);
        worst = fmin(worst, ratio);
        worst_upper = i >= middle ? fmin(worst_upper, ratio) : worst_upper;
    }
    look_at_ratio(look, beside, worst, beside->share, "");
    look_at_ratio(look, beside, worst_upper > 1 ? 0 : worst_upper, beside->upper_share, "upper ");
out:
    free(own.voxels);
    free(other.voxels);
    return rc < 0 ? rc : 0;
}

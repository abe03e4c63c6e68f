/* look_values.c - see look.h. */
#include "service/pipeline/expect/look.h"

#include "base/error.h"
#include "kernels/smooth/smooth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Values are in 1/8 HU. */
enum {
    HU = 8,
    BINS = 80,
    BIN_HU = 5,
    FIRST_HU = -200,
    LAST_FAT_BIN = 31,
    FIRST_SOFT_BIN = 36,
    LEAST_DIFFERENCES = 500
};

/* Numbers of values, by value. */
struct value_counts {
    int64_t *of; /* of value + offset */
    int64_t size, offset, total;
};

static int
value_counts_make(const struct expect_look *look, int64_t lowest, int64_t highest, struct value_counts *counts)
{
    *counts = (struct value_counts){.size = highest - lowest + 1, .offset = -lowest};
    counts->of = calloc((size_t)counts->size, sizeof *counts->of);
    return counts->of ? 0 : error_set_system(look->error, -ENOMEM, "measure the values of the images");
}

static void
value_counts_add(struct value_counts *counts, int64_t value, int64_t times)
{
    counts->of[value + counts->offset] += times;
    counts->total += times;
}

/* Returns the value of a rank from 0. */
static int64_t
value_counts_rank(const struct value_counts *counts, int64_t rank)
{
    int64_t i = 0;
    for (int64_t below = counts->of[0]; below <= rank; below += counts->of[i])
        i++;
    return i - counts->offset;
}

/* Returns twice the median, which is the mean of the two middle values if there are two. */
static int64_t
value_counts_double_median(const struct value_counts *counts)
{
    return value_counts_rank(counts, (counts->total - 1) / 2) + value_counts_rank(counts, counts->total / 2);
}

/* ----------------------------------------------------------------------------------- the scale */

/* Returns the bits of a word that are voxels of the row. */
static uint64_t
values_of_row(const struct image_extent *extent, int64_t word)
{
    const int64_t left = extent->columns - 64 * word;
    return left >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
}

/* Counts the values outside of a mask, and those of the segment within 200 HU of water. */
static int64_t
values_count(const struct expect_look *look, const struct image_mask *grown, struct value_counts *air)
{
    const struct image_extent *extent = &look->volume->extent;
    const struct image_mask *own = &look->volume->masks[look->segment];
    const int64_t words = own->words_per_row;
    int64_t soft = 0;
    for (int64_t i = 0; i < extent->rows * extent->slices * words; i++) {
        const int16_t *values = (const int16_t *)look->volume->voxels + i / words * extent->columns + 64 * (i % words);
        for (uint64_t bits = values_of_row(extent, i % words) & ~grown->bits[i]; bits; bits &= bits - 1)
            value_counts_add(air, values[__builtin_ctzll(bits)], 1);
        for (uint64_t bits = own->bits[i]; bits; bits &= bits - 1) {
            const int16_t value = values[__builtin_ctzll(bits)];
            soft += value > -200 * HU && value < 200 * HU;
        }
    }
    return soft;
}

/* Compares a number; `what` begins the text. */
static void
look_at_frame_number(const struct expect_look *look, double low, double high, double found, const char *what,
                     const char *unit)
{
    look_compare(look, "frame", (const double[]){low, high}, found, what, unit);
}

/* Filters the histogram and compares the peaks of soft tissue and of fat. */
static void
look_at_peaks(const struct expect_look *look, const uint64_t histogram[BINS])
{
    int32_t weights[SMOOTH_MAX_RADIUS + 1];
    const int radius = smooth_weights(1.5, weights);
    uint64_t heights[BINS] = {0}, highest = 0;
    int soft = FIRST_SOFT_BIN, fat = 0;
    for (int bin = 0; bin < BINS; bin++) {
        for (int i = -radius; i <= radius; i++) {
            const int other = bin + i < 0 ? 0 : bin + i >= BINS ? BINS - 1 : bin + i;
            heights[bin] += (uint64_t)weights[abs(i)] * histogram[other];
        }
        highest = heights[bin] > highest ? heights[bin] : highest;
        if (bin > FIRST_SOFT_BIN && heights[bin] > heights[soft])
            soft = bin;
        if (bin <= LAST_FAT_BIN && heights[bin] > heights[fat])
            fat = bin;
    }
    if (highest == 0)
        return;
    look_at_frame_number(look, 5, look->volume->contrast ? 180 : 130, FIRST_HU + BIN_HU * (soft + 0.5),
                         "values are not in HU: soft tissue at ", " HU");
    if ((double)heights[fat] > 0.4 * (double)highest)
        look_at_frame_number(look, -140, -45, FIRST_HU + BIN_HU * (fat + 0.5), "values are not in HU: fat at ", " HU");
}

static int
look_at_frame(const struct expect_look *look, const uint64_t histogram[BINS])
{
    static const struct kernels_mask_step grow = {.kind = KERNELS_MASK_GROW, .amount = LOOK_AIR_MM};
    const struct expect_volume *volume = look->volume;
    const struct image_mask *own = &volume->masks[look->segment];
    const struct kernels_mask_request request = {
        .padding = {1, 0}, .found = own->bits, .steps = &grow, .step_count = 1};
    const double ml = volume->spacing[0] * volume->spacing[1] * volume->spacing[2] / 1000;
    struct image_mask grown;
    struct value_counts air = {0};
    int rc = look_make(look, 0, &request, &grown);
    if (rc == 0)
        rc = value_counts_make(look, INT16_MIN, INT16_MAX, &air);
    if (rc)
        return rc;
    const double soft = (double)values_count(look, &grown, &air) / (double)own->voxels;
    const double share = (double)air.total / (double)image_voxels(&volume->extent);
    look_at_frame_number(look, 0.5, 1000, (double)own->voxels * ml / 1000, "not a body: ", " l");
    look_at_frame_number(look, 0.02, 1, share, "air around it is not seen: share of the images ", "");
    if (share >= 0.02)
        look_at_frame_number(look, -1050, -900, (double)value_counts_double_median(&air) / (2.0 * HU),
                             "values are not in HU: air around it at ", " HU");
    look_at_peaks(look, histogram);
    look_at_frame_number(look, 0.3, 1, soft, "not a body: share of it within 200 HU of water ", "");
    free(air.of);
    return 0;
}

/* ----------------------------------------------------------------------------------- the noise */

/* Counts second differences along rows, 2 v(x) - v(x - 1) - v(x + 1), of voxels that lie in the mask
 * with both neighbours. */
static void
noise_count(const struct expect_look *look, const struct image_mask *soft, struct value_counts *counts)
{
    const struct image_extent *extent = &look->volume->extent;
    const int64_t words = soft->words_per_row;
    for (int64_t i = 0; i < extent->rows * extent->slices * words; i++) {
        const int64_t w = i % words;
        const int16_t *values = (const int16_t *)look->volume->voxels + i / words * extent->columns + 64 * w;
        const uint64_t before = w > 0 ? soft->bits[i - 1] >> 63 : 0,
                       behind = w + 1 < words ? soft->bits[i + 1] << 63 : 0;
        const uint64_t own = soft->bits[i];
        for (uint64_t bits = own & (own << 1 | before) & (own >> 1 | behind); bits; bits &= bits - 1) {
            const int16_t *at = values + __builtin_ctzll(bits);
            value_counts_add(counts, 2 * at[0] - at[-1] - at[1], 1);
        }
    }
}

/* Returns the noise in HU of counted differences: their median deviation from the median, as a
 * standard deviation of single values. */
static int
noise_measure(const struct expect_look *look, const struct value_counts *counts, double *noise)
{
    const int64_t median = value_counts_double_median(counts);
    struct value_counts deviations;
    const int rc = value_counts_make(look, 0, 2 * counts->size, &deviations);
    if (rc)
        return rc;
    for (int64_t i = 0; i < counts->size; i++)
        if (counts->of[i] > 0)
            value_counts_add(&deviations, llabs(2 * (i - counts->offset) - median), counts->of[i]);
    *noise = 1.4826 * ((double)value_counts_double_median(&deviations) / (8.0 * HU)) / sqrt(1.5);
    free(deviations.of);
    return 0;
}

static int
look_at_noise(const struct expect_look *look, const uint64_t *soft_values, double most, double *noise)
{
    enum { LARGEST = 4 * 32768 };

    const struct kernels_mask_step shrink = {.kind = KERNELS_MASK_SHRINK,
                                             .amount = LOOK_NOISE_STEPS * look->volume->spacing[1]};
    const struct kernels_mask_request request = {.padding = {1, 0},
                                                 .found = soft_values,
                                                 .within = &look->volume->masks[look->segment].bits,
                                                 .within_count = 1,
                                                 .steps = &shrink,
                                                 .step_count = 1};
    struct image_mask soft;
    struct value_counts counts = {0};
    char number[LOOK_NUMBER];
    int rc = look_make(look, 0, &request, &soft);
    if (rc == 0)
        rc = value_counts_make(look, -LARGEST, LARGEST, &counts);
    if (rc)
        return rc;
    noise_count(look, &soft, &counts);
    if (counts.total < LEAST_DIFFERENCES)
        look_add(look, &(struct expect_breach){.expectation = "noise"},
                 "its noise is not known: there is too little soft tissue");
    else
        rc = noise_measure(look, &counts, noise);
    free(counts.of);
    const struct expect_breach breach = look_breach("noise", *noise, 0, most);
    if (rc == 0 && *noise > most)
        look_add(look, &breach, "noise of %s HU in soft tissue, at most %.10g HU expected",
                 look_number(&breach, 1, 3, number), most);
    return rc;
}

int
look_at_values(const struct expect_look *look, const struct conf_expect *expect, double *noise)
{
    const struct expect_volume *volume = look->volume;
    const struct image_mask *own = &volume->masks[look->segment];
    const struct image_extent *extent = &volume->extent;
    uint64_t histogram[BINS];
    struct smooth_request request = {.sigma_mm = LOOK_SMOOTH_MM,
                                     .lo = -1024 * HU, /* all values: those on the coarse grid are clipped */
                                     .hi = 3071 * HU,
                                     .padding = {1, 0},
                                     .range = {1, 100 * HU - 1},
                                     .region = own->bits,
                                     .histogram = histogram,
                                     .bins = BINS,
                                     .first = FIRST_HU * HU,
                                     .width = BIN_HU * HU};
    *noise = NAN;
    if (volume->pixel != IMAGE_INT16 || volume->rescale[0].slope != 1.0 / HU || volume->rescale[0].intercept != 0) {
        look_add(look, &(struct expect_breach){.expectation = "frame"}, "the values of the images are not in HU");
        return 0;
    }
    request.bits = malloc((size_t)(extent->rows * extent->slices * own->words_per_row) * sizeof *request.bits);
    if (!request.bits)
        return error_set_system(look->error, -ENOMEM, "measure the values of the images");
    int rc = smooth_run(volume->lane, &request, look->error);
    if (rc == 0 && expect->frame == CONF_FRAME_CT_BODY)
        rc = look_at_frame(look, histogram);
    if (rc == 0 && expect->noise.given)
        rc = look_at_noise(look, request.bits, expect->noise.at, noise);
    free(request.bits);
    return rc;
}

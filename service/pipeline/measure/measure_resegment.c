/* measure_resegment.c - see measure.h. */
#include "service/pipeline/measure/measure.h"

#include "kernels/features/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOGETHER = 8 };

/* Returns the value of a table entry, with the arithmetic of discretise(). */
static double
entry_value(const struct feature_volume *volume, size_t entry)
{
    const struct image_rescale *rescale = &volume->rescales[entry / volume->values];
    const double stored = (double)volume->smallest + (double)(entry % volume->values);
    return rescale->slope * stored + rescale->intercept;
}

/*
 * Returns the first counted entry from `entry` on. Most are not counted and are skipped in groups.
 */
static size_t
next_counted(const struct feature_volume *volume, const uint64_t *histograms, size_t entry)
{
    const size_t entries = volume->tables * volume->values;
    uint64_t any = 0;
    while (any == 0 && entry + TOGETHER <= entries) {
        for (size_t i = entry; i < entry + TOGETHER; i++)
            any |= histograms[i];
        entry += any == 0 ? TOGETHER : 0;
    }
    while (entry < entries && histograms[entry] == 0)
        entry++;
    return entry;
}

static void
find_extremes(const struct feature_volume *volume, const uint64_t *histograms, double extremes[2])
{
    const size_t entries = volume->tables * volume->values;
    extremes[0] = INFINITY;
    extremes[1] = -INFINITY;
    for (size_t i = next_counted(volume, histograms, 0); i < entries; i = next_counted(volume, histograms, i + 1)) {
        const double value = entry_value(volume, i);
        extremes[0] = value < extremes[0] ? value : extremes[0];
        extremes[1] = value > extremes[1] ? value : extremes[1];
    }
}

/*
 * Narrows the kept interval by mean and deviation of the counted values. The sums begin at the
 * smallest value, so that a single value is exactly its own mean.
 */
static void
keep_near_mean(const struct feature_volume *volume, const uint64_t *histograms, double kept[2])
{
    const size_t entries = volume->tables * volume->values;
    double extremes[2], total = 0, above = 0, squares = 0;
    find_extremes(volume, histograms, extremes);
    if (extremes[0] > extremes[1])
        return;
    for (size_t i = next_counted(volume, histograms, 0); i < entries; i = next_counted(volume, histograms, i + 1)) {
        total += (double)histograms[i];
        above += (double)histograms[i] * (entry_value(volume, i) - extremes[0]);
    }
    const double mean = extremes[0] + above / total;
    for (size_t i = next_counted(volume, histograms, 0); i < entries; i = next_counted(volume, histograms, i + 1)) {
        const double from = entry_value(volume, i) - mean;
        squares += (double)histograms[i] * from * from;
    }
    const double deviation = sqrt(squares / total);
    kept[0] = fmax(kept[0], mean - volume->options->sigma * deviation);
    kept[1] = fmin(kept[1], mean + volume->options->sigma * deviation);
}

void
resegment(const struct feature_volume *volume, uint64_t *histograms, double kept[2], double extremes[2])
{
    const struct texture_options *options = volume->options;
    kept[0] = options->levels.has_range ? options->levels.range[0] : -INFINITY;
    kept[1] = options->levels.has_range ? options->levels.range[1] : INFINITY;
    if (options->sigma > 0)
        keep_near_mean(volume, histograms, kept);
    const bool bounded = isfinite(kept[0]) || isfinite(kept[1]);
    const size_t entries = volume->tables * volume->values;
    for (size_t i = next_counted(volume, histograms, 0); bounded && i < entries;
         i = next_counted(volume, histograms, i + 1)) {
        const double value = entry_value(volume, i);
        if (value < kept[0] || value > kept[1])
            histograms[i] = 0;
    }
    find_extremes(volume, histograms, extremes);
}

int64_t
region_parts(const struct feature_region *region)
{
    const int64_t rows = region->volume->rows * region->volume->slices;
    return rows < REGION_PARTS ? rows : REGION_PARTS;
}

/* The smallest and largest kept value of each part of a region. */
struct extremes_parts {
    const struct feature_region *region;
    int64_t count;
    double ends[REGION_PARTS][2];
};

static void
extremes_of_part(void *context, int64_t part)
{
    struct extremes_parts *parts = context;
    const struct feature_region *region = parts->region;
    const struct feature_volume *volume = region->volume;
    const int64_t columns = volume->columns, rows = volume->rows * volume->slices;
    double ends[2] = {INFINITY, -INFINITY};
    for (int64_t row = rows * part / parts->count; row < rows * (part + 1) / parts->count; row++)
        for (int64_t word = 0; word < (columns + 63) / 64; word++)
            for (uint64_t bits = image_word(region->bits, columns, row, word); bits; bits &= bits - 1) {
                const double value =
                    volume->reals[row * columns + 64 * word + __builtin_ctzll(bits)] + 0.0; /* not -0 */
                if (!(value >= region->kept[0]) || !(value <= region->kept[1]))
                    continue;
                ends[0] = value < ends[0] ? value : ends[0];
                ends[1] = value > ends[1] ? value : ends[1];
            }
    memcpy(parts->ends[part], ends, sizeof ends);
}

int
resegment_reals(struct feature_region *region)
{
    const struct feature_volume *volume = region->volume;
    const struct texture_options *options = volume->options;
    const struct image_extent extent = feature_extent(volume);
    double *const kept = region->kept, *const extremes = region->extremes;
    kept[0] = extremes[0] = -INFINITY;
    kept[1] = extremes[1] = INFINITY;
    if (options->sigma > 0) {
        struct feature_value found[STATISTICS];
        const int rc = statistics_of_reals(volume->lane, volume->reals, &extent, region->bits, kept, 0, found);
        if (rc && rc != -ENODATA)
            return rc;
        const double mean = found[STATISTIC_MEAN].value, deviation = sqrt(found[STATISTIC_VARIANCE].value);
        if (rc == 0) {
            kept[0] = fmax(kept[0], mean - options->sigma * deviation);
            kept[1] = fmin(kept[1], mean + options->sigma * deviation);
        }
    }
    if (options->levels.has_range) {
        kept[0] = fmax(kept[0], options->levels.range[0]);
        kept[1] = fmin(kept[1], options->levels.range[1]);
    }
    struct extremes_parts parts = {.region = region, .count = region_parts(region)};
    kernels_lane_for(volume->lane, parts.count, extremes_of_part, &parts);
    extremes[0] = INFINITY;
    extremes[1] = -INFINITY;
    for (int64_t part = 0; part < parts.count; part++) {
        extremes[0] = fmin(extremes[0], parts.ends[part][0]);
        extremes[1] = fmax(extremes[1], parts.ends[part][1]);
    }
    return 0;
}

/* ngtdm.c - neighbourhood grey tone difference (neighbourhood.h). */
#include "kernels/features/matrices/neighbourhood.h"

#include <math.h>

#define MAX_COARSENESS 1e6

static const struct feature_definition ngtdm_definitions[NGTDM_FEATURES] = {
    {"coarseness", "Coarseness", "QCDE", .unit = "1"}, {"contrast", "Contrast", "65HE", .unit = "1"},
    {"busyness", "Busyness", "NQ30", .unit = "1"},     {"complexity", "Complexity", "HDEZ", .unit = "1"},
    {"strength", "Strength", "1X9X", .unit = "1"},
};

/* Levels that occur among the counted voxels. */
struct tones {
    size_t count;
    double voxels;
    double *level, *p, *s; /* with room for all levels */
};

/* Deviations are sorted by the number of neighbours, and divided by it at the end. Voxels with fewer than `least`
 * neighbours are not counted: IBSI's are 1, those of pyradiomics 0. */
static void
tones_of(const uint64_t *matrix, size_t levels, size_t width, size_t least, struct tones *tones)
{
    const uint64_t *present = matrix + TEXTURE_PRESENT * levels * width;
    const uint64_t *deviations = matrix + TEXTURE_DEVIATION * levels * width;

    tones->count = 0;
    tones->voxels = 0;
    for (size_t level = 0; level < levels; level++) {
        double voxels = 0, sum = 0;

        for (size_t n = least; n < width; n++) {
            voxels += (double)present[level * width + n];
            sum += n > 0 ? (double)deviations[level * width + n] / (double)n : 0;
        }
        if (voxels == 0)
            continue;
        tones->level[tones->count] = (double)(level + 1);
        tones->p[tones->count] = voxels;
        tones->s[tones->count++] = sum;
        tones->voxels += voxels;
    }
    for (size_t i = 0; i < tones->count; i++)
        tones->p[i] /= tones->voxels;
}

static void
ngtdm_features_of(const struct tones *tones, struct feature_value values[NGTDM_FEATURES])
{
    const double levels = (double)tones->count;
    double weighted = 0, sum = 0;
    double contrast = 0, busyness = 0, complexity = 0, strength = 0; /* sums over all pairs of levels */

    for (size_t i = 0; i < tones->count; i++) {
        weighted += tones->p[i] * tones->s[i];
        sum += tones->s[i];
    }
    for (size_t i = 0; i < tones->count; i++)
        for (size_t j = 0; j < tones->count; j++) {
            const double pi = tones->p[i], pj = tones->p[j];
            const double apart = tones->level[i] - tones->level[j];

            contrast += pi * pj * apart * apart;
            busyness += fabs(tones->level[i] * pi - tones->level[j] * pj);
            complexity += fabs(apart) * (pi * tones->s[i] + pj * tones->s[j]) / (pi + pj);
            strength += (pi + pj) * apart * apart;
        }
    values[NGTDM_COARSENESS] = feature_present(weighted > 0 ? fmin(1 / weighted, MAX_COARSENESS) : MAX_COARSENESS);
    values[NGTDM_CONTRAST] = values[NGTDM_BUSYNESS] = feature_present(0);
    if (tones->count > 1) {
        values[NGTDM_CONTRAST] = feature_present(contrast / (levels * (levels - 1)) * sum / tones->voxels);
        values[NGTDM_BUSYNESS] =
            busyness > 0 ? feature_present(weighted / busyness) : feature_absent(FEATURE_DIVISION_BY_ZERO);
    }
    values[NGTDM_COMPLEXITY] = feature_present(complexity / tones->voxels);
    values[NGTDM_STRENGTH] = feature_present(sum > 0 ? strength / sum : 0);
}

/* Averages exclude matrices without any counted voxel and, per feature, those where it is
 * undefined. */
static int
ngtdm_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    const struct texture_neighbours request = neighbourhood_request(region, NEIGHBOURHOOD_TONES);
    const size_t levels = (size_t)region->levels, width = texture_neighbours_width(&request);
    const size_t entries = TEXTURE_NEIGHBOUR_KINDS * levels * width;
    const bool is_pyradiomics = region->volume->options->names == TEXTURE_NAMES_PYRADIOMICS;
    double sums[NGTDM_FEATURES] = {0};
    int64_t summed[NGTDM_FEATURES] = {0}, matrices = 0;
    double *const room = malloc(3 * levels * sizeof(*room));

    (void)set;
    if (!room)
        return -ENOMEM;
    struct tones tones = {.level = room, .p = room + levels, .s = room + 2 * levels};
    counts = neighbourhood_counts(region, NEIGHBOURHOOD_TONES, counts);
    for (size_t m = 0; m < neighbourhood_size(region, &request) / entries; m++) {
        struct feature_value own[NGTDM_FEATURES];

        tones_of(counts + m * entries, levels, width, is_pyradiomics ? 0 : 1, &tones);
        if (tones.count == 0)
            continue;
        ngtdm_features_of(&tones, own);
        if (is_pyradiomics && own[NGTDM_BUSYNESS].missing != FEATURE_PRESENT)
            own[NGTDM_BUSYNESS] = feature_present(0);
        matrices++;
        for (int f = 0; f < NGTDM_FEATURES; f++)
            if (own[f].missing == FEATURE_PRESENT) {
                sums[f] += own[f].value;
                summed[f]++;
            }
    }
    for (int f = 0; f < NGTDM_FEATURES; f++) {
        if (summed[f] > 0)
            values[f] = feature_present(sums[f] / (double)summed[f]);
        else
            values[f] = feature_absent(matrices > 0 ? FEATURE_DIVISION_BY_ZERO : FEATURE_NO_NEIGHBOURS);
    }
    free(room);
    return 0;
}

static void
ngtdm_describe(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS])
{
    neighbourhood_describe(options, set, settings);
    feature_put_integer(settings, FEATURE_distance, options->ngtdm_distance);
}

const struct feature_family family_ngtdm = {
    .name = "ngtdm",
    .definitions = ngtdm_definitions,
    .definition_count = NGTDM_FEATURES,
    .needs = FEATURE_NEEDS_LEVELS,
    .choice = TEXTURE_FAMILY_ngtdm,
    .describe = ngtdm_describe,
    .op = KERNELS_NEIGHBOURS,
    .count = neighbourhood_count,
    .bytes = neighbourhood_bytes,
    .values = ngtdm_values,
};

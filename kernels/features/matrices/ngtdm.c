/* ngtdm.c - neighbourhood grey tone difference (neighbourhood.h). */
#include "kernels/features/matrices/neighbourhood.h"

#include <math.h>

#define MAX_COARSENESS 1e6

static const struct feature_definition ngtdm_definitions[NGTDM_FEATURES] = {
    {"coarseness", "Coarseness", "QCDE", .unit = "1"}, {"contrast", "Contrast", "65HE", .unit = "1"},
    {"busyness", "Busyness", "NQ30", .unit = "1"},     {"complexity", "Complexity", "HDEZ", .unit = "1"},
    {"strength", "Strength", "1X9X", .unit = "1"},
};

/* Levels that occur among voxels with neighbours. */
struct tones {
    size_t count;
    double voxels;
    double level[TEXTURE_MAX_LEVELS], p[TEXTURE_MAX_LEVELS], s[TEXTURE_MAX_LEVELS];
};

/* Deviations are sorted by the number of neighbours, and divided by it at the end. */
static void
tones_of(const uint64_t *present, const uint64_t *deviations, size_t levels, size_t width, struct tones *tones)
{
    *tones = (struct tones){.count = 0};
    for (size_t level = 0; level < levels; level++) {
        double voxels = 0, sum = 0;

        for (size_t n = 1; n < width; n++) {
            voxels += (double)present[level * width + n];
            sum += (double)deviations[level * width + n] / (double)n;
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

/* Sums over all pairs of levels. */
struct tone_pairs {
    double contrast, busyness, complexity, strength;
};

static void
tone_pairs_of(const struct tones *tones, struct tone_pairs *pairs)
{
    *pairs = (struct tone_pairs){0};
    for (size_t i = 0; i < tones->count; i++)
        for (size_t j = 0; j < tones->count; j++) {
            const double pi = tones->p[i], pj = tones->p[j];
            const double apart = tones->level[i] - tones->level[j];

            pairs->contrast += pi * pj * apart * apart;
            pairs->busyness += fabs(tones->level[i] * pi - tones->level[j] * pj);
            pairs->complexity += fabs(apart) * (pi * tones->s[i] + pj * tones->s[j]) / (pi + pj);
            pairs->strength += (pi + pj) * apart * apart;
        }
}

static void
ngtdm_features_of(const struct tones *tones, struct feature_value values[NGTDM_FEATURES])
{
    const double levels = (double)tones->count;
    double weighted = 0, sum = 0;
    struct tone_pairs pairs;

    for (size_t i = 0; i < tones->count; i++) {
        weighted += tones->p[i] * tones->s[i];
        sum += tones->s[i];
    }
    tone_pairs_of(tones, &pairs);
    values[NGTDM_COARSENESS] = feature_present(weighted > 0 ? fmin(1 / weighted, MAX_COARSENESS) : MAX_COARSENESS);
    values[NGTDM_CONTRAST] = values[NGTDM_BUSYNESS] = feature_present(0);
    if (tones->count > 1) {
        values[NGTDM_CONTRAST] = feature_present(pairs.contrast / (levels * (levels - 1)) * sum / tones->voxels);
        values[NGTDM_BUSYNESS] =
            pairs.busyness > 0 ? feature_present(weighted / pairs.busyness) : feature_absent(FEATURE_DIVISION_BY_ZERO);
    }
    values[NGTDM_COMPLEXITY] = feature_present(pairs.complexity / tones->voxels);
    values[NGTDM_STRENGTH] = feature_present(sum > 0 ? pairs.strength / sum : 0);
}

/* Averages exclude matrices without any neighbours and, per feature, those where it is
 * undefined. */
struct ngtdm_average {
    double sum[NGTDM_FEATURES];
    int64_t count[NGTDM_FEATURES];
    int64_t matrices;
};

static void
ngtdm_average_add(struct ngtdm_average *average, const struct tones *tones)
{
    struct feature_value values[NGTDM_FEATURES];

    if (tones->count == 0)
        return;
    ngtdm_features_of(tones, values);
    average->matrices++;
    for (int f = 0; f < NGTDM_FEATURES; f++)
        if (values[f].missing == FEATURE_PRESENT) {
            average->sum[f] += values[f].value;
            average->count[f]++;
        }
}

static int
ngtdm_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    const struct texture_neighbours request = neighbourhood_request(region, NEIGHBOURHOOD_TONES);
    const size_t levels = (size_t)region->levels, width = texture_neighbours_width(&request);
    const size_t plane = levels * width, entries = TEXTURE_NEIGHBOUR_KINDS * plane;
    struct ngtdm_average average = {.matrices = 0};

    (void)set;
    counts = neighbourhood_counts(region, NEIGHBOURHOOD_TONES, counts);
    for (size_t m = 0; m < neighbourhood_size(region, &request) / entries; m++) {
        const uint64_t *matrix = counts + m * entries;
        struct tones tones;

        tones_of(matrix + TEXTURE_PRESENT * plane, matrix + TEXTURE_DEVIATION * plane, levels, width, &tones);
        ngtdm_average_add(&average, &tones);
    }
    for (int f = 0; f < NGTDM_FEATURES; f++) {
        if (average.count[f] > 0)
            values[f] = feature_present(average.sum[f] / (double)average.count[f]);
        else
            values[f] = feature_absent(average.matrices > 0 ? FEATURE_DIVISION_BY_ZERO : FEATURE_NO_NEIGHBOURS);
    }
    return 0;
}

static bool
ngtdm_wanted(const struct texture_options *options)
{
    return texture_wants(options, TEXTURE_FAMILY_ngtdm);
}

static void
ngtdm_describe(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS])
{
    (void)set;
    neighbourhood_describe(options, settings);
    feature_put_integer(settings, FEATURE_distance, options->ngtdm_distance);
}

const struct feature_family family_ngtdm = {
    .name = "ngtdm",
    .definitions = ngtdm_definitions,
    .definition_count = NGTDM_FEATURES,
    .needs = FEATURE_NEEDS_LEVELS,
    .wanted = ngtdm_wanted,
    .describe = ngtdm_describe,
    .op = KERNELS_NEIGHBOURS,
    .count = neighbourhood_count,
    .bytes = neighbourhood_bytes,
    .values = ngtdm_values,
};

#include "kernels/features/matrices/neighbourhood.h"

#include "kernels/features/matrices/level_matrix.h"
#include "kernels/features/matrices/wide.h"

/* Tones do not use the alike counts: dependences with the same neighbours are counted in the same
 * run. */
static bool
neighbourhoods_are_one(const struct texture_options *options)
{
    return texture_wants(options, TEXTURE_FAMILY_ngtdm) && texture_wants(options, TEXTURE_FAMILY_ngldm) &&
           options->ngtdm_distance == options->ngldm_distance;
}

struct texture_neighbours
neighbourhood_request(const struct feature_region *region, enum neighbourhood of)
{
    const struct texture_options *options = region->volume->options;
    const bool alike = of == NEIGHBOURHOOD_DEPENDENCES || neighbourhoods_are_one(options);

    return (struct texture_neighbours){
        .levels = {region->levels, region->level_of, region->volume->tables},
        .region = region->bits,
        .distance = of == NEIGHBOURHOOD_TONES ? options->ngtdm_distance : options->ngldm_distance,
        .alpha = alike ? options->ngldm_alpha : 0,
        .in_slice = aggregation_is_2d(options->aggregation),
        .per_slice = aggregation_per_slice(options->aggregation),
    };
}

size_t
neighbourhood_size(const struct feature_region *region, const struct texture_neighbours *request)
{
    return (request->per_slice ? (size_t)region->volume->slices : 1) * TEXTURE_NEIGHBOUR_KINDS *
           (size_t)region->levels * texture_neighbours_width(request);
}

/* Returns the counts of one of them, if it must be counted separately. */
static size_t
neighbourhood_own_size(const struct feature_region *region, enum neighbourhood of)
{
    const struct texture_options *options = region->volume->options;
    const struct texture_neighbours request = neighbourhood_request(region, of);
    const enum texture_family family = of == NEIGHBOURHOOD_TONES ? TEXTURE_FAMILY_ngtdm : TEXTURE_FAMILY_ngldm;

    if (!texture_wants(options, family) || (of == NEIGHBOURHOOD_DEPENDENCES && neighbourhoods_are_one(options)))
        return 0;
    return neighbourhood_size(region, &request);
}

int
neighbourhood_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    size_t size[NEIGHBOURHOODS], total = 0, at = 0;
    int rc;

    (void)set;
    for (int of = 0; of < NEIGHBOURHOODS; of++)
        total += size[of] = neighbourhood_own_size(region, (enum neighbourhood)of);
    rc = feature_counts_make(total, counts, error);
    for (int of = 0; of < NEIGHBOURHOODS && rc == 0; at += size[of++]) {
        const struct texture_neighbours request = neighbourhood_request(region, (enum neighbourhood)of);

        if (size[of] > 0 && region->wide)
            wide_neighbours(region, &request, *counts + at);
        else if (size[of] > 0)
            rc = texture_neighbours_run(region->volume->lane, &request, *counts + at, error);
    }
    return rc;
}

size_t
neighbourhood_bytes(const struct feature_region *largest, size_t set)
{
    const struct texture_neighbours request = neighbourhood_request(largest, NEIGHBOURHOOD_DEPENDENCES);
    size_t counts = 0;

    (void)set;
    for (int of = 0; of < NEIGHBOURHOODS; of++)
        counts += neighbourhood_own_size(largest, (enum neighbourhood)of);
    return counts * sizeof(uint64_t) +
           (size_t)largest->levels * texture_neighbours_width(&request) * sizeof(struct level_cell);
}

const uint64_t *
neighbourhood_counts(const struct feature_region *region, enum neighbourhood of, const uint64_t *counts)
{
    if (of == NEIGHBOURHOOD_TONES || neighbourhoods_are_one(region->volume->options))
        return counts;
    return counts + neighbourhood_own_size(region, NEIGHBOURHOOD_TONES);
}

void
neighbourhood_describe(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS])
{
    const enum dimension dimension = aggregation_dimension(options->aggregation);

    (void)set;
    feature_put_text(settings, FEATURE_aggregation, dimension_names[dimension]);
    feature_put_text(settings, FEATURE_aggregation_ibsi_code, dimension_codes[dimension]);
}

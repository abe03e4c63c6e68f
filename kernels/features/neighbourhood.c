/* neighbourhood.c - see neighbourhood.h. */
#include "kernels/features/neighbourhood.h"

struct texture_neighbours
neighbourhood_request(const struct feature_region *region)
{
    const enum aggregation aggregation = region->volume->options->aggregation;

    return (struct texture_neighbours){
        .levels = {region->levels, region->level_of, region->volume->tables},
        .region = region->bits,
        .in_slice = aggregation_is_2d(aggregation),
        .per_slice = aggregation_per_slice(aggregation),
    };
}

size_t
neighbourhood_size(const struct feature_region *region, const struct texture_neighbours *request)
{
    return (request->per_slice ? (size_t)region->volume->slices : 1) * TEXTURE_NEIGHBOUR_KINDS *
           (size_t)region->levels * texture_neighbours_width(request);
}

void
neighbourhood_describe(const struct texture_options *options, char settings[FEATURE_SETTINGS])
{
    const enum dimension dimension = aggregation_dimension(options->aggregation);

    feature_put_text(settings, FEATURE_aggregation, dimension_names[dimension]);
    feature_put_text(settings, FEATURE_aggregation_ibsi_code, dimension_codes[dimension]);
}

/* predict.c - predicts the time of a job; see pipeline.h. */
#include "service/pipeline/pipeline.h"

#include <math.h>

#define MOST_THREADS 16 /* do not count on more: jobs share the memory bandwidth */

/* Nanoseconds of one thread per voxel. */
enum {
    OF_VOLUME = 5,    /* contrast, measures, preview */
    OF_METHOD = 3,    /* level set, range, object */
    OF_FUZZY = 100,   /* maps of connectedness of noise */
    OF_START = 40,    /* the highest or the lowest mean over a box */
    OF_SEARCH = 60,   /* rays, distances and growth at many limits */
    OF_SMOOTH = 30,   /* a Gaussian filter */
    OF_STEP = 5,      /* components of noise */
    OF_TEXTURE = 300, /* all families that do not compare all pairs of voxels */
};

/* A segment with grid_mm counts as one of the images' voxels, because the size of its blocks is not known here. */
static double
predict_segment(const struct conf_segment *segment)
{
    static const unsigned searches = 1u << CONF_ENCLOSED | 1u << CONF_LEAK | 1u << CONF_SIDE;
    double rate = segment->method == CONF_FUZZY ? OF_FUZZY : searches >> segment->method & 1 ? OF_SEARCH : OF_METHOD;
    if (segment->automatic == CONF_AUTO_HIGHEST || segment->automatic == CONF_AUTO_LOWEST)
        rate += OF_START;
    if (segment->smooth_mm > 0)
        rate += OF_SMOOTH;
    return rate + OF_STEP * (double)segment->then_count;
}

double
predict_seconds(const struct conf_pipeline *pipeline, int64_t voxels, int threads)
{
    const int counted = threads < MOST_THREADS ? threads : MOST_THREADS;
    double rate = OF_VOLUME;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        rate += predict_segment(&pipeline->segments[i]);
    for (size_t i = 0; i < pipeline->texture_count; i++) {
        const struct texture_options *texture = &pipeline->texture[i];
        /* A finer grid may have any number of voxels. */
        const bool any_time = texture_wants(texture, TEXTURE_FAMILY_spatial_correlation) || texture->resample;
        rate += any_time ? INFINITY : OF_TEXTURE;
    }
    return rate * (double)voxels / 1e9 / counted;
}

/* predict.c - predicts the time of a job; see pipeline.h. */
#include "service/pipeline/pipeline.h"

#include "kernels/coarse/coarse.h"

#include <math.h>

#define MOST_THREADS 16 /* do not count on more: jobs share the memory bandwidth */

/* Nanoseconds of one thread per voxel. */
enum {
    OF_VOLUME = 5,    /* contrast, measures, preview; means of blocks */
    OF_METHOD = 3,    /* level set, range, object */
    OF_FUZZY = 100,   /* maps of connectedness of noise */
    OF_START = 40,    /* the highest or the lowest mean over a box */
    OF_SEARCH = 60,   /* rays, distances and growth at many limits */
    OF_SMOOTH = 30,   /* a Gaussian filter */
    OF_STEP = 5,      /* components of noise */
    OF_FILTER = 200,  /* an image filter */
    OF_TEXTURE = 300, /* all families that do not compare all pairs of voxels */
};

void
predict_add(const struct conf_pipeline *pipeline, const struct dicom_instance *instance, struct predict_size *size)
{
    const struct image_extent extent = {instance->columns, instance->rows, instance->frame_count};
    const struct dicom_frame *frame = instance->frame_count > 0 ? &instance->frames[0] : NULL;
    struct coarse_grid grid;
    double mm = 0;
    if (!frame || extent.columns < 1 || extent.rows < 1)
        return;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        mm = pipeline->segments[i].grid_mm > 0 ? pipeline->segments[i].grid_mm : mm;
    const double apart = frame->spacing_between_slices > 0 ? frame->spacing_between_slices : frame->slice_thickness;
    const double spacing[3] = {frame->has_spacing ? frame->pixel_spacing[1] : mm,
                               frame->has_spacing ? frame->pixel_spacing[0] : mm, apart > 0 ? apart : mm};
    size->voxels += extent.columns * extent.rows * extent.slices;
    if (mm > 0) {
        coarse_grid_find(extent, spacing, mm, &grid);
        size->blocks += (double)(grid.extent.columns * grid.extent.rows * extent.slices) / (double)grid.factor[2];
    }
}

static double
predict_segment(const struct conf_segment *segment)
{
    static const unsigned searches = 1u << CONF_ENCLOSED | 1u << CONF_LEAK | 1u << CONF_SIDE;
    double rate = segment->method == CONF_FUZZY ? OF_FUZZY : searches >> segment->method & 1 ? OF_SEARCH : OF_METHOD;
    if (segment->automatic == CONF_AUTO_HIGHEST || segment->automatic == CONF_AUTO_LOWEST)
        rate += OF_START;
    if (segment->smooth_mm > 0)
        rate += OF_SMOOTH;
    if (segment->quantities)
        rate += OF_TEXTURE;
    return rate + OF_STEP * (double)segment->then_count;
}

double
predict_seconds(const struct conf_pipeline *pipeline, const struct predict_size *size, int threads)
{
    const int counted = threads < MOST_THREADS ? threads : MOST_THREADS;
    double rate = OF_VOLUME, of_blocks = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        *(pipeline->segments[i].grid_mm > 0 ? &of_blocks : &rate) += predict_segment(&pipeline->segments[i]);
    for (size_t i = 0; i < pipeline->texture_count; i++) {
        const struct texture_options *texture = &pipeline->texture[i];
        /* A finer grid may have any number of voxels. */
        const bool any_time =
            texture_wants(texture, TEXTURE_FAMILY_spatial_correlation) || texture->resample || texture->voxelwise;
        rate += any_time ? INFINITY : texture->filter ? OF_TEXTURE + OF_FILTER : OF_TEXTURE;
    }
    return (rate * (double)size->voxels + of_blocks * size->blocks) / 1e9 / counted;
}

/*
 * expectations.h - measures the segments of a job, and checks the expectations (`expect`) of its pipeline.
 *
 * Everything is exact: voxels are counted, values are summed as stored integers, one sum a plane,
 * and a real-world number is made of these in double precision, planes ascending. Bounds are
 * inclusive. Pure: it reads what it is given, by several threads; any thread.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_EXPECTATIONS_H
#define NOCTULE_SERVICE_PIPELINE_EXPECTATIONS_H

#include "base/error.h"
#include "base/image.h"
#include "config/config.h"

/* Voxels of a slice; along columns (0) and rows (1). */
struct expect_window {
    int64_t first[2], last[2];
};

/* The place of a volume in patient coordinates (LPS), mm. */
struct expect_frame {
    double origin[3];        /* centre of voxel (0, 0, 0) */
    double axes[9];          /* unit vectors of x, y, z */
    const double *positions; /* of each slice along z, from the first one; borrowed */
};

/* Measured of a segment, on the volume that the job computed on. */
struct segment_measures {
    double mean, minimum, maximum; /* real-world values; NAN if there is no voxel */
    int64_t first[3], last[3];     /* voxels of the box, from 0; last < first if there is none */
    int64_t slices;                /* that have voxels */
    double centroid[3];            /* patient coordinates (LPS), mm; NAN if not known */
};

extern const struct segment_measures segment_measures_none;

/* What the masks are of; all is borrowed. */
struct expect_volume {
    struct image_extent extent;
    double spacing[3]; /* between voxel centres along x, y, z, mm */
    const void *voxels;
    enum image_pixel pixel;
    const struct image_rescale *rescale; /* one a slice */
    const struct image_range *padding;   /* likewise; none where lo > hi */
    const char *unit;                    /* of its values, for people: " HU"; "" */
    /* Of each slice: what touches their edges, or lies beyond, is cut by the images'. NULL: the volume's own. */
    const struct expect_window *windows;
    const char *ucum;                 /* the same, "" where the images do not say */
    double slice_mm;                  /* of the images: their thickness or distance; 0: not known */
    bool contrast;                    /* one of the images names an agent */
    int threads;                      /* that look, the caller's among them */
    const struct expect_frame *frame; /* NULL: not known */
};

/* One expectation that is broken. */
struct expect_breach {
    size_t segment;          /* of the pipeline, from 0 */
    const char *expectation; /* the option's name; static */
    double found;            /* of touches: how many faces it touches and may not; 0: empty */
    bool bounded;            /* there are bounds, and `found` was measured */
    double allowed[2];
    char text[256]; /* "Brain: volume 2163.2 ml, expected 900 to 1900 ml" */
};

struct expect_breaches {
    struct expect_breach *at; /* expect_clear */
    size_t count;
    bool unvalidated; /* one is that a segment is not validated for use without REVIEW */
};

/*
 * Measures each segment and lists all broken expectations, segments in the pipeline's order and the
 * options of each in theirs. `masks` and `measures`: one per segment. A segment in which nothing was
 * found breaks whatever is expected of it, once. Returns 0, or -ENOMEM: OUT_OF_MEMORY.
 */
int expect_check(const struct conf_pipeline *pipeline, const struct expect_volume *volume,
                 const struct image_mask *masks, struct segment_measures *measures,
                 struct expect_breaches *breaches, struct error *error);
void expect_clear(struct expect_breaches *breaches);

/* All of them in words; where there is no more room it says how many are left out. */
void expect_tell(const struct expect_breaches *breaches, char *text, size_t size);

#endif

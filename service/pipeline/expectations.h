/*
 * expectations.h - measures the segments of a job, and checks the expectations (`expect`) of its
 * pipeline.
 *
 * All results are exact: voxels are counted and values are summed as stored integers, one sum per
 * plane. Real-world numbers are computed from these in double precision, planes ascending. Bounds
 * are inclusive. Uses several threads and only its arguments; thread-safe.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_EXPECTATIONS_H
#define NOCTULE_SERVICE_PIPELINE_EXPECTATIONS_H

#include "base/error.h"
#include "base/image.h"
#include "config/config.h"
#include "kernels/kernels.h"
#include "service/common/trust.h"

/* Voxels of a slice; along columns (0) and rows (1). */
struct expect_window {
    int64_t first[2], last[2];
};

/* The position of a volume in patient coordinates (LPS), mm. */
struct expect_frame {
    double origin[3];        /* centre of voxel (0, 0, 0) */
    double axes[9];          /* unit vectors of x, y, z */
    const double *positions; /* of each slice along z, from the first one; borrowed */
};

/* The measures of a segment, on the working grid. */
struct segment_measures {
    double mean, minimum, maximum; /* real-world values; NAN if there is no voxel */
    int64_t first[3], last[3];     /* voxels of the box, from 0; last < first: no voxel */
    int64_t slices;                /* number with voxels */
    double centroid[3];            /* patient coordinates (LPS), mm; NAN if not known */
    double noise;                  /* HU, if `expect` has a limit for it; NAN: not measured */
};

extern const struct segment_measures segment_measures_none;

/* A volume, its masks, and the lane that has both; all is borrowed. */
struct expect_volume {
    const struct image_mask *masks; /* one per segment of the pipeline; bits: NULL if there is none on this volume */
    struct kernels_lane *lane;      /* for checks with a demand; its volume is complete */
    size_t spare;                   /* the first of its masks that no segment uses */
    struct image_extent extent;
    double spacing[3]; /* between voxel centres along x, y, z, mm */
    const void *voxels;
    enum image_pixel pixel;
    const struct image_rescale *rescale; /* per slice */
    const struct image_range *padding;   /* per slice; unset where lo > hi */
    const struct expect_volume *finer;   /* the volume whose blocks are its voxels; NULL: none; set by expect_check() */
    const char *unit;                    /* of its values, for people: " HU"; "" */
    /*
     * Per slice: a mask that touches or crosses these edges is cut off by the images. NULL: the
     * edges of the volume.
     */
    const struct expect_window *windows;
    const char *ucum;                 /* the same; "" if the images do not state it */
    double slice_mm;                  /* slice thickness or distance of the images; 0: not known */
    bool contrast;                    /* an image names a contrast agent */
    bool counts;                      /* one slice; the lane counts histograms of its values (KERNELS_HISTOGRAM) */
    int threads;                      /* threads to use, including the caller */
    const struct expect_frame *frame; /* NULL: not known */
    struct trust_images images;       /* without slice_mm and noise */
    const char *doubt;                /* an implausible header value of the unit; "" or NULL: none */
    const char *validated;            /* ranges that the site has validated (trust.h); NULL: none */
};

/* One expectation that is broken. */
struct expect_breach {
    size_t segment;          /* of the pipeline, from 0 */
    const char *expectation; /* the option's name; static */
    /* for touches: number of faces that it must not touch but does; 0: empty */
    double found;
    bool bounded; /* there are bounds, and `found` was measured */
    double allowed[2];
    char text[256]; /* "Brain: volume 2163.2 ml, expected 900 to 1900 ml" */
};

struct expect_breaches {
    struct expect_breach *at; /* free with expect_clear() */
    size_t count;
    bool untrusted; /* the site has not validated the pipeline for these images */
};

/* The demand of the checks of a segment on the lane of its volume. */
struct expect_demand {
    size_t masks;     /* spare masks */
    double reach_mm;  /* the largest ball; 0: no balls */
    double smooth_mm; /* the largest Gaussian filter; 0: none */
};

/* `spacing`: of the grid of the segment, along x, y, z, mm. */
struct expect_demand expect_demand_of(const struct conf_segment *segment, const double spacing[3]);

/*
 * Measures each segment and lists all broken expectations, in the order of the pipeline's segments
 * and of the checks; `trust` is the last, once per job. Segments with grid_mm are checked on `coarse` (NULL: there is none), and
 * measured on `volume`, or on `coarse` if they have no mask there. `measures`: one per segment. An
 * empty segment breaks its expectations once. Returns 0, -ENOMEM with OUT_OF_MEMORY, or errors of the lane.
 */
int expect_check(const struct conf_pipeline *pipeline, const struct expect_volume *volume,
                 const struct expect_volume *coarse, struct segment_measures *measures,
                 struct expect_breaches *breaches, struct error *error);
void expect_clear(struct expect_breaches *breaches);

/* Writes all breaches as text; if there is no room, ends with the number of those left out. */
void expect_tell(const struct expect_breaches *breaches, char *text, size_t size);

#endif

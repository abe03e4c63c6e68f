/*
 * expect.h - is what was found plausible? What a pipeline's segments are expected to be like
 * (`expect`), and which of it is not so.
 *
 * Everything is exact: voxels are counted, values are summed as stored integers, one sum a plane,
 * and a real-world number is made of these in double precision, planes ascending. Bounds are
 * inclusive. Pure: it reads what it is given, by several threads; any thread.
 */
#ifndef NOCTULE_EXPECT_H
#define NOCTULE_EXPECT_H

#include "base/error.h"
#include "base/image.h"
#include "config/config.h"

/* Voxels of a slice; along columns (0) and rows (1). */
struct expect_window {
    int64_t first[2], last[2];
};

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
    const char *ucum; /* the same, "" where the images do not say */
    double slice_mm;  /* of the images: their thickness or distance; 0: not known */
    bool contrast;    /* one of the images names an agent */
    int threads;      /* that look, the caller's among them */
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
};

/*
 * All that is broken, segments in the pipeline's order and the options of each in theirs. `masks`:
 * one a segment. A segment in which nothing was found breaks whatever is expected of it, once. 0, or
 * -ENOMEM: OUT_OF_MEMORY.
 */
int expect_check(const struct conf_pipeline *pipeline, const struct expect_volume *volume,
                 const struct image_mask *masks, struct expect_breaches *breaches,
                 struct error *error);
void expect_clear(struct expect_breaches *breaches);

/* All of them in words; where there is no more room it says how many are left out. */
void expect_tell(const struct expect_breaches *breaches, char *text, size_t size);

#endif

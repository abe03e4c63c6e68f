/*
 * look.h - the checks of `expect`, private to service/pipeline/expect*. Each check compares one
 * option of a segment that has voxels, and adds a breach if the limit is broken. A check that can
 * fail returns 0 or -errno with look->error filled.
 *
 * Checks with the patient's axes add a breach if the axes are not known, or oblique.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_EXPECT_LOOK_H
#define NOCTULE_SERVICE_PIPELINE_EXPECT_LOOK_H

#include "kernels/mask/mask.h"
#include "service/pipeline/expectation_facts.h"

struct expect_look {
    const struct conf_pipeline *pipeline;
    const struct expect_volume *volume; /* of the segment */
    struct expect_breaches *breaches;   /* there is room */
    size_t segment;                     /* from 0 */
    struct error *error;
};

/* Axes of the patient. */
enum expect_axis { EXPECT_LEFT, EXPECT_BACK, EXPECT_HEAD };

/* Relation of the axes: patient axis p runs along grid axis along[p], or against it. */
struct expect_axes {
    int along[3];
    bool reversed[3];
};

void look_add(const struct expect_look *look, const struct expect_breach *breach, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Compares a number with its bounds. `before` and `behind`: text around the found number and the
 * bounds. The number has six digits, or all if six would look like a value within the bounds.
 */
void look_compare(const struct expect_look *look, const char *expectation, const double bounds[2], double found,
                  const char *before, const char *behind);

/* Fills a breach with a number that is outside its bounds. */
struct expect_breach look_breach(const char *expectation, double found, double low, double high);

/* Text of a number that is outside of its bounds, times `scale`, with `digits` digits, or more if it
 * would look like a value within the bounds. */
#define LOOK_NUMBER 32
const char *look_number(const struct expect_breach *breach, double scale, int digits, char text[LOOK_NUMBER]);

/* Writes a label as it reads within text: "the bone" for "Bone". */
#define LOOK_NAME 72
const char *look_name(const char *label, char text[LOOK_NAME]);

/* Returns the mask of another segment. */
const struct image_mask *look_mask(const struct expect_look *look, const char *label);

/* Finds the axes, or adds a breach and returns false. NULL: adds none. */
bool look_axes(const struct expect_look *look, const char *expectation, struct expect_axes *axes);

/* Makes a spare mask of the lane, which has the bits. Returns 0 or -errno. */
int look_make(const struct expect_look *look, size_t spare, const struct kernels_mask_request *request,
              struct image_mask *mask);

/* look_shape.c: box, faces, mirror image, parts. */
void look_at_extent(const struct expect_look *look, const struct segment_measures *measures,
                    const struct conf_extent_mm *extent);
void look_at_face_area(const struct expect_look *look, const struct expect_facts *facts,
                       const struct conf_face_cm2 *faces);
void look_at_mirror(const struct expect_look *look, const struct expect_facts *facts,
                    const struct segment_measures *measures, double share);
int look_at_slice_parts(const struct expect_look *look, const struct segment_measures *measures, double limit);
void look_at_dropped(const struct expect_look *look, const struct conf_dropped *dropped);

/* look_profile.c: areas along the body. */
int look_at_jump(const struct expect_look *look, const struct conf_jump *jump);
int look_at_ends(const struct expect_look *look, double most);
int look_at_beside(const struct expect_look *look, const struct conf_beside *beside);

/* look_outline.c: the neighbourhood of the outline. */
#define LOOK_OUTLINE_STEPS 1.01 /* thickness of the outermost voxels, rows */
int look_at_near(const struct expect_look *look, const struct segment_measures *measures, const struct conf_near *near);
int look_at_solidity(const struct expect_look *look, const struct conf_solidity *solidity);

/* look_values.c: the scale and the noise of the images, of a segment that is the body. */
#define LOOK_AIR_MM      6.0 /* distance of air from the body */
#define LOOK_SMOOTH_MM   3.0 /* standard deviation of the filter for soft tissue */
#define LOOK_NOISE_STEPS 1.5 /* distance of soft tissue from other values, rows */
int look_at_values(const struct expect_look *look, const struct conf_expect *expect, double *noise);

#endif

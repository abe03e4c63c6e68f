/*
 * trust.h - the ranges of images that a site has validated a pipeline for (`noctule validate`), and the check of a job
 * against them.
 *
 * Ranges are a text of one line per range: Manufacturer, Manufacturer's Model Name, Convolution Kernel, thickness
 * (trust_thickness), and the lowest and the highest noise in HU, separated by tabs. The two noises are "" if the pipeline
 * does not measure noise.
 */
#ifndef NOCTULE_SERVICE_COMMON_TRUST_H
#define NOCTULE_SERVICE_COMMON_TRUST_H

#include "config/config.h"

#define TRUST_WHY    256
#define TRUST_DIGEST 65

/* The images of a job. */
struct trust_images {
    const char *manufacturer, *model, *kernel; /* "" if the images do not state it */
    double slice_mm;                           /* slice thickness or distance, the larger */
    double noise;                              /* HU; NAN: not measured */
};

/* Returns the class of a slice thickness: "up to 1.25 mm", "1.25 to 2.5 mm", "2.5 to 5 mm" or "above 5 mm". */
const char *trust_thickness(double slice_mm);

/*
 * Returns whether the images lie within a range; otherwise fills the reason. `ranges` NULL or "": no range is validated.
 * Noise may be lower than that of the range, but not higher.
 */
bool trust_covers(const char *ranges, const struct trust_images *images, char why[TRUST_WHY]);

/*
 * Fills the SHA-256 of the version of Noctule without its last number and of the options that decide masks and checks. A
 * validation is valid for results with an equal digest. Returns 0 or -ENOMEM.
 */
int trust_digest(const struct conf_pipeline *pipeline, char digest[TRUST_DIGEST]);

#endif

/*
 * image_type.h - the image types of pyradiomics 3.0.1 as responses of a whole volume, in double precision.
 *
 * Responses are those that pyradiomics computes by NumPy, SimpleITK, PyWavelets, scikit-image and SciPy. All backends
 * agree bit for bit: sums have one order, and products and sums round separately, except for LBP3D.
 *
 * - Square, square root, logarithm, exponential: of the largest absolute value m of the volume. (x / sqrt(m))^2;
 *   sign(x) sqrt(|x| m); sign(x) log(|x| + 1) m / log(m + 1); exp(x log(m) / m).
 *
 * - Gradient: the norm of central differences, with the outermost voxels repeated, rounded to 32 bits (SimpleITK).
 *
 * - LoG: SimpleITK's LaplacianRecursiveGaussian, normalised across scale. Recursive filters (Deriche) along columns, rows
 *   and slices: the second derivative along one axis first, then the Gaussian along the others, summed over all axes. The
 *   result of each pass is rounded to 32 bits, as SimpleITK stores it. A volume of fewer than 4, or of at most
 *   sigma / spacing, voxels along an axis has no response (NAN): pyradiomics leaves it out.
 *
 * - Wavelet: PyWavelets' undecimated transform. Sides of an odd number get one more voxel, which repeats the first one;
 *   the volume then repeats itself. Each further level transforms the low-pass response again. Columns are filtered first,
 *   then rows, then slices. Tap t of the filter of n taps is at place i + n / 2 - t. Products are added to 0 by rising t.
 *   Taps that are beyond the last voxel come first, by falling t. Bands of one transform are computed together.
 *
 * - LBP2D: scikit-image's local_binary_pattern per slice. Samples are interpolated linearly, and 0 beyond the slice.
 *
 * - LBP3D: samples at the 42 vertices of an icosphere by cubic splines, 0 beyond the volume; bits of those that are at
 *   least the voxel's value; per degree n of spherical harmonics, the norm over all vertices v of
 *   sum over u of bit(u) (2 n + 1) / (4 pi) P_n(w(u) . w'(v)). w is the direction that pyradiomics gives a vertex, with
 *   azimuth and polar angle exchanged, and w' has another sign of its second component. Or: the excess kurtosis of the samples.
 *
 * Shapes, threads, errors: as in kernels.h; -EINVAL without a demand for this image type, or for impossible options.
 */
#ifndef NOCTULE_KERNELS_FILTER_IMAGE_TYPE_H
#define NOCTULE_KERNELS_FILTER_IMAGE_TYPE_H

#include "base/filter_options.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { IMAGE_TYPE_BANDS = 8 };

/* The demand of the operation KERNELS_IMAGE_TYPE. */
struct image_type_demand {
    struct filter_options options;
    uint8_t bands;     /* of a wavelet: bit high[0] + 2 high[1] + 4 high[2] of each; 0: the band of the options */
    double spacing[3]; /* mm along columns, rows, slices */
    bool reversed;     /* the first slice of the image is the last one here */
    bool whole;        /* LBP3D: samples are rounded to whole numbers, ... */
    bool is_unsigned;  /* ... and not below 0 */
    int64_t first[3], size[3]; /* the box of the responses; without size: the volume */
};

/* The lane's volume is a part of a volume of `sides`, and begins at voxel `at` of it. */
struct image_type_request {
    const double *values; /* x fastest, tightly packed */
    double none;          /* the value of NAN */
    double peak;          /* the largest absolute value, if the lane's volume is a part; 0: that of the lane's volume */
    int64_t sides[3], at[3];
};

/* Computes the responses. Sets responses[i] to those of band i of the demand, by rising bit, or responses[0] to those of another
 * image type: the values of the box, x fastest, in memory of the lane that is valid until its next run of an operation. */
int image_type_run(struct kernels_lane *lane, const struct image_type_request *request,
                   const double *responses[IMAGE_TYPE_BANDS], struct error *error);

/* Returns the bands of a demand, and how many responses it has. */
uint8_t image_type_bands(const struct image_type_demand *demand);
int image_type_count(const struct image_type_demand *demand);

/* Returns whether responses depend on the largest absolute value of the volume. */
static inline bool
image_type_has_peak(enum filter_kind kind)
{
    return kind >= FILTER_PYRADIOMICS_SQUARE && kind <= FILTER_PYRADIOMICS_EXPONENTIAL;
}

/* Finds how many voxels from a voxel the responses depend on, besides the largest absolute value; INT32_MAX: on any voxel of
 * the volume. */
void image_type_reach(const struct image_type_demand *demand, int32_t reach[3]);

/* Returns an upper limit of responses to values up to a limit. */
double image_type_bound(const struct image_type_demand *demand, double limit);

#ifdef __cplusplus
}
#endif
#endif

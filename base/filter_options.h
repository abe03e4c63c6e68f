/*
 * filter_options.h - the parameters of an image filter (IBSI 2, arXiv:2006.05470) or image type of pyradiomics. The configuration fills them, and
 * kernels/filter/ computes the responses. All threads may use all of it; strings are constant.
 */
#ifndef NOCTULE_BASE_FILTER_OPTIONS_H
#define NOCTULE_BASE_FILTER_OPTIONS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum filter_kind {

#define FILTER(id, ...) FILTER_##id,
#include "base/terms.def"
    FILTER_KINDS,
};

/* The values beyond the volume. "dcba|abcd|dcba" is the mirror: the first voxel repeats. */
enum filter_boundary { FILTER_ZERO, FILTER_NEAREST, FILTER_PERIODIC, FILTER_MIRROR, FILTER_BOUNDARIES };

/* The orientations of a filter: one, or all right-angle rotations (4 in a slice, 24 in space), whose responses are
 * pooled per voxel. */
enum filter_pooling { FILTER_ONE, FILTER_MAX, FILTER_MEAN_OF, FILTER_MIN, FILTER_POOLINGS };

enum filter_laws { LAWS_L5, LAWS_E5, LAWS_S5, LAWS_W5, LAWS_R5, LAWS_L3, LAWS_E3, LAWS_S3, LAWS_KERNELS };

enum filter_wavelet {

#define WAVELET(id, ...) WAVELET_##id,
#include "base/wavelets.def"
    WAVELETS,
};

/* Codes of a local binary pattern: the bits themselves, the least rotation of them, or the number of 1 in uniform ones. */
enum filter_lbp { LBP_DEFAULT, LBP_ROR, LBP_UNIFORM, LBP_METHODS };

/* Images of LBP3D: the norm per degree of spherical harmonics from 0 on, and the kurtosis of the samples. */
enum filter_harmonic { LBP_M1, LBP_M2, LBP_M3, LBP_M4, LBP_K, LBP_HARMONICS };

#define FILTER_MAX_SIZE   63 /* voxels of a mean's side */
#define FILTER_MAX_LEVEL  4
#define FILTER_MAX_ANGLES 64 /* of a turn */
#define FILTER_MAX_ORDER  8  /* of a Riesz transform */
#define FILTER_MAX_STEPS  8  /* transforms of pyradiomics-wavelet before the level */
#define FILTER_MAX_AROUND 1024
#define FILTER_MAX_POINTS 24 /* of pyradiomics-lbp-2d */

/* Numbers of other kinds are ignored. */
struct filter_options {
    enum filter_kind kind;
    char *kernels; /* of the configuration: "L5E5E5", "LLH" or "020", see filter_parse() */
    bool in_slice; /* 2-D: along columns and rows only */
    enum filter_boundary boundary;
    enum filter_pooling pooling; /* of Laws, wavelets, Gabor, Riesz */
    int size;                    /* mean: voxels along each axis, odd */
    double sigma_mm;             /* LoG, Gabor, Riesz-transformed LoG */
    /* Laws: one kernel each along columns, rows, slices; and the side of the cube or square whose mean absolute
     * response is the result, odd; 0: the response itself. */
    enum filter_laws laws[3];
    int energy;
    enum filter_wavelet wavelet;
    bool high[3]; /* wavelet: high-pass along columns, rows, slices; otherwise low-pass */
    int level;    /* wavelet, Simoncelli: decomposition level, from 1 */
    /* Gabor: the ratio of the axes, wavelength, and the angle, or the step of all angles of a turn with pooling. In
     * space the planes of all three pairs of axes are averaged. */
    double gamma, lambda_mm, theta_degrees;
    int riesz[3]; /* orders along columns, rows, slices */
    /* Image types of pyradiomics. `around`: only the regions' box and as many voxels around it are filtered; -1: the
     * volume. */
    int around;
    int start_level;  /* wavelet: transforms before level 1 */
    bool use_spacing; /* gradient: per mm, otherwise per voxel */
    double radius;    /* LBP: distance of samples in voxels */
    int points;       /* LBP2D: samples */
    enum filter_lbp method;
    enum filter_harmonic harmonic;
};

/* Returns whether a filter is an image type of pyradiomics. */
static inline bool
filter_is_image_type(enum filter_kind kind)
{
    return kind >= FILTER_PYRADIOMICS_SQUARE && kind < FILTER_KINDS;
}

/* Sets `laws`, `high` or `riesz` from `kernels`. Returns false if it does not name a kernel for each axis; true for other kinds. */
bool filter_parse(struct filter_options *options);

/* Writes the settings of a filter: "3d mirror sigma_mm 1.5". */
#define FILTER_TEXT 192
void filter_describe(const struct filter_options *options, char text[FILTER_TEXT]);

/* Returns whether two filters give the same responses. */
bool filter_same(const struct filter_options *a, const struct filter_options *b);

/* Writes the name of an image type in pyradiomics: "wavelet-HLL"; NULL: "original". Returns false for other filters. */
bool filter_image_name(const struct filter_options *options, char text[FILTER_TEXT]);

/* Names in records and in the configuration: "log", "mirror", "L5", "db3". Each array ends with NULL. */
extern const char *const filter_kind_names[FILTER_KINDS + 1];
extern const char *const filter_boundary_names[FILTER_BOUNDARIES + 1];
extern const char *const filter_pooling_names[FILTER_POOLINGS + 1];
extern const char *const filter_lbp_names[LBP_METHODS + 1];
extern const char *const filter_harmonic_names[LBP_HARMONICS + 1];
extern const char *const filter_laws_names[LAWS_KERNELS + 1];
extern const char *const filter_wavelet_names[WAVELETS + 1];

#ifdef __cplusplus
}
#endif
#endif

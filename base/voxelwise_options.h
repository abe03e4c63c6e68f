/*
 * voxelwise_options.h - options of maps of features: of the window around each voxel of a region (voxelwise.def). The
 * configuration fills them, and the kernels use them. Strings are constant. Threads: any.
 */
#ifndef NOCTULE_BASE_VOXELWISE_OPTIONS_H
#define NOCTULE_BASE_VOXELWISE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VOXELWISE_MAX_RADIUS = 5,
    VOXELWISE_MAX_LEVELS = 256,
};

enum voxelwise_family {
    VOXELWISE_FAMILY_first_order,
    VOXELWISE_FAMILY_glcm,
    VOXELWISE_FAMILY_glrlm,
    VOXELWISE_FAMILY_glszm,
    VOXELWISE_FAMILY_ngldm,
    VOXELWISE_FAMILY_ngtdm,
    VOXELWISE_FAMILIES,
};

/* Features of a family, from 0: VOXELWISE_glcm_CONTRAST. */
#define VOXELWISE_first_order(id, ...) VOXELWISE_first_order_##id,

enum {

#include "base/voxelwise.def"
    VOXELWISE_first_order_COUNT,
};
#define VOXELWISE_glcm(id, ...) VOXELWISE_glcm_##id,

enum {

#include "base/voxelwise.def"
    VOXELWISE_glcm_COUNT,
};
#define VOXELWISE_glrlm(id, ...) VOXELWISE_glrlm_##id,

enum {

#include "base/voxelwise.def"
    VOXELWISE_glrlm_COUNT,
};
#define VOXELWISE_glszm(id, ...) VOXELWISE_glszm_##id,

enum {

#include "base/voxelwise.def"
    VOXELWISE_glszm_COUNT,
};
#define VOXELWISE_ngldm(id, ...) VOXELWISE_ngldm_##id,

enum {

#include "base/voxelwise.def"
    VOXELWISE_ngldm_COUNT,
};
#define VOXELWISE_ngtdm(id, ...) VOXELWISE_ngtdm_##id,

enum {

#include "base/voxelwise.def"
    VOXELWISE_ngtdm_COUNT,
};

/* All features, in the order of results. */
enum {

#define VOXELWISE(family, id, ...) VOXELWISE_OF_##family##_##id,
#include "base/voxelwise.def"
    VOXELWISE_FEATURES,
};

struct voxelwise_row {
    enum voxelwise_family family;
    int feature;             /* within the family */
    const char *home, *name; /* of its definition: "intensity-histogram", "entropy" */
    const char *pyradiomics; /* "Entropy" */
};

extern const struct voxelwise_row voxelwise_rows[VOXELWISE_FEATURES];

struct voxelwise_options {
    unsigned files;                        /* 1 << enum texture_response, or-ed */
    int radius;                            /* of the window, in voxels along each axis */
    bool masked;                           /* only voxels of the region count */
    unsigned features[VOXELWISE_FAMILIES]; /* 1 << feature, or-ed; the bit after the last feature stands for all */
};

/* Returns whether a row of voxelwise_rows is wanted. */
bool voxelwise_wants(const struct voxelwise_options *options, int row);

/* Returns the number of wanted features. */
int voxelwise_count(const struct voxelwise_options *options);

/* Names of the features of each family, then "all", NULL. */
extern const char *const voxelwise_first_order_names[],
    *const voxelwise_glcm_names[], *const voxelwise_glrlm_names[], *const voxelwise_glszm_names[],
                                                                       *const voxelwise_ngldm_names[],
                                                                           *const voxelwise_ngtdm_names[];

#ifdef __cplusplus
}
#endif
#endif

/* ngtdm.h - neighbourhood grey tone difference (IBSI 3.10): differences of voxels from the mean of
 * their neighbours. Voxels without neighbours do not count. */
#ifndef NOCTULE_KERNELS_FEATURES_MATRICES_NGTDM_H
#define NOCTULE_KERNELS_FEATURES_MATRICES_NGTDM_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ngtdm_feature {
    NGTDM_COARSENESS, /* QCDE; 10^6 if all voxels are equal, as in IBSI */
    NGTDM_CONTRAST,   /* 65HE; 0 for one level */
    NGTDM_BUSYNESS,   /* NQ30; 0 for one level */
    NGTDM_COMPLEXITY, /* HDEZ */
    NGTDM_STRENGTH,   /* 1X9X; 0 if all voxels are equal */
    NGTDM_FEATURES,
};

#ifdef __cplusplus
}
#endif
#endif

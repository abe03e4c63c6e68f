/*
 * ngtdm.h - neighbourhood grey tone difference (IBSI 3.10): how far voxels are from the mean of their
 * neighbours. Voxels without a neighbour take no part.
 */
#ifndef NOCTULE_NGTDM_H
#define NOCTULE_NGTDM_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ngtdm_feature {
    NGTDM_COARSENESS, /* QCDE; 10^6 where no voxel differs, as IBSI has it */
    NGTDM_CONTRAST,   /* 65HE; 0 for one level */
    NGTDM_BUSYNESS,   /* NQ30; 0 for one level */
    NGTDM_COMPLEXITY, /* HDEZ */
    NGTDM_STRENGTH,   /* 1X9X; 0 where no voxel differs */
    NGTDM_FEATURES,
};

#ifdef __cplusplus
}
#endif
#endif

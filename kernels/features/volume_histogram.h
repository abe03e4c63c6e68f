/*
 * volume_histogram.h - the intensity-volume histogram of a region (IBSI 3.5): the volume fraction
 * with at least some intensity, and the inverse. It has its own discretisation (struct
 * volume_histogram_options).
 *
 * Fractions of intensity are relative to the ends of the re-segmentation range. If an end is open
 * or there is no range, the region's extremes replace it. Without a discretisation, intensities are
 * in steps of the rescale slope, which all slices must share.
 */
#ifndef NOCTULE_KERNELS_FEATURES_VOLUME_HISTOGRAM_H
#define NOCTULE_KERNELS_FEATURES_VOLUME_HISTOGRAM_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum volume_histogram_feature {
    VOLUME_HISTOGRAM_VOLUME_10,            /* BC2M: the volume fraction at 10 % of intensity */
    VOLUME_HISTOGRAM_VOLUME_90,            /* BC2M */
    VOLUME_HISTOGRAM_INTENSITY_10,         /* GBPN: the intensity at 10 % of volume */
    VOLUME_HISTOGRAM_INTENSITY_90,         /* GBPN */
    VOLUME_HISTOGRAM_VOLUME_DIFFERENCE,    /* DDTU */
    VOLUME_HISTOGRAM_INTENSITY_DIFFERENCE, /* CNV2 */
    VOLUME_HISTOGRAM_FEATURES,
};

#ifdef __cplusplus
}
#endif
#endif

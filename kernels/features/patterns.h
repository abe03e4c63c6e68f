/* patterns.h - local patterns (texture.h) by a pipeline's options: histograms of the regions, and
 * maps, from one run. */
#ifndef NOCTULE_KERNELS_FEATURES_PATTERNS_H
#define NOCTULE_KERNELS_FEATURES_PATTERNS_H

#include "kernels/features/family.h"
#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the request for a lane, without regions, histograms and maps. */
struct texture_patterns patterns_request(const struct texture_options *options);

#ifdef __cplusplus
}
#endif
#endif

/*
 * patterns.h - local patterns (texture.h) as a pipeline's options ask for them: histograms of the
 * regions, and maps, all of one run.
 */
#ifndef NOCTULE_FEATURE_PATTERNS_H
#define NOCTULE_FEATURE_PATTERNS_H

#include "kernels/features/family.h"
#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The run that is asked of a lane, without regions, histograms and maps. */
struct texture_patterns patterns_request(const struct texture_options *options);

#ifdef __cplusplus
}
#endif
#endif

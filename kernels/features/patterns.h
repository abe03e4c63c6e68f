/*
 * patterns.h - local patterns (texture.h) as a pipeline's options ask for them.
 */
#ifndef NOCTULE_FEATURE_PATTERNS_H
#define NOCTULE_FEATURE_PATTERNS_H

#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PATTERN_SETTINGS 32

bool pattern_wanted(const struct texture_options *options, enum texture_pattern pattern);
size_t patterns_wanted(const struct texture_options *options); /* how many */

/* What sets it apart: "", "threshold=0.9,strict", "integer". */
void pattern_settings(const struct texture_options *options, enum texture_pattern pattern,
                      char text[PATTERN_SETTINGS]);

/* The run that is asked of a lane, without regions, histograms and maps. */
struct texture_patterns patterns_request(const struct texture_options *options);

#ifdef __cplusplus
}
#endif
#endif

/*
 * sr_terms.h - how reports say in codes what was measured, with which settings, in which unit, and
 * why there is no number: the one place for it.
 *
 * Codes are IBSI's (reference manual, arXiv:1612.07003) where it has them, SNOMED's for the
 * standard deviation, and ours for the rest. Settings of a number are modifiers (name = value),
 * parameters (name = number) or words:
 *
 *   5QB6, IBSI  Feature aggregation       BTW3, SUJT, JJUI, ZW7Z, ITBB or IAZD, IBSI
 *   4R0B, IBSI  Intensity discretisation  K15C or Q3RU, IBSI; STORED_256 or MULTIPLES, 99NOCTULE
 *   K15C, IBSI  Fixed bin number          the number of bins
 *   Q3RU, IBSI  Fixed bin size            the width of bins
 *   LEVELS      Number of grey levels     with STORED_256
 *   BIN_WIDTH   Bin width                 with MULTIPLES
 *   PVMT, IBSI  Chebyshev norm            the distance of neighbours
 *   MATRIX      Co-occurrence matrix      DIRECTIONAL; IBSI's is symmetric, so that is not said
 *   DIRECTIONS  Directions                words, where not all of the aggregation's were used
 *   IF9H, IBSI  Re-segmentation           USB3, IBSI, with RANGE_LOW and RANGE_HIGH
 *
 * What is of no scheme here is of 99NOCTULE. Settings that are IBSI's need no code of ours, of
 * which validators warn. Pure functions; any thread.
 */
#ifndef NOCTULE_SR_TERMS_H
#define NOCTULE_SR_TERMS_H

#include "dicom/objects/sr/sr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings that a number does not depend on are NULL or "", 0 or false. Strings are borrowed. */
struct sr_settings {
    const char *aggregation;    /* "3d-merged": the matrix is one of co-occurrence */
    const char *discretisation; /* "fixed-bin-number" */
    int32_t levels;
    double bin_width; /* in value_unit */
    int32_t distance; /* Chebyshev, in voxels */
    bool symmetric;
    const char *directions;
    bool has_range;
    double range[2];        /* in value_unit; an end that is not finite is none */
    const char *value_unit; /* UCUM, of the image's values; not NULL */
};

/* Adds the settings to a measurement that has none. */
void sr_describe(struct sr_measurement *measurement, const struct sr_settings *settings);

/* `ibsi` is "" where IBSI has no code; `name` is that of the feature ("voxel_count"). */
struct coded_concept sr_feature_concept(const char *ibsi, const char *name, const char *meaning);

/* A UCUM code with what PS3.16 calls it; one that is not known here is its own name. */
struct coded_concept sr_unit(const char *ucum);

/*
 * Makes the measurement absent for a reason ("ONE_GREY_LEVEL"), told in words. One that is not
 * known here is its own words, borrowed; "" leaves the value there.
 */
void sr_make_absent(struct sr_measurement *measurement, const char *reason);

#ifdef __cplusplus
}
#endif
#endif

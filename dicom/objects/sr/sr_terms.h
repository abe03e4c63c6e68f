/*
 * sr_terms.h - how reports say in codes what was measured, with which settings, in which unit, and
 * why there is no number: the one place for it.
 *
 * Codes are IBSI's (reference manual, arXiv:1612.07003) where it has them, SNOMED's for the
 * standard deviation, and ours (99NOCTULE) for the rest, of which validators warn. Settings of a
 * number are modifiers (name = code), parameters (name = number) or words; which of them, and in
 * which order, is said by base/feature_settings.def and base/terms.def. Pure functions; any thread.
 */
#ifndef NOCTULE_SR_TERMS_H
#define NOCTULE_SR_TERMS_H

#include "dicom/objects/sr/sr.h"

/*
 * Adds settings (base/feature.h) to a measurement that has none, as feature_settings.def says;
 * `value_unit` is UCUM, of the image's values. `words` keeps what is told in words: the measurement
 * borrows it.
 */
void sr_describe(struct sr_measurement *measurement, const char *settings, const char *value_unit,
                 char words[FEATURE_SETTING]);

/* `ibsi` is "" where IBSI has no code; `name` is that of the feature ("voxel_count"). */
struct coded_concept sr_feature_concept(const char *ibsi, const char *name, const char *meaning);

/* A UCUM code with what PS3.16 calls it; one that is not known here is its own name. */
struct coded_concept sr_unit(const char *ucum);

/*
 * Makes the measurement absent for a reason ("ONE_GREY_LEVEL"), told in words. One that is not
 * known here is its own words, borrowed; "" leaves the value there.
 */
void sr_make_absent(struct sr_measurement *measurement, const char *reason);

#endif

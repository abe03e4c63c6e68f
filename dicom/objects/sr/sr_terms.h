/*
 * sr_terms.h - codes in reports for features, settings, units and reasons of missing numbers. This
 * is the only place that defines them.
 *
 * Codes are IBSI's (reference manual, arXiv:1612.07003) if it has them, SNOMED's for the standard
 * deviation, and ours (99NOCTULE) for the rest. Validators warn of our codes. Settings of a number
 * are modifiers (name = code), parameters (name = number) or texts. base/feature_settings.def and
 * base/terms.def define which and in which order. Pure functions; any thread.
 */
#ifndef NOCTULE_DICOM_OBJECTS_SR_SR_TERMS_H
#define NOCTULE_DICOM_OBJECTS_SR_SR_TERMS_H

#include "dicom/objects/sr/sr.h"

/* Adds settings (base/feature.h) to a measurement without settings, as feature_settings.def
 * defines. `value_unit` is the UCUM unit of the image's values. `words` holds the textual
 * settings; the measurement borrows them. */
void sr_describe(struct sr_measurement *measurement, const char *settings, const char *value_unit,
                 char words[SR_MAX_WORDS][FEATURE_SETTING]);

/* Returns the concept of a feature. `ibsi` is "" if IBSI has no code. `name` is the feature's name ("voxel_count"). */
struct coded_concept sr_feature_concept(const char *ibsi, const char *name, const char *meaning);

/* Returns a UCUM code with its meaning in PS3.16. The meaning of an unknown code is the code itself. */
struct coded_concept sr_unit(const char *ucum);

/* Makes the measurement absent for a reason ("ONE_GREY_LEVEL"), written as text. An unknown
 * reason is its own text, borrowed. "" leaves the value. */
void sr_make_absent(struct sr_measurement *measurement, const char *reason);

#endif

/*
 * cross_check.h - checks that concern more than one option; private to config/.
 *
 * Pure functions over the structs of config.h: each returns true, or false with what is wrong.
 */
#ifndef NOCTULE_CROSS_CHECK_H
#define NOCTULE_CROSS_CHECK_H

#include "config/options.h"

bool check_inbox(const void *inbox, struct option_complaint *complaint);
bool check_shape(const void *shape, struct option_complaint *complaint);
bool check_compute(const void *compute, struct option_complaint *complaint);
bool check_segment(const void *segment, struct option_complaint *complaint);
bool check_glcm(const void *glcm, struct option_complaint *complaint);
bool check_texture(const void *texture, struct option_complaint *complaint);
bool check_pipeline(const void *pipeline, struct option_complaint *complaint);
bool check_dicom(const void *dicom, struct option_complaint *complaint);
bool check_destination(const void *destination, struct option_complaint *complaint);
bool check_match(const void *rule, struct option_complaint *complaint);

/* The whole of it, once paths are absolute. */
bool check_conf(const void *conf, struct option_complaint *complaint);

#endif

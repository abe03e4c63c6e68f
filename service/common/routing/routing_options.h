/*
 * routing_options.h - the options of a pipeline that decide which stacks a series has for it.
 * Pipelines with equal options share one inspection result.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_OPTIONS_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_OPTIONS_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

#include <stdint.h>

#define JUDGEMENT_DERIVED 1 /* derived images are accepted */
#define JUDGEMENT_NEWEST  2 /* of duplicates the newest is used */
#define JUDGEMENT_UPRIGHT 4 /* tilted and unevenly spaced stacks are rejected */
#define JUDGEMENTS        8

/* Parametric maps of patterns are written on the source's own planes, which a resampled grid does
 * not have. */
static inline bool
judgement_is_upright(const struct conf_pipeline *pipeline)
{
    return pipeline->tilt == CONF_TILT_REFUSE || (pipeline->results & CONF_RESULT_PMAP);
}

static inline int
judgement_of(const struct conf_pipeline *pipeline)
{
    const bool upright = judgement_is_upright(pipeline);
    return (pipeline->derived ? JUDGEMENT_DERIVED : 0) |
           (pipeline->duplicates == CONF_NEWEST ? JUDGEMENT_NEWEST : 0) |
           (upright ? JUDGEMENT_UPRIGHT : 0);
}

/* Returns the options for a series without a pipeline: they accept everything that any pipeline
 * accepts. */
static inline int
judgement_lenient(const struct conf *conf)
{
    int taken = 0, upright = conf->pipeline_count > 0 ? JUDGEMENT_UPRIGHT : 0;
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        taken |= judgement_of(&conf->pipelines[i]) & ~JUDGEMENT_UPRIGHT;
        upright &= judgement_of(&conf->pipelines[i]);
    }
    return taken | upright;
}

/* Returns the most lenient limits of all pipelines. Each job has a geometry check of its own. */
static inline struct geometry_limits
judgement_lenient_limits(const struct conf *conf)
{
    struct geometry_limits limits = {.min_planes = 1};
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        const struct conf_pipeline *pipeline = &conf->pipelines[i];
        if (i == 0 || pipeline->min_slices < limits.min_planes)
            limits.min_planes = pipeline->min_slices;
        if (pipeline->spacing_tolerance > limits.spacing_tolerance)
            limits.spacing_tolerance = pipeline->spacing_tolerance;
    }
    return limits;
}

/* Sets the limits of the geometry check that depend on the options. Does not change the others. */
static inline void
judgement_set_limits(int judgement, struct geometry_limits *limits)
{
    limits->include_derived = judgement & JUDGEMENT_DERIVED;
    limits->newest_of_duplicates = judgement & JUDGEMENT_NEWEST;
    limits->straighten = !(judgement & JUDGEMENT_UPRIGHT);
}

/* Returns the options as text. */
static inline const char *
judgement_options(int64_t judgement)
{
    static const char *const options[JUDGEMENTS] = {
        "",     "derived",       "duplicates",       "derived, duplicates",
        "tilt", "derived, tilt", "duplicates, tilt", "derived, duplicates, tilt"};
    return judgement > 0 && judgement < JUDGEMENTS ? options[judgement] : "";
}

#endif

/* routing_options.h - the options of a pipeline that decide which stacks a series has for it.
 * Pipelines with equal options share one inspection result. */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_OPTIONS_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_OPTIONS_H

#include "base/error.h"
#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

#include <stdint.h>

#define ROUTING_DERIVED     1 /* derived images are accepted */
#define ROUTING_NEWEST      2 /* of duplicates the newest is used */
#define ROUTING_UPRIGHT     4 /* tilted and unevenly spaced stacks are rejected */
#define ROUTING_FLAT        8 /* 2-D images are accepted */
#define ROUTING_OPTION_SETS 16

static inline int
routing_options_of(const struct conf_pipeline *pipeline)
{
    /* Parametric maps of patterns are written on the source's own planes, which a resampled grid does not have. */
    const bool upright = pipeline->tilt == CONF_TILT_REFUSE || (pipeline->results & CONF_RESULT_PMAP);
    return (pipeline->derived ? ROUTING_DERIVED : 0) | (pipeline->duplicates == CONF_NEWEST ? ROUTING_NEWEST : 0) |
           (upright ? ROUTING_UPRIGHT : 0) | (pipeline->flat ? ROUTING_FLAT : 0);
}

/* Returns the options for a series without a pipeline: they accept everything that any pipeline accepts. */
static inline int
routing_options_lenient(const struct conf *conf)
{
    int taken = 0, upright = conf->pipeline_count > 0 ? ROUTING_UPRIGHT : 0;
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        taken |= routing_options_of(&conf->pipelines[i]) & ~ROUTING_UPRIGHT;
        upright &= routing_options_of(&conf->pipelines[i]);
    }
    return taken | upright;
}

/* Returns the most lenient limits of all pipelines. Each job has a geometry check of its own. */
static inline struct geometry_limits
routing_options_lenient_limits(const struct conf *conf)
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
routing_options_set_limits(int options, struct geometry_limits *limits)
{
    limits->include_derived = options & ROUTING_DERIVED;
    limits->newest_of_duplicates = options & ROUTING_NEWEST;
    limits->straighten = !(options & ROUTING_UPRIGHT);
    limits->take_flat = options & ROUTING_FLAT;
}

/* Returns the options as text. */
static inline const char *
routing_options_text(int64_t options)
{
    static const char *const texts[ROUTING_OPTION_SETS] = {"",
                                                           "derived",
                                                           "duplicates",
                                                           "derived, duplicates",
                                                           "tilt",
                                                           "derived, tilt",
                                                           "duplicates, tilt",
                                                           "derived, duplicates, tilt",
                                                           "flat",
                                                           "derived, flat",
                                                           "duplicates, flat",
                                                           "derived, duplicates, flat",
                                                           "tilt, flat",
                                                           "derived, tilt, flat",
                                                           "duplicates, tilt, flat",
                                                           "derived, duplicates, tilt, flat"};
    return options > 0 && options < ROUTING_OPTION_SETS ? texts[options] : "";
}

#endif

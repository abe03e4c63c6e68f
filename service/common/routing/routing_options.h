/*
 * routing_options.h - pipelines differ in what they take of a series, and so in the stacks that it makes for
 * them. A judgement is what those options say; pipelines that agree share it.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_OPTIONS_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_OPTIONS_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

#include <stdint.h>

#define JUDGEMENT_DERIVED 1 /* derived images are images */
#define JUDGEMENT_NEWEST  2 /* the newest of duplicates is taken */
#define JUDGEMENT_UPRIGHT 4 /* tilted and unevenly spaced stacks are refused */
#define JUDGEMENTS        8

/* Maps of patterns are of the source's own planes, which a straightened grid has not. */
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

/* That of a series which no rule names a pipeline for: what any of the pipelines would take. */
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

/* Returns the most lenient limits of all pipelines. The geometry check of each job applies its own. */
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

/* What it says to the gate; the other limits stay. */
static inline void
judgement_set_limits(int judgement, struct geometry_limits *limits)
{
    limits->include_derived = judgement & JUDGEMENT_DERIVED;
    limits->newest_of_duplicates = judgement & JUDGEMENT_NEWEST;
    limits->straighten = !(judgement & JUDGEMENT_UPRIGHT);
}

/* For people. */
static inline const char *
judgement_options(int64_t judgement)
{
    static const char *const options[JUDGEMENTS] = {
        "",     "derived",       "duplicates",       "derived, duplicates",
        "tilt", "derived, tilt", "duplicates, tilt", "derived, duplicates, tilt"};
    return judgement > 0 && judgement < JUDGEMENTS ? options[judgement] : "";
}

#endif

/* sr_sample.h - a request to write a report, built by hand on a segmentation request (seg_sample.h). */
#ifndef NOCTULE_SR_SAMPLE_H
#define NOCTULE_SR_SAMPLE_H

#include "dicom/objects/sr/sr.h"
#include "tests/unit/dicom/seg_sample.h"

struct sr_sample_shape {
    struct seg_sample_shape seg; /* its segments: those with a place in seg_sample */
    int32_t segments;            /* number of reported segments; may be more */
    size_t measurements;         /* per segment */
};

struct sr_sample {
    struct seg_sample seg;
    struct derived_identity identity; /* of the SEG */
    struct seg_segment *segments;
    char (*labels)[32];
    char (*codes)[32]; /* of measurements */
    struct sr_measurement *measurements;
    struct sr_group *groups;
    struct sr_request request;
};

/* Returns a value that differs per segment and measurement, and uses all bits of a double. */
static inline double
sr_sample_value(size_t group, size_t measurement)
{
    return (double)(1000 * group + measurement + 1) / 7.0 * (measurement % 2 ? -1e-6 : 1e3);
}

static inline void
sr_sample_measurement(struct sr_measurement *measurement, const char *code, double value)
{
    *measurement = (struct sr_measurement){
        .concept = {code, "IBSI", "Joint entropy"},
        .unit = {"1", "UCUM", "no units"},
        .value = value,
        .modifiers = {{{"5QB6", "IBSI", "Aggregation"}, {"IAZD", "IBSI", "3D merged"}},
                      {{"DISCRETISATION", "99NOCTULE", "Discretisation"}, {"K15C", "IBSI", "Fixed bin number"}}},
        .modifier_count = 2,
        .parameters = {{.concept = {"LEVELS", "99NOCTULE", "Number of grey levels"},
                        .unit = {"1", "UCUM", "no units"},
                        .value = 32.0}},
        .parameter_count = 1,
    };
}

static inline void
sr_sample_make(struct sr_sample *sample, const struct sr_sample_shape *shape)
{
    const size_t segments = (size_t)shape->segments;
    const size_t count = segments * shape->measurements;
    *sample = (struct sr_sample){0};
    seg_sample_make(&sample->seg, &shape->seg);
    sample->segments = calloc(segments, sizeof(*sample->segments));
    sample->labels = calloc(segments, sizeof(*sample->labels));
    sample->groups = calloc(segments, sizeof(*sample->groups));
    sample->codes = calloc(shape->measurements + 1, sizeof(*sample->codes));
    sample->measurements = calloc(count + 1, sizeof(*sample->measurements));
    if (!sample->segments || !sample->labels || !sample->groups || !sample->codes || !sample->measurements)
        abort();
    for (size_t i = 0; i < shape->measurements; i++)
        snprintf(sample->codes[i], sizeof(sample->codes[i]), "M%03zu", i);
    for (size_t s = 0; s < segments; s++) {
        struct sr_measurement *measurements = &sample->measurements[s * shape->measurements];
        sample->segments[s] = sample->seg.segments[0];
        snprintf(sample->labels[s], sizeof(sample->labels[s]), "Part %zu", s + 1);
        sample->segments[s].label = sample->labels[s];
        for (size_t i = 0; i < shape->measurements; i++)
            sr_sample_measurement(&measurements[i], sample->codes[i], sr_sample_value(s, i));
        sample->groups[s] = (struct sr_group){(int32_t)s, measurements, shape->measurements};
    }
    sample->seg.request.segments = sample->segments;
    sample->seg.request.segment_count = shape->segments;
    seg_identify(&sample->seg.request, &sample->identity);
    sample->request = (struct sr_request){
        .seg = &sample->seg.request,
        .seg_identity = &sample->identity,
        .groups = sample->groups,
        .group_count = segments,
        .series_description = "",
        .series_number = 2001,
    };
}

static inline void
sr_sample_free(struct sr_sample *sample)
{
    free(sample->segments);
    free(sample->labels);
    free(sample->groups);
    free(sample->codes);
    free(sample->measurements);
    seg_sample_free(&sample->seg);
}

#endif

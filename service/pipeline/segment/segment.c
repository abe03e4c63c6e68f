/* segment.c - the methods, and what is done with all of them. */
#include "service/pipeline/segment/segment.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct segment_method *const segment_methods[CONF_METHODS] = {
#define METHOD(NAME, name, word) [CONF_##NAME] = &segment_##name,
#include "base/methods.def"
};

static const enum kernels_op_id method_ops[CONF_METHODS] = {

#define METHOD(NAME, name, word) [CONF_##NAME] = KERNELS_##NAME,
#include "base/methods.def"
};

/* Lists the method's segments. */
static int
method_list(struct segmentation *segmentation, int m, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    size_t *segments = calloc(pipeline->segment_count, sizeof *segments);
    if (!segments)
        return error_set_system(error, -ENOMEM, "list the segments");
    segmentation->of[m].segments = segments;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if ((int)pipeline->segments[i].method == m)
            segments[segmentation->of[m].count++] = i;
    return 0;
}

static int
method_prepare(struct segmentation *segmentation, int m, struct kernels_demand *demand,
               struct error *error)
{
    const struct segment_method *method = segment_methods[m];
    int rc = method_list(segmentation, m, error);
    if (rc || segmentation->of[m].count == 0)
        return rc;
    void *prepared = calloc(1, method->size);
    if (!prepared)
        return error_set_system(error, -ENOMEM, "prepare the segments");
    segmentation->of[m].prepared = prepared;
    demand->of[method_ops[m]] = prepared;
    return method->prepare(segmentation, prepared, error);
}

int
segmentation_prepare(struct segmentation *segmentation, struct kernels_demand *demand,
                     struct error *error)
{
    size_t count = segmentation->pipeline->segment_count;
    int rc = 0;
    segmentation->masks = calloc(count, sizeof *segmentation->masks);
    segmentation->maps = calloc(count, sizeof *segmentation->maps);
    if (!segmentation->masks || !segmentation->maps)
        return error_set_system(error, -ENOMEM, "hold the masks");
    for (int m = 0; m < CONF_METHODS && rc == 0; m++)
        rc = method_prepare(segmentation, m, demand, error);
    return rc;
}

void
segmentation_release(struct segmentation *segmentation)
{
    for (int m = 0; m < CONF_METHODS; m++) {
        if (segmentation->of[m].prepared)
            segment_methods[m]->release(segmentation->of[m].prepared);
        free(segmentation->of[m].prepared);
        free(segmentation->of[m].segments);
    }
    free(segmentation->masks);
    free(segmentation->maps);
}

size_t
segment_place(const struct segmentation *segmentation, size_t segment)
{
    const size_t *segments =
        segmentation->of[segmentation->pipeline->segments[segment].method].segments;
    size_t place = 0;
    while (segments[place] != segment)
        place++;
    return place;
}

const struct conf_segment *
segment_origin(const struct conf_pipeline *pipeline, const struct conf_segment *segment)
{
    for (size_t i = 0; segment->from && i < pipeline->segment_count; i++)
        if (strcmp(pipeline->segments[i].label, segment->from) == 0)
            return &pipeline->segments[i];
    return NULL;
}

/* Whether all that its segments start from is of methods that are done. */
static bool
method_may_run(const struct conf_pipeline *pipeline, enum conf_method method, const bool *done)
{
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_segment *origin = segment_origin(pipeline, &pipeline->segments[i]);
        if (pipeline->segments[i].method == method && origin && !done[origin->method])
            return false;
    }
    return true;
}

int
segmentation_begin(const struct segmentation *segmentation, struct kernels_lane *lane,
                   struct error *error)
{
    const bool none[CONF_METHODS] = {false};
    int rc = 0;
    for (int m = 0; m < CONF_METHODS && rc == 0; m++)
        if (segmentation->of[m].prepared && segment_methods[m]->begin &&
            method_may_run(segmentation->pipeline, (enum conf_method)m, none))
            rc = segment_methods[m]->begin(segmentation, lane, error);
    return rc;
}

/* The first method that is not done and may run; CONF_METHODS when there is none. */
static int
next_method(const struct segmentation *segmentation, const bool *done)
{
    int m = 0;
    while (m < CONF_METHODS &&
           (done[m] || !method_may_run(segmentation->pipeline, (enum conf_method)m, done)))
        m++;
    return m;
}

int
segmentation_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels,
                 struct error *error)
{
    bool done[CONF_METHODS] = {false};
    int m, rc = 0;
    while (rc == 0 && (m = next_method(segmentation, done)) < CONF_METHODS) {
        if (segmentation->of[m].prepared)
            rc = segment_methods[m]->run(segmentation, lane, voxels, error);
        done[m] = true;
    }
    return rc;
}

void
segment_append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + length, size - length, format, values);
    va_end(values);
}

bool
segment_describe_measured(const struct pipeline_segment *segment, char *text, size_t size)
{
    const char *between = "";
    if (segment->measured_voxels == 0)
        return false;
    snprintf(text, size, "%s: measured ", segment->label);
    for (int i = 0; i < segment->number_count; i++)
        if (segment->numbers[i].measured) {
            segment_append(text, size, "%s%s %.6g", between, segment->numbers[i].words,
                           segment->numbers[i].value);
            between = ", ";
        }
    return true;
}

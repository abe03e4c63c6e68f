/*
 * segment_program.c - segments of label values that a program of the site wrote.
 */
#include "service/pipeline/segment/segment.h"

#include "base/error.h"

#include <errno.h>

static int
program_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    (void)prepared;
    return error_set(error, -EINVAL, CODE_PROGRAM_UNKNOWN, "%s: the job has no mask of program \"%s\"",
                     segment_at(segmentation, CONF_PROGRAM, 0)->label,
                     segment_at(segmentation, CONF_PROGRAM, 0)->program);
}

static void
program_release(void *prepared)
{
    (void)prepared;
}

static void
program_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION])
{
    segment_append(text, SEGMENT_DESCRIPTION, "program %s", segmentation->pipeline->segments[segment].program);
}

const struct segment_method segment_program = {
    .algorithm = "Program of the site",
    .family = {"123110", "DCM", "Artificial Intelligence"},
    .op = KERNELS_OPS,
    .size = 1,
    .prepare = program_prepare,
    .release = program_release,
    .describe = program_describe,
};

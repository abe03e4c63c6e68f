/* segment_later.c - methods that are not written yet. Each owner removes the line of its method. */
#include "service/pipeline/segment/segment.h"

#include <errno.h>

static int
later_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    (void)segmentation;
    (void)prepared;
    return error_set(error, -ENOTSUP, CODE_PIPELINE_INVALID, "the method is not written yet");
}

static void
later_release(void *prepared)
{
    (void)prepared;
}

static int
later_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    (void)segmentation;
    (void)lane;
    (void)voxels;
    return error_set(error, -ENOTSUP, CODE_PIPELINE_INVALID, "the method is not written yet");
}

static void
later_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION])
{
    (void)segmentation;
    (void)segment;
    text[0] = '\0';
}

#define LATER(name)                                                                                                    \
    const struct segment_method segment_##name = {.algorithm = "Noctule",                                              \
                                                  .op = KERNELS_OPS,                                                   \
                                                  .size = 1,                                                           \
                                                  .prepare = later_prepare,                                            \
                                                  .release = later_release,                                            \
                                                  .run = later_run,                                                    \
                                                  .describe = later_describe};
LATER(enclosed)
LATER(sections)
LATER(leak)

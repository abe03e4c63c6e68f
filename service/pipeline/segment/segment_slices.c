/* segment_slices.c - a segment in the slices where the share of another one is in a range. */
#include "service/pipeline/segment/segment.h"

#include <errno.h>
#include <string.h>

/* A segment to find, with the words per slice of its masks. */
struct slices_finding {
    const struct segmentation *segmentation;
    const struct conf_slices_where *where;
    const uint64_t *from, *other;
    size_t words;
    uint64_t *bits;
};

static bool
slices_want(const struct slices_finding *finding, int32_t z)
{
    const size_t first = (size_t)z * finding->words;
    const int64_t own = mask_count(finding->from + first, (int64_t)finding->words);
    const double share = (double)mask_count(finding->other + first, (int64_t)finding->words) / (double)own;
    return own > 0 && share >= finding->where->share[0] && share <= finding->where->share[1];
}

/* Adds the slices first .. end - 1, unless they are too few. */
static void
slices_add(const struct slices_finding *finding, int32_t first, int32_t end)
{
    const size_t words = finding->words, begin = (size_t)first * words;
    if ((double)(end - first) * finding->segmentation->stack->spacing[2] >= finding->where->at_least_mm)
        memcpy(finding->bits + begin, finding->from + begin, (size_t)(end - first) * words * sizeof *finding->bits);
}

static void
slices_take(const struct slices_finding *finding)
{
    const int32_t planes = finding->segmentation->stack->plane_count;
    int32_t longest = 0, longest_end = 0;
    for (int32_t first = 0, end; first < planes; first = end + 1) {
        for (end = first; end < planes && slices_want(finding, end);)
            end++;
        if (!finding->where->longest)
            slices_add(finding, first, end);
        if (end - first > longest_end - longest) {
            longest = first;
            longest_end = end;
        }
    }
    if (finding->where->longest)
        slices_add(finding, longest, longest_end);
}

static int
slices_find(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const void *voxels,
            uint64_t *bits, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    const struct conf_slices_where *where = &pipeline->segments[number].slices_where;
    const struct slices_finding finding = {.segmentation = segmentation,
                                           .where = where,
                                           .from = segment_from(segmentation, number),
                                           .other = segmentation->masks[conf_find_segment(pipeline, where->label)].bits,
                                           .words = segment_mask_words(segmentation->stack) /
                                                    (size_t)segmentation->stack->plane_count,
                                           .bits = bits};
    (void)lane;
    (void)voxels;
    (void)error;
    slices_take(&finding);
    return 0;
}

static void
slices_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct conf_slices_where *where = &segment->slices_where;
    text[0] = '\0';
    segment_append(text, SEGMENT_DESCRIPTION, "%s in slices where %s is %.9g..%.9g of it", segment->from, where->label,
                   where->share[0], where->share[1]);
    if (where->longest)
        segment_append(text, SEGMENT_DESCRIPTION, ", the longest run");
    if (where->at_least_mm > 0)
        segment_append(text, SEGMENT_DESCRIPTION, ", runs of at least %.9g mm", where->at_least_mm);
}

const struct segment_method segment_slices = {
    .algorithm = "Noctule selection of slices",
    /* the nearest term of PS3.16 CID 7162 */
    .family = {"123104", "DCM", "Morphological Operations"},
    .op = KERNELS_OPS,
    .size = 1,
    .find = slices_find,
    .describe = slices_describe,
};

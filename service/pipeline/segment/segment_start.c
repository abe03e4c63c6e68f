/* segment_start.c - see segment.h. */
#include "service/pipeline/segment/segment.h"

#include "base/error.h"
#include "service/pipeline/segment/segment_extreme.h"
#include "service/pipeline/segment/segment_sets.h"

#include <errno.h>
#include <stdlib.h>

int
start_find(const struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const void *voxels,
           const struct kernels_mask_request *range, const uint64_t **bits, struct error *error)
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const bool largest = segment->automatic == CONF_AUTO_LARGEST;
    const uint64_t **within = calloc(1 + segment->within_count, sizeof *within);
    uint64_t *highest = calloc(largest ? 1 : segment_mask_words(segmentation->stack), sizeof *highest);
    const uint64_t *const plateau[] = {highest};
    struct kernels_mask_request request = *range;
    int rc = within && highest ? 0 : error_set_system(error, -ENOMEM, "look for the start region");
    if (rc == 0) {
        request.within = within;
        request.within_count = sets_within(segmentation, number, within);
    }
    if (rc == 0 && !largest) {
        const struct extreme_request extreme = {.mm = segment->auto_mm,
                                                .lowest = segment->automatic == CONF_AUTO_LOWEST,
                                                .within = within,
                                                .within_count = request.within_count};
        rc = extreme_find(segmentation, &extreme, voxels, highest, error);
        request = (struct kernels_mask_request){.padding = {1, 0}, .within = plateau, .within_count = 1};
    }
    if (rc == 0)
        rc = sets_make_start(segmentation, number, lane, &request, bits, error);
    free(within);
    free(highest);
    return rc;
}

int64_t
start_bytes(const struct segmentation *segmentation, size_t number)
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const bool is_extreme = segment->automatic == CONF_AUTO_HIGHEST || segment->automatic == CONF_AUTO_LOWEST;
    return is_extreme ? segment_mask_bytes(segmentation->stack) + extreme_bytes(segmentation->stack, segment->auto_mm)
                      : 0;
}

void
start_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION])
{
    switch (segment->automatic) {
    case CONF_AUTO_NONE:
        break;
    case CONF_AUTO_LARGEST:
        segment_append(text, SEGMENT_DESCRIPTION, "; from the largest component%s",
                       segment->method == CONF_LEVEL_SET ? " in range" : "");
        break;
    case CONF_AUTO_CENTER:
        segment_append(text, SEGMENT_DESCRIPTION, "; from the volume's middle");
        break;
    case CONF_AUTO_HIGHEST:
    case CONF_AUTO_LOWEST:
        segment_append(text, SEGMENT_DESCRIPTION, "; from the %s mean over %g mm",
                       segment->automatic == CONF_AUTO_LOWEST ? "lowest" : "highest", segment->auto_mm);
        break;
    }
}

/* on_planes.c - the segments for DICOM objects; see row.h. */
#include "service/pipeline/results/row.h"

#include "base/error.h"
#include "service/pipeline/segment/object.h"
#include "service/pipeline/segment/segment_ranges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Puts a segment on the planes and writes its description: the configured text, then the region and
 * the steps of a segment that was computed from an object or a range, then the straightening.
 */
static int
on_planes_add(const struct results_request *request, size_t i, struct on_planes *placed, struct error *error)
{
    const struct segmentation *found = request->segmentation;
    const struct conf_segment *segment = &request->pipeline->segments[i];
    const struct object_region *drawn = object_region_alone(found, i);
    const char *given = segment->description ? segment->description : "";
    const char *text = request->grid->text;
    char range[SEGMENT_DESCRIPTION] = "";
    if (drawn || !request->grid->straight) {
        placed->masks[i] = drawn ? drawn->whole : found->masks[i];
        placed->maps[i] = found->maps[i];
    } else {
        int rc = grid_mask_on_planes(request->grid, &found->masks[i], &placed->own_bits[i], &placed->masks[i], error);
        if (rc == 0)
            rc = grid_map_on_planes(request->grid, found->maps[i], &placed->own_maps[i], error);
        if (rc)
            return rc;
        placed->maps[i] = placed->own_maps[i];
    }
    if (segment->method == CONF_OBJECT)
        segment_describe(found, i, range);
    else if (segment->range.relative != CONF_ABSOLUTE)
        ranges_describe(found, i, range);
    if (asprintf(&placed->descriptions[i], "%s%s%s%s%s", given, given[0] && range[0] ? "; " : "", range,
                 (given[0] || range[0]) && text[0] ? "; " : "", text) >= 0)
        return 0;
    placed->descriptions[i] = NULL;
    return error_set_system(error, -ENOMEM, "describe the segments");
}

int
on_planes_make(const struct results_request *request, struct on_planes *placed, struct error *error)
{
    const size_t count = request->pipeline->segment_count;
    int rc = 0;
    *placed = (struct on_planes){
        .count = count,
        .masks = calloc(count, sizeof *placed->masks),
        .maps = calloc(count, sizeof *placed->maps),
        .descriptions = calloc(count, sizeof *placed->descriptions),
        .own_bits = calloc(count, sizeof *placed->own_bits),
        .own_maps = calloc(count, sizeof *placed->own_maps),
    };
    if (!placed->masks || !placed->maps || !placed->descriptions || !placed->own_bits || !placed->own_maps)
        return error_set_system(error, -ENOMEM, "describe the segments");
    for (size_t i = 0; i < count && rc == 0; i++)
        if (!request->pipeline->segments[i].hidden)
            rc = on_planes_add(request, i, placed, error);
    return rc;
}

static void
on_planes_free_each(void **each, size_t count)
{
    for (size_t i = 0; each && i < count; i++)
        free(each[i]);
    free(each);
}

void
on_planes_release(struct on_planes *placed)
{
    on_planes_free_each((void **)placed->descriptions, placed->count);
    on_planes_free_each((void **)placed->own_bits, placed->count);
    on_planes_free_each((void **)placed->own_maps, placed->count);
    free(placed->masks);
    free(placed->maps);
    *placed = (struct on_planes){0};
}

/* result_rtstruct.c - the segments as an RT Structure Set; see row.h. */
#include "service/pipeline/results/row.h"

#include "base/error.h"
#include "base/text.h"
#include "dicom/objects/rtstruct/rtstruct_object.h"
#include "dicom/value/value.h"
#include "kernels/mask/contours.h"
#include "service/pipeline/segment/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t
result_rtstruct_wanted(const struct results *results)
{
    return (results->request->pipeline->results & CONF_RESULT_RTSTRUCT) != 0;
}

/*
 * Returns RT ROI Interpreted Type: that of the pipeline, or of the region of a structure set unless it was changed. A
 * lesion is no GTV unless one of the two states so.
 */
static const char *
rtstruct_type(const struct segmentation *found, size_t i, const struct seg_segment *described)
{
    const struct conf_segment *segment = &found->pipeline->segments[i];
    const struct object_region *region = object_region_of(found, i);
    if (segment->roi_type > CONF_ROI_TYPE_NONE)
        return conf_roi_type_names[segment->roi_type];
    if (segment->roi_type == CONF_ROI_TYPE_AUTO && segment->method == CONF_OBJECT &&
        segment->object.kind == CONF_RTSTRUCT) {
        const size_t length = strlen(region->roi_type);
        const bool is_kept = region->what && !object_region_is_changed(found, i);
        return is_kept && value_is_legal("CS", region->roi_type, length) ? region->roi_type : "";
    }
    const bool anatomy = strcmp(described->category.value, CONF_CATEGORY) == 0;
    return segment->roi_type == CONF_ROI_TYPE_AUTO && anatomy ? "ORGAN" : "";
}

/* The planes of the source, and memory for the mask of one segment. */
struct rtstruct_check {
    const struct seg_request *seg;
    const char *path;
    struct image_planes planes;
    uint64_t *bits;
};

/* Draws the contours of a segment as a pipeline would, and compares each voxel. */
static int
rtstruct_check_segment(void *context, int32_t index, const struct rtstruct_contours *contours, struct error *error)
{
    const struct rtstruct_check *check = context;
    const struct seg_segment *segment = &check->seg->segments[index];
    const struct contours_request drawing = {&check->planes, contours->contours, contours->count, false, false};
    const struct image_extent *extent = &check->planes.extent;
    const int64_t words = (extent->columns + 63) / 64;
    const uint64_t tail = extent->columns % 64 ? UINT64_MAX >> (64 - extent->columns % 64) : UINT64_MAX;
    struct contours_drawn drawn;
    struct error why = {.code = CODE_NONE};
    const int rc = kernels_mask_contours(&drawing, check->bits, &drawn, &why);
    if (rc == -ENOMEM)
        return error_set_system(error, rc, "read the structure set back");
    if (rc && why.code == CODE_SIZE_IMPLAUSIBLE)
        return error_set(
            error, -EOVERFLOW, CODE_RTSTRUCT_TOO_LARGE,
            "Segment \"%.64s\" has too many parts for a structure set: %.200s Drop its small parts (then), "
            "or remove \"rtstruct\" from results.",
            segment->label, why.message);
    if (rc)
        return error_set_files(error, -EBADMSG, CODE_RTSTRUCT_MISMATCH, check->path, NULL,
                               "The contours of segment \"%.64s\" cannot be drawn: %.200s", segment->label,
                               why.message);
    for (int64_t row = 0; row < extent->rows * extent->slices; row++)
        for (int64_t word = 0; word < words; word++) {
            const uint64_t expected = segment->bits[row * segment->words_per_row + word];
            const uint64_t differ =
                (check->bits[row * words + word] ^ expected) & (word < words - 1 ? UINT64_MAX : tail);
            if (differ)
                return error_set_files(error, -EBADMSG, CODE_RTSTRUCT_MISMATCH, check->path, NULL,
                                       "The contours read back from %.80s differ from the mask of segment \"%.64s\" in "
                                       "voxel (%lld, %lld, %lld).",
                                       text_base_name(check->path), segment->label,
                                       (long long)word * 64 + __builtin_ctzll(differ), (long long)(row % extent->rows),
                                       (long long)(row / extent->rows));
        }
    return 0;
}

static int
rtstruct_read_back(const struct results *results, const struct rtstruct_request *request, const char *path)
{
    const struct derived_source *source = &request->seg->source;
    struct error *error = &results->report->error;
    struct rtstruct_check check = {.seg = request->seg, .path = path};
    double *origins = object_make_planes(source->stack, source->instances, &check.planes);
    const size_t words = (size_t)((source->stack->columns + 63) / 64) * (size_t)source->stack->rows;
    check.bits = origins ? calloc(words * (size_t)source->stack->plane_count, sizeof *check.bits) : NULL;
    const int rc = check.bits ? rtstruct_verify(request, path, rtstruct_check_segment, &check, error)
                              : error_set_system(error, -ENOMEM, "read the structure set back");
    free(check.bits);
    free(origins);
    return rc;
}

int
result_rtstruct_make(const struct results *results, struct result_file *file)
{
    const struct conf_pipeline *pipeline = results->request->pipeline;
    const struct seg_request seg = results_seg_request(results, file->name);
    const char **types = calloc(results->segment_count, sizeof *types);
    struct error *error = &results->report->error;
    if (!types)
        return error_set_system(error, -ENOMEM, "describe the structures");
    for (size_t i = 0, n = 0; i < pipeline->segment_count; i++)
        if (!pipeline->segments[i].hidden) {
            types[n] = rtstruct_type(results->request->segmentation, i, &results->segments[n]);
            n++;
        }
    const struct rtstruct_request request = {
        .seg = &seg,
        .types = types,
        .xor_holes = pipeline->rtstruct_holes == CONF_HOLES_XOR,
        .series_description = "",
        .series_number = results_series_number(&seg, RESULTS_SERIES_RTSTRUCT),
    };
    const int rc = file->path ? rtstruct_read_back(results, &request, file->path)
                              : rtstruct_write(&request, file->fd, &file->summary, error);
    free(types);
    return rc;
}

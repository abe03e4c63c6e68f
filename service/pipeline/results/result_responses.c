/*
 * result_responses.c - responses of filters to the whole volume, as rows (row.h): Parametric Maps of doubles on the planes
 * of the images, or on the upright grid of a straightened stack, and NIfTI on the voxels of the group.
 */
#include "service/pipeline/results/row.h"

#include "dicom/objects/pmap/pmap.h"
#include "dicom/objects/sr/sr_terms.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/volume_source.h"

#include <math.h>
#include <stdio.h>

/* Returns the number of files of a kind. *group: the group of the file with this number, if there is one. */
static size_t
response_find(const struct results *results, enum texture_response kind, size_t number, size_t *group)
{
    const struct conf_pipeline *pipeline = results->request->pipeline;
    size_t count = 0;
    for (size_t g = 0; g < pipeline->texture_count; g++)
        if (pipeline->texture[g].response >> kind & 1 && count++ == number)
            *group = g;
    return count;
}

static size_t
response_group(const struct results *results, enum texture_response kind, size_t number)
{
    size_t group = 0;
    response_find(results, kind, number, &group);
    return group;
}

size_t
response_pmap_wanted(const struct results *results)
{
    size_t group;
    return response_find(results, TEXTURE_RESPONSE_PMAP, SIZE_MAX, &group);
}

size_t
response_nifti_wanted(const struct results *results)
{
    size_t group;
    return response_find(results, TEXTURE_RESPONSE_NIFTI, SIZE_MAX, &group);
}

void
response_pmap_part(const struct results *results, size_t number, char *text, size_t size)
{
    snprintf(text, size, "%zu", response_group(results, TEXTURE_RESPONSE_PMAP, number) + 1);
}

void
response_nifti_part(const struct results *results, size_t number, char *text, size_t size)
{
    snprintf(text, size, "%zu", response_group(results, TEXTURE_RESPONSE_NIFTI, number) + 1);
}

struct response_slices {
    struct volume_grid box;
    const struct filter_response *response;
};

/* Finds the response of a group, on its grid. */
static struct response_slices
response_slices_of(const struct results *results, size_t group)
{
    const struct grid *grid;
    struct response_slices slices = {.response = texture_groups_response(results->request->groups, group, &grid)};
    slices.box = volume_source_box(grid);
    return slices;
}

/* Finds the smallest and the largest response; the first exceeds the second if there are none. */
static void
response_range(const struct response_slices *slices, double range[2])
{
    const int64_t count = slices->box.size[0] * slices->box.size[1] * slices->box.size[2];
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    for (int64_t i = 0; i < count; i++) {
        const int32_t code = slices->response->codes[i];
        lo = code != FILTER_RESPONSE_NONE && code < lo ? code : lo;
        hi = code > hi ? code : hi;
    }
    range[0] = lo * slices->response->step;
    range[1] = hi * slices->response->step;
}

static void
response_fill(void *context, int64_t z, void *to)
{
    const struct response_slices *slices = context;
    const int64_t count = slices->box.size[0] * slices->box.size[1];
    const int32_t *codes = slices->response->codes + z * count;
    double *values = to;
    for (int64_t i = 0; i < count; i++)
        values[i] = codes[i] == FILTER_RESPONSE_NONE ? NAN : codes[i] * slices->response->step;
}

int
response_pmap_make(const struct results *results, struct result_file *file)
{
    static const struct coded_concept quantities[FILTER_KINDS] = {

#define IBSI                                    CONCEPT_IBSI_SCHEME
#define OWN                                     CONCEPT_OWN_SCHEME
#define FILTER(id, name, scheme, code, meaning) {code, scheme, meaning},
#include "base/terms.def"
#undef IBSI
#undef OWN
    };
    const size_t group = response_group(results, TEXTURE_RESPONSE_PMAP, file->number);
    const struct filter_options *filter = results->request->pipeline->texture[group].filter;
    struct seg_request seg = results_seg_request(results, file->name);
    struct response_slices slices = response_slices_of(results, group);
    struct error *error = &results->report->error;
    char settings[FILTER_TEXT], kind[32], explanation[FILTER_TEXT + 32], description[FILTER_TEXT + 128];
    if (results->request->grid->straight) {
        seg.source.images = seg.source.stack;
        seg.source.stack = results->request->grid->stack;
    }
    filter_describe(filter, settings);
    snprintf(kind, sizeof kind, "response_%zu", group + 1);
    snprintf(explanation, sizeof explanation, "%s %s", filter_kind_names[filter->kind], settings);
    snprintf(description, sizeof description, "%s, %s", results->request->pipeline->name, explanation);
    explanation[64] = '\0'; /* the maximum of a LUT Explanation */
    struct pmap_request request = {
        .source = &seg.source,
        .kind = kind,
        .quantity = quantities[filter->kind],
        .explanation = explanation,
        .fill = response_fill,
        .context = &slices,
        .unit = sr_unit(value_unit_of(results->request->headers->instances, results->request->stack)),
        .series_description = description,
        .series_number = results_series_number(&seg, RESULTS_SERIES_RESPONSES + (int32_t)group + 1),
    };
    response_range(&slices, request.range);
    return file->path ? pmap_verify(&request, file->path, error)
                      : pmap_write(&request, file->fd, &file->summary, error);
}

int
response_nifti_make(const struct results *results, struct result_file *file)
{
    const size_t group = response_group(results, TEXTURE_RESPONSE_NIFTI, file->number);
    struct response_slices slices = response_slices_of(results, group);
    return result_nifti_make(results, &(struct nifti_file){&slices.box, VOLUME_FLOAT64, response_fill, &slices}, file);
}

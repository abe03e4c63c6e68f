/*
 * result_maps.c - maps of features (measure_voxelwise.h), as rows (row.h): Parametric Maps of doubles and NIfTI, of the box of
 * the region.
 */
#include "service/pipeline/results/row.h"

#include "dicom/objects/pmap/pmap.h"
#include "dicom/objects/sr/sr_terms.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/measure/measure_voxelwise.h"
#include "service/pipeline/volume_source.h"

#include "kernels/features/family.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A map: its region, the row of its feature and the number of this among those wanted. */
struct feature_map_file {
    const struct voxelwise_maps *maps;
    const struct texture_options *texture;
    int row, feature;
};

/* Returns the number of files of a kind. *found: the map of the file with this number, if there is one. */
static size_t
maps_find(const struct results *results, enum texture_response kind, size_t number, struct feature_map_file *found)
{
    size_t count = 0;
    for (size_t m = 0; m < results->request->voxelwise_count; m++) {
        const struct voxelwise_maps *maps = &results->request->voxelwise[m];
        const struct texture_options *texture = &results->request->pipeline->texture[maps->group];
        int feature = 0;
        for (int row = 0; row < VOXELWISE_FEATURES; row++)
            if (voxelwise_wants(texture->voxelwise, row)) {
                if (texture->voxelwise->files >> kind & 1 && count++ == number)
                    *found = (struct feature_map_file){maps, texture, row, feature};
                feature++;
            }
    }
    return count;
}

size_t
map_of_features_pmap_wanted(const struct results *results)
{
    struct feature_map_file found;
    return maps_find(results, TEXTURE_RESPONSE_PMAP, SIZE_MAX, &found);
}

size_t
map_of_features_nifti_wanted(const struct results *results)
{
    struct feature_map_file found;
    return maps_find(results, TEXTURE_RESPONSE_NIFTI, SIZE_MAX, &found);
}

/* Writes the part of the file's name: "1-2-glcm-joint_entropy". */
static void
map_file_part(const struct results *results, enum texture_response kind, size_t number, char *text, size_t size)
{
    static const char *const families[VOXELWISE_FAMILIES] = {"first_order", "glcm", "glrlm", "glszm", "ngldm", "ngtdm"};
    struct feature_map_file map = {.maps = NULL};
    maps_find(results, kind, number, &map);
    if (map.maps)
        snprintf(text, size, "%zu-%" PRId32 "-%s-%s", map.maps->group + 1, map.maps->segment,
                 families[voxelwise_rows[map.row].family], voxelwise_rows[map.row].name);
}

void
map_of_features_pmap_part(const struct results *results, size_t number, char *text, size_t size)
{
    map_file_part(results, TEXTURE_RESPONSE_PMAP, number, text, size);
}

void
map_of_features_nifti_part(const struct results *results, size_t number, char *text, size_t size)
{
    map_file_part(results, TEXTURE_RESPONSE_NIFTI, number, text, size);
}

static void
map_fill(void *context, int64_t slice, void *values)
{
    const struct feature_map_file *map = context;
    voxelwise_maps_fill(map->maps, map->feature, slice, values);
}

/* Finds the smallest and the largest value; the first exceeds the second if there are none. */
static void
map_range(const struct feature_map_file *map, double range[2])
{
    const double *values = map->maps->values + map->feature * map->maps->count;
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (int64_t i = 0; i < map->maps->count; i++) {
        range[0] = fmin(range[0], values[i]);
        range[1] = fmax(range[1], values[i]);
    }
}

/* Returns the definition of a feature. */
static const struct feature_definition *
map_definition(const struct voxelwise_row *row)
{
    for (size_t f = 0; f < FEATURE_FAMILIES; f++)
        for (size_t d = 0; d < feature_families[f]->definition_count; d++)
            if (strcmp(feature_families[f]->name, row->home) == 0 &&
                strcmp(feature_families[f]->definitions[d].name, row->name) == 0)
                return &feature_families[f]->definitions[d];
    return NULL;
}

/* Returns the box of a map as a stack of its own, with the grid's orientation. */
static struct geometry_stack
map_stack(const struct results *results, const struct voxelwise_maps *maps)
{
    struct geometry_stack stack =
        results->request->grid->straight ? *results->request->grid->stack : *results->request->stack;
    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < 3; i++)
            stack.origin[i] += (double)maps->first[axis] * stack.spacing[axis] * stack.axes[3 * axis + i];
    stack.columns = (int32_t)maps->size[0];
    stack.rows = (int32_t)maps->size[1];
    stack.plane_count = (int32_t)maps->size[2];
    stack.planes += maps->first[2];
    return stack;
}

int
map_of_features_pmap_make(const struct results *results, struct result_file *file)
{
    struct feature_map_file map = {.maps = NULL};
    struct seg_request seg = results_seg_request(results, file->name);
    struct error *error = &results->report->error;
    char kind[32], explanation[96], description[160], unit[FEATURE_TERM];
    maps_find(results, TEXTURE_RESPONSE_PMAP, file->number, &map);
    const struct voxelwise_row *row = &voxelwise_rows[map.row];
    const struct feature_definition *definition = map_definition(row);
    const struct geometry_stack stack = map_stack(results, map.maps);
    seg.source.images = seg.source.stack;
    seg.source.stack = &stack;
    value_unit_times(value_unit_of(results->request->headers->instances, results->request->stack),
                     definition->value_power, definition->unit, unit);
    snprintf(kind, sizeof kind, "map_%zu_%" PRId32 "_%d", map.maps->group + 1, map.maps->segment, map.row + 1);
    snprintf(explanation, sizeof explanation, "%s %s, radius %d%s", row->home, row->name,
             map.texture->voxelwise->radius, map.texture->voxelwise->masked ? "" : ", not masked");
    snprintf(description, sizeof description, "%s, %s of %s", results->request->pipeline->name, definition->meaning,
             map.maps->segment > 0 ? map.maps->label : "the volume");
    explanation[64] = '\0'; /* the maximum of a LUT Explanation */
    struct pmap_request request = {
        .source = &seg.source,
        .kind = kind,
        .quantity = sr_feature_concept(definition->ibsi, definition->name, definition->meaning),
        .explanation = explanation,
        .fill = map_fill,
        .context = &map,
        .unit = sr_unit(unit),
        .series_description = description,
        .series_number = results_series_number(&seg, RESULTS_SERIES_FEATURES + (int32_t)file->number + 1),
    };
    map_range(&map, request.range);
    return file->path ? pmap_verify(&request, file->path, error)
                      : pmap_write(&request, file->fd, &file->summary, error);
}

int
map_of_features_nifti_make(const struct results *results, struct result_file *file)
{
    struct feature_map_file map = {.maps = NULL};
    maps_find(results, TEXTURE_RESPONSE_NIFTI, file->number, &map);
    struct volume_grid box = volume_source_box(texture_groups_grid(results->request->groups, map.maps->group));
    for (int axis = 0; axis < 3; axis++) {
        for (int i = 0; i < 3; i++)
            box.to_mm[4 * i + 3] += (double)map.maps->first[axis] * box.to_mm[4 * i + axis];
        box.size[axis] = map.maps->size[axis];
    }
    return result_nifti_make(results, &(struct nifti_file){&box, VOLUME_FLOAT64, map_fill, &map}, file);
}

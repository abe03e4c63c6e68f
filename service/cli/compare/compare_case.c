#include "service/cli/compare/compare_case.h"

#include "base/array.h"
#include "base/text.h"
#include "service/pipeline/segment/object_search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* -------------------------------------------------------------------------------- objects ---- */

int
compare_object_open(const char *path, struct compare_object *object, struct error *error)
{
    struct object_set *set;
    struct text_stream text;
    object->path = path;
    object->kind = CONF_RTSTRUCT;
    int rc = object_set_open(object->kind, path, &set, error);
    if (rc && error->code == CODE_SOP_CLASS_UNSUPPORTED) {
        object->kind = CONF_SEG;
        rc = object_set_open(object->kind, path, &set, error);
    }
    if (rc)
        return rc;
    rc = text_open(&text);
    if (rc == 0) {
        for (int32_t i = 0; i < set->series_count; i++)
            fprintf(text.out, "series %s\n", set->series[i]);
        for (int32_t i = 0; i < set->item_count; i++)
            if (set->items[i].frame[0])
                fprintf(text.out, "frame %s\n", set->items[i].frame);
        rc = text_close(&text);
        object->references = text.bytes;
    }
    object_set_close(set);
    return rc ? error_set_system(error, rc, "list the references of an object") : 0;
}

static bool
compare_has_line(const char *lines, const char *word, const char *uid)
{
    char line[DICOM_UID_SIZE + 16];
    const int length = snprintf(line, sizeof line, "%s%s\n", word, uid);
    return uid[0] && length > 0 && strstr(lines, line);
}

bool
compare_object_is_of(const struct compare_object *object, const struct dicom_instance *image)
{
    return compare_has_line(object->references, "series ", image->series_uid) ||
           compare_has_line(object->references, "frame ", image->frame_of_reference_uid);
}

bool
compare_objects_share(const struct compare_object *a, const struct compare_object *b)
{
    for (const char *line = a->references; *line;) {
        char one[DICOM_UID_SIZE + 16];
        const size_t length = strcspn(line, "\n");
        snprintf(one, sizeof one, "%.*s\n", (int)length, line);
        if (strstr(b->references, one))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

/* ---------------------------------------------------------------------------------- pairs ---- */

/*
 * Makes the masks of both regions, which are united if a pattern matches several, and compares them. `wanted`: one per
 * side. Fills row->error if a region cannot be compared.
 */
static void
compare_pair(const struct compare_request *request, const struct compare_volume *volume,
             struct object_set *const sets[AGREEMENT_MASKS], const struct conf_object wanted[AGREEMENT_MASKS],
             struct compare_row *row)
{
    struct object_region regions[AGREEMENT_MASKS] = {{0}};
    int rc = 0;
    for (int side = 0; side < AGREEMENT_MASKS && rc == 0; side++) {
        row->paths[side] = sets[side]->path;
        const struct conf_segment segment = {.label = (char *)"compared", .object = wanted[side]};
        const struct object_search search = {.segmentation = &volume->segmentation,
                                             .segment = &segment,
                                             .set = sets[side],
                                             .item = object_search_next(&wanted[side], sets[side], 0)};
        snprintf(regions[side].name, sizeof regions[side].name, "%s", sets[side]->items[search.item].name);
        rc = object_search_check(&search, sets[side], search.item, &row->error);
        if (rc == 0)
            rc = object_region_make(&search, &regions[side], &row->error);
        snprintf(row->regions[side], sizeof row->regions[side], "%s", regions[side].name);
    }
    if (rc == 0) {
        const struct geometry_stack *stack = volume->grid.stack;
        struct agreement_request measure = {.extent = {stack->columns, stack->rows, stack->plane_count},
                                            .tolerance_mm = request->tolerance_mm,
                                            .threads = request->threads};
        memcpy(measure.spacing, stack->spacing, sizeof measure.spacing);
        for (int side = 0; side < AGREEMENT_MASKS; side++)
            measure.masks[side] = regions[side].mask;
        agreement_measure(&measure, &row->agreement, &row->error);
    }
    for (int side = 0; side < AGREEMENT_MASKS; side++) {
        free(regions[side].bits);
        free(regions[side].grid_bits);
    }
}

/* A case while it is compared: its volume, and the open objects of both sides. */
struct compare_open {
    const struct compare_request *request;
    const char *series_uid;
    struct compare_volume volume;
    struct object_set **sets;
    enum agreement_mask *sides; /* one per set */
    size_t count;
    struct compare_rows *rows;
};

static struct compare_row *
compare_add_row(struct compare_open *open)
{
    struct compare_rows *rows = open->rows;
    struct compare_row *grown = array_grow(rows->items, &rows->room, rows->count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    rows->items = grown;
    struct compare_row *row = &grown[rows->count++];
    *row = (struct compare_row){.series_uid = open->series_uid};
    for (size_t i = open->count; i-- > 0;)
        row->paths[open->sides[i]] = open->sets[i]->path;
    return row;
}

static struct conf_object
compare_wanted(const struct object_set *set, char *roi, int32_t number)
{
    return (struct conf_object){.kind = set->rtstruct ? CONF_RTSTRUCT : CONF_SEG,
                                .roi = roi,
                                .has_number = !roi,
                                .number = number,
                                .threshold = 0.5,
                                .unite = roi,
                                .own = true,
                                .optional = true};
}

/* Finds the only set of a side with a region of this name. Returns NULL with the error filled. */
static struct object_set *
compare_find(const struct compare_open *open, enum agreement_mask side, char *roi, struct error *error)
{
    struct object_set *found = NULL;
    for (size_t i = 0; i < open->count; i++) {
        struct object_set *set = open->sets[i];
        const struct conf_object wanted = compare_wanted(set, roi, 0);
        if (open->sides[i] != side || object_search_next(&wanted, set, 0) < 0)
            continue;
        if (found) {
            error_set_files(error, -EINVAL, CODE_OBJECT_AMBIGUOUS, found->path, set->path,
                            "%s and %s both have a region \"%s\" of this series.", text_base_name(found->path),
                            text_base_name(set->path), roi);
            return NULL;
        }
        found = set;
    }
    if (!found)
        error_set(error, -EINVAL, CODE_ROI_NOT_FOUND, "no %s of this series has a region \"%s\"",
                  side == AGREEMENT_FOUND ? "object to compare" : "reference", roi);
    return found;
}

static int
compare_named(struct compare_open *open, const char *pair)
{
    struct compare_row *row = compare_add_row(open);
    char *text = strdup(pair), *roi[AGREEMENT_MASKS] = {text, text ? strchr(text, '=') : NULL};
    struct object_set *sets[AGREEMENT_MASKS] = {NULL};
    struct conf_object wanted[AGREEMENT_MASKS];
    bool found = true;
    if (!row || !roi[1]) {
        free(text);
        return -ENOMEM;
    }
    *roi[1]++ = '\0';
    for (int side = 0; side < AGREEMENT_MASKS && found; side++) {
        snprintf(row->regions[side], sizeof row->regions[side], "%s", roi[side]);
        sets[side] = compare_find(open, side, roi[side], &row->error);
        found = sets[side];
        if (found)
            wanted[side] = compare_wanted(sets[side], roi[side], 0);
    }
    if (found)
        compare_pair(open->request, &open->volume, sets, wanted, row);
    free(text);
    return 0;
}

static int
compare_numbers(struct compare_open *open, struct object_set *found, int32_t a, struct object_set *reference, int32_t b)
{
    struct object_set *const sets[AGREEMENT_MASKS] = {found, reference};
    const struct conf_object wanted[AGREEMENT_MASKS] = {compare_wanted(found, NULL, found->items[a].number),
                                                        compare_wanted(reference, NULL, reference->items[b].number)};
    struct compare_row *row = compare_add_row(open);
    if (!row)
        return -ENOMEM;
    compare_pair(open->request, &open->volume, sets, wanted, row);
    return 0;
}

/* Compares the regions of equal names in two sets. Returns their number, or -ENOMEM. */
static int
compare_equal_names(struct compare_open *open, struct object_set *found, struct object_set *reference)
{
    int count = 0;
    for (int32_t a = 0; a < found->item_count; a++)
        for (int32_t b = 0; b < reference->item_count; b++) {
            if (found->items[a].is_background || strcasecmp(found->items[a].name, reference->items[b].name) != 0)
                continue;
            if (compare_numbers(open, found, a, reference, b))
                return -ENOMEM;
            count++;
        }
    return count;
}

/* Returns the only region of a set, or -1. */
static int32_t
compare_only(const struct object_set *set)
{
    int32_t only = -1, count = 0;
    for (int32_t i = 0; i < set->item_count; i++)
        if (!set->items[i].is_background) {
            only = i;
            count++;
        }
    return count == 1 ? only : -1;
}

static int
compare_unnamed(struct compare_open *open, struct error *error)
{
    int rows = 0;
    struct object_set *of[AGREEMENT_MASKS] = {NULL};
    for (size_t i = 0; i < open->count && rows >= 0; i++) {
        of[open->sides[i]] = open->sets[i];
        for (size_t k = 0; k < open->count && rows >= 0 && open->sides[i] == AGREEMENT_FOUND; k++) {
            const int more =
                open->sides[k] == AGREEMENT_REFERENCE ? compare_equal_names(open, open->sets[i], open->sets[k]) : 0;
            rows = more < 0 ? more : rows + more;
        }
    }
    if (rows != 0)
        return rows < 0 ? error_set_system(error, rows, "compare regions") : 0;
    const int32_t a = compare_only(of[0]), b = compare_only(of[1]);
    if (open->count == 2 && a >= 0 && b >= 0)
        return compare_numbers(open, of[0], a, of[1], b) ? error_set_system(error, -ENOMEM, "compare regions") : 0;
    return error_set_files(error, -EINVAL, CODE_ROI_NOT_FOUND, of[0]->path, of[1]->path,
                           "no region has the same name in both. Name pairs with --region FOUND=REFERENCE.");
}

/* ----------------------------------------------------------------------------------- case ---- */

static int
compare_open_sets(struct compare_open *open, const struct compare_object *const *objects, size_t count,
                  struct error *error)
{
    int rc = 0;
    open->sets = calloc(count, sizeof *open->sets);
    open->sides = calloc(count, sizeof *open->sides);
    if (!open->sets || !open->sides)
        return error_set_system(error, -ENOMEM, "compare regions");
    for (; open->count < count && rc == 0; open->count += rc == 0) {
        const struct compare_object *object = objects[open->count];
        open->sides[open->count] = object->side;
        rc = object_set_open(object->kind, object->path, &open->sets[open->count], error);
    }
    return rc;
}

static int
compare_make_volume(struct compare_open *open, const struct headers *series, struct error *error)
{
    if (series)
        return compare_volume_of_images(series, &open->volume, error);
    for (size_t i = 0; i < open->count; i++)
        if (!open->sets[i]->seg)
            return error_set_files(error, -EINVAL, CODE_OBJECT_OTHER_SERIES, open->sets[i]->path, NULL,
                                   "%s has contours, which need the images that they are drawn on: --images DIR.",
                                   text_base_name(open->sets[i]->path));
    return compare_volume_of_segs(open->sets, open->count, &open->volume, error);
}

int
compare_case(const struct compare_request *request, const struct headers *series,
             const struct compare_object *const *objects, size_t count, struct compare_rows *rows, struct error *error)
{
    struct compare_open open = {
        .request = request, .series_uid = series ? series->instances[0]->series_uid : "", .rows = rows};
    int rc = compare_open_sets(&open, objects, count, error);
    if (rc == 0)
        rc = compare_make_volume(&open, series, error);
    if (rc == 0 && request->pair_count == 0)
        rc = compare_unnamed(&open, error);
    for (size_t i = 0; i < request->pair_count && rc == 0; i++)
        if (compare_named(&open, request->pairs[i]))
            rc = error_set_system(error, -ENOMEM, "compare regions");
    compare_volume_free(&open.volume);
    for (size_t i = 0; i < open.count; i++)
        object_set_close(open.sets[i]);
    free(open.sets);
    free(open.sides);
    return rc;
}

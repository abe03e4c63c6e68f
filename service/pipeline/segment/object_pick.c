#include "service/pipeline/segment/object_pick.h"

#include "base/error.h"
#include "base/text.h"
#include "service/pipeline/segment/object_search.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_CHARACTERS = 64 };

/* Adds a segment; the caller must have checked that there is room. */
static struct conf_segment *
pick_add(struct object_picks *picks, const struct conf_segment *segment, const struct object_pick *pick)
{
    const size_t place = picks->pipeline.segment_count++;
    picks->segments[place] = *segment;
    picks->of[place] = *pick;
    return &picks->segments[place];
}

/* ----------------------------------------------------------------- one segment per region ---- */

/* Returns whether a segment has the label: an added one, or another one of the pipeline. */
static bool
pick_is_label(const struct object_picks *picks, const struct object_search *search, const char *label)
{
    const struct conf_pipeline *pipeline = search->segmentation->pipeline;
    bool is = false;
    for (size_t i = 0; i < picks->pipeline.segment_count; i++)
        is |= strcmp(picks->segments[i].label, label) == 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        is |= &pipeline->segments[i] != search->segment && strcmp(pipeline->segments[i].label, label) == 0;
    return is;
}

/* Cuts UTF-8 to a number of characters. */
static void
pick_cut(char *text, size_t characters)
{
    for (; *text; text++)
        if ((*text & 0xC0) != 0x80 && characters-- == 0) {
            *text = '\0';
            return;
        }
}

/* Writes the name of the region, with its number if needed. */
static void
pick_label(const struct object_picks *picks, const struct object_search *search, const struct object_item *item,
           char label[DICOM_LO_SIZE])
{
    char number[32];
    snprintf(label, DICOM_LO_SIZE, "%s", item->name);
    pick_cut(label, LABEL_CHARACTERS);
    if (!label[0])
        snprintf(label, DICOM_LO_SIZE, "Region %" PRId32, item->number);
    for (int again = 1; pick_is_label(picks, search, label); again++) {
        snprintf(number, sizeof number, again > 1 ? " (%" PRId32 ", %d)" : " (%" PRId32 ")", item->number, again);
        snprintf(label, DICOM_LO_SIZE, "%s", item->name);
        pick_cut(label, LABEL_CHARACTERS - strlen(number));
        snprintf(label + strlen(label), DICOM_LO_SIZE - strlen(label), "%s", number);
    }
}

/*
 * Adds a segment for one region. An empty region does not fail the others. A region with a type
 * keeps the codes of its object; a region without a type gets those of the pipeline.
 */
static int
pick_region(struct object_picks *picks, const struct object_search *search, int32_t number, struct error *error)
{
    const struct object_item *item = &search->set->items[number];
    const struct provenance *from = item->provenance;
    const struct object_pick pick = {.set = search->set, .item = number};
    char label[DICOM_LO_SIZE];
    if (picks->pipeline.segment_count == CONF_MAX_SEGMENTS)
        return error_set_files(error, -EINVAL, CODE_ROI_TOO_MANY, search->set->path, NULL,
                               "%s has so many regions that match \"%s\" that the pipeline would have more than %d "
                               "segments. Give segment \"%s\" a narrower object.roi.",
                               text_base_name(search->set->path), search->segment->object.roi, CONF_MAX_SEGMENTS,
                               search->segment->label);
    int rc = object_search_check(search, search->set, number, error);
    if (rc)
        return rc;
    pick_label(picks, search, item, label);
    struct conf_segment *segment = pick_add(picks, search->segment, &pick);
    segment->object.roi = NULL;
    segment->object.number = item->number;
    segment->object.has_number = segment->object.optional = true;
    segment->object.each = false;
    if (item->has_color)
        memcpy(segment->color, item->color, sizeof segment->color);
    picks->of[picks->pipeline.segment_count - 1].provenance = provenance_hold(from);
    if (from->property.value) {
        if (from->category.value)
            segment->category = from->category;
        segment->type = from->property;
        segment->modifier = from->modifier;
        segment->region = from->region;
    }
    segment->label = picks->texts[picks->text_count] = strdup(label);
    if (!segment->label)
        return error_set_system(error, -ENOMEM, "hold the regions");
    picks->text_count++;
    if (object_item_has_type(item, search->segment))
        return 0;
    return error_set_files(error, -EINVAL, CODE_TAG_MISSING, search->set->path, NULL,
                           "%s, segment \"%s\" has no Segmented Property Type. Give segment \"%s\" "
                           "of the pipeline a type.",
                           text_base_name(search->set->path), item->name, search->segment->label);
}

/* --------------------------------------------------------------------------- all segments ---- */

static int
pick_object(struct object_picks *picks, struct object_search *search, struct error *error)
{
    int rc = object_search_run(search, error);
    if (rc)
        return rc;
    struct object_pick pick = {.set = search->set, .item = search->item};
    if (!search->set)
        snprintf(pick.absent, sizeof pick.absent, "%s", search->refusal.message);
    text_utf8_mend_end(pick.absent);
    if (search->segment->object.each && search->set) {
        for (int32_t i = search->item; i >= 0 && rc == 0;
             i = object_search_next(&search->segment->object, search->set, i + 1))
            rc = pick_region(picks, search, i, error);
        return rc;
    }
    struct conf_segment *segment = pick_add(picks, search->segment, &pick);
    /* A segment without a region has neither a name nor codes. */
    segment->hidden |= search->segment->object.each;
    return 0;
}

static int
pick_reserve(const struct segmentation *segmentation, struct object_picks **picks, struct error *error)
{
    *picks = calloc(1, sizeof **picks);
    if (*picks) {
        (*picks)->segments = calloc(CONF_MAX_SEGMENTS, sizeof *(*picks)->segments);
        (*picks)->of = calloc(CONF_MAX_SEGMENTS, sizeof *(*picks)->of);
        (*picks)->texts = calloc(CONF_MAX_SEGMENTS, sizeof *(*picks)->texts);
    }
    if (!*picks || !(*picks)->segments || !(*picks)->of || !(*picks)->texts)
        return error_set_system(error, -ENOMEM, "hold the regions");
    (*picks)->pipeline = *segmentation->pipeline;
    (*picks)->pipeline.segments = (*picks)->segments;
    (*picks)->pipeline.segment_count = 0;
    return object_sets_make(&(*picks)->sets, segmentation->objects, segmentation->object_count, error);
}

int
object_picks_make(struct segmentation *segmentation, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    bool has_objects = false;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        has_objects |= pipeline->segments[i].method == CONF_OBJECT;
    if (!has_objects)
        return 0;
    int rc = pick_reserve(segmentation, &segmentation->picks, error);
    struct object_picks *picks = segmentation->picks;
    for (size_t i = 0; i < pipeline->segment_count && rc == 0; i++) {
        struct object_search search = {
            .segmentation = segmentation, .sets = &picks->sets, .segment = &pipeline->segments[i]};
        if (picks->pipeline.segment_count == CONF_MAX_SEGMENTS)
            rc = error_set(error, -EINVAL, CODE_ROI_TOO_MANY,
                           "pipeline %s has more than %d segments once each region is one. Give a narrower object.roi.",
                           pipeline->name, CONF_MAX_SEGMENTS);
        else if (pipeline->segments[i].method == CONF_OBJECT)
            rc = pick_object(picks, &search, error);
        else
            pick_add(picks, search.segment, &(struct object_pick){0});
    }
    if (rc == 0)
        segmentation->pipeline = &picks->pipeline;
    return rc;
}

void
object_picks_free(struct object_picks *picks)
{
    if (!picks)
        return;
    for (size_t i = 0; i < picks->text_count; i++)
        free(picks->texts[i]);
    for (size_t i = 0; i < picks->pipeline.segment_count && picks->of; i++)
        provenance_release(picks->of[i].provenance);
    object_sets_close(&picks->sets);
    free(picks->texts);
    free(picks->segments);
    free(picks->of);
    free(picks);
}

#include "service/pipeline/segment/correction.h"

#include "base/text.h"
#include "service/pipeline/segment/object_set.h"
#include "service/pipeline/segment/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Returns the next region with the label of the segment, from `item` on; -1: there is no more. */
static int32_t
correction_find(const struct object_set *set, const struct conf_segment *segment, int32_t item)
{
    for (; item < set->item_count; item++)
        if (!set->items[item].is_background && strcmp(set->items[item].name, segment->label) == 0)
            return item;
    return -1;
}

/* Returns 1 if the segment is corrected, 0 if not, or -errno. */
static int
correction_take(const struct object_set *set, struct conf_segment *segment, struct error *error)
{
    const int32_t item = segment->hidden ? -1 : correction_find(set, segment, 0);
    if (item < 0)
        return 0;
    if (correction_find(set, segment, item + 1) >= 0)
        return error_set_files(error, -EINVAL, CODE_ROI_AMBIGUOUS, set->path, NULL,
                               "%s has several regions with the name of segment \"%s\": name only one of them so.",
                               text_base_name(set->path), segment->label);
    *segment = (struct conf_segment){
        .label = segment->label,
        .description = segment->description,
        .method = CONF_OBJECT,
        .object = {.kind = set->rtstruct ? CONF_RTSTRUCT : CONF_SEG,
                   .has_number = true,
                   .number = set->items[item].number,
                   .threshold = 0.5,
                   .own = true,
                   .optional = true,
                   .corrected = true},
        .quantities = segment->quantities,
        .category = segment->category,
        .type = segment->type,
        .modifier = segment->modifier,
        .region = segment->region,
        .color = {segment->color[0], segment->color[1], segment->color[2]},
        .roi_type = segment->roi_type,
        .expect = segment->expect,
    };
    return 1;
}

static int
correction_refuse(const struct conf_pipeline *pipeline, const struct object_set *set, struct error *error)
{
    char wanted[200] = "", names[200] = "";
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if (!pipeline->segments[i].hidden)
            segment_append(wanted, sizeof wanted, "%s\"%s\"", wanted[0] ? ", " : "", pipeline->segments[i].label);
    for (int32_t i = 0; i < set->item_count; i++)
        segment_append(names, sizeof names, "%s\"%s\"", i > 0 ? ", " : "", set->items[i].name);
    text_utf8_mend_end(wanted);
    text_utf8_mend_end(names);
    return error_set_files(error, -EINVAL, CODE_CORRECTION_NO_SEGMENT, set->path, NULL,
                           "%s has no region with the name of a segment (%s); it has %s.", text_base_name(set->path),
                           wanted, names[0] ? names : "none at all");
}

int
correction_make(struct correction *correction, const struct conf_pipeline *pipeline, const char *path,
                struct error *error)
{
    struct object_set *set;
    int rc = object_set_open(CONF_SEG, path, &set, error);
    if (rc && error->code == CODE_SOP_CLASS_UNSUPPORTED)
        rc = object_set_open(CONF_RTSTRUCT, path, &set, error);
    if (rc)
        return rc;
    correction->pipeline = *pipeline;
    correction->segments = calloc(pipeline->segment_count + 1, sizeof *correction->segments);
    correction->pipeline.segments = correction->segments;
    rc = correction->segments ? 0 : error_set_system(error, -ENOMEM, "hold the corrected segments");
    for (size_t i = 0; i < pipeline->segment_count && rc >= 0; i++) {
        correction->segments[i] = pipeline->segments[i];
        rc = correction_take(set, &correction->segments[i], error);
        if (rc == 1)
            segment_append(correction->labels, sizeof correction->labels, "%s%s", correction->labels[0] ? ", " : "",
                           pipeline->segments[i].label);
    }
    text_utf8_mend_end(correction->labels);
    if (rc >= 0)
        rc = correction->labels[0] ? 0 : correction_refuse(pipeline, set, error);
    object_set_close(set);
    return rc;
}

void
correction_release(struct correction *correction)
{
    free(correction->segments);
}

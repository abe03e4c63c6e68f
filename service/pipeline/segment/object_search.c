#include "service/pipeline/segment/object_search.h"

#include "base/error.h"
#include "base/text.h"
#include "service/pipeline/segment/object_figures.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int
object_search_check(const struct object_search *search, const struct object_set *set, int32_t item, struct error *error)
{
    const struct segmentation *segmentation = search->segmentation;
    const struct dicom_instance *image = segmentation->instances[segmentation->stack->planes[0].instance];
    const char *frame = item >= 0 ? set->items[item].frame : set->frame;
    const char *own = image->frame_of_reference_uid;
    bool named = false;
    for (int32_t i = 0; i < set->series_count; i++)
        named |= strcmp(set->series[i], image->series_uid) == 0;
    if (named && frame[0] && own[0] && strcmp(frame, own) != 0)
        return error_set_files(error, -EINVAL, CODE_OBJECT_OTHER_FRAME, set->path, NULL,
                               "%s names this series, but lies in another frame of reference (%s) than its images "
                               "(%s): its points are no places in them. Have it written in the images' own.",
                               text_base_name(set->path), frame, own);
    if (named || (own[0] && strcmp(frame, own) == 0))
        return 0;
    return error_set_files(error, -EINVAL, CODE_OBJECT_OTHER_SERIES, set->path, NULL,
                           "%s was not drawn on this series (%s), nor in its images' frame of "
                           "reference, but on %s%s. Use an object of this series.",
                           text_base_name(set->path), image->series_uid,
                           set->series_count > 0 ? "series " : "none that it names",
                           set->series_count > 0 ? set->series[0] : "");
}

int32_t
object_search_next(const struct conf_object *wanted, const struct object_set *set, int32_t item)
{
    for (; item < set->item_count; item++)
        if (object_item_is_wanted(&set->items[item], wanted))
            return item;
    return -1;
}

static int
object_refuse_absent(const struct object_search *search, const struct object_set *set, struct error *error)
{
    const struct conf_object *wanted = &search->segment->object;
    char which[96], names[200] = "";
    if (wanted->roi)
        snprintf(which, sizeof which, "named \"%s\"", wanted->roi);
    else
        snprintf(which, sizeof which, "with number %d", wanted->number);
    for (int32_t i = 0; i < set->item_count; i++)
        segment_append(names, sizeof names, "%s%" PRId32 " \"%s\"", i > 0 ? ", " : "", set->items[i].number,
                       set->items[i].name);
    text_utf8_mend_end(names);
    return error_set_files(
        error, -EINVAL, CODE_ROI_NOT_FOUND, set->path, NULL, "%s has no region %s for segment \"%s\"; it has %s.%s",
        text_base_name(set->path), which, search->segment->label, names[0] ? names : "none at all",
        wanted->optional || wanted->kind == CONF_SR ? "" : " If patients may lack it, set object.optional.");
}

/*
 * Returns the next matching region, from `item` on, that may be on the images: of a report on 2-D images, one region per
 * image or frame may have the name.
 */
static int32_t
object_next_here(const struct object_search *search, const struct object_set *set, int32_t item)
{
    const struct segmentation *segmentation = search->segmentation;
    const struct object_figures figures = {.instances = segmentation->instances, .stack = segmentation->stack};
    const struct conf_object *wanted = &search->segment->object;
    for (item = object_search_next(wanted, set, item); item >= 0; item = object_search_next(wanted, set, item + 1)) {
        const struct sr_source_item *drawn = set->report ? &set->report->items[item] : NULL;
        bool here = !drawn;
        for (int32_t i = 0; drawn && i < drawn->figure_count && !here; i++)
            here = !object_figure_is_elsewhere(&figures, &drawn->figures[i]);
        if (here)
            return item;
    }
    return -1;
}

/*
 * Returns 0 if the set has the region. Else search->refusal has the reason, or *error if no other
 * object need be checked.
 */
static int
object_judge(struct object_search *search, const struct object_set *set, int32_t *item, struct error *error)
{
    const struct conf_object *wanted = &search->segment->object;
    struct error refusal = {.code = CODE_NONE};
    *item = object_next_here(search, set, 0);
    if (*item < 0)
        *item = object_search_next(wanted, set, 0);
    int rc = object_search_check(search, set, *item, &refusal);
    if (rc) {
        /* An object of this series without the region is the better reason. */
        if (search->refusal.code != CODE_ROI_NOT_FOUND)
            search->refusal = refusal;
        return rc;
    }
    if (set->own && !wanted->own)
        return error_set_files(&search->refusal, -EINVAL, CODE_OWN_RESULT, set->path, NULL,
                               "%s was written by Noctule, which uses its own results only if the "
                               "pipeline allows it: object = { own = true; }.",
                               text_base_name(set->path));
    if (*item < 0)
        return object_refuse_absent(search, set, &search->refusal);
    const int32_t second = wanted->each || wanted->unite ? -1 : object_next_here(search, set, *item + 1);
    if (second < 0)
        return 0;
    const struct object_item *a = &set->items[*item], *b = &set->items[second];
    return error_set_files(error, -EINVAL, CODE_ROI_AMBIGUOUS, set->path, NULL,
                           "%s has several regions that fit segment \"%s\": \"%s\" (%" PRId32 ") and \"%s\" (%" PRId32
                           "); name one as it is, or by its number%s.",
                           text_base_name(set->path), search->segment->label, a->name, a->number, b->name, b->number,
                           wanted->kind == CONF_SR ? "" : ", or set object.each or object.unite");
}

/* Takes the set if it has the region. */
static int
object_consider(struct object_search *search, struct object_set *set, struct error *error)
{
    struct error found = {.code = CODE_NONE};
    int32_t item;
    const bool again = search->set && strcmp(search->set->sop_instance_uid, set->sop_instance_uid) == 0;
    int rc = again ? -EEXIST : object_judge(search, set, &item, &found);
    if (rc == 0 && !search->set) {
        search->set = set;
        search->item = item;
        return 0;
    }
    if (rc == 0)
        error_set_files(&found, -EINVAL, CODE_OBJECT_AMBIGUOUS, search->set->path, set->path,
                        "%s and %s both have the region of segment \"%s\"; name a region that only "
                        "one of them has, or leave one out.",
                        text_base_name(search->set->path), text_base_name(set->path), search->segment->label);
    if (found.code == CODE_NONE)
        return 0;
    if (error)
        *error = found;
    return -EINVAL;
}

/*
 * Skips objects of another kind. An unreadable object is an error: it could be the one that is
 * needed. If no object has the region, and the segment is not optional, the refusal is the error.
 */
int
object_search_run(struct object_search *search, struct error *error)
{
    const size_t count = search->segmentation->object_count;
    const struct conf_object *wanted = &search->segment->object;
    struct error *refusal = &search->refusal;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct object_set *set;
        const bool is_correction = search->segmentation->corrected && i == count - 1;
        if (is_correction != wanted->corrected)
            continue;
        rc = object_sets_get(search->sets, i, wanted->kind, &set, error);
        if (rc == 0 && set)
            rc = object_consider(search, set, error);
    }
    if (rc || search->set)
        return rc;
    if (refusal->code == CODE_NONE)
        error_set(refusal, -EINVAL, CODE_OBJECT_MISSING, "segment \"%s\" is a region of a%s %s, and %s%s.",
                  search->segment->label, wanted->kind == CONF_RTSTRUCT ? "n" : "", object_kind_name(wanted->kind),
                  count > 0 ? "no object that the job has is one" : "the job has none",
                  wanted->optional ? "" : ": noctule run takes one with --object FILE");
    if (wanted->optional && (refusal->code == CODE_ROI_NOT_FOUND || refusal->code == CODE_OBJECT_MISSING))
        return 0;
    if (error)
        *error = *refusal;
    return -EINVAL;
}

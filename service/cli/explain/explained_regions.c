/* explained_regions.c - see explained_regions.h. */
#include "service/cli/explain/explained_regions.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

void
explained_regions_open(struct explained_regions *regions, const char *kind, const char *path)
{
    int number = 0;
    while (strcmp(conf_object_kind_names[number], kind) != 0)
        number++;
    *regions = (struct explained_regions){0};
    object_set_open((enum conf_object_kind)number, path, &regions->set, &regions->error);
}

void
explained_regions_close(struct explained_regions *regions)
{
    object_set_close(regions->set);
    regions->set = NULL;
}

static bool
region_fits(const struct conf_object *wanted, const struct object_item *item)
{
    return !wanted || object_item_is_wanted(item, wanted);
}

int32_t
explained_regions_count(const struct explained_regions *regions, const struct conf_object *wanted)
{
    int32_t count = 0;
    for (int32_t i = 0; regions->set && i < regions->set->item_count; i++)
        count += region_fits(wanted, &regions->set->items[i]);
    return count;
}

enum code
explained_regions_check(const struct explained_regions *regions, const struct conf_segment *segment)
{
    const struct conf_object *wanted = &segment->object;
    const int32_t count = explained_regions_count(regions, wanted);
    if (!regions->set)
        return regions->error.code;
    if (count == 0)
        return CODE_ROI_NOT_FOUND;
    if (count > 1 && !wanted->each && !wanted->unite)
        return CODE_ROI_AMBIGUOUS;
    for (int32_t i = 0; i < regions->set->item_count; i++) {
        const struct object_item *item = &regions->set->items[i];
        if (region_fits(wanted, item) && !object_item_has_type(item, segment))
            return CODE_TAG_MISSING;
    }
    return CODE_NONE;
}

/* Keeps space for the number of the regions left out. */
void
explained_regions_describe(const struct explained_regions *regions,
                           const struct conf_object *wanted, char text[EXPLAINED_TEXT])
{
    enum { ROOM_FOR_REST = 24, LONGEST = 160 };

    const int32_t count = explained_regions_count(regions, wanted);
    size_t used = 0;
    int32_t listed = 0;
    snprintf(text, EXPLAINED_TEXT, "%s", regions->set ? "none" : "");
    if (!regions->set)
        snprintf(text, EXPLAINED_TEXT, "cannot be read: %s", code_name(regions->error.code));
    for (int32_t i = 0; listed < count && i < regions->set->item_count; i++) {
        const struct object_item *item = &regions->set->items[i];
        char one[LONGEST];
        if (!region_fits(wanted, item))
            continue;
        snprintf(one, sizeof one, "%s%" PRId32 " \"%.70s\"%s%.70s%s", listed > 0 ? ", " : "",
                 item->number, item->name, item->finding[0] ? " (" : "", item->finding,
                 item->finding[0] ? ")" : "");
        text_utf8_mend_end(one);
        if (used + strlen(one) + ROOM_FOR_REST >= EXPLAINED_TEXT) {
            snprintf(text + used, EXPLAINED_TEXT - used, " and %" PRId32 " more", count - listed);
            return;
        }
        used += (size_t)snprintf(text + used, EXPLAINED_TEXT - used, "%s", one);
        listed++;
    }
}

void
explained_regions_put(const struct explained_regions *regions, struct json *json)
{
    json_begin_array(json, "regions");
    for (int32_t i = 0; regions->set && i < regions->set->item_count; i++) {
        const struct object_item *item = &regions->set->items[i];
        json_begin_object(json, NULL);
        json_integer(json, "number", item->number);
        json_string(json, "name", item->name);
        json_string(json, "finding", item->finding);
        json_end_object(json);
    }
    json_end_array(json);
}

/*
 * overlay.c - merges the files of @overlay: later settings replace earlier ones.
 *
 * Groups are merged setting by setting. Elements of pipelines, programs, destinations, sources and
 * rules replace the element with the same name, or are added; an empty list removes all elements. Any
 * other list is replaced as a whole. In the end, rules that are off are removed.
 */
#include "config/kinds/kinds.h"

#include <errno.h>
#include <stdlib.h>

static int
copy_scalar(config_setting_t *to, const config_setting_t *from)
{
    switch (config_setting_type(from)) {
    case CONFIG_TYPE_INT:
        return config_setting_set_int(to, config_setting_get_int(from)) ? 0 : -ENOMEM;
    case CONFIG_TYPE_INT64:
        return config_setting_set_int64(to, config_setting_get_int64(from)) ? 0 : -ENOMEM;
    case CONFIG_TYPE_FLOAT:
        return config_setting_set_float(to, config_setting_get_float(from)) ? 0 : -ENOMEM;
    case CONFIG_TYPE_BOOL:
        return config_setting_set_bool(to, config_setting_get_bool(from)) ? 0 : -ENOMEM;
    case CONFIG_TYPE_STRING:
        config_setting_set_string(to, config_setting_get_string(from));
        return config_setting_get_string(to) ? 0 : -ENOMEM;
    default:
        return 0; /* overlay_copy_setting() copies the elements */
    }
}

int
overlay_copy_setting(config_setting_t *into, const config_setting_t *from, const struct copied *as,
                     config_setting_t **copied)
{
    const char *name = config_setting_name(from);
    config_setting_t *copy = config_setting_add(into, name, config_setting_type(from)), *below;
    if (!copy || (name && !config_setting_name(copy)))
        return -ENOMEM;
    copy->line = as->line ? as->line : config_setting_source_line(from) + as->lines_before;
    config_setting_set_hook(copy, (void *)(uintptr_t)as->hook);
    int rc = copy_scalar(copy, from);
    for (unsigned i = 0; rc == 0 && i < (unsigned)config_setting_length(from); i++)
        rc = overlay_copy_setting(copy, config_setting_get_elem(from, i), as, &below);
    *copied = copy;
    return rc;
}

static const char *const named_lists[] = {"pipelines", "destinations", "rules", "sources", "notify", "programs"};

static bool
overlay_is_named(const config_setting_t *setting)
{
    const char *name = config_setting_name(setting);
    for (size_t i = 0; name && i < sizeof(named_lists) / sizeof(named_lists[0]); i++)
        if (strcmp(name, named_lists[i]) == 0)
            return config_setting_is_list(setting) && config_setting_length(setting) > 0;
    return false;
}

/* Returns the name of a list element, or NULL if it has no name. */
static const char *
overlay_name(const config_setting_t *element)
{
    const config_setting_t *name = config_setting_is_group(element) ? config_setting_get_member(element, "name") : NULL;
    return name && config_setting_type(name) == CONFIG_TYPE_STRING ? config_setting_get_string(name) : NULL;
}

/* Finds a name among the first `count` elements. Returns NULL if it is absent, or if name is
 * NULL. */
static config_setting_t *
overlay_find(const config_setting_t *list, unsigned count, const char *name)
{
    for (unsigned i = 0; name && i < count; i++) {
        config_setting_t *element = config_setting_get_elem(list, i);
        const char *other = overlay_name(element);
        if (other && strcmp(other, name) == 0)
            return element;
    }
    return NULL;
}

/* Merges a list. Two elements with one name in one file are both kept, so that the check of names
 * reports them. */
static int
overlay_merge_list(config_setting_t *list, const config_setting_t *from, const struct copied *as)
{
    const unsigned count = (unsigned)config_setting_length(list);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < (unsigned)config_setting_length(from); i++) {
        const config_setting_t *element = config_setting_get_elem(from, i);
        const char *name = overlay_name(element);
        config_setting_t *old = overlay_find(list, count, name), *copy;
        if (!old || overlay_find(from, i, name)) {
            rc = overlay_copy_setting(list, element, as, &copy);
            continue;
        }
        /* Replaces the element at its position, because the order of elements may matter. */
        while (config_setting_length(old) > 0)
            config_setting_remove_elem(old, 0);
        old->line = config_setting_source_line(element) + as->lines_before;
        for (unsigned k = 0; rc == 0 && k < (unsigned)config_setting_length(element); k++)
            rc = overlay_copy_setting(old, config_setting_get_elem(element, k), as, &copy);
    }
    return rc;
}

static int
overlay_merge_group(config_setting_t *group, const config_setting_t *from, const struct copied *as)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < (unsigned)config_setting_length(from); i++) {
        const config_setting_t *setting = config_setting_get_elem(from, i);
        const char *name = config_setting_name(setting);
        config_setting_t *old = config_setting_get_member(group, name), *copy;
        if (old && config_setting_is_group(old) && config_setting_is_group(setting)) {
            rc = overlay_merge_group(old, setting, as);
        } else if (old && config_setting_is_root(group) && overlay_is_named(old) && overlay_is_named(setting)) {
            rc = overlay_merge_list(old, setting, as);
        } else {
            if (old)
                config_setting_remove(group, name);
            rc = overlay_copy_setting(group, setting, as, &copy);
        }
    }
    return rc;
}

/* Returns the list of rules, or NULL if it is absent. */
static config_setting_t *
overlay_rules(const config_t *config)
{
    config_setting_t *rules = config_lookup(config, "rules");
    return rules && config_setting_is_list(rules) ? rules : NULL;
}

static bool
overlay_is_off(const config_setting_t *rule)
{
    int off = 0;
    return config_setting_is_group(rule) && config_setting_lookup_bool(rule, "off", &off) && off;
}

/* Checks rules that are off and have no pipeline: each switches off an earlier rule of its name, so
 * `rules` (may be NULL) must contain that name. */
static int
overlay_check_off(const struct source *source, size_t layer, const config_setting_t *rules, const config_setting_t *own,
                  struct error *error)
{
    const unsigned count = rules ? (unsigned)config_setting_length(rules) : 0;
    for (unsigned i = 0; own && i < (unsigned)config_setting_length(own); i++) {
        const config_setting_t *rule = config_setting_get_elem(own, i);
        const char *name = overlay_name(rule);
        if (!overlay_is_off(rule) || config_setting_get_member(rule, "pipeline") || overlay_find(rules, count, name))
            continue;
        char place[1024];
        source_place(source, source->layers[layer].lines + config_setting_source_line(rule), place, sizeof(place));
        return error_set(error, -EINVAL, CODE_NONE,
                         "%s: there is no earlier rule \"%s\" to switch off: correct the name or remove the rule",
                         place, name ? name : "");
    }
    return 0;
}

int
overlay_record_places(const struct source *source, const config_setting_t *root, struct conf_findings *all)
{
    for (size_t i = 0; i < sizeof(named_lists) / sizeof(named_lists[0]); i++) {
        const config_setting_t *list = config_setting_get_member(root, named_lists[i]);
        const size_t count = list ? (size_t)config_setting_length(list) : 0;
        char **places = realloc(all->places, (all->place_count + count + 1) * sizeof(*places));
        if (!places)
            return -ENOMEM;
        all->places = places;
        for (size_t k = 0; k < count; k++) {
            char place[1024];
            const config_setting_t *element = config_setting_get_elem(list, (unsigned)k);
            source_place(source, config_setting_source_line(element), place, sizeof(place));
            places[all->place_count] = strdup(place);
            if (!places[all->place_count])
                return -ENOMEM;
            all->place_count++;
        }
    }
    return 0;
}

int
overlay_merge(const struct source *source, config_t *config, struct error *error)
{
    int rc = overlay_check_off(source, 0, NULL, overlay_rules(config), error);
    for (size_t i = 1; rc == 0 && i < source->layer_count; i++) {
        config_t layer;
        config_init(&layer);
        rc = read_parse_layer(source, i, &layer, error);
        if (rc == 0)
            rc = overlay_check_off(source, i, overlay_rules(config), overlay_rules(&layer), error);
        if (rc == 0 && overlay_merge_group(config_root_setting(config), config_root_setting(&layer),
                                           &(struct copied){.lines_before = source->layers[i].lines}) < 0)
            rc = source_out_of_memory(error);
        config_destroy(&layer);
    }
    config_setting_t *rules = overlay_rules(config);
    unsigned i = rules ? (unsigned)config_setting_length(rules) : 0;
    while (i-- > 0)
        if (overlay_is_off(config_setting_get_elem(rules, i)))
            config_setting_remove_elem(rules, i);
    return rc;
}

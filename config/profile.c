/*
 * profile.c - adds the settings of a named profile to a group: `profile = "ibsi-c"`.
 *
 * A profile is a file of settings. It is searched like an include: profiles/NAME.conf in the folder
 * of the configuration, then in the installed data files. Its settings are added to the group
 * before any row is read, so that the same defaults, limits and checks apply. Settings of the group
 * itself win. A setting of the profile that the group then cannot use is dropped (profile_added).
 */
#include "config/kinds/kinds.h"

#include <errno.h>
#include <stdlib.h>

static const char of_profile[] = "of a profile"; /* the hook of settings from a profile */

bool
profile_added(const config_setting_t *setting)
{
    return config_setting_get_hook(setting) == of_profile;
}

/* Adds the settings of `from` that the group does not have, neither itself nor as an
 * alternative. */
static int
profile_merge(const struct option_reader *reader, const struct option_section *section, config_setting_t *group,
              const config_setting_t *from, const config_setting_t *named)
{
    const struct copied as = {.line = config_setting_source_line(named), .hook = of_profile};
    int rc = 0;
    for (unsigned i = 0; i < (unsigned)config_setting_length(from) && !read_stops(rc); i++) {
        const config_setting_t *setting = config_setting_get_elem(from, i);
        const struct option_row *row = option_find(section, config_setting_name(setting));
        if (!row || row->kind == &option_profile) {
            rc =
                read_worse(rc, read_fail(reader, named, "%s cannot be set by a profile", config_setting_name(setting)));
            continue;
        }
        config_setting_t *given = read_given(section, row, group), *copy;
        if (!given)
            rc = read_worse(rc, overlay_copy_setting(group, setting, &as, &copy));
        else if (row->kind == &option_part && config_setting_is_group(given) && config_setting_is_group(setting))
            rc = read_worse(rc, profile_merge(reader, row->section, given, setting, named));
    }
    return rc;
}

int
profile_apply(const struct option_reader *reader, const struct option_section *section, config_setting_t *group)
{
    char *name = NULL, *file, *path;
    const struct option_row *row = option_find(section, "profile");
    config_setting_t *named = row && row->kind == &option_profile ? config_setting_get_member(group, row->name) : NULL;
    if (!named)
        return 0;
    int rc = read_text(reader, row, named, &name);
    if (rc < 0 || asprintf(&file, "profiles/%s.conf", name) < 0) {
        free(name);
        return rc < 0 ? rc : -ENOMEM;
    }
    struct error error = {0};
    struct source source = {0};
    config_t config;
    config_init(&config);
    path = source_resolve(reader->source, config_setting_source_line(named), file);
    rc = path ? source_read_file(&source, path, &error) : -ENOMEM;
    if (rc == 0)
        rc = read_parse_source(&source, &config, &error);
    if (rc == 0)
        rc = profile_merge(reader, section, group, config_root_setting(&config), named);
    else if (rc != -ENOMEM)
        rc = read_fail(reader, named, "cannot be read: %s; noctule profiles lists the installed profiles",
                       error.message);
    config_destroy(&config);
    source_release(&source);
    free(path);
    free(file);
    free(name);
    return rc;
}

/* profile_apply() has read it. It is never written, but its settings are. */
const struct option_kind option_profile = {.type = "string", .limits = " characters"};

/* copy.c - copies settings between libconfig trees, which libconfig cannot do itself (kinds.h). */
#include "config/kinds/kinds.h"

#include <errno.h>

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
        return 0; /* copy_setting() copies the elements */
    }
}

int
copy_setting(config_setting_t *into, const config_setting_t *from, const struct copied *as,
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
        rc = copy_setting(copy, config_setting_get_elem(from, i), as, &below);
    *copied = copy;
    return rc;
}

/*
 * geometry_names.c - the list of groups, and their names.
 */
#include "base/text.h"
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room in a name for the number of the last of LIMIT_STACKS equal names. */
#define NAME_SUFFIX_SIZE sizeof(" #4096")

int
geometry_add_group(struct grouping *grouping, const struct group *group)
{
    if (grouping->group_count == LIMIT_STACKS)
        return -E2BIG;
    if (grouping->group_count == grouping->group_room) {
        const int32_t room = grouping->group_room ? 2 * grouping->group_room : 8;
        struct group *groups = reallocarray(grouping->groups, (size_t)room, sizeof(*groups));
        if (!groups)
            return -ENOMEM;
        grouping->groups = groups;
        grouping->group_room = room;
    }
    grouping->groups[grouping->group_count++] = *group;
    return 0;
}

static void
name_append(char *text, size_t size, const char *separator, const char *prefix, const char *value)
{
    const size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s%s", length ? separator : "", prefix, value);
    text_utf8_mend_end(text);
}

void
geometry_extend_name(struct group *group, const char *prefix, const char *value, const char *what)
{
    const size_t length = strlen(group->name);
    name_append(group->name, sizeof(group->name) - NAME_SUFFIX_SIZE, ", ", prefix, value[0] ? value : "none");
    /* '#' is reserved for geometry_finish_names. */
    for (char *c = group->name + length; (c = strchr(c, '#'));)
        *c = '.';
    name_append(group->split_by, sizeof(group->split_by), "; ", "", what);
}

static int
compare_group(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    const int order = strverscmp(a->name, b->name);
    return order ? order : geometry_compare_identity(&a->planes[0], &b->planes[0]);
}

void
geometry_finish_names(struct grouping *grouping)
{
    struct group *groups = grouping->groups;
    const size_t count = (size_t)grouping->group_count;
    qsort(groups, count, sizeof(*groups), compare_group);
    char last[GEOMETRY_NAME_SIZE] = "";
    int32_t same = 0;
    for (size_t i = 0; i < count; i++) {
        same = i > 0 && strcmp(last, groups[i].name) == 0 ? same + 1 : 1;
        memcpy(last, groups[i].name, sizeof(last));
        const size_t length = strlen(groups[i].name);
        if (same > 1)
            snprintf(groups[i].name + length, sizeof(groups[i].name) - length, " #%d", same);
    }
    qsort(groups, count, sizeof(*groups), compare_group);
}

/*
 * geometry_times.c - counts the temporal positions that are present of those announced: see
 * "Temporal positions" in geometry.h.
 */
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the identifiers ---- */

static int
compare_identifier(const void *left, const void *right)
{
    return strverscmp(*(const char *const *)left, *(const char *const *)right);
}

/* Finds the identifiers of all images, each once, sorted. Returns their number. */
static int32_t
find_identifiers(const struct grouping *grouping, const char **found)
{
    int32_t count = 0, kept = 0;
    for (int32_t i = 0; i < grouping->image_count; i++) {
        const char *text = grouping->planes[i].frame->temporal;
        if (text[0] && (count == 0 || strcmp(found[count - 1], text) != 0))
            found[count++] = text;
    }
    qsort(found, (size_t)count, sizeof(*found), compare_identifier);
    for (int32_t i = 0; i < count; i++)
        if (i == 0 || strcmp(found[kept - 1], found[i]) != 0)
            found[kept++] = found[i];
    return kept;
}

/* Adds "4" or "4 to 16" to a list. Returns false if it does not fit. */
static bool
lacking_add(char lacking[GEOMETRY_LACKING_SIZE], int32_t first, int32_t last)
{
    const size_t used = strlen(lacking);
    char range[32];
    snprintf(range, sizeof(range), first == last ? "%d" : "%d to %d", first, last);
    if (used + strlen(range) + sizeof(", ...") > GEOMETRY_LACKING_SIZE) {
        strcpy(lacking + used, ", ...");
        return false;
    }
    sprintf(lacking + used, "%s%s", used ? ", " : "", range);
    return true;
}

/* Lists the missing numbers of 1 .. announced; "" if the identifiers are other texts. */
static void
find_lacking(struct grouping *grouping, const char *const *found, int32_t count)
{
    int32_t next = 1; /* lowest number not yet found */
    for (int32_t i = 0; i < count; i++) {
        char *end;
        const long number = strtol(found[i], &end, 10);
        if (*end || number < next || number > grouping->times_announced) {
            grouping->times_lacking[0] = '\0';
            return;
        }
        if (number > next && !lacking_add(grouping->times_lacking, next, (int32_t)number - 1))
            return;
        next = (int32_t)number + 1;
    }
    if (next <= grouping->times_announced)
        lacking_add(grouping->times_lacking, next, grouping->times_announced);
}

int
geometry_count_times(struct grouping *grouping)
{
    for (int32_t i = 0; i < grouping->image_count; i++) {
        const struct plane *plane = &grouping->planes[i];
        if (plane->instance->temporal_positions > grouping->times_announced) {
            grouping->times_announced = plane->instance->temporal_positions;
            grouping->times_of = plane;
        }
    }
    if (grouping->times_announced <= 1) {
        grouping->times_announced = 0;
        return 0;
    }
    const char **found = calloc((size_t)grouping->image_count, sizeof(*found));
    if (!found)
        return -ENOMEM;
    const int32_t identifiers = find_identifiers(grouping, found);
    grouping->times_named = identifiers >= 2;
    if (grouping->times_named && identifiers < grouping->times_announced)
        find_lacking(grouping, found, identifiers);
    free(found);
    grouping->times = grouping->times_named ? identifiers : 0;
    /* If there are no identifiers, count the stacks that differ from the first only in time. */
    const struct plane *first = NULL;
    for (int32_t i = 0; i < grouping->group_count && !grouping->times_named; i++) {
        if (grouping->groups[i].excluded != CODE_NONE)
            continue;
        const struct plane *plane = &grouping->groups[i].planes[0];
        first = first ? first : plane;
        grouping->times += plane->orientation == first->orientation &&
                           strcmp(plane->frame->echo, first->frame->echo) == 0 &&
                           strcmp(plane->frame->component, first->frame->component) == 0;
    }
    return 0;
}

/* Checks identifiers only. Senders do not number the volumes of one series and skip numbers. But
 * one volume may be a complete series, and volumes without numbers may be all that exist. */
bool
geometry_check_times(struct verdict *verdict, const struct grouping *grouping, const struct group *group)
{
    if (!grouping->times_named || grouping->times >= grouping->times_announced || !group->planes[0].frame->temporal[0])
        return false;
    char which[GEOMETRY_LACKING_SIZE + 80] = "";
    if (grouping->times_lacking[0])
        snprintf(which, sizeof(which), "; missing: Temporal Position Identifier (0020,0100) %s",
                 grouping->times_lacking);
    geometry_refuse(verdict, CODE_INCOMPLETE_SERIES, grouping->times_of, NULL,
                    "There are %d of the %d temporal positions that Number of Temporal Positions "
                    "(0020,0105) of %s announces%s.",
                    grouping->times, grouping->times_announced, geometry_plane_name(grouping->times_of), which);
    return true;
}

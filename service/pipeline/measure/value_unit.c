/* value_unit.c - see value_unit.h. */
#include "service/pipeline/measure/value_unit.h"

#include <stdio.h>
#include <string.h>

/* Of all planes: a stack whose planes differ has no unit. */
static const char *
common_unit(struct dicom_instance *const *instances, const struct geometry_stack *stack)
{
    const char *unit = instances[stack->planes[0].instance]->value_unit;
    for (int32_t z = 1; z < stack->plane_count; z++)
        if (strcmp(instances[stack->planes[z].instance]->value_unit, unit) != 0)
            return "";
    return unit;
}

void
texture_value_unit(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                   int power, char unit[FEATURE_TERM])
{
    const char *base = power == 0 ? "" : common_unit(instances, stack);
    if (power == 0 || base[0] == '\0')
        snprintf(unit, FEATURE_TERM, "1");
    else if (power == 1)
        snprintf(unit, FEATURE_TERM, "%s", base);
    else
        snprintf(unit, FEATURE_TERM, strchr(base, '/') ? "(%s)%d" : "%s%d", base, power);
}

const char *
value_unit_spoken(const char *unit)
{
    if (strcmp(unit, "1") == 0)
        return "";
    return strcmp(unit, "[hnsf'U]") == 0 ? "HU" : unit;
}

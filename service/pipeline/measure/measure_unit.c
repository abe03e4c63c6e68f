/* measure_unit.c - see measure.h. */
#include "service/pipeline/measure/measure.h"

#include "dicom/read/suv/suv.h"

#include <stdio.h>
#include <string.h>

/* A stack whose planes differ in their unit has no unit. */
const char *
value_unit_of(struct dicom_instance *const *instances, const struct geometry_stack *stack)
{
    const char *unit = instances[stack->planes[0].instance]->value_unit;
    for (int32_t z = 1; z < stack->plane_count; z++)
        if (strcmp(instances[stack->planes[z].instance]->value_unit, unit) != 0)
            return "1";
    return unit[0] ? unit : "1";
}

void
value_unit_raise(const char *base, int power, char unit[FEATURE_TERM])
{
    if (power == 0 || strcmp(base, "1") == 0)
        snprintf(unit, FEATURE_TERM, "1");
    else if (power == 1)
        snprintf(unit, FEATURE_TERM, "%s", base);
    else
        snprintf(unit, FEATURE_TERM, strchr(base, '/') ? "(%s)%d" : "%s%d", base, power);
}

/* UCUM is read from the left. */
void
value_unit_times(const char *base, int power, const char *own, char unit[FEATURE_TERM])
{
    value_unit_raise(base, power, unit);
    if (own[0] && strcmp(unit, "1") == 0)
        snprintf(unit, FEATURE_TERM, "%s", own);
    else if (own[0])
        snprintf(unit + strlen(unit), FEATURE_TERM - strlen(unit), ".%s", own);
}

const char *
value_unit_spoken(const char *unit)
{
    if (strcmp(unit, "1") == 0)
        return "";
    for (size_t i = 0; i < SUV_UNIT_COUNT; i++)
        if (strcmp(unit, suv_unit_rows[i].ucum) == 0)
            return suv_unit_rows[i].spoken;
    return strcmp(unit, "[hnsf'U]") == 0 ? "HU" : unit;
}

/* describe.c - see describe.h. */
#include "service/pipeline/results/describe.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *
unit_name(enum conf_unit unit)
{
    switch (unit) {
    case CONF_VOXEL:
        return "voxel";
    case CONF_MM:
        return "mm";
    case CONF_FRACTION:
        break;
    }
    return "fraction";
}

static const char *
shape_name(enum conf_shape_kind kind)
{
    switch (kind) {
    case CONF_SPHERE:
        return "sphere";
    case CONF_ELLIPSOID:
        return "ellipsoid";
    case CONF_BOX:
        break;
    }
    return "box";
}

/* Adds to the text what there is room for. */
__attribute__((format(printf, 3, 4))) static void
append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + length, size - length, format, values);
    va_end(values);
}

void
describe_level_set(const struct conf_segment *segment, char text[DESCRIBE_SIZE])
{
    snprintf(text, DESCRIBE_SIZE, "range %g..%g", segment->range[0], segment->range[1]);
    for (size_t i = 0; i < segment->shape_count; i++) {
        const struct conf_shape *shape = &segment->shapes[i];
        const double *c = shape->center, *r = shape->radius;
        append(text, DESCRIBE_SIZE, "; %s center %g,%g,%g %s radius %g,%g,%g %s",
               shape_name(shape->kind), c[0], c[1], c[2], unit_name(shape->center_unit), r[0], r[1],
               r[2], unit_name(shape->radius_unit));
    }
    if (segment->from)
        append(text, DESCRIBE_SIZE, "; from the object of segment %s", segment->from);
}

static const char *
origin(const struct conf_estimable *number)
{
    return number->given ? "" : " (measured)";
}

void
describe_fuzzy(const struct conf_segment *segment, const struct kernels_fuzzy_object *object,
               const struct fuzzy_gaussians *gaussians, bool relative, char text[DESCRIBE_SIZE])
{
    const struct conf_estimable *mean = &gaussians->mean, *sigma = &gaussians->sigma,
                                *homogeneity = &gaussians->homogeneity_sigma;
    snprintf(text, DESCRIBE_SIZE,
             "object mean %.9g%s, sigma %.9g%s; homogeneity sigma %.9g%s; weight %g; threshold "
             "%g%s; seeds in voxels",
             mean->value, origin(mean), sigma->value, origin(sigma), homogeneity->value,
             origin(homogeneity), segment->weight, segment->threshold,
             relative ? "; relative connectedness" : "");
    for (size_t i = 0; i < object->seed_count; i++) {
        const struct kernels_voxel *seed = &object->seeds[i];
        append(text, DESCRIBE_SIZE, " %" PRId64 ",%" PRId64 ",%" PRId64, seed->x, seed->y, seed->z);
    }
}

bool
describe_measured(const char *label, const struct fuzzy_gaussians *gaussians, char *text,
                  size_t size)
{
    const struct {
        const char *name;
        const struct conf_estimable *number;
    } numbers[] = {{"mean", &gaussians->mean},
                   {"sigma", &gaussians->sigma},
                   {"homogeneity sigma", &gaussians->homogeneity_sigma}};

    const char *between = "";
    if (gaussians->measured_voxels == 0)
        return false;
    snprintf(text, size, "%s: measured ", label);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!numbers[i].number->given) {
            append(text, size, "%s%s %.6g", between, numbers[i].name, numbers[i].number->value);
            between = ", ";
        }
    return true;
}

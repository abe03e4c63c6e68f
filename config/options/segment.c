/*
 * segment.c - options of a pipeline's segments, those of the methods from methods.def.
 */
#include "config/options/sections.h"

/* Centres may lie outside the volume (mm), but not where arithmetic loses voxels. */
#define FAR 1e6

static const char *const shape_choices[] = {"sphere", "ellipsoid", "box", NULL};
const char *const conf_method_names[CONF_METHODS + 1] = {
#define METHOD(NAME, name, word) word,
#include "base/methods.def"
};

static bool
check_shape(const void *object, const struct option_spot *spot)
{
    const struct conf_shape *shape = object;
    const double *r = shape->radius;
    bool round = r[0] <= r[1] && r[1] <= r[2] && r[2] <= r[0];
    if (shape->kind == CONF_SPHERE && !round)
        return option_refuse(spot, shape->radius_unit == CONF_MM ? "radius_mm" : "radius_voxels",
                             "a sphere has one radius; use kind = \"ellipsoid\"");
    return true;
}

static bool
check_segment(const void *object, const struct option_spot *spot)
{
    const struct conf_segment *segment = object;
    if (segment->range[0] > segment->range[1])
        return option_refuse(spot, "range", "the lower end %g is above the upper end %g",
                             segment->range[0], segment->range[1]);
    if (segment->method == CONF_LEVEL_SET && segment->shape_count == 0 && !segment->from)
        return option_refuse(spot, "shapes", "a level set starts from shapes, or from a segment");
    if (segment->threshold >= 1)
        return option_refuse(spot, "threshold", "nothing is connected more strongly than 1");
    return true;
}

static const struct option_row code_rows[] = {
    {"code", &option_text, AT(struct coded_concept, value), NULL, LIMITS(1, 16),
     .form = &form_dicom, .help = "Code Value (0008,0100)"},
    {"scheme", &option_text, AT(struct coded_concept, scheme), NULL, LIMITS(1, 16),
     .form = &form_dicom,
     .help = "Coding Scheme Designator (0008,0102): SCT, DCM, FMA, 99... for your own"},
    {"meaning", &option_text, AT(struct coded_concept, meaning), NULL, LIMITS(1, 64),
     .form = &form_dicom, .help = "Code Meaning (0008,0104)"},
};

static const struct option_section code_section = {ROWS(code_rows),
                                                   .size = sizeof(struct coded_concept)};

#define CENTER(name_, unit_, low, high, help_)                                                     \
    {                                                                                              \
        (name_), &option_numbers, AT(struct conf_shape, center), "", LIMITS(low, high),            \
            .array = {.count = 3}, EITHER(struct conf_shape, center_unit, unit_), .help = (help_)  \
    }

static const struct option_row center_rows[] = {
    CENTER("voxel", CONF_VOXEL, -FAR, FAR, "column, row and slice, from 0, slices ascending"),
    CENTER("mm", CONF_MM, -FAR, FAR, "patient coordinates, LPS"),
    CENTER("fraction", CONF_FRACTION, -10, 10,
           "of the volume: 0 is the centre of the first voxel, 1 that of the last"),
};

static const struct option_section center_section = {ROWS(center_rows),
                                                     .size = sizeof(struct conf_shape)};

#define RADIUS(name_, unit_, help_)                                                                \
    {                                                                                              \
        (name_), &option_numbers, AT(struct conf_shape, radius), "", LIMITS(1e-3, FAR),            \
            .array = {.count = 3, .uniform = true}, EITHER(struct conf_shape, radius_unit, unit_), \
            .help = (help_)                                                                        \
    }

static const struct option_row shape_rows[] = {
    {"kind", &option_choice, AT(struct conf_shape, kind), "\"sphere\"", .choices = shape_choices,
     .help = "the form of the start region"},
    {"center", &option_group, .offset = 0, NULL, .section = &center_section,
     .help = "exactly one of voxel, mm and fraction"},
    RADIUS("radius_voxels", CONF_VOXEL,
           "radius, or half of a box's side, in voxels: a number, or three (x, y, z)"),
    RADIUS("radius_mm", CONF_MM, "the same in mm; exactly one of the two is given"),
};

static const struct option_section shape_section = {
    ROWS(shape_rows), .size = sizeof(struct conf_shape), .check = check_shape};

#define SEED(name_, unit_, low, high, help_)                                                       \
    {                                                                                              \
        (name_), &option_numbers, AT(struct conf_seed, at), "", LIMITS(low, high),                 \
            .array = {.count = 3}, EITHER(struct conf_seed, unit, unit_), .help = (help_)          \
    }

static const struct option_row seed_rows[] = {
    SEED("voxel", CONF_VOXEL, 0, FAR, "column, row and slice, from 0, slices ascending"),
    SEED("mm", CONF_MM, -FAR, FAR, "patient coordinates, LPS"),
    SEED("fraction", CONF_FRACTION, 0, 1,
         "of the volume: 0 is the centre of the first voxel, 1 that of the last"),
};

static const struct option_section seed_section = {ROWS(seed_rows),
                                                   .size = sizeof(struct conf_seed)};

static const struct option_row segment_rows[] = {
    {"label", &option_text, AT(struct conf_segment, label), NULL, LIMITS(1, 64),
     .form = &form_dicom, .help = "Segment Label (0062,0005); unique in its pipeline"},
    {"description", &option_text, AT(struct conf_segment, description), "\"\"", LIMITS(0, 1024),
     .help = "Segment Description (0062,0006)"},
    {"method", &option_choice, AT(struct conf_segment, method), "\"level-set\"",
     .choices = conf_method_names, .help = "how the segment is found"},
#define METHOD_OPTION(methods, member, ...)                                                        \
    {__VA_ARGS__, .uses = (const struct option_use[]){{"method", (methods)}, {NULL, 0}}},
#include "base/methods.def"
    {"category", &option_group, AT(struct conf_segment, category),
     "{ code = \"123037004\"; scheme = \"SCT\"; meaning = \"Anatomical Structure\"; }",
     .section = &code_section, .help = "Segmented Property Category Code Sequence (0062,0003)"},
    {"type", &option_group, AT(struct conf_segment, type), NULL, .section = &code_section,
     .help = "Segmented Property Type Code Sequence (0062,000F)"},
    {"modifier", &option_group, AT(struct conf_segment, modifier), "", .section = &code_section,
     .help = "Segmented Property Type Modifier Code Sequence (0062,0011): left, right, ..."},
    {"region", &option_group, AT(struct conf_segment, region), "", .section = &code_section,
     .help = "Anatomic Region Sequence (0008,2218), where the type does not say it"},
    {"color", &option_numbers, AT(struct conf_segment, color), "[ 0.9, 0.3, 0.2 ]", LIMITS(0, 1),
     .array = {.count = 3}, .help = "red, green and blue that viewers are told to show it in"},
};

const struct option_section option_segment = {
    ROWS(segment_rows), .size = sizeof(struct conf_segment), .check = check_segment};

/*
 * option_segment.c - the options of a pipeline's segments; with those of its method.
 */
#include "config/options/option_sections.h"

#include "base/quantities.h"

/* Centres may lie outside the volume (mm), but not so far that arithmetic loses whole voxels. */
#define FAR 1e6

static const char *const auto_choices[] = {"none", "largest", "center", "highest", "lowest", NULL};
static const char *const fill_choices[] = {"slices", "volume", NULL};
const char *const option_space_choices[] = {"volume", "slice", NULL};
static const char *const directions_choices[] = {"26", "axial-16", NULL};
static const char *const which_choices[] = {"right", "left", NULL};
static const char *const shape_choices[] = {"sphere", "ellipsoid", "box", NULL};
const char *const conf_method_names[CONF_METHODS + 1] = {
#define METHOD(NAME, name, word) word,
#include "base/methods.def"
};

static void
check_shape(const void *object, const struct option_spot *spot)
{
    const struct conf_shape *shape = object;
    const double *r = shape->radius;
    bool round = r[0] <= r[1] && r[1] <= r[2] && r[2] <= r[0];
    if (shape->kind == CONF_SPHERE && !round && !LOST(spot, shape->kind) && !LOST(spot, shape->radius))
        option_refuse(spot, shape->radius_unit == CONF_MM ? "radius_mm" : "radius_voxels",
                      "a sphere has one radius; use kind = \"ellipsoid\"");
}

static void
check_seeds(const struct conf_segment *segment, const struct option_spot *spot)
{
    const bool given = segment->seed_count > 0 || segment->from;
    if (LOST(spot, segment->automatic) || LOST(spot, segment->seeds) || LOST(spot, segment->from))
        return;
    if (segment->automatic == CONF_AUTO_NONE && !given)
        option_refuse(spot, "seeds", "fuzzy connectedness requires a start: give seeds, from or auto");
    if (segment->automatic != CONF_AUTO_NONE && given)
        option_refuse(spot, "auto", "is not allowed with seeds or from: remove one of them");
    if (segment->automatic == CONF_AUTO_LARGEST && !given && segment->within_count == 0 && !LOST(spot, segment->within))
        option_refuse(spot, "auto", "\"largest\" requires within, which contains the component");
}

static void
check_start(const struct conf_segment *segment, const struct option_spot *spot)
{
    const bool given = segment->shape_count > 0 || segment->from;
    if (LOST(spot, segment->automatic) || LOST(spot, segment->shapes) || LOST(spot, segment->from))
        return;
    if (segment->automatic == CONF_AUTO_NONE && !given)
        option_refuse(spot, "shapes", "a level set requires a start: give shapes, from or auto");
    if (segment->automatic != CONF_AUTO_NONE && given)
        option_refuse(spot, "auto", "is not allowed with shapes or from: remove one of them");
    if (segment->automatic == CONF_AUTO_LARGEST && segment->range.relative == CONF_SIGMA && !segment->range.of &&
        !LOST(spot, segment->range))
        option_refuse(spot, "range",
                      "sigma refers to the start region, which auto finds by the range: name a segment in of");
}

/* Checks the options of a range that is compared with filtered values. */
static void
check_smooth(const struct conf_segment *segment, const struct option_spot *spot)
{
    const bool refines = segment->refine != NULL;
    if (LOST(spot, segment->smooth_mm) || LOST(spot, segment->range))
        return;
    if (segment->smooth_mm > 0 && segment->range.relative != CONF_ABSOLUTE)
        option_refuse(spot, "smooth_mm", "requires a range of two numbers");
    if (refines && segment->smooth_mm <= 0)
        option_refuse(spot, "refine", "requires smooth_mm: the filtered values decide on the outline");
    if (refines && (segment->from || segment->shape_count > 0))
        option_refuse(spot, "refine", "is not allowed with from and shapes: use within");
    if (refines && segment->grid_mm > 0)
        option_refuse(spot, "grid_mm",
                      "is not allowed with refine, which finds the outline in the voxels of the images");
}

static void
check_grid(const struct conf_segment *segment, const struct option_spot *spot)
{
    if (segment->grid_mm <= 0)
        return;
    if (segment->method == CONF_OBJECT || segment->method == CONF_PROGRAM)
        option_refuse(spot, "grid_mm", "is not allowed with method = \"%s\", whose regions are of the images",
                      conf_method_names[segment->method]);
    if (segment->connectedness_map)
        option_refuse(spot, "connectedness_map", "is not allowed with grid_mm: remove one of the two");
}

static void
check_method(const struct conf_segment *segment, const struct option_spot *spot)
{
    static const unsigned of_from = 1u << CONF_SECTIONS | 1u << CONF_LEAK | 1u << CONF_SIDE | 1u << CONF_SLICES;
    const struct conf_range *range = &segment->range;
    if (LOST(spot, segment->method))
        return;
    if (range->relative == CONF_SIGMA && segment->method != CONF_LEVEL_SET && !range->of && !LOST(spot, *range))
        option_refuse(spot, "range",
                      "sigma refers to the start region, which only level sets have: name a segment in of");
    if (segment->method == CONF_LEVEL_SET)
        check_start(segment, spot);
    if (segment->method == CONF_FUZZY)
        check_seeds(segment, spot);
    if (segment->method == CONF_RANGE)
        check_smooth(segment, spot);
    if ((of_from >> segment->method & 1) && !segment->from && !LOST(spot, segment->from))
        option_refuse(spot, "from", "is missing: method = \"%s\" works on a segment",
                      conf_method_names[segment->method]);
    check_grid(segment, spot);
}

/* A segment of a SEG takes its codes from there. An optional one needs its own type. */
static bool
takes_type_of_seg(const struct conf_segment *segment)
{
    return segment->method == CONF_OBJECT && segment->object.kind == CONF_SEG && !segment->object.optional &&
           !segment->object.unite;
}

static void
check_segment(const void *object, const struct option_spot *spot)
{
    const struct conf_segment *segment = object;
    check_method(segment, spot);
    if (segment->threshold >= 1)
        option_refuse(spot, "threshold", "must be below 1: no voxel is connected more strongly than 1");
    if (segment->hidden && segment->connectedness_map)
        option_refuse(spot, "connectedness_map", "a hidden segment is not written: remove one of the two");
    if (segment->hidden && segment->quantities)
        option_refuse(spot, "quantities", "a hidden segment is not measured: remove one of the two");
    if (!segment->hidden && !segment->type.value && !takes_type_of_seg(segment) && !LOST(spot, segment->hidden) &&
        !LOST(spot, segment->type) && !LOST(spot, segment->method) && !LOST(spot, segment->object))
        option_refuse(spot, "type", "is missing; only hidden segments and segments of a SEG object may omit it");
}

static void
check_range(const void *object, const struct option_spot *spot)
{
    const struct conf_range *range = object;
    if (LOST(spot, *range))
        return;
    if (range->percentile[0] > range->percentile[1])
        option_refuse(spot, "percentile", "%g is above %g", range->percentile[0], range->percentile[1]);
    if (range->relative != CONF_OTSU && range->has_class)
        option_refuse(spot, "class", "is only allowed with otsu");
    if (range->relative == CONF_OTSU && !range->has_class)
        option_refuse(spot, "class", "is missing: give the number of the class, 1 is the lowest");
    if (range->relative == CONF_OTSU && range->otsu_class > range->otsu)
        option_refuse(spot, "class", "there is no class %d of %d", range->otsu_class, range->otsu);
}

/* Whether the connectivity applies, by kind. */
static const bool step_has_components[] = {
#define MASK_STEP(NAME, AMOUNT, components, text) components,
#include "base/mask_steps.def"
};

/* Whether the amount is the radius of a ball, by kind. */
static const bool step_has_ball[] = {
#define COUNT                                     0
#define SHARE                                     0
#define ML                                        0
#define NO                                        0
#define VALUE                                     0
#define BALL                                      1
#define MASK_STEP(NAME, AMOUNT, components, text) AMOUNT,
#include "base/mask_steps.def"
#undef COUNT
#undef SHARE
#undef ML
#undef NO
#undef VALUE
#undef BALL
};

static void
check_step(const void *object, const struct option_spot *spot)
{
    const struct conf_step *step = object;
    if (step->space != CONF_SPACE_VOLUME && !step_has_ball[step->kind] && !LOST(spot, step->kind) &&
        !LOST(spot, step->space))
        option_refuse(spot, "space", "is only allowed with steps in mm");
    if (LOST(spot, step->connectivity) || step->connectivity == 6)
        return;
    if (step->connectivity != 26)
        option_refuse(spot, "connectivity", "must be 6 (faces), or 26 (faces, edges and corners)");
    else if (!step_has_components[step->kind] && !LOST(spot, step->kind))
        option_refuse(
            spot, "connectivity",
            "is only allowed with keep, keep_at_least, drop_below_ml, drop_mean_below, fill and cut_bridges_mm");
}

static const struct option_row code_rows[] = {
    {"code", &option_text, AT(struct coded_concept, value), NULL, LIMITS(1, 16), .form = &form_dicom,
     .help = "Code Value (0008,0100)"},
    {ROW(coded_concept, text, scheme), NULL, LIMITS(1, 16), .form = &form_dicom,
     .help = "Coding Scheme Designator (0008,0102): SCT, DCM, FMA, or 99... for private schemes"},
    {ROW(coded_concept, text, meaning), NULL, LIMITS(1, 64), .form = &form_dicom, .help = "Code Meaning (0008,0104)"},
};

const struct option_section option_code = {SECTION(code_rows, coded_concept)};

#define CENTER(name_, unit_, low, high, help_)                                                                         \
    {                                                                                                                  \
        (name_), &option_numbers, AT(struct conf_shape, center), "", LIMITS(low, high),                                \
            .array = {.count = 3}, EITHER(struct conf_shape, center_unit, unit_), .help = (help_)                      \
    }

static const struct option_row center_rows[] = {
    CENTER("voxel", CONF_VOXEL, -FAR, FAR, "column, row and slice, from 0; slices ascend along the normal"),
    CENTER("mm", CONF_MM, -FAR, FAR, "patient coordinates (LPS), in mm"),
    CENTER("fraction", CONF_FRACTION, -10, 10,
           "fraction of the volume: 0 is the centre of the first voxel, 1 that of the last"),
};

static const struct option_section center_section = {SECTION(center_rows, conf_shape)};

#define RADIUS(name_, unit_, help_)                                                                                    \
    {                                                                                                                  \
        (name_), &option_numbers, AT(struct conf_shape, radius), "", LIMITS(1e-3, FAR),                                \
            .array = {.count = 3, .uniform = true}, EITHER(struct conf_shape, radius_unit, unit_), .help = (help_)     \
    }

static const struct option_row shape_rows[] = {
    {ROW(conf_shape, choice, kind), "\"sphere\"", .choices = shape_choices, .help = "shape of the start region"},
    {"center", &option_group, .offset = 0, NULL, .section = &center_section,
     .help = "centre of the shape: exactly one of voxel, mm and fraction"},
    RADIUS("radius_voxels", CONF_VOXEL,
           "radius, or half side of a box, in voxels: one number, or three (x, y, z); exactly one "
           "of radius_voxels and radius_mm is required"),
    RADIUS("radius_mm", CONF_MM, "radius, or half side of a box, in mm: one number, or three (x, y, z)"),
};

static const struct option_section shape_section = {SECTION(shape_rows, conf_shape), .check = check_shape};

#define SEED(name_, unit_, low, high, help_)                                                                           \
    {                                                                                                                  \
        (name_), &option_numbers, AT(struct conf_seed, at), "", LIMITS(low, high),                                     \
            .array = {.count = 3}, EITHER(struct conf_seed, unit, unit_), .help = (help_)                              \
    }

static const struct option_row seed_rows[] = {
    SEED("voxel", CONF_VOXEL, 0, FAR, "column, row and slice, from 0; slices ascend along the normal"),
    SEED("mm", CONF_MM, -FAR, FAR, "patient coordinates (LPS), in mm"),
    SEED("fraction", CONF_FRACTION, 0, 1,
         "fraction of the volume: 0 is the centre of the first voxel, 1 that of the last"),
};

static const struct option_section seed_section = {SECTION(seed_rows, conf_seed)};

static const struct option_row range_rows[] = {
    {ROW(conf_range, numbers, percentile), "", LIMITS(0, 100), .array = {.count = 2},
     EITHER(struct conf_range, relative, CONF_PERCENTILE), .help = "range between two percentiles of the values"},
    {ROW(conf_range, integer, otsu), "", LIMITS(2, 8), EITHER(struct conf_range, relative, CONF_OTSU),
     .help = "number of classes of Otsu's method, which maximizes the variance between classes; "
             "the range is one class"},
    {"class", &option_integer, AT(struct conf_range, otsu_class), "", LIMITS(1, 8), GIVEN(struct conf_range, has_class),
     .help = "number of the class of otsu; 1 is the lowest"},
    {ROW(conf_range, number, sigma), "", LIMITS(0, 1000), EITHER(struct conf_range, relative, CONF_SIGMA),
     .help = "range of this many standard deviations on both sides of the mean"},
    {ROW(conf_range, number, of_max), "", LIMITS(0, 1), EITHER(struct conf_range, relative, CONF_OF_MAX),
     .help = "range from this share of the max value, without an upper end"},
    {ROW(conf_range, text, of), "", LIMITS(1, 64), .form = &form_dicom,
     .help = "label of the segment whose values define the range; by default the whole volume, for "
             "sigma the start region"},
};

static const struct option_section range_section = {SECTION(range_rows, conf_range), .check = check_range};

#define STEP(name_, kind_, low, high, help_)                                                                           \
    {                                                                                                                  \
        (name_), &option_number, AT(struct conf_step, amount), "", LIMITS(low, high),                                  \
            EITHER(struct conf_step, kind, kind_), .help = (help_)                                                     \
    }
#define BALL(name_, kind_, help_) STEP(name_, kind_, 0.01, 100, help_)

static const struct option_row step_rows[] = {
    {ROW(conf_step, integer, keep), "", LIMITS(1, 256), EITHER(struct conf_step, kind, CONF_STEP_KEEP),
     .help = "keep this many of the largest components"},
    STEP("keep_at_least", CONF_STEP_KEEP_AT_LEAST, 0, 1,
         "keep components with at least this share of the voxels of the largest one"),
    STEP("drop_below_ml", CONF_STEP_DROP_BELOW, 1e-6, 1e6, "remove components smaller than this volume in ml"),
    {ROW(conf_step, choice, fill), "", .choices = fill_choices, EITHER(struct conf_step, kind, CONF_STEP_FILL_SLICES),
     .help = "fill holes: add voxels outside that are not connected to the border of their slice, or of the volume"},
    BALL("open_mm", CONF_STEP_OPEN,
         "morphological opening by a ball of this radius in mm; removes parts thinner than the ball"),
    BALL("close_mm", CONF_STEP_CLOSE,
         "morphological closing by a ball of this radius in mm; fills gaps thinner than the ball"),
    BALL("grow_mm", CONF_STEP_GROW, "dilation: add all voxels in a ball of this radius in mm around each voxel"),
    BALL("shrink_mm", CONF_STEP_SHRINK,
         "erosion: keep voxels whose ball of this radius in mm, as far as it lies in the volume, lies in the segment"),
    BALL("cut_bridges_mm", CONF_STEP_CUT_BRIDGES,
         "opening that leaves a gap between parts that the erosion separates; radius in mm"),
    STEP("drop_mean_below", CONF_STEP_DROP_MEAN_BELOW, -1e9, 1e9,
         "remove components whose mean value, in real-world units, is lower: the mean of voxels whose "
         "six neighbours lie in the component; a component without such voxels is removed, too"),
    {ROW(conf_step, choice, space), "\"volume\"", .choices = option_space_choices, .later = true,
     .help = "for steps in mm: a ball in the volume, or a disk in each slice"},
    {ROW(conf_step, integer, connectivity), "6", LIMITS(6, 26),
     .help = "neighbourhood in components and holes: 6 (faces), or 26 (faces, edges and corners)"},
};

static const struct option_section step_section = {SECTION(step_rows, conf_step), .check = check_step};

#define LABELS(name_, member, help_)                                                                                   \
    {                                                                                                                  \
        (name_), &option_names, AT(struct conf_segment, member), MANY(struct conf_segment, member##_count),            \
            .fallback = "", LIMITS(1, 16), .form = &form_dicom, .later = true, .help = (help_)                         \
    }

static const struct option_row refine_rows[] = {
    {ROW(conf_refine, text, label), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "label of a segment with grid_mm: its voxels deeper than band_mm stay"},
    {ROW(conf_refine, number, band_mm), "3.0", LIMITS(0.01, 100),
     .help = "within this distance from its outline, on both sides, the range decides"},
};

static const struct option_section refine_section = {SECTION(refine_rows, conf_refine)};

static const struct option_row enclosed_rows[] = {
    {ROW(conf_enclosed, text, by), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "label of the segment that rays must meet"},
    {ROW(conf_enclosed, choice, directions), "\"26\"", .choices = directions_choices,
     .help = "\"26\": to all neighbours; \"axial-16\": 16 directions in the slice"},
    {ROW(conf_enclosed, integer, at_least), NULL, LIMITS(1, 26), .help = "number of directions whose ray must meet it"},
    {ROW(conf_enclosed, number, within_mm), "250.0", LIMITS(1, 1000), .help = "length of the rays in mm"},
};

static void
check_enclosed(const void *object, const struct option_spot *spot)
{
    const struct conf_enclosed *enclosed = object;
    if (enclosed->directions == CONF_DIRECTIONS_AXIAL_16 && enclosed->at_least > 16 &&
        !LOST(spot, enclosed->directions))
        option_refuse(spot, "at_least", "%d of 16 directions are not possible", enclosed->at_least);
}

static const struct option_section enclosed_section = {SECTION(enclosed_rows, conf_enclosed), .check = check_enclosed};

static const struct option_row sections_rows[] = {
    {ROW(conf_sections, numbers, area_mm2), "[ 60.0, 800.0 ]", LIMITS(0, 1e6), ENDS,
     .help = "lowest and highest area of a section"},
    {ROW(conf_sections, number, box_mm), "45.0", LIMITS(0, 1e4), .help = "longest side of the box around a section"},
    {ROW(conf_sections, number, fill), "0.5", LIMITS(0, 1), .help = "lowest share of its box that a section fills"},
    {ROW(conf_sections, number, aspect), "2.6", LIMITS(1, 1e4), .help = "largest ratio of the sides of the box"},
    {ROW(conf_sections, text, middle_of), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "label of the segment whose mean column in the slice is the middle"},
    {ROW(conf_sections, number, middle_mm), "40.0", LIMITS(0, 1e4),
     .help = "largest distance of the centre of a section from the middle, left or right"},
    {ROW(conf_sections, number, length_mm), "25.0", LIMITS(0, 1e4), .help = "shortest chain"},
};

static const struct option_section sections_section = {SECTION(sections_rows, conf_sections)};

static const struct option_row leak_rows[] = {
    {ROW(conf_leak, numbers, limits), NULL, LIMITS(-1e9, 1e9), ENDS,
     .help = "first and last upper limit of the values, in real-world units"},
    {ROW(conf_leak, number, step), NULL, LIMITS(1e-6, 1e9), .help = "distance of the limits to try"},
    {ROW(conf_leak, number, most_ml), NULL, LIMITS(0, 1e9), .help = "largest volume"},
    {ROW(conf_leak, number, growth), "0.35", LIMITS(0, 1e3), .help = "share of its volume that a step may add, and"},
    {ROW(conf_leak, number, extra_ml), "6.0", LIMITS(0, 1e9), .help = "volume in ml that it may add besides"},
};

static void
check_leak(const void *object, const struct option_spot *spot)
{
    const struct conf_leak *leak = object;
    if (leak->limits[1] - leak->limits[0] > 1000 * leak->step && !LOST(spot, leak->limits) && !LOST(spot, leak->step))
        option_refuse(spot, "step", "%g makes more than 1000 limits", leak->step);
}

static const struct option_section leak_section = {SECTION(leak_rows, conf_leak), .check = check_leak};

static const struct option_row side_rows[] = {
    {ROW(conf_side, choice, which), NULL, .choices = which_choices, .help = "side of the patient"},
    {ROW(conf_side, number, share), "0.2", LIMITS(0, 0.5),
     .help = "lowest share of the smaller part of the two largest ones that shrinking leaves"},
    {ROW(conf_side, number, apart_mm), "50.0", LIMITS(0, 1e4),
     .help = "smallest distance of their centres, left to right"},
    {"shrink_mm", &option_numbers, AT(struct conf_side, shrink_mm),
     "[ 0.0, 1.5, 2.5, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0 ]", LIMITS(0, 100), .array = {.count = 9},
     .help = "radii of shrinking to try, ascending; the first that separates two such parts counts"},
};

static void
check_side(const void *object, const struct option_spot *spot)
{
    const struct conf_side *side = object;
    for (int i = 1; i < 9; i++)
        if (side->shrink_mm[i] <= side->shrink_mm[i - 1] && !LOST(spot, side->shrink_mm)) {
            option_refuse(spot, "shrink_mm", "must ascend");
            return;
        }
}

static const struct option_section side_section = {SECTION(side_rows, conf_side), .check = check_side};

static const struct option_row slices_where_rows[] = {
    {ROW(conf_slices_where, text, label), NULL, LIMITS(1, 64), .form = &form_dicom, .help = "label of another segment"},
    {ROW(conf_slices_where, numbers, share), NULL, LIMITS(0, 1e9), ENDS,
     .help = "lowest and highest number of its voxels in the slice, divided by those of from"},
    {ROW(conf_slices_where, boolean, longest), "false", .help = "of the runs of such slices, take the longest alone"},
    {ROW(conf_slices_where, number, at_least_mm), "0.0", LIMITS(0, 1e5), .help = "drop runs that are shorter"},
};

static const struct option_section slices_where_section = {SECTION(slices_where_rows, conf_slices_where)};

const char *const conf_object_kind_names[] = {"rtstruct", "seg", "sr", NULL};

static void
check_object(const void *object, const struct option_spot *spot)
{
    const struct conf_object *wanted = object;
    if ((wanted->roi || LOST(spot, wanted->roi)) == wanted->has_number)
        option_refuse(spot, "roi", "exactly one of roi and number must be given");
    if (wanted->has_number && (wanted->each || wanted->unite))
        option_refuse(spot, wanted->each ? "each" : "unite", "requires roi, a pattern that several regions match");
    if (wanted->each && wanted->unite)
        option_refuse(spot, "unite", "is not allowed with each: remove one of the two");
}

static const char *const pixels_choices[] = {"inside", "centres", NULL};

static const struct option_row object_rows[] = {
    {ROW(conf_object, choice, kind), NULL, .choices = conf_object_kind_names,
     .help = "kind of object: \"rtstruct\", an RT Structure Set; \"seg\", a Segmentation or label map; "
             "\"sr\", a report, whose points and closed outlines are a start for other segments"},
    {ROW(conf_object, text, roi), "", LIMITS(1, 64), .form = &form_dicom,
     .help = "pattern, such as \"GTV*\", for the ROI Name (3006,0026), the Segment Label (0062,0005), or the Tracking "
             "Identifier or Finding in a report; exactly one region must match unless each or unite is set"},
    {ROW(conf_object, integer, number), "", LIMITS(0, 2147483647), GIVEN(struct conf_object, has_number),
     .help = "ROI Number (3006,0022), Segment Number (0062,0004), or position in the report from 1; replaces roi"},
    {ROW(conf_object, number, threshold), "0.5", LIMITS(0, 1), ONLY_WITH("kind", 1u << CONF_SEG),
     .help = "min share of the max value in a FRACTIONAL Segmentation; voxels of value 0 never belong to the segment"},
    {ROW(conf_object, boolean, own), "false", ONLY_WITH("kind", 1u << CONF_SEG | 1u << CONF_SR),
     .help = "accept objects that Noctule wrote, given by noctule run --object; the service "
             "rejects such objects, so no rule or title may use the pipeline"},
    {ROW(conf_object, boolean, interpolate), "false", ONLY_WITH("kind", 1u << CONF_RTSTRUCT), .later = true,
     .help = "fill slices without a contour between two slices with contours, by shape "
             "interpolation; by default they stay empty and are reported"},
    {"contour_pixels", &option_choice, AT(struct conf_object, pixels), "\"inside\"", .choices = pixels_choices,
     ONLY_WITH("kind", 1u << CONF_RTSTRUCT), .later = true,
     .help = "\"inside\": voxels whose centres are enclosed by contours; \"centres\": also voxels whose centres lie on "
             "a contour, for programs that draw through voxel centres (rt-utils, TotalSegmentator)"},
    {ROW(conf_object, boolean, each), "false", ONLY_WITH("kind", 1u << CONF_RTSTRUCT | 1u << CONF_SEG), .later = true,
     .help = "create one segment per region that matches roi, with its name, codes and color; "
             "empty regions are reported and do not fail the job"},
    {ROW(conf_object, boolean, unite), "false", ONLY_WITH("kind", 1u << CONF_RTSTRUCT | 1u << CONF_SEG), .later = true,
     .help = "create one segment of all regions that match roi"},
    {ROW(conf_object, boolean, optional), "false", ONLY_WITH("kind", 1u << CONF_RTSTRUCT | 1u << CONF_SEG),
     .later = true,
     .help = "leave the segment empty and report the reason if no object arrives within "
             "patience_seconds, or if its region is absent or empty; by default the job fails"},
    {ROW(conf_object, text, from_ae), "", LIMITS(1, 16), .form = &form_ae, .later = true,
     .help = "AE title that must have sent the object; must be equal in all segments of a pipeline "
             "with objects of this kind"},
};

static const struct option_section object_section = {SECTION(object_rows, conf_object), .check = check_object};

const char *const conf_roi_type_names[] = {
    "auto",  "none",   "EXTERNAL",       "ORGAN",  "GTV",     "CTV",      "PTV",     "AVOIDANCE",
    "BOLUS", "CAVITY", "CONTRAST_AGENT", "MARKER", "SUPPORT", "FIXATION", "CONTROL", NULL};

static const struct option_row segment_rows[] = {
    {ROW(conf_segment, text, label), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "Segment Label (0062,0005); unique in the pipeline"},
    {ROW(conf_segment, text, description), "\"\"", LIMITS(0, 1024), .help = "Segment Description (0062,0006)"},
    {ROW(conf_segment, choice, method), "\"level-set\"", .choices = conf_method_names, .help = "segmentation method"},
    {ROW(conf_segment, range, range), NULL, LIMITS(-1e9, 1e9), .section = &range_section,
     .help = "level set, range: lowest and highest value of the segment, both inclusive, in "
             "real-world units (HU in CT), or a group that defines them",
     ONLY_WITH("method", 1u << CONF_LEVEL_SET | 1u << CONF_RANGE)},
    {ROW(conf_segment, list, shapes), MANY(struct conf_segment, shape_count), .fallback = "( )", LIMITS(0, 64),
     .section = &shape_section,
     .help = "level set: start region; the union of these shapes and of the segment of from; range takes its voxels in "
             "range",
     ONLY_WITH("method", 1u << CONF_LEVEL_SET | 1u << CONF_RANGE)},
    {ROW(conf_segment, text, from), "", LIMITS(1, 64), .form = &form_dicom,
     .help = "label of the segment to start from, or to work on; range takes its voxels in range, and the steps of "
             "then may leave it",
     ONLY_WITH("method", 1u << CONF_LEVEL_SET | 1u << CONF_FUZZY | 1u << CONF_RANGE | 1u << CONF_SECTIONS |
                             1u << CONF_LEAK | 1u << CONF_SIDE | 1u << CONF_SLICES)},
    {"auto", &option_choice, AT(struct conf_segment, automatic), "\"none\"", .choices = auto_choices, .later = true,
     .help = "level set, fuzzy connectedness: start region if shapes, seeds and from are not "
             "given: the \"largest\" component, the \"center\" of the volume, or the component "
             "with the \"highest\" or \"lowest\" mean over auto_mm (see NOTES)",
     ONLY_WITH("method", 1u << CONF_LEVEL_SET | 1u << CONF_FUZZY)},
    {ROW(conf_segment, number, auto_mm), "10.0", LIMITS(0, 1000), .later = true,
     .help = "level set, fuzzy connectedness: side in mm of the box of the mean for auto = "
             "\"highest\" and \"lowest\"; 0: the voxel alone",
     ONLY_WITH("method", 1u << CONF_LEVEL_SET | 1u << CONF_FUZZY)},
    {ROW(conf_segment, list, seeds), MANY(struct conf_segment, seed_count), .fallback = "( )", LIMITS(0, 256),
     .section = &seed_section,
     .help = "fuzzy connectedness: seed points in the object, each exactly one of voxel, mm and fraction",
     ONLY_WITH("method", 1u << CONF_FUZZY)},
    {"object_mean", &option_number, ESTIMABLE(struct conf_segment, object_mean), LIMITS(-1e9, 1e9),
     .help = "fuzzy connectedness: mean value of the object, in real-world units; by default measured at the seeds",
     ONLY_WITH("method", 1u << CONF_FUZZY)},
    {"object_sigma", &option_number, ESTIMABLE(struct conf_segment, object_sigma), LIMITS(1e-6, 1e9),
     .help = "fuzzy connectedness: standard deviation of the object's values, in real-world units; "
             "by default measured at the seeds",
     ONLY_WITH("method", 1u << CONF_FUZZY)},
    {"homogeneity_sigma", &option_number, ESTIMABLE(struct conf_segment, homogeneity_sigma), LIMITS(1e-6, 1e9),
     .help = "fuzzy connectedness: root mean square of half the difference of neighbours in the "
             "object, in real-world units; by default measured at the seeds",
     ONLY_WITH("method", 1u << CONF_FUZZY)},
    {ROW(conf_segment, integer, estimate_voxels), "2", LIMITS(1, 16),
     .help = "fuzzy connectedness: half side of the cubes around the seeds in which the other "
             "parameters are measured, in voxels",
     ONLY_WITH("method", 1u << CONF_FUZZY)},
    {ROW(conf_segment, number, weight), "0.5", LIMITS(0, 1),
     .help = "fuzzy connectedness: weight of the object's values; the rest is the weight of homogeneity",
     ONLY_WITH("method", 1u << CONF_FUZZY)},
    {ROW(conf_segment, number, threshold), "0.5", LIMITS(0, 1),
     .help = "fuzzy connectedness: the segment is all voxels connected more strongly than this",
     ONLY_WITH("method", 1u << CONF_FUZZY)},
    {ROW(conf_segment, boolean, connectedness_map), "false", .was = "scene",
     .help = "fuzzy connectedness: also write the strength of connectedness, as a FRACTIONAL DICOM Segmentation",
     ONLY_WITH("method", 1u << CONF_FUZZY)},
    {ROW(conf_segment, group, object), NULL, .section = &object_section, .later = true,
     .help = "object: the annotation object and the region of the segment", ONLY_WITH("method", 1u << CONF_OBJECT)},
    {ROW(conf_segment, text, program), NULL, LIMITS(1, 64), .form = &form_name, .later = true,
     .help =
         "program: the name of one of programs; it runs once per stack, for all segments and pipelines that name it",
     ONLY_WITH("method", 1u << CONF_PROGRAM)},
    {"value", &option_integers, AT(struct conf_segment, values), NULL, LIMITS(1, 65535),
     MANY(struct conf_segment, value_count), .array = {.count = 1, .uniform = true, .elements = 256}, .later = true,
     .help = "program: the label value of the segment in the output, or several, whose union it is",
     ONLY_WITH("method", 1u << CONF_PROGRAM)},
    {ROW(conf_segment, number, grid_mm), "0.0", LIMITS(0, 100), .later = true,
     .help = "find the segment on a grid of blocks of about this size in mm, with their mean values; all segments "
             "with a grid have the same one; 0: on the voxels of the images"},
    {ROW(conf_segment, number, smooth_mm), "0.0", LIMITS(0, 100), .later = true,
     .help = "range: standard deviation in mm of a Gaussian filter for the values that are compared with the range",
     ONLY_WITH("method", 1u << CONF_RANGE)},
    {ROW(conf_segment, part, refine), "", .section = &refine_section, .later = true,
     .help = "range: find the outline of a segment with grid_mm again in the voxels of the images",
     ONLY_WITH("method", 1u << CONF_RANGE)},
    {"any_of", &option_names, AT(struct conf_segment, any_of), MANY(struct conf_segment, any_of_count),
     .fallback = NULL, LIMITS(1, 64), .form = &form_dicom, .later = true,
     .help = "any-of: labels of the segments to unite", ONLY_WITH("method", 1u << CONF_ANY_OF)},
    {ROW(conf_segment, group, enclosed), NULL, .section = &enclosed_section, .later = true,
     .help = "enclosed: voxels around which a segment lies", ONLY_WITH("method", 1u << CONF_ENCLOSED)},
    {ROW(conf_segment, group, sections), NULL, .section = &sections_section, .later = true,
     .help = "sections: the longest chain of sections of from", ONLY_WITH("method", 1u << CONF_SECTIONS)},
    {ROW(conf_segment, group, leak), NULL, .section = &leak_section, .later = true,
     .help = "grow-until-leak: limits of the growth of from", ONLY_WITH("method", 1u << CONF_LEAK)},
    {ROW(conf_segment, group, side), NULL, .section = &side_section, .later = true, .help = "side: the half of from",
     ONLY_WITH("method", 1u << CONF_SIDE)},
    {ROW(conf_segment, group, slices_where), NULL, .section = &slices_where_section, .later = true,
     .help = "slices: the slices of from", ONLY_WITH("method", 1u << CONF_SLICES)},
    LABELS("within", within,
           "labels of segments that limit it: it lies in each of them, after every step of then; a "
           "level set does not grow beyond them"),
    LABELS("minus", minus, "labels of segments that are removed from it, after every step of then"),
    LABELS("intersect", intersect,
           "labels of segments that it is intersected with, after every step of then; the method may leave them"),
    {ROW(conf_segment, list, then), MANY(struct conf_segment, then_count), .fallback = "", LIMITS(1, 32),
     .section = &step_section, .later = true,
     .help = "steps that change the mask, in this order; each step is exactly one of the options below"},
    {ROW(conf_segment, boolean, hidden), "false", .later = true,
     .help = "use the segment only in other segments; it is not written, drawn or measured"},
    {ROW(conf_segment, flags, quantities), "", .choices = quantity_names, .later = true,
     .help =
         "named quantities to measure of the segment, beside its volume, mean and box (see NOTES): \"mtv\", \"tlg\" "
         "and \"suvpeak\" require an SUV as unit of the pipeline, \"diameters\" any images, and the others values in "
         "HU; by default none"},
    {ROW(conf_segment, group, category),
     "{ code = \"" CONF_CATEGORY "\"; scheme = \"SCT\"; meaning = \"Anatomical Structure\"; }", .section = &option_code,
     .help = "Segmented Property Category Code Sequence (0062,0003)"},
    {ROW(conf_segment, group, type), "", .section = &option_code,
     .help = "Segmented Property Type Code Sequence (0062,000F); required unless the segment is hidden "
             "or taken from a SEG object, whose category, type and modifier are the default"},
    {ROW(conf_segment, group, modifier), "", .section = &option_code,
     .help = "Segmented Property Type Modifier Code Sequence (0062,0011), such as left or right"},
    {ROW(conf_segment, group, region), "", .section = &option_code,
     .help = "Anatomic Region Sequence (0008,2218), if the type does not include it; for a segment "
             "of a SEG object, the default is that of the object"},
    {ROW(conf_segment, numbers, color), "[ 0.9, 0.3, 0.2 ]", LIMITS(0, 1), .array = {.count = 3},
     .help = "recommended display color: red, green and blue"},
    {ROW(conf_segment, choice, roi_type), "\"auto\"", .choices = conf_roi_type_names, .later = true,
     .help =
         "RT ROI Interpreted Type (3006,00A4) in a structure set: \"auto\", that of an unchanged region of a structure "
         "set, or ORGAN for the category Anatomical Structure, or else none; \"none\"; or this type"},
    {ROW(conf_segment, part, expect), "", .section = &option_expect,
     .help = "plausibility limits; the option review defines the handling of a result that is "
             "empty or outside the limits"},
};

const struct option_section option_segment = {SECTION(segment_rows, conf_segment), .check = check_segment};

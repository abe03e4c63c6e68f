/* Quantities of a segment: diameters by hand, a whole job, its refusals, and the table of the document. */
#include "service/pipeline/measure/measure_quantities.h"

#include "base/quantities.h"
#include "service/pipeline/components.h"
#include "service/pipeline/measure/measure_values.h"
#include "service/pipeline/pipeline.h"
#include "tests/unit/job_sample.h"
#include "tests/unit/pipeline/job_compute.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT NOCTULE_SOURCE_DIR "/docs/features.md"

enum { COLUMNS = 70, ROWS = 20, SLICES = 2, WORDS = 2 };

static const struct image_extent extent = {COLUMNS, ROWS, SLICES};
static uint64_t bits[SLICES * ROWS * WORDS];

static void
draw(int first_column, int last_column, int first_row, int last_row, int slice)
{
    for (int y = first_row; y <= last_row; y++)
        for (int x = first_column; x <= last_column; x++)
            bits[(slice * ROWS + y) * WORDS + x / 64] |= UINT64_C(1) << x % 64;
}

static void
assert_diameters(double x_mm, double y_mm, double longest, double across)
{
    const double spacing[3] = {x_mm, y_mm, 3};
    struct diameters found;
    ck_assert_int_eq(diameters_find(&extent, bits, spacing, &found), 0);
    ck_assert_double_eq_tol(found.longest.length, longest, 1e-12);
    ck_assert_double_eq_tol(found.across.length, across, 1e-12);
    memset(bits, 0, sizeof bits);
}

START_TEST(diameters_of_drawn_areas)
{
    assert_diameters(1, 1, 0, 0);
    draw(5, 5, 5, 5, 0);
    assert_diameters(0.5, 2, 2, 0.5);
    draw(60, 69, 0, 0, 1); /* across a word, up to the edges of the slice */
    assert_diameters(1, 1, 10, 1);
    draw(3, 6, 5, 7, 0); /* 4 x 3: from (-2, -1) to (2, 1); at right angles between the long sides */
    assert_diameters(1, 1, sqrt(20), 1.5 * sqrt(5));
    draw(2, 4, 5, 5, 0); /* a plus of 3 x 3 */
    draw(3, 3, 4, 6, 0);
    assert_diameters(2, 1, 6, 3);
    draw(2, 3, 5, 5, 0); /* areas of their own: far apart, in another slice, or touching by a corner */
    draw(30, 30, 5, 5, 0);
    draw(4, 4, 6, 6, 0);
    draw(2, 2, 9, 9, 1);
    assert_diameters(1, 1, 2, 1);
}

END_TEST

START_TEST(components_of_a_slice_follow_each_other)
{
    struct component_run *runs;
    size_t count;
    draw(2, 4, 0, 0, 0); /* a ring around a voxel, which has an area of its own */
    draw(2, 2, 1, 1, 0);
    draw(4, 4, 1, 1, 0);
    draw(2, 4, 2, 2, 0);
    draw(63, 66, 1, 1, 0);
    ck_assert_int_eq(components_of_slice(&extent, bits, &runs, &count), 0);
    memset(bits, 0, sizeof bits);
    static const int64_t expected[][4] = {{0, 2, 4, 0}, {1, 2, 2, 0}, {1, 4, 4, 0}, {2, 2, 4, 0}, {1, 63, 66, 3}};
    ck_assert_uint_eq(count, 5);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(runs[i].row, expected[i][0]);
        ck_assert_int_eq(runs[i].first, expected[i][1]);
        ck_assert_int_eq(runs[i].last, expected[i][2]);
        ck_assert_int_eq(runs[i].component, expected[i][3]);
    }
    free(runs);
}

END_TEST

/* -------------------------------------------------------------------------------- whole jobs -- */

static struct job_sample sample;
static struct kernels_device *device;
static struct pipeline_compute compute;
static struct pipeline_report report;

static void
set_up(void)
{
    dicom_init();
    job_sample_make(&sample);
    job_compute_open(&device, &compute);
}

static void
tear_down(void)
{
    job_compute_close(device, &compute);
    job_sample_remove(&sample);
}

/* Runs the job on all voxels in a range, with one segment that has the quantities and one without. */
static void
run_job(const char *range, const char *quantities, const char *extra)
{
    static const char type[] = "type = { code = \"12738006\"; scheme = \"SCT\"; meaning = \"Brain\"; };";
    char settings[1024];
    snprintf(settings, sizeof settings,
             "name = \"block\"; segments = ( { label = \"Other\"; method = \"range\"; range = [ 0.0, 2000.0 ]; %s }, { "
             "label = \"Block\"; method = \"range\"; range = %s; quantities = [ %s ]; %s } ); min_slices = 1; %s",
             type, range, quantities, type, extra);
    sample.spec.settings = settings;
    pipeline_run(&sample.spec, &compute, NULL, &report);
}

static void
assert_feature(size_t place, const char *name, double value, const char *unit)
{
    ck_assert_uint_lt(place, report.features.count);
    const struct feature *feature = &report.features.items[place];
    ck_assert_str_eq(feature->name, name);
    ck_assert_str_eq(feature->family, "quantity");
    ck_assert_str_eq(feature->settings, "");
    ck_assert_str_eq(feature->missing_reason, "");
    ck_assert_int_eq(feature->segment, 2);
    ck_assert_double_eq_tol(feature->value, value, 1e-9);
    ck_assert_str_eq(feature->unit, unit);
}

/* The block has 12 x 10 x 4 voxels of 0.75 x 0.5 x 3 mm. */
START_TEST(quantities_of_a_job)
{
    run_job("[ 0.0, 80.0 ]", "\"diameters\", \"pd15\", \"laa950\", \"agatston\"", "");
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    ck_assert_uint_eq(report.features.count, 5);
    assert_feature(0, "laa950", 0, "%");
    assert_feature(1, "pd15", 40, "[hnsf'U]");
    assert_feature(2, "agatston", 0, "1");
    /* The outline from (-6, -4.5) to (6, 4.5) voxels; at right angles, between the rows at -5 and 5 */
    const double x = 12 * 0.75, y = 9 * 0.5, length = hypot(x, y);
    assert_feature(3, "long_axis", length, "mm");
    assert_feature(4, "short_axis", 5 * length / x, "mm");
    pipeline_report_clear(&report);
}

END_TEST

START_TEST(air_is_low_attenuation)
{
    run_job("[ -2000.0, 2000.0 ]", "\"laa950\", \"pd15\"", "");
    ck_assert_msg(report.verdict == PROTO_VERDICT_DONE, "%s", report.error.message);
    const double voxels = SAMPLE_COLUMNS * SAMPLE_ROWS * SAMPLE_SLICES;
    assert_feature(0, "laa950", 100 * (voxels - SAMPLE_BLOCK) / voxels, "%");
    assert_feature(1, "pd15", -1000, "[hnsf'U]");
    pipeline_report_clear(&report);
}

END_TEST

START_TEST(an_empty_segment_has_no_values)
{
    run_job("[ 3000.0, 3001.0 ]", "\"laa950\", \"agatston\", \"diameters\"", "");
    ck_assert_uint_eq(report.features.count, 4);
    for (size_t i = 0; i < report.features.count; i++)
        ck_assert_str_eq(report.features.items[i].missing_reason, "EMPTY_REGION");
    pipeline_report_clear(&report);
}

END_TEST

/* ------------------------------------------------------------------------------------- needs -- */

static char path[] = "/slice.dcm";
static struct dicom_frame frames[1];
static struct dicom_instance instance = {.path = path, .frames = frames}, *instances[] = {&instance};
static struct geometry_plane planes[2];
static struct geometry_stack stack = {.planes = planes, .plane_count = 2, .has_geometry = true};
static struct grid grid = {.instances = instances, .stack = &stack, .source = &stack, .source_instances = instances};

static enum code
refusal(unsigned quantities, enum conf_unit_of_values in, const char *unit, double thickness, double distance)
{
    struct conf_segment segment = {.quantities = quantities};
    const struct conf_pipeline pipeline = {.segments = &segment, .segment_count = 1, .unit = in};
    struct error error = {0};
    snprintf(instance.value_unit, sizeof instance.value_unit, "%s", unit);
    frames[0].slice_thickness = thickness;
    planes[1].position = distance;
    const int rc = quantities_check(&pipeline, &grid, &error);
    ck_assert_int_eq(rc, error.code ? -EINVAL : 0);
    return error.code;
}

START_TEST(needs_of_quantities)
{
    const unsigned suv = 1u << QUANTITY_MTV | 1u << QUANTITY_TLG | 1u << QUANTITY_SUVPEAK,
                   thin = 1u << QUANTITY_AGATSTON;
    const unsigned hu = 1u << QUANTITY_LAA950 | 1u << QUANTITY_PD15 | 1u << QUANTITY_AGATSTON_ANY;
    for (int q = 0; q < QUANTITIES; q++) {
        const unsigned one = 1u << q;
        const bool any = q == QUANTITY_DIAMETERS;
        ck_assert_int_eq(refusal(one, CONF_UNIT_OF_IMAGES, "", 3, 3), any ? 0 : CODE_QUANTITY_UNIT);
        ck_assert_int_eq(refusal(one, CONF_UNIT_OF_IMAGES, "Bq/ml", 3, 3), any ? 0 : CODE_QUANTITY_UNIT);
        ck_assert_int_eq(refusal(one, CONF_UNIT_OF_IMAGES, "g/ml", 3, 3), any ? 0 : CODE_QUANTITY_UNIT);
        ck_assert_int_eq(refusal(one, CONF_UNIT_OF_IMAGES, "[hnsf'U]", 3, 3), one & suv ? CODE_QUANTITY_UNIT : 0);
        ck_assert_int_eq(refusal(one, CONF_UNIT_SUV_BW, "g/ml{SUVbw}", 3, 3),
                         one & (hu | thin) ? CODE_QUANTITY_UNIT : 0);
        ck_assert_int_eq(refusal(one, CONF_UNIT_OF_IMAGES, "[hnsf'U]", 1, 1), one & suv    ? CODE_QUANTITY_UNIT
                                                                              : one & thin ? CODE_QUANTITY_SLICES
                                                                                           : 0);
    }
    ck_assert_int_eq(refusal(0, CONF_UNIT_OF_IMAGES, "", 9, 9), 0);
}

END_TEST

START_TEST(slices_of_an_agatston_score)
{
    static const struct {
        double thickness, distance;
        bool fits;
    } rows[] = {{2.5, 2.5, true},   {3, 3, true},     {3, 2.5, true},   {2.476, 3.029, true}, {2.47, 2.5, false},
                {2.5, 2.47, false}, {3.04, 3, false}, {3, 3.04, false}, {0, 3, false},        {3, 1.5, false}};

    const unsigned thin = 1u << QUANTITY_AGATSTON;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(refusal(thin, CONF_UNIT_OF_IMAGES, "[hnsf'U]", rows[i].thickness, rows[i].distance),
                         rows[i].fits ? 0 : CODE_QUANTITY_SLICES);
    grid.straight = true;
    ck_assert_int_eq(refusal(thin, CONF_UNIT_OF_IMAGES, "[hnsf'U]", 3, 3), CODE_QUANTITY_SLICES);
    ck_assert_int_eq(refusal(1u << QUANTITY_AGATSTON_ANY, CONF_UNIT_OF_IMAGES, "[hnsf'U]", 3, 3), 0);
    grid.straight = false;
}

END_TEST

START_TEST(all_quantities_need_a_geometry)
{
    const unsigned quantities = 1u << QUANTITY_DIAMETERS;
    stack.has_geometry = false;
    ck_assert_int_eq(refusal(quantities, CONF_UNIT_OF_IMAGES, "", 3, 3), CODE_QUANTITY_SLICES);
    ck_assert_int_eq(refusal(0, CONF_UNIT_OF_IMAGES, "", 3, 3), 0);
    stack.has_geometry = true;
    stack.plane_count = 1;
    ck_assert_int_eq(refusal(quantities, CONF_UNIT_OF_IMAGES, "", 3, 0), 0);
    ck_assert_int_eq(refusal(quantities, CONF_UNIT_OF_IMAGES, "", 0, 0), CODE_QUANTITY_SLICES);
    stack.plane_count = 2;
}

END_TEST

/* ------------------------------------------------------------------------------ the document -- */

START_TEST(the_document_has_each_row)
{
    static const struct {
        const char *id, *word;
    } words[] = {

#define QUANTITY(ID, word, needs) {#ID, word},
#include "base/quantities.def"
    };

    static const struct {
        const char *quantity, *name, *scheme, *code, *meaning, *definition, *source;
    } rows[] = {

#define QUANTITY_VALUE(ID, quantity, name, ibsi, scheme, code, meaning, unit, power, definition, source)               \
    {#quantity, name, #scheme, code, meaning, definition, source},
#include "base/quantities.def"
    };
    static char text[256 << 10];
    FILE *document = fopen(DOCUMENT, "r");
    ck_assert_ptr_nonnull(document);
    text[fread(text, 1, sizeof text - 1, document)] = '\0';
    fclose(document);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char start[256], end[512];
        const char *word = NULL, *scheme = strcmp(rows[i].scheme, "OWN") == 0 ? "99NOCTULE" : rows[i].scheme;
        for (size_t j = 0; j < sizeof words / sizeof words[0]; j++)
            if (strcmp(words[j].id, rows[i].quantity) == 0)
                word = words[j].word;
        ck_assert_ptr_nonnull(word);
        snprintf(start, sizeof start, "\n| `%s` | `%s` | %s | %s, %s | ", word, rows[i].name, rows[i].meaning,
                 rows[i].code, scheme);
        const char *row = strstr(text, start);
        ck_assert_msg(row != NULL, "docs/features.md lacks %s", start);
        snprintf(end, sizeof end, " | %s | ", rows[i].definition);
        const char *line_end = strchr(row + 1, '\n'), *found = strstr(row, end);
        ck_assert_msg(found && found < line_end, "docs/features.md lacks %s in the row of %s", end, rows[i].name);
        snprintf(end, sizeof end, "| %s%s|\n", rows[i].source, rows[i].source[0] ? " " : "");
        found = strstr(row, end);
        ck_assert_msg(found && found < line_end, "docs/features.md lacks %s in the row of %s", end, rows[i].name);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("quantities");
    TCase *tcase = tcase_create("shapes");
    tcase_add_test(tcase, diameters_of_drawn_areas);
    tcase_add_test(tcase, components_of_a_slice_follow_each_other);
    tcase_add_test(tcase, needs_of_quantities);
    tcase_add_test(tcase, slices_of_an_agatston_score);
    tcase_add_test(tcase, all_quantities_need_a_geometry);
    tcase_add_test(tcase, the_document_has_each_row);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("jobs");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, quantities_of_a_job);
    tcase_add_test(tcase, air_is_low_attenuation);
    tcase_add_test(tcase, an_empty_segment_has_no_values);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

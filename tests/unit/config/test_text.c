/*
 * test_text.c - configurations and pipelines are written as text and read back.
 */
#include "base/quantities.h"
#include "config/config.h"
#include "config/kinds/kinds.h"
#include "tests/unit/config/config_files.h"

#include <errno.h>

static const char everything[] =
    "root = \"/srv/n \\\"q\\\" \\\\ \xc3\xb6\";\n"
    "inbox = ( { path = \"/a\"; after = \"move\"; move_to = \"/b\"; settle_seconds = 0.1; },\n"
    "          { path = \"/c\"; after = \"delete\"; } );\n"
    "series = { quiet_seconds = 0.30000000000000004; };\n"
    "compute = { backend = \"cpu\"; threads = 7; };\n"
    "dicom = { port = 11112; titles = ( { ae_title = \"A B\"; pipeline = \"one\"; stacks = \"b0\"; "
    "} );\n"
    "  peers = ( { ae_title = \"CT1\"; host = \"10.0.0.5\"; } ); tls = { ca = \"ca.pem\"; }; };\n"
    "destinations = ( { name = \"PACS\"; ae_title = \"P\"; host = \"h\"; port = 104; tls = true; "
    "fallback = \"shelf\"; },\n"
    "                 { name = \"shelf\"; folder = \"out\"; } );\n"
    "delivery = { breaker_failures = 2; };\n"
    "pipelines = (\n"
    "  { name = \"one\"; window = \"Mon-Fri 20:00-06:00; Sat 00:00-24:00 Europe/Berlin\"; done_by "
    "= \"07:00\"; deliver = [ \"sender\", \"shelf\" ]; results = [ \"codes\", \"seg\" ]; "
    "omit_empty_frames = false;\n"
    "    spacing_tolerance = 1e-3; duplicates = \"newest\"; derived = true; series_description = "
    "\"D\xc3\xa9"
    "but\"; series_number = 2147483647;\n"
    "    segments = (\n"
    "      { label = \"A\"; description = \"x\"; range = [ -1e9, 1e9 ];\n"
    "        shapes = ( { kind = \"box\"; center = { mm = [ -0.1, 1e-17, 123456.789 ]; }; "
    "radius_mm = [ 1, 2, 3 ]; },\n"
    "                   { kind = \"ellipsoid\"; center = { voxel = [ 1, 2, 3 ]; }; radius_voxels = "
    "2.5; } );\n"
    "        type = { code = \"T\"; scheme = \"99X\"; meaning = \"t\"; };\n"
    "        modifier = { code = \"7771000\"; scheme = \"SCT\"; meaning = \"Left\"; };\n"
    "        region = { code = \"69536005\"; scheme = \"SCT\"; meaning = \"Head\"; };\n"
    "        quantities = [ \"diameters\", \"agatston-any-slices\" ]; color = [ 0.0, 0.5, 1.0 ]; expect = { volume_ml "
    "= [ 0.1, 1e9 ]; touches = \"none\";\n"
    "          share_of = { label = \"G\"; range = [ 0.25, 0.5 ]; }; share_of_box = [ 0.001, 0.02 "
    "]; slice_mm = [ 0.5, 3.0 ]; unit = \"[hnsf'U]\"; contrast = false; }; },\n"
    "      { label = \"F\"; method = \"fuzzy-connectedness\";\n"
    "        seeds = ( { mm = [ -0.1, 0.0, 1e5 ]; }, { fraction = [ 0.0, 0.25, 1.0 ]; } );\n"
    "        object_sigma = 0.1; weight = 0.75; connectedness_map = true;\n"
    "        type = { code = \"T\"; scheme = \"99X\"; meaning = \"t\"; }; },\n"
    "      { label = \"G\"; range = [ 0, 1 ]; from = \"F\";\n"
    "        type = { code = \"T\"; scheme = \"99X\"; meaning = \"t\"; }; } ); } );\n"
    "rules = ( { match = { modality = \"CT\"; max_slices = 4; }; pipeline = \"one\"; priority = 3; "
    "},\n"
    "          { pipeline = \"one\"; stacks = \"echo 1*\"; } );\n"
    "log_level = \"debug\";\n";

static struct conf *
load_text(const char *text)
{
    struct error error = {0};
    struct conf *conf = NULL;
    int rc = conf_load(write_file("text.conf", text), &conf, &error);
    ck_assert_msg(rc == 0, "%s\n%s", error.message, text);
    return conf;
}

START_TEST(a_configuration_survives_a_round_trip)
{
    struct conf *conf = load_text(everything);
    char *first = conf_to_text(conf);
    struct conf *again = load_text(first);
    char *second = conf_to_text(again);
    ck_assert_str_eq(first, second);

    ck_assert_str_eq(again->root, "/srv/n \"q\" \\ \xc3\xb6");
    ck_assert_double_eq(again->series.quiet_seconds, 0.30000000000000004);
    ck_assert_str_eq(again->inboxes[0].move_to, "/b");
    ck_assert_int_eq(again->inboxes[1].after, CONF_DELETE);
    const struct conf_pipeline *pipeline = &again->pipelines[0];
    ck_assert_uint_eq(pipeline->segments[0].quantities, 1u << QUANTITY_DIAMETERS | 1u << QUANTITY_AGATSTON_ANY);
    ck_assert_uint_eq(pipeline->results, CONF_RESULT_SEG | CONF_RESULT_CODES);
    ck_assert(!pipeline->omit_empty_frames);
    const struct conf_segment *segment = &pipeline->segments[0];
    ck_assert_double_eq(segment->shapes[0].center[1], 1e-17);
    ck_assert_int_eq(segment->shapes[1].center_unit, CONF_VOXEL);
    ck_assert_double_eq(segment->shapes[1].radius[2], 2.5);
    ck_assert_str_eq(segment->modifier.meaning, "Left");
    ck_assert_str_eq(segment->region.value, "69536005");
    ck_assert_double_eq(segment->expect->slice_mm.at[1], 3.0);
    ck_assert_str_eq(segment->expect->unit, "[hnsf'U]");
    ck_assert(segment->expect->has_contrast && !segment->expect->contrast);
    const struct conf_segment *fuzzy = &pipeline->segments[1];
    ck_assert_int_eq(fuzzy->method, CONF_FUZZY);
    ck_assert_int_eq(fuzzy->seeds[0].unit, CONF_MM);
    ck_assert_double_eq(fuzzy->seeds[0].at[0], -0.1);
    ck_assert_int_eq(fuzzy->seeds[1].unit, CONF_FRACTION);
    ck_assert(!fuzzy->object_mean.given && !fuzzy->homogeneity_sigma.given);
    ck_assert(fuzzy->object_sigma.given && fuzzy->connectedness_map);
    ck_assert_double_eq(fuzzy->object_sigma.value, 0.1);
    ck_assert_double_eq(fuzzy->weight, 0.75);
    ck_assert_str_eq(pipeline->segments[2].from, "F");
    ck_assert_uint_eq(pipeline->segments[2].shape_count, 0);
    ck_assert_int_eq(pipeline->duplicates, CONF_NEWEST);
    ck_assert(pipeline->derived);
    ck_assert_ptr_null(again->rules[0].stacks);
    ck_assert_ptr_null(again->rules[1].modality);
    ck_assert_str_eq(again->rules[1].stacks, "echo 1*");
    ck_assert_str_eq(again->dicom.titles[0].stacks, "b0");
    ck_assert_int_eq(again->dicom.port, 11112);
    ck_assert_str_eq(again->dicom.peers[0].host, "10.0.0.5");
    ck_assert_str_eq(again->dicom.tls.ca, "/srv/n \"q\" \\ \xc3\xb6/ca.pem");
    ck_assert_str_eq(again->destinations[0].calling_ae_title, "A B");
    ck_assert_ptr_null(again->destinations[1].calling_ae_title);
    ck_assert_int_eq(again->delivery.breaker_failures, 2);
    ck_assert_uint_eq(pipeline->deliver_count, 2);
    ck_assert_str_eq(pipeline->deliver[1], "shelf");
    free(first);
    free(second);
    conf_free(conf);
    conf_free(again);
}

END_TEST

START_TEST(defaults_and_empty_lists_are_written_out)
{
    struct conf *conf = load_text("inbox = ( );");
    char *text = conf_to_text(conf);
    ck_assert_ptr_nonnull(strstr(text, "quiet_seconds = 60.0;"));
    ck_assert_ptr_nonnull(strstr(text, "lanes = 2;"));
    struct conf *again = load_text(text);
    ck_assert_uint_eq(again->inbox_count, 0);
    free(text);
    conf_free(again);
    conf_free(conf);
}

END_TEST

START_TEST(a_pipeline_survives_a_round_trip)
{
    struct error error = {0};
    struct conf *conf = load_text(everything);
    struct conf_pipeline *pipeline = NULL;
    char *first = conf_pipeline_to_text(&conf->pipelines[0]);
    ck_assert_msg(conf_pipeline_from_text(first, &pipeline, &error) == 0, "%s", error.message);
    char *second = conf_pipeline_to_text(pipeline);
    ck_assert_str_eq(first, second);
    ck_assert_str_eq(pipeline->name, "one");
    free(first);
    free(second);
    conf_pipeline_free(pipeline);
    conf_free(conf);
}

END_TEST

/* Destinations must not change the identity of results. */
START_TEST(the_text_of_a_pipeline_omits_destinations)
{
    struct conf *conf = load_text(everything);
    char *text = conf_pipeline_to_text(&conf->pipelines[0]);
    ck_assert_ptr_null(strstr(text, "deliver"));
    ck_assert_ptr_null(strstr(text, "window = \"Mon"));
    ck_assert_ptr_null(strstr(text, "done_by"));
    ck_assert_ptr_nonnull(conf->pipelines[0].window);
    ck_assert_uint_eq(conf->pipelines[0].deliver_count, 2);
    free(text);
    conf_free(conf);
}

END_TEST

static const char minimal[] = "pipelines = ( { name = \"p\";\n"
                              "  segments = ( { label = \"A\"; range = [ 0, 1 ]; type = { code = \"T\"; scheme "
                              "= \"99X\"; "
                              "meaning = \"t\"; };\n"
                              "      shapes = ( { center = { mm = [ 0, 0, 0 ]; }; radius_mm = 1; } ); },\n"
                              "    { label = \"B\"; method = \"fuzzy-connectedness\"; seeds = ( { mm = [ 0, 0, "
                              "0 ]; } );\n"
                              "      type = { code = \"T\"; scheme = \"99X\"; meaning = \"t\"; }; } );\n"
                              "  texture = { glcm = { }; patterns = [ \"tlbap\", \"lanadp\" ]; };";

static void
check_identity_of(const char *more)
{
    char text[sizeof minimal + 100];
    snprintf(text, sizeof text, "%s %s } );", minimal, more);
    struct conf *conf = load_text(text);
    char *expected = read_text_file(NOCTULE_SOURCE_DIR "/tests/unit/config/identity.txt");
    char *identity = conf_pipeline_identity(&conf->pipelines[0]);
    ck_assert_str_eq(identity, expected);
    free(identity);
    free(expected);
    conf_free(conf);
}

/*
 * UIDs are derived from this text, so the text of a pipeline with only required options must never
 * change. If this test fails for a new option, mark its row .later.
 */
START_TEST(the_identity_of_a_pipeline_does_not_change)
{
    check_identity_of("");
}

END_TEST

/* A limit that was raised after a failed job must not change the results' UIDs. */
START_TEST(limits_of_jobs_are_no_part_of_the_identity)
{
    check_identity_of("window = \"22:00-06:00\"; done_by = \"07:00 Europe/Berlin\";");
    check_identity_of("memory_mib = 500; deadline_seconds = 60; patience_seconds = 5; by_hand = true;");
    struct conf_pipeline limited = {.name = "p", .memory_mib = 500, .deadline_seconds = 60};
    char *text = conf_pipeline_to_text(&limited);
    ck_assert_ptr_nonnull(strstr(text, "memory_mib = 500.0;\ndeadline_seconds = 60.0;"));
    free(text);
}

END_TEST

struct newer {
    int old;
    double added;

    struct {
        bool added;
    } group;
};

static const struct option_row group_rows[] = {
    {"added", &option_boolean, .offset = offsetof(struct newer, group.added), "true", .later = true},
};
static const struct option_section group_section = {.rows = group_rows, .row_count = 1, .size = sizeof(struct newer)};
static const struct option_row newer_rows[] = {
    {"old", &option_integer, .offset = offsetof(struct newer, old), "1"},
    {"added", &option_number, .offset = offsetof(struct newer, added), "0.5", .later = true},
    {"group", &option_group, .offset = 0, "{ }", .section = &group_section},
};
static const struct option_section newer_section = {.rows = newer_rows, .row_count = 3, .size = sizeof(struct newer)};

static void
check_identity(const struct newer *object, const char *expected)
{
    char *text = write_section(&newer_section, object, true);
    ck_assert_str_eq(text, expected);
    free(text);
}

/* Old options are written with their default, later options only with other values. */
START_TEST(new_options_at_their_default_do_not_change_the_identity)
{
    struct newer object = {.old = 1, .added = 0.5, .group = {true}};
    check_identity(&object, "old = 1;\n");
    object.added = 0.25;
    check_identity(&object, "old = 1;\nadded = 0.25;\n");
    object.group.added = false;
    check_identity(&object, "old = 1;\nadded = 0.25;\ngroup = {\n  added = false;\n};\n");
    object = (struct newer){.old = 1, .added = 0.5, .group = {true}};
    char *text = write_section(&newer_section, &object, false);
    ck_assert_str_eq(text, "old = 1;\nadded = 0.5;\ngroup = {\n  added = true;\n};\n");
    free(text);
}

END_TEST

START_TEST(an_error_in_a_pipeline_text_has_its_line)
{
    struct error error = {0};
    struct conf_pipeline *pipeline = NULL;
    ck_assert_int_eq(conf_pipeline_from_text("name = \"a\";\nsegments = 5;", &pipeline, &error), -EINVAL);
    ck_assert_str_eq(error.message, "pipeline:2: segments: must be a list ( { ... }, { ... } )");
    ck_assert_int_eq(conf_pipeline_from_text("", &pipeline, &error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "name is missing"));
    ck_assert_int_eq(conf_pipeline_from_text("@include \"/nowhere\"", &pipeline, &error), -EINVAL);
    ck_assert_ptr_null(pipeline);
    conf_pipeline_free(NULL);
    conf_free(NULL);
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("text");
    tcase_add_unchecked_fixture(tcase, make_test_folder, remove_test_folder);
    tcase_add_test(tcase, a_configuration_survives_a_round_trip);
    tcase_add_test(tcase, defaults_and_empty_lists_are_written_out);
    tcase_add_test(tcase, a_pipeline_survives_a_round_trip);
    tcase_add_test(tcase, the_text_of_a_pipeline_omits_destinations);
    tcase_add_test(tcase, the_identity_of_a_pipeline_does_not_change);
    tcase_add_test(tcase, limits_of_jobs_are_no_part_of_the_identity);
    tcase_add_test(tcase, new_options_at_their_default_do_not_change_the_identity);
    tcase_add_test(tcase, an_error_in_a_pipeline_text_has_its_line);
    return run_case(tcase, "config_text");
}

/* test_uses.c - segments that use each other, their steps, and hidden segments: valid and
 * invalid. */
#include "config/config.h"
#include "tests/unit/config/config_files.h"

#include <errno.h>

#define TYPE  "type = { code = \"T\"; scheme = \"99X\"; meaning = \"t\"; };"
#define SHAPE "shapes = ( { center = { voxel = [ 1, 2, 3 ]; }; radius_mm = 4; } );"
#define SEEDS "seeds = ( { voxel = [ 1, 2, 3 ]; } );"
/* Each segment is on a line of its own, from line 2. */
#define SEGMENTS(list)     "pipelines = ( { name = \"a\"; segments = (\n" list " ); } );"
#define RANGE(label, rest) "{ label = \"" label "\"; method = \"range\"; range = [ 0, 9 ]; " TYPE rest " }"
#define LEVEL(label, rest) "{ label = \"" label "\"; range = [ 0, 9 ]; " TYPE rest " }"
#define FUZZY(label, rest) "{ label = \"" label "\"; method = \"fuzzy-connectedness\"; " SEEDS TYPE rest " }"

static struct conf *
load_good(const char *text)
{
    struct error error = {0};
    struct conf *conf = NULL;
    int rc = conf_load(write_file("good.conf", text), &conf, &error);
    ck_assert_msg(rc == 0, "%s\n%s", error.message, text);
    return conf;
}

static const char every_method[] =
    "pipelines = ( { name = \"a\"; segments = (\n"
    "  { label = \"R\"; method = \"range\"; range = [ 0, 9 ]; within = [ \"L\", \"F\" ]; " TYPE " },\n"
    "  { label = \"L\"; range = [ 0, 9 ]; from = \"F\"; minus = [ \"H\" ]; " TYPE "\n"
    "    then = ( { keep = 2; connectivity = 26; }, { fill = \"volume\"; },\n"
    "             { cut_bridges_mm = 2.5; } ); },\n"
    "  { label = \"F\"; method = \"fuzzy-connectedness\"; " SEEDS " intersect = [ \"H\" ];\n"
    "    then = ( { keep_at_least = 0.25; } ); " TYPE " },\n"
    "  { label = \"H\"; method = \"range\"; range = [ -5, 5 ]; hidden = true; } ); } );";

START_TEST(sets_and_steps_are_read_for_every_method)
{
    struct conf *conf = load_good(every_method);
    const struct conf_pipeline *pipeline = &conf->pipelines[0];
    const struct conf_segment *range = &pipeline->segments[0], *level = &pipeline->segments[1],
                              *fuzzy = &pipeline->segments[2], *hidden = &pipeline->segments[3];
    ck_assert_int_eq(range->method, CONF_RANGE);
    ck_assert_uint_eq(range->within_count, 2);
    ck_assert_str_eq(range->within[1], "F");
    ck_assert_ptr_null(range->then);
    ck_assert_str_eq(level->minus[0], "H");
    ck_assert_uint_eq(level->then_count, 3);
    ck_assert_int_eq(level->then[0].kind, CONF_STEP_KEEP);
    ck_assert_int_eq(level->then[0].keep, 2);
    ck_assert_int_eq(level->then[0].connectivity, 26);
    ck_assert_int_eq(level->then[1].kind, CONF_STEP_FILL_SLICES);
    ck_assert_int_eq(level->then[1].fill, CONF_FILL_VOLUME);
    ck_assert_int_eq(level->then[1].connectivity, 6);
    ck_assert_int_eq(level->then[2].kind, CONF_STEP_CUT_BRIDGES);
    ck_assert_double_eq(level->then[2].amount, 2.5);
    ck_assert_str_eq(fuzzy->intersect[0], "H");
    ck_assert_double_eq(fuzzy->then[0].amount, 0.25);
    ck_assert(hidden->hidden && !hidden->type.value && !range->hidden);
    const int32_t numbers[] = {1, 2, 3, 0};
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(conf_segment_number(pipeline, i), numbers[i]);
    conf_free(conf);
}

END_TEST

START_TEST(each_step_has_a_distinct_name)
{
    static const struct {
        const char *word;
        enum conf_step_kind kind;
    } steps[] = {{"keep = 1", CONF_STEP_KEEP},
                 {"keep_at_least = 0.5", CONF_STEP_KEEP_AT_LEAST},
                 {"drop_below_ml = 1", CONF_STEP_DROP_BELOW},
                 {"fill = \"slices\"", CONF_STEP_FILL_SLICES},
                 {"open_mm = 1", CONF_STEP_OPEN},
                 {"close_mm = 1", CONF_STEP_CLOSE},
                 {"grow_mm = 1", CONF_STEP_GROW},
                 {"shrink_mm = 1", CONF_STEP_SHRINK},
                 {"cut_bridges_mm = 1", CONF_STEP_CUT_BRIDGES}};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, SEGMENTS(RANGE("R", "then = ( { %s; } );")), steps[i].word);
        struct conf *conf = load_good(text);
        ck_assert_int_eq(conf->pipelines[0].segments[0].then[0].kind, steps[i].kind);
        conf_free(conf);
    }
}

END_TEST

static const char expression[] =
    "pipelines = ( { name = \"a\"; segments = (\n"
    "  { label = \"R\"; method = \"range\"; range = [ 0, 9 ]; within = [ \"H\" ]; minus = [ \"L\" "
    "];\n"
    "    then = ( { open_mm = 1.5; }, { keep = 1; connectivity = 26; }, { fill = \"slices\"; } );\n"
    "    " TYPE " },\n"
    "  { label = \"L\"; range = [ 0, 9 ]; " SHAPE TYPE " },\n"
    "  { label = \"H\"; method = \"range\"; range = [ -5, 5 ]; hidden = true; } ); } );";

START_TEST(expressions_read_back_from_text)
{
    struct conf *conf = load_good(expression);
    struct error error = {0};
    struct conf_pipeline *back = NULL;
    char *text = conf_pipeline_to_text(&conf->pipelines[0]);
    ck_assert_msg(conf_pipeline_from_text(text, &back, &error) == 0, "%s\n%s", error.message, text);
    char *again = conf_pipeline_to_text(back);
    ck_assert_str_eq(text, again);
    ck_assert_ptr_nonnull(strstr(text, "minus = [ \"L\" ];"));
    ck_assert_ptr_nonnull(strstr(text, "fill = \"slices\";"));
    char *identity = conf_pipeline_identity(back);
    ck_assert_ptr_nonnull(strstr(identity, "open_mm = 1.5;"));
    ck_assert_ptr_nonnull(strstr(identity, "hidden = true;"));
    free(identity);
    free(again);
    free(text);
    conf_pipeline_free(back);
    conf_free(conf);
}

END_TEST

static const struct {
    int line;
    const char *words, *text;
} wrong[] = {
    {3, "segments[1].within: there is no segment \"C\" in this pipeline: name one by its label",
     SEGMENTS(RANGE("A", "") ",\n" RANGE("B", "within = [ \"A\", \"C\" ];"))},
    {2, "segments[0].minus: there is no segment \"b\"",
     SEGMENTS(RANGE("A", "minus = [ \"b\" ];") ",\n" RANGE("B", ""))},
    {2, "segments[0].intersect: there is no segment \"C\"", SEGMENTS(RANGE("A", "intersect = [ \"C\" ];"))},
    {2, "segments[0].from: there is no segment \"Vessel\"", SEGMENTS(LEVEL("A", "from = \"Vessel\";"))},
    {2, "segments[0].within: \"A\" depends on itself: it uses \"A\"", SEGMENTS(RANGE("A", "within = [ \"A\" ];"))},
    {3,
     "segments[1].minus: \"B\" depends on itself: it uses \"C\", which uses \"D\", "
     "which "
     "uses \"B\"",
     SEGMENTS(RANGE("A", "within = [ \"B\" ];") ",\n" RANGE("B", "minus = [ \"C\" ];") ",\n" LEVEL(
         "C", SHAPE "intersect = [ \"D\" ];") ",\n" LEVEL("D", "from = \"B\";"))},
    {2, "segments[0].within: has 0 elements; it must have 1 .. 16", SEGMENTS(RANGE("A", "within = [ ];"))},
    {2, "segments[0].within: must be an array", SEGMENTS(RANGE("A", "within = \"B\";"))},
    {1, "segments: all of them are hidden", SEGMENTS(RANGE("A", "hidden = true;"))},
    {2, "segments[0].connectedness_map: a hidden segment is not written",
     SEGMENTS(FUZZY("A", "hidden = true; connectedness_map = true;") ", " RANGE("B", ""))},
    {3, "segments[1]: type: is missing; only hidden segments and segments of a SEG object may omit it",
     SEGMENTS(RANGE("A", "") ",\n{ label = \"B\"; method = \"range\"; range = [ 0, 9 ]; }")},
    {2, "segments[0].shapes: is only allowed with method = \"level-set\" or \"range\"", SEGMENTS(FUZZY("A", SHAPE))},
    {2, "segments[0].range: the lower end 9 is above the upper end 8",
     SEGMENTS("{ label = \"A\"; method = \"range\"; range = [ 9, 8 ]; " TYPE " }")},
    {2, "segments[0].range: must be [ ... ] of 2 numbers, or a group { ... }",
     SEGMENTS("{ label = \"A\"; method = \"range\"; range = 5; " TYPE " }")},
    {2, "segments[0].range: exactly one of percentile, otsu, sigma, of_max",
     SEGMENTS("{ label = \"A\"; range = { }; " SHAPE TYPE " }")},
    {2, "segments[0].range: exactly one of percentile, otsu, sigma, of_max",
     SEGMENTS("{ label = \"A\"; range = { sigma = 2; of_max = 0.5; }; " SHAPE TYPE " }")},
    {2, "segments[0].range.percentile: 96 is above 5",
     SEGMENTS("{ label = \"A\"; range = { percentile = [ 96, 5 ]; }; " SHAPE TYPE " }")},
    {2, "segments[0].range.percentile[1]: 101 is not within 0 .. 100",
     SEGMENTS("{ label = \"A\"; range = { percentile = [ 6, 101 ]; }; " SHAPE TYPE " }")},
    {2, "segments[0].range: class: is missing: give the number of the class",
     SEGMENTS("{ label = \"A\"; range = { otsu = 3; }; " SHAPE TYPE " }")},
    {2, "segments[0].range.class: there is no class 4 of 3",
     SEGMENTS("{ label = \"A\"; range = { otsu = 3; class = 4; }; " SHAPE TYPE " }")},
    {2, "segments[0].range.class: is only allowed with otsu",
     SEGMENTS("{ label = \"A\"; range = { sigma = 3; class = 1; }; " SHAPE TYPE " }")},
    {2, "segments[0].range: sigma refers to the start region, which only level sets have",
     SEGMENTS("{ label = \"A\"; method = \"range\"; range = { sigma = 3; }; " TYPE " }")},
    {2, "segments[0].range.of: there is no segment \"B\" in this pipeline",
     SEGMENTS("{ label = \"A\"; range = { sigma = 3; of = \"B\"; }; " SHAPE TYPE " }")},
    {2, "segments[0].range.of: \"A\" depends on itself",
     SEGMENTS("{ label = \"A\"; range = { sigma = 3; of = \"A\"; }; " SHAPE TYPE " }")},
    {2, "segments[0].auto: is not allowed with shapes or from: remove one of them",
     SEGMENTS(LEVEL("A", SHAPE "auto = \"largest\";"))},
    {2, "segments[0].auto: must be \"none\", \"largest\", \"center\", \"highest\" or \"lowest\"",
     SEGMENTS(LEVEL("A", "auto = \"lungs\";"))},
    {2, "segments[0].range: sigma refers to the start region, which auto finds by the range",
     SEGMENTS("{ label = \"A\"; range = { sigma = 3; }; auto = \"largest\"; " TYPE " }")},
    {1, "segments[1].within: \"B\" depends on itself: it uses \"A\", which uses \"B\"",
     "pipelines = ( { name = \"a\"; relative_connectedness = true; segments = ( "
     "{ label = \"A\"; method = \"fuzzy-connectedness\"; " SEEDS TYPE
     " }, " RANGE("B", "within = [ \"A\" ];") ", "
                                              "{ label = \"C\"; method = \"fuzzy-connectedness\"; auto = "
                                              "\"largest\"; within = [ \"B\" ]; " TYPE " } ); } );"},
    {2, "segments[0].auto: is only allowed with method = \"level-set\" or \"fuzzy-connectedness\"",
     SEGMENTS(RANGE("A", "auto = \"center\";"))},
    {2, "segments[0]: range is missing", SEGMENTS("{ label = \"A\"; method = \"range\"; " TYPE " }")},
    {2, "segments[0].then[0]: exactly one of keep, keep_at_least, drop_below_ml, fill, open_mm",
     SEGMENTS(RANGE("A", "then = ( { } );"))},
    {2, "segments[0].then[1]: exactly one of keep",
     SEGMENTS(RANGE("A", "then = ( { keep = 1; }, { keep = 1; fill = \"slices\"; } );"))},
    {2, "segments[0].then[0].fill: must be \"slices\" or \"volume\"",
     SEGMENTS(RANGE("A", "then = ( { fill = \"holes\"; } );"))},
    {2, "segments[0].then[0].keep: 257 is not within 1 .. 256", SEGMENTS(RANGE("A", "then = ( { keep = 257; } );"))},
    {2, "segments[0].then[0].keep_at_least: 1.5 is not within 0 .. 1",
     SEGMENTS(RANGE("A", "then = ( { keep_at_least = 1.5; } );"))},
    {2, "segments[0].then[0].open_mm: 0 is not within 0.01 .. 100",
     SEGMENTS(RANGE("A", "then = ( { open_mm = 0.0; } );"))},
    {2, "segments[0].then[0].connectivity: must be 6 (faces), or 26 (faces, edges and corners)",
     SEGMENTS(RANGE("A", "then = ( { keep = 1; connectivity = 18; } );"))},
    {2, "segments[0].then[0].connectivity: is only allowed with keep",
     SEGMENTS(RANGE("A", "then = ( { open_mm = 1.0; connectivity = 26; } );"))},
    {3, "\"codes\" requires a level set, and the pipeline has none that is not hidden",
     "pipelines = ( { name = \"a\"; segments = ( " LEVEL("A", SHAPE "hidden = true;") ", " RANGE(
         "B", "") " );\n\nresults = [ \"seg\", \"codes\" ]; } );"},
    {3, "segments[1].within: \"A\" has no grid_mm: a segment with grid_mm uses segments with grid_mm only",
     SEGMENTS(RANGE("A", "") ",\n" RANGE("B", "grid_mm = 2.0; within = [ \"A\" ];"))},
    {3, "segments[1].expect.share_of.label: \"A\" has no grid_mm",
     SEGMENTS(RANGE("A", "") ",\n" RANGE(
         "B", "grid_mm = 2.0; expect = { share_of = { label = \"A\"; range = [ 0.0, 1.0 ]; }; };"))},
    {3, "segments[1].grid_mm: \"A\" has a grid of 2: use one grid",
     SEGMENTS(RANGE("A", "grid_mm = 2.0;") ",\n" RANGE("B", "grid_mm = 3.0;"))},
    {2, "segments[0].grid_mm: is not allowed with method = \"object\"",
     SEGMENTS(
         "{ label = \"A\"; grid_mm = 2.0; method = \"object\"; object = { kind = \"rtstruct\"; roi = \"A\"; }; " TYPE
         " }")},
    {2, "segments[0].connectedness_map: is not allowed with grid_mm",
     SEGMENTS(FUZZY("A", "grid_mm = 2.0; connectedness_map = true;"))},
    {1, "relative_connectedness: \"A\" and \"B\" have different grids",
     "pipelines = ( { name = \"a\"; relative_connectedness = true; segments = ( " FUZZY(
         "A", "grid_mm = 2.0;") ", " FUZZY("B", "") " ); } );"},
    {3, "segments[1].refine.label: \"A\" has no grid_mm",
     SEGMENTS(RANGE("A", "") ",\n" RANGE("B", "smooth_mm = 1.0; refine = { label = \"A\"; };"))},
    {3, "segments[1].refine: requires smooth_mm",
     SEGMENTS(RANGE("A", "grid_mm = 2.0;") ",\n" RANGE("B", "refine = { label = \"A\"; };"))},
    {3, "segments[1].refine: is not allowed with from and shapes: use within",
     SEGMENTS(
         RANGE("A", "grid_mm = 2.0;") ",\n" RANGE("B", "smooth_mm = 1.0; from = \"A\"; refine = { label = \"A\"; };"))},
    {3, "segments[1].grid_mm: is not allowed with refine",
     SEGMENTS(RANGE("A", "grid_mm = 2.0;") ",\n" RANGE(
         "B", "grid_mm = 2.0; smooth_mm = 1.0; refine = { label = \"A\"; };"))},
    {2, "segments[0].smooth_mm: requires a range of two numbers",
     SEGMENTS("{ label = \"A\"; method = \"range\"; smooth_mm = 1.0; range = { otsu = 2; class = 1; }; " TYPE " }")},
    {2, "segments[0]: any_of is missing", SEGMENTS("{ label = \"A\"; method = \"any-of\"; " TYPE " }")},
    {2, "segments[0].any_of: there is no segment \"B\"",
     SEGMENTS("{ label = \"A\"; method = \"any-of\"; any_of = [ \"B\" ]; " TYPE " }")},
    {2, "segments[0].any_of: \"A\" depends on itself",
     SEGMENTS("{ label = \"A\"; method = \"any-of\"; any_of = [ \"A\" ]; " TYPE " }")},
    {2, "segments[0]: from: is missing: method = \"side\" works on a segment",
     SEGMENTS("{ label = \"A\"; method = \"side\"; side = { which = \"left\"; }; " TYPE " }")},
    {3, "segments[1].side.shrink_mm: must ascend",
     SEGMENTS(
         RANGE("A", "") ",\n{ label = \"B\"; method = \"side\"; from = \"A\"; side = { which = \"left\"; shrink_mm = "
                        "[ 0, 1, 2, 3, 4, 5, 6, 6, 7 ]; }; " TYPE " }")},
    {3, "segments[1].enclosed.at_least: 17 of 16 directions are not possible",
     SEGMENTS(RANGE("A", "") ",\n{ label = \"B\"; method = \"enclosed\"; enclosed = { by = \"A\"; directions = "
                             "\"axial-16\"; at_least = 17; }; " TYPE " }")},
    {3, "segments[1].leak.step: 0.5 makes more than 1000 limits",
     SEGMENTS(
         RANGE("A", "") ",\n{ label = \"B\"; method = \"grow-until-leak\"; from = \"A\"; leak = { limits = [ 0, 501 ]; "
                        "step = 0.5; most_ml = 1; }; " TYPE " }")},
    {3, "segments[1].slices_where.share: the lower end 2 is above the upper end 1",
     SEGMENTS(RANGE(
         "A", "") ",\n{ label = \"B\"; method = \"slices\"; from = \"A\"; slices_where = { label = \"A\"; share = "
                  "[ 2.0, 1.0 ]; }; " TYPE " }")},
    {2, "segments[0].then[0].space: is only allowed with steps in mm",
     SEGMENTS(RANGE("A", "then = ( { keep = 1; space = \"slice\"; } );"))},
    {3, "\"codes\" requires a level set, and the pipeline has none that is not hidden and has no grid_mm",
     "pipelines = ( { name = \"a\"; segments = ( " LEVEL("A", SHAPE "grid_mm = 2.0;") ", " RANGE(
         "B", "") " );\n\nresults = [ \"seg\", \"codes\" ]; } );"},
};

START_TEST(errors_in_expressions_have_file_and_line)
{
    struct error error = {0};
    char place[PATH_MAX + 32];
    struct conf *conf = NULL;
    const char *path = write_file("wrong.conf", wrong[_i].text);
    ck_assert_int_eq(conf_load(path, &conf, &error), -EINVAL);
    snprintf(place, sizeof(place), "%s:%d: pipelines[0].", path, wrong[_i].line);
    ck_assert_msg(strncmp(error.message, place, strlen(place)) == 0, "%s: %s", wrong[_i].text, error.message);
    ck_assert_msg(strstr(error.message, wrong[_i].words) != NULL, "%s: %s", wrong[_i].text, error.message);
}

END_TEST

static const char relative[] =
    "pipelines = ( { name = \"a\"; segments = (\n"
    "  { label = \"P\"; method = \"range\"; range = { percentile = [ 5.0, 95.5 ]; of = \"O\"; "
    "}; " TYPE " },\n"
    "  { label = \"O\"; method = \"range\"; range = { otsu = 3; class = 2; }; " TYPE " },\n"
    "  { label = \"S\"; range = { sigma = 2.5; }; " SHAPE TYPE " },\n"
    "  { label = \"M\"; range = { of_max = 0.41; of = \"S\"; }; from = \"S\"; " TYPE " } ); } );";

START_TEST(relative_ranges_read_back)
{
    struct conf *conf = load_good(relative);
    const struct conf_segment *segments = conf->pipelines[0].segments;
    ck_assert_int_eq(segments[0].range.relative, CONF_PERCENTILE);
    ck_assert_double_eq(segments[0].range.percentile[1], 95.5);
    ck_assert_str_eq(segments[0].range.of, "O");
    ck_assert_int_eq(segments[1].range.relative, CONF_OTSU);
    ck_assert_int_eq(segments[1].range.otsu, 3);
    ck_assert_int_eq(segments[1].range.otsu_class, 2);
    ck_assert_ptr_null(segments[1].range.of);
    ck_assert_int_eq(segments[2].range.relative, CONF_SIGMA);
    ck_assert_double_eq(segments[3].range.of_max, 0.41);
    char *text = conf_pipeline_to_text(&conf->pipelines[0]);
    struct error error = {0};
    struct conf_pipeline *back = NULL;
    ck_assert_msg(conf_pipeline_from_text(text, &back, &error) == 0, "%s\n%s", error.message, text);
    char *again = conf_pipeline_to_text(back);
    ck_assert_str_eq(text, again);
    free(again);
    free(text);
    conf_pipeline_free(back);
    conf_free(conf);
}

END_TEST

START_TEST(a_long_cycle_is_reported)
{
    static char text[40000];
    size_t at = (size_t)snprintf(text, sizeof text, "pipelines = ( { name = \"a\"; segments = (\n");
    for (int i = 0; i < 256; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s{ label = \"S%d\"; method = \"range\"; range = [ 0, 9 ]; " TYPE
                               " within = [ \"S%d\" ]; }",
                               i ? ",\n" : "", i, (i + 1) % 256);
    snprintf(text + at, sizeof text - at, " ); } );");
    struct error error = {0};
    struct conf *conf = NULL;
    ck_assert_int_eq(conf_load(write_file("circle.conf", text), &conf, &error), -EINVAL);
    ck_assert_msg(strstr(error.message, "depends on itself: it uses \"S") != NULL, "%s", error.message);
}

END_TEST

/* The shipped example, uncommented. */
START_TEST(the_lungs_of_the_shipped_file_are_valid)
{
    char *text = read_text_file(NOCTULE_SOURCE_DIR "/config/noctule.conf");
    char *example = strstr(text, "  # { name = \"chest-lungs\";"), *end = strstr(example, "\n\n");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    for (char *mark = example; (mark = strstr(mark, "  # ")); mark += 4)
        mark[2] = ' ';
    char *whole;
    ck_assert_int_gt(asprintf(&whole, "pipelines = (\n%s );", example), 0);
    struct conf *conf = load_good(whole);
    ck_assert(conf->pipelines[0].segments[0].hidden);
    ck_assert_str_eq(conf->pipelines[0].segments[1].within[0], "Body");
    conf_free(conf);
    free(whole);
    free(text);
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("uses");
    tcase_add_unchecked_fixture(tcase, make_test_folder, remove_test_folder);
    tcase_add_test(tcase, sets_and_steps_are_read_for_every_method);
    tcase_add_test(tcase, each_step_has_a_distinct_name);
    tcase_add_test(tcase, expressions_read_back_from_text);
    tcase_add_loop_test(tcase, errors_in_expressions_have_file_and_line, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(tcase, relative_ranges_read_back);
    tcase_add_test(tcase, a_long_cycle_is_reported);
    tcase_add_test(tcase, the_lungs_of_the_shipped_file_are_valid);
    return run_case(tcase, "config_uses");
}

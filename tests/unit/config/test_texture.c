/*
 * test_texture.c - the group texture of a pipeline, and the results that require it.
 */
#include "config/config.h"
#include "tests/unit/config/config_files.h"

#include <errno.h>

#define SEGMENTS                                                                                                       \
    "segments = ( { label = \"A\"; range = [ 0.0, 80.0 ];\n"                                                           \
    "  shapes = ( { center = { voxel = [ 1, 2, 3 ]; }; radius_mm = 4.0; } );\n"                                        \
    "  type = { code = \"T\"; scheme = \"99X\"; meaning = \"t\"; }; } );\n"
#define BEFORE         4 /* lines before what a test gives */
#define PIPELINE(rest) "pipelines = ( { name = \"a\";\n" SEGMENTS rest " } );\n"
#define TEXTURE(rest)  PIPELINE("texture = { " rest " };")
#define GLCM(rest)     TEXTURE("glcm = { " rest " };")

static struct conf *
load_good(const char *text)
{
    struct error error = {0};
    struct conf *conf = NULL;
    int rc = conf_load(write_file("texture.conf", text), &conf, &error);
    ck_assert_msg(rc == 0, "%s\n%.2000s", error.message, text);
    return conf;
}

static const struct texture_options *
texture_of(const struct conf *conf)
{
    ck_assert_ptr_nonnull(conf->pipelines[0].texture);
    return conf->pipelines[0].texture;
}

static const struct glcm_options *
glcm_of(const struct conf *conf)
{
    ck_assert_ptr_nonnull(texture_of(conf)->glcm);
    return texture_of(conf)->glcm;
}

START_TEST(a_pipeline_measures_no_texture_by_default)
{
    struct conf *conf = load_good(PIPELINE(""));
    ck_assert_ptr_null(conf->pipelines[0].texture);
    ck_assert_uint_eq(conf->pipelines[0].results, CONF_RESULT_SEG);
    conf_free(conf);
}

END_TEST

START_TEST(texture_gets_its_defaults)
{
    struct conf *conf = load_good(TEXTURE(""));
    const struct texture_options *texture = texture_of(conf);
    ck_assert_uint_eq(texture->regions, CONF_SEGMENTS);
    ck_assert(texture->first_order);
    ck_assert_ptr_null(texture->glcm);
    ck_assert_uint_eq(texture->patterns, 0);
    conf_free(conf);

    conf = load_good(TEXTURE("patterns = [ \"lanadp\", \"tlbap\" ];"));
    texture = texture_of(conf);
    ck_assert_uint_eq(texture->patterns, 1 << TEXTURE_TLBAP | 1 << TEXTURE_LANADP);
    ck_assert_double_eq(texture->tlbap_threshold, 0.9);
    ck_assert(!texture->tlbap_strict && !texture->lanadp_integer);
    conf_free(conf);
}

END_TEST

START_TEST(glcm_gets_its_defaults)
{
    struct conf *conf = load_good(GLCM(""));
    const struct glcm_options *glcm = glcm_of(conf);
    const struct discretisation_options *levels = &texture_of(conf)->levels;
    ck_assert(!texture_of(conf)->levels_wanted);
    ck_assert_int_eq(levels->kind, DISCRETISATION_FIXED_BIN_NUMBER);
    ck_assert_int_eq(levels->levels, 32);
    ck_assert_double_eq(levels->bin_width, 0);
    ck_assert(!levels->has_range);
    ck_assert_int_eq(glcm->aggregation, AGGREGATION_3D_MERGED);
    ck_assert(glcm->symmetric);
    ck_assert_uint_eq(glcm->distance_count, 1);
    ck_assert_int_eq(glcm->distances[0], 1);
    ck_assert_uint_eq(glcm->angle_count, 0);
    ck_assert_uint_eq(glcm->offset_count, 0);
    conf_free(conf);

    conf = load_good(GLCM("aggregation = \"2d-averaged\";"));
    glcm = glcm_of(conf);
    ck_assert_uint_eq(glcm->angle_count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(glcm->angles[i], 45 * i);
    conf_free(conf);
}

END_TEST

START_TEST(all_options_are_read)
{
    struct conf *conf =
        load_good(PIPELINE("texture = { regions = [ \"volume\", \"segments\" ]; first_order = false;\n"
                           "  discretisation = \"fixed-bin-size\"; bin_width = 25;\n"
                           "  range = [ -1000.0, 400.5 ]; sigma = 3;\n"
                           "  glcm = { aggregation = \"2.5d-merged\"; symmetric = false;\n"
                           "           distances = [ 255, 1 ]; angles = [ 135, 0 ]; };\n"
                           "  patterns = [ \"lbp\", \"tlbap\", \"lanadp\" ]; tlbap_threshold = 0.123457;\n"
                           "  tlbap_strict = true; lanadp_average = \"integer\"; };\n"
                           "results = [ \"seg\", \"codes\", \"sr\", \"pmap\" ];"));
    const struct texture_options *texture = texture_of(conf);
    ck_assert_uint_eq(conf->pipelines[0].results,
                      CONF_RESULT_SEG | CONF_RESULT_CODES | CONF_RESULT_SR | CONF_RESULT_PMAP);
    ck_assert_uint_eq(texture->regions, CONF_SEGMENTS | CONF_VOLUME);
    ck_assert(!texture->first_order);
    ck_assert_uint_eq(texture->patterns, 1 << TEXTURE_LBP | 1 << TEXTURE_TLBAP | 1 << TEXTURE_LANADP);
    ck_assert_double_eq(texture->tlbap_threshold, 0.123457);
    ck_assert(texture->tlbap_strict && texture->lanadp_integer);
    ck_assert(texture->levels_wanted);
    ck_assert_int_eq(texture->levels.kind, DISCRETISATION_FIXED_BIN_SIZE);
    ck_assert_double_eq(texture->levels.bin_width, 25);
    ck_assert(texture->levels.has_range);
    ck_assert_double_eq(texture->levels.range[0], -1000);
    ck_assert_double_eq(texture->levels.range[1], 400.5);
    ck_assert_double_eq(texture->sigma, 3);
    const struct glcm_options *glcm = glcm_of(conf);
    ck_assert_int_eq(glcm->aggregation, AGGREGATION_2_5D_MERGED);
    ck_assert(!glcm->symmetric);
    ck_assert_uint_eq(glcm->distance_count, 2);
    ck_assert_int_eq(glcm->distances[0], 255);
    ck_assert_int_eq(glcm->distances[1], 1);
    ck_assert_uint_eq(glcm->angle_count, 2);
    ck_assert_int_eq(glcm->angles[0], 135);
    ck_assert_int_eq(glcm->angles[1], 0);
    conf_free(conf);
}

END_TEST

START_TEST(voxels_of_another_size)
{
    struct conf *conf = load_good(TEXTURE(""));
    ck_assert_ptr_null(texture_of(conf)->resample);
    conf_free(conf);

    conf = load_good(TEXTURE("resample = { isotropic_mm = 2; };"));
    const struct texture_resample *resample = texture_of(conf)->resample;
    ck_assert_int_eq(resample->spacing, TEXTURE_ISOTROPIC);
    ck_assert_double_eq(resample->mm, 2);
    ck_assert_int_eq(resample->interpolation, INTERPOLATION_LINEAR);
    conf_free(conf);

    conf = load_good(TEXTURE("resample = { in_plane_mm = 0.5; interpolation = \"cubic\"; };"));
    resample = texture_of(conf)->resample;
    ck_assert_int_eq(resample->spacing, TEXTURE_IN_PLANE);
    ck_assert_double_eq(resample->mm, 0.5);
    ck_assert_int_eq(resample->interpolation, INTERPOLATION_CUBIC);
    conf_free(conf);
}

END_TEST

/* A list of one group equals the group alone, also in UIDs. */
START_TEST(several_groups_measure)
{
    struct conf *conf = load_good(PIPELINE("texture = ( { sigma = 3.0; } );"));
    ck_assert_uint_eq(conf->pipelines[0].texture_count, 1);
    char *text = conf_pipeline_identity(&conf->pipelines[0]);
    struct conf *alone = load_good(TEXTURE("sigma = 3.0;"));
    char *expected = conf_pipeline_identity(&alone->pipelines[0]);
    ck_assert_str_eq(text, expected);
    free(text);
    free(expected);
    conf_free(alone);
    conf_free(conf);

    conf = load_good(PIPELINE("texture = ( { }, { regions = [ \"volume\" ]; glcm = { levels = 8; }; } );"));
    ck_assert_uint_eq(conf->pipelines[0].texture_count, 2);
    ck_assert_uint_eq(conf_measured_regions(&conf->pipelines[0]), CONF_SEGMENTS | CONF_VOLUME);
    ck_assert_ptr_null(conf->pipelines[0].texture[0].glcm);
    ck_assert_int_eq(conf->pipelines[0].texture[1].levels.levels, 8);
    text = conf_pipeline_to_text(&conf->pipelines[0]);
    struct conf_pipeline *again;
    struct error error;
    ck_assert_msg(conf_pipeline_from_text(text, &again, &error) == 0, "%s\n%.2000s", error.message, text);
    expected = conf_pipeline_to_text(again);
    ck_assert_str_eq(text, expected);
    ck_assert_uint_eq(again->texture_count, 2);
    free(text);
    free(expected);
    conf_pipeline_free(again);
    conf_free(conf);
}

END_TEST

START_TEST(offsets_replace_distances_and_angles)
{
    struct conf *conf = load_good(GLCM("offsets = ( [ 1, 0, 0 ], [ -255, 255, -1 ] );"));
    const struct glcm_options *glcm = glcm_of(conf);
    ck_assert_uint_eq(glcm->offset_count, 2);
    ck_assert_int_eq(glcm->offsets[0].x, 1);
    ck_assert_int_eq(glcm->offsets[0].y, 0);
    ck_assert_int_eq(glcm->offsets[0].z, 0);
    ck_assert_int_eq(glcm->offsets[1].x, -255);
    ck_assert_int_eq(glcm->offsets[1].y, 255);
    ck_assert_int_eq(glcm->offsets[1].z, -1);
    ck_assert_uint_eq(glcm->distance_count, 0);
    ck_assert_uint_eq(glcm->angle_count, 0);
    conf_free(conf);

    conf = load_good(GLCM("aggregation = \"2d-slice-merged\"; offsets = ( [ 0, -3, 0 ] );"));
    ck_assert_int_eq(glcm_of(conf)->offsets[0].y, -3);
    ck_assert_uint_eq(glcm_of(conf)->angle_count, 0);
    conf_free(conf);
}

END_TEST

START_TEST(each_value_is_parsed)
{
    static const char *const discretisations[] = {
        "discretisation = \"fixed-bin-number\"; levels = 2;",
        "discretisation = \"stored-256\"; levels = 8;",
        "discretisation = \"fixed-bin-size\"; bin_width = 1e-6;",
        "discretisation = \"pyradiomics-bin-width\"; bin_width = 1e9;",
    };
    static const char *const aggregations[] = {"2d-averaged", "2d-slice-merged", "2.5d-direction-merged",
                                               "2.5d-merged", "3d-averaged",     "3d-merged"};
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 6; j++) {
            char text[1024];
            snprintf(text, sizeof(text), TEXTURE("%s glcm = { aggregation = \"%s\"; };"), discretisations[i],
                     aggregations[j]);
            struct conf *conf = load_good(text);
            ck_assert_uint_eq(texture_of(conf)->levels.kind, i);
            ck_assert_uint_eq(glcm_of(conf)->aggregation, j);
            conf_free(conf);
        }
}

END_TEST

START_TEST(families_by_their_names)
{
    struct conf *conf = load_good(TEXTURE("first_order = false; families = [ \"intensity-histogram\" ];"));
    const struct texture_options *texture = texture_of(conf);
    ck_assert(texture_wants(texture, TEXTURE_FAMILY_intensity_histogram));
    ck_assert(!texture_wants(texture, TEXTURE_FAMILY_first_order));
    ck_assert(!texture_wants(texture, TEXTURE_FAMILY_glcm));
    ck_assert_ptr_null(texture_glcm_options(texture));
    conf_free(conf);

    conf = load_good(TEXTURE("families = [ \"all\" ]; ivh_discretisation = \"fixed-bin-number\";"));
    texture = texture_of(conf);
    for (int family = 0; family < TEXTURE_FAMILY_all; family++)
        ck_assert(texture_wants(texture, (enum texture_family)family));
    ck_assert_int_eq(texture->ivh.kind, VOLUME_HISTOGRAM_BIN_NUMBER);
    ck_assert_int_eq(texture->ivh.levels, 1000);
    ck_assert_int_eq(texture_glcm_options(texture)->aggregation, AGGREGATION_3D_MERGED);
    ck_assert(texture_glcm_options(texture)->symmetric);
    conf_free(conf);

    conf = load_good(TEXTURE("families = [ \"glcm\" ]; glcm = { symmetric = false; };"));
    ck_assert(!texture_glcm_options(texture_of(conf))->symmetric);
    conf_free(conf);
}

END_TEST

/* Until 0.1.0 the levels were options of glcm, and one discretisation had another name. */
START_TEST(old_files_keep_their_meaning)
{
    struct conf *conf = load_good(GLCM("discretisation = \"paper\"; levels = 8;\n"
                                       "range = [ 1.0, 99.0 ]; distances = [ 2 ];"));
    const struct texture_options *texture = texture_of(conf);
    ck_assert(texture->levels_wanted);
    ck_assert_int_eq(texture->levels.kind, DISCRETISATION_STORED_256);
    ck_assert_int_eq(texture->levels.levels, 8);
    ck_assert(texture->levels.has_range);
    ck_assert_double_eq(texture->levels.range[0], 1);
    ck_assert_double_eq(texture->levels.range[1], 99);
    ck_assert_int_eq(glcm_of(conf)->distances[0], 2);
    conf_free(conf);

    conf = load_good(GLCM("discretisation = \"pyradiomics-bin-width\"; bin_width = 2.5;"));
    ck_assert_int_eq(texture_of(conf)->levels.kind, DISCRETISATION_PYRADIOMICS_BIN_WIDTH);
    ck_assert_double_eq(texture_of(conf)->levels.bin_width, 2.5);
    conf_free(conf);
}

END_TEST

/* Texts that must be accepted. */
static const char *const good[] = {
    GLCM("levels = 256;"),
    GLCM("levels = 2;"),
    GLCM("range = [ 5.0, 5.0 ];"),
    GLCM("discretisation = \"fixed-bin-size\"; bin_width = 25.0;"),
    GLCM("distances = ( 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff );"),
    GLCM("offsets = ( [ 1, 0, 0 ], [ -1, 0, 0 ] );"),
    TEXTURE("first_order = false; patterns = [ \"lbp\" ];"),
    TEXTURE("patterns = [ \"tlbap\" ]; tlbap_threshold = 0;"),
    TEXTURE("patterns = [ \"tlbap\" ]; tlbap_threshold = 1.0;"),
    TEXTURE("patterns = [ \"tlbap\" ]; tlbap_threshold = 0.000001;"),
    TEXTURE("patterns = [ \"tlbap\" ]; tlbap_threshold = 0.999999;"),
    PIPELINE("texture = { }; results = [ \"seg\", \"sr\" ];"),
    PIPELINE("texture = { first_order = false; glcm = { }; }; results = [ \"seg\", \"sr\" ];"),
    PIPELINE("texture = { regions = [ \"volume\" ]; }; results = [ \"sr\" ];"),
    PIPELINE("sr_class = \"comprehensive-3d\"; results = [ \"seg\", \"sr\" ];"),
    PIPELINE("texture = { patterns = [ \"lbp\" ]; }; results = [ \"pmap\" ];"),
};

START_TEST(valid_files_are_read)
{
    conf_free(load_good(good[_i]));
}

END_TEST

#define ALSO_17 "( 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 )"

/* Lines are relative to the test's own text. */
static const struct {
    int line;
    const char *words;
    const char *text;
} wrong[] = {
    {1, "texture: must be a group", PIPELINE("texture = true;")},
    {1, "texture: has 0 elements; it must have 1 .. 64", PIPELINE("texture = ( );")},
    {1, "texture[1]: must be a group", PIPELINE("texture = ( { }, 1 );")},
    {2, "texture[1].patterns: an earlier group of texture has patterns",
     PIPELINE("texture = ( { patterns = [ \"lbp\" ]; }, {\npatterns = [ \"tlbap\" ]; } );")},
    {2, "texture[1].glcm.matrices: an earlier group of texture writes the other kind",
     PIPELINE("texture = ( { glcm = { matrices = \"counts\"; }; },\n"
              "{ glcm = { matrices = \"normalised\"; }; } );")},
    {1, "texture.resample: exactly one of isotropic_mm, in_plane_mm", TEXTURE("resample = { };")},
    {1, "texture.resample: exactly one of isotropic_mm, in_plane_mm",
     TEXTURE("resample = { isotropic_mm = 1.0; in_plane_mm = 1.0; };")},
    {1, "texture.resample.isotropic_mm: 0 is not within 0.01 .. 100", TEXTURE("resample = { isotropic_mm = 0.0; };")},
    {1,
     "texture.resample.interpolation: must be \"nearest\", \"linear\", \"cubic\", \"pyradiomics-nearest\", "
     "\"pyradiomics-linear\" or \"pyradiomics-cubic\"",
     TEXTURE("resample = { isotropic_mm = 1.0; interpolation = \"spline\"; };")},
    {2, "texture.patterns: are computed on the original voxels",
     TEXTURE("resample = { isotropic_mm = 1.0; };\npatterns = [ \"lbp\" ];")},
    {1, "texture.sigma: -1 is not within", TEXTURE("sigma = -1.0;")},
    {1, "texture.glcm: must be a group", TEXTURE("glcm = [ 1 ];")},
    {2,
     "texture.haralick: unknown option; this section has: profile, normalise, names, resample, filter, "
     "response, voxelwise, regions, discretisation",
     TEXTURE("\nharalick = true;")},
    {2, "texture.glcm.level: unknown option", GLCM("\nlevel = 8;")},
    {2, "texture.regions: must be [ ... ] with at least one of \"segments\" or \"volume\"",
     TEXTURE("\nregions = [ ];")},
    {1, "texture.regions[1]: must be \"segments\" or \"volume\"", TEXTURE("regions = [ \"volume\", \"slices\" ];")},
    {1, "texture.first_order: must be true or false", TEXTURE("first_order = 1;")},
    {2,
     "texture.first_order: there is no measurement: set it to true, or give families, glcm or "
     "patterns",
     TEXTURE("\nfirst_order = false;")},
    {1, "texture.patterns: must be [ ... ] with at least one of \"lbp\", \"tlbap\" or \"lanadp\"",
     TEXTURE("patterns = [ ];")},
    {1, "texture.patterns[0]: must be \"lbp\", \"tlbap\" or \"lanadp\"", TEXTURE("patterns = [ \"LBP\" ];")},
    {2, "texture.tlbap_threshold: is only allowed with \"tlbap\" among patterns",
     TEXTURE("patterns = [ \"lbp\", \"lanadp\" ];\ntlbap_threshold = 0.9;")},
    {1, "texture.tlbap_strict: is only allowed with \"tlbap\" among patterns", TEXTURE("tlbap_strict = false;")},
    {1, "texture.lanadp_average: is only allowed with \"lanadp\" among patterns",
     TEXTURE("patterns = [ \"tlbap\" ]; lanadp_average = \"exact\";")},
    {1, "texture.lanadp_average: must be \"exact\" or \"integer\"",
     TEXTURE("patterns = [ \"lanadp\" ]; lanadp_average = \"half\";")},
    {1, "texture.tlbap_threshold: 1.1 is not within 0 .. 1",
     TEXTURE("patterns = [ \"tlbap\" ]; tlbap_threshold = 1.1;")},
    {2, "texture.tlbap_threshold: 0.1234567 has more than six decimals: round it",
     TEXTURE("patterns = [ \"tlbap\" ];\ntlbap_threshold = 0.1234567;")},
    {1,
     "texture.discretisation: must be \"fixed-bin-number\", \"stored-256\", \"fixed-bin-size\" "
     "or "
     "\"pyradiomics-bin-width\"",
     TEXTURE("discretisation = \"equal\";")},
    {2, "texture.levels: is only allowed with discretisation = \"fixed-bin-number\" or \"stored-256\"",
     TEXTURE("discretisation = \"fixed-bin-size\"; bin_width = 1.0;\nlevels = 32;")},
    {1, "texture.levels: is only allowed with discretisation = \"fixed-bin-number\" or \"stored-256\"",
     TEXTURE("discretisation = \"pyradiomics-bin-width\"; bin_width = 1.0; levels = 32;")},
    {2,
     "texture.bin_width: is only allowed with discretisation = \"fixed-bin-size\" or "
     "\"pyradiomics-bin-width\"",
     TEXTURE("\nbin_width = 25.0;")},
    {1, "texture.bin_width: is only allowed with", TEXTURE("discretisation = \"stored-256\"; bin_width = 1.0;")},
    {1, "texture: bin_width is missing", TEXTURE("discretisation = \"fixed-bin-size\";")},
    {1, "texture: bin_width is missing", TEXTURE("\ndiscretisation = \"pyradiomics-bin-width\";")},
    {1, "texture.bin_width: 0 is not within 1e-06 .. 1000000000",
     TEXTURE("discretisation = \"fixed-bin-size\"; bin_width = 0.0;")},
    {2, "texture.glcm.levels: 1 is not within 2 .. 65536", GLCM("\nlevels = 1;")},
    {1, "texture.levels: 1 is not within 2 .. 65536", TEXTURE("levels = 1;")},
    {1, "texture.levels: 65537 is not within 2 .. 65536", TEXTURE("levels = 65537;")},
    {1, "texture.levels: stored-256 has at most 256 levels", TEXTURE("discretisation = \"stored-256\"; levels = 257;")},
    {1, "texture.resample: the interpolations of pyradiomics have no other rounding",
     TEXTURE("discretisation = \"stored-256\"; resample = { isotropic_mm = 1.0; interpolation = \"pyradiomics-cubic\"; "
             "};")},
    {1, "texture.resample: the interpolations of pyradiomics have no other rounding",
     TEXTURE("resample = { isotropic_mm = 1.0; interpolation = \"pyradiomics-linear\"; rounding = \"stored\"; };")},
    {1, "texture.discretisation: stored-256 is of stored values",
     TEXTURE("discretisation = \"stored-256\"; resample = { isotropic_mm = 1.0; rounding = \"none\"; };")},
    {1, "texture.filter: kind is missing", TEXTURE("filter = { };")},
    {1, "texture.filter: size is missing", TEXTURE("filter = { kind = \"mean\"; };")},
    {1, "texture.filter.size: 4 voxels have no centre", TEXTURE("filter = { kind = \"mean\"; size = 4; };")},
    {1, "texture.filter.sigma_mm: is only allowed with kind = \"log\"",
     TEXTURE("filter = { kind = \"mean\"; size = 5; sigma_mm = 1.0; };")},
    {1, "texture.filter.kernels: must name a kernel for each axis, such as \"L5E5E5\"",
     TEXTURE("filter = { kind = \"laws\"; kernels = \"L5E5\"; };")},
    {1, "texture.filter.kernels: must name a kernel for each axis, such as \"L5E5\"",
     TEXTURE("filter = { kind = \"laws\"; kernels = \"L5E7\"; in_slice = true; };")},
    {1, "texture.filter.energy: 4 voxels have no centre",
     TEXTURE("filter = { kind = \"laws\"; kernels = \"L5E5E5\"; energy = 4; };")},
    {1, "texture.filter.kernels: must name a kernel for each axis, such as \"LLH\"",
     TEXTURE("filter = { kind = \"wavelet\"; wavelet = \"haar\"; kernels = \"LLX\"; };")},
    {1, "texture.filter.theta_degrees: with pooling, must divide 360 degrees",
     TEXTURE("filter = { kind = \"gabor\"; sigma_mm = 5.0; gamma = 1.5; lambda_mm = 2.0; theta_degrees = 50.0; "
             "pooling = \"mean\"; };")},
    {1, "texture.filter.kernels: must name a kernel for each axis, such as \"020\"",
     TEXTURE("filter = { kind = \"riesz-log\"; sigma_mm = 5.0; kernels = \"000\"; };")},
    {1, "texture.filter.kernels: must name a kernel for each axis, such as \"02\"",
     TEXTURE("filter = { kind = \"riesz-simoncelli\"; kernels = \"020\"; in_slice = true; };")},
    {1, "texture.filter.level: is only allowed with kind",
     TEXTURE("filter = { kind = \"mean\"; size = 5; level = 2; };")},
    {1, "texture.sigma: is of values, and not possible with filter",
     TEXTURE("filter = { kind = \"mean\"; size = 5; }; sigma = 3.0;")},
    {1, "texture.discretisation: stored-256 is of stored values, and not possible with filter",
     TEXTURE("filter = { kind = \"mean\"; size = 5; }; discretisation = \"stored-256\";")},
    {1, "texture.patterns: are computed on the original voxels: use another texture group without filter",
     TEXTURE("filter = { kind = \"mean\"; size = 5; }; patterns = [ \"lbp\" ];")},
    {1, "texture.families: local-intensity reads responses beyond range",
     TEXTURE("filter = { kind = \"mean\"; size = 5; }; families = [ \"all\" ]; range = [ 0.0, 9.0 ];")},
    {1, "texture.levels: must be an integer", TEXTURE("levels = 32.0;")},
    {2, "texture.range: the lower end 400 is above the upper end -1000", TEXTURE("\nrange = [ 400.0, -1000.0 ];")},
    {1, "texture.range: must be [ ... ] of 2 numbers", TEXTURE("range = [ 400.0 ];")},
    {1,
     "glcm.aggregation: must be \"2d-averaged\", \"2d-slice-merged\", "
     "\"2.5d-direction-merged\", \"2.5d-merged\", \"3d-averaged\" or \"3d-merged\"",
     GLCM("aggregation = \"3d\";")},
    {1, "glcm.symmetric: must be true or false", GLCM("symmetric = \"yes\";")},
    {1, "glcm.distances: must be an array [ 1, 2 ]", GLCM("distances = 1;")},
    {1, "glcm.distances: has 0 elements; it must have 1 .. 16", GLCM("distances = [ ];")},
    {1, "glcm.distances: has 17 elements; it must have 1 .. 16", GLCM("distances = " ALSO_17 ";")},
    {1, "glcm.distances[1]: 0 is not within 1 .. 255", GLCM("distances = [ 1, 0 ];")},
    {1, "glcm.distances[0]: 256 is not within 1 .. 255", GLCM("distances = [ 256 ];")},
    {1, "glcm.distances[0]: must be an integer", GLCM("distances = [ 1.5 ];")},
    {2, "glcm.distances: 2 is given twice: remove one", GLCM("\ndistances = [ 2, 1, 2 ];")},
    {2,
     "glcm.angles: is only allowed with aggregation = \"2d-averaged\", \"2d-slice-merged\", "
     "\"2.5d-direction-merged\" or \"2.5d-merged\"",
     GLCM("aggregation = \"3d-averaged\";\nangles = [ 0 ];")},
    {1, "glcm.angles: is only allowed with aggregation", GLCM("angles = [ 0 ];")},
    {1, "glcm.angles: 30 must be 0, 45, 90 or 135", GLCM("aggregation = \"2d-averaged\"; angles = [ 0, 30 ];")},
    {1, "glcm.angles[0]: 180 is not within 0 .. 135", GLCM("aggregation = \"2d-averaged\"; angles = [ 180 ];")},
    {2, "glcm.angles: 45 is given twice: remove one", GLCM("aggregation = \"2d-averaged\";\nangles = [ 45, 45 ];")},
    {2, "glcm.distances: is not allowed with offsets: remove one of the two",
     GLCM("\ndistances = [ 1 ]; offsets = ( [ 1, 0, 0 ] );")},
    {2, "glcm.angles: is not allowed with offsets: remove one of the two",
     GLCM("aggregation = \"2.5d-merged\"; offsets = ( [ 1, 0, 0 ] );\nangles = [ 0 ];")},
    {1, "glcm.offsets: must be a list ( [ ... ], [ ... ] )", GLCM("offsets = 1;")},
    {1, "glcm.offsets: has 0 elements; it must have 1 .. 16", GLCM("offsets = ( );")},
    {1, "glcm.offsets: has 17 elements; it must have 1 .. 16", GLCM("offsets = " ALSO_17 ";")},
    {1, "glcm.offsets[0]: must be [ ... ] of 3 integers", GLCM("offsets = [ 1, 0, 0 ];")},
    {2, "glcm.offsets[1]: must be [ ... ] of 3 integers", GLCM("offsets = ( [ 1, 0, 0 ],\n[ 1, 0 ] );")},
    {1, "glcm.offsets[0][2]: 256 is not within -255 .. 255", GLCM("offsets = ( [ 0, 0, 256 ] );")},
    {1, "glcm.offsets[0][0]: must be an integer", GLCM("offsets = ( [ 1.0, 0.0, 0.0 ] );")},
    {2, "glcm.offsets[1]: a voxel is not its own neighbour: remove [ 0, 0, 0 ]",
     GLCM("offsets = ( [ 1, 0, 0 ],\n[ 0, 0, 0 ] );")},
    {3, "glcm.offsets[2]: is given twice: remove one", GLCM("offsets = ( [ 1, 0, 0 ],\n[ 0, 1, 0 ],\n[ 1, 0, 0 ] );")},
    {2,
     "glcm.offsets[1]: leads to another slice: set the third number to 0, or aggregation to "
     "\"3d-averaged\" or \"3d-merged\"",
     GLCM("aggregation = \"2.5d-merged\"; offsets = ( [ 1, 0, 0 ],\n[ 0, 0, 1 ] );")},
    {2,
     "pipelines[0].results: \"sr\" requires measurements: give texture families, first_order or "
     "glcm",
     PIPELINE("\nresults = [ \"seg\", \"sr\" ];")},
    {2, "pipelines[0].results: \"sr\" requires measurements",
     PIPELINE("sr_class = \"comprehensive-3d\";\nresults = [ \"sr\" ];")},
    {2,
     "pipelines[0].results: \"sr\" requires measurements: give texture families, first_order or "
     "glcm",
     PIPELINE("texture = { first_order = false; patterns = [ \"lbp\" ]; };\n"
              "results = [ \"seg\", \"sr\" ];")},
    {2,
     "pipelines[0].results: \"sr\" refers to the segments in \"seg\": add \"seg\", or measure "
     "texture.regions = [ \"volume\" ] only",
     PIPELINE("texture = { regions = [ \"segments\", \"volume\" ]; };\nresults = [ \"sr\" ];")},
    {2, "pipelines[0].results: \"pmap\" requires patterns: name them in texture.patterns",
     PIPELINE("\nresults = [ \"seg\", \"pmap\" ];")},
    {1, "pipelines[0].results: \"pmap\" requires patterns: name them in texture.patterns",
     PIPELINE("texture = { glcm = { }; }; results = [ \"pmap\" ];")},
};

START_TEST(errors_have_file_and_line)
{
    struct error error = {0};
    char place[PATH_MAX + 32];
    struct conf *conf = NULL;
    const char *path = write_file("wrong.conf", wrong[_i].text);
    ck_assert_int_eq(conf_load(path, &conf, &error), -EINVAL);
    ck_assert_ptr_null(conf);
    snprintf(place, sizeof(place), "%s:%d: pipelines[0].", path, BEFORE + wrong[_i].line);
    ck_assert_msg(strncmp(error.message, place, strlen(place)) == 0, "%s: %s", wrong[_i].text, error.message);
    ck_assert_msg(strstr(error.message, wrong[_i].words) != NULL, "%s: %s", wrong[_i].text, error.message);
}

END_TEST

/* --------------------------------------------------------------------------- as text, and back */

/* The text is part of the results' identity, so it must not change between versions. */
START_TEST(a_pipeline_without_texture_keeps_its_text)
{
    struct conf *conf = load_good(PIPELINE(""));
    char *text = conf_pipeline_to_text(&conf->pipelines[0]);
    ck_assert_str_eq(text, "name = \"a\";\n"
                           "segments = ( {\n"
                           "  label = \"A\";\n"
                           "  description = \"\";\n"
                           "  method = \"level-set\";\n"
                           "  range = [ 0.0, 80.0 ];\n"
                           "  shapes = ( {\n"
                           "    kind = \"sphere\";\n"
                           "    center = {\n"
                           "      voxel = [ 1.0, 2.0, 3.0 ];\n"
                           "    };\n"
                           "    radius_mm = 4.0;\n"
                           "  } );\n"
                           "  auto = \"none\";\n"
                           "  auto_mm = 10.0;\n"
                           "  grid_mm = 0.0;\n"
                           "  hidden = false;\n"
                           "  category = {\n"
                           "    code = \"123037004\";\n"
                           "    scheme = \"SCT\";\n"
                           "    meaning = \"Anatomical Structure\";\n"
                           "  };\n"
                           "  type = {\n"
                           "    code = \"T\";\n"
                           "    scheme = \"99X\";\n"
                           "    meaning = \"t\";\n"
                           "  };\n"
                           "  color = [ 0.9, 0.3, 0.2 ];\n"
                           "  roi_type = \"auto\";\n"
                           "} );\n"
                           "results = [ \"seg\" ];\n"
                           "sr_class = \"enhanced\";\n"
                           "rtstruct_holes = \"keyhole\";\n"
                           "relative_connectedness = false;\n"
                           "omit_empty_frames = true;\n"
                           "overlap = \"refuse\";\n"
                           "compression = \"none\";\n"
                           "min_slices = 3;\n"
                           "spacing_tolerance = 0.03;\n"
                           "duplicates = \"refuse\";\n"
                           "tilt = \"straighten\";\n"
                           "grid = {\n"
                           "  mm = 0.0;\n"
                           "};\n"
                           "seg_grid = \"source\";\n"
                           "unit = \"images\";\n"
                           "changes = false;\n"
                           "derived = false;\n"
                           "flat = false;\n"
                           "colour = \"luma\";\n"
                           "review = \"hold\";\n"
                           "unreviewed = false;\n"
                           "series_description = \"\";\n"
                           "series_number = 9000;\n"
                           "picture_frames = \"multi\";\n"
                           "preview_window = [ 0.0, 0.0 ];\n"
                           "memory_mib = 0.0;\n"
                           "deadline_seconds = 0.0;\n"
                           "patience_seconds = 86400.0;\n"
                           "by_hand = false;\n"
                           "executor = \"any\";\n");
    free(text);
    conf_free(conf);
}

END_TEST

/* The text must contain all options that change values, also defaults. */
START_TEST(texture_is_written_with_its_defaults)
{
    struct conf *conf = load_good(TEXTURE("glcm = { aggregation = \"2d-averaged\"; };\n"
                                          "patterns = [ \"tlbap\", \"lanadp\" ];"));
    char *text = conf_pipeline_to_text(&conf->pipelines[0]);
    ck_assert_ptr_nonnull(strstr(text, "\ntexture = {\n"
                                       "  names = \"noctule\";\n"
                                       "  regions = [ \"segments\" ];\n"
                                       "  levels = 32;\n"
                                       "  sigma = 0.0;\n"
                                       "  first_order = true;\n"
                                       "  energy_shift = 0.0;\n"
                                       "  glcm = {\n"
                                       "    aggregation = \"2d-averaged\";\n"
                                       "    symmetric = true;\n"
                                       "    distances = [ 1 ];\n"
                                       "    angles = [ 0, 45, 90, 135 ];\n"
                                       "    matrices = \"none\";\n"
                                       "  };\n"
                                       "  patterns = [ \"tlbap\", \"lanadp\" ];\n"
                                       "  tlbap_threshold = 0.9;\n"
                                       "  tlbap_strict = false;\n"
                                       "  lanadp_average = \"exact\";\n"
                                       "};\n"));
    free(text);
    conf_free(conf);
}

END_TEST

static uint64_t random_state = 20240229;

/* 0 .. below - 1; xorshift64*. */
static int
any(int below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (int)((random_state * 2685821657736338717u >> 33) % (unsigned)below);
}

static void
any_places(struct glcm_options *glcm)
{
    bool in_slices = glcm->aggregation < AGGREGATION_3D_AVERAGED;
    if (any(2)) {
        glcm->offset_count = 1 + (size_t)any(16);
        glcm->offsets = calloc(glcm->offset_count, sizeof(*glcm->offsets));
        for (size_t i = 0; i < glcm->offset_count; i++) /* columns differ, so all offsets are different */
            glcm->offsets[i] = (struct texture_offset){
                .x = (int)i + 1 - 16 * any(17), .y = any(255) - 255, .z = in_slices ? 0 : any(511) - 255};
        return;
    }
    glcm->distance_count = 1 + (size_t)any(16);
    glcm->distances = calloc(glcm->distance_count, sizeof(int));
    for (size_t i = 0; i < glcm->distance_count; i++)
        glcm->distances[i] = 1 + (int)i + 16 * any(14);
    if (in_slices) {
        glcm->angle_count = 1 + (size_t)any(4);
        glcm->angles = calloc(glcm->angle_count, sizeof(int));
        int first = any(4);
        for (size_t i = 0; i < glcm->angle_count; i++)
            glcm->angles[i] = (first + (int)i) % 4 * 45;
    }
}

static void
any_levels(struct texture_options *texture)
{
    struct discretisation_options *levels = &texture->levels;
    texture->levels_wanted = any(2);
    if (texture->levels_wanted)
        levels->kind = (enum discretisation)any(4);
    if (discretisation_by_number(levels->kind))
        levels->levels = 2 + any(255);
    else
        levels->bin_width = (1 + any(1000000)) / 977.0;
    levels->has_range = any(2);
    if (levels->has_range) {
        levels->range[0] = (any(2000000) - 1000000) / 7.0;
        levels->range[1] = levels->range[0] + any(1000) / 3.0;
    }
}

static struct glcm_options *
any_glcm(void)
{
    struct glcm_options *glcm = calloc(1, sizeof(*glcm));
    ck_assert_ptr_nonnull(glcm);
    glcm->aggregation = (enum aggregation)any(6);
    glcm->symmetric = any(2);
    any_places(glcm);
    return glcm;
}

static struct texture_resample *
any_resample(void)
{
    struct texture_resample *resample = calloc(1, sizeof(*resample));
    ck_assert_ptr_nonnull(resample);
    resample->spacing = (enum texture_spacing)any(2);
    resample->mm = (1 + any(10000)) / 100.0;
    resample->interpolation = (enum interpolation)any(INTERPOLATIONS);
    return resample;
}

static struct texture_options *
any_texture(void)
{
    struct texture_options *texture = calloc(1, sizeof(*texture));
    ck_assert_ptr_nonnull(texture);
    texture->regions = 1 + (unsigned)any(3);
    any_levels(texture);
    texture->glcm = any(4) ? any_glcm() : NULL;
    texture->sigma = any(2) * any(1000) / 10.0;
    texture->patterns = (unsigned)any(8);
    if (texture->patterns == 0 && any(2))
        texture->resample = any_resample();
    if (texture->resample && texture->levels.kind == DISCRETISATION_STORED_256)
        texture->resample->interpolation = (enum interpolation)any(INTERPOLATION_PYRADIOMICS_NEAREST);
    texture->first_order = any(2) || (!texture->glcm && !texture->patterns);
    if (texture->patterns & 1 << TEXTURE_TLBAP) {
        texture->tlbap_threshold = any(1000001) / 1e6;
        texture->tlbap_strict = any(2);
    }
    if (texture->patterns & 1 << TEXTURE_LANADP)
        texture->lanadp_integer = any(2);
    return texture;
}

static void
check_same_glcm(const struct glcm_options *a, const struct glcm_options *b)
{
    ck_assert_int_eq(a->aggregation, b->aggregation);
    ck_assert_int_eq(a->symmetric, b->symmetric);
    ck_assert_uint_eq(a->distance_count, b->distance_count);
    ck_assert_uint_eq(a->angle_count, b->angle_count);
    ck_assert_uint_eq(a->offset_count, b->offset_count);
    for (size_t i = 0; i < a->distance_count; i++)
        ck_assert_int_eq(a->distances[i], b->distances[i]);
    for (size_t i = 0; i < a->angle_count; i++)
        ck_assert_int_eq(a->angles[i], b->angles[i]);
    for (size_t i = 0; i < a->offset_count; i++) {
        ck_assert_int_eq(a->offsets[i].x, b->offsets[i].x);
        ck_assert_int_eq(a->offsets[i].y, b->offsets[i].y);
        ck_assert_int_eq(a->offsets[i].z, b->offsets[i].z);
    }
}

static void
check_same_levels(const struct discretisation_options *a, const struct discretisation_options *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_int_eq(a->levels, b->levels);
    ck_assert_double_eq(a->bin_width, b->bin_width);
    ck_assert_int_eq(a->has_range, b->has_range);
    ck_assert_double_eq(a->range[0], b->range[0]);
    ck_assert_double_eq(a->range[1], b->range[1]);
}

static void
check_same_texture(const struct texture_options *a, const struct texture_options *b)
{
    ck_assert_ptr_nonnull(b);
    ck_assert_uint_eq(a->regions, b->regions);
    ck_assert_int_eq(a->levels_wanted, b->levels_wanted);
    check_same_levels(&a->levels, &b->levels);
    ck_assert_double_eq(a->sigma, b->sigma);
    ck_assert(!a->resample == !b->resample);
    if (a->resample)
        ck_assert(a->resample->spacing == b->resample->spacing && a->resample->mm == b->resample->mm &&
                  a->resample->interpolation == b->resample->interpolation);
    ck_assert_int_eq(a->first_order, b->first_order);
    ck_assert_uint_eq(a->patterns, b->patterns);
    ck_assert_double_eq(a->tlbap_threshold, b->tlbap_threshold);
    ck_assert_int_eq(a->tlbap_strict, b->tlbap_strict);
    ck_assert_int_eq(a->lanadp_integer, b->lanadp_integer);
    ck_assert(!a->glcm == !b->glcm);
    if (a->glcm)
        check_same_glcm(a->glcm, b->glcm);
}

static void
free_texture(struct conf_pipeline *pipeline)
{
    struct glcm_options *glcm = pipeline->texture->glcm;
    if (glcm) {
        free(glcm->distances);
        free(glcm->angles);
        free(glcm->offsets);
    }
    free(glcm);
    free(pipeline->texture->resample);
    free(pipeline->texture);
    pipeline->texture = NULL;
    pipeline->texture_count = 0;
}

START_TEST(any_texture_survives_a_round_trip)
{
    struct conf *conf = load_good(PIPELINE(""));
    struct conf_pipeline *pipeline = &conf->pipelines[0];
    for (int i = 0; i < 1000; i++) {
        pipeline->texture = any_texture();
        pipeline->texture_count = 1;
        struct error error = {0};
        struct conf_pipeline *back = NULL;
        char *text = conf_pipeline_to_text(pipeline);
        int rc = conf_pipeline_from_text(text, &back, &error);
        ck_assert_msg(rc == 0, "%s\n%.2000s", error.message, text);
        check_same_texture(pipeline->texture, back->texture);
        char *again = conf_pipeline_to_text(back);
        ck_assert_str_eq(text, again);
        free(again);
        free(text);
        conf_pipeline_free(back);
        free_texture(pipeline);
    }
    conf_free(conf);
}

END_TEST

START_TEST(a_whole_configuration_keeps_its_texture)
{
    struct conf *conf = load_good(TEXTURE("glcm = { offsets = ( [ 1, 0, 0 ], [ 2, 1, 0 ] ); };"));
    char *text = conf_to_text(conf);
    struct conf *again = load_good(text);
    check_same_texture(texture_of(conf), texture_of(again));
    free(text);
    conf_free(again);
    conf_free(conf);
}

END_TEST

/* ----------------------------------------------------------------------------- the shipped file */

/* Removes "# " from the lines of `text` from `first` to `last`. */
static void
uncomment(char *text, const char *first, const char *last)
{
    char *from = strstr(text, first);
    ck_assert_ptr_nonnull(from);
    char *to = strstr(from, last);
    ck_assert_ptr_nonnull(to);
    for (char *at = from; at && at <= to; at = strchr(at + 1, '\n')) {
        char *mark = strchr(at, '#');
        ck_assert_ptr_nonnull(mark);
        *mark = ' ';
    }
}

START_TEST(the_example_of_the_shipped_file_is_valid)
{
    char *text = read_text_file(NOCTULE_SOURCE_DIR "/config/noctule.conf");
    uncomment(text, "\n    # texture = {", "\n    # };");
    struct conf *conf = load_good(text);
    const struct texture_options *texture = conf_find_pipeline(conf, "example")->texture;
    ck_assert_ptr_nonnull(texture);
    ck_assert_ptr_nonnull(texture->glcm);
    ck_assert(texture->levels.has_range);
    ck_assert_uint_eq(texture->patterns, 1 << TEXTURE_LBP | 1 << TEXTURE_TLBAP | 1 << TEXTURE_LANADP);
    conf_free(conf);
    free(text);
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("texture");
    tcase_add_unchecked_fixture(tcase, make_test_folder, remove_test_folder);
    tcase_add_test(tcase, a_pipeline_measures_no_texture_by_default);
    tcase_add_test(tcase, texture_gets_its_defaults);
    tcase_add_test(tcase, glcm_gets_its_defaults);
    tcase_add_test(tcase, all_options_are_read);
    tcase_add_test(tcase, voxels_of_another_size);
    tcase_add_test(tcase, several_groups_measure);
    tcase_add_test(tcase, offsets_replace_distances_and_angles);
    tcase_add_test(tcase, each_value_is_parsed);
    tcase_add_test(tcase, families_by_their_names);
    tcase_add_test(tcase, old_files_keep_their_meaning);
    tcase_add_loop_test(tcase, valid_files_are_read, 0, sizeof(good) / sizeof(good[0]));
    tcase_add_loop_test(tcase, errors_have_file_and_line, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(tcase, a_pipeline_without_texture_keeps_its_text);
    tcase_add_test(tcase, texture_is_written_with_its_defaults);
    tcase_add_test(tcase, any_texture_survives_a_round_trip);
    tcase_add_test(tcase, a_whole_configuration_keeps_its_texture);
    tcase_add_test(tcase, the_example_of_the_shipped_file_is_valid);
    return run_case(tcase, "config_texture");
}

/*
 * test_memory.c - reads and writes configurations while the n-th allocation fails. This must be
 * reported, and no option must be lost.
 */
#include "config/config.h"
#include "tests/unit/config/config_files.h"
#include "tests/unit/starve.h"

#include <sys/stat.h>

/* Also replaces the strdup() of libconfig, which ignores its failure. */
char *
strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

static const char settings[] =
    "@include \"included.conf\"\n"
    "inbox = ( { path = \"/a\"; after = \"delete\"; } );\n"
    "destinations = ( { name = \"shelf\"; folder = \"out\"; } );\n"
    "programs = ( { name = \"net\"; profile = \"net\"; command = [ \"/n\", \"{in}\", \"{out}\" "
    "];\n  algorithm = { name = \"n\"; version = \"1\"; }; } );\n"
    "pipelines = ( { name = \"p\"; deliver = [ \"shelf\" ]; series_description = \"d\";\n"
    "  segments = ( { label = \"A\"; description = \"x\"; range = [ 0, 1 ];\n"
    "      type = { code = \"T\"; scheme = \"99X\"; meaning = \"t\"; };\n"
    "      shapes = ( { center = { mm = [ 0, 0, 0 ]; }; radius_mm = 1; } ); } );\n"
    "  texture = { profile = \"mine\"; glcm = { }; }; },\n"
    "  { name = \"q\"; segments = \"all labels\"; program = \"net\"; } );\n"
    "@overlay \"over.conf\"\n@overlay \"*.none\"\n";

static char path[PATH_MAX];
static char *expected[6]; /* written without a failed allocation */

static int
write_texts(struct error *error)
{
    struct conf *conf = NULL;
    int rc = conf_load(path, &conf, error);
    if (rc)
        return conf ? error_set(error, -EBADMSG, CODE_NONE, "something is left to be freed") : rc;
    char *texts[] = {conf_to_text(conf),
                     conf_pipeline_to_text(&conf->pipelines[0]),
                     conf_pipeline_identity(&conf->pipelines[0]),
                     conf_program_to_text(&conf->programs[0]),
                     conf_program_identity(&conf->programs[0]),
                     conf_grid_text(&conf->pipelines[1])};
    bool whole = true;
    for (int i = 0; i < 6; i++) {
        whole = whole && texts[i];
        if (texts[i] && expected[i] && strcmp(texts[i], expected[i]) != 0)
            rc = error_set(error, -EBADMSG, CODE_NONE, "other text %d:\n%s", i, texts[i]);
        if (expected[i])
            free(texts[i]);
        else
            expected[i] = texts[i];
    }
    conf_free(conf);
    return rc || whole ? rc : error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "no text");
}

START_TEST(no_option_is_lost_if_an_allocation_fails)
{
    struct error error = {0};
    write_file("included.conf", "log_level = \"debug\";\n");
    write_file("over.conf", "destinations = ( { name = \"shelf\"; folder = \"other\"; }, { name = \"b\"; "
                            "folder = \"more\"; } ); series = { quiet_seconds = 1; };\n");
    ck_assert_int_eq(mkdir(test_path("profiles"), 0700), 0);
    write_file("profiles/mine.conf", "families = [ \"glrlm\" ]; resample = { isotropic_mm = 2.0; }; sigma = 3.0;\n"
                                     "glcm = { offsets = ( [ 1, 0, 0 ], [ 0, 1, 0 ] ); }; tlbap_strict = true;\n");
    write_file("profiles/net.conf", "labels = ( { value = 3; name = \"a\"; type = { code = \"T\"; scheme = \"99X\"; "
                                    "meaning = \"t\"; }; color = [ 0.0, 0.0, 1.0 ]; } );\n");
    snprintf(path, sizeof path, "%s", write_file("noctule.conf", settings));
    ck_assert_msg(write_texts(&error) == 0, "%s", error.message);
    expect_told(write_texts);
    for (int i = 0; i < 6; i++)
        free(expected[i]);
    ck_assert_int_eq(remove(test_path("profiles/mine.conf")), 0);
    ck_assert_int_eq(remove(test_path("profiles/net.conf")), 0);
}

END_TEST

static size_t errors; /* counted without a failed allocation */

static int
tell_errors(struct error *error)
{
    struct conf *conf = NULL;
    struct conf_findings findings;
    int rc = conf_load_all(path, NULL, &conf, &findings, error);
    if (rc == -EINVAL && errors == 0)
        errors = findings.count;
    if (rc == -EINVAL)
        rc = findings.count == errors ? 0 : error_set(error, -EBADMSG, CODE_NONE, "not all");
    conf_findings_free(&findings);
    conf_free(conf);
    return rc;
}

START_TEST(no_error_is_lost_if_an_allocation_fails)
{
    struct error error = {0};
    snprintf(path, sizeof path, "%s",
             write_file("wrong.conf", "series = { quite_seconds = 1; }; dicom = { port = 70000; };\n"
                                      "pipelines = ( { name = \"p\"; segments = ( { label = 1; } ); }, { } );\n"
                                      "rules = ( { pipeline = \"q\"; }, { priority = \"x\"; } );\n"));
    ck_assert_msg(tell_errors(&error) == 0, "%s", error.message);
    ck_assert_uint_gt(errors, 6);
    expect_told(tell_errors);
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("memory");
    tcase_add_unchecked_fixture(tcase, make_test_folder, remove_test_folder);
    tcase_add_test(tcase, no_option_is_lost_if_an_allocation_fails);
    tcase_add_test(tcase, no_error_is_lost_if_an_allocation_fails);
    return run_case(tcase, "config_memory");
}

/*
 * test_load.c - the files that conf_load accepts, and its errors for all others.
 */
#include "config/config.h"
#include "tests/share.h"
#include "tests/unit/config/config_files.h"
#include "tests/unit/edge.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* A good segment and pipeline; cases below change one thing in them. */
#define SHAPE             "{ kind = \"sphere\"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 40.0; }"
#define TYPE              "type = { code = \"12738006\"; scheme = \"SCT\"; meaning = \"Brain\"; };"
#define SEGMENT           "label = \"Brain\"; range = [ 0.0, 80.0 ]; shapes = ( " SHAPE " ); " TYPE
#define PIPELINE(rest)    "pipelines = ( { name = \"a\"; segments = ( { " rest " } ); } );\n"
#define WITH_SHAPE(shape) PIPELINE("label = \"Brain\"; range = [ 0.0, 80.0 ]; shapes = ( { " shape " } ); " TYPE)
#define SEEDS             "seeds = ( { voxel = [ 1, 2, 3 ]; } );"
#define FUZZY(rest)       "{ label = \"Vessel\"; method = \"fuzzy-connectedness\"; " rest "\n" TYPE " }"
#define DRAWN(label_, rest)                                                                                            \
    "{ label = \"" label_ "\"; method = \"object\"; object = { kind = \"rtstruct\"; roi = \"R\"; " rest " }; " TYPE " }"
#define EACH(kind_, rest) "method = \"object\"; object = { kind = \"" kind_ "\"; roi = \"R*\"; each = true; }; " rest
#define TAKES_OWN                                                                                                      \
    "pipelines = ( { name = \"a\"; segments = ( { label = \"A\"; method = \"object\"; object = { "                     \
    "kind = \"seg\"; roi = \"R\"; own = true; }; " TYPE " } ); } );\n"
#define WITH_FUZZY(rest) "pipelines = ( { name = \"a\"; segments = ( " FUZZY(rest) " ); } );\n"
#define AE(name)         "name = \"" name "\"; ae_title = \"A\"; host = \"h\"; port = 104;"
#define CENTER           "center = { voxel = [ 1, 2, 3 ]; };"

static int
load(const char *path, struct conf **conf, struct error *error)
{
    error->message[0] = '\0';
    return conf_load(path, conf, error);
}

static struct conf *
load_good(const char *text)
{
    struct error error = {0};
    struct conf *conf = NULL;
    int rc = load(write_file("good.conf", text), &conf, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
    return conf;
}

START_TEST(an_empty_file_gives_the_defaults)
{
    struct conf *conf = load_good("");
    ck_assert_str_eq(conf->root, "/var/lib/noctule");
    ck_assert_uint_eq(conf->inbox_count, 1);
    ck_assert_str_eq(conf->inboxes[0].path, "/var/lib/noctule/inbox");
    ck_assert_int_eq(conf->inboxes[0].after, CONF_KEEP);
    ck_assert_ptr_null(conf->inboxes[0].move_to);
    ck_assert_double_eq(conf->inboxes[0].settle_seconds, 2);
    ck_assert_double_eq(conf->inboxes[0].sweep_seconds, 10);
    ck_assert_double_eq(conf->series.quiet_seconds, 60);
    ck_assert_double_eq(conf->series.complete_seconds, 5);
    ck_assert_double_eq(conf->series.patience_seconds, 300);
    ck_assert_int_eq(conf->jobs.max_attempts, 3);
    ck_assert_double_eq(conf->jobs.retry_seconds, 30);
    ck_assert_double_eq(conf->jobs.retry_max_seconds, 600);
    ck_assert_double_eq(conf->jobs.deadline_seconds, 3600);
    ck_assert_str_eq(conf->compute.backend, "auto");
    ck_assert_int_eq(conf->compute.threads, 0);
    ck_assert_int_eq(conf->compute.lanes, 2);
    ck_assert_uint_eq(conf->compute.device_count, 0);
    ck_assert_str_eq(conf->dicom.bind, "");
    ck_assert_int_eq(conf->dicom.port, 0);
    ck_assert_int_eq(conf->dicom.tls_port, 0);
    ck_assert_uint_eq(conf->dicom.title_count, 1);
    ck_assert_str_eq(conf->dicom.titles[0].ae_title, "NOCTULE");
    ck_assert_ptr_null(conf->dicom.titles[0].pipeline);
    ck_assert_uint_eq(conf->dicom.peer_count, 0);
    ck_assert_int_eq(conf->dicom.max_associations, 25);
    ck_assert_double_eq(conf->dicom.acse_seconds, 30);
    ck_assert_double_eq(conf->dicom.dimse_seconds, 60);
    ck_assert_double_eq(conf->dicom.idle_seconds, 300);
    ck_assert_int_eq(conf->dicom.max_pdu_kib, 128);
    ck_assert(!conf->dicom.echo_from_anybody);
    ck_assert_ptr_null(conf->dicom.tls.certificate);
    ck_assert(conf->dicom.tls.require_peer);
    ck_assert_uint_eq(conf->destination_count, 0);
    ck_assert_double_eq(conf->delivery.retry_seconds, 30);
    ck_assert_double_eq(conf->delivery.retry_max_seconds, 3600);
    ck_assert_double_eq(conf->delivery.give_up_seconds, 3 * 86400);
    ck_assert_int_eq(conf->delivery.breaker_failures, 5);
    ck_assert_double_eq(conf->delivery.breaker_seconds, 60);
    ck_assert_double_eq(conf->min_free_mib, 1024);
    ck_assert_uint_eq(conf->pipeline_count, 0);
    ck_assert_uint_eq(conf->rule_count, 0);
    ck_assert_str_eq(conf->device_serial_number, "noctule-1");
    ck_assert_str_eq(conf->log_level, "info");
    conf_free(conf);
}

END_TEST

START_TEST(a_pipeline_gets_its_defaults)
{
    struct conf *conf = load_good(PIPELINE(SEGMENT));
    const struct conf_pipeline *pipeline = conf_find_pipeline(conf, "a");
    ck_assert_ptr_nonnull(pipeline);
    ck_assert_ptr_null(conf_find_pipeline(conf, "b"));
    ck_assert_uint_eq(pipeline->results, CONF_RESULT_SEG);
    ck_assert(pipeline->omit_empty_frames);
    ck_assert_int_eq(pipeline->min_slices, 3);
    ck_assert_double_eq(pipeline->spacing_tolerance, 0.03);
    ck_assert_str_eq(pipeline->series_description, "");
    ck_assert_int_eq(pipeline->series_number, 9000);
    ck_assert_uint_eq(pipeline->deliver_count, 0);
    ck_assert_uint_eq(pipeline->segment_count, 1);
    const struct conf_segment *segment = &pipeline->segments[0];
    ck_assert_str_eq(segment->label, "Brain");
    ck_assert_str_eq(segment->description, "");
    ck_assert_int_eq(segment->method, CONF_LEVEL_SET);
    ck_assert_double_eq(segment->range.ends[1], 80);
    ck_assert_str_eq(segment->category.value, "123037004");
    ck_assert_str_eq(segment->type.meaning, "Brain");
    ck_assert_ptr_null(segment->modifier.value);
    ck_assert_ptr_null(segment->region.scheme);
    ck_assert_int_eq(segment->shapes[0].kind, CONF_SPHERE);
    ck_assert_int_eq(segment->shapes[0].center_unit, CONF_FRACTION);
    ck_assert_int_eq(segment->shapes[0].radius_unit, CONF_MM);
    ck_assert_double_eq(segment->shapes[0].radius[2], 40);
    conf_free(conf);
}

END_TEST

START_TEST(numbers_may_be_integers_of_either_size)
{
    struct conf *conf = load_good(
        "series = { quiet_seconds = 60; complete_seconds = 0x10L; patience_seconds = 1e2; "
        "};\n" WITH_SHAPE("kind = \"box\"; center = { mm = ( 1, 2.5, -3L ); }; radius_voxels = [ 1, 2, 3 ];"));
    ck_assert_double_eq(conf->series.quiet_seconds, 60);
    ck_assert_double_eq(conf->series.complete_seconds, 16);
    ck_assert_double_eq(conf->series.patience_seconds, 100);
    const struct conf_shape *shape = &conf->pipelines[0].segments[0].shapes[0];
    ck_assert_int_eq(shape->kind, CONF_BOX);
    ck_assert_int_eq(shape->center_unit, CONF_MM);
    ck_assert_double_eq(shape->center[1], 2.5);
    ck_assert_double_eq(shape->center[2], -3);
    ck_assert_int_eq(shape->radius_unit, CONF_VOXEL);
    ck_assert_double_eq(shape->radius[0], 1);
    ck_assert_double_eq(shape->radius[2], 3);
    conf_free(conf);
}

END_TEST

START_TEST(a_fuzzy_segment_gets_its_defaults)
{
    struct conf *conf =
        load_good("pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " }, " FUZZY(SEEDS) " ); } );");
    const struct conf_segment *segment = &conf->pipelines[0].segments[1];
    ck_assert_int_eq(conf->pipelines[0].segments[0].method, CONF_LEVEL_SET);
    ck_assert_int_eq(segment->method, CONF_FUZZY);
    ck_assert_uint_eq(segment->seed_count, 1);
    ck_assert_int_eq(segment->seeds[0].unit, CONF_VOXEL);
    ck_assert_double_eq(segment->seeds[0].at[2], 3);
    ck_assert(!segment->object_mean.given && !segment->object_sigma.given && !segment->homogeneity_sigma.given);
    ck_assert_int_eq(segment->estimate_voxels, 2);
    ck_assert_double_eq(segment->weight, 0.5);
    ck_assert_double_eq(segment->threshold, 0.5);
    ck_assert(!segment->connectedness_map);
    ck_assert(!conf->pipelines[0].relative_connectedness);
    conf_free(conf);
}

END_TEST

START_TEST(a_level_set_may_start_from_only_a_segment)
{
    struct conf *conf = load_good("pipelines = ( { name = \"a\"; segments = ( " FUZZY(
        SEEDS) ", { label = \"B\"; range = [ 0, 8 ]; from = \"Vessel\"; " TYPE " } ); } );");
    ck_assert_str_eq(conf->pipelines[0].segments[1].from, "Vessel");
    ck_assert_uint_eq(conf->pipelines[0].segments[1].shape_count, 0);
    ck_assert_ptr_null(conf->pipelines[0].segments[0].from);
    conf_free(conf);
}

END_TEST

START_TEST(a_fuzzy_segment_is_read)
{
    struct conf *conf = load_good("pipelines = ( { name = \"a\"; relative_connectedness = true; segments = ( " FUZZY(
        "seeds = ( { mm = [ -12.0, 30.5, 110.0 ]; }, { fraction = [ 0.0, 0.5, 1.0 ]; } );"
        "object_mean = 0; object_sigma = 25.0; homogeneity_sigma = 12.0; estimate_voxels = 16;"
        "weight = 1.0; threshold = 0.0; connectedness_map = true;") ",\n"
                                                                    "{ label = \"B\"; method = "
                                                                    "\"fuzzy-connectedness\";"
                                                                    " " SEEDS TYPE " } ); } );");
    const struct conf_segment *segment = &conf->pipelines[0].segments[0];
    ck_assert(conf->pipelines[0].relative_connectedness);
    ck_assert_uint_eq(segment->seed_count, 2);
    ck_assert_int_eq(segment->seeds[0].unit, CONF_MM);
    ck_assert_double_eq(segment->seeds[0].at[0], -12);
    ck_assert_int_eq(segment->seeds[1].unit, CONF_FRACTION);
    ck_assert(segment->object_mean.given); /* 0 is a mean like any other */
    ck_assert_double_eq(segment->object_mean.value, 0);
    ck_assert_double_eq(segment->object_sigma.value, 25);
    ck_assert_double_eq(segment->homogeneity_sigma.value, 12);
    ck_assert_int_eq(segment->estimate_voxels, 16);
    ck_assert_double_eq(segment->weight, 1);
    ck_assert_double_eq(segment->threshold, 0);
    ck_assert(segment->connectedness_map);
    conf_free(conf);
}

END_TEST

/* Until 0.1.0 a connectedness map was a scene. UIDs of pipelines with either word are the same. */
START_TEST(an_option_is_read_by_its_old_name)
{
    char *identities[2];
    for (int old = 0; old < 2; old++) {
        struct conf *conf =
            load_good(old ? WITH_FUZZY(SEEDS "scene = true;") : WITH_FUZZY(SEEDS "connectedness_map = true;"));
        ck_assert(conf->pipelines[0].segments[0].connectedness_map);
        identities[old] = conf_pipeline_identity(&conf->pipelines[0]);
        char *text = conf_to_text(conf);
        ck_assert_ptr_nonnull(strstr(text, "connectedness_map = true;"));
        ck_assert_ptr_null(strstr(text, "scene"));
        free(text);
        conf_free(conf);
    }
    ck_assert_str_eq(identities[0], identities[1]);
    ck_assert_ptr_nonnull(strstr(identities[0], "  scene = true;"));
    free(identities[0]);
    free(identities[1]);
}

END_TEST

START_TEST(gpus_are_named_by_index_or_uuid)
{
    struct conf *conf = load_good("compute = { backend = \"cuda\"; devices = [ \"0\", "
                                  "\"GPU-8a56a4bc-2184-bd3e-1b37-5e3b1c2d3e4f\" ]; };");
    ck_assert_str_eq(conf->compute.backend, "cuda");
    ck_assert_uint_eq(conf->compute.device_count, 2);
    ck_assert_str_eq(conf->compute.devices[0], "0");
    ck_assert_str_eq(conf->compute.devices[1], "GPU-8a56a4bc-2184-bd3e-1b37-5e3b1c2d3e4f");
    conf_free(conf);
}

END_TEST

START_TEST(rules_are_read)
{
    struct conf *conf =
        load_good(PIPELINE(SEGMENT) "rules = ( { pipeline = \"a\"; },\n"
                                    "  { match = { modality = \"CT\"; body_part = \"HEAD\"; description = \"thin\";\n"
                                    "              min_slices = 3; max_slices = 9; }; pipeline = \"a\"; priority = "
                                    "-7; } );");
    ck_assert_uint_eq(conf->rule_count, 2);
    ck_assert_ptr_null(conf->rules[0].modality);
    ck_assert_int_eq(conf->rules[0].max_slices, 0);
    ck_assert_str_eq(conf->rules[1].modality, "CT");
    ck_assert_str_eq(conf->rules[1].body_part, "HEAD");
    ck_assert_str_eq(conf->rules[1].description, "thin");
    ck_assert_int_eq(conf->rules[1].min_slices, 3);
    ck_assert_int_eq(conf->rules[1].max_slices, 9);
    ck_assert_int_eq(conf->rules[1].priority, -7);
    conf_free(conf);
}

END_TEST

#define DIGITS16 "0123456789abcdef"
#define DIGITS   DIGITS16 DIGITS16 DIGITS16 DIGITS16
#define COLONS8  "01:23:45:67:89:AB:CD:EF"

START_TEST(titles_and_peers_are_read)
{
    struct conf *conf = load_good(PIPELINE(SEGMENT) "dicom = { bind = \"::1\"; tls_port = 2762;\n"
                                                    "  titles = ( { ae_title = \"ONE TWO\"; },\n"
                                                    "             { ae_title = \"HEAD\"; pipeline = \"a\"; } );\n"
                                                    "  peers = ( { ae_title = \"CT1\"; host = \"10.0.0.5\"; "
                                                    "max_associations = 4; },\n"
                                                    "            { ae_title = \"CT1\"; certificate = \"" COLONS8
                                                    ":" COLONS8 ":" COLONS8 ":" COLONS8 "\"; },\n"
                                                    "            { ae_title = \"X\"; certificate = \"" DIGITS "\"; },\n"
                                                    "            { ae_title = \"Y\"; host = \"FE80:0::01\"; },\n"
                                                    "            { ae_title = \"Z\"; host = \"::ffff:10.0.0.7\"; } );\n"
                                                    "  tls = { certificate = \"a.pem\"; key = \"/b.pem\"; "
                                                    "ca = \"tls//ca.pem\"; }; };");
    const struct conf_dicom *dicom = &conf->dicom;
    ck_assert_str_eq(dicom->bind, "::1");
    ck_assert_str_eq(conf_find_title(conf, "HEAD")->pipeline, "a");
    ck_assert_ptr_eq(conf_find_title(conf, "ONE TWO"), &dicom->titles[0]);
    ck_assert_ptr_null(conf_find_title(conf, "head"));
    ck_assert_str_eq(dicom->peers[0].host, "10.0.0.5");
    ck_assert_int_eq(dicom->peers[0].max_associations, 4);
    ck_assert_ptr_null(dicom->peers[0].certificate);
    ck_assert_ptr_null(dicom->peers[1].host);
    ck_assert_int_eq(dicom->peers[1].max_associations, 0);
    ck_assert_str_eq(dicom->peers[1].certificate, DIGITS);
    ck_assert_str_eq(dicom->peers[2].certificate, DIGITS);
    ck_assert_str_eq(dicom->peers[3].host, "fe80::1");
    ck_assert_str_eq(dicom->peers[4].host, "10.0.0.7");
    ck_assert_str_eq(dicom->tls.certificate, "/var/lib/noctule/a.pem");
    ck_assert_str_eq(dicom->tls.key, "/b.pem");
    ck_assert_str_eq(dicom->tls.ca, "/var/lib/noctule/tls/ca.pem");
    conf_free(conf);
}

END_TEST

START_TEST(destinations_are_read)
{
    struct conf *conf =
        load_good("dicom = { titles = ( { ae_title = \"FIRST\"; }, { ae_title = \"SECOND\"; } );\n"
                  "  tls = { ca = \"/ca.pem\"; }; };\n"
                  "destinations = ( { name = \"shelf\"; folder = \"out\"; },\n"
                  "  { name = \"PACS\"; ae_title = \"ARCHIVE\"; host = \"pacs.example.org\"; port = 104;\n"
                  "    fallback = \"shelf\"; tls = true; commit = true; },\n"
                  "  { name = \"back\"; ae_title = \"ARCHIVE\"; host = \"10.0.0.6\"; port = 65535;\n"
                  "    calling_ae_title = \"OTHER\"; fallback = \"PACS\"; } );\n"
                  "pipelines = ( { name = \"a\"; deliver = [ \"PACS\", \"sender\" ];\n"
                  "  segments = ( { " SEGMENT " } ); } );");
    ck_assert_uint_eq(conf->destination_count, 3);
    ck_assert_str_eq(conf->destinations[0].folder, "/var/lib/noctule/out");
    ck_assert_ptr_null(conf->destinations[0].ae_title);
    const struct conf_destination *pacs = conf_find_destination(conf, "PACS");
    ck_assert_str_eq(pacs->ae_title, "ARCHIVE");
    ck_assert_ptr_null(pacs->folder);
    ck_assert_str_eq(pacs->calling_ae_title, "FIRST");
    ck_assert(pacs->tls && pacs->commit);
    ck_assert_double_eq(pacs->commit_seconds, 3600);
    ck_assert_double_eq(pacs->connect_seconds, 10);
    ck_assert_double_eq(pacs->dimse_seconds, 60);
    ck_assert_double_eq(pacs->idle_seconds, 10);
    ck_assert_str_eq(conf->destinations[2].calling_ae_title, "OTHER");
    ck_assert(!conf->destinations[2].tls && !conf->destinations[2].commit);
    ck_assert_ptr_eq(conf_find_destination_ae(conf, "ARCHIVE"), pacs);
    ck_assert_ptr_null(conf_find_destination_ae(conf, "PACS"));
    ck_assert_ptr_null(conf_find_destination(conf, "ARCHIVE"));
    const struct conf_pipeline *pipeline = &conf->pipelines[0];
    ck_assert_uint_eq(pipeline->deliver_count, 2);
    ck_assert_str_eq(pipeline->deliver[0], "PACS");
    ck_assert_str_eq(pipeline->deliver[1], CONF_SENDER);
    conf_free(conf);
}

END_TEST

START_TEST(paths_are_below_the_root)
{
    struct error error = {0};
    struct conf *conf;
    const char *path = write_file("root.conf", "root = \"/srv//noctule/./\";\n"
                                               "inbox = ( { path = \"in\"; after = \"move\"; move_to = \"done/\"; "
                                               "}, { path = \"/data/in/\"; } );");
    ck_assert_int_eq(load(path, &conf, &error), 0);
    ck_assert_str_eq(conf->root, "/srv/noctule");
    ck_assert_str_eq(conf->inboxes[0].path, "/srv/noctule/in");
    ck_assert_str_eq(conf->inboxes[0].move_to, "/srv/noctule/done");
    ck_assert_str_eq(conf->inboxes[1].path, "/data/in");
    conf_free(conf);

    ck_assert_int_eq(conf_load_with_root(path, "/other", &conf, &error), 0);
    ck_assert_str_eq(conf->root, "/other");
    ck_assert_str_eq(conf->inboxes[0].path, "/other/in");
    conf_free(conf);

    char here[PATH_MAX], expected[PATH_MAX + 16];
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    snprintf(expected, sizeof(expected), "%s/relative", here);
    ck_assert_int_eq(conf_load_with_root(path, "./relative/", &conf, &error), 0);
    ck_assert_str_eq(conf->root, expected);
    conf_free(conf);

    static const char *const tops[] = {"/", "//", "/.", "/./", "/.//./"};
    for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
        char text[64];
        snprintf(text, sizeof(text), "root = \"%s\"; inbox = ( );", tops[i]);
        conf = load_good(text);
        ck_assert_str_eq(conf->root, "/");
        conf_free(conf);
    }
    conf = load_good("root = \"/.a/b.//..c/.\"; inbox = ( );");
    ck_assert_str_eq(conf->root, "/.a/b./..c");
    ck_assert_uint_eq(conf->inbox_count, 0);
    conf_free(conf);
}

END_TEST

START_TEST(includes_are_relative_to_their_file)
{
    ck_assert_int_eq(mkdir(test_path("site"), 0700), 0);
    write_file("site/inner.conf", "threads = 5;");
    write_file("site/outer.conf", "compute = {\n  @include \"inner.conf\" # a remark\n  lanes = 3; };");
    struct conf *conf = load_good("log_level = \"warn\";\n"
                                  "/* not an\n@include \"directive\"\n*/\n"
                                  "@include \"site/outer.conf\"\n"
                                  "min_free_mib = 7;\n");
    ck_assert_int_eq(conf->compute.threads, 5);
    ck_assert_int_eq(conf->compute.lanes, 3);
    ck_assert_double_eq(conf->min_free_mib, 7);
    conf_free(conf);

    /* Lines are counted in the file that they stand in. */
    struct error error = {0};
    char absolute[PATH_MAX + 64];
    write_file("site/inner.conf", "\n\nthreads = \"x\";");
    const char *path = write_file("main.conf", "@include \"site/outer.conf\"\nlog_level = 1;\n");
    ck_assert_int_eq(load(path, &conf, &error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "/site/inner.conf:3: compute.threads: must be an integer"));
    write_file("site/inner.conf", "threads = 1;\n");
    ck_assert_int_eq(load(path, &conf, &error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "/main.conf:2: log_level: "));

    snprintf(absolute, sizeof(absolute), "@include \"%s\"", test_path("site/outer.conf"));
    conf = load_good(absolute);
    ck_assert_int_eq(conf->compute.threads, 1);
    conf_free(conf);
    ck_assert_int_eq(remove(test_path("site/inner.conf")), 0);
    ck_assert_int_eq(remove(test_path("site/outer.conf")), 0);
}

END_TEST

/* No mistake of the configuration: it is read another time. */
START_TEST(a_temporarily_unreadable_include)
{
    char text[PATH_MAX + 64];
    struct conf *conf = NULL;
    struct error error = {0};
    struct rlimit limit;
    snprintf(text, sizeof text, "@include \"%s\"", write_file("good.conf", "log_level = \"debug\";"));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int rc = conf_from_text(text, &conf, &error);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(rc, -EMFILE);
    ck_assert_ptr_nonnull(strstr(error.message, "cannot include "));
    ck_assert_ptr_nonnull(strstr(error.message, strerror(EMFILE)));
    ck_assert_int_eq(conf_from_text(text, &conf, &error), 0);
    conf_free(conf);
}

END_TEST

START_TEST(comments_strings_and_byte_order_marks)
{
    struct conf *conf = load_good("\xef\xbb\xbf# first\r\n"
                                  "root = \"/a\" \"/b\"; // one string\r\n"
                                  "device_serial_number /* here */ = \"\\\"n\xc3\xb6@include\\\"\"; # end");
    ck_assert_str_eq(conf->root, "/a/b");
    ck_assert_str_eq(conf->device_serial_number, "\"n\xc3\xb6@include\"");
    conf_free(conf);
}

END_TEST

/* Each text has one error; the message must begin with FILE:LINE and contain the words. */
static const struct {
    int line;
    const char *words;
    const char *text;
} wrong[] = {
    {2, "no_such_option: unknown option", "\nno_such_option = 1;"},
    {3, "series.quite_seconds: unknown option; did you mean quiet_seconds?", "series = {\n\n quite_seconds = 1.0; };"},
    {1, "series.silence: unknown option; this section has: quiet_seconds", "series = { silence = 1.0; };"},
    {1, "series: must be a group", "series = 5;"},
    {1, "pipelines: must be a list", "pipelines = { };"},
    {1, "inbox[0]: must be a group", "inbox = ( 5 );"},
    {2, "root: must be a string", "\nroot = 5;"},
    {1, "root: must be an absolute path", "root = \"var\";"},
    {1, "root: has 0 characters", "root = \"\";"},
    {1, "root: is not valid UTF-8", "root = \"/\xff\";"},
    {1, "root: is not valid UTF-8", "root = \"/\xed\xa0\x80\";"},
    {1, "root: is not valid UTF-8", "root = \"/\xc0\xaf\";"},
    {1, "root: is not valid UTF-8", "root = \"/\xc3\";"},
    {1, "root: must not contain a control character", "root = \"/a\\nb\";"},
    {1, "root: must not contain a control character", "root = \"/a\xc2\x85\";"},
    {1, "a string must not contain \\x00", "root = \"/a\\x00b\";"},
    {1, "series.quiet_seconds: must be a number", "series = { quiet_seconds = \"1\"; };"},
    {1, "series.quiet_seconds: -1 is not within 0 .. 86400", "series = { quiet_seconds = -1; };"},
    {1, "series.quiet_seconds: inf is not within", "series = { quiet_seconds = 1e999; };"},
    {1, "jobs.max_attempts: must be an integer", "jobs = { max_attempts = 1.5; };"},
    {1, "jobs.max_attempts: 0 is not within 1 .. 100", "jobs = { max_attempts = 0; };"},
    {2, "the integer 4294967299 is too large", "\njobs = { max_attempts = 4294967299; };"},
    {2, "the integer 0x100000003 is too large", "\njobs = { max_attempts = 0x100000003; };"},
    {2, "the integer 99999999999999999999L is too large", "\nmin_free_mib = 99999999999999999999L;"},
    {1, "compute.backend: must be \"auto\", \"cuda\" or \"cpu\"", "compute = { backend = \"gpu\"; };"},
    {1, "log_level: must be \"error\", \"warn\", \"info\" or \"debug\"", "log_level = 3;"},
    {2, "inbox[0]: path is missing", "inbox = (\n { after = \"keep\"; } );"},
    {1, "inbox[0].after: \"move\" requires move_to", "inbox = ( { path = \"a\"; after = \"move\"; } );"},
    {1, "inbox[0].move_to: is only allowed with", "inbox = ( { path = \"a\"; move_to = \"b\"; } );"},
    {1, "inbox[0].resent: \"newest\" requires after = \"move\" or \"delete\"",
     "inbox = ( { path = \"a\"; resent = \"newest\"; } );"},
    {2, "inbox[1].path: /var/lib/noctule/a/b is within another inbox",
     "inbox = ( { path = \"a\"; },\n { path = \"a/b\"; } );"},
    {1, "inbox[0].path: /var/lib/noctule is, or contains, a folder of Noctule itself",
     "inbox = ( { path = \".\"; } );"},
    {1, "inbox[0].path: /var is, or contains", "inbox = ( { path = \"/var\"; } );"},
    {1, "inbox[0].path: /var/lib/noctule/series/x is, or contains", "inbox = ( { path = \"series/x\"; } );"},
    {1, "compute.slurm.share: /var/lib/noctule is, or contains", "compute = { slurm = { share = \".\"; }; };"},
    {1, "compute.slurm.share: /var/lib/noctule/series is, or contains",
     "compute = { slurm = { share = \"series\"; }; };"},
    {1, "inbox[0].path: must not contain \"..\"", "inbox = ( { path = \"inbox/../series\"; } );"},
    {1, "inbox[0].move_to: /var/lib/noctule/a/b is within an inbox",
     "inbox = ( { path = \"a\"; after = \"move\"; move_to = \"a/b\"; } );"},
    {1, "duplicate setting name", "log_level = \"info\"; log_level = \"warn\";"},
    {3, "syntax error: check quotes, brackets and semicolons", "log_level = \"info\";\n\n= 5;"},
    {2, "@include and @overlay must begin a line", "\nlog_level = \"info\"; @include \"a.conf\""},
    {2, "the comment has no end: add */", "log_level = \"info\";\n/* hm"},
    {2, "the string has no closing quote", "\nroot = \"/a"},
    {2, "@include must be followed by a file name in quotes", "\n@include site.conf"},
    {2, "only a comment may follow @include", "\n@include \"a\" @include \"b\""},
    {2, "cannot include ", "\n@include \"nowhere.conf\""},
    {2, "not a regular file", "\n@include \".\""},
    {2, "not a regular file", "\n@include \"pipe\""},
    {2, "not a regular file", "\n@include \"/dev/zero\""},
    {1, "includes must not be nested more than 10 levels deep", "@include \"wrong.conf\""},
    {1, "integers and decimals are mixed", PIPELINE("range = [ 0, 80.5 ];")},
    {1, "pipelines[0]: name is missing", "pipelines = ( { segments = ( { " SEGMENT " } ); } );"},
    {1, "pipelines[0]: segments is missing", "pipelines = ( { name = \"a\"; } );"},
    {1, "pipelines[0].segments: has 0 elements; it must have 1 .. 256",
     "pipelines = ( { name = \"a\"; segments = ( ); } );"},
    {1, "pipelines[0].name: may only contain", "pipelines = ( { name = \"a b\"; } );"},
    {1, "pipelines[0].name: has 65 characters",
     "pipelines = ( { name = "
     "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"; } );"},
    {2, "pipelines[1].name: \"a\" is the name of an earlier pipeline",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); },\n"
     "{ name = \"a\"; segments = ( { " SEGMENT " } ); } );"},
    {2, "pipelines[0].segments[1].label: \"Brain\" is the label of an earlier segment",
     PIPELINE(SEGMENT " },\n { " SEGMENT)},
    {1, "segments[0]: label is missing", PIPELINE("range = [ 0.0, 1.0 ];")},
    {1, "segments[0].label: must not contain a backslash", PIPELINE("label = \"a\\\\b\";")},
    {1, "segments[0]: range is missing", PIPELINE("label = \"a\";")},
    {1, "segments[0].range: must be [ ... ] of 2 numbers", PIPELINE("label = \"a\"; range = [ 1.0 ];")},
    {1, "segments[0].range: must be [ ... ] of 2 numbers", PIPELINE("label = \"a\"; range = 1.0;")},
    {1, "segments[0].range[1]: must be a number", PIPELINE("label = \"a\"; range = ( 1.0, \"2\" );")},
    {1, "segments[0].range[1]: inf is not within", PIPELINE("label = \"a\"; range = [ 0.0, 1e999 ];")},
    {1, "segments[0].range: the lower end 9 is above the upper end 8",
     PIPELINE("label = \"a\"; range = [ 9, 8 ]; shapes = ( " SHAPE " ); " TYPE)},
    {1, "segments[0].shapes: a level set requires a start",
     PIPELINE("label = \"a\"; range = [ 0, 8 ]; shapes = ( ); " TYPE)},
    {1, "segments[0]: type: is missing; only hidden segments and segments of a SEG object may omit it",
     PIPELINE("label = \"a\"; range = [ 0, 8 ]; shapes = ( " SHAPE " );")},
    {1, "segments[0].type: meaning is missing",
     PIPELINE("label = \"a\"; range = [ 0, 8 ]; shapes = ( " SHAPE " ); type = { code = \"1\"; scheme = \"SCT\"; };")},
    {1, "segments[0].region: scheme is missing", PIPELINE(SEGMENT "region = { code = \"1\"; };")},
    {1, "type.code: has 17 characters",
     PIPELINE("label = \"a\"; range = [ 0, 8 ]; shapes = ( " SHAPE " ); "
              "type = { code = \"12345678901234567\"; };")},
    {1, "segments[0].color[2]: 1.5 is not within 0 .. 1", PIPELINE(SEGMENT "color = [ 0.0, 1.0, 1.5 ];")},
    {1,
     "segments[0].method: must be \"level-set\", \"fuzzy-connectedness\", \"range\", "
     "\"object\", \"program\", \"any-of\", \"enclosed\", \"sections\", \"grow-until-leak\", \"side\" or \"slices\"",
     PIPELINE(SEGMENT "method = \"magic\";")},
    {1, "shapes[0].kind: must be \"sphere\", \"ellipsoid\" or \"box\"", WITH_SHAPE("kind = \"cube\";")},
    {1, "shapes[0]: center is missing", WITH_SHAPE("radius_mm = 1.0;")},
    {1, "shapes[0].center: exactly one of voxel, mm, fraction", WITH_SHAPE("center = { }; radius_mm = 1.0;")},
    {1, "shapes[0].center: exactly one of voxel, mm, fraction",
     WITH_SHAPE("center = { mm = [ 1, 2, 3 ]; voxel = [ 1, 2, 3 ]; }; radius_mm = 1.0;")},
    {1, "shapes[0].center.mm: must be [ ... ] of 3 numbers", WITH_SHAPE("center = { mm = [ 1, 2 ]; };")},
    {1, "shapes[0]: exactly one of radius_voxels, radius_mm", WITH_SHAPE(CENTER)},
    {1, "shapes[0]: exactly one of radius_voxels, radius_mm",
     WITH_SHAPE(CENTER "radius_mm = 1.0; radius_voxels = 1.0;")},
    {1, "shapes[0].radius_mm: 0 is not within 0.001", WITH_SHAPE(CENTER "radius_mm = 0.0;")},
    {1, "shapes[0].radius_mm: must be a number, or [ ... ] of 3", WITH_SHAPE(CENTER "radius_mm = [ 1, 2 ];")},
    {1, "shapes[0].radius_voxels: a sphere has one radius", WITH_SHAPE(CENTER "radius_voxels = [ 1, 2, 3 ];")},
    {1,
     "pipelines[0].results: must be [ ... ] with at least one of \"seg\", \"codes\", \"sr\", "
     "\"pmap\", \"labelmap\", \"rtstruct\", \"nifti\" or \"picture\"",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); results = [ ]; } );"},
    {1,
     "pipelines[0].results[0]: must be \"seg\", \"codes\", \"sr\", \"pmap\", \"labelmap\", \"rtstruct\", \"nifti\" or "
     "\"picture\"",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); results = [ \"rtss\" ]; } );"},
    {1, "pipelines[0].preview_window: the width is negative: give [ centre, width ]",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); preview_window = [ 40.0, -80.0 ]; } );"},
    {1, "pipelines[0].omit_empty_frames: must be true or false",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); omit_empty_frames = 1; } );"},
    {2, "rules[0].pipeline: there is no pipeline named \"b\"", PIPELINE(SEGMENT) "rules = ( { pipeline = \"b\"; } );"},
    {2, "pipelines[0].window: \"25:00-06:00\" is not a time interval: write 22:00-06:00",
     "pipelines = ( { name = \"a\";\n window = \"25:00-06:00\"; segments = ( { " SEGMENT " } ); } );"},
    {2, "pipelines[0].window: \"Mo\" is not a day or range of days: write Mon-Fri or Sat,Sun",
     "pipelines = ( { name = \"a\";\n window = \"Mo 22:00-06:00\"; segments = ( { " SEGMENT " } ); } );"},
    {2, "pipelines[0].window: \"Mars\" is not a time zone of /usr/share/zoneinfo",
     "pipelines = ( { name = \"a\";\n window = \"22:00-06:00 Mars\"; segments = ( { " SEGMENT " } ); } );"},
    {2, "pipelines[0].window: has 0 characters",
     "pipelines = ( { name = \"a\";\n window = \"\"; segments = ( { " SEGMENT " } ); } );"},
    {2, "pipelines[0].window: must be a string",
     "pipelines = ( { name = \"a\";\n window = 22; segments = ( { " SEGMENT " } ); } );"},
    {2, "pipelines[0].done_by: \"7:00\" is not a time of day: write 07:00",
     "pipelines = ( { name = \"a\";\n done_by = \"7:00\"; segments = ( { " SEGMENT " } ); } );"},
    {1, "jobs.ageing_hours: -1 is not within 0 .. 8760", "jobs = { ageing_hours = -1; };"},
    {2, "rules[0]: pipeline is missing", PIPELINE(SEGMENT) "rules = ( { priority = 1; } );"},
    {3, "rules[0].match.max_slices: 2 is below min_slices, 3",
     PIPELINE(SEGMENT) "rules = ( { match = {\n min_slices = 3; max_slices = 2; }; pipeline = "
                       "\"a\"; } );"},
    {2, "rules[0].stacks: has 0 characters", PIPELINE(SEGMENT) "rules = ( { pipeline = \"a\"; stacks = \"\"; } );"},
    {2, "rules[0].match.modality: has 0 characters",
     PIPELINE(SEGMENT) "rules = ( { match = { modality = \"\"; }; pipeline = \"a\"; } );"},
    {1, "segments[1].object: from_ae: \"A\" takes the same kind of object from another sender",
     "pipelines = ( { name = \"a\"; segments = ( " DRAWN("A", "from_ae = \"TPS\";") ", " DRAWN("B", "") " ); } );"},
    {1, "segments[0].object.unite: is not allowed with each: remove one of the two",
     "pipelines = ( { name = \"a\"; segments = ( " DRAWN("A", "each = true; unite = true;") " ); } );"},
    {1, "segments[1].minus: \"A\" is one segment per region: name a segment with object.unite",
     "pipelines = ( { name = \"a\"; segments = ( " DRAWN("A", "each = true;") ", { label = \"B\"; " EACH(
         "rtstruct", "minus = [ \"A\" ]; " TYPE) " } ); } );"},
    {1, "segments[1].expect.share_of.label: \"A\" is one segment per region",
     "pipelines = ( { name = \"a\"; segments = ( " DRAWN("A", "each = true;") ", { label = \"B\"; " EACH(
         "rtstruct", "expect = { share_of = { label = \"A\"; range "
                     "= [ 0, 1 ]; }; }; " TYPE) " } ); } );"},
    {1, "segments[0]: type: is missing; only hidden segments and segments of a SEG object may omit it",
     "pipelines = ( { name = \"a\"; segments = ( { label = \"B\"; " EACH("rtstruct", "") " } ); } );"},
    {1, "segments[0].object.contour_pixels: is only allowed with kind = \"rtstruct\"",
     "pipelines = ( { name = \"a\"; segments = ( { label = \"A\"; method = \"object\"; object = { "
     "kind = \"seg\"; roi = \"R\"; contour_pixels = \"centres\"; }; " TYPE " } ); } );"},
    {2, "rules[0].pipeline: \"a\" has object = { own = true; }, but the service rejects its own",
     TAKES_OWN "rules = ( { pipeline = \"a\"; } );"},
    {2, "dicom.titles[0].pipeline: \"a\" has object = { own = true; }, but the service rejects its",
     TAKES_OWN "dicom = { titles = ( { ae_title = \"A\"; pipeline = \"a\"; } ); };"},
    {1, "segments[0].object.from_ae: has 0 characters",
     "pipelines = ( { name = \"a\"; segments = ( " DRAWN("A", "from_ae = \"\";") " ); } );"},
    {1, "segments[0].from: there is no segment \"A\" in this pipeline", WITH_FUZZY(SEEDS "from = \"A\";")},
    {1, "segments[0]: shapes: a level set requires a start", PIPELINE("label = \"a\"; range = [ 0, 8 ]; " TYPE)},
    {1, "segments[0]: seeds: fuzzy connectedness requires a start", WITH_FUZZY("")},
    {1, "segments[0].auto: is not allowed with seeds or from", WITH_FUZZY(SEEDS "auto = \"center\";")},
    {1, "segments[0].auto: \"largest\" requires within", WITH_FUZZY("auto = \"largest\";")},
    {1, "segments[0].range: is only allowed with method = \"level-set\" or \"range\"",
     WITH_FUZZY(SEEDS "range = [ 0, 1 ];")},
    {2, "segments[0].shapes: is only allowed with method = \"level-set\"",
     WITH_FUZZY(SEEDS "\nshapes = ( " SHAPE " );")},
    {2, "segments[0].seeds: is only allowed with method = \"fuzzy-connectedness\"", PIPELINE(SEGMENT "\n" SEEDS)},
    {2, "segments[0].object_mean: is only allowed with method = \"fuzzy-connectedness\"",
     PIPELINE(SEGMENT "\nobject_mean = 1.0;")},
    {1, "segments[0].threshold: is only allowed with", PIPELINE(SEGMENT "threshold = 0.5;")},
    {1, "segments[0].connectedness_map: is only allowed with", PIPELINE(SEGMENT "connectedness_map = false;")},
    {1, "segments[0].seeds: fuzzy connectedness requires a start", WITH_FUZZY("seeds = ( );")},
    {1, "segments[0].seeds[0]: exactly one of voxel, mm, fraction", WITH_FUZZY("seeds = ( { } );")},
    {1, "segments[0].seeds[0]: exactly one of voxel, mm, fraction",
     WITH_FUZZY("seeds = ( { mm = [ 1, 2, 3 ]; voxel = [ 1, 2, 3 ]; } );")},
    {1, "segments[0].seeds[0].fraction[1]: 1.1 is not within 0 .. 1",
     WITH_FUZZY("seeds = ( { fraction = [ 0.0, 1.1, 0.5 ]; } );")},
    {1, "segments[0].seeds[0].voxel[0]: -1 is not within 0 ..", WITH_FUZZY("seeds = ( { voxel = [ -1, 0, 0 ]; } );")},
    {1, "segments[0].object_sigma: 0 is not within", WITH_FUZZY(SEEDS "object_sigma = 0.0;")},
    {1, "segments[0].homogeneity_sigma: -1 is not within", WITH_FUZZY(SEEDS "homogeneity_sigma = -1.0;")},
    {1, "segments[0].object_mean: must be a number", WITH_FUZZY(SEEDS "object_mean = \"1\";")},
    {1, "segments[0].estimate_voxels: 17 is not within 1 .. 16", WITH_FUZZY(SEEDS "estimate_voxels = 17;")},
    {1, "segments[0].weight: 1.5 is not within 0 .. 1", WITH_FUZZY(SEEDS "weight = 1.5;")},
    {1, "segments[0].threshold: must be below 1", WITH_FUZZY(SEEDS "threshold = 1.0;")},
    {1, "segments[0].expect.near.label: there is no other segment \"Bone\"",
     PIPELINE(SEGMENT "expect = { near = { label = \"Bone\"; mm = 4.0; share = 0.8; }; };")},
    {1, "segments[0].expect.beside.label: there is no other segment \"Brain\"",
     PIPELINE(SEGMENT "expect = { beside = { label = \"Brain\"; tops_mm = 1.0; bases_mm = 1.0; }; };")},
    {1, "segments[0].expect.dropped.share: label and share require each other",
     PIPELINE(SEGMENT "expect = { dropped = { ml = 4.0; share = 0.1; }; };")},
    {1, "segments[0].expect.extent_mm.width: the lower end 5 is above the upper end 4",
     PIPELINE(SEGMENT "expect = { extent_mm = { width = [ 5, 4 ]; }; };")},
    {1, "segments[0].expect: frame requires a segment with grid_mm",
     PIPELINE(SEGMENT "expect = { frame = \"CT body\"; };")},
    {1, "segments[0].expect: noise requires a segment with grid_mm", PIPELINE(SEGMENT "expect = { noise = 35.0; };")},
    {2, "segments[0].expect.volume_ml: the lower end 5 is above the upper end 4",
     PIPELINE(SEGMENT "expect = {\nvolume_ml = [ 5, 4 ]; };")},
    {1, "segments[0].expect.mean: the lower end 5 is above the upper end 4",
     PIPELINE(SEGMENT "expect = { mean = [ 5, 4 ]; };")},
    {1, "segments[0].expect.components: the lower end 2 is above the upper end 1",
     PIPELINE(SEGMENT "expect = { components = [ 2, 1 ]; };")},
    {1, "segments[0].expect.slices: the lower end 2 is above the upper end 1",
     PIPELINE(SEGMENT "expect = { slices = [ 2, 1 ]; };")},
    {1, "segments[0].expect.volume_ml: must be [ ... ] of 2 numbers",
     PIPELINE(SEGMENT "expect = { volume_ml = 900; };")},
    {1, "segments[0].expect.components[0]: 0 is not within 1 ..",
     PIPELINE(SEGMENT "expect = { components = [ 0, 1 ]; };")},
    {1, "segments[0].expect.touches: must be \"any\", \"top-bottom\" or \"none\"",
     PIPELINE(SEGMENT "expect = { touches = \"left\"; };")},
    {1, "segments[0].expect.share_of.range: the lower end 1 is above the upper end 0.5",
     PIPELINE(SEGMENT "expect = { share_of = { label = \"B\"; range = [ 1.0, 0.5 ]; }; };")},
    {1, "segments[0].expect.share_of.label: there is no other segment \"Body\"",
     PIPELINE(SEGMENT "expect = { share_of = { label = \"Body\"; range = [ 0, 1 ]; }; };")},
    {1, "pipelines[0].review: must be \"hold\" or \"deliver\"",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); review = \"ask\"; } );"},
    {1, "pipelines[0].results: \"codes\" requires a level set, and the pipeline has none",
     "pipelines = ( { name = \"a\"; results = [ \"seg\", \"codes\" ]; segments = ( " FUZZY(SEEDS) " ); } );"},
    {1, "pipelines[0].relative_connectedness: requires at least two segments",
     "pipelines = ( { name = \"a\"; relative_connectedness = true; segments = ( { " SEGMENT
     " }, " FUZZY(SEEDS) " ); } );"},
    /* The start of segments that are found together must not depend on one of them. */
    {2, "segments[1].minus: \"R\" depends on itself: it uses \"Vessel\", which uses \"R\"",
     "pipelines = ( { name = \"a\"; relative_connectedness = true; segments = ( " FUZZY(
         SEEDS) ", "
                "{ label = \"R\"; method = \"range\"; range = [ 0, 1 ]; minus = [ \"Vessel\" ]; "
                "hidden "
                "= true; }, "
                "{ label = \"B\"; method = \"fuzzy-connectedness\"; from = \"R\"; " TYPE " } ); } );"},
    {1, "compute.devices[0]: must be the index of a GPU, or its UUID", "compute = { devices = [ \"GPU-8a56\" ]; };"},
    {1, "compute.devices[0]: must be the index of a GPU, or its UUID", "compute = { devices = [ \"first\" ]; };"},
    {2, "compute.devices: \"0\" is given twice: remove one", "compute = {\ndevices = [ \"0\", \"1\", \"0\" ]; };"},
    {1, "compute.devices: is not allowed with backend = \"cpu\"",
     "compute = { backend = \"cpu\"; devices = [ \"0\" ]; };"},
    {1, "dicom.bind: must be an IPv4 or IPv6 address", "dicom = { bind = \"localhost\"; };"},
    {1, "dicom.port: 65536 is not within 0 .. 65535", "dicom = { port = 65536; };"},
    {1, "dicom.tls_port: must differ from port, 104", "dicom = { port = 104; tls_port = 104; };"},
    {1, "dicom.tls_port: requires tls.certificate and tls.key", "dicom = { tls_port = 2762; };"},
    {1, "dicom.tls_port: requires tls.ca, or tls.require_peer = false",
     "dicom = { tls_port = 2762; tls = { certificate = \"c\"; key = \"k\"; }; };"},
    {2, "dicom.tls: certificate and key must be given together", "dicom = {\n tls = { certificate = \"c\"; }; };"},
    {1, "dicom.tls: certificate and key must be given together", "dicom = { tls = { key = \"k\"; }; };"},
    {1, "dicom.max_pdu_kib: 256 is not within 4 .. 128", "dicom = { max_pdu_kib = 256; };"},
    {1, "dicom.titles: has 0 elements; it must have 1 .. 64", "dicom = { titles = ( ); };"},
    {2, "dicom.titles[1].ae_title: \"A\" is an earlier title",
     "dicom = { titles = ( { ae_title = \"A\"; },\n { ae_title = \"A\"; } ); };"},
    {1, "dicom.titles[0].stacks: is only allowed with a pipeline of the title",
     "dicom = { titles = ( { ae_title = \"A\"; stacks = \"first\"; } ); };"},
    {2, "dicom.titles[0].pipeline: there is no pipeline named \"b\"",
     PIPELINE(SEGMENT) "dicom = { titles = ( { ae_title = \"A\"; pipeline = \"b\"; } ); };"},
    {1, "dicom.titles[0].ae_title: has 17 characters",
     "dicom = { titles = ( { ae_title = \"ABCDEFGHIJKLMNOPQ\"; } ); };"},
    {1, "dicom.titles[0].ae_title: must be printable ASCII", "dicom = { titles = ( { ae_title = \" A\"; } ); };"},
    {1, "dicom.titles[0].ae_title: must be printable ASCII", "dicom = { titles = ( { ae_title = \"A \"; } ); };"},
    {1, "dicom.titles[0].ae_title: must be printable ASCII", "dicom = { titles = ( { ae_title = \"A\\\\B\"; } ); };"},
    {1, "dicom.peers[0].ae_title: must be printable ASCII", "dicom = { peers = ( { ae_title = \"\xc3\xb6\"; } ); };"},
    {1, "dicom.peers[0]: ae_title is missing", "dicom = { peers = ( { host = \"::1\"; } ); };"},
    {1, "dicom.peers[0].host: must be an IPv4 or IPv6 address",
     "dicom = { peers = ( { ae_title = \"A\"; host = \"10.0.0.256\"; } ); };"},
    {1, "dicom.peers[0].certificate: requires tls_port",
     "dicom = { peers = ( { ae_title = \"A\"; certificate = \"" DIGITS "\"; } ); };"},
    {1, "dicom.peers[0].certificate: must be 32 bytes in hexadecimal",
     "dicom = { peers = ( { ae_title = \"A\"; certificate = \"" DIGITS ":\"; } ); };"},
    {1, "dicom.peers[0].certificate: must be 32 bytes in hexadecimal",
     "dicom = { peers = ( { ae_title = \"A\"; certificate = \"g" DIGITS16 DIGITS16 DIGITS16
     "123456789abcdef\"; } ); };"},
    {1, "destinations[0]: name is missing", "destinations = ( { folder = \"/out\"; } );"},
    {1, "destinations[0].name: \"sender\" is reserved for the sender of a series",
     "destinations = ( { name = \"sender\"; folder = \"/out\"; } );"},
    {1, "destinations[0].name: requires ae_title, host and port, or folder, or stow",
     "destinations = ( { name = \"a\"; ae_title = \"A\"; host = \"h\"; } );"},
    {1, "destinations[0].name: requires ae_title, host and port, or folder, or stow",
     "destinations = ( { name = \"a\"; } );"},
    {1, "destinations[0].host: must be a host name, or an IPv4 or IPv6 address",
     "destinations = ( { name = \"a\"; ae_title = \"A\"; host = \"pacs:104\"; port = 104; } );"},
    {1, "destinations[0].port: is not allowed with folder",
     "destinations = ( { name = \"a\"; folder = \"/out\"; port = 104; } );"},
    {1, "destinations[0].commit: is not allowed with folder",
     "destinations = ( { name = \"a\"; folder = \"/out\"; commit = true; } );"},
    {1, "destinations[0].folder: /var/lib/noctule/inbox/x is within an inbox",
     "destinations = ( { name = \"a\"; folder = \"inbox/x\"; } );"},
    {1, "destinations[0].folder: /var/lib/noctule/outbox is, or contains",
     "destinations = ( { name = \"a\"; folder = \"outbox\"; } );"},
    {2, "destinations[1].name: \"a\" is the name of an earlier destination",
     "destinations = ( { name = \"a\"; folder = \"/out\"; },\n { name = \"a\"; folder = "
     "\"/b\"; } );"},
    {1, "destinations[0].tls: requires dicom.tls.ca", "destinations = ( { " AE("a") " tls = true; } );"},
    {1, "destinations[0].fallback: there is no destination named \"b\"",
     "destinations = ( { " AE("a") " fallback = \"b\"; } );"},
    {1, "destinations[0].fallback: leads back to this destination",
     "destinations = ( { " AE("a") " fallback = \"a\"; } );"},
    {2, "destinations[1].fallback: leads back to this destination",
     "destinations = ( { name = \"c\"; folder = \"/c\"; },\n"
     "{ " AE("a") " fallback = \"b\"; }, { " AE("b") " fallback = \"a\"; } );"},
    {1, "pipelines[0].deliver: there is no destination named \"PACS\"",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); deliver = [ \"PACS\" ]; } );"},
    {2, "pipelines[0].memory_mib: 1024 is above jobs.memory_mib, 1000",
     "jobs = { memory_mib = 1000; };\n"
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); memory_mib = 1024; } );"},
    {1, "pipelines[0].deliver: \"sender\" is given twice: remove one",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); "
     "deliver = [ \"sender\", \"sender\" ]; } );"},
    {1, "pipelines[0].deliver: must be an array",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); deliver = \"sender\"; } );"},
    {1, "pipelines[0].deliver[0]: may only contain",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); deliver = [ \"a b\" ]; } );"},
    {1, "pipelines[0].deliver[0]: must be a string",
     "pipelines = ( { name = \"a\"; segments = ( { " SEGMENT " } ); deliver = [ 1 ]; } );"},
};

START_TEST(errors_have_file_and_line)
{
    struct error error = {0};
    char place[PATH_MAX + 32];
    struct conf *conf = NULL;
    const char *path = write_file("wrong.conf", wrong[_i].text);
    ck_assert(mkfifo(test_path("pipe"), 0600) == 0 || errno == EEXIST);
    ck_assert_int_eq(load(path, &conf, &error), -EINVAL);
    ck_assert_ptr_null(conf);
    snprintf(place, sizeof(place), "%s:%d: ", path, wrong[_i].line);
    ck_assert_msg(strncmp(error.message, place, strlen(place)) == 0, "%s: %s", wrong[_i].text, error.message);
    ck_assert_msg(strstr(error.message, wrong[_i].words) != NULL, "%s: %s", wrong[_i].text, error.message);
}

END_TEST

START_TEST(unreadable_files_are_errors)
{
    struct error error = {0};
    struct conf *conf = NULL;
    ck_assert_int_eq(load(test_path("nowhere.conf"), &conf, &error), -ENOENT);
    ck_assert_ptr_nonnull(strstr(error.message, "nowhere.conf: No such file"));
    ck_assert_int_eq(load(test_folder, &conf, &error), -EMEDIUMTYPE);
    static const char *const unprintable[] = {"\n~;", "\n# ~", "\n/* ~ */", "\nroot = \"/~\";"};
    for (size_t i = 0; i < sizeof(unprintable) / sizeof(unprintable[0]); i++) {
        char bytes[64];
        size_t size = strlen(unprintable[i]);
        memcpy(bytes, unprintable[i], size);
        *(char *)memchr(bytes, '~', size) = '\0';
        ck_assert_int_eq(load(write_bytes("nul.conf", bytes, size), &conf, &error), -EINVAL);
        ck_assert_ptr_nonnull(strstr(error.message, "nul.conf:2: the file contains a NUL byte"));
    }
}

END_TEST

/* Fills a file of `size` bytes from a repeated unit. */
static const char *
write_repeated(const char *unit, size_t size)
{
    char *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = unit[i % strlen(unit)];
    const char *path = write_bytes("large.conf", bytes, size);
    free(bytes);
    return path;
}

/* Returns whether `begin` with n times `each` is beyond a limit. */
static bool
is_beyond(const char *begin, const char *each, size_t n, const char *message)
{
    struct error error = {0};
    struct conf *conf = NULL;
    const size_t room = strlen(begin) + n * (strlen(each) + 16) + 1;
    char *text = malloc(room);
    ck_assert_ptr_nonnull(text);
    size_t length = (size_t)snprintf(text, room, "%s", begin);
    for (size_t i = 0; i < n; i++)
        length += (size_t)snprintf(text + length, room - length, "%s", each);
    const char *path = write_bytes("limit.conf", text, length);
    free(text);
    if (load(path, &conf, &error) == 0)
        conf_free(conf);
    return strstr(error.message, message) != NULL;
}

START_TEST(limits_hold_exactly)
{
    static const struct {
        struct edge edge;
        size_t others; /* elements that the text has besides */
        const char *begin, *each, *message;
    } limits[] = {
        {EDGE(CONFIG_BYTES), 2, "#", "x", "more than 4194304 bytes"}, /* a newline is added */
        {EDGE(CONFIG_LINES), 1, "", "\n", "more than 65000 lines"},
        {EDGE(CONFIG_DEPTH), 0, "x = ", "(", "nested more than 32 levels deep"},
        {EDGE(CONFIG_SETTINGS), 0, "x = { ", "a = 1; ", "a group must not have more than 256 settings"},
    };

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const size_t at = (size_t)limits[i].edge.most - limits[i].others;
        ck_assert_msg(!is_beyond(limits[i].begin, limits[i].each, at, limits[i].message), "%s, at the limit",
                      limits[i].message);
        ck_assert_msg(is_beyond(limits[i].begin, limits[i].each, at + 1, limits[i].message), "%s, beyond",
                      limits[i].message);
    }
    ck_assert(!is_beyond("x = ( { a = 1; }, ", "{ a = \"={:\"; }, /* = : */", 2000, "more than"));
}

END_TEST

/* The text of a short file may be long, because it contains all defaults. */
START_TEST(a_configuration_too_large_for_children_is_refused)
{
    static const char segment[] = "{ label = \"%c\"; range = [ 0.0, 80.0 ]; shapes = ( { kind = \"sphere\"; center = "
                                  "{ fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 40.0; } ); "
                                  "type = { code = \"1\"; scheme = \"SCT\"; meaning = \"Brain\"; }; }";
    const size_t size = LIMIT_CONFIG_BYTES;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    size_t length = (size_t)snprintf(text, size, "pipelines = ( ");
    for (int i = 0; i < 256; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s{ name = \"p%d\"; segments = ( ", i ? ", " : "", i);
        for (int j = 0; j < 20; j++) {
            length += (size_t)snprintf(text + length, size - length, "%s", j ? ", " : "");
            length += (size_t)snprintf(text + length, size - length, segment, 'A' + j);
        }
        length += (size_t)snprintf(text + length, size - length, " ); }");
    }
    ck_assert_uint_lt(length, size - 16);
    snprintf(text + length, size - length, " );\n");
    struct error error = {0};
    struct conf *conf = NULL;
    ck_assert_int_eq(load(write_file("many.conf", text), &conf, &error), -EINVAL);
    ck_assert_msg(strstr(error.message, "with all defaults written out, the configuration has more than"), "%s",
                  error.message);
    free(text);
}

END_TEST

START_TEST(enormous_and_deep_files_are_refused)
{
    struct error error = {0};
    struct conf *conf = NULL;
    ck_assert_int_eq(load(write_repeated("# long comment", 5 << 20), &conf, &error), -EFBIG);
    ck_assert_int_eq(load(write_repeated("\n", 70000), &conf, &error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "more than 65000 lines"));
    ck_assert_int_eq(load(write_repeated("a=(", 600000), &conf, &error), -EINVAL);
    ck_assert_int_eq(load(write_repeated("(", 600000), &conf, &error), -EINVAL);
    ck_assert_int_eq(load(write_repeated("9", 100), &conf, &error), -EINVAL);
}

END_TEST

/* A file that is truncated anywhere must be read, or rejected with a reason. */
START_TEST(truncated_files_are_refused_or_read)
{
    char *text = read_text_file(NOCTULE_SOURCE_DIR "/config/noctule.conf");
    size_t refused = 0, length = strlen(text), step = 7 * test_share();
    for (size_t size = 7 * test_share_first(); size < length; size += step) {
        struct error error = {0};
        struct conf *conf = NULL;
        int rc = load(write_bytes("cut.conf", text, size), &conf, &error);
        ck_assert_msg(rc == 0 || (rc == -EINVAL && strstr(error.message, "cut.conf:")), "%s", error.message);
        refused += rc != 0;
        if (rc == 0)
            conf_free(conf);
    }
    free(text);
    ck_assert_uint_gt(refused, length / step / 2);
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("load");
    tcase_add_unchecked_fixture(tcase, make_test_folder, remove_test_folder);
    tcase_add_test(tcase, an_empty_file_gives_the_defaults);
    tcase_add_test(tcase, a_pipeline_gets_its_defaults);
    tcase_add_test(tcase, numbers_may_be_integers_of_either_size);
    tcase_add_test(tcase, a_fuzzy_segment_gets_its_defaults);
    tcase_add_test(tcase, a_level_set_may_start_from_only_a_segment);
    tcase_add_test(tcase, a_fuzzy_segment_is_read);
    tcase_add_test(tcase, an_option_is_read_by_its_old_name);
    tcase_add_test(tcase, gpus_are_named_by_index_or_uuid);
    tcase_add_test(tcase, rules_are_read);
    tcase_add_test(tcase, titles_and_peers_are_read);
    tcase_add_test(tcase, destinations_are_read);
    tcase_add_test(tcase, paths_are_below_the_root);
    tcase_add_test(tcase, includes_are_relative_to_their_file);
    tcase_add_test(tcase, a_temporarily_unreadable_include);
    tcase_add_test(tcase, comments_strings_and_byte_order_marks);
    tcase_add_loop_test(tcase, errors_have_file_and_line, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(tcase, unreadable_files_are_errors);
    tcase_add_test(tcase, limits_hold_exactly);
    tcase_add_test(tcase, a_configuration_too_large_for_children_is_refused);
    tcase_add_test(tcase, enormous_and_deep_files_are_refused);
    tcase_add_test(tcase, truncated_files_are_refused_or_read);
    return run_case(tcase, "config_load");
}

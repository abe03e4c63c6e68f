/*
 * test_findings.c - all errors of a configuration are reported at once, in the order of lines and
 * without their consequences. Warnings are reported if there are no errors.
 */
#include "config/config.h"
#include "tests/unit/config/config_files.h"
#include "tests/unit/edge.h"

#include <errno.h>

#define SHAPES             "shapes = ( { center = { mm = [ 0, 0, 0 ]; }; radius_mm = 1.0; } );"
#define TYPE               "type = { code = \"1\"; scheme = \"99X\"; meaning = \"x\"; };"

#define PIPELINE(segments) "pipelines = ( { name = \"a\"; segments = ( " segments " ); } );"
#define TEXT16             "0123456789abcdef"
#define TEXT64             TEXT16 TEXT16 TEXT16 TEXT16

static struct conf_findings findings;

/* Checks the findings. Each expected text is a prefix that begins with FILE:LINE, without the
 * folder. */
static void
expect(const char *path, int rc, const char *const *told, size_t count)
{
    struct conf *conf = NULL;
    struct error error = {0};
    ck_assert_int_eq(conf_load_all(path, NULL, &conf, &findings, &error), rc);
    for (size_t i = 0; i < findings.count && i < count; i++) {
        const char *message = findings.items[i].message + strlen(test_folder) + 1;
        ck_assert_msg(strncmp(message, told[i], strlen(told[i])) == 0, "%zu: %s, and not %s", i, message, told[i]);
        ck_assert(findings.items[i].wrong == (rc < 0));
    }
    for (size_t i = count; i < findings.count; i++)
        ck_abort_msg("%s", findings.items[i].message);
    ck_assert_uint_eq(findings.count, count);
    ck_assert_uint_eq(findings.more, 0);
    ck_assert((conf != NULL) == (rc == 0));
    if (rc < 0)
        ck_assert_str_eq(error.message, findings.items[0].message);
    conf_findings_free(&findings);
    conf_free(conf);
}

#define EXPECT(path, rc, told) expect(path, rc, told, sizeof(told) / sizeof((told)[0]))

/* The segments, pipelines and destinations that the second pipeline and the rules use exist, but
 * some have errors. The uses must not be reported. */
START_TEST(ten_errors_of_three_sections_and_an_include)
{
    static const char *const told[] = {
        "all.conf:2: series.quite_seconds: unknown option; did you mean quiet_seconds?",
        "all.conf:4: dicom.port: 70000 is not within 0 .. 65535",
        "all.conf:5: dicom.titles[0].pipeline: there is no pipeline named \"heart\"",
        "all.conf:8: pipelines[0].min_slices: must be an integer",
        "part.conf:2: pipelines[0].segments[0].range: the lower end 9 is above the upper end 8",
        "part.conf:4: pipelines[0].segments[1]: label is missing",
        "all.conf:13: pipelines[1].segments[0].metod: unknown option; did you mean "
        "method?",
        "all.conf:13: pipelines[1].segments[0].metod: must be \"level-set\"",
        "all.conf:15: pipelines[1].segments[1].within: there is no segment \"C\" in this pipeline",
        "all.conf:16: pipelines[1].deliver: there is no destination named \"PASC\"",
        "all.conf:18: rules[0].priority: 5000 is not within",
        "all.conf:19: rules[1].pipeline: there is no pipeline named \"liver\"",
    };

    write_file("part.conf", "segments = ( {\n"
                            "  label = \"A\"; range = [ 9, 8 ]; " SHAPES TYPE "\n"
                            "},\n"
                            "{ range = [ 0, 1 ]; from = \"A\"; " TYPE " } );\n");
    EXPECT(write_file("all.conf", "series = {\n"
                                  "  quite_seconds = 5; };\n"
                                  "dicom = {\n"
                                  "  port = 70000; tls_port = 0;\n"
                                  "  titles = ( { ae_title = \"N\"; pipeline = \"heart\"; } );\n"
                                  "};\n"
                                  "pipelines = ( { name = \"brain\";\n"
                                  "  min_slices = 1.5;\n"
                                  "  @include \"part.conf\"\n"
                                  "},\n"
                                  "{ name = \"lung\";\n"
                                  "  segments = (\n"
                                  "    { label = \"A\"; metod = \"rnage\"; range = [ 0, 1 ]; " TYPE " },\n"
                                  "    { label = \"B\"; method = \"range\"; range = [ 0, 1 ]; " TYPE "\n"
                                  "      within = [ \"A\", \"C\" ]; } );\n"
                                  "  deliver = [ \"PACS\", \"PASC\" ];\n"
                                  "} );\n"
                                  "rules = ( { pipeline = \"lung\"; priority = 5000; },\n"
                                  "  { pipeline = \"liver\"; }, { pipeline = \"brain\"; } );\n"
                                  "destinations = ( { name = \"PACS\"; folder = \"out\"; } );\n"),
           -EINVAL, told);
}

END_TEST

/* Each text has one error. Its consequences must not be reported. */
static const struct {
    const char *told;
    const char *text;
} causes[] = {
    {"root: must be a string", "root = 5; inbox = ( { path = \"/a\"; } );"},
    {"pipelines: must be a list",
     "pipelines = 5; rules = ( { pipeline = \"a\"; } ); dicom = { titles = ( { ae_title = \"A\"; "
     "pipeline = \"a\"; } ); };"},
    {"destinations[0].name: may only contain",
     "destinations = ( { name = \"a b\"; folder = \"/out\"; },\n"
     "  { name = \"c\"; ae_title = \"A\"; host = \"h\"; port = 1; fallback = \"x\"; } );\n"
     "pipelines = ( { name = \"a\"; deliver = [ \"x\" ]; segments = ( { label = \"A\"; range = [ "
     "0, 1 ]; " SHAPES TYPE " } ); } );"},
    {"destinations[0].port: must be an integer",
     "destinations = ( { name = \"a\"; ae_title = \"A\"; host = \"h\"; port = \"104\"; } );"},
    {"destinations[0].folder: must be a string", "destinations = ( { name = \"a\"; folder = 5; } );"},
    {"destinations[0].tls: requires dicom.tls.ca",
     "destinations = ( { name = \"a\"; ae_title = \"A\"; host = \"h\"; port = 1; tls = true; },\n"
     "  { name = \"b\"; ae_title = \"A\"; host = \"h\"; port = 1; tls = true; } );"},
    {"destinations[0].fallback: leads back to this destination",
     "destinations = ( { name = \"a\"; ae_title = \"A\"; host = \"h\"; port = 1; fallback = \"b\"; "
     "},\n { name = \"b\"; ae_title = \"A\"; host = \"h\"; port = 1; fallback = \"a\"; },\n"
     " { name = \"c\"; ae_title = \"A\"; host = \"h\"; port = 1; fallback = \"a\"; } );"},
    {"dicom.tls: must be a group",
     "dicom = { tls_port = 2762; tls = 1; peers = ( { ae_title = \"A\"; certificate = \"" TEXT64 "\"; } ); };"},
    {"dicom.tls_port: must be an integer",
     "dicom = { tls_port = \"2762\"; peers = ( { ae_title = \"A\"; certificate = \"" TEXT64 "\"; } ); };"},
    {"retention.low_mib: must be a number", "retention = { low_mib = \"5\"; high_mib = 7; };"},
    {"inbox[0].after: must be", "inbox = ( { path = \"a\"; after = \"mvoe\"; move_to = \"b\"; } );"},
    {"inbox[1].path: /a is within another inbox", "inbox = ( { path = \"/a\"; }, { path = \"/a\"; } );"},
    {"compute.backend: must be", "compute = { backend = \"none\"; devices = [ \"0\" ]; };"},
    {"pipelines[0].segments[0].method: must be",
     PIPELINE("{ label = \"A\"; method = \"x\"; seeds = ( { mm = [ 1, 2, 3 ]; } ); " TYPE " }")},
    {"pipelines[0].segments[0].shapes[0].kind: must be",
     PIPELINE("{ label = \"A\"; range = [ 0, 1 ]; shapes = ( { kind = \"ball\"; center = { mm = [ "
              "0, 0, 0 ]; }; radius_mm = [ 1, 2, 3 ]; } ); " TYPE " }")},
    {"pipelines[0].segments[0].shapes[0].center.vowel: unknown option; did you mean "
     "voxel?",
     PIPELINE("{ label = \"A\"; range = [ 0, 1 ]; shapes = ( { center = { vowel = [ 0, 0, 0 ]; }; "
              "radius_mm = 1.0; } ); " TYPE " }")},
    {"pipelines[0].segments[0].shapes[0].center: exactly one of",
     PIPELINE("{ label = \"A\"; range = [ 0, 1 ]; shapes = ( { center = { }; radius_mm = 1.0; } ); " TYPE " }")},
    {"pipelines[0].segments[0].range[1]: must be a number",
     PIPELINE("{ label = \"A\"; range = ( 5, \"x\" ); " SHAPES TYPE " }")},
    {"pipelines[0].segments[0].range: exactly one of",
     PIPELINE("{ label = \"A\"; range = { class = 2; }; " SHAPES TYPE " }")},
    {"pipelines[0].segments[0].hidden: must be true or false",
     PIPELINE("{ label = \"A\"; range = [ 0, 1 ]; hidden = 1; " SHAPES " }")},
    {"pipelines[0].segments[0].type.code: has 0 characters",
     PIPELINE("{ label = \"A\"; range = [ 0, 1 ]; type = { code = \"\"; scheme = \"S\"; meaning = "
              "\"m\"; }; " SHAPES " }")},
    {"pipelines[0].segments[0].label: must not contain a backslash",
     PIPELINE("{ label = \"A\\\\\"; range = [ 0, 1 ]; " SHAPES TYPE " },\n"
              "{ label = \"B\"; method = \"range\"; range = [ 0, 1 ]; within = [ \"A\" ]; " TYPE
              " expect = { share_of = { label = \"A\"; range = [ 0, 1 ]; }; }; }")},
    {"pipelines[0].segments[1].from: \"B\" depends on itself: it uses \"A\", which uses "
     "\"B\"",
     PIPELINE("{ label = \"A\"; range = [ 0, 1 ]; from = \"B\"; " TYPE " },\n"
              "{ label = \"B\"; range = [ 0, 1 ]; from = \"A\"; " TYPE " },\n"
              "{ label = \"C\"; range = [ 0, 1 ]; from = \"A\"; " TYPE " }")},
    {"pipelines[0].segments[1].within: there is no segment \"X\"",
     "pipelines = ( { name = \"a\"; relative_connectedness = true; segments = (\n"
     "{ label = \"A\"; method = \"fuzzy-connectedness\"; seeds = ( { mm = [ 1, 2, 3 ]; } ); " TYPE
     " },\n{ label = \"B\"; method = \"fuzzy-connectedness\"; auto = \"highest\"; within = [ \"X\" "
     "]; " TYPE " } ); } );"},
    {"pipelines[0].segments[0].auto: must be",
     PIPELINE("{ label = \"A\"; method = \"fuzzy-connectedness\"; auto = \"x\"; " TYPE " }")},
    {"pipelines[0].segments: has 0 elements",
     "pipelines = ( { name = \"a\"; segments = ( ); relative_connectedness = true; results = [ "
     "\"codes\" ]; } ); rules = ( { pipeline = \"a\"; } );"},
    {"pipelines[0].texture.first_order: must be true or false",
     "pipelines = ( { name = \"a\"; segments = ( { label = \"A\"; range = [ 0, 1 ]; " SHAPES TYPE
     " } ); results = [ \"seg\", \"sr\" ]; texture = { first_order = 1; }; } );"},
    {"pipelines[0].results[0]: must be",
     "pipelines = ( { name = \"a\"; segments = ( { label = \"A\"; range = [ 0, 1 ]; " SHAPES TYPE
     " } ); results = [ \"sge\", \"sr\" ]; } );"},
};

START_TEST(consequences_of_an_error_are_not_reported)
{
    struct conf *conf = NULL;
    struct error error = {0};
    const char *path = write_file("cause.conf", causes[_i].text);
    ck_assert_int_eq(conf_load_all(path, NULL, &conf, &findings, &error), -EINVAL);
    for (size_t i = 1; i < findings.count; i++)
        ck_abort_msg("%s", findings.items[i].message);
    ck_assert_msg(strstr(error.message, causes[_i].told) != NULL, "%s", error.message);
    conf_findings_free(&findings);
}

END_TEST

/* Two findings are equal if their file and line are, also in different sections. */
START_TEST(an_error_that_is_included_twice_is_reported_once)
{
    static const char *const told[] = {"again.conf:1: pipelines[0].segments[0].range: must be [ ... ] of 2 numbers"};
    write_file("again.conf", "segments = ( { label = \"A\"; range = 1; " SHAPES TYPE " } );");
    EXPECT(write_file("twice.conf", "pipelines = ( { name = \"a\";\n@include \"again.conf\"\n },\n"
                                    "{ name = \"b\";\n@include \"again.conf\"\n } );\n"),
           -EINVAL, told);
}

END_TEST

/* Reports n errors, one per line, from the last line to the first: the first lines must be kept. */
static void
expect_many(size_t n, size_t told, size_t more)
{
    static char text[1 << 17];
    struct conf *conf = NULL;
    struct error error = {0};
    size_t length = (size_t)snprintf(text, sizeof text, "dicom = { peers = (\n");
    for (size_t i = 0; i < n; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "{ ae_title = %zu; }%s\n", i, i + 1 < n ? "," : "");
    snprintf(text + length, sizeof text - length, "); };\n");
    const char *path = write_file("many.conf", text);
    ck_assert_int_eq(conf_load_all(path, NULL, &conf, &findings, &error), -EINVAL);
    ck_assert_uint_eq(findings.count, told);
    ck_assert_uint_eq(findings.more, more);
    for (size_t i = 0; i < told; i++) {
        char place[32];
        snprintf(place, sizeof place, "many.conf:%zu: ", i + 2);
        ck_assert_ptr_nonnull(strstr(findings.items[i].message, place));
    }
    conf_findings_free(&findings);
}

START_TEST(the_first_of_many_errors_are_reported_and_the_others_counted)
{
    expect_many(CONF_FINDINGS, CONF_FINDINGS, 0);
    expect_many(CONF_FINDINGS + 7, CONF_FINDINGS, 7);
    expect_many(1000, CONF_FINDINGS, 1000 - CONF_FINDINGS);
}

END_TEST

/* A file that cannot be parsed has exactly one error. */
START_TEST(a_syntax_error_is_reported_alone)
{
    struct conf *conf = NULL;
    struct error error = {0};
    const char *path = write_file("syntax.conf", "log_level = 5;\n= 3;\n");
    ck_assert_int_eq(conf_load_all(path, NULL, &conf, &findings, &error), -EINVAL);
    ck_assert_uint_eq(findings.count, 0);
    ck_assert_ptr_nonnull(strstr(error.message, "syntax.conf:2: syntax error"));
    conf_findings_free(&findings);
}

END_TEST

#define RULED(rules)                                                                                                   \
    "pipelines = ( { name = \"p\"; segments = ( { label = \"A\"; range = [ 0, 1 ]; " SHAPES TYPE                       \
    " } ); } );\nrules = (\n" rules "\n);\n"

/* A dictionary with a few attributes of DICOM. */
static enum attribute_kind
kind_of(const char *tag)
{
    static const struct {
        const char *tag;
        enum attribute_kind kind;
    } known[] = {{"KVP", ATTRIBUTE_VALUE},
                 {"ProtocolName", ATTRIBUTE_VALUE},
                 {"(0019,100C)", ATTRIBUTE_PRIVATE},
                 {"SourceImageSequence", ATTRIBUTE_SEQUENCE},
                 {"PixelData", ATTRIBUTE_BYTES}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].tag, tag) == 0)
            return known[i].kind;
    return strncmp(tag, "(0028,", 6) == 0 ? ATTRIBUTE_VALUE : ATTRIBUTE_UNKNOWN;
}

#define ASKS(attributes) RULED("{ pipeline = \"p\"; match = { attributes = (\n" attributes " ); }; }")

START_TEST(invalid_attribute_tests_are_reported)
{
    static const char *const told[] = {
        "asks.conf:4: rules[0].match.attributes[0].tag: \"ProtokollName\" is no attribute of a "
        "data "
        "set",
        "asks.conf:5: rules[0].match.attributes[1].tag: \"SourceImageSequence\" is a sequence",
        "asks.conf:6: rules[0].match.attributes[2].tag: \"PixelData\" contains bytes",
        "asks.conf:7: rules[0].match.attributes[3].tag: \"(0019,100C)\" is a private attribute",
        "asks.conf:8: rules[0].match.attributes[4].tag: \"KVP\" is a public attribute",
        "asks.conf:9: rules[0].match.attributes[5].regex: REGEX_UNSUPPORTED: \"(a\": a parenthesis "
        "( is not "
        "closed",
        "asks.conf:10: rules[0].match.attributes[6].regex: REGEX_UNSUPPORTED: \"(a)\\1\": "
        "character 4, \"\\1\": "
        "back-references are not supported",
        "asks.conf:11: rules[0].match.attributes[7].regex: REGEX_UNSUPPORTED: \"((a{32}){32})\": "
        "repetitions may "
        "not multiply to more than 1000",
        "asks.conf:12: rules[0].match.attributes[8].range: the lower end 3 is above the upper end "
        "2",
        "asks.conf:13: rules[0].match.attributes[9]: exactly one of is, glob, regex, range, "
        "present",
        "asks.conf:14: rules[0].match.attributes[10]: exactly one of is",
        "asks.conf:15: rules[0].match.attributes[11].not: is not allowed with present",
        "asks.conf:16: rules[0].match.attributes[12].is: has 0 elements",
    };
    conf_set_dictionary(kind_of);
    EXPECT(write_file("asks.conf", ASKS("{ tag = \"ProtokollName\"; glob = \"x\"; },\n"
                                        "{ tag = \"SourceImageSequence\"; present = true; },\n"
                                        "{ tag = \"PixelData\"; present = true; },\n"
                                        "{ tag = \"(0019,100C)\"; glob = \"x\"; },\n"
                                        "{ tag = \"KVP\"; creator = \"A\"; glob = \"x\"; },\n"
                                        "{ tag = \"KVP\"; regex = \"(a\"; },\n"
                                        "{ tag = \"KVP\"; regex = \"(a)\\\\1\"; },\n"
                                        "{ tag = \"KVP\"; regex = \"((a{32}){32})\"; },\n"
                                        "{ tag = \"KVP\"; range = [ 3, 2 ]; },\n"
                                        "{ tag = \"KVP\"; },\n"
                                        "{ tag = \"KVP\"; glob = \"x\"; present = true; },\n"
                                        "{ tag = \"KVP\"; present = true; not = true; },\n"
                                        "{ tag = \"KVP\"; is = [ ]; }")),
           -EINVAL, told);
    static const char *const geometry[] = {
        "geometry.conf:3: rules[0].match.orientation: ",
        "geometry.conf:4: rules[0].match.spacing: the lower end 3 is above the upper end 2"};
    EXPECT(write_file("geometry.conf", RULED("{ pipeline = \"p\"; match = { orientation = \"axal\";\n"
                                             "spacing = [ 3, 2 ]; }; }")),
           -EINVAL, geometry);
    static const char *const none[] = {NULL};
    expect(write_file("well.conf", ASKS("{ tag = \"(0019,100C)\"; creator = \"A\"; regex = \"[{9999}\\\\1]{2,3}\"; },\n"
                                        "{ tag = \"KVP\"; range = [ 80, 80 ]; not = true; }")),
           0, none, 0);
}

END_TEST

/* Checks the limit on different attributes in all rules. */
START_TEST(attributes_are_counted)
{
    static const struct edge most = EDGE(RULE_ATTRIBUTES);
    char text[16384], *end = text;
    conf_set_dictionary(kind_of);
    for (int64_t count = most.most; count <= most.most + 1; count++) {
        struct conf *conf = NULL;
        struct error error = {0};
        end = text + sprintf(text, "pipelines = ( { name = \"p\"; segments = ( { label = \"A\"; range "
                                   "= [ 0, 1 ]; " SHAPES TYPE " } ); } );\nrules = (\n");
        for (int64_t i = 0; i < count; i++) /* each twice */
            end += sprintf(end,
                           "%s{ pipeline = \"p\"; match = { attributes = ( { tag = \"(0028,%04d)\"; "
                           "present = true; }, { tag = \"(0028,%04d)\"; glob = \"x\"; } ); }; }",
                           i ? ",\n" : "", (int)i, (int)i);
        strcpy(end, ");");
        const int rc = conf_load(write_file("many.conf", text), &conf, &error);
        ck_assert_int_eq(rc, count > most.most ? -EINVAL : 0);
        if (rc < 0)
            ck_assert_msg(strstr(error.message, "many.conf:67: rules[64].match.attributes: with") != NULL, "%s",
                          error.message);
        else
            conf_free(conf);
    }
}

END_TEST

static const struct {
    const char *text;
    int doubtful; /* line of the warning; 0: no warning */
} rules[] = {
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; match = { attributes = ( { tag = \"KVP\"; glob = "
           "\"x\"; } ); }; },\n{ pipeline = \"p\"; match = { modality = \"CT\"; attributes = ( { tag "
           "= \"ProtocolName\"; glob = \"y\"; }, { tag = \"KVP\"; glob = \"x\"; } ); }; }"),
     4},
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; match = { attributes = ( { tag = \"KVP\"; glob = "
           "\"x\"; } ); }; },\n{ pipeline = \"p\"; match = { attributes = ( { tag = \"KVP\"; glob = "
           "\"x\"; not = true; } ); }; }"),
     0},
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; match = { spacing = [ 1, 3 ]; }; },\n"
           "{ pipeline = \"p\"; match = { spacing = [ 2, 3 ]; contrast = true; }; }"),
     4},
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; match = { contrast = false; }; },\n"
           "{ pipeline = \"p\"; match = { contrast = true; }; }"),
     0},
    {RULED("{ pipeline = \"p\"; match = { orientation = \"axial\"; }; },\n"
           "{ pipeline = \"p\"; match = { modality = \"CT\"; }; }"),
     0},
    {RULED("{ pipeline = \"p\"; },\n{ pipeline = \"p\"; match = { modality = \"CT\"; }; }"), 4},
    {RULED("{ pipeline = \"p\"; match = { modality = \"CT\"; }; },\n{ pipeline = \"p\"; }"), 3},
    {RULED("{ pipeline = \"p\"; },\n{ pipeline = \"p\"; }"), 4},
    {RULED("{ pipeline = \"p\"; match = { modality = \"ct\"; description = \"Thin\"; }; },\n"
           "{ pipeline = \"p\"; match = { modality = \"CT\"; description = \"ax thin\"; "
           "body_part = \"HEAD\"; }; stacks = \"all\"; }"),
     0}, /* the first rule rejects a series of many stacks */
    {RULED("{ pipeline = \"p\"; match = { modality = \"ct\"; description = \"Thin\"; }; stacks = "
           "\"all\"; },\n{ pipeline = \"p\"; match = { modality = \"CT\"; description = \"ax "
           "thin\"; body_part = \"HEAD\"; }; stacks = \"b0\"; }"),
     4},
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; },\n"
           "{ pipeline = \"p\"; match = { called_ae = \"NOCTULE\"; }; }"),
     4},
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; match = { called_ae = \"NOCTULE\"; }; },\n"
           "{ pipeline = \"p\"; }"),
     0},
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; },\n{ pipeline = \"p\"; priority = 1; }"), 0},
    {RULED("{ pipeline = \"p\"; stacks = \"first\"; match = { min_slices = 2; }; },\n"
           "{ pipeline = \"p\"; stacks = \"first\"; match = { min_slices = 9; }; }"),
     0}, /* "first" may select another stack among stacks of more slices */
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; match = { max_slices = 9; }; },\n"
           "{ pipeline = \"p\"; match = { min_slices = 2; }; }"),
     0},
    {RULED("{ pipeline = \"p\"; stacks = \"all\"; match = { max_slices = 9; }; },\n"
           "{ pipeline = \"p\"; match = { max_slices = 8; }; }"),
     4},
};

START_TEST(a_rule_without_effect_is_reported)
{
    struct conf *conf = NULL;
    struct error error = {0};
    char place[32];
    conf_set_dictionary(kind_of);
    ck_assert_int_eq(conf_load_all(write_file("rules.conf", rules[_i].text), NULL, &conf, &findings, &error), 0);
    ck_assert_uint_eq(findings.count, rules[_i].doubtful > 0);
    snprintf(place, sizeof place, "rules.conf:%d: ", rules[_i].doubtful);
    if (findings.count > 0) {
        ck_assert_msg(strstr(findings.items[0].message, place) != NULL, "%s", findings.items[0].message);
        ck_assert_ptr_nonnull(strstr(findings.items[0].message, ": has no effect: "));
        ck_assert(!findings.items[0].wrong);
    }
    conf_findings_free(&findings);
    conf_free(conf);
}

END_TEST

/* The inbox of a rule must exist; a sender that is no peer gives a warning. */
START_TEST(an_impossible_origin_is_reported)
{
    static const char *const wrong[] = {
        "inbox.conf:1: inbox[1].name: \"ct\" is the name of an earlier inbox",
        "inbox.conf:4: rules[1].match.inbox: there is no inbox \"mr\": give one this name"};
    static const char *const doubtful[] = {
        "from.conf:4: rules[0]: matches no series: its called_ae is not among dicom.titles",
        "from.conf:5: rules[1]: matches no series: its called_ae has a pipeline of its own",
        "from.conf:6: rules[2]: matches no series: its sender is not among dicom.peers"};
    EXPECT(write_file("inbox.conf",
                      "inbox = ( { path = \"a\"; name = \"ct\"; }, { path = \"b\"; name = \"ct\"; } );" RULED(
                          "{ pipeline = \"p\"; match = { inbox = \"ct\"; }; },\n"
                          "{ pipeline = \"p\"; match = { inbox = \"mr\"; }; }")),
           -EINVAL, wrong);
    EXPECT(write_file("from.conf", "dicom = { titles = ( { ae_title = \"A\"; }, { ae_title = \"B\"; pipeline = "
                                   "\"p\"; } ); peers = ( { ae_title = \"CT1\"; } ); };\n" RULED(
                                       "{ pipeline = \"p\"; match = { called_ae = \"C\"; }; },\n"
                                       "{ pipeline = \"p\"; match = { called_ae = \"B\"; }; },\n"
                                       "{ pipeline = \"p\"; match = { sender = \"CT2\"; }; },\n"
                                       "{ pipeline = \"p\"; match = { called_ae = \"A\"; sender = \"CT1\"; }; }")),
           0, doubtful);
}

END_TEST

START_TEST(an_unused_pipeline_is_reported)
{
    static const char *const told[] = {"unused.conf:1: pipelines[0]: \"p\" is used by no rule and no title"};
    EXPECT(write_file("unused.conf", RULED("")), 0, told);
    struct conf *conf = NULL;
    struct error error = {0};
    const char *path =
        write_file("unused.conf", "dicom = { titles = ( { ae_title = \"A\"; pipeline = \"p\"; } ); };" RULED(""));
    ck_assert_int_eq(conf_load_all(path, NULL, &conf, &findings, &error), 0);
    ck_assert_uint_eq(findings.count, 0);
    conf_free(conf);
}

END_TEST

int
main(void)
{
    TCase *tests = tcase_create("findings");
    tcase_add_unchecked_fixture(tests, make_test_folder, remove_test_folder);
    tcase_add_test(tests, ten_errors_of_three_sections_and_an_include);
    tcase_add_loop_test(tests, consequences_of_an_error_are_not_reported, 0, sizeof(causes) / sizeof(causes[0]));
    tcase_add_test(tests, an_error_that_is_included_twice_is_reported_once);
    tcase_add_test(tests, the_first_of_many_errors_are_reported_and_the_others_counted);
    tcase_add_test(tests, a_syntax_error_is_reported_alone);
    tcase_add_test(tests, invalid_attribute_tests_are_reported);
    tcase_add_test(tests, attributes_are_counted);
    tcase_add_loop_test(tests, a_rule_without_effect_is_reported, 0, sizeof(rules) / sizeof(rules[0]));
    tcase_add_test(tests, an_impossible_origin_is_reported);
    tcase_add_test(tests, an_unused_pipeline_is_reported);
    return run_case(tests, "config_findings");
}

/* test_cost.c - the time to read a configuration must be linear in its size, for any content. */
#include "config/config.h"
#include "tests/unit/config/config_files.h"
#include "tests/unit/growth.h"

#include <string.h>

/* A text with n repetitions of an element that a reader counts, compares or nests. */
struct kind {
    const char *name;
    size_t n;
    const char *begin, *each, *end; /* `each` n times; %zu is its number */
};

static const struct kind kinds[] = {
    {"pipelines", 500, "pipelines = (",
     "{ name = \"p%zu\"; segments = ( { label = \"A\"; range = [ 0.0, 80.0 ]; shapes = ( { kind = "
     "\"sphere\"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 40.0; } ); type = { code "
     "= \"1\"; scheme = \"SCT\"; meaning = \"Brain\"; }; } ); },",
     " { name = \"last\"; } );\n"},
    {"peers", 1000, "dicom = { peers = (", "{ ae_title = \"A%zu\"; },", "{ ae_title = \"Z\"; } ); };\n"},
    {"destinations", 1000, "destinations = (", "{ name = \"d%zu\"; ae_title = \"A\"; host = \"h\"; port = 104; },",
     "{ name = \"z\"; ae_title = \"A\"; host = \"h\"; port = 104; } );\n"},
    {"rules", 1000, "rules = (", "{ modality = \"M%zu\"; pipeline = \"p\"; },", "{ pipeline = \"p\"; } );\n"},
    {"inboxes", 1000, "inboxes = (", "{ path = \"/i/%zu\"; },", "{ path = \"/i\"; } );\n"},
    {"one setting", 5000, "", "root = \"/r\"; # %zu\n", ""},
    {"numbers", 20000, "x = [ ", "%zu, ", "1 ];\n"},
    {"a long text", 20000, "root = \"", "/part%zu", "\";\n"},
    {"comments", 20000, "", "/* %zu */", "\n"},
    {"depth", 5000, "x = ", "{ a%zu = ", "1;\n"},
    {"settings of a group", 5000, "x = { ", "a%zu = 1; ", "};\n"},
    {"settings of the file", 5000, "", "a%zu = 1; ", "\n"},
    {"lists", 5000, "x = ", "( ( %zu ), ", ")\n"},
};

static char *
make(const struct kind *kind, size_t n)
{
    const size_t room = strlen(kind->begin) + strlen(kind->end) + n * (strlen(kind->each) + 24) + 1;
    char *text = malloc(room);
    ck_assert_ptr_nonnull(text);
    size_t length = (size_t)snprintf(text, room, "%s", kind->begin);
    for (size_t i = 0; i < n; i++) {
        const char *number = strstr(kind->each, "%zu");
        length += (size_t)snprintf(text + length, room - length, "%.*s%zu%s", (int)(number - kind->each), kind->each, i,
                                   number + 3);
    }
    snprintf(text + length, room - length, "%s", kind->end);
    return text;
}

static double
cost(const void *context, size_t n)
{
    char *text = make(context, n);
    const char *path = write_file("cost.conf", text);
    struct conf *conf = NULL;
    struct error error = {0};
    const double begun = growth_clock();
    const int rc = conf_load(path, &conf, &error);
    const double seconds = growth_clock() - begun;
    if (!rc)
        conf_free(conf);
    free(text);
    return seconds;
}

START_TEST(time_of_the_processor)
{
    expect_linear(kinds[_i].name, cost, &kinds[_i], kinds[_i].n);
}

END_TEST

int
main(void)
{
    TCase *tests = tcase_create("cost");
    tcase_add_checked_fixture(tests, make_test_folder, remove_test_folder);
    tcase_add_loop_test(tests, time_of_the_processor, 0, (int)(sizeof(kinds) / sizeof(kinds[0])));
    return run_case(tests, "config_cost");
}

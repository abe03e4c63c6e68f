/* test_rtstruct.c - parsed structure sets, rejected ones, and the cost of the worst. */
#include "tests/share.h"
#include "tests/unit/dicom/rtstruct_sample.h"
#include "tests/unit/edge.h"
#include "tests/unit/growth.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static char path[64];

static int file;

/* Uses memory files, because some are large. */
static void
setup(void)
{
    dicom_init();
    file = memfd_create("rtstruct", MFD_CLOEXEC);
    ck_assert_int_ge(file, 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
}

static void
teardown(void)
{
    close(file);
}

static struct rtstruct *
open_or_fail(void)
{
    struct rtstruct *set;
    struct error error = {0};
    ck_assert_msg(rtstruct_open(path, &set, &error) == 0, "%s: %s", code_name(error.code), error.message);
    return set;
}

static struct rtstruct *
write_and_open(const struct sample_set *sample)
{
    set_write(sample, path);
    return open_or_fail();
}

/* Returns the error of the set, or of its first region's contours. */
static const struct error *
error_of_file(void)
{
    static struct error error;
    struct rtstruct *set;
    struct rtstruct_contours contours;
    int rc = rtstruct_open(path, &set, &error);
    if (rc == 0) {
        rc = rtstruct_contours_read(set, 0, &contours, &error);
        ck_assert_ptr_null(contours.contours);
        rtstruct_close(set);
    }
    ck_assert_int_eq(rc, -EBADMSG);
    ck_assert_str_eq(error.file[0], path);
    return &error;
}

/* ---- parsed values ---- */

static void
expect_contour(const struct contour *contour, const double *points, int64_t count)
{
    ck_assert_int_eq(contour->count, count);
    for (int64_t i = 0; i < 3 * count; i++)
        ck_assert_double_eq(contour->points[i], points[i]);
}

static void
expect_sample(const struct rtstruct *set)
{
    static const double first[] = {-1, 2.5, 3, 10, 2.5, 3, 10, -0.5, 3, -1, -0.5, 3};
    static const double second[] = {0, 0, 6, 1, 0, 6, 0, 1, 6.125};
    struct rtstruct_contours contours;
    ck_assert_str_eq(set->sop_instance_uid, "1.2.3.1");
    ck_assert_str_eq(set->study_uid, "1.2.3.2");
    ck_assert_str_eq(set->series_uid, "1.2.3.3");
    ck_assert_str_eq(set->label, "Plan");
    ck_assert_int_eq(set->series_count, 2);
    ck_assert_str_eq(set->series[0].series_uid, "1.2.3.7");
    ck_assert_str_eq(set->series[1].series_uid, "1.2.3.8");
    ck_assert_str_eq(set->series[1].frame_of_reference_uid, "1.2.3.9");
    ck_assert_int_eq(set->roi_count, 3);
    const struct rtstruct_roi *roi = set->rois;
    ck_assert_int_eq(roi[0].number, 1);
    ck_assert_str_eq(roi[0].name, "GTV-1");
    ck_assert_str_eq(roi[0].type, "GTV");
    ck_assert_str_eq(roi[0].frame_of_reference_uid, "1.2.3.9");
    ck_assert(roi[0].has_color && roi[0].color[0] == 255 && roi[0].color[1] == 128 && roi[0].color[2] == 0);
    ck_assert_int_eq(roi[0].contours, 2);
    ck_assert_int_eq(roi[1].number, 7);
    ck_assert_str_eq(roi[1].name, "L\xC3\xB6we");
    ck_assert_str_eq(roi[1].type, "ORGAN");
    ck_assert_int_eq(roi[1].contours, 2);
    ck_assert_int_eq(roi[2].number, 3);
    ck_assert_str_eq(roi[2].type, "");
    ck_assert(!roi[2].has_color && roi[2].contours == 0);
    ck_assert_int_eq(rtstruct_contours_read(set, 0, &contours, NULL), 0);
    ck_assert_int_eq(contours.count, 2);
    ck_assert_int_eq(contours.left_out, 0);
    expect_contour(&contours.contours[0], first, 4);
    expect_contour(&contours.contours[1], second, 3);
    ck_assert_str_eq(contours.images[0], "1.2.3.5");
    ck_assert_str_eq(contours.images[1], "");
    rtstruct_contours_free(&contours);
    ck_assert_int_eq(rtstruct_contours_read(set, 1, &contours, NULL), 0);
    ck_assert_int_eq(contours.count, 0);
    ck_assert_int_eq(contours.left_out, 2);
    rtstruct_contours_free(&contours);
    ck_assert_int_eq(rtstruct_contours_read(set, 2, &contours, NULL), 0);
    ck_assert(contours.count == 0 && contours.left_out == 0);
    rtstruct_contours_free(&contours);
}

START_TEST(contours_read_back_as_written)
{
    static const char *const syntaxes[] = {SYNTAX_EXPLICIT, SYNTAX_IMPLICIT, SYNTAX_BIG_ENDIAN, SYNTAX_EXPLICIT};
    struct sample_set sample = SAMPLE_SET;
    sample.syntax = syntaxes[_i];
    sample.unknown_vr = _i == 3;
    struct rtstruct *set = write_and_open(&sample);
    expect_sample(set);
    rtstruct_close(set);
}

END_TEST

START_TEST(contours_of_an_open_file)
{
    const struct sample_set sample = SAMPLE_SET;
    struct rtstruct *set;
    set_write(&sample, path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(rtstruct_open_file(fd, "elsewhere", &set, NULL), 0);
    ck_assert_int_eq(close(fd), 0);
    expect_sample(set);
    rtstruct_close(set);
}

END_TEST

/* Without a character set, names are ASCII; other bytes become "?". */
START_TEST(names_and_their_sets)
{
    static const struct {
        const char *charset, *name, *told;
    } names[] = {
        {"ISO_IR 100", "L\xF6we", "L\xC3\xB6we"},
        {"ISO_IR 192", "L\xC3\xB6we", "L\xC3\xB6we"},
        {"ISO_IR 192", "L\xF6we", "L?we"},
        {NULL, "L\xF6we", "L?we"},
        {"ISO_IR 999", "L\xF6we", "L?we"},
        {"\\ISO 2022 IR 87", "\x1B$B;3\x1B(B 1", "\xE5\xB1\xB1 1"},
        {"ISO_IR 100", NULL, ""},
    };
    struct sample_set sample = SAMPLE_SET;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        sample.charset = names[i].charset;
        sample.name = names[i].name;
        struct rtstruct *set = write_and_open(&sample);
        ck_assert_str_eq(set->rois[1].name, names[i].told);
        rtstruct_close(set);
    }
}

END_TEST

/* Optional elements may be missing, and a colour may be invalid. */
START_TEST(optional_attributes_may_be_absent)
{
    static const struct {
        uint32_t tag;
        const char *instead;
    } values[] = {{0x30060002, NULL}, {0x30060024, NULL},        {0x3006002A, NULL},
                  {0x30060046, NULL}, {0x3006002A, "1\\2"},      {0x3006002A, "1\\2\\256"},
                  {0x00200052, NULL}, {0x3006002A, "1\\2\\0.5"}, {0x3006002A, "1\\-2\\3"}};
    struct sample_set sample = SAMPLE_SET;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct rtstruct_contours contours;
        sample.tag = values[i].tag;
        sample.instead = values[i].instead;
        struct rtstruct *set = write_and_open(&sample);
        ck_assert_int_eq(set->rois[0].has_color, values[i].tag != 0x3006002A);
        ck_assert_int_eq(rtstruct_contours_read(set, 0, &contours, NULL), 0);
        ck_assert_int_eq(contours.count, 2);
        rtstruct_contours_free(&contours);
        rtstruct_close(set);
    }
}

END_TEST

static char contour_data[256];

static void
contours_of_data(struct dicom_bytes *bytes)
{
    set_open_contours(bytes, NULL, NULL);
    set_contour(bytes, NULL, "CLOSED_PLANAR", NULL, "4", contour_data);
    set_close_contours(bytes, NULL, "1");
}

/* Numbers must be equal bit by bit, including the sign of zero and the next doubles. */
START_TEST(numbers_equal_those_of_strtod)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "5.",
                                        ".5",
                                        "-.25",
                                        "00012.500",
                                        "0.1",
                                        "-123.4567",
                                        "999999.9",
                                        "0.000000000000001",
                                        "0.00000000000001",
                                        "12345.678901234",
                                        "123456.789012345",
                                        "-98765.4321098765",
                                        "123.4567890123456",
                                        "+3.5",
                                        " 7.25 ",
                                        "1e3",
                                        "-1.5E-2",
                                        "0.3333333333333333",
                                        "179.99999999999997",
                                        "524288.49999999994",
                                        "0.1000000000000000055511151231257827",
                                        "0000000000000001.5",
                                        "4.35",
                                        "1.005",
                                        "100000.05",
                                        "8.41e-300"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sample_set sample = SAMPLE_SET;
        struct rtstruct_contours contours;
        snprintf(contour_data, sizeof(contour_data), "%s\\%s\\3\\4\\5\\6\\7\\8\\9\\10\\11\\%s", texts[i], texts[i],
                 texts[i]);
        sample.contours = contours_of_data;
        struct rtstruct *set = write_and_open(&sample);
        const double expected = strtod(texts[i], NULL);
        ck_assert_int_eq(rtstruct_contours_read(set, 0, &contours, NULL), 0);
        ck_assert_int_eq(contours.contours[0].count, 4);
        for (size_t k = 0; k < 12; k += k == 1 ? 10 : 1)
            ck_assert_msg(memcmp(&contours.points[k], &expected, sizeof(expected)) == 0, "%s: %.17g", texts[i],
                          contours.points[k]);
        rtstruct_contours_free(&contours);
        rtstruct_close(set);
    }
}

END_TEST

/* Numbers that strtod does not read whole, in an otherwise valid contour. */
START_TEST(invalid_numbers_are_refused)
{
    static const char *const texts[] = {"",   "-",   "+",     ".",  "++3",  "+-3", "-+3", "--3",
                                        "3-", "3 4", "1.2.3", "1e", "0x10", "nan", "inf", "+-inf"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sample_set sample = SAMPLE_SET;
        snprintf(contour_data, sizeof(contour_data), "1\\%s\\3\\4\\5\\6\\7\\8\\9\\10\\11\\12", texts[i]);
        sample.contours = contours_of_data;
        set_write(&sample, path);
        ck_assert_msg(error_of_file()->code == CODE_TAG_INVALID, "%s", texts[i]);
    }
}

END_TEST

/* ---- rejected sets ---- */

static const struct {
    uint32_t tag;
    const char *instead;
    enum code code;
} refused[] = {
    {0x00080016, "1.2.840.10008.5.1.4.1.1.2", CODE_SOP_CLASS_UNSUPPORTED},
    {0x00080018, NULL, CODE_TAG_MISSING},
    {0x00080018, "1.2.a", CODE_UID_INVALID},
    {0x0020000D, NULL, CODE_TAG_MISSING},
    {0x0020000E, "", CODE_TAG_MISSING},
    {0x00200052, "x", CODE_UID_INVALID},
    {0x30060022, NULL, CODE_TAG_MISSING},
    {0x30060022, "one", CODE_TAG_INVALID},
    {0x30060022, "7", CODE_TAG_INVALID},
    {0x30060024, "1..x", CODE_UID_INVALID},
    {0x30060084, NULL, CODE_TAG_MISSING},
    {0x30060084, "1.5", CODE_TAG_INVALID},
    {0x30060084, "7", CODE_TAG_INVALID},
    {0x30060042, NULL, CODE_TAG_MISSING},
    {0x00081155, "0x1", CODE_UID_INVALID},
    {0x30060046, "5", CODE_TAG_INVALID},
    {0x30060046, "-4", CODE_TAG_INVALID},
    {0x30060046, "four", CODE_TAG_INVALID},
    {0x30060050, NULL, CODE_TAG_MISSING},
    {0x30060050, "", CODE_TAG_MISSING},
    {0x30060050, "1\\2", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\3\\4", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\", CODE_TAG_INVALID},
    {0x30060050, "1\\\\3", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\three", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\3 4", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\++3", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\nan", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\inf", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\1e999", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\1000000.1", CODE_TAG_INVALID},
    {0x30060050, "1\\2\\-1000000.1", CODE_TAG_INVALID},
};

enum { REFUSED = sizeof(refused) / sizeof(refused[0]) };

START_TEST(refusals)
{
    struct sample_set sample = SAMPLE_SET;
    sample.tag = refused[_i].tag;
    sample.instead = refused[_i].instead;
    set_write(&sample, path);
    const struct error *error = error_of_file();
    ck_assert_msg(error->code == refused[_i].code, "%08X %s: %s: %s", refused[_i].tag, refused[_i].instead,
                  code_name(error->code), error->message);
}

END_TEST

START_TEST(missing_and_truncated_files)
{
    struct rtstruct *set = (struct rtstruct *)path;
    struct error error;
    const struct sample_set sample = SAMPLE_SET;
    ck_assert_int_eq(rtstruct_open("/nowhere", &set, &error), -ENOENT);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
    ck_assert_ptr_null(set);
    set_write(&sample, path);
    ck_assert_int_eq(ftruncate(file, lseek(file, 0, SEEK_END) - 4), 0);
    ck_assert_int_eq(error_of_file()->code, CODE_FILE_TRUNCATED);
}

END_TEST

/* ---- limits ---- */

/* Parameter of the functions below. */
static size_t many;

static void
many_rois(struct dicom_bytes *bytes)
{
    char number[24];
    for (size_t i = 0; i < many; i++) {
        snprintf(number, sizeof(number), "%zu", i);
        set_roi(bytes, NULL, number, "A region");
    }
}

static void
many_items(struct dicom_bytes *bytes)
{
    char number[24];
    for (size_t i = 0; i < many; i++) {
        snprintf(number, sizeof(number), "%zu", i);
        set_open_contours(bytes, NULL, NULL);
        set_close_contours(bytes, NULL, number);
    }
}

static void
many_contours(struct dicom_bytes *bytes)
{
    set_open_contours(bytes, NULL, NULL);
    for (size_t i = 0; i < many; i++)
        set_contour(bytes, NULL, "CLOSED_PLANAR", NULL, NULL, "1\\2\\3");
    set_close_contours(bytes, NULL, "1");
}

/*
 * Puts the elements and items of one region that are read: two of its own, three per contour, or four with its number
 * of points.
 */
static void
many_elements(struct dicom_bytes *bytes)
{
    set_open_contours(bytes, NULL, NULL);
    for (size_t i = 0; i < (many - 2) / 3; i++)
        set_contour(bytes, NULL, "CLOSED_PLANAR", NULL, i < (many - 2) % 3 ? "1" : NULL, "1\\2\\3");
    set_close_contours(bytes, NULL, "1");
}

static void
put_points(struct dicom_bytes *bytes, size_t points)
{
    char *text = malloc(6 * points);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < points; i++)
        memcpy(text + 6 * i, "1\\2\\3\\", 6);
    text[6 * points - 1] = ' ';
    bytes_item(bytes);
    bytes_text(bytes, 0x30060042, "CS", "CLOSED_PLANAR");
    bytes_element(bytes, 0x30060050, "DS", text, 6 * points);
    bytes_item_end(bytes);
    free(text);
}

static void
many_points(struct dicom_bytes *bytes)
{
    set_open_contours(bytes, NULL, NULL);
    put_points(bytes, many / 2);
    put_points(bytes, many - many / 2);
    set_close_contours(bytes, NULL, "1");
}

/*
 * Puts `many` bytes of contours in total, as the walk keeps them in implicit VR: items of a MiB; the first one is
 * larger.
 */
static void
many_bytes(struct dicom_bytes *bytes)
{
    const size_t whole = (size_t)1 << 20, around = 4 * 8 + (8 + 14) + 8 + (8 + 2);
    char *value = malloc(2 * whole);
    ck_assert_ptr_nonnull(value);
    for (size_t i = 0; i < many / whole; i++) {
        const size_t size = whole - around + (i == 0 ? many % whole : 0);
        for (size_t at = 0; at + 6 <= size; at += 6)
            memcpy(value + at, "1\\2\\3\\", 6);
        memset(value + size / 6 * 6 - 1, ' ', size % 6 + 1);
        set_open_contours(bytes, NULL, NULL);
        bytes_item(bytes);
        bytes_text(bytes, 0x30060042, "CS", "CLOSED_PLANAR");
        bytes_element(bytes, 0x30060050, "DS", value, size);
        bytes_item_end(bytes);
        set_close_contours(bytes, NULL, i ? "99" : "1");
    }
    free(value);
}

/* A kind of set with a size to test. */
struct many_kind {
    const char *name;
    void (*rois)(struct dicom_bytes *bytes);
    void (*contours)(struct dicom_bytes *bytes);
    size_t n; /* the limit, or the first size for growth */
    size_t step;
};

static void
write_many(const struct many_kind *kind, size_t n)
{
    struct sample_set sample = SAMPLE_SET;
    sample.syntax = SYNTAX_IMPLICIT;
    sample.rois = kind->rois;
    sample.contours = kind->contours;
    many = n;
    set_write(&sample, path);
}

static const struct {
    struct edge edge;
    size_t unit;
    struct many_kind kind;
} limits[] = {
    {EDGE(ROIS), 1, {.rois = many_rois, .step = 1}},
    {EDGE(ROIS), 1, {.contours = many_items, .step = 1}},
    {EDGE(ROI_ELEMENTS), 1, {.contours = many_elements, .step = 1}},
    {EDGE(ROI_POINTS), 1, {.contours = many_points, .step = 1}},
    {EDGE(CONTOURS_MIB), 1 << 20, {.contours = many_bytes, .step = 2}},
};

START_TEST(at_a_limit_and_beyond)
{
    if (!test_turn_has((uint64_t)_i))
        return;
    const struct many_kind *kind = &limits[_i].kind;
    const size_t most = (size_t)limits[_i].edge.most * limits[_i].unit;
    struct rtstruct_contours contours;
    write_many(kind, most);
    struct rtstruct *set = open_or_fail();
    ck_assert_int_eq(rtstruct_contours_read(set, 0, &contours, NULL), 0);
    rtstruct_contours_free(&contours);
    rtstruct_close(set);
    write_many(kind, most + kind->step);
    const struct error *error = error_of_file();
    ck_assert_msg(error->code == limits[_i].edge.code, "%s: %s: %s", limits[_i].edge.name, code_name(error->code),
                  error->message);
}

END_TEST

/* ---- cost ---- */

/* Repeats the same region up to the limit: opening reads them all. */
static void
many_types(struct dicom_bytes *bytes)
{
    set_open_contours(bytes, NULL, NULL);
    for (size_t i = 0; i < many; i++)
        set_contour(bytes, NULL, "POINT", "1.2.3.5", "1", "1\\2\\3");
    set_close_contours(bytes, NULL, "1");
}

static void
many_long_names(struct dicom_bytes *bytes)
{
    static char name[LIMIT_TEXT_BYTES + 1];
    char number[24];
    memset(name, 'A', LIMIT_TEXT_BYTES);
    for (size_t i = 0; i < many; i++) {
        snprintf(number, sizeof(number), "%zu", i);
        set_roi(bytes, NULL, number, name);
    }
}

static const struct many_kind kinds[] = {
    {"regions", many_rois, NULL, 1000, 0},
    {"long names", many_long_names, NULL, 1000, 0},
    {"items of regions", NULL, many_items, 1000, 0},
    {"contours", NULL, many_contours, 20000, 0},
    {"contours that are left out", NULL, many_types, 9000, 0},
    {"points", NULL, many_points, 500000, 0},
    {"bytes", NULL, many_bytes, 20 << 20, 0},
};

static double
cost(const void *kind, size_t n)
{
    struct rtstruct_contours contours;
    write_many(kind, n);
    const double begun = growth_clock();
    struct rtstruct *set = open_or_fail();
    for (int32_t roi = 0; roi < set->roi_count; roi++) {
        ck_assert_int_eq(rtstruct_contours_read(set, roi, &contours, NULL), 0);
        rtstruct_contours_free(&contours);
    }
    rtstruct_close(set);
    return growth_clock() - begun;
}

START_TEST(cost_is_linear)
{
    if (!test_turn_has((uint64_t)_i))
        return;
    expect_linear(kinds[_i].name, cost, &kinds[_i], kinds[_i].n);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_rtstruct");
    TCase *tests = tcase_create("rtstruct");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, contours_read_back_as_written, 0, 4);
    tcase_add_test(tests, contours_of_an_open_file);
    tcase_add_test(tests, names_and_their_sets);
    tcase_add_test(tests, optional_attributes_may_be_absent);
    tcase_add_test(tests, numbers_equal_those_of_strtod);
    tcase_add_test(tests, invalid_numbers_are_refused);
    tcase_add_loop_test(tests, refusals, 0, REFUSED);
    tcase_add_test(tests, missing_and_truncated_files);
    tcase_add_loop_test(tests, at_a_limit_and_beyond, 0, (int)(sizeof(limits) / sizeof(limits[0])));
    tcase_add_loop_test(tests, cost_is_linear, 0, (int)(sizeof(kinds) / sizeof(kinds[0])));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

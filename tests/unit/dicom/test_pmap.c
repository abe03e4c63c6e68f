/* pmap_write and pmap_identify: content, rejections, failures, and stability. */
#include "tests/share.h"
#include "tests/unit/dicom/pmap_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

#include <sys/mman.h>

static const struct seg_sample_shape odd = {.columns = 33, .rows = 7, .planes = 5, .segments = 1};

static struct pmap_sample sample;

static int
write_sample(int fd, struct derived_summary *summary, struct error *error)
{
    return pmap_write(&sample.request, fd, summary, error);
}

static int
verify_sample(const char *path, struct error *error)
{
    return pmap_verify(&sample.request, path, error);
}

static struct written_object object = {
    .path = sample.stack.target,
    .mismatch = CODE_PMAP_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

static struct error error;

static void
make_shape(const struct seg_sample_shape *shape)
{
    dicom_init();
    pmap_sample_make(&sample, shape);
    error = (struct error){0};
}

static void
make(void)
{
    make_shape(&odd);
}

static void
drop(void)
{
    written_free(&object);
    pmap_sample_free(&sample);
}

/* Finds the values at the end of the file without a parser. */
static void
expect_pixels(const struct seg_sample_shape *shape)
{
    const size_t length = 2 * (size_t)seg_sample_voxels(shape);
    const uint8_t *pixels = object.bytes + object.size - length;
    const uint8_t head[12] = {0xE0,
                              0x7F,
                              0x10,
                              0x00,
                              'O',
                              'W',
                              0,
                              0,
                              (uint8_t)length,
                              (uint8_t)(length >> 8),
                              (uint8_t)(length >> 16),
                              (uint8_t)(length >> 24)};
    ck_assert_mem_eq(pixels - 12, head, 12);
    const uint8_t *code = sample.codes;
    for (int32_t z = 0; z < shape->planes; z++) {
        for (int32_t y = 0; y < shape->rows; y++) {
            for (int32_t x = 0; x < shape->columns; x++, pixels += 2) {
                bool edge = x == 0 || y == 0 || x == shape->columns - 1 || y == shape->rows - 1;
                int expected = edge ? 65535 : *code++;
                int found = pixels[0] | pixels[1] << 8;
                ck_assert_msg(found == expected, "(%d, %d, %d): %d, not %d", x, y, z, found, expected);
            }
        }
    }
}

START_TEST(values_of_all_shapes)
{
    static const struct seg_sample_shape shapes[] = {
        {.columns = 3, .rows = 3, .planes = 1, .segments = 1},
        {.columns = 3, .rows = 3, .planes = 4, .segments = 1},
        {.columns = 4, .rows = 3, .planes = 2, .segments = 1},
        {.columns = 3, .rows = 5, .planes = 3, .segments = 1},
        {.columns = 257, .rows = 255, .planes = 3, .segments = 1},
        {.columns = 65535, .rows = 3, .planes = 2, .segments = 1},
        {.columns = 3, .rows = 65535, .planes = 1, .segments = 1},
        {.columns = 100, .rows = 9, .planes = 17, .segments = 1, .multi_frame = true},
        {.columns = 7, .rows = 5, .planes = 400, .segments = 1},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        drop();
        make_shape(&shapes[i]);
        written_take(&object);
        ck_assert_int_eq(object.summary.frames, shapes[i].planes);
        expect_pixels(&shapes[i]);
    }
}

END_TEST

START_TEST(planes_without_a_pattern)
{
    for (int i = 0; i < 2; i++) {
        sample.stack.stack.columns = i == 0 ? 2 : 33;
        sample.stack.stack.rows = i == 0 ? 7 : 1;
        ck_assert_int_eq(written_try(&object, &error), -ENODATA);
        ck_assert_int_eq(error.code, CODE_PMAP_EMPTY);
    }
}

END_TEST

START_TEST(same_input_same_bytes)
{
    written_take(&object);
    /* The same instances in another order, to which the stack points as before. */
    struct dicom_instance *last = sample.stack.instances[4];
    sample.stack.instances[4] = sample.stack.instances[0];
    sample.stack.instances[0] = last;
    sample.stack.stack.planes[0].instance = 4;
    sample.stack.stack.planes[4].instance = 0;
    written_expect_same_again(&object);
}

END_TEST

static void
expect_all_different(const struct derived_identity *a, const struct derived_identity *b, const char *what)
{
    ck_assert_msg(strcmp(a->sop_instance_uid, b->sop_instance_uid) != 0, "%s", what);
    ck_assert_msg(strcmp(a->series_uid, b->series_uid) != 0, "%s", what);
    ck_assert_msg(strcmp(a->dimension_organization_uid, b->dimension_organization_uid) != 0, "%s", what);
}

START_TEST(identity_follows_from_the_inputs)
{
    struct derived_identity base;
    struct derived_identity other;
    pmap_identify(&sample.request, &base);
    ck_assert_str_ne(base.sop_instance_uid, base.series_uid);
    ck_assert_str_ne(base.sop_instance_uid, base.dimension_organization_uid);
    seg_identify(&sample.stack.request, &other);
    expect_all_different(&base, &other, "the segmentation");

    sample.request.kind = "tlbap";
    pmap_identify(&sample.request, &other);
    expect_all_different(&base, &other, "kind");
    sample.request.kind = "lbp";

    struct seg_request source = sample.stack.request;
    const char *const texts[] = {"pipeline", "settings", "version"};
    for (size_t i = 0; i < 3; i++) {
        struct seg_request *changed = &sample.stack.request;
        *changed = source;
        if (i == 0)
            changed->source.pipeline = "head-ct2";
        if (i == 1)
            changed->source.pipeline_settings = "range = [ 0, 81 ]";
        if (i == 2)
            changed->source.software_version = "0.1.1";
        pmap_identify(&sample.request, &other);
        expect_all_different(&base, &other, texts[i]);
    }

    /* What the segmentation does with its frames is nothing to a map. */
    sample.stack.request = source;
    sample.stack.request.omit_empty_frames = !source.omit_empty_frames;
    sample.stack.request.type = SEG_FRACTIONAL;
    pmap_identify(&sample.request, &other);
    ck_assert_mem_eq(&base, &other, offsetof(struct derived_identity, replaces));
    written_take(&object);
    ck_assert_mem_eq(&base, &object.summary.identity, offsetof(struct derived_identity, replaces));
}

END_TEST

/* Archives hold objects under these UIDs: a release that makes others sends everything twice. They were computed by
 * hashlib from the fields that conformance.md, 4.4, lists. */
START_TEST(identity_is_equal_across_releases)
{
    struct derived_identity identity;
    pmap_identify(&sample.request, &identity);
    ck_assert_str_eq(identity.sop_instance_uid, "2.25.339150216969155771050392994273986830474");
    ck_assert_str_eq(identity.series_uid, "2.25.225822915356183642756092076557260342258");
    ck_assert_str_eq(identity.dimension_organization_uid, "2.25.296185722585306019702227628638661534657");
}

END_TEST

START_TEST(texts)
{
    written_take(&object);
    ck_assert(written_count_text(&object, "head-ct, lbp map"));
    sample.request.series_description = "Texture of the liver";
    sample.request.kind = "lanadp";
    written_take(&object);
    ck_assert(written_count_text(&object, "Texture of the liver"));
    ck_assert(written_count_text(&object, "LANADP"));
    ck_assert(!written_count_text(&object, "map"));
}

END_TEST

START_TEST(texts_beyond_ascii_make_the_object_utf8)
{
    drop();
    struct seg_sample_shape latin = odd;
    latin.charset = "ISO_IR 100";
    latin.patient = "M\xFCller^J\xF6rg";
    make_shape(&latin);
    written_take(&object); /* ASCII only: the source's set and bytes stay */
    ck_assert(written_count_text(&object, "ISO_IR 100"));
    ck_assert(written_count_text(&object, "M\xFCller^J\xF6rg"));

    static const char word[] = "Gr\xC3\xB6\xC3\x9F"
                               "e";
    for (int i = 0; i < 3; i++) {
        struct pmap_request request = sample.request;
        if (i == 0)
            sample.request.series_description = word;
        if (i == 1)
            sample.request.explanation = word;
        if (i == 2)
            sample.request.quantity.meaning = word;
        written_take(&object);
        ck_assert(written_count_text(&object, "ISO_IR 192"));
        ck_assert(written_count_text(&object, "M\xC3\xBCller^J\xC3\xB6rg"));
        ck_assert(written_count_text(&object, word));
        sample.request = request;
    }
}

END_TEST

START_TEST(a_region_of_the_body)
{
    written_take(&object);
    ck_assert(written_count_text(&object, "38266002")); /* no body part: the entire body */
    strcpy(sample.stack.storage[0].body_part, "HEAD");
    written_take(&object);
    ck_assert(written_count_text(&object, "69536005"));
    strcpy(sample.stack.storage[0].body_part, "KNEE"); /* side unknown */
    written_take(&object);
    ck_assert(written_count_text(&object, "38266002"));
}

END_TEST

START_TEST(a_missing_frame_of_reference_is_generated)
{
    static const uint8_t head[6] = {0x20, 0x00, 0x52, 0x00, 'U', 'I'};
    for (int i = 0; i < 2; i++) {
        written_take(&object);
        const uint8_t *place = memmem(object.bytes, object.size, head, sizeof(head));
        ck_assert_ptr_nonnull(place);
        ck_assert_mem_eq(place + 8, i == 0 ? "1.2.3.4.3" : "2.25.", i == 0 ? 9 : 5);
        for (int32_t k = 0; k < sample.stack.instance_count; k++)
            sample.stack.storage[k].frame_of_reference_uid[0] = '\0';
    }
}

END_TEST

START_TEST(geometry_is_needed)
{
    sample.stack.stack.has_geometry = false;
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_NO_GEOMETRY);
}

END_TEST

START_TEST(incomplete_requests_are_refused)
{
    for (int i = 0; i < 10; i++) {
        struct pmap_request good = sample.request;
        struct seg_request source = sample.stack.request;
        int32_t planes = sample.stack.stack.plane_count;
        if (i == 0)
            sample.request.codes = NULL;
        if (i == 1)
            sample.request.kind = "";
        if (i == 2)
            sample.request.kind = "a/b";
        if (i == 3)
            sample.request.kind = "seventeen_letters";
        if (i == 4)
            sample.request.quantity.value = NULL;
        if (i == 5)
            sample.request.explanation = "";
        if (i == 6)
            sample.stack.request.source.device_serial_number = "";
        if (i == 7)
            sample.stack.stack.plane_count = 0;
        if (i == 8)
            sample.stack.request.source.software_version = "";
        if (i == 9)
            sample.request.quantity.meaning = "";
        error = (struct error){0};
        ck_assert_int_eq(written_try(&object, &error), -EINVAL);
        ck_assert_int_eq(error.code, CODE_PMAP_REQUEST_INVALID);
        sample.request = good;
        sample.stack.request = source;
        sample.stack.stack.plane_count = planes;
    }
}

END_TEST

START_TEST(an_unreadable_source_is_reported)
{
    unlink(sample.stack.source);
    ck_assert_int_lt(written_try(&object, &error), 0);
    ck_assert_str_ne(code_name(error.code), "");
    ck_assert_str_eq(error.file[0], sample.stack.source);
}

END_TEST

/* A plane of 65535 x 32769 is more than 2^32 - 2 bytes. The writer must reject it before it reads a code. */
START_TEST(four_gib_are_too_much)
{
    sample.stack.stack.columns = 65535;
    sample.stack.stack.rows = 32769;
    sample.stack.stack.plane_count = 1;
    ck_assert_int_eq(written_try(&object, &error), -EOVERFLOW);
    ck_assert_int_eq(error.code, CODE_PMAP_TOO_LARGE);
}

END_TEST

/* One row less is allowed: only the device is too small. The codes are address space that is hardly touched. */
START_TEST(nearly_four_gib_are_not)
{
    if (!test_turn_has(0))
        return;
    const size_t count = (size_t)65533 * 32766;
    uint8_t *codes = mmap(NULL, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(codes, MAP_FAILED);
    sample.stack.stack.columns = 65535;
    sample.stack.stack.rows = 32768;
    sample.stack.stack.plane_count = 1;
    sample.request.codes = codes;
    int fd = open("/dev/full", O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pmap_write(&sample.request, fd, &object.summary, &error), -ENOSPC);
    ck_assert_int_eq(error.code, CODE_WRITE_FAILED);
    close(fd);
    munmap(codes, count);
}

END_TEST

START_TEST(a_full_device_is_reported)
{
    written_expect_full_device_told(&object);
}

END_TEST

START_TEST(a_truncated_file_is_reported)
{
    written_expect_full_disk_told(&object);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_pmap");
    TCase *tests = tcase_create("write");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, values_of_all_shapes);
    tcase_add_test(tests, planes_without_a_pattern);
    tcase_add_test(tests, same_input_same_bytes);
    tcase_add_test(tests, identity_follows_from_the_inputs);
    tcase_add_test(tests, identity_is_equal_across_releases);
    tcase_add_test(tests, texts);
    tcase_add_test(tests, texts_beyond_ascii_make_the_object_utf8);
    tcase_add_test(tests, a_region_of_the_body);
    tcase_add_test(tests, a_missing_frame_of_reference_is_generated);
    tcase_add_test(tests, geometry_is_needed);
    tcase_add_test(tests, incomplete_requests_are_refused);
    tcase_add_test(tests, an_unreadable_source_is_reported);
    tcase_add_test(tests, four_gib_are_too_much);
    tcase_add_test(tests, nearly_four_gib_are_not);
    tcase_add_test(tests, a_full_device_is_reported);
    tcase_add_test(tests, a_truncated_file_is_reported);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* capture_write and capture_verify: a map of a 2-D image, its identity and refusals, and damage that must be detected. */
#include "dicom/objects/pmap/capture.h"

#include "tests/unit/dicom/pmap_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

enum { COLUMNS = 9, ROWS = 7 };

static const struct seg_sample_shape shape = {.columns = COLUMNS, .rows = ROWS, .planes = 1, .segments = 1};

static struct pmap_sample sample;

static int
write_sample(int fd, struct derived_summary *summary, struct error *error)
{
    return capture_write(&sample.request, fd, summary, error);
}

static int
verify_sample(const char *path, struct error *error)
{
    return capture_verify(&sample.request, path, error);
}

static struct written_object object = {
    .path = sample.stack.target,
    .mismatch = CODE_PMAP_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

static struct error error;

static void
make(void)
{
    dicom_init();
    pmap_sample_make(&sample, &shape);
    seg_sample_flatten(&sample.stack, 0);
    sample.request.burned_in = true;
    sample.request.recognizable = true;
    error = (struct error){0};
    written_take(&object);
}

static void
drop(void)
{
    written_free(&object);
    pmap_sample_free(&sample);
}

/* Finds the values at the end of the file without a parser: codes, and 65535 on the edge. */
START_TEST(values)
{
    const uint8_t *pixels = object.bytes + object.size - 2 * (size_t)COLUMNS * ROWS;
    const uint8_t *code = sample.codes;
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++, pixels += 2) {
            const bool edge = x == 0 || y == 0 || x == COLUMNS - 1 || y == ROWS - 1;
            ck_assert_int_eq(pixels[0] | pixels[1] << 8, edge ? 65535 : *code++);
        }
    ck_assert_int_eq(object.summary.frames, 1);
}

END_TEST

START_TEST(it_states_no_place_and_no_size)
{
    static const uint8_t frame_of_reference[] = {0x20, 0x00, 0x52, 0x00}, spacing[] = {0x28, 0x00, 0x30, 0x00},
                         position[] = {0x20, 0x00, 0x32, 0x00};
    ck_assert_int_eq(written_count(&object, frame_of_reference, sizeof(frame_of_reference)), 0);
    ck_assert_int_eq(written_count(&object, spacing, sizeof(spacing)), 0);
    ck_assert_int_eq(written_count(&object, position, sizeof(position)), 0);
}

END_TEST

START_TEST(identity_follows_from_the_inputs)
{
    struct derived_identity capture, other, map;
    written_expect_same_again(&object);
    ck_assert_int_eq(capture_identify(&sample.request, &capture), 0);
    ck_assert_int_eq(pmap_identify(&sample.request, &map), 0);
    sample.request.kind = "tlbap";
    ck_assert_int_eq(capture_identify(&sample.request, &other), 0);
    ck_assert_str_ne(capture.sop_instance_uid, other.sop_instance_uid);
    ck_assert_str_ne(capture.series_uid, other.series_uid);
    ck_assert_str_ne(capture.sop_instance_uid, map.sop_instance_uid);
}

END_TEST

static double context;

static void
fill_nothing(void *of, int64_t plane, void *doubles)
{
    (void)of;
    (void)plane;
    (void)doubles;
}

START_TEST(requests_that_are_refused)
{
    const struct pmap_request good = sample.request;
    sample.stack.stack.columns = 2;
    ck_assert_int_eq(written_try(&object, &error), -ENODATA);
    ck_assert_int_eq(error.code, CODE_PMAP_EMPTY);
    sample.stack.stack.columns = 65535;
    sample.stack.stack.rows = 32769;
    ck_assert_int_eq(written_try(&object, &error), -EOVERFLOW);
    ck_assert_int_eq(error.code, CODE_PMAP_TOO_LARGE);
    sample.stack.stack.columns = COLUMNS;
    sample.stack.stack.rows = ROWS;
    sample.request.kind = "a/b";
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_PMAP_REQUEST_INVALID);
    sample.request = good;
    sample.request.codes = NULL;
    sample.request.fill = fill_nothing;
    sample.request.context = &context;
    sample.request.unit = (struct coded_concept){"1", "UCUM", "no units"};
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_PMAP_REQUEST_INVALID);
    sample.request = good;
    sample.stack.stack.flat = false; /* a plane without a place is not a 2-D image */
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_NO_GEOMETRY);
}

END_TEST

START_TEST(any_changed_value)
{
    const size_t pixel_bytes = 2 * (size_t)COLUMNS * ROWS;
    for (size_t i = 0; i < pixel_bytes; i++) {
        char word[64];
        snprintf(word, sizeof(word), "pixel (%zu, %zu) is ", i / 2 % COLUMNS, i / 2 / COLUMNS);
        written_expect_damage(&object, object.bytes + object.size - pixel_bytes + i, 1, word);
    }
}

END_TEST

START_TEST(attributes)
{
    static const struct {
        uint32_t tag;
        const char *vr;
        int offset; /* of the damaged byte */
        const char *word;
    } damages[] = {
        {0x00080008, "CS", 0, "ImageType"},
        {0x00080016, "UI", 0, "SOPClassUID"},
        {0x00080018, "UI", 0, "SOPInstanceUID"},
        {0x00080060, "CS", 0, "Modality"},
        {0x00080064, "CS", 0, "ConversionType"},
        {0x0020000D, "UI", 0, "StudyInstanceUID"},
        {0x00280008, "IS", 0, "NumberOfFrames"},
        {0x00280010, "US", 0, "Rows"},
        {0x00280011, "US", 0, "Columns"},
        {0x00280101, "US", 0, "BitsStored"},
        {0x00280103, "US", 0, "PixelRepresentation"},
        {0x00280120, "US", 1, "PixelPaddingValue"},
        {0x00280301, "CS", 0, "BurnedInAnnotation"},
        {0x00280302, "CS", -8 + 2, "RecognizableVisualFeatures"},
        {0x00281050, "DS", 0, "WindowCenter"},
        {0x00281051, "DS", 0, "WindowWidth"},
        {0x00281052, "DS", 0, "RescaleIntercept"},
        {0x00281053, "DS", 0, "RescaleSlope"},
        {0x00409210, "SH", 0, "LUTLabel"},
        {0x00409211, "US", 0, "RealWorldValueLastValueMapped"},
        {0x00409216, "US", 0, "RealWorldValueFirstValueMapped"},
        {0x00409224, "FD", 7, "a code is not its own value"},
        {0x00409225, "FD", 7, "a code is not its own value"},
    };

    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        uint8_t *byte = written_find_value(&object, damages[i].tag, damages[i].vr, 1) + damages[i].offset;
        written_expect_damage(&object, byte, 2, damages[i].word);
    }
}

END_TEST

START_TEST(other_requests)
{
    sample.request.quantity.value = "TLBAP";
    written_expect_refused(&object, "ConceptCodeSequence");
    sample.request.quantity.value = "LBP";
    sample.request.burned_in = false;
    written_expect_refused(&object, "BurnedInAnnotation");
    sample.request.burned_in = true;
    sample.request.recognizable = false;
    written_expect_refused(&object, "RecognizableVisualFeatures");
}

END_TEST

START_TEST(references)
{
    uint8_t *in_series = written_find(&object, "1.2.3.4.5000", 12, 1);
    in_series[11] = '8';
    written_expect_mismatch(&object, "not a source");
    in_series[11] = '0';
    written_find(&object, "1.2.3.4.5000", 12, 2)[11] = '8';
    written_expect_mismatch(&object, "ReferencedSOPInstanceUID");
}

END_TEST

START_TEST(files)
{
    written_expect_cuts_refused(&object, 13);
    written_expect_no_crash(&object, 7);
    written_expect_no_file_refused(&object);
    written_expect_full_device_told(&object);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_capture");
    TCase *tests = tcase_create("capture");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, values);
    tcase_add_test(tests, it_states_no_place_and_no_size);
    tcase_add_test(tests, identity_follows_from_the_inputs);
    tcase_add_test(tests, requests_that_are_refused);
    tcase_add_test(tests, any_changed_value);
    tcase_add_test(tests, attributes);
    tcase_add_test(tests, other_requests);
    tcase_add_test(tests, references);
    tcase_add_test(tests, files);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

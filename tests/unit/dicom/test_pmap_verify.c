/* pmap_verify: each kind of damage to a valid object must be detected and named. */
#include "tests/unit/dicom/pmap_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

static const struct seg_sample_shape shape = {.columns = 9, .rows = 7, .planes = 5, .segments = 1};

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

static void
make(void)
{
    dicom_init();
    pmap_sample_make(&sample, &shape);
    written_take(&object);
}

static int32_t response[9 * 7 * 5];
static double response_step = 0x1p-20;

static void
fill_response(void *context, int64_t plane, void *values)
{
    const double *step = context;
    for (int64_t i = 0; i < 63; i++)
        ((double *)values)[i] = response[63 * plane + i] == INT32_MIN ? NAN : response[63 * plane + i] * *step;
}

/* The response of a filter: codes of both signs, and one voxel without. */
static void
make_response(void)
{
    dicom_init();
    pmap_sample_make(&sample, &shape);
    for (int32_t i = 0; i < 9 * 7 * 5; i++)
        response[i] = (i - 150) * 3456789 + 1;
    response[17] = INT32_MIN;
    sample.request.codes = NULL;
    sample.request.fill = fill_response;
    sample.request.context = &response_step;
    sample.request.range[1] = 1;
    sample.request.unit = (struct coded_concept){"[hnsf'U]", "UCUM", "Hounsfield unit"};
    written_take(&object);
}

static void
drop(void)
{
    written_free(&object);
    pmap_sample_free(&sample);
}

/* Changes each byte of every value, including the padding. */
START_TEST(any_changed_value)
{
    const size_t pixel_bytes = 2 * 9 * 7 * 5;
    for (size_t i = 0; i < pixel_bytes; i++) {
        char word[64];
        size_t voxel = i / 2;
        snprintf(word, sizeof(word), "voxel (%zu, %zu, %zu) is ", voxel % 9, voxel / 9 % 7, voxel / 63);
        uint8_t *byte = object.bytes + object.size - pixel_bytes + i;
        written_expect_damage(&object, byte, 1, word);
    }
    struct error error;
    written_save(&object, object.size);
    ck_assert_int_eq(pmap_verify(&sample.request, sample.stack.target, &error), 0);
}

END_TEST

START_TEST(other_codes)
{
    sample.codes[2 * 7 * 5 + 3] ^= 0x10; /* x 4, y 1 of plane 2 */
    written_expect_refused(&object, "voxel (4, 1, 2)");
}

END_TEST

START_TEST(another_kind)
{
    sample.request.kind = "tlbap";
    written_expect_refused(&object, "SOPInstanceUID");
}

END_TEST

START_TEST(another_quantity)
{
    sample.request.quantity.value = "TLBAP";
    written_expect_refused(&object, "ConceptCodeSequence");
}

END_TEST

/* Attributes of the meaning of stored values and of their display. */
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
        {0x00080060, "CS", 0, "Modality"},
        {0x0020000D, "UI", 0, "StudyInstanceUID"},
        {0x00200052, "UI", 0, "FrameOfReferenceUID"},
        {0x00280010, "US", 0, "Rows"},
        {0x00280011, "US", 0, "Columns"},
        {0x00280101, "US", 0, "BitsStored"},
        {0x00280103, "US", 0, "PixelRepresentation"},
        {0x00280120, "US", 1, "PixelPaddingValue"},
        {0x00700080, "CS", 0, "ContentLabel"},
        {0x20500020, "CS", 0, "PresentationLUTShape"},
        {0x00281050, "DS", 0, "WindowCenter"},
        {0x00281051, "DS", 0, "WindowWidth"},
        {0x00281052, "DS", 0, "RescaleIntercept"},
        {0x00281053, "DS", 0, "RescaleSlope"},
        {0x00089007, "CS", 0, "FrameType"},
        {0x00409211, "US", 0, "RealWorldValueLastValueMapped"},
        {0x00409216, "US", 0, "RealWorldValueFirstValueMapped"},
        {0x00409224, "FD", 7, "RealWorldValueIntercept"},
        {0x00409225, "FD", 7, "RealWorldValueSlope"},
        {0x00280030, "DS", 0, "PixelSpacing"},
        {0x00180088, "DS", 0, "SpacingBetweenSlices"},
        {0x00200037, "DS", 0, "ImageOrientationPatient"},
        {0x00280008, "IS", 0, "NumberOfFrames"},
    };

    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        uint8_t *byte = written_find_value(&object, damages[i].tag, damages[i].vr, 1) + damages[i].offset;
        written_expect_damage(&object, byte, 2, damages[i].word);
    }
}

END_TEST

START_TEST(a_unit)
{
    uint8_t *scheme = written_find(&object, "UCUM", 4, 1);
    scheme[0] = 'X';
    written_expect_mismatch(&object, "MeasurementUnitsCodeSequence");
}

END_TEST

START_TEST(a_position)
{
    memcpy(written_find(&object, "-7.5", 4, 1), "-7.0", 4);
    written_expect_mismatch(&object, "ImagePositionPatient [2]");
}

END_TEST

START_TEST(a_dimension_index)
{
    written_find_value(&object, 0x00209157, "UL", 2)[0] = 3;
    written_expect_mismatch(&object, "frame 2: DimensionIndexValues");
}

END_TEST

START_TEST(references)
{
    uint8_t *in_series = written_find(&object, "1.2.3.4.5003", 12, 1);
    in_series[11] = '2';
    written_expect_mismatch(&object, "is a duplicate");
    in_series[11] = '8';
    written_expect_mismatch(&object, "not a source");
    in_series[11] = '3';
    uint8_t *in_frame = written_find(&object, "1.2.3.4.5003", 12, 2);
    in_frame[11] = '8';
    written_expect_mismatch(&object, "not a plane of the stack");
    in_frame[11] = '1'; /* another existing plane: the position differs */
    written_expect_mismatch(&object, "ImagePositionPatient");
}

END_TEST

/* Exchanges planes 1 and 2 except for their pixels and indices. */
START_TEST(frames_in_another_order)
{
    uint8_t *second = written_find(&object, "1.2.3.4.5001", 12, 2);
    uint8_t *third = written_find(&object, "1.2.3.4.5002", 12, 2);
    second[11] = '2';
    third[11] = '1';
    memcpy(written_find(&object, "-7.5", 4, 1), "-5.0", 4);
    memcpy(written_find(&object, "-5.0", 4, 2), "-7.5", 4);
    written_expect_mismatch(&object, "frame 2: it is plane 2 instead of 1");
}

END_TEST

START_TEST(truncated_files)
{
    written_expect_cuts_refused(&object, 13);
}

END_TEST

START_TEST(any_byte)
{
    written_expect_no_crash(&object, 7);
}

END_TEST

START_TEST(no_file)
{
    written_expect_no_file_refused(&object);
}

END_TEST

/* Changes each byte of every double. */
START_TEST(any_changed_response)
{
    const size_t pixel_bytes = 8 * 9 * 7 * 5;
    for (size_t i = 0; i < pixel_bytes; i++) {
        char word[64];
        size_t voxel = i / 8;
        snprintf(word, sizeof(word), "voxel (%zu, %zu, %zu) is ", voxel % 9, voxel / 9 % 7, voxel / 63);
        written_expect_damage(&object, object.bytes + object.size - pixel_bytes + i, 1, word);
    }
}

END_TEST

START_TEST(another_response)
{
    response[9 * 7 * 2 + 9 + 4]++;
    written_expect_refused(&object, "voxel (4, 1, 2)");
}

END_TEST

START_TEST(attributes_of_a_response)
{
    static const struct {
        uint32_t tag;
        const char *vr, *word;
        int offset;
    } damages[] = {
        {0x00280100, "US", "BitsAllocated", 0},
        {0x00280123, "FD", "DoubleFloatPixelPaddingValue", 7},
        {0x00409213, "FD", "DoubleFloatRealWorldValueLastValueMapped", 7},
        {0x00409214, "FD", "DoubleFloatRealWorldValueFirstValueMapped", 7},
        {0x00409225, "FD", "RealWorldValueSlope", 7},
    };

    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        uint8_t *byte = written_find_value(&object, damages[i].tag, damages[i].vr, 1) + damages[i].offset;
        written_expect_damage(&object, byte, 2, damages[i].word);
    }
    sample.request.unit.value = "Bq/ml";
    written_expect_refused(&object, "MeasurementUnitsCodeSequence");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_pmap_verify");
    TCase *tests = tcase_create("damage");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, any_changed_value);
    tcase_add_test(tests, other_codes);
    tcase_add_test(tests, another_kind);
    tcase_add_test(tests, another_quantity);
    tcase_add_test(tests, attributes);
    tcase_add_test(tests, a_unit);
    tcase_add_test(tests, a_position);
    tcase_add_test(tests, a_dimension_index);
    tcase_add_test(tests, references);
    tcase_add_test(tests, frames_in_another_order);
    tcase_add_test(tests, truncated_files);
    tcase_add_test(tests, any_byte);
    tcase_add_test(tests, no_file);
    suite_add_tcase(suite, tests);
    tests = tcase_create("damage of a response");
    tcase_add_checked_fixture(tests, make_response, drop);
    tcase_add_test(tests, any_changed_response);
    tcase_add_test(tests, another_response);
    tcase_add_test(tests, attributes_of_a_response);
    tcase_add_test(tests, truncated_files);
    tcase_add_test(tests, any_byte);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

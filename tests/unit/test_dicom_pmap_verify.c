/* pmap_verify: each kind of damage to a good object is noticed, and named. */
#include "pmap_sample.h"

#include <check.h>
#include <errno.h>

static const struct seg_sample_shape shape = {.columns = 9, .rows = 7, .planes = 5, .segments = 1};

static struct pmap_sample sample;
static uint8_t *bytes;
static size_t size;

static void
make(void)
{
    struct seg_summary summary;
    struct dicom_fault fault;
    dicom_init();
    pmap_sample_make(&sample, &shape);
    ck_assert_int_eq(pmap_sample_write(&sample, &summary, &fault), 0);
    ck_assert_int_eq(pmap_verify(&sample.request, sample.stack.target, &fault), 0);
    FILE *file = fopen(sample.stack.target, "rb");
    ck_assert_ptr_nonnull(file);
    bytes = malloc(1 << 20);
    size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
}

static void
drop(void)
{
    free(bytes);
    pmap_sample_free(&sample);
}

static void
write_bytes(size_t count)
{
    FILE *file = fopen(sample.stack.target, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

/* The n-th place (from 1) of a pattern. */
static uint8_t *
find(const void *pattern, size_t length, int nth)
{
    uint8_t *place = bytes;
    for (;;) {
        place = memmem(place, size - (size_t)(place - bytes), pattern, length);
        ck_assert_ptr_nonnull(place);
        if (--nth == 0)
            return place;
        place++;
    }
}

/* The value of the n-th element with the tag and a 16-bit length. */
static uint8_t *
find_value(uint32_t tag, const char *vr, int nth)
{
    const uint8_t head[6] = {(uint8_t)(tag >> 16), (uint8_t)(tag >> 24), (uint8_t)tag,
                             (uint8_t)(tag >> 8),  (uint8_t)vr[0],       (uint8_t)vr[1]};
    return find(head, sizeof(head), nth) + 8;
}

/* The file as it is must be refused with a sentence that speaks of `word`. */
static void
expect_refused(const char *word)
{
    struct dicom_fault fault = {0};
    ck_assert_int_eq(pmap_verify(&sample.request, sample.stack.target, &fault), -EBADMSG);
    ck_assert_str_eq(fault.code, "PMAP_MISMATCH");
    ck_assert_str_eq(fault.file[0], sample.stack.target);
    ck_assert_msg(strstr(fault.sentence, word) != NULL, "\"%s\" lacks \"%s\"", fault.sentence,
                  word);
}

static void
expect_mismatch(const char *word)
{
    write_bytes(size);
    expect_refused(word);
}

/* Every value, padding included, in each of its bytes. */
START_TEST(any_changed_value)
{
    const size_t pixel_bytes = 2 * 9 * 7 * 5;
    for (size_t i = 0; i < pixel_bytes; i++) {
        char word[64];
        size_t voxel = i / 2;
        snprintf(word, sizeof(word), "voxel (%zu, %zu, %zu) is ", voxel % 9, voxel / 9 % 7,
                 voxel / 63);
        uint8_t *byte = bytes + size - pixel_bytes + i;
        *byte ^= 1;
        expect_mismatch(word);
        *byte ^= 1;
    }
    struct dicom_fault fault;
    write_bytes(size);
    ck_assert_int_eq(pmap_verify(&sample.request, sample.stack.target, &fault), 0);
}

END_TEST

START_TEST(other_codes)
{
    sample.codes[2 * 7 * 5 + 3] ^= 0x10; /* x 4, y 1 of plane 2 */
    expect_refused("voxel (4, 1, 2)");
}

END_TEST

START_TEST(another_kind)
{
    sample.request.kind = "tlbap";
    expect_refused("SOPInstanceUID");
}

END_TEST

START_TEST(another_quantity)
{
    sample.request.quantity.value = "TLBAP";
    expect_refused("ConceptCodeSequence");
}

END_TEST

/* What a stored value means, and how it is shown. */
START_TEST(attributes)
{
    static const struct {
        uint32_t tag;
        const char *vr;
        int offset; /* of the byte that is damaged */
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
        uint8_t *byte = find_value(damages[i].tag, damages[i].vr, 1) + damages[i].offset;
        *byte ^= 2;
        expect_mismatch(damages[i].word);
        *byte ^= 2;
    }
}

END_TEST

START_TEST(a_unit)
{
    uint8_t *scheme = find("UCUM", 4, 1);
    scheme[0] = 'X';
    expect_mismatch("MeasurementUnitsCodeSequence");
}

END_TEST

START_TEST(a_position)
{
    memcpy(find("-7.5", 4, 1), "-7.0", 4);
    expect_mismatch("ImagePositionPatient [2]");
}

END_TEST

START_TEST(a_dimension_index)
{
    find_value(0x00209157, "UL", 2)[0] = 3;
    expect_mismatch("frame 2: DimensionIndexValues");
}

END_TEST

START_TEST(references)
{
    uint8_t *in_series = find("1.2.3.4.5003", 12, 1);
    in_series[11] = '2';
    expect_mismatch("there twice");
    in_series[11] = '8';
    expect_mismatch("not a source");
    in_series[11] = '3';
    uint8_t *in_frame = find("1.2.3.4.5003", 12, 2);
    in_frame[11] = '8';
    expect_mismatch("no plane of the stack");
    in_frame[11] = '1'; /* a plane, but another: the position tells */
    expect_mismatch("ImagePositionPatient");
}

END_TEST

/* Planes 1 and 2 in each other's place, everything but their pixels and indices with them. */
START_TEST(frames_in_another_order)
{
    uint8_t *second = find("1.2.3.4.5001", 12, 2);
    uint8_t *third = find("1.2.3.4.5002", 12, 2);
    second[11] = '2';
    third[11] = '1';
    memcpy(find("-7.5", 4, 1), "-5.0", 4);
    memcpy(find("-5.0", 4, 2), "-7.5", 4);
    expect_mismatch("frame 2: it is plane 2 instead of 1");
}

END_TEST

START_TEST(a_cut_file)
{
    for (size_t i = 0; i < 8; i++) {
        write_bytes(size * i / 8);
        expect_refused("");
    }
    write_bytes(size - 1);
    expect_refused("");
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
    tcase_add_test(tests, a_cut_file);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* seg_verify: each kind of damage to a good object is noticed, and named. */
#include "seg_sample.h"

#include <check.h>
#include <errno.h>

static const struct seg_sample_shape shape = {.columns = 33, .rows = 7, .planes = 5, .segments = 2};

static struct seg_sample sample;
static uint8_t *bytes;
static size_t size;

static void
read_back(void)
{
    FILE *file = fopen(sample.target, "rb");
    ck_assert_ptr_nonnull(file);
    bytes = malloc(1 << 20);
    size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
}

static void
write_sample(void)
{
    struct seg_summary summary;
    struct dicom_fault fault;
    ck_assert_int_eq(seg_sample_write(&sample, &summary, &fault), 0);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), 0);
    free(bytes);
    read_back();
}

/* Frames: segment 1 on planes 1, 2, 3; segment 2 on planes 2, 3. 5 * 231 bits. */
static void
make(void)
{
    dicom_init();
    seg_sample_make(&sample, &shape);
    for (int32_t z = 1; z <= 3; z++)
        seg_sample_set(&sample, 0, 4 + z, 3, z);
    for (int32_t z = 2; z <= 3; z++)
        seg_sample_set(&sample, 1, 20 + z, 5, z);
    write_sample();
}

/* The same frames with connectedness: 5 * 231 bytes, and one to make it even. */
static void
make_fractional(void)
{
    struct seg_sample_shape fractional = shape;
    fractional.fractional = true;
    dicom_init();
    seg_sample_make(&sample, &fractional);
    for (int32_t z = 1; z <= 3; z++)
        seg_sample_set_scene(&sample, 0, 4 + z, 3, z, 65535);
    for (int32_t z = 2; z <= 3; z++)
        seg_sample_set_scene(&sample, 1, 20 + z, 5, z, 771); /* 3 * 257 */
    write_sample();
}

static void
drop(void)
{
    free(bytes);
    bytes = NULL;
    seg_sample_free(&sample);
}

static void
write_bytes(size_t count)
{
    FILE *file = fopen(sample.target, "wb");
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

static uint8_t *
find_text(const char *text, int nth)
{
    return find(text, strlen(text), nth);
}

/* The value of the n-th element with the tag and a 16-bit length. */
static uint8_t *
find_value(uint32_t tag, const char *vr, int nth)
{
    const uint8_t head[6] = {(uint8_t)(tag >> 16), (uint8_t)(tag >> 24), (uint8_t)tag,
                             (uint8_t)(tag >> 8),  (uint8_t)vr[0],       (uint8_t)vr[1]};
    return find(head, sizeof(head), nth) + 8;
}

/* Writes the damaged bytes; they must be refused with a sentence that speaks of `word`. */
static void
expect_mismatch(const char *word)
{
    struct dicom_fault fault = {0};
    write_bytes(size);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), -EBADMSG);
    ck_assert_str_eq(fault.code, "SEG_MISMATCH");
    ck_assert_str_eq(fault.file[0], sample.target);
    ck_assert_msg(strstr(fault.sentence, word) != NULL, "\"%s\" lacks \"%s\"", fault.sentence,
                  word);
}

/* Every single bit of the pixel data, padding included. */
START_TEST(any_flipped_bit)
{
    const size_t pixel_bytes = (5 * 231 + 15) / 16 * 2;
    for (size_t bit = 0; bit < 8 * pixel_bytes; bit++) {
        uint8_t *byte = bytes + size - pixel_bytes + bit / 8;
        *byte ^= (uint8_t)(1 << bit % 8);
        expect_mismatch(bit < 5 * 231 ? "voxel (" : "padding");
        *byte ^= (uint8_t)(1 << bit % 8);
    }
    struct dicom_fault fault;
    write_bytes(size);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), 0);
}

END_TEST

START_TEST(the_voxel_is_named)
{
    bytes[size - 146 + 231 / 8] ^= (uint8_t)(1 << 231 % 8); /* first bit of the second frame */
    expect_mismatch("voxel (0, 0, 2) of segment 1");
}

END_TEST

START_TEST(a_frame_under_another_segment)
{
    uint8_t *number = find_value(0x0062000B, "US", 1);
    ck_assert_uint_eq(number[0], 1);
    number[0] = 2;
    expect_mismatch("DimensionIndexValues");
    /* The index follows: now the voxels are the other segment's. */
    find_value(0x00209157, "UL", 1)[0] = 2;
    expect_mismatch("voxel (");
    number[0] = 3;
    expect_mismatch("segment 3");
    number[0] = 0;
    expect_mismatch("segment 0");
}

END_TEST

START_TEST(a_frame_there_twice)
{
    uint8_t *second = find_value(0x0062000B, "US", 4);
    ck_assert_uint_eq(second[0], 2);
    second[0] = 1; /* plane 2 of segment 1 again */
    find_value(0x00209157, "UL", 4)[0] = 1;
    /* its pixels too, so that nothing else differs */
    for (int bit = 0; bit < 231; bit++) {
        uint8_t *pixels = bytes + size - 146;
        int from = 231 + bit;
        int to = 3 * 231 + bit;
        pixels[to / 8] &= (uint8_t) ~(1 << to % 8);
        pixels[to / 8] |= (uint8_t)((pixels[from / 8] >> from % 8 & 1) << to % 8);
    }
    expect_mismatch("there twice");
}

END_TEST

START_TEST(dimension_index_values)
{
    uint8_t *values = find_value(0x00209157, "UL", 2);
    ck_assert_uint_eq(values[0], 1);
    ck_assert_uint_eq(values[4], 2);
    values[4] = 1; /* the same as the frame before */
    expect_mismatch("DimensionIndexValues");
    values[4] = 7;
    expect_mismatch("DimensionIndexValues");
    values[4] = 0;
    expect_mismatch("DimensionIndexValues");
}

END_TEST

START_TEST(a_position)
{
    uint8_t *z = find_text("-7.5", 1);
    memcpy(z, "-7.0", 4);
    expect_mismatch("ImagePositionPatient [2]");
    memcpy(z, "-7x5", 4);
    expect_mismatch("ImagePositionPatient");
}

END_TEST

START_TEST(a_source_reference)
{
    /* Plane 0 has no frame: its UID is in ReferencedSeriesSequence alone. */
    find_text("1.2.3.4.5001", 2)[11] = '9';
    expect_mismatch("no plane of the stack");
    find_text("1.2.3.4.5009", 1)[11] = '0'; /* a plane, but another: the position tells */
    expect_mismatch("ImagePositionPatient");
}

END_TEST

START_TEST(a_source_class)
{
    uint8_t *uid = find_value(0x00081150, "UI", 6); /* five in the series, then the first frame */
    ck_assert_mem_eq(uid, "1.2.840.10008.5.1.4.1.1.2", 25);
    uid[24] = '4';
    expect_mismatch("ReferencedSOPClassUID");
}

END_TEST

START_TEST(the_referenced_series)
{
    uint8_t *uid = find_text("1.2.3.4.5003", 1);
    uid[11] = '8';
    expect_mismatch("not a source");
    uid[11] = '2';
    expect_mismatch("there twice");
}

END_TEST

START_TEST(spatial_locations_preserved)
{
    memcpy(find_value(0x0028135A, "CS", 3), "NO  ", 4);
    expect_mismatch("SpatialLocationsPreserved");
}

END_TEST

START_TEST(uids_of_the_object)
{
    static const struct {
        uint32_t tag;
        const char *name;
    } uids[] = {
        {0x00020003, "MediaStorageSOPInstanceUID"},
        {0x00080018, "SOPInstanceUID"},
        {0x00200052, "FrameOfReferenceUID"},
        {0x0020000D, "StudyInstanceUID"},
    };

    for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]); i++) {
        uint8_t *value = find_value(uids[i].tag, "UI", 1);
        uint8_t kept = value[6];
        value[6] = kept == '1' ? '2' : '1';
        expect_mismatch(uids[i].name);
        value[6] = kept;
    }
    find_value(0x0020000E, "UI", 1)[0] = '3'; /* in ReferencedSeriesSequence */
    expect_mismatch("SeriesInstanceUID of the source");
    find_value(0x0020000E, "UI", 1)[0] = '1';
    find_value(0x0020000E, "UI", 2)[6] ^= 1;
    expect_mismatch("SeriesInstanceUID is");
}

END_TEST

START_TEST(segments)
{
    find_text("Part 2", 1)[5] = '3';
    expect_mismatch("SegmentLabel");
    find_text("Part 3", 1)[5] = '2';
    find_value(0x00620004, "US", 2)[0] = 1;
    expect_mismatch("SegmentNumber");
    find_value(0x00620004, "US", 2)[0] = 2;
    find_text("12738006", 2)[0] = '2';
    expect_mismatch("SegmentedPropertyTypeCodeSequence");
}

END_TEST

START_TEST(shared_groups)
{
    uint8_t *orientation = find_value(0x00200037, "DS", 1);
    orientation[0] = '2';
    expect_mismatch("ImageOrientationPatient [0]");
    orientation[0] = '1';
    uint8_t *spacing = find_value(0x00280030, "DS", 1);
    spacing[2] = '6'; /* 0.5 to 0.6 */
    expect_mismatch("PixelSpacing [0]");
    spacing[2] = '5';
    find_value(0x00180088, "DS", 1)[0] = '3'; /* 2.5 to 3.5 */
    expect_mismatch("SpacingBetweenSlices");
    find_value(0x00180088, "DS", 1)[-8] = 0x19; /* another group: gone */
    expect_mismatch("SpacingBetweenSlices is missing");
}

END_TEST

START_TEST(sizes)
{
    uint8_t *rows = find_value(0x00280010, "US", 1);
    rows[0] = 33;
    find_value(0x00280011, "US", 1)[0] = 7;
    expect_mismatch("Rows");
    rows[0] = 7;
    find_value(0x00280011, "US", 1)[0] = 33;
    memcpy(find_value(0x00280008, "IS", 1), "4 ", 2);
    expect_mismatch("PerFrameFunctionalGroupsSequence");
    memcpy(find_value(0x00280008, "IS", 1), "5 ", 2);
    memcpy(find_value(0x00620001, "CS", 1), "LABELS", 6);
    expect_mismatch("SegmentationType");
}

END_TEST

/* What was segmented changed after the object was written: the object is the wrong one. */
START_TEST(a_frame_that_should_be_there)
{
    seg_sample_set(&sample, 1, 32, 6, 4);
    expect_mismatch("plane 4 of segment 2 is missing");
}

END_TEST

/* Bits beyond the columns are nobody's voxels. */
START_TEST(bits_beyond_the_columns)
{
    for (size_t i = 0; i < 2 * 5 * 7; i++)
        sample.words[i] |= ~UINT64_C(0) << 33;
    struct dicom_fault fault;
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), 0);
    size_t before = size;
    write_sample();
    ck_assert_uint_eq(size, before);
}

END_TEST

/* Cut anywhere, the file is refused, and nothing crashes. */
START_TEST(truncated_files)
{
    for (size_t cut = 0; cut < size; cut += 13) {
        struct dicom_fault fault = {0};
        write_bytes(cut);
        ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), -EBADMSG);
        ck_assert_str_eq(fault.code, "SEG_MISMATCH");
    }
}

END_TEST

START_TEST(no_file)
{
    struct dicom_fault fault = {0};
    unlink(sample.target);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), -EBADMSG);
    ck_assert(strstr(fault.sentence, "cannot be read") != NULL);
}

END_TEST

START_TEST(a_frame_number)
{
    drop();
    struct seg_sample_shape enhanced = shape;
    enhanced.multi_frame = true;
    seg_sample_make(&sample, &enhanced);
    seg_sample_set(&sample, 0, 3, 3, 1);
    seg_sample_set(&sample, 1, 3, 3, 1);
    write_sample();
    uint8_t *number = find_value(0x00081160, "IS", 1);
    ck_assert_mem_eq(number, "4 ", 2); /* plane 1 of frames in descending order */
    number[0] = '3';
    expect_mismatch("ImagePositionPatient");
    number[0] = '6';
    expect_mismatch("no plane of the stack");
    number[-8] = 0x07; /* another attribute: no number at all */
    number[0] = '4';
    expect_mismatch("frame 1:");
}

END_TEST

/* --- FRACTIONAL --- */

/* Each value with a bit changed, the lowest among them; the byte of padding too. */
START_TEST(any_other_value)
{
    for (size_t i = 0; i < 1156; i++) {
        uint8_t *byte = bytes + size - 1156 + i;
        *byte ^= (uint8_t)(1 << i % 8);
        expect_mismatch(i < 1155 ? "voxel (" : "padding");
        *byte ^= (uint8_t)(1 << i % 8);
    }
    struct dicom_fault fault;
    write_bytes(size);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), 0);
}

END_TEST

START_TEST(the_value_is_named)
{
    bytes[size - 1156 + 3 * 231 + 5 * 33 + 22] = 4; /* voxel (22, 5) of the fourth frame */
    expect_mismatch("voxel (22, 5, 2) of segment 2 is 4 of 255 instead of 771 of 65535");
}

END_TEST

/* A scene that moves within what is stored as the same value is the scene that was written. */
START_TEST(the_nearest_value)
{
    struct dicom_fault fault;
    for (uint16_t scene = 771 - 128; scene <= 771 + 128; scene++) {
        seg_sample_set_scene(&sample, 1, 22, 5, 2, scene);
        ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), 0);
    }
    seg_sample_set_scene(&sample, 1, 22, 5, 2, 771 + 129);
    expect_mismatch("is 3 of 255 instead of 900 of 65535");
    seg_sample_set_scene(&sample, 1, 22, 5, 2, 771 - 129);
    expect_mismatch("is 3 of 255 instead of 642 of 65535");
}

END_TEST

START_TEST(a_scene_that_should_be_there)
{
    struct dicom_fault fault;
    seg_sample_set_scene(&sample, 1, 32, 6, 4, 128);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, &fault), 0);
    seg_sample_set_scene(&sample, 1, 32, 6, 4, 129);
    expect_mismatch("plane 4 of segment 2 is missing");
}

END_TEST

START_TEST(what_makes_it_fractional)
{
    uint8_t *kind = find_value(0x00620010, "CS", 1);
    ck_assert_mem_eq(kind, "PROBABILITY ", 12);
    kind[10] = 'X';
    expect_mismatch("SegmentationFractionalType");
    kind[10] = 'Y';
    uint8_t *maximum = find_value(0x0062000E, "US", 1);
    ck_assert_uint_eq(maximum[0], 255);
    maximum[0] = 254;
    expect_mismatch("MaximumFractionalValue");
    maximum[0] = 255;
    static const uint32_t bits[] = {0x00280100, 0x00280101, 0x00280102};
    static const char *const names[] = {"BitsAllocated", "BitsStored", "HighBit"};
    for (int i = 0; i < 3; i++) {
        uint8_t *value = find_value(bits[i], "US", 1);
        ck_assert_uint_eq(value[0], i == 2 ? 7 : 8);
        value[0]++;
        expect_mismatch(names[i]);
        value[0]--;
    }
    memcpy(find_value(0x00620001, "CS", 1), "BINARY    ", 10);
    expect_mismatch("SegmentationType");
}

END_TEST

static TCase *
fractional_case(void)
{
    TCase *tests = tcase_create("damage to fractional objects");
    tcase_add_checked_fixture(tests, make_fractional, drop);
    tcase_add_test(tests, any_other_value);
    tcase_add_test(tests, the_value_is_named);
    tcase_add_test(tests, the_nearest_value);
    tcase_add_test(tests, a_scene_that_should_be_there);
    tcase_add_test(tests, what_makes_it_fractional);
    tcase_add_test(tests, uids_of_the_object);
    tcase_add_test(tests, truncated_files);
    return tests;
}

int
main(void)
{
    Suite *suite = suite_create("dicom_seg_verify");
    TCase *tests = tcase_create("damage");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, any_flipped_bit);
    tcase_add_test(tests, the_voxel_is_named);
    tcase_add_test(tests, a_frame_under_another_segment);
    tcase_add_test(tests, a_frame_there_twice);
    tcase_add_test(tests, dimension_index_values);
    tcase_add_test(tests, a_position);
    tcase_add_test(tests, a_source_reference);
    tcase_add_test(tests, a_source_class);
    tcase_add_test(tests, the_referenced_series);
    tcase_add_test(tests, spatial_locations_preserved);
    tcase_add_test(tests, uids_of_the_object);
    tcase_add_test(tests, segments);
    tcase_add_test(tests, shared_groups);
    tcase_add_test(tests, sizes);
    tcase_add_test(tests, a_frame_that_should_be_there);
    tcase_add_test(tests, bits_beyond_the_columns);
    tcase_add_test(tests, truncated_files);
    tcase_add_test(tests, no_file);
    tcase_add_test(tests, a_frame_number);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, fractional_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

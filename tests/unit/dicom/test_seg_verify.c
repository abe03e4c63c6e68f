/* seg_verify: each kind of damage to a valid object must be detected and named. */
#include "tests/unit/dicom/seg_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

static const struct seg_sample_shape shape = {.columns = 33, .rows = 7, .planes = 5, .segments = 2};

static struct seg_sample sample;

static int
write_sample(int fd, struct derived_summary *summary, struct error *error)
{
    return seg_write(&sample.request, fd, summary, error);
}

static int
verify_sample(const char *path, struct error *error)
{
    return seg_verify(&sample.request, path, 3, error);
}

static struct written_object object = {
    .path = sample.target,
    .mismatch = CODE_SEG_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

/* Makes frames: segment 1 on planes 1, 2, 3; segment 2 on planes 2, 3. 5 * 231 bits. */
static void
make(void)
{
    dicom_init();
    seg_sample_make(&sample, &shape);
    for (int32_t z = 1; z <= 3; z++)
        seg_sample_set(&sample, 0, 4 + z, 3, z);
    for (int32_t z = 2; z <= 3; z++)
        seg_sample_set(&sample, 1, 20 + z, 5, z);
    written_take(&object);
}

/* Makes the same frames with connectedness: 5 * 231 bytes, and one for an even length. */
static void
make_fractional(void)
{
    struct seg_sample_shape fractional = shape;
    fractional.fractional = true;
    dicom_init();
    seg_sample_make(&sample, &fractional);
    for (int32_t z = 1; z <= 3; z++)
        seg_sample_set_map(&sample, 0, 4 + z, 3, z, 65535);
    for (int32_t z = 2; z <= 3; z++)
        seg_sample_set_map(&sample, 1, 20 + z, 5, z, 771); /* 3 * 257 */
    written_take(&object);
}

static void
drop(void)
{
    written_free(&object);
    seg_sample_free(&sample);
}

/* Flips every single bit of the pixel data, including padding. */
START_TEST(any_flipped_bit)
{
    const size_t pixel_bytes = (5 * 231 + 15) / 16 * 2;
    for (size_t bit = 0; bit < 8 * pixel_bytes; bit++) {
        uint8_t *byte = object.bytes + object.size - pixel_bytes + bit / 8;
        written_expect_damage(&object, byte, (uint8_t)(1 << bit % 8), bit < 5 * 231 ? "voxel (" : "padding");
    }
    struct error error;
    written_save(&object, object.size);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, 3, &error), 0);
}

END_TEST

START_TEST(the_voxel_is_named)
{
    object.bytes[object.size - 146 + 231 / 8] ^= (uint8_t)(1 << 231 % 8); /* first bit of the second frame */
    written_expect_mismatch(&object, "voxel (0, 0, 2) of segment 1");
}

END_TEST

START_TEST(a_frame_under_another_segment)
{
    uint8_t *number = written_find_value(&object, 0x0062000B, "US", 1);
    ck_assert_uint_eq(number[0], 1);
    number[0] = 2;
    written_expect_mismatch(&object, "DimensionIndexValues");
    /* The index follows, so that the voxels belong to the other segment. */
    written_find_value(&object, 0x00209157, "UL", 1)[0] = 2;
    written_expect_mismatch(&object, "voxel (");
    number[0] = 3;
    written_expect_mismatch(&object, "segment 3");
    number[0] = 0;
    written_expect_mismatch(&object, "segment 0");
}

END_TEST

START_TEST(a_repeated_frame)
{
    uint8_t *second = written_find_value(&object, 0x0062000B, "US", 4);
    ck_assert_uint_eq(second[0], 2);
    second[0] = 1; /* plane 2 of segment 1 again */
    written_find_value(&object, 0x00209157, "UL", 4)[0] = 1;
    /* its pixels, too, so that there is no other difference */
    for (int bit = 0; bit < 231; bit++) {
        uint8_t *pixels = object.bytes + object.size - 146;
        int from = 231 + bit;
        int to = 3 * 231 + bit;
        pixels[to / 8] &= (uint8_t) ~(1 << to % 8);
        pixels[to / 8] |= (uint8_t)((pixels[from / 8] >> from % 8 & 1) << to % 8);
    }
    written_expect_mismatch(&object, "is a duplicate");
}

END_TEST

START_TEST(dimension_index_values)
{
    uint8_t *values = written_find_value(&object, 0x00209157, "UL", 2);
    ck_assert_uint_eq(values[0], 1);
    ck_assert_uint_eq(values[4], 2);
    values[4] = 1; /* same as the frame before */
    written_expect_mismatch(&object, "DimensionIndexValues");
    values[4] = 7;
    written_expect_mismatch(&object, "DimensionIndexValues");
    values[4] = 0;
    written_expect_mismatch(&object, "DimensionIndexValues");
}

END_TEST

START_TEST(a_position)
{
    uint8_t *z = written_find_text(&object, "-7.5", 1);
    memcpy(z, "-7.0", 4);
    written_expect_mismatch(&object, "ImagePositionPatient [2]");
    memcpy(z, "-7x5", 4);
    written_expect_mismatch(&object, "ImagePositionPatient");
}

END_TEST

START_TEST(a_source_reference)
{
    /* Plane 0 has no frame: its UID is only in ReferencedSeriesSequence. */
    written_find_text(&object, "1.2.3.4.5001", 2)[11] = '9';
    written_expect_mismatch(&object, "not a plane of the stack");
    written_find_text(&object, "1.2.3.4.5009", 1)[11] = '0'; /* another existing plane: the position differs */
    written_expect_mismatch(&object, "ImagePositionPatient");
}

END_TEST

START_TEST(a_source_class)
{
    uint8_t *uid = written_find_value(&object, 0x00081150, "UI", 6); /* five in the series, then the first frame */
    ck_assert_mem_eq(uid, "1.2.840.10008.5.1.4.1.1.2", 25);
    uid[24] = '4';
    written_expect_mismatch(&object, "ReferencedSOPClassUID");
}

END_TEST

START_TEST(the_referenced_series)
{
    uint8_t *uid = written_find_text(&object, "1.2.3.4.5003", 1);
    uid[11] = '8';
    written_expect_mismatch(&object, "not a source");
    uid[11] = '2';
    written_expect_mismatch(&object, "is a duplicate");
}

END_TEST

START_TEST(spatial_locations_preserved)
{
    memcpy(written_find_value(&object, 0x0028135A, "CS", 3), "NO  ", 4);
    written_expect_mismatch(&object, "SpatialLocationsPreserved");
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
        uint8_t *value = written_find_value(&object, uids[i].tag, "UI", 1);
        uint8_t kept = value[6];
        value[6] = kept == '1' ? '2' : '1';
        written_expect_mismatch(&object, uids[i].name);
        value[6] = kept;
    }
    written_find_value(&object, 0x0020000E, "UI", 1)[0] = '3'; /* in ReferencedSeriesSequence */
    written_expect_mismatch(&object, "SeriesInstanceUID of the source");
    written_find_value(&object, 0x0020000E, "UI", 1)[0] = '1';
    written_find_value(&object, 0x0020000E, "UI", 2)[6] ^= 1;
    written_expect_mismatch(&object, "SeriesInstanceUID is");
}

END_TEST

START_TEST(segments)
{
    written_find_text(&object, "Part 2", 1)[5] = '3';
    written_expect_mismatch(&object, "SegmentLabel");
    written_find_text(&object, "Part 3", 1)[5] = '2';
    written_find_value(&object, 0x00620004, "US", 2)[0] = 1;
    written_expect_mismatch(&object, "SegmentNumber");
    written_find_value(&object, 0x00620004, "US", 2)[0] = 2;
    written_find_text(&object, "12738006", 2)[0] = '2';
    written_expect_mismatch(&object, "SegmentedPropertyTypeCodeSequence");
}

END_TEST

START_TEST(shared_groups)
{
    uint8_t *orientation = written_find_value(&object, 0x00200037, "DS", 1);
    orientation[0] = '2';
    written_expect_mismatch(&object, "ImageOrientationPatient [0]");
    orientation[0] = '1';
    uint8_t *spacing = written_find_value(&object, 0x00280030, "DS", 1);
    spacing[2] = '6'; /* 0.5 to 0.6 */
    written_expect_mismatch(&object, "PixelSpacing [0]");
    spacing[2] = '5';
    written_find_value(&object, 0x00180088, "DS", 1)[0] = '3'; /* 2.5 to 3.5 */
    written_expect_mismatch(&object, "SpacingBetweenSlices");
    written_find_value(&object, 0x00180088, "DS", 1)[-8] = 0x19; /* another group: removes it */
    written_expect_mismatch(&object, "SpacingBetweenSlices is missing");
}

END_TEST

START_TEST(sizes)
{
    uint8_t *rows = written_find_value(&object, 0x00280010, "US", 1);
    rows[0] = 33;
    written_find_value(&object, 0x00280011, "US", 1)[0] = 7;
    written_expect_mismatch(&object, "Rows");
    rows[0] = 7;
    written_find_value(&object, 0x00280011, "US", 1)[0] = 33;
    memcpy(written_find_value(&object, 0x00280008, "IS", 1), "4 ", 2);
    written_expect_mismatch(&object, "PerFrameFunctionalGroupsSequence");
    memcpy(written_find_value(&object, 0x00280008, "IS", 1), "5 ", 2);
    memcpy(written_find_value(&object, 0x00620001, "CS", 1), "LABELS", 6);
    written_expect_mismatch(&object, "SegmentationType");
}

END_TEST

/* If the masks change after the object was written, the object must be rejected. */
START_TEST(a_missing_frame)
{
    seg_sample_set(&sample, 1, 32, 6, 4);
    written_expect_mismatch(&object, "plane 4 of segment 2 is missing");
}

END_TEST

/* Bits beyond the columns must not count as voxels. */
START_TEST(bits_beyond_the_columns)
{
    for (size_t i = 0; i < 2 * 5 * 7; i++)
        sample.words[i] |= ~UINT64_C(0) << 33;
    struct error error;
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, 3, &error), 0);
    size_t before = object.size;
    written_take(&object);
    ck_assert_uint_eq(object.size, before);
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

START_TEST(a_frame_number)
{
    drop();
    struct seg_sample_shape enhanced = shape;
    enhanced.multi_frame = true;
    seg_sample_make(&sample, &enhanced);
    seg_sample_set(&sample, 0, 3, 3, 1);
    seg_sample_set(&sample, 1, 3, 3, 1);
    written_take(&object);
    uint8_t *number = written_find_value(&object, 0x00081160, "IS", 1);
    ck_assert_mem_eq(number, "4 ", 2); /* plane 1 of frames in descending order */
    number[0] = '3';
    written_expect_mismatch(&object, "ImagePositionPatient");
    number[0] = '6';
    written_expect_mismatch(&object, "not a plane of the stack");
    number[-8] = 0x07; /* another attribute: removes the number */
    number[0] = '4';
    written_expect_mismatch(&object, "frame 1:");
}

END_TEST

/* Frames that do not end on bytes, enough for three threads. The lowest difference must be reported. */
START_TEST(any_number_of_threads_finds_the_same_fault)
{
    static const struct seg_sample_shape many = {.columns = 511, .rows = 513, .planes = 400, .segments = 1};
    const size_t frame_bits = 511 * 513, bytes = 400 * frame_bits / 8;
    struct error error;
    drop();
    seg_sample_make(&sample, &many);
    for (int32_t z = 0; z < 400; z++)
        seg_sample_set(&sample, 0, z, z, z);
    written_take(&object);
    for (int threads = 0; threads < 4; threads++)
        ck_assert_int_eq(seg_verify(&sample.request, sample.target, threads, &error), 0);
    ck_assert_uint_eq(bytes % 2, 0);
    for (size_t last = 399; last < 400; last -= 133) {
        object.bytes[object.size - bytes + last * frame_bits / 8 + 1] ^= 1;
        char name[48];
        snprintf(name, sizeof(name), ", %zu) of segment 1", last);
        written_expect_mismatch(&object, name);
    }
}

END_TEST

/* Trailing padding is not part of the pixel data, although a parser skips it. */
START_TEST(data_after_the_pixels)
{
    static const uint8_t padding[14] = {0xfc, 0xff, 0xfc, 0xff, 'O', 'B', 0, 0, 2};
    object.bytes = realloc(object.bytes, object.size + sizeof(padding));
    ck_assert_ptr_nonnull(object.bytes);
    memcpy(object.bytes + object.size, padding, sizeof(padding));
    written_save(&object, object.size + sizeof(padding));
    written_expect_refused(&object, "not at the end of the file");
}

END_TEST

/* --- FRACTIONAL --- */

/* Changes a bit of each value, including the lowest ones, and the byte of padding. */
START_TEST(any_other_value)
{
    for (size_t i = 0; i < 1156; i++) {
        uint8_t *byte = object.bytes + object.size - 1156 + i;
        written_expect_damage(&object, byte, (uint8_t)(1 << i % 8), i < 1155 ? "voxel (" : "padding");
    }
    struct error error;
    written_save(&object, object.size);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, 3, &error), 0);
}

END_TEST

START_TEST(the_value_is_named)
{
    object.bytes[object.size - 1156 + 3 * 231 + 5 * 33 + 22] = 4; /* voxel (22, 5) of the fourth frame */
    written_expect_mismatch(&object, "voxel (22, 5, 2) of segment 2 is 4 of 255 instead of 771 of 65535");
}

END_TEST

/* A map that changes without changing the stored values must count as the written map. */
START_TEST(the_nearest_value)
{
    struct error error;
    for (uint16_t connectedness = 771 - 128; connectedness <= 771 + 128; connectedness++) {
        seg_sample_set_map(&sample, 1, 22, 5, 2, connectedness);
        ck_assert_int_eq(seg_verify(&sample.request, sample.target, 3, &error), 0);
    }
    seg_sample_set_map(&sample, 1, 22, 5, 2, 771 + 129);
    written_expect_mismatch(&object, "is 3 of 255 instead of 900 of 65535");
    seg_sample_set_map(&sample, 1, 22, 5, 2, 771 - 129);
    written_expect_mismatch(&object, "is 3 of 255 instead of 642 of 65535");
}

END_TEST

START_TEST(a_missing_map)
{
    struct error error;
    seg_sample_set_map(&sample, 1, 32, 6, 4, 128);
    ck_assert_int_eq(seg_verify(&sample.request, sample.target, 3, &error), 0);
    seg_sample_set_map(&sample, 1, 32, 6, 4, 129);
    written_expect_mismatch(&object, "plane 4 of segment 2 is missing");
}

END_TEST

START_TEST(attributes_of_fractional_objects)
{
    uint8_t *kind = written_find_value(&object, 0x00620010, "CS", 1);
    ck_assert_mem_eq(kind, "PROBABILITY ", 12);
    kind[10] = 'X';
    written_expect_mismatch(&object, "SegmentationFractionalType");
    kind[10] = 'Y';
    uint8_t *maximum = written_find_value(&object, 0x0062000E, "US", 1);
    ck_assert_uint_eq(maximum[0], 255);
    maximum[0] = 254;
    written_expect_mismatch(&object, "MaximumFractionalValue");
    maximum[0] = 255;
    static const uint32_t bits[] = {0x00280100, 0x00280101, 0x00280102};
    static const char *const names[] = {"BitsAllocated", "BitsStored", "HighBit"};
    for (int i = 0; i < 3; i++) {
        uint8_t *value = written_find_value(&object, bits[i], "US", 1);
        ck_assert_uint_eq(value[0], i == 2 ? 7 : 8);
        value[0]++;
        written_expect_mismatch(&object, names[i]);
        value[0]--;
    }
    memcpy(written_find_value(&object, 0x00620001, "CS", 1), "BINARY    ", 10);
    written_expect_mismatch(&object, "SegmentationType");
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
    tcase_add_test(tests, a_missing_map);
    tcase_add_test(tests, attributes_of_fractional_objects);
    tcase_add_test(tests, uids_of_the_object);
    tcase_add_test(tests, any_number_of_threads_finds_the_same_fault);
    tcase_add_test(tests, data_after_the_pixels);
    tcase_add_test(tests, truncated_files);
    tcase_add_test(tests, any_byte);
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
    tcase_add_test(tests, a_repeated_frame);
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
    tcase_add_test(tests, a_missing_frame);
    tcase_add_test(tests, bits_beyond_the_columns);
    tcase_add_test(tests, truncated_files);
    tcase_add_test(tests, any_byte);
    tcase_add_test(tests, no_file);
    tcase_add_test(tests, a_frame_number);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, fractional_case());
    return suite_run(suite);
}

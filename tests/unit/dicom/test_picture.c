/* Pictures as Secondary Captures: written as a stream, and any damage to a valid object is detected and named. */
#include "dicom/objects/picture/picture.h"
#include "tests/unit/dicom/seg_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

enum { COLUMNS = 11, ROWS = 7, PLANES = 11, BYTES = 3 * COLUMNS * ROWS };

static const struct seg_sample_shape shape = {.columns = 9, .rows = 5, .planes = PLANES, .segments = 1};
static struct seg_sample sample;
static struct picture_request request;
static int calls, largest; /* of draw() */

static uint8_t
value_at(int32_t frame, int i)
{
    return (uint8_t)(frame * 31 + i * 7);
}

static int
draw(void *context, int32_t first, int32_t count, uint8_t *rgb)
{
    ck_assert_ptr_eq(context, &sample);
    calls++;
    largest = count > largest ? count : largest;
    for (int32_t k = 0; k < count; k++)
        for (int i = 0; i < BYTES; i++)
            *rgb++ = value_at(first + k, i);
    return 0;
}

static int
no_memory(void *context, int32_t first, int32_t count, uint8_t *rgb)
{
    (void)context;
    (void)first;
    (void)count;
    (void)rgb;
    return -ENOMEM;
}

static void
describe(void *context, int32_t frame, struct picture_frame *place)
{
    static int32_t planes[2];
    (void)context;
    planes[0] = frame;
    *place =
        (struct picture_frame){.planes = planes, .plane_count = 1, .position = {-101.25, -81.25, -10.0 + 2.5 * frame}};
    if (frame == PLANES) { /* the overview */
        planes[0] = 4;
        planes[1] = 7;
        place->plane_count = 2;
    }
}

static int
write_sample(int fd, struct derived_summary *summary, struct error *error)
{
    return picture_write(&request, fd, summary, error);
}

static int
verify_sample(const char *path, struct error *error)
{
    return picture_verify(&request, path, error);
}

static struct written_object object = {
    .path = sample.target,
    .mismatch = CODE_PICTURE_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

static void
make(void)
{
    dicom_init();
    seg_sample_make(&sample, &shape);
    calls = largest = 0;
    request = (struct picture_request){
        .source = &sample.request.source,
        .drawing = "test 1.0",
        .columns = COLUMNS,
        .rows = ROWS,
        .slices = PLANES,
        .only = -1,
        .placed = true,
        .orientation = {1, 0, 0, 0, 1, 0},
        .spacing = {0.5, 0.75},
        .thickness = 2.5,
        .comment = "Not for diagnosis.",
        .series_description = "",
        .series_number = 9050,
        .context = &sample,
        .describe = describe,
        .draw = draw,
    };
    written_take(&object);
}

static void
drop(void)
{
    written_free(&object);
    seg_sample_free(&sample);
}

START_TEST(frames_are_in_the_order_of_slices)
{
    const uint8_t *pixels = object.bytes + object.size - BYTES * PLANES - 1; /* padded to an even length */
    ck_assert_int_eq(object.summary.frames, PLANES);
    for (int32_t frame = 0; frame < PLANES; frame++)
        for (int i = 0; i < BYTES; i++)
            ck_assert_uint_eq(pixels[frame * BYTES + i], value_at(frame, i));
    ck_assert_uint_eq(object.bytes[object.size - 1], 0);
    ck_assert_int_eq(largest, PICTURE_BATCH); /* memory does not depend on the number of frames */
    ck_assert_int_eq(calls, 2 * 2);           /* written, and read back */
    written_expect_same_again(&object);
}

END_TEST

START_TEST(any_changed_pixel)
{
    for (int i = 0; i < BYTES * PLANES; i++) {
        char word[64];
        snprintf(word, sizeof word, "frame %d: channel %d of pixel %d is ", i / BYTES + 1, i % 3, i % BYTES / 3);
        written_expect_damage(&object, object.bytes + object.size - BYTES * PLANES - 1 + i, 1, word);
    }
}

END_TEST

/* In RLE a changed byte of the runs is another pixel, or leaves the frame undecodable. The offset table is empty. */
START_TEST(frames_in_rle)
{
    static const uint8_t begin[] = {0xE0, 0x7F, 0x10, 0x00, 'O',  'B',  0,    0,    0xFF, 0xFF,
                                    0xFF, 0xFF, 0xFE, 0xFF, 0x00, 0xE0, 0x00, 0x00, 0x00, 0x00};
    sample.request.source.compression = DERIVED_RLE;
    written_take(&object);
    written_expect_same_again(&object);
    ck_assert_int_eq(written_count_text(&object, DICOM_RLE_LOSSLESS), 1);
    uint8_t *frame = written_find(&object, begin, sizeof begin, 1) + sizeof begin + 8; /* after the item's header */
    ck_assert_mem_eq(frame, "\3\0\0\0\x40\0\0\0", 8);
    for (int i = 64; i < frame[8] - 1; i++) /* the runs of red, without padding */
        written_expect_damage(&object, frame + i, 1, "frame 1");
    written_expect_cuts_refused(&object, 37);
    written_expect_no_crash(&object, 11);
}

END_TEST

START_TEST(attributes)
{
    static const struct {
        uint32_t tag;
        const char *vr;
        const char *word;
    } damages[] = {
        {0x00080016, "UI", "SOPClassUID"},
        {0x00080060, "CS", "Modality"},
        {0x00080064, "CS", "ConversionType"},
        {0x0020000D, "UI", "StudyInstanceUID"},
        {0x0020000E, "UI", "SeriesInstanceUID"},
        {0x00200052, "UI", "FrameOfReferenceUID"},
        {0x00204000, "LT", "ImageComments"},
        {0x00280002, "US", "SamplesPerPixel"},
        {0x00280004, "CS", "PhotometricInterpretation"},
        {0x00280006, "US", "PlanarConfiguration"},
        {0x00280010, "US", "Rows"},
        {0x00280011, "US", "Columns"},
        {0x00280301, "CS", "BurnedInAnnotation"},
        {0x00200037, "DS", "ImageOrientationPatient"},
        {0x00280030, "DS", "PixelSpacing"},
        {0x00180050, "DS", "SliceThickness"},
        {0x00200032, "DS", "frame 1: ImagePositionPatient"},
    };

    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        /* The last of a tag: sources of the study come before our own. */
        uint8_t *byte = written_find_value(&object, damages[i].tag, damages[i].vr, 1);
        written_expect_damage(&object, byte, 2, damages[i].word);
    }
}

END_TEST

START_TEST(references)
{
    uint8_t *source = written_find(&object, "1.2.3.4.5003", 12, 2); /* after that of the referenced series */
    source[11] = '4';
    written_expect_mismatch(&object, "ReferencedSOPInstanceUID");
}

END_TEST

START_TEST(truncated_files)
{
    written_expect_cuts_refused(&object, 37);
}

END_TEST

START_TEST(any_byte)
{
    written_expect_no_crash(&object, 11);
}

END_TEST

/* An object per frame, and the overview: other UIDs, one series, own sources, no position. */
START_TEST(objects_of_one_frame)
{
    struct derived_identity many, single[3];
    ck_assert_int_eq(picture_identify(&request, &many), 0);
    for (int i = 0; i < 3; i++) {
        request.only = i < 2 ? i : PLANES;
        ck_assert_int_eq(picture_identify(&request, &single[i]), 0);
        ck_assert_str_eq(single[i].series_uid, many.series_uid);
        ck_assert_str_ne(single[i].sop_instance_uid, many.sop_instance_uid);
        ck_assert_str_ne(single[i].sop_instance_uid, single[i > 0 ? i - 1 : 2].sop_instance_uid);
        written_take(&object);
        ck_assert_int_eq(object.summary.frames, 1);
        ck_assert_int_eq(written_count_text(&object, PICTURE_SINGLE_SOP_CLASS "\0"), 2); /* file meta, and data set */
        ck_assert_int_eq(written_count(&object, "\x20\x00\x52\x00UI", 6), 0);
        ck_assert_uint_eq(object.bytes[object.size - BYTES - 1], value_at(request.only, 0));
    }
    uint8_t *source = written_find(&object, "1.2.3.4.5007", 12, 2);
    source[11] = '6';
    written_expect_mismatch(&object, "ReferencedSOPInstanceUID");
}

END_TEST

/* The version of the drawing is a part of the UIDs, because other letters are other pixels. */
START_TEST(another_drawing)
{
    request.drawing = "test 1.1";
    written_expect_refused(&object, "SOPInstanceUID");
}

END_TEST

START_TEST(statements_about_the_pixels)
{
    request.burned_in = request.recognizable = true;
    written_take(&object);
    ck_assert_mem_eq(written_find_value(&object, 0x00280301, "CS", 1), "YES ", 4);
    ck_assert_mem_eq(written_find_value(&object, 0x00280302, "CS", 1), "YES ", 4);
    request.recognizable = false;
    written_expect_refused(&object, "RecognizableVisualFeatures");
}

END_TEST

/* Frame Increment Pointer and Page Number Vector are for several frames only (PS3.3 C.7.6.6). */
START_TEST(an_object_of_one_slice)
{
    ck_assert_int_eq(written_count(&object,
                                   "\x28\x00\x09\x00"
                                   "AT",
                                   6),
                     1);
    ck_assert_int_eq(written_count(&object, "\x18\x00\x01\x20IS", 6), 1);
    request.slices = sample.stack.plane_count = 1;
    written_take(&object);
    ck_assert_int_eq(written_count(&object,
                                   "\x28\x00\x09\x00"
                                   "AT",
                                   6),
                     0);
    ck_assert_int_eq(written_count(&object, "\x18\x00\x01\x20IS", 6), 0);
}

END_TEST

START_TEST(without_a_place)
{
    request.placed = false;
    sample.stack.has_geometry = false;
    written_take(&object);
    ck_assert_int_eq(written_count(&object, "\x20\x00\x32\x00", 4), 0);
}

END_TEST

START_TEST(failures)
{
    struct error error = {0};
    struct derived_summary summary;
    int fd = open("/dev/full", O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(picture_write(&request, fd, &summary, &error), -ENOSPC);
    ck_assert_int_eq(error.code, CODE_WRITE_FAILED);
    close(fd);
    request.draw = no_memory;
    ck_assert_int_eq(written_try(&object, &error), -ENOMEM);
    ck_assert_int_eq(error.code, CODE_OUT_OF_MEMORY);
    ck_assert_int_eq(picture_verify(&request, object.path, &error), -EBADMSG); /* half a file */
    request.draw = draw;
    request.columns = request.rows = 11500; /* 11 frames of 397 MB */
    ck_assert_int_eq(written_try(&object, &error), -EOVERFLOW);
    ck_assert_int_eq(error.code, CODE_PICTURE_TOO_LARGE);
    request.columns = 65536;
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_PICTURE_REQUEST_INVALID);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_picture");
    TCase *tests = tcase_create("picture");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, frames_are_in_the_order_of_slices);
    tcase_add_test(tests, any_changed_pixel);
    tcase_add_test(tests, frames_in_rle);
    tcase_add_test(tests, attributes);
    tcase_add_test(tests, references);
    tcase_add_test(tests, truncated_files);
    tcase_add_test(tests, any_byte);
    tcase_add_test(tests, objects_of_one_frame);
    tcase_add_test(tests, another_drawing);
    tcase_add_test(tests, statements_about_the_pixels);
    tcase_add_test(tests, an_object_of_one_slice);
    tcase_add_test(tests, without_a_place);
    tcase_add_test(tests, failures);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

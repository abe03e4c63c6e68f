/* Structure sets as files: identity, character sets, replaced objects, refusals, full disk; the verifier names each damage. */
#include "dicom/objects/rtstruct/rtstruct_object.h"
#include "tests/unit/dicom/seg_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

static struct seg_sample_shape shape = {.columns = 33, .rows = 9, .planes = 5, .segments = 3};
static struct seg_sample sample;
static struct rtstruct_request request;
static const char *const types[] = {"ORGAN", "GTV", ""};
static int64_t contours_read;

static int
count_contours(void *context, int32_t segment, const struct rtstruct_contours *contours, struct error *error)
{
    (void)context;
    (void)segment;
    (void)error;
    contours_read += contours->count;
    return 0;
}

static int
write_sample(int fd, struct derived_summary *summary, struct error *error)
{
    return rtstruct_write(&request, fd, summary, error);
}

static int
verify_sample(const char *path, struct error *error)
{
    contours_read = 0;
    return rtstruct_verify(&request, path, count_contours, NULL, error);
}

static struct written_object object = {
    .path = sample.target,
    .mismatch = CODE_RTSTRUCT_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

/* Segment 1 is a ring on planes 1 to 3, segment 2 two voxels, segment 3 empty. */
static void
make(void)
{
    seg_sample_make(&sample, &shape);
    for (int32_t z = 1; z <= 3; z++)
        for (int32_t k = 0; k < 9; k++)
            if (k != 4)
                seg_sample_set(&sample, 0, 4 + k % 3, 2 + k / 3, z);
    seg_sample_set(&sample, 1, 20, 5, 2);
    seg_sample_set(&sample, 1, 21, 6, 2);
    sample.segments[0].modifier = (struct coded_concept){"7771000", "SCT", "Left"};
    sample.segments[1].region = (struct coded_concept){"12738006", "SCT", "Brain"};
    request = (struct rtstruct_request){
        .seg = &sample.request, .types = types, .series_description = "", .series_number = 9005};
    written_take(&object);
    ck_assert_int_eq(contours_read, 3 + 2);
}

static void
drop(void)
{
    written_free(&object);
    seg_sample_free(&sample);
}

START_TEST(equal_requests_give_equal_bytes)
{
    struct derived_identity own, seg, other;
    written_expect_same_again(&object);
    ck_assert_int_eq(rtstruct_identify(&request, &own), 0);
    ck_assert_str_eq(own.sop_instance_uid, object.summary.identity.sop_instance_uid);
    ck_assert_int_eq(seg_identify(&sample.request, &seg), 0);
    ck_assert_str_ne(own.sop_instance_uid, seg.sop_instance_uid);
    ck_assert_str_ne(own.series_uid, seg.series_uid);
    sample.request.source.pipeline_settings = "range = [ 0, 81 ]";
    ck_assert_int_eq(rtstruct_identify(&request, &other), 0);
    ck_assert_str_ne(own.sop_instance_uid, other.sop_instance_uid);
}

END_TEST

START_TEST(an_earlier_object_is_replaced)
{
    const struct derived_earlier earlier = {.latest = {"1.2.3.9", "1.2.3.8", "1.2.3.7"}};
    const int before = written_count_text(&object, "1.2.3.9");
    sample.request.source.earlier = &earlier;
    written_take(&object);
    ck_assert_int_eq(before, 0);
    ck_assert_int_eq(written_count_text(&object, "1.2.3.9"), 1);
    ck_assert_str_eq(object.summary.identity.replaces->sop_instance_uid, "1.2.3.9");
    written_find_text(&object, "1.2.3.9", 1)[6] = '8';
    written_expect_mismatch(&object, "ReferencedSOPInstanceUID");
}

END_TEST

START_TEST(holes_are_contours)
{
    const int keyholes = written_count_text(&object, "CLOSED_PLANAR");
    request.xor_holes = true;
    written_take(&object);
    ck_assert_int_eq(keyholes, 5);
    ck_assert_int_eq(contours_read, 6 + 2);
    ck_assert_int_eq(written_count_text(&object, "CLOSEDPLANAR_XOR"), 6); /* the region without a hole keeps its type */
    ck_assert_int_eq(written_count_text(&object, "CLOSED_PLANAR"), 2);
}

END_TEST

START_TEST(the_file_is_implicit)
{
    static const uint8_t data[] = {0x06, 0x30, 0x50, 0x00}, explicit_data[] = {0x06, 0x30, 0x50, 0x00, 'D', 'S'};
    ck_assert_int_eq(written_count(&object, data, sizeof(data)), 5);
    ck_assert_int_eq(written_count(&object, explicit_data, sizeof(explicit_data)), 0);
    ck_assert_int_eq(written_count_text(&object, "1.2.840.10008.1.2"), 1);
    ck_assert_int_eq(written_count_text(&object, "Doe^Jane"), 1);
}

END_TEST

START_TEST(texts_beyond_ascii)
{
    drop();
    shape.charset = "ISO_IR 100";
    shape.patient = "D\xf6"
                    "e^Jane";
    seg_sample_make(&sample, &shape);
    sample.segments[0].label = "Mil\xc3\xa4z";
    seg_sample_set(&sample, 0, 1, 1, 1);
    request.seg = &sample.request;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "Mil\xc3\xa4z"), 1);
    ck_assert_int_eq(written_count_text(&object, "D\xc3\xb6"
                                                 "e^Jane"),
                     1);
    shape.charset = shape.patient = NULL;
}

END_TEST

START_TEST(frames_of_one_image)
{
    drop();
    shape.multi_frame = true;
    make();
    shape.multi_frame = false;
    /* All frames in the frame of reference, and one per contour. */
    static const uint8_t frame[] = {0x08, 0x00, 0x60, 0x11};
    ck_assert_int_eq(written_count(&object, frame, sizeof(frame)), 5 + 5);
}

END_TEST

START_TEST(damage_is_named)
{
    const struct {
        const char *text;
        int nth, at;
        const char *word;
    } damages[] = {
        {"1.2.840.10008.5.1.4.1.1.481.3", 2, 28, "SOPClassUID"},
        {"RTSTRUCT", 1, 0, "Modality"},
        {"1.2.3.4.3", 1, 8, "FrameOfReferenceUID"},
        {"1.2.3.4.3", 2, 8, "FrameOfReferenceUID"},
        {"1.2.3.4.3", 3, 8, "frame of reference"},
        {"1.2.3.4.2", 1, 8, "series of the source"},
        {"1.2.3.4.5001", 1, 11, "ReferencedSOPInstanceUID"},
        {"1.2.3.4.5001", 2, 11, "another image than that of plane 1"},
        {"Part 1", 1, 5, "ROIName"},
        {"AUTOMATIC", 1, 0, "ROIGenerationAlgorithm"},
        {"level-set", 1, 0, "algorithm of region 1"},
        {"255\\128\\0", 1, 2, "ROIDisplayColor of region 1"},
        {"CLOSED_PLANAR", 1, 0, "not closed"},
        {"123037004", 1, 0, "a code of region 1"},
        {"7771000", 1, 0, "a code of region 1"},
        {"12738006", 2, 0, "a code of region 2"},
        {"ORGAN", 1, 0, "RTROIInterpretedType of region 1"},
        {"GTV", 1, 0, "RTROIInterpretedType of region 2"},
    };

    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        ck_assert_msg(written_count_text(&object, damages[i].text) >= damages[i].nth, "%s", damages[i].text);
        written_expect_damage(&object, written_find_text(&object, damages[i].text, damages[i].nth) + damages[i].at, 1,
                              damages[i].word);
    }
    written_expect_cuts_refused(&object, 97);
    written_expect_no_crash(&object, 13);
    written_expect_no_file_refused(&object);
}

END_TEST

START_TEST(no_space)
{
    written_expect_full_device_told(&object);
    written_expect_full_disk_told(&object);
}

END_TEST

START_TEST(refusals)
{
    struct error error = {0};
    sample.frames[2].position[0] = 1e6 - 1;
    ck_assert_int_eq(written_try(&object, &error), -EOVERFLOW);
    ck_assert_int_eq(error.code, CODE_RTSTRUCT_TOO_LARGE);
    sample.frames[2].position[0] = 0;
    sample.segments[1].type.value = NULL;
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_RTSTRUCT_REQUEST_INVALID);
    sample.segments[1].type.value = "12738006";
    sample.stack.has_geometry = false;
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_NO_GEOMETRY);
}

END_TEST

/* A region with more elements than the reader accepts (LIMIT_ROI_ELEMENTS). */
START_TEST(too_many_parts)
{
    struct error error = {0};
    drop();
    const struct seg_sample_shape noise = {.columns = 512, .rows = 512, .planes = 2, .segments = 1};
    seg_sample_make(&sample, &noise);
    for (int32_t i = 0; i < 512 * 512; i++)
        if ((i + i / 512) % 2)
            seg_sample_set(&sample, 0, i % 512, i / 512, 1);
    request.seg = &sample.request;
    ck_assert_int_eq(written_try(&object, &error), 0);
    ck_assert_int_eq(verify_sample(sample.target, &error), -EOVERFLOW);
    ck_assert_int_eq(error.code, CODE_RTSTRUCT_TOO_LARGE);
}

END_TEST

int
main(void)
{
    dicom_init();
    Suite *suite = suite_create("rtstruct_object");
    TCase *tcase = tcase_create("rtstruct_object");
    tcase_add_checked_fixture(tcase, make, drop);
    tcase_add_test(tcase, equal_requests_give_equal_bytes);
    tcase_add_test(tcase, an_earlier_object_is_replaced);
    tcase_add_test(tcase, holes_are_contours);
    tcase_add_test(tcase, the_file_is_implicit);
    tcase_add_test(tcase, texts_beyond_ascii);
    tcase_add_test(tcase, frames_of_one_image);
    tcase_add_test(tcase, damage_is_named);
    tcase_add_test(tcase, no_space);
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, too_many_parts);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

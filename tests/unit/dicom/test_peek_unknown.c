/* Headers with elements whose VR was lost in transfer: UN, to be read with the dictionary's VR. */
#include "tests/unit/dicom/peek_sample.h"

static void
add_padding(struct dicom_bytes *bytes)
{
    bytes_us(bytes, 0x00280120, "US", 63536);
}

START_TEST(attributes_with_vr_un)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.unknown_vr = true;
    image.extra = add_padding;
    struct dicom_instance *i = write_and_peek(&image);
    const struct dicom_frame *f = &i->frames[0];
    ck_assert(f->has_position && f->has_orientation && f->has_spacing && f->has_rescale);
    ck_assert(f->position[1] == -20.25 && f->pixel_spacing[1] == 0.75 && f->intercept == -1024);
    ck_assert_int_eq(i->rows, 4);
    ck_assert_int_eq(i->columns, 6);
    ck_assert_int_eq(i->bits_stored, 12);
    ck_assert(i->has_padding && i->padding_lo == 63536);
    ck_assert_int_eq(i->pixel_length, 48);
    struct dicom_pixels *pixels;
    struct error error;
    uint16_t values[24];
    ck_assert_int_eq(dicom_pixels_open(i, &pixels, &error), 0);
    ck_assert_int_eq(dicom_pixels_read(pixels, 0, values, &error), 0);
    dicom_pixels_close(pixels);
    dicom_instance_free(i);
}

END_TEST

/* Puts a sequence as UN with its length, and nested ones. */
static void
add_groups_of_known_length(struct dicom_bytes *bytes)
{
    struct dicom_bytes content = {.implicit_vr = true};
    bytes_item(&content);
    put_group(&content, 0x00209113, 0x00200032, "1\\2\\3");
    put_group(&content, 0x00209116, 0x00200037, "1\\0\\0\\0\\1\\0");
    put_measures(&content);
    bytes_item_end(&content);
    bytes_element(bytes, 0x52009230, "UN", content.data, content.size);
    bytes_free(&content);
}

START_TEST(sequences_with_vr_un)
{
    struct sample_image image = enhanced_image(SYNTAX_EXPLICIT);
    image.frames = "1";
    image.extra = add_groups_of_known_length;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert(i->multi_frame && i->frames[0].has_position && i->frames[0].has_orientation);
    ck_assert(i->frames[0].position[2] == 3 && i->frames[0].pixel_spacing[1] == 0.75);
    dicom_instance_free(i);
}

END_TEST

/* The reader must walk nested UN before DCMTK recurses into it. */
static void
add_deep_unknown_sequence(struct dicom_bytes *bytes)
{
    struct dicom_bytes content = {.implicit_vr = true};
    for (int i = 0; i < 2000; i++) {
        bytes_item(&content);
        bytes_sequence(&content, 0x52009230);
    }
    bytes_element(bytes, 0x52009230, "UN", content.data, content.size);
    bytes_free(&content);
}

START_TEST(deep_sequences_with_vr_un)
{
    struct sample_image image = enhanced_image(SYNTAX_EXPLICIT);
    image.extra = add_deep_unknown_sequence;
    expect_code(&image, CODE_TAG_INVALID);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_peek_unknown");
    TCase *unknown = new_case(suite, "unknown");
    tcase_add_test(unknown, attributes_with_vr_un);
    tcase_add_test(unknown, sequences_with_vr_un);
    tcase_add_test(unknown, deep_sequences_with_vr_un);
    return suite_run(suite);
}

/* Headers: rejected files and their codes. */
#include "tests/unit/dicom/peek_sample.h"

#include <errno.h>
#include <sys/stat.h>

START_TEST(missing_attributes_are_named)
{
    static const struct {
        uint32_t tag;
        const char *name;
    } cases[] = {
        {0x00080016, NULL},          {0x00080018, "(0008,0018)"}, {0x0020000D, "(0020,000D)"},
        {0x0020000E, "(0020,000E)"}, {0x00280002, "(0028,0002)"}, {0x00280004, "(0028,0004)"},
        {0x00280010, "(0028,0010)"}, {0x00280011, "(0028,0011)"}, {0x00280100, "(0028,0100)"},
        {0x00280101, "(0028,0101)"}, {0x00280102, "(0028,0102)"}, {0x00280103, "(0028,0103)"},
        {0x7FE00010, "(7FE0,0010)"},
    };
    struct sample_image image = SAMPLE_IMAGE;
    image.without = cases[_i].tag;
    if (!cases[_i].name) {
        /* The file meta information has it, too. */
        dicom_instance_free(write_and_peek(&image));
        return;
    }
    expect_code(&image, CODE_TAG_MISSING);
    ck_assert_ptr_nonnull(strstr(peek_error()->message, cases[_i].name));
}

END_TEST

START_TEST(a_missing_transfer_syntax)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = NULL;
    expect_code(&image, CODE_TAG_MISSING);
}

END_TEST

static void
add_modality_lut(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00283000);
    bytes_item(bytes);
    bytes_text(bytes, 0x00283004, "LO", "HU");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

/* Each makes one change to the sample image; the table has its code. */
static void
two_samples(struct sample_image *image)
{
    image->samples = 3;
    image->photometric = "RGB";
}

static void
palette(struct sample_image *image)
{
    image->photometric = "PALETTE COLOR";
}

static void
one_bit(struct sample_image *image)
{
    image->bits_allocated = image->bits_stored = 1;
    image->high_bit = 0;
}

static void
twelve_allocated(struct sample_image *image)
{
    image->bits_allocated = 12;
}

static void
thirty_two_allocated(struct sample_image *image)
{
    image->bits_allocated = image->bits_stored = 32;
    image->high_bit = 31;
}

static void
more_stored_than_allocated(struct sample_image *image)
{
    image->bits_stored = 17;
    image->high_bit = 16;
}

static void
high_bit_too_low(struct sample_image *image)
{
    image->high_bit = 10;
}

static void
representation_two(struct sample_image *image)
{
    image->is_signed = 2;
}

static void
no_rows(struct sample_image *image)
{
    image->rows = 0;
}

static void
no_frames(struct sample_image *image)
{
    static const uint8_t pixels[48];
    image->frames = "0";
    image->pixels = pixels;
    image->pixel_size = sizeof(pixels);
}

static void
lut(struct sample_image *image)
{
    image->extra = add_modality_lut;
}

static void
huge_plane(struct sample_image *image)
{
    static const uint8_t pixels[48];
    image->rows = image->columns = 65535;
    image->pixels = pixels;
    image->pixel_size = sizeof(pixels);
}

static void
many_frames(struct sample_image *image)
{
    huge_plane(image);
    image->rows = image->columns = 16;
    image->frames = "2147483647";
}

static void
many_voxels(struct sample_image *image)
{
    huge_plane(image);
    image->rows = image->columns = 16384;
    image->frames = "33";
}

static void
too_few_pixels(struct sample_image *image)
{
    huge_plane(image);
    image->rows = image->columns = 100;
}

static void
segmentation(struct sample_image *image)
{
    image->class_uid = CLASS_SEG;
}

static void
unknown_class(struct sample_image *image)
{
    image->class_uid = "1.2.3.999";
}

static void
own(struct sample_image *image)
{
    image->manufacturer = "Noctule";
    image->model = "noctuled";
}

static void
own_segmentation(struct sample_image *image)
{
    own(image);
    segmentation(image);
}

static void
mpeg(struct sample_image *image)
{
    image->syntax = "1.2.840.10008.1.2.4.100";
}

static void
private_syntax(struct sample_image *image)
{
    image->syntax = "1.2.3.4.5.6";
}

static void
native_in_rle(struct sample_image *image)
{
    image->syntax = SYNTAX_RLE;
}

static void
no_fragments(struct dicom_bytes *bytes)
{
    bytes_fragment(bytes, "", 0);
    bytes_sequence_end(bytes);
}

static void
encapsulated_in_explicit(struct sample_image *image)
{
    image->encapsulated = no_fragments;
}

static void
empty_rle(struct sample_image *image)
{
    image->syntax = SYNTAX_RLE;
    image->encapsulated = no_fragments;
}

static void
uid_with_letters(struct sample_image *image)
{
    image->series_uid = "1.2.a";
}

static void
uid_with_a_path(struct sample_image *image)
{
    image->instance_uid = "../../etc/passwd";
}

static void
uid_of_dots(struct sample_image *image)
{
    image->instance_uid = "..";
}

static void
uid_too_long(struct sample_image *image)
{
    image->study_uid = "1.2.34567890123456789012345678901234567890123456789012345678901234567";
}

static void
frame_of_reference_bad(struct sample_image *image)
{
    image->frame_of_reference_uid = "1.2/3";
}

START_TEST(refusals)
{
    static const struct {
        void (*change)(struct sample_image *);
        enum code code;
    } cases[] = {
        {two_samples, CODE_PIXELS_UNSUPPORTED},
        {palette, CODE_PIXELS_UNSUPPORTED},
        {one_bit, CODE_PIXELS_UNSUPPORTED},
        {twelve_allocated, CODE_PIXELS_UNSUPPORTED},
        {thirty_two_allocated, CODE_PIXELS_UNSUPPORTED},
        {lut, CODE_PIXELS_UNSUPPORTED},
        {more_stored_than_allocated, CODE_TAG_INVALID},
        {high_bit_too_low, CODE_TAG_INVALID},
        {representation_two, CODE_TAG_INVALID},
        {no_rows, CODE_TAG_INVALID},
        {no_frames, CODE_TAG_INVALID},
        {native_in_rle, CODE_TAG_INVALID},
        {encapsulated_in_explicit, CODE_TAG_INVALID},
        {empty_rle, CODE_FILE_TRUNCATED},
        {huge_plane, CODE_SIZE_IMPLAUSIBLE},
        {many_frames, CODE_SIZE_IMPLAUSIBLE},
        {many_voxels, CODE_SIZE_IMPLAUSIBLE},
        {too_few_pixels, CODE_FILE_TRUNCATED},
        {segmentation, CODE_SOP_CLASS_UNSUPPORTED},
        {unknown_class, CODE_SOP_CLASS_UNSUPPORTED},
        {own, CODE_OWN_RESULT},
        {own_segmentation, CODE_OWN_RESULT},
        {mpeg, CODE_TRANSFER_SYNTAX_UNSUPPORTED},
        {private_syntax, CODE_TRANSFER_SYNTAX_UNSUPPORTED},
        {uid_with_letters, CODE_UID_INVALID},
        {uid_with_a_path, CODE_UID_INVALID},
        {uid_of_dots, CODE_UID_INVALID},
        {uid_too_long, CODE_UID_INVALID},
        {frame_of_reference_bad, CODE_UID_INVALID},
    };

    ck_assert_int_lt(_i, (int)(sizeof(cases) / sizeof(cases[0])));
    struct sample_image image = SAMPLE_IMAGE;
    cases[_i].change(&image);
    expect_code(&image, cases[_i].code);
}

END_TEST

enum { REFUSALS = 28 };

/* ---- names of rejected files ---- */

static void
add_float_pixels(struct dicom_bytes *bytes)
{
    static const uint8_t values[96];
    bytes_element(bytes, 0x7FE00008, "OF", values, sizeof(values));
}

static void
float_pixels(struct sample_image *image)
{
    image->without = 0x7FE00010;
    image->extra = add_float_pixels;
}

static void
parametric_map(struct sample_image *image)
{
    float_pixels(image);
    image->class_uid = "1.2.840.10008.5.1.4.1.1.30";
}

static void
nuclear(struct sample_image *image)
{
    image->class_uid = "1.2.840.10008.5.1.4.1.1.20";
}

static void
angiography(struct sample_image *image)
{
    image->class_uid = "1.2.840.10008.5.1.4.1.1.12.1.1";
    image->frames = "2";
}

static void
ultrasound(struct sample_image *image)
{
    image->class_uid = "1.2.840.10008.5.1.4.1.1.6.2";
    image->frames = "2";
}

static void
secondary_capture(struct sample_image *image)
{
    image->class_uid = "1.2.840.10008.5.1.4.1.1.7.1";
}

static void
dose_sheet(struct sample_image *image)
{
    image->class_uid = "1.2.840.10008.5.1.4.1.1.88.67";
}

START_TEST(refusals_name_the_kind_of_object)
{
    static const struct {
        void (*change)(struct sample_image *);
        enum code code;
        const char *name;
    } cases[] = {
        {float_pixels, CODE_PIXELS_UNSUPPORTED, "floating-point pixels"},
        {thirty_two_allocated, CODE_PIXELS_UNSUPPORTED, "32 bits"},
        {parametric_map, CODE_SOP_CLASS_UNSUPPORTED, "ParametricMapStorage"},
        {nuclear, CODE_SOP_CLASS_UNSUPPORTED, "Nuclear Medicine image of the type"},
        {angiography, CODE_SOP_CLASS_UNSUPPORTED, "EnhancedXAImageStorage"},
        {ultrasound, CODE_SOP_CLASS_UNSUPPORTED, "EnhancedUSVolumeStorage"},
        {secondary_capture, CODE_SOP_CLASS_UNSUPPORTED, "MultiframeSingleBitSecondaryCaptureImageStorage"},
        {dose_sheet, CODE_SOP_CLASS_UNSUPPORTED, "XRayRadiationDoseSRStorage"},
    };
    struct sample_image image = SAMPLE_IMAGE;
    cases[_i].change(&image);
    expect_code(&image, cases[_i].code);
    const char *message = peek_error()->message;
    ck_assert_msg(strstr(message, cases[_i].name) != NULL, "%s", message);
}

END_TEST

START_TEST(files_that_are_not_dicom)
{
    static const char text[] = "This is a letter, not an image. It is long enough to have something "
                               "where a preamble would be, and goes on for some more lines, so that "
                               "nobody can say that it is short.\n";
    uint8_t noise[5000];
    uint32_t state = 7;
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    write_raw("", 0);
    ck_assert_int_eq(peek_error()->code, CODE_FILE_EMPTY);
    write_raw("\xFF\xD8\xFF\xE0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xFF\xD9", 22);
    ck_assert_int_eq(peek_error()->code, CODE_NOT_DICOM);
    write_raw(text, sizeof(text));
    ck_assert_int_eq(peek_error()->code, CODE_NOT_DICOM);
    write_raw(noise, sizeof(noise));
    ck_assert_int_eq(peek_error()->code, CODE_NOT_DICOM);
    write_raw("\x08", 1);
    ck_assert_int_eq(peek_error()->code, CODE_NOT_DICOM);
    memset(noise, 0, 132);
    write_raw(noise, 131);
    ck_assert_int_eq(peek_error()->code, CODE_NOT_DICOM);
    write_raw(noise, 132);
    ck_assert_int_eq(peek_error()->code, CODE_NOT_DICOM);
    /* Starts like a data set without a preamble, but is not one. */
    noise[0] = 8;
    noise[1] = 0;
    write_raw(noise, sizeof(noise));
    ck_assert_int_eq(peek_error()->code, CODE_NOT_DICOM);
}

END_TEST

START_TEST(unreadable_files)
{
    struct error error;
    struct dicom_instance *instance;
    ck_assert_int_eq(dicom_peek("/nowhere/at/all.dcm", &instance, &error), -ENOENT);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
    ck_assert_int_ne(dicom_peek("/tmp", &instance, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
    /* The FIFO has no writer, so opening must not block. */
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_ne(dicom_peek(path, &instance, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_peek_refusals");
    TCase *refusing = new_case(suite, "refusing");
    tcase_add_loop_test(refusing, missing_attributes_are_named, 0, 13);
    tcase_add_test(refusing, a_missing_transfer_syntax);
    tcase_add_loop_test(refusing, refusals, 0, REFUSALS);
    tcase_add_loop_test(refusing, refusals_name_the_kind_of_object, 0, 8);
    tcase_add_test(refusing, files_that_are_not_dicom);
    tcase_add_test(refusing, unreadable_files);
    return suite_run(suite);
}

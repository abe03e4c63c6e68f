/* Headers: parsed values, and attributes for results. */
#include "tests/unit/dicom/peek_sample.h"

#include <errno.h>
#include <math.h>

/* ---- parsed values ---- */

START_TEST(every_attribute_of_a_classic_image)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = native_syntaxes[_i];
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_str_eq(i->sop_class_uid, CLASS_CT);
    ck_assert_str_eq(i->sop_instance_uid, "1.2.3.4.1");
    ck_assert_str_eq(i->study_uid, "1.2.3.4.2");
    ck_assert_str_eq(i->series_uid, "1.2.3.4.3");
    ck_assert_str_eq(i->frame_of_reference_uid, "1.2.3.4.4");
    ck_assert_str_eq(i->transfer_syntax_uid, native_syntaxes[_i]);
    ck_assert_str_eq(i->modality, "CT");
    ck_assert_str_eq(i->body_part, "HEAD");
    ck_assert_str_eq(i->image_type, "ORIGINAL\\PRIMARY\\AXIAL");
    ck_assert_str_eq(i->series_description, "A series");
    ck_assert_int_eq(i->instance_number, 7);
    ck_assert_int_eq(i->series_number, 3);
    ck_assert_int_eq(i->expected_instances, 0);
    ck_assert_int_eq(i->rows, 4);
    ck_assert_int_eq(i->columns, 6);
    ck_assert_int_eq(i->bits_allocated, 16);
    ck_assert_int_eq(i->bits_stored, 12);
    ck_assert_int_eq(i->high_bit, 11);
    ck_assert(!i->is_signed && !i->monochrome1 && !i->lossy && !i->multi_frame);
    ck_assert(!i->has_padding);
    ck_assert_int_eq(i->pixel, IMAGE_UINT16);
    ck_assert_int_eq(i->frame_count, 1);
    ck_assert_int_eq(i->pixel_length, 48);
    ck_assert_int_eq(i->pixel_offset, i->file_size - 48);
    dicom_instance_free(i);
}

END_TEST

START_TEST(geometry_of_a_classic_image)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = native_syntaxes[_i];
    struct dicom_instance *i = write_and_peek(&image);
    const struct dicom_frame *f = &i->frames[0];
    ck_assert(f->has_position && f->has_orientation && f->has_spacing && f->has_rescale);
    ck_assert(f->position[0] == -10.5 && f->position[1] == -20.25 && f->position[2] == 30);
    ck_assert_str_eq(f->position_text[1], "-20.25");
    ck_assert(f->orientation[0] == 1 && f->orientation[4] == 1 && f->orientation[5] == 0);
    ck_assert_str_eq(f->orientation_text[4], "1");
    ck_assert(f->pixel_spacing[0] == 0.5 && f->pixel_spacing[1] == 0.75);
    ck_assert_str_eq(f->spacing_text[1], "0.75");
    ck_assert(f->slice_thickness == 2.5 && f->spacing_between_slices == 0);
    ck_assert(f->slope == 1 && f->intercept == -1024);
    ck_assert_str_eq(f->echo, "");
    ck_assert_str_eq(f->image_type, "AXIAL");
    dicom_instance_free(i);
}

END_TEST

START_TEST(invalid_geometry_is_absent)
{
    static const struct {
        const char *position, *orientation, *spacing;
        bool has_position, has_orientation, has_spacing;
    } cases[] = {
        {NULL, NULL, NULL, false, false, false},
        {"1\\2", "1\\0\\0\\0\\1", "1", false, false, false},
        {"1\\2\\x", "1\\0\\0\\0\\x\\0", "1\\x", false, false, false},
        {"1\\2\\nan", "1\\0\\0\\0\\1\\inf", "0\\1", false, false, false},
        {"1\\2\\3", "1\\0\\0\\1\\0\\0", "-1\\1", true, false, false},
        {"1\\2\\3", "2\\0\\0\\0\\2\\0", "1\\1", true, false, true},
        {"1\\2\\1e7", "1\\0\\0\\0\\1\\0", "1e-9\\1", false, true, false},
        {" 1\\+2\\3e1 ", "1\\0\\0\\0\\-1\\0", ".5\\0.5", true, true, true},
        {"1\\2\\3", "0.9996\\0\\0.0004\\0\\1\\0", "1\\1", true, true, true},
    };
    struct sample_image image = SAMPLE_IMAGE;
    image.position = cases[_i].position;
    image.orientation = cases[_i].orientation;
    image.spacing = cases[_i].spacing;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_int_eq(i->frames[0].has_position, cases[_i].has_position);
    ck_assert_int_eq(i->frames[0].has_orientation, cases[_i].has_orientation);
    ck_assert_int_eq(i->frames[0].has_spacing, cases[_i].has_spacing);
    dicom_instance_free(i);
}

END_TEST

START_TEST(long_decimal_strings_are_complete)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.position = "-10.123456789012345678901234567890123456789\\0.699987828731537\\30";
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_str_eq(i->frames[0].position_text[0], "-10.12345679");
    ck_assert_str_eq(i->frames[0].position_text[1], "0.699987828731537");
    ck_assert_double_eq_tol(i->frames[0].position[0], -10.123456789, 1e-9);
    dicom_instance_free(i);
}

END_TEST

/* Puts 0x00281050 to 0x00281056. */
static void
put_window(struct dicom_bytes *bytes, const char *center, const char *width, const char *function)
{
    if (center)
        bytes_text(bytes, 0x00281050, "DS", center);
    if (width)
        bytes_text(bytes, 0x00281051, "DS", width);
    if (function)
        bytes_text(bytes, 0x00281056, "CS", function);
}

static const struct {
    const char *center, *width, *function;
    bool given;
    double low, high;
} windows[] = {
    {"40\\600", "80\\2800", NULL, true, 0, 79}, /* the first one */
    {"40", "80", "LINEAR", true, 0, 79},
    {"40", "80", "LINEAR_EXACT", true, 0, 80},
    {"2.5", "0.5", NULL, true, 2.25, 2.75}, /* invalid with LINEAR */
    {"40", "80", "SIGMOID", false, 0, 0},
    {"40", "0", NULL, false, 0, 0},
    {"40", "-80", NULL, false, 0, 0},
    {"40", "x", NULL, false, 0, 0},
    {"1e400", "80", NULL, false, 0, 0},
    {"40", NULL, NULL, false, 0, 0},
    {NULL, "80", NULL, false, 0, 0},
};

static int window_now;

static void
add_window(struct dicom_bytes *bytes)
{
    put_window(bytes, windows[window_now].center, windows[window_now].width, windows[window_now].function);
}

static void
add_shared_window(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    bytes_sequence(bytes, 0x00289132);
    bytes_item(bytes);
    put_window(bytes, "40", "80", NULL);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

START_TEST(only_linear_windows_are_used)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = add_window;
    window_now = _i;
    struct dicom_instance *i = write_and_peek(&image);
    const struct dicom_frame *f = &i->frames[0];
    ck_assert_int_eq(f->has_window, windows[_i].given);
    ck_assert_double_eq(f->window_low, windows[_i].low);
    ck_assert_double_eq(f->window_high, windows[_i].high);
    dicom_instance_free(i);
}

END_TEST

START_TEST(window_of_a_functional_group)
{
    struct sample_image image = enhanced_image(SYNTAX_EXPLICIT);
    image.extra = add_shared_window;
    struct dicom_instance *i = write_and_peek(&image);
    for (int k = 0; k < 3; k++)
        ck_assert(i->frames[k].has_window && i->frames[k].window_center == 40 && i->frames[k].window_width == 80);
    dicom_instance_free(i);
}

END_TEST

START_TEST(an_invalid_rescale_is_absent)
{
    static const struct {
        const char *slope, *intercept;
        bool given, finite;
    } cases[] = {
        {NULL, NULL, false, true}, {"2", NULL, false, true},    {NULL, "3", false, true},   {"0", "1", true, true},
        {"x", "1", true, false},   {"1e400", "1", true, false}, {"0.25", "-3", true, true},
    };
    struct sample_image image = SAMPLE_IMAGE;
    image.slope = cases[_i].slope;
    image.intercept = cases[_i].intercept;
    struct dicom_instance *i = write_and_peek(&image);
    const struct dicom_frame *f = &i->frames[0];
    ck_assert_int_eq(f->has_rescale, cases[_i].given);
    ck_assert_int_eq(isfinite(f->slope) && isfinite(f->intercept), cases[_i].finite);
    if (!f->has_rescale)
        ck_assert(f->slope == 1 && f->intercept == 0);
    dicom_instance_free(i);
}

END_TEST

static void
add_padding_as_us(struct dicom_bytes *bytes)
{
    bytes_us(bytes, 0x00280120, "US", 63536); /* -2000 */
}

static void
add_padding_range(struct dicom_bytes *bytes)
{
    bytes_us(bytes, 0x00280120, "SS", (unsigned)-1000);
    bytes_us(bytes, 0x00280121, "SS", (unsigned)-2000);
}

START_TEST(pixel_padding_has_the_signedness_of_the_pixels)
{
    static const struct {
        void (*extra)(struct dicom_bytes *);
        unsigned is_signed;
        int32_t low, high;
    } cases[] = {
        {add_padding_as_us, 0, 63536, 63536},
        {add_padding_as_us, 1, -2000, -2000},
        {add_padding_range, 1, -2000, -1000},
    };

    for (size_t s = 0; s < sizeof(native_syntaxes) / sizeof(native_syntaxes[0]); s++) {
        struct sample_image image = SAMPLE_IMAGE;
        image.syntax = native_syntaxes[s];
        image.extra = cases[_i].extra;
        image.is_signed = cases[_i].is_signed;
        struct dicom_instance *i = write_and_peek(&image);
        ck_assert(i->has_padding);
        ck_assert_int_eq(i->padding_lo, cases[_i].low);
        ck_assert_int_eq(i->padding_hi, cases[_i].high);
        dicom_instance_free(i);
    }
}

END_TEST

static void
add_lossy(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00282110, "CS", "01");
    bytes_text(bytes, 0x00282112, "DS", "12.5");
    bytes_text(bytes, 0x00282114, "CS", "ISO_10918_1");
}

START_TEST(lossy_history)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = add_lossy;
    image.photometric = "MONOCHROME1";
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert(i->lossy && i->monochrome1);
    ck_assert_str_eq(i->lossy_ratio, "12.5");
    ck_assert_str_eq(i->lossy_method, "ISO_10918_1");
    dicom_instance_free(i);
}

END_TEST

/* ---- keys of stacks, expected counts ---- */

static void
add_echo(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00180081, "DS", "15.60");
    bytes_text(bytes, 0x00180086, "IS", "2");
}

static void
add_siemens_b_value(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00190010, "LO", "SIEMENS MR HEADER");
    bytes_text(bytes, 0x0019100C, "IS", "1000");
}

static void
add_foreign_private_value(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00190010, "LO", "SOMEBODY ELSE");
    bytes_text(bytes, 0x0019100C, "IS", "1000");
}

static void
add_pet_index(struct dicom_bytes *bytes)
{
    bytes_us(bytes, 0x00540081, "US", 35);
    bytes_us(bytes, 0x00540101, "US", 4);
    bytes_us(bytes, 0x00541330, "US", 71);
}

START_TEST(keys_of_a_classic_image)
{
    static const struct {
        void (*extra)(struct dicom_bytes *);
        const char *echo, *phase, *b_value, *temporal;
    } cases[] = {
        {add_echo, "2 at 15.6 ms", "", "", ""},    {add_classic_keys, "", "120 ms", "800", "3"},
        {add_siemens_b_value, "", "", "1000", ""}, {add_foreign_private_value, "", "", "", ""},
        {add_pet_index, "", "", "", "3"},
    };

    for (size_t s = 0; s < sizeof(native_syntaxes) / sizeof(native_syntaxes[0]); s++) {
        struct sample_image image = SAMPLE_IMAGE;
        image.syntax = native_syntaxes[s];
        image.class_uid = CLASS_MR;
        image.extra = cases[_i].extra;
        image.image_type = "ORIGINAL\\PRIMARY\\M\\NORM";
        struct dicom_instance *i = write_and_peek(&image);
        const struct dicom_frame *f = &i->frames[0];
        ck_assert_str_eq(f->echo, cases[_i].echo);
        ck_assert_str_eq(f->phase, cases[_i].phase);
        ck_assert_str_eq(f->b_value, cases[_i].b_value);
        ck_assert_str_eq(f->temporal, cases[_i].temporal);
        ck_assert_str_eq(f->image_type, "M/NORM");
        ck_assert_str_eq(f->acquisition, cases[_i].extra == add_classic_keys ? "5" : "");
        dicom_instance_free(i);
    }
}

END_TEST

START_TEST(long_keys_stay_distinct)
{
    struct sample_image image = SAMPLE_IMAGE;
    char keys[2][DICOM_DS_SIZE];
    for (int k = 0; k < 2; k++) {
        image.image_type = k ? "ORIGINAL\\PRIMARY\\AAAAAAAAAAAAAAAA\\BBBBBBBBBBBBBBBB\\C"
                             : "ORIGINAL\\PRIMARY\\AAAAAAAAAAAAAAAA\\BBBBBBBBBBBBBBBB\\D";
        struct dicom_instance *i = write_and_peek(&image);
        strcpy(keys[k], i->frames[0].image_type);
        dicom_instance_free(i);
    }
    ck_assert_str_ne(keys[0], keys[1]);
}

END_TEST

static void
add_images_in_acquisition(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00201002, "IS", "120");
}

static void
add_temporal_positions(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00200105, "IS", "10");
    bytes_text(bytes, 0x00201002, "IS", "30");
}

static void
add_nonsense_counts(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00200105, "IS", "2000000000");
    bytes_text(bytes, 0x00201002, "IS", "2000000000");
}

/* Four factors of 65,535: the product exceeds 64 bits. */
static void
add_nonsense_pet_counts(struct dicom_bytes *bytes)
{
    bytes_us(bytes, 0x00540061, "US", 65535);
    bytes_us(bytes, 0x00540071, "US", 65535);
    bytes_us(bytes, 0x00540081, "US", 65535);
    bytes_us(bytes, 0x00540101, "US", 65535);
}

START_TEST(expected_instances)
{
    static const struct {
        void (*extra)(struct dicom_bytes *);
        int32_t expected;
    } cases[] = {
        {NULL, 0},
        {add_images_in_acquisition, 120},
        {add_temporal_positions, 300},
        {add_nonsense_counts, 0},
        {add_pet_index, 140},
        {add_nonsense_pet_counts, 0},
    };
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = cases[_i].extra;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_int_eq(i->expected_instances, cases[_i].expected);
    dicom_instance_free(i);
}

END_TEST

/* ---- functional groups ---- */

START_TEST(functional_groups_shared_and_per_frame)
{
    const struct sample_image image = enhanced_image(native_syntaxes[_i]);
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert(i->multi_frame);
    ck_assert_int_eq(i->frame_count, 3);
    for (int k = 0; k < 3; k++) {
        const struct dicom_frame *f = &i->frames[k];
        char text[32];
        ck_assert(f->has_position && f->has_orientation && f->has_spacing && f->has_rescale);
        ck_assert(f->position[2] == 5 * k && f->pixel_spacing[1] == 0.75);
        ck_assert(f->slice_thickness == 4 && f->spacing_between_slices == 5);
        ck_assert(f->slope == (k == 2 ? 3 : 2) && f->intercept == (k == 2 ? -20 : -10));
        snprintf(text, sizeof(text), "%d ms", 10 + k);
        ck_assert_str_eq(f->echo, text);
        snprintf(text, sizeof(text), "%d", 100 * k);
        ck_assert_str_eq(f->b_value, text);
        snprintf(text, sizeof(text), "%d", k + 1);
        ck_assert_str_eq(f->temporal, text);
        snprintf(text, sizeof(text), "%d ms", 40 * k);
        ck_assert_str_eq(f->phase, text);
        ck_assert_str_eq(f->image_type, "AXIAL stack 1");
    }
    dicom_instance_free(i);
}

END_TEST

/* More frames than functional groups: those without have no position, so the geometry check must reject them. */
START_TEST(fewer_functional_groups_than_frames)
{
    struct sample_image image = enhanced_image(SYNTAX_EXPLICIT);
    image.frames = "5";
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_int_eq(i->frame_count, 5);
    ck_assert(i->frames[2].has_position && !i->frames[3].has_position);
    ck_assert(i->frames[4].has_orientation);
    dicom_instance_free(i);
}

END_TEST

START_TEST(frames_of_a_classic_image_share_no_position)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.frames = "2";
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert(!i->frames[0].has_position && !i->frames[1].has_position);
    ck_assert(i->frames[1].has_orientation);
    dicom_instance_free(i);
}

END_TEST

static const char *const accepted_classes[] = {
    CLASS_CT,
    "1.2.840.10008.5.1.4.1.1.2.1",
    "1.2.840.10008.5.1.4.1.1.2.2",
    CLASS_MR,
    CLASS_ENHANCED_MR,
    "1.2.840.10008.5.1.4.1.1.4.4",
    CLASS_PT,
    "1.2.840.10008.5.1.4.1.1.130",
    "1.2.840.10008.5.1.4.1.1.128.1",
};

START_TEST(accepted_storage_classes)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.class_uid = accepted_classes[_i];
    image.modality = NULL;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_str_eq(i->sop_class_uid, accepted_classes[_i]);
    ck_assert_str_eq(i->modality, _i < 3 ? "CT" : _i < 6 ? "MR" : "PT");
    dicom_instance_free(i);
}

END_TEST

/* ---- attributes for results ---- */

static const struct dicom_element *
find(const struct dicom_inherited *inherited, uint32_t tag)
{
    for (size_t i = 0; i < inherited->count; i++)
        if (inherited->elements[i].tag == tag)
            return &inherited->elements[i];
    return NULL;
}

static void
add_other_patient_ids(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00101002);
    bytes_item(bytes);
    bytes_text(bytes, 0x00100020, "LO", "43");
    bytes_text(bytes, 0x00100022, "CS", "TEXT");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_text(bytes, 0x00201040, "LO", "");
}

START_TEST(inherited_elements)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = native_syntaxes[_i];
    image.extra = add_other_patient_ids;
    sample_write(&image, path);
    struct dicom_inherited inherited;
    ck_assert_int_eq(dicom_inherit(path, &inherited, NULL), 0);
    for (size_t i = 1; i < inherited.count; i++)
        ck_assert_uint_lt(inherited.elements[i - 1].tag, inherited.elements[i].tag);
    const struct dicom_element *name = find(&inherited, 0x00100010);
    ck_assert_ptr_nonnull(name);
    ck_assert_uint_eq(name->size, 16);
    ck_assert_mem_eq(name->bytes, "\x10\0\x10\0PN\x08\0Doe^Jane", 16);
    const struct dicom_element *charset = find(&inherited, 0x00080005);
    ck_assert_ptr_nonnull(charset);
    ck_assert_mem_eq(charset->bytes, "\x08\0\x05\0CS\x0A\0ISO_IR 100", 18);
    const struct dicom_element *ids = find(&inherited, 0x00101002);
    ck_assert_ptr_nonnull(ids);
    ck_assert_uint_eq(ids->size, 12 + 8 + 10 + 12);
    ck_assert_mem_eq(ids->bytes, "\x10\0\x02\x10SQ\0\0\x1E\0\0\0\xFE\xFF\0\xE0\x16\0\0\0", 20);
    ck_assert_ptr_nonnull(find(&inherited, 0x00201040)); /* present, but empty */
    ck_assert_ptr_null(find(&inherited, 0x0020000D));    /* each writer writes its own UIDs */
    ck_assert_ptr_null(find(&inherited, 0x00200052));
    ck_assert_ptr_null(find(&inherited, 0x0020000E));
    ck_assert_ptr_null(find(&inherited, 0x00080060));
    dicom_inherited_free(&inherited);
    ck_assert_uint_eq(inherited.count, 0);
}

END_TEST

START_TEST(no_inherited_attributes)
{
    struct dicom_inherited inherited;
    struct error error;
    write_raw("", 0);
    ck_assert_int_ne(dicom_inherit(path, &inherited, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_EMPTY);
    unlink(path);
    ck_assert_int_eq(dicom_inherit(path, &inherited, &error), -ENOENT);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_peek");
    TCase *reading = new_case(suite, "reading");
    tcase_add_loop_test(reading, every_attribute_of_a_classic_image, 0, 3);
    tcase_add_loop_test(reading, geometry_of_a_classic_image, 0, 3);
    tcase_add_loop_test(reading, invalid_geometry_is_absent, 0, 9);
    tcase_add_test(reading, long_decimal_strings_are_complete);
    tcase_add_loop_test(reading, an_invalid_rescale_is_absent, 0, 7);
    tcase_add_loop_test(reading, only_linear_windows_are_used, 0, sizeof windows / sizeof windows[0]);
    tcase_add_test(reading, window_of_a_functional_group);
    tcase_add_loop_test(reading, pixel_padding_has_the_signedness_of_the_pixels, 0, 3);
    tcase_add_test(reading, lossy_history);
    tcase_add_loop_test(reading, keys_of_a_classic_image, 0, 5);
    tcase_add_test(reading, long_keys_stay_distinct);
    tcase_add_loop_test(reading, expected_instances, 0, 6);
    tcase_add_loop_test(reading, functional_groups_shared_and_per_frame, 0, 3);
    tcase_add_test(reading, fewer_functional_groups_than_frames);
    tcase_add_test(reading, frames_of_a_classic_image_share_no_position);
    tcase_add_loop_test(reading, accepted_storage_classes, 0,
                        (int)(sizeof(accepted_classes) / sizeof(accepted_classes[0])));
    TCase *inheriting = new_case(suite, "inheriting");
    tcase_add_loop_test(inheriting, inherited_elements, 0, 3);
    tcase_add_test(inheriting, no_inherited_attributes);
    return suite_run(suite);
}

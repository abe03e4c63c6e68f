/* Headers: what is read, what is refused and with which code, and damage of every kind. */
#include "dicom.h"
#include "dicom_bytes.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];

static void
setup(void)
{
    dicom_init();
    strcpy(path, "/tmp/noctule_peek.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void
teardown(void)
{
    unlink(path);
}

static struct dicom_instance *
peek_or_fail(void)
{
    struct dicom_fault fault;
    struct dicom_instance *instance = NULL;
    int error = dicom_peek(path, &instance, &fault);
    ck_assert_msg(error == 0, "%s: %s", fault.code, fault.sentence);
    ck_assert_str_eq(instance->path, path);
    return instance;
}

static struct dicom_instance *
write_and_peek(const struct sample_image *image)
{
    sample_write(image, path);
    return peek_or_fail();
}

/* The fault of the file at `path`, which must be refused. */
static const struct dicom_fault *
peek_fault(void)
{
    static struct dicom_fault fault;
    struct dicom_instance *instance = (struct dicom_instance *)&fault;
    int error = dicom_peek(path, &instance, &fault);
    ck_assert_msg(error < 0, "it was accepted");
    ck_assert_ptr_null(instance);
    ck_assert_str_eq(fault.file[0], path);
    ck_assert_uint_gt(strlen(fault.sentence), 10);
    return &fault;
}

static void
expect_code(const struct sample_image *image, const char *code)
{
    sample_write(image, path);
    const struct dicom_fault *fault = peek_fault();
    ck_assert_msg(strcmp(fault->code, code) == 0, "%s, not %s: %s", fault->code, code,
                  fault->sentence);
}

/* ---- what is read ---- */

static const char *const native_syntaxes[] = {SYNTAX_EXPLICIT, SYNTAX_IMPLICIT, SYNTAX_BIG_ENDIAN};

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
    ck_assert_str_eq(i->image_type[0], "ORIGINAL");
    ck_assert_str_eq(i->image_type[2], "AXIAL");
    ck_assert_str_eq(i->image_type[3], "");
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
    ck_assert_int_eq(i->pixel, DICOM_UINT16);
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
    ck_assert_str_eq(f->acquisition, "AXIAL");
    dicom_instance_free(i);
}

END_TEST

START_TEST(geometry_that_is_none)
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

START_TEST(long_decimal_strings_stay_whole)
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

START_TEST(rescale_that_is_none)
{
    static const struct {
        const char *slope, *intercept;
        bool given, finite;
    } cases[] = {
        {NULL, NULL, false, true},  {"2", NULL, false, true}, {NULL, "3", false, true},
        {"0", "1", true, true},     {"x", "1", true, false},  {"1e400", "1", true, false},
        {"0.25", "-3", true, true},
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

/* ---- what sets stacks apart, how many are to come ---- */

static void
add_echo(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00180081, "DS", "15.60");
    bytes_text(bytes, 0x00180086, "IS", "2");
}

static void
add_classic_keys(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00181060, "DS", "120.0");
    bytes_fd(bytes, 0x00189087, 800);
    bytes_text(bytes, 0x00200012, "IS", "5");
    bytes_text(bytes, 0x00200100, "IS", "3");
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
        ck_assert_str_eq(f->acquisition, "M/NORM");
        ck_assert_int_eq(i->acquisition_number, cases[_i].extra == add_classic_keys ? 5 : 0);
        dicom_instance_free(i);
    }
}

END_TEST

START_TEST(long_keys_stay_different)
{
    struct sample_image image = SAMPLE_IMAGE;
    char keys[2][DICOM_DS_SIZE];
    for (int k = 0; k < 2; k++) {
        image.image_type = k ? "ORIGINAL\\PRIMARY\\AAAAAAAAAAAAAAAA\\BBBBBBBBBBBBBBBB\\C"
                             : "ORIGINAL\\PRIMARY\\AAAAAAAAAAAAAAAA\\BBBBBBBBBBBBBBBB\\D";
        struct dicom_instance *i = write_and_peek(&image);
        strcpy(keys[k], i->frames[0].acquisition);
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
    };
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = cases[_i].extra;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_int_eq(i->expected_instances, cases[_i].expected);
    dicom_instance_free(i);
}

END_TEST

/* ---- functional groups ---- */

static void
put_group(struct dicom_bytes *bytes, uint32_t sequence, uint32_t tag, const char *text)
{
    bytes_sequence(bytes, sequence);
    bytes_item(bytes);
    bytes_text(bytes, tag, "DS", text);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
put_number_group(struct dicom_bytes *bytes, uint32_t sequence, uint32_t tag, double value)
{
    bytes_sequence(bytes, sequence);
    bytes_item(bytes);
    bytes_fd(bytes, tag, value);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
put_rescale(struct dicom_bytes *bytes, const char *intercept, const char *slope)
{
    bytes_sequence(bytes, 0x00289145);
    bytes_item(bytes);
    bytes_text(bytes, 0x00281052, "DS", intercept);
    bytes_text(bytes, 0x00281053, "DS", slope);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
put_content(struct dicom_bytes *bytes, uint32_t temporal)
{
    bytes_sequence(bytes, 0x00209111);
    bytes_item(bytes);
    bytes_text(bytes, 0x00209056, "SH", "1");
    bytes_ul(bytes, 0x00209128, temporal);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
put_measures(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00289110);
    bytes_item(bytes);
    bytes_text(bytes, 0x00180050, "DS", "4");
    bytes_text(bytes, 0x00180088, "DS", "5");
    bytes_text(bytes, 0x00280030, "DS", "0.5\\0.75");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

/* Three frames; orientation and measures shared, the rest per frame, but the rescale, which frame 2
 * has of its own. */
static void
add_functional_groups(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    put_group(bytes, 0x00209116, 0x00200037, "1\\0\\0\\0\\1\\0");
    put_measures(bytes);
    put_rescale(bytes, "-10", "2");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_sequence(bytes, 0x52009230);
    for (unsigned i = 0; i < 3; i++) {
        char position[32];
        snprintf(position, sizeof(position), "1\\2\\%u", 5 * i);
        bytes_item(bytes);
        put_number_group(bytes, 0x00189114, 0x00189082, 10 + i);
        put_number_group(bytes, 0x00189117, 0x00189087, 100 * i);
        put_content(bytes, i + 1);
        put_group(bytes, 0x00209113, 0x00200032, position);
        put_number_group(bytes, 0x00189118, 0x00209153, 40 * i);
        if (i == 2)
            put_rescale(bytes, "-20", "3");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

static struct sample_image
enhanced_image(const char *syntax)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = syntax;
    image.class_uid = CLASS_ENHANCED_MR;
    image.modality = "MR";
    image.frames = "3";
    image.position = image.orientation = image.spacing = image.thickness = NULL;
    image.slope = image.intercept = NULL;
    image.extra = add_functional_groups;
    return image;
}

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
        ck_assert_str_eq(f->acquisition, "1");
    }
    dicom_instance_free(i);
}

END_TEST

/* More frames than functional groups: those without have no position, which the gate refuses. */
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

/* ---- what is refused ---- */

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
        /* The file meta information says it too. */
        dicom_instance_free(write_and_peek(&image));
        return;
    }
    expect_code(&image, "TAG_MISSING");
    ck_assert_ptr_nonnull(strstr(peek_fault()->sentence, cases[_i].name));
}

END_TEST

START_TEST(a_missing_transfer_syntax)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = NULL;
    expect_code(&image, "TAG_MISSING");
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

/* One change to the sample image each, and the code it must give. */
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
        const char *code;
    } cases[] = {
        {two_samples, "PIXELS_UNSUPPORTED"},
        {palette, "PIXELS_UNSUPPORTED"},
        {one_bit, "PIXELS_UNSUPPORTED"},
        {twelve_allocated, "PIXELS_UNSUPPORTED"},
        {thirty_two_allocated, "PIXELS_UNSUPPORTED"},
        {lut, "PIXELS_UNSUPPORTED"},
        {more_stored_than_allocated, "TAG_INVALID"},
        {high_bit_too_low, "TAG_INVALID"},
        {representation_two, "TAG_INVALID"},
        {no_rows, "TAG_INVALID"},
        {no_frames, "TAG_INVALID"},
        {native_in_rle, "TAG_INVALID"},
        {encapsulated_in_explicit, "TAG_INVALID"},
        {empty_rle, "FILE_TRUNCATED"},
        {huge_plane, "SIZE_IMPLAUSIBLE"},
        {many_frames, "SIZE_IMPLAUSIBLE"},
        {many_voxels, "SIZE_IMPLAUSIBLE"},
        {too_few_pixels, "FILE_TRUNCATED"},
        {segmentation, "SOP_CLASS_UNSUPPORTED"},
        {unknown_class, "SOP_CLASS_UNSUPPORTED"},
        {own, "OWN_RESULT"},
        {own_segmentation, "OWN_RESULT"},
        {mpeg, "TRANSFER_SYNTAX_UNSUPPORTED"},
        {private_syntax, "TRANSFER_SYNTAX_UNSUPPORTED"},
        {uid_with_letters, "UID_INVALID"},
        {uid_with_a_path, "UID_INVALID"},
        {uid_of_dots, "UID_INVALID"},
        {uid_too_long, "UID_INVALID"},
        {frame_of_reference_bad, "UID_INVALID"},
    };

    ck_assert_int_lt(_i, (int)(sizeof(cases) / sizeof(cases[0])));
    struct sample_image image = SAMPLE_IMAGE;
    cases[_i].change(&image);
    expect_code(&image, cases[_i].code);
}

END_TEST

enum { REFUSALS = 28 };

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

static void
write_raw(const void *data, size_t size)
{
    struct dicom_bytes bytes = {0};
    bytes_put(&bytes, data, size);
    bytes_write(&bytes, path);
    bytes_free(&bytes);
}

START_TEST(files_that_are_not_dicom)
{
    static const char text[] =
        "This is a letter, not an image. It is long enough to have something "
        "where a preamble would be, and goes on for some more lines, so that "
        "nobody can say that it is short.\n";
    uint8_t noise[5000];
    uint32_t state = 7;
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    write_raw("", 0);
    ck_assert_str_eq(peek_fault()->code, "FILE_EMPTY");
    write_raw("\xFF\xD8\xFF\xE0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0\xFF\xD9", 22);
    ck_assert_str_eq(peek_fault()->code, "NOT_DICOM");
    write_raw(text, sizeof(text));
    ck_assert_str_eq(peek_fault()->code, "NOT_DICOM");
    write_raw(noise, sizeof(noise));
    ck_assert_str_eq(peek_fault()->code, "NOT_DICOM");
    write_raw("\x08", 1);
    ck_assert_str_eq(peek_fault()->code, "NOT_DICOM");
    /* Starts like a data set without a preamble, and is none. */
    noise[0] = 8;
    noise[1] = 0;
    write_raw(noise, sizeof(noise));
    ck_assert_str_eq(peek_fault()->code, "NOT_DICOM");
}

END_TEST

START_TEST(files_that_cannot_be_read)
{
    struct dicom_fault fault;
    struct dicom_instance *instance;
    ck_assert_int_eq(dicom_peek("/nowhere/at/all.dcm", &instance, &fault), -ENOENT);
    ck_assert_str_eq(fault.code, "FILE_UNREADABLE");
    ck_assert_int_ne(dicom_peek("/tmp", &instance, &fault), 0);
    ck_assert_str_eq(fault.code, "FILE_UNREADABLE");
    /* Nobody writes into it: opening must not wait for that. */
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_ne(dicom_peek(path, &instance, &fault), 0);
    ck_assert_str_eq(fault.code, "FILE_UNREADABLE");
}

END_TEST

/* ---- structure ---- */

START_TEST(data_sets_without_a_preamble)
{
    const struct sample_image image = SAMPLE_IMAGE;
    for (int implicit = 0; implicit < 2; implicit++) {
        struct dicom_bytes bytes = {.implicit_vr = implicit};
        sample_data_set(&bytes, &image);
        bytes_write(&bytes, path);
        bytes_free(&bytes);
        struct dicom_instance *i = peek_or_fail();
        ck_assert_str_eq(i->transfer_syntax_uid, implicit ? SYNTAX_IMPLICIT : SYNTAX_EXPLICIT);
        dicom_instance_free(i);
    }
}

END_TEST

/* Senders that declare implicit VR and write explicit, and the other way round. */
START_TEST(mislabelled_vr)
{
    for (int implicit = 0; implicit < 2; implicit++) {
        const struct sample_image image = SAMPLE_IMAGE;
        struct dicom_bytes bytes = {0};
        bytes_begin_file(&bytes, implicit ? SYNTAX_EXPLICIT : SYNTAX_IMPLICIT, CLASS_CT, "1.2.3");
        bytes.implicit_vr = implicit;
        sample_data_set(&bytes, &image);
        bytes_write(&bytes, path);
        struct dicom_instance *i = peek_or_fail();
        ck_assert_int_eq(i->pixel_offset, (int64_t)bytes.size - 48);
        dicom_instance_free(i);
        bytes_free(&bytes);
    }
}

END_TEST

START_TEST(padding_behind_the_pixel_data)
{
    for (size_t s = 0; s < sizeof(native_syntaxes) / sizeof(native_syntaxes[0]); s++) {
        struct sample_image image = SAMPLE_IMAGE;
        image.syntax = native_syntaxes[s];
        struct dicom_bytes bytes = {0};
        sample_file(&bytes, &image);
        const int64_t end = (int64_t)bytes.size;
        bytes_element(&bytes, 0xFFFCFFFC, "OB", "0123456789", 10);
        bytes_write(&bytes, path);
        bytes_free(&bytes);
        struct dicom_instance *i = peek_or_fail();
        ck_assert_int_eq(i->pixel_offset, end - 48);
        ck_assert_int_eq(i->pixel_length, 48);
        dicom_instance_free(i);
    }
}

END_TEST

/* Whatever is cut off, the file is refused, and never for a reason that hides the truth. */
START_TEST(files_cut_short_anywhere)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = native_syntaxes[_i];
    image.extra = add_classic_keys;
    struct dicom_bytes bytes = {0};
    sample_file(&bytes, &image);
    bytes_write(&bytes, path);
    dicom_instance_free(peek_or_fail());
    for (size_t size = bytes.size - 1; size > 0; size--) {
        ck_assert_int_eq(truncate(path, (off_t)size), 0);
        const char *code = peek_fault()->code;
        if (size > 400)
            ck_assert_msg(strcmp(code, "FILE_TRUNCATED") == 0 || strcmp(code, "TAG_MISSING") == 0,
                          "%zu bytes: %s", size, code);
    }
    bytes_free(&bytes);
}

END_TEST

/* Any one damaged byte of the header: refused or read, but never a crash. */
START_TEST(one_damaged_byte_anywhere)
{
    struct sample_image image = enhanced_image(native_syntaxes[_i]);
    struct dicom_bytes bytes = {0};
    sample_file(&bytes, &image);
    unsigned refused = 0;
    for (size_t at = 128; at < bytes.size; at++) {
        bytes.data[at] ^= 0xFF;
        bytes_write(&bytes, path);
        struct dicom_instance *instance;
        struct dicom_fault fault = {0};
        if (dicom_peek(path, &instance, &fault))
            refused++;
        else
            dicom_instance_free(instance);
        bytes.data[at] ^= 0xFF;
    }
    ck_assert_uint_gt(refused, 100);
    bytes_free(&bytes);
}

END_TEST

enum { DEEP = 100000 };

static void
add_deep_undefined(struct dicom_bytes *bytes)
{
    for (unsigned i = 0; i < DEEP; i++) {
        bytes_sequence(bytes, 0x52009229);
        bytes_item(bytes);
    }
    for (unsigned i = 0; i < DEEP; i++) {
        bytes_item_end(bytes);
        bytes_sequence_end(bytes);
    }
}

/* Defined lengths: each level's header is 12 + 8 bytes in explicit VR, 8 + 8 in implicit. */
static void
add_deep_defined(struct dicom_bytes *bytes)
{
    const uint32_t head = bytes->implicit_vr ? 16 : 20;
    for (uint32_t i = 0; i < DEEP; i++) {
        const uint32_t inner = (DEEP - 1 - i) * head;
        bytes_header(bytes, 0x52009229, "SQ", inner + 8);
        bytes_delimiter(bytes, 0xFFFEE000, inner);
    }
}

START_TEST(sequences_nested_without_end)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = native_syntaxes[_i];
    image.extra = add_deep_undefined;
    expect_code(&image, "TAG_INVALID");
    ck_assert_ptr_nonnull(strstr(peek_fault()->sentence, "too deeply"));
    image.extra = add_deep_defined;
    expect_code(&image, "TAG_INVALID");
    ck_assert_ptr_nonnull(strstr(peek_fault()->sentence, "too deeply"));
}

END_TEST

static void
add_beyond_item(struct dicom_bytes *bytes)
{
    bytes_header(bytes, 0x52009229, "SQ", 20);
    bytes_delimiter(bytes, 0xFFFEE000, 12);
    bytes_header(bytes, 0x52009230, "SQ", 4000);
}

static void
add_no_item(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x52009229);
    bytes_text(bytes, 0x00200037, "DS", "1\\0\\0\\0\\1\\0");
    bytes_sequence_end(bytes);
}

static void
add_stray_delimiter(struct dicom_bytes *bytes)
{
    bytes_item_end(bytes);
}

static void
add_unknown_vr(struct dicom_bytes *bytes)
{
    bytes_header(bytes, 0x00290010, "\x01\x02", 0);
}

static void
add_text_without_length(struct dicom_bytes *bytes)
{
    bytes_header(bytes, 0x00291010, "UT", BYTES_UNDEFINED);
}

START_TEST(broken_sequences)
{
    static void (*const cases[])(struct dicom_bytes *) = {
        add_beyond_item, add_no_item, add_stray_delimiter, add_unknown_vr, add_text_without_length,
    };
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = cases[_i];
    expect_code(&image, "TAG_INVALID");
}

END_TEST

static void
add_claim_of_4_gib(struct dicom_bytes *bytes)
{
    bytes_header(bytes, 0x52009229, "SQ", 0xFFFFFFF0u);
}

static void
add_private_claim_of_4_gib(struct dicom_bytes *bytes)
{
    bytes_header(bytes, 0x00291010, "OB", 0xFFFFFFF0u);
}

START_TEST(lengths_beyond_the_file)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = add_claim_of_4_gib;
    expect_code(&image, "FILE_TRUNCATED");
    image.extra = add_private_claim_of_4_gib;
    expect_code(&image, "FILE_TRUNCATED");
}

END_TEST

/* UN of undefined length holds implicit little endian (CP-246), here around a nested sequence. */
static void
add_unknown_sequence(struct dicom_bytes *bytes)
{
    bytes_header(bytes, 0x00291010, "UN", BYTES_UNDEFINED);
    bytes->implicit_vr = true;
    bytes_item(bytes);
    bytes_text(bytes, 0x00291011, "LO", "private");
    bytes_sequence(bytes, 0x00291012);
    bytes_item(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes->implicit_vr = false;
}

/* Longer than the window, so that skipping and reading on both sides of it is tried. */
static void
add_long_private_value(struct dicom_bytes *bytes)
{
    static const uint8_t zeros[100001];
    bytes_element(bytes, 0x00291010, "OB", zeros, sizeof(zeros));
}

START_TEST(private_elements_are_passed_over)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = add_unknown_sequence;
    dicom_instance_free(write_and_peek(&image));
    image.extra = add_long_private_value;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert_int_eq(i->pixel_offset, i->file_size - 48);
    dicom_instance_free(i);
}

END_TEST

/* ---- what results inherit ---- */

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
    const struct dicom_element *study = find(&inherited, 0x0020000D);
    ck_assert_ptr_nonnull(study);
    ck_assert_mem_eq(study->bytes, "\x20\0\x0D\0UI\x0A\0001.2.3.4.2\0", 18);
    const struct dicom_element *ids = find(&inherited, 0x00101002);
    ck_assert_ptr_nonnull(ids);
    ck_assert_uint_eq(ids->size, 12 + 8 + 10);
    ck_assert_mem_eq(ids->bytes, "\x10\0\x02\x10SQ\0\0\x12\0\0\0\xFE\xFF\0\xE0\x0A\0\0\0", 20);
    ck_assert_ptr_nonnull(find(&inherited, 0x00200052));
    ck_assert_ptr_nonnull(find(&inherited, 0x00201040)); /* empty, and there */
    ck_assert_ptr_null(find(&inherited, 0x0020000E));
    ck_assert_ptr_null(find(&inherited, 0x00080060));
    dicom_inherited_free(&inherited);
    ck_assert_uint_eq(inherited.count, 0);
}

END_TEST

START_TEST(nothing_to_inherit)
{
    struct dicom_inherited inherited;
    struct dicom_fault fault;
    write_raw("", 0);
    ck_assert_int_ne(dicom_inherit(path, &inherited, &fault), 0);
    ck_assert_str_eq(fault.code, "FILE_EMPTY");
    unlink(path);
    ck_assert_int_eq(dicom_inherit(path, &inherited, &fault), -ENOENT);
    ck_assert_str_eq(fault.code, "FILE_UNREADABLE");
}

END_TEST

static TCase *
new_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("dicom_peek");
    TCase *reading = new_case(suite, "reading");
    tcase_add_loop_test(reading, every_attribute_of_a_classic_image, 0, 3);
    tcase_add_loop_test(reading, geometry_of_a_classic_image, 0, 3);
    tcase_add_loop_test(reading, geometry_that_is_none, 0, 9);
    tcase_add_test(reading, long_decimal_strings_stay_whole);
    tcase_add_loop_test(reading, rescale_that_is_none, 0, 7);
    tcase_add_loop_test(reading, pixel_padding_has_the_signedness_of_the_pixels, 0, 3);
    tcase_add_test(reading, lossy_history);
    tcase_add_loop_test(reading, keys_of_a_classic_image, 0, 5);
    tcase_add_test(reading, long_keys_stay_different);
    tcase_add_loop_test(reading, expected_instances, 0, 5);
    tcase_add_loop_test(reading, functional_groups_shared_and_per_frame, 0, 3);
    tcase_add_test(reading, fewer_functional_groups_than_frames);
    tcase_add_test(reading, frames_of_a_classic_image_share_no_position);
    tcase_add_loop_test(reading, accepted_storage_classes, 0,
                        (int)(sizeof(accepted_classes) / sizeof(accepted_classes[0])));
    TCase *refusing = new_case(suite, "refusing");
    tcase_add_loop_test(refusing, missing_attributes_are_named, 0, 13);
    tcase_add_test(refusing, a_missing_transfer_syntax);
    tcase_add_loop_test(refusing, refusals, 0, REFUSALS);
    tcase_add_test(refusing, files_that_are_not_dicom);
    tcase_add_test(refusing, files_that_cannot_be_read);
    TCase *structure = new_case(suite, "structure");
    tcase_add_test(structure, data_sets_without_a_preamble);
    tcase_add_test(structure, mislabelled_vr);
    tcase_add_test(structure, padding_behind_the_pixel_data);
    tcase_add_loop_test(structure, files_cut_short_anywhere, 0, 3);
    tcase_add_loop_test(structure, one_damaged_byte_anywhere, 0, 3);
    tcase_add_loop_test(structure, sequences_nested_without_end, 0, 3);
    tcase_add_loop_test(structure, broken_sequences, 0, 5);
    tcase_add_test(structure, lengths_beyond_the_file);
    tcase_add_test(structure, private_elements_are_passed_over);
    TCase *inheriting = new_case(suite, "inheriting");
    tcase_add_loop_test(inheriting, inherited_elements, 0, 3);
    tcase_add_test(inheriting, nothing_to_inherit);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

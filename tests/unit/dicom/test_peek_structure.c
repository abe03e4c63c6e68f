/* Headers: unusual structure, and damage of every kind. */
#include "tests/unit/dicom/peek_sample.h"

#include <errno.h>
#include <sys/stat.h>

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

/* Senders that declare implicit VR and write explicit VR, and vice versa. */
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

/* A file that is cut anywhere must be rejected, with a reason that does not hide the cut. */
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
        enum code code = peek_error()->code;
        ck_assert_msg(code == CODE_FILE_TRUNCATED || (code == CODE_TAG_MISSING && size >= 132), "%zu bytes: %s", size,
                      code_name(code));
    }
    bytes_free(&bytes);
}

END_TEST

/* A file that is cut short must report its UIDs if they are whole, and must not report part of one. */
START_TEST(identifiers_of_a_truncated_file)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = native_syntaxes[_i];
    image.extra = add_classic_keys;
    sample_write(&image, path);
    struct dicom_instance *whole = peek_or_fail();
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    off_t known = 0; /* min size that includes the series */
    for (off_t size = status.st_size; size >= 0; size--) {
        struct dicom_identity identity;
        ck_assert_int_eq(truncate(path, size), 0);
        dicom_identify(path, &identity);
        if (identity.sop_instance_uid[0])
            ck_assert_str_eq(identity.sop_instance_uid, whole->sop_instance_uid);
        if (!identity.series_uid[0])
            continue;
        ck_assert_str_eq(identity.series_uid, whole->series_uid);
        ck_assert_str_ne(identity.sop_instance_uid, "");
        known = size;
    }
    ck_assert_int_gt(known, 0);
    ck_assert_int_lt(known, status.st_size - 200); /* well before the pixels */
    dicom_instance_free(whole);
    unlink(path);
    struct dicom_identity identity;
    dicom_identify(path, &identity);
    ck_assert_str_eq(identity.series_uid, "");
}

END_TEST

/* Any one damaged byte of the header: rejected or read, without a crash. */
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
        struct error error = {0};
        if (dicom_peek(path, &instance, &error))
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

/* Puts defined lengths: each level's header is 12 + 8 bytes in explicit VR, 8 + 8 in implicit. */
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
    expect_code(&image, CODE_TAG_INVALID);
    ck_assert_ptr_nonnull(strstr(peek_error()->message, "too deeply"));
    image.extra = add_deep_defined;
    expect_code(&image, CODE_TAG_INVALID);
    ck_assert_ptr_nonnull(strstr(peek_error()->message, "too deeply"));
}

END_TEST

/*
 * Puts levels in values that the walk may read as text and a parser as sequences. Each value ends the enclosing one,
 * and opens as many as it has room for.
 */
static void
add_deep_in_values(struct dicom_bytes *bytes)
{
    enum { IN_ONE = 200 };

    for (int i = 0; i < DEEP / IN_ONE; i++) {
        struct dicom_bytes value = {.implicit_vr = bytes->implicit_vr};
        bytes_delimiter(&value, 0xFFFEE0DD, 0);
        value.big_endian = bytes->big_endian; /* UN is little endian, the data around it is not */
        for (unsigned j = 0; j < IN_ONE; j++) {
            bytes_sequence(&value, 0x52009229);
            bytes_item(&value);
        }
        bytes_header(bytes, 0x52009229, bytes->implicit_vr ? "SQ" : "UN", (uint32_t)value.size);
        bytes_put(bytes, value.data, value.size);
        bytes_free(&value);
    }
}

START_TEST(sequences_nested_in_values)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = native_syntaxes[_i];
    image.extra = add_deep_in_values;
    expect_code(&image, CODE_TAG_INVALID);
    ck_assert_ptr_nonnull(strstr(peek_error()->message, "not an item"));
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

/* Puts less than the header of an item: a parser would read the following bytes as the rest of it. */
static void
add_half_an_item(struct dicom_bytes *bytes)
{
    bytes_header(bytes, 0x52009229, "SQ", 4);
    bytes_put(bytes, "\xFE\xFF\x00\xE0", 4);
}

/* The sequence has room only for the item's header. */
static void
add_item_that_ends_beyond(struct dicom_bytes *bytes)
{
    bytes_header(bytes, 0x52009229, "SQ", 8);
    bytes_item(bytes);
    bytes_item_end(bytes);
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
        add_beyond_item,     add_no_item,    add_half_an_item,        add_item_that_ends_beyond,
        add_stray_delimiter, add_unknown_vr, add_text_without_length,
    };
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = cases[_i];
    expect_code(&image, CODE_TAG_INVALID);
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
    expect_code(&image, CODE_FILE_TRUNCATED);
    image.extra = add_private_claim_of_4_gib;
    expect_code(&image, CODE_FILE_TRUNCATED);
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

/* Puts a value longer than the window, to test skipping and reading on both sides of it. */
static void
add_long_private_value(struct dicom_bytes *bytes)
{
    static const uint8_t zeros[100001];
    bytes_element(bytes, 0x00291010, "OB", zeros, sizeof(zeros));
}

START_TEST(private_elements_are_skipped)
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

/* Shared groups, and groups that a frame lacks, must cost only once; unused ones must cost no time. */
static void
add_costly_header(struct dicom_bytes *bytes)
{
    static char types[4096 * 8];
    memset(types, 'A', sizeof(types) - 1);
    for (size_t i = 1; i < sizeof(types) - 1; i += 2)
        types[i] = '\\';
    bytes_header(bytes, 0x00204000, "UT", sizeof(types));
    bytes_put(bytes, types, sizeof(types));
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    bytes_sequence(bytes, 0x00289110);
    bytes_item(bytes);
    for (unsigned i = 0; i < 20000; i++)
        bytes_us(bytes, 0x00290000 + i, "US", 1);
    bytes_text(bytes, 0x00280030, "DS", "0.5\\0.75");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    put_group(bytes, 0x00209116, 0x00200037, types + sizeof(types) - 2048);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

START_TEST(shared_functional_groups_are_read_once)
{
    struct sample_image image = enhanced_image(_i ? SYNTAX_EXPLICIT : SYNTAX_IMPLICIT);
    image.rows = image.columns = 1;
    image.bits_allocated = image.bits_stored = 8;
    image.high_bit = 7;
    image.frames = "20000";
    image.extra = add_costly_header;
    struct dicom_instance *i = write_and_peek(&image);
    ck_assert(i->frames[19999].has_spacing && i->frames[19999].pixel_spacing[1] == 0.75);
    ck_assert(!i->frames[19999].has_orientation);
    dicom_instance_free(i);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_peek_structure");
    TCase *structure = new_case(suite, "structure");
    tcase_add_test(structure, data_sets_without_a_preamble);
    tcase_add_test(structure, mislabelled_vr);
    tcase_add_test(structure, padding_behind_the_pixel_data);
    tcase_add_loop_test(structure, files_cut_short_anywhere, 0, 3);
    tcase_add_loop_test(structure, identifiers_of_a_truncated_file, 0, 3);
    tcase_add_loop_test(structure, one_damaged_byte_anywhere, 0, 3);
    tcase_add_loop_test(structure, sequences_nested_without_end, 0, 3);
    tcase_add_loop_test(structure, sequences_nested_in_values, 0, 3);
    tcase_add_loop_test(structure, broken_sequences, 0, 7);
    tcase_add_test(structure, lengths_beyond_the_file);
    tcase_add_test(structure, private_elements_are_skipped);
    tcase_add_loop_test(structure, shared_functional_groups_are_read_once, 0, 2);
    return suite_run(suite);
}

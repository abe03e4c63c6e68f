/* dicom_compare: the same data set in different encodings, and differences. */
#include "dicom/dicom.h"

#include "tests/unit/dicom_bytes.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static enum dicom_likeness
likeness_of(const struct dicom_bytes *a, const struct dicom_bytes *b)
{
    bytes_write(a, scratch_path("a"));
    bytes_write(b, scratch_path("b"));
    const int first = open(scratch_path("a"), O_RDONLY);
    const int second = open(scratch_path("b"), O_RDONLY);
    enum dicom_likeness there, back;
    ck_assert_int_eq(dicom_compare(first, second, &there), 0);
    ck_assert_int_eq(dicom_compare(second, first, &back), 0);
    ck_assert_int_eq(there, back);
    ck_assert_int_eq(lseek(first, 0, SEEK_CUR), 0);
    close(first);
    close(second);
    return there;
}

static enum dicom_likeness
likeness(const struct sample_image *a, const struct sample_image *b)
{
    struct dicom_bytes first = {0}, second = {0};
    sample_file(&first, a);
    sample_file(&second, b);
    const enum dicom_likeness found = likeness_of(&first, &second);
    bytes_free(&first);
    bytes_free(&second);
    return found;
}

/* ------------------------------------------------------------------------------ sequences ---- */

/* Puts a sequence of two items, of which the second has an empty sequence, and a private sequence. */
static void
sequences_without_lengths(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00400275);
    bytes_item(bytes);
    bytes_text(bytes, 0x00400007, "LO", "one");
    bytes_item_end(bytes);
    bytes_item(bytes);
    bytes_sequence(bytes, 0x00400008);
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
sequences_with_lengths(struct dicom_bytes *bytes)
{
    struct dicom_bytes item = {.implicit_vr = bytes->implicit_vr};
    struct dicom_bytes empty = {.implicit_vr = bytes->implicit_vr};
    bytes_text(&item, 0x00400007, "LO", "one");
    bytes_header(&empty, 0x00400008, "SQ", 0);
    bytes_ul(bytes, 0x00400000, 42); /* a group length */
    bytes_header(bytes, 0x00400275, "SQ", (uint32_t)(8 + item.size + 8 + empty.size));
    bytes_fragment(bytes, item.data, item.size);
    bytes_fragment(bytes, empty.data, empty.size);
    bytes_free(&item);
    bytes_free(&empty);
}

static void
sequences_of_one_item(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00400275);
    bytes_item(bytes);
    bytes_text(bytes, 0x00400007, "LO", "one");
    bytes_sequence(bytes, 0x00400008);
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

START_TEST(how_a_data_set_is_written_does_not_count)
{
    static const char *const syntaxes[] = {SYNTAX_EXPLICIT, SYNTAX_IMPLICIT};
    struct sample_image a = SAMPLE_IMAGE, b = SAMPLE_IMAGE;
    a.extra = sequences_without_lengths;
    b.extra = sequences_with_lengths;
    for (int i = 0; i < 4; i++) {
        a.syntax = syntaxes[i / 2];
        b.syntax = syntaxes[i % 2];
        ck_assert_int_eq(likeness(&a, &b), DICOM_SAME);
    }
    b.unknown_vr = true;
    b.syntax = SYNTAX_EXPLICIT;
    b.extra = sequences_without_lengths;
    ck_assert_int_eq(likeness(&a, &b), DICOM_SAME);
}

END_TEST

START_TEST(the_end_of_an_item_counts)
{
    struct sample_image a = SAMPLE_IMAGE, b = SAMPLE_IMAGE;
    a.extra = sequences_without_lengths;
    b.extra = sequences_of_one_item;
    ck_assert_int_eq(likeness(&a, &b), DICOM_DIFFERENT);
}

END_TEST

START_TEST(padding_behind_the_pixels_does_not_count)
{
    const struct sample_image image = SAMPLE_IMAGE;
    struct dicom_bytes plain = {0}, padded = {0}, longer = {0};
    sample_file(&plain, &image);
    sample_file(&padded, &image);
    bytes_element(&padded, 0xFFFCFFFC, "OB", "\0\0\0\0", 4);
    sample_file(&longer, &image);
    bytes_text(&longer, 0x7FE10010, "LO", "somebody's");
    ck_assert_int_eq(likeness_of(&plain, &padded), DICOM_SAME);
    ck_assert_int_eq(likeness_of(&plain, &longer), DICOM_DIFFERENT);
    bytes_free(&plain);
    bytes_free(&padded);
    bytes_free(&longer);
}

END_TEST

/* ---------------------------------------------------------------------------- differences ---- */

START_TEST(every_value_counts)
{
    static const uint8_t pixels[48] = {[47] = 1};
    struct sample_image changed[] = {SAMPLE_IMAGE, SAMPLE_IMAGE, SAMPLE_IMAGE, SAMPLE_IMAGE};
    changed[0].manufacturer = "Miker";
    changed[1].without = 0x00080070;
    changed[2].pixels = pixels;
    changed[2].pixel_size = sizeof pixels;
    changed[3].extra = sequences_with_lengths;
    const struct sample_image image = SAMPLE_IMAGE;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        ck_assert_int_eq(likeness(&image, &changed[i]), DICOM_DIFFERENT);
        changed[i].syntax = SYNTAX_IMPLICIT;
        ck_assert_int_eq(likeness(&image, &changed[i]), DICOM_DIFFERENT);
    }
}

END_TEST

static void
fragments(struct dicom_bytes *bytes)
{
    bytes_fragment(bytes, NULL, 0);
    bytes_fragment(bytes, "12345678", 8);
    bytes_sequence_end(bytes);
}

static void
other_fragments(struct dicom_bytes *bytes)
{
    bytes_fragment(bytes, NULL, 0);
    bytes_fragment(bytes, "12345679", 8);
    bytes_sequence_end(bytes);
}

START_TEST(other_encodings_of_pixels_are_not_compared)
{
    const struct sample_image image = SAMPLE_IMAGE;
    struct sample_image coded = SAMPLE_IMAGE, other = SAMPLE_IMAGE, big = SAMPLE_IMAGE;
    coded.syntax = other.syntax = SYNTAX_RLE;
    coded.encapsulated = fragments;
    other.encapsulated = other_fragments;
    big.syntax = SYNTAX_BIG_ENDIAN;
    ck_assert_int_eq(likeness(&coded, &coded), DICOM_SAME);
    ck_assert_int_eq(likeness(&coded, &other), DICOM_DIFFERENT);
    ck_assert_int_eq(likeness(&image, &coded), DICOM_RECODED);
    ck_assert_int_eq(likeness(&image, &big), DICOM_RECODED);
    other.syntax = "1.2.840.10008.1.2.4.90";
    ck_assert_int_eq(likeness(&coded, &other), DICOM_RECODED);
}

END_TEST

START_TEST(unparsable_data_sets_are_compared_by_bytes)
{
    const struct sample_image image = SAMPLE_IMAGE;
    struct dicom_bytes a = {0}, b = {0};
    sample_file(&a, &image);
    sample_file(&b, &image);
    a.size = b.size = a.size - 60; /* ends before its pixels */
    ck_assert_int_eq(likeness_of(&a, &b), DICOM_SAME);
    b.data[b.size - 1] ^= 1;
    ck_assert_int_eq(likeness_of(&a, &b), DICOM_DIFFERENT);
    b.size = 0;
    ck_assert_int_eq(likeness_of(&a, &b), DICOM_DIFFERENT);
    bytes_free(&a);
    bytes_free(&b);
    enum dicom_likeness likeness;
    ck_assert_int_eq(dicom_compare(-1, -1, &likeness), -EBADF);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_compare");
    TCase *tests = tcase_create("compare");
    tcase_add_checked_fixture(tests, scratch_make, scratch_remove);
    tcase_add_test(tests, how_a_data_set_is_written_does_not_count);
    tcase_add_test(tests, the_end_of_an_item_counts);
    tcase_add_test(tests, padding_behind_the_pixels_does_not_count);
    tcase_add_test(tests, every_value_counts);
    tcase_add_test(tests, other_encodings_of_pixels_are_not_compared);
    tcase_add_test(tests, unparsable_data_sets_are_compared_by_bytes);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

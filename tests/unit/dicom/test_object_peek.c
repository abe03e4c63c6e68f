/*
 * test_object_peek.c - the patient of an annotation object and its referenced images, from the strongest reference in
 * it.
 */
#include "dicom/read/annotation/object_peek.h"
#include "tests/unit/dicom_bytes.h"
#include "tests/unit/edge.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLASS_RTSTRUCT "1.2.840.10008.5.1.4.1.1.481.3"
#define CLASS_SEG      "1.2.840.10008.5.1.4.1.1.66.4"
#define CLASS_SR       "1.2.840.10008.5.1.4.1.1.88.33"

static int file;

static void
setup(void)
{
    dicom_init();
    file = memfd_create("object", MFD_CLOEXEC);
    ck_assert_int_ge(file, 0);
}

static void
teardown(void)
{
    close(file);
}

/* References of an object of this class, and the elements before them, in the order of tags. */
struct sample_object {
    const char *syntax; /* NULL: explicit VR */
    const char *class_uid, *sop, *manufacturer;
    void (*before)(struct dicom_bytes *bytes); /* below (0020,000D) */
    void (*after)(struct dicom_bytes *bytes);
};

static void
object_write(const struct sample_object *object)
{
    struct dicom_bytes bytes = {0};
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ck_assert_int_eq(ftruncate(file, 0), 0);
    bytes_begin_file(&bytes, object->syntax ? object->syntax : SYNTAX_EXPLICIT, object->class_uid, object->sop);
    bytes_text(&bytes, 0x00080016, "UI", object->class_uid);
    bytes_text(&bytes, 0x00080018, "UI", object->sop);
    if (object->manufacturer) {
        bytes_text(&bytes, 0x00080070, "LO", object->manufacturer);
        bytes_text(&bytes, 0x00081090, "LO", "noctuled");
    }
    if (object->before)
        object->before(&bytes);
    bytes_text(&bytes, 0x0020000D, "UI", "1.2.2");
    bytes_text(&bytes, 0x0020000E, "UI", "1.2.3");
    if (object->after)
        object->after(&bytes);
    bytes_write(&bytes, path);
    bytes_free(&bytes);
}

static struct object_peek *
object_open(const struct sample_object *object)
{
    struct object_peek *peek;
    struct error error = {0};
    object_write(object);
    ck_assert_msg(object_peek_open(file, "object.dcm", NULL, &peek, &error) == 0, "%s: %s", code_name(error.code),
                  error.message);
    return peek;
}

static void
assert_references(const struct sample_object *object, const char *expected)
{
    struct object_peek *peek = object_open(object);
    ck_assert_str_eq(peek->references, expected);
    object_peek_free(peek);
}

static void
assert_refused(const struct sample_object *object, enum code code, const char *word)
{
    struct object_peek *peek;
    struct error error = {0};
    object_write(object);
    ck_assert_int_eq(object_peek_open(file, "object.dcm", NULL, &peek, &error), -EBADMSG);
    ck_assert_ptr_null(peek);
    ck_assert_msg(error.code == code, "%s: %s", code_name(error.code), error.message);
    ck_assert_msg(strstr(error.message, word) != NULL, "%s", error.message);
}

/* Puts a sequence of one item with one UID. */
static void
put_reference(struct dicom_bytes *bytes, uint32_t sequence, uint32_t tag, const char *uid)
{
    bytes_sequence(bytes, sequence);
    bytes_item(bytes);
    bytes_text(bytes, tag, "UI", uid);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
open_item(struct dicom_bytes *bytes, uint32_t sequence)
{
    bytes_sequence(bytes, sequence);
    bytes_item(bytes);
}

static void
close_item(struct dicom_bytes *bytes)
{
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

/* ---- structure sets ---- */

/* Puts a structure set. It must refer to the study like to an instance. */
static void
put_set(struct dicom_bytes *bytes, const char *series, const char *predecessor)
{
    bytes_text(bytes, 0x30060002, "SH", "Plan 1");
    bytes_text(bytes, 0x30060008, "DA", "20260131");
    bytes_text(bytes, 0x30060009, "TM", "0203");
    open_item(bytes, 0x30060010);
    bytes_text(bytes, 0x00200052, "UI", "1.2.9");
    open_item(bytes, 0x30060012);
    bytes_text(bytes, 0x00081155, "UI", "1.2.2");
    open_item(bytes, 0x30060014);
    if (series)
        bytes_text(bytes, 0x0020000E, "UI", series);
    close_item(bytes);
    close_item(bytes);
    close_item(bytes);
    if (predecessor)
        put_reference(bytes, 0x30060018, 0x00081155, predecessor);
}

static void
put_whole_set(struct dicom_bytes *bytes)
{
    put_set(bytes, "1.2.4", "1.2.8");
}

static void
put_contours(struct dicom_bytes *bytes)
{
    open_item(bytes, 0x30060039);
    bytes_sequence(bytes, 0x30060040);
    for (int i = 0; i < 3; i++) {
        bytes_item(bytes);
        put_reference(bytes, 0x30060016, 0x00081155, i == 1 ? "1.2.4.1" : "1.2.4.2");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
    close_item(bytes);
}

static void
put_set_without_series(struct dicom_bytes *bytes)
{
    put_set(bytes, NULL, NULL);
    put_contours(bytes);
}

static void
put_set_of_frame(struct dicom_bytes *bytes)
{
    put_set(bytes, NULL, NULL);
}

START_TEST(a_structure_set)
{
    struct object_peek *peek =
        object_open(&(struct sample_object){.class_uid = CLASS_RTSTRUCT, .sop = "1.2.1", .after = put_whole_set});
    ck_assert_str_eq(peek->kind, "rtstruct");
    ck_assert_str_eq(peek->sop_class_uid, CLASS_RTSTRUCT);
    ck_assert_str_eq(peek->sop_instance_uid, "1.2.1");
    ck_assert_str_eq(peek->study_uid, "1.2.2");
    ck_assert_str_eq(peek->series_uid, "1.2.3");
    ck_assert_str_eq(peek->label, "Plan 1");
    ck_assert_msg(strncmp(peek->made, "202601310203", 12) == 0, "%s", peek->made);
    ck_assert_str_eq(peek->references, "series 1.2.4\npredecessor 1.2.8\n");
    object_peek_free(peek);
}

END_TEST

START_TEST(without_a_series_the_images_identify_it)
{
    assert_references(
        &(struct sample_object){.class_uid = CLASS_RTSTRUCT, .sop = "1.2.1", .after = put_set_without_series},
        "instance 1.2.4.1\ninstance 1.2.4.2\n");
}

END_TEST

START_TEST(without_images_the_frame_of_reference_identifies_it)
{
    assert_references(&(struct sample_object){.class_uid = CLASS_RTSTRUCT, .sop = "1.2.1", .after = put_set_of_frame},
                      "frame 1.2.9\n");
}

END_TEST

/* ---- segmentations ---- */

static void
put_segmented_series(struct dicom_bytes *bytes)
{
    open_item(bytes, 0x00081115);
    put_reference(bytes, 0x0008114A, 0x00081155, "1.2.4.1");
    bytes_text(bytes, 0x0020000E, "UI", "1.2.4");
    close_item(bytes);
}

static void
put_segments(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00200052, "UI", "1.2.9");
    bytes_sequence(bytes, 0x00620002);
    for (int i = 0; i < 2; i++) {
        bytes_item(bytes);
        bytes_text(bytes, 0x00620005, "LO", i ? "Tumor" : "Liver");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
    bytes_text(bytes, 0x00700080, "CS", "AI");
}

static void
put_frames(struct dicom_bytes *bytes)
{
    put_segments(bytes);
    open_item(bytes, 0x52009230);
    open_item(bytes, 0x00089124);
    put_reference(bytes, 0x00082112, 0x00081155, "1.2.4.7");
    close_item(bytes);
    close_item(bytes);
}

START_TEST(a_segmentation)
{
    struct object_peek *peek = object_open(&(struct sample_object){
        .class_uid = CLASS_SEG, .sop = "1.2.1", .before = put_segmented_series, .after = put_segments});
    ck_assert_str_eq(peek->kind, "seg");
    ck_assert_str_eq(peek->label, "AI: Liver, Tumor");
    ck_assert_str_eq(peek->references, "series 1.2.4\n");
    object_peek_free(peek);
    assert_references(&(struct sample_object){.class_uid = CLASS_SEG, .sop = "1.2.1", .after = put_frames},
                      "instance 1.2.4.7\n");
    assert_references(&(struct sample_object){.class_uid = CLASS_SEG, .sop = "1.2.1", .after = put_segments},
                      "frame 1.2.9\n");
}

END_TEST

/* ---- persons and regions ---- */

static void
put_operator(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00081070, "PN", "Roe^Richard");
}

static void
put_named_set(struct dicom_bytes *bytes)
{
    put_whole_set(bytes);
    bytes_sequence(bytes, 0x30060020);
    for (int i = 0; i < 2; i++) {
        bytes_item(bytes);
        bytes_text(bytes, 0x30060026, "LO", i == 0 ? "Brain" : "Skull base");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

static void
put_created_segments(struct dicom_bytes *bytes)
{
    put_segments(bytes);
    bytes_text(bytes, 0x00700084, "PN", "Doe^Jane");
}

START_TEST(persons_and_regions)
{
    struct object_peek *peek = object_open(&(struct sample_object){
        .class_uid = CLASS_RTSTRUCT, .sop = "1.2.1", .before = put_operator, .after = put_named_set});
    ck_assert_str_eq(peek->person, "Roe^Richard");
    ck_assert_str_eq(peek->regions, "Brain\nSkull base\n");
    object_peek_free(peek);
    /* A copy of a result that names a person was corrected. */
    peek = object_open(&(struct sample_object){
        .class_uid = CLASS_SEG, .sop = "1.2.1", .manufacturer = "Noctule", .after = put_created_segments});
    ck_assert_str_eq(peek->person, "Doe^Jane");
    ck_assert_str_eq(peek->regions, "Liver\nTumor\n");
    object_peek_free(peek);
}

END_TEST

static void
put_half_of_the_pixels(struct dicom_bytes *bytes)
{
    put_segments(bytes);
    bytes_header(bytes, 0x7FE00010, "OB", 64);
    bytes_put(bytes, "half", 4);
}

START_TEST(a_truncated_segmentation)
{
    assert_refused(&(struct sample_object){.class_uid = CLASS_SEG, .sop = "1.2.1", .after = put_half_of_the_pixels},
                   CODE_FILE_TRUNCATED, "4 of 64 bytes");
}

END_TEST

/* ---- reports ---- */

static void
put_evidence(struct dicom_bytes *bytes)
{
    open_item(bytes, 0x0040A360);
    open_item(bytes, 0x00081115);
    put_reference(bytes, 0x00081199, 0x00081155, "1.2.8");
    bytes_text(bytes, 0x0020000E, "UI", "1.2.7");
    close_item(bytes);
    close_item(bytes);
    open_item(bytes, 0x0040A375);
    open_item(bytes, 0x00081115);
    put_reference(bytes, 0x00081199, 0x00081155, "1.2.4.1");
    bytes_text(bytes, 0x0020000E, "UI", "1.2.4");
    close_item(bytes);
    close_item(bytes);
}

static void
put_content(struct dicom_bytes *bytes)
{
    open_item(bytes, 0x0040A730);
    open_item(bytes, 0x0040A730);
    bytes_text(bytes, 0x30060024, "UI", "1.2.9");
    close_item(bytes);
    close_item(bytes);
}

START_TEST(a_report)
{
    struct object_peek *peek =
        object_open(&(struct sample_object){.class_uid = CLASS_SR, .sop = "1.2.1", .after = put_evidence});
    ck_assert_str_eq(peek->kind, "sr");
    ck_assert_str_eq(peek->references, "series 1.2.4\npredecessor 1.2.8\n");
    object_peek_free(peek);
    assert_references(&(struct sample_object){.class_uid = CLASS_SR, .sop = "1.2.1", .after = put_content},
                      "frame 1.2.9\n");
}

END_TEST

/* ---- rejected objects ---- */

static void
put_words(struct dicom_bytes *bytes)
{
    put_set(bytes, "my series", NULL);
}

START_TEST(objects_without_references)
{
    assert_refused(&(struct sample_object){.class_uid = CLASS_SR, .sop = "1.2.1"}, CODE_TAG_MISSING,
                   "refers to no series");
    assert_refused(&(struct sample_object){.class_uid = CLASS_CT, .sop = "1.2.1"}, CODE_SOP_CLASS_UNSUPPORTED,
                   "not an annotation object");
    assert_refused(
        &(struct sample_object){
            .class_uid = CLASS_SEG, .sop = "1.2.1", .manufacturer = "Noctule", .after = put_segments},
        CODE_OWN_RESULT, "written by Noctule");
    assert_references(&(struct sample_object){.class_uid = CLASS_RTSTRUCT, .sop = "1.2.1", .after = put_words},
                      "frame 1.2.9\n");
}

END_TEST

/* Puts an element whose tag makes it a sequence, although the file does not: a parser's dictionary has its VR. */
static void
put_hidden(struct dicom_bytes *bytes, const char *value, size_t size)
{
    put_set(bytes, NULL, NULL);
    open_item(bytes, 0x30060039);
    bytes_header(bytes, 0x30060040, "SQ", (uint32_t)size);
    bytes_put(bytes, value, size);
    close_item(bytes);
}

/* Puts an end inside a sequence with a length, then an element with a length of 4 GiB. */
static void
put_end_within(struct dicom_bytes *bytes)
{
    static const char value[] = "\xFE\xFF\xDD\xE0\0\0\0\0\x08\0\x55\x11\xF0\xFF\xFF\xFF";
    put_hidden(bytes, value, sizeof(value) - 1);
}

/* Puts an item header that exceeds the sequence. */
static void
put_half_an_item(struct dicom_bytes *bytes)
{
    static const char value[] = "\xFE\xFF\0\xE0";
    put_hidden(bytes, value, sizeof(value) - 1);
}

static void
put_no_item(struct dicom_bytes *bytes)
{
    put_hidden(bytes, "POINT ", 6);
}

static void
put_no_length(struct dicom_bytes *bytes)
{
    put_set(bytes, NULL, NULL);
    bytes_header(bytes, 0x30060024, "UI", BYTES_UNDEFINED);
    bytes_item(bytes);
    close_item(bytes);
}

START_TEST(sequences_known_only_to_the_dictionary)
{
    static void (*const cases[])(struct dicom_bytes *) = {put_end_within, put_half_an_item, put_no_item, put_no_length};
    assert_refused(
        &(struct sample_object){
            .syntax = SYNTAX_IMPLICIT, .class_uid = CLASS_RTSTRUCT, .sop = "1.2.1", .after = cases[_i]},
        CODE_TAG_INVALID, "sequence");
}

END_TEST

static size_t many;

static void
put_many(struct dicom_bytes *bytes)
{
    char uid[32];
    bytes_sequence(bytes, 0x00082112);
    for (size_t i = 0; i < many; i++) {
        snprintf(uid, sizeof uid, "1.2.4.%zu", i + 1);
        bytes_item(bytes);
        bytes_text(bytes, 0x00081155, "UI", uid);
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

START_TEST(at_the_limit_and_beyond)
{
    static const struct edge edge = EDGE(OBJECT_REFERENCES);
    const struct sample_object object = {.class_uid = CLASS_SEG, .sop = "1.2.1", .before = put_many};
    many = (size_t)edge.most;
    object_peek_free(object_open(&object));
    many++;
    assert_refused(&object, edge.code, "more than 16384");
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("object_peek");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_structure_set);
    tcase_add_test(tcase, persons_and_regions);
    tcase_add_test(tcase, without_a_series_the_images_identify_it);
    tcase_add_test(tcase, without_images_the_frame_of_reference_identifies_it);
    tcase_add_test(tcase, a_segmentation);
    tcase_add_test(tcase, a_truncated_segmentation);
    tcase_add_test(tcase, a_report);
    tcase_add_test(tcase, objects_without_references);
    tcase_add_loop_test(tcase, sequences_known_only_to_the_dictionary, 0, 4);
    tcase_add_test(tcase, at_the_limit_and_beyond);
    Suite *suite = suite_create("object_peek");
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

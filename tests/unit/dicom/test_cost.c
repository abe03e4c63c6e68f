/*
 * What a file costs grows with its bytes, and no faster, whatever is in it: the worst of each kind
 * goes through all that reads files, at a size, twice and four times that. So does its memory.
 */
#include "dicom/read/scan.h"
#include "tests/share.h"
#include "tests/unit/dicom/deflated.h"
#include "tests/unit/dicom/peek_sample.h"
#include "tests/unit/growth.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

/* A file whose size is n in something that a parser could count, compare or nest. */
struct kind {
    const char *name;
    size_t n;
    const char *syntax;
    void (*header)(struct dicom_bytes *bytes, size_t n); /* more elements, before the pixel data */
    int32_t (*frames)(size_t n);                         /* NULL: one */
    void (*fragments)(struct dicom_bytes *bytes, size_t n);
};

static const struct kind *making;
static size_t making_n;

/* ---- elements ---- */

static char *
repeated(const char *text, size_t n)
{
    const size_t length = strlen(text);
    char *all = malloc(n * length + 1);
    ck_assert_ptr_nonnull(all);
    for (size_t i = 0; i < n; i++)
        memcpy(all + i * length, text, length);
    all[n * length] = 0;
    return all;
}

/* In a VR whose length has 32 bits. */
static void
put_long_text(struct dicom_bytes *bytes, uint32_t tag, const char *part, size_t n)
{
    char *text = repeated(part, n);
    bytes_text(bytes, tag, "UC", text);
    free(text);
}

static void
many_values(struct dicom_bytes *bytes, size_t n)
{
    put_long_text(bytes, 0x00080008, "A\\", n);
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    put_measures(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
long_comments(struct dicom_bytes *bytes, size_t n)
{
    put_long_text(bytes, 0x00104000, "comment ", n);
    put_long_text(bytes, 0x00204000, "comment ", n);
}

static void
many_names(struct dicom_bytes *bytes, size_t n)
{
    put_long_text(bytes, 0x00100010, "^=\x80", n);
}

static void
many_sets(struct dicom_bytes *bytes, size_t n)
{
    put_long_text(bytes, 0x00080005, "ISO 2022 IR 87\\", n);
}

static void
open_shared(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
}

static void
close_shared(struct dicom_bytes *bytes)
{
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

/* Empty elements of wanted groups. */
static void
put_ascending(struct dicom_bytes *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes_header(bytes, 0x00200000 + (uint32_t)i, "LO", 0);
}

static void
put_descending(struct dicom_bytes *bytes, size_t n)
{
    for (size_t i = n; i > 0; i--)
        bytes_header(bytes, 0x00200000 + (uint32_t)i, "LO", 0);
}

static void
descending(struct dicom_bytes *bytes, size_t n)
{
    open_shared(bytes);
    put_descending(bytes, n);
    close_shared(bytes);
}

static void
ascending(struct dicom_bytes *bytes, size_t n)
{
    open_shared(bytes);
    put_ascending(bytes, n);
    close_shared(bytes);
}

static void
descending_in_group(struct dicom_bytes *bytes, size_t n)
{
    open_shared(bytes);
    bytes_sequence(bytes, 0x00209116);
    bytes_item(bytes);
    put_descending(bytes, n);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    close_shared(bytes);
}

static void
descending_in_frame(struct dicom_bytes *bytes, size_t n)
{
    bytes_sequence(bytes, 0x52009230);
    bytes_item(bytes);
    put_descending(bytes, n);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
the_same(struct dicom_bytes *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes_text(bytes, 0x00204000, "LT", "again");
}

/* Of a group that is read, each block reserved, from the last to the first, again and again. */
static void
creators(struct dicom_bytes *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes_text(bytes, 0x001900FF - (uint32_t)(i % 0xF0), "LO", "SIEMENS MR HEADER");
}

static void
put_creators(struct dicom_bytes *bytes, uint32_t group)
{
    for (uint32_t block = 0x10; block <= 0xFF; block++)
        bytes_text(bytes, group << 16 | block, "LO", "Somebody else");
}

static void
put_all_creators(struct dicom_bytes *bytes)
{
    static const uint32_t groups[] = {0x0019, 0x0043, 0x0065, 0x2001, 0x2005};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        put_creators(bytes, groups[i]);
}

static void
creators_and_frames(struct dicom_bytes *bytes, size_t n)
{
    (void)n;
    put_all_creators(bytes);
    open_shared(bytes);
    put_measures(bytes);
    close_shared(bytes);
}

static void
the_same_in_an_item(struct dicom_bytes *bytes, size_t n)
{
    open_shared(bytes);
    for (size_t i = 0; i < n; i++)
        bytes_text(bytes, 0x00204000, "LT", "again");
    close_shared(bytes);
}

/* As many blocks as there are, of as many groups as it takes, in one item. */
static void
creators_of_an_item(struct dicom_bytes *bytes, size_t n)
{
    (void)n;
    open_shared(bytes);
    put_all_creators(bytes);
    close_shared(bytes);
}

/* Siemens' header of attributes without values. */
static void
csa(struct dicom_bytes *bytes, size_t n)
{
    struct dicom_bytes header = {0};
    bytes_put(&header, "SV10\4\3\2\1", 8);
    bytes_u32(&header, (uint32_t)n);
    bytes_u32(&header, 77);
    for (size_t i = 0; i < n; i++) {
        static const uint8_t attribute[84] = "B_matriy";
        bytes_put(&header, attribute, sizeof(attribute));
    }
    bytes_text(bytes, 0x00290010, "LO", "SIEMENS CSA HEADER");
    bytes_element(bytes, 0x00291010, "OB", header.data, header.size);
    bytes_free(&header);
}

static void
unwanted(struct dicom_bytes *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes_header(bytes, 0x00210011, "LO", 0);
}

/* ---- items ---- */

static void
empty_items(struct dicom_bytes *bytes, uint32_t sequence, size_t n)
{
    bytes_sequence(bytes, sequence);
    for (size_t i = 0; i < n; i++)
        bytes_delimiter(bytes, 0xFFFEE000, 0);
    bytes_sequence_end(bytes);
}

static void
items_of_frames(struct dicom_bytes *bytes, size_t n)
{
    empty_items(bytes, 0x52009230, n);
}

static void
items_of_shared(struct dicom_bytes *bytes, size_t n)
{
    empty_items(bytes, 0x52009229, n);
}

static void
items_of_group(struct dicom_bytes *bytes, size_t n)
{
    open_shared(bytes);
    empty_items(bytes, 0x00209116, n);
    close_shared(bytes);
}

static void
items_of_a_frame(struct dicom_bytes *bytes, size_t n)
{
    bytes_sequence(bytes, 0x52009230);
    bytes_item(bytes);
    empty_items(bytes, 0x00209116, n);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

/* As many as there may be, in each frame. */
static void
items_of_all_frames(struct dicom_bytes *bytes, size_t n)
{
    bytes_sequence(bytes, 0x52009230);
    for (size_t i = 0; i < n; i++) {
        bytes_item(bytes);
        empty_items(bytes, 0x00209116, LIMIT_FRAME_ELEMENTS - 1);
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

/* A text each, as long as one that is read. */
static void
texts(struct dicom_bytes *bytes, uint32_t sequence, size_t n)
{
    static const char text[LIMIT_TEXT_BYTES];
    bytes_sequence(bytes, sequence);
    for (size_t i = 0; i < n; i++) {
        bytes_item(bytes);
        bytes_element(bytes, 0x00204000, "LT", text, sizeof(text));
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

static void
texts_of_shared(struct dicom_bytes *bytes, size_t n)
{
    texts(bytes, 0x52009229, n);
}

static void
texts_of_frames(struct dicom_bytes *bytes, size_t n)
{
    texts(bytes, 0x52009230, n);
}

static void
items_of_patient(struct dicom_bytes *bytes, size_t n)
{
    empty_items(bytes, 0x00101002, n);
}

static void
codes(struct dicom_bytes *bytes, size_t n)
{
    bytes_sequence(bytes, 0x00081032);
    for (size_t i = 0; i < n; i++) {
        bytes_item(bytes);
        bytes_text(bytes, 0x00080100, "SH", "1");
        bytes_text(bytes, 0x00080102, "SH", "99X");
        bytes_text(bytes, 0x00080104, "LO", i % 2 ? "Some meaning" : "");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

static void
code_descending(struct dicom_bytes *bytes, size_t n)
{
    bytes_sequence(bytes, 0x00081032);
    bytes_item(bytes);
    put_descending(bytes, n);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
code_ascending(struct dicom_bytes *bytes, size_t n)
{
    bytes_sequence(bytes, 0x00081032);
    bytes_item(bytes);
    put_ascending(bytes, n);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
depth(struct dicom_bytes *bytes, size_t n)
{
    open_shared(bytes);
    for (size_t i = 0; i < n; i++) {
        bytes_sequence(bytes, 0x00209116);
        bytes_item(bytes);
    }
    for (size_t i = 0; i < n; i++)
        close_shared(bytes);
    close_shared(bytes);
}

/* ---- frames ---- */

static int32_t
as_many(size_t n)
{
    return (int32_t)n;
}

static int32_t
fifty(size_t n)
{
    (void)n;
    return 50;
}

static int32_t
thousand(size_t n)
{
    (void)n;
    return 1000;
}

static void
shared_only(struct dicom_bytes *bytes, size_t n)
{
    (void)n;
    open_shared(bytes);
    put_measures(bytes);
    close_shared(bytes);
}

static void
own_items(struct dicom_bytes *bytes, size_t n)
{
    bytes_sequence(bytes, 0x52009230);
    for (size_t i = 0; i < n; i++) {
        bytes_item(bytes);
        put_content(bytes, (uint32_t)i);
        put_group(bytes, 0x00209113, 0x00200032, "1\\2\\3");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

/* ---- pixel data ---- */

static void
end_fragments(struct dicom_bytes *bytes)
{
    bytes_delimiter(bytes, 0xFFFEE0DD, 0);
}

static void
empty_fragments(struct dicom_bytes *bytes, size_t n)
{
    for (size_t i = 0; i <= n; i++)
        bytes_fragment(bytes, "", 0);
    end_fragments(bytes);
}

/* A fragment each of one pixel, and a table that is wrong. */
static void
fragments_of_frames(struct dicom_bytes *bytes, size_t n)
{
    static const uint8_t one[68] = {1, [4] = 64, [64] = 0, [65] = 7};
    bytes_delimiter(bytes, 0xFFFEE000, 4 * (uint32_t)n);
    for (size_t i = 0; i < n; i++)
        bytes_u32(bytes, 0xFFFFFFF0);
    for (size_t i = 0; i < n; i++)
        bytes_fragment(bytes, one, sizeof(one));
    end_fragments(bytes);
}

/* Runs that write nothing. */
static void
idle_runs(struct dicom_bytes *bytes, size_t n)
{
    uint8_t *frame = malloc(64 + n);
    ck_assert_ptr_nonnull(frame);
    memset(frame, 0, 64);
    memset(frame + 64, 128, n);
    frame[0] = 1;
    frame[4] = 64;
    bytes_fragment(bytes, "", 0);
    bytes_fragment(bytes, frame, 64 + n);
    end_fragments(bytes);
    free(frame);
}

/* JPEG: tables before a frame that never comes. */
static void
jpeg_tables(struct dicom_bytes *bytes, size_t n)
{
    struct dicom_bytes jpeg = {0};
    bytes_put(&jpeg, "\xFF\xD8", 2);
    for (size_t i = 0; i < n; i++)
        bytes_put(&jpeg, "\xFF\xFE\x00\x02", 4);
    bytes_fragment(bytes, "", 0);
    bytes_fragment(bytes, jpeg.data, jpeg.size);
    end_fragments(bytes);
    bytes_free(&jpeg);
}

/* JPEG 2000: more and more tiles of one pixel, of which none comes. */
static void
jpeg_2000_tiles(struct dicom_bytes *bytes, size_t n)
{
    static const uint8_t head[] = {0xFF, 0x4F, 0xFF, 0x51, 0, 41, 0, 0};
    struct dicom_bytes frame = {.big_endian = true};
    bytes_put(&frame, head, sizeof(head));
    const uint32_t numbers[] = {(uint32_t)n, 1, 0, 0, 1, 1, 0, 0};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        bytes_u32(&frame, numbers[i]);
    bytes_put(&frame, "\0\1\7\1\1", 5);
    bytes_put(&frame, "\xFF\x52\0\x0C\0\0\0\1\0\0\4\4\0\1", 14);
    bytes_put(&frame, "\xFF\x5C\0\4\x40\x40", 6);
    bytes_put(&frame, "\xFF\x90\0\x0A\0\0\0\0\0\0\0\1\xFF\x93\xFF\xD9", 16);
    bytes_fragment(bytes, "", 0);
    bytes_fragment(bytes, frame.data, frame.size + frame.size % 2);
    end_fragments(bytes);
    bytes_free(&frame);
}

static const struct kind kinds[] = {
    {"values", 20000, SYNTAX_EXPLICIT, many_values, fifty, NULL},
    {"comments", 200000, SYNTAX_EXPLICIT, long_comments, NULL, NULL},
    {"names", 20000, SYNTAX_EXPLICIT, many_names, NULL, NULL},
    {"character sets", 20000, SYNTAX_EXPLICIT, many_sets, NULL, NULL},
    {"ascending", 15000, SYNTAX_EXPLICIT, ascending, thousand, NULL},
    {"descending", 15000, SYNTAX_EXPLICIT, descending, NULL, NULL},
    {"descending in a group", 15000, SYNTAX_EXPLICIT, descending_in_group, NULL, NULL},
    {"descending in a frame", 15000, SYNTAX_EXPLICIT, descending_in_frame, NULL, NULL},
    {"descending in a code", 15000, SYNTAX_EXPLICIT, code_descending, NULL, NULL},
    {"ascending in a code", 15000, SYNTAX_EXPLICIT, code_ascending, NULL, NULL},
    {"the same", 20000, SYNTAX_EXPLICIT, the_same, NULL, NULL},
    {"the same in an item", 20000, SYNTAX_EXPLICIT, the_same_in_an_item, NULL, NULL},
    {"creators", 20000, SYNTAX_EXPLICIT, creators, NULL, NULL},
    {"creators and frames", 500, SYNTAX_EXPLICIT, creators_and_frames, as_many, NULL},
    {"CSA", 380, SYNTAX_EXPLICIT, csa, NULL, NULL},
    {"unwanted", 200000, SYNTAX_EXPLICIT, unwanted, NULL, NULL},
    {"unwanted, deflated", 200000, SYNTAX_DEFLATED, unwanted, NULL, NULL},
    {"items of frames", 100000, SYNTAX_EXPLICIT, items_of_frames, NULL, NULL},
    {"items of frames, deflated", 500000, SYNTAX_DEFLATED, items_of_frames, NULL, NULL},
    {"items of the shared", 100000, SYNTAX_EXPLICIT, items_of_shared, NULL, NULL},
    {"items of a group", 100000, SYNTAX_EXPLICIT, items_of_group, NULL, NULL},
    {"items of a frame", 100000, SYNTAX_EXPLICIT, items_of_a_frame, NULL, NULL},
    {"items of all frames", 60, SYNTAX_EXPLICIT, items_of_all_frames, as_many, NULL},
    {"texts", 2000, SYNTAX_EXPLICIT, texts_of_frames, NULL, NULL},
    {"items of the patient", 10000, SYNTAX_EXPLICIT, items_of_patient, NULL, NULL},
    {"codes", 10000, SYNTAX_EXPLICIT, codes, NULL, NULL},
    {"depth", 5000, SYNTAX_EXPLICIT, depth, NULL, NULL},
    {"frames", 10000, SYNTAX_EXPLICIT, shared_only, as_many, NULL},
    {"frames, deflated", 10000, SYNTAX_DEFLATED, shared_only, as_many, NULL},
    {"frames with items", 2000, SYNTAX_EXPLICIT, own_items, as_many, NULL},
    {"fragments", 100000, SYNTAX_RLE, NULL, NULL, empty_fragments},
    {"fragments of frames", 10000, SYNTAX_RLE, NULL, as_many, fragments_of_frames},
    {"idle runs", 500000, SYNTAX_RLE, NULL, NULL, idle_runs},
    {"tiles of JPEG 2000", 16000, "1.2.840.10008.1.2.4.90", NULL, NULL, jpeg_2000_tiles},
    {"tables of JPEG", 100000, "1.2.840.10008.1.2.4.50", NULL, NULL, jpeg_tables},
};

/* ---- measuring ---- */

static void
making_header(struct dicom_bytes *bytes)
{
    if (making->header)
        making->header(bytes, making_n);
}

static void
making_fragments(struct dicom_bytes *bytes)
{
    making->fragments(bytes, making_n);
}

static void
make(const struct kind *kind, size_t n)
{
    char frames[16];
    struct sample_image image = SAMPLE_IMAGE;
    making = kind;
    making_n = n;
    image.syntax = kind->syntax;
    image.class_uid = CLASS_ENHANCED_MR;
    image.modality = "MR";
    image.image_type = NULL;
    image.rows = image.columns = 1;
    image.bits_allocated = image.bits_stored = 8;
    image.high_bit = 7;
    image.extra = making_header;
    if (kind->frames) {
        snprintf(frames, sizeof(frames), "%d", kind->frames(n));
        image.frames = frames;
    }
    if (kind->fragments)
        image.encapsulated = making_fragments;
    if (strcmp(kind->syntax, SYNTAX_DEFLATED) == 0)
        sample_write_deflated(&image, path, 0);
    else
        sample_write(&image, path);
}

/* All that is ever done with a file of somebody else. */
static void
read_whole(void)
{
    struct error error;
    struct dicom_instance *instance;
    struct dicom_inherited inherited;
    struct dicom_identity identity;
    struct dicom_pixels *pixels;
    uint16_t value;
    if (dicom_peek(path, &instance, &error) == 0) {
        if (dicom_pixels_open(instance, &pixels, &error) == 0) {
            (void)dicom_pixels_read(pixels, 0, &value, &error);
            (void)dicom_pixels_read(pixels, instance->frame_count - 1, &value, &error);
            dicom_pixels_close(pixels);
        }
        dicom_instance_free(instance);
    }
    if (dicom_inherit(path, &inherited, &error) == 0)
        dicom_inherited_free(&inherited);
    dicom_identify(path, &identity);
}

static double
cost(const void *kind, size_t n)
{
    (void)kind;
    (void)n;
    const double begun = growth_clock();
    read_whole();
    return growth_clock() - begun;
}

static double
made_cost(const void *kind, size_t n)
{
    make(kind, n);
    return cost(kind, n);
}

START_TEST(time_of_the_processor)
{
    if (!test_share_has((uint64_t)_i))
        return;
    expect_linear(kinds[_i].name, made_cost, &kinds[_i], kinds[_i].n);
}

END_TEST

/* ---- limits ---- */

static const struct {
    struct kind kind; /* with n, beyond the limit */
    enum code code;
} beyond[] = {
    {{"KEPT_MIB", 4096, SYNTAX_EXPLICIT, texts_of_shared, NULL, NULL}, CODE_SIZE_IMPLAUSIBLE},
    {{"KEPT_ELEMENTS", LIMIT_KEPT_ELEMENTS, SYNTAX_EXPLICIT, items_of_shared, NULL, NULL},
     CODE_SIZE_IMPLAUSIBLE},
    {{"FRAMES_KEPT_MIB", 16384, SYNTAX_EXPLICIT, texts_of_frames, NULL, NULL},
     CODE_SIZE_IMPLAUSIBLE},
    {{"FRAME_ELEMENTS", LIMIT_FRAME_ELEMENTS, SYNTAX_EXPLICIT, items_of_a_frame, NULL, NULL},
     CODE_SIZE_IMPLAUSIBLE},
    {{"ITEM_ELEMENTS", 1, SYNTAX_EXPLICIT, creators_of_an_item, NULL, NULL}, CODE_SIZE_IMPLAUSIBLE},
    {{"DISORDER", LIMIT_DISORDER + 2, SYNTAX_EXPLICIT, the_same, NULL, NULL}, CODE_TAG_INVALID},
    {{"DEPTH", LIMIT_DEPTH, SYNTAX_EXPLICIT, depth, NULL, NULL}, CODE_TAG_INVALID},
    {{"FRAMES", LIMIT_FRAMES + 1, SYNTAX_EXPLICIT, NULL, as_many, NULL}, CODE_SIZE_IMPLAUSIBLE},
    {{"items of FRAMES", LIMIT_FRAMES + 1, SYNTAX_EXPLICIT, items_of_frames, NULL, NULL},
     CODE_SIZE_IMPLAUSIBLE},
    {{"FRAGMENTS", LIMIT_FRAGMENTS, SYNTAX_RLE, NULL, NULL, empty_fragments},
     CODE_SIZE_IMPLAUSIBLE},
    {{"EXPANSION of frames", LIMIT_FRAMES, SYNTAX_DEFLATED, NULL, as_many, NULL},
     CODE_EXPANSION_IMPLAUSIBLE},
    {{"EXPANSION of elements", (LIMIT_EXPANDED_MIB << 17) + 1, SYNTAX_DEFLATED, unwanted, NULL,
      NULL},
     CODE_EXPANSION_IMPLAUSIBLE},
};

enum { BEYOND = sizeof(beyond) / sizeof(beyond[0]) };

START_TEST(beyond_a_limit)
{
    make(&beyond[_i].kind, beyond[_i].kind.n);
    const struct error *error = peek_error();
    ck_assert_msg(error->code == beyond[_i].code, "%s: %s: %s", beyond[_i].kind.name,
                  code_name(error->code), error->message);
}

END_TEST

START_TEST(beyond_the_time)
{
    struct scan scan = {.begun = -LIMIT_HEADER_SECONDS - 1};
    struct error error;
    ck_assert_int_eq(scan_check_time(&scan, "a", &error), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_READING_TOO_LONG);
}

END_TEST

START_TEST(too_many_tiles)
{
    static const struct kind tiles = {"TILES", 4097, "1.2.840.10008.1.2.4.90",
                                      NULL,    NULL, jpeg_2000_tiles};
    struct dicom_pixels *pixels;
    struct error error;
    uint16_t value;
    make(&tiles, LIMIT_TILES + 1);
    struct dicom_instance *instance = peek_or_fail();
    ck_assert_int_eq(dicom_pixels_open(instance, &pixels, &error), 0);
    ck_assert_int_eq(dicom_pixels_read(pixels, 0, &value, &error), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_PIXELS_UNDECODABLE);
    ck_assert_ptr_nonnull(strstr(error.message, "4097 tiles"));
    dicom_pixels_close(pixels);
    dicom_instance_free(instance);
}

END_TEST

/* ---- memory ---- */

#ifdef __SANITIZE_ADDRESS__
#define MOST_MIB 512 /* what is freed is kept for a while */
#else
#define MOST_MIB 96
#endif

/* Of VmHWM or VmRSS, in MiB. */
static long
status_mib(const char *name)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    ck_assert_ptr_nonnull(status);
    while (fgets(line, sizeof(line), status))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtol(line + strlen(name) + 1, NULL, 10);
    fclose(status);
    return kib / 1024;
}

static void
forget_peak(void)
{
    FILE *refs = fopen("/proc/self/clear_refs", "w");
    ck_assert(refs && fputs("5", refs) >= 0);
    fclose(refs);
}

START_TEST(memory)
{
    if (!test_share_has((uint64_t)_i))
        return;
    const struct kind *kind = &kinds[_i];
    make(kind, 4 * kind->n);
    malloc_trim(0);
    forget_peak();
    const long before = status_mib("VmRSS:");
    read_whole();
    const long grown = status_mib("VmHWM:") - before;
    ck_assert_msg(grown <= MOST_MIB, "%s: %ld MiB", kind->name, grown);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_cost");
    TCase *tests = new_case(suite, "cost");
    const int count = (int)(sizeof(kinds) / sizeof(kinds[0]));
    tcase_add_loop_test(tests, time_of_the_processor, 0, count);
    tcase_add_loop_test(tests, memory, 0, count);
    tcase_add_loop_test(tests, beyond_a_limit, 0, BEYOND);
    tcase_add_test(tests, beyond_the_time);
    tcase_add_test(tests, too_many_tiles);
    return suite_run(suite);
}

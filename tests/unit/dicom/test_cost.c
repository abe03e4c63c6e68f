/*
 * Checks that time and memory for a file grow at most linearly with its bytes, for any content. The worst file of
 * each kind goes through all readers of files, at a size, twice and four times that.
 */
#include "dicom/read/scan/scan_header.h"
#include "tests/share.h"
#include "tests/unit/dicom/deflated.h"
#include "tests/unit/dicom/peek_sample.h"
#include "tests/unit/edge.h"
#include "tests/unit/growth.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

/* A file whose size is n in something that a parser may count, compare or nest. */
struct kind {
    const char *name;
    size_t n;
    const char *syntax;
    void (*header)(struct dicom_bytes *bytes, size_t n); /* adds elements before the pixel data */
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

/* Puts text with a VR whose length has 32 bits. */
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

/* Puts empty elements of wanted groups. */
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

/* Puts reservations of all blocks of a group that is read, from the last to the first, again and again. */
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

/* Puts a Siemens header of attributes without values. */
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
    const size_t begin = bytes->size;
    bytes_header(bytes, 0x00230011, "LO", 0);
    bytes_repeat(bytes, begin, n);
}

/* ---- items ---- */

static void
empty_items(struct dicom_bytes *bytes, uint32_t sequence, size_t n)
{
    bytes_sequence(bytes, sequence);
    const size_t begin = bytes->size;
    bytes_delimiter(bytes, 0xFFFEE000, 0);
    bytes_repeat(bytes, begin, n);
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

/* Puts the maximum of items in each frame. */
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

/* Puts texts of the maximum length that is read, one per item. */
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
    const size_t begin = bytes->size;
    bytes_fragment(bytes, "", 0);
    bytes_repeat(bytes, begin, n + 1);
    end_fragments(bytes);
}

/* Puts one fragment of one pixel per frame, and a wrong table. */
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

/* Puts runs without output. */
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

/* Puts JPEG tables before a missing frame. */
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

/* Puts JPEG 2000 with more and more missing tiles of one pixel. */
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
make(const struct kind *kind, size_t n, void (*shape)(struct sample_image *image, size_t n))
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
    if (shape)
        shape(&image, n);
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

/* Runs every reader of foreign files. */
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
    make(kind, n, NULL);
    return cost(kind, n);
}

START_TEST(time_of_the_processor)
{
    if (!test_share_has((uint64_t)_i))
        return;
    expect_linear(kinds[_i].name, made_cost, &kinds[_i], kinds[_i].n);
}

END_TEST

/* ---- limits: at them, and one beyond ---- */

/* Puts n kept bytes: items of one element each, with `beside` bytes in addition to its value. */
static void
put_bytes(struct dicom_bytes *bytes, uint32_t sequence, size_t n, size_t beside)
{
    static const char text[LIMIT_TEXT_BYTES];
    bytes_sequence(bytes, sequence);
    while (n > 0) {
        size_t size = n - beside < sizeof(text) ? n - beside : sizeof(text);
        if (n - beside - size > 0 && n - beside - size < beside)
            size -= beside; /* the last one has the rest */
        bytes_item(bytes);
        bytes_element(bytes, 0x00204000, "LT", text, size);
        bytes_item_end(bytes);
        n -= beside + size;
    }
    bytes_sequence_end(bytes);
}

enum { BESIDE_SHARED = 24, BESIDE_FRAME = 8 };

static void
bytes_of_shared(struct dicom_bytes *bytes, size_t n)
{
    put_bytes(bytes, 0x52009229, n, BESIDE_SHARED);
}

static void
bytes_of_frames(struct dicom_bytes *bytes, size_t n)
{
    put_bytes(bytes, 0x52009230, n, BESIDE_FRAME);
}

static int32_t
frames_of_bytes(size_t n)
{
    const size_t each = LIMIT_TEXT_BYTES + BESIDE_FRAME;
    return (int32_t)((n + each - 1) / each);
}

static void
creators_of_an_item(struct dicom_bytes *bytes, size_t n)
{
    static const uint32_t groups[] = {0x0019, 0x0043, 0x0065, 0x2001, 0x2005};
    open_shared(bytes);
    for (size_t i = 0; i < n; i++)
        bytes_text(bytes, groups[i / 0xF0] << 16 | (uint32_t)(0x10 + i % 0xF0), "LO", "Nobody");
    close_shared(bytes);
}

/* Adds enough bytes to allow any number of frames. */
static void
with_ballast(struct dicom_bytes *bytes, size_t n)
{
    static const uint8_t ballast[2 << 20];
    bytes_element(bytes, 0x00211000, "OB", ballast, sizeof(ballast));
    shared_only(bytes, n);
}

static void
items_with_ballast(struct dicom_bytes *bytes, size_t n)
{
    with_ballast(bytes, n);
    items_of_frames(bytes, n);
}

/* Puts compressed data that is not decoded, at a hundredth of its decoded size. */
static void
put_compressed(struct dicom_bytes *bytes, size_t frames, size_t size)
{
    uint8_t *zeros = calloc(size, 1);
    ck_assert_ptr_nonnull(zeros);
    bytes_fragment(bytes, "", 0);
    for (size_t i = 0; i < frames; i++)
        bytes_fragment(bytes, zeros, size);
    end_fragments(bytes);
    free(zeros);
}

enum { SIDE = 16384, PART = 3 << 20 };

static void
one_large(struct dicom_bytes *bytes, size_t n)
{
    (void)n;
    put_compressed(bytes, 1, PART);
}

static void
n_large(struct dicom_bytes *bytes, size_t n)
{
    put_compressed(bytes, n, PART);
}

static void
fill_file(struct dicom_bytes *bytes, size_t n)
{
    const size_t items = 3 * 8; /* the table, the fragment's header, the end */
    put_compressed(bytes, 1, n - bytes->size - items);
}

static void
hardly_any(struct dicom_bytes *bytes, size_t n)
{
    (void)n;
    put_compressed(bytes, 1, 2);
}

static void
of_n_columns(struct sample_image *image, size_t n)
{
    image->rows = SIDE;
    image->columns = (unsigned)n;
}

static void
of_largest_planes(struct sample_image *image, size_t n)
{
    (void)n;
    image->rows = image->columns = SIDE;
}

/* Makes 64 MiB and more, from frames of some KiB. */
static void
of_8200(struct sample_image *image, size_t n)
{
    (void)n;
    image->rows = image->columns = 8200;
}

static void
of_n_rows(struct sample_image *image, size_t n)
{
    image->rows = (unsigned)n;
    image->columns = 65535;
}

/* For each limit: the units of n per unit of the limit, and the units that the sample has without n. */
static const struct {
    struct edge edge;
    double scale;
    int own, step;
    struct kind kind;
    void (*shape)(struct sample_image *image, size_t n);
} edges[] = {
    {EDGE(HEADER_ELEMENTS), 1, 35, 1, {.header = unwanted}, NULL},
    {EDGE(KEPT_MIB), 1 << 20, 444, 2, {.header = bytes_of_shared}, NULL},
    {EDGE(KEPT_ELEMENTS), 1, 30, 1, {.header = items_of_shared}, NULL},
    {EDGE(FRAMES_KEPT_MIB), 1 << 20, 0, 2, {.header = bytes_of_frames, .frames = frames_of_bytes}, NULL},
    {EDGE(FRAME_ELEMENTS), 1, 1, 1, {.header = items_of_a_frame}, NULL},
    {EDGE(ITEM_ELEMENTS), 1, 0, 1, {.header = creators_of_an_item}, NULL},
    {EDGE(DISORDER), 1, 0, 1, {.header = the_same}, NULL},
    {EDGE(DEPTH), 1, 1, 1, {.header = depth}, NULL},
    {EDGE(FRAMES), 1, 0, 1, {.header = with_ballast, .frames = as_many}, NULL},
    {EDGE(FRAMES), 1, 0, 1, {.header = items_with_ballast, .frames = as_many}, NULL},
    {EDGE(PLANE_MI), (1 << 20) / SIDE, 0, 1, {.syntax = SYNTAX_RLE, .fragments = one_large}, of_n_columns},
    {EDGE(VOXELS_MI),
     1.0 / 256,
     0,
     1,
     {.syntax = SYNTAX_RLE, .frames = as_many, .fragments = n_large},
     of_largest_planes},
    {EDGE(FRAGMENTS), 1, 0, 1, {.syntax = SYNTAX_RLE, .fragments = empty_fragments}, NULL},
    {EDGE(EXPANSION), 6724.105, 0, -2, {.syntax = SYNTAX_RLE, .fragments = fill_file}, of_8200},
    {EDGE(EXPANDED_MIB), 16, 0, 1, {.syntax = SYNTAX_RLE, .fragments = hardly_any}, of_n_rows},
};

enum { EDGES = sizeof(edges) / sizeof(edges[0]) };

static size_t
n_at(int i)
{
    return (size_t)((double)edges[i].edge.most * edges[i].scale) - (size_t)edges[i].own;
}

static void
make_edge(int i, size_t n)
{
    struct kind kind = edges[i].kind;
    kind.syntax = kind.syntax ? kind.syntax : SYNTAX_EXPLICIT;
    make(&kind, n, edges[i].shape);
}

/* With a sanitizer some cases exceed the time limit of a header. */
static bool
takes_too_long(const struct error *error)
{
    return !GROWTH_JUDGED && error->code == CODE_READING_TOO_LONG;
}

START_TEST(at_a_limit_and_beyond)
{
    if (!test_turn_has((uint64_t)_i))
        return;
    struct error error = {0};
    struct dicom_instance *instance;
    make_edge(_i, n_at(_i));
    const int rc = dicom_peek(path, &instance, &error);
    if (rc != 0 && takes_too_long(&error))
        return;
    ck_assert_msg(rc == 0, "%s: %s: %s", edges[_i].edge.name, code_name(error.code), error.message);
    dicom_instance_free(instance);
    make_edge(_i, n_at(_i) + (size_t)edges[_i].step);
    const struct error *beyond = peek_error();
    ck_assert_msg(beyond->code == edges[_i].edge.code || takes_too_long(beyond), "%s: %s: %s", edges[_i].edge.name,
                  code_name(beyond->code), beyond->message);
}

END_TEST

/* ---- inflation ---- */

static const struct kind inflated[] = {
    {"EXPANSION of frames", LIMIT_FRAMES, SYNTAX_DEFLATED, NULL, as_many, NULL},
    {"EXPANSION of elements", (LIMIT_EXPANDED_MIB << 17) + 1, SYNTAX_DEFLATED, unwanted, NULL, NULL},
};

START_TEST(beyond_a_limit_once_inflated)
{
    if (!test_turn_has((uint64_t)_i))
        return;
    make(&inflated[_i], inflated[_i].n, NULL);
    const struct error *error = peek_error();
    ck_assert_msg(error->code == CODE_EXPANSION_IMPLAUSIBLE, "%s: %s", inflated[_i].name, code_name(error->code));
}

END_TEST

/* ---- skipped data ---- */

static void
description(struct dicom_bytes *bytes, size_t n)
{
    char *text = repeated("a", n);
    bytes_text(bytes, 0x0008103E, "LO", text);
    free(text);
}

static bool
has_description(const struct dicom_instance *instance)
{
    return instance->series_description[0] != 0;
}

static void
private_b_value(struct dicom_bytes *bytes, size_t n)
{
    char *blanks = repeated(" ", n);
    memcpy(blanks, "1000", 4);
    bytes_text(bytes, 0x00190010, "LO", "SIEMENS MR HEADER");
    bytes_text(bytes, 0x0019100C, "IS", blanks);
    free(blanks);
}

static void
csa_b_value(struct dicom_bytes *bytes, size_t n)
{
    static const uint8_t zeros[LIMIT_CSA_BYTES + 2];
    struct dicom_bytes header = {0};
    char name[68] = "B_value";
    bytes_put(&header, "SV10\4\3\2\1", 8);
    bytes_u32(&header, 1);
    bytes_u32(&header, 77);
    bytes_put(&header, name, sizeof(name));
    bytes_put(&header, "IS\0", 4);
    bytes_u32(&header, 6);
    bytes_u32(&header, 1);
    bytes_u32(&header, 77);
    for (int i = 0; i < 4; i++)
        bytes_u32(&header, i == 2 ? 77 : 4);
    bytes_put(&header, "1000", 4);
    bytes_put(&header, zeros, n - header.size);
    bytes_text(bytes, 0x00290010, "LO", "SIEMENS CSA HEADER");
    bytes_element(bytes, 0x00291010, "OB", header.data, header.size);
    bytes_free(&header);
}

static void
csa_protocol(struct dicom_bytes *bytes, size_t n)
{
    static const char protocol[] = "### ASCCONV BEGIN ###\nsSliceArray.lSize\t = \t35\nsKSpace.ucDimension\t = \t0x2\n"
                                   "### ASCCONV END ###";
    char *text = calloc(1, n + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text + n - sizeof(protocol), protocol, sizeof(protocol));
    bytes_text(bytes, 0x00290010, "LO", "SIEMENS CSA HEADER");
    bytes_element(bytes, 0x00291020, "OB", text, n);
    free(text);
}

static bool
has_protocol(const struct dicom_instance *instance)
{
    return instance->counts[DICOM_COUNT_siemens] == 35;
}

static bool
has_b_value(const struct dicom_instance *instance)
{
    return strcmp(instance->frames[0].b_value, "1000") == 0;
}

static void
word_behind_others(struct dicom_bytes *bytes, size_t n)
{
    char *others = repeated("A\\", n - 1);
    char *words = malloc(strlen(others) + 16);
    ck_assert_ptr_nonnull(words);
    sprintf(words, "%sLOCALIZER", others);
    bytes_text(bytes, 0x00080008, "CS", words);
    free(words);
    free(others);
}

static bool
is_localizer(const struct dicom_instance *instance)
{
    return instance->frames[0].excluded == CODE_LOCALIZER;
}

static const struct {
    struct edge edge;
    int step;
    uint32_t tag; /* present in the sample */
    void (*put)(struct dicom_bytes *bytes, size_t n);
    bool (*is_seen)(const struct dicom_instance *instance);
} unseen[] = {
    {EDGE(TEXT_BYTES), 2, 0x0008103E, description, has_description},
    {EDGE(PRIVATE_BYTES), 2, 0, private_b_value, has_b_value},
    {EDGE(CSA_BYTES), 2, 0, csa_b_value, has_b_value},
    {EDGE(CSA_SERIES_BYTES), 2, 0, csa_protocol, has_protocol},
    {EDGE(VALUES), 1, 0x00080008, word_behind_others, is_localizer},
};

static int unseen_number;

static void
put_unseen(struct dicom_bytes *bytes)
{
    unseen[unseen_number].put(bytes, making_n);
}

static bool
seen(int number, size_t n)
{
    struct sample_image image = SAMPLE_IMAGE;
    unseen_number = number;
    making_n = n;
    image.class_uid = CLASS_MR;
    image.modality = "MR";
    image.without = unseen[number].tag;
    image.extra = put_unseen;
    struct dicom_instance *instance = write_and_peek(&image);
    const bool is_seen = unseen[number].is_seen(instance);
    dicom_instance_free(instance);
    return is_seen;
}

START_TEST(reading_stops_at_a_limit)
{
    const size_t most = (size_t)unseen[_i].edge.most;
    ck_assert_int_eq(unseen[_i].edge.code, CODE_NONE);
    ck_assert_msg(seen(_i, most), "%s", unseen[_i].edge.name);
    ck_assert_msg(!seen(_i, most + (size_t)unseen[_i].step), "%s", unseen[_i].edge.name);
}

END_TEST

/*
 * Puts Strain Description, whose VR allows any length. Since the patient is not an animal, it is dropped with a
 * warning.
 */
static void
strain(struct dicom_bytes *bytes)
{
    put_long_text(bytes, 0x00100212, "a", making_n);
}

static bool
is_looked_at(size_t n)
{
    struct sample_image image = SAMPLE_IMAGE;
    struct dicom_inherited inherited;
    struct error error;
    making_n = n;
    image.extra = strain;
    sample_write(&image, path);
    ck_assert_int_eq(dicom_inherit(path, &inherited, &error), 0);
    const bool is_told = strstr(inherited.left_out, "(0010,0212)") != NULL;
    dicom_inherited_free(&inherited);
    return is_told;
}

START_TEST(inherited_attributes_up_to_the_limit_and_beyond)
{
    static const struct edge edge = EDGE(INHERITED_BYTES);
    ck_assert_int_eq(edge.code, CODE_NONE);
    ck_assert(is_looked_at((size_t)edge.most));
    ck_assert(!is_looked_at((size_t)edge.most + 2));
}

END_TEST

static bool
is_gone(const void *context)
{
    return *(const bool *)context;
}

/* The check must not run at once: if a sender leaves after its last byte, cheap data is still stored. */
START_TEST(reading_stops_without_a_recipient)
{
    bool gone = true;
    const struct dicom_requestor requestor = {is_gone, &gone};
    struct scan scan = {.requestor = &requestor};
    struct error error;
    scan.begun = scan.polled = 1e9; /* of a thread that has run for longer than this one will */
    ck_assert_int_eq(scan_check_time(&scan, "a", &error), 0);
    scan.polled = -1;
    gone = false;
    ck_assert_int_eq(scan_check_time(&scan, "a", &error), 0);
    ck_assert_double_ge(scan.polled, 0); /* the check ran, and does not run again for a while */
    gone = true;
    scan.polled = -1;
    ck_assert_int_eq(scan_check_time(&scan, "a", &error), -ECANCELED);
    ck_assert_int_eq(error.code, CODE_ASSOCIATION_ABORTED);
}

END_TEST

START_TEST(at_the_time_and_beyond)
{
    static const struct edge edge = EDGE(HEADER_SECONDS);
    struct timespec now;
    struct error error;
    ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    const double clock = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    struct scan within = {.begun = clock - (double)edge.most + 1};
    struct scan beyond = {.begun = clock - (double)edge.most};
    ck_assert_int_eq(scan_check_time(&within, "a", &error), 0);
    ck_assert_int_eq(scan_check_time(&beyond, "a", &error), -EBADMSG);
    ck_assert_int_eq(error.code, edge.code);
}

END_TEST

/* Checks two images whose tiles are all missing, so that neither can be decoded. The error must be reported. */
static void
decode_tiles(size_t n, enum code code, char *message, size_t size)
{
    static const struct kind tiles = {"tiles", 0, "1.2.840.10008.1.2.4.90", NULL, NULL, jpeg_2000_tiles};
    struct dicom_pixels *pixels;
    struct error error;
    uint16_t value;
    make(&tiles, n, NULL);
    struct dicom_instance *instance = peek_or_fail();
    ck_assert_int_eq(dicom_pixels_open(instance, &pixels, &error), 0);
    ck_assert_int_eq(dicom_pixels_read(pixels, 0, &value, &error), -EBADMSG);
    ck_assert_int_eq(error.code, code);
    snprintf(message, size, "%s", error.message);
    dicom_pixels_close(pixels);
    dicom_instance_free(instance);
}

START_TEST(the_maximum_of_tiles_and_beyond)
{
    static const struct edge edge = EDGE(TILES);
    char message[512];
    decode_tiles((size_t)edge.most, edge.code, message, sizeof(message));
    ck_assert_msg(!strstr(message, "tiles"), "%s", message);
    decode_tiles((size_t)edge.most + 1, edge.code, message, sizeof(message));
    ck_assert_msg(strstr(message, "4097 tiles") != NULL, "%s", message);
}

END_TEST

/* ---- memory ---- */

#ifdef __SANITIZE_ADDRESS__
#define MOST_MIB 512 /* freed memory is kept for a while */
#else
#define MOST_MIB 96
#endif

/* Returns VmHWM or VmRSS, in MiB. */
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
    make(kind, 4 * kind->n, NULL);
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
    tcase_add_test(tests, reading_stops_without_a_recipient);
    tcase_add_loop_test(tests, at_a_limit_and_beyond, 0, EDGES);
    tcase_add_loop_test(tests, beyond_a_limit_once_inflated, 0, (int)(sizeof(inflated) / sizeof(inflated[0])));
    tcase_add_loop_test(tests, reading_stops_at_a_limit, 0, (int)(sizeof(unseen) / sizeof(unseen[0])));
    tcase_add_test(tests, inherited_attributes_up_to_the_limit_and_beyond);
    tcase_add_test(tests, at_the_time_and_beyond);
    tcase_add_test(tests, the_maximum_of_tiles_and_beyond);
    return suite_run(suite);
}

/* Frames: native pixels of every depth, every codec, fragments, damage, several threads at once. */
#include "dicom/dicom.h"
#include "tests/unit/dicom/compressed_frames.h"
#include "tests/unit/dicom/deflated.h"
#include "tests/unit/dicom_bytes.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static char path[64];

static void
setup(void)
{
    dicom_init();
    strcpy(path, "/tmp/noctule_pixels.XXXXXX");
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
    struct error error;
    struct dicom_instance *instance = NULL;
    int rc = dicom_peek(path, &instance, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    return instance;
}

static struct dicom_pixels *
open_or_fail(const struct dicom_instance *instance)
{
    struct error error;
    struct dicom_pixels *pixels = NULL;
    int rc = dicom_pixels_open(instance, &pixels, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    return pixels;
}

static void
read_or_fail(struct dicom_pixels *pixels, int32_t frame, void *destination)
{
    struct error error;
    int rc = dicom_pixels_read(pixels, frame, destination, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
}

/* Returns the code with which opening or reading frame 0 fails, or CODE_NONE. */
static enum code
code_of_reading(const struct dicom_instance *instance)
{
    static struct error error;
    static uint16_t samples[1 << 16];
    struct dicom_pixels *pixels;
    ck_assert_int_le((int64_t)instance->rows * instance->columns, 1 << 16);
    memset(&error, 0, sizeof(error));
    if (dicom_pixels_open(instance, &pixels, &error) == 0) {
        (void)dicom_pixels_read(pixels, 0, samples, &error);
        dicom_pixels_close(pixels);
    }
    return error.code;
}

/* ---- native ---- */

struct depth {
    unsigned allocated, stored, high_bit, is_signed;
};

static const struct depth depths[] = {
    {8, 8, 7, 0},    {8, 8, 7, 1},    {16, 8, 7, 0},   {16, 8, 7, 1},   {16, 9, 8, 1},
    {16, 10, 9, 0},  {16, 12, 11, 0}, {16, 12, 11, 1}, {16, 12, 15, 0}, {16, 12, 15, 1},
    {16, 12, 13, 1}, {16, 15, 14, 1}, {16, 16, 15, 0}, {16, 16, 15, 1},
};

enum { NATIVE_ROWS = 5, NATIVE_COLUMNS = 7, NATIVE_FRAMES = 3 };

#define NATIVE_COUNT (NATIVE_ROWS * NATIVE_COLUMNS * NATIVE_FRAMES)

/* Returns the value of pixel i: both ends of the range, zero, and a spread between. */
static int32_t
meant(const struct depth *depth, unsigned i)
{
    const int32_t range = 1 << depth->stored;
    const int32_t low = depth->is_signed ? -range / 2 : 0;
    const uint32_t spread[4] = {0, (uint32_t)range - 1, (uint32_t)range / 2, i * 2654435761u >> 9};
    return low + (int32_t)(spread[i % 4] % (uint32_t)range);
}

/* Returns the same pixel in its cell, with ones (overlays) in all other bits. */
static uint16_t
cell(const struct depth *depth, unsigned i)
{
    const unsigned shift = depth->high_bit + 1 - depth->stored;
    const uint32_t mask = ((1u << depth->stored) - 1) << shift;
    const uint32_t value = ((uint32_t)meant(depth, i) << shift) & mask;
    return (uint16_t)(value | ((i % 3 ? 0xFFFFu : 0) & ~mask));
}

static void
check_values(const struct depth *depth, const struct dicom_instance *instance, const void *values, unsigned first,
             unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int32_t value = 0;
        switch (instance->pixel) {
        case IMAGE_UINT8:
            value = ((const uint8_t *)values)[i];
            break;
        case IMAGE_INT16:
            value = ((const int16_t *)values)[i];
            break;
        case IMAGE_UINT16:
            value = ((const uint16_t *)values)[i];
            break;
        }
        ck_assert_msg(value == meant(depth, first + i), "%u/%u/%u/%u pixel %u: %d, not %d", depth->allocated,
                      depth->stored, depth->high_bit, depth->is_signed, first + i, value, meant(depth, first + i));
    }
}

static void
write_native(const struct depth *depth, const char *syntax, const char *vr)
{
    struct dicom_bytes cells = {.big_endian = strcmp(syntax, SYNTAX_BIG_ENDIAN) == 0};
    for (unsigned i = 0; i < NATIVE_COUNT; i++) {
        if (depth->allocated == 16)
            bytes_u16(&cells, cell(depth, i));
        else
            bytes_put(&cells, &(uint8_t){(uint8_t)meant(depth, i)}, 1);
    }
    if (cells.size % 2)
        bytes_put(&cells, "", 1);
    if (depth->allocated == 8 && cells.big_endian && strcmp(vr, "OW") == 0)
        for (size_t i = 0; i < cells.size; i += 2) {
            const uint8_t byte = cells.data[i];
            cells.data[i] = cells.data[i + 1];
            cells.data[i + 1] = byte;
        }
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = syntax;
    image.rows = NATIVE_ROWS;
    image.columns = NATIVE_COLUMNS;
    image.frames = "3";
    image.bits_allocated = depth->allocated;
    image.bits_stored = depth->stored;
    image.high_bit = depth->high_bit;
    image.is_signed = depth->is_signed;
    image.pixels = cells.data;
    image.pixel_size = cells.size;
    image.pixel_vr = vr;
    sample_write(&image, path);
    bytes_free(&cells);
}

/* Reads rows apart, in each number. */
static void
check_rows(const struct depth *depth, const struct dicom_instance *instance, struct dicom_pixels *pixels, int32_t frame)
{
    struct error error;
    ck_assert(dicom_pixels_by_rows(instance));
    for (int32_t first = 0; first < NATIVE_ROWS; first++)
        for (int32_t count = 1; first + count <= NATIVE_ROWS; count++) {
            const unsigned size = (unsigned)count * NATIVE_COLUMNS;
            void *values = malloc(size * image_pixel_size(instance->pixel));
            ck_assert_ptr_nonnull(values);
            ck_assert_int_eq(dicom_pixels_read_rows(pixels, frame, first, count, values, &error), 0);
            check_values(depth, instance, values, (unsigned)(frame * NATIVE_ROWS + first) * NATIVE_COLUMNS, size);
            free(values);
        }
    ck_assert_int_eq(dicom_pixels_read_rows(pixels, frame, 3, NATIVE_ROWS - 2, &frame, &error), -EINVAL);
    ck_assert_int_eq(dicom_pixels_read_rows(pixels, frame, -1, 1, &frame, &error), -EINVAL);
    ck_assert_int_eq(dicom_pixels_read_rows(pixels, frame, 0, 0, &frame, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_PIXELS_UNDECODABLE);
}

static void
check_native(const struct depth *depth, const char *syntax, const char *vr)
{
    write_native(depth, syntax, vr);
    struct dicom_instance *instance = peek_or_fail();
    const enum image_pixel expected = depth->is_signed        ? IMAGE_INT16
                                      : depth->allocated == 8 ? IMAGE_UINT8
                                                              : IMAGE_UINT16;
    ck_assert_int_eq(instance->pixel, expected);
    struct dicom_pixels *pixels = open_or_fail(instance);
    const unsigned plane = NATIVE_ROWS * NATIVE_COLUMNS;
    const int32_t order[] = {2, 0, 1, 2};
    for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        /* Allocate exactly the promised size, so that AddressSanitizer detects writes beyond it. */
        void *values = malloc(plane * image_pixel_size(instance->pixel));
        ck_assert_ptr_nonnull(values);
        read_or_fail(pixels, order[k], values);
        check_values(depth, instance, values, (unsigned)order[k] * plane, plane);
        free(values);
        check_rows(depth, instance, pixels, order[k]);
    }
    dicom_pixels_close(pixels);
    dicom_instance_free(instance);
}

START_TEST(native_pixels_of_every_depth)
{
    const struct depth *depth = &depths[_i];
    check_native(depth, SYNTAX_EXPLICIT, depth->allocated == 8 ? "OB" : "OW");
    check_native(depth, SYNTAX_EXPLICIT, "OW");
    check_native(depth, SYNTAX_IMPLICIT, "OW");
    check_native(depth, SYNTAX_BIG_ENDIAN, "OW");
    if (depth->allocated == 8)
        check_native(depth, SYNTAX_BIG_ENDIAN, "OB");
}

END_TEST

/* Writes a deflated image much larger than any window; pixel i is i * 7. */
static void
write_deflated(size_t cut)
{
    enum { SIDE = 200 };

    static uint16_t cells[SIDE * SIDE];
    for (unsigned i = 0; i < SIDE * SIDE; i++)
        cells[i] = (uint16_t)(i * 7);
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = SYNTAX_DEFLATED;
    image.rows = image.columns = SIDE;
    image.bits_stored = 16;
    image.high_bit = 15;
    image.pixels = cells;
    image.pixel_size = sizeof(cells);
    sample_write_deflated(&image, path, cut);
}

START_TEST(deflated_pixels)
{
    write_deflated(0);
    struct dicom_instance *instance = peek_or_fail();
    ck_assert_int_eq(instance->pixel_offset, -1);
    struct dicom_pixels *pixels = open_or_fail(instance);
    static uint16_t values[200 * 200];
    read_or_fail(pixels, 0, values);
    for (unsigned i = 0; i < 200 * 200; i++)
        ck_assert_uint_eq(values[i], (uint16_t)(i * 7));
    struct error error;
    ck_assert(!dicom_pixels_by_rows(instance));
    ck_assert_int_eq(dicom_pixels_read_rows(pixels, 0, 0, 100, values, &error), -EINVAL);
    dicom_pixels_close(pixels);
    dicom_instance_free(instance);
}

END_TEST

START_TEST(deflated_pixels_cut_short)
{
    struct dicom_instance *instance;
    struct error error;
    write_deflated(1000);
    ck_assert_int_ne(dicom_peek(path, &instance, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_TRUNCATED);
}

END_TEST

/* ---- compressed ---- */

struct codec {
    const char *syntax;
    const uint8_t *bytes;
    size_t size;
    unsigned bits;
    int32_t tolerance;
};

#define CODEC(syntax, name, bits, tolerance)                                                                           \
    {                                                                                                                  \
        "1.2.840.10008.1.2." syntax, frame_##name, sizeof(frame_##name), bits, tolerance                               \
    }

static const struct codec codecs[] = {
    CODEC("5", rle, 12, 0),
    CODEC("4.50", jpeg_baseline, 8, 6),
    CODEC("4.51", jpeg_extended, 12, 64),
    CODEC("4.57", jpeg_lossless, 12, 0),
    CODEC("4.70", jpeg_lossless_sv1, 12, 0),
    CODEC("4.80", jpeg_ls, 12, 0),
    CODEC("4.81", jpeg_ls_near, 12, 2),
    CODEC("4.90", jpeg_2000, 12, 0),
    CODEC("4.91", jpeg_2000, 12, 0),
    CODEC("4.201", htj2k, 12, 0),
    CODEC("4.202", htj2k, 12, 0),
    CODEC("4.203", htj2k, 12, 0),
};

#define CODEC_COUNT (sizeof(codecs) / sizeof(codecs[0]))

enum table { NO_TABLE, BASIC_TABLE, EXTENDED_TABLE };

/* Form of the next file's pixel data. */
static struct {
    const struct codec *codec;
    unsigned frames, pieces; /* fragments per frame */
    enum table table;
    size_t drop;  /* bytes missing in the last fragment, with a matching length */
    long flip;    /* byte of the first frame to change; -1: none */
    uint8_t mask; /* bits to invert */
    bool no_delimiter;
} plan;

/* Bytes of a frame's fragments, including their item headers. Every fragment must have an even length. */
static size_t
piece_start(unsigned piece)
{
    return piece == plan.pieces ? plan.codec->size : plan.codec->size / plan.pieces * piece / 2 * 2;
}

static size_t
frame_extent(void)
{
    return plan.codec->size + plan.codec->size % 2 + 8 * (size_t)plan.pieces;
}

static void
write_pieces(struct dicom_bytes *bytes)
{
    for (unsigned frame = 0; frame < plan.frames; frame++)
        for (unsigned piece = 0; piece < plan.pieces; piece++) {
            const size_t start = piece_start(piece), end = piece_start(piece + 1);
            const bool last = frame + 1 == plan.frames && piece + 1 == plan.pieces;
            size_t size = end - start;
            const size_t padding = size % 2;
            if (last)
                size -= plan.drop;
            bytes_delimiter(bytes, 0xFFFEE000, (uint32_t)(size + padding));
            const size_t at = bytes->size;
            bytes_put(bytes, plan.codec->bytes + start, size);
            bytes_put(bytes, "", padding);
            if (frame == 0 && plan.flip >= (long)start && plan.flip < (long)end)
                bytes->data[at + (size_t)plan.flip - start] ^= plan.mask;
        }
}

static void
write_encapsulated(struct dicom_bytes *bytes)
{
    bytes_delimiter(bytes, 0xFFFEE000, plan.table == BASIC_TABLE ? 4 * plan.frames : 0);
    for (unsigned i = 0; plan.table == BASIC_TABLE && i < plan.frames; i++)
        bytes_u32(bytes, (uint32_t)(i * frame_extent()));
    write_pieces(bytes);
    if (!plan.no_delimiter)
        bytes_sequence_end(bytes);
}

static void
write_extended_table(struct dicom_bytes *bytes)
{
    if (plan.table != EXTENDED_TABLE)
        return;
    bytes_header(bytes, 0x7FE00001, "OV", 8 * plan.frames);
    for (unsigned i = 0; i < plan.frames; i++) {
        bytes_u32(bytes, (uint32_t)(i * frame_extent()));
        bytes_u32(bytes, 0);
    }
}

static struct sample_image
compressed_image(const struct codec *codec)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = codec->syntax;
    image.rows = COMPRESSED_ROWS;
    image.columns = COMPRESSED_COLUMNS;
    image.bits_allocated = codec->bits > 8 ? 16 : 8;
    image.bits_stored = codec->bits;
    image.high_bit = codec->bits - 1;
    image.extra = write_extended_table;
    image.encapsulated = write_encapsulated;
    return image;
}

static void
start_plan(const struct codec *codec)
{
    memset(&plan, 0, sizeof(plan));
    plan.codec = codec;
    plan.frames = plan.pieces = 1;
    plan.flip = -1;
    plan.mask = 0xFF;
}

static void
write_plan(void)
{
    char frames[16];
    snprintf(frames, sizeof(frames), "%u", plan.frames);
    struct sample_image image = compressed_image(plan.codec);
    image.frames = frames;
    sample_write(&image, path);
}

static int32_t
compressed_pixel(const struct codec *codec, unsigned i)
{
    const unsigned x = i % COMPRESSED_COLUMNS, y = i / COMPRESSED_COLUMNS;
    return codec->bits == 8 ? (int32_t)((4 * x + 8 * y) % 256) : (int32_t)((64 * x + 128 * y) % 4096);
}

static void
check_compressed_frame(const struct codec *codec, const struct dicom_instance *instance, struct dicom_pixels *pixels,
                       int32_t frame)
{
    const unsigned count = COMPRESSED_ROWS * COMPRESSED_COLUMNS;
    uint8_t *values = malloc(count * image_pixel_size(instance->pixel));
    ck_assert_ptr_nonnull(values);
    read_or_fail(pixels, frame, values);
    for (unsigned i = 0; i < count; i++) {
        const int32_t value = instance->pixel == IMAGE_UINT8 ? values[i] : values[2 * i] | values[2 * i + 1] << 8;
        ck_assert_msg(abs(value - compressed_pixel(codec, i)) <= codec->tolerance, "%s pixel %u: %d, not %d",
                      codec->syntax, i, value, compressed_pixel(codec, i));
    }
    free(values);
}

/* Changes the frame header to a process for which DICOM has no syntax any more. */
START_TEST(progressive_frames)
{
    static const uint8_t baseline[] = {0xFF, 0xC0, 0x00, 0x0B};
    static const struct codec codec = CODEC("4.50", jpeg_baseline, 8, 6);
    const uint8_t *header = memmem(codec.bytes, codec.size, baseline, sizeof(baseline));
    struct dicom_pixels *pixels;
    struct error error;
    uint8_t values[COMPRESSED_ROWS * COMPRESSED_COLUMNS];
    start_plan(&codec);
    plan.flip = header + 1 - codec.bytes;
    plan.mask = 0xC0 ^ 0xC2;
    write_plan();
    struct dicom_instance *instance = peek_or_fail();
    ck_assert_int_eq(dicom_pixels_open(instance, &pixels, &error), 0);
    ck_assert_int_ne(dicom_pixels_read(pixels, 0, values, &error), 0);
    ck_assert_int_eq(error.code, CODE_PIXELS_UNDECODABLE);
    ck_assert_ptr_nonnull(strstr(error.message, "progressive"));
    dicom_pixels_close(pixels);
    dicom_instance_free(instance);
}

END_TEST

static void
check_plan(void)
{
    write_plan();
    struct dicom_instance *instance = peek_or_fail();
    ck_assert_int_eq(instance->frame_count, (int32_t)plan.frames);
    ck_assert_int_eq(instance->pixel_offset, -1);
    struct dicom_pixels *pixels = open_or_fail(instance);
    for (int32_t frame = (int32_t)plan.frames - 1; frame >= 0; frame--)
        check_compressed_frame(plan.codec, instance, pixels, frame);
    dicom_pixels_close(pixels);
    dicom_instance_free(instance);
}

START_TEST(every_codec)
{
    start_plan(&codecs[_i]);
    check_plan();
}

END_TEST

START_TEST(frames_in_any_fragments)
{
    for (unsigned pieces = 1; pieces <= 3; pieces++)
        for (enum table table = NO_TABLE; table <= EXTENDED_TABLE; table++) {
            /* An RLE frame has no start marker: without a table its pieces cannot be distinguished. */
            if (codecs[_i].bytes == frame_rle && pieces > 1 && table == NO_TABLE)
                continue;
            start_plan(&codecs[_i]);
            plan.frames = 4;
            plan.pieces = pieces;
            plan.table = table;
            check_plan();
        }
}

END_TEST

START_TEST(ambiguous_fragments_are_refused)
{
    start_plan(&codecs[0]);
    plan.frames = 2;
    plan.pieces = 2;
    write_plan();
    struct dicom_instance *instance = peek_or_fail();
    ck_assert_int_eq(code_of_reading(instance), CODE_PIXELS_UNDECODABLE);
    dicom_instance_free(instance);
}

END_TEST

START_TEST(lossy_syntaxes_are_reported)
{
    start_plan(&codecs[_i]);
    write_plan();
    struct dicom_instance *instance = peek_or_fail();
    static const char *const lossy_ones[] = {"4.50", "4.51", "4.81", "4.91", "4.203"};
    bool lossy = false;
    for (size_t i = 0; i < sizeof(lossy_ones) / sizeof(lossy_ones[0]); i++)
        lossy = lossy || strcmp(plan.codec->syntax + strlen("1.2.840.10008.1.2."), lossy_ones[i]) == 0;
    ck_assert_int_eq(instance->lossy, lossy);
    ck_assert_int_eq(instance->lossy_method[0] != 0, lossy);
    dicom_instance_free(instance);
}

END_TEST

START_TEST(a_missing_delimiter_is_a_truncated_file)
{
    struct dicom_instance *instance;
    struct error error;
    start_plan(&codecs[_i]);
    plan.no_delimiter = true;
    write_plan();
    ck_assert_int_ne(dicom_peek(path, &instance, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_TRUNCATED);
}

END_TEST

START_TEST(fewer_fragments_than_frames)
{
    struct dicom_instance *instance;
    struct error error;
    start_plan(&codecs[_i]);
    struct sample_image image = compressed_image(plan.codec);
    image.frames = "2";
    sample_write(&image, path);
    ck_assert_int_ne(dicom_peek(path, &instance, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_TRUNCATED);
}

END_TEST

/* A code stream whose size differs from the header's must be rejected before decoding. */
START_TEST(code_stream_and_header_disagree)
{
    start_plan(&codecs[_i]);
    for (unsigned rows = 11; rows <= 200; rows += 189) {
        /* RLE has no size of its own, and excess runs count as padding. */
        if (plan.codec->bytes == frame_rle && rows < COMPRESSED_ROWS)
            continue;
        struct sample_image image = compressed_image(plan.codec);
        image.rows = rows;
        sample_write(&image, path);
        struct dicom_instance *instance = peek_or_fail();
        ck_assert_int_eq(code_of_reading(instance), CODE_PIXELS_UNDECODABLE);
        dicom_instance_free(instance);
    }
}

END_TEST

/* A frame that is cut anywhere must be rejected or decoded in full, without a read beyond its end. */
START_TEST(frames_cut_short)
{
    const struct codec *codec = &codecs[_i];
    unsigned refused = 0;
    for (size_t drop = 2; drop + 2 < codec->size; drop += 2) {
        start_plan(codec);
        plan.drop = drop;
        write_plan();
        struct dicom_instance *instance = peek_or_fail();
        enum code code = code_of_reading(instance);
        if (code != CODE_NONE) {
            ck_assert_int_eq(code, CODE_PIXELS_UNDECODABLE);
            refused++;
        }
        dicom_instance_free(instance);
    }
    ck_assert_uint_gt(refused, 0);
}

END_TEST

START_TEST(damaged_bytes)
{
    const struct codec *codec = &codecs[_i];
    for (size_t flip = 0; flip < codec->size; flip++) {
        start_plan(codec);
        plan.flip = (long)flip;
        write_plan();
        struct dicom_instance *instance = peek_or_fail();
        enum code code = code_of_reading(instance);
        if (code != CODE_NONE)
            ck_assert_int_eq(code, CODE_PIXELS_UNDECODABLE);
        dicom_instance_free(instance);
    }
}

END_TEST

/* DCMTK searches without end for the frame header after such a marker. */
START_TEST(a_stray_marker_before_the_frame_header)
{
    start_plan(&codecs[2]);
    plan.flip = 21;
    ck_assert_uint_eq(plan.codec->bytes[plan.flip], 0xDB);
    plan.mask = 0xDB ^ 0x01;
    write_plan();
    struct dicom_instance *instance = peek_or_fail();
    ck_assert_int_eq(code_of_reading(instance), CODE_PIXELS_UNDECODABLE);
    dicom_instance_free(instance);
}

END_TEST

START_TEST(no_such_frame)
{
    struct error error;
    uint16_t values[24];
    struct sample_image image = SAMPLE_IMAGE;
    sample_write(&image, path);
    struct dicom_instance *instance = peek_or_fail();
    struct dicom_pixels *pixels = open_or_fail(instance);
    ck_assert_int_ne(dicom_pixels_read(pixels, 1, values, &error), 0);
    ck_assert_int_ne(dicom_pixels_read(pixels, -1, values, &error), 0);
    read_or_fail(pixels, 0, values);
    dicom_pixels_close(pixels);
    dicom_instance_free(instance);
}

END_TEST

START_TEST(a_changed_file_is_refused)
{
    struct error error;
    uint16_t values[24];
    struct sample_image image = SAMPLE_IMAGE;
    sample_write(&image, path);
    struct dicom_instance *instance = peek_or_fail();
    struct dicom_pixels *pixels = open_or_fail(instance);
    ck_assert_int_eq(truncate(path, instance->file_size - 10), 0);
    ck_assert_int_ne(dicom_pixels_read(pixels, 0, values, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_TRUNCATED);
    dicom_pixels_close(pixels);
    ck_assert_int_eq(code_of_reading(instance), CODE_FILE_UNREADABLE);
    unlink(path);
    ck_assert_int_eq(code_of_reading(instance), CODE_FILE_UNREADABLE);
    dicom_instance_free(instance);
}

END_TEST

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 8, FRAMES_EACH = 3 };

struct reader {
    const struct dicom_instance *instances[CODEC_COUNT];
    int failures;
};

static bool
frame_is_right(const struct codec *codec, const struct dicom_instance *instance, struct dicom_pixels *pixels,
               int32_t frame)
{
    uint8_t values[COMPRESSED_ROWS * COMPRESSED_COLUMNS * 2];
    if (dicom_pixels_read(pixels, frame, values, NULL))
        return false;
    for (unsigned i = 0; i < COMPRESSED_ROWS * COMPRESSED_COLUMNS; i++) {
        const int32_t value = instance->pixel == IMAGE_UINT8 ? values[i] : values[2 * i] | values[2 * i + 1] << 8;
        if (abs(value - compressed_pixel(codec, i)) > codec->tolerance)
            return false;
    }
    return true;
}

static void *
read_everything(void *argument)
{
    struct reader *reader = argument;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t k = 0; k < CODEC_COUNT; k++) {
            struct dicom_pixels *pixels;
            if (dicom_pixels_open(reader->instances[k], &pixels, NULL)) {
                reader->failures++;
                continue;
            }
            for (int32_t frame = 0; frame < FRAMES_EACH; frame++)
                reader->failures += !frame_is_right(&codecs[k], reader->instances[k], pixels, frame);
            dicom_pixels_close(pixels);
        }
    return NULL;
}

START_TEST(several_threads_read_the_same_files)
{
    struct reader readers[THREADS] = {0};
    struct dicom_instance *instances[CODEC_COUNT];
    char paths[CODEC_COUNT][64];
    for (size_t k = 0; k < CODEC_COUNT; k++) {
        start_plan(&codecs[k]);
        plan.frames = FRAMES_EACH;
        write_plan();
        snprintf(paths[k], sizeof(paths[k]), "%.40s.%zu", path, k);
        ck_assert_int_eq(rename(path, paths[k]), 0);
        ck_assert_int_eq(dicom_peek(paths[k], &instances[k], NULL), 0);
    }
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        memcpy(readers[t].instances, instances, sizeof(instances));
        ck_assert_int_eq(pthread_create(&threads[t], NULL, read_everything, &readers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        ck_assert_int_eq(readers[t].failures, 0);
    }
    for (size_t k = 0; k < CODEC_COUNT; k++) {
        dicom_instance_free(instances[k]);
        unlink(paths[k]);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_pixels");
    TCase *native = tcase_create("native");
    tcase_add_checked_fixture(native, setup, teardown);
    tcase_add_loop_test(native, native_pixels_of_every_depth, 0, (int)(sizeof(depths) / sizeof(depths[0])));
    tcase_add_test(native, deflated_pixels);
    tcase_add_test(native, deflated_pixels_cut_short);
    tcase_add_test(native, no_such_frame);
    tcase_add_test(native, a_changed_file_is_refused);
    suite_add_tcase(suite, native);
    TCase *compressed = tcase_create("compressed");
    tcase_add_checked_fixture(compressed, setup, teardown);
    tcase_add_loop_test(compressed, every_codec, 0, (int)CODEC_COUNT);
    tcase_add_loop_test(compressed, frames_in_any_fragments, 0, (int)CODEC_COUNT);
    tcase_add_test(compressed, ambiguous_fragments_are_refused);
    tcase_add_loop_test(compressed, lossy_syntaxes_are_reported, 0, (int)CODEC_COUNT);
    tcase_add_loop_test(compressed, a_missing_delimiter_is_a_truncated_file, 0, (int)CODEC_COUNT);
    tcase_add_loop_test(compressed, fewer_fragments_than_frames, 0, (int)CODEC_COUNT);
    tcase_add_loop_test(compressed, code_stream_and_header_disagree, 0, (int)CODEC_COUNT);
    tcase_add_loop_test(compressed, frames_cut_short, 0, (int)CODEC_COUNT);
    tcase_add_loop_test(compressed, damaged_bytes, 0, (int)CODEC_COUNT);
    tcase_add_test(compressed, a_stray_marker_before_the_frame_header);
    tcase_add_test(compressed, progressive_frames);
    tcase_add_test(compressed, several_threads_read_the_same_files);
    suite_add_tcase(suite, compressed);
    return suite_run(suite);
}

/* test_seg_source.c - parsed Segmentations of other software, rejected ones, and the cost of large ones. */
#include "dicom/read/annotation/seg_source.h"
#include "tests/unit/dicom_bytes.h"
#include "tests/unit/edge.h"
#include "tests/unit/growth.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 3, COLUMNS = 5, FRAMES = 4 };

static int file;
static char path[64];

/*
 * The encoding. syntax NULL: Explicit VR Little Endian. side: frames of side x side pixels are one fragment of `fill`
 * bytes, which must not be decoded.
 */
static struct encoding {
    const char *syntax;
    unsigned side;
    size_t fill;
} encoding;

static void
setup(void)
{
    dicom_init();
    encoding = (struct encoding){0};
    file = memfd_create("seg", MFD_CLOEXEC);
    ck_assert_int_ge(file, 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
}

static void
teardown(void)
{
    close(file);
}

/* Segments from 1 on, and frames that belong to them in turn. */
struct sample_source {
    const char *type;
    unsigned bits;
    size_t segments, frames;
    uint32_t tag; /* of the data set; its value is replaced by `instead`; NULL: it is removed */
    const char *instead;
};

#define SAMPLE_SOURCE ((struct sample_source){"BINARY", 1, 2, FRAMES, 0, NULL})

static void
put_text(struct dicom_bytes *bytes, const struct sample_source *sample, uint32_t tag, const char *vr, const char *text)
{
    text = tag == sample->tag ? sample->instead : text;
    if (text)
        bytes_text(bytes, tag, vr, text);
}

static void
put_segments(struct dicom_bytes *bytes, size_t count)
{
    char label[32];
    bytes_sequence(bytes, 0x00620002);
    for (size_t i = 1; i <= count; i++) {
        snprintf(label, sizeof(label), "Part %zu", i);
        bytes_item(bytes);
        bytes_us(bytes, 0x00620004, "US", (unsigned)i);
        bytes_text(bytes, 0x00620005, "LO", label);
        bytes_text(bytes, 0x00620020, "UT", "known");
        if (i == 1)
            bytes_text(bytes, 0x00620021, "UI", "1.2.9.1");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

static void
put_frames(struct dicom_bytes *bytes, const struct sample_source *sample)
{
    char position[64];
    bytes_sequence(bytes, 0x52009230);
    for (size_t i = 0; i < sample->frames; i++) {
        bytes_item(bytes);
        bytes_sequence(bytes, 0x00209113);
        bytes_item(bytes);
        snprintf(position, sizeof(position), "1\\2\\%zu", 3 * i);
        bytes_text(bytes, 0x00200032, "DS", position);
        bytes_item_end(bytes);
        bytes_sequence_end(bytes);
        bytes_sequence(bytes, 0x0062000A);
        bytes_item(bytes);
        bytes_us(bytes, 0x0062000B, "US", (unsigned)(i % sample->segments) + 1);
        bytes_item_end(bytes);
        bytes_sequence_end(bytes);
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

/* Sets bit i of BINARY pixels to that of i * i; others count up. */
static void
put_pixels(struct dicom_bytes *bytes, const struct sample_source *sample)
{
    const size_t count = sample->frames * ROWS * COLUMNS;
    const size_t size = (count * sample->bits + 15) / 16 * 2;
    uint8_t *pixels = calloc(size, 1);
    ck_assert_ptr_nonnull(pixels);
    for (size_t i = 0; i < count; i++) {
        if (sample->bits == 1)
            pixels[i / 8] |= (uint8_t)((i * i >> 2 & 1) << i % 8);
        else
            pixels[i * sample->bits / 8] = (uint8_t)i;
    }
    bytes_element(bytes, 0x7FE00010, "OW", pixels, size);
    free(pixels);
}

static void
put_fragment(struct dicom_bytes *bytes, size_t size)
{
    uint8_t *nothing = calloc(size, 1);
    ck_assert_ptr_nonnull(nothing);
    bytes_header(bytes, 0x7FE00010, "OB", BYTES_UNDEFINED);
    bytes_fragment(bytes, nothing, 0);
    bytes_fragment(bytes, nothing, size);
    bytes_delimiter(bytes, 0xFFFEE0DD, 0);
    free(nothing);
}

static void
source_write(const struct sample_source *sample)
{
    struct dicom_bytes bytes = {0};
    char frames[16];
    snprintf(frames, sizeof(frames), "%zu", sample->frames);
    bytes_begin_file(&bytes, encoding.syntax ? encoding.syntax : SYNTAX_EXPLICIT, SEG_SOURCE_CLASS_UID, "1.2.3.1");
    put_text(&bytes, sample, 0x00080016, "UI", SEG_SOURCE_CLASS_UID);
    put_text(&bytes, sample, 0x00080018, "UI", "1.2.3.1");
    put_text(&bytes, sample, 0x0020000D, "UI", "1.2.3.2");
    put_text(&bytes, sample, 0x0020000E, "UI", "1.2.3.3");
    put_text(&bytes, sample, 0x00200052, "UI", "1.2.3.4");
    bytes_us(&bytes, 0x00280002, "US", 1);
    put_text(&bytes, sample, 0x00280008, "IS", frames);
    bytes_us(&bytes, 0x00280010, "US", encoding.side ? encoding.side : ROWS);
    bytes_us(&bytes, 0x00280011, "US", encoding.side ? encoding.side : COLUMNS);
    bytes_us(&bytes, 0x00280100, "US", sample->bits);
    bytes_us(&bytes, 0x00280101, "US", sample->bits);
    bytes_us(&bytes, 0x00280102, "US", sample->bits - 1);
    bytes_us(&bytes, 0x00280103, "US", 0);
    put_text(&bytes, sample, 0x00620001, "CS", sample->type);
    if (sample->tag != 0x00620002)
        put_segments(&bytes, sample->segments);
    if (strcmp(sample->type, "FRACTIONAL") == 0)
        bytes_us(&bytes, 0x0062000E, "US", 200);
    bytes_sequence(&bytes, 0x52009229);
    bytes_item(&bytes);
    bytes_sequence(&bytes, 0x00209116);
    bytes_item(&bytes);
    bytes_text(&bytes, 0x00200037, "DS", "1\\0\\0\\0\\1\\0");
    bytes_item_end(&bytes);
    bytes_sequence_end(&bytes);
    bytes_sequence(&bytes, 0x00289110);
    bytes_item(&bytes);
    bytes_text(&bytes, 0x00280030, "DS", "0.5\\0.75");
    bytes_item_end(&bytes);
    bytes_sequence_end(&bytes);
    bytes_item_end(&bytes);
    bytes_sequence_end(&bytes);
    put_frames(&bytes, sample);
    if (encoding.side)
        put_fragment(&bytes, encoding.fill);
    else
        put_pixels(&bytes, sample);
    bytes_write(&bytes, path);
    bytes_free(&bytes);
}

static struct seg_source *
source_open(void)
{
    struct seg_source *source;
    struct error error = {0};
    ck_assert_msg(seg_source_open(path, &source, &error) == 0, "%s: %s", code_name(error.code), error.message);
    return source;
}

START_TEST(segments_read_back_as_written)
{
    source_write(&SAMPLE_SOURCE);
    struct seg_source *source = source_open();
    uint16_t pixels[ROWS * COLUMNS];
    struct dicom_pixels *reader;
    ck_assert_int_eq(dicom_pixels_open(source->image, &reader, NULL), 0);
    ck_assert_str_eq(source->sop_instance_uid, "1.2.3.1");
    ck_assert_str_eq(source->frame_of_reference_uid, "1.2.3.4");
    ck_assert_int_eq(source->series_count, 0);
    ck_assert_int_eq(source->segment_count, 2);
    ck_assert_int_eq(source->frame_count, FRAMES);
    ck_assert_str_eq(source->segments[1].label, "Part 2");
    ck_assert_str_eq(source->segments[0].tracking_id, "known");
    ck_assert_str_eq(source->segments[1].tracking_id, ""); /* it has no UID */
    for (int32_t f = 0; f < FRAMES; f++) {
        const struct seg_source_frame *frame = &source->frames[f];
        ck_assert(frame->has_geometry);
        ck_assert_int_eq(frame->segment, f % 2);
        ck_assert_double_eq(frame->position[2], 3 * f);
        ck_assert_double_eq(frame->spacing[0], 0.75);
        ck_assert_int_eq(seg_source_read(source, reader, f, pixels, NULL), 0);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const int all = f * ROWS * COLUMNS + i;
            ck_assert_int_eq(pixels[i], all * all >> 2 & 1);
        }
    }
    dicom_pixels_close(reader);
    seg_source_close(source);
}

END_TEST

static const struct {
    struct sample_source sample;
    enum code code;
} refused[] = {
    {{"BINARY", 1, 2, FRAMES, 0x00080016, "1.2.840.10008.5.1.4.1.1.2"}, CODE_SOP_CLASS_UNSUPPORTED},
    {{"BINARY", 1, 2, FRAMES, 0x00080018, NULL}, CODE_TAG_MISSING},
    {{"BINARY", 1, 2, FRAMES, 0x0020000E, "1.2.x"}, CODE_UID_INVALID},
    {{"BINARY", 1, 2, FRAMES, 0x00280008, NULL}, CODE_TAG_MISSING},
    {{"BINARY", 1, 2, FRAMES, 0x00280008, "0"}, CODE_TAG_INVALID},
    {{"BINARY", 1, 2, FRAMES, 0x00280008, "131073"}, CODE_TAG_INVALID},
    {{"BINARY", 1, 2, FRAMES, 0x00280008, "9"}, CODE_FILE_TRUNCATED},
    {{"BINARY", 1, 2, FRAMES, 0x00620001, "SURFACE"}, CODE_TAG_INVALID},
    {{"BINARY", 1, 2, FRAMES, 0x00620002, NULL}, CODE_TAG_MISSING},
    {{"BINARY", 8, 2, FRAMES, 0, NULL}, CODE_PIXELS_UNSUPPORTED},
    {{"FRACTIONAL", 16, 2, FRAMES, 0, NULL}, CODE_PIXELS_UNSUPPORTED},
    {{"LABELMAP", 1, 2, FRAMES, 0, NULL}, CODE_PIXELS_UNSUPPORTED},
};

START_TEST(refusals)
{
    struct seg_source *source;
    struct error error = {0};
    source_write(&refused[_i].sample);
    ck_assert_int_eq(seg_source_open(path, &source, &error), -EBADMSG);
    ck_assert_ptr_null(source);
    ck_assert_msg(error.code == refused[_i].code, "%s: %s", code_name(error.code), error.message);
    ck_assert_str_eq(error.file[0], path);
}

END_TEST

/* Number of Frames is less than the bytes allow, so that the file may end early later. */
START_TEST(a_shrinking_file_is_reported)
{
    uint16_t pixels[ROWS * COLUMNS];
    struct error error = {0};
    source_write(&(struct sample_source){"LABELMAP", 16, 2, FRAMES, 0, NULL});
    struct seg_source *source = source_open();
    struct dicom_pixels *reader;
    ck_assert_int_eq(dicom_pixels_open(source->image, &reader, NULL), 0);
    ck_assert_int_eq(seg_source_read(source, reader, 1, pixels, NULL), 0);
    ck_assert_int_eq(pixels[2], ROWS * COLUMNS + 2);
    ck_assert_int_eq(ftruncate(file, (off_t)source->image->pixel_offset), 0);
    ck_assert_int_eq(seg_source_read(source, reader, 1, pixels, &error), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_FILE_TRUNCATED);
    dicom_pixels_close(reader);
    ck_assert_int_eq(dicom_pixels_open(source->image, &reader, &error), -ESTALE);
    seg_source_close(source);
}

END_TEST

static const struct {
    const char *type;
    unsigned bits;
    struct encoding encoding;
    enum code code;
} encoded[] = {
    {"LABELMAP", 8, {SYNTAX_RLE, 16, 100}, CODE_NONE},
    {"LABELMAP", 16, {SYNTAX_RLE, 16, 100}, CODE_NONE},
    {"FRACTIONAL", 8, {"1.2.840.10008.1.2.4.80", 16, 100}, CODE_NONE},
    {"FRACTIONAL", 8, {"1.2.840.10008.1.2.4.90", 16, 100}, CODE_NONE},
    {"FRACTIONAL", 8, {"1.2.840.10008.1.2.4.201", 16, 100}, CODE_NONE},
    {"BINARY", 1, {SYNTAX_RLE, 16, 100}, CODE_TRANSFER_SYNTAX_UNSUPPORTED},
    {"FRACTIONAL", 8, {"1.2.840.10008.1.2.4.50", 16, 100}, CODE_TRANSFER_SYNTAX_UNSUPPORTED},
    {"FRACTIONAL", 8, {"1.2.840.10008.1.2.4.81", 16, 100}, CODE_TRANSFER_SYNTAX_UNSUPPORTED},
    {"FRACTIONAL", 8, {"1.2.840.10008.1.2.4.91", 16, 100}, CODE_TRANSFER_SYNTAX_UNSUPPORTED},
    {"LABELMAP", 8, {"1.2.840.10008.1.2.4.100", 16, 100}, CODE_TRANSFER_SYNTAX_UNSUPPORTED},
    {"LABELMAP", 8, {"1.2.840.10008.1.2.2", 0, 100}, CODE_TRANSFER_SYNTAX_UNSUPPORTED},
    {"LABELMAP", 8, {SYNTAX_RLE, 0, 100}, CODE_TAG_INVALID},
    {"LABELMAP", 8, {SYNTAX_EXPLICIT, 16, 100}, CODE_TAG_INVALID},
};

START_TEST(lossless_encodings_are_accepted)
{
    struct seg_source *source;
    struct error error = {0};
    encoding = encoded[_i].encoding;
    source_write(&(struct sample_source){encoded[_i].type, encoded[_i].bits, 2, FRAMES, 0, NULL});
    const int rc = seg_source_open(path, &source, &error);
    ck_assert_msg(error.code == encoded[_i].code, "%s: %s", code_name(error.code), error.message);
    ck_assert_int_eq(rc, encoded[_i].code == CODE_NONE ? 0 : -EBADMSG);
    seg_source_close(source);
}

END_TEST

static int
open_of_size(size_t fill, struct error *error)
{
    struct seg_source *source;
    encoding = (struct encoding){SYNTAX_RLE, 9000, fill};
    source_write(&(struct sample_source){"LABELMAP", 8, 2, 1, 0, NULL});
    const int rc = seg_source_open(path, &source, error);
    seg_source_close(source);
    return rc;
}

/* Makes a frame of more than 64 MiB. */
START_TEST(limit_of_expansion)
{
    static const struct edge edge = EDGE(SEG_EXPANSION);
    const int64_t least = (int64_t)9000 * 9000 / edge.most;
    struct error error = {0};
    struct stat written;
    ck_assert_int_eq(open_of_size(2, &error), -EBADMSG);
    ck_assert_int_eq(fstat(file, &written), 0);
    const size_t fill = (size_t)(least - written.st_size + 2);
    ck_assert_int_eq(open_of_size(fill, &error), 0);
    ck_assert_int_eq(open_of_size(fill - 2, &error), -EBADMSG);
    ck_assert_int_eq(error.code, edge.code);
}

END_TEST

static double
cost(const void *kind, size_t n)
{
    const bool frames = *(const bool *)kind;
    source_write(&(struct sample_source){"BINARY", 1, frames ? 2 : n, frames ? n : 2, 0, NULL});
    const double begun = growth_clock();
    seg_source_close(source_open());
    return growth_clock() - begun;
}

START_TEST(cost_is_linear)
{
    const bool frames = _i != 0;
    expect_linear(frames ? "frames" : "segments", cost, &frames, 1500);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_seg_source");
    TCase *tests = tcase_create("seg_source");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, segments_read_back_as_written);
    tcase_add_loop_test(tests, refusals, 0, (int)(sizeof(refused) / sizeof(refused[0])));
    tcase_add_test(tests, a_shrinking_file_is_reported);
    tcase_add_loop_test(tests, lossless_encodings_are_accepted, 0, (int)(sizeof(encoded) / sizeof(encoded[0])));
    tcase_add_test(tests, limit_of_expansion);
    tcase_add_loop_test(tests, cost_is_linear, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

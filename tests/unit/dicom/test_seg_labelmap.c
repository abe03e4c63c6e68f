/* Label maps and compressed segmentations: voxels by hand count, refusals, and the damage that verification finds. */
#include "dicom/objects/seg/seg_writer.h"
#include "dicom/read/pixels/rle.h"
#include "dicom/write/rle_encode.h"
#include "tests/unit/dicom/seg_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

#include <zlib.h>

static const struct seg_sample_shape odd = {.columns = 33, .rows = 7, .planes = 5, .segments = 3};

enum {
    FRAME = 33 * 7,
    MANY = 300, /* segments, for 16 bits */
};

static struct seg_sample sample;
static struct error error;

static int
write_sample(int fd, struct derived_summary *summary, struct error *why)
{
    return seg_write(&sample.request, fd, summary, why);
}

static int
verify_sample(const char *path, struct error *why)
{
    return seg_verify(&sample.request, path, 2, why);
}

static struct written_object object = {
    .path = sample.target,
    .mismatch = CODE_SEG_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

/* Three frames: planes 1 and 3 have voxels of segments 1 and 3, plane 2 none, plane 4 a row of segment 2. */
static void
make_labelmap(void)
{
    dicom_init();
    seg_sample_make(&sample, &odd);
    sample.request.type = SEG_LABELMAP;
    seg_sample_set(&sample, 0, 32, 6, 1);
    seg_sample_set(&sample, 0, 0, 0, 3);
    seg_sample_set(&sample, 2, 5, 5, 3);
    for (int32_t x = 0; x < 33; x++)
        seg_sample_set(&sample, 1, x, 2, 4);
    error = (struct error){0};
}

static void
drop(void)
{
    written_free(&object);
    seg_sample_free(&sample);
}

static unsigned
expected_label(int voxel)
{
    if (voxel == 6 * 33 + 32 || voxel == FRAME)
        return 1;
    if (voxel == FRAME + 5 * 33 + 5)
        return 3;
    return voxel >= 2 * FRAME + 2 * 33 && voxel < 2 * FRAME + 3 * 33 ? 2 : 0;
}

START_TEST(labels_of_voxels)
{
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 3);
    /* 3 * 231 = 693 bytes, and one for an even length */
    const uint8_t *pixels = object.bytes + object.size - 694;
    ck_assert_mem_eq(pixels - 12, "\xE0\x7F\x10\x00OB\0\0\xB6\x02\0\0", 12);
    for (int i = 0; i < 3 * FRAME; i++)
        ck_assert_uint_eq(pixels[i], expected_label(i));
    ck_assert_uint_eq(pixels[693], 0);
}

END_TEST

START_TEST(empty_planes_are_kept)
{
    sample.request.omit_empty_frames = false;
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 5);
}

END_TEST

START_TEST(more_segments_have_16_bits)
{
    static struct seg_segment many[MANY];
    const struct seg_segment *first = sample.segments;
    const uint64_t *empty = calloc(7 * 5, sizeof *empty);
    ck_assert_ptr_nonnull(empty);
    for (int i = 0; i < MANY; i++) {
        many[i] = first[0];
        many[i].bits = empty;
    }
    many[0].bits = first[0].bits;
    many[MANY - 1].bits = first[1].bits;
    sample.request.segments = many;
    sample.request.segment_count = MANY;
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 3);
    const uint8_t *pixels = object.bytes + object.size - 3 * FRAME * 2;
    ck_assert_mem_eq(pixels - 12, "\xE0\x7F\x10\x00OW\0\0\x6A\x05\0\0", 12);
    ck_assert_uint_eq(pixels[2 * FRAME], 1);
    for (int x = 0; x < 33; x++)
        ck_assert_mem_eq(pixels + 2 * (2 * FRAME + 2 * 33 + x), "\x2C\x01", 2); /* 300 */
    /* Also in RLE, which stores the two bytes apart. */
    sample.request.source.compression = DERIVED_RLE;
    written_take(&object);
    sample.request.segment_count = UINT8_MAX;
    ck_assert_uint_eq(seg_bits(&sample.request), 8);
    sample.request.segment_count = UINT8_MAX + 1;
    ck_assert_uint_eq(seg_bits(&sample.request), 16);
    free((void *)(uintptr_t)empty);
}

END_TEST

START_TEST(overlap_is_refused_by_name)
{
    seg_sample_set(&sample, 1, 5, 5, 3);
    seg_sample_set(&sample, 0, 5, 5, 3);
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_SEGMENTS_OVERLAP);
    ck_assert_ptr_nonnull(strstr(error.message, "Voxel (5, 5, 3) is in the segments \"Part 1\" and \"Part 2\""));
    sample.request.overlap_last = true;
    written_take(&object);
    ck_assert_uint_eq((object.bytes + object.size - 694)[FRAME + 5 * 33 + 5], 3);
}

END_TEST

START_TEST(identity_is_its_own)
{
    struct derived_identity labelmap, binary, compressed;
    seg_identify(&sample.request, &labelmap);
    sample.request.source.compression = DERIVED_RLE;
    seg_identify(&sample.request, &compressed);
    ck_assert_mem_eq(&labelmap, &compressed, sizeof labelmap);
    sample.request.type = SEG_BINARY;
    seg_identify(&sample.request, &binary);
    ck_assert_str_ne(labelmap.sop_instance_uid, binary.sop_instance_uid);
    ck_assert_str_ne(labelmap.series_uid, binary.series_uid);
    ck_assert_str_ne(labelmap.dimension_organization_uid, binary.dimension_organization_uid);
}

END_TEST

START_TEST(rle_frames)
{
    sample.request.source.compression = DERIVED_RLE;
    written_take(&object);
    const uint8_t *at =
        memmem(object.bytes, object.size, "\xE0\x7F\x10\x00OB\0\0\xFF\xFF\xFF\xFF\xFE\xFF\x00\xE0\0\0\0\0", 20);
    ck_assert_ptr_nonnull(at);
    at += 20;
    for (int f = 0; f < 3; f++) {
        uint8_t labels[FRAME];
        ck_assert_mem_eq(at, "\xFE\xFF\x00\xE0", 4);
        const uint32_t length = at[4] | (uint32_t)at[5] << 8;
        ck_assert_uint_eq(length % 2, 0);
        ck_assert_ptr_null(rle_decode(at + 8, length, 1, FRAME, labels));
        for (int i = 0; i < FRAME; i++)
            ck_assert_uint_eq(labels[i], expected_label(f * FRAME + i));
        at += 8 + length;
    }
    ck_assert_mem_eq(at, "\xFE\xFF\xDD\xE0\0\0\0\0", 8);
    ck_assert_ptr_eq(at + 8, object.bytes + object.size);
    written_expect_same_again(&object);
}

END_TEST

/* Returns the data set of the file that was taken, inflated. The file meta information is as long as its group length. */
static size_t
data_set(uint8_t *inflated, size_t room)
{
    const size_t begin = 144 + (object.bytes[140] | (size_t)object.bytes[141] << 8);
    z_stream zlib = {.next_in = object.bytes + begin,
                     .avail_in = (uInt)(object.size - begin),
                     .next_out = inflated,
                     .avail_out = (uInt)room};
    ck_assert_uint_eq((object.size - begin) % 2, 0);
    ck_assert_int_eq(inflateInit2(&zlib, -MAX_WBITS), Z_OK);
    ck_assert_int_eq(inflate(&zlib, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_le(zlib.avail_in, 1);
    inflateEnd(&zlib);
    return room - zlib.avail_out;
}

START_TEST(deflated_data_sets)
{
    static const enum seg_type types[] = {SEG_LABELMAP, SEG_BINARY};

    static const enum derived_compression ways[] = {DERIVED_DEFLATED, DERIVED_RLE};

    static uint8_t inflated[65536];
    for (size_t i = 0; i < 2; i++) {
        sample.request.type = types[i];
        sample.request.source.compression = DERIVED_UNCOMPRESSED;
        written_take(&object);
        const size_t begin = 144 + (object.bytes[140] | (size_t)object.bytes[141] << 8), size = object.size - begin;
        uint8_t *plain = malloc(size);
        memcpy(plain, object.bytes + begin, size);
        sample.request.source.compression = ways[i]; /* "rle" cannot hold bits, so they are deflated */
        written_take(&object);
        ck_assert_uint_eq(data_set(inflated, sizeof inflated), size);
        ck_assert_mem_eq(inflated, plain, size);
        written_expect_same_again(&object);
        free(plain);
    }
}

END_TEST

/* Every type and compression must verify, and a file in another transfer syntax must not. */
START_TEST(another_transfer_syntax_is_found)
{
    static const enum derived_compression all[] = {DERIVED_UNCOMPRESSED, DERIVED_RLE, DERIVED_DEFLATED};

    for (size_t i = 0; i < 3; i++) {
        sample.request.source.compression = all[i];
        written_take(&object);
        for (size_t k = 0; k < 3; k++) {
            sample.request.source.compression = all[k];
            ck_assert_int_eq(verify_sample(sample.target, &error), i == k ? 0 : -EBADMSG);
        }
    }
}

END_TEST

START_TEST(wrong_labels_are_found)
{
    static const enum derived_compression all[] = {DERIVED_UNCOMPRESSED, DERIVED_RLE, DERIVED_DEFLATED};

    for (size_t i = 0; i < 3; i++) {
        sample.request.source.compression = all[i];
        written_take(&object);
        uint64_t *word = &sample.words[(4 * 7 + 4) * 1 + 0]; /* segment 1, plane 4, row 4: it has no such voxel */
        *word |= 1u << 7;
        ck_assert_int_eq(verify_sample(sample.target, &error), -EBADMSG);
        ck_assert_int_eq(error.code, CODE_SEG_MISMATCH);
        ck_assert_msg(strstr(error.message, "voxel (7, 4, 4) has label 0 instead of 1"), "%s", error.message);
        *word = 0;
        sample.words[4 * 7 + 6] = 0;
        sample.words[1 * 7 + 6] &= ~(UINT64_C(1) << 32); /* segment 1 without its voxel in plane 1 */
        ck_assert_int_eq(verify_sample(sample.target, &error), -EBADMSG);
        ck_assert_msg(strstr(error.message, "voxel (32, 6, 1) has label 1 instead of 0"), "%s", error.message);
        seg_sample_set(&sample, 0, 32, 6, 1);
        seg_sample_set(&sample, 0, 3, 3, 2); /* a plane that has no frame */
        ck_assert_int_eq(verify_sample(sample.target, &error), -EBADMSG);
        ck_assert_ptr_nonnull(strstr(error.message, "plane 2 of segment 1 is missing"));
        sample.words[2 * 7 + 3] = 0;
    }
}

END_TEST

/* Cuts the file at every 7th byte. */
START_TEST(cut_files_are_found)
{
    static const enum derived_compression all[] = {DERIVED_UNCOMPRESSED, DERIVED_RLE, DERIVED_DEFLATED};

    for (size_t i = 0; i < 3; i++) {
        sample.request.source.compression = all[i];
        written_take(&object);
        for (size_t size = object.size - 2; size > 200; size -= size < 7 ? size : 7) {
            ck_assert_int_eq(truncate(sample.target, (off_t)size), 0);
            ck_assert_msg(verify_sample(sample.target, &error) == -EBADMSG, "%zu of %zu bytes", size, object.size);
        }
    }
}

END_TEST

/* 75 MiB of background, which inflate from less than the hundredth part. Only files of others have that limit. */
START_TEST(large_objects_verify)
{
    const struct seg_sample_shape large = {.columns = 512, .rows = 512, .planes = 300, .segments = 2};

    const enum derived_compression all[] = {DERIVED_RLE, DERIVED_DEFLATED};

    seg_sample_free(&sample);
    seg_sample_make(&sample, &large);
    seg_sample_set(&sample, 1, 511, 511, 299);
    sample.request.omit_empty_frames = false;
    sample.request.type = SEG_LABELMAP;
    for (size_t i = 0; i < 2; i++) {
        sample.request.source.compression = all[i];
        written_take(&object);
        ck_assert_int_eq(object.summary.frames, 300);
        ck_assert_int_lt(object.summary.bytes, 300 * (5 << 10));
    }
}

END_TEST

/* --- the encoder --- */

static size_t
encode(const uint8_t *bytes, size_t bytes_per_pixel, size_t columns, size_t rows, uint8_t *encoded)
{
    const struct rle_frame frame = {bytes, bytes_per_pixel, columns, rows};
    const size_t size = rle_encode(&frame, encoded);
    ck_assert_uint_le(size, rle_encoded_max(&frame));
    return size;
}

/* The example of Apple's PackBits (TN1023), which PS3.5 G.3 applies to rows. */
START_TEST(packbits_example)
{
    static const uint8_t plain[] = {0xAA, 0xAA, 0xAA, 0x80, 0x00, 0x2A, 0xAA, 0xAA, 0xAA, 0xAA, 0x80, 0x00,
                                    0x2A, 0x22, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA};
    static const uint8_t packed[] = {0xFE, 0xAA, 0x02, 0x80, 0x00, 0x2A, 0xFD, 0xAA,
                                     0x03, 0x80, 0x00, 0x2A, 0x22, 0xF7, 0xAA};
    uint8_t encoded[256];
    const size_t size = encode(plain, 1, sizeof plain, 1, encoded);
    ck_assert_uint_eq(size, 64 + sizeof packed + 1);
    ck_assert_mem_eq(encoded, "\1\0\0\0\x40\0\0\0\0\0\0\0", 12);
    ck_assert_mem_eq(encoded + 64, packed, sizeof packed);
    ck_assert_uint_eq(encoded[size - 1], 0);
}

END_TEST

/* Pixels in colour have a segment per channel, in the order of the channels (PS3.5 G.2). */
START_TEST(colours_are_encoded_apart)
{
    static const uint8_t rgb[] = {1, 2, 3, 1, 4, 3, 1, 5, 3};
    uint8_t encoded[512];
    const size_t size = encode(rgb, 3, 3, 1, encoded);
    ck_assert_mem_eq(encoded, "\3\0\0\0\x40\0\0\0\x42\0\0\0\x46\0\0\0\0\0\0\0", 20);
    ck_assert_uint_eq(size, 64 + 2 + 4 + 2);
    ck_assert_mem_eq(encoded + 64, "\xFE\1\2\2\4\5\xFE\3", 8);
}

END_TEST

/* Runs end with their row, and after 128 bytes. */
START_TEST(rows_are_encoded_apart)
{
    static const uint8_t zeros[2 * 130];
    uint8_t encoded[1024];
    ck_assert_uint_eq(encode(zeros, 1, 130, 2, encoded), 64 + 8);
    ck_assert_mem_eq(encoded + 64, "\x81\0\xFF\0\x81\0\xFF\0", 8);
}

END_TEST

/* Random frames of runs of all lengths, decoded by the reader. */
START_TEST(random_frames)
{
    uint32_t seed = 1;
    for (int i = 0; i < 2000; i++) {
        uint8_t bytes[2 * 300 * 3], encoded[64 + 2 * (3 * 303 + 1)];
        uint16_t samples[300 * 3];
        const size_t columns = 1 + (seed >> 8) % 300, size = 1 + (size_t)i % 2, rows = 1 + (size_t)i % 3;
        uint8_t value = 0;
        for (size_t k = 0; k < columns * rows * size; k++) {
            seed = seed * 1664525 + 1013904223;
            if ((seed >> 16) % (1 + (uint32_t)i % 40) == 0)
                value = (uint8_t)(seed >> 24);
            bytes[k] = value;
        }
        const size_t length = encode(bytes, size, columns, rows, encoded);
        ck_assert_ptr_null(rle_decode(encoded, length, size, columns * rows, samples));
        for (size_t k = 0; k < columns * rows && size == 2; k++)
            ck_assert_uint_eq(samples[k], bytes[2 * k] | (unsigned)bytes[2 * k + 1] << 8);
        if (size == 1)
            ck_assert_mem_eq(samples, bytes, columns * rows);
    }
}

END_TEST

/* A deflated stream of parts of all sizes, also those that callers fill in place. */
START_TEST(deflated_sink)
{
    static uint8_t bytes[3 << 20], inflated[sizeof bytes];
    uint32_t seed = 7;
    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = i % 3 ? (uint8_t)(seed >> 24) : 0;
    }
    struct byte_sink sink;
    const int fd = open(sample.target, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(byte_sink_open(&sink, fd, false), 0);
    byte_sink_append(&sink, bytes, 10);
    ck_assert_int_eq(byte_sink_deflate(&sink), 0);
    size_t done = 10;
    for (size_t part = 1; done < sizeof bytes; part = part * 3 + 1) {
        part = part < sizeof bytes - done ? part : sizeof bytes - done;
        if (part <= BYTE_SINK_RESERVE) {
            memcpy(byte_sink_reserve(&sink, part), bytes + done, part);
            byte_sink_commit(&sink, part);
        } else {
            byte_sink_append(&sink, bytes + done, part);
        }
        done += part;
        if (part > 1000 && part < 4000)
            byte_sink_deflate_runs(&sink);
    }
    ck_assert_int_eq(byte_sink_finish(&sink), 0);
    ck_assert_int_eq(sink.total, sizeof bytes);
    const off_t size = lseek(fd, 0, SEEK_END);
    ck_assert_int_eq(size, sink.total - sink.saved);
    byte_sink_close(&sink);
    uint8_t *file = malloc((size_t)size);
    ck_assert_int_eq(pread(fd, file, (size_t)size, 0), size);
    close(fd);
    z_stream zlib = {
        .next_in = file + 10, .avail_in = (uInt)size - 10, .next_out = inflated, .avail_out = sizeof inflated};
    ck_assert_int_eq(inflateInit2(&zlib, -MAX_WBITS), Z_OK);
    ck_assert_int_eq(inflate(&zlib, Z_FINISH), Z_STREAM_END);
    inflateEnd(&zlib);
    ck_assert_uint_eq(zlib.avail_out, 10);
    ck_assert_mem_eq(inflated, bytes + 10, sizeof bytes - 10);
    free(file);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_seg_labelmap");
    TCase *tests = tcase_create("label maps");
    tcase_add_checked_fixture(tests, make_labelmap, drop);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, labels_of_voxels);
    tcase_add_test(tests, empty_planes_are_kept);
    tcase_add_test(tests, more_segments_have_16_bits);
    tcase_add_test(tests, overlap_is_refused_by_name);
    tcase_add_test(tests, identity_is_its_own);
    tcase_add_test(tests, rle_frames);
    tcase_add_test(tests, deflated_data_sets);
    tcase_add_test(tests, another_transfer_syntax_is_found);
    tcase_add_test(tests, wrong_labels_are_found);
    tcase_add_test(tests, cut_files_are_found);
    tcase_add_test(tests, large_objects_verify);
    tcase_add_test(tests, packbits_example);
    tcase_add_test(tests, colours_are_encoded_apart);
    tcase_add_test(tests, rows_are_encoded_apart);
    tcase_add_test(tests, random_frames);
    tcase_add_test(tests, deflated_sink);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

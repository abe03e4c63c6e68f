/*
 * dicom_bytes.h - DICOM files byte by byte, right or wrong on purpose: any transfer syntax, any
 * length, any order. Knows nothing of Noctule's readers or writers. A failed allocation aborts.
 */
#ifndef NOCTULE_DICOM_BYTES_H
#define NOCTULE_DICOM_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYNTAX_IMPLICIT   "1.2.840.10008.1.2"
#define SYNTAX_EXPLICIT   "1.2.840.10008.1.2.1"
#define SYNTAX_DEFLATED   "1.2.840.10008.1.2.1.99"
#define SYNTAX_BIG_ENDIAN "1.2.840.10008.1.2.2"
#define SYNTAX_RLE        "1.2.840.10008.1.2.5"

#define CLASS_CT          "1.2.840.10008.5.1.4.1.1.2"
#define CLASS_MR          "1.2.840.10008.5.1.4.1.1.4"
#define CLASS_PT          "1.2.840.10008.5.1.4.1.1.128"
#define CLASS_ENHANCED_MR "1.2.840.10008.5.1.4.1.1.4.1"
#define CLASS_SEG         "1.2.840.10008.5.1.4.1.1.66.4"

#define BYTES_UNDEFINED   0xFFFFFFFFu

struct dicom_bytes {
    uint8_t *data;
    size_t size, room;
    bool implicit_vr, big_endian;
    bool unknown_vr; /* every VR is UN; what is in a sequence is implicit then (CP-246) */
    int depth;       /* of open sequences */
};

static inline void
bytes_free(struct dicom_bytes *bytes)
{
    free(bytes->data);
    memset(bytes, 0, sizeof(*bytes));
}

/* Append so many bytes, which the caller must write. NULL if there are none and never were. */
static inline uint8_t *
bytes_room(struct dicom_bytes *bytes, size_t size)
{
    if (bytes->size + size > bytes->room) {
        bytes->room = 2 * (bytes->size + size);
        bytes->data = realloc(bytes->data, bytes->room);
        if (!bytes->data)
            abort();
    }
    bytes->size += size;
    return bytes->data ? bytes->data + bytes->size - size : NULL;
}

static inline void
bytes_put(struct dicom_bytes *bytes, const void *data, size_t size)
{
    uint8_t *room = bytes_room(bytes, size);
    if (size > 0)
        memcpy(room, data, size);
}

/* Append copies of all bytes from `begin` on until there are n: a copy is as large as what is there already. */
static inline void
bytes_repeat(struct dicom_bytes *bytes, size_t begin, size_t n)
{
    const size_t one = bytes->size - begin, end = begin + n * one;
    if (n == 0)
        bytes->size = begin;
    while (bytes->size < end) {
        const size_t there = bytes->size - begin, missing = end - bytes->size;
        const size_t part = there < missing ? there : missing;
        uint8_t *room = bytes_room(bytes, part);
        memcpy(room, bytes->data + begin, part);
    }
}

static inline void
bytes_u16(struct dicom_bytes *bytes, unsigned value)
{
    const uint8_t little[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    const uint8_t big[2] = {little[1], little[0]};
    bytes_put(bytes, bytes->big_endian ? big : little, 2);
}

static inline void
bytes_u32(struct dicom_bytes *bytes, uint32_t value)
{
    const unsigned low = value & 0xFFFF, high = value >> 16;
    bytes_u16(bytes, bytes->big_endian ? high : low);
    bytes_u16(bytes, bytes->big_endian ? low : high);
}

static inline void
bytes_tag(struct dicom_bytes *bytes, uint32_t tag)
{
    bytes_u16(bytes, tag >> 16);
    bytes_u16(bytes, tag & 0xFFFF);
}

/* Tag, VR and length, whatever that length is. */
static inline void
bytes_header(struct dicom_bytes *bytes, uint32_t tag, const char *vr, uint32_t length)
{
    bytes_tag(bytes, tag);
    if (bytes->implicit_vr || (bytes->unknown_vr && bytes->depth > 0)) {
        bytes_u32(bytes, length);
        return;
    }
    if (bytes->unknown_vr)
        vr = "UN";
    bytes_put(bytes, vr, 2);
    if (strstr("OB OD OF OL OV OW SQ SV UC UN UR UT UV", vr)) {
        bytes_u16(bytes, 0);
        bytes_u32(bytes, length);
    } else {
        bytes_u16(bytes, length);
    }
}

static inline void
bytes_element(struct dicom_bytes *bytes, uint32_t tag, const char *vr, const void *value, size_t size)
{
    bytes_header(bytes, tag, vr, (uint32_t)(size + size % 2));
    bytes_put(bytes, value, size);
    if (size % 2)
        bytes_put(bytes, strstr("UI OB", vr) ? "" : " ", 1);
}

static inline void
bytes_text(struct dicom_bytes *bytes, uint32_t tag, const char *vr, const char *text)
{
    bytes_element(bytes, tag, vr, text, strlen(text));
}

static inline void
bytes_us(struct dicom_bytes *bytes, uint32_t tag, const char *vr, unsigned value)
{
    bytes_header(bytes, tag, vr, 2);
    bytes_u16(bytes, value);
}

static inline void
bytes_ul(struct dicom_bytes *bytes, uint32_t tag, uint32_t value)
{
    bytes_header(bytes, tag, "UL", 4);
    bytes_u32(bytes, value);
}

static inline void
bytes_fd(struct dicom_bytes *bytes, uint32_t tag, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
    bytes_header(bytes, tag, "FD", 8);
    bytes_u32(bytes, bytes->big_endian ? high : low);
    bytes_u32(bytes, bytes->big_endian ? low : high);
}

/* Sequences and items of undefined length. */
static inline void
bytes_sequence(struct dicom_bytes *bytes, uint32_t tag)
{
    bytes_header(bytes, tag, "SQ", BYTES_UNDEFINED);
    bytes->depth++;
}

static inline void
bytes_delimiter(struct dicom_bytes *bytes, uint32_t tag, uint32_t length)
{
    bytes_tag(bytes, tag);
    bytes_u32(bytes, length);
}

static inline void
bytes_item(struct dicom_bytes *bytes)
{
    bytes_delimiter(bytes, 0xFFFEE000, BYTES_UNDEFINED);
}

static inline void
bytes_item_end(struct dicom_bytes *bytes)
{
    bytes_delimiter(bytes, 0xFFFEE00D, 0);
}

static inline void
bytes_sequence_end(struct dicom_bytes *bytes)
{
    bytes_delimiter(bytes, 0xFFFEE0DD, 0);
    bytes->depth--;
}

static inline void
bytes_fragment(struct dicom_bytes *bytes, const void *data, size_t size)
{
    bytes_delimiter(bytes, 0xFFFEE000, (uint32_t)size);
    bytes_put(bytes, data, size);
}

/* Preamble and file meta information; then the data set's encoding is that of the syntax. */
static inline void
bytes_begin_file(struct dicom_bytes *bytes, const char *syntax, const char *class_uid, const char *instance_uid)
{
    static const uint8_t preamble[128];
    struct dicom_bytes meta = {0};
    bytes_element(&meta, 0x00020001, "OB", "\0\1", 2);
    bytes_text(&meta, 0x00020002, "UI", class_uid);
    bytes_text(&meta, 0x00020003, "UI", instance_uid);
    if (syntax)
        bytes_text(&meta, 0x00020010, "UI", syntax);
    bytes_text(&meta, 0x00020012, "UI", "2.25.1");
    bytes->implicit_vr = bytes->big_endian = false;
    bytes_put(bytes, preamble, sizeof(preamble));
    bytes_put(bytes, "DICM", 4);
    bytes_ul(bytes, 0x00020000, (uint32_t)meta.size);
    bytes_put(bytes, meta.data, meta.size);
    bytes_free(&meta);
    bytes->implicit_vr = syntax && strcmp(syntax, SYNTAX_IMPLICIT) == 0;
    bytes->big_endian = syntax && strcmp(syntax, SYNTAX_BIG_ENDIAN) == 0;
}

static inline void
bytes_write(const struct dicom_bytes *bytes, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file || (bytes->size > 0 && fwrite(bytes->data, bytes->size, 1, file) != 1) || fclose(file) != 0) {
        perror(path);
        abort();
    }
}

/*
 * A classic image with every attribute in reach: start from SAMPLE_IMAGE and change what the test
 * is about. A NULL text leaves the element out, as does naming its tag in `without`.
 */
struct sample_image {
    const char *syntax, *class_uid, *instance_uid, *study_uid, *series_uid, *frame_of_reference_uid;
    const char *modality, *manufacturer, *model, *image_type;
    const char *position, *orientation, *spacing, *thickness, *slope, *intercept;
    const char *photometric, *frames, *instance_number;
    unsigned rows, columns, samples, bits_allocated, bits_stored, high_bit, is_signed;
    uint32_t without;
    void (*extra)(struct dicom_bytes *bytes); /* more elements, before the pixel data */
    const void *pixels;                       /* NULL: zeros, as many as needed */
    size_t pixel_size;
    const char *pixel_vr; /* NULL: "OW" */
    bool unknown_vr;
    void (*encapsulated)(struct dicom_bytes *bytes); /* writes items from the offset table on */
};

#define SAMPLE_IMAGE                                                                                                   \
    ((struct sample_image){.syntax = SYNTAX_EXPLICIT,                                                                  \
                           .class_uid = CLASS_CT,                                                                      \
                           .instance_uid = "1.2.3.4.1",                                                                \
                           .study_uid = "1.2.3.4.2",                                                                   \
                           .series_uid = "1.2.3.4.3",                                                                  \
                           .frame_of_reference_uid = "1.2.3.4.4",                                                      \
                           .modality = "CT",                                                                           \
                           .manufacturer = "Maker",                                                                    \
                           .model = "Model",                                                                           \
                           .image_type = "ORIGINAL\\PRIMARY\\AXIAL",                                                   \
                           .position = "-10.5\\-20.25\\30",                                                            \
                           .orientation = "1\\0\\0\\0\\1\\0",                                                          \
                           .spacing = "0.5\\0.75",                                                                     \
                           .thickness = "2.5",                                                                         \
                           .slope = "1",                                                                               \
                           .intercept = "-1024",                                                                       \
                           .photometric = "MONOCHROME2",                                                               \
                           .instance_number = "7",                                                                     \
                           .rows = 4,                                                                                  \
                           .columns = 6,                                                                               \
                           .samples = 1,                                                                               \
                           .bits_allocated = 16,                                                                       \
                           .bits_stored = 12,                                                                          \
                           .high_bit = 11})

static inline void
sample_text(struct dicom_bytes *bytes, const struct sample_image *image, uint32_t tag, const char *vr, const char *text)
{
    if (text && tag != image->without)
        bytes_text(bytes, tag, vr, text);
}

static inline void
sample_us(struct dicom_bytes *bytes, const struct sample_image *image, uint32_t tag, unsigned value)
{
    if (tag != image->without)
        bytes_us(bytes, tag, "US", value);
}

static inline size_t
sample_pixel_bytes(const struct sample_image *image)
{
    const size_t frames = image->frames ? strtoul(image->frames, NULL, 10) : 1;
    return (size_t)image->rows * image->columns * image->bits_allocated / 8 * frames;
}

static inline void
sample_pixels(struct dicom_bytes *bytes, const struct sample_image *image)
{
    if (image->without == 0x7FE00010)
        return;
    const char *vr = image->pixel_vr ? image->pixel_vr : "OW";
    if (image->encapsulated) {
        bytes_header(bytes, 0x7FE00010, "OB", BYTES_UNDEFINED);
        image->encapsulated(bytes);
    } else if (image->pixels) {
        bytes_element(bytes, 0x7FE00010, vr, image->pixels, image->pixel_size);
    } else {
        const size_t size = sample_pixel_bytes(image);
        uint8_t *zeros = calloc(size + 1, 1);
        if (!zeros)
            abort();
        bytes_element(bytes, 0x7FE00010, vr, zeros, size);
        free(zeros);
    }
}

/* The data set alone, in the encoding that `bytes` is set to. */
static inline void
sample_data_set(struct dicom_bytes *bytes, const struct sample_image *image)
{
    sample_text(bytes, image, 0x00080005, "CS", "ISO_IR 100");
    sample_text(bytes, image, 0x00080008, "CS", image->image_type);
    sample_text(bytes, image, 0x00080016, "UI", image->class_uid);
    sample_text(bytes, image, 0x00080018, "UI", image->instance_uid);
    sample_text(bytes, image, 0x00080060, "CS", image->modality);
    sample_text(bytes, image, 0x00080070, "LO", image->manufacturer);
    sample_text(bytes, image, 0x0008103E, "LO", "A series");
    sample_text(bytes, image, 0x00081090, "LO", image->model);
    sample_text(bytes, image, 0x00100010, "PN", "Doe^Jane");
    sample_text(bytes, image, 0x00100020, "LO", "42");
    sample_text(bytes, image, 0x00180015, "CS", "HEAD");
    sample_text(bytes, image, 0x00180050, "DS", image->thickness);
    sample_text(bytes, image, 0x0020000D, "UI", image->study_uid);
    sample_text(bytes, image, 0x0020000E, "UI", image->series_uid);
    sample_text(bytes, image, 0x00200011, "IS", "3");
    sample_text(bytes, image, 0x00200013, "IS", image->instance_number);
    sample_text(bytes, image, 0x00200032, "DS", image->position);
    sample_text(bytes, image, 0x00200037, "DS", image->orientation);
    sample_text(bytes, image, 0x00200052, "UI", image->frame_of_reference_uid);
    sample_us(bytes, image, 0x00280002, image->samples);
    sample_text(bytes, image, 0x00280004, "CS", image->photometric);
    sample_text(bytes, image, 0x00280008, "IS", image->frames);
    sample_us(bytes, image, 0x00280010, image->rows);
    sample_us(bytes, image, 0x00280011, image->columns);
    sample_text(bytes, image, 0x00280030, "DS", image->spacing);
    sample_us(bytes, image, 0x00280100, image->bits_allocated);
    sample_us(bytes, image, 0x00280101, image->bits_stored);
    sample_us(bytes, image, 0x00280102, image->high_bit);
    sample_us(bytes, image, 0x00280103, image->is_signed);
    sample_text(bytes, image, 0x00281052, "DS", image->intercept);
    sample_text(bytes, image, 0x00281053, "DS", image->slope);
    if (image->extra)
        image->extra(bytes);
    sample_pixels(bytes, image);
}

/* A whole file. */
static inline void
sample_file(struct dicom_bytes *bytes, const struct sample_image *image)
{
    bytes_begin_file(bytes, image->syntax, image->class_uid ? image->class_uid : CLASS_CT, "1.2.3.4.1");
    bytes->unknown_vr = image->unknown_vr;
    sample_data_set(bytes, image);
}

static inline void
sample_write(const struct sample_image *image, const char *path)
{
    struct dicom_bytes bytes = {0};
    sample_file(&bytes, image);
    bytes_write(&bytes, path);
    bytes_free(&bytes);
}

#endif

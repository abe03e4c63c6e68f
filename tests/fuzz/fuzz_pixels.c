/*
 * fuzz_pixels.c - any bytes as the pixel data of a small image: each frame is decoded, or rejected with a reason. The
 * first bytes select the kind of image:
 *
 *   0 transfer syntax  1 columns  2 rows  3 frames
 *   4 bits stored, minus 8 (lower half), 16: signed, 32: eight bits allocated
 *   5 bytes of the Basic Offset Table  6 frame to read first
 *
 * The rest is the table and the fragments (one per frame, all of one length), native pixels, or the whole data set if
 * deflated.
 */
#include "dicom/dicom.h"
#include "tests/fuzz/must.h"
#include "tests/unit/dicom_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { HEAD = 7, MOST_SIDE = 64, MOST_FRAMES = 8 };

#define ROOT "1.2.840.10008.1.2"

static const struct {
    const char *uid;
    bool encapsulated;
} syntaxes[] = {
    {ROOT ".1", false},   {ROOT ".2", false},   {ROOT ".1.99", false}, {ROOT ".5", true},     {ROOT ".4.50", true},
    {ROOT ".4.51", true}, {ROOT ".4.57", true}, {ROOT ".4.70", true},  {ROOT ".4.80", true},  {ROOT ".4.81", true},
    {ROOT ".4.90", true}, {ROOT ".4.91", true}, {ROOT ".4.201", true}, {ROOT ".4.202", true}, {ROOT ".4.203", true},
};

static struct {
    const uint8_t *bytes;
    size_t size, table, frames;
} rest;

static void
put_items(struct dicom_bytes *bytes)
{
    const size_t table = rest.table < rest.size ? rest.table : rest.size;
    const size_t length = (rest.size - table) / rest.frames & ~(size_t)1;
    bytes_fragment(bytes, rest.bytes, table);
    for (size_t i = 0; i < rest.frames; i++)
        bytes_fragment(bytes, rest.bytes + table + i * length, length);
    bytes_delimiter(bytes, 0xFFFEE0DD, 0);
}

static void
make(const uint8_t *head, struct dicom_bytes *file)
{
    char frames[16];
    const size_t syntax = head[0] % (sizeof(syntaxes) / sizeof(syntaxes[0]));
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = syntaxes[syntax].uid;
    image.columns = 1 + head[1] % MOST_SIDE;
    image.rows = 1 + head[2] % MOST_SIDE;
    image.is_signed = head[4] >> 4 & 1;
    image.bits_allocated = head[4] & 32 ? 8 : 16;
    image.bits_stored = image.bits_allocated == 8 ? 8 : 8 + head[4] % 9;
    image.high_bit = image.bits_stored - 1;
    image.class_uid = CLASS_ENHANCED_MR;
    rest.frames = 1u + head[3] % MOST_FRAMES;
    rest.table = head[5];
    snprintf(frames, sizeof(frames), "%zu", rest.frames);
    image.frames = frames;
    image.pixels = rest.bytes;
    image.pixel_size = rest.size;
    if (syntaxes[syntax].encapsulated)
        image.encapsulated = put_items;
    if (strcmp(image.syntax, SYNTAX_DEFLATED) == 0) {
        bytes_begin_file(file, image.syntax, image.class_uid, image.instance_uid);
        bytes_put(file, rest.bytes, rest.size);
    } else {
        sample_file(file, &image);
    }
}

static void
read_frames(const struct dicom_instance *instance, int32_t first)
{
    const size_t count = (size_t)instance->rows * (size_t)instance->columns;
    struct error error = {0};
    struct dicom_pixels *pixels;
    if (count > MOST_SIDE * MOST_SIDE)
        return; /* a deflated data set brings its own elements */
    uint16_t *values = malloc(count * sizeof(*values));
    must(values != NULL);
    int rc = dicom_pixels_open(instance, &pixels, &error);
    must(rc == 0 || error.message[0]);
    for (int32_t i = 0; !rc && i < instance->frame_count && i < MOST_FRAMES; i++) {
        const int32_t frame = (first + i) % instance->frame_count;
        must(dicom_pixels_read(pixels, frame, values, &error) == 0 || error.message[0]);
    }
    if (!rc)
        dicom_pixels_close(pixels);
    free(values);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct dicom_bytes file = {0};
    struct dicom_instance *instance;
    struct error error = {0};
    char path[64];
    if (size < HEAD)
        return 0;
    dicom_init();
    rest.bytes = bytes + HEAD;
    rest.size = size - HEAD;
    make(bytes, &file);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, file.data, file.size) == (ssize_t)file.size);
    bytes_free(&file);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (dicom_peek(path, &instance, &error) == 0) {
        read_frames(instance, bytes[6]);
        dicom_instance_free(instance);
    }
    close(fd);
    return 0;
}

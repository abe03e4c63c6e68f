/*
 * fuzz_seg_source.c - any bytes as a Segmentation of other software: rejected with a reason, or read into segments,
 * frames and pixels as seg_source.h specifies.
 */
#include "dicom/read/annotation/seg_source.h"
#include "tests/fuzz/must.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_FRAMES = 16, MOST_PIXELS = 1 << 20 }; /* limits for reading; more only cost time */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_pixel(const struct seg_source *source, uint16_t pixel)
{
    switch (source->type) {
    case SEG_SOURCE_BINARY:
        must(pixel <= 1);
        break;
    case SEG_SOURCE_FRACTIONAL:
        must(pixel <= UINT8_MAX);
        break;
    case SEG_SOURCE_LABELMAP:
        must(source->bits == 16 || pixel <= UINT8_MAX);
        break;
    }
}

static void
check_frame(const struct seg_source *source, struct dicom_pixels *reader, int32_t frame, uint16_t *pixels)
{
    const struct seg_source_frame *told = &source->frames[frame];
    struct error error = {0};
    must(told->segment < source->segment_count);
    must((told->segment < 0) == (source->type == SEG_SOURCE_LABELMAP));
    for (int i = 0; told->has_geometry && i < 3; i++)
        must(fabs(told->position[i]) <= 1e6);
    must(!told->has_geometry || (told->spacing[0] > 0 && told->spacing[1] > 0));
    const int rc = seg_source_read(source, reader, frame, pixels, &error);
    if (rc)
        must_be_error(rc, &error);
    for (int64_t i = 0; !rc && i < (int64_t)source->rows * source->columns; i++)
        check_pixel(source, pixels[i]);
}

static void
check_source(const struct seg_source *source)
{
    const int64_t count = (int64_t)source->rows * source->columns;
    must(is_uid(source->sop_instance_uid) && is_uid(source->study_uid) && is_uid(source->series_uid));
    for (int32_t i = 0; i < source->series_count; i++)
        must(is_uid(source->series[i]));
    for (int32_t i = 0; i < source->segment_count; i++) {
        const struct seg_source_segment *segment = &source->segments[i];
        must(segment->number >= 0 && segment->number <= UINT16_MAX);
        must(memchr(segment->label, '\0', DICOM_LO_SIZE) != NULL);
        must(!segment->tracking_uid[0] == !segment->tracking_id[0]);
        must(!segment->tracking_uid[0] || is_uid(segment->tracking_uid));
    }
    if (count > MOST_PIXELS)
        return;
    struct dicom_pixels *reader;
    struct error error = {0};
    const int rc = dicom_pixels_open(source->image, &reader, &error);
    if (rc) {
        must_be_error(rc, &error);
        return;
    }
    uint16_t *pixels = malloc((size_t)count * sizeof *pixels);
    for (int32_t i = 0; pixels && i < source->frame_count && i < MOST_FRAMES; i++)
        check_frame(source, reader, i, pixels);
    dicom_pixels_close(reader);
    free(pixels);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dicom_init();
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    struct seg_source *source;
    struct error error = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int rc = seg_source_open(path, &source, &error);
    if (rc) {
        must_be_error(rc, &error);
        must(source == NULL);
    } else {
        check_source(source);
    }
    seg_source_close(source);
    close(fd);
    return 0;
}

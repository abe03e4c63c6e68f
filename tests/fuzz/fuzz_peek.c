/*
 * fuzz_peek.c - any bytes as a DICOM file: rejected with a reason, or read into a header as dicom.h specifies. Its
 * frames are read, or rejected with a reason.
 */
#include "dicom/dicom.h"
#include "tests/fuzz/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MOST_PIXELS = 1 << 18, /* limit per decoded frame; larger frames only cost time */
    MOST_FRAMES = 4,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_frame(const struct dicom_instance *instance, const struct dicom_frame *frame)
{
#define KEY(id, ...) must(memchr(frame->id, '\0', sizeof(frame->id)) != NULL);
#include "dicom/read/image/keys.def"
#undef KEY
    must(!frame->acquired[0] || strlen(frame->acquired) == 21);
    must(frame->tiles >= 0);
    must(frame->has_spacing == (frame->spacing != DICOM_SPACING_NONE));
    for (int axis = 0; axis < 2 && instance->flat; axis++) {
        must(!frame->has_spacing || (frame->pixel_spacing[axis] >= 1e-3 && frame->pixel_spacing[axis] <= 1e3));
        must(frame->calibrated[axis] >= 0 && frame->calibrated[axis] <= frame->calibrated[axis + 2]);
        must(frame->calibrated[axis + 2] < (axis == 0 ? instance->columns : instance->rows));
        must(!frame->has_position && !frame->has_orientation);
    }
    must(frame->excluded == CODE_NONE || frame->excluded == CODE_MOSAIC || frame->excluded == CODE_LOCALIZER ||
         frame->excluded == CODE_SCREENSHOT || frame->excluded == CODE_DERIVED_IMAGE);
}

static void
check_instance(const struct dicom_instance *i)
{
    must(is_uid(i->sop_class_uid) && is_uid(i->sop_instance_uid));
    must(is_uid(i->study_uid) && is_uid(i->series_uid));
    must(!i->frame_of_reference_uid[0] || is_uid(i->frame_of_reference_uid));
    must(i->rows > 0 && i->columns > 0 && i->frame_count > 0 && i->frames);
    must(i->bits_allocated == 8 || i->bits_allocated == 16);
    must(i->bits_stored >= 8 && i->bits_stored <= i->bits_allocated);
    must(i->high_bit >= i->bits_stored - 1 && i->high_bit < i->bits_allocated);
    must(i->stored_samples >= 1 && i->stored_samples <= 3);
    must(i->flat || (i->colour == DICOM_COLOUR_NONE && !i->has_modality_lut));
    must((i->stored_samples == 1) == (i->colour == DICOM_COLOUR_NONE || i->colour == DICOM_COLOUR_PALETTE));
    must(i->pixel_offset == -1 ||
         i->pixel_offset + (int64_t)i->rows * i->columns * i->frame_count * i->bits_allocated / 8 * i->stored_samples <=
             i->file_size);
    must(i->padding_lo <= i->padding_hi);
    must((i->tile_rows == 0) == (i->tile_columns == 0));
    must(i->tile_rows == 0 || (i->frame_count <= i->tile_rows * i->tile_columns && !i->multi_frame));
    for (int32_t f = 0; f < i->frame_count; f++)
        check_frame(i, &i->frames[f]);
}

static void
read_frames(const struct dicom_instance *instance)
{
    const size_t count = (size_t)instance->rows * (size_t)instance->columns;
    struct error error = {0};
    struct dicom_pixels *pixels;
    if (count > MOST_PIXELS)
        return;
    void *values = malloc(count * image_pixel_size(instance->pixel));
    must(values != NULL);
    int rc = dicom_pixels_open(instance, &pixels, &error);
    if (rc)
        must_be_error(rc, &error);
    if (!rc)
        dicom_pixels_choose(pixels, (enum dicom_channel)(instance->rows % 4));
    for (int32_t frame = 0; !rc && frame < instance->frame_count && frame < MOST_FRAMES; frame++) {
        int failed = dicom_pixels_read(pixels, frame, values, &error);
        if (failed)
            must_be_error(failed, &error);
    }
    if (!rc)
        dicom_pixels_close(pixels);
    free(values);
}

static void
inherit(const char *path)
{
    struct dicom_inherited inherited;
    struct error error = {0};
    int rc = dicom_inherit(path, &inherited, &error);
    if (rc) {
        must_be_error(rc, &error);
        return;
    }
    for (size_t i = 0; i < inherited.count; i++)
        must(inherited.elements[i].size >= 8 && inherited.elements[i].size % 2 == 0);
    dicom_inherited_free(&inherited);
}

static void
check_identity(const char *path)
{
    struct dicom_identity identity;
    dicom_identify(path, &identity);
    must(!identity.sop_instance_uid[0] || is_uid(identity.sop_instance_uid));
    must(!identity.series_uid[0] || is_uid(identity.series_uid));
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dicom_init();
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct dicom_instance *instance;
    struct error error = {0};
    int rc = dicom_peek(path, &instance, &error);
    if (rc) {
        must_be_error(rc, &error);
        must(instance == NULL);
        check_identity(path);
    } else {
        check_instance(instance);
        read_frames(instance);
        dicom_instance_free(instance);
    }
    inherit(path);
    close(fd);
    return 0;
}

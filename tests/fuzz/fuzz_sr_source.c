/*
 * fuzz_sr_source.c - any bytes as a structured report of other software: rejected with a reason, or read into items
 * and coordinates as sr_source.h specifies.
 */
#include "dicom/read/annotation/sr_source.h"
#include "tests/fuzz/must.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_figure(const struct sr_source_figure *figure)
{
    must(figure->type && figure->count >= 0 && figure->image_count >= 0);
    must(figure->form != SR_SOURCE_ELLIPSE || figure->count == 2 || figure->count == 4);
    must(!figure->frame_of_reference_uid[0] || figure->image_count == 0);
    for (int32_t i = 0; i < figure->image_count; i++)
        for (int32_t k = 0; k < figure->images[i].frame_count; k++)
            must(figure->images[i].frames[k] > 0);
    for (int64_t i = 0; i < 3 * figure->count; i++)
        must(fabs(figure->points[i]) <= 1e6);
}

static void
check_source(const struct sr_source *source)
{
    must(is_uid(source->sop_instance_uid) && is_uid(source->study_uid) && is_uid(source->series_uid));
    for (int32_t i = 0; i < source->series_count; i++)
        must(is_uid(source->series[i]));
    for (int32_t i = 0; i < source->item_count; i++) {
        const struct sr_source_item *item = &source->items[i];
        must(item->number == i + 1 && item->figure_count > 0);
        must(memchr(item->name, '\0', DICOM_LO_SIZE) && memchr(item->finding, '\0', DICOM_LO_SIZE));
        for (int32_t k = 0; k < item->figure_count; k++)
            check_figure(&item->figures[k]);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64];
    dicom_init();
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct sr_source *source;
    struct error error = {0};
    int rc = sr_source_open(path, &source, &error);
    if (rc) {
        must_be_error(rc, &error);
        must(source == NULL);
    } else {
        check_source(source);
    }
    sr_source_close(source);
    close(fd);
    return 0;
}

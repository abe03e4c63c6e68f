/*
 * fuzz_rtstruct.c - any bytes as a structure set: rejected with a reason, or read into regions and contours as
 * rtstruct.h specifies. The contours make a mask or are rejected with a reason.
 */
#include "dicom/read/annotation/rtstruct.h"
#include "kernels/mask/contours.h"
#include "tests/fuzz/must.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_REGIONS = 16 }; /* max regions with contours to read; more only cost time */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
draw(const struct rtstruct_contours *contours)
{
    static uint64_t bits[4 * 64];
    const double origins[] = {0, 0, 0, 0, 0, 2, 0, 0, 3, 0, 0, 8};
    const struct image_planes planes = {{50, 64, 4}, {1, 0, 0, 0, 1, 0}, {0.5, 0.75}, 1, origins};
    struct contours_drawn drawn;
    struct error error = {0};
    const struct contours_request request = {&planes, contours->contours, contours->count, true,
                                             contours->count % 2 == 1};
    const int rc = kernels_mask_contours(&request, bits, &drawn, &error);
    if (rc)
        must_be_error(rc, &error);
    else
        must(drawn.voxels >= 0 && drawn.voxels <= 50 * 64 * 4 && drawn.planes <= 4);
}

static void
check_contours(const struct rtstruct_contours *contours)
{
    for (int64_t i = 0; i < contours->count; i++) {
        const struct contour *contour = &contours->contours[i];
        must(contour->count > 0);
        must(!contours->images[i][0] || is_uid(contours->images[i]));
        for (int64_t k = 0; k < 3 * contour->count; k++)
            must(fabs(contour->points[k]) <= 1e6);
    }
}

static void
check_roi(const struct rtstruct *set, int32_t roi)
{
    struct rtstruct_contours contours;
    struct error error = {0};
    must(!set->rois[roi].frame_of_reference_uid[0] || is_uid(set->rois[roi].frame_of_reference_uid));
    must(memchr(set->rois[roi].name, '\0', DICOM_LO_SIZE) != NULL);
    must(memchr(set->rois[roi].type, '\0', DICOM_CS_SIZE) != NULL);
    const int rc = rtstruct_contours_read(set, roi, &contours, &error);
    if (rc) {
        must_be_error(rc, &error);
        return;
    }
    must(contours.count + contours.left_out == set->rois[roi].contours);
    check_contours(&contours);
    draw(&contours);
    rtstruct_contours_free(&contours);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dicom_init();
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    struct rtstruct *set;
    struct error error = {0};
    int rc = rtstruct_open_file(fd, "fuzz", &set, &error);
    close(fd);
    if (rc) {
        must_be_error(rc, &error);
        must(set == NULL);
        return 0;
    }
    must(is_uid(set->sop_instance_uid) && is_uid(set->study_uid) && is_uid(set->series_uid));
    for (int32_t i = 0; i < set->series_count; i++)
        must(is_uid(set->series[i].series_uid));
    for (int32_t i = 0; i < set->roi_count && i < MOST_REGIONS; i++)
        check_roi(set, i);
    rtstruct_close(set);
    return 0;
}

/*
 * draw_contours.c - for tests: draws the regions of a structure set on the planes of a series. Prints the outcome of
 * each as one JSON object, and writes the masks.
 *
 *   draw_contours [--centres] OUTPUT RTSTRUCT IMAGE...
 *
 * With --centres, voxels whose centres lie on a contour are part of the region.
 *
 * OUTPUT gets one byte per voxel, x fastest, for each drawn region, in the order printed. The images must be the
 * planes of one stack; they need not pass the geometry check. Rejections also exit with 0: the JSON has their reasons.
 */
#include "dicom/read/annotation/rtstruct.h"
#include "kernels/mask/contours.h"
#include "tests/tools/seconds.h"
#include "tests/tools/stack_planes.h"

#include <string.h>

static void
print_fault(const struct error *error)
{
    printf("\"code\": \"%s\", \"message\": \"%s\"", code_name(error->code), error->message);
}

static void
write_mask(const struct image_planes *planes, const uint64_t *bits, FILE *output)
{
    const int64_t words = (planes->extent.columns + 63) / 64;
    uint8_t *row = allocate((size_t)planes->extent.columns, 1);
    for (int64_t y = 0; y < planes->extent.rows * planes->extent.slices; y++, bits += words) {
        for (int64_t x = 0; x < planes->extent.columns; x++)
            row[x] = bits[x / 64] >> x % 64 & 1;
        if (fwrite(row, (size_t)planes->extent.columns, 1, output) != 1)
            abort();
    }
    free(row);
}

static void
draw_roi(const struct image_planes *planes, const struct rtstruct *set, int32_t roi, bool centres, FILE *output)
{
    const size_t words = (size_t)((planes->extent.columns + 63) / 64);
    uint64_t *bits = allocate(words * (size_t)(planes->extent.rows * planes->extent.slices), sizeof(*bits));
    struct rtstruct_contours contours;
    struct contours_drawn drawn = {0};
    struct error error = {0};
    double parsed = 0, done = 0;
    const double begun = seconds_of(CLOCK_MONOTONIC);
    int rc = rtstruct_contours_read(set, roi, &contours, &error);
    parsed = seconds_of(CLOCK_MONOTONIC);
    if (!rc)
        rc =
            kernels_mask_contours(&(struct contours_request){planes, contours.contours, contours.count, false, centres},
                                  bits, &drawn, &error);
    done = seconds_of(CLOCK_MONOTONIC);
    printf("{\"number\": %d, \"name\": \"%s\", \"type\": \"%s\", ", set->rois[roi].number, set->rois[roi].name,
           set->rois[roi].type);
    printf("\"frame_of_reference\": \"%s\", \"contours\": %lld, \"left_out\": %lld, ",
           set->rois[roi].frame_of_reference_uid, (long long)contours.count, (long long)contours.left_out);
    printf("\"images\": [");
    for (int64_t i = 0; i < contours.count; i++)
        printf("%s\"%s\"", i ? ", " : "", contours.images[i]);
    printf("], \"voxels\": %lld, \"planes\": %lld, \"missing\": %lld, \"farthest\": %.17g, ", (long long)drawn.voxels,
           (long long)drawn.planes, (long long)drawn.missing, drawn.farthest);
    printf("\"points\": %lld, \"on_centres\": %lld, ", (long long)drawn.points, (long long)drawn.on_centres);
    printf("\"parse_seconds\": %.6f, \"draw_seconds\": %.6f, ", parsed - begun, done - parsed);
    print_fault(&error);
    printf("}");
    if (!rc)
        write_mask(planes, bits, output);
    rtstruct_contours_free(&contours);
    free(bits);
}

static void
draw_set(const struct image_planes *planes, const char *path, bool centres, FILE *output)
{
    struct error error = {0};
    struct rtstruct *set;
    const double begun = seconds_of(CLOCK_MONOTONIC);
    if (rtstruct_open(path, &set, &error)) {
        printf("{");
        print_fault(&error);
        printf("}\n");
        return;
    }
    printf("{\"code\": \"\", \"open_seconds\": %.6f, \"series\": [", seconds_of(CLOCK_MONOTONIC) - begun);
    for (int32_t i = 0; i < set->series_count; i++)
        printf("%s[\"%s\", \"%s\"]", i ? ", " : "", set->series[i].frame_of_reference_uid, set->series[i].series_uid);
    printf("], \"extent\": [%lld, %lld, %lld], \"rois\": [", (long long)planes->extent.columns,
           (long long)planes->extent.rows, (long long)planes->extent.slices);
    for (int32_t i = 0; i < set->roi_count; i++) {
        printf("%s", i ? ", " : "");
        draw_roi(planes, set, i, centres, output);
    }
    printf("]}\n");
    rtstruct_close(set);
}

int
main(int argc, char **argv)
{
    const bool centres = argc > 1 && strcmp(argv[1], "--centres") == 0;
    argc -= centres;
    argv += centres;
    if (argc < 4) {
        fputs("usage: draw_contours [--centres] OUTPUT RTSTRUCT IMAGE...\n", stderr);
        return 2;
    }
    FILE *output = fopen(argv[1], "wb");
    if (!output) {
        perror(argv[1]);
        return 2;
    }
    struct stack_planes stack;
    dicom_init();
    stack_open(argc - 3, argv + 3, &stack);
    draw_set(&stack.planes, argv[2], centres, output);
    stack_close(&stack);
    return fclose(output) ? 1 : 0;
}

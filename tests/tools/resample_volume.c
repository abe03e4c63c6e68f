/*
 * resample_volume.c - for tests: resamples a series to another grid, prints the grid and the time as one JSON object,
 * and writes the volume.
 *
 *   resample_volume BACKEND ORDER GRID LEVEL RTSTRUCT OUTPUT IMAGE...
 *
 * GRID is straight[:MM] or spaced:X,Y,Z (mm, 0 keeps the spacing). RTSTRUCT is "-", or a structure set whose first
 * region is resampled, as a volume of 0 and 1, instead of the series. OUTPUT gets the stored values, little endian,
 * as int16 if the order is 3. One byte per voxel of the source planes follows: the grid's voxels of at least LEVEL,
 * resampled back as a mask. The images must be the planes of one stack.
 */
#include "dicom/read/annotation/rtstruct.h"
#include "kernels/mask/contours.h"
#include "kernels/resample/resample.h"
#include "tests/tools/seconds.h"
#include "tests/tools/stack_planes.h"

static struct error error;

static void
must(int rc)
{
    if (rc)
        stack_fail(&error);
}

static struct resample_grid
parse_grid(const char *text, const struct image_planes *planes)
{
    struct resample_grid grid;
    double mm[3] = {0};
    if (sscanf(text, "spaced:%lf,%lf,%lf", &mm[0], &mm[1], &mm[2]) == 3) {
        resample_spaced(planes, mm, &grid);
    } else {
        (void)sscanf(text, "straight:%lf", &mm[0]);
        resample_straight(planes, mm[0], &grid);
    }
    return grid;
}

/* Expands bits to one byte per voxel. */
static void
spread(struct image_extent extent, const uint64_t *bits, uint8_t *bytes)
{
    const int64_t words = (extent.columns + 63) / 64;
    for (int64_t y = 0; y < extent.rows * extent.slices; y++)
        for (int64_t x = 0; x < extent.columns; x++)
            bytes[y * extent.columns + x] = bits[y * words + x / 64] >> x % 64 & 1;
}

static uint64_t *
room_for_bits(struct image_extent extent)
{
    return allocate((size_t)((extent.columns + 63) / 64 * extent.rows * extent.slices), sizeof(uint64_t));
}

static void
load_mask(const struct stack_planes *stack, const char *path, uint8_t *voxels)
{
    uint64_t *bits = room_for_bits(stack->planes.extent);
    struct rtstruct *set;
    struct rtstruct_contours contours;
    struct contours_drawn drawn;
    must(rtstruct_open(path, &set, &error));
    must(rtstruct_contours_read(set, 0, &contours, &error));
    const struct contours_request request = {&stack->planes, contours.contours, contours.count, false, false};
    must(kernels_mask_contours(&request, bits, &drawn, &error));
    spread(stack->planes.extent, bits, voxels);
    rtstruct_contours_free(&contours);
    rtstruct_close(set);
    free(bits);
}

static void
load_series(const struct stack_planes *stack, uint8_t *voxels)
{
    const size_t size = (size_t)image_slice_voxels(&stack->planes.extent) * image_pixel_size(stack->stack->pixel);
    for (int32_t i = 0; i < stack->stack->plane_count; i++) {
        const struct geometry_plane *plane = &stack->stack->planes[i];
        struct dicom_pixels *pixels;
        must(dicom_pixels_open(stack->instances[plane->instance], &pixels, &error));
        must(dicom_pixels_read(pixels, plane->frame, voxels + (size_t)i * size, &error));
        dicom_pixels_close(pixels);
    }
}

/* Writes the mask, on the planes, of all voxels of at least `level`. */
static void
write_mask(const struct image_planes *planes, const struct resample_grid *grid, enum image_pixel pixel,
           const void *voxels, int level, FILE *output)
{
    const int64_t words = (grid->extent.columns + 63) / 64;
    uint64_t *bits = room_for_bits(grid->extent), *back = room_for_bits(planes->extent);
    uint8_t *bytes = allocate((size_t)image_voxels(&planes->extent), 1);
    int64_t set;
    for (int64_t i = 0; i < image_voxels(&grid->extent); i++) {
        const int64_t x = i % grid->extent.columns, y = i / grid->extent.columns;
        if (image_value(voxels, pixel, i) >= level)
            bits[y * words + x / 64] |= UINT64_C(1) << x % 64;
    }
    must(kernels_resample_mask(planes, grid, bits, back, &set, &error));
    spread(planes->extent, back, bytes);
    if (fwrite(bytes, (size_t)image_voxels(&planes->extent), 1, output) != 1)
        abort();
    free(bits);
    free(back);
    free(bytes);
}

static void
print_grid(const struct resample_grid *grid, enum image_pixel pixel, double seconds)
{
    static const char *const types[] = {"uint8", "int16", "uint16"};
    printf("{\"extent\": [%lld, %lld, %lld], \"pixel\": \"%s\", \"seconds\": %.6f", (long long)grid->extent.columns,
           (long long)grid->extent.rows, (long long)grid->extent.slices, types[pixel], seconds);
    printf(", \"spacing\": [%.17g, %.17g, %.17g], \"origin\": [%.17g, %.17g, %.17g]}\n", grid->spacing[0],
           grid->spacing[1], grid->spacing[2], grid->origin[0], grid->origin[1], grid->origin[2]);
}

int
main(int argc, char **argv)
{
    if (argc < 8) {
        fputs("usage: resample_volume BACKEND ORDER GRID LEVEL RTSTRUCT OUTPUT IMAGE...\n", stderr);
        return 2;
    }
    const bool is_mask = strcmp(argv[5], "-") != 0;
    FILE *output = fopen(argv[6], "wb");
    struct stack_planes stack;
    struct kernels_device *device;
    struct kernels_lane *lane;
    const void *resampled;
    void *voxels;
    dicom_init();
    stack_open(argc - 7, argv + 7, &stack);
    const struct resample_grid grid = parse_grid(argv[3], &stack.planes);
    const enum image_pixel pixel = is_mask ? IMAGE_UINT8 : stack.stack->pixel;
    const int order = atoi(argv[2]);
    const enum image_pixel result = order == RESAMPLE_CUBIC ? IMAGE_INT16 : pixel;
    const struct resample_demand demand = {grid.extent, order, result, RESAMPLE_STORED};
    const struct kernels_demand asked = {.of = {[KERNELS_RESAMPLE] = &demand}};
    const struct resample_request request = {&stack.planes, &grid, order, 0, NULL, NULL};
    const struct kernels_device_options options = {.backend = argv[1]};
    must(kernels_device_open(&options, &device, &error));
    must(kernels_lane_open(device, &lane, &error));
    must(kernels_volume_begin(lane, stack.planes.extent, pixel, &asked, &voxels, &error));
    if (is_mask)
        load_mask(&stack, argv[5], voxels);
    else
        load_series(&stack, voxels);
    must(kernels_volume_ready(lane, 0, stack.planes.extent.slices, &error));
    const double begun = seconds_of(CLOCK_MONOTONIC);
    must(kernels_resample(lane, &request, &resampled, &error));
    print_grid(&grid, result, seconds_of(CLOCK_MONOTONIC) - begun);
    if (!output || fwrite(resampled, image_pixel_size(result), (size_t)image_voxels(&grid.extent), output) !=
                       (size_t)image_voxels(&grid.extent))
        abort();
    write_mask(&stack.planes, &grid, result, resampled, atoi(argv[4]), output);
    kernels_lane_close(lane);
    kernels_device_close(device);
    stack_close(&stack);
    return fclose(output) ? 1 : 0;
}

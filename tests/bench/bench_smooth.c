/*
 * bench_smooth.c - times the mean values of blocks, the expansion of their masks, and ranges of Gaussian-filtered
 * values. Prints a JSON line per case; times are the fastest of the repeats.
 *
 *   bench_smooth [BACKEND [THREADS [REPEATS]]]   "cpu" or "cuda" (auto), 0 (as many as CPUs), 5
 *   bench_smooth BACKEND blocks|smooth MM FILE COLUMNS,ROWS,SLICES X,Y,Z LOW,HIGH OUT
 *
 * The second form reads int16 voxels from the file, and writes the blocks in eighths, or the bits of filtered values
 * from LOW to HIGH. Values are clipped to -1024 .. 3071 first.
 *
 * The volume is resident. The time ends with the result in host memory, so on a GPU it includes the download.
 * floor_bytes is one read of the volume and one write of the result.
 */
#include "kernels/coarse/coarse.h"
#include "kernels/smooth/smooth.h"
#include "tests/kernels/ref_drive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kernels_lane *lane;
static struct kernels_device *device;
static int repeats = 5;
static struct error error;

static void
must(int rc)
{
    if (rc) {
        fprintf(stderr, "bench_smooth: %s\n", error.message);
        exit(EXIT_FAILURE);
    }
}

static void *
allocate(size_t count, size_t size)
{
    void *memory = malloc(count * size);

    if (!memory)
        abort();
    memset(memory, 1, count * size); /* pages are resident */
    return memory;
}

static size_t
words_of(struct image_extent extent)
{
    return (size_t)((extent.columns + 63) / 64 * extent.rows * extent.slices);
}

/* Returns the memory for the voxels. */
static void *
begin_volume(struct image_extent extent, const double spacing[3], double sigma_mm)
{
    const struct smooth_demand smooth = {{spacing[0], spacing[1], spacing[2]}, sigma_mm};
    const struct kernels_demand demand = {.of = {[KERNELS_COARSE] = &kernels_asked, [KERNELS_SMOOTH] = &smooth}};
    void *voxels;

    must(kernels_volume_begin(lane, extent, IMAGE_INT16, &demand, &voxels, &error));
    return voxels;
}

static void
fill_volume(struct image_extent extent, const double spacing[3], double sigma_mm)
{
    int16_t *voxels = begin_volume(extent, spacing, sigma_mm);

    for (int64_t i = 0; i < image_voxels(&extent); i++)
        voxels[i] = (int16_t)((i * 37 + i / 512 * 11) % 3000 - 1000);
    must(kernels_volume_ready(lane, 0, extent.slices, &error));
}

static void
print_case(const char *name, struct image_extent extent, double seconds, size_t bytes)
{
    printf("{\"case\":\"%s\",\"backend\":\"%s\",\"threads\":%d,\"extent\":[%lld,%lld,%lld],\"median_seconds\":%.6f,"
           "\"floor_bytes\":%zu,\"bytes_per_second\":%.3g}\n",
           name, kernels_device_backend(device), kernels_device_threads(device), (long long)extent.columns,
           (long long)extent.rows, (long long)extent.slices, seconds, bytes, (double)bytes / seconds);
    fflush(stdout);
}

/* Sets `seconds` to the fastest time of the statement. */
#define FASTEST(seconds, statement)                                                                                    \
    do {                                                                                                               \
        (seconds) = 1e9;                                                                                               \
        for (int i_ = 0; i_ <= repeats; i_++) {                                                                        \
            const double begun_ = ref_clock();                                                                         \
            statement;                                                                                                 \
            const double took_ = ref_clock() - begun_;                                                                 \
            (seconds) = took_ < (seconds) ? took_ : (seconds);                                                         \
        }                                                                                                              \
    } while (0)

static void
time_blocks(const char *name, struct image_extent extent, const double spacing[3])
{
    struct coarse_request request = {.lo = -1024, .hi = 3071, .scale = 8, .padding = {-2000, -2000}};
    double seconds;

    coarse_grid_find(extent, spacing, 2, &request.grid);
    request.blocks = allocate((size_t)image_voxels(&request.grid.extent), sizeof(*request.blocks));
    fill_volume(extent, spacing, 1);
    FASTEST(seconds, must(coarse_run(lane, &request, &error)));
    print_case(name, extent, seconds, 2 * (size_t)(image_voxels(&extent) + image_voxels(&request.grid.extent)));
    free(request.blocks);
}

static void
time_expansion(struct image_extent extent, const double spacing[3])
{
    struct coarse_grid grid;
    double seconds;

    coarse_grid_find(extent, spacing, 2, &grid);
    uint64_t *mask = allocate(words_of(grid.extent), sizeof(*mask)), *bits = allocate(words_of(extent), sizeof(*bits));
    for (size_t i = 0; i < words_of(grid.extent); i++)
        mask[i] = i % 4 == 1 ? ~UINT64_C(0) << 13 : i % 4 == 2 ? UINT64_C(0x7ffff0ff) : 0;
    FASTEST(seconds, coarse_expand(&grid, mask, extent, kernels_device_threads(device), false, bits));
    print_case("expand-2mm", extent, seconds, 8 * (words_of(grid.extent) + words_of(extent)));
    free(mask);
    free(bits);
}

static void
time_filter(const char *name, struct image_extent extent, const double spacing[3], double sigma_mm, bool counts)
{
    struct smooth_request request = {
        .sigma_mm = sigma_mm, .lo = -1024, .hi = 3071, .padding = {1, 0}, .range = {-10, 250}};
    uint64_t bins[500];
    double seconds;

    request.bits = allocate(words_of(extent), sizeof(*request.bits));
    if (counts) {
        request.histogram = bins;
        request.bins = 500;
        request.first = -200;
        request.width = 1;
    }
    fill_volume(extent, spacing, sigma_mm);
    FASTEST(seconds, must(smooth_run(lane, &request, &error)));
    print_case(name, extent, seconds, 2 * (size_t)image_voxels(&extent) + 8 * words_of(extent));
    free(request.bits);
}

static void
use_file(const char *path, const char *mode, void *memory, size_t size)
{
    FILE *file = fopen(path, mode);

    if (!file || (*mode == 'r' ? fread(memory, 1, size, file) : fwrite(memory, 1, size, file)) != size ||
        fclose(file)) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static void
run_file(char **arguments)
{
    const bool filter = strcmp(arguments[0], "smooth") == 0;
    struct coarse_request blocks = {.lo = -1024, .hi = 3071, .scale = 8, .padding = {1, 0}};
    struct smooth_request smooth = {.sigma_mm = atof(arguments[1]), .lo = -1024, .hi = 3071, .padding = {1, 0}};
    struct image_extent extent = {0};
    double spacing[3] = {0};
    size_t size;
    void *result;

    (void)sscanf(arguments[3], "%" SCNd64 ",%" SCNd64 ",%" SCNd64, &extent.columns, &extent.rows, &extent.slices);
    (void)sscanf(arguments[4], "%lf,%lf,%lf", &spacing[0], &spacing[1], &spacing[2]);
    (void)sscanf(arguments[5], "%" SCNd32 ",%" SCNd32, &smooth.range.lo, &smooth.range.hi);
    coarse_grid_find(extent, spacing, smooth.sigma_mm, &blocks.grid);
    size = filter ? 8 * words_of(extent) : 2 * (size_t)image_voxels(&blocks.grid.extent);
    result = allocate(size, 1);
    smooth.bits = result;
    blocks.blocks = result;
    use_file(arguments[2], "rb", begin_volume(extent, spacing, smooth.sigma_mm), 2 * (size_t)image_voxels(&extent));
    must(kernels_volume_ready(lane, 0, extent.slices, &error));
    must(filter ? smooth_run(lane, &smooth, &error) : coarse_run(lane, &blocks, &error));
    use_file(arguments[6], "wb", result, size);
    free(result);
}

int
main(int argc, char **argv)
{
    static const struct image_extent whole = {512, 512, 300}, coarse = {256, 256, 150};
    static const double even[3] = {0.98, 0.98, 1}, thick[3] = {0.7, 0.7, 2.5}, grid[3] = {1.96, 1.96, 2};
    const struct kernels_device_options options = {.backend = argc > 1 ? argv[1] : "auto",
                                                   .threads = argc > 2 ? atoi(argv[2]) : 0};

    must(kernels_device_open(&options, &device, &error));
    must(kernels_lane_open(device, &lane, &error));
    if (argc == 9) {
        run_file(argv + 2);
        kernels_lane_close(lane);
        kernels_device_close(device);
        return 0;
    }
    repeats = argc > 3 && atoi(argv[3]) > 0 ? atoi(argv[3]) : repeats;
    time_blocks("blocks-2x2x2", whole, even);
    time_blocks("blocks-3x3x1", whole, thick);
    time_expansion(whole, even);
    time_filter("smooth-1mm", whole, even, 1, false);
    time_filter("smooth-1mm-thick", whole, thick, 1, false);
    time_filter("smooth-0.7mm-thick", whole, thick, 0.7, false);
    time_filter("smooth-2mm-coarse", coarse, grid, 2, false);
    time_filter("smooth-3mm-coarse", coarse, grid, 3, false);
    time_filter("smooth-3mm-counted-coarse", coarse, grid, 3, true);
    kernels_lane_close(lane);
    kernels_device_close(device);
    return 0;
}

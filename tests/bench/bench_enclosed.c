/*
 * bench_enclosed.c - times enclosed voxels. Prints a JSON line per case; times are the fastest of the repeats.
 *
 *   bench_enclosed [BACKEND [THREADS [REPEATS]]]   "cpu" or "cuda" (auto), 0 (as many as CPUs), 5
 *
 * The mask is a shell with holes. The time ends with the result in host
 * memory, so on a GPU it includes the upload of the mask and the download. floor_bytes is one read and one write of a mask.
 */
#include "kernels/enclosed/enclosed.h"
#include "tests/kernels/ref_drive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct kernels_lane *lane;
static struct kernels_device *device;
static int repeats = 5;
static struct error error;

static void
must(int rc)
{
    if (rc) {
        fprintf(stderr, "bench_enclosed: %s\n", error.message);
        exit(EXIT_FAILURE);
    }
}

/* Draws a shell around half the extent, with holes. */
static void
draw(struct image_extent extent, uint64_t *bits)
{
    const int64_t words = (extent.columns - 1) / 64 + 1;

    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++) {
                const double a = ((double)x + 0.5) / (double)extent.columns - 0.5;
                const double b = ((double)y + 0.5) / (double)extent.rows - 0.5;
                const double c = ((double)z + 0.5) / (double)extent.slices - 0.5;
                const double radius = sqrt(a * a + b * b + c * c);

                if (radius > 0.3 && radius < 0.33 && (x * 7 + y * 5 + z * 3) % 61 > 3)
                    bits[(z * extent.rows + y) * words + x / 64] |= UINT64_C(1) << x % 64;
            }
}

static void
time_case(const char *name, struct image_extent extent, double mm, enum enclosed_directions directions, int at_least)
{
    const struct kernels_demand demand = {.of = {[KERNELS_ENCLOSED] = &kernels_asked}};
    const size_t words = (size_t)((extent.columns - 1) / 64 + 1) * (size_t)(extent.rows * extent.slices);
    uint64_t *mask = calloc(words, sizeof(*mask)), *bits = calloc(words, sizeof(*bits));
    const struct enclosed_request request = {.mask = mask,
                                             .directions = directions,
                                             .at_least = at_least,
                                             .within_mm = 220,
                                             .spacing = {mm, mm, mm},
                                             .bits = bits};
    double least = INFINITY;
    int64_t found = 0;
    void *voxels;

    if (!mask || !bits)
        abort();
    draw(extent, mask);
    must(kernels_volume_begin(lane, extent, IMAGE_UINT8, &demand, &voxels, &error));
    must(kernels_volume_ready(lane, 0, extent.slices, &error));
    for (int i = 0; i <= repeats; i++) {
        const double begun = ref_clock();

        must(enclosed_run(lane, &request, &error));
        const double took = ref_clock() - begun;
        least = took < least ? took : least;
    }
    for (size_t i = 0; i < words; i++)
        found += __builtin_popcountll(bits[i]);
    printf("{\"case\":\"%s\",\"backend\":\"%s\",\"threads\":%d,\"extent\":[%lld,%lld,%lld],\"min_seconds\":%.6f,"
           "\"floor_bytes\":%zu,\"voxels\":%lld}\n",
           name, kernels_device_backend(device), kernels_device_threads(device), (long long)extent.columns,
           (long long)extent.rows, (long long)extent.slices, least, 2 * sizeof(*bits) * words, (long long)found);
    fflush(stdout);
    free(mask);
    free(bits);
}

int
main(int argc, char **argv)
{
    static const struct image_extent whole = {512, 512, 300}, chest = {180, 180, 140}, head = {128, 128, 80};
    const struct kernels_device_options options = {.backend = argc > 1 ? argv[1] : "auto",
                                                   .threads = argc > 2 ? atoi(argv[2]) : 0};

    must(kernels_device_open(&options, &device, &error));
    must(kernels_lane_open(device, &lane, &error));
    repeats = argc > 3 && atoi(argv[3]) > 0 ? atoi(argv[3]) : repeats;
    time_case("enclosed-26-head-2mm", head, 2, ENCLOSED_26, 22);
    time_case("enclosed-26-chest-2mm", chest, 2, ENCLOSED_26, 22);
    time_case("enclosed-16-chest-2mm", chest, 2, ENCLOSED_AXIAL_16, 13);
    time_case("enclosed-26-whole-1mm", whole, 1, ENCLOSED_26, 22);
    time_case("enclosed-16-whole-1mm", whole, 1, ENCLOSED_AXIAL_16, 13);
    kernels_lane_close(lane);
    kernels_device_close(device);
    return 0;
}

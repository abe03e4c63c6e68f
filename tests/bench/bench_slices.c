/*
 * bench_slices.c - times the brick file of the slice viewer: written, and planes of each view read. Prints a JSON line.
 *
 *   bench_slices                              a body of 512 x 512 x 600 voxels in air, both with noise, and 4 segments
 *   bench_slices COLUMNS ROWS SLICES FILE LOW HIGH     16-bit values of the file and its grey window, without segments
 *
 * Environment: THREADS, of the writer (1).
 */
#include "service/common/slices/slices.h"
#include "tests/tools/seconds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEGMENTS = 4, PLANES = 41 };

static void
must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench_slices: %s\n", what);
    exit(1);
}

/* Fills an ellipse of soft tissue of 40 HU in air, with noise of about 12 HU, and nested segments. */
static void
fill(const int32_t size[3], int16_t *values, uint64_t *bits[SEGMENTS])
{
    const int64_t words = (size[0] + 63) / 64;
    uint32_t state = 1;
    for (int32_t z = 0; z < size[2]; z++)
        for (int32_t y = 0; y < size[1]; y++)
            for (int32_t x = 0; x < size[0]; x++) {
                const double u = 2.0 * x / size[0] - 1, v = 2.0 * y / size[1] - 1, r = u * u / 0.7 + v * v / 0.4;
                int noise = 0;
                for (int i = 0; i < 4; i++) {
                    state = state * 1664525 + 1013904223;
                    noise += (int)(state >> 27) - 16;
                }
                const int value = (r < 1 ? 40 : -1000) + noise * 2 / 3;
                values[((int64_t)z * size[1] + y) * size[0] + x] = (int16_t)(value < -1024 ? -1024 : value);
                for (int s = 0; s < SEGMENTS; s++)
                    if (r < 0.9 - 0.2 * s)
                        bits[s][((int64_t)z * size[1] + y) * words + x / 64] |= (uint64_t)1 << x % 64;
            }
}

static int
compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
read_view(int fd, enum slices_view view, const int32_t size[3])
{
    double seconds[PLANES];
    for (int i = 0; i < PLANES; i++) {
        struct slices *file;
        struct slices_plane plane;
        struct error error = {0};
        seconds[i] = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        must(slices_open(fd, &file, &error) == 0, error.message);
        const struct slices_layout layout = slices_layout_of(slices_volume_of(file), view);
        const int32_t at = (int32_t)((int64_t)(size[layout.through] - 1) * i / (PLANES - 1));
        must(slices_read_plane(file, &layout, at, &plane, &error) == 0, error.message);
        slices_plane_free(&plane);
        slices_close(file);
        seconds[i] = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds[i];
    }
    qsort(seconds, PLANES, sizeof *seconds, compare);
    printf(", \"%s_ms\": [%.1f, %.1f]", slices_view_keys[view], 1000 * seconds[PLANES / 2], 1000 * seconds[PLANES - 1]);
}

int
main(int count, char **arguments)
{
    int32_t size[3] = {512, 512, 600};
    for (int i = 0; i < 3 && count == 7; i++)
        size[i] = (int32_t)strtol(arguments[1 + i], NULL, 10);
    const size_t voxels = (size_t)size[0] * (size_t)size[1] * (size_t)size[2];
    const int64_t words = (size[0] + 63) / 64;
    const char *threads = getenv("THREADS");
    struct slices_segment segments[SEGMENTS] = {
        {{255, 0, 0}, "a"}, {{0, 255, 0}, "b"}, {{0, 0, 255}, "c"}, {{9, 9, 9}, "d"}};
    struct image_rescale rescale = {1, 0};
    struct image_mask masks[SEGMENTS];
    const struct image_mask *pointers[SEGMENTS];
    uint64_t *bits[SEGMENTS];
    int16_t *values = malloc(2 * voxels);
    must(size[0] > 0 && size[1] > 0 && size[2] > 0 && values, "memory, or the size");
    for (int s = 0; s < SEGMENTS; s++) {
        bits[s] = calloc((size_t)(words * size[1] * size[2]), sizeof *bits[s]);
        masks[s] = (struct image_mask){bits[s], words, 1};
        pointers[s] = &masks[s];
        must(bits[s] != NULL, "memory");
    }
    if (count == 7) {
        FILE *in = fopen(arguments[4], "rb");
        must(in && fread(values, 2, voxels, in) == voxels, "the file is too short");
        fclose(in);
    } else {
        fill(size, values, bits);
    }
    const struct slices_volume volume = {
        .size = {size[0], size[1], size[2]},
        .pixel = IMAGE_INT16,
        .has_geometry = true,
        .spacing = {0.7, 0.7, 1},
        .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1},
        .window = {count == 7 ? strtod(arguments[5], NULL) : -160, count == 7 ? strtod(arguments[6], NULL) : 240},
        .rescale_count = 1,
        .rescales = &rescale,
        .segment_count = count == 7 ? 0 : SEGMENTS,
        .segments = segments};
    const struct slices_request request = {&volume, values, pointers, threads ? (int)strtol(threads, NULL, 10) : 1};
    const int fd = memfd_create("slices", MFD_CLOEXEC);
    const double wall = seconds_of(CLOCK_MONOTONIC), processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    must(slices_write(&request, fd) == 0, "the file cannot be written");
    printf("{\"size\": [%d, %d, %d], \"write_s\": %.3f, \"write_cpu_s\": %.3f, \"mb\": %.1f, \"of_volume\": %.3f",
           size[0], size[1], size[2], seconds_of(CLOCK_MONOTONIC) - wall,
           seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor, (double)lseek(fd, 0, SEEK_END) / 1e6,
           (double)lseek(fd, 0, SEEK_END) / (2 * (double)voxels));
    struct slices *file;
    struct error error = {0};
    must(slices_open(fd, &file, &error) == 0, error.message);
    printf(", \"step\": %d", slices_volume_of(file)->step);
    slices_close(file);
    for (enum slices_view view = 0; view < SLICES_VIEWS; view++)
        read_view(fd, view, size);
    puts("}");
    for (int s = 0; s < SEGMENTS; s++)
        free(bits[s]);
    free(values);
    close(fd);
    return 0;
}

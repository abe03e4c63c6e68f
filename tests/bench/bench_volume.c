/*
 * bench_volume.c - times the files of a program's run: input written, label map read, mask written, read and spread to
 * bits, 512 x 512 x 300 voxels with 30 spheres. Prints a JSON line per case: medians of wall time and of CPU time.
 *
 *   bench_volume [FOLDER [REPEATS]]   FOLDER for the files, e.g. a tmpfs; /dev/shm
 */
#include "service/common/volume/mask_file.h"
#include "tests/tools/seconds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { SIDE = 512, SLICES = 300, SPHERES = 30, MAX_REPEATS = 99 };

static const int64_t voxels = (int64_t)SIDE * SIDE * SLICES;
static const struct volume_grid grid = {.size = {SIDE, SIDE, SLICES},
                                        .to_mm = {0.7, 0, 0, -179.2, 0, 0.7, 0, -179.2, 0, 0, 1, -150}};

struct bench {
    int folder, repeats;
    int16_t *integers;
    float *floats;
    uint16_t *labels, *read;
    uint64_t *bits;
    int64_t size; /* of the mask */
    char sha256[65], path[4096];
};

static void
must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench_volume: %s\n", what);
    exit(1);
}

static int
compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
measure(const char *name, void (*body)(struct bench *bench, const char *file), struct bench *bench, const char *file)
{
    double wall[MAX_REPEATS], processor[MAX_REPEATS];
    for (int i = 0; i < bench->repeats; i++) {
        wall[i] = seconds_of(CLOCK_MONOTONIC);
        processor[i] = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        body(bench, file);
        wall[i] = seconds_of(CLOCK_MONOTONIC) - wall[i];
        processor[i] = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor[i];
    }
    qsort(wall, (size_t)bench->repeats, sizeof wall[0], compare);
    qsort(processor, (size_t)bench->repeats, sizeof processor[0], compare);
    printf("{\"case\": \"%s %s\", \"seconds\": %.4f, \"cpu_seconds\": %.4f}\n", name, file, wall[bench->repeats / 2],
           processor[bench->repeats / 2]);
    fflush(stdout);
}

static void
fill_integers(void *context, int64_t slice, void *values)
{
    const struct bench *bench = context;
    memcpy(values, bench->integers + slice * SIDE * SIDE, (size_t)SIDE * SIDE * sizeof(int16_t));
}

static void
fill_floats(void *context, int64_t slice, void *values)
{
    const struct bench *bench = context;
    memcpy(values, bench->floats + slice * SIDE * SIDE, (size_t)SIDE * SIDE * sizeof(float));
}

static void
write_integers(struct bench *bench, const char *file)
{
    struct error error;
    unlinkat(bench->folder, file, 0);
    must(volume_write(bench->folder, file, VOLUME_NIFTI, &grid, VOLUME_INT16, fill_integers, bench, &error) == 0,
         "int16");
}

static void
write_floats(struct bench *bench, const char *file)
{
    struct error error;
    unlinkat(bench->folder, file, 0);
    must(volume_write(bench->folder, file, VOLUME_NIFTI, &grid, VOLUME_FLOAT32, fill_floats, bench, &error) == 0,
         "float32");
}

static int
take(void *context, int64_t first, double value, int64_t count, struct error *error)
{
    uint16_t *labels = context;
    (void)error;
    for (int64_t i = first; value > 0 && i < first + count; i++)
        labels[i] = (uint16_t)value;
    return 0;
}

static void
read_labels(struct bench *bench, const char *file)
{
    struct volume_header header;
    struct error error;
    free(bench->read);
    bench->read = calloc((size_t)voxels, sizeof *bench->read);
    must(bench->read && volume_read_header(bench->folder, file, VOLUME_NIFTI, &header, &error) == 0 &&
             volume_read(bench->folder, file, &header, take, bench->read, &error) == 0,
         "labels");
}

static void
write_mask(struct bench *bench, const char *file)
{
    struct mask_label_list labels;
    struct error error;
    unlinkat(bench->folder, file, 0);
    must(mask_file_write(bench->folder, file, &grid, 1, bench->read, &bench->size, bench->sha256, &labels, &error) == 0,
         "mask");
    free(labels.items);
}

static void
read_mask(struct bench *bench, const char *file)
{
    static const int values[] = {1, 5, 9};
    struct mask_file *mask;
    struct error error;
    (void)file;
    must(mask_file_read(bench->path, bench->sha256, &grid, &mask, &error) == 0, "mask");
    mask_file_bits(mask, values, sizeof values / sizeof values[0], SIDE / 64, bench->bits);
    mask_file_free(mask);
}

/* Draws spheres, which may overlap; later ones lie above. */
static void
draw(struct bench *bench)
{
    for (int s = 0; s < SPHERES; s++) {
        const int centre[3] = {60 + s * 97 % 390, 60 + s * 61 % 390, 30 + s * 41 % 240}, radius = 12 + s * 7 % 48;
        for (int z = 0; z < SLICES; z++) {
            for (int y = 0; y < SIDE; y++) {
                for (int x = 0; x < SIDE; x++) {
                    const int d[3] = {x - centre[0], y - centre[1], z - centre[2]};
                    if (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < radius * radius)
                        bench->labels[((int64_t)z * SIDE + y) * SIDE + x] = (uint16_t)(s + 1);
                }
            }
        }
    }
    for (int64_t i = 0; i < voxels; i++) {
        bench->integers[i] = (int16_t)(i * 7919 % 4096 - 1024);
        bench->floats[i] = (float)bench->integers[i] / 3;
    }
}

/* Writes the label map as a program would: bytes or int16, gzip of level 1 as nibabel has it, or plain. */
static void
write_labels(struct bench *bench, const char *file, size_t size)
{
    char path[4400];
    uint8_t head[352];
    const int16_t type[2] = {size == 1 ? 2 : 4, (int16_t)(8 * size)};
    write_integers(bench, "head.nii");
    const int fd = openat(bench->folder, "head.nii", O_RDONLY);
    must(fd >= 0 && read(fd, head, sizeof head) == sizeof head, "header");
    close(fd);
    memcpy(head + 70, type, sizeof type);
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", bench->folder, file);
    gzFile out = gzopen(path, strstr(file, ".gz") ? "wb1" : "wbT");
    must(out && gzwrite(out, head, sizeof head) == sizeof head, file);
    for (int64_t row = 0; row < (int64_t)SIDE * SLICES; row++) {
        const uint16_t *labels = bench->labels + row * SIDE;
        uint8_t bytes[SIDE];
        for (int x = 0; x < SIDE; x++)
            bytes[x] = (uint8_t)labels[x];
        must(gzwrite(out, size == 1 ? (const void *)bytes : labels, (unsigned)(size * SIDE)) > 0, file);
    }
    must(gzclose(out) == Z_OK, file);
}

int
main(int argc, char **argv)
{
    static const char *const files[] = {"u8.nii", "u8.nii.gz", "i16.nii", "i16.nii.gz"};
    const char *folder = argc > 1 ? argv[1] : "/dev/shm";
    struct bench bench = {.folder = open(folder, O_RDONLY | O_DIRECTORY), .repeats = argc > 2 ? atoi(argv[2]) : 5};
    must(bench.folder >= 0 && bench.repeats >= 1 && bench.repeats <= MAX_REPEATS, "bench_volume [FOLDER [REPEATS]]");
    bench.integers = malloc((size_t)voxels * sizeof(int16_t));
    bench.floats = malloc((size_t)voxels * sizeof(float));
    bench.labels = calloc((size_t)voxels, sizeof(uint16_t));
    bench.bits = calloc((size_t)voxels / 64, sizeof(uint64_t));
    must(bench.integers && bench.floats && bench.labels && bench.bits, "memory");
    snprintf(bench.path, sizeof bench.path, "%s/mask", folder);
    draw(&bench);
    measure("write int16", write_integers, &bench, "input.nii.gz");
    measure("write int16", write_integers, &bench, "input.nii");
    measure("write float32", write_floats, &bench, "input.nii.gz");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        write_labels(&bench, files[i], i < 2 ? 1 : 2);
        measure("read labels", read_labels, &bench, files[i]);
        must(memcmp(bench.read, bench.labels, (size_t)voxels * sizeof(uint16_t)) == 0, "labels differ");
        unlinkat(bench.folder, files[i], 0);
    }
    measure("write", write_mask, &bench, "mask");
    measure("read and spread", read_mask, &bench, "mask");
    printf("{\"mask_bytes\": %lld}\n", (long long)bench.size);
    static const char *const left[] = {"input.nii.gz", "input.nii", "head.nii", "mask"};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        unlinkat(bench.folder, left[i], 0);
    return 0;
}

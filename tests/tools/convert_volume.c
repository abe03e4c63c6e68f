/*
 * convert_volume.c - for tests: reads a volume file, prints its header as one JSON object, and writes it in another format.
 *
 *   convert_volume FROM [TO TYPE]
 *
 * FROM and TO are NIfTI (.nii, .nii.gz, .hdr) or NRRD (.nrrd, .nhdr). TYPE is int16 or float32; values are converted as C
 * does. A refused file prints its code and the reason, with status 1.
 */
#include "base/text.h"
#include "service/common/volume/volume_file.h"
#include "tests/tools/seconds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct error error;

static void
must(int rc)
{
    if (rc == 0)
        return;
    printf("%s %s\n", code_name(error.code), error.message);
    exit(1);
}

static enum volume_format
format_of(const char *name)
{
    return text_ends_in(name, ".nrrd") || text_ends_in(name, ".nhdr") ? VOLUME_NRRD : VOLUME_NIFTI;
}

/* Opens the folder of a path. */
static int
folder_of(const char *path)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "./%.*s", (int)(text_base_name(path) - path), path);
    const int fd = open(*path == '/' ? folder + 2 : folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        perror(path);
        exit(2);
    }
    return fd;
}

struct copy {
    int16_t *integers; /* or NULL */
    float *floats;
    size_t slice; /* voxels of one */
};

static int
copy_values(void *context, int64_t first, double value, int64_t count, struct error *unused)
{
    struct copy *copy = context;
    (void)unused;
    for (int64_t i = first; i < first + count; i++) {
        if (copy->integers)
            copy->integers[i] = (int16_t)value;
        else
            copy->floats[i] = (float)value;
    }
    return 0;
}

static void
fill_slice(void *context, int64_t slice, void *values)
{
    const struct copy *copy = context;
    if (copy->integers)
        memcpy(values, copy->integers + (size_t)slice * copy->slice, copy->slice * sizeof(int16_t));
    else
        memcpy(values, copy->floats + (size_t)slice * copy->slice, copy->slice * sizeof(float));
}

static void
print_header(const struct volume_header *header, double read_seconds, double write_seconds)
{
    const struct volume_grid *grid = &header->grid;
    printf("{\"size\": [%lld, %lld, %lld], \"to_mm\": [", (long long)grid->size[0], (long long)grid->size[1],
           (long long)grid->size[2]);
    for (int i = 0; i < 12; i++)
        printf("%s%.17g", i ? ", " : "", grid->to_mm[i]);
    printf(
        "], \"type\": %d, \"slope\": %.17g, \"intercept\": %.17g, \"read_seconds\": %.3f, \"write_seconds\": %.3f}\n",
        (int)header->type, header->slope, header->intercept, read_seconds, write_seconds);
}

int
main(int argc, char **argv)
{
    struct volume_header header;
    double times[3] = {seconds_of(CLOCK_MONOTONIC)};
    if (argc != 2 && argc != 4)
        return 2;
    const int from = folder_of(argv[1]);
    must(volume_read_header(from, text_base_name(argv[1]), format_of(argv[1]), &header, &error));
    const int64_t voxels = header.grid.size[0] * header.grid.size[1] * header.grid.size[2];
    const bool integers = argc == 4 && strcmp(argv[3], "int16") == 0;
    void *room = malloc((size_t)voxels * (integers ? sizeof(int16_t) : sizeof(float)));
    if (!room)
        return 2;
    struct copy copy = {integers ? room : NULL, integers ? NULL : room,
                        (size_t)(header.grid.size[0] * header.grid.size[1])};
    must(volume_read(from, text_base_name(argv[1]), &header, copy_values, &copy, &error));
    times[1] = seconds_of(CLOCK_MONOTONIC);
    if (argc == 4)
        must(volume_write(AT_FDCWD, argv[2], format_of(argv[2]), &header.grid, integers ? VOLUME_INT16 : VOLUME_FLOAT32,
                          fill_slice, &copy, &error));
    times[2] = seconds_of(CLOCK_MONOTONIC);
    print_header(&header, times[1] - times[0], times[2] - times[1]);
    free(room);
    return 0;
}

/*
 * fuzz_volume.c - any bytes as a NIfTI or NRRD file of a program: refused with a reason, or read as volume_file.h specifies.
 *
 * The first byte selects the format, and whether the header is a file of its own. The same bytes are then its voxels.
 */
#include "base/limits.h"
#include "service/common/volume/volume_grid.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/scratch_file.h"

#include <math.h>

enum { MOST_COLUMNS = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_header(const struct volume_header *header)
{
    static int64_t indices[MOST_COLUMNS];
    const struct volume_grid *grid = &header->grid;
    struct volume_walk walk;
    char why[160];
    for (int axis = 0; axis < 3; axis++)
        must(grid->size[axis] >= 1 && grid->size[axis] <= LIMIT_VOLUME_AXIS);
    for (int i = 0; i < 12; i++)
        must(isfinite(grid->to_mm[i]));
    must(header->data_offset >= 0 && header->data_offset <= LIMIT_VOLUME_HEADER_BYTES);
    must(header->stream_offset >= 0 && header->stream_offset <= LIMIT_VOLUME_HEADER_BYTES);
    must(isfinite(header->slope) && header->slope != 0 && isfinite(header->intercept));
    must(!strchr(header->data_file, '/') && header->data_file[0] != '.');
    if (volume_grid_same(grid, grid, &walk, why)) /* differences of huge numbers are not finite */
        must(walk.first == 0 && walk.stride[0] == 1);
    if (grid->size[0] > MOST_COLUMNS)
        return;
    volume_nearest_row(grid, grid, grid->size[1] - 1, grid->size[2] - 1, indices);
    for (int64_t x = 0; x < grid->size[0]; x++)
        must(indices[x] >= -1 && indices[x] < grid->size[0] * grid->size[1] * grid->size[2]);
}

static int
take(void *context, int64_t first, double value, int64_t count, struct error *error)
{
    int64_t *next = context;
    (void)error;
    (void)value;
    must(first == *next && count > 0);
    *next += count;
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const names[2][2] = {{"a.nii", "a.hdr"}, {"a.nrrd", "a.nhdr"}};
    if (size == 0)
        return 0;
    const enum volume_format format = bytes[0] & 1 ? VOLUME_NRRD : VOLUME_NIFTI;
    const char *name = names[format][bytes[0] >> 1 & 1];
    const int folder = scratch_file(name, bytes + 1, size - 1);
    struct volume_header header;
    struct error error = {0};
    int64_t next = 0;
    scratch_file("a.img", bytes + 1, size - 1);
    int rc = volume_read_header(folder, name, format, &header, &error);
    if (rc == 0) {
        check_header(&header);
        rc = volume_read(folder, name, &header, take, &next, &error);
        must(rc || next == header.grid.size[0] * header.grid.size[1] * header.grid.size[2]);
    }
    if (rc)
        must_be_error(rc, &error);
    return 0;
}

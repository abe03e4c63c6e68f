/* volume_write.c - volume_write(): see volume_file.h. */
#include "base/durable.h"
#include "base/text.h"
#include "service/common/volume/volume_nifti.h"
#include "service/common/volume/volume_nrrd.h"
#include "service/common/volume/volume_values.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    DEFLATED_BYTES = 256 << 10,
    GZIP_BITS = 15 + 16, /* the largest window, and a header of gzip: without a name, a time and a comment */
    GZIP_MEMORY = 8      /* zlib's default */
};

struct volume_output {
    int fd;
    bool gzip;
    z_stream stream;
    uint8_t *deflated; /* [DEFLATED_BYTES] */
};

static int
output_begin(struct volume_output *output, enum volume_gzip gzip)
{
    const int level = gzip == VOLUME_GZIP ? Z_BEST_SPEED : Z_NO_COMPRESSION;
    if (gzip == VOLUME_PLAIN)
        return 0;
    output->deflated = malloc(DEFLATED_BYTES);
    output->gzip = output->deflated &&
                   deflateInit2(&output->stream, level, Z_DEFLATED, GZIP_BITS, GZIP_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
    return output->gzip ? 0 : -ENOMEM;
}

/* Writes bytes; `flush`: Z_NO_FLUSH, or Z_FINISH for the last ones. */
static int
output_put(struct volume_output *output, const void *bytes, size_t size, int flush)
{
    z_stream *stream = &output->stream;
    int rc = 0;
    if (!output->gzip)
        return durable_write_all(output->fd, bytes, size);
    stream->next_in = (Bytef *)(uintptr_t)bytes; /* zlib only reads it */
    stream->avail_in = (uInt)size;
    do {
        stream->next_out = output->deflated;
        stream->avail_out = DEFLATED_BYTES;
        deflate(stream, flush);
        rc = durable_write_all(output->fd, output->deflated, DEFLATED_BYTES - stream->avail_out);
    } while (rc == 0 && stream->avail_out == 0);
    return rc;
}

int
volume_write_to(int fd, enum volume_format format, enum volume_gzip gzip, const struct volume_grid *grid,
                enum volume_type type, volume_fill *fill, void *context, struct error *error)
{
    union {
        uint8_t nifti[NIFTI_HEAD_SIZE];
        char nrrd[NRRD_HEAD_SIZE];
    } head;

    size_t head_size = NIFTI_HEAD_SIZE;
    const size_t size = (size_t)(grid->size[0] * grid->size[1]) * volume_type_size(type); /* NIfTI: below 4 GiB */
    if (format == VOLUME_NRRD)
        head_size = (size_t)volume_nrrd_write(grid, type, head.nrrd);
    else if (!volume_nifti_write(grid, type, head.nifti))
        return error_set(error, -E2BIG, CODE_SIZE_IMPLAUSIBLE,
                         "NIfTI-1 has no room for an axis of more than 32767 voxels");
    struct volume_output output = {.fd = fd};
    void *slice = malloc(size);
    int rc = slice ? output_begin(&output, gzip) : -ENOMEM;
    rc = rc ? rc : output_put(&output, &head, head_size, Z_NO_FLUSH);
    for (int64_t z = 0; rc == 0 && z < grid->size[2]; z++) {
        fill(context, z, slice);
        rc = output_put(&output, slice, size, Z_NO_FLUSH);
    }
    rc = rc ? rc : output_put(&output, slice, 0, Z_FINISH);
    if (output.gzip)
        deflateEnd(&output.stream);
    free(output.deflated);
    free(slice);
    return rc ? error_set_system(error, rc, "write a volume") : 0;
}

int
volume_write(int folder, const char *name, enum volume_format format, const struct volume_grid *grid,
             enum volume_type type, volume_fill *fill, void *context, struct error *error)
{
    const bool gzip = format == VOLUME_NIFTI && text_ends_in(name, ".gz");
    const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    if (fd < 0)
        return error_set_system(error, -errno, "create a volume");
    int rc = volume_write_to(fd, format, gzip ? VOLUME_GZIP_STORED : VOLUME_PLAIN, grid, type, fill, context, error);
    const int closed = durable_close(fd);
    if (rc == 0 && closed)
        rc = error_set_system(error, closed, "write a volume");
    if (rc)
        unlinkat(folder, name, 0);
    return rc;
}

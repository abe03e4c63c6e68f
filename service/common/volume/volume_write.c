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

#define STORED_MAX 65535 /* bytes of a stored deflate block (RFC 1951, 3.2.4) */

struct volume_output {
    int fd;
    bool gzip;
    uLong crc, size; /* of the bytes so far */
};

/* Writes a 16-bit number, low byte first, and its complement. */
static void
output_length(size_t length, uint8_t bytes[4])
{
    bytes[0] = (uint8_t)length;
    bytes[1] = (uint8_t)(length >> 8);
    bytes[2] = (uint8_t)~bytes[0];
    bytes[3] = (uint8_t)~bytes[1];
}

static int
output_put(struct volume_output *output, const void *bytes, size_t size)
{
    uint8_t block[5 + STORED_MAX];
    int rc = 0;
    if (!output->gzip)
        return durable_write_all(output->fd, bytes, size);
    for (size_t at = 0; rc == 0 && at < size; at += STORED_MAX) {
        const size_t length = size - at < STORED_MAX ? size - at : STORED_MAX;
        block[0] = 0; /* another block follows */
        output_length(length, block + 1);
        memcpy(block + 5, (const uint8_t *)bytes + at, length);
        output->crc = crc32(output->crc, block + 5, (uInt)length);
        rc = durable_write_all(output->fd, block, 5 + length);
    }
    output->size += size;
    return rc;
}

static int
output_begin(struct volume_output *output)
{
    static const uint8_t magic[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}; /* no name, no time, system unknown */
    return output->gzip ? durable_write_all(output->fd, magic, sizeof magic) : 0;
}

static int
output_end(struct volume_output *output)
{
    uint8_t end[13] = {1}; /* an empty last block, CRC-32, size */
    output_length(0, end + 1);
    for (int i = 0; i < 4; i++) {
        end[5 + i] = (uint8_t)(output->crc >> 8 * i);
        end[9 + i] = (uint8_t)(output->size >> 8 * i);
    }
    return output->gzip ? durable_write_all(output->fd, end, sizeof end) : 0;
}

int
volume_write(int folder, const char *name, enum volume_format format, const struct volume_grid *grid,
             enum volume_type type, volume_fill *fill, void *context, struct error *error)
{
    union {
        uint8_t nifti[NIFTI_HEAD_SIZE];
        char nrrd[NRRD_HEAD_SIZE];
    } head;

    size_t head_size = NIFTI_HEAD_SIZE;
    const size_t size = (size_t)(grid->size[0] * grid->size[1]) * volume_type_size(type);
    if (format == VOLUME_NRRD)
        head_size = (size_t)volume_nrrd_write(grid, type, head.nrrd);
    else if (!volume_nifti_write(grid, type, head.nifti))
        return error_set(error, -E2BIG, CODE_SIZE_IMPLAUSIBLE,
                         "NIfTI-1 has no room for an axis of more than 32767 voxels");
    void *slice = malloc(size);
    if (!slice)
        return error_set_system(error, -ENOMEM, "write the input of the program");
    struct volume_output output = {.fd =
                                       openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640),
                                   .gzip = format == VOLUME_NIFTI && text_ends_in(name, ".gz")};
    int rc = output.fd < 0 ? -errno : output_begin(&output);
    rc = rc ? rc : output_put(&output, &head, head_size);
    for (int64_t z = 0; rc == 0 && z < grid->size[2]; z++) {
        fill(context, z, slice);
        rc = output_put(&output, slice, size);
    }
    rc = rc ? rc : output_end(&output);
    free(slice);
    const int closed = output.fd < 0 ? 0 : durable_close(output.fd);
    rc = rc ? rc : closed;
    if (rc && output.fd >= 0)
        unlinkat(folder, name, 0);
    return rc ? error_set_system(error, rc, "write the input of the program") : 0;
}

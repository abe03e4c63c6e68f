/* volume_read.c - volume_read_header() and volume_read(): see volume_file.h. */
#include "base/text.h"
#include "service/common/volume/volume_nifti.h"
#include "service/common/volume/volume_nrrd.h"
#include "service/common/volume/volume_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_VALUES 32768 /* values at a time */

int
volume_read_header(int folder, const char *name, enum volume_format format, struct volume_header *header,
                   struct error *error)
{
    struct volume_stream *stream;
    *header = (struct volume_header){0};
    int rc = volume_stream_open(folder, name, &stream, error);
    if (rc)
        return rc;
    rc = format == VOLUME_NIFTI ? volume_nifti_read(stream, name, header, error)
                                : volume_nrrd_read(stream, header, error);
    volume_stream_close(stream);
    return rc;
}

struct read_room {
    uint8_t bytes[READ_VALUES * sizeof(double)];
    double values[READ_VALUES];
};

static int
read_refuse_size(struct error *error)
{
    return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_SIZE,
                     "the output has more or fewer voxels than its header states");
}

static int
read_skip(struct volume_stream *stream, int64_t bytes, struct read_room *room, struct error *error)
{
    while (bytes > 0) {
        const size_t wanted = bytes < (int64_t)sizeof room->bytes ? (size_t)bytes : sizeof room->bytes;
        const ssize_t got = volume_stream_read(stream, room->bytes, wanted, error);
        if (got <= 0)
            return got < 0 ? (int)got : read_refuse_size(error);
        bytes -= got;
    }
    return 0;
}

static int
read_voxels(struct volume_stream *stream, const struct volume_header *header, struct read_room *room, volume_take *take,
            void *context, struct error *error)
{
    const int64_t voxels = header->grid.size[0] * header->grid.size[1] * header->grid.size[2];
    const size_t size = volume_type_size(header->type);
    const bool scaled = header->slope != 1 || header->intercept != 0;
    int rc = read_skip(stream, header->data_offset, room, error);
    for (int64_t first = 0, count; rc == 0 && first < voxels; first += count) {
        count = voxels - first < READ_VALUES ? voxels - first : READ_VALUES;
        const ssize_t got = volume_stream_read(stream, room->bytes, (size_t)count * size, error);
        if (got < (ssize_t)((size_t)count * size))
            return got < 0 ? (int)got : read_refuse_size(error);
        volume_values(header->type, header->swapped, room->bytes, count, room->values);
        for (int64_t i = 0; scaled && i < count; i++)
            room->values[i] = header->slope * room->values[i] + header->intercept;
        rc = take(context, first, room->values, count, error);
    }
    if (rc)
        return rc;
    /* One byte more, which also inflates the end of gzip with its checksum. */
    const ssize_t more = volume_stream_read(stream, room->bytes, 1, error);
    return more < 0 ? (int)more : more > 0 ? read_refuse_size(error) : 0;
}

int
volume_read(int folder, const char *name, const struct volume_header *header, volume_take *take, void *context,
            struct error *error)
{
    struct volume_stream *stream = NULL;
    struct read_room *room = malloc(sizeof *room);
    const size_t parent = (size_t)(text_base_name(name) - name);
    char *path;
    if (asprintf(&path, "%.*s%s", *header->data_file ? (int)parent : (int)strlen(name), name, header->data_file) < 0)
        path = NULL;
    int rc = room && path ? volume_stream_open(folder, path, &stream, error)
                          : error_set_system(error, -ENOMEM, "read the output");
    rc = rc ? rc : volume_stream_begin(stream, header->stream_offset, header->gzip, error);
    rc = rc ? rc : read_voxels(stream, header, room, take, context, error);
    volume_stream_close(stream);
    free(path);
    free(room);
    return rc;
}

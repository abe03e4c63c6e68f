/* volume_read.c - volume_read_header() and volume_read(): see volume_file.h. */
#include "base/text.h"
#include "service/common/volume/volume_file.h"
#include "service/common/volume/volume_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES ((int64_t)1 << 18) /* bytes at a time, a multiple of each size of values */

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

static int
read_refuse_size(struct error *error)
{
    return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_SIZE,
                     "the file has more or fewer voxels than its header states");
}

static int
read_skip(struct volume_stream *stream, int64_t bytes, uint8_t *room, struct error *error)
{
    while (bytes > 0) {
        const size_t wanted = bytes < READ_BYTES ? (size_t)bytes : READ_BYTES;
        const ssize_t got = volume_stream_read(stream, room, wanted, error);
        if (got <= 0)
            return got < 0 ? (int)got : read_refuse_size(error);
        bytes -= got;
    }
    return 0;
}

/* The function that takes values: runs of equal ones, or blocks. */
struct read_taker {
    volume_take *run;
    volume_take_block *block;
    void *context;
};

enum { BLOCK = 4096 }; /* values */

static int
read_blocks(const struct volume_header *header, const uint8_t *bytes, int64_t first, int64_t count,
            const struct read_taker *taker, struct error *error)
{
    const size_t size = volume_type_size(header->type);
    double values[BLOCK];
    int rc = 0;
    for (int64_t at = 0; at < count && rc == 0; at += BLOCK) {
        const int64_t some = count - at < BLOCK ? count - at : BLOCK;
        volume_values(header->type, header->swapped, bytes + (size_t)at * size, some, values);
        for (int64_t i = 0; i < some; i++)
            values[i] = header->slope * values[i] + header->intercept;
        rc = taker->block(taker->context, first + at, values, some, error);
    }
    return rc;
}

static int
read_runs(const struct volume_header *header, const uint8_t *bytes, int64_t first, int64_t count,
          const struct read_taker *taker, struct error *error)
{
    const size_t size = volume_type_size(header->type);
    int rc = 0;
    for (int64_t run; rc == 0 && count > 0; bytes += (size_t)run * size, first += run, count -= run) {
        const double value = volume_value(header->type, header->swapped, bytes);
        run = volume_run(bytes, count, size);
        rc = taker->run(taker->context, first, header->slope * value + header->intercept, run, error);
    }
    return rc;
}

static int
read_voxels(struct volume_stream *stream, const struct volume_header *header, uint8_t *room,
            const struct read_taker *taker, struct error *error)
{
    const int64_t size = (int64_t)volume_type_size(header->type);
    const int64_t bytes = header->grid.size[0] * header->grid.size[1] * header->grid.size[2] * size;
    int rc = read_skip(stream, header->data_offset, room, error);
    for (int64_t at = 0, wanted; rc == 0 && at < bytes; at += wanted) {
        wanted = bytes - at < READ_BYTES ? bytes - at : READ_BYTES;
        const ssize_t got = volume_stream_read(stream, room, (size_t)wanted, error);
        if (got < wanted)
            return got < 0 ? (int)got : read_refuse_size(error);
        rc = (taker->run ? read_runs : read_blocks)(header, room, at / size, wanted / size, taker, error);
    }
    if (rc)
        return rc;
    /* One byte more, which also inflates the end of gzip with its checksum. */
    const ssize_t more = volume_stream_read(stream, room, 1, error);
    return more < 0 ? (int)more : more > 0 ? read_refuse_size(error) : 0;
}

static int
read_file(int folder, const char *name, const struct volume_header *header, const struct read_taker *taker,
          struct error *error)
{
    struct volume_stream *stream = NULL;
    uint8_t *room = malloc(READ_BYTES);
    const size_t parent = (size_t)(text_base_name(name) - name);
    char *path;
    if (asprintf(&path, "%.*s%s", *header->data_file ? (int)parent : (int)strlen(name), name, header->data_file) < 0)
        path = NULL;
    int rc = room && path ? volume_stream_open(folder, path, &stream, error)
                          : error_set_system(error, -ENOMEM, "read the file");
    rc = rc ? rc : volume_stream_begin(stream, header->stream_offset, header->gzip, error);
    rc = rc ? rc : read_voxels(stream, header, room, taker, error);
    volume_stream_close(stream);
    free(path);
    free(room);
    return rc;
}

int
volume_read(int folder, const char *name, const struct volume_header *header, volume_take *take, void *context,
            struct error *error)
{
    return read_file(folder, name, header, &(struct read_taker){.run = take, .context = context}, error);
}

int
volume_read_blocks(int folder, const char *name, const struct volume_header *header, volume_take_block *take,
                   void *context, struct error *error)
{
    return read_file(folder, name, header, &(struct read_taker){.block = take, .context = context}, error);
}

/* volume_write.c - volume_write(): see volume_file.h. */
#include "base/durable.h"
#include "base/text.h"
#include "service/common/parallel.h"
#include "service/common/volume/volume_file.h"
#include "service/common/volume/volume_stream.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    PIECE_BYTES = 1 << 20, /* a larger slice is a piece of its own */
    RAW_BITS = -15,        /* the largest window, without a header */
    RAW_MEMORY = 8,        /* zlib's default */
    FLUSH_BYTES = 64,      /* more than the empty block after a piece, which deflateBound() does not count */
};

/*
 * Slices that one thread deflates. Pieces end with a byte, so that together they are one stream of deflate (RFC 1951),
 * and do not depend on the number of threads.
 */
struct volume_piece {
    uint8_t *plain, *deflated;
    size_t plain_size, deflated_size;
    uint32_t crc;
    int rc;
};

struct volume_output {
    int fd, level, threads;
    size_t slice, head_size;
    int64_t slices, per_piece, done;
    volume_fill *fill;
    void *context;
    struct volume_piece *pieces; /* [threads] */
    size_t room;                 /* of a deflated piece */
    uint32_t crc;
    uint32_t size; /* modulo 2^32 */
};

static void
piece_deflate(struct volume_piece *piece, int level, size_t room)
{
    z_stream stream = {.next_in = piece->plain,
                       .avail_in = (uInt)piece->plain_size,
                       .next_out = piece->deflated,
                       .avail_out = (uInt)room};
    piece->rc =
        deflateInit2(&stream, level, Z_DEFLATED, RAW_BITS, RAW_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK ? 0 : -ENOMEM;
    if (piece->rc)
        return;
    deflate(&stream, Z_SYNC_FLUSH);
    piece->rc = stream.avail_in == 0 && stream.avail_out > 0 ? 0 : -E2BIG;
    piece->deflated_size = room - stream.avail_out;
    piece->crc = (uint32_t)crc32(0, piece->plain, (uInt)piece->plain_size);
    deflateEnd(&stream);
}

static void
pieces_deflate(struct parallel *loop, void *context)
{
    const struct volume_output *output = context;
    int64_t i;
    while (parallel_take(loop, &i))
        piece_deflate(&output->pieces[i], output->level, output->room);
}

/* Fills a piece with the next slices, after `head_size` bytes. */
static void
piece_fill(struct volume_output *output, struct volume_piece *piece, size_t head_size)
{
    piece->plain_size = head_size;
    for (int64_t k = 0; k < output->per_piece && output->done < output->slices; k++, output->done++) {
        output->fill(output->context, output->done, piece->plain + piece->plain_size);
        piece->plain_size += output->slice;
    }
}

/* Deflates the next slices in all threads, and writes them. The first piece may have a head already. */
static int
output_batch(struct volume_output *output, size_t head_size)
{
    struct parallel loop = {.body = pieces_deflate, .context = output};
    int rc = 0;
    for (; loop.count < output->threads && output->done < output->slices; loop.count++)
        piece_fill(output, &output->pieces[loop.count], loop.count == 0 ? head_size : 0);
    parallel_run(&loop, output->threads);
    for (int64_t i = 0; i < loop.count && rc == 0; i++) {
        const struct volume_piece *piece = &output->pieces[i];
        rc = piece->rc ? piece->rc : durable_write_all(output->fd, piece->deflated, piece->deflated_size);
        output->crc = (uint32_t)crc32_combine(output->crc, piece->crc, (z_off_t)piece->plain_size);
        output->size += (uint32_t)piece->plain_size;
    }
    return rc;
}

static bool
output_begin(struct volume_output *output)
{
    const size_t plain = output->head_size + output->slice * (size_t)output->per_piece;
    bool ready = (output->pieces = calloc((size_t)output->threads, sizeof *output->pieces)) != NULL;
    output->room = deflateBound(NULL, (uLong)plain) + FLUSH_BYTES;
    output->room = output->room < UINT32_MAX ? output->room : UINT32_MAX; /* zlib counts in 32 bits */
    for (int i = 0; i < output->threads && ready; i++) {
        output->pieces[i].plain = malloc(plain);
        output->pieces[i].deflated = malloc(output->room);
        ready = output->pieces[i].plain && output->pieces[i].deflated;
    }
    return ready;
}

/* Writes one member of gzip (RFC 1952): some readers do not expect several. */
static int
write_gzip(struct volume_output *output, const void *head)
{
    static const uint8_t begin[10] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 4, 3}; /* no name, no time, fast, Unix */
    static const uint8_t empty_block[2] = {3, 0};
    const int64_t per_piece = PIECE_BYTES / (int64_t)output->slice;
    output->per_piece = per_piece > 1 ? per_piece : 1;
    const int64_t pieces = (output->slices + output->per_piece - 1) / output->per_piece;
    output->threads = (int)(output->threads < pieces ? output->threads : pieces);
    int rc = output_begin(output) ? durable_write_all(output->fd, begin, sizeof begin) : -ENOMEM;
    if (rc == 0)
        memcpy(output->pieces[0].plain, head, output->head_size);
    while (rc == 0 && output->done < output->slices)
        rc = output_batch(output, output->done == 0 ? output->head_size : 0);
    const uint32_t end[2] = {htole32(output->crc), htole32(output->size)};
    rc = rc ? rc : durable_write_all(output->fd, empty_block, sizeof empty_block);
    rc = rc ? rc : durable_write_all(output->fd, end, sizeof end);
    for (int i = 0; output->pieces && i < output->threads; i++) {
        free(output->pieces[i].plain);
        free(output->pieces[i].deflated);
    }
    free(output->pieces);
    return rc;
}

int64_t
volume_gzip_bytes(int64_t slice, int threads)
{
    enum { STATE = 300 << 10 }; /* of deflate() */

    const int64_t plain = (slice > PIECE_BYTES ? slice : PIECE_BYTES) + NIFTI_HEAD_SIZE;
    return threads * (plain + (int64_t)deflateBound(NULL, (uLong)plain) + FLUSH_BYTES + STATE);
}

static int
write_plain(struct volume_output *output, const void *head)
{
    void *slice = malloc(output->slice);
    int rc = slice ? durable_write_all(output->fd, head, output->head_size) : -ENOMEM;
    for (; rc == 0 && output->done < output->slices; output->done++) {
        output->fill(output->context, output->done, slice);
        rc = durable_write_all(output->fd, slice, output->slice);
    }
    free(slice);
    return rc;
}

int
volume_write_to(int fd, enum volume_format format, enum volume_gzip gzip, const struct volume_grid *grid,
                enum volume_type type, volume_fill *fill, void *context, int threads, struct error *error)
{
    union {
        uint8_t nifti[NIFTI_HEAD_SIZE];
        char nrrd[NRRD_HEAD_SIZE];
    } head;

    struct volume_output output = {
        .fd = fd,
        .level = gzip == VOLUME_GZIP ? Z_BEST_SPEED : Z_NO_COMPRESSION,
        .threads = threads > 1 ? threads : 1,
        .slice = (size_t)(grid->size[0] * grid->size[1]) * volume_type_size(type), /* NIfTI: below 4 GiB */
        .head_size = NIFTI_HEAD_SIZE,
        .slices = grid->size[2],
        .fill = fill,
        .context = context,
    };
    if (format == VOLUME_NRRD)
        output.head_size = (size_t)volume_nrrd_write(grid, type, head.nrrd);
    else if (!volume_nifti_write(grid, type, head.nifti))
        return error_set(error, -E2BIG, CODE_SIZE_IMPLAUSIBLE,
                         "NIfTI-1 has no room for an axis of more than 32767 voxels");
    const int rc = gzip == VOLUME_PLAIN ? write_plain(&output, &head) : write_gzip(&output, &head);
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
    int rc = volume_write_to(fd, format, gzip ? VOLUME_GZIP_STORED : VOLUME_PLAIN, grid, type, fill, context, 1, error);
    const int closed = durable_close(fd);
    if (rc == 0 && closed)
        rc = error_set_system(error, closed, "write a volume");
    if (rc)
        unlinkat(folder, name, 0);
    return rc;
}

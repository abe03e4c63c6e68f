/*
 * slices_write.c - see slices.h.
 *
 * Threads compress rows of blocks, a batch at a time, so that memory does not grow with the volume. One thread writes the
 * rows in their order. Head and index are written last, since the index is then known.
 */
#include "service/common/slices/slices.h"

#include "base/durable.h"
#include "service/common/parallel.h"
#include "service/common/slices/slices_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

enum { BATCH_BYTES = 8 << 20 };

/* A row of blocks in a batch. */
struct slices_row {
    uint8_t *bytes; /* the blocks without gaps */
    size_t size, room;
};

struct slices_writing {
    const struct slices_request *request;
    int64_t blocks[3]; /* per axis */
    int64_t first_row; /* of the batch */
    struct slices_row *rows;
    uint8_t *index;
};

/* A thread's memory. */
struct slices_bench {
    struct block block;
    size_t *crossing; /* segments with a voxel in the row of blocks */
    size_t crossing_count;
};

static void
slices_put_32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint8_t *
slices_put_16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
    return to + 2;
}

static int32_t
slices_part(int64_t block, int32_t size)
{
    const int64_t left = size - BLOCK_EDGE * block;
    return left < BLOCK_EDGE ? (int32_t)left : BLOCK_EDGE;
}

static void
slices_widen(const uint8_t *from, int32_t count, block_lanes *row)
{
    for (int32_t x = 0; x < count; x++)
        ((int16_t *)row)[x] = from[x];
}

/* Copies the voxels of a block. */
static void
slices_fill(const struct slices_request *request, const int64_t first[3], struct block *block)
{
    const struct slices_volume *volume = request->volume;
    const int64_t columns = volume->size[0], slice = columns * volume->size[1];
    const int32_t *size = block->size;
    const int16_t turned = volume->pixel == IMAGE_UINT16 ? INT16_MIN : 0;
    const size_t bytes = volume->pixel == IMAGE_UINT8 ? 1 : 2;
    for (int32_t z = 0; z < size[2]; z++) {
        const uint8_t *from =
            (const uint8_t *)request->voxels + bytes * (size_t)((first[2] + z) * slice + first[1] * columns + first[0]);
        for (int32_t y = 0; y < size[1]; y++, from += bytes * (size_t)columns) {
            block_lanes *row = block->rows[BLOCK_EDGE * z + y];
            __builtin_prefetch(from + 2 * sizeof block->rows[0]); /* of the next blocks */
            if (bytes == 1)
                slices_widen(from, size[0], row);
            else if (size[0] == BLOCK_EDGE)
                memcpy(row, from, sizeof block->rows[0]);
            else
                memcpy(row, from, bytes * (size_t)size[0]);
            for (int32_t x = size[0]; x < BLOCK_EDGE; x++)
                ((int16_t *)row)[x] = ((int16_t *)row)[size[0] - 1];
            for (int i = 0; i < BLOCK_PARTS; i++)
                row[i] ^= turned;
        }
    }
}

/* Appends the voxels of a segment, unless the block has none. */
static uint8_t *
slices_put_mask(const struct slices_request *request, size_t segment, const int64_t first[3], const int32_t size[3],
                uint8_t *to)
{
    const struct image_mask *mask = request->masks[segment];
    const uint32_t all = (uint32_t)(1 << size[0]) - 1;
    const size_t marks = (size_t)(size[1] * size[2] + 7) / 8;
    uint32_t any = 0, every = all, before = 0;
    uint8_t *changes = to + 2, *bits = changes + marks;
    memset(changes, 0, marks);
    for (int32_t z = 0, n = 0; z < size[2]; z++) {
        const int64_t row = (first[2] + z) * request->volume->size[1] + first[1];
        const uint64_t *word = mask->bits + row * mask->words_per_row + first[0] / 64;
        for (int32_t y = 0; y < size[1]; y++, n++, word += mask->words_per_row) {
            const uint32_t found = (uint32_t)(*word >> first[0] % 64) & all;
            any |= found;
            every &= found;
            if (found == before)
                continue;
            changes[n / 8] |= (uint8_t)(1 << n % 8);
            bits = slices_put_16(bits, found);
            before = found;
        }
    }
    slices_put_16(to, (uint32_t)segment | (every == all ? BLOCK_FULL : 0));
    return any == 0 ? to : every == all ? to + 2 : bits;
}

/* Lists the segments that cross a row of blocks, so that its blocks need not search all. */
static void
slices_find_crossing(const struct slices_request *request, int64_t first_y, int64_t first_z, struct slices_bench *bench)
{
    const int32_t *size = request->volume->size;
    const int64_t end_y = first_y + BLOCK_EDGE < size[1] ? first_y + BLOCK_EDGE : size[1];
    const int64_t end_z = first_z + BLOCK_EDGE < size[2] ? first_z + BLOCK_EDGE : size[2];
    bench->crossing_count = 0;
    for (size_t i = 0; i < (size_t)request->volume->segment_count; i++) {
        const struct image_mask *mask = request->masks[i];
        uint64_t any = 0;
        for (int64_t z = first_z; mask->bits && mask->voxels > 0 && z < end_z && !any; z++) {
            const uint64_t *from = mask->bits + (z * size[1] + first_y) * mask->words_per_row;
            for (int64_t w = 0; w < (end_y - first_y) * mask->words_per_row; w++)
                any |= from[w];
        }
        if (any)
            bench->crossing[bench->crossing_count++] = i;
    }
}

/* Appends a block to a row. Returns false if memory is short. */
static bool
slices_put_block(const struct slices_request *request, const int64_t first[3], struct slices_bench *bench,
                 struct slices_row *row, uint8_t *index)
{
    const size_t most = BLOCK_VALUES_MAX + bench->crossing_count * BLOCK_MASK_MAX;
    if (row->room - row->size < most) {
        const size_t room = 2 * row->room + most;
        uint8_t *grown = realloc(row->bytes, room);
        if (!grown)
            return false;
        row->bytes = grown;
        row->room = room;
    }
    uint8_t *begin = row->bytes + row->size;
    slices_fill(request, first, &bench->block);
    uint8_t *end = block_pack(&bench->block, begin);
    for (size_t i = 0; i < bench->crossing_count; i++)
        end = slices_put_mask(request, bench->crossing[i], first, bench->block.size, end);
    const size_t size = (size_t)(end - begin);
    slices_put_32(index, (uint32_t)size);
    slices_put_32(index + 4, (uint32_t)XXH3_64bits(begin, size));
    row->size += size;
    return true;
}

static bool
slices_put_row(const struct slices_writing *writing, int64_t number, struct slices_bench *bench)
{
    const struct slices_request *request = writing->request;
    const int32_t *size = request->volume->size;
    const int64_t at = writing->first_row + number, y = at % writing->blocks[1], z = at / writing->blocks[1];
    struct slices_row *row = &writing->rows[number];
    bool fine = true;
    row->size = 0;
    slices_find_crossing(request, BLOCK_EDGE * y, BLOCK_EDGE * z, bench);
    for (int64_t x = 0; x < writing->blocks[0] && fine; x++) {
        const int64_t first[3] = {BLOCK_EDGE * x, BLOCK_EDGE * y, BLOCK_EDGE * z};
        bench->block.size[0] = slices_part(x, size[0]);
        bench->block.size[1] = slices_part(y, size[1]);
        bench->block.size[2] = slices_part(z, size[2]);
        fine = slices_put_block(request, first, bench, row, writing->index + INDEX_ROW * (at * writing->blocks[0] + x));
    }
    return fine;
}

static void
slices_put_rows(struct parallel *loop, void *context)
{
    const struct slices_writing *writing = context;
    const size_t segments = (size_t)writing->request->volume->segment_count;
    struct slices_bench bench = {.crossing = malloc((segments + 1) * sizeof *bench.crossing)};
    int64_t number;
    bool fine = bench.crossing != NULL;
    while (fine && parallel_take(loop, &number))
        fine = slices_put_row(writing, number, &bench);
    if (!fine)
        parallel_fail(loop);
    free(bench.crossing);
}

/* Compresses and writes all rows of blocks, a batch at a time. */
static int
slices_put_blocks(struct slices_writing *writing, int fd)
{
    const int64_t rows = writing->blocks[1] * writing->blocks[2];
    const int64_t row_bytes = writing->blocks[0] * BLOCK_VOXELS * 2;
    const int64_t most = BATCH_BYTES / row_bytes > 1 ? BATCH_BYTES / row_bytes : 1;
    const int64_t batch = most < rows ? most : rows;
    struct parallel loop = {.body = slices_put_rows, .context = writing};
    writing->rows = calloc((size_t)batch, sizeof *writing->rows);
    int rc = writing->rows ? 0 : -ENOMEM;
    for (writing->first_row = 0; rc == 0 && writing->first_row < rows; writing->first_row += batch) {
        loop.count = rows - writing->first_row < batch ? rows - writing->first_row : batch;
        parallel_run(&loop, writing->request->threads);
        if (atomic_load(&loop.failed))
            rc = -ENOMEM;
        for (int64_t i = 0; i < loop.count && rc == 0; i++)
            rc = durable_write_all(fd, writing->rows[i].bytes, writing->rows[i].size);
    }
    for (int64_t i = 0; writing->rows && i < batch; i++)
        free(writing->rows[i].bytes);
    free(writing->rows);
    return rc;
}

/* The machine is little endian, as all that DCMTK and the kernels support here. */
static void
slices_put_head(const struct slices_volume *volume, uint8_t *head, size_t size)
{
    uint8_t *at = head + HEAD_FIXED;
    memcpy(head, SLICES_MAGIC, 8);
    slices_put_32(head + 8, (uint32_t)size);
    for (int i = 0; i < 3; i++)
        slices_put_32(head + 16 + 4 * i, (uint32_t)volume->size[i]);
    head[28] = (uint8_t)volume->pixel;
    head[29] = volume->monochrome1;
    head[30] = volume->has_geometry;
    slices_put_32(head + 32, (uint32_t)volume->segment_count);
    slices_put_32(head + 36, (uint32_t)volume->rescale_count);
    memcpy(head + 40, volume->spacing, sizeof volume->spacing);
    memcpy(head + 64, volume->origin, sizeof volume->origin);
    memcpy(head + 88, volume->axes, sizeof volume->axes);
    memcpy(head + 160, volume->window, sizeof volume->window);
    memcpy(head + 176, volume->unit, strnlen(volume->unit, SLICES_UNIT - 1));
    for (int32_t i = 0; i < volume->rescale_count; i++, at += 16)
        memcpy(at, (const double[2]){volume->rescales[i].slope, volume->rescales[i].intercept}, 16);
    for (int32_t i = 0; i < volume->segment_count; i++) {
        const struct slices_segment *segment = &volume->segments[i];
        const size_t length = strnlen(segment->label, UINT8_MAX);
        memcpy(at, segment->rgb, 3);
        at[3] = (uint8_t)length;
        memcpy(at + 4, segment->label, length);
        at += 4 + length;
    }
}

static size_t
slices_head_size(const struct slices_volume *volume)
{
    size_t size = HEAD_FIXED + 16 * (size_t)volume->rescale_count;
    for (int32_t i = 0; i < volume->segment_count; i++)
        size += 4 + strnlen(volume->segments[i].label, UINT8_MAX);
    return size;
}

int
slices_write(const struct slices_request *request, int fd)
{
    const struct slices_volume *volume = request->volume;
    struct slices_writing writing = {.request = request};
    const size_t head = slices_head_size(volume);
    size_t blocks = 1;
    for (int i = 0; i < 3; i++) {
        writing.blocks[i] = (volume->size[i] + BLOCK_EDGE - 1) / BLOCK_EDGE;
        blocks *= (size_t)writing.blocks[i];
    }
    const size_t size = head + INDEX_ROW * blocks;
    uint8_t *bytes = calloc(1, size);
    if (!bytes)
        return -ENOMEM;
    writing.index = bytes + head;
    int rc = lseek(fd, (off_t)size, SEEK_SET) < 0 ? -errno : slices_put_blocks(&writing, fd);
    if (rc == 0) {
        slices_put_head(volume, bytes, head);
        slices_put_32(bytes + 12, (uint32_t)XXH3_64bits(bytes + HEAD_CHECKED, size - HEAD_CHECKED));
        rc = lseek(fd, 0, SEEK_SET) < 0 ? -errno : durable_write_all(fd, bytes, size);
    }
    free(bytes);
    return rc;
}

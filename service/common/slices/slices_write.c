/*
 * slices_write.c - see slices.h.
 *
 * Threads compress rows of blocks, a batch at a time, so that memory does not grow with the volume. One thread writes the
 * rows in their order. Head and index are written last, since the index and the largest step are then known.
 */
#include "service/common/slices/slices.h"

#include "base/durable.h"
#include "service/common/parallel.h"
#include "service/common/slices/slices_block.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

enum { ROWS_PER_THREAD = 2 };

/* The choice of the rounding. Bits are per voxel, times BLOCK_BIT. */
enum {
    SAMPLED_BLOCKS = 512,
    WANTED_BITS =
        16 * BLOCK_BIT * 235 / 1000, /* a quarter of the volume, less the masks, the index, and errors of the sample */
    LEAST_BITS = 4 * BLOCK_BIT,      /* needed by noise that is larger than a step */
    MOST_BITS = 18 * BLOCK_BIT,
};

/* Rounds blocks that need more than `bits`, to steps of at most 2^shift. */
struct slices_rounding {
    int shift;
    int32_t bits;
};

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
    struct slices_rounding rounding;
    atomic_int shift; /* the largest so far */
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

/* Computes the first voxel and the size of a block. */
static void
slices_place_block(const struct slices_request *request, const int64_t at[3], int64_t first[3], struct block *block)
{
    for (int i = 0; i < 3; i++) {
        first[i] = BLOCK_EDGE * at[i];
        const int64_t left = request->volume->size[i] - first[i];
        block->size[i] = left < BLOCK_EDGE ? (int32_t)left : BLOCK_EDGE;
    }
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

/* Returns the shift of a block that needs so many bits per voxel. */
static int
slices_shift(const struct slices_rounding *rounding, int32_t bits)
{
    const int32_t above = bits - rounding->bits, shift = above > 0 ? (above + BLOCK_BIT - 1) / BLOCK_BIT : 0;
    return shift < rounding->shift ? shift : rounding->shift;
}

/* Appends a block to a row. */
static void
slices_put_block(struct slices_writing *writing, const int64_t at[3], struct slices_bench *bench,
                 struct slices_row *row, uint8_t *index)
{
    const struct slices_request *request = writing->request;
    struct block *block = &bench->block;
    int64_t first[3];
    slices_place_block(request, at, first, block);
    slices_fill(request, first, block);
    const struct block_choice choice = block_choose(block);
    const int shift = slices_shift(&writing->rounding, choice.bits);
    int largest = atomic_load(&writing->shift);
    while (shift > largest && !atomic_compare_exchange_weak(&writing->shift, &largest, shift))
        ;
    block_round(block, shift);
    uint8_t *begin = row->bytes + row->size;
    uint8_t *end = block_pack(block, choice.way, shift, begin);
    for (size_t i = 0; i < bench->crossing_count; i++)
        end = slices_put_mask(request, bench->crossing[i], first, block->size, end);
    const size_t size = (size_t)(end - begin);
    slices_put_32(index, (uint32_t)size);
    slices_put_32(index + 4, (uint32_t)XXH3_64bits(begin, size));
    row->size += size;
}

static size_t
slices_row_room(int64_t blocks, size_t segments)
{
    return (size_t)blocks * (BLOCK_VALUES_MAX + segments * BLOCK_MASK_MAX);
}

/* Makes room for any blocks of a row. Pages that they do not need take no memory. Returns false if memory is short. */
static bool
slices_make_room(const struct slices_writing *writing, const struct slices_bench *bench, struct slices_row *row)
{
    const size_t room = slices_row_room(writing->blocks[0], bench->crossing_count);
    row->size = 0;
    if (row->room < room) {
        free(row->bytes);
        row->bytes = malloc(room);
        row->room = row->bytes ? room : 0;
    }
    return row->bytes != NULL;
}

static bool
slices_put_row(struct slices_writing *writing, int64_t number, struct slices_bench *bench)
{
    const int64_t at = writing->first_row + number, y = at % writing->blocks[1], z = at / writing->blocks[1];
    struct slices_row *row = &writing->rows[number];
    slices_find_crossing(writing->request, BLOCK_EDGE * y, BLOCK_EDGE * z, bench);
    if (!slices_make_room(writing, bench, row))
        return false;
    for (int64_t x = 0; x < writing->blocks[0]; x++)
        slices_put_block(writing, (const int64_t[3]){x, y, z}, bench, row,
                         writing->index + INDEX_ROW * (at * writing->blocks[0] + x));
    return true;
}

static void
slices_put_rows(struct parallel *loop, void *context)
{
    struct slices_writing *writing = context;
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

/* ------------------------------------------------------------------------------ rounding ---- */

/* Returns the largest shift whose step is at most SLICES_GREYS of the window. */
static int
slices_shift_max(const struct slices_volume *volume)
{
    double slope = 0;
    for (int32_t i = 0; i < volume->rescale_count; i++)
        slope = fmax(slope, fabs(volume->rescales[i].slope));
    const double step = (volume->window[1] - volume->window[0]) / 256 * SLICES_GREYS / slope;
    int shift = 0;
    while (shift < BLOCK_SHIFT_MAX && 2 << shift <= step)
        shift++;
    return shift;
}

/* Sums the bits that blocks need after the rounding. `blocks` has their number by the bits before it. */
static int64_t
slices_sum_bits(const int32_t blocks[MOST_BITS + 1], const struct slices_rounding *rounding)
{
    int64_t sum = 0;
    for (int32_t bits = 0; bits <= MOST_BITS; bits++)
        sum += (int64_t)blocks[bits] * (bits - BLOCK_BIT * slices_shift(rounding, bits));
    return sum;
}

/* Counts blocks by the bits that they need. Returns the bits of the masks, of an average block. A sample of all blocks. */
static int64_t
slices_sample(const struct slices_writing *writing, int32_t by_bits[MOST_BITS + 1], int64_t *sampled)
{
    const struct slices_request *request = writing->request;
    const int64_t *blocks = writing->blocks, count = blocks[0] * blocks[1] * blocks[2];
    const int64_t stride = count / SAMPLED_BLOCKS > 1 ? count / SAMPLED_BLOCKS : 1;
    const size_t segments = (size_t)request->volume->segment_count;
    uint8_t mask[BLOCK_MASK_MAX];
    int64_t bytes = 0, masked = 0;
    struct block block;
    *sampled = count / stride;
    for (int64_t i = 0; i < *sampled; i++) {
        const uint32_t random = (uint32_t)i * 2654435761U >> 8; /* no column or row of blocks is preferred */
        const int64_t number = stride * i + random % stride;
        const bool with_masks = random >> 12 & 1;
        const int64_t at[3] = {number % blocks[0], number / blocks[0] % blocks[1], number / blocks[0] / blocks[1]};
        int64_t first[3];
        slices_place_block(request, at, first, &block);
        slices_fill(request, first, &block);
        by_bits[block_choose(&block).bits]++;
        masked += with_masks;
        for (size_t s = 0; s < segments && with_masks; s++)
            if (request->masks[s]->bits && request->masks[s]->voxels > 0)
                bytes += slices_put_mask(request, s, first, block.size, mask) - mask;
    }
    return masked > 0 ? bytes * CHAR_BIT * BLOCK_BIT / BLOCK_VOXELS / masked : 0;
}

/*
 * Chooses the smallest steps with which the file has a quarter of the volume's bytes: first the smallest limit of steps, then
 * the fewest blocks.
 */
static struct slices_rounding
slices_choose_rounding(const struct slices_writing *writing)
{
    const int most = slices_shift_max(writing->request->volume);
    int32_t by_bits[MOST_BITS + 1] = {0};
    struct slices_rounding chosen = {0, LEAST_BITS};
    int64_t sampled;
    if (most == 0)
        return chosen;
    const int64_t masks = slices_sample(writing, by_bits, &sampled), wanted = sampled * (WANTED_BITS - masks);
    while (chosen.shift < most && slices_sum_bits(by_bits, &chosen) > wanted)
        chosen.shift++;
    while (chosen.bits < MOST_BITS) {
        const struct slices_rounding more = {chosen.shift, chosen.bits + 1};
        if (slices_sum_bits(by_bits, &more) > wanted)
            break;
        chosen = more;
    }
    return chosen;
}

/* Returns the rows of blocks in a batch. */
static int64_t
slices_batch_rows(int threads)
{
    return ROWS_PER_THREAD * (int64_t)(threads > 1 ? threads : 1);
}

/* Compresses and writes all rows of blocks, a batch at a time. */
static int
slices_put_blocks(struct slices_writing *writing, int fd)
{
    const int64_t rows = writing->blocks[1] * writing->blocks[2];
    const int64_t most = slices_batch_rows(writing->request->threads);
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
    head[30] = (uint8_t)(volume->has_geometry | (volume->in_mm && !volume->has_geometry) << 1);
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

int64_t
slices_write_bytes(const int32_t size[3], size_t segment_count, int threads)
{
    int64_t blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = (size[i] + BLOCK_EDGE - 1) / BLOCK_EDGE;
    const int64_t rows = blocks[1] * blocks[2], most = slices_batch_rows(threads);
    const int64_t per_segment = sizeof(struct slices_segment) + sizeof(struct image_mask *) + 4 + SLICES_LABEL;
    return (int64_t)slices_row_room(blocks[0], segment_count) * (most < rows ? most : rows) +
           INDEX_ROW * rows * blocks[0] + 2 * (int64_t)sizeof(struct image_rescale) * size[2] +
           (per_segment + (threads + 1) * (int64_t)sizeof(size_t)) * (int64_t)(segment_count + 1);
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
    writing.rounding = slices_choose_rounding(&writing);
    int rc = lseek(fd, (off_t)size, SEEK_SET) < 0 ? -errno : slices_put_blocks(&writing, fd);
    if (rc == 0) {
        slices_put_head(volume, bytes, head);
        bytes[HEAD_SHIFT] = (uint8_t)atomic_load(&writing.shift);
        slices_put_32(bytes + 12, (uint32_t)XXH3_64bits(bytes + HEAD_CHECKED, size - HEAD_CHECKED));
        rc = lseek(fd, 0, SEEK_SET) < 0 ? -errno : durable_write_all(fd, bytes, size);
    }
    free(bytes);
    return rc;
}

/* slices_read.c - see slices.h. Everything in a file is checked before it is used: another program may have damaged it. */
#include "service/common/slices/slices.h"

#include "service/common/picture/orientation.h"
#include "service/common/slices/slices_block.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

const char *const slices_view_keys[SLICES_VIEWS] = {"ax", "cor", "sag"};

enum { KEPT_BYTES = 16 << 20 };

/* The decoded blocks of some planes, in the order of the file. */
struct slices_kept {
    int axis;
    int64_t slab; /* block on this axis; -1: none are kept */
    int64_t count;
    struct block *blocks;
    size_t *mask_ends; /* per block, in `masks` */
    uint8_t *masks;
    size_t masks_room;
};

struct slices {
    int fd;
    struct slices_volume volume;
    int64_t blocks[3];
    uint8_t *bytes; /* head and index */
    const uint8_t *index;
    int64_t *offsets;         /* per row of blocks along x */
    struct slices_kept *kept; /* NULL: slices_keep() was not called */
};

static int
slices_refuse(struct error *error, const char *why)
{
    return error_set(error, -EBADMSG, CODE_SLICES_DAMAGED, "the file of the slices is damaged: %s", why);
}

/* Reads all bytes. The end of the file is -EBADMSG without an error. */
static int
slices_pread(int fd, void *to, size_t size, int64_t offset)
{
    for (size_t used = 0; used < size;) {
        const ssize_t got = pread(fd, (uint8_t *)to + used, size - used, (off_t)(offset + (int64_t)used));
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            return -EBADMSG;
        used += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static uint32_t
slices_get_32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

/* Returns whether `count` numbers are finite. */
static bool
slices_get_numbers(const uint8_t *from, double *to, int count)
{
    bool finite = true;
    memcpy(to, from, (size_t)count * sizeof *to);
    for (int i = 0; i < count; i++)
        finite &= isfinite(to[i]) != 0;
    return finite;
}

/* -------------------------------------------------------------------------------- opening ---- */

/* Reads the part of the head that has a fixed size. Returns NULL, or what is wrong. */
static const char *
slices_take_fixed(const uint8_t *head, struct slices_volume *volume)
{
    for (int i = 0; i < 3; i++) {
        const uint32_t size = slices_get_32(head + 16 + 4 * i);
        if (size < 1 || size > 1 << 20)
            return "its size";
        volume->size[i] = (int32_t)size;
    }
    const uint32_t segments = slices_get_32(head + 32), rescales = slices_get_32(head + 36);
    if (head[28] > IMAGE_UINT16 || head[HEAD_SHIFT] > BLOCK_SHIFT_MAX || segments > SLICES_SEGMENTS ||
        (rescales != 1 && rescales != (uint32_t)volume->size[2]))
        return "its pixel type, step, segments or rescales";
    volume->pixel = (enum image_pixel)head[28];
    volume->monochrome1 = head[29] & 1;
    volume->has_geometry = head[30] & 1;
    volume->in_mm = head[30] & 3;
    volume->step = 1 << head[HEAD_SHIFT];
    volume->segment_count = (int32_t)segments;
    volume->rescale_count = (int32_t)rescales;
    bool fine = slices_get_numbers(head + 40, volume->spacing, 3) & slices_get_numbers(head + 64, volume->origin, 3) &
                slices_get_numbers(head + 88, volume->axes, 9) & slices_get_numbers(head + 160, volume->window, 2);
    for (int i = 0; i < 3; i++)
        fine &= volume->spacing[i] > 0;
    if (!fine || volume->window[1] <= volume->window[0])
        return "its geometry or window";
    memcpy(volume->unit, head + 176, SLICES_UNIT);
    volume->unit[SLICES_UNIT - 1] = '\0';
    return NULL;
}

/* Reads rescales and segments, between `at` and `end`. */
static const char *
slices_take_tables(const uint8_t *at, const uint8_t *end, struct slices_volume *volume)
{
    const size_t rescales = (size_t)volume->rescale_count;
    if ((size_t)(end - at) < 16 * rescales + 4 * (size_t)volume->segment_count)
        return "its head is too short";
    volume->rescales = calloc(rescales, sizeof *volume->rescales);
    volume->segments = calloc((size_t)volume->segment_count + 1, sizeof *volume->segments);
    if (!volume->rescales || !volume->segments)
        return "memory is short";
    for (size_t i = 0; i < rescales; i++, at += 16) {
        double numbers[2];
        if (!slices_get_numbers(at, numbers, 2))
            return "a rescale";
        volume->rescales[i] = (struct image_rescale){numbers[0], numbers[1]};
    }
    for (int32_t i = 0; i < volume->segment_count; i++) {
        struct slices_segment *segment = &volume->segments[i];
        if (end - at < 4 || end - at < 4 + at[3])
            return "a segment";
        memcpy(segment->rgb, at, 3);
        memcpy(segment->label, at + 4, at[3]);
        at += 4 + at[3];
    }
    return at == end ? NULL : "the end of its head";
}

/* Sums the sizes of the blocks. They must end where the file does. */
static const char *
slices_take_index(struct slices *file, int64_t offset, int64_t file_size)
{
    const int64_t rows = file->blocks[1] * file->blocks[2];
    file->offsets = malloc((size_t)rows * sizeof *file->offsets);
    if (!file->offsets)
        return "memory is short";
    const uint8_t *index = file->index;
    for (int64_t row = 0; row < rows; row++) {
        file->offsets[row] = offset;
        for (int64_t x = 0; x < file->blocks[0]; x++, index += INDEX_ROW)
            offset += slices_get_32(index);
    }
    return offset == file_size ? NULL : "it has another size than its index";
}

static int
slices_take_head(struct slices *file, int64_t file_size, struct error *error)
{
    uint8_t fixed[HEAD_FIXED];
    int rc = file_size < HEAD_FIXED ? -EBADMSG : slices_pread(file->fd, fixed, sizeof fixed, 0);
    if (rc == -EBADMSG)
        return slices_refuse(error, "it is too short");
    if (rc)
        return error_set_system(error, rc, "read the slices");
    const int64_t head = slices_get_32(fixed + 8);
    if (memcmp(fixed, SLICES_MAGIC, 7) == 0 && fixed[7] >= '0' && fixed[7] <= '9' && fixed[7] != SLICES_MAGIC[7])
        return error_set(
            error, -EBADMSG, CODE_SLICES_VERSION,
            "the file of the slices has version %c, and this program reads %c: run `noctule retry` for the job",
            fixed[7], SLICES_MAGIC[7]);
    const char *why = memcmp(fixed, SLICES_MAGIC, 8) != 0 ? "it is none" : slices_take_fixed(fixed, &file->volume);
    if (why)
        return slices_refuse(error, why);
    int64_t blocks = 1;
    for (int i = 0; i < 3; i++) {
        file->blocks[i] = (file->volume.size[i] + BLOCK_EDGE - 1) / BLOCK_EDGE;
        blocks *= file->blocks[i]; /* at most 2^48 */
    }
    if (head < HEAD_FIXED || head > HEAD_MAX || blocks > (file_size - head) / INDEX_ROW)
        return slices_refuse(error, "it is too short for its index");
    const int64_t size = head + INDEX_ROW * blocks;
    file->bytes = malloc((size_t)size);
    if (!file->bytes)
        return error_set_system(error, -ENOMEM, "read the slices");
    rc = slices_pread(file->fd, file->bytes, (size_t)size, 0);
    if (rc)
        return rc == -EBADMSG ? slices_refuse(error, "it is too short")
                              : error_set_system(error, rc, "read the slices");
    file->index = file->bytes + head;
    file->volume.check = slices_get_32(file->bytes + 12);
    if ((uint32_t)XXH3_64bits(file->bytes + HEAD_CHECKED, (size_t)size - HEAD_CHECKED) != file->volume.check ||
        memcmp(fixed, file->bytes, sizeof fixed) != 0)
        return slices_refuse(error, "the checksum of its head");
    why = slices_take_tables(file->bytes + HEAD_FIXED, file->index, &file->volume);
    if (!why)
        why = slices_take_index(file, size, file_size);
    return why ? slices_refuse(error, why) : 0;
}

int
slices_open(int fd, struct slices **file, struct error *error)
{
    struct stat status;
    *file = NULL;
    if (fstat(fd, &status) != 0)
        return error_set_system(error, -errno, "read the slices");
    if (!S_ISREG(status.st_mode))
        return slices_refuse(error, "it is no regular file");
    struct slices *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_set_system(error, -ENOMEM, "read the slices");
    opened->fd = fd;
    const int rc = slices_take_head(opened, status.st_size, error);
    if (rc)
        slices_close(opened);
    else
        *file = opened;
    return rc;
}

void
slices_close(struct slices *file)
{
    if (!file)
        return;
    free(file->volume.rescales);
    free(file->volume.segments);
    free(file->bytes);
    free(file->offsets);
    if (file->kept) {
        free(file->kept->blocks);
        free(file->kept->mask_ends);
        free(file->kept->masks);
    }
    free(file->kept);
    free(file);
}

const struct slices_volume *
slices_volume_of(const struct slices *file)
{
    return &file->volume;
}

double
slices_error(const struct slices_volume *volume)
{
    double slope = 0;
    for (int32_t i = 0; i < volume->rescale_count; i++)
        slope = fmax(slope, fabs(volume->rescales[i].slope));
    return slope * (volume->step / 2);
}

/* --------------------------------------------------------------------------------- layout ---- */

struct slices_layout
slices_layout_of(const struct slices_volume *volume, enum slices_view view)
{
    /* Patient axes (0: left, 1: posterior, 2: head), and whether a view shows the axis against its direction. */
    static const struct {
        int across, down, through;
        bool down_against;
    } views[SLICES_VIEWS] = {{0, 1, 2, false}, {0, 2, 1, true}, {1, 2, 0, true}};

    int patient[3] = {0, 1, 2}, axis_of[3];
    bool against[3] = {false, false, false};
    if (volume->has_geometry)
        orientation_of_axes(volume->axes, patient);
    for (int i = 0; i < 3; i++) {
        axis_of[patient[i]] = i;
        against[patient[i]] = volume->has_geometry && volume->axes[3 * i + patient[i]] < 0;
    }
    return (struct slices_layout){.across = axis_of[views[view].across],
                                  .down = axis_of[views[view].down],
                                  .through = axis_of[views[view].through],
                                  .from_right = against[views[view].across],
                                  .from_below = against[views[view].down] != views[view].down_against,
                                  .from_end = against[views[view].through]};
}

void
slices_edges(const struct slices_volume *volume, const struct slices_layout *layout, char edges[4][4])
{
    for (int edge = 0; edge < 4; edge++) {
        const double *axis = volume->axes + 3 * (edge < 2 ? layout->across : layout->down);
        const bool first = edge == 0 || edge == 2, reversed = edge < 2 ? layout->from_right : layout->from_below;
        const double sign = first != reversed ? -1 : 1;
        edges[edge][0] = '\0';
        if (volume->has_geometry)
            orientation_letters((double[3]){sign * axis[0], sign * axis[1], sign * axis[2]}, edges[edge]);
    }
}

void
slices_place(const struct slices_volume *volume, const struct slices_layout *layout, int32_t at,
             char text[SLICES_PLACE])
{
    const double *axis = volume->axes + 3 * layout->through, *origin = volume->origin;
    const int32_t voxel = layout->from_end ? volume->size[layout->through] - 1 - at : at;
    text[0] = '\0';
    if (volume->has_geometry)
        orientation_place(axis,
                          axis[0] * origin[0] + axis[1] * origin[1] + axis[2] * origin[2] +
                              voxel * volume->spacing[layout->through],
                          text);
}

/* --------------------------------------------------------------------------------- planes ---- */

/* A plane that is being read. */
struct slices_reading {
    struct slices *file;
    struct slices_layout layout;
    int32_t voxel; /* on the axis through */
    struct slices_plane *plane;
    int32_t *layer_of; /* per segment, or -1 */
    uint8_t *packed;
    size_t packed_room;
    struct slices_kept *kept; /* NULL: the blocks of this plane are not kept */
    int64_t number;           /* of the block among them */
    struct block *block, own;
};

static int32_t
slices_size_of(const struct slices *file, int64_t block, int axis)
{
    const int64_t left = file->volume.size[axis] - BLOCK_EDGE * block;
    return left < BLOCK_EDGE ? (int32_t)left : BLOCK_EDGE;
}

/* Returns the pixel column or row of a voxel. */
static int32_t
slices_pixel(int32_t voxel, int32_t size, bool reversed)
{
    return reversed ? size - 1 - voxel : voxel;
}

static void
slices_put_pixels(const struct slices_reading *reading, const int64_t at[3])
{
    static const int block_steps[3] = {1, BLOCK_EDGE, BLOCK_EDGE * BLOCK_EDGE};
    const struct slices_layout *layout = &reading->layout;
    const struct block *block = reading->block;
    const struct slices_plane *plane = reading->plane;
    const int across = layout->across, down = layout->down;
    const uint16_t turned = reading->file->volume.pixel == IMAGE_UINT16 ? 0x8000 : 0;
    const int16_t *from = (const int16_t *)block->rows + block_steps[layout->through] * (reading->voxel % BLOCK_EDGE);
    const int32_t column = slices_pixel((int32_t)(BLOCK_EDGE * at[across]), plane->columns, layout->from_right);
    const int64_t step = layout->from_right ? -1 : 1;
    for (int32_t j = 0; j < block->size[down]; j++) {
        const int32_t row = slices_pixel((int32_t)(BLOCK_EDGE * at[down]) + j, plane->rows, layout->from_below);
        uint16_t *to = plane->values + (int64_t)row * plane->columns + column;
        const int16_t *value = from + block_steps[down] * j;
        for (int32_t i = 0; i < block->size[across]; i++)
            to[step * i] = (uint16_t)((uint16_t)value[block_steps[across] * i] ^ turned);
    }
}

/* Returns the layer of a segment, or -1 if memory is short. */
static int32_t
slices_layer(struct slices_reading *reading, int32_t segment)
{
    struct slices_plane *plane = reading->plane;
    if (reading->layer_of[segment] < 0) {
        uint8_t *bits = calloc((size_t)plane->rows, (size_t)(plane->columns + 7) / 8);
        if (!bits)
            return -1;
        plane->layers[plane->layer_count] = bits;
        plane->layer_segments[plane->layer_count] = segment;
        reading->layer_of[segment] = plane->layer_count++;
    }
    return reading->layer_of[segment];
}

/* Adds the voxels of a segment in this block. `bits` NULL: all. Returns false if memory is short. */
static bool
slices_put_layer(struct slices_reading *reading, const int64_t at[3], int32_t segment, const uint16_t *bits)
{
    const struct slices_layout *layout = &reading->layout;
    const struct slices_plane *plane = reading->plane;
    const int32_t *size = reading->block->size;
    int32_t voxel[3];
    voxel[layout->through] = reading->voxel % BLOCK_EDGE;
    for (int32_t j = 0; j < size[layout->down]; j++) {
        voxel[layout->down] = j;
        const int32_t y = slices_pixel((int32_t)(BLOCK_EDGE * at[layout->down]) + j, plane->rows, layout->from_below);
        for (int32_t i = 0; i < size[layout->across]; i++) {
            voxel[layout->across] = i;
            if (bits && !(bits[size[1] * voxel[2] + voxel[1]] >> voxel[0] & 1))
                continue;
            const int32_t x =
                slices_pixel((int32_t)(BLOCK_EDGE * at[layout->across]) + i, plane->columns, layout->from_right);
            const int32_t layer = slices_layer(reading, segment);
            if (layer < 0)
                return false;
            plane->layers[layer][(int64_t)y * ((plane->columns + 7) / 8) + x / 8] |= (uint8_t)(1 << x % 8);
        }
    }
    return true;
}

/* Decodes the rows of a mask. Returns the end of its bytes, or NULL if they are damaged. */
static const uint8_t *
slices_take_rows(const uint8_t *from, const uint8_t *end, int32_t rows, uint16_t *bits)
{
    const uint8_t *changes = from;
    uint16_t row = 0;
    if (end - from < (rows + 7) / 8)
        return NULL;
    from += (rows + 7) / 8;
    for (int32_t n = 0; n < rows; n++) {
        if (changes[n / 8] >> n % 8 & 1) {
            if (end - from < 2)
                return NULL;
            row = (uint16_t)(from[0] | from[1] << 8);
            from += 2;
        }
        bits[n] = row;
    }
    return from;
}

/* Decodes the masks between `from` and `end`. Returns NULL, or what is wrong. */
static const char *
slices_take_masks(struct slices_reading *reading, const int64_t at[3], const uint8_t *from, const uint8_t *end)
{
    const int32_t rows = reading->block->size[1] * reading->block->size[2];
    while (from < end) {
        const int32_t mark = end - from < 2 ? BLOCK_FULL - 1 : from[0] | from[1] << 8;
        const bool full = mark & BLOCK_FULL;
        uint16_t bits[BLOCK_ROWS];
        if ((mark & ~BLOCK_FULL) >= reading->file->volume.segment_count)
            return "a mask";
        from = full ? from + 2 : slices_take_rows(from + 2, end, rows, bits);
        if (!from)
            return "a mask";
        if (!slices_put_layer(reading, at, mark & ~BLOCK_FULL, full ? NULL : bits))
            return "memory is short";
    }
    return NULL;
}

/* Keeps the masks of a block, whose values are kept. Returns false if memory is short. */
static bool
slices_keep_masks(struct slices_kept *kept, int64_t number, const uint8_t *masks, size_t size)
{
    const size_t used = number > 0 ? kept->mask_ends[number - 1] : 0;
    if (kept->masks_room - used < size) {
        uint8_t *grown = realloc(kept->masks, 2 * kept->masks_room + size);
        if (!grown)
            return false;
        kept->masks = grown;
        kept->masks_room = 2 * kept->masks_room + size;
    }
    if (size > 0)
        memcpy(kept->masks + used, masks, size);
    kept->mask_ends[number] = used + size;
    return true;
}

/* Decodes a block. */
static const char *
slices_take_block(struct slices_reading *reading, const int64_t at[3], const uint8_t *packed, size_t size)
{
    struct slices_kept *kept = reading->kept;
    struct block *block = reading->block = kept ? &kept->blocks[reading->number] : &reading->own;
    for (int i = 0; i < 3; i++)
        block->size[i] = slices_size_of(reading->file, at[i], i);
    const int32_t slices = reading->layout.through == 2 && !kept ? reading->voxel % BLOCK_EDGE + 1 : block->size[2];
    if (size > 0 && 1 << (packed[0] >> 4) > reading->file->volume.step)
        return "the step of a block";
    const int16_t most = reading->file->volume.pixel == IMAGE_UINT8 ? UINT8_MAX : INT16_MAX;
    const uint8_t *after = block_unpack(block, slices, most, packed, packed + size);
    if (!after)
        return "a block";
    if (kept && !slices_keep_masks(kept, reading->number++, after, (size_t)(packed + size - after)))
        return "memory is short";
    slices_put_pixels(reading, at);
    return slices_take_masks(reading, at, after, packed + size);
}

/* Reads the blocks of a row along x, from `first` to `last`. */
static int
slices_take_row(struct slices_reading *reading, int64_t first, int64_t last, int64_t y, int64_t z, struct error *error)
{
    const struct slices *file = reading->file;
    const int64_t row = z * file->blocks[1] + y;
    const uint8_t *index = file->index + INDEX_ROW * row * file->blocks[0];
    int64_t offset = file->offsets[row], bytes = 0;
    for (int64_t x = 0; x < first; x++)
        offset += slices_get_32(index + INDEX_ROW * x);
    for (int64_t x = first; x <= last; x++)
        bytes += slices_get_32(index + INDEX_ROW * x);
    if (bytes > (last - first + 1) * (BLOCK_VALUES_MAX + (int64_t)file->volume.segment_count * BLOCK_MASK_MAX))
        return slices_refuse(error, "the size of a block");
    if ((size_t)bytes > reading->packed_room) {
        free(reading->packed);
        reading->packed = malloc((size_t)bytes + BLOCK_SLACK);
        reading->packed_room = reading->packed ? (size_t)bytes : 0;
        if (!reading->packed)
            return error_set_system(error, -ENOMEM, "read the slices");
    }
    const int rc = slices_pread(file->fd, reading->packed, (size_t)bytes, offset);
    if (rc)
        return rc == -EBADMSG ? slices_refuse(error, "it is too short")
                              : error_set_system(error, rc, "read the slices");
    const uint8_t *packed = reading->packed;
    for (int64_t x = first; x <= last; x++) {
        const uint32_t size = slices_get_32(index + INDEX_ROW * x);
        if ((uint32_t)XXH3_64bits(packed, size) != slices_get_32(index + INDEX_ROW * x + 4))
            return slices_refuse(error, "the checksum of a block");
        const char *why = slices_take_block(reading, (const int64_t[3]){x, y, z}, packed, size);
        if (why)
            return slices_refuse(error, why);
        packed += size;
    }
    return 0;
}

int
slices_keep(struct slices *file)
{
    if (!file->kept)
        file->kept = calloc(1, sizeof *file->kept);
    if (!file->kept)
        return -ENOMEM;
    file->kept->slab = -1;
    return 0;
}

int64_t
slices_kept_distance(const struct slices *file, const struct slices_layout *layout, int32_t at)
{
    const struct slices_kept *kept = file->kept;
    if (!kept || kept->slab < 0 || kept->axis != layout->through)
        return INT64_MAX;
    const int32_t voxel = layout->from_end ? file->volume.size[layout->through] - 1 - at : at;
    return llabs(voxel / BLOCK_EDGE - kept->slab);
}

/* Makes room for the blocks of a plane, if they are to be kept. Returns false if memory is short. */
static bool
slices_prepare_kept(struct slices_reading *reading)
{
    struct slices_kept *kept = reading->file->kept;
    const int64_t *blocks = reading->file->blocks;
    const int axis = reading->layout.through;
    const int64_t count = blocks[axis == 0] * blocks[axis == 2 ? 1 : 2];
    if (!kept || count * (int64_t)sizeof(struct block) > KEPT_BYTES)
        return true;
    if (kept->count != count) {
        free(kept->blocks);
        free(kept->mask_ends);
        kept->blocks = aligned_alloc(_Alignof(struct block), (size_t)count * sizeof *kept->blocks);
        kept->mask_ends = malloc((size_t)count * sizeof *kept->mask_ends);
        kept->count = kept->blocks && kept->mask_ends ? count : 0;
    }
    kept->slab = -1;
    kept->axis = axis;
    reading->kept = kept;
    return kept->count > 0;
}

/* Shows a plane of the kept blocks. Returns NULL, or the reason of a failure. */
static const char *
slices_show_kept(struct slices_reading *reading, const int64_t first[3], const int64_t last[3])
{
    const struct slices_kept *kept = reading->file->kept;
    const char *why = NULL;
    int64_t at[3], n = 0;
    for (at[2] = first[2]; at[2] <= last[2]; at[2]++)
        for (at[1] = first[1]; at[1] <= last[1]; at[1]++)
            for (at[0] = first[0]; !why && at[0] <= last[0]; at[0]++, n++) {
                const uint8_t *masks = kept->masks;
                reading->block = &kept->blocks[n];
                slices_put_pixels(reading, at);
                if (kept->mask_ends[n] > (n > 0 ? kept->mask_ends[n - 1] : 0))
                    why = slices_take_masks(reading, at, masks + (n > 0 ? kept->mask_ends[n - 1] : 0),
                                            masks + kept->mask_ends[n]);
            }
    return why;
}

static bool
slices_prepare(struct slices_reading *reading)
{
    const size_t segments = (size_t)reading->file->volume.segment_count;
    struct slices_plane *plane = reading->plane;
    plane->values = malloc((size_t)plane->columns * (size_t)plane->rows * sizeof *plane->values);
    plane->layers = calloc(segments + 1, sizeof *plane->layers);
    plane->layer_segments = calloc(segments + 1, sizeof *plane->layer_segments);
    reading->layer_of = malloc((segments + 1) * sizeof *reading->layer_of);
    for (size_t i = 0; reading->layer_of && i < segments; i++)
        reading->layer_of[i] = -1;
    return plane->values && plane->layers && plane->layer_segments && reading->layer_of;
}

int
slices_read_plane(struct slices *file, const struct slices_layout *layout, int32_t at, struct slices_plane *plane,
                  struct error *error)
{
    const int32_t *size = file->volume.size;
    *plane = (struct slices_plane){.columns = size[layout->across], .rows = size[layout->down]};
    struct slices_reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return error_set_system(error, -ENOMEM, "read the slices");
    reading->file = file;
    reading->layout = *layout;
    reading->voxel = layout->from_end ? size[layout->through] - 1 - at : at;
    reading->plane = plane;
    int64_t first[3] = {0, 0, 0}, last[3];
    for (int i = 0; i < 3; i++)
        last[i] = file->blocks[i] - 1;
    first[layout->through] = last[layout->through] = reading->voxel / BLOCK_EDGE;
    const bool is_kept = slices_kept_distance(file, layout, at) == 0;
    const bool fine = slices_prepare(reading) && (is_kept || slices_prepare_kept(reading));
    int rc = fine ? 0 : error_set_system(error, -ENOMEM, "read the slices");
    if (rc == 0 && is_kept) {
        const char *why = slices_show_kept(reading, first, last);
        rc = why ? slices_refuse(error, why) : 0;
    }
    for (int64_t z = first[2]; rc == 0 && !is_kept && z <= last[2]; z++)
        for (int64_t y = first[1]; rc == 0 && y <= last[1]; y++)
            rc = slices_take_row(reading, first[0], last[0], y, z, error);
    if (rc == 0 && reading->kept)
        reading->kept->slab = reading->voxel / BLOCK_EDGE;
    free(reading->layer_of);
    free(reading->packed);
    free(reading);
    return rc;
}

void
slices_plane_free(struct slices_plane *plane)
{
    for (int32_t i = 0; i < plane->layer_count; i++)
        free(plane->layers[i]);
    free(plane->layers);
    free(plane->layer_segments);
    free(plane->values);
    *plane = (struct slices_plane){0};
}

#include "dicom/read/pixels/fragments.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Offsets of the frames, from the first byte of the item after the Basic Offset Table. */
struct offset_table {
    size_t count;
    uint64_t *offsets;
};

static int
table_from_bytes(const uint8_t *bytes, size_t size, size_t width, struct offset_table *table)
{
    free(table->offsets);
    table->count = size / width;
    table->offsets = calloc(table->count + 1, sizeof(*table->offsets));
    if (!table->offsets)
        return -ENOMEM;
    for (size_t i = 0; i < table->count; i++)
        for (size_t byte = width; byte > 0; byte--) /* little endian */
            table->offsets[i] = table->offsets[i] << 8 | bytes[i * width + byte - 1];
    return 0;
}

static int
list_fragments(struct stream *stream, struct fragments *fragments, struct offset_table *table)
{
    struct scan_item item; /* first the Basic Offset Table */
    int error = scan_pixel_item(stream, &item);
    if (error || item.is_delimiter)
        return error;
    if (item.length > stream_remaining(stream))
        return -ENODATA;
    uint8_t *bytes = malloc((size_t)item.length + 1);
    if (!bytes)
        return -ENOMEM;
    error = stream_read(stream, bytes, item.length);
    if (!error)
        error = table_from_bytes(bytes, item.length, 4, table);
    free(bytes);
    for (size_t room = 0; !error;) {
        error = scan_pixel_item(stream, &item);
        if (!error && item.is_delimiter)
            return 0;
        if (error)
            break;
        if (fragments->count >= LIMIT_FRAGMENTS)
            return -E2BIG;
        struct fragment *list = array_grow(fragments->list, &room, (size_t)fragments->count + 1, sizeof(*list));
        if (!list)
            return -ENOMEM;
        fragments->list = list;
        list[fragments->count++] = (struct fragment){stream->position, item.length};
        error = stream_skip(stream, item.length);
    }
    return error;
}

/* Returns true if each frame's offset is the start of a fragment, in ascending order from the
 * first. */
static bool
frames_from_table(const struct offset_table *table, struct fragments *fragments)
{
    if (table->count != (size_t)fragments->frame_count || table->offsets[0] != 0)
        return false;
    int32_t fragment = 0;
    for (int32_t frame = 0; frame < fragments->frame_count; frame++) {
        const int64_t base = fragments->list[0].offset;
        while (fragment < fragments->count &&
               (uint64_t)(fragments->list[fragment].offset - base) < table->offsets[frame])
            fragment++;
        if (fragment == fragments->count ||
            (uint64_t)(fragments->list[fragment].offset - base) != table->offsets[frame] ||
            (frame > 0 && fragment == fragments->first[frame - 1]))
            return false;
        fragments->first[frame] = fragment;
    }
    return true;
}

/* Finds frames by fragments that start a code stream: SOI of JPEG and JPEG-LS, SOC and SIZ of JPEG
 * 2000. */
static bool
frames_from_markers(int fd, struct fragments *fragments)
{
    int32_t frame = 0;
    for (int32_t i = 0; i < fragments->count; i++) {
        const struct fragment *fragment = &fragments->list[i];
        uint8_t bytes[4];
        if (fragment->length < sizeof(bytes) ||
            pread(fd, bytes, sizeof(bytes), fragment->offset) != (ssize_t)sizeof(bytes) ||
            (memcmp(bytes, "\xFF\xD8\xFF", 3) != 0 && memcmp(bytes, "\xFF\x4F\xFF\x51", 4) != 0))
            continue;
        if (frame == fragments->frame_count)
            return false;
        fragments->first[frame++] = i;
    }
    return frame == fragments->frame_count && fragments->first[0] == 0;
}

static bool
assign_frames(int fd, const struct offset_table *basic, const struct offset_table *extended,
              struct fragments *fragments)
{
    fragments->first[fragments->frame_count] = fragments->count;
    if (fragments->frame_count == 1)
        return fragments->count > 0;
    if (fragments->count == fragments->frame_count) {
        for (int32_t i = 0; i < fragments->frame_count; i++)
            fragments->first[i] = i;
        return true;
    }
    return fragments->count > fragments->frame_count &&
           (frames_from_table(extended, fragments) || frames_from_table(basic, fragments) ||
            frames_from_markers(fd, fragments));
}

int
fragments_index(struct stream *stream, const struct scan *scan, const char *path, int32_t frame_count,
                struct fragments *fragments, struct error *error)
{
    memset(fragments, 0, sizeof(*fragments));
    struct offset_table basic = {0}, extended = {0};
    fragments->frame_count = frame_count;
    fragments->first = calloc((size_t)frame_count + 1, sizeof(*fragments->first));
    int rc = fragments->first ? 0 : -ENOMEM;
    if (!rc)
        rc = list_fragments(stream, fragments, &basic);
    /* The extended table is the only element that the scan kept: tag, "OV", two reserved bytes,
     * 32-bit length, value. */
    const size_t header = 12;
    if (!rc && scan->kept.size > header)
        rc = table_from_bytes(scan->kept.bytes + header, scan->kept.size - header, 8, &extended);
    if (rc)
        rc = scan_error(stream, path, rc, "its pixel data", error);
    else if (!assign_frames(stream->fd, &basic, &extended, fragments))
        rc = error_set_files(error, -EBADMSG, CODE_PIXELS_UNDECODABLE, path, NULL,
                             "%s has %d fragments of pixel data for %d frames, and no offset table "
                             "or markers that assign them.",
                             text_base_name(path), fragments->count, frame_count);
    free(basic.offsets);
    free(extended.offsets);
    return rc;
}

void
fragments_release(struct fragments *fragments)
{
    free(fragments->list);
    free(fragments->first);
    memset(fragments, 0, sizeof(*fragments));
}

size_t
fragments_frame_size(const struct fragments *fragments, int32_t frame)
{
    size_t size = 0;
    for (int32_t i = fragments->first[frame]; i < fragments->first[frame + 1]; i++)
        size += fragments->list[i].length;
    return size;
}

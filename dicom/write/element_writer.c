#include "dicom/write/element_writer.h"
#include "dicom/value/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    ITEM_TAG = 0xFFFEE000,
    ITEM_HEAD = 8,
    SMALLEST_BUFFER = 4096,
};

void
element_buffer_free(struct element_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct element_buffer){0};
}

/* Returns space for `size` more bytes, or NULL with the error recorded. */
static uint8_t *
element_grow(struct element_buffer *buffer, size_t size)
{
    if (buffer->error)
        return NULL;
    if (buffer->capacity - buffer->size < size) {
        size_t capacity = buffer->capacity ? buffer->capacity : SMALLEST_BUFFER;
        while (capacity - buffer->size < size) {
            if (capacity > SIZE_MAX / 2) {
                buffer->error = -ENOMEM;
                return NULL;
            }
            capacity *= 2;
        }
        uint8_t *bytes = realloc(buffer->bytes, capacity);
        if (!bytes) {
            buffer->error = -ENOMEM;
            return NULL;
        }
        buffer->bytes = bytes;
        buffer->capacity = capacity;
    }
    uint8_t *place = buffer->bytes + buffer->size;
    buffer->size += size;
    return place;
}

/* Least significant byte first. */
static void
element_put(uint8_t *place, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        place[i] = (uint8_t)(value >> 8 * i);
}

/* Swaps the halves: the group is written first. */
static uint32_t
element_tag(uint32_t tag)
{
    return tag >> 16 | tag << 16;
}

void
element_append(struct element_buffer *buffer, const void *bytes, size_t size)
{
    if (size == 0)
        return;
    uint8_t *place = element_grow(buffer, size);
    if (place)
        memcpy(place, bytes, size);
}

static void
element_append_number(struct element_buffer *buffer, uint64_t value, int size)
{
    uint8_t *place = element_grow(buffer, (size_t)size);
    if (place)
        element_put(place, value, size);
}

void
element_fail(struct element_buffer *buffer, int rc)
{
    if (!buffer->error)
        buffer->error = rc;
}

void
element_header(struct element_buffer *buffer, uint32_t tag, const char vr[2], uint32_t length)
{
    const bool is_long = value_vr_form(vr) == VALUE_VR_LONG;
    uint8_t head[12];
    if (buffer->implicit) {
        element_append_number(buffer, (uint64_t)length << 32 | element_tag(tag), ITEM_HEAD);
        return;
    }
    if (!is_long && length > UINT16_MAX) {
        element_fail(buffer, -EMSGSIZE);
        return;
    }
    element_put(head, element_tag(tag), 4);
    memcpy(head + 4, vr, 2);
    element_put(head + 6, is_long ? (uint64_t)length << 16 : length, 6);
    element_append(buffer, head, is_long ? 12 : 8);
}

void
element_item_header(struct element_buffer *buffer, uint32_t length)
{
    element_append_number(buffer, (uint64_t)length << 32 | element_tag(ITEM_TAG), ITEM_HEAD);
}

static uint32_t
element_get(const uint8_t *place, int size)
{
    uint32_t value = 0;
    for (int i = 0; i < size; i++)
        value |= (uint32_t)place[i] << 8 * i;
    return value;
}

/* Appends the elements in `bytes`, or the items of a sequence. */
static void
element_append_all(struct element_buffer *buffer, const uint8_t *bytes, size_t size, bool items)
{
    while (size >= ITEM_HEAD) {
        const uint32_t tag = element_tag(element_get(bytes, 4));
        const char *vr = items ? "  " : (const char *)bytes + 4;
        const bool is_long = !items && value_vr_form(vr) == VALUE_VR_LONG;
        const size_t head = is_long ? 12 : ITEM_HEAD;
        const size_t length = size < head ? SIZE_MAX
                              : items     ? element_get(bytes + 4, 4)
                              : is_long   ? element_get(bytes + 8, 4)
                                          : element_get(bytes + 6, 2);
        if (length > size - head) {
            element_fail(buffer, -EMSGSIZE);
            return;
        }
        const bool sequence = memcmp(vr, "SQ", 2) == 0;
        if (items || sequence) {
            const size_t mark = items ? element_open_item(buffer) : element_open_sequence(buffer, tag);
            element_append_all(buffer, bytes + head, length, sequence);
            element_close(buffer, mark);
        } else {
            element_header(buffer, tag, vr, (uint32_t)length);
            element_append(buffer, bytes + head, length);
        }
        bytes += head + length;
        size -= head + length;
    }
}

void
element_append_explicit(struct element_buffer *buffer, const uint8_t *bytes, size_t size)
{
    if (buffer->implicit)
        element_append_all(buffer, bytes, size, false);
    else
        element_append(buffer, bytes, size);
}

void
element_text(struct element_buffer *buffer, uint32_t tag, const char vr[2], const char *text)
{
    size_t size = strlen(text);
    if (size >= UINT32_MAX - 1) {
        element_fail(buffer, -EMSGSIZE);
        return;
    }
    element_header(buffer, tag, vr, (uint32_t)(size + size % 2));
    element_append(buffer, text, size);
    if (size % 2)
        element_append(buffer, memcmp(vr, "UI", 2) == 0 ? "" : " ", 1);
}

void
element_texts(struct element_buffer *buffer, const struct element_row *rows)
{
    for (; rows->tag; rows++)
        element_text(buffer, rows->tag, rows->vr, rows->text);
}

void
element_us(struct element_buffer *buffer, uint32_t tag, const uint16_t *values, size_t count)
{
    element_header(buffer, tag, "US", (uint32_t)(2 * count));
    for (size_t i = 0; i < count; i++)
        element_append_number(buffer, values[i], 2);
}

void
element_ul(struct element_buffer *buffer, uint32_t tag, const uint32_t *values, size_t count)
{
    element_header(buffer, tag, "UL", (uint32_t)(4 * count));
    for (size_t i = 0; i < count; i++)
        element_append_number(buffer, values[i], 4);
}

void
element_fd(struct element_buffer *buffer, uint32_t tag, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    element_header(buffer, tag, "FD", 8);
    element_append_number(buffer, bits, 8);
}

void
element_fl(struct element_buffer *buffer, uint32_t tag, const double *values, size_t count)
{
    element_header(buffer, tag, "FL", (uint32_t)(4 * count));
    for (size_t i = 0; i < count; i++) {
        const float value = (float)values[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof(bits));
        element_append_number(buffer, bits, 4);
    }
}

void
element_at(struct element_buffer *buffer, uint32_t tag, uint32_t value)
{
    element_header(buffer, tag, "AT", 4);
    element_append_number(buffer, element_tag(value), 4);
}

size_t
element_open_sequence(struct element_buffer *buffer, uint32_t tag)
{
    element_header(buffer, tag, "SQ", 0);
    return buffer->size;
}

size_t
element_open_item(struct element_buffer *buffer)
{
    element_item_header(buffer, 0);
    return buffer->size;
}

void
element_close(struct element_buffer *buffer, size_t mark)
{
    if (buffer->error)
        return;
    size_t length = buffer->size - mark;
    if (length >= UINT32_MAX) {
        buffer->error = -EMSGSIZE;
        return;
    }
    element_put(buffer->bytes + mark - 4, length, 4);
}

size_t
element_open_only_item(struct element_buffer *buffer, uint32_t tag)
{
    element_open_sequence(buffer, tag);
    return element_open_item(buffer);
}

void
element_close_only_item(struct element_buffer *buffer, size_t mark)
{
    element_close(buffer, mark);
    element_close(buffer, mark - ITEM_HEAD);
}

void
element_only_texts(struct element_buffer *buffer, uint32_t tag, const struct element_row *rows)
{
    size_t item = element_open_only_item(buffer, tag);
    element_texts(buffer, rows);
    element_close_only_item(buffer, item);
}

/*
 * proto.c - frames and fields in byte buffers; see proto.h for the format.
 *
 * No I/O and no state. Lengths from a peer must be checked against the available bytes before use.
 */
#include "service/common/wire/proto.h"

#include "base/array.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_BYTES 4u

static void
store_le(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t
load_le(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* ---------------------------------------------------------------------------- writing ------ */

/* Reserves the next `size` bytes. Returns NULL after an error, which is kept. */
static uint8_t *
claim(struct proto_writer *writer, size_t size)
{
    if (writer->error)
        return NULL;
    if (size > LENGTH_BYTES + PROTO_MAX_FRAME - writer->size) {
        writer->error = -EMSGSIZE;
        return NULL;
    }
    uint8_t *grown = array_grow(writer->bytes, &writer->capacity, writer->size + size, 1);
    if (!grown) {
        writer->error = -ENOMEM;
        return NULL;
    }
    writer->bytes = grown;
    uint8_t *at = grown + writer->size;
    writer->size += size;
    return at;
}

void
proto_start(struct proto_writer *writer, enum proto_type type)
{
    *writer = (struct proto_writer){.type = type};
    uint8_t *at = claim(writer, PROTO_HEADER);
    if (at) {
        store_le(at, 0, LENGTH_BYTES);
        store_le(at + LENGTH_BYTES, (uint64_t)type, PROTO_HEADER - LENGTH_BYTES);
    }
}

void
proto_copy(struct proto_writer *writer, const struct proto_reader *reader)
{
    proto_start(writer, reader->type);
    const size_t size = reader->size - PROTO_HEADER;
    uint8_t *at = claim(writer, size);
    if (at && size)
        memcpy(at, reader->bytes + PROTO_HEADER, size);
}

void
proto_put_i64(struct proto_writer *writer, int64_t value)
{
    uint8_t *at = claim(writer, sizeof value);
    if (at)
        store_le(at, (uint64_t)value, sizeof value);
}

void
proto_put_f64(struct proto_writer *writer, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    proto_put_i64(writer, bits);
}

void
proto_put_str(struct proto_writer *writer, const char *value)
{
    size_t length = value ? strlen(value) : 0;
    uint8_t *at = claim(writer, LENGTH_BYTES + length);
    if (!at)
        return;
    store_le(at, length, LENGTH_BYTES);
    if (length)
        memcpy(at + LENGTH_BYTES, value, length);
}

void
proto_put_count(struct proto_writer *writer)
{
    writer->count_at = writer->size;
    proto_put_i64(writer, 0);
}

void
proto_count_row(struct proto_writer *writer)
{
    if (writer->error)
        return;
    uint8_t *at = writer->bytes + writer->count_at;
    store_le(at, load_le(at, sizeof(int64_t)) + 1, sizeof(int64_t));
}

int
proto_finish(struct proto_writer *writer)
{
    if (writer->error)
        return writer->error;
    store_le(writer->bytes, writer->size - LENGTH_BYTES, LENGTH_BYTES);
    return 0;
}

void
proto_release(struct proto_writer *writer)
{
    free(writer->bytes);
    *writer = (struct proto_writer){0};
}

/* ---------------------------------------------------------------------------- reading ------ */

/* Returns the next `size` bytes of the frame. If they are missing, keeps the error and returns NULL. */
static uint8_t *
proto_take(struct proto_reader *reader, size_t size)
{
    if (reader->error)
        return NULL;
    if (size > reader->size - reader->at) {
        reader->error = -EBADMSG;
        return NULL;
    }
    uint8_t *at = reader->bytes + reader->at;
    reader->at += size;
    return at;
}

int64_t
proto_get_i64(struct proto_reader *reader)
{
    const uint8_t *at = proto_take(reader, sizeof(int64_t));
    return at ? (int64_t)load_le(at, sizeof(int64_t)) : 0;
}

double
proto_get_f64(struct proto_reader *reader)
{
    const int64_t bits = proto_get_i64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns the next string's bytes without a NUL. If it is invalid, keeps the error and returns NULL. */
static uint8_t *
take_text(struct proto_reader *reader, size_t *length)
{
    const uint8_t *prefix = proto_take(reader, LENGTH_BYTES);
    *length = prefix ? (size_t)load_le(prefix, LENGTH_BYTES) : 0;
    uint8_t *text = proto_take(reader, *length);
    if (!text || !memchr(text, 0, *length))
        return text;
    reader->error = -EBADMSG;
    return NULL;
}

const char *
proto_get_str(struct proto_reader *reader)
{
    size_t length;
    uint8_t *text = take_text(reader, &length);
    if (!text)
        return "";
    /* The length is no longer needed. Moving the text over it makes room for the NUL. */
    uint8_t *prefix = text - LENGTH_BYTES;
    memmove(prefix, text, length);
    prefix[length] = 0;
    return (const char *)prefix;
}

void
proto_skip_str(struct proto_reader *reader)
{
    size_t length;
    take_text(reader, &length);
}

enum code
proto_get_code(struct proto_reader *reader)
{
    char name[CODE_NAME_SIZE] = "";
    size_t length;
    const uint8_t *text = take_text(reader, &length);
    if (text && length < sizeof name)
        memcpy(name, text, length);
    enum code code = code_find(name);
    if (text && code == CODE_NONE && length > 0)
        reader->error = -EBADMSG;
    return code;
}

int
proto_end(struct proto_reader *reader)
{
    if (!reader->error && reader->at != reader->size)
        reader->error = -EBADMSG;
    return reader->error;
}

/* ----------------------------------------------------------------------------- stream ------ */

int
proto_feed(struct proto_stream *stream, const void *bytes, size_t size)
{
    if (stream->consumed) {
        memmove(stream->bytes, stream->bytes + stream->consumed, stream->size - stream->consumed);
        stream->size -= stream->consumed;
        stream->consumed = 0;
    }
    if (size == 0)
        return 0;
    uint8_t *grown = array_grow(stream->bytes, &stream->capacity, stream->size + size, 1);
    if (!grown)
        return -ENOMEM;
    stream->bytes = grown;
    memcpy(grown + stream->size, bytes, size);
    stream->size += size;
    return 0;
}

int
proto_next(struct proto_stream *stream, struct proto_reader *reader)
{
    size_t there = stream->size - stream->consumed;
    if (there < LENGTH_BYTES)
        return 0;
    uint8_t *frame = stream->bytes + stream->consumed;
    size_t length = (size_t)load_le(frame, LENGTH_BYTES);
    if (length < PROTO_HEADER - LENGTH_BYTES || length > PROTO_MAX_FRAME)
        return -EBADMSG;
    if (there - LENGTH_BYTES < length)
        return 0;
    *reader = (struct proto_reader){
        .bytes = frame,
        .size = LENGTH_BYTES + length,
        .at = PROTO_HEADER,
        .type = (enum proto_type)load_le(frame + LENGTH_BYTES, PROTO_HEADER - LENGTH_BYTES),
    };
    stream->consumed += LENGTH_BYTES + length;
    return 1;
}

void
proto_stream_release(struct proto_stream *stream)
{
    free(stream->bytes);
    *stream = (struct proto_stream){0};
}

/* --------------------------------------------------------------------------- build id ------ */

#define NOTE_ALIGN(size) (((size) + 3u) & ~(size_t)3u)

struct build_id {
    char text[2 * 64 + 1];
};

static bool
note_to_build_id(const uint8_t *note, size_t size, struct build_id *id)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, note, sizeof head);
        size_t name_at = sizeof head;
        size_t text_at = name_at + NOTE_ALIGN(head.n_namesz);
        size_t next = text_at + NOTE_ALIGN(head.n_descsz);
        if (next > size)
            return false;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(note + name_at, "GNU", 4) == 0 &&
            head.n_descsz <= 64) {
            for (size_t i = 0; i < head.n_descsz; i++)
                snprintf(id->text + 2 * i, 3, "%02x", note[text_at + i]);
            return head.n_descsz > 0;
        }
        note += next;
        size -= next;
    }
    return false;
}

/* The first object in the list is the program itself; its libraries do not matter. */
static int
find_build_id(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *head = &info->dlpi_phdr[i];
        if (head->p_type == PT_NOTE &&
            note_to_build_id((const uint8_t *)(info->dlpi_addr + head->p_vaddr), head->p_memsz, context))
            return 1;
    }
    return -1;
}

const char *
proto_build_id(void)
{
    static struct build_id id;
    if (!id.text[0] && dl_iterate_phdr(find_build_id, &id) != 1)
        snprintf(id.text, sizeof id.text, "%s", NOCTULE_VERSION);
    return id.text;
}

/*
 * fuzz_proto.c - any bytes as the input of a pipe, in pieces; the first byte sets their size. Every frame must be cut
 * and read as the message of its type, without a read beyond it. Writing the message again must give the same bytes.
 */
#include "service/common/wire/messages.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FIELDS 32

union field {
    int64_t i;
    double f;
    const char *s;
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Reads every byte of the strings, so that a sanitizer detects a wrong end. */
static void
touch(const struct proto_reader *reader, const char *fields, const union field *values)
{
    const char *const begin = (const char *)reader->bytes, *const end = begin + reader->size;
    for (; *fields; fields++, values++) {
        if (*fields == 's' && (values->s < begin || values->s + strlen(values->s) >= end))
            abort();
    }
}

static void
read_message(struct proto_reader *reader, const struct message *message)
{
    union field values[MOST_FIELDS];
    uint8_t *const frame = malloc(reader->size);
    memcpy(frame, reader->bytes, reader->size);
    if (strlen(message->fields) > MOST_FIELDS || message_read(reader, message->type, values) != 0) {
        free(frame);
        return;
    }
    struct proto_writer writer;
    touch(reader, message->fields, values);
    message_write(&writer, message->type, values);
    while (message->row && message_next(reader, message->type, values)) {
        touch(reader, message->row, values);
        message_add(&writer, message->type, values);
    }
    if (proto_finish(&writer) != 0 || writer.size != reader->size || memcmp(writer.bytes, frame, writer.size) != 0)
        abort();
    proto_release(&writer);
    free(frame);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct proto_stream stream = {0};
    size_t piece = size ? 1u + bytes[0] : 1;
    int status = 0;
    for (size_t at = 1; at < size && status >= 0; at += piece) {
        struct proto_reader reader;
        if (proto_feed(&stream, bytes + at, size - at < piece ? size - at : piece))
            abort();
        while ((status = proto_next(&stream, &reader)) == 1) {
            const struct message *message = message_find(reader.type);
            if (message)
                read_message(&reader, message);
        }
    }
    proto_stream_release(&stream);
    return 0;
}

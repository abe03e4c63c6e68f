/*
 * fuzz_proto.c - any bytes as they may come over a pipe, in pieces: every frame is cut and read as
 * each message is, and nothing is read beyond it.
 *
 * The first byte says how large the pieces are.
 */
#include "service/common/proto.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What the fields of a message are, as letters; a group in brackets comes as often as the number
 * before it says. */
static const char *
fields_of(enum proto_type type)
{
    switch (type) {
    case PROTO_HELLO:
        return "ss";
    case PROTO_RUN:
        return "is";
    case PROTO_PROGRESS:
        return "isf";
    case PROTO_DONE:
        return "iissssifffffiiissi(sssssii)";
    case PROTO_DEVICES:
        return "i(issi)";
    case PROTO_FEATURES:
        return "ii(isssssfsssssifiiiffs)";
    case PROTO_HISTOGRAM:
        return "iisssi(i)";
    case PROTO_ARRIVED:
        return "issssssssssssiii";
    case PROTO_QUARANTINED:
        return "isssss";
    case PROTO_INSPECT:
        return "iifi(s)";
    case PROTO_INSPECTED:
        return "iii(siiiifssss)";
    case PROTO_DEVICE_LOST:
    case PROTO_PAUSE:
    case PROTO_RELOAD:
    case PROTO_COMPLETE:
        return "s";
    case PROTO_STOP_JOB:
    case PROTO_STORED:
    case PROTO_RETRY:
    case PROTO_CANCEL:
        return "i";
    case PROTO_ANSWER:
        return "is";
    case PROTO_RESEND:
        return "iisi";
    case PROTO_COMMITTED:
        return "isi(sii)";
    case PROTO_DELIVER:
        return "issss";
    case PROTO_DELIVERED:
        return "iiissis";
    case PROTO_ALIVE:
    case PROTO_RESUME:
    case PROTO_DRAIN:
    case PROTO_PING:
        return "";
    }
    return "isfisfis";
}

/* Touches every byte of the string, so that a sanitizer sees where it ends. */
static void
touch(const struct proto_reader *reader, const char *text)
{
    size_t length = strlen(text);
    if (*text && (text < (const char *)reader->bytes ||
                  text + length >= (const char *)reader->bytes + reader->size))
        abort();
}

static int64_t
read_field(struct proto_reader *reader, char kind)
{
    if (kind == 's')
        touch(reader, proto_get_str(reader));
    else if (kind == 'f')
        proto_get_f64(reader);
    else
        return proto_get_i64(reader);
    return 0;
}

static void
read_message(struct proto_reader *reader)
{
    int64_t last = 0;
    const char *fields = fields_of(reader->type);
    for (; *fields && *fields != '('; fields++)
        last = read_field(reader, *fields);
    for (int64_t i = 0; *fields && i < last && !reader->error; i++) {
        for (const char *field = fields + 1; *field != ')'; field++)
            read_field(reader, *field);
    }
    if (proto_end(reader) == 0 && reader->at != reader->size)
        abort();
    if (!*proto_type_name(reader->type))
        abort();
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
        while ((status = proto_next(&stream, &reader)) == 1)
            read_message(&reader);
    }
    proto_stream_release(&stream);
    return 0;
}

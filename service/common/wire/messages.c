/* messages.c - see messages.h. Each field of a message struct takes one word. */
#include "service/common/wire/messages.h"

#include "service/common/file_ops.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

union word {
    int64_t i;
    double f;
    const char *s;
    enum code c;
};

/* By number. Two messages with the same number do not compile (-Woverride-init). */
static const struct message messages[] = {
#define I64(name)  "i"
#define F64(name)  "f"
#define STR(name)  "s"
#define CODE(name) "c"
#define NOTHING
#define MESSAGE(NAME, name, number, from, to, fields) [number] = {PROTO_##NAME, #NAME, #from, #to, "" fields, NULL},
#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                                    \
    [number] = {PROTO_##NAME, #NAME, #from, #to, "" fields, "" row_fields},
#include "service/common/wire/messages.def"
};

#define I64(name)  "i"
#define F64(name)  "f"
#define STR(name)  "s"
#define CODE(name) "c"
#define NOTHING
#define MESSAGE(NAME, name, number, from, to, fields)                                                                  \
    _Static_assert(sizeof(struct message_##name) == sizeof(union word) * (sizeof("" fields) - 1), #name);
#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                                    \
    MESSAGE(NAME, name, number, from, to, fields)                                                                      \
    MESSAGE(NAME, row, number, from, to, row_fields)
#include "service/common/wire/messages.def"

const struct message *
message_find(enum proto_type type)
{
    const size_t number = (size_t)type;
    return number < sizeof messages / sizeof *messages && messages[number].name ? &messages[number] : NULL;
}

bool
message_is_measurement(enum proto_type type)
{
    return type == PROTO_FEATURES || type == PROTO_HISTOGRAM || type == PROTO_SEGMENTS || type == PROTO_BREACHES;
}

const char *
message_name(enum proto_type type)
{
    const struct message *message = message_find(type);
    return message ? message->name : "UNKNOWN";
}

void
message_dialect(char dialect[MESSAGE_DIALECT])
{
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        const struct message *message = &messages[i];
        const int64_t number = message->type;
        if (!message->name)
            continue;
        const char *const texts[] = {message->name, message->fields, message->row};
        key = file_digest(key, &number, sizeof number);
        for (size_t text = 0; text < sizeof texts / sizeof *texts; text++)
            key = file_digest(key, texts[text] ? texts[text] : "", texts[text] ? strlen(texts[text]) + 1 : 1);
    }
    snprintf(dialect, MESSAGE_DIALECT, NOCTULE_VERSION "/%016" PRIx64, key);
}

/* ---------------------------------------------------------------------------- writing ------ */

static void
put_fields(struct proto_writer *writer, const char *fields, const union word *word)
{
    for (; *fields; fields++, word++) {
        if (*fields == 's')
            proto_put_str(writer, word->s);
        else if (*fields == 'c')
            proto_put_str(writer, code_name(word->c));
        else if (*fields == 'f')
            proto_put_f64(writer, word->f);
        else
            proto_put_i64(writer, word->i);
    }
}

void
message_write(struct proto_writer *writer, enum proto_type type, const void *message)
{
    const struct message *known = message_find(type);
    proto_start(writer, type);
    put_fields(writer, known->fields, message);
    if (known->row)
        proto_put_count(writer);
}

void
message_add(struct proto_writer *writer, enum proto_type type, const void *row)
{
    put_fields(writer, message_find(type)->row, row);
    proto_count_row(writer);
}

/* ---------------------------------------------------------------------------- reading ------ */

static void
get_fields(struct proto_reader *reader, const char *fields, union word *word)
{
    for (; *fields; fields++, word++) {
        if (*fields == 's')
            word->s = proto_get_str(reader);
        else if (*fields == 'c')
            word->c = proto_get_code(reader);
        else if (*fields == 'f')
            word->f = proto_get_f64(reader);
        else
            word->i = proto_get_i64(reader);
    }
}

int
message_read(struct proto_reader *reader, enum proto_type type, void *message)
{
    const struct message *known = message_find(type);
    if (reader->type != type && !reader->error)
        reader->error = -EBADMSG;
    get_fields(reader, known->fields, message);
    if (!known->row)
        return proto_end(reader);
    /* Check all rows, so that reading them later cannot fail. The count must not be trusted beyond
     * the bytes of the frame. */
    int64_t count = proto_get_i64(reader);
    if (count < 0)
        reader->error = -EBADMSG;
    reader->rows = count;
    reader->rows_at = reader->at;
    for (int64_t i = 0; i < count && !reader->error; i++) {
        for (const char *field = known->row; *field; field++) {
            if (*field == 's')
                proto_skip_str(reader);
            else if (*field == 'c')
                proto_get_code(reader);
            else
                proto_get_i64(reader); /* a double has the same size */
        }
    }
    return proto_end(reader);
}

bool
message_next(struct proto_reader *reader, enum proto_type type, void *row)
{
    if (reader->error || reader->rows == 0)
        return false;
    struct proto_reader at_row = *reader;
    at_row.at = reader->rows_at;
    get_fields(&at_row, message_find(type)->row, row);
    reader->rows_at = at_row.at;
    reader->rows--;
    return true;
}

void *
message_keep(struct proto_reader *reader, enum proto_type type, void *message)
{
    uint8_t *copy = malloc(reader->size);
    if (!copy)
        return NULL;
    memcpy(copy, reader->bytes, reader->size);
    union word *word = message;
    for (const char *field = message_find(type)->fields; *field; field++, word++) {
        if (*field == 's')
            word->s = (const char *)copy + (word->s - (const char *)reader->bytes);
    }
    reader->bytes = copy;
    return copy;
}

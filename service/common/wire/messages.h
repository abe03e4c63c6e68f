/*
 * messages.h - the messages of messages.def as structs. A message is read completely or not at all,
 * and written in one call.
 *
 *     struct message_run run;
 *     if (message_read_run(reader, &run))      kept in the reader: another or an invalid message
 *         return;
 *
 *     const struct message_done done = {.job = job, .verdict = PROTO_VERDICT_DONE};
 *     message_write_done(&writer, &done);
 *     message_add_result(&writer, &result);    once per row
 *
 *     message_read_done(reader, &done);        checks all rows: reader->rows of them
 *     while (message_next_result(reader, &result))
 *         ...
 *
 * Strings are never NULL after reading. They point into the frame and are valid as long as its
 * bytes are. NULL is written as "". For messages without fields use proto_start and proto_end.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_MESSAGES_H
#define NOCTULE_SERVICE_COMMON_WIRE_MESSAGES_H

#include "service/common/wire/proto.h"

#define I64(name)  int64_t name;
#define F64(name)  double name;
#define STR(name)  const char *name;
#define CODE(name) _Alignas(int64_t) enum code name;
#define NOTHING
#define MESSAGE(NAME, name, number, from, to, fields)                                                                  \
    struct message_##name {                                                                                            \
        fields                                                                                                         \
    };
#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                                    \
    MESSAGE(NAME, name, number, from, to, fields)                                                                      \
    MESSAGE(NAME, row, number, from, to, row_fields)
#include "service/common/wire/messages.def"

/* Large enough for any message. */
union message_any {
#define MESSAGE(NAME, name, number, from, to, fields)               struct message_##name name;
#define LIST(NAME, name, number, from, to, fields, row, row_fields) struct message_##name name;
#include "service/common/wire/messages.def"
};

/* Description of a type. The letters of the fields are i, f, s and c. */
struct message {
    enum proto_type type;
    const char *name, *from, *to;
    const char *fields;
    const char *row; /* NULL: no rows */
};

/* Returns NULL if the number is unknown, as from an invalid frame. */
const struct message *message_find(enum proto_type type);
/* Returns the name for logs, such as "RUN"; "UNKNOWN" if there is none. */
const char *message_name(enum proto_type type);

#define MESSAGE_DIALECT 48

/* Returns whether a frame holds measurements of a job, which precede its DONE: FEATURES, HISTOGRAM,
 * SEGMENTS, BREACHES. Each of them begins with the job. */
bool message_is_measurement(enum proto_type type);

/* Writes the dialect, which the writer and the reader of a file of frames must share: the version, and a digest of all
 * types with their fields. Between a daemon and its children proto_build_id is stricter. */
void message_dialect(char dialect[MESSAGE_DIALECT]);

/* Write by type, for the typed functions below and for tests that cover all types. */
void message_write(struct proto_writer *writer, enum proto_type type, const void *message);
void message_add(struct proto_writer *writer, enum proto_type type, const void *row);
/* Returns 0, or -EBADMSG, which the reader keeps. */
int message_read(struct proto_reader *reader, enum proto_type type, void *message);
/* Reads the next row. Returns false at the end. */
bool message_next(struct proto_reader *reader, enum proto_type type, void *row);
/* Copies the frame after message_read, so that the message's strings and its unread rows outlive
 * it. Returns the memory, which the caller must free, or NULL if memory is short. */
void *message_keep(struct proto_reader *reader, enum proto_type type, void *message);

#define MESSAGE(NAME, name, number, from, to, fields)                                                                  \
    static inline void message_write_##name(struct proto_writer *writer, const struct message_##name *message)         \
    {                                                                                                                  \
        message_write(writer, PROTO_##NAME, message);                                                                  \
    }                                                                                                                  \
    static inline int message_read_##name(struct proto_reader *reader, struct message_##name *message)                 \
    {                                                                                                                  \
        return message_read(reader, PROTO_##NAME, message);                                                            \
    }                                                                                                                  \
    static inline void *message_keep_##name(struct proto_reader *reader, struct message_##name *message)               \
    {                                                                                                                  \
        return message_keep(reader, PROTO_##NAME, message);                                                            \
    }

#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                                    \
    MESSAGE(NAME, name, number, from, to, fields)                                                                      \
    static inline void message_add_##row(struct proto_writer *writer, const struct message_##row *item)                \
    {                                                                                                                  \
        message_add(writer, PROTO_##NAME, item);                                                                       \
    }                                                                                                                  \
    static inline bool message_next_##row(struct proto_reader *reader, struct message_##row *item)                     \
    {                                                                                                                  \
        return message_next(reader, PROTO_##NAME, item);                                                               \
    }
#include "service/common/wire/messages.def"

#endif

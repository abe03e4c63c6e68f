/*
 * messages.h - the messages of messages.def as structs: read whole or not at all, written in one
 * call.
 *
 *     struct message_run run;
 *     if (message_read_run(reader, &run))      latched in the reader: it was no RUN, or a broken one
 *         return;
 *
 *     const struct message_done done = {.job = job, .verdict = PROTO_VERDICT_DONE};
 *     message_write_done(&writer, &done);
 *     message_add_result(&writer, &result);    as often as there are rows
 *
 *     message_read_done(reader, &done);        all rows have been checked: reader->rows of them
 *     while (message_next_result(reader, &result))
 *         ...
 *
 * Strings are never NULL once read; they point into the frame, and are valid as long as its bytes
 * are. A NULL is written as "". Messages without fields need proto_start and proto_end only.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_MESSAGES_H
#define NOCTULE_SERVICE_COMMON_WIRE_MESSAGES_H

#include "service/common/wire/proto.h"

#define I64(name)  int64_t name;
#define F64(name)  double name;
#define STR(name)  const char *name;
#define CODE(name) _Alignas(int64_t) enum code name;
#define NOTHING
#define MESSAGE(NAME, name, number, from, to, fields)                                              \
    struct message_##name {                                                                        \
        fields                                                                                     \
    };
#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                \
    MESSAGE(NAME, name, number, from, to, fields)                                                  \
    MESSAGE(NAME, row, number, from, to, row_fields)
#include "service/common/wire/messages.def"

/* Any of them. */
union message_any {
#define MESSAGE(NAME, name, number, from, to, fields)               struct message_##name name;
#define LIST(NAME, name, number, from, to, fields, row, row_fields) struct message_##name name;
#include "service/common/wire/messages.def"
};

/* What is known of a type. Fields are letters: i, f, s and c. */
struct message {
    enum proto_type type;
    const char *name, *from, *to;
    const char *fields;
    const char *row; /* NULL: it has no rows */
};

/* NULL: a number that a broken peer sent. */
const struct message *message_find(enum proto_type type);
/* "RUN", for logs; "UNKNOWN". */
const char *message_name(enum proto_type type);

#define MESSAGE_DIALECT 48

/* Returns whether a frame holds measurements of a job, which come before its DONE: FEATURES, HISTOGRAM, SEGMENTS,
 * BREACHES. Each of them begins with the job. */
bool message_is_measurement(enum proto_type type);

/* What both ends of a file of frames have to agree in: the version, and all types with their fields. Between a daemon
 * and its children proto_build_id says more. */
void message_dialect(char dialect[MESSAGE_DIALECT]);

/* For the typed calls below, and for tests that go through all types. */
void message_write(struct proto_writer *writer, enum proto_type type, const void *message);
void message_add(struct proto_writer *writer, enum proto_type type, const void *row);
/* 0, or -EBADMSG, which the reader keeps. */
int message_read(struct proto_reader *reader, enum proto_type type, void *message);
/* Did another row come? */
bool message_next(struct proto_reader *reader, enum proto_type type, void *row);
/* After message_read: the message's strings and the rows still to be read outlive the frame, in
 * memory that the caller frees. NULL: there is none. */
void *message_keep(struct proto_reader *reader, enum proto_type type, void *message);

#define MESSAGE(NAME, name, number, from, to, fields)                                              \
    static inline void message_write_##name(struct proto_writer *writer,                           \
                                            const struct message_##name *message)                  \
    {                                                                                              \
        message_write(writer, PROTO_##NAME, message);                                              \
    }                                                                                              \
    static inline int message_read_##name(struct proto_reader *reader,                             \
                                          struct message_##name *message)                          \
    {                                                                                              \
        return message_read(reader, PROTO_##NAME, message);                                        \
    }                                                                                              \
    static inline void *message_keep_##name(struct proto_reader *reader,                           \
                                            struct message_##name *message)                        \
    {                                                                                              \
        return message_keep(reader, PROTO_##NAME, message);                                        \
    }

#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                \
    MESSAGE(NAME, name, number, from, to, fields)                                                  \
    static inline void message_add_##row(struct proto_writer *writer,                              \
                                         const struct message_##row *item)                         \
    {                                                                                              \
        message_add(writer, PROTO_##NAME, item);                                                   \
    }                                                                                              \
    static inline bool message_next_##row(struct proto_reader *reader, struct message_##row *item) \
    {                                                                                              \
        return message_next(reader, PROTO_##NAME, item);                                           \
    }
#include "service/common/wire/messages.def"

#endif

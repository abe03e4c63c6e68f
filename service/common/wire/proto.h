/*
 * proto.h - frames between the daemon and its children (fd 3), and between the command line and the
 * daemon.
 *
 * A frame is: uint32 length of what follows, uint16 type, then fields; little endian. Fields are
 * int64, double, and strings (uint32 length, bytes, no NUL inside). Which fields a type has is in
 * messages.def; messages.h reads and writes them as structs, by the calls below. A reader latches
 * the first error; proto_end fails on left-over bytes. Pixels never travel here.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_PROTO_H
#define NOCTULE_SERVICE_COMMON_WIRE_PROTO_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTO_MAX_FRAME (8u << 20) /* a longer one is a broken peer */
#define PROTO_HEADER    6u

/* Of one job, more than a pipeline can ask for; a worker that tells of more breaks the rules. */
#define PROTO_MAX_FEATURES     131072
#define PROTO_MAX_HISTOGRAMS   1024
#define PROTO_MAX_SEGMENTS     1024
#define PROTO_MAX_BREACHES     (16 * PROTO_MAX_SEGMENTS)
#define PROTO_MAX_MEASUREMENTS (128u << 20) /* bytes of the frames that tell them */
#define PROTO_HISTOGRAM_ROWS   256          /* counts of a pattern */

enum proto_type {

#define MESSAGE(NAME, name, number, from, to, fields)               PROTO_##NAME = (number),
#define LIST(NAME, name, number, from, to, fields, row, row_fields) PROTO_##NAME = (number),
#include "service/common/wire/messages.def"
};

enum proto_verdict {
    PROTO_VERDICT_DONE,   /* results are in place (or empty = 1) */
    PROTO_VERDICT_RETRY,  /* not this input's fault: disk full, memory */
    PROTO_VERDICT_REJECT, /* this input can never work */
    PROTO_VERDICT_STOPPED /* because it was told to */
};

enum proto_delivery {
    PROTO_DELIVERY_SENT,      /* the peer has it (a warning status included) */
    PROTO_DELIVERY_TRANSIENT, /* may work later: unreachable, busy, out of resources */
    PROTO_DELIVERY_PERMANENT, /* this peer will never take this instance as it is */
    PROTO_DELIVERY_RETURNED   /* not tried: the courier is draining */
};

enum proto_commitment {
    PROTO_COMMITMENT_NONE,      /* not asked for */
    PROTO_COMMITMENT_REQUESTED, /* asked for; the report is told by COMMITTED */
    PROTO_COMMITMENT_REFUSED    /* asked for, and none will come: code and message say why */
};

enum proto_pull {
    PROTO_PULL_OK,        /* the peer did what it was asked for */
    PROTO_PULL_TRANSIENT, /* may work later */
    PROTO_PULL_PERMANENT, /* this peer would say the same again */
    PROTO_PULL_RETURNED   /* it was stopped, or not tried */
};

/* A frame being written. Grows by itself; the first failure is latched and told by proto_finish. */
struct proto_writer {
    uint8_t *bytes;
    size_t size, capacity;
    size_t count_at; /* where the number of rows is; 0: a message without rows */
    enum proto_type type;
    int error;
};

void proto_start(struct proto_writer *writer, enum proto_type type);
void proto_put_i64(struct proto_writer *writer, int64_t value);
void proto_put_f64(struct proto_writer *writer, double value);
void proto_put_str(struct proto_writer *writer, const char *value); /* NULL writes "" */
/* The number of rows that follow, which each proto_count_row makes one more. */
void proto_put_count(struct proto_writer *writer);
void proto_count_row(struct proto_writer *writer);
/* Completes the header; 0, -ENOMEM or -EMSGSIZE. The bytes are the writer's until proto_release. */
int proto_finish(struct proto_writer *writer);
void proto_release(struct proto_writer *writer);

/* A complete frame being read. Strings point into the frame and are valid as long as its bytes are.
 */
struct proto_reader {
    uint8_t *bytes; /* writable: strings are ended in place */
    size_t size, at;
    enum proto_type type;
    int error;
    int64_t rows;   /* of the message, not yet read (messages.h) */
    size_t rows_at; /* the next of them */
};

/* A frame that was not read yet, whole, as it is. */
void proto_copy(struct proto_writer *writer, const struct proto_reader *reader);
int64_t proto_get_i64(struct proto_reader *reader);
double proto_get_f64(struct proto_reader *reader);
const char *proto_get_str(struct proto_reader *reader); /* never NULL; "" after an error */
void proto_skip_str(struct proto_reader *reader);       /* as sound as one that is read */
/* A string that names a code or is empty; another comes from a broken peer: all are of one build.
 * May be read again. */
enum code proto_get_code(struct proto_reader *reader);
int proto_end(struct proto_reader *reader); /* 0, or -EBADMSG */

/* Bytes as they come from a pipe, cut into frames. */
struct proto_stream {
    uint8_t *bytes;
    size_t size, capacity, consumed;
};

int proto_feed(struct proto_stream *stream, const void *bytes, size_t size); /* 0 or -ENOMEM */
/* 1 and a frame (valid until the next feed or next), 0 when more bytes are needed, -EBADMSG. */
int proto_next(struct proto_stream *stream, struct proto_reader *reader);
void proto_stream_release(struct proto_stream *stream);

/* Identifies this build; a child with another one is not listened to. */
const char *proto_build_id(void);

#endif

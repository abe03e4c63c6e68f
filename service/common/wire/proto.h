/*
 * proto.h - frames between the daemon and its children (fd 3), and between the command line and the daemon.
 *
 * A frame is: uint32 length of the rest, uint16 type, then the fields; little endian. Fields are int64, double, and
 * strings (uint32 length, bytes, no NUL inside). messages.def lists the fields of each type. messages.h reads and
 * writes them as structs with the functions below. A reader keeps its first error, and proto_end fails if bytes are
 * left. Pixel data must not be sent this way.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_PROTO_H
#define NOCTULE_SERVICE_COMMON_WIRE_PROTO_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define PROTO_MAX_FRAME (8u << 20) /* a longer frame means an invalid peer */
#define PROTO_HEADER    6u

/* Limits per job, above what a pipeline can produce. A worker that exceeds them breaks the protocol. */
#define PROTO_MAX_FEATURES     131072
#define PROTO_MAX_HISTOGRAMS   1024
#define PROTO_MAX_SEGMENTS     1024
#define PROTO_MAX_BREACHES     (40 * PROTO_MAX_SEGMENTS)
#define PROTO_MAX_MEASUREMENTS (128u << 20) /* bytes of the frames with measurements */
#define PROTO_HISTOGRAM_ROWS   256          /* counts of a pattern */

enum proto_type {

#define MESSAGE(NAME, name, number, from, to, fields)               PROTO_##NAME = (number),
#define LIST(NAME, name, number, from, to, fields, row, row_fields) PROTO_##NAME = (number),
#include "service/common/wire/messages.def"
};

enum proto_verdict {
    PROTO_VERDICT_DONE,   /* results are in place (or empty = 1) */
    PROTO_VERDICT_RETRY,  /* not caused by the input: disk full, memory */
    PROTO_VERDICT_REJECT, /* this input can never be processed */
    PROTO_VERDICT_STOPPED /* stopped on request */
};

enum proto_delivery {
    PROTO_DELIVERY_SENT,      /* the peer has it (a warning status included) */
    PROTO_DELIVERY_TRANSIENT, /* may succeed later: unreachable, busy, out of resources */
    PROTO_DELIVERY_PERMANENT, /* this peer will always reject this instance */
    PROTO_DELIVERY_RETURNED   /* not attempted: the child is draining */
};

enum proto_commitment {
    PROTO_COMMITMENT_NONE,      /* not requested */
    PROTO_COMMITMENT_REQUESTED, /* requested; COMMITTED will have the report */
    PROTO_COMMITMENT_REFUSED    /* requested and rejected; code and message have the reason */
};

enum proto_pull {
    PROTO_PULL_OK,        /* the peer completed the request */
    PROTO_PULL_TRANSIENT, /* may succeed later */
    PROTO_PULL_PERMANENT, /* this peer would reject the request again */
    PROTO_PULL_RETURNED   /* stopped or not attempted */
};

/* A frame being written. It grows as needed. The first failure is kept and returned by proto_finish. */
struct proto_writer {
    uint8_t *bytes;
    size_t size, capacity;
    size_t count_at; /* offset of the number of rows; 0: a message without rows */
    enum proto_type type;
    int error;
};

void proto_start(struct proto_writer *writer, enum proto_type type);
void proto_put_i64(struct proto_writer *writer, int64_t value);
void proto_put_f64(struct proto_writer *writer, double value);
void proto_put_str(struct proto_writer *writer, const char *value); /* NULL writes "" */
/* Adds the number of rows that follow, 0 at first. Each proto_count_row adds one. */
void proto_put_count(struct proto_writer *writer);
void proto_count_row(struct proto_writer *writer);
/* Completes the header. Returns 0, -ENOMEM or -EMSGSIZE. The bytes belong to the writer until proto_release. */
int proto_finish(struct proto_writer *writer);
void proto_release(struct proto_writer *writer);

/* A complete frame being read. Strings point into the frame and are valid as long as its bytes are. */
struct proto_reader {
    uint8_t *bytes; /* writable: strings are terminated in place */
    size_t size, at;
    enum proto_type type;
    int error;
    int64_t rows;   /* unread rows of the message (messages.h) */
    size_t rows_at; /* offset of the next row */
};

/* Copies a complete frame that was not read yet. */
void proto_copy(struct proto_writer *writer, const struct proto_reader *reader);
int64_t proto_get_i64(struct proto_reader *reader);
double proto_get_f64(struct proto_reader *reader);
const char *proto_get_str(struct proto_reader *reader); /* never NULL; "" after an error */
void proto_skip_str(struct proto_reader *reader);       /* checks it as proto_get_str does */
/* Reads a string that is "" or names a code. Any other string is an error, since all processes have
 * the same build. Can be read again. */
enum code proto_get_code(struct proto_reader *reader);
int proto_end(struct proto_reader *reader); /* Returns 0 or -EBADMSG */

/* A stream of bytes from a pipe, cut into frames. */
struct proto_stream {
    uint8_t *bytes;
    size_t size, capacity, consumed;
};

/* Returns 0 or -ENOMEM. */
int proto_feed(struct proto_stream *stream, const void *bytes, size_t size);
/* Returns 1 and a frame (valid until the next call of proto_feed or proto_next), 0 if more bytes
 * are needed, or -EBADMSG. */
int proto_next(struct proto_stream *stream, struct proto_reader *reader);
void proto_stream_release(struct proto_stream *stream);

/* Returns the id of this build. A child with another id is ignored. */
const char *proto_build_id(void);

#endif

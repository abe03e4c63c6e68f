/*
 * proto.h - frames between the daemon and its children (fd 3), and between the command line and the
 * daemon.
 *
 * A frame is: uint32 length of what follows, uint16 type, then fields; little endian. Fields are
 * int64, double, and strings (uint32 length, bytes, no NUL inside). Every frame of a type has the
 * same fields in the same order, given beside the type below. A reader latches the first error;
 * proto_end fails on left-over bytes; a handler checks once and acts on complete messages only.
 * Pixels never travel here.
 */
#ifndef NOCTULE_PROTO_H
#define NOCTULE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTO_MAX_FRAME (8u << 20) /* a longer one is a broken peer */
#define PROTO_HEADER    6u

/* Of one job, more than a pipeline can ask for; a worker that tells of more breaks the rules. */
#define PROTO_MAX_FEATURES     131072
#define PROTO_MAX_HISTOGRAMS   1024
#define PROTO_MAX_MEASUREMENTS (128u << 20) /* bytes of the frames that tell them */
#define PROTO_CODES            256          /* counts of a histogram */

enum proto_type {
    /* any child -> daemon, first of all: str role, str build_id */
    PROTO_HELLO = 1,
    /* child -> daemon, at least every watchdog period while it lives: (nothing) */
    PROTO_ALIVE,

    /* daemon -> worker: i64 job, str job_file (a job spec, service/job.h; absolute path) */
    PROTO_RUN = 16,
    /* daemon -> worker: i64 job; it is answered by a DONE like any other */
    PROTO_STOP_JOB,
    /* worker -> daemon: i64 job, str stage, f64 fraction */
    PROTO_PROGRESS,
    /*
     * worker -> daemon: i64 job, i64 verdict (enum proto_verdict), str code, str sentence, str
     * file_a, str file_b, i64 empty, f64 read, f64 compute, f64 write, f64 verify, f64 total
     * seconds, i64 voxels, i64 segmented, i64 peak_bytes, str backend, str note, i64 n, then n
     * times: str kind, str file (name within the job's folder), str sop_class, str sop_instance,
     * str series, i64 size, i64 frames
     */
    PROTO_DONE,
    /* worker -> daemon: str why; its device has failed: it takes no job any more, and leaves when
       those that run have ended */
    PROTO_DEVICE_LOST,
    /* probe -> daemon: i64 n, then n times: i64 index, str uuid, str name, i64 memory_bytes. The
       GPUs of this machine */
    PROTO_DEVICES,
    /*
     * worker -> daemon, before the DONE of a job that ended well: i64 job, i64 n, then n times: i64
     * segment, str label, str family, str name, str meaning, str ibsi_code, f64 value, str reason,
     * str unit, str aggregation, str aggregation_ibsi_code, str discretisation, i64 levels, f64
     * bin_width, i64 distance, i64 symmetric, i64 has_range, f64 low, f64 high, str directions
     * (struct feature). As many frames as it takes; together they hold the features in order. They
     * count once the DONE is there: when the worker dies before, or the job ends otherwise, they
     * are forgotten.
     */
    PROTO_FEATURES,
    /* likewise, one frame each (struct feature_histogram): i64 job, i64 segment, str label, str
       pattern, str settings, i64 n (PROTO_CODES), then n times: i64 count */
    PROTO_HISTOGRAM,

    /*
     * intake -> daemon: i64 token, str sop_instance, str sop_class, str transfer_syntax, str
     * series, str study, str modality, str body_part, str series_description, str path (relative to
     * the root), str source, str called_ae, str sender (the calling AE title; both "" for what did
     * not come over the network), i64 size, i64 frames, i64 expected
     */
    PROTO_ARRIVED = 32,
    /* intake -> daemon: i64 token, str path (relative), str original, str series, str code, str
       sentence */
    PROTO_QUARANTINED,
    /* daemon -> intake: i64 token; the row is on disk: the original may be moved or deleted, the
       sender may be told */
    PROTO_STORED,
    /* daemon -> intake: i64 series_id, i64 revision, f64 spacing_tolerance, i64 n, n times str path
       (absolute) */
    PROTO_INSPECT,
    /*
     * intake -> daemon: i64 series_id, i64 revision, i64 n, then n times: str name, i64 accepted,
     * i64 planes, i64 columns, i64 rows, f64 spacing, str code, str sentence, str file_a, str
     * file_b
     */
    PROTO_INSPECTED,
    /* daemon -> intake: str why / (nothing); disk low */
    PROTO_PAUSE,
    PROTO_RESUME,
    /* daemon -> any child: str config_file; the new configuration is in force */
    PROTO_RELOAD,
    /* daemon -> any child: finish what is running, give back the rest, exit: (nothing) */
    PROTO_DRAIN,
    /*
     * intake or courier -> daemon: i64 token, str transaction_uid, i64 n, then n times: str
     * sop_instance, i64 ok, i64 failure_reason. A peer's storage commitment report. The intake's
     * is answered by STORED once the rows say so, the courier's (token 0) by nothing.
     */
    PROTO_COMMITTED,

    /* daemon -> courier: i64 delivery, str destination, str file (absolute), str sop_class, str
       sop_instance; answered by one DELIVERED */
    PROTO_DELIVER = 48,
    /*
     * courier -> daemon: i64 delivery, i64 outcome (enum proto_delivery), i64 dimse_status (of the
     * C-STORE; -1: none came), str code, str sentence, i64 commitment (enum proto_commitment), str
     * transaction_uid ("": none was asked for)
     */
    PROTO_DELIVERED,

    /* command line -> daemon: i64 job */
    PROTO_RETRY = 64,
    PROTO_CANCEL,
    /* command line -> daemon: str series_uid */
    PROTO_COMPLETE,
    /* command line -> daemon: (nothing) */
    PROTO_PING,
    /* daemon -> command line: i64 status (0 or -errno), str sentence */
    PROTO_ANSWER,
    /*
     * command line -> daemon: i64 delivery, i64 job, str destination (one of the three is neither 0
     * nor ""), i64 not_arrived (only what failed or is delayed): send it once more
     */
    PROTO_RESEND,
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
    PROTO_COMMITMENT_NONE,     /* not asked for */
    PROTO_COMMITMENT_REQUESTED /* asked for; the report is told by COMMITTED */
};

/* A frame being written. Grows by itself; the first failure is latched and told by proto_finish. */
struct proto_writer {
    uint8_t *bytes;
    size_t size, capacity;
    int error;
};

void proto_start(struct proto_writer *writer, enum proto_type type);
void proto_put_i64(struct proto_writer *writer, int64_t value);
void proto_put_f64(struct proto_writer *writer, double value);
void proto_put_str(struct proto_writer *writer, const char *value); /* NULL writes "" */
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
};

int64_t proto_get_i64(struct proto_reader *reader);
double proto_get_f64(struct proto_reader *reader);
const char *proto_get_str(struct proto_reader *reader); /* never NULL; "" after an error */
int proto_end(struct proto_reader *reader);             /* 0, or -EBADMSG */

/* Bytes as they come from a pipe, cut into frames. */
struct proto_stream {
    uint8_t *bytes;
    size_t size, capacity, consumed;
};

int proto_feed(struct proto_stream *stream, const void *bytes, size_t size); /* 0 or -ENOMEM */
/* 1 and a frame (valid until the next feed or next), 0 when more bytes are needed, -EBADMSG. */
int proto_next(struct proto_stream *stream, struct proto_reader *reader);
void proto_stream_release(struct proto_stream *stream);

/* "RUN", for logs; every value of the enum has one. */
const char *proto_type_name(enum proto_type type);

/* Identifies this build; a child with another one is not listened to. */
const char *proto_build_id(void);

#endif

/*
 * child.h - a child's side of its pipe to the daemon (fd 3). It sends HELLO first and then ALIVE
 * regularly, and handles RELOAD and DRAIN. All other messages are passed to the role. If a child
 * cannot apply a new configuration, it sends RENEW, and a new process replaces it.
 *
 * The child must end when the daemon hangs up. It ignores a daemon that breaks the protocol. All
 * calls must come from the loop's thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_CHILD_H
#define NOCTULE_SERVICE_COMMON_WIRE_CHILD_H

#include "config/config.h"
#include "dicom/net/scp.h"
#include "service/common/confine/confine.h"
#include "service/common/wire/channel.h"
#include "service/common/wire/messages.h"

/* Callbacks may be NULL, except `message`. */
struct child_role {
    const char *name;
    /* The role for confinement; its places follow from the configuration. */
    enum confine_role confined;
    /* Receives any other message. Must read it to its end, or the child fails. */
    void (*message)(void *context, struct proto_reader *reader);
    /* Applies a new configuration and takes ownership of it, also on failure. After a failure the child sends RENEW. */
    int (*reload)(void *context, struct conf *conf, struct error *error);
    /* Called at the first DRAIN. If NULL, the loop is stopped. */
    void (*drain)(void *context);
    /* Called when the daemon hung up or the child failed. If NULL, the loop is stopped. */
    void (*end)(void *context);
};

struct child {
    const struct child_role *role;
    void *context;
    uv_loop_t *loop;
    uv_timer_t alive;
    struct channel *channel;
    bool draining; /* DRAIN was received */
    bool hung_up;  /* the daemon closed the pipe */
    bool failed;   /* the daemon broke the protocol, or a frame could not be sent */
    int error;     /* error of the failure, or 0 */

    uv_work_t check; /* checks the places that are needed (child_check_places) */
    struct places needed;
    const char *missing;
    bool checking, renewing;
};

/* Opens the pipe and sends HELLO. Returns 0 or -errno; on failure there is nothing to close. */
int child_open(struct child *child, uv_loop_t *loop, const struct child_role *role, void *context);
/* Sends a frame. If that fails, the child fails, since the daemon would wait for the frame forever. */
void child_send(struct child *child, struct proto_writer *writer);
/* Checks in the pool whether a folder that the child may access was replaced, or whether `conf` needs a folder that it
 * may not access. If so, sends RENEW. To be called after a reload and after access errors. */
void child_check_places(struct child *child, const struct conf *conf);
/* Ends the child and logs the reason as ROLE.protocol. */
void child_fail(struct child *child, const char *why);
/* Records the failure `error` without ending the child. The caller must end it. */
void child_note_failure(struct child *child, int error);
/* Returns the exit status: EX_TEMPFAIL after a transient failure. */
int child_status(const struct child *child);
/* Returns the exit status of a child that failed to start with `error`, or 0 without an error. */
int child_start_status(int error);
/* Sends the queued frames and closes. The loop must run once more. */
void child_close(struct child *child);

/* Writes the storage commitment report of the peer `ae_title`. If it came on one of our
 * associations, `destination` names that; otherwise it is "". */
void child_write_commitment(struct proto_writer *writer, int64_t token, const char *ae_title, const char *destination,
                            const struct dicom_commitment *commitment);

#endif

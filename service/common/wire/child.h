/*
 * child.h - a child's side of its pipe to the daemon (fd 3): HELLO at first, ALIVE while it lives,
 * RELOAD and DRAIN when they come; everything else is the role's. A child that cannot take over a
 * configuration says RENEW, and its place is taken by one that starts with it.
 *
 * The pipe is the child's life: it ends when the daemon hangs up. A daemon that breaks the rules
 * is not listened to any more. Everything happens on the loop's thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_CHILD_H
#define NOCTULE_SERVICE_COMMON_WIRE_CHILD_H

#include "config/config.h"
#include "service/common/confine/confine.h"
#include "service/common/wire/channel.h"
#include "service/common/wire/messages.h"

/* Callbacks may be NULL, except that of a message. */
struct child_role {
    const char *name;
    enum confine_role confined; /* as what, where it has places that the configuration names */
    /* Any other message: read to its end, or the child fails. */
    void (*message)(void *context, struct proto_reader *reader);
    /* A new configuration, which is the role's from now on, also when it fails: RENEW follows. */
    int (*reload)(void *context, struct conf *conf, struct error *error);
    /* The first DRAIN. NULL: the loop is stopped. */
    void (*drain)(void *context);
    /* The daemon hung up, or the child has failed. NULL: the loop is stopped. */
    void (*end)(void *context);
};

struct child {
    const struct child_role *role;
    void *context;
    uv_loop_t *loop;
    uv_timer_t alive;
    struct channel *channel;
    bool draining; /* DRAIN has come */
    bool hung_up;  /* the daemon is gone */
    bool failed;   /* the daemon broke the rules, or cannot be told something */
    int error;     /* by which it failed; 0: by none */

    uv_work_t look; /* at the places that are needed (child_look) */
    struct places needed;
    const char *lacking;
    bool looking, renewing;
};

/* Says HELLO. 0 or -errno; when it fails there is nothing to close. */
int child_open(struct child *child, uv_loop_t *loop, const struct child_role *role, void *context);
/* Sends a frame, or fails: otherwise the daemon would wait for it for ever. */
void child_send(struct child *child, struct proto_writer *writer);
/* RENEW, with the reason in the log as ROLE.renew: DRAIN follows. */
void child_renew(struct child *child, const char *why);
/*
 * Has somebody put another folder where the child was let in, or does `conf` ask for one to which it was not? Then RENEW.
 * It is looked beside the loop; for after a reload, and after what failed.
 */
void child_look(struct child *child, const struct conf *conf);
/* Ends the child, with the reason in the log as ROLE.protocol. */
void child_fail(struct child *child, const char *why);
/* Fails by `error` without an end, which the caller sees to. */
void child_note_failure(struct child *child, int error);
/* To exit with: EX_TEMPFAIL where it failed for what passes. */
int child_status(const struct child *child);
/* The same, of a child that could not begin; 0: it could. */
int child_start_status(int error);
/* What is queued goes out. The loop has to run once more. */
void child_close(struct child *child);

#endif

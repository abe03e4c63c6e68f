/*
 * sender.h - one destination: a queue, and a thread that works it off.
 *
 * To an AE it keeps one association, used again as long as it proposed what is needed and the
 * destination's idle_seconds have not passed; reports of storage commitment are taken from it at
 * any time. To a folder and by STOW-RS it keeps none (stow.h). A destination that is slow or down holds up no other. All calls are made from one
 * thread (the courier's loop); the events come from the sender's.
 */
#ifndef NOCTULE_SERVICE_SENDER_SENDER_H
#define NOCTULE_SERVICE_SENDER_SENDER_H

#include "config/config.h"
#include "dicom/net/scp.h"
#include "service/common/wire/messages.h"

struct sender;

struct sender_events {
    /* DELIVERED or COMMITTED: takes over what the frame holds. */
    void (*frame)(void *context, struct proto_writer *frame);
    /* After sender_stop: nothing comes any more, and sender_close does not block. */
    void (*ended)(void *context);
    void *context;
};

struct sender_options {
    const struct conf_destination *destination; /* these three outlive the sender */
    const struct conf_dicom *dicom;
    struct dicom_tls *tls; /* NULL: none could be opened */
    struct sender_events events;
};

int sender_open(const struct sender_options *options, struct sender **sender);

/* Answered by exactly one DELIVERED. 0 or -ENOMEM. */
int sender_deliver(struct sender *sender, int64_t delivery, const char *file, const char *sop_class,
                   const char *sop_instance);

/* Finishes what it is at, gives back the rest, and ends. May be called again. */
void sender_stop(struct sender *sender);
bool sender_has_ended(const struct sender *sender);
/* Waits for the end. NULL is allowed. */
void sender_close(struct sender *sender);

#endif

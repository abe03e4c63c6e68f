/*
 * pull_attempt.h - one try of an item of noctule pull, from its FIND to what has arrived, and what becomes of it.
 *
 *     FINDING --FOUND, parts that are not all here--> MOVING --MOVED of the last--> ARRIVING
 *
 *     the archive has nothing of it                       NOT_FOUND
 *     all that it has is stored here, whoever sent it     DONE, also without a MOVE
 *     less is, and the archive was asked PULL_TRIES times PARTIAL; FAILED where nothing is
 *     less is, before                                     WAITING
 *     the archive cannot be reached                       WAITING, the attempt not counted; tried for
 *                                                         delivery.give_up_seconds: FAILED or PARTIAL
 *     it would say no again                               FAILED
 */
#ifndef NOCTULE_SERVICE_DAEMON_PULL_PULL_ATTEMPT_H
#define NOCTULE_SERVICE_DAEMON_PULL_PULL_ATTEMPT_H

#include "db/pull_queue.h"
#include "service/common/wire/messages.h"
#include "service/daemon/attempt.h"

#define PULL_TRIES 3

enum pull_stage { PULL_FINDING, PULL_MOVING, PULL_ARRIVING };

/* How it ended, as far as the daemon is concerned. */
enum pull_end {
    PULL_ALL_HERE,
    PULL_NOTHING_THERE,
    PULL_SHORT,   /* asked, and less came */
    PULL_AWAY,    /* not reached */
    PULL_REFUSED, /* for good */
    PULL_UNTRIED, /* given back */
};

struct pull_attempt {
    struct attempt base;    /* its id is the item's */
    struct queue_pull pull; /* as it is once started */
    char *accession;        /* NULL: it is asked for by a UID */
    int courier;            /* the slot of who has it */
    enum pull_stage stage;
    bool asked;                    /* FIND or MOVE is under way */
    bool has_step;                 /* something is to be written before it goes on */
    struct queue_pull_part *parts; /* once FOUND */
    size_t part_count, next;       /* the next to be moved */
    uint64_t stop_at; /* of the loop's clock: while asked its deadline; when ARRIVING, that ends */
    bool stopped;     /* it was told to stop, and loses its courier at kill_at */
    uint64_t kill_at;
    enum pull_end end;
    struct error error; /* why, of the first that went wrong */
};

extern const struct attempt_type pull_attempt_type;

/* For an item that is being started: takes its strings over, and the accession number. NULL: no memory, nothing taken. */
struct pull_attempt *pull_attempt_new(struct attempts *attempts, struct queue_pull *pull,
                                      char *accession);

/* What came of asking: keeps the first that went wrong. */
void pull_attempt_blame(struct pull_attempt *attempt, enum code code, const char *message);
void pull_attempt_end(struct pull_attempt *attempt, enum pull_end end);

/* Of the parts, by what is stored: those that it is known of that they are all here. */
bool pull_part_is_here(const struct queue_pull_part *part);
bool pull_attempt_is_here(const struct pull_attempt *attempt);
/* The codes that say that the source was not reached. */
bool pull_code_is_away(enum code code);

#endif

/*
 * pull_attempt.h - one attempt at an item of noctule pull, from C-FIND to the arrival of its images, and its outcome.
 *
 *     FINDING --FOUND, some parts missing here--> MOVING --MOVED of the last--> ARRIVING
 *
 *     the archive does not have it                        NOT_FOUND
 *     all of it is stored here, whichever system sent it  DONE, also without a C-MOVE
 *     less is stored, after PULL_TRIES attempts           PARTIAL; FAILED if no image is stored
 *     less is stored, before that                         WAITING
 *     the archive cannot be reached                       WAITING, the attempt not counted
 *     the same after delivery.give_up_seconds             FAILED or PARTIAL
 *     permanently rejected                                FAILED
 */
#ifndef NOCTULE_SERVICE_DAEMON_PULL_PULL_ATTEMPT_H
#define NOCTULE_SERVICE_DAEMON_PULL_PULL_ATTEMPT_H

#include "db/pull_queue.h"
#include "service/common/pull/pull_keys.h"
#include "service/common/wire/messages.h"
#include "service/daemon/attempt.h"
#include "service/daemon/core.h"

#include <stddef.h>

#define PULL_TRIES 3

enum pull_stage { PULL_FINDING, PULL_MOVING, PULL_ARRIVING };

/* The outcome of an attempt. */
enum pull_end {
    PULL_ALL_HERE,
    PULL_NOTHING_THERE,
    PULL_SHORT,   /* requested, but fewer images came */
    PULL_AWAY,    /* the source was not reached */
    PULL_REFUSED, /* permanently rejected */
    PULL_UNTRIED, /* returned without an attempt */
};

struct pull_attempt {
    struct attempt base;    /* its id is the item's */
    struct queue_pull pull; /* as of its start */
    char *accession;        /* NULL: requested by a UID */
    char *file;             /* of the series that the earlier study is for; NULL: another key */
    int sender;             /* slot of its sender */
    enum pull_stage stage;
    bool requested;                /* FIND or MOVE is under way */
    bool has_step;                 /* a database change must be written before it continues */
    struct queue_pull_part *parts; /* set by FOUND */
    size_t part_count, next;       /* index of the next part to move */
    /* In the loop's clock: the deadline of a request, or in ARRIVING the end of the wait. */
    uint64_t stop_at;
    bool stopped; /* STOP_PULL was sent; its sender is killed at kill_at */
    uint64_t kill_at;
    enum pull_end end;
    struct error error; /* the first error */
};

extern const struct attempt_type pull_attempt_type;

/* Creates the attempt of an item that is being started, and takes over the item's strings and the accession number.
 * Returns NULL without memory; the caller then still owns them. */
struct pull_attempt *pull_attempt_new(struct attempts *attempts, struct queue_pull *pull, char *accession);

/* Records an error of a request, unless there is an earlier one. */
void pull_attempt_set_error(struct pull_attempt *attempt, enum code code, const char *message);
void pull_attempt_end(struct pull_attempt *attempt, enum pull_end end);

/* Return whether a part, or all parts of the attempt, are stored here, as far as the archive's counts allow to
 * decide. */
bool pull_part_is_here(const struct queue_pull_part *part);
bool pull_attempt_is_here(const struct pull_attempt *attempt);
/* Returns whether the code means that the source was not reached. */
bool pull_code_is_unreachable(enum code code);

/* ----------------------------------------------------------------------- pull_accessions.c ---- */

/*
 * The accession store: accession numbers to retrieve, which no row may hold in the clear. Each batch has a file in the
 * root (LAYOUT_PULL) that only the service may read. It is removed when the last item of the batch has ended. Calls
 * block and return 0 or -errno.
 */

/* Stores the accession numbers of a batch by line; NULL: that line has none. They are on disk on return. */
int pull_accessions_store(const struct core *core, int64_t batch, const char *const *accessions, size_t count);
/* Reads one accession number. Returns -ENOENT if it is not stored. */
int pull_accessions_find(const struct core *core, int64_t batch, int32_t line, char accession[PULL_ACCESSION_SIZE]);
/* Removes the files of batches that no longer need them. No transaction may be open. */
void pull_accessions_sweep(const struct core *core);

#endif

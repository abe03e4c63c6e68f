/*
 * import_tokens.h - the files that intake has in hand: at most IN_HAND_MAX between being picked up and
 * the daemon's STORED.
 *
 * An item's token is its number for the daemon. The loop's thread owns all of it; a pool thread
 * may work on what it imports meanwhile.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_TOKENS_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_TOKENS_H

#include "service/common/wire/messages.h"
#include "service/receiver/inbox/inbox.h"
#include "service/receiver/net/receive.h"

#define IN_HAND_MAX 256

struct in_hand_item {
    struct import_item import; /* owns import.relative */
    struct inbox *inbox;       /* with no handover either: found in series/ at start */
    struct handover *handover; /* it came over the network; or NULL */
    char *move_to;             /* for import_finish; NULL */
    bool told;                 /* inbox_find.told */
    bool released;             /* from released/ */
    bool sent;
    int64_t sent_ms;
    uv_work_t work; /* dealing with the original */
    void *owner;    /* for the work's callbacks */
};

struct in_hand {
    struct in_hand_item *slots[IN_HAND_MAX];
    size_t count;
    int64_t serial;
};

size_t in_hand_room(const struct in_hand *in_hand);
/* A new item for the file, its token chosen; NULL: no memory. There must be room. `inbox` NULL:
 * a recovered one, without `relative`. */
struct in_hand_item *in_hand_add(struct in_hand *in_hand, struct inbox *inbox, const char *relative,
                                 const struct file_stamp *stamp);
/* An item for what a thread hands over; NULL: no memory, and the handover is still the caller's.
 */
struct in_hand_item *in_hand_add_handover(struct in_hand *in_hand, struct handover *handover);
/* NULL: not (any more) here. */
struct in_hand_item *in_hand_find(struct in_hand *in_hand, int64_t token);
/* The daemon has answered: gives up its place, not the item. */
void in_hand_drop(struct in_hand *in_hand, const struct in_hand_item *item);
void in_hand_free(struct in_hand_item *item);

/* ARRIVED or QUARANTINED, as its outcome says, UNWANTED or COMMITTED. Unfinished: for channel_send. */
void in_hand_frame(const struct in_hand_item *item, struct proto_writer *writer);

#endif

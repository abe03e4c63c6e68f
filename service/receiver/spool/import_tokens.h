/*
 * import_tokens.h - the files in progress: at most IN_HAND_MAX between their start and the daemon's
 * STORED.
 *
 * The daemon knows an item by its token. The loop's thread owns all items. A pool thread may use
 * the `import` of one meanwhile.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_TOKENS_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_TOKENS_H

#include "service/common/wire/messages.h"
#include "service/receiver/inbox/inbox.h"
#include "service/receiver/net/receive.h"

#define IN_HAND_MAX 256

struct in_hand_item {
    struct import_item import; /* owns import.relative */
    struct inbox *inbox;       /* NULL without a handover: found in series/ at the start */
    struct handover *handover; /* received over the network; or NULL */
    char *move_to;             /* for import_finish; or NULL */
    bool told;                 /* inbox_find.told */
    bool released;             /* from released/ */
    bool sent;
    int64_t sent_ms;
    uv_work_t work; /* handles the original */
    void *owner;    /* for the callbacks of `work` */
};

struct in_hand {
    struct in_hand_item *slots[IN_HAND_MAX];
    size_t count;
    int64_t serial;
};

size_t in_hand_room(const struct in_hand *in_hand);
/* Creates an item for a file and sets its token. There must be room. `inbox` NULL: a recovered
 * file, without `relative`. Returns NULL if memory is short. */
struct in_hand_item *in_hand_add(struct in_hand *in_hand, struct inbox *inbox, const char *relative,
                                 const struct file_stamp *stamp);
/* Creates an item for a handover. Returns NULL if memory is short; the caller then still owns the
 * handover. */
struct in_hand_item *in_hand_add_handover(struct in_hand *in_hand, struct handover *handover);
/* Returns NULL if there is no such item. */
struct in_hand_item *in_hand_find(struct in_hand *in_hand, int64_t token);
/* Frees the place of an answered item, not the item. */
void in_hand_drop(struct in_hand *in_hand, const struct in_hand_item *item);
void in_hand_free(struct in_hand_item *item);

/* Writes the item's frame: ARRIVED or QUARANTINED, by its outcome, or UNWANTED or COMMITTED. The
 * frame is unfinished, for channel_send. */
void in_hand_frame(const struct in_hand_item *item, struct proto_writer *writer);

#endif

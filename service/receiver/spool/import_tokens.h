/*
 * import_tokens.h - the files in progress: at most IMPORT_TOKENS_MAX between their start and the daemon's STORED.
 *
 * The daemon knows an item by its token. The loop's thread owns all items. A pool thread may use
 * the `import` of one meanwhile.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_TOKENS_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_IMPORT_TOKENS_H

#include "service/common/wire/messages.h"
#include "service/receiver/inbox/inbox.h"
#include "service/receiver/net/receive.h"

#define IMPORT_TOKENS_MAX 256

struct import_token {
    struct import_item import; /* owns import.relative */
    struct inbox *inbox;       /* NULL without a handover: found in series/ at the start */
    struct handover *handover; /* received over the network; or NULL */
    char *move_to;             /* for import_finish; or NULL */
    bool reported;             /* inbox_find.reported */
    bool released;             /* from released/ */
    bool sent;
    int64_t sent_ms;
    uv_work_t work; /* handles the original */
    void *owner;    /* for the callbacks of `work` */
};

struct import_tokens {
    struct import_token *slots[IMPORT_TOKENS_MAX];
    size_t count;
    int64_t serial;
};

size_t import_tokens_room(const struct import_tokens *tokens);
/* Creates an item for a file and sets its token. There must be room. `inbox` NULL: a recovered
 * file, without `relative`. Returns NULL if memory is short. */
struct import_token *import_token_add(struct import_tokens *tokens, struct inbox *inbox, const char *relative,
                                      const struct file_stamp *stamp);
/* Creates an item for a handover. Returns NULL if memory is short; the caller then still owns the handover. */
struct import_token *import_token_add_handover(struct import_tokens *tokens, struct handover *handover);
/* Returns NULL if there is no such item. */
struct import_token *import_token_find(struct import_tokens *tokens, int64_t token);
/* Frees the place of an answered item, not the item. */
void import_token_drop(struct import_tokens *tokens, const struct import_token *item);
void import_token_free(struct import_token *item);

/* Writes the item's frame: ARRIVED or QUARANTINED, by its outcome, or UNWANTED or COMMITTED. The
 * frame is unfinished, for channel_send. */
void import_token_write(const struct import_token *item, struct proto_writer *writer);

#endif

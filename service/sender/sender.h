/*
 * sender.h - one destination: a queue of deliveries and the thread that sends them.
 *
 * To an AE it keeps one association, reused while it has the required presentation contexts and idle_seconds have not
 * passed. Reports of storage commitment are accepted on it at any time. Folders and STOW-RS need no association
 * (stow.h). A slow or unreachable destination does not delay others. All calls must come from one thread (the process's
 * loop); the events come from the sender's thread.
 */
#ifndef NOCTULE_SERVICE_SENDER_SENDER_H
#define NOCTULE_SERVICE_SENDER_SENDER_H

#include "base/error.h"
#include "config/config.h"
#include "dicom/deidentify/deidentify.h"
#include "dicom/dicom.h"
#include "dicom/net/scp.h"
#include "service/common/pseudonym.h"
#include "service/common/wire/messages.h"

#include <stddef.h>

struct sender;

struct sender_events {
    /* DELIVERED or COMMITTED: takes over the frame's memory. */
    void (*frame)(void *context, struct proto_writer *frame);
    /* Called after sender_stop(): no more events follow, and sender_close() does not block. */
    void (*ended)(void *context);
    void *context;
};

struct sender_options {
    const struct conf_destination *destination; /* these six must outlive the sender */
    const struct conf *conf;
    const struct pseudonym_key *key;
    const char *root;
    const struct conf_dicom *dicom;
    struct dicom_tls *tls; /* NULL: no TLS settings could be opened */
    struct sender_events events;
};

int sender_open(const struct sender_options *options, struct sender **sender);

/* Queues a delivery. It is answered by exactly one DELIVERED. Returns 0 or -ENOMEM. */
int sender_deliver(struct sender *sender, const struct message_deliver *order);

/* Finishes the current delivery, returns the others and ends. May be called again. */
void sender_stop(struct sender *sender);
bool sender_has_ended(const struct sender *sender);
/* Waits for the end and frees the sender. NULL is allowed. */
void sender_close(struct sender *sender);

/* ------------------------------------------------------------------------ sender_folder.c ---- */

#define SENDER_NAME 240 /* max bytes of a file name in a folder, with its end */

/* Copies `file` to the folder under this name. An existing file with the same bytes counts as delivered. One with other bytes
 * stays, and the call fails. Creates the folder if it is missing. Blocks. Returns 0, or -errno with
 * a code: FOLDER_CONFLICT (-EEXIST), FOLDER_UNWRITABLE, DISK_FULL or FILE_UNREADABLE. */
int sender_folder_deliver(const char *folder, const char *file, const char *name, struct error *error);

/* -------------------------------------------------------------------------- sender_chain.c ---- */

/*
 * A digest of the files that were sent, in their order, and of the way to send them: the address of the destination, and
 * the settings and key of de-identified copies. Equal digests mean that the destination has got equal instances. It
 * depends on names only: the spool never changes a file under its name.
 */

#define SENDER_CHAIN 65 /* hexadecimal digits and the terminator */

/* Begin with the destination, then add each file. Return 0 or -ENOMEM. */
int sender_chain_begin(const struct conf_destination *to, const struct deidentify *how, const struct pseudonym_key *key,
                       char chain[SENDER_CHAIN]);
int sender_chain_add(const struct pseudonym_key *key, const char *file, char chain[SENDER_CHAIN]);

/* ------------------------------------------------------------------------- sender_images.c ---- */

/* The images of a stored series (LAYOUT_SERIES). */

struct sender_images {
    char **files; /* paths, sorted */
    size_t count;
};

/* Finds the newest file of each instance in the folder of a series. The caller must call sender_images_free() in any case.
 * Code: FILE_UNREADABLE, also if there is none. */
int sender_images_find(const char *folder, struct sender_images *images, struct error *error);
void sender_images_free(struct sender_images *images);

#endif

/*
 * sender_chain.h - a digest of the files that were sent, in their order, and of the way to send them: the address of the
 * destination, and the settings and key of de-identified copies. Equal digests mean that the destination has got equal
 * instances. It depends on names only: the spool never changes a file under its name.
 */
#ifndef NOCTULE_SERVICE_SENDER_SENDER_CHAIN_H
#define NOCTULE_SERVICE_SENDER_SENDER_CHAIN_H

#include "config/config.h"
#include "dicom/deidentify/deidentify.h"
#include "service/common/pseudonym.h"

#define SENDER_CHAIN 65 /* hexadecimal digits and the terminator */

/* Begin with the destination, then add each file. Return 0 or -ENOMEM. */
int sender_chain_begin(const struct conf_destination *to, const struct deidentify *how, const struct pseudonym_key *key,
                       char chain[SENDER_CHAIN]);
int sender_chain_add(const struct pseudonym_key *key, const char *file, char chain[SENDER_CHAIN]);

#endif

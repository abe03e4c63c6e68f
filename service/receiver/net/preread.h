/* preread.h - parse the first bytes of a connection before a thread is used for it, and the
 * ten-byte answers that reject it. Pure functions. */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_PREREAD_H
#define NOCTULE_SERVICE_RECEIVER_NET_PREREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PREREAD_HEADER 6       /* bytes that preread_size needs */
#define PREREAD_MAX    0x10000 /* max bytes to wait for; the thread reads a longer message */
#define PREREAD_TITLES 42      /* bytes that preread_titles needs */
#define PREREAD_TITLE  17      /* 16 characters and the terminator */
#define PREREAD_REPLY  10

/* Returns the size of the message that begins with these bytes: an A-ASSOCIATE-RQ or, with `tls`, a TLS record with a
 * handshake. If there are too few bytes, returns the number of bytes needed. Returns -EPROTO for any other message.
 * dicom_serve must check the size limit of a request (LIMIT_REQUEST_BYTES). */
ssize_t preread_size(const uint8_t *bytes, size_t size, bool tls);

/* Reads the AE titles of an A-ASSOCIATE-RQ without surrounding blanks, the same as dicom_serve. */
void preread_titles(const uint8_t bytes[PREREAD_TITLES], char called[PREREAD_TITLE], char calling[PREREAD_TITLE]);

/* A-ASSOCIATE-RJ, rejected-permanent, by the service user: calling or called AE title not recognized (PS3.8 9.3.4). */
extern const uint8_t preread_unknown_caller[PREREAD_REPLY];
extern const uint8_t preread_unknown_title[PREREAD_REPLY];
/* A-ASSOCIATE-RJ, rejected-transient, by the presentation service provider: local limit exceeded (PS3.8 9.3.4). */
extern const uint8_t preread_busy[PREREAD_REPLY];
/* A-ABORT by the service provider: unrecognized PDU (PS3.8 9.3.8). */
extern const uint8_t preread_abort[PREREAD_REPLY];

#endif

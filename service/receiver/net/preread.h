/*
 * preread.h - the first bytes of a connection, before a thread is spent on it, and the ten bytes
 * that send it away. Pure.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_NET_PREREAD_H
#define NOCTULE_SERVICE_RECEIVER_NET_PREREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PREREAD_HEADER 6       /* bytes that preread_size wants to see */
#define PREREAD_MAX    0x10000 /* bytes that are waited for; a longer message is read by its thread */
#define PREREAD_TITLES 42      /* bytes that preread_titles wants to see */
#define PREREAD_TITLE  17      /* 16 characters and the end */
#define PREREAD_REPLY  10

/*
 * How many bytes the message has that begins with these (an A-ASSOCIATE-RQ, with `tls` a TLS record
 * with a handshake in it), or, as long as that cannot be told, how many are needed to tell.
 * -EPROTO: it is no such message. The limit of a request (LIMIT_REQUEST_BYTES) is dicom_serve's to check.
 */
ssize_t preread_size(const uint8_t *bytes, size_t size, bool tls);

/* The AE titles of an A-ASSOCIATE-RQ, without blanks around them, as dicom_serve will tell them. */
void preread_titles(const uint8_t bytes[PREREAD_TITLES], char called[PREREAD_TITLE],
                    char calling[PREREAD_TITLE]);

/* A-ASSOCIATE-RJ, rejected-permanent, by the service user: calling or called AE title not
 * recognized (PS3.8 9.3.4). */
extern const uint8_t preread_unknown_caller[PREREAD_REPLY];
extern const uint8_t preread_unknown_title[PREREAD_REPLY];
/* A-ASSOCIATE-RJ, rejected-transient, by the presentation service provider: local limit exceeded
 * (PS3.8 9.3.4). */
extern const uint8_t preread_busy[PREREAD_REPLY];
/* A-ABORT by the service provider: unrecognized PDU (PS3.8 9.3.8). */
extern const uint8_t preread_abort[PREREAD_REPLY];

#endif

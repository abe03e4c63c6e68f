/*
 * peer_bytes.h - PDUs and messages of a DICOM peer, byte by byte, valid or invalid on purpose. It must not use
 * Noctule's readers or writers.
 */
#ifndef NOCTULE_PEER_BYTES_H
#define NOCTULE_PEER_BYTES_H

#include "dicom/net/scu.h"
#include "tests/unit/dicom_bytes.h"

#include <arpa/inet.h>
#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PDU_RQ = 1, PDU_AC = 2, PDU_DATA = 4, PDU_RELEASE_RQ = 5, PDV_COMMAND = 1, PDV_LAST = 2 };

/* ---- PDUs: most significant byte first ---- */

static inline void
put_pdu(struct dicom_bytes *bytes, unsigned type, const struct dicom_bytes *value)
{
    const uint8_t head[2] = {(uint8_t)type, 0};
    bytes->big_endian = true;
    bytes_put(bytes, head, sizeof(head));
    bytes_u32(bytes, (uint32_t)value->size);
    bytes_put(bytes, value->data, value->size);
}

static inline void
put_item(struct dicom_bytes *bytes, unsigned type, const void *value, size_t size)
{
    bytes->big_endian = true;
    bytes_u16(bytes, type << 8);
    bytes_u16(bytes, (unsigned)size);
    bytes_put(bytes, value, size);
}

static inline void
put_context(struct dicom_bytes *bytes, unsigned type, unsigned id, const char *class_uid)
{
    struct dicom_bytes value = {0};
    const uint8_t head[4] = {(uint8_t)id, 0, 0, 0};
    bytes_put(&value, head, sizeof(head));
    if (type == 0x20)
        put_item(&value, 0x30, class_uid, strlen(class_uid));
    put_item(&value, 0x40, SYNTAX_IMPLICIT, strlen(SYNTAX_IMPLICIT));
    put_item(bytes, type, value.data, value.size);
    bytes_free(&value);
}

/* Puts contexts 1 and 3, for CT and for commitments, then the items of `more` if it is not NULL. */
static inline void
put_negotiation(struct dicom_bytes *bytes, unsigned type, void (*more)(struct dicom_bytes *items, size_t n), size_t n)
{
    struct dicom_bytes value = {.big_endian = true};
    bytes_u16(&value, 1);
    bytes_u16(&value, 0);
    bytes_put(&value, "NOCTULE         PEER            ", 32);
    bytes_put(&value, (const uint8_t[32]){0}, 32);
    put_item(&value, 0x10, "1.2.840.10008.3.1.1.1", 21);
    put_context(&value, type == PDU_RQ ? 0x20 : 0x21, 1, CLASS_CT);
    put_context(&value, type == PDU_RQ ? 0x20 : 0x21, 3, DICOM_COMMITMENT_CLASS);
    if (more)
        more(&value, n);
    put_item(&value, 0x50, "\x51\0\0\4\0\0\x40\0", 8);
    put_pdu(bytes, type, &value);
    bytes_free(&value);
}

static inline void
put_pdv(struct dicom_bytes *pdu, unsigned context, unsigned flags, const void *data, size_t size)
{
    const uint8_t head[2] = {(uint8_t)context, (uint8_t)flags};
    pdu->big_endian = true;
    bytes_u32(pdu, (uint32_t)(size + 2));
    bytes_put(pdu, head, sizeof(head));
    bytes_put(pdu, data, size);
}

static inline void
put_data(struct dicom_bytes *bytes, unsigned context, unsigned flags, const void *data, size_t size)
{
    struct dicom_bytes pdu = {0};
    put_pdv(&pdu, context, flags, data, size);
    put_pdu(bytes, PDU_DATA, &pdu);
    bytes_free(&pdu);
}

/* ---- messages: implicit VR, little endian ---- */

static inline void
put_element(struct dicom_bytes *bytes, uint32_t tag, const void *value, size_t size)
{
    bytes->big_endian = false;
    bytes_tag(bytes, tag);
    bytes_u32(bytes, (uint32_t)(size + size % 2));
    bytes_put(bytes, value, size);
    bytes_put(bytes, "", size % 2);
}

static inline void
put_zeros(struct dicom_bytes *bytes, uint32_t tag, size_t size)
{
    uint8_t *zeros = (uint8_t *)calloc(size + 1, 1);
    ck_assert_ptr_nonnull(zeros);
    put_element(bytes, tag, zeros, size);
    free(zeros);
}

static inline void
put_number(struct dicom_bytes *bytes, uint32_t tag, unsigned number)
{
    const uint8_t value[2] = {(uint8_t)number, (uint8_t)(number >> 8)};
    put_element(bytes, tag, value, sizeof(value));
}

struct command {
    unsigned field;
    const char *class_uid, *instance;
    bool has_data_set;
    size_t more; /* number of elements without a meaning */
    size_t size; /* total size after one more element, of zeros; 0: no such element */
};

static inline void
put_command(struct dicom_bytes *bytes, unsigned context, const struct command *command)
{
    struct dicom_bytes set = {0};
    put_element(&set, 0x00000002, command->class_uid, strlen(command->class_uid));
    put_number(&set, 0x00000100, command->field);
    put_number(&set, command->field & 0x8000 ? 0x00000120 : 0x00000110, 1);
    put_number(&set, 0x00000800, command->has_data_set ? 1 : 0x0101);
    put_number(&set, 0x00000900, 0);
    put_element(&set, 0x00001000, command->instance, strlen(command->instance));
    put_number(&set, 0x00001002, 1);
    for (size_t i = 0; i < command->more; i++)
        put_element(&set, 0x00005000, "", 0);
    if (command->size)
        put_zeros(&set, 0x00005000, command->size - set.size - 8);
    put_data(bytes, context, PDV_COMMAND | PDV_LAST, set.data, set.size);
    bytes_free(&set);
}

/* Puts a command and its data set, in PDUs of some KiB. */
static inline void
put_message(struct dicom_bytes *bytes, unsigned context, const struct command *command, const struct dicom_bytes *set)
{
    enum { PART = 4000 };

    put_command(bytes, context, command);
    for (size_t at = 0; at < set->size; at += PART) {
        const size_t left = set->size - at;
        put_data(bytes, context, left <= PART ? PDV_LAST : 0, set->data + at, left < PART ? left : PART);
    }
}

static const struct command echo = {.field = 0x0030, .class_uid = DICOM_VERIFICATION_CLASS, .instance = ""};
static const struct command store = {.field = 0x0001, .class_uid = CLASS_CT, .instance = "1.2.3", .has_data_set = true};
static const struct command event = {
    .field = 0x0100, .class_uid = DICOM_COMMITMENT_CLASS, .instance = DICOM_COMMITMENT_INSTANCE, .has_data_set = true};
static const struct command taken = {
    .field = 0x8130, .class_uid = DICOM_COMMITMENT_CLASS, .instance = "", .has_data_set = true};

static inline int
listen_somewhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

#endif

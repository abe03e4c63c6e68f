#include "service/receiver/net/preread.h"

#include <errno.h>

#define PDU_ASSOCIATE_RQ 0x01
#define PDU_ASSOCIATE_RJ 0x03
#define PDU_ABORT        0x07
#define RQ_FIXED_FIELDS  68 /* of an A-ASSOCIATE-RQ, after its header */
#define TLS_HANDSHAKE    0x16
#define TLS_HEADER       5
#define TLS_MAX_RECORD   0x4000

#define CALLED_AT        10
#define CALLING_AT       26

const uint8_t preread_unknown_caller[] = {PDU_ASSOCIATE_RJ, 0, 0, 0, 0, 4, 0, 1, 1, 3};
const uint8_t preread_unknown_title[] = {PDU_ASSOCIATE_RJ, 0, 0, 0, 0, 4, 0, 1, 1, 7};
const uint8_t preread_busy[] = {PDU_ASSOCIATE_RJ, 0, 0, 0, 0, 4, 0, 2, 3, 2};
const uint8_t preread_abort[] = {PDU_ABORT, 0, 0, 0, 0, 4, 0, 0, 2, 1};

ssize_t
preread_size(const uint8_t *bytes, size_t size, bool tls)
{
    const size_t header = tls ? TLS_HEADER : PREREAD_HEADER;
    if (size == 0)
        return 1;
    if (bytes[0] != (tls ? TLS_HANDSHAKE : PDU_ASSOCIATE_RQ))
        return -EPROTO;
    if (size < header)
        return (ssize_t)header;
    size_t length;
    if (tls) {
        length = (size_t)bytes[3] << 8 | (size_t)bytes[4];
        if (bytes[1] != 3 || length == 0 || length > TLS_MAX_RECORD)
            return -EPROTO;
    } else {
        length = (size_t)bytes[2] << 24 | (size_t)bytes[3] << 16 | (size_t)bytes[4] << 8 | (size_t)bytes[5];
        if (length < RQ_FIXED_FIELDS)
            return -EPROTO;
    }
    return (ssize_t)(header + length);
}

static void
copy_title(const uint8_t *bytes, char title[PREREAD_TITLE])
{
    size_t start = 0, length = 0;
    while (start < PREREAD_TITLE - 1 && bytes[start] == ' ')
        start++;
    for (size_t i = start; i < PREREAD_TITLE - 1 && bytes[i]; i++)
        title[length++] = bytes[i] >= ' ' && bytes[i] <= '~' ? (char)bytes[i] : '?';
    while (length > 0 && title[length - 1] == ' ')
        length--;
    title[length] = '\0';
}

void
preread_titles(const uint8_t bytes[PREREAD_TITLES], char called[PREREAD_TITLE], char calling[PREREAD_TITLE])
{
    copy_title(bytes + CALLED_AT, called);
    copy_title(bytes + CALLING_AT, calling);
}

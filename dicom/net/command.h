/*
 * command.h - DIMSE command sets (PS3.7 6.3.1, annex E): group 0000 in Implicit VR Little Endian; private to dicom/.
 *
 * DCMTK's DIMSE layer is not used. It lacks some transfer syntaxes, has no limit on the size of a
 * command, and ends the association for commands that must be answered.
 */
#ifndef NOCTULE_DICOM_NET_COMMAND_H
#define NOCTULE_DICOM_NET_COMMAND_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

enum command_field {
    COMMAND_C_STORE = 0x0001,
    COMMAND_C_FIND = 0x0020,
    COMMAND_C_MOVE = 0x0021,
    COMMAND_C_ECHO = 0x0030,
    COMMAND_N_EVENT_REPORT = 0x0100,
    COMMAND_N_ACTION = 0x0130,
    COMMAND_C_CANCEL = 0x0FFF,
    COMMAND_RESPONSE = 0x8000, /* set in every response */
};

#define COMMAND_NO_DATA_SET 0x0101
#define COMMAND_DATA_SET    0x0001
#define COMMAND_AE_SIZE     17 /* 16 characters and the NUL */

struct command {
    uint16_t field;
    uint16_t message_id; /* in a response: of the message that it answers */
    uint16_t event_type; /* in an N-ACTION: the action type */
    bool has_status;
    uint16_t status;
    bool has_data_set;
    /* "" if absent or not a valid UID. In the second case uid_invalid is set. */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    bool uid_invalid;
    char move_originator[COMMAND_AE_SIZE]; /* in a C-STORE: AE title of the C-MOVE's requestor, or "" */
    const char *move_destination;          /* in our own C-MOVE: an AE title */
    /* Numbers of sub-operations of a C-MOVE (PS3.7 9.3.4.2); -1 if absent. */
    int32_t remaining, completed, failed, warned;
};

/* Decodes a command set. Returns 0, or -EBADMSG if it is invalid or lacks Command Field, Message
 * ID or Command Data Set Type. */
int command_decode(const uint8_t *bytes, size_t size, struct command *command);

#define COMMAND_MAX 256 /* max bytes of an encoded command */

/* Encodes a request of C-STORE, C-FIND, C-MOVE, C-ECHO or N-ACTION. Returns its size. */
size_t command_encode_request(const struct command *request, uint8_t bytes[COMMAND_MAX]);
/* Encodes the C-CANCEL of a request. Returns its size. */
size_t command_encode_cancel(const struct command *request, uint8_t bytes[COMMAND_MAX]);
/* Encodes the response without data set. Returns its size. */
size_t command_encode_response(const struct command *request, uint16_t status, uint8_t bytes[COMMAND_MAX]);

/* Returns whether the UID has 1 to 64 digits and dots (PS3.5 9.1). Such a UID is safe in a path. */
bool command_uid_is_valid(const char *uid);
/* Copies a UID without its padding. Returns false and sets "" if it is not a UID. An empty value is "" too. */
bool command_copy_uid(char uid[DICOM_UID_SIZE], const uint8_t *value, size_t size);

#ifdef __cplusplus
}
#endif
#endif

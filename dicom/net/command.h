/*
 * command.h - DIMSE command sets (PS3.7 6.3.1, annex E): group 0000 in Implicit VR Little Endian;
 * private to dicom/.
 *
 * DCMTK's own DIMSE layer knows neither every transfer syntax nor a bound on what a command may
 * hold, and ends the association for commands that deserve an answer.
 */
#ifndef NOCTULE_DICOM_COMMAND_H
#define NOCTULE_DICOM_COMMAND_H

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
#define COMMAND_AE_SIZE     17 /* 16 characters and the end */

struct command {
    uint16_t field;
    uint16_t message_id; /* of a response: of the message that it answers */
    uint16_t event_type; /* of an N-ACTION: the action's type */
    bool has_status;
    uint16_t status;
    bool has_data_set;
    /* "" when absent, or when it is no UID: then the flag is set. */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    bool uid_invalid;
    char move_originator
        [COMMAND_AE_SIZE];        /* of a C-STORE: the AE title whose C-MOVE caused it; "" */
    const char *move_destination; /* of a C-MOVE that is made here: an AE title */
    /* Of what a C-MOVE makes the peer send (PS3.7 9.3.4.2); -1: it does not say. */
    int32_t remaining, completed, failed, warned;
};

/* 0, or -EBADMSG when it is no command set or lacks Command Field, Message ID or Command Data Set
 * Type. */
int command_decode(const uint8_t *bytes, size_t size, struct command *command);

#define COMMAND_MAX 256 /* bytes of one that is made here */

/* A request of C-STORE, C-FIND, C-MOVE, C-ECHO or N-ACTION; returns its size. */
size_t command_encode_request(const struct command *request, uint8_t bytes[COMMAND_MAX]);
/* C-CANCEL of a request; returns its size. */
size_t command_encode_cancel(const struct command *request, uint8_t bytes[COMMAND_MAX]);
/* The response without data set; returns its size. */
size_t command_encode_response(const struct command *request, uint16_t status,
                               uint8_t bytes[COMMAND_MAX]);

/* Digits and dots, 1 to 64 of them (PS3.5 9.1): safe in a path. */
bool command_uid_is_valid(const char *uid);
/* Without its padding; "" for an empty one, and with false for what is no UID. */
bool command_copy_uid(char uid[DICOM_UID_SIZE], const uint8_t *value, size_t size);

#ifdef __cplusplus
}
#endif
#endif

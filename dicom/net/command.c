#include "dicom/net/command.h"
#include "dicom/value/value.h"

#include <errno.h>
#include <string.h>

enum {
    HEADER_SIZE = 8, /* group, element, length */
    GROUP_LENGTH = 0x0000,
    AFFECTED_CLASS = 0x0002,
    REQUESTED_CLASS = 0x0003,
    FIELD = 0x0100,
    MESSAGE_ID = 0x0110,
    RESPONDED_ID = 0x0120,
    MOVE_DESTINATION = 0x0600,
    PRIORITY = 0x0700,
    DATA_SET_TYPE = 0x0800,
    STATUS = 0x0900,
    AFFECTED_INSTANCE = 0x1000,
    REQUESTED_INSTANCE = 0x1001,
    EVENT_TYPE = 0x1002,
    ACTION_TYPE = 0x1008,
    MOVE_ORIGINATOR = 0x1030,
    REMAINING = 0x1020,
    COMPLETED = 0x1021,
    FAILED = 0x1022,
    WARNED = 0x1023,
};

bool
command_uid_is_valid(const char *uid)
{
    const size_t length = strlen(uid);
    return length > 0 && length < DICOM_UID_SIZE && strspn(uid, "0123456789.") == length && uid[0] != '.' &&
           uid[length - 1] != '.' && !strstr(uid, "..");
}

/* Returns the size without padding. Some senders pad with a space. */
static size_t
unpadded(const uint8_t *value, size_t size)
{
    while (size > 0 && (value[size - 1] == '\0' || value[size - 1] == ' '))
        size--;
    return size;
}

bool
command_copy_uid(char uid[DICOM_UID_SIZE], const uint8_t *value, size_t size)
{
    size = unpadded(value, size);
    uid[0] = '\0';
    if (size == 0)
        return true;
    if (size >= DICOM_UID_SIZE)
        return false;
    memcpy(uid, value, size);
    uid[size] = '\0';
    if (strlen(uid) == size && command_uid_is_valid(uid))
        return true;
    uid[0] = '\0';
    return false;
}

/* Required fields found so far. */
enum command_seen {
    SEEN_FIELD = 1,
    SEEN_ID = 2,
    SEEN_DATA_SET_TYPE = 4,
    SEEN_ALL = 7,
};

static int
command_take_number(struct command *command, uint16_t element, uint16_t number)
{
    switch (element) {
    case FIELD:
        command->field = number;
        return SEEN_FIELD;
    case MESSAGE_ID:
    case RESPONDED_ID: /* the field of a C-CANCEL */
        command->message_id = number;
        return SEEN_ID;
    case DATA_SET_TYPE:
        command->has_data_set = number != COMMAND_NO_DATA_SET;
        return SEEN_DATA_SET_TYPE;
    case STATUS:
        command->has_status = true;
        command->status = number;
        return 0;
    case EVENT_TYPE:
        command->event_type = number;
        return 0;
    case REMAINING:
        command->remaining = number;
        return 0;
    case COMPLETED:
        command->completed = number;
        return 0;
    case FAILED:
        command->failed = number;
        return 0;
    case WARNED:
        command->warned = number;
        return 0;
    default:
        return 0;
    }
}

/* Copies an AE title without surrounding spaces. Drops a value that is too long. */
static void
command_take_originator(struct command *command, const uint8_t *value, size_t size)
{
    size = unpadded(value, size);
    for (; size > 0 && *value == ' '; size--)
        value++;
    if (size >= sizeof(command->move_originator))
        size = 0;
    memcpy(command->move_originator, value, size);
    command->move_originator[size] = '\0';
}

int
command_decode(const uint8_t *bytes, size_t size, struct command *command)
{
    *command = (struct command){.remaining = -1, .completed = -1, .failed = -1, .warned = -1};
    int seen = 0;
    while (size > 0) {
        if (size < HEADER_SIZE || value_u16(bytes, false) != 0)
            return -EBADMSG;
        const uint16_t element = value_u16(bytes + 2, false);
        const uint32_t length = value_u32(bytes + 4, false);
        if (length > size - HEADER_SIZE)
            return -EBADMSG;
        const uint8_t *value = bytes + HEADER_SIZE;
        if (length == 2)
            seen |= command_take_number(command, element, value_u16(value, false));
        if (element == AFFECTED_CLASS || element == REQUESTED_CLASS)
            command->uid_invalid |= !command_copy_uid(command->sop_class_uid, value, length);
        else if (element == AFFECTED_INSTANCE || element == REQUESTED_INSTANCE)
            command->uid_invalid |= !command_copy_uid(command->sop_instance_uid, value, length);
        if (element == MOVE_ORIGINATOR)
            command_take_originator(command, value, length);
        bytes = value + length;
        size -= HEADER_SIZE + length;
    }
    return seen == SEEN_ALL ? 0 : -EBADMSG;
}

/* Command elements under construction. */
struct command_writer {
    uint8_t *bytes;
    size_t size;
};

static void
put_u16(struct command_writer *to, uint16_t number)
{
    to->bytes[to->size++] = (uint8_t)number;
    to->bytes[to->size++] = (uint8_t)(number >> 8);
}

static void
put_header(struct command_writer *to, uint16_t element, uint16_t length)
{
    put_u16(to, 0);
    put_u16(to, element);
    put_u16(to, length);
    put_u16(to, 0);
}

static void
command_put_number(struct command_writer *to, uint16_t element, uint16_t number)
{
    put_header(to, element, sizeof(number));
    put_u16(to, number);
}

/* Pads to an even length. */
static void
put_text(struct command_writer *to, uint16_t element, const char *text, char padding)
{
    const size_t length = strlen(text);
    if (length == 0)
        return;
    put_header(to, element, (uint16_t)(length + length % 2));
    memcpy(to->bytes + to->size, text, length);
    to->size += length;
    if (length % 2)
        to->bytes[to->size++] = (uint8_t)padding;
}

/* Writes the group length first, as 0. command_finish fills it in. */
static struct command_writer
command_begin(uint8_t *bytes)
{
    struct command_writer to = {bytes, 0};
    put_header(&to, GROUP_LENGTH, 4);
    put_u16(&to, 0);
    put_u16(&to, 0);
    return to;
}

static size_t
command_finish(const struct command_writer *to)
{
    struct command_writer length = {to->bytes, HEADER_SIZE};
    put_u16(&length, (uint16_t)(to->size - HEADER_SIZE - 4));
    return to->size;
}

size_t
command_encode_request(const struct command *request, uint8_t bytes[COMMAND_MAX])
{
    const bool is_action = request->field == COMMAND_N_ACTION;
    struct command_writer to = command_begin(bytes);
    put_text(&to, is_action ? REQUESTED_CLASS : AFFECTED_CLASS, request->sop_class_uid, '\0');
    command_put_number(&to, FIELD, request->field);
    command_put_number(&to, MESSAGE_ID, request->message_id);
    if (request->move_destination)
        put_text(&to, MOVE_DESTINATION, request->move_destination, ' ');
    if (request->field == COMMAND_C_STORE || request->field == COMMAND_C_FIND || request->field == COMMAND_C_MOVE)
        command_put_number(&to, PRIORITY, 0);
    command_put_number(&to, DATA_SET_TYPE, request->has_data_set ? COMMAND_DATA_SET : COMMAND_NO_DATA_SET);
    put_text(&to, is_action ? REQUESTED_INSTANCE : AFFECTED_INSTANCE, request->sop_instance_uid, '\0');
    if (is_action)
        command_put_number(&to, ACTION_TYPE, request->event_type);
    return command_finish(&to);
}

size_t
command_encode_cancel(const struct command *request, uint8_t bytes[COMMAND_MAX])
{
    struct command_writer to = command_begin(bytes);
    command_put_number(&to, FIELD, COMMAND_C_CANCEL);
    command_put_number(&to, RESPONDED_ID, request->message_id);
    command_put_number(&to, DATA_SET_TYPE, COMMAND_NO_DATA_SET);
    return command_finish(&to);
}

size_t
command_encode_response(const struct command *request, uint16_t status, uint8_t bytes[COMMAND_MAX])
{
    struct command_writer to = command_begin(bytes);
    put_text(&to, AFFECTED_CLASS, request->sop_class_uid, '\0');
    command_put_number(&to, FIELD, request->field | COMMAND_RESPONSE);
    command_put_number(&to, RESPONDED_ID, request->message_id);
    command_put_number(&to, DATA_SET_TYPE, COMMAND_NO_DATA_SET);
    command_put_number(&to, STATUS, status);
    put_text(&to, AFFECTED_INSTANCE, request->sop_instance_uid, '\0');
    if (request->field == COMMAND_N_EVENT_REPORT)
        command_put_number(&to, EVENT_TYPE, request->event_type);
    return command_finish(&to);
}

/*
 * fuzz_command.c - any bytes as a DIMSE command set: rejected, or read as command.h specifies. The response must read
 * back as the response to that message.
 */
#include "dicom/net/command.h"
#include "tests/fuzz/must.h"

#include <errno.h>
#include <string.h>

enum {
    GROUP_LENGTH_END = 12, /* header and value of (0000,0000) */
    SUCCESS = 0x0000,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_uid(const char *uid)
{
    must(!uid[0] || command_uid_is_valid(uid));
}

static void
check_response(const struct command *request)
{
    uint8_t bytes[COMMAND_MAX];
    struct command response;
    const size_t size = command_encode_response(request, SUCCESS, bytes);
    must(size > GROUP_LENGTH_END && size <= sizeof(bytes) && size % 2 == 0);
    const size_t group_length = (size_t)(bytes[8] | bytes[9] << 8 | bytes[10] << 16);
    must(group_length == size - GROUP_LENGTH_END);
    must(command_decode(bytes, size, &response) == 0);
    must(response.field == (request->field | COMMAND_RESPONSE));
    must(response.message_id == request->message_id);
    must(!response.has_data_set && !response.uid_invalid);
    must(strcmp(response.sop_class_uid, request->sop_class_uid) == 0);
    must(strcmp(response.sop_instance_uid, request->sop_instance_uid) == 0);
    const bool is_report = request->field == COMMAND_N_EVENT_REPORT;
    must(response.event_type == (is_report ? request->event_type : 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct command command;
    const int error = command_decode(bytes, size, &command);
    must(error == 0 || error == -EBADMSG);
    if (error)
        return 0;
    check_uid(command.sop_class_uid);
    check_uid(command.sop_instance_uid);
    check_response(&command);
    return 0;
}

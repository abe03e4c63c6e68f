/*
 * scu_messages.cc - messages without objects: responses, the peer's reports, C-ECHO and requests
 * for storage commitment.
 */
#include "dicom/net/scu_association.hh"

#include "base/limits.h"
#include "dicom/read/header.hh"

#include <dcmtk/dcmdata/dcostrmb.h>

#include <cerrno>
#include <chrono>

using namespace scu;

/* ------------------------------------------------------------------------------- sending --- */

int
scu::send_request(struct dicom_association &association, const PresentationContext &context, struct command &request)
{
    uint8_t bytes[COMMAND_MAX];
    request.message_id = association.next_message++;
    /* The time of an outgoing message grows with the bytes sent. */
    Limits &limits = association.connection->limits;
    limits.min_rate = association.min_rate;
    limits.bounded = false;
    association.connection->begin_message();
    return association.connection->write_message({context.id, true, association.negotiation.max_pdu}, bytes,
                                                 command_encode_request(&request, bytes));
}

int
scu::send_data(struct dicom_association &association, const PresentationContext &context, const uint8_t *bytes,
               size_t size, bool last)
{
    return association.connection->write_message({context.id, false, association.negotiation.max_pdu, last}, bytes,
                                                 size);
}

/* ---------------------------------------------------------------- reports from the peer --- */

int
scu::violate(struct dicom_association &association, const char *what)
{
    association.violation = what;
    return -EPROTO;
}

/* Reads the data set of the message, of which `bytes` keeps at most the limit. */
static int
receive_data_set(struct dicom_association &association, uint8_t context_id, std::vector<uint8_t> &bytes)
{
    size_t total = 0;
    for (Fragment fragment = {}; !fragment.is_last;) {
        if (const int rc = association.pdus.next(*association.connection, fragment))
            return rc;
        total += fragment.size + pdv_head_size;
        if (fragment.is_command || fragment.context_id != context_id)
            return violate(association, "a data set is interrupted by another message");
        if (total > LIMIT_ANSWER_BYTES)
            return violate(association, "the data set of an answer is too long");
        if (bytes.size() <= LIMIT_REPORT_BYTES)
            bytes.insert(bytes.end(), fragment.bytes, fragment.bytes + fragment.size);
    }
    return 0;
}

/* Keeps a storage commitment report, and answers the event. */
static int
take_event(struct dicom_association &association, const PresentationContext &context, const struct command &event,
           const std::vector<uint8_t> &bytes)
{
    struct commitment report;
    uint16_t status = DICOM_CANNOT_UNDERSTAND;
    if (std::strcmp(event.sop_class_uid, DICOM_COMMITMENT_CLASS) == 0 &&
        context.abstract_syntax == DICOM_COMMITMENT_CLASS &&
        commitment_read(bytes.data(), bytes.size(), context.transfer_syntax.c_str(), report)) {
        if (association.reports.size() == LIMIT_REPORTS)
            return violate(association, "it sends too many commitment reports");
        association.reports.push_back(std::move(report));
        status = DICOM_SUCCESS;
    }
    uint8_t answer[COMMAND_MAX];
    return association.connection->write_message({context.id, true, association.negotiation.max_pdu}, answer,
                                                 command_encode_response(&event, status, answer));
}

/* Reads the next message. Keeps a report. Returns 0, RELEASED or the error. */
static int
receive_message(struct dicom_association &association, struct command &command, std::vector<uint8_t> &bytes)
{
    uint8_t context_id = 0;
    bytes.clear();
    int rc = association.pdus.next_command(*association.connection, context_id, command);
    const PresentationContext *context = nullptr;
    for (const PresentationContext &each : association.negotiation.contexts)
        if (!context && each.id == context_id && each.result == CONTEXT_ACCEPTED)
            context = &each;
    if (!rc && !context)
        return violate(association, "a message is on a context that was not accepted");
    if (!rc && command.has_data_set)
        rc = receive_data_set(association, context_id, bytes);
    if (!rc && command.field == COMMAND_N_EVENT_REPORT)
        rc = take_event(association, *context, command, bytes);
    return rc;
}

/* Reads a message that is not a response. */
static int
take_unasked(struct dicom_association &association)
{
    static const uint8_t release_rp[] = {PDU_RELEASE_RP, 0, 0, 0, 0, 4, 0, 0, 0, 0};
    struct command command;
    std::vector<uint8_t> bytes;
    allow(association, association.dimse_time);
    const int rc = receive_message(association, command, bytes);
    if (rc == 0 && command.field == COMMAND_N_EVENT_REPORT)
        return 0;
    if (rc == DataPdus::RELEASED) {
        (void)association.connection->write(release_rp, sizeof(release_rp));
        association.open = false;
    }
    disconnect(association);
    return -ECONNRESET;
}

int
dicom_report(struct dicom_association *association, const struct dicom_commitment **report)
{
    *report = nullptr;
    return header_guard("", nullptr, [&] {
        int error = 0;
        if (association->reports.empty()) {
            if (!association->open)
                return -ECONNRESET;
            if (association->pdus.has_fragment() || association->connection->has_input())
                error = take_unasked(*association);
        }
        if (association->reports.empty())
            return error;
        association->given = std::move(association->reports.front());
        association->reports.pop_front();
        *report = &association->given.view;
        return 1;
    });
}

/* -------------------------------------------------------------- requests and responses --- */

int
scu::next_response(struct dicom_association &association, const struct command &request, struct command &response,
                   std::vector<uint8_t> &bytes)
{
    do {
        if (const int rc = receive_message(association, response, bytes))
            return rc;
    } while (response.field == COMMAND_N_EVENT_REPORT);
    if (response.field != (request.field | COMMAND_RESPONSE) || !response.has_status ||
        response.message_id != request.message_id)
        return violate(association, "its response does not match the request");
    return 0;
}

int
scu::await_response(struct dicom_association &association, const struct command &request, struct dicom_answer *answer)
{
    struct command response;
    std::vector<uint8_t> bytes;
    allow(association, association.dimse_time);
    if (const int rc = next_response(association, request, response, bytes))
        return rc;
    answer->status = response.status;
    return 0;
}

/* -------------------------------------------------------------------------------- C-ECHO --- */

int
dicom_echo(const struct dicom_peer *peer, char *greeting, size_t greeting_size, struct error *error)
{
    const struct dicom_context contexts[] = {{DICOM_VERIFICATION_CLASS, DICOM_IMPLICIT_LITTLE},
                                             {DICOM_VERIFICATION_CLASS, DICOM_EXPLICIT_LITTLE}};
    const auto start = std::chrono::steady_clock::now();
    struct dicom_association *association;
    struct dicom_answer answer;
    if (greeting_size > 0)
        greeting[0] = '\0';
    int rc = dicom_connect(peer, contexts, 2, &association, &answer, error);
    if (rc)
        return rc;
    clear_answer(&answer);
    rc = header_guard("", error, [&] {
        const PresentationContext *context = find_context(*association, DICOM_VERIFICATION_CLASS, nullptr);
        if (!context)
            return error_set(error, -EPROTONOSUPPORT, CODE_NO_PRESENTATION_CONTEXT, "%s does not accept C-ECHO.",
                             association->name.c_str());
        struct command request = {};
        request.field = COMMAND_C_ECHO;
        header_copy(request.sop_class_uid, DICOM_VERIFICATION_CLASS);
        int sent = send_request(*association, *context, request);
        if (!sent)
            sent = await_response(*association, request, &answer);
        if (sent)
            return fail_broken(*association, sent, "answering C-ECHO", error);
        if (answer.status == 0)
            return 0;
        return error_set(error, -EREMOTEIO, CODE_ECHO_FAILED, "%s answered C-ECHO with status 0x%04X.",
                         association->name.c_str(), static_cast<unsigned>(answer.status));
    });
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    if (rc == 0 && greeting) {
        const char *version = association->negotiation.implementation_version.c_str();
        snprintf(greeting, greeting_size, "%s answered C-ECHO in %.1f ms%s%s%s", association->name.c_str(),
                 taken.count(), *version ? " (" : "", version, *version ? ")" : "");
    }
    dicom_release(association);
    return rc;
}

/* -------------------------------------------------------------------- storage commitment --- */

static int
scu_commit(struct dicom_association &association, DcmDataset &dataset, struct dicom_answer *answer, struct error *error)
{
    const PresentationContext *context = find_context(association, DICOM_COMMITMENT_CLASS, nullptr);
    if (!context)
        return error_set(error, -EPROTONOSUPPORT, CODE_COMMIT_UNSUPPORTED,
                         "%s has the instance but does not offer storage commitment. Set commit = false for it.",
                         association.name.c_str());
    struct command request = {};
    request.field = COMMAND_N_ACTION;
    request.has_data_set = true;
    request.event_type = 1; /* request storage commitment */
    header_copy(request.sop_class_uid, DICOM_COMMITMENT_CLASS);
    header_copy(request.sop_instance_uid, DICOM_COMMITMENT_INSTANCE);
    int rc = send_request(association, *context, request);
    if (!rc)
        rc = send_data_set(association, *context, dataset);
    if (!rc)
        rc = await_response(association, request, answer);
    if (rc)
        return fail_broken(association, rc, "answering the commitment request", error);
    if (answer->status == 0 || dicom_outcome_of(CODE_NONE, answer) == DICOM_SENT)
        return 0;
    return error_set(error, -EREMOTEIO, CODE_COMMIT_FAILED,
                     "%s has the instance but answered the request for storage commitment with status 0x%04X.",
                     association.name.c_str(), static_cast<unsigned>(answer->status));
}

int
dicom_commit(struct dicom_association *association, const char *transaction_uid, const char *sop_class,
             const char *sop_instance, struct dicom_answer *answer, struct error *error)
{
    clear_answer(answer);
    return header_guard("", error, [&] {
        DcmDataset dataset;
        const OFCondition described = header_try([&] {
            OFCondition condition = dataset.putAndInsertString(DCM_TransactionUID, transaction_uid);
            DcmItem *item = nullptr;
            if (condition.good())
                condition = dataset.findOrCreateSequenceItem(DCM_ReferencedSOPSequence, item, -2);
            if (condition.good())
                condition = item->putAndInsertString(DCM_ReferencedSOPClassUID, sop_class);
            if (condition.good())
                condition = item->putAndInsertString(DCM_ReferencedSOPInstanceUID, sop_instance);
            return condition;
        });
        if (described.bad())
            return error_set(error, -EINVAL, CODE_COMMIT_FAILED,
                             "Storage commitment cannot be requested: a UID is invalid.");
        return scu_commit(*association, dataset, answer, error);
    });
}

/*
 * scu_messages.cc - what an association carries besides objects: responses, the peer's reports,
 * C-ECHO and requests for storage commitment.
 */
#include "dicom/net/scu_association.hh"
#include "dicom/read/header.hh"

#include <chrono>
#include <memory>

using namespace scu;

/* ------------------------------------------------------------- what the peer says itself --- */

static OFCondition
answer_event(struct dicom_association &association, T_ASC_PresentationContextID context,
             const T_DIMSE_N_EventReportRQ &event, uint16_t status)
{
    T_DIMSE_Message message = {};
    message.CommandField = DIMSE_N_EVENT_REPORT_RSP;
    T_DIMSE_N_EventReportRSP &response = message.msg.NEventReportRSP;
    response.MessageIDBeingRespondedTo = event.MessageID;
    response.DimseStatus = status;
    response.DataSetType = DIMSE_DATASET_NULL;
    header_copy(response.AffectedSOPClassUID, event.AffectedSOPClassUID);
    header_copy(response.AffectedSOPInstanceUID, event.AffectedSOPInstanceUID);
    response.EventTypeID = event.EventTypeID;
    response.opts = O_NEVENTREPORT_AFFECTEDSOPCLASSUID | O_NEVENTREPORT_AFFECTEDSOPINSTANCEUID |
                    O_NEVENTREPORT_EVENTTYPEID;
    return DIMSE_sendMessageUsingMemoryData(association.asc, context, &message, nullptr, nullptr,
                                            nullptr, nullptr);
}

/* Reads the rest of an N-EVENT-REPORT, keeps it if it is a storage commitment's, and answers. */
static OFCondition
take_event(struct dicom_association &association, T_ASC_PresentationContextID context,
           const T_DIMSE_N_EventReportRQ &event)
{
    struct commitment report;
    uint16_t status = DICOM_CANNOT_UNDERSTAND;
    if (event.DataSetType != DIMSE_DATASET_NULL) {
        DcmDataset *received = nullptr;
        const OFCondition condition = DIMSE_receiveDataSetInMemory(
            association.asc, DIMSE_NONBLOCKING, scu_whole_seconds(association.dimse_seconds),
            &context, &received, nullptr, nullptr);
        const std::unique_ptr<DcmDataset> dataset(received);
        if (condition.bad())
            return condition;
        if (strcmp(event.AffectedSOPClassUID, DICOM_COMMITMENT_CLASS) == 0 &&
            commitment_read(*dataset, report)) {
            association.reports.push_back(std::move(report));
            status = DICOM_SUCCESS;
        }
    }
    return answer_event(association, context, event, status);
}

static OFCondition
receive_command(struct dicom_association &association, double seconds,
                T_ASC_PresentationContextID *context, T_DIMSE_Message *message)
{
    return DIMSE_receiveCommand(association.asc, DIMSE_NONBLOCKING, scu_whole_seconds(seconds),
                                context, message, nullptr);
}

/* Something waits, and it is no answer. */
static int
take_unasked(struct dicom_association &association)
{
    T_ASC_PresentationContextID context;
    T_DIMSE_Message message = {};
    OFCondition condition =
        receive_command(association, association.dimse_seconds, &context, &message);
    if (condition == DUL_PEERREQUESTEDRELEASE) {
        ASC_acknowledgeRelease(association.asc);
        association.open = false;
        return -ECONNRESET;
    }
    if (condition.good() && message.CommandField == DIMSE_N_EVENT_REPORT_RQ)
        condition = take_event(association, context, message.msg.NEventReportRQ);
    else if (condition.good())
        condition = DIMSE_BADCOMMANDTYPE;
    if (condition.good())
        return 0;
    break_off(association);
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
            if (ASC_dataWaiting(association->asc, 0))
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

/* ---------------------------------------------------------------- a request, an answer --- */

/* The status of the response to a request; false for what is no such response. */
static bool
response_status(const T_DIMSE_Message &message, T_DIMSE_Command expected, uint16_t message_id,
                T_DIMSE_DataSetType &data_set, int32_t &status)
{
    const auto take = [&](const auto &response) {
        data_set = response.DataSetType;
        status = response.DimseStatus;
        return response.MessageIDBeingRespondedTo == message_id;
    };
    return message.CommandField == expected &&
           (expected == DIMSE_C_ECHO_RSP    ? take(message.msg.CEchoRSP)
            : expected == DIMSE_C_STORE_RSP ? take(message.msg.CStoreRSP)
                                            : take(message.msg.NActionRSP));
}

OFCondition
scu::await_response(struct dicom_association &association, T_DIMSE_Command expected,
                    uint16_t message_id, struct dicom_answer *answer)
{
    using clock = std::chrono::steady_clock;
    const auto deadline = clock::now() + std::chrono::duration<double>(association.dimse_seconds);
    for (;;) {
        const std::chrono::duration<double> left = deadline - clock::now();
        if (left.count() <= 0)
            return DIMSE_NODATAAVAILABLE;
        T_ASC_PresentationContextID context;
        T_DIMSE_Message message = {};
        OFCondition condition = receive_command(association, left.count(), &context, &message);
        if (condition.good() && message.CommandField == DIMSE_N_EVENT_REPORT_RQ) {
            condition = take_event(association, context, message.msg.NEventReportRQ);
            if (condition.bad())
                return condition;
            continue;
        }
        if (condition.bad())
            return condition;
        T_DIMSE_DataSetType data_set;
        int32_t status;
        if (!response_status(message, expected, message_id, data_set, status))
            return DIMSE_BADCOMMANDTYPE;
        DIC_UL bytes = 0, count = 0;
        if (data_set != DIMSE_DATASET_NULL)
            condition = DIMSE_ignoreDataSet(association.asc, DIMSE_NONBLOCKING,
                                            scu_whole_seconds(left.count()), &bytes, &count);
        if (condition.good())
            answer->status = status;
        return condition;
    }
}

/* -------------------------------------------------------------------------------- C-ECHO --- */

static int
echo(struct dicom_association &association, struct dicom_answer *answer, struct error *error)
{
    const T_ASC_PresentationContextID context =
        find_context(association, DICOM_VERIFICATION_CLASS, nullptr);
    if (context == 0)
        return error_set(error, -EPROTONOSUPPORT, CODE_NO_PRESENTATION_CONTEXT,
                         "%s does not accept C-ECHO.", association.name.c_str());
    T_DIMSE_Message message = {};
    message.CommandField = DIMSE_C_ECHO_RQ;
    T_DIMSE_C_EchoRQ &request = message.msg.CEchoRQ;
    request.MessageID = association.asc->nextMsgID++;
    header_copy(request.AffectedSOPClassUID, DICOM_VERIFICATION_CLASS);
    request.DataSetType = DIMSE_DATASET_NULL;
    OFCondition condition = DIMSE_sendMessageUsingMemoryData(association.asc, context, &message,
                                                             nullptr, nullptr, nullptr, nullptr);
    if (condition.good())
        condition = await_response(association, DIMSE_C_ECHO_RSP, request.MessageID, answer);
    if (condition.bad())
        return fail_broken(association, condition, "answering C-ECHO", error);
    if (answer->status == 0)
        return 0;
    return error_set(error, -EREMOTEIO, CODE_ECHO_FAILED, "%s answered C-ECHO with status 0x%04X.",
                     association.name.c_str(), static_cast<unsigned>(answer->status));
}

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
    rc = header_guard("", error, [&] { return echo(*association, &answer, error); });
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    if (rc == 0 && greeting) {
        const char *version = association->asc->params->theirImplementationVersionName;
        snprintf(greeting, greeting_size, "%s answered C-ECHO in %.1f ms%s%s%s",
                 association->name.c_str(), taken.count(), *version ? " (" : "", version,
                 *version ? ")" : "");
    }
    dicom_release(association);
    return rc;
}

/* -------------------------------------------------------------------- storage commitment --- */

static OFCondition
describe_request(DcmDataset &dataset, const char *transaction_uid,
                 const struct dicom_reference *references, size_t count)
{
    OFCondition condition = dataset.putAndInsertString(DCM_TransactionUID, transaction_uid);
    for (size_t i = 0; i < count && condition.good(); i++) {
        DcmItem *item = nullptr;
        condition = dataset.findOrCreateSequenceItem(DCM_ReferencedSOPSequence, item, -2);
        if (condition.good())
            condition =
                item->putAndInsertString(DCM_ReferencedSOPClassUID, references[i].sop_class);
        if (condition.good())
            condition =
                item->putAndInsertString(DCM_ReferencedSOPInstanceUID, references[i].sop_instance);
    }
    return condition;
}

static int
scu_commit(struct dicom_association &association, DcmDataset &dataset, struct dicom_answer *answer,
           struct error *error)
{
    const T_ASC_PresentationContextID context =
        find_context(association, DICOM_COMMITMENT_CLASS, nullptr);
    if (context == 0)
        return error_set(error, -EPROTONOSUPPORT, CODE_COMMIT_UNSUPPORTED,
                         "%s has the instance but offers no storage commitment. Do not ask it for "
                         "any.",
                         association.name.c_str());
    T_DIMSE_Message message = {};
    message.CommandField = DIMSE_N_ACTION_RQ;
    T_DIMSE_N_ActionRQ &request = message.msg.NActionRQ;
    request.MessageID = association.asc->nextMsgID++;
    header_copy(request.RequestedSOPClassUID, DICOM_COMMITMENT_CLASS);
    header_copy(request.RequestedSOPInstanceUID, DICOM_COMMITMENT_INSTANCE);
    request.ActionTypeID = 1; /* request storage commitment */
    request.DataSetType = DIMSE_DATASET_PRESENT;
    OFCondition condition = DIMSE_sendMessageUsingMemoryData(association.asc, context, &message,
                                                             nullptr, &dataset, nullptr, nullptr);
    if (condition.good())
        condition = await_response(association, DIMSE_N_ACTION_RSP, request.MessageID, answer);
    if (condition.bad())
        return fail_broken(association, condition, "taking the commitment request", error);
    if (answer->status == 0 || dicom_outcome_of(CODE_NONE, answer) == DICOM_SENT)
        return 0;
    return error_set(error, -EREMOTEIO, CODE_COMMIT_FAILED,
                     "%s has the instance but answered the request for storage commitment with "
                     "status 0x%04X.",
                     association.name.c_str(), static_cast<unsigned>(answer->status));
}

int
dicom_commit(struct dicom_association *association, const char *transaction_uid,
             const struct dicom_reference *references, size_t count, struct dicom_answer *answer,
             struct error *error)
{
    clear_answer(answer);
    return header_guard("", error, [&] {
        DcmDataset dataset;
        if (describe_request(dataset, transaction_uid, references, count).bad())
            return error_set(error, -EINVAL, CODE_COMMIT_FAILED,
                             "The commitment request cannot be made: a UID is invalid.");
        return scu_commit(*association, dataset, answer, error);
    });
}

/*
 * scu.cc - the calling side, on DCMTK's association layer.
 *
 * DCMTK negotiates, frames and encodes commands. What it would get wrong is done here: Nagle is off
 * and timeouts are set on each socket by itself (DCMTK's are of the process), and a data set goes
 * out as the bytes of its file, where DCMTK would parse it and encode it anew.
 */
#include "scu.h"

#include "commitment.hh"
#include "header.hh"
#include "network_ready.hh"
#include "tls.hh"
#include "uid.h"

#include <dcmtk/dcmdata/dcistrmf.h>
#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmnet/assoc.h>
#include <dcmtk/dcmnet/cond.h>
#include <dcmtk/dcmnet/dcmlayer.h>
#include <dcmtk/dcmnet/dcmtrans.h>
#include <dcmtk/dcmnet/dimse.h>
#include <dcmtk/dcmtls/tlslayer.h>

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cmath>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------------ the transport --- */

static void
set_socket_timeout(int socket, double seconds)
{
    struct timeval limit = {};
    limit.tv_sec = static_cast<time_t>(std::ceil(std::max(seconds, 1.0)));
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* Hands DCMTK its connections, and keeps hold of the socket. One association's own. */
class PeerLayer : public DcmTransportLayer
{
  public:
    PeerLayer(struct dicom_tls *security, double timeout) : tls(security), seconds(timeout)
    {
    }

    DcmTransportConnection *createConnection(DcmNativeSocketType opened, OFBool secure) override
    {
        DcmTransportConnection *connection =
            tls ? tls_layer(tls).createConnection(opened, secure)
                : DcmTransportLayer::createConnection(opened, secure);
        const int on = 1;
        setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        set_socket_timeout(opened, seconds); /* after DCMTK's constructor set its own */
        if (connection)
            socket = opened;
        return connection;
    }

    int socket = -1;

  private:
    struct dicom_tls *const tls;
    const double seconds;
};

struct dicom_association {
    explicit dicom_association(const struct dicom_peer &peer)
        : name(std::string(peer.called_ae) + " at " + peer.host + ":" + std::to_string(peer.port)),
          acse_seconds(peer.acse_seconds), dimse_seconds(peer.dimse_seconds),
          layer(peer.tls, peer.acse_seconds)
    {
    }

    dicom_association(const dicom_association &) = delete;
    dicom_association &operator=(const dicom_association &) = delete;

    ~dicom_association()
    {
        if (asc)
            ASC_destroyAssociation(&asc);
        if (network)
            ASC_dropNetwork(&network);
    }

    const std::string name; /* for sentences */
    const double acse_seconds, dimse_seconds;
    PeerLayer layer;
    T_ASC_Network *network = nullptr;
    T_ASC_Association *asc = nullptr;
    bool open = false;
    std::deque<struct commitment> reports; /* that came while something else was waited for */
    struct commitment given;               /* the one handed out last */
};

/* DCMTK counts whole seconds, and 0 means something else to it. */
static int
whole_seconds(double seconds)
{
    return static_cast<int>(std::ceil(std::clamp(seconds, 1.0, 86400.0)));
}

static void
clear_answer(struct dicom_answer *answer)
{
    answer->status = answer->reject_result = answer->reject_source = answer->reject_reason = -1;
}

/* Ends an association that cannot go on; the peer is told if it still listens. */
static void
break_off(struct dicom_association &association)
{
    if (association.open)
        ASC_abortAssociation(association.asc);
    association.open = false;
}

static int
fail_broken(struct dicom_association &association, const OFCondition &condition, const char *doing,
            struct dicom_fault *fault)
{
    break_off(association);
    return fault_set(fault, -ECONNABORTED, "PEER_ABORTED", nullptr, nullptr,
                     "%s broke off while %s (%s). Deliveries are tried again.",
                     association.name.c_str(), doing, condition.text());
}

/* --------------------------------------------------------------------------- connecting --- */

/* DCMTK resolves names through a call that serves one thread at a time and takes short ones only.
 */
static int
resolve(const struct dicom_peer &peer, char address[INET_ADDRSTRLEN], struct dicom_fault *fault)
{
    struct addrinfo hints = {}, *found = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(peer.host, nullptr, &hints, &found);
    if (error)
        return fault_set(
            fault, -EHOSTUNREACH, "PEER_UNREACHABLE", nullptr, nullptr,
            "The host %s has no IPv4 address (%s). Correct the destination or the name "
            "service.",
            peer.host, gai_strerror(error));
    struct sockaddr_in socket_address = {};
    memcpy(&socket_address, found->ai_addr, sizeof(socket_address));
    inet_ntop(AF_INET, &socket_address.sin_addr, address, INET_ADDRSTRLEN);
    freeaddrinfo(found);
    return 0;
}

static OFCondition
add_contexts(T_ASC_Parameters *parameters, const struct dicom_context *contexts, size_t count)
{
    OFCondition condition = EC_Normal;
    for (size_t i = 0; i < count && condition.good(); i++) {
        const char *syntaxes[] = {contexts[i].transfer_syntax};
        condition = ASC_addPresentationContext(parameters,
                                               static_cast<T_ASC_PresentationContextID>(2 * i + 1),
                                               contexts[i].sop_class, syntaxes, 1);
    }
    return condition;
}

/* Everything of the request but the sending; the network is the association's. */
static OFCondition
prepare(struct dicom_association &association, const struct dicom_peer &peer, const char *address,
        const struct dicom_context *contexts, size_t count, T_ASC_Parameters *&parameters)
{
    network_ready();
    OFCondition condition = ASC_initializeNetwork(
        NET_REQUESTOR, 0, whole_seconds(peer.acse_seconds), &association.network);
    if (condition.good())
        condition = ASC_setTransportLayer(association.network, &association.layer, 0);
    if (condition.good())
        condition = ASC_createAssociationParameters(&parameters, static_cast<long>(peer.max_pdu));
    if (condition.bad())
        return condition;
    const std::string called = std::string(address) + ":" + std::to_string(peer.port);
    header_copy(parameters->ourImplementationClassUID, UID_IMPLEMENTATION_CLASS);
    header_copy(parameters->ourImplementationVersionName, "NOCTULE_" NOCTULE_VERSION);
    ASC_setAPTitles(parameters, peer.calling_ae, peer.called_ae, nullptr);
    ASC_setPresentationAddresses(parameters, "localhost", called.c_str());
    ASC_setTransportLayerType(parameters, peer.tls != nullptr);
    return add_contexts(parameters, contexts, count);
}

static int
fail_rejected(struct dicom_association &association, struct dicom_answer *answer,
              struct dicom_fault *fault)
{
    T_ASC_RejectParameters rejected;
    ASC_getRejectParameters(association.asc->params, &rejected);
    answer->reject_result = rejected.result;
    answer->reject_source = rejected.source;
    answer->reject_reason = rejected.reason & 0xff; /* DCMTK puts the source above it */
    const bool busy = rejected.result == ASC_RESULT_REJECTEDTRANSIENT;
    const char *why = "";
    if (rejected.reason == ASC_REASON_SU_CALLINGAETITLENOTRECOGNIZED)
        why = ": it does not know our AE title";
    else if (rejected.reason == ASC_REASON_SU_CALLEDAETITLENOTRECOGNIZED)
        why = ": it has another AE title";
    return fault_set(fault, -ECONNREFUSED, busy ? "PEER_BUSY" : "PEER_REJECTED", nullptr, nullptr,
                     "%s rejected the association %s (result %d, source %d, reason %d)%s.%s",
                     association.name.c_str(), busy ? "for now" : "for good", answer->reject_result,
                     answer->reject_source, answer->reject_reason, why,
                     busy ? " Deliveries are tried again."
                          : " Correct the destination or the peer.");
}

static int
fail_request(struct dicom_association &association, const OFCondition &condition,
             struct dicom_answer *answer, struct dicom_fault *fault)
{
    if (condition == DUL_ASSOCIATIONREJECTED)
        return fail_rejected(association, answer, fault);
    const char *name = association.name.c_str();
    if (association.layer.socket < 0)
        return fault_set(fault, -EHOSTUNREACH, "PEER_UNREACHABLE", nullptr, nullptr,
                         "There is no connection to %s (%s). Deliveries are tried again.", name,
                         condition.text());
    if (condition.module() == OFM_dcmtls ||
        (condition.module() == OFM_dcmnet && condition.code() == DULC_TLSERROR))
        return fault_set(fault, -EPROTO, "TLS_FAILED", nullptr, nullptr,
                         "TLS with %s failed (%s). See to the certificates of both sides.", name,
                         condition.text());
    return fault_set(
        fault, -ECONNABORTED, "PEER_ABORTED", nullptr, nullptr,
        "%s gave no answer to the association request (%s). Deliveries are tried again.", name,
        condition.text());
}

/* DCMTK takes another PDU than the answer for one that says nothing. */
static bool
was_negotiated(T_ASC_Parameters *parameters)
{
    const int count = ASC_countPresentationContexts(parameters);
    for (int i = 0; i < count; i++) {
        T_ASC_PresentationContext context;
        if (ASC_getPresentationContext(parameters, i, &context).good() &&
            context.resultReason != ASC_P_NOTYETNEGOTIATED)
            return true;
    }
    return false;
}

static int
request(struct dicom_association &association, const struct dicom_peer &peer,
        const struct dicom_context *contexts, size_t count, struct dicom_answer *answer,
        struct dicom_fault *fault)
{
    char address[INET_ADDRSTRLEN];
    const int error = resolve(peer, address, fault);
    if (error)
        return error;
    T_ASC_Parameters *parameters = nullptr;
    OFCondition condition = prepare(association, peer, address, contexts, count, parameters);
    if (condition.good()) {
        dcmConnectionTimeout.set(whole_seconds(peer.connect_seconds)); /* of the process; scu.h */
        condition =
            ASC_requestAssociation(association.network, parameters, &association.asc, nullptr,
                                   nullptr, DUL_NOBLOCK, whole_seconds(peer.acse_seconds));
    }
    if (!association.asc && parameters)
        ASC_destroyAssociationParameters(&parameters);
    if (condition.bad())
        return fail_request(association, condition, answer, fault);
    association.open = true;
    set_socket_timeout(association.layer.socket, peer.dimse_seconds);
    if (ASC_countAcceptedPresentationContexts(association.asc->params) > 0)
        return 0;
    if (!was_negotiated(association.asc->params))
        return fail_broken(association, DUL_UNEXPECTEDPDU, "negotiating", fault);
    return fault_set(fault, -EPROTONOSUPPORT, "NO_PRESENTATION_CONTEXT", nullptr, nullptr,
                     "%s accepts nothing of what is to be sent. Let it accept the SOP class, or "
                     "name a fallback.",
                     association.name.c_str());
}

int
dicom_connect(const struct dicom_peer *peer, const struct dicom_context *contexts, size_t count,
              struct dicom_association **association, struct dicom_answer *answer,
              struct dicom_fault *fault)
{
    *association = nullptr;
    clear_answer(answer);
    return header_guard(peer->host, fault, [&] {
        auto made = std::make_unique<dicom_association>(*peer);
        const int error = request(*made, *peer, contexts, count, answer, fault);
        if (error == 0)
            *association = made.release();
        else if (made->open)
            dicom_release(made.release());
        return error;
    });
}

/* The context accepted for a class; its own syntax is asked for, or (nullptr) any. 0: none. */
static T_ASC_PresentationContextID
find_context(const struct dicom_association &association, const char *sop_class, const char *syntax)
{
    T_ASC_Parameters *parameters = association.asc->params;
    const int count = ASC_countPresentationContexts(parameters);
    for (int i = 0; i < count; i++) {
        T_ASC_PresentationContext context;
        if (ASC_getPresentationContext(parameters, i, &context).good() &&
            context.resultReason == ASC_P_ACCEPTANCE &&
            strcmp(context.abstractSyntax, sop_class) == 0 &&
            (!syntax || strcmp(context.acceptedTransferSyntax, syntax) == 0))
            return context.presentationContextID;
    }
    return 0;
}

bool
dicom_accepts(const struct dicom_association *association, const char *sop_class)
{
    return association->open && find_context(*association, sop_class, nullptr) != 0;
}

bool
dicom_is_open(const struct dicom_association *association)
{
    return association->open;
}

int
dicom_descriptor(const struct dicom_association *association)
{
    return association->open ? association->layer.socket : -1;
}

static void
end(struct dicom_association *association, bool politely)
{
    if (association->open) {
        set_socket_timeout(association->layer.socket, association->acse_seconds);
        if (!politely || ASC_releaseAssociation(association->asc).bad())
            ASC_abortAssociation(association->asc);
    }
    delete association;
}

void
dicom_release(struct dicom_association *association)
{
    if (association)
        end(association, true);
}

void
dicom_abort(struct dicom_association *association)
{
    if (association)
        end(association, false);
}

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
            association.asc, DIMSE_NONBLOCKING, whole_seconds(association.dimse_seconds), &context,
            &received, nullptr, nullptr);
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
    return DIMSE_receiveCommand(association.asc, DIMSE_NONBLOCKING, whole_seconds(seconds), context,
                                message, nullptr);
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

/* The message ID that a response answers and its status; false for what is no such response. */
static bool
response_status(const T_DIMSE_Message &message, T_DIMSE_Command expected, uint16_t message_id,
                T_DIMSE_DataSetType &data_set, int32_t &status)
{
    if (message.CommandField != expected)
        return false;
    const T_DIMSE_C_EchoRSP &echo = message.msg.CEchoRSP;
    const T_DIMSE_C_StoreRSP &store = message.msg.CStoreRSP;
    const T_DIMSE_N_ActionRSP &action = message.msg.NActionRSP;
    uint16_t answered;
    if (expected == DIMSE_C_ECHO_RSP) {
        answered = echo.MessageIDBeingRespondedTo;
        data_set = echo.DataSetType;
        status = echo.DimseStatus;
    } else if (expected == DIMSE_C_STORE_RSP) {
        answered = store.MessageIDBeingRespondedTo;
        data_set = store.DataSetType;
        status = store.DimseStatus;
    } else {
        answered = action.MessageIDBeingRespondedTo;
        data_set = action.DataSetType;
        status = action.DimseStatus;
    }
    return answered == message_id;
}

/* Waits for the response to a request, taking reports that come before it. */
static OFCondition
await_response(struct dicom_association &association, T_DIMSE_Command expected, uint16_t message_id,
               struct dicom_answer *answer)
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
                                            whole_seconds(left.count()), &bytes, &count);
        if (condition.good())
            answer->status = status;
        return condition;
    }
}

/* -------------------------------------------------------------------------------- C-ECHO --- */

static int
echo(struct dicom_association &association, struct dicom_answer *answer, struct dicom_fault *fault)
{
    const T_ASC_PresentationContextID context =
        association.open ? find_context(association, DICOM_VERIFICATION_CLASS, nullptr)
                         : static_cast<T_ASC_PresentationContextID>(0);
    if (context == 0)
        return fault_set(fault, -EPROTONOSUPPORT, "NO_PRESENTATION_CONTEXT", nullptr, nullptr,
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
        return fail_broken(association, condition, "answering C-ECHO", fault);
    if (answer->status == 0)
        return 0;
    return fault_set(fault, -EREMOTEIO, "ECHO_FAILED", nullptr, nullptr,
                     "%s answered C-ECHO with status 0x%04X.", association.name.c_str(),
                     static_cast<unsigned>(answer->status));
}

int
dicom_echo(const struct dicom_peer *peer, char *greeting, size_t greeting_size,
           struct dicom_fault *fault)
{
    const struct dicom_context contexts[] = {{DICOM_VERIFICATION_CLASS, DICOM_IMPLICIT_LITTLE},
                                             {DICOM_VERIFICATION_CLASS, DICOM_EXPLICIT_LITTLE}};
    const auto start = std::chrono::steady_clock::now();
    struct dicom_association *association;
    struct dicom_answer answer;
    if (greeting_size > 0)
        greeting[0] = '\0';
    int error = dicom_connect(peer, contexts, 2, &association, &answer, fault);
    if (error)
        return error;
    clear_answer(&answer);
    error = header_guard("", fault, [&] { return echo(*association, &answer, fault); });
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    if (error == 0 && greeting) {
        const char *version = association->asc->params->theirImplementationVersionName;
        snprintf(greeting, greeting_size, "%s answered C-ECHO in %.1f ms%s%s%s",
                 association->name.c_str(), taken.count(), *version ? " (" : "", version,
                 *version ? ")" : "");
    }
    dicom_release(association);
    return error;
}

/* ------------------------------------------------------------------------------- C-STORE --- */

/* An open Part 10 file. */
struct part10 {
    const char *path;
    int fd = -1;
    off_t offset = 0; /* of the data set */
    off_t size = 0;
    std::string sop_class, sop_instance, syntax;

    explicit part10(const char *name) : path(name)
    {
    }

    part10(const part10 &) = delete;
    part10 &operator=(const part10 &) = delete;

    ~part10()
    {
        if (fd >= 0)
            close(fd);
    }
};

static int
fail_unreadable(const struct part10 &file, int error, struct dicom_fault *fault)
{
    return fault_set(fault, error, "FILE_UNREADABLE", file.path, nullptr, "%s cannot be read (%s).",
                     fault_base_name(file.path), strerror(-error));
}

static int
open_part10(struct part10 &file, struct dicom_fault *fault)
{
    struct stat status;
    file.fd = open(file.path, O_RDONLY | O_CLOEXEC);
    if (file.fd < 0 || fstat(file.fd, &status) < 0)
        return fail_unreadable(file, -errno, fault);
    if (!S_ISREG(status.st_mode))
        return fail_unreadable(file, -EINVAL, fault);
    file.size = status.st_size;
    DcmInputFileStream stream(OFFilename(file.path), 0);
    DcmMetaInfo meta;
    meta.transferInit();
    OFCondition condition = stream.status();
    if (condition.good())
        condition = meta.read(stream, EXS_Unknown, EGL_noChange, DCM_MaxReadLength);
    meta.transferEnd();
    file.offset = static_cast<off_t>(stream.tell());
    file.sop_class = header_text(meta, DCM_MediaStorageSOPClassUID);
    file.sop_instance = header_text(meta, DCM_MediaStorageSOPInstanceUID);
    file.syntax = header_text(meta, DCM_TransferSyntaxUID);
    if (condition.good() && !file.sop_class.empty() && !file.sop_instance.empty() &&
        !file.syntax.empty() && file.offset < file.size && (file.size - file.offset) % 2 == 0)
        return 0;
    return fault_set(fault, -EBADMSG, "NOT_DICOM", file.path, nullptr,
                     "%s is no whole DICOM file with a file meta header.",
                     fault_base_name(file.path));
}

/* Fills the buffer from the file: 0 or -errno (-ENODATA: the file became shorter). */
static int
read_part(const struct part10 &file, off_t at, unsigned char *buffer, size_t size)
{
    while (size > 0) {
        const ssize_t got = pread(file.fd, buffer, size, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ENODATA;
        buffer += got;
        at += got;
        size -= static_cast<size_t>(got);
    }
    return 0;
}

static OFCondition
send_pdv(struct dicom_association &association, T_ASC_PresentationContextID context,
         DUL_DATAPDV type, unsigned char *bytes, size_t size, bool last)
{
    DUL_PDV pdv = {};
    pdv.fragmentLength = size;
    pdv.presentationContextID = context;
    pdv.pdvType = type;
    pdv.lastPDV = last;
    pdv.data = bytes;
    DUL_PDVLIST list = {};
    list.count = 1;
    list.pdv = &pdv;
    return DUL_WritePDVs(&association.asc->DULassociation, &list);
}

/* DCMTK sends no request that promises a data set without one that it has parsed. */
static OFCondition
send_store_command(struct dicom_association &association, T_ASC_PresentationContextID context,
                   const T_DIMSE_C_StoreRQ &request)
{
    unsigned char bytes[512];
    DcmDataset command;
    command.putAndInsertString(DCM_AffectedSOPClassUID, request.AffectedSOPClassUID);
    command.putAndInsertUint16(DCM_CommandField, DIMSE_C_STORE_RQ);
    command.putAndInsertUint16(DCM_MessageID, request.MessageID);
    command.putAndInsertUint16(DCM_Priority, static_cast<Uint16>(request.Priority));
    command.putAndInsertUint16(DCM_CommandDataSetType, DIMSE_DATASET_PRESENT);
    command.putAndInsertString(DCM_AffectedSOPInstanceUID, request.AffectedSOPInstanceUID);
    DcmOutputBufferStream stream(bytes, sizeof(bytes));
    command.transferInit();
    OFCondition condition = command.write(stream, EXS_LittleEndianImplicit, EET_ExplicitLength,
                                          nullptr, EGL_withGL, EPD_withoutPadding);
    command.transferEnd();
    void *start = nullptr;
    offile_off_t size = 0;
    stream.flushBuffer(start, size);
    if (condition.bad())
        return condition;
    return send_pdv(association, context, DUL_COMMANDPDV, static_cast<unsigned char *>(start),
                    static_cast<size_t>(size), true);
}

/* The data set's bytes, a PDU at a time. `error` is of reading, the result of sending. */
static OFCondition
send_bytes(struct dicom_association &association, T_ASC_PresentationContextID context,
           const struct part10 &file, int &error)
{
    unsigned char *buffer = association.asc->sendPDVBuffer;
    const size_t room = static_cast<size_t>(association.asc->sendPDVLength) & ~1ul;
    off_t at = file.offset;
    while (at < file.size) {
        const size_t part = std::min(static_cast<size_t>(file.size - at), room);
        error = read_part(file, at, buffer, part);
        if (error)
            return EC_Normal;
        at += static_cast<off_t>(part);
        const OFCondition condition =
            send_pdv(association, context, DUL_DATASETPDV, buffer, part, at == file.size);
        if (condition.bad())
            return condition;
    }
    return EC_Normal;
}

/* Parses the file, but for the long values, which are read as they are sent. */
static OFCondition
send_transcoded(struct dicom_association &association, T_ASC_PresentationContextID context,
                T_DIMSE_Message &message, const struct part10 &file)
{
    DcmFileFormat format;
    const OFCondition condition = format.loadFile(OFFilename(file.path));
    if (condition.bad())
        return condition;
    return DIMSE_sendMessageUsingMemoryData(association.asc, context, &message, nullptr,
                                            format.getDataset(), nullptr, nullptr);
}

static OFCondition
send_unchanged(struct dicom_association &association, T_ASC_PresentationContextID context,
               const T_DIMSE_Message &message, const struct part10 &file, int &error)
{
    const OFCondition condition = send_store_command(association, context, message.msg.CStoreRQ);
    return condition.good() ? send_bytes(association, context, file, error) : condition;
}

static bool
is_uncompressed(const std::string &syntax)
{
    return syntax == DICOM_EXPLICIT_LITTLE || syntax == DICOM_IMPLICIT_LITTLE;
}

/* The context to send the file in; *same tells whether that is in its own transfer syntax. */
static T_ASC_PresentationContextID
choose_context(const struct dicom_association &association, const struct part10 &file, bool *same)
{
    const char *sop_class = file.sop_class.c_str();
    T_ASC_PresentationContextID context =
        association.open ? find_context(association, sop_class, file.syntax.c_str())
                         : static_cast<T_ASC_PresentationContextID>(0);
    *same = context != 0;
    if (context == 0 && association.open && is_uncompressed(file.syntax)) {
        context = find_context(association, sop_class, DICOM_EXPLICIT_LITTLE);
        if (context == 0)
            context = find_context(association, sop_class, DICOM_IMPLICIT_LITTLE);
    }
    return context;
}

static int
judge_store(const struct dicom_association &association, const struct dicom_answer &answer,
            struct dicom_fault *fault)
{
    const enum dicom_outcome outcome = dicom_outcome_of("", &answer);
    if (outcome == DICOM_SENT)
        return 0;
    const bool final = outcome == DICOM_PERMANENT;
    return fault_set(fault, -EREMOTEIO, final ? "STORE_REFUSED" : "STORE_FAILED", nullptr, nullptr,
                     "%s answered C-STORE with status 0x%04X.%s", association.name.c_str(),
                     static_cast<unsigned>(answer.status),
                     final ? " It would do so again." : " Deliveries are tried again.");
}

static int
store(struct dicom_association &association, const char *path, struct dicom_answer *answer,
      struct dicom_fault *fault)
{
    struct part10 file(path);
    int error = open_part10(file, fault);
    if (error)
        return error;
    bool same;
    const T_ASC_PresentationContextID context = choose_context(association, file, &same);
    if (context == 0)
        return fault_set(fault, -EPROTONOSUPPORT, "NO_PRESENTATION_CONTEXT", path, nullptr,
                         "%s does not accept the SOP class %s. Let it accept that class, or name a "
                         "fallback.",
                         association.name.c_str(), file.sop_class.c_str());
    T_DIMSE_Message message = {};
    message.CommandField = DIMSE_C_STORE_RQ;
    T_DIMSE_C_StoreRQ &request = message.msg.CStoreRQ;
    request.MessageID = association.asc->nextMsgID++;
    header_copy(request.AffectedSOPClassUID, file.sop_class);
    header_copy(request.AffectedSOPInstanceUID, file.sop_instance);
    request.DataSetType = DIMSE_DATASET_PRESENT;
    request.Priority = DIMSE_PRIORITY_MEDIUM;
    OFCondition condition = same ? send_unchanged(association, context, message, file, error)
                                 : send_transcoded(association, context, message, file);
    if (error) {
        break_off(association);
        return fail_unreadable(file, error, fault);
    }
    if (condition.good())
        condition = await_response(association, DIMSE_C_STORE_RSP, request.MessageID, answer);
    if (condition.bad())
        return fail_broken(association, condition, "storing", fault);
    return judge_store(association, *answer, fault);
}

int
dicom_store_file(struct dicom_association *association, const char *path,
                 struct dicom_answer *answer, struct dicom_fault *fault)
{
    clear_answer(answer);
    return header_guard(path, fault, [&] { return store(*association, path, answer, fault); });
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
commit(struct dicom_association &association, DcmDataset &dataset, struct dicom_answer *answer,
       struct dicom_fault *fault)
{
    const T_ASC_PresentationContextID context =
        association.open ? find_context(association, DICOM_COMMITMENT_CLASS, nullptr)
                         : static_cast<T_ASC_PresentationContextID>(0);
    if (context == 0)
        return fault_set(fault, -EPROTONOSUPPORT, "COMMIT_UNSUPPORTED", nullptr, nullptr,
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
        return fail_broken(association, condition, "taking the commitment request", fault);
    if (answer->status == 0 || dicom_outcome_of("", answer) == DICOM_SENT)
        return 0;
    return fault_set(fault, -EREMOTEIO, "COMMIT_FAILED", nullptr, nullptr,
                     "%s has the instance but answered the request for storage commitment with "
                     "status 0x%04X.",
                     association.name.c_str(), static_cast<unsigned>(answer->status));
}

int
dicom_commit(struct dicom_association *association, const char *transaction_uid,
             const struct dicom_reference *references, size_t count, struct dicom_answer *answer,
             struct dicom_fault *fault)
{
    clear_answer(answer);
    return header_guard("", fault, [&] {
        DcmDataset dataset;
        if (describe_request(dataset, transaction_uid, references, count).bad())
            return fault_set(fault, -EINVAL, "COMMIT_FAILED", nullptr, nullptr,
                             "The commitment request cannot be made: a UID is invalid.");
        return commit(*association, dataset, answer, fault);
    });
}

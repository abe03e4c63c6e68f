#include "association.hh"

#include "fault.h"
#include "network_ready.hh"
#include "storage_class.h"
#include "tls.hh"
#include "transfer.h"
#include "uid.h"

#include <dcmtk/dcmdata/dcuid.h>
#include <dcmtk/dcmnet/cond.h>
#include <dcmtk/dcmnet/dul.h>
#include <dcmtk/ofstd/ofstd.h>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace
{

/* A-ABORT sources (PS3.8 9.3.8). */
constexpr uint8_t abort_by_user = 0;
constexpr uint8_t abort_by_provider = 2;

constexpr size_t pdu_head_size = 6;  /* type, a reserved byte, length */
constexpr size_t pdu_value_size = 4; /* of those that release and abort */
constexpr size_t pdv_length_size = 4;
constexpr size_t pdv_head_size = 6; /* length, context, message control header */
constexpr uint8_t pdv_command = 1;
constexpr uint8_t pdv_last = 2;
constexpr long min_peer_pdu = 64; /* what a peer's maximum below this is taken for */

uint32_t
get_u32(const uint8_t *bytes)
{
    return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
           static_cast<uint32_t>(bytes[2]) << 8 | bytes[3];
}

void
put_u32(uint8_t *bytes, size_t number)
{
    for (int i = 3; i >= 0; i--, number >>= 8)
        bytes[i] = static_cast<uint8_t>(number);
}

/*
 * DCMTK takes an accepted socket only through a global variable. It is held under this lock from
 * the time it is set until DCMTK has read it, which is when it asks for the connection: nothing is
 * waited for in between.
 */
std::mutex handover_mutex;

class Handover : public DcmTransportLayer
{
  public:
    Handover(int fd, SSL *ssl, Line &line) : lock_(handover_mutex), ssl_(ssl, SSL_free), line_(line)
    {
        dcmExternalSocketHandle.set(fd);
    }

    ~Handover() override
    {
        release();
    }

    DcmTransportConnection *createConnection(DcmNativeSocketType fd, OFBool) override
    {
        release();
        taken = true;
        return new Connection(fd, ssl_.release(), line_);
    }

    bool taken = false; /* the socket is the connection's */

  private:
    void release()
    {
        if (!lock_.owns_lock())
            return;
        dcmExternalSocketHandle.set(-1);
        lock_.unlock();
    }

    std::unique_lock<std::mutex> lock_;
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
    Line &line_;
};

/* Without blanks around it, and fit for a log line. */
template <size_t size>
void
copy_clean(char (&to)[size], const char *from)
{
    from += std::strspn(from, " ");
    size_t length = 0;
    for (; from[length] && length < size - 1; length++)
        to[length] = from[length] >= ' ' && from[length] <= '~' ? from[length] : '?';
    while (length > 0 && to[length - 1] == ' ')
        length--;
    to[length] = '\0';
}

/* Numeric; an IPv4 peer of an IPv6 socket in its IPv4 form. */
void
copy_host(char (&to)[DICOM_HOST_SIZE], int fd)
{
    static const char mapped[] = "::ffff:";
    struct sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    char host[NI_MAXHOST];
    if (getpeername(fd, reinterpret_cast<struct sockaddr *>(&address), &size) != 0 ||
        getnameinfo(reinterpret_cast<struct sockaddr *>(&address), size, host, sizeof(host),
                    nullptr, 0, NI_NUMERICHOST) != 0)
        return;
    const bool is_mapped = std::strncmp(host, mapped, sizeof(mapped) - 1) == 0;
    copy_clean(to, host + (is_mapped ? sizeof(mapped) - 1 : 0));
}

bool
is_plain(const char *transfer_syntax)
{
    const struct transfer_syntax *syntax = transfer_find(transfer_syntax);
    return syntax && syntax->codec == TRANSFER_NATIVE && !syntax->deflated;
}

bool
is_decodable(const char *transfer_syntax)
{
    return transfer_find(transfer_syntax) != nullptr;
}

/* The first proposed one that will do; the sender's order is its preference. */
const char *
choose(const T_ASC_PresentationContext &context, bool (*will_do)(const char *))
{
    for (unsigned i = 0; i < context.transferSyntaxCount; i++)
        if (will_do(context.proposedTransferSyntaxes[i]))
            return context.proposedTransferSyntaxes[i];
    return nullptr;
}

} // namespace

Association::Association(const struct dicom_serve_options &options) : options_(options)
{
    network_ready();
    line_.silence = std::chrono::seconds(options.dimse_seconds);
    line_.idle_silence = std::chrono::seconds(options.idle_seconds);
    line_.stop_fd = options.stop_fd;
}

Association::~Association()
{
    ASC_destroyAssociation(&association_);
    ASC_dropNetwork(&network_);
}

int
Association::hand_over(int fd)
{
    SSL *ssl = nullptr;
    if (options_.tls) {
        ssl = SSL_new(tls_layer(options_.tls).getNativeHandle());
        if (!ssl || SSL_set_fd(ssl, fd) != 1) {
            SSL_free(ssl);
            (void)close(fd);
            return -ENOMEM;
        }
    }
    Handover handover(fd, ssl, line_);
    OFCondition condition =
        ASC_initializeNetwork(NET_ACCEPTOR, 0, static_cast<int>(options_.acse_seconds), &network_);
    if (condition.good())
        condition = ASC_setTransportLayer(network_, &handover, 0);
    if (condition.good())
        condition = ASC_receiveAssociation(network_, &association_, options_.max_pdu, nullptr,
                                           nullptr, options_.tls != nullptr, DUL_BLOCK, 0);
    if (!handover.taken) {
        (void)close(fd);
        line_.error = -ECONNRESET; /* gone before DCMTK could ask for its address */
    }
    return condition.good() ? 0 : outcome(condition);
}

int
Association::receive(int fd)
{
    copy_host(request_.host, fd);
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        const int error = -errno;
        (void)close(fd);
        return error;
    }
    line_.bounded = true;
    line_.deadline = Line::Clock::now() + std::chrono::seconds(options_.acse_seconds);
    const int error = hand_over(fd);
    if (error)
        return error;
    line_.bounded = false;
    read_request();
    return refuse_context_name() ? violation("its application context is not DICOM's") : 0;
}

void
Association::read_request()
{
    T_ASC_Parameters &parameters = *association_->params;
    copy_clean(request_.calling_ae, parameters.DULparams.callingAPTitle);
    copy_clean(request_.called_ae, parameters.DULparams.calledAPTitle);
    copy_clean(request_.implementation_uid, parameters.theirImplementationClassUID);
    copy_clean(request_.implementation_version, parameters.theirImplementationVersionName);
    if (line_.connection)
        line_.connection->describe_peer(request_);
    OFStandard::strlcpy(parameters.ourImplementationClassUID, UID_IMPLEMENTATION_CLASS,
                        sizeof(parameters.ourImplementationClassUID));
    OFStandard::strlcpy(parameters.ourImplementationVersionName, "NOCTULE_" NOCTULE_VERSION,
                        sizeof(parameters.ourImplementationVersionName));
}

bool
Association::refuse_context_name()
{
    if (std::strcmp(association_->params->DULparams.applicationContextName,
                    UID_StandardApplicationContext) == 0)
        return false;
    (void)send_reject(ASC_RESULT_REJECTEDPERMANENT, ASC_SOURCE_SERVICEUSER,
                      ASC_REASON_SU_APPCONTEXTNAMENOTSUPPORTED);
    return true;
}

int
Association::send_reject(T_ASC_RejectParametersResult result, T_ASC_RejectParametersSource source,
                         T_ASC_RejectParametersReason reason)
{
    const T_ASC_RejectParameters parameters = {result, source, reason};
    (void)ASC_rejectAssociation(association_, &parameters);
    if (line_.connection)
        line_.connection->linger();
    return -EACCES;
}

int
Association::reject(enum dicom_admission admission)
{
    switch (admission) {
    case DICOM_REFUSE_CALLING:
        return send_reject(ASC_RESULT_REJECTEDPERMANENT, ASC_SOURCE_SERVICEUSER,
                           ASC_REASON_SU_CALLINGAETITLENOTRECOGNIZED);
    case DICOM_REFUSE_CALLED:
        return send_reject(ASC_RESULT_REJECTEDPERMANENT, ASC_SOURCE_SERVICEUSER,
                           ASC_REASON_SU_CALLEDAETITLENOTRECOGNIZED);
    case DICOM_REFUSE_BUSY:
        return send_reject(ASC_RESULT_REJECTEDTRANSIENT,
                           ASC_SOURCE_SERVICEPROVIDER_PRESENTATION_RELATED,
                           ASC_REASON_SP_PRES_LOCALLIMITEXCEEDED);
    case DICOM_ADMIT:
    case DICOM_ADMIT_ECHO:
    case DICOM_REFUSE_HOST:
        break;
    }
    return send_reject(ASC_RESULT_REJECTEDPERMANENT, ASC_SOURCE_SERVICEUSER,
                       ASC_REASON_SU_NOREASON);
}

/* The peer of a storage commitment report is the SCP of that class: it proposes that role, and
 * those that forget to are understood (PS3.4 J.3.3, PS3.7 D.3.3.4). */
void
Association::answer_context(const T_ASC_PresentationContext &context, bool echo_only,
                            bool with_commitments)
{
    const char *abstract = context.abstractSyntax;
    const bool is_echo = std::strcmp(abstract, UID_VerificationSOPClass) == 0;
    const bool is_commitment =
        with_commitments && std::strcmp(abstract, UID_StorageCommitmentPushModelSOPClass) == 0;
    const bool is_storage = storage_class_modality(abstract) != nullptr;
    if (!is_echo && (echo_only || (!is_commitment && !is_storage))) {
        ASC_refusePresentationContext(association_->params, context.presentationContextID,
                                      ASC_P_ABSTRACTSYNTAXNOTSUPPORTED);
        return;
    }
    const char *transfer = choose(context, is_storage ? is_decodable : is_plain);
    if (!transfer)
        ASC_refusePresentationContext(association_->params, context.presentationContextID,
                                      ASC_P_TRANSFERSYNTAXESNOTSUPPORTED);
    else
        ASC_acceptPresentationContext(association_->params, context.presentationContextID, transfer,
                                      is_commitment ? ASC_SC_ROLE_SCP : ASC_SC_ROLE_DEFAULT,
                                      OFTrue);
}

int
Association::accept(bool echo_only, bool with_commitments)
{
    const int count = ASC_countPresentationContexts(association_->params);
    for (int i = 0; i < count; i++) {
        T_ASC_PresentationContext context;
        if (ASC_getPresentationContext(association_->params, i, &context).good())
            answer_context(context, echo_only, with_commitments);
    }
    pdu_.resize(options_.max_pdu);
    const OFCondition condition = ASC_acknowledgeAssociation(association_);
    return condition.good() ? 0 : outcome(condition);
}

bool
Association::find_context(uint8_t id, T_ASC_PresentationContext &context) const
{
    return ASC_findAcceptedPresentationContext(association_->params, id, &context).good() &&
           context.resultReason == ASC_P_ACCEPTANCE;
}

void
Association::expect_message()
{
    line_.idle = true;
}

int
Association::read_bytes(uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t got = line_.connection ? line_.connection->read(bytes, size) : -1;
        if (got <= 0)
            return line_outcome();
        bytes += got;
        size -= static_cast<size_t>(got);
    }
    return 0;
}

int
Association::read_data_pdu(size_t size)
{
    if (size > options_.max_pdu)
        return violation("a PDU is longer than agreed");
    if (size == 0)
        return violation("a P-DATA-TF PDU is empty");
    pdu_at_ = pdu_size_ = 0;
    const int error = read_bytes(pdu_.data(), size);
    if (!error)
        pdu_size_ = size;
    return error;
}

int
Association::read_pdu()
{
    if (!line_.connection || line_.connection->await() != 0)
        return line_outcome();
    const bool between_messages = line_.idle;
    uint8_t head[pdu_head_size];
    if (const int error = read_bytes(head, sizeof(head)))
        return error;
    const size_t size = get_u32(head + 2);
    switch (head[0]) {
    case DUL_TYPEDATA:
        return read_data_pdu(size);
    case DUL_TYPERELEASERQ:
        if (size != pdu_value_size)
            return violation("a PDU has a wrong length");
        if (const int error = read_bytes(pdu_.data(), size))
            return error;
        return between_messages ? +RELEASED : violation("it releases within a message");
    case DUL_TYPEABORT:
        return -ECONNABORTED;
    default:
        return violation("a PDU comes that has no place here");
    }
}

int
Association::next_fragment(Fragment &fragment)
{
    if (pdu_at_ == pdu_size_) {
        if (const int outcome = read_pdu())
            return outcome;
    }
    line_.idle = false; /* it may have come along with the one before */
    const uint8_t *pdv = pdu_.data() + pdu_at_;
    const size_t left = pdu_size_ - pdu_at_;
    const size_t length = left >= pdv_head_size ? get_u32(pdv) : 0;
    if (length < pdv_head_size - pdv_length_size || length > left - pdv_length_size)
        return violation("the lengths in a P-DATA-TF PDU contradict each other");
    fragment = {pdv[4], (pdv[5] & pdv_command) != 0, (pdv[5] & pdv_last) != 0, pdv + pdv_head_size,
                length - (pdv_head_size - pdv_length_size)};
    pdu_at_ += pdv_length_size + length;
    return 0;
}

/* In PDUs as short as the peer wants them. */
int
Association::send_command(uint8_t context_id, const uint8_t *bytes, size_t size)
{
    const long agreed = association_->params->theirMaxPDUReceiveSize;
    size_t most = size;
    if (agreed > 0 && static_cast<size_t>(agreed) < size + pdv_head_size)
        most = static_cast<size_t>(std::max(agreed, min_peer_pdu)) - pdv_head_size;
    while (size > 0) {
        const size_t part = std::min(most, size);
        std::vector<uint8_t> pdu(pdu_head_size + pdv_head_size);
        pdu[0] = DUL_TYPEDATA;
        put_u32(&pdu[2], pdv_head_size + part);
        put_u32(&pdu[6], pdv_head_size - pdv_length_size + part);
        pdu[10] = context_id;
        pdu[11] = part == size ? pdv_command | pdv_last : pdv_command;
        pdu.insert(pdu.end(), bytes, bytes + part);
        if (!line_.connection || line_.connection->write(pdu.data(), pdu.size()) < 0)
            return line_outcome();
        bytes += part;
        size -= part;
    }
    return 0;
}

int
Association::violation(const char *what)
{
    violation_ = what;
    return -EPROTO;
}

int
Association::line_outcome() const
{
    if (line_.error == -ETIMEDOUT || line_.error == -ECANCELED)
        return line_.error;
    if (line_.error == -EPROTO || !line_.handshake_failure.empty())
        return -EPROTO;
    return -ECONNABORTED;
}

int
Association::outcome(const OFCondition &condition)
{
    if (line_.error)
        return line_outcome();
    if (condition == DUL_PEERABORTEDASSOCIATION || condition == DUL_NETWORKCLOSED)
        return -ECONNABORTED;
    if (condition == EC_MemoryExhausted)
        return -ENOMEM;
    return violation(condition.text());
}

void
Association::end(int outcome)
{
    uint8_t release_rp[pdu_head_size + pdu_value_size] = {DUL_TYPERELEASERP, 0, 0, 0, 0, 4};
    if (outcome == RELEASED && line_.connection)
        (void)line_.connection->write(release_rp, sizeof(release_rp));
    if (!line_.connection || outcome == -ECONNABORTED || outcome == -EACCES)
        return;
    if (outcome != RELEASED && line_.handshake_failure.empty())
        line_.connection->send_abort(outcome == -EPROTO ? abort_by_provider : abort_by_user, 0);
    line_.connection->linger();
}

void
Association::explain(int error, struct dicom_fault *fault) const
{
    std::string who = request_.host;
    if (request_.calling_ae[0])
        who = std::string(request_.calling_ae) + " (" + request_.host + ")";
    const char *name = who.c_str();
    switch (error) {
    case 0:
        return;
    case -EACCES:
        fault_set(fault, error, "ASSOCIATION_REFUSED", nullptr, nullptr,
                  "The association of %s with %s was refused.", name, request_.called_ae);
        return;
    case -ECONNABORTED:
        fault_set(fault, error, "ASSOCIATION_ABORTED", nullptr, nullptr,
                  "%s aborted the association, or the connection broke.", name);
        return;
    case -ETIMEDOUT:
        fault_set(fault, error, "ASSOCIATION_TIMEOUT", nullptr, nullptr,
                  "%s was silent for too long.", name);
        return;
    case -ECANCELED:
        fault_set(fault, error, "ASSOCIATION_STOPPED", nullptr, nullptr,
                  "The association of %s was ended because the service stops.", name);
        return;
    case -ENOMEM:
        fault_set(fault, error, "OUT_OF_MEMORY", nullptr, nullptr,
                  "There is not enough memory to serve %s.", name);
        return;
    default:
        break;
    }
    if (!line_.handshake_failure.empty())
        fault_set(fault, error, "TLS_HANDSHAKE_FAILED", nullptr, nullptr, "No TLS with %s: %s.",
                  name, line_.handshake_failure.c_str());
    else
        fault_set(fault, error, "ASSOCIATION_INVALID", nullptr, nullptr,
                  "%s does not speak DICOM as it should: %s.", name,
                  violation_.empty() ? "the connection is damaged" : violation_.c_str());
}

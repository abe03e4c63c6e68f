#include "dicom/net/association.hh"

#include "base/error.h"
#include "base/limits.h"
#include "dicom/net/tls.hh"
#include "dicom/value/storage_class.h"
#include "dicom/value/transfer_syntax.h"
#include "dicom/value/value.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace
{

constexpr std::chrono::milliseconds linger_time(1000);
/* For rejected peers, which may be many. */
constexpr std::chrono::milliseconds linger_rejected(200);

/* A-ASSOCIATE-RJ results and sources (PS3.8 9.3.4). */
constexpr uint8_t permanent = 1;
constexpr uint8_t transient = 2;
constexpr uint8_t by_user = 1;
constexpr uint8_t by_acse = 2;
constexpr uint8_t by_presentation = 3;

/* Copies without surrounding spaces, in a form that is safe in a log line. */
template <size_t size>
void
copy_clean(char (&to)[size], const std::string &text)
{
    const char *from = text.c_str();
    from += std::strspn(from, " ");
    size_t length = 0;
    for (; from[length] && length < size - 1; length++)
        to[length] = from[length] >= ' ' && from[length] <= '~' ? from[length] : '?';
    while (length > 0 && to[length - 1] == ' ')
        length--;
    to[length] = '\0';
}

/* Copies the numeric address. An IPv4 peer of an IPv6 socket gets its IPv4 form. */
void
copy_host(char (&to)[DICOM_HOST_SIZE], int fd)
{
    static const char mapped[] = "::ffff:";
    struct sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    char host[NI_MAXHOST];
    if (getpeername(fd, reinterpret_cast<struct sockaddr *>(&address), &size) != 0 ||
        getnameinfo(reinterpret_cast<struct sockaddr *>(&address), size, host, sizeof(host), nullptr, 0,
                    NI_NUMERICHOST) != 0)
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

/* Returns the first proposed syntax that is accepted. The sender's order is its preference. */
const std::string *
association_choose(const PresentationContext &context, bool (*will_do)(const char *))
{
    for (const std::string &proposed : context.proposed)
        if (will_do(proposed.c_str()))
            return &proposed;
    return nullptr;
}

/* Returns the check for the transfer syntaxes of the abstract syntax, or nullptr if it is not accepted. */
bool (*accepted_syntaxes(const std::string &abstract_syntax, enum dicom_admission admission,
                         bool with_commitments))(const char *)
{
    if (abstract_syntax == DICOM_VERIFICATION_CLASS)
        return is_plain;
    if (admission == DICOM_ADMIT_ECHO)
        return nullptr;
    if (storage_class_is_taken(abstract_syntax.c_str()))
        return is_decodable;
    if (with_commitments && abstract_syntax == DICOM_COMMITMENT_CLASS)
        return is_plain;
    /* Instances that are dropped may have any syntax: they need no decoder. */
    const bool dropped = admission == DICOM_ADMIT_ARCHIVE && storage_class_is_other(abstract_syntax.c_str());
    return dropped ? command_uid_is_valid : nullptr;
}

} // namespace

Association::Association(const struct dicom_serve_options &options) : options_(options)
{
    network_ready();
}

int
Association::receive(int &fd)
{
    copy_host(request_.host, fd);
    Limits limits;
    limits.silence = std::chrono::seconds(options_.dimse_seconds);
    limits.idle_silence = std::chrono::seconds(options_.idle_seconds);
    limits.min_rate = options_.min_rate;
    limits.stop_fd = options_.stop_fd;
    limits.bounded = true;
    limits.deadline = Limits::Clock::now() + std::chrono::seconds(options_.acse_seconds);
    const int flags = fcntl(fd, F_GETFL);
    SSL *ssl = options_.tls ? SSL_new(tls_layer(options_.tls).getNativeHandle()) : nullptr;
    const bool failed = flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
                        (options_.tls && (!ssl || SSL_set_fd(ssl, fd) != 1));
    if (ssl)
        SSL_set_accept_state(ssl);
    connection_ = std::make_unique<Connection>(fd, ssl, limits);
    fd = -1;
    int error = failed ? -ENOMEM : connection_->handshake();
    if (!error)
        error = receive_request();
    if (error)
        return error;
    connection_->limits.bounded = false;
    copy_clean(request_.calling_ae, negotiation_.calling_ae);
    copy_clean(request_.called_ae, negotiation_.called_ae);
    copy_clean(request_.implementation_uid, negotiation_.implementation_uid);
    copy_clean(request_.implementation_version, negotiation_.implementation_version);
    for (const PresentationContext &context : negotiation_.contexts)
        request_.proposes_more |= context.abstract_syntax != DICOM_VERIFICATION_CLASS;
    connection_->describe_peer(request_);
    return 0;
}

int
Association::receive_request()
{
    uint8_t head[pdu_head_size];
    if (const int error = connection_->read(head, sizeof(head)))
        return error;
    const size_t size = value_u32(head + 2, true);
    if (head[0] != PDU_ASSOCIATE_RQ)
        return violation("it does not begin with an association request");
    if (size > LIMIT_REQUEST_BYTES)
        return violation("the association request has " + std::to_string(size) + " bytes, and the limit is " +
                         std::to_string(LIMIT_REQUEST_BYTES));
    std::vector<uint8_t> pdu(size);
    if (const int error = connection_->read(pdu.data(), size))
        return error;
    if (!associate_version_is_known(pdu.data(), size)) {
        (void)send_reject(permanent, by_acse, 2);
        return violation("its protocol version is unknown");
    }
    if (const char *wrong = associate_parse(pdu.data(), size, negotiation_))
        return violation(wrong);
    if (negotiation_.application_context != associate_application_context) {
        (void)send_reject(permanent, by_user, 2);
        return violation("its application context is not that of DICOM");
    }
    return 0;
}

int
Association::send_reject(uint8_t result, uint8_t source, uint8_t reason)
{
    const uint8_t pdu[] = {PDU_ASSOCIATE_RJ, 0, 0, 0, 0, 4, 0, result, source, reason};
    (void)connection_->write(pdu, sizeof(pdu));
    connection_->linger(linger_rejected);
    rejected_ = true;
    return -EACCES;
}

int
Association::reject(enum dicom_admission admission)
{
    switch (admission) {
    case DICOM_REFUSE_CALLING:
        return send_reject(permanent, by_user, 3);
    case DICOM_REFUSE_CALLED:
        return send_reject(permanent, by_user, 7);
    case DICOM_REFUSE_BUSY:
        return send_reject(transient, by_presentation, 2);
    case DICOM_ADMIT:
    case DICOM_ADMIT_ECHO:
    case DICOM_ADMIT_ARCHIVE:
    case DICOM_REFUSE_HOST:
        break;
    }
    return send_reject(permanent, by_user, 1);
}

int
Association::accept(enum dicom_admission admission, bool with_commitments)
{
    for (PresentationContext &context : negotiation_.contexts) {
        const auto will_do = accepted_syntaxes(context.abstract_syntax, admission, with_commitments);
        if (!will_do) {
            context.result = CONTEXT_ABSTRACT_SYNTAX;
            continue;
        }
        const std::string *transfer = association_choose(context, is_decodable);
        if (!transfer || will_do != is_decodable)
            transfer = association_choose(context, will_do);
        context.result = transfer ? CONTEXT_ACCEPTED : CONTEXT_TRANSFER_SYNTAXES;
        if (transfer)
            context.transfer_syntax = *transfer;
    }
    pdus_ = std::make_unique<DataPdus>(options_.max_pdu);
    /*
     * The reporting peer is the SCP of storage commitment and must propose that role; reports are also accepted without
     * the proposal (PS3.4 J.3.3, PS3.7 D.3.3.4). Other classes have the default roles and need no answer.
     */
    std::vector<RoleSelection> roles;
    for (const RoleSelection &role : negotiation_.roles)
        if (with_commitments && admission != DICOM_ADMIT_ECHO && roles.empty() &&
            role.sop_class == DICOM_COMMITMENT_CLASS)
            roles.push_back({role.sop_class, false, role.scp});
    const std::vector<uint8_t> pdu = associate_accept(negotiation_, roles, options_.max_pdu);
    return connection_->write(pdu.data(), pdu.size());
}

const PresentationContext *
Association::find_context(uint8_t id) const
{
    for (const PresentationContext &context : negotiation_.contexts)
        if (context.id == id)
            return context.result == CONTEXT_ACCEPTED ? &context : nullptr;
    return nullptr;
}

/* Records violations found by DataPdus as violations of this association. */
int
Association::outcome_of(int outcome)
{
    connection_->limits.idle = false;
    if (outcome == -EPROTO)
        violation_ = pdus_->violation();
    return outcome;
}

int
Association::next_command(uint8_t &context_id, struct command &command)
{
    /* the fragment may have come with the previous message */
    connection_->limits.idle = !pdus_->has_fragment();
    connection_->begin_message();
    return outcome_of(pdus_->next_command(*connection_, context_id, command));
}

int
Association::next_fragment(Fragment &fragment)
{
    return outcome_of(pdus_->next(*connection_, fragment));
}

int
Association::send_command(uint8_t context_id, const uint8_t *bytes, size_t size)
{
    return connection_->write_message({context_id, true, negotiation_.max_pdu}, bytes, size);
}

int
Association::violation(std::string what)
{
    violation_ = std::move(what);
    return -EPROTO;
}

void
Association::end(int outcome)
{
    static const uint8_t release_rp[] = {PDU_RELEASE_RP, 0, 0, 0, 0, 4, 0, 0, 0, 0};
    if (outcome == -ECONNABORTED || rejected_)
        return;
    if (outcome == RELEASED)
        (void)connection_->write(release_rp, sizeof(release_rp));
    else if (connection_->handshake_failure().empty())
        connection_->send_abort(outcome == -EPROTO ? abort_by_provider : abort_by_user, 0);
    connection_->linger(linger_time);
}

void
Association::explain(int rc, struct error *error) const
{
    if (rc == 0)
        return;
    std::string who = request_.host;
    if (request_.calling_ae[0])
        who = std::string(request_.calling_ae) + " (" + request_.host + ")";
    const char *name = who.c_str();

    const struct {
        int rc;
        enum code code;
        const char *before;
        std::string after;
    } endings[] = {
        {-EACCES, CODE_ASSOCIATION_REFUSED, "The association of ",
         std::string(" with ") + request_.called_ae + " was refused"},
        {-ECONNABORTED, CODE_ASSOCIATION_ABORTED, "", " aborted the association, or the connection broke"},
        {-ETIMEDOUT, CODE_ASSOCIATION_TIMEOUT, "", " was silent for too long, or too slow"},
        {-EFBIG, CODE_INSTANCE_TOO_LARGE, "", " sends a data set beyond dicom.max_instance_mib"},
        {-ENOSPC, CODE_DISK_FULL, "", " sends more than the disk has space for"},
        {-ECANCELED, CODE_ASSOCIATION_STOPPED, "The association of ", " was aborted because the service stops"},
        {-ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to serve ", ""},
    };

    for (const auto &ending : endings) {
        if (ending.rc != rc)
            continue;
        error_set(error, rc, ending.code, "%s%s%s.", ending.before, name, ending.after.c_str());
        return;
    }
    if (!connection_->handshake_failure().empty())
        error_set(error, rc, CODE_TLS_HANDSHAKE_FAILED, "TLS with %s failed: %s.", name,
                  connection_->handshake_failure().c_str());
    else
        error_set(error, rc, CODE_ASSOCIATION_INVALID, "%s violates the DICOM protocol: %s.", name,
                  violation_.empty() ? "the connection is damaged" : violation_.c_str());
}

/*
 * scu.cc - associations of the calling side. Their messages are in scu_store.cc and scu_messages.cc.
 *
 * A called peer must not be trusted more than a calling peer. Its answers pass through the same
 * readers and limits as requests do.
 */
#include "dicom/net/scu_association.hh"

#include "base/limits.h"
#include "dicom/net/tls.hh"
#include "dicom/read/header.hh"
#include "dicom/value/value.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using std::chrono::milliseconds;
using namespace scu;

static milliseconds
scu_milliseconds(double seconds)
{
    return milliseconds(static_cast<int>(std::ceil(std::clamp(seconds, 1.0, 86400.0) * 1000)));
}

dicom_association::dicom_association(const struct dicom_peer &peer)
    : name(std::string(peer.called_ae) + " at " +
           (std::strchr(peer.host, ':') ? "[" + std::string(peer.host) + "]" : peer.host) + ":" +
           std::to_string(peer.port)),
      acse_time(scu_milliseconds(peer.acse_seconds)), dimse_time(scu_milliseconds(peer.dimse_seconds)),
      min_rate(peer.min_rate), max_pdu(peer.max_pdu), pdus(peer.max_pdu)
{
}

namespace scu
{

void
clear_answer(struct dicom_answer *answer)
{
    answer->status = answer->reject_result = answer->reject_source = answer->reject_reason = -1;
}

void
allow(struct dicom_association &association, milliseconds time)
{
    Limits &limits = association.connection->limits;
    limits.min_rate = 0;
    limits.bounded = true;
    limits.deadline = Limits::Clock::now() + time;
}

void
disconnect(struct dicom_association &association)
{
    if (association.open)
        association.connection->send_abort(abort_by_user, 0);
    association.open = false;
}

/* Returns why a call on the connection failed. */
static const char *
scu_reason(const struct dicom_association &association, int rc)
{
    switch (rc) {
    case -ETIMEDOUT:
        return "it was silent for too long, or too slow";
    case -EPROTO:
        return association.pdus.violation()[0] ? association.pdus.violation()
               : association.violation[0]      ? association.violation
                                               : tls_reason("the connection is damaged");
    case DataPdus::RELEASED:
        return "it released the association";
    default:
        return "it aborted, or closed the connection";
    }
}

int
fail_broken(struct dicom_association &association, int rc, const char *doing, struct error *error)
{
    disconnect(association);
    return error_set(error, -ECONNABORTED, CODE_PEER_ABORTED,
                     "The association with %s ended while %s (%s). Deliveries and pulls are retried.",
                     association.name.c_str(), doing, scu_reason(association, rc));
}

const PresentationContext *
find_context(const struct dicom_association &association, const char *sop_class, const char *syntax)
{
    if (!association.open)
        return nullptr;
    for (const PresentationContext &context : association.negotiation.contexts)
        if (context.result == CONTEXT_ACCEPTED && context.abstract_syntax == sop_class &&
            (!syntax || context.transfer_syntax == syntax))
            return &context;
    return nullptr;
}

} // namespace scu

/* --------------------------------------------------------------------------- connecting --- */

/* Waits for a pending connect. Returns 0 or -errno. */
static int
await_connection(int fd, milliseconds time)
{
    const auto until = Limits::Clock::now() + time;
    struct pollfd connected = {fd, POLLOUT, 0};
    int ready;
    do {
        const auto left = std::chrono::duration_cast<milliseconds>(until - Limits::Clock::now());
        ready = poll(&connected, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return ready < 0 ? -errno : -ETIMEDOUT;
    int failure = 0;
    socklen_t size = sizeof(failure);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0 ? -errno : -failure;
}

/* Returns a connected non-blocking socket, or -errno. */
static int
scu_dial(const struct addrinfo &address, milliseconds time)
{
    const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    const int on = 1, unsent = 65536;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    /* The kernel's send buffer grows to megabytes. Bytes in it must not count as taken by the peer. */
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    int rc = 0;
    if (connect(fd, address.ai_addr, address.ai_addrlen) != 0)
        rc = errno == EINPROGRESS ? await_connection(fd, time) : -errno;
    if (rc) {
        close(fd);
        return rc;
    }
    return fd;
}

static int
fail_rejected(struct dicom_association &association, const uint8_t *answer_bytes, struct dicom_answer *answer,
              struct error *error)
{
    answer->reject_result = answer_bytes[1];
    answer->reject_source = answer_bytes[2];
    answer->reject_reason = answer_bytes[3];
    const bool busy = answer->reject_result == 2; /* transient (PS3.8 9.3.4) */
    const char *why = "", *remedy = " Correct its entry here, or Noctule's entry there.";
    if (busy)
        remedy = " Deliveries and pulls are retried.";
    else if (answer->reject_source == 1 && answer->reject_reason == 3)
        why = ": it does not know Noctule's AE title",
        remedy = " Add it there with Noctule's address, or correct calling_ae_title here. "
                 "Deliveries and pulls are retried.";
    else if (answer->reject_source == 1 && answer->reject_reason == 7)
        why = ": it has another AE title", remedy = " Correct ae_title here. Deliveries and pulls are retried.";
    return error_set(error, -ECONNREFUSED, busy ? CODE_PEER_BUSY : CODE_PEER_REJECTED,
                     "%s rejected the association %s (result %d, source %d, reason %d)%s.%s", association.name.c_str(),
                     busy ? "for now" : "for good", answer->reject_result, answer->reject_source, answer->reject_reason,
                     why, remedy);
}

static int
fail_request(struct dicom_association &association, const char *why, struct error *error)
{
    disconnect(association);
    return error_set(error, -ECONNABORTED, CODE_PEER_ABORTED,
                     "%s did not answer the association request (%s). Deliveries and pulls are retried.",
                     association.name.c_str(), why);
}

static int
fail_tls(struct dicom_association &association, const char *why, struct error *error)
{
    return error_set(error, -EPROTO, CODE_TLS_FAILED, "TLS with %s failed (%s). Check the certificates of both sides.",
                     association.name.c_str(), why);
}

static int
scu_secure(struct dicom_association &association, int fd, const struct dicom_peer &peer, struct error *error)
{
    Limits limits;
    limits.silence = association.dimse_time;
    SSL *ssl = peer.tls ? SSL_new(tls_layer(peer.tls).getNativeHandle()) : nullptr;
    bool failed = peer.tls && (!ssl || SSL_set_fd(ssl, fd) != 1);
    const bool pinned = peer.tls && peer.certificate && peer.certificate[0];
    if (peer.tls && !failed) {
        SSL_set_connect_state(ssl);
        /* A pinned certificate is a stronger check than the name in it. */
        failed = !pinned && !tls_expect_name(ssl, peer.host);
    }
    association.connection = std::make_unique<Connection>(fd, ssl, limits);
    if (failed)
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to connect to %s.",
                         association.name.c_str());
    allow(association, association.acse_time);
    if (association.connection->handshake())
        return fail_tls(association, association.connection->handshake_failure().c_str(), error);
    struct dicom_association_request shown = {};
    association.connection->describe_peer(shown);
    if (pinned && std::strcmp(shown.certificate_fingerprint, peer.certificate) != 0)
        return fail_tls(association, "its certificate is not the configured one", error);
    return 0;
}

/* Reads the PDU that answers the request or ends the association. */
static int
read_answer(struct dicom_association &association, struct dicom_answer *answer, struct error *error)
{
    uint8_t head[pdu_head_size];
    std::vector<uint8_t> pdu;
    int rc = association.connection->read(head, sizeof(head));
    const size_t size = value_u32(head + 2, true);
    if (!rc && size > LIMIT_REQUEST_BYTES)
        return fail_request(association, "it does not speak DICOM", error);
    if (!rc) {
        pdu.resize(size);
        rc = association.connection->read(pdu.data(), size);
    }
    /* after the handshake, a server reports so that it requires another certificate */
    if (rc == -EPROTO)
        return fail_tls(association, tls_reason("the connection is damaged"), error);
    if (rc)
        return fail_request(association, scu_reason(association, rc), error);
    if (head[0] == PDU_ASSOCIATE_RJ && size == 4)
        return fail_rejected(association, pdu.data(), answer, error);
    if (head[0] == PDU_ABORT)
        return fail_request(association, "it aborted", error);
    if (head[0] != PDU_ASSOCIATE_AC)
        return fail_request(association, "it does not speak DICOM", error);
    association.open = true;
    const char *wrong = associate_parse_accept(pdu.data(), size, association.negotiation);
    return wrong ? fail_request(association, wrong, error) : 0;
}

int
scu::negotiate(struct dicom_association &association, int fd, const struct dicom_peer &peer,
               const struct dicom_context *contexts, size_t count, struct dicom_answer *answer, struct error *error)
{
    if (const int rc = scu_secure(association, fd, peer, error))
        return rc;
    association.negotiation.called_ae = peer.called_ae;
    association.negotiation.calling_ae = peer.calling_ae;
    for (size_t i = 0; i < count; i++) {
        PresentationContext context;
        context.id = static_cast<uint8_t>(2 * i + 1);
        context.abstract_syntax = contexts[i].sop_class;
        context.proposed = {contexts[i].transfer_syntax};
        association.negotiation.contexts.push_back(std::move(context));
    }
    const std::vector<uint8_t> pdu = associate_request(association.negotiation, association.max_pdu);
    if (const int rc = association.connection->write(pdu.data(), pdu.size()))
        return fail_request(association, scu_reason(association, rc), error);
    if (const int rc = read_answer(association, answer, error))
        return rc;
    for (const PresentationContext &context : association.negotiation.contexts)
        if (context.result == CONTEXT_ACCEPTED)
            return 0;
    return error_set(error, -EPROTONOSUPPORT, CODE_NO_PRESENTATION_CONTEXT,
                     "%s accepts no proposed SOP class. Make it accept the class, or configure a fallback.",
                     association.name.c_str());
}

/* Tries the addresses of the peer in turn, all within the time to connect. */
static int
request(struct dicom_association &association, const struct dicom_peer &peer, const struct dicom_context *contexts,
        size_t count, struct dicom_answer *answer, struct error *error)
{
    struct addrinfo hints = {}, *found = nullptr;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    if (const int rc = getaddrinfo(peer.host, std::to_string(peer.port).c_str(), &hints, &found))
        return error_set(error, -EHOSTUNREACH, CODE_PEER_UNREACHABLE,
                         "The host %s has no address (%s). Correct its entry or the name service.", peer.host,
                         gai_strerror(rc));
    const std::unique_ptr<struct addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
    const auto until = Limits::Clock::now() + scu_milliseconds(peer.connect_seconds);
    int fd = -ETIMEDOUT;
    for (const struct addrinfo *address = found; address && fd < 0; address = address->ai_next) {
        const auto left = std::chrono::duration_cast<milliseconds>(until - Limits::Clock::now());
        if (left.count() <= 0)
            break;
        fd = scu_dial(*address, address->ai_next ? left / 2 : left);
    }
    if (fd < 0)
        return error_set(error, -EHOSTUNREACH, CODE_PEER_UNREACHABLE,
                         "%s cannot be reached (%s). Deliveries and pulls are retried.", association.name.c_str(),
                         std::strerror(-fd));
    return negotiate(association, fd, peer, contexts, count, answer, error);
}

int
dicom_connect(const struct dicom_peer *peer, const struct dicom_context *contexts, size_t count,
              struct dicom_association **association, struct dicom_answer *answer, struct error *error)
{
    *association = nullptr;
    clear_answer(answer);
    return header_guard(peer->host, error, [&] {
        network_ready();
        auto made = std::make_unique<dicom_association>(*peer);
        const int rc = request(*made, *peer, contexts, count, answer, error);
        if (rc == 0)
            *association = made.release();
        else if (made->open)
            dicom_release(made.release());
        return rc;
    });
}

bool
dicom_accepts(const struct dicom_association *association, const char *sop_class, const char *transfer_syntax)
{
    return find_context(*association, sop_class, transfer_syntax) != nullptr;
}

bool
dicom_proposed(const struct dicom_association *association, const char *sop_class, const char *transfer_syntax)
{
    const auto &contexts = association->negotiation.contexts;
    return std::any_of(contexts.begin(), contexts.end(), [=](const PresentationContext &context) {
        return context.abstract_syntax == sop_class &&
               std::find(context.proposed.begin(), context.proposed.end(), transfer_syntax) != context.proposed.end();
    });
}

bool
dicom_is_open(const struct dicom_association *association)
{
    return association->open;
}

int
dicom_descriptor(const struct dicom_association *association)
{
    return association->open ? association->connection->descriptor() : -1;
}

/* ------------------------------------------------------------------------------- the end --- */

/* Waits for the release response. Drops everything that the peer still sends, and answers its own release request. */
static int
await_release(Connection &connection)
{
    static const uint8_t release_rp[] = {PDU_RELEASE_RP, 0, 0, 0, 0, 4, 0, 0, 0, 0};
    size_t most = LIMIT_REQUEST_BYTES;
    for (;;) {
        uint8_t head[pdu_head_size];
        if (const int rc = connection.read(head, sizeof(head)))
            return rc;
        const size_t size = value_u32(head + 2, true);
        if (head[0] == PDU_ABORT || head[0] == PDU_RELEASE_RP)
            return 0;
        if ((head[0] != PDU_DATA && head[0] != PDU_RELEASE_RQ) || size > most)
            return -EPROTO;
        most -= size;
        std::vector<uint8_t> dropped(size);
        if (const int rc = connection.read(dropped.data(), size))
            return rc;
        if (head[0] == PDU_RELEASE_RQ) /* both sides request a release (PS3.8 7.2.2.7) */
            if (const int rc = connection.write(release_rp, sizeof(release_rp)))
                return rc;
    }
}

void
dicom_release(struct dicom_association *association)
{
    static const uint8_t release_rq[] = {PDU_RELEASE_RQ, 0, 0, 0, 0, 4, 0, 0, 0, 0};
    const std::unique_ptr<dicom_association> owned(association);
    if (!association || !association->open)
        return;
    allow(*association, association->acse_time);
    Connection &connection = *association->connection;
    if (connection.write(release_rq, sizeof(release_rq)) != 0 || await_release(connection) != 0)
        disconnect(*association);
}

/*
 * scu.cc - the calling side, on DCMTK's association layer: associations. What goes over them:
 * scu_store.cc, scu_messages.cc.
 *
 * DCMTK negotiates, frames and encodes commands. What it would get wrong is done here: Nagle is off
 * and timeouts are set on each socket by itself (DCMTK's are of the process).
 */
#include "dicom/net/scu_association.hh"

#include "dicom/net/tls.hh"
#include "dicom/read/header.hh"
#include "dicom/value/uid.h"

#include <dcmtk/dcmnet/cond.h>
#include <dcmtk/dcmnet/dcmtrans.h>
#include <dcmtk/dcmtls/tlslayer.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cmath>
#include <memory>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

using namespace scu;

/* ------------------------------------------------------------------------ the transport --- */

static void
set_socket_timeout(int socket, double seconds)
{
    struct timeval limit = {};
    limit.tv_sec = static_cast<time_t>(std::ceil(std::max(seconds, 1.0)));
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

namespace scu
{

PeerLayer::PeerLayer(struct dicom_tls *security, double timeout) : tls(security), seconds(timeout)
{
}

DcmTransportConnection *
PeerLayer::createConnection(DcmNativeSocketType opened, OFBool secure)
{
    DcmTransportConnection *connection = tls ? tls_layer(tls).createConnection(opened, secure)
                                             : DcmTransportLayer::createConnection(opened, secure);
    const int on = 1;
    setsockopt(opened, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    set_socket_timeout(opened, seconds); /* after DCMTK's constructor set its own */
    if (connection)
        socket = opened;
    return connection;
}

} // namespace scu

dicom_association::dicom_association(const struct dicom_peer &peer)
    : name(std::string(peer.called_ae) + " at " + peer.host + ":" + std::to_string(peer.port)),
      acse_seconds(peer.acse_seconds), dimse_seconds(peer.dimse_seconds),
      layer(peer.tls, peer.acse_seconds)
{
}

dicom_association::~dicom_association()
{
    if (asc)
        ASC_destroyAssociation(&asc);
    if (network)
        ASC_dropNetwork(&network);
}

namespace scu
{

int
scu_whole_seconds(double seconds)
{
    return static_cast<int>(std::ceil(std::clamp(seconds, 1.0, 86400.0)));
}

void
clear_answer(struct dicom_answer *answer)
{
    answer->status = answer->reject_result = answer->reject_source = answer->reject_reason = -1;
}

void
break_off(struct dicom_association &association)
{
    if (association.open)
        ASC_abortAssociation(association.asc);
    association.open = false;
}

int
fail_broken(struct dicom_association &association, const OFCondition &condition, const char *doing,
            struct error *error)
{
    break_off(association);
    return error_set(error, -ECONNABORTED, CODE_PEER_ABORTED,
                     "%s broke off while %s (%s). Deliveries are tried again.",
                     association.name.c_str(), doing, condition.text());
}

/* The first presentation context, as the peer answered it, that will do; 0: none. */
template <typename Test>
static T_ASC_PresentationContextID
find_answered(const struct dicom_association &association, Test will_do)
{
    T_ASC_Parameters *parameters = association.asc->params;
    const int count = ASC_countPresentationContexts(parameters);
    for (int i = 0; i < count; i++) {
        T_ASC_PresentationContext context;
        if (ASC_getPresentationContext(parameters, i, &context).good() && will_do(context))
            return context.presentationContextID;
    }
    return 0;
}

T_ASC_PresentationContextID
find_context(const struct dicom_association &association, const char *sop_class, const char *syntax)
{
    if (!association.open)
        return 0;
    return find_answered(association, [&](const T_ASC_PresentationContext &context) {
        return context.resultReason == ASC_P_ACCEPTANCE &&
               strcmp(context.abstractSyntax, sop_class) == 0 &&
               (!syntax || strcmp(context.acceptedTransferSyntax, syntax) == 0);
    });
}

} // namespace scu

/* --------------------------------------------------------------------------- connecting --- */

/* DCMTK resolves names through a call that serves one thread at a time and takes short ones only.
 */
static int
scu_resolve(const struct dicom_peer &peer, char address[INET_ADDRSTRLEN], struct error *error)
{
    struct addrinfo hints = {}, *found = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    const int rc = getaddrinfo(peer.host, nullptr, &hints, &found);
    if (rc)
        return error_set(
            error, -EHOSTUNREACH, CODE_PEER_UNREACHABLE,
            "The host %s has no IPv4 address (%s). Correct the destination or the name "
            "service.",
            peer.host, gai_strerror(rc));
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
scu_prepare(struct dicom_association &association, const struct dicom_peer &peer,
            const char *address, const struct dicom_context *contexts, size_t count,
            T_ASC_Parameters *&parameters)
{
    network_ready();
    OFCondition condition = ASC_initializeNetwork(
        NET_REQUESTOR, 0, scu_whole_seconds(peer.acse_seconds), &association.network);
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
              struct error *error)
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
    return error_set(error, -ECONNREFUSED, busy ? CODE_PEER_BUSY : CODE_PEER_REJECTED,
                     "%s rejected the association %s (result %d, source %d, reason %d)%s.%s",
                     association.name.c_str(), busy ? "for now" : "for good", answer->reject_result,
                     answer->reject_source, answer->reject_reason, why,
                     busy ? " Deliveries are tried again."
                          : " Correct the destination or the peer.");
}

static int
fail_request(struct dicom_association &association, const OFCondition &condition,
             struct dicom_answer *answer, struct error *error)
{
    if (condition == DUL_ASSOCIATIONREJECTED)
        return fail_rejected(association, answer, error);
    const char *name = association.name.c_str();
    if (association.layer.socket < 0)
        return error_set(error, -EHOSTUNREACH, CODE_PEER_UNREACHABLE,
                         "There is no connection to %s (%s). Deliveries are tried again.", name,
                         condition.text());
    if (condition.module() == OFM_dcmtls ||
        (condition.module() == OFM_dcmnet && condition.code() == DULC_TLSERROR))
        return error_set(error, -EPROTO, CODE_TLS_FAILED,
                         "TLS with %s failed (%s). See to the certificates of both sides.", name,
                         condition.text());
    return error_set(
        error, -ECONNABORTED, CODE_PEER_ABORTED,
        "%s gave no answer to the association request (%s). Deliveries are tried again.", name,
        condition.text());
}

static int
request(struct dicom_association &association, const struct dicom_peer &peer,
        const struct dicom_context *contexts, size_t count, struct dicom_answer *answer,
        struct error *error)
{
    char address[INET_ADDRSTRLEN];
    const int rc = scu_resolve(peer, address, error);
    if (rc)
        return rc;
    T_ASC_Parameters *parameters = nullptr;
    OFCondition condition = scu_prepare(association, peer, address, contexts, count, parameters);
    if (condition.good()) {
        dcmConnectionTimeout.set(
            scu_whole_seconds(peer.connect_seconds)); /* of the process; scu.h */
        condition =
            ASC_requestAssociation(association.network, parameters, &association.asc, nullptr,
                                   nullptr, DUL_NOBLOCK, scu_whole_seconds(peer.acse_seconds));
    }
    if (!association.asc && parameters)
        ASC_destroyAssociationParameters(&parameters);
    if (condition.bad())
        return fail_request(association, condition, answer, error);
    association.open = true;
    set_socket_timeout(association.layer.socket, peer.dimse_seconds);
    if (ASC_countAcceptedPresentationContexts(association.asc->params) > 0)
        return 0;
    /* DCMTK takes another PDU than the answer for one that says nothing. */
    if (find_answered(association, [](const T_ASC_PresentationContext &context) {
            return context.resultReason != ASC_P_NOTYETNEGOTIATED;
        }) == 0)
        return fail_broken(association, DUL_UNEXPECTEDPDU, "negotiating", error);
    return error_set(error, -EPROTONOSUPPORT, CODE_NO_PRESENTATION_CONTEXT,
                     "%s accepts nothing of what is to be sent. Let it accept the SOP class, or "
                     "name a fallback.",
                     association.name.c_str());
}

int
dicom_connect(const struct dicom_peer *peer, const struct dicom_context *contexts, size_t count,
              struct dicom_association **association, struct dicom_answer *answer,
              struct error *error)
{
    *association = nullptr;
    clear_answer(answer);
    return header_guard(peer->host, error, [&] {
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
dicom_accepts(const struct dicom_association *association, const char *sop_class)
{
    return find_context(*association, sop_class, nullptr) != 0;
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
scu_end(struct dicom_association *association, bool politely)
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
        scu_end(association, true);
}

void
dicom_abort(struct dicom_association *association)
{
    if (association)
        scu_end(association, false);
}

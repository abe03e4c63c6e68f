#include "dicom/net/tls.hh"

#include "base/error.h"

#include <dcmtk/dcmnet/assoc.h>

#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

struct dicom_tls {
    explicit dicom_tls(bool server) : layer(server ? NET_ACCEPTOR : NET_REQUESTOR, nullptr, OFFalse)
    {
    }

    /* Making a connection only changes the context's reference count. */
    mutable DcmTLSTransportLayer layer;
};

namespace
{

bool
is_given(const char *path)
{
    return path && path[0];
}

int
refuse(struct error *error, enum code code, const char *path, const char *what)
{
    return error_set_files(error, -EBADMSG, code, path, nullptr, "%s %s: %s.", path, what,
                           tls_reason("the file has no such object"));
}

/* Checks each certificate of a chain. The list of every CA in it must be present. */
int
load_revoked(SSL_CTX *context, const char *crl, struct error *error)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, crl, X509_FILETYPE_PEM) < 1)
        return refuse(error, CODE_TLS_CRL_INVALID, crl, "cannot be used as PEM certificate revocation lists");
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return 0;
}

/* Allows TLS 1.2 and 1.3 only. Renegotiation is off, because it helps only attackers. */
bool
set_profile(DcmTLSTransportLayer &layer)
{
    SSL_CTX *context = layer.getNativeHandle();
    if (!context || layer.setTLSProfile(TSP_Profile_BCP195_ND).bad() || layer.activateCipherSuites().bad())
        return false;
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    /* DCMTK allows level 0, for ciphers without encryption. The profile does not contain these. */
    SSL_CTX_set_security_level(context, 2);
    SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

int
tls_configure(DcmTLSTransportLayer &layer, const struct dicom_tls_settings &settings, bool server, struct error *error)
{
    if (!set_profile(layer))
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "TLS cannot be set up: %s.", tls_reason("no memory"));
    SSL_CTX *context = layer.getNativeHandle();
    const char *certificate = settings.certificate, *key = is_given(settings.key) ? settings.key : certificate;
    if (is_given(certificate) && SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return refuse(error, CODE_TLS_CERTIFICATE_INVALID, certificate, "cannot be used as a PEM certificate");
    /* OpenSSL accepts a key of another type for another certificate, which may follow. Check the pair. */
    if (is_given(certificate) &&
        (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(context) != 1))
        return refuse(error, CODE_TLS_KEY_INVALID, key, "cannot be used as the key of the TLS certificate");

    const bool trusts = is_given(settings.ca);
    if (trusts && SSL_CTX_load_verify_file(context, settings.ca) != 1)
        return refuse(error, CODE_TLS_CA_INVALID, settings.ca, "cannot be used as PEM certificates to trust");
    if (trusts) /* sends clients the list of accepted CAs */
        SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(settings.ca));
    layer.setCertificateVerification(!server || settings.require_peer ? DCV_requireCertificate
                                     : trusts                         ? DCV_checkCertificate
                                                                      : DCV_ignoreCertificate);
    return is_given(settings.crl) ? load_revoked(context, settings.crl, error) : 0;
}

} // namespace

void
network_ready()
{
    /* init.cc gives the reason for not using std::call_once */
    static const bool ready = [] {
        /* Reverse DNS look-ups of peers are not needed, and can take half a minute. */
        dcmDisableGethostbyaddr.set(OFTrue);
        DcmTLSTransportLayer::initializeOpenSSL();
        T_ASC_Network *network = nullptr;
        if (ASC_initializeNetwork(NET_REQUESTOR, 0, 1, &network).good())
            ASC_dropNetwork(&network);
        return true;
    }();
    (void)ready;
}

const char *
tls_reason(const char *fallback)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return reason ? reason : fallback;
}

DcmTLSTransportLayer &
tls_layer(const struct dicom_tls *tls)
{
    return tls->layer;
}

bool
tls_expect_name(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return true;
    ERR_clear_error(); /* it is no address */
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

void
tls_describe_peer(SSL *ssl, struct dicom_association_request &request)
{
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl), X509_free);
    if (!certificate)
        return;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (X509_digest(certificate.get(), EVP_sha256(), digest, &size) == 1)
        for (unsigned int i = 0; i < size; i++)
            std::snprintf(request.certificate_fingerprint + 2 * i, 3, "%02x", digest[i]);
    const X509_NAME *subject = X509_get_subject_name(certificate.get());
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0)
        return;
    unsigned char *text = nullptr;
    const int length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (length >= 0 && static_cast<size_t>(length) < sizeof(request.certificate_name))
        std::memcpy(request.certificate_name, text, static_cast<size_t>(length));
    OPENSSL_free(text);
}

int
dicom_tls_open(const struct dicom_tls_settings *settings, bool server, struct dicom_tls **tls, struct error *error)
{
    *tls = nullptr;
    try {
        network_ready();
        auto opened = std::make_unique<struct dicom_tls>(server);
        ERR_clear_error();
        if (const int rc = tls_configure(opened->layer, *settings, server, error))
            return rc;
        *tls = opened.release();
        return 0;
    } catch (const std::bad_alloc &) {
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to set up TLS.");
    }
}

void
dicom_tls_close(struct dicom_tls *tls)
{
    delete tls;
}

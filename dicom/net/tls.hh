/*
 * tls.hh - DCMTK's network layer made ready, and one side's TLS context, for what makes connections;
 * private to dicom/, C++.
 */
#ifndef NOCTULE_DICOM_TLS_HH
#define NOCTULE_DICOM_TLS_HH

#include "dicom/net/scp.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmtls/tlslayer.h>

#include <openssl/ssl.h>

/* Comes before any other call of that layer, from any thread: its own first-time initialisation is
 * not safe from two. SIGPIPE is ignored from here on. */
void network_ready();

/* For ASC_setTransportLayer (which must not take ownership), or for SSL connections made from its
 * native handle. Making connections is safe from several threads at once. */
DcmTLSTransportLayer &tls_layer(const struct dicom_tls *tls);

/* The certificate that the server shows has to be one for this name or address. */
bool tls_expect_name(SSL *ssl, const char *host);

/* The certificate that the peer of a finished handshake showed, if any, into `request`. */
void tls_describe_peer(SSL *ssl, struct dicom_association_request &request);

/* Why the last OpenSSL call of this thread failed, in words, or `fallback`. */
const char *tls_reason(const char *fallback);

#endif

/*
 * tls.hh - initialises DCMTK's network layer and gives access to the TLS context of one side; private to dicom/, C++.
 */
#ifndef NOCTULE_DICOM_NET_TLS_HH
#define NOCTULE_DICOM_NET_TLS_HH

#include "dicom/net/scp.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmtls/tlslayer.h>

#include <openssl/ssl.h>

/* Initialises the layer. Must precede every other call of it; any thread may call this. The
 * layer's own initialisation is not thread-safe. Ignores SIGPIPE from then on. */
void network_ready();

/* Returns the layer, for ASC_setTransportLayer (which must not take ownership) or for SSL
 * connections from its native handle. Several threads may make connections at once. */
DcmTLSTransportLayer &tls_layer(const struct dicom_tls *tls);

/* Requires that the server's certificate is for this name or address. */
bool tls_expect_name(SSL *ssl, const char *host);

/* Copies the peer's certificate, if any, into `request` after the handshake. */
void tls_describe_peer(SSL *ssl, struct dicom_association_request &request);

/* Returns the reason why the last OpenSSL call of this thread failed, or `fallback`. */
const char *tls_reason(const char *fallback);

#endif

/*
 * option_dicom.c - the options of the DICOM receiver: titles, peers, TLS, limits.
 */
#include "config/options/option_sections.h"

static const struct option_row title_rows[] = {
    {ROW(conf_title, text, ae_title), NULL, LIMITS(1, 16), .form = &form_ae,
     .help = "AE title that accepts associations"},
    {ROW(conf_title, text, pipeline), "", LIMITS(1, 64), .form = &form_name,
     .help = "pipeline of every series sent to this title; replaces the rules"},
    STACKS_ROW(conf_title),
};

static const struct option_section title_section = {SECTION(title_rows, conf_title)};

static const struct option_row peer_rows[] = {
    {ROW(conf_peer, text, ae_title), NULL, LIMITS(1, 16), .form = &form_ae, .help = "calling AE title of the peer"},
    {ROW(conf_peer, text, host), "", LIMITS(1, 45), .form = &form_caller,
     .help = "IPv4 or IPv6 address that the peer must call from; by default any"},
    {ROW(conf_peer, text, certificate), "", LIMITS(64, 95), .form = &form_fingerprint,
     .help = "SHA-256 fingerprint of the peer's TLS certificate, in hexadecimal; the peer must then use TLS"},
    {ROW(conf_peer, integer, max_associations), "0", LIMITS(0, 1000),
     .help = "max concurrent associations of this peer; 0: half of dicom.max_associations, or all "
             "of them if it is the only peer"},
    RESENT_ROW(conf_peer),
};

static const struct option_section peer_section = {SECTION(peer_rows, conf_peer)};

static const struct option_row tls_rows[] = {
    {ROW(conf_tls, path, certificate), "", LIMITS(1, 4000), .help = "PEM file of Noctule's certificate with its chain"},
    {ROW(conf_tls, path, key), "", LIMITS(1, 4000), .help = "PEM file of Noctule's private key, without a passphrase"},
    {ROW(conf_tls, path, ca), "", LIMITS(1, 4000), .help = "PEM file of trusted CAs"},
    {ROW(conf_tls, path, crl), "", LIMITS(1, 4000),
     .help = "PEM file with a revocation list of each CA of a chain; a chain without a valid list is rejected"},
    {ROW(conf_tls, boolean, require_peer), "true", .help = "reject callers without a certificate of these CAs"},
};

static const struct option_section tls_section = {SECTION(tls_rows, conf_tls)};

static void
check_dicom_tls(const struct conf_dicom *dicom, const struct option_spot *spot)
{
    const struct conf_tls *tls = &dicom->tls;
    if (LOST(spot, dicom->tls))
        return;
    if (!tls->certificate != !tls->key)
        option_refuse(spot, "tls", "certificate and key must be given together");
    if (tls->crl && !tls->ca)
        option_refuse(spot, "tls", "crl requires ca");
    if (dicom->tls_port == 0)
        return;
    if (!tls->certificate && !tls->key)
        option_refuse(spot, "tls_port", "requires tls.certificate and tls.key");
    else if (tls->require_peer && !tls->ca && !tls->crl)
        option_refuse(spot, "tls_port", "requires tls.ca, or tls.require_peer = false");
}

static void
check_dicom(const void *object, const struct option_spot *spot)
{
    const struct conf_dicom *dicom = object;
    /* A title must be unique, because it may have a pipeline. */
    const struct option_named titles = NAMED(spot, "titles", dicom->titles, dicom->title_count);
    if (dicom->port != 0 && dicom->port == dicom->tls_port)
        option_refuse(spot, "tls_port", "must differ from port, %d", dicom->tls_port);
    option_refuse_duplicates(&titles, ".ae_title", "an earlier title");
    check_dicom_tls(dicom, spot);
    /* Report only the first peer, because one correction fixes all. */
    for (size_t i = 0; i < dicom->peer_count; i++)
        if (dicom->peers[i].certificate && dicom->tls_port == 0 && !LOST(spot, dicom->tls_port)) {
            option_refuse(spot, ELEMENT("peers", i, ".certificate"),
                          "requires tls_port, because only TLS has certificates");
            return;
        }
}

static const struct option_row dicom_rows[] = {
    {ROW(conf_dicom, text, bind), "\"\"", LIMITS(0, 45), .form = &form_address,
     .help = "IPv4 or IPv6 address to listen on; empty: all addresses of the host"},
    {ROW(conf_dicom, integer, port), "0", LIMITS(0, 65535),
     .help = "TCP port for C-STORE and C-ECHO, usually 11112; 0: closed"},
    {ROW(conf_dicom, integer, tls_port), "0", LIMITS(0, 65535),
     .help = "TCP port for DICOM over TLS, usually 2762; 0: closed"},
    {ROW(conf_dicom, list, titles), MANY(struct conf_dicom, title_count), .fallback = "( { ae_title = \"NOCTULE\"; } )",
     LIMITS(1, 64), .section = &title_section,
     .help = "AE titles that accept associations; the first is our calling AE title"},
    {ROW(conf_dicom, list, peers), MANY(struct conf_dicom, peer_count), .fallback = "( )", LIMITS(0, 1000),
     .section = &peer_section, .help = "AEs that may connect; all others are rejected"},
    {ROW(conf_dicom, integer, max_associations), "25", LIMITS(1, 1000),
     .help = "max concurrent associations; further callers are rejected as a transient error"},
    {ROW(conf_dicom, number, acse_seconds), "30.0", LIMITS(0.1, 3600),
     .help = "timeout of an association request, and of the answer to ours"},
    {ROW(conf_dicom, number, dimse_seconds), "60.0", LIMITS(0.1, 3600),
     .help = "timeout of the next part of a message"},
    {ROW(conf_dicom, number, idle_seconds), "300.0", LIMITS(0.1, 86400),
     .help = "time after which an association without a message is closed"},
    {ROW(conf_dicom, number, min_kib_per_second), "1.0", LIMITS(0, 1e6),
     .help = "min transfer rate of a message after its first dimse_seconds; 0: no min"},
    {ROW(conf_dicom, integer, max_instance_mib), "4096", LIMITS(1, 1048576), .help = "max size of a received data set"},
    {ROW(conf_dicom, integer, max_pdu_kib), "128", LIMITS(4, 128), .help = "max size of a received PDU, in KiB"},
    {ROW(conf_dicom, boolean, echo_from_anybody), "false",
     .help = "answer C-ECHO, and no other command, to callers that are not peers"},
    {ROW(conf_dicom, group, tls), "{ }", .section = &tls_section,
     .help = "certificates, for incoming and outgoing connections"},
};

const struct option_section option_dicom = {SECTION(dicom_rows, conf_dicom), .check = check_dicom};

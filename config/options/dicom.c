/*
 * dicom.c - the options of the DICOM receiver: titles, peers, TLS, limits.
 */
#include "config/options/sections.h"

static const struct option_row title_rows[] = {
    {"ae_title", &option_text, AT(struct conf_title, ae_title), NULL, LIMITS(1, 16),
     .form = &form_ae, .help = "an AE title that Noctule answers to"},
    {"pipeline", &option_text, AT(struct conf_title, pipeline), "", LIMITS(1, 64),
     .form = &form_name,
     .help = "the pipeline of every series that is sent to this title, in place of the rules"},
    STACKS_ROW(struct conf_title),
};

static const struct option_section title_section = {ROWS(title_rows),
                                                    .size = sizeof(struct conf_title)};

static const struct option_row peer_rows[] = {
    {"ae_title", &option_text, AT(struct conf_peer, ae_title), NULL, LIMITS(1, 16),
     .form = &form_ae, .help = "its calling AE title"},
    {"host", &option_text, AT(struct conf_peer, host), "", LIMITS(1, 45), .form = &form_caller,
     .help = "the IPv4 or IPv6 address that it calls from; any when not given"},
    {"certificate", &option_text, AT(struct conf_peer, certificate), "", LIMITS(64, 95),
     .form = &form_fingerprint,
     .help = "the SHA-256 fingerprint of its TLS certificate, in hexadecimal; with it, it may call "
             "by TLS only"},
    {"max_associations", &option_integer, AT(struct conf_peer, max_associations), "0",
     LIMITS(0, 1000),
     .help =
         "associations at a time of this peer; 0 means half of dicom.max_associations, or all of "
         "them for the only peer"},
    RESENT_ROW(struct conf_peer),
};

static const struct option_section peer_section = {ROWS(peer_rows),
                                                   .size = sizeof(struct conf_peer)};

static const struct option_row tls_rows[] = {
    {"certificate", &option_path, AT(struct conf_tls, certificate), "", LIMITS(1, 4000),
     .help = "PEM file of Noctule's own certificate and those that vouch for it"},
    {"key", &option_path, AT(struct conf_tls, key), "", LIMITS(1, 4000),
     .help = "PEM file of its private key, without a passphrase"},
    {"ca", &option_path, AT(struct conf_tls, ca), "", LIMITS(1, 4000),
     .help = "PEM file of the authorities whose certificates are believed"},
    {"crl", &option_path, AT(struct conf_tls, crl), "", LIMITS(1, 4000),
     .help =
         "PEM file of revocation lists, one of each authority of every chain that is shown; whose "
         "chain lacks one that is valid is turned away"},
    {"require_peer", &option_boolean, AT(struct conf_tls, require_peer), "true",
     .help = "turn callers away that show no certificate of one of these authorities"},
};

static const struct option_section tls_section = {ROWS(tls_rows), .size = sizeof(struct conf_tls)};

static void
check_dicom_tls(const struct conf_dicom *dicom, const struct option_spot *spot)
{
    const struct conf_tls *tls = &dicom->tls;
    if (LOST(spot, dicom->tls))
        return;
    if (!tls->certificate != !tls->key)
        option_refuse(spot, "tls", "certificate and key go together");
    if (tls->crl && !tls->ca)
        option_refuse(spot, "tls", "crl needs ca");
    if (dicom->tls_port == 0)
        return;
    if (!tls->certificate && !tls->key)
        option_refuse(spot, "tls_port", "needs tls.certificate and tls.key");
    else if (tls->require_peer && !tls->ca && !tls->crl)
        option_refuse(spot, "tls_port", "needs tls.ca, or tls.require_peer = false");
}

/* Reports only the first peer, because one correction fixes all. */
static void
check_peers(const struct conf_dicom *dicom, const struct option_spot *spot)
{
    for (size_t i = 0; i < dicom->peer_count; i++)
        if (dicom->peers[i].certificate && dicom->tls_port == 0 && !LOST(spot, dicom->tls_port)) {
            option_refuse_of(spot, "peers", i, ".certificate",
                             "is asked for, but there is no tls_port");
            return;
        }
}

static void
check_dicom(const void *object, const struct option_spot *spot)
{
    const struct conf_dicom *dicom = object;
    /* A title must be unique, because it may have a pipeline. */
    const struct option_named titles = NAMED(spot, "titles", dicom->titles, dicom->title_count);
    if (dicom->port != 0 && dicom->port == dicom->tls_port)
        option_refuse(spot, "tls_port", "%d is the port without TLS", dicom->tls_port);
    option_refuse_twins(&titles, ".ae_title", "an earlier title");
    check_dicom_tls(dicom, spot);
    check_peers(dicom, spot);
}

static const struct option_row dicom_rows[] = {
    {"bind", &option_text, AT(struct conf_dicom, bind), "\"\"", LIMITS(0, 45),
     .form = &form_address,
     .help = "the IPv4 or IPv6 address to listen on; every one of the host when empty"},
    {"port", &option_integer, AT(struct conf_dicom, port), "0", LIMITS(0, 65535),
     .help = "the port for C-STORE and C-ECHO, 11112 by custom; 0 means not to listen"},
    {"tls_port", &option_integer, AT(struct conf_dicom, tls_port), "0", LIMITS(0, 65535),
     .help = "the same with TLS, 2762 by registration; 0 means not to listen"},
    {"titles", &option_list, AT(struct conf_dicom, titles), MANY(struct conf_dicom, title_count),
     .fallback = "( { ae_title = \"NOCTULE\"; } )", LIMITS(1, 64), .section = &title_section,
     .help = "the AE titles that Noctule answers to; it calls others by the first"},
    {"peers", &option_list, AT(struct conf_dicom, peers), MANY(struct conf_dicom, peer_count),
     .fallback = "( )", LIMITS(0, 1000), .section = &peer_section,
     .help = "who may call; nobody else is let in"},
    {"max_associations", &option_integer, AT(struct conf_dicom, max_associations), "25",
     LIMITS(1, 1000),
     .help = "associations at a time; further callers are told to come back later"},
    {"acse_seconds", &option_number, AT(struct conf_dicom, acse_seconds), "30.0", LIMITS(0.1, 3600),
     .help = "how long an association may take to be asked for, and one of ours to be granted"},
    {"dimse_seconds", &option_number, AT(struct conf_dicom, dimse_seconds), "60.0",
     LIMITS(0.1, 3600), .help = "how long the next part of a message may take"},
    {"idle_seconds", &option_number, AT(struct conf_dicom, idle_seconds), "300.0",
     LIMITS(0.1, 86400), .help = "how long an association may be open without a message"},
    {"min_kib_per_second", &option_number, AT(struct conf_dicom, min_kib_per_second), "1.0",
     LIMITS(0, 1e6),
     .help =
         "the slowest that a message may come after its first dimse_seconds of waiting; 0 means "
         "any"},
    {"max_instance_mib", &option_integer, AT(struct conf_dicom, max_instance_mib), "4096",
     LIMITS(1, 1048576), .help = "the largest data set that is received"},
    {"max_pdu_kib", &option_integer, AT(struct conf_dicom, max_pdu_kib), "128", LIMITS(4, 128),
     .help = "the largest PDU that is received, in KiB"},
    {"echo_from_anybody", &option_boolean, AT(struct conf_dicom, echo_from_anybody), "false",
     .help = "answer C-ECHO, and nothing else, to callers that are no peers"},
    {"tls", &option_group, AT(struct conf_dicom, tls), "{ }", .section = &tls_section,
     .help = "certificates, for calls that come in and for those that go out"},
};

const struct option_section option_dicom = {ROWS(dicom_rows), .size = sizeof(struct conf_dicom),
                                            .check = check_dicom};

#include "service/common/admission.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* Limit of associations whose peer released but did not close the connection. Each holds a thread
 * for at most one second. */
#define MAX_LEAVING 64

const struct conf_peer *
admission_peer(const struct conf_dicom *conf, const struct admission_caller *caller)
{
    for (size_t i = 0; i < conf->peer_count; i++) {
        const struct conf_peer *peer = &conf->peers[i];
        if (strcmp(peer->ae_title, caller->calling_ae) == 0 && (!peer->host || strcmp(peer->host, caller->host) == 0) &&
            (!peer->certificate || strcmp(peer->certificate, caller->certificate) == 0))
            return peer;
    }
    return NULL;
}

enum admission_verdict
admission_mismatch(const struct conf_dicom *conf, const struct admission_caller *caller)
{
    enum admission_verdict verdict = ADMISSION_UNKNOWN_CALLER;
    for (size_t i = 0; i < conf->peer_count; i++) {
        const struct conf_peer *peer = &conf->peers[i];
        if (strcmp(peer->ae_title, caller->calling_ae) != 0)
            continue;
        if (!peer->host || strcmp(peer->host, caller->host) == 0)
            return ADMISSION_OTHER_CERTIFICATE;
        verdict = ADMISSION_OTHER_ADDRESS;
    }
    return verdict;
}

static bool
same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

bool
admission_same_peer(const struct conf_peer *a, const struct conf_peer *b)
{
    return strcmp(a->ae_title, b->ae_title) == 0 && same_text(a->host, b->host) &&
           same_text(a->certificate, b->certificate);
}

int
admission_share(const struct conf_dicom *conf, const struct conf_peer *peer)
{
    if (peer->max_associations > 0)
        return peer->max_associations;
    return conf->peer_count > 1 ? (conf->max_associations + 1) / 2 : conf->max_associations;
}

enum admission_verdict
admission_decide(const struct conf_dicom *conf, const struct admission_caller *caller,
                 const struct admission_load *load)
{
    const struct conf_peer *peer = admission_peer(conf, caller);
    if (!peer && !conf->echo_from_anybody)
        return admission_mismatch(conf, caller);
    bool is_ours = false;
    for (size_t i = 0; i < conf->title_count; i++)
        is_ours = is_ours || strcmp(conf->titles[i].ae_title, caller->called_ae) == 0;
    if (!is_ours)
        return ADMISSION_UNKNOWN_TITLE;
    /* Unknown callers have a small limit of their own, so that they cannot take places from peers. */
    if (!peer)
        return load->of_unknown < (conf->max_associations + 3) / 4 ? ADMISSION_ECHO_ONLY : ADMISSION_BUSY;
    if (load->of_peers >= conf->max_associations || load->of_peer >= admission_share(conf, peer) ||
        load->leaving >= MAX_LEAVING)
        return ADMISSION_BUSY;
    return ADMISSION_GRANTED;
}

void
admission_host(const struct sockaddr *address, char host[ADMISSION_HOST])
{
    host[0] = '\0';
    if (address->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, address, sizeof ipv4);
        inet_ntop(AF_INET, &ipv4.sin_addr, host, ADMISSION_HOST);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, address, sizeof ipv6);
        if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr))
            inet_ntop(AF_INET, &ipv6.sin6_addr.s6_addr[12], host, ADMISSION_HOST);
        else
            inet_ntop(AF_INET6, &ipv6.sin6_addr, host, ADMISSION_HOST);
    }
}

/*
 * option_network.c - warns about network options that are valid but probably not intended.
 */
#include "config/options/option_sections.h"

#include <ctype.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_LABEL 63 /* RFC 1035 */

static bool
host_is_address(const char *host)
{
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
    const bool is = getaddrinfo(host, NULL, &hints, &found) == 0;
    if (is)
        freeaddrinfo(found);
    return is;
}

/* Returns whether the text can be a host name: labels of letters, digits, "-" and "_", separated by
 * dots. */
static bool
host_can_be(const char *host)
{
    for (const char *at = host;; at++) {
        const size_t length = strcspn(at, ".");
        if (length == 0 || length > MAX_LABEL || at[0] == '-' || at[length - 1] == '-')
            return false;
        for (size_t i = 0; i < length; i++)
            if (!isalnum((unsigned char)at[i]) && at[i] != '-' && at[i] != '_')
                return false;
        at += length;
        if (!at[0] || !at[1]) /* a trailing dot denotes the root domain */
            return true;
    }
}

static void
warn_host(const char *host, const char *list, size_t i, const struct option_spot *spot)
{
    if (host && !host_is_address(host) && !host_can_be(host))
        option_warn(spot, ELEMENT(list, i, ""), "\"%s\" is not a valid host name", host);
}

/* Returns whether the numeric address belongs to this machine. */
static bool
address_is_own(const char *host)
{
    struct ifaddrs *all = NULL;
    char text[NI_MAXHOST];
    bool own = strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
    if (own || getifaddrs(&all) < 0)
        return own;
    for (const struct ifaddrs *at = all; at && !own; at = at->ifa_next) {
        const int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
        const socklen_t size = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
        own = (family == AF_INET || family == AF_INET6) &&
              getnameinfo(at->ifa_addr, size, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0 &&
              strcmp(text, host) == 0;
    }
    freeifaddrs(all);
    return own;
}

/* Returns whether the host is this machine, and the port is ours. Must not query a name server: compares with the host
 * name, "localhost" and local addresses. */
static bool
peer_is_self(const struct conf_dicom *dicom, const char *host, int port)
{
    char name[256] = "";
    if (!host || port <= 0 || (port != dicom->port && port != dicom->tls_port))
        return false;
    gethostname(name, sizeof(name) - 1);
    return strcasecmp(host, "localhost") == 0 || strcasecmp(host, name) == 0 || address_is_own(host);
}

void
option_warn_network(const struct conf *conf, const struct option_spot *spot)
{
    if ((conf->dicom.port > 0 || conf->dicom.tls_port > 0) && conf->dicom.peer_count == 0 &&
        !LOST(spot, conf->dicom.peers))
        option_warn(spot, conf->dicom.port > 0 ? "dicom.port" : "dicom.tls_port",
                    "is open, but dicom.peers is empty: no AE may connect");
    for (size_t i = 0; i < conf->destination_count; i++) {
        const struct conf_destination *destination = &conf->destinations[i];
        warn_host(destination->host, "destinations", i, spot);
        if (peer_is_self(&conf->dicom, destination->host, destination->port))
            option_warn(spot, ELEMENT("destinations", i, ""),
                        "\"%s\" is this service, which rejects its own results (OWN_RESULT)", destination->name);
    }
    for (size_t i = 0; i < conf->pull.source_count; i++) {
        const struct conf_source *source = &conf->pull.sources[i];
        warn_host(source->host, "pull.sources", i, spot);
        if (peer_is_self(&conf->dicom, source->host, source->port))
            option_warn(spot, ELEMENT("pull.sources", i, ""), "\"%s\" is this service, which does not support C-FIND",
                        source->name);
    }
}

/*
 * page.c - the options of the web UI and of monitoring.
 */
#include "config/options/sections.h"

#include <string.h>

static const struct option_row page_rows[] = {
    {"port", &option_integer, AT(struct conf_page, port), "0", LIMITS(0, 65535),
     .help = "the port of the page and of /healthz, /readyz and /metrics; 0 means none"},
    {"bind", &option_text, AT(struct conf_page, bind), "\"127.0.0.1\"", LIMITS(1, 45),
     .form = &form_address,
     .help = "the IPv4 or IPv6 address to listen on; another than this machine's own needs "
             "token_file"},
    {"token_file", &option_path, AT(struct conf_page, token_file), "", LIMITS(1, 4000),
     .help = "a file whose first line a request has to show, as a bearer token or as the password "
             "of any user; read when the page starts"},
    {"hosts", &option_names, AT(struct conf_page, hosts), MANY(struct conf_page, host_count),
     .fallback = "[ ]", LIMITS(0, 16), .form = &form_host,
     .help = "names, without port, by which browsers reach the page, beside localhost and "
             "addresses"},
};

const struct option_section option_page = {ROWS(page_rows), .size = sizeof(struct conf_page)};

bool
conf_page_is_local(const struct conf_page *page)
{
    return strncmp(page->bind, "127.", 4) == 0 || strcmp(page->bind, "::1") == 0;
}

/* Must not report members as missing that were rejected. */
void
check_page(const struct conf *conf, const struct option_spot *spot)
{
    const struct conf_page *page = &conf->page;
    if (page->port == 0 || LOST(spot, page->port))
        return;
    if (page->bind && !conf_page_is_local(page) && !page->token_file &&
        !LOST(spot, page->token_file))
        option_refuse(spot, "page.bind",
                      "is not this machine's own: that needs page.token_file, or everybody who "
                      "reaches the port sees what is there of patients");
    if (page->port == conf->dicom.port || page->port == conf->dicom.tls_port)
        option_refuse(spot, "page.port", "%d is a port of dicom", page->port);
}

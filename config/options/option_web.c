/*
 * option_web.c - the options of the web UI and of monitoring.
 */
#include "config/options/option_sections.h"

#include <string.h>

static const struct option_row page_rows[] = {
    {ROW(conf_page, integer, port), "0", LIMITS(0, 65535),
     .help = "TCP port of the web UI, /healthz, /readyz and /metrics; 0: closed"},
    {ROW(conf_page, text, bind), "\"127.0.0.1\"", LIMITS(1, 45), .form = &form_address,
     .help = "IPv4 or IPv6 address to listen on; addresses other than loopback require token_file"},
    {ROW(conf_page, path, token_file), "", LIMITS(1, 4000),
     .help = "file whose first line is the token of requests, as a bearer token or as the password "
             "of any user; read when the web UI starts"},
    {ROW(conf_page, names, hosts), MANY(struct conf_page, host_count), .fallback = "[ ]", LIMITS(0, 16),
     .form = &form_host, .help = "host names, without port, that requests may use besides localhost and addresses"},
    {ROW(conf_page, boolean, slices), "false",
     .help = "whether all jobs leave a file for the slice viewer, or only those under review"},
    {ROW(conf_page, text, viewer), "", LIMITS(1, 1000), .form = &form_viewer,
     .help =
         "link from a job to a DICOM viewer: an http or https URL in which {study_uid} and {series_uid} are replaced"},
};

const struct option_section option_page = {SECTION(page_rows, conf_page)};

bool
conf_page_is_local(const struct conf_page *page)
{
    return strncmp(page->bind, "127.", 4) == 0 || strcmp(page->bind, "::1") == 0;
}

/* Must not report members as missing that were rejected. */
void
option_check_web(const struct conf *conf, const struct option_spot *spot)
{
    const struct conf_page *page = &conf->page;
    if (page->port == 0 || LOST(spot, page->port))
        return;
    if (page->bind && !conf_page_is_local(page) && !page->token_file && !LOST(spot, page->token_file))
        option_refuse(spot, "page.bind",
                      "is not a loopback address and requires page.token_file, else every user who "
                      "reaches the port sees patient data");
    if (page->port == conf->dicom.port || page->port == conf->dicom.tls_port)
        option_refuse(spot, "page.port", "%d is already used by dicom", page->port);
}

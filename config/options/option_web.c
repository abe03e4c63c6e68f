/*
 * option_web.c - the options of the web UI and of monitoring.
 */
#include "config/options/option_sections.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ZONES "/usr/share/zoneinfo"

static const char *const may_choices[] = {"review", "deliveries", "quarantine", "jobs",
                                          "alerts", "filters",    "masks",      NULL};

static const struct option_row page_rows[] = {
    {ROW(conf_page, integer, port), "0", LIMITS(0, 65535),
     .help = "TCP port of the web UI, /healthz, /readyz and /metrics; 0: closed"},
    {ROW(conf_page, text, bind), "\"127.0.0.1\"", LIMITS(1, 45), .form = &form_address,
     .help = "IPv4 or IPv6 address to listen on; addresses other than loopback require token_file, tokens_file or "
             "user_header"},
    {ROW(conf_page, path, socket), "", LIMITS(1, 107),
     .help =
         "path of a Unix socket to listen on instead of a port, for a proxy on this machine, which user_header then "
         "trusts without a secret; requires token_file, tokens_file or user_header"},
    {ROW(conf_page, text, socket_mode), "\"0660\"", LIMITS(4, 4), .form = &form_mode,
     .help = "permissions of the socket, octal; its group is that of a folder with the setgid bit"},
    {ROW(conf_page, text, zone), "", LIMITS(1, 64), .form = &form_zone,
     .help = "time zone of the pages, such as \"Europe/Berlin\"; by default that of the machine. JSON and CSV are UTC"},
    {ROW(conf_page, path, token_file), "", LIMITS(1, 4000),
     .help = "file whose first line is the token of viewers without a name, as a bearer token or as the "
             "password of any user; read when the web UI starts"},
    {ROW(conf_page, names, hosts), MANY(struct conf_page, host_count), .fallback = "[ ]", LIMITS(0, 16),
     .form = &form_host, .help = "host names, without port, that requests may use besides localhost and addresses"},
    {ROW(conf_page, boolean, slices), "false",
     .help = "whether all jobs leave a file for the slice viewer, or only those under review"},
    {ROW(conf_page, text, viewer), "", LIMITS(1, 1000), .form = &form_viewer,
     .help =
         "link from a job to a DICOM viewer: an http or https URL in which {study_uid} and {series_uid} are replaced"},
    {ROW(conf_page, flags, may), "", .choices = may_choices,
     .help = "decisions that named persons may make through the web UI: accept and reject results (\"review\"), hold, "
             "release and resend (\"deliveries\"), release and forget files (\"quarantine\"), retry, hold, priority "
             "(\"jobs\"), acknowledge (\"alerts\"), save filters (\"filters\"), upload corrected masks (\"masks\"); by "
             "default none"},
    {ROW(conf_page, path, tokens_file), "", LIMITS(1, 4000),
     .help = "file with a line \"NAME ROLE SHA256\" per person: a name without blanks, \"viewer\", \"reviewer\" or "
             "\"operator\", and the SHA-256 of the token in hexadecimal; read when the web UI starts"},
    {ROW(conf_page, text, user_header), "", LIMITS(1, 64), .form = &form_name,
     .help = "request header in which a proxy names the person it has authenticated; requires secret_file or socket"},
    {ROW(conf_page, path, secret_file), "", LIMITS(1, 4000),
     .help = "file whose first line the proxy must send in the header Noctule-Proxy-Secret; without it user_header is "
             "refused; read when the web UI starts"},
    {ROW(conf_page, names, reviewers), MANY(struct conf_page, reviewer_count), .fallback = "[ ]", LIMITS(0, 256),
     .help = "names in user_header that may review results"},
    {ROW(conf_page, names, operators), MANY(struct conf_page, operator_count), .fallback = "[ ]", LIMITS(0, 256),
     .help = "names in user_header that may make all decisions of may"},
    {ROW(conf_page, number, undo_seconds), "30.0", LIMITS(0, 3600),
     .help = "time in which a decision on a result can be undone in the web UI; only then it takes effect, and "
             "results are sent"},
};

const struct option_section option_page = {SECTION(page_rows, conf_page)};

bool
conf_page_is_local(const struct conf_page *page)
{
    return strncmp(page->bind, "127.", 4) == 0 || strcmp(page->bind, "::1") == 0;
}

bool
conf_page_is_open(const struct conf_page *page)
{
    return page->port != 0 || page->socket;
}

static void
web_check_zone(const struct conf_page *page, const struct option_spot *spot)
{
    char path[PATH_MAX];
    if (!page->zone)
        return;
    snprintf(path, sizeof path, ZONES "/%s", page->zone);
    if (access(path, R_OK) != 0)
        option_refuse(spot, "page.zone", "%s is not in " ZONES " (package tzdata)", page->zone);
}

static void
web_check_socket(const struct conf_page *page, const struct option_spot *spot, bool has_persons)
{
    if (page->socket && page->port != 0)
        option_refuse(spot, "page.socket", "replaces the port: page.port must be 0");
    if (page->socket && !has_persons)
        option_refuse(spot, "page.socket",
                      "requires page.token_file, page.tokens_file or page.user_header, else everyone whom the proxy "
                      "serves sees patient data");
}

/* Must not report members as missing that were rejected. */
void
option_check_web(const struct conf *conf, const struct option_spot *spot)
{
    const struct conf_page *page = &conf->page;
    const bool has_persons = page->token_file || page->tokens_file || page->user_header ||
                             LOST(spot, page->token_file) || LOST(spot, page->tokens_file) ||
                             LOST(spot, page->user_header);
    web_check_zone(page, spot);
    web_check_socket(page, spot, has_persons);
    if (!conf_page_is_open(page) || LOST(spot, page->port))
        return;
    if (page->bind && !conf_page_is_local(page) && !has_persons)
        option_refuse(spot, "page.bind",
                      "is not a loopback address and requires page.token_file, page.tokens_file or page.user_header, "
                      "else every user who reaches the port sees patient data");
    if (page->user_header && !page->secret_file && !page->socket && !LOST(spot, page->secret_file))
        option_refuse(spot, "page.user_header",
                      "requires page.secret_file or page.socket, else any client could send a name");
    if (page->may && !page->tokens_file && !page->user_header && !LOST(spot, page->tokens_file) &&
        !LOST(spot, page->user_header))
        option_refuse(spot, "page.may",
                      "requires page.tokens_file or page.user_header: each decision must have a name");
    if (page->port != 0 && (page->port == conf->dicom.port || page->port == conf->dicom.tls_port))
        option_refuse(spot, "page.port", "%d is already used by dicom", page->port);
}

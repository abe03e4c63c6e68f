/*
 * fuzz_page_request.c - any bytes as a request to the web UI. A client without the token must not get a protected
 * page. A request to another host name must be rejected. The answer must be whole and must not contain a script.
 *
 * An input consists of lines: the access ('0' + GATE_ flags), then path, Host, Authorization and the values in the
 * order of web_request.h. The database has no rows.
 */
#include "base/text.h"
#include "db/queue.h"
#include "db/report.h"
#include "service/common/log.h"
#include "service/web/server/web_assets.h"
#include "service/web/web.h"
#include "tests/fuzz/must.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef-a-token"
#define NAME  "noctule.example.org"

enum {
    GATE_HAS_TOKEN = 1,
    GATE_IS_REACHED = 2,
    GATE_HAS_NAME = 4
}; /* GATE_IS_REACHED: from other hosts, at any address */

enum { PATH, HOST, AUTHORIZATION, VALUES, LINES = VALUES + REQUEST_VALUE_COUNT };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/noctule-fuzz.XXXXXX", database[64], configuration[64];
static char local[] = "127.0.0.1", everywhere[] = "", name[] = NAME;
static char *names[] = {name};
static struct conf *conf;
static struct conf_page loaded; /* the configuration's own, restored before it is freed */
static struct web page = {.database = database};

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void
close_page(void)
{
    web_alerts_clear(&page.alerts);
    web_metrics_close(page.metrics);
    report_close(page.report);
    conf->page = loaded;
    conf_free(conf);
    nftw(folder, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
}

static void
read_configuration(void)
{
    struct error error = {0};
    snprintf(configuration, sizeof configuration, "%s/noctule.conf", folder);
    FILE *file = fopen(configuration, "w");
    must(file && fprintf(file, "root = \"%s\"; min_free_mib = 0;\n", folder) > 0 && fclose(file) == 0);
    must(conf_load(configuration, &conf, &error) == 0);
    loaded = conf->page;
    page.conf = conf;
    page.access.page = &conf->page;
}

static void
open_page(void)
{
    struct queue *queue;
    struct error error = {0};
    if (page.report)
        return;
    log_open("fuzz", "error");
    must(mkdtemp(folder) != NULL);
    read_configuration();
    atexit(close_page);
    snprintf(database, sizeof database, "%s/noctule.db", folder);
    must(queue_open(database, &queue, &error) == 0);
    queue_close(queue);
    must(report_open(database, &page.report, &error) == 0);
    must(web_metrics_open(page.report, &page.metrics, &error) == 0);
    page.alerts.lines = strdup(""); /* the daemon reports no alert */
    must(page.alerts.lines != NULL);
    page.alerts.received_ms = INT64_MAX;
}

/* ------------------------------------------------------------------------------- expectations ---- */

/* Returns the six bits of a base64 digit, padding as in OpenSSL, or -1 if it is not a digit. */
static int
digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c == '=' ? *digits : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Returns whether the base64 text decodes to a text with ":TOKEN", ignoring other characters between its digits. */
static bool
hides_token(const char *encoded)
{
    char text[4096];
    size_t size = 0;
    unsigned bits = 0, count = 0;
    for (; *encoded && size < sizeof text; encoded++) {
        if (digit_of(*encoded) < 0)
            continue;
        bits = bits << 6 | (unsigned)digit_of(*encoded);
        count += 6;
        if (count >= 8) {
            count -= 8;
            text[size++] = (char)(bits >> count);
        }
    }
    return memmem(text, size, ":" TOKEN, strlen(":" TOKEN)) != NULL;
}

static void
must_have_shown_token(const char *authorization)
{
    const size_t length = strlen(authorization), token = strlen(TOKEN);
    const bool bearer = strncasecmp(authorization, "Bearer ", 7) == 0 && length >= 7 + token &&
                        strcmp(authorization + length - token, TOKEN) == 0;
    must(bearer || (strncasecmp(authorization, "Basic ", 6) == 0 && hides_token(authorization + 6)));
}

/* Checks that the host is an address or localhost, with or without a port, or the configured name. */
static void
must_be_ours(const char *host)
{
    must(host[strspn(host, "0123456789abcdefABCDEF.:[]")] == '\0' || strncasecmp(host, "localhost", 9) == 0 ||
         (conf->page.host_count > 0 && strncasecmp(host, NAME, strlen(NAME)) == 0) ||
         (conf->page.host_count == 0 && conf->page.bind == everywhere));
}

static bool
is_open(const char *path)
{
    return strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0 || strcmp(path, "/style.css") == 0 ||
           strcmp(path, "/login") == 0 || strcmp(path, "/icon.svg") == 0 || web_assets_is_path(path);
}

static void
check_status(const struct web_request *request, const struct web_reply *answer)
{
    const bool known = web_access_is_known_host(&page.access, request->host);
    const bool in = web_access_is_authorized(&page.access, request->authorization);
    if (known)
        must_be_ours(request->host);
    if (in && *page.access.token)
        must_have_shown_token(request->authorization);
    must((answer->status == 421) == !known);
    must(!known || (answer->status == 401) == !(in || is_open(request->path)));
    must(answer->needs_token == (answer->status == 401));
    must(answer->status == 200 || answer->status == 301 || answer->status == 400 || answer->status == 401 ||
         answer->status == 404 || answer->status == 405 || answer->status == 421);
    must(!answer->location == (answer->status != 301));
    must(!answer->decision && !answer->file && !*answer->cookie);
}

/* Checks that the answer reveals only the requested facts about this machine. */
static void
check_text(const struct web_request *request, const struct web_reply *answer, const char *text, size_t size)
{
    static const char end[] = "</html>\n";
    must(!memmem(text, size, "<script", strlen("<script")));
    /* Overview and Settings name folders and files of the service. */
    const bool shows =
        answer->status == 200 && (strcmp(request->path, "/") == 0 || strcmp(request->path, "/settings") == 0);
    must(shows || !memmem(text, size, folder, strlen(folder)) || strstr(request->values[REQUEST_q], folder));
    if (strncmp(answer->type, "text/html", strlen("text/html")) == 0)
        must(size > strlen(end) && memcmp(text + size - strlen(end), end, strlen(end)) == 0);
}

/* ------------------------------------------------------------------------------- an input ---- */

static void
ask(const struct web_request *request)
{
    struct text_stream stream;
    struct web_reply answer = {.status = 200, .type = "text/html; charset=utf-8"};
    must(text_open(&stream) == 0);
    answer.out = stream.out;
    web_answer(&page, request, &answer);
    must(text_close(&stream) == 0 && !answer.bytes); /* there is no preview */
    check_status(request, &answer);
    check_text(request, &answer, stream.bytes, stream.size);
    free(stream.bytes);
    free(answer.location);
    free(answer.link);
}

static void
set_gate(unsigned flags)
{
    conf->page.bind = flags & GATE_IS_REACHED ? everywhere : local;
    conf->page.hosts = names;
    conf->page.host_count = flags & GATE_HAS_NAME ? 1 : 0;
    snprintf(page.access.token, sizeof page.access.token, "%s", flags & GATE_HAS_TOKEN ? TOKEN : "");
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *lines[LINES];
    char *text = strndup((const char *)bytes, size), *rest = text; /* a sanitizer detects reads beyond its end */
    const char *access = strsep(&rest, "\n");
    for (int i = 0; i < LINES; i++) {
        lines[i] = strsep(&rest, "\n");
        lines[i] = lines[i] ? lines[i] : "";
    }
    struct web_request request = {.path = lines[PATH],
                                  .host = lines[HOST],
                                  .authorization = lines[AUTHORIZATION],
                                  .origin = "",
                                  .fetch_site = "",
                                  .cookie = "",
                                  .content_type = "",
                                  .address = ""};
    memcpy(request.values, lines + VALUES, sizeof request.values);
    open_page();
    set_gate((unsigned char)*access);
    ask(&request);
    free(text);
    return 0;
}

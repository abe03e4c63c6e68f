/*
 * web_upload.c - corrected masks that persons upload. Declared in web_decide.h.
 *
 * The body is a file in memory. It is cut to the DICOM file, sealed, and handed to the daemon (uploads.h there), which
 * checks everything else: this process does not read DICOM.
 */
#include "service/web/decide/web_decide.h"

#include "base/limits.h"
#include "db/report.h"
#include "service/common/clock.h"
#include "service/web/api/web_api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#define FORM_TYPE     "multipart/form-data"
#define FILE_TYPE     "application/dicom"
#define MAX_BOUNDARY  70   /* RFC 2046 */
#define MAX_PART_HEAD 2048 /* bytes; browsers send the name of the file in it */

/* The parts of a form. */
struct upload_form {
    char token[WEB_SESSION_FORM], job[20], seen[DECISION_REASON + 1];
    const char *file; /* NULL: none */
    size_t size;
};

bool
web_upload_is_path(const char *path)
{
    char job[API_VALUE];
    return strncmp(path, API_ROOT, strlen(API_ROOT)) == 0 &&
           web_api_matches("jobs/{job}/corrections", path + strlen(API_ROOT), job);
}

const char *
web_upload_refusal(const struct web *web, const struct web_request *request, int *status)
{
    const char *name;
    struct web_person person;
    struct error error = {0};
    *status = HTTP_MISDIRECTED_REQUEST;
    if (!web_access_is_known_host(&web->access, request->host))
        return "this host name is not configured (page.hosts)";
    *status = HTTP_UNAUTHORIZED;
    if (!web_session_identify(&web->access, request, &person))
        return "log in, or send the token of a person";
    *status = HTTP_FORBIDDEN;
    if (decision_check(decision_find("correct", "job 1", &name), &web->conf->page, *person.how ? person.name : "",
                       person.role, &error))
        return "page.may must have \"masks\", and the person must be a reviewer";
    return web_session_foreign(&web->access, request);
}

/* ----------------------------------------------------------------------------------- form ---- */

/* Sets "\r\n--" and the boundary of the parts. Returns its length, or 0 if the type has none. */
static size_t
upload_delimiter(const char *type, char delimiter[MAX_BOUNDARY + 5])
{
    static const char key[] = "boundary=";
    const char *at = strcasestr(type, key);
    if (!at)
        return 0;
    at += strlen(key);
    const bool quoted = *at == '"';
    at += quoted;
    const size_t length = strcspn(at, quoted ? "\"" : "; ");
    if (length == 0 || length > MAX_BOUNDARY || (quoted && at[length] != '"'))
        return 0;
    return (size_t)snprintf(delimiter, MAX_BOUNDARY + 5, "\r\n--%.*s", (int)length, at);
}

/* Copies a value that must be one line of UTF-8. Returns the fault, or NULL. */
static const char *
upload_copy_value(char *to, size_t size, const char *bytes, size_t length)
{
    if (*to || length >= size || memchr(bytes, '\0', length))
        return "a field is too long, or comes twice";
    memcpy(to, bytes, length);
    to[length] = '\0';
    return web_form_is_line(to) ? NULL : "a value is not one line of UTF-8";
}

/* Takes a part with the name of its head. */
static const char *
upload_take_part(struct upload_form *form, const char *head, size_t head_size, const char *bytes, size_t size)
{
    static const char key[] = "; name=\"";
    char text[MAX_PART_HEAD + 1];
    memcpy(text, head, head_size);
    text[head_size] = '\0';
    const char *name = strcasestr(text, "content-disposition: form-data") ? strstr(text, key) : NULL;
    const char *const at = name ? name + strlen(key) : "";
    if (strncmp(at, "form\"", 5) == 0)
        return upload_copy_value(form->token, sizeof form->token, bytes, size);
    if (strncmp(at, "job\"", 4) == 0)
        return upload_copy_value(form->job, sizeof form->job, bytes, size);
    if (strncmp(at, "seen\"", 5) == 0)
        return upload_copy_value(form->seen, sizeof form->seen, bytes, size);
    if (strncmp(at, "file\"", 5) != 0)
        return "it has an unknown field";
    if (form->file)
        return "it has two files";
    form->file = bytes;
    form->size = size;
    return NULL;
}

/* Reads multipart/form-data (RFC 7578). libmicrohttpd's parser is not used: it has had two overflows. Returns the fault,
 * or NULL. */
static const char *
upload_read_parts(const char *bytes, size_t size, const char *type, struct upload_form *form)
{
    char delimiter[MAX_BOUNDARY + 5];
    const size_t length = upload_delimiter(type, delimiter);
    const char *const end = bytes + size;
    if (length == 0 || size < length || memcmp(bytes, delimiter + 2, length - 2) != 0)
        return "its boundary is not as the type has it";
    for (const char *at = bytes + length - 2; end - at >= 2 && memcmp(at, "--", 2) != 0;) {
        const size_t left = (size_t)(end - at);
        const char *body = memmem(at, left < MAX_PART_HEAD ? left : MAX_PART_HEAD, "\r\n\r\n", 4);
        if (!body || memcmp(at, "\r\n", 2) != 0)
            return "the head of a part is too long, or broken";
        body += 4;
        const char *next = memmem(body - 2, (size_t)(end - body) + 2, delimiter, length);
        if (!next)
            return "it ends within a part";
        const char *fault =
            upload_take_part(form, at, (size_t)(body - at), body, next > body ? (size_t)(next - body) : 0);
        if (fault)
            return fault;
        at = next + length;
        if (end - at < 2)
            return "it ends within a part";
    }
    return form->file && form->size > 0 ? NULL : "it has no file: choose one";
}

/* Reads the form, and cuts the file of the request to the DICOM file. */
static int
upload_read_form(const struct web_request *request, struct upload_form *form, struct error *error)
{
    void *bytes = mmap(NULL, request->body_size, PROT_READ | PROT_WRITE, MAP_SHARED, request->upload, 0);
    if (bytes == MAP_FAILED)
        return error_set_system(error, -errno, "read an upload");
    const char *fault = upload_read_parts(bytes, request->body_size, request->content_type, form);
    if (!fault)
        memmove(bytes, form->file, form->size);
    munmap(bytes, request->body_size);
    form->file = NULL;
    if (fault)
        return error_set(error, -EINVAL, CODE_NONE, "the body cannot be read: %s", fault);
    return ftruncate(request->upload, (off_t)form->size) < 0 ? error_set_system(error, -errno, "cut an upload") : 0;
}

/* --------------------------------------------------------------------------------- upload ---- */

static bool
upload_is_type(const char *type, const char *wanted)
{
    const size_t length = strcspn(type, "; ");
    return strlen(wanted) == length && strncasecmp(type, wanted, length) == 0;
}

/* Reads the request into the form. `for_programs`: by the address of the API. */
static int
upload_read(const struct web_request *request, bool for_programs, struct upload_form *form, struct error *error)
{
    if (request->body_size == 0)
        return error_set(error, -EINVAL, CODE_NONE, "the body is empty");
    if (!for_programs)
        return upload_is_type(request->content_type, FORM_TYPE)
                   ? upload_read_form(request, form, error)
                   : error_set(error, -ENOTSUP, CODE_NONE, "the body must be " FORM_TYPE);
    if (!upload_is_type(request->content_type, FILE_TYPE))
        return error_set(error, -ENOTSUP, CODE_NONE, "the body must be " FILE_TYPE);
    char job[API_VALUE];
    web_api_matches("jobs/{job}/corrections", request->path + strlen(API_ROOT), job);
    if (strlen(job) < sizeof form->job)
        memcpy(form->job, job, strlen(job) + 1);
    snprintf(form->token, sizeof form->token, "%s", request->header(request->connection, "Noctule-Form"));
    return 0;
}

/* Fills the decision. Its values must stay as long as the decision. */
static int
upload_fill(struct web_decision *decision, const struct web_request *request, const struct upload_form *form,
            struct error *error)
{
    static char nothing[] = "";
    decision->job = strtoll(form->job, NULL, 10);
    for (int i = 0; i < FORM_VALUE_COUNT; i++)
        decision->form.values[i] = nothing;
    decision->form.text = strdup(form->seen);
    if (!decision->form.text)
        return error_set_system(error, -ENOMEM, "decide");
    decision->form.values[FORM_seen] = decision->form.text;
    snprintf(decision->subject, sizeof decision->subject, "job?id=%.18s", form->job);
    decision->form.values[FORM_back] = decision->subject;
    decision->upload = request->upload;
    decision->person = *request->person;
    snprintf(decision->address, sizeof decision->address, "%s", request->address);
    if (fcntl(request->upload, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return error_set_system(error, -errno, "seal an upload");
    return 0;
}

int
web_upload(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    const char *name;
    struct upload_form form = {.file = NULL};
    const struct web_person *person = request->person;
    int rc = decision_check(decision_find("correct", "job 1", &name), &web->conf->page,
                            *person->how ? person->name : "", person->role, error);
    if (rc == 0)
        rc = upload_read(request, strcmp(request->path, "/upload") != 0, &form, error);
    const size_t digits = strspn(form.job, "0123456789");
    if (rc == 0 && (form.job[digits] || digits == 0 || digits > 18 || *form.job == '0'))
        rc = error_set(error, -EINVAL, CODE_NONE, "job must be the number of a job");
    if (rc == 0)
        snprintf(answer->back, sizeof answer->back, "job?id=%.18s", form.job);
    if (rc == 0) {
        const char *fault = web_session_fault(&web->access, request, person, form.token);
        if (fault)
            rc = error_set(error, -EACCES, CODE_NONE, "%s", fault);
    }
    if (rc == 0 && !web_rate_use(&web->decisions, person->name, clock_steady_ms()))
        rc = error_set(error, -EDQUOT, CODE_NONE, "more than %d decisions in a minute: wait", WEB_RATE_BURST);
    struct web_decision *decision = rc ? NULL : calloc(1, sizeof *decision);
    if (rc)
        return rc;
    if (!decision)
        return error_set_system(error, -ENOMEM, "decide");
    rc = upload_fill(decision, request, &form, error);
    if (rc)
        web_decision_free(decision);
    else
        answer->decision = decision;
    return rc;
}

/* ----------------------------------------------------------------------------------- page ---- */

void
web_upload_form(const struct web_view *view, const struct report_table *review)
{
    FILE *out = view->out;
    const char *job = report_cell_text(review, 0, "job"), *seen = report_cell_text(review, 0, "version");
    if (report_number(review, 0, "outdated") != 0 || !web_may(view, "correct", "job 1"))
        return;
    fputs("<form class=\"decide upload\" method=\"post\" action=\"upload\" enctype=\"" FORM_TYPE "\">", out);
    web_form_token(view);
    web_form_field(out, "job", job);
    web_form_field(out, "seen", seen);
    fprintf(out,
            "<label for=\"mask\">Corrected mask (DICOM SEG or RTSTRUCT, at most %d MiB)</label>"
            "<input id=\"mask\" type=\"file\" name=\"file\" required accept=\".dcm,application/dicom\">"
            "<button>Upload corrected mask</button></form>\n"
            "<p class=\"small dim\">A new job measures the masks and comes under review, beside this one. Regions must "
            "have the names of the segments; other segments are computed again.</p>",
            LIMIT_PAGE_UPLOAD_MIB);
}

int
web_upload_pending(const struct web_view *view, int64_t job, struct error *error)
{
    struct report_table table;
    const int rc =
        report_page(view->web->report, WEB_UPLOADS, &(struct report_query){.after = "", .job = job}, &table, error);
    if (rc < 0)
        return rc;
    for (size_t row = 0; row < table.row_count; row++) {
        fputs("<p>", view->out);
        html_untrusted(report_cell_text(&table, row, "person"), view->out);
        fputs(" uploaded corrected masks (", view->out);
        html_time(report_cell_text(&table, row, "since"), view->out);
        fputs("). They are being received. Then a new job measures them, and comes under review.</p>\n", view->out);
    }
    const bool any = table.row_count > 0;
    report_table_free(&table);
    return any;
}

int
web_upload_section(const struct web_view *view, int64_t job, struct error *error)
{
    struct report_table review;
    const int rc =
        report_page(view->web->report, WEB_REVIEW_JOB, &(struct report_query){.after = "", .job = job}, &review, error);
    if (rc < 0)
        return rc;
    int pending = 0;
    const bool is_open = review.row_count > 0 && !*report_cell_text(&review, 0, "decision") &&
                         !*report_cell_text(&review, 0, "correction_job");
    if (is_open && web_may(view, "correct", "job 1")) {
        fputs("<section class=\"forms\"><h2>Correct the masks</h2>", view->out);
        pending = web_upload_pending(view, job, error);
        if (pending == 0)
            web_upload_form(view, &review);
        fputs("</section>\n", view->out);
    }
    report_table_free(&review);
    return pending < 0 ? pending : 0;
}

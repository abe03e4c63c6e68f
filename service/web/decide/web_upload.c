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

#define FORM_TYPE "multipart/form-data"
#define FILE_TYPE "application/dicom"

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

/* Reads the form, and cuts the file of the request to the DICOM file. */
static int
upload_read_form(const struct web_request *request, struct web_parts *form, struct error *error)
{
    void *bytes = mmap(NULL, request->body_size, PROT_READ | PROT_WRITE, MAP_SHARED, request->upload, 0);
    if (bytes == MAP_FAILED)
        return error_set_system(error, -errno, "read an upload");
    const char *fault = web_parts_read(bytes, request->body_size, request->content_type, form);
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
upload_read(const struct web_request *request, bool for_programs, struct web_parts *form, struct error *error)
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
upload_fill(struct web_decision *decision, const struct web_request *request, const struct web_parts *form,
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
    struct web_parts form = {.file = NULL};
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

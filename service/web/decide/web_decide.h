/*
 * web_decide.h - decisions of persons: checks a POST and sends it to the daemon, which checks it again and makes the
 * decision. This process writes nothing.
 */
#ifndef NOCTULE_SERVICE_WEB_DECIDE_WEB_DECIDE_H
#define NOCTULE_SERVICE_WEB_DECIDE_WEB_DECIDE_H

#include "service/common/decisions/decisions.h"
#include "service/common/wire/proto.h"
#include "service/web/pages/web_view.h"
#include "service/web/server/web_form.h"
#include "service/web/server/web_session.h"
#include "service/web/web.h"

struct web_decision {
    struct web_form form;
    struct web_person person;
    char address[64];
    char action[32], subject[512]; /* of the address (web_api_find_decision), or of a filter */
    int64_t value;
    int upload;  /* file of a corrected mask, owned by the request; 0: none */
    int64_t job; /* the same: the job that it corrects */
};

/* Checks a decision. Returns 0 with answer->decision, which web_decision_free() frees; or -errno with a message:
 * -EACCES, -EINVAL, -ENOTSUP (type of the body), -EDQUOT (too many). */
int web_decide(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);
/* Does the same for a filter to save: list, name, filter. */
int web_save_filter(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);
/* Does the same for a corrected mask of a job (web_upload.c): a form with a file, or the file itself. */
int web_upload(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);
/* Returns whether the path is the address for programs. */
bool web_upload_is_path(const char *path);
/* Returns why an upload must be refused before its body is read, with the status; NULL: it is admitted. Any thread may
 * call it. */
const char *web_upload_refusal(const struct web *web, const struct web_request *request, int *status);
/* Writes the form for a corrected mask of a result under review (WEB_REVIEW_JOB), unless the person may not. */
void web_upload_form(const struct web_view *view, const struct report_table *review);
/* Writes the persons whose uploaded masks are still being received. Returns their number, or -errno. */
int web_upload_pending(const struct web_view *view, int64_t job, struct error *error);
/* Writes both as a section, for a job that may be under review. Returns 0 or -errno. */
int web_upload_section(const struct web_view *view, int64_t job, struct error *error);
/* Writes DECIDE or UPLOAD. */
void web_decision_write(const struct web_decision *decision, int64_t token, struct proto_writer *writer);
void web_decision_free(struct web_decision *decision);

/* Sets the address to go to after a form: its page, or the first one. */
void web_decision_return(const char *back, struct web_reply *answer);

/* The page with the form of a login, and its POSTs. -EPERM: a wrong token. */
int web_view_login(const struct web_view *view, struct error *error);
int web_log_in(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);
int web_log_out(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);

/* Do the same, but write only the cookie of the answer. */
int web_log_in_as(struct web *web, const struct web_request *request, struct web_person *found,
                  struct web_reply *answer, struct error *error);
int web_session_leave(struct web *web, const struct web_request *request, struct web_reply *answer,
                      struct error *error);

/* Writes a form with one button, unless the person may not make this decision. */
void web_form_write(const struct web_view *view, const char *action, const char *subject, const char *label);
/* Returns whether the person of the request may make this decision. */
bool web_may(const struct web_view *view, const char *action, const char *subject);
/* Begins such a form, for more fields. Returns false without a form if the person may not. `back`: the page to go to
 * afterwards; NULL: this one. The caller must write at least a button and </form>. */
bool web_form_begin(const struct web_view *view, const char *action, const char *subject, const char *back);
/* Writes the hidden field of the form's token. The request must have a person. */
void web_form_token(const struct web_view *view);
/* Writes a hidden field. */
void web_form_field(FILE *out, const char *name, const char *value);

/* Buttons of pages (web_buttons.c). Each writes nothing if the person may not. `context` of an alert is the view, as
 * html_alerts() passes it. */
void web_alert_buttons(const void *context, const struct alert *alert, FILE *out);
void web_destination_buttons(const struct web_view *view, const char *destination, bool is_held);
/* Writes the buttons of a delivery under review, or the command for a person without the right. The decision is
 * final. */
void web_delivery_buttons(const struct web_view *view, const char *delivery, const char *version);
/* Writes the list of quarantined files, with the buttons of each. Returns 0 or -errno. */
int web_view_quarantine(const struct web_view *view, struct error *error);
/* Writes the buttons of a job, by its state. Returns 0 or -errno. */
int web_job_buttons(const struct web_view *view, int64_t job, struct error *error);

/* Writes the person of the request with a button to log out, or a link to log in. */
void web_person_write(const struct web *web, const struct web_request *request, FILE *out);

/* ----------------------------------------------------------------------------- web_parts.c ---- */

/* The body of an upload: multipart/form-data (RFC 7578). The parser of libmicrohttpd is not used, because it has had two
 * overflows. */

struct web_parts {
    char token[WEB_SESSION_FORM], job[20], seen[DECISION_REASON + 1];
    const char *file; /* within the body; NULL: none */
    size_t size;
};

/* Reads a body of the type into the parts, which must be zero. Returns NULL, or the fault as a text. */
const char *web_parts_read(const char *bytes, size_t size, const char *type, struct web_parts *form);

#endif

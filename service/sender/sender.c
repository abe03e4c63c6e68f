#include "service/sender/sender.h"

#include "base/error.h"
#include "base/test_hook.h"
#include "dicom/net/scu.h"
#include "dicom/objects/seg/seg.h"
#include "dicom/value/uid.h"
#include "service/common/clock.h"
#include "service/common/deidentification.h"
#include "service/common/log.h"
#include "service/common/stow/stow.h"
#include "service/common/wire/child.h"
#include "service/sender/sender_form.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/* Limit of queued deliveries whose classes and transfer syntaxes are proposed on one association. */
#define MAX_PROPOSED 8

struct sender_task {
    struct sender_task *next;
    int64_t delivery;
    int64_t confirmed, issuers;
    char *kind, *file, *source, *name, *sop_class, *sop_instance, *digest, *accepted; /* as of DELIVER */
};

struct sender {
    struct sender_options options;
    pthread_t thread;
    int wake; /* eventfd, signalled for a task or the end */
    pthread_mutex_t mutex;
    struct sender_task *first; /* guarded by the mutex, as is stopping */
    bool stopping;
    atomic_bool ended;
    /* Used only by the thread. */
    struct dicom_association *association; /* NULL: not open */
    double last_use;                       /* as of clock_seconds() */
    int64_t expected_reports;              /* commitment reports expected on this association */
    struct stow *stow;                     /* NULL: not open */
    struct sender_refusals refusals;       /* of the STOW-RS service */
    struct deidentification cleaning;      /* of a destination with `deidentify` */
};

/* The outcome of one delivery. */
struct send_attempt {
    struct error error;     /* code NONE: success */
    struct dicom_form own;  /* of an object */
    struct dicom_form sent; /* after success */
    struct dicom_answer answer;
    int32_t store_status;
    enum proto_commitment commitment;
    char transaction[DICOM_UID_SIZE];
    char held[SENDER_CHAIN]; /* of files that a person must review, or "" */
};

/* ------------------------------------------------------------------------------- sending ---- */

static void
send_delivered(struct sender *sender, const struct sender_task *task, enum proto_delivery outcome,
               const struct send_attempt *attempt)
{
    struct proto_writer writer;
    const struct message_delivered message = {
        .delivery = task->delivery,
        .outcome = outcome,
        .dimse_status = attempt->store_status,
        .code = attempt->error.code,
        .message = attempt->error.message,
        .commitment = attempt->commitment,
        .transaction_uid = attempt->commitment == PROTO_COMMITMENT_REQUESTED ? attempt->transaction : "",
        .sent_sop_class = attempt->sent.sop_class,
        .sent_transfer_syntax = attempt->sent.transfer_syntax,
        .sent_sop_instance = attempt->sent.sop_instance,
        .held = attempt->held,
    };
    message_write_delivered(&writer, &message);
    sender->options.events.frame(sender->options.events.context, &writer);
}

static void
send_returned(struct sender *sender, const struct sender_task *task)
{
    struct send_attempt attempt = {.store_status = -1};
    error_set(&attempt.error, -ECANCELED, CODE_RETURNED, "It was not tried: the courier is ending.");
    send_delivered(sender, task, PROTO_DELIVERY_RETURNED, &attempt);
}

/* -------------------------------------------------------------------------- the association - */

/* Fills the peer's settings. Fails if TLS is required and not available. */
static int
describe_peer(const struct sender *sender, struct dicom_peer *peer, struct error *error)
{
    const struct conf_destination *destination = sender->options.destination;
    const struct conf_dicom *dicom = sender->options.dicom;
    if (destination->tls && !sender->options.tls)
        return error_set(error, -ENOKEY, CODE_TLS_FAILED,
                         "Our own TLS certificate, key or authorities cannot be used: see the log.");
    *peer = (struct dicom_peer){.calling_ae = destination->calling_ae_title,
                                .called_ae = destination->ae_title,
                                .host = destination->host,
                                .port = destination->port,
                                .tls = destination->tls ? sender->options.tls : NULL,
                                .certificate = destination->certificate,
                                .connect_seconds = destination->connect_seconds,
                                .acse_seconds = dicom->acse_seconds,
                                .dimse_seconds = destination->dimse_seconds,
                                .min_rate = destination->min_kib_per_second * 1024,
                                .max_pdu = (uint32_t)dicom->max_pdu_kib << 10};
    return 0;
}

static void
drop_association(struct sender *sender)
{
    dicom_release(sender->association);
    sender->association = NULL;
    sender->expected_reports = 0;
}

/* Passes on the peer's commitment reports, and drops an association that has ended. */
static void
take_reports(struct sender *sender)
{
    const struct conf_destination *destination = sender->options.destination;
    const struct dicom_commitment *report;
    int found = 0;
    while (sender->association && (found = dicom_report(sender->association, &report)) > 0) {
        struct proto_writer writer;
        /* Token 0: no reply is needed, because the daemon resends after commit_seconds without a report. */
        child_write_commitment(&writer, 0, destination->ae_title, destination->name, report);
        sender->options.events.frame(sender->options.events.context, &writer);
        sender->last_use = clock_seconds();
        sender->expected_reports -= sender->expected_reports > 0;
    }
    if (found < 0)
        drop_association(sender);
}

/* The presentation contexts to propose. */
struct proposal {
    struct dicom_context contexts[5 * MAX_PROPOSED + 1];
    size_t count;
};

static void
proposal_add(struct proposal *proposal, const char *sop_class, const char *syntax)
{
    for (size_t i = 0; i < proposal->count; i++)
        if (strcmp(proposal->contexts[i].sop_class, sop_class) == 0 &&
            strcmp(proposal->contexts[i].transfer_syntax, syntax) == 0)
            return;
    proposal->contexts[proposal->count++] = (struct dicom_context){sop_class, syntax};
}

/* Adds the contexts for each form of an object. Its own transfer syntax comes first. */
static void
proposal_add_forms(struct proposal *proposal, const struct dicom_form *own)
{
    const char *const classes[] = {own->sop_class, SEG_SOP_CLASS_UID};
    const size_t count = sender_form_applies(SENDER_FORM_BINARY, own) ? 2 : 1;
    if (sender_form_applies(SENDER_FORM_UNCOMPRESSED, own))
        proposal_add(proposal, own->sop_class, own->transfer_syntax);
    for (size_t i = 0; i < count; i++) {
        proposal_add(proposal, classes[i], DICOM_EXPLICIT_LITTLE);
        proposal_add(proposal, classes[i], DICOM_IMPLICIT_LITTLE);
    }
}

/* Reads the forms of the deliveries that are queued. One that cannot be read fails when it is sent. Returns their
 * number. */
static size_t
read_queued_forms(struct sender *sender, struct dicom_form forms[MAX_PROPOSED - 1])
{
    char *files[MAX_PROPOSED - 1];
    size_t count = 0, read = 0;
    struct error ignored;
    pthread_mutex_lock(&sender->mutex);
    for (const struct sender_task *next = sender->first; next && count < MAX_PROPOSED - 1; next = next->next)
        files[count++] = strdup(next->file);
    pthread_mutex_unlock(&sender->mutex);
    for (size_t i = 0; i < count; i++) {
        read += files[i] && dicom_read_form(files[i], &forms[read], &ignored) == 0;
        free(files[i]);
    }
    return read;
}

static int
connect_for(struct sender *sender, struct send_attempt *attempt)
{
    const struct conf_destination *destination = sender->options.destination;
    struct dicom_form forms[MAX_PROPOSED] = {attempt->own};
    struct proposal proposal = {.count = 0};
    struct dicom_peer peer;
    const size_t count = 1 + read_queued_forms(sender, forms + 1);
    for (size_t i = 0; i < count; i++)
        proposal_add_forms(&proposal, &forms[i]);
    if (destination->commit)
        proposal_add(&proposal, DICOM_COMMITMENT_CLASS, DICOM_IMPLICIT_LITTLE);
    attempt->answer = (struct dicom_answer){-1, -1, -1, -1};
    int rc = describe_peer(sender, &peer, &attempt->error);
    if (rc)
        return rc;
    return dicom_connect(&peer, proposal.contexts, proposal.count, &sender->association, &attempt->answer,
                         &attempt->error);
}

/* ---------------------------------------------------------------------------- delivering ---- */

static int
sender_commit(struct sender *sender, struct send_attempt *attempt)
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set_system(&attempt->error, -EIO, "get random bytes");
    uid_from_bytes(bytes, attempt->transaction);
    int rc = dicom_commit(sender->association, attempt->transaction, attempt->sent.sop_class,
                          attempt->sent.sop_instance, &attempt->answer, &attempt->error);
    if (rc == 0) {
        sender->expected_reports++;
        attempt->commitment = PROTO_COMMITMENT_REQUESTED;
    }
    return rc;
}

/* Requests storage commitment. The object stays stored in any case. Some peers abort instead of rejecting the request.
 * It is repeated once on a new association, since the connection may also have been lost by chance. */
static void
ask_commitment(struct sender *sender, struct send_attempt *attempt)
{
    int rc = sender_commit(sender, attempt);
    if (rc && !dicom_is_open(sender->association)) {
        drop_association(sender);
        rc = connect_for(sender, attempt);
        if (rc == 0)
            rc = sender_commit(sender, attempt);
    }
    if (!rc)
        return;
    const struct error why = attempt->error;
    attempt->commitment = PROTO_COMMITMENT_REFUSED;
    if (why.code != CODE_COMMIT_UNSUPPORTED)
        error_set(&attempt->error, -EREMOTEIO, CODE_COMMIT_FAILED,
                  "It has stored the object, but takes no request for storage commitment: %s Let it know the AE title "
                  "%s with our host and port (Orthanc: DicomModalities), or take `commit` from the destination.",
                  why.message, sender->options.destination->calling_ae_title);
}

/* Sends one form of the object, to an AE or by STOW-RS. */
static int
send_form(struct sender *sender, const struct sender_task *task, enum sender_form_kind kind,
          struct send_attempt *attempt)
{
    struct sender_form form;
    int rc = sender_form_open(kind, &attempt->own, task->file, sender->options.root, &form, &attempt->error);
    if (rc)
        return rc;
    if (kind != SENDER_FORM_OWN)
        log_info("courier.converted", LOG_INT("delivery", task->delivery), LOG_STR("class", form.is.sop_class),
                 LOG_STR("instance", form.is.sop_instance));
    if (sender->stow) {
        rc = stow_store(sender->stow, form.path, form.is.sop_instance, &attempt->answer, &attempt->error);
        attempt->sent = form.is;
    } else {
        rc = dicom_store_file(sender->association, form.path, &attempt->sent, &attempt->answer, &attempt->error);
    }
    attempt->store_status = attempt->answer.status;
    crash_point("courier_after_store");
    if (rc == 0)
        attempt->error = (struct error){0};
    sender_form_close(&form);
    return rc;
}

/* Sends the first form that the peer can store. An AE has answered at its association which forms it accepts; without
 * one, sending the object as it is fails with the reason. */
static int
send_forms(struct sender *sender, const struct sender_task *task, struct send_attempt *attempt)
{
    const double now = clock_seconds();
    const enum sender_form_kind first =
        sender->stow ? sender_form_first(&sender->refusals, &attempt->own, now) : SENDER_FORM_OWN;
    bool tried = false, again = true, unknown = sender->stow != NULL;
    int rc = 0;
    for (enum sender_form_kind kind = first; kind < SENDER_FORMS && again; kind++) {
        if (!(sender->association ? sender_form_is_accepted(kind, &attempt->own, sender->association)
                                  : sender_form_applies(kind, &attempt->own)))
            continue;
        tried = true;
        rc = send_form(sender, task, kind, attempt);
        again = rc && sender_form_is_refused(attempt->error.code, &attempt->answer,
                                             sender->stow ? stow_status(sender->stow) : 0);
        unknown = unknown && (rc == 0 || sender_form_is_unknown(&attempt->answer, stow_status(sender->stow)));
        if (rc == 0 && unknown && kind > first)
            sender_form_remember(&sender->refusals, &attempt->own, kind, now);
    }
    if (again && first != SENDER_FORM_OWN) /* the service has changed */
        sender_form_remember(&sender->refusals, &attempt->own, SENDER_FORM_OWN, now);
    return tried ? rc : send_form(sender, task, SENDER_FORM_OWN, attempt);
}

static int
send_once(struct sender *sender, const struct sender_task *task, struct send_attempt *attempt)
{
    int rc = 0;
    if (!sender->association)
        rc = connect_for(sender, attempt);
    if (rc)
        return rc;
    rc = send_forms(sender, task, attempt);
    if (rc == 0 && sender->options.destination->commit)
        ask_commitment(sender, attempt);
    sender->last_use = clock_seconds();
    return rc;
}

/* Returns whether the open association has contexts for a form of the object. One that was proposed for others is
 * replaced, as the peer may accept this object's own transfer syntax. */
static bool
association_serves(const struct sender *sender, const struct dicom_form *own)
{
    bool accepted = false;
    for (enum sender_form_kind kind = SENDER_FORM_OWN; kind < SENDER_FORMS; kind++)
        accepted |= sender_form_is_accepted(kind, own, sender->association);
    return accepted && dicom_proposed(sender->association, own->sop_class, own->transfer_syntax);
}

/* Delivers to an AE. An idle association may turn out to be dead at its next use, although the peer works. In that case
 * it is retried at once on a new one. Storing the same instance twice is harmless. */
static enum dicom_outcome
deliver_to_ae(struct sender *sender, const struct sender_task *task, struct send_attempt *attempt)
{
    take_reports(sender);
    if (sender->association && !association_serves(sender, &attempt->own))
        drop_association(sender);
    const bool reused = sender->association != NULL;
    int rc = send_once(sender, task, attempt);
    if (rc && reused && !dicom_is_open(sender->association) && attempt->store_status < 0) {
        take_reports(sender); /* also drops the association */
        *attempt = (struct send_attempt){.own = attempt->own, .store_status = -1};
        rc = send_once(sender, task, attempt);
    }
    return rc == 0 ? DICOM_SENT : dicom_outcome_of(attempt->error.code, &attempt->answer);
}

static enum dicom_outcome
deliver_by_stow(struct sender *sender, const struct sender_task *task, struct send_attempt *attempt)
{
    int rc = sender->stow ? 0 : stow_open(sender->options.destination, &sender->stow, &attempt->error);
    if (rc == 0)
        rc = send_forms(sender, task, attempt);
    return rc ? dicom_outcome_of(attempt->error.code, &attempt->answer) : DICOM_SENT;
}

static enum dicom_outcome
deliver_to_folder(const struct sender *sender, const struct sender_task *task, struct send_attempt *attempt)
{
    const char *folder = sender->options.destination->folder;
    char name[SENDER_NAME];
    if (*task->sop_instance)
        snprintf(name, sizeof name, "%s.dcm", task->sop_instance);
    else
        snprintf(name, sizeof name, "%s.%s", task->source, task->name);
    if (sender_folder_deliver(folder, task->file, name, &attempt->error))
        return dicom_outcome_of(attempt->error.code, &attempt->answer);
    attempt->sent = attempt->own;
    return DICOM_SENT;
}

/* Delivers one file as it is. */
static enum dicom_outcome
send_file(struct sender *sender, const struct sender_task *task, struct send_attempt *attempt)
{
    const struct conf_destination *to = sender->options.destination;
    if (*task->sop_instance && dicom_read_form(task->file, &attempt->own, &attempt->error))
        return dicom_outcome_of(attempt->error.code, &attempt->answer);
    if (to->folder)
        return deliver_to_folder(sender, task, attempt);
    return to->stow ? deliver_by_stow(sender, task, attempt) : deliver_to_ae(sender, task, attempt);
}

/* Delivers one file, or its de-identified copy. */
static enum dicom_outcome
send_copy(struct sender *sender, const struct sender_task *task, bool released, struct send_attempt *attempt)
{
    struct deidentify settings = sender->cleaning.how;
    const struct deidentify *how = &settings;
    const bool is_object = *task->sop_instance != '\0';
    struct sender_form copy;
    char source[SENDER_NAME] = "";
    if (!sender->options.destination->deidentify)
        return send_file(sender, task, attempt);
    settings.released = released;
    int rc = (is_object ? sender_copy_object : sender_copy_file)(how, task->file, sender->options.root, &copy,
                                                                 &attempt->error);
    if (rc)
        return dicom_outcome_of(attempt->error.code, &attempt->answer);
    crash_point("courier_after_copy");
    if (!is_object)
        rc = sender_copy_source(how, task->source, source, sizeof source);
    if (rc)
        error_set_system(&attempt->error, rc, "name a copy");
    const struct sender_task cleaned = {.delivery = task->delivery,
                                        .kind = task->kind,
                                        .file = copy.path,
                                        .source = source,
                                        .name = task->name,
                                        .sop_class = is_object ? copy.is.sop_class : task->sop_class,
                                        .sop_instance = is_object ? copy.is.sop_instance : task->sop_instance};
    const enum dicom_outcome outcome =
        rc ? dicom_outcome_of(attempt->error.code, &attempt->answer) : send_file(sender, &cleaned, attempt);
    sender_form_close(&copy);
    return outcome;
}

static bool
sender_is_stopping(struct sender *sender)
{
    pthread_mutex_lock(&sender->mutex);
    const bool stopping = sender->stopping;
    pthread_mutex_unlock(&sender->mutex);
    return stopping;
}

/* Refuses a series if text may be burned into an image, before the first one is sent. */
static int
check_images(struct sender *sender, const struct sender_images *images, struct error *error)
{
    size_t found = 0;
    struct error first = {0}, other;
    for (size_t i = 0; i < images->count && !sender_is_stopping(sender); i++) {
        struct error *reason = found ? &other : &first;
        const int rc = deidentify_check(images->files[i], reason);
        if (rc && reason->code != CODE_BURNED_IN_TEXT) {
            *error = *reason;
            return rc;
        }
        found += rc != 0;
    }
    if (found == 0)
        return 0;
    return error_set(error, -EBADMSG, CODE_BURNED_IN_TEXT, "Of %zu images %zu may show text. The first: %s",
                     images->count, found, first.message);
}

/* Returns whether copies of two persons could have the same pseudonym, which follows from the Patient ID alone. */
static bool
is_shared_id(const struct sender *sender, const struct sender_task *task)
{
    return sender->options.destination->deidentify && !sender->cleaning.how.no_patient && task->issuers > 1;
}

/* Computes the digest that a person releases: of files, and of the number of issuers if there are several. */
static int
digest_release(const struct sender *sender, const struct sender_task *task, const char files[SENDER_CHAIN],
               char release[SENDER_CHAIN])
{
    char issuers[32];
    snprintf(issuers, sizeof issuers, "issuers %" PRId64, task->issuers);
    memcpy(release, files, SENDER_CHAIN);
    return is_shared_id(sender, task) ? sender_chain_add(sender->options.key, issuers, release) : 0;
}

/* Refuses copies if the patient may be two persons, after a check for text with this result. */
static int
check_issuers(const struct sender *sender, const struct sender_task *task, int rc, struct error *error)
{
    if (!is_shared_id(sender, task) || (rc && error->code != CODE_BURNED_IN_TEXT))
        return rc;
    const struct error text = *error;
    return error_set(error, -EBADMSG, rc ? CODE_BURNED_IN_TEXT : CODE_ISSUERS_DIFFER,
                     "%.250s%sImages of this Patient ID have %" PRId64
                     " different issuers (0010,0021). If they are of two persons, the copies show them as one.",
                     rc ? text.message : "", rc ? " Also: " : "", task->issuers);
}

static void
send_confirmed(const struct sender *sender, const struct sender_task *task, size_t count, const char *digest)
{
    struct proto_writer writer;
    message_write_images(
        &writer, &(struct message_images){.delivery = task->delivery, .confirmed = (int64_t)count, .digest = digest});
    sender->options.events.frame(sender->options.events.context, &writer);
}

/* Sets the digest of a delivery that a person must review. */
static void
hold(struct send_attempt *attempt, const char release[SENDER_CHAIN])
{
    if (attempt->error.code == CODE_BURNED_IN_TEXT || attempt->error.code == CODE_ISSUERS_DIFFER)
        memcpy(attempt->held, release, SENDER_CHAIN);
}

static enum dicom_outcome
send_image(struct sender *sender, const struct sender_task *task, const char *file, bool released,
           struct send_attempt *attempt)
{
    struct dicom_form form;
    *attempt = (struct send_attempt){.answer = {-1, -1, -1, -1}, .store_status = -1};
    if (dicom_read_form(file, &form, &attempt->error))
        return dicom_outcome_of(attempt->error.code, &attempt->answer);
    char path[SENDER_PATH];
    snprintf(path, sizeof path, "%s", file);
    const struct sender_task image = {.delivery = task->delivery,
                                      .kind = task->kind,
                                      .file = path,
                                      .source = "",
                                      .name = "",
                                      .sop_class = form.sop_class,
                                      .sop_instance = form.sop_instance};
    return send_copy(sender, &image, released, attempt);
}

/* Delivers the images of a series that the destination does not have from an earlier attempt. The digest of these differs
 * if files came, went or were replaced, or if they would be sent in another way: then all are sent. */
static enum dicom_outcome
send_images(struct sender *sender, const struct sender_task *task, const struct sender_images *images,
            struct send_attempt *attempt)
{
    char chain[SENDER_CHAIN], whole[SENDER_CHAIN], release[SENDER_CHAIN];
    size_t first = 0;
    int rc = sender_chain_begin(sender->options.destination, &sender->cleaning.how, sender->options.key, chain);
    memcpy(whole, chain, sizeof whole);
    for (size_t i = 0; i < images->count && rc == 0; i++) {
        rc = sender_chain_add(sender->options.key, images->files[i], whole);
        if ((int64_t)i + 1 == task->confirmed && strcmp(whole, task->digest) == 0) {
            first = i + 1;
            memcpy(chain, whole, sizeof chain);
        }
    }
    if (rc == 0)
        rc = digest_release(sender, task, whole, release);
    if (rc) {
        error_set_system(&attempt->error, rc, "list the images");
        return dicom_outcome_of(attempt->error.code, &attempt->answer);
    }
    const bool released = strcmp(release, task->accepted) == 0;
    if (sender->options.destination->deidentify && !released) {
        rc = check_images(sender, images, &attempt->error);
        rc = check_issuers(sender, task, rc, &attempt->error);
        hold(attempt, release);
    }
    if (rc)
        return dicom_outcome_of(attempt->error.code, &attempt->answer);
    if (first > 0)
        log_info("courier.continues", LOG_INT("delivery", task->delivery), LOG_INT("confirmed", (int64_t)first),
                 LOG_INT("images", (int64_t)images->count));
    enum dicom_outcome outcome = DICOM_SENT;
    for (size_t i = first; i < images->count && outcome == DICOM_SENT; i++) {
        if (sender_is_stopping(sender)) {
            error_set(&attempt->error, -ECANCELED, CODE_RETURNED, "%zu of %zu images were sent.", i, images->count);
            return DICOM_TRANSIENT;
        }
        outcome = send_image(sender, task, images->files[i], released, attempt);
        if (outcome == DICOM_SENT && sender_chain_add(sender->options.key, images->files[i], chain) == 0)
            send_confirmed(sender, task, i + 1, chain);
        crash_point("courier_after_image");
    }
    attempt->sent = (struct dicom_form){"", "", ""}; /* it is no single object */
    return outcome;
}

/* Delivers one object or file. A copy that may show text, or be of two patients, is held until a person released this file. */
static enum dicom_outcome
send_one(struct sender *sender, const struct sender_task *task, struct send_attempt *attempt)
{
    char chain[SENDER_CHAIN], release[SENDER_CHAIN];
    int rc = sender_chain_begin(sender->options.destination, &sender->cleaning.how, sender->options.key, chain);
    if (rc == 0)
        rc = sender_chain_add(sender->options.key, task->file, chain);
    if (rc == 0)
        rc = digest_release(sender, task, chain, release);
    if (rc) {
        error_set_system(&attempt->error, rc, "name the file");
        return dicom_outcome_of(attempt->error.code, &attempt->answer);
    }
    const bool released = strcmp(release, task->accepted) == 0;
    if (!released && is_shared_id(sender, task)) {
        rc = *task->sop_instance ? deidentify_check(task->file, &attempt->error) : 0;
        rc = check_issuers(sender, task, rc, &attempt->error);
    }
    const enum dicom_outcome outcome =
        rc ? dicom_outcome_of(attempt->error.code, &attempt->answer) : send_copy(sender, task, released, attempt);
    hold(attempt, release);
    return outcome;
}

static enum dicom_outcome
send_task(struct sender *sender, const struct sender_task *task, struct send_attempt *attempt)
{
    struct sender_images images;
    if (strcmp(task->kind, CONF_KIND_IMAGES) != 0)
        return send_one(sender, task, attempt);
    const enum dicom_outcome outcome = sender_images_find(task->file, &images, &attempt->error)
                                           ? dicom_outcome_of(attempt->error.code, &attempt->answer)
                                           : send_images(sender, task, &images, attempt);
    sender_images_free(&images);
    return outcome;
}

static void
sender_attempt(struct sender *sender, const struct sender_task *task)
{
    static const enum proto_delivery message[] = {[DICOM_SENT] = PROTO_DELIVERY_SENT,
                                                  [DICOM_TRANSIENT] = PROTO_DELIVERY_TRANSIENT,
                                                  [DICOM_PERMANENT] = PROTO_DELIVERY_PERMANENT};

    static const char *const names[] = {"sent", "transient", "permanent"};
    const struct conf_destination *to = sender->options.destination;
    struct send_attempt attempt = {.answer = {-1, -1, -1, -1}, .store_status = -1};
    const double start = clock_seconds();
    const enum dicom_outcome outcome = send_task(sender, task, &attempt);
    if (attempt.error.code == CODE_RETURNED) {
        send_returned(sender, task);
        return;
    }
    if (outcome != DICOM_SENT)
        attempt.sent = (struct dicom_form){"", "", ""};
    const double seconds = clock_seconds() - start;
    if (outcome == DICOM_SENT)
        log_info("courier.sent", LOG_INT("delivery", task->delivery), LOG_STR("destination", to->name),
                 LOG_INT("status", attempt.store_status), LOG_NUM("seconds", seconds));
    else
        log_warn("courier.failed", LOG_INT("delivery", task->delivery), LOG_STR("destination", to->name),
                 LOG_STR("outcome", names[outcome]), LOG_STR("code", code_name(attempt.error.code)),
                 LOG_INT("status", attempt.store_status), LOG_STR("message", attempt.error.message),
                 LOG_NUM("seconds", seconds));
    send_delivered(sender, task, message[outcome], &attempt);
    take_reports(sender); /* some may have arrived during the delivery */
}

/* ------------------------------------------------------------------------------ the queue --- */

static void
free_task(struct sender_task *task)
{
    free(task->kind);
    free(task->file);
    free(task->source);
    free(task->name);
    free(task->sop_class);
    free(task->sop_instance);
    free(task->digest);
    free(task->accepted);
    free(task);
}

/* Sleeps until there is a task, data from the peer, or the association has been idle for too long. */
static void
wait_for_work(struct sender *sender)
{
    struct pollfd polled[2] = {{.fd = sender->wake, .events = POLLIN}, {.fd = -1}};
    int timeout = -1;
    if (sender->association) {
        const struct conf_destination *destination = sender->options.destination;
        double patience = destination->idle_seconds;
        if (sender->expected_reports > 0)
            patience = fmax(patience, destination->dimse_seconds);
        const double left = sender->last_use + patience - clock_seconds();
        if (left <= 0) {
            drop_association(sender);
            return;
        }
        timeout = (int)fmin(ceil(left * 1000), 86400e3);
        polled[1].fd = dicom_descriptor(sender->association);
        polled[1].events = POLLIN;
    }
    if (poll(polled, 2, timeout) <= 0)
        return;
    if (polled[0].revents) {
        eventfd_t count;
        eventfd_read(sender->wake, &count);
    }
    if (polled[1].revents)
        take_reports(sender);
}

static void *
sender_run(void *argument)
{
    struct sender *sender = argument;
    for (;;) {
        pthread_mutex_lock(&sender->mutex);
        struct sender_task *task = sender->first;
        if (task)
            sender->first = task->next;
        const bool stopping = sender->stopping; /* no more tasks will follow */
        pthread_mutex_unlock(&sender->mutex);
        if (task) {
            (stopping ? send_returned : sender_attempt)(sender, task);
            free_task(task);
        } else if (stopping) {
            break;
        } else {
            wait_for_work(sender);
        }
    }
    take_reports(sender);
    drop_association(sender);
    stow_close(sender->stow);
    atomic_store(&sender->ended, true);
    sender->options.events.ended(sender->options.events.context);
    return NULL;
}

/* ----------------------------------------------------------------------- public calls ----- */

int
sender_open(const struct sender_options *options, struct sender **out)
{
    struct sender *sender = calloc(1, sizeof *sender);
    if (!sender)
        return -ENOMEM;
    sender->options = *options;
    pthread_mutex_init(&sender->mutex, NULL);
    int error = options->destination->deidentify ? deidentification_of(options->conf, options->destination->deidentify,
                                                                       options->key, &sender->cleaning)
                                                 : 0;
    if (error)
        goto fail_wake;
    sender->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sender->wake < 0) {
        error = -errno;
        goto fail_wake;
    }
    error = -pthread_create(&sender->thread, NULL, sender_run, sender);
    if (error)
        goto fail_thread;
    *out = sender;
    return 0;
fail_thread:
    close(sender->wake);
fail_wake:
    deidentification_free(&sender->cleaning);
    pthread_mutex_destroy(&sender->mutex);
    free(sender);
    return error;
}

int
sender_deliver(struct sender *sender, const struct message_deliver *order)
{
    struct sender_task *task = calloc(1, sizeof *task);
    if (!task)
        return -ENOMEM;
    task->delivery = order->delivery;
    task->kind = strdup(order->kind);
    task->file = strdup(order->file);
    task->source = strdup(order->source);
    task->name = strdup(order->name);
    task->sop_class = strdup(order->sop_class);
    task->sop_instance = strdup(order->sop_instance);
    task->confirmed = order->confirmed;
    task->issuers = order->issuers;
    task->digest = strdup(order->digest);
    task->accepted = strdup(order->accepted);
    if (!task->kind || !task->file || !task->source || !task->name || !task->sop_class || !task->sop_instance ||
        !task->digest || !task->accepted) {
        free_task(task);
        return -ENOMEM;
    }
    pthread_mutex_lock(&sender->mutex);
    struct sender_task **place = &sender->first;
    while (*place)
        place = &(*place)->next;
    *place = task;
    pthread_mutex_unlock(&sender->mutex);
    eventfd_write(sender->wake, 1); /* fails if the counter is full, which also wakes the thread */
    return 0;
}

void
sender_stop(struct sender *sender)
{
    pthread_mutex_lock(&sender->mutex);
    sender->stopping = true;
    pthread_mutex_unlock(&sender->mutex);
    eventfd_write(sender->wake, 1);
}

bool
sender_has_ended(const struct sender *sender)
{
    return atomic_load(&sender->ended);
}

void
sender_close(struct sender *sender)
{
    if (!sender)
        return;
    sender_stop(sender);
    pthread_join(sender->thread, NULL);
    close(sender->wake);
    deidentification_free(&sender->cleaning);
    pthread_mutex_destroy(&sender->mutex);
    free(sender);
}

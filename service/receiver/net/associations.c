/*
 * associations.c - see associations.h.
 *
 * A thread owns its session until it moves it to the list of ended sessions and wakes the loop.
 * `lock` guards that list and the fields that the limits are counted from.
 */
#include "service/receiver/net/associations.h"

#include "service/common/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#define STACK_BYTES (1024u * 1024u)

struct session {
    LIST_ENTRY(session) next; /* in the list of running or of ended sessions */
    struct associations *associations;
    struct settings *settings;
    struct connection connection;
    pthread_t thread;
    const struct conf_peer *peer;     /* guarded: the admitted peer; NULL: not a peer */
    const struct conf_source *source; /* the source with that AE title, or NULL */
    bool is_unknown;                  /* guarded: an unknown caller, admitted for C-ECHO only */
    bool released;                    /* guarded: released, waiting for the peer to close */
    bool rejected, opened;
    struct staged staged;
    bool refused;                    /* the current instance */
    char series_uid[DICOM_UID_SIZE]; /* of the last stored instance */
};

struct associations {
    struct receive_queue *queue;
    struct callers *callers; /* rejected callers; borrowed */
    uv_async_t wake;
    int stop_fd;
    bool stopped;
    size_t count;

    pthread_mutex_t lock;
    LIST_HEAD(session_list, session) running, ended;
};

/* ----------------------------------------------------------------------- admission ------ */

/* The caller must hold the lock. */
static enum admission_verdict
association_check(const struct associations *associations, const struct conf_dicom *conf,
                  const struct admission_caller *caller)
{
    const struct conf_peer *peer = admission_peer(conf, caller);
    struct admission_load load = {0};
    const struct session *each = LIST_FIRST(&associations->running);
    for (; each; each = LIST_NEXT(each, next)) {
        const bool of_peer = each->peer && !each->released;
        load.of_peers += of_peer;
        load.of_peer += of_peer && peer && admission_same_peer(each->peer, peer);
        load.of_unknown += each->is_unknown;
        load.leaving += each->peer && each->released;
    }
    return admission_decide(conf, caller, &load);
}

enum admission_verdict
associations_check(struct associations *associations, const struct conf_dicom *conf,
                   const struct admission_caller *caller)
{
    pthread_mutex_lock(&associations->lock);
    const enum admission_verdict verdict = association_check(associations, conf, caller);
    pthread_mutex_unlock(&associations->lock);
    return verdict;
}

static const struct association_answer {
    enum dicom_admission admission;
    const char *reason; /* for the log; NULL: not a rejection */
} answers[] = {
    [ADMISSION_GRANTED] = {DICOM_ADMIT, NULL},
    [ADMISSION_ECHO_ONLY] = {DICOM_ADMIT_ECHO, NULL},
    [ADMISSION_UNKNOWN_CALLER] = {DICOM_REFUSE_CALLING, "no peer has the calling AE title"},
    [ADMISSION_OTHER_ADDRESS] = {DICOM_REFUSE_CALLING, "the peer of that AE title has another host"},
    [ADMISSION_OTHER_CERTIFICATE] = {DICOM_REFUSE_CALLING, "the peer of that AE title has another certificate"},
    [ADMISSION_UNKNOWN_TITLE] = {DICOM_REFUSE_CALLED, "the called AE title is not ours"},
    [ADMISSION_BUSY] = {DICOM_REFUSE_BUSY, "too many associations"},
};

void
associations_note_refusal(struct associations *associations, enum admission_verdict verdict,
                          const struct admission_caller *caller)
{
    if (callers_note(associations->callers, verdict, caller))
        uv_async_send(&associations->wake);
    log_warn("association.rejected", LOG_STR("reason", answers[verdict].reason), LOG_STR("calling", caller->calling_ae),
             LOG_STR("called", caller->called_ae), LOG_STR("host", caller->host),
             LOG_STR("certificate", caller->certificate));
}

static enum dicom_admission
on_admit(void *context, const struct dicom_association_request *request)
{
    struct session *session = context;
    struct associations *associations = session->associations;
    const struct conf_dicom *conf = &session->settings->conf->dicom;
    const struct admission_caller caller = {
        .calling_ae = request->calling_ae,
        .called_ae = request->called_ae,
        .host = session->connection.host,
        .certificate = request->certificate_fingerprint,
    };
    pthread_mutex_lock(&associations->lock);
    const enum admission_verdict verdict = association_check(associations, conf, &caller);
    session->peer = verdict == ADMISSION_GRANTED ? admission_peer(conf, &caller) : NULL;
    session->is_unknown = verdict == ADMISSION_ECHO_ONLY;
    pthread_mutex_unlock(&associations->lock);
    session->rejected = answers[verdict].reason != NULL;
    if (session->rejected)
        associations_note_refusal(associations, verdict, &caller);
    /* The C-STORE contexts of an unknown caller are rejected, which few tools explain to their users. */
    if (verdict == ADMISSION_ECHO_ONLY && request->proposes_more)
        associations_note_refusal(associations, admission_mismatch(conf, &caller), &caller);
    const struct conf_pull *pull = &session->settings->conf->pull;
    for (size_t i = 0; verdict == ADMISSION_GRANTED && i < pull->source_count; i++)
        if (!session->source && strcmp(pull->sources[i].ae_title, caller.calling_ae) == 0)
            session->source = &pull->sources[i];
    return session->source ? DICOM_ADMIT_ARCHIVE : answers[verdict].admission;
}

/* ------------------------------------------------------------------------- serving ------ */

static void
on_opened(void *context, const struct dicom_association_request *association)
{
    struct session *session = context;
    session->opened = true;
    log_info("association.opened", LOG_STR("calling", association->calling_ae),
             LOG_STR("called", association->called_ae), LOG_STR("host", session->connection.host),
             LOG_INT("tls", association->tls), LOG_STR("implementation", association->implementation_version));
}

static void
association_on_closed(void *context, const struct dicom_association_request *association,
                      const struct dicom_association_totals *totals, int rc, const struct error *error)
{
    struct session *session = context;
    /* Before the peer learns of the end, since it may call again at once. */
    pthread_mutex_lock(&session->associations->lock);
    session->released = true;
    pthread_mutex_unlock(&session->associations->lock);
    log_write(rc ? LOG_WARN : LOG_INFO, "association.closed",
              LOG_FIELDS(LOG_STR("calling", association->calling_ae), LOG_STR("called", association->called_ae),
                         LOG_STR("host", session->connection.host), LOG_INT("instances", totals->instances),
                         LOG_INT("refused", totals->refused), LOG_INT("bytes", totals->bytes),
                         LOG_NUM("seconds", totals->seconds), LOG_STR("code", rc ? code_name(error->code) : ""),
                         LOG_STR("error", rc ? error->message : "")));
}

static struct reception
reception_of(struct session *session, const struct dicom_store *store)
{
    const struct conf_source *source = session->source;
    /* A source sends the instance for our C-MOVE. pynetdicom names the archive as the originator,
     * against PS3.7 9.1.1.1.10. */
    const bool is_pull = source && (!strcmp(store->move_originator, source->calling_ae_title) ||
                                    !strcmp(store->move_originator, source->ae_title));
    return (struct reception){.store = store,
                              .staged = &session->staged,
                              .refused = &session->refused,
                              .series_uid = session->series_uid,
                              .requested = is_pull,
                              .resent = session->peer->resent}; /* no other thread changes it now */
}

static uint16_t
on_store_begin(void *context, const struct dicom_store *store, int *fd)
{
    struct session *session = context;
    const struct reception reception = reception_of(session, store);
    uint16_t status = receive_begin(session->associations->queue, session->settings->conf->min_free_mib, &reception);
    *fd = session->staged.fd;
    return status;
}

static int
on_store_room(void *context)
{
    const struct session *session = context;
    return receive_room(session->associations->queue, session->settings->conf->min_free_mib, session->refused);
}

static uint16_t
on_store_end(void *context, const struct dicom_store *store, int64_t bytes, int error)
{
    (void)bytes;
    struct session *session = context;
    struct receive_queue *queue = session->associations->queue;
    const struct reception reception = reception_of(session, store);
    if (error)
        return receive_abandon(queue, &reception, error);
    return receive_end(queue, &reception);
}

static uint16_t
on_committed(void *context, const struct dicom_association_request *association,
             const struct dicom_commitment *commitment)
{
    struct session *session = context;
    return receive_committed(session->associations->queue, association->calling_ae, commitment);
}

static uint32_t
whole_seconds(double seconds)
{
    return (uint32_t)ceil(seconds);
}

static void
association_serve(struct session *session)
{
    const struct conf_dicom *conf = &session->settings->conf->dicom;
    const struct dicom_serve_options options = {
        .max_pdu = (uint32_t)conf->max_pdu_kib * 1024u,
        .acse_seconds = whole_seconds(conf->acse_seconds),
        .dimse_seconds = whole_seconds(conf->dimse_seconds),
        .idle_seconds = whole_seconds(conf->idle_seconds),
        .min_rate = conf->min_kib_per_second * 1024,
        .max_instance = (uint64_t)conf->max_instance_mib << 20,
        .tls = session->connection.tls ? session->settings->tls : NULL,
        .stop_fd = session->associations->stop_fd,
    };
    const struct dicom_receiver events = {
        .context = session,
        .admit = on_admit,
        .store_begin = on_store_begin,
        .store_room = on_store_room,
        .store_end = on_store_end,
        .committed = on_committed,
        .opened = on_opened,
        .closed = association_on_closed,
    };
    struct error error = {0};
    int rc = dicom_serve(session->connection.fd, &options, &events, &error);
    if (rc && !session->opened && !session->rejected)
        log_warn("association.failed", LOG_STR("host", session->connection.host),
                 LOG_STR("code", code_name(error.code)), LOG_STR("error", error.message));
}

/* ------------------------------------------------------------------------- threads ------ */

static void *
run_session(void *argument)
{
    struct session *session = argument;
    struct associations *associations = session->associations;
    association_serve(session);
    pthread_mutex_lock(&associations->lock);
    LIST_REMOVE(session, next);
    LIST_INSERT_HEAD(&associations->ended, session, next);
    uv_async_send(&associations->wake);
    pthread_mutex_unlock(&associations->lock);
    return NULL;
}

static int
start_thread(struct session *session)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return -error;
    error = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (!error)
        error = pthread_create(&session->thread, &attributes, run_session, session);
    pthread_attr_destroy(&attributes);
    return -error;
}

int
associations_begin(struct associations *associations, struct settings *settings, const struct connection *connection)
{
    struct session *session = associations->stopped ? NULL : calloc(1, sizeof *session);
    if (!session) {
        close(connection->fd);
        return associations->stopped ? -ECANCELED : -ENOMEM;
    }
    *session = (struct session){
        .associations = associations, .settings = settings_keep(settings), .connection = *connection, .staged.fd = -1};
    pthread_mutex_lock(&associations->lock);
    LIST_INSERT_HEAD(&associations->running, session, next);
    int error = start_thread(session);
    if (error)
        LIST_REMOVE(session, next);
    pthread_mutex_unlock(&associations->lock);
    if (error) {
        close(connection->fd);
        settings_drop(session->settings);
        free(session);
        return error;
    }
    associations->count++;
    return 0;
}

static void
association_on_wake(uv_async_t *wake)
{
    struct associations *associations = wake->data;
    pthread_mutex_lock(&associations->lock);
    struct session *ended = LIST_FIRST(&associations->ended);
    LIST_INIT(&associations->ended);
    pthread_mutex_unlock(&associations->lock);
    while (ended) {
        struct session *session = ended;
        ended = LIST_NEXT(session, next);
        pthread_join(session->thread, NULL); /* the thread has already finished its work */
        associations->count--;
        settings_drop(session->settings);
        free(session);
    }
}

size_t
associations_count(const struct associations *associations)
{
    return associations->count;
}

struct associations_unadmitted
associations_unadmitted(struct associations *associations, const char *host)
{
    struct associations_unadmitted unadmitted = {0};
    pthread_mutex_lock(&associations->lock);
    const struct session *each = LIST_FIRST(&associations->running);
    for (; each; each = LIST_NEXT(each, next)) {
        const bool is_one = (each->connection.tls || each->connection.partial) && !each->peer && !each->is_unknown;
        unadmitted.of_all += is_one;
        unadmitted.of_host += is_one && strcmp(each->connection.host, host) == 0;
    }
    pthread_mutex_unlock(&associations->lock);
    return unadmitted;
}

/* ----------------------------------------------------------------- opening, closing ------ */

int
associations_open(uv_loop_t *loop, struct receive_queue *queue, struct callers *callers, struct associations **out)
{
    struct associations *associations = calloc(1, sizeof *associations);
    if (!associations)
        return -ENOMEM;
    associations->queue = queue;
    associations->callers = callers;
    associations->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = associations->stop_fd < 0 ? -errno : 0;
    if (!error)
        error = uv_async_init(loop, &associations->wake, association_on_wake);
    if (error) {
        if (associations->stop_fd >= 0)
            close(associations->stop_fd);
        free(associations);
        return error;
    }
    associations->wake.data = associations;
    pthread_mutex_init(&associations->lock, NULL); /* cannot fail */
    *out = associations;
    return 0;
}

void
associations_stop(struct associations *associations)
{
    associations->stopped = true;
    eventfd_write(associations->stop_fd, 1); /* stays readable, since it is never read */
}

void
associations_close(struct associations *associations)
{
    if (!uv_is_closing((uv_handle_t *)&associations->wake))
        uv_close((uv_handle_t *)&associations->wake, NULL);
}

void
associations_free(struct associations *associations)
{
    if (!associations)
        return;
    pthread_mutex_destroy(&associations->lock);
    close(associations->stop_fd);
    free(associations);
}

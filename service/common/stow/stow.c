/*
 * stow.c - see stow.h.
 *
 * Uses libcurl. Ignores proxies of the environment. Does not follow redirects, which would send the credentials to
 * another host. Allows only HTTP and HTTPS, with TLS 1.2 or later and a certificate of the host's name.
 */
#include "service/common/stow/stow.h"

#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/stow/curl.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESPONSE_MAX      (1 << 20) /* max bytes of a response's body, and of its headers */
#define SECRET_MAX        8192      /* max bytes of a token, or of a name and a password */
#define RETRY_MAX_SECONDS 3600.0    /* max seconds that a Retry-After is obeyed */
#define BOUNDARY_BYTES    16

struct stow {
    const struct conf_destination *destination;
    const struct curl_calls *calls;
    CURL *curl;
    double not_before; /* clock_seconds */
    long status;       /* of the last answer; 0: none */
};

/* The body of a request: a head, the file, a tail. */
struct stow_body {
    int fd;
    char head[160], tail[64];
    int64_t head_size, file_size, tail_size, at;
    bool unreadable;
};

/* The response. */
struct stow_reply {
    struct text_stream body;
    size_t size, header_size;
    bool too_much;
};

int
stow_open(const struct conf_destination *destination, struct stow **out, struct error *error)
{
    const char *why;
    const struct curl_calls *calls = curl_calls(&why);
    if (!calls)
        return error_set(error, -ELIBACC, CODE_HTTP_FAILED, "STOW-RS needs libcurl, which cannot be loaded: %s.", why);
    struct stow *stow = calloc(1, sizeof *stow);
    if (stow)
        stow->curl = calls->init();
    if (!stow || !stow->curl) {
        free(stow);
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory for STOW-RS.");
    }
    stow->calls = calls;
    stow->destination = destination;
    *out = stow;
    return 0;
}

void
stow_close(struct stow *stow)
{
    if (!stow)
        return;
    stow->calls->cleanup(stow->curl);
    free(stow);
}

/* ----------------------------------------------------------------------------- the body ---- */

static int
body_fail(struct error *error, int rc, const char *file)
{
    return error_set(error, rc, CODE_FILE_UNREADABLE, "%s cannot be read (%s).", file, strerror(-rc));
}

static int
body_open(struct stow_body *body, const char *file, char boundary[2 * BOUNDARY_BYTES + 1], struct error *error)
{
    unsigned char bytes[BOUNDARY_BYTES];
    struct stat status;
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set_system(error, -EIO, "get random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        sprintf(boundary + 2 * i, "%02x", bytes[i]);
    *body = (struct stow_body){.fd = open(file, O_RDONLY | O_CLOEXEC)};
    if (body->fd < 0)
        return body_fail(error, -errno, file);
    if (fstat(body->fd, &status) < 0) {
        const int rc = -errno;
        close(body->fd);
        return body_fail(error, rc, file);
    }
    body->head_size =
        snprintf(body->head, sizeof body->head, "--%s\r\nContent-Type: application/dicom\r\n\r\n", boundary);
    body->tail_size = snprintf(body->tail, sizeof body->tail, "\r\n--%s--\r\n", boundary);
    body->file_size = status.st_size;
    return 0;
}

static size_t
body_copy(char *to, size_t room, const char *from, int64_t size, int64_t at)
{
    const size_t left = (size_t)(size - at), some = left < room ? left : room;
    memcpy(to, from + at, some);
    return some;
}

static size_t
body_read(char *to, size_t one, size_t count, void *context)
{
    struct stow_body *body = context;
    const int64_t behind = body->head_size + body->file_size;
    const size_t room = one * count;
    ssize_t some;
    if (body->at < body->head_size) {
        some = (ssize_t)body_copy(to, room, body->head, body->head_size, body->at);
    } else if (body->at < behind) {
        const int64_t left = behind - body->at;
        some = pread(body->fd, to, left < (int64_t)room ? (size_t)left : room, body->at - body->head_size);
        if (some <= 0) { /* the file was truncated meanwhile */
            body->unreadable = true;
            return CURL_READFUNC_ABORT;
        }
    } else {
        some = (ssize_t)body_copy(to, room, body->tail, body->tail_size, body->at - behind);
    }
    body->at += some;
    return (size_t)some;
}

/* Lets libcurl send the body again over a new connection. */
static int
body_seek(void *context, curl_off_t offset, int origin)
{
    struct stow_body *body = context;
    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    body->at = offset;
    return CURL_SEEKFUNC_OK;
}

/* ---------------------------------------------------------------------------- the reply ---- */

static size_t
reply_take(char *bytes, size_t one, size_t count, void *context)
{
    struct stow_reply *reply = context;
    reply->size += one * count;
    reply->too_much |= reply->size > RESPONSE_MAX;
    return reply->too_much ? 0 : fwrite(bytes, one, count, reply->body.out);
}

static size_t
reply_take_header(char *bytes, size_t one, size_t count, void *context)
{
    struct stow_reply *reply = context;
    (void)bytes;
    reply->header_size += one * count;
    reply->too_much |= reply->header_size > RESPONSE_MAX;
    return reply->too_much ? 0 : one * count;
}

/* ----------------------------------------------------------------------- the credentials ---- */

/* Reads the first line of a file. It must be read each time, since tokens are replaced. */
static int
secret_read(const char *path, char secret[SECRET_MAX], struct error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t size = fd < 0 ? -1 : read(fd, secret, SECRET_MAX - 1);
    int rc = size < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    if (size >= 0) {
        secret[size] = '\0';
        secret[strcspn(secret, "\r\n")] = '\0';
        if (!*secret || strlen(secret) + 1 == SECRET_MAX)
            rc = -EBADMSG;
    }
    if (rc)
        return error_set_files(error, rc, CODE_CREDENTIALS_UNREADABLE, path, NULL, "%s cannot be used: %s.", path,
                               rc == -EBADMSG ? "its first line must be the secret" : strerror(-rc));
    return 0;
}

static int
stow_set_credentials(struct stow *stow, struct error *error)
{
    const struct conf_destination *destination = stow->destination;
    const char *path = destination->token_file ? destination->token_file : destination->login_file;
    char secret[SECRET_MAX];
    if (!path)
        return 0;
    int rc = secret_read(path, secret, error);
    if (rc == 0 && destination->token_file) {
        stow->calls->set(stow->curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        stow->calls->set(stow->curl, CURLOPT_XOAUTH2_BEARER, secret);
    } else if (rc == 0) {
        stow->calls->set(stow->curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        stow->calls->set(stow->curl, CURLOPT_USERPWD, secret);
    }
    explicit_bzero(secret, sizeof secret);
    return rc;
}

/* --------------------------------------------------------------------------- the request ---- */

static long
stow_seconds(double seconds)
{
    return (long)fmax(1, ceil(seconds));
}

static void
stow_set_common(struct stow *stow, struct stow_reply *reply)
{
    const struct conf_destination *destination = stow->destination;
    CURLcode (*set)(CURL *, CURLoption, ...) = stow->calls->set;
    CURL *curl = stow->curl;
    stow->calls->reset(curl); /* keeps the connections */
    set(curl, CURLOPT_URL, destination->stow);
    set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    set(curl, CURLOPT_PROXY, "");
    set(curl, CURLOPT_NOSIGNAL, 1L);
    set(curl, CURLOPT_USERAGENT, "noctule/" NOCTULE_VERSION);
    set(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(destination->connect_seconds * 1000));
    /* Limits for request and response, as for an AE: the rate must not stay below the min for this time. */
    set(curl, CURLOPT_LOW_SPEED_LIMIT, (long)fmax(1, destination->min_kib_per_second * 1024));
    set(curl, CURLOPT_LOW_SPEED_TIME, stow_seconds(destination->dimse_seconds));
    set(curl, CURLOPT_MAXAGE_CONN, stow_seconds(destination->idle_seconds));
    set(curl, CURLOPT_WRITEFUNCTION, reply_take);
    set(curl, CURLOPT_WRITEDATA, reply);
    set(curl, CURLOPT_HEADERFUNCTION, reply_take_header);
    set(curl, CURLOPT_HEADERDATA, reply);
    set(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    set(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    set(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    if (destination->ca) {
        set(curl, CURLOPT_CAINFO, destination->ca);
        set(curl, CURLOPT_CAPATH, (char *)NULL);
    }
    if (destination->client_certificate) {
        set(curl, CURLOPT_SSLCERT, destination->client_certificate);
        set(curl, CURLOPT_SSLKEY, destination->client_key ? destination->client_key : destination->client_certificate);
    }
}

static const struct {
    CURLcode result;
    enum code code;
} curl_codes[] = {
    {CURLE_COULDNT_RESOLVE_HOST, CODE_PEER_UNREACHABLE},
    {CURLE_COULDNT_CONNECT, CODE_PEER_UNREACHABLE},
    {CURLE_SSL_CONNECT_ERROR, CODE_TLS_FAILED},
    {CURLE_PEER_FAILED_VERIFICATION, CODE_TLS_FAILED},
    {CURLE_SSL_CERTPROBLEM, CODE_TLS_FAILED},
    {CURLE_SSL_CACERT_BADFILE, CODE_TLS_FAILED},
    {CURLE_SSL_ISSUER_ERROR, CODE_TLS_FAILED},
    {CURLE_SSL_CIPHER, CODE_TLS_FAILED},
    {CURLE_OUT_OF_MEMORY, CODE_OUT_OF_MEMORY},
};

/* Returns a text of this machine. Must not use libcurl's error buffer, which may contain names from
 * the server's certificate and lines of its response. */
static const char *
stow_failure_detail(const struct stow *stow, CURLcode result)
{
    long number = 0;
    if (result == CURLE_PEER_FAILED_VERIFICATION) {
        stow->calls->get(stow->curl, CURLINFO_SSL_VERIFYRESULT, &number);
        return number > X509_V_ERR_UNSPECIFIED ? X509_verify_cert_error_string(number)
                                               : "the certificate is of another host";
    }
    stow->calls->get(stow->curl, CURLINFO_OS_ERRNO, &number);
    return number ? strerror((int)number) : "";
}

/* Sets the error if no complete response was received. */
static int
stow_fail_transfer(const struct stow *stow, CURLcode result, bool too_much, struct error *error)
{
    double connected = 0;
    enum code code = CODE_PEER_ABORTED;
    stow->calls->get(stow->curl, CURLINFO_CONNECT_TIME, &connected);
    for (size_t i = 0; i < sizeof curl_codes / sizeof curl_codes[0]; i++)
        if (curl_codes[i].result == result)
            code = curl_codes[i].code;
    if (result == CURLE_OPERATION_TIMEDOUT && connected <= 0)
        code = CODE_PEER_UNREACHABLE;
    const char *detail = too_much ? "" : stow_failure_detail(stow, result);
    return error_set(error, -EREMOTEIO, code, "%s: %s%s%s.", stow->destination->stow,
                     too_much ? "its response is too long" : stow->calls->words(result), *detail ? ": " : "", detail);
}

/* ------------------------------------------------------------------------- the response ---- */

static const struct {
    long status;
    const char *reason; /* RFC 9110, with a hint */
} http_reasons[] = {
    {400, "bad request"},
    {401, "the credentials were not accepted"},
    {403, "the credentials do not permit it"},
    {404, "not found: is it the address for STOW-RS (.../studies)?"},
    {405, "it does not accept POST: is it the address for STOW-RS (.../studies)?"},
    {409, "conflict: no instance was stored"},
    {413, "the object is too large"},
    {415, "it does not accept the media type"},
    {429, "too many requests"},
    {500, "internal error: see its log"},
    {502, "bad gateway"},
    {503, "unavailable for now"},
    {504, "gateway timeout"},
};

/* The message must not contain the response's body: a server may repeat patient data there. */
static int
stow_refused(struct stow *stow, long status, struct error *error)
{
    curl_off_t seconds = 0;
    if (status == 429 || status == 503)
        stow->calls->get(stow->curl, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0)
        stow->not_before = clock_seconds() + fmin((double)seconds, RETRY_MAX_SECONDS);
    /* Another attempt would fail the same way if the cause is the object or the address.
     * Credentials (401) may be replaced, and 408, 425 and 429 depend on the time. */
    const bool is_final =
        status / 100 == 3 || (status / 100 == 4 && status != 401 && status != 408 && status != 425 && status != 429);
    const char *reason = status / 100 == 3 ? "redirects are not followed" : "see its log";
    for (size_t i = 0; i < sizeof http_reasons / sizeof http_reasons[0]; i++)
        if (http_reasons[i].status == status)
            reason = http_reasons[i].reason;
    return error_set(error, -EREMOTEIO, is_final ? CODE_HTTP_REFUSED : CODE_HTTP_FAILED, "%s answers HTTP %ld: %s",
                     stow->destination->stow, status, reason);
}

/* Evaluates a response. If the status reports the outcome per instance, the body has it. */
static int
stow_evaluate(struct stow *stow, long status, const struct stow_reply *reply, const char *sop_instance,
              struct dicom_answer *answer, struct error *error)
{
    struct stow_answer result;
    stow_answer_read(reply->body.bytes, reply->body.size, sop_instance, &result);
    if (result.failed && (status / 100 == 2 || status == 409)) {
        answer->status = result.reason >= 0 ? result.reason : 0x0110;
        const enum dicom_outcome outcome = dicom_outcome_of(CODE_NONE, answer);
        if (outcome == DICOM_SENT) /* the server already has the instance */
            return 0;
        return error_set(error, -EREMOTEIO, outcome == DICOM_PERMANENT ? CODE_STORE_REFUSED : CODE_STORE_FAILED,
                         "%s did not store the instance: failure reason 0x%04X.", stow->destination->stow,
                         (unsigned)answer->status);
    }
    if (status / 100 != 2)
        return stow_refused(stow, status, error);
    if (result.stored) {
        answer->status = result.warning;
        return 0;
    }
    return error_set(error, -EREMOTEIO, CODE_HTTP_FAILED,
                     "%s answers HTTP %ld without confirming that it stored the instance: is it the "
                     "address for STOW-RS (.../studies)?",
                     stow->destination->stow, status);
}

/* ----------------------------------------------------------------------------- the calls ---- */

/* Sends a request. Returns 0 with the HTTP status, or -errno. */
static int
stow_post(struct stow *stow, struct stow_body *body, const char *boundary, struct stow_reply *reply, long *status,
          struct error *error)
{
    char type[160];
    snprintf(type, sizeof type, "Content-Type: multipart/related; type=\"application/dicom\"; boundary=%s", boundary);
    struct curl_slist *headers = stow->calls->append(NULL, type), *more = NULL;
    if (headers)
        more = stow->calls->append(headers, "Accept: application/dicom+json");
    if (more)
        more = stow->calls->append(headers, "Expect:"); /* some servers do not answer it */
    if (!more) {
        stow->calls->free_all(headers);
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory for a request.");
    }
    stow_set_common(stow, reply);
    stow->calls->set(stow->curl, CURLOPT_POST, 1L);
    stow->calls->set(stow->curl, CURLOPT_HTTPHEADER, headers);
    stow->calls->set(stow->curl, CURLOPT_READFUNCTION, body_read);
    stow->calls->set(stow->curl, CURLOPT_READDATA, body);
    stow->calls->set(stow->curl, CURLOPT_SEEKFUNCTION, body_seek);
    stow->calls->set(stow->curl, CURLOPT_SEEKDATA, body);
    stow->calls->set(stow->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)(body->head_size + body->file_size + body->tail_size));
    int rc = stow_set_credentials(stow, error);
    if (rc == 0) {
        const CURLcode result = stow->calls->perform(stow->curl);
        if (result != CURLE_OK)
            rc = stow_fail_transfer(stow, result, reply->too_much, error);
        else
            stow->calls->get(stow->curl, CURLINFO_RESPONSE_CODE, status);
    }
    stow->calls->free_all(headers);
    return rc;
}

/* Closes the response's text, whatever the result. */
static int
reply_end(struct stow_reply *reply, int rc, struct error *error)
{
    if (text_close(&reply->body) == 0)
        return rc;
    return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory for a response.");
}

int
stow_store(struct stow *stow, const char *file, const char *sop_instance, struct dicom_answer *answer,
           struct error *error)
{
    char boundary[2 * BOUNDARY_BYTES + 1];
    struct stow_reply reply = {.size = 0};
    struct stow_body body;
    stow->status = 0;
    *answer = (struct dicom_answer){-1, -1, -1, -1};
    const double left = stow->not_before - clock_seconds();
    if (left > 0)
        return error_set(error, -EAGAIN, CODE_HTTP_FAILED, "%s requested a pause (Retry-After), for %.0f s more.",
                         stow->destination->stow, ceil(left));
    int rc = body_open(&body, file, boundary, error);
    if (rc)
        return rc;
    if (text_open(&reply.body) < 0) {
        close(body.fd);
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory for a response.");
    }
    rc = stow_post(stow, &body, boundary, &reply, &stow->status, error);
    close(body.fd);
    if (rc && body.unreadable)
        rc = body_fail(error, -EIO, file);
    rc = reply_end(&reply, rc, error);
    if (rc == 0)
        rc = stow_evaluate(stow, stow->status, &reply, sop_instance, answer, error);
    free(reply.body.bytes);
    return rc;
}

long
stow_status(const struct stow *stow)
{
    return stow->status;
}

/* Sends a request without instances. Any response shows that a server works, except those that mean
 * a wrong address, a server error or rejected credentials. */
int
stow_echo(struct stow *stow, char *greeting, size_t size, struct error *error)
{
    struct stow_reply reply = {.size = 0};
    struct stow_body body = {.fd = -1, .tail = "--nothing--\r\n"};
    long status = 0;
    body.tail_size = (int64_t)strlen(body.tail);
    if (text_open(&reply.body) < 0)
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory for a response.");
    int rc = reply_end(&reply, stow_post(stow, &body, "nothing", &reply, &status, error), error);
    if (rc == 0 &&
        (status / 100 == 3 || status / 100 == 5 || status == 401 || status == 403 || status == 404 || status == 405))
        rc = stow_refused(stow, status, error);
    free(reply.body.bytes);
    if (rc == 0)
        snprintf(greeting, size, "%s answers HTTP %ld", stow->destination->stow, status);
    return rc;
}

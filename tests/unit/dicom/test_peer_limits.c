/* Input of a peer at each limit and one beyond: as a caller, and as the answers of a destination. */
#include "tests/unit/dicom/peer_calls.h"
#include "tests/unit/edge.h"
#include "tests/unit/suite.h"

#include <fcntl.h>
#include <pthread.h>

enum { RELEASE_SIZE = 4, USER_ITEM = 12, PDV_HEAD = 6, CHUNK = 1 << 16, NO_ROOM = 0xA700, NOT_SUPPORTED = 0x0122 };

/* ---- input ---- */

struct words {
    struct dicom_bytes before, chunk, after;
    size_t chunks;
};

/* Fills the PDU to n bytes. */
static void
filler(struct dicom_bytes *items, size_t n)
{
    static const uint8_t zeros[60000];
    for (size_t left = n - USER_ITEM - items->size; left > 0;) {
        size_t part = left - 4 < sizeof(zeros) ? left - 4 : sizeof(zeros);
        if (left - 4 - part > 0 && left - 4 - part < 4)
            part -= 4;
        put_item(items, 0x77, zeros, part);
        left -= 4 + part;
    }
}

static void
an_echo(struct words *words, size_t n)
{
    (void)n;
    put_command(&words->before, 1, &echo);
}

static void
a_command(struct words *words, size_t n)
{
    struct command full = echo;
    full.size = n;
    put_command(&words->before, 1, &full);
}

static void
empty_fragments(struct words *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_data(&words->before, 1, PDV_COMMAND, "", 0);
    put_command(&words->before, 1, &echo);
}

static void
begin_report(struct dicom_bytes *report)
{
    put_element(report, 0x00081195, "1.2.3", 5);
}

static void
a_report(struct words *words, size_t n)
{
    struct dicom_bytes report = {0};
    begin_report(&report);
    put_zeros(&report, 0x00091001, n - report.size - 8);
    put_message(&words->before, 3, &event, &report);
    bytes_free(&report);
}

static void
put_delimiter(struct dicom_bytes *report, uint32_t tag, uint32_t length)
{
    report->big_endian = false;
    bytes_tag(report, tag);
    bytes_u32(report, length);
}

static void
a_deep_report(struct words *words, size_t n)
{
    struct dicom_bytes report = {0};
    begin_report(&report);
    for (size_t i = 0; i < n; i++) {
        put_delimiter(&report, 0x0040A730, BYTES_UNDEFINED);
        put_delimiter(&report, 0xFFFEE000, BYTES_UNDEFINED);
    }
    for (size_t i = 0; i < n; i++) {
        put_delimiter(&report, 0xFFFEE00D, 0);
        put_delimiter(&report, 0xFFFEE0DD, 0);
    }
    put_message(&words->before, 3, &event, &report);
    bytes_free(&report);
}

/* Puts a data set of n bytes, which has no reader. */
static void
a_data_set(struct words *words, size_t n)
{
    static const uint8_t zeros[CHUNK];
    put_command(&words->before, 1, &store);
    put_data(&words->chunk, 1, 0, zeros, CHUNK);
    words->chunks = n / CHUNK;
    put_data(&words->after, 1, PDV_LAST, zeros, n % CHUNK);
}

/* ---- sending and receiving ---- */

struct teller {
    int fd;
    bool is_called; /* fd listens */
    const struct words *words;
    struct dicom_bytes heard;
    pthread_t thread;
};

static bool
tell_part(int fd, const struct dicom_bytes *part)
{
    for (size_t told = 0; told < part->size;) {
        const ssize_t sent = send(fd, part->data + told, part->size - told, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        told += (size_t)sent;
    }
    return true;
}

/* Sends all; the few answers wait in the socket meanwhile. */
static void *
tell(void *context)
{
    struct teller *teller = context;
    const struct words *words = teller->words;
    const int fd = teller->is_called ? accept(teller->fd, NULL, NULL) : teller->fd;
    uint8_t bytes[4096];
    bool listens = tell_part(fd, &words->before);
    for (size_t i = 0; i < words->chunks && listens; i++)
        listens = tell_part(fd, &words->chunk);
    if (listens && tell_part(fd, &words->after))
        shutdown(fd, SHUT_WR);
    for (ssize_t size; (size = recv(fd, bytes, sizeof(bytes), 0)) > 0;)
        bytes_put(&teller->heard, bytes, (size_t)size);
    close(fd);
    return NULL;
}

static void
begin_telling(struct teller *teller)
{
    ck_assert_int_eq(pthread_create(&teller->thread, NULL, tell, teller), 0);
}

static void
end_telling(struct teller *teller, struct words *words)
{
    pthread_join(teller->thread, NULL);
    bytes_free(&words->before);
    bytes_free(&words->chunk);
    bytes_free(&words->after);
}

/* Returns the Status (0000,0900) of the last response, or -1 if there is none. */
static int
last_status(const struct dicom_bytes *heard)
{
    static const uint8_t element[8] = {0, 0, 0, 9, 2};
    int status = -1;
    for (size_t i = 0; i + 10 <= heard->size; i++)
        if (memcmp(heard->data + i, element, sizeof(element)) == 0)
            status = heard->data[i + 8] | heard->data[i + 9] << 8;
    return status;
}

/* ---- input of a caller ---- */

static uint16_t
on_begin(void *context, const struct dicom_store *about, int *fd)
{
    (void)context;
    (void)about;
    (void)fd;
    return NO_ROOM;
}

struct call {
    struct edge edge;
    int unit, step;
    void (*request)(struct dicom_bytes *items, size_t n);
    void (*messages)(struct words *words, size_t n);
    int status, status_beyond; /* -1: there is no answer */
};

static const struct call calls[] = {
    {EDGE(REQUEST_BYTES), 1, 1, filler, an_echo, NOT_SUPPORTED, -1},
    {EDGE(COMMAND_BYTES), 1, 2, NULL, a_command, NOT_SUPPORTED, -1},
    {EDGE(EMPTY_FRAGMENTS), 1, 1, NULL, empty_fragments, NOT_SUPPORTED, -1},
    {EDGE(REPORT_BYTES), 1, 2, NULL, a_report, DICOM_SUCCESS, 0x0213},
    {EDGE(REPORT_DEPTH), 1, 1, NULL, a_deep_report, DICOM_SUCCESS, 0x0115},
    {EDGE(DROPPED_MIB), 1 << 20, 2, NULL, a_data_set, NO_ROOM, -1},
};

/* Returns the final code of the association, and its last answer. */
static enum code
serve(const struct call *call, size_t n, int *status)
{
    static const struct dicom_receiver receiver = {
        .admit = peer_admit, .store_begin = on_begin, .committed = peer_committed};
    static const uint8_t zeros[RELEASE_SIZE];
    const struct dicom_bytes release = {.data = (uint8_t *)(uintptr_t)zeros, .size = RELEASE_SIZE};
    struct words words = {0};
    struct error error = {0};
    int ends[2];
    put_negotiation(&words.before, PDU_RQ, call->request, n);
    call->messages(&words, n);
    put_pdu(&words.after, PDU_RELEASE_RQ, &release);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct teller teller = {.fd = ends[1], .words = &words};
    begin_telling(&teller);
    const int rc = dicom_serve(ends[0], &peer_options, &receiver, &error);
    end_telling(&teller, &words);
    ck_assert_int_eq(rc == 0, error.code == CODE_NONE);
    *status = last_status(&teller.heard);
    bytes_free(&teller.heard);
    return error.code;
}

START_TEST(limits_of_a_caller)
{
    const struct call *call = &calls[_i];
    const size_t most = (size_t)call->edge.most * (size_t)call->unit;
    int status;
    enum code code = serve(call, most, &status);
    ck_assert_msg(code == CODE_NONE && status == call->status, "%s: %s, 0x%04x", call->edge.name, code_name(code),
                  (unsigned)status);
    code = serve(call, most + (size_t)call->step, &status);
    ck_assert_msg(code == call->edge.code && status == call->status_beyond, "%s: %s, 0x%04x", call->edge.name,
                  code_name(code), (unsigned)status);
}

END_TEST

/* ---- input of a destination ---- */

/* Puts an answer that counts n bytes, including the headers of its fragments. */
static void
an_answer(struct words *words, size_t n)
{
    static const uint8_t zeros[CHUNK];
    put_command(&words->before, 3, &taken);
    for (size_t left = n, part; left > 0; left -= part) {
        part = left <= CHUNK ? left : left < 2 * CHUNK ? left / 2 : CHUNK;
        put_data(&words->before, 3, part == left ? PDV_LAST : 0, zeros, part - PDV_HEAD);
    }
}

static void
reports_and_an_answer(struct words *words, size_t n)
{
    struct dicom_bytes report = {0};
    struct command answer = taken;
    answer.has_data_set = false;
    begin_report(&report);
    for (size_t i = 0; i < n; i++)
        put_message(&words->before, 3, &event, &report);
    put_command(&words->before, 3, &answer);
    bytes_free(&report);
}

static const struct {
    struct edge edge;
    void (*messages)(struct words *words, size_t n);
} destinations[] = {
    {EDGE(ANSWER_BYTES), an_answer},
    {EDGE(REPORTS), reports_and_an_answer},
};

static enum code
ask_for_commitment(int port, size_t *reports)
{
    const struct dicom_commitment *report;
    struct dicom_association *association;
    struct error error = {0};
    ck_assert_int_eq(peer_ask(port, &association, &error), 0);
    for (*reports = 0; error.code == CODE_NONE && dicom_report(association, &report) > 0;)
        ++*reports;
    dicom_release(association);
    return error.code;
}

static enum code
call(void (*messages)(struct words *words, size_t n), size_t n, size_t *reports)
{
    struct words words = {0};
    int port;
    struct teller teller = {.is_called = true, .words = &words};
    teller.fd = listen_somewhere(&port);
    put_negotiation(&words.before, PDU_AC, NULL, n);
    messages(&words, n);
    begin_telling(&teller);
    const enum code code = ask_for_commitment(port, reports);
    end_telling(&teller, &words);
    bytes_free(&teller.heard);
    close(teller.fd);
    return code;
}

START_TEST(limits_of_a_destination)
{
    const struct edge *edge = &destinations[_i].edge;
    const bool counts_reports = destinations[_i].messages == reports_and_an_answer;
    size_t reports;
    enum code code = call(destinations[_i].messages, (size_t)edge->most, &reports);
    ck_assert_msg(code == CODE_NONE, "%s: %s", edge->name, code_name(code));
    ck_assert_uint_eq(reports, counts_reports ? (size_t)edge->most : 0);
    code = call(destinations[_i].messages, (size_t)edge->most + 1, &reports);
    ck_assert_msg(code == edge->code, "%s: %s", edge->name, code_name(code));
}

END_TEST

int
main(void)
{
    dicom_init();
    Suite *suite = suite_create("dicom_peer_limits");
    TCase *tests = tcase_create("peer_limits");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, limits_of_a_caller, 0, (int)(sizeof(calls) / sizeof(calls[0])));
    tcase_add_loop_test(tests, limits_of_a_destination, 0, (int)(sizeof(destinations) / sizeof(destinations[0])));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

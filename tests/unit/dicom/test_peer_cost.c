/*
 * Checks that time for a peer grows at most linearly with its bytes, for any content. Sends the worst of each kind on
 * a connection, at a size, twice and four times that: as a caller, and as the answers of a destination.
 */
#include "tests/unit/dicom/peer_calls.h"
#include "tests/unit/growth.h"
#include "tests/unit/suite.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

/* Input whose size is n in something that a reader may count, compare or nest. */
struct kind {
    const char *name;
    size_t n;
    void (*request)(struct dicom_bytes *items, size_t n);  /* adds to the A-ASSOCIATE-RQ or -AC */
    void (*messages)(struct dicom_bytes *bytes, size_t n); /* adds the messages */
};

/* ---- negotiations ---- */

static void
many_contexts(struct dicom_bytes *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_context(items, 0x20, 5 + 2 * (unsigned)(i % 120), CLASS_CT);
}

static void
many_answers(struct dicom_bytes *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_context(items, 0x21, 3, DICOM_COMMITMENT_CLASS);
}

static void
many_items(struct dicom_bytes *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_item(items, 0x77, "", 0);
}

static void
many_syntaxes(struct dicom_bytes *items, size_t n)
{
    struct dicom_bytes value = {0};
    bytes_put(&value, "\5\0\0\0", 4);
    put_item(&value, 0x30, CLASS_CT, strlen(CLASS_CT));
    for (size_t i = 0; i < n; i++)
        put_item(&value, 0x40, "1", 1);
    put_item(items, 0x20, value.data, value.size);
    bytes_free(&value);
}

static void
many_roles(struct dicom_bytes *items, size_t n)
{
    struct dicom_bytes value = {0};
    for (size_t i = 0; i < n; i++)
        put_item(&value, 0x54,
                 "\0\1"
                 "1\1\1",
                 5);
    put_item(items, 0x50, value.data, value.size);
    bytes_free(&value);
}

/* ---- messages ---- */

static void
echoes(struct dicom_bytes *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_command(bytes, 1, &echo);
}

static void
elements_of_commands(struct dicom_bytes *bytes, size_t n)
{
    struct command full = echo;
    full.more = n;
    for (int i = 0; i < 100; i++)
        put_command(bytes, 1, &full);
}

/* Puts a data set in n fragments of one byte. */
static void
put_fragments(struct dicom_bytes *bytes, unsigned context, size_t n)
{
    struct dicom_bytes pdu = {0};
    for (size_t i = 0; i < n; i++) {
        put_pdv(&pdu, context, 0, "a", 1);
        if (pdu.size > 4000) {
            put_pdu(bytes, PDU_DATA, &pdu);
            pdu.size = 0;
        }
    }
    put_pdv(&pdu, context, PDV_LAST, "a", 1);
    put_pdu(bytes, PDU_DATA, &pdu);
    bytes_free(&pdu);
}

static void
fragments(struct dicom_bytes *bytes, size_t n)
{
    put_command(bytes, 1, &store);
    put_fragments(bytes, 1, n);
}

static void
fragments_of_answers(struct dicom_bytes *bytes, size_t n)
{
    put_command(bytes, 3, &taken);
    put_fragments(bytes, 3, n);
}

static void
small_pdus(struct dicom_bytes *bytes, size_t n)
{
    put_command(bytes, 1, &store);
    for (size_t i = 0; i < n; i++)
        put_data(bytes, 1, 0, "a", 1);
    put_data(bytes, 1, PDV_LAST, "a", 1);
}

/* Puts n reports. A function fills each, as often as fits. */
static void
put_reports(struct dicom_bytes *bytes, size_t n, void (*part)(struct dicom_bytes *bytes))
{
    struct dicom_bytes report = {0};
    put_element(&report, 0x00081195, "1.2.3", 5);
    if (part) {
        bytes_tag(&report, 0x00081199);
        bytes_u32(&report, BYTES_UNDEFINED);
        while (report.size < 60000)
            part(&report);
        bytes_tag(&report, 0xFFFEE0DD);
        bytes_u32(&report, 0);
    }
    for (size_t i = 0; i < n; i++)
        put_message(bytes, 3, &event, &report);
    bytes_free(&report);
}

static void
put_reference(struct dicom_bytes *bytes)
{
    bytes_tag(bytes, 0xFFFEE000);
    bytes_u32(bytes, 12);
    put_element(bytes, 0x00081155, "1.23", 4);
}

static void
put_nested(struct dicom_bytes *bytes)
{
    bytes_tag(bytes, 0xFFFEE000);
    bytes_u32(bytes, BYTES_UNDEFINED);
    bytes_tag(bytes, 0x00081199);
    bytes_u32(bytes, BYTES_UNDEFINED);
}

static void
put_unknown(struct dicom_bytes *bytes)
{
    bytes_tag(bytes, 0xFFFEE000);
    bytes_u32(bytes, 20);
    put_element(bytes, 0x00081155, "1.23", 4);
    put_element(bytes, 0x00091001, "", 0);
}

static void
reports(struct dicom_bytes *bytes, size_t n)
{
    put_reports(bytes, n, put_reference);
}

static void
nested_reports(struct dicom_bytes *bytes, size_t n)
{
    put_reports(bytes, n, put_nested);
}

static void
unknown_in_reports(struct dicom_bytes *bytes, size_t n)
{
    put_reports(bytes, n, put_unknown);
}

static void
empty_reports(struct dicom_bytes *bytes, size_t n)
{
    put_reports(bytes, n, NULL);
}

static const struct kind callers[] = {
    {"contexts", 1500, many_contexts, NULL},
    {"items", 15000, many_items, NULL},
    {"transfer syntaxes", 3000, many_syntaxes, NULL},
    {"roles", 1800, many_roles, NULL},
    {"echoes", 2000, NULL, echoes},
    {"elements of commands", 450, NULL, elements_of_commands},
    {"fragments", 100000, NULL, fragments},
    {"small PDUs", 30000, NULL, small_pdus},
    {"reports", 40, NULL, reports},
    {"nested reports", 40, NULL, nested_reports},
    {"unknown in reports", 40, NULL, unknown_in_reports},
    {"empty reports", 1000, NULL, empty_reports},
};

static const struct kind destinations[] = {
    {"answered contexts", 1500, many_answers, NULL},
    {"items", 15000, many_items, NULL},
    {"fragments of an answer", 30000, NULL, fragments_of_answers},
    {"reports", 40, NULL, reports},
    {"nested reports", 40, NULL, nested_reports},
    {"unknown in reports", 40, NULL, unknown_in_reports},
    {"empty reports", 60, NULL, empty_reports},
};

/* ---- both ends ---- */

/* Sends all bytes, and reads until the other end closes. */
struct speaker {
    int fd;
    const struct dicom_bytes *words;
    pthread_t thread;
};

static void *
speak(void *context)
{
    struct speaker *speaker = context;
    size_t said = 0;
    char heard[65536];
    for (;;) {
        struct pollfd polled = {.fd = speaker->fd, .events = POLLIN};
        if (said < speaker->words->size)
            polled.events |= POLLOUT;
        if (poll(&polled, 1, -1) < 0)
            break;
        if (polled.revents & POLLIN && recv(speaker->fd, heard, sizeof(heard), 0) <= 0)
            break;
        if (polled.revents & POLLOUT) {
            const ssize_t sent = send(speaker->fd, speaker->words->data + said, speaker->words->size - said,
                                      MSG_NOSIGNAL | MSG_DONTWAIT);
            said += sent > 0 ? (size_t)sent : 0;
            if (said == speaker->words->size)
                shutdown(speaker->fd, SHUT_WR);
        }
        if (polled.revents & (POLLERR | POLLNVAL))
            break;
    }
    close(speaker->fd);
    return NULL;
}

static void
begin_speaking(struct speaker *speaker)
{
    ck_assert_int_eq(pthread_create(&speaker->thread, NULL, speak, speaker), 0);
}

static uint16_t
on_begin(void *context, const struct dicom_store *about, int *fd)
{
    (void)context;
    (void)about;
    *fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    *(int *)context = *fd;
    return DICOM_SUCCESS;
}

static uint16_t
on_end(void *context, const struct dicom_store *about, int64_t bytes, int rc)
{
    (void)about;
    (void)bytes;
    (void)rc;
    close(*(int *)context);
    return DICOM_SUCCESS;
}

static double
cost_of_caller(const void *kind, size_t n)
{
    int ends[2], file = -1;
    struct error error;
    struct dicom_bytes words = {0};
    const struct kind *caller = kind;
    const struct dicom_receiver receiver = {.context = &file,
                                            .admit = peer_admit,
                                            .store_begin = on_begin,
                                            .store_end = on_end,
                                            .committed = peer_committed};
    put_negotiation(&words, PDU_RQ, caller->request, n);
    if (caller->messages)
        caller->messages(&words, n);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct speaker speaker = {.fd = ends[1], .words = &words};
    const double begun = growth_clock();
    begin_speaking(&speaker);
    (void)dicom_serve(ends[0], &peer_options, &receiver, &error);
    pthread_join(speaker.thread, NULL);
    const double seconds = growth_clock() - begun;
    bytes_free(&words);
    return seconds;
}

/* Runs a destination that sends as soon as a caller connects. */
static void *
be_called(void *context)
{
    struct speaker *speaker = context;
    const int listener = speaker->fd;
    speaker->fd = accept(listener, NULL, NULL);
    return speak(speaker);
}

static void
hear_out(int port)
{
    const struct dicom_commitment *report;
    struct dicom_association *association;
    struct error error;
    if (peer_ask(port, &association, &error))
        return;
    while (dicom_report(association, &report) > 0)
        continue;
    dicom_release(association);
}

static double
cost_of_destination(const void *kind, size_t n)
{
    int port;
    const int listener = listen_somewhere(&port);
    const struct kind *destination = kind;
    struct dicom_bytes words = {0};
    put_negotiation(&words, PDU_AC, destination->request, n);
    if (destination->messages)
        destination->messages(&words, n);
    struct speaker speaker = {.fd = listener, .words = &words};
    const double begun = growth_clock();
    ck_assert_int_eq(pthread_create(&speaker.thread, NULL, be_called, &speaker), 0);
    hear_out(port);
    pthread_join(speaker.thread, NULL);
    const double seconds = growth_clock() - begun;
    close(listener);
    bytes_free(&words);
    return seconds;
}

START_TEST(cost_of_data_from_a_caller)
{
    expect_linear(callers[_i].name, cost_of_caller, &callers[_i], callers[_i].n);
}

END_TEST

START_TEST(cost_of_responses_of_a_destination)
{
    expect_linear(destinations[_i].name, cost_of_destination, &destinations[_i], destinations[_i].n);
}

END_TEST

int
main(void)
{
    dicom_init();
    Suite *suite = suite_create("dicom_peer_cost");
    TCase *tests = tcase_create("peer_cost");
    tcase_add_loop_test(tests, cost_of_data_from_a_caller, 0, sizeof(callers) / sizeof(callers[0]));
    tcase_add_loop_test(tests, cost_of_responses_of_a_destination, 0, sizeof(destinations) / sizeof(destinations[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

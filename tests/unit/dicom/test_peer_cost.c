/*
 * What a peer costs grows with its bytes, and no faster, whatever it says: the worst of each kind
 * comes on a connection, at a size, twice and four times that; from a caller, and as the answers of
 * a destination.
 */
#include "dicom/net/scu.h"
#include "tests/unit/dicom_bytes.h"
#include "tests/unit/growth.h"
#include "tests/unit/suite.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* What is sent, of a size that is n in something that a reader could count, compare or nest. */
struct kind {
    const char *name;
    size_t n;
    void (*request)(struct dicom_bytes *items, size_t n);  /* more in the A-ASSOCIATE-RQ or -AC */
    void (*messages)(struct dicom_bytes *bytes, size_t n); /* what follows */
};

enum { PDU_RQ = 1, PDU_AC = 2, PDU_DATA = 4, PDU_RELEASE_RQ = 5, PDV_COMMAND = 1, PDV_LAST = 2 };

/* ---- PDUs: most significant byte first ---- */

static void
put_pdu(struct dicom_bytes *bytes, unsigned type, const struct dicom_bytes *value)
{
    const uint8_t head[2] = {(uint8_t)type, 0};
    bytes->big_endian = true;
    bytes_put(bytes, head, sizeof(head));
    bytes_u32(bytes, (uint32_t)value->size);
    bytes_put(bytes, value->data, value->size);
}

static void
put_item(struct dicom_bytes *bytes, unsigned type, const void *value, size_t size)
{
    bytes->big_endian = true;
    bytes_u16(bytes, type << 8);
    bytes_u16(bytes, (unsigned)size);
    bytes_put(bytes, value, size);
}

static void
put_context(struct dicom_bytes *bytes, unsigned type, unsigned id, const char *class_uid)
{
    struct dicom_bytes value = {0};
    const uint8_t head[4] = {(uint8_t)id, 0, 0, 0};
    bytes_put(&value, head, sizeof(head));
    if (type == 0x20)
        put_item(&value, 0x30, class_uid, strlen(class_uid));
    put_item(&value, 0x40, SYNTAX_IMPLICIT, strlen(SYNTAX_IMPLICIT));
    put_item(bytes, type, value.data, value.size);
    bytes_free(&value);
}

/* Contexts 1 and 3, for CT and for commitments; `more` items after them. */
static void
put_negotiation(struct dicom_bytes *bytes, unsigned type, const struct kind *kind, size_t n)
{
    struct dicom_bytes value = {.big_endian = true};
    bytes_u16(&value, 1);
    bytes_u16(&value, 0);
    bytes_put(&value, "NOCTULE         PEER            ", 32);
    bytes_put(&value, (const uint8_t[32]){0}, 32);
    put_item(&value, 0x10, "1.2.840.10008.3.1.1.1", 21);
    put_context(&value, type == PDU_RQ ? 0x20 : 0x21, 1, CLASS_CT);
    put_context(&value, type == PDU_RQ ? 0x20 : 0x21, 3, DICOM_COMMITMENT_CLASS);
    if (kind->request)
        kind->request(&value, n);
    put_item(&value, 0x50, "\x51\0\0\4\0\0\x40\0", 8);
    put_pdu(bytes, type, &value);
    bytes_free(&value);
}

static void
put_pdv(struct dicom_bytes *pdu, unsigned context, unsigned flags, const void *data, size_t size)
{
    const uint8_t head[2] = {(uint8_t)context, (uint8_t)flags};
    pdu->big_endian = true;
    bytes_u32(pdu, (uint32_t)(size + 2));
    bytes_put(pdu, head, sizeof(head));
    bytes_put(pdu, data, size);
}

static void
put_data(struct dicom_bytes *bytes, unsigned context, unsigned flags, const void *data, size_t size)
{
    struct dicom_bytes pdu = {0};
    put_pdv(&pdu, context, flags, data, size);
    put_pdu(bytes, PDU_DATA, &pdu);
    bytes_free(&pdu);
}

/* ---- messages: implicit VR, little endian ---- */

static void
put_element(struct dicom_bytes *bytes, uint32_t tag, const void *value, size_t size)
{
    bytes->big_endian = false;
    bytes_tag(bytes, tag);
    bytes_u32(bytes, (uint32_t)(size + size % 2));
    bytes_put(bytes, value, size);
    bytes_put(bytes, "", size % 2);
}

static void
put_number(struct dicom_bytes *bytes, uint32_t tag, unsigned number)
{
    const uint8_t value[2] = {(uint8_t)number, (uint8_t)(number >> 8)};
    put_element(bytes, tag, value, sizeof(value));
}

struct command {
    unsigned field;
    const char *class_uid, *instance;
    bool has_data_set;
    size_t more; /* elements of no meaning */
};

static void
put_command(struct dicom_bytes *bytes, unsigned context, const struct command *command)
{
    struct dicom_bytes set = {0};
    put_element(&set, 0x00000002, command->class_uid, strlen(command->class_uid));
    put_number(&set, 0x00000100, command->field);
    put_number(&set, command->field & 0x8000 ? 0x00000120 : 0x00000110, 1);
    put_number(&set, 0x00000800, command->has_data_set ? 1 : 0x0101);
    put_number(&set, 0x00000900, 0);
    put_element(&set, 0x00001000, command->instance, strlen(command->instance));
    put_number(&set, 0x00001002, 1);
    for (size_t i = 0; i < command->more; i++)
        put_element(&set, 0x00005000, "", 0);
    put_data(bytes, context, PDV_COMMAND | PDV_LAST, set.data, set.size);
    bytes_free(&set);
}

static const struct command echo = {0x0030, DICOM_VERIFICATION_CLASS, "", false, 0};
static const struct command store = {0x0001, CLASS_CT, "1.2.3", true, 0};
static const struct command event = {0x0100, DICOM_COMMITMENT_CLASS, DICOM_COMMITMENT_INSTANCE,
                                     true, 0};
static const struct command taken = {0x8130, DICOM_COMMITMENT_CLASS, "", true, 0};

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

/* A data set in so many fragments of a byte. */
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

/* So many reports, each of what a function puts, as often as fits. */
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
    for (size_t i = 0; i < n; i++) {
        put_command(bytes, 3, &event);
        for (size_t at = 0; at < report.size; at += 4000) {
            const size_t left = report.size - at;
            put_data(bytes, 3, left <= 4000 ? PDV_LAST : 0, report.data + at,
                     left < 4000 ? left : 4000);
        }
    }
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

/* Says all that is to be said, and hears what comes until the other end has gone. */
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
            const ssize_t sent = send(speaker->fd, speaker->words->data + said,
                                      speaker->words->size - said, MSG_NOSIGNAL | MSG_DONTWAIT);
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

static enum dicom_admission
on_admit(void *context, const struct dicom_association_request *request)
{
    (void)context;
    (void)request;
    return DICOM_ADMIT;
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

static uint16_t
on_committed(void *context, const struct dicom_association_request *request,
             const struct dicom_commitment *commitment)
{
    (void)context;
    (void)request;
    (void)commitment;
    return DICOM_SUCCESS;
}

static double
cost_of_caller(const void *kind, size_t n)
{
    static const struct dicom_serve_options options = {.max_pdu = DICOM_PDU_MAX,
                                                       .acse_seconds = 60,
                                                       .dimse_seconds = 60,
                                                       .idle_seconds = 60,
                                                       .max_instance = UINT64_C(1) << 32,
                                                       .stop_fd = -1};
    int ends[2], file = -1;
    struct error error;
    struct dicom_bytes words = {0};
    const struct kind *caller = kind;
    const struct dicom_receiver receiver = {.context = &file,
                                            .admit = on_admit,
                                            .store_begin = on_begin,
                                            .store_end = on_end,
                                            .committed = on_committed};
    put_negotiation(&words, PDU_RQ, caller, n);
    if (caller->messages)
        caller->messages(&words, n);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct speaker speaker = {.fd = ends[1], .words = &words};
    const double begun = growth_clock();
    begin_speaking(&speaker);
    (void)dicom_serve(ends[0], &options, &receiver, &error);
    pthread_join(speaker.thread, NULL);
    const double seconds = growth_clock() - begun;
    bytes_free(&words);
    return seconds;
}

/* The destination speaks as soon as it is called. */
static void *
be_called(void *context)
{
    struct speaker *speaker = context;
    const int listener = speaker->fd;
    speaker->fd = accept(listener, NULL, NULL);
    return speak(speaker);
}

static int
listen_somewhere(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void
hear_out(const struct dicom_peer *peer)
{
    static const struct dicom_context contexts[] = {{CLASS_CT, SYNTAX_IMPLICIT},
                                                    {DICOM_COMMITMENT_CLASS, SYNTAX_IMPLICIT}};
    static const struct dicom_reference reference = {CLASS_CT, "1.2.3"};
    const struct dicom_commitment *report;
    struct dicom_association *association;
    struct dicom_answer answer;
    struct error error;
    if (dicom_connect(peer, contexts, 2, &association, &answer, &error))
        return;
    (void)dicom_commit(association, "1.2.3", &reference, 1, &answer, &error);
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
    put_negotiation(&words, PDU_AC, destination, n);
    if (destination->messages)
        destination->messages(&words, n);
    const struct dicom_peer peer = {.calling_ae = "NOCTULE",
                                    .called_ae = "PEER",
                                    .host = "127.0.0.1",
                                    .port = port,
                                    .connect_seconds = 60,
                                    .acse_seconds = 60,
                                    .dimse_seconds = 60,
                                    .max_pdu = DICOM_PDU_MAX};
    struct speaker speaker = {.fd = listener, .words = &words};
    const double begun = growth_clock();
    ck_assert_int_eq(pthread_create(&speaker.thread, NULL, be_called, &speaker), 0);
    hear_out(&peer);
    pthread_join(speaker.thread, NULL);
    const double seconds = growth_clock() - begun;
    close(listener);
    bytes_free(&words);
    return seconds;
}

START_TEST(what_a_caller_says)
{
    expect_linear(callers[_i].name, cost_of_caller, &callers[_i], callers[_i].n);
}

END_TEST

START_TEST(what_a_destination_answers)
{
    expect_linear(destinations[_i].name, cost_of_destination, &destinations[_i],
                  destinations[_i].n);
}

END_TEST

int
main(void)
{
    dicom_init();
    Suite *suite = suite_create("dicom_peer_cost");
    TCase *tests = tcase_create("peer_cost");
    tcase_add_loop_test(tests, what_a_caller_says, 0, sizeof(callers) / sizeof(callers[0]));
    tcase_add_loop_test(tests, what_a_destination_answers, 0,
                        sizeof(destinations) / sizeof(destinations[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

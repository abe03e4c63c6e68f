/* Admission: the rows of peers, our titles, the limits; and the format of addresses. */
#include "service/common/admission.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define PRINT "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct conf_title titles[] = {{.ae_title = "NOCTULE"}, {.ae_title = "HEADS"}};
static struct conf_peer peers[] = {
    {.ae_title = "ANYWHERE"},
    {.ae_title = "CT1", .host = "10.0.0.5", .max_associations = 2},
    {.ae_title = "CT1", .host = "2001:db8::1"},
    {.ae_title = "SAFE", .certificate = PRINT},
};

static struct conf_dicom
configuration(void)
{
    return (struct conf_dicom){
        .titles = titles, .title_count = 2, .peers = peers, .peer_count = 4, .max_associations = 25};
}

static const struct {
    struct admission_caller caller; /* calling, called, host, certificate */
    int open;
    enum admission_verdict closed; /* with echo_from_anybody off */
    enum admission_verdict echo;   /* and on */
} cases[] = {
    {{"ANYWHERE", "NOCTULE", "10.9.9.9", ""}, 12, ADMISSION_GRANTED, ADMISSION_GRANTED},
    {{"ANYWHERE", "NOCTULE", "10.9.9.9", ""}, 13, ADMISSION_BUSY, ADMISSION_BUSY},
    {{"ANYWHERE", "HEADS", "::1", OTHER}, 0, ADMISSION_GRANTED, ADMISSION_GRANTED},
    {{"ANYWHERE", "noctule", "::1", ""}, 0, ADMISSION_UNKNOWN_TITLE, ADMISSION_UNKNOWN_TITLE},
    {{"anywhere", "NOCTULE", "::1", ""}, 0, ADMISSION_UNKNOWN_CALLER, ADMISSION_ECHO_ONLY},
    {{"", "NOCTULE", "::1", ""}, 0, ADMISSION_UNKNOWN_CALLER, ADMISSION_ECHO_ONLY},
    {{"STRANGER", "ANY-SCP", "::1", ""}, 0, ADMISSION_UNKNOWN_CALLER, ADMISSION_UNKNOWN_TITLE},
    {{"CT1", "NOCTULE", "10.0.0.5", ""}, 1, ADMISSION_GRANTED, ADMISSION_GRANTED},
    {{"CT1", "NOCTULE", "10.0.0.5", ""}, 2, ADMISSION_BUSY, ADMISSION_BUSY},
    {{"CT1", "NOCTULE", "2001:db8::1", ""}, 2, ADMISSION_GRANTED, ADMISSION_GRANTED},
    {{"CT1", "NOCTULE", "10.0.0.50", ""}, 0, ADMISSION_OTHER_ADDRESS, ADMISSION_ECHO_ONLY},
    {{"SAFE", "NOCTULE", "10.0.0.5", PRINT}, 0, ADMISSION_GRANTED, ADMISSION_GRANTED},
    {{"SAFE", "NOCTULE", "10.0.0.5", OTHER}, 0, ADMISSION_OTHER_CERTIFICATE, ADMISSION_ECHO_ONLY},
    {{"SAFE", "NOCTULE", "10.0.0.5", ""}, 0, ADMISSION_OTHER_CERTIFICATE, ADMISSION_ECHO_ONLY},
};

START_TEST(each_caller_gets_a_decision)
{
    struct conf_dicom conf = configuration();
    const struct admission_load load = {.of_peer = cases[_i].open, .of_peers = cases[_i].open};
    ck_assert_int_eq(admission_decide(&conf, &cases[_i].caller, &load), cases[_i].closed);
    conf.echo_from_anybody = true;
    ck_assert_int_eq(admission_decide(&conf, &cases[_i].caller, &load), cases[_i].echo);
}

END_TEST

START_TEST(strangers_and_peers_are_counted_apart)
{
    struct conf_dicom conf = configuration();
    conf.echo_from_anybody = true;
    const struct admission_caller peer = {"SAFE", "NOCTULE", "::1", PRINT};
    const struct admission_caller stranger = {"STRANGER", "NOCTULE", "::1", ""};
    const struct admission_load strangers = {.of_unknown = 7};
    ck_assert_int_eq(admission_decide(&conf, &stranger, &strangers), ADMISSION_BUSY);
    ck_assert_int_eq(admission_decide(&conf, &peer, &strangers), ADMISSION_GRANTED);
    const struct admission_load full = {.of_peers = 25, .of_unknown = 6};
    ck_assert_int_eq(admission_decide(&conf, &peer, &full), ADMISSION_BUSY);
    ck_assert_int_eq(admission_decide(&conf, &stranger, &full), ADMISSION_ECHO_ONLY);
}

END_TEST

START_TEST(released_associations_do_not_count)
{
    const struct conf_dicom conf = configuration();
    const struct admission_caller peer = {"SAFE", "NOCTULE", "::1", PRINT};
    struct admission_load load = {.leaving = 63};
    ck_assert_int_eq(admission_decide(&conf, &peer, &load), ADMISSION_GRANTED);
    load.leaving++;
    ck_assert_int_eq(admission_decide(&conf, &peer, &load), ADMISSION_BUSY);
}

END_TEST

START_TEST(no_peer_excludes_other_peers)
{
    struct conf_dicom conf = configuration();
    ck_assert_int_eq(admission_share(&conf, &peers[0]), 13);
    ck_assert_int_eq(admission_share(&conf, &peers[1]), 2);
    conf.peer_count = 1;
    ck_assert_int_eq(admission_share(&conf, &peers[0]), 25);
    conf.max_associations = 1;
    ck_assert_int_eq(admission_share(&conf, &peers[0]), 1);
}

END_TEST

START_TEST(the_first_matching_row_applies)
{
    const struct conf_dicom conf = configuration();
    const struct admission_caller first = {"CT1", "NOCTULE", "10.0.0.5", ""};
    const struct admission_caller second = {"CT1", "NOCTULE", "2001:db8::1", ""};
    ck_assert_ptr_eq(admission_peer(&conf, &first), &peers[1]);
    ck_assert_ptr_eq(admission_peer(&conf, &second), &peers[2]);
}

END_TEST

START_TEST(a_peer_is_the_same_after_a_reload)
{
    char host[] = "10.0.0.5";
    const struct conf_peer again = {.ae_title = titles[0].ae_title, .host = host};
    struct conf_peer reloaded = {.ae_title = peers[1].ae_title, .host = host};
    ck_assert(admission_same_peer(&peers[1], &reloaded));
    ck_assert(!admission_same_peer(&peers[1], &peers[2]));
    ck_assert(!admission_same_peer(&peers[1], &again));
    reloaded.host = NULL;
    ck_assert(!admission_same_peer(&peers[1], &reloaded));
    ck_assert(!admission_same_peer(&reloaded, &peers[1]));
    reloaded = peers[3];
    reloaded.certificate = NULL;
    ck_assert(!admission_same_peer(&peers[3], &reloaded));
}

END_TEST

static void
host_of(int family, const char *text, char host[ADMISSION_HOST])
{
    struct sockaddr_storage address = {0};
    if (family == AF_INET) {
        struct sockaddr_in ipv4 = {.sin_family = AF_INET};
        ck_assert_int_eq(inet_pton(AF_INET, text, &ipv4.sin_addr), 1);
        memcpy(&address, &ipv4, sizeof ipv4);
    } else {
        struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6};
        ck_assert_int_eq(inet_pton(AF_INET6, text, &ipv6.sin6_addr), 1);
        memcpy(&address, &ipv6, sizeof ipv6);
    }
    admission_host((const struct sockaddr *)&address, host);
}

START_TEST(addresses_are_printed_as_configured)
{
    char host[ADMISSION_HOST];
    host_of(AF_INET, "10.0.0.5", host);
    ck_assert_str_eq(host, "10.0.0.5");
    host_of(AF_INET6, "2001:DB8:0:0::1", host);
    ck_assert_str_eq(host, "2001:db8::1");
    host_of(AF_INET6, "::ffff:10.0.0.5", host);
    ck_assert_str_eq(host, "10.0.0.5");
    const struct sockaddr unknown = {.sa_family = AF_UNIX};
    admission_host(&unknown, host);
    ck_assert_str_eq(host, "");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_admission");
    TCase *tcase = tcase_create("admission");
    tcase_add_loop_test(tcase, each_caller_gets_a_decision, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tcase, strangers_and_peers_are_counted_apart);
    tcase_add_test(tcase, released_associations_do_not_count);
    tcase_add_test(tcase, no_peer_excludes_other_peers);
    tcase_add_test(tcase, the_first_matching_row_applies);
    tcase_add_test(tcase, a_peer_is_the_same_after_a_reload);
    tcase_add_test(tcase, addresses_are_printed_as_configured);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

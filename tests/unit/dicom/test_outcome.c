/* Classification of failed deliveries, as a table. */
#include "dicom/net/scu.h"
#include "tests/unit/suite.h"

#include <check.h>

static const struct {
    enum code code;
    struct dicom_answer answer; /* status, then result, source and reason of a rejection */
    enum dicom_outcome expected;
} cases[] = {
    /* Success, or success with a warning. */
    {CODE_NONE, {0x0000, -1, -1, -1}, DICOM_SENT},
    {CODE_NONE, {0x0001, -1, -1, -1}, DICOM_SENT},
    {CODE_NONE, {0x0107, -1, -1, -1}, DICOM_SENT},
    {CODE_NONE, {0x0111, -1, -1, -1}, DICOM_SENT},
    {CODE_NONE, {0x0116, -1, -1, -1}, DICOM_SENT},
    {CODE_NONE, {0xB000, -1, -1, -1}, DICOM_SENT},
    {CODE_NONE, {0xB006, -1, -1, -1}, DICOM_SENT},
    {CODE_NONE, {0xBFFF, -1, -1, -1}, DICOM_SENT},
    /* Transient errors. */
    {CODE_STORE_FAILED, {0xA700, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_STORE_FAILED, {0xA7FF, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_STORE_FAILED, {0xA800, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_STORE_FAILED, {0x0110, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_STORE_FAILED, {0x0213, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_STORE_FAILED, {0xFE00, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_NONE, {0xFF00, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_NONE, {-1, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_PEER_UNREACHABLE, {-1, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_PEER_ABORTED, {-1, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_TLS_FAILED, {-1, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_FILE_UNREADABLE, {-1, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_DISK_FULL, {-1, -1, -1, -1}, DICOM_TRANSIENT},
    {CODE_PEER_BUSY, {-1, 2, 3, 2}, DICOM_TRANSIENT},
    {CODE_PEER_BUSY, {-1, 2, 1, 1}, DICOM_TRANSIENT},
    /* Permanent errors. */
    {CODE_STORE_REFUSED, {0xA900, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_STORE_REFUSED, {0xA9FF, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_STORE_REFUSED, {0xC000, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_STORE_REFUSED, {0xCFFF, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_NONE, {0xC000, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_STORE_REFUSED, {0x0117, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_STORE_REFUSED, {0x0122, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_STORE_REFUSED, {0x0124, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_STORE_REFUSED, {0x0211, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_COMMIT_FAILED, {0x0123, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_PEER_REJECTED, {-1, 1, 1, 1}, DICOM_PERMANENT},
    {CODE_PEER_REJECTED, {-1, 1, 1, 2}, DICOM_PERMANENT},
    {CODE_PEER_REJECTED, {-1, 1, 2, 2}, DICOM_PERMANENT},
    {CODE_PEER_REJECTED, {-1, 1, 1, 3}, DICOM_TRANSIENT},
    {CODE_PEER_REJECTED, {-1, 1, 1, 7}, DICOM_TRANSIENT},
    {CODE_NO_PRESENTATION_CONTEXT, {-1, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_COMMIT_UNSUPPORTED, {-1, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_NOT_DICOM, {-1, -1, -1, -1}, DICOM_PERMANENT},
    {CODE_FOLDER_CONFLICT, {-1, -1, -1, -1}, DICOM_PERMANENT},
};

START_TEST(outcomes)
{
    ck_assert_msg(dicom_outcome_of(cases[_i].code, &cases[_i].answer) == cases[_i].expected,
                  "\"%s\" with status %04X, result %d", code_name(cases[_i].code), (unsigned)cases[_i].answer.status,
                  cases[_i].answer.reject_result);
}

END_TEST

/* A failure must not count as sent, for any earlier answer of the peer. */
START_TEST(a_code_is_never_sent)
{
    const struct dicom_answer success = {0, -1, -1, -1};
    ck_assert_int_eq(dicom_outcome_of(CODE_PEER_ABORTED, &success), DICOM_TRANSIENT);
    ck_assert_int_eq(dicom_outcome_of(CODE_COMMIT_UNSUPPORTED, &success), DICOM_PERMANENT);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_outcome");
    TCase *tests = tcase_create("outcome");
    tcase_add_loop_test(tests, outcomes, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(tests, a_code_is_never_sent);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

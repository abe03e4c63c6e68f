/* The result for an instance in a STOW-RS response, in both formats, complete and cut off. */
#include "service/common/stow/stow.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define OURS          "\"00081155\":{\"vr\":\"UI\",\"Value\":[\"1.2.3\"]}"
#define OTHER         "\"00081155\":{\"vr\":\"UI\",\"Value\":[\"1.2.33\"]}"
#define CLASS         "\"00081150\":{\"vr\":\"UI\",\"Value\":[\"1.2\"]}"
#define WHY(number)   "\"00081197\":{\"vr\":\"US\",\"Value\":[" number "]}"
#define WARN(number)  "\"00081196\":{\"vr\":\"US\",\"Value\":[" number "]}"
#define STORED(items) "\"00081199\":{\"vr\":\"SQ\",\"Value\":[" items "]}"
#define FAILED(items) "\"00081198\":{\"vr\":\"SQ\",\"Value\":[" items "]}"
#define XML(sequence, inner)                                                                                           \
    "<?xml version='1.0'?><NativeDicomModel><DicomAttribute keyword=\"x\" tag=\"" sequence                             \
    "\" vr=\"SQ\"><Item number=\"1\">" inner "</Item></DicomAttribute></NativeDicomModel>"
#define XML_VALUE(tag, value)                                                                                          \
    "<DicomAttribute vr='UI' tag='" tag "'><Value number='1'>" value "</Value></DicomAttribute>"

static const struct {
    const char *text;
    bool stored, failed;
    int32_t warning, reason;
} rows[] = {
    {"{" STORED("{" CLASS "," OURS "}") "}", true, false, 0, -1},
    {"{" STORED("{" OURS "," CLASS "," WARN("45056") "}") "}", true, false, 45056, -1},
    {" [ {" STORED("{" OTHER "},{" OURS "}") "} ] ", true, false, 0, -1},
    {"{" STORED("{" CLASS "," OTHER "}") "}", false, false, 0, -1},
    {"{" STORED("{" OTHER "}") "," FAILED("{" CLASS "," OURS "," WHY("42752") "}") "}", false, true, 0, 42752},
    {"{" FAILED("{" OTHER "," WHY("1") "},{" OURS "," WHY("272") "}") "}", false, true, 0, 272},
    {"{" FAILED("{" OURS "," WHY("272") "},{" OTHER "," WHY("1") "}") "}", false, true, 0, 272},
    {"{" FAILED("{" OURS "}") "}", false, true, 0, -1},
    {"{" FAILED("{" OTHER "," WHY("1") "}") "," STORED("{" OURS "}") "}", true, false, 0, -1},
    {"{\"0008119A\":{\"vr\":\"SQ\",\"Value\":[{" WHY("49152") "}]}}", false, true, 0, 49152},
    /* Its UID outside a sequence must be ignored, and so must an invalid number. */
    {"{\"00081155\":{\"Value\":[\"1.2.3\"]}}", false, false, 0, -1},
    {"{" STORED("{\"00081150\":{\"Value\":[\"1.2.3\"]}}") "}", false, false, 0, -1},
    {"{" STORED("{\"00081155\":{\"vr\":\"1.2.3\"}}") "}", false, false, 0, -1},
    {"{" FAILED("{" OURS "," WHY("99999999999999999999") "}") "}", false, true, 0, -1},
    {XML("00081199", XML_VALUE("00081155", " 1.2.3 ")), true, false, 0, -1},
    {XML("00081198", XML_VALUE("00081155", "1.2.3") XML_VALUE("00081197", "43264")), false, true, 0, 43264},
    {XML("00081199", XML_VALUE("00081155", "1.2.3.4")), false, false, 0, -1},
    {"", false, false, 0, -1},
    {"OK", false, false, 0, -1},
    {"<", false, false, 0, -1},
};

START_TEST(an_answer_is_understood)
{
    struct stow_answer answer;
    stow_answer_read(rows[_i].text, strlen(rows[_i].text), "1.2.3", &answer);
    ck_assert_msg(answer.stored == rows[_i].stored && answer.failed == rows[_i].failed &&
                      answer.warning == rows[_i].warning && answer.reason == rows[_i].reason,
                  "%s", rows[_i].text);
}

END_TEST

/* A cut response must not report an instance as stored that it does not name, and must not cause
 * reads beyond its end. */
START_TEST(a_cut_response_reports_no_more)
{
    const char *text = rows[_i].text;
    for (size_t size = 0; size < strlen(text); size++) {
        struct stow_answer answer;
        char *copy = malloc(size + 1);
        memcpy(copy, text, size);
        copy[size] = 'x'; /* no longer part of it */
        stow_answer_read(copy, size, "1.2.3", &answer);
        ck_assert(!answer.stored || rows[_i].stored);
        free(copy);
    }
}

END_TEST

int
main(void)
{
    const int count = sizeof rows / sizeof *rows;
    TCase *tcase = tcase_create("stow_answer");
    tcase_add_loop_test(tcase, an_answer_is_understood, 0, count);
    tcase_add_loop_test(tcase, a_cut_response_reports_no_more, 0, count);
    Suite *suite = suite_create("common_stow_answer");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

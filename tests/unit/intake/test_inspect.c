/* INSPECT requests and their INSPECTED answers. */
#include "service/receiver/inspect.h"

#include "dicom/dicom.h"
#include "service/common/routing/routing_conditions.h"
#include "tests/unit/dicom_bytes.h"
#include "tests/unit/edge.h"
#include "tests/unit/scratch_folder.h"

#include <errno.h>

#define SLICES 12

static void
make_slices(void)
{
    dicom_init();
    scratch_make();
    for (int i = 0; i < SLICES; i++) {
        char name[32], uid[32], position[32];
        snprintf(name, sizeof name, "%02d.dcm", i);
        snprintf(uid, sizeof uid, "1.2.3.4.5.%d", i + 1);
        snprintf(position, sizeof position, "0\\0\\%d", 3 * i);
        struct sample_image image = SAMPLE_IMAGE;
        image.instance_uid = uid;
        image.position = position;
        sample_write(&image, scratch_path(name));
    }
}

/* Frames as received from a pipe. */
struct wire {
    struct proto_writer writer;
    struct proto_stream stream;
    struct proto_reader reader;
};

static void
receive(struct wire *wire)
{
    ck_assert_int_eq(proto_finish(&wire->writer), 0);
    ck_assert_int_eq(proto_feed(&wire->stream, wire->writer.bytes, wire->writer.size), 0);
    ck_assert_int_eq(proto_next(&wire->stream, &wire->reader), 1);
}

static void
release(struct wire *wire)
{
    proto_release(&wire->writer);
    proto_stream_release(&wire->stream);
}

static const struct message_inspect strict = {
    .series_id = 42, .revision = 3, .min_slices = 1, .spacing_tolerance = 0.01};
static int64_t option_sets = 1; /* requested sets of options */
static const char *attributes = "";

static void
ask(struct wire *wire, const char *const *names, int64_t count)
{
    struct message_inspect request = strict;
    request.option_sets = option_sets;
    request.attributes = attributes;
    *wire = (struct wire){0};
    message_write_inspect(&wire->writer, &request);
    for (int64_t i = 0; i < count && names; i++)
        message_add_path(&wire->writer, &(struct message_path){.path = scratch_path(names[i])});
    receive(wire);
}

/* Sends a request and reads the head of the answer. Returns the number of stacks. */
static int64_t
answer_to(struct wire *answer, const char *const *names, int64_t count)
{
    struct wire question;
    struct message_inspected head;
    struct inspect *inspect;
    ask(&question, names, count);
    ck_assert_int_eq(inspect_open(&question.reader, &inspect), 0);
    release(&question);
    inspect_run(inspect, 3);
    *answer = (struct wire){0};
    inspect_answer(inspect, &answer->writer);
    inspect_free(inspect);
    receive(answer);
    ck_assert_int_eq(answer->reader.type, PROTO_INSPECTED);
    ck_assert_int_eq(message_read_inspected(&answer->reader, &head), 0);
    ck_assert_int_eq(head.series_id, 42);
    ck_assert_int_eq(head.revision, 3);
    return answer->reader.rows;
}

static const char *const IN_ORDER[SLICES] = {"07.dcm", "00.dcm", "01.dcm", "02.dcm", "03.dcm", "04.dcm",
                                             "05.dcm", "06.dcm", "11.dcm", "08.dcm", "09.dcm", "10.dcm"};

START_TEST(a_valid_series_is_one_accepted_stack)
{
    struct wire answer;
    ck_assert_int_eq(answer_to(&answer, IN_ORDER, SLICES), 1);
    struct message_stack stack;
    ck_assert(message_next_stack(&answer.reader, &stack));
    ck_assert_str_eq(stack.name, "");
    ck_assert_str_eq(stack.split_by, "");
    ck_assert_int_eq(stack.accepted, 1);
    ck_assert_int_eq(stack.passed_over, 0);
    ck_assert_int_eq(stack.planes, SLICES);
    ck_assert_int_eq(stack.columns, 6);
    ck_assert_int_eq(stack.rows, 4);
    ck_assert_double_eq_tol(stack.spacing, 3.0, 1e-9);
    ck_assert_int_eq(stack.code, CODE_NONE);
    ck_assert_str_eq(stack.message, "");
    ck_assert_str_eq(stack.file_a, "");
    ck_assert_str_eq(stack.file_b, "");
    ck_assert(!message_next_stack(&answer.reader, &stack));
    release(&answer);
}

END_TEST

static void
assert_refused(const char *const *names, int64_t count, enum code code, const char *file)
{
    struct wire answer;
    struct message_stack stack;
    ck_assert_int_eq(answer_to(&answer, names, count), 1);
    ck_assert(message_next_stack(&answer.reader, &stack));
    ck_assert_int_eq(stack.accepted, 0);
    ck_assert_int_eq(stack.code, code);
    ck_assert_uint_gt(strlen(stack.message), 10);
    ck_assert_ptr_nonnull(strstr(stack.file_a, file));
    release(&answer);
}

START_TEST(a_gap_is_refused_with_its_files)
{
    const char *names[SLICES];
    memcpy(names, IN_ORDER, sizeof names);
    names[5] = names[SLICES - 1]; /* without 04 */
    assert_refused(names, SLICES - 1, CODE_MISSING_SLICE, "03.dcm");
}

END_TEST

START_TEST(the_first_unreadable_file_is_named)
{
    const char *names[SLICES];
    memcpy(names, IN_ORDER, sizeof names);
    names[4] = "gone-4.dcm";
    names[6] = "gone-6.dcm";
    for (int i = 0; i < 20; i++)
        assert_refused(names, SLICES, CODE_FILE_UNREADABLE, "gone-4.dcm");
}

END_TEST

START_TEST(several_series_are_refused)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.series_uid = "1.2.3.4.99";
    sample_write(&image, scratch_path("other.dcm"));
    const char *names[] = {"00.dcm", "01.dcm", "other.dcm"};
    assert_refused(names, 3, CODE_SERIES_MIXED, "");
}

END_TEST

/* Inspects with the options of several pipelines. Sets that no pipeline has are not requested. */
START_TEST(each_option_set_has_its_stacks)
{
    static const struct {
        const char *name;
        int64_t options;
        enum code code;
    } expected[] = {{"derived", 0, CODE_DERIVED_IMAGE}, {"", 1, CODE_NONE}, {"", 3, CODE_NONE}};

    struct sample_image image = SAMPLE_IMAGE;
    image.image_type = "DERIVED\\SECONDARY\\MIP";
    sample_write(&image, scratch_path("mip.dcm"));
    const char *name = "mip.dcm";
    struct wire answer;
    struct message_stack stack;
    option_sets = 1 << 0 | 1 << 1 | 1 << 3;
    ck_assert_int_eq(answer_to(&answer, &name, 1), 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(message_next_stack(&answer.reader, &stack));
        ck_assert_str_eq(stack.name, expected[i].name);
        ck_assert_int_eq(stack.options, expected[i].options);
        ck_assert_int_eq(stack.code, expected[i].code);
    }
    release(&answer);
}

END_TEST

static void
put_comment(struct dicom_bytes *bytes)
{
    char comment[LIMIT_RULE_BYTES - 1]; /* makes a line of LIMIT_RULE_BYTES */
    memset(comment, 'x', sizeof comment);
    comment[sizeof comment - 1] = '\0';
    bytes_text(bytes, 0x00400400, "LT", comment);
}

/* Values must be those of the first plane. Beyond the limit of a series they must be "". */
START_TEST(values_are_reported_up_to_their_limit)
{
    static const struct edge most = EDGE(RULE_VALUES_KIB);
    static char many[(LIMIT_RULE_VALUES_KIB + 1) * 16];
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = put_comment;
    sample_write(&image, scratch_path("commented.dcm"));
    const char *name = "commented.dcm";
    attributes = many;
    option_sets = 1;
    *many = '\0';
    for (int64_t lines = 0; lines <= most.most; lines++) {
        strcat(many, "(0040,0400)\t\n");
        if (lines + 1 < most.most)
            continue;
        struct wire answer;
        struct message_stack stack;
        ck_assert_int_eq(answer_to(&answer, &name, 1), 1);
        ck_assert(message_next_stack(&answer.reader, &stack));
        ck_assert_int_eq(stack.orientation, CONF_AXIAL);
        ck_assert_uint_eq(strlen(stack.values), lines < most.most ? (size_t)most.most << 10 : 0);
        release(&answer);
    }
    attributes = "InstanceNumber\t\n";
    struct wire answer;
    struct message_stack stack;
    ck_assert_int_eq(answer_to(&answer, IN_ORDER, SLICES), 1);
    ck_assert(message_next_stack(&answer.reader, &stack));
    ck_assert_str_eq(stack.values, "=7\n");
    release(&answer);
    attributes = "";
}

END_TEST

START_TEST(invalid_requests_are_rejected)
{
    const int64_t counts[] = {-1, 5, INT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct wire question = {0};
        struct inspect *inspect;
        proto_start(&question.writer, PROTO_INSPECT);
        proto_put_i64(&question.writer, 42);
        proto_put_i64(&question.writer, 3);
        proto_put_f64(&question.writer, 0.01);
        for (int field = 0; field < 2; field++)
            proto_put_i64(&question.writer, 0);
        proto_put_str(&question.writer, "");
        proto_put_i64(&question.writer, counts[i]);
        proto_put_str(&question.writer, "only one");
        receive(&question);
        ck_assert_int_eq(inspect_open(&question.reader, &inspect), -EBADMSG);
        release(&question);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_inspect");
    TCase *tests = tcase_create("inspect");
    tcase_add_checked_fixture(tests, make_slices, scratch_remove);
    tcase_add_test(tests, a_valid_series_is_one_accepted_stack);
    tcase_add_test(tests, a_gap_is_refused_with_its_files);
    tcase_add_test(tests, the_first_unreadable_file_is_named);
    tcase_add_test(tests, several_series_are_refused);
    tcase_add_test(tests, each_option_set_has_its_stacks);
    tcase_add_test(tests, values_are_reported_up_to_their_limit);
    tcase_add_test(tests, invalid_requests_are_rejected);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Frames and fields: round trips, and all invalid data that a peer may send. */
#include "service/common/wire/proto.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct proto_stream stream;

static void
forget_stream(void)
{
    proto_stream_release(&stream);
}

/* Feeds a frame of the given parts at once. */
static struct proto_reader
read_back(struct proto_writer *writer)
{
    struct proto_reader reader;
    ck_assert_int_eq(proto_finish(writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer->bytes, writer->size), 0);
    proto_release(writer);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    return reader;
}

START_TEST(fields_read_back_unchanged)
{
    static const int64_t integers[] = {0, 1, -1, INT64_MAX, INT64_MIN, 1234567890123};
    static const double numbers[] = {0.0, -0.0, 1.5, -1e300, 5e-324};
    static const char *const strings[] = {"", "a", "1.2.840.10008", "L\xc3\xa4nge \n\t"};
    struct proto_writer writer;
    proto_start(&writer, PROTO_DONE);
    for (size_t i = 0; i < 6; i++)
        proto_put_i64(&writer, integers[i]);
    for (size_t i = 0; i < 5; i++)
        proto_put_f64(&writer, numbers[i]);
    for (size_t i = 0; i < 4; i++)
        proto_put_str(&writer, strings[i]);
    proto_put_str(&writer, NULL);

    struct proto_reader reader = read_back(&writer);
    ck_assert_int_eq(reader.type, PROTO_DONE);
    for (size_t i = 0; i < 6; i++)
        ck_assert(proto_get_i64(&reader) == integers[i]);
    for (size_t i = 0; i < 5; i++) {
        double got = proto_get_f64(&reader);
        ck_assert_mem_eq(&got, &numbers[i], sizeof got);
    }
    /* All strings must stay valid together, not only until the next one is read. */
    const char *got[5];
    for (size_t i = 0; i < 5; i++)
        got[i] = proto_get_str(&reader);
    ck_assert_int_eq(proto_end(&reader), 0);
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(got[i], strings[i]);
    ck_assert_str_eq(got[4], "");
}

END_TEST

START_TEST(a_frame_is_forwarded_unchanged)
{
    struct proto_writer writer, copy;
    proto_start(&writer, PROTO_DONE);
    proto_put_i64(&writer, 17);
    proto_put_str(&writer, "seg.dcm");
    const struct proto_reader reader = read_back(&writer);
    proto_copy(&copy, &reader);
    struct proto_reader again = read_back(&copy);
    ck_assert_int_eq(again.type, PROTO_DONE);
    ck_assert(proto_get_i64(&again) == 17);
    ck_assert_str_eq(proto_get_str(&again), "seg.dcm");
    ck_assert_int_eq(proto_end(&again), 0);
}

END_TEST

START_TEST(bytes_are_the_documented_ones)
{
    static const uint8_t expected[] = {
        17,  0,   0,   0,   16,  0,             /* length, RUN */
        254, 255, 255, 255, 255, 255, 255, 255, /* -2 */
        3,   0,   0,   0,   'a', 'b', 'c',
    };
    struct proto_writer writer;
    proto_start(&writer, PROTO_RUN);
    proto_put_i64(&writer, -2);
    proto_put_str(&writer, "abc");
    ck_assert_int_eq(proto_finish(&writer), 0);
    ck_assert_uint_eq(writer.size, sizeof expected);
    ck_assert_mem_eq(writer.bytes, expected, sizeof expected);
    proto_release(&writer);
}

END_TEST

START_TEST(frames_are_separated_for_any_fragments)
{
    struct proto_writer writer;
    uint8_t bytes[1024];
    size_t size = 0;
    for (int i = 0; i < 5; i++) {
        proto_start(&writer, PROTO_RUN);
        proto_put_i64(&writer, i);
        proto_put_str(&writer, "jobs/some.job");
        ck_assert_int_eq(proto_finish(&writer), 0);
        memcpy(bytes + size, writer.bytes, writer.size);
        size += writer.size;
        proto_release(&writer);
    }
    for (size_t piece = 1; piece <= size; piece++) {
        int frames = 0;
        for (size_t at = 0; at < size; at += piece) {
            size_t there = size - at < piece ? size - at : piece;
            ck_assert_int_eq(proto_feed(&stream, bytes + at, there), 0);
            struct proto_reader reader;
            int got;
            while ((got = proto_next(&stream, &reader)) == 1) {
                ck_assert_int_eq(proto_get_i64(&reader), frames);
                ck_assert_str_eq(proto_get_str(&reader), "jobs/some.job");
                ck_assert_int_eq(proto_end(&reader), 0);
                frames++;
            }
            ck_assert_int_eq(got, 0);
        }
        ck_assert_int_eq(frames, 5);
    }
}

END_TEST

/* Reading any prefix of a message must end with an error in proto_end. */
START_TEST(a_short_message_is_refused)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_RUN);
    proto_put_i64(&writer, 7);
    proto_put_str(&writer, "x");
    ck_assert_int_eq(proto_finish(&writer), 0);
    for (size_t size = PROTO_HEADER; size < writer.size; size++) {
        uint8_t copy[64];
        memcpy(copy, writer.bytes, size);
        struct proto_reader reader = {.bytes = copy, .size = size, .at = PROTO_HEADER};
        proto_get_i64(&reader);
        proto_get_str(&reader);
        ck_assert_int_eq(proto_end(&reader), -EBADMSG);
    }
    proto_release(&writer);
}

END_TEST

START_TEST(trailing_bytes_are_refused)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_STORED);
    proto_put_i64(&writer, 1);
    proto_put_i64(&writer, 2);
    struct proto_reader reader = read_back(&writer);
    ck_assert_int_eq(proto_get_i64(&reader), 1);
    ck_assert_int_eq(proto_end(&reader), -EBADMSG);
}

END_TEST

START_TEST(the_first_error_stays)
{
    uint8_t frame[] = {4, 0, 0, 0, 16, 0, 0, 0};
    struct proto_reader reader = {.bytes = frame, .size = sizeof frame, .at = PROTO_HEADER};
    ck_assert_int_eq(proto_get_i64(&reader), 0);
    ck_assert_str_eq(proto_get_str(&reader), "");
    ck_assert(proto_get_f64(&reader) == 0);
    ck_assert_int_eq(proto_end(&reader), -EBADMSG);
}

END_TEST

START_TEST(a_string_length_beyond_the_frame_is_refused)
{
    uint8_t frame[] = {10, 0, 0, 0, 16, 0, 255, 255, 255, 255, 'a', 'b', 'c', 'd'};
    struct proto_reader reader = {.bytes = frame, .size = sizeof frame, .at = PROTO_HEADER};
    ck_assert_str_eq(proto_get_str(&reader), "");
    ck_assert_int_eq(proto_end(&reader), -EBADMSG);
}

END_TEST

START_TEST(a_nul_inside_a_string_is_refused)
{
    uint8_t frame[] = {9, 0, 0, 0, 16, 0, 3, 0, 0, 0, 'a', 0, 'c'};
    struct proto_reader reader = {.bytes = frame, .size = sizeof frame, .at = PROTO_HEADER};
    ck_assert_str_eq(proto_get_str(&reader), "");
    ck_assert_int_eq(proto_end(&reader), -EBADMSG);
}

END_TEST

START_TEST(absurd_frame_lengths_are_refused)
{
    static const uint32_t lengths[] = {0, 1, PROTO_MAX_FRAME + 1, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        uint8_t head[8] = {0};
        for (int byte = 0; byte < 4; byte++)
            head[byte] = (uint8_t)(lengths[i] >> (8 * byte));
        struct proto_reader reader;
        ck_assert_int_eq(proto_feed(&stream, head, sizeof head), 0);
        ck_assert_int_eq(proto_next(&stream, &reader), -EBADMSG);
        proto_stream_release(&stream);
    }
}

END_TEST

START_TEST(the_largest_frame_passes_and_a_larger_one_does_not)
{
    size_t most = PROTO_MAX_FRAME - 2 - 4; /* type, and length of the string */
    char *text = malloc(most + 2);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', most + 1);
    text[most] = 0;
    struct proto_writer writer;
    proto_start(&writer, PROTO_ANSWER);
    proto_put_str(&writer, text);
    struct proto_reader reader = read_back(&writer);
    ck_assert_uint_eq(strlen(proto_get_str(&reader)), most);
    ck_assert_int_eq(proto_end(&reader), 0);

    text[most] = 'x';
    text[most + 1] = 0;
    proto_start(&writer, PROTO_ANSWER);
    proto_put_str(&writer, text);
    proto_put_i64(&writer, 1); /* the first error must be kept */
    ck_assert_int_eq(proto_finish(&writer), -EMSGSIZE);
    proto_release(&writer);
    free(text);
}

END_TEST

START_TEST(random_bytes_never_lead_outside)
{
    srand(20260131);
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[96];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)rand();
        bytes[0] = (uint8_t)(rand() % 96);
        bytes[1] = bytes[2] = bytes[3] = 0;
        ck_assert_int_eq(proto_feed(&stream, bytes, sizeof bytes), 0);
        struct proto_reader reader;
        while (proto_next(&stream, &reader) == 1) {
            for (int field = 0; field < 6; field++) {
                const char *text = proto_get_str(&reader);
                ck_assert_uint_le(strlen(text), sizeof bytes);
                proto_get_i64(&reader);
            }
            ck_assert_int_eq(proto_end(&reader), -EBADMSG);
        }
        proto_stream_release(&stream);
    }
}

END_TEST

START_TEST(the_build_id_is_stable_and_long)
{
    ck_assert_str_eq(proto_build_id(), proto_build_id());
    ck_assert_uint_ge(strlen(proto_build_id()), 16);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_proto");
    TCase *fields = tcase_create("fields");
    tcase_add_checked_fixture(fields, NULL, forget_stream);
    tcase_add_test(fields, fields_read_back_unchanged);
    tcase_add_test(fields, a_frame_is_forwarded_unchanged);
    tcase_add_test(fields, bytes_are_the_documented_ones);
    tcase_add_test(fields, frames_are_separated_for_any_fragments);
    tcase_add_test(fields, the_largest_frame_passes_and_a_larger_one_does_not);
    suite_add_tcase(suite, fields);
    TCase *broken = tcase_create("broken peers");
    tcase_add_checked_fixture(broken, NULL, forget_stream);
    tcase_add_test(broken, a_short_message_is_refused);
    tcase_add_test(broken, trailing_bytes_are_refused);
    tcase_add_test(broken, the_first_error_stays);
    tcase_add_test(broken, a_string_length_beyond_the_frame_is_refused);
    tcase_add_test(broken, a_nul_inside_a_string_is_refused);
    tcase_add_test(broken, absurd_frame_lengths_are_refused);
    tcase_add_test(broken, random_bytes_never_lead_outside);
    suite_add_tcase(suite, broken);
    TCase *names = tcase_create("build id");
    tcase_add_test(names, the_build_id_is_stable_and_long);
    suite_add_tcase(suite, names);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Every message of messages.def, written and read back; shorter and longer frames must be
 * rejected. */
#include "service/common/wire/messages.h"

#include "tests/unit/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 3

static struct proto_stream stream;
static struct proto_writer writer;

static void
release(void)
{
    proto_stream_release(&stream);
    proto_release(&writer);
}

/* Returns values that occur once. */
static int64_t serial;

static const char *
some_text(void)
{
    static char texts[256][32];
    char *text = texts[++serial % 256];
    snprintf(text, sizeof texts[0], "text %lld", (long long)serial);
    return text;
}

/* Returns the written frame, read from its start. */
static struct proto_reader
frame(void)
{
    struct proto_reader reader;
    proto_stream_release(&stream);
    ck_assert_int_eq(proto_finish(&writer), 0);
    ck_assert_int_eq(proto_feed(&stream, writer.bytes, writer.size), 0);
    ck_assert_int_eq(proto_next(&stream, &reader), 1);
    return reader;
}

/* ---------------------------------------------------------------------- sample values ---- */

#define I64(field)  message->field = ++serial;
#define F64(field)  message->field = (double)++serial + 0.5;
#define STR(field)  message->field = some_text();
#define CODE(field) message->field = (enum code)(++serial % 90);
#define NOTHING     (void)message;
#define MESSAGE(NAME, name, number, from, to, fields)                                                                  \
    static void fill_##name(struct message_##name *message)                                                            \
    {                                                                                                                  \
        fields                                                                                                         \
    }
#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                                    \
    MESSAGE(NAME, name, number, from, to, fields)                                                                      \
    MESSAGE(NAME, row, number, from, to, row_fields)
#include "service/common/wire/messages.def"

#define I64(field)  ck_assert_int_eq(got->field, sent->field);
#define F64(field)  ck_assert_double_eq(got->field, sent->field);
#define STR(field)  ck_assert_str_eq(got->field, sent->field);
#define CODE(field) ck_assert_int_eq(got->field, sent->field);
#define NOTHING                                                                                                        \
    (void)got;                                                                                                         \
    (void)sent;
#define MESSAGE(NAME, name, number, from, to, fields)                                                                  \
    static void compare_##name(const struct message_##name *got, const struct message_##name *sent)                    \
    {                                                                                                                  \
        fields                                                                                                         \
    }
#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                                    \
    MESSAGE(NAME, name, number, from, to, fields)                                                                      \
    MESSAGE(NAME, row, number, from, to, row_fields)
#include "service/common/wire/messages.def"

/* ------------------------------------------------------------------------- round trips ----- */

/* A kept message and its rows must outlive the frame. */
#define MESSAGE(NAME, name, number, from, to, fields)                                                                  \
    START_TEST(name##_arrives)                                                                                         \
    {                                                                                                                  \
        struct message_##name sent, got;                                                                               \
        fill_##name(&sent);                                                                                            \
        message_write_##name(&writer, &sent);                                                                          \
        struct proto_reader reader = frame();                                                                          \
        ck_assert_int_eq(reader.type, number);                                                                         \
        ck_assert_int_eq(message_read_##name(&reader, &got), 0);                                                       \
        compare_##name(&got, &sent);                                                                                   \
        void *kept = message_keep_##name(&reader, &got);                                                               \
        memset(stream.bytes, 0xee, stream.size);                                                                       \
        compare_##name(&got, &sent);                                                                                   \
        free(kept);                                                                                                    \
    }                                                                                                                  \
    END_TEST
#define LIST(NAME, name, number, from, to, fields, row, row_fields)                                                    \
    START_TEST(name##_arrives)                                                                                         \
    {                                                                                                                  \
        struct message_##name sent, got;                                                                               \
        struct message_##row sent_rows[ROWS], got_row;                                                                 \
        fill_##name(&sent);                                                                                            \
        message_write_##name(&writer, &sent);                                                                          \
        for (int i = 0; i < ROWS; i++) {                                                                               \
            fill_##row(&sent_rows[i]);                                                                                 \
            message_add_##row(&writer, &sent_rows[i]);                                                                 \
        }                                                                                                              \
        struct proto_reader reader = frame();                                                                          \
        ck_assert_int_eq(reader.type, number);                                                                         \
        ck_assert_int_eq(message_read_##name(&reader, &got), 0);                                                       \
        ck_assert_int_eq(reader.rows, ROWS);                                                                           \
        void *kept = message_keep_##name(&reader, &got);                                                               \
        memset(stream.bytes, 0xee, stream.size);                                                                       \
        compare_##name(&got, &sent);                                                                                   \
        for (int i = 0; i < ROWS; i++) {                                                                               \
            ck_assert(message_next_##row(&reader, &got_row));                                                          \
            compare_##row(&got_row, &sent_rows[i]);                                                                    \
        }                                                                                                              \
        ck_assert(!message_next_##row(&reader, &got_row));                                                             \
        free(kept);                                                                                                    \
    }                                                                                                                  \
    END_TEST
#include "service/common/wire/messages.def"

/* --------------------------------------------------------------------- broken messages ----- */

/* Writes a message of any type without values: NULL strings. */
static void
write_any(const struct message *message)
{
    static const int64_t nothing[48];
    message_write(&writer, message->type, nothing);
    for (int i = 0; message->row && i < ROWS; i++)
        message_add(&writer, message->type, nothing);
    ck_assert_int_eq(proto_finish(&writer), 0);
}

/* Returns the result of reading the first `size` bytes and any number of zeros after them. */
static int
read_part(const struct message *message, size_t size, size_t zeros)
{
    int64_t values[48];
    uint8_t *bytes = calloc(1, size + zeros);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, writer.bytes, size);
    struct proto_reader reader = {.bytes = bytes, .size = size + zeros, .at = PROTO_HEADER, .type = message->type};
    const int error = message_read(&reader, message->type, values);
    ck_assert_int_eq(proto_end(&reader), error);
    free(bytes);
    return error;
}

/* Fields and rows: the name of a code is changed in transit. */
START_TEST(a_message_with_an_unknown_code_is_rejected)
{
    const struct message_quarantined quarantined = {.code = CODE_TAG_MISSING};
    const struct message_inspected inspected = {.series_id = 1};
    const struct message_stack stack = {.code = CODE_TAG_MISSING};
    for (int in_row = 0; in_row < 2; in_row++) {
        if (in_row) {
            message_write_inspected(&writer, &inspected);
            message_add_stack(&writer, &stack);
        } else {
            message_write_quarantined(&writer, &quarantined);
        }
        const struct message *message = message_find(in_row ? PROTO_INSPECTED : PROTO_QUARANTINED);
        ck_assert_int_eq(proto_finish(&writer), 0);
        ck_assert_int_eq(read_part(message, writer.size, 0), 0);
        char *name = memmem(writer.bytes, writer.size, "TAG_MISSING", 11);
        ck_assert_ptr_nonnull(name);
        name[10] = 'X';
        ck_assert_int_eq(read_part(message, writer.size, 0), -EBADMSG);
        proto_release(&writer);
    }
}

END_TEST

START_TEST(less_or_more_is_no_message)
{
    for (int number = 0; number < 256; number++) {
        const struct message *message = message_find((enum proto_type)number);
        if (!message)
            continue;
        write_any(message);
        ck_assert_int_eq(read_part(message, writer.size, 0), 0);
        for (size_t size = PROTO_HEADER; size < writer.size; size++)
            ck_assert_int_eq(read_part(message, size, 0), -EBADMSG);
        for (size_t more = 1; more <= 16; more++)
            ck_assert_int_eq(read_part(message, writer.size, more), -EBADMSG);
        proto_release(&writer);
    }
}

END_TEST

START_TEST(another_type_is_not_read)
{
    struct message_stored stored;
    message_write_retry(&writer, &(struct message_retry){.job = 7});
    struct proto_reader reader = frame();
    ck_assert_int_eq(message_read_stored(&reader, &stored), -EBADMSG);
    ck_assert_int_eq(proto_end(&reader), -EBADMSG);
}

END_TEST

START_TEST(a_count_beyond_the_frame_is_refused)
{
    static const int64_t counts[] = {-1, 3, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < 4; i++) {
        struct message_inspect inspect;
        struct message_path path;
        proto_start(&writer, PROTO_INSPECT);
        proto_put_i64(&writer, 42);
        proto_put_i64(&writer, 3);
        proto_put_f64(&writer, 0.01);
        proto_put_i64(&writer, counts[i]);
        proto_put_str(&writer, "only");
        proto_put_str(&writer, "two");
        struct proto_reader reader = frame();
        ck_assert_int_eq(message_read_inspect(&reader, &inspect), -EBADMSG);
        ck_assert(!message_next_path(&reader, &path));
        proto_release(&writer);
    }
}

END_TEST

START_TEST(a_nul_in_a_row_is_refused)
{
    struct message_inspect inspect;
    message_write_inspect(&writer, &(struct message_inspect){.series_id = 1});
    message_add_path(&writer, &(struct message_path){.path = "/a/path"});
    writer.bytes[writer.size - 3] = 0;
    struct proto_reader reader = frame();
    ck_assert_int_eq(message_read_inspect(&reader, &inspect), -EBADMSG);
}

END_TEST

START_TEST(every_type_has_a_name_and_two_ends)
{
    for (int number = 0; number < 256; number++) {
        const struct message *message = message_find((enum proto_type)number);
        if (!message)
            continue;
        ck_assert_str_eq(message_name(message->type), message->name);
        ck_assert((strcmp(message->from, "daemon") == 0) != (strcmp(message->to, "daemon") == 0));
        for (int other = 0; other < number; other++)
            ck_assert_str_ne(message_name((enum proto_type)other), message->name);
    }
    ck_assert_str_eq(message_name((enum proto_type)999), "UNKNOWN");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("messages");
    TCase *whole = tcase_create("whole");
    tcase_add_checked_fixture(whole, NULL, release);
#define MESSAGE(NAME, name, number, from, to, fields)               tcase_add_test(whole, name##_arrives);
#define LIST(NAME, name, number, from, to, fields, row, row_fields) MESSAGE(NAME, name, number, from, to, fields)
#include "service/common/wire/messages.def"
    suite_add_tcase(suite, whole);
    TCase *broken = tcase_create("broken");
    tcase_add_checked_fixture(broken, NULL, release);
    tcase_add_test(broken, a_message_with_an_unknown_code_is_rejected);
    tcase_add_test(broken, less_or_more_is_no_message);
    tcase_add_test(broken, another_type_is_not_read);
    tcase_add_test(broken, a_count_beyond_the_frame_is_refused);
    tcase_add_test(broken, a_nul_in_a_row_is_refused);
    tcase_add_test(broken, every_type_has_a_name_and_two_ends);
    suite_add_tcase(suite, broken);
    return suite_run(suite);
}

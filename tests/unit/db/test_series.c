/* Instances and series: every call, every edge, legal and illegal. */
#include "db/retention_rows.h"
#include "tests/unit/db/sample.h"

#include <math.h>

static struct sample s;

static void
open_sample(void)
{
    sample_open(&s);
}

static void
close_sample(void)
{
    sample_close(&s);
}

START_TEST(a_first_instance_makes_a_series)
{
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 1, &arrival, &id), 0);
    ck_assert_int_eq(arrival, QUEUE_NEW);
    struct queue_series series;
    ck_assert_int_eq(queue_get_series(s.queue, id, &series), 0);
    ck_assert_int_eq(series.id, id);
    ck_assert_int_eq(series.revision, 1);
    ck_assert_str_eq(series.series_uid, "1.2.3");
    ck_assert_str_eq(series.modality, "CT");
    ck_assert_str_eq(series.body_part, "HEAD");
    ck_assert_str_eq(series.description, "Head 5 mm");
    ck_assert_int_eq(series.instances, 1);
    ck_assert_int_eq(series.frames, 1);
    ck_assert_int_eq(series.expected_instances, 0);
    ck_assert_int_eq(series.first_seen_ms, SAMPLE_NOW + 1);
    ck_assert_int_eq(series.last_seen_ms, SAMPLE_NOW + 1);
    ck_assert(!series.complete_requested);
    queue_series_clear(&series);
    ck_assert_ptr_null(series.series_uid);
    assert_answer(&s, "SELECT group_concat(kind || '>' || to_state) FROM v_events", "INSTANCE>GATHERING");
}

END_TEST

START_TEST(instances_add_up)
{
    int64_t id = sample_series(s.queue, "1.2.3", 2);
    struct queue_instance enhanced = {
        .sop_instance_uid = "9.9",
        .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2.1",
        .transfer_syntax_uid = "1.2.840.10008.1.2.1",
        .series_uid = "1.2.3",
        .path = "series/1.2.3/9.9.dcm",
        .size = 1,
        .frames = 40,
        .expected_instances = 12,
    };
    enum queue_arrival arrival;
    ck_assert_int_eq(queue_add_instance(s.queue, &enhanced, SAMPLE_NOW + 9, &arrival, &id), 0);
    struct queue_series series;
    ck_assert_int_eq(queue_get_series(s.queue, id, &series), 0);
    ck_assert_int_eq(series.instances, 3);
    ck_assert_int_eq(series.frames, 42);
    ck_assert_int_eq(series.expected_instances, 12);
    ck_assert_int_eq(series.first_seen_ms, SAMPLE_NOW + 1);
    ck_assert_int_eq(series.last_seen_ms, SAMPLE_NOW + 9);
    queue_series_clear(&series);
    int64_t bytes, none;
    ck_assert_int_eq(queue_series_bytes(s.queue, id, &bytes), 0);
    ck_assert_int_eq(bytes, atoll(sample_ask(&s, "SELECT sum(size_bytes) FROM v_instances")));
    ck_assert_int_eq(queue_series_bytes(s.queue, id + 1, &none), 0);
    ck_assert_int_eq(none, 0);
    assert_answer(&s, "SELECT count(*) FROM v_events", "1");
    assert_answer(&s, "SELECT expected_instances || ' ' || frames FROM v_series", "12 42");
}

END_TEST

START_TEST(a_resend_only_adds_an_event)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3), again;
    ck_assert_int_eq(sample_settle(s.queue, id, 1), 0);
    char before[1024];
    static const char row[] =
        "SELECT state || revision || instances || frames || last_seen_at || settled_at || evidence "
        "|| missing_files || duplicate_conflicts || (SELECT count(*) FROM instance) FROM series";
    snprintf(before, sizeof before, "%s", sample_ask(&s, row));
    struct queue_instance known = {
        .sop_instance_uid = "1.2.3.2", .series_uid = "1.2.3", .path = "series/1.2.3/1.2.3.2.dcm"};
    static const char *const sources[] = {"inbox:drop", QUEUE_SOURCE_RECOVERED, "inbox:again"};
    for (size_t i = 0; i < 3; i++) {
        enum queue_arrival arrival;
        known.source = sources[i];
        ck_assert_int_eq(queue_add_instance(s.queue, &known, SAMPLE_NOW + 99, &arrival, &again), 0);
        ck_assert_int_eq(arrival, QUEUE_KNOWN);
        ck_assert_int_eq(again, id);
        assert_answer(&s, row, before);
        /* The same file reported again, as after a restart, makes no event. */
        assert_answer(&s, "SELECT count(*) FROM v_events", i < 2 ? "2" : "3");
    }
    ck_assert_ptr_nonnull(strstr(before, "SETTLED"));
    assert_answer(&s, "SELECT kind || ' ' || detail FROM v_events ORDER BY event DESC", "INSTANCE_KNOWN 1.2.3.2");
}

END_TEST

START_TEST(a_replaced_instance_makes_a_new_revision)
{
    static const char row[] = "SELECT path || ' ' || replaced || ' ' || i.revision || ' ' || "
                              "missing || ' ' || s.missing_files || ' ' || s.frames || ' ' || "
                              "s.body_part FROM instance i JOIN series s ON s.id = series_id "
                              "WHERE sop_instance_uid = '1.2.3.2'";
    int64_t id = sample_series(s.queue, "1.2.3", 3), again;
    ck_assert_int_eq(sample_settle(s.queue, id, 1), 0);
    ck_assert_int_eq(queue_report_missing(s.queue, "series/1.2.3/1.2.3.2.dcm", SAMPLE_NOW), 0);
    const struct queue_instance first = {.sop_instance_uid = "1.2.3.2",
                                         .series_uid = "1.2.3",
                                         .path = "series/1.2.3/1.2.3.2.dcm",
                                         .source = "inbox:drop"};
    struct queue_instance second = first;
    second.path = "series/1.2.3/1.2.3.2+1.dcm";
    second.body_part = "HEAD";
    second.frames = 5;
    second.replaced = 1;
    enum queue_arrival arrival;
    ck_assert_int_eq(queue_add_instance(s.queue, &second, SAMPLE_NOW + 9, &arrival, &again), 0);
    ck_assert_int_eq(arrival, QUEUE_REPLACED);
    ck_assert_int_eq(again, id);
    assert_answer(&s, row, "series/1.2.3/1.2.3.2+1.dcm 1 2 0 0 7 HEAD");
    assert_answer(&s, "SELECT state || revision || instances FROM series", "GATHERING23");
    assert_answer(&s, "SELECT kind || ' ' || detail FROM v_events ORDER BY event DESC", "INSTANCE_REPLACED 1.2.3.2");
    /* As after a crash, in any order: the older one changes no row, the newer makes no revision. */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(queue_add_instance(s.queue, i ? &second : &first, SAMPLE_NOW + 10, &arrival, &again), 0);
        ck_assert_int_eq(arrival, QUEUE_KNOWN);
        assert_answer(&s, row, "series/1.2.3/1.2.3.2+1.dcm 1 2 0 0 7 HEAD");
    }
    second.path = "series/1.2.3/1.2.3.2+2.dcm";
    second.replaced = 2;
    ck_assert_int_eq(queue_add_instance(s.queue, &second, SAMPLE_NOW + 11, &arrival, &again), 0);
    assert_answer(&s, row, "series/1.2.3/1.2.3.2+2.dcm 2 2 0 0 7 HEAD");
    assert_answer(&s, "SELECT last_seen_at > first_seen_at FROM series", "1");
}

END_TEST

START_TEST(one_uid_in_two_series_is_two_instances)
{
    struct queue_instance instance = {
        .sop_instance_uid = "7.7", .series_uid = "1.1", .path = "series/1.1/7.7.dcm", .frames = 1};
    enum queue_arrival arrival;
    int64_t first, second;
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &first), 0);
    instance.series_uid = "1.2";
    instance.path = "series/1.2/7.7.dcm";
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &second), 0);
    ck_assert_int_eq(arrival, QUEUE_NEW);
    ck_assert_int_ne(first, second);
    /* But two instances cannot have the same place. */
    instance.series_uid = "1.3";
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &second), -EEXIST);
    ck_assert_int_eq(queue_find_series(s.queue, "1.3", &second), -ENOENT);
}

END_TEST

START_TEST(a_late_slice_reopens_a_complete_series)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    enum queue_arrival arrival;
    ck_assert_int_eq(sample_settle(s.queue, id, 1), 0);
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 4, &arrival, &id), 0);
    ck_assert_int_eq(arrival, QUEUE_NEW);
    assert_answer(&s, "SELECT state || revision || instances FROM v_series", "GATHERING24");
    assert_answer(&s, "SELECT settled_at IS NULL AND evidence = '' FROM v_series", "1");
    assert_answer(&s,
                  "SELECT from_state || '>' || to_state || ' ' || detail FROM v_events "
                  "ORDER BY event DESC",
                  "SETTLED>GATHERING a late instance: revision 2");
    ck_assert_int_eq(sample_settle(s.queue, id, 1), -EAGAIN);
    ck_assert_int_eq(sample_settle(s.queue, id, 2), 0);
    assert_answer(&s, "SELECT count(*) FROM stack", "2");
    assert_answer(&s, "SELECT stacks || accepted_stacks FROM v_series", "11");
}

END_TEST

static int
refuse(int64_t id, int32_t revision)
{
    struct queue_stack stack = {.name = "",
                                .planes = 3,
                                .columns = 512,
                                .rows = 512,
                                .spacing_mm = 5,
                                .code = CODE_MISSING_SLICE,
                                .message = "between a and b one slice is missing",
                                .file_a = "series/1.2.3/a.dcm",
                                .file_b = "series/1.2.3/b.dcm"};
    return queue_settle(s.queue, id, revision, "quiet", &stack, 1, SAMPLE_NOW + 1000);
}

START_TEST(a_late_slice_reopens_a_refused_series)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    enum queue_arrival arrival;
    ck_assert_int_eq(refuse(id, 1), 0);
    assert_answer(&s,
                  "SELECT state || ' ' || code || ' ' || message || ' ' || file_a || file_b "
                  "FROM v_series",
                  "REFUSED MISSING_SLICE between a and b one slice is missing "
                  "series/1.2.3/a.dcmseries/1.2.3/b.dcm");
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 4, &arrival, &id), 0);
    assert_answer(&s, "SELECT state || revision || code || stacks FROM v_series", "GATHERING20");
    assert_answer(&s, "SELECT from_state FROM v_events ORDER BY event DESC", "REFUSED");
}

END_TEST

START_TEST(only_series_being_received_become_complete)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    ck_assert_int_eq(sample_settle(s.queue, id, 2), -EAGAIN);
    ck_assert_int_eq(sample_settle(s.queue, 4711, 1), -ENOENT);
    ck_assert_int_eq(sample_settle(s.queue, id, 1), 0);
    ck_assert_int_eq(sample_settle(s.queue, id, 1), -EAGAIN);
    ck_assert_ptr_nonnull(strstr(queue_reason(s.queue), "has settled"));
    assert_answer(&s, "SELECT state || ' ' || evidence || ' ' || settled_at FROM v_series",
                  "SETTLED quiet for 60 s 2026-01-31T02:03:21.000Z");
    assert_answer(&s,
                  "SELECT kind || ' ' || from_state || '>' || to_state || ' ' || detail "
                  "FROM v_events ORDER BY event DESC",
                  "SERIES_SETTLED GATHERING>SETTLED quiet for 60 s");
    assert_answer(&s, "SELECT count(*) FROM stack", "1");
}

END_TEST

START_TEST(one_accepted_stack_is_enough)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    struct queue_stack stacks[] = {
        {.name = "a", .code = CODE_TOO_FEW_SLICES, .message = "two are too few"},
        {.name = "b", .accepted = true, .planes = 9, .spacing_mm = NAN},
    };
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "all there", stacks, 2, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state || stacks || accepted_stacks || code FROM v_series", "SETTLED21TOO_FEW_SLICES");
}

END_TEST

START_TEST(no_stack_at_all_refuses)
{
    int64_t id = sample_series(s.queue, "1.2.3", 1);
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "quiet", NULL, 0, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state FROM v_series", "REFUSED");
}

END_TEST

START_TEST(a_bad_stack_undoes_the_settling)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    struct queue_stack twice[] = {{.name = "a", .accepted = true}, {.name = "a", .accepted = true}};
    struct queue_stack both = {.name = "a", .accepted = true, .code = CODE_TOO_FEW_SLICES};
    struct queue_stack neither = {.name = "a"};
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "", twice, 2, SAMPLE_NOW), -EEXIST);
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "", &both, 1, SAMPLE_NOW), -EINVAL);
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "", &neither, 1, SAMPLE_NOW), -EINVAL);
    assert_answer(&s, "SELECT state || stacks FROM v_series", "GATHERING0");
}

END_TEST

START_TEST(an_operators_command_is_kept_until_completion)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    struct queue_series series;
    const struct queue_complete nothing = {"9.9", false, "jane"}, complete = {"1.2.3", false, ""};
    ck_assert_int_eq(queue_request_complete(s.queue, &nothing, SAMPLE_NOW), -ENOENT);
    ck_assert_int_eq(queue_request_complete(s.queue, &complete, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_request_complete(s.queue, &complete, SAMPLE_NOW), 0);
    sample_reopen(&s);
    ck_assert_int_eq(queue_get_series(s.queue, id, &series), 0);
    ck_assert(series.complete_requested);
    queue_series_clear(&series);
    assert_answer(&s, "SELECT group_concat(detail) FROM v_events WHERE kind = 'COMPLETE_REQUESTED'",
                  "an operator declares it complete");
    ck_assert_int_eq(sample_settle(s.queue, id, 1), 0);
    assert_answer(&s, "SELECT complete_requested || missing_accepted_by FROM v_series", "0");
    ck_assert_int_eq(queue_request_complete(s.queue, &complete, SAMPLE_NOW), -EAGAIN);
    const struct queue_complete accept = {"1.2.3", true, "jane"};
    ck_assert_int_eq(queue_request_complete(s.queue, &accept, SAMPLE_NOW), -EAGAIN);
}

END_TEST

/*
 * A series that the geometry check refused is inspected again: the configuration may have changed.
 */
START_TEST(a_refused_series_is_checked_again)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    const struct queue_complete complete = {"1.2.3", false, "jane"};
    struct queue_stack stack = {
        .name = "", .planes = 3, .code = CODE_DUPLICATE_POSITION, .message = "two at one place"};
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "quiet", &stack, 1, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_request_complete(s.queue, &complete, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state || revision || complete_requested FROM v_series", "GATHERING21");
    assert_answer(&s, "SELECT kind || from_state || to_state FROM v_events ORDER BY event DESC LIMIT 1",
                  "COMPLETE_REQUESTEDREFUSEDGATHERING");
    ck_assert_int_eq(sample_settle(s.queue, id, 2), 0);
    ck_assert_int_eq(queue_request_complete(s.queue, &complete, SAMPLE_NOW), -EAGAIN);
}

END_TEST

static int
settle_incomplete(int64_t id, int32_t revision)
{
    struct queue_stack stack = {.name = "", .planes = 3, .code = CODE_INCOMPLETE_SERIES, .message = "3 of 4 are there"};
    return queue_settle(s.queue, id, revision, "quiet", &stack, 1, SAMPLE_NOW + 1000);
}

/*
 * An operator's acceptance of missing instances holds for one revision, before its inspection or
 * after.
 */
START_TEST(missing_files_are_accepted_by_command)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    const struct queue_complete complete = {"1.2.3", false, "jane"}, accept = {"1.2.3", true, "jane"};
    ck_assert_int_eq(settle_incomplete(id, 1), 0);
    assert_answer(&s, "SELECT state || incomplete FROM v_series", "REFUSED3 of 4 are there");
    ck_assert_int_eq(queue_request_complete(s.queue, &complete, SAMPLE_NOW), -EAGAIN);
    ck_assert_ptr_nonnull(strstr(queue_reason(s.queue), "--accept-missing"));
    ck_assert_int_eq(queue_request_complete(s.queue, &accept, SAMPLE_NOW), 0);
    assert_answer(&s,
                  "SELECT state || revision || complete_requested || missing_accepted_by || "
                  "incomplete FROM v_series",
                  "GATHERING21jane");
    assert_answer(&s, "SELECT kind || ' ' || detail FROM v_events ORDER BY event DESC LIMIT 1",
                  "MISSING_ACCEPTED jane accepts the missing instances: revision 2");
    ck_assert_int_eq(sample_settle(s.queue, id, 2), 0);
    assert_answer(&s, "SELECT state || missing_accepted_by FROM v_series", "SETTLEDjane");
    enum queue_arrival arrival;
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 4, &arrival, &id), 0);
    assert_answer(&s, "SELECT revision || missing_accepted_by FROM v_series", "3");
    ck_assert_int_eq(queue_request_complete(s.queue, &complete, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_request_complete(s.queue, &accept, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_request_complete(s.queue, &accept, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT revision || missing_accepted_by FROM v_series", "3jane");
    assert_answer(&s,
                  "SELECT group_concat(detail, ';') FROM v_events WHERE event > "
                  "(SELECT max(event) FROM v_events WHERE kind = 'INSTANCE')",
                  "jane declares it complete;jane accepts the missing instances");
}

END_TEST

/* A finding on the whole series comes before its stacks, until the next inspection. */
START_TEST(a_flag_is_reported_and_ends_with_the_revision)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    const struct queue_complete complete = {"1.2.3", false, "jane"};
    ck_assert_int_eq(queue_flag_series(s.queue, id, CODE_TOO_MANY_STACKS, "12 volumes", SAMPLE_NOW), -EAGAIN);
    struct queue_stack stacks[] = {
        {.name = "a", .accepted = true, .planes = 9},
        {.name = "b", .code = CODE_TOO_FEW_SLICES, .message = "few", .file_a = "f"},
    };
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "", stacks, 2, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_flag_series(s.queue, id, CODE_TOO_MANY_STACKS, "12 volumes", SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state || code || message || file_a FROM v_series", "SETTLEDTOO_MANY_STACKS12 volumes");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'TOO_MANY_STACKS'", "12 volumes");
    ck_assert_int_eq(queue_request_complete(s.queue, &complete, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state || revision || code || message FROM v_series", "GATHERING2");
}

END_TEST

/* It is the code of the series only if there is no other. */
START_TEST(skipped_files_are_not_a_refusal)
{
    struct queue_stack stacks[] = {
        {.name = "derived", .planes = 2, .passed_over = true, .code = CODE_DERIVED_IMAGE},
        {.name = "localizer", .planes = 3, .passed_over = true, .code = CODE_LOCALIZER},
        {.name = "time 1", .accepted = true, .planes = 9, .split_by = "Temporal Position"},
    };
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "", stacks, 3, SAMPLE_NOW), 0);
    assert_answer(&s,
                  "SELECT state || accepted_stacks || '/' || stacks || code || '|' || split_by || "
                  "passed_over FROM v_series",
                  "SETTLED1/3|Temporal Position5");
    int64_t other = sample_series(s.queue, "1.2.4", 3);
    ck_assert_int_eq(queue_settle(s.queue, other, 1, "", stacks, 2, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state || code FROM v_series WHERE series_uid = '1.2.4'", "REFUSEDDERIVED_IMAGE");
    stacks[2] = (struct queue_stack){.name = "x", .code = CODE_MISSING_SLICE};
    int64_t third = sample_series(s.queue, "1.2.5", 3);
    ck_assert_int_eq(queue_settle(s.queue, third, 1, "", stacks, 3, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state || code FROM v_series WHERE series_uid = '1.2.5'", "REFUSEDMISSING_SLICE");
    stacks[0] = (struct queue_stack){.name = "", .accepted = true, .passed_over = true};
    int64_t fourth = sample_series(s.queue, "1.2.6", 3);
    ck_assert_int_eq(queue_settle(s.queue, fourth, 1, "", stacks, 1, SAMPLE_NOW), -EINVAL);
}

END_TEST

START_TEST(gathering_lists_the_oldest_first)
{
    struct queue_series *series;
    size_t count;
    ck_assert_int_eq(queue_gathering(s.queue, &series, &count), 0);
    ck_assert_uint_eq(count, 0);
    ck_assert_ptr_null(series);
    sample_series(s.queue, "1.5", 5);
    sample_series(s.queue, "1.2", 2);
    int64_t settled = sample_series(s.queue, "1.4", 4);
    for (int i = 0; i < 40; i++) {
        char uid[16];
        snprintf(uid, sizeof uid, "2.%d", i);
        sample_series(s.queue, uid, 9);
    }
    ck_assert_int_eq(sample_settle(s.queue, settled, 1), 0);
    ck_assert_int_eq(queue_gathering(s.queue, &series, &count), 0);
    ck_assert_uint_eq(count, 42);
    ck_assert_str_eq(series[0].series_uid, "1.2");
    ck_assert_str_eq(series[1].series_uid, "1.5");
    for (size_t i = 0; i < count; i++) {
        ck_assert(i == 0 || series[i - 1].last_seen_ms <= series[i].last_seen_ms);
        queue_series_clear(&series[i]);
    }
    free(series);
}

END_TEST

START_TEST(series_are_found_by_uid)
{
    int64_t id = sample_series(s.queue, "1.2.3", 1), found;
    struct queue_series series;
    ck_assert_int_eq(queue_find_series(s.queue, "1.2.3", &found), 0);
    ck_assert_int_eq(found, id);
    ck_assert_int_eq(queue_find_series(s.queue, "1.2", &found), -ENOENT);
    ck_assert_int_eq(queue_get_series(s.queue, 4711, &series), -ENOENT);
    ck_assert_ptr_nonnull(strstr(queue_reason(s.queue), "4711"));
}

END_TEST

START_TEST(files_are_listed_in_order)
{
    int64_t id = sample_series(s.queue, "1.2.3", 11);
    sample_series(s.queue, "1.2.4", 2);
    struct queue_file *files;
    size_t count;
    ck_assert_int_eq(queue_series_files(s.queue, id, &files, &count), 0);
    ck_assert_uint_eq(count, 11);
    ck_assert_str_eq(files[0].path, "series/1.2.3/1.2.3.1.dcm");
    ck_assert_str_eq(files[1].path, "series/1.2.3/1.2.3.10.dcm");
    for (size_t i = 0; i < count; i++)
        queue_file_clear(&files[i]);
    free(files);
    ck_assert_int_eq(queue_series_files(s.queue, 4711, &files, &count), 0);
    ck_assert_uint_eq(count, 0);
    ck_assert_ptr_null(files);
}

END_TEST

struct visits {
    struct queue *queue;
    int count, stop_at;
    char last[160];
};

/* Reports each file missing on the way: changing the queue inside a visit is allowed. */
static int
visit(void *context, const char *path)
{
    struct visits *visits = context;
    ck_assert_int_gt(strcmp(path, visits->last), 0);
    snprintf(visits->last, sizeof visits->last, "%s", path);
    ck_assert_int_eq(queue_report_missing(visits->queue, path, SAMPLE_NOW), 0);
    return ++visits->count == visits->stop_at ? 7 : 0;
}

START_TEST(each_path_is_visited_once)
{
    ck_assert_int_eq(queue_begin(s.queue), 0);
    sample_series(s.queue, "1.2.3", 600);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    struct visits visits = {.queue = s.queue};
    ck_assert_int_eq(queue_each_path(s.queue, visit, &visits), 0);
    ck_assert_int_eq(visits.count, 600);
    visits = (struct visits){.queue = s.queue, .stop_at = 300};
    ck_assert_int_eq(queue_each_path(s.queue, visit, &visits), 7);
    ck_assert_int_eq(visits.count, 300);
    assert_answer(&s, "SELECT missing_files FROM v_series", "600");
}

END_TEST

START_TEST(a_missing_file_is_flagged_once_and_may_return)
{
    int64_t id = sample_series(s.queue, "1.2.3", 2);
    static const char path[] = "series/1.2.3/1.2.3.1.dcm";
    ck_assert_int_eq(queue_report_missing(s.queue, "series/none", SAMPLE_NOW), -ENOENT);
    ck_assert_int_eq(queue_report_missing(s.queue, path, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_report_missing(s.queue, path, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT missing_files FROM v_series", "1");
    assert_answer(&s, "SELECT count(*) FROM v_events WHERE kind = 'INSTANCE_MISSING'", "1");
    enum queue_arrival arrival;
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 1, &arrival, &id), 0);
    ck_assert_int_eq(arrival, QUEUE_RETURNED);
    assert_answer(&s, "SELECT missing_files || state || revision FROM v_series", "0GATHERING1");
    assert_answer(&s, "SELECT kind FROM v_events ORDER BY event DESC", "INSTANCE_RETURNED");
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 1, &arrival, &id), 0);
    ck_assert_int_eq(arrival, QUEUE_KNOWN);
}

END_TEST

/* The file of the first of two instances; */
static void
lose_and_bring_back(int64_t now_ms)
{
    const struct queue_instance instance = {.sop_instance_uid = "1.2.3.1",
                                            .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
                                            .transfer_syntax_uid = "1.2.840.10008.1.2.1",
                                            .series_uid = "1.2.3",
                                            .path = "series/1.2.3/1.2.3.1.dcm",
                                            .source = "scu:CT1",
                                            .size = 525312,
                                            .frames = 1};
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(queue_report_missing(s.queue, instance.path, now_ms), 0);
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, now_ms, &arrival, &id), 0);
    ck_assert_int_eq(arrival, QUEUE_RETURNED);
}

static void
bring(const char *sha256, int32_t replaced, enum queue_arrival expected)
{
    static const char *const paths[] = {"series/1.2.3/9.dcm", "series/1.2.3/9+1.dcm"};
    const struct queue_instance instance = {.sop_instance_uid = "9",
                                            .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
                                            .transfer_syntax_uid = "1.2.840.10008.1.2.1",
                                            .series_uid = "1.2.3",
                                            .path = paths[replaced],
                                            .sha256 = sha256,
                                            .source = "scu:CT1",
                                            .size = 525312,
                                            .frames = 1,
                                            .replaced = replaced};
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &id), 0);
    ck_assert_int_eq(arrival, expected);
}

/* A report without a digest does not define the stored file. */
START_TEST(a_digest_belongs_to_the_current_file)
{
    bring("a1", 0, QUEUE_NEW);
    assert_answer(&s, "SELECT sha256 FROM v_instances", "a1");
    bring("", 0, QUEUE_KNOWN);
    assert_answer(&s, "SELECT sha256 FROM v_instances", "a1");
    bring("b2", 0, QUEUE_KNOWN); /* it was removed, unnoticed */
    assert_answer(&s, "SELECT sha256 FROM v_instances", "b2");
    bring("c3", 1, QUEUE_REPLACED);
    assert_answer(&s, "SELECT sha256 FROM v_instances", "c3");
    bring("b2", 0, QUEUE_KNOWN);
    assert_answer(&s, "SELECT sha256 FROM v_instances", "c3");
    ck_assert_int_eq(queue_report_missing(s.queue, "series/1.2.3/9+1.dcm", SAMPLE_NOW), 0);
    bring("", 1, QUEUE_RETURNED);
    assert_answer(&s, "SELECT sha256 FROM v_instances", "");
}

END_TEST

/*
 * A caller that checks whether the series is complete, or has inspected it meanwhile, sees that a
 * file arrived.
 */
START_TEST(a_file_that_returns_makes_the_series_wait)
{
    int64_t id = sample_series(s.queue, "1.2.3", 2);
    lose_and_bring_back(SAMPLE_NOW + 5000);
    struct queue_series series;
    ck_assert_int_eq(queue_get_series(s.queue, id, &series), 0);
    ck_assert_int_eq(series.last_seen_ms, SAMPLE_NOW + 5000);
    queue_series_clear(&series);
}

END_TEST

START_TEST(a_refused_series_is_checked_again_when_its_file_returns)
{
    int64_t id = sample_series(s.queue, "1.2.3", 2);
    const struct queue_stack refused = {
        .name = "", .code = CODE_FILE_UNREADABLE, .message = "a cannot be read", .file_a = "a", .file_b = ""};
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "quiet", &refused, 1, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT state FROM v_series", "REFUSED");
    lose_and_bring_back(SAMPLE_NOW + 5000);
    assert_answer(&s, "SELECT state || revision FROM v_series", "GATHERING2");
}

END_TEST

START_TEST(a_series_with_results_is_unchanged_when_a_file_returns)
{
    int64_t id = sample_series(s.queue, "1.2.3", 2);
    ck_assert_int_eq(sample_settle(s.queue, id, 1), 0);
    lose_and_bring_back(SAMPLE_NOW + 5000);
    assert_answer(&s, "SELECT state || revision FROM v_series", "SETTLED1");
}

END_TEST

START_TEST(a_series_with_a_failed_job_is_checked_again_when_a_file_returns)
{
    int64_t job = sample_job(s.queue, "1.2.3");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_fail_job(s.queue, job, CODE_FILE_UNREADABLE, "a cannot be read", "a", "", SAMPLE_NOW + 4000),
                     0);
    lose_and_bring_back(SAMPLE_NOW + 5000);
    assert_answer(&s, "SELECT state || revision FROM v_series", "GATHERING2");
}

END_TEST

START_TEST(texts_are_made_utf8)
{
    struct queue_instance instance = {.sop_instance_uid = "1.1",
                                      .series_uid = "1.2.3",
                                      .series_description = "Sch\xe4"
                                                            "del \xc3\xa4 \xf0\x9f",
                                      .path = "series/1.2.3/1.1.dcm"};
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &id), 0);
    assert_answer(&s, "SELECT series_description FROM v_series",
                  "Sch\xef\xbf\xbd"
                  "del \xc3\xa4 \xef\xbf\xbd\xef\xbf\xbd");
    assert_answer(&s, "SELECT modality || body_part || study_uid FROM v_series", "");
}

END_TEST

static void
add_from(int number, const char *source, const char *called_ae, const char *sender)
{
    char sop[16], path[64];
    snprintf(sop, sizeof sop, "1.%d", number);
    snprintf(path, sizeof path, "series/1.2.3/1.%d.dcm", number);
    struct queue_instance instance = {.sop_instance_uid = sop,
                                      .series_uid = "1.2.3",
                                      .path = path,
                                      .source = source,
                                      .called_ae = called_ae,
                                      .sender = sender};
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &id), 0);
}

START_TEST(the_first_sender_is_kept)
{
    add_from(1, "inbox:/in", NULL, NULL);
    assert_answer(&s, "SELECT '<' || called_ae || sender || '>' FROM v_series", "<>");
    add_from(2, "scu:CT1", "HEADS", "CT1");
    add_from(3, "scu:CT2", "CHESTS", "CT2");
    add_from(4, "inbox:/in", "", "");
    assert_answer(&s, "SELECT called_ae || ' ' || sender FROM v_series", "HEADS CT1");
    struct queue_series series;
    ck_assert_int_eq(queue_get_series(s.queue, 1, &series), 0);
    ck_assert_str_eq(series.called_ae, "HEADS");
    ck_assert_str_eq(series.sender, "CT1");
    queue_series_clear(&series);
}

END_TEST

static void
assert_inbox(const char *inbox)
{
    struct queue_series series;
    assert_answer(&s, "SELECT inbox FROM v_series", inbox);
    ck_assert_int_eq(queue_get_series(s.queue, 1, &series), 0);
    ck_assert_str_eq(series.inbox, inbox);
    queue_series_clear(&series);
}

/* A file found after a kill has no source; a sender is more specific than the folder. */
START_TEST(the_first_inbox_counts_until_there_is_a_sender)
{
    add_from(9, QUEUE_SOURCE_RECOVERED, "", "");
    assert_inbox("");
    add_from(8, "inbox:/in/ct", "", "");
    add_from(1, "inbox:/in/mr", "", "");
    assert_inbox("/in/ct");
    add_from(2, "scu:CT1", "HEADS", "CT1");
    assert_inbox("");
}

END_TEST

START_TEST(an_impossible_time_is_refused)
{
    int64_t id = sample_series(s.queue, "1.2.3", 1);
    ck_assert_int_eq(queue_note(s.queue, "START", "", INT64_MAX), -EINVAL);
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "", NULL, 0, INT64_MIN), -EINVAL);
    assert_answer(&s, "SELECT state FROM v_series", "GATHERING");
}

END_TEST

/* An instance of an inbox that keeps the file, with this state of the file. */
static void
add_kept(int number, int64_t file, int64_t look, const char *original)
{
    char sop[32], path[64];
    snprintf(sop, sizeof sop, "1.2.3.%d", number);
    snprintf(path, sizeof path, "series/1.2.3/%s.dcm", sop);
    const struct queue_instance instance = {.sop_instance_uid = sop,
                                            .series_uid = "1.2.3",
                                            .path = path,
                                            .source = "inbox:/drop",
                                            .original_path = original,
                                            .kept = {file, look}};
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &id), 0);
}

START_TEST(kept_originals_are_recorded)
{
    add_kept(1, 7, 71, "");
    add_kept(2, -5, 51, "/drop/2");
    add_kept(3, INT64_MAX, 91, "/drop/3");
    add_kept(4, 0, 0, ""); /* it has no original */
    assert_kept(&s, false, INT64_MIN, 10, "-5=51 7=71 9223372036854775807=91 ");
    assert_kept(&s, false, INT64_MIN, 2, "-5=51 7=71 ");
    assert_kept(&s, false, 7, 2, "9223372036854775807=91 ");
    assert_kept(&s, true, INT64_MIN, 10, "-5=51 9223372036854775807=91 ");
    add_kept(2, 7, 72, "");   /* another file has the name of the first */
    add_kept(3, 8, 81, NULL); /* a second file of one instance */
    assert_kept(&s, false, INT64_MIN, 10, "-5=51 7=72 8=81 9223372036854775807=91 ");
    ck_assert_int_eq(queue_forget_kept(s.queue, "inbox:/drop", -5), 0);
    ck_assert_int_eq(queue_forget_kept(s.queue, "inbox:/elsewhere", 8), 0);
    ck_assert_int_eq(queue_report_missing(s.queue, "series/1.2.3/1.2.3.2.dcm", SAMPLE_NOW), 0);
    assert_kept(&s, false, INT64_MIN, 10, "8=81 9223372036854775807=91 ");
}

END_TEST

START_TEST(originals_of_purged_series_are_not_received_again)
{
    const struct queue_purge purge = {.series_uid = "1.2.3", .by = "root"};
    struct queue_purged purged;
    add_kept(1, 7, 71, "");
    add_kept(2, 8, 81, "/drop/2"); /* goes with its series */
    sample_settle(s.queue, 1, 1);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.originals, 1);
    assert_kept(&s, false, INT64_MIN, 10, "7=71 8=81 ");
    assert_kept(&s, true, INT64_MIN, 10, "7=71 8=81 ");
    add_kept(1, 7, 72, ""); /* it has changed */
    assert_kept(&s, false, INT64_MIN, 10, "7=72 8=81 ");
    assert_answer(&s, "SELECT revision FROM v_series", "2");
}

END_TEST

START_TEST(existing_files_are_found_by_path)
{
    char **paths;
    size_t count;
    sample_series(s.queue, "1.2.3", 4);
    ck_assert_int_eq(queue_report_missing(s.queue, "series/1.2.3/1.2.3.2.dcm", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_paths(s.queue, "series/1.2.3/1.2.3.1.dcm", 2, &paths, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(paths[0], "series/1.2.3/1.2.3.3.dcm");
    ck_assert_str_eq(paths[1], "series/1.2.3/1.2.3.4.dcm");
    free(paths[0]);
    free(paths[1]);
    free(paths);
}

END_TEST

START_TEST(stacks_of_the_revision_are_stored)
{
    struct queue_stored_stack *stacks;
    struct queue_series row;
    size_t count;
    int64_t series = sample_series(s.queue, "1.2.77", 3);
    ck_assert_int_eq(queue_series_stacks(s.queue, series, &stacks, &count), 0);
    ck_assert_uint_eq(count, 0);
    const struct queue_stack judged[] = {
        {.name = "echo 1", .accepted = true, .planes = 3},
        {.name = "echo 2", .planes = 2, .code = CODE_MISSING_SLICE, .message = "a gap"}};
    ck_assert_int_eq(queue_settle(s.queue, series, 1, "quiet", judged, 2, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_series_stacks(s.queue, series, &stacks, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(stacks[0].name, "echo 1");
    ck_assert(stacks[0].accepted && !stacks[1].accepted);
    ck_assert_int_eq(stacks[1].planes, 2);
    ck_assert_str_eq(stacks[1].code, "MISSING_SLICE");
    ck_assert_str_eq(stacks[1].message, "a gap");
    for (size_t i = 0; i < count; i++)
        queue_stored_stack_clear(&stacks[i]);
    free(stacks);
    ck_assert_int_eq(queue_get_series(s.queue, series, &row), 0);
    ck_assert_str_eq(row.state, "SETTLED");
    ck_assert_int_eq(row.missing_files, 0);
    queue_series_clear(&row);
}

END_TEST

SAMPLE_MAIN("db_series", open_sample, close_sample, a_first_instance_makes_a_series, instances_add_up,
            a_resend_only_adds_an_event, a_replaced_instance_makes_a_new_revision,
            one_uid_in_two_series_is_two_instances, a_late_slice_reopens_a_complete_series,
            a_late_slice_reopens_a_refused_series, only_series_being_received_become_complete,
            one_accepted_stack_is_enough, no_stack_at_all_refuses, a_bad_stack_undoes_the_settling,
            an_operators_command_is_kept_until_completion, a_refused_series_is_checked_again,
            missing_files_are_accepted_by_command, a_flag_is_reported_and_ends_with_the_revision,
            skipped_files_are_not_a_refusal, gathering_lists_the_oldest_first,
            a_missing_file_is_flagged_once_and_may_return, a_file_that_returns_makes_the_series_wait,
            a_refused_series_is_checked_again_when_its_file_returns, a_digest_belongs_to_the_current_file,
            a_series_with_results_is_unchanged_when_a_file_returns,
            a_series_with_a_failed_job_is_checked_again_when_a_file_returns, texts_are_made_utf8,
            series_are_found_by_uid, files_are_listed_in_order, each_path_is_visited_once, the_first_sender_is_kept,
            the_first_inbox_counts_until_there_is_a_sender, an_impossible_time_is_refused, kept_originals_are_recorded,
            originals_of_purged_series_are_not_received_again, existing_files_are_found_by_path,
            stacks_of_the_revision_are_stored)

/*
 * Deliveries: every call, and every edge from every state: legal ones succeed, others return
 * -EAGAIN. Also the deliveries of jobs that are retried, superseded or recovered.
 */
#include "tests/unit/db/sample.h"

#define THEN (SAMPLE_NOW + 5000) /* after SAMPLE_NOW + 4000, when sample_finish made them */

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

static const struct queue_attempt stored = {.dimse_status = 0, .code = CODE_NONE, .message = ""};
static const struct queue_attempt refused = {
    .dimse_status = 0xa700, .code = CODE_STORE_FAILED, .message = "out of resources"};
static const struct queue_attempt unreachable = {
    .dimse_status = -1, .code = CODE_PEER_UNREACHABLE, .message = "connection refused"};
static const struct queue_attempt burned_in = {
    .dimse_status = -1, .code = CODE_BURNED_IN_TEXT, .message = "a caption", .held_digest = "0123456789abcdef01"};

/* --------------------------------------------------------------------------- made with DONE -- */

static int
finish_with(int64_t job, const char *uid, const char *const *destinations, size_t count)
{
    struct queue_result result = sample_result;
    result.sop_instance_uid = uid;
    result.destinations = destinations;
    result.destination_count = count;
    return queue_finish_job(s.queue, job,
                            &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""},
                            SAMPLE_NOW + 4000);
}

static void
start_job(int64_t job)
{
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW + 3000), 0);
}

/* A job that is DONE, its result for `count` destinations. */
static int64_t
done_job(const char *series_uid, const char *const *destinations, size_t count)
{
    int64_t job = sample_job(s.queue, series_uid);
    start_job(job);
    ck_assert_int_eq(finish_with(job, "2.25.1", destinations, count), 0);
    return job;
}

/* The delivery of such a job to "PACS". */
static int64_t
one_delivery(const char *series_uid)
{
    static const char *const to[] = {"PACS"};
    char sql[96];
    int64_t job = done_job(series_uid, to, 1);
    snprintf(sql, sizeof sql, "SELECT delivery FROM v_deliveries WHERE job = %lld", (long long)job);
    return atoll(sample_ask(&s, sql));
}

static enum queue_delivery_state
state_of(int64_t delivery_id)
{
    struct queue_delivery delivery;
    ck_assert_int_eq(queue_get_delivery(s.queue, delivery_id, &delivery), 0);
    enum queue_delivery_state state = delivery.state;
    queue_delivery_clear(&delivery);
    return state;
}

static void
send(int64_t delivery, const char *transaction_uid)
{
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
    ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &stored, transaction_uid, THEN + 1000), 0);
}

START_TEST(a_done_job_gets_a_delivery_per_destination)
{
    static const char *const to[] = {"PACS", "ARCHIVE", "PACS"};
    int64_t job = done_job("1.2", to, 3);
    assert_answer(&s,
                  "SELECT group_concat(destination || ' ' || state || ' ' || attempts || ' ' || "
                  "path || ' ' || sop_instance_uid || ' ' || kind, '; ') FROM v_deliveries",
                  "PACS PENDING 0 outbox/1/seg.dcm 2.25.1 seg; "
                  "ARCHIVE PENDING 0 outbox/1/seg.dcm 2.25.1 seg");
    assert_answer(&s,
                  "SELECT group_concat(kind || ' ' || delivery || ' ' || coalesce(from_state, '-') "
                  "|| ' ' || to_state || ' ' || job || ' ' || detail, '; ') FROM v_events "
                  "WHERE delivery IS NOT NULL",
                  "DELIVERY_ADDED 1 - PENDING 1 PACS; DELIVERY_ADDED 2 - PENDING 1 ARCHIVE");
    struct queue_delivery delivery;
    ck_assert_int_eq(queue_get_delivery(s.queue, 2, &delivery), 0);
    ck_assert_int_eq(delivery.job_id, job);
    ck_assert_str_eq(delivery.destination, "ARCHIVE");
    ck_assert_int_eq(delivery.state, QUEUE_DELIVERY_PENDING);
    ck_assert_int_eq(delivery.commitment, QUEUE_COMMITMENT_NONE);
    ck_assert_int_eq(delivery.attempts, 0);
    ck_assert_int_eq(delivery.since_ms, SAMPLE_NOW + 4000);
    ck_assert_int_eq(delivery.due_ms, SAMPLE_NOW + 4000);
    ck_assert_str_eq(delivery.kind, "seg");
    ck_assert_str_eq(delivery.path, "outbox/1/seg.dcm");
    ck_assert_str_eq(delivery.sop_class_uid, sample_result.sop_class_uid);
    ck_assert_str_eq(delivery.sop_instance_uid, "2.25.1");
    queue_delivery_clear(&delivery);
}

END_TEST

START_TEST(a_destination_without_a_name_undoes_all)
{
    static const char *const to[] = {"PACS", ""};
    int64_t job = sample_job(s.queue, "1.2");
    start_job(job);
    ck_assert_int_eq(finish_with(job, "2.25.1", to, 2), -EINVAL);
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_RUNNING);
    assert_answer(&s, "SELECT count(*) FROM v_deliveries", "0");
    assert_answer(&s, "SELECT count(*) FROM v_results", "0");
}

END_TEST

/* ------------------------------------------------------------------------------ the diagram -- */

enum edge { START, SENT, DELAY, FAIL, REDIRECT, RETURN, RESEND, RESEND_LOST, HOLD, ACCEPT, REJECT, EDGE_COUNT };

/* The states of a delivery; SENT by the state of its commitment. */
enum place {
    PENDING,
    SENDING,
    SENT_PLAIN,
    SENT_REQUESTED,
    SENT_COMMITTED,
    SENT_REFUSED,
    DELAYED,
    FAILED,
    REVIEW,
    CANCELLED,
    PLACE_COUNT
};

#define TO_PENDING QUEUE_DELIVERY_PENDING
#define TO_SENDING QUEUE_DELIVERY_SENDING
#define TO_SENT    QUEUE_DELIVERY_SENT
#define TO_DELAYED QUEUE_DELIVERY_DELAYED
#define TO_FAILED  QUEUE_DELIVERY_FAILED
#define TO_REVIEW  QUEUE_DELIVERY_REVIEW
#define TO_CANCEL  QUEUE_DELIVERY_CANCELLED

/* The target of each edge; -1: it does not leave this place. */
static const int leads[PLACE_COUNT][EDGE_COUNT] = {
    /* clang-format off */
    /*                  START       SENT     DELAY       FAIL       REDIRECT   RETURN      RESEND      RESEND_LOST HOLD       ACCEPT      REJECT */
    [PENDING]        = {TO_SENDING, -1,      -1,         TO_FAILED, -1,        -1,         -1,         -1,         -1,        -1,         -1},
    [SENDING]        = {-1,         TO_SENT, TO_DELAYED, TO_FAILED, TO_FAILED, TO_PENDING, -1,         -1,         TO_REVIEW, -1,         -1},
    [SENT_PLAIN]     = {-1,         -1,      -1,         -1,        -1,        -1,         TO_PENDING, -1,         -1,        -1,         -1},
    [SENT_REQUESTED] = {-1,         -1,      TO_DELAYED, TO_FAILED, -1,        -1,         TO_PENDING, -1,         -1,        -1,         -1},
    [SENT_COMMITTED] = {-1,         -1,      -1,         -1,        -1,        -1,         TO_PENDING, -1,         -1,        -1,         -1},
    [SENT_REFUSED]   = {-1,         -1,      TO_DELAYED, TO_FAILED, -1,        -1,         TO_PENDING, -1,         -1,        -1,         -1},
    [DELAYED]        = {TO_SENDING, -1,      -1,         TO_FAILED, -1,        -1,         TO_PENDING, TO_PENDING, -1,        -1,         -1},
    [FAILED]         = {-1,         -1,      -1,         -1,        -1,        -1,         TO_PENDING, TO_PENDING, -1,        -1,         -1},
    [REVIEW]         = {-1,         -1,      -1,         -1,        -1,        -1,         -1,         -1,         -1,        TO_PENDING, TO_CANCEL},
    [CANCELLED]      = {-1,         -1,      -1,         -1,        -1,        -1,         TO_PENDING, -1,         -1,        -1,         -1},
    /* clang-format on */
};

static int
resend_one(int64_t delivery, bool not_arrived)
{
    int64_t count = -1;
    struct queue_resend which = {.delivery_id = delivery, .not_arrived = not_arrived};
    int rc = queue_resend(s.queue, &which, THEN + 3000, &count);
    ck_assert_int_eq(count, rc == 0);
    return rc;
}

static int
take(enum edge edge, int64_t delivery)
{
    switch (edge) {
    case START:
        return queue_start_delivery(s.queue, delivery, THEN + 2000);
    case SENT:
        return queue_delivery_sent(s.queue, delivery, &stored, "", THEN + 3000);
    case DELAY:
        return queue_delay_delivery(s.queue, delivery, THEN + 1500, &refused, THEN + 1000);
    case FAIL:
        return queue_fail_delivery(s.queue, delivery, &refused, THEN + 3000);
    case REDIRECT:
        return queue_redirect_delivery(s.queue, delivery, "FOLDER", &unreachable, THEN + 3000);
    case RETURN:
        return queue_return_delivery(s.queue, delivery, "drain", THEN + 3000);
    case RESEND:
        return resend_one(delivery, false);
    case RESEND_LOST:
        return resend_one(delivery, true);
    case HOLD:
        return queue_hold_delivery(s.queue, delivery, &burned_in, THEN + 3000);
    case ACCEPT:
        return queue_accept_delivery(s.queue, delivery, "0123456789abcdef", "rita", THEN + 3000);
    case REJECT:
        return queue_reject_delivery(s.queue, delivery, "", "a name", "rita", THEN + 3000);
    case EDGE_COUNT:
        break;
    }
    return -EINVAL;
}

static void
report_commitment(bool committed)
{
    ck_assert_int_eq(queue_delivery_committed(s.queue, "2.25.77", "2.25.1", committed,
                                              committed ? CODE_NONE : CODE_COMMITMENT_FAILED,
                                              committed ? "" : "no such object", THEN + 2000),
                     0);
}

/* Late slices, and the job of the new revision ends well. Returns that job. */
static int64_t
supersede(const char *series_uid, const char *const *destinations, size_t count)
{
    enum queue_arrival arrival;
    int64_t series, job;
    ck_assert_int_eq(sample_add(s.queue, series_uid, 9, &arrival, &series), 0);
    ck_assert_int_eq(arrival, QUEUE_NEW);
    ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 2, &job), 0);
    start_job(job);
    ck_assert_int_eq(finish_with(job, "2.25.9", destinations, count), 0);
    return job;
}

/* A delivery in `place`, by legal edges. */
static int64_t
delivery_in(enum place place, const char *series_uid)
{
    static const enum queue_delivery_state states[PLACE_COUNT] = {
        [PENDING] = QUEUE_DELIVERY_PENDING,     [SENDING] = QUEUE_DELIVERY_SENDING,
        [SENT_PLAIN] = QUEUE_DELIVERY_SENT,     [SENT_REQUESTED] = QUEUE_DELIVERY_SENT,
        [SENT_COMMITTED] = QUEUE_DELIVERY_SENT, [SENT_REFUSED] = QUEUE_DELIVERY_SENT,
        [DELAYED] = QUEUE_DELIVERY_DELAYED,     [FAILED] = QUEUE_DELIVERY_FAILED,
        [REVIEW] = QUEUE_DELIVERY_REVIEW,       [CANCELLED] = QUEUE_DELIVERY_CANCELLED,
    };

    int64_t delivery = one_delivery(series_uid);
    if (place == CANCELLED)
        supersede(series_uid, NULL, 0);
    else if (place != PENDING)
        ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
    if (place == REVIEW)
        ck_assert_int_eq(take(HOLD, delivery), 0);
    if (place == DELAYED || place == FAILED)
        ck_assert_int_eq(take(place == DELAYED ? DELAY : FAIL, delivery), 0);
    if (states[place] == QUEUE_DELIVERY_SENT)
        ck_assert_int_eq(
            queue_delivery_sent(s.queue, delivery, &stored, place == SENT_PLAIN ? "" : "2.25.77", THEN + 1000), 0);
    if (place == SENT_COMMITTED || place == SENT_REFUSED)
        report_commitment(place == SENT_COMMITTED);
    ck_assert_int_eq(state_of(delivery), states[place]);
    return delivery;
}

static void
assert_state_event(int64_t delivery, const char *before, const char *after)
{
    char sql[192], expected[64];
    snprintf(sql, sizeof sql,
             "SELECT from_state || '>' || to_state FROM v_events WHERE delivery = %lld AND "
             "to_state IS NOT NULL ORDER BY event DESC",
             (long long)delivery);
    snprintf(expected, sizeof expected, "%s>%s", before, after);
    assert_answer(&s, sql, expected);
}

static const char *const states[] = {"PENDING", "SENDING", "SENT", "DELAYED", "FAILED", "REVIEW", "CANCELLED"};

/* Each in its own database: the transaction UID is the same everywhere. */
static void
take_one(enum place place, enum edge edge)
{
    sample_open(&s);
    int64_t delivery = delivery_in(place, "1.2");
    enum queue_delivery_state before = state_of(delivery);
    int events = atoi(sample_ask(&s, "SELECT count(*) FROM v_events"));
    int to = leads[place][edge];
    int rc = take(edge, delivery);
    ck_assert_msg(rc == (to < 0 ? -EAGAIN : 0), "edge %d from %d: %d, %s", edge, place, rc, queue_reason(s.queue));
    ck_assert_int_eq(state_of(delivery), to < 0 ? (int)before : to);
    /* One event per change, no event for a refusal; a redirection adds a delivery. */
    ck_assert_int_eq(atoi(sample_ask(&s, "SELECT count(*) FROM v_events")), events + (to < 0             ? 0
                                                                                      : edge == REDIRECT ? 2
                                                                                                         : 1));
    if (to >= 0)
        assert_state_event(delivery, states[before], states[to]);
    sample_close(&s);
}

START_TEST(every_edge_from_every_place)
{
    sample_close(&s);
    for (int place = PENDING; place < PLACE_COUNT; place++)
        for (int edge = START; edge < EDGE_COUNT; edge++)
            take_one((enum place)place, (enum edge)edge);
    sample_open(&s);
}

END_TEST

START_TEST(all_transitions_of_a_missing_delivery_fail)
{
    for (int edge = START; edge < EDGE_COUNT; edge++)
        ck_assert_int_eq(take((enum edge)edge, 4711), -ENOENT);
    ck_assert_str_eq(queue_reason(s.queue), "there is no delivery 4711");
    struct queue_delivery delivery;
    ck_assert_int_eq(queue_get_delivery(s.queue, 4711, &delivery), -ENOENT);
}

END_TEST

/* ---------------------------------------------------------------------------------- attempts - */

START_TEST(a_returned_delivery_does_not_count_as_an_attempt)
{
    int64_t delivery = one_delivery("1.2");
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
    assert_answer(&s, "SELECT attempts || ' ' || started_at FROM v_deliveries", "1 2026-01-31T02:03:25.000Z");
    ck_assert_int_eq(queue_return_delivery(s.queue, delivery, "drain", THEN), 0);
    assert_answer(&s, "SELECT attempts || state FROM v_deliveries", "0PENDING");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'DELIVERY_RETURNED'", "PACS, drain");
}

END_TEST

/* A release is of the files that the person has seen. It counts for further attempts, and not for other files. */
START_TEST(a_held_delivery_waits_for_a_person)
{
    const int64_t delivery = delivery_in(REVIEW, "1.2");
    struct queue_delivery row;
    assert_answer(&s, "SELECT code || ' ' || message || ' ' || version FROM v_deliveries",
                  "BURNED_IN_TEXT a caption 0123456789abcdef");
    ck_assert_int_eq(queue_accept_delivery(s.queue, delivery, "0123456789abcdee", "rita", THEN), -ESTALE);
    ck_assert_int_eq(queue_reject_delivery(s.queue, delivery, "0123456789abcdee", "a name", "rita", THEN), -ESTALE);
    ck_assert_int_eq(take(ACCEPT, delivery), 0);
    ck_assert_int_eq(take(REJECT, delivery), -EAGAIN);
    ck_assert_str_eq(queue_reason(s.queue), "delivery 1 is PENDING: rita decided on it");
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN + 4000), 0);
    ck_assert_int_eq(queue_get_delivery(s.queue, delivery, &row), 0);
    ck_assert_str_eq(row.accepted_digest, burned_in.held_digest);
    queue_delivery_clear(&row);
    ck_assert_int_eq(take(HOLD, delivery), 0); /* other files */
    ck_assert_int_eq(queue_get_delivery(s.queue, delivery, &row), 0);
    ck_assert_str_eq(row.accepted_digest, "");
    queue_delivery_clear(&row);
    assert_answer(&s, "SELECT state || ' ' || reviewed_by FROM v_deliveries", "REVIEW ");
    supersede("1.2", NULL, 0);
    ck_assert_int_eq(state_of(delivery), QUEUE_DELIVERY_CANCELLED);
}

END_TEST

START_TEST(the_images_that_a_destination_has_are_counted)
{
    const int64_t delivery = delivery_in(SENDING, "1.2");
    ck_assert_int_eq(queue_confirm_images(s.queue, delivery, 3, "abc"), 0);
    ck_assert_int_eq(take(DELAY, delivery), 0);
    ck_assert_int_eq(queue_confirm_images(s.queue, delivery, 5, "def"), 0); /* late: not SENDING */
    assert_answer(&s, "SELECT confirmed || ' ' || confirmed_digest FROM delivery", "3 abc");
    ck_assert_int_eq(resend_one(delivery, false), 0);
    assert_answer(&s, "SELECT confirmed || ' ' || confirmed_digest FROM delivery", "0 ");
    ck_assert_int_eq(take(START, delivery), -EAGAIN);
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN + 4000), 0);
    ck_assert_int_eq(queue_confirm_images(s.queue, delivery, 6, "ghi"), 0);
    ck_assert_int_eq(take(SENT, delivery), 0);
    assert_answer(&s, "SELECT confirmed || ' ' || confirmed_digest FROM delivery", "0 ");
}

END_TEST

START_TEST(a_delayed_delivery_keeps_its_error)
{
    int64_t delivery = one_delivery("1.2");
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
    ck_assert_int_eq(queue_delay_delivery(s.queue, delivery, THEN + 60000, &refused, THEN), 0);
    assert_answer(&s,
                  "SELECT state || ' ' || not_before_at || ' ' || dimse_status || ' ' || "
                  "dimse_status_hex || ' ' || code || ' ' || message FROM v_deliveries",
                  "DELAYED 2026-01-31T02:04:25.000Z 42752 0xA700 STORE_FAILED out of resources");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'DELIVERY_DELAYED'",
                  "PACS, attempt 1, status 0xA700, STORE_FAILED: out of resources");
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN + 59999), -EAGAIN);
    ck_assert_ptr_nonnull(strstr(queue_reason(s.queue), "not due"));
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN + 60000), 0);
    assert_answer(&s,
                  "SELECT attempts || coalesce(dimse_status, '-') || code || message || "
                  "coalesce(not_before_at, '-') FROM v_deliveries",
                  "2--");
}

END_TEST

START_TEST(an_attempt_without_a_response_has_no_status)
{
    int64_t delivery = one_delivery("1.2");
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
    ck_assert_int_eq(queue_fail_delivery(s.queue, delivery, &unreachable, THEN), 0);
    assert_answer(&s,
                  "SELECT state || coalesce(dimse_status, '-') || coalesce(dimse_status_hex, '-') "
                  "|| code FROM v_deliveries",
                  "FAILED--PEER_UNREACHABLE");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'DELIVERY_FAILED'",
                  "PACS, attempt 1, PEER_UNREACHABLE: connection refused");
}

END_TEST

START_TEST(a_warning_is_kept_with_a_sent_one)
{
    struct queue_attempt coerced = {.dimse_status = 0xb000, .code = CODE_NONE, .message = "coerced"};
    int64_t delivery = one_delivery("1.2");
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
    ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &coerced, "2.25.77", THEN), 0);
    report_commitment(true);
    assert_answer(&s,
                  "SELECT state || ' ' || dimse_status_hex || ' ' || message || ' ' || sent_at "
                  "|| ' ' || commitment FROM v_deliveries",
                  "SENT 0xB000 coerced 2026-01-31T02:03:25.000Z COMMITTED");
}

END_TEST

START_TEST(a_redirection_changes_the_destination_once)
{
    static const char *const to[] = {"PACS", "ARCHIVE"};
    done_job("1.2", to, 2);
    for (int64_t delivery = 1; delivery <= 2; delivery++) {
        ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
        ck_assert_int_eq(queue_redirect_delivery(s.queue, delivery, "FOLDER", &unreachable, THEN), 0);
    }
    assert_answer(&s,
                  "SELECT group_concat(destination || ' ' || state || ' ' || path, '; ') FROM "
                  "v_deliveries",
                  "PACS FAILED outbox/1/seg.dcm; ARCHIVE FAILED outbox/1/seg.dcm; "
                  "FOLDER PENDING outbox/1/seg.dcm");
    ck_assert_int_eq(queue_start_delivery(s.queue, 3, THEN), 0);
    ck_assert_int_eq(queue_redirect_delivery(s.queue, 3, "", &unreachable, THEN), -EINVAL);
    ck_assert_int_eq(state_of(3), QUEUE_DELIVERY_SENDING);
}

END_TEST

/* --------------------------------------------------------------------------------------- due - */

static const char *
due_list(int64_t now_ms, size_t limit, const char *const *blocked, size_t blocked_count)
{
    static char text[256];
    struct queue_delivery *deliveries;
    size_t count;
    ck_assert_int_eq(queue_due_deliveries(s.queue, now_ms, limit, blocked, blocked_count, &deliveries, &count), 0);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s%lld", i ? " " : "", deliveries[i].destination,
                 (long long)deliveries[i].id);
        queue_delivery_clear(&deliveries[i]);
    }
    free(deliveries);
    return text;
}

START_TEST(due_deliveries_are_ordered_by_destination_and_time)
{
    static const char *const to[] = {"PACS", "ARCHIVE"};
    static const char *const both[] = {"PACS", "ARCHIVE"};
    int64_t due;
    ck_assert_str_eq(due_list(THEN, 10, NULL, 0), "");
    ck_assert_int_eq(queue_next_delivery(s.queue, NULL, 0, &due), -ENOENT);
    for (int i = 0; i < 3; i++) {
        char uid[16];
        snprintf(uid, sizeof uid, "1.%d", i);
        done_job(uid, to, 2);
    }
    ck_assert_str_eq(due_list(SAMPLE_NOW + 3999, 10, NULL, 0), "");
    ck_assert_str_eq(due_list(THEN, 10, NULL, 0), "ARCHIVE2 ARCHIVE4 ARCHIVE6 PACS1 PACS3 PACS5");
    ck_assert_str_eq(due_list(THEN, 1, NULL, 0), "ARCHIVE2 PACS1");
    ck_assert_str_eq(due_list(THEN, 10, both + 1, 1), "PACS1 PACS3 PACS5");
    ck_assert_str_eq(due_list(THEN, 10, both, 2), "");
    ck_assert_int_eq(queue_next_delivery(s.queue, both, 2, &due), -ENOENT);

    /* A delayed one is sorted by its due time. */
    ck_assert_int_eq(queue_start_delivery(s.queue, 1, THEN), 0);
    ck_assert_int_eq(queue_delay_delivery(s.queue, 1, THEN + 1000, &unreachable, THEN), 0);
    ck_assert_str_eq(due_list(THEN, 10, both + 1, 1), "PACS3 PACS5");
    ck_assert_str_eq(due_list(THEN + 1000, 10, both + 1, 1), "PACS3 PACS5 PACS1");

    /* Deliveries that are being sent, or were sent, do not wait. */
    send(3, "");
    ck_assert_int_eq(queue_start_delivery(s.queue, 5, THEN), 0);
    ck_assert_str_eq(due_list(THEN + 1000, 10, both + 1, 1), "PACS1");
    ck_assert_int_eq(queue_next_delivery(s.queue, both + 1, 1, &due), 0);
    ck_assert_int_eq(due, THEN + 1000);
    ck_assert_int_eq(queue_next_delivery(s.queue, both, 1, &due), 0);
    ck_assert_int_eq(due, SAMPLE_NOW + 4000);
    ck_assert_int_eq(queue_next_delivery(s.queue, NULL, 0, &due), 0);
    ck_assert_int_eq(due, SAMPLE_NOW + 4000);
}

END_TEST

/* -------------------------------------------------------------------------------- commitment - */

START_TEST(a_commitment_is_recorded_once)
{
    int64_t delivery = delivery_in(SENT_REQUESTED, "1.2");
    struct queue_delivery found;
    assert_answer(&s,
                  "SELECT commitment || ' ' || transaction_uid || ' ' || requested_at || "
                  "coalesce(committed_at, '') FROM v_deliveries",
                  "REQUESTED 2.25.77 2026-01-31T02:03:26.000Z");
    ck_assert_int_eq(queue_find_commitment(s.queue, "2.25.77", "2.25.1", &found), 0);
    ck_assert_int_eq(found.id, delivery);
    ck_assert_int_eq(found.commitment, QUEUE_COMMITMENT_REQUESTED);
    queue_delivery_clear(&found);
    report_commitment(true);
    int events = atoi(sample_ask(&s, "SELECT count(*) FROM v_events"));
    report_commitment(true);
    report_commitment(false); /* it reported that it keeps the object */
    assert_answer(&s, "SELECT commitment || ' ' || committed_at FROM v_deliveries",
                  "COMMITTED 2026-01-31T02:03:27.000Z");
    ck_assert_int_eq(atoi(sample_ask(&s, "SELECT count(*) FROM v_events")), events);
    assert_answer(&s,
                  "SELECT group_concat(kind || ' ' || detail, '; ') FROM v_events "
                  "WHERE kind LIKE 'COMMITMENT%'",
                  "COMMITMENT_REQUESTED PACS, 2.25.77; COMMITMENT_DONE PACS");
}

END_TEST

START_TEST(a_refused_commitment_has_a_reason)
{
    delivery_in(SENT_REFUSED, "1.2");
    assert_answer(&s,
                  "SELECT state || ' ' || commitment || ' ' || code || ' ' || message FROM "
                  "v_deliveries",
                  "SENT FAILED COMMITMENT_FAILED no such object");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'COMMITMENT_FAILED'",
                  "PACS, COMMITMENT_FAILED: no such object");
}

END_TEST

START_TEST(a_commitment_without_a_request_fails)
{
    int64_t delivery = one_delivery("1.2");
    send(delivery, "");
    const struct queue_attempt attempt = {
        .dimse_status = 0, .code = CODE_COMMIT_FAILED, .message = "it does not know us"};
    ck_assert_int_eq(queue_commitment_refused(s.queue, delivery, &attempt, THEN + 2000), 0);
    assert_answer(&s, "SELECT state || ' ' || commitment || ' ' || requested_at FROM v_deliveries",
                  "SENT FAILED 2026-01-31T02:03:27.000Z");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'COMMITMENT_FAILED'",
                  "PACS, COMMIT_FAILED: it does not know us");
}

END_TEST

START_TEST(unknown_commitments_are_reported)
{
    static const char *const pairs[][2] = {{"2.25.77", "2.25.2"}, {"2.25.78", "2.25.1"}, {"", "2.25.1"}, {"", ""}};
    struct queue_delivery found;
    delivery_in(SENT_REQUESTED, "1.2");
    int64_t plain = one_delivery("1.3"); /* under no transaction */
    send(plain, "");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        ck_assert_int_eq(queue_delivery_committed(s.queue, pairs[i][0], pairs[i][1], true, CODE_NONE, "", THEN),
                         -ENOENT);
        ck_assert_int_eq(queue_find_commitment(s.queue, pairs[i][0], pairs[i][1], &found), -ENOENT);
    }
}

END_TEST

START_TEST(a_missing_commitment_is_overdue)
{
    struct queue_delivery *deliveries;
    size_t count;
    int64_t delivery = delivery_in(SENT_REQUESTED, "1.2"); /* asked for at THEN + 1000 */
    ck_assert_int_eq(queue_overdue_commitments(s.queue, "PACS", THEN + 1000, 10, &deliveries, &count), 0);
    ck_assert_uint_eq(count, 0);
    free(deliveries);
    ck_assert_int_eq(queue_overdue_commitments(s.queue, "ARCHIVE", THEN + 1001, 10, &deliveries, &count), 0);
    ck_assert_uint_eq(count, 0);
    free(deliveries);
    ck_assert_int_eq(queue_overdue_commitments(s.queue, "PACS", THEN + 1001, 10, &deliveries, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(deliveries[0].id, delivery);
    queue_delivery_clear(&deliveries[0]);
    free(deliveries);

    /* Sent again, under another transaction; reports on the first one no longer count. */
    ck_assert_int_eq(take(DELAY, delivery), 0);
    assert_answer(&s, "SELECT state || ' ' || commitment || ' ' || sent_at FROM v_deliveries",
                  "DELAYED FAILED 2026-01-31T02:03:26.000Z");
    ck_assert_int_eq(queue_delivery_committed(s.queue, "2.25.77", "2.25.1", true, CODE_NONE, "", THEN + 1200), -ENOENT);
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN + 2000), 0);
    assert_answer(&s,
                  "SELECT commitment || transaction_uid || coalesce(requested_at, '') FROM "
                  "v_deliveries",
                  "NONE");
    ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &stored, "2.25.78", THEN + 2000), 0);
    ck_assert_int_eq(queue_delivery_committed(s.queue, "2.25.78", "2.25.1", true, CODE_NONE, "", THEN + 3000), 0);
    assert_answer(&s, "SELECT attempts || commitment FROM v_deliveries", "2COMMITTED");
}

END_TEST

/* ------------------------------------------------------------------------------------ resend - */

static int
resend_many(int64_t job, const char *destination, bool not_arrived, int64_t *count)
{
    struct queue_resend which = {.job_id = job, .destination = destination, .not_arrived = not_arrived};
    return queue_resend(s.queue, &which, THEN + 9000, count);
}

static void
bring(int64_t delivery, enum queue_delivery_state state)
{
    if (state == QUEUE_DELIVERY_PENDING)
        return;
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
    if (state == QUEUE_DELIVERY_SENT)
        ck_assert_int_eq(queue_delivery_sent(s.queue, delivery, &stored, "", THEN), 0);
    if (state == QUEUE_DELIVERY_DELAYED)
        ck_assert_int_eq(queue_delay_delivery(s.queue, delivery, THEN + 90000, &unreachable, THEN), 0);
    if (state == QUEUE_DELIVERY_FAILED)
        ck_assert_int_eq(queue_fail_delivery(s.queue, delivery, &refused, THEN), 0);
}

/* Five jobs, one delivery to PACS each: PENDING, SENDING, SENT, DELAYED, FAILED. */
static void
one_in_each_state(void)
{
    for (int state = QUEUE_DELIVERY_PENDING; state <= QUEUE_DELIVERY_FAILED; state++) {
        char uid[16];
        snprintf(uid, sizeof uid, "1.%d", state);
        bring(one_delivery(uid), (enum queue_delivery_state)state);
    }
}

#define STATES "SELECT group_concat(state, ' ') FROM v_deliveries"

START_TEST(a_resend_resets_the_delivery)
{
    int64_t delivery = delivery_in(SENT_COMMITTED, "1.2");
    ck_assert_int_eq(resend_one(delivery, false), 0);
    assert_answer(&s,
                  "SELECT state || attempts || code || commitment || transaction_uid || "
                  "coalesce(committed_at, '') || coalesce(dimse_status, '') FROM v_deliveries",
                  "PENDING0NONE");
    struct queue_delivery row;
    ck_assert_int_eq(queue_get_delivery(s.queue, delivery, &row), 0);
    ck_assert_int_eq(row.since_ms, THEN + 3000);
    ck_assert_int_eq(row.due_ms, THEN + 3000);
    queue_delivery_clear(&row);
    assert_answer(&s, "SELECT sent_at FROM v_deliveries", "2026-01-31T02:03:26.000Z");
}

END_TEST

START_TEST(a_destination_is_resent)
{
    int64_t count;
    one_in_each_state();
    ck_assert_int_eq(resend_many(0, "PACS", true, &count), 0);
    ck_assert_int_eq(count, 2);
    assert_answer(&s, STATES, "PENDING SENDING SENT PENDING PENDING");
    ck_assert_int_eq(resend_many(0, "PACS", false, &count), 0);
    ck_assert_int_eq(count, 1);
    assert_answer(&s, STATES, "PENDING SENDING PENDING PENDING PENDING");
    ck_assert_int_eq(resend_many(0, "PACS", false, &count), 0);
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(resend_many(0, "ARCHIVE", false, &count), -ENOENT);
    ck_assert_int_eq(count, 0);
}

END_TEST

START_TEST(a_job_is_resent)
{
    static const char *const to[] = {"A", "B", "C"};
    int64_t count, job = done_job("1.9", to, 3);
    one_in_each_state();
    bring(1, QUEUE_DELIVERY_SENT);
    bring(2, QUEUE_DELIVERY_FAILED);
    ck_assert_int_eq(resend_many(job, NULL, true, &count), 0);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(resend_many(job, NULL, false, &count), 0);
    ck_assert_int_eq(count, 1);
    assert_answer(&s, STATES, "PENDING PENDING PENDING PENDING SENDING SENT DELAYED FAILED");
    ck_assert_int_eq(resend_many(4711, NULL, false, &count), -ENOENT);
}

END_TEST

START_TEST(a_resend_has_exactly_one_selector)
{
    static const struct queue_resend wrong[] = {
        {.delivery_id = 0},
        {.delivery_id = 1, .job_id = 1},
        {.job_id = 1, .destination = "PACS"},
        {.delivery_id = 1, .destination = "PACS"},
    };
    one_delivery("1.2");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int64_t count = 1;
        ck_assert_int_eq(queue_resend(s.queue, &wrong[i], THEN, &count), -EINVAL);
        ck_assert_int_eq(count, 0);
    }
}

END_TEST

/* ----------------------------------------------------------------------- superseded, retried - */

START_TEST(a_newer_revision_withdraws_unsent_deliveries)
{
    static const char *const to[] = {"A", "B", "C", "D", "E"};
    int64_t count;
    done_job("1.2", to, 5);
    bring(2, QUEUE_DELIVERY_SENDING);
    bring(3, QUEUE_DELIVERY_SENT);
    bring(4, QUEUE_DELIVERY_DELAYED);
    bring(5, QUEUE_DELIVERY_FAILED);
    one_delivery("1.3");
    supersede("1.2", to, 1);
    assert_answer(&s, STATES, "CANCELLED SENDING SENT CANCELLED FAILED PENDING PENDING");
    assert_answer(&s, "SELECT group_concat(code, ' ') FROM v_deliveries WHERE state = 'CANCELLED'",
                  "SUPERSEDED SUPERSEDED");
    /* Replaced results are not sent to a whole destination, only by number. */
    ck_assert_int_eq(resend_many(0, "E", false, &count), 0);
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(resend_one(5, false), 0);
}

END_TEST

START_TEST(a_failed_newer_revision_withdraws_no_delivery)
{
    static const char *const to[] = {"PACS"};
    enum queue_arrival arrival;
    int64_t series, job;
    done_job("1.2", to, 1);
    ck_assert_int_eq(sample_add(s.queue, "1.2", 9, &arrival, &series), 0);
    ck_assert_int_eq(sample_settle(s.queue, series, 2), 0);
    ck_assert_int_eq(sample_add_job(s.queue, series, 2, &job), 0);
    assert_answer(&s, STATES, "PENDING");
    start_job(job);
    ck_assert_int_eq(queue_fail_job(s.queue, job, CODE_CRASHED, "x", "", "", SAMPLE_NOW + 4000), 0);
    assert_answer(&s, STATES, "PENDING");
    /* EMPTY is a result in its own right. */
    ck_assert_int_eq(sample_retry(s.queue, job, false, &job), 0);
    start_job(job);
    ck_assert_int_eq(
        queue_finish_job(s.queue, job,
                         &(struct queue_finish){QUEUE_EMPTY, &sample_figures, NULL, 0, CODE_EMPTY, "no voxel"},
                         SAMPLE_NOW + 4000),
        0);
    assert_answer(&s, STATES, "CANCELLED");
}

END_TEST

START_TEST(only_a_successful_retry_withdraws_deliveries)
{
    static const char *const to[] = {"A", "B", "C", "D", "E"};
    int64_t job = done_job("1.2", to, 5), next;
    bring(2, QUEUE_DELIVERY_SENT);
    bring(3, QUEUE_DELIVERY_DELAYED);
    bring(4, QUEUE_DELIVERY_FAILED);
    bring(5, QUEUE_DELIVERY_SENDING);
    ck_assert_int_eq(sample_retry(s.queue, job, true, &next), 0);
    start_job(next);
    assert_answer(&s, STATES, "PENDING SENT DELAYED FAILED SENDING");
    /* The same objects: B has its object, C is no longer configured. */
    static const char *const then_to[] = {"A", "B", "D", "E"};
    ck_assert_int_eq(finish_with(next, "2.25.1", then_to, 4), 0);
    assert_answer(&s,
                  "SELECT group_concat(job || destination || state, ' ') FROM "
                  "(SELECT * FROM v_deliveries ORDER BY delivery)",
                  "1ACANCELLED 1BSENT 1CCANCELLED 1DFAILED 1ESENDING 2APENDING 2BSENT 2DPENDING "
                  "2EPENDING");
    assert_answer(&s, "SELECT group_concat(code, ' ') FROM v_deliveries WHERE state = 'CANCELLED'", "RETRIED RETRIED");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'DELIVERY_ADDED' AND to_state = 'SENT'",
                  "B, it has the same object already");
    assert_answer(&s, "SELECT count(DISTINCT sent_at) FROM v_deliveries WHERE destination = 'B'", "1");
    ck_assert_int_eq(resend_one(7, false), 0); /* B, of the new file */
}

END_TEST

START_TEST(a_retry_with_a_new_object_sends_the_new_object)
{
    static const char *const to[] = {"PACS"};
    int64_t job = done_job("1.2", to, 1), next;
    send(1, "");
    ck_assert_int_eq(sample_retry(s.queue, job, true, &next), 0);
    start_job(next);
    ck_assert_int_eq(finish_with(next, "2.25.42", to, 1), 0);
    assert_answer(&s, "SELECT group_concat(sop_instance_uid || state, ' ') FROM v_deliveries",
                  "2.25.1SENT 2.25.42PENDING");
    ck_assert_int_eq(resend_one(1, false), 0); /* it still exists */
}

END_TEST

/* An archive that has not committed an object yet gets it again. */
START_TEST(uncommitted_objects_are_sent_again)
{
    static const char *const to[] = {"PACS"};
    int64_t job = done_job("1.2", to, 1), next;
    send(1, "2.25.7");
    ck_assert_int_eq(sample_retry(s.queue, job, true, &next), 0);
    start_job(next);
    ck_assert_int_eq(finish_with(next, "2.25.1", to, 1), 0);
    assert_answer(&s, STATES, "SENT PENDING");
    ck_assert_int_eq(queue_delivery_committed(s.queue, "2.25.7", "2.25.1", true, CODE_NONE, "", THEN), 0);
    ck_assert_int_eq(sample_retry(s.queue, next, true, &next), 0);
    start_job(next);
    ck_assert_int_eq(finish_with(next, "2.25.1", to, 1), 0);
    assert_answer(&s, STATES, "SENT CANCELLED SENT");
    assert_answer(&s,
                  "SELECT group_concat(commitment, ' ') FROM "
                  "(SELECT * FROM v_deliveries ORDER BY delivery)",
                  "COMMITTED NONE COMMITTED");
}

END_TEST

START_TEST(a_restart_resumes_interrupted_deliveries)
{
    int32_t returned = -1;
    one_in_each_state();
    ck_assert_int_eq(queue_recover(s.queue, 3, THEN + 1000, &returned), 0);
    ck_assert_int_eq(returned, 0); /* jobs */
    assert_answer(&s, STATES, "PENDING PENDING SENT DELAYED FAILED");
    assert_answer(&s, "SELECT attempts FROM v_deliveries WHERE delivery = 2", "1");
    assert_answer(&s, "SELECT delivery || detail FROM v_events WHERE kind = 'DELIVERY_RECOVERED'",
                  "2PACS, it was being sent when the daemon ended");
    /* As after kill -9: the states are in the file. */
    sample_reopen(&s);
    ck_assert_str_eq(due_list(THEN + 1000, 10, NULL, 0), "PACS1 PACS2");
}

END_TEST

/* ------------------------------------------------------------------------------------ counts - */

START_TEST(the_report_counts_deliveries)
{
    one_in_each_state();
    delivery_in(CANCELLED, "1.9");
    assert_answer(&s,
                  "SELECT deliveries_pending || ' ' || deliveries_sending || ' ' || "
                  "deliveries_delayed || ' ' || deliveries_failed || ' ' || deliveries_sent_24h "
                  "|| ' ' || (oldest_delivery_seconds > 0) FROM v_night",
                  "1 1 1 1 0 1"); /* the sample's night is long past */
    assert_answer(&s,
                  "SELECT destination || ' ' || pending || ' ' || sending || ' ' || delayed || "
                  "' ' || sent || ' ' || failed || ' ' || cancelled || ' ' || uncommitted || ' ' "
                  "|| oldest_waiting_at || ' ' || next_attempt_at || ' ' || last_sent_at "
                  "FROM v_destinations",
                  "PACS 1 1 1 1 1 1 0 2026-01-31T02:03:24.000Z 2026-01-31T02:04:55.000Z "
                  "2026-01-31T02:03:25.000Z");
}

END_TEST

static void
tell(const char *kind, const char *detail, int64_t ms)
{
    ck_assert_int_eq(queue_note(s.queue, kind, detail, ms), 0);
}

START_TEST(a_destination_is_down_until_it_replies)
{
#define DOWN "SELECT group_concat(destination || coalesce(down_since, '-'), ' ') FROM v_destinations"
    static const char *const to[] = {"PACS", "PACS2"};
    done_job("1.2", to, 2);
    assert_answer(&s, DOWN, "PACS- PACS2-");
    tell("START", "", THEN);
    tell("DESTINATION_DOWN", "PACS: 3 failures in a row", THEN);
    assert_answer(&s, DOWN, "PACS2026-01-31T02:03:25.000Z PACS2-");
    tell("DESTINATION_UP", "OTHER: it answers again", THEN + 1000);
    assert_answer(&s, DOWN, "PACS2026-01-31T02:03:25.000Z PACS2-");
    tell("DESTINATION_UP", "PACS: it answers again", THEN + 1000);
    assert_answer(&s, DOWN, "PACS- PACS2-");
    tell("DESTINATION_DOWN", "PACS: 3 failures in a row", THEN + 2000);
    tell("START", "", THEN + 3000);
    assert_answer(&s, DOWN, "PACS- PACS2-");
#undef DOWN
}

END_TEST

START_TEST(retry_times_follow_a_changed_clock)
{
    static const int64_t by[] = {864000000, -864000000, 86400000, -1500};
    int64_t delivery = one_delivery("1.2"), job = sample_job(s.queue, "1.3"), due_ms, moved = 0;
    ck_assert_int_eq(queue_start_delivery(s.queue, delivery, THEN), 0);
    ck_assert_int_eq(queue_delay_delivery(s.queue, delivery, THEN + 60000, &refused, THEN), 0);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, THEN), 0);
    ck_assert_int_eq(queue_delay_job(s.queue, job, THEN + 70000, false, CODE_NONE, "", THEN), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(queue_clock_was_set(s.queue, by[i]), 0);
        moved += by[i];
        ck_assert_int_eq(queue_next_delivery(s.queue, NULL, 0, &due_ms), 0);
        ck_assert_int_eq(due_ms, THEN + 60000 + moved);
        ck_assert_int_eq(queue_next_due(s.queue, &due_ms), 0);
        ck_assert_int_eq(due_ms, THEN + 70000 + moved);
    }
    ck_assert_int_eq(queue_bound_waits(s.queue, THEN + 1000, THEN + 2000), 0);
    ck_assert_int_eq(queue_next_due(s.queue, &due_ms), 0);
    ck_assert_int_eq(due_ms, THEN + 1000);
    ck_assert_int_eq(queue_next_delivery(s.queue, NULL, 0, &due_ms), 0);
    ck_assert_int_eq(due_ms, THEN + 2000);
    ck_assert_int_eq(queue_bound_waits(s.queue, THEN + 5000, THEN + 5000), 0);
    ck_assert_int_eq(queue_next_delivery(s.queue, NULL, 0, &due_ms), 0);
    ck_assert_int_eq(due_ms, THEN + 2000);
}

END_TEST

SAMPLE_MAIN("db_deliveries", open_sample, close_sample, retry_times_follow_a_changed_clock,
            a_done_job_gets_a_delivery_per_destination, a_destination_without_a_name_undoes_all,
            every_edge_from_every_place, all_transitions_of_a_missing_delivery_fail,
            a_returned_delivery_does_not_count_as_an_attempt, a_held_delivery_waits_for_a_person,
            the_images_that_a_destination_has_are_counted, a_delayed_delivery_keeps_its_error,
            an_attempt_without_a_response_has_no_status, a_warning_is_kept_with_a_sent_one,
            a_redirection_changes_the_destination_once, due_deliveries_are_ordered_by_destination_and_time,
            a_commitment_is_recorded_once, a_refused_commitment_has_a_reason, a_commitment_without_a_request_fails,
            unknown_commitments_are_reported, a_missing_commitment_is_overdue, a_resend_resets_the_delivery,
            a_destination_is_resent, a_job_is_resent, a_resend_has_exactly_one_selector,
            a_newer_revision_withdraws_unsent_deliveries, a_failed_newer_revision_withdraws_no_delivery,
            only_a_successful_retry_withdraws_deliveries, a_retry_with_a_new_object_sends_the_new_object,
            uncommitted_objects_are_sent_again, a_restart_resumes_interrupted_deliveries, the_report_counts_deliveries,
            a_destination_is_down_until_it_replies)

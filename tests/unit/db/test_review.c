/*
 * A result that breaks an expectation is not delivered and replaces no other before a person
 * accepts it. test_jobs.c has the edges from every state, test_retention.c the removal.
 */
#include "tests/unit/db/sample.h"

static struct sample s;
static const char *const archive[] = {"PACS", "shelf"};

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

static int64_t
review_job(const char *series_uid)
{
    const int64_t job = sample_job(s.queue, series_uid);
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", (int32_t)job, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(sample_review(s.queue, job), 0);
    return job;
}

static int
accept_job(int64_t job)
{
    return queue_accept_job(s.queue, job, archive, NULL, 2, "jane", SAMPLE_NOW + 9000);
}

static int
reject_job(int64_t job)
{
    return queue_reject_job(s.queue, job, "it is the table", "jane", SAMPLE_NOW + 9000);
}

/* Runs another job of the same stack and pipeline; ends it with `finish`. */
static int64_t
again(int64_t job, int (*finish)(struct queue *queue, int64_t job))
{
    int64_t next;
    ck_assert_int_eq(sample_retry(s.queue, job, true, &next), 0);
    ck_assert_int_eq(queue_start_job(s.queue, next, "w", (int32_t)next, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(finish(s.queue, next), 0);
    return next;
}

#define STATES "SELECT group_concat(state || coalesce(superseded_by, ''), ' ') FROM v_jobs"

START_TEST(unexpected_results_are_recorded_and_not_delivered)
{
    review_job("1.2");
    assert_answer(&s, "SELECT count(*) FROM v_deliveries", "0");
    assert_answer(&s, "SELECT state || code || message || result_path || (features IS NULL) FROM v_jobs",
                  "REVIEWEXPECTATION_BROKENBrain: 31 mloutbox/1/seg.dcm1");
    assert_answer(&s,
                  "SELECT job || ' ' || pipeline || ' ' || since_at || ' ' || message || ' ' || "
                  "preview_path || ' ' || result_path || outdated FROM v_review",
                  "1 head-ct 2026-01-31T02:03:24.000Z Brain: 31 ml outbox/1/preview.png "
                  "outbox/1/seg.dcm0");
    assert_answer(&s, "SELECT state || path FROM v_results", "REVIEWoutbox/1/seg.dcm");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'JOB_REVIEW'", "EXPECTATION_BROKEN: Brain: 31 ml");
    assert_answer(&s, "SELECT jobs_review || jobs_done || jobs_failed FROM v_night", "100");
    assert_answer(&s, "SELECT level || ', ' || since_at || ': ' || text FROM v_troubles",
                  "attention, 2026-01-31T02:03:24.000Z: 1 job is under review and not delivered");
    review_job("1.3");
    assert_answer(&s, "SELECT text FROM v_troubles", "2 jobs are under review and not delivered");
}

END_TEST

/* Results without a decision are in no statistics. */
START_TEST(features_count_after_acceptance)
{
    const int64_t job = review_job("1.2");
    static const char counts[] =
        "SELECT (SELECT count(*) FROM v_features) + (SELECT count(*) FROM v_pattern_histograms)";
    review_job("1.3");
    assert_answer(&s, counts, "0");
    ck_assert_int_eq(accept_job(job), 0);
    assert_answer(&s, counts, "4");
    ck_assert_int_eq(reject_job(job + 1), 0);
    assert_answer(&s, counts, "4");
}

END_TEST

START_TEST(an_accepted_result_is_delivered)
{
    const int64_t job = review_job("1.2");
    ck_assert_int_eq(accept_job(job), 0);
    assert_answer(&s,
                  "SELECT state || ' ' || reviewed_at || ' ' || reviewed_by || ' ' || ended_at || "
                  "' ' || code FROM v_jobs",
                  "DONE 2026-01-31T02:03:29.000Z jane 2026-01-31T02:03:24.000Z EXPECTATION_BROKEN");
    assert_answer(&s, "SELECT group_concat(destination || state || path, ' ') FROM v_deliveries",
                  "PACSPENDINGoutbox/1/seg.dcm shelfPENDINGoutbox/1/seg.dcm");
    assert_answer(&s, "SELECT from_state || to_state || detail FROM v_events WHERE kind = 'JOB_ACCEPTED'",
                  "REVIEWDONEby jane");
    assert_answer(&s, "SELECT count(*) FROM v_troubles WHERE level = 'attention'", "0");
    ck_assert_int_eq(accept_job(job), -EAGAIN);
    ck_assert_str_eq(queue_reason(s.queue), "job 1 is DONE: jane accepted it");
}

END_TEST

START_TEST(files_other_than_objects_are_not_delivered)
{
    const struct queue_result results[] = {
        sample_result,
        {.kind = "codes", .path = "outbox/1/codes-1.nrrd", .size = 5},
    };
    const int64_t job = sample_job(s.queue, "1.2");
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_REVIEW, &sample_figures, results, 2,
                                                             CODE_EXPECTATION_BROKEN, "x"},
                                      SAMPLE_NOW + 4000),
                     0);
    ck_assert_int_eq(accept_job(job), 0);
    assert_answer(&s, "SELECT group_concat(kind) FROM v_deliveries", "seg,seg");
}

END_TEST

START_TEST(an_end_under_review_names_no_destinations)
{
    const int64_t job = sample_job(s.queue, "1.2");
    struct queue_result result = sample_result;
    result.destinations = archive;
    result.destination_count = 1;
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_REVIEW, &sample_figures, &result, 1,
                                                             CODE_EXPECTATION_BROKEN, "x"},
                                      SAMPLE_NOW + 4000),
                     -EINVAL);
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_RUNNING);
}

END_TEST

START_TEST(an_empty_result_is_accepted_as_empty)
{
    const int64_t job = sample_job(s.queue, "1.2");
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_REVIEW, &sample_figures, NULL, 0,
                                                             CODE_EXPECTATION_BROKEN, "no voxel"},
                                      SAMPLE_NOW + 4000),
                     0);
    ck_assert_int_eq(accept_job(job), 0);
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_EMPTY);
    assert_answer(&s, "SELECT count(*) FROM v_deliveries", "0");
}

END_TEST

START_TEST(a_rejected_result_is_never_delivered)
{
    const int64_t job = review_job("1.2");
    int64_t same, count;
    ck_assert_int_eq(reject_job(job), 0);
    assert_answer(&s, "SELECT state || ' ' || code || ' ' || message || ' ' || reviewed_by FROM v_jobs",
                  "REJECTED REVIEW_REJECTED by jane: it is the table (Brain: 31 ml) jane");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'JOB_REJECTED'",
                  "REVIEW_REJECTED: by jane: it is the table");
    assert_answer(&s, "SELECT count(*) FROM v_deliveries", "0");
    assert_answer(&s, "SELECT count(*) FROM v_review", "0");
    ck_assert_int_eq(accept_job(job), -EAGAIN);
    ck_assert_int_eq(queue_resend(s.queue, &(struct queue_resend){.job_id = job}, SAMPLE_NOW, &count), 0);
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(sample_retry(s.queue, job, false, &same), -EEXIST);
}

END_TEST

START_TEST(a_result_replaces_others_only_after_acceptance)
{
    static const char *const one[] = {"PACS"};
    const int64_t old = sample_job(s.queue, "1.2");
    struct queue_result result = sample_result;
    result.destinations = one;
    result.destination_count = 1;
    ck_assert_int_eq(queue_start_job(s.queue, old, "w", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, old,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    const int64_t next = again(old, sample_review);
    assert_answer(&s, STATES, "DONE REVIEW");
    assert_answer(&s, "SELECT group_concat(job || state, ' ') FROM v_deliveries", "1PENDING");
    ck_assert_int_eq(accept_job(next), 0);
    assert_answer(&s, STATES, "DONE2 DONE");
    assert_answer(&s, "SELECT group_concat(job || destination || state || code, ' ') FROM v_deliveries",
                  "1PACSCANCELLEDRETRIED 2PACSPENDING 2shelfPENDING");
}

END_TEST

START_TEST(a_successful_job_replaces_a_review)
{
    const int64_t old = review_job("1.2");
    again(old, sample_finish);
    assert_answer(&s, STATES, "REJECTED2 DONE");
    assert_answer(&s, "SELECT code || ': ' || message || reviewed_by FROM v_jobs WHERE job = 1",
                  "SUPERSEDED: another job replaced it before a decision (Brain: 31 ml)");
    ck_assert_int_eq(accept_job(old), -EAGAIN);
    ck_assert_str_eq(queue_reason(s.queue), "job 1 is REJECTED");
}

END_TEST

/* Each may be accepted; the later one then replaces the earlier. */
START_TEST(two_of_one_series)
{
    const int64_t old = review_job("1.2"), next = again(old, sample_review);
    assert_answer(&s, STATES, "REVIEW REVIEW");
    ck_assert_int_eq(accept_job(old), 0);
    assert_answer(&s, STATES, "DONE REVIEW");
    ck_assert_int_eq(accept_job(next), 0);
    assert_answer(&s, STATES, "DONE2 DONE");
    const int64_t third = review_job("1.3"), fourth = again(third, sample_review);
    ck_assert_int_eq(accept_job(fourth), 0);
    ck_assert_int_eq(sample_state(s.queue, third), QUEUE_REJECTED);
}

END_TEST

START_TEST(late_slices_make_a_review_outdated)
{
    enum queue_arrival arrival;
    const int64_t job = review_job("1.2");
    int64_t series;
    ck_assert_int_eq(sample_add(s.queue, "1.2", 9, &arrival, &series), 0);
    assert_answer(&s, "SELECT outdated FROM v_review", "1");
    ck_assert_int_eq(accept_job(job), -ESTALE);
    ck_assert_str_eq(queue_reason(s.queue), "job 1 is for revision 1, its series is at 2 by now: the "
                                            "job of that one takes its place");
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_REVIEW);
    ck_assert_int_eq(reject_job(job), 0);
}

END_TEST

START_TEST(a_restart_keeps_the_review)
{
    const int64_t job = review_job("1.2");
    int32_t returned;
    sample_reopen(&s);
    ck_assert_int_eq(queue_recover(s.queue, 3, SAMPLE_NOW + 60000, &returned), 0);
    ck_assert_int_eq(returned, 0);
    ck_assert_int_eq(sample_state(s.queue, job), QUEUE_REVIEW);
    ck_assert_int_eq(accept_job(job), 0);
}

END_TEST

/* Undone at 29 s, refused at 31 s, also across a restart; nothing is delivered before 30 s. */
START_TEST(a_decision_is_undone_in_its_time)
{
    const int64_t job = review_job("1.2"), at = SAMPLE_NOW + 9000;
    struct queue_decision due;
    ck_assert_int_eq(queue_decide(s.queue, job, true, "jane", "fine", at + 30000, at), 0);
    assert_answer(&s, "SELECT state FROM v_jobs", "REVIEW");
    assert_answer(&s, "SELECT decision || ' ' || decided_by || ' ' || decision_reason || ' ' || final_at FROM v_review",
                  "accept jane fine 2026-01-31T02:03:59.000Z");
    ck_assert_int_eq(queue_check_review(s.queue, job, ""), -EAGAIN);
    ck_assert_str_eq(queue_reason(s.queue), "job 1 is decided: jane accepted it");
    ck_assert_int_eq(queue_undo_decision(s.queue, job, "anna", at + 29000), 0);
    assert_answer(&s, "SELECT decision || decided_by FROM v_review", "");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'DECISION_UNDONE'", "by anna");
    ck_assert_int_eq(queue_undo_decision(s.queue, job, "anna", at + 29000), -EAGAIN);
    ck_assert_str_eq(queue_reason(s.queue), "there is no decision on job 1 to undo; one that took effect is final");
    ck_assert_int_eq(queue_check_review(s.queue, job, ""), 0);

    ck_assert_int_eq(queue_decide(s.queue, job, true, "jane", "", at + 30000, at), 0);
    sample_reopen(&s);
    ck_assert_int_eq(queue_undo_decision(s.queue, job, "anna", at + 31000), -EAGAIN);
    ck_assert_int_eq(queue_due_decision(s.queue, at + 29999, &due), 1);
    assert_answer(&s, "SELECT count(*) FROM v_deliveries", "0");
    ck_assert_int_eq(queue_due_decision(s.queue, at + 30000, &due), 0);
    ck_assert(due.job_id == job && due.accepts && strcmp(due.by, "jane") == 0);
    queue_decision_clear(&due);
    ck_assert_int_eq(accept_job(job), 0);
    ck_assert_int_eq(queue_due_decision(s.queue, at + 99999, &due), 1);
    ck_assert_int_eq(queue_undo_decision(s.queue, job, "anna", at + 1), -EAGAIN);
    ck_assert_int_eq(queue_decide(s.queue, job, false, "jane", "no", at + 30000, at), -EAGAIN);
    ck_assert_str_eq(queue_reason(s.queue), "job 1 is DONE: jane accepted it");
}

END_TEST

/* A later job that ends well takes the decision with it. */
START_TEST(a_decision_ends_with_its_review)
{
    const int64_t job = review_job("1.2");
    struct queue_decision due;
    ck_assert_int_eq(queue_decide(s.queue, job, true, "jane", "", SAMPLE_NOW + 40000, SAMPLE_NOW), 0);
    again(job, sample_finish);
    assert_answer(&s, STATES, "REJECTED2 DONE");
    ck_assert_int_eq(queue_due_decision(s.queue, SAMPLE_NOW + 99999, &due), 1);
}

END_TEST

START_TEST(a_result_that_changed_is_not_decided)
{
    const int64_t job = review_job("1.2");
    enum queue_arrival arrival;
    int64_t series;
    char version[32];
    ck_assert_int_eq(database_text(&s.queue->db, "SELECT version FROM v_review", version, sizeof version), 0);
    ck_assert_int_eq(queue_check_review(s.queue, job, version), 0);
    ck_assert_int_eq(sample_add(s.queue, "1.2", 9, &arrival, &series), 0);
    ck_assert_int_eq(queue_check_review(s.queue, job, version), -ESTALE);
    ck_assert_int_eq(queue_decide(s.queue, job, true, "jane", "", SAMPLE_NOW + 40000, SAMPLE_NOW), -ESTALE);
    ck_assert_int_eq(queue_decide(s.queue, job, false, "jane", "no", SAMPLE_NOW + 40000, SAMPLE_NOW), 0);
}

END_TEST

/* Adds a segmentation of the series, in the series of a result or in its own, and returns its id. */
static int64_t
add_mask(const char *sop, const char *series_uid, const char *references)
{
    char path[64];
    enum queue_arrival arrival;
    int64_t id;
    snprintf(path, sizeof path, "series/%s/%s.dcm", series_uid, sop);
    const struct queue_object mask = {.sop_instance_uid = sop,
                                      .sop_class_uid = "1.2.840.10008.5.1.4.1.1.66.4",
                                      .transfer_syntax_uid = "1.2.840.10008.1.2.1",
                                      .series_uid = series_uid,
                                      .study_uid = "1.2.3",
                                      .kind = "seg",
                                      .label = "Brain",
                                      .description = "",
                                      .made = "",
                                      .person = "Doe^Jane",
                                      .path = path,
                                      .source = "scu:WS",
                                      .sender = "WS",
                                      .references = references,
                                      .size = 1000};
    ck_assert_int_eq(queue_add_object(s.queue, &mask, SAMPLE_NOW, &arrival, &id), 0);
    return id;
}

static int64_t
correct_job(int64_t job, int64_t object)
{
    struct queue_ids running;
    int64_t id;
    ck_assert_int_eq(queue_correct_job(s.queue, job, object, SAMPLE_NOW + 5000, &id, &running), 0);
    free(running.at);
    return id;
}

static void
assert_corrected(int64_t object, const char *expected)
{
    char text[128] = "";
    struct queue_corrected *jobs;
    size_t count;
    ck_assert_int_eq(queue_corrected_jobs(s.queue, object, &jobs, &count), 0);
    for (size_t i = 0; i < count; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld%s%s%s", i > 0 ? " " : "",
                 (long long)jobs[i].id, jobs[i].state, jobs[i].named ? " named" : "",
                 jobs[i].outdated ? " outdated" : "");
        queue_corrected_clear(&jobs[i]);
    }
    free(jobs);
    ck_assert_str_eq(text, expected);
}

START_TEST(a_correction_ends_under_review_and_takes_the_decision)
{
    const int64_t old = review_job("1.2"), object = add_mask("1.9.1", "1.9", "series 1.2\n");
    char version[32];
    assert_corrected(object, "1REVIEW");
    ck_assert_int_eq(database_text(&s.queue->db, "SELECT version FROM v_review", version, sizeof version), 0);
    ck_assert_int_eq(queue_decide(s.queue, old, true, "jane", "", SAMPLE_NOW + 40000, SAMPLE_NOW), 0);
    const int64_t job = correct_job(old, object);
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'DECISION_UNDONE'",
                  "a corrected mask arrived before the decision took effect");
    assert_answer(&s, "SELECT corrects || corrected_by || correction_uid FROM v_jobs WHERE job = 2", "1Doe^Jane1.9.1");
    ck_assert_int_eq(queue_check_review(s.queue, old, version), -ESTALE);
    ck_assert_int_eq(queue_decide(s.queue, old, true, "jane", "", SAMPLE_NOW + 40000, SAMPLE_NOW), -ESTALE);
    ck_assert_int_eq(reject_job(old), -ESTALE);
    ck_assert_int_eq(accept_job(old), -ESTALE);
    ck_assert_str_eq(
        queue_reason(s.queue),
        "job 2 measures a correction of job 1: accept or reject that one; a rejection leaves this one under "
        "review");
    /* No verdict of a worker delivers it. */
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 5, SAMPLE_NOW + 6000), 0);
    ck_assert_int_eq(sample_finish(s.queue, job), -EINVAL);
    ck_assert_int_eq(sample_review(s.queue, job), 0);
    assert_answer(&s, STATES, "REVIEW REVIEW");
    assert_answer(&s, "SELECT group_concat(job || coalesce('<' || correction_job, ''), ' ') FROM v_review", "1<2 2");
    ck_assert_int_eq(accept_job(old), -ESTALE);
    ck_assert_int_eq(accept_job(job), 0);
    assert_answer(&s, STATES, "REJECTED2 DONE");
    assert_answer(&s, "SELECT group_concat(DISTINCT job) FROM v_deliveries", "2");
    assert_corrected(add_mask("1.9.2", "1.9", "series 1.2\n"), "2DONE");
}

END_TEST

START_TEST(a_rejected_or_repeated_correction)
{
    const int64_t old = review_job("1.2");
    const int64_t rejected = correct_job(old, add_mask("1.9.1", "1.9", "series 1.2\n"));
    ck_assert_int_eq(queue_start_job(s.queue, rejected, "w", 5, SAMPLE_NOW + 6000), 0);
    ck_assert_int_eq(sample_review(s.queue, rejected), 0);
    assert_corrected(add_mask("1.9.2", "1.9", "series 1.2\n"), "2REVIEW"); /* corrects the correction */
    ck_assert_int_eq(reject_job(rejected), 0);
    const int64_t object = add_mask("1.9.3", "1.9", "series 1.2\n");
    assert_corrected(object, "1REVIEW");
    const int64_t first = correct_job(old, object);
    const int64_t second = correct_job(old, add_mask("1.9.4", "1.9", "series 1.2\n"));
    assert_answer(&s, STATES, "REVIEW REJECTED3 CANCELLED4 READY");
    ck_assert_int_eq(first + 1, second);
    /* Run again, it keeps the masks; the earlier result can be decided while no correction waits. */
    bool running;
    ck_assert_int_eq(queue_cancel_job(s.queue, second, SAMPLE_NOW, &running), 0);
    ck_assert_int_eq(queue_check_review(s.queue, old, ""), 0);
    int64_t again_id;
    ck_assert_int_eq(sample_retry(s.queue, second, false, &again_id), 0);
    ck_assert_int_eq(again_id, second);
    ck_assert_int_eq(queue_start_job(s.queue, second, "w", 5, SAMPLE_NOW + 6000), 0);
    ck_assert_int_eq(sample_review(s.queue, second), 0);
    ck_assert_int_eq(reject_job(second), 0);
    ck_assert_int_eq(sample_retry(s.queue, second, true, &again_id), 0);
    assert_answer(&s, "SELECT corrects || correction_uid FROM v_jobs ORDER BY job DESC", "11.9.4");
    ck_assert_int_eq(accept_job(old), -ESTALE);
}

END_TEST

START_TEST(a_correction_names_its_result)
{
    const int64_t old = review_job("1.2");
    char series[80], sop[80];
    int64_t found;
    ck_assert_int_eq(
        database_text(&s.queue->db, "SELECT series_uid FROM result WHERE job_id = 1", series, sizeof series), 0);
    ck_assert_int_eq(
        database_text(&s.queue->db, "SELECT sop_instance_uid FROM result WHERE job_id = 1", sop, sizeof sop), 0);
    const int64_t object = add_mask("1.9.1", series, "series 1.2\n");
    assert_corrected(object, "1REVIEW named");
    assert_answer(&s, "SELECT own FROM v_objects", "0");
    ck_assert_int_eq(queue_object_is_result(s.queue, object, &found), 0);
    ck_assert_int_eq(queue_object_is_result(s.queue, add_mask(sop, "1.8", "series 1.2\n"), &found), 1);
    ck_assert_int_eq(found, old);
    ck_assert_int_eq(queue_refuse_correction(s.queue, old, object, CODE_CORRECTION_LATE, "job 1 is DONE", SAMPLE_NOW),
                     0);
    assert_answer(&s, "SELECT job || detail FROM v_events WHERE kind = 'CORRECTION_REFUSED'",
                  "1CORRECTION_LATE: seg 1.9.1: job 1 is DONE");
    enum queue_arrival arrival;
    int64_t series_id;
    ck_assert_int_eq(sample_add(s.queue, "1.2", 9, &arrival, &series_id), 0);
    assert_corrected(object, "1REVIEW named outdated");
    struct queue_ids running;
    ck_assert_int_eq(queue_correct_job(s.queue, old, object, SAMPLE_NOW, &found, &running), -ESTALE);
}

END_TEST

START_TEST(an_audit_row_is_final)
{
    const struct queue_audit audit = {.action = "accept",
                                      .subject = "job 1",
                                      .job_id = review_job("1.2"),
                                      .reason = "",
                                      .actor = "jane",
                                      .how = "token",
                                      .role = "reviewer",
                                      .address = "::1",
                                      .seen = "1.1.1"};
    struct queue_audit nameless = audit;
    nameless.actor = "";
    ck_assert_int_eq(queue_add_audit(s.queue, &audit, SAMPLE_NOW), 0);
    ck_assert_int_lt(queue_add_audit(s.queue, &nameless, SAMPLE_NOW), 0);
    assert_answer(&s,
                  "SELECT action || subject || job || revision || actor || how || role || address || seen FROM v_audit",
                  "acceptjob 111janetokenreviewer::11.1.1");
    /* filters: 50 per person */
    char name[16] = "a";
    struct queue_filter filter = {"jane", "work", name, "state=DONE"};
    for (int i = 0; i < QUEUE_FILTERS; i++) {
        snprintf(name, sizeof name, "%d", i);
        ck_assert_int_eq(queue_save_filter(s.queue, &filter, SAMPLE_NOW), 0);
    }
    ck_assert_int_eq(queue_save_filter(s.queue, &filter, SAMPLE_NOW), 0);
    strcpy(name, "one more");
    ck_assert_int_eq(queue_save_filter(s.queue, &filter, SAMPLE_NOW), -EDQUOT);
    ck_assert_int_eq(queue_delete_filter(s.queue, &filter), -ENOENT);
    strcpy(name, "1");
    ck_assert_int_eq(queue_delete_filter(s.queue, &filter), 0);
    assert_answer(&s, "SELECT count(*) FROM v_saved_filters WHERE person = 'jane' AND list = 'work'", "49");
    /* one look per person, job and hour; an unknown job must have no row */
    struct queue_audit look = audit;
    look.role = "viewer";
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(queue_add_look(s.queue, &look, SAMPLE_NOW + i * INT64_C(1800000)), 0);
    look.actor = "joe";
    ck_assert_int_eq(queue_add_look(s.queue, &look, SAMPLE_NOW), 0);
    look.job_id = 99;
    ck_assert_int_eq(queue_add_look(s.queue, &look, SAMPLE_NOW), 0);
    assert_answer(&s,
                  "SELECT group_concat(actor || role || subject || revision, ' ') FROM v_audit WHERE action = 'looked'",
                  "janeviewerjob 11 janeviewerjob 11 joeviewerjob 11");
    ck_assert_int_lt(database_script(&s.queue->db, "UPDATE audit SET actor = 'eve' WHERE id = 1"), 0);
    ck_assert_int_lt(database_script(&s.queue->db, "DELETE FROM audit WHERE id = 1"), 0);
    assert_answer(&s, "SELECT count(*) FROM v_audit", "4");
}

END_TEST

SAMPLE_MAIN("db_review", open_sample, close_sample, unexpected_results_are_recorded_and_not_delivered,
            features_count_after_acceptance, an_accepted_result_is_delivered,
            files_other_than_objects_are_not_delivered, an_end_under_review_names_no_destinations,
            an_empty_result_is_accepted_as_empty, a_rejected_result_is_never_delivered,
            a_result_replaces_others_only_after_acceptance, a_successful_job_replaces_a_review, two_of_one_series,
            late_slices_make_a_review_outdated, a_restart_keeps_the_review, a_decision_is_undone_in_its_time,
            a_decision_ends_with_its_review, a_result_that_changed_is_not_decided,
            a_correction_ends_under_review_and_takes_the_decision, a_rejected_or_repeated_correction,
            a_correction_names_its_result, an_audit_row_is_final)

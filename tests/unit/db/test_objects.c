/* Annotation objects: tied to series by their references, in versions, and removed with them. */
#include "db/retention_rows.h"

#include "tests/unit/db/sample.h"

#define DAY INT64_C(86400000)

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

/* Starts from here. */
static const struct queue_object plan = {
    .sop_instance_uid = "1.9.1",
    .sop_class_uid = "1.2.840.10008.5.1.4.1.1.481.3",
    .transfer_syntax_uid = "1.2.840.10008.1.2.1",
    .series_uid = "1.9",
    .study_uid = "1.2.3",
    .kind = "rtstruct",
    .label = "Plan",
    .description = "Structures",
    .made = "",
    .path = "series/1.9/1.9.1.dcm",
    .source = "scu:TPS",
    .sender = "TPS",
    .references = "series 1.2\n",
    .size = 1000,
};

static enum queue_arrival
add(struct queue_object object)
{
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(queue_add_object(s.queue, &object, SAMPLE_NOW, &arrival, &id), 0);
    return arrival;
}

/* Another one of the same sender. */
static struct queue_object
another(const char *series_uid, const char *sop, const char *path)
{
    struct queue_object object = plan;
    object.series_uid = series_uid;
    object.sop_instance_uid = sop;
    object.path = path;
    return object;
}

static size_t
sweep(struct queue_sweep sweep, int64_t age_ms, int64_t rows_age_ms)
{
    size_t all = 0, marked;
    const int64_t now = SAMPLE_NOW + 100 * DAY;
    for (int i = 0; i < QUEUE_STOCKS; i++)
        sweep.before_ms[i] = now - age_ms;
    sweep.before_ms[QUEUE_STOCK_ROWS] = sweep.before_ms[QUEUE_STOCK_OBJECT_ROWS] =
        rows_age_ms ? now + DAY - rows_age_ms : 0;
    sweep.why = "old";
    while (!sweep.over) {
        ck_assert_int_eq(queue_sweep(s.queue, &sweep, 3, now, &marked), 0);
        all += marked;
    }
    return all;
}

/* ---- ties ---- */

START_TEST(an_object_waits_for_its_series)
{
    ck_assert_int_eq(add(plan), QUEUE_NEW);
    assert_answer(&s, "SELECT count(*) FROM series", "0");
    assert_answer(&s, "SELECT coalesce(series_uid, 'none') FROM v_objects", "none");
    sample_series(s.queue, "1.2", 2);
    assert_answer(&s, "SELECT series_uid || kind || label || sender FROM v_objects", "1.2rtstructPlanTPS");
}

END_TEST

START_TEST(a_later_object_does_not_change_its_series)
{
    const int64_t series = sample_series(s.queue, "1.2", 2);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_int_eq(add(plan), QUEUE_NEW);
    assert_answer(&s, "SELECT state || revision || instances FROM v_series", "SETTLED12");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'OBJECT' AND series_uid = '1.2'", "rtstruct 1.9.1");
}

END_TEST

START_TEST(an_object_is_linked_by_instances_or_frame_of_reference)
{
    struct queue_object by_instance = another("1.9", "1.9.2", "series/1.9/1.9.2.dcm");
    struct queue_object by_frame = another("1.9", "1.9.3", "series/1.9/1.9.3.dcm");
    enum queue_arrival arrival;
    int64_t series;
    by_instance.references = "instance 7.7\ninstance 1.2.2\n";
    by_frame.references = "frame 1.5\n";
    add(by_instance);
    add(by_frame);
    sample_series(s.queue, "1.2", 2);
    const struct queue_instance in_frame = {.sop_instance_uid = "1.3.1",
                                            .sop_class_uid = "",
                                            .series_uid = "1.3",
                                            .frame_of_reference = "1.5",
                                            .path = "series/1.3/1.3.1.dcm",
                                            .source = "inbox:drop"};
    ck_assert_int_eq(queue_add_instance(s.queue, &in_frame, SAMPLE_NOW, &arrival, &series), 0);
    assert_answer(&s,
                  "SELECT group_concat(sop_instance_uid || '>' || series_uid) FROM "
                  "(SELECT * FROM v_objects ORDER BY 1)",
                  "1.9.2>1.2,1.9.3>1.3");
    struct queue_ids objects;
    ck_assert_int_eq(queue_series_objects(s.queue, series, &objects), 0);
    ck_assert_uint_eq(objects.count, 1);
    free(objects.at);
}

END_TEST

/* ---- again ---- */

START_TEST(a_repeated_object_is_known)
{
    struct queue_object found = plan;
    found.source = QUEUE_SOURCE_RECOVERED;
    found.sender = "";
    ck_assert_int_eq(add(found), QUEUE_NEW);
    ck_assert_int_eq(add(plan), QUEUE_RETURNED); /* the sender is new */
    ck_assert_int_eq(add(plan), QUEUE_KNOWN);
    ck_assert_int_eq(add(found), QUEUE_KNOWN);
    assert_answer(&s, "SELECT source || sender FROM v_objects", "scu:TPSTPS");
    assert_answer(&s, "SELECT count(*) FROM v_events WHERE kind = 'OBJECT'", "1");
}

END_TEST

START_TEST(a_missing_object_file_may_return)
{
    char **paths;
    size_t count;
    add(plan);
    sample_series(s.queue, "1.2", 1);
    ck_assert_int_eq(queue_paths(s.queue, "", 10, &paths, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(paths[1], plan.path);
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    ck_assert_int_eq(queue_report_missing(s.queue, plan.path, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_report_missing(s.queue, plan.path, SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT missing FROM v_objects", "1");
    assert_answer(&s, "SELECT count(*) FROM v_events WHERE kind = 'OBJECT_MISSING'", "1");
    ck_assert_int_eq(add(plan), QUEUE_RETURNED);
    assert_answer(&s, "SELECT missing FROM v_objects", "0");
}

END_TEST

START_TEST(another_file_replaces_the_object)
{
    struct queue_object newer = plan;
    newer.path = "series/1.9/1.9.1+1.dcm";
    newer.replaced = 1;
    newer.references = "series 1.3\n";
    add(plan);
    ck_assert_int_eq(add(newer), QUEUE_REPLACED);
    ck_assert_int_eq(add(plan), QUEUE_KNOWN); /* both exist after a crash */
    assert_answer(&s, "SELECT path FROM v_objects", newer.path);
    assert_answer(&s, "SELECT group_concat(uid) FROM object_reference", "1.3");
}

END_TEST

START_TEST(a_valid_file_clears_the_flag_of_its_series)
{
    const struct queue_quarantine bad = {.path = "quarantine/1/x",
                                         .original_path = "/inbox/x",
                                         .series_uid = "1.9",
                                         .sop_instance_uid = "1.9.1",
                                         .code = CODE_FILE_TRUNCATED,
                                         .message = "cut off"};
    ck_assert_int_eq(queue_add_quarantine(s.queue, &bad, SAMPLE_NOW), 0);
    add(plan);
    assert_answer(&s, "SELECT lacking FROM v_quarantine", "0");
}

END_TEST

START_TEST(the_original_of_an_object_is_recorded)
{
    struct queue_purged purged;
    const struct queue_purge purge = {.series_uid = "1.2", .by = "admin"};
    struct queue_object kept = plan, other = another("1.8", "1.8.1", "series/1.8/1.8.1.dcm");
    kept.source = other.source = "inbox:/drop";
    kept.kept = (struct queue_kept){7, 71};
    other.kept = (struct queue_kept){8, 81};
    other.original_path = "/drop/8";
    const int64_t series = sample_series(s.queue, "1.2", 1);
    add(kept);
    add(other);
    assert_kept(&s, false, INT64_MIN, 10, "7=71 8=81 ");
    assert_kept(&s, true, INT64_MIN, 10, "8=81 ");
    ck_assert_int_eq(queue_report_missing(s.queue, other.path, SAMPLE_NOW), 0);
    assert_kept(&s, false, INT64_MIN, 10, "7=71 ");
    add(other);
    /* A removed object is not accepted again while it stays unchanged. */
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    assert_kept(&s, true, INT64_MIN, 10, "7=71 8=81 ");
    sweep((struct queue_sweep){0}, 0, DAY);
    assert_answer(&s, "SELECT count(*) FROM object", "0");
    assert_kept(&s, true, INT64_MIN, 10, "7=71 8=81 ");
}

END_TEST

/* ---- versions ---- */

static void
assert_superseded(const char *sop, const char *by)
{
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT coalesce(superseded_by, '') FROM v_objects WHERE sop_instance_uid = '%s'", sop);
    assert_answer(&s, sql, by);
}

START_TEST(a_later_version_replaces_the_object)
{
    add(plan);
    add(another("1.8", "1.8.1", "series/1.8/1.8.1.dcm")); /* a series of its own, one sender */
    assert_superseded("1.9.1", "1.8.1");
    assert_superseded("1.8.1", "");
    struct queue_object old = another("1.7", "1.7.1", "series/1.7/1.7.1.dcm");
    struct queue_object young = another("1.6", "1.6.1", "series/1.6/1.6.1.dcm");
    old.label = young.label = "Dated";
    young.made = "20260131020304.000000";
    old.made = "20260130020304.000000";
    add(young);
    add(old); /* comes late */
    assert_superseded("1.6.1", "");
    assert_superseded("1.7.1", "1.6.1");
}

END_TEST

START_TEST(unrelated_objects_are_not_replaced)
{
    struct queue_object other = another("1.8", "1.8.1", "series/1.8/1.8.1.dcm");
    add(plan);
    other.sender = "TPS2";
    add(other);
    other = another("1.9", "1.9.2", "series/1.9/1.9.2.dcm");
    other.label = "Plan 2";
    add(other);
    other = another("1.9", "1.9.3", "series/1.9/1.9.3.dcm");
    other.kind = "seg";
    add(other);
    other = another("1.9", "1.9.4", "series/1.9/1.9.4.dcm");
    other.references = "series 1.3\n";
    add(other);
    assert_answer(&s, "SELECT count(*) FROM v_objects WHERE superseded_by IS NOT NULL", "0");
}

END_TEST

/* Reports of one series are independent, unless one names the other as its predecessor. */
START_TEST(a_report_names_its_predecessor)
{
    struct queue_object report = plan, next = another("1.9", "1.9.2", "series/1.9/1.9.2.dcm");
    report.kind = next.kind = "sr";
    report.label = next.label = "";
    add(report);
    add(next);
    assert_superseded("1.9.1", "");
    next = another("1.9", "1.9.3", "series/1.9/1.9.3.dcm");
    next.kind = "sr";
    next.references = "series 1.2\npredecessor 1.9.1\n";
    add(next);
    assert_superseded("1.9.1", "1.9.3");
    assert_superseded("1.9.2", "");
}

END_TEST

START_TEST(own_results_are_recognised)
{
    struct queue_object back = another("2.25.2", "1.4.1", "series/2.25.2/1.4.1.dcm");
    const int64_t job = sample_job(s.queue, "1.2");
    ck_assert_int_eq(queue_start_job(s.queue, job, "w", 1, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(sample_finish(s.queue, job), 0);
    back.kind = "seg";
    add(back);
    assert_answer(&s, "SELECT own FROM v_objects", "1");
    back.series_uid = "1.4";
    back.path = "series/1.4/2.25.1.dcm";
    back.sop_instance_uid = "2.25.1";
    add(back);
    add(plan);
    assert_answer(&s, "SELECT group_concat(own) FROM (SELECT own FROM v_objects ORDER BY path)", "1,0,1");
}

END_TEST

/* ---- what goes ---- */

START_TEST(an_object_is_removed_with_its_series)
{
    struct queue_object of_both = another("1.8", "1.8.1", "series/1.8/1.8.1.dcm");
    of_both.references = "series 1.2\nseries 1.3\n";
    of_both.label = "Both";
    add(plan);
    add(of_both);
    const int64_t first = sample_series(s.queue, "1.2", 2), other = sample_series(s.queue, "1.3", 2);
    ck_assert_int_eq(sample_settle(s.queue, first, 1), 0);
    ck_assert_uint_eq(sweep((struct queue_sweep){0}, 50 * DAY, 0), 1);
    assert_answer(&s, "SELECT group_concat(path) FROM (SELECT path FROM removal ORDER BY path)",
                  "series/1.2,series/1.9/1.9.1.dcm");
    assert_answer(&s, "SELECT label || removed_at FROM v_objects WHERE sop_instance_uid = '1.9.1'",
                  "2026-05-11T02:03:20.000Z");
    ck_assert_int_eq(sample_settle(s.queue, other, 1), 0);
    ck_assert_uint_eq(sweep((struct queue_sweep){0}, 50 * DAY, 0), 1);
    assert_answer(&s, "SELECT count(*) FROM v_objects WHERE removed_at IS NULL", "0");
    ck_assert_uint_ge(sweep((struct queue_sweep){0}, 50 * DAY, DAY / 2), 2);
    assert_answer(&s, "SELECT count(*) FROM object", "0");
    assert_answer(&s, "SELECT count(*) FROM object_reference", "0");
}

END_TEST

START_TEST(objects_without_a_series_are_removed_by_age)
{
    static const char *const keeping[] = {"scu:TPS"}; /* as of an inbox that keeps its files */
    add(plan);
    ck_assert_uint_eq(sweep((struct queue_sweep){0}, 101 * DAY, 0), 0);
    ck_assert_uint_eq(sweep((struct queue_sweep){.sources = keeping, .source_count = 1}, 50 * DAY, 0), 0);
    ck_assert_uint_eq(sweep((struct queue_sweep){0}, 50 * DAY, 0), 1);
    assert_answer(&s, "SELECT path FROM removal", plan.path);
    struct queue_object found = plan;
    found.source = QUEUE_SOURCE_RECOVERED;
    ck_assert_int_eq(add(found), QUEUE_KNOWN); /* it must still be removed */
    assert_answer(&s, "SELECT count(*) FROM removal", "1");
    ck_assert_int_eq(add(plan), QUEUE_NEW);
    assert_answer(&s, "SELECT count(*) FROM removal", "0");
    assert_answer(&s, "SELECT label || coalesce(removed_at, ' is there') FROM v_objects", "Plan is there");
}

END_TEST

START_TEST(an_object_is_purged_with_its_series)
{
    struct queue_purged purged;
    const struct queue_purge purge = {.series_uid = "1.2", .by = "admin"};
    const int64_t series = sample_series(s.queue, "1.2", 2);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    add(plan);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    assert_answer(&s, "SELECT count(*) FROM removal WHERE path = 'series/1.9/1.9.1.dcm'", "1");
    assert_answer(&s, "SELECT label || series_description FROM v_objects", "");
}

END_TEST

START_TEST(objects_removed_with_a_series_are_counted)
{
    struct queue_purged purged;
    const struct queue_purge would = {.series_uid = "1.2", .dry_run = true};
    struct queue_object both = another("1.8", "1.8.1", "series/1.8/1.8.1.dcm");
    struct queue_object beside = another("1.2", "1.2.9", "series/1.2/1.2.9.dcm");
    both.references = "series 1.2\nseries 1.3\n";
    beside.references = "series 7.7\n"; /* in its folder */
    ck_assert_int_eq(sample_settle(s.queue, sample_series(s.queue, "1.2", 2), 1), 0);
    sample_series(s.queue, "1.3", 2);
    add(plan);
    add(both);
    add(beside);
    ck_assert_int_eq(queue_purge(s.queue, &would, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.images, 2);
    ck_assert_int_eq(purged.objects, 2);
    assert_answer(&s, "SELECT count(*) FROM object WHERE removed_at IS NOT NULL", "0");
    ck_assert_int_eq(queue_purge(s.queue, &(struct queue_purge){.series_uid = "1.2"}, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.objects, 2);
    assert_answer(&s, "SELECT group_concat(sop_instance_uid) FROM object WHERE removed_at IS NOT NULL", "1.9.1,1.2.9");
}

END_TEST

START_TEST(an_object_is_purged_by_its_own_series_uid)
{
    struct queue_purged purged;
    struct queue_purge purge = {.series_uid = "1.9", .dry_run = true, .by = "admin"};
    struct queue_object kept = another("1.9", "1.9.2", "series/1.9/1.9.2.dcm");
    kept.source = "inbox:/drop";
    kept.kept = (struct queue_kept){7, 71};
    add(plan);
    add(kept);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    ck_assert_int_eq(purged.objects, 2);
    ck_assert_int_eq(purged.bytes, 2000);
    ck_assert_int_eq(purged.originals, 1);
    assert_answer(&s, "SELECT count(*) FROM removal", "0");
    purge.dry_run = false;
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
    assert_answer(&s, "SELECT count(*) FROM removal WHERE path LIKE 'series/1.9/1.9.%.dcm'", "2");
    assert_answer(&s, "SELECT count(*) FROM object WHERE removed_at IS NULL OR label <> ''", "0");
    assert_answer(&s, "SELECT group_concat(detail) FROM v_events WHERE kind = 'OBJECT_REMOVED'",
                  "purged by admin,purged by admin");
    assert_kept(&s, false, INT64_MIN, 10, "7=71 ");
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), -ENOENT);
}

END_TEST

/* ---- what waits for it ---- */

static int64_t
waiting_job(const char *series_uid, enum code code)
{
    struct queue_ids running;
    int64_t job, series = sample_series(s.queue, series_uid, 2);
    ck_assert_int_eq(sample_settle(s.queue, series, 1), 0);
    const struct queue_new_job wanted = {.series_id = series,
                                         .revision = 1,
                                         .stack = "",
                                         .pipeline = "gtv",
                                         .settings = "name = \"gtv\";",
                                         .lacks = "an RTSTRUCT from TPS",
                                         .lacks_code = code,
                                         .until_ms = SAMPLE_NOW + DAY};
    ck_assert_int_eq(queue_add_job(s.queue, &wanted, SAMPLE_NOW, &job, &running), 0);
    ck_assert_uint_eq(running.count, 0);
    ck_assert_int_eq(queue_add_job(s.queue, &wanted, SAMPLE_NOW, &job, &running), -EEXIST);
    return job;
}

static size_t
ready_at(int64_t now_ms)
{
    struct queue_job *jobs;
    size_t count;
    ck_assert_int_eq(queue_ready(s.queue, now_ms, 0, 10, "", &jobs, &count), 0);
    for (size_t i = 0; i < count; i++)
        queue_job_clear(&jobs[i]);
    free(jobs);
    return count;
}

START_TEST(a_job_waits_for_its_object)
{
    struct queue_job *jobs;
    size_t count;
    int64_t due;
    const int64_t job = waiting_job("1.2", CODE_OBJECT_WAITING);
    assert_answer(&s, "SELECT state || code || message FROM v_jobs", "DELAYEDOBJECT_WAITINGan RTSTRUCT from TPS");
    ck_assert_int_eq(queue_next_due(s.queue, &due), 0);
    ck_assert_int_eq(due, SAMPLE_NOW + DAY);
    ck_assert_int_eq(queue_bound_waits(s.queue, SAMPLE_NOW + 1, SAMPLE_NOW + 1), 0);
    ck_assert_uint_eq(ready_at(SAMPLE_NOW + DAY - 1), 0);
    ck_assert_int_eq(queue_series_jobs(s.queue, 1, &jobs, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert(jobs[0].awaits);
    queue_job_clear(&jobs[0]);
    free(jobs);
    ck_assert_int_eq(queue_job_lacks(s.queue, job, CODE_NONE, NULL, SAMPLE_NOW + 5), 0);
    assert_answer(&s, "SELECT state || code || message FROM v_jobs", "READY");
    ck_assert_int_eq(queue_job_lacks(s.queue, job, CODE_NONE, NULL, SAMPLE_NOW + 5), -EAGAIN);
    ck_assert_uint_eq(ready_at(SAMPLE_NOW + 5), 1);
}

END_TEST

START_TEST(a_job_without_its_object_fails_after_the_wait)
{
    int64_t series_id = 1;
    waiting_job("1.2", CODE_OBJECT_WAITING);
    ck_assert_uint_eq(ready_at(SAMPLE_NOW + DAY), 0);
    assert_answer(&s, "SELECT state || code || attempts FROM v_jobs", "FAILEDOBJECT_MISSING0");
    assert_answer(&s, "SELECT message LIKE 'an RTSTRUCT from TPS An object%' FROM v_jobs", "1");
    /* It arrives after all: a complete series is processed again. */
    ck_assert_int_eq(queue_revise_series(s.queue, series_id, "an object came", SAMPLE_NOW + DAY), 0);
    ck_assert_int_eq(queue_revise_series(s.queue, series_id, "an object came", SAMPLE_NOW + DAY), 1);
    assert_answer(&s, "SELECT state || revision FROM v_series", "GATHERING2");
    assert_answer(&s, "SELECT detail FROM v_events WHERE to_state = 'GATHERING' AND event > 3",
                  "an object came: revision 2");
}

END_TEST

START_TEST(a_job_runs_without_an_optional_object)
{
    waiting_job("1.2", CODE_OBJECT_OPTIONAL);
    ck_assert_uint_eq(ready_at(SAMPLE_NOW + DAY - 1), 0);
    ck_assert_uint_eq(ready_at(SAMPLE_NOW + DAY), 1);
    assert_answer(&s, "SELECT state FROM v_jobs", "READY");
}

END_TEST

START_TEST(a_waiting_job_can_be_retried_or_cancelled)
{
    const int64_t job = waiting_job("1.2", CODE_OBJECT_WAITING);
    int64_t next;
    ck_assert_int_eq(sample_retry(s.queue, job, false, &next), 0); /* an operator need not wait */
    ck_assert_int_eq(next, job);
    assert_answer(&s, "SELECT state || code FROM v_jobs", "READY");
    const int64_t other = waiting_job("1.3", CODE_OBJECT_WAITING);
    bool was_running;
    ck_assert_int_eq(queue_cancel_job(s.queue, other, SAMPLE_NOW, &was_running), 0);
    ck_assert_uint_eq(ready_at(SAMPLE_NOW + 2 * DAY), 1);
}

END_TEST

START_TEST(inputs_of_a_job_are_not_purged)
{
    struct queue_purged purged;
    const struct queue_purge purge = {.series_uid = "1.9", .by = "admin"};
    bool was_running;
    const int64_t job = waiting_job("1.2", CODE_OBJECT_WAITING);
    add(plan);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), -EAGAIN);
    ck_assert_int_eq(purged.objects, 1);
    ck_assert_int_eq(queue_cancel_job(s.queue, job, SAMPLE_NOW, &was_running), 0);
    ck_assert_int_eq(queue_purge(s.queue, &purge, SAMPLE_NOW, &purged), 0);
}

END_TEST

START_TEST(objects_are_inputs_of_their_jobs)
{
    struct queue_input *inputs;
    size_t count;
    const int64_t series = sample_series(s.queue, "1.2", 2);
    struct queue_object late = another("1.8", "1.8.1", "series/1.8/1.8.1.dcm");
    struct queue_object seg = another("1.7", "1.7.1", "series/1.7/1.7.1.dcm");
    seg.kind = "seg";
    add(plan);
    add(late);
    add(seg);
    ck_assert_int_eq(queue_object_is_input(s.queue, 1), 0); /* superseded */
    ck_assert_int_eq(queue_object_is_input(s.queue, 2), 1);
    ck_assert_int_eq(queue_report_missing(s.queue, seg.path, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_series_inputs(s.queue, series, &inputs, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(inputs[0].path, late.path);
    ck_assert_str_eq(inputs[0].kind, "rtstruct");
    ck_assert_str_eq(inputs[0].sender, "TPS");
    queue_input_clear(&inputs[0]);
    free(inputs);
}

END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        an_object_waits_for_its_series,
        a_later_object_does_not_change_its_series,
        an_object_is_linked_by_instances_or_frame_of_reference,
        a_repeated_object_is_known,
        a_missing_object_file_may_return,
        another_file_replaces_the_object,
        the_original_of_an_object_is_recorded,
        a_valid_file_clears_the_flag_of_its_series,
        a_later_version_replaces_the_object,
        unrelated_objects_are_not_replaced,
        a_report_names_its_predecessor,
        own_results_are_recognised,
        an_object_is_removed_with_its_series,
        objects_without_a_series_are_removed_by_age,
        an_object_is_purged_with_its_series,
        objects_removed_with_a_series_are_counted,
        an_object_is_purged_by_its_own_series_uid,
        inputs_of_a_job_are_not_purged,
        a_job_waits_for_its_object,
        a_job_without_its_object_fails_after_the_wait,
        a_job_runs_without_an_optional_object,
        a_waiting_job_can_be_retried_or_cancelled,
        objects_are_inputs_of_their_jobs,
    };
    return sample_run("objects", tests, sizeof tests / sizeof *tests, open_sample, close_sample);
}

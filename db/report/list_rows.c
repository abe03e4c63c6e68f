/*
 * list_rows.c - all lists, a row each: columns with their titles and SQL, the view, and the order.
 *
 * A series counts in the period in which its inspection ended, a job in that of its end, a delivery
 * in that of its latest attempt. Headings with "now" mark values of the present. Lists of the web
 * UI are sorted by their marks.
 */
#include "db/pull_queue.h"
#include "db/queue/queue_private.h"
#include "db/report/report_private.h"

enum {
    TEXT = REPORT_TEXT,
    NUMBER = REPORT_NUMBER,
    WHOLE = REPORT_WHOLE,
    DROP = REPORT_DROP,
    SPARE = REPORT_SPARE,
    TIME = REPORT_TIME,
    SHARE = REPORT_SHARE,
    HIDDEN = REPORT_HIDDEN | REPORT_BELOW,
    REMEDY = REPORT_REMEDY,
    BELOW = REPORT_BELOW,
    SILENT = REPORT_SILENT
};

/* A column of the view, or an expression over it. */
#define COLUMN(key_, title_, form_)                                                                                    \
    {                                                                                                                  \
#key_, (title_), (form_), #key_                                                                                \
    }
#define AS(key_, title_, form_, sql_)                                                                                  \
    {                                                                                                                  \
#key_, (title_), (form_), (sql_)                                                                               \
    }
#define COUNT(condition) "count(*) FILTER (WHERE " condition ")"
#define COLUMNS(of)      .columns = (of), .column_count = COLUMN_COUNT(of)

/* Lines that many lists have. */
#define MESSAGE     COLUMN(message, "message", TEXT | BELOW)
#define TO_DO       AS(to_do, "remedy", REMEDY | BELOW, "code")
#define MODALITY    COLUMN(modality, "modality", TEXT | BELOW)
#define DESCRIPTION COLUMN(series_description, "description", TEXT | BELOW)
#define SERIES_UID  COLUMN(series_uid, "series", TEXT | BELOW)

/* The unit of a segment's values, and its box and centroid in patient coordinates (LPS). */
#define UNIT      "replace(unit, '[hnsf''U]', 'HU')"
#define OF_VOXELS "CASE WHEN voxels > 0 THEN printf("
/* Adding 0 makes no negative zero. */
#define TENTH(mm) "round(" mm ", 1) + 0.0"
#define CENTROID                                                                                                       \
    "iif(x_mm IS NULL, NULL, printf('%.1f, %.1f, %.1f', " TENTH("x_mm") ", " TENTH("y_mm") ", " TENTH("z_mm") "))"

/* ------------------------------------------------------------------- tables of a report period */

/* A total per hour of the period. */
#define PER_HOUR(total) "(SELECT round((" total ") / ((julianday(until) - julianday(since)) * 24.0), 1) FROM period)"

#define REFUSED_IN      "code NOT IN ('', 'NO_RULE')"
#define UNRULED_IN      "state = 'SETTLED' AND code = 'NO_RULE' AND jobs = 0"
#define IN_PERIOD       "WHERE quarantined_at >= ?1 AND quarantined_at < ?2 "

/* Rows with total_seconds, by `group`; `middle`: the one or two in the middle. */
#define RANKED(group)                                                                                                  \
    "(SELECT pipeline, state, total_seconds, 2 * row_number() OVER (PARTITION BY " group                               \
    " ORDER BY total_seconds IS NULL, total_seconds) - 1 - count(total_seconds) OVER "                                 \
    "(PARTITION BY " group ") BETWEEN -1 AND 1 AS middle FROM ended)"
#define MEDIAN  "round(avg(total_seconds) FILTER (WHERE middle), 2)"
#define LONGEST "round(max(total_seconds), 2)"

static const struct report_column period_series[] = {
    AS(settled, "complete", NUMBER, COUNT("state = 'SETTLED'")),
    AS(refused, "refused", NUMBER, COUNT("state = 'REFUSED'")),
    AS(in_part, "partly refused", NUMBER | SILENT, COUNT("state = 'SETTLED' AND " REFUSED_IN)),
    AS(unruled, "without a rule", NUMBER | SILENT, COUNT(UNRULED_IN)),
    AS(instances, "instances", NUMBER, "coalesce(sum(instances), 0)"),
    AS(series_per_hour, "series per hour", NUMBER, PER_HOUR("SELECT count(*) FROM settled")),
    AS(instances_per_hour, "instances per hour", NUMBER, PER_HOUR("SELECT coalesce(sum(instances), 0) FROM settled")),
    AS(gathering, "being received now", NUMBER | SILENT, "(SELECT series_gathering FROM v_night)"),
};

static const struct report_column period_jobs[] = {
    AS(done, "done", NUMBER, COUNT("state = 'DONE'")),
    AS(empty, "empty", NUMBER | SILENT, COUNT("state = 'EMPTY'")),
    AS(review, "under review", NUMBER | SILENT, COUNT("state = 'REVIEW'")),
    AS(rejected, "rejected", NUMBER | SILENT, COUNT("state = 'REJECTED'")),
    AS(failed, "failed", NUMBER, COUNT("state = 'FAILED'")),
    AS(cancelled, "cancelled", NUMBER | SILENT, COUNT("state = 'CANCELLED'")),
    AS(median_seconds, "s (median)", NUMBER, MEDIAN),
    AS(longest_seconds, "s (longest)", NUMBER, LONGEST),
    AS(waiting, "waiting now", NUMBER | SILENT, "(SELECT backlog_jobs FROM v_night)"),
};

static const struct report_column period_deliveries[] = {
    AS(sent, "sent", NUMBER,
       "(SELECT count(*) FROM v_deliveries WHERE state = 'SENT' AND sent_at >= ?1 AND sent_at < ?2)"),
    AS(failed, "failed", NUMBER, COUNT("state = 'FAILED'")),
    AS(committed, "committed", NUMBER | SILENT, COUNT("commitment = 'COMMITTED'")),
    AS(waiting, "waiting now", NUMBER | SILENT,
       "(SELECT deliveries_pending + deliveries_sending + deliveries_delayed FROM v_night)"),
};

static const struct report_column period_files[] = {AS(quarantined, "quarantined", NUMBER, "count(*)")};

static const struct report_column period_disk[] = {
    AS(free_gib, "GiB free now", NUMBER, "round(free_mib / 1024.0, 1)"),
    AS(full_days, "days until full", NUMBER, "disk_full_days"),
};

static const struct report_column period_failed[] = {
    COLUMN(code, "CODE", TEXT),
    AS(jobs, "JOBS", NUMBER, "count(*)"),
    AS(pipelines, "PIPELINES", TEXT, "group_concat(DISTINCT pipeline)"),
    AS(job, "EXAMPLE", NUMBER, "max(job)"),
    SERIES_UID,
    MESSAGE,
    TO_DO,
};

static const struct report_column period_review[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(modality, "MODALITY", TEXT),
    AS(since, "SINCE", TIME, "since_at"),
    DESCRIPTION,
    SERIES_UID,
    COLUMN(message, "finding", TEXT | BELOW),
    COLUMN(preview_path, "preview", TEXT | BELOW),
};

static const struct report_column period_undelivered[] = {
    COLUMN(destination, "DESTINATION", TEXT),
    COLUMN(state, "STATE", TEXT),
    COLUMN(code, "CODE", TEXT),
    AS(results, "RESULTS", NUMBER, "count(*)"),
    AS(delivery, "EXAMPLE", NUMBER, "max(delivery)"),
    MESSAGE,
    TO_DO,
    /* those that will be tried again count in any period */
    AS(tried_since, "", HIDDEN, "iif(state = 'DELAYED', NULL, ?1)"),
    AS(tried_before, "", HIDDEN, "iif(state = 'DELAYED', NULL, ?2)"),
};

static const struct report_column period_unpulled[] = {
    COLUMN(source, "SOURCE", TEXT),
    COLUMN(state, "STATE", TEXT),
    COLUMN(code, "CODE", TEXT),
    AS(items, "ITEMS", NUMBER, "count(*)"),
    AS(batch, "BATCH", NUMBER, "max(batch)"),
    MESSAGE,
    TO_DO,
};

static const struct report_column period_refused[] = {
    COLUMN(code, "CODE", TEXT),
    AS(series, "SERIES", NUMBER, "count(*)"),
    AS(in_part, "PARTLY REFUSED", NUMBER, COUNT("state = 'SETTLED'")),
    COLUMN(series_uid, "example", TEXT | BELOW),
    DESCRIPTION,
    MESSAGE,
    TO_DO,
};

static const struct report_column period_quarantined[] = {
    COLUMN(code, "CODE", TEXT),
    AS(files, "FILES", NUMBER, "count(*)"),
    AS(example, "example", TEXT | BELOW, "'noctule quarantine show ' || quarantine"),
    AS(series_uid, "series", TEXT | BELOW, "nullif(series_uid, '')"),
    MESSAGE,
    TO_DO,
};

static const struct report_column period_senders[] = {
    COLUMN(sender, "SENDER", TEXT),
    COLUMN(station, "STATION", TEXT),
    AS(refused, "REFUSED", NUMBER, COUNT(REFUSED_IN)),
    AS(series, "SERIES", NUMBER, "count(*)"),
    AS(scanner, "scanner", TEXT | BELOW, "nullif(trim(manufacturer || ' ' || model), '')"),
    AS(institution, "institution", TEXT | BELOW, "nullif(institution, '')"),
    AS(codes, "codes", TEXT | BELOW, "group_concat(DISTINCT iif(" REFUSED_IN ", code, NULL))"),
    AS(manufacturer, "", HIDDEN, "manufacturer"),
    AS(model, "", HIDDEN, "model"),
    AS(site, "", HIDDEN, "institution"),
};

static const struct report_column period_callers[] = {
    AS(calling, "CALLER", TEXT, "calling_ae"), COLUMN(host, "ADDRESS", TEXT),   AS(called, "CALLED", TEXT, "called_ae"),
    COLUMN(rejected, "TIMES", NUMBER),         COLUMN(meaning, "REASON", TEXT), COLUMN(admit, "TO ADMIT IT", TEXT),
};

static const struct report_column period_unruled[] = {
    COLUMN(modality, "MODALITY", TEXT),
    COLUMN(body_part, "BODY PART", TEXT),
    COLUMN(sender, "SENDER", TEXT),
    AS(series, "SERIES", NUMBER, "count(*)"),
    DESCRIPTION,
    COLUMN(series_uid, "example", TEXT | BELOW),
};

static const struct report_column period_pulled[] = {
    COLUMN(source, "SOURCE", TEXT),
    AS(done, "DONE", NUMBER, COUNT("state = 'DONE'")),
    AS(not_found, "NOT FOUND", NUMBER, COUNT("state = 'NOT_FOUND'")),
    AS(partial, "PARTIAL", NUMBER, COUNT("state = 'PARTIAL'")),
    AS(failed, "FAILED", NUMBER, COUNT("state = 'FAILED'")),
    AS(waiting, "WAITING NOW", NUMBER, COUNT("ended_at IS NULL")),
    AS(instances, "INSTANCES", NUMBER, "sum(arrived)"),
};

static const struct report_column period_pipelines[] = {
    COLUMN(pipeline, "PIPELINE", TEXT),
    AS(done, "DONE", NUMBER, COUNT("state = 'DONE'")),
    AS(empty, "EMPTY", NUMBER, COUNT("state = 'EMPTY'")),
    AS(review, "REVIEW", NUMBER, COUNT("state = 'REVIEW'")),
    AS(failed, "FAILED", NUMBER, COUNT("state = 'FAILED'")),
    AS(median_seconds, "MEDIAN (s)", NUMBER, MEDIAN),
    AS(longest_seconds, "LONGEST (s)", NUMBER, LONGEST),
};

/* Volumes, and the mean of the means, of segments with voxels. */
static const struct report_column period_segments[] = {
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(label, "SEGMENT", TEXT),
    AS(found, "FOUND", NUMBER, COUNT("voxels > 0")),
    AS(empty, "EMPTY", NUMBER, COUNT("voxels = 0")),
    AS(median_ml, "MEDIAN (ml)", NUMBER, "round(avg(volume_ml) FILTER (WHERE middle), 2)"),
    AS(min_ml, "min (ml)", NUMBER | BELOW, "round(min(volume_ml) FILTER (WHERE voxels > 0), 2)"),
    AS(max_ml, "max (ml)", NUMBER | BELOW, "round(max(volume_ml) FILTER (WHERE voxels > 0), 2)"),
    AS(mean, "mean", NUMBER | BELOW, "CAST(printf('%.6g', avg(mean)) AS REAL)"),
    AS(unit, "unit", TEXT | BELOW, "iif(unit = '1', '', " UNIT ")"),
};

/* `middle`: the one or two in the middle. */
#define MEASURED                                                                                                       \
    "(SELECT pipeline, segment, label, unit, voxels, volume_ml, mean, voxels > 0 AND "                                 \
    "2 * row_number() OVER (PARTITION BY pipeline, label, unit ORDER BY voxels = 0, volume_ml) "                       \
    "- 1 - count(*) FILTER (WHERE voxels > 0) OVER (PARTITION BY pipeline, label, unit) "                              \
    "BETWEEN -1 AND 1 AS middle FROM v_segments WHERE measured_at >= ?1 AND measured_at < ?2 "                         \
    "AND state IN ('DONE', 'EMPTY') AND superseded_by IS NULL)"

static const struct report_column period_compute[] = {
    COLUMN(backend, "BACKEND", TEXT),
    AS(jobs, "JOBS", NUMBER, "count(*)"),
    AS(busy_seconds, "BUSY (s)", NUMBER, "round(sum(total_seconds), 1)"),
    AS(compute_seconds, "COMPUTING (s)", NUMBER, "round(sum(compute_seconds), 1)"),
    /* averaged over the time */
    AS(lanes, "BUSY LANES", NUMBER,
       "round(sum(total_seconds) / max(1.0, (julianday(?2) - julianday(?1)) * 86400.0), 3)"),
    AS(peak_mib, "PEAK (MiB)", NUMBER, "max(peak_mib)"),
};

static const struct report_column period_slowest[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(pipeline, "PIPELINE", TEXT),
    AS(total_seconds, "RUN TIME (s)", NUMBER, "round(total_seconds, 2)"),
    AS(read_seconds, "READ (s)", NUMBER, "round(read_seconds, 2)"),
    AS(compute_seconds, "COMPUTE (s)", NUMBER, "round(compute_seconds, 2)"),
    AS(write_seconds, "WRITE (s)", NUMBER, "round(write_seconds, 2)"),
    SERIES_UID,
};

#define COUNT_OF_HOUR(rows, condition) "(SELECT count(*) FROM " rows " i WHERE i.n = s.n AND " condition ")"

static const struct report_column period_hours[] = {
    AS(at, "FROM", TIME, "strftime('%Y-%m-%dT%H:%M:%fZ', julianday(?1) + s.n * ?3 / 86400.0)"),
    AS(accepted, "ACCEPTED", NUMBER, COUNT_OF_HOUR("series_in", "NOT bad")),
    AS(refused, "REFUSED", NUMBER, COUNT_OF_HOUR("series_in", "bad")),
    AS(done, "JOBS", NUMBER, COUNT_OF_HOUR("jobs_in", "NOT bad")),
    AS(failed, "FAILED", NUMBER, COUNT_OF_HOUR("jobs_in", "bad")),
    AS(free_gib, "FREE (GiB)", NUMBER, "(SELECT round(free_mib / 1024.0, 1) FROM disk_in i WHERE i.n = s.n)"),
};

#define STEP_OF(time) "CAST((julianday(" time ") - julianday(?1)) * 86400.0 / ?3 + 1e-6 AS INTEGER)"
#define HOURS                                                                                                          \
    ", steps (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM steps "                                                      \
    "  WHERE julianday(?1) + (n + 1) * ?3 / 86400.0 < julianday(?2) - 1e-8), "                                         \
    "series_in AS (SELECT " STEP_OF(                                                                                   \
        "settled_at") " AS n, state = 'REFUSED' AS bad FROM settled),"                                                 \
                      "jobs_in AS (SELECT " STEP_OF(                                                                   \
                          "ended_at") " AS n, state = 'FAILED' AS bad FROM ended), "                                   \
                                      "disk_in AS (SELECT " STEP_OF(                                                   \
                                          "at") " AS n, min(free_mib) AS free_mib FROM v_disk "                        \
                                                "  WHERE at >= ?1 AND at < ?2 GROUP BY 1) "

/* ------------------------------------------------------------------------- lists of the web UI */

#define MOST " LIMIT ?5"
/* Newest first: the mark is a time, then a key that distinguishes rows of one time. */
#define BY_TIME(condition, time, key)                                                                                  \
    .tail = "WHERE " condition "(?1 = '' OR " time " <= substr(?1, 1, 24) AND " time " || ' ' || " key                 \
            " < ?1) ORDER BY " time " DESC, " key " DESC" MOST,                                                        \
    .mark = time " || ' ' || " key
#define BY_NUMBER(condition, number)                                                                                   \
    .tail = "WHERE " condition "(?1 = '' OR " number " < CAST(?1 AS INTEGER)) ORDER BY " number " DESC" MOST,          \
    .mark = (number)

/* Counts of the menu. */
static const struct report_column web_bar[] = {
    AS(review, "to review", NUMBER, "(SELECT count(*) FROM job WHERE state = 'REVIEW')"),
    AS(undelivered, "not delivered", NUMBER,
       "(SELECT count(*) FROM delivery WHERE state IN ('PENDING', 'SENDING', 'DELAYED', 'FAILED', 'REVIEW'))"),
};

/* Counts of the last 24 hours and of waiting work. Each must equal the rows of a list: service/web/pages/web_overview.c has its address. */
#define LATEST " AND superseded_by IS NULL"
/*
 * With a limit, SQLite computes no other columns of the view. It searches the indexes of both halves only for a
 * constant. A time must therefore be an expression of 'now', never a query.
 */
#define FLAT                  " LIMIT -1)"
#define WORK_COUNT(condition) "(SELECT count(*) FROM (SELECT 1 FROM v_work WHERE " condition FLAT ")"
#define AGO                   "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours')"
#define WEEK_AGO              "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-7 days')"

#define OF_REVIEW             COUNT("state = 'REVIEW'")
#define OF_FAILED             COUNT("state = 'FAILED'")
#define OF_REFUSED            COUNT("state = 'REFUSED'")
#define OF_NO_JOB             COUNT("state = 'NO_JOB'")
#define OF_OTHERS             COUNT("state NOT IN ('REVIEW', 'FAILED')")

/*
 * Work since a time, per step (the first characters of a time): `came` by its arrival, `went` by its end. Jobs are counted in
 * their indexes, which the view would not allow.
 */
#define BY_STEP(length, first)                                                                                         \
    "came AS MATERIALIZED (SELECT substr(at, 1, " length ") AS step, count(*) AS n FROM (SELECT created_at AS at "     \
    "FROM job WHERE created_at >= " first LATEST " UNION ALL SELECT at FROM v_work WHERE work < 0 AND at >= " first    \
    ") GROUP BY 1), "                                                                                                  \
    "went AS MATERIALIZED (SELECT substr(ended_at, 1, " length ") AS step, " OF_OTHERS " AS done, " OF_REVIEW          \
    " AS review, " OF_FAILED " AS failed FROM job WHERE ended_at >= " first LATEST " GROUP BY 1) "
#define CAME(length)        "coalesce((SELECT n FROM came c WHERE c.step = substr(s.at, 1, " length ")), 0)"
#define WENT(count, length) "coalesce((SELECT " count " FROM went w WHERE w.step = substr(s.at, 1, " length ")), 0)"

static const struct report_column web_flow[] = {
    AS(received, "received", NUMBER, WORK_COUNT("at >= " AGO LATEST)),
    AS(receiving, "being received", NUMBER, WORK_COUNT("state = 'GATHERING'")),
    AS(refused, "refused", NUMBER, WORK_COUNT("state = 'REFUSED' AND at >= " AGO)),
    AS(no_job, "without a job", NUMBER, WORK_COUNT("state = 'NO_JOB' AND at >= " AGO)),
    AS(ended, "processed", NUMBER, WORK_COUNT("ended_at >= " AGO LATEST)),
    AS(running, "running", NUMBER, WORK_COUNT("state = 'RUNNING'")),
    AS(waiting, "waiting", NUMBER, WORK_COUNT("state IN ('READY', 'DELAYED')")),
    AS(failed, "failed", NUMBER, WORK_COUNT("state = 'FAILED' AND ended_at >= " AGO LATEST)),
    AS(review, "to review", NUMBER, WORK_COUNT("state = 'REVIEW'")),
    AS(rejected, "rejected", NUMBER, WORK_COUNT("state = 'REJECTED' AND ended_at >= " AGO)),
    AS(review_since, "oldest", TIME, "(SELECT min(since_at) FROM v_review)"),
    AS(sent, "delivered", NUMBER, "(SELECT deliveries_sent_24h FROM v_night)"),
    AS(uncommitted, "not committed", NUMBER, "(SELECT count(*) FROM v_deliveries WHERE commitment = 'REQUESTED')"),
    AS(unsent, "waiting", NUMBER, "(SELECT deliveries_pending + deliveries_sending + deliveries_delayed FROM v_night)"),
    AS(undelivered, "failed", NUMBER, "(SELECT deliveries_failed FROM v_night)"),
    AS(series, "series ever received", NUMBER, "EXISTS (SELECT 1 FROM v_series)"),
};

static const struct report_column web_hours[] = {
    COLUMN(at, "FROM", TIME),
    AS(received, "RECEIVED", NUMBER, CAME("13")),
    AS(done, "DONE", NUMBER, WENT("done", "13")),
    AS(review, "REVIEW", NUMBER, WENT("review", "13")),
    AS(failed, "FAILED", NUMBER, WENT("failed", "13")),
};

/* The last 24 whole hours, this one included. Jobs count in the hour of their end. */
#define FIRST_HOUR "strftime('%Y-%m-%dT%H:00:00.000Z', 'now', '-23 hours')"
#define LAST_HOURS                                                                                                     \
    ", numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 23), "                                   \
    "steps AS (SELECT strftime('%Y-%m-%dT%H:00:00.000Z', " FIRST_HOUR ", '+' || n || ' hours') AS at "                 \
    "FROM numbers), " BY_STEP("13", FIRST_HOUR)

static const struct report_column web_pipeline_work[] = {
    COLUMN(pipeline, "PIPELINE", TEXT),
    AS(work, "WORK", NUMBER, "count(*)"),
};

static const struct report_column web_backlog[] = {
    COLUMN(pipeline, "PIPELINE", TEXT),
    AS(ready, "READY", NUMBER, "jobs_ready"),
    AS(delayed, "DELAYED", NUMBER, "jobs_delayed"),
    AS(running, "RUNNING", NUMBER, "jobs_running"),
    AS(waits, "WAITS FOR", TEXT,
       "CASE WHEN is_held THEN 'its release' WHEN window_opens_at IS NOT NULL THEN 'its window, opens ' || "
       "window_opens_at WHEN jobs_ready = 0 AND jobs_delayed > 0 THEN 'other input or the next attempt' "
       "WHEN jobs_ready > 0 THEN 'a lane' END"),
    AS(about, "DONE ABOUT", TIME,
       "iif(eta_seconds > 0.0, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+' || eta_seconds || ' seconds'), NULL)"),
    AS(late, "LATE", NUMBER | SILENT, "jobs_late"),
};

static const struct report_column web_machine[] = {
    AS(free_mib, "free", NUMBER, "free_mib"),
    COLUMN(free_at, "measured", TIME),
    AS(full_days, "days until full", NUMBER, "disk_full_days"),
    COLUMN(compute, "compute", TEXT),
    AS(per_hour, "jobs per hour", NUMBER,
       "(SELECT count(*) FROM v_jobs WHERE ended_at >= "
       "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hours'))"),
    AS(report, "last report", TEXT, "(SELECT night FROM v_nights ORDER BY until_at DESC LIMIT 1)"),
    AS(reported, "its state", TEXT, "(SELECT report FROM v_nights ORDER BY until_at DESC LIMIT 1)"),
};

static const struct report_column web_configuration[] = {
    AS(state, "STATE", TEXT, "iif(state = 'LOADED', 'in force', 'refused')"),
    COLUMN(at, "AT", TIME),
    COLUMN(cause, "CAUSE", TEXT),
    AS(by, "REQUESTED BY", TEXT, "asked_by"),
    AS(since, "refused since", TIME | BELOW, "iif(state = 'REFUSED', since_at, NULL)"),
    COLUMN(reason, "reason", TEXT | BELOW),
    AS(files, "files", TEXT | BELOW, "replace(files, char(10), ', ')"),
    AS(main, "main file", TEXT | BELOW, "substr(files, 1, instr(files || char(10), char(10)) - 1)"),
};

/* The progress is estimated from the time of the pipeline's jobs in the last 24 hours. */
static const struct report_column web_running[] = {
    COLUMN(job, "JOB", NUMBER),
    AS(pipeline, "PIPELINE", TEXT, "r.pipeline"),
    COLUMN(stage, "STAGE", TEXT), /* as the worker reports it */
    AS(share, "ESTIMATE", SHARE, "round(min(r.seconds / max(u.seconds, 0.001), 0.99), 2)"),
    AS(seconds, "RUN TIME (s)", NUMBER, "round(r.seconds, 1)"),
    COLUMN(stage_since, "in this stage since", TIME | BELOW),
    AS(usual, "usual (s)", NUMBER | BELOW, "round(u.seconds, 1)"),
    AS(started, "started", TIME | BELOW, "started_at"),
    COLUMN(executor, "executor", TEXT | BELOW),
    COLUMN(slurm_id, "Slurm job", NUMBER | BELOW),
    COLUMN(node, "node", TEXT | BELOW),
    COLUMN(slurm_reason, "Slurm reason", TEXT | BELOW),
    MODALITY,
    DESCRIPTION,
    SERIES_UID,
};

#define RUNNING                                                                                                        \
    ", usual AS MATERIALIZED (SELECT pipeline, "                                                                       \
    "avg((julianday(ended_at) - julianday(started_at)) * 86400.0) AS seconds FROM v_jobs "                             \
    "WHERE ended_at >= " AGO " AND started_at IS NOT NULL "                                                            \
    "AND state IN ('DONE', 'EMPTY', 'REVIEW') GROUP BY pipeline), "                                                    \
    "running AS (SELECT *, max(0.0, (julianday('now') - julianday(started_at)) * 86400.0) "                            \
    "AS seconds FROM v_jobs WHERE state = 'RUNNING') "

static const struct report_column program_columns[] = {
    COLUMN(program, "PROGRAM", TEXT),
    COLUMN(state, "STATE", TEXT),
    COLUMN(sandbox, "SANDBOX", DROP),
    COLUMN(running, "RUNNING", NUMBER),
    COLUMN(waiting, "WAITING", NUMBER),
    COLUMN(runs, "RUNS (7 d)", NUMBER),
    COLUMN(failed, "FAILED", NUMBER),
    COLUMN(starts, "STARTS", NUMBER | DROP),
    AS(median, "MEDIAN (s)", NUMBER | DROP, "printf('%.1f', median_seconds)"),
    AS(longest, "MAX (s)", NUMBER | DROP, "printf('%.1f', max_seconds)"),
    AS(peak, "PEAK (MiB)", NUMBER | DROP, "max_peak_mib"),
    COLUMN(code, "CODE", TEXT),
    COLUMN(message, "MESSAGE", TEXT),
};

static const struct report_column web_program_runs[] = {
    COLUMN(run, "RUN", NUMBER),
    COLUMN(program, "PROGRAM", TEXT),
    COLUMN(state, "STATE", TEXT),
    COLUMN(code, "CODE", TEXT),
    AS(jobs, "JOBS WAITING", NUMBER, "jobs_waiting"),
    AS(started, "started", TIME | BELOW, "started_at"),
    AS(not_before, "not before", TIME | BELOW, "not_before_at"),
    AS(total, "run time (s)", NUMBER | BELOW, "round(total_seconds, 1)"),
    AS(peak, "peak (MiB)", NUMBER | BELOW, "peak_mib"),
    AS(ran_as, "ran as", TEXT | BELOW, "nullif(ran_as, '')"),
    MESSAGE,
    TO_DO,
    MODALITY,
    SERIES_UID,
};

static const struct report_column web_review[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(modality, "MODALITY", TEXT),
    AS(since, "SINCE", TIME, "since_at"),
    AS(message, "finding", TEXT | BELOW,
       "CASE WHEN correction_job NOTNULL THEN 'a person corrected it: job ' || correction_job "
       "WHEN corrects NOTNULL THEN 'corrects job ' || corrects || ': ' || message ELSE message END"),
    AS(outdated, "outdated", TEXT | BELOW,
       "iif(outdated, 'late slices have arrived since: it can only be rejected', NULL)"),
    DESCRIPTION,
    SERIES_UID,
};

static const struct report_column web_job_state[] = {
    COLUMN(state, "STATE", TEXT),
    COLUMN(priority, "PRIORITY", NUMBER),
    AS(held, "HELD", NUMBER, "EXISTS (SELECT 1 FROM hold h WHERE h.kind = 'job' AND h.name = CAST(job AS TEXT))"),
    AS(superseded, "SUPERSEDED", NUMBER, "superseded_by IS NOT NULL"),
};

/* Decisions that can still be undone. */
static const struct report_column web_review_decided[] = {
    COLUMN(job, "JOB", NUMBER),       COLUMN(pipeline, "PIPELINE", TEXT),   COLUMN(decision, "DECISION", TEXT),
    AS(by, "BY", TEXT, "decided_by"), AS(final, "FINAL", TIME, "final_at"),
};

static const struct report_column web_review_job[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(stack, "STACK", TEXT),
    SERIES_UID,
    DESCRIPTION,
    COLUMN(version, "VERSION", TEXT),
    COLUMN(outdated, "OUTDATED", NUMBER),
    COLUMN(decision, "DECISION", TEXT),
    AS(by, "BY", TEXT, "decided_by"),
    COLUMN(correction_job, "CORRECTION", NUMBER),
    AS(place, "PLACE", NUMBER, "(SELECT count(*) FROM v_review w WHERE w.decision = '' AND w.job <= r.job)"),
    AS(waiting, "WAITING", NUMBER, "(SELECT count(*) FROM v_review w WHERE w.decision = '')"),
    AS(previous, "PREVIOUS", NUMBER, "(SELECT max(job) FROM v_review w WHERE w.decision = '' AND w.job < r.job)"),
    AS(next, "NEXT", NUMBER, "(SELECT min(job) FROM v_review w WHERE w.decision = '' AND w.job > r.job)"),
};

/* The result itself, that of an earlier revision, and the last one of the same patient that is DONE. */
#define EARLIER_COLUMNS                                                                                                \
    "j.id AS job, j.revision AS revision, j.state AS state, j.ended_at AS ended_at, "                                  \
    "(SELECT label FROM segment WHERE job_id = j.id ORDER BY number LIMIT 1) AS label, "                               \
    "(SELECT volume_ml FROM segment WHERE job_id = j.id ORDER BY number LIMIT 1) AS volume_ml "
#define EARLIER                                                                                                        \
    ", here AS (SELECT j.id, j.series_id, j.revision, j.pipeline, j.stack, s.patient_id FROM job j "                   \
    "JOIN series s ON s.id = j.series_id WHERE j.id = ?2), "                                                           \
    "before AS (SELECT 'this' AS which, " EARLIER_COLUMNS "FROM job j JOIN here h ON j.id = h.id "                     \
    "UNION ALL SELECT * FROM (SELECT 'revision', " EARLIER_COLUMNS                                                     \
    "FROM job j JOIN here h ON j.series_id = h.series_id AND j.revision < h.revision AND j.pipeline = h.pipeline "     \
    "AND j.stack = h.stack WHERE j.state IN ('DONE', 'EMPTY', 'REJECTED') ORDER BY j.id DESC LIMIT 1) "                \
    "UNION ALL SELECT * FROM (SELECT 'patient', " EARLIER_COLUMNS                                                      \
    "FROM here h CROSS JOIN series s ON s.patient_id = h.patient_id AND s.patient_id <> '' AND s.id <> h.series_id "   \
    "CROSS JOIN job j ON j.series_id = s.id AND j.pipeline = h.pipeline WHERE j.state = 'DONE' "                       \
    "ORDER BY j.ended_at DESC, j.id DESC LIMIT 1)) "

static const struct report_column web_review_before[] = {
    COLUMN(which, "WHICH", TEXT),
    COLUMN(job, "JOB", NUMBER),
    COLUMN(revision, "REVISION", NUMBER),
    COLUMN(state, "STATE", TEXT),
    AS(ended, "ENDED", TIME, "ended_at"),
    COLUMN(label, "SEGMENT", TEXT),
    AS(volume, "VOLUME", TEXT, "iif(volume_ml IS NULL, NULL, printf('%.1f ml', volume_ml))"),
    AS(change, "CHANGE", TEXT,
       "(SELECT printf('%+.0f %%', 100.0 * (t.volume_ml / b.volume_ml - 1)) FROM before t WHERE t.which = 'this' "
       "AND b.which <> 'this' AND t.label = b.label AND b.volume_ml > 0)"),
};

/* The last correction of a job, or the job itself if it is one. */
#define CORRECTION                                                                                                     \
    ", pair AS (SELECT id, corrects, correction FROM job WHERE corrects NOTNULL AND id = coalesce("                    \
    "(SELECT id FROM job WHERE id = ?2 AND corrects NOTNULL), (SELECT max(id) FROM job WHERE corrects = ?2))) "

static const struct report_column web_correction[] = {
    AS(job, "JOB", NUMBER, "p.id"),
    AS(corrects, "CORRECTS", NUMBER, "p.corrects"),
    AS(state, "STATE", TEXT, "(SELECT state FROM job WHERE id = p.id)"),
    AS(reviewed_by, "REVIEWED BY", TEXT, "(SELECT reviewed_by FROM job WHERE id = p.id)"),
    AS(person, "PERSON", TEXT, "o.person"),
    AS(kind, "KIND", TEXT, "o.kind"),
    AS(sender, "SENDER", TEXT, "o.sender"),
    AS(uploader, "UPLOADED BY", TEXT, "iif(substr(o.source, 1, 4) = 'web:', substr(o.source, 5), NULL)"),
    AS(label, "SEGMENT", TEXT, "n.label"),
    AS(method, "METHOD", TEXT, "n.method"),
    AS(before, "BEFORE (ml)", NUMBER, "iif(b.volume_ml IS NULL, NULL, printf('%.2f', b.volume_ml))"),
    AS(after, "AFTER (ml)", NUMBER, "iif(n.volume_ml IS NULL, NULL, printf('%.2f', n.volume_ml))"),
    AS(change, "CHANGE", TEXT,
       "iif(b.volume_ml > 0, printf('%+.1f %%', 100.0 * (n.volume_ml / b.volume_ml - 1)), NULL)"),
};

static const struct report_column web_uploads[] = {
    COLUMN(person, "PERSON", TEXT),
    AS(since, "SINCE", TIME, "uploaded_at"),
};

static const struct report_column web_review_reasons[] = {
    COLUMN(reason, "REASON", TEXT),
};

static const struct report_column web_quarantined[] = {
    AS(number, "FILE", NUMBER, "quarantine"),
    COLUMN(code, "CODE", TEXT),
    AS(from, "FROM", TEXT, "coalesce(nullif(sender, ''), 'inbox')"),
    AS(at, "AT", TIME, "quarantined_at"),
    MESSAGE,
    TO_DO,
    COLUMN(path, "file", TEXT | BELOW),
    SERIES_UID,
};

static const struct report_column web_destination_holds[] = {
    COLUMN(name, "DESTINATION", TEXT),
    COLUMN(held_by, "BY", TEXT),
};

static const struct report_column web_deliveries[] = {
    COLUMN(delivery, "DELIVERY", NUMBER),
    COLUMN(state, "STATE", TEXT),
    COLUMN(destination, "DESTINATION", TEXT),
    COLUMN(job, "JOB", NUMBER),
    COLUMN(code, "code", TEXT | BELOW),
    MESSAGE,
    TO_DO,
    COLUMN(kind, "result", TEXT | BELOW),
    COLUMN(attempts, "attempts", NUMBER | BELOW),
    AS(last, "last", TIME | BELOW, "coalesce(sent_at, started_at)"),
    AS(not_before, "not before", TIME | BELOW, "not_before_at"),
    COLUMN(held, "held", TEXT | BELOW),
    AS(commitment, "commitment", TEXT | BELOW, "nullif(commitment, 'NONE')"),
    COLUMN(sop_instance_uid, "instance", TEXT | BELOW),
};

/* By batch. `noctule pull` lists the items, as far as `identifiers` allows. */
static const struct report_column web_pulling[] = {
    AS(batch, "BATCH", NUMBER, "b.batch"),
    COLUMN(source, "SOURCE", TEXT),
    COLUMN(under_way, "CURRENT", NUMBER),
    COLUMN(waiting, "WAITING", NUMBER),
    COLUMN(ended, "ENDED", NUMBER),
    COLUMN(arrived, "instances", NUMBER | BELOW),
    AS(created, "requested", TIME | BELOW, "created_at"),
    AS(started, "last attempt", TIME | BELOW, "started_at"),
    AS(not_before, "not before", TIME | BELOW, "not_before_at"),
    COLUMN(code, "last code", TEXT | BELOW),
    MESSAGE,
    TO_DO,
};

/* The message of a batch is that of the open item with the latest failed attempt. */
#define PULLING                                                                                                        \
    ", batches AS (SELECT batch, source, min(created_at) AS created_at, "                                              \
    "count(*) FILTER (WHERE state <> 'WAITING') AS under_way, "                                                        \
    "count(*) FILTER (WHERE state = 'WAITING') AS waiting, max(started_at) AS started_at, "                            \
    "min(not_before_at) AS not_before_at FROM v_pulls WHERE ended_at IS NULL "                                         \
    "AND (?1 = '' OR batch > CAST(?1 AS INTEGER)) GROUP BY batch, source), "                                           \
    "failures AS (SELECT batch, code, message, max(started_at) FROM v_pulls "                                          \
    "WHERE ended_at IS NULL AND code <> '' GROUP BY batch), "                                                          \
    "all_of AS (SELECT batch, count(ended_at) AS ended, sum(arrived) AS arrived FROM v_pulls "                         \
    "WHERE batch IN (SELECT batch FROM batches) GROUP BY batch) "

static const struct report_column web_unpulled[] = {
    COLUMN(batch, "BATCH", NUMBER),
    COLUMN(source, "SOURCE", TEXT),
    COLUMN(code, "CODE", TEXT),
    COLUMN(items, "ITEMS", NUMBER),
    AS(ended, "ended", TIME | BELOW, "ended_at"),
    COLUMN(state, "state", TEXT | BELOW),
    MESSAGE,
    TO_DO,
};

/* The message is that of the last item. */
#define UNPULLED                                                                                                       \
    ", ends AS (SELECT batch, source, state, code, count(*) AS items, max(ended_at) AS ended_at, "                     \
    "message FROM v_pulls WHERE state IN ('NOT_FOUND', 'PARTIAL', 'FAILED') "                                          \
    "GROUP BY batch, source, state, code) "

static const struct report_column web_callers[] = {
    AS(calling, "CALLER", TEXT, "calling_ae"),
    COLUMN(host, "ADDRESS", TEXT),
    AS(called, "CALLED", TEXT, "called_ae"),
    COLUMN(rejected, "TIMES", NUMBER),
    AS(last, "last time", TIME | BELOW, "last_at"),
    AS(first, "first time", TIME | BELOW, "first_at"),
    COLUMN(meaning, "why", TEXT | BELOW),
    COLUMN(admit, "to admit it, in section dicom", TEXT | BELOW),
    AS(admitted, "admitted since", TIME | BELOW, "admitted_at"),
};

/* Senders of the last 7 days, with their work and instances of the last 24 hours; '' is the inboxes. */
static const struct report_column web_senders[] = {
    COLUMN(sender, "SENDER", TEXT),
    AS(called, "CALLED", TEXT, "called"),
    AS(work, "SERIES AND JOBS", NUMBER, "coalesce((SELECT n FROM work_of w WHERE w.sender = s.sender), 0)"),
    COLUMN(instances, "INSTANCES", NUMBER),
    AS(last, "LAST", TIME, "last_at"),
};

#define SENDERS                                                                                                        \
    ", work_of AS MATERIALIZED (SELECT sender, count(*) AS n FROM (SELECT sender FROM v_work WHERE at >= " AGO LATEST  \
        FLAT " GROUP BY sender), "                                                                                     \
    "senders AS (SELECT sender, group_concat(DISTINCT called_ae) AS called, max(last_seen_at) AS last_at, "            \
    "coalesce(sum(instances) FILTER (WHERE last_seen_at >= " AGO "), 0) AS instances FROM v_series "                   \
    "WHERE state IN ('GATHERING', 'SETTLED', 'REFUSED') AND last_seen_at >= " WEEK_AGO " GROUP BY sender) "

static const struct report_column web_days[] = {
    COLUMN(at, "DAY", TIME),
    AS(received, "RECEIVED", NUMBER, CAME("10")),
    AS(done, "DONE", NUMBER, WENT("done", "10")),
    AS(review, "REVIEW", NUMBER, WENT("review", "10")),
    AS(failed, "FAILED", NUMBER, WENT("failed", "10")),
    AS(free_gib, "FREE (GiB)", NUMBER, "(SELECT gib FROM space p WHERE p.day = substr(s.at, 1, 10))"),
};

/* The last 30 days (UTC), today included. */
#define FIRST_DAY "strftime('%Y-%m-%dT00:00:00.000Z', 'now', '-29 days')"
#define LAST_DAYS                                                                                                      \
    ", numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 29), "                                   \
    "steps AS (SELECT strftime('%Y-%m-%dT00:00:00.000Z', " FIRST_DAY ", '+' || n || ' days') AS at FROM numbers), "    \
    "space AS MATERIALIZED (SELECT substr(at, 1, 10) AS day, round(min(free_mib) / 1024.0, 1) AS gib FROM v_disk "     \
    "WHERE at >= " FIRST_DAY " GROUP BY 1), " BY_STEP("10", FIRST_DAY)

static const struct report_column web_calendar[] = {
    COLUMN(night, "REPORT", TEXT),
    AS(jobs, "JOBS", NUMBER, "jobs_done + jobs_empty + jobs_review + jobs_rejected + jobs_failed"),
    AS(failed, "FAILED", NUMBER, "jobs_failed"),
};

/* Commonest code of rows of a group in `of`. */
#define COMMONEST(key)                                                                                                 \
    "(SELECT code FROM of_week o WHERE o." key " = g." key " AND code NOT IN ('', 'NO_RULE') GROUP BY code "           \
    "ORDER BY count(*) DESC, code LIMIT 1)"

static const struct report_column web_by_pipeline[] = {
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(jobs, "JOBS", NUMBER),
    AS(mean, "MEAN (s)", NUMBER, "mean"),
    AS(review_of, "REVIEW", NUMBER, "review"),
    AS(share, "OF ALL", SHARE, "round(review * 1.0 / jobs, 3)"),
    AS(failed_of, "FAILED", NUMBER, "failed"),
    AS(reason, "COMMONEST REASON", TEXT, COMMONEST("pipeline")),
};

#define OF_PIPELINES                                                                                                   \
    ", of_week AS MATERIALIZED (SELECT pipeline, state, code, total_seconds FROM v_work WHERE ended_at >= " WEEK_AGO   \
        LATEST FLAT ", groups AS (SELECT pipeline, count(*) AS jobs, round(avg(total_seconds), 1) AS mean, " OF_REVIEW \
    " AS review, " OF_FAILED " AS failed FROM of_week GROUP BY pipeline) "

static const struct report_column web_by_scanner[] = {
    COLUMN(scanner, "SCANNER", TEXT),
    COLUMN(work, "SERIES AND JOBS", NUMBER),
    AS(refused_by, "REFUSED", NUMBER, "refused"),
    AS(no_job_by, "NO JOB", NUMBER, "no_job"),
    AS(review_by, "REVIEW", NUMBER, "review"),
    AS(failed_by, "FAILED", NUMBER, "failed"),
    AS(reason, "COMMONEST REASON", TEXT, COMMONEST("scanner")),
};

#define OF_SCANNERS                                                                                                    \
    ", of_week AS MATERIALIZED (SELECT station AS scanner, state, code FROM v_work WHERE at >= " WEEK_AGO LATEST       \
    " AND station <> ''" FLAT ", groups AS (SELECT scanner, count(*) AS work, " OF_REFUSED " AS refused, " OF_NO_JOB   \
    " AS no_job, " OF_REVIEW " AS review, " OF_FAILED " AS failed FROM of_week GROUP BY scanner) "

static const struct report_column web_cohort_segments[] = {
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(label, "SEGMENT", TEXT),
};

/* The plus keeps SQLite in the order of the index of pipelines. */
#define COHORT_JOBS "+j.state IN ('DONE', 'REVIEW', 'REJECTED') AND j.superseded_by IS NULL "

/* The segments of the last 1,000 results of each pipeline. */
#define OF_COHORTS                                                                                                     \
    ", known (pipeline) AS (SELECT min(pipeline) FROM job UNION ALL SELECT (SELECT min(pipeline) FROM job j "          \
    "WHERE j.pipeline > k.pipeline) FROM known k WHERE k.pipeline IS NOT NULL) "

static const struct report_column web_cohort[] = {
    AS(job, "JOB", NUMBER, "j.id"),
    AS(state, "STATE", TEXT, "j.state"),
    AS(volume_ml, "VOLUME (ml)", NUMBER, "round(g.volume_ml, 6)"),
    AS(mean, "MEAN", NUMBER, "g.mean"),
    AS(minimum, "MIN", NUMBER, "g.minimum"),
    AS(maximum, "MAX", NUMBER, "g.maximum"),
    AS(unit, "UNIT", TEXT, UNIT),
    AS(description, "DESCRIPTION", TEXT, "s.description"),
    AS(scanner, "SCANNER", TEXT, "s.station"),
};

static const struct report_column web_device_events[] = {
    COLUMN(at, "AT", TIME),
    COLUMN(kind, "EVENT", TEXT),
    AS(change, "state", TEXT | BELOW, "NULL"),
    COLUMN(detail, "detail", TEXT | BELOW),
};

static const struct report_column web_job_events[] = {
    COLUMN(at, "AT", TIME),
    COLUMN(kind, "EVENT", TEXT),
    AS(change, "state", TEXT | BELOW, "coalesce(from_state || ' to ', '') || to_state"),
    COLUMN(detail, "detail", TEXT | BELOW),
};

static const struct report_column web_nights[] = {
    COLUMN(night, "REPORT", TEXT),
    AS(settled, "COMPLETE", NUMBER, "series_settled"),
    AS(refused, "REFUSED", NUMBER, "series_refused"),
    AS(done, "DONE", NUMBER, "jobs_done + jobs_empty"),
    AS(failed, "FAILED", NUMBER, "jobs_failed"),
    AS(review, "REVIEW", NUMBER, "jobs_review"),
    COLUMN(delivered, "DELIVERED", NUMBER),
    COLUMN(undelivered, "NOT DELIVERED", NUMBER),
};

static const struct report_column web_night[] = {AS(since, "since", TIME, "since_at"),
                                                 AS(until, "until", TIME, "until_at")};

static const struct report_column web_job[] = {
    COLUMN(state, "state", TEXT),
    COLUMN(pipeline, "pipeline", TEXT),
    COLUMN(rule, "rule", TEXT),
    COLUMN(stack, "stack", TEXT),
    AS(programs, "programs", TEXT, "nullif(programs, '')"),
    AS(program_runs, "runs of programs", TEXT, "nullif(program_runs, '')"),
    SERIES_UID,
    MODALITY,
    COLUMN(body_part, "body part", TEXT),
    DESCRIPTION,
    COLUMN(code, "code", TEXT),
    MESSAGE,
    TO_DO,
    COLUMN(note, "note", TEXT),
    AS(created, "created", TIME, "created_at"),
    AS(started, "started", TIME, "started_at"),
    AS(ended, "ended", TIME, "ended_at"),
    AS(wait, "waiting time (s)", NUMBER, "round(wait_seconds, 1)"),
    AS(until, "waits until", TIME, "not_before_at"),
    AS(total, "run time (s)", NUMBER, "round(total_seconds, 2)"),
    COLUMN(executor, "executor", TEXT),
    COLUMN(slurm_id, "Slurm job", NUMBER),
    COLUMN(node, "node", TEXT),
    COLUMN(slurm_reason, "Slurm reason", TEXT),
    COLUMN(backend, "computed on", TEXT),
    AS(peak, "peak (MiB)", NUMBER, "peak_mib"),
    COLUMN(attempts, "attempts", NUMBER),
    COLUMN(priority, "priority", NUMBER),
    COLUMN(held, "held", TEXT),
    COLUMN(superseded_by, "superseded by", NUMBER),
    COLUMN(reviewed_by, "reviewed by", TEXT),
    COLUMN(corrects, "corrects job", NUMBER),
    AS(corrected_by, "corrected by", TEXT, "nullif(corrected_by, '')"),
    COLUMN(prior_job, "changes since job", NUMBER),
    AS(prior_date, "date of its study", TEXT,
       "substr(prior_study_date, 1, 4) || '-' || substr(prior_study_date, 5, 2) || '-' || substr(prior_study_date, 7)"),
    AS(removed, "results removed", TIME, "removed_at"),
};

#define SEGMENTS_OF_JOB(pixels_, area_, box_, centroid_, form)                                                         \
    COLUMN(segment, "SEGMENT", NUMBER), COLUMN(label, "LABEL", TEXT),                                                  \
        AS(volume_ml, "VOLUME (ml)", NUMBER | SPARE, "iif(volume_ml IS NULL, NULL, printf('%.2f', volume_ml))"),       \
        AS(change, "CHANGE (ml)", NUMBER | DROP | SPARE,                                                               \
           "iif(volume_change_ml IS NULL, NULL, printf('%+.2f', volume_change_ml))"),                                  \
        AS(no_change, "NO CHANGE", TEXT | DROP,                                                                        \
           "(SELECT nullif(f.reason, '') FROM v_features f WHERE f.job = v_segments.job "                              \
           "AND f.segment = v_segments.segment AND f.family = 'change' AND f.name = 'volume_change')"),                \
        AS(mean, "MEAN", NUMBER, OF_VOXELS "'%.6g', mean) END"),                                                       \
        AS(minimum, "MIN", NUMBER, OF_VOXELS "'%.6g', minimum) END"),                                                  \
        AS(maximum, "MAX", NUMBER, OF_VOXELS "'%.6g', maximum) END"),                                                  \
        AS(unit, "UNIT", TEXT, "iif(unit = '1', NULL, " UNIT ")"),                                                     \
        AS(pixels, pixels_, NUMBER | (form), "iif(volume_ml IS NULL, voxels, NULL)"),                                  \
        AS(area, area_, NUMBER | (form),                                                                               \
           "iif(volume_ml IS NULL AND width_mm > 0, printf('%.2f', voxels * (SELECT j.spacing_x_mm * j.spacing_y_mm "  \
           "FROM job j WHERE j.id = job)), NULL)"),                                                                    \
        AS(box, box_, form,                                                                                            \
           "CASE WHEN voxels > 0 AND width_mm > 0 THEN printf('%.1f x %.1f', width_mm, height_mm) || "                 \
           "iif(depth_mm IS NULL, '', printf(' x %.1f', depth_mm)) END"),                                              \
        AS(centroid, centroid_, form, CENTROID)

static const struct report_column web_job_segments[] = {
    SEGMENTS_OF_JOB("pixels", "area (mm2)", "box (mm)", "centroid (mm, LPS)", TEXT | BELOW)};
static const struct report_column show_segments[] = {
    SEGMENTS_OF_JOB("PIXELS", "AREA (mm2)", "BOX (mm)", "CENTROID (mm, LPS)", TEXT | DROP | SPARE)};

static const struct report_column web_job_quantities[] = {
    COLUMN(segment, "SEGMENT", NUMBER),
    COLUMN(label, "LABEL", TEXT),
    COLUMN(meaning, "QUANTITY", TEXT),
    AS(value, "VALUE", NUMBER, "iif(value IS NULL, NULL, printf('%.6g', value))"),
    AS(unit, "UNIT", TEXT, "iif(unit = '1', NULL, " UNIT ")"),
    COLUMN(reason, "REASON", TEXT),
};

static const struct report_column web_job_results[] = {
    COLUMN(kind, "RESULT", TEXT),
    /* Images are no file of the job. */
    AS(size, "KiB", NUMBER, "iif(kind = 'images', NULL, round(size_bytes / 1024.0, 1))"),
    COLUMN(frames, "FRAMES", NUMBER),
    COLUMN(path, "file", TEXT | BELOW),
    COLUMN(sop_instance_uid, "instance", TEXT | BELOW),
};

/* Steps of a job from the scanner to the archive, with begin and end. A step without an end goes on. */
static const char job_steps[] =
    ", parts AS (SELECT j.*, s.first_seen_at, s.last_seen_at, s.settled_at, s.evidence, s.instances, s.sender, s.inbox "
    "FROM v_jobs j JOIN v_series s USING (series_uid) WHERE j.job = ?2), "
    "steps AS (SELECT 1 AS place, 'Received' AS step, first_seen_at AS since, last_seen_at AS until, "
    "instances || ' files' || coalesce(' from ' || nullif(coalesce(nullif(sender, ''), inbox), ''), '') AS what FROM "
    "parts "
    "UNION ALL SELECT 2, 'Completed', last_seen_at, settled_at, evidence FROM parts WHERE settled_at IS NOT NULL "
    "UNION ALL SELECT 3, 'Waited', created_at, started_at, held FROM parts "
    "UNION ALL SELECT 4, 'Computed', started_at, ended_at, CASE WHEN total_seconds IS NOT NULL "
    "THEN printf('reading %.2f s, computing %.2f s, writing %.2f s', read_seconds, compute_seconds, write_seconds) "
    "ELSE stage END FROM parts WHERE started_at IS NOT NULL "
    "UNION ALL SELECT 5, 'Reviewed', ended_at, reviewed_at, coalesce('by ' || nullif(reviewed_by, ''), 'a person must "
    "decide') "
    "FROM parts WHERE state = 'REVIEW' OR reviewed_at IS NOT NULL "
    "UNION ALL SELECT 6, 'To ' || destination, min(created_at), "
    "CASE WHEN count(*) = count(coalesce(committed_at, sent_at)) THEN max(coalesce(committed_at, sent_at)) END, "
    "group_concat(DISTINCT lower(state)) FROM v_deliveries WHERE job = ?2 GROUP BY destination) ";

#define SINCE_FIRST(at) "round((julianday(" at ") - (SELECT min(julianday(since)) FROM steps)) * 86400.0, 3)"

static const struct report_column web_job_steps[] = {
    COLUMN(step, "STEP", TEXT),
    AS(since, "SINCE", TIME, "since"),
    AS(begins, "BEGINS (s)", NUMBER, SINCE_FIRST("since")),
    AS(ends, "ENDS (s)", NUMBER, SINCE_FIRST("until")),
    AS(now, "NOW (s)", NUMBER, SINCE_FIRST("'now'")),
    COLUMN(what, "DETAIL", TEXT),
};

static const struct report_column web_job_breaches[] = {
    COLUMN(segment, "SEGMENT", NUMBER), COLUMN(label, "LABEL", TEXT), COLUMN(expectation, "EXPECTATION", TEXT),
    COLUMN(found, "FOUND", NUMBER),     COLUMN(low, "LOW", NUMBER),   COLUMN(high, "HIGH", NUMBER),
    COLUMN(text, "TEXT", TEXT),
};

static const struct report_column web_job_settings[] = {AS(settings, "SETTINGS", TEXT, "s.text")};

static const struct report_column web_series[] = {
    COLUMN(state, "state", TEXT),
    COLUMN(code, "code", TEXT),
    MESSAGE,
    TO_DO,
    MODALITY,
    COLUMN(body_part, "body part", TEXT),
    DESCRIPTION,
    COLUMN(study_description, "study", TEXT),
    COLUMN(study_date, "study date", TEXT),
    COLUMN(study_uid, "study UID", TEXT),
    COLUMN(accession_number, "accession number", TEXT),
    COLUMN(patient_id, "patient ID", TEXT),
    COLUMN(instances, "instances", NUMBER),
    AS(expected, "expected", NUMBER, "expected_instances"),
    COLUMN(evidence, "complete by", TEXT),
    COLUMN(incomplete, "lacks", TEXT),
    COLUMN(called_ae, "called AE", TEXT),
    COLUMN(sender, "sender", TEXT),
    COLUMN(manufacturer, "manufacturer", TEXT),
    COLUMN(model, "model", TEXT),
    COLUMN(station, "station", TEXT),
    COLUMN(institution, "institution", TEXT),
    AS(first_seen, "first seen", TIME, "first_seen_at"),
    AS(settled, "settled", TIME, "settled_at"),
    COLUMN(revision, "revision", NUMBER),
    AS(removed, "removed", TIME, "removed_at"),
};

static const struct report_column web_series_jobs[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(state, "STATE", TEXT),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(code, "CODE", TEXT),
    COLUMN(stack, "volume", TEXT | BELOW),
    COLUMN(revision, "revision", NUMBER | BELOW),
    AS(created, "created", TIME | BELOW, "created_at"),
};

static const struct report_column web_series_stacks[] = {
    COLUMN(stack, "VOLUME", TEXT),
    AS(accepted, "ACCEPTED", TEXT, "iif(accepted, 'yes', 'no')"),
    COLUMN(planes, "PLANES", NUMBER),
    COLUMN(code, "CODE", TEXT),
    COLUMN(columns, "columns", NUMBER | BELOW),
    COLUMN(rows, "rows", NUMBER | BELOW),
    AS(spacing, "spacing (mm)", TEXT | BELOW,
       "iif(spacing_x_mm IS NULL, round(spacing_mm, 3), "
       "printf('%.4g x %.4g x %.4g', spacing_x_mm, spacing_y_mm, spacing_mm))"),
    AS(orientation, "orientation", TEXT | BELOW, "nullif(orientation, '')"),
    MESSAGE,
    TO_DO,
};

static const struct report_column web_found[] = {
    AS(last_seen, "LAST SEEN", TIME, "last_seen_at"),
    COLUMN(state, "STATE", TEXT),
    COLUMN(modality, "MODALITY", TEXT),
    COLUMN(code, "code", TEXT | BELOW),
    COLUMN(study_date, "study date", TEXT | BELOW),
    COLUMN(instances, "instances", NUMBER | BELOW),
    AS(jobs, "jobs done", TEXT | BELOW, "jobs_done || '/' || jobs"),
    DESCRIPTION,
    SERIES_UID,
};

/* The series that a text names, except by the patient. Each condition uses its own index. */
#define NAMED(text, pseudonym)                                                                                         \
    "SELECT " text " UNION SELECT series_uid FROM v_series WHERE accession_number <> '' "                              \
    "AND accession_number IN (" text ", " pseudonym ") "                                                               \
    "UNION SELECT series_uid FROM v_instances WHERE sop_instance_uid = " text                                          \
    " UNION SELECT series_uid FROM v_results WHERE sop_instance_uid = " text " AND sop_instance_uid <> '' "            \
    "UNION SELECT series_uid FROM v_results WHERE result_series_uid = " text " AND result_series_uid <> ''"
#define NAMED_OR_PATIENT(text, pseudonym)                                                                              \
    NAMED(text, pseudonym)                                                                                             \
    " UNION SELECT series_uid FROM v_series WHERE patient_id <> '' AND patient_id IN (" text ", " pseudonym ")"
#define FOUND    "series_uid IN (" NAMED_OR_PATIENT("?3", "?4") ") AND "

#define FILE_KEY "printf('%015d', quarantine)"
#define PULL_KEY "printf('%015d', batch) || state || code"

/* Only the latest events are read. */
#define RECENT_EVENTS "event > (SELECT max(event) FROM v_events) - 20000 AND "
#define DEVICE_EVENTS                                                                                                  \
    "kind IN ('COMPUTE_READY', 'COMPUTE_WAITING', 'DEVICE_MISSING', 'DEVICE_LOST', "                                   \
    "'DEVICE_GIVEN_UP', 'WORKER_DIED') AND "

/* ----------------------------------------------------------------------------------- the table */

#define LIST(key_, heading_, hint_, of, view_, ...)                                                                    \
    {                                                                                                                  \
        .key = (key_), .heading = (heading_), .hint = (hint_), COLUMNS(of), .view = (view_), __VA_ARGS__               \
    }
#define FIGURES(key_, heading_, of, view_, tail_)                                                                      \
    LIST(key_, heading_, NULL, of, view_, .shape = REPORT_FIGURES, .tail = (tail_))
#define DETAILS(key_, heading_, of, view_, tail_)                                                                      \
    LIST(key_, heading_, NULL, of, view_, .shape = REPORT_DETAILS, .tail = (tail_))

const struct report_list report_lists[REPORT_LIST_COUNT] = {
    [PERIOD_SERIES] = FIGURES("series", "Series", period_series, "settled", ""),
    [PERIOD_JOBS] = FIGURES("jobs", "Jobs", period_jobs, RANKED("1"), ""),
    [PERIOD_DELIVERIES] = FIGURES("deliveries", "Deliveries", period_deliveries, "tried", ""),
    [PERIOD_FILES] = FIGURES("files", "Files", period_files, "v_quarantine", IN_PERIOD),
    [PERIOD_DISK] = FIGURES("disk", "Disk", period_disk, "v_night", ""),
    [PERIOD_FAILED] = LIST("failed", "Failed jobs", "noctule show JOB; noctule retry JOB", period_failed, "ended",
                           .tail = "WHERE state = 'FAILED' GROUP BY code ORDER BY count(*) DESC, code"),
    [PERIOD_REVIEW] =
        LIST("review", "Results under review now (not delivered)", "noctule accept JOB; noctule reject JOB REASON",
             period_review, "v_review", .tail = "ORDER BY since_at, job"),
    /* Deliveries that will be tried again have not arrived either, in any period. */
    [PERIOD_UNDELIVERED] = LIST("undelivered", "Undelivered results",
                                "noctule deliveries --destination NAME; noctule resend DELIVERY", period_undelivered,
                                "(SELECT * FROM tried WHERE state = 'FAILED' UNION ALL "
                                " SELECT *, NULL FROM v_deliveries WHERE state = 'DELAYED')",
                                .tail = "GROUP BY destination, state, code ORDER BY destination, state DESC, count(*) "
                                        "DESC"),
    [PERIOD_UNPULLED] =
        LIST("unpulled", "Failed or incomplete retrievals", "noctule pull --batch N", period_unpulled, "v_pulls",
             .tail = "WHERE ended_at >= ?1 AND ended_at < ?2 AND state IN ('NOT_FOUND', 'PARTIAL', "
                     "'FAILED') GROUP BY source, state, code ORDER BY source, count(*) DESC, code"),
    /* With max() as mark, the example is the newest row of the group. */
    [PERIOD_REFUSED] =
        LIST("refused", "Refused series", "noctule explain SERIES_UID", period_refused, "settled",
             .tail = "WHERE " REFUSED_IN " GROUP BY code ORDER BY count(*) DESC, code", .mark = "max(settled_at)"),
    [PERIOD_QUARANTINED] =
        LIST("quarantined", "Quarantined files", NULL, period_quarantined, "v_quarantine",
             .tail = IN_PERIOD "GROUP BY code ORDER BY count(*) DESC, code", .mark = "max(quarantined_at)"),
    [PERIOD_SENDERS] = LIST("senders", "Senders of refused series", NULL, period_senders, "settled",
                            .tail = "GROUP BY sender, station, manufacturer, model, institution "
                                    "HAVING " COUNT(REFUSED_IN) " > 0 ORDER BY " COUNT(REFUSED_IN) " DESC, "
                                                                                                   "sender, station"),
    [PERIOD_CALLERS] = LIST("callers", "Rejected callers",
                            "the last column: the entry for section dicom of noctule.conf", period_callers, "v_callers",
                            .tail = "WHERE last_at >= ?1 AND first_at < ?2 AND admitted_at IS NULL "
                                    "ORDER BY last_at DESC LIMIT 50"),
    [PERIOD_UNRULED] = LIST("unruled", "Series without a rule", "noctule submit --rules after adding a rule",
                            period_unruled, "settled",
                            .tail = "WHERE " UNRULED_IN " GROUP BY modality, body_part, sender "
                                    "ORDER BY count(*) DESC, modality, body_part",
                            .mark = "max(settled_at)"),
    [PERIOD_PULLED] = LIST("pulled", "Retrievals", NULL, period_pulled, "v_pulls",
                           .tail = "WHERE ended_at IS NULL OR ended_at >= ?1 AND ended_at < ?2 "
                                   "GROUP BY source ORDER BY source"),
    [PERIOD_PIPELINES] = LIST("pipelines", "Pipelines", NULL, period_pipelines, RANKED("pipeline"),
                              .tail = "GROUP BY pipeline ORDER BY count(*) DESC, pipeline"),
    [PERIOD_SEGMENTS] = LIST("segments", "Segments", NULL, period_segments, MEASURED,
                             .tail = "GROUP BY pipeline, label, unit ORDER BY pipeline, min(segment), label"),
    [PERIOD_COMPUTE] = LIST("compute", "Compute devices", NULL, period_compute, "ended",
                            .tail = "WHERE backend <> '' GROUP BY backend ORDER BY backend"),
    [PERIOD_SLOWEST] = LIST("slowest", "Slowest jobs", NULL, period_slowest, "ended",
                            .tail = "WHERE total_seconds IS NOT NULL ORDER BY total_seconds DESC, job LIMIT 5"),
    [PERIOD_HOURS] = LIST("hours", "Per hour", NULL, period_hours, "steps s", .with = HOURS, .tail = ""),

    [WEB_BAR] = FIGURES("bar", "Menu", web_bar, "(SELECT 1)", "") /* each page has it */,
    [WEB_FLOW] = FIGURES("flow", "Flow", web_flow, "asked", ""),
    [WEB_HOURS] = LIST("hours_now", "Per hour", NULL, web_hours, "steps s", .with = LAST_HOURS, .tail = "ORDER BY at"),
    [WEB_BACKLOG] = LIST("backlog", "Waiting and running, by pipeline", NULL, web_backlog, "v_backlog",
                         .tail = "WHERE pipeline <> '' ORDER BY pipeline" MOST),
    [WEB_PIPELINE_WORK] = LIST("pipeline_work", "Work of 7 days", NULL, web_pipeline_work,
                               "(SELECT pipeline FROM v_work WHERE at >= " WEEK_AGO LATEST FLAT,
                               .tail = "WHERE pipeline <> '' GROUP BY pipeline"),
    [WEB_MACHINE] = FIGURES("machine", "Machine", web_machine, "v_night", ""),
    [WEB_CONFIGURATION] = LIST("configuration", "Configuration", "noctule reload; noctule check-config",
                               web_configuration, "v_configuration", .tail = "ORDER BY state" MOST),
    [WEB_RUNNING] =
        LIST("running", "Running", NULL, web_running, "running r LEFT JOIN usual u ON u.pipeline = r.pipeline",
             .with = RUNNING, .none = "no running jobs", .tail = "ORDER BY started_at, job" MOST),
    [WEB_PROGRAM_RUNS] =
        LIST("program_runs", "Runs of programs", "noctule programs --runs; noctule retry --program JOB",
             web_program_runs, "v_program_runs", BY_NUMBER("", "run")),
    /* Oldest first, in the order of arrival. */
    [WEB_REVIEW] =
        LIST("review", "Results under review (not delivered)", "noctule accept JOB; noctule reject JOB REASON",
             web_review, "v_review",
             .tail = "WHERE decision = '' AND (?1 = '' OR job > CAST(?1 AS INTEGER)) ORDER BY job" MOST, .mark = "job"),
    [WEB_REVIEW_DECIDED] = LIST("review_decided", "Decided, and can be undone", "noctule undo JOB", web_review_decided,
                                "v_review", .tail = "WHERE decision <> '' ORDER BY final_at, job" MOST),
    [WEB_REVIEW_JOB] = DETAILS("review_job", "Result", web_review_job, "v_review r", "WHERE job = ?2"),
    [WEB_REVIEW_BEFORE] = LIST("review_before", "Earlier results", NULL, web_review_before, "before b", .with = EARLIER,
                               .tail = "ORDER BY which = 'this' DESC, which DESC" MOST),
    [WEB_REVIEW_REASONS] = LIST("review_reasons", "Earlier reasons", NULL, web_review_reasons, "v_audit",
                                .tail = "WHERE action = 'reject' GROUP BY reason ORDER BY max(audit) DESC LIMIT 8"),
    [WEB_UPLOADS] =
        LIST("uploads", "Uploads", NULL, web_uploads, "upload", .tail = "WHERE job_id = ?2 ORDER BY uploaded_at" MOST),
    [WEB_CORRECTION] = LIST("correction", "Corrected masks", NULL, web_correction,
                            "pair p LEFT JOIN object o ON o.id = p.correction LEFT JOIN segment n ON n.job_id = p.id "
                            "LEFT JOIN segment b ON b.job_id = p.corrects AND b.label = n.label",
                            .with = CORRECTION, .tail = "ORDER BY n.number" MOST),
    [WEB_QUARANTINED] = LIST(
        "quarantined", "Quarantined files", "noctule quarantine show FILE; noctule quarantine release FILE",
        web_quarantined, "v_quarantine", .none = "No file is in quarantine. Files that cannot be received appear here.",
        BY_TIME("removed_at IS NULL AND ", "quarantined_at", FILE_KEY)),
    [WEB_DESTINATION_HOLDS] = LIST("destination_holds", "Held destinations", NULL, web_destination_holds, "v_holds",
                                   .tail = "WHERE kind = 'destination' ORDER BY name" MOST),
    /* Oldest first. */
    [WEB_PULLING] = LIST("pulling", "Retrievals from archives",
                         "noctule pull --batch BATCH; noctule pull --cancel BATCH", web_pulling,
                         "batches b JOIN all_of a ON a.batch = b.batch "
                         "LEFT JOIN failures f ON f.batch = b.batch",
                         .with = PULLING, .tail = "ORDER BY b.batch" MOST, .mark = "b.batch"),
    [WEB_UNPULLED] = LIST("unpulled", "Failed or incomplete retrievals", "noctule pull --batch BATCH", web_unpulled,
                          "ends", .with = UNPULLED, BY_TIME("", "ended_at", PULL_KEY)),
    [WEB_SENDERS] =
        LIST("senders_now", "Senders", NULL, web_senders, "senders s", .with = SENDERS, .tail = "ORDER BY sender" MOST),
    [WEB_CALLERS] = LIST("callers", "Rejected callers", NULL, web_callers, "v_callers",
                         .tail = "ORDER BY admitted_at IS NOT NULL, last_at DESC" MOST),
    [WEB_DAYS] = LIST("days", "Per day", NULL, web_days, "steps s", .with = LAST_DAYS, .tail = "ORDER BY at"),
    [WEB_CALENDAR] =
        LIST("calendar", "Report periods", NULL, web_calendar, "v_nights",
             .tail = "WHERE night >= strftime('%Y-%m-%d', 'now', '-190 days') ORDER BY until_at" MOST, .max_rows = 200),
    [WEB_BY_PIPELINE] = LIST("by_pipeline", "By pipeline, last 7 days", NULL, web_by_pipeline, "groups g",
                             .none = "No job ended in the last 7 days.", .with = OF_PIPELINES,
                             .tail = "ORDER BY jobs DESC, pipeline" MOST),
    [WEB_BY_SCANNER] = LIST("by_scanner", "By scanner, last 7 days", NULL, web_by_scanner, "groups g",
                            .none = "No series with a Station Name came in the last 7 days.", .with = OF_SCANNERS,
                            .tail = "ORDER BY work DESC, scanner" MOST),
    [WEB_COHORT_SEGMENTS] = LIST(
        "cohort_segments", "Segments", NULL, web_cohort_segments,
        "known k JOIN segment g ON g.job_id IN (SELECT id FROM job j WHERE j.pipeline = k.pipeline AND " COHORT_JOBS
        "ORDER BY j.created_at DESC LIMIT 1000)",
        .with = OF_COHORTS, .tail = "WHERE g.voxels > 0 GROUP BY 1, 2 ORDER BY 1, 2" MOST, .max_rows = 200),
    [WEB_COHORT] = LIST("cohort", "Cohort", NULL, web_cohort,
                        "job j JOIN segment g ON g.job_id = j.id JOIN series s ON s.id = j.series_id",
                        .tail = "WHERE j.pipeline = ?3 AND g.label = ?4 AND g.voxels > 0 AND " COHORT_JOBS
                                "ORDER BY j.created_at DESC, j.id DESC" MOST,
                        .max_rows = 5000),
    [WEB_DEVICE_EVENTS] = LIST("device_events", "Device events", NULL, web_device_events, "v_events",
                               BY_NUMBER(RECENT_EVENTS DEVICE_EVENTS, "event")),
    [WEB_PROGRAMS] =
        LIST("programs", "Programs", "noctule doctor", program_columns, "v_programs", .tail = "ORDER BY program" MOST),
    [WEB_NIGHTS] = LIST("nights", "Recorded periods", "noctule report --since 2026-01-31 --until 2026-02-01",
                        web_nights, "v_nights", .none = "Each report period appears here with its counts (report.at).",
                        BY_TIME("", "until_at", "night")),
    [WEB_NIGHT] = DETAILS("night", "Report period", web_night, "v_nights", "WHERE night = ?3"),
    [WEB_JOB] = DETAILS("job", "State", web_job, "v_jobs", "WHERE job = ?2"),
    /* A mark is the Segment Number: segments are sorted in ascending order. */
    [WEB_JOB_STATE] = DETAILS("job_state", "Job", web_job_state, "v_jobs", "WHERE job = ?2"),
    [WEB_JOB_SEGMENTS] = LIST("job_segments", "Segments", NULL, web_job_segments, "v_segments",
                              .tail = "WHERE job = ?2 AND (?1 = '' OR segment > CAST(?1 AS INTEGER)) "
                                      "ORDER BY segment" MOST,
                              .mark = "segment"),
    /* A mark is the place among the features of the job. */
    [WEB_JOB_QUANTITIES] = LIST("job_quantities", "Quantities", NULL, web_job_quantities, "v_features",
                                .tail = "WHERE job = ?2 AND family IN ('quantity', 'change') "
                                        "AND (?1 = '' OR place > CAST(?1 AS INTEGER)) ORDER BY place" MOST,
                                .mark = "place"),
    [WEB_JOB_RESULTS] = LIST("job_results", "Results", NULL, web_job_results, "v_results",
                             .tail = "WHERE job = ?2 ORDER BY kind, path" MOST),
    [WEB_JOB_DELIVERIES] = LIST("job_deliveries", "Deliveries", NULL, web_deliveries, "v_deliveries",
                                BY_NUMBER("job = ?2 AND ", "delivery")),
    [WEB_JOB_EVENTS] =
        LIST("job_events", "Events", NULL, web_job_events, "v_events", BY_NUMBER("job = ?2 AND ", "event")),
    [WEB_JOB_STEPS] = LIST("job_steps", "From the scanner to the archive", NULL, web_job_steps, "steps",
                           .with = job_steps, .tail = "ORDER BY place, step" MOST),
    [WEB_JOB_BREACHES] = LIST("job_breaches", "Broken expectations", NULL, web_job_breaches, "v_breaches",
                              .tail = "WHERE job = ?2 ORDER BY place" MOST),
    /* The pipeline of the job with all its settings. */
    [WEB_JOB_SETTINGS] = LIST("job_settings", "Settings", NULL, web_job_settings,
                              "job j JOIN settings s ON s.id = j.settings_id", .tail = "WHERE j.id = ?2" MOST),
    [WEB_SERIES] = DETAILS("series", "Series", web_series, "v_series", "WHERE series_uid = ?3"),
    [WEB_SERIES_JOBS] = LIST("series_jobs", "Jobs", NULL, web_series_jobs, "v_jobs", .none = "no jobs",
                             BY_NUMBER("series_uid = ?3 AND ", "job")),
    [WEB_SERIES_STACKS] = LIST("series_stacks", "Volumes", NULL, web_series_stacks, "v_stacks",
                               .tail = "WHERE series_uid = ?3 ORDER BY stack" MOST),
    [WEB_FOUND] =
        LIST("found", "Matching series", NULL, web_found, "v_series", BY_TIME(FOUND, "last_seen_at", "series_uid")),
    /* Reads all series; used only if the other search finds no series. */
    [WEB_FOUND_STUDY] = LIST("found_study", "Matching series", NULL, web_found, "v_series",
                             BY_TIME("study_uid = ?3 AND ", "last_seen_at", "series_uid")),
};

#define FILTERS(of, orders, number)                                                                                    \
    .fields = (of), .field_count = COLUMN_COUNT(of), .sorts = (orders), .sort_count = COLUMN_COUNT(orders),            \
    .unique = (number)
#define EQUAL(key_, title_)                                                                                            \
    {                                                                                                                  \
#key_, (title_), REPORT_EQUAL, #key_ " = $", NULL, NULL                                                        \
    }
#define SINCE(key_, title_, time)                                                                                      \
    {                                                                                                                  \
#key_, (title_), REPORT_MOMENT, time " >= $", NULL, NULL                                                       \
    }
#define BEFORE(key_, title_, time)                                                                                     \
    {                                                                                                                  \
#key_, (title_), REPORT_MOMENT, time " < $", NULL, NULL                                                        \
    }
#define SORTS(name, ...) static const struct report_sort name[] = {__VA_ARGS__};

/* A place in the order is of one row. SQLite takes a mere 0 for the number of a column. */
#define ONLY "CAST(0 AS INTEGER)"

/* --------------------------------------------------------------------------- lists of commands */

static const struct report_column job_columns[] = {
    COLUMN(job, "JOB", NUMBER),
    AS(state, "STATE", TEXT,
       "state || CASE WHEN held <> '' THEN ', held' WHEN window_closed IS NOT NULL THEN ', window' "
       "WHEN stage <> '' THEN printf(', %s %d s', stage, "
       "max(0.0, (julianday('now') - julianday(stage_since)) * 86400.0)) ELSE '' END"),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(stack, "STACK", DROP),
    COLUMN(modality, "MODALITY", DROP),
    COLUMN(body_part, "BODY PART", DROP),
    AS(created, "CREATED", TIME, "created_at"),
    COLUMN(attempts, "TRIES", NUMBER | DROP),
    AS(where, "WHERE", DROP,
       "executor || coalesce(' ' || slurm_id, '') || CASE WHEN node <> '' THEN ' on ' || node ELSE '' END"),
    AS(wait, "WAIT (s)", NUMBER | DROP, "printf('%.2f', wait_seconds)"),
    AS(run, "RUN (s)", NUMBER | DROP, "CASE WHEN total_seconds IS NOT NULL THEN printf('%.2f', total_seconds) END"),
    AS(peak, "PEAK (MiB)", NUMBER | DROP, "CASE WHEN peak_mib IS NOT NULL THEN printf('%.1f', peak_mib) END"),
    COLUMN(code, "CODE", TEXT),
    COLUMN(series_uid, "SERIES", TEXT),
};

/* Conditions on the series. */
#define OF_SERIES(condition) "series_uid IN (SELECT series_uid FROM series WHERE " condition ")"
#define FOUND_BY(of)                                                                                                   \
    {"modality", "Modality", REPORT_EQUAL, of("modality = upper($)"), NULL, NULL},                                     \
        {"sender", "Sender", REPORT_EQUAL, of("sender = $"), NULL, NULL},                                              \
        {"accession",   "Accession Number",                                                                            \
         REPORT_SEARCH, of("accession_number <> '' AND accession_number IN ($, @)"),                                   \
         NULL,          NULL},                                                                                         \
    {                                                                                                                  \
        "patient", "Patient ID", REPORT_SEARCH, of("patient_id <> '' AND patient_id IN ($, @)"), NULL, NULL            \
    }
#define ITSELF(condition) condition
#define CODE_FIELD                                                                                                     \
    {                                                                                                                  \
        "code", "Code", REPORT_EQUAL, "code = upper($)", NULL, NULL                                                    \
    }

static const struct report_choice job_versions[] = {
    {"yes", "the latest only",
     "superseded_by IS NULL AND revision = (SELECT s.revision FROM v_series s WHERE s.series_uid = v_jobs.series_uid) "
     "AND NOT EXISTS (SELECT 1 FROM v_review r WHERE r.job = v_jobs.job AND r.correction_job NOTNULL)"},
    {NULL, NULL, NULL},
};

static const struct report_field job_fields[] = {
    EQUAL(state, "State"),
    EQUAL(pipeline, "Pipeline"),
    {"series", "Series", REPORT_EQUAL, "series_uid = $", NULL, NULL},
    CODE_FIELD,
    SINCE(since, "Since", "coalesce(ended_at, created_at)"),
    FOUND_BY(OF_SERIES),
    {"current", "Version", REPORT_CHOICE, NULL, job_versions, NULL},
};

SORTS(job_sorts, {"job", "job", true, true})

const struct report_list report_jobs = {
    .view = "v_jobs",
    .id = "job",
    .states = queue_job_states,
    .state_count = QUEUE_CANCELLED + 1,
    FILTERS(job_fields, job_sorts, "job"),
    COLUMNS(job_columns),
};

static const struct report_column series_columns[] = {
    COLUMN(state, "STATE", TEXT),
    COLUMN(revision, "REVISION", NUMBER | DROP),
    COLUMN(modality, "MODALITY", DROP),
    COLUMN(body_part, "BODY PART", DROP),
    COLUMN(instances, "INSTANCES", NUMBER),
    AS(stacks, "STACKS", NUMBER | DROP, "accepted_stacks || '/' || stacks"),
    AS(jobs, "JOBS DONE", NUMBER, "jobs_done || '/' || jobs"),
    AS(last_seen, "LAST SEEN", TIME, "last_seen_at"),
    COLUMN(code, "CODE", TEXT),
    COLUMN(series_uid, "SERIES", TEXT),
};

static const struct report_choice series_kept[] = {{"yes", "kept", "removed_at IS NULL"}, {NULL, NULL, NULL}};

static const struct report_field series_of_fields[] = {
    EQUAL(state, "State"),
    {"series", "Series", REPORT_EQUAL, "series_uid = $", NULL, NULL},
    {"pipeline", "Pipeline", REPORT_EQUAL,
     "EXISTS (SELECT 1 FROM v_jobs j WHERE j.series_uid = v_series.series_uid AND j.pipeline = $)", NULL, NULL},
    CODE_FIELD,
    SINCE(since, "Since", "last_seen_at"),
    BEFORE(before, "Before", "last_seen_at"),
    FOUND_BY(ITSELF),
    {"current", "Kept", REPORT_CHOICE, NULL, series_kept, NULL},
};

SORTS(last_seen_sorts, {"last_seen", "last_seen_at", false, true})

const struct report_list report_series = {
    .view = "v_series",
    .id = "series_uid",
    .states = queue_series_states,
    .state_count = 3,
    FILTERS(series_of_fields, last_seen_sorts, ONLY),
    COLUMNS(series_columns),
};

static const struct report_field stray_fields[] = {BEFORE(before, "Before", "quarantined_at")};
static const struct report_field telling_fields[] = {{"series", "Series", REPORT_EQUAL, "series_uid = $", NULL, NULL}};

SORTS(path_sorts, {"path", "path", false, false})

const struct report_list report_stray_files = {
    .view = "(SELECT * FROM v_quarantine q WHERE removed_at IS NULL AND path <> '' AND NOT EXISTS "
            "(SELECT 1 FROM v_series s WHERE s.series_uid = q.series_uid))",
    .id = "path",
    FILTERS(stray_fields, path_sorts, ONLY),
};

/* One image is enough, unless the geometry check found several patients. */
const struct report_list report_telling_files = {
    .view = "(SELECT series_uid, (SELECT min(path) FROM v_instances i "
            "  WHERE i.series_uid = s.series_uid) AS path FROM v_series s "
            "UNION ALL SELECT i.series_uid, i.path FROM v_stacks x "
            "  JOIN v_instances i ON i.series_uid = x.series_uid WHERE x.code = 'MIXED_PATIENTS' "
            "UNION ALL SELECT series_uid, path FROM v_results "
            "  WHERE removed_at IS NULL AND sop_class_uid <> '' "
            "UNION ALL SELECT series_uid, path FROM v_quarantine "
            "  WHERE removed_at IS NULL AND path <> '')",
    .id = "path",
    FILTERS(telling_fields, path_sorts, ONLY),
};

static const struct report_column delivery_columns[] = {
    COLUMN(delivery, "DELIVERY", NUMBER),
    AS(state, "STATE", TEXT, "state || iif(held = '', '', ', held')"),
    COLUMN(destination, "DESTINATION", TEXT),
    COLUMN(job, "JOB", NUMBER),
    COLUMN(kind, "KIND", DROP),
    COLUMN(attempts, "TRIES", NUMBER | DROP),
    AS(sent, "SENT", TIME, "sent_at"),
    AS(not_before, "NOT BEFORE", DROP, "not_before_at"),
    AS(status, "STATUS", DROP, "dimse_status_hex"),
    AS(commitment, "COMMITMENT", DROP, "nullif(commitment, 'NONE')"),
    COLUMN(code, "CODE", TEXT),
    COLUMN(sop_instance_uid, "SOP INSTANCE", TEXT),
};

static const struct report_column validation_columns[] = {
    COLUMN(validation, "VALIDATION", NUMBER),
    COLUMN(name, "PIPELINE", TEXT),
    COLUMN(at, "AT", TIME),
    COLUMN(by, "BY", TEXT | DROP),
    AS(in_force, "IN FORCE", TEXT, "iif(in_force, 'yes', 'no')"),
    COLUMN(patients, "PATIENTS", NUMBER),
    AS(done, "DONE", TEXT, "done || ' of ' || cases"),
    AS(others, "OTHERS DONE", TEXT, "others_done || ' of ' || others"),
    COLUMN(wrong, "WRONG", NUMBER),
    AS(share, "AT MOST WRONG", TEXT | DROP, "printf('%.1f %%', 100.0 * wrong_share_95)"),
    COLUMN(version, "VERSION", TEXT | DROP),
    COLUMN(why, "not passed because", TEXT | BELOW),
};

static const struct report_field validation_fields[] = {{"pipeline", "Pipeline", REPORT_EQUAL, "name = $", NULL, NULL}};

SORTS(validation_sorts, {"validation", "validation", true, true})

const struct report_list report_validations = {
    .view = "v_validations",
    .id = "validation",
    FILTERS(validation_fields, validation_sorts, "validation"),
    COLUMNS(validation_columns),
};

static const struct report_field program_fields[] = {{"pipeline", "Pipeline", REPORT_EQUAL, "program = $", NULL, NULL}};

SORTS(program_sorts, {"program", "program", false, false})

const struct report_list report_programs = {
    .view = "v_programs",
    .id = "program",
    FILTERS(program_fields, program_sorts, ONLY),
    COLUMNS(program_columns),
};

static const struct report_column program_run_columns[] = {
    COLUMN(run, "RUN", NUMBER),
    COLUMN(program, "PROGRAM", TEXT),
    COLUMN(state, "STATE", TEXT),
    COLUMN(stack, "STACK", DROP),
    AS(created, "CREATED", TIME, "created_at"),
    COLUMN(attempts, "TRIES", NUMBER | DROP),
    AS(wait, "WAIT (s)", NUMBER | DROP, "printf('%.2f', wait_seconds)"),
    AS(took, "RUN (s)", NUMBER | DROP, "iif(total_seconds IS NULL, NULL, printf('%.2f', total_seconds))"),
    AS(peak, "PEAK (MiB)", NUMBER | DROP, "peak_mib"),
    AS(ran_as, "AS", DROP, "nullif(ran_as, '')"),
    AS(jobs, "JOBS WAITING", NUMBER | DROP, "jobs_waiting"),
    COLUMN(code, "CODE", TEXT),
    COLUMN(series_uid, "SERIES", TEXT),
    AS(output, "OUTPUT", DROP, "output_path"),
};

static const struct report_field program_run_fields[] = {
    {"pipeline", "Pipeline", REPORT_EQUAL, "program = $", NULL, NULL}};

SORTS(program_run_sorts, {"run", "run", true, true})

const struct report_list report_program_runs = {
    .view = "v_program_runs",
    .id = "run",
    FILTERS(program_run_fields, program_run_sorts, "run"),
    COLUMNS(program_run_columns),
};

static const struct report_column destination_columns[] = {
    COLUMN(destination, "DESTINATION", TEXT),
    AS(state, "STATE", TEXT,
       "CASE WHEN NOT configured THEN 'not configured' WHEN down_since IS NOT NULL "
       "THEN 'down' ELSE 'up' END || iif(held_at IS NULL, '', ', held')"),
    COLUMN(pending, "PENDING", NUMBER),
    COLUMN(sending, "SENDING", NUMBER),
    COLUMN(delayed, "DELAYED", NUMBER),
    COLUMN(failed, "FAILED", NUMBER),
    COLUMN(sent, "SENT", NUMBER),
    COLUMN(uncommitted, "UNCOMMITTED", NUMBER),
    AS(last_sent, "LAST SENT", TEXT, "last_sent_at"),
    AS(next_attempt, "NEXT ATTEMPT", TEXT, "next_attempt_at"),
    COLUMN(address, "ADDRESS", TEXT),
};

const struct report_list report_configured = {
    .view = "destinations", .tail = "ORDER BY place IS NULL, place, destination", COLUMNS(destination_columns)};

static const struct report_column show_results[] = {
    COLUMN(kind, "KIND", TEXT),
    AS(size, "SIZE (MiB)", NUMBER, "iif(kind = 'images', NULL, printf('%.2f', size_bytes / 1048576.0))"),
    COLUMN(frames, "FRAMES", NUMBER),
    COLUMN(path, "PATH", TEXT),
    COLUMN(sop_instance_uid, "SOP INSTANCE", TEXT),
    AS(not_taken_by, "NOT TAKEN BY", DROP, "nullif(not_taken_by, '')"),
};

static const struct report_column show_events[] = {
    COLUMN(at, "AT", TIME),
    COLUMN(kind, "EVENT", TEXT),
    AS(change, "STATE", TEXT, "coalesce(from_state || ' -> ', '') || coalesce(to_state, '')"),
    COLUMN(detail, "DETAIL", TEXT),
};

static const struct report_column show_audit[] = {
    COLUMN(at, "AT", TIME),   COLUMN(action, "DECISION", TEXT), COLUMN(actor, "BY", WHOLE),
    COLUMN(how, "HOW", TEXT), COLUMN(reason, "REASON", TEXT),
};

/* In the order of the JSON. */
const struct report_list report_parts[REPORT_PARTS] = {
    [REPORT_RESULTS] = {.heading = "Results",
                        .view = "v_results",
                        .tail = "WHERE job = ?1 ORDER BY path",
                        COLUMNS(show_results)},
    [REPORT_DELIVERIES] = {.heading = "Deliveries",
                           .view = "v_deliveries",
                           .tail = "WHERE job = ?1 ORDER BY delivery",
                           COLUMNS(delivery_columns)},
    [REPORT_EVENTS] = {.heading = "Events",
                       .view = "v_events",
                       .tail = "WHERE job = ?1 ORDER BY event",
                       COLUMNS(show_events)},
    [REPORT_SEGMENTS] = {.heading = "Segments",
                         .view = "v_segments",
                         .tail = "WHERE job = ?1 ORDER BY segment",
                         COLUMNS(show_segments)},
    [REPORT_BREACHES] = {.view = "v_breaches", .tail = "WHERE job = ?1 ORDER BY place"},
    [REPORT_AUDIT] = {.heading = "Decisions",
                      .view = "v_audit",
                      .tail = "WHERE job = ?1 ORDER BY audit",
                      COLUMNS(show_audit)},
};

static const struct report_column feature_columns[] = {
    COLUMN(name, "FEATURE", TEXT),
    AS(value, "VALUE", NUMBER,
       "CASE WHEN value = round(value) AND abs(value) < 1e15 THEN printf('%d', value) "
       "WHEN value IS NOT NULL THEN printf('%.6g', value) END"),
    COLUMN(unit, "UNIT", TEXT),
    COLUMN(ibsi_code, "IBSI", TEXT),
    COLUMN(reason, "NO VALUE BECAUSE", TEXT),
};

const struct report_list report_feature_group = {
    .view = "v_features",
    COLUMNS(feature_columns),
    .tail = "WHERE job = ?1 AND segment = ?2 AND " FEATURE_HEADING " = ?3 ORDER BY place",
};

static const struct report_column histogram_columns[] = {
    AS(segment, "SEGMENT", NUMBER, "CASE WHEN segment = 0 THEN 'volume' ELSE segment END"),
    COLUMN(label, "LABEL", TEXT),
    COLUMN(pattern, "PATTERN", TEXT),
    COLUMN(settings, "SETTINGS", TEXT),
    AS(voxels, "VOXELS", NUMBER, "(SELECT sum(value) FROM json_each(counts))"),
};

const struct report_list report_histograms = {
    .heading = "Pattern histograms",
    .view = "v_pattern_histograms",
    COLUMNS(histogram_columns),
    .tail = "WHERE job = ?1 AND (?2 IS NULL OR segment = ?2) ORDER BY segment, pattern, settings",
};

const struct report_list report_reviews = {
    .view = "v_review",
    .tail = "WHERE (?1 IS NULL OR pipeline = ?1) AND (?2 IS NULL OR series_uid = ?2) ORDER BY since_at, job LIMIT ?3"};

/* --------------------------------------------------------------------------- lists with filters */

/*
 * The state of the delivery to each destination, "PACS SENT, RESEARCH FAILED": the worst one, if a destination gets
 * several results.
 */
#define DELIVERY_IS(states, word) "WHEN count(*) FILTER (WHERE d.state IN (" states ")) > 0 THEN '" word "' "
#define WORK_DELIVERIES                                                                                                \
    "(SELECT group_concat(destination || ' ' || state, ', ') FROM (SELECT destination, CASE " DELIVERY_IS("'FAILED'",  \
                                                                                                          "FAILED")    \
        DELIVERY_IS("'REVIEW'", "REVIEW") DELIVERY_IS("'PENDING', 'SENDING', 'DELAYED'", "WAITING")                    \
            DELIVERY_IS("'SENT'", "SENT") "ELSE 'CANCELLED' END AS state "                                             \
                                          "FROM delivery d WHERE d.job_id = r.job GROUP BY destination))"

/* Why the work is in its state. */
#define WORK_REASON                                                                                                    \
    "CASE WHEN superseded_by IS NOT NULL THEN 'superseded by job ' || superseded_by "                                  \
    "WHEN state = 'GATHERING' THEN instances || coalesce(' of ' || expected_instances, '') || ' images' "              \
    "WHEN state IN ('READY', 'DELAYED') THEN (SELECT CASE WHEN v.held <> '' THEN 'held: ' || v.held "                  \
    "  WHEN v.window_closed IS NOT NULL THEN 'window opens ' || coalesce(v.window_opens_at, 'never') "                 \
    "  WHEN v.code <> '' THEN v.code ELSE '' END FROM v_jobs v WHERE v.job = r.job) "                                  \
    "WHEN state = 'RUNNING' THEN (SELECT v.stage FROM v_jobs v WHERE v.job = r.job) "                                  \
    "WHEN removed_at IS NOT NULL THEN 'files removed' ELSE code END"

static const struct report_column work_columns[] = {
    COLUMN(state, "State", TEXT),
    COLUMN(job, "Job", NUMBER),
    COLUMN(pipeline, "Pipeline", TEXT),
    COLUMN(series_description, "Description", TEXT),
    COLUMN(patient_id, "Patient", TEXT),
    COLUMN(modality, "Modality", TEXT),
    COLUMN(station, "Scanner", TEXT),
    COLUMN(instances, "Images", NUMBER),
    COLUMN(at, "Time", TIME),
    AS(seconds, "Run time (s)", NUMBER,
       "round(coalesce(total_seconds, iif(state = 'RUNNING', (julianday('now') - julianday(started_at)) * 86400.0, "
       "NULL)), 1)"),
    AS(deliveries, "Destinations", TEXT | REPORT_ADDED, WORK_DELIVERIES),
    AS(reason, "Reason", TEXT | REPORT_ADDED, WORK_REASON),
    COLUMN(message, "Message", TEXT),
    COLUMN(series_uid, "Series", TEXT),
};

static const struct report_choice work_states[] = {
    {"RUNNING", "Running", "state = 'RUNNING'"},
    {"WAITING", "Waiting", "state IN ('READY', 'DELAYED')"},
    {"GATHERING", "Receiving", "state = 'GATHERING'"},
    {"REVIEW", "Review", "state = 'REVIEW'"},
    {"FAILED", "Failed", "state = 'FAILED'"},
    {"REFUSED", "Refused", "state = 'REFUSED'"},
    {"NO_JOB", "No job", "state = 'NO_JOB'"},
    {"EMPTY", "Empty", "state = 'EMPTY'"},
    {"DONE", "Done", "state = 'DONE'"},
    {"REJECTED", "Rejected", "state = 'REJECTED'"},
    {"CANCELLED", "Cancelled", "state = 'CANCELLED'"},
    {"READY", NULL, "state = 'READY'"},
    {"DELAYED", NULL, "state = 'DELAYED'"},
    {NULL, NULL, NULL},
};

static const struct report_choice work_versions[] = {
    {"yes", "the latest only", "superseded_by IS NULL"},
    {"no", "superseded only", "superseded_by IS NOT NULL"},
    {NULL, NULL, NULL},
};

static const struct report_choice work_ways[] = {
    {"inbox", "an inbox", "sender = ''"},
    {"network", "C-STORE", "sender <> ''"},
    {NULL, NULL, NULL},
};

/* The values of a column, which the index finds one by one. */
#define VALUES_OF(table, column)                                                                                       \
    "WITH RECURSIVE known (value) AS (SELECT min(" column ") FROM " table " WHERE " column " > '' UNION ALL "          \
    "SELECT (SELECT min(" column ") FROM " table " WHERE " column " > known.value) FROM known "                        \
    "WHERE known.value IS NOT NULL) SELECT value FROM known WHERE value IS NOT NULL"

/* Filters of the list of work, as addresses may hold them. */
#define WORK_FIELDS                                                                                                    \
    {"state", "State", REPORT_CHOICE, NULL, work_states, NULL},                                                        \
        {"pipeline", "Pipeline", REPORT_EQUAL, "pipeline = $", NULL, VALUES_OF("job", "pipeline")},                    \
        {"modality", "Modality", REPORT_EQUAL, "modality = upper($)", NULL, VALUES_OF("series", "modality")},          \
        {"scanner", "Scanner", REPORT_EQUAL, "station = $", NULL, VALUES_OF("series", "station")},                     \
        {"destination", "Destination",                                                                                 \
         REPORT_EQUAL,  "EXISTS (SELECT 1 FROM delivery d WHERE d.job_id = job AND +d.destination = $)",               \
         NULL,          "SELECT destination FROM v_destinations ORDER BY 1"},                                          \
        {"undelivered",                                                                                                \
         "Not delivered to",                                                                                           \
         REPORT_EQUAL,                                                                                                 \
         "job IN (SELECT d.job_id FROM delivery d WHERE d.destination = $ "                                            \
         "AND d.state IN ('PENDING', 'SENDING', 'DELAYED', 'FAILED', 'REVIEW'))",                                      \
         NULL,                                                                                                         \
         "SELECT destination FROM v_destinations ORDER BY 1"},                                                         \
        SINCE(since, "Since", "at"), BEFORE(before, "Before", "at"), SINCE(ended_since, "Ended since", "ended_at"),    \
        BEFORE(ended_before, "Ended before", "ended_at"),                                                              \
        {"longer", "Longer than (s)", REPORT_AMOUNT, "total_seconds > $", NULL, NULL},                                 \
        {"code", "Code", REPORT_EQUAL, "code = upper($)", NULL, NULL}, EQUAL(backend, "Computed on"),                  \
        EQUAL(sender, "Sender"), {"way", "Received by", REPORT_CHOICE, NULL, work_ways, NULL},                         \
        {"series", "Series", REPORT_EQUAL, "series_uid = $", NULL, NULL},                                              \
        {"study", "Study", REPORT_EQUAL, "study_uid = $", NULL, NULL},                                                 \
    {                                                                                                                  \
        "current", "Version", REPORT_CHOICE, NULL, work_versions, NULL                                                 \
    }

static const struct report_field work_fields[] = {WORK_FIELDS};

/* With a text, which can be a patient's, it is never in an address. */
static const struct report_field found_fields[] = {
    WORK_FIELDS,
    {"text", "Text", REPORT_SEARCH,
     "instr(lower(series_description), lower($)) > 0 "
     "OR job = CASE WHEN $ NOT GLOB '*[^0-9]*' AND length($) < 19 THEN CAST($ AS INTEGER) END OR study_uid = $ "
     "OR series_uid IN (" NAMED_OR_PATIENT("$", "@") ")",
     NULL, NULL},
};

/* Two indexes give the states in their order. */
static const char work_whole[] =
    "SELECT state, count(*) AS n FROM job GROUP BY state UNION ALL SELECT state, count(*) FROM "
    "(SELECT state FROM v_work WHERE work < 0" FLAT " GROUP BY state";

static const struct report_field audit_fields[] = {
    {"job", "Job", REPORT_COUNT, "job = $", NULL, NULL},
    EQUAL(actor, "Person"),
    EQUAL(action, "Action"),
    EQUAL(subject, "Subject"),
    EQUAL(how, "How"),
    SINCE(since, "Since", "at"),
    BEFORE(before, "Before", "at"),
};

static const struct report_column filters_columns[] = {COLUMN(name, "Name", TEXT), COLUMN(filter, "Filter", TEXT)};
static const struct report_field filters_fields[] = {EQUAL(person, "Person"), EQUAL(list, "List")};
static const struct report_sort filters_sorts[] = {{"name", "list || ' ' || name", false, false}};

static const struct report_sort audit_sorts[] = {{"audit", "audit", true, true}};

/* The text can be a patient's. */
static const struct report_field search_fields[] = {
    {"text", "A whole number, UID, accession number or patient ID", REPORT_SEARCH,
     "job = CASE WHEN $ NOT GLOB '*[^0-9]*' AND length($) < 19 THEN CAST($ AS INTEGER) END OR study_uid = $ "
     "OR series_uid IN (" NAMED_OR_PATIENT("$", "@") ")",
     NULL, NULL},
    {"state", "State", REPORT_CHOICE, NULL, work_states, NULL},
    {"pipeline", "Pipeline", REPORT_EQUAL, "pipeline = $", NULL, NULL},
    {"modality", "Modality", REPORT_EQUAL, "modality = upper($)", NULL, NULL},
    SINCE(since, "Since", "at"),
    {"current", "Version", REPORT_CHOICE, NULL, work_versions, NULL},
};

static const struct report_sort work_sorts[] = {
    {"at", "at", false, true},
    {"job", "work", true, true},
    {"pipeline", "pipeline", false, false},
    {"scanner", "station", false, false},
    {"instances", "instances", true, true},
    {"seconds", "coalesce(total_seconds, -1.0)", true, true},
};

/* SQLite must not sort the many that were sent: the plus keeps it from their index. */
static const struct report_choice delivery_states[] = {
    {"UNDELIVERED", "Not delivered", "state IN ('PENDING', 'SENDING', 'DELAYED', 'FAILED', 'REVIEW')"},
    {"WAITING", "Waiting", "state IN ('PENDING', 'SENDING', 'DELAYED')"},
    {"FAILED", "Failed", "state = 'FAILED'"},
    {"REVIEW", "To review", "state = 'REVIEW'"},
    {"SENT", "Sent", "+state = 'SENT'"},
    {"CANCELLED", "Cancelled", "state = 'CANCELLED'"},
    {"PENDING", NULL, "state = 'PENDING'"},
    {"SENDING", NULL, "state = 'SENDING'"},
    {"DELAYED", NULL, "state = 'DELAYED'"},
    {NULL, NULL, NULL},
};

static const struct report_choice delivery_commitments[] = {
    {"REQUESTED", "requested", "commitment = 'REQUESTED'"},
    {"COMMITTED", "committed", "+commitment = 'COMMITTED'"},
    {"FAILED", "failed", "commitment = 'FAILED'"},
    {"NONE", "not requested", "+commitment = 'NONE'"},
    {NULL, NULL, NULL},
};

static const struct report_column browse_deliveries[] = {
    COLUMN(state, "State", TEXT),
    COLUMN(delivery, "Delivery", NUMBER),
    COLUMN(job, "Job", NUMBER),
    COLUMN(destination, "Destination", TEXT),
    COLUMN(kind, "Result", TEXT),
    AS(series_description, "Description", TEXT | REPORT_ADDED,
       "(SELECT description FROM series s WHERE s.series_uid = r.series_uid)"),
    COLUMN(attempts, "Tries", NUMBER),
    AS(last, "Last", TIME, "coalesce(sent_at, started_at)"),
    COLUMN(not_before_at, "Not before", TIME),
    COLUMN(commitment, "Commitment", TEXT),
    COLUMN(code, "Code", TEXT),
    COLUMN(message, "Message", TEXT),
    COLUMN(held, "Held", TEXT),
    COLUMN(version, "Version", TEXT),
};

static const struct report_field deliveries_fields[] = {
    {"state", "State", REPORT_CHOICE, NULL, delivery_states, NULL},
    {"destination", "Destination", REPORT_EQUAL, "+destination = $", NULL,
     "SELECT destination FROM v_destinations ORDER BY 1"},
    {"commitment", "Commitment", REPORT_CHOICE, NULL, delivery_commitments, NULL},
    {"code", "Code", REPORT_EQUAL, "code = upper($)", NULL, NULL},
    {"kind", "Result", REPORT_EQUAL, "kind = $", NULL, NULL},
    {"job", "Job", REPORT_COUNT, "job = $", NULL, NULL},
    {"pipeline", "Pipeline", REPORT_EQUAL, "pipeline = $", NULL, NULL},
    SINCE(since, "Since", "created_at"),
    BEFORE(before, "Before", "created_at"),
    SINCE(sent_since, "Sent since", "sent_at"),
    SINCE(tried_since, "Tried since", "coalesce(started_at, created_at)"),
    BEFORE(tried_before, "Tried before", "coalesce(started_at, created_at)"),
    {"instance", "SOP Instance", REPORT_EQUAL, "sop_instance_uid = $", NULL, NULL},
};

/* An original path is the file name of the site, which can name a patient: it is not among these. */
static const struct report_column browse_quarantine[] = {
    COLUMN(quarantine, "File", NUMBER), COLUMN(quarantined_at, "Since", TIME),
    COLUMN(code, "Code", TEXT),         COLUMN(message, "Message", TEXT),
    COLUMN(sender, "Sender", TEXT),     COLUMN(called_ae, "Called", TEXT),
    COLUMN(series_uid, "Series", TEXT), COLUMN(sop_instance_uid, "Instance", TEXT),
    COLUMN(lacking, "Lacking", NUMBER), COLUMN(removed_at, "Removed", TIME),
};

static const struct report_choice quarantine_kept[] = {
    {"yes", "kept", "removed_at IS NULL"},
    {"no", "removed", "removed_at IS NOT NULL"},
    {NULL, NULL, NULL},
};

static const struct report_field quarantine_fields[] = {
    {"code", "Code", REPORT_EQUAL, "code = upper($)", NULL, NULL},
    EQUAL(sender, "Sender"),
    {"series", "Series", REPORT_EQUAL, "series_uid = $", NULL, NULL},
    {"kept", "Kept", REPORT_CHOICE, NULL, quarantine_kept, NULL},
    SINCE(since, "Since", "quarantined_at"),
    BEFORE(before, "Before", "quarantined_at"),
};

static const struct report_field part_fields[] = {
    {"job", "Job", REPORT_COUNT, "job = $", NULL, NULL},
    {"segment", "Segment", REPORT_COUNT, "segment = $", NULL, NULL},
};

static const struct report_field events_fields[] = {
    {"job", "Job", REPORT_COUNT, "job = $", NULL, NULL},
    EQUAL(kind, "Kind"),
    SINCE(since, "Since", "at"),
};

static const struct report_field features_fields[] = {
    {"job", "Job", REPORT_COUNT, "job = $", NULL, NULL},
    {"segment", "Segment", REPORT_COUNT, "segment = $", NULL, NULL},
    EQUAL(family, "Family"),
    EQUAL(name, "Name"),
};

static const struct report_field results_fields[] = {
    {"job", "Job", REPORT_COUNT, "job = $", NULL, NULL},
    EQUAL(kind, "Kind"),
    {"instance", "SOP Instance", REPORT_EQUAL, "sop_instance_uid = $ AND sop_instance_uid <> ''", NULL, NULL},
};

static const struct report_column browse_results[] = {COLUMN(path, "File", TEXT),
                                                      COLUMN(sop_class_uid, "SOP Class", TEXT),
                                                      COLUMN(job, "Job", NUMBER), COLUMN(removed_at, "Removed", TIME)};

static const struct report_field review_fields[] = {
    EQUAL(pipeline, "Pipeline"),
    {"modality", "Modality", REPORT_EQUAL, "modality = upper($)", NULL, NULL},
    {"series", "Series", REPORT_EQUAL, "series_uid = $", NULL, NULL},
};

/* Of such a field, "-" is an empty value. */
#define OR_EMPTY(key_, title_, column)                                                                                 \
    {                                                                                                                  \
#key_, (title_), REPORT_EQUAL, #column " = iif($ = '-', '', $)", NULL, NULL                                    \
    }

static const struct report_choice arrival_states[] = {
    {"GATHERING", "Receiving", "state = 'GATHERING'"},
    {"SETTLED", "Complete", "state = 'SETTLED'"},
    {"REFUSED", "Refused", "state = 'REFUSED'"},
    {NULL, NULL, NULL},
};
static const struct report_choice arrivals_refused[] = {{"yes", "in part or whole", REFUSED_IN}, {NULL, NULL, NULL}};
static const struct report_choice arrivals_unruled[] = {{"yes", "without a rule", UNRULED_IN}, {NULL, NULL, NULL}};

static const struct report_field arrivals_fields[] = {
    {"state", "State", REPORT_CHOICE, NULL, arrival_states, NULL},
    {"modality", "Modality", REPORT_EQUAL, "modality = iif($ = '-', '', upper($))", NULL,
     VALUES_OF("series", "modality")},
    {"station", "Scanner", REPORT_EQUAL, "station = iif($ = '-', '', $)", NULL, VALUES_OF("series", "station")},
    {"refused", "Refused", REPORT_CHOICE, NULL, arrivals_refused, NULL},
    {"unruled", "Rule", REPORT_CHOICE, NULL, arrivals_unruled, NULL},
    SINCE(settled_since, "Complete since", "settled_at"),
    BEFORE(settled_before, "Complete before", "settled_at"),
    {"code", "Code", REPORT_EQUAL, "code = upper($)", NULL, NULL},
    OR_EMPTY(body_part, "Body part", body_part),
    OR_EMPTY(sender, "Sender", sender),
    OR_EMPTY(manufacturer, "Manufacturer", manufacturer),
    OR_EMPTY(model, "Model", model),
    OR_EMPTY(site, "Institution", institution),
};

static const struct report_column arrivals_columns[] = {
    COLUMN(state, "State", TEXT),
    AS(series_description, "Description", TEXT, "coalesce(nullif(series_description, ''), 'series')"),
    COLUMN(modality, "Modality", TEXT),
    COLUMN(body_part, "Body part", TEXT),
    COLUMN(instances, "Instances", NUMBER),
    COLUMN(station, "Scanner", TEXT),
    COLUMN(sender, "Sender", TEXT),
    AS(last_seen, "Last seen", TIME, "last_seen_at"),
    COLUMN(code, "Code", TEXT),
    SERIES_UID,
    MESSAGE,
};

static const struct report_field series_fields[] = {{"series", "Series", REPORT_EQUAL, "series_uid = $", NULL, NULL}};

#define OF_LAST_DAY "sent_at >= " AGO
#define SENT_BY_HOUR                                                                                                   \
    "(WITH RECURSIVE hours (n) AS (SELECT 24 UNION ALL SELECT n - 1 FROM hours WHERE n > 1) SELECT group_concat("      \
    "(SELECT count(*) FROM delivery d WHERE d.destination = r.destination AND d.state = 'SENT' "                       \
    "AND d.sent_at >= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', -n || ' hours') "                                          \
    "AND d.sent_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', (1 - n) || ' hours')), ' ') FROM hours)"

static const struct report_column browse_destinations[] = {
    COLUMN(destination, "Destination", TEXT),
    AS(state, "State", TEXT, "iif(down_since IS NULL, 'up', 'down')"),
    AS(held, "Held", TEXT,
       "(SELECT 'by ' || held_by || iif(reason = '', '', ': ' || reason) FROM hold h WHERE h.kind = 'destination' "
       "AND h.name = r.destination)"),
    AS(waiting, "Waiting", NUMBER, "pending + sending + delayed"),
    COLUMN(failed, "Failed", NUMBER),
    COLUMN(uncommitted, "Without commitment", NUMBER),
    AS(sent_24h, "Sent (24 h)", NUMBER | REPORT_ADDED,
       "(SELECT count(*) FROM delivery d WHERE d.destination = r.destination AND d.state = 'SENT' AND d." OF_LAST_DAY
       ")"),
    AS(hours, "Last 24 hours", TEXT, SENT_BY_HOUR),
    AS(last_sent, "Last sent", TIME, "last_sent_at"),
    AS(next, "Next attempt", TIME, "next_attempt_at"),
    COLUMN(down_since, "Down since", TIME),
    COLUMN(down_reason, "Reason", TEXT),
};

static const struct report_column browse_undelivered[] = {
    COLUMN(destination, "Destination", TEXT),
    COLUMN(cause, "Cause", TEXT),
    COLUMN(code, "Code", TEXT),
    COLUMN(message, "Message", TEXT),
    AS(to_do, "Remedy", REMEDY, "code"),
    COLUMN(deliveries, "Results", NUMBER),
    COLUMN(jobs, "Jobs", NUMBER),
    COLUMN(tried, "Tried", NUMBER),
    COLUMN(oldest_at, "Oldest", TIME),
    COLUMN(next_attempt_at, "Next attempt", TIME),
};

static const struct report_field destinations_fields[] = {EQUAL(destination, "Destination")};

static const struct report_choice undelivered_causes[] = {
    {"WAITING", "Waiting", "cause = 'WAITING'"},
    {"HELD", "Held", "cause = 'HELD'"},
    {"FAILED", "Failed", "cause = 'FAILED'"},
    {"REVIEW", "To review", "cause = 'REVIEW'"},
    {"UNCOMMITTED", "Not committed", "cause = 'UNCOMMITTED'"},
    {NULL, NULL, NULL},
};

static const struct report_field undelivered_fields[] = {
    EQUAL(destination, "Destination"),
    {"cause", "Cause", REPORT_CHOICE, NULL, undelivered_causes, NULL},
};

static const struct report_choice callers_admitted[] = {
    {"yes", "admitted since", "admitted_at IS NOT NULL"},
    {"no", "rejected", "admitted_at IS NULL"},
    {NULL, NULL, NULL},
};

static const struct report_field callers_fields[] = {
    {"caller", "Caller", REPORT_EQUAL, "calling_ae = $", NULL, NULL},
    {"address", "Address", REPORT_EQUAL, "host = $", NULL, NULL},
    {"admitted", "Admitted", REPORT_CHOICE, NULL, callers_admitted, NULL},
    SINCE(since, "Since", "last_at"),
};

static const struct report_choice pull_states[] = {
    {"WAITING", "Waiting", "state = 'WAITING'"},
    {"FINDING", NULL, "state = 'FINDING'"},
    {"MOVING", NULL, "state = 'MOVING'"},
    {"OPEN", "Open", "ended_at IS NULL"},
    {"DONE", "Done", "state = 'DONE'"},
    {"PARTIAL", "Partial", "state = 'PARTIAL'"},
    {"NOT_FOUND", "Not found", "state = 'NOT_FOUND'"},
    {"FAILED", "Failed", "state = 'FAILED'"},
    {"CANCELLED", "Cancelled", "state = 'CANCELLED'"},
    {NULL, NULL, NULL},
};

static const struct report_field pulls_fields[] = {
    {"state", "State", REPORT_CHOICE, NULL, pull_states, NULL},
    EQUAL(source, "Source"),
    {"batch", "Batch", REPORT_COUNT, "batch = $", NULL, NULL},
    {"code", "Code", REPORT_EQUAL, "code = upper($)", NULL, NULL},
};

static const struct report_field reports_fields[] = {
    EQUAL(night, "Report"),
    SINCE(since, "Since", "until_at"),
    BEFORE(before, "Before", "until_at"),
};

static const struct report_field trends_fields[] = {
    EQUAL(pipeline, "Pipeline"),
    {"scanner", "Scanner", REPORT_EQUAL, "station = $", NULL, NULL},
    {"since", "Since", REPORT_MOMENT, "day >= substr($, 1, 10)", NULL, NULL},
    {"before", "Before", REPORT_MOMENT, "day < substr($, 1, 10)", NULL, NULL},
};

SORTS(deliveries_sorts, {"delivery", "delivery", true, true}, {"job", "job", true, true})
SORTS(review_sorts, {"job", "job", true, false})
SORTS(segments_sorts, {"segment", "segment", true, false})
SORTS(results_sorts, {"path", "path", false, false})
SORTS(events_sorts, {"event", "event", true, false})
SORTS(features_sorts, {"place", "place", true, false})
SORTS(arrivals_sorts, {"last_seen", "last_seen_at || ' ' || series_uid", false, true})
SORTS(series_sorts, {"series", "series_uid", false, false})
SORTS(destinations_sorts, {"destination", "destination", false, false})
SORTS(undelivered_sorts, {"deliveries", "deliveries", true, true}, {"oldest", "oldest_at", false, false},
      {"destination", "destination", false, false})
SORTS(callers_sorts, {"last", "last_at", false, true}, {"rejected", "rejected", true, true})
SORTS(pulls_sorts, {"item", "item", true, true})
SORTS(quarantine_sorts, {"since", "quarantined_at", false, true})
SORTS(reports_sorts, {"until", "until_at", false, true})
SORTS(trends_sorts, {"day", "day || ' ' || pipeline || ' ' || station", false, true})
SORTS(configuration_sorts, {"state", "state", false, false})

/* Rows of commands with the words of the API. */
static const struct report_column quarantine_columns[] = {
    COLUMN(quarantine, "FILE", NUMBER),
    AS(at, "SINCE", TIME, "quarantined_at"),
    COLUMN(code, "CODE", TEXT),
    AS(sender, "SENDER", TEXT, "coalesce(nullif(sender, ''), 'inbox')"),
    AS(lacking, "LACKING", DROP, "iif(lacking, 'yes', '')"),
    COLUMN(series_uid, "SERIES", TEXT),
    COLUMN(path, "PATH", DROP),
};

const struct report_list report_quarantine = {
    .view = "v_quarantine",
    .id = "quarantine",
    FILTERS(quarantine_fields, quarantine_sorts, "quarantine"),
    COLUMNS(quarantine_columns),
};

const struct report_list report_deliveries = {
    .view = "v_deliveries",
    .id = "delivery",
    FILTERS(deliveries_fields, deliveries_sorts, "delivery"),
    .states = queue_delivery_states,
    .state_count = QUEUE_DELIVERY_CANCELLED + 1,
    COLUMNS(delivery_columns),
};

static const struct report_column pull_columns[] = {
    COLUMN(item, "ITEM", NUMBER),
    COLUMN(batch, "BATCH", NUMBER),
    COLUMN(state, "STATE", TEXT),
    COLUMN(source, "SOURCE", TEXT),
    AS(arrived, "ARRIVED", WHOLE,
       "arrived || coalesce(' of ' || expected, '') || iif(unwanted > quarantined, ', ' || "
       "(unwanted - quarantined) || ' dropped', '') || iif(quarantined > 0, ', ' || quarantined || "
       "' quarantined', '')"),
    COLUMN(attempts, "TRIES", NUMBER | DROP),
    AS(not_before, "NOT BEFORE", DROP, "not_before_at"),
    AS(ended, "ENDED", DROP, "ended_at"),
    COLUMN(key, "KEY", DROP),
    AS(line, "LINE", NUMBER, "list_line"),
    COLUMN(identifier, "IDENTIFIER", TEXT),
    COLUMN(code, "CODE", TEXT),
};

const struct report_list report_pulls = {
    .view = "v_pulls",
    .id = "item",
    FILTERS(pulls_fields, pulls_sorts, "item"),
    .states = queue_pull_states,
    .state_count = QUEUE_PULL_CANCELLED + 1,
    COLUMNS(pull_columns),
};

#define BROWSE(key_, heading_, view_, fields_, sorts_, number, ...)                                                    \
    {                                                                                                                  \
        .key = (key_), .heading = (heading_), .view = (view_), FILTERS(fields_, sorts_, number), __VA_ARGS__           \
    }

const struct report_list report_browsed[BROWSE_COUNT] = {
    [BROWSE_WORK] = BROWSE("work", "Work", "v_work", work_fields, work_sorts, "work", COLUMNS(work_columns),
                           .id = "work", .whole = work_whole),
    [BROWSE_SEARCH] =
        BROWSE("search", "Search", "v_work", search_fields, work_sorts, "work", COLUMNS(work_columns), .id = "work"),
    [BROWSE_FOUND] = BROWSE("found", "Work with a text", "v_work", found_fields, work_sorts, "work",
                            COLUMNS(work_columns), .id = "work"),
    [BROWSE_DELIVERIES] = BROWSE("deliveries", "Deliveries", "v_deliveries", deliveries_fields, deliveries_sorts,
                                 "delivery", COLUMNS(browse_deliveries), .id = "delivery",
                                 .whole = "SELECT state, count(*) AS n FROM delivery GROUP BY state"),
    /* Oldest first, in the order of arrival. */
    [BROWSE_REVIEW] = BROWSE("review", "Under review", "v_review", review_fields, review_sorts, "job", ),
    [BROWSE_SEGMENTS] = BROWSE("segments", "Segments", "v_segments", part_fields, segments_sorts, "job", ),
    [BROWSE_RESULTS] =
        BROWSE("results", "Results", "v_results", results_fields, results_sorts, "job", COLUMNS(browse_results)),
    [BROWSE_EVENTS] = BROWSE("events", "Events", "v_events", events_fields, events_sorts, "event", ),
    [BROWSE_FEATURES] = BROWSE("features", "Features", "v_features", features_fields, features_sorts, "job", ),
    [BROWSE_SERIES] = BROWSE("series", "Series", "v_series", series_fields, series_sorts, ONLY, ),
    [BROWSE_ARRIVALS] =
        BROWSE("arrivals", "Series", "v_series", arrivals_fields, arrivals_sorts, ONLY, COLUMNS(arrivals_columns)),
    [BROWSE_DESTINATIONS] = BROWSE("destinations", "Destinations", "v_destinations", destinations_fields,
                                   destinations_sorts, ONLY, COLUMNS(browse_destinations)),
    [BROWSE_UNDELIVERED] = BROWSE("groups", "Not delivered, by cause", "v_undelivered", undelivered_fields,
                                  undelivered_sorts, "delivery", COLUMNS(browse_undelivered)),
    [BROWSE_CALLERS] = BROWSE("callers", "Rejected callers", "v_callers", callers_fields, callers_sorts, "id", ),
    [BROWSE_PULLS] = BROWSE("pulls", "Retrievals", "v_pulls", pulls_fields, pulls_sorts, "item", ),
    [BROWSE_QUARANTINE] = BROWSE("quarantine", "Quarantined files", "v_quarantine", quarantine_fields, quarantine_sorts,
                                 "quarantine", COLUMNS(browse_quarantine), .is_closed = true),
    [BROWSE_REPORTS] = BROWSE("reports", "Reports", "v_nights", reports_fields, reports_sorts, ONLY, ),
    [BROWSE_TRENDS] = BROWSE("trends", "Trends", "v_trends", trends_fields, trends_sorts, ONLY, ),
    [BROWSE_AUDIT] = BROWSE("audit", "Audit", "v_audit", audit_fields, audit_sorts, "audit", ),
    [BROWSE_FILTERS] = BROWSE("views", "Saved filters", "v_saved_filters", filters_fields, filters_sorts, ONLY,
                              COLUMNS(filters_columns)),
    [BROWSE_CONFIGURATION] = {.key = "config",
                              .heading = "Configuration",
                              .view = "v_configuration",
                              .sorts = configuration_sorts,
                              .sort_count = COLUMN_COUNT(configuration_sorts),
                              .unique = ONLY},
};

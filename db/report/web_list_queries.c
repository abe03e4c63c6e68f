/*
 * web_list_queries.c - the lists of the web UI: a query per list, with the titles of its columns.
 * The last value of a row is its mark, from which the next rows are found. Lists are sorted by
 * their marks.
 */
#include "db/report/report_period_private.h"
#include "db/report/web_lists_private.h"

/* All parameters, in each query. */
#define ASKED                                                                                      \
    "WITH asked (mark, job, text, word, most) AS (SELECT ?1, ?2, ?3, ?4, ?5), "                    \
    "day (ago) AS (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours')) "
#define MOST    " LIMIT ?5"
#define NO_MARK ", ''"

/* Newest first: the mark is a time, then a key that distinguishes rows of one time. */
#define TIME_MARK(time, key) ", " time " || ' ' || " key
#define BEHIND(time, key)                                                                          \
    "(?1 = '' OR " time " <= substr(?1, 1, 24) AND " time " || ' ' || " key " < ?1)"
#define NEWEST_FIRST(time, key) " ORDER BY " time " DESC, " key " DESC" MOST
#define BY_NUMBER(number)       "(?1 = '' OR " number " < CAST(?1 AS INTEGER))"
#define JOB_KEY                 "printf('%015d', job)"

/* ------------------------------------------------------------------------------------- now ---- */

static const struct night_column now_of[] = {
    COLUMN(running, "running", NUMBER),          COLUMN(ready, "ready", NUMBER),
    SILENT(delayed, "delayed", NUMBER),          COLUMN(review, "under review", NUMBER),
    COLUMN(failed, "failed (24 h)", NUMBER),     COLUMN(ended, "ended (24 h)", NUMBER),
    COLUMN(to_go, "time for the backlog", TEXT), COLUMN(oldest, "longest wait", TEXT),
};

static const char now_sql[] =
    ASKED "SELECT jobs_running, jobs_ready, jobs_delayed, jobs_review, jobs_failed_24h, "
          "jobs_ended_24h, iif(eta_seconds > 0.0, eta, NULL), oldest_waiting" NO_MARK
          " FROM (SELECT *, " DURATION(eta) ", " DURATION(oldest_waiting) " FROM v_night)";

static const struct night_column now_series_of[] = {
    COLUMN(gathering, "being received", NUMBER),
    COLUMN(refused, "refused (24 h)", NUMBER),
    COLUMN(without_rule, "without a rule", NUMBER),
    COLUMN(quarantined, "quarantined files (24 h)", NUMBER),
};

static const char now_series_sql[] =
    ASKED "SELECT series_gathering, series_refused_24h, series_without_rule, "
          "quarantined_24h" NO_MARK " FROM v_night";

static const struct night_column now_deliveries_of[] = {
    COLUMN(waiting, "waiting", NUMBER),  COLUMN(failed, "failed", NUMBER),
    COLUMN(sent, "sent (24 h)", NUMBER), COLUMN(free_gib, "GiB free", NUMBER),
    COLUMN(free_at, "measured", TIME),   COLUMN(full_days, "days until the disk is full", NUMBER),
};

static const char now_deliveries_sql[] =
    ASKED "SELECT deliveries_pending + deliveries_sending + deliveries_delayed, deliveries_failed, "
          "deliveries_sent_24h, round(free_mib / 1024.0, 1), free_at, disk_full_days" NO_MARK
          " FROM v_night";

static const struct night_column configuration_of[] = {
    COLUMN(state, "STATE", TEXT),        COLUMN(at, "AT", TIME),
    COLUMN(cause, "CAUSE", TEXT),        COLUMN(by, "REQUESTED BY", TEXT),
    BELOW(since, "refused since", TIME), BELOW(reason, "reason", TEXT),
    BELOW(files, "files", TEXT),
};

static const char configuration_sql[] =
    ASKED "SELECT iif(state = 'LOADED', 'in force', 'refused'), at, cause, asked_by, "
          "iif(state = 'REFUSED', since_at, NULL), reason, replace(files, char(10), ', ')" NO_MARK
          " FROM v_configuration ORDER BY state" MOST;

/* ----------------------------------------------------------------------------------- queue ---- */

static const struct night_column running_of[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(stage, "STAGE", TEXT),
    COLUMN(share, "ESTIMATE", SHARE),
    COLUMN(seconds, "RUN TIME (s)", NUMBER),
    BELOW(stage_since, "in this stage since", TIME),
    BELOW(usual, "usual (s)", NUMBER),
    BELOW(started, "started", TIME),
    BELOW(executor, "executor", TEXT),
    BELOW(slurm_id, "Slurm job", NUMBER),
    BELOW(node, "node", TEXT),
    BELOW(slurm_reason, "Slurm reason", TEXT),
    BELOW(modality, "modality", TEXT),
    BELOW(series_description, "description", TEXT),
    BELOW(series_uid, "series", TEXT),
};

/*
 * The worker reports the stage. The progress is estimated from the time of the pipeline's jobs in
 * the last 24 hours.
 */
static const char running_sql[] =
    ASKED ", usual AS MATERIALIZED (SELECT pipeline, "
          "avg((julianday(ended_at) - julianday(started_at)) * 86400.0) AS seconds FROM v_jobs "
          "WHERE ended_at >= (SELECT ago FROM day) AND started_at IS NOT NULL "
          "AND state IN ('DONE', 'EMPTY', 'REVIEW') GROUP BY pipeline), "
          "running AS (SELECT *, max(0.0, (julianday('now') - julianday(started_at)) * 86400.0) "
          "AS seconds FROM v_jobs WHERE state = 'RUNNING') "
          "SELECT job, r.pipeline, stage, "
          "round(min(r.seconds / max(u.seconds, 0.001), 0.99), 2), round(r.seconds, 1), "
          "stage_since, round(u.seconds, 1), started_at, executor, slurm_id, node, slurm_reason, "
          "modality, series_description, series_uid" NO_MARK
          " FROM running r LEFT JOIN usual u ON u.pipeline = r.pipeline "
          "ORDER BY started_at, job" MOST;

static const struct night_column waiting_of[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(state, "STATE", TEXT),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(priority, "PRIORITY", NUMBER),
    BELOW(created, "created", TIME),
    BELOW(not_before, "not before", TIME),
    BELOW(until, "waits until", TIME),
    BELOW(code, "last code", TEXT),
    BELOW(held, "held", TEXT),
    BELOW(modality, "modality", TEXT),
    BELOW(series_description, "description", TEXT),
    BELOW(series_uid, "series", TEXT),
};

/* They start when the missing input is there, and fail at not_before_at. */
#define WAITS_FOR_OTHERS "code IN ('OBJECT_WAITING', 'STUDY_WAITING')"

/* In the order in which they start. */
#define TURN "printf('%05d %015d', 50000 - priority, job)"
static const char waiting_sql[] =
    ASKED "SELECT job, state, pipeline, priority, created_at, "
          "iif(" WAITS_FOR_OTHERS ", NULL, not_before_at), iif(" WAITS_FOR_OTHERS
          ", not_before_at, NULL), code, held, modality, "
          "series_description, series_uid, " TURN " FROM v_jobs "
          "WHERE state IN ('READY', 'DELAYED') AND (?1 = '' OR " TURN " > ?1) ORDER BY " TURN MOST;

static const struct night_column gathering_of[] = {
    COLUMN(last_seen, "LAST INSTANCE", TIME),
    COLUMN(modality, "MODALITY", TEXT),
    COLUMN(instances, "INSTANCES", NUMBER),
    BELOW(expected, "expected", NUMBER),
    BELOW(series_description, "description", TEXT),
    BELOW(sender, "sender", TEXT),
    BELOW(series_uid, "series", TEXT),
};

static const char gathering_sql[] = ASKED
    "SELECT last_seen_at, modality, instances, expected_instances, series_description, sender, "
    "series_uid" TIME_MARK("last_seen_at",
                           "series_uid") " FROM v_series "
                                         "WHERE state = 'GATHERING' AND " BEHIND("last_seen_at",
                                                                                 "series_uid")
                                             NEWEST_FIRST("last_seen_at", "series_uid");

static const struct night_column holds_of[] = {
    COLUMN(kind, "HELD", TEXT),  COLUMN(name, "NAME", TEXT),    COLUMN(held_at, "SINCE", TIME),
    COLUMN(held_by, "BY", TEXT), BELOW(reason, "reason", TEXT),
};

static const char holds_sql[] = ASKED "SELECT kind, name, held_at, held_by, reason" NO_MARK
                                      " FROM v_holds ORDER BY held_at" MOST;

/* --------------------------------------------------------------------- what needs a look ---- */

static const struct night_column review_of[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(modality, "MODALITY", TEXT),
    COLUMN(since, "SINCE", TIME),
    BELOW(message, "finding", TEXT),
    BELOW(outdated, "outdated", TEXT),
    BELOW(series_description, "description", TEXT),
    BELOW(series_uid, "series", TEXT),
};

/* Oldest first, in the order of arrival. */
static const char review_sql[] =
    ASKED "SELECT job, pipeline, modality, since_at, message, "
          "iif(outdated, 'late slices have arrived since: it can only be rejected', NULL), "
          "series_description, series_uid, job FROM v_review "
          "WHERE ?1 = '' OR job > CAST(?1 AS INTEGER) ORDER BY job" MOST;

static const struct night_column failed_of[] = {
    COLUMN(job, "JOB", NUMBER),        COLUMN(code, "CODE", TEXT),
    COLUMN(ended, "ENDED", TIME),      BELOW(message, "message", TEXT),
    BELOW(to_do, "remedy", REMEDY),    BELOW(pipeline, "pipeline", TEXT),
    BELOW(modality, "modality", TEXT), BELOW(series_description, "description", TEXT),
    BELOW(series_uid, "series", TEXT),
};

/* Superseded jobs need no action. */
static const char failed_sql[] = ASKED
    "SELECT job, code, ended_at, message, code, pipeline, modality, series_description, "
    "series_uid" TIME_MARK("ended_at",
                           JOB_KEY) " FROM v_jobs "
                                    "WHERE state = 'FAILED' AND superseded_by IS NULL AND " BEHIND(
                                        "ended_at", JOB_KEY) NEWEST_FIRST("ended_at", JOB_KEY);

static const struct night_column refused_of[] = {
    COLUMN(settled, "REFUSED AT", TIME),
    COLUMN(code, "CODE", TEXT),
    BELOW(message, "message", TEXT),
    BELOW(to_do, "remedy", REMEDY),
    BELOW(modality, "modality", TEXT),
    BELOW(instances, "instances", NUMBER),
    BELOW(station, "station", TEXT),
    BELOW(sender, "sender", TEXT),
    BELOW(series_description, "description", TEXT),
    BELOW(series_uid, "series", TEXT),
};

static const char refused_sql[] =
    ASKED "SELECT settled_at, code, message, code, modality, instances, station, sender, "
          "series_description, series_uid" TIME_MARK(
              "settled_at", "series_uid") " FROM v_series "
                                          "WHERE state = 'REFUSED' AND " BEHIND("settled_at",
                                                                                "series_uid")
                                              NEWEST_FIRST("settled_at", "series_uid");

static const struct night_column quarantined_of[] = {
    COLUMN(at, "AT", TIME),
    COLUMN(code, "CODE", TEXT),
    BELOW(message, "message", TEXT),
    BELOW(to_do, "remedy", REMEDY),
    BELOW(number, "noctule quarantine show", NUMBER),
    BELOW(sender, "sender", TEXT),
    BELOW(path, "file", TEXT),
    BELOW(series_uid, "series", TEXT),
};

#define FILE_KEY "printf('%015d', quarantine)"
static const char quarantined_sql[] = ASKED
    "SELECT quarantined_at, code, message, code, quarantine, sender, path, "
    "series_uid" TIME_MARK("quarantined_at", FILE_KEY) " FROM v_quarantine "
                                                       "WHERE removed_at IS NULL AND " BEHIND(
                                                           "quarantined_at", FILE_KEY)
                                                           NEWEST_FIRST("quarantined_at", FILE_KEY);

/* ------------------------------------------------------------------------------ deliveries ---- */

static const struct night_column destinations_of[] = {
    COLUMN(destination, "DESTINATION", TEXT),
    COLUMN(state, "STATE", TEXT),
    COLUMN(waiting, "WAITING", NUMBER),
    COLUMN(failed, "FAILED", NUMBER),
    COLUMN(sent, "SENT", NUMBER),
    BELOW(uncommitted, "without commitment", NUMBER),
    BELOW(last_sent, "last sent", TIME),
    BELOW(down, "down since", TIME),
    BELOW(down_reason, "reason", TEXT),
    BELOW(next, "next attempt", TIME),
};

static const char destinations_sql[] =
    ASKED "SELECT destination, iif(down_since IS NULL, 'up', 'down'), "
          "pending + sending + delayed, failed, sent, nullif(uncommitted, 0), last_sent_at, "
          "down_since, down_reason, "
          "next_attempt_at" NO_MARK " FROM v_destinations ORDER BY destination" MOST;

static const struct night_column delivery_of[] = {
    COLUMN(delivery, "DELIVERY", NUMBER),
    COLUMN(state, "STATE", TEXT),
    COLUMN(destination, "DESTINATION", TEXT),
    COLUMN(job, "JOB", NUMBER),
    BELOW(code, "code", TEXT),
    BELOW(message, "message", TEXT),
    BELOW(to_do, "remedy", REMEDY),
    BELOW(kind, "result", TEXT),
    BELOW(attempts, "attempts", NUMBER),
    BELOW(last, "last", TIME),
    BELOW(not_before, "not before", TIME),
    BELOW(held, "held", TEXT),
    BELOW(commitment, "commitment", TEXT),
    BELOW(sop_instance_uid, "instance", TEXT),
};

#define DELIVERY_SELECT                                                                            \
    "SELECT delivery, state, destination, job, code, message, code, kind, attempts, "              \
    "coalesce(sent_at, started_at), not_before_at, held, nullif(commitment, 'NONE'), "             \
    "sop_instance_uid, delivery FROM v_deliveries WHERE "

static const char undelivered_sql[] =
    ASKED DELIVERY_SELECT "state IN ('PENDING', 'SENDING', 'DELAYED', 'FAILED') AND " BY_NUMBER(
        "delivery") " ORDER BY "
                    "delivery DESC" MOST;
static const char delivered_sql[] = ASKED DELIVERY_SELECT
    "state IN ('SENT', 'CANCELLED') AND " BY_NUMBER("delivery") " ORDER BY delivery DESC" MOST;
static const char job_deliveries_sql[] =
    ASKED DELIVERY_SELECT "job = ?2 AND " BY_NUMBER("delivery") " ORDER BY delivery DESC" MOST;

/* ----------------------------------------------------------------------------------- pulls ---- */

/* By batch. `noctule pull` lists the items, as far as `identifiers` allows. */
static const struct night_column pulling_of[] = {
    COLUMN(batch, "BATCH", NUMBER),        COLUMN(source, "SOURCE", TEXT),
    COLUMN(under_way, "CURRENT", NUMBER),  COLUMN(waiting, "WAITING", NUMBER),
    COLUMN(ended, "ENDED", NUMBER),        BELOW(arrived, "instances", NUMBER),
    BELOW(created, "requested", TIME),     BELOW(started, "last attempt", TIME),
    BELOW(not_before, "not before", TIME), BELOW(code, "last code", TEXT),
    BELOW(message, "message", TEXT),       BELOW(to_do, "remedy", REMEDY),
};

/* Oldest first. The message of a batch is that of the open item with the latest failed attempt. */
static const char pulling_sql[] =
    ASKED ", batches AS (SELECT batch, source, min(created_at) AS created_at, "
          "count(*) FILTER (WHERE state <> 'WAITING') AS under_way, "
          "count(*) FILTER (WHERE state = 'WAITING') AS waiting, max(started_at) AS started_at, "
          "min(not_before_at) AS not_before_at FROM v_pulls WHERE ended_at IS NULL "
          "AND (?1 = '' OR batch > CAST(?1 AS INTEGER)) GROUP BY batch, source), "
          "failures AS (SELECT batch, code, message, max(started_at) FROM v_pulls "
          "WHERE ended_at IS NULL AND code <> '' GROUP BY batch), "
          "all_of AS (SELECT batch, count(ended_at) AS ended, sum(arrived) AS arrived FROM v_pulls "
          "WHERE batch IN (SELECT batch FROM batches) GROUP BY batch) "
          "SELECT b.batch, source, under_way, waiting, ended, arrived, created_at, started_at, "
          "not_before_at, code, message, code, b.batch FROM batches b "
          "JOIN all_of a ON a.batch = b.batch LEFT JOIN failures f ON f.batch = b.batch "
          "ORDER BY b.batch" MOST;

static const struct night_column unpulled_of[] = {
    COLUMN(batch, "BATCH", NUMBER),  COLUMN(source, "SOURCE", TEXT), COLUMN(code, "CODE", TEXT),
    COLUMN(items, "ITEMS", NUMBER),  BELOW(ended, "ended", TIME),    BELOW(state, "state", TEXT),
    BELOW(message, "message", TEXT), BELOW(to_do, "remedy", REMEDY),
};

/* The message is that of the last item. */
#define PULL_KEY "printf('%015d', batch) || state || code"
static const char unpulled_sql[] = ASKED
    ", ends AS (SELECT batch, source, state, code, count(*) AS items, max(ended_at) AS ended_at, "
    "message FROM v_pulls WHERE state IN ('NOT_FOUND', 'PARTIAL', 'FAILED') "
    "GROUP BY batch, source, state, code) "
    "SELECT batch, source, code, items, ended_at, state, message, code" TIME_MARK(
        "ended_at", PULL_KEY) " FROM ends WHERE " BEHIND("ended_at", PULL_KEY)
        NEWEST_FIRST("ended_at", PULL_KEY);

/* --------------------------------------------------------------------------------- devices ---- */

static const struct night_column devices_of[] = {
    COLUMN(backend, "COMPUTED ON (24 h)", TEXT),
    COLUMN(jobs, "JOBS", NUMBER),
    COLUMN(failed, "FAILED", NUMBER),
    BELOW(compute, "computed (s)", NUMBER),
    BELOW(peak, "peak (MiB)", NUMBER),
    BELOW(last, "last", TIME),
};

static const char devices_sql[] =
    ASKED "SELECT backend, count(*), count(*) FILTER (WHERE state = 'FAILED'), "
          "round(sum(compute_seconds), 1), max(peak_mib), max(ended_at)" NO_MARK " FROM v_jobs "
          "WHERE ended_at >= (SELECT ago FROM day) AND backend <> '' GROUP BY backend "
          "ORDER BY count(*) DESC" MOST;

static const struct night_column event_of[] = {
    COLUMN(at, "AT", TIME),
    COLUMN(kind, "EVENT", TEXT),
    BELOW(change, "state", TEXT),
    BELOW(detail, "detail", TEXT),
};

/* Only the latest events are read. */
#define RECENT_EVENTS "20000"
static const char device_events_sql[] =
    ASKED "SELECT at, kind, NULL, detail, event FROM v_events "
          "WHERE event > (SELECT max(event) FROM v_events) - " RECENT_EVENTS
          " AND " BY_NUMBER("event") " AND kind IN ('COMPUTE_READY', 'COMPUTE_WAITING', "
                                     "'DEVICE_MISSING', 'DEVICE_LOST', "
                                     "'DEVICE_GIVEN_UP', 'WORKER_DIED') ORDER BY event DESC" MOST;

/* ---------------------------------------------------------------------------------- nights ---- */

static const struct night_column nights_of[] = {
    COLUMN(night, "REPORT", TEXT),          COLUMN(settled, "COMPLETE", NUMBER),
    COLUMN(refused, "REFUSED", NUMBER),     COLUMN(done, "DONE", NUMBER),
    COLUMN(failed, "FAILED", NUMBER),       COLUMN(review, "REVIEW", NUMBER),
    COLUMN(delivered, "DELIVERED", NUMBER), COLUMN(undelivered, "NOT DELIVERED", NUMBER),
};

static const char nights_sql[] = ASKED
    "SELECT night, series_settled, series_refused, jobs_done + jobs_empty, jobs_failed, "
    "jobs_review, delivered, undelivered" TIME_MARK(
        "until_at", "night") " FROM v_nights "
                             "WHERE " BEHIND("until_at", "night") NEWEST_FIRST("until_at", "night");

static const struct night_column night_of[] = {COLUMN(since, "since", TIME),
                                               COLUMN(until, "until", TIME)};

static const char night_sql[] =
    ASKED "SELECT since_at, until_at" NO_MARK " FROM v_nights WHERE night = ?3";

/* ----------------------------------------------------------------------- one job, one series ---- */

static const struct night_column job_of[] = {
    COLUMN(state, "state", TEXT),
    COLUMN(pipeline, "pipeline", TEXT),
    COLUMN(rule, "rule", TEXT),
    COLUMN(stack, "stack", TEXT),
    COLUMN(series_uid, "series", TEXT),
    COLUMN(modality, "modality", TEXT),
    COLUMN(body_part, "body part", TEXT),
    COLUMN(series_description, "description", TEXT),
    COLUMN(code, "code", TEXT),
    COLUMN(message, "message", TEXT),
    COLUMN(to_do, "remedy", REMEDY),
    COLUMN(note, "note", TEXT),
    COLUMN(created, "created", TIME),
    COLUMN(started, "started", TIME),
    COLUMN(ended, "ended", TIME),
    COLUMN(wait, "waiting time (s)", NUMBER),
    COLUMN(total, "run time (s)", NUMBER),
    COLUMN(executor, "executor", TEXT),
    COLUMN(slurm_id, "Slurm job", NUMBER),
    COLUMN(node, "node", TEXT),
    COLUMN(slurm_reason, "Slurm reason", TEXT),
    COLUMN(backend, "computed on", TEXT),
    COLUMN(peak, "peak (MiB)", NUMBER),
    COLUMN(attempts, "attempts", NUMBER),
    COLUMN(priority, "priority", NUMBER),
    COLUMN(held, "held", TEXT),
    COLUMN(superseded_by, "superseded by", NUMBER),
    COLUMN(reviewed_by, "reviewed by", TEXT),
    COLUMN(removed, "results removed", TIME),
};

static const char job_sql[] = ASKED
    "SELECT state, pipeline, rule, stack, series_uid, modality, body_part, series_description, "
    "code, message, code, note, created_at, started_at, ended_at, round(wait_seconds, 1), "
    "round(total_seconds, 2), executor, slurm_id, node, slurm_reason, backend, peak_mib, "
    "attempts, priority, held, superseded_by, "
    "reviewed_by, removed_at" NO_MARK " FROM v_jobs WHERE job = ?2";

static const struct night_column job_segments_of[] = {
    COLUMN(segment, "SEGMENT", NUMBER),
    COLUMN(label, "LABEL", TEXT),
    COLUMN(volume_ml, "VOLUME (ml)", NUMBER),
    COLUMN(mean, "MEAN", NUMBER),
    COLUMN(minimum, "MIN", NUMBER),
    COLUMN(maximum, "MAX", NUMBER),
    COLUMN(unit, "UNIT", TEXT),
    BELOW(box, "box (mm)", TEXT),
    BELOW(centroid, "centroid (mm, LPS)", TEXT),
};

/* A mark is the Segment Number: segments are sorted in ascending order. */
static const char job_segments_sql[] =
    ASKED "SELECT segment, label, printf('%.2f', volume_ml), iif(voxels > 0, printf('%.6g', mean), "
          "NULL), "
          "iif(voxels > 0, printf('%.6g', minimum), NULL), iif(voxels > 0, printf('%.6g', "
          "maximum), NULL), "
          "iif(unit = '1', NULL, replace(unit, '[hnsf''U]', 'HU')), iif(voxels > 0, "
          "printf('%.1f x %.1f x %.1f', width_mm, height_mm, depth_mm), NULL), "
          "iif(x_mm IS NULL, NULL, printf('%.1f, %.1f, %.1f', round(x_mm, 1) + 0.0, round(y_mm, 1) "
          "+ 0.0, round(z_mm, 1) + 0.0)), segment "
          "FROM v_segments WHERE job = ?2 AND (?1 = '' OR segment > CAST(?1 AS INTEGER)) "
          "ORDER BY segment" MOST;

static const struct night_column job_results_of[] = {
    COLUMN(kind, "RESULT", TEXT),
    COLUMN(size, "KiB", NUMBER),
    COLUMN(frames, "FRAMES", NUMBER),
    BELOW(path, "file", TEXT),
    BELOW(sop_instance_uid, "instance", TEXT),
};

static const char job_results_sql[] =
    ASKED "SELECT kind, round(size_bytes / 1024.0, 1), frames, path, sop_instance_uid" NO_MARK
          " FROM v_results WHERE job = ?2 ORDER BY kind, path" MOST;

static const char job_events_sql[] = ASKED "SELECT at, kind, coalesce(from_state || ' to ', '') || "
                                           "to_state, detail, event FROM v_events WHERE job = ?2 "
                                           "AND " BY_NUMBER("event") " ORDER BY event DESC" MOST;

static const struct night_column series_of[] = {
    COLUMN(state, "state", TEXT),
    COLUMN(code, "code", TEXT),
    COLUMN(message, "message", TEXT),
    COLUMN(to_do, "remedy", REMEDY),
    COLUMN(modality, "modality", TEXT),
    COLUMN(body_part, "body part", TEXT),
    COLUMN(series_description, "description", TEXT),
    COLUMN(study_description, "study", TEXT),
    COLUMN(study_date, "study date", TEXT),
    COLUMN(study_uid, "study UID", TEXT),
    COLUMN(accession_number, "accession number", TEXT),
    COLUMN(patient_id, "patient ID", TEXT),
    COLUMN(instances, "instances", NUMBER),
    COLUMN(expected, "expected", NUMBER),
    COLUMN(evidence, "complete by", TEXT),
    COLUMN(incomplete, "lacks", TEXT),
    COLUMN(called_ae, "called AE", TEXT),
    COLUMN(sender, "sender", TEXT),
    COLUMN(manufacturer, "manufacturer", TEXT),
    COLUMN(model, "model", TEXT),
    COLUMN(station, "station", TEXT),
    COLUMN(institution, "institution", TEXT),
    COLUMN(first_seen, "first seen", TIME),
    COLUMN(settled, "settled", TIME),
    COLUMN(revision, "revision", NUMBER),
    COLUMN(removed, "removed", TIME),
};

static const char series_sql[] =
    ASKED "SELECT state, code, message, code, modality, body_part, series_description, "
          "study_description, study_date, study_uid, accession_number, patient_id, instances, "
          "expected_instances, evidence, incomplete, called_ae, sender, manufacturer, model, "
          "station, institution, first_seen_at, settled_at, revision, removed_at" NO_MARK
          " FROM v_series WHERE series_uid = ?3";

static const struct night_column series_jobs_of[] = {
    COLUMN(job, "JOB", NUMBER),         COLUMN(state, "STATE", TEXT),
    COLUMN(pipeline, "PIPELINE", TEXT), COLUMN(code, "CODE", TEXT),
    BELOW(stack, "volume", TEXT),       BELOW(revision, "revision", NUMBER),
    BELOW(created, "created", TIME),
};

static const char series_jobs_sql[] =
    ASKED "SELECT job, state, pipeline, code, stack, revision, created_at, job FROM v_jobs "
          "WHERE series_uid = ?3 AND " BY_NUMBER("job") " ORDER BY job DESC" MOST;

static const struct night_column series_stacks_of[] = {
    COLUMN(stack, "VOLUME", TEXT),        COLUMN(accepted, "ACCEPTED", TEXT),
    COLUMN(planes, "PLANES", NUMBER),     COLUMN(code, "CODE", TEXT),
    BELOW(columns, "columns", NUMBER),    BELOW(rows, "rows", NUMBER),
    BELOW(spacing, "spacing (mm)", TEXT), BELOW(orientation, "orientation", TEXT),
    BELOW(message, "message", TEXT),      BELOW(to_do, "remedy", REMEDY),
};

static const char series_stacks_sql[] = ASKED
    "SELECT stack, iif(accepted, 'yes', 'no'), planes, code, columns, rows, "
    "iif(spacing_x_mm IS NULL, round(spacing_mm, 3), "
    "printf('%.4g x %.4g x %.4g', spacing_x_mm, spacing_y_mm, spacing_mm)), nullif(orientation, "
    "''), message, code" NO_MARK " FROM v_stacks WHERE series_uid = ?3 ORDER BY stack" MOST;

/* --------------------------------------------------------------------------------- search ---- */

static const struct night_column found_of[] = {
    COLUMN(last_seen, "LAST SEEN", TIME),  COLUMN(state, "STATE", TEXT),
    COLUMN(modality, "MODALITY", TEXT),    BELOW(code, "code", TEXT),
    BELOW(study_date, "study date", TEXT), BELOW(instances, "instances", NUMBER),
    BELOW(jobs, "jobs done", TEXT),        BELOW(series_description, "description", TEXT),
    BELOW(series_uid, "series", TEXT),
};

#define FOUND_SELECT                                                                               \
    "SELECT last_seen_at, state, modality, code, study_date, instances, "                          \
    "jobs_done || '/' || jobs, series_description, series_uid" TIME_MARK(                          \
        "last_seen_at", "series_uid") " FROM v_series WHERE " BEHIND("last_seen_at", "series_uid")
#define FOUND_ORDER NEWEST_FIRST("last_seen_at", "series_uid")

/* Each condition uses its own index. */
static const char found_sql[] = ASKED FOUND_SELECT
    " AND series_uid IN (SELECT ?3 "
    "UNION SELECT series_uid FROM v_series WHERE accession_number <> '' "
    "AND accession_number IN (?3, ?4) "
    "UNION SELECT series_uid FROM v_series WHERE patient_id <> '' AND patient_id IN (?3, ?4) "
    "UNION SELECT series_uid FROM v_instances WHERE sop_instance_uid = ?3 "
    "UNION SELECT series_uid FROM v_results WHERE sop_instance_uid = ?3 AND sop_instance_uid <> '' "
    "UNION SELECT series_uid FROM v_results WHERE result_series_uid = ?3 "
    "AND result_series_uid <> '')" FOUND_ORDER;

/* Reads all series; used only if the other search finds no series. */
static const char found_study_sql[] = ASKED FOUND_SELECT " AND study_uid = ?3" FOUND_ORDER;

/* --------------------------------------------------------------------------------- callers ---- */

static const struct night_column callers_of[] = {
    COLUMN(calling, "CALLER", TEXT),
    COLUMN(host, "ADDRESS", TEXT),
    COLUMN(called, "CALLED", TEXT),
    COLUMN(rejected, "TIMES", NUMBER),
    BELOW(last, "last time", TIME),
    BELOW(first, "first time", TIME),
    BELOW(meaning, "why", TEXT),
    BELOW(admit, "to admit it, in section dicom", TEXT),
    BELOW(admitted, "admitted since", TIME),
};

#define CALLER_KEY "host || ' ' || calling_ae || ' ' || called_ae || ' ' || reason"
static const char callers_sql[] =
    ASKED "SELECT calling_ae, host, called_ae, rejected, last_at, first_at, meaning, admit, "
          "admitted_at" TIME_MARK("last_at", CALLER_KEY) " FROM v_callers WHERE " BEHIND(
              "last_at", CALLER_KEY) NEWEST_FIRST("last_at", CALLER_KEY);

/* ---------------------------------------------------------------------------------- sources ---- */

#define COUNT_OF(columns) (sizeof(columns) / sizeof *(columns))
#define PAGE_TABLE(name, of_, sql_, heading_, hint_, one_)                                         \
    {                                                                                              \
        {.key = #name,                                                                             \
         .heading = (heading_),                                                                    \
         .hint = (hint_),                                                                          \
         .one = (one_),                                                                            \
         .columns = (of_),                                                                         \
         .column_count = COUNT_OF(of_)},                                                           \
            (sql_)                                                                                 \
    }
#define LIST(name, heading, hint)       PAGE_TABLE(name, name##_of, name##_sql, heading, hint, false)
#define SHARED(of, name, heading, hint) PAGE_TABLE(name, of##_of, name##_sql, heading, hint, false)
#define ONE(name, heading)              PAGE_TABLE(name, name##_of, name##_sql, heading, NULL, true)

const struct page_source page_sources[PAGE_LIST_COUNT] = {
    [PAGE_NOW] = ONE(now, "Jobs"),
    [PAGE_NOW_SERIES] = ONE(now_series, "Series"),
    [PAGE_NOW_DELIVERIES] = ONE(now_deliveries, "Deliveries and disk"),
    [PAGE_CONFIGURATION] =
        LIST(configuration, "Configuration", "noctule reload; noctule check-config"),
    [PAGE_RUNNING] = LIST(running, "Running", NULL),
    [PAGE_WAITING] = LIST(waiting, "Waiting (in order)", "noctule priority; noctule hold"),
    [PAGE_GATHERING] = LIST(gathering, "Series being received", "noctule complete SERIES_UID"),
    [PAGE_HOLDS] = LIST(holds, "Held", "noctule release"),
    [PAGE_REVIEW] = LIST(review, "Results under review (not delivered)",
                         "noctule accept JOB; noctule reject JOB REASON"),
    [PAGE_FAILED] = LIST(failed, "Failed jobs", "noctule show JOB; noctule retry JOB"),
    [PAGE_REFUSED] = LIST(refused, "Refused series", "noctule explain SERIES_UID"),
    [PAGE_QUARANTINED] = LIST(quarantined, "Quarantined files", NULL),
    [PAGE_DESTINATIONS] = LIST(destinations, "Destinations", "noctule echo NAME"),
    [PAGE_UNDELIVERED] =
        SHARED(delivery, undelivered, "Undelivered results", "noctule resend DELIVERY"),
    [PAGE_DELIVERED] = SHARED(delivery, delivered, "Delivered or cancelled", NULL),
    [PAGE_PULLING] = LIST(pulling, "Retrievals from archives",
                          "noctule pull --batch BATCH; noctule pull --cancel BATCH"),
    [PAGE_UNPULLED] =
        LIST(unpulled, "Failed or incomplete retrievals", "noctule pull --batch BATCH"),
    [PAGE_CALLERS] = LIST(callers, "Rejected callers", NULL),
    [PAGE_DEVICES] = LIST(devices, "Devices", "noctule doctor"),
    [PAGE_DEVICE_EVENTS] = SHARED(event, device_events, "Device events", NULL),
    [PAGE_NIGHTS] =
        LIST(nights, "Recorded reports", "noctule report --since 2026-01-31 --until 2026-02-01"),
    [PAGE_NIGHT] = ONE(night, "Report period"),
    [PAGE_JOB] = ONE(job, "State"),
    [PAGE_JOB_SEGMENTS] = LIST(job_segments, "Segments", NULL),
    [PAGE_JOB_RESULTS] = LIST(job_results, "Results", NULL),
    [PAGE_JOB_DELIVERIES] = SHARED(delivery, job_deliveries, "Deliveries", NULL),
    [PAGE_JOB_EVENTS] = SHARED(event, job_events, "Events", NULL),
    [PAGE_SERIES] = ONE(series, "Series"),
    [PAGE_SERIES_JOBS] = LIST(series_jobs, "Jobs", NULL),
    [PAGE_SERIES_STACKS] = LIST(series_stacks, "Volumes", NULL),
    [PAGE_FOUND] = LIST(found, "Matching series", NULL),
    [PAGE_FOUND_STUDY] = SHARED(found, found_study, "Matching series", NULL),
};

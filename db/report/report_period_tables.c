/*
 * report_period_tables.c - the tables of a report period: a query per table, with the titles of its
 * columns.
 *
 * A series counts in the period in which its inspection ended, a job in that of its end, a delivery
 * in that of its latest attempt. Headings with "now" mark values of the present.
 */
#include "db/report/report_period_private.h"
#include "db/report/report_private.h"

/* The columns of a series that a query uses: reading others costs time. */
#define OF_SERIES                                                                                  \
    "series_uid, state, settled_at, code, message, instances, jobs, modality, body_part, "         \
    "series_description, sender, station, manufacturer, model, institution"

/* All parameters of a period, in each query. */
#define OF_NIGHT                                                                                   \
    "WITH period (since, until, step) AS (SELECT ?1, ?2, ?3), "                                    \
    "settled AS (SELECT " OF_SERIES " FROM v_series "                                              \
    "  WHERE settled_at >= ?1 AND settled_at < ?2), "                                              \
    "ended AS (SELECT * FROM v_jobs WHERE ended_at >= ?1 AND ended_at < ?2), "                     \
    "tried AS (SELECT *, coalesce(started_at, created_at) AS tried_at FROM v_deliveries "          \
    "  WHERE coalesce(started_at, created_at) >= ?1 AND coalesce(started_at, created_at) < ?2) "

/* A total per hour of the period. */
#define PER_HOUR(total)                                                                            \
    "(SELECT round((" total ") / ((julianday(until) - julianday(since)) * 24.0), 1) FROM period)"

#define REFUSED "code NOT IN ('', 'NO_RULE')"
#define UNRULED "state = 'SETTLED' AND code = 'NO_RULE' AND jobs = 0"

/* Rows with total_seconds, by `group`; `middle`: the one or two in the middle. */
#define RANKED(group)                                                                              \
    "(SELECT *, 2 * row_number() OVER (PARTITION BY " group                                        \
    " ORDER BY total_seconds IS NULL, total_seconds) - 1 - count(total_seconds) OVER "             \
    "(PARTITION BY " group ") BETWEEN -1 AND 1 AS middle FROM ended)"
#define MEDIAN  "round(avg(total_seconds) FILTER (WHERE middle), 2)"
#define LONGEST "round(max(total_seconds), 2)"

static const struct night_column series_of[] = {
    COLUMN(settled, "complete", NUMBER),
    COLUMN(refused, "refused", NUMBER),
    SILENT(in_part, "partly refused", NUMBER),
    SILENT(unruled, "without a rule", NUMBER),
    COLUMN(instances, "instances", NUMBER),
    COLUMN(series_per_hour, "series per hour", NUMBER),
    COLUMN(instances_per_hour, "instances per hour", NUMBER),
    SILENT(gathering, "being received now", NUMBER),
};

static const char series_sql[] =
    OF_NIGHT "SELECT count(*) FILTER (WHERE state = 'SETTLED'), "
             "count(*) FILTER (WHERE state = 'REFUSED'), "
             "count(*) FILTER (WHERE state = 'SETTLED' AND " REFUSED "), "
             "count(*) FILTER (WHERE " UNRULED "), coalesce(sum(instances), 0), " PER_HOUR(
                 "SELECT count(*) FROM settled") ", " PER_HOUR("SELECT coalesce(sum(instances), "
                                                               "0) FROM settled") ", (SELECT "
                                                                                  "series_"
                                                                                  "gathering FROM "
                                                                                  "v_night) FROM "
                                                                                  "settled";

static const struct night_column jobs_of[] = {
    COLUMN(done, "done", NUMBER),
    SILENT(empty, "empty", NUMBER),
    SILENT(review, "under review", NUMBER),
    SILENT(rejected, "rejected", NUMBER),
    COLUMN(failed, "failed", NUMBER),
    SILENT(cancelled, "cancelled", NUMBER),
    COLUMN(median_seconds, "s (median)", NUMBER),
    COLUMN(longest_seconds, "s (longest)", NUMBER),
    SILENT(waiting, "waiting now", NUMBER),
};

static const char jobs_sql[] = OF_NIGHT
    "SELECT count(*) FILTER (WHERE state = 'DONE'), count(*) FILTER (WHERE state = 'EMPTY'), "
    "count(*) FILTER (WHERE state = 'REVIEW'), count(*) FILTER (WHERE state = 'REJECTED'), "
    "count(*) FILTER (WHERE state = 'FAILED'), count(*) FILTER (WHERE state = 'CANCELLED'), " MEDIAN
    ", " LONGEST ", (SELECT backlog_jobs FROM v_night) FROM " RANKED("1");

static const struct night_column deliveries_of[] = {
    COLUMN(sent, "sent", NUMBER),
    COLUMN(failed, "failed", NUMBER),
    SILENT(committed, "committed", NUMBER),
    SILENT(waiting, "waiting now", NUMBER),
};

static const char deliveries_sql[] =
    OF_NIGHT "SELECT (SELECT count(*) FROM v_deliveries WHERE state = 'SENT' AND sent_at >= ?1 AND "
             "sent_at < ?2), count(*) FILTER (WHERE state = 'FAILED'), "
             "count(*) FILTER (WHERE commitment = 'COMMITTED'), "
             "(SELECT deliveries_pending + deliveries_sending + deliveries_delayed FROM v_night) "
             "FROM tried";

static const struct night_column files_of[] = {COLUMN(quarantined, "quarantined", NUMBER)};

static const char files_sql[] =
    OF_NIGHT "SELECT count(*) FROM v_quarantine WHERE quarantined_at >= ?1 AND quarantined_at < ?2";

static const struct night_column disk_of[] = {
    COLUMN(free_gib, "GiB free now", NUMBER),
    COLUMN(full_days, "days until full", NUMBER),
};

static const char disk_sql[] =
    OF_NIGHT "SELECT round(free_mib / 1024.0, 1), disk_full_days FROM v_night";

static const struct night_column failed_of[] = {
    COLUMN(code, "CODE", TEXT),           COLUMN(jobs, "JOBS", NUMBER),
    COLUMN(pipelines, "PIPELINES", TEXT), COLUMN(job, "EXAMPLE", NUMBER),
    BELOW(series_uid, "series", TEXT),    BELOW(message, "message", TEXT),
    BELOW(to_do, "remedy", REMEDY),
};

static const char failed_sql[] =
    OF_NIGHT "SELECT code, count(*), group_concat(DISTINCT pipeline), max(job), series_uid, "
             "message, code FROM ended WHERE state = 'FAILED' GROUP BY code "
             "ORDER BY count(*) DESC, code";

static const struct night_column review_of[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(modality, "MODALITY", TEXT),
    COLUMN(since, "SINCE", TIME),
    BELOW(series_description, "description", TEXT),
    BELOW(series_uid, "series", TEXT),
    BELOW(message, "finding", TEXT),
    BELOW(preview_path, "preview", TEXT),
};

static const char review_sql[] =
    OF_NIGHT "SELECT job, pipeline, modality, since_at, series_description, series_uid, message, "
             "preview_path FROM v_review ORDER BY since_at, job";

static const struct night_column undelivered_of[] = {
    COLUMN(destination, "DESTINATION", TEXT),
    COLUMN(state, "STATE", TEXT),
    COLUMN(code, "CODE", TEXT),
    COLUMN(results, "RESULTS", NUMBER),
    COLUMN(delivery, "EXAMPLE", NUMBER),
    BELOW(message, "message", TEXT),
    BELOW(to_do, "remedy", REMEDY),
};

/* Deliveries that will be tried again have not arrived either, in any period. */
static const char undelivered_sql[] =
    OF_NIGHT "SELECT destination, state, code, count(*), max(delivery), message, code FROM "
             "(SELECT * FROM tried WHERE state = 'FAILED' UNION ALL "
             " SELECT *, NULL FROM v_deliveries WHERE state = 'DELAYED') "
             "GROUP BY destination, state, code ORDER BY destination, state DESC, count(*) DESC";

static const struct night_column refused_of[] = {
    COLUMN(code, "CODE", TEXT),
    COLUMN(series, "SERIES", NUMBER),
    COLUMN(in_part, "PARTLY REFUSED", NUMBER),
    BELOW(series_uid, "example", TEXT),
    BELOW(series_description, "description", TEXT),
    BELOW(message, "message", TEXT),
    BELOW(to_do, "remedy", REMEDY),
};

static const char refused_sql[] =
    OF_NIGHT "SELECT code, count(*), count(*) FILTER (WHERE state = 'SETTLED'), series_uid, "
             "series_description, message, code, max(settled_at) FROM settled WHERE " REFUSED " "
             "GROUP BY code ORDER BY count(*) DESC, code";

static const struct night_column quarantined_of[] = {
    COLUMN(code, "CODE", TEXT),      COLUMN(files, "FILES", NUMBER),
    BELOW(example, "example", TEXT), BELOW(series_uid, "series", TEXT),
    BELOW(message, "message", TEXT), BELOW(to_do, "remedy", REMEDY),
};

static const char quarantined_sql[] =
    OF_NIGHT "SELECT code, count(*), 'noctule quarantine show ' || quarantine, "
             "nullif(series_uid, ''), message, code, max(quarantined_at) FROM v_quarantine "
             "WHERE quarantined_at >= ?1 AND quarantined_at < ?2 "
             "GROUP BY code ORDER BY count(*) DESC, code";

static const struct night_column senders_of[] = {
    COLUMN(sender, "SENDER", TEXT),     COLUMN(station, "STATION", TEXT),
    COLUMN(refused, "REFUSED", NUMBER), COLUMN(series, "SERIES", NUMBER),
    BELOW(scanner, "scanner", TEXT),    BELOW(institution, "institution", TEXT),
    BELOW(codes, "codes", TEXT),
};

static const char senders_sql[] =
    OF_NIGHT "SELECT sender, station, count(*) FILTER (WHERE " REFUSED "), count(*), "
             "nullif(trim(manufacturer || ' ' || model), ''), nullif(institution, ''), "
             "group_concat(DISTINCT iif(" REFUSED ", code, NULL)) FROM settled "
             "GROUP BY sender, station, manufacturer, model, institution "
             "HAVING count(*) FILTER (WHERE " REFUSED ") > 0 "
             "ORDER BY count(*) FILTER (WHERE " REFUSED ") DESC, sender, station";

static const struct night_column unruled_of[] = {
    COLUMN(modality, "MODALITY", TEXT),
    COLUMN(body_part, "BODY PART", TEXT),
    COLUMN(sender, "SENDER", TEXT),
    COLUMN(series, "SERIES", NUMBER),
    BELOW(series_description, "description", TEXT),
    BELOW(series_uid, "example", TEXT),
};

static const char unruled_sql[] =
    OF_NIGHT "SELECT modality, body_part, sender, count(*), series_description, series_uid, "
             "max(settled_at) FROM settled WHERE " UNRULED
             " GROUP BY modality, body_part, sender ORDER BY count(*) DESC, modality, body_part";

static const struct night_column pipelines_of[] = {
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(done, "DONE", NUMBER),
    COLUMN(empty, "EMPTY", NUMBER),
    COLUMN(review, "REVIEW", NUMBER),
    COLUMN(failed, "FAILED", NUMBER),
    COLUMN(median_seconds, "MEDIAN (s)", NUMBER),
    COLUMN(longest_seconds, "LONGEST (s)", NUMBER),
};

static const char pipelines_sql[] =
    OF_NIGHT "SELECT pipeline, count(*) FILTER (WHERE state = 'DONE'), "
             "count(*) FILTER (WHERE state = 'EMPTY'), count(*) FILTER (WHERE state = 'REVIEW'), "
             "count(*) FILTER (WHERE state = 'FAILED'), " MEDIAN ", " LONGEST
             " FROM " RANKED("pipeline") " GROUP BY pipeline ORDER BY count(*) DESC, pipeline";

static const struct night_column segments_of[] = {
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(label, "SEGMENT", TEXT),
    COLUMN(found, "FOUND", NUMBER),
    COLUMN(empty, "EMPTY", NUMBER),
    COLUMN(median_ml, "MEDIAN (ml)", NUMBER),
    BELOW(min_ml, "min (ml)", NUMBER),
    BELOW(max_ml, "max (ml)", NUMBER),
    BELOW(mean, "mean", NUMBER),
    BELOW(unit, "unit", TEXT),
};

/*
 * Volumes, and the mean of the means, of segments with voxels. `middle`: the one or two in the
 * middle.
 */
static const char segments_sql[] = OF_NIGHT
    "SELECT pipeline, label, count(*) FILTER (WHERE voxels > 0), "
    "count(*) FILTER (WHERE voxels = 0), round(avg(volume_ml) FILTER (WHERE middle), 2), "
    "round(min(volume_ml) FILTER (WHERE voxels > 0), 2), "
    "round(max(volume_ml) FILTER (WHERE voxels > 0), 2), CAST(printf('%.6g', avg(mean)) AS REAL), "
    "iif(unit = '1', '', replace(unit, '[hnsf''U]', 'HU')) FROM "
    "(SELECT pipeline, segment, label, unit, voxels, volume_ml, mean, voxels > 0 AND "
    " 2 * row_number() OVER (PARTITION BY pipeline, label, unit ORDER BY voxels = 0, volume_ml) - "
    "1 "
    " - count(*) FILTER (WHERE voxels > 0) OVER (PARTITION BY pipeline, label, unit) "
    " BETWEEN -1 AND 1 AS middle FROM v_segments WHERE measured_at >= ?1 AND measured_at < ?2 "
    " AND state IN ('DONE', 'EMPTY') AND superseded_by IS NULL) "
    "GROUP BY pipeline, label, unit ORDER BY pipeline, min(segment), label";

static const struct night_column compute_of[] = {
    COLUMN(backend, "BACKEND", TEXT),         COLUMN(jobs, "JOBS", NUMBER),
    COLUMN(busy_seconds, "BUSY (s)", NUMBER), COLUMN(compute_seconds, "COMPUTING (s)", NUMBER),
    COLUMN(lanes, "BUSY LANES", NUMBER), /* averaged over the time */
    COLUMN(peak_mib, "PEAK (MiB)", NUMBER),
};

static const char compute_sql[] = OF_NIGHT
    "SELECT backend, count(*), round(sum(total_seconds), 1), round(sum(compute_seconds), 1), "
    "round(sum(total_seconds) / max(1.0, (julianday(?2) - julianday(?1)) * 86400.0), 3), "
    "max(peak_mib) FROM ended WHERE backend <> '' GROUP BY backend ORDER BY backend";

static const struct night_column slowest_of[] = {
    COLUMN(job, "JOB", NUMBER),
    COLUMN(pipeline, "PIPELINE", TEXT),
    COLUMN(total_seconds, "RUN TIME (s)", NUMBER),
    COLUMN(read_seconds, "READ (s)", NUMBER),
    COLUMN(compute_seconds, "COMPUTE (s)", NUMBER),
    COLUMN(write_seconds, "WRITE (s)", NUMBER),
    BELOW(series_uid, "series", TEXT),
};

static const char slowest_sql[] =
    OF_NIGHT "SELECT job, pipeline, round(total_seconds, 2), round(read_seconds, 2), "
             "round(compute_seconds, 2), round(write_seconds, 2), series_uid FROM ended "
             "WHERE total_seconds IS NOT NULL ORDER BY total_seconds DESC, job LIMIT 5";

static const struct night_column hours_of[] = {
    COLUMN(at, "FROM", TIME),           COLUMN(accepted, "ACCEPTED", NUMBER),
    COLUMN(refused, "REFUSED", NUMBER), COLUMN(done, "JOBS", NUMBER),
    COLUMN(failed, "FAILED", NUMBER),   COLUMN(free_gib, "FREE (GiB)", NUMBER),
};

#define STEP_OF(time) "CAST((julianday(" time ") - julianday(?1)) * 86400.0 / ?3 + 1e-6 AS INTEGER)"

static const char hours_sql[] = OF_NIGHT
    ", steps (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM steps "
    "  WHERE julianday(?1) + (n + 1) * ?3 / 86400.0 < julianday(?2) - 1e-8), "
    "series_in AS (SELECT " STEP_OF(
        "settled_at") " AS n, state = 'REFUSED' AS bad FROM settled), "
                      "jobs_in AS (SELECT " STEP_OF(
                          "ended_at") " AS n, state = 'FAILED' AS bad FROM ended), "
                                      "disk_in AS (SELECT " STEP_OF(
                                          "at") " AS n, min(free_mib) AS free_mib FROM v_disk "
                                                "  WHERE at >= ?1 AND at < ?2 GROUP BY 1) "
                                                "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', "
                                                "julianday(?1) + s.n * ?3 / 86400.0), "
                                                "(SELECT count(*) FROM series_in i WHERE i.n = s.n "
                                                "AND NOT bad), "
                                                "(SELECT count(*) FROM series_in i WHERE i.n = s.n "
                                                "AND bad), "
                                                "(SELECT count(*) FROM jobs_in i WHERE i.n = s.n "
                                                "AND NOT bad), "
                                                "(SELECT count(*) FROM jobs_in i WHERE i.n = s.n "
                                                "AND bad), "
                                                "(SELECT round(free_mib / 1024.0, 1) FROM disk_in "
                                                "i WHERE i.n = s.n) FROM steps s";

static const struct night_column unpulled_of[] = {
    COLUMN(source, "SOURCE", TEXT), COLUMN(state, "STATE", TEXT),   COLUMN(code, "CODE", TEXT),
    COLUMN(items, "ITEMS", NUMBER), COLUMN(batch, "BATCH", NUMBER), BELOW(message, "message", TEXT),
    BELOW(to_do, "remedy", REMEDY),
};

static const char unpulled_sql[] = OF_NIGHT
    "SELECT source, state, code, count(*), max(batch), message, code FROM v_pulls "
    "WHERE ended_at >= ?1 AND ended_at < ?2 AND state IN ('NOT_FOUND', 'PARTIAL', 'FAILED') "
    "GROUP BY source, state, code ORDER BY source, count(*) DESC, code";

static const struct night_column callers_of[] = {
    COLUMN(calling, "CALLER", TEXT), COLUMN(host, "ADDRESS", TEXT),
    COLUMN(called, "CALLED", TEXT),  COLUMN(rejected, "TIMES", NUMBER),
    COLUMN(meaning, "REASON", TEXT), COLUMN(admit, "TO ADMIT IT", TEXT),
};

static const char callers_sql[] =
    OF_NIGHT "SELECT calling_ae, host, called_ae, rejected, meaning, admit FROM v_callers "
             "WHERE last_at >= ?1 AND first_at < ?2 AND admitted_at IS NULL "
             "ORDER BY last_at DESC LIMIT 50";

static const struct night_column pulled_of[] = {
    COLUMN(source, "SOURCE", TEXT),         COLUMN(done, "DONE", NUMBER),
    COLUMN(not_found, "NOT FOUND", NUMBER), COLUMN(partial, "PARTIAL", NUMBER),
    COLUMN(failed, "FAILED", NUMBER),       COLUMN(waiting, "WAITING NOW", NUMBER),
    COLUMN(instances, "INSTANCES", NUMBER),
};

static const char pulled_sql[] =
    OF_NIGHT "SELECT source, count(*) FILTER (WHERE state = 'DONE'), "
             "count(*) FILTER (WHERE state = 'NOT_FOUND'), "
             "count(*) FILTER (WHERE state = 'PARTIAL'), "
             "count(*) FILTER (WHERE state = 'FAILED'), count(*) FILTER (WHERE ended_at IS NULL), "
             "sum(arrived) FROM v_pulls WHERE ended_at IS NULL OR ended_at >= ?1 AND ended_at < ?2 "
             "GROUP BY source ORDER BY source";

/* A table with its key, heading and hint (or NULL). */
#define LIST(name, heading_, hint_)                                                                \
    {                                                                                              \
        .table = {#name, (heading_), (hint_), false, name##_of, COLUMN_COUNT(name##_of)},          \
        .sql = name##_sql                                                                          \
    }
#define ONE(name, heading_)                                                                        \
    {                                                                                              \
        .table = {#name, (heading_), NULL, true, name##_of, COLUMN_COUNT(name##_of)},              \
        .sql = name##_sql                                                                          \
    }

const struct night_source night_sources[NIGHT_TABLE_COUNT] = {
    [NIGHT_SERIES] = ONE(series, "Series"),
    [NIGHT_JOBS] = ONE(jobs, "Jobs"),
    [NIGHT_DELIVERIES] = ONE(deliveries, "Deliveries"),
    [NIGHT_FILES] = ONE(files, "Files"),
    [NIGHT_DISK] = ONE(disk, "Disk"),
    [NIGHT_FAILED] = LIST(failed, "Failed jobs", "noctule show JOB; noctule retry JOB"),
    [NIGHT_REVIEW] = LIST(review, "Results under review now (not delivered)",
                          "noctule accept JOB; noctule reject JOB REASON"),
    [NIGHT_UNDELIVERED] = LIST(undelivered, "Undelivered results",
                               "noctule deliveries --destination NAME; noctule resend DELIVERY"),
    [NIGHT_UNPULLED] = LIST(unpulled, "Failed or incomplete retrievals", "noctule pull --batch N"),
    [NIGHT_REFUSED] = LIST(refused, "Refused series", "noctule explain SERIES_UID"),
    [NIGHT_QUARANTINED] = LIST(quarantined, "Quarantined files", NULL),
    [NIGHT_SENDERS] = LIST(senders, "Senders of refused series", NULL),
    [NIGHT_CALLERS] = LIST(callers, "Rejected callers",
                           "the last column: the entry for section dicom of noctule.conf"),
    [NIGHT_UNRULED] =
        LIST(unruled, "Series without a rule", "noctule submit --rules after adding a rule"),
    [NIGHT_PULLED] = LIST(pulled, "Retrievals", NULL),
    [NIGHT_PIPELINES] = LIST(pipelines, "Pipelines", NULL),
    [NIGHT_SEGMENTS] = LIST(segments, "Segments", NULL),
    [NIGHT_COMPUTE] = LIST(compute, "Compute devices", NULL),
    [NIGHT_SLOWEST] = LIST(slowest, "Slowest jobs", NULL),
    [NIGHT_HOURS] = LIST(hours, "Per hour", NULL),
};

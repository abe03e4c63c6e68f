-- views.sql - the public views: what administrators and dashboards query while the daemon runs.
--
-- A contract (docs/database.md; unit test db_views pins the columns): columns are added at the end,
-- and change otherwise only with a migration and a line in the changelog. Recreated whenever a
-- database is opened by a program whose text of them differs (migrate.c).

CREATE VIEW v_jobs AS
SELECT j.id AS job, j.state, j.pipeline, j.stack, s.series_uid, s.modality, s.body_part,
    s.description AS series_description, j.revision, j.attempts, j.priority,
    j.created_at, j.started_at, j.ended_at, iif(j.code = 'PROGRAM_WAITING', NULL, j.not_before_at) AS not_before_at,
    max(0.0, round((julianday(coalesce(j.started_at, j.ended_at, 'now')) - julianday(j.ready_at))
        * 86400.0, 3)) AS wait_seconds,
    j.read_seconds, j.compute_seconds, j.write_seconds, j.verify_seconds, j.total_seconds,
    j.voxels, j.segmented_voxels, round(j.peak_bytes / 1048576.0, 1) AS peak_mib,
    j.backend, j.note, j.code, j.message, j.file_a, j.file_b,
    r.path AS result_path, r.sop_instance_uid AS result_sop_instance_uid, j.superseded_by,
    CASE WHEN j.state IN ('DONE', 'EMPTY')
        THEN (SELECT count(*) FROM feature WHERE job_id = j.id) END AS features,
    j.removed_at,
    coalesce((SELECT group_concat(h.kind, ', ') FROM hold h WHERE j.state IN ('READY', 'DELAYED')
        AND (h.kind IN ('queue', 'jobs') OR h.kind = 'pipeline' AND h.name = j.pipeline
            OR h.kind = 'job' AND h.name = CAST(j.id AS TEXT))), '') AS held,
    j.reviewed_at, j.reviewed_by, j.done_by_at,
    -- Why a job that waits does not start though nothing holds it.
    CASE WHEN j.state IN ('READY', 'DELAYED')
        THEN (SELECT text FROM pipeline_window w WHERE w.pipeline = j.pipeline AND NOT w.is_open) END
        AS window_closed,
    CASE WHEN j.state IN ('READY', 'DELAYED')
        THEN (SELECT opens_at FROM pipeline_window w WHERE w.pipeline = j.pipeline AND NOT w.is_open) END
        AS window_opens_at,
    -- Slurm does not tell when it starts one.
    CASE WHEN j.state = 'RUNNING' AND j.executor = 'local'
        THEN (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', j.started_at, '+' || round(mean_seconds, 3) || ' seconds')
            FROM v_measured WHERE pipeline = j.pipeline) END AS expected_at,
    iif(j.worker IS NULL, '', j.executor) AS executor,
    iif(j.state = 'RUNNING' AND j.executor <> 'local', iif(j.slurm_id IS NULL, 'SUBMITTING', 'SUBMITTED'), '')
        AS slurm_state,
    j.slurm_id, j.node, j.slurm_reason, j.submitted_at,
    -- What Slurm runs tells nothing before its end.
    CASE WHEN j.state <> 'RUNNING' THEN '' WHEN j.executor = 'local' THEN j.stage
        WHEN j.slurm_id IS NOT NULL THEN 'in Slurm' ELSE '' END AS stage,
    CASE WHEN j.state = 'RUNNING' THEN iif(j.executor = 'local', j.stage_at, j.submitted_at) END AS stage_since,
    round(j.spacing_x_mm, 6) AS spacing_x_mm, round(j.spacing_y_mm, 6) AS spacing_y_mm,
    round(j.spacing_z_mm, 6) AS spacing_z_mm, round(j.source_x_mm, 6) AS source_x_mm,
    round(j.source_y_mm, 6) AS source_y_mm, round(j.source_step_min_mm, 6) AS source_step_min_mm,
    round(j.source_step_max_mm, 6) AS source_step_max_mm,
    j.straightened <> '' AS straightened, coalesce(j.straightened, '') AS straightened_because,
    -- The first of v_breaches.
    coalesce(b.expectation, '') AS broken_expectation, coalesce(b.label, '') AS broken_label,
    b.found AS broken_found, b.low AS broken_low, b.high AS broken_high,
    j.rule,
    coalesce((SELECT group_concat(program, ', ') FROM job_mask WHERE job_id = j.id), '') AS programs,
    coalesce((SELECT group_concat(run_id, ', ') FROM job_mask WHERE job_id = j.id), '') AS program_runs,
    s.manufacturer, s.model, coalesce(j.kernel, '') AS kernel, j.kvp,
    round(j.slice_thickness_min_mm, 6) AS slice_thickness_min_mm,
    round(j.slice_thickness_max_mm, 6) AS slice_thickness_max_mm,
    -- A person corrected the masks of that job.
    j.corrects, coalesce((SELECT person FROM object WHERE id = j.correction), '') AS corrected_by,
    coalesce((SELECT sop_instance_uid FROM object WHERE id = j.correction), '') AS correction_uid,
    j.prior_id AS prior_job,
    (SELECT p.study_date FROM job o JOIN series p ON p.id = o.series_id WHERE o.id = j.prior_id) AS prior_study_date,
    coalesce(j.pixel_values, '') AS pixel_values, coalesce(j.pixel_intensity, '') AS pixel_intensity,
    coalesce(j.spacing_source, '') AS spacing_source,
    -- The item of v_pulls that fetches the earlier study.
    j.prior_item
FROM job j
JOIN series s ON s.id = j.series_id
LEFT JOIN breach b ON b.job_id = j.id AND b.place = 1
LEFT JOIN result r ON r.id =
    (SELECT id FROM result WHERE job_id = j.id AND kind = 'seg' ORDER BY id LIMIT 1);

-- One row per segment of each job that ended well, measured on the volume that the job computed on.
CREATE VIEW v_segments AS
SELECT g.job_id AS job, g.number AS segment, g.label, g.method, g.voxels, round(g.volume_ml, 6) AS volume_ml,
    g.mean, g.minimum, g.maximum, g.unit,
    g.first_column, g.last_column, g.first_row, g.last_row, g.first_slice, g.last_slice,
    -- The spacing of ultrasound holds in a region of the image only.
    iif(j.spacing_source = 'ultrasound-region', NULL,
        round((g.last_column - g.first_column + 1) * j.spacing_x_mm, 6)) AS width_mm,
    iif(j.spacing_source = 'ultrasound-region', NULL,
        round((g.last_row - g.first_row + 1) * j.spacing_y_mm, 6)) AS height_mm,
    round((g.last_slice - g.first_slice + 1) * j.spacing_z_mm, 6) AS depth_mm,
    round(g.x_mm, 6) + 0.0 AS x_mm, round(g.y_mm, 6) + 0.0 AS y_mm, round(g.z_mm, 6) + 0.0 AS z_mm,
    j.pipeline, j.stack, s.series_uid, s.description AS series_description, j.revision, j.state,
    j.ended_at AS measured_at, j.superseded_by,
    coalesce(g.prior_id, j.prior_id) AS prior_job,
    (SELECT p.study_date FROM job o JOIN series p ON p.id = o.series_id WHERE o.id = coalesce(g.prior_id, j.prior_id))
        AS prior_study_date,
    (SELECT f.value FROM feature f JOIN feature_definition d ON d.id = f.definition_id WHERE f.job_id = g.job_id
        AND f.segment_number = g.number AND d.family = 'change' AND d.name = 'volume_change') AS volume_change_ml,
    (SELECT f.value FROM feature f JOIN feature_definition d ON d.id = f.definition_id WHERE f.job_id = g.job_id
        AND f.segment_number = g.number AND d.family = 'change' AND d.name = 'volume_relative_change')
        AS volume_change_percent,
    g.tracking_uid
FROM segment g
JOIN job j ON j.id = g.job_id
JOIN series s ON s.id = j.series_id;

CREATE VIEW v_breaches AS
SELECT b.job_id AS job, b.place, b.segment_number AS segment, b.label, b.expectation, b.found, b.low, b.high,
    b.text, j.pipeline, s.series_uid, j.state
FROM breach b
JOIN job j ON j.id = b.job_id
JOIN series s ON s.id = j.series_id;

-- What waits for somebody's word.
CREATE VIEW v_review AS
SELECT j.id AS job, j.pipeline, j.stack, s.series_uid, s.modality, s.body_part,
    s.description AS series_description, j.revision, j.ended_at AS since_at, j.code, j.message,
    'outbox/' || j.id || '/preview.png' AS preview_path,
    (SELECT path FROM result WHERE job_id = j.id AND kind = 'seg' ORDER BY id LIMIT 1)
        AS result_path,
    s.revision > j.revision AS outdated,
    -- Changes with the results, with the series and with corrections.
    printf('%d.%d.%d', j.revision, s.revision,
        coalesce((SELECT max(id) FROM result WHERE job_id = j.id), 0))
        || coalesce((SELECT '.' || max(id) FROM job WHERE corrects = j.id), '') AS version,
    CASE WHEN d.job_id IS NULL THEN '' WHEN d.accepts THEN 'accept' ELSE 'reject' END AS decision,
    coalesce(d.by, '') AS decided_by, coalesce(d.reason, '') AS decision_reason, d.at AS decided_at,
    d.due_at AS final_at,
    j.corrects, coalesce((SELECT person FROM object WHERE id = j.correction), '') AS corrected_by,
    -- The job that measures a correction, or waits for a decision on it: no other decision is possible meanwhile.
    (SELECT max(id) FROM job WHERE corrects = j.id AND state IN ('READY', 'RUNNING', 'DELAYED', 'REVIEW'))
        AS correction_job
FROM job j
JOIN series s ON s.id = j.series_id
LEFT JOIN decision d ON d.job_id = j.id
WHERE j.state = 'REVIEW';

-- Decisions of persons, by the web UI or by commands, and jobs that they looked at in the web UI.
CREATE VIEW v_audit AS
SELECT id AS audit, at, action, subject, job_id AS job, revision, reason, actor, how, role, address, seen
FROM audit;

-- Filters that persons saved in the web UI.
CREATE VIEW v_saved_filters AS
SELECT person, list, name, filter, saved_at FROM saved_filter;

CREATE VIEW v_series AS
SELECT s.series_uid, s.state, s.revision, s.study_uid, s.modality, s.body_part,
    s.description AS series_description, s.instances, s.frames,
    nullif(s.expected_instances, 0) AS expected_instances,
    s.first_seen_at, s.last_seen_at, s.settled_at, s.evidence, s.complete_requested,
    (SELECT count(*) FROM stack WHERE series_id = s.id AND revision = s.revision) AS stacks,
    (SELECT count(*) FROM stack WHERE series_id = s.id AND revision = s.revision AND accepted)
        AS accepted_stacks,
    coalesce(x.code, s.code) AS code, coalesce(x.message, s.message) AS message,
    coalesce(x.file_a, '') AS file_a, coalesce(x.file_b, '') AS file_b,
    s.duplicate_conflicts, s.missing_files,
    (SELECT count(*) FROM job WHERE series_id = s.id AND revision = s.revision) AS jobs,
    (SELECT count(*) FROM job WHERE series_id = s.id AND revision = s.revision
        AND state IN ('DONE', 'EMPTY')) AS jobs_done,
    s.called_ae, s.sender,
    coalesce((SELECT split_by FROM stack WHERE series_id = s.id AND revision = s.revision
        AND split_by <> '' ORDER BY accepted DESC, id LIMIT 1), '') AS split_by,
    (SELECT coalesce(sum(planes), 0) FROM stack WHERE series_id = s.id AND revision = s.revision
        AND passed_over) AS passed_over,
    coalesce((SELECT message FROM stack WHERE series_id = s.id AND revision = s.revision
        AND code = 'INCOMPLETE_SERIES' ORDER BY id LIMIT 1), '') AS incomplete,
    (SELECT count(*) FROM quarantine WHERE series_uid = s.series_uid AND lacking) AS quarantined,
    s.missing_accepted_by,
    (SELECT nullif(max(temporal_positions), 0) FROM stack
        WHERE series_id = s.id AND revision = s.revision) AS temporal_positions,
    (SELECT nullif(max(announced_temporal_positions), 0) FROM stack
        WHERE series_id = s.id AND revision = s.revision) AS announced_temporal_positions,
    s.removed_at, s.accession_number, s.patient_id, s.study_date, s.study_description, s.manufacturer, s.model, s.station,
    s.institution,
    coalesce(CASE WHEN s.sender = '' THEN (SELECT substr(source, 7) FROM instance
        WHERE series_id = s.id AND source LIKE 'inbox:%' ORDER BY id LIMIT 1) END, '') AS inbox,
    s.patient_issuer
FROM series s
LEFT JOIN stack x ON s.code = '' AND x.id =
    (SELECT id FROM stack WHERE series_id = s.id AND revision = s.revision AND NOT accepted
        AND NOT (passed_over AND s.state = 'SETTLED') ORDER BY passed_over, id LIMIT 1);

-- Jobs, and series of whose revision there is no job: they are being received, refused, or no rule made one. Both halves
-- are read in the order of an index: their columns are plain or cast, or SQLite would not merge them, and no column of the
-- jobs is a query of its own.
CREATE VIEW v_work AS
SELECT j.id AS work, j.id AS job, s.series_uid, j.state, j.created_at AS at, j.pipeline, j.stack, j.revision,
    s.modality, s.body_part, s.description AS series_description, s.study_uid, s.accession_number, s.patient_id,
    s.manufacturer, s.model, s.station, s.sender, s.instances, nullif(s.expected_instances, 0) AS expected_instances,
    s.first_seen_at, s.last_seen_at, j.started_at, j.ended_at, j.total_seconds, j.code, j.message,
    j.not_before_at, j.superseded_by, j.removed_at, j.backend
FROM job j
LEFT JOIN series s ON s.id = j.series_id
UNION ALL
SELECT CAST(-s.id AS INTEGER), CAST(NULL AS INTEGER), s.series_uid,
    CAST(iif(s.state = 'SETTLED', 'NO_JOB', s.state) AS TEXT), s.last_seen_at, CAST('' AS TEXT), CAST('' AS TEXT), s.revision,
    s.modality, s.body_part, s.description, s.study_uid, s.accession_number, s.patient_id,
    s.manufacturer, s.model, s.station, s.sender, s.instances, nullif(s.expected_instances, 0),
    s.first_seen_at, s.last_seen_at, CAST(NULL AS TEXT), CAST(NULL AS TEXT), CAST(NULL AS REAL),
    CAST(coalesce(nullif(s.code, ''), (SELECT code FROM stack WHERE series_id = s.id AND revision = s.revision
        AND NOT accepted ORDER BY passed_over, id LIMIT 1), '') AS TEXT),
    CAST(coalesce(nullif(s.message, ''), (SELECT message FROM stack WHERE series_id = s.id AND revision = s.revision
        AND NOT accepted ORDER BY passed_over, id LIMIT 1), '') AS TEXT),
    CAST(NULL AS TEXT), CAST(NULL AS INTEGER), s.removed_at, CAST('' AS TEXT)
FROM series s
WHERE (s.state <> 'SETTLED' OR s.code <> '')
    AND NOT EXISTS (SELECT 1 FROM job WHERE series_id = s.id AND revision = s.revision);

CREATE VIEW v_instances AS
SELECT s.series_uid, i.sop_instance_uid, i.sop_class_uid, i.transfer_syntax_uid, i.path, i.source,
    i.size_bytes, i.frames, i.missing, i.revision, i.received_at, i.replaced,
    i.sha256
FROM instance i
JOIN series s ON s.id = i.series_id;

CREATE VIEW v_objects AS
SELECT o.sop_instance_uid, o.kind, o.sop_class_uid, o.label, o.series_uid AS object_series_uid,
    s.series_uid, o.study_uid, o.description AS series_description, o.path, o.source, o.sender,
    o.size_bytes, o.received_at, o.replaced, o.own, o.missing, n.sop_instance_uid AS superseded_by,
    o.removed_at, o.person
FROM object o
LEFT JOIN (
    SELECT r.object_id, s.id AS series_id FROM object_reference r
    JOIN series s ON r.kind = 'series' AND s.series_uid = r.uid
    UNION SELECT r.object_id, i.series_id FROM object_reference r
    JOIN instance i ON r.kind = 'instance' AND i.sop_instance_uid = r.uid
    UNION SELECT r.object_id, s.id FROM object_reference r
    JOIN series s ON r.kind = 'frame' AND s.frame_of_reference = r.uid) t ON t.object_id = o.id
LEFT JOIN series s ON s.id = t.series_id
LEFT JOIN object n ON n.id = o.superseded_by;

CREATE VIEW v_stacks AS
SELECT s.series_uid, x.revision, x.name AS stack, x.accepted, x.passed_over, x.planes, x.columns,
    x.rows, x.spacing_mm, x.split_by, x.code, x.message, x.file_a, x.file_b, x.options,
    round(x.column_mm, 6) AS spacing_x_mm, round(x.row_mm, 6) AS spacing_y_mm, x.orientation,
    x.cosines AS image_orientation
FROM stack x
JOIN series s ON s.id = x.series_id AND s.revision = x.revision;

CREATE VIEW v_results AS
SELECT r.job_id AS job, j.pipeline, j.stack, s.series_uid, j.revision, r.kind, r.path,
    r.sop_class_uid, r.sop_instance_uid, r.series_uid AS result_series_uid, r.size_bytes, r.frames,
    r.created_at, j.superseded_by, j.removed_at, j.state, r.replaces,
    -- The latest object that names this one as replaced; '': none.
    coalesce((SELECT sop_instance_uid FROM result WHERE replaces = r.sop_instance_uid AND replaces <> ''
        ORDER BY id DESC LIMIT 1), '') AS replaced_by,
    r.not_taken_by
FROM result r
JOIN job j ON j.id = r.job_id
JOIN series s ON s.id = j.series_id;

CREATE VIEW v_features AS
SELECT f.job_id AS job, f.segment_number AS segment, d.name, d.ibsi_code, f.value, d.unit,
    f.reason, d.label, d.family, d.meaning,
    coalesce((SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'aggregation'), '') AS aggregation,
    coalesce((SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'aggregation_ibsi_code'), '') AS aggregation_ibsi_code,
    coalesce((SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'discretisation'), '') AS discretisation,
    (SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'levels') AS levels,
    (SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'bin_width') AS bin_width,
    (SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'distance') AS distance,
    (SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'symmetric') AS symmetric,
    (SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'range_low') AS range_low,
    (SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'range_high') AS range_high,
    coalesce((SELECT value FROM feature_setting
        WHERE definition_id = d.id AND key = 'directions'), '') AS directions,
    f.place, j.pipeline, j.stack, s.series_uid,
    s.description AS series_description, j.revision, j.ended_at AS measured_at, j.superseded_by,
    d.settings,
    coalesce((SELECT group_concat(key || ' ' ||
            CASE typeof(value) WHEN 'real' THEN printf('%.10g', value) ELSE value END, ', ')
        FROM feature_setting WHERE definition_id = d.id AND key NOT IN (
            'aggregation', 'aggregation_ibsi_code', 'discretisation', 'levels', 'bin_width', 'distance',
            'symmetric', 'range_low', 'range_high', 'directions')), '') AS other_settings,
    round(j.spacing_x_mm, 6) AS spacing_x_mm, round(j.spacing_y_mm, 6) AS spacing_y_mm,
    round(j.spacing_z_mm, 6) AS spacing_z_mm, round(j.source_x_mm, 6) AS source_x_mm,
    round(j.source_y_mm, 6) AS source_y_mm, round(j.source_step_min_mm, 6) AS source_step_min_mm,
    round(j.source_step_max_mm, 6) AS source_step_max_mm,
    j.straightened <> '' AS straightened, coalesce(j.straightened, '') AS straightened_because,
    s.manufacturer, s.model, coalesce(j.kernel, '') AS kernel, j.kvp,
    round(j.slice_thickness_min_mm, 6) AS slice_thickness_min_mm,
    round(j.slice_thickness_max_mm, 6) AS slice_thickness_max_mm,
    coalesce(j.pixel_values, '') AS pixel_values, coalesce(j.pixel_intensity, '') AS pixel_intensity,
    coalesce(j.spacing_source, '') AS spacing_source
FROM feature f
JOIN feature_definition d ON d.id = f.definition_id
JOIN job j ON j.id = f.job_id AND j.state NOT IN ('REVIEW', 'REJECTED')
JOIN series s ON s.id = j.series_id;

CREATE VIEW v_pattern_histograms AS
SELECT h.job_id AS job, h.segment_number AS segment, h.label, h.pattern, h.settings, h.counts,
    j.pipeline, j.stack, s.series_uid, s.description AS series_description, j.revision,
    j.ended_at AS measured_at, j.superseded_by
FROM pattern_histogram h
JOIN job j ON j.id = h.job_id AND j.state NOT IN ('REVIEW', 'REJECTED')
JOIN series s ON s.id = j.series_id;

-- Distances of the pattern histograms of two regions with equal settings on equal pixel grids. Choose one job: each pair
-- takes 0.2 ms. `noctule similar` has the same numbers for a million regions.
CREATE VIEW v_pattern_distances AS
SELECT job, segment, label, pattern, settings, other_job, other_segment, other_label, other_pipeline, other_series_uid,
    json_extract(sums, '$[0]') / 2 AS chi_square, json_extract(sums, '$[1]') AS l1,
    max(1 - json_extract(sums, '$[2]') / sqrt(json_extract(sums, '$[3]') * json_extract(sums, '$[4]')), 0.0) AS cosine
FROM (
    SELECT h.job_id AS job, h.segment_number AS segment, h.label, h.pattern, h.settings, o.job_id AS other_job,
        o.segment_number AS other_segment, o.label AS other_label, k.pipeline AS other_pipeline,
        s.series_uid AS other_series_uid,
        (SELECT json_array(sum(iif(p + q > 0, (p - q) * (p - q) / (p + q), 0.0)), sum(abs(p - q)), sum(p * q), sum(p * p),
            sum(q * q))
        FROM (SELECT sum(p) AS p, sum(q) AS q FROM (
            SELECT key, 1.0 * value / (SELECT sum(value) FROM json_each(h.counts)) AS p, 0.0 AS q FROM json_each(h.counts)
            UNION ALL
            SELECT key, 0.0, 1.0 * value / (SELECT sum(value) FROM json_each(o.counts)) FROM json_each(o.counts))
            GROUP BY key)) AS sums
    FROM pattern_histogram h
    JOIN job j ON j.id = h.job_id AND j.state IN ('DONE', 'EMPTY')
    JOIN pattern_histogram o ON o.pattern = h.pattern AND o.settings = h.settings AND o.job_id <> h.job_id
        AND o.counts GLOB '*[1-9]*'
    JOIN job k ON k.id = o.job_id AND k.state IN ('DONE', 'EMPTY') AND k.superseded_by IS NULL
        AND round(k.spacing_x_mm, 6) IS round(j.spacing_x_mm, 6) AND round(k.spacing_y_mm, 6) IS round(j.spacing_y_mm, 6)
        AND (coalesce(k.straightened, '') <> '') = (coalesce(j.straightened, '') <> '')
    JOIN series s ON s.id = k.series_id
    WHERE h.counts GLOB '*[1-9]*');

-- Each job has a series. SQLite reads the right side of a left join only where a column of it is used.
CREATE VIEW v_deliveries AS
SELECT d.id AS delivery, d.job_id AS job, d.destination, d.state, d.attempts, d.kind, d.path,
    d.sop_class_uid, d.sop_instance_uid, d.dimse_status,
    CASE WHEN d.dimse_status IS NOT NULL THEN printf('0x%04X', d.dimse_status) END
        AS dimse_status_hex,
    d.code, d.message, d.commitment, d.transaction_uid, d.created_at,
    CASE WHEN d.state = 'DELAYED' THEN d.due_at END AS not_before_at,
    d.started_at, d.sent_at, d.requested_at, d.committed_at,
    s.series_uid, j.pipeline, j.superseded_by,
    coalesce((SELECT group_concat(h.kind, ', ') FROM hold h
        WHERE d.state IN ('PENDING', 'DELAYED')
        AND (h.kind = 'queue' OR h.kind = 'destination' AND h.name = d.destination)), '') AS held,
    d.sent_sop_class_uid AS sent_sop_class, d.sent_transfer_syntax_uid AS sent_transfer_syntax,
    d.sent_sop_instance_uid AS sent_sop_instance_uid,
    d.confirmed, iif(d.state = 'REVIEW', substr(d.held_digest, 1, 16), '') AS version, d.reviewed_at, d.reviewed_by
FROM delivery d
-- Each delivery has its job: SQLite skips an outer join of columns that nobody reads.
LEFT JOIN job j ON j.id = d.job_id
LEFT JOIN series s ON s.id = j.series_id;

-- What is not delivered, or delivered and not committed, by destination and cause; failures also by code. The message is
-- that of the newest delivery that has a code.
CREATE VIEW v_undelivered AS
WITH
missing AS (
    SELECT id, job_id, destination, code, created_at, due_at, attempts, state, iif(state IN ('FAILED', 'REVIEW'), state,
        iif(EXISTS (SELECT 1 FROM hold WHERE kind = 'queue' OR kind = 'destination' AND name = destination), 'HELD', 'WAITING'))
        AS cause
    FROM delivery WHERE state IN ('PENDING', 'SENDING', 'DELAYED', 'FAILED', 'REVIEW')
    UNION ALL
    SELECT id, job_id, destination, code, requested_at, NULL, attempts, state, 'UNCOMMITTED'
    FROM delivery WHERE commitment = 'REQUESTED'),
groups AS (
    SELECT destination, cause, count(*) AS deliveries, count(DISTINCT job_id) AS jobs,
        count(*) FILTER (WHERE attempts > 0) AS tried, min(created_at) AS oldest_at,
        min(iif(state = 'DELAYED', due_at, NULL)) AS next_attempt_at,
        coalesce(max(id) FILTER (WHERE code <> ''), max(id)) AS delivery
    FROM missing GROUP BY destination, cause, iif(cause IN ('FAILED', 'REVIEW'), code, ''))
SELECT g.destination, g.cause, d.code, d.message, g.deliveries, g.jobs, g.tried, g.oldest_at, g.next_attempt_at, g.delivery
FROM groups g JOIN delivery d ON d.id = g.delivery;

-- Jobs that ended, by day (UTC), pipeline and scanner.
CREATE VIEW v_trends AS
SELECT substr(j.ended_at, 1, 10) AS day, j.pipeline, s.station, count(*) AS jobs,
    count(*) FILTER (WHERE j.state = 'DONE') AS done, count(*) FILTER (WHERE j.state = 'EMPTY') AS empty,
    count(*) FILTER (WHERE j.state = 'REVIEW') AS review, count(*) FILTER (WHERE j.state = 'REJECTED') AS rejected,
    count(*) FILTER (WHERE j.state = 'FAILED') AS failed, count(*) FILTER (WHERE j.state = 'CANCELLED') AS cancelled,
    round(avg(j.total_seconds), 3) AS mean_seconds
FROM job j JOIN series s ON s.id = j.series_id
WHERE j.ended_at IS NOT NULL
GROUP BY 1, 2, 3;

CREATE VIEW v_pulls AS
SELECT p.id AS item, p.batch, p.source, p.key, p.identifier, p.state, p.attempts, p.expected, p.arrived,
    p.code, p.message,
    CASE WHEN p.state = 'WAITING' THEN p.due_at END AS not_before_at,
    p.created_at, p.started_at, p.moved_at, p.ended_at, p.asked_by,
    coalesce((SELECT group_concat(DISTINCT study_uid) FROM pull_part WHERE pull_id = p.id), '') AS study_uids,
    p.list_line,
    (SELECT count(*) FROM pull_part q JOIN pull_unwanted u ON u.study_uid = q.study_uid
        AND q.series_uid IN ('', u.series_uid) WHERE q.pull_id = p.id) AS unwanted,
    (SELECT count(*) FROM pull_part q JOIN pull_unwanted u ON u.study_uid = q.study_uid
        AND q.series_uid IN ('', u.series_uid) WHERE q.pull_id = p.id AND EXISTS (SELECT 1 FROM quarantine z
            WHERE z.series_uid = u.series_uid AND z.sop_instance_uid = u.sop_instance_uid)) AS quarantined
FROM pull p;

CREATE VIEW v_callers AS
SELECT calling_ae, called_ae, host, reason, CASE reason
        WHEN 'unknown_caller' THEN 'no peer has its AE title'
        WHEN 'other_address' THEN 'the peer of that AE title has another host'
        WHEN 'other_certificate' THEN iif(certificate = '', 'the peer of that AE title calls by TLS, with a certificate',
            'the peer of that AE title has another certificate')
        ELSE 'the called AE title is none of ours' END AS meaning,
    -- What dicom.peers or dicom.titles would need; '': no row can.
    CASE WHEN reason = 'other_certificate' AND certificate = '' OR named = '' OR named GLOB '*[\?]*' OR named <> trim(named) THEN ''
        WHEN reason = 'unknown_title' THEN printf('titles: { ae_title = "%s"; }', replace(named, '"', '\"'))
        ELSE printf('peers: { ae_title = "%s"; host = "%s";%s }', replace(named, '"', '\"'), host,
            iif(reason = 'other_certificate', printf(' certificate = "%s";', certificate), '')) END AS admit,
    rejected, first_at, last_at, admitted_at, certificate, id
FROM (SELECT *, iif(reason = 'unknown_title', called_ae, calling_ae) AS named FROM caller);

CREATE VIEW v_holds AS
SELECT kind, name, held_at, held_by, reason FROM hold;

CREATE VIEW v_windows AS
SELECT pipeline, text AS window, is_open, opens_at, closes_at FROM pipeline_window;

CREATE VIEW v_configuration AS
SELECT state, at, since_at, cause, asked_by, files, reason FROM configuration;

-- One row per hour, and the last measurement.
CREATE VIEW v_disk AS
SELECT at, free_mib FROM disk
UNION ALL
SELECT at, free_mib FROM disk_now;

-- The index of `delivery` finds the destinations one by one, and counts each state; rows that were sent are not read.
CREATE VIEW v_destinations AS
WITH RECURSIVE
known (destination) AS (
    SELECT min(destination) FROM delivery
    UNION ALL
    SELECT (SELECT min(destination) FROM delivery WHERE destination > k.destination) FROM known k
    WHERE k.destination IS NOT NULL)
SELECT destination,
    (SELECT count(*) FROM delivery d WHERE d.destination = k.destination AND state = 'PENDING') AS pending,
    (SELECT count(*) FROM delivery d WHERE d.destination = k.destination AND state = 'SENDING') AS sending,
    (SELECT count(*) FROM delivery d WHERE d.destination = k.destination AND state = 'DELAYED') AS delayed,
    (SELECT count(*) FROM delivery d WHERE d.destination = k.destination AND state = 'SENT') AS sent,
    (SELECT count(*) FROM delivery d WHERE d.destination = k.destination AND state = 'FAILED') AS failed,
    (SELECT count(*) FROM delivery d WHERE d.destination = k.destination AND state = 'CANCELLED') AS cancelled,
    (SELECT count(*) FROM delivery d WHERE d.destination = k.destination AND commitment = 'REQUESTED') AS uncommitted,
    (SELECT created_at FROM delivery WHERE id = (SELECT min(id) FROM delivery d INDEXED BY delivery_destination
        WHERE d.destination = k.destination AND state IN ('PENDING', 'SENDING', 'DELAYED'))) AS oldest_waiting_at,
    (SELECT due_at FROM delivery d INDEXED BY delivery_due WHERE d.destination = k.destination
        AND state IN ('PENDING', 'DELAYED') AND state = 'DELAYED' ORDER BY due_at LIMIT 1) AS next_attempt_at,
    (SELECT max((SELECT max(sent_at) FROM delivery d WHERE d.destination = k.destination AND d.state = s.column1))
        FROM (VALUES ('PENDING'), ('SENDING'), ('SENT'), ('DELAYED'), ('FAILED'), ('REVIEW'), ('CANCELLED')) s) AS last_sent_at,
    -- The daemon tells when it stops and resumes trying; what it knew ends with it.
    (SELECT CASE e.kind WHEN 'DESTINATION_DOWN' THEN e.at END
        FROM event e INDEXED BY event_destination
        WHERE e.kind IN ('START', 'DESTINATION_DOWN', 'DESTINATION_UP')
        AND (e.kind = 'START'
            OR substr(e.detail, 1, length(destination) + 2) = destination || ': ')
        ORDER BY e.id DESC LIMIT 1) AS down_since,
    (SELECT CASE e.kind WHEN 'DESTINATION_DOWN' THEN substr(e.detail, length(destination) + 3) END
        FROM event e INDEXED BY event_destination
        WHERE e.kind IN ('START', 'DESTINATION_DOWN', 'DESTINATION_UP')
        AND (e.kind = 'START'
            OR substr(e.detail, 1, length(destination) + 2) = destination || ': ')
        ORDER BY e.id DESC LIMIT 1) AS down_reason,
    (SELECT count(*) FROM delivery d WHERE d.destination = k.destination AND state = 'REVIEW') AS review
FROM known k WHERE destination IS NOT NULL;

CREATE VIEW v_quarantine AS
SELECT quarantined_at, path, original_path, series_uid, code, message, sop_instance_uid, lacking,
    removed_at, id AS quarantine, iif(original_path LIKE 'scu:%',
        substr(original_path, 5, instr(original_path || '/', '/') - 5), '') AS sender, called_ae
FROM quarantine;

CREATE VIEW v_events AS
SELECT e.id AS event, e.at, e.kind, s.series_uid, e.job_id AS job, e.from_state, e.to_state, e.detail,
    e.delivery_id AS delivery, e.program_run_id AS program_run
FROM event e
LEFT JOIN series s ON s.id = e.series_id;

CREATE VIEW v_program_runs AS
SELECT r.id AS run, r.program, r.state, s.series_uid, s.modality, r.stack, r.revision, r.attempts,
    r.created_at, r.started_at, r.ended_at, r.not_before_at,
    max(0.0, round((julianday(coalesce(r.started_at, r.ended_at, 'now')) - julianday(r.ready_at)) * 86400.0, 3))
        AS wait_seconds,
    r.write_seconds, r.program_seconds, r.read_seconds,
    r.write_seconds + r.program_seconds + r.read_seconds AS total_seconds,
    round(r.peak_bytes / 1048576.0, 1) AS peak_mib, r.ran_as, r.gpu, r.sandbox,
    iif(r.carrier_job_id IS NULL, 'local', 'slurm') AS executor, r.starts, r.labels, r.labelled_voxels,
    iif(r.state = 'DONE' AND r.removed_at IS NULL, 'programs/' || r.id || '/mask', NULL) AS mask_path,
    r.sha256 AS mask_sha256,
    iif(r.state IN ('DONE', 'FAILED', 'DELAYED') AND r.removed_at IS NULL, 'programs/' || r.id || '/output.txt', NULL)
        AS output_path,
    r.code, r.message, r.identity,
    (SELECT count(*) FROM job_mask m JOIN job j ON j.id = m.job_id WHERE m.run_id = r.id
        AND j.state = 'DELAYED' AND j.code = 'PROGRAM_WAITING') AS jobs_waiting,
    r.superseded_by, r.removed_at
FROM program_run r
JOIN series s ON s.id = r.series_id;

-- One row per program of the configuration; figures of the runs that ended in the last 7 days.
CREATE VIEW v_programs AS
WITH
ran AS MATERIALIZED (
    SELECT *, write_seconds + program_seconds + read_seconds AS seconds,
        row_number() OVER (PARTITION BY program ORDER BY ended_at DESC, id DESC) AS age,
        row_number() OVER (PARTITION BY program ORDER BY state = 'FAILED', write_seconds + program_seconds + read_seconds, id)
            AS place,
        count(*) FILTER (WHERE state = 'DONE') OVER (PARTITION BY program) AS done
    FROM program_run WHERE state IN ('DONE', 'FAILED') AND ended_at >= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-7 days')),
figures AS (
    SELECT program, count(*) AS runs, count(*) FILTER (WHERE state = 'FAILED') AS failed, sum(starts) AS starts,
        avg(seconds) FILTER (WHERE state = 'DONE') AS mean_seconds,
        -- The middle one of the sorted, or the mean of the two in the middle.
        avg(seconds) FILTER (WHERE state = 'DONE' AND place IN ((done + 1) / 2, done / 2 + 1)) AS median_seconds,
        max(seconds) FILTER (WHERE state = 'DONE') AS max_seconds,
        avg(write_seconds) FILTER (WHERE state = 'DONE') AS mean_write_seconds,
        avg(read_seconds) FILTER (WHERE state = 'DONE') AS mean_read_seconds,
        max(peak_bytes) AS peak_bytes, count(*) FILTER (WHERE ran_as = 'whole') AS whole_runs,
        count(*) FILTER (WHERE ran_as = 'cpu') AS cpu_runs, max(ended_at) AS last_ended_at,
        max(iif(age = 1, code, '')) AS last_code
    FROM ran GROUP BY program)
SELECT p.name AS program, CASE WHEN p.code <> '' THEN 'BROKEN' WHEN p.identity = '' THEN 'WAITING' ELSE 'READY' END AS state,
    p.code, p.message, p.since_at, p.sandbox, p.identity, p.program_sha256, p.weights_sha256,
    round(p.weights_bytes / 1048576.0, 1) AS weights_mib,
    (SELECT count(*) FROM program_run WHERE program = p.name AND ended_at IS NULL AND state <> 'RUNNING') AS waiting,
    (SELECT count(*) FROM program_run WHERE program = p.name AND ended_at IS NULL AND state = 'RUNNING') AS running,
    coalesce(f.runs, 0) AS runs, coalesce(f.failed, 0) AS failed, coalesce(f.starts, 0) AS starts,
    round(1.0 * f.runs / nullif(f.starts, 0), 1) AS cases_per_start,
    round(f.mean_seconds, 3) AS mean_seconds, round(f.median_seconds, 3) AS median_seconds,
    round(f.max_seconds, 3) AS max_seconds, round(f.mean_write_seconds, 3) AS mean_write_seconds,
    round(f.mean_read_seconds, 3) AS mean_read_seconds, round(f.peak_bytes / 1048576.0, 1) AS max_peak_mib,
    coalesce(f.whole_runs, 0) AS whole_runs, coalesce(f.cpu_runs, 0) AS cpu_runs, f.last_ended_at,
    coalesce(f.last_code, '') AS last_code
FROM program p LEFT JOIN figures f ON f.program = p.name;

-- How long jobs hold a lane here, by those that ran to their end: in the last 24 hours, or in the last week where none did.
CREATE VIEW v_measured AS
WITH
span AS MATERIALIZED (
    SELECT CASE WHEN EXISTS (SELECT 1 FROM job WHERE state IN ('DONE', 'EMPTY', 'REVIEW', 'REJECTED')
            AND ended_at >= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours'))
        THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours')
        ELSE strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-7 days') END AS since_at),
-- A job in Slurm has the slot of its place there, waiting or not: it counts with what it took on its node.
ran AS MATERIALIZED (
    SELECT pipeline, executor, worker || '/' || lane AS place, julianday(started_at) AS start_day,
        julianday(ended_at) AS end_day,
        iif(executor = 'local', (julianday(ended_at) - julianday(started_at)) * 86400.0, total_seconds) AS lane_seconds
    FROM job
    WHERE ended_at >= (SELECT since_at FROM span) AND state IN ('DONE', 'EMPTY', 'REVIEW', 'REJECTED')),
-- From each start on what no earlier one covers: together, how long there was anything of ours in Slurm.
covered AS (
    SELECT lane_seconds, max(0.0, end_day - max(start_day, coalesce(max(end_day) OVER (ORDER BY start_day, end_day
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_day))) * 86400.0 AS more_seconds
    FROM ran WHERE executor = 'slurm'),
lanes AS (
    SELECT (SELECT count(DISTINCT place) FROM ran WHERE executor = 'local')
        + coalesce((SELECT max(1.0, round(sum(lane_seconds) / max(sum(more_seconds), 0.001))) FROM covered
            HAVING count(*) > 0), 0.0) AS lanes)
SELECT pipeline, count(*) AS jobs, avg(lane_seconds) AS mean_seconds, NULL AS lanes, NULL AS jobs_per_series
FROM ran GROUP BY pipeline
UNION ALL
SELECT '', count(*), avg(lane_seconds), (SELECT CAST(max(1.0, lanes) AS INTEGER) FROM lanes),
    -- Of what settled; series that no pipeline wants count.
    nullif(count(*), 0) * 1.0 / max(1, (SELECT count(*) FROM series WHERE settled_at >= (SELECT since_at FROM span)))
FROM ran;

-- What is left to do, and about when it is done: of each pipeline, and with '' of series that still gather.
CREATE VIEW v_backlog AS
WITH
clock AS (SELECT julianday('now') AS now_day),
every AS MATERIALIZED (SELECT mean_seconds, lanes, min(jobs_per_series, 16) AS jobs_per_series
    FROM v_measured WHERE pipeline = ''),
measured AS MATERIALIZED (SELECT pipeline, mean_seconds FROM v_measured),
unfinished AS MATERIALIZED (
    SELECT pipeline, state, started_at, done_by_at, executor FROM job WHERE state IN ('READY', 'RUNNING', 'DELAYED')),
left_to_do AS (
    SELECT u.pipeline, count(*) FILTER (WHERE state = 'READY') AS jobs_ready,
        count(*) FILTER (WHERE state = 'RUNNING') AS jobs_running,
        count(*) FILTER (WHERE state = 'DELAYED') AS jobs_delayed,
        NULL AS jobs_expected, coalesce(m.mean_seconds, e.mean_seconds) AS mean_seconds,
        sum(max(0.0, coalesce(m.mean_seconds, e.mean_seconds)
            - iif(state = 'RUNNING' AND executor = 'local', (c.now_day - julianday(started_at)) * 86400.0, 0.0))) AS work_seconds,
        min(done_by_at) AS done_by_at,
        EXISTS (SELECT 1 FROM hold WHERE kind IN ('queue', 'jobs') OR kind = 'pipeline' AND name = u.pipeline)
            AS is_held
    FROM clock c, every e, unfinished u LEFT JOIN measured m ON m.pipeline = u.pipeline GROUP BY u.pipeline
    UNION ALL
    SELECT '', 0, 0, 0, round(count(*) * e.jobs_per_series, 1), e.mean_seconds,
        count(*) * e.jobs_per_series * e.mean_seconds, NULL,
        EXISTS (SELECT 1 FROM hold WHERE kind IN ('queue', 'jobs'))
    FROM every e, series s WHERE s.state = 'GATHERING' GROUP BY e.lanes),
-- Lanes are shared: by what may start, and by what may once its window opens.
placed AS (
    SELECT l.*, w.text AS window, w.opens_at, w.closes_at, w.open_share,
        iif(w.is_open = 0, (julianday(w.opens_at) - c.now_day) * 86400.0, 0.0) AS wait_seconds,
        sum(work_seconds) FILTER (WHERE NOT is_held AND coalesce(w.is_open, 1)) OVER () / e.lanes AS open_seconds,
        sum(work_seconds) FILTER (WHERE NOT is_held AND NOT coalesce(w.is_open, 1)) OVER () / e.lanes
            AS closed_seconds,
        c.now_day
    FROM clock c, every e, left_to_do l LEFT JOIN pipeline_window w ON w.pipeline = l.pipeline),
needed AS (
    SELECT *, iif(wait_seconds = 0.0, open_seconds,
            closed_seconds + max(0.0, coalesce(open_seconds, 0.0) - wait_seconds)) AS need_seconds,
        coalesce((julianday(closes_at) - now_day) * 86400.0 - wait_seconds, 1e12) AS stretch_seconds
    FROM placed)
SELECT pipeline, jobs_ready, jobs_running, jobs_delayed, jobs_expected, round(mean_seconds, 3) AS mean_seconds,
    round(work_seconds, 1) AS work_seconds, is_held, window, iif(wait_seconds = 0.0, NULL, opens_at) AS window_opens_at,
    -- What one night is not enough for goes on in the following ones.
    CASE WHEN NOT is_held THEN round(wait_seconds + iif(need_seconds <= stretch_seconds, need_seconds,
        stretch_seconds + (need_seconds - stretch_seconds) / max(open_share, 0.0001)), 1) END AS eta_seconds,
    done_by_at,
    (SELECT count(*) FROM v_wanted v WHERE v.pipeline = n.pipeline AND is_late) AS jobs_late,
    (SELECT count(*) FROM v_wanted v WHERE v.pipeline = n.pipeline AND late_why = 'ALONE') AS jobs_unfit
FROM needed n;

-- What is wanted by a time and not there yet, with about when it will be.
CREATE VIEW v_wanted AS
WITH
clock AS (SELECT julianday('now') AS now_day, strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS now_at),
every AS MATERIALIZED (SELECT mean_seconds, lanes FROM v_measured WHERE pipeline = ''),
measured AS MATERIALIZED (SELECT pipeline, mean_seconds FROM v_measured),
wanted AS (
    SELECT j.id, j.pipeline, j.state, j.done_by_at, coalesce(m.mean_seconds, e.mean_seconds) AS mean_seconds,
        e.lanes, j.done_by_at <= c.now_at AS is_past,
        iif(w.is_open = 0, (julianday(w.opens_at) - c.now_day) * 86400.0, 0.0) AS wait_seconds,
        -- How long it goes on opening, and what share of the time it is open then.
        coalesce((julianday(w.closes_at) - coalesce(julianday(w.opens_at), c.now_day)) * 86400.0, 1e12)
            AS stretch_seconds, max(coalesce(w.open_share, 1.0), 0.0001) AS open_share,
        (julianday(j.done_by_at) - c.now_day) * 86400.0 AS until_seconds,
        max(0.0, coalesce(m.mean_seconds, e.mean_seconds)
            - iif(j.state = 'RUNNING' AND j.executor = 'local', (c.now_day - julianday(j.started_at)) * 86400.0, 0.0)) AS left_seconds,
        j.state <> 'RUNNING' AND EXISTS (SELECT 1 FROM hold h WHERE h.kind IN ('queue', 'jobs')
            OR h.kind = 'pipeline' AND h.name = j.pipeline
            OR h.kind = 'job' AND h.name = CAST(j.id AS TEXT)) AS is_held
    FROM clock c, every e, job j
    LEFT JOIN measured m ON m.pipeline = j.pipeline
    LEFT JOIN pipeline_window w ON w.pipeline = j.pipeline
    WHERE j.state IN ('READY', 'RUNNING', 'DELAYED') AND j.done_by_at IS NOT NULL),
-- In the order in which they start, on the lanes there are: what runs and what is wanted earlier, then itself.
queued AS (
    SELECT *, (sum(left_seconds) FILTER (WHERE NOT is_past AND NOT is_held)
        OVER (ORDER BY state <> 'RUNNING', done_by_at, id) - left_seconds) / lanes AS queue_seconds
    FROM wanted),
-- What its turn does not come to before the window closes starts in a later one.
expected AS (
    SELECT *, CASE WHEN is_past OR is_held OR wait_seconds IS NULL THEN NULL
            WHEN state = 'RUNNING' THEN left_seconds
            ELSE wait_seconds + left_seconds + iif(queue_seconds < stretch_seconds, queue_seconds,
                stretch_seconds + (queue_seconds - stretch_seconds) / open_share) END AS seconds
    FROM queued)
SELECT id AS job, pipeline, state, done_by_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+' || round(seconds, 3) || ' seconds') AS expected_at,
    is_past OR coalesce(seconds > until_seconds, 0) AS is_late,
    CASE WHEN is_past THEN 'PAST'
        WHEN seconds IS NULL OR seconds <= until_seconds THEN ''
        WHEN state = 'RUNNING' THEN 'RUNNING'
        WHEN wait_seconds + left_seconds > until_seconds THEN 'ALONE'
        WHEN queue_seconds >= stretch_seconds THEN 'WINDOW'
        ELSE 'QUEUE' END AS late_why,
    round(mean_seconds, 3) AS mean_seconds,
    round(max(0.0, until_seconds - coalesce(wait_seconds, 0.0)), 1) AS room_seconds
FROM expected;

-- One row. "Ran" is what says how long a job takes here: those that ran to their end in the last 24 hours.
CREATE VIEW v_night AS
WITH
clock AS (
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS now_at,
        strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-12 hours') AS half_day_ago,
        strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours') AS day_ago),
ran AS MATERIALIZED (
    SELECT total_seconds FROM job
    WHERE ended_at >= (SELECT day_ago FROM clock)
        AND state IN ('DONE', 'EMPTY', 'REVIEW', 'REJECTED')),
todo AS MATERIALIZED (SELECT pipeline, eta_seconds, jobs_expected FROM v_backlog),
backlog AS (
    SELECT count(*) AS jobs FROM job WHERE state IN ('READY', 'RUNNING', 'DELAYED'))
SELECT c.now_at,
    (SELECT count(*) FROM job WHERE state = 'READY') AS jobs_ready,
    (SELECT count(*) FROM job WHERE state = 'RUNNING') AS jobs_running,
    (SELECT count(*) FROM job WHERE state = 'DELAYED') AS jobs_delayed,
    (SELECT count(*) FROM job WHERE state = 'DONE') AS jobs_done,
    (SELECT count(*) FROM job WHERE state = 'EMPTY') AS jobs_empty,
    (SELECT count(*) FROM job WHERE state = 'FAILED') AS jobs_failed,
    (SELECT count(*) FROM job WHERE state = 'CANCELLED') AS jobs_cancelled,
    (SELECT count(*) FROM series WHERE state = 'GATHERING') AS series_gathering,
    (SELECT count(*) FROM series WHERE state = 'SETTLED') AS series_settled,
    (SELECT count(*) FROM series WHERE state = 'REFUSED') AS series_refused,
    (SELECT max(0.0, round((julianday(c.now_at) - julianday(min(ready_at))) * 86400.0, 3))
        FROM job WHERE state IN ('READY', 'DELAYED')) AS oldest_waiting_seconds,
    (SELECT count(*) FROM job WHERE ended_at >= c.half_day_ago) AS jobs_ended_12h,
    (SELECT count(*) FROM job WHERE ended_at >= c.day_ago) AS jobs_ended_24h,
    (SELECT count(*) FROM job WHERE ended_at >= c.day_ago AND state = 'FAILED') AS jobs_failed_24h,
    (SELECT round(avg(total_seconds), 3) FROM ran) AS mean_seconds,
    -- The middle one of the sorted, or the mean of the two in the middle.
    (SELECT round(avg(total_seconds), 3) FROM
        (SELECT total_seconds FROM ran WHERE total_seconds IS NOT NULL ORDER BY total_seconds
            LIMIT 2 - (SELECT count(total_seconds) FROM ran) % 2
            OFFSET max(0, (SELECT (count(total_seconds) - 1) / 2 FROM ran)))) AS median_seconds,
    b.jobs AS backlog_jobs,
    -- When all is done that may start, or will once its window opens; 0: there is nothing to do.
    (SELECT CASE WHEN count(*) = 0 THEN 0.0 ELSE max(eta_seconds) END FROM todo) AS eta_seconds,
    (SELECT count(*) FROM quarantine WHERE quarantined_at >= c.day_ago AND removed_at IS NULL) AS quarantined_24h,
    (SELECT count(*) FROM delivery WHERE state = 'PENDING') AS deliveries_pending,
    (SELECT count(*) FROM delivery WHERE state = 'SENDING') AS deliveries_sending,
    (SELECT count(*) FROM delivery WHERE state = 'DELAYED') AS deliveries_delayed,
    (SELECT count(*) FROM delivery WHERE state = 'FAILED') AS deliveries_failed,
    (SELECT count(*) FROM delivery WHERE state = 'SENT' AND sent_at >= c.day_ago)
        AS deliveries_sent_24h,
    (SELECT max(0.0, round((julianday(c.now_at) - julianday(min(created_at))) * 86400.0, 3))
        FROM delivery WHERE state IN ('PENDING', 'SENDING', 'DELAYED'))
        AS oldest_delivery_seconds,
    -- The daemon tells when nothing can compute, and when something can again.
    (SELECT CASE e.kind WHEN 'COMPUTE_WAITING' THEN e.detail END
        FROM event e INDEXED BY event_compute
        WHERE e.kind IN ('START', 'COMPUTE_WAITING', 'COMPUTE_READY')
        ORDER BY e.id DESC LIMIT 1) AS compute_waiting,
    coalesce((SELECT free_mib FROM disk_now), (SELECT free_mib FROM disk ORDER BY at DESC LIMIT 1)) AS free_mib,
    -- By what has gone in the last seven days; a day of them has to be known.
    (SELECT CASE WHEN b.day - a.day >= 1.0 AND a.free_mib > b.free_mib
            THEN round(b.free_mib / (a.free_mib - b.free_mib) * (b.day - a.day), 1) END
        FROM (SELECT julianday(at) AS day, free_mib FROM disk
                WHERE at >= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-7 days') ORDER BY at LIMIT 1) a,
            (SELECT julianday(at) AS day, free_mib FROM (SELECT * FROM (SELECT at, free_mib FROM disk ORDER BY at DESC LIMIT 1)
                UNION ALL SELECT at, free_mib FROM disk_now) ORDER BY at DESC LIMIT 1) b)
        AS disk_full_days,
    (SELECT group_concat(kind || iif(name = '', '', ' ' || name), '; ') FROM hold) AS held,
    (SELECT count(*) FROM series WHERE state = 'REFUSED' AND settled_at >= c.day_ago)
        AS series_refused_24h,
    (SELECT count(*) FROM job WHERE state = 'REVIEW') AS jobs_review,
    (SELECT count(*) FROM job WHERE state = 'REJECTED') AS jobs_rejected,
    (SELECT count(*) FROM series s WHERE state = 'SETTLED' AND code = 'NO_RULE' AND NOT EXISTS
        (SELECT 1 FROM job WHERE series_id = s.id AND revision = s.revision)) AS series_without_rule,
    (SELECT jobs_expected FROM todo WHERE pipeline = '') AS jobs_expected,
    (SELECT count(*) FROM v_wanted WHERE is_late) AS jobs_late,
    (SELECT CASE e.kind WHEN 'COMPUTE_READY' THEN e.detail END
        FROM event e INDEXED BY event_compute
        WHERE e.kind IN ('START', 'COMPUTE_WAITING', 'COMPUTE_READY')
        ORDER BY e.id DESC LIMIT 1) AS compute,
    coalesce((SELECT at FROM disk_now), (SELECT max(at) FROM disk)) AS free_at,
    (SELECT count(*) FROM program_run WHERE ended_at IS NULL AND state <> 'RUNNING') AS programs_waiting,
    (SELECT count(*) FROM program_run WHERE ended_at IS NULL AND state = 'RUNNING') AS programs_running,
    (SELECT count(*) FROM delivery WHERE state = 'REVIEW') AS deliveries_review
FROM clock c, backlog b;

CREATE VIEW v_nights AS
SELECT name AS night, since_at, until_at, series_settled, series_refused, series_without_rule,
    instances, bytes, jobs_done, jobs_empty, jobs_review, jobs_rejected, jobs_failed, jobs_cancelled,
    busy_seconds, compute_seconds, result_bytes, delivered, undelivered, waiting, quarantined, free_mib,
    report, report_at, report_message
FROM night;

-- Alerts of the database, a row each; service/common/alert/alert_list.def lists the kinds. The daemon reports its own.
--
-- alert: KIND or KIND:SUBJECT, once per list. changed_at: when it last occurred or grew, as an acknowledgement covers an
-- alert up to that time. size: greater is worse, where no time can express it.
CREATE VIEW v_alerts AS
WITH
day AS (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours') AS ago),
destinations AS MATERIALIZED (
    SELECT destination, down_since, down_reason, oldest_waiting_at, next_attempt_at, uncommitted,
        pending + sending + delayed AS waiting,
        (pending + sending + delayed)
            || iif(pending + sending + delayed = 1, ' result', ' results') AS results,
        coalesce((SELECT ': ' || substr(message, 1, 200) FROM delivery d
            WHERE d.destination = v.destination AND d.state = 'DELAYED' AND d.message <> ''
            ORDER BY d.started_at DESC LIMIT 1), '') AS last_message
    FROM v_destinations v),
-- Only these columns: SQLite computes no others of v_night.
night AS MATERIALIZED (
    SELECT jobs_running, series_gathering, disk_full_days, jobs_ready + jobs_delayed AS jobs,
        deliveries_pending + deliveries_delayed AS results
    FROM v_night),
rejected AS MATERIALIZED (SELECT * FROM v_callers WHERE admitted_at IS NULL AND last_at >= (SELECT ago FROM day))
SELECT 'destination_down:' || destination AS alert, 'attention' AS severity, down_since AS since_at,
    down_since AS changed_at, 1 AS size,
    printf('destination %s is down; %s for it: %s', destination,
        results || iif(waiting = 1, ' waits', ' wait'), down_reason) AS text
FROM destinations WHERE down_since IS NOT NULL
UNION ALL
SELECT 'destination_rejects:' || destination, 'attention', since_at, since_at, 1,
    printf('destination %s rejects us by an AE title; %s for it%s', destination,
        results || iif(waiting = 1, ' waits', ' wait'), last_message)
FROM destinations JOIN (SELECT destination, min(created_at) AS since_at FROM delivery
    WHERE state = 'DELAYED' AND code = 'PEER_REJECTED' GROUP BY destination) USING (destination)
WHERE down_since IS NULL
UNION ALL
SELECT 'undelivered:' || destination, 'attention', min(coalesce(started_at, created_at)),
    max(coalesce(started_at, created_at)), 1,
    printf('%d result%s could not be delivered to %s', count(*), iif(count(*) = 1, '', 's'), destination)
FROM delivery WHERE state = 'FAILED' GROUP BY destination
UNION ALL
SELECT 'delivery_review:' || destination, 'attention', min(started_at), max(started_at), 1,
    printf('%d de-identified cop%s for %s wait%s for a review', count(*), iif(count(*) = 1, 'y', 'ies'), destination,
        iif(count(*) = 1, 's', ''))
FROM delivery WHERE state = 'REVIEW' GROUP BY destination
UNION ALL
-- A job that another one has replaced needs no attention.
SELECT 'jobs_failed', 'attention', min(ended_at), max(ended_at), 1,
    printf('%d job%s failed in the last 24 h', count(*), iif(count(*) = 1, '', 's'))
FROM job WHERE state = 'FAILED' AND superseded_by IS NULL AND ended_at >= (SELECT ago FROM day) HAVING count(*) > 0
UNION ALL
SELECT 'unpulled:' || source, 'attention', min(ended_at), max(ended_at), 1,
    printf('%d item%s pulled from %s failed or incomplete in the last 24 h',
        count(*), iif(count(*) = 1, '', 's'), source)
FROM pull p WHERE ended_at >= (SELECT ago FROM day) AND state IN ('PARTIAL', 'FAILED') AND NOT EXISTS (
    SELECT 1 FROM pull l WHERE l.identifier = p.identifier AND l.identifier <> '' AND l.source = p.source
    AND l.key = p.key AND l.id > p.id AND l.state = 'DONE') GROUP BY source
UNION ALL
SELECT 'review', 'attention', min(ended_at), max(ended_at), 1,
    printf('%d job%s under review and not delivered', count(*), iif(count(*) = 1, ' is', 's are'))
FROM job WHERE state = 'REVIEW' HAVING count(*) > 0
UNION ALL
SELECT 'report', 'attention', report_at, report_at, 1,
    printf('the report of the night to %s was not handed over (%s)', night, report_message)
FROM v_nights WHERE until_at = (SELECT max(until_at) FROM v_nights) AND report = 'FAILED'
UNION ALL
SELECT 'notify:' || name, 'attention', failing_since_at, failing_since_at, 1,
    printf('the command of notify "%s" failed %d time%s and receives the same events again: %s', name, failures,
        iif(failures = 1, '', 's'), message)
FROM notification WHERE failures > 0
UNION ALL
SELECT 'program_broken:' || name, 'attention', since_at, since_at, 1, printf('program %s cannot run: %s', name, message)
FROM program WHERE code <> ''
UNION ALL
SELECT 'disk_filling', 'attention', NULL, NULL, 7 - CAST(disk_full_days AS INTEGER),
    printf('the disk is full in %.1f days at the present rate', disk_full_days)
FROM night WHERE disk_full_days <= 7.0
UNION ALL
SELECT 'configuration', 'attention', since_at, at, 1, printf('the configuration was refused, and that of %s stays in force: %s',
    coalesce((SELECT at FROM configuration WHERE state = 'LOADED'), 'the start'), reason)
FROM configuration WHERE state = 'REFUSED'
UNION ALL
SELECT 'quarantine', 'attention', min(quarantined_at), max(quarantined_at), 1,
    printf('%d file%s quarantined in the last 24 h', count(*), iif(count(*) = 1, '', 's'))
FROM quarantine WHERE quarantined_at >= (SELECT ago FROM day) AND removed_at IS NULL HAVING count(*) > 0
UNION ALL
-- A caller that is acknowledged may go on calling.
SELECT 'caller:' || id, 'attention', first_at, first_at, 1,
    printf('"%s" at %s called "%s" and was rejected %d time%s, last at %s: %s; ', calling_ae, host,
        called_ae, rejected, iif(rejected = 1, '', 's'), last_at, meaning)
    || iif(admit = '', iif(reason = 'other_certificate', 'let it call by TLS', 'correct its AE title'),
        printf('to admit it, add to dicom.%s%s', admit,
            iif(reason = 'unknown_title', '; if that list is new, its first row must be { ae_title = "NOCTULE"; }', '')))
FROM (SELECT * FROM rejected ORDER BY last_at DESC LIMIT 5)
UNION ALL
SELECT 'caller', 'attention', min(first_at), max(first_at), count(*),
    printf('%d more callers were rejected in the last 24 h', count(*) - 5)
FROM rejected HAVING count(*) > 5
UNION ALL
SELECT 'paused', 'attention', h.held_at, h.held_at, 1, printf('no job starts, %d run%s: paused by %s%s',
    jobs_running, iif(jobs_running = 1, 's', ''), h.held_by, iif(h.reason = '', '', ': ' || h.reason))
FROM hold h, night WHERE h.kind = 'jobs'
UNION ALL
SELECT 'late:' || w.pipeline || '/' || lower(late_why), 'attention', NULL, max(j.created_at), 1,
    printf('%d job%s of %s ', count(*), iif(count(*) = 1, '', 's'), w.pipeline) || CASE late_why
    WHEN 'PAST' THEN printf('not done by %s, when wanted', min(w.done_by_at))
    WHEN 'ALONE' THEN printf('cannot be done by %s, even first: one takes about %.1f min, and there are %.1f min from '
        || 'when it may start; see its window and done_by', min(w.done_by_at), max(mean_seconds) / 60.0,
        min(room_seconds) / 60.0)
    ELSE printf('will be late: wanted by %s, about %s%s', min(w.done_by_at), strftime('%Y-%m-%dT%H:%MZ', max(expected_at)),
        iif(late_why <> 'WINDOW', '', printf('; its window closes before %s turn', iif(count(*) = 1, 'its', 'their')))) END
FROM v_wanted w JOIN job j ON j.id = w.job WHERE is_late GROUP BY w.pipeline, late_why
UNION ALL
SELECT 'held:' || h.kind || iif(h.name = '', '', '/' || h.name), 'waits', h.held_at, h.held_at, 1,
    printf('%s for the release of %s, held by %s%s',
    CASE h.kind
        WHEN 'queue' THEN (SELECT printf('%d job%s and %d result%s', jobs, iif(jobs = 1, '', 's'),
            results, iif(results = 1, '', 's')) FROM night)
        WHEN 'destination' THEN
            coalesce((SELECT results FROM destinations WHERE destination = h.name), '0 results')
        WHEN 'pipeline' THEN (SELECT count(*) || iif(count(*) = 1, ' job', ' jobs') FROM job
            WHERE state IN ('READY', 'DELAYED') AND pipeline = h.name)
        ELSE '1 job' END,
    h.kind || iif(h.name = '', '', ' ' || h.name), h.held_by,
    iif(h.reason = '', '', ': ' || h.reason))
FROM hold h WHERE h.kind <> 'jobs'
UNION ALL
SELECT 'window:' || w.pipeline, 'waits', NULL, NULL, 1,
    printf('%d job%s of %s for %s window, %s%s', count(*), iif(count(*) = 1, '', 's'),
    j.pipeline, iif(count(*) = 1, 'its', 'their'), w.text,
    coalesce(', which opens at ' || w.opens_at, ', which does not open'))
FROM pipeline_window w JOIN job j ON j.pipeline = w.pipeline AND j.state IN ('READY', 'DELAYED')
WHERE NOT w.is_open GROUP BY w.pipeline
UNION ALL
SELECT 'deliveries:' || destination, 'waits', oldest_waiting_at, NULL, 1, printf('%s for %s%s%s', results, destination,
    iif(next_attempt_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
        ', tried again at ' || next_attempt_at, ''), last_message)
FROM destinations WHERE waiting > 0 AND down_since IS NULL
    AND destination NOT IN (SELECT name FROM hold WHERE kind = 'destination')
UNION ALL
SELECT 'commitments:' || destination, 'waits', NULL, NULL, 1,
    printf('%d result%s for the commitment of %s', uncommitted, iif(uncommitted = 1, '', 's'), destination)
FROM destinations WHERE uncommitted > 0
UNION ALL
SELECT 'pulls:' || source, 'waits', min(created_at), NULL, 1,
    printf('%d item%s to be pulled from %s%s', count(*), iif(count(*) = 1, '', 's'), source,
    coalesce((SELECT ': ' || substr(message, 1, 200) FROM pull l WHERE l.source = p.source AND l.state = 'WAITING'
        AND l.message <> '' ORDER BY l.started_at DESC LIMIT 1), ''))
FROM pull p WHERE ended_at IS NULL GROUP BY source
UNION ALL
SELECT 'delayed:' || code, 'waits', NULL, NULL, 1, CASE code
    WHEN 'STUDY_WAITING' THEN printf('%d job%s for other series of the study, the first until %s', count(*),
        iif(count(*) = 1, '', 's'), min(not_before_at))
    WHEN 'PRIOR_WAITING' THEN printf('%d job%s for an earlier study from an archive, the first until %s', count(*),
        iif(count(*) = 1, '', 's'), min(not_before_at))
    WHEN 'PROGRAM_WAITING' THEN printf('%d job%s for a program', count(*), iif(count(*) = 1, '', 's'))
    WHEN 'OBJECT_WAITING' THEN printf('%d job%s for annotation objects of the series, the first until %s', count(*),
        iif(count(*) = 1, '', 's'), min(not_before_at))
    WHEN 'OBJECT_OPTIONAL' THEN printf('%d job%s for optional annotation objects, the first until %s', count(*),
        iif(count(*) = 1, '', 's'), min(not_before_at))
    ELSE printf('%d job%s to be tried again after %s, the first at %s', count(*),
        iif(count(*) = 1, '', 's'), code, min(not_before_at)) END
FROM job WHERE state = 'DELAYED' GROUP BY code
UNION ALL
SELECT 'receiving', 'waits', NULL, NULL, 1, printf('%d series for more slices', series_gathering)
FROM night WHERE series_gathering > 0;

-- Commands of `notify`: the events that they have received.
CREATE VIEW v_notifications AS
SELECT name, event_id AS event, ended_at, failures, failing_since_at, message FROM notification;

-- The earlier name of v_alerts.
CREATE VIEW v_troubles AS
SELECT severity AS level, since_at, text FROM v_alerts;

-- What people have acknowledged; whether it still covers the alert, `noctule status` shows.
CREATE VIEW v_acknowledgements AS
SELECT alert, acknowledged_at, acknowledged_by, reason, until_at,
    CASE severity WHEN 2 THEN 'broken' WHEN 1 THEN 'attention' ELSE 'waits' END AS severity, changed_at, size
FROM acknowledgement;

-- Validations of pipelines by noctule validate.
CREATE VIEW v_validations AS
SELECT v.id AS validation, v.at, v.by, v.name, v.passed, v.why, v.patients,
    count(c.number) FILTER (WHERE NOT c.other) AS cases,
    count(c.number) FILTER (WHERE NOT c.other AND c.outcome = 'DONE') AS done,
    count(c.number) FILTER (WHERE c.other) AS others,
    count(c.number) FILTER (WHERE c.other AND c.outcome = 'DONE') AS others_done,
    count(c.number) FILTER (WHERE c.wrong) AS wrong,
    -- With 95 % confidence, no larger share of results is wrong and DONE.
    iif(count(c.number) FILTER (WHERE c.wrong) = 0, min(1.0, 3.0 / nullif(count(c.number), 0)), NULL) AS wrong_share_95,
    v.tolerance_mm, v.version, v.digest,
    v.passed AND NOT EXISTS (SELECT 1 FROM validation w WHERE w.digest = v.digest AND w.id > v.id) AS in_force
FROM validation v LEFT JOIN validation_case c ON c.validation_id = v.id
GROUP BY v.id;

-- Regions of the cases of validations. A case without a region has one row.
CREATE VIEW v_validation_cases AS
SELECT c.validation_id AS validation, c.number AS validation_case, c.other, c.complete, c.patient, c.series, c.manufacturer, c.model, c.kernel,
    c.thickness, c.slice_mm, c.noise, c.outcome, c.checks, c.wrong,
    r.segment, r.reference, r.dice, r.surface_dice, r.distance_95_mm, r.volume_ratio, r.bias_ml
FROM validation_case c LEFT JOIN validation_region r ON r.validation_id = c.validation_id AND r.number = c.number;

-- Images that validations in force allow: at least five patients of one scanner, kernel and thickness.
CREATE VIEW v_validated_ranges AS
SELECT v.id AS validation, v.name, v.digest, c.manufacturer, c.model, c.kernel, c.thickness,
    count(DISTINCT c.patient) AS patients,
    min(c.noise) FILTER (WHERE c.outcome = 'DONE') AS noise_low,
    max(c.noise) FILTER (WHERE c.outcome = 'DONE') AS noise_high
FROM validation v JOIN validation_case c ON c.validation_id = v.id
WHERE v.passed AND c.complete AND NOT c.other
    AND NOT EXISTS (SELECT 1 FROM validation w WHERE w.digest = v.digest AND w.id > v.id)
GROUP BY v.digest, v.id, c.manufacturer, c.model, c.kernel, c.thickness
HAVING count(DISTINCT c.patient) >= 5 AND count(*) FILTER (WHERE c.outcome = 'DONE') > 0;

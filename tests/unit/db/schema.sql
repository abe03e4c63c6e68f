-- schema.sql - what the migrations add up to, where the tables have their comments.
-- Not to be edited: NOCTULE_WRITE_SCHEMA=1 unit_test_db_open writes it.
-- Private to db/: people ask the views of views.sql, which docs/database.md describes.

CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    series_uid TEXT NOT NULL UNIQUE,
    study_uid TEXT NOT NULL,
    modality TEXT NOT NULL,
    body_part TEXT NOT NULL,
    description TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('GATHERING', 'SETTLED', 'REFUSED')),
    revision INTEGER NOT NULL CHECK (revision >= 1),
    instances INTEGER NOT NULL CHECK (instances >= 0),
    frames INTEGER NOT NULL CHECK (frames >= 0),
    expected_instances INTEGER NOT NULL CHECK (expected_instances >= 0), -- 0: unknown
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    settled_at TEXT,
    evidence TEXT NOT NULL DEFAULT '',
    complete_requested INTEGER NOT NULL DEFAULT 0 CHECK (complete_requested IN (0, 1)),
    duplicate_conflicts INTEGER NOT NULL DEFAULT 0 CHECK (duplicate_conflicts >= 0),
    missing_files INTEGER NOT NULL DEFAULT 0 CHECK (missing_files >= 0), called_ae TEXT NOT NULL DEFAULT '', sender TEXT NOT NULL DEFAULT '', code TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT '', missing_accepted_by TEXT NOT NULL DEFAULT '', removed_at TEXT, frame_of_reference TEXT NOT NULL DEFAULT '', accession_number TEXT NOT NULL DEFAULT '', patient_id TEXT NOT NULL DEFAULT '', study_date TEXT NOT NULL DEFAULT '', study_description TEXT NOT NULL DEFAULT '', manufacturer TEXT NOT NULL DEFAULT '', model TEXT NOT NULL DEFAULT '', station TEXT NOT NULL DEFAULT '', institution TEXT NOT NULL DEFAULT '', patient_issuer TEXT NOT NULL DEFAULT '',
    CHECK ((state = 'GATHERING') = (settled_at IS NULL))
) STRICT;
CREATE INDEX series_state ON series (state, last_seen_at);
CREATE INDEX series_stored ON series (settled_at, id) WHERE removed_at IS NULL AND settled_at IS NOT NULL;
CREATE INDEX series_removed ON series (removed_at, id) WHERE removed_at IS NOT NULL;
CREATE INDEX series_frame ON series (frame_of_reference) WHERE frame_of_reference <> '';
CREATE INDEX series_by_accession ON series (accession_number) WHERE accession_number <> '';
CREATE INDEX series_by_patient ON series (patient_id) WHERE patient_id <> '';
CREATE INDEX series_settled ON series (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX series_study ON series (study_uid);
CREATE INDEX series_jobless ON series (last_seen_at) WHERE state <> 'SETTLED' OR code <> '';
CREATE INDEX series_modality ON series (modality);
CREATE INDEX series_station ON series (station);
CREATE INDEX series_work ON series (CAST(-id AS INTEGER)) WHERE state <> 'SETTLED' OR code <> '';

CREATE TABLE instance (
    id INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL REFERENCES series (id),
    revision INTEGER NOT NULL, -- of the series when it came
    sop_instance_uid TEXT NOT NULL,
    sop_class_uid TEXT NOT NULL,
    transfer_syntax_uid TEXT NOT NULL,
    path TEXT NOT NULL UNIQUE, -- relative to the root
    source TEXT NOT NULL,
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    frames INTEGER NOT NULL CHECK (frames >= 0),
    missing INTEGER NOT NULL DEFAULT 0 CHECK (missing IN (0, 1)), -- the file is gone
    received_at TEXT NOT NULL, replaced INTEGER NOT NULL DEFAULT 0 CHECK (replaced >= 0), original_path TEXT NOT NULL DEFAULT '', sha256 TEXT NOT NULL DEFAULT '',
    UNIQUE (series_id, sop_instance_uid)
) STRICT;
CREATE INDEX instance_sop ON instance (sop_instance_uid);
CREATE TRIGGER instance_missing_forgets AFTER UPDATE OF missing ON instance WHEN NEW.missing
BEGIN
    DELETE FROM kept WHERE instance_id = NEW.id;
END;

CREATE TABLE stack (
    id INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL REFERENCES series (id),
    revision INTEGER NOT NULL,
    name TEXT NOT NULL,
    accepted INTEGER NOT NULL CHECK (accepted IN (0, 1)),
    planes INTEGER NOT NULL,
    columns INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    spacing_mm REAL NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    file_a TEXT NOT NULL,
    file_b TEXT NOT NULL, split_by TEXT NOT NULL DEFAULT '', passed_over INTEGER NOT NULL DEFAULT 0 CHECK (passed_over IN (0, 1)), temporal_positions INTEGER NOT NULL DEFAULT 0, announced_temporal_positions INTEGER NOT NULL DEFAULT 0, options TEXT NOT NULL DEFAULT '', column_mm REAL, row_mm REAL, orientation TEXT NOT NULL DEFAULT '', cosines TEXT NOT NULL DEFAULT '',
    UNIQUE (series_id, revision, name),
    CHECK (accepted = (code = ''))
) STRICT;

CREATE TABLE settings (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE result (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES job (id),
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    sop_class_uid TEXT NOT NULL,
    sop_instance_uid TEXT NOT NULL,
    series_uid TEXT NOT NULL,
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    frames INTEGER NOT NULL CHECK (frames >= 0),
    created_at TEXT NOT NULL, replaces TEXT NOT NULL DEFAULT '', not_taken_by TEXT NOT NULL DEFAULT '',
    UNIQUE (job_id, path)
) STRICT;
CREATE INDEX result_sop ON result (sop_instance_uid) WHERE sop_instance_uid <> '';
CREATE INDEX result_series ON result (series_uid) WHERE series_uid <> '';
CREATE INDEX result_replaces ON result (replaces) WHERE replaces <> '';

CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL, -- relative to the root; '' when it could not be kept
    original_path TEXT NOT NULL,
    series_uid TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    quarantined_at TEXT NOT NULL, sop_instance_uid TEXT NOT NULL DEFAULT '', lacking INTEGER NOT NULL DEFAULT 0 CHECK (lacking IN (0, 1)), removed_at TEXT, called_ae TEXT NOT NULL DEFAULT '',
    UNIQUE (path, original_path, code)
) STRICT;
CREATE INDEX quarantine_time ON quarantine (quarantined_at);
CREATE INDEX quarantine_lacking ON quarantine (series_uid) WHERE lacking;
CREATE INDEX quarantine_instance ON quarantine (sop_instance_uid) WHERE lacking;
CREATE INDEX quarantine_stored ON quarantine (quarantined_at, id) WHERE removed_at IS NULL AND path <> '';
CREATE INDEX quarantine_series ON quarantine (series_uid);

CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    series_id INTEGER REFERENCES series (id),
    job_id INTEGER REFERENCES job (id),
    from_state TEXT,
    to_state TEXT,
    detail TEXT NOT NULL
, delivery_id INTEGER REFERENCES delivery (id), program_run_id INTEGER REFERENCES program_run (id)) STRICT;
CREATE INDEX event_series ON event (series_id) WHERE series_id IS NOT NULL;
CREATE INDEX event_job ON event (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX event_delivery ON event (delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX event_destination ON event (id)
    WHERE kind IN ('START', 'DESTINATION_DOWN', 'DESTINATION_UP');
CREATE INDEX event_compute ON event (id)
    WHERE kind IN ('START', 'COMPUTE_WAITING', 'COMPUTE_READY');
CREATE INDEX event_own ON event (at) WHERE series_id IS NULL;
CREATE TRIGGER event_stays BEFORE DELETE ON event
WHEN OLD.at >= (SELECT events_before FROM horizon)
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;
CREATE INDEX event_program_run ON event (program_run_id) WHERE program_run_id IS NOT NULL;
CREATE TRIGGER event_is_final BEFORE UPDATE ON event
WHEN NEW.id IS NOT OLD.id OR NEW.at IS NOT OLD.at OR NEW.kind IS NOT OLD.kind
    OR NEW.series_id IS NOT OLD.series_id OR NEW.job_id IS NOT OLD.job_id
    OR NEW.delivery_id IS NOT OLD.delivery_id OR NEW.program_run_id IS NOT OLD.program_run_id
    OR NEW.from_state IS NOT OLD.from_state OR NEW.to_state IS NOT OLD.to_state OR NEW.detail <> 'purged'
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

CREATE TABLE pattern_histogram (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES job (id),
    segment_number INTEGER NOT NULL CHECK (segment_number >= 0), -- 0: the whole volume
    label TEXT NOT NULL, -- of the segment; '' for the whole volume
    pattern TEXT NOT NULL CHECK (pattern <> ''),
    settings TEXT NOT NULL,
    -- [0,17,...]: 256 of them. In a schema that is not trusted JSON functions do not run.
    counts TEXT NOT NULL CHECK (counts GLOB '[[][0-9]*[0-9]]'
        AND substr(counts, 2, length(counts) - 2) NOT GLOB '*[^0-9,]*'
        AND counts NOT GLOB '*,,*' AND length(counts) - length(replace(counts, ',', '')) = 255),
    UNIQUE (job_id, segment_number, pattern, settings)
) STRICT;
CREATE TRIGGER pattern_block_loses AFTER DELETE ON pattern_histogram BEGIN
    UPDATE pattern_block SET stale = 1 WHERE term_id = 0 AND NOT stale
        AND last_id = (SELECT min(last_id) FROM pattern_block WHERE last_id >= OLD.id) AND first_id <= OLD.id;
END;
CREATE TRIGGER pattern_block_ends AFTER INSERT ON pattern_histogram
    WHEN EXISTS (SELECT 1 FROM pattern_block WHERE last_id >= NEW.id) BEGIN
    DELETE FROM pattern_block WHERE last_id >= NEW.id;
    UPDATE pattern_change SET number = number + 1;
END;

CREATE TABLE feature_definition (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CHECK (name <> ''),
    label TEXT NOT NULL,
    family TEXT NOT NULL,
    meaning TEXT NOT NULL,
    ibsi_code TEXT NOT NULL,
    unit TEXT NOT NULL,
    settings TEXT NOT NULL,
    UNIQUE (name, label, family, meaning, ibsi_code, unit, settings)
) STRICT;

CREATE TABLE feature_setting (
    definition_id INTEGER NOT NULL REFERENCES feature_definition (id),
    key TEXT NOT NULL CHECK (key <> ''),
    value ANY NOT NULL,
    PRIMARY KEY (definition_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE feature (
    job_id INTEGER NOT NULL REFERENCES job (id),
    segment_number INTEGER NOT NULL CHECK (segment_number >= 0),
    definition_id INTEGER NOT NULL REFERENCES feature_definition (id),
    place INTEGER NOT NULL CHECK (place >= 1),
    value REAL CHECK (abs(value) < 9e999),
    reason TEXT NOT NULL,
    PRIMARY KEY (job_id, segment_number, definition_id),
    CHECK ((value IS NULL) = (reason <> ''))
) STRICT, WITHOUT ROWID;

CREATE TABLE removal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    size_bytes INTEGER, -- this and the next: of originals
    taken_at TEXT,
    CHECK ((path LIKE '/%') = (size_bytes IS NOT NULL AND taken_at IS NOT NULL))
) STRICT;

CREATE TABLE sqlite_sequence(name,seq);

CREATE TABLE disk (
    at TEXT PRIMARY KEY,
    free_mib REAL NOT NULL CHECK (free_mib >= 0.0)
) STRICT, WITHOUT ROWID;

CREATE TABLE horizon (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    events_before TEXT NOT NULL
) STRICT;

CREATE TABLE "job" (
    id INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL REFERENCES series (id),
    revision INTEGER NOT NULL,
    stack TEXT NOT NULL,
    pipeline TEXT NOT NULL,
    settings_id INTEGER NOT NULL REFERENCES settings (id),
    state TEXT NOT NULL
        CHECK (state IN ('READY', 'RUNNING', 'DONE', 'EMPTY', 'REVIEW', 'REJECTED', 'DELAYED',
            'FAILED', 'CANCELLED')),
    priority INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    alone INTEGER NOT NULL DEFAULT 0 CHECK (alone IN (0, 1)),
    created_at TEXT NOT NULL,
    ready_at TEXT NOT NULL, -- when it last became READY
    not_before_at TEXT,
    started_at TEXT, -- the latest attempt; NULL in READY
    ended_at TEXT, -- and what came of a review came later
    worker TEXT,
    lane INTEGER,
    read_seconds REAL,
    compute_seconds REAL,
    write_seconds REAL,
    verify_seconds REAL,
    total_seconds REAL,
    voxels INTEGER,
    segmented_voxels INTEGER,
    peak_bytes INTEGER,
    backend TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    file_a TEXT NOT NULL DEFAULT '',
    file_b TEXT NOT NULL DEFAULT '',
    superseded_by INTEGER REFERENCES job (id),
    removed_at TEXT,
    reviewed_at TEXT, -- when somebody accepted or rejected it
    reviewed_by TEXT NOT NULL DEFAULT '', done_by_at TEXT, executor TEXT NOT NULL DEFAULT 'local' CHECK (executor IN ('local', 'slurm')), nonce TEXT NOT NULL DEFAULT '', slurm_id INTEGER, submitted_at TEXT, node TEXT NOT NULL DEFAULT '', slurm_reason TEXT NOT NULL DEFAULT '', stage TEXT NOT NULL DEFAULT '', stage_at TEXT, spacing_x_mm REAL, spacing_y_mm REAL, spacing_z_mm REAL, source_x_mm REAL, source_y_mm REAL, source_step_min_mm REAL, source_step_max_mm REAL, straightened TEXT, rule TEXT NOT NULL DEFAULT '', study_uid TEXT NOT NULL DEFAULT '', kernel TEXT, kvp REAL, slice_thickness_min_mm REAL, slice_thickness_max_mm REAL, corrects INTEGER REFERENCES job (id) ON DELETE SET NULL, correction INTEGER REFERENCES object (id) ON DELETE SET NULL, prior_id INTEGER REFERENCES job (id) ON DELETE SET NULL, pixel_values TEXT, pixel_intensity TEXT, spacing_source TEXT, prior_item INTEGER REFERENCES pull (id) ON DELETE SET NULL, prior_until_at TEXT,
    FOREIGN KEY (series_id, revision, stack) REFERENCES stack (series_id, revision, name),
    CHECK ((state = 'DELAYED') = (not_before_at IS NOT NULL)),
    CHECK ((state IN ('DONE', 'EMPTY', 'REVIEW', 'REJECTED', 'FAILED', 'CANCELLED'))
        = (ended_at IS NOT NULL)),
    CHECK (state <> 'READY' OR started_at IS NULL),
    CHECK (state <> 'RUNNING'
        OR (started_at IS NOT NULL AND attempts >= 1 AND worker IS NOT NULL AND lane IS NOT NULL)),
    CHECK (reviewed_at IS NULL OR state IN ('DONE', 'EMPTY', 'REJECTED')),
    CHECK ((reviewed_at IS NULL) = (reviewed_by = ''))
) STRICT;
CREATE INDEX job_state ON job (state, ended_at);
CREATE INDEX job_ready ON job (pipeline, priority DESC, id) WHERE state = 'READY';
CREATE INDEX job_delayed ON job (not_before_at) WHERE state = 'DELAYED';
CREATE INDEX job_superseded_by ON job (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE UNIQUE INDEX job_lane ON job (worker, lane) WHERE state = 'RUNNING';
CREATE INDEX job_series ON job (series_id, revision, stack, pipeline);
CREATE UNIQUE INDEX job_unfinished ON job (series_id, revision, stack, pipeline)
    WHERE state IN ('READY', 'DELAYED', 'RUNNING');
CREATE INDEX job_stored ON job (ended_at, id) WHERE state = 'DONE' AND removed_at IS NULL;
CREATE TRIGGER job_end_releases AFTER UPDATE OF state ON job WHEN NEW.ended_at IS NOT NULL
BEGIN
    DELETE FROM hold WHERE kind = 'job' AND name = CAST(NEW.id AS TEXT);
END;
CREATE INDEX job_done_by ON job (pipeline, done_by_at, id) WHERE state = 'READY' AND done_by_at IS NOT NULL;
CREATE INDEX job_elsewhere ON job (id) WHERE state = 'RUNNING' AND executor <> 'local';
CREATE INDEX job_waits ON job (pipeline, priority DESC, id) WHERE state = 'DELAYED' AND code = 'PROGRAM_WAITING';
CREATE INDEX job_waits_done_by ON job (pipeline, done_by_at, id)
    WHERE state = 'DELAYED' AND code = 'PROGRAM_WAITING' AND done_by_at IS NOT NULL;
CREATE INDEX job_state_created ON job (state, created_at);
CREATE INDEX job_pipeline ON job (pipeline, created_at);
CREATE TRIGGER review_end_decides AFTER UPDATE OF state ON job WHEN OLD.state = 'REVIEW' AND NEW.state <> 'REVIEW'
BEGIN
    DELETE FROM decision WHERE job_id = NEW.id;
END;
CREATE INDEX job_corrects ON job (corrects) WHERE corrects IS NOT NULL;
CREATE INDEX job_correction ON job (correction) WHERE correction IS NOT NULL;
CREATE INDEX job_created ON job (created_at, superseded_by);
CREATE INDEX job_ended ON job (ended_at, state, superseded_by) WHERE ended_at IS NOT NULL;
CREATE INDEX job_prior ON job (prior_id) WHERE prior_id IS NOT NULL;
CREATE INDEX job_prior_item ON job (prior_item) WHERE prior_item IS NOT NULL;
CREATE INDEX job_waits_prior ON job (id) WHERE state = 'DELAYED' AND code = 'PRIOR_WAITING';

CREATE TABLE object (
    id INTEGER PRIMARY KEY,
    series_uid TEXT NOT NULL, -- its own
    sop_instance_uid TEXT NOT NULL,
    sop_class_uid TEXT NOT NULL,
    transfer_syntax_uid TEXT NOT NULL,
    study_uid TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('rtstruct', 'seg', 'sr')),
    label TEXT NOT NULL,
    description TEXT NOT NULL,
    made TEXT NOT NULL, -- digits of the date and time that it tells; ''
    path TEXT NOT NULL UNIQUE, -- relative to the root
    source TEXT NOT NULL,
    original_path TEXT NOT NULL,
    sender TEXT NOT NULL, -- AE title
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    replaced INTEGER NOT NULL CHECK (replaced >= 0),
    own INTEGER NOT NULL CHECK (own IN (0, 1)), -- a result of ours, which is no input
    missing INTEGER NOT NULL DEFAULT 0 CHECK (missing IN (0, 1)), -- the file is gone
    received_at TEXT NOT NULL,
    superseded_by INTEGER REFERENCES object (id) ON DELETE SET NULL,
    removed_at TEXT, person TEXT NOT NULL DEFAULT '',
    UNIQUE (series_uid, sop_instance_uid)
) STRICT;
CREATE INDEX object_instance ON object (sop_instance_uid);
CREATE INDEX object_superseded_by ON object (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX object_stored ON object (received_at, id) WHERE removed_at IS NULL;
CREATE INDEX object_removed ON object (removed_at, id) WHERE removed_at IS NOT NULL;
CREATE TRIGGER object_missing_forgets AFTER UPDATE OF missing ON object WHEN NEW.missing
BEGIN
    DELETE FROM kept WHERE object_id = NEW.id;
END;
CREATE INDEX object_study ON object (study_uid);

CREATE TABLE object_reference (
    kind TEXT NOT NULL CHECK (kind IN ('series', 'instance', 'frame', 'predecessor')),
    uid TEXT NOT NULL,
    object_id INTEGER NOT NULL REFERENCES object (id) ON DELETE CASCADE,
    PRIMARY KEY (kind, uid, object_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX object_reference_object ON object_reference (object_id);

CREATE TABLE kept (
    source TEXT NOT NULL, -- "inbox:<path>"
    file INTEGER NOT NULL, -- digest of its path below the inbox
    look INTEGER NOT NULL, -- of its inode, size and times
    instance_id INTEGER REFERENCES instance (id) ON DELETE SET NULL, object_id INTEGER REFERENCES object (id) ON DELETE SET NULL, -- NULL: it was removed
    PRIMARY KEY (source, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX kept_by_instance ON kept (instance_id);
CREATE INDEX kept_by_object ON kept (object_id) WHERE object_id IS NOT NULL;

CREATE TABLE "hold" (
    kind TEXT NOT NULL CHECK (kind IN ('queue', 'jobs', 'pipeline', 'destination', 'job')),
    name TEXT NOT NULL, -- '' of the queue and of jobs; of a job its number
    held_at TEXT NOT NULL,
    held_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (kind, name),
    CHECK ((kind IN ('queue', 'jobs')) = (name = ''))
) STRICT, WITHOUT ROWID;

CREATE TABLE pipeline_window (
    pipeline TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL,     -- as configured
    is_open INTEGER NOT NULL,
    opens_at TEXT,          -- the next time; NULL: it is open, or does not
    closes_at TEXT,         -- of what is open, or opens then; NULL: it does not
    open_share REAL NOT NULL -- of the next two weeks
) STRICT, WITHOUT ROWID;

CREATE TABLE night (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL, -- the date on which it ended, where the service is
    since_at TEXT NOT NULL,
    until_at TEXT NOT NULL UNIQUE, -- without it
    series_settled INTEGER NOT NULL,
    series_refused INTEGER NOT NULL,
    series_without_rule INTEGER NOT NULL,
    instances INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    jobs_done INTEGER NOT NULL,
    jobs_empty INTEGER NOT NULL,
    jobs_review INTEGER NOT NULL,
    jobs_rejected INTEGER NOT NULL,
    jobs_failed INTEGER NOT NULL,
    jobs_cancelled INTEGER NOT NULL,
    busy_seconds REAL NOT NULL,
    compute_seconds REAL NOT NULL,
    result_bytes INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    undelivered INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    quarantined INTEGER NOT NULL,
    free_mib REAL,
    report TEXT NOT NULL CHECK (report IN ('', 'PENDING', 'DONE', 'FAILED')), -- '': nobody asked for one
    report_at TEXT,
    report_message TEXT NOT NULL DEFAULT '',
    CHECK (since_at < until_at)
) STRICT;
CREATE INDEX night_report ON night (id) WHERE report = 'PENDING';

CREATE TABLE pull_part (
    pull_id INTEGER NOT NULL REFERENCES pull (id) ON DELETE CASCADE,
    study_uid TEXT NOT NULL CHECK (study_uid <> ''),
    series_uid TEXT NOT NULL, -- '': the whole study
    expected INTEGER CHECK (expected >= 0), -- as above
    PRIMARY KEY (pull_id, study_uid, series_uid)
) STRICT, WITHOUT ROWID;
CREATE INDEX pull_part_study ON pull_part (study_uid);

CREATE TABLE acknowledgement (
    alert TEXT PRIMARY KEY,          -- its id: KIND or KIND:SUBJECT
    acknowledged_at TEXT NOT NULL,
    acknowledged_by TEXT NOT NULL,   -- the user, and who had logged in
    reason TEXT NOT NULL,            -- '': none was given
    until_at TEXT,                   -- NULL: no end
    severity INTEGER NOT NULL,       -- these three: of the alert at that time
    changed_at TEXT,                 -- NULL: unknown, or raised by the daemon
    size INTEGER NOT NULL,
    from_daemon INTEGER NOT NULL     -- 1: it ends when the daemon clears the alert
) STRICT, WITHOUT ROWID;

CREATE TABLE disk_now (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at TEXT NOT NULL,
    free_mib REAL NOT NULL
) STRICT;

CREATE TABLE breach (
    job_id INTEGER NOT NULL REFERENCES job (id),
    place INTEGER NOT NULL CHECK (place >= 1), -- in the order of the pipeline
    segment_number INTEGER NOT NULL CHECK (segment_number >= 0), -- 0: hidden
    label TEXT NOT NULL, -- of the segment
    expectation TEXT NOT NULL, -- the option of `expect`
    found REAL, -- NULL: not a number
    low REAL,
    high REAL,
    text TEXT NOT NULL,
    PRIMARY KEY (job_id, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE configuration (
    state TEXT PRIMARY KEY CHECK (state IN ('LOADED', 'REFUSED')),
    at TEXT NOT NULL, -- of the last time
    since_at TEXT NOT NULL, -- of the first refusal since a configuration was loaded
    cause TEXT NOT NULL CHECK (cause IN ('start', 'command', 'signal')),
    asked_by TEXT NOT NULL, -- '': not known
    files TEXT NOT NULL, -- one per line, the main file first
    reason TEXT NOT NULL -- of a refusal, else ''
) STRICT;

CREATE TABLE pull_unwanted (
    sop_instance_uid TEXT NOT NULL PRIMARY KEY,
    sop_class_uid TEXT NOT NULL,
    series_uid TEXT NOT NULL,
    study_uid TEXT NOT NULL,
    pull_id INTEGER NOT NULL REFERENCES pull (id) ON DELETE CASCADE -- removed with that item
) STRICT, WITHOUT ROWID;
CREATE INDEX pull_unwanted_study ON pull_unwanted (study_uid);
CREATE INDEX pull_unwanted_pull ON pull_unwanted (pull_id);

CREATE TABLE caller (
    id INTEGER PRIMARY KEY,
    calling_ae TEXT NOT NULL,
    called_ae TEXT NOT NULL,
    host TEXT NOT NULL, -- numeric address
    reason TEXT NOT NULL CHECK (reason IN ('unknown_caller', 'other_address', 'other_certificate', 'unknown_title')),
    certificate TEXT NOT NULL, -- SHA-256; '': none was shown
    rejected INTEGER NOT NULL CHECK (rejected > 0), -- associations
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    admitted_at TEXT, -- since when the configuration in force admits it; NULL: it does not
    UNIQUE (calling_ae, called_ae, host, reason)
) STRICT;
CREATE INDEX caller_host ON caller (host, last_at);
CREATE INDEX caller_last ON caller (last_at);

CREATE TABLE notification (
    name TEXT PRIMARY KEY,
    event_id INTEGER NOT NULL,       -- the last event that the command has received
    ended_at TEXT,                   -- of the last run; NULL: none yet
    failures INTEGER NOT NULL CHECK (failures >= 0), -- since the last success
    failing_since_at TEXT,           -- NULL: the last run succeeded
    message TEXT NOT NULL,           -- of the last failure, else ''
    CHECK ((failures > 0) = (failing_since_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE alert_raised (
    alert TEXT PRIMARY KEY,          -- its id: KIND or KIND:SUBJECT
    severity INTEGER NOT NULL,
    raised_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE program (
    name TEXT PRIMARY KEY,
    identity TEXT NOT NULL,       -- SHA-256 of its options, its file and its weights; '': not known yet
    program_sha256 TEXT NOT NULL, -- of the file of command[0]; '': not known
    weights_sha256 TEXT NOT NULL, -- '': no weights, or not known
    weights_bytes INTEGER NOT NULL CHECK (weights_bytes >= 0),
    sandbox TEXT NOT NULL,        -- '': no sandbox is possible
    code TEXT NOT NULL,           -- '': it can run
    message TEXT NOT NULL,
    since_at TEXT NOT NULL        -- of this code
) STRICT, WITHOUT ROWID;

CREATE TABLE program_run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    series_id INTEGER NOT NULL REFERENCES series (id),
    revision INTEGER NOT NULL,
    stack TEXT NOT NULL,
    program TEXT NOT NULL,
    grid TEXT NOT NULL,           -- options of the pipeline that decide the voxels
    identity TEXT NOT NULL CHECK (identity <> ''),
    settings_id INTEGER NOT NULL REFERENCES settings (id), -- of the program
    pipeline_id INTEGER NOT NULL REFERENCES settings (id), -- of a pipeline with this grid
    state TEXT NOT NULL
        CHECK (state IN ('READY', 'RUNNING', 'DELAYED', 'DONE', 'FAILED', 'CANCELLED')),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    ran_as TEXT NOT NULL DEFAULT '' CHECK (ran_as IN ('', 'shared', 'whole', 'cpu')), -- of the next or last attempt
    created_at TEXT NOT NULL,
    ready_at TEXT NOT NULL,       -- when it last became READY
    not_before_at TEXT,
    started_at TEXT,              -- the latest attempt; NULL in READY
    ended_at TEXT,
    slot INTEGER,                 -- NULL: it did not start, or it runs in Slurm
    carrier_job_id INTEGER REFERENCES job (id) ON DELETE SET NULL, -- the job in Slurm that runs it; NULL: it runs here
    starts INTEGER NOT NULL DEFAULT 0 CHECK (starts >= 0), -- processes started; 0: a warm one took it
    gpu TEXT NOT NULL DEFAULT '', -- UUID
    sandbox TEXT NOT NULL DEFAULT '',
    write_seconds REAL,           -- this and the next five: of the last attempt that ended
    program_seconds REAL,
    read_seconds REAL,
    peak_bytes INTEGER,
    labels INTEGER,
    labelled_voxels INTEGER,
    sha256 TEXT NOT NULL DEFAULT '', -- of programs/<id>/mask
    size_bytes INTEGER NOT NULL DEFAULT 0 CHECK (size_bytes >= 0),
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    superseded_by INTEGER REFERENCES program_run (id),
    removed_at TEXT,              -- of the folder programs/<id>
    FOREIGN KEY (series_id, revision, stack) REFERENCES stack (series_id, revision, name),
    CHECK ((state = 'DELAYED') = (not_before_at IS NOT NULL)),
    CHECK ((state IN ('DONE', 'FAILED', 'CANCELLED')) = (ended_at IS NOT NULL)),
    CHECK (state <> 'READY' OR started_at IS NULL),
    CHECK (state <> 'RUNNING' OR (started_at IS NOT NULL AND attempts >= 1
        AND (slot IS NULL) = (carrier_job_id IS NOT NULL))),
    CHECK ((state = 'DONE') = (sha256 <> '')),
    CHECK (superseded_by IS NULL OR state = 'DONE')
) STRICT;
CREATE UNIQUE INDEX program_run_current ON program_run (series_id, revision, stack, program, grid, identity)
    WHERE superseded_by IS NULL AND removed_at IS NULL;
CREATE UNIQUE INDEX program_run_slot ON program_run (slot) WHERE state = 'RUNNING';
CREATE INDEX program_run_delayed ON program_run (not_before_at) WHERE state = 'DELAYED';
CREATE INDEX program_run_open ON program_run (program, state) WHERE ended_at IS NULL;
CREATE INDEX program_run_ended ON program_run (program, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX program_run_series ON program_run (series_id);
CREATE INDEX program_run_superseded ON program_run (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX program_run_carrier ON program_run (carrier_job_id) WHERE carrier_job_id IS NOT NULL;

CREATE TABLE job_mask (
    job_id INTEGER NOT NULL REFERENCES job (id),
    program TEXT NOT NULL,
    run_id INTEGER NOT NULL REFERENCES program_run (id),
    PRIMARY KEY (job_id, program)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_mask_run ON job_mask (run_id);

CREATE TABLE validation (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    by TEXT NOT NULL,
    name TEXT NOT NULL,                        -- of the preset or pipeline
    digest TEXT NOT NULL CHECK (length(digest) = 64),
    version TEXT NOT NULL,
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    why TEXT NOT NULL,                         -- '': passed
    patients INTEGER NOT NULL,
    tolerance_mm REAL NOT NULL                 -- of surface_dice
) STRICT;
CREATE INDEX validation_digest ON validation (digest);

CREATE TABLE validation_case (
    validation_id INTEGER NOT NULL REFERENCES validation (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    other INTEGER NOT NULL CHECK (other IN (0, 1)),
    complete INTEGER NOT NULL CHECK (complete IN (0, 1)), -- each segment that needs trust has a reference
    patient TEXT NOT NULL,                     -- keyed hash of Patient ID
    series TEXT NOT NULL,                      -- keyed hash of Series Instance UID
    manufacturer TEXT NOT NULL,
    model TEXT NOT NULL,
    kernel TEXT NOT NULL,
    thickness TEXT NOT NULL,                   -- class of slice_mm
    slice_mm REAL NOT NULL,
    noise REAL,                                -- HU; NULL: not measured
    outcome TEXT NOT NULL,
    checks TEXT NOT NULL,                      -- the broken ones
    wrong INTEGER NOT NULL CHECK (wrong IN (0, 1)), -- DONE, though another region or below the lowest Dice
    PRIMARY KEY (validation_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE validation_region (
    validation_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    segment TEXT NOT NULL,
    reference TEXT NOT NULL,
    dice REAL,                                 -- NULL: both are empty
    surface_dice REAL,
    distance_95_mm REAL,                       -- NULL: one is empty
    volume_ratio REAL,
    bias_ml REAL NOT NULL,
    PRIMARY KEY (validation_id, number, segment, reference),
    FOREIGN KEY (validation_id, number) REFERENCES validation_case (validation_id, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE decision (
    job_id INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    accepts INTEGER NOT NULL CHECK (accepts IN (0, 1)),
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL CHECK (length(at) = 24),
    due_at TEXT NOT NULL CHECK (length(due_at) = 24)
) STRICT;
CREATE INDEX decision_due ON decision (due_at);

CREATE TABLE saved_filter (
    person TEXT NOT NULL CHECK (person <> ''),
    list TEXT NOT NULL,                   -- work, deliveries
    name TEXT NOT NULL CHECK (name <> ''),
    filter TEXT NOT NULL,                 -- the query of the address of the list
    saved_at TEXT NOT NULL CHECK (length(saved_at) = 24),
    PRIMARY KEY (person, list, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE upload (
    name TEXT PRIMARY KEY,                -- of the file in released/
    job_id INTEGER NOT NULL,
    person TEXT NOT NULL CHECK (person <> ''),
    sop_instance_uid TEXT NOT NULL,
    uploaded_at TEXT NOT NULL CHECK (length(uploaded_at) = 24)
) STRICT, WITHOUT ROWID;
CREATE INDEX upload_job ON upload (job_id);

CREATE TABLE "audit" (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL CHECK (length(at) = 24),
    action TEXT NOT NULL,                 -- service/common/decisions; 'looked': the person was shown the job
    subject TEXT NOT NULL,                -- job 3, file 2, destination PACS, the id of an alert, ...
    job_id INTEGER,                       -- NULL: the row is not on a job
    revision INTEGER,                     -- of the job's series at that time
    reason TEXT NOT NULL,
    actor TEXT NOT NULL CHECK (actor <> ''), -- of a sender: its AE title, or the path of the inbox
    how TEXT NOT NULL CHECK (how IN ('command', 'token', 'proxy', 'store', 'inbox', 'recovered')),
    role TEXT NOT NULL CHECK (role IN ('viewer', 'reviewer', 'operator', 'sender')),
    address TEXT NOT NULL,                -- of the browser's or proxy's connection; '': not known
    seen TEXT NOT NULL                    -- version of the result that the web UI had shown; '': not known
) STRICT;
CREATE INDEX audit_job ON audit (job_id) WHERE job_id IS NOT NULL;
CREATE UNIQUE INDEX audit_looked ON audit (actor, job_id, substr(at, 1, 13)) WHERE action = 'looked';
CREATE TRIGGER audit_stays BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are final');
END;
CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are final');
END;

CREATE TABLE pattern_term (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('pattern', 'pipeline')),
    name TEXT NOT NULL,
    settings TEXT NOT NULL,               -- of a pattern
    UNIQUE (kind, name, settings)
) STRICT;

CREATE TABLE pattern_block (
    last_id INTEGER NOT NULL,             -- of pattern_histogram; blocks follow each other without a gap
    term_id INTEGER NOT NULL,             -- of a pattern; 0: the regions of the block
    first_id INTEGER NOT NULL,
    stale INTEGER NOT NULL DEFAULT 0 CHECK (stale IN (0, 1)), -- rows were deleted: the daemon makes it again
    data BLOB NOT NULL,
    UNIQUE (last_id, term_id)
) STRICT;
CREATE INDEX pattern_block_stale ON pattern_block (last_id) WHERE stale;

CREATE TABLE pattern_change (
    number INTEGER NOT NULL
) STRICT;

CREATE TABLE "segment" (
    job_id INTEGER NOT NULL REFERENCES job (id),
    number INTEGER NOT NULL CHECK (number >= 1), -- Segment Number
    label TEXT NOT NULL,
    method TEXT NOT NULL,
    voxels INTEGER NOT NULL CHECK (voxels >= 0),
    volume_ml REAL CHECK (volume_ml >= 0.0), -- NULL: of a 2-D image
    mean REAL, -- of real-world values; NULL: no voxel
    minimum REAL,
    maximum REAL,
    unit TEXT NOT NULL, -- UCUM; '1': not known
    first_column INTEGER, -- of the box, in voxels of the volume, from 0; NULL: no voxel
    first_row INTEGER,
    first_slice INTEGER,
    last_column INTEGER, -- inclusive
    last_row INTEGER,
    last_slice INTEGER,
    x_mm REAL, -- of the centroid, in patient coordinates (LPS); NULL: not known
    y_mm REAL,
    z_mm REAL, tracking_uid TEXT NOT NULL DEFAULT '', prior_id INTEGER REFERENCES job (id) ON DELETE SET NULL,
    PRIMARY KEY (job_id, number),
    CHECK ((voxels = 0) = (first_column IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX segment_prior ON segment (prior_id) WHERE prior_id IS NOT NULL;

CREATE TABLE "delivery" (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES job (id),
    result_id INTEGER REFERENCES result (id) ON DELETE SET NULL, -- NULL: its job was retried
    destination TEXT NOT NULL CHECK (destination <> ''),
    kind TEXT NOT NULL, -- this and the next three repeat the result, whose row may go
    path TEXT NOT NULL,
    sop_class_uid TEXT NOT NULL,
    sop_instance_uid TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('PENDING', 'SENDING', 'SENT', 'DELAYED', 'FAILED', 'REVIEW', 'CANCELLED')),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    due_at TEXT NOT NULL, -- PENDING, DELAYED: not to be tried before
    -- Of the latest attempt; NULL when there was no response.
    dimse_status INTEGER CHECK (dimse_status BETWEEN 0 AND 65535),
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    commitment TEXT NOT NULL DEFAULT 'NONE'
        CHECK (commitment IN ('NONE', 'REQUESTED', 'COMMITTED', 'FAILED')),
    transaction_uid TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    since_at TEXT NOT NULL, -- created, or last resent or accepted
    started_at TEXT, -- the latest attempt
    sent_at TEXT, -- the latest success
    requested_at TEXT, -- the commitment
    committed_at TEXT,
    redirected INTEGER NOT NULL DEFAULT 0 CHECK (redirected IN (0, 1)),
    sent_sop_class_uid TEXT NOT NULL DEFAULT '',
    sent_transfer_syntax_uid TEXT NOT NULL DEFAULT '',
    sent_sop_instance_uid TEXT NOT NULL DEFAULT '',
    -- The first images of a series that the destination has; the digest is of their files and of the way to send them.
    confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed >= 0),
    confirmed_digest TEXT NOT NULL DEFAULT '',
    held_digest TEXT NOT NULL DEFAULT '', -- of the files that were held for review, likewise
    accepted INTEGER NOT NULL DEFAULT 0 CHECK (accepted IN (0, 1)), -- a person released these files
    reviewed_at TEXT,
    reviewed_by TEXT NOT NULL DEFAULT '',
    UNIQUE (result_id, destination),
    UNIQUE (job_id, path, sop_instance_uid, destination),
    CHECK (result_id IS NOT NULL OR state IN ('SENT', 'FAILED', 'CANCELLED')),
    CHECK (state <> 'SENDING' OR (started_at IS NOT NULL AND attempts >= 1)),
    CHECK (state <> 'SENT' OR sent_at IS NOT NULL),
    CHECK (state <> 'REVIEW' OR (code <> '' AND held_digest <> '' AND accepted = 0)),
    CHECK (accepted = 0 OR held_digest <> ''),
    CHECK ((reviewed_at IS NULL) = (reviewed_by = '')),
    CHECK ((commitment = 'NONE') = (requested_at IS NULL)),
    CHECK ((commitment = 'COMMITTED') = (committed_at IS NOT NULL)),
    CHECK (commitment NOT IN ('REQUESTED', 'COMMITTED') OR state = 'SENT')
) STRICT;
CREATE INDEX delivery_due ON delivery (destination, due_at, id) WHERE state IN ('PENDING', 'DELAYED');
CREATE INDEX delivery_destination ON delivery (destination, state, sent_at);
CREATE INDEX delivery_state ON delivery (state, sent_at);
CREATE INDEX delivery_transaction ON delivery (transaction_uid, sop_instance_uid) WHERE transaction_uid <> '';
CREATE INDEX delivery_requested ON delivery (destination, requested_at, id) WHERE commitment = 'REQUESTED';

CREATE TABLE "pull" (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch INTEGER NOT NULL, -- what was asked for together: the id of the first
    line INTEGER NOT NULL,  -- its place in the batch, from 0
    source TEXT NOT NULL CHECK (source <> ''),
    key TEXT NOT NULL CHECK (key IN ('accession', 'study', 'series', 'prior')),
    identifier TEXT NOT NULL, -- a UID (of key prior, of the series whose earlier study is wanted); an accession number as `identifiers` says
    state TEXT NOT NULL CHECK (state IN ('WAITING', 'FINDING', 'MOVING', 'DONE', 'NOT_FOUND',
        'PARTIAL', 'FAILED', 'CANCELLED')),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    due_at TEXT NOT NULL, -- WAITING: not to be tried before
    since_at TEXT, -- the first attempt
    started_at TEXT, -- the latest
    moved_at TEXT, -- when the latest C-MOVE was asked for
    ended_at TEXT,
    expected INTEGER CHECK (expected >= 0), -- instances that the archive has of it; NULL: not known
    arrived INTEGER NOT NULL DEFAULT 0 CHECK (arrived >= 0), -- of these, when it was last counted
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    asked_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    list_line INTEGER,
    UNIQUE (batch, line),
    CHECK ((state IN ('WAITING', 'FINDING', 'MOVING')) = (ended_at IS NULL))
) STRICT;
CREATE INDEX pull_due ON pull (source, due_at, id) WHERE state = 'WAITING';
CREATE INDEX pull_due_prior ON pull (source, due_at, id) WHERE state = 'WAITING' AND key = 'prior';
CREATE INDEX pull_open ON pull (id) WHERE ended_at IS NULL;
CREATE INDEX pull_ended ON pull (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX pull_moved ON pull (source, moved_at) WHERE moved_at IS NOT NULL;
CREATE INDEX pull_identifier ON pull (identifier);

CREATE TABLE identifier_key (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    fingerprint TEXT NOT NULL
) STRICT;

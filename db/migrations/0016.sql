-- 0016.sql - a job whose result breaks an expectation ends in REVIEW, until somebody accepts it
-- (DONE, EMPTY) or rejects it (REJECTED).

CREATE TABLE job_again (
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
    reviewed_by TEXT NOT NULL DEFAULT '',
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

INSERT INTO job_again SELECT id, series_id, revision, stack, pipeline, settings_id, state, priority,
    attempts, alone, created_at, ready_at, not_before_at, started_at, ended_at, worker, lane,
    read_seconds, compute_seconds, write_seconds, verify_seconds, total_seconds, voxels,
    segmented_voxels, peak_bytes, backend, note, code, message, file_a, file_b, superseded_by,
    removed_at, NULL, ''
FROM job;
DROP TABLE job;
ALTER TABLE job_again RENAME TO job;

CREATE INDEX job_state ON job (state, ended_at);
CREATE INDEX job_ready ON job (pipeline, priority DESC, id) WHERE state = 'READY';
CREATE INDEX job_delayed ON job (not_before_at) WHERE state = 'DELAYED';
CREATE INDEX job_ended ON job (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX job_superseded_by ON job (superseded_by) WHERE superseded_by IS NOT NULL;
-- A lane runs one job at a time.
CREATE UNIQUE INDEX job_lane ON job (worker, lane) WHERE state = 'RUNNING';
CREATE INDEX job_series ON job (series_id, revision, stack, pipeline);
CREATE UNIQUE INDEX job_unfinished ON job (series_id, revision, stack, pipeline)
    WHERE state IN ('READY', 'DELAYED', 'RUNNING');
CREATE INDEX job_stored ON job (ended_at, id) WHERE state = 'DONE' AND removed_at IS NULL;
-- What has ended is held no more.
CREATE TRIGGER job_end_releases AFTER UPDATE OF state ON job WHEN NEW.ended_at IS NOT NULL
BEGIN
    DELETE FROM hold WHERE kind = 'job' AND name = CAST(NEW.id AS TEXT);
END;

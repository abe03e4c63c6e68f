-- 0021.sql - the night: a pause, in which no job starts and deliveries go on; by when a result is wanted; and which
-- pipelines have a window, as the daemon has it.

DROP TRIGGER job_end_releases;
CREATE TABLE hold_21 (
    kind TEXT NOT NULL CHECK (kind IN ('queue', 'jobs', 'pipeline', 'destination', 'job')),
    name TEXT NOT NULL, -- '' of the queue and of jobs; of a job its number
    held_at TEXT NOT NULL,
    held_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (kind, name),
    CHECK ((kind IN ('queue', 'jobs')) = (name = ''))
) STRICT, WITHOUT ROWID;
INSERT INTO hold_21 SELECT kind, name, held_at, held_by, reason FROM hold;
DROP TABLE hold;
ALTER TABLE hold_21 RENAME TO hold;
-- What has ended is held no more.
CREATE TRIGGER job_end_releases AFTER UPDATE OF state ON job WHEN NEW.ended_at IS NOT NULL
BEGIN
    DELETE FROM hold WHERE kind = 'job' AND name = CAST(NEW.id AS TEXT);
END;

ALTER TABLE job ADD COLUMN done_by_at TEXT; -- NULL: whenever
CREATE INDEX job_done_by ON job (pipeline, done_by_at, id) WHERE state = 'READY' AND done_by_at IS NOT NULL;

CREATE TABLE pipeline_window (
    pipeline TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL,     -- as configured
    is_open INTEGER NOT NULL,
    opens_at TEXT,          -- the next time; NULL: it is open, or does not
    closes_at TEXT,         -- of what is open, or opens then; NULL: it does not
    open_share REAL NOT NULL -- of the next two weeks
) STRICT, WITHOUT ROWID;

-- 0011.sql - retention: what was removed, what is about to be, and how the disk fills.

-- When the files went; NULL: they are there. Of a job: those of its results.
ALTER TABLE series ADD COLUMN removed_at TEXT;
ALTER TABLE job ADD COLUMN removed_at TEXT;
ALTER TABLE quarantine ADD COLUMN removed_at TEXT;

-- Where an inbox that keeps its files has it: an absolute path; '' when not known, or nobody wants it deleted.
ALTER TABLE instance ADD COLUMN original_path TEXT NOT NULL DEFAULT '';
-- FAILED, and its fallback got a delivery of its own.
ALTER TABLE delivery ADD COLUMN redirected INTEGER NOT NULL DEFAULT 0 CHECK (redirected IN (0, 1));

CREATE INDEX series_stored ON series (settled_at, id) WHERE removed_at IS NULL AND settled_at IS NOT NULL;
CREATE INDEX series_removed ON series (removed_at, id) WHERE removed_at IS NOT NULL;
CREATE INDEX job_stored ON job (ended_at, id) WHERE state = 'DONE' AND removed_at IS NULL;
CREATE INDEX quarantine_stored ON quarantine (quarantined_at, id) WHERE removed_at IS NULL AND path <> '';
CREATE INDEX quarantine_series ON quarantine (series_uid);
CREATE INDEX event_own ON event (at) WHERE series_id IS NULL;

-- Files of rows that say they are removed, until they are. A path from / is an original in an inbox: it goes
-- only if it still has this size and was not written since. Numbers are never used again: they name what is
-- set aside.
CREATE TABLE removal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    size_bytes INTEGER, -- this and the next: of originals
    taken_at TEXT,
    CHECK ((path LIKE '/%') = (size_bytes IS NOT NULL AND taken_at IS NOT NULL))
) STRICT;

-- Free space of the root's disk, once an hour.
CREATE TABLE disk (
    at TEXT PRIMARY KEY,
    free_mib REAL NOT NULL CHECK (free_mib >= 0.0)
) STRICT, WITHOUT ROWID;

-- One row. Events before this may be deleted.
CREATE TABLE horizon (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    events_before TEXT NOT NULL
) STRICT;

INSERT INTO horizon VALUES (1, '');

DROP TRIGGER event_stays;
CREATE TRIGGER event_stays BEFORE DELETE ON event
WHEN OLD.at >= (SELECT events_before FROM horizon)
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

-- What a file was called may be taken back, by an operator who purges it.
DROP TRIGGER event_is_final;
CREATE TRIGGER event_is_final BEFORE UPDATE ON event
WHEN NEW.id IS NOT OLD.id OR NEW.at IS NOT OLD.at OR NEW.kind IS NOT OLD.kind
    OR NEW.series_id IS NOT OLD.series_id OR NEW.job_id IS NOT OLD.job_id
    OR NEW.delivery_id IS NOT OLD.delivery_id OR NEW.from_state IS NOT OLD.from_state
    OR NEW.to_state IS NOT OLD.to_state OR NEW.detail <> 'purged'
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

-- 0024.sql - what archives are asked for (noctule pull), and what they said that they have of it.

CREATE TABLE pull (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch INTEGER NOT NULL, -- what was asked for together: the id of the first
    line INTEGER NOT NULL,  -- its place in the batch, from 0
    source TEXT NOT NULL CHECK (source <> ''),
    key TEXT NOT NULL CHECK (key IN ('accession', 'study', 'series')),
    identifier TEXT NOT NULL, -- a UID; an accession number as `identifiers` says
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
    UNIQUE (batch, line),
    CHECK ((state IN ('WAITING', 'FINDING', 'MOVING')) = (ended_at IS NULL))
) STRICT;
CREATE INDEX pull_due ON pull (source, due_at, id) WHERE state = 'WAITING';
CREATE INDEX pull_open ON pull (id) WHERE ended_at IS NULL;
CREATE INDEX pull_ended ON pull (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX pull_moved ON pull (source, moved_at) WHERE moved_at IS NOT NULL;

-- The studies or series that it stands for, one C-MOVE each.
CREATE TABLE pull_part (
    pull_id INTEGER NOT NULL REFERENCES pull (id) ON DELETE CASCADE,
    study_uid TEXT NOT NULL CHECK (study_uid <> ''),
    series_uid TEXT NOT NULL, -- '': the whole study
    expected INTEGER CHECK (expected >= 0), -- as above
    PRIMARY KEY (pull_id, study_uid, series_uid)
) STRICT, WITHOUT ROWID;

CREATE INDEX object_study ON object (study_uid);

-- Earlier studies that an archive is asked for by a job (`changes = "pull"`). SQLite cannot change a check: the table of
-- items is copied, and its next number stays.

CREATE TABLE pull_again (
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

INSERT INTO pull_again SELECT id, batch, line, source, key, identifier, state, attempts, due_at, since_at, started_at,
    moved_at, ended_at, expected, arrived, code, message, asked_by, created_at, list_line
FROM pull;
DELETE FROM sqlite_sequence WHERE name = 'pull_again';
INSERT INTO sqlite_sequence (name, seq) SELECT 'pull_again', seq FROM sqlite_sequence WHERE name = 'pull';
DROP TABLE pull;
ALTER TABLE pull_again RENAME TO pull;

CREATE INDEX pull_due ON pull (source, due_at, id) WHERE state = 'WAITING';
CREATE INDEX pull_due_prior ON pull (source, due_at, id) WHERE state = 'WAITING' AND key = 'prior';
CREATE INDEX pull_open ON pull (id) WHERE ended_at IS NULL;
CREATE INDEX pull_ended ON pull (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX pull_moved ON pull (source, moved_at) WHERE moved_at IS NOT NULL;
CREATE INDEX pull_identifier ON pull (identifier);
CREATE INDEX pull_part_study ON pull_part (study_uid);

ALTER TABLE job ADD COLUMN prior_item INTEGER REFERENCES pull (id) ON DELETE SET NULL; -- NULL: no archive is asked
ALTER TABLE job ADD COLUMN prior_until_at TEXT; -- the end of its wait for the earlier study; NULL: it has not waited
CREATE INDEX job_prior_item ON job (prior_item) WHERE prior_item IS NOT NULL;
CREATE INDEX job_waits_prior ON job (id) WHERE state = 'DELAYED' AND code = 'PRIOR_WAITING';

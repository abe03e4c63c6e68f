-- 0034.sql - pulled items: their line in the site's list, and instances that came and were not kept; rejected callers.

ALTER TABLE pull ADD COLUMN list_line INTEGER; -- from 1; or the place among the arguments; NULL: not known
CREATE INDEX pull_identifier ON pull (identifier);

-- Instances that a source sent for a C-MOVE and that are not kept: their class is not processed, or they are results of ours.
CREATE TABLE pull_unwanted (
    sop_instance_uid TEXT NOT NULL PRIMARY KEY,
    sop_class_uid TEXT NOT NULL,
    series_uid TEXT NOT NULL,
    study_uid TEXT NOT NULL,
    pull_id INTEGER NOT NULL REFERENCES pull (id) ON DELETE CASCADE -- removed with that item
) STRICT, WITHOUT ROWID;
CREATE INDEX pull_unwanted_study ON pull_unwanted (study_uid);
CREATE INDEX pull_unwanted_pull ON pull_unwanted (pull_id);

-- Callers whose associations were rejected. Their AE titles are unverified.
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

-- 0032.sql - the configuration in force, the last that was refused, and the rule that made a job.

CREATE TABLE configuration (
    state TEXT PRIMARY KEY CHECK (state IN ('LOADED', 'REFUSED')),
    at TEXT NOT NULL, -- of the last time
    since_at TEXT NOT NULL, -- of the first refusal since a configuration was loaded
    cause TEXT NOT NULL CHECK (cause IN ('start', 'command', 'signal')),
    asked_by TEXT NOT NULL, -- '': not known
    files TEXT NOT NULL, -- one per line, the main file first
    reason TEXT NOT NULL -- of a refusal, else ''
) STRICT;

ALTER TABLE job ADD COLUMN rule TEXT NOT NULL DEFAULT ''; -- that made it; '': none did, or not known

-- 0035.sql - notification of single events by commands of the site.

-- A row per row of `notify` in the configuration in force.
CREATE TABLE notification (
    name TEXT PRIMARY KEY,
    event_id INTEGER NOT NULL,       -- the last event that the command has received
    ended_at TEXT,                   -- of the last run; NULL: none yet
    failures INTEGER NOT NULL CHECK (failures >= 0), -- since the last success
    failing_since_at TEXT,           -- NULL: the last run succeeded
    message TEXT NOT NULL,           -- of the last failure, else ''
    CHECK ((failures > 0) = (failing_since_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- Alerts that have begun and not ended, while `notify` has a row for them.
CREATE TABLE alert_raised (
    alert TEXT PRIMARY KEY,          -- its id: KIND or KIND:SUBJECT
    severity INTEGER NOT NULL,
    raised_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- 0029.sql - acknowledgements of alerts, and free space as of now.

-- An acknowledgement covers an alert until it becomes worse or occurs anew.
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

-- Free space of the root's disk at the last measurement; one row. `disk` keeps one per hour.
CREATE TABLE disk_now (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    at TEXT NOT NULL,
    free_mib REAL NOT NULL
) STRICT;

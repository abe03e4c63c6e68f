-- 0022.sql - what each night came to, which stays when its jobs have gone; and what settled in a time is found.

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

CREATE INDEX series_settled ON series (settled_at) WHERE settled_at IS NOT NULL;

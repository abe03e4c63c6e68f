-- 0013.sql - what an operator holds back, until it is released.

CREATE TABLE hold (
    kind TEXT NOT NULL CHECK (kind IN ('queue', 'pipeline', 'destination', 'job')),
    name TEXT NOT NULL, -- '' of the queue; of a job its number
    held_at TEXT NOT NULL,
    held_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (kind, name),
    CHECK ((kind = 'queue') = (name = ''))
) STRICT, WITHOUT ROWID;

-- Nothing is left to be held.
CREATE TRIGGER job_end_releases AFTER UPDATE OF state ON job WHEN NEW.ended_at IS NOT NULL
BEGIN
    DELETE FROM hold WHERE kind = 'job' AND name = CAST(NEW.id AS TEXT);
END;

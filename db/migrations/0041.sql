-- Decisions of persons: an audit of them, and those on results that can still be undone.

-- One row per decision. Rows are never changed or removed, not even with their job: no reference to it.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL CHECK (length(at) = 24),
    action TEXT NOT NULL,                 -- service/common/decisions.def
    subject TEXT NOT NULL,                -- job 3, file 2, destination PACS, the id of an alert, ...
    job_id INTEGER,                       -- NULL: the decision is not on a job
    revision INTEGER,                     -- of the job's series, when it was decided
    reason TEXT NOT NULL,
    actor TEXT NOT NULL CHECK (actor <> ''),
    how TEXT NOT NULL CHECK (how IN ('command', 'token', 'proxy')),
    role TEXT NOT NULL CHECK (role IN ('reviewer', 'operator')),
    address TEXT NOT NULL,                -- of the browser's or proxy's connection; '': of the command line
    seen TEXT NOT NULL                    -- version of the result that the web UI had shown; '': not known
) STRICT;

CREATE INDEX audit_job ON audit (job_id) WHERE job_id IS NOT NULL;
CREATE TRIGGER audit_stays BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are final');
END;
CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are final');
END;

-- The decision on a result under review, which takes effect at due_at unless it is undone.
CREATE TABLE decision (
    job_id INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    accepts INTEGER NOT NULL CHECK (accepts IN (0, 1)),
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL CHECK (length(at) = 24),
    due_at TEXT NOT NULL CHECK (length(due_at) = 24)
) STRICT;

CREATE INDEX decision_due ON decision (due_at);
CREATE TRIGGER review_end_decides AFTER UPDATE OF state ON job WHEN OLD.state = 'REVIEW' AND NEW.state <> 'REVIEW'
BEGIN
    DELETE FROM decision WHERE job_id = NEW.id;
END;

-- The audit also has a row per job that a viewer opened.

CREATE TABLE audit_of_all (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL CHECK (length(at) = 24),
    action TEXT NOT NULL,                 -- service/common/decisions; 'looked': the person was shown the job
    subject TEXT NOT NULL,                -- job 3, file 2, destination PACS, the id of an alert, ...
    job_id INTEGER,                       -- NULL: the row is not on a job
    revision INTEGER,                     -- of the job's series at that time
    reason TEXT NOT NULL,
    actor TEXT NOT NULL CHECK (actor <> ''),
    how TEXT NOT NULL CHECK (how IN ('command', 'token', 'proxy')),
    role TEXT NOT NULL CHECK (role IN ('viewer', 'reviewer', 'operator')),
    address TEXT NOT NULL,                -- of the browser's or proxy's connection; '': of the command line
    seen TEXT NOT NULL                    -- version of the result that the web UI had shown; '': not known
) STRICT;

INSERT INTO audit_of_all SELECT * FROM audit;
DROP TABLE audit;
ALTER TABLE audit_of_all RENAME TO audit;

CREATE INDEX audit_job ON audit (job_id) WHERE job_id IS NOT NULL;
-- One row per person, job and hour.
CREATE UNIQUE INDEX audit_looked ON audit (actor, job_id, substr(at, 1, 13)) WHERE action = 'looked';
CREATE TRIGGER audit_stays BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are final');
END;
CREATE TRIGGER audit_is_final BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit rows are final');
END;

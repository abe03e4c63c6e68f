-- Corrected masks: files that persons upload for a job, and who sent those that come otherwise.

-- The file waits in released/ until the receiver has stored it; then the row goes. The audit has who uploaded it.
CREATE TABLE upload (
    name TEXT PRIMARY KEY,                -- of the file in released/
    job_id INTEGER NOT NULL,
    person TEXT NOT NULL CHECK (person <> ''),
    sop_instance_uid TEXT NOT NULL,
    uploaded_at TEXT NOT NULL CHECK (length(uploaded_at) = 24)
) STRICT, WITHOUT ROWID;

CREATE INDEX upload_job ON upload (job_id);

CREATE TABLE audit_of_senders (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL CHECK (length(at) = 24),
    action TEXT NOT NULL,                 -- service/common/decisions; 'looked': the person was shown the job
    subject TEXT NOT NULL,                -- job 3, file 2, destination PACS, the id of an alert, ...
    job_id INTEGER,                       -- NULL: the row is not on a job
    revision INTEGER,                     -- of the job's series at that time
    reason TEXT NOT NULL,
    actor TEXT NOT NULL CHECK (actor <> ''), -- of a sender: its AE title, or the path of the inbox
    how TEXT NOT NULL CHECK (how IN ('command', 'token', 'proxy', 'store', 'inbox', 'recovered')),
    role TEXT NOT NULL CHECK (role IN ('viewer', 'reviewer', 'operator', 'sender')),
    address TEXT NOT NULL,                -- of the browser's or proxy's connection; '': not known
    seen TEXT NOT NULL                    -- version of the result that the web UI had shown; '': not known
) STRICT;

INSERT INTO audit_of_senders SELECT * FROM audit;
DROP TABLE audit;
ALTER TABLE audit_of_senders RENAME TO audit;

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

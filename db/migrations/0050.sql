-- Deliveries under review (text may be burned into the images of a de-identified copy), and the images of a series that
-- the destination has confirmed. SQLite cannot change a check: the table is copied.

CREATE TABLE delivery_again (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES job (id),
    result_id INTEGER REFERENCES result (id) ON DELETE SET NULL, -- NULL: its job was retried
    destination TEXT NOT NULL CHECK (destination <> ''),
    kind TEXT NOT NULL, -- this and the next three repeat the result, whose row may go
    path TEXT NOT NULL,
    sop_class_uid TEXT NOT NULL,
    sop_instance_uid TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('PENDING', 'SENDING', 'SENT', 'DELAYED', 'FAILED', 'REVIEW', 'CANCELLED')),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    due_at TEXT NOT NULL, -- PENDING, DELAYED: not to be tried before
    -- Of the latest attempt; NULL when there was no response.
    dimse_status INTEGER CHECK (dimse_status BETWEEN 0 AND 65535),
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    commitment TEXT NOT NULL DEFAULT 'NONE'
        CHECK (commitment IN ('NONE', 'REQUESTED', 'COMMITTED', 'FAILED')),
    transaction_uid TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    since_at TEXT NOT NULL, -- created, or last resent or accepted
    started_at TEXT, -- the latest attempt
    sent_at TEXT, -- the latest success
    requested_at TEXT, -- the commitment
    committed_at TEXT,
    redirected INTEGER NOT NULL DEFAULT 0 CHECK (redirected IN (0, 1)),
    sent_sop_class_uid TEXT NOT NULL DEFAULT '',
    sent_transfer_syntax_uid TEXT NOT NULL DEFAULT '',
    sent_sop_instance_uid TEXT NOT NULL DEFAULT '',
    -- The first images of a series that the destination has; the digest is of their files and of the way to send them.
    confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed >= 0),
    confirmed_digest TEXT NOT NULL DEFAULT '',
    held_digest TEXT NOT NULL DEFAULT '', -- of the files that were held for review, likewise
    accepted INTEGER NOT NULL DEFAULT 0 CHECK (accepted IN (0, 1)), -- a person released these files
    reviewed_at TEXT,
    reviewed_by TEXT NOT NULL DEFAULT '',
    UNIQUE (result_id, destination),
    UNIQUE (job_id, path, sop_instance_uid, destination),
    CHECK (result_id IS NOT NULL OR state IN ('SENT', 'FAILED', 'CANCELLED')),
    CHECK (state <> 'SENDING' OR (started_at IS NOT NULL AND attempts >= 1)),
    CHECK (state <> 'SENT' OR sent_at IS NOT NULL),
    CHECK (state <> 'REVIEW' OR (code <> '' AND held_digest <> '' AND accepted = 0)),
    CHECK (accepted = 0 OR held_digest <> ''),
    CHECK ((reviewed_at IS NULL) = (reviewed_by = '')),
    CHECK ((commitment = 'NONE') = (requested_at IS NULL)),
    CHECK ((commitment = 'COMMITTED') = (committed_at IS NOT NULL)),
    CHECK (commitment NOT IN ('REQUESTED', 'COMMITTED') OR state = 'SENT')
) STRICT;

INSERT INTO delivery_again SELECT id, job_id, result_id, destination, kind, path, sop_class_uid, sop_instance_uid, state,
    attempts, due_at, dimse_status, code, message, commitment, transaction_uid, created_at, since_at, started_at, sent_at,
    requested_at, committed_at, redirected, sent_sop_class_uid, sent_transfer_syntax_uid, sent_sop_instance_uid,
    0, '', '', 0, NULL, ''
FROM delivery;
DROP TABLE delivery;
ALTER TABLE delivery_again RENAME TO delivery;

CREATE INDEX delivery_due ON delivery (destination, due_at, id) WHERE state IN ('PENDING', 'DELAYED');
CREATE INDEX delivery_destination ON delivery (destination, state, sent_at);
CREATE INDEX delivery_state ON delivery (state, sent_at);
CREATE INDEX delivery_transaction ON delivery (transaction_uid, sop_instance_uid) WHERE transaction_uid <> '';
CREATE INDEX delivery_requested ON delivery (destination, requested_at, id) WHERE commitment = 'REQUESTED';

-- Segments of an annotation object that names its findings: the Tracking UID, and the job whose segment has the same one.
ALTER TABLE segment ADD COLUMN tracking_uid TEXT NOT NULL DEFAULT ''; -- '': the segment has none
ALTER TABLE segment ADD COLUMN prior_id INTEGER REFERENCES job (id) ON DELETE SET NULL; -- NULL: that of the job
CREATE INDEX segment_prior ON segment (prior_id) WHERE prior_id IS NOT NULL;

-- 0002.sql - the outbox: deliveries; who sent a series, and to which title.
-- Of its first C-STORE.
ALTER TABLE series ADD COLUMN called_ae TEXT NOT NULL DEFAULT '';
ALTER TABLE series ADD COLUMN sender TEXT NOT NULL DEFAULT '';

CREATE TABLE delivery (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES job (id),
    result_id INTEGER REFERENCES result (id) ON DELETE SET NULL, -- NULL: its job was retried
    destination TEXT NOT NULL CHECK (destination <> ''),
    kind TEXT NOT NULL, -- this and the next three repeat the result, whose row may go
    path TEXT NOT NULL,
    sop_class_uid TEXT NOT NULL,
    sop_instance_uid TEXT NOT NULL,
    state TEXT NOT NULL
        CHECK (state IN ('PENDING', 'SENDING', 'SENT', 'DELAYED', 'FAILED', 'CANCELLED')),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    due_at TEXT NOT NULL, -- PENDING, DELAYED: not to be tried before
    -- Of the latest attempt; NULL when there was no response.
    dimse_status INTEGER CHECK (dimse_status BETWEEN 0 AND 65535),
    code TEXT NOT NULL DEFAULT '',
    sentence TEXT NOT NULL DEFAULT '',
    commitment TEXT NOT NULL DEFAULT 'NONE'
        CHECK (commitment IN ('NONE', 'REQUESTED', 'COMMITTED', 'FAILED')),
    transaction_uid TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    since_at TEXT NOT NULL, -- created, or last resent
    started_at TEXT, -- the latest attempt
    sent_at TEXT, -- the latest success
    requested_at TEXT, -- the commitment
    committed_at TEXT,
    UNIQUE (result_id, destination),
    UNIQUE (job_id, path, sop_instance_uid, destination),
    CHECK (result_id IS NOT NULL OR state IN ('SENT', 'FAILED', 'CANCELLED')),
    CHECK (state <> 'SENDING' OR (started_at IS NOT NULL AND attempts >= 1)),
    CHECK (state <> 'SENT' OR sent_at IS NOT NULL),
    CHECK ((commitment = 'NONE') = (requested_at IS NULL)),
    CHECK ((commitment = 'COMMITTED') = (committed_at IS NOT NULL)),
    CHECK (commitment NOT IN ('REQUESTED', 'COMMITTED') OR state = 'SENT')
) STRICT;

CREATE INDEX delivery_due ON delivery (destination, due_at, id)
    WHERE state IN ('PENDING', 'DELAYED');
CREATE INDEX delivery_destination ON delivery (destination, state, sent_at);
CREATE INDEX delivery_state ON delivery (state, sent_at);
CREATE INDEX delivery_transaction ON delivery (transaction_uid, sop_instance_uid)
    WHERE transaction_uid <> '';
CREATE INDEX delivery_requested ON delivery (destination, requested_at, id)
    WHERE commitment = 'REQUESTED';

ALTER TABLE event ADD COLUMN delivery_id INTEGER REFERENCES delivery (id);

CREATE INDEX event_delivery ON event (delivery_id) WHERE delivery_id IS NOT NULL;
-- Few rows: which destinations are down (v_destinations).
CREATE INDEX event_destination ON event (id)
    WHERE kind IN ('START', 'DESTINATION_DOWN', 'DESTINATION_UP');

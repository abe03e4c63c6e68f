-- What people drew on images (RT Structure Sets, segmentations, reports), which is input of jobs on the series that it is of.

ALTER TABLE series ADD COLUMN frame_of_reference TEXT NOT NULL DEFAULT ''; -- of its first instance

CREATE TABLE object (
    id INTEGER PRIMARY KEY,
    series_uid TEXT NOT NULL, -- its own
    sop_instance_uid TEXT NOT NULL,
    sop_class_uid TEXT NOT NULL,
    transfer_syntax_uid TEXT NOT NULL,
    study_uid TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('rtstruct', 'seg', 'sr')),
    label TEXT NOT NULL,
    description TEXT NOT NULL,
    made TEXT NOT NULL, -- digits of the date and time that it tells; ''
    path TEXT NOT NULL UNIQUE, -- relative to the root
    source TEXT NOT NULL,
    original_path TEXT NOT NULL,
    sender TEXT NOT NULL, -- AE title
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    replaced INTEGER NOT NULL CHECK (replaced >= 0),
    own INTEGER NOT NULL CHECK (own IN (0, 1)), -- a result of ours, which is no input
    missing INTEGER NOT NULL DEFAULT 0 CHECK (missing IN (0, 1)), -- the file is gone
    received_at TEXT NOT NULL,
    superseded_by INTEGER REFERENCES object (id) ON DELETE SET NULL,
    removed_at TEXT,
    UNIQUE (series_uid, sop_instance_uid)
) STRICT;
CREATE INDEX object_instance ON object (sop_instance_uid);
CREATE INDEX object_superseded_by ON object (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX object_stored ON object (received_at, id) WHERE removed_at IS NULL;
CREATE INDEX object_removed ON object (removed_at, id) WHERE removed_at IS NOT NULL;

-- By the strongest that it tells: series, else instances, else frames of reference; and what it takes the place of.
CREATE TABLE object_reference (
    kind TEXT NOT NULL CHECK (kind IN ('series', 'instance', 'frame', 'predecessor')),
    uid TEXT NOT NULL,
    object_id INTEGER NOT NULL REFERENCES object (id) ON DELETE CASCADE,
    PRIMARY KEY (kind, uid, object_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX object_reference_object ON object_reference (object_id);

CREATE INDEX instance_sop ON instance (sop_instance_uid);
CREATE INDEX series_frame ON series (frame_of_reference) WHERE frame_of_reference <> '';
CREATE INDEX result_sop ON result (sop_instance_uid) WHERE sop_instance_uid <> '';
CREATE INDEX result_series ON result (series_uid) WHERE series_uid <> '';

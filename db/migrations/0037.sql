-- 0037.sql - validations of pipelines on patients of the site (noctule validate).

-- `digest` covers the options that decide masks and checks, and the version of Noctule (service/common/trust.h). Of several
-- validations with one digest, the last counts.
CREATE TABLE validation (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    by TEXT NOT NULL,
    name TEXT NOT NULL,                        -- of the preset or pipeline
    digest TEXT NOT NULL CHECK (length(digest) = 64),
    version TEXT NOT NULL,
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    why TEXT NOT NULL,                         -- '': passed
    patients INTEGER NOT NULL,
    tolerance_mm REAL NOT NULL                 -- of surface_dice
) STRICT;

CREATE INDEX validation_digest ON validation (digest);

-- A series of a validation: with a reference, or of another region, which must not be DONE.
CREATE TABLE validation_case (
    validation_id INTEGER NOT NULL REFERENCES validation (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    other INTEGER NOT NULL CHECK (other IN (0, 1)),
    complete INTEGER NOT NULL CHECK (complete IN (0, 1)), -- each segment that needs trust has a reference
    patient TEXT NOT NULL,                     -- keyed hash of Patient ID
    series TEXT NOT NULL,                      -- keyed hash of Series Instance UID
    manufacturer TEXT NOT NULL,
    model TEXT NOT NULL,
    kernel TEXT NOT NULL,
    thickness TEXT NOT NULL,                   -- class of slice_mm
    slice_mm REAL NOT NULL,
    noise REAL,                                -- HU; NULL: not measured
    outcome TEXT NOT NULL,
    checks TEXT NOT NULL,                      -- the broken ones
    wrong INTEGER NOT NULL CHECK (wrong IN (0, 1)), -- DONE, though another region or below the lowest Dice
    PRIMARY KEY (validation_id, number)
) STRICT, WITHOUT ROWID;

-- A region of a case, compared with its reference.
CREATE TABLE validation_region (
    validation_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    segment TEXT NOT NULL,
    reference TEXT NOT NULL,
    dice REAL,                                 -- NULL: both are empty
    surface_dice REAL,
    distance_95_mm REAL,                       -- NULL: one is empty
    volume_ratio REAL,
    bias_ml REAL NOT NULL,
    PRIMARY KEY (validation_id, number, segment, reference),
    FOREIGN KEY (validation_id, number) REFERENCES validation_case (validation_id, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

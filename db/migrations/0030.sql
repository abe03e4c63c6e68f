-- 0030.sql - the segments of a job, its broken expectations, and the voxels and orientation of stacks.

-- One row per segment, without a group `texture` too; hidden segments have none.
CREATE TABLE segment (
    job_id INTEGER NOT NULL REFERENCES job (id),
    number INTEGER NOT NULL CHECK (number >= 1), -- Segment Number
    label TEXT NOT NULL,
    method TEXT NOT NULL,
    voxels INTEGER NOT NULL CHECK (voxels >= 0),
    volume_ml REAL NOT NULL CHECK (volume_ml >= 0.0),
    mean REAL, -- of real-world values; NULL: no voxel
    minimum REAL,
    maximum REAL,
    unit TEXT NOT NULL, -- UCUM; '1': not known
    first_column INTEGER, -- of the box, in voxels of the volume, from 0; NULL: no voxel
    first_row INTEGER,
    first_slice INTEGER,
    last_column INTEGER, -- inclusive
    last_row INTEGER,
    last_slice INTEGER,
    x_mm REAL, -- of the centroid, in patient coordinates (LPS); NULL: not known
    y_mm REAL,
    z_mm REAL,
    PRIMARY KEY (job_id, number),
    CHECK ((voxels = 0) = (first_column IS NULL))
) STRICT, WITHOUT ROWID;

CREATE TABLE breach (
    job_id INTEGER NOT NULL REFERENCES job (id),
    place INTEGER NOT NULL CHECK (place >= 1), -- in the order of the pipeline
    segment_number INTEGER NOT NULL CHECK (segment_number >= 0), -- 0: hidden
    label TEXT NOT NULL, -- of the segment
    expectation TEXT NOT NULL, -- the option of `expect`
    found REAL, -- NULL: not a number
    low REAL,
    high REAL,
    text TEXT NOT NULL,
    PRIMARY KEY (job_id, place)
) STRICT, WITHOUT ROWID;

ALTER TABLE stack ADD COLUMN column_mm REAL; -- between columns; NULL: not known
ALTER TABLE stack ADD COLUMN row_mm REAL; -- between rows
ALTER TABLE stack ADD COLUMN orientation TEXT NOT NULL DEFAULT ''; -- axial, coronal, sagittal, oblique; '': not known
ALTER TABLE stack ADD COLUMN cosines TEXT NOT NULL DEFAULT ''; -- as Image Orientation (Patient)

-- 0049.sql - 2-D images: the values and the spacing of their pixels. Their segments have no volume.

ALTER TABLE job ADD COLUMN pixel_values TEXT; -- of a 2-D image: 'luma of RGB', 'rescale', ...; '': a volume; NULL: not known
ALTER TABLE job ADD COLUMN pixel_intensity TEXT; -- Pixel Intensity Relationship and its sign: 'LOG -1'; likewise
ALTER TABLE job ADD COLUMN spacing_source TEXT; -- attribute of its spacing (spacing.def); likewise

CREATE TABLE segment_of_any (
    job_id INTEGER NOT NULL REFERENCES job (id),
    number INTEGER NOT NULL CHECK (number >= 1), -- Segment Number
    label TEXT NOT NULL,
    method TEXT NOT NULL,
    voxels INTEGER NOT NULL CHECK (voxels >= 0),
    volume_ml REAL CHECK (volume_ml >= 0.0), -- NULL: of a 2-D image
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

INSERT INTO segment_of_any SELECT * FROM segment;
DROP TABLE segment;
ALTER TABLE segment_of_any RENAME TO segment;

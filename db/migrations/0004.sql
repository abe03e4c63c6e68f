-- 0004.sql - features: what the pipelines measure.

-- What was measured, and how: all settings that define a number, once for all jobs of a pipeline.
-- What does not apply is '' or 0, never NULL, for the sake of the UNIQUE.
CREATE TABLE feature_definition (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CHECK (name <> ''),
    label TEXT NOT NULL, -- of the segment; '' for the whole volume
    family TEXT NOT NULL,
    meaning TEXT NOT NULL,
    ibsi_code TEXT NOT NULL,
    unit TEXT NOT NULL, -- UCUM
    aggregation TEXT NOT NULL,
    aggregation_ibsi_code TEXT NOT NULL,
    discretisation TEXT NOT NULL,
    levels INTEGER NOT NULL CHECK (levels >= 0),
    bin_width REAL NOT NULL CHECK (bin_width >= 0.0),
    distance INTEGER NOT NULL CHECK (distance >= 0),
    symmetric INTEGER NOT NULL CHECK (symmetric IN (0, 1)),
    has_range INTEGER NOT NULL CHECK (has_range IN (0, 1)),
    range_low REAL NOT NULL,
    range_high REAL NOT NULL,
    directions TEXT NOT NULL,
    UNIQUE (name, label, family, meaning, ibsi_code, unit, aggregation, aggregation_ibsi_code,
        discretisation, levels, bin_width, distance, symmetric, has_range, range_low, range_high,
        directions),
    CHECK (range_low <= range_high)
) STRICT;

-- Narrow: there may be thousands of these for each job.
CREATE TABLE feature (
    job_id INTEGER NOT NULL REFERENCES job (id),
    segment_number INTEGER NOT NULL CHECK (segment_number >= 0), -- 0: the whole volume
    definition_id INTEGER NOT NULL REFERENCES feature_definition (id),
    place INTEGER NOT NULL CHECK (place >= 1), -- in what the job tells, as in its features.json
    value REAL CHECK (abs(value) < 9e999), -- never infinite
    reason TEXT NOT NULL, -- why there is no value
    PRIMARY KEY (job_id, segment_number, definition_id),
    CHECK ((value IS NULL) = (reason <> ''))
) STRICT, WITHOUT ROWID;

CREATE TABLE pattern_histogram (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES job (id),
    segment_number INTEGER NOT NULL CHECK (segment_number >= 0), -- 0: the whole volume
    label TEXT NOT NULL, -- of the segment; '' for the whole volume
    pattern TEXT NOT NULL CHECK (pattern <> ''),
    settings TEXT NOT NULL,
    -- [0,17,...]: 256 of them. In a schema that is not trusted JSON functions do not run.
    counts TEXT NOT NULL CHECK (counts GLOB '[[][0-9]*[0-9]]'
        AND substr(counts, 2, length(counts) - 2) NOT GLOB '*[^0-9,]*'
        AND counts NOT GLOB '*,,*' AND length(counts) - length(replace(counts, ',', '')) = 255),
    UNIQUE (job_id, segment_number, pattern, settings)
) STRICT;

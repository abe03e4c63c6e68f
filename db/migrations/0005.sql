-- 0005.sql - settings of features as key and value, so that a new one needs no column.

ALTER TABLE feature RENAME TO feature_4;
ALTER TABLE feature_definition RENAME TO feature_definition_4;

-- What was measured, and how: all that defines a number, once for all jobs of a pipeline. What does
-- not apply is '', never NULL, for the sake of the UNIQUE. settings: those of feature_setting as
-- text, key=value in the order of the keys, with ; between them.
CREATE TABLE feature_definition (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL CHECK (name <> ''),
    label TEXT NOT NULL,
    family TEXT NOT NULL,
    meaning TEXT NOT NULL,
    ibsi_code TEXT NOT NULL,
    unit TEXT NOT NULL,
    settings TEXT NOT NULL,
    UNIQUE (name, label, family, meaning, ibsi_code, unit, settings)
) STRICT;

-- value: text, an integer (true is 1), or a number.
CREATE TABLE feature_setting (
    definition_id INTEGER NOT NULL REFERENCES feature_definition (id),
    key TEXT NOT NULL CHECK (key <> ''),
    value ANY NOT NULL,
    PRIMARY KEY (definition_id, key)
) STRICT, WITHOUT ROWID;

-- Narrow: there may be thousands of these for each job.
CREATE TABLE feature (
    job_id INTEGER NOT NULL REFERENCES job (id),
    segment_number INTEGER NOT NULL CHECK (segment_number >= 0),
    definition_id INTEGER NOT NULL REFERENCES feature_definition (id),
    place INTEGER NOT NULL CHECK (place >= 1),
    value REAL CHECK (abs(value) < 9e999),
    reason TEXT NOT NULL,
    PRIMARY KEY (job_id, segment_number, definition_id),
    CHECK ((value IS NULL) = (reason <> ''))
) STRICT, WITHOUT ROWID;

INSERT INTO feature_definition
SELECT id, name, label, family, meaning, ibsi_code, unit, CAST(id AS TEXT)
FROM feature_definition_4;

INSERT INTO feature_setting
SELECT id, 'aggregation', aggregation FROM feature_definition_4 WHERE aggregation <> ''
UNION ALL SELECT id, 'aggregation_ibsi_code', aggregation_ibsi_code FROM feature_definition_4
    WHERE aggregation_ibsi_code <> ''
UNION ALL SELECT id, 'bin_width', bin_width FROM feature_definition_4 WHERE bin_width > 0.0
UNION ALL SELECT id, 'directions', directions FROM feature_definition_4 WHERE directions <> ''
UNION ALL SELECT id, 'discretisation',
        CASE discretisation WHEN 'paper' THEN 'stored-256' ELSE discretisation END
    FROM feature_definition_4 WHERE discretisation <> ''
UNION ALL SELECT id, 'distance', distance FROM feature_definition_4 WHERE distance > 0
UNION ALL SELECT id, 'levels', levels FROM feature_definition_4 WHERE levels > 0
UNION ALL SELECT id, 'range_high', range_high FROM feature_definition_4 WHERE has_range
UNION ALL SELECT id, 'range_low', range_low FROM feature_definition_4 WHERE has_range
UNION ALL SELECT id, 'symmetric', symmetric FROM feature_definition_4 WHERE aggregation <> '';

-- Numbers have as few digits as read back as the same.
UPDATE feature_definition SET settings = coalesce((
    SELECT group_concat(key || '=' || CASE
        WHEN key = 'symmetric' THEN iif(value, 'true', 'false')
        WHEN typeof(value) <> 'real' THEN value
        WHEN CAST(printf('%.15g', value) AS REAL) = value THEN printf('%.15g', value)
        WHEN CAST(printf('%.16g', value) AS REAL) = value THEN printf('%.16g', value)
        ELSE printf('%!.17g', value) END, ';')
    FROM (SELECT key, value FROM feature_setting s
        WHERE s.definition_id = feature_definition.id ORDER BY key)), '');

INSERT INTO feature
SELECT job_id, segment_number, definition_id, place, value, reason FROM feature_4;

DROP TABLE feature_4;
DROP TABLE feature_definition_4;

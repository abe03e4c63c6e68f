-- 0012.sql - the options of the pipelines that a stack is of.

-- "derived", "duplicates"; '' for the pipelines with neither.
ALTER TABLE stack ADD COLUMN options TEXT NOT NULL DEFAULT '';

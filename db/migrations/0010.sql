-- 0010.sql - instances that came again with another data set.

-- How often it was replaced: of two files of an instance the row has the one of the higher number.
ALTER TABLE instance ADD COLUMN replaced INTEGER NOT NULL DEFAULT 0 CHECK (replaced >= 0);

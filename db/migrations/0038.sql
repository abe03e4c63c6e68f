-- 0038.sql - the scan that a job measured: values that differ between scanners and protocols.

ALTER TABLE job ADD COLUMN kernel TEXT; -- Convolution Kernel of all its slices; '': none, or several; NULL: not known
ALTER TABLE job ADD COLUMN kvp REAL; -- KVP of all its slices; NULL: none, several, or not known
ALTER TABLE job ADD COLUMN slice_thickness_min_mm REAL; -- of its slices; NULL: one has none, or not known
ALTER TABLE job ADD COLUMN slice_thickness_max_mm REAL;

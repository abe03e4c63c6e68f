-- 0028.sql - the voxels of the files and of the volume that a job computed on.

ALTER TABLE job ADD COLUMN spacing_x_mm REAL; -- between columns, as computed on; NULL: not known
ALTER TABLE job ADD COLUMN spacing_y_mm REAL;
ALTER TABLE job ADD COLUMN spacing_z_mm REAL;
ALTER TABLE job ADD COLUMN source_x_mm REAL; -- as in the files
ALTER TABLE job ADD COLUMN source_y_mm REAL;
ALTER TABLE job ADD COLUMN source_step_min_mm REAL; -- smallest and largest between two slices
ALTER TABLE job ADD COLUMN source_step_max_mm REAL;
ALTER TABLE job ADD COLUMN straightened TEXT; -- why; '': it was not; NULL: not known

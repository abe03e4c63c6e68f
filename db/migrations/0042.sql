-- Corrected masks: a job measures the masks that a person drew in place of those of a job under review.

ALTER TABLE object ADD COLUMN person TEXT NOT NULL DEFAULT ''; -- Content Creator's or Operators' Name

ALTER TABLE job ADD COLUMN corrects INTEGER REFERENCES job (id) ON DELETE SET NULL; -- NULL: it is no correction
ALTER TABLE job ADD COLUMN correction INTEGER REFERENCES object (id) ON DELETE SET NULL; -- the masks
CREATE INDEX job_corrects ON job (corrects) WHERE corrects IS NOT NULL;
CREATE INDEX job_correction ON job (correction) WHERE correction IS NOT NULL;

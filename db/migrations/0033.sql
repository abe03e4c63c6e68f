-- 0033.sql - the objects that a result replaces, and the study that a job's images had when it started.

ALTER TABLE job ADD COLUMN study_uid TEXT NOT NULL DEFAULT ''; -- '': it did not start
ALTER TABLE result ADD COLUMN replaces TEXT NOT NULL DEFAULT ''; -- SOP Instance UID; '': none

UPDATE job SET study_uid = (SELECT study_uid FROM series WHERE id = job.series_id);

CREATE INDEX result_replaces ON result (replaces) WHERE replaces <> '';

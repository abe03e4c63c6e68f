-- The list of work. Series that may have no job, by the number that the list has for them: rows are read by their numbers.
CREATE INDEX series_work ON series (CAST(-id AS INTEGER)) WHERE state <> 'SETTLED' OR code <> '';
-- Jobs by their creation and by their end, with the columns that counts of both need.
DROP INDEX job_created;
CREATE INDEX job_created ON job (created_at, superseded_by);
DROP INDEX job_ended;
CREATE INDEX job_ended ON job (ended_at, state, superseded_by) WHERE ended_at IS NOT NULL;

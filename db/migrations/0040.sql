-- Jobs by their creation, and series that may have no job by their last instance: the list of work.

CREATE INDEX job_created ON job (created_at);
CREATE INDEX job_state_created ON job (state, created_at);
CREATE INDEX series_jobless ON series (last_seen_at) WHERE state <> 'SETTLED' OR code <> '';

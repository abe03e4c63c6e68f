-- Jobs by their creation, and series that may have no job by their last instance: the list of work. The other indexes find
-- the values that its filters offer.

CREATE INDEX job_created ON job (created_at);
CREATE INDEX job_state_created ON job (state, created_at);
CREATE INDEX job_pipeline ON job (pipeline, created_at);
CREATE INDEX series_jobless ON series (last_seen_at) WHERE state <> 'SETTLED' OR code <> '';
CREATE INDEX series_modality ON series (modality);
CREATE INDEX series_station ON series (station);

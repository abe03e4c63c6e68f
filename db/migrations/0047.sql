-- Changes since an earlier study: the job that a job with the option `changes` compares with.

ALTER TABLE job ADD COLUMN prior_id INTEGER REFERENCES job (id) ON DELETE SET NULL; -- NULL: none, or not asked for
CREATE INDEX job_prior ON job (prior_id) WHERE prior_id IS NOT NULL;

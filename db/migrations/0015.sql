-- What is ready is found pipeline by pipeline: those of a held one are not read.
DROP INDEX job_ready;
CREATE INDEX job_ready ON job (pipeline, priority DESC, id) WHERE state = 'READY';

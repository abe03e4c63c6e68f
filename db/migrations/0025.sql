-- 0025.sql - a job may run on another machine: by which executor, as which attempt, and where Slurm has it.

ALTER TABLE job ADD COLUMN executor TEXT NOT NULL DEFAULT 'local' CHECK (executor IN ('local', 'slurm'));
-- Of the latest attempt that ran elsewhere; what comes back with another one is not ours.
ALTER TABLE job ADD COLUMN nonce TEXT NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN slurm_id INTEGER; -- NULL: Slurm has not said that it has it
ALTER TABLE job ADD COLUMN submitted_at TEXT;
ALTER TABLE job ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN slurm_reason TEXT NOT NULL DEFAULT ''; -- why it does not run there yet

CREATE INDEX job_elsewhere ON job (id) WHERE state = 'RUNNING' AND executor <> 'local';

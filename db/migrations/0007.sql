-- 0007.sql - what sets a stack apart, what was passed over, what is known to be missing, and who
-- accepted that.

-- For people: the attributes by which the series was split.
ALTER TABLE stack ADD COLUMN split_by TEXT NOT NULL DEFAULT '';
-- Not accepted for what it is (a localizer, ...), and nobody's mistake.
ALTER TABLE stack ADD COLUMN passed_over INTEGER NOT NULL DEFAULT 0 CHECK (passed_over IN (0, 1));

-- What settling found of the series as a whole; '' while it gathers.
ALTER TABLE series ADD COLUMN code TEXT NOT NULL DEFAULT '';
ALTER TABLE series ADD COLUMN message TEXT NOT NULL DEFAULT '';
-- The operator who takes this revision as it is; '' while nobody does.
ALTER TABLE series ADD COLUMN missing_accepted_by TEXT NOT NULL DEFAULT '';

ALTER TABLE quarantine ADD COLUMN sop_instance_uid TEXT NOT NULL DEFAULT '';
-- An instance of its series that has not come in a good file yet.
ALTER TABLE quarantine ADD COLUMN lacking INTEGER NOT NULL DEFAULT 0 CHECK (lacking IN (0, 1));

CREATE INDEX quarantine_lacking ON quarantine (series_uid) WHERE lacking;
CREATE INDEX quarantine_instance ON quarantine (sop_instance_uid) WHERE lacking;

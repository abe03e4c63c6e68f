-- 0020.sql - what people find a series by (base/series_about.def): its study, its patient, its scanner.

ALTER TABLE series ADD COLUMN accession_number TEXT NOT NULL DEFAULT ''; -- as `identifiers` says
ALTER TABLE series ADD COLUMN patient_id TEXT NOT NULL DEFAULT '';       -- likewise
ALTER TABLE series ADD COLUMN study_date TEXT NOT NULL DEFAULT '';       -- YYYYMMDD
ALTER TABLE series ADD COLUMN study_description TEXT NOT NULL DEFAULT '';
ALTER TABLE series ADD COLUMN manufacturer TEXT NOT NULL DEFAULT '';
ALTER TABLE series ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE series ADD COLUMN station TEXT NOT NULL DEFAULT '';
ALTER TABLE series ADD COLUMN institution TEXT NOT NULL DEFAULT '';

CREATE INDEX series_by_accession ON series (accession_number) WHERE accession_number <> '';
CREATE INDEX series_by_patient ON series (patient_id) WHERE patient_id <> '';

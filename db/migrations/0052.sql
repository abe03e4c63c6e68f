-- The issuer of the Patient ID: the same ID of two issuers is of two patients.

ALTER TABLE series ADD COLUMN patient_issuer TEXT NOT NULL DEFAULT '';

-- 0023.sql - the series of a study are found: rules may ask for several (`study`).

CREATE INDEX series_study ON series (study_uid);

-- 0031.sql - our AE title that a quarantined file was sent to; a release receives the file again as sent to it.

ALTER TABLE quarantine ADD COLUMN called_ae TEXT NOT NULL DEFAULT '';

-- 0026.sql - what a running job is at, as its worker told last, and since when.

ALTER TABLE job ADD COLUMN stage TEXT NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN stage_at TEXT;

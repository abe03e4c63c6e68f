-- 0027.sql - the SHA-256 of a file as it was taken in, for those who read it elsewhere.

ALTER TABLE instance ADD COLUMN sha256 TEXT NOT NULL DEFAULT ''; -- '': nobody asked for it then

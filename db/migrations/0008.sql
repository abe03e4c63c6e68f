-- 0008.sql - how many temporal positions a series has, and how many its headers announce.

-- Of its series; 0 where none, or one, is announced.
ALTER TABLE stack ADD COLUMN temporal_positions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE stack ADD COLUMN announced_temporal_positions INTEGER NOT NULL DEFAULT 0;

-- Local patterns of many regions in few rows, for the search of similar textures: 1,024 regions or more of whole jobs per
-- block. A block repeats rows of pattern_histogram with 8 bits per code (db/pattern_code.h has the format). It decides
-- no order: the search reads the counts of each region that it lists.
CREATE TABLE pattern_term (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('pattern', 'pipeline')),
    name TEXT NOT NULL,
    settings TEXT NOT NULL,               -- of a pattern
    UNIQUE (kind, name, settings)
) STRICT;
CREATE TABLE pattern_block (
    last_id INTEGER NOT NULL,             -- of pattern_histogram; blocks follow each other without a gap
    term_id INTEGER NOT NULL,             -- of a pattern; 0: the regions of the block
    first_id INTEGER NOT NULL,
    stale INTEGER NOT NULL DEFAULT 0 CHECK (stale IN (0, 1)), -- rows were deleted: the daemon makes it again
    data BLOB NOT NULL,
    UNIQUE (last_id, term_id)
) STRICT;
CREATE INDEX pattern_block_stale ON pattern_block (last_id) WHERE stale;
CREATE TRIGGER pattern_block_loses AFTER DELETE ON pattern_histogram BEGIN
    UPDATE pattern_block SET stale = 1 WHERE term_id = 0 AND NOT stale
        AND last_id = (SELECT min(last_id) FROM pattern_block WHERE last_id >= OLD.id) AND first_id <= OLD.id;
END;
-- Counts changes of the blocks: two connections that read the same number have the same blocks.
CREATE TABLE pattern_change (
    number INTEGER NOT NULL
) STRICT;
INSERT INTO pattern_change (number) VALUES (0);
-- SQLite gives the ids of deleted rows at the end again.
CREATE TRIGGER pattern_block_ends AFTER INSERT ON pattern_histogram
    WHEN EXISTS (SELECT 1 FROM pattern_block WHERE last_id >= NEW.id) BEGIN
    DELETE FROM pattern_block WHERE last_id >= NEW.id;
    UPDATE pattern_change SET number = number + 1;
END;

-- 0018.sql - what an inbox keeps stays known when its series is removed, and does not come back with the next start.

DROP TRIGGER instance_missing_forgets;
DROP INDEX kept_by_instance;
ALTER TABLE kept RENAME TO kept_before;

CREATE TABLE kept (
    source TEXT NOT NULL, -- "inbox:<path>"
    file INTEGER NOT NULL, -- digest of its path below the inbox
    look INTEGER NOT NULL, -- of its inode, size and times
    instance_id INTEGER REFERENCES instance (id) ON DELETE SET NULL, -- NULL: it was removed
    PRIMARY KEY (source, file)
) STRICT, WITHOUT ROWID;

INSERT INTO kept SELECT source, file, look, instance_id FROM kept_before;
DROP TABLE kept_before;

CREATE INDEX kept_by_instance ON kept (instance_id);

-- The original brings the file back.
CREATE TRIGGER instance_missing_forgets AFTER UPDATE OF missing ON instance WHEN NEW.missing
BEGIN
    DELETE FROM kept WHERE instance_id = NEW.id;
END;

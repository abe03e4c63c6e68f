-- 0014.sql - files that their inboxes keep, as they were when they were taken in: they need not be opened again.

CREATE TABLE kept (
    source TEXT NOT NULL, -- "inbox:<path>"
    file INTEGER NOT NULL, -- digest of its path below the inbox
    look INTEGER NOT NULL, -- of its inode, size and times
    instance_id INTEGER NOT NULL REFERENCES instance (id) ON DELETE CASCADE,
    PRIMARY KEY (source, file)
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_by_instance ON kept (instance_id);

-- The original brings the file back.
CREATE TRIGGER instance_missing_forgets AFTER UPDATE OF missing ON instance WHEN NEW.missing
BEGIN
    DELETE FROM kept WHERE instance_id = NEW.id;
END;

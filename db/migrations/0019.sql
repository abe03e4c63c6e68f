-- 0019.sql - what an inbox keeps of objects is known, as of instances.

ALTER TABLE kept ADD COLUMN object_id INTEGER REFERENCES object (id) ON DELETE SET NULL; -- NULL: it is of an instance, or was removed

CREATE INDEX kept_by_object ON kept (object_id) WHERE object_id IS NOT NULL;

-- The original brings the file back.
CREATE TRIGGER object_missing_forgets AFTER UPDATE OF missing ON object WHEN NEW.missing
BEGIN
    DELETE FROM kept WHERE object_id = NEW.id;
END;

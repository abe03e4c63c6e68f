-- 0039.sql - destinations that take some kinds of results, and objects that were sent in another form.

-- Names of destinations of the pipeline whose `takes` lacks this kind, separated by ", "
ALTER TABLE result ADD COLUMN not_taken_by TEXT NOT NULL DEFAULT '';
-- The object in the form that the destination has got: another transfer syntax, or another class with a UID of its own.
ALTER TABLE delivery ADD COLUMN sent_sop_class_uid TEXT NOT NULL DEFAULT ''; -- '': not sent, or sent before schema 39
ALTER TABLE delivery ADD COLUMN sent_transfer_syntax_uid TEXT NOT NULL DEFAULT '';
ALTER TABLE delivery ADD COLUMN sent_sop_instance_uid TEXT NOT NULL DEFAULT '';

-- A keyed hash of a fixed text by identifier.key. One row, from the first start on: the present key is the known one.

CREATE TABLE identifier_key (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    fingerprint TEXT NOT NULL
) STRICT;

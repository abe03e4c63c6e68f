-- Filters of lists that persons saved in the web UI.
CREATE TABLE saved_filter (
    person TEXT NOT NULL CHECK (person <> ''),
    list TEXT NOT NULL,                   -- work, deliveries
    name TEXT NOT NULL CHECK (name <> ''),
    filter TEXT NOT NULL,                 -- the query of the address of the list
    saved_at TEXT NOT NULL CHECK (length(saved_at) = 24),
    PRIMARY KEY (person, list, name)
) STRICT, WITHOUT ROWID;

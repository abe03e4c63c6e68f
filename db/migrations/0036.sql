-- 0036.sql - programs of the site: their last check, their runs, and the runs that jobs take masks from.

-- A row per row of `programs` in the configuration in force.
CREATE TABLE program (
    name TEXT PRIMARY KEY,
    identity TEXT NOT NULL,       -- SHA-256 of its options, its file and its weights; '': not known yet
    program_sha256 TEXT NOT NULL, -- of the file of command[0]; '': not known
    weights_sha256 TEXT NOT NULL, -- '': no weights, or not known
    weights_bytes INTEGER NOT NULL CHECK (weights_bytes >= 0),
    sandbox TEXT NOT NULL,        -- '': no sandbox is possible
    code TEXT NOT NULL,           -- '': it can run
    message TEXT NOT NULL,
    since_at TEXT NOT NULL        -- of this code
) STRICT, WITHOUT ROWID;

-- One execution for a stack. AUTOINCREMENT: the number names a folder, and must not be used again.
CREATE TABLE program_run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    series_id INTEGER NOT NULL REFERENCES series (id),
    revision INTEGER NOT NULL,
    stack TEXT NOT NULL,
    program TEXT NOT NULL,
    grid TEXT NOT NULL,           -- options of the pipeline that decide the voxels
    identity TEXT NOT NULL CHECK (identity <> ''),
    settings_id INTEGER NOT NULL REFERENCES settings (id), -- of the program
    pipeline_id INTEGER NOT NULL REFERENCES settings (id), -- of a pipeline with this grid
    state TEXT NOT NULL
        CHECK (state IN ('READY', 'RUNNING', 'DELAYED', 'DONE', 'FAILED', 'CANCELLED')),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    ran_as TEXT NOT NULL DEFAULT '' CHECK (ran_as IN ('', 'shared', 'whole', 'cpu')), -- of the next or last attempt
    created_at TEXT NOT NULL,
    ready_at TEXT NOT NULL,       -- when it last became READY
    not_before_at TEXT,
    started_at TEXT,              -- the latest attempt; NULL in READY
    ended_at TEXT,
    slot INTEGER,                 -- NULL: it did not start, or it runs in Slurm
    carrier_job_id INTEGER REFERENCES job (id) ON DELETE SET NULL, -- the job in Slurm that runs it; NULL: it runs here
    starts INTEGER NOT NULL DEFAULT 0 CHECK (starts >= 0), -- processes started; 0: a warm one took it
    gpu TEXT NOT NULL DEFAULT '', -- UUID
    sandbox TEXT NOT NULL DEFAULT '',
    write_seconds REAL,           -- this and the next five: of the last attempt that ended
    program_seconds REAL,
    read_seconds REAL,
    peak_bytes INTEGER,
    labels INTEGER,
    labelled_voxels INTEGER,
    sha256 TEXT NOT NULL DEFAULT '', -- of programs/<id>/mask
    size_bytes INTEGER NOT NULL DEFAULT 0 CHECK (size_bytes >= 0),
    code TEXT NOT NULL DEFAULT '',
    message TEXT NOT NULL DEFAULT '',
    superseded_by INTEGER REFERENCES program_run (id),
    removed_at TEXT,              -- of the folder programs/<id>
    FOREIGN KEY (series_id, revision, stack) REFERENCES stack (series_id, revision, name),
    CHECK ((state = 'DELAYED') = (not_before_at IS NOT NULL)),
    CHECK ((state IN ('DONE', 'FAILED', 'CANCELLED')) = (ended_at IS NOT NULL)),
    CHECK (state <> 'READY' OR started_at IS NULL),
    CHECK (state <> 'RUNNING' OR (started_at IS NOT NULL AND attempts >= 1
        AND (slot IS NULL) = (carrier_job_id IS NOT NULL))),
    CHECK ((state = 'DONE') = (sha256 <> '')),
    CHECK (superseded_by IS NULL OR state = 'DONE')
) STRICT;
CREATE UNIQUE INDEX program_run_current ON program_run (series_id, revision, stack, program, grid, identity)
    WHERE superseded_by IS NULL AND removed_at IS NULL;
CREATE UNIQUE INDEX program_run_slot ON program_run (slot) WHERE state = 'RUNNING';
CREATE INDEX program_run_delayed ON program_run (not_before_at) WHERE state = 'DELAYED';
CREATE INDEX program_run_open ON program_run (program, state) WHERE ended_at IS NULL;
CREATE INDEX program_run_ended ON program_run (program, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX program_run_series ON program_run (series_id);
CREATE INDEX program_run_superseded ON program_run (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX program_run_carrier ON program_run (carrier_job_id) WHERE carrier_job_id IS NOT NULL;

CREATE TABLE job_mask (
    job_id INTEGER NOT NULL REFERENCES job (id),
    program TEXT NOT NULL,
    run_id INTEGER NOT NULL REFERENCES program_run (id),
    PRIMARY KEY (job_id, program)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_mask_run ON job_mask (run_id);

-- As job_ready and job_done_by: the first jobs of each pipeline that wait for a program.
CREATE INDEX job_waits ON job (pipeline, priority DESC, id) WHERE state = 'DELAYED' AND code = 'PROGRAM_WAITING';
CREATE INDEX job_waits_done_by ON job (pipeline, done_by_at, id)
    WHERE state = 'DELAYED' AND code = 'PROGRAM_WAITING' AND done_by_at IS NOT NULL;

ALTER TABLE event ADD COLUMN program_run_id INTEGER REFERENCES program_run (id);
CREATE INDEX event_program_run ON event (program_run_id) WHERE program_run_id IS NOT NULL;
DROP TRIGGER event_is_final;
CREATE TRIGGER event_is_final BEFORE UPDATE ON event
WHEN NEW.id IS NOT OLD.id OR NEW.at IS NOT OLD.at OR NEW.kind IS NOT OLD.kind
    OR NEW.series_id IS NOT OLD.series_id OR NEW.job_id IS NOT OLD.job_id
    OR NEW.delivery_id IS NOT OLD.delivery_id OR NEW.program_run_id IS NOT OLD.program_run_id
    OR NEW.from_state IS NOT OLD.from_state OR NEW.to_state IS NOT OLD.to_state OR NEW.detail <> 'purged'
BEGIN
    SELECT RAISE(ABORT, 'events are append-only');
END;

"""The root folder of a service with the first database schema."""

import contextlib
import shutil
import sqlite3

import pydicom
import upper_layer
from conftest import SOURCE

APPLICATION = 1315922804  # db/database.h


def write(root, files):
    """Writes a root in which the series of these files is being received. A daemon that starts on it must migrate the
    database and process the series."""
    series = pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID
    target = root / "series" / series
    target.mkdir(parents=True)
    at, count = "2026-01-31T02:03:20.000Z", len(files)
    with contextlib.closing(sqlite3.connect(root / "noctule.db")) as db:
        db.executescript((SOURCE / "db" / "migrations" / "0001.sql").read_text()
                         + f"PRAGMA user_version = 1; PRAGMA application_id = {APPLICATION};")
        db.execute("INSERT INTO series (id, series_uid, study_uid, modality, body_part, description, state, revision, "
                   "instances, frames, expected_instances, first_seen_at, last_seen_at) "
                   "VALUES (1, ?, '1', 'CT', '', '', 'GATHERING', 1, ?, ?, ?, ?, ?)", (series, *[count] * 3, at, at))
        db.execute("INSERT INTO event (at, kind, series_id, to_state, detail) VALUES (?, 'SERIES_NEW', 1, 'GATHERING', '')",
                   (at,))
        for path in files:
            instance = pydicom.dcmread(path, stop_before_pixels=True).SOPInstanceUID
            shutil.copy(path, target / f"{instance}.dcm")
            db.execute("INSERT INTO instance VALUES (NULL, 1, 1, ?, ?, ?, ?, 'inbox:a', ?, 1, 0, ?)",
                       (instance, upper_layer.CT, upper_layer.EXPLICIT, f"series/{series}/{instance}.dcm",
                        path.stat().st_size, at))
        db.commit()

#!/usr/bin/env python3
"""
Times `noctule cohort` on a database of regions without measurements: a number of jobs of two regions with 200 features
each, 400 columns. Usage: cohort.py BIN [JOBS], where BIN is the folder of the programs. Prints a JSON line.
"""

import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FEATURES = 200
AT = "2026-01-01T00:00:00.000Z"


def fill(path, jobs):
    db = sqlite3.connect(path)
    ladder = sorted((SOURCE / "db" / "migrations").glob("*.sql"))
    for script in [*ladder, SOURCE / "db" / "views.sql"]:
        db.executescript(script.read_text())
    db.executescript(f"PRAGMA user_version = {len(ladder)}; PRAGMA application_id = {0x4E6F6374}; PRAGMA foreign_keys = OFF;"
                     f"INSERT INTO settings (text) VALUES ('');"
                     f"INSERT INTO event (at, kind, detail) VALUES ('{AT}', 'START', 'noctuled 0.1.0');")
    db.executemany("INSERT INTO feature_definition (name, label, family, meaning, ibsi_code, unit, settings) "
                   "VALUES (?, ?, 'glcm', '', '', '1', 'aggregation=3d-merged')",
                   [(f"feature_{i}_{label}", label) for label in "AB" for i in range(FEATURES)])
    values = [random.Random(1).gauss(0, 100) for _ in range(10_007)]
    for job in range(1, jobs + 1):
        db.execute("INSERT INTO series (id, series_uid, study_uid, modality, body_part, description, state, revision, instances, "
                   "frames, expected_instances, first_seen_at, last_seen_at, settled_at) "
                   "VALUES (?, ?, '1.2', 'CT', '', '', 'SETTLED', 1, 1, 1, 0, ?, ?, ?)", (job, f"1.2.{job}", AT, AT, AT))
        db.execute("INSERT INTO stack (series_id, revision, name, accepted, planes, columns, rows, spacing_mm, code, message, "
                   "file_a, file_b) VALUES (?, 1, '', 1, 1, 1, 1, 1, '', '', '', '')", (job,))
        db.execute("INSERT INTO job (id, series_id, revision, stack, pipeline, settings_id, state, priority, created_at, ready_at, "
                   "started_at, ended_at) VALUES (?, ?, 1, '', 'p', 1, 'DONE', 0, ?, ?, ?, ?)", (job, job, AT, AT, AT, AT))
        db.executemany("INSERT INTO feature VALUES (?, ?, ?, ?, ?, '')",
                       [(job, region + 1, region * FEATURES + i + 1, region * FEATURES + i + 1,
                         values[(job * 31 + i * 7 + region) % len(values)]) for region in (0, 1) for i in range(FEATURES)])
    db.commit()
    db.close()


def main():
    programs, jobs = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "noctule.conf").write_text(f'root = "{root}";\n')
        fill(root / "noctule.db", jobs)
        with open(root / "cohort.csv", "wb") as out:
            begun = time.monotonic()
            process = subprocess.Popen([programs / "noctule", "--config", root / "noctule.conf", "cohort", "-p", "p"], stdout=out)
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.monotonic() - begun
        print(json.dumps({"regions": 2 * jobs, "values": 2 * jobs * FEATURES, "status": status, "seconds": round(seconds, 1),
                          "cpu_seconds": round(used.ru_utime + used.ru_stime, 1), "peak_mib": round(used.ru_maxrss / 1024, 1),
                          "bytes": (root / "cohort.csv").stat().st_size}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""
Times the list of alerts (v_alerts) and `noctule status --check` on a database of many jobs: 2 deliveries and 6 events per
job, 10,000 jobs that ended in the last 24 h, 2,500 that wait. Usage: alerts.py BIN [JOBS], where BIN is the folder of the
programs. Prints a JSON line.
"""

import json
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RECENT, WAITING = 10_000, 2_500
NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
# When number i of `jobs` ended: the last RECENT ones in the last day, the others in the year before.
ENDED = ("strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || iif(i > {jobs} - {recent}, ({jobs} - i) * 8, "
         "90000 + ({jobs} - i) * 300) || ' seconds')")
STATES = """CASE WHEN i > {jobs} - {waiting} THEN iif(i % 10 = 0, 'DELAYED', 'READY') WHEN i % 50 = 0 THEN 'FAILED'
    WHEN i % 40 = 0 THEN 'EMPTY' WHEN i % 999 = 0 THEN 'REVIEW' ELSE 'DONE' END"""
FILL = [
    "INSERT INTO series (id, series_uid, study_uid, modality, body_part, description, state, revision, instances, frames, "
    "expected_instances, first_seen_at, last_seen_at, settled_at) SELECT i, '1.2.' || i, '1.2', 'CT', '', '', 'SETTLED', 1, "
    "100, 100, 100, {ended}, {ended}, {ended} FROM n",
    "INSERT INTO stack (series_id, revision, name, accepted, planes, columns, rows, spacing_mm, code, message, file_a, file_b) "
    "SELECT i, 1, '', 1, 100, 512, 512, 1, '', '', '', '' FROM n",
    "INSERT INTO job (id, series_id, revision, stack, pipeline, settings_id, state, priority, created_at, ready_at, code, "
    "not_before_at, started_at, ended_at, worker, lane, total_seconds) SELECT i, i, 1, '', 'p' || i % 10, 1, state, 0, ended, "
    "ended, iif(state = 'FAILED', 'OUT_OF_MEMORY', iif(state = 'DELAYED', 'STUDY_WAITING', '')), iif(state = 'DELAYED', ended, "
    "NULL), iif(state IN ('READY', 'DELAYED'), NULL, ended), iif(state IN ('READY', 'DELAYED'), NULL, ended), 'worker-0', 0, 9.0 "
    "FROM (SELECT i, {states} AS state, {ended} AS ended FROM n)",
    "INSERT INTO result (id, job_id, kind, path, sop_class_uid, sop_instance_uid, series_uid, size_bytes, frames, created_at) "
    "SELECT i, i, 'SEG', 'outbox/' || i || '/seg.dcm', '1.2', '1.3.' || i, '1.4.' || i, 100000, 9, {ended} FROM n "
    "WHERE {states} = 'DONE'",
    *["INSERT INTO delivery (result_id, job_id, destination, kind, path, sop_class_uid, sop_instance_uid, state, attempts, due_at, "
      f"created_at, since_at, started_at, sent_at, code, message) SELECT id, job_id, '{name}', kind, path, sop_class_uid, "
      "sop_instance_uid, state, 1, created_at, created_at, created_at, created_at, iif(state = 'SENT', created_at, NULL), '', '' "
      "FROM (SELECT *, CASE WHEN id % 500 = 1 THEN 'FAILED' WHEN id % 100 = 7 THEN 'DELAYED' ELSE 'SENT' END AS state FROM result)"
      for name in ("PACS", "RESEARCH")],
    *["INSERT INTO event (at, kind, series_id, job_id, detail) "
      f"SELECT {{ended}}, '{kind}', i, i, '' FROM n" for kind in ("JOB_ADDED", "JOB_STARTED", "JOB_DONE", "DELIVERY_ADDED",
                                                               "DELIVERY_STARTED", "DELIVERY_SENT")],
    "INSERT INTO disk (at, free_mib) SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || i || ' hours'), 1e6 - i FROM n "
    "WHERE i <= 8760",
    "INSERT INTO quarantine (path, original_path, series_uid, code, message, quarantined_at) SELECT 'quarantine/' || i, "
    "'/inbox/' || i, '', 'NOT_DICOM', '', {ended} FROM n WHERE i % 100 = 3",
    "INSERT INTO caller (calling_ae, called_ae, host, reason, certificate, rejected, first_at, last_at) SELECT 'CT' || i, "
    "'NOCTULE', '10.0.0.1', 'unknown_caller', '', 3, {now}, {now} FROM n WHERE i <= 256",
    "INSERT INTO pull (batch, line, source, key, identifier, state, due_at, started_at, ended_at, asked_by, created_at) SELECT 1, i, "
    "'ARCHIVE', 'study', '1.5.' || i, iif(i % 50 = 0, 'FAILED', 'DONE'), {ended}, {ended}, {ended}, 'root', {ended} FROM n WHERE "
    "i > {jobs} - 10000",
]


def fill(path, jobs):
    db = sqlite3.connect(path)
    ladder = sorted((SOURCE / "db" / "migrations").glob("*.sql"))
    for script in [*ladder, SOURCE / "db" / "views.sql"]:
        db.executescript(script.read_text())
    db.executescript(f"PRAGMA user_version = {len(ladder)}; PRAGMA application_id = {0x4E6F6374}; PRAGMA journal_mode = WAL;"
                     "INSERT INTO settings (text) VALUES ('');"
                     "INSERT INTO event (at, kind, detail) VALUES (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 'START', 'noctuled');")
    words = {"jobs": jobs, "recent": RECENT, "waiting": WAITING, "now": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"}
    words["ended"], words["states"] = ENDED.format(**words), STATES.format(**words)
    for statement in FILL:
        head, _, tail = statement.partition("SELECT")
        db.execute((NUMBERS.format(count=jobs) if " FROM n" in statement else "") + head + "SELECT" + tail.format(**words))
    db.commit()
    db.execute("ANALYZE")
    db.close()


def milliseconds(call, times):
    spent = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        spent.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(spent), 1)


def main():
    programs, jobs = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "noctule.conf").write_text(f'root = "{root}";\n')
        fill(root / "noctule.db", jobs)
        db = sqlite3.connect(root / "noctule.db")
        alerts = db.execute("SELECT alert FROM v_alerts").fetchall()
        check = [programs / "noctule", "--config", root / "noctule.conf", "status", "--check"]
        print(json.dumps({"jobs": jobs, "alerts": len(alerts),
                          "v_alerts_ms": milliseconds(lambda: db.execute("SELECT * FROM v_alerts").fetchall(), 15),
                          "status_check_ms": milliseconds(lambda: subprocess.run(check, capture_output=True), 7)}))


if __name__ == "__main__":
    main()

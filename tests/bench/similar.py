#!/usr/bin/env python3
"""
Times `noctule similar` on a database of many regions: 4 regions per job, 3 patterns of 256 codes each. The daemon makes the
blocks of coded histograms first. Every answer is compared with NumPy. Usage: similar.py BIN FOLDER [REGIONS], where BIN is
the folder of the programs. FOLDER keeps the database (2.8 GB for 1,000,000 regions), and a second run uses it again.
Prints a JSON line per search: seconds of the fastest and the median of 9 runs of the whole command.
"""

import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import time

import numpy as np

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PATTERNS = [("lbp", ""), ("tlbap", "threshold=0.9"), ("lanadp", "")]
REGIONS_PER_JOB = 4
CHUNK = 20_000
CONF = 'root = "{root}";\nmin_free_mib = 1;\n'
NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
AT = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day')"
FILL = [
    "INSERT INTO settings (id, text) VALUES (1, '')",
    "INSERT INTO series (id, series_uid, study_uid, modality, body_part, description, state, revision, instances, frames, "
    "expected_instances, first_seen_at, last_seen_at, settled_at, patient_id) SELECT i, '1.2.' || i, '1.2', 'CT', '', '', "
    "'SETTLED', 1, 100, 100, 100, {at}, {at}, {at}, 'P' || i / 3 FROM n",
    "INSERT INTO stack (series_id, revision, name, accepted, planes, columns, rows, spacing_mm, code, message, file_a, file_b) "
    "SELECT i, 1, '', 1, 100, 512, 512, 1, '', '', '', '' FROM n",
    "INSERT INTO job (id, series_id, revision, stack, pipeline, settings_id, state, priority, created_at, ready_at, started_at, "
    "ended_at, worker, lane, total_seconds, spacing_x_mm, spacing_y_mm, spacing_z_mm, straightened) SELECT i, i, 1, '', "
    "'p' || (i % 10), 1, 'DONE', 0, {at}, {at}, {at}, {at}, 'worker-0', 0, 9.0, 0.5, 0.5, 2.0, '' FROM n",
    "INSERT INTO segment (job_id, number, label, method, voxels, volume_ml, unit, first_column, first_row, first_slice, "
    "last_column, last_row, last_slice) SELECT i, k.value, 'Region ' || k.value, 'range', 100000, 100.0, '1', 0, 0, 0, 9, 9, 9 "
    "FROM n, json_each('[1,2,3,4]') k",
    "INSERT INTO event (at, kind, detail) VALUES ({at}, 'START', 'noctuled')",
]


def histograms(first, count):
    """Returns the counts of `count` regions from number `first` on, by pattern: mixtures of 40 textures, and noise."""
    shapes = np.random.default_rng(1).dirichlet(np.full(256, 0.4), (len(PATTERNS), 40))
    rng = np.random.default_rng([7, first])
    weights = rng.dirichlet(np.full(40, 0.15), count)
    voxels = rng.integers(500, 200_000, count)
    return [rng.multinomial(voxels, weights @ shape) for shape in shapes]


def fill(path, regions):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # or the daemon rebuilds the file first
    for migration in sorted((SOURCE / "db/migrations").glob("*.sql")):
        db.executescript(migration.read_text())
    db.executescript((SOURCE / "db/views.sql").read_text())
    count = len(list((SOURCE / "db/migrations").glob("*.sql")))
    db.executescript(f"PRAGMA journal_mode = wal; PRAGMA user_version = {count}; PRAGMA application_id = {0x4e6f6374}; BEGIN")
    for statement in FILL:
        numbers = NUMBERS.format(count=regions // REGIONS_PER_JOB)
        head, _, tail = statement.format(at=AT).partition(" SELECT ")
        db.execute(f"{head} {numbers}SELECT {tail}" if tail else head)
    for first in range(0, regions, CHUNK):
        counts = histograms(first, CHUNK)
        db.executemany(
            "INSERT INTO pattern_histogram (job_id, segment_number, label, pattern, settings, counts) VALUES (?, ?, ?, ?, ?, ?)",
            ((1 + (first + i) // REGIONS_PER_JOB, 1 + (first + i) % REGIONS_PER_JOB, f"Region {1 + (first + i) % 4}", name,
              settings, "[" + ",".join(map(str, counts[k][i].tolist())) + "]")
             for i in range(CHUNK) for k, (name, settings) in enumerate(PATTERNS)))
    db.execute("COMMIT")
    db.close()


def chi_square(p, q):
    both = p + q
    return 0.5 * np.where(both > 0, (p - q) ** 2 / np.where(both > 0, both, 1), 0).sum(axis=1)


def expected(regions, job, segment, kinds, limit):
    """Returns (distance, job, segment) of the nearest regions, by NumPy over all of them."""
    own = (job - 1) * REGIONS_PER_JOB + segment - 1
    at = own // CHUNK * CHUNK
    own_counts = [c[own - at] for c in histograms(at, CHUNK)]
    found = []
    for first in range(0, regions, CHUNK):
        counts = histograms(first, CHUNK)
        distances = sum(chi_square(counts[k] / counts[k].sum(axis=1, keepdims=True),
                                   own_counts[k][None] / own_counts[k].sum()) for k in kinds) / len(kinds)
        jobs = 1 + (first + np.arange(CHUNK)) // REGIONS_PER_JOB
        for i in np.argsort(distances, kind="stable")[:limit + REGIONS_PER_JOB]:
            if jobs[i] != job:
                found.append((distances[i], int(jobs[i]), 1 + int((first + i) % REGIONS_PER_JOB)))
    return sorted(found)[:limit]


def make_blocks(programs, conf, root):
    """Lets the daemon run until it has made all blocks."""
    daemon = subprocess.Popen([programs / "noctuled", "--config", conf], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=os.environ | {"NOCTULE_TICK_MS": "20"})  # of programs with test hooks: 50 times the usual rate
    began, last, seen = time.monotonic(), -1, 0
    while time.monotonic() - seen < 30 or last < 1:
        time.sleep(1)
        db = sqlite3.connect(f"file:{root}/noctule.db?mode=ro", uri=True)
        now = db.execute("SELECT count(*) FROM pattern_block").fetchone()[0]
        db.close()
        if now != last:
            last, seen = now, time.monotonic()
        if daemon.poll() is not None:
            sys.exit(f"the daemon ended with {daemon.returncode}")
    daemon.terminate()
    daemon.wait()
    print(json.dumps({"blocks": last, "seconds": round(seen - began, 1)}), flush=True)


def main():
    programs, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    regions = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    folder.mkdir(exist_ok=True)
    conf, database = folder / "noctule.conf", folder / "noctule.db"
    conf.write_text(CONF.format(root=folder))
    if not database.exists():
        fill(database, regions)
    make_blocks(programs, conf, folder)
    for by, kinds in (("patterns", (0, 1, 2)), ("lbp", (0,))):
        for job, segment in ((regions // 8, 1), (17, 3)):
            command = [programs / "noctule", "--config", conf, "similar", str(job), "--segment", str(segment), "--by", by, "--json"]
            times = []
            for _ in range(9):
                began = time.monotonic()
                answer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                times.append(time.monotonic() - began)
            found = [(i["distance"], i["job"], i["segment"]) for i in answer["items"]]
            truth = expected(regions, job, segment, kinds, 10)
            equal = [f[1:] for f in found] == [t[1:] for t in truth] and all(abs(f[0] - t[0]) < 1e-12
                                                                             for f, t in zip(found, truth))
            print(json.dumps({"by": by, "job": job, "regions": answer["searched"], "best": round(min(times), 3),
                              "median": round(statistics.median(times), 3), "equal": equal, "nearest": found[0][0],
                              "tenth": found[-1][0]}), flush=True)


main()

"""Fills a database with jobs, series without a job and deliveries, as a service has them after months: for tests and
measurements of lists. Nothing is on the disk of it.

    fill_lists.py DATABASE SERIES
"""

import datetime
import random
import sqlite3
import sys

DESCRIPTIONS = ["CT Thorax mit KM venös, Lungenfenster 1.0 mm", "Crâne sans injection", "頭部単純CT 5mm" + "脳" * 52,
                "<script>alert(1)</script>", "=HYPERLINK(\"http://x\")", "\u202etxet LTR \u062a\u0635\u0648\u064a\u0631", "T1 mprage sag p2 iso 0.7"]
PIPELINES = ["head-ct", "lung", "bone", "vessels", "brain-mr"]
STATIONS = ["CT1", "CT2", "CT-ER", "MR1", "PETCT1", "CT'<b>"]
STATES = ["DONE"] * 92 + ["EMPTY"] * 2 + ["FAILED"] * 2 + ["REVIEW", "REJECTED", "CANCELLED", "CANCELLED"]
SERIES = ("series", "id series_uid study_uid modality body_part description state revision instances frames expected_instances "
          "first_seen_at last_seen_at settled_at code message sender accession_number patient_id station")
STACK = ("stack", "series_id revision name accepted planes columns rows spacing_mm code message file_a file_b")
JOB = ("job", "id series_id revision stack pipeline settings_id state priority created_at ready_at started_at ended_at "
       "total_seconds code message backend")
RESULT = ("result", "id job_id kind path sop_class_uid sop_instance_uid series_uid size_bytes frames created_at")
DELIVERY = ("delivery", "id job_id result_id destination kind path sop_class_uid sop_instance_uid state attempts due_at code "
            "message created_at since_at started_at sent_at")


def insert(db, table, rows):
    name, columns = table
    columns = columns.split()
    db.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", rows)


def fill(path, count, until=None, step=100.0):
    """Adds `count` series, the last one at `until` (UTC; 10 minutes ago), one per `step` seconds. Ids begin behind those that are there."""
    draw = random.Random(1)
    until = until or datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=10)
    db = sqlite3.connect(path, timeout=60)
    first, job, delivery, result = (1 + (db.execute(f"SELECT max(id) FROM {name}").fetchone()[0] or 0)
                                    for name in ("series", "job", "delivery", "result"))
    db.execute("INSERT INTO settings (text) VALUES ('filled')")
    (settings,) = db.execute("SELECT id FROM settings WHERE text = 'filled'").fetchone()
    rows = {table: [] for table in (SERIES, STACK, JOB, RESULT, DELIVERY)}

    def at(number):
        time = until - datetime.timedelta(seconds=step * (count - number))
        return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"

    for i in range(count):
        series, refused, unruled = first + i, i % 33 == 5, i % 50 == 7
        code = "MISSING_SLICE" if refused else "NO_RULE" if unruled else ""
        rows[SERIES].append((series, f"1.2.3.{series}", f"1.2.4.{series // 4}", draw.choice(["CT", "MR", "PT"]), "HEAD",
                             draw.choice(DESCRIPTIONS), "REFUSED" if refused else "SETTLED", 1, draw.randint(20, 600), 0, 0, at(i),
                             at(i), at(i), code, "its reason" if code else "", draw.choice(["SCAN_A", "SCAN_B"]), f"h:{series:024x}",
                             f"h:{series // 4:024x}", draw.choice(STATIONS)))
        if code:
            continue
        rows[STACK].append((series, 1, "", 1, 10, 512, 512, 1.0, "", "", "", ""))
        state = draw.choice(STATES)
        failed = state == "FAILED"
        rows[JOB].append((job, series, 1, "", draw.choice(PIPELINES), settings, state, 0, at(i), at(i), at(i), at(i + 1),
                          draw.random() * 90, "JOB_TOO_LARGE" if failed else "", "it is too large" if failed else "", "cpu"))
        if state == "DONE":
            uid = f"2.25.{job}"
            rows[RESULT].append((result, job, "seg", f"outbox/{job}/seg.dcm", "1.2.840.10008.5.1.4.1.1.66.4", uid, f"2.26.{job}", 1000, 10,
                                 at(i + 1)))
            for destination in ("PACS", "RESEARCH"):
                sent = draw.random() < 0.97
                rows[DELIVERY].append((delivery, job, result, destination, "seg", f"outbox/{job}/seg.dcm", "1.2", uid,
                                       "SENT" if sent else "FAILED", 1, at(i + 1), "" if sent else "PEER_UNREACHABLE",
                                       "" if sent else "nobody answers", at(i + 1), at(i + 1), at(i + 2), at(i + 2) if sent else None))
                delivery += 1
            result += 1
        job += 1
    for table, values in rows.items():
        insert(db, table, values)
    db.commit()
    db.close()


# What a service keeps beside its jobs. Of 20 jobs one is superseded by the next.
BESIDE = """
UPDATE job SET superseded_by = id + 1 WHERE id % 20 = 3 AND id < (SELECT max(id) FROM job) AND state <> 'REVIEW';
INSERT INTO segment (job_id, number, label, method, voxels, volume_ml, mean, minimum, maximum, unit, first_column, first_row, first_slice,
    last_column, last_row, last_slice) SELECT j.id, n.column1, 'region ' || n.column1, 'threshold', 1000, 1.0 + j.id % 97, 40.0, -10.0,
    90.0, '[hnsf''U]', 0, 0, 0, 9, 9, 9 FROM job j, (VALUES (1), (2)) n WHERE j.state IN ('DONE', 'REVIEW', 'REJECTED');
INSERT INTO breach (job_id, place, segment_number, label, expectation, found, low, high, text)
    SELECT id, 1, 1, 'region 1', 'volume_ml', 1.0, 2.0, 3.0, 'region 1: 1 ml, expected 2 to 3 ml' FROM job WHERE state = 'REVIEW';
INSERT INTO event (at, kind, series_id, job_id, from_state, to_state, detail)
    SELECT created_at, 'JOB', series_id, id, NULL, 'READY', '' FROM job;
INSERT INTO event (at, kind, series_id, job_id, from_state, to_state, detail)
    SELECT ended_at, 'JOB', series_id, id, 'RUNNING', state, '' FROM job;
INSERT INTO event (at, kind, detail) SELECT ended_at, 'DEVICE_LOST', '0: it is lost' FROM job WHERE id % 1000 = 0;
INSERT INTO night (name, since_at, until_at, series_settled, series_refused, series_without_rule, instances, bytes, jobs_done, jobs_empty,
    jobs_review, jobs_rejected, jobs_failed, jobs_cancelled, busy_seconds, compute_seconds, result_bytes, delivered, undelivered, waiting,
    quarantined, report) SELECT substr(max(ended_at), 1, 10), substr(min(ended_at), 1, 10) || 'T00:00:00.000Z', substr(max(ended_at), 1, 10)
    || 'T23:59:59.000Z', count(*), 0, 0, 0, 0, count(*), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'DONE' FROM job WHERE ended_at IS NOT NULL
    GROUP BY substr(ended_at, 1, 10);
INSERT OR IGNORE INTO disk (at, free_mib) SELECT substr(ended_at, 1, 13) || ':00:00.000Z', 1000000.0 FROM job WHERE ended_at IS NOT NULL
    GROUP BY substr(ended_at, 1, 13);
INSERT INTO quarantine (path, original_path, series_uid, code, message, quarantined_at) SELECT 'quarantine/' || id, 'scu:SCAN_A/' || id, '',
    'NOT_DICOM', 'this is no DICOM file', created_at FROM job WHERE id % 500 = 0;
INSERT INTO caller (calling_ae, called_ae, host, reason, certificate, rejected, first_at, last_at) SELECT 'CT' || id, 'NOCTULE',
    '10.0.0.1', 'unknown_caller', '', 3, created_at, created_at FROM job WHERE id % 2000 = 0;
INSERT INTO audit (at, action, subject, job_id, revision, reason, actor, how, role, address, seen) SELECT ended_at, 'reject', 'job ' || id,
    id, 1, 'it leaks', 'ann', 'token', 'reviewer', '127.0.0.1', '' FROM job WHERE state = 'REJECTED';
"""


def fill_beside(path):
    """Adds to the jobs of fill(): segments, events, report periods, measurements of the disk, quarantined files, callers, decisions."""
    db = sqlite3.connect(path, timeout=60)
    db.executescript("BEGIN IMMEDIATE;" + BESIDE + "COMMIT")
    db.close()


if __name__ == "__main__":
    fill(sys.argv[1], int(sys.argv[2]))
    fill_beside(sys.argv[1])

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


def fill(path, count, until=None):
    """Adds `count` series, the last one at `until` (UTC; 10 minutes ago), one per 100 s. Ids begin behind those that are there."""
    draw = random.Random(1)
    until = until or datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=10)
    db = sqlite3.connect(path, timeout=60)
    first, job, delivery, result = (1 + (db.execute(f"SELECT max(id) FROM {name}").fetchone()[0] or 0)
                                    for name in ("series", "job", "delivery", "result"))
    db.execute("INSERT INTO settings (text) VALUES ('filled')")
    (settings,) = db.execute("SELECT id FROM settings WHERE text = 'filled'").fetchone()
    rows = {table: [] for table in (SERIES, STACK, JOB, RESULT, DELIVERY)}

    def at(number):
        time = until - datetime.timedelta(seconds=100 * (count - number))
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


if __name__ == "__main__":
    fill(sys.argv[1], int(sys.argv[2]))

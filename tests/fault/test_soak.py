"""The service under load with retention for NOCTULE_SOAK_SECONDS. Received data is removed again, and memory,
descriptors, threads, database and files must not grow with time."""

import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import signal
import statistics
import time

from conftest import storescp, wait_for
from hospital import SECONDS, Hospital, service

SOAK_SECONDS = float(os.environ.get("NOCTULE_SOAK_SECONDS", "30"))
# All data is received and removed within this time. A tenth of the run precedes the comparison.
AGE = SOAK_SECONDS / 30
SAMPLES = 120
PAUSE = min(2.0, AGE)  # between series of one modality

# Permitted growth of the last part over the first after the start, without the two largest steps: as a fraction, and as an
# absolute amount.
PARTS = 6
SLACK = {"rss_kib": (1.05, 2048), "descriptors": (1.0, 2), "threads": (1.0, 1), "database_kib": (1.1, 512),
         "files": (1.2, 20), "rows": (1.2, 100)}
TABLES = ("series", "instance", "job", "result", "delivery", "event", "feature", "quarantine", "removal")


def retention():
    days = AGE / 86400
    return (f"retention = {{ series_days = {days}; results_days = {days}; quarantine_days = {days}; events_days = {days}; "
            "min_days = 0.0; };\n")


def of_process(pid):
    lines = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"rss_kib": int(lines["VmRSS"].split()[0]), "threads": int(lines["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


def sample(d):
    """Returns the resources of the service: {(resource, process): number}."""
    found = collections.Counter()
    for role, pids in {"daemon": [d.process.pid], **{role: d.children(role) for role in ("intake", "courier", "worker", "page")}}.items():
        for pid in pids:
            with contextlib.suppress(OSError):
                found.update({(what, role): number for what, number in of_process(pid).items()})
    with contextlib.suppress(OSError):
        # Without its log, which SQLite moves into the file whenever the log reaches 4 MiB.
        found["database_kib", "daemon"] = (d.root / "noctule.db").stat().st_size // 1024
    found["files", "daemon"] = sum(len(names) for _, _, names in os.walk(d.root))
    for table in TABLES:
        found["rows", table] = d.query(f"SELECT count(*) FROM {table}")[0][0]
    return found


def watch(d, hospital, archive):
    """Samples until the end of the run. Delivered results are removed, because an archive's disk is not the
    service's."""
    samples, end = [], time.monotonic() + SOAK_SECONDS
    while time.monotonic() < end:
        hospital.closing.wait(SOAK_SECONDS / SAMPLES)
        samples.append(sample(d))
        if len(samples) % 10 == 0:
            print(json.dumps({" ".join(key): number for key, number in sorted(samples[-1].items())}), flush=True)
        for path in [*pathlib.Path(d.folder, "out").rglob("*.dcm"), *archive.files()]:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > AGE:
                    path.unlink()
    return samples


def grown(samples):
    """Returns the resources that grew: [(resource, process, medians of the parts of the run)], and prints all
    compared ones. A leak grows in every part. The two largest steps between parts do not count, because the heap of
    each lane takes its pages at once for the first large request."""
    begin = len(samples) // 10
    each_part = (len(samples) - begin) // PARTS
    found = []
    for what, whose in sorted(samples[-1]):
        values = [each[what, whose] for each in samples[begin:]]
        parts = [statistics.median(values[i * each_part:(i + 1) * each_part]) for i in range(PARTS)]
        steps = sum(sorted((max(0, after - before) for before, after in itertools.pairwise(parts)), reverse=True)[:2])
        print(f"{what:12} {whose:10}", *(f"{part:10.0f}" for part in parts))
        factor, more = SLACK[what]
        if parts[-1] - steps > parts[0] * factor + more:
            found.append((what, whose, parts))
    return found


def bad_files(d, hospital):
    """Copies files without an image: they are quarantined, and later removed."""
    number = 0
    while not hospital.closing.wait(PAUSE * 5):
        number += 1
        (d.inbox / f"bad {number}.dcm").write_bytes(b"no DICOM" * 100)


def paced(hospital, one):
    while not hospital.closing.wait(PAUSE):
        one()


def test_resources_do_not_grow(tmp_path):
    d = None
    try:
        with storescp(tmp_path / "archive", ["--unique-filenames"]) as archive:
            # Each thread has its own heap, so the memory of a machine with many cores grows for longer than this run.
            d = service(tmp_path / "service", retention(), compute="threads = 2;", PACS=archive.port).start()

            def kept():
                return {role: d.children(role) for role in ("intake", "worker", "page")}

            wait_for(lambda: all(kept().values()), what="the children")
            children = kept()
            hospital = Hospital(d, tmp_path / "sources", 1)
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                people = [pool.submit(paced, hospital, one)
                          for one in (hospital.send_series, hospital.send_series, hospital.copy_series)]
                people += [pool.submit(hospital.stranger), pool.submit(hospital.reader), pool.submit(bad_files, d, hospital)]
                try:
                    samples = watch(d, hospital, archive)
                finally:
                    hospital.closing.set()
                for each in people:
                    each.result()
            print(f"{SOAK_SECONDS:.0f} s: {len(hospital.promised)} instances, {hospital.lies} hostile connections")
            assert kept() == children, "a child was started again"
            assert grown(samples) == []
            # Rows are removed when their files have been gone as long as these existed. Ten sweeps fall into that
            # time.
            wait_for(lambda: not any(d.query(f"SELECT 1 FROM {table} LIMIT 1") for table in ("series", "job", "removal")),
                     SECONDS + 3 * AGE, "the end of everything by its age")
            assert d.stop(signal.SIGTERM) == 0
    finally:
        if d:
            d.kill_all()

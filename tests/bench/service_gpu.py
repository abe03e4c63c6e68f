#!/usr/bin/env python3
"""Measures series per second through the whole service; see service_gpu.sh. Uses only the standard library."""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "{inbox}"; after = "delete"; settle_seconds = 0.2; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 2.0; complete_seconds = 0.5; }};
jobs = {{ max_attempts = 1; }};
compute = {{ {compute} lanes = {lanes}; threads = {threads}; keep_mib = {keep_mib}; }};
min_free_mib = 256;
pipelines = ( {{ name = "ct"; review = "deliver";
{segments}
}} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "ct"; }} );
"""

# One level set in the middle.
LEVEL_SET = """segments = (
  { label = "Brain"; range = [ 0.0, 80.0 ];
    shapes = ( { kind = "sphere"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 40.0; } );
    category = { code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; };
    type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } );"""

# A missing GPU, so that jobs wait while the series are received.
NOBODY = 'backend = "cuda"; devices = [ "9999" ];'

STAGES = ("read", "compute", "write", "verify", "total")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of noctuled, noctule, noctule-phantom")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder on a local disk; emptied")
    parser.add_argument("--backend", default="cuda", choices=("auto", "cuda", "cpu"))
    parser.add_argument("--series", type=int, default=16)
    parser.add_argument("--kind", default="ct-head", help="of the phantom")
    parser.add_argument("--preset", default="", help="its segments instead of one level set")
    parser.add_argument("--source", type=pathlib.Path, help="series are made in there, or taken from there, and stay")
    parser.add_argument("--size", default="512x512x300")
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=0, help="compute.threads; 0: the service's own choice")
    parser.add_argument("--keep-mib", type=float, default=256.0, help="compute.keep_mib")
    parser.add_argument("--held", action="store_true", help="the worker is there before the series: the queue is held until all are")
    parser.add_argument("--deadline", type=float, default=300.0, help="seconds for the jobs; also for taking in")
    parser.add_argument("--keep", action="store_true", help="leave the work folder as it is at the end")
    return parser.parse_args()


class Service:
    def __init__(self, arguments):
        self.arguments = arguments
        self.root = arguments.work / "root"
        self.inbox = arguments.work / "inbox"
        self.config = arguments.work / "noctule.conf"
        self.log = arguments.work / "log"
        self.process = None
        for folder in (self.root, self.inbox):
            folder.mkdir(parents=True)

    def configure(self, compute):
        preset = self.arguments.preset
        self.config.write_text(SETTINGS.format(root=self.root, inbox=self.inbox, compute=compute,
                                               segments=f'@include "presets/{preset}.conf"' if preset else LEVEL_SET,
                                               lanes=self.arguments.lanes, threads=self.arguments.threads,
                                               keep_mib=self.arguments.keep_mib))

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.arguments.bin / "noctuled", "--config", self.config], stderr=log,
                                            stdout=log)

    def control(self, *command):
        subprocess.run([self.arguments.bin / "noctule", command[0], "--config", self.config, *command[1:]], check=True,
                       stdout=subprocess.DEVNULL)

    def query(self, sql):
        try:
            with contextlib.closing(sqlite3.connect(f"file:{self.root}/noctule.db?mode=ro", uri=True,
                                                    timeout=10)) as db:
                db.row_factory = sqlite3.Row
                return db.execute(sql).fetchall()
        except sqlite3.OperationalError:
            return []  # not complete yet

    def wait(self, sql, wanted, what):
        deadline = time.monotonic() + self.arguments.deadline
        while True:
            rows = self.query(sql)
            if rows and rows[0][0] >= wanted:
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                got = rows[0][0] if rows else 0
                events = [tuple(row) for row in self.query("SELECT kind, detail FROM v_events ORDER BY event DESC LIMIT 5")]
                sys.exit(f"{what}: {got} of {wanted}; {events}; the end of the log:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.1)

    def worker_seconds(self):
        """Returns the CPU seconds of the workers, user and system."""
        ticks = os.sysconf("SC_CLK_TCK")
        user = system = 0
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError):
                if b"--role\0worker" in (entry / "cmdline").read_bytes():
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    user, system = user + int(fields[11]), system + int(fields[12])
        return user / ticks, system / ticks

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
            if self.process.poll() is None:
                self.process.kill()


def generate(arguments, folder):
    """Generates series, hidden from the inbox until they are complete; as many at a time as there are CPUs."""
    def one(number):
        made = (arguments.source or folder) / f"{number}"
        if not made.exists():
            subprocess.run([arguments.bin / "noctule-phantom", "--kind", arguments.kind, "--output", made, "--size",
                            arguments.size, "--seed", str(number)], check=True, stdout=subprocess.DEVNULL)
        if arguments.source:
            shutil.copytree(made, folder / made.name)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, range(1, arguments.series + 1)))


def feed(folder, inbox):
    """Renames the series into place, so that each file is complete when it appears. Returns their number."""
    count = 0
    for path in sorted(folder.rglob("*.dcm")):
        path.rename(inbox / f"{path.parent.name}-{path.name}")
        count += 1
    return count


def report(arguments, service, processor):
    jobs = service.query("SELECT *, (julianday(ended_at) - julianday((SELECT min(started_at) FROM v_jobs))) * 86400.0 "
                         "AS done_after FROM v_jobs WHERE state = 'DONE' ORDER BY ended_at")
    after = [job["done_after"] for job in jobs]
    half = len(jobs) // 2
    ready = service.query("SELECT detail FROM v_events WHERE kind = 'COMPUTE_READY' ORDER BY event DESC LIMIT 1")
    workers = ready[0]["detail"].split(", ")
    busy = sum(job["total_seconds"] for job in jobs)
    line = {
        "case": "service", "segments": arguments.preset or "level-set", "backend": sorted({job["backend"] for job in jobs}), "size": arguments.size,
        "series": len(jobs), "lanes": arguments.lanes, "processors": os.cpu_count(),
        "workers": workers,
        "seconds": round(after[-1], 3),
        "series_per_second": round(len(jobs) / after[-1], 2),
        # Skip the first half, the warm-up: it reserves memory and touches pages.
        "series_per_second_second_half": round((len(jobs) - half) / (after[-1] - after[half - 1]), 2) if half else None,
        # The rest to 1 is a lane's wait for the daemon: two commits and a job's file per job.
        "lanes_busy": round(busy / (after[-1] * arguments.lanes * len(workers)), 3),
        "worker_processor_seconds_per_series": [round(each / len(jobs), 3) for each in processor],
        "peak_mib": max(job["peak_mib"] for job in jobs),
        "notes": sorted({job["note"] for job in jobs if job["note"]}),
    }
    for stage in STAGES:
        values = [job[f"{stage}_seconds"] for job in jobs]
        line[f"{stage}_seconds"] = {"median": round(statistics.median(values), 4), "max": round(max(values), 4)}
    print(json.dumps(line), flush=True)


def measure(arguments, service):
    source = arguments.work / "source"
    generate(arguments, source)
    backend = f'backend = "{arguments.backend}";'
    service.configure(backend if arguments.held else NOBODY)
    service.start()
    if arguments.held:
        service.wait("SELECT count(*) FROM v_events WHERE kind = 'COMPUTE_READY'", 1, "a worker")
        service.control("pause", "--reason", "until all are there")
    files = feed(source, service.inbox)
    service.wait("SELECT count(*) FROM v_jobs WHERE state = 'READY'", arguments.series,
                 f"series taken in and settled ({files} files)")
    os.sync()  # jobs must not wait for pending writes of the receiver
    service.configure(backend)
    if arguments.held:
        service.control("resume")
    else:
        service.process.send_signal(signal.SIGHUP)
    before = service.worker_seconds()
    service.wait("SELECT count(*) FROM v_jobs WHERE state NOT IN ('READY', 'RUNNING')", arguments.series, "jobs ended")
    processor = [b - a for a, b in zip(before, service.worker_seconds())]
    bad = service.query("SELECT job, state, code, message FROM v_jobs WHERE state <> 'DONE'")
    if bad:
        sys.exit(f"not DONE: {[tuple(row) for row in bad]}")
    report(arguments, service, processor)


def main():
    arguments = parse()
    if arguments.series < 1:
        sys.exit("--series has to be at least 1")
    arguments.bin = arguments.bin.resolve()
    arguments.work = arguments.work.resolve() / "noctule-service-bench"
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    service = Service(arguments)
    try:
        measure(arguments, service)
    finally:
        service.stop()
        if not arguments.keep:
            shutil.rmtree(arguments.work, ignore_errors=True)


if __name__ == "__main__":
    main()

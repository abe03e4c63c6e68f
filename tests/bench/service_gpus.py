#!/usr/bin/env python3
"""
Measures series per second through the whole service on one GPU of a host and on several; a JSON line for each.

    service_gpus.py --bin BIN --work WORK [--on 1x16x4,2x32x4,4x64x4] [--series N] [--seconds S]

The service receives the series once, through the inbox. For each of --on it is started on that many GPUs and CPUs, with that
many lanes per GPU and, if given, threads. Its workers reserve their memory. While the queue is held, pipelines that differ only
in their names create jobs for all series. The queue is released, and after --warm seconds, the jobs that end within --seconds
are counted. All files are in the page cache, or in memory if WORK is.

Also prints the load: busy CPUs of the machine (/proc/stat), seconds of the daemon's one thread per wall-clock second, how busy
the lanes were, and the uploads to each GPU. Needs only the standard library.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from service_gpu import LEVEL_SET, STAGES, Service, feed, generate

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "{inbox}"; after = "delete"; settle_seconds = 0.2; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 2.0; complete_seconds = 0.5; }};
jobs = {{ max_attempts = 1; }};
compute = {{ {compute} lanes = {on.lanes}; threads = {on.threads}; keep_mib = 256.0; }};
min_free_mib = 256;
pipelines = ( {pipelines} );
rules = ( );
"""

PIPELINES = 256
On = collections.namedtuple("On", "gpus processors lanes threads", defaults=[4, 0])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of noctuled, noctule, noctule-phantom")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder for the root; emptied")
    parser.add_argument("--on", default="1x16,2x32,4x64", help="GPUs, processors, lanes of each, threads, joined by x; 0 GPUs: processors compute")
    parser.add_argument("--series", type=int, default=64)
    parser.add_argument("--size", default="512x512x300")
    parser.add_argument("--kind", default="ct-head", help="of the phantom")
    parser.add_argument("--rate", type=float, default=60, help="series a second that are the most of a GPU: so many jobs are made")
    parser.add_argument("--warm", type=float, default=3.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--deadline", type=float, default=300.0, help="seconds for taking in")
    parser.set_defaults(source=None)
    return parser.parse_args()


def gpus_there():
    """Returns UUIDs, in the order of nvidia-smi."""
    listed = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], text=True, capture_output=True, check=True)
    return listed.stdout.split()


class Host(Service):
    """Runs a service with other GPUs and CPUs at each start."""

    def __init__(self, arguments):
        super().__init__(arguments)
        self.rounds = 0
        self.processors = os.sched_getaffinity(0)

    def configure(self, on, gpus):
        names = ", ".join(f'"{uuid}"' for uuid in gpus)
        compute = f'backend = "cuda"; devices = [ {names} ];' if gpus else 'backend = "cpu";'
        pipelines = ",\n".join(f'{{ name = "p{i}"; review = "deliver";\n{LEVEL_SET} }}' for i in range(PIPELINES))
        self.config.write_text(SETTINGS.format(root=self.root, inbox=self.inbox, compute=compute, on=on,
                                               pipelines=pipelines))

    def workers_ready(self):
        return self.log.read_text().count("event=child.ready child=worker") if self.log.exists() else 0

    def begin(self, on, gpus):
        """Starts the service on these, and waits for all workers."""
        self.configure(on, gpus[:on.gpus])
        wanted = self.workers_ready() + max(on.gpus, 1)
        os.sched_setaffinity(0, sorted(self.processors)[:on.processors])
        self.start()
        os.sched_setaffinity(0, self.processors)
        deadline = time.monotonic() + self.arguments.deadline
        while self.workers_ready() < wanted:
            if time.monotonic() > deadline:
                sys.exit(f"{wanted} worker(s) did not come; the end of the log:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def end(self):
        self.stop()
        for job in (self.root / "outbox").iterdir():  # makes space for the next
            shutil.rmtree(job)


def fill(arguments, host):
    """Receives all series; no job may start."""
    source = arguments.work / "source"
    generate(arguments, source)
    host.begin(On(0, len(host.processors)), [])
    host.control("pause", "--reason", "until all are there")
    files = feed(source, host.inbox)
    host.wait("SELECT count(*) FROM series WHERE state = 'SETTLED'", arguments.series, f"series settled ({files} files)")
    host.end()


def ticks(path, *fields):
    """Returns fields of a line of /proc, in seconds."""
    return [int(path.read_text().split("\n")[0].rpartition(")")[2].split()[field]) / os.sysconf("SC_CLK_TCK") for field in fields]


def processors_busy():
    """Returns the seconds of all CPUs, (busy, all)."""
    spent = ticks(pathlib.Path("/proc/stat"), *range(1, 9))
    return sum(spent) - spent[3] - spent[4], sum(spent)


def state(host):
    user, system = ticks(pathlib.Path(f"/proc/{host.process.pid}/stat"), 11, 12)
    return {"at": time.time(), "daemon": user + system, "busy": processors_busy(), "workers": host.worker_seconds()}


def report(arguments, on, host, first, last):
    span = last["at"] - first["at"]
    jobs = host.query("SELECT * FROM v_jobs WHERE state = 'DONE' AND julianday(ended_at) >= julianday("
                      f"{first['at']}, 'unixepoch') AND julianday(ended_at) < julianday({last['at']}, 'unixepoch')")
    left = host.query("SELECT count(*) FROM v_jobs WHERE state = 'READY'")[0][0]
    bad = host.query("SELECT count(*) FROM v_jobs WHERE state NOT IN ('DONE', 'READY')")[0][0]
    if bad or not left or not jobs:
        sys.exit(f"{len(jobs)} jobs done, {bad} not DONE, {left} left: more have to be made (--rate), or they do not run")
    columns, rows, slices = map(int, arguments.size.split("x"))
    rate = len(jobs) / span
    busy, total = (b - a for a, b in zip(first["busy"], last["busy"]))
    line = {
        "case": "service-gpus", **on._asdict(), "size": arguments.size,
        "seconds": round(span, 1), "jobs": len(jobs), "series_per_second": round(rate, 2),
        "processors_busy": round(busy / total * os.cpu_count(), 1),
        "worker_seconds_per_series": [round((b - a) / len(jobs), 3) for a, b in zip(first["workers"], last["workers"])],
        "daemon_busy": round((last["daemon"] - first["daemon"]) / span, 3),
        "lanes_busy": round(sum(job["total_seconds"] for job in jobs) / (span * on.lanes * max(on.gpus, 1)), 3),
        "upload_gb_per_second_and_gpu": round(rate * columns * rows * slices * 2 / 1e9 / max(on.gpus, 1), 2),
    }
    for stage in STAGES:
        line[f"{stage}_ms"] = round(1000 * statistics.median(job[f"{stage}_seconds"] for job in jobs), 1)
    print(json.dumps(line), flush=True)


def make_jobs(host, count):
    """Creates jobs until at least this number is queued."""
    while host.query("SELECT count(*) FROM v_jobs WHERE state = 'READY'")[0][0] < count:
        if host.rounds == PIPELINES:
            sys.exit("more series are needed (--series)")
        host.control("submit", "--all", "--pipeline", f"p{host.rounds}")
        host.rounds += 1
    os.sync()


def measure(arguments, host, on, gpus):
    host.begin(on, gpus)
    make_jobs(host, arguments.rate * max(on.gpus, 1) * (arguments.warm + arguments.seconds + 1))
    host.control("resume")
    time.sleep(arguments.warm)  # the measured time begins then, without a wait
    first = state(host)
    time.sleep(arguments.seconds)
    last = state(host)
    host.control("pause", "--reason", "between two measurements")
    deadline = time.monotonic() + 60
    while host.query("SELECT count(*) FROM v_jobs WHERE state = 'RUNNING'")[0][0] and time.monotonic() < deadline:
        time.sleep(0.1)
    report(arguments, on, host, first, last)
    host.end()


def main():
    arguments = parse()
    arguments.bin = arguments.bin.resolve()
    arguments.work = arguments.work.resolve() / "noctule-service-gpus"
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    wanted = [On(*map(int, each.split("x"))) for each in arguments.on.split(",")]
    there = gpus_there() if any(on.gpus for on in wanted) else []
    host = Host(arguments)
    if any(on.gpus > len(there) or on.processors > len(host.processors) for on in wanted):
        sys.exit(f"{len(there)} GPUs and {len(host.processors)} processors are there: --on {arguments.on} asks for more")
    try:
        fill(arguments, host)
        for on in wanted:
            measure(arguments, host, on, there)
    finally:
        host.stop()
        with contextlib.suppress(OSError):
            shutil.rmtree(arguments.work)


if __name__ == "__main__":
    main()

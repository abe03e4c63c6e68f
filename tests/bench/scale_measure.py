#!/usr/bin/env python3
"""
Measures the inputs of scale.py and checks its results: the service on a local Slurm on this machine (tests/integ/cluster.py).

  scale_measure.py inputs [RUNS]      measures RUNS times and prints the input file of scale.py (scale.json): the best of each
  scale_measure.py compare [FILE]     prints makespans of real runs and those of scale.py with that file

NOCTULE_BIN: the programs, as for the tests; $TMPDIR is on the disk to measure. Run it with the tests' Python.
"""

import concurrent.futures
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integ")]

import scale  # noqa: E402
from cluster import Cluster  # noqa: E402
from conftest import BIN, SOURCE, Daemon, drop, phantom, wait_for  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def timed(call, *arguments, clock=time.monotonic):
    begun = clock()
    call(*arguments)
    return clock() - begun


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


# ---------------------------------------------------------------------------------------- Slurm ----


def slurm_site(folder, **options):
    return contextlib.closing(StoppedCluster(folder, **options).start())


class StoppedCluster(Cluster):
    close = Cluster.stop


def submit(site, *arguments):
    site.ask("sbatch", "--parsable", "--no-requeue", "--job-name=noctule-0123456789abcdef", "--chdir=/", "--output=/dev/null",
             "--comment=0123456789abcdef0123456789abcdef", *arguments)


def measure_squeue(site):
    return statistics.median(timed(site.ask, "squeue", "--noheader", "--states=all", "--name=noctule-0123456789abcdef",
                                   "--format=%i|%T|%k|%N|%r") for _ in range(7))


def measure_slurm(folder):
    """Measures sbatch, squeue by jobs listed, and the time between the end of a task and the next on its CPU."""
    with slurm_site(folder / "turn", cpus=1) as site:
        tasks = 20

        def ended():
            return list(site.jobs().values()).count("COMPLETED")

        for _ in range(tasks + 2):
            submit(site, "--wrap=true")
        wait_for(lambda: ended() >= 2, 60, "the first, which take longer")
        begun, before = time.monotonic(), ended()
        wait_for(lambda: ended() == tasks + 2, 120, "the end of all tasks")
        turn = (time.monotonic() - begun) / (tasks + 2 - before)
    with slurm_site(folder / "queue", cpus=1) as site:
        listed, squeue = 2000, {0: measure_squeue(site)}
        sbatch = statistics.median(timed(submit, site, "--hold", "--wrap=true") for _ in range(50))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: submit(site, "--hold", "--wrap=true"), range(listed - 50)))
        squeue[listed] = measure_squeue(site)
    return {"sbatch_seconds": sbatch, "squeue_seconds": squeue[0],
            "squeue_seconds_per_job": (squeue[listed] - squeue[0]) / listed, "turn_seconds": turn}


# --------------------------------------------------------------------------------------- copies ----


def stage(source, folder):
    """Stages files like attempt_make.c: reads, digests and writes each file, then syncs all."""
    folder.mkdir()
    for path in source:
        with open(path, "rb") as reader, open(folder / path.name, "wb") as writer:
            digest = hashlib.sha256()
            while block := reader.read(1 << 20):
                digest.update(block)
                writer.write(block)
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    os.sync()


def digest_all(source):
    for path in source:
        with open(path, "rb") as reader:
            hashlib.file_digest(reader, "sha256")


def copy_all(source):
    """Copies into memory, to exclude the speed of the share."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for path in source:
            shutil.copyfile(path, f"{folder}/{path.name}")


def measure_copies(folder):
    series, few = (phantom(folder / size, "--size", size) for size in ("512x512x300", SMALL))
    size = sum(path.stat().st_size for path in series)
    digest_all(series)
    digest = size / statistics.median(timed(digest_all, series, clock=time.process_time) for _ in range(5))
    plain = size / statistics.median(timed(copy_all, series, clock=time.process_time) for _ in range(5))
    copied = size / statistics.median(timed(stage, series, folder / f"copy{i}") for i in range(3))
    for i in range(3):
        stage(few, folder / f"few{i}")
    removed, removed_few = (statistics.median(timed(shutil.rmtree, folder / f"{name}{i}", clock=time.process_time)
                                              for i in range(3)) for name in ("copy", "few"))
    probes = 10000
    probed = timed(lambda: [os.access(series[0].parent / "manifest", os.R_OK) for _ in range(probes)]) / probes
    shutil.rmtree(folder)
    return {"digest_bytes_per_second": digest, "copy_bytes_per_second": plain, "staged_bytes_per_second": copied, "probe_seconds": probed}, \
        {"cpu": {"input_bytes": size, "dismiss_seconds": removed}, "small": {"dismiss_seconds": removed_few}}


# ------------------------------------------------------------------------------------- the service --


class Service:
    """Runs a daemon that sends its jobs to that Slurm. A node sleeps for `seconds` before each job, and records its time."""

    def __init__(self, folder, site, seconds):
        self.site, self.times = site, folder / "times"
        wrapper = folder / "noctule-asleep"
        folder.mkdir(parents=True)
        wrapper.write_text('#!/bin/bash\nshift\nfor each; do\nbegun=$EPOCHREALTIME\n'
                           f'sleep {seconds}\n{BIN}/noctule run-job "$each"\n'
                           f'echo $begun $EPOCHREALTIME >>{self.times}\ndone\n')
        wrapper.chmod(0o755)
        self.daemon = Daemon(folder, environment=site.environment)
        self.text = self.daemon.config.read_text().replace('log_level = "debug"', 'log_level = "info"')
        self.slurm = f'share = "{site.share}"; program = "{wrapper}"; poll_seconds = 1.0;'
        self.configure(0)
        self.daemon.start()

    def configure(self, batch_seconds):
        self.daemon.config.write_text(self.text.replace("compute = { lanes = 2; };", (
            f'compute = {{ lanes = 2; executor = "slurm"; slurm = {{ {self.slurm} batch_seconds = {batch_seconds:.4f}; }}; }};')))

    def group(self, size):
        """Sets the size of later groups of jobs, by the mean time of the completed ones."""
        (row,) = self.daemon.query("SELECT avg(total_seconds) AS mean FROM v_jobs WHERE state = 'DONE'")
        told = self.daemon.log.read_text().count("event=config.reloaded")
        self.configure(row["mean"] * (size + 0.5) if size > 1 else 0)
        self.daemon.process.send_signal(signal.SIGHUP)
        self.daemon.wait_log("event=config.reloaded", told + 1)

    def done(self):
        return self.daemon.query("SELECT count(*) AS count FROM v_jobs WHERE state = 'DONE'")[0]["count"]

    def run(self, made):
        """Returns the seconds from the release of the jobs until all are DONE."""
        before = self.done()
        self.daemon.ctl("pause", "--reason", "so that they come together")
        for i, files in enumerate(made):
            drop(files, self.daemon.inbox / f"{before}-{i}")
        wait_for(lambda: len(self.daemon.jobs("READY")) == len(made), 300, "jobs that wait")
        pids = {"daemon": self.daemon.process.pid, "child": self.daemon.children("cluster")[0]}
        used = {name: processor_seconds(pid) for name, pid in pids.items()}
        begun = time.monotonic()
        self.daemon.ctl("resume")
        wait_for(lambda: self.done() == before + len(made), 1200, "the end of all jobs")
        seconds = time.monotonic() - begun
        self.used = {name: (processor_seconds(pid) - used[name]) / len(made) for name, pid in pids.items()}
        return seconds

    def node_seconds(self):
        """Returns the seconds of each attempt so far, on its node."""
        return [float(end) - float(begin) for begin, end in (line.split() for line in self.times.read_text().splitlines())]

    def close(self):
        self.daemon.stop()
        self.daemon.kill_all()


def make_series(folder, count, size):
    """Makes different series."""
    made = []
    for _ in range(count):
        make_series.seed += 1
        made.append(phantom(folder / str(make_series.seed), "--size", size, "--seed", make_series.seed))
    return made


make_series.seed = 0
# Medians of tests/bench/service_gpu.sh on one H200 with four lanes, 96 series of 512x512x300 from the page cache.
H200 = {"read_seconds": 0.034, "compute_seconds": 0.0003, "write_seconds": 0.012, "verify_seconds": 0.022}
SMALL = "48x40x8"


def between(stamps, count, threads=4):
    """Returns the seconds of a thread per stamp, from the last `count`, made `threads` at a time. Excludes the gaps of polls."""
    times = sorted(datetime.datetime.fromisoformat(each.replace("Z", "+00:00")).timestamp() for each in stamps)[-count:]
    return threads * statistics.mean(after - before for before, after in zip(times, times[1:]) if after - before < 0.5)


STAGES = ("read_seconds", "compute_seconds", "write_seconds", "verify_seconds")


def stages_of(daemon, count):
    rows = daemon.query(f"SELECT {', '.join(STAGES)} FROM v_jobs ORDER BY job DESC LIMIT ?", count)
    return {name: statistics.median(row[name] for row in rows) for name in STAGES}


def measure_service(folder):
    """Runs small jobs without sleep. Measures the time of the daemon, its child and a node per job, and its database bytes."""
    count = 100
    with slurm_site(folder / "site", cpus=1) as site, contextlib.closing(Service(folder / "service", site, 0)) as service:
        service.run(make_series(folder / "series", 5, SMALL))
        service.group(20)
        service.run(make_series(folder / "series", count, SMALL))
        used = service.used
        ends = service.daemon.query("SELECT ended_at FROM v_jobs ORDER BY job DESC LIMIT ?", count)
        collect = between([row["ended_at"] for row in ends], count)
        stages = stages_of(service.daemon, count)
        node = statistics.median(service.node_seconds()[5:])
        service.group(1)
        service.run(make_series(folder / "series", 40, SMALL))
        handed = service.daemon.query("SELECT submitted_at FROM v_jobs ORDER BY job DESC LIMIT 40")
        hand = between([row["submitted_at"] for row in handed], 40)
        size = sum(path.stat().st_size for path in (folder / "series" / "1").rglob("*.dcm"))
        results = sum(path.stat().st_size for path in (service.daemon.root / "outbox" / "1").iterdir())
        return {"job_seconds": used["daemon"], "child_job_seconds": used["child"], "hand_over_seconds": hand,
                "collect_seconds": collect}, {
                    **stages, "input_bytes": size, "result_bytes": results, "step_seconds": node - sum(stages.values())}


def measure_job(folder):
    """Runs series of 512x512x300, one after the other."""
    with slurm_site(folder / "site", cpus=1) as site, contextlib.closing(Service(folder / "service", site, 0)) as service:
        service.run(make_series(folder / "series", 5, "512x512x300"))
        outbox = [path.stat().st_size for path in (service.daemon.root / "outbox").rglob("*") if path.is_file()]
        stages = stages_of(service.daemon, 5)
        return {**stages, "result_bytes": sum(outbox) / 5}


def measure_database(folder):
    """Returns the database bytes of a series, its images and its job: of 8 images and of 300, independent of their size."""
    daemon = Daemon(folder)
    sizes = []
    for size, count in ((SMALL, 0), (SMALL, 40), ("48x40x300", 10)):
        daemon.start()
        before = len(daemon.jobs("DONE"))
        for i, files in enumerate(make_series(folder / "series", count, size)):
            drop(files, daemon.inbox / f"{size}-{i}")
        daemon.wait_jobs(before + count, seconds=300) if count else None
        daemon.stop()  # merges the write-ahead log into the database
        sizes.append((daemon.root / "noctule.db").stat().st_size)
    return {"small": (sizes[1] - sizes[0]) / 40, "cpu": (sizes[2] - sizes[1]) / 10}


def commit_seconds():
    """Returns the time of a transaction with one change, including its sync, from bench_queue."""
    text = subprocess.run([BIN / "bench_queue", "1"], check=True, text=True, capture_output=True, timeout=400).stdout
    cases = [json.loads(line) for line in text.splitlines()]
    print(text, file=sys.stderr)
    return next(case["commit_median_ms"] / 1000 for case in cases if case["case"] == "job state changes" and case["batch"] == 1)


def measure_inputs(folder):
    commit = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty"], check=True, text=True,
                            capture_output=True).stdout.strip()
    slurm = measure_slurm(folder)
    share, jobs = measure_copies(folder / "copies")
    daemon, small = measure_service(folder / "service")
    for name, size in measure_database(folder / "database").items():
        jobs[name]["database_bytes_per_job"] = size
    daemon["folder_seconds"] = max(0.0, daemon.pop("hand_over_seconds") - slurm["sbatch_seconds"])
    cpu = {**jobs["cpu"], "step_seconds": small["step_seconds"], **measure_job(folder / "job")}
    return {"measured": {"commit": commit, "date": str(datetime.date.today()), "processors": os.cpu_count(),
                         "load": os.getloadavg()[0], "python": sys.version.split()[0]},
            "slurm": slurm, "share": share, "daemon": {**daemon, "commit_seconds": commit_seconds()},
            "jobs": {"small": {**jobs["small"], **small}, "cpu": cpu, "gpu": {**cpu, **H200}}}


def best(runs):
    """Returns each figure from the least disturbed run."""
    if isinstance(runs[0], dict):
        return {name: best([run[name] for run in runs]) for name in runs[0]}
    return (runs[-1] if isinstance(runs[0], str) else
            max(runs) if runs[0] > 1e6 else min(runs))  # bytes per second, and bytes equal in all runs; seconds


# ----------------------------------------------------------------------------------------- compare --

# Nodes, jobs, group size, seconds of sleep per job.
CASES = ((1, 20, 1, 1.0), (2, 40, 1, 1.0), (4, 40, 1, 1.0), (1, 40, 10, 0.5), (2, 100, 10, 0.5), (4, 200, 10, 0.5), (4, 200, 5, 1.0))


def compare_one(folder, inputs, nodes, jobs, group, sleep):
    with slurm_site(folder / "site", nodes=nodes, cpus=1) as site, \
            contextlib.closing(Service(folder / "service", site, sleep)) as service:
        service.run(make_series(folder / "series", 4, SMALL))
        service.group(group)
        real = service.run(make_series(folder / "series", jobs, SMALL))
        work = sum(inputs.jobs["small"][name] for name in STAGES)
        told = scale.simulate(inputs, "small", nodes=nodes, series=jobs, sleep_seconds=sleep, poll_seconds=1.0,
                              batch_seconds=work * (group + 0.5) if group > 1 else 0.0)
        return real, told["seconds"]


def compare(folder, inputs):
    print("| nodes | jobs | together | each sleeps | measured | simulated | ratio |\n|---|---|---|---|---|---|---|")
    for i, (nodes, jobs, group, sleep) in enumerate(CASES):
        real, told = compare_one(folder / str(i), inputs, nodes, jobs, group, sleep)
        print(f"| {nodes} | {jobs} | {group} | {sleep} s | {real:.1f} s | {told:.1f} s | {told / real:.2f} |", flush=True)


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        if what == "inputs":
            count = int(sys.argv[2]) if len(sys.argv) > 2 else 1
            print(json.dumps(best([measure_inputs(pathlib.Path(name, str(i))) for i in range(count)]), indent=2))
        elif what == "compare":
            compare(pathlib.Path(name), scale.read_inputs(sys.argv[2] if len(sys.argv) > 2 else scale.INPUTS))
        else:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""
Measures series per second of a local worker and of one-CPU nodes of a Slurm on this machine, and the cost of the death of a
node: NOCTULE_BIN=... build/venv/bin/python tests/bench/slurm_nodes.py SERIES SECONDS NODES... [dies]
SERIES series of some seconds each; SECONDS is the limit per group; with `dies` one of two nodes dies.
"""

import contextlib
import os
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integ"))

from cluster import Cluster
from conftest import BIN, Daemon, drop, phantom, wait_for

SIZE = ("--size", "128x128x40")
HEAVY = 'texture = { families = [ "shape", "morphology", "spatial-correlation", "local-intensity" ]; };'
MANY = 3600


def waiting(folder, made, text, environment):
    """Returns a daemon that has measured the first series, with all others queued."""
    d = Daemon(folder, pipeline_extra=HEAVY, environment=environment)
    d.config.write_text(d.config.read_text().replace("compute = { lanes = 2; };\n", text))
    d.start()
    drop(made[0], d.inbox / "first")
    d.wait_jobs(1, seconds=MANY)
    d.ctl("pause", "--reason", "until all are there")
    for i, files in enumerate(made[1:]):
        drop(files, d.inbox / str(i))
    wait_for(lambda: len(d.jobs("READY")) == len(made) - 1, MANY, "all jobs")
    return d


def run(folder, made, text, environment=None, meanwhile=None):
    """Returns the seconds until all jobs are done."""
    d = waiting(folder, made, text, environment)
    try:
        began = time.monotonic()
        d.ctl("resume")
        if meanwhile:
            meanwhile(d)
        d.wait_jobs(len(made), seconds=MANY)
        took = time.monotonic() - began
        assert {job["state"] for job in d.jobs()} == {"DONE"}
        return took, d.jobs()
    finally:
        d.kill_all()


def tell(what, took, jobs):
    jobs = jobs[1:] if jobs[0]["job"] == 1 else jobs[:-1]
    work = sum(job["total_seconds"] for job in jobs)
    print(f"{what}: {took:.1f} s, {len(jobs) / took:.2f} series a second, work {work:.1f} s, "
          f"{len({job['slurm_id'] for job in jobs})} groups, {sum(job['attempts'] > 1 for job in jobs)} tried again", flush=True)


def main():
    series, seconds, nodes = int(sys.argv[1]), float(sys.argv[2]), [int(word) for word in sys.argv[3:] if word != "dies"]
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        folder = pathlib.Path(scratch)
        made = [phantom(folder / "in" / str(i), *SIZE, "--seed", i + 1) for i in range(series + 1)]
        local = "compute = { lanes = 1; threads = 1; };\n"
        tell("local, one lane", *run(folder / "local", made, local))

        def slurm(count):
            site = Cluster(folder / f"s{len(list(folder.iterdir()))}", nodes=count, cpus=1)
            stack.callback(site.stop)
            site.start()
            return site, (f'compute = {{ lanes = 1; threads = 1; executor = "slurm"; slurm = {{ share = "{site.share}"; '
                          f'program = "{BIN}/noctule"; batch_seconds = {seconds}; }}; }};\n')

        for count in nodes:
            site, text = slurm(count)
            tell(f"Slurm, {count} node(s)", *run(folder / f"slurm-{count}", made, text, site.environment))
            site.stop()
        if sys.argv[-1] != "dies":
            return
        site, text = slurm(2)

        def dies(d):
            wait_for(lambda: len(d.jobs("DONE")) > series // 4, MANY, "a quarter of it")
            site.kill("node0")
            site.ask("scontrol", "update", "NodeName=node0", "State=DOWN", "Reason=killed")
            for pid in site.steps():
                with contextlib.suppress(OSError):
                    if b"SLURMD_NODENAME=node0" in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                        os.kill(pid, signal.SIGKILL)

        tell("Slurm, 2 nodes, one dies", *run(folder / "dies", made, text, site.environment, dies))


main()

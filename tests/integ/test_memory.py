"""Memory of the real processes: after a large series it must be returned to the system."""

import pathlib
import re
import threading

import pytest
from conftest import Clock, phantom, put, wait_for

MIB = 1 << 10  # of the KiB in /proc


def resident(pid):
    """Returns KiB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1])


class Peaks:
    """Records the peak memory of each process during the block. Samples are frequent enough for each job."""

    def __init__(self, pids):
        self.most = {name: resident(pid) for name, pid in pids.items()}
        self.pids, self.over = pids, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.01):
            for name, pid in self.pids.items():
                self.most[name] = max(self.most[name], resident(pid))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def test_memory_of_a_large_series_is_returned(daemon, tmp_path):
    """By the receiver, which reads headers of frames, the worker, which holds the volume, and the daemon."""
    clock = Clock(tmp_path)
    # Each thread has its own heap, so the remaining memory depends on the number of cores.
    d = daemon(quiet=0.5, environment=clock.environment, compute="threads = 2;").start()
    pids = {role: wait_for(lambda role=role: d.children(role), 60, role)[0] for role in ("intake", "worker")}
    pids["daemon"] = d.process.pid
    put(phantom(tmp_path / "small", "--size", "32x32x6"), d.inbox / "small")
    d.wait_jobs(1)
    before = {role: resident(pid) for role, pid in pids.items()}
    with Peaks(pids) as peaks:
        for seed in ("1", "2"):
            large = phantom(tmp_path / seed, "--seed", seed, "--multi-frame", "--spacing", "1,1,1", "--size", "16x16x65536")
            put(large, d.inbox / seed)
        d.wait_jobs(3, states=("DONE", "EMPTY"), seconds=280)
    for role in ("intake", "worker"):
        assert peaks.most[role] > before[role] + 64 * MIB, f"the {role} needed too little for this to tell anything"

    def grown():
        return {role: (resident(pid) - before[role]) // MIB for role, pid in pids.items()}

    try:
        wait_for(lambda: clock.pass_time(1) or max(grown().values()) < 16, 120, "the memory")
    except pytest.fail.Exception:
        print("MiB more than before, and the most there were:", grown(), peaks.most)
        raise

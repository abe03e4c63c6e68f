"""
The n-th call of each kind fails, in each process, once or for good, through all of the service's work: start, receive,
settle, run, deliver, stop. Afterwards everything is there once, and nothing is left over.

NOCTULE_FAULT_POINTS is how many points of each process and call are tried, from the first to the last that is reached:
a few for every day, all (0) for a night.
"""

import collections
import concurrent.futures
import itertools
import os
import signal
import threading
import time

import pydicom
import upper_layer
from conftest import wait_for
from disasters import CALLS, ROLES
from hospital import SECONDS, Slice, make_series, service
from invariants import check, settled, unsent

POINTS = int(os.environ.get("NOCTULE_FAULT_POINTS", "1"))
WORKERS = int(os.environ.get("NOCTULE_FAULT_WORKERS", "3"))
KINDS = [(role, call) for role in (*ROLES, "daemon") for call in CALLS if (role, call) != ("daemon", "unlink")]


class Work:
    """One life of a service, with a fault in it."""

    def __init__(self, folder, sent, copied):
        self.d = service(folder)
        self.hit = self.d.folder / "hit"
        self.sent, self.copied = sent, copied
        self.sessions = set()

    def start(self, **more):
        self.d.environment.update(more)
        self.d.start(wait=False)
        self.sessions.add(self.d.process.pid)

    def revive(self):
        """The system's service manager."""
        if self.d.process.poll() is not None:
            self.d.start(wait=False)
            self.sessions.add(self.d.process.pid)

    def without_fault(self):
        """From now on nothing fails any more."""
        if self.d.process.poll() is None:
            self.d.process.send_signal(signal.SIGTERM)
            self.d.process.wait(SECONDS)
        del self.d.environment["NOCTULE_FAULT"]
        self.start()

    def send(self, until):
        """Sends again and again what is not acknowledged."""
        waiting = [Slice(pydicom.dcmread(path)) for path in self.sent]
        for path in self.copied:
            target = self.d.inbox / "copied" / path.name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
        while waiting and not until():
            try:
                with upper_layer.associated(self.d.port) as peer:
                    while waiting and peer.store(waiting[0].data, waiting[0].instance) == 0:
                        waiting.pop(0)
            except (OSError, EOFError, AssertionError):
                time.sleep(0.02)
            self.revive()
        return waiting

    def is_over(self):
        self.revive()
        return len(self.d.jobs("DONE")) == 2 and not unsent(self.d)

    def fail_once(self, fault):
        self.start(NOCTULE_FAULT=fault, NOCTULE_FAULT_HIT=str(self.hit), NOCTULE_FAULT_UNDER=str(self.d.folder))
        assert not self.send(until=lambda: False)
        wait_for(self.is_over, SECONDS, f"the end of the work after {fault}")

    def fail_for_good(self, fault):
        """A while of that; then it is over, and so is the work in the end."""
        self.start(NOCTULE_FAULT=f"{fault} always", NOCTULE_FAULT_HIT=str(self.hit),
                   NOCTULE_FAULT_UNDER=str(self.d.folder))
        deadline = time.monotonic() + 2
        self.send(until=lambda: time.monotonic() > deadline)
        while time.monotonic() < deadline and not self.is_over():
            time.sleep(0.05)
        self.without_fault()
        assert not self.send(until=lambda: False)
        wait_for(self.is_over, SECONDS, f"the end of the work after {fault}, always")

    def check(self):
        settled(self.d)
        self.d.process.send_signal(signal.SIGTERM)
        assert self.d.process.wait(SECONDS) == 0
        check(self.d, {each.instance: each for each in map(Slice, map(pydicom.dcmread, self.sent + self.copied))},
              self.sessions)


class Trial:
    """All that is tried; several at once."""

    def __init__(self, folder):
        self.folder = folder
        self.sent, self.copied = make_series(folder / "sent", 1), make_series(folder / "copied", 2)
        self.numbers = itertools.count()
        self.counts = collections.Counter()
        self.lock = threading.Lock()

    def reaches(self, fault, always):
        """Does the work come to the point where it fails? What comes of it is checked."""
        with self.lock:
            folder = self.folder / str(next(self.numbers))
        work = Work(folder, self.sent, self.copied)
        try:
            (work.fail_for_good if always else work.fail_once)(fault)
            work.check()
        except BaseException as error:
            raise AssertionError(f"{fault}{' always' if always else ''}, in {folder}") from error
        finally:
            work.d.kill_all()
        with self.lock:
            self.counts[" ".join(fault.split()[:2])] += work.hit.exists()
        return work.hit.exists()

    def points(self, call):
        """Which calls fail: all of them one after the other, or each about four times as far on as the one before."""
        if POINTS == 0 and call != "malloc":
            return itertools.count(1)
        steps = 40 if POINTS == 0 else POINTS
        base = 1.3 if POINTS == 0 else 4
        return dict.fromkeys(int(base ** (i + 1)) for i in range(steps))

    def run(self, role, call):
        for n in self.points(call):
            fault = f"{role} {call} {n} {CALLS[call]}"
            if not self.reaches(fault, always=False):
                break
            self.reaches(fault, always=True)


def test_any_call_may_fail(tmp_path):
    trial = Trial(tmp_path)
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for each in [pool.submit(trial.run, *kind) for kind in KINDS]:
            each.result()
    print(f"{sum(trial.counts.values())} faults in {time.monotonic() - start:.0f} s: {dict(trial.counts)}")

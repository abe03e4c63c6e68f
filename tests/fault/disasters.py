"""Disasters of the service: each is a method of Disasters, drawn in seeded order, and counted."""

import collections
import contextlib
import errno
import os
import random
import re
import signal
import struct
import subprocess
import time

from conftest import SOURCE, Clock, wait_for
from hospital import SECONDS, unreadable_things

ROLES = ("intake", "courier", "worker", "page")
CALLS = {"open": errno.EMFILE, "write": errno.EIO, "fsync": errno.EIO, "rename": errno.EIO, "mkdir": errno.ENOSPC,
         "unlink": errno.EIO, "malloc": errno.ENOMEM, "read": errno.EIO, "descriptor": errno.EMFILE, "send": errno.ENOBUFS,
         "receive": errno.ECONNRESET}


def crash_points():
    """Returns the named points of the programs, from their sources."""
    text = "".join(path.read_text() for path in sorted((SOURCE / "service").rglob("*.c")))
    return sorted(set(re.findall(r'crash_point\("(\w+)"\)', text)))


def happened(hit):
    """Returns, per fault with a mark in this file, 0 or its place (faults.c)."""
    data = hit.read_bytes() if hit.exists() else b""
    return struct.unpack(f"={len(data) // 8}Q", data)


def mount(folder, mebibytes):
    """Mounts a file system that tests can fill. Returns False if this is not permitted."""
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "noctule-test", folder],
                          capture_output=True).returncode == 0


def unmount(folder):
    subprocess.run(["umount", "-l", folder], check=True)


class Disasters:
    """d: the service. archive: a peer that may be stopped. disk: whether its root is a separate file system."""

    def __init__(self, d, archive, seed, disk):
        self.d, self.archive = d, archive
        self.chance = random.Random(seed)
        self.clock = Clock(d.folder)
        self.counts = collections.Counter()
        self.sessions = {d.process.pid}
        self.points = crash_points()
        self.usual = dict(d.environment)
        self.kinds = [*[self.kill] * 6, self.stop_and_continue, self.end_and_start, self.crash_at, self.inject,
                      self.jump, self.archive_away, self.unreadable, self.hold, self.disk_low] + ([self.disk_full] if disk else [])

    def play(self, count):
        """Plays that many disasters, each kind equally often, in random order at random moments."""
        order = []
        for _ in range(count):
            order = order or self.chance.sample(self.kinds, len(self.kinds))
            time.sleep(self.chance.uniform(0.02, 0.8))
            self.revive()
            disaster = order.pop()
            start = time.monotonic()
            disaster()
            print(f"{disaster.__name__} {time.monotonic() - start:.1f} s", flush=True)

    def revive(self):
        """Restarts the daemon like the system's service manager."""
        if self.d.process.poll() is not None:
            self.counts["daemon died"] += 1
            self.start()

    def begin(self):
        self.d.start(wait=False)
        self.sessions.add(self.d.process.pid)

    def start(self):
        """Starts the daemon. If it ends at once, as at a crash point, starts it without the fault."""
        self.begin()
        wait_for(lambda: self.d.process.poll() is not None or self.d.answers(), SECONDS, "the daemon")
        if self.d.process.poll() is not None:
            self.counts["daemon did not start"] += 1
            self.d.environment = dict(self.usual)
            self.start()

    def end(self, number):
        """Ends it by SIGTERM like an impatient administrator: sends a second one while a delivery is running."""
        with contextlib.suppress(ProcessLookupError):
            self.d.process.send_signal(number)
            if number == signal.SIGTERM:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.d.process.wait(self.chance.uniform(0.1, 2))
                    return
                self.d.process.send_signal(number)
        self.d.process.wait(SECONDS)

    def restart(self, number, **more):
        self.end(number)
        self.d.environment = {**self.usual, **more}
        self.start()

    def signal_child(self, role, number):
        for pid in self.d.children(role):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                return pid
        return None

    def kill(self):
        """Sends SIGKILL to a random process."""
        role = self.chance.choice((*ROLES, "daemon"))
        if role == "daemon":
            self.end(signal.SIGKILL)
            self.start()
        elif not self.signal_child(role, signal.SIGKILL):
            role = "nobody"  # the process was absent: dead already, or a sender while deliveries are held
        self.counts[f"killed {role}"] += 1

    def stop_and_continue(self):
        """Sends SIGSTOP, later SIGCONT: a process that swaps, a machine that is migrated."""
        role = self.chance.choice((*ROLES, "daemon"))
        pid = self.d.process.pid if role == "daemon" else self.signal_child(role, signal.SIGSTOP)
        if not pid:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.chance.uniform(0.2, 2))
            os.kill(pid, signal.SIGCONT)
        self.counts[f"stopped {role}"] += 1

    def end_and_start(self):
        self.restart(signal.SIGTERM)
        self.counts["ended and started"] += 1

    def crash_at(self):
        point = self.chance.choice(self.points)
        once = self.d.folder / f"crashed {sum(self.counts.values())}"
        self.restart(signal.SIGKILL, NOCTULE_CRASH_AT=point, NOCTULE_CRASH_ONCE=str(once))
        self.counts["to crash at a point"] += 1

    def inject(self):
        """Makes a call fail, once or permanently. The next restart ends it."""
        role, call = self.chance.choice((*ROLES, "daemon")), self.chance.choice(sorted(CALLS))
        nth = int(10 ** self.chance.uniform(0, 4 if call == "malloc" else 2))
        always = self.chance.choice(("", "always"))
        hit = self.d.folder / f"hit {sum(self.counts.values())}"
        self.end(signal.SIGKILL)
        self.d.environment = {**self.usual, "NOCTULE_FAULT": f"{role} {call} {nth} {CALLS[call]} {always}",
                              "NOCTULE_FAULT_UNDER": str(self.d.folder), "NOCTULE_FAULT_HIT": str(hit)}
        self.begin()
        time.sleep(self.chance.uniform(0.2, 2))
        self.restart(self.chance.choice((signal.SIGKILL, signal.SIGTERM)))
        self.counts["injected" if any(happened(hit)) else "injected, not reached"] += 1

    def jump(self):
        """Sets the clock by hours or days, forward or back."""
        self.clock.jump(self.chance.choice((-1, 1)) * 10 ** self.chance.uniform(1, 6))
        self.counts["clock jumped"] += 1

    def archive_away(self):
        self.archive.stop()
        time.sleep(self.chance.uniform(0.2, 2))
        self.archive.start()
        self.counts["archive away"] += 1

    def unreadable(self):
        with contextlib.suppress(OSError):
            unreadable_things(self.d.inbox, self.chance)
        self.counts["unreadable things"] += 1

    def hold(self):
        """An operator holds an item for a while, and submits a stored series."""
        self.release()
        self.d.ctl("hold", *self.chance.choice((["--queue"], ["--pipeline", "head-ct"], ["--destination", "OUT"],
                                                ["--destination", "PACS"])), check=False)
        time.sleep(self.chance.uniform(0.2, 2))
        self.d.ctl("submit", "--rules", check=False)
        if self.chance.random() < 0.5:  # otherwise after one of the next two disasters
            self.release()
        self.counts["held"] += 1

    def release(self):
        for row in self.d.query("SELECT * FROM v_holds"):
            self.d.ctl("release", *(["--queue"] if row["kind"] == "queue" else [f"--{row['kind']}", row["name"]]), check=False)

    def reload(self):
        """Reloads after the daemon replies. Before it handles signals they would end it."""
        if self.d.ctl("ping", check=False).returncode == 0:
            with contextlib.suppress(ProcessLookupError):
                self.d.process.send_signal(signal.SIGHUP)

    def disk_low(self):
        """Leaves less free space than configured for a moment, so that reception is paused."""
        text = self.d.config.read_text()
        try:
            self.d.config.write_text(re.sub(r"min_free_mib = \d+;", "min_free_mib = 1000000000;", text))
            self.reload()
            time.sleep(self.chance.uniform(0.2, 2))
        finally:
            self.d.config.write_text(text)
        self.reload()
        self.counts["disk low"] += 1

    def disk_full(self):
        filler = self.d.root / "filler"
        with contextlib.suppress(OSError), open(filler, "wb") as file:
            while True:
                file.write(bytes(1 << 16))
        time.sleep(self.chance.uniform(0.2, 2))
        filler.unlink()
        self.counts["disk full"] += 1

    def over(self):
        """Ends all injected faults and holds, and starts the service."""
        self.restart(signal.SIGTERM)
        wait_for(lambda: self.release() or not self.d.query("SELECT * FROM v_holds"), SECONDS, "the release")

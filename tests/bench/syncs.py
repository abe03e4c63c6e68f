#!/usr/bin/env python3
"""Compares ways to sync the files of a job to the disk: the time per job, and the wait for syncs.

    syncs.py FOLDER [--beside] [LANES...]      FOLDER on the disk to measure; default lanes 1 4 8

--beside: while another process writes files there without a sync, like the receiver.

A job writes the files of one of 512x512x300 (SEG, preview, record) into its own folder and renames it into place:
    each     one sync per file, begun when it is written, and of the parent; waits for all  (output.c does this)
    end      same, but begun when the last file is written
    syncfs   one syncfs for the files, one for the names
    group    same, shared by all lanes that wait at the time
"""

import ctypes
import itertools
import os
import pathlib
import shutil
import statistics
import sys
import threading
import time

FILES = [9393972, 290368, 2091]
JOBS, ROUNDS = 12, 8
LIBC = ctypes.CDLL(None, use_errno=True)


class Group:
    """Runs one syncfs for all lanes that wait when it begins."""

    def __init__(self):
        self.changed = threading.Condition()
        self.wanted = self.done = 0
        self.busy = False

    def wait(self, folder):
        with self.changed:
            self.wanted += 1
            mine = self.wanted
            while self.done < mine:
                if self.busy:
                    self.changed.wait()
                    continue
                self.busy, upto = True, self.wanted
                self.changed.release()
                LIBC.syncfs(folder)
                self.changed.acquire()
                self.busy, self.done = False, upto
                self.changed.notify_all()


class Job:
    def __init__(self, path, way, group):
        self.path, self.way, self.group = path, way, group
        self.threads, self.files = [], []

    def sync(self, file, how):
        def run():
            how(file)
            os.close(file)

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def write(self, data):
        if self.way == "each":
            self.sync(os.open(self.path.parent, os.O_RDONLY), os.fsync)
        for number, size in enumerate(FILES):
            file = os.open(self.path / f".{number}.part", os.O_CREAT | os.O_WRONLY, 0o640)
            os.write(file, data[:size])
            if self.way == "each":
                self.sync(file, os.fdatasync)
            else:
                self.files.append(file)

    def settle(self, folder):
        if self.way == "end":
            self.sync(os.open(self.path.parent, os.O_RDONLY), os.fsync)
            for file in self.files:
                self.sync(file, os.fdatasync)
        elif self.way == "syncfs":
            LIBC.syncfs(folder)
        elif self.way == "group":
            self.group.wait(folder)
        for thread in self.threads:
            thread.join()
        for file in self.files if self.way != "end" else ():
            os.close(file)

    def publish(self, folder):
        for number in range(len(FILES)):
            os.rename(self.path / f".{number}.part", self.path / f"{number}")
        if self.way == "group":
            self.group.wait(folder)
        elif self.way == "syncfs":
            LIBC.syncfs(folder)
        else:
            os.fsync(folder)

    def run(self, data):
        """Returns the seconds from the last written byte."""
        self.path.mkdir()
        folder = os.open(self.path, os.O_RDONLY)
        self.write(data)
        written = time.monotonic()
        self.settle(folder)
        self.publish(folder)
        os.close(folder)
        return time.monotonic() - written


def measure(root, way, lanes, data):
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    os.sync()
    group, waits = Group(), []

    def lane(number):
        for job in range(JOBS):
            waits.append(Job(root / f"{number}-{job}", way, group).run(data))

    threads = [threading.Thread(target=lane, args=(number,)) for number in range(lanes)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.monotonic() - begun) / (lanes * JOBS), statistics.median(waits)


def write_beside(folder, data, stop):
    for number in itertools.count():
        if stop.is_set():
            break
        (folder / f"noctule-beside-{number % 16}").write_bytes(data)
        stop.wait(0.05)
    for path in folder.glob("noctule-beside-*"):
        path.unlink()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    words = [word for word in sys.argv[2:] if word != "--beside"]
    root = pathlib.Path(sys.argv[1]) / "noctule-syncs"
    data = os.urandom(max(FILES))
    stop = threading.Event()
    beside = threading.Thread(target=write_beside, args=(root.parent, data, stop))
    if "--beside" in sys.argv:
        beside.start()
    for lanes in [int(number) for number in words] or [1, 4, 8]:
        found = {way: [] for way in ("each", "end", "syncfs", "group")}
        ways = list(found)
        for turn in range(ROUNDS):  # each way is the first in turn
            for way in ways[turn % len(ways):] + ways[:turn % len(ways)]:
                found[way].append(measure(root, way, lanes, data))
        for way, results in found.items():
            job, wait = (1000 * statistics.median(column) for column in zip(*results))
            print(f"{lanes} lanes, {way:6}  {job:6.1f} ms a job, {wait:6.1f} ms of it waited for syncs", flush=True)
    stop.set()
    if beside.ident:
        beside.join()
    shutil.rmtree(root)


if __name__ == "__main__":
    main()

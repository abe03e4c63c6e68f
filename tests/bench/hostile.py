#!/usr/bin/env python3
"""Measures the effect of hostile connections on a good sender.

    hostile.py [--bin DIR] [--connections N] [--threads N]
    hostile.py --page [--bin DIR] [--connections N] [--held N]

One modality sends slice after slice, each in its own association. It first runs alone, then with threads that make N
hostile connections in turn under another AE title (tests/fault/hospital.py: noise, lengths of gigabytes, unknown
titles, data sets that are cut or invalid, reports of 1000 nested sequences, silence). Prints one JSON line for each:
the latency of the good sender's associations (from connecting to the answer of its C-STORE) and the state of the
receiver.

With --page the hostile connections go to the web UI (tests/fault/page_attacks.py). Runs alone and beside them take turns, five
times, so that other work on the machine meets both.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integ"), str(TESTS / "fault")]
import conftest  # noqa: E402
import hospital  # noqa: E402
import pydicom  # noqa: E402
import test_page  # noqa: E402
import upper_layer  # noqa: E402


class Modality:
    def __init__(self, port, folder):
        self.port, self.folder = port, folder
        self.numbers = itertools.count(1)
        self.slices = []

    def send(self):
        """Sends one slice. Returns the seconds that it took, or None if it was rejected."""
        if not self.slices:
            number = next(self.numbers)
            files = hospital.make_series(self.folder / str(number), number)
            self.slices = [hospital.Slice(pydicom.dcmread(path)) for path in files]
        one = self.slices.pop()
        start = time.monotonic()
        try:
            with upper_layer.associated(self.port, calling="STORESCU") as peer:
                assert peer.store(one.data, one.instance) == 0
        except (OSError, EOFError, AssertionError):
            return None
        return time.monotonic() - start


def attack(port, seed, connections):
    chance = random.Random(seed)
    for _ in range(connections):
        with contextlib.suppress(OSError, EOFError, AssertionError, KeyError, struct.error):
            chance.choice(hospital.LIES)(port, chance)


def figure(name, times, **more):
    good = [each for each in times if each is not None]
    print(json.dumps({"what": name, "sent": len(good), "refused": len(times) - len(good),
                      "median_ms": round(1e3 * statistics.median(good), 1), "max_ms": round(1e3 * max(good), 1),
                      **more}), flush=True)


def beside_page(options):
    """The sender alone, then while the web UI is attacked, five times each."""
    with tempfile.TemporaryDirectory() as folder:
        made = []

        def daemon(**more):
            made.append(conftest.Daemon(folder, programs=conftest.BIN, **more))
            return made[-1]

        site = test_page.Site(daemon, dicom=conftest.PEERS, quiet=3600.0).start()
        d = site.daemon
        try:
            modality, alone, beside, asked = Modality(d.port, pathlib.Path(folder, "sources")), [], [], []
            (page,) = d.children("page")
            attack = [sys.executable, TESTS / "fault" / "page_attacks.py", str(site.port), str(options.connections // 5), str(options.held)]
            for _ in range(5):
                with subprocess.Popen(attack, stdout=subprocess.DEVNULL) as running:
                    start = len(beside)
                    while running.poll() is None:
                        beside.append(modality.send())
                        if len(beside) % 10 == 0:
                            begin = time.monotonic()
                            site.get("work")
                            asked.append(time.monotonic() - begin)
                alone += [modality.send() for _ in range(len(beside) - start)]
            figure("alone", alone)
            figure(f"beside {options.connections} hostile connections to the web UI", beside, page_lives=d.children("page") == [page])
            figure("the page Work, meanwhile", asked)
        finally:
            d.kill_all()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=conftest.BIN)
    parser.add_argument("--connections", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--held", type=int, default=2000)
    options = parser.parse_args()
    conftest.BIN = options.bin.resolve()
    if options.page:
        return beside_page(options)
    with tempfile.TemporaryDirectory() as folder:
        d = conftest.Daemon(folder, quiet=3600.0, dicom=conftest.PEERS, programs=conftest.BIN).start()
        try:
            modality = Modality(d.port, pathlib.Path(folder, "sources"))
            (intake,) = d.children("intake")
            figure("alone", [modality.send() for _ in range(500)])
            with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
                attacks = [pool.submit(attack, d.port, seed, -(-options.connections // options.threads))
                           for seed in range(options.threads)]
                times = []
                while not all(each.done() for each in attacks):
                    times.append(modality.send())
                for each in attacks:
                    each.result()
            figure(f"beside {options.connections} hostile connections", times, intake_lives=d.children("intake") == [intake])
        finally:
            d.kill_all()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures the effect of hostile connections on a good sender.

    hostile.py [--bin DIR] [--connections N] [--threads N]

One modality sends slice after slice, each in its own association. It first runs alone, then with threads that make N
hostile connections in turn under another AE title (tests/fault/hospital.py: noise, lengths of gigabytes, unknown
titles, data sets that are cut or invalid, reports of 1000 nested sequences, silence). Prints one JSON line for each:
the latency of the good sender's associations (from connecting to the answer of its C-STORE) and the state of the
receiver.
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
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integ"), str(TESTS / "fault")]
import conftest  # noqa: E402
import hospital  # noqa: E402
import pydicom  # noqa: E402
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=conftest.BIN)
    parser.add_argument("--connections", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=16)
    options = parser.parse_args()
    conftest.BIN = options.bin.resolve()
    with tempfile.TemporaryDirectory() as folder:
        d = conftest.Daemon(folder, quiet=3600.0, dicom=conftest.PEERS).start()
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

#!/usr/bin/env python3
"""Measures the cost of many stored instances for an idle service.

    instances.py [--bin DIR] [--count N] [--minutes N] [--folder DIR]

Receives N instances of 32x32 by an inbox that keeps its files, in series of 500 that stay incomplete, stops, and
starts again. Prints one JSON line: seconds and CPU seconds of receiving them, of the restart until it answers and
until it is idle, CPU seconds of each process in each later idle minute, and the resident memory of each.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integ"))
import conftest  # noqa: E402

SERIES = 500
MINUTE = 60


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processes(d):
    return {"daemon": d.process.pid, **{role: pid for role in ("intake", "courier", "worker") for pid in d.children(role)}}


def cpu_of_each(d):
    return {role: cpu_seconds(pid) for role, pid in processes(d).items()}


def cpu_of_all(d):
    return sum(cpu_of_each(d).values())


def resident_mb(pid):
    with open(f"/proc/{pid}/status") as status:
        return round(int(next(line for line in status if line.startswith("VmRSS")).split()[1]) * 1024 / 1e6, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=conftest.BIN)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--folder")
    options = parser.parse_args()
    conftest.BIN = options.bin.resolve()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        d = conftest.Daemon(folder, quiet=86400.0)
        d.config.write_text(d.config.read_text().replace('"debug"', '"warn"')
                            .replace("settle_seconds = 0.3; sweep_seconds = 1.0;", ""))  # as shipped
        for i in range(-(-options.count // SERIES)):
            conftest.phantom(d.inbox / str(i), "--size", f"32x32x{SERIES}", "--seed", str(i + 1))
        told = {"instances": options.count}
        start = time.monotonic()
        d.start()
        try:
            conftest.wait_for(lambda: d.query("SELECT count(*) FROM instance")[0][0] >= options.count, 3000, "all of them")
            told.update(taken_in_s=round(time.monotonic() - start, 1), taken_in_cpu_s=round(cpu_of_all(d), 1))
            d.stop()
            start = time.monotonic()
            d.start()
            told.update(restart_to_ready_s=round(time.monotonic() - start, 2))
            rest = quiet(d)
            told.update(restart_to_rest_s=round(rest - start, 1), restart_cpu_s=cpu_of_each(d))
            told.update(idle_cpu_s=minutes(d, options.minutes),
                        resident_mb={role: resident_mb(pid) for role, pid in processes(d).items()})
            print(json.dumps(told))
        finally:
            d.kill_all()


def quiet(d):
    """Waits for the end of the start's work: ten seconds without activity. Returns when they began."""
    last = [0.0, time.monotonic()]

    def still():
        now = cpu_of_all(d)
        if now - last[0] > 0.1:
            last[:] = now, time.monotonic()
        return time.monotonic() - last[1] > 10

    conftest.wait_for(still, 600, "an idle service")
    return last[1]


def minutes(d, count):
    """Returns the CPU seconds of each process in each of the minutes."""
    marks = [cpu_of_each(d)]
    for _ in range(count):
        time.sleep(MINUTE)
        marks.append(cpu_of_each(d))
    return {role: [round(after[role] - before[role], 2) for before, after in zip(marks, marks[1:])] for role in marks[0]}


if __name__ == "__main__":
    main()

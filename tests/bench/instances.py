#!/usr/bin/env python3
"""What many stored instances cost the service that does nothing.

    instances.py [--bin DIR] [--count N] [--folder DIR]

Takes in N instances of 32x32 by an inbox, in series of 500 that stay undecided, stops, and starts again. One
JSON line: seconds of taking them in, of the restart until it answers, processor seconds of all its processes
in an idle minute, and what each has resident.
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
IDLE_SECONDS = 60


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def resident_mb(pid):
    with open(f"/proc/{pid}/status") as status:
        return round(int(next(line for line in status if line.startswith("VmRSS")).split()[1]) * 1024 / 1e6, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=conftest.BIN)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--folder")
    options = parser.parse_args()
    conftest.BIN = options.bin.resolve()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        d = conftest.Daemon(folder, quiet=86400.0)
        d.config.write_text(d.config.read_text().replace('"debug"', '"warn"')
                            .replace("settle_seconds = 0.3; sweep_seconds = 1.0;", ""))  # as shipped
        for i in range(-(-options.count // SERIES)):
            conftest.phantom(d.inbox / str(i), "--size", f"32x32x{SERIES}", "--seed", str(i + 1))
        start = time.monotonic()
        d.start()
        try:
            conftest.wait_for(lambda: d.query("SELECT count(*) FROM instance")[0][0] >= options.count, 3000, "all of them")
            taken = time.monotonic() - start
            d.stop()
            start = time.monotonic()
            d.start()
            ready = time.monotonic() - start
            quiet(d)
            pids = {"daemon": d.process.pid, **{role: pid for role in ("intake", "courier", "worker")
                                               for pid in d.children(role)}}
            before = cpu_seconds(pids.values())
            time.sleep(IDLE_SECONDS)
            print(json.dumps({"instances": options.count, "taken_in_s": round(taken, 1), "restart_to_ready_s": round(ready, 2),
                              "idle_cpu_s_a_minute": round(cpu_seconds(pids.values()) - before, 2),
                              "resident_mb": {role: resident_mb(pid) for role, pid in pids.items()}}))
        finally:
            d.kill_all()


def quiet(d):
    """Waits for the end of what a start looks through: ten seconds in which nothing was done."""
    last = [0.0, 0.0]

    def still():
        now = cpu_seconds([d.process.pid, *d.children()])
        if now - last[0] > 0.1:
            last[:] = now, time.monotonic()
        return time.monotonic() - last[1] > 10

    conftest.wait_for(still, 600, "an idle service")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures the web UI with wrk: requests per second and latency.

    page_wrk.py [--bin DIR] [--connections N] [--seconds N]

A service with five jobs of a phantom. Prints one JSON line per address. A connection serves one request, and one host has at
most half of LIMIT_PAGE_CONNECTIONS: the errors are connections that the server ended for another of the same host."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integ")]
import conftest  # noqa: E402
import test_page  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=conftest.BIN)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    conftest.BIN = options.bin.resolve()
    with tempfile.TemporaryDirectory() as folder:
        made = []

        def daemon(**more):
            made.append(conftest.Daemon(folder, programs=conftest.BIN, **more))
            return made[-1]

        site = test_page.Site(daemon).start()
        try:
            for seed in range(5):
                conftest.drop(conftest.phantom(pathlib.Path(folder, str(seed)), "--size", "32x32x8", "--seed", str(seed)), site.daemon.inbox / str(seed))
            site.daemon.wait_jobs(count=5)
            for path in ("healthz", "style.css", "api/v1/versions", "api/v1/work", "work", ""):
                told = subprocess.run(["wrk", "-t2", f"-c{options.connections}", f"-d{options.seconds}s", "--latency",
                                       f"http://127.0.0.1:{site.port}/{path}"], check=True, stdout=subprocess.PIPE).stdout.decode()
                errors = re.search(r"Socket errors: (.*)", told)
                print(json.dumps({"path": "/" + path, "per_second": float(re.search(r"Requests/sec:\s+(\S+)", told)[1]),
                                  **{name: re.search(rf"{name}%\s+(\S+)", told)[1] for name in ("50", "99")},
                                  "errors": errors[1] if errors else "", "other": re.findall(r"Non-2xx.*: (\d+)", told)}), flush=True)
        finally:
            site.daemon.kill_all()


if __name__ == "__main__":
    main()

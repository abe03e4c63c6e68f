#!/usr/bin/env python3
"""Planes of the slice viewer for several browsers while jobs run: times of a plane, and of the jobs with and without them.

    planes.py BIN [BROWSERS [SECONDS [SIZE]]]     BIN: folder of the programs; 8 browsers, 20 s, 512x512x600

Each browser has a session of its own, scrolls through all three views, and repeats what is answered with 429 after 0.1 s: its time
counts. Prints one JSON line."""

import http.client
import json
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integ"))
from conftest import daemons, free_port, is_listening, run_program, wait_for  # noqa: E402

SEGMENT = """label = "Soft tissue"; method = "range"; range = [ -100.0, 200.0 ];
    category = { code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; };
    type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };"""


def settings(root, port):
    return f"""
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 3.0; complete_seconds = 0.1; patience_seconds = 600.0; }};
compute = {{ lanes = 4; backend = "cpu"; }};
min_free_mib = 1;
page = {{ port = {port}; slices = true; }};
pipelines = ( {{ name = "p"; segments = ( {{ {SEGMENT} }} ); }} );
rules = ( {{ match = {{ }}; pipeline = "p"; }} );
"""


def scroll(port, job, counts, number, until, times, refused, failures):
    random.seed(number)
    view, at, step = random.choice(sorted(counts)), 0, 1
    while time.monotonic() < until[0]:
        if random.random() < 0.02:
            view, at, step = random.choice(sorted(counts)), 0, random.choice((1, 2, 3))
        at = (at + step) % counts[view]
        begun = time.monotonic()
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"/api/v1/jobs/{job}/planes/{view}/{at}", headers={"Cookie": f"browser={number}"})
            answer = connection.getresponse()
            size = len(answer.read())
            connection.close()
            if answer.status != 429:
                break
            refused.append(1)
            time.sleep(0.1)
        if answer.status != 200 or size < 1000:
            failures.append(answer.status)
        times.append(time.monotonic() - begun)
        time.sleep(0.02)  # a browser draws


def main():
    browsers = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 20
    size = sys.argv[4] if len(sys.argv) > 4 else "512x512x600"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="noctule-planes."))
    try:
        with daemons(folder) as make:
            port = free_port()
            daemon = make(settings=settings(folder / "daemon0" / "root", port))
            daemon.start()
            wait_for(lambda: is_listening(port), 60, "the port of the web UI")
            run_program("noctule-phantom", "--output", daemon.inbox / "large", "--kind", "chest", "--size", size)
            daemon.wait_jobs(1, states=("DONE",), seconds=900)
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/api/v1/jobs/1/planes")
            counts = {view: of["count"] for view, of in json.loads(connection.getresponse().read())["planes"].items()}
            for i in range(4):  # jobs that run meanwhile
                run_program("noctule-phantom", "--output", folder / f"s{i}", "--kind", "chest", "--size", "512x512x100", "--seed", str(i + 2))
            times, refused, failures, until = [], [], [], [time.monotonic() + 3600]
            for i in range(4):
                shutil.move(folder / f"s{i}", daemon.inbox / f"s{i}")
            wait_for(lambda: daemon.jobs("RUNNING"), 300, "a running job")
            until[0] = time.monotonic() + seconds
            threads = [threading.Thread(target=scroll, args=(port, 1, counts, i, until, times, refused, failures)) for i in range(browsers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            daemon.wait_jobs(5, states=("DONE",), seconds=900)
            times.sort()
            print(json.dumps({
                "browsers": browsers, "size": size, "planes": len(times), "refused": len(refused), "failed": len(failures),
                "ms": {name: round(1000 * times[min(int(share * len(times)), len(times) - 1)], 1)
                       for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1))},
                "job_s": [round(row["total_seconds"], 2) for row in daemon.jobs()]}))
            daemon.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()

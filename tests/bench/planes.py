#!/usr/bin/env python3
"""Planes of the slice viewer for several browsers while four jobs run: times of a plane, and of the jobs with and without browsers.

    planes.py [--bin DIR] [--browsers 8] [--rate 10] [--rounds 2] [--size 512x512x600] [--jobs 4]

Each browser is an HTTP client in one process of its own, with a session of its own: it scrolls as viewer.js does, one request at a
time, at most `rate` planes per second, in steps of one slice, and turns to another view after about 50. What is answered with 429
is asked again after 0.1 s, and its time counts. (Eight instances of Chromium would need the processors that are measured.) A round
runs equal jobs twice: without browsers, and with browsers that scroll from the first job's start to the last one's end. Prints one
JSON line: times of planes in ms; seconds of the jobs; CPU of the web process per plane; load of other processes before. The
machine should be quiet: the slow-down is the ratio of two measurements."""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integ"))
import conftest  # noqa: E402
from conftest import daemons, free_port, is_listening, run_program, wait_for  # noqa: E402

SEGMENT = """label = "Soft tissue"; method = "range"; range = [ -100.0, 200.0 ];
    category = { code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; };
    type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };"""


def settings(root, port, jobs):
    return f"""
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 3.0; complete_seconds = 0.1; patience_seconds = 600.0; }};
compute = {{ lanes = {jobs}; backend = "cpu"; }};
min_free_mib = 1;
page = {{ port = {port}; slices = true; }};
pipelines = ( {{ name = "large"; segments = ( {{ {SEGMENT} }} ); }},
  {{ name = "busy"; results = [ "seg", "nifti", "labelmap" ]; segments = ( {{ {SEGMENT} }} );
    texture = {{ first_order = true; families = [ "morphology", "ngtdm", "ngldm", "glrlm", "glszm", "gldzm" ]; bin_width = 25.0; discretisation = "fixed-bin-size"; }}; }} );
rules = ( {{ match = {{ min_slices = 90; }}; pipeline = "large"; }}, {{ match = {{ }}; pipeline = "busy"; }} );
"""


def scroll(port, job, counts, number, rate, running, results):
    """Scrolls until the jobs have ended. A browser asks with one connection per request, as the server serves them."""
    random.seed(number)
    views, times, refused, failed = sorted(counts), [], 0, 0
    view, at = views[number % len(views)], number * 17
    running.wait()
    while running.is_set():
        if random.random() < 0.02:
            view, at = random.choice(views), 0
        at = (at + 1) % counts[view]
        begun = time.monotonic()
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"/api/v1/jobs/{job}/planes/{view}/{at}", headers={"Cookie": f"browser={number}"})
            answer = connection.getresponse()
            size = len(answer.read())
            connection.close()
            if answer.status != 429:
                break
            refused += 1
            time.sleep(0.1)
        failed += answer.status != 200 or size < 1000
        times.append(time.monotonic() - begun)
        time.sleep(max(0, begun + 1 / rate - time.monotonic()))
    results.put((times, refused, failed, time.process_time()))


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_jobs(daemon, folder, seeds, before, size):
    """Makes the series, then runs their jobs together. Returns their seconds."""
    for seed in seeds:
        run_program("noctule-phantom", "--output", folder / str(seed), "--kind", "chest", "--size", size, "--seed", str(seed))
    daemon.ctl("pause", "--reason", "so that they start together")
    for seed in seeds:
        shutil.move(folder / str(seed), daemon.inbox / str(seed))
    wait_for(lambda: len(daemon.jobs("READY")) == len(seeds), 600, "the jobs")
    return lambda: [row["total_seconds"] for row in daemon.wait_jobs(before + len(seeds), states=("DONE",), seconds=3600)[before:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=conftest.BIN)
    parser.add_argument("--browsers", type=int, default=8)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--size", default="512x512x600")
    parser.add_argument("--job-size", default="512x512x60")
    options = parser.parse_args()
    conftest.BIN = options.bin.resolve()
    folder, load = pathlib.Path(tempfile.mkdtemp(prefix="noctule-planes.")), os.getloadavg()[0]
    try:
        with daemons(folder) as make:
            port = free_port()
            daemon = make(settings=settings(folder / "daemon0" / "root", port, options.jobs), programs=conftest.BIN)
            daemon.start()
            wait_for(lambda: is_listening(port), 60, "the port of the web UI")
            run_program("noctule-phantom", "--output", daemon.inbox / "large", "--kind", "chest", "--size", options.size)
            (large,) = daemon.wait_jobs(1, states=("DONE",), seconds=1800)
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", f"/api/v1/jobs/{large['job']}/planes")
            counts = {view: of["count"] for view, of in json.loads(connection.getresponse().read())["planes"].items()}
            (page,) = daemon.children("page")
            times, refused, failed, clients, web, alone, beside, seed = [], 0, 0, 0, 0, [], [], 2
            for _ in range(options.rounds):
                for seconds in (alone, beside):
                    ended = run_jobs(daemon, folder, range(seed, seed + options.jobs), len(daemon.jobs()), options.job_size)
                    seed += options.jobs
                    running, results = multiprocessing.Event(), multiprocessing.Queue()
                    browsers = [multiprocessing.Process(target=scroll, args=(port, large["job"], counts, i, options.rate, running, results))
                                for i in range(options.browsers if seconds is beside else 0)]
                    for browser in browsers:
                        browser.start()
                    used = processor_seconds(page)
                    running.set()
                    daemon.ctl("resume")
                    seconds += ended()
                    running.clear()
                    for _ in browsers:
                        got = results.get(timeout=120)
                        times, refused, failed, clients = times + got[0], refused + got[1], failed + got[2], clients + got[3]
                    for browser in browsers:
                        browser.join()
                    web += processor_seconds(page) - used if browsers else 0
            daemon.stop()
        times.sort()
        print(json.dumps({
            "cores": os.cpu_count(), "load_before": round(load, 1), "browsers": options.browsers, "size": options.size,
            "planes": len(times), "refused": refused, "failed": failed,
            "ms": {name: round(1000 * times[min(int(share * len(times)), len(times) - 1)], 1)
                   for name, share in (("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1))},
            "web_cpu_ms_per_plane": round(1000 * web / len(times), 2), "browsers_cpu_ms_per_plane": round(1000 * clients / len(times), 2),
            "job_s": {"alone": [round(each, 2) for each in alone], "beside": [round(each, 2) for each in beside]},
            "slower": round(statistics.median(beside) / statistics.median(alone) - 1, 3)}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

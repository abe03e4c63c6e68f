#!/usr/bin/env python3
"""Measures a large 2-D image through the service, stage by stage, and prints a JSON line. Uses only the standard library.

  picture_service.py --bin BIN --work WORK [--edge N] [--kind grey|rgb|palette] [--rounds N] [--warm N] [--backend cuda|cpu]
                     [--region segments|volume] [--memory-mib N] [--bench] [--keep]

BIN is a folder of noctuled, noctule and, for --bench, noctule-bench. The script writes secondary captures of N x N pixels:
12 of 16 bits of grey, 8 bits per sample, or a palette of 16 bits. A running noctuled receives them one after the other
through its inbox, so that the files are in the page cache. Per image: a segment of a range that has all pixels, first-order
features, GLCM of 32 levels in four directions, and three patterns, of the segment or of the volume.

Times are those of v_jobs, medians without the first --warm images: read (headers, and pixels into pinned memory), compute
(to the features), write, verify, total. features_ms is read + compute: from the start of the job to its features.
With --bench, noctule-bench measures the upload of 16384 x 16384 pixels of 16 bits from pinned memory in the same run.
worker_peak_mib is the high-water mark of the worker (VmHWM). results_sha256 is equal on each backend for the same number of
images. With --memory-mib 1, `messages` names the memory that a job needs."""

import argparse
import array
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys

import service_gpu

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "{inbox}"; after = "delete"; settle_seconds = 0.2; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 1.0; complete_seconds = 0.3; patience_seconds = 1.0; }};
jobs = {{ max_attempts = 1; memory_mib = {memory}; }};
compute = {{ backend = "{backend}"; lanes = {lanes}; threads = {threads}; keep_mib = {keep_mib}; }};
min_free_mib = 256;
pipelines = ( {{ name = "picture"; flat = true; review = "deliver"; results = [ "seg" ];
  segments = ( {{ label = "All"; method = "range"; range = [ -1.0, 65535.0 ];
    category = {{ code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; }};
    type = {{ code = "38266002"; scheme = "SCT"; meaning = "Entire body"; }}; }} );
  texture = {{ regions = [ "{region}" ]; discretisation = "fixed-bin-number"; levels = 32; first_order = true;
    glcm = {{ aggregation = "2d-slice-merged"; }}; patterns = [ "lbp", "tlbap", "lanadp" ]; }}; }} );
rules = ( {{ match = {{ modality = "OT"; }}; pipeline = "picture"; }} );
"""

# Features, histograms of patterns, and measures of the segment: the same on each backend.
RESULTS = ("SELECT job, segment, family, name, unit, value, reason, distance FROM v_features ORDER BY 1, 2, 3, 4, 5, 6",
           "SELECT job, segment, pattern, counts FROM v_pattern_histograms ORDER BY 1, 2, 3",
           "SELECT job, label, voxels, mean, minimum, maximum FROM v_segments ORDER BY 1, 2")
STAGES = ("read", "compute", "write", "verify", "total")
SECONDARY_CAPTURE = "1.2.840.10008.5.1.4.1.1.7"
ROOT = "1.2.826.0.1.3680043.10.1471"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder with room for all images; emptied")
    parser.add_argument("--edge", type=int, default=16384)
    parser.add_argument("--kind", choices=("grey", "rgb", "palette"), default="grey")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--warm", type=int, default=2)
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--keep-mib", type=float, default=2048.0)
    parser.add_argument("--memory-mib", type=float, default=0.0, help="jobs.memory_mib")
    parser.add_argument("--region", choices=("segments", "volume"), default="segments")
    parser.add_argument("--bench", action="store_true", help="run noctule-bench for the upload")
    parser.add_argument("--deadline", type=float, default=300.0)
    parser.add_argument("--keep", action="store_true", help="leave the work folder as it is at the end")
    return parser.parse_args()


# --- images ---


def element(tag, vr, value):
    if isinstance(value, int):
        value = struct.pack("<H", value)
    elif isinstance(value, str):
        value = value.encode("ascii")
    value += (b"\0" if vr in ("UI", "OB", "OW") else b" ") * (len(value) % 2)
    head = struct.pack("<HH2s", tag >> 16, tag & 0xFFFF, vr.encode("ascii"))
    if vr in ("OB", "OW"):
        return head + struct.pack("<HI", 0, len(value)) + value
    return head + struct.pack("<H", len(value)) + value


def palette():
    """A ramp from black to white of 65536 entries; a length of 0 stands for them."""
    ramp = array.array("H", range(65536)).tobytes()
    return b"".join(element(0x00281101 + i, "US", struct.pack("<HHH", 0, 0, 16)) for i in range(3)) + \
        b"".join(element(0x00281201 + i, "OW", ramp) for i in range(3))


def header(kind, edge, number):
    """The data set of an image up to the length of its pixel data."""
    bits, samples = (8, 3) if kind == "rgb" else (16, 1)
    stored = 12 if kind == "grey" else bits
    instance = f"{ROOT}.{number}.3"
    meta = element(0x00020001, "OB", b"\0\1") + element(0x00020002, "UI", SECONDARY_CAPTURE) + \
        element(0x00020003, "UI", instance) + element(0x00020010, "UI", "1.2.840.10008.1.2.1") + \
        element(0x00020012, "UI", ROOT)
    photometric = {"grey": "MONOCHROME2", "rgb": "RGB", "palette": "PALETTE COLOR"}[kind]
    body = b"".join(element(*each) for each in (
        (0x00080016, "UI", SECONDARY_CAPTURE), (0x00080018, "UI", instance), (0x00080020, "DA", "20261130"),
        (0x00080060, "CS", "OT"), (0x00080064, "CS", "WSD"), (0x00100010, "PN", "Large^Picture"),
        (0x00100020, "LO", f"L{number}"), (0x0020000D, "UI", f"{ROOT}.{number}.1"),
        (0x0020000E, "UI", f"{ROOT}.{number}.2"), (0x00200013, "IS", "1"), (0x00280002, "US", samples),
        (0x00280004, "CS", photometric), *([(0x00280006, "US", 0)] if samples == 3 else []), (0x00280010, "US", edge),
        (0x00280011, "US", edge), (0x00280100, "US", bits), (0x00280101, "US", stored), (0x00280102, "US", stored - 1),
        (0x00280103, "US", 0)))
    if kind == "palette":
        body += palette()
    size = edge * edge * samples * bits // 8
    return b"\0" * 128 + b"DICM" + element(0x00020000, "UL", struct.pack("<I", len(meta))) + meta + body + \
        struct.pack("<HH2sHI", 0x7FE0, 0x0010, b"OB" if bits == 8 else b"OW", 0, size)


def write_image(path, kind, edge, number):
    """Rows are pieces of one line of noise on a ramp, which begin at places that wander from row to row."""
    source = random.Random(number)
    width = edge * 3 if kind == "rgb" else edge
    most = 255 if kind == "rgb" else 65535 if kind == "palette" else 4095
    noise = source.randbytes(2 * 3 * width)
    line = array.array("B" if kind == "rgb" else "H",
                       (min(most, (abs(i % (2 * width) - width) * (most * 7 // 8)) // width + noise[2 * i] % (most // 8 + 1))
                        for i in range(3 * width))).tobytes()
    unit = 1 if kind == "rgb" else 2
    at = width
    with open(path, "wb") as file:
        file.write(header(kind, edge, number))
        for _ in range(edge):
            at = max(0, min(2 * width - 1, at + source.randrange(-7, 8)))
            file.write(line[at * unit:(at + width) * unit])
        file.flush()
        os.fsync(file.fileno())  # writing to the disk must not run beside the job


# --- the service ---


class Service(service_gpu.Service):
    def configure(self):
        self.config.write_text(SETTINGS.format(
            root=self.root, inbox=self.inbox, backend=self.arguments.backend, lanes=self.arguments.lanes,
            threads=self.arguments.threads, keep_mib=self.arguments.keep_mib, memory=self.arguments.memory_mib,
            region=self.arguments.region))


def worker_peak_mib():
    """The largest VmHWM of the workers."""
    most = 0
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and b"--role\0worker" in (entry / "cmdline").read_bytes():
                for line in (entry / "status").read_text().splitlines():
                    most = max(most, int(line.split()[1]) if line.startswith("VmHWM") else 0)
    return round(most / 1024, 1)


def upload_ms(arguments):
    done = subprocess.run([arguments.bin / "noctule-bench", "--backend", "cuda", "--repeat", "5",
                           "--kernels=picture/smooth/"], stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[0])["upload_ms"]


def measure(arguments):
    service = Service(arguments)
    service.configure()
    service.start()
    try:
        service.wait("SELECT count(*) FROM v_events WHERE kind = 'COMPUTE_READY'", 1, "a worker")
        for number in range(1, arguments.rounds + arguments.warm + 1):
            path = arguments.work / "next.dcm"
            write_image(path, arguments.kind, arguments.edge, number)
            path.rename(service.inbox / f"{number}.dcm")
            service.wait("SELECT count(*) FROM v_jobs WHERE state NOT IN ('READY', 'RUNNING')", number, "jobs ended")
        peak = worker_peak_mib()
        jobs = service.query("SELECT * FROM v_jobs ORDER BY job")
        rows = [tuple(row) for sql in RESULTS for row in service.query(sql)]
    finally:
        service.stop()
    return jobs, peak, rows, service.log.read_text()


def main():
    arguments = parse()
    arguments.bin = arguments.bin.resolve()
    arguments.work = arguments.work.resolve() / "noctule-picture-bench"
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    try:
        jobs, peak, rows, log = measure(arguments)
    finally:
        if not arguments.keep:
            shutil.rmtree(arguments.work, ignore_errors=True)
    ended = [job for job in jobs if job["state"] == "DONE"][arguments.warm:]
    line = {"case": f"picture-service/{arguments.kind}/{arguments.edge}", "backend": sorted({job["backend"] for job in jobs}),
            "states": sorted({f"{job['state']} {job['code']}".strip() for job in jobs}), "rounds": len(ended),
            "lanes": arguments.lanes, "processors": len(os.sched_getaffinity(0)), "worker_peak_mib": peak,
            "results": len(rows), "results_sha256": hashlib.sha256(repr(rows).encode()).hexdigest(),
            "notes": sorted({job["note"] for job in jobs if job["note"]}),
            "messages": sorted({job["message"] for job in jobs if job["message"]})}
    for stage in STAGES if ended else ():
        line[f"{stage}_ms"] = round(1000 * statistics.median(job[f"{stage}_seconds"] for job in ended), 2)
    if ended:
        each = [1000 * (job["read_seconds"] + job["compute_seconds"]) for job in ended]
        line["features_ms"] = round(statistics.median(each), 2)
        line["features_ms_range"] = [round(min(each), 2), round(max(each), 2)]
    if arguments.bench:
        line["upload_ms"] = round(upload_ms(arguments), 3)
        line["ratio_to_upload"] = round(line["features_ms"] / line["upload_ms"], 2) if ended else None
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Counts how often the two readings of Masur 2022 give different codes: its text, and its listings.

    build/venv/bin/python tests/bench/patterns_readings.py --bench build/ci/bin/bench_texture

Codes come from bench_texture; the tests check both of its readings. TLBAP: > instead of
>=, at a threshold of 0.9; LANADP: averages truncated to integers. Prints one JSON line per volume.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy

SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"


def eight_bits(volume):
    low, high = int(volume.min()), int(volume.max())
    return ((volume.astype(numpy.int64) - low) * 255 // max(high - low, 1)).astype(numpy.int16)


def generated():
    noise = numpy.random.default_rng(1).integers(0, 4096, (8, 512, 512), numpy.int16)
    smooth = numpy.cumsum(numpy.cumsum(noise - 2047.5, axis=1), axis=2)
    smooth = (smooth - smooth.min()) / (smooth.max() - smooth.min()) * 4095
    yield "noise, 12 bits", noise
    yield "noise, 8 bits", eight_bits(noise)
    yield "smooth, 12 bits", smooth.astype(numpy.int16)
    yield "smooth, 8 bits", eight_bits(smooth.astype(numpy.int16))


def series(name):
    import pydicom

    slices = [pydicom.dcmread(path) for path in sorted((SHARED / name).glob("*.dcm"))]
    slices.sort(key=lambda s: float(s.InstanceNumber))
    volume = numpy.stack([s.pixel_array for s in slices]).astype(numpy.int16)
    yield f"{name}, as stored", volume
    yield f"{name}, 8 bits", eight_bits(volume)


def codes_of(bench, volume, *options):
    slices, rows, columns = volume.shape
    with tempfile.TemporaryDirectory() as folder:
        raw, out = os.path.join(folder, "raw"), os.path.join(folder, "out")
        volume.tofile(raw)
        subprocess.run([bench, "--raw", raw, "--extent", f"{columns},{rows},{slices}", "--top", "4095",
                        "--task", "patterns", "--out", out, "--repeat", "1", *options],
                       check=True, stdout=subprocess.DEVNULL)
        return numpy.fromfile(out, numpy.uint8).reshape(3, -1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the program bench_texture")
    bench = parser.parse_args().bench
    volumes = list(generated())
    for name in ("mr-brain-t1", "ct-head-5mm"):
        if (SHARED / name).is_dir():
            volumes += series(name)
    for name, volume in volumes:
        text = codes_of(bench, volume)
        listing = codes_of(bench, volume, "--strict", "--integer-average")
        differing = (text != listing).mean(axis=1) * 100
        print(json.dumps({"volume": name, "codes": text.shape[1], "tlbap_percent": round(differing[1], 2),
                          "lanadp_percent": round(differing[2], 2)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

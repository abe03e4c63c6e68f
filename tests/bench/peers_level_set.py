#!/usr/bin/env python3
"""Times the level set of noctule-bench, cc3d and SciPy, and compares every voxel.

    build/venv/bin/python tests/bench/peers_level_set.py --bench build/ci/bin/noctule-bench

Each peer solves the whole problem (both floods). cc3d labels one image, 1 in range and 2 out of
range, with one 6-connected call; SciPy labels the mask and its complement. The peers' time is that of
these calls only. It excludes the steps before (thresholding) and after (components that touch the
initial sphere), although Noctule's time includes both. Prints one JSON line per case.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import cc3d
import numpy
import scipy.ndimage

SERIES = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "mr-brain-t1"


def ball(shape, center, radius):
    """Returns the voxels (z, y, x) within radius of center (x, y, z)."""
    z, y, x = numpy.ogrid[: shape[0], : shape[1], : shape[2]]
    return (x - center[0]) ** 2 + (y - center[1]) ** 2 + (z - center[2]) ** 2 <= radius**2


def sphere(side):
    middle = side // 2
    volume = numpy.zeros((side, side, side), numpy.int16)
    volume[ball(volume.shape, (middle,) * 3, side / 4)] = 100
    return volume, (100, 100), (middle,) * 3, side / 8


def serpentine(side):
    """Returns one path through even rows and slices, with corridors along x."""
    volume = numpy.zeros((side, side, side), numpy.int16)
    lanes = (side + 1) // 2
    volume[::2, ::2, :] = 100
    for corridor in range(lanes * lanes - 1):
        level, turn = divmod(corridor, lanes)
        lane = lanes - 1 - turn if level % 2 else turn
        end = 0 if corridor % 2 else side - 1
        if turn + 1 < lanes:
            volume[2 * level, 2 * lane + (-1 if level % 2 else 1), end] = 100
        else:
            volume[2 * level + 1, 2 * lane, end] = 100
    return volume, (100, 100), (side // 2,) * 3, side / 8


def brain():
    """Returns the series in shared/data, slices ascending along the normal, and the range of brain tissue."""
    import pydicom

    slices = [pydicom.dcmread(path) for path in sorted(SERIES.glob("*.dcm"))]
    normal = numpy.cross(*numpy.reshape(slices[0].ImageOrientationPatient, (2, 3)))
    slices.sort(key=lambda s: float(numpy.dot(normal, s.ImagePositionPatient)))
    volume = numpy.stack([s.pixel_array for s in slices]).astype(numpy.int16)
    center = tuple(size // 2 for size in reversed(volume.shape))
    inner = volume[ball(volume.shape, center, 50)]
    low, high = (int(value) for value in numpy.percentile(inner, (10, 90)))
    return volume, (low, high), center, 50.0


def median_seconds(call, repeat):
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times), result


def solve(labels, seeds):
    """Returns the components of `labels` that contain a seed."""
    touched = numpy.zeros(int(labels.max()) + 1, bool)
    touched[labels[seeds]] = True
    return touched[labels]


def run_bench(bench, volume, limits, center, radius, repeat):
    slices, rows, columns = volume.shape
    with tempfile.TemporaryDirectory() as folder:
        raw, mask = os.path.join(folder, "raw"), os.path.join(folder, "mask")
        volume.tofile(raw)
        command = [bench, "--raw", raw, "--extent", f"{columns},{rows},{slices}",
                   "--pixel", "int16", "--range", f"{limits[0]},{limits[1]}",
                   "--sphere", ",".join(str(number) for number in (*center, radius)),
                   "--repeat", str(repeat), "--mask-out", mask]
        line = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        packed = numpy.fromfile(mask, numpy.uint8).reshape(slices, rows, -1)
    inside = numpy.unpackbits(packed, axis=-1, bitorder="little")[:, :, :columns]
    return line, inside.astype(bool)


def compare(bench, name, case, repeat, peer_repeat):
    volume, limits, center, radius = case
    ours, inside = run_bench(bench, volume, limits, center, radius, repeat)
    mask = (limits[0] <= volume) & (volume <= limits[1])
    shape = ball(volume.shape, center, radius)

    image = numpy.where(mask, 1, 2).astype(numpy.uint8)
    cc3d_seconds, labels = median_seconds(
        lambda: cc3d.connected_components(image, connectivity=6), peer_repeat)
    settled = solve(labels, mask & shape | ~mask & ~shape)
    by_cc3d = (mask & settled) | (~mask & shape & ~settled)
    del labels, settled

    scipy_seconds, (grown, shrunk) = median_seconds(
        lambda: (scipy.ndimage.label(mask)[0], scipy.ndimage.label(~mask)[0]), peer_repeat)
    by_scipy = (solve(grown, mask & shape) & mask) | (shape & ~mask & ~solve(shrunk, ~mask & ~shape))

    print(json.dumps({
        "case": name,
        "extent": list(reversed(volume.shape)),
        "range": limits,
        "radius": radius,
        "threads": ours["threads"],
        "noctule_seconds": ours["median_seconds"],
        "read_seconds": ours["read_seconds"],
        "cc3d_seconds": round(cc3d_seconds, 4),
        "scipy_seconds": round(scipy_seconds, 4),
        "cc3d_ratio": round(cc3d_seconds / ours["median_seconds"], 1),
        "scipy_ratio": round(scipy_seconds / ours["median_seconds"], 1),
        "segmented_voxels": int(inside.sum()),
        "differing_from_cc3d": int((inside != by_cc3d).sum()),
        "differing_from_scipy": int((inside != by_scipy).sum()),
    }), flush=True)
    return numpy.array_equal(inside, by_cc3d) and numpy.array_equal(inside, by_scipy)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the program noctule-bench")
    parser.add_argument("--side", type=int, default=512, help="of the generated volumes")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--peer-repeat", type=int, default=3)
    parser.add_argument("cases", nargs="*", choices=["sphere", "serpentine", "brain", []],
                        help="default: all that can run")
    options = parser.parse_args()

    cases = {"sphere": lambda: sphere(options.side), "serpentine": lambda: serpentine(options.side)}
    if SERIES.is_dir():
        cases["brain"] = brain
    equal = [compare(options.bench, name, cases[name](), options.repeat, options.peer_repeat)
             for name in options.cases or cases]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Times texture of bench_texture, scikit-image and pyradiomics, and compares every count.

    build/venv/bin/python tests/bench/peers_texture.py --bench build/ci/bin/bench_texture
    ... --folder SERIES [--window LO,HI]

The first form runs on smooth values and on noise. The second counts a series' matrices of 32 and 64
levels within a window of its values, repeated up to --slices slices.

Noctule takes int16 values, so that its time includes finding their levels. The peers get levels; the time of
NumPy to look them up in a table is printed separately. All peers run on one CPU, without changes.
graycomatrix counts the four directions of each slice. pyradiomics computes its whole GLCM class (24 features
of 13 directions, symmetric) and is skipped if it is not installed. LBP: the codes of the axes are P=4, R=1,
those of the diagonals P=8, R=sqrt(2); the time is that of P=8, R=1. Prints one JSON line per case, with a ratio
of wall-clock times and one of CPU times. Noctule's CPU time counts as divided by its threads. The two ratios
differ on a busy machine.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time

import numpy
from skimage.feature import graycomatrix, local_binary_pattern

TOP = 4095


def volume_of(kind, shape):
    random = numpy.random.default_rng(1)
    noise = random.integers(0, TOP + 1, shape, numpy.int16)
    if kind == "noise":
        return noise
    smooth = numpy.cumsum(numpy.cumsum(noise - TOP / 2, axis=1), axis=2)
    low, high = smooth.min(), smooth.max()
    smooth = (smooth - low) / (high - low) * (TOP - 200) + noise % 200
    return smooth.astype(numpy.int16)


def volume_of_series(options):
    """Returns the window of a series, stretched to 0 .. TOP."""
    import pydicom

    files = [pydicom.dcmread(os.path.join(options.folder, name))
             for name in os.listdir(options.folder) if name.endswith(".dcm")]
    files.sort(key=lambda file: int(file.InstanceNumber))
    values = numpy.stack([file.pixel_array * float(file.get("RescaleSlope", 1))
                          + float(file.get("RescaleIntercept", 0)) for file in files])
    low, high = options.window or (values.min(), values.max())
    values = (numpy.clip((values - low) / (high - low), 0, 1) * TOP).astype(numpy.int16)
    return numpy.resize(values, (options.slices, *values.shape[1:]))


def window(text):
    low, high = text.split(",")
    return float(low), float(high)


def levels_of(volume, levels):
    return (volume.astype(numpy.int64) * levels // (TOP + 1)).astype(numpy.uint8)


def cost(call, repeat):
    """Returns the median wall-clock and CPU seconds, and the last result."""
    costs = []
    for _ in range(repeat):
        begun, used = time.perf_counter(), time.process_time()
        result = call()
        costs.append((time.perf_counter() - begun, time.process_time() - used))
    return (*sorted(costs)[len(costs) // 2], result)


def run_bench(options, volume, task, levels, dtype, region=None):
    slices, rows, columns = volume.shape
    with tempfile.TemporaryDirectory() as folder:
        raw, out, mask = (os.path.join(folder, name) for name in ("raw", "out", "mask"))
        volume.tofile(raw)
        command = [options.bench, "--raw", raw, "--extent", f"{columns},{rows},{slices}",
                   "--top", str(TOP), "--task", task, "--levels", str(levels), "--out", out,
                   "--repeat", str(options.repeat), "--threads", str(options.threads)]
        if region is not None:
            region.astype(numpy.uint8).tofile(mask)
            command += ["--region", mask]
        line = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        return line, numpy.fromfile(out, dtype)


def report(options, name, peer, line, seconds, processor, differing, **more):
    ours = line["processor_seconds"] / options.threads
    print(json.dumps({
        "case": name,
        "peer": peer,
        "extent": line["extent"],
        "threads": line["threads"],
        "noctule_seconds": line["median_seconds"],
        "noctule_processor_seconds": line["processor_seconds"],
        "peer_seconds": round(seconds, 4),
        "peer_processor_seconds": round(processor, 4),
        "ratio": round(seconds / line["median_seconds"], 1),
        "processor_ratio": round(processor / ours, 1),
        "differing": differing,
        **more,
    }), flush=True)
    return differing == 0


def glcm_beside_skimage(options, kind, levels, volume):
    table = levels_of(numpy.arange(TOP + 1), levels)
    _, looking_up, image = cost(lambda: table[volume], options.peer_repeat)
    line, counts = run_bench(options, volume, "glcm-2d", levels, numpy.uint64)
    angles = [0, numpy.pi / 4, numpy.pi / 2, 3 * numpy.pi / 4]

    def peer():
        total = numpy.zeros((levels, levels, 4), numpy.uint64)
        for plane in image:
            total += graycomatrix(plane, [1], angles, levels)[:, :, 0, :]
        return total

    seconds, processor, total = cost(peer, options.peer_repeat)
    differing = int((counts.reshape(4, levels, levels) != numpy.moveaxis(total, 2, 0)).sum())
    return report(options, f"glcm {kind}, 4 directions, {levels} levels", "scikit-image", line,
                  seconds, processor, differing, peer_levels_processor_seconds=round(looking_up, 4))


def ball(shape):
    axes = numpy.ogrid[tuple(slice(-1, 1, count * 1j) for count in shape)]
    return sum(axis**2 for axis in axes) <= 1


def glcm_beside_pyradiomics(options, kind, levels, volume):
    try:
        import SimpleITK
        from radiomics import cMatrices, glcm, setVerbosity
    except ImportError:
        return True
    setVerbosity(logging.ERROR)
    region = ball(volume.shape) if kind == "smooth in a ball" else None
    mask = numpy.ones(volume.shape, bool) if region is None else region
    # Levels of equal width, with the first edge at 0: the levels of levels_of.
    image = SimpleITK.GetImageFromArray(levels_of(volume, levels).astype(numpy.int16))
    line, counts = run_bench(options, volume, "glcm-3d", levels, numpy.uint64, region)

    def peer():
        features = glcm.RadiomicsGLCM(image, SimpleITK.GetImageFromArray(mask.astype(numpy.uint8)),
                                      binWidth=1)
        features.enableAllFeatures()
        return features.execute()

    seconds, processor, _ = cost(peer, 1)
    raw = cMatrices.calculate_glcm(levels_of(volume, levels).astype(numpy.int32) + 1, mask,
                                   numpy.array([1]), levels, False, 0)[0]
    theirs = raw[0].sum(axis=-1)
    ours = counts.reshape(13, levels, levels).sum(axis=0).astype(float)
    # Its directions are Noctule's up to sign: the sum and its transpose have the same symmetric matrix.
    differing = int((theirs + theirs.T != ours + ours.T).sum())
    return report(options, f"glcm {kind}, 13 directions, {levels} levels", "pyradiomics, GLCM class",
                  line, seconds, processor, differing)


def patterns_beside_skimage(options, kind, volume):
    line, maps = run_bench(options, volume, "patterns", 2, numpy.uint8)
    slices, rows, columns = volume.shape
    lbp = maps.reshape(3, slices, rows - 2, columns - 2)[0]
    inner = (slice(1, -1), slice(1, -1))
    few = volume[:2]
    seconds, processor, _ = cost(
        lambda: [local_binary_pattern(plane, 8, 1) for plane in few], options.peer_repeat)
    differing = 0
    for z, plane in enumerate(few):
        axial = local_binary_pattern(plane, 4, 1).astype(int)[inner]
        diagonal = local_binary_pattern(plane, 8, 2**0.5).astype(int)[inner]
        code = diagonal & 0xAA
        for bit in range(4):
            code |= (axial >> bit & 1) << 2 * bit
        differing += int((code != lbp[z]).sum())
    scale = slices / len(few)
    return report(options, f"LBP, TLBAP and LANADP {kind}", "scikit-image, LBP", line,
                  seconds * scale, processor * scale, differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the program bench_texture")
    parser.add_argument("--slices", type=int, default=100, help="of 512 x 512, or of the series")
    parser.add_argument("--folder", help="of a series' files, *.dcm")
    parser.add_argument("--window", type=window, help="LO,HI of rescaled values; all")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--peer-repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    shape = (options.slices, 512, 512)
    equal = True

    if options.folder:
        volume = volume_of_series(options)
        for levels in (32, 64):
            equal &= glcm_beside_skimage(options, "of a series", levels, volume)
        return 0 if equal else 1
    for kind in ("smooth", "noise"):
        volume = volume_of(kind, shape)
        for levels in (8, 32, 64):
            equal &= glcm_beside_skimage(options, kind, levels, volume)
        equal &= patterns_beside_skimage(options, kind, volume)
    volume = volume_of("smooth", shape)
    for kind in ("smooth", "smooth in a ball"):
        equal &= glcm_beside_pyradiomics(options, kind, 32, volume)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())

"""Mean values of blocks, and ranges of Gaussian-filtered values, on the CPU compared with NumPy and scipy.ndimage by the
words of the manual page, voxel for voxel, through bench_smooth."""

import os
import pathlib
import subprocess

import numpy
import pytest
from scipy import ndimage

BENCH = pathlib.Path(os.environ["NOCTULE_BIN"]) / "bench_smooth"


def volumes():
    random = numpy.random.default_rng(7)
    z, y, x = numpy.ogrid[:5, :37, :131]
    yield "noise", random.integers(-3000, 5000, (7, 41, 150), numpy.int16), (0.7, 0.7, 2.5)
    yield "ramp", (x * 3 + y * 7 + z * 500 - 1500).astype(numpy.int16), (0.98, 0.45, 1.0)
    yield "steps", numpy.where((x // 5 + y // 7 + z) % 2, 3071, -1024).astype(numpy.int16), (0.5, 0.4, 5.0)
    yield "one slice", random.integers(-1024, 3072, (1, 65, 64), numpy.int16), (0.3, 0.6, 3.0)


def run(folder, volume, spacing, task, mm, low, high, dtype):
    volume.tofile(folder / "raw")
    subprocess.run([BENCH, "cpu", task, repr(mm), folder / "raw", ",".join(map(str, volume.shape[::-1])),
                    ",".join(map(repr, spacing)), f"{low},{high}", folder / "out"], check=True)
    return numpy.fromfile(folder / "out", dtype)


def blocks(volume, spacing, mm):
    sums, counts = numpy.clip(volume, -1024, 3071).astype(numpy.int64), numpy.ones(volume.shape, numpy.int64)
    for axis, factor in enumerate(max(1, int(numpy.floor(mm / side + 0.5))) for side in spacing[::-1]):
        starts = numpy.arange(0, volume.shape[axis], factor)
        sums, counts = (numpy.add.reduceat(values, starts, axis) for values in (sums, counts))
    return (2 * sums * 8 + counts) // (2 * counts)


def weights(sigma):
    radius = int(numpy.floor(3 * sigma + 0.5))
    steps = numpy.arange(-radius, radius + 1)
    gauss = numpy.exp(-steps**2 / (2 * sigma**2)) if radius else numpy.ones(1)
    whole = numpy.floor(2**14 * (gauss / gauss.sum()) + 0.5).astype(numpy.int64)
    whole[radius] += 2**14 - whole.sum()
    return whole


def smooth(volume, spacing, mm):
    values = numpy.clip(volume, -1024, 3071).astype(numpy.int64)
    for axis in (2, 1, 0):
        sums = ndimage.correlate1d(values, weights(mm / spacing[2 - axis]), axis, mode="nearest")
        values = (sums + 2**13) // 2**14
    return values


@pytest.mark.parametrize("mm", [0.1, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("name, volume, spacing", volumes())
def test_every_block(tmp_path, name, volume, spacing, mm):
    expected = blocks(volume, spacing, mm)
    assert numpy.array_equal(run(tmp_path, volume, spacing, "blocks", mm, 0, 0, numpy.int16), expected.ravel())


@pytest.mark.parametrize("mm", [0.0, 0.7, 2.0, 6.0])
@pytest.mark.parametrize("name, volume, spacing", volumes())
def test_every_filtered_voxel(tmp_path, name, volume, spacing, mm):
    expected = smooth(volume, spacing, mm)
    if mm > 0: # the filter in floating point is near
        plain = numpy.clip(volume, -1024, 3071).astype(float)
        sigmas = [mm / side for side in spacing[::-1]]
        radii = [int(numpy.floor(3 * sigma + 0.5)) for sigma in sigmas]
        near = ndimage.gaussian_filter(plain, sigmas, mode="nearest", radius=radii)
        assert numpy.abs(expected - near).max() < 4
    for low, high in (-200, 100), (-1024, 900), (1000, 1003), (4000, 5000):
        bits = run(tmp_path, volume, spacing, "smooth", mm, low, high, numpy.uint8)
        found = numpy.unpackbits(bits.reshape(*volume.shape[:2], -1), axis=2, bitorder="little")
        assert not found[:, :, volume.shape[2]:].any()
        assert numpy.array_equal(found[:, :, : volume.shape[2]], (expected >= low) & (expected <= high))

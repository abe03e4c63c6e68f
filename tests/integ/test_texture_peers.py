"""Texture on the CPU compared with scikit-image, through bench_texture: every code of the local binary pattern, and
every count of the co-occurrence matrices within slices.

scikit-image interpolates the diagonals of P=8, R=1. Exact are P=4, R=1 for the axes and P=8, R=sqrt(2) for the
diagonals, away from the edges."""

import os
import pathlib
import subprocess

import numpy
import pytest
from skimage.feature import graycomatrix, local_binary_pattern

BENCH = pathlib.Path(os.environ["NOCTULE_BIN"]) / "bench_texture"
TOP = 4095


def volumes():
    random = numpy.random.default_rng(3)
    z, y, x = numpy.ogrid[:4, :37, :131]
    yield "noise", random.integers(0, TOP + 1, (3, 50, 70), numpy.int16)
    yield "few values", random.integers(0, 4, (2, 65, 129), numpy.int16)
    yield "ramp", (x * 3 + y * 7 + z * 500).astype(numpy.int16)
    yield "flat", numpy.full((1, 9, 200), 77, numpy.int16)


def run(folder, volume, task, levels, dtype):
    slices, rows, columns = volume.shape
    volume.tofile(folder / "raw")
    subprocess.run([BENCH, "--raw", folder / "raw", "--extent", f"{columns},{rows},{slices}", "--top", str(TOP),
                    "--task", task, "--levels", str(levels), "--out", folder / "out", "--repeat", "1"],
                   check=True, stdout=subprocess.DEVNULL)
    return numpy.fromfile(folder / "out", dtype)


@pytest.mark.parametrize("name, volume", volumes())
def test_every_code_of_the_local_binary_pattern(tmp_path, name, volume):
    slices, rows, columns = volume.shape
    codes = run(tmp_path, volume, "patterns", 2, numpy.uint8).reshape(3, slices, rows - 2, columns - 2)[0]
    for plane, ours in zip(volume, codes):
        axes = local_binary_pattern(plane, 4, 1).astype(int)[1:-1, 1:-1]
        theirs = local_binary_pattern(plane, 8, 2**0.5).astype(int)[1:-1, 1:-1] & 0b10101010
        for bit in range(4):
            theirs |= (axes >> bit & 1) << 2 * bit
        assert numpy.array_equal(ours, theirs)


@pytest.mark.parametrize("levels", [2, 8, 32, 255])
@pytest.mark.parametrize("name, volume", volumes())
def test_every_count_of_the_matrices(tmp_path, name, volume, levels):
    ours = run(tmp_path, volume, "glcm-2d", levels, numpy.uint64).reshape(4, levels, levels)
    image = (volume.astype(int) * levels // (TOP + 1)).astype(numpy.uint8)
    angles = [0, numpy.pi / 4, numpy.pi / 2, 3 * numpy.pi / 4]  # 45 degrees lead a row down
    theirs = sum(graycomatrix(plane, [1], angles, levels)[:, :, 0, :].astype(numpy.uint64) for plane in image)
    assert ours.sum() > 0
    assert numpy.array_equal(ours, numpy.moveaxis(theirs, 2, 0))

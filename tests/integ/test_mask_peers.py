"""Mask steps on the CPU compared with scipy.ndimage and cc3d, voxel for voxel, through noctule-bench, on random,
adversarial and real volumes."""

import functools
import os
import pathlib
import subprocess

import cc3d
import numpy
import pytest
from conftest import SHARED
from scipy import ndimage
from test_contours import PHANTOM
from test_run import exact_values, peer

BENCH = pathlib.Path(os.environ["NOCTULE_BIN"]) / "noctule-bench"
FACES = ndimage.generate_binary_structure(3, 1)
CORNERS = ndimage.generate_binary_structure(3, 3)


def smooth(shape, sigma, share, seed):
    field = ndimage.gaussian_filter(numpy.random.default_rng(seed).normal(size=shape), sigma)
    return field > numpy.quantile(field, 1 - share)


def body(shape):
    z, y, x = numpy.ogrid[: shape[0], : shape[1], : shape[2]]
    trunk = ((x - shape[2] / 2) / (0.4 * shape[2])) ** 2 + ((y - shape[1] / 2) / (0.3 * shape[1])) ** 2 < 1
    lungs = sum(((x - at * shape[2]) / (0.13 * shape[2])) ** 2 + ((y - shape[1] / 2) / (0.18 * shape[1])) ** 2
                + ((z - shape[0] / 2) / (0.4 * shape[0])) ** 2 < 1 for at in (0.33, 0.67)) > 0
    table = (y > 0.79 * shape[1]) & (y < 0.82 * shape[1]) & (z >= 0) & (x >= 0)
    return (trunk & ~(lungs & smooth(shape, 1, 0.9, 3))) | table


def serpentine(shape):
    """One corridor, a voxel wide, through the whole volume."""
    volume = numpy.zeros(shape, bool)
    volume[::2, ::2] = True
    for z in range(0, shape[0], 2):
        volume[z, 1::4, -1] = volume[z, 3::4, 0] = True
        volume[z + 1:z + 2, 0, 0] = True
    return volume


def real(folder, low, high, *crop):
    """Returns the voxels in range of a part of a series, and its spacing."""
    def read():
        if not (SHARED / folder).is_dir():
            pytest.skip(f"no {SHARED / folder}")
        datasets, _ = peer.read_series(SHARED / folder)
        values = exact_values(datasets)[crop]
        down, across = map(float, datasets[0].PixelSpacing)
        volume = (values >= low) & (values <= high)
        assert 0.05 < volume.mean() < 0.95
        return volume, (across, down, float(datasets[0].SliceThickness))
    return read


VOLUMES = {
    "blobs": (smooth((30, 70, 131), 2.5, 0.4, 1), (0.8, 0.8, 1.0)),
    "sponge": (smooth((24, 65, 64), 1.2, 0.6, 2), (0.7421875, 0.7421875, 2.5)),
    "noise": (numpy.random.default_rng(5).random((20, 50, 200)) < 0.31, (1.0, 1.0, 1.0)),
    "body": (body((40, 96, 150)), (2.0, 2.0, 3.0)),
    "thin": (smooth((1, 90, 513), 2, 0.5, 4), (0.5, 0.6, 5.0)),
    "serpentine": (serpentine((9, 40, 130)), (1.0, 1.0, 1.5)),
    "checkerboard": (numpy.indices((9, 33, 70)).sum(axis=0) % 2 == 0, (1.0, 0.7, 2.0)),
    "empty": (numpy.zeros((5, 20, 70), bool), (1.0, 1.0, 1.0)),
    "full": (numpy.ones((5, 20, 70), bool), (1.0, 1.0, 1.0)),
    "head": real("ct-head-tilted", 0, 80, slice(6, 22), slice(150, 350), slice(140, 360)),
    "chest": real(f"{PHANTOM}/dicom/image", -1000, -320, slice(10, 30), slice(40, 200), slice(3, 203)),
    "brain": real("mr-brain-t1", 20, 45, slice(180, 200), slice(100, 200), slice(60, 200)),
}


@functools.cache
def volume_of(name):
    return VOLUMES[name]() if callable(VOLUMES[name]) else VOLUMES[name]


def ours(folder, volume, spacing, *steps):
    """Returns the voxels above 0 after the steps."""
    slices, rows, columns = volume.shape
    volume.astype(numpy.uint8).tofile(folder / "raw")
    subprocess.run([BENCH, "--backend", "cpu", "--raw", folder / "raw", "--extent", f"{columns},{rows},{slices}",
                    "--pixel", "uint8", "--range", "1,255", "--spacing", ",".join(map(repr, spacing)), "--repeat", "1",
                    *(part for step in steps for part in ("--step", step)), "--mask-out", folder / "out"],
                   check=True, stdout=subprocess.DEVNULL)
    words = numpy.fromfile(folder / "out", numpy.uint8).reshape(slices, rows, -1)
    bits = numpy.unpackbits(words, axis=2, bitorder="little").astype(bool)
    assert not bits[:, :, columns:].any()
    return bits[:, :, :columns]


def ball(spacing, mm, in_slice=False):
    """Returns [k, j, i] of all offsets in the ball, or its disk in the slice, summed as in mask.h."""
    reach = [int(mm / step) + 1 for step in spacing]
    i, j, k = (numpy.arange(-r, r + 1) * step for r, step in zip(reach, spacing))
    i, j, k = i[None, None, :], j[None, :, None], k[:, None, None]
    inside = (i * i + j * j) + k * k <= mm * mm
    return inside[reach[2]:reach[2] + 1] if in_slice else inside


def eroded(volume, structure):
    """Voxels outside the volume count as set."""
    return ndimage.binary_erosion(volume, structure, border_value=1)


def opened(volume, structure):
    return ndimage.binary_dilation(eroded(volume, structure), structure)


def closed(volume, structure):
    """Works on a copy that is padded by the reach of the ball."""
    reach = [size // 2 for size in structure.shape]
    padded = eroded(ndimage.binary_dilation(numpy.pad(volume, [(r, r) for r in reach]), structure), structure)
    return padded[tuple(slice(r, r + size) for r, size in zip(reach, volume.shape))]


def bridges_cut(volume, structure, near):
    """Grows each core alone, without voxels that another core, or a neighbour of its voxels, reaches."""
    labels, count = ndimage.label(eroded(volume, structure), near)
    reached, grown = numpy.zeros(volume.shape, int), numpy.zeros(volume.shape, bool)
    for label in range(1, count + 1):
        one = ndimage.binary_dilation(labels == label, structure)
        grown |= one
        reached += ndimage.binary_dilation(one, near)
    return grown & (reached == 1)


def means_kept(volume, values, least, near):
    """Keeps components whose mean over voxels with six neighbours in the volume, as far as they exist, is not less."""
    labels, count = ndimage.label(volume, near)
    inner = ndimage.binary_erosion(volume, FACES, border_value=1)
    number = numpy.bincount(labels[inner], minlength=count + 1)
    total = numpy.bincount(labels[inner], values[inner], minlength=count + 1)
    return volume & ((number > 0) & (total / numpy.maximum(number, 1) >= least))[labels]


def components(volume, corners):
    """Returns labels from 1, their sizes, and the labels by falling size and rising first voxel."""
    labels, count = ndimage.label(volume, CORNERS if corners else FACES)
    theirs = cc3d.connected_components(volume, connectivity=26 if corners else 6)
    sizes = numpy.bincount(labels.ravel(), minlength=count + 1)
    assert sorted(sizes[1:]) == sorted(numpy.bincount(theirs.ravel())[1:])
    first = numpy.zeros(count + 1, int)
    found, at = numpy.unique(labels.ravel(), return_index=True)
    first[found] = at
    return labels, sizes, sorted(range(1, count + 1), key=lambda label: (-sizes[label], first[label]))


def kept(volume, corners, stays):
    labels, sizes, order = components(volume, corners)
    return numpy.isin(labels, [label for rank, label in enumerate(order) if stays(rank, sizes[label], sizes[order[0]])])


@pytest.mark.parametrize("corners", ["", ",corners"])
@pytest.mark.parametrize("name", VOLUMES)
def test_components(tmp_path, name, corners):
    volume, spacing = volume_of(name)
    ml = spacing[0] * spacing[1] * spacing[2] / 1000
    for count in (1, 2, 7):
        assert numpy.array_equal(ours(tmp_path, volume, spacing, f"keep={count}{corners}"),
                                 kept(volume, corners, lambda rank, size, largest: rank < count))
    assert numpy.array_equal(ours(tmp_path, volume, spacing, f"keep-at-least=0.01{corners}"),
                             kept(volume, corners, lambda rank, size, largest: size >= 0.01 * largest))
    assert numpy.array_equal(ours(tmp_path, volume, spacing, f"drop-below={30 * ml!r}{corners}"),
                             kept(volume, corners, lambda rank, size, largest: size * ml >= 30 * ml))


@pytest.mark.parametrize("name", VOLUMES)
def test_holes(tmp_path, name):
    volume, spacing = volume_of(name)
    assert numpy.array_equal(ours(tmp_path, volume, spacing, "fill-volume"), ndimage.binary_fill_holes(volume))
    assert numpy.array_equal(ours(tmp_path, volume, spacing, "fill-slices"),
                             numpy.stack([ndimage.binary_fill_holes(plane) for plane in volume]))
    assert numpy.array_equal(ours(tmp_path, volume, spacing, "fill-volume,corners"),
                             ndimage.binary_fill_holes(volume, CORNERS))


@pytest.mark.parametrize("corners", ["", ",corners"])
@pytest.mark.parametrize("name", VOLUMES)
def test_means(tmp_path, name, corners):
    volume, spacing = volume_of(name)
    random = numpy.random.default_rng(7)
    values = volume * numpy.round(100 + 40 * ndimage.gaussian_filter(random.normal(size=volume.shape), 1))
    for least in (97.5, 100, 102.25):
        assert numpy.array_equal(ours(tmp_path, values, spacing, f"drop-mean-below={least}{corners}"),
                                 means_kept(volume, values, least, CORNERS if corners else FACES))


@pytest.mark.parametrize("space", ["", ",slice"])
@pytest.mark.parametrize("steps", [0, 1, 1.5, 2, 3.4])
@pytest.mark.parametrize("name", VOLUMES)
def test_balls(tmp_path, name, steps, space):
    volume, spacing = volume_of(name)
    mm = steps * max(spacing[:2])
    structure = ball(spacing, mm, space)
    assert not (volume & ~closed(volume, structure)).any() and not (opened(volume, structure) & ~volume).any()
    for step, peer in (("grow", ndimage.binary_dilation), ("shrink", eroded), ("open", opened), ("close", closed)):
        assert numpy.array_equal(ours(tmp_path, volume, spacing, f"{step}={mm!r}{space}"), peer(volume, structure)), step


@pytest.mark.parametrize("corners", ["", ",corners"])
@pytest.mark.parametrize("name", ["blobs", "head", "chest"])
def test_bridges(tmp_path, name, corners):
    volume, spacing = volume_of(name)
    structure, near = ball(spacing, 2.0), CORNERS if corners else FACES
    expected = bridges_cut(volume, structure, near)
    assert ndimage.label(eroded(volume, structure), near)[1] > 1 and (opened(volume, structure) & ~expected).any()
    assert numpy.array_equal(ours(tmp_path, volume, spacing, f"cut-bridges=2{corners}"), expected)


def test_steps_one_after_the_other(tmp_path):
    volume, spacing = VOLUMES["body"]
    trunk = kept(opened(volume, ball(spacing, 6.0)), "", lambda rank, size, largest: rank < 1)
    expected = numpy.stack([ndimage.binary_fill_holes(plane) for plane in trunk])
    assert 0 < expected.sum() < volume.size and expected.sum() != trunk.sum() != volume.sum()
    assert numpy.array_equal(ours(tmp_path, volume, spacing, "open=6", "keep=1", "fill-slices"), expected)

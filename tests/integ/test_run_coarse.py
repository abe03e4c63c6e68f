"""Segments on a coarse grid, filtered ranges, refine and any-of: `noctule run` compared with the definitions in NumPy and SciPy."""

import json

import numpy as np
import pydicom
import pytest
from conftest import BIN, phantom, run_program
from scipy import ndimage
from test_run import seg_masks
from test_run_fuzzy import TYPE, read
from test_run_fuzzy_start import run  # noqa: F401

GRID, SIZE = 2.0, "70x53x19"


def segment(label, body, hidden=False):
    return f'{{ label = "{label}"; {body} {"hidden = true;" if hidden else TYPE} }}'


def factors(spacing, mm=GRID):
    return [max(1, int(np.floor(mm / s + 0.5))) for s in spacing]


def blocks(hounsfield, spacing):
    """Returns the means of blocks in 1/8 HU, as integers."""
    factor = factors(spacing)
    clipped = np.clip(hounsfield, -1024, 3071).astype(np.int64) * 8
    count = np.ones(clipped.shape, np.int64)
    for axis, k in enumerate(factor):
        starts = np.arange(0, clipped.shape[axis], k)
        clipped, count = np.add.reduceat(clipped, starts, axis), np.add.reduceat(count, starts, axis)
    return (2 * clipped + count) // (2 * count), [s * k for s, k in zip(spacing, factor)]


def expand(mask, spacing, shape):
    for axis, k in enumerate(factors(spacing)):
        mask = np.repeat(mask, k, axis)
    return mask[tuple(slice(n) for n in shape)]


def smooth(values, sigma, spacing):
    """Filters integers along x, then y, then z with integer weights."""
    values = values.astype(np.int64)
    for axis in (2, 1, 0):
        s = sigma / spacing[axis]
        radius = int(np.floor(3 * s + 0.5))
        weights = [np.exp(-i * i / (2 * s * s)) for i in range(radius + 1)]
        total = weights[0] + 2 * sum(weights[1:])
        whole = [int(np.floor(2**14 * w / total + 0.5)) for w in weights]
        whole[0] += 2**14 - whole[0] - 2 * sum(whole[1:])
        values = (ndimage.correlate1d(values, np.array(whole[:0:-1] + whole, np.int64), axis, mode="nearest") + 2**13) >> 14
    return values


def ball(mm, spacing):
    reach = [int(mm / s) for s in spacing]
    z, y, x = np.mgrid[tuple(slice(-r, r + 1) for r in reach)]
    return (x * spacing[2]) ** 2 + (y * spacing[1]) ** 2 + (z * spacing[0]) ** 2 <= mm * mm


def grow(mask, mm, spacing):
    return ndimage.binary_dilation(mask, ball(mm, spacing))


def shrink(mask, mm, spacing):
    return ndimage.binary_erosion(mask, ball(mm, spacing), border_value=1)


def read_ct(folder):
    datasets, _, values = read(folder)
    step = float(datasets[1].ImagePositionPatient[2]) - float(datasets[0].ImagePositionPatient[2])
    return datasets, values, [step, *map(float, datasets[0].PixelSpacing)]


@pytest.mark.parametrize("spacing", [(0.7, 0.7, 1.5), (0.9, 1.1, 2.5), (2.2, 2.2, 0.6)])
def test_voxel_for_voxel(run, tmp_path, spacing):  # noqa: F811
    x, y, z = spacing
    phantom(tmp_path / "in", "--size", SIZE, "--spacing", f"{x},{y},{z}")
    run(", ".join([
        segment("Tissue", "grid_mm = 2.0; method = \"range\"; range = [ 0.0, 80.0 ]; then = ( { open_mm = 2.5; }, { keep = 1; } );"),
        segment("Smooth", "grid_mm = 2.0; method = \"range\"; range = [ 10.0, 60.0 ]; smooth_mm = 2.0; minus = [ \"Tissue\" ];"),
        segment("Hidden", "grid_mm = 2.0; method = \"range\"; range = [ 0.0, 80.0 ]; smooth_mm = 1.5;", True),
        segment("Fine", "method = \"range\"; range = [ 0.0, 70.0 ]; smooth_mm = 1.0; within = [ \"Tissue\" ];"),
        segment("Both", "grid_mm = 2.0; method = \"any-of\"; any_of = [ \"Tissue\", \"Smooth\" ];"),
        segment("Refined", "method = \"range\"; range = [ -10.0, 70.0 ]; smooth_mm = 0.8; "
                           "refine = { label = \"Hidden\"; band_mm = 3.0; }; minus = [ \"Bone\" ];"),
        segment("Bone", "method = \"range\"; range = [ 250.0, 3000.0 ];"),
        segment("Shapes", "method = \"range\"; range = [ -100.0, 2000.0 ]; from = \"Bone\"; shapes = ( { kind = \"box\"; center = "
                          "{ voxel = [ 20.0, 30.0, 9.0 ]; }; radius_voxels = [ 9.0, 12.5, 4.0 ]; }, { center = { voxel = [ 40.0, 22.5, "
                          "8.0 ]; }; radius_voxels = 7.0; } );"),
        segment("Smooth shape", "grid_mm = 2.0; method = \"range\"; range = [ -10.0, 90.0 ]; smooth_mm = 1.2; shapes = ( { center = "
                                "{ fraction = [ 0.5, 0.5, 0.5 ]; }; radius_voxels = 6.0; } );"),
        segment("Any", "method = \"any-of\"; any_of = [ \"Bone\", \"Both\" ]; then = ( { keep = 1; } );"),
    ]), tmp_path / "out", tmp_path / "in")
    datasets, values, spacing = read_ct(tmp_path / "in")
    means, step = blocks(values, spacing)
    in_range = lambda v, lo, hi, scale=1: (v >= lo * scale) & (v <= hi * scale)  # noqa: E731
    tissue = in_range(means, 0, 80, 8)
    opened = grow(shrink(tissue, 2.5, step), 2.5, step)
    labels, count = ndimage.label(opened)
    tissue = labels == 1 + np.argmax(np.bincount(labels.ravel())[1:]) if count else opened
    smoothed = in_range(smooth(means, 2.0, step), 10, 60, 8) & ~tissue
    hidden = in_range(smooth(means, 1.5, step), 0, 80, 8)
    clipped = np.clip(values, -1024, 3071)
    up = lambda mask: expand(mask, spacing, values.shape)  # noqa: E731
    bone = in_range(values, 250, 3000)
    refined = (in_range(smooth(clipped, 0.8, spacing), -10, 70) | up(shrink(hidden, 3, step))) & up(grow(hidden, 3, step)) & ~bone
    z, y, x = np.indices(values.shape)
    drawn = ((abs(x - 20) <= 9) & (abs(y - 30) <= 12.5) & (abs(z - 9) <= 4)) | ((x - 40)**2 + (y - 22.5)**2 + (z - 8)**2 <= 49)
    near = sum((i - (n - 1) / 2)**2 for i, n in zip(np.indices(means.shape), means.shape)) <= 36
    labels, _ = ndimage.label(bone | up(tissue | smoothed))
    expected = {"Tissue": up(tissue), "Smooth": up(smoothed), "Fine": in_range(smooth(clipped, 1.0, spacing), 0, 70) & up(tissue),
                "Both": up(tissue | smoothed), "Refined": refined, "Bone": bone,
                "Shapes": in_range(values, -100, 2000) & (bone | drawn),
                "Smooth shape": up(in_range(smooth(means, 1.2, step), -10, 90, 8) & near),
                "Any": labels == 1 + np.argmax(np.bincount(labels.ravel())[1:])}
    got = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    for (label, mask), own in zip(expected.items(), got):
        assert mask.any() and not mask.all(), label
        assert np.array_equal(own, mask), (label, int((own ^ mask).sum()))
    told = {s["label"]: s for s in json.loads((tmp_path / "out" / "job.json").read_text())["segments"]}
    assert told["Hidden"]["voxels"] == up(hidden).sum() and told["Tissue"]["voxels"] == up(tissue).sum()
    # A hidden segment without a mask of the images has the measures of the coarse grid, in voxels of the images.
    where = np.nonzero(up(hidden))[::-1]
    assert told["Hidden"]["box"] == {"first": [int(w.min()) for w in where], "last": [int(w.max()) for w in where]}
    assert told["Hidden"]["mean"] == pytest.approx(means[hidden].mean() / 8)
    texts = [s.SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters
             for s in pydicom.dcmread(tmp_path / "out" / "seg.dcm").SegmentSequence]
    k = factors(spacing)
    assert texts[0] == f"range 0..80; on means of {k[2]} x {k[1]} x {k[0]} voxels; then open mm 2.5, keep 1"
    assert texts[4].startswith("range -10..70 after Gaussian 0.8 mm; refine segment Hidden within 3 mm; minus Bone")


KINDS = {"ct-head": "[ 0.0, 80.0 ]", "mr-brain": "{ percentile = [ 60.0, 95.0 ]; }", "head-tilted": "[ 0.0, 80.0 ]",
         "body-cut": "[ -150.0, 200.0 ]"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [[], ["--bits", "8"], ["--signed"]])
def test_blocks_of_one_voxel_change_nothing(run, tmp_path, kind, more):  # noqa: F811
    phantom(tmp_path / "in", "--kind", kind, "--size", "61x47x17", *more)
    steps = "then = ( { open_mm = 6.0; }, { fill = \"slices\"; } );"
    start = "auto = \"largest\";"
    body = f"range = {KINDS[kind]};"
    run(", ".join(segment(f"{method} {grid}", f"method = \"{method}\"; {body} {grid} {steps} {start if method == 'level-set' else ''}")
                  for method in ("range", "level-set") for grid in ("", "grid_mm = 0.01;")), tmp_path / "out", tmp_path / "in")
    masks = seg_masks(tmp_path / "out" / "seg.dcm", read_ct(tmp_path / "in")[0])
    assert all(mask.any() for mask in masks)
    assert np.array_equal(masks[0], masks[1]) and np.array_equal(masks[2], masks[3])
    told = json.loads((tmp_path / "out" / "job.json").read_text())["segments"]
    assert told[0]["voxels"] == told[1]["voxels"] and told[2]["voxels"] == told[3]["voxels"]


def test_memory_is_limited(run, tmp_path):  # noqa: F811
    """The limit is for both grids together."""
    phantom(tmp_path / "in", "--size", "128x128x40")
    segments = ", ".join(segment(f"S{i}", "method = \"range\"; range = [ 0.0, 80.0 ]; grid_mm = 0.1; then = ( { close_mm = 5.0; } );")
                         for i in range(20))
    run(segments, tmp_path / "out", tmp_path / "in", more="memory_mib = 64.0;")
    result = run(segments, tmp_path / "small", tmp_path / "in", more="memory_mib = 4.0;", status=1)
    assert "JOB_TOO_LARGE" in result.stdout + result.stderr


def test_limits_are_those_of_the_grid(run, tmp_path):  # noqa: F811
    phantom(tmp_path / "in", "--size", SIZE, "--spacing", "0.7,0.7,1.5")
    _, values, spacing = read_ct(tmp_path / "in")
    means, step = blocks(values, spacing)
    mask = (means >= 0) & (means <= 640)
    ml = mask.sum() * np.prod(step) / 1000
    mean = means[mask].mean() / 8
    for shift, status in ((0, 0), (0.01, 8)):
        expect = f"expect = {{ volume_ml = [ {ml - 0.001 + shift:.9g}, 1e6 ]; mean = [ {mean - 0.001:.9g}, {mean + 0.001:.9g} ]; }};"
        run(segment("A", f"method = \"range\"; range = [ 0.0, 80.0 ]; grid_mm = 2.0; {expect}"), tmp_path / f"out{status}",
            tmp_path / "in", status=status)
        told = json.loads((tmp_path / f"out{status}" / "job.json").read_text())
        assert bool(status) == ("EXPECTATION_BROKEN" in json.dumps(told))

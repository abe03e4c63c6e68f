"""Fuzzy connectedness with automatic seeds: `noctule run` compared with scipy.ndimage and the definition in numpy."""

import json
import math
import subprocess

import numpy as np
import pydicom
import pytest
from conftest import BIN, phantom
from objects import save, structure_set
from scipy import ndimage
from test_run import seg_masks
from test_run_expressions import largest
from test_run_fuzzy import TYPE, Object, read

SIZE, REACH, THRESHOLD = "70x36x9", 2, 0.8


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with a pipeline of these segments. Returns the CompletedProcess."""
    def call(segments, output, *inputs, status=0, more=""):
        config = tmp_path / "noctule.conf"
        config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "p"; segments = ( {segments} ); {more}'
                          ' min_slices = 1; } );')
        result = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "p", "--output", output,
                                 *map(str, inputs)], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stdout + result.stderr
        return result

    return call


def fuzzy(label, body, threshold=THRESHOLD):
    return (f'{{ label = "{label}"; method = "fuzzy-connectedness"; estimate_voxels = {REACH}; threshold = {threshold}; '
            f'{body} {TYPE} }}')


RANGE = '{ label = "Inside"; method = "range"; range = [ 0.0, 80.0 ]; then = ( { keep = 2; } ); hidden = true; }'


def extreme(values, datasets, sign, mm, mask):
    """Returns the largest component of the voxels with the highest (lowest) mean over a box."""
    steps = [float(datasets[1].ImagePositionPatient[2]) - float(datasets[0].ImagePositionPatient[2]),
             *map(float, datasets[0].PixelSpacing)]
    reach = [int(mm / 2 / step) for step in steps]
    mean = np.full(values.shape, -np.inf)
    mean[tuple(slice(n, size - n) for n, size in zip(reach, values.shape))] = sign * np.lib.stride_tricks.sliding_window_view(
        values, [2 * n + 1 for n in reach]).sum((3, 4, 5))
    mean[~mask] = -np.inf
    return largest(mean == mean.max())


def around(values, start):
    """Returns mean, deviation, root mean square of half differences, and number of voxels."""
    near = ndimage.binary_dilation(start, np.ones((2 * REACH + 1,) * 3))
    squares = []
    for axis in range(3):
        both = np.take(near, range(near.shape[axis] - 1), axis) & np.take(near, range(1, near.shape[axis]), axis)
        squares.append((np.diff(values, axis=axis)[both] / 2) ** 2)
    return values[near].mean(), values[near].std(), math.sqrt(np.concatenate(squares).mean()), int(near.sum())


def starts(values, datasets):
    """Returns the start regions of the segments below, and the region that contains the first two."""
    inside = largest((values >= 0) & (values <= 80), 2)
    everything = np.ones(values.shape, bool)
    middle = np.zeros(values.shape, bool)
    middle[tuple(slice((n - 1) // 2, n // 2 + 1) for n in values.shape)] = True
    return [largest(inside), extreme(values, datasets, 1, 8, inside), extreme(values, datasets, -1, 8, everything),
            middle], [inside, inside, everything, everything]


def objects(stored, values, rescale, regions):
    measured = [around(values, region) for region in regions]
    things = [Object(stored, *rescale, *numbers[:3], 0.5, THRESHOLD) for numbers in measured]
    return [(thing.connectedness(np.argwhere(region)), thing.threshold)
            for thing, region in zip(things, regions)], measured


ALL = ", ".join([
    fuzzy("Largest", 'auto = "largest"; within = [ "Inside" ];'),
    fuzzy("Highest", 'auto = "highest"; auto_mm = 8; within = [ "Inside" ];'), RANGE,
    fuzzy("Lowest", 'auto = "lowest"; auto_mm = 8;'), fuzzy("Middle", 'auto = "center";')])


@pytest.mark.parametrize("relative", [False, True])
def test_all_voxels_of_the_start_are_seeds(run, tmp_path, relative):
    phantom(tmp_path / "in", "--size", SIZE)
    run(ALL, tmp_path / "out", tmp_path / "in", more="relative_connectedness = true;" if relative else "")
    datasets, stored, values = read(tmp_path / "in")
    rescale = float(datasets[0].RescaleSlope), float(datasets[0].RescaleIntercept)
    regions, limits = starts(values, datasets)
    found, measured = objects(stored, values, rescale, regions)
    masks = [strength > threshold for strength, threshold in found]
    if relative:
        strengths = np.stack([np.where(mask, strength, 0) for mask, (strength, _) in zip(masks, found)])
        best = strengths.max(0)
        alone = (strengths == best).sum(0) == 1
        masks = [mask & (strength == best) & alone for mask, strength in zip(masks, strengths)]
        assert ((strengths > 0).sum(0) > 1).any(), "nothing to decide"
    got = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    for mask, limit, region, own in zip(masks, limits, regions, got):
        assert region.any() and not region.all()
        assert np.array_equal(own, mask & limit)
    assert relative or all(mask.any() and not mask.all() for mask in masks)
    told = json.loads((tmp_path / "out" / "job.json").read_text())["segments"]
    assert [s["measured_voxels"] for s in told if not s.get("hidden")] == [numbers[3] for numbers in measured]
    texts = [s.SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters
             for s in pydicom.dcmread(tmp_path / "out" / "seg.dcm").SegmentSequence]
    assert "; from the largest component; within Inside" in texts[0] and "; from the highest mean over 8 mm" in texts[1]
    assert "; from the volume's middle; seeds in voxels 34,17,4" in texts[3]


def test_an_object_within_another_object(run, tmp_path):
    """Objects are computed one after the other, because the second starts within the first."""
    phantom(tmp_path / "in", "--size", SIZE)
    run(", ".join([fuzzy("Second", 'auto = "lowest"; auto_mm = 8; within = [ "First" ];', 0.95),
                   fuzzy("First", 'auto = "center";')]), tmp_path / "out", tmp_path / "in")
    datasets, stored, values = read(tmp_path / "in")
    rescale = float(datasets[0].RescaleSlope), float(datasets[0].RescaleIntercept)
    middle = starts(values, datasets)[0][3]
    ((strength, threshold),), _ = objects(stored, values, rescale, [middle])
    first = strength > threshold
    ((strength, _),), _ = objects(stored, values, rescale, [extreme(values, datasets, -1, 8, first)])
    second = (strength > math.floor(65535 * 0.95)) & first
    assert second.any() and not np.array_equal(first, second)
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets), np.stack([second, first]))


def test_a_missing_start_is_refused(run, tmp_path):
    phantom(tmp_path / "in", "--size", SIZE)
    nothing = '{ label = "Inside"; method = "range"; range = [ 9000.0, 9001.0 ]; hidden = true; }'
    result = run(", ".join([fuzzy("A", 'auto = "largest"; within = [ "Inside" ];'), nothing]), tmp_path / "out",
                 tmp_path / "in", status=1)
    assert "SEEDS_IN_PADDING" in result.stdout + result.stderr and 'segment "A"' in result.stdout + result.stderr


def test_a_segment_and_an_rtstruct_region_are_starts(run, tmp_path):
    """All voxels of the segment are seeds, and their surroundings are measured: for a range, and for a region of an
    RTSTRUCT."""
    files = phantom(tmp_path / "in", "--size", SIZE)
    plan = save(structure_set(files[3:6]), tmp_path / "plan.dcm")
    drawn = f'{{ label = "Drawn"; method = "object"; object = {{ kind = "rtstruct"; roi = "GTV"; }}; {TYPE} }}'
    some = RANGE.replace("Inside", "Some").replace("[ 0.0, 80.0 ]", "[ 40.0, 80.0 ]").replace("keep = 2", "keep = 1")
    run(", ".join([fuzzy("From drawn", 'from = "Drawn";'), drawn, some, fuzzy("From range", 'from = "Some";')]),
        tmp_path / "out", "--object", plan, tmp_path / "in")
    datasets, stored, values = read(tmp_path / "in")
    rescale = float(datasets[0].RescaleSlope), float(datasets[0].RescaleIntercept)
    got = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    regions = [got[1], largest((values >= 40) & (values <= 80), 1)]
    assert all(0 < region.sum() < region.size for region in regions) and regions[0].any((1, 2)).sum() == 3
    found, measured = objects(stored, values, rescale, regions)
    assert [np.array_equal(own, strength > threshold) for own, (strength, threshold) in zip(got[[0, 2]], found)] == [True] * 2
    told = {s["label"]: s for s in json.loads((tmp_path / "out" / "job.json").read_text())["segments"]}
    assert [told[label]["measured_voxels"] for label in ("From drawn", "From range")] == [numbers[3] for numbers in measured]

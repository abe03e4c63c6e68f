"""Parts of segments: halves by side, slices by share, components by mean, disks in slices: `noctule run` compared with NumPy and
SciPy, voxel for voxel."""

import numpy as np
import pydicom
import pytest
from scipy import ndimage
from test_mask_peers import CORNERS, FACES, ball, components, eroded, means_kept, opened
from test_run import seg_masks
from test_run_expressions import run, segment, within, write  # noqa: F401

SPACING = (2.0, 1.5, 3.0)
SHRINK = [0.0, 1.5, 2.5, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0]


def two_lungs(touching):
    """Two lungs, which touch, a bubble, and vessels: (slice, row, column)."""
    z, y, x = np.ogrid[:20, :64, :100]
    radius = 20 if touching else 14
    lungs = sum(((x - at) / radius) ** 2 + ((y - 32) / 24) ** 2 + ((z - 9) / 8.6) ** 2 < 1 for at in (30, 66)) > 0
    bubble = ((x - 52) / 4) ** 2 + ((y - 6) / 3) ** 2 + ((z - 16) / 2) ** 2 < 1
    noise = ndimage.gaussian_filter(np.random.default_rng(4).normal(size=lungs.shape), 1.1)
    return np.where((lungs & (noise < np.quantile(noise, 0.95))) | bubble, -800.0, 40.0)


def nearest(part, spacing):
    """Returns the squared distances to the part, summed as (x^2 + y^2) + z^2."""
    at = np.indices(part.shape)
    there = ndimage.distance_transform_edt(~part, sampling=spacing[::-1], return_distances=False, return_indices=True)
    z, y, x = ((there[axis] - at[axis]) * spacing[2 - axis] for axis in range(3))
    return (x * x + y * y) + z * z


def halves(mask, spacing, direction, share=0.2, apart=30.0):
    """Returns the right and the left half. `direction`: of columns, to the patient's left or right."""
    for mm in SHRINK:
        labels, sizes, order = components(eroded(mask, ball(spacing, mm)), False)
        if len(order) < 2:
            continue
        one, other = (labels == label for label in order[:2])
        x = [np.nonzero(part)[2].mean() * spacing[0] * direction for part in (one, other)]
        if other.sum() / (one.sum() + other.sum()) < share or abs(x[0] - x[1]) < apart:
            continue
        first = mask & (nearest(one, spacing) <= nearest(other, spacing))
        return (first, mask & ~first) if x[0] < x[1] else (mask & ~first, first)
    return np.zeros_like(mask), np.zeros_like(mask)


@pytest.mark.parametrize("touching, turned", [(True, False), (True, True), (False, False)])
def test_halves(run, tmp_path, touching, turned):  # noqa: F811
    def turn(_, dataset):
        if turned:
            dataset.ImageOrientationPatient = [-1, 0, 0, 0, -1, 0]

    datasets, values = write(tmp_path / "in", two_lungs(touching), turn, SPACING)
    side = 'method = "side"; from = "Air"; side = {{ which = "{}"; apart_mm = {}; }};'
    run(", ".join([segment("Right", side.format("right", 30.0)), segment("Left", side.format("left", 30.0)),
                   segment("None", side.format("left", 300.0)), segment("Nor", side.format("right", 300.0)),
                   segment("Again", side.format("left", 29.0)),
                   segment("Air", 'method = "range"; range = [ -1000, -400 ];')]), tmp_path / "out", tmp_path / "in")
    air = within(values, -1000, -400)
    right, left = halves(air, SPACING, -1 if turned else 1)
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert ndimage.label(air)[1] > 1 and 0.3 < right.sum() / air.sum() < 0.7 and not (right & left).any()
    assert (np.nonzero(right)[2].mean() > np.nonzero(left)[2].mean()) == turned
    assert [np.array_equal(found, wanted) for found, wanted in zip(masks, (right, left, air & False, air & False, left, air))
            ] == [True] * 6
    seg = pydicom.dcmread(tmp_path / "out" / "seg.dcm")
    assert seg.SegmentSequence[0].SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters == (
        "right half of Air; parts of at least 0.2, 30 mm apart, by shrink mm 0, 1.5, 2.5, 4, 6, 8, 10, 12, 15")


@pytest.mark.parametrize("share, options, wanted", [
    ((0.0, 0.02), "", lambda runs: runs),
    ((0.0, 0.02), "longest = true;", lambda runs: sorted(runs, key=len)[-1:]),
    ((0.0, 0.02), "at_least_mm = 9.0;", lambda runs: [run for run in runs if len(run) * 3.0 >= 9]),
    ((0.02, 1.0), "longest = true; at_least_mm = 61.0;", lambda runs: []),
])
def test_slices(run, tmp_path, share, options, wanted):  # noqa: F811
    values = two_lungs(True)
    values[[0, 5, 6, 11]] = 40
    values[[2, 19]] = -2000
    datasets, values = write(tmp_path / "in", values, spacing=SPACING)
    run(", ".join([segment("Part", f'method = "slices"; from = "All"; slices_where = {{ label = "Air"; share = [ {share[0]}, '
                                   f'{share[1]} ]; {options} }};'),
                   segment("All", 'method = "range"; range = [ -1000, 1000 ];'),
                   segment("Air", 'method = "range"; range = [ -1000, -400 ];', hidden=True)]),
        tmp_path / "out", tmp_path / "in")
    own, air = (within(values, -1000, high) for high in (1000, -400))
    good = [all_.any() and share[0] <= some.sum() / all_.sum() <= share[1] for all_, some in zip(own, air)]
    labels, count = ndimage.label(good)
    expected = own & False
    for found in wanted([np.nonzero(labels == label)[0] for label in range(1, count + 1)]):
        expected[found] = own[found]
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert np.array_equal(masks[0], expected) and not expected.all()


@pytest.mark.parametrize("connectivity", [6, 26])
def test_components_are_dropped_by_their_means(run, tmp_path, connectivity):  # noqa: F811
    random = np.random.default_rng(9)
    values = np.where(ndimage.gaussian_filter(random.normal(size=(12, 40, 70)), 1.3) > 0.1, -960, 0)
    values += np.where(values < 0, np.round(60 * ndimage.gaussian_filter(random.normal(size=values.shape), 2)) * 2, 0).astype(int)

    def one_rescale(index, dataset):
        dataset.RescaleSlope, dataset.RescaleIntercept = 2, -1024
        dataset.PixelData = ((values[index] + 1024) // 2).astype(np.int16).tobytes()

    datasets, values = write(tmp_path / "in", values.astype(float), one_rescale, SPACING)
    body = 'method = "range"; range = [ -2000, -900 ]; then = ( {{ drop_mean_below = -959.5; {} }} );'
    run(segment("Air", body.format(f"connectivity = {connectivity};")), tmp_path / "out", tmp_path / "in")
    air = within(values, -2000, -900)
    expected = means_kept(air, values, -959.5, CORNERS if connectivity == 26 else FACES)
    assert 0 < expected.sum() < air.sum()
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0], expected)


def test_disks(run, tmp_path):  # noqa: F811
    datasets, values = write(tmp_path / "in", two_lungs(True), spacing=SPACING)
    run(segment("Air", 'method = "range"; range = [ -1000, -400 ]; then = ( { open_mm = 4; space = "slice"; } );'),
        tmp_path / "out", tmp_path / "in")
    expected = opened(within(values, -1000, -400), ball(SPACING, 4.0, True))
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0], expected) and expected.any()

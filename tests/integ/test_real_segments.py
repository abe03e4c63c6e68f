"""Segmentation of series whose slices have rescales of their own: `noctule run` compared with NumPy and SciPy on the real values,
voxel for voxel, and with the same values stored with one slope."""

import json
import math

import numpy as np
import pydicom
import pytest
from conftest import SHARED, needs_shared, phantom
from scipy import ndimage
from test_mask_peers import CORNERS, FACES, means_kept
from test_run import change, exact_values, seg_masks
from test_run_coarse import factors, grow, segment, shrink
from test_run_coarse import smooth as integer_smooth
from test_run_expressions import write
from test_run_fuzzy import Object, eight_bits, maps_of, measure, middle, peer
from test_run_fuzzy_start import run  # noqa: F401

SIZE = "64x60x14"
DYADIC = [1, 2, 0.5, 8, 4, 2, 1, 0.5, 4, 8, 2, 1, 4, 0.5]


def pet(folder, slopes=None, spacing="4,4,5"):
    """Writes a PET of hot spots in noise. Slices are stored with their largest value as 32767, as scanners do, or with `slopes`, in 12
    bits."""
    files = phantom(folder, "--kind", "pet", "--size", SIZE, "--spacing", spacing)
    columns, rows, slices = map(int, SIZE.split("x"))
    random = np.random.default_rng(7)
    values = ndimage.gaussian_filter(random.normal(size=(slices, rows, columns)), 2.5, mode="wrap")
    values = 1000 * np.exp(3 * values / values.std() / 2) + 50 * random.random(values.shape)
    order = {d.SOPInstanceUID: z for z, d in enumerate(peer.read_series(folder)[0])}
    unit = min(slopes[z] * 4095 / plane.max() for z, plane in enumerate(values)) if slopes else 1

    def put(_, dataset):
        plane = unit * values[order[dataset.SOPInstanceUID]]
        slope = slopes[order[dataset.SOPInstanceUID]] if slopes else float(f"{plane.max() / 32767:.6g}")
        dataset.RescaleSlope, dataset.RescaleIntercept, dataset.PixelRepresentation = slope, 0, 0
        dataset.BitsStored, dataset.HighBit = (12, 11) if slopes else (16, 15)
        dataset.PixelData = np.round(plane / slope).astype(np.uint16).tobytes()

    change(files, put)
    return folder


def with_one_slope(source, target, slope=0.5):
    """Copies a series, stored with one slope; the values are the same."""
    target.mkdir()
    for path in source.glob("*.dcm"):
        dataset = pydicom.dcmread(path)
        stored = dataset.pixel_array.astype(float) * float(dataset.RescaleSlope) / slope
        assert np.array_equal(stored, stored.astype(np.uint16))
        dataset.PixelData = stored.astype(np.uint16).tobytes()
        dataset.RescaleSlope, dataset.BitsStored, dataset.HighBit = slope, 16, 15
        dataset.save_as(target / path.name)
    return target


def read(folder):
    datasets, _ = peer.read_series(folder)
    step = float(datasets[1].ImagePositionPatient[2]) - float(datasets[0].ImagePositionPatient[2])
    return datasets, exact_values(datasets), [step, *map(float, datasets[0].PixelSpacing)]


def smooth(values, sigma, spacing):
    """Filters real values; `mode` repeats the last voxel."""
    for axis in (2, 1, 0):
        values = ndimage.gaussian_filter1d(values, sigma / spacing[axis], axis, mode="nearest", truncate=3)
    return values


def blocks(values, spacing, mm):
    """Returns the means of blocks, and their spacing."""
    count = np.ones(values.shape)
    factor = factors(spacing, mm)
    for axis, k in enumerate(factor):
        starts = np.arange(0, values.shape[axis], k)
        values, count = np.add.reduceat(values, starts, axis), np.add.reduceat(count, starts, axis)
    return values / count, [s * k for s, k in zip(spacing, factor, strict=True)]


def masks_of(run, pipeline, folder, tmp_path, name):  # noqa: F811
    run(pipeline, tmp_path / name, folder)
    return seg_masks(tmp_path / name / "seg.dcm", peer.read_series(folder)[0])


def test_filtered_ranges(run, tmp_path):  # noqa: F811
    pet(tmp_path / "in")
    _, values, spacing = read(tmp_path / "in")
    assert len({float(d.RescaleSlope) for d in peer.read_series(tmp_path / "in")[0]}) > 5
    low, high = map(float, np.quantile(values, [0.7, 0.98]))
    ends = f"range = [ {low!r}, {high!r} ];"
    got = masks_of(run, ", ".join([
        segment("Wide", f'method = "range"; {ends} smooth_mm = 6.0;'),
        segment("Core", f'method = "range"; {ends}'),
        segment("Within", f'method = "range"; {ends} smooth_mm = 3.5; from = "Core";')]), tmp_path / "in", tmp_path, "out")
    wide, narrow = smooth(values, 6.0, spacing), smooth(values, 3.5, spacing)
    within = [(v >= low) & (v <= high) for v in (wide, values, narrow)]
    within[2] &= within[1]
    for mask, own in zip(got, within, strict=True):
        assert own.any() and not own.all() and np.array_equal(mask, own), int((mask ^ own).sum())


def test_blocks(run, tmp_path):  # noqa: F811
    """The unit of the blocks is 1/65535 of all values that the stored bits can have."""
    pet(tmp_path / "in")
    datasets, values, spacing = read(tmp_path / "in")
    most = 2 ** datasets[0].BitsStored - 1
    ends = [float(d.RescaleSlope) * v + float(d.RescaleIntercept) for d in datasets for v in (0, most)]
    assert datasets[0].PixelRepresentation == 0
    unit = (max(ends) - min(ends)) / 65535
    means, _ = blocks(values, spacing, 9.0)
    means = np.floor((means - min(ends)) / unit + 0.5) * unit + min(ends)
    low, high = ((np.quantile(values, [0.7, 0.98]) // unit + 0.5) * unit).tolist()  # between two values of blocks
    (got,) = masks_of(run, segment("A", f'grid_mm = 9.0; method = "range"; range = [ {low!r}, {high!r} ];'), tmp_path / "in",
                      tmp_path, "out")
    expected = expand_by((means >= low) & (means <= high), spacing, values.shape, 9.0)
    assert expected.any() and not expected.all() and np.array_equal(got, expected)
    told = json.loads((tmp_path / "out" / "job.json").read_text())["segments"][0]
    assert told["voxels"] == expected.sum()


def expand_by(mask, spacing, shape, mm):
    for axis, k in enumerate(factors(spacing, mm)):
        mask = np.repeat(mask, k, axis)
    return mask[tuple(slice(n) for n in shape)]


SAME = {
    "smooth": 'method = "range"; range = [ {low}, {high} ]; smooth_mm = {mm};',
    "blocks": 'grid_mm = 9.0; method = "range"; range = [ {low}, {high} ];',
    "smooth-blocks": 'grid_mm = 9.0; method = "range"; range = [ {low}, {high} ]; smooth_mm = {mm};',
    "means": 'method = "range"; range = [ {low}, {high} ]; then = ( {{ drop_mean_below = {mean}; }}, {{ close_mm = {mm}; }} );',
    "fuzzy": 'method = "fuzzy-connectedness"; seeds = ( {{ voxel = [ {seed} ]; }} ); object_mean = {mean}; threshold = 0.4;',
    "otsu-blocks": 'grid_mm = 9.0; method = "range"; range = {{ otsu = 3; class = 3; }}; then = ( {{ open_mm = {mm}; }} );',
    "level-set-blocks": 'grid_mm = 9.0; method = "level-set"; range = [ {low}, {high} ]; auto = "largest";',
}


@pytest.mark.parametrize("body", SAME)
@pytest.mark.parametrize("slopes", [DYADIC, [3 * slope for slope in DYADIC]])
def test_one_slope_gives_the_same_mask(run, tmp_path, body, slopes):  # noqa: F811
    pet(tmp_path / "in", slopes)
    with_one_slope(tmp_path / "in", tmp_path / "one", min(slopes))
    _, values, _ = read(tmp_path / "in")
    assert np.array_equal(values, read(tmp_path / "one")[1])
    low, mean, high = map(float, np.quantile(values, [0.6, 0.8, 0.99]))
    seed = ", ".join(map(str, np.unravel_index(values.argmax(), values.shape)[::-1]))
    text = ", ".join(segment(f"A{i}", SAME[body].format(low=repr(low), high=repr(high), mm=mm, mean=mean, seed=seed)) for i, mm in enumerate((4.5, 7.0)))
    own, one = (masks_of(run, text, tmp_path / name, tmp_path, "out-" + name) for name in ("in", "one"))
    assert own[0].any() and not own[0].all()
    assert np.array_equal(own, one)


@pytest.mark.parametrize("connectivity", [6, 26])
def test_means_of_components(run, tmp_path, connectivity):  # noqa: F811
    """Steps before and after the means; steps that add voxels stay within `within`."""
    pet(tmp_path / "in")
    _, values, spacing = read(tmp_path / "in")
    low, least, cut = map(float, np.quantile(values, [0.75, 0.93, 0.4]))
    got = masks_of(run, ", ".join([
        segment("Means", f'method = "range"; range = [ {low!r}, 1e9 ]; then = ( {{ drop_mean_below = {least!r}; connectivity = '
                         f'{connectivity}; }} );'),
        segment("Body", f'method = "range"; range = [ {cut!r}, 1e9 ];'),
        segment("Steps", f'method = "range"; range = [ {low!r}, 1e9 ]; within = [ "Body" ]; then = ( {{ shrink_mm = 4.0; }}, {{ '
                         f'drop_mean_below = {least!r}; connectivity = {connectivity}; }}, {{ grow_mm = 9.0; }}, {{ drop_mean_below = '
                         f'{low!r}; }} );')]), tmp_path / "in", tmp_path, "out")
    corners, hot = CORNERS if connectivity == 26 else FACES, values >= low
    expected = means_kept(hot, values, least, corners)
    assert 0 < expected.sum() < hot.sum() and np.array_equal(got[0], expected)
    core = shrink(hot, 4.0, spacing)
    kept_ = means_kept(core, values, least, corners)
    expected = means_kept(grow(kept_, 9.0, spacing) & (values >= cut), values, low, FACES)
    assert 0 < kept_.sum() < core.sum() and expected.any() and np.array_equal(got[2], expected)


class RealObject(Object):
    """Wang 2016 for real values. The exponential is that of the C library."""

    def __init__(self, values, mean, sigma, homogeneity, weight=0.5, threshold=0.5):
        self.values, self.weight, self.threshold = values, weight, math.floor(65535 * threshold)
        self.stored, self.mean, self.sigma, self.homogeneity = values, mean, sigma, homogeneity

    def affinities(self, axis):
        count = self.values.shape[axis]
        a, b = (np.take(self.values, range(*ends), axis) for ends in ((0, count - 1), (1, count)))
        exp = np.vectorize(math.exp)
        first = self.weight * exp(-((a + b) / 2 - self.mean) ** 2 / (2 * (self.sigma * self.sigma)))
        second = (1 - self.weight) * exp(-(abs(a - b) / 2) ** 2 / (2 * (self.homogeneity * self.homogeneity)))
        return np.minimum(np.floor(65535 * (first + second)), 65535).astype(np.int64)


def test_fuzzy_connectedness(run, tmp_path):  # noqa: F811
    pet(tmp_path / "in")
    datasets, values, _ = read(tmp_path / "in")
    hottest = [int(at) for at in np.unravel_index(values.argmax(), values.shape)]
    seed = ", ".join(map(str, hottest[::-1]))
    middle_, high = (float(np.quantile(values, share)) for share in (0.5, 0.9))
    fuzzy = 'method = "fuzzy-connectedness"; connectedness_map = true;'
    got = masks_of(run, ", ".join([
        segment("Given", f'{fuzzy} seeds = ( {{ voxel = [ {seed} ]; }}, {{ fraction = [ 0.5, 0.5, 0.5 ]; }} ); object_mean = {high!r}; '
                         f'object_sigma = {middle_!r}; homogeneity_sigma = {middle_ / 9!r}; weight = 0.375; threshold = 0.5;'),
        segment("Measured", f"{fuzzy} seeds = ( {{ voxel = [ {seed} ]; }} ); estimate_voxels = 2; threshold = 0.3;"),
        segment("Hot", f'method = "range"; range = [ {high!r}, 1e9 ];'),
        segment("From", f'method = "fuzzy-connectedness"; from = "Hot"; object_mean = {high!r}; object_sigma = {middle_!r}; '
                        f'homogeneity_sigma = {middle_ / 9!r}; threshold = 0.7;')]), tmp_path / "in", tmp_path, "out")
    mean, sigma, homogeneity, count = measure(values, hottest, 2)
    things = [RealObject(values, high, middle_, middle_ / 9, 0.375), RealObject(values, mean, sigma, homogeneity, threshold=0.3),
              RealObject(values, high, middle_, middle_ / 9, threshold=0.7)]
    seeds = [[hottest, middle(values.shape)], [hottest], np.argwhere(values >= high)]
    maps = [thing.connectedness(at) for thing, at in zip(things, seeds, strict=True)]
    told = json.loads((tmp_path / "out" / "job.json").read_text())["segments"][1]
    assert [told["object_mean"], told["object_sigma"], told["homogeneity_sigma"],
            told["measured_voxels"]] == pytest.approx([mean, sigma, homogeneity, count], rel=1e-8)  # of 9 digits
    for thing, connectedness, mask in zip(things, maps, got[[0, 1, 3]], strict=True):
        assert mask.any() and not mask.all() and np.array_equal(mask, connectedness > thing.threshold)
    written = maps_of(tmp_path / "out" / "seg-fractional.dcm", datasets)
    assert np.array_equal(written, np.stack([eight_bits(connectedness) for connectedness in maps[:2]]))


def test_relative_connectedness(run, tmp_path):  # noqa: F811
    pet(tmp_path / "in")
    _, values, _ = read(tmp_path / "in")
    things, seeds, text = [], [], []
    for label, share in (("Hot", 0.97), ("Warm", 0.5), ("Cold", 0.05)):
        mean = float(np.quantile(values, share))
        seeds.append(np.array(np.unravel_index(abs(values - mean).argmin(), values.shape)))
        things.append(RealObject(values, mean, 1500.0, 3000.0, threshold=0.25))
        text.append(segment(label, f'method = "fuzzy-connectedness"; seeds = ( {{ voxel = [ {", ".join(map(str, seeds[-1][::-1]))} ]; }} '
                                   f"); object_mean = {mean!r}; object_sigma = 1500.0; homogeneity_sigma = 3000.0; threshold = 0.25;"))
    run(", ".join(text), tmp_path / "out", tmp_path / "in", more="relative_connectedness = true;")
    maps = [thing.connectedness([seed]) for thing, seed in zip(things, seeds, strict=True)]
    strong = np.stack([np.where(m > thing.threshold, m, -1) for m, thing in zip(maps, things, strict=True)])
    best = np.sort(strong, axis=0)
    expected = (strong == best[-1]) & (strong > -1) & (best[-1] > best[-2])
    assert all(mask.any() for mask in expected) and (best[-2] > -1).any()
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", peer.read_series(tmp_path / "in")[0]), expected)


def test_hounsfield_units_of_different_slopes(run, tmp_path):  # noqa: F811
    """Blocks have the unit 1/8 HU, and values beyond -1024 .. 3071 HU count as these, as in a CT of one slope. Padding counts as the
    lowest value."""
    random = np.random.default_rng(5)
    values = np.round(ndimage.gaussian_filter(random.normal(size=(12, 50, 70)), 2) * 4000)
    values[2:5, 10:20, 10:20], values[6:9, 30:40, 20:30] = -1500, 3500

    def pad(index, dataset):
        stored = np.frombuffer(dataset.PixelData, np.int16).reshape(50, 70).copy()
        stored[stored == -2000] = -2001
        stored[:, 60:] = -2000
        dataset.PixelData = stored.tobytes()
        dataset.add_new("PixelPaddingValue", "SS", -2000)

    datasets, values = write(tmp_path / "in", values, pad, (0.9, 1.1, 2.5))
    spacing, padded = (2.5, 1.1, 0.9), np.stack([d.pixel_array == -2000 for d in datasets])
    clipped = np.clip(values, -1024, 3071)
    clipped[padded] = -1024
    means, _ = blocks(clipped, spacing, 2.0)
    means = np.floor(8 * means + 0.5)
    got = masks_of(run, ", ".join([
        segment("Blocks", 'grid_mm = 2.0; method = "range"; range = [ 100.0, 900.0 ];'),
        segment("Smooth", 'method = "range"; range = [ 100.0, 900.0 ]; smooth_mm = 2.0;')]), tmp_path / "in", tmp_path, "out")
    assert np.array_equal(got[0], expand_by((means >= 800) & (means <= 7200), spacing, values.shape, 2.0)) and got[0].any()
    # All values are multiples of 0.5 HU, so that they are filtered as integers.
    filtered = integer_smooth(2 * clipped, 2.0, spacing)
    assert np.array_equal(got[1], (filtered >= 200) & (filtered <= 1800) & ~padded) and got[1].any()


@pytest.mark.parametrize("option", ["grid_mm = 7.0;", "smooth_mm = 5.0;"])
def test_negative_slope(run, tmp_path, option):  # noqa: F811
    pet(tmp_path / "in", [2] * 14)
    _, values, _ = read(tmp_path / "in")
    low, high = map(float, np.quantile(values, [0.6, 0.99]))

    def turn(_, dataset):
        dataset.RescaleSlope, dataset.RescaleIntercept = -2, 8190
        dataset.PixelData = (4095 - dataset.pixel_array).astype(np.uint16).tobytes()

    masks = [masks_of(run, segment("A", f'method = "range"; range = [ {low!r}, {high!r} ]; {option}'), tmp_path / "in", tmp_path, "up")]
    change(sorted((tmp_path / "in").glob("*.dcm")), turn)
    assert np.array_equal(read(tmp_path / "in")[1], values)
    masks.append(masks_of(run, segment("A", f'method = "range"; range = [ {low!r}, {high!r} ]; {option}'), tmp_path / "in", tmp_path, "down"))
    assert masks[0].any() and np.array_equal(*masks)


@needs_shared
@pytest.mark.parametrize("patient", ["STS_001", "STS_006"])
def test_patients(run, tmp_path, patient):  # noqa: F811
    source = SHARED / "sarcoma" / patient / "PET" / "image"
    datasets, values, spacing = read(source)
    assert len({float(d.RescaleSlope) for d in datasets}) > 10
    low = float(np.quantile(values, 0.98))
    body = f'method = "range"; range = [ {low!r}, 1e9 ];'
    (got,) = masks_of(run, segment("A", f"{body} smooth_mm = 7.0;"), source, tmp_path, "out")
    expected = smooth(values, 7.0, spacing) >= low
    assert expected.any() and np.array_equal(got, expected)
    (got,) = masks_of(run, segment("A", f"{body} grid_mm = 10.0;"), source, tmp_path, "blocks")
    means, _ = blocks(values, spacing, 10.0)
    expected = expand_by(means >= low, spacing, values.shape, 10.0)
    unit = max(float(d.RescaleSlope) for d in datasets)
    unsure = expand_by(abs(means - low) <= unit, spacing, values.shape, 10.0)
    assert expected.any() and np.array_equal(got & ~unsure, expected & ~unsure) and unsure.mean() < 0.001

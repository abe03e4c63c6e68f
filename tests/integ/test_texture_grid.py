"""Texture on resampled voxels, and in several groups: equal to NumPy. Impossible settings are refused."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
from conftest import BIN
from test_features import smooth
from test_resample import Stack, numpy_cubic, numpy_linear, stored
from texture_runs import assert_report_equals_features, features, pipeline, segment, series

SPACING = (0.8, 0.9, 2.5)  # of columns, rows and slices
ORDERS = {"nearest": 0, "linear": 1, "cubic": 3}


@pytest.fixture
def measure(tmp_path):
    """Runs noctule run with texture groups. Returns the features, or the error text."""
    config = tmp_path / "noctule.conf"

    def call(source, groups, segments, results=("seg", "sr"), status=0, extra=""):
        text = pipeline("@", segments, results, extra).replace("{ @ }", f"( {', '.join('{ ' + g + ' }' for g in groups)} )")
        config.write_text(f'root = "{tmp_path / "root"}";' + text)
        result = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "texture", "--output",
                                 tmp_path / "out", source], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stdout + result.stderr
        return result.stderr if status else features(tmp_path / "out")

    return call


def grid_of(stack, mm):
    """IBSI's grid, which has the centre of the original one. 0 keeps an axis."""
    own = (*stack.spacing, stack.step)
    sizes = stack.shape[::-1]
    spacing = [new or old for new, old in zip(mm, own)]
    extent = [math.ceil(n * old / new - 1e-6) for n, old, new in zip(sizes, own, spacing)]
    origin = [((n - 1) * old - (count - 1) * new) / 2 for n, old, new, count in zip(sizes, own, spacing, extent)]
    return {"extent": extent, "spacing": spacing, "origin": origin}


EDGE = 12  # samples by which the ends continue before a spline runs through them, as in SciPy and MIRP


def interpolated(stack, values, grid, order):
    if order != 3:
        stack.values = values
        return numpy_linear(stack, grid, order)
    stack.values = np.pad(values, EDGE, mode="edge")
    own = (*stack.spacing, stack.step)
    return numpy_cubic(stack, {**grid, "origin": [first + EDGE * mm for first, mm in zip(grid["origin"], own)]})


def assert_values(found, values):
    """Checks the first-order features of these values."""
    found = {f["name"]: f["value"] for f in found}
    assert (found["minimum"], found["maximum"]) == (values.min(), values.max())
    assert math.isclose(found["mean"], values.mean(), rel_tol=1e-12)
    assert math.isclose(found["energy"], (values.astype(float) ** 2).sum(), rel_tol=1e-12)


def shifted(seed=5, shape=(9, 31, 37)):
    return (smooth(seed, shape) * 900 - 300).astype(np.int16)


@pytest.mark.parametrize("interpolation", ORDERS)
@pytest.mark.parametrize(("size", "mm"), (("isotropic_mm = 1.1", (1.1, 1.1, 1.1)), ("in_plane_mm = 2.0", (2.0, 2.0, 0)),
                                          ("isotropic_mm = 4.0", (4.0, 4.0, 4.0))))
def test_numpy_has_the_same_values(measure, tmp_path, interpolation, size, mm):
    source = series(tmp_path / "in", shifted(), SPACING)
    stack = Stack(sorted(source.glob("*.dcm")))
    grid = grid_of(stack, mm)
    own = stack.values.copy()
    image = stored(interpolated(stack, own, grid, ORDERS[interpolation]), np.int16)
    mask = interpolated(stack, ((own >= -100) & (own <= 300)).astype(float), grid, 1) >= 0.5
    found = measure(source, [f'regions = [ "segments", "volume" ]; resample = {{ {size}; interpolation = "{interpolation}"; }};'],
                    ['{ label = "Part"; method = "range"; range = [ -100.0, 300.0 ]; '
                     'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; }'])
    assert_values([f for f in found if f["segment_number"] == 0], image)
    assert_values([f for f in found if f["segment_number"] == 1], image[mask])
    count = {f["segment_number"]: f["value"] for f in found if f["name"] == "voxel_count"}
    assert count == {0: image.size, 1: mask.sum()}
    assert all(f["interpolation"] == interpolation and f[size.split()[0]] == max(mm) for f in found)
    assert_report_equals_features(tmp_path / "out", source)
    # The volume and its mask are unchanged.
    job = json.loads((tmp_path / "out" / "job.json").read_text())
    assert [job["volume"][key] for key in ("columns", "rows", "slices")] == list(stack.shape[::-1])
    assert " x ".join(map(str, grid["extent"])) in job["note"] and interpolation in job["note"]


@pytest.mark.parametrize("interpolation", ORDERS)
def test_each_slice_keeps_its_rescale(measure, tmp_path, interpolation):
    """PET: each slice keeps its rescale. Rounding within slices is to the slice's stored values."""
    slopes = np.linspace(0.5, 2.5, 9)
    source = series(tmp_path / "in", shifted(), SPACING, slopes=slopes)
    stack = Stack(sorted(source.glob("*.dcm")))
    values = interpolated(stack, shifted(), grid_of(stack, (2.0, 2.0, 0)), ORDERS[interpolation])
    image = stored(values, np.int16) * slopes[:, None, None]
    found = measure(source, [f'regions = [ "volume" ]; resample = {{ in_plane_mm = 2.0; interpolation = "{interpolation}"; rounding = "stored"; }}; '
                             'families = [ "local-intensity" ];'], [segment(-300, 600, (9, 9, 3), 4)])
    found = {f["name"]: f["value"] for f in found}
    assert math.isclose(found["maximum"], image.max(), rel_tol=1e-12) and math.isclose(found["minimum"], image.min(), rel_tol=1e-12)
    assert math.isclose(found["mean"], image.mean(), rel_tol=1e-12) and found["global_intensity_peak"] < found["maximum"]


RESCALES = {"common": (0.37, -5.5), "each": (np.linspace(0.5, 2.5, 9), np.linspace(-3, 7, 9))}


def neighbour_levels(levels):
    """Counts pairs of levels in the 26 directions. 0 is no level."""
    top = levels.max()
    padded = np.pad(levels, 1)
    counts = np.zeros((top + 1, top + 1), int)
    for dz, dy, dx in np.ndindex(3, 3, 3):
        if (dz, dy, dx) != (1, 1, 1):
            other = padded[dz:dz + levels.shape[0], dy:dy + levels.shape[1], dx:dx + levels.shape[2]]
            np.add.at(counts, (levels, other), 1)
    return counts[1:, 1:]


def correlation_of(values, spacing):
    """Returns Moran's I and Geary's C of a volume by all pairs; NAN is no voxel."""
    at = np.argwhere(~np.isnan(values)) * np.array(spacing[::-1])
    x = values[~np.isnan(values)]
    weights = total = products = squares = 0.0
    for i in range(len(x)):
        away = np.sqrt(((at[i + 1:] - at[i]) ** 2).sum(1))
        total += (1 / away).sum()
        products += ((x[i] - x.mean()) * (x[i + 1:] - x.mean()) / away).sum()
        squares += ((x[i] - x[i + 1:]) ** 2 / away).sum()
    weights = 2 * total
    own = ((x - x.mean()) ** 2).sum()
    return len(x) / weights * 2 * products / own, (len(x) - 1) / (2 * weights) * 2 * squares / own


@pytest.mark.parametrize("rescale", RESCALES)
@pytest.mark.parametrize("interpolation", ORDERS)
def test_values_between_voxels_are_real(measure, tmp_path, interpolation, rescale):
    """Values are interpolated as they are, between slices of different rescales too, and measured without rounding."""
    slopes, intercepts = RESCALES[rescale]
    source = series(tmp_path / "in", shifted(), SPACING, slopes=slopes, intercepts=intercepts)
    stack = Stack(sorted(source.glob("*.dcm")))
    real = shifted() * np.reshape(slopes, (-1, 1, 1)) + np.reshape(intercepts, (-1, 1, 1))
    drawn = (real >= -100) & (real <= 200)
    grid = grid_of(stack, (1.7, 1.7, 1.7))
    image = interpolated(stack, real, grid, ORDERS[interpolation])
    mask = interpolated(stack, drawn.astype(float), grid, 1) >= 0.5
    rounding = 'rounding = "none"; ' * (rescale == "common")
    found = measure(source, [f'resample = {{ isotropic_mm = 1.7; interpolation = "{interpolation}"; {rounding} }}; families = [ "all" ]; '
                             'discretisation = "fixed-bin-size"; bin_width = 12.5; range = [ -90.0, 400.0 ]; aggregation = "3d-merged"; '
                             'glcm = { matrices = "counts"; };'],
                    ['{ label = "Part"; method = "range"; range = [ -100.0, 200.0 ]; '
                     'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; }'])
    kept = mask & (image >= -90) & (image <= 400)
    told = {(f["family"], f["name"]): f["value"] for f in found if not f["percent"]}
    values = np.sort(image[kept])
    expected = {"mean": values.mean(), "minimum": values[0], "maximum": values[-1], "energy": (values ** 2).sum(),
                "variance": values.var(), "median": np.median(values), "percentile_90": np.percentile(values, 90)}
    for name, value in expected.items():
        assert math.isclose(told["first-order", name], value, rel_tol=1e-9), name
    levels = np.where(kept, np.floor((image + 90) / 12.5) + 1, 0).astype(int)
    assert told["intensity-histogram", "discretised_mean"] == pytest.approx(levels[kept].mean(), rel=1e-12)
    matrix, = json.loads((tmp_path / "out" / "matrices.json").read_text())
    counts = neighbour_levels(levels)
    found_counts = np.zeros_like(counts)
    for i, j, count in matrix["counts"]:
        found_counts[i - 1, j - 1] += count
    assert (found_counts == counts).all()
    x = np.where(kept, image, np.nan)
    moran, geary = correlation_of(x, (1.7, 1.7, 1.7))
    assert math.isclose(told["spatial-correlation", "morans_i"], moran, rel_tol=1e-9, abs_tol=1e-12)
    assert math.isclose(told["spatial-correlation", "gearys_c"], geary, rel_tol=1e-9)
    peaks = np.full(kept.shape, -np.inf)
    reach = 3
    for z, y, x in np.argwhere(kept):
        near = tuple(slice(max(at - reach, 0), at + reach + 1) for at in (z, y, x))
        away = np.stack(np.indices(kept.shape))[(slice(None), *near)] - np.array([z, y, x])[:, None, None, None]
        peaks[z, y, x] = image[near][(away ** 2).sum(0) * 1.7 ** 2 <= 6.203504908994 ** 2].mean()
    assert math.isclose(told["local-intensity", "global_intensity_peak"], peaks.max(), rel_tol=1e-9)
    assert math.isclose(told["local-intensity", "local_intensity_peak"], peaks[kept & (image == values[-1])].max(), rel_tol=1e-9)
    volume = told["morphology", "volume"] if ("morphology", "volume") in told else None
    assert volume is None or math.isclose(told["morphology", "integrated_intensity"], values.mean() * volume, rel_tol=1e-9)
    assert all(f["rounding"] == (None if f["family"] in ("shape", "morphology") and "intensity" not in f["name"] and
                                 "shift" not in f["name"] else "none") for f in found)
    assert_report_equals_features(tmp_path / "out", source)


@pytest.mark.parametrize("interpolation", ORDERS)
def test_padding_has_no_share(measure, tmp_path, interpolation):
    """Only features that padding cannot change have a value: those of all voxels outside padding."""
    values = np.full((9, 40, 44), 100, np.int16)
    values[:, :, :12] = values[:, :9, :] = -2000
    values[5, 30, 30] = 101  # because series of one value are refused
    source = series(tmp_path / "in", values, SPACING, PixelPaddingValue=-2000)
    found = measure(source, [f'regions = [ "volume" ]; resample = {{ isotropic_mm = 1.3; interpolation = "{interpolation}"; }};'],
                    [segment(50, 150, (30, 30, 5), 4)])
    told = {f["name"]: f["value"] for f in found}
    assert told["minimum"] == 100 and told["maximum"] in (100, 101) and 100 <= told["mean"] < 100.001
    voxels = told["energy"] / told["root_mean_square"] ** 2  # voxels with a value
    assert 0.2 * told["voxel_count"] < voxels < 0.8 * told["voxel_count"]


def test_several_groups_are_independent(measure, tmp_path):
    source = series(tmp_path / "in", shifted(), SPACING)
    parts = [segment(-300, 600, (9, 9, 3), 4, label) for label in ("A", "B")]
    groups = ['regions = [ "segments", "volume" ]; patterns = [ "lbp" ];', "resample = { isotropic_mm = 2.0; }; glcm = { };",
              'glcm = { aggregation = "2.5d-merged"; matrices = "counts"; }; sigma = 1.0;']
    found = measure(source, groups, parts)
    numbers = [f["segment_number"] for f in found]
    assert numbers == sorted(numbers, key=lambda n: n or 99) and set(numbers) == {0, 1, 2}
    told = {(f["segment_number"], f["name"], f["aggregation"], f["isotropic_mm"], f["sigma"]) for f in found}
    assert {(1, "mean", None, None, None), (1, "mean", None, 2, None), (1, "mean", None, None, 1), (0, "mean", None, None, None),
            (2, "contrast", "3d-merged", 2, None), (2, "contrast", "2.5d-merged", None, 1)} <= told
    assert (0, "mean", None, 2, None) not in told
    matrices = json.loads((tmp_path / "out" / "matrices.json").read_text())
    assert [(m["segment_number"], m["aggregation"], m["sigma"]) for m in matrices] == [(1, "2.5d-merged", 1), (2, "2.5d-merged", 1)]
    assert_report_equals_features(tmp_path / "out", source)


def blobs(shape, *centres):
    """Smooth values within 5 mm of voxels (x, y, z), and -1000 between them."""
    values, inside = shifted(shape=shape), np.zeros(shape, bool)
    z, y, x = np.indices(shape)
    for centre in centres:
        inside |= sum(((axis - at) * mm) ** 2 for axis, at, mm in zip((x, y, z), centre, SPACING)) < 25
    values[~inside] = -1000
    return values


EVERYTHING = ('families = [ "all" ]; resample = {{ {0} }}; aggregation = "{1}"; glcm = {{ matrices = "counts"; aggregation = "{1}"; }}; '
              'levels = 8;')


@pytest.mark.parametrize("aggregation", ("2d-averaged", "3d-merged"))
@pytest.mark.parametrize("resample", ("isotropic_mm = 0.7", "in_plane_mm = 1.3", 'isotropic_mm = 1.1; interpolation = "cubic"'))
def test_parts_are_interpolated_like_the_whole(measure, tmp_path, resample, aggregation):
    """Only the surroundings of segments are interpolated, unless the volume is measured too."""
    centres = {"A": (20, 20, 5), "B": (48, 47, 10)}
    source = series(tmp_path / "in", blobs((16, 60, 70), *centres.values()), SPACING)
    parts = [segment(-300, 600, voxel, 2, label) for label, voxel in centres.items()]
    group = EVERYTHING.format(resample, aggregation)
    told = []
    for regions in ('regions = [ "segments" ];', 'regions = [ "segments", "volume" ];'):
        found = measure(source, [regions + group], parts)
        matrices = json.loads((tmp_path / "out" / "matrices.json").read_text())
        told.append(([f for f in found if f["segment_number"]], [m for m in matrices if m["segment_number"]]))
        shutil.rmtree(tmp_path / "out")
    assert len(told[0][0]) > 300 and told[0] == told[1]


def test_memory_is_that_of_parts_around_regions(measure, tmp_path):
    """Voxels of 0.1 mm are refused for a whole volume (below). For a part of it they are few."""
    source = series(tmp_path / "in", blobs((9, 31, 37), (9, 9, 3)), SPACING)
    found = measure(source, ['resample = { isotropic_mm = 0.1; }; families = [ "glszm" ];'], [segment(-300, 600, (9, 9, 3), 1)],
                    extra="memory_mib = 60.0;")
    assert [f["family"] for f in found].count("glszm") == 16 and all(f["reason"] is None for f in found)


@pytest.mark.parametrize(("code", "words", "resample", "attributes"), [
    ("RESCALE_VARIES", "differ in their rescale", 'isotropic_mm = 2.0; rounding = "stored"', {"slopes": [1, 2, 1, 1, 1, 1, 1, 1, 1]}),
    ("GRID_VALUES_FULL", "swings beyond", 'isotropic_mm = 2.0; interpolation = "cubic"', {"high": True}),
    ("JOB_TOO_LARGE", "for texture of 296 x 279 x 225 voxels", "isotropic_mm = 0.1", {}),
    ("VOLUME_TOO_LARGE", "texture.resample", "isotropic_mm = 0.01", {}),
])
def test_impossible_settings_are_refused(measure, tmp_path, code, words, resample, attributes):
    values = shifted()
    if attributes.pop("high", False):
        values = np.where(values > 0, 60000, 0).astype(np.uint16)
    source = series(tmp_path / "in", values, SPACING, **attributes)
    complaint = measure(source, [f"resample = {{ {resample}; }};"], [segment(-300, 60000, (9, 9, 3), 4)], status=1,
                        extra="memory_mib = 60.0;")
    assert f"{code}: " in complaint and words in complaint
    assert not list((tmp_path / "out").glob("*.dcm"))

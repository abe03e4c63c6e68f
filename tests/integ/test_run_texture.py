"""Texture features through the whole program: published values of IBSI, and pyradiomics, scikit-image and numpy for
the same series, compared with features.json and matrices.json.

Regions are the segments of seg.dcm, read by highdicom."""

import json
import re

import numpy as np
import pytest
import SimpleITK
from conftest import SHARED, needs_shared
from radiomics.firstorder import RadiomicsFirstOrder
from radiomics.glcm import RadiomicsGLCM
from radiomics.glrlm import RadiomicsGLRLM
from skimage.feature import graycomatrix
from test_features import FIRST_ORDER, OF_PYRADIOMICS, OF_RUNS, assert_close, by_definition, smooth
from test_run import change, seg_masks
from texture_runs import (AGGREGATIONS, ALL_PATTERNS, OBLIQUE, ONE_LEVEL, SOFT, TABLES, TYPE, around_middle,
                          assert_histograms, assert_report_equals_features, features, head, maps_of, read,
                          run,  # noqa: F401
                          segment, series, values_of)

# --- IBSI ---

# Printed values of the digital phantom, in the order of AGGREGATIONS (IBSI reference manual, chapter 5; CC BY 4.0).
IBSI = {
    "GYBY": (0.519, 0.512, 0.489, 0.492, 0.503, 0.509),
    "60VM": (2.14, 2.14, 2.2, 2.2, 2.14, 2.15),
    "UR99": (2.69, 2.71, 3.22, 3.24, 3.1, 3.13),
    "TU9B": (2.05, 2.24, 2.48, 2.61, 2.4, 2.57),
    "TF7R": (1.42, 1.4, 1.46, 1.44, 1.43, 1.38),
    "D3YU": (2.9, 3.06, 3.11, 3.23, 3.06, 3.21),
    "NTRS": (1.4, 1.49, 1.61, 1.67, 1.56, 1.64),
    "ZGXS": (4.28, 4.29, 4.41, 4.41, 4.29, 4.3),
    "OEEB": (5.47, 5.66, 7.48, 7.65, 7.07, 7.41),
    "P6QZ": (1.6, 1.79, 2.01, 2.14, 1.92, 2.11),
    "8ZQL": (0.368, 0.352, 0.286, 0.277, 0.303, 0.291),
    "ACUI": (5.28, 5.19, 5.39, 5.29, 5.32, 5.12),
    "8S9J": (1.42, 1.4, 1.46, 1.44, 1.43, 1.38),
    "IB1Z": (0.678, 0.683, 0.668, 0.673, 0.677, 0.688),
    "NDRX": (0.851, 0.854, 0.847, 0.85, 0.851, 0.856),
    "WF0Z": (0.619, 0.625, 0.606, 0.613, 0.618, 0.631),
    "1QCO": (0.899, 0.901, 0.897, 0.899, 0.898, 0.902),
    "E8JP": (0.0567, 0.0553, 0.0597, 0.0582, 0.0604, 0.0574),
    "NI2N": (-0.0121, 0.0173, 0.178, 0.182, 0.157, 0.183),
    "QWB0": (5.09, 5.14, 5.4, 5.45, 5.06, 5.19),
    "DG8W": (5.47, 5.66, 7.48, 7.65, 7.07, 7.41),
    "7NFM": (7, 6.98, 16.6, 16.4, 16.6, 17.4),
    "AE86": (79.1, 80.4, 147, 142, 145, 147),
    "R8DG": (-0.155, -0.0341, -0.124, -0.0334, -0.157, -0.0288),
    "JN9H": (0.487, 0.263, 0.487, 0.291, 0.52, 0.269),
}
# Intensity-based statistics and voxel volume (in ml) of the same phantom.
IBSI_FIRST_ORDER = {"Q4LE": 2.15, "ECT3": 3.05, "KE2A": 1.08, "IPH6": -0.355, "Y12H": 1, "1GSF": 1, "QG58": 1,
                    "8DWT": 4, "84IY": 6, "SALO": 3, "2OJQ": 5, "N8CA": 567, "5ZWQ": 2.77, "TLU2": 1.27,
                    "YEKZ": 0.592}
# Voxels outside the region are 9, beyond the segment's range.
IBSI_PHANTOM = np.array([
    [[1, 4, 4, 1, 1], [1, 4, 6, 1, 1], [4, 1, 6, 4, 1], [4, 4, 6, 4, 1]],
    [[1, 4, 4, 1, 1], [1, 1, 6, 1, 1], [9, 1, 3, 1, 1], [4, 4, 6, 1, 1]],
    [[1, 4, 4, 9, 9], [1, 1, 1, 1, 1], [1, 1, 9, 1, 1], [1, 1, 6, 1, 1]],
    [[1, 4, 4, 9, 9], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 6, 1, 1]],
], np.uint8)
SIX_LEVELS = {"fixed-bin-number": "levels = 6;", "fixed-bin-size": "bin_width = 1.0; range = [ 1.0, 6.0 ];",
              "pyradiomics-bin-width": "bin_width = 1.0;"}


def printed(value):
    """Rounds to three digits, as IBSI prints."""
    return float(f"{value:.3g}")


@pytest.mark.parametrize("discretisation", SIX_LEVELS)
@pytest.mark.parametrize("place, aggregation", enumerate(AGGREGATIONS))
def test_the_digital_phantom_of_ibsi(run, tmp_path, place, aggregation, discretisation):
    source = series(tmp_path / "in", IBSI_PHANTOM)
    run(source, tmp_path / "out",
        f'glcm = {{ aggregation = "{aggregation}"; discretisation = "{discretisation}"; '
        f"{SIX_LEVELS[discretisation]} }};", [segment(1, 6, (0, 0, 0))])
    found = {f["ibsi_code"]: f for f in features(tmp_path / "out") if f["ibsi_code"]}
    assert {code: printed(found[code]["value"]) for code in IBSI} == {code: v[place] for code, v in IBSI.items()}
    assert {code: printed(found[code]["value"]) for code in IBSI_FIRST_ORDER} == IBSI_FIRST_ORDER
    assert values_of(tmp_path / "out")["voxel_count"] == 74
    matrix = found["TU9B"]
    assert (matrix["aggregation"], matrix["aggregation_ibsi_code"]) == (aggregation, AGGREGATIONS[aggregation])
    assert (matrix["discretisation"], matrix["levels"], matrix["distance"], matrix["symmetric"]) == (
        discretisation, 6, 1, True)
    assert matrix["bin_width"] == (None if discretisation == "fixed-bin-number" else 1)
    assert matrix["range"] == ([1, 6] if discretisation == "fixed-bin-size" else None)
    assert (found["Q4LE"]["aggregation"], found["Q4LE"]["levels"], found["Q4LE"]["range"]) == (None, None, matrix["range"])


# --- pyradiomics ---

# Equivalent settings of pyradiomics and of Noctule.
SETTINGS = {
    "default": ({}, 'aggregation = "3d-averaged"; discretisation = "pyradiomics-bin-width"; bin_width = 25.0;'),
    "force2D": ({"force2D": True},
                'aggregation = "2.5d-direction-merged"; discretisation = "pyradiomics-bin-width"; bin_width = 25.0;'),
    "binCount": ({"binCount": 32}, 'aggregation = "3d-averaged"; levels = 32;'),
    "merged": ({"weightingNorm": "no_weighting"},
               'aggregation = "3d-merged"; discretisation = "pyradiomics-bin-width"; bin_width = 25.0;'),
}


def assert_is_pyradiomics(ours, values, mask, options, width=25):
    """Compares all 24 features of pyradiomics' GLCM class, and those of its first order class with the same
    definition."""
    image = SimpleITK.GetImageFromArray(values)
    region = SimpleITK.GetImageFromArray(mask.astype(np.uint8))
    theirs = RadiomicsGLCM(image, region, binWidth=width, **options).execute()
    assert set(theirs) == set(OF_PYRADIOMICS) and len(theirs) == 24
    assert_close(ours, theirs, OF_PYRADIOMICS)
    first_order = RadiomicsFirstOrder(image, region, binWidth=width, **options)
    first_order.enableAllFeatures()
    theirs = first_order.execute()
    assert_close(ours, theirs, FIRST_ORDER)
    assert abs(ours["kurtosis"] + 3 - theirs["Kurtosis"]) <= 1e-9 * theirs["Kurtosis"]


def evenly(field, low, high):
    """Spreads values so that no level is rare. pyradiomics adds 2.2e-16 to p_i. p_.j, the divisor of its MCC, and so
    loses digits for rare levels."""
    rank = field.ravel().argsort().argsort().reshape(field.shape) / field.size
    return low + (high - low) * rank**1.5


@pytest.mark.parametrize("setting", SETTINGS)
def test_segments_and_the_volume_equal_pyradiomics(run, tmp_path, setting):
    options, glcm = SETTINGS[setting]
    stored = evenly(smooth(11, (12, 40, 43)), 900, 1500).astype(np.int16)
    source = series(tmp_path / "in", stored, intercepts=-1024)
    values = stored - 1024.0
    bright = np.unravel_index(values.argmax(), values.shape)[::-1]
    run(source, tmp_path / "out", f'regions = [ "segments", "volume" ]; glcm = {{ {glcm} }};',
        [segment(-100, 200, (20, 20, 6), 9, "Most"), segment(np.quantile(values, 0.7), 1000, bright, 2.5, "Bright")])
    datasets, _, values = read(source)
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    for number, mask in [(1, masks[0]), (2, masks[1]), (0, np.ones(values.shape, bool))]:
        assert 100 < mask.sum() and (number == 0) == bool(mask.all())
        assert_is_pyradiomics(values_of(tmp_path / "out", number), values, mask, options)


@pytest.mark.parametrize("columns, rows", [(16384, 3), (3, 16384), (16383, 17)])
def test_pictures_of_one_slice_equal_pyradiomics(run, tmp_path, columns, rows):
    """Rows and columns are as long as those of the largest picture of Hong 2018, and one of each is a single run."""
    stored = evenly(smooth(3, (1, rows, columns)), 900, 1500).astype(np.int16)
    stored[0, 0], stored[0, :, 0] = 1200, 1200
    options = {"binWidth": 25, "force2D": True}
    run(series(tmp_path / "in", stored), tmp_path / "out",
        'regions = [ "volume" ]; families = [ "glcm", "glrlm" ]; aggregation = "2.5d-direction-merged"; '
        'discretisation = "pyradiomics-bin-width"; bin_width = 25.0;',
        [segment(900, 1600, (1, 1, 0))])
    ours, whole = values_of(tmp_path / "out", 0), np.ones(stored.shape, bool)
    assert_is_pyradiomics(ours, stored.astype(float), whole, {"force2D": True})
    runs = RadiomicsGLRLM(SimpleITK.GetImageFromArray(stored.astype(float)),
                          SimpleITK.GetImageFromArray(whole.astype(np.uint8)), **options)
    of_runs = {f["ibsi_code"]: f["value"] for f in features(tmp_path / "out") if f["family"] == "glrlm"}
    assert_close(of_runs, runs.execute(), OF_RUNS)


def test_slopes_per_slice_equal_pyradiomics(run, tmp_path):
    """Positron emission tomography: each slice has its own table of levels."""
    source = head(tmp_path / "in", ("--kind", "pet", "--size", "40x40x10"))
    change(sorted(source.glob("*.dcm")), lambda _, dataset: setattr(dataset, "Units", "BQML"))
    run(source, tmp_path / "out", 'glcm = { aggregation = "3d-averaged"; levels = 64; };',
        [segment(1000, 1e7, (20, 20, 5), 6)])
    datasets, _, values = read(source)
    assert len({float(d.RescaleSlope) for d in datasets}) > 1
    (mask,) = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert_is_pyradiomics(values_of(tmp_path / "out"), values, mask, {"binCount": 64})
    assert {f["unit"] for f in features(tmp_path / "out") if f["name"] in ("mean", "energy")} == {
        "Bq/ml", "(Bq/ml)2"}


@needs_shared
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_real_brain_equals_pyradiomics(run, tmp_path, setting):
    """Re-segmented to frequent values, for the same reason."""
    options, glcm = SETTINGS[setting]
    glcm = glcm.replace("25.0", "2.0") + " range = [ 56.0, 84.0 ];"
    run(SHARED / "mr-brain-t1", tmp_path / "out", f"first_order = false; glcm = {{ {glcm} }};",
        [around_middle(58, 90, 25)])
    datasets, _, values = read(SHARED / "mr-brain-t1")
    (mask,) = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    mask &= (values >= 56) & (values <= 84)
    box = tuple(slice(at.min(), at.max() + 1) for at in np.nonzero(mask))
    image, region = (SimpleITK.GetImageFromArray(a[box]) for a in (values, mask.astype(np.uint8)))
    assert mask.sum() > 100000
    assert_close(values_of(tmp_path / "out"), RadiomicsGLCM(image, region, binWidth=2, **options).execute(),
                 OF_PYRADIOMICS)


def test_all_neighbours_at_distance_two_equal_pyradiomics(run, tmp_path):
    """pyradiomics' distance 2 within slices, as a list of offsets."""
    stored = evenly(smooth(12, (7, 40, 43)), 0, 600).astype(np.uint16)
    source = series(tmp_path / "in", stored)
    offsets = [(x, y) for y in range(-2, 3) for x in range(-2, 3) if max(abs(x), abs(y)) == 2 and (y, x) > (0, 0)]
    assert len(offsets) == 8
    named = ", ".join(f"[ {x}, {y}, 0 ]" for x, y in offsets)
    run(source, tmp_path / "out", 'regions = [ "volume" ]; glcm = { aggregation = "2.5d-direction-merged"; '
        f'discretisation = "pyradiomics-bin-width"; bin_width = 25.0; offsets = ( {named} ); }};',
        [segment(0, 600, (20, 20, 3), 9)])
    assert_is_pyradiomics(values_of(tmp_path / "out", 0), stored.astype(float), np.ones(stored.shape, bool),
                          {"force2D": True, "distances": [2]})


# --- matrices without a peer, by their definition ---


def counts_of(levels, mask, offset, number):
    """Returns raw directional counts[reference, neighbour] for one offset (x, y, z)."""
    counts = np.zeros((number, number))
    there, here = [], []
    for step, size in zip(offset[::-1], levels.shape):
        here.append(slice(max(0, -step), size - max(0, step)))
        there.append(slice(max(0, step), size + min(0, step)))
    here, there = tuple(here), tuple(there)
    both = mask[here] & mask[there]
    np.add.at(counts, (levels[here][both] - 1, levels[there][both] - 1), 1)
    return counts


def test_the_matrices_of_hong2018(run, tmp_path):
    """Directional counts of bytes in equal parts, one direction within a slice, equal to scikit-image's counts."""
    image = (smooth(7, (1, 60, 47)) * 255).astype(np.uint8)
    source = series(tmp_path / "in", image)
    # skimage's angles turn towards larger rows: -pi/4 leads right and up.
    for angle, theirs, distance in (0, 0, 1), (45, -np.pi / 4, 1), (90, np.pi / 2, 2), (135, np.pi / 4, 3):
        output = tmp_path / f"out{angle}"
        run(source, output, 'regions = [ "volume" ]; first_order = false; glcm = { discretisation = "stored-256"; '
            f'levels = 8; symmetric = false; aggregation = "2d-averaged"; angles = [ {angle} ]; '
            f"distances = [ {distance} ]; }};", [segment(0, 255, (0, 0, 0))])
        levels = (image[0].astype(int) * 8 // 256).astype(np.uint8)
        if theirs < 0:  # none of skimage's angles leads up: the same as right and down in a mirrored image
            levels, theirs = levels[::-1], -theirs
        reach = distance * 2**0.5 if angle % 90 else distance  # skimage's distance is Euclidean
        matrix = graycomatrix(levels, [reach], [theirs], levels=8)[:, :, 0, 0].astype(float)
        if angle in (90, 135):  # up here, down in skimage
            matrix = matrix.T
        expected = by_definition(matrix)
        assert_close(values_of(output, 0), expected, {name: name for name in expected})
        (first, *_) = features(output)
        assert (first["directions"], first["symmetric"], first["distance"]) == (str(angle), False, distance)


def matrices(folder):
    """Returns matrices.json, with dense arrays in place of the cells that are not 0."""
    found = json.loads((folder / "matrices.json").read_text())
    for matrix in found:
        (key,) = {"counts", "probabilities"} & set(matrix)
        dense = np.zeros((matrix["levels"], matrix["levels"]))
        for i, j, share in matrix[key]:
            assert share > 0 and dense[i - 1, j - 1] == 0
            dense[i - 1, j - 1] = share
        matrix[key] = dense
    return found


def test_the_matrices_of_ibsis_phantom(run, tmp_path):
    """Counts that IBSI's manual prints: all merged, and of the direction along y in the first slice."""
    source = series(tmp_path / "in", IBSI_PHANTOM)
    phantom_of = [segment(1, 6, (0, 0, 0), label="Phantom")]
    run(source, tmp_path / "merged", 'glcm = { levels = 6; matrices = "counts"; };', phantom_of)
    (merged,) = matrices(tmp_path / "merged")
    expected = np.zeros((6, 6), int)
    for i, j, count in ((1, 1, 536), (1, 3, 14), (1, 4, 105), (1, 6, 61), (3, 4, 5), (3, 6, 6), (4, 4, 64),
                        (4, 6, 28), (6, 6, 16)):
        expected[i - 1, j - 1] = expected[j - 1, i - 1] = count
    assert np.array_equal(merged.pop("counts"), expected)
    assert merged == {"segment_number": 1, "label": "Phantom", "aggregation": "3d-merged",
                      "aggregation_ibsi_code": "IAZD", "discretisation": "fixed-bin-number", "levels": 6,
                      "bin_width": None, "range": None, "distance": 1, "symmetric": True, "sigma": None, "interpolation": None,
                      "alpha": None, "percent": None, "isotropic_mm": None, "in_plane_mm": None, "rounding": None, "energy_shift": None, "filter": None,
                      "filter_settings": None, "normalise_scale": None, "normalise_sigma": None, "image_type": None, "slice": None,
                      "offset": None, "pairs": 1054}
    run(source, tmp_path / "slices", 'glcm = { levels = 6; aggregation = "2d-averaged"; matrices = "counts"; };',
        phantom_of)
    all_of_them = matrices(tmp_path / "slices")
    assert [(m["slice"], m["offset"]) for m in all_of_them] == [
        (z, offset) for z in (1, 2, 3, 4) for offset in ([1, 0, 0], [1, -1, 0], [0, -1, 0], [-1, -1, 0])]
    down = all_of_them[2]["counts"]
    assert {(i + 1, j + 1): down[i, j] for i, j in np.argwhere(np.triu(down))} == {
        (1, 1): 10, (1, 4): 4, (4, 4): 6, (4, 6): 1, (6, 6): 4}


@pytest.mark.parametrize("symmetric", ["true", "false"])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_features_follow_from_the_matrices(run, tmp_path, aggregation, symmetric):
    """From counts and from probabilities, which sum to 1, of regions with at least one pair."""
    texture = ('regions = [ "segments", "volume" ]; first_order = false; glcm = {{ levels = 12; '
               f'distances = [ 1, 3 ]; aggregation = "{aggregation}"; symmetric = {symmetric}; '
               'matrices = "{}"; }};')
    segments = [SOFT, segment(5000, 6000, (0, 0, 0), label="Nothing")]
    for kind in ("counts", "normalised"):
        run(head(tmp_path / kind), tmp_path / f"{kind} out", texture.format(kind), segments)
    found = matrices(tmp_path / "counts out")
    for number in (1, 0):
        for distance in (1, 3):
            mine = [m for m in found if (m["segment_number"], m["distance"]) == (number, distance)]
            assert all(np.sum(m["counts"]) == m["pairs"] > 0 for m in mine)
            each = [by_definition(m["counts"]) for m in mine]
            expected = {name: np.nanmean([values[name] for values in each]) for name in each[0]}
            names = {name: name for name in expected if name not in ONE_LEVEL}
            assert_close(values_of(tmp_path / "counts out", number, distance=distance), expected, names)
    assert {m["segment_number"] for m in found} == {0, 1}
    shares = matrices(tmp_path / "normalised out")
    assert len(shares) == len(found)
    for share, count in zip(shares, found):
        assert np.array_equal(share.pop("probabilities"), count.pop("counts") / count["pairs"])
        assert share == count


@pytest.mark.parametrize("aggregation", ["3d-averaged", "3d-merged", "2d-slice-merged"])
def test_offsets_of_the_pipeline(run, tmp_path, aggregation):
    """Any offsets, 256 levels, values cut to a range, within a region, equal to numpy's counts."""
    flat = aggregation.startswith("2d")
    offsets = [(3, 0, 0), (-2, 1, 0)] if flat else [(2, 0, -1), (0, -3, 2), (1, 1, 0)]
    stored = np.random.default_rng(5).gamma(2, 60, (9, 33, 30)).astype(np.uint16)
    source = series(tmp_path / "in", stored, slopes=0.5, intercepts=-10)
    run(source, tmp_path / "out", 'first_order = false; glcm = { discretisation = "fixed-bin-number"; levels = 256; '
        f'range = [ 0.0, 120.0 ]; aggregation = "{aggregation}"; offsets = ( '
        + ", ".join(f"[ {x}, {y}, {z} ]" for x, y, z in offsets) + " ); };", [segment(-10, 130, (15, 15, 4), 4)])
    datasets, _, values = read(source)
    (mask,) = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    mask &= (values >= 0) & (values <= 120)
    low, high = values[mask].min(), values[mask].max()
    levels = np.minimum(np.floor(256 * (values - low) / (high - low)).astype(int) + 1, 256)
    levels[~mask] = 1
    counts = np.array([[counts_of(levels[planes], mask[planes], offset, 256) for offset in offsets]
                       for planes in ([slice(z, z + 1) for z in range(len(values))] if flat else [slice(None)])])
    counts = counts + counts.swapaxes(2, 3)
    if aggregation != "3d-averaged":
        counts = counts.sum(1, keepdims=True)
    each = [by_definition(matrix) for matrix in counts.reshape(-1, 256, 256) if matrix.sum() > 0]
    expected = {name: np.mean([matrix[name] for matrix in each]) for name in each[0]}
    assert_close(values_of(tmp_path / "out"), expected, {name: name for name in expected}, 1e-8)
    (first, *_) = features(tmp_path / "out")
    assert first["directions"] == "".join(f"({x},{y},{z})" for x, y, z in offsets)
    assert (first["distance"], first["levels"], first["range"]) == (None, 256, [0, 120])


def test_each_distance_has_separate_features(run, tmp_path):
    source = head(tmp_path / "in")
    run(source, tmp_path / "both", "glcm = { distances = [ 1, 4 ]; };", [SOFT])
    for distance in (1, 4):
        run(source, tmp_path / f"{distance}", f"first_order = false; glcm = {{ distances = [ {distance} ]; }};",
            [SOFT])
        assert values_of(tmp_path / "both", distance=distance) == values_of(tmp_path / f"{distance}")
    assert values_of(tmp_path / "1") != values_of(tmp_path / "4")


@pytest.mark.parametrize("aggregation", ["2d-averaged", "3d-averaged"])
def test_a_distance_multiplies_the_directions(run, tmp_path, aggregation):
    """Neighbours at distance two along their farthest axis, one of each opposite pair, as a list of offsets."""
    source = head(tmp_path / "in")
    depths = (0,) if aggregation == "2d-averaged" else (0, 2)
    offsets = [(x, y, z) for z in depths for y in (-2, 0, 2) for x in (-2, 0, 2) if (z, -y, x) > (0, 0, 0)]
    assert len(offsets) == (4 if aggregation == "2d-averaged" else 13)
    named = ", ".join(f"[ {x}, {y}, {z} ]" for x, y, z in offsets)
    for name, what in ("distance", "distances = [ 2 ];"), ("offsets", f"offsets = ( {named} );"):
        run(source, tmp_path / name, f'first_order = false; glcm = {{ aggregation = "{aggregation}"; {what} }};',
            [SOFT])
    ours = values_of(tmp_path / "distance")
    assert_close(ours, values_of(tmp_path / "offsets"), {name: name for name in ours}, 1e-12)


# --- intensities and positions ---


def test_positions_and_intensities_are_those_of_the_patient(run, tmp_path):
    """Planes across the patient, voxels of three different edges, padding within the region."""
    stored = evenly(smooth(4, (9, 31, 70)), 0, 900).astype(np.int16)
    stored[stored == 400] = 401
    stored[4, 10:14, 30:40] = 400  # among the existing values
    spacing = (0.5, 0.75, 2.5)
    source = series(tmp_path / "in", stored, spacing, 2.0, -500, OBLIQUE, PixelPaddingValue=400)
    run(source, tmp_path / "out", 'regions = [ "segments", "volume" ];', [segment(-500, 400, (35, 15, 4), 3)])
    datasets, stored, values = read(source)
    (mask,) = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    padding = stored == 400
    assert padding.sum() == 40 and mask.any()
    for number, region in (1, mask), (0, np.ones(mask.shape, bool)):
        ours = values_of(tmp_path / "out", number)
        places = np.argwhere(region)[:, ::-1]
        origin = np.array(datasets[0].ImagePositionPatient, float)
        steps = np.array(OBLIQUE) * np.array(spacing)[:, None]
        centroid = origin + places.mean(0) @ steps
        counted = values[region & ~padding]
        expected = {"voxel_count": len(places), "volume": len(places) * np.prod(spacing) / 1000,
                    "mean": counted.mean(), "standard_deviation": counted.std(), "minimum": counted.min(),
                    "percentile_90": np.percentile(counted, 90), "maximum": counted.max(),
                    "centroid_x": centroid[0], "centroid_y": centroid[1], "centroid_z": centroid[2]}
        expected |= dict(zip(("box_columns", "box_rows", "box_slices"), (np.ptp(places, 0) + 1) * spacing))
        assert_close(ours, expected, {name: name for name in expected})
        assert "entropy" not in ours  # this entropy is defined only for levels
    glcm = SETTINGS["default"][1]
    run(source, tmp_path / "levels", f'regions = [ "volume" ]; glcm = {{ {glcm} }};',
        [segment(-500, 400, (35, 15, 4), 3)])
    assert_is_pyradiomics(values_of(tmp_path / "levels", 0), values, ~padding, {})
    units = {f["name"]: f["unit"] for f in features(tmp_path / "out")}
    assert (units["volume"], units["centroid_x"], units["voxel_count"]) == ("ml", "mm", "1")
    assert (units["mean"], units["variance"], units["skewness"]) == ("[hnsf'U]", "[hnsf'U]2", "1")


@pytest.mark.parametrize("options, rescale_type, unit", [
    ((), None, "[hnsf'U]"), ((), "HU", "[hnsf'U]"), ((), "US", "1"), ((), "MGML", "mg/ml"),
    (("--multi-frame",), None, "[hnsf'U]"), (("--multi-frame",), "US", "1"), (("--kind", "mr-brain"), None, "1"),
])
def test_values_have_the_unit_of_the_image(run, tmp_path, options, rescale_type, unit):
    """None: the phantom's default, HU for CT and no unit for MR."""
    source = head(tmp_path / "in", ("--size", "24x24x4", *options))

    def state(_, dataset):
        groups = dataset.get("PerFrameFunctionalGroupsSequence", [])
        for item in [group.PixelValueTransformationSequence[0] for group in groups] or [dataset]:
            item.RescaleType = rescale_type

    if rescale_type:
        change(sorted(source.glob("*.dcm")), state)
    run(source, tmp_path / "out", 'regions = [ "volume" ];', [around_middle(-5000, 5000, 40)])
    units = {f["name"]: f["unit"] for f in features(tmp_path / "out")}
    assert (units["mean"], units["skewness"], units["volume"]) == (unit, "1", "ml")


def fuzzy(label, voxel, more=""):
    at = ", ".join(map(str, voxel))
    return (f'{{ label = "{label}"; method = "fuzzy-connectedness"; seeds = ( {{ voxel = [ {at} ]; }} ); '
            f"object_mean = 40.0; object_sigma = 25.0; homogeneity_sigma = 10.0; {more} {TYPE} }}")


def test_regions_of_every_method(run, tmp_path):
    """A fuzzy connectedness object with its connectedness map, a level set, and one that starts from the object."""
    source = head(tmp_path / "in")
    grown = f'{{ label = "Grown"; range = [ 20.0, 60.0 ]; from = "Object"; {TYPE} }}'
    for name, segments in ("one pass", [fuzzy("Object", (24, 22, 6), "connectedness_map = true;"), SOFT]), (
            "two passes", [fuzzy("Object", (24, 22, 6), "connectedness_map = true;"), SOFT, grown]):
        output = tmp_path / name
        run(source, output, f"glcm = {{ levels = 16; }}; {ALL_PATTERNS}", segments, ("seg", "sr"))
        datasets, stored, values = read(source)
        masks = seg_masks(output / "seg.dcm", datasets)
        assert len(masks) == len(segments) and not np.array_equal(masks[0], masks[1])
        for number, mask in enumerate(masks, 1):
            ours = values_of(output, number)
            assert ours["voxel_count"] == mask.sum() > 0
            assert ours["mean"] == pytest.approx(values[mask].mean(), rel=1e-12)
            assert ours["maximum"] == values[mask].max()
            theirs = RadiomicsGLCM(*map(SimpleITK.GetImageFromArray, (values, mask.astype(np.uint8))), binCount=16,
                                   weightingNorm="no_weighting").execute()
            assert_close(ours, theirs, {"JointEntropy": "joint_entropy", "Contrast": "contrast"})
        assert_histograms(output, maps_of(stored), [
            (number, re.search('label = "(.*?)"', text)[1], mask)
            for number, (text, mask) in enumerate(zip(segments, masks), 1)])
        assert_report_equals_features(output, source)


def test_multi_frame_sources_have_the_same_features(run, tmp_path):
    texture = 'regions = [ "segments", "volume" ]; glcm = { levels = 16; }; patterns = [ "lbp" ];'
    for name, more in ("classic", ()), ("enhanced", ("--multi-frame",)):
        run(head(tmp_path / name / "in", ("--size", "48x44x12", *more)), tmp_path / name / "out", texture, [SOFT])
    for table in (*TABLES, "patterns.json"):
        assert (tmp_path / "classic/out" / table).read_bytes() == (tmp_path / "enhanced/out" / table).read_bytes()

"""
Texture through the whole program: series in, features.json, features.csv, patterns.json, report and maps out.

Numbers are judged by IBSI's published values, pyradiomics, scikit-image and numpy, objects by dciodvfy, dsrdump,
pydicom and highdicom. Regions are what seg.dcm says, read by highdicom.
"""

import csv
import json
import re
import resource
import shutil
import subprocess
import sys

import highdicom
import numpy as np
import pydicom
import pytest
import SimpleITK
from conftest import BIN, SHARED, SOURCE, drop, needs_shared, phantom, storescp, wait_for
from pydicom.uid import CTImageStorage, generate_uid
from radiomics.firstorder import RadiomicsFirstOrder
from radiomics.glcm import RadiomicsGLCM
from skimage.feature import graycomatrix, local_binary_pattern
from test_deliveries import QUICK, to_archive, to_folder
from test_features import FIRST_ORDER, OF_PYRADIOMICS, assert_close, by_definition, smooth
from test_pmap import assert_dciodvfy_is_content as assert_map_is_content
from test_pmap import assert_frames, assert_highdicom_reads, in_frames
from test_run import assert_nothing_left, change, exact_values, seg_masks
from test_seg import ROOT, assert_references, base_dataset, dciodvfy_remarks, planes_of, save
from test_sr import children, code_of, name_of, one

sys.path.insert(0, str(SOURCE / "tests" / "bench"))
import peer_pipeline as peer  # noqa: E402

AGGREGATIONS = {"2d-averaged": "BTW3", "2d-slice-merged": "SUJT", "2.5d-direction-merged": "JJUI",
                "2.5d-merged": "ZW7Z", "3d-averaged": "ITBB", "3d-merged": "IAZD"}
PATTERNS = ("lbp", "tlbap", "lanadp")
TABLES = ["features.csv", "features.json"]
ALWAYS = ["job.json", "preview.png"]
TYPE = 'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };'


# --- pipelines, series, and what comes of them ---


def segment(low, high, voxel, radius=0.5, label="Part"):
    """What hangs together with a ball around a voxel (x, y, z), within a range."""
    at = ", ".join(f"{float(v)}" for v in voxel)
    return (f'{{ label = "{label}"; range = [ {float(low)}, {float(high)} ]; '
            f"shapes = ( {{ center = {{ voxel = [ {at} ]; }}; radius_voxels = {float(radius)}; }} ); {TYPE} }}")


def pipeline(texture, segments, results=("seg",), extra=""):
    names = ", ".join(f'"{name}"' for name in results)
    return (f'pipelines = ( {{ name = "texture"; segments = ( {", ".join(segments)} ); results = [ {names} ]; '
            f"texture = {{ {texture} }}; {extra} }} );\n")


@pytest.fixture
def run(tmp_path):
    """noctule run with one pipeline; returns the CompletedProcess, and leaves the results in `output`."""
    config = tmp_path / "noctule.conf"

    def call(source, output, texture, segments, results=("seg",), status=0, arguments=(), **options):
        config.write_text(f'root = "{tmp_path / "root"}";' + pipeline(texture, segments, results))
        result = subprocess.run(
            [BIN / "noctule", "--config", config, "run", "--pipeline", "texture", "--output", output, *arguments,
             source], text=True, capture_output=True, timeout=300, **options)
        assert result.returncode == status, result.stdout + result.stderr
        return result

    return call


ALONG = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
OBLIQUE = (0.8, 0.6, 0.0), (-0.48, 0.64, 0.6), (0.36, -0.48, 0.8)  # of columns, rows and slices


def series(folder, stored, spacing=(2.0, 2.0, 2.0), slopes=1, intercepts=0, axes=ALONG, bits=None, **attributes):
    """A classic series of stored[z, y, x]; spacing is mm between columns, rows and slices."""
    folder.mkdir()
    depth, rows, columns = stored.shape
    allocated = 8 * stored.dtype.itemsize
    slopes, intercepts = np.broadcast_to(slopes, depth), np.broadcast_to(intercepts, depth)
    for z, plane in enumerate(stored):
        dataset = base_dataset(f"texture {z}", CTImageStorage, rows, columns)
        dataset.SeriesInstanceUID = generate_uid(ROOT, [str(folder)])
        dataset.InstanceNumber = z + 1
        dataset.ImagePositionPatient = [f"{-30 + z * spacing[2] * axis:.10g}" for axis in axes[2]]
        dataset.ImageOrientationPatient = [*axes[0], *axes[1]]
        dataset.PixelSpacing = [spacing[1], spacing[0]]
        dataset.SliceThickness = spacing[2]
        dataset.RescaleSlope, dataset.RescaleIntercept = float(slopes[z]), float(intercepts[z])
        dataset.BitsAllocated = allocated
        dataset.BitsStored = bits or allocated
        dataset.HighBit = dataset.BitsStored - 1
        dataset.PixelRepresentation = int(np.issubdtype(stored.dtype, np.signedinteger))
        dataset.PixelData = plane.tobytes() + b"\0" * (plane.nbytes % 2)
        for keyword, value in attributes.items():
            setattr(dataset, keyword, value)
        save(dataset, folder / f"{z:04}.dcm")
    return folder


def read(folder):
    datasets, _ = peer.read_series(folder)
    return datasets, np.stack([d.pixel_array for d in datasets]), exact_values(datasets)


def features(folder):
    return json.loads((folder / "features.json").read_text())


def values_of(folder, segment=1, **settings):
    """Values by name of one region, of the features with these settings; None where there is none."""
    found = {f["name"]: f["value"] for f in features(folder)
             if f["segment_number"] == segment and all(f[key] == value for key, value in settings.items())}
    assert found
    return found


def reasons_of(folder, segment):
    return {f["name"]: f["reason"] for f in features(folder) if f["segment_number"] == segment}


def head(folder, options=("--size", "48x44x12")):
    phantom(folder, *options)
    return folder


SOFT = segment(0, 90, (24, 22, 6), 4, "Soft")


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
# Voxels that are not of the region are 9, beyond the segment's range.
IBSI_PHANTOM = np.array([
    [[1, 4, 4, 1, 1], [1, 4, 6, 1, 1], [4, 1, 6, 4, 1], [4, 4, 6, 4, 1]],
    [[1, 4, 4, 1, 1], [1, 1, 6, 1, 1], [9, 1, 3, 1, 1], [4, 4, 6, 1, 1]],
    [[1, 4, 4, 9, 9], [1, 1, 1, 1, 1], [1, 1, 9, 1, 1], [1, 1, 6, 1, 1]],
    [[1, 4, 4, 9, 9], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 6, 1, 1]],
], np.uint8)
SIX_LEVELS = {"fixed-bin-number": "levels = 6;", "fixed-bin-size": "bin_width = 1.0; range = [ 1.0, 6.0 ];",
              "pyradiomics-bin-width": "bin_width = 1.0;"}


def printed(value):
    """At three digits, as IBSI prints."""
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
    assert (found["Q4LE"]["aggregation"], found["Q4LE"]["levels"], found["Q4LE"]["range"]) == (None, None, None)


# --- pyradiomics ---

# What to ask of it and of us, to get the same.
SETTINGS = {
    "default": ({}, 'aggregation = "3d-averaged"; discretisation = "pyradiomics-bin-width"; bin_width = 25.0;'),
    "force2D": ({"force2D": True},
                'aggregation = "2.5d-direction-merged"; discretisation = "pyradiomics-bin-width"; bin_width = 25.0;'),
    "binCount": ({"binCount": 32}, 'aggregation = "3d-averaged"; levels = 32;'),
    "merged": ({"weightingNorm": "no_weighting"},
               'aggregation = "3d-merged"; discretisation = "pyradiomics-bin-width"; bin_width = 25.0;'),
}


def assert_is_pyradiomics(ours, values, mask, options, width=25):
    """All 24 features of its GLCM class, and those of its first order whose definition is the same."""
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
    """
    Its values spread so that none is rare: pyradiomics adds 2.2e-16 to p_i. p_.j, which its MCC divides
    by, and so loses digits to rare levels.
    """
    rank = field.ravel().argsort().argsort().reshape(field.shape) / field.size
    return low + (high - low) * rank**1.5


@pytest.mark.parametrize("setting", SETTINGS)
def test_segments_and_the_volume_are_as_of_pyradiomics(run, tmp_path, setting):
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


def test_slopes_of_slices_are_as_of_pyradiomics(run, tmp_path):
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
def test_a_real_brain_is_as_of_pyradiomics(run, tmp_path, setting):
    """Re-segmented to what is common, for the same reason."""
    options, glcm = SETTINGS[setting]
    glcm = glcm.replace("25.0", "2.0") + " range = [ 56.0, 84.0 ];"
    run(SHARED / "mr-brain-t1", tmp_path / "out", f"first_order = false; glcm = {{ {glcm} }};",
        ['{ label = "Brain"; range = [ 58.0, 90.0 ]; shapes = ( { center = { fraction = [ 0.5, 0.5, 0.5 ]; }; '
         f"radius_mm = 25.0; }} ); {TYPE} }}"])
    datasets, _, values = read(SHARED / "mr-brain-t1")
    (mask,) = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    mask &= (values >= 56) & (values <= 84)
    box = tuple(slice(at.min(), at.max() + 1) for at in np.nonzero(mask))
    image, region = (SimpleITK.GetImageFromArray(a[box]) for a in (values, mask.astype(np.uint8)))
    assert mask.sum() > 100000
    assert_close(values_of(tmp_path / "out"), RadiomicsGLCM(image, region, binWidth=2, **options).execute(),
                 OF_PYRADIOMICS)


# --- matrices that only we have, by their definition ---


def counts_of(levels, mask, offset, number):
    """Raw directional counts[reference, neighbour] for one offset (x, y, z)."""
    counts = np.zeros((number, number))
    there, here = [], []
    for step, size in zip(offset[::-1], levels.shape):
        here.append(slice(max(0, -step), size - max(0, step)))
        there.append(slice(max(0, step), size + min(0, step)))
    here, there = tuple(here), tuple(there)
    both = mask[here] & mask[there]
    np.add.at(counts, (levels[here][both] - 1, levels[there][both] - 1), 1)
    return counts


def test_the_matrices_of_paper_002(run, tmp_path):
    """Directional counts of bytes in equal parts, one direction in a slice: scikit-image counts the same."""
    image = (smooth(7, (1, 60, 47)) * 255).astype(np.uint8)
    source = series(tmp_path / "in", image)
    # Its angles turn towards larger rows: -pi/4 leads right and up.
    for angle, theirs, distance in (0, 0, 1), (45, -np.pi / 4, 1), (90, np.pi / 2, 2), (135, np.pi / 4, 3):
        output = tmp_path / f"out{angle}"
        run(source, output, 'regions = [ "volume" ]; first_order = false; glcm = { discretisation = "paper"; '
            f'levels = 8; symmetric = false; aggregation = "2d-averaged"; angles = [ {angle} ]; '
            f"distances = [ {distance} ]; }};", [segment(0, 255, (0, 0, 0))])
        levels = (image[0].astype(int) * 8 // 256).astype(np.uint8)
        if theirs < 0:  # no angle of theirs leads up: the same as right and down in a mirror
            levels, theirs = levels[::-1], -theirs
        reach = distance * 2**0.5 if angle % 90 else distance  # theirs is Euclidean
        matrix = graycomatrix(levels, [reach], [theirs], levels=8)[:, :, 0, 0].astype(float)
        if angle in (90, 135):  # ours leads up, theirs down
            matrix = matrix.T
        expected = by_definition(matrix)
        assert_close(values_of(output, 0), expected, {name: name for name in expected})
        (first, *_) = features(output)
        assert (first["directions"], first["symmetric"], first["distance"]) == (str(angle), False, distance)


def matrices(folder):
    """What matrices.json says, with dense arrays in the place of the cells that are not 0."""
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
                      "bin_width": None, "range": None, "distance": 1, "symmetric": True, "slice": None,
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
def test_features_are_those_of_the_matrices(run, tmp_path, aggregation, symmetric):
    """As counts and as probabilities, which sum to 1; of regions that have a pair."""
    texture = ('regions = [ "segments", "volume" ]; first_order = false; glcm = {{ levels = 12; distances = [ 1, 3 ]; '
               f'aggregation = "{aggregation}"; symmetric = {symmetric}; matrices = "{{}}"; }}}};')
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
    """Any offsets, 256 levels, values cut to a range, within a region: numpy counts the same."""
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


def test_each_distance_has_features_of_its_own(run, tmp_path):
    source = head(tmp_path / "in")
    run(source, tmp_path / "both", "glcm = { distances = [ 1, 4 ]; };", [SOFT])
    for distance in (1, 4):
        run(source, tmp_path / f"{distance}", f"first_order = false; glcm = {{ distances = [ {distance} ]; }};", [SOFT])
        assert values_of(tmp_path / "both", distance=distance) == values_of(tmp_path / f"{distance}")
    assert values_of(tmp_path / "1") != values_of(tmp_path / "4")


# --- intensities and place ---


def test_place_and_intensities_are_those_of_the_patient(run, tmp_path):
    """Planes across the patient, voxels of three different edges, padding within the region."""
    stored = evenly(smooth(4, (9, 31, 70)), 0, 900).astype(np.int16)
    stored[4, 10:14, 30:40] = -77
    spacing = (0.5, 0.75, 2.5)
    source = series(tmp_path / "in", stored, spacing, 2.0, -500, OBLIQUE, PixelPaddingValue=-77)
    run(source, tmp_path / "out", 'regions = [ "segments", "volume" ];', [segment(-500, 400, (35, 15, 4), 3)])
    datasets, stored, values = read(source)
    (mask,) = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    padding = stored == -77
    assert padding.any() and mask.any() and (mask & (stored != -77)).any()
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
        assert "entropy" not in ours  # which is one of levels
    glcm = SETTINGS["default"][1]
    run(source, tmp_path / "levels", f'regions = [ "volume" ]; glcm = {{ {glcm} }};',
        [segment(-500, 400, (35, 15, 4), 3)])
    assert_is_pyradiomics(values_of(tmp_path / "levels", 0), values, ~padding, {})
    units = {f["name"]: f["unit"] for f in features(tmp_path / "out")}
    assert (units["volume"], units["centroid_x"], units["voxel_count"]) == ("ml", "mm", "1")
    assert (units["mean"], units["variance"], units["skewness"]) == ("[hnsf'U]", "[hnsf'U]2", "1")


def fuzzy(label, voxel, more=""):
    at = ", ".join(map(str, voxel))
    return (f'{{ label = "{label}"; method = "fuzzy-connectedness"; seeds = ( {{ voxel = [ {at} ]; }} ); '
            f"object_mean = 40.0; object_sigma = 25.0; homogeneity_sigma = 10.0; {more} {TYPE} }}")


def test_regions_of_every_method(run, tmp_path):
    """An object of fuzzy connectedness with its scene, a level set, and one that starts from the object."""
    source = head(tmp_path / "in")
    grown = f'{{ label = "Grown"; range = [ 20.0, 60.0 ]; from = "Object"; {TYPE} }}'
    for name, segments in ("one pass", [fuzzy("Object", (24, 22, 6), "scene = true;"), SOFT]), (
            "two passes", [fuzzy("Object", (24, 22, 6), "scene = true;"), SOFT, grown]):
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
        assert_report_tells(output, source)


def test_multi_frame_sources_have_the_same_features(run, tmp_path):
    texture = 'regions = [ "segments", "volume" ]; glcm = { levels = 16; }; patterns = [ "lbp" ];'
    for name, more in ("classic", ()), ("enhanced", ("--multi-frame",)):
        run(head(tmp_path / name / "in", ("--size", "48x44x12", *more)), tmp_path / name / "out", texture, [SOFT])
    for table in (*TABLES, "patterns.json"):
        assert (tmp_path / "classic/out" / table).read_bytes() == (tmp_path / "enhanced/out" / table).read_bytes()


# --- local patterns ---

NEIGHBOURS = [(0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1)]  # (y, x): E, NE, N ...


def windows(plane):
    """The centre, and the eight neighbours from E counter-clockwise, of each voxel that is on no edge."""
    rows, columns = plane.shape
    inner = plane[1:-1, 1:-1].astype(int)
    return inner, [plane[1 + y:rows - 1 + y, 1 + x:columns - 1 + x].astype(int) for y, x in NEIGHBOURS]


def weigh(bits):
    return sum(bit.astype(np.uint8) << i for i, bit in enumerate(bits)).astype(np.uint8)


def lbp(plane):
    """Of scikit-image where it does not interpolate: P=4 along the axes, P=8 at sqrt(2) on the diagonals."""
    axes = local_binary_pattern(plane, 4, 1).astype(int)[1:-1, 1:-1]
    codes = local_binary_pattern(plane, 8, 2**0.5).astype(int)[1:-1, 1:-1] & 0b10101010
    for bit in range(4):
        codes |= (axes >> bit & 1) << 2 * bit
    return codes.astype(np.uint8)


def tlbap(plane, numerator=9, denominator=10, strict=False):
    """In whole numbers: n >= c and n * denominator >= numerator * maximum."""
    centre, around = windows(plane)
    bound = numerator * np.max([centre, *around], axis=0)
    if strict:
        return weigh([(n > centre) & (n * denominator > bound) for n in around])
    return weigh([(n >= centre) & (n * denominator >= bound) for n in around])


def lanadp(plane, integer=False):
    """Twice the averages of the two neighbours behind and before each, both on one side of it."""
    _, n = windows(plane)
    bits = []
    for i in range(8):
        after, before = n[(i + 1) % 8] + n[(i + 2) % 8], n[i - 1] + n[i - 2]
        if integer:
            after, before = (2 * np.trunc(pair / 2).astype(int) for pair in (after, before))
        bits.append(((after >= 2 * n[i]) & (before >= 2 * n[i])) | ((after <= 2 * n[i]) & (before <= 2 * n[i])))
    return weigh(bits)


def maps_of(stored, **of):
    of = {"lbp": lbp, "tlbap": tlbap, "lanadp": lanadp} | of
    return {name: np.stack([of[name](plane) for plane in stored]) for name in PATTERNS}


def assert_histograms(folder, maps, masks, settings=("", "threshold=0.9", "")):
    """patterns.json against maps, of each segment and of the volume (None)."""
    expected = []
    for number, label, mask in masks:
        inner = slice(None) if mask is None else mask[:, 1:-1, 1:-1]
        expected += [(number, label, name, setting, np.bincount(maps[name][inner].ravel(), minlength=256).tolist())
                     for name, setting in zip(PATTERNS, settings)]
    found = json.loads((folder / "patterns.json").read_text())
    assert [(h["segment_number"], h["label"], h["pattern"], h["settings"], h["histogram"]) for h in found] == expected
    assert all(list(h) == ["segment_number", "label", "pattern", "settings", "histogram"] for h in found)


ALL_PATTERNS = 'patterns = [ "lbp", "tlbap", "lanadp" ]; '


@pytest.mark.parametrize("options, exact, settings", [
    ("", {}, ("", "threshold=0.9", "")),
    ('tlbap_threshold = 0.25; tlbap_strict = true; lanadp_average = "integer";',
     {"tlbap": lambda plane: tlbap(plane, 1, 4, True), "lanadp": lambda plane: lanadp(plane, True)},
     ("", "threshold=0.25,strict", "integer")),
], ids=["text", "listing"])
def test_patterns(run, tmp_path, options, exact, settings):
    stored = (smooth(9, (7, 50, 67)) * 300 - 60).astype(np.int16)
    source = series(tmp_path / "in", stored)
    output = tmp_path / "out"
    run(source, output, f'regions = [ "segments", "volume" ]; first_order = false; {ALL_PATTERNS} {options}',
        [segment(-60, 40, (33, 25, 3), 8, "Dark"), segment(1000, 2000, (0, 0, 0), label="Nothing")],
        ("seg", "pmap"))
    assert sorted(p.name for p in output.iterdir()) == sorted(
        [*ALWAYS, *TABLES, "patterns.json", "seg.dcm", *(f"pmap-{name}.dcm" for name in PATTERNS)])
    datasets, stored, _ = read(source)
    masks = seg_masks(output / "seg.dcm", datasets)
    assert masks[0].any() and not masks[1].any()
    maps = maps_of(stored, **exact)
    assert_histograms(output, maps, [(1, "Dark", masks[0]), (2, "Nothing", masks[1]), (0, None, None)], settings)
    assert features(output) == []
    for name, setting in zip(PATTERNS, settings):
        path = output / f"pmap-{name}.dcm"
        planes = planes_of(sorted(source.glob("*.dcm")))
        pmap = pydicom.dcmread(path)
        assert_map_is_content(path, planes[0].source.filename)
        assert_frames(pmap, planes, in_frames(maps[name]))
        assert_references(pmap, planes)
        assert_highdicom_reads(path, planes, in_frames(maps[name]))
        mapping = pmap.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
        assert mapping.LUTExplanation == f"{name.upper()} code" + (f", {setting}" if setting else "")


@needs_shared
@pytest.mark.parametrize("name", ["ct-head-5mm", "mr-brain-t1"])
def test_patterns_of_real_series(run, tmp_path, name):
    run(SHARED / name, tmp_path / "out", f'regions = [ "volume" ]; {ALL_PATTERNS}',
        [f'{{ label = "Middle"; range = [ -5000.0, 5000.0 ]; shapes = ( {{ center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }};'
         f" radius_mm = 20.0; }} ); {TYPE} }}"])
    _, stored, _ = read(SHARED / name)
    assert_histograms(tmp_path / "out", maps_of(stored), [(0, None, None)])


def test_slices_without_a_pattern(run, tmp_path):
    """Two rows: there are no codes, which is no reason to fail beside other results; alone it is."""
    source = series(tmp_path / "in", np.arange(2 * 2 * 9, dtype=np.uint16).reshape(2, 2, 9))
    whole = [segment(0, 100, (4, 0, 0))]
    told = run(source, tmp_path / "out", ALL_PATTERNS, whole, ("seg", "pmap")).stdout
    assert "less than 3 x 3" in told and not list((tmp_path / "out").glob("pmap*"))
    found = json.loads((tmp_path / "out" / "patterns.json").read_text())
    assert len(found) == 3 and not any(any(h["histogram"]) for h in found)
    assert "PMAP_EMPTY" in run(source, tmp_path / "no", ALL_PATTERNS, whole, ("pmap",), status=1).stderr
    assert_nothing_left(tmp_path / "no")


# --- what is not defined ---

ONE_LEVEL = {"correlation", "information_correlation_1", "maximal_correlation_coefficient", "skewness", "kurtosis"}
PLACE = {"voxel_count", "volume", "centroid_x", "centroid_y", "centroid_z", "box_columns", "box_rows", "box_slices"}


def sparse(folder):
    """A lone voxel of 500, a flat block of 700 and a gradient, in 0."""
    stored = np.zeros((6, 20, 22), np.int16)
    stored[1, 3, 4] = 500
    stored[2:4, 8:12, 8:12] = 700
    stored[4, 14:18, 5:20] = np.arange(900, 960).reshape(4, 15)
    return series(folder, stored)


SPARSE = [segment(450, 550, (4, 3, 1), label="Lone"), segment(650, 750, (9, 9, 2), label="Flat"),
          segment(900, 1000, (6, 15, 4), label="Sloped"), segment(5000, 6000, (0, 0, 0), label="None")]


@pytest.mark.parametrize("glcm", ["levels = 32;", 'discretisation = "fixed-bin-size"; bin_width = 10.0;',
                                  'discretisation = "pyradiomics-bin-width"; bin_width = 10.0;'])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_what_has_no_value_has_a_reason(run, tmp_path, aggregation, glcm):
    source = sparse(tmp_path / "in")
    run(source, tmp_path / "out", f'glcm = {{ {glcm} aggregation = "{aggregation}"; }};', SPARSE, ("seg", "sr"))
    all_of_them = features(tmp_path / "out")
    assert all((f["value"] is None) == (f["reason"] is not None) for f in all_of_them)
    lone, flat, sloped, none = (reasons_of(tmp_path / "out", number) for number in (1, 2, 3, 4))
    of_glcm = {f["name"] for f in all_of_them if f["family"] == "glcm"}
    assert len(of_glcm) == 26
    assert {n for n in of_glcm if lone[n] == "NO_NEIGHBOURS"} == of_glcm
    assert {n for n, reason in lone.items() if reason == "ONE_GREY_LEVEL"} == {"skewness", "kurtosis"}
    assert {n for n, reason in flat.items() if reason} == ONE_LEVEL
    assert {flat[n] for n in ONE_LEVEL} == {"ONE_GREY_LEVEL"}
    assert not any(sloped.values())
    assert {n for n, reason in none.items() if reason is None} == {"voxel_count", "volume"}
    assert {reason for reason in none.values() if reason} == {"EMPTY_REGION"}
    values = values_of(tmp_path / "out", 2)
    assert (values["joint_maximum"], values["joint_entropy"], values["contrast"], values["entropy"]) == (1, 0, 0, 0)
    assert values_of(tmp_path / "out", 1)["mean"] == 500 and values_of(tmp_path / "out", 4)["volume"] == 0
    assert_report_tells(tmp_path / "out", source)


@pytest.mark.parametrize("glcm, advice", [('discretisation = "paper"; levels = 8;', "fixed-bin-number"),
                                          ('discretisation = "fixed-bin-size"; bin_width = 0.1;', "bin_width"),
                                          ('discretisation = "pyradiomics-bin-width"; bin_width = 0.1;', "bin_width")])
def test_values_that_make_no_levels(run, tmp_path, glcm, advice):
    source = sparse(tmp_path / "in")
    told = run(source, tmp_path / "out", f"glcm = {{ {glcm} }};", SPARSE[2:3], ("seg", "sr")).stdout
    assert advice in told and advice in json.loads((tmp_path / "out" / "job.json").read_text())["note"]
    reasons = reasons_of(tmp_path / "out", 1)
    assert {name for name, reason in reasons.items() if reason is None} >= PLACE | {"mean", "median", "maximum"}
    assert {reason for reason in reasons.values() if reason} == {"NOT_DISCRETISED"}
    assert len([reason for reason in reasons.values() if reason]) == 27  # the entropy too
    assert_report_tells(tmp_path / "out", source)


def test_a_range_that_leaves_nothing(run, tmp_path):
    run(sparse(tmp_path / "in"), tmp_path / "out", "glcm = { range = [ 2000.0, 3000.0 ]; };", SPARSE[2:3])
    for feature in features(tmp_path / "out"):
        levelled = feature["family"] == "glcm" or feature["name"] == "entropy"
        assert feature["reason"] == ("EMPTY_REGION" if levelled else None), feature["name"]
        assert feature["range"] == ([2000, 3000] if levelled else None)


def test_a_job_without_a_voxel_tells_what_it_measured(run, tmp_path):
    source = sparse(tmp_path / "in")
    run(source, tmp_path / "out", "glcm = { };" + ALL_PATTERNS, SPARSE[3:], ("seg", "sr", "pmap"), status=7)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted([*ALWAYS, *TABLES, "patterns.json"])
    assert {r for r in reasons_of(tmp_path / "out", 1).values()} == {None, "EMPTY_REGION"}
    found = json.loads((tmp_path / "out" / "patterns.json").read_text())
    assert [sum(h["histogram"]) for h in found] == [0, 0, 0]


# --- the tables ---

FIELDS = ["segment_number", "label", "name", "meaning", "family", "ibsi_code", "value", "reason", "unit",
          "aggregation", "aggregation_ibsi_code", "discretisation", "levels", "bin_width", "range", "distance",
          "symmetric", "directions"]


def from_csv(path):
    """features.csv as features.json has it."""
    lines = path.read_bytes().decode().split("\r\n")
    assert lines.pop() == "" and not any("\n" in line for line in lines)
    rows = list(csv.DictReader(lines))
    told = []
    for row in rows:
        low, high = row.pop("range_low"), row.pop("range_high")
        numbers = {key: float(row[key]) if row[key] else None for key in ("value", "bin_width")}
        whole = {key: int(row[key]) if row[key] else None for key in ("segment_number", "levels", "distance")}
        flag = {"": None, "true": True, "false": False}[row["symmetric"]]
        told.append({**{key: value or None for key, value in row.items()}, **numbers, **whole, "symmetric": flag,
                     "range": [float(low), float(high)] if low else None})
    return told


def test_the_tables_say_the_same_with_all_digits(run, tmp_path):
    label = 'Größe, \\"links\\"; 脳'
    run(sparse(tmp_path / "in"), tmp_path / "out",
        'regions = [ "segments", "volume" ]; glcm = { aggregation = "2.5d-merged"; angles = [ 0, 90 ]; '
        'range = [ 0.1, 1000.5 ]; discretisation = "fixed-bin-size"; bin_width = 12.5; distances = [ 1, 2 ]; };',
        [segment(900, 1000, (6, 15, 4), label=label), SPARSE[0]])
    told = features(tmp_path / "out")
    assert all(list(feature) == FIELDS for feature in told)
    assert from_csv(tmp_path / "out" / "features.csv") == told
    assert [f["segment_number"] for f in told] == [n for n in (1, 2, 0) for _ in range(23 + 2 * 26)]
    assert told[0]["label"] == 'Größe, "links"; 脳' and told[-1]["label"] is None
    assert (told[-1]["directions"], told[-1]["bin_width"], told[-1]["range"]) == ("0,90", 12.5, [0.1, 1000.5])


def test_the_summary_names_what_was_measured(run, tmp_path):
    told = run(head(tmp_path / "in"), tmp_path / "out", 'regions = [ "segments", "volume" ]; glcm = { };',
               [SOFT, segment(5000, 6000, (0, 0, 0), label="Nothing")]).stdout
    values = values_of(tmp_path / "out", 1)
    assert str(tmp_path / "out" / "features.json") in told
    assert f"mean {values['mean']:.6g} HU" in told and f"joint entropy {values['joint_entropy']:.6g}," in told
    assert "mean none (EMPTY_REGION)" in told
    assert f"{48 * 44 * 12} voxels" in told


# --- objects ---


def without_times(path):
    dataset = pydicom.dcmread(path)
    for keyword in ("ContentDate", "ContentTime", "SeriesDate", "SeriesTime", "InstanceCreationDate",
                    "InstanceCreationTime"):
        if keyword in dataset:
            del dataset[keyword]
    dataset.walk(lambda d, e: e.keyword in ("ObservationDateTime",) and d.pop(e.tag), recursive=True)
    return dataset


def test_the_same_input_gives_the_same_results(run, tmp_path):
    """Whatever the order of the files and the number of threads; of objects all but the time they were made."""
    source = head(tmp_path / "in")
    (tmp_path / "shuffled").mkdir()
    for number, path in enumerate(sorted(source.glob("*.dcm"), reverse=True)):
        shutil.copy(path, tmp_path / "shuffled" / f"{number:03}.dcm")
    texture = f'regions = [ "segments", "volume" ]; glcm = {{ aggregation = "3d-averaged"; }}; {ALL_PATTERNS}'
    for name, folder, threads in ("a", source, 1), ("b", tmp_path / "shuffled", 7):
        run(folder, tmp_path / name, texture, [SOFT], ("seg", "sr", "pmap"), arguments=("--threads", str(threads)))
    for table in (*TABLES, "patterns.json"):
        assert (tmp_path / "a" / table).read_bytes() == (tmp_path / "b" / table).read_bytes()
    names = ["seg.dcm", "sr.dcm", *(f"pmap-{name}.dcm" for name in PATTERNS)]
    for name in names:
        assert without_times(tmp_path / "a" / name) == without_times(tmp_path / "b" / name), name
    objects = [pydicom.dcmread(tmp_path / "a" / name) for name in names]
    assert len({o.SOPInstanceUID for o in objects}) == len({o.SeriesInstanceUID for o in objects}) == len(names)
    assert sorted(o.SeriesNumber for o in objects) == list(range(9000, 9000 + len(names)))
    assert len({o.StudyInstanceUID for o in objects}) == 1


def told_by(group):
    """What a group of the report measures: concept, value or None, unit, settings."""
    for item in children(group, "NUM"):
        measured = item.MeasuredValueSequence[0]
        yield (name_of(item)[:2], measured.FloatingPointValue, code_of(measured.MeasurementUnitsCodeSequence)[0],
               settings_of(item))
    for item in children(group, "CODE"):
        if code_of(item.ConceptCodeSequence)[:2] in (("114000", "DCM"), ("114006", "DCM")):
            yield name_of(item)[:2], None, None, settings_of(item)


def settings_of(item):
    """Codes, numbers and words of how a measurement was made, by their own code."""
    codes = {name_of(child)[0]: code_of(child.ConceptCodeSequence)[0] for child in children(item, "CODE")}
    numbers = {name_of(child)[0]: child.MeasuredValueSequence[0].FloatingPointValue
               for child in children(item, "NUM")}
    return {"codes": codes, "numbers": numbers,
            "directions": [child.TextValue for child in children(item, "TEXT", "DIRECTIONS")]}


CONCEPTS = {"standard_deviation": ("386136009", "SCT"),
            "maximal_correlation_coefficient": ("max_correlation", "99NOCTULE")}
DISCRETISATIONS = {"paper": ("STORED_256", "LEVELS"), "fixed-bin-number": ("K15C", "K15C"),
                   "fixed-bin-size": ("Q3RU", "Q3RU"), "pyradiomics-bin-width": ("MULTIPLES", "BIN_WIDTH")}


def as_told(feature):
    """A feature of features.json as the report has to tell it."""
    concept = (feature["ibsi_code"], "IBSI") if feature["ibsi_code"] else CONCEPTS.get(
        feature["name"], (feature["name"], "99NOCTULE"))
    codes, numbers = {}, {}
    if feature["aggregation"]:
        codes["5QB6"] = feature["aggregation_ibsi_code"]
        if not feature["symmetric"]:
            codes["MATRIX"] = "DIRECTIONAL"
    if feature["discretisation"]:
        codes["4R0B"], name = DISCRETISATIONS[feature["discretisation"]]
        numbers[name] = feature["bin_width"] or feature["levels"]
    if feature["distance"]:
        numbers["PVMT"] = feature["distance"]
    if feature["range"]:
        codes["IF9H"] = "USB3"
        numbers["RANGE_LOW"], numbers["RANGE_HIGH"] = feature["range"]
    present = feature["value"] is not None
    return concept, feature["value"], feature["unit"] if present else None, {
        "codes": codes, "numbers": numbers, "directions": [d for d in [feature["directions"]] if d]}


def assert_no_new_remarks(path, source):
    """dciodvfy has nothing to say but what it says of the source too, and that it does not know our scheme."""
    def about(path):
        return {re.sub(r"<.*?>", "", remark) for remark in dciodvfy_remarks(path)
                if not remark.endswith("Unrecognized defined term = <99NOCTULE>")}

    assert about(path) <= about(next(source.glob("*.dcm")))


def by_concept(measurement):
    return measurement[0], json.dumps(measurement[3], sort_keys=True)


def assert_report_tells(folder, source):
    """sr.dcm is valid, and says of each segment, found by its tracking UID, and of the volume what features.json says."""
    path = folder / "sr.dcm"
    assert_no_new_remarks(path, source)
    dumped = subprocess.run(["dsrdump", "+Pc", path], capture_output=True, text=True, errors="replace")
    assert dumped.returncode == 0 and "Enhanced SR Document" in dumped.stdout
    content = highdicom.sr.EnhancedSR.from_dataset(pydicom.dcmread(path)).content
    assert isinstance(content, highdicom.sr.MeasurementReport)
    in_highdicom = {group.tracking_uid: sorted(measured.value for measured in group.get_measurements())
                    for group in (*content.get_volumetric_roi_measurement_groups(),
                                  *content.get_image_measurement_groups())}
    report = pydicom.dcmread(path)
    groups = children(one(report, "CONTAINER", "126010"), "CONTAINER", "125007")
    seg = pydicom.dcmread(folder / "seg.dcm") if (folder / "seg.dcm").exists() else None
    numbers = {item.TrackingUID: item.SegmentNumber for item in seg.SegmentSequence} if seg else {}
    all_of_them = features(folder)
    found = {}
    for group in groups:
        number = numbers.get(one(group, "UIDREF", "112040").UID, 0)
        found[number] = sorted(told_by(group), key=by_concept)
        assert in_highdicom[one(group, "UIDREF", "112040").UID] == sorted(
            measured[1] for measured in found[number] if measured[1] is not None)
        if number:
            reference = one(group, "IMAGE", "121191").ReferencedSOPSequence[0]
            assert reference.ReferencedSOPInstanceUID == seg.SOPInstanceUID
            assert reference.ReferencedSegmentNumber == number
    expected = {}
    for feature in all_of_them:
        expected.setdefault(feature["segment_number"], []).append(as_told(feature))
    assert found == {number: sorted(told, key=by_concept) for number, told in expected.items()}
    uids = {path_.stem: pydicom.dcmread(path_, stop_before_pixels=True).SOPInstanceUID
            for path_ in source.glob("*.dcm")}
    evidence = {item.ReferencedSOPInstanceUID for study in report.CurrentRequestedProcedureEvidenceSequence
                for listed in study.ReferencedSeriesSequence for item in listed.ReferencedSOPSequence}
    assert set(uids.values()) <= evidence


@pytest.mark.parametrize("regions, results", [('"segments"', ("seg", "sr")), ('"segments", "volume"', ("seg", "sr")),
                                              ('"volume"', ("sr",))])
@pytest.mark.parametrize("glcm", [
    'aggregation = "3d-averaged"; distances = [ 1, 2 ];',
    'aggregation = "2d-averaged"; discretisation = "pyradiomics-bin-width"; bin_width = 12.5; symmetric = false;',
    'aggregation = "2.5d-merged"; discretisation = "fixed-bin-size"; bin_width = 4.0; range = [ -3.0, 90.0 ]; '
    'angles = [ 0, 135 ];',
    'symmetric = false; levels = 8; offsets = ( [ 2, 0, 1 ], [ 0, -3, 0 ] );',
])
def test_the_report_tells_what_the_tables_tell(run, tmp_path, regions, results, glcm):
    source = head(tmp_path / "in")
    run(source, tmp_path / "out", f"regions = [ {regions} ]; glcm = {{ {glcm} }};",
        [SOFT, segment(300, 3000, (24, 2, 6), 3, "Bone")], results)
    assert_report_tells(tmp_path / "out", source)


@needs_shared
@pytest.mark.parametrize("name", ["ct-head-5mm", "mr-brain-t1"])
def test_objects_of_real_series(run, tmp_path, name):
    run(SHARED / name, tmp_path / "out", f'regions = [ "segments", "volume" ]; glcm = {{ }}; patterns = [ "lbp" ];',
        [f'{{ label = "Middle"; range = [ 20.0, 90.0 ]; shapes = ( {{ center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }};'
         f" radius_mm = 20.0; }} ); {TYPE} }}"], ("seg", "sr", "pmap"))
    assert_report_tells(tmp_path / "out", SHARED / name)
    assert_map_is_content(tmp_path / "out" / "pmap-lbp.dcm", sorted((SHARED / name).glob("*.dcm"))[0])


# --- a disk that is full, and other ways to fail ---

EVERYTHING = ('regions = [ "segments", "volume" ]; glcm = { distances = [ 1, 2 ]; matrices = "counts"; }; '
              f"{ALL_PATTERNS}")
OBJECTS = ("seg", "sr", "pmap")


def test_a_disk_that_fills_while_any_file_is_written(run, tmp_path):
    """From no room to just enough, page by page: each file is the one that does not fit, and nothing is left."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "noctule-test", small],
                      capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        source = head(tmp_path / "in", ("--kind", "sphere", "--size", "32x32x8"))
        segments = [segment(0, 90, (16, 16, 4), 4, "Soft")]
        stopped_at = set()
        for pages in range(1, 400, 2):
            subprocess.run(["mount", "-o", f"remount,size={4 * pages}k", small], check=True)
            result = subprocess.run(
                [BIN / "noctule", "--config", tmp_path / "noctule.conf", "run", "--pipeline", "texture", "--output",
                 small / "out", source], text=True, capture_output=True) if stopped_at else run(
                source, small / "out", EVERYTHING, segments, OBJECTS, status=1)
            if result.returncode == 0:
                break
            assert "DISK_FULL" in result.stderr, result.stderr
            stopped_at.add(result.stderr.split("DISK_FULL: ", 1)[1].splitlines()[0])
            assert [p for p in small.rglob("*") if p.is_file()] == []
        assert result.returncode == 0
        told = "\n".join(stopped_at)
        for name in (*TABLES, "patterns.json", "matrices.json", "segmentation", "report", "parametric map"):
            assert name in told, told
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@pytest.mark.parametrize("regions, results, victim, name", [
    ('"segments", "volume"', ("seg", "sr"), "sr.dcm", "report"),
    ('"segments"', ("seg", "pmap"), "pmap-lbp.dcm", "parametric map"),
    ('"segments", "volume"', ("seg",), "features.json", "features.json"),
])
def test_a_file_that_cannot_be_finished(run, tmp_path, regions, results, victim, name):
    """A limit on file sizes that the file, written after smaller ones, is the first to meet."""
    source = head(tmp_path / "in", ("--size", "32x32x24"))
    texture = f'regions = [ {regions} ]; glcm = {{ distances = [ 1, 2, 3, 4 ]; }}; patterns = [ "lbp" ];'
    segments = [segment(0, 90, (16, 16, 12), 4, "Soft")]
    run(source, tmp_path / "out", texture, segments, results)
    limit = (tmp_path / "out" / victim).stat().st_size - 1
    result = run(source, tmp_path / "again", texture, segments, results, status=1,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert "DISK_FULL" in result.stderr and name in result.stderr
    assert_nothing_left(tmp_path / "again")


@pytest.mark.parametrize("texture, results, word", [
    ("first_order = false;", ("seg",), "nothing is left to measure"),
    ("glcm = { };", ("sr",), '"sr"'),
    ("glcm = { };", ("seg", "pmap"), "patterns"),
    ("glcm = { levels = 1; };", ("seg",), "levels"),
    ("glcm = { levels = 257; };", ("seg",), "levels"),
    ('glcm = { discretisation = "fixed-bin-size"; };', ("seg",), "bin_width"),
    ('glcm = { aggregation = "2d-averaged"; offsets = ( [ 1, 0, 1 ] ); };', ("seg",), "slice"),
    ("glcm = { offsets = ( [ 0, 0, 0 ] ); };", ("seg",), "offsets"),
    ("glcm = { angles = [ 0 ]; };", ("seg",), "angles"),
    ("glcm = { range = [ 9.0, 1.0 ]; };", ("seg",), "range"),
    ('patterns = [ "ltp" ];', ("seg",), "lanadp"),
])
def test_settings_that_make_no_sense(run, tmp_path, texture, results, word):
    source = head(tmp_path / "in", ("--size", "32x32x4"))
    result = run(source, tmp_path / "out", texture, [SOFT], results, status=5)
    assert word in result.stderr and "noctule.conf" in result.stderr
    assert_nothing_left(tmp_path / "out")


# --- the service ---


def test_the_daemon_keeps_and_delivers_what_was_measured(daemon, tmp_path):
    """`noctule features`, v_features and the delivered objects agree with the files of the job."""
    source = head(tmp_path / "in")
    with storescp(tmp_path / "archive") as archive:
        texture = f'regions = [ "segments", "volume" ]; glcm = {{ distances = [ 1, 2 ]; }}; {ALL_PATTERNS}'
        settings = f"""
            root = "{tmp_path / 'daemon0' / 'root'}";
            inbox = ( {{ path = "inbox"; settle_seconds = 0.3; sweep_seconds = 1.0; }} );
            series = {{ quiet_seconds = 1.0; complete_seconds = 0.3; patience_seconds = 1.0; }};
            min_free_mib = 1; log_level = "debug"; {QUICK}
            destinations = ( {to_folder(tmp_path / "shelf", "SHELF")}, {to_archive(archive.port)} );
            rules = ( {{ pipeline = "texture"; }} );
            """ + pipeline(texture, [SOFT, segment(5000, 6000, (0, 0, 0), label="Nothing")], OBJECTS,
                           'deliver = [ "SHELF", "PACS" ];')
        d = daemon(settings=settings).start()
        drop(sorted(source.glob("*.dcm")), d.inbox)
        (job,) = d.wait_jobs()
        assert job["state"] == "DONE", job["sentence"]
        wait_for(lambda: [row["state"] for row in d.query("SELECT state FROM v_deliveries")] == ["SENT"] * 10, 40,
                 "ten deliveries")
        held = {pydicom.dcmread(path).SOPInstanceUID: pydicom.dcmread(path) for path in archive.files()}
    folder = (d.root / job["result_path"]).parent
    told = features(folder)
    assert json.loads(d.ctl("features", job["job"], "--json").stdout) == told
    assert d.ctl("features", job["job"], "--csv").stdout.encode() == (folder / "features.csv").read_bytes().replace(
        b"\r\n", b"\n")
    rows = [{**dict(row), "segment_number": row["segment"]} for row in d.query("SELECT * FROM v_features ORDER BY place")]
    for row, feature in zip(rows, told, strict=True):
        assert row["range_low"] == (feature["range"] or [None])[0]
        assert all((row[key] or None) == (feature[key] or None) for key in FIELDS if key != "range")
    made = sorted(path.name for path in folder.iterdir() if path.suffix == ".dcm")
    assert made == sorted(["seg.dcm", "sr.dcm", *(f"pmap-{name}.dcm" for name in PATTERNS)])
    shelf = {pydicom.dcmread(path).SOPInstanceUID: path for path in (tmp_path / "shelf").rglob("*.dcm")}
    for name in made:
        ours = pydicom.dcmread(folder / name)
        assert shelf[ours.SOPInstanceUID].read_bytes() == (folder / name).read_bytes()
        assert held[ours.SOPInstanceUID] == ours, name
    assert len(held) == len(shelf) == len(made)

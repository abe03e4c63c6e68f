"""Quantities of a segment (`quantities`): drawn phantoms by hand, random volumes against NumPy, SciPy and pyradiomics,
PET in SUV, the codes in the report, and refusals by name."""

import csv
import io
import json
import re
import subprocess
from itertools import combinations

import highdicom
import nibabel
import numpy as np
import pydicom
import pytest
import SimpleITK
from conftest import BIN, EMULATED, SETTINGS, SHARED, drop, needs_emulator, needs_shared, phantom, run_program
from radiomics.shape import RadiomicsShape
from scipy import ndimage
from scipy.spatial import ConvexHull
from test_contours import Planes, ring, structure_set
from test_page import Site
from test_run import seg_masks
from test_seg import dciodvfy_remarks
from test_sr import children, code_of, one
from texture_runs import TYPE, assert_no_new_remarks, features, measurements_of, series

THIN = (0.5, 0.5, 3.0)
CT = ("laa950", "pd15", "agatston", "diameters")
PET = ("mtv", "tlg", "suvpeak", "diameters")


def configuration(folder, quantities, low=-5000.0, high=5000.0, extra="", segment="", root=""):
    """Writes a pipeline whose segment is all voxels in a range."""
    words = ", ".join(f'"{word}"' for word in quantities)
    path = folder / "quantities.conf"
    path.write_text(f'''root = "{folder}/root"; {root} pipelines = ( {{ name = "p"; by_hand = true; min_slices = 1; {extra}
        segments = ( {{ label = "Part"; method = "range"; range = [ {low}, {high} ]; quantities = [ {words} ];
        {segment} {TYPE} }} ); }} );''')
    return path


def run(source, folder, *quantities, programs=BIN, output="out", **options):
    """Returns the finished program and the output folder."""
    config = configuration(folder, quantities, **options)
    done = subprocess.run([programs / "noctule", "--config", config, "run", "--pipeline", "p", "--output",
                           folder / output, source], text=True, capture_output=True, timeout=300)
    return done, folder / output


def measured(source, folder, *quantities, **options):
    """Returns the values of the quantities by name."""
    done, output = run(source, folder, *quantities, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return {f["name"]: f["value"] for f in features(output) if f["family"] == "quantity"}


def hounsfield(folder, values, spacing=THIN, **attributes):
    """Writes a CT series of values[z, y, x] in HU."""
    return series(folder, (values + 1024).astype(np.uint16), spacing, 1, -1024, **attributes)


# --- by hand ---


def test_the_agatston_score_of_a_drawn_phantom(tmp_path):
    """Voxels of 0.25 mm2. Lesions of less than four are too small; the weight is that of the highest value."""
    values = np.full((4, 40, 40), -50)
    values[0, 2:4, 2:4] = 130         # 4 voxels: 1 mm2, weight 1
    values[0, 2:4, 6:8] = 129         # below the threshold
    values[0, 10, 2:5] = 900          # 3 voxels: 0.75 mm2
    values[0, 20:22, 2:4] = 150
    values[0, 22:24, 4:6] = 150       # touches by a corner: a lesion of its own
    values[1, 2, 2:7] = (130, 199, 140, 150, 160)      # 5, weight 1
    values[1, 5, 2:7] = (130, 200, 140, 150, 160)      # 5, weight 2
    values[1, 8, 2:7] = (130, 299, 140, 150, 160)      # 5, weight 2
    values[1, 11, 2:7] = (130, 300, 140, 150, 160)     # 5, weight 3
    values[1, 14, 2:7] = (130, 399, 140, 150, 160)     # 5, weight 3
    values[1, 17, 2:7] = (130, 400, 140, 150, 160)     # 5, weight 4
    values[2, 2:4, 2:5] = 500         # 6, weight 4; the same place in the next slice is a lesion of that slice
    values[3, 2:4, 2:5] = 250         # 6, weight 2
    units = 4 * 1 + (4 + 4) * 1 + 5 * (1 + 2 + 2 + 3 + 3 + 4) + 6 * 4 + 6 * 2
    source = hounsfield(tmp_path / "in", values)
    assert measured(source, tmp_path, "agatston") == {"agatston": units * 0.25}


def test_calcium_outside_the_segment_and_padding_do_not_count(tmp_path):
    values = np.full((3, 30, 30), 0)
    values[1, 2:4, 2:4] = 300         # within the segment: 4, weight 3
    values[1, 10:14, 2:4] = 1500      # above its range
    values[2, 2:4, 2:4] = 700         # padding
    source = hounsfield(tmp_path / "in", values, PixelPaddingValue=1724)
    assert measured(source, tmp_path, "agatston", high=1000.0) == {"agatston": 3.0}


def test_no_calcium_is_a_score_of_0(tmp_path):
    source = hounsfield(tmp_path / "in", np.arange(3 * 20 * 20).reshape(3, 20, 20) % 100)
    assert measured(source, tmp_path, "agatston") == {"agatston": 0}


@pytest.mark.parametrize("spacing, drawn, long, short", [
    ((0.5, 2.0, 3.0), [(5, 5)], 2.0, 0.5),
    ((1.0, 1.0, 3.0), [(5, x) for x in range(3, 15)], 12.0, 1.0),
    # 4 x 3: from a corner edge to the opposite one, 4 along and 2 up; at right angles between the long sides
    ((1.0, 1.0, 3.0), [(y, x) for y in range(5, 8) for x in range(3, 7)], 20**0.5, 1.5 * 5**0.5),
    # the longer of two areas; together they would be longer
    ((1.0, 1.0, 3.0), [(5, 2), (5, 3), (5, 30)], 2.0, 1.0),
    # two voxels that touch by a corner are two areas
    ((0.5, 0.5, 3.0), [(5, 5), (6, 6)], 0.5, 0.5),
    # a plus: 3 along both axes
    ((2.0, 1.0, 3.0), [(5, 5), (4, 5), (6, 5), (5, 4), (5, 6)], 6.0, 3.0)])
def test_diameters_by_hand(tmp_path, spacing, drawn, long, short):
    values = np.full((3, 40, 70), -500)
    for y, x in drawn:
        values[1, y, x] = values[1, y, x] = 100
    found = measured(hounsfield(tmp_path / "in", values, spacing), tmp_path, "diameters", low=0.0)
    assert found == {"long_axis": pytest.approx(long, rel=1e-14), "short_axis": pytest.approx(short, rel=1e-14)}


def test_low_attenuation_and_percentile_by_hand(tmp_path):
    """Of 20 values: 4 are below -950, one is equal to it. Rank 0.15 * 19 = 2.85 is between -970 and -960."""
    values = np.full((1, 20, 20), 500)
    values[0, 0] = (-1000, -980, -970, -960, -950, *range(-900, -750, 10))
    found = measured(hounsfield(tmp_path / "in", values), tmp_path, "laa950", "pd15", high=0.0)
    assert found == {"laa950": 20.0, "pd15": pytest.approx(-970 + 0.85 * 10, rel=1e-14)}


def test_an_empty_segment_has_reasons(tmp_path):
    source = hounsfield(tmp_path / "in", np.zeros((3, 20, 20)) + np.arange(20))
    _, output = run(source, tmp_path, *CT, low=3000.0)
    assert {(f["name"], f["value"], f["reason"]) for f in features(output)} == {
        (name, None, "EMPTY_REGION") for name in ("laa950", "pd15", "agatston", "long_axis", "short_axis")}


# --- by definition ---


def agatston_of(values, mask, area):
    """The definition of 1990, slice by slice."""
    score = 0.0
    for plane, part in zip(values, mask):
        lesions, count = ndimage.label((plane >= 130) & part)
        for number in range(1, count + 1):
            lesion = plane[lesions == number]
            if lesion.size * area >= 1:
                score += lesion.size * area * min(4, int(lesion.max()) // 100)
    return score


def outline_of(area, spacing):
    """Returns the middles of edges between voxels of an area and others, in mm."""
    padded = np.pad(area, 1)
    points = []
    for y, x in np.argwhere(padded):
        for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            if not padded[y + dy, x + dx]:
                points.append(((x + dx / 2) * spacing[0], (y + dy / 2) * spacing[1]))
    return np.array(points)


def diameters_of(mask, spacing):
    """Returns the longest diameter of an area in a slice and the longest chord of its hull at right angles to it, with
    all pairs of points of the outline, and half planes of the hull."""
    best = 0.0, 0.0
    for plane in mask:
        areas, count = ndimage.label(plane)
        for number in range(1, count + 1):
            points = outline_of(areas == number, spacing)
            hull = ConvexHull(points)
            corners = points[hull.vertices]
            pairs = [(np.hypot(*(a - b)), a, b) for a, b in combinations(corners, 2)]
            longest = max(length for length, _, _ in pairs)
            if longest < best[0] - 1e-9:
                continue
            for length, a, b in pairs:
                if length < longest - 1e-12:
                    continue
                across = np.array([-(b - a)[1], (b - a)[0]]) / length
                chords = []
                for at in corners:
                    along = hull.equations[:, :2] @ across
                    room = -(hull.equations[:, 2] + hull.equations[:, :2] @ at)
                    upper, lower = along > 1e-12, along < -1e-12
                    chords.append((room[upper] / along[upper]).min() - (room[lower] / along[lower]).max())
                best = max(best, (length, max(chords)))
    return best


def blobs(seed, shape=(5, 60, 70), sigma=2.0):
    field = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=shape), (0.5, sigma, sigma))
    return field / field.std()


@pytest.mark.parametrize("seed, spacing", [(1, (0.488, 0.488, 2.5)), (2, (0.7, 0.35, 3.0)), (3, (0.25, 0.5, 2.5))])
def test_random_volumes_equal_the_definitions(tmp_path, seed, spacing):
    """Slices have their own rescale, and part of each is padding."""
    stored = np.round(2000 + 300 * blobs(seed)).astype(np.uint16)
    stored[:, :, :5] = 4
    slopes, intercepts = 1 + 0.25 * np.arange(5), -2000 - 500 * np.arange(5)
    values = stored * slopes[:, None, None] + intercepts[:, None, None]
    mask = (values >= -2000) & (values <= 2500) & (stored != 4)
    source = series(tmp_path / "in", stored, spacing, slopes, intercepts, PixelPaddingValue=4)
    found = measured(source, tmp_path, *CT, low=-2000.0, high=2500.0)
    assert found["laa950"] == pytest.approx(100 * np.mean(values[mask] < -950), rel=1e-14)
    assert found["pd15"] == pytest.approx(np.percentile(values[mask], 15), rel=1e-14)
    assert found["agatston"] == pytest.approx(agatston_of(values, mask, spacing[0] * spacing[1]), rel=1e-12) != 0
    assert (found["long_axis"], found["short_axis"]) == pytest.approx(diameters_of(mask, spacing), rel=1e-12)


@pytest.mark.parametrize("seed, spacing", [(4, (1.0, 1.0, 3.0)), (5, (0.4, 1.1, 3.0)), (6, (2.0, 0.7, 1.0))])
def test_many_areas_equal_the_definition(tmp_path, seed, spacing):
    """Areas of all sizes: slices of their own, holes, and areas of a voxel."""
    mask = blobs(seed, sigma=1.2) > 1
    found = measured(hounsfield(tmp_path / "in", np.where(mask, 50, -500), spacing), tmp_path, "diameters", low=0.0)
    assert (found["long_axis"], found["short_axis"]) == pytest.approx(diameters_of(mask, spacing), rel=1e-12)


@pytest.mark.parametrize("seed", range(7, 10))
def test_the_long_axis_equals_pyradiomics(tmp_path, seed):
    """pyradiomics measures all areas of a slice as one: here it is one area."""
    spacing = (0.9, 1.3, 2.0)
    areas, _ = ndimage.label(blobs(seed, (1, 60, 70))[0] > 0.7)
    mask = areas == np.bincount(areas[areas > 0]).argmax()
    values = np.full((3, 60, 70), -500)
    values[1][mask] = 50
    found = measured(hounsfield(tmp_path / "in", values, spacing), tmp_path, "diameters", low=0.0)
    image, region = (SimpleITK.GetImageFromArray(part) for part in (values, (values > 0).astype(np.uint8)))
    image.SetSpacing(spacing)
    region.SetSpacing(spacing)
    shape = RadiomicsShape(image, region)
    shape.enableFeatureByName("Maximum2DDiameterSlice")
    assert found["long_axis"] == pytest.approx(float(shape.execute()["Maximum2DDiameterSlice"]), rel=1e-9)


# --- PET ---

LOCAL = 'texture = { first_order = true; families = [ "local-intensity" ]; };'


def assert_pet(output, values, mask, spacing):
    """Compares with NumPy, and with the features of the same region."""
    found = {(f["family"] == "quantity", f["name"]): f for f in features(output)}
    ml = mask.sum() * np.prod(spacing) / 1000
    assert found[True, "mtv"]["value"] == pytest.approx(ml, rel=1e-12)
    job = json.loads((output / "job.json").read_text())
    assert found[True, "mtv"]["value"] == pytest.approx(job["segments"][0]["millilitres"], rel=1e-8)
    assert found[True, "tlg"]["value"] == found[True, "mtv"]["value"] * found[False, "mean"]["value"]
    assert found[True, "tlg"]["value"] == pytest.approx(values[mask].sum() * np.prod(spacing) / 1000, rel=1e-10)
    assert found[True, "suvpeak"]["value"] == found[False, "local_intensity_peak"]["value"]
    zs, ys, xs = (np.arange(size) * step for size, step in zip(values.shape, spacing[::-1]))
    highest = []
    for z, y, x in np.argwhere(mask & (values == values[mask].max())):
        away = (zs - zs[z])[:, None, None]**2 + (ys - ys[y])[:, None]**2 + (xs - xs[x])**2
        highest.append(values[away <= (3000 / (4 * np.pi))**(2 / 3)].mean())
    assert found[True, "suvpeak"]["value"] == pytest.approx(max(highest), rel=1e-12)
    units = {name: f["unit"] for (is_quantity, name), f in found.items() if is_quantity}
    assert units == {"mtv": "ml", "tlg": "g/ml{SUVbw}.ml", "suvpeak": "g/ml{SUVbw}", "long_axis": "mm", "short_axis": "mm"}


@needs_shared
@pytest.mark.parametrize("patient", ["STS_001", "STS_002"])
def test_a_lesion_in_suv(tmp_path, patient):
    source = SHARED / "sarcoma" / patient / "PET" / "image"
    done, output = run(source, tmp_path, *PET, low=4.0, extra=f'unit = "suvbw"; results = [ "seg", "sr" ]; {LOCAL}')
    assert done.returncode == 0, done.stdout + done.stderr
    datasets = sorted((pydicom.dcmread(path) for path in source.glob("*.dcm")), key=lambda d: d.ImagePositionPatient[2])
    values = np.stack([float(d.RescaleSlope) * d.pixel_array + float(d.RescaleIntercept) for d in datasets])
    spacing = (*map(float, datasets[0].PixelSpacing[::-1]),
               (datasets[-1].ImagePositionPatient[2] - datasets[0].ImagePositionPatient[2]) / (len(datasets) - 1))
    mask = (values >= 4) & (values <= 5000)
    assert_pet(output, values, mask, spacing)
    found = {f["name"]: f["value"] for f in features(output) if f["family"] == "quantity"}
    assert (found["long_axis"], found["short_axis"]) == pytest.approx(diameters_of(mask, spacing), rel=1e-9)
    for name, value in found.items():
        assert f"{name} {value:.6g} " in done.stdout
    report = report_of(output)
    assert report["mtv"] == (("126032", "DCM"), found["mtv"], "ml", [])
    assert report["tlg"] == (("126033", "DCM"), found["tlg"], "g/ml{SUVbw}.ml", [["370129005", "126410"]])
    assert report["suvpeak"] == (("VJGA", "IBSI"), found["suvpeak"], "g/ml{SUVbw}", [["370129005", "126410"]])
    assert report["long_axis"] == (("103339001", "SCT"), found["long_axis"], "mm", [])
    assert report["short_axis"] == (("103340004", "SCT"), found["short_axis"], "mm", [])
    # The source has no valid Study ID, and a name without carets.
    assert [remark for remark in dciodvfy_remarks(output / "sr.dcm")
            if not re.search("StudyID|PatientName|<99NOCTULE>", remark)] == []


CODES = {("126032", "DCM"): "mtv", ("126033", "DCM"): "tlg", ("VJGA", "IBSI"): "suvpeak", ("laa950", "99NOCTULE"): "laa950",
         ("pd15", "99NOCTULE"): "pd15", ("112058", "DCM"): "agatston", ("103339001", "SCT"): "long_axis",
         ("agatston_any", "99NOCTULE"): "agatston_any_slices", ("103340004", "SCT"): "short_axis"}


def report_of(output):
    """Returns the measurements of the report's only group that are quantities: code, value, unit, method."""
    report = pydicom.dcmread(output / "sr.dcm")
    group, = children(one(report, "CONTAINER", "126010"), "CONTAINER", "125007")
    return {CODES[concept]: (concept, value, unit, settings["codes"])
            for concept, value, unit, settings in measurements_of(group) if concept in CODES}


def test_the_report_of_ct_has_codes_and_method(tmp_path):
    values = np.where(blobs(11) > 1, 250, -980)
    source = hounsfield(tmp_path / "in", values, (0.6, 0.6, 3.0))
    done, output = run(source, tmp_path, *CT, "agatston-any-slices", extra='results = [ "seg", "sr" ];')
    assert done.returncode == 0, done.stdout + done.stderr
    told = {f["name"]: f for f in features(output)}
    report = report_of(output)
    assert {name: (value, unit) for name, (_, value, unit, _) in report.items()} == {
        name: (f["value"], f["unit"]) for name, f in told.items()}
    assert {name: f["unit"] for name, f in told.items()} == {
        "laa950": "%", "pd15": "[hnsf'U]", "agatston": "1", "agatston_any_slices": "1", "long_axis": "mm", "short_axis": "mm"}
    assert {name: codes for name, (_, _, _, codes) in report.items() if codes} == {"agatston": [["370129005", "112055"]]}
    assert told["agatston"]["value"] == told["agatston_any_slices"]["value"] > 0
    assert_no_new_remarks(output / "sr.dcm", source)


def turned(source):
    """Gives the slices of a series an oblique orientation."""
    axes = np.linalg.qr(np.array([[0.9, 0.3, -0.2], [-0.1, 0.8, 0.4], [0.3, -0.2, 1.0]]))[0].T
    axes[2] *= np.linalg.det(axes)
    for path in source.glob("*.dcm"):
        dataset = pydicom.dcmread(path)
        dataset.ImageOrientationPatient = [f"{value:.12f}" for value in axes[:2].ravel()]
        dataset.ImagePositionPatient = [f"{value:.9f}" for value in (-40.5, 12.25, 7.0) + dataset.ImagePositionPatient[2] * axes[2]]
        dataset.save_as(path)


def test_the_ends_of_diameters_are_in_the_root_report(tmp_path):
    """As SCOORD3D, from which the lengths are inferred (TID 1400). The ends are on the outline of an area in one slice."""
    values = np.where(blobs(11) > 1, 250, -980)
    spacing = (0.75, 0.5, 3.0)
    source = hounsfield(tmp_path / "in", values, spacing)
    turned(source)
    done, output = run(source, tmp_path, "diameters", "pd15", low=0.0, extra='results = [ "seg", "sr" ]; sr_class = "comprehensive-3d";')
    assert done.returncode == 0, done.stdout + done.stderr
    told = {f["name"]: f["value"] for f in features(output)}
    assert (told["long_axis"], told["short_axis"]) == pytest.approx(diameters_of(values == 250, spacing), rel=1e-9)
    datasets = sorted((pydicom.dcmread(path) for path in source.glob("*.dcm")), key=lambda d: d.InstanceNumber)
    report = pydicom.dcmread(output / "sr.dcm")
    group, = children(one(report, "CONTAINER", "126010"), "CONTAINER", "125007")
    lines = {}
    for item in children(group, "NUM"):
        paths = children(item, "SCOORD3D")
        if CODES[code_of(item.ConceptNameCodeSequence)[:2]] not in ("long_axis", "short_axis"):
            assert paths == []
            continue
        (path,) = paths
        assert (path.RelationshipType, path.GraphicType, code_of(path.ConceptNameCodeSequence)) == (
            "INFERRED FROM", "POLYLINE", ("121055", "DCM", "Path"))
        assert path.ReferencedFrameOfReferenceUID == datasets[0].FrameOfReferenceUID
        ends = np.array(path.GraphicData, float).reshape(2, 3)
        assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(float(item.MeasuredValueSequence[0].NumericValue), rel=1e-5)
        lines[CODES[code_of(item.ConceptNameCodeSequence)[:2]]] = ends
    assert abs(np.dot(*(ends[1] - ends[0] for ends in lines.values()))) < 1e-3 * told["long_axis"] * told["short_axis"]
    axes = np.array(datasets[0].ImageOrientationPatient, float).reshape(2, 3)
    normal = np.cross(*axes)
    heights = [np.dot(normal, dataset.ImagePositionPatient) for dataset in datasets]
    z = int(np.argmin(np.abs(heights - normal @ lines["long_axis"][0])))
    mask = np.stack([d.pixel_array for d in datasets])[z] == 250 + 1024
    places = {name: (ends - np.array(datasets[z].ImagePositionPatient, float)) @ axes.T / spacing[:2] for name, ends in lines.items()}
    for name, ends in lines.items():
        assert np.abs((ends - np.array(datasets[z].ImagePositionPatient, float)) @ normal).max() < 1e-4, name
    for x, y in places["long_axis"]:  # in the middle of an edge between the area and other voxels
        (near_x, near_y), halves = np.rint([x, y]), np.abs(2 * np.array([x, y]) - np.rint(2 * np.array([x, y])))
        assert halves.max() < 1e-3 and (abs(x - near_x) > 0.4) != (abs(y - near_y) > 0.4)
        sides = [(int(round(y + dy)), int(round(x + dx))) for dy, dx in
                 (((0, -0.5), (0, 0.5)) if abs(x - near_x) > 0.4 else ((-0.5, 0), (0.5, 0)))]
        assert sorted(bool(mask[side]) for side in sides) == [False, True]
    labels, _ = ndimage.label(mask)
    hull_of = None
    for label in range(1, labels.max() + 1):
        rows, columns = np.nonzero(labels == label)
        edges = np.array([(x + dx, y + dy) for x, y in zip(columns, rows) for dx, dy in ((0.5, 0), (-0.5, 0), (0, 0.5), (0, -0.5))])
        hull = ConvexHull(edges * spacing[:2])
        if all(np.abs(hull.points - place * spacing[:2]).sum(axis=1).min() < 1e-3 for place in places["long_axis"]):
            hull_of = hull
    for place in places["short_axis"]:  # on the hull of the same area
        assert abs((hull_of.equations[:, :2] @ (place * spacing[:2]) + hull_of.equations[:, 2]).max()) < 1e-3
    assert_no_new_remarks(output / "sr.dcm", source)
    shown = subprocess.run(["dsrdump", output / "sr.dcm"], capture_output=True, text=True)
    assert shown.returncode == 0 and shown.stderr == "" and shown.stdout.count("SCOORD3D") == 2
    (read,) = highdicom.sr.Comprehensive3DSR.from_dataset(report).content.get_volumetric_roi_measurement_groups()
    assert {m.name.value: m.value for m in read.get_measurements()}["103339001"] == told["long_axis"]


def test_the_ends_of_diameters_in_a_straightened_stack(tmp_path):
    """They are on edges of the voxels of the grid, which NIfTI files have."""
    phantom(tmp_path / "in", "--size", "48x44x20", "--tilt", "15")
    done, output = run(tmp_path / "in", tmp_path, "diameters", low=0.0,
                       extra='results = [ "seg", "sr", "nifti" ]; sr_class = "comprehensive-3d";')
    assert done.returncode == 0, done.stdout + done.stderr
    told = {f["name"]: f["value"] for f in features(output)}
    labels = nibabel.load(output / "labels.nii.gz")
    inside = np.pad(np.asarray(labels.dataobj), 1)[1:, 1:, 1:]  # index -1 is outside
    group, = children(one(pydicom.dcmread(output / "sr.dcm"), "CONTAINER", "126010"), "CONTAINER", "125007")
    for item, name in zip(children(group, "NUM"), ("long_axis", "short_axis"), strict=True):
        ends = np.array(children(item, "SCOORD3D")[0].GraphicData, float).reshape(2, 3)
        assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(told[name], rel=1e-5)
        x, y, z, _ = np.linalg.inv(labels.affine) @ np.vstack([(ends * (-1, -1, 1)).T, np.ones(2)])
        assert np.abs(z - np.rint(z[0])).max() < 1e-4
        for end in range(2 if name == "long_axis" else 0):
            near = [(round(x[end] + dx), round(y[end] + dy), round(z[0])) for dx, dy in ((0.3, 0), (-0.3, 0), (0, 0.3), (0, -0.3))]
            assert {int(inside[voxel]) for voxel in near} == {0, 1}


# --- equal on all backends ---


@needs_emulator
@pytest.mark.parametrize("kind, quantities, options", [
    ("ct-head", CT, dict(low=-980.0, high=1000.0)), ("pet", PET, dict(low=2.0, extra='unit = "suvbw";'))])
def test_the_gpu_gives_the_same_bytes(tmp_path, kind, quantities, options):
    phantom(tmp_path / "in", "--kind", kind, "--size", "48x44x12", "--spacing", "1.5,1.2,3")
    found = []
    for backend, programs in (("cpu", BIN), ("cuda", EMULATED)):
        done, output = run(tmp_path / "in", tmp_path, *quantities, programs=programs, output=backend,
                           root=f'compute = {{ backend = "{backend}"; }};', **options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads((output / "job.json").read_text())["backend"] == backend
        found.append((output / "features.json").read_bytes())
    assert found[0] == found[1] and len(json.loads(found[0])) == 5
    assert all(feature["value"] is not None for feature in json.loads(found[0]))


# --- refusals ---


@pytest.mark.parametrize("options, words", [
    (dict(quantities=["mtv"]), '"mtv" requires an SUV: set unit = "suvbw" of the pipeline, or another SUV'),
    (dict(quantities=["suvpeak", "tlg"]), '"tlg" requires an SUV'),
    (dict(quantities=["laa950"], extra='unit = "suvbw";'), '"laa950" requires values in HU'),
    (dict(quantities=["agatston"], extra='unit = "suvlbm";'), '"agatston" requires values in HU'),
    (dict(quantities=["sul"]), 'quantities[0]: must be "mtv", "tlg", "suvpeak", "laa950"'),
    (dict(quantities=["diameters"], segment="hidden = true;"), "a hidden segment is not measured"),
])
def test_check_config_refuses_by_name(tmp_path, options, words):
    config = configuration(tmp_path, **options)
    done = subprocess.run([BIN / "noctule", "--config", config, "check-config"], text=True, capture_output=True)
    assert done.returncode != 0 and words in done.stdout + done.stderr


def refused(source, folder, *quantities, **options):
    done, output = run(source, folder, *quantities, **options)
    assert done.returncode != 0 and not (output / "features.json").exists()
    return done.stdout + done.stderr


@pytest.mark.parametrize("word", ["laa950", "pd15", "agatston", "agatston-any-slices"])
def test_mr_has_no_hounsfield_units(tmp_path, word):
    phantom(tmp_path / "in", "--size", "40x40x6", "--kind", "mr-brain")
    words = refused(tmp_path / "in", tmp_path, word)
    assert "QUANTITY_UNIT" in words and f'"{word}" needs values in HU, and the unit of the images is not known' in words


def test_pet_has_no_hounsfield_units(tmp_path):
    source = series(tmp_path / "in", np.arange(3 * 400, dtype=np.uint16).reshape(3, 20, 20), RescaleType="BQML")
    words = refused(source, tmp_path, "pd15")
    assert "QUANTITY_UNIT" in words and "Bq/ml" in words


@pytest.mark.parametrize("thickness, distance, fits", [
    (3.0, 3.0, True), (2.5, 2.5, True), (2.5, 3.0, True), (3.02, 3.02, True), (2.4, 2.4, False), (3.1, 3.1, False),
    (5.0, 5.0, False), (1.0, 1.0, False), (3.0, 1.5, False), (1.5, 3.0, False), (None, 3.0, False)])
def test_the_agatston_score_needs_thin_slices(tmp_path, thickness, distance, fits):
    values = np.where(blobs(13) > 1, 250, 0)
    source = hounsfield(tmp_path / "in", values, (0.5, 0.5, distance), SliceThickness=thickness)
    if fits:
        assert measured(source, tmp_path, "agatston")["agatston"] > 0
        return
    words = refused(source, tmp_path, "agatston")
    assert "QUANTITY_SLICES" in words and '"agatston" needs slices of 2.5 to 3 mm' in words
    expected = agatston_of(values, values > -5000, 0.25)
    found = measured(source, tmp_path, "agatston-any-slices", output="any")
    assert found == {"agatston_any_slices": pytest.approx(expected, rel=1e-12)}


def test_the_agatston_score_needs_original_slices(tmp_path):
    values = np.where(blobs(13) > 1, 250, 0)
    source = hounsfield(tmp_path / "in", values, (0.5, 0.5, 2.75))
    for z, path in enumerate(sorted(source.glob("*.dcm"))):
        dataset = pydicom.dcmread(path)
        dataset.ImagePositionPatient[1] = -30 + 0.6 * z
        dataset.save_as(path)
    words = refused(source, tmp_path, "agatston")
    assert "QUANTITY_SLICES" in words and "needs original slices, and the stack was straightened" in words
    assert measured(source, tmp_path, "diameters", low=100.0, output="any")["long_axis"] > 0


# --- lesions ---


def test_each_lesion_has_its_own_diameters(tmp_path):
    """One configuration for patients with any number of lesions, also with none and without an object."""
    stored = np.full((6, 60, 60), 1000, np.uint16) + np.arange(60, dtype=np.uint16)
    source = series(tmp_path / "in", stored, (1.0, 1.0, 3.0), 1, -1024)
    planes = Planes(sorted(source.glob("*.dcm")))
    rois = {"organ": [("CLOSED_PLANAR", ring(planes, z, (30, 40), (20, 10), 60)) for z in range(6)]}
    for number in (1, 2):
        rois[f"lesion {number}"] = [("CLOSED_PLANAR", ring(planes, z, (18 * number, 12), (3, 4 + number), 30)) for z in (2, 3)]
    path = structure_set(tmp_path, planes, rois)
    config = tmp_path / "each.conf"
    config.write_text(f'''root = "{tmp_path}/root"; pipelines = ( {{ name = "p"; by_hand = true;
        segments = ( {{ label = "Lesions"; method = "object"; object = {{ kind = "rtstruct"; roi = "lesion*"; each = true;
        optional = true; }}; quantities = [ "diameters", "agatston" ]; {TYPE} }}, {{ label = "All"; method = "range";
        range = [ -5000.0, 5000.0 ]; {TYPE} }} ); }} );''')

    def found(output, *given):
        done = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "p", "-o", tmp_path / output, *given, source],
                              text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return {(f["segment_number"], f["label"], f["name"]): f["value"] for f in features(tmp_path / output)}

    values = found("with", "--object", path)
    seg = pydicom.dcmread(tmp_path / "with" / "seg.dcm")
    masks = seg_masks(tmp_path / "with" / "seg.dcm", planes.files)
    assert [item.SegmentLabel for item in seg.SegmentSequence] == ["lesion 1", "lesion 2", "All"]
    assert {key[:2] for key in values} == {(1, "lesion 1"), (2, "lesion 2")} and len(values) == 6
    for number in (1, 2):
        label = f"lesion {number}"
        assert (values[number, label, "long_axis"], values[number, label, "short_axis"]) == pytest.approx(
            diameters_of(masks[number - 1], (1, 1)), rel=1e-12)
    assert found("without") == {}


# --- the daemon ---


def test_database_cohort_and_page_have_the_values(daemon, tmp_path):
    """The pipeline has no texture: v_segments still has volume, mean and box."""
    settings = SETTINGS.format(root=tmp_path / "daemon0" / "root", after="keep", quiet=0.5, attempts=1, pipeline_extra="")
    site = Site(daemon, settings=settings.replace("category =", 'quantities = [ "laa950", "pd15", "diameters" ]; category ='))
    site.start()
    d = site.daemon
    drop(phantom(tmp_path / "series", "--size", "48x40x8"), d.inbox)
    d.wait_jobs()
    told = json.loads((d.root / "outbox" / "1" / "features.json").read_text())
    assert [f["name"] for f in told] == ["laa950", "pd15", "long_axis", "short_axis"]
    rows = d.query("SELECT name, value, unit, family FROM v_features WHERE job = 1 ORDER BY place")
    assert [tuple(row) for row in rows] == [(f["name"], f["value"], f["unit"], "quantity") for f in told]
    row, = d.query("SELECT * FROM v_segments")
    assert row["volume_ml"] > 0 and row["mean"] is not None and row["width_mm"] > 0
    assert row["last_column"] - row["first_column"] > 0
    table = run_program("noctule", "--config", d.config, "cohort", "--pipeline", "head-ct").stdout
    header, line = csv.reader(io.StringIO(table))
    cells = dict(zip(header, line))
    assert {name: float(cells[f"quantity.{name}"]) for name in ("laa950", "pd15", "long_axis", "short_axis")} == {
        f["name"]: f["value"] for f in told}
    part, = re.findall(r"<h2>Quantities</h2>(.*?)</section>", site.text("job?id=1"), re.S)
    shown = [re.findall(r"<td[^>]*>(.*?)</td>", row.replace("<bdi>", "").replace("</bdi>", ""), re.S)
             for row in re.findall(r"<tr[^>]*>(.*?)</tr>", part, re.S)]
    assert [row[1:5] for row in shown if row] == [
        ["Brain", f["meaning"], f"{f['value']:.6g}", f["unit"].replace("[hnsf'U]", "HU")] for f in told]

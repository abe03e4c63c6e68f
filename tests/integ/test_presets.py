"""The shipped presets: correct on phantoms with a known truth, held for review when they leak, and as measured on
real series. docs/presets.md has the numbers that are bounds here. NOCTULE_WRITE_PRESETS=1 writes its list of the
presets."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pydicom
import pytest
import scipy.ndimage
from conftest import BIN, SHARED, SOURCE, needs_shared, phantom, read_truth, run_program
from test_contours import Planes, nifti_mask, ring, structure_set
from test_run import exact_values, peer, seg_masks

sys.path.insert(0, str(SOURCE / "tests" / "tools"))
import recipes  # noqa: E402

OK, REFUSED, EMPTY, REVIEW = 0, 1, 7, 8
PRESETS = sorted(path.stem for path in (SOURCE / "config" / "presets").glob("*.conf"))


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """A pipeline per preset, with the preset's name, found as an installed preset and not next to this file. Presets
    that are not validated are accepted, so that a test sees their own expectations."""
    path = tmp_path_factory.mktemp("config") / "noctule.conf"
    pipelines = ",\n".join(f'{{ name = "{name}"; unreviewed = true;\n@include "presets/{name}.conf"\n}}' for name in PRESETS)
    path.write_text(f'root = "{path.parent}/root";\npipelines = (\n{pipelines} );\n')
    return path


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Returns a phantom's folder and its truth, generated once: series("chest") or series("head-tilted", "--tilt",
    "0")."""
    drawn = {}

    def draw(kind, *options):
        if (kind, *options) not in drawn:
            folder = tmp_path_factory.mktemp(kind)
            size = () if "--size" in options else ("--size", "200x200x100")
            phantom(folder / "in", "--kind", kind, *size, *options, "--truth", folder / "truth.seg.nrrd")
            drawn[(kind, *options)] = folder / "in", read_truth(folder / "truth.seg.nrrd")
        return drawn[(kind, *options)]

    return draw


def run(config, preset, output, folder, status=OK, drawn=()):
    """Returns the report of the run. `drawn`: annotation objects added to the images."""
    objects = [part for path in drawn for part in ("--object", path)]
    result = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", preset, "--output", output, *objects,
                             folder], text=True, capture_output=True, timeout=300)
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def found(output, folder):
    """Returns the masks of the segments by label, and the series' values."""
    datasets, _ = peer.read_series(folder)
    labels = [s.SegmentLabel for s in pydicom.dcmread(output / "seg.dcm", stop_before_pixels=True).SegmentSequence]
    return dict(zip(labels, seg_masks(output / "seg.dcm", datasets))), exact_values(datasets)


def voxel_ml(folder):
    """For stacks that are neither tilted nor uneven."""
    first, second = (pydicom.dcmread(path) for path in sorted(folder.glob("*.dcm"))[:2])
    step = np.array(second.ImagePositionPatient, float) - np.array(first.ImagePositionPatient, float)
    return float(first.PixelSpacing[0] * first.PixelSpacing[1] * np.linalg.norm(step)) / 1000


def dice(a, b):
    return 2 * (a & b).sum() / (a.sum() + b.sum())


def union(truth, *names):
    return np.logical_or.reduce([truth[name] for name in names])


def filled(mask):
    return np.stack([scipy.ndimage.binary_fill_holes(plane) for plane in mask])


# ------------------------------------------------------------------------------- not validated


@pytest.mark.parametrize("preset, kind", [
    ("head-ct", "ct-head"), ("lung", "chest"), ("emphysema", "chest"), ("fat", "body"), ("body", "body"), ("bone", "body")])
def test_presets_without_validation_end_in_review(config, series, tmp_path, preset, kind):
    """Also on sites that deliver unexpected results. Only `unreviewed` accepts such presets."""
    held = tmp_path / "noctule.conf"
    held.write_text(f'root = "{tmp_path}/root"; pipelines = ( {{ name = "{preset}"; review = "deliver";\n'
                    f'@include "presets/{preset}.conf"\n}} );')
    folder, _ = series(kind)
    assert "not validated at this site" in run(held, preset, tmp_path / "held", folder, status=REVIEW)
    assert "not validated" not in run(config, preset, tmp_path / "out", folder)
    for path, words in ((held, "each result is held for REVIEW until"), (config, "delivered without REVIEW")):
        checked = subprocess.run([BIN / "noctule", "--config", path, "check-config"], text=True, capture_output=True, check=True)
        assert words in checked.stdout


# ----------------------------------------------------------- against NumPy, and on whole folders


def assert_equals_recipe(config, preset, output, folder, status=OK):
    """Compares all segments with the definitions of noctule.conf(5), voxel for voxel."""
    run(config, preset, output, folder, status)
    datasets, _ = peer.read_series(folder)
    labels = [s.SegmentLabel for s in pydicom.dcmread(output / "seg.dcm", stop_before_pixels=True).SegmentSequence]
    pipeline = recipes.Pipeline(recipes.preset(SOURCE / "config" / "presets" / f"{preset}.conf"), recipes.volume_of(datasets))
    for label, mask in zip(labels, seg_masks(output / "seg.dcm", datasets)):
        assert np.array_equal(mask, pipeline[label]), (label, mask.sum(), (mask ^ pipeline[label]).sum())
    return pipeline


@pytest.mark.parametrize("preset,kind,options", [
    ("head-ct", "ct-head", ()), ("lung", "chest", ("--size", "151x160x77")), ("emphysema", "chest", ()), ("fat", "body", ()),
    ("body", "chest", ("--size", "151x160x77")), ("bone", "body", ())])
def test_a_preset_equals_its_recipe(config, series, tmp_path, preset, kind, options):
    assert_equals_recipe(config, preset, tmp_path / "out", series(kind, *options)[0])


@needs_shared
@pytest.mark.parametrize("preset,name,status", [
    ("lung", "chest/planning/dicom", REVIEW), ("fat", "abdomen/low-dose/dicom", OK)])
def test_a_preset_equals_its_recipe_on_a_patient(config, tmp_path, preset, name, status):
    assert_equals_recipe(config, preset, tmp_path / "out", SHARED / name, status)


def test_a_preset_runs_on_all_series_of_a_folder(series, tmp_path):
    """A copy of a preset with other limits, as a site makes it."""
    for kind in ("ct-head", "body"):
        (tmp_path / "in" / kind).parent.mkdir(exist_ok=True)
        (tmp_path / "in" / kind).symlink_to(series(kind)[0])
    result = run_program("noctule", "presets", "head-ct", "--test", tmp_path / "in", "--output", tmp_path / "out", check=False)
    rows = [line for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert result.returncode == REVIEW and sorted(row.split()[0] for row in rows) == ["2", "DONE", "REVIEW"], result.stdout
    assert re.search(r"^DONE .*ct-head/\S+: Intracranial 1\d\d\d ml;$", result.stdout, re.M)
    assert re.search(r"^REVIEW .*body/\S+: Intracranial .*\n( +.*\n)* +Inside of the skull: ", result.stdout, re.M)
    assert rows[-1] == "2 stacks: 1 DONE, 1 REVIEW, 0 EMPTY, 0 without a result"
    shutil.copytree(SOURCE / "config" / "presets", tmp_path / "own")
    own = tmp_path / "own" / "head-ct.conf"
    own.write_text(own.read_text().replace("850.0, 2100.0", "850.0, 900.0"))
    result = run_program("noctule", "presets", own, "--test", tmp_path / "in" / "ct-head", "--output", tmp_path / "own-out", check=False)
    assert result.returncode == REVIEW and "expected 850 to 900 ml" in result.stdout
    for wrong in (["head-ct", "--test", tmp_path], ["head-ct", "--output", tmp_path], ["--test", tmp_path, "--output", tmp_path]):
        assert run_program("noctule", "presets", *wrong, check=False).returncode == 2


# ---------------------------------------------------------------- on phantoms, against their truth


@pytest.mark.parametrize("kind", ["chest", "body"])
def test_body(config, series, tmp_path, kind):
    folder, truth = series(kind)
    run(config, "body", tmp_path / "out", folder)
    body = found(tmp_path / "out", folder)[0]["Body"]
    expected = filled(union(truth, *(set(truth) - {"table"})))
    parts, _ = scipy.ndimage.label(expected)
    sizes = np.bincount(parts.ravel()) * (np.arange(parts.max() + 1) > 0)
    expected = (sizes >= 0.1 * sizes.max())[parts]  # an arm that touches no other part has less
    assert dice(body, expected) > 0.995
    assert (body & truth["table"]).sum() < 0.2 * truth["table"].sum(), "but for where it touches"
    assert (expected & ~body).sum() < 0.002 * expected.sum()


def lungs_of(truth):
    return union(truth, "right lung", "left lung", "emphysema", "vessel")


def test_lung(config, series, tmp_path):
    folder, truth = series("chest")
    run(config, "lung", tmp_path / "out", folder)
    segments, values = found(tmp_path / "out", folder)
    assert list(segments) == ["Aerated lungs", "Right lung", "Left lung"]
    lungs, expected = segments["Aerated lungs"], lungs_of(truth)
    assert dice(lungs, expected) > 0.99 and abs(lungs.sum() / expected.sum() - 1) < 0.01
    assert np.array_equal(lungs, segments["Right lung"] | segments["Left lung"])
    assert not (segments["Right lung"] & (truth["left lung"] | segments["Left lung"])).any()
    assert not (segments["Left lung"] & truth["right lung"]).any()
    assert (lungs & truth["airway"]).sum() < 0.32 * truth["airway"].sum(), "what lies within the lungs"
    assert not (lungs & truth["heart"]).sum() > 0.001 * truth["heart"].sum()
    assert (lungs & truth["vessel"]).sum() > 0.85 * truth["vessel"].sum()


def test_lung_with_an_open_chest_is_held(config, series, tmp_path):
    """A wound joins a lung with the air outside. Its slices are missing."""
    folder, truth = series("chest-open")
    preset_of = run(config, "lung", tmp_path / "out", folder, REVIEW)
    assert "Air of the right lung: its area jumps by 99 %" in preset_of
    lungs = found(tmp_path / "out", folder)[0]["Aerated lungs"]
    assert lungs.sum() < 0.98 * lungs_of(truth).sum()


def test_lung_in_an_abdomen_is_empty(config, series, tmp_path):
    folder, _ = series("body")
    assert run(config, "lung", tmp_path / "out", folder, REVIEW)


def test_emphysema(config, series, tmp_path):
    folder, truth = series("chest")
    run(config, "emphysema", tmp_path / "out", folder)
    segments, values = found(tmp_path / "out", folder)
    assert list(segments) == ["Aerated lungs", "Right lung", "Left lung", "Emphysema"]
    assert dice(segments["Aerated lungs"], lungs_of(truth)) > 0.99
    assert np.array_equal(segments["Emphysema"], segments["Aerated lungs"] & (values >= -1100) & (values <= -950))
    expected = truth["emphysema"] & (values <= -950)
    assert (expected & ~segments["Emphysema"]).sum() < 0.01 * expected.sum()
    assert (segments["Emphysema"] & ~truth["emphysema"] & ~truth["airway"]).sum() < 0.02 * segments["Emphysema"].sum()


def test_emphysema_of_thick_slices_is_held(config, series, tmp_path):
    folder, _ = series("chest", "--size", "128x128x60")
    assert "slices of 5 mm, expected 0 to 3 mm" in run(config, "emphysema", tmp_path / "out", folder, REVIEW)


def edited(folder, output, **attributes):
    """Returns a copy of a series with these attributes in each image."""
    output.mkdir()
    for path in folder.glob("*.dcm"):
        dataset = pydicom.dcmread(path)
        for keyword, value in attributes.items():
            setattr(dataset, keyword, value)
        dataset.save_as(output / path.name)
    return output


def test_emphysema_of_thick_overlapping_slices_is_held(config, series, tmp_path):
    folder, _ = series("chest")
    thick = edited(folder, tmp_path / "thick", SliceThickness="5")
    assert "slices of 5 mm, expected 0 to 3 mm" in run(config, "emphysema", tmp_path / "out", thick, REVIEW)


@pytest.mark.parametrize("kind", ["chest", "body"])
def test_bone(config, series, tmp_path, kind):
    """With pixels of 0.8 to 0.9 mm, blurred borders of thin bone are above 150 HU, so the volume is too large."""
    folder, truth = series(kind, "--size", "512x512x30")
    run(config, "bone", tmp_path / "out", folder)
    bone = found(tmp_path / "out", folder)[0]["Bone"]
    body = filled(union(truth, *(set(truth) - {"table"})))
    parts, _ = scipy.ndimage.label(body)
    trunk = parts == np.bincount(parts[parts > 0]).argmax()  # excludes arms that touch no other part
    expected = union(truth, "bone", "marrow") & trunk
    assert (bone & truth["bone"] & trunk).sum() > 0.99 * (truth["bone"] & trunk).sum()
    assert 1 < bone.sum() / expected.sum() < 1.15
    assert dice(bone, expected) > 0.925


def test_bone_with_an_agent_in_the_headers_is_held(config, series, tmp_path):
    folder, _ = series("body", "--size", "512x512x30")
    named = edited(folder, tmp_path / "named", ContrastBolusAgent="Iomeron")
    assert "Bone: the images name a contrast agent, expected none" in run(config, "bone", tmp_path / "out", named, REVIEW)
    sequence = edited(folder, tmp_path / "sequence", ContrastBolusAgentSequence=[pydicom.Dataset()])
    assert "contrast agent" in run(config, "bone", tmp_path / "again", sequence, REVIEW)


def test_bone_next_to_metal_is_held(config, series, tmp_path):
    """A screw of two voxels changes volume and mean too little for a check of these alone."""
    folder, truth = series("body", "--size", "512x512x30")
    metal = edited(folder, tmp_path / "metal")
    z, y, x = min(np.argwhere(truth["marrow"]).tolist(), key=lambda place: abs(place[2] - 256))  # in the spine
    path = sorted(metal.glob("*.dcm"), key=lambda path: pydicom.dcmread(path).ImagePositionPatient[2])[z]
    dataset = pydicom.dcmread(path)
    pixels = dataset.pixel_array.copy()
    pixels[y, x:x + 2] = (3071 - dataset.RescaleIntercept) / dataset.RescaleSlope
    dataset.PixelData = pixels.tobytes()
    dataset.save_as(path)
    preset_of = run(config, "bone", tmp_path / "out", metal, REVIEW)
    assert preset_of.count("not as expected") == 1 and "Body without metal: share of Body in the images 0.99999" in preset_of


def test_fat(config, series, tmp_path):
    folder, truth = series("body", "--size", "512x512x30")
    run(config, "fat", tmp_path / "out", folder)
    segments, _ = found(tmp_path / "out", folder)
    assert list(segments) == ["Subcutaneous fat", "Inner fat"]
    inner, outer = segments["Inner fat"], segments["Subcutaneous fat"]
    assert dice(inner, truth["visceral fat"]) > 0.985
    x = np.arange(512)[None, None, :]
    trunk = (x > 512 * (0.5 - 155 / 480)) & (x < 512 * (0.5 + 150 / 480))  # without arms, of which one touches
    assert dice(outer & trunk, truth["subcutaneous fat"] & trunk) > 0.975
    assert (outer & truth["visceral fat"]).sum() < 0.002 * inner.sum()


def test_fat_cut_by_the_field_of_view_is_held(config, series, tmp_path):
    folder, _ = series("body-cut")
    assert "Abdomen: cut off at the left" in run(config, "fat", tmp_path / "out", folder, REVIEW)


@pytest.mark.parametrize("radius,status", [(0.49, OK), (0.34, REVIEW)], ids=["around", "cutting"])
def test_fat_in_a_round_field_of_view(config, series, tmp_path, radius, status):
    """Padding outside a circle, and a trunk that ends there and reaches no column of the edge."""
    folder = edited(series("body", "--size", "256x256x30")[0], tmp_path / "round")
    y, x = np.mgrid[:256, :256] / 256 - 0.5
    for path in folder.glob("*.dcm"):
        dataset = pydicom.dcmread(path)
        pixels = dataset.pixel_array.copy()
        pixels[x * x + y * y > radius * radius] = 4095
        dataset.PixelData = pixels.tobytes()
        dataset.add_new("PixelPaddingValue", "US", 4095)
        dataset.save_as(path)
    preset_of = run(config, "fat", tmp_path / "out", folder, status)
    assert status == OK or "Cut by the field of view" in preset_of, preset_of


@pytest.mark.parametrize("kind", ["ct-head", "head-tilted"])
def test_head_ct(config, series, tmp_path, kind):
    options = ("--tilt", "0") if kind == "head-tilted" else ()
    folder, truth = series(kind, *options)
    run(config, "head-ct", tmp_path / "out", folder)
    head = found(tmp_path / "out", folder)[0]["Intracranial"]
    expected = union(truth, *({"grey matter", "white matter", "ventricle", "cord"} & set(truth)))
    assert dice(head, expected) > 0.99
    assert (head & truth["scalp"]).sum() < 0.001 * head.sum()


def test_head_ct_of_another_part_is_held(config, series, tmp_path):
    folder, _ = series("body")
    assert "Intracranial" in run(config, "head-ct", tmp_path / "out", folder, REVIEW)


# The phantom on which each is correct, except for its values.
OF_HOUNSFIELD_UNITS = {"body": "chest", "lung": "chest", "emphysema": "chest", "bone": "body", "fat": "body", "head-ct": "ct-head"}


@pytest.mark.parametrize("preset", sorted(OF_HOUNSFIELD_UNITS))
@pytest.mark.parametrize("term,words", [("MGML", "in mg/ml"), ("EDW", "of no known unit")])
def test_a_map_of_ct_in_other_units_is_held(config, series, tmp_path, preset, term, words):
    """As dual-energy scanners make them: iodine, electron density. Their modality is CT too."""
    folder, _ = series(OF_HOUNSFIELD_UNITS[preset])
    preset_of = run(config, preset, tmp_path / "out", edited(folder, tmp_path / "map", RescaleType=term), REVIEW)
    assert f"the images' values are {words}, expected in HU" in preset_of


def test_body_of_an_mr_is_held(config, tmp_path):
    phantom(tmp_path / "in", "--kind", "mr-brain", "--size", "128x128x64")
    assert "of no known unit, expected in HU" in run(config, "body", tmp_path / "out", tmp_path / "in", REVIEW)


ANGIOGRAPHY = (320, 320, 240)  # mm; the phantom's kinds draw from its middle


def draw_seed(folder, tmp_path, at, radius=5):
    """An RTSTRUCT with one region: a disc around a point of the phantom, in mm, on three slices."""
    planes = Planes(sorted(folder.glob("*.dcm")))
    size = planes.files[0].Columns, planes.files[0].Rows, len(planes.files)
    x, y, z = ((place / extent + 0.5) * count - 0.5 for place, extent, count in zip(at, ANGIOGRAPHY, size))
    reach = radius * size[0] / ANGIOGRAPHY[0]
    rings = [("CLOSED_PLANAR", ring(planes, round(z) + step, (x, y), (reach, reach), 24)) for step in (-1, 0, 1)]
    return structure_set(tmp_path, planes, {"Vessel seed": rings})


def vessels(config, series, tmp_path, kind="angiography", at=(6, 17, 0), status=OK, radius=5):
    folder, truth = series(kind, "--size", "256x256x160")
    preset_of = run(config, "vessels", tmp_path / "out", folder, status, [draw_seed(folder, tmp_path, at, radius)])
    return found(tmp_path / "out", folder)[0]["Vessels"], truth, preset_of


@pytest.mark.parametrize("radius", [3, 12], ids=["within", "beyond its wall"])
@pytest.mark.parametrize("kind,at", [("angiography", (6, 17, 0)), ("angiography-touching", (6, 25, 0)),
                                     ("angiography", (6, 17, 80))], ids=["", "touching", "higher"])
def test_vessels(config, series, tmp_path, kind, at, radius):
    tree, truth, _ = vessels(config, series, tmp_path, kind, at, radius=radius)
    assert dice(tree, truth["artery"]) > 0.945
    assert (tree & truth["artery"]).sum() > 0.9 * truth["artery"].sum(), "the thinnest branches"
    assert (tree & union(truth, "bone", "marrow", "kidney", "heart")).sum() < 0.01 * tree.sum()


@pytest.mark.parametrize("threshold,expectations", [(0.55, ["share of the box"]), (0.5, ["mean", "share of the box"]),
                                                    (0.4, ["mean", "share of the box", "Slender part"])])
def test_leaking_vessels_are_held(series, tmp_path, threshold, expectations):
    text = (SOURCE / "config" / "presets" / "vessels.conf").read_text()
    config = tmp_path / "noctule.conf"
    leaky = text.replace("threshold = 0.6", f"threshold = {threshold}")
    assert leaky != text
    config.write_text(f'root = "{tmp_path}/root"; pipelines = ( {{ name = "vessels"; {leaky} }} );')
    tree, truth, preset_of = vessels(config, series, tmp_path, status=REVIEW)
    assert (tree & truth["kidney"]).sum() > 0.25 * tree.sum()
    assert all(expectation in preset_of for expectation in expectations), preset_of


@pytest.mark.parametrize("at", [(18, 52, 10), (0, 52, 10)], ids=["bone", "marrow"])
def test_vessels_from_elsewhere_are_held(config, series, tmp_path, at):
    """The seed lies on bright voxels outside any vessel."""
    _, _, preset_of = vessels(config, series, tmp_path, at=at, status=REVIEW, radius=3)
    assert "share of the box" in preset_of


@pytest.mark.parametrize("at", [(100, 0, 0), (62, 34, -5)], ids=["fat", "kidney"])
def test_vessels_from_a_dark_seed_are_refused(config, series, tmp_path, at):
    folder, _ = series("angiography", "--size", "256x256x160")
    seed = draw_seed(folder, tmp_path, at, 3)
    assert 'segment "Drawn", which segment "Vessels" starts from, has no voxel' in run(config, "vessels", tmp_path / "out", folder, 1, [seed])


@pytest.fixture(params=["GML", "BQML"])
def suv_series(request, tmp_path):
    """The phantom of a PET, in SUV and in Bq/ml: 20000, 12000 and 2000 Bq/ml are SUV 5.9, 3.6 and 0.6."""
    phantom(tmp_path / "pet", "--kind", "pet", "--size", "64x64x40", "--truth", tmp_path / "pet.nrrd")
    factor = 75000 / (370e6 * 2 ** (-3600 / 6586.2))
    for path in (tmp_path / "pet").glob("*.dcm") if request.param == "GML" else ():
        dataset = pydicom.dcmread(path)
        dataset.Units, dataset.RescaleSlope = "GML", f"{dataset.RescaleSlope * factor:.10g}"
        dataset.save_as(path)
    return tmp_path / "pet", read_truth(tmp_path / "pet.nrrd")


def test_pet_uptake(config, suv_series, tmp_path):
    folder, truth = suv_series
    run(config, "pet-uptake", tmp_path / "out", folder)
    assert np.array_equal(found(tmp_path / "out", folder)[0]["Uptake"], truth["hotter spot"])


def test_the_hottest_uptake(config, suv_series, tmp_path):
    folder, truth = suv_series
    run(config, "pet-hottest", tmp_path / "out", folder)
    assert np.array_equal(found(tmp_path / "out", folder)[0]["Uptake"], truth["hotter spot"])


@pytest.mark.parametrize("preset", ["pet-uptake", "pet-hottest"])
def test_pet_uptake_in_becquerels(config, tmp_path, preset):
    """The factor is 75 kg / (370 MBq * 2^(-3600 s / 6586.2 s))."""
    phantom(tmp_path / "in", "--kind", "pet", "--size", "64x64x40", "--truth", tmp_path / "truth.nrrd")
    factor = 75000 / (370e6 * 2 ** (-3600 / 6586.2))
    assert f"values in SUVbw: factor {factor:.6g}" in run(config, preset, tmp_path / "out", tmp_path / "in")
    mask = found(tmp_path / "out", tmp_path / "in")[0]["Uptake"]
    assert np.array_equal(mask, read_truth(tmp_path / "truth.nrrd")["hotter spot"])
    assert round(mask.sum() * voxel_ml(tmp_path / "in"), 1) == 29.8


def draw_lesion(folder, tmp_path, x, y, radius, part=0.15):
    """An RTSTRUCT with one region: circles on some slices around the middle, in fractions of the image."""
    planes = Planes(sorted(folder.glob("*.dcm")))
    slices, rows, columns = planes.shape
    rings = [("CLOSED_PLANAR", ring(planes, z, (x * columns - 0.5, y * rows - 0.5), (radius * columns, radius * rows), 60))
             for z in range(round((0.5 - part) * slices), round((0.5 + part) * slices))]
    return structure_set(tmp_path, planes, {"Lesion 1": rings})


@pytest.mark.parametrize("at,spot", [((0.45, 0.45, 0.11), "hotter spot"), ((0.64, 0.56, 0.09, 0.22), "hot spot")],
                         ids=["the hottest", "another"])
def test_a_lesion_within_an_annotated_region(config, suv_series, tmp_path, at, spot):
    folder, truth = suv_series
    run(config, "pet-lesion", tmp_path / "out", folder, OK, [draw_lesion(folder, tmp_path, *at)])
    assert np.array_equal(found(tmp_path / "out", folder)[0]["Lesion"], truth[spot])


@pytest.mark.parametrize("at,words", [((0.57, 0.5, 0.09), "Hottest in the inner part: the segment is empty"),
                                      ((0.45, 0.45, 0.05, 0.06), "Lesion: share of Drawn 1, expected 0 to 0.8")],
                         ids=["beside it", "within it"])
def test_a_badly_annotated_lesion_is_held(config, suv_series, tmp_path, at, words):
    assert words in run(config, "pet-lesion", tmp_path / "out", suv_series[0], REVIEW,
                        [draw_lesion(suv_series[0], tmp_path, *at)])


@pytest.mark.parametrize("preset", ["pet-uptake", "pet-hottest"])
def test_pet_in_other_units_is_refused(config, suv_series, tmp_path, preset):
    """Values within the range of SUV."""
    counts = edited(suv_series[0], tmp_path / "counts", Units="CNTS")
    assert "SUV_UNITS_UNKNOWN: values in CNTS" in run(config, preset, tmp_path / "out", counts, REFUSED)


@pytest.mark.parametrize("preset", ["pet-uptake", "pet-hottest"])
def test_pet_of_an_implausible_weight_is_held(config, tmp_path, preset):
    phantom(tmp_path / "in", "--kind", "pet", "--size", "64x64x40")
    heavy = edited(tmp_path / "in", tmp_path / "heavy", PatientWeight="75000")
    assert "Patient's Weight 75000 kg, expected 1 to 300" in run(config, preset, tmp_path / "out", heavy, REVIEW)


# ------------------------------------------------------------------------------- on real series


def volumes(config, preset, output, folder, status=OK):
    run(config, preset, output, folder, status)
    masks, values = found(output, folder)
    return {label: (mask.sum() * voxel_ml(folder), mask, values) for label, mask in masks.items()}


THIGH = SHARED / "sarcoma" / "STS_001" / "CT" / "image"
PELVIS = SHARED / "sarcoma" / "STS_002" / "CT" / "image"
CHEST = SHARED / "ibsi" / "ibsi_1_ct_radiomics_phantom" / "dicom" / "image"


@needs_shared
@pytest.mark.parametrize("folder,ml,status", [(THIGH, 5416, REVIEW), (PELVIS, 2106, REVIEW), (CHEST, 4602, REVIEW)],
                         ids=["thigh", "pelvis", "chest"])
def test_body_of_a_patient(config, tmp_path, folder, ml, status):
    """They are cropped: the first at its sides, the others to less than a body."""
    found_ml, body, values = volumes(config, "body", tmp_path / "out", folder, status)["Body"]
    assert abs(found_ml - ml) < 0.03 * ml
    assert values[body].mean() > -50, "neither table nor air around it"


@needs_shared
@pytest.mark.parametrize("folder,ml,status", [(THIGH, 270, OK), (PELVIS, 137, REVIEW)], ids=["thigh", "pelvis"])
def test_bone_of_a_patient(config, tmp_path, folder, ml, status):
    """The latter is cropped to fat and bone: soft tissue has no peak of its own."""
    found_ml, _, _ = volumes(config, "bone", tmp_path / "out", folder, status)["Bone"]
    assert abs(found_ml - ml) < 0.03 * ml


@needs_shared
def test_bone_with_contrast_medium_is_held(config, tmp_path):
    """Heart and aorta are above 226 HU in it, and the mean detects this."""
    assert "mean" in run(config, "bone", tmp_path / "out", CHEST, REVIEW)


@needs_shared
def test_fat_of_a_thigh_is_held(config, tmp_path):
    """The field of view cuts the skin."""
    assert "Abdomen: cut off at" in run(config, "fat", tmp_path / "out", THIGH, REVIEW)


@needs_shared
def test_a_lung_cut_by_the_field_of_view_is_held(config, tmp_path):
    run(config, "lung", tmp_path / "out", CHEST, REVIEW)


@needs_shared
def test_a_tilted_head_of_a_patient(config, tmp_path):
    """Straightened. Above the base the skull is a ring, whose inner border lies at half of the value of bone. One gap
    between its slices is 7 mm."""
    folder = SHARED / "ct-head-tilted"
    text = run(config, "head-ct", tmp_path / "out", folder, REVIEW)
    assert text.count(" expected ") == 1 and "Body: slices of 7 mm, expected 0 to 5.2 mm" in text
    masks, values = found(tmp_path / "out", folder)
    head = masks["Intracranial"]
    pairs = []
    for z in range(12, 26):
        parts, _ = scipy.ndimage.label(values[z] < 500)
        within = scipy.ndimage.binary_fill_holes(parts == np.bincount(parts[head[z] & (parts > 0)]).argmax())
        assert not within[0].any(), "a ring"
        pairs.append((head[z], within))
    ring, within = (np.stack(planes) for planes in zip(*pairs))
    assert dice(ring, within) > 0.985
    assert 0.96 < ring.sum() / within.sum() < 1.01


@needs_shared
def test_a_plastic_head_is_held(config, tmp_path):
    preset_of = run(config, "head-ct", tmp_path / "out", SHARED / "ct-head-5mm", REVIEW)
    assert "Intracranial" in preset_of


@needs_shared
@pytest.mark.parametrize("name,ml", [("STS_001", 65.1), ("STS_002", 50.0)])
def test_uptake_of_a_patient(config, tmp_path, name, ml):
    """Within the tumour's annotated volume, and the voxels of SUV 4 and above in components of 0.5 ml."""
    folder = SHARED / "sarcoma" / name / "PET" / "image"
    found_ml, uptake, values = volumes(config, "pet-uptake", tmp_path / "out", folder)["Uptake"]
    assert abs(found_ml - ml) < 0.01 * ml
    parts, count = scipy.ndimage.label(values >= 4)
    sizes = np.bincount(parts.ravel()) * voxel_ml(folder)
    assert np.array_equal(uptake, (parts > 0) & (sizes >= 0.5)[parts])


@needs_shared
@pytest.mark.parametrize("name,ml,status", [("STS_001", 1.15, REVIEW), ("STS_002", 21.6, OK)])
def test_hottest_uptake_of_a_patient(config, tmp_path, name, ml, status):
    """The component at 41 % of the maximum that contains the maximum. In the first patient the last slice cuts it
    off."""
    folder = SHARED / "sarcoma" / name / "PET" / "image"
    found_ml, uptake, values = volumes(config, "pet-hottest", tmp_path / "out", folder, status)["Uptake"]
    assert abs(found_ml - ml) < 0.01 * ml
    parts, _ = scipy.ndimage.label(values >= 0.41 * values.max())
    assert np.array_equal(uptake, parts == parts[np.unravel_index(values.argmax(), values.shape)])


@needs_shared
@pytest.mark.parametrize("name,ml,status", [("STS_001", 113.0, REVIEW), ("STS_002", 18.8, OK)])
def test_a_lesion_of_a_patient(tmp_path, name, ml, status):
    """The published mask of the tumour, and 41 % of its largest value."""
    home = SHARED / "sarcoma" / name
    text = (SOURCE / "config" / "presets" / "pet-lesion.conf").read_text().replace('"Lesion*"', '"GTV_Mass_PET"')
    (tmp_path / "noctule.conf").write_text(
        f'root = "{tmp_path}/root"; pipelines = ( {{ name = "pet-lesion"; {text} }} );')
    preset_of = run(tmp_path / "noctule.conf", "pet-lesion", tmp_path / "out", home / "PET" / "image", status,
               (home / "PET" / "mask").glob("*.dcm"))
    masks, values = found(tmp_path / "out", home / "PET" / "image")
    drawn = nifti_mask(home / "nifti" / "PET_mask.nii.gz")
    assert np.array_equal(masks["Lesion"], drawn & (values >= 0.41 * values[drawn].max()))
    assert abs(masks["Lesion"].sum() * voxel_ml(home / "PET" / "image") - ml) < 0.05
    assert preset_of.count("not as expected: Hottest in the inner part: the segment is empty") == preset_of.count("not as expected") == (
        status == REVIEW)


# -------------------------------------------------------------------------------- output


def preset_of(name):
    return next(preset for preset in json.loads(run_program("noctule", "presets", "--json").stdout) if preset["name"] == name)


def test_the_list_is_the_files(config):
    listed = json.loads(run_program("noctule", "presets", "--json").stdout)
    assert [preset["name"] for preset in listed] == PRESETS
    text = " ".join(run_program("noctule", "presets").stdout.split())
    for preset in listed:
        assert all(preset.values()) and preset["include"] == f"presets/{preset['name']}.conf"
        for key in ("title", "modality", "segments", "gate", "evidence", "limits"):
            assert preset[key] in text, (preset["name"], key)


@pytest.mark.parametrize("name", PRESETS)
def test_the_head_names_the_segments(config, name):
    printed = run_program("noctule", "check-config", "--print", config).stdout
    pipeline = re.search(rf'name = "{name}";.*?(?=\n}}|\Z)', printed, re.S)[0]
    shown = [segment["label"] for segment in recipes.parse(pipeline)["segments"] if not segment["hidden"]]
    assert ", ".join(shown) == preset_of(name)["segments"]
    assert "expect" in pipeline


# Linear RGB as seen without the cones for red, green or blue: Machado, Oliveira and Fernandes 2009, severity 1.
SIGHT = {
    "all cones": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}


def cie_lab(color, sight):
    """Returns CIE 1976 L*a*b* (D65) of an sRGB colour."""
    color = np.asarray(color)
    linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(
        SIGHT[sight] @ linear, 0, 1) / (0.9505, 1, 1.089)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("name", PRESETS)
def test_colours_can_be_told_apart(config, name):
    """Differences of 2.3 are just noticeable. Thin outlines on grey need more."""
    printed = run_program("noctule", "check-config", "--print", config).stdout
    pipeline = re.search(rf'name = "{name}";.*?(?=\n}}|\Z)', printed, re.S)[0]
    shown = [segment for segment in recipes.parse(pipeline)["segments"] if not segment["hidden"]]
    for sight in SIGHT:
        for one, other in itertools.combinations(shown, 2):
            apart = np.linalg.norm(cie_lab(one["color"], sight) - cie_lab(other["color"], sight))
            assert apart >= 30, (one["label"], other["label"], sight, apart)


def test_a_preset_is_printed_as_its_file():
    for name in PRESETS:
        assert run_program("noctule", "presets", name).stdout == (
            SOURCE / "config" / "presets" / f"{name}.conf").read_text()
    missing = run_program("noctule", "presets", "liver", check=False)
    assert missing.returncode == 3 and 'no preset "liver"' in missing.stderr
    for wrong in (["../noctule"], ["lung", "body"], ["--json", "lung"]):
        assert run_program("noctule", "presets", *wrong, check=False).returncode == 2


def test_a_preset_next_to_the_configuration_has_precedence(tmp_path):
    (tmp_path / "presets").mkdir()
    text = (SOURCE / "config" / "presets" / "head-ct.conf").read_text()
    (tmp_path / "presets" / "head-ct.conf").write_text(text.replace("850.0, 2100.0", "800.0, 2000.0"))
    path = tmp_path / "noctule.conf"
    path.write_text('pipelines = (\n{ name = "a";\n@include "presets/head-ct.conf"\n},\n'
                    '{ name = "b";\n@include "presets/pet-uptake.conf"\n} );')
    printed = run_program("noctule", "check-config", "--print", path).stdout
    assert "800" in printed and '"Uptake"' in printed
    path.write_text('@include "presets/none.conf"\n')
    assert f"cannot include {tmp_path}/presets/none.conf: No such file" in run_program(
        "noctule", "check-config", path, check=False).stderr


def test_the_document_lists_all_presets():
    page = SOURCE / "docs" / "presets.md"
    head, line, _ = page.read_text().partition("## The presets\n")
    made = head + line
    for preset in json.loads(run_program("noctule", "presets", "--json").stdout):
        made += f"\n### {preset['name']}\n\n{preset['title'][0].upper()}{preset['title'][1:]}.\n\n"
        for key, word in (("modality", "Modality"), ("segments", "Segments"), ("gate", "Expectations"), ("evidence", "Evidence"),
                          ("limits", "Limits")):
            made += f"- {word}: {preset[key].rstrip('.')}.\n"
    if os.environ.get("NOCTULE_WRITE_PRESETS"):
        page.write_text(made)
    assert page.read_text() == made, "run this test once more with NOCTULE_WRITE_PRESETS=1 in the environment"

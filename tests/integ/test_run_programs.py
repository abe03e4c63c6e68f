"""Segments from programs of a site, through `noctule run`: the labels that the program wrote, on every geometry, with the
algorithm of the program in the results."""

import hashlib
import json
import pathlib
import subprocess
import sys

import highdicom
import numpy as np
import pydicom
import pytest

from conftest import BIN, phantom
from test_contours import Planes, ring, structure_set
from test_grid import uneven
from test_run import exact_values
from test_run_objects import children, code_of, drawn, found, mask_of, parts, record_of, segmentation
from test_segments import oblique, turn
from test_seg import assert_dciodvfy_is_silent
from test_sr import assert_dciodvfy_is_content, one

TYPE = 'type = { code = "272673000"; scheme = "SCT"; meaning = "Bone"; };'
VENV = pathlib.Path(sys.prefix).resolve()

# Reads the input by nibabel, or by SimpleITK, and writes label maps in the same way.
HEAD = """
import pathlib, sys
import numpy as np
(source,) = pathlib.Path(sys.argv[1]).iterdir()
out = pathlib.Path(sys.argv[2])
if source.suffix == ".nrrd":
    import SimpleITK as sitk
    image = sitk.ReadImage(str(source))
    values = sitk.GetArrayFromImage(image)
else:
    import nibabel
    image = nibabel.load(source)
    values = np.asarray(image.dataobj, float)

def save(labels, name="case.nii.gz", turned=lambda image: image):
    nibabel.save(turned(nibabel.Nifti1Image(labels.astype(np.uint8), image.affine)), out / name)
"""


class Site:
    def __init__(self, folder):
        self.folder, self.rows = folder, []

    def program(self, name, text, **options):
        """Adds a program of the site."""
        place = self.folder / name
        place.mkdir()
        (place / "program.py").write_text(text)
        more = " ".join(f"{key} = {value};" for key, value in options.items())
        self.rows.append(
            f'{{ name = "{name}"; command = [ "{VENV}/bin/python", "{place}/program.py", "{{in}}", "{{out}}" ]; '
            f'algorithm = {{ name = "Net of {name}"; version = "2.1"; source = "https://example.org/{name}"; }}; '
            f'weights = [ "{place}" ]; read = [ "{VENV}" ]; {more} }}')
        return place

    def run(self, segments, *inputs, more="unreviewed = true;", output="out", status=0, objects=()):
        """Returns the output folder, or the error text if the status is not 0."""
        config = self.folder / "noctule.conf"
        config.write_text(f'root = "{self.folder / "root"}"; programs = ( {", ".join(self.rows)} ); '
                          f'pipelines = ( {{ name = "p"; min_slices = 1; segments = {segments}; {more} }} );')
        given = [part for path in objects for part in ("--object", path)]
        result = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "p", "-o", self.folder / output,
                                 *map(str, [*given, *inputs])], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stdout + result.stderr
        return result.stderr if status else self.folder / output


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def label(name, value, program="p", more=""):
    return f'{{ label = "{name}"; method = "program"; program = "{program}"; value = {value}; {more} {TYPE} }}'


def ranged(name, low, more=""):
    return f'{{ label = "{name}"; method = "range"; range = [ {float(low)}, 1e9 ]; {more} {TYPE} }}'


# ---- geometry

def threshold(low):
    return f"save(values >= {low})\n"


def turned_to(axes):
    return (f"save(values >= 30.5, turned=lambda image: image.as_reoriented(nibabel.orientations.ornt_transform("
            f"nibabel.io_orientation(image.affine), nibabel.orientations.axcodes2ornt('{axes}'))))\n")


ITK = """
labels = sitk.GetImageFromArray((values >= 30.5).astype(np.uint8))
labels.CopyInformation(image)
sitk.WriteImage(labels, str(out / "case.nrrd"))
"""
SMALL = ("--size", "50x41x13", "--spacing", "2,3,4")
FLIPS = ((-1, 0, 0), (0, -1, 0))

GEOMETRIES = {
    "axial": (SMALL, None, threshold(30.5), {}),
    "sagittal": (SMALL, ((0, 1, 0), (0, 0, -1)), threshold(30.5), {}),
    "coronal": (SMALL, ((1, 0, 0), (0, 0, -1)), threshold(30.5), {}),
    "oblique": (SMALL, oblique(), threshold(30.5), {}),
    "feet-first": (SMALL, ((-1, 0, 0), (0, 1, 0)), threshold(30.5), {}),
    "flipped-both": (SMALL, FLIPS, threshold(30.5), {}),
    "to-RAS": (SMALL, oblique(), turned_to("RAS"), {}),
    "to-LPS": (SMALL, None, turned_to("LPS"), {}),
    "to-PSR": (SMALL, ((0, 1, 0), (0, 0, -1)), turned_to("PSR"), {}),
    "plain-nii": (SMALL, None, "save(values >= 30.5, 'case.nii')\n", {"input_file": '"{case}_0000.nii"'}),
    "nrrd": (SMALL, oblique(), ITK, {"input": '"nrrd"', "output": '"nrrd"'}),
    "tilted": (("--size", "70x61x12", "--tilt", "18.5"), None, threshold(30.5), {}),
    "uneven": (("--size", "48x40x21", "--spacing", "2,2,4"), uneven, threshold(30.5), {}),
    "pet": (("--size", "48x40x12", "--kind", "pet"), None, threshold(3000.123), {}),
    "signed": (("--size", "48x40x9", "--bits", "16", "--signed"), None, threshold(30.5), {}),
    "bytes": (("--size", "48x40x9", "--bits", "8"), None, threshold(30.5), {}),
    "multi-frame": (("--size", "48x40x9", "--multi-frame"), None, threshold(30.5), {}),
}


@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_threshold_by_a_program_equals_a_range(site, tmp_path, name):
    options, change, text, more = GEOMETRIES[name]
    files = phantom(tmp_path / "in", *options)
    if callable(change):
        change(files)
    elif change:
        turn(files, *change, (-31.5, 12.25, 700))
    site.program("p", HEAD + text, **more)
    low = 3000.123 if name == "pet" else 30.5
    output = site.run(f'( {ranged("Range", low)}, {label("Program", 1)} )', tmp_path / "in")
    by_range, by_program = record_of(output)["segments"]
    assert by_range["voxels"] == by_program["voxels"] > 100
    seg = pydicom.dcmread(output / "seg.dcm")
    frames = {}
    for pixels, frame in zip(seg.pixel_array, seg.PerFrameFunctionalGroupsSequence, strict=True):
        place = tuple(frame.PlanePositionSequence[0].ImagePositionPatient)
        frames.setdefault(frame.SegmentIdentificationSequence[0].ReferencedSegmentNumber, {})[place] = pixels
    assert frames[1].keys() == frames[2].keys()
    assert sum(np.count_nonzero(frames[1][place] != frames[2][place]) for place in frames[1]) == 0


# ---- labels, and what applies to any segment

# Air, soft tissue and bone, and labels of one slice each.
LABELS = "save(1 * (values < -500) + 2 * ((values >= 0) & (values < 80)) + 3 * (values >= 250))\n"


def values_of(folder):
    """Returns the values of a series, slices in ascending order, and its files in that order."""
    planes = Planes(sorted(folder.glob("*.dcm")))
    return exact_values([pydicom.dcmread(file.filename) for file in planes.files]), [file.filename for file in planes.files]


def test_segments_take_one_label_or_several(site, tmp_path):
    phantom(tmp_path / "in", "--size", "60x50x9")
    site.program("p", HEAD + LABELS)
    output = site.run(f'( {label("Air", 1)}, {label("Tissue", "[ 2, 3 ]")}, {label("Bone", 3)} )', tmp_path / "in")
    values, files = values_of(tmp_path / "in")
    soft, bone = (values >= 0) & (values < 80), values >= 250
    expected = [values < -500, soft | bone, bone]
    assert [np.count_nonzero(mask != truth) for mask, truth in zip(mask_of(output, files), expected, strict=True)] == [0, 0, 0]
    assert [segment["voxels"] for segment in record_of(output)["segments"]] == [truth.sum() for truth in expected]


def test_all_labels_of_a_program_are_segments(site, tmp_path):
    phantom(tmp_path / "in", "--size", "60x50x9")
    names = ", ".join(f'{{ value = {value}; name = "{name}"; {TYPE} }}' for value, name in ((3, "Bone"), (1, "Air"), (2, "Soft")))
    site.program("p", HEAD + LABELS, labels=f"( {names} )")
    output = site.run('"all labels"', tmp_path / "in", more='program = "p"; unreviewed = true;')
    values, _ = values_of(tmp_path / "in")
    counts = {segment["label"]: segment["voxels"] for segment in record_of(output)["segments"]}
    assert counts == {"Bone": (values >= 250).sum(), "Air": (values < -500).sum(), "Soft": ((values >= 0) & (values < 80)).sum()}


def test_steps_limits_and_texture_are_those_of_a_range(site, tmp_path):
    phantom(tmp_path / "in", "--size", "60x50x9")
    site.program("p", HEAD + threshold(250))
    steps = "then = ( { keep = 1; }, { grow_mm = 3.0; }, { fill = \"slices\"; } );"
    minus = 'minus = [ "Range" ];'
    output = site.run(f'( {ranged("Range", 250, steps)}, {label("Program", 1, more=steps)}, '
                      f'{label("Rest", 1, more=minus)} )', tmp_path / "in",
                      more='unreviewed = true; texture = { first_order = true; }; results = [ "seg" ];')
    by_range, by_program, rest = record_of(output)["segments"]
    alike = ("voxels", "millilitres", "mean", "minimum", "maximum", "box", "centroid_mm")
    assert {key: by_range[key] for key in alike} == {key: by_program[key] for key in alike} and by_range["voxels"] > 500
    assert rest["voxels"] < by_range["voxels"]
    features = json.loads((output / "features.json").read_text())
    assert [f["value"] for f in features if f["segment_number"] == 1] == [f["value"] for f in features if f["segment_number"] == 2]
    names = pydicom.dcmread(output / "seg.dcm").SegmentSequence[1].SegmentAlgorithmName
    assert list(names) == ["Net of p", "Noctule steps on a label"]


def test_a_segment_without_expect_is_held_for_review(site, tmp_path):
    phantom(tmp_path / "in", "--size", "60x50x9")
    site.program("p", HEAD + threshold(250))
    fits, breaks = ("expect = { volume_ml = [ %s ]; };" % limits for limits in ("1.0, 100000.0", "0.001, 0.002"))
    for number, (segment, more, outcome, broken) in enumerate([
            (label("Bone", 1), "", "REVIEW", ["trust"]),
            (label("Bone", 1), "unreviewed = true;", "DONE", []),
            (label("Bone", 1, more=fits), "", "DONE", []),
            (label("Bone", 1, more=breaks), "", "REVIEW", ["volume_ml"])]):
        output = f"out-{number}"
        site.run(f"( {segment} )", tmp_path / "in", more=more, output=output, status=8 if broken else 0)
        record = record_of(tmp_path / output)
        assert (record["outcome"], [each["expectation"] for each in record["broken_expectations"]]) == (outcome, broken)


# ---- objects as output

COPY = """
import pathlib, shutil, sys
shutil.copy(pathlib.Path(__file__).parent / "output.dcm", pathlib.Path(sys.argv[2]) / "output.dcm")
assert sorted(path.name for path in pathlib.Path(sys.argv[1]).iterdir())[0] in ("000001.dcm", "case.nii.gz")
"""


@pytest.mark.parametrize("tilt", ["0", "12"])
def test_a_structure_set_is_drawn_as_an_object(site, tmp_path, tilt):
    files = phantom(tmp_path / "in", "--size", "70x61x9", "--tilt", tilt)
    planes = Planes(files)
    rois = {"First": [("CLOSED_PLANAR", ring(planes, z, (33, 31), (20, 11 + z), 90)) for z in (1, 2, 3, 5)],
            "Over it": [("CLOSED_PLANAR", ring(planes, z, (38, 31), (9, 9), 40)) for z in (2, 3)],
            "None": []}
    path = structure_set(tmp_path, planes, rois)
    place = site.program("p", COPY, output='"rtstruct"', input='"dicom"')
    (place / "output.dcm").write_bytes(path.read_bytes())
    output = site.run(f'( {drawn("A", "number = 1")}, {drawn("B", "number = 2")}, {label("C", 1)}, {label("D", 2)} )',
                      tmp_path / "in", objects=[path])
    a, b, c, d = (segment["voxels"] for segment in record_of(output)["segments"])
    assert (a, b) == (c, d) and b > 100
    if tilt == "0":
        masks = mask_of(output, [file.filename for file in planes.files])
        assert np.array_equal(masks[0], masks[2]) and np.array_equal(masks[1], masks[3]) and (masks[0] & masks[1]).any()


@pytest.mark.parametrize("kind", ["BINARY", "FRACTIONAL"])
def test_a_segmentation_is_filled_as_an_object(site, tmp_path, kind):
    files = phantom(tmp_path / "in", "--size", "70x61x9")
    pixels, datasets = parts(files)
    path = segmentation(tmp_path / "seg.dcm", datasets, pixels, kind)
    options = {"threshold": 0.5} if kind == "FRACTIONAL" else {}
    place = site.program("p", COPY, output='"seg"', **options)
    (place / "output.dcm").write_bytes(path.read_bytes())
    output = site.run(f'( {found("A")}, {found("B", "number = 2")}, {label("C", 1)}, {label("D", 2)} )', tmp_path / "in",
                      objects=[path])
    masks = mask_of(output, [dataset.filename for dataset in datasets])
    assert np.array_equal(masks[0], masks[2]) and np.array_equal(masks[1], masks[3]) and masks[2].any()
    if kind == "FRACTIONAL":
        site.rows[0] = site.rows[0].replace("threshold = 0.5;", "")
        assert "PROGRAM_FRACTIONS: " in site.run(f'( {label("C", 1)} )', tmp_path / "in", status=1)


def test_an_object_of_other_images_is_refused_without_its_texts(site, tmp_path):
    files = phantom(tmp_path / "in", "--size", "70x61x9")
    others = phantom(tmp_path / "other", "--size", "70x61x9", "--seed", "2")
    planes = Planes(others)
    path = structure_set(tmp_path, planes, {"Patient Name": [("CLOSED_PLANAR", ring(planes, 2, (33, 31), (9, 9), 40))]})
    place = site.program("p", COPY, output='"rtstruct"')
    (place / "output.dcm").write_bytes(path.read_bytes())
    complaint = site.run(f'( {label("A", 1)} )', *files, status=1)
    assert "PROGRAM_GRID_DIFFERS: " in complaint and "Patient" not in complaint


# ---- results

def test_results_state_the_algorithm_of_the_program(site, tmp_path):
    files = phantom(tmp_path / "in", "--size", "60x50x9")
    site.program("p", HEAD + LABELS, other_labels='"ignore"')
    site.program("q", HEAD + threshold(250))
    output = site.run(f'( {label("Bone", 3)}, {label("Other", 1, "q")}, {ranged("Range", 250)} )', tmp_path / "in",
                      more='unreviewed = true; texture = { first_order = true; }; results = [ "seg", "sr" ];')
    assert_dciodvfy_is_silent(output / "seg.dcm", files[0])
    assert_dciodvfy_is_content(output / "sr.dcm")
    record = record_of(output)
    masks = {program["program"]: program for program in record["programs"]}
    seg = pydicom.dcmread(output / "seg.dcm")
    equipment = seg.ContributingEquipmentSequence
    assert [(item.Manufacturer, item.ManufacturerModelName, item.SoftwareVersions) for item in equipment] == [
        ("Net of p", "Net of p", "2.1"), ("Net of q", "Net of q", "2.1")]
    assert code_of(equipment[0].PurposeOfReferenceCodeSequence) == ("109102", "DCM", "Processing Equipment")
    assert pydicom.dcmread(output / "sr.dcm").ContributingEquipmentSequence == equipment
    for item, name, value in zip(seg.SegmentSequence, "pq", (3, 1)):
        assert (item.SegmentAlgorithmType, item.SegmentAlgorithmName) == ("AUTOMATIC", f"Net of {name}")
        (algorithm,) = item.SegmentationAlgorithmIdentificationSequence
        assert code_of(algorithm.AlgorithmFamilyCodeSequence) == ("123110", "DCM", "Artificial Intelligence")
        assert (algorithm.AlgorithmName, algorithm.AlgorithmVersion) == (f"Net of {name}", "2.1")
        assert algorithm.AlgorithmSource == f"https://example.org/{name}"
        of = masks[name]
        assert len(of["mask_sha256"]) == 64 and len(of["identity"]) == 64 and of["family"]["code"] == "123110"
        parameters = algorithm.AlgorithmParameters
        assert parameters.startswith(f'label {value} of mask SHA-256 {of["mask_sha256"]}; program and weights SHA-256 '
                                     f'{of["identity"]}; argv "{VENV}/bin/python"') and len(parameters) <= 1024
    assert (record["segments"][0]["program"], record["segments"][0]["labels"]) == ("p", [3])
    assert "program" not in record["segments"][2] and seg.SegmentSequence[2].SegmentAlgorithmName == "Noctule range of values"
    read = highdicom.seg.segread(output / "seg.dcm").get_segment_description(1)
    assert read.algorithm_type.value == "AUTOMATIC" and read.algorithm_identification.name == "Net of p"
    assert read.algorithm_identification.family.value == "123110"
    groups = highdicom.sr.srread(output / "sr.dcm").content.get_volumetric_roi_measurement_groups()
    stated = dict(children(one(groups[0][0], "IMAGE", "121191")))
    assert stated["ALGORITHM_TYPE"] == "AUTOMATIC" and stated["111001"] == "Net of p" and stated["111000"] == "123110"
    assert stated["111003"] == "2.1" and stated["111002"].startswith("label 3 of mask SHA-256 ")


def test_equal_masks_give_equal_bytes_and_others_do_not(site, tmp_path):
    phantom(tmp_path / "in", "--size", "60x50x9")
    place = site.program("p", HEAD + threshold(250))
    segments = f'( {label("Bone", 1)} )'

    def digest(output):
        folder = site.run(segments, tmp_path / "in", output=output)
        return hashlib.sha256((folder / "seg.dcm").read_bytes()).hexdigest(), pydicom.dcmread(folder / "seg.dcm").SOPInstanceUID

    first, again = digest("a"), digest("b")
    assert first == again
    (place / "program.py").write_text(HEAD + threshold(251))
    assert digest("c")[1] != first[1]

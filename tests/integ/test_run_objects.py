"""Segments that are what people drew, through `noctule run --object`, beside published masks and the definition in Python."""

import json
import subprocess

import highdicom
import numpy as np
import pydicom
import pydicom.uid
import pytest

from conftest import BIN, SHARED, assert_valid, needs_shared, phantom
from test_contours import PUBLISHED, Planes, nifti_mask, peer_mask, ring, structure_set
from test_run import assert_nothing_left, seg_masks
from test_sr import assert_dciodvfy_is_content, one

TYPE = 'type = { code = "86049000"; scheme = "SCT"; meaning = "Neoplasm, Primary"; };'


@pytest.fixture
def run(tmp_path):
    """noctule run with segments as given; returns the output folder, or the complaint of a status that is not 0."""
    config = tmp_path / "noctule.conf"

    def call(segments, objects, *inputs, status=0, more="", output="out"):
        config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "drawn"; segments = ( {segments} ); '
                          f'{more} }} );')
        given = [part for path in objects for part in ("--object", path)]
        result = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "drawn", "-o", tmp_path / output,
                                 *map(str, [*given, *inputs])], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stdout + result.stderr
        return result.stderr if status else tmp_path / output

    return call


def drawn(label="GTV", wanted='roi = "*"', more=""):
    return (f'{{ label = "{label}"; method = "object"; object = {{ kind = "rtstruct"; {wanted + ";" if wanted else ""} }}; '
            f'{more} {TYPE} }}')


def mask_of(output, series):
    return seg_masks(output / "seg.dcm", [pydicom.dcmread(file, stop_before_pixels=True) for file in series])


def record_of(output):
    return json.loads((output / "job.json").read_text())


@needs_shared
@pytest.mark.parametrize(("image", "mask", "published", "voxels"), PUBLISHED)
def test_masks_are_the_published_ones(run, tmp_path, image, mask, published, voxels):
    (rtstruct,) = (SHARED / mask).glob("*.dcm")
    more = "" if "PET" in image or "MR" in image else 'texture = { first_order = true; }; results = [ "seg", "sr" ];'
    output = run(drawn(), [rtstruct], SHARED / image, more=more)
    planes = Planes(sorted((SHARED / image).glob("*.dcm")))
    masks = mask_of(output, [file.filename for file in planes.files])
    assert np.count_nonzero(masks[0] != nifti_mask(SHARED / published)) == 0
    (segment,) = record_of(output)["segments"]
    assert segment["voxels"] == voxels and segment["slices_missing"] == 0


@pytest.fixture
def series(tmp_path):
    return phantom(tmp_path / "series", "--size", "70x61x9")


@pytest.fixture
def rois(series):
    planes = Planes(series)
    step = np.dot(planes.origins[1] - planes.origins[0], planes.normal)
    return {
        "GTV-1": [("CLOSED_PLANAR", ring(planes, z, (33, 31), (20, 11 + z), 90)) for z in (1, 2, 5)],
        "GTV-2": [("CLOSED_PLANAR", ring(planes, 4, (30, 30), (9, 9), 40))],
        "Löwe": [("CLOSED_PLANAR", ring(planes, 3, (22, 30), (5, 9), 40))],
        "point": [("POINT", [planes.point(2, 20, 20)])],
        "none": [],
        "beside": [("CLOSED_PLANAR", ring(planes, 3, (900, 30), (5, 9), 40))],
        "off": [("CLOSED_PLANAR", ring(planes, 3, (22, 30), (5, 9), 40, 0.4 * step))],
    }


def test_regions_are_segments(run, tmp_path, series, rois):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, rois)
    output = run(", ".join([drawn("A", 'roi = "GTV-[1]"'), drawn("B", "number = 3"),
                            drawn("C", 'roi = "GTV-1"', 'minus = [ "B" ];')]), [path], tmp_path / "series")
    written = pydicom.dcmread(path).ROIContourSequence
    expected = [peer_mask(planes, [c.ContourData for c in written[i].ContourSequence]) for i in (0, 2)]
    masks = mask_of(output, [file.filename for file in planes.files])
    for mask, peer in zip(masks, [*expected, expected[0] & ~expected[1]], strict=True):
        assert np.count_nonzero(mask != peer) == 0 and peer.any()
    assert_valid(output / "seg.dcm")
    record = record_of(output)
    assert record["object_files"] == 1
    assert "A: 2 slices between drawn ones have no contour" in record["note"]
    assert [segment["slices_missing"] for segment in record["segments"]] == [2, 0, 2]
    seg = pydicom.dcmread(output / "seg.dcm").SegmentSequence[0]
    assert seg.SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters.startswith(
        'region 1 "GTV-1" of RT Structure Set 1.2.9.1, drawn on 3 slices; 2 slices')


def test_another_object_makes_another_result(run, tmp_path, series, rois):
    path = structure_set(tmp_path, Planes(series), rois)
    uids = []
    for output, uid in (("one", "1.2.9.1"), ("same", "1.2.9.1"), ("later", "1.2.9.7")):
        pydicom_set = pydicom.dcmread(path)
        pydicom_set.SOPInstanceUID = pydicom_set.file_meta.MediaStorageSOPInstanceUID = uid
        pydicom_set.save_as(tmp_path / "changed.dcm")
        folder = run(drawn(wanted="number = 2"), [tmp_path / "changed.dcm"], tmp_path / "series", output=output)
        uids.append(pydicom.dcmread(folder / "seg.dcm").SOPInstanceUID)
    assert uids[0] == uids[1] != uids[2]


@pytest.mark.parametrize(("wanted", "code", "words"), [
    ('roi = "gtv-1"', "ROI_NOT_FOUND", 'rtstruct.dcm has no region named "gtv-1" for segment "GTV"; it has 1 "GTV-1", '),
    ("number = 17", "ROI_NOT_FOUND", "has no region with number 17"),
    ('roi = "GTV*"', "ROI_AMBIGUOUS", '"GTV-1" (1) and "GTV-2" (2)'),
    ('roi = "point"', "ROI_EMPTY", "points and open lines enclose none"),
    ('roi = "none"', "ROI_EMPTY", "within its 0 closed contours"),
    ('roi = "beside"', "ROI_EMPTY", "within its 1 closed contours"),
    ('roi = "off"', "CONTOUR_OFF_PLANES", 'rtstruct.dcm, region "off": '),
])
def test_what_is_no_region_is_refused(run, tmp_path, series, rois, wanted, code, words):
    path = structure_set(tmp_path, Planes(series), rois)
    complaint = run(drawn(wanted=wanted), [path], tmp_path / "series", status=1)
    assert f"{code}: " in complaint and words in complaint and str(path) in complaint
    assert_nothing_left(tmp_path / "out")


MEASURED = 'texture = { first_order = true; bin_width = 25.0; discretisation = "fixed-bin-size"; }; '


@pytest.mark.parametrize("study", ["", "1.2.79"])
def test_reports_refer_to_the_structure_set(run, tmp_path, series, rois, study):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, rois)
    ds = pydicom.dcmread(path)
    ds.StudyInstanceUID = study or planes.files[0].StudyInstanceUID
    ds.save_as(path)
    segments = ", ".join([drawn("A", "number = 1"), drawn("B", "number = 3")])
    output = run(segments, [path], tmp_path / "series", more=MEASURED + 'results = [ "sr" ];')
    assert not (output / "seg.dcm").exists()
    assert_dciodvfy_is_content(output / "sr.dcm")
    report = highdicom.sr.srread(output / "sr.dcm")
    groups = report.content.get_volumetric_roi_measurement_groups()
    assert [group.reference_type.value for group in groups] == ["130488", "130488"]
    for group, number in zip(groups, "13", strict=True):
        item = one(group[0], "COMPOSITE", "130488")
        assert item.ReferencedSOPSequence[0].ReferencedSOPClassUID == pydicom.uid.RTStructureSetStorage
        assert item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == "1.2.9.1"
        assert one(item, "TEXT", "130489").TextValue == number
    evidence = {study.StudyInstanceUID: [series.SeriesInstanceUID for series in study.ReferencedSeriesSequence]
                for study in report.CurrentRequestedProcedureEvidenceSequence}
    own = [planes.files[0].SeriesInstanceUID]
    assert evidence == ({planes.files[0].StudyInstanceUID: own, study: ["1.2.9.3"]} if study
                        else {planes.files[0].StudyInstanceUID: [*own, "1.2.9.3"]})


def test_reports_of_what_was_changed_need_a_segmentation(run, tmp_path, series, rois):
    path = structure_set(tmp_path, Planes(series), rois)
    cut = drawn("A", "number = 1", "then = ( { grow_mm = 2.0; } );")
    complaint = run(cut, [path], tmp_path / "series", more=MEASURED + 'results = [ "sr" ];', status=5)
    assert '"sr" refers to the segments in "seg": add "seg"' in complaint
    run(cut, [path], tmp_path / "series", more=MEASURED + 'results = [ "seg", "sr" ];')


def elsewhere(ds, series="1.2.77", frame=None):
    item = ds.ReferencedFrameOfReferenceSequence[0]
    item.RTReferencedStudySequence[0].RTReferencedSeriesSequence[0].SeriesInstanceUID = series
    if frame:
        item.FrameOfReferenceUID = frame
        for roi in ds.StructureSetROISequence:
            roi.ReferencedFrameOfReferenceUID = frame


def test_objects_are_of_their_series(run, tmp_path, series, rois):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, rois)
    own = planes.files[0].SeriesInstanceUID
    cases = {"other": (dict(frame="1.2.78"), "OBJECT_OTHER_SERIES"), "same-frame": ({}, None),
             "frame": (dict(series=own, frame="1.2.78"), "OBJECT_OTHER_FRAME")}
    files = {}
    for name, (change, code) in cases.items():
        ds = pydicom.dcmread(path)
        elsewhere(ds, **change)
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"1.2.9.2{len(files)}"
        files[name] = tmp_path / f"{name}.dcm"
        ds.save_as(files[name])
        result = run(drawn(wanted="number = 2"), [files[name]], tmp_path / "series", status=1 if code else 0, output=name)
        assert code is None or f"{code}: {name}.dcm " in result
    wanted = drawn(wanted="number = 2")
    assert "OBJECT_MISSING: " in run(wanted, [], tmp_path / "series", status=1)
    assert "OBJECT_MISSING: " in run(wanted, [series[0]], tmp_path / "series", status=1)
    assert "FILE_UNREADABLE: " in run(wanted, [tmp_path / "nothing.dcm"], tmp_path / "series", status=1)
    both = run(wanted, [path, files["same-frame"]], tmp_path / "series", status=1)
    assert "OBJECT_AMBIGUOUS: rtstruct.dcm and same-frame.dcm both " in both
    # What is twice there counts once, and what is of another series is no rival.
    output = run(wanted, [files["other"], path, path], tmp_path / "series", output="best")
    assert record_of(output)["segments"][0]["contours"] == 1


@pytest.mark.parametrize(("wanted", "words"), [
    ('roi = "a"; number = 1', "give either the name of the region, or its number"),
    ("", "give either the name of the region, or its number"),
])
def test_options_agree(run, tmp_path, series, wanted, words):
    assert words in run(drawn(wanted=wanted), [], tmp_path / "series", status=5)

"""The result "rtstruct" of `noctule run`: pydicom, dciodvfy, drtdump and Noctule itself read it, on all kinds of planes."""

import itertools
import json
import shutil
import subprocess

import numpy as np
import pydicom
import pytest

from conftest import BIN, assert_valid, phantom
from test_contours import Planes, draw, ring, structure_set
from test_grid import uneven
from test_program_geometries import EVEN, SMALL
from test_run import seg_masks
from test_segments import turn

TYPE = 'type = { code = "78961009"; scheme = "SCT"; meaning = "Spleen"; };'
GEOMETRIES = EVEN | {"tilted": (("--size", "70x61x12", "--tilt", "18.5"), None),
                     "uneven": (("--size", "48x40x21", "--spacing", "2,2,4"), uneven)}
ALTERED = '{ code = "49755003"; scheme = "SCT"; meaning = "Morphologically Altered Structure"; }'
SEGMENTS = f"""{{ label = "Böden"; method = "range"; range = [ 20.5, 90.5 ]; color = [ 1.0, 0.5, 0.0 ]; {TYPE} }},
               {{ label = "Bright"; method = "range"; range = [ 90.5, 3000.0 ]; {TYPE} category = {ALTERED}; }},
               {{ label = "Target"; method = "range"; range = [ 20.5, 90.5 ]; then = ( {{ keep = 1; }} ); roi_type = "GTV"; {TYPE} }},
               {{ label = "Nothing"; method = "range"; range = [ 32000.0, 32001.0 ]; {TYPE} }}"""


def run(folder, series, options="", output="out", segments=SEGMENTS, status=0, arguments=()):
    config = folder / "noctule.conf"
    config.write_text(f'root = "{folder / "root"}"; pipelines = ( {{ name = "planning"; results = [ "seg", "rtstruct" ]; '
                      f"{options} segments = ( {segments} ); }} );")
    result = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "planning", "-o", folder / output, *arguments, series],
                            text=True, capture_output=True, timeout=300)
    assert result.returncode == status, result.stdout + result.stderr
    return folder / output


def series_of(folder, name):
    options, change = GEOMETRIES[name]
    files = phantom(folder, *options)
    if change is uneven:
        uneven(files)
    elif change:
        turn(files, *change, (-31.5, 12.25, 700))
    return sorted(folder.glob("*.dcm"))


def assert_same_voxels(folder, output, files):
    """draw_contours draws the masks of the SEG from the structure set."""
    report, masks = draw(folder, output / "rtstruct.dcm", files)
    planes = Planes(files)
    expected = seg_masks(output / "seg.dcm", planes.files)
    assert len(masks) == 4 and not masks[3].any() and masks[0].any() and masks[2].any()
    for mask, peer in itertools.zip_longest(masks, expected):
        assert np.count_nonzero(mask != (peer if peer is not None else 0)) == 0
    return report


def assert_valid_structures(path):
    """dciodvfy of 2022 does not know CLOSEDPLANAR_XOR, which PS3.3 C.8.8.6.3 defines."""
    ds = pydicom.dcmread(path)
    contours = [contour for roi in ds.ROIContourSequence for contour in roi.get("ContourSequence", [])]
    kinds = {contour.ContourGeometricType for contour in contours}
    assert kinds <= {"CLOSED_PLANAR", "CLOSEDPLANAR_XOR"}
    if "CLOSEDPLANAR_XOR" in kinds:
        for contour in contours:
            contour.ContourGeometricType = "CLOSED_PLANAR"
        path = path.with_name("known.dcm")
        ds.save_as(path)
    assert_valid(path)


@pytest.mark.parametrize("holes", ("keyhole", "xor"))
@pytest.mark.parametrize("name", GEOMETRIES)
def test_contours_enclose_the_voxels_of_the_seg(tmp_path, name, holes):
    files = series_of(tmp_path / "in", name)
    output = run(tmp_path, tmp_path / "in", f'rtstruct_holes = "{holes}";')
    report = assert_same_voxels(tmp_path, output, files)
    assert [roi["type"] for roi in report["rois"]] == ["ORGAN", "", "GTV", "ORGAN"]
    assert_valid_structures(output / "rtstruct.dcm")


def test_the_object_has_its_modules(tmp_path):
    files = series_of(tmp_path / "in", "oblique")
    for file in files:  # sequences are copied in another encoding than theirs
        change = pydicom.dcmread(file)
        change.OtherPatientIDsSequence = [pydicom.Dataset(), pydicom.Dataset()]
        for number, other in enumerate(change.OtherPatientIDsSequence):
            other.PatientID, other.TypeOfPatientID = f"X{number}", "TEXT"
            other.IssuerOfPatientIDQualifiersSequence = [pydicom.Dataset()]
            other.IssuerOfPatientIDQualifiersSequence[0].UniversalEntityID = "1.2.3"
            other.IssuerOfPatientIDQualifiersSequence[0].UniversalEntityIDType = "ISO"
        change.save_as(file)
    output = run(tmp_path, tmp_path / "in")
    ds = pydicom.dcmread(output / "rtstruct.dcm")
    source = [pydicom.dcmread(file, stop_before_pixels=True) for file in files]
    assert ds.file_meta.TransferSyntaxUID == pydicom.uid.ImplicitVRLittleEndian
    for keyword in ("PatientName", "PatientID", "StudyInstanceUID", "StudyDate", "FrameOfReferenceUID", "OtherPatientIDsSequence"):
        assert ds[keyword].value == source[0][keyword].value, keyword
    assert (ds.Modality, ds.StructureSetLabel, ds.ApprovalStatus) == ("RTSTRUCT", "planning", "UNAPPROVED")
    assert "PredecessorStructureSetSequence" not in ds
    (frame,) = ds.ReferencedFrameOfReferenceSequence
    (study,) = frame.RTReferencedStudySequence
    (series,) = study.RTReferencedSeriesSequence
    assert frame.FrameOfReferenceUID == source[0].FrameOfReferenceUID
    assert study.ReferencedSOPInstanceUID == source[0].StudyInstanceUID
    assert series.SeriesInstanceUID == source[0].SeriesInstanceUID
    images = [item.ReferencedSOPInstanceUID for item in series.ContourImageSequence]
    assert sorted(images) == sorted(file.SOPInstanceUID for file in source)
    assert [roi.ROIName for roi in ds.StructureSetROISequence] == ["Böden", "Bright", "Target", "Nothing"]
    for roi in ds.StructureSetROISequence:
        assert roi.ROIGenerationAlgorithm == "AUTOMATIC" and roi.ROIGenerationDescription == "Noctule range of values"
        (algorithm,) = roi.ROIDerivationAlgorithmIdentificationSequence
        assert algorithm.AlgorithmName == "Noctule range of values"
    assert [list(roi.ROIDisplayColor) for roi in ds.ROIContourSequence][:2] == [[255, 128, 0], [230, 77, 51]]
    for roi in ds.RTROIObservationsSequence:
        (code,) = roi.RTROIIdentificationCodeSequence
        assert (code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning) == ("78961009", "SCT", "Spleen")
    contours = [contour for roi in ds.ROIContourSequence for contour in roi.get("ContourSequence", [])]
    assert "ContourSequence" not in ds.ROIContourSequence[3] and len(contours) > 20
    for contour in contours:
        assert len(contour.ContourData) == 3 * contour.NumberOfContourPoints
        assert max(len(value.original_string) for value in contour.ContourData) <= 16
        assert contour.ContourImageSequence[0].ReferencedSOPInstanceUID in images
    dump = subprocess.run(["drtdump", output / "rtstruct.dcm"], capture_output=True, text=True, check=True).stdout
    assert "planning structures" in dump


def test_regions_of_structure_sets_keep_their_type(tmp_path):
    files = phantom(tmp_path / "in", "--size", "70x61x9")
    planes = Planes(files)
    drawn = structure_set(tmp_path, planes, {"PTV": [("CLOSED_PLANAR", ring(planes, 4, (30, 30), (20, 9), 40))]})
    ds = pydicom.dcmread(drawn)
    ds.RTROIObservationsSequence[0].RTROIInterpretedType = "PTV"
    ds.save_as(drawn)
    taken = 'method = "object"; object = { kind = "rtstruct"; roi = "*"; };'
    output = run(tmp_path, tmp_path / "in", arguments=("--object", drawn),
                 segments=f'{{ label = "Same"; {taken} {TYPE} }}, {{ label = "Larger"; {taken} then = ( {{ grow_mm = 4.0; }} ); {TYPE} }},'
                          f'{{ label = "None"; {taken} roi_type = "none"; {TYPE} }}')
    report, (same, larger, _) = draw(tmp_path, output / "rtstruct.dcm", files)
    assert [roi["type"] for roi in report["rois"]] == ["PTV", "", ""]
    _, (expected,) = draw(tmp_path, drawn, files)
    assert (same == expected).all() and larger.sum() > same.sum()


def test_a_long_contour_is_one_value(tmp_path):
    """Of Explicit VR a DS would have at most 65534 bytes."""
    files = phantom(tmp_path / "in", "--size", "128x128x3", "--spacing", "0.5,0.5,3")
    comb = np.zeros((128, 128), np.int16)
    comb[8:120, 8:120:4] = comb[8:120:2, 9:121:4] = comb[8] = 1000  # teeth with teeth
    for file in files:
        ds = pydicom.dcmread(file)
        stored = (comb - int(ds.RescaleIntercept)) / ds.RescaleSlope
        ds.PixelData = stored.astype(f"<{'i' if ds.PixelRepresentation else 'u'}2").tobytes()
        ds.BitsAllocated, ds.BitsStored, ds.HighBit = 16, 16, 15
        ds.save_as(file)
    output = run(tmp_path, tmp_path / "in", segments=f'{{ label = "Comb"; method = "range"; range = [ 500.0, 1500.0 ]; {TYPE} }}')
    (contour, *_) = pydicom.dcmread(output / "rtstruct.dcm").ROIContourSequence[0].ContourSequence
    assert sum(len(value.original_string) + 1 for value in contour.ContourData) > 65536
    _, (mask,) = draw(tmp_path, output / "rtstruct.dcm", files)
    assert (mask == (comb == 1000)).all()


def test_other_settings_replace_the_object(tmp_path):
    """Both attempts of a pipeline and series in a daemon: see test_again.py. Here the UIDs of two settings differ."""
    series_of(tmp_path / "in", "axial")
    first = pydicom.dcmread(run(tmp_path, tmp_path / "in") / "rtstruct.dcm")
    again = run(tmp_path, tmp_path / "in", output="again", arguments=("--threads", "1"))
    assert (again / "rtstruct.dcm").read_bytes() == (tmp_path / "out" / "rtstruct.dcm").read_bytes()
    other = pydicom.dcmread(run(tmp_path, tmp_path / "in", 'rtstruct_holes = "xor";', output="xor") / "rtstruct.dcm")
    assert first.SOPInstanceUID != other.SOPInstanceUID and first.SeriesInstanceUID != other.SeriesInstanceUID
    assert first.SOPInstanceUID != pydicom.dcmread(again / "seg.dcm").SOPInstanceUID
    record = json.loads((again / "job.json").read_text())
    assert [result["kind"] for result in record["results"]] == ["seg", "rtstruct"]
    shutil.rmtree(again)

"""Truncated, mixed and unusually encoded series, and annotation objects among the images, in `noctule explain` and
`noctule run`. Expected results follow from the generation of each series, never from the program's own output."""

import json
import struct
import subprocess

import numpy as np
import pydicom
import pytest
from conftest import BIN
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

CT, MR, PT = "1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.4", "1.2.840.10008.5.1.4.1.1.128"
SLICES = 12
CONFIG = """
root = "%s";
pipelines = ( { name = "any"; segments = ( { label = "A"; method = "range"; range = [ 500.0, 5000.0 ];
  type = { code = "T"; scheme = "99X"; meaning = "t"; }; } ); },
  { name = "drawn"; segments = ( { label = "B"; method = "object"; object = { kind = "rtstruct"; roi = "box"; };
  type = { code = "T"; scheme = "99X"; meaning = "t"; }; } ); } );
"""


def slice_of(number, sop_class=CT, modality="CT", uid="2.25.1", **more):
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = sop_class
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"{uid}.9.{number + 1}"
    ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.FrameOfReferenceUID = f"{uid}.1", f"{uid}.2", f"{uid}.3"
    ds.SpecificCharacterSet, ds.ImageType = "ISO_IR 100", ["ORIGINAL", "PRIMARY", "AXIAL"]
    ds.StudyDate, ds.StudyTime, ds.AccessionNumber, ds.StudyID, ds.ReferringPhysicianName = "20200101", "120000", "", "1", ""
    ds.Modality, ds.Manufacturer, ds.SeriesNumber, ds.InstanceNumber = modality, "Acme", 4, number + 1
    ds.PatientName, ds.PatientID, ds.PatientBirthDate, ds.PatientSex = "Test^One", "T1", "", ""
    ds.SliceThickness, ds.PixelSpacing = 5, [2, 2]
    ds.ImagePositionPatient, ds.ImageOrientationPatient = [-32, -24, 5 * number], [1, 0, 0, 0, 1, 0]
    ds.SamplesPerPixel, ds.PhotometricInterpretation, ds.Rows, ds.Columns = 1, "MONOCHROME2", 24, 32
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 16, 15, 0
    ds.RescaleIntercept, ds.RescaleSlope = 0, 1
    pixels = np.zeros((24, 32), np.uint16)
    pixels[6:18, 8:24] = 1000
    ds.PixelData = pixels.tobytes()
    ds["PixelData"].VR = "OW"
    if modality == "PT":
        ds.Units, ds.NumberOfSlices, ds.SeriesType = "BQML", SLICES, ["STATIC", "IMAGE"]
    for keyword, value in more.items():
        setattr(ds, keyword, value)
    return ds


def written(folder, slices):
    folder.mkdir(parents=True, exist_ok=True)
    for ds in slices:
        ds.save_as(folder / f"{ds.SOPInstanceUID}.dcm", enforce_file_format=True)
    return folder


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "noctule.conf"
    path.write_text(CONFIG % (tmp_path / "root"))
    return path


def explained(config, folder):
    done = subprocess.run([BIN / "noctule", "--config", config, "explain", "--json", "-p", "any", folder],
                          text=True, capture_output=True)
    report = json.loads(done.stdout)
    stacks = [(stack["slices"], stack["code"]) for series in report["series"] for stack in series["stacks"]]
    codes = [series["code"] for series in report["series"] if series["code"]]
    return stacks, codes + [warning["code"] for warning in report["warnings"]], done.stdout


def private(ds, group, creator, element, vr, value):
    ds.private_block(group, creator, create=True).add_new(element, vr, value)
    return ds


# --------------------------------------------------------------------------- counts of headers ----


def philips(number):
    return private(slice_of(number, MR, "MR"), 0x2001, "Philips Imaging DD 001", 0x18, "SL", SLICES)


def ge(number):
    return private(slice_of(number, MR, "MR"), 0x0021, "GEMS_RELA_01", 0x4F, "SS", SLICES)


def protocol(lines):
    text = "### ASCCONV BEGIN ###\n" + "".join(f"{name}\t = \t{value}\n" for name, value in lines) + "### ASCCONV END ###"
    return b"SV10\4\3\2\1" + b"\0" * 100 + text.encode() + b"\0" * (len(text) % 2)


def xprotocol(lines):
    """Returns a protocol of Siemens' XA software: XML-like parameters, and the same lines as in earlier versions."""
    return b'<XProtocol> \n{\n  <Name> "PhoenixMetaProtocol" \n' + protocol(lines)[108:]


def siemens(number, lines):
    return private(slice_of(number, MR, "MR"), 0x0029, "SIEMENS CSA HEADER", 0x20, "OB", protocol(lines))


COUNTED = {
    "Philips": philips,
    "GE": ge,
    "Siemens 2-D": lambda number: siemens(number, [("sSliceArray.lSize", SLICES), ("sKSpace.lImagesPerSlab", 64),
                                                   ("sKSpace.ucDimension", "0x2")]),
    "Siemens 3-D": lambda number: siemens(number, [("sSliceArray.lSize", 1), ("sKSpace.lImagesPerSlab", SLICES),
                                                   ("sKSpace.ucDimension", "0x4")]),
    "Siemens XA": lambda number: private(slice_of(number, MR, "MR"), 0x0021, "SIEMENS MR SDS 01", 0x19, "OB", xprotocol(
        [("sSliceArray.lSize", 1), ("sKSpace.lImagesPerSlab", SLICES), ("sKSpace.lPartitions", 10), ("sKSpace.ucDimension", "4")])),
}
PARTS = {"first half": range(SLICES // 2), "second half": range(SLICES // 2, SLICES), "without the last": range(SLICES - 1)}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("vendor", COUNTED)
def test_fewer_slices_than_the_header_counts_are_incomplete(config, tmp_path, vendor, part):
    make = COUNTED[vendor]
    assert explained(config, written(tmp_path / "whole", map(make, range(SLICES))))[0] == [(SLICES, "")]
    assert explained(config, written(tmp_path / "part", map(make, PARTS[part])))[0] == [(len(PARTS[part]), "INCOMPLETE_SERIES")]


def test_static_pet_is_not_multiplied_by_time_slices(config, tmp_path):
    """GE writes Number of Time Slices into static series. The check must not multiply by it."""
    slices = [slice_of(i, PT, "PT", NumberOfTimeSlices=7) for i in range(SLICES)]
    assert explained(config, written(tmp_path / "static", slices))[0] == [(SLICES, "")]
    for ds in slices:
        ds.SeriesType = ["DYNAMIC", "IMAGE"]
    assert explained(config, written(tmp_path / "static", slices))[0] == [(SLICES, "INCOMPLETE_SERIES")]


# ---------------------------------------------------------------------------- odd but sound files ----


def item(value, undefined=False):
    if undefined:
        return struct.pack("<HHL", 0xFFFE, 0xE000, 0xFFFFFFFF) + value + struct.pack("<HHL", 0xFFFE, 0xE00D, 0)
    return struct.pack("<HHL", 0xFFFE, 0xE000, len(value)) + value


END = struct.pack("<HHL", 0xFFFE, 0xE0DD, 0)


def long(group, element, vr, value, undefined=False):
    return struct.pack("<HH", group, element) + vr + b"\0\0" + struct.pack("<L", 0xFFFFFFFF if undefined else len(value)) + value


def short(group, element, vr, value):
    return struct.pack("<HH", group, element) + vr + struct.pack("<H", len(value)) + value


def spliced(folder, before, data):
    """Inserts bytes before an element of each file."""
    for path in folder.iterdir():
        whole = path.read_bytes()
        at = whole.index(struct.pack("<HH", *before), 400)
        path.write_bytes(whole[:at] + data + whole[at:])
    return folder


def test_icons_with_encapsulated_pixels_are_skipped(config, tmp_path):
    icon = short(0x28, 0x10, b"US", struct.pack("<H", 8)) + long(
        0x7FE0, 0x10, b"OB", item(b"") + item(b"\xff\x4f\xff\x51") + END, True)
    folder = written(tmp_path / "in", map(slice_of, range(SLICES)))
    assert explained(config, spliced(folder, (0x7FE0, 0x10), long(0x88, 0x200, b"SQ", item(icon, True) + END, True)))[0] == [
        (SLICES, "")]


@pytest.mark.parametrize("vr", [b"UN", b"SQ"])
def test_needless_delimiters_are_tolerated(config, tmp_path, vr):
    """Extra delimiters in a Philips sequence of known length, behind its item and within it."""
    creator = short(0x2005, 0x14, b"LO", b"Philips MR Imaging DD 005 ")
    implicit = struct.pack("<HHL", 0x2005, 0x0014, 26) + b"Philips MR Imaging DD 005 "
    inner = implicit if vr == b"UN" else creator
    delimited = item(inner + struct.pack("<HHL", 0xFFFE, 0xE00D, 0)) + END
    folder = written(tmp_path / "in", (slice_of(i, MR, "MR") for i in range(SLICES)))
    stacks, codes, _ = explained(config, spliced(folder, (0x7FE0, 0x10), creator + long(0x2005, 0x140F, vr, delimited)))
    assert (stacks, codes) == ([(SLICES, "")], [])


# -------------------------------------------------------------------------------------- patients ----


@pytest.mark.parametrize("other", ["TEST^ONE", "Test^One^^^", "Test^One=\u8a66\u9a13^\u4e00", "Tést^One"])
def test_spellings_of_one_name_are_one_patient(config, tmp_path, other):
    slices = [slice_of(i) for i in range(SLICES)]
    for ds in slices[::2]:
        ds.PatientName = other if "é" not in other else "Tést^One"
        ds.SpecificCharacterSet = "ISO_IR 192"
    for ds in slices[1::2]:
        ds.PatientName = "Tést^One" if "é" in other else "Test^One"
    assert explained(config, written(tmp_path / "in", slices))[0] == [(SLICES, "")]


def accepted(config, folder, output, check=True):
    return subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "any", "--accept-missing", "-o", output, folder],
                          text=True, capture_output=True, check=check)


def test_other_names_are_refused_until_accepted(config, tmp_path):
    slices = [slice_of(i, PatientName="Test^One" if i else "Other^Two") for i in range(SLICES)]
    folder = written(tmp_path / "in", slices)
    assert explained(config, folder)[1] == ["MIXED_PATIENTS"]
    assert "accepted: MIXED_PATIENTS" in accepted(config, folder, tmp_path / "out").stdout
    for ds in slices:
        ds.PatientName, ds.PatientID = "Test^One", "T1" if ds.InstanceNumber > 1 else "T2"
    refused = accepted(config, written(tmp_path / "ids", slices), tmp_path / "no", check=False)
    assert refused.returncode == 1 and "MIXED_PATIENTS" in refused.stderr


def test_frames_of_reference_of_each_slice_are_refused_until_accepted(config, tmp_path):
    folder = written(tmp_path / "in", [slice_of(i, FrameOfReferenceUID=f"2.25.3.{i}") for i in range(SLICES)])
    assert explained(config, folder)[1] == ["MIXED_FRAMES_OF_REFERENCE"]
    assert "accepted: MIXED_FRAMES_OF_REFERENCE" in accepted(config, folder, tmp_path / "out").stdout
    record = json.loads((tmp_path / "out" / "job.json").read_text())
    assert record["volume"]["slices"] == SLICES and record["segments"][0]["voxels"] == 12 * 16 * SLICES


# Alternating halves of two volumes: of two kernels, and 12 Instance Numbers between 1 and 24.
MIXTURES = {"kernels": lambda i: slice_of(i, ConvolutionKernel="H70" if i % 2 else "H30"),
            "numbers": lambda i: slice_of(i, InstanceNumber=i + 1 + SLICES * (i % 2))}


@pytest.mark.parametrize("mixture", MIXTURES)
def test_a_mixture_is_not_missing_slices(config, tmp_path, mixture):
    folder = written(tmp_path / "in", map(MIXTURES[mixture], range(SLICES)))
    assert {code for _, code in explained(config, folder)[0]} == {"VOLUMES_MIXED"}
    done = accepted(config, folder, tmp_path / "out", check=False)
    assert done.returncode == 1 and "VOLUMES_MIXED" in done.stderr and not list((tmp_path / "out").rglob("*.dcm"))


def test_missing_slices_are_no_mixture(config, tmp_path):
    """Instance Numbers 1, 2, 4, 6 to 12 could belong to two volumes, but the positions are those of one volume. The
    code must be of missing slices."""
    left = [1, *range(2, SLICES + 1, 2)]
    folder = written(tmp_path / "in", [slice_of(number - 1) for number in left])
    assert explained(config, folder)[0][0][1] in ("SPACING_NOT_UNIFORM", "INCOMPLETE_SERIES", "MISSING_SLICE")
    accepted(config, folder, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "job.json").read_text())["volume"]["slices"] == SLICES


def test_two_slabs_are_called_so(config, tmp_path):
    """Twice six slices, 5 mm apart, with a gap of 60 mm. The message must not state a number of missing slices."""
    places = [5 * (i if i < 6 else i + 11) for i in range(SLICES)]
    folder = written(tmp_path / "in", [slice_of(i, ImagePositionPatient=[-32, -24, z]) for i, z in enumerate(places)])
    stacks, _, text = explained(config, folder)
    assert stacks == [(SLICES, "MISSING_SLICE")] and "Two slabs of 6 and 6 slices are 60 mm apart" in text


@pytest.mark.parametrize("identifier", [None, 1])
def test_one_temporal_position_is_no_remark(config, tmp_path, identifier):
    more = {"NumberOfTemporalPositions": 1} | ({"TemporalPositionIdentifier": identifier} if identifier else {})
    folder = written(tmp_path / "in", [slice_of(i, MR, "MR", **more) for i in range(SLICES)])
    subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "any", "-o", tmp_path / "out", folder], check=True)
    assert json.loads((tmp_path / "out" / "job.json").read_text())["note"] == ""


# --------------------------------------------------------------------------------------- values ----


def mapping(slope):
    scale = Dataset()
    scale.RealWorldValueFirstValueMapped, scale.RealWorldValueLastValueMapped = 0, 4095
    scale.RealWorldValueIntercept, scale.RealWorldValueSlope, scale.LUTLabel = 0.0, float(slope), "x"
    return Sequence([scale])


def test_real_world_values_are_used_or_refused(config, tmp_path):
    same = [slice_of(i, RealWorldValueMappingSequence=mapping(4.0076)) for i in range(SLICES)]
    stacks, _, text = explained(config, written(tmp_path / "same", same))
    assert stacks == [(SLICES, "")] and "4.0076" in text
    done = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "any", "-o", tmp_path / "out", tmp_path / "same"],
                          text=True, capture_output=True, check=True)
    assert "Real World Value Mapping (slope 4.0076, intercept 0) is not applied" in done.stdout
    own = [slice_of(i, RealWorldValueMappingSequence=mapping(1 + i)) for i in range(SLICES)]
    assert explained(config, written(tmp_path / "own", own))[0] == [(SLICES, "RESCALE_INVALID")]


def test_units_are_the_same_throughout(config, tmp_path):
    slices = [slice_of(i, PT, "PT", Units="CNTS" if i < 5 else "BQML") for i in range(SLICES)]
    assert explained(config, written(tmp_path / "in", slices))[0] == [(SLICES, "PIXELS_MIXED")]


# ------------------------------------------------------------------------------- folders and objects ----


def test_a_broken_link_is_one_unreadable_file(config, tmp_path):
    written(tmp_path / "in" / "a", map(slice_of, range(SLICES)))
    written(tmp_path / "in" / "b", (slice_of(i, uid="2.25.2") for i in range(SLICES)))
    (tmp_path / "in" / "a" / "gone.dcm").symlink_to(tmp_path / "nowhere")
    stacks, codes, _ = explained(config, tmp_path / "in")
    assert sorted(stacks) == [(SLICES, ""), (SLICES, "INCOMPLETE_SERIES")] and codes == ["FILE_UNREADABLE"]


def box(slices, rows):
    """Returns an RTSTRUCT with a box of 6 pixels by `rows` on one slice."""
    first = slices[0]
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds.SOPClassUID = ds.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.481.3"
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.Modality = first.StudyInstanceUID, generate_uid(), "RTSTRUCT"
    ds.PatientName, ds.PatientID, ds.StructureSetLabel = first.PatientName, first.PatientID, "x"
    series, study, frame = Dataset(), Dataset(), Dataset()
    series.SeriesInstanceUID = first.SeriesInstanceUID
    study.RTReferencedSeriesSequence = Sequence([series])
    frame.FrameOfReferenceUID, frame.RTReferencedStudySequence = first.FrameOfReferenceUID, Sequence([study])
    ds.ReferencedFrameOfReferenceSequence = Sequence([frame])
    roi, drawn, contour = Dataset(), Dataset(), Dataset()
    roi.ROINumber, roi.ROIName, roi.ReferencedFrameOfReferenceUID = 1, "box", first.FrameOfReferenceUID
    x, y, z = (float(v) for v in slices[5].ImagePositionPatient)
    corners = [(7, 3), (19, 3), (19, 3 + 2 * rows), (7, 3 + 2 * rows)]
    contour.ContourGeometricType, contour.NumberOfContourPoints = "CLOSED_PLANAR", 4
    contour.ContourData = [v for a, b in corners for v in (x + a, y + b, z)]
    drawn.ReferencedROINumber, drawn.ContourSequence = 1, Sequence([contour])
    ds.StructureSetROISequence, ds.ROIContourSequence = Sequence([roi]), Sequence([drawn])
    return ds


def test_objects_among_the_images_are_used(config, tmp_path):
    """Two patients in one folder: each series uses its own annotation object."""
    for patient, rows in ((1, 5), (2, 8)):
        slices = [slice_of(i, uid=f"2.25.{patient}", PatientID=f"T{patient}", SeriesDescription="Head 5mm", SeriesNumber=patient)
                  for i in range(SLICES)]
        written(tmp_path / "in" / str(patient), [*slices, box(slices, rows)])
    subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "drawn", "-o", tmp_path / "out", tmp_path / "in"],
                   text=True, capture_output=True, check=True)
    voxels = {path.name: json.loads((path / "job.json").read_text())["segments"][0]["voxels"]
              for path in (tmp_path / "out").iterdir()}
    assert voxels == {"CT-1-Head-5mm": 6 * 5, "CT-2-Head-5mm": 6 * 8}

"""LABELMAP segmentation objects, and compressed ones of every type: RLE Lossless and deflated.

The checks of attributes are those of test_seg.py. Voxels are compared with the masks by pydicom, highdicom, DCMTK
(dcmdrle, dcmconv) and dcmqi."""

import copy
import json
import os
import subprocess
import sys

import highdicom
import numpy
import pydicom
import pytest
from pydicom.uid import DeflatedExplicitVRLittleEndian, ExplicitVRLittleEndian, RLELossless

from conftest import SHARED, needs_shared, run_program
from test_seg import (apart, assert_dcmdump_reads, assert_equipment_and_series, assert_highdicom_reads, assert_inherits,
                      assert_references, assert_shared_groups, blobs, classic, dciodvfy_remarks, decimal_strings, enhanced,
                      frame_plane, judge, planes_of, write)
from test_seg_fractional import maps_of, stored_values

COMPRESSIONS = {"none": ((), ExplicitVRLittleEndian), "rle": (("--rle",), RLELossless),
                "deflated": (("--deflated",), DeflatedExplicitVRLittleEndian)}
DCMQI = os.path.join(sys.prefix, "bin", "segimage2itkimage")

# dciodvfy of 2022 has no Label Map Segmentation, which became part of the standard in 2024, and no deflated data sets.
UNKNOWN = ("SegmentNumber not monotonically increasing", "Information Object Not found")


def labels_of(masks):
    """Returns the label of each voxel: the number of the last segment that has it."""
    labels = numpy.zeros(masks.shape[1:], numpy.uint16)
    for number, mask in enumerate(masks, start=1):
        labels[mask] = number
    return labels


def assert_labelmap_segments(seg, count):
    background, *segments = seg.SegmentSequence
    assert (background.SegmentNumber, background.SegmentLabel, seg.PixelPaddingValue) == (0, "Background", 0)
    for codes in (background.SegmentedPropertyCategoryCodeSequence, background.SegmentedPropertyTypeCodeSequence):
        assert (codes[0].CodeValue, codes[0].CodingSchemeDesignator) == ("125040", "DCM")
    assert [item.SegmentNumber for item in segments] == list(range(1, count + 1))
    assert len({item.TrackingUID for item in segments}) == count and "TrackingUID" not in background


def as_segmentation(seg, path):
    """Writes it as a BINARY or FRACTIONAL object of the class that dciodvfy of 2022 knows, for all other rules."""
    seg = pydicom.dcmread(seg)
    seg.SOPClassUID = seg.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.66.4"
    seg.SegmentationType, seg.SegmentationFractionalType, seg.MaximumFractionalValue = "FRACTIONAL", "PROBABILITY", 255
    del seg.PixelPaddingValue
    seg.SegmentSequence = seg.SegmentSequence[1:]
    for group in seg.PerFrameFunctionalGroupsSequence:
        identified = pydicom.Dataset()
        identified.ReferencedSegmentNumber = 1
        group.SegmentIdentificationSequence = [identified]
    seg.save_as(path)
    return path


def judge_labelmap(path, summary, paths, masks, syntax=ExplicitVRLittleEndian):
    planes, labels = planes_of(paths), labels_of(masks)
    assert_dcmdump_reads(path)
    assert path.stat().st_size == summary["bytes"]
    seg = pydicom.dcmread(path)
    assert seg.file_meta.TransferSyntaxUID == syntax
    assert seg.SOPClassUID == seg.file_meta.MediaStorageSOPClassUID == "1.2.840.10008.5.1.4.1.1.66.7"
    bits = 8 if len(masks) <= 255 else 16
    assert (seg.SegmentationType, seg.SegmentsOverlap) == ("LABELMAP", "NO")
    assert (seg.BitsAllocated, seg.BitsStored, seg.HighBit, seg.PhotometricInterpretation) == (bits, bits, bits - 1, "MONOCHROME2")
    assert all(len(text) <= 16 for text in decimal_strings(seg))
    assert_inherits(seg, planes[0].source)
    assert_equipment_and_series(seg, planes, summary)
    assert_labelmap_segments(seg, len(masks))
    assert_shared_groups(seg, planes)
    assert_references(seg, planes)
    frames = seg.pixel_array.reshape(-1, seg.Rows, seg.Columns)
    used = [plane for plane in range(len(planes)) if labels[plane].any()]
    assert seg.NumberOfFrames == summary["frames"] == len(used)
    assert [frame_plane(group, planes) for group in seg.PerFrameFunctionalGroupsSequence] == used
    assert not any("SegmentIdentificationSequence" in group for group in seg.PerFrameFunctionalGroupsSequence)
    assert [group.FrameContentSequence[0].DimensionIndexValues for group in seg.PerFrameFunctionalGroupsSequence] == list(
        range(1, len(used) + 1))
    assert [item.DimensionIndexPointer for item in seg.DimensionIndexSequence] == [0x00200032]
    assert numpy.array_equal(frames, labels[used])
    uids = [plane.source.SOPInstanceUID for plane in planes]
    if planes[0].frame is None:
        assert numpy.array_equal(highdicom.seg.segread(path).get_pixels_by_source_instance(
            uids, combine_segments=True, assert_missing_frames_are_empty=True), labels)
    if len(masks) < 256:  # highdicom 0.28.2 returns no voxel of segment 256 by itself
        assert_highdicom_reads(path, planes, numpy.stack([labels == number for number in range(1, len(masks) + 1)]))
    assert_dcmqi_reads(path, labels[used])
    return seg


def assert_dcmqi_reads(path, labels):
    folder = path.parent / "dcmqi"
    folder.mkdir(exist_ok=True)
    done = subprocess.run([DCMQI, "--inputDICOM", path, "--outputDirectory", folder, "--mergeSegments", "--outputType", "nifti"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    import nibabel
    (image,) = folder.glob("*.nii.gz")
    read = nibabel.load(image).get_fdata().astype(int).T
    image.unlink()
    assert read.shape == labels.shape and (numpy.array_equal(read, labels) or numpy.array_equal(read[::-1], labels))


def with_middle(segments, planes, rows, columns):
    """Masks that are apart; the first one has the middle voxel, also of the smallest volumes."""
    masks = apart(segments, planes, rows, columns)
    masks[:, planes // 2, rows // 2, columns // 2] = False
    masks[0, planes // 2, rows // 2, columns // 2] = True
    return masks


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("planes, rows, columns, segments", [(12, 64, 64, 1), (7, 257, 255, 3), (1, 33, 31, 1), (5, 3, 1, 1)])
def test_shapes(tmp_path, planes, rows, columns, segments, compression):
    options, syntax = COMPRESSIONS[compression]
    paths = classic(tmp_path / "in", planes, rows, columns)
    masks = with_middle(segments, planes, rows, columns)
    judge_labelmap(*write(tmp_path, paths, masks, options=["--labelmap", *options]), paths, masks, syntax)


def test_more_than_255_segments(tmp_path):
    paths = classic(tmp_path / "in", 2, 16, 20)
    masks = numpy.zeros((256, 2, 16, 20), bool)
    for number in range(256):
        masks[number].flat[2 * number] = True
    for options, syntax in COMPRESSIONS.values():
        judge_labelmap(*write(tmp_path, paths, masks, options=["--labelmap", *options]), paths, masks, syntax)


def test_enhanced_and_oblique(tmp_path):
    for name, paths in ("enhanced", enhanced(tmp_path / "enhanced", 11, 33, 47)), ("oblique", classic(
            tmp_path / "oblique", 11, 33, 47, oblique=True)):
        masks = apart(2, 11, 33, 47)
        judge_labelmap(*write(tmp_path, paths, masks, options=["--labelmap", "--rle"]), paths, masks, RLELossless), name


def test_overlap(tmp_path):
    """Refused with both labels and a voxel, or the last segment has it."""
    paths = classic(tmp_path / "in", 9, 50, 61)
    masks = blobs(3, 9, 50, 61)
    z, y, x = numpy.argwhere(masks.sum(axis=0) > 1)[0]
    first, second = numpy.flatnonzero(masks[:, z, y, x])[:2] + 1
    raw = tmp_path / "voxels.raw"
    masks.astype(numpy.uint8).tofile(raw)
    labels = [part for number in (1, 2, 3) for part in ("--label", f"Part {number}")]
    done = run_program("write_seg", "--labelmap", *labels, raw, tmp_path / "seg.dcm", *paths, check=False)
    assert done.returncode == 1 and done.stderr.startswith("SEGMENTS_OVERLAP")
    assert f'Voxel ({x}, {y}, {z}) is in the segments "Part {first}" and "Part {second}"' in done.stderr
    judge_labelmap(*write(tmp_path, paths, masks, options=["--labelmap", "--overlap-last"]), paths,
                   numpy.stack([labels_of(masks) == number for number in (1, 2, 3)]))


def test_dciodvfy(tmp_path):
    """Its only error is the unknown class; the same object under a known class has no error."""
    paths = classic(tmp_path / "in", 5, 30, 31)
    masks = apart(2, 5, 30, 31)
    for option in [], ["--rle"]:
        path, _ = write(tmp_path, paths, masks, options=["--labelmap", *option])
        errors = [remark for remark in dciodvfy_remarks(path) if remark.startswith("Error")]
        assert len(errors) == 2 and all(unknown in error for unknown, error in zip(UNKNOWN, errors)), errors
        remarks = dciodvfy_remarks(as_segmentation(path, tmp_path / "known.dcm"))
        assert [remark for remark in remarks if remark.startswith("Error")] == []


@pytest.mark.parametrize("kind", ["BINARY", "FRACTIONAL", "LABELMAP"])
def test_dcmtk_decodes(tmp_path, kind):
    """DCMTK makes of each compressed file the data set that is written without compression, byte for byte."""
    paths = classic(tmp_path / "in", 7, 57, 63)
    voxels = maps_of(2, 7, 57, 63) if kind == "FRACTIONAL" else apart(2, 7, 57, 63)
    more = ["--labelmap"] if kind == "LABELMAP" else []
    plain = write(tmp_path, paths, voxels, options=more)[0].rename(tmp_path / "plain.dcm")
    for option, expected in ("--rle", DeflatedExplicitVRLittleEndian if kind == "BINARY" else RLELossless), (
            "--deflated", DeflatedExplicitVRLittleEndian):
        path, summary = write(tmp_path, paths, voxels, options=[*more, option])
        assert pydicom.dcmread(path).file_meta.TransferSyntaxUID == expected
        assert path.stat().st_size == summary["bytes"]
        if expected == RLELossless:
            subprocess.run(["dcmdrle", path, tmp_path / "decoded.dcm"], check=True)
        else:
            subprocess.run(["dcmconv", "+te", path, tmp_path / "decoded.dcm"], check=True)
        ours, theirs = pydicom.dcmread(tmp_path / "plain.dcm"), pydicom.dcmread(tmp_path / "decoded.dcm")
        assert ours.PixelData == theirs.PixelData
        del ours.PixelData, theirs.PixelData
        assert ours == theirs
    assert plain.exists()


def test_compressed_binary_and_fractional_objects(tmp_path):
    """All checks of the uncompressed objects."""
    paths = classic(tmp_path / "in", 12, 64, 64)
    masks = apart(3, 12, 64, 64)
    maps = maps_of(2, 12, 64, 64)
    for voxels, stored in (masks, masks), (maps, stored_values(maps)):
        path, summary = write(tmp_path, paths, voxels, options=["--deflated"])
        assert pydicom.dcmread(path).file_meta.TransferSyntaxUID == DeflatedExplicitVRLittleEndian
        assert path.stat().st_size == summary["bytes"]
        inflated = tmp_path / "inflated.dcm"
        subprocess.run(["dcmconv", "+te", path, inflated], check=True)
        judge(inflated, {**summary, "bytes": inflated.stat().st_size}, paths, stored)
        assert_highdicom_reads(path, planes_of(paths), stored)
    path, summary = write(tmp_path, paths, maps, options=["--rle"])
    seg = pydicom.dcmread(path)
    used = stored_values(maps)[:, 1:-1].reshape(-1, 64, 64)
    assert seg.file_meta.TransferSyntaxUID == RLELossless and numpy.array_equal(seg.pixel_array, used)
    assert_highdicom_reads(path, planes_of(paths), stored_values(maps))


def test_same_input_same_bytes(tmp_path):
    paths = classic(tmp_path / "in", 6, 40, 44)
    masks = apart(2, 6, 40, 44)
    for options, _ in COMPRESSIONS.values():
        first = write(tmp_path, paths, masks, options=["--labelmap", *options])[0].read_bytes()
        assert write(tmp_path, paths[::-1], masks, options=["--labelmap", *options])[0].read_bytes() == first


def test_uids_do_not_depend_on_the_compression(tmp_path):
    paths = classic(tmp_path / "in", 6, 40, 44)
    masks = apart(2, 6, 40, 44)
    written = [write(tmp_path, paths, masks, options=["--labelmap", *options])[1] for options, _ in COMPRESSIONS.values()]
    assert len({summary["sop_instance_uid"] for summary in written}) == 1
    binary = write(tmp_path, paths, masks)[1]
    assert binary["sop_instance_uid"] != written[0]["sop_instance_uid"] and binary["series_uid"] != written[0]["series_uid"]


@needs_shared
def test_a_real_series(tmp_path):
    paths = sorted((SHARED / "ct-head-5mm").glob("*.dcm"))
    planes = planes_of(paths)
    values = numpy.stack([plane.source.pixel_array * float(plane.source.RescaleSlope) + float(plane.source.RescaleIntercept)
                          for plane in planes])
    masks = numpy.stack([(values > -200) & (values < 0), (values >= 0) & (values < 90), values > 200])
    for options, syntax in COMPRESSIONS.values():
        judge_labelmap(*write(tmp_path, paths, masks, options=["--labelmap", *options]), paths, masks, syntax)


def test_highdicom_writes_the_same_voxels(tmp_path):
    """The LABELMAP that highdicom makes of the masks has the same frames, segment numbers and padding value."""
    paths = classic(tmp_path / "in", 5, 30, 31)
    masks = apart(2, 5, 30, 31)
    ours = pydicom.dcmread(write(tmp_path, paths, masks, options=["--labelmap"])[0])
    algorithm = highdicom.AlgorithmIdentificationSequence("a", pydicom.sr.codedict.codes.cid7162.ArtificialIntelligence, "1")
    described = [highdicom.seg.SegmentDescription(
        number, f"Part {number}", pydicom.sr.codedict.codes.SCT.AnatomicalStructure, pydicom.sr.codedict.codes.SCT.Brain,
        "AUTOMATIC", algorithm) for number in (1, 2)]
    theirs = highdicom.seg.Segmentation(
        [pydicom.dcmread(path) for path in paths], labels_of(masks).astype(numpy.uint8), "LABELMAP", described,
        highdicom.UID(), 1, highdicom.UID(), 1, "m", "m", "1", "1")
    positions = [float(group.PlanePositionSequence[0].ImagePositionPatient[2]) for group in theirs.PerFrameFunctionalGroupsSequence]
    order = numpy.argsort(positions)
    assert numpy.array_equal(ours.pixel_array, theirs.pixel_array[order])
    for name in ("SOPClassUID", "SegmentationType", "PixelPaddingValue", "BitsAllocated", "SegmentsOverlap", "PhotometricInterpretation"):
        assert ours[name].value == theirs[name].value, name
    assert [item.SegmentNumber for item in ours.SegmentSequence] == [item.SegmentNumber for item in theirs.SegmentSequence]


# --- other forms of a written object ---


def convert(how, source, output):
    done = run_program("convert_seg", how, source, output, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def without_identity(seg):
    """Returns the data set without the differences between the BINARY object of the masks and that made of the LABELMAP."""
    seg = copy.deepcopy(seg)
    for name in ("SOPInstanceUID", "SeriesInstanceUID", "SeriesDescription", "ContentDescription"):
        delattr(seg, name)
    for item in (*seg.DimensionOrganizationSequence, *seg.DimensionIndexSequence):
        del item.DimensionOrganizationUID
    return seg


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("planes, rows, columns, segments", [(12, 64, 64, 1), (7, 57, 63, 3), (1, 33, 31, 2), (5, 3, 1, 1)])
def test_binary_of_a_labelmap(tmp_path, planes, rows, columns, segments, compression):
    """It is the BINARY object that Noctule writes of the same masks, but for UIDs and descriptions."""
    options, _ = COMPRESSIONS[compression]
    paths = classic(tmp_path / "in", planes, rows, columns)
    masks = with_middle(segments, planes, rows, columns)
    direct = pydicom.dcmread(write(tmp_path, paths, masks)[0])
    source, _ = write(tmp_path, paths, masks, options=["--labelmap", *options])
    output = tmp_path / "binary.dcm"
    summary = convert("binary", source, output)
    seg = judge(output, summary, paths, masks)
    assert summary["sop_class_uid"] == seg.SOPClassUID == seg.file_meta.MediaStorageSOPClassUID == "1.2.840.10008.5.1.4.1.1.66.4"
    assert without_identity(seg) == without_identity(direct)
    labelmap = pydicom.dcmread(source)
    uids = {seg.SOPInstanceUID, labelmap.SOPInstanceUID, direct.SOPInstanceUID}
    assert len(uids) == 3 and seg.SeriesInstanceUID not in (labelmap.SeriesInstanceUID, direct.SeriesInstanceUID)
    again = tmp_path / "again.dcm"
    assert convert("binary", source, again) == summary and again.read_bytes() == output.read_bytes()


def test_binary_of_more_than_255_segments_and_an_empty_one(tmp_path):
    paths = classic(tmp_path / "in", 2, 16, 20)
    masks = numpy.zeros((256, 2, 16, 20), bool)
    for number in [number for number in range(256) if number != 100]:
        masks[number].flat[2 * number] = True
    for options, _ in COMPRESSIONS.values():
        source, _ = write(tmp_path, paths, masks, options=["--labelmap", *options])
        seg = judge(tmp_path / "binary.dcm", convert("binary", source, tmp_path / "binary.dcm"), paths, masks)
        assert len(seg.SegmentSequence) == 256 and seg.NumberOfFrames == 255


@pytest.mark.parametrize("kind", ["BINARY", "FRACTIONAL", "LABELMAP", "LABELMAP of 16 bits"])
def test_uncompressed_form(tmp_path, kind):
    """It is the file that Noctule writes without compression, byte for byte."""
    paths = classic(tmp_path / "in", 7, 57, 63)
    voxels = maps_of(2, 7, 57, 63) if kind == "FRACTIONAL" else apart(256 if "16" in kind else 2, 7, 57, 63)
    more = ["--labelmap"] if "LABELMAP" in kind else []
    plain = write(tmp_path, paths, voxels, options=more)[0].read_bytes()
    for options, _ in COMPRESSIONS.values():
        source, summary = write(tmp_path, paths, voxels, options=[*more, *options])
        converted = convert("uncompressed", source, tmp_path / "uncompressed.dcm")
        assert (tmp_path / "uncompressed.dcm").read_bytes() == plain
        assert (converted["sop_instance_uid"], converted["frames"]) == (summary["sop_instance_uid"], summary["frames"])


def test_refused_conversions(tmp_path):
    paths = classic(tmp_path / "in", 5, 30, 31)
    masks = apart(2, 5, 30, 31)
    binary, _ = write(tmp_path, paths, masks)
    refused = run_program("convert_seg", "binary", binary, tmp_path / "no.dcm", check=False)
    assert refused.returncode == 1 and refused.stderr.startswith("SOP_CLASS_UNSUPPORTED")
    for options, _ in COMPRESSIONS.values():
        labelmap, _ = write(tmp_path, paths, masks, options=["--labelmap", *options])
        whole = labelmap.read_bytes()
        for size in range(0, len(whole) - 2, 997):
            labelmap.write_bytes(whole[:size])
            for how in ("binary", "uncompressed"):
                refused = run_program("convert_seg", how, labelmap, tmp_path / "no.dcm", check=False)
                assert refused.returncode == 1, (how, size, refused.stdout, options)

"""Segmentation objects, checked by independent readers: pydicom, highdicom, dciodvfy, dcmdump.

write_seg reads generated or real series, writes the given masks or maps, and reads them back. All other checks use
other software, first for errors that dciodvfy does not detect. This file has the checks, and the cases of BINARY
objects. test_seg_fractional.py has those of FRACTIONAL ones."""

import json
import subprocess

import highdicom
import numpy
import pydicom
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import CTImageStorage, EnhancedCTImageStorage, ExplicitVRLittleEndian, generate_uid

from conftest import SHARED, needs_shared, run_program

ROOT = "1.2.826.0.1.3680043.8.498."


# --- sources ---


def base_dataset(seed, sop_class, rows, columns):
    source = Dataset()
    source.SOPClassUID = sop_class
    source.SOPInstanceUID = generate_uid(ROOT, [seed, "instance"])
    source.StudyInstanceUID = generate_uid(ROOT, ["study"])
    source.SeriesInstanceUID = generate_uid(ROOT, ["series"])
    source.FrameOfReferenceUID = generate_uid(ROOT, ["frame of reference"])
    source.PositionReferenceIndicator = ""
    source.PatientName = "Doe^Jane"
    source.PatientID = "P-1"
    source.PatientBirthDate = "19700101"
    source.PatientSex = "F"
    source.StudyDate = "20240229"
    source.StudyTime = "101112"
    source.StudyID = "S1"
    source.AccessionNumber = "A1"
    source.ReferringPhysicianName = ""
    source.StudyDescription = "Head"
    source.Modality = "CT"
    source.Manufacturer = "Scanner"
    source.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    source.SeriesNumber = 2
    source.SamplesPerPixel = 1
    source.PhotometricInterpretation = "MONOCHROME2"
    source.Rows = rows
    source.Columns = columns
    source.BitsAllocated = 16
    source.BitsStored = 12
    source.HighBit = 11
    source.PixelRepresentation = 0
    return source


def save(source, path):
    source.file_meta = FileMetaDataset()
    source.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    source.save_as(path, enforce_file_format=True)
    return path


def classic(folder, planes, rows, columns, oblique=False, **attributes):
    """Returns the files of a classic CT series. Names do not follow the order of positions."""
    folder.mkdir(exist_ok=True)
    row, column = ([0.8, 0.6, 0.0], [-0.6, 0.8, 0.0]) if oblique else ([1, 0, 0], [0, 1, 0])
    paths = []
    for index in range(planes):
        source = base_dataset(str(index), CTImageStorage, rows, columns)
        source.InstanceNumber = planes - index
        source.ImagePositionPatient = [-100.5, -80.25, 2.5 * index - 10]
        source.ImageOrientationPatient = [*row, *column]
        source.PixelSpacing = [0.5, 0.75]
        source.SliceThickness = 2.5
        source.RescaleIntercept = -1024
        source.RescaleSlope = 1
        source.PixelData = numpy.full((rows, columns), 1000 + index, numpy.uint16).tobytes()
        for keyword, value in attributes.items():
            if value is None:
                delattr(source, keyword)
            else:
                setattr(source, keyword, value)
        paths.append(save(source, folder / f"{(index * 7919) % 10007:05d}.dcm"))
    return paths


def enhanced(folder, planes, rows, columns):
    """One Enhanced CT instance with frames in no spatial order."""
    folder.mkdir(exist_ok=True)
    source = base_dataset("enhanced", EnhancedCTImageStorage, rows, columns)
    source.ImageType = ["ORIGINAL", "PRIMARY", "VOLUME", "NONE"]
    source.InstanceNumber = 1
    source.NumberOfFrames = planes
    shared = Dataset()
    measures = Dataset()
    measures.PixelSpacing = [0.5, 0.75]
    measures.SliceThickness = 2.5
    shared.PixelMeasuresSequence = Sequence([measures])
    orientation = Dataset()
    orientation.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    shared.PlaneOrientationSequence = Sequence([orientation])
    transformation = Dataset()
    transformation.RescaleIntercept = -1024
    transformation.RescaleSlope = 1
    transformation.RescaleType = "HU"
    shared.PixelValueTransformationSequence = Sequence([transformation])
    source.SharedFunctionalGroupsSequence = Sequence([shared])
    groups = []
    order = [(index * 5 + 3) % planes for index in range(planes)]
    assert sorted(order) == list(range(planes))
    for plane in order:
        group = Dataset()
        position = Dataset()
        position.ImagePositionPatient = [-100.5, -80.25, 2.5 * plane - 10]
        group.PlanePositionSequence = Sequence([position])
        content = Dataset()
        content.StackID = "1"
        content.InStackPositionNumber = plane + 1
        group.FrameContentSequence = Sequence([content])
        groups.append(group)
    source.PerFrameFunctionalGroupsSequence = Sequence(groups)
    frames = numpy.arange(planes, dtype=numpy.uint16)[:, None, None] + numpy.zeros(
        (planes, rows, columns), numpy.uint16
    )
    source.PixelData = frames.tobytes()
    return [save(source, folder / "enhanced.dcm")]


class Plane:
    """One plane of the source as pydicom reads it."""

    def __init__(self, source, frame):
        self.source = source
        self.frame = frame  # from 1; None in a classic instance
        if frame is None:
            holders = [source]
        else:
            groups = [source.PerFrameFunctionalGroupsSequence[frame - 1],
                      source.SharedFunctionalGroupsSequence[0]]
            holders = [group[name][0] for group in groups
                       for name in ("PlanePositionSequence", "PlaneOrientationSequence",
                                    "PixelMeasuresSequence") if name in group]
        for name in ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing"):
            setattr(self, name, next(holder[name].value for holder in holders if name in holder))
        orientation = numpy.array(self.ImageOrientationPatient, float)
        normal = numpy.cross(orientation[:3], orientation[3:])
        self.position = float(numpy.dot(normal, numpy.array(self.ImagePositionPatient, float)))

    @property
    def key(self):
        return (self.source.SOPInstanceUID, self.frame)


def planes_of(paths):
    planes = []
    for path in paths:
        source = pydicom.dcmread(path)
        frames = range(1, source.NumberOfFrames + 1) if "NumberOfFrames" in source else [None]
        planes += [Plane(source, frame) for frame in frames]
    return sorted(planes, key=lambda plane: plane.position)


# --- masks ---


def blobs(segments, planes, rows, columns, empty=()):
    """Ellipsoids with ragged borders that do not touch the first and last plane if there are more than two. Those of
    neighbouring segments overlap. Segments in `empty` have no voxel."""
    z, y, x = numpy.ogrid[:planes, :rows, :columns]
    generator = numpy.random.default_rng(7)
    masks = numpy.zeros((segments, planes, rows, columns), bool)
    for segment in range(segments):
        if segment in empty:
            continue
        centre = columns * (segment + 1) / (segments + 1)
        distance = (
            ((x - centre) / (columns / 3)) ** 2
            + ((y - rows / 2) / (rows / 2)) ** 2
            + ((z - (planes - 1) / 2) / max(1.0, planes / 2 - 0.6)) ** 2
        )
        masks[segment] = (distance <= 1) & (generator.random((planes, rows, columns)) < 0.9)
    return masks


def apart(segments, planes, rows, columns):
    """Returns blobs with two empty segments."""
    masks = blobs(segments, planes, rows, columns)
    for segment in range(1, segments):
        masks[segment] &= ~masks[:segment].any(axis=0)
    return masks


# --- the writer, and the checks ---


def write(folder, paths, voxels, labels=None, options=()):
    """Writes masks (bool) as a BINARY object, maps (16 bits) as a FRACTIONAL one."""
    labels = labels or [f"Part {index + 1}" for index in range(len(voxels))]
    raw = folder / "voxels.raw"
    if voxels.dtype == bool:
        voxels.astype(numpy.uint8).tofile(raw)
    else:
        voxels.astype("<u2").tofile(raw)
        options = ["--fractional", *options]
    output = folder / "seg.dcm"
    label_options = [part for label in labels for part in ("--label", label)]
    done = run_program("write_seg", *options, *label_options, raw, output, *paths, check=False)
    assert done.returncode == 0, done.stderr
    return output, json.loads(done.stdout)


def dciodvfy_remarks(path):
    done = subprocess.run(["dciodvfy", "-new", path], capture_output=True, text=True, errors="replace")
    return [line for line in done.stderr.splitlines() if line.startswith(("Error", "Warning"))]


def assert_dciodvfy_is_silent(path, source):
    """Checks for no error and no warning, except those for inherited values that their source also gets."""
    remarks = dciodvfy_remarks(path)
    if remarks:
        inherited = dciodvfy_remarks(source)
        remarks = [remark for remark in remarks if remark not in inherited]
    assert remarks == [], "\n".join(remarks)


def assert_dcmdump_reads(path):
    done = subprocess.run(["dcmdump", "-q", path], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def decimal_strings(dataset):
    for element in dataset.iterall():
        if element.VR == "DS" and element.value is not None:
            values = element.value if element.VM > 1 else [element.value]
            yield from (str(value.original_string) for value in values)


def assert_inherits(seg, source):
    for name in ("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID",
                 "StudyDate", "StudyTime", "StudyID", "AccessionNumber", "ReferringPhysicianName"):
        assert seg[name].value == source.get(name, seg[name].value), name
    assert seg.get("StudyDescription") == source.get("StudyDescription")
    assert seg.FrameOfReferenceUID == source.FrameOfReferenceUID
    assert seg.SeriesInstanceUID != source.SeriesInstanceUID


def content_time(planes):
    """Returns the latest date and time in the images, else those of the study."""

    def parted(date, time):
        whole, _, fraction = time.partition(".")
        return date, f"{whole}.{fraction:0<6}"

    stated = []
    for source in (plane.source for plane in planes):
        for date, time in (("AcquisitionDate", "AcquisitionTime"), ("ContentDate", "ContentTime"),
                           ("InstanceCreationDate", "InstanceCreationTime")):
            if source.get(date) and source.get(time):
                stated.append(parted(source[date].value, source[time].value))
        frames = [frame.FrameContentSequence[0] for frame in source.get("PerFrameFunctionalGroupsSequence", [])
                  if "FrameContentSequence" in frame]
        stated += [parted(moment[:8], moment[8:]) for moment in (source.get("AcquisitionDateTime"), *(
            frame.get("FrameAcquisitionDateTime") for frame in frames)) if moment]
    return max(stated, default=parted(planes[0].source.StudyDate, planes[0].source.StudyTime))


def assert_equipment_and_series(seg, planes, summary):
    assert seg.Modality == "SEG"
    assert seg.SOPInstanceUID == summary["sop_instance_uid"]
    assert seg.SeriesInstanceUID == summary["series_uid"]
    assert seg.Manufacturer == "Noctule" and seg.ManufacturerModelName == "noctuled"
    assert seg.DeviceSerialNumber == "TEST-1" and seg.SoftwareVersions
    assert (seg.SeriesNumber, seg.InstanceNumber) == (5001, 1)
    assert (seg.ContentDate, seg.ContentTime) == (seg.SeriesDate, seg.SeriesTime) == content_time(planes)
    assert list(seg.ImageType) == ["DERIVED", "PRIMARY"]
    assert seg.ContentLabel == "TEST_PIPELINE"
    assert "DimensionOrganizationType" not in seg


def assert_segments(seg, labels, algorithm_name):
    assert [item.SegmentNumber for item in seg.SegmentSequence] == list(range(1, len(labels) + 1))
    assert [item.SegmentLabel for item in seg.SegmentSequence] == labels
    tracking = {item.TrackingUID for item in seg.SegmentSequence}
    assert len(tracking) == len(labels)
    for item in seg.SegmentSequence:
        assert item.SegmentAlgorithmType == "AUTOMATIC" and item.SegmentAlgorithmName == algorithm_name
        algorithm = item.SegmentationAlgorithmIdentificationSequence[0]
        assert algorithm.AlgorithmFamilyCodeSequence[0].CodeValue == "123111"
        assert (algorithm.AlgorithmName, algorithm.AlgorithmVersion) == (algorithm_name, "1")
        assert item.TrackingID == f"test-pipeline: {item.SegmentLabel}"


def assert_shared_groups(seg, planes):
    groups = seg.SharedFunctionalGroupsSequence[0]
    measures = groups.PixelMeasuresSequence[0]
    assert numpy.allclose(measures.PixelSpacing, planes[0].PixelSpacing, rtol=0, atol=1e-9)
    assert measures.SliceThickness > 0
    if len(planes) == 1:
        assert "SpacingBetweenSlices" not in measures
    else:
        steps = numpy.diff([plane.position for plane in planes])
        assert measures.SpacingBetweenSlices == pytest.approx(numpy.median(steps), rel=1e-6)
    orientation = groups.PlaneOrientationSequence[0].ImageOrientationPatient
    assert numpy.allclose(orientation, planes[0].ImageOrientationPatient, rtol=0, atol=1e-12)


def assert_references(seg, planes):
    assert len(seg.ReferencedSeriesSequence) == 1
    series = seg.ReferencedSeriesSequence[0]
    assert series.SeriesInstanceUID == planes[0].source.SeriesInstanceUID
    referenced = [item.ReferencedSOPInstanceUID for item in series.ReferencedInstanceSequence]
    assert len(referenced) == len(set(referenced))
    assert set(referenced) == {plane.source.SOPInstanceUID for plane in planes}
    assert {item.ReferencedSOPClassUID for item in series.ReferencedInstanceSequence} == {
        planes[0].source.SOPClassUID
    }


def frame_plane(group, planes):
    """Returns the index of the plane that a frame refers to, after a check of all its statements."""
    derivation = group.DerivationImageSequence[0]
    assert derivation.DerivationCodeSequence[0].CodeValue == "113076"
    assert len(derivation.SourceImageSequence) == 1
    source = derivation.SourceImageSequence[0]
    assert source.PurposeOfReferenceCodeSequence[0].CodeValue == "121322"
    assert source.SpatialLocationsPreserved == "YES"
    key = (source.ReferencedSOPInstanceUID, source.get("ReferencedFrameNumber"))
    index = [plane.key for plane in planes].index(key)
    plane = planes[index]
    assert source.ReferencedSOPClassUID == plane.source.SOPClassUID
    written = group.PlanePositionSequence[0].ImagePositionPatient
    for ours, theirs in zip(written, plane.ImagePositionPatient):
        if len(theirs.original_string.strip()) <= 16:
            assert ours.original_string == theirs.original_string.strip()
        else:
            assert abs(float(ours) - float(theirs)) < 1e-9
    return index


def encoded(frames):
    """Returns frames of bits or of bytes as Pixel Data."""
    flat = numpy.array(frames).ravel()
    encoded_bytes = (numpy.packbits(flat, bitorder="little") if flat.dtype == bool else flat).tobytes()
    return encoded_bytes + b"\0" * (len(encoded_bytes) % 2)


def assert_frames(seg, planes, stored, keep_empty):
    frames = seg.pixel_array.reshape(-1, seg.Rows, seg.Columns)
    groups = seg.PerFrameFunctionalGroupsSequence
    assert len(groups) == seg.NumberOfFrames == len(frames)
    expected = [(segment, plane) for segment in range(len(stored)) for plane in range(len(planes))
                if keep_empty or stored[segment, plane].any()]
    found = []
    indices = []
    for group, frame in zip(groups, frames):
        segment = group.SegmentIdentificationSequence[0].ReferencedSegmentNumber - 1
        plane = frame_plane(group, planes)
        assert numpy.array_equal(frame, stored[segment, plane])
        found.append((segment, plane))
        indices.append(tuple(group.FrameContentSequence[0].DimensionIndexValues))
    assert found == expected  # segment by segment, in ascending position
    # Ordinals from 1 without gaps for the planes that have frames, equal for equal planes.
    segments_used = sorted({segment for segment, _ in found})
    planes_used = sorted({plane for _, plane in found})
    assert indices == [(segments_used.index(segment) + 1, planes_used.index(plane) + 1)
                       for segment, plane in found]
    assert seg.PixelData == encoded([stored[item] for item in expected])


def assert_highdicom_reads(path, planes, stored):
    seg = highdicom.seg.segread(path)
    numbers = list(range(1, len(stored) + 1))
    volume = numpy.moveaxis(stored, 0, -1)
    if planes[0].frame is None:
        pixels = seg.get_pixels_by_source_instance(
            [plane.source.SOPInstanceUID for plane in planes], segment_numbers=numbers,
            assert_missing_frames_are_empty=True, rescale_fractional=False)
    else:
        pixels = seg.get_pixels_by_source_frame(
            planes[0].source.SOPInstanceUID, [plane.frame for plane in planes],
            segment_numbers=numbers, assert_missing_frames_are_empty=True, rescale_fractional=False)
    assert numpy.array_equal(pixels, volume)
    used = numpy.flatnonzero(stored.any(axis=(0, 2, 3)))
    read = seg.get_volume(segment_numbers=numbers, rescale_fractional=False)
    array = read.array if read.array.ndim == 4 else read.array[..., None]
    first, last = (0, len(planes) - 1) if len(array) == len(planes) else (used[0], used[-1])
    expected = volume[first:last + 1]
    # highdicom's slices may have the opposite order, so positions decide.
    ends = [read.map_indices_to_reference(numpy.array([[index, 0, 0]]))[0]
            for index in (0, len(array) - 1)]
    if not numpy.allclose(ends[0], numpy.array(planes[first].ImagePositionPatient, float), atol=1e-4):
        array, ends = array[::-1], ends[::-1]
    assert numpy.allclose(ends[0], numpy.array(planes[first].ImagePositionPatient, float), atol=1e-4)
    assert numpy.allclose(ends[1], numpy.array(planes[last].ImagePositionPatient, float), atol=1e-4)
    assert numpy.array_equal(array, expected)


def assert_binary(seg, masks):
    assert seg.SegmentationType == "BINARY"
    assert (seg.BitsAllocated, seg.BitsStored, seg.HighBit) == (1, 1, 0)
    assert "SegmentationFractionalType" not in seg and "MaximumFractionalValue" not in seg
    overlap = (masks.sum(axis=0, dtype=int) > 1).any()
    assert seg.SegmentsOverlap == ("YES" if overlap else "NO")


def assert_fractional(seg, stored):
    assert seg.SegmentationType == "FRACTIONAL" and seg.SegmentationFractionalType == "PROBABILITY"
    assert seg.MaximumFractionalValue == 255
    assert (seg.BitsAllocated, seg.BitsStored, seg.HighBit) == (8, 8, 7)
    assert seg.SegmentsOverlap == ("NO" if len(stored) == 1 else "UNDEFINED")


def judge(path, summary, paths, stored, labels=None, keep_empty=False):
    """Checks all requirements of every object. `stored` is masks (bool) or probabilities (uint8)."""
    labels = labels or [f"Part {index + 1}" for index in range(len(stored))]
    binary = stored.dtype == bool
    planes = planes_of(paths)
    assert_dciodvfy_is_silent(path, planes[0].source.filename)
    assert_dcmdump_reads(path)
    assert path.stat().st_size == summary["bytes"]
    seg = pydicom.dcmread(path)
    assert seg.NumberOfFrames == summary["frames"]
    assert all(len(text) <= 16 for text in decimal_strings(seg))
    (assert_binary if binary else assert_fractional)(seg, stored)
    assert_inherits(seg, planes[0].source)
    assert_equipment_and_series(seg, planes, summary)
    assert_segments(seg, labels, "level-set" if binary else "fuzzy-connectedness")
    assert_shared_groups(seg, planes)
    assert_references(seg, planes)
    assert_frames(seg, planes, stored, keep_empty)
    assert_highdicom_reads(path, planes, stored)
    return seg


# --- the cases ---


@pytest.mark.parametrize(
    "planes, rows, columns, segments",
    [(12, 64, 64, 1), (7, 257, 255, 2), (1, 33, 31, 1), (1, 5, 3, 2), (5, 3, 1, 1), (30, 512, 512, 3)],
)
def test_shapes(tmp_path, planes, rows, columns, segments):
    paths = classic(tmp_path / "in", planes, rows, columns)
    masks = apart(segments, planes, rows, columns)
    masks[:, planes // 2, rows // 2, columns // 2] = False
    masks[0, planes // 2, rows // 2, columns // 2] = True
    judge(*write(tmp_path, paths, masks), paths, masks)


def test_overlapping_segments(tmp_path):
    paths = classic(tmp_path / "in", 9, 50, 61)
    masks = blobs(3, 9, 50, 61)
    assert (masks[0] & masks[1]).any()
    assert judge(*write(tmp_path, paths, masks), paths, masks).SegmentsOverlap == "YES"


def test_an_empty_segment_among_others(tmp_path):
    paths = classic(tmp_path / "in", 9, 50, 61)
    masks = blobs(3, 9, 50, 61, empty=[1])
    seg = judge(*write(tmp_path, paths, masks), paths, masks)
    assert len(seg.SegmentSequence) == 3


def test_gaps_between_frames(tmp_path):
    paths = classic(tmp_path / "in", 9, 50, 61)
    masks = blobs(1, 9, 50, 61)
    masks[:, 3:5] = False
    judge(*write(tmp_path, paths, masks), paths, masks)


def test_empty_frames_kept(tmp_path):
    paths = classic(tmp_path / "in", 9, 50, 61)
    masks = blobs(2, 9, 50, 61, empty=[1])
    written = write(tmp_path, paths, masks, options=["--keep-empty-frames"])
    seg = judge(*written, paths, masks, keep_empty=True)
    assert seg.NumberOfFrames == 18


def test_no_segmented_voxel(tmp_path):
    paths = classic(tmp_path / "in", 3, 8, 8)
    (tmp_path / "masks.raw").write_bytes(bytes(3 * 8 * 8))
    done = run_program("write_seg", tmp_path / "masks.raw", tmp_path / "seg.dcm", *paths, check=False)
    assert done.returncode == 1 and done.stderr.startswith("SEG_EMPTY")


def test_oblique_planes(tmp_path):
    paths = classic(tmp_path / "in", 6, 40, 44, oblique=True)
    masks = apart(2, 6, 40, 44)
    judge(*write(tmp_path, paths, masks), paths, masks)


def test_enhanced_multi_frame(tmp_path):
    paths = enhanced(tmp_path / "in", 11, 33, 47)
    masks = apart(2, 11, 33, 47)
    seg = judge(*write(tmp_path, paths, masks), paths, masks)
    assert len(seg.ReferencedSeriesSequence[0].ReferencedInstanceSequence) == 1


def test_modifier_and_region(tmp_path):
    paths = classic(tmp_path / "in", 3, 16, 16)
    masks = apart(1, 3, 16, 16)
    seg = judge(*write(tmp_path, paths, masks, options=["--modifier", "--description", "One\nTwo"]),
                paths, masks)
    item = seg.SegmentSequence[0]
    kind = item.SegmentedPropertyTypeCodeSequence[0]
    assert kind.CodeValue == "52988006"
    assert kind.SegmentedPropertyTypeModifierCodeSequence[0].CodeValue == "7771000"
    assert item.AnatomicRegionSequence[0].CodeValue == "12738006"
    assert item.SegmentDescription == "One\nTwo"


NAMES = [
    (None, "Doe^Jane"),
    ("ISO_IR 100", "Müller^Jörg"),
    ("ISO_IR 144", "Иванов^Иван"),
    ("ISO_IR 192", "山田^太郎"),
    ("GB18030", "王^小东"),
    (["", "ISO 2022 IR 87"], "Yamada^Tarou=山田^太郎=やまだ^たろう"),
    (["ISO 2022 IR 13", "ISO 2022 IR 87"], "ﾔﾏﾀﾞ^ﾀﾛｳ=山田^太郎=やまだ^たろう"),
    (["", "ISO 2022 IR 149"], "Hong^Gildong=洪^吉洞=홍^길동"),
]


@pytest.mark.parametrize("charset, name", NAMES)
@pytest.mark.parametrize("labels", [["Part 1"], ["Großhirn 脳"]])
def test_character_sets(tmp_path, charset, name, labels):
    attributes = {"SpecificCharacterSet": charset} if charset else {}
    paths = classic(tmp_path / "in", 3, 16, 16, **attributes, PatientName=name)
    assert str(pydicom.dcmread(paths[0]).PatientName) == name
    masks = apart(1, 3, 16, 16)
    seg = judge(*write(tmp_path, paths, masks, labels), paths, masks, labels)
    assert str(seg.PatientName) == name
    if labels[0].isascii():
        assert seg.get("SpecificCharacterSet") == charset
    else:
        assert seg.SpecificCharacterSet == "ISO_IR 192"


def test_lossy_source(tmp_path):
    paths = classic(tmp_path / "in", 4, 16, 16, LossyImageCompression="01",
                    LossyImageCompressionRatio=[12.5], LossyImageCompressionMethod=["ISO_10918_1"])
    masks = apart(1, 4, 16, 16)
    seg = judge(*write(tmp_path, paths, masks), paths, masks)
    assert seg.LossyImageCompression == "01"
    assert seg.LossyImageCompressionRatio == 12.5
    assert seg.LossyImageCompressionMethod == "ISO_10918_1"


def test_lossless_source(tmp_path):
    paths = classic(tmp_path / "in", 4, 16, 16)
    masks = apart(1, 4, 16, 16)
    seg = judge(*write(tmp_path, paths, masks), paths, masks)
    assert seg.LossyImageCompression == "00"
    assert "LossyImageCompressionRatio" not in seg


def test_numbers_longer_than_a_decimal_string(tmp_path):
    """Senders write 18 characters although 16 are the maximum. The object must not."""
    paths = []
    folder = tmp_path / "in"
    for path in classic(folder, 5, 20, 20):
        source = pydicom.dcmread(path)
        z = source.ImagePositionPatient[2] / 2.5 * 0.666666686534882
        long_values = {
            "ImagePositionPatient": f"-100.512345678901234\\-80.25\\{z:.16f}",
            "PixelSpacing": "0.666666686534882\\0.666666686534882",
        }
        with pydicom.config.disable_value_validation():
            for keyword, text in long_values.items():
                del source[keyword]
                tag = pydicom.datadict.tag_for_keyword(keyword)
                encoded = text.encode() + b" " * (len(text) % 2)
                source[tag] = pydicom.dataelem.RawDataElement(
                    pydicom.tag.Tag(tag), "DS", len(encoded), encoded, 0, False, True)
            source.save_as(path)
        paths.append(path)
    masks = apart(1, 5, 20, 20)
    judge(*write(tmp_path, paths, masks), paths, masks)


def test_no_frame_of_reference(tmp_path):
    """Positions require a frame of reference. A source without one gets one derived from its series."""
    paths = classic(tmp_path / "in", 4, 16, 16, FrameOfReferenceUID=None,
                    PositionReferenceIndicator=None)
    masks = apart(1, 4, 16, 16)
    output, _ = write(tmp_path, paths, masks)
    assert dciodvfy_remarks(output) == []
    first = pydicom.dcmread(output)
    assert first.FrameOfReferenceUID.startswith("2.25.")
    output, _ = write(tmp_path, paths, masks, ["Other"], ["--pipeline", "other"])
    second = pydicom.dcmread(output)
    assert second.FrameOfReferenceUID == first.FrameOfReferenceUID
    assert second.SOPInstanceUID != first.SOPInstanceUID


def test_same_input_same_bytes(tmp_path):
    paths = classic(tmp_path / "in", 6, 40, 44)
    masks = blobs(2, 6, 40, 44)
    first = write(tmp_path, paths, masks)[0].read_bytes()
    assert write(tmp_path, paths[::-1], masks)[0].read_bytes() == first


@needs_shared
@pytest.mark.parametrize("series", ["ct-head-5mm", "mr-brain-t1"])
def test_real_series(tmp_path, series):
    paths = sorted((SHARED / series).glob("*.dcm"))
    planes = planes_of(paths)
    source = planes[0].source
    masks = apart(2, len(planes), source.Rows, source.Columns)
    masks[:, ::9] = False
    judge(*write(tmp_path, paths, masks), paths, masks)

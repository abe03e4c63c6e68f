"""Parametric map objects, checked by independent readers: pydicom, highdicom, dciodvfy, dcmdump, Orthanc.

write_pmap reads generated or real series, writes the given codes, and reads them back. All other checks use other
software. Sources and checks that maps share with segmentations are in test_seg."""

import io
import json

import highdicom
import numpy
import pydicom
import pytest
from pydicom.pixels import apply_windowing

from conftest import SHARED, needs_shared, orthanc, run_program, storescu
from test_deliver import SENT, sender, destination  # noqa: F401 (a fixture)
from test_seg import (NAMES, assert_dcmdump_reads, assert_inherits, assert_references, assert_shared_groups, classic, content_time,
                      dciodvfy_remarks, decimal_strings, enhanced, planes_of)

PADDING = 65535


def random_codes(planes, rows, columns):
    """Codes of all voxels except those on the edges, with the first and last possible ones among them."""
    codes = numpy.random.default_rng(11).integers(0, 256, (planes, rows - 2, columns - 2), dtype=numpy.uint8)
    codes[0, 0, 0] = 255
    codes[-1, -1, -1] = 0
    return codes


def in_frames(codes):
    """Returns the codes as stored: with a border of padding."""
    return numpy.pad(codes.astype(numpy.uint16), ((0, 0), (1, 1), (1, 1)), constant_values=PADDING)


def write(folder, paths, codes, options=()):
    raw = folder / "codes.raw"
    codes.tofile(raw)
    output = folder / "pmap.dcm"
    done = run_program("write_pmap", *options, raw, output, *paths, check=False)
    assert done.returncode == 0, done.stderr
    return output, json.loads(done.stdout)


def assert_dciodvfy_is_content(path, source):
    """Accepts no message except those for inherited values that their source also gets. dciodvfy also warns of every
    unknown coding scheme, such as the private one of the codes."""
    inherited = dciodvfy_remarks(source)
    remarks = [remark for remark in dciodvfy_remarks(path)
               if remark not in inherited
               and not (remark.startswith("Warning") and remark.endswith("Unrecognized defined term = <99NOCTULE>"))]
    assert remarks == [], "\n".join(remarks)


def only(sequence):
    assert len(sequence) == 1
    return sequence[0]


def coded(item):
    return (item.CodeValue, item.CodingSchemeDesignator)


def assert_image(pmap, summary, planes, label):
    source = planes[0].source
    assert pmap.SOPClassUID == "1.2.840.10008.5.1.4.1.1.30"
    assert (pmap.SOPInstanceUID, pmap.SeriesInstanceUID) == (summary["sop_instance_uid"], summary["series_uid"])
    assert pmap.Modality == source.Modality
    assert list(pmap.ImageType)[:3] == ["DERIVED", "PRIMARY", "VOLUME"] and len(pmap.ImageType) == 4
    assert (pmap.SeriesNumber, pmap.InstanceNumber, pmap.ContentLabel) == (5003, 1, label)
    assert (pmap.ContentDate, pmap.ContentTime) == content_time(planes)
    assert pmap.Manufacturer == "Noctule" and pmap.ManufacturerModelName == "noctuled"
    assert pmap.DeviceSerialNumber == "TEST-1" and pmap.SoftwareVersions
    assert (pmap.BitsAllocated, pmap.BitsStored, pmap.HighBit, pmap.PixelRepresentation) == (16, 16, 15, 0)
    assert pmap.PhotometricInterpretation == "MONOCHROME2" and pmap.PresentationLUTShape == "IDENTITY"
    assert pmap.PixelPaddingValue == PADDING
    assert pmap.ContentQualification == "RESEARCH"
    assert pmap.BurnedInAnnotation == pmap.RecognizableVisualFeatures == "NO"
    assert len(pmap.AcquisitionContextSequence) == 0
    scheme = only(pmap.CodingSchemeIdentificationSequence)
    assert scheme.CodingSchemeDesignator == "99NOCTULE" and scheme.CodingSchemeName and scheme.CodingSchemeVersion
    assert "RescaleSlope" not in pmap and "FloatPixelData" not in pmap


def assert_meaning(pmap, label, explanation):
    shared = only(pmap.SharedFunctionalGroupsSequence)
    mapping = only(shared.RealWorldValueMappingSequence)
    assert (mapping.LUTLabel, mapping.LUTExplanation) == (label, explanation)
    assert coded(only(mapping.MeasurementUnitsCodeSequence)) == ("1", "UCUM")
    assert (mapping.RealWorldValueSlope, mapping.RealWorldValueIntercept) == (1.0, 0.0)
    assert mapping.RealWorldValueFirstValueMapped == 0 and mapping.RealWorldValueLastValueMapped >= 255
    quantity = only(mapping.QuantityDefinitionSequence)
    assert quantity.ValueType == "CODE"
    assert coded(only(quantity.ConceptNameCodeSequence)) == ("246205007", "SCT")
    assert coded(only(quantity.ConceptCodeSequence)) == ("LBP", "99NOCTULE")
    identity = only(shared.PixelValueTransformationSequence)
    assert (identity.RescaleSlope, identity.RescaleIntercept, identity.RescaleType) == (1, 0, "US")
    assert list(only(shared.ParametricMapFrameTypeSequence).FrameType) == list(pmap.ImageType)
    anatomy = only(shared.FrameAnatomySequence)
    assert anatomy.FrameLaterality == "U" and only(anatomy.AnatomicRegionSequence).CodingSchemeDesignator == "SCT"


def assert_display(pmap):
    """Checks that all codes are distinguishable, from black to white."""
    voi = only(only(pmap.SharedFunctionalGroupsSequence).FrameVOILUTSequence)
    assert voi.VOILUTFunction == "LINEAR"
    shown = pydicom.Dataset()
    shown.update({"WindowCenter": voi.WindowCenter, "WindowWidth": voi.WindowWidth, "BitsStored": 8,
                  "PixelRepresentation": 0, "PhotometricInterpretation": "MONOCHROME2"})
    grey = apply_windowing(numpy.arange(256, dtype=numpy.uint8), shown)
    assert grey[0] == 0 and grey[255] == 255 and (numpy.diff(grey) > 0).all()


def assert_frames(pmap, planes, stored):
    assert pmap.NumberOfFrames == len(planes) == len(pmap.PerFrameFunctionalGroupsSequence)
    for index, (group, plane) in enumerate(zip(pmap.PerFrameFunctionalGroupsSequence, planes)):
        source = only(only(group.DerivationImageSequence).SourceImageSequence)
        assert (source.ReferencedSOPInstanceUID, source.get("ReferencedFrameNumber")) == plane.key
        assert source.ReferencedSOPClassUID == plane.source.SOPClassUID
        assert source.SpatialLocationsPreserved == "YES"
        assert coded(only(source.PurposeOfReferenceCodeSequence)) == ("121322", "DCM")
        written = numpy.array(only(group.PlanePositionSequence).ImagePositionPatient, float)
        assert numpy.allclose(written, numpy.array(plane.ImagePositionPatient, float), rtol=0, atol=1e-9)
        assert only(group.FrameContentSequence).DimensionIndexValues == index + 1
    dimension = only(pmap.DimensionIndexSequence)
    assert dimension.DimensionIndexPointer == pydicom.tag.Tag("ImagePositionPatient")
    frames = pmap.pixel_array.reshape(stored.shape)
    assert frames.dtype == numpy.uint16 and numpy.array_equal(frames, stored)


def assert_highdicom_reads(path, planes, stored):
    """Checks stored and real-world values, one frame by its source, and the volume in space."""
    pmap = highdicom.pm.ParametricMap.from_dataset(pydicom.dcmread(path))
    inner = (slice(None), slice(1, -1), slice(1, -1))
    assert numpy.array_equal(pmap.get_stored_frames().reshape(stored.shape), stored)
    values = pmap.get_frames(apply_real_world_transform=True).reshape(stored.shape)
    assert numpy.array_equal(values[inner], stored[inner])
    if planes[0].frame is None:
        last = pmap.get_pixels_by_source_instance([planes[-1].source.SOPInstanceUID])
        assert numpy.array_equal(last[0], stored[-1])
    if len(planes) == 1:
        return
    volume = pmap.get_volume(apply_real_world_transform=False)
    array = volume.array
    if not numpy.allclose(volume.map_indices_to_reference(numpy.array([[0, 0, 0]]))[0],
                          numpy.array(planes[0].ImagePositionPatient, float), atol=1e-4):
        array = array[::-1]
    assert numpy.array_equal(array, stored)


def judge(path, summary, paths, codes, label="LBP", explanation="Local binary pattern"):
    """Checks all requirements of every map."""
    planes = planes_of(paths)
    stored = in_frames(codes)
    assert_dciodvfy_is_content(path, planes[0].source.filename)
    assert_dcmdump_reads(path)
    assert path.stat().st_size == summary["bytes"]
    pmap = pydicom.dcmread(path)
    assert all(len(text) <= 16 for text in decimal_strings(pmap))
    assert_inherits(pmap, planes[0].source)
    assert_image(pmap, summary, planes, label)
    assert_shared_groups(pmap, planes)
    assert_references(pmap, planes)
    assert_meaning(pmap, label, explanation)
    assert_display(pmap)
    assert_frames(pmap, planes, stored)
    assert_highdicom_reads(path, planes, stored)
    return pmap


@pytest.mark.parametrize("planes, rows, columns",
                         [(1, 3, 3), (5, 3, 3), (2, 3, 4), (1, 33, 31), (7, 257, 255), (12, 64, 64)])
def test_shapes(tmp_path, planes, rows, columns):
    paths = classic(tmp_path / "in", planes, rows, columns)
    codes = random_codes(planes, rows, columns)
    judge(*write(tmp_path, paths, codes), paths, codes)


def test_oblique_planes(tmp_path):
    paths = classic(tmp_path / "in", 6, 40, 44, oblique=True)
    codes = random_codes(6, 40, 44)
    judge(*write(tmp_path, paths, codes), paths, codes)


def test_enhanced_multi_frame(tmp_path):
    paths = enhanced(tmp_path / "in", 11, 33, 47)
    codes = random_codes(11, 33, 47)
    pmap = judge(*write(tmp_path, paths, codes), paths, codes)
    assert len(pmap.ReferencedSeriesSequence[0].ReferencedInstanceSequence) == 1


def test_each_kind_has_a_separate_series(tmp_path):
    paths = classic(tmp_path / "in", 3, 16, 16)
    codes = random_codes(3, 16, 16)
    maps = {}
    for kind in ("lbp", "tlbap", "lanadp"):
        options = ["--kind", kind, "--description", f"Texture: {kind}", "--explanation", f"{kind} of 3 x 3 voxels"]
        maps[kind] = judge(*write(tmp_path, paths, codes, options), paths, codes, kind.upper(),
                           f"{kind} of 3 x 3 voxels")
        assert maps[kind].SeriesDescription == f"Texture: {kind}"
    assert len({pmap.SeriesInstanceUID for pmap in maps.values()}) == 3
    assert len({pmap.SOPInstanceUID for pmap in maps.values()}) == 3
    assert len({pmap.StudyInstanceUID for pmap in maps.values()}) == 1


def test_other_modalities_and_regions(tmp_path):
    paths = classic(tmp_path / "in", 3, 16, 16, Modality="MR", BodyPartExamined="HEAD")
    codes = random_codes(3, 16, 16)
    pmap = judge(*write(tmp_path, paths, codes), paths, codes)
    anatomy = pmap.SharedFunctionalGroupsSequence[0].FrameAnatomySequence[0]
    assert coded(anatomy.AnatomicRegionSequence[0]) == ("69536005", "SCT")


@pytest.mark.parametrize("charset, name", NAMES)
@pytest.mark.parametrize("explanation", ["Local binary pattern", "Muster 模様"])
def test_character_sets(tmp_path, charset, name, explanation):
    attributes = {"SpecificCharacterSet": charset} if charset else {}
    paths = classic(tmp_path / "in", 2, 8, 8, **attributes, PatientName=name)
    codes = random_codes(2, 8, 8)
    pmap = judge(*write(tmp_path, paths, codes, ["--explanation", explanation]), paths, codes,
                 explanation=explanation)
    assert str(pmap.PatientName) == name
    assert pmap.get("SpecificCharacterSet") == (charset if explanation.isascii() else "ISO_IR 192")


def test_lossy_source(tmp_path):
    paths = classic(tmp_path / "in", 2, 8, 8, LossyImageCompression="01", LossyImageCompressionRatio=[12.5],
                    LossyImageCompressionMethod=["ISO_10918_1"])
    codes = random_codes(2, 8, 8)
    pmap = judge(*write(tmp_path, paths, codes), paths, codes)
    assert (pmap.LossyImageCompression, pmap.LossyImageCompressionRatio) == ("01", 12.5)


def test_no_frame_of_reference(tmp_path):
    paths = classic(tmp_path / "in", 4, 16, 16, FrameOfReferenceUID=None, PositionReferenceIndicator=None)
    path, _ = write(tmp_path, paths, random_codes(4, 16, 16))
    assert_dciodvfy_is_content(path, paths[0])
    assert pydicom.dcmread(path).FrameOfReferenceUID.startswith("2.25.")


def test_same_input_same_bytes(tmp_path):
    paths = classic(tmp_path / "in", 6, 40, 44)
    codes = random_codes(6, 40, 44)
    first = write(tmp_path, paths, codes)[0].read_bytes()
    assert write(tmp_path, paths[::-1], codes)[0].read_bytes() == first


def test_planes_without_a_pattern(tmp_path):
    paths = classic(tmp_path / "in", 3, 2, 8)
    (tmp_path / "codes.raw").write_bytes(b"")
    done = run_program("write_pmap", tmp_path / "codes.raw", tmp_path / "pmap.dcm", *paths, check=False)
    assert done.returncode == 1 and done.stderr.startswith("PMAP_EMPTY")


def test_orthanc_stores_and_returns_the_map(sender, tmp_path):  # noqa: F811
    """Delivered as by Noctule, in a separate series, and returned unchanged."""
    paths = classic(tmp_path / "in", 5, 33, 31)
    codes = random_codes(5, 33, 31)
    path, summary = write(tmp_path, paths, codes)
    with orthanc(tmp_path / "orthanc") as archive:
        storescu(archive.port, *paths, called="ORTHANC")
        one = sender(destination(port=archive.port, ae_title="ORTHANC"))
        assert one.deliver(path)["outcome"] == SENT
        assert len(archive.rest("/studies")) == 1 and len(archive.rest("/series")) == 2
        found = archive.rest("/tools/find", {"Level": "Instance", "Query": {"SOPInstanceUID":
                                                                            summary["sop_instance_uid"]}})
        held = pydicom.dcmread(io.BytesIO(archive.file(found[0])))
        tags = archive.rest(f"/instances/{found[0]}/simplified-tags")
        assert (tags["NumberOfFrames"], tags["ContentLabel"]) == ("5", "LBP")
        shown = numpy.load(io.BytesIO(archive.rest(f"/instances/{found[0]}/numpy?rescale=0")))
    assert numpy.array_equal(shown.reshape(5, 33, 31), in_frames(codes))
    assert held == pydicom.dcmread(path)


@needs_shared
@pytest.mark.parametrize("series", ["ct-head-5mm", "mr-brain-t1"])
def test_real_series(tmp_path, series):
    paths = sorted((SHARED / series).glob("*.dcm"))
    planes = planes_of(paths)
    codes = random_codes(len(planes), planes[0].source.Rows, planes[0].source.Columns)
    judge(*write(tmp_path, paths, codes), paths, codes)

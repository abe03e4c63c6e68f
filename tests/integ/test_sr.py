"""Measurement reports, checked by independent readers: dciodvfy, dsrdump, pydicom, highdicom, Orthanc.

write_seg writes a segmentation and its report from the given measurements, exact to the last bit, and reads both
back. All other checks use other software."""

import io
import json
import math
import re
import subprocess

import highdicom
import numpy
import pydicom
import pytest

from conftest import SHARED, needs_shared, orthanc, run_program, storescu
from test_deliver import SENT, sender, destination  # noqa: F401 (a fixture)
from test_seg import (apart, assert_dcmdump_reads, classic, dciodvfy_remarks, decimal_strings, enhanced,
                      planes_of)

IBSI_CODES = ["GYBY", "60VM", "UR99", "TU9B", "TF7R", "D3YU", "NTRS", "ZGXS", "OEEB", "P6QZ", "8ZQL", "ACUI",
              "8S9J", "IB1Z", "NDRX", "WF0Z", "1QCO", "E8JP", "NI2N", "QWB0", "DG8W", "7NFM", "AE86", "R8DG", "JN9H"]
AGGREGATION = (("5QB6", "IBSI", "Texture matrix aggregation"), ("IAZD", "IBSI", "3D merged"))
VOLUME = -1  # in place of a segment
DISCRETISATION = (("DISCRETISATION", "99NOCTULE", "Discretisation"), ("K15C", "IBSI", "Fixed bin number"))
CLASSES = {"enhanced": highdicom.sr.EnhancedSR, "3d": highdicom.sr.Comprehensive3DSR,
           "root": highdicom.sr.Comprehensive3DSR}
# The objects beside the segmentation that write_seg --kind root refers to: class, instance and series. The content does not
# refer to a label map, since DCMTK 3.6.7 could not read the report.
LABELMAP = ("1.2.840.10008.5.1.4.1.1.66.7", "2.25.31", "2.25.30")
OTHERS = [("1.2.840.10008.5.1.4.1.1.481.3", "2.25.11", "2.25.10"), ("1.2.840.10008.5.1.4.1.1.7.4", "2.25.21", "2.25.20"),
          ("1.2.840.10008.5.1.4.1.1.7.4", "2.25.22", "2.25.20")]
DIRECTIONS = ("DIRECTIONS", "99NOCTULE", "Directions")
LEVELS = (32.0, ("LEVELS", "99NOCTULE", "Number of grey levels"), ("1", "no units"))


class Measurement:
    """One number (None: absent, with a reason), and its settings."""

    def __init__(self, value, concept, unit=("1", "no units"), modifiers=(), parameters=(), words=None, reason="",
                 qualifier="114000"):
        self.value, self.concept, self.unit = value, concept, unit
        self.modifiers, self.parameters = list(modifiers), list(parameters)
        self.words = words  # a concept and its text
        self.reason, self.qualifier = reason, qualifier

    def lines(self):
        value = "-" if self.value is None else float(self.value).hex()
        yield "measurement", value, *self.concept, *self.unit, self.reason, self.qualifier
        for name, modifier in self.modifiers:
            yield "modifier", *name, *modifier
        for number, concept, unit in self.parameters:
            yield "parameter", float(number).hex(), *concept, *unit
        if self.words:
            yield "words", *self.words[0], self.words[1]


def glcm(seed, own=False):
    """Returns all texture features with random values of all magnitudes, with settings of the private scheme if
    requested."""
    generator = numpy.random.default_rng(seed)
    values = generator.normal(size=len(IBSI_CODES)) * 10.0 ** generator.integers(-12, 12, len(IBSI_CODES))
    modifiers, parameters = ([AGGREGATION, DISCRETISATION], [LEVELS]) if own else ([AGGREGATION], [])
    return [Measurement(float(value), (code, "IBSI", f"Feature {code}"), modifiers=modifiers, parameters=parameters)
            for value, code in zip(values, IBSI_CODES)]


def write(folder, paths, masks, groups, labels=None, options=()):
    """Writes segmentation and report. `groups` is measurements by segment, from 0, or VOLUME."""
    labels = labels or [f"Part {index + 1}" for index in range(len(masks))]
    lines = []
    for segment, measurements in groups.items():
        lines.append(("group", str(segment)))
        lines += [line for measurement in measurements for line in measurement.lines()]
    text = folder / "measurements.tsv"
    text.write_text("".join("\t".join(line) + "\n" for line in lines))
    raw = folder / "voxels.raw"
    if masks.dtype == bool:
        masks.astype(numpy.uint8).tofile(raw)
    else:
        masks.astype("<u2").tofile(raw)
        options = ["--fractional", *options]
    label_options = [part for label in labels for part in ("--label", label)]
    done = run_program("write_seg", *options, *label_options, "--measurements", text, "--report", folder / "sr.dcm",
                       raw, folder / "seg.dcm", *paths, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "sr.dcm", folder / "seg.dcm", json.loads(done.stdout.splitlines()[1])


# --- the checks ---


def code_of(sequence):
    item = sequence[0]
    return item.get("CodeValue") or item.LongCodeValue, item.CodingSchemeDesignator, item.CodeMeaning


def name_of(item):
    return code_of(item.ConceptNameCodeSequence) if "ConceptNameCodeSequence" in item else None


def children(item, value_type=None, code=None):
    """Returns the content items below one, by type and by the value of the concept name."""
    return [child for child in item.get("ContentSequence", [])
            if value_type in (None, child.ValueType) and code in (None, (name_of(child) or (None,))[0])]


def one(item, value_type, code):
    found = children(item, value_type, code)
    assert len(found) == 1, (value_type, code, len(found))
    return found[0]


def assert_dciodvfy_is_content(path):
    """Checks for no error, and only dciodvfy's warning for every unknown coding scheme. PS3.16 8.2 requires private
    schemes to begin with 99. dciodvfy counts bytes where PS3.5 6.2 counts characters."""
    remarks = [remark for remark in dciodvfy_remarks(path)
               if not (remark.startswith("Warning") and remark.endswith("Unrecognized defined term = <99NOCTULE>"))
               and not ("Length invalid for this VR" in remark and not remark.isascii())]
    assert remarks == [], "\n".join(remarks)


def assert_dsrdump_shows(path, groups, kind="enhanced"):
    done = subprocess.run(["dsrdump", "+Pc", "+Pu", "+Pl", path], capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr
    complaints = [line for line in done.stderr.splitlines() if "VR checker" not in line and "ISO_IR" not in line]
    assert complaints == []
    tree = done.stdout
    assert ("Enhanced SR Document" if kind == "enhanced" else "Comprehensive 3D SR Document") in tree
    assert "UNVERIFIED" in tree and "COMPLETE" in tree
    assert tree.count("<contains CONTAINER:(125007,DCM,") == len(groups)
    everything = [measurement for measurements in groups.values() for measurement in measurements]
    absent = [measurement for measurement in everything if measurement.value is None]
    assert tree.count("<contains NUM:") == len(everything) - len(absent)
    assert "=empty (" not in tree
    for measurement in absent:
        assert measurement.reason in tree or not measurement.reason.isascii()


def assert_header(report, seg, source, summary, kind):
    assert report.SOPClassUID == f"1.2.840.10008.5.1.4.1.1.88.{22 if kind == 'enhanced' else 34}"
    assert (report.SOPInstanceUID, report.SeriesInstanceUID) == (summary["sop_instance_uid"], summary["series_uid"])
    assert len({report.SeriesInstanceUID, seg.SeriesInstanceUID, source.SeriesInstanceUID}) == 3
    for name in ("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID", "StudyDate",
                 "StudyTime", "StudyID", "AccessionNumber", "ReferringPhysicianName", "StudyDescription"):
        assert report.get(name, "") == source.get(name, ""), name
    assert (report.Modality, report.SeriesNumber, report.InstanceNumber) == ("SR", 6001, 1)
    assert (report.Manufacturer, report.ManufacturerModelName) == ("Noctule", "noctuled")
    assert report.DeviceSerialNumber == "TEST-1" and report.SoftwareVersions
    assert (report.ContentDate, report.ContentTime) == (seg.ContentDate, seg.ContentTime)
    assert (report.CompletionFlag, report.VerificationFlag) == ("COMPLETE", "UNVERIFIED")
    assert len(report.ReferencedPerformedProcedureStepSequence) == len(report.PerformedProcedureCodeSequence) == 0
    assert "FrameOfReferenceUID" not in report
    template = report.ContentTemplateSequence[0]
    assert (template.MappingResource, template.TemplateIdentifier) == ("DCMR", "1500")


def assert_evidence(report, seg, sources, of_segments, kind):
    assert len(report.CurrentRequestedProcedureEvidenceSequence) == 1
    study = report.CurrentRequestedProcedureEvidenceSequence[0]
    assert study.StudyInstanceUID == seg.StudyInstanceUID
    evidence = [(series.SeriesInstanceUID, item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID)
                for series in study.ReferencedSeriesSequence for item in series.ReferencedSOPSequence]
    expected = {(source.SeriesInstanceUID, source.SOPClassUID, source.SOPInstanceUID) for source in sources}
    assert len(evidence) == len(set(evidence))
    if of_segments:
        expected.add((seg.SeriesInstanceUID, seg.SOPClassUID, seg.SOPInstanceUID))
    if kind == "root":
        expected |= {(series, of_class, instance) for of_class, instance, series in [*OTHERS, LABELMAP]}
    assert set(evidence) == expected
    series = [series.SeriesInstanceUID for series in study.ReferencedSeriesSequence]
    assert len(series) == len(set(series))


def assert_context(report):
    assert code_of(one(report, "CODE", "121049").ConceptCodeSequence) == ("eng", "RFC5646", "English")
    assert code_of(one(report, "CODE", "121005").ConceptCodeSequence)[0] == "121007"
    assert one(report, "UIDREF", "121012").UID.startswith("2.25.")
    assert one(report, "TEXT", "121016").TextValue == "TEST-1"
    assert code_of(one(report, "CODE", "121058").ConceptCodeSequence)[1] in ("LN", "SCT")


def assert_results(group, seg):
    references = [(item.ValueType, item.ReferencedSOPSequence[0]) for item in children(group)]
    assert [(reference.ReferencedSOPClassUID, reference.ReferencedSOPInstanceUID) for _, reference in references] == [
        (seg.SOPClassUID, seg.SOPInstanceUID), *[other[:2] for other in OTHERS]]
    assert [value_type for value_type, _ in references] == ["IMAGE", "COMPOSITE", "IMAGE", "IMAGE"]


def assert_library(report, planes, seg, kind):
    library = one(report, "CONTAINER", "111028")
    group, *results = children(library, "CONTAINER", "126200")
    assert len(results) == (kind == "root")
    for of_results in results:
        assert_results(of_results, seg)
    images = [child.ReferencedSOPSequence[0] for child in children(group, "IMAGE")]
    expected = list(dict.fromkeys(plane.source.SOPInstanceUID for plane in planes))  # in ascending position
    assert [image.ReferencedSOPInstanceUID for image in images] == expected
    assert {image.ReferencedSOPClassUID for image in images} == {planes[0].source.SOPClassUID}
    rows = one(group, "NUM", "110910").MeasuredValueSequence[0]
    assert rows.NumericValue == planes[0].source.Rows
    between_columns = one(group, "NUM", "111026").MeasuredValueSequence[0].NumericValue
    assert float(between_columns) == float(planes[0].PixelSpacing[1])


def assert_schemes(report, own):
    schemes = {item.CodingSchemeDesignator: item for item in report.CodingSchemeIdentificationSequence}
    assert schemes["IBSI"].CodingSchemeUID == "1.2.840.10008.2.16.13"
    assert ("99NOCTULE" in schemes) == own
    if own:
        assert schemes["99NOCTULE"].CodingSchemeName and schemes["99NOCTULE"].CodingSchemeVersion


def assert_number(item, value, unit):
    measured = item.MeasuredValueSequence[0]
    assert measured.FloatingPointValue.hex() == float(value).hex()  # every bit
    assert float(measured.NumericValue) == pytest.approx(value, rel=1e-8)
    assert code_of(measured.MeasurementUnitsCodeSequence) == (unit[0], "UCUM", unit[1])
    assert "NumericValueQualifierCodeSequence" not in item


def assert_measurement(item, expected):
    assert name_of(item) == expected.concept and item.RelationshipType == "CONTAINS"
    words = [expected.words] if expected.words else []
    if expected.value is None:
        assert item.ValueType == "CODE"
        assert code_of(item.ConceptCodeSequence)[:2] == (expected.qualifier, "DCM")
        words.append((("121106", "DCM", "Comment"), expected.reason))
    else:
        assert_number(item, expected.value, expected.unit)
    assert [(name_of(child), child.TextValue) for child in children(item, "TEXT")] == words
    modifiers = [(name_of(child), code_of(child.ConceptCodeSequence)) for child in children(item, "CODE")]
    assert modifiers == expected.modifiers
    parameters = children(item, "NUM")
    assert [name_of(child) for child in parameters] == [concept for _, concept, _ in expected.parameters]
    for child, (value, _, unit) in zip(parameters, expected.parameters):
        assert child.RelationshipType == "INFERRED FROM"
        assert_number(child, value, unit)


def assert_of_segment(group, seg, index):
    segment = seg.SegmentSequence[index]
    assert one(group, "TEXT", "112039").TextValue == segment.TrackingID
    assert one(group, "UIDREF", "112040").UID == segment.TrackingUID
    finding = one(group, "CODE", "121071")
    assert code_of(finding.ConceptCodeSequence) == code_of(segment.SegmentedPropertyTypeCodeSequence)
    reference = one(group, "IMAGE", "121191").ReferencedSOPSequence[0]
    assert (reference.ReferencedSOPClassUID, reference.ReferencedSOPInstanceUID) == (
        seg.SOPClassUID, seg.SOPInstanceUID)
    assert reference.ReferencedSegmentNumber == segment.SegmentNumber
    assert one(group, "UIDREF", "121232").UID == seg.ReferencedSeriesSequence[0].SeriesInstanceUID


def assert_of_volume(group, planes, name):
    """Checks that each image is a source of the measurement exactly once, and no other image is."""
    images = children(group, "IMAGE")
    assert {code_of(image.ConceptNameCodeSequence) for image in images} == {
        ("121112", "DCM", "Source of Measurement")}
    references = [image.ReferencedSOPSequence[0] for image in images]
    assert [item.ReferencedSOPInstanceUID for item in references] == list(
        dict.fromkeys(plane.source.SOPInstanceUID for plane in planes))
    assert all("ReferencedFrameNumber" not in item for item in references)
    assert one(group, "TEXT", "112039").TextValue == name
    assert one(group, "UIDREF", "112040").UID.startswith("2.25.")
    assert children(group, "CODE", "121071") == children(group, "UIDREF", "121232") == []


def in_order(groups):
    """Returns the order of the report: the volume last."""
    return sorted(groups.items(), key=lambda item: item[0] == VOLUME)


def assert_groups(report, seg, planes, groups, volume):
    found = children(one(report, "CONTAINER", "126010"), "CONTAINER", "125007")
    assert len(found) == len(groups)
    for group, (index, measurements) in zip(found, in_order(groups)):
        if index == VOLUME:
            assert_of_volume(group, planes, volume)
        else:
            assert_of_segment(group, seg, index)
        codes = {measurement.concept[0] for measurement in measurements}
        values = [item for item in children(group) if (name_of(item) or (None,))[0] in codes]
        assert len(values) == len(measurements)
        for item, expected in zip(values, sorted(measurements, key=lambda measurement: measurement.value is None)):
            assert_measurement(item, expected)


def assert_highdicom_measures(group, measurements):
    """Checks that there are as many values as expected, and an evaluation with the reason for each absent one."""
    present = [measurement for measurement in measurements if measurement.value is not None]
    values = group.get_measurements()
    assert [value.name.value for value in values] == [measurement.concept[0] for measurement in present]
    assert [value.value for value in values] == [measurement.value for measurement in present]
    for measurement in measurements:
        evaluations = group.get_qualitative_evaluations(pydicom.sr.coding.Code(*measurement.concept))
        absent = [other.qualifier for other in measurements
                  if other.value is None and other.concept == measurement.concept]
        assert [evaluation.value.value for evaluation in evaluations] == absent


def assert_highdicom_reads(path, seg, planes, groups, kind):
    content = CLASSES[kind].from_dataset(pydicom.dcmread(path)).content
    assert isinstance(content, highdicom.sr.MeasurementReport)
    assert content.get_planar_roi_measurement_groups() == []
    of_images = content.get_image_measurement_groups()
    assert len(of_images) == (VOLUME in groups)
    if of_images:
        assert_highdicom_measures(of_images[0], groups[VOLUME])
        assert {image.referenced_sop_instance_uid for image in of_images[0].source_images} == {
            plane.source.SOPInstanceUID for plane in planes}
    segments = {index: measurements for index, measurements in groups.items() if index != VOLUME}
    by_uid = {group.tracking_uid: group for group in content.get_volumetric_roi_measurement_groups()}
    assert len(by_uid) == len(segments)
    for index, measurements in segments.items():
        segment = seg.SegmentSequence[index]
        found = by_uid[segment.TrackingUID]
        assert found.tracking_identifier == segment.TrackingID
        assert found.finding_type.value == segment.SegmentedPropertyTypeCodeSequence[0].CodeValue
        regions = [site.value.value for site in found.finding_sites]
        assert regions == [item.CodeValue for item in segment.get("AnatomicRegionSequence", [])]
        reference = highdicom.sr.ReferencedSegment.from_sequence(found[0].ContentSequence)
        assert reference.referenced_sop_instance_uid == seg.SOPInstanceUID
        assert list(reference.referenced_segment_numbers) == [segment.SegmentNumber]
        series = reference.source_series_for_segmentation
        assert series.value == seg.ReferencedSeriesSequence[0].SeriesInstanceUID
        assert_highdicom_measures(found, measurements)


def judge(written, paths, groups, own=False, volume="test-pipeline: whole volume", kind="enhanced"):
    """Checks all requirements of every report."""
    path, seg_path, summary = written
    planes = planes_of(paths)
    assert_dciodvfy_is_content(path)
    assert_dcmdump_reads(path)
    assert_dsrdump_shows(path, groups, kind)
    assert path.stat().st_size == summary["bytes"]
    report, seg = pydicom.dcmread(path), pydicom.dcmread(seg_path)
    assert all(len(text) <= 16 for text in decimal_strings(report))
    assert_header(report, seg, planes[0].source, summary, kind)
    of_segments = kind == "root" or set(groups) != {VOLUME}
    assert_evidence(report, seg, [plane.source for plane in planes], of_segments, kind)
    assert_context(report)
    assert_library(report, planes, seg, kind)
    assert_schemes(report, own)
    assert_groups(report, seg, planes, groups, volume)
    assert_highdicom_reads(path, seg, planes, groups, kind)
    return report


# --- the cases ---


@pytest.mark.parametrize("planes, segments", [(7, 1), (1, 1), (9, 3)])
def test_texture_of_segments(tmp_path, planes, segments):
    paths = classic(tmp_path / "in", planes, 40, 41)
    groups = {index: glcm(index) for index in range(segments)}
    written = write(tmp_path, paths, apart(segments, planes, 40, 41), groups)
    judge(written, paths, groups)
    assert dciodvfy_remarks(written[0]) == []  # without even the warning for private concepts


@pytest.mark.parametrize("source", [classic, enhanced])
@pytest.mark.parametrize("segments", [[0, 1], []])
def test_texture_of_the_volume(tmp_path, source, segments):
    """Together with segments, and in a report without a segmentation."""
    paths = source(tmp_path / "in", 7, 40, 41)
    groups = {index: glcm(index + 1) for index in [VOLUME, *segments]}
    judge(write(tmp_path, paths, apart(2, 7, 40, 41), groups), paths, groups)
    assert (b"1.2.840.10008.5.1.4.1.1.66.4" in (tmp_path / "sr.dcm").read_bytes()) == bool(segments)


def content_of(item):
    """Returns a content item with its children, without the parts that depend on UIDs of other objects and on its place."""
    whole = item.to_json_dict()
    whole.pop("0040A730", None)
    return whole, [content_of(child) for child in item.get("ContentSequence", [])]


def assert_same_content(report, enhanced):
    """Compares all content besides the UIDs of the reports and the list of results."""
    for one_report in (report, enhanced):
        library = one(one_report, "CONTAINER", "111028")
        del library.ContentSequence[1:]
    assert [content_of(item) for item in children(report)] == [content_of(item) for item in children(enhanced)]


@pytest.mark.parametrize("kind", ["3d", "root"])
@pytest.mark.parametrize("source", [classic, enhanced])
@pytest.mark.parametrize("regions", [[0, 1], [VOLUME, 0], [VOLUME]])
def test_comprehensive_3d(tmp_path, kind, source, regions):
    """The content of an Enhanced SR in the other class, and as the root of the results of a job."""
    paths = source(tmp_path / "in", 7, 40, 41)
    groups = {index: glcm(index + 1, own=True) for index in regions}
    groups[regions[0]][3] = Measurement(None, groups[regions[0]][3].concept, reason="ONE_GREY_LEVEL")
    written = write(tmp_path, paths, apart(2, 7, 40, 41), groups, options=["--kind", kind])
    report = judge(written, paths, groups, own=True, kind=kind)
    (tmp_path / "enhanced").mkdir()
    other = write(tmp_path / "enhanced", paths, apart(2, 7, 40, 41), groups)[0]
    assert_same_content(report, pydicom.dcmread(other))
    assert report.SOPInstanceUID != pydicom.dcmread(other).SOPInstanceUID


def test_a_root_without_measurements(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41)
    groups = {0: [], 1: glcm(2), 2: []}
    written = write(tmp_path, paths, apart(3, 5, 40, 41), groups, options=["--kind", "root"])
    judge(written, paths, groups, kind="root")
    page = subprocess.run(["dsr2html", written[0], tmp_path / "report.html"], capture_output=True, text=True)
    assert page.returncode == 0, page.stderr


def test_settings_of_the_private_scheme(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41)
    groups = {0: glcm(1, own=True), 1: glcm(2, own=True)}
    judge(write(tmp_path, paths, apart(2, 5, 40, 41), groups), paths, groups, own=True)


def test_highdicom_finds_a_segment(tmp_path):
    paths = classic(tmp_path / "in", 3, 20, 20)
    path, seg_path, _ = write(tmp_path, paths, apart(3, 3, 20, 20), {index: glcm(index) for index in range(3)})
    content = highdicom.sr.EnhancedSR.from_dataset(pydicom.dcmread(path)).content
    uid = pydicom.dcmread(seg_path).SegmentSequence[1].TrackingUID
    (found,) = content.get_volumetric_roi_measurement_groups(tracking_uid=uid)
    assert found.tracking_identifier == "test-pipeline: Part 2"


@pytest.mark.parametrize("character", ["x", "ß", "脳"])
def test_texts_of_maximum_length(tmp_path, character):
    """A label of 64 characters, settings and reasons of any length. Names of concepts are truncated to 64."""
    paths = classic(tmp_path / "in", 3, 20, 20)
    long = character * 64
    concept = ("code-of-16-chars", "99NOCTULE", long)  # highdicom has no Long Code Value
    present = Measurement(0.5, concept, modifiers=[(concept, concept)], parameters=[(2.0, concept, ("mm", long))],
                          words=(concept, character * 264))
    absent = Measurement(None, ("TU9B", "IBSI", "Joint entropy"), reason=character * 2000)
    groups = {0: [present, absent], VOLUME: [absent]}
    report = judge(write(tmp_path, paths, apart(1, 3, 20, 20), groups, labels=[long],
                         options=["--description", character * 200, "--pipeline", "p" * 64]), paths, groups, own=True,
                   volume=f"{'p' * 64}: whole volume")
    assert report.SeriesDescription == long
    group = children(one(report, "CONTAINER", "126010"), "CONTAINER", "125007")[0]
    assert one(group, "TEXT", "112039").TextValue == f"{'p' * 64}: {long}"


def test_settings_in_words(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41)
    groups = {0: [Measurement(value, ("TU9B", "IBSI", "Joint entropy"), modifiers=[AGGREGATION], parameters=[LEVELS],
                              words=(DIRECTIONS, "(1,0,0)(2,1,0)")) for value in (1.5, 2.5)]}
    judge(write(tmp_path, paths, apart(1, 5, 40, 41), groups), paths, groups, own=True)


def test_absent_values(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41)
    features = glcm(3)
    features[4] = Measurement(None, features[4].concept, modifiers=[AGGREGATION], reason="ONE_GREY_LEVEL")
    features[7] = Measurement(None, features[7].concept, reason="out of memory", qualifier="114006")
    groups = {0: features, 1: [Measurement(None, ("TU9B", "IBSI", "Joint entropy"), reason="EMPTY_REGION")]}
    judge(write(tmp_path, paths, apart(2, 5, 40, 41), groups), paths, groups)


def test_infinite_and_undefined_values(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41)
    groups = {0: [Measurement(value, ("NI2N", "IBSI", "Correlation")) for value in (math.nan, math.inf, 1.5)]}
    written = write(tmp_path, paths, apart(1, 5, 40, 41), groups)
    reason = "The computation gave no finite number."
    expected = {0: [Measurement(None, ("NI2N", "IBSI", "Correlation"), reason=reason)] * 2 + groups[0][2:]}
    judge(written, paths, expected)


def test_a_lesion_on_one_side(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41)
    groups = {0: glcm(4)}
    report = judge(write(tmp_path, paths, apart(1, 5, 40, 41), groups, options=["--modifier"]), paths, groups)
    group = one(one(report, "CONTAINER", "126010"), "CONTAINER", "125007")
    site = one(group, "CODE", "363698007")
    assert code_of(site.ConceptCodeSequence) == ("12738006", "SCT", "Brain")
    assert code_of(one(site, "CODE", "272741003").ConceptCodeSequence)[0] == "7771000"


def test_names_beyond_ascii(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41, SpecificCharacterSet="ISO_IR 100", PatientName="Müller^Jörg")
    groups = {0: glcm(5), 1: [Measurement(None, ("TU9B", "IBSI", "Joint entropy"), reason="zu wenig Gründe")]}
    report = judge(write(tmp_path, paths, apart(2, 5, 40, 41), groups, labels=["Größe", "脳"]), paths, groups)
    assert report.SpecificCharacterSet == "ISO_IR 192"
    assert report.PatientName == "Müller^Jörg"


def test_the_character_set_is_inherited(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41, SpecificCharacterSet="ISO_IR 100", PatientName="Müller^Jörg")
    groups = {0: glcm(6)}
    report = judge(write(tmp_path, paths, apart(1, 5, 40, 41), groups), paths, groups)
    assert report.SpecificCharacterSet == "ISO_IR 100"
    assert report["PatientName"].value == "Müller^Jörg"


def test_an_enhanced_source(tmp_path):
    paths = enhanced(tmp_path / "in", 7, 40, 41)
    groups = {0: glcm(7)}
    judge(write(tmp_path, paths, apart(1, 7, 40, 41), groups), paths, groups)


def test_a_fractional_segmentation(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41)
    maps = apart(1, 5, 40, 41).astype(numpy.uint16) * 40000
    groups = {0: glcm(8)}
    judge(write(tmp_path, paths, maps, groups), paths, groups)


def test_many_segments(tmp_path):
    paths = classic(tmp_path / "in", 2, 32, 32)
    masks = numpy.zeros((256, 2, 32, 32), bool)
    for index in range(256):
        masks[index, index % 2, index // 32, index % 32] = True
    groups = {index: glcm(index)[:3] for index in range(256)}
    judge(write(tmp_path, paths, masks, groups), paths, groups)


def test_the_same_report_again(tmp_path):
    paths = classic(tmp_path / "in", 5, 40, 41)
    masks = apart(2, 5, 40, 41)
    groups = {0: glcm(9), 1: glcm(10)}
    first = write(tmp_path, paths, masks, groups)[0].read_bytes()
    assert write(tmp_path, paths[::-1], masks, groups)[0].read_bytes() == first
    groups[1][3].value = float(numpy.nextafter(groups[1][3].value, numpy.inf))
    path = write(tmp_path, paths, masks, groups)[0]
    assert pydicom.dcmread(path).SOPInstanceUID.encode() not in first


def test_the_device_is_the_same_in_every_report(tmp_path):
    uids = set()
    for planes in (3, 4):
        folder = tmp_path / str(planes)
        folder.mkdir()
        paths = classic(folder / "in", planes, 20, 20)
        report = pydicom.dcmread(write(folder, paths, apart(1, planes, 20, 20), {0: glcm(planes)})[0])
        uids.add(one(report, "UIDREF", "121012").UID)
    assert len(uids) == 1


def numbers_in_orthanc(tags):
    """Returns each group's numbers, by concept, as the archive returns the report."""
    measurements = tags["ContentSequence"][-1]
    assert measurements["ConceptNameCodeSequence"][0]["CodeValue"] == "126010"
    return [{item["ConceptNameCodeSequence"][0]["CodeValue"]:
             float(item["MeasuredValueSequence"][0]["FloatingPointValue"])
             for item in group["ContentSequence"] if item["ValueType"] == "NUM"}
            for group in measurements["ContentSequence"]]


def test_orthanc_stores_and_returns_the_report(sender, tmp_path):  # noqa: F811
    """Delivered as by Noctule, together with the objects it refers to, and returned unchanged."""
    paths = classic(tmp_path / "in", 5, 40, 41)
    groups = {0: glcm(11, own=True), VOLUME: glcm(12)}
    path, seg_path, summary = write(tmp_path, paths, apart(1, 5, 40, 41), groups)
    with orthanc(tmp_path / "orthanc") as peer:
        storescu(peer.port, *paths, called="ORTHANC")
        one = sender(destination(port=peer.port, ae_title="ORTHANC"))
        assert [one.deliver(file)["outcome"] for file in (seg_path, path)] == [SENT, SENT]
        assert len(peer.rest("/studies")) == 1
        series = [peer.rest(f"/series/{name}") for name in peer.rest("/series")]
        assert sorted(item["MainDicomTags"]["Modality"] for item in series) == ["CT", "SEG", "SR"]
        report = next(item for item in series if item["MainDicomTags"]["Modality"] == "SR")
        assert report["MainDicomTags"]["SeriesInstanceUID"] == summary["series_uid"]
        (instance,) = report["Instances"]
        told = numbers_in_orthanc(peer.rest(f"/instances/{instance}/simplified-tags"))
        for shown, (_, measurements) in zip(told, in_order(groups)):
            assert shown == {one.concept[0]: pytest.approx(one.value, rel=1e-5) for one in measurements}
        held = pydicom.dcmread(io.BytesIO(peer.file(instance)))
    assert len(told) == 2 and held == pydicom.dcmread(path)


@needs_shared
@pytest.mark.parametrize("name", ["ct-head-5mm", "mr-brain-t1"])
def test_real_series(tmp_path, name):
    """The report inherits values of any scanner and stays valid."""
    paths = sorted((SHARED / name).glob("*.dcm"))
    source = pydicom.dcmread(paths[0], stop_before_pixels=True)
    masks = numpy.zeros((1, len(paths), source.Rows, source.Columns), bool)
    masks[0, len(paths) // 2, source.Rows // 2, source.Columns // 2] = True
    groups = {0: glcm(12)}
    path = write(tmp_path, paths, masks, groups)[0]
    inherited = {re.sub(r"<.*?>", "", remark) for remark in dciodvfy_remarks(paths[0])}
    remarks = [remark for remark in dciodvfy_remarks(path) if re.sub(r"<.*?>", "", remark) not in inherited]
    assert remarks == []
    assert_dsrdump_shows(path, groups)
    report = pydicom.dcmread(path)
    for keyword in ("PatientName", "PatientID", "StudyInstanceUID", "AccessionNumber", "StudyID"):
        assert report[keyword].value == source.get(keyword, report[keyword].value), keyword

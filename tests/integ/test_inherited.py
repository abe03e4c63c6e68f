"""Attributes that results inherit from damaged sources. dciodvfy must find no error in the results, and omitted
attributes are reported."""

import json

import numpy
import pydicom
import pytest
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from test_seg import apart, classic, dciodvfy_remarks, write
from texture_runs import around_middle, run, series  # noqa: F401


@pytest.fixture(autouse=True)
def without_validation():
    """pydicom refuses to read and write such values, so its validation is switched off."""
    settings = pydicom.config.settings
    before = settings.reading_validation_mode, settings.writing_validation_mode
    settings.reading_validation_mode = settings.writing_validation_mode = pydicom.config.IGNORE
    yield
    settings.reading_validation_mode, settings.writing_validation_mode = before


def item(**attributes):
    dataset = Dataset()
    for keyword, value in attributes.items():
        setattr(dataset, keyword, value)
    return dataset


def items(*each):
    return Sequence(each)


CODE = {"CodeValue": "1", "CodingSchemeDesignator": "DCM", "CodeMeaning": "x"}
UNSAID = "unsaid"  # absent from the result

# attribute, its value in the source, its value in the result: None if it must be present and empty
RUINED = [
    ("PatientName", "A" * 70, None),
    ("PatientName", "a=b=c=d", None),
    ("PatientName", "Do\x07e^J", "Do?e^J"),
    ("PatientName", "a^b^c^d^e^f", None),
    ("PatientName", ["a", "b"], None),
    ("PatientBirthDate", "***", None),
    ("PatientBirthDate", "1970.01.01", None),
    ("PatientBirthDate", "19701301", None),
    ("PatientBirthDate", "19700101-19710101", None),
    ("PatientSex", "X", None),
    ("PatientSex", "f", None),
    ("PatientSex", ["M", "F"], None),
    ("StudyDate", "***", None),
    ("StudyDate", ["20200101", "20200102"], None),
    ("StudyTime", "noon", None),
    ("StudyTime", "10:11:12", None),
    ("AccessionNumber", "1" * 20, None),
    ("StudyID", "1" * 20, None),
    ("ReferringPhysicianName", "R" * 70, None),
    ("PositionReferenceIndicator", "p" * 70, None),
    ("SpecificCharacterSet", "ISO_IR 999", UNSAID),
    ("StudyDescription", "d" * 70, UNSAID),
    ("StudyDescription", ["a", "b"], UNSAID),
    ("TimezoneOffsetFromUTC", "CET", UNSAID),
    ("EthnicGroup", "e" * 20, UNSAID),
    ("PatientComments", "a\x00\x01b", UNSAID),
    ("IssuerOfPatientID", "i" * 70, UNSAID),
    ("OtherPatientNames", ["a^b", "c" * 70], UNSAID),
    ("PhysiciansOfRecord", ["a^b", "c" * 70], UNSAID),
    ("RequestingService", "s" * 70, UNSAID),
    ("PatientBirthDateInAlternativeCalendar", "x", UNSAID),
    ("PatientIdentityRemoved", "YES", UNSAID),
    ("PatientIdentityRemoved", "MAYBE", UNSAID),
    ("ResponsiblePerson", "a^b", UNSAID),
    ("PatientSpeciesDescription", "dog", UNSAID),
    ("StrainDescription", "C57", UNSAID),
    ("ProcedureCodeSequence", items(), UNSAID),
    ("ProcedureCodeSequence", items(item()), UNSAID),
    ("ProcedureCodeSequence", items(item(CodeValue="1", CodingSchemeDesignator="DCM")), UNSAID),
    ("ProcedureCodeSequence", items(item(**{**CODE, "CodeValue": "1" * 30})), UNSAID),
    ("ProcedureCodeSequence", items(item(**dict.fromkeys(CODE, ""))), UNSAID),
    ("ReasonForPerformedProcedureCodeSequence", items(item()), UNSAID),
    ("RequestingServiceCodeSequence", items(item()), UNSAID),
    ("DeidentificationMethodCodeSequence", items(item()), UNSAID),
    ("PatientSpeciesCodeSequence", items(item()), UNSAID),
    ("PatientBreedCodeSequence", items(item()), UNSAID),
    ("BreedRegistrationSequence", items(item()), UNSAID),
    ("StrainStockSequence", items(item()), UNSAID),
    ("GeneticModificationsSequence", items(item()), UNSAID),
    ("ReferencedStudySequence", items(item()), UNSAID),
    ("ReferencedStudySequence", items(item(ReferencedSOPClassUID="x", ReferencedSOPInstanceUID="1.2")), UNSAID),
    ("ReferencedPatientSequence", items(item()), UNSAID),
    ("OtherPatientIDsSequence", items(item(PatientID="x")), UNSAID),
    ("SourcePatientGroupIdentificationSequence", items(item()), UNSAID),
    ("GroupOfPatientsIdentificationSequence", items(item()), UNSAID),
    ("IssuerOfAccessionNumberSequence", items(item()), UNSAID),
    ("ReferringPhysicianIdentificationSequence", items(item()), UNSAID),
    ("PhysiciansOfRecordIdentificationSequence", items(item()), UNSAID),
    ("PhysiciansReadingStudyIdentificationSequence", items(item()), UNSAID),
    ("ConsultingPhysicianIdentificationSequence", items(item()), UNSAID),
]

WHOLE = {
    "ProcedureCodeSequence": items(item(**CODE)),
    "ReferencedStudySequence": items(item(ReferencedSOPClassUID="1.2.3", ReferencedSOPInstanceUID="1.2")),
    "OtherPatientIDsSequence": items(item(PatientID="x", TypeOfPatientID="TEXT")),
    "IssuerOfAccessionNumberSequence": items(item(LocalNamespaceEntityID="x")),
    "IssuerOfPatientIDQualifiersSequence": items(item(UniversalEntityID="1.2", UniversalEntityIDType="ISO")),
    "ReferringPhysicianIdentificationSequence": items(
        item(PersonIdentificationCodeSequence=items(item(**CODE)), InstitutionName="x")),
    "PatientIdentityRemoved": "YES",
    "DeidentificationMethod": "by hand",
    "TimezoneOffsetFromUTC": "+0100",
    "PatientComments": "two\r\nlines, one \\",
    "OtherPatientNames": ["a^b", "c^d"],
}

ANIMAL = {
    "PatientSpeciesDescription": "Canis lupus familiaris",
    "PatientSexNeutered": "ALTERED",
    "PatientBreedDescription": "Pug",
    "PatientBreedCodeSequence": items(),
    "BreedRegistrationSequence": items(),
    "ResponsiblePerson": "Doe^Jane",
    "ResponsiblePersonRole": "OWNER",
    "ResponsibleOrganization": "",
}


def errors_of(path):
    return [remark for remark in dciodvfy_remarks(path) if remark.startswith("Error")]


def segmentation_of(folder, **attributes):
    paths = classic(folder / "in", 2, 6, 8, **attributes)
    path, summary = write(folder, paths, apart(1, 2, 6, 8))
    assert errors_of(path) == []
    return pydicom.dcmread(path), summary["left_out"]


@pytest.mark.parametrize("keyword, value, kept", RUINED)
def test_damaged_attributes_are_omitted(tmp_path, keyword, value, kept):
    seg, left_out = segmentation_of(tmp_path, **{keyword: value})
    assert f"{keyword} (" in left_out
    if kept is UNSAID:
        assert keyword not in seg
    else:
        assert str(seg[keyword].value or "") == (kept or "")


@pytest.mark.parametrize("attributes", [WHOLE, ANIMAL], ids=["person", "animal"])
def test_valid_attributes_are_inherited(tmp_path, attributes):
    seg, left_out = segmentation_of(tmp_path, **attributes)
    assert left_out == ""
    for keyword, value in attributes.items():
        assert seg[keyword].value == value, keyword


def test_uids_with_leading_zeros_are_kept(tmp_path):
    """PS3.5 9.1 forbids leading zeros, but scanners and anonymizers write them. A result must keep the study's UID."""
    uids = {"StudyInstanceUID": "1.2.840.00113619.2.0055.1", "FrameOfReferenceUID": "1.2.840.0011.7"}
    paths = classic(tmp_path / "in", 2, 6, 8, **uids)
    path, summary = write(tmp_path, paths, apart(1, 2, 6, 8))
    seg = pydicom.dcmread(path)
    assert summary["left_out"] == "" and {key: seg[key].value for key in uids} == uids


def test_an_empty_deidentification_method_is_omitted(tmp_path):
    """Some anonymizers write an empty method. A result must not contain an empty method."""
    seg, left_out = segmentation_of(tmp_path, PatientIdentityRemoved="YES", DeidentificationMethod="")
    assert left_out == "PatientIdentityRemoved (0012,0062)"
    assert "PatientIdentityRemoved" not in seg and "DeidentificationMethod" not in seg


def test_valid_items_are_kept(tmp_path):
    seg, left_out = segmentation_of(tmp_path, ProcedureCodeSequence=items(item(), item(**CODE), item(CodeValue="2")))
    assert left_out == "ProcedureCodeSequence (0008,1032)"
    assert [each.CodeMeaning for each in seg.ProcedureCodeSequence] == ["x"]


def test_all_results_of_a_ruined_source(tmp_path, run):  # noqa: F811
    ruined = {keyword: value for keyword, value, _ in RUINED}
    voxels = numpy.random.default_rng(1).integers(0, 200, (4, 16, 16)).astype(numpy.uint16)
    series(tmp_path / "in", voxels, **ruined)
    run(tmp_path / "in", tmp_path / "out", 'patterns = [ "lbp" ];', [around_middle(0, 200, 8)], ("seg", "sr", "pmap"))
    objects = sorted((tmp_path / "out").glob("*.dcm"))
    assert {path.name[:2] for path in objects} == {"se", "sr", "pm"}
    for path in objects:
        assert errors_of(path) == [], path
    note = json.loads((tmp_path / "out" / "job.json").read_text())["note"]
    assert "not taken over from the source, being invalid: SpecificCharacterSet (0008,0005), StudyDate" in note


@pytest.mark.parametrize("value", ["1" * 70, ["a", "b"], "a\x01b"])
def test_an_invalid_patient_id_is_refused(tmp_path, value):
    """A result with no Patient ID or another one would belong to no patient or to a wrong one."""
    with pytest.raises(AssertionError, match="TAG_INVALID.*PatientID"):
        segmentation_of(tmp_path, PatientID=value)

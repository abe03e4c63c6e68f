"""De-identified copies: names planted in some hundred places leave in no byte, and the copies fit together."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess

import highdicom
import numpy
import pydicom
import pytest
from conftest import SHARED, drop, needs_shared, run_program, storescp, wait_for
from dicognito.anonymizer import Anonymizer
from dicomanonymizer.simpledicomanonymizer import anonymize_dataset
from PIL import Image
from pydicom.datadict import dictionary_VR, keyword_for_tag
from pydicom.dataset import Dataset
from pydicom.pixels import pixel_array
from pydicom.tag import Tag
from pynetdicom import AE, StoragePresentationContexts, evt
from test_decide import TOKENS, Deciding
from test_deliveries import deliveries, destinations, objects, to_archive, wait_states

TABLE = pathlib.Path(__file__).parents[2] / "dicom/deidentify/attributes.def"
KEEPS = {"basic": [], "dates": ["dates"],
         "all": ["device", "institution", "characteristics", "dates", "descriptors", "safe_private", "uids"]}

PIPELINE = """
root = "{root}";
pipelines = ( {{ name = "head-ct"; segments = ( {{ label = "Brain"; method = "level-set"; range = [ 0.0, 80.0 ];
    shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} );
    category = {{ code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; }};
    type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }} );
rules = ( );
"""


# What the site may keep by option, device, institution and characteristics, names no patient.
KEPT_BY_ALL = {int(tag, 16) for tag, options in re.findall(r'PROFILED\(0x(\w{8}), \w+, "(.{6})"', TABLE.read_text())
               if "K" in options[1:4]}


def setting(keep, more=""):
    words = ", ".join(f'"{word}"' for word in keep)
    return f'deidentify = {{ profile = "basic"; {f"keep = [ {words} ];" if keep else ""} {more} }};'


def clean(tmp_path, files, keep=(), name="copies", more="", key="key"):
    """Returns the copies of the files, in their order; a refusal is its line."""
    out = tmp_path / name
    out.mkdir(exist_ok=True)
    (tmp_path / key).mkdir(exist_ok=True)
    config = tmp_path / f"{name}.conf"
    config.write_text(PIPELINE.format(root=tmp_path) +
                      f'destinations = ( {{ name = "TRIAL"; folder = "{out}"; {setting(keep, more)} }} );\n')
    lines = run_program("deidentify", config, "TRIAL", tmp_path / key, out, *files).stdout.splitlines()
    assert len(lines) == len(files)
    return [out / line if line.endswith(".dcm") and ":" not in line else line for line in lines]


# ------------------------------------------------------------------------------------ names --

KANJI, HANGUL, CYRILLIC, GREEK, LATIN = "山田太郎", "김희중", "Люкceмбург", "Διονυσιος", "Müßgnäg"
ENCODINGS = ["utf-8", "iso2022_jp", "shift_jis", "euc_jp", "iso2022_kr", "euc_kr", "gb18030", "iso8859_5", "iso8859_7",
             "latin_1", "utf-16-le", "utf-16-be"]


class Planter:
    """Makes names that no other place has."""

    def __init__(self):
        self.tokens = []

    def token(self):
        self.tokens.append(f"ZQ{len(self.tokens):04d}XV")
        return self.tokens[-1]

    def value(self, vr):
        token = self.token()
        return {"PN": f"{token}^Anna^^Dr", "AE": token, "CS": token, "SH": token, "UR": f"http://x.example/{token}",
                "DA": token, "TM": token, "DT": token, "AS": token, "DS": token, "IS": token,
                "UI": token}.get(vr, f"seen by {token}, phone")


TEXTS = ("PN", "LO", "SH", "LT", "ST", "UT", "UC", "UR", "AE")
FORMS = ("CS", "DA", "TM", "DT", "AS", "DS", "IS")


def profile_tags():
    """The attributes of table E.1-1."""
    return [int(tag, 16) for tag in re.findall(r"PROFILED\(0x(\w{8})", TABLE.read_text())]


def plant(dataset, tag, vr, value):
    """Adds an element, also one whose value pydicom would refuse."""
    if vr == "SQ":
        dataset.add_new(tag, "SQ", value)
        return
    with pydicom.config.disable_value_validation():
        if vr in FORMS or vr == "UI":
            raw = value.encode() + b" " * (len(value) % 2)
            dataset[tag] = pydicom.dataelem.RawDataElement(Tag(tag), vr, len(raw), raw, 0, False, True)
        else:
            dataset.add_new(tag, vr, value)


def plant_table(dataset, planter, known):
    """Plants in each attribute of the table that holds text."""
    count = 0
    for tag in profile_tags():
        try:
            vr = dictionary_VR(tag)
        except KeyError:
            continue
        if vr in TEXTS + FORMS and tag >> 16 not in (0, 2, 4) and tag not in known:
            plant(dataset, tag, vr, planter.value(vr))
            count += 1
    return count


def plant_rest(dataset, planter):
    """Private, unknown and repeated attributes, wrong VRs, bytes, and items of four levels."""
    for group, creator in ((0x0009, "SITE"), (0x0019, "SIEMENS MR HEADER"), (0x7053, "Philips PET Private Group")):
        block = dataset.private_block(group, creator, create=True)
        for offset, vr in enumerate(("LO", "PN", "UT", "SH", "DS", "OB", "UN"), 0x01):
            value = planter.value(vr)
            with pydicom.config.disable_value_validation():
                if vr == "DS":
                    plant(dataset, block.get_tag(0x09 if group == 0x7053 else 0x0C), "DS", value)
                else:
                    block.add_new(0x30 + offset, vr, value.encode() if vr in ("OB", "UN") else value)
        item = Dataset()
        item.PatientName = planter.value("PN")
        block.add_new(0x50, "SQ", [item])
    dataset.add_new(0x00131234, "LO", planter.value("LO"))  # a private element without its creator
    for tag in (0x00085432, 0x00285432, 0x44440010):  # of no dictionary
        for vr in ("LO", "UN"):
            plant(dataset, tag + (vr == "UN"), vr, planter.value(vr).encode() if vr == "UN" else planter.value(vr))
    for tag in (0x00181210, 0x00080070, 0x00102210):  # UN in place of the known VR
        dataset.add_new(tag, "UN", planter.value("LO").encode() + b"  ")
    for tag, vr in ((0x00101030, "LO"), (0x00180050, "UT"), (0x00280030, "LO"), (0x00180060, "ST")):  # text for a number
        plant(dataset, tag, vr, planter.value(vr))
    for tag, vr in ((0x60000022, "LO"), (0x60001500, "LO"), (0x60004000, "LT"), (0x60020022, "LO"), (0x50002500, "LO"),
                    (0x50000022, "LO"), (0x50000030, "SH")):
        plant(dataset, tag, vr, planter.value(vr))
    for tag in (0x60003000, 0x50003000):
        dataset.add_new(tag, "OW", planter.token().encode())
    for tag in (0x04000520, 0x00420011, 0x00282000, 0x00340007, 0x04000115, 0x00720065, 0xFFFCFFFC):
        dataset.add_new(tag, "OB", planter.token().encode())
    for keyword in ("SegmentDescription", "AlgorithmParameters", "TextValue", "TrackingID", "DetectorDescription",
                    "TransformDescription", "SegmentLabel", "LUTExplanation", "ContentDescription", "EvaluatorName",
                    "RetrieveURL", "ExpiryDate"):
        vr = dictionary_VR(keyword)
        plant(dataset, pydicom.datadict.tag_for_keyword(keyword), vr, planter.value(vr))
    for outer in ("ReferencedImageSequence", "SourceImageSequence", "CTExposureSequence", "OriginalAttributesSequence",
                  "RequestAttributesSequence", "IconImageSequence", "OtherPatientIDsSequence", "ContentSequence",
                  "AcquisitionContextSequence", "GraphicAnnotationSequence"):
        item = Dataset()
        setattr(dataset, outer, [item])
        for depth in range(4):
            item.add_new(0x00100010, "PN", planter.value("PN"))
            item.add_new(0x0040A160, "UT", planter.value("UT"))
            item.add_new(0x0008103E, "LO", planter.value("LO"))
            item.add_new(0x00091001 + depth, "UN", planter.token().encode())
            inner = Dataset()
            item.add_new((0x0040A730, 0x00081140, 0x0040A730, 0x00189346)[depth], "SQ", [inner])
            item = inner
        item.add_new(0x0040A123, "PN", planter.value("PN"))


def leaks(data, tokens):
    """Returns the tokens that are in the bytes, in any encoding."""
    lower = data.lower()
    found = []
    for token in tokens:
        for encoding in ENCODINGS:
            try:
                needle = token.encode(encoding)
            except UnicodeEncodeError:
                continue
            if needle.lower() in lower:
                found.append((token, encoding))
                break
    return found


def image(folder, seed=1):
    folder.mkdir(exist_ok=True)
    run_program("noctule-phantom", "--output", folder, "--size", "32x32x6", "--seed", str(seed))
    return sorted(folder.rglob("*.dcm"))


def save(dataset, path, preamble=b"\0" * 128):
    dataset.preamble = preamble
    with pydicom.config.disable_value_validation():
        dataset.save_as(path, enforce_file_format=True)


@pytest.mark.parametrize("keep", KEEPS)
def test_no_planted_name_leaves(tmp_path, keep):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    planter = Planter()
    known = {0x00080005, 0x00080060, 0x00200013}
    planned = plant_table(source, planter, known)
    plant_rest(source, planter)
    source.file_meta.SourceApplicationEntityTitle = planter.token()
    source.file_meta.ImplementationVersionName = planter.token()
    source.file_meta.PrivateInformationCreatorUID = "1.2.3"
    source.file_meta.PrivateInformation = planter.token().encode()
    number = "46219730"  # in a UID, as some sites do
    for keyword in ("SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"):
        setattr(source, keyword, f"1.2.{number}.{len(keyword)}")
    source.file_meta.MediaStorageSOPInstanceUID = source.SOPInstanceUID
    path = tmp_path / f"{planter.token()}.dcm"
    save(source, path, planter.token().encode().ljust(128, b"\0"))
    planted = [token for token, _ in leaks(path.read_bytes() + path.name.encode(), planter.tokens)]
    assert planned > 300 and len(planted) > 700
    (copy,) = clean(tmp_path, [path], KEEPS[keep])
    assert copy.suffix == ".dcm", copy
    kept = set()
    if keep == "all":  # what the site asked to keep, by its attribute
        made = pydicom.dcmread(copy)
        kept = {token for token in planted for tag in made.keys()
                if tag in KEPT_BY_ALL and token in str(made[tag].value)}
    tokens = [token for token in planted if token not in kept] + ([] if keep == "all" else [number])
    assert leaks(copy.read_bytes() + copy.name.encode(), tokens) == []
    made = pydicom.dcmread(copy)
    assert made.PixelData == source.PixelData and made.PatientIdentityRemoved == "YES"
    assert made.preamble == b"\0" * 128


@pytest.mark.parametrize(("declared", "encoding", "name"), [
    ("ISO 2022 IR 6\\ISO 2022 IR 87", "iso2022_jp", KANJI), ("\\ISO 2022 IR 149", "euc_kr", HANGUL),
    ("ISO_IR 144", "iso8859_5", CYRILLIC), ("ISO_IR 126", "iso8859_7", GREEK), ("ISO_IR 100", "latin_1", LATIN),
    ("ISO_IR 192", "utf-8", KANJI), ("GB18030", "gb18030", "王小东")])
def test_names_in_character_sets(tmp_path, declared, encoding, name):
    """The name of the patient stands in places of the table and in others, in the object's character set."""
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    source.SpecificCharacterSet = declared.split("\\")
    places = ["PatientName", "StudyDescription", "SeriesDescription", "PatientComments", "ConvolutionKernel",
              "ManufacturerModelName", "ContrastBolusAgent", "SegmentLabel", "TextValue", "OperatorsName"]
    for keyword in places:
        setattr(source, keyword, name if keyword == "PatientName" else f"Room {name}")
    path = tmp_path / "source.dcm"
    save(source, path)
    raw = name.encode(encoding)
    assert path.read_bytes().count(raw) == len(places)
    for keep in ((), ("descriptors", "device", "dates")):
        (copy,) = clean(tmp_path, [path], keep, name=f"copies{len(keep)}")
        data = copy.read_bytes()
        assert raw not in data and not leaks(data, [name])


def test_own_name_elsewhere(tmp_path):
    """Attributes that no rule names stay, unless they hold the name or a number of the patient."""
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    source.PatientName, source.PatientID = "Bergström-Quast^Wilhelmina", "KH-77281934"
    source.SpecificCharacterSet = "ISO_IR 192"
    source.ManufacturerModelName, source.ConvolutionKernel = "Scanner of W. QUAST", "id 77281934 b"
    source.SoftwareVersions, source.ScanOptions, source.BodyPartExamined = ["4.1", "Bergström"], "WILHELMINA", "HEAD"
    source.FilterType = "B30f"
    path = tmp_path / "source.dcm"
    save(source, path)
    (copy,) = clean(tmp_path, [path])
    assert leaks(copy.read_bytes(), ["quast", "bergström", "wilhelmina", "77281934"]) == []
    made = pydicom.dcmread(copy)
    assert (made.BodyPartExamined, made.FilterType) == ("HEAD", "B30f")  # others stay


@pytest.mark.parametrize(("name", "elsewhere"), [
    ("MÜLLER^JÖRG", "Müller"), ("Müller^Jörg", "Mu\u0308ller"), ("Müller^Jörg", "MUELLER"), ("Mueller^Jörg", "Müller"),
    ("Müller^Jörg", "Muller"), ("Strauß^Ute", "STRAUSS"), ("МАЯКОВСКИЙ^ВЛАДИМИР", "Маяковский"), ("ΠΑΠΠΑΣ^ΝΙΚΟΣ", "Παππάς"),
    ("Li^Na", "Li Na"), ("Li^Na", "NALI"), ("Li^Na", "of Li"), ("Quast^Eva", "EvaQuast"), ("Quast^Eva", "Ｑｕａｓｔ")])
def test_a_name_in_another_spelling(tmp_path, name, elsewhere):
    """Case, accents and separators differ between systems of one hospital."""
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    source.SpecificCharacterSet, source.PatientName, source.ManufacturerModelName = "ISO_IR 192", name, f"Room {elsewhere}"
    source.FilterType = "B30f"
    save(source, tmp_path / "source.dcm")
    (copy,) = clean(tmp_path, [tmp_path / "source.dcm"], ["device"])
    made = pydicom.dcmread(copy)
    assert (made.ManufacturerModelName, made.FilterType) == ("REMOVED", "B30f")


@pytest.mark.parametrize("written", ["03.02.1951", "3.2.51", "02/03/1951", "1951-02-03", "3 Feb 1951", "03FEB51", "February 3, 1951"])
def test_a_birth_date_in_another_form(tmp_path, written):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    source.PatientBirthDate, source.ManufacturerModelName, source.FilterType = "19510203", f"born {written}", "31 2"
    save(source, tmp_path / "source.dcm")
    (copy,) = clean(tmp_path, [tmp_path / "source.dcm"])
    made = pydicom.dcmread(copy)
    assert (made.ManufacturerModelName, made.FilterType) == ("REMOVED", "31 2")


@pytest.mark.parametrize("keyword", ["MedicalRecordLocator", "StudyID", "RequestedProcedureID", "ScheduledProcedureStepID",
                                     "PerformedProcedureStepID", "ServiceEpisodeID", "PlacerOrderNumberImagingServiceRequest",
                                     "FillerOrderNumberImagingServiceRequest"])
def test_a_number_of_an_order_elsewhere(tmp_path, keyword):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    setattr(source, keyword, "OP-88776655")
    source.ManufacturerModelName = "scan 88776655"
    save(source, tmp_path / "source.dcm")
    (copy,) = clean(tmp_path, [tmp_path / "source.dcm"])
    assert leaks(copy.read_bytes(), ["88776655"]) == []


def test_an_identifier_in_numbers_uids_and_character_sets(tmp_path):
    """Also in UIDs with the root of the standard, which are no registered UIDs, and in UIDs of vocabularies."""
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    source.PatientID = number = "77281934"
    source.SeriesNumber = source.AcquisitionNumber = number
    source.SOPInstanceUID = source.file_meta.MediaStorageSOPInstanceUID = f"1.2.840.10008.{number}.1"
    source.StudyInstanceUID, source.FrameOfReferenceUID = f"1.2.840.10008.5.1.4.1.1.{number}", "1.2.840.10008.1.4.1.1"
    item = Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = "1", "99X", "Head"
    item.CodingSchemeUID = item.ContextUID = item.MappingResourceUID = f"1.2.3.{number}"
    other = Dataset()
    other.ReferencedSOPClassUID, other.ContextUID = "1.2.840.10008.5.1.4.1.1.99999", "1.2.840.10008.6.1.2"  # a class of the future
    source.AnatomicRegionSequence, source.ReferencedImageSequence = [item], [other]
    plant(source, 0x00080005, "CS", number)
    save(source, tmp_path / "source.dcm")
    (copy,) = clean(tmp_path, [tmp_path / "source.dcm"])
    assert leaks(copy.read_bytes(), [number]) == []
    made = pydicom.dcmread(copy)
    assert made.SeriesNumber is None and made.FrameOfReferenceUID == "1.2.840.10008.1.4.1.1"  # Talairach
    assert made.ReferencedImageSequence[0] == other


def frame_stream(kind, number):
    """Returns a code stream of a frame and its values."""
    values = numpy.random.default_rng(number).integers(0, 200, (40, 32)).astype("u1")
    source = Dataset()
    source.file_meta = pydicom.dataset.FileMetaDataset()
    source.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    source.SOPClassUID, source.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.2", "2.25.1"
    source.Rows, source.Columns, source.SamplesPerPixel, source.PhotometricInterpretation = 40, 32, 1, "MONOCHROME2"
    source.BitsAllocated, source.BitsStored, source.HighBit, source.PixelRepresentation = 8, 8, 7, 0
    source.PixelData = values.tobytes()
    if kind == "jpeg":
        buffer = io.BytesIO()
        Image.fromarray(values).save(buffer, "JPEG", quality=90)
        return buffer.getvalue(), numpy.asarray(Image.open(buffer))
    source.compress({"jpeg-ls": pydicom.uid.JPEGLSLossless, "jpeg-2000": pydicom.uid.JPEG2000Lossless}[kind],
                    generate_instance_uid=False)
    return next(pydicom.encaps.generate_frames(source.PixelData, number_of_frames=1)), values


def with_texts(stream, kind, text):
    """Adds a comment and metadata behind the start of the stream (JPEG 2000: behind SIZ), and bytes behind its end."""
    text = text.encode()

    def segment(marker, payload):
        return b"\xff" + bytes([marker]) + (len(payload) + 2).to_bytes(2, "big") + payload

    if kind == "jpeg-2000":
        at = 4 + int.from_bytes(stream[4:6], "big")
        return stream[:at] + segment(0x64, b"\0\1" + text) + stream[at:].rstrip(b"\0") + text
    at = 2
    if kind == "jpeg":  # a thumbnail of JFIF
        at += 2 + int.from_bytes(stream[4:6], "big")
        pixels = text.ljust(48, b"X")
        stream = stream[:2] + segment(0xE0, stream[6:18] + bytes([4, 4]) + pixels) + stream[at:]
        at = 2 + 2 + int.from_bytes(stream[4:6], "big")
    return stream[:at] + segment(0xE1, b"Exif\0\0" + text) + segment(0xFE, text) + stream[at:].rstrip(b"\0") + text


def encapsulated(folder, kind, streams, fragments=1):
    source = pydicom.dcmread(image(folder)[0])
    syntax = {"jpeg": "50", "jpeg-ls": "80", "jpeg-2000": "90"}[kind]
    source.file_meta.TransferSyntaxUID = f"1.2.840.10008.1.2.4.{syntax}"
    source.Rows, source.Columns, source.NumberOfFrames = 40, 32, len(streams)
    source.BitsAllocated, source.BitsStored, source.HighBit, source.PixelRepresentation = 8, 8, 7, 0
    source.PixelData = pydicom.encaps.encapsulate(streams, fragments_per_frame=fragments)
    source["PixelData"].VR = "OB"
    source["PixelData"].is_undefined_length = True
    save(source, folder / "source.dcm")
    return folder / "source.dcm"


@pytest.mark.parametrize("fragments", [1, 7])
@pytest.mark.parametrize("kind", ["jpeg", "jpeg-ls", "jpeg-2000"])
def test_texts_in_code_streams_do_not_leave(tmp_path, kind, fragments):
    plain = [frame_stream(kind, number) for number in range(3)]
    path = encapsulated(tmp_path / "ct", kind, [with_texts(stream, kind, "QUAST ANNA") for stream, _ in plain], fragments)
    assert path.read_bytes().count(b"QUAST") == {"jpeg": 12, "jpeg-ls": 9, "jpeg-2000": 6}[kind]
    (copy,) = clean(tmp_path, [path])
    assert leaks(copy.read_bytes(), ["QUAST", "ANNA"]) == []
    made = pydicom.dcmread(copy)
    assert len(made.PixelData) == len(pydicom.dcmread(path).PixelData)  # offsets stay
    plugin = {"decoding_plugin": "pillow"} if kind == "jpeg" else {}
    assert numpy.array_equal(pixel_array(made, raw=True, **plugin), [values for _, values in plain])


def test_code_streams_without_texts_stay(tmp_path):
    for kind in ("jpeg", "jpeg-ls", "jpeg-2000"):
        streams = [frame_stream(kind, number)[0] for number in range(2)]
        assert kind != "jpeg-2000" or b"Created by OpenJPEG version" in streams[0]
        path = encapsulated(tmp_path / kind, kind, streams)
        (copy,) = clean(tmp_path, [path], name=f"copies-{kind}")
        assert pydicom.dcmread(copy).PixelData == pydicom.dcmread(path).PixelData


@pytest.mark.parametrize("stream", [b"QUAST", b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\xd8\xff\xfe\0\1", b"\xff\xd8\xff\xe0\0"])
def test_a_code_stream_of_another_form_is_refused(tmp_path, stream):
    (line,) = clean(tmp_path, [encapsulated(tmp_path / "ct", "jpeg", [stream])])
    assert line.startswith("PIXELS_UNDECODABLE: source.dcm has a code stream") and list((tmp_path / "copies").iterdir()) == []


def test_bytes_behind_native_pixels_do_not_leave(tmp_path):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    pixels = source.PixelData
    source.PixelData += b"QUAST ANNA"
    save(source, tmp_path / "source.dcm")
    for syntax in ("+te", "+ti", "+tb"):
        subprocess.run(["dcmconv", syntax, tmp_path / "source.dcm", tmp_path / "other.dcm"], check=True)
        (copy,) = clean(tmp_path, [tmp_path / "other.dcm"], name=f"copies{syntax}")
        made = pydicom.dcmread(copy).PixelData
        assert (numpy.frombuffer(made, ">u2" if syntax == "+tb" else "<u2") == numpy.frombuffer(pixels, "<u2")).all()


# ----------------------------------------------------------------------------------- copies fit --

RESULTS = '"seg", "labelmap", "sr", "rtstruct", "pmap", "nifti"'


def processed(tmp_path, seed=1, name="run", patient=None, days=None):
    """Runs a pipeline with all kinds of results. Returns the images and the objects."""
    files = image(tmp_path / f"{name}-ct", seed)
    for path in files:
        dataset = pydicom.dcmread(path)
        dataset.PatientName, dataset.PatientID = patient or ("Quastenflosser^Wilhelmina", "KH-77281934")
        dataset.AccessionNumber, dataset.PatientBirthDate = "ACC4711815", "19510203"
        dataset.StudyDate = dataset.SeriesDate = dataset.ContentDate = days or "20240229"
        dataset.StudyTime = dataset.SeriesTime = dataset.ContentTime = "101112.5"
        dataset.AcquisitionDateTime = (days or "20240229") + "101112.500000+0100"
        dataset.InstitutionName = "Quastenhaus"
        dataset.save_as(path)
    config = tmp_path / f"{name}-run.conf"
    config.write_text(PIPELINE.format(root=tmp_path / f"{name}-root").replace(
        'name = "head-ct";', f'name = "head-ct"; results = [ {RESULTS} ]; texture = {{ discretisation = '
        '"fixed-bin-size"; bin_width = 25.0; first_order = true; patterns = [ "lbp" ]; };').replace(
            "rules = ( );", 'rules = ( { match = { modality = "CT"; }; pipeline = "head-ct"; } );'))
    run_program("noctule", "--config", config, "run", "--pipeline", "head-ct", "--output", tmp_path / f"{name}-out",
                tmp_path / f"{name}-ct")
    return files, sorted((tmp_path / f"{name}-out").rglob("*.dcm"))


def uids_of(dataset, found=None):
    """All UIDs in it, at each depth, except those of the standard."""
    found = set() if found is None else found
    for element in dataset:
        if element.VR == "SQ":
            for item in element.value:
                uids_of(item, found)
        elif element.VR == "UI":
            values = element.value if element.VM > 1 else [element.value]
            found.update(str(value) for value in values if value and not str(value).startswith("1.2.840.10008."))
    return found


def check_file(path):
    """The errors that dciodvfy reports."""
    result = subprocess.run(["dciodvfy", path], text=True, capture_output=True)
    return sorted(line for line in (result.stdout + result.stderr).splitlines() if line.startswith("Error"))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return processed(tmp_path_factory.mktemp("job"))


@pytest.mark.parametrize("keep", KEEPS)
def test_copies_refer_to_each_other(tmp_path, job, keep):
    images, results = job
    copies = clean(tmp_path, [*images, *results], KEEPS[keep])
    assert all(isinstance(copy, pathlib.Path) for copy in copies), copies
    before = [pydicom.dcmread(path) for path in [*images, *results]]
    after = [pydicom.dcmread(path) for path in copies]
    assert {str(each.SOPClassUID) for each in after} == {str(each.SOPClassUID) for each in before} and len(results) >= 5
    assert len({each.PatientID for each in after}) == 1 and len({each.StudyInstanceUID for each in after}) == 1
    # One UID for one UID, in all files.
    mapped = {}
    for old, new in zip(before, after):
        kept = [(tag, old[tag].value) for tag in old.keys() if old[tag].VR == "UI" and tag in new]
        for tag, value in kept:
            assert mapped.setdefault(str(value), str(new[tag].value)) == str(new[tag].value)
    known = set(mapped.values())
    instances = {each.SOPInstanceUID for each in after}
    for old, new in zip(before, after):
        assert (uids_of(new) & uids_of(old) == set()) or keep == "all"
        if "PixelData" in old:
            assert new.PixelData == old.PixelData
    sources = {each.SOPInstanceUID for each in after[:len(images)]}
    for each in after[len(images):]:
        if each.Modality == "SEG":
            segmentation = highdicom.seg.segread(copies[after.index(each)])
            assert {uid for *_, uid in segmentation.get_source_image_uids()} <= sources
            labels = [segmentation.get_segment_description(n).segment_label for n in segmentation.segment_numbers]
            assert labels in (["Brain"], ["Background", "Brain"])
        if "SharedFunctionalGroupsSequence" in each and "RealWorldValueMappingSequence" in each.SharedFunctionalGroupsSequence[0]:
            (mapping,) = each.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence
            assert (mapping.LUTLabel, mapping.LUTExplanation) == ("LBP", "LBP code")
        if each.Modality == "SR":
            report = highdicom.sr.srread(copies[after.index(each)])
            referenced = {reference.ReferencedSOPInstanceUID for evidence in each.CurrentRequestedProcedureEvidenceSequence
                          for series in evidence.ReferencedSeriesSequence for reference in series.ReferencedSOPSequence}
            assert referenced <= instances and referenced & sources
            groups = report.content.get_volumetric_roi_measurement_groups()
            assert groups and all(group.get_measurements() for group in groups)
            segments = {group.referenced_segment.referenced_sop_instance_uid for group in groups
                        if group.referenced_segment}
            assert segments and segments <= instances - sources
        if each.Modality == "RTSTRUCT":
            contours = each.ROIContourSequence[0].ContourSequence
            assert {contour.ContourImageSequence[0].ReferencedSOPInstanceUID for contour in contours} <= sources
            assert each.StructureSetROISequence[0].ReferencedFrameOfReferenceUID == after[0].FrameOfReferenceUID
    assert known


@pytest.mark.parametrize("keep", KEEPS)
def test_copies_are_as_valid_as_their_sources(tmp_path, job, keep):
    images, results = job
    files = [images[0], *results]
    copies = clean(tmp_path, files, KEEPS[keep])
    for source, copy in zip(files, copies):
        assert check_file(copy) == check_file(source), source


def test_nothing_of_the_patient_leaves(tmp_path, job):
    images, results = job
    for keep in KEEPS:
        for copy in clean(tmp_path, [*images, *results], KEEPS[keep], name=keep):
            tokens = ["Quastenflosser", "Wilhelmina", "77281934", "ACC4711815", "19510203"]
            tokens += [] if keep == "all" else ["Quastenhaus", *uids_of(pydicom.dcmread(images[0]))]
            assert leaks(copy.read_bytes() + copy.name.encode(), tokens) == []


def test_dates_of_a_patient_keep_their_distance(tmp_path):
    files = []
    for number, day in enumerate(("20231130", "20240301")):  # 92 days, over a leap day
        images, results = processed(tmp_path, seed=number + 1, name=f"study{number}", days=day)
        files.append(images[0])
    other, _ = processed(tmp_path, seed=3, name="other", patient=("Brandt^Otto", "KH-5550001"), days="20231130")
    first, second, stranger = (pydicom.dcmread(copy) for copy in clean(tmp_path, [*files, other[0]], ["dates"]))
    days = [numpy.datetime64(f"{each.StudyDate[:4]}-{each.StudyDate[4:6]}-{each.StudyDate[6:]}")
            for each in (first, second, stranger)]
    assert days[1] - days[0] == numpy.timedelta64(92, "D") and first.StudyDate != "20231130"
    assert first.StudyTime == "101112.5" and first.AcquisitionDateTime == first.StudyDate + "101112.500000+0100"
    assert first.PatientID == second.PatientID != stranger.PatientID and days[2] != days[0]
    assert first.LongitudinalTemporalInformationModified == "MODIFIED"
    moved = days[0] - numpy.datetime64("2023-11-30")
    assert numpy.timedelta64(-3680, "D") < moved < numpy.timedelta64(-29, "D")


def test_copies_are_the_same_for_ever_and_for_one_key(tmp_path, job):
    images, results = job
    files = [images[0], *results]
    first, second, other = (clean(tmp_path, files, ["dates"], name=name, key=key)
                            for name, key in (("a", "key"), ("b", "key"), ("c", "other-key")))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert not {path.name for path in first} & {path.name for path in other}


@pytest.mark.parametrize("value", ["20240229-20240301", "2024022910111220240301", "20240229101112.5-2024030", "2024-02-29"])
def test_a_second_date_does_not_stay_behind_a_moved_one(tmp_path, value):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    for tag, vr in ((0x0008002A, "DT"), (0x00189074, "DT"), (0x00080022, "DA"), (0x00181012, "DA")):
        plant(source, tag, vr, value)
    save(source, tmp_path / "source.dcm")
    (copy,) = clean(tmp_path, [tmp_path / "source.dcm"], ["dates"])
    made = pydicom.dcmread(copy)
    assert made.AcquisitionDateTime == "19000101000000" and made.AcquisitionDate == "19000101"
    assert leaks(copy.read_bytes(), ["20240301", "2024-02", value]) == []


# CID 7050. Pixels are not cleaned (113101, 113102). Graphics are removed, as the profile demands without Clean Graphics (113103).
METHODS = {"uids": 113110, "device": 113109, "institution": 113112, "characteristics": 113108, "dates": 113107,
           "descriptors": 113105, "safe_private": 113111}


@pytest.mark.parametrize("keep", [[], *([word] for word in METHODS), list(METHODS)])
def test_a_copy_lists_what_was_done_and_has_no_graphics(tmp_path, keep):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    for tag, vr, value in ((0x60000010, "US", 8), (0x60000011, "US", 8), (0x60000040, "CS", "G"), (0x60000050, "SS", [1, 1]),
                           (0x60000100, "US", 1), (0x60000102, "US", 0), (0x60003000, "OW", bytes(8)), (0x50000005, "US", 2)):
        source.add_new(tag, vr, value)
    note = Dataset()
    note.UnformattedTextValue, note.AnchorPoint = "Quast", [1.0, 2.0]
    note.AnchorPointVisibility, note.AnchorPointAnnotationUnits = "Y", "PIXEL"
    layer = Dataset()
    layer.GraphicLayer, layer.TextObjectSequence = "NAMES", [note]
    source.GraphicAnnotationSequence = [layer]
    save(source, tmp_path / "source.dcm")
    (copy,) = clean(tmp_path, [tmp_path / "source.dcm"], keep)
    made = pydicom.dcmread(copy)
    assert {int(item.CodeValue) for item in made.DeidentificationMethodCodeSequence} == \
        {113100, 113104} | {METHODS[word] for word in keep}
    assert not any(element.tag.group & 0xFF00 in (0x5000, 0x6000) or element.tag.group == 0x0070 for element in made)
    assert leaks(copy.read_bytes(), ["Quast"]) == []


def test_words_of_the_site_stay(tmp_path):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    source.SeriesDescription, source.StudyDescription = "T1 axial Dr. Quast 12.3.1955", "Axial Thin 1.5"
    source.ProtocolName = "Quast"
    path = tmp_path / "source.dcm"
    save(source, path)
    (copy,) = clean(tmp_path, [path], ["descriptors"], more='words = [ "T1", "axial", "thin 1.5" ];')
    made = pydicom.dcmread(copy)
    assert (made.SeriesDescription, made.StudyDescription) == ("t1 axial", "Axial Thin 1.5")
    assert made.ProtocolName == "REMOVED"


# -------------------------------------------------------------------------------- refused --

# Secondary captures, ultrasound, angiography and fluoroscopy.
WRITTEN = [f"1.2.840.10008.5.1.4.1.1.{end}" for end in ("7", "7.1", "7.2", "7.3", "7.4", "3", "6", "6.1", "3.1", "12.1", "12.1.1",
                                                       "12.2", "12.2.1")]
RADIOGRAPHS = [f"1.2.840.10008.5.1.4.1.1.{end}" for end in ("1", "1.1", "1.1.1", "1.2", "1.2.1")]  # CR, DX, MG


@pytest.mark.parametrize("sop_class", WRITTEN)
def test_a_capture_without_text_leaves(tmp_path, sop_class):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    source.SOPClassUID, source.BurnedInAnnotation = sop_class, "NO"
    save(source, tmp_path / "source.dcm")
    (copy,) = clean(tmp_path, [tmp_path / "source.dcm"])
    assert pydicom.dcmread(copy).SOPClassUID == sop_class


@pytest.mark.parametrize(("change", "code"), [
    (lambda d: setattr(d, "BurnedInAnnotation", "YES"), "BURNED_IN_TEXT"),
    (lambda d: setattr(d, "ImageType", ["DERIVED", "SECONDARY", "SCREEN SAVE"]), "BURNED_IN_TEXT"),
    (lambda d: setattr(d, "ConversionType", "WSD"), "BURNED_IN_TEXT"),
    (lambda d: (d.add_new(0x60000102, "US", 12), d.add_new(0x60000100, "US", 16)), "BURNED_IN_TEXT"),
    (lambda d: setattr(d, "SamplesPerPixel", 3), "BURNED_IN_TEXT"),
    *((lambda d, uid=uid: setattr(d, "SOPClassUID", uid), "BURNED_IN_TEXT") for uid in WRITTEN),
    (lambda d: setattr(d, "SOPClassUID", "1.2.840.10008.5.1.4.1.1.1"), "BURNED_IN_TEXT"),  # CR
    (lambda d: (setattr(d, "SOPClassUID", "1.2.840.10008.5.1.4.1.1.7"), setattr(d, "BurnedInAnnotation", "NO"),
                setattr(d, "Manufacturer", "Noctule"), setattr(d, "ManufacturerModelName", "noctuled")), "DEIDENTIFY_CLASS"),
    (lambda d: setattr(d, "SOPClassUID", "1.2.840.10008.5.1.4.1.1.104.1"), "DEIDENTIFY_CLASS"),  # Encapsulated PDF
    (lambda d: setattr(d, "SOPClassUID", "1.3.12.2.1107.5.9.1"), "DEIDENTIFY_CLASS")])
def test_what_may_show_text_is_refused(tmp_path, change, code):
    source = pydicom.dcmread(image(tmp_path / "ct")[0])
    if "BurnedInAnnotation" in source:
        del source.BurnedInAnnotation
    change(source)
    path = tmp_path / "source.dcm"
    save(source, path)
    (line,) = clean(tmp_path, [path])
    assert line.startswith(f"{code}: source.dcm ") and list((tmp_path / "copies").iterdir()) == []


# ------------------------------------------------------------------------------- the service --

TRIAL = '{{ name = "TRIAL"; folder = "{folder}"; send = [ "results", "images" ]; {more} {setting} }}'
MEASURED = 'texture = { discretisation = "fixed-bin-size"; bin_width = 25.0; first_order = true; };'
IDENTIFIERS = ["Quastenflosser", "Wilhelmina", "77281934", "ACC4711815", "19510203", "Quastenhaus"]


def named_series(tmp_path, seed=1, days="20240229", patient=("Quastenflosser^Wilhelmina", "KH-77281934")):
    files = image(tmp_path / f"ct{seed}", seed)
    for path in files:
        dataset = pydicom.dcmread(path)
        dataset.PatientName, dataset.PatientID = patient
        dataset.AccessionNumber, dataset.PatientBirthDate = "ACC4711815", "19510203"
        dataset.InstitutionName, dataset.StudyDate = "Quastenhaus", days
        dataset.SeriesDescription = "Head of Wilhelmina"
        dataset.private_block(0x0009, "SITE", create=True).add_new(1, "LO", "Quastenflosser")
        dataset.save_as(path)
    return files


def names_in(folder, tokens):
    return [found for path in objects(folder) for found in leaks(path.read_bytes() + path.name.encode(), tokens)]


def service(daemon, tmp_path, more="", keep=("dates",), results='"seg", "sr", "rtstruct", "nifti", "picture"', folder="trial",
            **options):
    (tmp_path / folder).mkdir(exist_ok=True)
    destination = TRIAL.format(folder=tmp_path / folder, more=more, setting=setting(keep))
    pipeline = f'deliver = [ "TRIAL" ]; results = [ {results} ]; {MEASURED}'
    return daemon(quiet=60.0, pipeline_extra=pipeline, extra=options.pop("extra", "") + destinations(destination), **options)


def test_a_trial_gets_linked_copies(daemon, tmp_path):
    takes = 'takes = [ "seg", "sr", "rtstruct", "nifti" ];'
    d = service(daemon, tmp_path, takes).start()
    files = named_series(tmp_path)
    drop(files, d.inbox)
    wait_for(lambda: {row["state"] for row in deliveries(d)} == {"SENT"} and len(deliveries(d)) >= 7, 90, "deliveries")
    sent = objects(tmp_path / "trial")
    tokens = IDENTIFIERS + [str(uid) for path in files for uid in uids_of(pydicom.dcmread(path, stop_before_pixels=True))]
    assert names_in(tmp_path / "trial", tokens) == []
    copies = [pydicom.dcmread(path) for path in sent if path.suffix == ".dcm"]
    assert sorted(each.Modality for each in copies) == ["CT"] * len(files) + ["RTSTRUCT", "SEG", "SR"]
    pixels = {hashlib.sha256(pydicom.dcmread(path).PixelData).digest() for path in files}
    assert {hashlib.sha256(each.PixelData).digest() for each in copies if each.Modality == "CT"} == pixels
    (seg,) = (path for path in sent if path.suffix == ".dcm" and pydicom.dcmread(path).Modality == "SEG")
    sources = {each.SOPInstanceUID for each in copies if each.Modality == "CT"}
    assert {uid for *_, uid in highdicom.seg.segread(seg).get_source_image_uids()} <= sources
    # Files of researchers are named by the series of the copies.
    (series,) = {each.SeriesInstanceUID for each in copies if each.Modality == "CT"}
    others = [path.name for path in sent if path.suffix != ".dcm"]
    assert sorted(name.partition(".head-ct.1.")[2] for name in others) == ["labels.json", "labels.nii.gz", "volume.nii.gz"]
    assert all(name.startswith(series + ".head-ct.1.") for name in others)
    labels = (tmp_path / "trial" / f"{series}.head-ct.1.labels.json").read_text()
    assert json.loads(labels) == json.loads((d.root / "outbox/1/labels.json").read_text())  # all words are the site's
    # No delivery has a picture; the sent instance of each object is that of its copy.
    assert {row["kind"] for row in deliveries(d)} == {"seg", "sr", "rtstruct", "nifti", "images"}
    rows = d.query("SELECT sent_sop_instance_uid FROM delivery WHERE sop_instance_uid <> ''")
    assert {row[0] for row in rows} == {each.SOPInstanceUID for each in copies if each.Modality != "CT"}
    # Nobody but the operator can go back.
    pseudonym = copies[0].PatientID
    told = d.ctl("identity", pseudonym).stdout
    source = pydicom.dcmread(files[0])
    assert source.StudyInstanceUID in told and re.search("^Patient ID ", told, re.M)
    told = d.ctl("identity", series).stdout
    assert f"series {source.SeriesInstanceUID}" in told
    told = d.ctl("identity", copies[0].StudyInstanceUID).stdout
    assert f"study {source.StudyInstanceUID}" in told
    assert d.ctl("identity", "2.25.1", check=False).returncode == 3
    for wrong in ("KH-77281934", "h:" + 24 * "z", "2.25.", "2.25.abc"):
        assert d.ctl("identity", wrong, check=False).returncode == 2
    asked = d.query("SELECT action, subject, role FROM audit ORDER BY id")
    assert [tuple(row) for row in asked][0] == ("identity", f"pseudonym {pseudonym}", "operator") and len(asked) == 4


@pytest.mark.parametrize("identifiers", ["none", "hashed", "plain"])
def test_identity_with_each_form_of_stored_identifiers(daemon, tmp_path, identifiers):
    d = service(daemon, tmp_path, results='"seg"', extra=f'identifiers = "{identifiers}";\n').start()
    files = named_series(tmp_path)
    drop(files, d.inbox)
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))
    pseudonym = pydicom.dcmread(objects(tmp_path / "trial")[0]).PatientID
    assert "Patient ID KH-77281934" in d.ctl("identity", pseudonym).stdout
    shutil.rmtree(d.root / "series")  # the images are gone
    result = d.ctl("identity", pseudonym, check=False)
    assert ("KH-77281934" in result.stdout) == (identifiers == "plain")
    assert ("only its hash is stored" in result.stdout) == (identifiers == "hashed")
    assert result.returncode == (3 if identifiers == "none" else 0)


@pytest.mark.parametrize("point", ["courier_after_copy", "courier_after_part", "daemon_after_delivered_before_commit"])
def test_copies_survive_a_crash(daemon, tmp_path, point):
    once = tmp_path / "crashed"
    d = service(daemon, tmp_path, results='"seg"',
                environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)}).start()
    files = named_series(tmp_path)
    drop(files, d.inbox)
    wait_for(once.exists, 60, f"the crash at {point}")
    if point.startswith("daemon"):
        wait_for(lambda: d.process.poll() is not None, 60, "the end of the daemon")
        d.environment.pop("NOCTULE_CRASH_AT")
        d.start()
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))
    assert len(objects(tmp_path / "trial")) == len(files) + 1 and not any((d.root / "converted").iterdir())
    assert names_in(tmp_path / "trial", IDENTIFIERS) == []


def test_a_follow_up_has_the_same_patient_after_a_restart(daemon, tmp_path):
    d = service(daemon, tmp_path, results='"seg"').start()
    drop(named_series(tmp_path, 1, "20231130"), d.inbox)
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))
    d.stop()
    d.start()
    drop(named_series(tmp_path, 2, "20240301"), d.inbox)
    wait_for(lambda: [row["state"] for row in deliveries(d)] == ["SENT"] * 4, 60, "all deliveries")
    images = [pydicom.dcmread(path) for path in objects(tmp_path / "trial")]
    assert len({each.PatientID for each in images}) == 1
    dates = sorted({each.StudyDate for each in images})
    days = [numpy.datetime64(f"{day[:4]}-{day[4:6]}-{day[6:]}") for day in dates]
    assert days[1] - days[0] == numpy.timedelta64(92, "D")


def refuses_key(d):
    """Starts a service that does not accept its key, and changes no file of it."""
    key = d.root / "identifier.key"
    before = key.read_bytes() if key.exists() else None
    result = subprocess.run([d.programs / "noctuled", "--config", d.config], text=True, capture_output=True, timeout=60)
    told = result.stdout + result.stderr
    assert result.returncode == 73 and "code=IDENTIFIER_KEY_CHANGED" in told and "--new-identifier-key" in told, told
    return (key.read_bytes() if key.exists() else None) == before


def key_events(d):
    return len(d.query("SELECT 1 FROM v_events WHERE kind = 'IDENTIFIER_KEY_REPLACED'"))


def test_a_lost_or_another_key_is_accepted_on_purpose_only(daemon, tmp_path):
    """Later copies would not fit the earlier ones."""
    d = service(daemon, tmp_path, results='"seg"').start()
    drop(named_series(tmp_path), d.inbox)
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))
    (first,) = {pydicom.dcmread(path).PatientID for path in objects(tmp_path / "trial")}
    d.stop()
    key, other = d.root / "identifier.key", bytes(range(32))
    known = key.read_bytes()
    database = b"".join(path.read_bytes() for path in d.root.glob("noctule.db*"))
    assert known not in database and known.hex().encode() not in database.lower()
    key.write_bytes(other)
    assert refuses_key(d)
    key.unlink()
    assert refuses_key(d)
    key.write_bytes(known)
    d.start(arguments=["--new-identifier-key"])  # no effect
    assert key_events(d) == 0
    d.stop()
    key.write_bytes(other)
    d.start(arguments=["--new-identifier-key"])
    assert key_events(d) == 1 and key.read_bytes() == other
    drop(named_series(tmp_path, 2), d.inbox)
    wait_for(lambda: [row["state"] for row in deliveries(d)] == ["SENT"] * 4, 60, "all deliveries")
    assert len({pydicom.dcmread(path).PatientID for path in objects(tmp_path / "trial")} - {first}) == 1
    d.stop()
    d.start()
    d.stop()
    key.write_bytes(known)
    assert refuses_key(d)
    key.unlink()
    d.start(arguments=["--new-identifier-key"])
    assert key_events(d) == 2 and len(key.read_bytes()) == 32 and key.read_bytes() not in (known, other)


def test_an_upgrade_knows_the_present_key(daemon, tmp_path):
    d = service(daemon, tmp_path, results='"seg"').start()
    d.stop()
    key = d.root / "identifier.key"
    with contextlib.closing(sqlite3.connect(d.root / "noctule.db")) as db:
        ((version,),) = db.execute("PRAGMA user_version")
        db.executescript("DROP TABLE identifier_key; PRAGMA user_version = 52;")
    assert version >= 53
    d.start()
    assert key_events(d) == 0
    d.stop()
    key.write_bytes(bytes(range(32)))
    assert refuses_key(d)


def test_a_key_that_is_replaced_in_service_makes_no_copy(daemon, tmp_path):
    """The sender starts with the first delivery, and reads the key then."""
    d = service(daemon, tmp_path, results='"seg"').start()
    key = d.root / "identifier.key"
    known = key.read_bytes()
    key.write_bytes(bytes(range(32)))
    drop(named_series(tmp_path), d.inbox)
    wait_for(lambda: [(row["state"], row["code"]) for row in deliveries(d)] == [("DELAYED", "IDENTIFIER_KEY_CHANGED")] * 2, 60,
             "the refusals")
    assert objects(tmp_path / "trial") == []
    d.stop()
    assert refuses_key(d)
    key.write_bytes(known)
    d.start()
    assert d.ctl("resend", "--destination", "TRIAL").returncode == 0
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))


def test_another_key_is_reported_and_no_copy_is_added_later(daemon, tmp_path):
    """Without de-identified copies the service starts. A reload does not add them."""
    d = daemon(quiet=60.0).start()
    plain = d.config.read_text()
    d.stop()
    key = d.root / "identifier.key"
    known = key.read_bytes()
    key.write_bytes(bytes(range(32)))
    d.start()
    d.wait_log("event=root.key_changed")
    (tmp_path / "trial").mkdir()
    d.config.write_text(plain + destinations(TRIAL.format(folder=tmp_path / "trial", more="", setting=setting(()))))
    told = d.ctl("reload", check=False)
    assert told.returncode != 0 and "identifier.key" in told.stderr
    d.stop()
    assert refuses_key(d)
    key.write_bytes(known)
    d.start()


def of_issuer(d, tmp_path, seed, issuer, burned=False):
    """Drops a series."""
    files = named_series(tmp_path, seed)
    for path in files:
        dataset = pydicom.dcmread(path)
        if issuer:
            dataset.IssuerOfPatientID = issuer
        if burned:
            dataset.BurnedInAnnotation = "YES"
        dataset.save_as(path)
    drop(files, d.inbox / str(seed))


def held_for(d):
    return sorted((row["kind"], row["code"]) for row in deliveries(d) if row["state"] == "REVIEW")


@pytest.mark.parametrize("identifiers", ["plain", "hashed"])
def test_copies_of_an_id_of_two_issuers_wait_for_a_person(daemon, tmp_path, identifiers):
    """Two persons, or one with two spellings of the issuer: the copies would have one pseudonym."""
    d = service(daemon, tmp_path, 'takes = [ "seg", "nifti" ];', results='"seg", "nifti"', extra=f'identifiers = "{identifiers}";\n').start()
    of_issuer(d, tmp_path, 1, "HOSPITAL")
    of_issuer(d, tmp_path, 2, "")  # of no other issuer
    count = 10  # of each series: SEG, three NIfTI files, images
    wait_for(lambda: [row["state"] for row in deliveries(d)] == ["SENT"] * count, 90, "the deliveries")
    before = objects(tmp_path / "trial")
    assert len({pydicom.dcmread(path).PatientID for path in before if path.suffix == ".dcm"}) == 1
    of_issuer(d, tmp_path, 3, "CLINIC")
    kinds = sorted(row["kind"] for row in deliveries(d) if row["job"] == 1)
    wait_for(lambda: [kind for kind, _ in held_for(d)] == kinds, 90, "all deliveries held")
    assert {code for _, code in held_for(d)} == {"ISSUERS_DIFFER"} and objects(tmp_path / "trial") == before
    held_ids = [row["delivery"] for row in deliveries(d)][count:]
    (message,) = {row["message"] for row in deliveries(d)[count:]}
    assert "2 different issuers" in message and "HOSPITAL" not in message and "CLINIC" not in message
    assert "2 different issuers" in d.ctl("review").stdout and "delivery_review" in d.ctl("status", "--json", check=False).stdout
    d.ctl("reject", "--delivery", str(held_ids[0]), "another person")
    for number in held_ids[1:]:
        d.ctl("accept", "--delivery", str(number))
    wait_for(lambda: {row["state"] for row in deliveries(d)[count + 1:]} == {"SENT"}, 60, "the accepted deliveries")
    assert deliveries(d)[count]["state"] == "CANCELLED" and len(objects(tmp_path / "trial")) > len(before)
    # The decision was on two issuers.
    assert d.ctl("resend", str(held_ids[1])).returncode == 0
    wait_for(lambda: deliveries(d)[count + 1]["state"] == "SENT", 60, "the delivery again")
    of_issuer(d, tmp_path, 4, "")  # of either of them
    wait_for(lambda: [kind for kind, _ in held_for(d)] == kinds, 90, "the deliveries of the fourth series")
    of_issuer(d, tmp_path, 5, "PRACTICE")
    wait_for(lambda: [kind for kind, _ in held_for(d)] == sorted(kinds * 2), 90, "the deliveries of the fifth series")
    assert d.ctl("resend", str(held_ids[1])).returncode == 0
    wait_for(lambda: deliveries(d)[count + 1]["state"] == "REVIEW", 60, "the delivery, of three issuers")
    assert "3 different issuers" in deliveries(d)[count + 1]["message"]


def test_a_release_is_of_both_reasons(daemon, tmp_path):
    d = service(daemon, tmp_path, results='"seg"').start()
    of_issuer(d, tmp_path, 1, "HOSPITAL")
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))
    of_issuer(d, tmp_path, 2, "CLINIC", burned=True)
    wait_for(lambda: held_for(d) == [("images", "BURNED_IN_TEXT"), ("seg", "ISSUERS_DIFFER")], 90, "both reasons")
    images = next(row for row in deliveries(d) if row["code"] == "BURNED_IN_TEXT")
    assert "may show text" in images["message"] and "2 different issuers" in images["message"]
    d.ctl("accept", "--delivery", str(images["delivery"]))
    wait_for(lambda: held_for(d) == [("seg", "ISSUERS_DIFFER")], 60, "the release")
    wait_for(lambda: [row["state"] for row in deliveries(d)].count("SENT") == 3, 60, "the images")


def test_issuers_do_not_matter_for_copies_without_a_patient(daemon, tmp_path):
    (tmp_path / "trial").mkdir()
    destination = TRIAL.format(folder=tmp_path / "trial", more="", setting=setting((), 'patient = "empty";'))
    d = daemon(quiet=60.0, pipeline_extra=f'deliver = [ "TRIAL" ]; results = [ "seg" ]; {MEASURED}', extra=destinations(destination)).start()
    of_issuer(d, tmp_path, 1, "HOSPITAL")
    of_issuer(d, tmp_path, 2, "CLINIC")
    wait_for(lambda: [row["state"] for row in deliveries(d)] == ["SENT"] * 4, 90, "the deliveries")
    assert {pydicom.dcmread(path).PatientID for path in objects(tmp_path / "trial")} == {""}


def test_an_archive_gets_images_and_copies(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        to = to_archive(archive.port, more=f'send = [ "results", "images" ]; {setting(("dates",))}')
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ]; compression = "deflated"; results = [ "seg", "sr" ];' + MEASURED,
                   extra=destinations(to)).start()
        files = named_series(tmp_path)
        drop(files, d.inbox)
        wait_states(d, ("PACS", "SENT"), ("PACS", "SENT"), ("PACS", "SENT"))
        stored = archive.files()
        assert len(stored) == len(files) + 2
        assert [found for path in stored for found in leaks(path.read_bytes(), IDENTIFIERS)] == []
        assert d.ctl("resend", "--destination", "PACS", check=False).returncode == 0
        wait_states(d, ("PACS", "SENT"), ("PACS", "SENT"), ("PACS", "SENT"))


def test_the_confined_sender_reads_character_sets(daemon, tmp_path):
    d = service(daemon, tmp_path, results='"seg"', keep=("descriptors", "dates")).start()
    files = named_series(tmp_path)
    for path in files:
        dataset = pydicom.dcmread(path)
        dataset.SpecificCharacterSet = ["ISO 2022 IR 6", "ISO 2022 IR 87"]
        dataset.PatientName, dataset.ManufacturerModelName = f"Yamada^Tarou={KANJI}", f"Room {KANJI}"
        dataset.save_as(path)
    drop(files, d.inbox)
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))
    assert names_in(tmp_path / "trial", [*IDENTIFIERS, "Yamada", "Tarou", KANJI]) == []


def marked(tmp_path, count=2, seed=1):
    """A series of which the last images are marked: text is burned in."""
    files = named_series(tmp_path, seed)
    for path in files[-count:]:
        dataset = pydicom.dcmread(path)
        dataset.BurnedInAnnotation = "YES"
        dataset.save_as(path)
    return files


def held(daemon, tmp_path, **options):
    """A service that holds the images of a series for review."""
    d = service(daemon, tmp_path, results='"seg"', **options).start()
    drop(marked(tmp_path), d.inbox)
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "REVIEW"))
    return d


def modalities(tmp_path):
    return [pydicom.dcmread(path).Modality for path in objects(tmp_path / "trial")]


def decisions(d):
    return [tuple(row) for row in d.query("SELECT action, subject, reason, how FROM v_audit WHERE action <> 'looked' ORDER BY audit")]


def test_what_may_show_text_waits_for_a_person(daemon, tmp_path):
    d = held(daemon, tmp_path)
    (row,) = d.query("SELECT * FROM v_deliveries WHERE state = 'REVIEW'")
    assert row["kind"] == "images" and row["code"] == "BURNED_IN_TEXT"
    assert row["message"].startswith("Of 6 images 2 may show text. The first: ") and "Burned In Annotation is YES" in row["message"]
    assert modalities(tmp_path) == ["SEG"]  # not even the images before it
    told = d.ctl("review").stdout
    assert "Delivery 2 to TRIAL, job 1" in told and "Burned In Annotation is YES" in told and "accept --delivery" in told
    assert "delivery_review" in d.ctl("status", "--json", check=False).stdout
    assert [tuple(row) for row in d.query("SELECT cause, code, deliveries FROM v_undelivered")] == [("REVIEW", "BURNED_IN_TEXT", 1)]
    # It stays held: after a restart, and for commands that send again.
    d.stop()
    d.start()
    assert d.ctl("resend", "2", check=False).returncode != 0
    assert "0 deliveries" in d.ctl("resend", "--job", "1", "--failed").stdout
    assert d.ctl("accept", "--delivery", "1", check=False).returncode != 0  # it was sent
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "REVIEW"))
    d.ctl("accept", "--delivery", "2")
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))
    assert sorted(modalities(tmp_path)) == ["CT"] * 6 + ["SEG"] and names_in(tmp_path / "trial", IDENTIFIERS) == []
    again = d.ctl("accept", "--delivery", "2", check=False)
    assert again.returncode != 0 and "decided on it" in again.stderr
    assert decisions(d) == [("resend", "job 1", "", "command"), ("accept", "delivery 2", "", "command")]
    (row,) = d.query("SELECT reviewed_by, reviewed_at, version FROM v_deliveries WHERE delivery = 2")
    assert row["reviewed_by"] and row["reviewed_at"] and row["version"] == ""


def test_a_rejected_delivery_leaves_nothing(daemon, tmp_path):
    d = held(daemon, tmp_path)
    assert d.ctl("reject", "--delivery", "2", "", check=False).returncode == 2  # a reason is needed
    d.ctl("reject", "--delivery", "2", "a name is in the corner")
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "CANCELLED"))
    (row,) = d.query("SELECT code, message FROM v_deliveries WHERE delivery = 2")
    assert row["code"] == "REVIEW_REJECTED" and "a name is in the corner" in row["message"] and "BURNED" not in row["message"]
    assert decisions(d) == [("reject", "delivery 2", "a name is in the corner", "command")]
    # Another job of the series does not ask again. A person who sends it again is asked.
    d.ctl("retry", "1", "--force")
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the second job")
    assert [row["kind"] for row in deliveries(d)].count("images") == 1
    d.ctl("resend", "2")
    wait_for(lambda: dict(d.query("SELECT delivery, state FROM v_deliveries"))[2] == "REVIEW", 60, "the next review")
    assert modalities(tmp_path) == ["SEG"]


def test_a_release_is_of_the_files_that_were_there(daemon, tmp_path):
    d = held(daemon, tmp_path)
    d.ctl("hold", "--destination", "TRIAL")
    d.ctl("accept", "--delivery", "2")
    late = pydicom.dcmread(tmp_path / "ct1" / pathlib.Path(marked(tmp_path)[0]).name)
    late.SOPInstanceUID = late.file_meta.MediaStorageSOPInstanceUID = "2.25.1"
    late.ImagePositionPatient[2] -= 50
    late.save_as(tmp_path / "late.dcm")
    before = len(list((d.root / "series").rglob("*.dcm")))
    drop([tmp_path / "late.dcm"], d.inbox)
    wait_for(lambda: len(list((d.root / "series").rglob("*.dcm"))) == before + 1, 60, "the late image")
    d.ctl("release", "--destination", "TRIAL")
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "REVIEW"))
    (row,) = d.query("SELECT message, reviewed_by FROM v_deliveries WHERE state = 'REVIEW'")
    assert row["message"].startswith("Of 7 images 2 may show text") and row["reviewed_by"] == ""
    assert modalities(tmp_path) == ["SEG"]


@pytest.mark.parametrize("point", ["daemon_after_delivered_before_commit", "daemon_before_decision_commit"])
def test_a_review_survives_a_crash(daemon, tmp_path, point):
    once = tmp_path / "crashed"
    (tmp_path / "trial").mkdir()
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "TRIAL" ];',
               extra=destinations(f'{{ name = "TRIAL"; folder = "{tmp_path / "trial"}"; send = [ "images" ]; {setting(())} }}'))
    d.environment.update(NOCTULE_CRASH_AT=point, NOCTULE_CRASH_ONCE=str(once))
    d.start()
    drop(marked(tmp_path), d.inbox)
    if point.endswith("decision_commit"):
        wait_states(d, ("TRIAL", "REVIEW"))
        d.ctl("accept", "--delivery", "1", check=False)
    wait_for(lambda: d.process.poll() is not None, 60, f"the crash at {point}")
    d.environment.pop("NOCTULE_CRASH_AT")
    d.start()
    wait_states(d, ("TRIAL", "REVIEW"))
    assert decisions(d) == [] and objects(tmp_path / "trial") == []
    d.ctl("accept", "--delivery", "1")
    wait_states(d, ("TRIAL", "SENT"))
    assert len(objects(tmp_path / "trial")) == 6 and len(decisions(d)) == 1


def test_persons_decide_on_deliveries_in_the_browser(daemon, tmp_path):
    (tmp_path / "trial").mkdir()
    destination = TRIAL.format(folder=tmp_path / "trial", more="", setting=setting(("dates",)))
    site = Deciding(daemon, tmp_path / "secrets", quiet=60.0, pipeline_extra=f'deliver = [ "TRIAL" ]; results = [ "seg" ]; {MEASURED}',
                    extra=destinations(destination)).start()
    d = site.daemon
    for seed in (1, 2):
        drop(marked(tmp_path, seed=seed), d.inbox)
        wait_for(lambda: [row["state"] for row in deliveries(d)].count("REVIEW") == seed, 60, "the review")
    first, second = (row["delivery"] for row in deliveries(d) if row["state"] == "REVIEW")
    listed = json.loads(site.ask("api/v1/deliveries?state=REVIEW", Authorization=f"Bearer {TOKENS['vera']}")[2])
    versions = {row["delivery"]: row["version"] for row in listed["items"]}
    assert set(versions) == {first, second} and all(len(version) == 16 for version in versions.values())
    path = f"api/v1/deliveries/{first}/decision"
    assert site.post("vera", path, action="accept").status == 403
    assert site.post(None, path, action="accept").status in (401, 403)
    assert site.post("rita", path, action="reject").status == 400  # without a reason
    assert site.post("rita", path, action="undo", reason="x").status == 400
    assert site.post("rita", path, action="accept", seen="0123456789abcdef").status == 409
    answer = site.post("rita", path, action="accept", seen=versions[first])
    assert answer.status == 200, answer.body
    assert site.post("rita", path, action="accept", seen=versions[first]).status == 409
    wait_for(lambda: dict(d.query("SELECT delivery, state FROM v_deliveries"))[first] == "SENT", 60, "the release")
    cookie = site.log_in("rita")
    for address in ("deliveries", "deliveries?state=REVIEW"):
        text = site.send("GET", address, Cookie=cookie).body
        assert f"delivery {second}" in text and "Send it" in text
    assert "Burned In Annotation is YES" in site.send("GET", "deliveries", Cookie=cookie).body
    fields = site.form(cookie, "reject", "deliveries")
    assert fields["subject"] == f"delivery {second}" and fields["seen"] == versions[second]
    assert site.submit(cookie, {**fields, "reason": "a name"}).status == 303
    wait_for(lambda: dict(d.query("SELECT delivery, state FROM v_deliveries"))[second] == "CANCELLED", 60, "the rejection")
    rows = d.query("SELECT action, subject, actor, how, role FROM v_audit WHERE action <> 'looked' ORDER BY audit")
    assert [tuple(row) for row in rows] == [("accept", f"delivery {first}", "rita", "token", "reviewer"),
                                            ("reject", f"delivery {second}", "rita", "token", "reviewer")]


# ------------------------------------------------------------------------------- continuing --

class Archive:
    """A peer that keeps the SOP Instance UIDs that it answered, and calls `act(self, event)` before each answer: false: it
    aborts the association."""

    def __init__(self, act):
        self.stored, self.received, self.act = [], [], act
        entity = AE(ae_title="ARCHIVE")
        entity.supported_contexts = StoragePresentationContexts
        self.server = entity.start_server(("127.0.0.1", 0), block=False, evt_handlers=[(evt.EVT_C_STORE, self.store)])
        self.port = self.server.server_address[1]

    def store(self, event):
        uid = event.request.AffectedSOPInstanceUID
        self.received.append(uid)
        if not self.act(self, event):
            event.assoc.abort()
            return 0xA700
        self.stored.append(uid)
        return 0


@pytest.fixture
def archive():
    made = []

    def make(act):
        made.append(Archive(act))
        return made[-1]

    yield make
    for each in made:
        each.server.shutdown()


def to_images(port, more=""):
    return destinations(to_archive(port, more=f'send = [ "images" ]; {more}'))


@pytest.mark.parametrize("more", ["", setting(("dates",))])
def test_images_continue_behind_the_confirmed_ones(daemon, tmp_path, archive, more):
    peer = archive(lambda self, event: len(self.received) not in (3, 4, 8, 9))
    # Two aborts end an attempt: the first may mean that the association was dead before.
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];', extra=to_images(peer.port, more)).start()
    files = named_series(tmp_path)
    drop(files, d.inbox)
    wait_states(d, ("PACS", "SENT"))
    # Each image once, and only those again that the peer did not answer.
    assert len(peer.stored) == len(set(peer.stored)) == len(files) and len(peer.received) == len(files) + 4
    if not more:
        assert set(peer.stored) == {pydicom.dcmread(path).SOPInstanceUID for path in files}
    assert [row["attempts"] for row in deliveries(d)] == [3]
    assert d.query("SELECT confirmed FROM v_deliveries")[0]["confirmed"] == 0
    d.ctl("resend", "1")  # an operator wants them all
    wait_for(lambda: len(peer.stored) == 2 * len(files), 60, "all images again")


def wait_confirmed(d):
    """The daemon has stored that the destination has the first image; it stores others within a second."""
    wait_for(lambda: any(row["confirmed"] >= 1 for row in deliveries(d)), 60, "a confirmed image")


def test_images_continue_after_the_sender_was_killed(daemon, tmp_path, archive):
    def kill(self, event):
        if len(self.received) == 4:
            wait_confirmed(d)
            for pid in d.children("courier"):
                os.kill(pid, signal.SIGKILL)
            return False
        return True

    peer = archive(kill)
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];', extra=to_images(peer.port)).start()
    files = named_series(tmp_path)
    drop(files, d.inbox)
    wait_states(d, ("PACS", "SENT"))
    assert set(peer.stored) == {pydicom.dcmread(path).SOPInstanceUID for path in files}
    assert peer.received.count(peer.received[0]) == 1 and len(peer.received) <= len(files) + 3


def test_images_continue_after_the_daemon_was_killed(daemon, tmp_path, archive):
    def kill(self, event):
        if len(self.received) == 4:
            wait_confirmed(d)
            os.killpg(d.process.pid, signal.SIGKILL)
            return False
        return True

    peer = archive(kill)
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];', extra=to_images(peer.port)).start()
    files = named_series(tmp_path)
    drop(files, d.inbox)
    wait_for(lambda: d.process.poll() is not None, 60, "the end of the daemon")
    d.start()
    wait_states(d, ("PACS", "SENT"))
    assert set(peer.stored) == {pydicom.dcmread(path).SOPInstanceUID for path in files}
    assert peer.received.count(peer.received[0]) == 1


@pytest.mark.parametrize("change", ["late", "elsewhere"])
def test_images_begin_again_if_the_confirmed_ones_differ(daemon, tmp_path, archive, change):
    peer = archive(lambda self, event: len(self.received) < 4)
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];', extra=to_images(peer.port)).start()
    files = named_series(tmp_path)
    drop(files, d.inbox)
    wait_for(lambda: any(row["confirmed"] == 3 for row in deliveries(d)), 60, "three images")
    d.ctl("hold", "--destination", "PACS")
    wait_for(lambda: [row["state"] for row in deliveries(d)] == ["DELAYED"], 60, "the end of the attempt")
    uids = {str(pydicom.dcmread(path).SOPInstanceUID) for path in files}
    other = archive(lambda self, event: True)
    if change == "late":  # its name is in front of the confirmed ones
        late = pydicom.dcmread(files[0])
        late.SOPInstanceUID = late.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
        late.ImagePositionPatient[2] -= 50
        late.save_as(tmp_path / "late.dcm")
        before = len(list((d.root / "series").rglob("*.dcm")))
        drop([tmp_path / "late.dcm"], d.inbox)
        wait_for(lambda: len(list((d.root / "series").rglob("*.dcm"))) == before + 1, 60, "the late image")
        uids.add("1.2.3")
        peer.act, other = lambda self, event: True, peer
        peer.stored.clear()
    else:  # another archive, which has none
        d.config.write_text(d.config.read_text().replace(f"port = {peer.port}", f"port = {other.port}"))
        d.ctl("reload")
    d.ctl("release", "--destination", "PACS")
    wait_states(d, ("PACS", "SENT"))
    assert set(other.stored) == uids and len(other.stored) == len(uids)


def test_images_of_a_series_go_once(daemon, tmp_path):
    d = service(daemon, tmp_path, results='"seg"', keep=()).start()
    files = named_series(tmp_path)
    drop(files, d.inbox)
    wait_states(d, ("TRIAL", "SENT"), ("TRIAL", "SENT"))
    d.ctl("retry", "1", "--force")
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the second job")
    kinds = [row["kind"] for row in deliveries(d)]
    assert kinds.count("images") == 1
    assert d.ctl("check-config", check=False).returncode == 0


# ------------------------------------------------------------------------------- configuration --

@pytest.mark.parametrize(("destination", "message"), [
    ('takes = [ "codes" ]; {clean}', '"codes" and "picture" cannot be de-identified'),
    ('takes = [ "picture" ]; {clean}', '"codes" and "picture" cannot be de-identified'),
    ('takes = [ "seg" ]; send = [ "images" ];', 'has no effect without "results" in send'),
    ('deidentify = {{ keep = [ "dates" ]; }};', "profile"),
    ('deidentify = {{ profile = "basic"; keep = [ "names" ]; }};', "keep")])
def test_wrong_settings(tmp_path, destination, message):
    config = tmp_path / "noctule.conf"
    entry = destination.format(clean=setting(("dates",)))
    config.write_text(PIPELINE.format(root=tmp_path) +
                      f'destinations = ( {{ name = "TRIAL"; folder = "{tmp_path / "out"}"; {entry} }} );\n')
    result = run_program("noctule", "--config", config, "check-config", check=False)
    assert result.returncode != 0 and message in result.stdout + result.stderr


def test_wrong_settings_of_an_archive(tmp_path):
    config = tmp_path / "noctule.conf"
    for first, second, message in (
            (f'fallback = "OTHER"; {setting(())}', "", "would get objects that are not de-identified"),
            ('commit = true; send = [ "images" ];', "", "have no storage commitment")):
        config.write_text(PIPELINE.format(root=tmp_path) + "destinations = ( " + to_archive(104, "PACS", more=first) + ", " +
                          to_archive(105, "OTHER", "SECOND", second) + " );\n")
        result = run_program("noctule", "--config", config, "check-config", check=False)
        assert result.returncode != 0 and message in result.stdout + result.stderr, result.stdout + result.stderr


# --------------------------------------------------------------------------------------- peers --

def flat(dataset, place=()):
    """All values but pixels, by their place."""
    values = {}
    for element in dataset:
        if element.VR == "SQ":
            for number, item in enumerate(element.value):
                values.update(flat(item, (*place, element.tag, number)))
        elif element.tag != 0x7FE00010:
            values[(*place, element.tag)] = str(element.value)
    return values


# Peers also replace UIDs of classes and of vocabularies, which name no patient, and do not see that a time is a dummy.
OF_NO_PATIENT = {"ReferencedSOPClassUID", "CodingSchemeUID"}


@needs_shared
def test_peers_remove_nothing_that_stays_here(tmp_path):
    """One file of each series of the shared data, against dicom-anonymizer (profile 2026c) and dicognito."""
    first = {}
    for path in sorted(path for path in SHARED.rglob("*") if path.is_file()):
        with contextlib.suppress(Exception):
            dataset = pydicom.dcmread(path, stop_before_pixels=True)
            first.setdefault((dataset.SeriesInstanceUID, dataset.SOPClassUID), path)
    files = list(first.values())
    compared = 0
    for path, copy in zip(files, clean(tmp_path, files)):
        if not isinstance(copy, pathlib.Path):
            held = pydicom.dcmread(path, stop_before_pixels=True).SOPClassUID in WRITTEN + RADIOGRAPHS
            code = "BURNED_IN_TEXT" if held else "PIXELS_UNDECODABLE" if "j2k-truncated" in path.parts else "DEIDENTIFY_CLASS"
            assert copy.startswith(code), (path, copy)
            continue
        before, ours = flat(pydicom.dcmread(path, stop_before_pixels=True)), flat(pydicom.dcmread(copy, stop_before_pixels=True))
        for peer in (anonymize_dataset, Anonymizer(seed="noctule").anonymize):
            dataset = pydicom.dcmread(path, stop_before_pixels=True)
            peer(dataset)
            after = flat(dataset)
            stays = {place: value for place, value in before.items() if value not in ("", "None", "000000")
                     and after.get(place) != value and ours.get(place) == value}
            assert {keyword_for_tag(place[-1]) for place in stays} <= OF_NO_PATIENT, (path, stays)
            compared += 1
    assert compared > 100

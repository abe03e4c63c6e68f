"""Acceptance of series and their split into volumes: a table of kinds as scanners, archives and accidents produce
them.

noctule-phantom makes each kind. pydicom, which shares no code with Noctule, checks that the files match the name
of the kind and which images belong together. Then `noctule explain`, and for some kinds `noctule run`, must give
the expected stacks. dcm2niix gives a second opinion on the numbers of volumes and slices."""

import collections
import contextlib
import dataclasses
import functools
import json
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import tempfile
import warnings

import numpy as np
import pydicom
import pytest

from conftest import BIN, SHARED, needs_shared, phantom, run_program

PASSED_OVER = {"LOCALIZER", "SCREENSHOT", "DERIVED_IMAGE", "FLAT_IMAGE"}


# ------------------------------------------------------------------------------- facts by pydicom ----


def part_of(item, path):
    """Returns the value at a path like "MRDiffusionSequence/DiffusionBValue" or "0019,100C", or None if it is absent."""
    for name in path.split("/"):
        if isinstance(item, pydicom.Sequence):
            item = item[0] if item else None
        if item is None:
            return None
        if "," in name:
            group, element = (int(half, 16) for half in name.split(","))
            item = item[group, element].value if (group, element) in item else None
        else:
            item = item.get(name)
    return tuple(item) if isinstance(item, (pydicom.multival.MultiValue, list)) else item


class Image:
    """A classic image or a frame of an enhanced image. Values come from its own functional groups, the shared ones,
    then the data set."""

    def __init__(self, path, ds, frame=0):
        self.path, self.ds, self.frame = str(path), ds, frame
        self.items = [ds]
        if "SharedFunctionalGroupsSequence" in ds:
            self.items = [ds.PerFrameFunctionalGroupsSequence[frame], ds.SharedFunctionalGroupsSequence[0], ds]

    def __getitem__(self, path):
        return next((value for item in self.items if (value := part_of(item, path)) is not None), None)

    def place(self):
        enhanced = len(self.items) > 1
        return tuple(float(x) for x in self["PlanePositionSequence/ImagePositionPatient" if enhanced
                                            else "ImagePositionPatient"])

    def normal(self):
        enhanced = len(self.items) > 1
        o = np.array(self["PlaneOrientationSequence/ImageOrientationPatient" if enhanced
                          else "ImageOrientationPatient"], float)
        return np.cross(o[:3], o[3:])


class Series:
    """All images of some files, as pydicom reads them."""

    def __init__(self, files):
        self.sets = []
        self.images = []
        for path in files:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of deliberately damaged files
                ds = pydicom.dcmread(path)
                assert all(element.VR for element in ds.iterall()), "every element can be read"
            self.sets.append(ds)
            self.images += [Image(path, ds, frame) for frame in range(int(ds.get("NumberOfFrames", 1)))]

    @staticmethod
    @functools.cache
    def of_kind(*files):
        """Returns the Series of a kind, which several tests share."""
        return Series(files)

    def values(self, path):
        """Returns the distinct values of an attribute."""
        return {image[path] for image in self.images}

    def counts(self):
        """Returns the number of images per position."""
        return collections.Counter(image.place() for image in self.images)

    def repeats(self):
        """Returns the number of positions that occur once, twice, ...: {1: 8}."""
        return dict(collections.Counter(self.counts().values()))


# ------------------------------------------------------------------------------- output of the program ----


PIPELINE = """{ name = "%s"; tilt = "refuse"; %s segments = ( { label = "Ball"; range = [ -1e6, 1e6 ];
    shapes = ( { kind = "sphere"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 5.0; } );
    type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } ); }"""
PIPELINES = {"plain": "", "newest": 'duplicates = "newest";', "derived": "derived = true;"}


@pytest.fixture(scope="session", autouse=True)
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "noctule.conf"
    path.write_text('root = "/nowhere"; pipelines = ( %s );' % ", ".join(PIPELINE % item for item in PIPELINES.items()))
    run_json.config = path


def run_json(command, folder, *options):
    """Returns the JSON output of the program and its exit status."""
    done = subprocess.run([BIN / "noctule", "--config", run_json.config, command, "--json", *options, folder],
                          capture_output=True, text=True)
    printed = (done.stdout + done.stderr).replace("Phantom generator", "")  # the model of the scanner
    assert not any(name in printed for name in ("Phantom", "NP0")), "a patient is never named"
    return json.loads(done.stdout), done.returncode


@contextlib.contextmanager
def heap(files):
    """Returns a folder with exactly these files, in this order."""
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(files):
            place = pathlib.Path(folder) / f"{number:05}"
            place.mkdir()
            (place / path.name).symlink_to(path)
        yield folder


NONE = {"code": "", "stacks": [], "instances": [], "temporal_positions": 0, "announced_temporal_positions": 0}


def admit(files, pipeline="plain"):
    """Returns the decision on the files of one series: {code, stacks, times, refused}. A stack has its planes as
    (path, frame)."""
    with heap(files) as folder:
        stacks_by_name, status = run_json("explain", folder, "--pipeline", pipeline)
        (series,) = stacks_by_name["series"] or [NONE]
        places = [(image["stack"], image["slice"], pathlib.Path(instance["file"]).resolve(), frame)
                  for instance in series["instances"] for frame, image in enumerate(instance["images"])]
        for stack in series["stacks"]:
            stack["files"] = [pathlib.Path(path).resolve() for path in stack["files"]]
    assert status == 0
    for stack in series["stacks"]:
        stack["planes"] = [(str(path), frame) for name, _, path, frame in sorted(places) if name == stack["stack"]]
        assert len(stack["planes"]) == stack["slices"]
    return {"code": series["code"], "stacks": series["stacks"], "refused": stacks_by_name["passed_over"] + stacks_by_name["warnings"],
            "times": (series["temporal_positions"], series["announced_temporal_positions"])}


def stacks_by_name(report):
    """Returns {name: planes, or (planes, code)} of the stacks."""
    stacks = {}
    for stack in report["stacks"]:
        code, planes = stack["code"], len(stack["planes"])
        assert stack["accepted"] == (code == "")
        assert stack["passed_over"] == (code in PASSED_OVER)
        assert stack["stack"] not in stacks, "names are different"
        stacks[stack["stack"]] = (planes, code) if code else planes
        if code:
            assert stack["message"].endswith("."), "a sentence"
            assert stack["files"][0].is_file(), "that names a file"
    return stacks


def run(files, output, *options):
    """Runs `noctule run`. Returns {stack: slices or code}, and the number of skipped files by code."""
    with heap(files) as folder:
        answer, status = run_json("run", folder, "--pipeline", "plain", "--stacks", "all", "--output", str(output), *options)
    jobs = {job["stack"]: job["code"] or job["volume"]["slices"] for job in answer["jobs"]}
    assert (status == 0) == (jobs != {} and all(isinstance(result, int) for result in jobs.values()))
    assert {job["outcome"] for job in answer["jobs"]} <= {"DONE", "REJECT"} and len(jobs) == len(answer["jobs"])
    return jobs, collections.Counter(item["code"] for item in answer["passed_over"] + answer["warnings"])


# ------------------------------------------------------------------------------------- the table ----


@dataclasses.dataclass
class Kind:
    stacks: dict = dataclasses.field(default_factory=dict)
    by: object = None  # the attribute path, paths, or function of an image that separates the volumes
    fault: str = ""  # code of the whole series
    refused: dict = dataclasses.field(default_factory=dict)  # number of files by code
    facts: object = None  # expected facts by pydicom: a function of the series
    newest: dict = None  # stacks with duplicates = "newest"
    split_by: str = ""  # split_by of each volume
    times: tuple = None  # temporal positions: received and announced

    def key(self, image):
        if self.by is None:
            return None
        if callable(self.by):
            return self.by(image)
        return tuple(image[path] for path in ([self.by] if isinstance(self.by, str) else self.by))


def named(prefix, values, suffix="", planes=8):
    return {f"{prefix}{value}{suffix}": planes for value in values}


def csa(image):
    """Returns {name: values} of the Siemens CSA header."""
    data, at, found = image["0029,1010"], 16, {}
    assert data[:4] == b"SV10"
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        name, items = data[at:at + 64].split(b"\0")[0].decode(), struct.unpack_from("<i", data, at + 76)[0]
        at += 84
        for _ in range(items):
            length = struct.unpack_from("<4i", data, at)[1]
            text = data[at + 16:at + 16 + length].decode().strip("\0 ")
            found[name] = found.get(name, ()) + ((float(text),) if text else ())
            at += 16 + -(-length // 4) * 4
    return found


def by_csa(image):
    return tuple(csa(image).items())


def by_eight(image):
    """Returns the volume number of an image whose series is numbered volume by volume."""
    return (image.ds.InstanceNumber - 1) // 8


DIRECTIONS = ["", ", direction 1.000 0.000 0.000", ", direction 0.000 1.000 0.000", ", direction 0.600 0.000 0.800"]
DIFFUSION = named("b ", [("1000" if way else "0") + way for way in DIRECTIONS])
COMPONENTS = named("", ["magnitude", "phase", "real", "imaginary"])
ONE = {"": 8}

KINDS = {
    # complete and incomplete series
    "ct-plain": Kind(ONE, facts=lambda s: s.values("Modality") == {"CT"} and s.repeats() == {1: 8}),
    "mr-plain": Kind(ONE, facts=lambda s: s.values("Modality") == {"MR"} and s.repeats() == {1: 8}),
    "pet-plain": Kind(ONE, facts=lambda s: len(s.values("RescaleSlope")) == 7 and s.values("Units") == {"BQML"}),
    "ct-end-missing-count": Kind({"": (7, "INCOMPLETE_SERIES")}, facts=lambda s: s.values("ImagesInAcquisition") == {8}),
    "ct-scout-counted": Kind({"": 8, "localizer": (1, "LOCALIZER")}, by=lambda i: "LOCALIZER" in i["ImageType"],
                             facts=lambda s: s.values("ImagesInAcquisition") == {9} and len(s.images) == 9),
    "ct-scout-counted-end-missing": Kind(
        {"": (6, "INCOMPLETE_SERIES"), "localizer": (1, "LOCALIZER")}, by=lambda i: "LOCALIZER" in i["ImageType"],
        facts=lambda s: s.values("ImagesInAcquisition") == {9} and len(s.images) == 7),
    "ct-first-missing-number": Kind(
        {"": (11, "INCOMPLETE_SERIES")},
        facts=lambda s: s.values("InstanceNumber") == set(range(2, 13)) and s.values("ImagesInAcquisition") == {None}),
    "ct-gap": Kind({"": (7, "MISSING_SLICE")}, facts=lambda s: [i.place()[2] for i in s.images] == [
        0, 2.5, 5, 10, 12.5, 15, 17.5]),
    "mr-echo-end-missing": Kind({"echo 1 at 5 ms": 8, "echo 2 at 15 ms": (7, "INCOMPLETE_SERIES")}, by="EchoTime",
                                facts=lambda s: s.repeats() == {2: 7, 1: 1}),
    "mr-time-slice-missing": Kind(
        {**named("time ", [1, 2, 4]), "time 3": (7, "INCOMPLETE_SERIES")}, by="TemporalPositionIdentifier",
        facts=lambda s: s.repeats() == {4: 7, 3: 1}),
    "mr-time-volume-missing": Kind(
        {f"time {time}": (8, "INCOMPLETE_SERIES") for time in (1, 2, 3)}, by="TemporalPositionIdentifier", times=(3, 4),
        facts=lambda s: s.repeats() == {3: 8} and s.values("NumberOfTemporalPositions") == {4}),
    # Scanners store each temporal position as a series, or only some positions arrive. The report must state their
    # numbers.
    "mr-time-one-of-four": Kind(ONE, times=(1, 4), facts=lambda s: (
        s.values("TemporalPositionIdentifier"), s.values("NumberOfTemporalPositions")) == ({2}, {4})),
    "mr-echoes-ends-missing": Kind({f"echo {echo}": (7, "INCOMPLETE_SERIES") for echo in ("1 at 5 ms", "2 at 15 ms")},
                                   by="EchoTime", facts=lambda s: s.repeats() == {2: 6, 1: 2}),
    "mr-fmri-slice-missing": Kind({"": (31, "INCOMPLETE_SERIES")}, facts=lambda s: s.repeats() == {4: 7, 3: 1}),
    # one series or several
    "ct-two-patients": Kind(fault="MIXED_PATIENTS", facts=lambda s: len(s.values("PatientID")) == 2),
    "ct-two-names": Kind(fault="MIXED_PATIENTS", facts=lambda s: (len(s.values("PatientID")), len(
        s.values("PatientName"))) == (1, 2)),
    "ct-two-issuers": Kind(fault="MIXED_PATIENTS", facts=lambda s: len(s.values("IssuerOfPatientID")) == 2),
    "ct-two-studies": Kind(fault="MIXED_STUDIES", facts=lambda s: len(s.values("StudyInstanceUID")) == 2),
    "ct-two-frames": Kind(fault="MIXED_FRAMES_OF_REFERENCE", facts=lambda s: len(s.values("FrameOfReferenceUID")) == 2),
    "pet-ct-one-series": Kind(fault="MIXED_MODALITIES", facts=lambda s: s.values("Modality") == {"CT", "PT"} and len(
        s.values("SOPClassUID")) == 2),
    # one instance or several
    "ct-resent": Kind(
        {"": (9, "DUPLICATE_POSITION")}, newest={"": 8, "older slices": (1, "DUPLICATE_POSITION")},
        facts=lambda s: s.repeats() == {1: 7, 2: 1} and len(s.values("SOPInstanceUID")) == 9),
    "ct-one-uid": Kind(fault="DUPLICATE_UID_DIFFERENT",
                       facts=lambda s: len(s.values("SOPInstanceUID")) == 1 and s.repeats() == {1: 8}),
    "ct-copies": Kind(ONE, refused={"DUPLICATE_FILE": 2}, facts=lambda s: s.repeats() == {1: 6, 2: 2} and len(
        {pathlib.Path(i.path).read_bytes() for i in s.images}) == 8),
    # images that are not part of the volume
    "ct-scout": Kind({"": 8, "localizer": (1, "LOCALIZER")}, by=lambda i: "LOCALIZER" in i["ImageType"],
                     facts=lambda s: len(s.values("ImageType")) == 2),
    "ct-scout-alone": Kind({"localizer": (1, "LOCALIZER")}, facts=lambda s: len(s.images) == 1),
    "mr-localizer": Kind({"localizer": (3, "LOCALIZER")}, facts=lambda s: len(s.values("ImageOrientationPatient")) == 3),
    "ct-mpr-beside": Kind({"": 8, "derived": (6, "DERIVED_IMAGE")}, by=lambda i: "MPR" in i["ImageType"],
                          facts=lambda s: len(s.values("ImageOrientationPatient")) == 2),
    "ct-derived-beside": Kind({"": 8, "derived": (8, "DERIVED_IMAGE")}, by=lambda i: i["ImageType"][0],
                              facts=lambda s: s.repeats() == {2: 8}),
    "ct-derived-alone": Kind(ONE, facts=lambda s: s.values("ImageType") == {("DERIVED", "SECONDARY")}),
    "ct-mip-alone": Kind({"derived": (8, "DERIVED_IMAGE")}, facts=lambda s: "MIP" in s.images[0]["ImageType"]),
    "mr-adc": Kind({"derived": (8, "DERIVED_IMAGE")}, facts=lambda s: "ADC" in s.images[0]["ImageType"]),
    "ct-screenshot": Kind({"": 8, "screenshot": (1, "SCREENSHOT")}, by=lambda i: "SCREEN SAVE" in i["ImageType"],
                          facts=lambda s: s.images[8]["ImagePositionPatient"] is None),
    "ct-dose-sheet": Kind({"": 8, "screenshot": (1, "SCREENSHOT")}, by=lambda i: "DOSE_INFO" in i["ImageType"],
                          facts=lambda s: s.values("SOPClassUID") == {pydicom.uid.CTImageStorage}),
    "ct-capture": Kind({"": 8, "2-D images": (1, "FLAT_IMAGE")}, by="SOPClassUID",
                       facts=lambda s: pydicom.uid.SecondaryCaptureImageStorage in s.values("SOPClassUID")),
    "nm-frames": Kind(refused={"SOP_CLASS_UNSUPPORTED": 1}, facts=lambda s: s.images[7]["Modality"] == "NM"),
    "us-frames": Kind({"2-D images": (8, "FLAT_IMAGE")}, facts=lambda s: s.images[7]["Modality"] == "US"),
    "xa-frames": Kind({"2-D images": (8, "FLAT_IMAGE")}, facts=lambda s: s.images[7]["Modality"] == "XA"),
    "cr-image": Kind({"2-D images": (1, "FLAT_IMAGE")}, facts=lambda s: s.images[0]["Modality"] == "CR"),
    # tiles
    "siemens-mosaic": Kind({"mosaic": (2, "MOSAIC")}, facts=lambda s: all(
        "MOSAIC" in i["ImageType"] and i["0019,100A"] == 9 and (i.ds.Rows, i.ds.Columns) == (60, 72) for i in s.images)),
    "siemens-mosaic-count": Kind({"mosaic": (2, "MOSAIC")}, facts=lambda s: all(
        "MOSAIC" not in i["ImageType"] and i["0019,100A"] == 9 for i in s.images)),
    "siemens-mosaic-csa": Kind({"mosaic": (2, "MOSAIC")}, facts=lambda s: all(
        "MOSAIC" not in i["ImageType"] and i["0019,100A"] is None and csa(i)["NumberOfImagesInMosaic"] == (9,)
        for i in s.images)),
    "siemens-mosaic-geometry": Kind({"mosaic": (2, "MOSAIC")}, facts=lambda s: all(
        "MOSAIC" not in i["ImageType"] and i["0019,100A"] is None and i.ds.Rows * i.ds.PixelSpacing[0] > 700 and
        i.ds.Columns == 3 * i.ds.AcquisitionMatrix[3] for i in s.images)),
    "uih-tiled": Kind({"mosaic": (2, "MOSAIC")}, facts=lambda s: all(
        "VFRAME" in i["ImageType"] and i["0065,1050"] == 9 for i in s.images)),
    # volumes
    "mr-echoes": Kind({"echo 1 at 5 ms": 8, "echo 2 at 15 ms": 8}, by="EchoTime", split_by="Echo Time (0018,0081)"),
    "mr-temporal": Kind(named("time ", [1, 2, 3, 4]), by="TemporalPositionIdentifier", split_by="(0020,0100)"),
    "mr-inversions": Kind(named("inversion ", [100, 400, 1600], " ms"), by="InversionTime", split_by="(0018,0082)"),
    "mr-flips": Kind(named("flip ", [4, 24]), by="FlipAngle", split_by="(0018,1314)"),
    "mr-triggers": Kind(named("phase ", [55.5, 111, 166.5, 222], " ms"), by="TriggerTime", split_by="(0018,1060)"),
    "philips-cine": Kind(named("phase ", [1, 2, 3]), by="2001,1008"),
    "ct-phases": Kind(named("phase ", [40, 75], " %"), by="NominalPercentageOfCardiacPhase"),
    "siemens-complex": Kind(named("", ["magnitude", "phase"]), by=lambda i: i["ImageType"][2]),
    "ge-complex": Kind(COMPONENTS, by="0043,102F"),
    "philips-complex": Kind(COMPONENTS, by=lambda i: i["ImageType"][3]),
    "mr-water-fat": Kind(named("", ["WATER", "FAT", "IN_PHASE", "OUT_PHASE"]), by=lambda i: i["ImageType"][2]),
    "ct-kernels": Kind(named("kernel ", ["STANDARD", "BONE"]), by="ConvolutionKernel", split_by="(0018,1210)"),
    "ct-energies": Kind(named("", [80, 140], " kV"), by="KVP", split_by="(0018,0060)"),
    "ct-acquisitions": Kind(named("acquisition ", [1, 2]), by="AcquisitionNumber", split_by="(0020,0012)"),
    "pet-dynamic": Kind(named("time ", [1, 2, 3]), by=lambda i: (i["ImageIndex"] - 1) // i["NumberOfSlices"]),
    "pet-suv": Kind(ONE, facts=lambda s: s.values("Units") == {"GML"} and len(s.values("RescaleSlope")) == 7),
    "mr-two-orientations": Kind({"axial": 8, "coronal": 6}, by="ImageOrientationPatient"),
    # diffusion and perfusion
    "dti-standard": Kind(DIFFUSION, by=["DiffusionBValue", "DiffusionGradientOrientation"], split_by="(0018,9087)"),
    "dti-siemens": Kind(DIFFUSION, by=["0019,100C", "0019,100E"]),
    "dti-siemens-matrix": Kind(DIFFUSION, by=["0019,100C", "0019,1027"]),
    "dti-siemens-csa": Kind(DIFFUSION, by=by_csa, facts=lambda s: s.values("0019,100C") == {None}),
    "dti-siemens-csa-matrix": Kind(DIFFUSION, by=by_csa, facts=lambda s: s.values("0019,100C") == {None}),
    "dti-ge": Kind(DIFFUSION, by=["0043,1039", "0019,10BB", "0019,10BC", "0019,10BD"]),
    "dti-philips": Kind(DIFFUSION, by=["2001,1003", "2005,10B0", "2005,10B1", "2005,10B2"]),
    "dti-uih": Kind(DIFFUSION, by=["0065,1009", "0065,1037"]),
    "dti-canon": Kind(DIFFUSION, by=["DiffusionBValue", "ImageComments"]),
    "dti-unnamed": Kind(named("volume ", [1, 2, 3, 4]), by=by_eight, facts=lambda s: s.values("DiffusionBValue") == {1000}),
    "asl-philips": Kind(named("", ["label", "control"]), by="2005,1429"),
    "asl-standard": Kind(named("", ["label", "control"]), by="MRArterialSpinLabelingSequence/ASLContext"),
    # the general rule
    "fmri-ge": Kind(named("volume ", [1, 2, 3, 4]), by=by_eight, split_by="Instance Number (0020,0013)"),
    "fmri-some": Kind(named("volume ", [1, 2, 3]), by=by_eight, split_by="Instance Number (0020,0013)", times=(3, 16),
                      facts=lambda s: s.values("TemporalPositionIdentifier") == {None} and s.repeats() == {3: 8}),
    "fmri-slices": Kind(named("volume ", [1, 2, 3, 4]), by=lambda i: (i.ds.InstanceNumber - 1) % 4,
                        split_by="Instance Number (0020,0013)"),
    "fmri-times": Kind(named("volume ", [1, 2, 3, 4]), by=lambda i: str(i["AcquisitionTime"])[:6],
                       split_by="Acquisition Date and Time", facts=lambda s: s.values("InstanceNumber") == {0}),
    "fmri-content": Kind(named("volume ", [1, 2, 3, 4]), by=lambda i: str(i["ContentTime"])[:6],
                         split_by="Content Date and Time", facts=lambda s: s.values("InstanceNumber") == {0}),
    "fmri-nothing": Kind({"": (16, "DUPLICATE_POSITION")}, facts=lambda s: s.repeats() == {2: 8}),
    # enhanced
    "mr-enhanced": Kind(ONE),
    "ct-enhanced": Kind(ONE),
    "pet-enhanced": Kind(ONE),
    "mr-legacy-converted": Kind(ONE, facts=lambda s: s.sets[0].SOPClassUID == pydicom.uid.LegacyConvertedEnhancedMRImageStorage),
    "philips-enhanced": Kind(named("time ", [1, 2, 3]), by="FrameContentSequence/TemporalPositionIndex"),
    "philips-enhanced-asl": Kind(named("", ["label", "control"]), by="2005,140F/2005,1429"),
    "siemens-xa": Kind(
        DIFFUSION, by=["MRDiffusionSequence/DiffusionBValue",
                       "MRDiffusionSequence/DiffusionGradientDirectionSequence/DiffusionGradientOrientation"],
        facts=lambda s: "PlaneOrientationSequence" not in s.sets[0].SharedFunctionalGroupsSequence[0]),
    "canon-enhanced": Kind(named("time ", [2.5, 5, 7.5], " s"), by="TemporalPositionSequence/TemporalPositionTimeOffset"),
    "ge-enhanced": Kind(named("inversion ", [100, 400, 1600], " ms"), by="MRModifierSequence/InversionTimes"),
    "uih-enhanced": Kind(named("echo ", [5, 15], " ms"), by="MREchoSequence/EffectiveEchoTime"),
    "mr-enhanced-complex": Kind(named("", ["magnitude", "phase"]), by="MRImageFrameTypeSequence/ComplexImageComponent"),
    "mr-enhanced-b-matrix": Kind(
        {name: 8 for name in list(DIFFUSION)[:3]},
        by=["MRDiffusionSequence/DiffusionBValue", "MRDiffusionSequence/DiffusionBMatrixSequence/DiffusionBValueXX"]),
    "mr-enhanced-b-shared": Kind(ONE, facts=lambda s: s.values("MRDiffusionSequence/DiffusionBValue") == {800}),
    "mr-enhanced-order": Kind(named("volume ", [1, 2, 3]), by=lambda i: i.frame // 8),
    "ct-enhanced-gated": Kind(named("phase ", [40, 75], " %"),
                              by="CardiacSynchronizationSequence/NominalPercentageOfCardiacPhase"),
    "ct-enhanced-energy": Kind(named("", [80, 140], " kV"), by="CTXRayDetailsSequence/KVP"),
    "ct-enhanced-kernels": Kind(named("kernel ", ["STANDARD", "BONE"]), by="CTReconstructionSequence/ConvolutionKernel"),
    # encodings
    "ct-un": Kind(ONE, facts=lambda s: all(
        b"\x20\x00\x32\x00UN" in pathlib.Path(i.path).read_bytes() and i["Rows"] == 20 for i in s.images)),
    "ct-rounded-1.25": Kind({"": 12}, facts=lambda s: s.values("SliceThickness") == {1.25} and len(
        {round(b.place()[2] - a.place()[2], 1) for a, b in zip(s.images, s.images[1:])}) == 2),
    "ct-rounded-0.75": Kind({"": 12}, facts=lambda s: s.values("SliceThickness") == {0.75} and len(
        {round(b.place()[2] - a.place()[2], 1) for a, b in zip(s.images, s.images[1:])}) == 2),
    "ct-uneven": Kind({"": (8, "SPACING_NOT_UNIFORM")}, facts=lambda s: {
        b.place()[2] - a.place()[2] for a, b in zip(s.images, s.images[1:])} == {5, 6}),
    "ct-ruined": Kind(ONE, facts=lambda s: b"***" in pathlib.Path(s.images[0].path).read_bytes() and
                      s.sets[0].SpecificCharacterSet == "ISO_IR 999" and len(s.sets[0].StudyDescription) > 64),
    "ct-32-bit": Kind(refused={"PIXELS_UNSUPPORTED": 8}, facts=lambda s: s.values("BitsAllocated") == {32}),
    "ct-float": Kind(refused={"PIXELS_UNSUPPORTED": 8}, facts=lambda s: all("FloatPixelData" in ds for ds in s.sets)),
    "pmap-float": Kind(refused={"SOP_CLASS_UNSUPPORTED": 1},
                       facts=lambda s: s.sets[0].SOPClassUID == pydicom.uid.ParametricMapStorage),
}


@pytest.fixture(scope="session")
def kinds(tmp_path_factory):
    """Returns a folder with one subfolder per kind, created on first use."""
    root = tmp_path_factory.mktemp("kinds")

    def files(name):
        folder = root / name
        return sorted(folder.iterdir()) if folder.is_dir() else phantom(folder, "--series", name)

    return files


def test_the_table_has_every_kind():
    listed = [line.split()[0] for line in run_program("noctule-phantom", "--list").stdout.splitlines()]
    assert listed == list(KINDS) and len(listed) >= 40


@pytest.mark.parametrize("name", KINDS)
def test_kind_matches_its_name(kinds, name):
    """Checks the facts of a kind by pydicom alone."""
    kind, series = KINDS[name], Series.of_kind(*kinds(name))
    assert len({ds.SeriesInstanceUID for ds in series.sets}) == 1
    for ds in series.sets:
        shape = (ds.Rows, ds.Columns)
        assert ds.pixel_array.shape == (shape if "NumberOfFrames" not in ds else (int(ds.NumberOfFrames), *shape))
    assert kind.facts is None or kind.facts(series)
    volumes = collections.defaultdict(list)
    for image in series.images:
        volumes[kind.key(image)].append(image)
    assert kind.by is None or len(volumes) == max(len(kind.stacks), 2)
    accepted = [planes for planes in kind.stacks.values() if isinstance(planes, int)]
    if len(accepted) == len(kind.stacks) > 0 and not kind.refused:
        assert sorted(map(len, volumes.values())) == sorted(accepted)
        for images in volumes.values():
            assert len({image.place() for image in images}) == len(images), "no position twice in a volume"


@pytest.mark.parametrize("name", KINDS)
def test_kind_gives_the_expected_stacks(kinds, name):
    kind, files = KINDS[name], kinds(name)
    report = admit(files)
    assert stacks_by_name(report) == kind.stacks
    assert report["code"] == kind.fault
    assert collections.Counter(refusal["code"] for refusal in report["refused"]) == kind.refused
    assert kind.times is None or report["times"] == kind.times

    series = Series.of_kind(*files)
    images = {(image.path, image.frame): image for image in series.images}
    for stack in (stack for stack in report["stacks"] if stack["accepted"]):
        planes = [images[plane] for plane in stack["planes"]]
        keys = {kind.key(image) for image in planes}
        assert len(keys) == 1, "one volume"
        assert len(planes) == len({image.place() for image in series.images if kind.key(image) in keys}), "all of it"
        along = [float(image.normal() @ image.place()) for image in planes]
        assert along == sorted(along)
        assert kind.split_by in stack["split_by"]
        assert bool(stack["split_by"]) == (len(kind.stacks) > 1 and bool(stack["stack"]))
    if kind.newest:
        assert [(stack["stack"], stack["slices"]) for stack in admit(files, "newest")["stacks"]] == [
            (name, planes if isinstance(planes, int) else planes[0]) for name, planes in kind.newest.items()]


def fair_share():
    """Returns a kind for each code, and some kinds with several volumes."""
    chosen = {}
    for name, kind in KINDS.items():
        codes = {kind.fault, *kind.refused} | {planes[1] for planes in kind.stacks.values() if isinstance(planes, tuple)}
        for code in codes - {""}:
            chosen.setdefault(code, name)
        if codes == {""} and len(kind.stacks) > 1:
            chosen.setdefault((len(kind.stacks), name.split("-")[0]), name)
    return sorted(set(chosen.values()), key=list(KINDS).index)


@pytest.mark.parametrize("name", fair_share())
def test_run_agrees(kinds, tmp_path, name):
    kind = KINDS[name]
    jobs, passed_over = run(kinds(name), tmp_path / "out")
    expected = {stack: planes if isinstance(planes, int) else planes[1] for stack, planes in kind.stacks.items()
                if isinstance(planes, int) or planes[1] not in PASSED_OVER}
    assert jobs == ({"": kind.fault} if kind.fault else expected)
    assert passed_over == kind.refused | collections.Counter(
        {planes[1]: planes[0] for planes in kind.stacks.values() if isinstance(planes, tuple) and planes[1] in PASSED_OVER})


@pytest.mark.parametrize("name", ["mr-temporal", "fmri-slices", "dti-ge", "ct-scout", "mr-enhanced-order", "ct-resent"])
def test_order_of_files_has_no_effect(kinds, name):
    files = kinds(name)
    expected = admit(files)["stacks"]
    for order in (files[::-1], files[1::2] + files[::2]):
        assert admit(order)["stacks"] == expected


def test_an_operator_accepts_missing_slices(kinds, tmp_path):
    for name in ("ct-end-missing-count", "ct-first-missing-number", "mr-echo-end-missing", "mr-time-slice-missing",
                 "mr-time-volume-missing", "mr-echoes-ends-missing"):
        jobs, _ = run(kinds(name), tmp_path / name, "--accept-missing")
        assert jobs == {stack: planes if isinstance(planes, int) else planes[0]
                        for stack, planes in KINDS[name].stacks.items()}


def test_a_pipeline_accepts_derived_images(kinds):
    assert stacks_by_name(admit(kinds("ct-mip-alone"), "derived")) == {"": 8}
    assert stacks_by_name(admit(kinds("mr-adc"), "derived")) == {"": 8}


# ------------------------------------------------------------- never a wrong volume ----


def rewritten(path, to, **changes):
    ds = pydicom.dcmread(path)
    for keyword, value in changes.items():
        setattr(ds, keyword, value)
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    ds.save_as(to, enforce_file_format=True)
    return to


def spoil(files, folder, dice):
    """Returns the files of a valid series after an accident: reordered, missing, repeated, resent, or mixed with
    another study."""
    files = list(files)
    chosen = dice.choice(files)
    accident = dice.choice(["order", "fewer", "fewer", "twice", "again", "mixed"])
    if accident == "fewer":
        for _ in range(dice.randint(1, 3)):
            files.remove(dice.choice(files))
    elif accident == "twice":
        files.append(pathlib.Path(shutil.copy(chosen, folder / f"copy-of-{chosen.name}")))
    elif accident == "again":
        files.append(rewritten(chosen, folder / f"copy-of-{chosen.name}", SOPInstanceUID=pydicom.uid.generate_uid()))
    elif accident == "mixed":
        other = phantom(folder / "other", "--kind", "mr-brain", "--size", "24x20x8", "--seed", "1")[3]
        series = pydicom.dcmread(chosen, stop_before_pixels=True).SeriesInstanceUID
        files.append(rewritten(other, folder / "mixed.dcm", SeriesInstanceUID=series))
    dice.shuffle(files)
    return accident, files


SOUND = {
    "one": (("--kind", "ct-head", "--size", "24x20x8"), None),
    "echoes": (("--kind", "mr-brain", "--size", "24x20x8", "--echoes", "2"), "EchoTime"),
    **{name: (("--series", name), KINDS[name].by) for name in (
        "mr-temporal", "fmri-ge", "fmri-slices", "fmri-times", "mr-triggers", "ge-complex", "dti-siemens", "dti-philips",
        "pet-dynamic")},
}


@pytest.mark.parametrize("name", SOUND)
def test_no_accident_makes_another_volume(tmp_path, name):
    arguments, by = SOUND[name]
    files, kind = phantom(tmp_path / "sound", *arguments), Kind(by=by)
    volumes = collections.defaultdict(set)
    for image in Series(files).images:
        volumes[kind.key(image)].add(pathlib.Path(image.path).name)
    seen = set()
    for seed in range(24):
        folder = tmp_path / str(seed)
        folder.mkdir()
        accident, spoiled = spoil(files, folder, random.Random(f"{name} {seed}"))
        report = admit(spoiled)
        accepted = [stack for stack in report["stacks"] if stack["accepted"]]
        for stack in accepted:
            names = [pathlib.Path(path).name.removeprefix("copy-of-") for path, _ in stack["planes"]]
            assert set(names) in volumes.values() and len(set(names)) == len(names), (accident, seed)
        whole = accident in ("order", "twice")  # a repeated file counts once
        assert len(accepted) == len(volumes) if whole else len(accepted) < len(volumes), (accident, seed)
        seen.add(accident)
    assert len(seen) == 5, "each happened"


# -------------------------------------------------------------------------------- a second opinion ----


def dcm2niix(folder, scratch):
    """Returns the sorted [(slices, volumes)] of dcm2niix for a folder, without resampled outputs."""
    scratch.mkdir()
    done = subprocess.run(["dcm2niix", "-b", "n", "-z", "n", "-f", "%j_%r", "-o", scratch, folder],
                          text=True, capture_output=True)
    found = []
    for path in scratch.glob("*.nii"):
        dims = struct.unpack("<8h", path.read_bytes()[40:56])
        if dims[4] > 0:  # 0: an additional "Eq" or "Tilt" output with other slices
            found.append((dims[3], dims[4]))
    shutil.rmtree(scratch)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return sorted(found)


def volumes_of(found):
    """Returns the numbers of slices of all volumes, independent of their distribution to files."""
    return sorted(slices for slices, volumes in found for _ in range(volumes))


# Kinds for which dcm2niix (1.0.20220720, as in Debian 12) gives other numbers, and the reasons.
OTHERWISE = {
    # It counts indistinguishable frames of an enhanced object as slices of one volume.
    **dict.fromkeys(["canon-enhanced", "ge-enhanced", "mr-enhanced-b-matrix", "mr-enhanced-order"], [24]),
    **dict.fromkeys(["asl-standard", "ct-enhanced-energy", "ct-enhanced-gated", "ct-enhanced-kernels",
                     "mr-enhanced-complex", "philips-enhanced-asl", "uih-enhanced"], [16]),
    "siemens-xa": [32],
    # It also converts images that are not part of a volume, and splits a mosaic without the slice normal.
    **dict.fromkeys(["ct-scout", "ct-screenshot", "ct-dose-sheet", "ct-capture"], [1, 8]),
    "ct-scout-counted": [1, 8],
    "ct-scout-alone": [1],
    "mr-localizer": [1, 1, 1],
    "cr-image": [1],
    "ct-mpr-beside": [6, 8],
    "ct-derived-beside": [8, 8],
    **dict.fromkeys(["ct-mip-alone", "mr-adc", "nm-frames", "us-frames", "xa-frames", "pmap-float", "ct-float",
                     "ct-32-bit"], [8]),
    **dict.fromkeys(["siemens-mosaic", "siemens-mosaic-count", "siemens-mosaic-csa", "uih-tiled"], [9, 9]),
    # Only the field of view identifies this mosaic, so it stays one flat slice. This output is wrong.
    "siemens-mosaic-geometry": [1, 1],
    # It checks neither the patient nor completeness.
    **dict.fromkeys(["ct-two-patients", "ct-two-names", "ct-two-issuers", "ct-two-studies", "ct-two-frames",
                     "ct-one-uid"], [8]),
    "pet-ct-one-series": [8, 8],
    **dict.fromkeys(["ct-end-missing-count", "ct-gap"], [7]),
    "ct-first-missing-number": [11],
    "ct-scout-counted-end-missing": [1, 6],
    "mr-echo-end-missing": [7, 8],
    "mr-echoes-ends-missing": [7, 7],
    "mr-time-volume-missing": [8, 8, 8],
    "mr-time-slice-missing": [],  # it gives up
    # It counts slices at one position as two, and accepts uneven spacing with a warning.
    "ct-resent": [9],
    "ct-uneven": [8],
    # It assumes an order of volumes although the headers give none.
    "fmri-nothing": [8, 8],
    # It swaps the axes of slices that are not axial: 6 coronal slices of 20 rows.
    "mr-two-orientations": [8, 20],
}


@pytest.mark.parametrize("name", KINDS)
def test_dcm2niix_counts_the_same(kinds, tmp_path, name):
    accepted = sorted(planes for planes in KINDS[name].stacks.values() if isinstance(planes, int))
    found = volumes_of(dcm2niix(kinds(name)[0].parent, tmp_path / "nii"))
    assert found == OTHERWISE.get(name, accepted)
    assert name not in OTHERWISE or OTHERWISE[name] != accepted, "it says the same now"


def real(folder):
    return sorted(path for path in (SHARED / folder).iterdir() if path.suffix == ".dcm")


@needs_shared
@pytest.mark.parametrize("folder,volumes", [
    ("ct-head-5mm", [28]), ("mr-brain-t1", [384]), ("mr-dti-canon", 13 * [40]), ("mr-fmri-ge", 3 * [8]),
    ("mr-mosaic", 2 * [35]),
    *((f"sarcoma/STS_00{patient}/{modality}/image", [slices]) for patient, modality, slices in (
        (1, "CT", 59), (1, "PET", 59), (1, "MR_T1", 59), (2, "CT", 48), (2, "PET", 48), (2, "MR_T1", 35))),
])
def test_real_series_are_accepted(tmp_path, folder, volumes):
    report = admit(real(folder))
    stacks = report["stacks"]
    assert report["times"] == ((3, 16) if folder == "mr-fmri-ge" else (0, report["times"][1]))
    assert [stack["code"] for stack in stacks] == [""] * len(volumes)
    assert sorted(len(stack["planes"]) for stack in stacks) == volumes
    assert volumes_of(dcm2niix(SHARED / folder, tmp_path / "nii")) == volumes


@needs_shared
@pytest.mark.parametrize("folder,expected,theirs", [
    # It keeps the sheared slices, with a warning, in addition to the resampled output.
    ("ct-head-tilted", {"": (28, "GANTRY_TILT")}, [28]),
    # It counts 10 frames without position as slices. Five encodings are one instance, of which it reads one.
    ("transfer-syntaxes", "DUPLICATE_UID_DIFFERENT", [10]),
])
def test_defective_real_series_are_refused(tmp_path, folder, expected, theirs):
    assert volumes_of(dcm2niix(SHARED / folder, tmp_path / "nii")) == theirs
    report = admit(real(folder))
    assert report["code"] == expected if isinstance(expected, str) else stacks_by_name(report) == expected


@needs_shared
@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_real_series_with_rounded_positions_are_not_resampled(tmp_path, decimals):
    """Slices 2.5 to 5 mm apart, whose positions are then written with few digits. A slice out of place is found."""
    folders = ["chest/lung-kernel/dicom", "chest/low-dose-5mm/dicom", "brain/ms01-1-t1w/dicom", "mr-fmri-ge", "ct-head-5mm",
               *(f"sarcoma/STS_001/{kind}/image" for kind in ("CT", "PET", "MR_T1"))]
    for number, folder in enumerate(folders):
        copies = tmp_path / str(number)
        copies.mkdir()
        for path in real(folder):
            dataset = pydicom.dcmread(path)
            dataset.ImagePositionPatient = [f"{float(x):.{decimals}f}" for x in dataset.ImagePositionPatient]
            dataset.save_as(copies / path.name)
        answer, _ = run_json("explain", copies)
        stacks = [stack for series in answer["series"] for stack in series["stacks"]]
        assert stacks and all(stack["accepted"] and not stack["straightened"] for stack in stacks), (folder, stacks)
        if folder != "mr-fmri-ge":
            (stack,) = stacks
            spacing = stack["spacing_mm"][2]
            normal = np.cross(dataset.ImageOrientationPatient[:3], dataset.ImageOrientationPatient[3:])
            inside = sorted(copies.iterdir(), key=lambda path: np.dot(
                normal, pydicom.dcmread(path, stop_before_pixels=True).ImagePositionPatient))
            for path in inside[len(inside) // 2:]:
                dataset = pydicom.dcmread(path)
                moved = np.array(dataset.ImagePositionPatient, float) + normal * spacing / 2
                dataset.ImagePositionPatient = [f"{x:.{decimals}f}" for x in moved]
                dataset.save_as(path)
            answer, _ = run_json("explain", copies)
            assert all(stack["straightened"] or not stack["accepted"] for series in answer["series"]
                       for stack in series["stacks"]), (folder, answer["series"][0]["stacks"])


# ---------------------------------------------------------------------------------------- cost ----


def cpu_seconds(files):
    """Returns the user time for the check of files that are in the page cache."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer, _ = run_json("explain", files[0].parent)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (series,) = answer["series"]
    assert series["code"] == "" and all(stack["accepted"] for stack in series["stacks"])
    return after.ru_utime - before.ru_utime


@pytest.mark.parametrize("name", ["fmri-ge", "mr-temporal"])
def test_cost_grows_with_the_number_of_files(tmp_path, name):
    few = phantom(tmp_path / "few", "--series", name, "--size", "8x8x40", "--volumes", "20")
    many = phantom(tmp_path / "many", "--series", name, "--size", "8x8x40", "--volumes", "200")
    assert (len(few), len(many)) == (800, 8000)
    least = min(cpu_seconds(few) for _ in range(3))
    # Ten times the files: quadratic cost would give a factor of 100, and a busy machine gives at most 20.
    assert any(cpu_seconds(many) <= 30 * least for _ in range(2))

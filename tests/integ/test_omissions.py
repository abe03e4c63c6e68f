"""
Series that lose files, that receive files twice, and that hold parts of two volumes: each accepted stack is a whole volume of the
series. The generators below know the volume and the slice of each frame, so the expected volumes are not taken from the program.
"""

import functools
import io
import json
import pathlib
import random
import subprocess

import numpy as np
import pydicom
import pytest
from conftest import BIN, SHARED, needs_shared
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from test_cut_series import CONFIG, MR, PT, private, protocol, slice_of, xprotocol

ENHANCED_MR = "1.2.840.10008.5.1.4.1.1.4.1"
SLICES = 10


# ------------------------------------------------------------------------------------- generators ----

KINDS = {}


def kind(name):
    def register(make):
        KINDS[name] = make
        return make
    return register


def time_of(seconds):
    return f"12{int(seconds) // 60:02}{seconds % 60:09.6f}"


def mr(**more):
    return {"sop_class": MR, "modality": "MR", **more}


def series(volumes=1, by_slice=False, slices=SLICES, change=lambda ds, volume, place: None, **more):
    """Frames as pairs of a data set and the list of its labels (volume, slice), numbered volume by volume or slice by slice."""
    order = [(v, s) for s in range(slices) for v in range(volumes)] if by_slice else \
        [(v, s) for v in range(volumes) for s in range(slices)]
    made = []
    for number, (volume, place) in enumerate(order):
        ds = slice_of(number, **{"ImagePositionPatient": [-32, -24, 5 * place], **more})
        change(ds, volume, place)
        made.append((ds, [(volume, place)]))
    return made


def by(*changes, **more):
    """A kind of one or more volumes; a change is an attribute and the function of its value."""
    def change(ds, volume, place):
        for each in changes:
            each(ds, volume, place)
    return functools.partial(series, change=change, **more)


def volume_of(keyword, *values):
    return lambda ds, volume, place: setattr(ds, keyword, values[volume])


def block(group, creator, element, vr, values):
    return lambda ds, volume, place: private(ds, group, creator, element, vr, values[volume] if isinstance(values, list) else values)


def several(keyword, of):
    return lambda ds, volume, place: setattr(ds, keyword, of(volume, place))


def position(of):
    return several("ImagePositionPatient", lambda volume, place: [-32, -24, of(volume, place)])


DIRECTIONS = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]]
B_VALUES = [0, 1000, 1000, 1000]


def standard_diffusion(ds, volume, place):
    ds.DiffusionBValue, ds.DiffusionGradientOrientation = float(B_VALUES[volume]), DIRECTIONS[volume]


def siemens_diffusion(ds, volume, place):
    private(ds, 0x0019, "SIEMENS MR HEADER", 0x0C, "IS", B_VALUES[volume])
    private(ds, 0x0019, "SIEMENS MR HEADER", 0x0E, "FD", DIRECTIONS[volume])


def ge_diffusion(ds, volume, place):
    private(ds, 0x0043, "GEMS_PARM_01", 0x39, "IS", [B_VALUES[volume] + 10**9, 8, 0, 0])
    for i in range(3):
        private(ds, 0x0019, "GEMS_ACQU_01", 0xBB + i, "DS", DIRECTIONS[volume][i])


def philips_diffusion(ds, volume, place):
    private(ds, 0x2001, "Philips Imaging DD 001", 0x03, "FL", float(B_VALUES[volume]))
    for i in range(3):
        private(ds, 0x2005, "Philips MR Imaging DD 001", 0xB0 + i, "FL", DIRECTIONS[volume][i])


def uih_diffusion(ds, volume, place):
    private(ds, 0x0065, "Image Private Header", 0x09, "FD", float(B_VALUES[volume]))
    private(ds, 0x0065, "Image Private Header", 0x37, "FD", DIRECTIONS[volume])


def canon_diffusion(ds, volume, place):
    ds.DiffusionBValue = float(B_VALUES[volume])
    ds.ImageComments = "b={}({:.3f},{:.3f},{:.3f})".format(B_VALUES[volume], *DIRECTIONS[volume])


def asl(ds, volume, place):
    ds.ASLContext = ["CONTROL", "LABEL"][volume]


def siemens_protocol(*lines):
    return block(0x0029, "SIEMENS CSA HEADER", 0x20, "OB", protocol(lines))


def tilted(ds, volume, place):
    ds.ImageOrientationPatient = ["1", "0", "0", "0", "0.9483", "-0.3173"]
    ds.ImagePositionPatient = [-32, -24, 5 * place]


def sagittal(ds, volume, place):
    ds.ImageOrientationPatient, ds.ImagePositionPatient = [0, 1, 0, 0, 0, -1], [5 * place, -32, 24]


def two_orientations(ds, volume, place):
    if volume:
        sagittal(ds, volume, place)


def image_type(*values):
    return lambda ds, volume, place: setattr(ds, "ImageType", ["ORIGINAL", "PRIMARY", *values[volume]])


def pet(**more):
    return {"sop_class": PT, "modality": "PT", "NumberOfSlices": SLICES, **more}


def pet_dynamic(ds, volume, place):
    ds.SeriesType, ds.NumberOfTimeSlices = ["DYNAMIC", "IMAGE"], 3
    ds.ImageIndex, ds.FrameReferenceTime = volume * SLICES + place + 1, 1000 * volume



KINDS |= {
    "CT": by(),
    "CT of overlapping slices": by(SliceThickness=10),
    "CT of slices with gaps": by(SliceThickness=4),
    "CT numbered downwards": by(several("InstanceNumber", lambda v, s: SLICES - s)),
    "CT numbered from 0": by(several("InstanceNumber", lambda v, s: s)),
    "CT without numbers": by(several("InstanceNumber", lambda v, s: None)),
    "CT, tilted": by(tilted),
    "CT with Images in Acquisition": by(ImagesInAcquisition=SLICES),
    "CT, two kernels": by(volume_of("ConvolutionKernel", "H30", "H70"), volumes=2),
    "CT, two voltages by slice": by(volume_of("KVP", 80, 140), volumes=2, by_slice=True),
    "CT, three phases": by(volume_of("TriggerTime", 0, 300, 600), volumes=3),
    "CT, phases by acquisition": by(volume_of("AcquisitionNumber", 1, 2, 3), volumes=3),
    "CT, phases by time": by(volume_of("AcquisitionTime", "120000", "120130", "120500"), volumes=3),
    "CT, phases by number": by(volumes=3),
    "CT, second pass half a slice on, by acquisition": by(
        volume_of("AcquisitionNumber", 1, 2), position(lambda v, s: 5 * s + 2.5 * v), volumes=2),
    "CT, second pass half a slice on, by time": by(
        volume_of("AcquisitionTime", "120000", "120300"), position(lambda v, s: 5 * s + 2.5 * v), volumes=2),
    "CT, overlapping passes by acquisition": by(
        volume_of("AcquisitionNumber", 1, 2), position(lambda v, s: 5 * s + 37.5 * v), volumes=2),
    "CT, overlapping passes by time": by(
        volume_of("AcquisitionTime", "120000", "120300"), position(lambda v, s: 5 * s + 37.5 * v), volumes=2),
    "CT, passes that share slices by time": by(
        volume_of("AcquisitionTime", "120000", "120300"), position(lambda v, s: 5 * s + 35 * v), volumes=2),
    "MR": by(**mr()),
    "MR with Spacing Between Slices": by(**mr(SpacingBetweenSlices=5)),
    "MR, sagittal": by(sagittal, **mr()),
    "MR, two orientations": by(two_orientations, volumes=2, **mr()),
    "MR, echoes by slice": by(volume_of("EchoTime", 10, 30, 50), volumes=3, by_slice=True, **mr()),
    "MR, echoes by volume": by(volume_of("EchoTime", 10, 30), volumes=2, **mr()),
    "MR, inversion times": by(volume_of("InversionTime", 100, 2500), volumes=2, **mr()),
    "MR, flip angles": by(volume_of("FlipAngle", 5, 30), volumes=2, by_slice=True, **mr()),
    "MR, magnitude and phase by type": by(image_type(["M", "ND"], ["P", "ND"]), volumes=2, **mr()),
    "MR, Dixon": by(image_type(["W"], ["F"], ["IP"]), volumes=3, by_slice=True, **mr()),
    "MR, label and control": by(asl, volumes=2, **mr()),
    "MR, times by identifier": by(
        several("TemporalPositionIdentifier", lambda v, s: v + 1), volumes=4, **mr(NumberOfTemporalPositions=4)),
    "MR, times by identifier, by slice": by(
        several("TemporalPositionIdentifier", lambda v, s: v + 1), volumes=4, by_slice=True, **mr()),
    "MR, times by acquisition number": by(several("AcquisitionNumber", lambda v, s: v + 1), volumes=4, **mr()),
    "MR, times by acquisition time": by(
        several("AcquisitionTime", lambda v, s: time_of(3 * v + 0.1 * (s // 2 + s % 2 * 5))),
        several("InstanceNumber", lambda v, s: None), volumes=4, **mr()),
    "MR, times by content time": by(
        several("ContentTime", lambda v, s: time_of(3 * v)), several("InstanceNumber", lambda v, s: None),
        several("ContentDate", lambda v, s: "20200101"), volumes=4, **mr()),
    "MR, times by number": by(volumes=4, **mr()),
    "MR, times by number, by slice": by(volumes=4, by_slice=True, **mr()),
    "MR, cine": by(several("TriggerTime", lambda v, s: 40 * v), volumes=4, by_slice=True, **mr()),
    "diffusion": by(standard_diffusion, volumes=4, **mr()),
    "diffusion by slice": by(standard_diffusion, volumes=4, by_slice=True, **mr()),
    "diffusion, Siemens": by(siemens_diffusion, siemens_protocol(("sSliceArray.lSize", SLICES), ("sKSpace.ucDimension", "0x2")),
                             volumes=4, **mr(Manufacturer="SIEMENS")),
    "diffusion, GE": by(ge_diffusion, volumes=4, **mr(Manufacturer="GE MEDICAL SYSTEMS")),
    "diffusion, Philips": by(philips_diffusion, block(0x2001, "Philips Imaging DD 001", 0x18, "SL", SLICES),
                             volumes=4, by_slice=True, **mr(Manufacturer="Philips")),
    "diffusion, UIH": by(uih_diffusion, volumes=4, **mr(Manufacturer="UIH")),
    "diffusion, Canon": by(canon_diffusion, volumes=4, **mr(Manufacturer="TOSHIBA")),
    "Philips, magnitude and phase": by(block(0x2005, "Philips MR Imaging DD 001", 0x11, "CS", ["M", "P"]), volumes=2, **mr()),
    "Philips, dynamics": by(block(0x2005, "Philips MR Imaging DD 001", 0xA0, "FL", [0.0, 2.5, 5.0]), volumes=3, by_slice=True,
                            **mr()),
    "Philips with Number of Slices": by(block(0x2001, "Philips Imaging DD 001", 0x18, "SL", SLICES), **mr()),
    "Philips part with Number of Slices": by(block(0x0019, "PHILIPS MR/PART", 0x0F, "IS", SLICES), **mr()),
    "GE, real and imaginary": by(block(0x0043, "GEMS_PARM_01", 0x2F, "SS", [2, 3]), volumes=2, by_slice=True, **mr()),
    "GE with Locations in Acquisition": by(block(0x0021, "GEMS_RELA_01", 0x4F, "SS", SLICES), **mr()),
    "GE functional": by(block(0x0021, "GEMS_RELA_01", 0x4F, "SS", SLICES), volumes=4, **mr()),
    "Siemens 2-D": by(siemens_protocol(("sSliceArray.lSize", SLICES), ("sKSpace.ucDimension", "0x2")), **mr()),
    "Siemens 3-D": by(siemens_protocol(("sSliceArray.lSize", 1), ("sKSpace.lImagesPerSlab", SLICES), ("sKSpace.ucDimension", "0x4")),
                      **mr()),
    "PET": by(**pet()),
    "PET by beds": by(several("InstanceNumber", lambda v, s: (s + SLICES // 2) % SLICES + 1),
                      several("AcquisitionTime", lambda v, s: f"12{s // 5:02}00"), **pet()),
    "PET, dynamic": by(pet_dynamic, volumes=3, **pet()),
}


@kind("CT with a localizer")
def with_localizer():
    made = series(**{"ConvolutionKernel": "H30"})
    scout = slice_of(SLICES, ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"], ImageOrientationPatient=[1, 0, 0, 0, 0, -1])
    return [*made, (scout, [("localizer", 0)])]


@kind("CT with bolus tracking")
def with_bolus():
    """Slices that monitor the contrast agent lie where a slice of the volume lies."""
    made = series(AcquisitionNumber=1, AcquisitionTime="120000")
    for i in range(4):
        ds = slice_of(SLICES + i, ImagePositionPatient=[-32, -24, 25], AcquisitionNumber=2 + i, AcquisitionTime=time_of(60 + i))
        made.append((ds, [("bolus", i)]))
    return made


@kind("CT with bolus tracking by time")
def with_bolus_by_time():
    made = with_bolus()
    for ds, _ in made:
        ds.AcquisitionNumber = 1
    return made


@kind("MR, derived map beside originals")
def with_map():
    made = series(volumes=2, **mr())
    for ds, labels in made:
        if labels[0][0] == 1:
            ds.ImageType = ["DERIVED", "SECONDARY", "ADC"]
    return [(ds, labels if labels[0][0] == 0 else [("map", labels[0][1])]) for ds, labels in made]


def item(**values):
    made = Dataset()
    for keyword, value in values.items():
        setattr(made, keyword, value)
    return Sequence([made])


def enhanced(number, labels, **more):
    """A multi-frame image with the frames of these labels; volumes are echoes."""
    ds = slice_of(number, ENHANCED_MR, "MR", **more)
    for keyword in ("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "SliceThickness", "RescaleSlope",
                    "RescaleIntercept"):
        delattr(ds, keyword)
    ds.NumberOfFrames, ds.ImageType = len(labels), ["ORIGINAL", "PRIMARY", "VOLUME", "NONE"]
    shared = Dataset()
    shared.PixelMeasuresSequence = item(PixelSpacing=[2, 2], SliceThickness=5)
    shared.PlaneOrientationSequence = item(ImageOrientationPatient=[1, 0, 0, 0, 1, 0])
    ds.SharedFunctionalGroupsSequence, frames = Sequence([shared]), []
    for volume, place in labels:
        frame = Dataset()
        frame.FrameContentSequence = item(StackID="1", InStackPositionNumber=place + 1)
        frame.PlanePositionSequence = item(ImagePositionPatient=[-32, -24, 5 * place])
        frame.MREchoSequence = item(EffectiveEchoTime=10.0 + 20 * volume)
        frame.PixelValueTransformationSequence = item(RescaleSlope=1, RescaleIntercept=0, RescaleType="US")
        frames.append(frame)
    ds.PerFrameFunctionalGroupsSequence = Sequence(frames)
    ds.PixelData = ds.PixelData * len(labels)
    return ds, labels


@kind("enhanced, echoes by file")
def enhanced_echoes():
    return [enhanced(volume, [(volume, s) for s in range(SLICES)]) for volume in range(3)]


@kind("enhanced, echoes by slice")
def enhanced_by_slice():
    return [enhanced(s, [(volume, s) for volume in range(3)]) for s in range(SLICES)]


@kind("enhanced, in parts")
def enhanced_parts():
    return [enhanced(part, [(0, s) for s in range(2 * part, 2 * part + 2)]) for part in range(5)]


@kind("enhanced, Siemens XA in parts")
def enhanced_xa():
    """The protocol stands in a private sequence of the shared functional groups, as in the files of syngo MR XA30."""
    made = enhanced_parts()
    for ds, _ in made:
        series_item = private(Dataset(), 0x0021, "SIEMENS MR SDS 01", 0x19, "OB", xprotocol(
            [("sSliceArray.lSize", 10), ("sKSpace.ucDimension", "2")]))
        private(ds.SharedFunctionalGroupsSequence[0], 0x0021, "SIEMENS MR SDS 01", 0xFE, "SQ", Sequence([series_item]))
    return made


@kind("enhanced, concatenation")
def concatenation():
    return [enhanced(part, [(0, s) for s in range(2 * part, 2 * part + 2)], ConcatenationUID="2.25.77", InConcatenationNumber=part + 1,
                     InConcatenationTotalNumber=5) for part in range(5)]


@kind("enhanced, concatenation without its total")
def concatenation_without_total():
    made = concatenation()
    for ds, _ in made:
        del ds.InConcatenationTotalNumber
    return made


# -------------------------------------------------------------------------------------- mutations ----

AGAIN, COPY, LATER = "again", "copy", "later"  # the same UID; another UID; another UID and number, created later


def scattered(count, at_random):
    """Returns half of the files. A run of neighbours would be a shorter series."""
    for _ in range(20):
        drawn = sorted(at_random.sample(range(count), max(1, count // 2)))
        if drawn[-1] - drawn[0] >= len(drawn):
            break
    return drawn


def omissions(count, at_random):
    every = range(count)
    return {
        "whole": every, "first half": range(count // 2), "second half": range(count // 2, count), "odd": range(0, count, 2),
        "even": range(1, count, 2), "without the first": range(1, count), "without the last": range(count - 1),
        "without one": [i for i in every if i != count // 3], "at random": scattered(count, at_random),
    }


def mixtures(labels, at_random):
    """Takes each place from one volume or another, from files of one frame."""
    places = sorted({place for ((_, place),) in labels})
    volumes = sorted({volume for ((volume, _),) in labels if isinstance(volume, int)})
    middle, chosen = places[len(places) // 2], {place: at_random.randrange(2) for place in places}
    found = {"lower half": [i for i, ((_, place),) in enumerate(labels) if place < middle],
             "every second place": [i for i, ((_, place),) in enumerate(labels) if place % 2 == 0]}
    for a, b in {(volumes[0], volumes[1]), (volumes[-2], volumes[-1])}:
        for name, of in (("halves", lambda place: place >= middle), ("turns", lambda place: place % 2), ("mixture", chosen.get)):
            found[f"{name} of {a} and {b}"] = [
                i for i, ((volume, place),) in enumerate(labels) if volume == (a, b)[of(place)]]
    return found


def plans_of(labels, seed, several_volumes):
    """Names of mutations with their files: an index and the kind of duplicate, or None."""
    at_random, count = random.Random(seed), len(labels)
    found = omissions(count, at_random)
    if several_volumes and all(len(each) == 1 for each in labels):
        found |= mixtures(labels, at_random)
    plans = {name: [(i, None) for i in indices] for name, indices in found.items() if len(indices) > 0}
    whole = [(i, None) for i in range(count)]
    for name, index in (("first", 0), ("middle", count // 2), ("last", count - 1)):
        for duplicate in (AGAIN, COPY):
            plans[f"{name} {duplicate}"] = [*whole, (index, duplicate)]
    plans["middle later"] = [*whole, (count // 2, LATER)]
    plans["half later"] = [*whole, *((i, LATER) for i in range(count // 2))]
    plans["all later"] = [*whole, *((i, LATER) for i in range(count))]
    plans["one lost, one later"] = [*plans["without one"], (count // 2, LATER)]
    return plans


def volumes_of(labels):
    """Returns the places of each volume. Frames outside all volumes have a text in place of the volume number."""
    volumes = {}
    for volume, place in (label for each in labels for label in each):
        if isinstance(volume, int):
            volumes.setdefault(volume, set()).add(place)
    return volumes


# ------------------------------------------------------------------------------- cases without evidence ----

# Complete kinds that are refused, because their headers do not sort repeated positions into stacks.
REFUSED = {"CT, passes that share slices by time"}

# Mutations that no element of the files distinguishes from a complete series, with the reason.
ENDS = {"first half": "a shorter series has the same numbers",
        "without the last": "a shorter series has the same numbers",
        "second half": "numbers may begin anywhere: those of real series begin at 62 and 100",
        "without the first": "numbers may begin at 0 or 1, and at either end"}
STEPS = {"odd": "overlapping slices that were thinned only touch; without numbers a gap may be the protocol's",
         "even": "as odd", "every second place": "as odd"}
VOLUMES = {"lower half": "the numbers between may be those of volumes that were stored in another series",
           "halves": "a scan in two packages has such times", "turns": "as halves", "mixture": "as halves"}
UNTOLD = {
    ("first half", "second half", "without the last"): [
        "CT", "CT of overlapping slices", "CT of slices with gaps", "CT without numbers", "CT numbered from 0", "CT, tilted", "MR",
        "MR with Spacing Between Slices", "MR, sagittal"],
    ("first half", "second half"): [
        "CT numbered downwards", "CT with a localizer", "CT with bolus tracking", "CT with bolus tracking by time",
        "CT, two voltages by slice", "MR, echoes by slice", "MR, flip angles", "MR, Dixon", "MR, times by identifier, by slice",
        "MR, times by number, by slice", "MR, cine", "diffusion by slice", "Philips, dynamics", "GE, real and imaginary"],
    ("first half", "without the last"): [
        "enhanced, in parts", "enhanced, concatenation without its total", "enhanced, echoes by slice"],
    ("without the first",): ["CT numbered downwards", "CT numbered from 0", "CT without numbers"],
    ("without the last",): [
        "CT, second pass half a slice on, by acquisition", "CT, second pass half a slice on, by time",
        "CT, overlapping passes by acquisition", "CT, overlapping passes by time", "MR, two orientations"],
    ("odd", "even"): [
        "CT of overlapping slices", "CT without numbers", "MR, times by acquisition time", "MR, times by content time"],
    ("lower half",): [
        "CT, two kernels", "CT, two voltages by slice", "CT, three phases", "CT, phases by acquisition", "CT, phases by time",
        "CT, phases by number", "CT, second pass half a slice on, by acquisition", "CT, second pass half a slice on, by time",
        "MR, two orientations", "MR, echoes by volume", "MR, echoes by slice", "MR, inversion times", "MR, flip angles", "MR, Dixon",
        "MR, magnitude and phase by type", "MR, label and control", "MR, times by identifier", "MR, times by identifier, by slice",
        "MR, times by acquisition number", "MR, times by acquisition time", "MR, times by content time", "MR, times by number",
        "MR, times by number, by slice", "MR, cine", "diffusion", "diffusion by slice", "diffusion, GE", "diffusion, UIH",
        "diffusion, Canon", "Philips, magnitude and phase", "Philips, dynamics", "GE, real and imaginary"],
    ("every second place", "halves", "turns", "mixture"): ["MR, times by acquisition time", "MR, times by content time"],
    ("halves",): ["MR, two orientations"],
}
REASONS = ENDS | STEPS | VOLUMES


def untold(name):
    """Returns the undetectable mutations of a kind or of a real series. Mixtures are listed without their volumes."""
    return {mutation for mutations, names in UNTOLD.items() if name in names for mutation in mutations}


# ------------------------------------------------------------------------------------- expectations ----


def explain(config, pipeline, folder):
    done = subprocess.run([BIN / "noctule", "--config", config, "explain", "--json", "-p", pipeline, folder], text=True,
                          capture_output=True)
    return json.loads(done.stdout)["series"]


def is_volume(labels, volumes):
    """Returns whether a stack of these frames has each slice of one volume exactly once."""
    numbers = {volume for volume, _ in labels}
    return len(numbers) == 1 and sorted(place for _, place in labels) == sorted(volumes.get(min(numbers, key=str), ()))


def judge(found, label_of, volumes):
    """Returns the numbers of accepted stacks that are a volume, and of those that are not. Every other stack has a
    code."""
    accepted = {stack["stack"]: [] for stack in found["stacks"] if stack["accepted"]}
    assert all(stack["code"] for stack in found["stacks"] if not stack["accepted"]) and (found["stacks"] or found["code"])
    for instance in found["instances"]:
        for image, label in zip(instance["images"], label_of[instance["file"]], strict=True):
            if image["stack"] in accepted:
                accepted[image["stack"]].append(label)
    right = sum(is_volume(labels, volumes) for labels in accepted.values())
    return right, len(accepted) - right


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("config")
    before, pipeline = CONFIG.split('{ name = "any";', 1)
    pipeline = pipeline.split("{ name = ", 1)[0]
    text = f'{before}{{ name = "any"; {pipeline}{{ name = "newest"; duplicates = "newest"; {pipeline.rstrip().rstrip(",")} );'
    path = folder / "noctule.conf"
    path.write_text(text % (folder / "root") + "\n")
    return path


# ------------------------------------------------------------------------------------ generated kinds ----


def encoded(ds):
    buffer = io.BytesIO()
    ds.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def prefix(number, plan):
    return f"2.25.1{number:03}{plan:03}"


def encode_kind(made, number):
    """Writes the files of a series, and those of its duplicates. A mutation replaces the number of the plan in all
    UIDs."""
    own = prefix(number, 0)
    for i, (ds, _) in enumerate(made):
        for keyword, end in (("StudyInstanceUID", 1), ("SeriesInstanceUID", 2), ("FrameOfReferenceUID", 3)):
            setattr(ds, keyword, f"{own}.{end}")
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"{own}.9.{1000 + i}"
    files = [encoded(ds) for ds, _ in made]
    for ds, _ in made:
        ds.InstanceCreationDate, ds.InstanceCreationTime = "20200102", "120000"
        ds.InstanceNumber = None if ds.InstanceNumber is None else ds.InstanceNumber + len(made)
    later = [encoded(ds) for ds, _ in made]
    instance = f"{own}.9.1".encode()
    return {None: files, AGAIN: files, COPY: [data.replace(instance, f"{own}.9.5".encode()) for data in files],
            LATER: [data.replace(instance, f"{own}.9.6".encode()) for data in later]}


def write_plans(folder, number, files, labels, plans):
    """Writes each mutation as a series of its own. Returns the labels of each file."""
    label_of, own = {}, prefix(number, 0).encode()
    for p, plan in enumerate(plans.values()):
        (folder / f"{p:03}").mkdir()
        for k, (i, duplicate) in enumerate(plan):
            path = folder / f"{p:03}" / f"{k:04}.dcm"
            path.write_bytes(files[duplicate][i].replace(own, prefix(number, p).encode()))
            label_of[str(path)] = labels[i]
    return label_of


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_series_is_its_volumes_or_a_code(config, tmp_path, name):
    number, made = list(KINDS).index(name), KINDS[name]()
    labels = [each for _, each in made]
    volumes, files = volumes_of(labels), encode_kind(made, number)
    plans = plans_of(labels, number, len(volumes) > 1)
    label_of = write_plans(tmp_path, number, files, labels, plans)
    for pipeline in ("any", "newest"):
        report = {int(found["series_uid"].split(".")[2][4:]): found for found in explain(config, pipeline, tmp_path)}
        result = {plan: judge(report[p], label_of, volumes) for p, plan in enumerate(plans)}
        for plan in ("whole", "first again", "middle again", "last again"):
            assert result[plan][0] == (0 if name in REFUSED else len(volumes)), plan
        assert {plan.split(" of ")[0] for plan, (_, wrong) in result.items() if wrong} == untold(name)


# --------------------------------------------------------------------------------------- real series ----

# Volumes and slices as dcm2niix 1.0.20220720 converts them. It rotates brain/mprage-sagittal; 128 is its number of
# files.
REAL = {
    "mr-brain-t1": (1, 384), "ct-head-5mm": (1, 28), "ct-head-tilted": (1, 28), "mr-fmri-ge": (3, 8), "mr-dti-canon": (13, 40),
    "mr-mosaic": (2, 35),
    "sarcoma/STS_001/CT/image": (1, 59), "sarcoma/STS_001/MR_T1/image": (1, 59), "sarcoma/STS_001/PET/image": (1, 59),
    "sarcoma/STS_002/CT/image": (1, 48), "sarcoma/STS_002/MR_T1/image": (1, 35), "sarcoma/STS_002/PET/image": (1, 48),
    "sarcoma/STS_006/CT/image": (1, 68), "sarcoma/STS_006/MR_T1/image": (1, 68), "sarcoma/STS_006/PET/image": (1, 68),
    "sarcoma/STS_008/CT/image": (1, 51), "sarcoma/STS_008/MR_T1/image": (1, 28), "sarcoma/STS_008/PET/image": (1, 51),
    "chest/low-dose-5mm/dicom": (1, 49), "chest/lung-kernel/dicom": (1, 100), "chest/planning/dicom": (1, 98),
    "abdomen/low-dose/dicom": (1, 99), "neck/contrast/dicom": (1, 295), "brain/ms01-1-t1w/dicom": (1, 39),
    "brain/ms01-1-flair/dicom": (1, 36), "brain/ms01-2-t1w/dicom": (1, 48), "brain/ms01-2-flair/dicom": (1, 46),
    "brain/mprage-sagittal/dicom": (1, 128), "ibsi/ibsi_1_ct_radiomics_phantom/dicom/image": (1, 60),
    "ibsi2/phantoms/dicom/noise": (1, 64), "pet-headers/siemens/dicom": (1, 3), "pet-headers/ge_medical_and_bqml/dicom": (1, 3),
    "pet-headers/philips_bqml/dicom": (1, 3),
}


# Series of several volumes or with a count: files of PET, and parts of three slices, which are too few.
COUNTED = {name for name in REAL if "/PET/" in name or name.startswith("pet-headers/")} | {"mr-fmri-ge", "mr-mosaic"}


def untold_of_real(name, first_number):
    if name in COUNTED:
        return set()
    if name == "mr-dti-canon":
        return {"lower half"}
    return {"first half", "second half", "without the last"} | ({"without the first"} if first_number != 1 else set())


def images_of(folder):
    """Returns Instance Numbers and paths of the images of a series, in the order of the numbers."""
    return sorted((int(pydicom.dcmread(path, stop_before_pixels=True, specific_tags=["InstanceNumber"]).InstanceNumber), path)
                  for path in folder.iterdir() if pydicom.misc.is_dicom(path))


def linked(folder, paths):
    """Returns a folder of links to these files, named after their numbers in `paths`."""
    folder.mkdir()
    for i, path in paths.items():
        (folder / f"{i:04}.dcm").symlink_to(path)
    return folder


def with_copy(path, copy):
    """Returns the file under another SOP Instance UID of the same length."""
    uid = str(pydicom.dcmread(path, specific_tags=["SOPInstanceUID"]).SOPInstanceUID)
    other = uid[:-1] + str((int(uid[-1]) + 1) % 9 + 1)
    copy.write_bytes(path.read_bytes().replace(uid.encode(), other.encode()))


@needs_shared
@pytest.mark.parametrize("name", REAL)
def test_a_changed_real_series_is_its_volumes_or_a_code(config, tmp_path, name):
    """The complete series has the known number of volumes and slices. Its stacks are the reference for its parts."""
    if not (SHARED / name).is_dir():
        pytest.skip("the series is not here")
    images = images_of(SHARED / name)
    paths = {i: path for i, (_, path) in enumerate(images)}
    count, middle = len(paths), len(paths) // 2
    whole, = explain(config, "any", linked(tmp_path / "whole", paths))
    stacks = [stack["stack"] for stack in whole["stacks"] if stack["accepted"]]
    assert (len(stacks), {stack["slices"] for stack in whole["stacks"]}) == (REAL[name][0], {REAL[name][1]})
    label_of = {int(pathlib.Path(instance["file"]).stem): [(stacks.index(image["stack"]), image["slice"])
                                                           for image in instance["images"]] for instance in whole["instances"]}
    labels = [label_of[i] for i in range(count)]
    volumes, found = volumes_of(labels), {}
    with_copy(paths[middle], linked(tmp_path / "copied", paths) / f"{count:04}.dcm")
    labels.append(labels[middle])

    def judge_folder(pipeline, folder):
        series, = explain(config, pipeline, folder)
        return judge(series, {each["file"]: labels[int(pathlib.Path(each["file"]).stem)] for each in series["instances"]}, volumes)

    for pipeline in ("any", "newest"):
        found[f"copy, {pipeline}"] = judge_folder(pipeline, tmp_path / "copied")
    for number, (plan, files) in enumerate(plans_of(labels[:count], count, len(volumes) > 1).items()):
        if all(duplicate is None for _, duplicate in files) and plan != "whole":
            found[plan] = judge_folder("any", linked(tmp_path / str(number), {i: paths[i] for i, _ in files}))
    assert {plan.split(" of ")[0] for plan, (_, wrong) in found.items() if wrong} == untold_of_real(name, images[0][0])


# ------------------------------------------------------------------------------------ noctule run ----


def run(config, folder, output):
    return subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "any", "-o", output, folder], text=True,
                          capture_output=True)


def test_voxels_of_a_pass_belong_to_that_pass_alone(config, tmp_path):
    """Two passes half a slice apart: the segment of each has as many rows as the generator draws in that pass."""
    made = KINDS["CT, second pass half a slice on, by time"]()
    for ds, ((volume, _),) in made:
        pixels = np.zeros((ds.Rows, ds.Columns), np.uint16)
        pixels[4:4 + 3 * (volume + 1), 8:24] = 1000
        ds.PixelData = pixels.tobytes()
        (tmp_path / "in").mkdir(exist_ok=True)
        ds.save_as(tmp_path / "in" / f"{ds.InstanceNumber:03}.dcm", enforce_file_format=True)
    done = run(config, tmp_path / "in", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = {}
    for path in (tmp_path / "out").rglob("*.dcm"):
        seg = pydicom.dcmread(path)
        sources = {str(item.ReferencedSOPInstanceUID) for item in seg.ReferencedSeriesSequence[0].ReferencedInstanceSequence}
        found[frozenset(sources)] = int(seg.pixel_array.sum())
    assert found == {frozenset(str(ds.SOPInstanceUID) for ds, ((of, _),) in made if of == volume): SLICES * 3 * (volume + 1) * 16
                     for volume in (0, 1)}


def test_halves_of_two_volumes_have_no_result(config, tmp_path):
    """Volumes that only their order separates, one truncated after its half and one before it."""
    made = KINDS["MR, times by number"]()
    (tmp_path / "in").mkdir()
    for ds, ((volume, place),) in made:
        if volume == (place >= SLICES // 2):
            ds.save_as(tmp_path / "in" / f"{ds.InstanceNumber:03}.dcm", enforce_file_format=True)
    done = run(config, tmp_path / "in", tmp_path / "out")
    assert done.returncode == 1 and "VOLUMES_MIXED" in done.stderr and not list((tmp_path / "out").rglob("*.dcm"))


@pytest.mark.parametrize("pipeline", ["any", "newest"])
def test_the_newest_slice_is_advised_for_copies_alone(config, tmp_path, pipeline):
    """A functional series that ends within its second volume: its slices are not copies of the first volume's slices."""
    (tmp_path / "in").mkdir()
    for ds, ((volume, place),) in KINDS["MR, times by number"]():
        if volume == 0 or (volume == 1 and place < 3):
            ds.InstanceCreationDate, ds.InstanceCreationTime = "20200101", time_of(60 * volume + place)
            ds.save_as(tmp_path / "in" / f"{ds.InstanceNumber:03}.dcm", enforce_file_format=True)
    found, = explain(config, pipeline, tmp_path / "in")
    assert [stack["code"] for stack in found["stacks"]] == ["DUPLICATE_POSITION"]
    assert "Instance Number" in found["stacks"][0]["message"] and "newest" not in found["stacks"][0]["message"]

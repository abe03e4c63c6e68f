"""2-D images (CR, DX, MG, US, XA, RF, SC): values, spacing and geometry compared with pydicom, refusals, segments and
texture compared with pyradiomics.

dump_volume reads pixels in the same way as a job. Values by definition: Y of PS3.3 C.7.6.3.1.2 in exact arithmetic."""

import copy
import csv
import io
import itertools
import json
import shutil
import subprocess

import highdicom
import numpy as np
import pydicom
import pytest
import radiomics.featureextractor
import scipy.ndimage
import SimpleITK
from conftest import BIN, PEERS, SHARED, needs_shared, storescu, wait_for
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.sr.codedict import codes
from pydicom.pixels import apply_color_lut, apply_modality_lut, convert_color_space, pixel_array
from pydicom.uid import UID, ExplicitVRLittleEndian, generate_uid
from test_reading import Volume
from test_seg import ROOT

SINGLES = SHARED / "singles-2d"
CLASSES = {  # SOP class: modality
    "1.2.840.10008.5.1.4.1.1.1": "CR", "1.2.840.10008.5.1.4.1.1.1.1": "DX", "1.2.840.10008.5.1.4.1.1.1.1.1": "DX",
    "1.2.840.10008.5.1.4.1.1.1.2": "MG", "1.2.840.10008.5.1.4.1.1.1.2.1": "MG", "1.2.840.10008.5.1.4.1.1.3": "US",
    "1.2.840.10008.5.1.4.1.1.3.1": "US", "1.2.840.10008.5.1.4.1.1.6": "US", "1.2.840.10008.5.1.4.1.1.6.1": "US",
    "1.2.840.10008.5.1.4.1.1.7": "OT", "1.2.840.10008.5.1.4.1.1.7.2": "OT", "1.2.840.10008.5.1.4.1.1.7.3": "OT",
    "1.2.840.10008.5.1.4.1.1.7.4": "OT", "1.2.840.10008.5.1.4.1.1.12.1": "XA", "1.2.840.10008.5.1.4.1.1.12.2": "RF",
    "1.2.840.10008.5.1.4.1.1.20": "NM"}
CR, DX, US, SC = "1.2.840.10008.5.1.4.1.1.1", "1.2.840.10008.5.1.4.1.1.1.1", "1.2.840.10008.5.1.4.1.1.6.1", \
    "1.2.840.10008.5.1.4.1.1.7"
NM = "1.2.840.10008.5.1.4.1.1.20"
CHANNELS = ("luma", "red", "green", "blue")
RNG = np.random.default_rng(43)


# --- images ---


def save(ds, path):
    ds.save_as(path, enforce_file_format=True)


def image(path, stored, sop_class=CR, photometric="MONOCHROME2", syntax=ExplicitVRLittleEndian, bits=None, **attributes):
    """Writes a 2-D image of stored[y, x], stored[frame, y, x], or with three samples more. Returns its data set."""
    ds = Dataset()
    ds.ensure_file_meta()
    ds.file_meta.TransferSyntaxUID = syntax
    ds.SOPClassUID, ds.SOPInstanceUID = sop_class, generate_uid(ROOT, [str(path)])
    ds.file_meta.MediaStorageSOPClassUID, ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPClassUID, ds.SOPInstanceUID
    ds.StudyInstanceUID, ds.SeriesInstanceUID = generate_uid(ROOT, ["study"]), generate_uid(ROOT, [str(path.parent)])
    ds.PatientID, ds.PatientName, ds.Modality, ds.InstanceNumber = "F1", "Flat^Image", CLASSES.get(sop_class, "OT"), 1
    ds.StudyDate = ds.ContentDate = "20261130"
    if sop_class == NM:
        ds.ImageType = ["ORIGINAL", "PRIMARY", "STATIC", "EMISSION"]
    has_colour = photometric not in ("MONOCHROME1", "MONOCHROME2", "PALETTE COLOR")
    shape = stored.shape[:-1] if has_colour else stored.shape
    ds.Rows, ds.Columns = shape[-2:]
    if len(shape) == 3:
        ds.NumberOfFrames = shape[0]
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 3 if has_colour else 1, photometric
    ds.BitsAllocated = 8 * stored.dtype.itemsize
    ds.BitsStored = bits or ds.BitsAllocated
    ds.HighBit, ds.PixelRepresentation = ds.BitsStored - 1, int(stored.dtype.kind == "i")
    if has_colour:
        ds.PlanarConfiguration = 0
    data = stored.tobytes()
    ds.PixelData = data + b"\0" * (len(data) % 2)
    ds["PixelData"].VR = "OB" if ds.BitsAllocated == 8 else "OW"
    for keyword, value in attributes.items():
        setattr(ds, keyword, value)
    save(ds, path)
    return ds


def read(folder, *paths, channel="luma"):
    return Volume(folder, paths, options=("--flat", "--channel", str(CHANNELS.index(channel))))


def of_rgb(rgb, channel="luma"):
    """Returns the value by definition: exact, a half rounded up."""
    rgb = rgb.astype(np.int64)
    if channel != "luma":
        return rgb[..., CHANNELS.index(channel) - 1]
    return (rgb @ [299, 587, 114] + 500) // 1000


def of_ybr(ybr, channel="luma"):
    """Solves the equations of PS3.3 C.7.6.3.1.2 exactly, and limits the results to 0 .. 255."""
    y, b, r = (ybr[..., i].astype(np.int64) for i in range(3))
    b, r = b - 128, r - 128
    value = {"luma": y * 587000, "red": 587000 * y + 587 * 1402 * r, "green": 587000 * y - 114 * 1772 * b - 299 * 1402 * r,
             "blue": 587000 * y + 587 * 1772 * b}[channel]
    return np.clip((2 * value + 587000) // (2 * 587000), 0, 255)


def random_colours(rows=24, columns=20, frames=None):
    return RNG.integers(0, 256, (*([frames] if frames else []), rows, columns, 3)).astype(np.uint8)


# --- values ---


@needs_shared
@pytest.mark.parametrize("name", sorted(p.name for p in SINGLES.glob("*_*")) if SINGLES.is_dir() else ["none"])
def test_values_of_real_images_are_those_of_pydicom(tmp_path, name):
    (path,) = (SINGLES / name).glob("*.dcm")
    ds = pydicom.dcmread(path)
    if ds.file_meta.TransferSyntaxUID == "1.2.840.10008.1.2.4.51":  # no decoder of pydicom reads 12 bits
        subprocess.run(["dcmdjpeg", path, tmp_path / "plain.dcm"], check=True)
        ds = pydicom.dcmread(tmp_path / "plain.dcm")
    plugin = {"decoding_plugin": "pillow"} if name in ("US_002", "US_018") else {}
    raw = pixel_array(ds, raw=True, **plugin)
    if ds.SamplesPerPixel == 1 and ds.PhotometricInterpretation == "PALETTE COLOR":
        raw = of_rgb(apply_color_lut(raw, ds))
    elif ds.PhotometricInterpretation == "RGB":
        raw = of_rgb(raw)
    elif ds.SamplesPerPixel == 3:
        raw = raw[..., 0]
    volume = read(tmp_path, path)
    assert volume.refused == [] and [f["code"] for f in volume.report["decoding"]] == [""] * len(volume.stacks)
    assert all(stack["flat"] and stack["accepted"] for stack in volume.stacks)
    frames = raw if raw.ndim == 3 else raw[None]
    assert [len(stack["planes"]) for stack in volume.stacks] == [1] * len(frames)
    for stack, found in zip(volume.stacks, volume.arrays):
        plane = stack["planes"][0]
        assert np.array_equal(found[0], frames[plane["frame"]])
        assert np.array_equal(found[0] * plane["slope"] + plane["intercept"], apply_modality_lut(frames[plane["frame"]], ds))


@pytest.mark.parametrize("planar, frames", itertools.product((0, 1), (None, 3)))
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("photometric", ["RGB", "YBR_FULL"])
def test_colour_becomes_one_channel(tmp_path, photometric, channel, planar, frames):
    colours = random_colours(frames=frames)
    stored = np.moveaxis(colours, -1, -3) if planar else colours
    ds = image(tmp_path / "a.dcm", colours, US, photometric, PixelData=stored.tobytes(), PlanarConfiguration=planar)
    volume = read(tmp_path, tmp_path / "a.dcm", channel=channel)
    expected = (of_rgb if photometric == "RGB" else of_ybr)(colours, channel)
    found = np.concatenate(volume.arrays)
    assert np.array_equal(found, expected if frames else expected[None])
    # pydicom computes in single precision: halves may be rounded otherwise
    if channel == "luma" or photometric == "YBR_FULL":
        peer = convert_color_space(pixel_array(ds, raw=True), photometric, "YBR_FULL" if channel == "luma" else "RGB")
        peer = peer[..., 0 if channel == "luma" else CHANNELS.index(channel) - 1]
        assert np.abs(found.reshape(peer.shape).astype(int) - peer).max() <= 1


@pytest.mark.parametrize("channel", CHANNELS)
def test_uncompressed_ybr_422(tmp_path, channel):
    ybr = random_colours()
    ybr[:, 1::2, 1:] = ybr[:, ::2, 1:]
    packed = np.stack([ybr[:, ::2, 0], ybr[:, 1::2, 0], ybr[:, ::2, 1], ybr[:, ::2, 2]], axis=-1)
    ds = image(tmp_path / "a.dcm", ybr, US, "YBR_FULL_422", PixelData=packed.tobytes())
    assert np.array_equal(pixel_array(ds, raw=True), ybr)
    assert np.array_equal(read(tmp_path, tmp_path / "a.dcm", channel=channel).only[0], of_ybr(ybr, channel))


def table_of(keyword, entries, first, bits, signed=False):
    """Returns a LUT sequence item without data."""
    item = Dataset()
    item.add_new(keyword, "SS" if signed else "US", [entries % 65536, first, bits])
    return item


def palette(ds, table, first=0, bits=16, packed=False):
    for name, column in zip(("Red", "Green", "Blue"), table.T):
        ds.add_new(f"{name}PaletteColorLookupTableDescriptor", "US", [len(table) % 65536, first, bits])
        data = column.astype("u1" if packed else "<u2").tobytes()
        setattr(ds, f"{name}PaletteColorLookupTableData", data + b"\0" * (len(data) % 2))
    return ds


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("bits, packed, entries, first", [(16, False, 256, 0), (8, False, 256, 0), (8, True, 256, 0),
                                                          (8, True, 201, 20), (16, False, 100, 50)])
def test_palette(tmp_path, channel, bits, packed, entries, first):
    table = RNG.integers(0, 2**bits, (entries, 3))
    stored = RNG.integers(0, 256, (2, 15, 16)).astype(np.uint8)
    stored[:, 0] = np.arange(0, 256, 16)
    ds = palette(image(tmp_path / "a.dcm", stored, US, "PALETTE COLOR"), table, first, bits, packed)
    save(ds, tmp_path / "a.dcm")
    volume = read(tmp_path, tmp_path / "a.dcm", channel=channel)
    expected = of_rgb(table[np.clip(stored.astype(int) - first, 0, entries - 1)], channel)
    assert np.array_equal(np.concatenate(volume.arrays), expected)
    if entries == 256:  # pydicom reads the palettes that are whole
        assert np.array_equal(of_rgb(apply_color_lut(stored, ds), channel), expected)
    assert {stack["pixel"] for stack in volume.stacks} == {"uint16" if bits == 16 else "uint8"}


@pytest.mark.parametrize("signed, first", [(False, 0), (False, 100), (True, -200)])
@pytest.mark.parametrize("bits", [8, 12, 16])
def test_modality_lut(tmp_path, signed, first, bits):
    table = np.sort(RNG.integers(0, 2**bits, 500))[::-1]
    stored = RNG.integers(-400 if signed else 0, 700, (20, 17)).astype(np.int16 if signed else np.uint16)
    item = table_of("LUTDescriptor", 500, first, bits, signed)
    item.ModalityLUTType = "OD"
    item.add_new("LUTData", "OW", table.astype("<u2").tobytes())
    ds = image(tmp_path / "a.dcm", stored, bits=12 if not signed else 16, ModalityLUTSequence=[item])
    volume = read(tmp_path, tmp_path / "a.dcm")
    expected = table[np.clip(stored.astype(int) - first, 0, 499)]
    assert np.array_equal(volume.only[0], expected)
    if bits != 12:  # pydicom knows 8 and 16
        assert np.array_equal(apply_modality_lut(ds.pixel_array, ds), expected)
    assert volume.stacks[0]["planes"][0]["has_rescale"] is False


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_grey_values_are_those_of_the_rescale(tmp_path, photometric):
    """Not inverted, and without VOI LUT, Presentation LUT Shape, and overlays in unused bits or groups."""
    stored = RNG.integers(0, 1024, (20, 17)).astype(np.uint16)
    window = table_of("LUTDescriptor", 1024, 0, 16)
    window.add_new("LUTData", "US", list(range(1023, -1, -1)))
    ds = image(tmp_path / "a.dcm", stored | RNG.integers(0, 2, stored.shape).astype(np.uint16) << 12, DX, photometric, bits=10,
               RescaleSlope="0.5", RescaleIntercept="-7", WindowCenter="512", WindowWidth="100", VOILUTSequence=[window],
               PresentationLUTShape="INVERSE")
    volume = read(tmp_path, tmp_path / "a.dcm")
    plane = volume.stacks[0]["planes"][0]
    assert np.array_equal(volume.only[0] * plane["slope"] + plane["intercept"], apply_modality_lut(stored, ds))


COMPRESSED = {
    "jpeg-ybr-422": ("1.2.840.10008.1.2.4.50", "YBR_FULL_422"), "jpeg-ybr": ("1.2.840.10008.1.2.4.50", "YBR_FULL"),
    "jpeg-rgb": ("1.2.840.10008.1.2.4.50", "RGB"), "jpeg2000-rct": ("1.2.840.10008.1.2.4.90", "YBR_RCT"),
    "jpeg2000-rgb": ("1.2.840.10008.1.2.4.90", "RGB"), "rle": ("1.2.840.10008.1.2.5", "RGB"),
    "jpeg-lossless": ("1.2.840.10008.1.2.4.70", "RGB"), "jpeg-ls": ("1.2.840.10008.1.2.4.80", "RGB")}


def jpeg(colours, subsampling, as_rgb=False):
    """Returns a JPEG of colours, which are Y, Cb, Cr, or as_rgb components without a transformation."""
    buffer = io.BytesIO()
    if as_rgb:
        Image.fromarray(colours, "RGB").save(buffer, "JPEG", quality=95, subsampling=0, keep_rgb=True)
    else:
        Image.fromarray(colours, "YCbCr").save(buffer, "JPEG", quality=95, subsampling=subsampling)
    return buffer.getvalue()


def compressed(path, kind, colours):
    """Writes the image in a transfer syntax. Returns its data set."""
    syntax, photometric = COMPRESSED[kind]
    ds = image(path, colours, US, photometric)
    if kind.startswith("jpeg-ybr"):
        stream = jpeg(colours, 1 if photometric == "YBR_FULL_422" else 0)
    elif kind == "jpeg-rgb":
        stream = jpeg(colours, 0, as_rgb=True)
    elif kind in ("jpeg-lossless", "jpeg-ls"):
        tool = ["dcmcjpeg", "+e1"] if kind == "jpeg-lossless" else ["dcmcjpls"]
        subprocess.run([*tool, path, path], check=True)
        return pydicom.dcmread(path)
    else:
        options = {"use_mct": False} if kind == "jpeg2000-rgb" else {}
        ds.compress(UID(syntax), generate_instance_uid=False, **options)
        save(ds, path)
        return ds
    ds.file_meta.TransferSyntaxUID, ds.PhotometricInterpretation = UID(syntax), photometric
    ds.PixelData = encapsulate([stream])
    ds["PixelData"].VR, ds.LossyImageCompression = "OB", "01"
    save(ds, path)
    return ds


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_colour(tmp_path, kind, channel):
    colours = random_colours(33, 47) // 4 * 3
    colours[:, :, 0] = np.linspace(0, 255, 47)
    ds = compressed(tmp_path / "a.dcm", kind, colours)
    found = read(tmp_path, tmp_path / "a.dcm", channel=channel).only[0].astype(int)
    is_ybr = ds.PhotometricInterpretation.startswith("YBR_FULL")
    plugin = {"decoding_plugin": "pillow"} if kind in ("jpeg-ybr", "jpeg-ybr-422", "jpeg-rgb") else {}
    peer = colours if kind == "jpeg-ls" else pixel_array(ds, raw=True, **plugin)
    expected = of_ybr(peer, channel) if is_ybr else of_rgb(peer, channel)
    if kind in ("rle", "jpeg2000-rct", "jpeg2000-rgb", "jpeg-lossless", "jpeg-ls"):
        assert np.array_equal(peer, colours)
    # decoders interpolate the colour differences of 4:2:2 in different ways
    assert channel != "luma" and kind == "jpeg-ybr-422" or np.abs(found - expected).max() <= (0 if channel == "luma" else 2)


# --- spacing ---


def region(x0=0, y0=0, x1=99, y1=79, delta=(0.02, 0.03), units=(3, 3), space=1, tissue=1):
    item = Dataset()
    item.RegionSpatialFormat, item.RegionDataType, item.RegionFlags = space, tissue, 0
    item.RegionLocationMinX0, item.RegionLocationMinY0 = x0, y0
    item.RegionLocationMaxX1, item.RegionLocationMaxY1 = x1, y1
    item.PhysicalUnitsXDirection, item.PhysicalUnitsYDirection = units
    item.PhysicalDeltaX, item.PhysicalDeltaY = delta
    return item


WHOLE = [0, 0, 99, 79]
SPACINGS = [  # attributes, source, mm between columns and rows, the valid part
    ({}, "none", None, WHOLE),
    ({"PixelSpacing": [0.3, 0.2]}, "pixel", (0.2, 0.3), WHOLE),
    ({"PixelSpacing": [0.3, 0.2], "PixelSpacingCalibrationType": "FIDUCIAL"}, "pixel-fiducial", (0.2, 0.3), WHOLE),
    ({"PixelSpacing": [0.3, 0.2], "PixelSpacingCalibrationType": "GEOMETRY", "ImagerPixelSpacing": [0.3, 0.2],
      "EstimatedRadiographicMagnificationFactor": "1.5"}, "pixel-geometry", (0.2, 0.3), WHOLE),
    ({"PixelSpacing": [0.2, 0.2], "ImagerPixelSpacing": [0.3, 0.3], "EstimatedRadiographicMagnificationFactor": "1.5"},
     "pixel", (0.2, 0.2), WHOLE),
    ({"PixelSpacing": [0.3, 0.3], "ImagerPixelSpacing": [0.3, 0.3], "EstimatedRadiographicMagnificationFactor": "1.5"},
     "imager-magnified", (0.2, 0.2), WHOLE),
    ({"ImagerPixelSpacing": [0.3, 0.2]}, "imager", (0.2, 0.3), WHOLE),
    ({"ImagerPixelSpacing": [0.3, 0.2], "EstimatedRadiographicMagnificationFactor": "2"}, "imager-magnified", (0.1, 0.15),
     WHOLE),
    ({"ImagerPixelSpacing": [0.3, 0.2], "EstimatedRadiographicMagnificationFactor": "1"}, "imager-magnified", (0.2, 0.3), WHOLE),
    ({"ImagerPixelSpacing": [0.3, 0.2], "EstimatedRadiographicMagnificationFactor": "100"}, "imager-magnified", (0.002, 0.003),
     WHOLE),
    ({"NominalScannedPixelSpacing": [0.3, 0.2]}, "nominal-scanned", (0.2, 0.3), WHOLE),
    ({"PixelSpacing": [0, 0], "NominalScannedPixelSpacing": [0.3, 0.2]}, "nominal-scanned", (0.2, 0.3), WHOLE),
    ({"SequenceOfUltrasoundRegions": [region()]}, "ultrasound-region", (0.2, 0.3), WHOLE),
    ({"SequenceOfUltrasoundRegions": [region(delta=(-0.02, -0.03))]}, "ultrasound-region", (0.2, 0.3), WHOLE),
    ({"SequenceOfUltrasoundRegions": [region(x1=400, y1=300)]}, "ultrasound-region", (0.2, 0.3), WHOLE),
    ({"SequenceOfUltrasoundRegions": [region(0, 0, 99, 19, (0.1, 0.1)), region(10, 20, 89, 79), region(0, 0, 9, 79, tissue=2)]},
     "ultrasound-region", (0.2, 0.3), [10, 20, 89, 79]),
    ({"SequenceOfUltrasoundRegions": [region(units=(4, 3)), region(space=2), region(tissue=3), region(x0=50, x1=20)]}, "none",
     None, WHOLE),
    ({"PixelAspectRatio": [4, 3]}, "none", None, WHOLE)]


@pytest.mark.parametrize("attributes, source, mm, within", SPACINGS)
def test_spacing(tmp_path, attributes, source, mm, within):
    image(tmp_path / "a.dcm", RNG.integers(0, 255, (80, 100)).astype(np.uint8), US, **attributes)
    (stack,) = read(tmp_path, tmp_path / "a.dcm").stacks
    assert (stack["spacing_source"], stack["calibrated"]) == (source, within)
    assert stack["spacing"][:2] == pytest.approx(mm or (1, 1), rel=1e-9)
    assert stack["origin"] == [0, 0, 0] and stack["axes"] == [1, 0, 0, 0, 1, 0, 0, 0, 1]


@pytest.mark.parametrize("factor", [b"0.5", b"0.999999", b"0", b"-1.5", b"100.001", b"1e300", b"1e-300", b"nan", b"inf", b"two", b""])
def test_an_impossible_magnification_is_ignored(tmp_path, factor):
    """The factor is the distance from the source to the detector, divided by that to the patient: at least 1."""
    path = tmp_path / "a.dcm"
    mark = b"1.23456789"
    image(path, RNG.integers(0, 255, (80, 100)).astype(np.uint8), US, ImagerPixelSpacing=[0.3, 0.2],
          EstimatedRadiographicMagnificationFactor=mark.decode())
    content = path.read_bytes()
    assert content.count(mark) == 1
    path.write_bytes(content.replace(mark, factor.ljust(len(mark))))
    (stack,) = read(tmp_path, path).stacks
    assert stack["spacing_source"] == "imager" and stack["spacing"][:2] == [0.2, 0.3]


@needs_shared
def test_spacing_of_real_images(tmp_path):
    found = {}
    for path in SINGLES.glob("*/*.dcm"):
        stack = read(tmp_path, path).stacks[0]
        found[path.parent.name] = (stack["spacing_source"], *(round(mm, 5) for mm in stack["spacing"][:2]))
    assert found["CR_005"] == ("pixel", 0.2, 0.2) and found["CR_009"] == ("none", 1, 1)
    assert found["MG_023"] == ("pixel-fiducial", 0.25, 0.25) and found["MG_024"] == ("imager-magnified", 0.33333, 0.33333)
    assert found["RF_022"] == ("imager-magnified", 0.24765, 0.24765) and found["NM_025"] == ("pixel", 2.26, 2.26)
    assert found["US_002"] == ("ultrasound-region", 0.37523, 0.37523) and found["US_018"] == ("ultrasound-region", 0.56, 0.56)
    assert {name: of[0] for name, of in found.items() if of[0] == "none"}.keys() == {
        "CR_009", "CR_021", "US_004", "US_008", "US_012", "US_026", "XA_010", "XA_027"}


# --- stacks, refusals ---


@pytest.mark.parametrize("sop_class", CLASSES)
def test_each_frame_is_a_stack(tmp_path, sop_class):
    frames = RNG.integers(0, 255, (12, 8, 10)).astype(np.uint8)
    paths = [tmp_path / "a.dcm", tmp_path / "b.dcm"]
    image(paths[0], frames, sop_class, InstanceNumber=2, ImagePositionPatient=[1, 2, 3], ImageOrientationPatient=[1, 0, 0, 0, 1, 0])
    image(paths[1], frames[0], sop_class, InstanceNumber=10, FrameOfReferenceUID="1.2.3")
    volume = read(tmp_path, *paths)
    assert [stack["name"] for stack in volume.stacks] == [f"image 2, frame {i}" for i in range(1, 13)] + ["image 10"]
    assert all(stack["accepted"] for stack in volume.stacks)
    assert np.array_equal(np.concatenate(volume.arrays)[:12], frames)
    refused = Volume(tmp_path, paths).stacks
    assert [(stack["name"], stack["accepted"], stack["passed_over"], stack["fault"]["code"]) for stack in refused] == [
        ("2-D images", False, True, "FLAT_IMAGE")]


@pytest.mark.parametrize("kind, accepted", [("STATIC", True), ("WHOLE BODY", True), ("DYNAMIC", False), ("GATED", False), ("TOMO", False),
                                            ("GATED TOMO", False), ("RECON TOMO", False), ("RECON GATED TOMO", False), ("", False), ("<b>odd", False)])
def test_planar_images_of_nuclear_medicine(tmp_path, kind, accepted):
    frames = RNG.integers(0, 900, (2, 8, 10)).astype(np.uint16)
    image(tmp_path / "a.dcm", frames, NM, ImageType=["ORIGINAL", "PRIMARY", *([kind, "EMISSION"] if kind else [])], PixelSpacing=[4.8, 2.4])
    volume = read(tmp_path, tmp_path / "a.dcm")
    if accepted:
        assert np.array_equal(np.concatenate(volume.arrays), frames) and volume.stacks[0]["spacing_source"] == "pixel"
    else:
        (refused,) = volume.refused
        told = "(invalid)" if "<" in kind else kind
        assert refused["code"] == "SOP_CLASS_UNSUPPORTED" and f'of the type "{told}"' in refused["message"], refused


REFUSED = [
    ({"PhotometricInterpretation": "CMYK"}, "PIXELS_UNSUPPORTED", "CMYK"),
    ({"PhotometricInterpretation": "YBR_PARTIAL_420"}, "PIXELS_UNSUPPORTED", "YBR_PARTIAL_420"),
    ({"PhotometricInterpretation": "YBR_RCT"}, "PIXELS_UNSUPPORTED", "YBR_RCT"),
    ({"SamplesPerPixel": 4}, "PIXELS_UNSUPPORTED", "4 samples"),
    ({"BitsStored": 7, "HighBit": 6}, "PIXELS_UNSUPPORTED", "7 bits"),
    ({"PixelRepresentation": 1}, "PIXELS_UNSUPPORTED", "signed"),
    ({"PlanarConfiguration": 2}, "TAG_INVALID", "PlanarConfiguration"),
    ({"PhotometricInterpretation": "YBR_FULL_422", "Columns": 19}, "TAG_INVALID", "Columns"),
    ({"PixelData": bytes(100)}, "FILE_TRUNCATED", "100 of 1440"),
    ({"SOPClassUID": "1.2.840.10008.5.1.4.1.1.7.1"}, "SOP_CLASS_UNSUPPORTED", "2-D images")]


@pytest.mark.parametrize("attributes, code, words", REFUSED)
def test_refusals_of_colour(tmp_path, attributes, code, words):
    image(tmp_path / "a.dcm", random_colours(), US, "RGB", **attributes)
    (refused,) = read(tmp_path, tmp_path / "a.dcm").refused
    assert refused["code"] == code and words in refused["message"], refused


def test_a_modality_lut_has_no_rescale_and_no_padding(tmp_path):
    item = table_of("LUTDescriptor", 4, 0, 16)
    item.ModalityLUTType = "US"
    item.add_new("LUTData", "US", [1, 2, 3, 4])
    for name, words in {"RescaleSlope": "Rescale Slope", "PixelPaddingValue": "Pixel Padding Value"}.items():
        image(tmp_path / "a.dcm", np.zeros((4, 4), np.uint16), ModalityLUTSequence=[item], **{name: 1})
        (refused,) = read(tmp_path, tmp_path / "a.dcm").refused
        assert refused["code"] == "PIXELS_UNSUPPORTED" and words in refused["message"], refused


def test_tables_that_contradict_themselves_are_not_decoded(tmp_path):
    stored = np.zeros((4, 4), np.uint8)
    whole = palette(image(tmp_path / "a.dcm", stored, US, "PALETTE COLOR"), np.zeros((256, 3)))
    for change in ({"BluePaletteColorLookupTableData": b"\0\0"}, {"RedPaletteColorLookupTableDescriptor": [256, 1, 16]},
                   {"GreenPaletteColorLookupTableDescriptor": [256, 0, 8], "GreenPaletteColorLookupTableData": b"\1\1" * 256}):
        ds = pydicom.dcmread(tmp_path / "a.dcm")
        ds.update(whole)
        for keyword, value in change.items():
            ds.add_new(keyword, "US" if keyword.endswith("Descriptor") else "OW", value)
        save(ds, tmp_path / "a.dcm")
        (fault,) = read(tmp_path, tmp_path / "a.dcm").report["decoding"]
        assert fault["code"] == "PIXELS_UNDECODABLE" and "palette" in fault["message"], fault


@pytest.mark.parametrize("kind, photometric, words", [("jpeg-ybr", "RGB", "is YBR"), ("jpeg-rgb", "YBR_FULL", "is RGB"),
                                                      ("jpeg2000-rct", "YBR_FULL", "transformation"),
                                                      ("jpeg2000-rgb", "YBR_RCT", "transformation")])
def test_a_code_stream_of_other_colours_is_not_decoded(tmp_path, kind, photometric, words):
    ds = compressed(tmp_path / "a.dcm", kind, random_colours(33, 47))
    ds.PhotometricInterpretation = photometric
    save(ds, tmp_path / "a.dcm")
    (fault,) = read(tmp_path, tmp_path / "a.dcm").report["decoding"]
    assert fault["code"] == "PIXELS_UNDECODABLE" and words in fault["message"], fault


# --- segments and texture ---

TYPE = 'type = { code = "4147007"; scheme = "SCT"; meaning = "Mass"; };'
PROFILE = "setting: {{ binWidth: {}, force2D: true, label: 1 }}\nimageType:\n  Original: {{}}\nfeatureClass:\n" + "".join(
    f"  {name}:\n" for name in ("firstorder", "glcm", "glrlm", "glszm", "gldm", "ngtdm", "shape2D"))


def part(low, high, more=""):
    return f'{{ label = "Part"; method = "range"; range = [ {float(low)}, {float(high)} ]; {more} {TYPE} }}'


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with one pipeline on files. Returns the CompletedProcess, and the job.json of the last stack."""

    def call(*paths, texture='texture = { families = [ "first-order", "shape" ]; };', segments=(), more="", flat=True, status=0, arguments=()):
        config = tmp_path / "noctule.conf"
        config.write_text(
            f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "flat"; flat = {str(flat).lower()}; results = [ "seg" ]; '
            f"segments = ( {', '.join(segments)} );\n{texture}\n{more} }} );\n")
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        done = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "flat", "--output", tmp_path / "out",
                               *arguments, *paths], text=True, capture_output=True, timeout=600)
        assert done.returncode == status, done.stdout + done.stderr
        records = sorted((tmp_path / "out").rglob("job.json"))
        return done, json.loads(records[-1].read_text()) if records else None

    return call


def features(tmp_path):
    """Returns {(family, name): feature} of the only segment of the last stack."""
    (path,) = (tmp_path / "out").rglob("features.json")
    return {(f["family"], f["name"]): f for f in json.loads(path.read_text()) if f["segment_number"] == 1}


def statistics_of(path):
    """Returns the number of voxels and the mean in a features.json."""
    found = {f["name"]: f["value"] for f in json.loads(path.read_text()) if f["segment_number"] == 1}
    return found["voxel_count"], found["mean"]


def row_of(run, tmp_path, path, segment, arguments=()):
    """Runs the group of parameters.yaml, as noctule profiles makes it. Returns the row of the cohort table."""
    profile = subprocess.run([BIN / "noctule", "profiles", "--pyradiomics", tmp_path / "parameters.yaml"], text=True,
                             capture_output=True)
    assert profile.returncode == 0, profile.stderr
    (tmp_path / "group.conf").write_text(profile.stdout)
    run(path, segments=[segment], texture='@include "group.conf"', arguments=["--cohort", *arguments])
    with open(tmp_path / "out" / "cohort.csv") as table:
        (row,) = csv.DictReader(table)
    return row


def execute(values, mask, spacing, tmp_path):
    """Returns the features of pyradiomics with parameters.yaml."""
    pair = [SimpleITK.GetImageFromArray(array[None]) for array in (values.astype(np.float64), mask.astype(np.uint8))]
    for each in pair:
        each.SetSpacing((*spacing, 1.0))
    return radiomics.featureextractor.RadiomicsFeatureExtractor(str(tmp_path / "parameters.yaml")).execute(*pair)


REAL = [("NM_025", 3, 200, 5, 0), ("US_004", 30, 200, 10, 0), ("US_008", 2000, 60000, 2500, 3), ("CR_021", 300, 600, 15, 0),
        ("US_002", 20, 120, 8, 0), ("RF_022", 200, 500, 12, 0)]


@needs_shared
@pytest.mark.parametrize("name, low, high, width, frame", REAL)
def test_texture_is_that_of_pyradiomics(run, tmp_path, name, low, high, width, frame):
    (path,) = (SINGLES / name).glob("*.dcm")
    (tmp_path / "parameters.yaml").write_text(PROFILE.format(width))
    volume = read(tmp_path, path)
    stack, values = volume.stacks[frame], volume.arrays[frame][0]
    in_mm = stack["spacing_source"] != "none"
    x0, y0, x1, y1 = stack["calibrated"]
    # without single pixels, which NGTDM of pyradiomics counts, unlike IBSI's
    labels, _ = scipy.ndimage.label((values >= low) & (values <= high), np.ones((3, 3)))
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    mask = (sizes >= 0.001 * sizes.max())[labels]
    chosen = ["--stack", stack["name"]] if len(volume.stacks) > 1 else []
    row = row_of(run, tmp_path, path, part(low, high, "then = ( { keep_at_least = 0.001; connectivity = 26; } );"), chosen)
    within = mask.sum() == mask[y0:y1 + 1, x0:x1 + 1].sum()
    count = 0
    for column, value in execute(values, mask, stack["spacing"][:2], tmp_path).items():
        feature = column.removeprefix("original_")
        if column.startswith("diagnostics") or feature in ("firstorder_Kurtosis", "firstorder_TotalEnergy"):
            continue
        if feature.startswith("shape2D") and not (in_mm and within):
            assert row[column] == "", column
            continue
        assert abs(float(row[column]) - float(value)) <= 1e-6 * max(abs(float(value)), 1e-6), (column, row[column], value)
        count += 1
    assert count > 80
    assert row["spacing_source"] == stack["spacing_source"]


def test_image_types_are_those_of_pyradiomics(run, tmp_path):
    values = (scipy.ndimage.gaussian_filter(np.random.default_rng(2).normal(size=(60, 70)), 2) * 3000 + 1000).astype(np.uint16)
    image(tmp_path / "a.dcm", values, DX, PixelSpacing=[0.5, 0.4])
    (tmp_path / "parameters.yaml").write_text(
        "setting: { binWidth: 20, force2D: true }\nimageType:\n  Square: {}\n  Logarithm: {}\n  Gradient: {}\n"
        "  LBP2D: { binWidth: 1 }\n  Wavelet: {}\nfeatureClass:\n  firstorder:\n  glcm:\n")
    row = row_of(run, tmp_path, tmp_path / "a.dcm", part(700, 1400))
    theirs = execute(values, (values >= 700) & (values <= 1400), (0.4, 0.5), tmp_path)
    theirs = {key: float(value) for key, value in theirs.items()
              if not key.startswith("diagnostics") and not key.endswith(("Kurtosis", "TotalEnergy"))}
    assert len(theirs) == 40 * 8
    assert {key: float(row[key]) for key in theirs} == {
        key: pytest.approx(value, rel=1e-6, abs=1e-12) for key, value in theirs.items()}


def disk(value=200, around=50, size=(90, 120), centre=(40, 60), radius=20, dtype=np.uint16):
    """Returns an image of a disk with noise, and the disk."""
    y, x = np.ogrid[:size[0], :size[1]]
    inside = (y - centre[0]) ** 2 + (x - centre[1]) ** 2 <= radius**2
    return (np.where(inside, value, around) + np.random.default_rng(1).integers(-5, 6, size)).astype(dtype), inside


def test_level_set_finds_a_disk(run, tmp_path):
    values, inside = disk()
    image(tmp_path / "a.dcm", values, PixelSpacing=[0.5, 0.5])
    segment = (f'{{ label = "Part"; method = "level-set"; range = [ 150.0, 250.0 ]; shapes = ( {{ center = {{ voxel = [ 60.0, 40.0, 0.0 ]; }}; '
               f"radius_mm = 4.0; }} ); {TYPE} }}")
    _, record = run(tmp_path / "a.dcm", segments=[segment])
    found = features(tmp_path)["first-order", "mean"]["value"]
    (part_,) = record["segments"]
    assert abs(part_["voxels"] - inside.sum()) <= 0.03 * inside.sum() and abs(found - values[inside].mean()) < 1
    assert part_["millilitres"] is None


def test_lengths_of_an_image_without_spacing_are_absent(run, tmp_path):
    values, inside = disk()
    image(tmp_path / "a.dcm", values)
    everything = 'texture = { families = [ "all", "shape-2d" ]; discretisation = "fixed-bin-number"; levels = 16; };'
    done, record = run(tmp_path / "a.dcm", segments=[part(150, 250)], texture=everything)
    found = features(tmp_path)
    assert found["shape", "voxel_count"]["value"] == inside.sum() and " pixels" in done.stdout
    reasons = {key: f["reason"] for key, f in found.items() if f["value"] is None}
    assert {reason for (family, _), reason in reasons.items() if family in ("shape", "morphology", "local-intensity")} == {"NO_DEPTH"}
    assert {reason for (family, _), reason in reasons.items() if family in ("shape-2d", "spatial-correlation")} == {"NO_SPACING"}
    assert {family for family, _ in reasons} == {"shape", "morphology", "local-intensity", "shape-2d", "spatial-correlation"}
    assert not [key for key, f in found.items() if f["value"] is not None and "mm" in f["unit"] + f["name"] or f["unit"] == "ml" and f["value"]]
    assert record["volume"]["spacing_mm"] == [None] * 3 and record["volume"]["source"]["spacing_mm"] == [None] * 2
    assert record["volume"]["source"]["flat"] == {"values": "stored values", "intensity": "", "spacing_source": "none",
                                                  "spacing_within": [0, 0, 119, 89]}


@pytest.mark.parametrize("outside", [False, True])
def test_lengths_are_those_of_the_calibrated_region(run, tmp_path, outside):
    values, inside = disk(dtype=np.uint8)
    corners = (30, 10, 90, 70) if not outside else (30, 10, 75, 70)
    image(tmp_path / "a.dcm", values, US, SequenceOfUltrasoundRegions=[region(*corners, delta=(0.02, 0.02))])
    run(tmp_path / "a.dcm", segments=[part(150, 250)],
        texture='texture = ( { families = [ "shape-2d" ]; first_order = false; }, { resample = { in_plane_mm = 0.3; }; } );')
    found = features(tmp_path)
    area = found["shape-2d", "pixel_surface"]
    if outside:
        assert {f["reason"] for f in found.values() if f["family"] == "shape-2d"} == {"NOT_CALIBRATED"}
        assert found["first-order", "mean"]["reason"] == "NOT_CALIBRATED"
    else:
        assert area["value"] == pytest.approx(inside.sum() * 0.04, rel=1e-9) and area["unit"] == "mm2"
        assert found["first-order", "mean"]["value"] == pytest.approx(200, abs=5)


UNSUITABLE = [
    (part(1, 2, "then = ( { grow_mm = 1.0; space = \"slice\"; } );"), "", "a pixel spacing in mm"),
    (part(1, 2, "then = ( { grow_mm = 1.0; } );"), "", "slices"),
    (part(1, 2, "then = ( { drop_below_ml = 1.0; } );"), "", "slices"),
    (part(1, 2, "then = ( { fill = \"volume\"; } );"), "", "slices"),
    (part(1, 2, "grid_mm = 2.0;"), "", "slices"),
    (part(1, 2, "smooth_mm = 2.0;"), "", "a pixel spacing in mm"),
    (part(1, 2, "expect = { volume_ml = [ 1.0, 2.0 ]; };"), "", "slices"),
    (part(1, 2, "shapes = ( { center = { mm = [ 0.0, 0.0, 0.0 ]; }; radius_voxels = 4.0; } );"), "", "a position in the patient"),
    (part(1, 2), "texture = { resample = { in_plane_mm = 0.3; }; };", "a pixel spacing in mm"),
    (part(1, 2), "texture = { resample = { isotropic_mm = 0.3; }; };", "slices"),
    (part(1, 2), 'texture = { filter = { kind = "log"; sigma_mm = 1.0; in_slice = true; }; };', "a pixel spacing in mm"),
    (part(1, 2), 'texture = { filter = { kind = "mean"; size = 3; }; };', "slices"),
    (part(1, 2), 'texture = { filter = { kind = "pyradiomics-log"; sigma_mm = 1.0; }; };', "slices"),
    (f'{{ label = "Part"; method = "object"; object = {{ kind = "rtstruct"; roi = "A"; }}; {TYPE} }}', "", "a position in the patient")]


@pytest.mark.parametrize("segment, texture, lacks", UNSUITABLE)
def test_options_of_volumes_are_refused_by_name(run, tmp_path, segment, texture, lacks):
    image(tmp_path / "a.dcm", disk()[0])
    done, _ = run(tmp_path / "a.dcm", segments=[segment], texture=texture, status=1)
    assert "FLAT_UNSUITABLE" in done.stderr and f"needs {lacks}" in done.stderr, done.stderr


def test_a_pipeline_of_volumes_skips_2d_images(run, tmp_path):
    image(tmp_path / "a.dcm", disk()[0])
    done, _ = run(tmp_path / "a.dcm", segments=[part(1, 2)], flat=False, status=3, more="min_slices = 1;")
    assert "skipped" in done.stderr and "FLAT_IMAGE" in done.stderr and "flat = true" in done.stderr, done.stderr


def test_the_channel_is_an_option(run, tmp_path):
    colours = random_colours(30, 40)
    image(tmp_path / "a.dcm", colours, SC, "RGB", NominalScannedPixelSpacing=[0.1, 0.1])
    for channel in CHANNELS:
        _, record = run(tmp_path / "a.dcm", segments=[part(100, 200)], more=f'colour = "{channel}";')
        expected = of_rgb(colours, channel)
        expected = expected[(expected >= 100) & (expected <= 200)]
        assert features(tmp_path)["first-order", "mean"]["value"] == pytest.approx(expected.mean(), rel=1e-12)
        assert record["volume"]["source"]["flat"]["values"] == f"{channel} of RGB"


def segmentation(path, source, masks):
    """Writes a SEG of a 2-D image, which may have several frames, by highdicom."""
    segment = highdicom.seg.SegmentDescription(1, "Lesion", codes.SCT.MorphologicallyAbnormalStructure, codes.SCT.Lesion,
                                               highdicom.seg.SegmentAlgorithmTypeValues.MANUAL)
    single = copy.deepcopy(source)
    if len(masks) > 1:  # highdicom writes one frame of images without a frame of reference
        del single.NumberOfFrames
        single.SOPClassUID = DX
        single.PixelData = source.PixelData[:masks[0].size]
    seg = highdicom.seg.Segmentation(
        [single], masks[:1].astype(np.uint8), highdicom.seg.SegmentationTypeValues.BINARY, [segment],
        generate_uid(ROOT, ["seg", str(path)]), 1, generate_uid(ROOT, ["seg of", str(path)]), 1, "M", "N", "1", "S")
    assert "PlanePositionSequence" not in seg.PerFrameFunctionalGroupsSequence[0]
    if len(masks) > 1:
        (first,) = seg.PerFrameFunctionalGroupsSequence
        seg.PerFrameFunctionalGroupsSequence = [copy.deepcopy(first) for _ in masks]
        for number, item in enumerate(seg.PerFrameFunctionalGroupsSequence, 1):
            item.DerivationImageSequence[0].SourceImageSequence[0].ReferencedFrameNumber = number
        seg.NumberOfFrames = len(masks)
        bits = np.packbits(masks.ravel(), bitorder="little").tobytes()
        seg.PixelData = bits + b"\0" * (len(bits) % 2)
    seg.save_as(path)


@pytest.mark.parametrize("frames", [None, 3])
def test_masks_of_a_segmentation(run, tmp_path, frames):
    """Of single images and of a multi-frame one: each frame takes its own mask."""
    (tmp_path / "images").mkdir()
    values, inside = disk(dtype=np.uint8)
    masks = np.stack([np.roll(inside, 7 * i, axis=1) for i in range(3)])
    stored = np.stack([values + i for i in range(3)]).astype(np.uint8)
    study = {"StudyID": "1", "SeriesNumber": 1, "AccessionNumber": "", "PatientBirthDate": "", "PatientSex": "", "StudyTime": "",
             "ReferringPhysicianName": "", "Manufacturer": "M", "PixelSpacing": [0.5, 0.5]}
    if frames:
        whole = image(tmp_path / "images" / "a.dcm", stored, "1.2.840.10008.5.1.4.1.1.7.2", **study)
        segmentation(tmp_path / "0.dcm", whole, masks)
    for i in range(0 if frames else 3):
        single = image(tmp_path / "images" / f"{i}.dcm", stored[i], DX, InstanceNumber=i + 1, **study)
        segmentation(tmp_path / f"{i}.dcm", single, masks[i:i + 1])
    segment = f'{{ label = "Part"; method = "object"; object = {{ kind = "seg"; roi = "Lesion"; }}; {TYPE} }}'
    found = []
    for i in range(3):
        run(tmp_path / "images", segments=[segment], arguments=[
            "--object", tmp_path / f"{0 if frames else i}.dcm", "--stack", f"image 1, frame {i + 1}" if frames else f"image {i + 1}"])
        (path,) = (tmp_path / "out").rglob("features.json")
        found.append(statistics_of(path))
    assert found == [(int(mask.sum()), pytest.approx(float(plane[mask].mean()), rel=1e-12)) for plane, mask in zip(stored, masks)]


# --- the service ---

SERVICE = """
root = "{root}";
inbox = ( {{ path = "inbox"; after = "keep"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 1.0; complete_seconds = 0.3; patience_seconds = 1.0; }};
compute = {{ lanes = 2; }};
min_free_mib = 1;
pipelines = ( {{ name = "flat"; flat = true; min_slices = 5; results = [ "seg" ]; segments = ( {segment} );
                 texture = {{ families = [ "first-order", "glcm" ]; discretisation = "fixed-bin-number"; levels = 16; }}; }},
              {{ name = "volumes"; min_slices = 1; results = [ "nifti" ]; segments = ( {segment} ); }} );
rules = ( {{ match = {{ modality = "DX"; }}; pipeline = "flat"; }}, {{ match = {{ modality = "US"; }}; pipeline = "flat"; }},
          {{ match = {{ modality = "CR"; }}; pipeline = "volumes"; }}, {{ match = {{ modality = "CT"; }}; pipeline = "flat"; }} );
"""


def test_the_service_receives_routes_and_measures(daemon, tmp_path):
    """C-STORE and an inbox, rules by modality, two images in a series, frames; a pipeline of volumes skips them."""
    d = daemon(settings=SERVICE.format(root=tmp_path / "daemon0" / "root", segment=part(100, 255)), dicom=PEERS).start()
    for name in ("dx", "us", "cr"):
        (tmp_path / name).mkdir()
    values = {f"image {i}": disk(value=120 + 40 * i, centre=(40, 30 + 20 * i))[0] for i in (1, 2)}
    for i, (name, stored) in enumerate(values.items(), 1):
        image(tmp_path / "dx" / f"{i}.dcm", stored, DX, InstanceNumber=i, ImagerPixelSpacing=[0.3, 0.3],
              PixelIntensityRelationship="LIN", PixelIntensityRelationshipSign=1)
    colours = random_colours(40, 30, frames=2)
    image(tmp_path / "us" / "a.dcm", colours, "1.2.840.10008.5.1.4.1.1.3.1", "RGB", InstanceNumber=7)
    image(tmp_path / "cr" / "a.dcm", disk()[0], CR)
    storescu(d.port, *sorted((tmp_path / "dx").iterdir()), *sorted((tmp_path / "us").iterdir()))
    shutil.copy(tmp_path / "cr" / "a.dcm", d.inbox / "a.dcm")
    jobs = {job["job"]: job for job in d.wait_jobs(4)}
    assert {job["state"] for job in jobs.values()} == {"DONE"}, [dict(job) for job in jobs.values()]
    expected = values | {f"image 7, frame {i}": of_rgb(colours[i - 1]) for i in (1, 2)}
    found = {row["stack"]: (row["value"], row["pixel_values"], row["pixel_intensity"], row["spacing_source"], row["spacing_x_mm"])
             for row in d.query("SELECT * FROM v_features WHERE name = 'mean' AND segment = 1")}
    grey, colour = ("stored values", "LIN 1", "imager", 0.3), ("luma of RGB", "", "none", None)
    assert found == {name: (pytest.approx(plane[(plane >= 100) & (plane <= 255)].mean(), rel=1e-12), *(colour if "frame" in name else grey))
                     for name, plane in expected.items()}
    assert {row["volume_ml"] for row in d.query("SELECT volume_ml FROM v_segments")} == {None}
    wait_for(lambda: [row["code"] for row in d.query("SELECT code FROM v_series WHERE modality = 'CR'")] == ["FLAT_IMAGE"], 60)
    assert "FLAT_IMAGE" in d.ctl("explain", d.query("SELECT series_uid FROM v_series WHERE modality = 'CR'")[0]["series_uid"]).stdout
    assert len(d.jobs()) == 4

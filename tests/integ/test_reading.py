"""Pixel reading compared with pydicom: every encoding, bit depth and signedness, slice order, and real series.

DCMTK's tools, pylibjpeg and pyjpegls make the encodings. dump_volume reads them in the same way as a job."""

import itertools
import json
import random
import shutil
import subprocess

import numpy as np
import pydicom
import pydicom.uid
import pytest
from pydicom.dataset import Dataset, FileMetaDataset

from conftest import BIN, SHARED, needs_shared

ROWS, COLUMNS = 37, 51  # odd, so that frames of 8 bits are of odd length


class Volume:
    """The output of dump_volume for some files, with the arrays of its stacks."""

    def __init__(self, folder, files, threads=2, options=()):
        raw = folder / "volume.raw"
        run = subprocess.run(
            [BIN / "dump_volume", "--threads", str(threads), *options, raw, *files],
            check=True, capture_output=True, text=True,
        )
        assert run.stderr == "", "leaves are silent"
        self.report = json.loads(run.stdout)
        self.refused = self.report["refused"]
        self.stacks = self.report.get("stacks", [])
        self.arrays = []
        with open(raw, "rb") as file:
            for stack in self.stacks:
                shape = (len(stack["planes"]), stack["rows"], stack["columns"])
                type_ = np.dtype(stack["pixel"]).newbyteorder("<")
                data = file.read(int(np.prod(shape)) * type_.itemsize)
                self.arrays.append(np.frombuffer(data, type_).reshape(shape) if data else None)
        raw.unlink()

    @property
    def only(self):
        assert self.refused == [] and len(self.stacks) == 1, self.report
        for fault in self.report["decoding"]:
            assert fault["code"] == "", fault
        return self.arrays[0]


def pixels(stored, signed, seed=0, rows=ROWS, columns=COLUMNS):
    """Returns a picture with both ends of the range, smooth enough for lossy codecs."""
    y, x = np.mgrid[0:rows, 0:columns]
    wave = (np.sin(x / 7 + seed) + np.cos(y / 5 - seed)) / 4 + 0.5
    noise = np.random.default_rng(seed).integers(-3, 4, (rows, columns))
    values = np.clip(np.rint(wave * (2**stored - 1)) + noise, 0, 2**stored - 1).astype(np.int64)
    values[0, 0], values[0, 1] = 0, 2**stored - 1
    return values - 2 ** (stored - 1) if signed else values


def data_set(array, allocated, stored, signed, number=1, high_bit=None):
    """Returns a CT slice at 3 mm * number with these values. `array` may hold several frames."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = f"1.2.3.4.{number}"
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    ds = Dataset()
    ds.file_meta = meta
    ds.SOPClassUID, ds.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.FrameOfReferenceUID = "1.2.5", "1.2.6", "1.2.7"
    ds.PatientName, ds.PatientID, ds.Modality, ds.ImageType = "Doe^Jane", "42", "CT", ["ORIGINAL", "PRIMARY"]
    ds.InstanceNumber = number
    ds.ImagePositionPatient, ds.ImageOrientationPatient = [0, 0, 3 * number], [1, 0, 0, 0, 1, 0]
    ds.PixelSpacing, ds.SliceThickness = [0.5, 0.75], 3
    ds.RescaleSlope, ds.RescaleIntercept = 1, -1024
    ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
    ds.Rows, ds.Columns = array.shape[-2:]
    if array.ndim == 3:
        ds.NumberOfFrames = array.shape[0]
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = allocated, stored, stored - 1 if high_bit is None else high_bit
    ds.PixelRepresentation = int(signed)
    data = array.astype(f"<{'i' if signed else 'u'}{allocated // 8}").tobytes()
    ds.PixelData = data + b"\0" * (len(data) % 2)
    ds["PixelData"].VR = "OB" if allocated == 8 else "OW"
    return ds


def save(ds, path):
    ds.save_as(path, enforce_file_format=True)
    return path


def tool(*arguments):
    subprocess.run([str(a) for a in arguments], check=True, capture_output=True)


DEPTHS = [(8, 8), (16, 8), (16, 10), (16, 12), (16, 15), (16, 16)]


@pytest.mark.parametrize("allocated,stored", DEPTHS)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("syntax", ["+ti", "+te", "+tb", "+td"])
def test_native(tmp_path, allocated, stored, signed, syntax):
    values = np.stack([pixels(stored, signed, seed) for seed in range(3)])
    plain = save(data_set(values, allocated, stored, signed), tmp_path / "plain.dcm")
    tool("dcmconv", syntax, plain, tmp_path / "a.dcm")
    np.testing.assert_array_equal(Volume(tmp_path, [tmp_path / "a.dcm"]).only, values)


LOSSLESS_TOOLS = {
    "rle": ["dcmcrle"],
    "jpeg-lossless-sv1": ["dcmcjpeg", "+e1"],
    **{f"jpeg-lossless-{sv}": ["dcmcjpeg", "+el", "+sv", str(sv)] for sv in range(1, 8)},
    "jpeg-ls": ["dcmcjpls", "+el"],
    "jpeg-ls-split": ["dcmcjpls", "+el", "+fs", "1"],
    "jpeg-split": ["dcmcjpeg", "+e1", "+fs", "1"],
    "jpeg-table": ["dcmcjpeg", "+e1", "+ot"],
}


@pytest.mark.parametrize("allocated,stored", DEPTHS)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("codec", LOSSLESS_TOOLS)
def test_lossless_by_dcmtk(tmp_path, allocated, stored, signed, codec):
    values = np.stack([pixels(stored, signed, seed) for seed in range(3)])
    plain = save(data_set(values, allocated, stored, signed), tmp_path / "plain.dcm")
    tool(*LOSSLESS_TOOLS[codec], plain, tmp_path / "a.dcm")
    assert pydicom.dcmread(tmp_path / "a.dcm").file_meta.TransferSyntaxUID.is_compressed
    np.testing.assert_array_equal(Volume(tmp_path, [tmp_path / "a.dcm"]).only, values)


# pydicom 3.0.2 packs 8 bits stored in 16 as bytes for RLE, which it cannot read either.
PYDICOM_CASES = [
    (syntax, *depth)
    for syntax in ("JPEG2000Lossless", "JPEGLSLossless", "RLELossless")
    for depth in DEPTHS
    if (syntax, *depth) != ("RLELossless", 16, 8)
]


@pytest.mark.parametrize("syntax,allocated,stored", PYDICOM_CASES)
@pytest.mark.parametrize("signed", [False, True])
def test_lossless_by_pydicom(tmp_path, allocated, stored, signed, syntax):
    values = np.stack([pixels(stored, signed, seed) for seed in range(3)])
    ds = data_set(values, allocated, stored, signed)
    ds.compress(getattr(pydicom.uid, syntax), generate_instance_uid=False)
    read = Volume(tmp_path, [save(ds, tmp_path / "a.dcm")]).only
    np.testing.assert_array_equal(read, pydicom.dcmread(tmp_path / "a.dcm").pixel_array)
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize(
    "command,allocated,stored,tolerance",
    [
        (["dcmcjpeg", "+eb", "+q", "90"], 8, 8, 1),
        (["dcmcjpeg", "+ee", "+q", "90"], 16, 12, 1),
        (["dcmcjpls", "+en", "+md", "3"], 16, 12, 0),
    ],
)
def test_lossy_by_dcmtk(tmp_path, command, allocated, stored, tolerance):
    values = np.stack([pixels(stored, False, seed) for seed in range(2)])
    plain = save(data_set(values, allocated, stored, False), tmp_path / "plain.dcm")
    tool(*command, plain, tmp_path / "a.dcm")
    read = Volume(tmp_path, [tmp_path / "a.dcm"]).only.astype(int)
    other = pydicom.dcmread(tmp_path / "a.dcm").pixel_array.astype(int)
    assert np.abs(read - other).max() <= tolerance
    assert np.abs(read - values).max() < 2**stored / 10


@pytest.mark.parametrize("signed", [False, True])
def test_lossy_jpeg_2000(tmp_path, signed):
    values = pixels(12, signed)
    ds = data_set(values, 16, 12, signed)
    ds.compress(pydicom.uid.JPEG2000, j2k_cr=[10], generate_instance_uid=False)
    read = Volume(tmp_path, [save(ds, tmp_path / "a.dcm")]).only[0].astype(int)
    np.testing.assert_array_equal(read, pydicom.dcmread(tmp_path / "a.dcm").pixel_array)


def test_slices_in_any_order_with_wrong_numbers(tmp_path):
    values = [pixels(12, False, seed, 16, 24) for seed in range(9)]
    files = []
    for z, array in enumerate(values):
        ds = data_set(array, 16, 12, False, number=z + 1)
        ds.InstanceNumber = (z * 5) % 9
        files.append(save(ds, tmp_path / f"{(z * 7) % 9}.dcm"))
    volumes = []
    for seed in range(5):
        random.Random(seed).shuffle(files)
        volume = Volume(tmp_path, files)
        assert volume.stacks[0]["accepted"], volume.report
        assert volume.stacks[0]["spacing"] == [0.75, 0.5, 3]
        np.testing.assert_array_equal(volume.only, np.stack(values))


def test_encodings_mixed_in_one_series(tmp_path):
    values = [pixels(12, True, seed) for seed in range(6)]
    commands = [["dcmcrle"], ["dcmcjpeg", "+e1"], ["dcmcjpls"], ["dcmconv", "+tb"], ["dcmconv", "+ti"], ["dcmconv", "+td"]]
    files = []
    for z, (array, command) in enumerate(zip(values, commands)):
        plain = save(data_set(array, 16, 12, True, number=z + 1), tmp_path / "plain")
        tool(*command, plain, tmp_path / f"{z}.dcm")
        files.append(tmp_path / f"{z}.dcm")
    np.testing.assert_array_equal(Volume(tmp_path, files, threads=4).only, np.stack(values))


def enhanced_mr(values, positions, echoes):
    """An Enhanced MR instance: orientation and measures shared, position and echo per frame."""
    ds = data_set(values, 16, 12, False)
    ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID = pydicom.uid.EnhancedMRImageStorage
    ds.Modality = "MR"
    shared = Dataset()
    shared.PlaneOrientationSequence = [Dataset()]
    shared.PlaneOrientationSequence[0].ImageOrientationPatient = ds.ImageOrientationPatient
    shared.PixelMeasuresSequence = [Dataset()]
    shared.PixelMeasuresSequence[0].PixelSpacing = ds.PixelSpacing
    for keyword in ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing", "RescaleSlope",
                    "RescaleIntercept", "SliceThickness"):
        delattr(ds, keyword)
    ds.SharedFunctionalGroupsSequence = [shared]
    frames = []
    for z, echo in zip(positions, echoes):
        frame = Dataset()
        frame.PlanePositionSequence = [Dataset()]
        frame.PlanePositionSequence[0].ImagePositionPatient = [0, 0, z]
        frame.MREchoSequence = [Dataset()]
        frame.MREchoSequence[0].EffectiveEchoTime = echo
        frames.append(frame)
    ds.PerFrameFunctionalGroupsSequence = frames
    return ds


@pytest.mark.parametrize("command", [["dcmconv", "+te"], ["dcmconv", "+ti"], ["dcmconv", "+tb"], ["dcmcjpls"]])
def test_enhanced_with_two_echoes(tmp_path, command):
    places = list(itertools.product(range(5), (10.0, 80.0)))
    random.Random(1).shuffle(places)
    values = np.stack([pixels(12, False, seed, 16, 24) for seed in range(10)])
    ds = enhanced_mr(values, [2.0 * z for z, _ in places], [echo for _, echo in places])
    tool(*command, save(ds, tmp_path / "plain.dcm"), tmp_path / "a.dcm")
    volume = Volume(tmp_path, [tmp_path / "a.dcm"])
    assert [s["name"] for s in volume.stacks] == ["echo 10 ms", "echo 80 ms"]
    for stack, array, echo in zip(volume.stacks, volume.arrays, (10.0, 80.0)):
        assert stack["accepted"] and stack["spacing"] == [0.75, 0.5, 2]
        for z in range(5):
            np.testing.assert_array_equal(array[z], values[places.index((z, echo))])


@needs_shared
def test_the_five_transfer_syntaxes_give_one_volume(tmp_path):
    files = sorted((SHARED / "transfer-syntaxes").glob("*.dcm"))
    assert len(files) == 5
    expected = pydicom.dcmread(SHARED / "transfer-syntaxes" / "emri_small.dcm").pixel_array
    for file in files:
        volume = Volume(tmp_path, [file])
        assert volume.stacks[0]["fault"]["code"] == "NO_GEOMETRY"
        np.testing.assert_array_equal(volume.only, expected)


@needs_shared
@pytest.mark.parametrize("name", ["ct-head-5mm", "mr-brain-t1"])
def test_real_series_are_accepted(tmp_path, name):
    files = sorted((SHARED / name).glob("*.dcm"))
    sets = [pydicom.dcmread(file) for file in files]
    orientation = np.array(sets[0].ImageOrientationPatient, float)
    normal = np.cross(orientation[:3], orientation[3:])
    sets.sort(key=lambda ds: float(normal @ np.array(ds.ImagePositionPatient, float)))
    random.Random(2).shuffle(files)
    volume = Volume(tmp_path, files)
    stack = volume.stacks[0]
    assert stack["accepted"], stack["fault"]
    np.testing.assert_allclose(stack["origin"], np.array(sets[0].ImagePositionPatient, float), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(volume.only, np.stack([ds.pixel_array for ds in sets]))


@needs_shared
def test_the_tilted_series_is_refused_by_name(tmp_path):
    files = sorted((SHARED / "ct-head-tilted").glob("*.dcm"))
    fault = Volume(tmp_path, files).stacks[0]["fault"]
    assert fault["code"] == "GANTRY_TILT"
    assert "18.5 degrees" in fault["message"], "what Gantry/Detector Tilt says"
    assert "Also SPACING_NOT_UNIFORM" in fault["message"]
    assert all(file.startswith(str(SHARED)) for file in fault["files"])


@needs_shared
def test_no_reason_is_cut(tmp_path):
    """Files that arrived by C-STORE have long names. A second reason that has no room is its code alone."""
    files = sorted((SHARED / "sarcoma" / "STS_002" / "CT" / "image").glob("*.dcm"))
    del files[19]
    short = Volume(tmp_path, files).stacks[0]["fault"]
    assert short["code"] == "MISSING_SLICE" and "Also INCOMPLETE_SERIES: " in short["message"] and short["message"][-1] == "."
    (tmp_path / "long").mkdir()
    named = [shutil.copy(file, tmp_path / "long" / f"{pydicom.dcmread(file).SOPInstanceUID}.dcm") for file in files]
    long = Volume(tmp_path, named).stacks[0]["fault"]
    assert long["code"] == "MISSING_SLICE" and long["message"].endswith(" Also INCOMPLETE_SERIES.")

"""Mosaics: several slices as tiles of one plane. The source volume of each mosaic and dcm2niix give the expected
result."""

import json
import re
import struct
import subprocess

import numpy as np
import pydicom
import pydicom.uid
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence

from conftest import BIN, SHARED, needs_shared, run_program

COUNT, ROWS, COLUMNS = 7, 20, 24
SPACING = (2.5, 2.0, 3.3)  # between rows, columns and slices
ORIGIN = np.array([-31.5, -22.25, 12.125])  # of the first pixel of the first slice


def volume(seed=0):
    values = np.random.default_rng(seed).integers(0, 60, (COUNT, ROWS, COLUMNS))
    values[1:-1, 5:15, 6:18] += 1000
    return values.astype("<u2")


def csa_header(**attributes):
    """Returns a CSA header of version 2 with the values of each attribute as text."""
    parts = [b"SV10\4\3\2\1", struct.pack("<2I", len(attributes), 77)]
    for name, values in attributes.items():
        parts.append(struct.pack("<64si4siIi", name.encode(), len(values), b"FD", 4, len(values), 77))
        for value in values:
            text = str(value).encode() + b"\0"
            parts.append(struct.pack("<4I", len(text), len(text), 77, len(text)) + text + b"\0" * (-len(text) % 4))
    return b"".join(parts)


def protocol(first, last, count=COUNT, normals=((0, 0, 1), (0, 0, 1))):
    lines = ["### ASCCONV BEGIN ###", f"sSliceArray.lSize                        = {count}", "sKSpace.ucDimension = 0x2"]
    for number, place, normal in ((0, first, normals[0]), (count - 1, last, normals[1])):
        for axis, at, along in zip(("Sag", "Cor", "Tra"), place, normal):
            lines.append(f"sSliceArray.asSlice[{number}].sPosition.d{axis}\t = \t{at!r}" if at else "")
            lines.append(f"sSliceArray.asSlice[{number}].sNormal.d{axis}\t = \t{along!r}" if along else "")
    return "\n".join([*lines, "### ASCCONV END ###"]).encode()


class Mosaic:
    """One volume in the orientation of row and column. `sign` is the direction of the slice order along the normal."""

    def __init__(self, row=(1, 0, 0), column=(0, 1, 0), sign=1, seed=0):
        self.row, self.column = np.array(row, float), np.array(column, float)
        self.normal = sign * np.cross(self.row, self.column)
        self.values = volume(seed)
        self.columns = self.rows = int(np.ceil(np.sqrt(COUNT)))
        self.centre = ORIGIN + COLUMNS / 2 * SPACING[1] * self.row + ROWS / 2 * SPACING[0] * self.column

    def position(self, slice_):
        return ORIGIN + slice_ * SPACING[2] * self.normal

    def plane(self):
        plane = np.zeros((self.rows, ROWS, self.columns, COLUMNS), "<u2")
        for i, tile in enumerate(self.values):
            plane[i // self.columns, :, i % self.columns] = tile
        return plane.reshape(self.rows * ROWS, self.columns * COLUMNS)

    def data_set(self, pixels, at, number):
        ds = Dataset()
        ds.file_meta = FileMetaDataset()
        ds.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID = pydicom.uid.MRImageStorage
        ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID = f"1.2.3.4.{number}"
        ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.FrameOfReferenceUID = "1.2.5", "1.2.6", "1.2.7"
        ds.StudyDate, ds.StudyTime, ds.AccessionNumber, ds.StudyID, ds.ReferringPhysicianName = "20200102", "101112", "", "", ""
        ds.PatientName, ds.PatientID, ds.PatientBirthDate, ds.PatientSex, ds.Modality = "Doe^Jane", "42", "", "", "MR"
        ds.ImageType = ["ORIGINAL", "PRIMARY", "M", "ND"]
        ds.Manufacturer, ds.SeriesNumber, ds.InstanceNumber, ds.AcquisitionNumber = "SIEMENS", 3, number, number
        ds.AcquisitionDate, ds.AcquisitionTime = "20200102", f"1011{number % 60:02d}.500000"
        ds.ImagePositionPatient = [f"{x:.10g}" for x in at]
        ds.ImageOrientationPatient = [f"{x:.10g}" for x in (*self.row, *self.column)]
        ds.PixelSpacing, ds.SliceThickness, ds.SpacingBetweenSlices = list(SPACING[:2]), 3, SPACING[2]
        ds.ScanningSequence, ds.SequenceVariant, ds.ScanOptions, ds.MRAcquisitionType = "EP", "NONE", "", "2D"
        ds.EchoTime, ds.RepetitionTime, ds.EchoTrainLength = 30, 2000, 1
        ds.SamplesPerPixel, ds.PhotometricInterpretation = 1, "MONOCHROME2"
        ds.Rows, ds.Columns = pixels.shape
        ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 12, 11, 0
        ds.PixelData = pixels.tobytes()
        return ds

    def siemens(self, number=1, **changes):
        """The Siemens form: Image Position is that of a plane of the mosaic's size around the centre of the first
        slice."""
        shift = ((self.columns - 1) * COLUMNS / 2 * SPACING[1] * self.row
                 + (self.rows - 1) * ROWS / 2 * SPACING[0] * self.column)
        ds = self.data_set(self.plane(), ORIGIN - shift, number)
        ds.ImageType = [*ds.ImageType, "MOSAIC"]
        block = ds.private_block(0x0019, "SIEMENS MR HEADER", create=True)
        block.add_new(0x0A, "US", COUNT)
        csa = {"NumberOfImagesInMosaic": [COUNT], "SliceNormalVector": [f"{x:.8f}" for x in self.normal],
               "MosaicRefAcqTimes": [100 * ((i * 2) % COUNT) for i in range(COUNT)], **changes.pop("csa", {})}
        block = ds.private_block(0x0029, "SIEMENS CSA HEADER", create=True)
        block.add_new(0x10, "OB", csa_header(**csa))
        if "protocol" in changes:
            block.add_new(0x20, "OB", changes.pop("protocol"))
        for keyword, value in changes.items():
            if value is None:
                delattr(ds, keyword)
            else:
                setattr(ds, keyword, value)
        return ds

    def uih(self, number=1):
        self.rows = -(-COUNT // self.columns)
        ds = self.data_set(self.plane(), ORIGIN, number)
        ds.Manufacturer, ds.ImageType = "UIH", [*ds.ImageType, "VFRAME"]
        block = ds.private_block(0x0065, "Image Private Header", create=True)
        block.add_new(0x50, "DS", str(COUNT))
        items = []
        for i in range(COUNT):
            items.append(Dataset())
            items[-1].AcquisitionTime = "101112"
            items[-1].ImagePositionPatient = [f"{x:.10g}" for x in self.position(i)]
        block.add_new(0x51, "SQ", Sequence(items))
        return ds

    def slices(self):
        return [self.data_set(self.values[i], self.position(i), i + 1) for i in range(COUNT)]


def save(folder, *sets):
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{i}.dcm" for i in range(len(sets))]
    for path, ds in zip(paths, sets):
        ds.save_as(path, enforce_file_format=True)
    return paths


def read(folder, *paths):
    """Returns the stacks of dump_volume with their voxels."""
    raw = folder / "volume.raw"
    report = json.loads(run_program("dump_volume", raw, *paths).stdout)
    assert report["refused"] == []
    data = raw.read_bytes()
    for stack in report["stacks"]:
        shape = (len(stack["planes"]), stack["rows"], stack["columns"])
        size = int(np.prod(shape)) * 2
        stack["voxels"], data = np.frombuffer(data[:size], "<u2").reshape(shape), data[size:]
    assert data == b""
    return report["stacks"]


def place(stack, voxel):
    """Returns the point in mm of a voxel (x, y, z)."""
    axes = np.array(stack["axes"]).reshape(3, 3)
    return np.array(stack["origin"]) + sum(axes[i] * stack["spacing"][i] * voxel[i] for i in range(3))


def assert_is(stack, mosaic):
    assert stack["accepted"], stack["fault"]
    frames = [plane["frame"] for plane in stack["planes"]]
    assert sorted(frames) == list(range(COUNT))
    for z, tile in enumerate(frames):
        assert (stack["voxels"][z] == mosaic.values[tile]).all()
        assert np.allclose(place(stack, (0, 0, z)), mosaic.position(tile), atol=1e-4)
        corner = (mosaic.position(tile) + (COLUMNS - 1) * SPACING[1] * mosaic.row + (ROWS - 1) * SPACING[0] * mosaic.column)
        assert np.allclose(place(stack, (COLUMNS - 1, ROWS - 1, z)), corner, atol=1e-4)


def assert_equals_dcm2niix(stacks, folder, scratch):
    """Checks that each voxel of each stack equals dcm2niix's at the same place, and that both have the same voxels."""
    scratch.mkdir()
    done = subprocess.run(["dcm2niix", "-b", "n", "-z", "n", "-f", "%j_%r", "-o", scratch, folder], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout
    (path,) = scratch.glob("*.nii")
    data = path.read_bytes()
    dims = struct.unpack("<8h", data[40:56])
    offset = int(struct.unpack("<f", data[108:112])[0])
    matrix = np.vstack([np.frombuffer(data[280:328], "<f4").reshape(3, 4), [0, 0, 0, 1]]).astype(float)
    count = dims[4] if dims[0] > 3 else 1
    assert len(stacks) == count and struct.unpack("<h", data[70:72])[0] in (4, 512)
    theirs = np.frombuffer(data[offset:], "<u2").reshape(count, dims[3], dims[2], dims[1])
    for stack, voxels in zip(stacks, theirs):
        assert stack["voxels"].size == voxels.size
        index = np.stack(np.meshgrid(*map(np.arange, stack["voxels"].shape), indexing="ij"))[::-1].reshape(3, -1)
        axes = np.array(stack["axes"]).reshape(3, 3).T * stack["spacing"]
        points = axes @ index + np.array(stack["origin"])[:, None]
        points[:2] *= -1  # to RAS
        at = np.linalg.solve(matrix, np.vstack([points, np.ones(points.shape[1])]))[:3]
        nearest = np.rint(at).astype(int)
        assert np.abs(at - nearest).max() < 2e-3
        assert (voxels[nearest[2], nearest[1], nearest[0]] == stack["voxels"].reshape(-1)).all()


@needs_shared
def test_a_real_mosaic_equals_dcm2niix(tmp_path):
    folder = SHARED / "mr-mosaic"
    stacks = read(tmp_path, *sorted(folder.glob("*.dcm")))
    assert [len(stack["planes"]) for stack in stacks] == [35, 35]
    assert_equals_dcm2niix(stacks, folder, tmp_path / "nii")


@needs_shared
def test_a_real_mosaic_without_group_0019(tmp_path):
    """The CSA header, which anonymizers often keep, has all required values."""
    sets = [pydicom.dcmread(path) for path in sorted((SHARED / "mr-mosaic").glob("*.dcm"))]
    for ds in sets:
        ds.ImageType = ["ORIGINAL", "PRIMARY", "M", "ND"]
        for element in [element.tag for element in ds if element.tag.group == 0x19]:
            del ds[element]
    stacks = read(tmp_path, *save(tmp_path / "in", *sets))
    assert [len(stack["planes"]) for stack in stacks] == [35, 35]
    assert_equals_dcm2niix(stacks, SHARED / "mr-mosaic", tmp_path / "nii")


C, S = np.cos(0.3), np.sin(0.3)
ORIENTATIONS = {
    "axial": ((1, 0, 0), (0, 1, 0), 1), "axial, downwards": ((1, 0, 0), (0, 1, 0), -1),
    "sagittal": ((0, 1, 0), (0, 0, -1), 1), "sagittal, to the left": ((0, 1, 0), (0, 0, -1), -1),
    "coronal": ((1, 0, 0), (0, 0, -1), 1), "coronal, backwards": ((1, 0, 0), (0, 0, -1), -1),
    "oblique": ((C, S, 0), (-S * C, C * C, -S), 1), "oblique, backwards": ((C, S, 0), (-S * C, C * C, -S), -1),
}


@pytest.mark.parametrize("name", ORIENTATIONS)
def test_tiles_are_the_slices_of_a_volume(tmp_path, name):
    mosaic = Mosaic(*ORIENTATIONS[name])
    paths = save(tmp_path / "in", mosaic.siemens())
    (stack,) = read(tmp_path, *paths)
    assert_is(stack, mosaic)
    assert_equals_dcm2niix([stack], tmp_path / "in", tmp_path / "nii")


@pytest.mark.parametrize("missing", [(), ("AcquisitionNumber",), ("AcquisitionNumber", "AcquisitionTime", "InstanceNumber")])
def test_each_mosaic_is_a_volume(tmp_path, missing):
    mosaics = [Mosaic(seed=seed) for seed in range(4)]
    sets = [mosaic.siemens(number + 2, **dict.fromkeys(missing)) for number, mosaic in enumerate(mosaics)]
    stacks = read(tmp_path, *save(tmp_path / "in", *sets))
    if len(missing) < 3:
        assert len(stacks) == 4
        for stack, mosaic in zip(stacks, mosaics):
            assert_is(stack, mosaic)
    else:  # without an order of slices
        assert [(stack["accepted"], stack["fault"]["code"]) for stack in stacks] == [(False, "DUPLICATE_POSITION")]


def test_each_slice_has_its_acquisition_time(tmp_path):
    (stack,) = read(tmp_path, *save(tmp_path / "in", Mosaic().siemens(59)))
    offsets = [0, 200, 400, 600, 100, 300, 500]  # ms
    assert [plane["acquired"] for plane in stack["planes"]] == [
        f"20200102{'101159' if 500 + ms < 1000 else '101200'}.{(500 + ms) % 1000:03d}000" for ms in offsets]


def test_compressed_and_united_imaging(tmp_path):
    mosaic = Mosaic()
    (plain,) = save(tmp_path / "in", mosaic.siemens())
    for command in ("dcmcrle", "dcmcjpls"):
        packed = tmp_path / command
        subprocess.run([command, "+un" if command == "dcmcrle" else "+un", plain, packed], check=True)
        (stack,) = read(tmp_path, packed)
        assert_is(stack, mosaic)
    mosaic = Mosaic(*ORIENTATIONS["oblique"])
    (stack,) = read(tmp_path, *save(tmp_path / "uih", mosaic.uih()))
    assert_is(stack, mosaic)
    assert_equals_dcm2niix([stack], tmp_path / "uih", tmp_path / "nii")


def last_centre(mosaic):
    return mosaic.centre + (COUNT - 1) * SPACING[2] * mosaic.normal


def test_the_protocol_has_the_same_slices(tmp_path):
    """In both slice orders, and with the protocol's spacing if the header lacks it."""
    mosaic = Mosaic()
    first, last = tuple(mosaic.centre.tolist()), tuple(last_centre(mosaic).tolist())
    for number, (text, changes) in enumerate([(protocol(first, last), {}), (protocol(last, first), {}),
                                              (protocol(first, last), {"SpacingBetweenSlices": None}),
                                              (protocol((900, 0, 0), (900, 0, 1)), {})]):  # the table moved
        (stack,) = read(tmp_path, *save(tmp_path / str(number), mosaic.siemens(protocol=text, **changes)))
        assert_is(stack, mosaic)


def contradictions():
    mosaic = Mosaic()
    first, last = tuple(mosaic.centre.tolist()), tuple(last_centre(mosaic).tolist())
    other_way = tuple((2 * mosaic.centre - last_centre(mosaic)).tolist())
    near = tuple((mosaic.centre + 0.8 * (last_centre(mosaic) - mosaic.centre)).tolist())
    return {
        "no normal": {"csa": {"SliceNormalVector": []}},
        "a normal of another orientation": {"csa": {"SliceNormalVector": ["1.0", "0.0", "0.0"]}},
        "no spacing": {"SpacingBetweenSlices": None},
        "a position that is no number": {"ImagePositionPatient": None},
        "slices in the other direction": {"protocol": protocol(first, other_way)},
        "slices closer together": {"protocol": protocol(first, near)},
        "slices that are not parallel": {"protocol": protocol(first, last, normals=((0, 0, 1), (0, 0.1, 0.995)))},
        "tiles that do not fit": {"Columns": 71},
    }


@pytest.mark.parametrize("name", contradictions())
def test_a_mosaic_without_consistent_positions_is_not_split(tmp_path, name):
    (stack,) = read(tmp_path, *save(tmp_path / "in", Mosaic().siemens(**contradictions()[name])))
    assert (stack["accepted"], stack["fault"]["code"]) == (False, "MOSAIC")
    assert "its header lacks the positions of the slices, or contradicts itself" in stack["fault"]["message"]


CONFIG = """
root = "{root}";
pipelines = ( {{ name = "bright"; segments = ( {{ label = "Bright"; method = "range"; range = [ 900.0, 5000.0 ];
    type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); texture = {{ regions = [ "segments" ]; first_order = true; }};
    results = [ "seg", "sr" ]; }} );
"""


def frames_of(seg):
    return [(tuple(map(float, frame.PlanePositionSequence[0].ImagePositionPatient)), seg.pixel_array[i])
            for i, frame in enumerate(seg.PerFrameFunctionalGroupsSequence)]


def content(item):
    for child in item.get("ContentSequence", ()):
        yield child
        yield from content(child)


def test_results_equal_those_of_single_slices(tmp_path):
    """The SEG has the grid of the tiles. It refers to the mosaic as a source image with another pixel grid."""
    mosaic = Mosaic(*ORIENTATIONS["oblique, backwards"])
    (tmp_path / "noctule.conf").write_text(CONFIG.format(root=tmp_path / "root"))
    segs = {}
    for name, sets in (("slices", mosaic.slices()), ("mosaic", [mosaic.siemens()])):
        paths = save(tmp_path / name, *sets)
        run_program("noctule", "--config", tmp_path / "noctule.conf", "run", "--pipeline", "bright", "--output",
                    tmp_path / f"{name}-out", *paths)
        (path,) = (tmp_path / f"{name}-out").rglob("seg.dcm")
        segs[name] = pydicom.dcmread(path)
        done = subprocess.run(["dciodvfy", "-new", path], capture_output=True, text=True)
        assert not re.search("^Error", done.stderr, re.M), done.stderr
    seg = segs["mosaic"]
    assert (seg.Rows, seg.Columns) == (ROWS, COLUMNS)
    ours, theirs = frames_of(seg), frames_of(segs["slices"])
    assert len(ours) == len(theirs) == 5
    for (at, pixels), (there, expected) in zip(ours, theirs):
        assert np.allclose(at, there, atol=1e-4) and (pixels == expected).all()
    (reference,) = seg.ReferencedSeriesSequence[0].ReferencedInstanceSequence
    assert reference.ReferencedSOPInstanceUID == "1.2.3.4.1"
    for frame in seg.PerFrameFunctionalGroupsSequence:
        (image,) = frame.DerivationImageSequence[0].SourceImageSequence
        assert image.SpatialLocationsPreserved == "NO" and "ReferencedFrameNumber" not in image
    (path,) = (tmp_path / "mosaic-out").rglob("sr.dcm")
    images = [item.ReferencedSOPSequence[0] for item in content(pydicom.dcmread(path)) if item.ValueType == "IMAGE"]
    sources = [image for image in images if image.ReferencedSOPClassUID == pydicom.uid.MRImageStorage]
    assert sources and all(image.ReferencedSOPInstanceUID == "1.2.3.4.1" for image in sources)
    assert not any("ReferencedFrameNumber" in image for image in sources)

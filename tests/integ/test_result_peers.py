"""Results as other software reads them, on twelve geometries and on two patients. The regions are defined in patient
coordinates, so each reader's voxels are compared with the definition at the places that the reader gives them."""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys

import highdicom
import numpy as np
import pydicom
import pytest
import SimpleITK
from conftest import BIN, SHARED, needs_shared
from known_masks import COLORS, EVEN, GEOMETRIES, STRAIGHTENED, VALUES, as_segmentation, known
from test_contours import PUBLISHED, Planes, nifti_mask, peer_mask
from test_sr import children, code_of, one

VENV = pathlib.Path(sys.prefix)

# The regions of a file of another program, so that a straightened series has exactly these, too.
PIPELINE = """
root = "{root}";
pipelines = ( {{ name = "known"; min_slices = 1; unreviewed = true;
  texture = {{ first_order = true; bin_width = 25.0; discretisation = "fixed-bin-size"; }};
  results = [ {results} ]; compression = "{compression}";
  segments = ( {segments} ); }} );
"""
SEGMENT = """{{ label = "{name}"; method = "object"; object = {{ kind = "{kind}"; roi = "{roi}"; }}; color = [ {color} ];
  type = {{ code = "272673000"; scheme = "SCT"; meaning = "Bone"; }}; }}"""
RESULTS = ("seg", "labelmap", "rtstruct", "sr")


def run(folder, images, given, kind, rois, compression="none"):
    """Runs the pipeline whose regions are those of the file. Returns the folder of its results."""
    segments = ", ".join(SEGMENT.format(name=name, kind=kind, roi=roi, color=", ".join(map(str, COLORS[name])))
                         for name, roi in rois.items())
    config = folder / "noctule.conf"
    config.write_text(PIPELINE.format(root=folder / "root", results=", ".join(f'"{kind}"' for kind in RESULTS), segments=segments,
                                      compression=compression))
    done = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "known", "-o", folder / "out", "--object", given, images],
                          text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


@dataclasses.dataclass
class Results:
    """The results of one series, and the truth about its regions."""

    source: object  # known_masks.Known
    images: pathlib.Path
    folder: pathlib.Path
    scratch: pathlib.Path


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    @functools.cache
    def of(name, compression="none"):
        folder = tmp_path_factory.mktemp(name)
        source = known(folder / "in", *GEOMETRIES[name])
        given = as_segmentation(folder / "given.dcm", source)
        output = run(folder, folder / "in", given, "seg", {label: label for label in source.masks}, compression)
        return Results(source, folder / "in", output, folder)

    return of


# ---- readers. Each returns per region its mask, and a function that gives the places of a slice's voxels in mm.


def placed(shape, steps, origin):
    """Returns a function that gives the places of a slice. steps: mm from a voxel to the next slice, row and column."""
    y, x = np.indices(shape[1:])
    return lambda z: origin + z * steps[0] + y[..., None] * steps[1] + x[..., None] * steps[2]


def of_image(image, value=1):
    mask = SimpleITK.GetArrayFromImage(image) == value
    columns = (np.reshape(image.GetDirection(), (3, 3)) * image.GetSpacing()).T
    return mask, placed(mask.shape, columns[::-1], np.array(image.GetOrigin()))


def segments_of(seg):
    """Returns the labels of the segments by their numbers, without the background of a LABELMAP."""
    return {segment.SegmentNumber: segment.SegmentLabel for segment in seg.SegmentSequence if segment.SegmentNumber > 0}


def frames_of(seg, pixels):
    """Returns the regions of frames at the places that their functional groups give."""
    shared = seg.SharedFunctionalGroupsSequence[0]
    axes = np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float).reshape(2, 3)
    down, across = map(float, shared.PixelMeasuresSequence[0].PixelSpacing)
    on_plane = placed(pixels.shape, (np.zeros(3), down * axes[1], across * axes[0]), np.zeros(3))(0)
    origins = np.array([group.PlanePositionSequence[0].ImagePositionPatient for group in seg.PerFrameFunctionalGroupsSequence], float)
    assert len(origins) == len(pixels)
    if seg.SegmentationType == "LABELMAP":
        return {label: (pixels == number, lambda z: origins[z] + on_plane) for number, label in segments_of(seg).items()}
    numbers = np.array([group.SegmentIdentificationSequence[0].ReferencedSegmentNumber for group in seg.PerFrameFunctionalGroupsSequence])
    return {label: (pixels[numbers == number] != 0, lambda z, own=origins[numbers == number]: own[z] + on_plane)
            for number, label in segments_of(seg).items()}


def seg_pydicom(of, kind):
    seg = pydicom.dcmread(of.folder / f"{kind}.dcm")
    return frames_of(seg, seg.pixel_array.reshape(-1, seg.Rows, seg.Columns))


def seg_simpleitk(of, kind):
    """Reads the frames in their order. GDCM leaves the last pixels unset if their bits fill no byte, so they are not compared."""
    pixels = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(of.folder / f"{kind}.dcm")))
    pixels.reshape(-1)[pixels.size // 8 * 8:] = 0
    return frames_of(pydicom.dcmread(of.folder / f"{kind}.dcm"), pixels)


def seg_highdicom(of, kind):
    seg = highdicom.seg.segread(of.folder / f"{kind}.dcm")
    uids = [pydicom.dcmread(file, stop_before_pixels=True).SOPInstanceUID for file in of.source.files]
    pixels = seg.get_pixels_by_source_instance(uids, combine_segments=False, assert_missing_frames_are_empty=True)
    return {label: (pixels[..., i] != 0, of.source.place) for i, label in enumerate(segments_of(seg).values())}


def seg_highdicom_volume(of, kind):
    seg = highdicom.seg.segread(of.folder / f"{kind}.dcm")
    volume = seg.get_volume(combine_segments=False)
    place = placed(volume.spatial_shape, volume.affine[:3, :3].T, volume.affine[:3, 3])
    return {label: (volume.array[..., i] != 0, place) for i, label in enumerate(segments_of(seg).values())}


def images_dcmqi(of, kind="seg"):
    """Returns per region an image by dcmqi. Voxels are 1."""
    folder = of.scratch / f"dcmqi-{kind}"
    folder.mkdir(exist_ok=True)
    subprocess.run([VENV / "bin" / "segimage2itkimage", "--inputDICOM", of.folder / f"{kind}.dcm", "--outputDirectory", folder,
                    "--prefix", "it", "-t", "nrrd"], check=True, capture_output=True)
    groups = json.loads((folder / "it-meta.json").read_text())["segmentAttributes"]
    return {segment["SegmentLabel"]: SimpleITK.ReadImage(str(folder / f"it-{number}.nrrd")) == segment["labelID"]
            for number, group in enumerate(groups, start=1) for segment in group if segment["labelID"] > 0}


PYDICOM_SEG = """
import pydicom, pydicom_seg, SimpleITK, sys
read = pydicom_seg.SegmentReader().read(pydicom.dcmread(sys.argv[1]))
for number in read.available_segments:
    SimpleITK.WriteImage(read.segment_image(number), f"{sys.argv[2]}/{read.segment_infos[number].SegmentLabel}.nrrd")
"""


def images_pydicom_seg(of):
    """Returns per region an image by pydicom-seg, with its pydicom 2, which lies beside the other packages. Voxels are 1."""
    folder = of.scratch / "pydicom-seg"
    folder.mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", PYDICOM_SEG, of.folder / "seg.dcm", folder], check=True, capture_output=True,
                   env={**os.environ, "PYTHONPATH": str(VENV / "pydicom2")})
    return {label: SimpleITK.ReadImage(str(folder / f"{label}.nrrd"))
            for label in segments_of(pydicom.dcmread(of.folder / "seg.dcm")).values()}


def seg_dcmqi(of, kind):
    return {label: of_image(image) for label, image in images_dcmqi(of, kind).items()}


def seg_pydicom_seg(of, _):
    return {label: of_image(image) for label, image in images_pydicom_seg(of).items()}


def structures(of):
    return pydicom.dcmread(of.folder / "rtstruct.dcm")


def rt_pydicom(of, _):
    """Counts the crossings of each row of pixel centres with the contours, in Python integers."""
    ds = structures(of)
    return {roi.ROIName: (peer_mask(of.source.planes, [contour.ContourData for contour in item.ContourSequence]), of.source.place)
            for roi, item in zip(ds.StructureSetROISequence, ds.ROIContourSequence, strict=True)}


def rt_plastimatch(of, _):
    folder = of.scratch / "plastimatch"
    subprocess.run(["plastimatch", "convert", "--input", of.folder / "rtstruct.dcm", "--referenced-ct", of.images,
                    "--output-prefix", folder, "--prefix-format", "nrrd"], check=True, capture_output=True)
    return {label: of_image(SimpleITK.ReadImage(str(folder / f"{label}.nrrd"))) for label in of.source.counts}


# Per kind and reader the geometries that the reader can represent.
# - Readers of volumes have regular slices only.
# - GDCM, in SimpleITK, refuses files in which the first two frames have the same place, and does not know label maps.
# - plastimatch takes no single slice as reference.
WITHOUT_SINGLE = [name for name in GEOMETRIES if name != "single-slice"]
VOLUMES = [name for name in EVEN if name != "single-slice"]
EXACT = {
    ("seg", "pydicom"): (seg_pydicom, GEOMETRIES),
    ("seg", "SimpleITK"): (seg_simpleitk, WITHOUT_SINGLE),
    ("seg", "highdicom"): (seg_highdicom, GEOMETRIES),
    ("seg", "highdicom's volume"): (seg_highdicom_volume, EVEN),
    ("seg", "dcmqi"): (seg_dcmqi, EVEN),
    ("seg", "pydicom-seg"): (seg_pydicom_seg, EVEN),
    ("labelmap", "pydicom"): (seg_pydicom, GEOMETRIES),
    ("labelmap", "highdicom"): (seg_highdicom, GEOMETRIES),
    ("labelmap", "highdicom's volume"): (seg_highdicom_volume, EVEN),
    ("labelmap", "dcmqi"): (seg_dcmqi, EVEN),
    ("rtstruct", "pydicom"): (rt_pydicom, GEOMETRIES),
    ("rtstruct", "plastimatch"): (rt_plastimatch, VOLUMES),
}


def wrong_voxels(found, source):
    """Returns per region the number of voxels that differ from the definition at their places, and of voxels left out."""
    assert list(found) == list(source.counts)
    wrong = {}
    for label, (mask, place) in found.items():
        differ = [np.count_nonzero(mask[z] != source.at(label, place(z))) for z in range(len(mask))]
        wrong[label] = sum(differ), int(source.counts[label] - mask.sum())
    return wrong


@pytest.mark.parametrize("kind, reader, name", [(*row, name) for row, (_, able) in EXACT.items() for name in able])
def test_every_voxel_is_as_defined(results, kind, reader, name):
    of = results(name)
    assert set(wrong_voxels(EXACT[kind, reader][0](of, kind), of.source).values()) == {(0, 0)}


@pytest.mark.parametrize("compression", ["rle", "deflated"])
@pytest.mark.parametrize("kind, reader", [row for row in EXACT if row[0] != "rtstruct"])
def test_every_voxel_of_a_compressed_object_is_as_defined(results, kind, reader, compression):
    of = results("oblique", compression)
    assert set(wrong_voxels(EXACT[kind, reader][0](of, kind), of.source).values()) == {(0, 0)}


# ---- values. Each reader returns per tracking identifier its values, and the segment that they are of.


def sr_highdicom(of):
    groups = highdicom.sr.srread(of.folder / "sr.dcm").content.get_volumetric_roi_measurement_groups()
    return {group.tracking_uid: ({value.name.value: value.value for value in group.get_measurements()},
                                 one(group[0], "IMAGE", "121191").ReferencedSOPSequence[0].ReferencedSegmentNumber) for group in groups}


def sr_pydicom(of):
    (measured,) = children(pydicom.dcmread(of.folder / "sr.dcm"), "CONTAINER", "126010")
    return {one(group, "UIDREF", "112040").UID: (
        {code_of(item.ConceptNameCodeSequence)[0]: float(item.MeasuredValueSequence[0].NumericValue) for item in children(group, "NUM")},
        one(group, "IMAGE", "121191").ReferencedSOPSequence[0].ReferencedSegmentNumber) for group in children(measured, "CONTAINER")}


def sr_dcmqi(of):
    path = of.scratch / "tid1500.json"
    subprocess.run([VENV / "bin" / "tid1500reader", "--inputDICOM", of.folder / "sr.dcm", "--outputMetadata", path], check=True,
                   capture_output=True)
    return {group["TrackingUniqueIdentifier"]: (
        {item["quantity"]["CodeValue"]: float(item["value"]) for item in group["measurementItems"]},
        group["ReferencedSegment"]) for group in json.loads(path.read_text())["Measurements"]}


@pytest.mark.parametrize("reader", (sr_highdicom, sr_pydicom, sr_dcmqi), ids=lambda reader: reader.__name__[3:])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_values_are_of_the_defined_regions(results, reader, name):
    of = results(name)
    found = reader(of)
    assert [(uid, number) for uid, (_, number) in found.items()] == [("1.2.66.1", 1), ("1.2.66.2", 2)]
    if name in STRAIGHTENED:
        return  # values of the grid
    source = of.source
    for (values, _), (label, mask) in zip(found.values(), source.masks.items(), strict=True):
        voxel = np.prod(source.planes.spacing) * (source.step if len(mask) > 1 else source.planes.files[0].SliceThickness)
        place = source.points[mask].mean(axis=0)
        expected = {"voxel_count": mask.sum(), "YEKZ": mask.sum() * voxel / 1000, "Q4LE": VALUES[label],
                    **{f"centroid_{axis}": place[i] for i, axis in enumerate("xyz")}}
        assert {code: values[code] for code in expected} == pytest.approx(expected, rel=1e-6, abs=1e-5)


# ---- two patients, with the regions that were published with them


@dataclasses.dataclass
class Published:
    """The published mask of a series."""

    planes: Planes
    mask: np.ndarray

    @property
    def counts(self):
        return {"Ring": self.mask.sum()}

    def place(self, z):
        y, x = np.indices(self.mask.shape[1:])
        return self.planes.point(z, x[..., None], y[..., None])

    def at(self, _, points):
        """Returns the mask at the places, which are those of voxels of one plane."""
        z = self.planes.nearest(points[0, 0])
        offsets = points - self.planes.origins[z]
        assert np.abs(offsets @ self.planes.normal).max() < 0.02
        x, y = (offsets @ axis / spacing for axis, spacing in zip(self.planes.axes, self.planes.spacing))
        assert max(np.abs(x - np.rint(x)).max(), np.abs(y - np.rint(y)).max()) < 0.01
        return self.mask[z, np.rint(y).astype(int), np.rint(x).astype(int)]


PATIENTS = {image.split("/")[1] + "-" + image.split("/")[2]: (image, mask, published) for image, mask, published, _ in PUBLISHED
            if "sarcoma" in image and "MR" not in image}


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    @functools.cache
    def of(name):
        image, mask, published = PATIENTS[name]
        folder = tmp_path_factory.mktemp(name)
        (given,) = (SHARED / mask).glob("*.dcm")
        planes = Planes(sorted((SHARED / image).glob("*.dcm")))
        source = Published(planes, nifti_mask(SHARED / published))
        source.files = [file.filename for file in planes.files]
        return Results(source, SHARED / image, run(folder, SHARED / image, given, "rtstruct", {"Ring": "*"}), folder)

    return of


@needs_shared
@pytest.mark.parametrize("kind, reader", EXACT)
@pytest.mark.parametrize("name", PATIENTS)
def test_every_voxel_of_a_patient_is_the_published_one(patients, kind, reader, name):
    of = patients(name)
    assert set(wrong_voxels(EXACT[kind, reader][0](of, kind), of.source).values()) == {(0, 0)}

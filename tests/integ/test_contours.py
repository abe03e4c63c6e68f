"""Regions of RTSTRUCT files of other software and of pydicom, drawn on their series by draw_contours.

The reference is the definition in Python integers, and the masks that were published with real RTSTRUCT files."""

import gzip
import json
import math
import struct

import numpy as np
import pydicom
import pydicom.uid
import pytest
from pydicom.dataset import Dataset, FileMetaDataset

from conftest import SHARED, needs_shared, phantom, run_program

PIXEL = 1 << 32  # coordinates are rounded to this fraction


def draw(folder, rtstruct, images):
    """Returns the output of draw_contours, and the mask of each region."""
    raw = folder / "masks.raw"
    report = json.loads(run_program("draw_contours", raw, rtstruct, *images).stdout)
    if report["code"]:
        return report, []
    columns, rows, slices = report["extent"]
    drawn = [roi for roi in report["rois"] if not roi["code"]]
    masks = np.fromfile(raw, np.uint8).reshape(len(drawn), slices, rows, columns)
    return report, list(masks.astype(bool))


class Planes:
    """The planes of a series by pydicom, in ascending order along the normal."""

    def __init__(self, images):
        files = [pydicom.dcmread(file, stop_before_pixels=True) for file in images]
        self.axes = np.array(files[0].ImageOrientationPatient, float).reshape(2, 3)
        self.normal = np.cross(*self.axes)
        files.sort(key=lambda file: np.dot(np.array(file.ImagePositionPatient, float), self.normal))
        self.files = files
        self.origins = [np.array(file.ImagePositionPatient, float) for file in files]
        self.shape = (len(files), files[0].Rows, files[0].Columns)
        self.spacing = [float(files[0].PixelSpacing[1]), float(files[0].PixelSpacing[0])]

    def nearest(self, point):
        return int(np.argmin([abs(np.dot(point - origin, self.normal)) for origin in self.origins]))

    def point(self, plane, x, y, off=0.0):
        """Returns the point in mm at pixel coordinates."""
        return (self.origins[plane] + x * self.spacing[0] * self.axes[0] + y * self.spacing[1] * self.axes[1]
                + off * self.normal)

    def place(self, plane, points, axis):
        d, a = points - self.origins[plane], self.axes[axis]
        pixels = ((d[:, 0] * a[0] + d[:, 1] * a[1]) + d[:, 2] * a[2]) / self.spacing[axis]
        return [int(p) for p in np.rint(pixels * PIXEL)]


def flips(planes, plane, points):
    """Returns the crossings of the contour's edges per row: counts with one column more than the image."""
    _, rows, columns = planes.shape
    counts = np.zeros((rows, columns + 1), np.uint8)
    xs, ys = planes.place(plane, points, 0), planes.place(plane, points, 1)
    for i, (x0, y0) in enumerate(zip(xs, ys)):
        x1, y1 = xs[i - 1], ys[i - 1]
        if y0 > y1:
            x0, y0, x1, y1 = x1, y1, x0, y0
        for row in range(max(0, -(-y0 // PIXEL)), min(rows, -(-y1 // PIXEL))):
            column = -(-(x0 * (y1 - y0) + (row * PIXEL - y0) * (x1 - x0)) // ((y1 - y0) * PIXEL))
            counts[row, min(max(column, 0), columns)] += 1
    return counts


def peer_mask(planes, contours):
    mask = np.zeros(planes.shape, bool)
    for data in contours:
        points = np.array(data, float).reshape(-1, 3)
        plane = planes.nearest(points[0])
        inside = np.cumsum(flips(planes, plane, points), axis=1)[:, :-1] & 1
        mask[plane] ^= inside.astype(bool)
    return mask


# ---- contours of other software, and the masks that were published with them

PHANTOM = "ibsi/ibsi_1_ct_radiomics_phantom"
PUBLISHED = [(f"{PHANTOM}/dicom/image", f"{PHANTOM}/dicom/mask", f"{PHANTOM}/nifti/mask/mask.nii.gz", 125256)]
for patient, counts in (("STS_001", (117145, 5095, 117145)), ("STS_002", (17090, 555, 17090))):
    for modality, voxels in zip(("CT", "PET", "MR_T1"), counts):
        home = f"sarcoma/{patient}"
        PUBLISHED.append((f"{home}/{modality}/image", f"{home}/{modality}/mask", f"{home}/nifti/{modality}_mask.nii.gz",
                          voxels))


def nifti_mask(file):
    """Returns the mask as z, y, x in the order of the file."""
    data = gzip.decompress(file.read_bytes())
    size = struct.unpack("<8h", data[40:56])
    kind = {2: np.uint8, 4: np.int16, 16: np.float32, 64: np.float64}[struct.unpack("<h", data[70:72])[0]]
    values = np.frombuffer(data, kind, count=math.prod(size[1:4]), offset=int(struct.unpack("<f", data[108:112])[0]))
    return values.reshape(size[3], size[2], size[1]) > 0


@needs_shared
@pytest.mark.parametrize(("image", "mask", "published", "voxels"), PUBLISHED)
def test_masks_are_the_published_ones(tmp_path, image, mask, published, voxels):
    images = sorted((SHARED / image).glob("*.dcm"))
    (rtstruct,) = (SHARED / mask).glob("*.dcm")
    report, (drawn,) = draw(tmp_path, rtstruct, images)
    (roi,) = report["rois"]
    structures = pydicom.dcmread(rtstruct)
    contours = structures.ROIContourSequence[0].ContourSequence
    assert roi["name"] == structures.StructureSetROISequence[0].ROIName
    assert roi["voxels"] == voxels and roi["contours"] == len(contours) and roi["missing"] == 0
    assert roi["images"] == [c.ContourImageSequence[0].ReferencedSOPInstanceUID if "ContourImageSequence" in c else ""
                             for c in contours]
    planes = Planes(images)
    assert np.count_nonzero(drawn != peer_mask(planes, [c.ContourData for c in contours])) == 0
    assert np.count_nonzero(drawn != nifti_mask(SHARED / published)) == 0


# ---- contours written by pydicom

def structure_set(folder, planes, rois, **changes):
    """Returns an RTSTRUCT with contours (type, points in mm) per region."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = pydicom.uid.RTStructureSetStorage
    meta.MediaStorageSOPInstanceUID = "1.2.9.1"
    meta.TransferSyntaxUID = changes.get("syntax", pydicom.uid.ExplicitVRLittleEndian)
    ds = Dataset()
    ds.file_meta = meta
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.SOPClassUID, ds.SOPInstanceUID, ds.Modality = meta.MediaStorageSOPClassUID, "1.2.9.1", "RTSTRUCT"
    ds.StudyInstanceUID, ds.SeriesInstanceUID, ds.StructureSetLabel = "1.2.9.2", "1.2.9.3", "Plan"
    series = Dataset()
    series.SeriesInstanceUID = planes.files[0].SeriesInstanceUID
    study = Dataset()
    study.RTReferencedSeriesSequence = [series]
    frame = Dataset()
    frame.FrameOfReferenceUID = planes.files[0].FrameOfReferenceUID
    frame.RTReferencedStudySequence = [study]
    ds.ReferencedFrameOfReferenceSequence = [frame]
    ds.StructureSetROISequence, ds.ROIContourSequence, ds.RTROIObservationsSequence = [], [], []
    for number, (name, contours) in enumerate(rois.items(), start=1):
        roi, drawn, observation = Dataset(), Dataset(), Dataset()
        roi.ROINumber, roi.ROIName = number, name
        roi.ReferencedFrameOfReferenceUID = frame.FrameOfReferenceUID
        drawn.ReferencedROINumber, drawn.ROIDisplayColor = number, [255, 0, 0]
        drawn.ContourSequence = [contour_item(planes, *contour) for contour in contours]
        observation.ReferencedROINumber, observation.RTROIInterpretedType = number, "ORGAN"
        ds.StructureSetROISequence.append(roi)
        ds.ROIContourSequence.append(drawn)
        ds.RTROIObservationsSequence.append(observation)
    path = folder / "rtstruct.dcm"
    ds.save_as(path, enforce_file_format=True)
    return path


def contour_item(planes, kind, points):
    item, image = Dataset(), Dataset()
    image.ReferencedSOPInstanceUID = planes.files[planes.nearest(points[0])].SOPInstanceUID
    item.ContourImageSequence, item.ContourGeometricType = [image], kind
    item.NumberOfContourPoints = len(points)
    item.ContourData = [f"{value:.10g}" for point in points for value in point]
    return item


def ring(planes, plane, center, radii, count, off=0.0):
    """Returns an ellipse in pixels."""
    turns = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return [planes.point(plane, center[0] + radii[0] * math.cos(t), center[1] + radii[1] * math.sin(t), off)
            for t in turns]


SERIES = {
    "upright": ("--size", "70x61x9"),
    "tilted": ("--size", "70x61x9", "--tilt", "18.5"),
    "uneven": ("--size", "70x61x12", "--tilt", "-7"),
}


@pytest.fixture(params=SERIES)
def series(request, tmp_path):
    files = phantom(tmp_path / "series", *SERIES[request.param])
    if request.param == "uneven":
        files = [file for i, file in enumerate(sorted(files)) if i not in (2, 3, 7)]
    return files


def test_masks_are_the_peers(tmp_path, series):
    planes = Planes(series)
    keyhole = ring(planes, 4, (30, 30), (20, 14), 40)
    keyhole += [keyhole[0], *ring(planes, 4, (30, 30), (9, 7), 33)]
    keyhole += [keyhole[41]]
    grid = [planes.point(1, x, y) for x, y in ((10, 10), (40, 10), (40, 30), (10, 30))]
    rois = {
        "Löwe": [("CLOSED_PLANAR", ring(planes, z, (33 + z, 31), (25, 11 + z), 300, 0.02)) for z in range(len(series))],
        "holes": [("CLOSED_PLANAR", ring(planes, 3, (31, 29), radii, 77)) for radii in ((60, 50), (20, 18), (8, 9), (1, 1))],
        "keyhole": [("CLOSED_PLANAR", keyhole)],
        "on centres": [("CLOSEDPLANAR_XOR", grid)],
        "none": [("POINT", grid[:1]), ("OPEN_PLANAR", grid)],
    }
    for syntax in (pydicom.uid.ExplicitVRLittleEndian, pydicom.uid.ImplicitVRLittleEndian):
        path = structure_set(tmp_path, planes, rois, syntax=syntax)
        report, masks = draw(tmp_path, path, series)
        assert [roi["name"] for roi in report["rois"]] == list(rois)
        assert report["series"] == [[planes.files[0].FrameOfReferenceUID, planes.files[0].SeriesInstanceUID]]
        written = pydicom.dcmread(path).ROIContourSequence
        for roi, mask, drawn, contours in zip(report["rois"], masks, written, rois.values()):
            closed = [c for c in drawn.ContourSequence if c.ContourGeometricType.startswith("CLOSED")]
            assert roi["left_out"] == len(contours) - len(closed)
            assert roi["images"] == [c.ContourImageSequence[0].ReferencedSOPInstanceUID for c in closed]
            expected = peer_mask(planes, [c.ContourData for c in closed])
            assert np.count_nonzero(mask != expected) == 0 and roi["voxels"] == expected.sum()
        # Written digits are exact to 1e-10 mm, so points meant for pixel centres may miss them.
        assert masks[3].sum() == pytest.approx(30 * 20, abs=50)


def test_contours_off_the_planes_are_refused(tmp_path, series):
    planes = Planes(series)
    step = np.dot(planes.origins[6] - planes.origins[5], planes.normal)
    slanted = [planes.point(z, x, y) for z, x, y in ((4, 5, 5), (5, 20, 5), (6, 20, 20), (5, 5, 20))]
    other = structure_set(tmp_path, planes, {
        "near": [("CLOSED_PLANAR", ring(planes, 5, (30, 30), (9, 9), 20, 0.09 * step))],
        "off": [("CLOSED_PLANAR", ring(planes, 5, (30, 30), (9, 9), 20, 0.11 * step))],
        "oblique": [("CLOSED_PLANAR", slanted)],
        "beyond": [("CLOSED_PLANAR", ring(planes, 0, (30, 30), (9, 9), 20, -step))],
    })
    report, masks = draw(tmp_path, other, series)
    assert [roi["code"] for roi in report["rois"]] == ["", "CONTOUR_OFF_PLANES", "CONTOUR_OBLIQUE",
                                                      "CONTOUR_OFF_PLANES"]
    assert len(masks) == 1 and report["rois"][0]["farthest"] == pytest.approx(0.09 * step)


def test_planes_without_a_contour_are_reported(tmp_path, series):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, {
        "gaps": [("CLOSED_PLANAR", ring(planes, z, (30, 30), (9, 9), 20)) for z in (1, 2, 5, 8)]})
    report, (mask,) = draw(tmp_path, path, series)
    (roi,) = report["rois"]
    assert roi["planes"] == 4 and roi["missing"] == 4
    assert [bool(plane.any()) for plane in mask] == [z in (1, 2, 5, 8) for z in range(9)]


def test_images_are_no_structure_sets(tmp_path, series):
    report, _ = draw(tmp_path, series[0], series)
    assert report["code"] == "SOP_CLASS_UNSUPPORTED"

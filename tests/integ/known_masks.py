"""Series on many geometries, with two regions that are defined in patient coordinates. A reader of a result must find the
regions at the places of its own voxels, whatever their order and orientation."""

import dataclasses

import highdicom
import numpy as np
import pydicom
from conftest import phantom
from test_contours import Planes
from test_grid import uneven
from test_segments import oblique, turn

WIDE, SQUARE = ("--size", "46x37x13", "--spacing", "2,2.5,3"), ("--size", "41x41x13", "--spacing", "2,2,3")
EVEN = {
    "axial": (SQUARE, None),
    "sagittal": (WIDE, ((0, 1, 0), (0, 0, -1))),
    "coronal": (SQUARE, ((1, 0, 0), (0, 0, -1))),
    "oblique": (SQUARE, oblique()),
    "feet-first": (WIDE, ((-1, 0, 0), (0, 1, 0))),
    "face-down": (SQUARE, ((-1, 0, 0), (0, -1, 0))),
    "anisotropic": (("--size", "61x70x9", "--spacing", "1.2,0.9,8"), None),
    "single-slice": (("--size", "46x37x1", "--spacing", "2,2.5,3"), None),
    "tiny": (("--size", "6x5x3", "--spacing", "2,2,2"), None),
    "large-pixels": (("--size", "21x21x9", "--spacing", "17,17,20"), oblique()),
}
STRAIGHTENED = {
    "tilted": (("--size", "41x41x13", "--spacing", "2,2,3", "--tilt", "18.5"), None),
    "uneven": (("--size", "46x37x12", "--spacing", "2,2.5,4"), uneven),
}
GEOMETRIES = {**EVEN, **STRAIGHTENED}
VALUES = {"Ring": 300, "Knobs": 700}  # HU; -1000 elsewhere
COLORS = {"Ring": (0.3, 0.6, 0.9), "Knobs": (1.0, 0.8, 0.0)}
MARGIN = 1e-3  # mm between any voxel and the surface of a region


@dataclasses.dataclass
class Shape:
    """A hollow ball that a plane cuts, and balls in its cavity and around it: a hole, islands and single voxels."""

    center: np.ndarray
    radius: float

    def levels(self, points):
        """Returns per region a level in mm: negative inside, zero at the surface."""
        offsets = points - self.center
        distance = np.linalg.norm(offsets, axis=-1)
        cut = offsets @ np.array([0.6, 0.48, 0.64])
        knobs = [(np.zeros(3), 0.25)] + [(np.array(at) * 0.98, 0.16) for at in (
            (-0.6, 0.8, 0), (0.28, -0.96, 0), (-0.6, 0, -0.8), (0, -0.8, 0.6), (-0.936, -0.352, 0))]
        balls = [np.linalg.norm(offsets - at * self.radius, axis=-1) - size * self.radius for at, size in knobs]
        return {"Ring": np.maximum(np.maximum(0.4 * self.radius - distance, distance - 0.78 * self.radius), cut - 0.5 * self.radius),
                "Knobs": np.min(balls, axis=0)}

    def masks(self, points):
        return {name: level < 0 for name, level in self.levels(points).items()}


@dataclasses.dataclass
class Known:
    """A series, its regions, and their masks on the planes in ascending order."""

    files: list
    shape: Shape
    points: np.ndarray  # of the voxels, slices first, in mm
    masks: dict
    planes: Planes

    @property
    def counts(self):
        return {label: mask.sum() for label, mask in self.masks.items()}

    @property
    def step(self):
        return np.dot(self.planes.origins[1] - self.planes.origins[0], self.planes.normal)

    def place(self, z):
        return self.points[z]

    def at(self, label, points):
        return self.shape.masks(points)[label]


def centers(planes):
    """Returns the centres of all pixels in mm."""
    count, rows, columns = planes.shape
    y, x = np.mgrid[:rows, :columns]
    return np.stack([planes.point(z, x[..., None], y[..., None]) for z in range(count)])


def known(folder, options, change=None):
    """Writes a series with the options of noctule-phantom, and a change of its geometry."""
    files = phantom(folder, *options)
    if callable(change):
        change(files)
    elif change:
        turn(files, *change, (-31.5, 12.25, 700))
    planes = Planes(files)
    points = centers(planes)
    _, rows, columns = planes.shape
    radius = 0.47 * min((columns - 1) * planes.spacing[0], (rows - 1) * planes.spacing[1])
    middle = points[len(points) // 2].reshape(-1, 3).mean(axis=0)
    for step in range(1, 100):  # a place where no voxel is at a surface
        shape = Shape(middle + 0.0071 * step * np.array([1, -1.3, 0.7]), radius)
        if min(abs(level).min() for level in shape.levels(points).values()) > MARGIN:
            break
    masks = shape.masks(points)
    assert all(mask.any() for mask in masks.values()) and not (masks["Ring"] & masks["Knobs"]).any()
    for z, header in enumerate(planes.files):
        dataset = pydicom.dcmread(header.filename)
        values = np.full(planes.shape[1:], -1000)
        for label, mask in masks.items():
            values[mask[z]] = VALUES[label]
        stored = (values - float(dataset.RescaleIntercept)) / float(dataset.RescaleSlope)
        dataset.PixelData = stored.astype(np.uint16 if dataset.PixelRepresentation == 0 else np.int16).tobytes()
        dataset.save_as(header.filename)
    return Known([header.filename for header in planes.files], shape, points, masks, planes)


def as_segmentation(path, source):
    """Writes the masks as a SEG by highdicom, so that a pipeline has exactly these regions, also on a straightened series."""
    pixels = np.stack(list(source.masks.values()), axis=-1).astype(np.uint8)
    descriptions = [highdicom.seg.SegmentDescription(
        number, label, highdicom.sr.CodedConcept("123037004", "SCT", "Anatomical Structure"),
        highdicom.sr.CodedConcept("272673000", "SCT", "Bone"), "MANUAL", tracking_id=f"{label} of a test", tracking_uid=f"1.2.66.{number}")
        for number, label in enumerate(source.masks, start=1)]
    highdicom.seg.Segmentation([pydicom.dcmread(file) for file in source.files], pixels, "BINARY", descriptions, "1.2.65.3", 1, "1.2.65.1",
                               1, "Someone", "Else", "1", "7").save_as(path)
    return path

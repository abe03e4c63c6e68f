"""Series resampled by resample_volume: equal to NumPy's definition in double precision, to SimpleITK within rounding,
and to IBSI's published values of its interpolated phantom."""

import csv
import json

import numpy as np
import pydicom
import pytest
import SimpleITK

from conftest import SHARED, needs_shared, phantom, run_program
from test_contours import PHANTOM, Planes

POLE = np.sqrt(3.0) - 2.0


def resample(folder, images, order, grid, level=1, rtstruct="-"):
    """Returns the output of resample_volume, the volume, and the mask transformed back to the planes."""
    raw = folder / "resampled.raw"
    report = json.loads(run_program("resample_volume", "cpu", order, grid, level, rtstruct, raw, *images).stdout)
    columns, rows, slices = report["extent"]
    data = raw.read_bytes()
    kind = np.dtype(report["pixel"]).newbyteorder("<")
    size = columns * rows * slices * kind.itemsize
    volume = np.frombuffer(data[:size], kind).reshape(slices, rows, columns)
    return report, volume, np.frombuffer(data[size:], np.uint8).astype(bool)


class Stack(Planes):
    """The planes with their stored values."""

    def __init__(self, images):
        super().__init__(images)
        self.values = np.array([pydicom.dcmread(file.filename).pixel_array for file in self.files])
        first = self.origins[0]
        self.shifts = np.array([[self.along(origin, first, axis) for axis in (*self.axes, self.normal)]
                                for origin in self.origins])
        self.step = self.shifts[-1, 2] / (len(self.shifts) - 1)
        steps = np.diff(self.shifts, axis=0) - [0, 0, self.step]
        self.regular = bool((np.abs(steps) <= max(0.01 * self.step, 0.02)).all())
        if self.regular:
            self.shifts = np.arange(len(self.shifts))[:, None] * np.array([0, 0, self.step])

    @staticmethod
    def along(point, origin, axis):
        d = point - origin
        return (d[0] * axis[0] + d[1] * axis[1]) + d[2] * axis[2]

    def heights(self, mm):
        """Converts heights in mm to planes."""
        if self.regular:
            return mm / self.step
        h = self.shifts[:, 2]
        low = np.clip(np.searchsorted(h, mm, side="right") - 1, 0, len(h) - 2)
        return low + (mm - h[low]) / (h[low + 1] - h[low])


def rounded(places):
    coarse = np.floor(places * 2**16 + 0.5) / 2**16
    return np.where(np.abs(places - coarse) <= 2**-30, coarse, np.floor(places * 2**40 + 0.5) / 2**40)


def positions(report, axis):
    return report["origin"][axis] + np.arange(report["extent"][axis]) * report["spacing"][axis]


def taps(places, count, order):
    """Returns index, fraction of the next sample, and whether the place is inside."""
    there = (places >= -0.5) & (places <= count - 0.5)
    places = np.clip(np.floor(places + 0.5) if order == 0 else places, 0, count - 1)
    at = np.floor(places).astype(int)
    return at, places - at, there


def mixed(a, b, part):
    return (1 - part) * a + part * b


def stored(values, kind):
    limits = np.iinfo(kind)
    return np.clip(np.floor(values + 0.5), limits.min, limits.max).astype(kind)


def numpy_linear(stack, report, order):
    """Orders 0 and 1, with 0 outside."""
    count, rows, columns = stack.shape
    result = np.zeros(report["extent"][::-1])
    at, part, there = taps(rounded(stack.heights(positions(report, 2))), count, order)

    def on_plane(z):
        ys = taps(rounded((positions(report, 1) - stack.shifts[z][1]) / stack.spacing[1]), rows, order)
        xs = taps(rounded((positions(report, 0) - stack.shifts[z][0]) / stack.spacing[0]), columns, order)
        plane = stack.values[z].astype(float)
        lines = mixed(plane[ys[0]], plane[np.minimum(ys[0] + 1, rows - 1)], ys[1][:, None])
        values = mixed(lines[:, xs[0]], lines[:, np.minimum(xs[0] + 1, columns - 1)], xs[1][None, :])
        values[~(ys[2][:, None] & xs[2][None, :])] = np.nan
        return values

    for k in range(len(at)):
        if not there[k]:
            continue
        values = on_plane(at[k])
        if part[k] > 0:
            values = mixed(values, on_plane(at[k] + 1), part[k])
        result[k] = np.where(np.isnan(values), 0, values)
    return result


def spline(values, places):
    """Along the first axis, mirrored at the ends (Unser 1993)."""
    count = len(values)
    c = values * 6.0
    powers = np.cumprod(np.concatenate([[1.0], np.full(63, POLE)]))
    first = None
    for k in range(min(count, 32)):
        weight = powers[k]
        if count <= 32:
            weight = (weight + (powers[2 * count - 2 - k] if 0 < k < count - 1 else 0)) / (1 - powers[2 * count - 2])
        first = weight * c[k] if first is None else first + weight * c[k]
    c[0] = first
    for k in range(1, count):
        c[k] = c[k] + POLE * c[k - 1]
    c[-1] = POLE / (POLE * POLE - 1) * (POLE * c[-2] + c[-1])
    for k in range(count - 2, -1, -1):
        c[k] = POLE * (c[k + 1] - c[k])
    places = np.clip(places, 0, count - 1)
    whole = np.floor(places).astype(int)
    f = (places - whole)[:, None, None]
    g = 1 - f
    weights = g * g * g / 6, 2.0 / 3 - f * f * (2 - f) / 2, 2.0 / 3 - g * g * (2 - g) / 2, f * f * f / 6
    at = [np.abs(whole - 1 + i) % (2 * (count - 1)) for i in range(4)]
    at = [np.where(a < count, a, 2 * (count - 1) - a) for a in at]
    return ((weights[0] * c[at[0]] + weights[1] * c[at[1]]) + weights[2] * c[at[2]]) + weights[3] * c[at[3]]


def numpy_cubic(stack, report):
    values = stack.values.astype(float)
    places = (positions(report, 0) / stack.spacing[0], positions(report, 1) / stack.spacing[1],
              stack.heights(positions(report, 2)))
    for axis, where in zip((2, 1, 0), places):
        values = np.moveaxis(spline(np.moveaxis(values, axis, 0).copy(), rounded(where)), 0, axis)
    return values


SERIES = {
    "upright": ("--size", "70x61x13"),
    "tilted": ("--size", "70x61x13", "--tilt", "18.5"),
    "uneven": ("--size", "70x61x16", "--tilt", "-7"),
}


def series_of(tmp_path, kind):
    files = phantom(tmp_path / "series", *SERIES[kind])
    return [file for i, file in enumerate(sorted(files)) if kind != "uneven" or i not in (2, 3, 7)]


@pytest.mark.parametrize("kind", SERIES)
@pytest.mark.parametrize("order", (0, 1))
@pytest.mark.parametrize("grid", ("straight", "straight:1.3", "spaced:1.1,0.9,1.7"))
def test_numpy_has_the_same_voxels(tmp_path, kind, order, grid):
    images = series_of(tmp_path, kind)
    stack = Stack(images)
    report, volume, back = resample(tmp_path, images, order, grid, 1050)
    assert np.array_equal(volume, stored(numpy_linear(stack, report, order), volume.dtype))
    assert volume.any() and np.array_equal(back.reshape(stack.shape), mask_on_planes(stack, report, volume >= 1050))


def mask_on_planes(stack, report, mask):
    """Each pixel has the bit of the nearest voxel."""
    result = np.zeros(stack.shape, bool)
    for z, shift in enumerate(stack.shifts):
        sides = [(shift[0] + np.arange(stack.shape[2]) * stack.spacing[0], 0),
                 (shift[1] + np.arange(stack.shape[1]) * stack.spacing[1], 1), (shift[2:], 2)]
        (x, _, in_x), (y, _, in_y), (k, _, in_z) = (
            taps(rounded((mm - report["origin"][axis]) / report["spacing"][axis]), report["extent"][axis], 0)
            for mm, axis in sides)
        result[z] = mask[k[0]][np.ix_(y, x)] & in_z[0] & in_y[:, None] & in_x[None, :]
    return result


def taken(back, there, nearest):
    """Returns the sample of each voxel: the first of several samples assigned to it, else the nearest. -1: no sample."""
    result = np.where(nearest[2], nearest[0], -1)
    for i in reversed(np.flatnonzero(there)):
        result[back[i]] = i
    return result


def mask_on_grid(stack, report, mask):
    """Transforms a mask from the planes to the grid: the inverse of mask_on_planes."""
    def places(mm, axis):
        at, _, there = taps(rounded((mm - report["origin"][axis]) / report["spacing"][axis]), report["extent"][axis], 0)
        return at, there

    def of_axis(z, axis):
        own, count = stack.shifts[z][axis], stack.shape[2 - axis]
        nearest = taps(rounded((positions(report, axis) - own) / stack.spacing[axis]), count, 0)
        return taken(*places(own + np.arange(count) * stack.spacing[axis], axis), nearest)

    planes = taken(*places(stack.shifts[:, 2], 2), taps(rounded(stack.heights(positions(report, 2))), stack.shape[0], 0))
    result = np.zeros(report["extent"][::-1], bool)
    for k, z in enumerate(planes):
        if z >= 0:
            x, y = of_axis(z, 0), of_axis(z, 1)
            result[k] = mask[z][np.ix_(y, x)] & (y >= 0)[:, None] & (x >= 0)[None, :]
    return result


@pytest.mark.parametrize("grid", ("spaced:1.1,0.9,1.7", "spaced:3,3,3", "spaced:0,0,1"))
def test_numpy_has_the_same_splines(tmp_path, grid):
    images = series_of(tmp_path, "upright")
    report, volume, _ = resample(tmp_path, images, 3, grid)
    assert np.array_equal(volume, stored(numpy_cubic(Stack(images), report), volume.dtype))


@needs_shared
@pytest.mark.parametrize("order", (0, 1, 3))
def test_numpy_has_the_same_chest(tmp_path, order):
    images = sorted((SHARED / PHANTOM / "dicom" / "image").glob("*.dcm"))
    stack = Stack(images)
    report, volume, _ = resample(tmp_path, images, order, "spaced:2,2,2")
    other = numpy_cubic(stack, report) if order == 3 else numpy_linear(stack, report, order)
    assert np.ptp(volume) > 1000 and np.array_equal(volume, stored(other, volume.dtype))


@pytest.mark.parametrize(("order", "interpolator"), ((1, SimpleITK.sitkLinear), (3, SimpleITK.sitkBSpline)))
def test_simpleitk_differs_by_rounding(tmp_path, order, interpolator):
    """Compared where SimpleITK has voxels between all samples. It has no rule for half a sample beyond the ends."""
    images = series_of(tmp_path, "upright")
    stack = Stack(images)
    report, volume, _ = resample(tmp_path, images, order, "spaced:1.1,0.9,1.7")
    image = SimpleITK.GetImageFromArray(stack.values.astype(np.float64))
    image.SetSpacing([*stack.spacing, stack.step])
    other = SimpleITK.GetArrayFromImage(SimpleITK.Resample(
        image, report["extent"], SimpleITK.Transform(), interpolator, report["origin"], report["spacing"],
        np.eye(3).ravel().tolist(), -1e6, SimpleITK.sitkFloat64))
    inner = np.ix_(*[(positions(report, axis) >= 0) & (positions(report, axis) <= end) for axis, end in (
        (2, stack.shifts[-1][2]), (1, (stack.shape[1] - 1) * stack.spacing[1]),
        (0, (stack.shape[2] - 1) * stack.spacing[0]))])
    assert inner[0].size * inner[1].size * inner[2].size > 0.8 * volume.size
    # A place is rounded to 2^-16 of a sample: less than 0.04 of the steepest step of 4095.
    assert np.abs(volume[inner] - other[inner]).max() <= 0.52


def diagnostics():
    """Returns IBSI's values of its phantom by configuration and tag: value and tolerance."""
    with open(SHARED / "ibsi" / "ibsi_1_diagnostics.csv", encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(row["dataset"][-1], row["ibsi_tag"]): (float(row["value"]), float(row["tolerance"])) for row in rows}


@needs_shared
@pytest.mark.parametrize(("configuration", "order", "grid"), (
    ("b", 1, "spaced:2,2,0"), ("c", 1, "spaced:2,2,2"), ("d", 1, "spaced:2,2,2"), ("e", 3, "spaced:2,2,2")))
def test_ibsi_has_the_same_image_and_mask(tmp_path, configuration, order, grid):
    images = sorted((SHARED / PHANTOM / "dicom" / "image").glob("*.dcm"))
    (rtstruct,) = (SHARED / PHANTOM / "dicom" / "mask").glob("*.dcm")
    _, volume, _ = resample(tmp_path, images, order, grid)
    _, mask, _ = resample(tmp_path, images, 1, grid, rtstruct=rtstruct)
    first = pydicom.dcmread(images[0], stop_before_pixels=True)
    assert first.RescaleSlope == 1
    image, mask = volume + float(first.RescaleIntercept), mask > 0
    inside, boxes = image[mask], [np.flatnonzero(mask.any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
    found = {
        "img_dim_x_interp_img": image.shape[2], "img_dim_y_interp_img": image.shape[1],
        "img_dim_z_interp_img": image.shape[0], "mean_int_interp_img": image.mean(),
        "min_int_interp_img": image.min(), "max_int_interp_img": image.max(),
        "int_mask_vox_count_interp_roi": mask.sum(), "morph_mask_vox_count_interp_roi": mask.sum(),
        "int_mask_mean_int_interp_roi": inside.mean(), "int_mask_min_int_interp_roi": inside.min(),
        "int_mask_max_int_interp_roi": inside.max(),
    } | {f"int_mask_bb_dim_{name}_interp_roi": box[-1] - box[0] + 1 for name, box in zip("zyx", boxes)}
    published = diagnostics()
    for tag, value in found.items():
        expected, tolerance = published[configuration, tag]
        assert abs(value - expected) <= tolerance, (tag, value, expected, tolerance)


@needs_shared
def test_a_tilted_head_becomes_upright(tmp_path):
    images = sorted((SHARED / "ct-head-tilted").glob("*.dcm"))
    stack = Stack(images)
    report, volume, back = resample(tmp_path, images, 1, "straight:3.8", 1100)
    assert np.array_equal(volume, stored(numpy_linear(stack, report, 1), volume.dtype))
    assert report["spacing"][:2] == stack.spacing and report["extent"][0] == stack.shape[2]
    assert not stack.regular and report["extent"][2] == 38 and report["extent"][1] > stack.shape[1] + 90
    assert np.array_equal(back.reshape(stack.shape), mask_on_planes(stack, report, volume >= 1100))

"""Limits and steps of segments on a phantom and on a part of a real series, against noctule.conf(5), "Segments, voxel for
voxel". Each definition is written down here again, with NumPy and scipy.ndimage alone."""

import subprocess

import numpy as np
import pydicom
import pytest
from conftest import BIN, SHARED, needs_shared, phantom
from scipy import ndimage
from test_run import exact_values, seg_masks

FACES, CORNERS = ndimage.generate_binary_structure(3, 1), ndimage.generate_binary_structure(3, 3)
WHOLE = (-5000, 5000)
# The voxels of these ranges are tissue, voxels that are not dense, and lung or air.
TISSUE, HALF, AIR = (-150, 200), (-5000, 60), (-5000, -400)
LIMITS = 'within = [ "Body" ]; minus = [ "Dense" ]; intersect = [ "Half" ];'
# Steps that add voxels, and their text.
ADDING = {"grow": "grow_mm = 7.0;", "close": "close_mm = 9.0;", "slices": 'fill = "slices";', "volume": 'fill = "volume";',
          "disk": 'grow_mm = 6.0; space = "slice";'}
BRIDGES = {"faces": ("cut_bridges_mm = 5.0;", FACES, False), "corners": ("cut_bridges_mm = 5.0; connectivity = 26;", CORNERS, False),
           "disks": ('cut_bridges_mm = 5.0; space = "slice";', FACES, True)}


def part_of_a_chest(folder):
    """Writes 20 slices of 150 x 150 voxels, whose faces cut body, lungs and bones."""
    folder.mkdir()
    images = [pydicom.dcmread(path) for path in (SHARED / "chest/low-dose-5mm/dicom").iterdir()]
    images.sort(key=lambda image: float(image.ImagePositionPatient[2]))
    for number, image in enumerate(images[14:34]):
        pixels = image.pixel_array[170:320, 120:270]
        image.Rows, image.Columns = pixels.shape
        image.PixelData = pixels.tobytes()
        image.save_as(folder / f"{number}.dcm")


def whole_phantom(folder):
    phantom(folder, "--kind", "chest", "--size", "96x80x20")


def offsets(spacing, mm, in_slice=False):
    """The ball: offsets (k, j, i) with (i sx)^2 + (j sy)^2 + (k sz)^2 <= mm^2; in_slice: those with k = 0."""
    sx, sy, sz = spacing
    reach = [0 if in_slice else int(mm / sz) + 1, int(mm / sy) + 1, int(mm / sx) + 1]
    k, j, i = np.ogrid[tuple(slice(-n, n + 1) for n in reach)]
    return (i * sx) ** 2 + (j * sy) ** 2 + (k * sz) ** 2 <= mm * mm


def grown(mask, ball):
    return ndimage.binary_dilation(mask, ball)


def shrunk(mask, ball):
    return ndimage.binary_erosion(mask, ball, border_value=1)


def closed(mask, ball):
    reach = [(n // 2, n // 2) for n in ball.shape]
    copy = ndimage.binary_erosion(ndimage.binary_dilation(np.pad(mask, reach), ball), ball)
    return copy[tuple(slice(low, size - high) for (low, high), size in zip(reach, copy.shape))]


def filled(mask, slices):
    if slices:
        return np.stack([filled(plane, False) for plane in mask])
    parts, _ = ndimage.label(~mask)
    touching = np.zeros(parts.max() + 1, bool)
    for axis in range(mask.ndim):
        touching[np.take(parts, [0, -1], axis)] = True
    touching[0] = True  # the mask itself
    return mask | ~touching[parts]


def bridges_cut(mask, ball, near):
    parts, count = ndimage.label(shrunk(mask, ball), near)
    union, times = np.zeros(mask.shape, bool), np.zeros(mask.shape, int)
    for part in range(1, count + 1):
        own = grown(parts == part, ball)
        union |= own
        times += ndimage.binary_dilation(own, near)
    return union & (times < 2), count


def level_set(allowed, start):
    parts, _ = ndimage.label(allowed, FACES)
    return np.isin(parts, np.setdiff1d(parts[start], 0))


class Case:
    """The masks of all segments below, from one job."""

    def __init__(self, folder, make):
        make(folder / "in")
        self.images = sorted((pydicom.dcmread(path) for path in (folder / "in").glob("*.dcm")),
                             key=lambda image: float(image.ImagePositionPatient[2]))
        self.values = exact_values(self.images)
        row, column = map(float, self.images[0].PixelSpacing)
        first, second = (float(image.ImagePositionPatient[2]) for image in self.images[:2])
        self.spacing = (column, row, second - first)
        segments = [f'{{ label = "{name}"; hidden = true; method = "range"; range = [ {low}, {high} ]; }}'
                    for name, (low, high) in {"Body": (-400, 5000), "Dense": (200, 5000), "Half": HALF}.items()]
        boxes = ", ".join('{ kind = "box"; center = { fraction = [ %s, 0.5, 0.5 ]; }; radius_voxels = [ %d.0, %d.0, %d.0 ]; }'
                          % (x, *self.radius) for x in self.centers)
        segments.append('{ label = "Boxes"; hidden = true; method = "range"; range = [ -5000, 5000 ]; shapes = ( %s ); }' % boxes)
        self.labels = []
        for label, body in self.bodies().items():
            self.labels.append(label)
            segments.append('{ label = "%s"; %s type = { code = "39607008"; scheme = "SCT"; meaning = "Lung"; }; }' % (label, body))
        config = folder / "noctule.conf"
        config.write_text(f'root = "{folder / "root"}"; pipelines = ( {{ name = "p"; segments = ( {", ".join(segments)} ); }} );')
        done = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "p", "-o", folder / "out", folder / "in"],
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        self.masks = dict(zip(self.labels, seg_masks(folder / "out/seg.dcm", self.images)))

    centers = ("0.25", "0.75")

    @property
    def radius(self):
        slices, rows, columns = self.values.shape
        return columns // 6, rows // 3, slices // 3

    def bodies(self):
        tissue = 'method = "range"; range = [ %d, %d ];' % TISSUE
        air = 'method = "range"; range = [ %d, %d ];' % AIR
        start = 'shapes = ( { kind = "box"; center = { fraction = [ 0.25, 0.5, 0.5 ]; }; radius_voxels = [ 8.0, 8.0, 4.0 ]; } );'
        made = {"Tissue": tissue, "Air": air,
                "Closed": air + "then = ( { close_mm = 11.0; } );",
                "Bounded": "range = [ %d, %d ]; %s within = [ \"Boxes\" ];" % (*TISSUE, start),
                "Started": "range = [ %d, %d ]; %s" % (*AIR, start)}
        for name, step in ADDING.items():
            made[f"Limited {name}"] = f"{tissue} {LIMITS} then = ( {{ {step} }} );"
        for name, (step, _, _) in BRIDGES.items():
            made[f"Cut {name}"] = f"{tissue} then = ( {{ {step} }} );"
        return made

    def range(self, limits):
        return (self.values >= limits[0]) & (self.values <= limits[1])

    def box(self, x, radius):
        z, y, x_ = np.indices(self.values.shape)
        size = self.values.shape[::-1]
        return np.logical_and.reduce([abs(at - share * (n - 1)) <= r for at, share, n, r in zip(
            (x_, y, z), (x, 0.5, 0.5), size, radius)])


@pytest.fixture(scope="module", params=[whole_phantom, pytest.param(part_of_a_chest, marks=needs_shared)],
                ids=lambda make: make.__name__)
def case(tmp_path_factory, request):
    return Case(tmp_path_factory.mktemp("limits"), request.param)


@pytest.mark.parametrize("name", ADDING)
def test_limits_hold_after_each_step(case, name):
    limits = case.range((-400, 5000)) & ~case.range((200, 5000)) & case.range(HALF)
    spacing = case.spacing
    step = {"grow": lambda mask: grown(mask, offsets(spacing, 7)), "close": lambda mask: closed(mask, offsets(spacing, 9)),
            "slices": lambda mask: filled(mask, True), "volume": lambda mask: filled(mask, False),
            "disk": lambda mask: grown(mask, offsets(spacing, 6, True))}[name]
    without = step(case.range(TISSUE) & limits)
    assert (without & ~limits).any(), "the step alone would add voxels outside of the limits"
    assert np.array_equal(case.masks[f"Limited {name}"], without & limits)


def test_within_bounds_the_growth_of_a_level_set(case):
    boxes = case.box(0.25, case.radius) | case.box(0.75, case.radius)
    tissue, start = case.range(TISSUE), case.box(0.25, (8, 8, 4))
    bounded = level_set(tissue & boxes, start)
    assert 0 < bounded.sum() < (level_set(tissue, start) & boxes).sum(), "growth outside would reach the other box"
    assert np.array_equal(case.masks["Bounded"], bounded)


def test_a_level_set_has_no_voxel_outside_of_its_range(case):
    air, start = case.range(AIR), case.box(0.25, (8, 8, 4))
    assert (start & ~air).any() and not (case.masks["Started"] & ~air).any()
    assert np.array_equal(case.masks["Started"], level_set(air, start)) and case.masks["Started"].any()


def test_a_closing_contains_its_mask(case):
    air, ball = case.range(AIR), offsets(case.spacing, 11)
    cut = ndimage.binary_erosion(ndimage.binary_dilation(air, ball), ball)
    assert (air & ~cut).any(), "without the padding it would lose voxels near the faces"
    assert not (air & ~case.masks["Closed"]).any()
    assert np.array_equal(case.masks["Closed"], closed(air, ball)) and case.masks["Closed"].sum() > air.sum()


@pytest.mark.parametrize("name", BRIDGES)
def test_bridges_are_cut_as_defined(case, name):
    _, near, in_slice = BRIDGES[name]
    expected, parts = bridges_cut(case.range(TISSUE), offsets(case.spacing, 5, in_slice), near)
    assert parts > 1 and 0 < expected.sum() < case.range(TISSUE).sum()
    assert np.array_equal(case.masks[f"Cut {name}"], expected)

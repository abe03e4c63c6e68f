"""noctule-phantom writes valid objects with known values, and the same series for the same options."""

import subprocess

import numpy
import pydicom
import pytest
import scipy.ndimage
from conftest import BIN, assert_valid, phantom, read_truth, run_program

PATIENTS = ("chest", "chest-open", "head-tilted", "body", "body-cut", "angiography", "angiography-touching")
KINDS = ("ct-head", "mr-brain", "pet", "sphere", "maze", *PATIENTS)


def read(files):
    """Returns the data sets of classic files in the order of their names."""
    return [pydicom.dcmread(path) for path in files]


def values(dataset):
    """Returns the real-world values of a classic image."""
    slope = float(dataset.get("RescaleSlope", 1))
    return dataset.pixel_array * slope + float(dataset.get("RescaleIntercept", 0))


def volume(files):
    return numpy.stack([values(dataset) for dataset in read(files)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [
    (), ("--multi-frame",), ("--signed",), ("--bits", "16"), ("--bits", "16", "--signed"), ("--tilt", "12"),
    ("--spacing", "0.5,0.75,1.25"),
], ids=" ".join)
def test_objects_are_valid(tmp_path, kind, options):
    files = phantom(tmp_path / "series", "--kind", kind, "--size", "33x31x5", *options)
    assert len(files) == (1 if "--multi-frame" in options else 5)
    for path in files:
        assert_valid(path)


@pytest.mark.parametrize("kind", KINDS)
def test_multi_frame_holds_the_same_pixels(tmp_path, kind):
    classic = phantom(tmp_path / "classic", "--kind", kind, "--size", "20x18x6")
    (single,) = phantom(tmp_path / "single", "--kind", kind, "--size", "20x18x6", "--multi-frame")
    dataset = pydicom.dcmread(single)
    assert dataset.NumberOfFrames == 6
    for frame, source in enumerate(read(classic)):
        groups = dataset.PerFrameFunctionalGroupsSequence[frame]
        rescale = groups.PixelValueTransformationSequence[0]
        assert float(rescale.RescaleSlope) == float(source.get("RescaleSlope", 1))
        assert groups.PlanePositionSequence[0].ImagePositionPatient == source.ImagePositionPatient
        assert (dataset.pixel_array[frame] == source.pixel_array).all()


def test_the_same_options_give_the_same_bytes(tmp_path):
    first = phantom(tmp_path / "first", "--size", "32x24x4")
    again = phantom(tmp_path / "again", "--size", "32x24x4")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]

    other = read(phantom(tmp_path / "other", "--size", "32x24x4", "--seed", "2"))
    larger = read(phantom(tmp_path / "larger", "--size", "32x25x4"))
    first = read(first)
    assert len({dataset.SeriesInstanceUID for dataset in first}) == 1
    assert len({dataset.SOPInstanceUID for dataset in first + other + larger}) == 12
    assert len({d[0].SeriesInstanceUID for d in (first, other, larger)}) == 3
    assert (first[1].pixel_array != other[1].pixel_array).any()
    for dataset in first + other:
        assert dataset.file_meta.MediaStorageSOPInstanceUID == dataset.SOPInstanceUID
        assert dataset.PatientName == "Phantom^Noctule"


def test_a_head_has_the_densities_of_one(tmp_path):
    head = volume(phantom(tmp_path / "series", "--size", "64x60x20"))
    assert head.shape == (20, 60, 64)
    assert abs(head[:, 0, 0] + 1000).max() <= 20
    # White matter next to the ventricles, then the skull on the way out.
    assert 20 <= head[10, 30, 32] <= 50
    assert head[10, 30].max() >= 980 and head[10, :, 32].max() >= 980
    brain, _ = scipy.ndimage.label((head >= -5) & (head <= 80))
    at_center = brain == brain[10, 30, 32]
    assert not at_center[:, 0].any() and not at_center[0].any()
    assert 0.1 < at_center.mean() < 0.5


@pytest.mark.parametrize("options,error", [
    (("--signed",), 0.5), (("--bits", "16"), 0.5), (("--bits", "16", "--signed"), 0.5), (("--bits", "8"), 8.5),
    (("--bits", "8", "--signed"), 8.5),
], ids=str)
def test_every_way_of_storing_means_the_same(tmp_path, options, error):
    plain = volume(phantom(tmp_path / "plain", "--size", "32x32x4"))
    files = phantom(tmp_path / "other", "--size", "32x32x4", *options)
    assert abs(volume(files) - plain).max() <= error
    dataset = pydicom.dcmread(files[0])
    assert dataset.PixelRepresentation == ("--signed" in options)
    assert dataset.BitsAllocated == (8 if "8" in options else 16)
    assert dataset.HighBit == dataset.BitsStored - 1


def test_slopes_of_pet_differ_and_values_do_not(tmp_path):
    datasets = read(phantom(tmp_path / "series", "--kind", "pet", "--size", "40x40x10"))
    assert len({float(dataset.RescaleSlope) for dataset in datasets}) == 7
    hot = [values(dataset)[18, 18] for dataset in datasets[4:6]]
    assert all(abs(value - 20000) < 25 for value in hot)


def test_geometry(tmp_path):
    datasets = read(phantom(tmp_path / "series", "--size", "10x12x4", "--spacing", "0.5,0.75,2.5"))
    assert [float(value) for value in datasets[0].PixelSpacing] == [0.75, 0.5]
    positions = numpy.array([dataset.ImagePositionPatient for dataset in datasets], float)
    assert numpy.allclose(positions[0], [-2.25, -4.125, 0])
    assert numpy.allclose(numpy.diff(positions, axis=0), [0, 0, 2.5])
    assert [dataset.ImagesInAcquisition for dataset in datasets] == [4] * 4


def test_a_tilted_gantry_shears_the_stack(tmp_path):
    datasets = read(phantom(tmp_path / "series", "--size", "10x12x4", "--tilt", "15"))
    orientation = numpy.array(datasets[0].ImageOrientationPatient, float)
    normal = numpy.cross(orientation[:3], orientation[3:])
    step = numpy.diff([dataset.ImagePositionPatient for dataset in datasets], axis=0).astype(float)
    assert numpy.allclose(step, step[0]) and numpy.allclose(step[0], [0, 0, 40])
    assert numpy.allclose(step[0] @ normal, 40 * numpy.cos(numpy.radians(15)))
    assert datasets[0].GantryDetectorTilt == 15


def test_defects_of_a_series(tmp_path):
    def positions(*options):
        folder = tmp_path / "".join(options)
        datasets = read(phantom(folder, "--size", "8x8x6", *options))
        return datasets, [round(float(d.ImagePositionPatient[2]) * 6 / 160) for d in datasets]

    datasets, at = positions("--gap", "3")
    assert at == [0, 1, 3, 4, 5] and datasets[0].ImagesInAcquisition == 6
    datasets, at = positions("--duplicate", "3")
    assert at == [0, 1, 2, 3, 4, 5, 2]
    assert len({dataset.SOPInstanceUID for dataset in datasets}) == 7
    datasets, at = positions("--instances-lie")
    assert len(at) == 6 and datasets[0].ImagesInAcquisition > 6
    datasets, at = positions("--kind", "mr-brain", "--echoes", "2")
    assert at == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert [float(dataset.EchoTime) for dataset in datasets[:2]] == [5, 15]


def test_sphere_and_maze_are_exact(tmp_path):
    ball = volume(phantom(tmp_path / "ball", "--kind", "sphere", "--size", "40x44x48"))
    z, y, x = numpy.ogrid[:48, :44, :40]
    inside = (z - 23.5) ** 2 + (y - 21.5) ** 2 + (x - 19.5) ** 2 <= 10 ** 2
    assert ((ball == 40) == inside).all() and (ball[~inside] == -1000).all()

    for size in ("9x9x9", "8x10x7", "16x7x5"):
        maze = volume(phantom(tmp_path / size, "--kind", "maze", "--size", size)) == 40
        _, components = scipy.ndimage.label(maze)
        assert components == 1
        neighbours = scipy.ndimage.convolve(
            maze.astype(int), scipy.ndimage.generate_binary_structure(3, 1).astype(int), mode="constant") - 1
        assert neighbours[maze].max() == 2 and (neighbours[maze] == 1).sum() == 2


def with_truth(folder, kind, *options):
    """Returns the values of a phantom, and its tissues: {name: mask}."""
    files = phantom(folder, "--kind", kind, "--truth", folder / "truth.seg.nrrd", *options)
    return volume(files), read_truth(folder / "truth.seg.nrrd")


def inside(mask):
    """Returns the voxels that the blur within the plane does not change."""
    return scipy.ndimage.binary_erosion(mask, numpy.ones((1, 3, 3)), border_value=1)


@pytest.mark.parametrize("kind,noise,worth", [
    ("ct-head", 10, {"table": 200, "scalp": 50, "skull": 1000, "grey matter": 38, "white matter": 33, "ventricle": 5}),
    ("pet", 20, {"warm body": 2000, "hot spot": 12000, "hotter spot": 20000}),
    ("sphere", 0, {"ball": 40}), ("maze", 0, {"corridor": 40}),
    ("chest", 50, {"table": -150, "subcutaneous fat": -100, "muscle": 50, "bone": 700, "right lung": -850,
                   "left lung": -850, "emphysema": -958, "airway": -1000, "heart": 45, "cord": 35}),
    ("head-tilted", 16, {"scalp": 50, "skull": 1000, "grey matter": 38, "white matter": 33, "ventricle": 5,
                         "sinus": -950, "subcutaneous fat": -100}),
    ("body", 40, {"subcutaneous fat": -100, "visceral fat": -100, "organ": 55, "muscle": 50, "marrow": 180}),
])
def test_the_truth_equals_the_drawn_tissues(tmp_path, kind, noise, worth):
    values, truth = with_truth(tmp_path, kind, "--size", "220x210x20" if kind in PATIENTS else "60x50x20")
    surely = inside if kind in PATIENTS else lambda mask: mask
    assert not set(worth) - set(truth)
    rest = numpy.ones(values.shape, bool)
    for name, mask in truth.items():
        assert mask.any() and (rest[mask]).all(), f"{name}: nowhere, or where something else is"
        rest &= ~mask
        if name in worth:
            found = values[surely(mask)]
            assert found.size and abs(found - worth[name]).max() <= noise * 1.08 + 0.6, name
    air = values[surely(rest)]
    assert abs(air - {"pet": 20}.get(kind, -1000)).max() <= noise * 1.08 + 24.5  # 12 bits may truncate it


def test_the_truth_has_the_position_of_the_images(tmp_path):
    files = phantom(tmp_path / "in", "--kind", "head-tilted", "--size", "48x40x20", "--truth", tmp_path / "truth.nrrd")
    header = (tmp_path / "truth.nrrd").read_bytes().partition(b"\n\n")[0].decode()
    fields = dict(line.split(": ", 1) for line in header.splitlines() if ": " in line)
    vectors = numpy.array(eval(fields["space directions"].replace(") (", "),("), {"__builtins__": {}}))
    datasets = read(files)
    assert datasets[0].GantryDetectorTilt == 18 and datasets[0].BodyPartExamined == "HEAD"
    orientation = numpy.array(datasets[0].ImageOrientationPatient, float)
    assert numpy.allclose(vectors[0], 5 * orientation[:3]) and numpy.allclose(vectors[1], 6 * orientation[3:], atol=1e-5)
    assert numpy.allclose(vectors[2], [0, 0, 10])
    assert numpy.allclose(eval(fields["space origin"]), datasets[0].ImagePositionPatient, atol=1e-5)


def test_volumes_of_the_truth(tmp_path):
    size = ("--size", "80x80x60")
    told = run_program("noctule-phantom", "--kind", "chest", *size, "--output", tmp_path / "one",
                       "--truth", tmp_path / "one.nrrd").stdout.splitlines()[1:]
    ml = {line[:20].strip(): float(line[20:].removesuffix(" ml")) for line in told}
    truth = read_truth(tmp_path / "one.nrrd")
    assert ml.keys() == truth.keys()
    assert all(abs(mask.sum() * 0.125 - ml[name]) < 1e-3 for name, mask in truth.items())
    assert 1900 < ml["left lung"] < ml["right lung"] < 2312, "less than its ellipsoid of 2312 ml, and less beside the heart"
    for n, options in enumerate((("--seed", "9"), ("--gap", "3"), ("--count", "2"), ("--multi-frame",))):
        phantom(tmp_path / f"again{n}", "--kind", "chest", *size, *options, "--truth", tmp_path / f"again{n}.nrrd")
        assert (tmp_path / f"again{n}.nrrd").read_bytes() == (tmp_path / "one.nrrd").read_bytes(), options
    ball = read_truth_of(tmp_path, "sphere", "--size", "40x40x40", "--spacing", "1,1,1")["ball"]
    assert abs(ball.sum() / (4 / 3 * numpy.pi * 1000) - 1) < 0.01


def read_truth_of(tmp_path, kind, *options):
    return with_truth(tmp_path / kind, kind, *options)[1]


def joined(mask, a, b):
    """Returns whether a component of the mask contains voxels of both."""
    components, _ = scipy.ndimage.label(mask)
    return bool((set(components[a & mask]) & set(components[b & mask])) - {0})


def test_a_chest_has_lungs_connected_to_airways(tmp_path):
    truth = read_truth_of(tmp_path, "chest", "--size", "200x200x100")
    right, left = truth["right lung"], truth["left lung"]
    air = right | left | truth["airway"] | truth["emphysema"]
    assert joined(air, right, left) and not joined(right | left, right, left)
    assert joined(air, right, truth["airway"] & (numpy.indices(air.shape)[0] == 99)), "the trachea leaves at the top"
    assert not joined(air, right, numpy.indices(air.shape)[1] == 0)
    volume_of = {name: mask.sum() * 0.012 for name, mask in truth.items()}
    assert 80 < volume_of["emphysema"] < 95 and 30 < volume_of["airway"] < 60 and 50 < volume_of["vessel"] < 75
    assert not truth["table"][:, :150].any() and joined(truth["table"] | truth["skin"], truth["table"], truth["skin"])


def test_an_open_chest_connects_lung_and_outside_air(tmp_path):
    chest = read_truth_of(tmp_path, "chest", "--size", "200x200x100")
    truth = read_truth_of(tmp_path, "chest-open", "--size", "200x200x100")
    outside = ~numpy.logical_or.reduce(list(truth.values()))
    for organ in ("right lung", "airway"):
        assert joined(outside | truth[organ], truth[organ], numpy.indices(outside.shape)[2] == 0), organ
    assert not joined(outside | truth["left lung"], truth["left lung"], numpy.indices(outside.shape)[2] == 0)
    assert 5 < (chest["right lung"].sum() - truth["right lung"].sum()) * 0.012 < 10


def test_a_tilted_gantry_does_not_tilt_the_head(tmp_path):
    """Equal patient coordinates of a tilted and an upright stack have equal tissues."""
    tilted = read_truth_of(tmp_path / "18", "head-tilted", "--size", "60x60x50")["skull"]
    upright = read_truth_of(tmp_path / "0", "head-tilted", "--size", "60x60x50", "--tilt", "0")["skull"]
    angle = numpy.radians(18)
    k, j, i = numpy.nonzero(numpy.ones(tilted.shape, bool))
    row, slice_ = (j - 29.5) * 4 * numpy.cos(angle) / 4 + 29.5, k + (j - 29.5) * numpy.sin(angle)
    there = (slice_ >= 0) & (slice_ <= 49)
    expected = upright[numpy.rint(slice_[there]).astype(int), numpy.rint(row[there]).astype(int), i[there]]
    assert (expected == tilted[k[there], j[there], i[there]]).mean() > 0.98


def test_opening_closes_the_holes_of_a_skull(tmp_path):
    values, truth = with_truth(tmp_path, "head-tilted", "--size", "160x160x134", "--tilt", "0")
    brain = truth["grey matter"] | truth["white matter"]
    soft = (values >= 0) & (values <= 80)
    assert joined(soft, brain, truth["scalp"])
    z, y, x = numpy.ogrid[-4:5, -4:5, -4:5]
    opened = scipy.ndimage.binary_opening(soft, x ** 2 + y ** 2 + z ** 2 <= (5 / 1.5) ** 2)
    assert not joined(opened, brain, truth["scalp"])
    assert 1350 < brain.sum() * 240 * 240 * 200 / values.size / 1000 < 1480


def test_a_body_has_arms_and_a_truncated_one_has_none(tmp_path):
    truth = read_truth_of(tmp_path, "body", "--size", "240x240x20")
    body = numpy.logical_or.reduce([mask for name, mask in truth.items() if name != "table"])
    body |= scipy.ndimage.binary_fill_holes(body)
    components, count = scipy.ndimage.label(body)
    assert count == 2, "one arm touches the trunk"
    edges = numpy.ones(body.shape, bool)
    edges[:, 1:-1, 1:-1] = False
    assert not (body & edges).any()
    cut = read_truth_of(tmp_path, "body-cut", "--size", "150x150x20")
    assert (cut["skin"] & edges[:, :150, :150]).any() and joined(cut["table"] | cut["skin"], cut["table"], cut["skin"])


def test_several_series(tmp_path):
    files = phantom(tmp_path / "many", "--size", "8x8x2", "--count", "3", "--seed", "7")
    assert [str(path.relative_to(tmp_path / "many")) for path in files] == [
        f"{n:05}/IM{i:05}.dcm" for n in (1, 2, 3) for i in (1, 2)]
    alone = phantom(tmp_path / "alone", "--size", "8x8x2", "--seed", "8")
    assert [path.read_bytes() for path in alone] == [path.read_bytes() for path in files[2:4]]


def test_kinds_of_series(tmp_path):
    files = phantom(tmp_path / "many", "--series", "mr-temporal", "--size", "9x7x3", "--volumes", "5", "--seed", "2")
    datasets = read(files)
    assert len(files) == 15 and {dataset.pixel_array.shape for dataset in datasets} == {(7, 9)}
    assert [int(dataset.TemporalPositionIdentifier) for dataset in datasets] == [v for v in range(1, 6) for _ in range(3)]
    assert (datasets[0].pixel_array != datasets[3].pixel_array).any(), "volumes have noise of their own"
    again = phantom(tmp_path / "again", "--series", "mr-temporal", "--size", "9x7x3", "--volumes", "5", "--seed", "2")
    assert [path.read_bytes() for path in files] == [path.read_bytes() for path in again]
    other = read(phantom(tmp_path / "other", "--series", "mr-temporal", "--size", "9x7x3", "--volumes", "5"))
    assert not {d.SOPInstanceUID for d in datasets} & {d.SOPInstanceUID for d in other}


def test_tiles_hold_the_slices(tmp_path):
    tiled = read(phantom(tmp_path / "tiled", "--series", "siemens-mosaic", "--size", "24x20x8"))[0].pixel_array
    plain = read(phantom(tmp_path / "plain", "--series", "mr-plain"))
    for n, dataset in enumerate(plain):
        y, x = 20 * (n // 3), 24 * (n % 3)
        assert (tiled[y:y + 20, x:x + 24] == dataset.pixel_array).all()
    assert (tiled[40:, 48:] == 0).all(), "the ninth tile is empty"


@pytest.mark.parametrize("arguments", [
    (), ("--output", "x", "--kind", "cat"), ("--output", "x", "--size", "8x8"), ("--output", "x", "--size", "0x8x8"),
    ("--output", "x", "--size", "8x8x8x"), ("--output", "x", "--spacing", "1,0,1"), ("--output", "x", "--bits", "10"),
    ("--output", "x", "--seed", "-1"), ("--output", "x", "--tilt", "nan"), ("--output", "x", "--gap", "65"),
    ("--output", "x", "--echoes", "2", "--multi-frame"), ("--output", "x", "more"), ("--no-such",),
    ("--output", "x", "--series", "none"), ("--output", "x", "--volumes", "2"),
    ("--output", "x", "--series", "ct-plain", "--truth", "y"),
], ids=" ".join)
def test_wrong_arguments(tmp_path, arguments):
    result = subprocess.run([BIN / "noctule-phantom", *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr and not result.stdout
    assert not list(tmp_path.iterdir())


def test_an_unwritable_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    result = subprocess.run([BIN / "noctule-phantom", "--output", tmp_path / "file" / "x"],
                            capture_output=True, text=True)
    assert result.returncode == 1 and "Not a directory" in result.stderr
    result = subprocess.run([BIN / "noctule-phantom", "--size", "8x8x2", "--output", tmp_path / "c",
                             "--truth", tmp_path / "none" / "t.nrrd"], capture_output=True, text=True)
    assert result.returncode == 1 and f"{tmp_path}/none/t.nrrd: No such file" in result.stderr
    files = phantom(tmp_path / "a" / "b", "--size", "8x8x2")
    assert sorted((tmp_path / "a" / "b").iterdir()) == files

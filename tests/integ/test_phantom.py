"""noctule-phantom writes what it says: valid objects, known values, one series for the same options."""

import subprocess

import numpy
import pydicom
import pytest
import scipy.ndimage
from conftest import BIN, assert_valid, phantom

KINDS = ("ct-head", "mr-brain", "pet", "sphere", "maze")


def read(files):
    """Data sets of classic files in the order of their names."""
    return [pydicom.dcmread(path) for path in files]


def values(dataset):
    """Real-world values of a classic image."""
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
    # White matter beside the ventricles, then the skull somewhere on the way out.
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


def test_what_can_be_wrong_with_a_series(tmp_path):
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
], ids=" ".join)
def test_wrong_arguments(tmp_path, arguments):
    result = subprocess.run([BIN / "noctule-phantom", *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr and not result.stdout
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    result = subprocess.run([BIN / "noctule-phantom", "--output", tmp_path / "file" / "x"],
                            capture_output=True, text=True)
    assert result.returncode == 1 and "Not a directory" in result.stderr
    files = phantom(tmp_path / "a" / "b", "--size", "8x8x2")
    assert sorted((tmp_path / "a" / "b").iterdir()) == files

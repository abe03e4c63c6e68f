"""FRACTIONAL segmentation objects: maps of fuzzy connectedness as probabilities of 8 bits.

The checks are those of test_seg.py, with expected values rounded here in exact integers."""

import subprocess

import highdicom
import numpy
import pydicom
import pytest

from conftest import SHARED, needs_shared, run_program
from test_seg import apart, classic, enhanced, judge, planes_of, write


def stored_values(maps):
    """Returns connectedness * 255 / 65535, rounded half up."""
    return ((maps.astype(numpy.int64) * 510 + 65535) // 131070).astype(numpy.uint8)


def maps_of(segments, planes, rows, columns, empty=()):
    """Overlapping hills around a centre each, over noise of all values. If there are more than two planes, the first
    and the last contain only values that are rounded to 0, and so do the segments in `empty`."""
    generator = numpy.random.default_rng(11)
    z, y, x = numpy.ogrid[:planes, :rows, :columns]
    maps = numpy.empty((segments, planes, rows, columns), numpy.uint16)
    for segment in range(segments):
        centre = columns * (segment + 1) / (segments + 1)
        squares = ((x - centre) / columns) ** 2 + ((y - rows / 2) / rows) ** 2 + ((z - planes / 2) / planes) ** 2
        hill = 65535 * numpy.exp(-4 * squares)
        noise = generator.integers(0, 65536, hill.shape)
        maps[segment] = numpy.where(generator.random(hill.shape) < 0.8, hill, noise)
        maps[segment, planes // 2, rows // 2, columns // 2] = 65535
    below_half = generator.integers(0, 129, maps.shape)  # 128 is the last value rounded to 0
    nothing = numpy.zeros(maps.shape, bool)
    if planes > 2:
        nothing[:, [0, -1]] = True
    nothing[list(empty)] = True
    return numpy.where(nothing, below_half, maps).astype(numpy.uint16)


@pytest.mark.parametrize(
    "planes, rows, columns, segments",
    [(12, 64, 64, 1), (7, 257, 255, 2), (1, 33, 31, 1), (1, 5, 3, 2), (3, 1, 1, 1), (5, 3, 1, 1),
     (12, 512, 512, 3)],
)
def test_shapes(tmp_path, planes, rows, columns, segments):
    paths = classic(tmp_path / "in", planes, rows, columns)
    maps = maps_of(segments, planes, rows, columns)
    seg = judge(*write(tmp_path, paths, maps), paths, stored_values(maps))
    assert seg.NumberOfFrames == segments * (planes - 2 if planes > 2 else planes)


def test_every_value(tmp_path):
    """All 65536 values in one frame."""
    paths = classic(tmp_path / "in", 1, 256, 256)
    maps = numpy.arange(65536, dtype=numpy.uint16).reshape(1, 1, 256, 256)
    seg = judge(*write(tmp_path, paths, maps), paths, stored_values(maps))
    nearest = numpy.rint(numpy.arange(65536) / 257.0)
    assert numpy.array_equal(seg.pixel_array.ravel(), nearest)


def test_probabilities_by_source_instance(tmp_path):
    """The values of a reader: connectedness from 0 to 1, in the order of the requested source images."""
    paths = classic(tmp_path / "in", 6, 40, 44)
    maps = maps_of(2, 6, 40, 44)
    output, _ = write(tmp_path, paths, maps)
    seg = highdicom.seg.Segmentation.from_dataset(pydicom.dcmread(output))
    uids = [plane.source.SOPInstanceUID for plane in planes_of(paths)]
    pixels = seg.get_pixels_by_source_instance(
        uids[::-1], segment_numbers=[2, 1], assert_missing_frames_are_empty=True, rescale_fractional=True)
    expected = numpy.moveaxis(maps[::-1, ::-1] / 65535.0, 0, -1)
    assert pixels.max() == 1.0
    assert numpy.abs(pixels - expected).max() <= 128 / 65535 + 1e-7


def test_frames_as_images(tmp_path):
    """DCMTK's image library, which many viewers use, displays the stored values."""
    paths = classic(tmp_path / "in", 3, 31, 33)
    maps = maps_of(1, 3, 31, 33)
    maps[:, 1, 0, 0] = 0
    output, _ = write(tmp_path, paths, maps)
    image = tmp_path / "frame.pgm"
    done = subprocess.run(["dcm2pnm", "--frame", "1", "--min-max-window", "--write-raw-pnm", output, image],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pixels = numpy.frombuffer(image.read_bytes()[-31 * 33:], numpy.uint8).reshape(31, 33)
    assert numpy.array_equal(pixels, stored_values(maps)[0, 1])


def test_an_empty_segment_among_others(tmp_path):
    paths = classic(tmp_path / "in", 5, 30, 31)
    maps = maps_of(3, 5, 30, 31, empty=[1])
    seg = judge(*write(tmp_path, paths, maps), paths, stored_values(maps))
    assert len(seg.SegmentSequence) == 3 and seg.NumberOfFrames == 6


def test_empty_frames_kept(tmp_path):
    paths = classic(tmp_path / "in", 5, 31, 33)
    maps = maps_of(2, 5, 31, 33, empty=[1])
    written = write(tmp_path, paths, maps, options=["--keep-empty-frames"])
    seg = judge(*written, paths, stored_values(maps), keep_empty=True)
    assert seg.NumberOfFrames == 10


def test_no_connected_voxel(tmp_path):
    """Connectedness so low that every stored value is 0: no object, unless empty frames are kept."""
    paths = classic(tmp_path / "in", 3, 8, 8)
    maps = numpy.full((1, 3, 8, 8), 128, numpy.uint16)
    raw = tmp_path / "voxels.raw"
    maps.astype("<u2").tofile(raw)
    done = run_program("write_seg", "--fractional", raw, tmp_path / "seg.dcm", *paths, check=False)
    assert done.returncode == 1 and done.stderr.startswith("SEG_EMPTY")
    written = write(tmp_path, paths, maps, options=["--keep-empty-frames"])
    judge(*written, paths, stored_values(maps), keep_empty=True)


def test_enhanced_multi_frame(tmp_path):
    paths = enhanced(tmp_path / "in", 11, 33, 47)
    maps = maps_of(2, 11, 33, 47)
    judge(*write(tmp_path, paths, maps), paths, stored_values(maps))


def test_oblique_planes(tmp_path):
    paths = classic(tmp_path / "in", 6, 40, 44, oblique=True)
    maps = maps_of(2, 6, 40, 44)
    judge(*write(tmp_path, paths, maps), paths, stored_values(maps))


def test_same_input_same_bytes(tmp_path):
    paths = classic(tmp_path / "in", 6, 40, 44)
    maps = maps_of(2, 6, 40, 44)
    first = write(tmp_path, paths, maps)[0].read_bytes()
    assert write(tmp_path, paths[::-1], maps)[0].read_bytes() == first


def test_both_objects_of_a_job(tmp_path):
    """Both objects have one study and one frame of reference, separate series, and the same findings."""
    paths = classic(tmp_path / "in", 6, 40, 44)
    maps = maps_of(2, 6, 40, 44)
    fractional = pydicom.dcmread(write(tmp_path, paths, maps)[0])
    binary = pydicom.dcmread(write(tmp_path, paths, apart(2, 6, 40, 44))[0])
    assert fractional.StudyInstanceUID == binary.StudyInstanceUID
    assert fractional.FrameOfReferenceUID == binary.FrameOfReferenceUID
    assert fractional.SOPInstanceUID != binary.SOPInstanceUID
    assert fractional.SeriesInstanceUID != binary.SeriesInstanceUID
    organizations = [seg.DimensionOrganizationSequence[0].DimensionOrganizationUID for seg in (fractional, binary)]
    assert organizations[0] != organizations[1]
    assert [item.TrackingUID for item in fractional.SegmentSequence] == [
        item.TrackingUID for item in binary.SegmentSequence]
    assert fractional.SeriesDescription == "test-pipeline segmentation, fractional"


@needs_shared
def test_real_series(tmp_path):
    paths = sorted((SHARED / "ct-head-5mm").glob("*.dcm"))
    planes = planes_of(paths)
    maps = maps_of(1, len(planes), planes[0].source.Rows, planes[0].source.Columns)
    judge(*write(tmp_path, paths, maps), paths, stored_values(maps))

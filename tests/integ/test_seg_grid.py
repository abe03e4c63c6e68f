"""`seg_grid = "upright"`: segmentations of tilted and unevenly spaced stacks on the upright grid.

The reference is NumPy's definition of the grid (test_grid.py). highdicom, SimpleITK and dcmqi read the volume."""

import subprocess

import highdicom
import numpy as np
import pydicom
import pytest
import scipy.spatial
import SimpleITK
from conftest import assert_valid, phantom
from test_check_config import CONFIG, check
from test_grid import Reference, ball, noctule, segment, uneven
from test_run import seg_masks
from test_seg_labelmap import DCMQI
from test_segments import oblique
from test_sr import assert_dciodvfy_is_content

UPRIGHT = 'seg_grid = "upright";'
TILTED = ("--size", "70x61x23", "--tilt", "18.5")
UNEVEN = ("--size", "48x40x21", "--spacing", "2,2,4")


def rotated(rows, columns, place=(-31.5, 12.25, 700.0)):
    """Returns a change that rotates the planes of a series as a whole, so that their shear stays."""
    def change(files):
        turn = np.column_stack([rows, columns, np.cross(rows, columns)])
        for file in files:
            dataset = pydicom.dcmread(file)
            turned = turn @ np.array(dataset.ImagePositionPatient, float)
            dataset.ImagePositionPatient = [f"{c:.9g}" for c in turned + place]
            cosines = np.array(dataset.ImageOrientationPatient, float).reshape(2, 3)
            dataset.ImageOrientationPatient = [f"{c:.10f}" for axis in cosines for c in turn @ axis]
            dataset.save_as(file)
    return change


def both(first, second):
    def change(files):
        first(files)
        second(files)
    return change


GEOMETRIES = {
    "tilted": (TILTED, None, 0),
    "tilted-back": (("--size", "70x61x23", "--tilt", "-12", "--bits", "16", "--signed"), None, 0),
    "bytes": (("--size", "70x61x23", "--tilt", "9", "--bits", "8"), None, 0),
    "thick": (("--size", "50x61x12", "--spacing", "2.5,3,9", "--tilt", "15"), None, 0),
    "thin": (TILTED, None, 2.5),
    "sagittal": (TILTED, rotated((0, 1, 0), (0, 0, -1)), 0),
    "coronal": (TILTED, rotated((1, 0, 0), (0, 0, -1)), 0),
    "oblique": (TILTED, rotated(*oblique()), 0),
    "flipped": (TILTED, rotated((-1, 0, 0), (0, -1, 0)), 0),
    "uneven": (UNEVEN, uneven, 0),
    "uneven-oblique": (UNEVEN, both(uneven, rotated(*oblique())), 0),
    "uneven-tilted": (("--size", "70x61x23", "--spacing", "2,2,4", "--tilt", "12"), uneven, 2.0),
}


def place_of(reference, x, y, z):
    """Returns the point of a voxel of the grid in mm."""
    along = np.array(reference.report["origin"]) + np.array([x, y, z]) * reference.report["spacing"]
    return reference.origins[0] + along[0] * reference.axes[0] + along[1] * reference.axes[1] + along[2] * reference.normal


def assert_geometry(seg, reference, files):
    """The frames are slices of the grid, and refer to all images of the source together."""
    columns, rows, slices = reference.report["extent"]
    assert (seg.Columns, seg.Rows) == (columns, rows)
    source = [pydicom.dcmread(file, stop_before_pixels=True) for file in files]
    assert seg.FrameOfReferenceUID == source[0].FrameOfReferenceUID
    shared = seg.SharedFunctionalGroupsSequence[0]
    (derivation,) = shared.DerivationImageSequence
    images = derivation.SourceImageSequence
    assert sorted(image.ReferencedSOPInstanceUID for image in images) == sorted(image.SOPInstanceUID for image in source)
    assert {image.SpatialLocationsPreserved for image in images} == {"NO"}
    assert len(seg.ReferencedSeriesSequence[0].ReferencedInstanceSequence) == len(source)
    measures = shared.PixelMeasuresSequence[0]
    assert float(measures.SpacingBetweenSlices) == pytest.approx(reference.report["spacing"][2], abs=1e-6)
    assert float(measures.SliceThickness) == pytest.approx(reference.report["spacing"][2], abs=1e-6)
    assert list(map(float, measures.PixelSpacing)) == pytest.approx(reference.report["spacing"][1::-1])
    for frame in seg.PerFrameFunctionalGroupsSequence:
        assert "DerivationImageSequence" not in frame


def assert_voxels(seg, reference, mask):
    """Each frame has the mask of the slice at its position, and slices without a frame are empty."""
    seen = np.zeros(len(mask), bool)
    for pixels, frame in zip(seg.pixel_array.reshape(-1, seg.Rows, seg.Columns), seg.PerFrameFunctionalGroupsSequence,
                             strict=True):
        place = np.array(frame.PlanePositionSequence[0].ImagePositionPatient, float)
        z = round(float((place - place_of(reference, 0, 0, 0)) @ reference.normal) / reference.report["spacing"][2])
        assert np.abs(place - place_of(reference, 0, 0, z)).max() < 1e-4 and not seen[z]
        assert np.array_equal(pixels.astype(bool), mask[z])
        seen[z] = True
    assert not mask[~seen].any() and mask[seen].any(axis=(1, 2)).all()


def assert_same_points(points, reference, mask):
    """Compares points in mm with those of the mask's voxels, in any order."""
    expected = np.array([place_of(reference, x, y, z) for z, y, x in np.argwhere(mask)])
    assert len(points) == len(expected) > 100
    distances, nearest = scipy.spatial.KDTree(points).query(expected)
    assert distances.max() < 1e-3 and len(set(nearest)) == len(expected)


def assert_highdicom_reads(path, reference, mask):
    """highdicom finds a regular volume, and has each voxel at its place in the patient."""
    volume = highdicom.seg.segread(path).get_volume(segment_numbers=[1], combine_segments=True)
    found = np.argwhere(volume.array > 0)
    points = volume.map_indices_to_reference(found)
    assert_same_points(points, reference, mask)


def assert_simpleitk_reads(path, reference, mask):
    """SimpleITK loads the frames as a volume."""
    image = SimpleITK.ReadImage(str(path))
    used = np.flatnonzero(mask.any(axis=(1, 2)))
    array = SimpleITK.GetArrayFromImage(image)
    assert np.array_equal(array > 0, mask[used])
    for x, y, z in ((0, 0, 0), (array.shape[2] - 1, 0, 0), (0, array.shape[1] - 1, 0), (0, 0, len(array) - 1)):
        here = image.TransformIndexToPhysicalPoint((int(x), int(y), int(z)))
        assert np.abs(np.array(here) - place_of(reference, x, y, used[0] + z)).max() < 1e-3


def assert_dcmqi_reads(path, folder, reference, mask):
    """dcmqi, whose volumes end at the first and last slice with voxels, has each voxel at its place in the patient."""
    subprocess.run([DCMQI, "--inputDICOM", path, "--outputDirectory", folder, "--prefix", "dcmqi", "-t", "nrrd"], check=True,
                   capture_output=True)
    image = SimpleITK.ReadImage(str(folder / "dcmqi-1.nrrd"))
    found = [image.TransformIndexToPhysicalPoint(tuple(map(int, place[::-1])))
             for place in np.argwhere(SimpleITK.GetArrayFromImage(image) > 0)]
    assert_same_points(np.array(found), reference, mask)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_grid_is_the_reference(tmp_path, name):
    options, change, mm = GEOMETRIES[name]
    files = phantom(tmp_path / "in", *options)
    if change:
        change(files)
    output, job = noctule(tmp_path, files, segment(0, 80, 35), options=f"{UPRIGHT} grid = {{ mm = {float(mm)}; }};")
    assert job["volume"]["straightened"]
    reference = Reference(files, mm)
    mask = reference.level_set(0, 80, 35)
    seg = pydicom.dcmread(output / "seg.dcm")
    assert_geometry(seg, reference, files)
    assert_voxels(seg, reference, mask)
    assert_highdicom_reads(output / "seg.dcm", reference, mask)
    assert_simpleitk_reads(output / "seg.dcm", reference, mask)
    if DCMQI:
        assert_dcmqi_reads(output / "seg.dcm", tmp_path, reference, mask)
    assert_valid(output / "seg.dcm")


@pytest.mark.parametrize("tilt", ("18.5", "30"))
def test_a_ball_has_its_place_and_volume_in_the_patient(tmp_path, tilt):
    files, middle = ball(tmp_path / "in", tilt)
    output, _ = noctule(tmp_path, files, segment(-480, 3000, 20, f"mm = [ {middle[0]}, {middle[1]}, {middle[2]} ];"),
                        options=UPRIGHT)
    volume = highdicom.seg.segread(output / "seg.dcm").get_volume(segment_numbers=[1], combine_segments=True)
    points = volume.map_indices_to_reference(np.argwhere(volume.array > 0))
    assert len(points) * np.prod(volume.spacing) == pytest.approx(4 / 3 * np.pi * 30**3, rel=0.015)
    assert np.abs(points.mean(axis=0) - middle).max() < 0.2
    assert np.linalg.norm(points - middle, axis=1).max() < 30 + 2.5


def test_maps_and_several_segments(tmp_path):
    """Connectedness maps are on the grid too. Their frames are those of the BINARY segmentation, and the SR refers to it."""
    fuzzy = """{ label = "Fuzzy"; method = "fuzzy-connectedness"; seeds = ( { fraction = [ 0.5, 0.5, 0.5 ]; } );
        object_mean = 35.0; object_sigma = 30.0; homogeneity_sigma = 30.0; connectedness_map = true; threshold = 0.5;
        type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; }"""
    files = phantom(tmp_path / "in", *TILTED)
    output, _ = noctule(tmp_path, files, fuzzy, segment(0, 30, 20, label="Small"), options=UPRIGHT +
                        'results = [ "seg", "sr" ];', texture='texture = { first_order = true; levels = 8; '
                        'discretisation = "fixed-bin-number"; };')
    seg, maps = (pydicom.dcmread(output / name) for name in ("seg.dcm", "seg-fractional.dcm"))
    binary, fractional = ({tuple(frame.PlanePositionSequence[0].ImagePositionPatient): pixels
                           for pixels, frame in zip(each.pixel_array, each.PerFrameFunctionalGroupsSequence)
                           if frame.SegmentIdentificationSequence[0].ReferencedSegmentNumber == 1}
                          for each in (seg, maps))
    assert binary.keys() <= fractional.keys() and len(binary) > 5
    for place, pixels in binary.items():  # the threshold is 0.5 of 255, except for rounding
        assert (fractional[place][pixels > 0] >= 127).all() and (fractional[place][pixels == 0] <= 128).all()
    groups = highdicom.sr.srread(output / "sr.dcm").content.get_volumetric_roi_measurement_groups()
    assert len(groups) == 2
    assert {group.referenced_segment[0].ReferencedSOPSequence[0].ReferencedSOPInstanceUID for group in groups} == {
        seg.SOPInstanceUID}
    assert_valid(output / "seg.dcm")
    assert_valid(output / "seg-fractional.dcm")
    assert_dciodvfy_is_content(output / "sr.dcm")


def test_a_multi_frame_source_is_referred_to_by_its_frames(tmp_path):
    files = phantom(tmp_path / "in", *TILTED, "--multi-frame")
    output, _ = noctule(tmp_path, files, segment(0, 80, 35), options=UPRIGHT)
    shared = pydicom.dcmread(output / "seg.dcm").SharedFunctionalGroupsSequence[0]
    (image,) = shared.DerivationImageSequence[0].SourceImageSequence
    assert image.ReferencedSOPInstanceUID == pydicom.dcmread(files[0]).SOPInstanceUID
    assert "ReferencedFrameNumber" not in image, "all frames are meant"
    assert_valid(output / "seg.dcm")


def test_other_stacks_are_written_on_their_planes(tmp_path):
    files = phantom(tmp_path / "in", "--size", "48x40x12")
    output, _ = noctule(tmp_path, files, segment(0, 80, 35), options=UPRIGHT)
    datasets = [pydicom.dcmread(file) for file in files]
    assert seg_masks(output / "seg.dcm", datasets)[0].any()


def test_uids_differ_from_those_on_the_planes(tmp_path):
    uids = set()
    for name, options in (("planes", ""), ("grid", UPRIGHT), ("again", UPRIGHT)):
        (tmp_path / name).mkdir()
        files = phantom(tmp_path / name / "in", *TILTED)
        output, _ = noctule(tmp_path / name, files, segment(0, 80, 35), options=options)
        uids.add((pydicom.dcmread(output / "seg.dcm").SOPInstanceUID, (output / "seg.dcm").stat().st_size))
    assert len(uids) == 2


@pytest.mark.parametrize("options, message", [
    ('tilt = "refuse";', 'requires tilt = "straighten"'),
    ('results = [ "seg", "pmap" ]; texture = { patterns = [ "lbp" ]; };', "which refuses such stacks"),
])
def test_check_config(tmp_path, options, message):
    result = check(tmp_path / "noctule.conf", f"""pipelines = ( {{ name = "p"; by_hand = true; {UPRIGHT} {options}
        segments = ( {segment(0, 80, 35)} ); }} );""")
    assert result.returncode == CONFIG and "seg_grid" in result.stderr and message in result.stderr, result.stderr

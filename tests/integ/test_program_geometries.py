"""The volume that a program of a site receives, of phantoms and of real series: nibabel, SimpleITK, pydicom and dcm2niix
agree on the place and the value of each voxel. What the program makes of it is what a range makes of the series."""

import contextlib
import socket
import subprocess
import threading

import nibabel
import numpy as np
import pydicom
import pytest
import SimpleITK
from conftest import SHARED, needs_shared, phantom
from test_contours import Planes
from test_grid import uneven
from test_run import exact_values
from test_run_objects import record_of
from test_run_programs import HEAD, Site, label, ranged
from test_segments import oblique, turn

LPS = np.diag([-1.0, -1.0, 1.0, 1.0])
MM = 0.001  # of single precision; the service accepts 0.01

# Sends the input to the test, and labels what lies above a threshold.
SEND = """
import socket
with socket.create_connection(("127.0.0.1", PORT)) as to:
    to.sendall(source.read_bytes())
save(values >= LOW)
"""


@contextlib.contextmanager
def receiving(path):
    """Stores the bytes of one connection in a file. Yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)

        def receive():
            with server.accept()[0] as connection, connection.makefile("rb") as stream:
                path.write_bytes(stream.read())

        thread = threading.Thread(target=receive)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def run(folder, series, low):
    """Runs a threshold by a program and by a range. Returns the image that the program received, and the output."""
    site = Site(folder)
    received = folder / "received.nii.gz"
    with receiving(received) as port:
        site.program("p", HEAD + SEND.replace("PORT", str(port)).replace("LOW", str(low)), network='"host"')
        output = site.run(f'( {ranged("Range", low)}, {label("Program", 1)} )', series)
    return received, output


def corners(shape, matrix):
    """Returns the centres of the eight corner voxels in mm."""
    ends = np.array([[0, size - 1] for size in shape])
    indices = np.array(np.meshgrid(*ends, indexing="ij")).reshape(3, 8)
    return (matrix @ np.vstack([indices, np.ones(8)]))[:3]


def check_simpleitk(received):
    ours = nibabel.load(received)
    image = SimpleITK.ReadImage(received)
    matrix = np.eye(4)
    matrix[:3, :3] = np.reshape(image.GetDirection(), (3, 3)) * image.GetSpacing()
    matrix[:3, 3] = image.GetOrigin()
    assert np.abs(corners(ours.shape, LPS @ matrix) - corners(ours.shape, ours.affine)).max() < MM
    assert np.abs(corners(ours.shape, ours.get_qform()) - corners(ours.shape, ours.affine)).max() < MM
    assert (SimpleITK.GetArrayFromImage(image).T == np.asarray(ours.dataobj)).all()


def check_planes(received, series):
    """Compares with the headers and pixels of the planes."""
    ours = nibabel.load(received)
    planes = Planes(sorted(series.glob("*.dcm")))
    assert ours.shape == planes.shape[::-1]
    for z in range(len(planes.files)):
        for x, y in ((0, 0), (ours.shape[0] - 1, 0), (0, ours.shape[1] - 1)):
            here = (LPS @ ours.affine @ [x, y, z, 1])[:3]
            # Planes may be 0.01 mm or 1 % from even distances.
            assert np.abs(here - planes.point(z, x, y)).max() < 0.02
    values = exact_values([pydicom.dcmread(file.filename) for file in planes.files])
    whole = (values == np.rint(values)).all()
    assert ours.get_data_dtype() == (np.int16 if whole else np.float32)
    assert (np.asarray(ours.dataobj).T == values.astype(ours.get_data_dtype())).all()


def check_dcm2niix(received, series, folder):
    """Compares voxels at the same place with those of dcm2niix, which turns rows around."""
    folder.mkdir()
    subprocess.run(["dcm2niix", "-z", "n", "-b", "n", "-f", "peer", "-o", folder, series], check=True, capture_output=True)
    (path,) = folder.glob("*.nii")
    ours, peer = nibabel.load(received), nibabel.load(path)
    turned = nibabel.orientations.io_orientation(np.linalg.inv(ours.affine) @ peer.affine)
    again = peer.as_reoriented(turned)
    assert again.shape == ours.shape
    assert np.abs(corners(ours.shape, again.affine) - corners(ours.shape, ours.affine)).max() < 0.01
    np.testing.assert_allclose(np.asarray(again.dataobj), np.asarray(ours.dataobj), rtol=1e-6)


def check_segments(output):
    """The program's labels are the voxels of the range."""
    by_range, by_program = record_of(output)["segments"]
    assert by_range["voxels"] == by_program["voxels"] > 100
    seg = pydicom.dcmread(output / "seg.dcm")
    frames = {1: {}, 2: {}}
    for pixels, frame in zip(seg.pixel_array, seg.PerFrameFunctionalGroupsSequence, strict=True):
        place = tuple(frame.PlanePositionSequence[0].ImagePositionPatient)
        frames[frame.SegmentIdentificationSequence[0].ReferencedSegmentNumber][place] = pixels
    assert frames[1].keys() == frames[2].keys()
    assert sum(np.count_nonzero(frames[1][place] != frames[2][place]) for place in frames[1]) == 0


SMALL = ("--size", "40x31x11", "--spacing", "2,3,4")
EVEN = {
    "axial": (SMALL, None),
    "sagittal": (SMALL, ((0, 1, 0), (0, 0, -1))),
    "coronal": (SMALL, ((1, 0, 0), (0, 0, -1))),
    "oblique": (SMALL, oblique()),
    "flipped-rows": (SMALL, ((1, 0, 0), (0, -1, 0))),
    "flipped-columns": (SMALL, ((-1, 0, 0), (0, 1, 0))),
    "flipped-both": (SMALL, ((-1, 0, 0), (0, -1, 0))),
    "unsigned": (("--size", "40x31x11", "--bits", "16"), None),
    "signed": (("--size", "40x31x11", "--bits", "16", "--signed"), None),
    "one-slice-thick": (("--size", "40x31x3", "--spacing", "0.5,0.75,10"), None),
}


@pytest.mark.parametrize("name", EVEN)
def test_a_phantom_is_received_as_its_files_have_it(tmp_path, name):
    options, change = EVEN[name]
    series = tmp_path / "in"
    files = phantom(series, *options)
    if change:
        turn(files, *change, (-31.5, 12.25, 700))
    received, output = run(tmp_path, series, 30.5)
    check_simpleitk(received)
    check_planes(received, series)
    check_dcm2niix(received, series, tmp_path / "peer")
    check_segments(output)


@pytest.mark.parametrize("options, change", ((("--size", "70x61x12", "--tilt", "18.5"), None),
                                             (("--size", "48x40x21", "--spacing", "2,2,4"), uneven)), ids=("tilted", "uneven"))
def test_a_grid_begins_and_ends_at_the_planes(tmp_path, options, change):
    series = tmp_path / "in"
    files = phantom(series, *options)
    if change:
        change(files)
    received, output = run(tmp_path, series, 30.5)
    check_simpleitk(received)
    check_segments(output)
    ours, planes = nibabel.load(received), Planes(files)
    matrix = LPS @ ours.affine
    for axis in range(3):
        direction = (*planes.axes, planes.normal)[axis]
        assert np.abs(matrix[:3, axis] / np.linalg.norm(matrix[:3, axis]) - direction).max() < 1e-6
    for z, plane in ((0, planes.origins[0]), (ours.shape[2] - 1, planes.origins[-1])):
        # The first and the last slice lie on planes, whose pixels are voxels.
        offset = np.linalg.solve(matrix[:3, :3], plane - matrix[:3, 3])
        assert abs(offset[2] - z) < 1e-4
        assert np.abs(offset[:2] - np.rint(offset[:2])).max() < 1e-4 or "--tilt" in options


REAL = {
    "ct-head-5mm": ("ct-head-5mm", 30.5),
    "mr-sagittal": ("brain/mprage-sagittal/dicom", 150.5),
    "mr-flair": ("brain/ms01-1-flair/dicom", 150.5),
    "ct-abdomen": ("abdomen/low-dose/dicom", 100.5),
    "ct-of-pet": ("sarcoma/STS_001/CT/image", 100.5),
    "pet": ("sarcoma/STS_001/PET/image", 2.000123),
}


@needs_shared
@pytest.mark.parametrize("name", REAL)
def test_a_real_series_is_received_as_its_files_have_it(tmp_path, name):
    folder, low = REAL[name]
    series = SHARED / folder
    received, output = run(tmp_path, series, low)
    check_simpleitk(received)
    check_planes(received, series)
    check_dcm2niix(received, series, tmp_path / "peer")
    check_segments(output)


@needs_shared
def test_a_tilted_head_is_received_upright(tmp_path):
    received, output = run(tmp_path, SHARED / "ct-head-tilted", 30.5)
    check_simpleitk(received)
    check_segments(output)
    ours = nibabel.load(received)
    angles = ours.affine[:3, :3] / np.linalg.norm(ours.affine[:3, :3], axis=0)
    np.testing.assert_allclose(angles.T @ angles, np.eye(3), atol=1e-6)

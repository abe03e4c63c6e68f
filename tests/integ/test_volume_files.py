"""Volume files of programs: nibabel and SimpleITK read what convert_volume writes, and it reads what they write."""

import json

import nibabel
import numpy as np
import pytest
import SimpleITK
from conftest import run_program

SHAPE = (7, 5, 3)
LPS = np.diag([-1.0, -1.0, 1.0, 1.0])
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64")
VALUES = np.arange(105).reshape(SHAPE)


def affine(seed=0, mirrored=False):
    """Returns an oblique matrix, RAS, with spacings of 0.7, 0.8 and 2.5 mm."""
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    if (np.linalg.det(turn) < 0) != mirrored:
        turn[:, 2] *= -1
    matrix = np.eye(4)
    matrix[:3, :3] = turn * [0.7, 0.8, 2.5]
    matrix[:3, 3] = [-60.5, 31.25, 7.125]
    return matrix


def convert(*arguments):
    """Returns the header that convert_volume reads."""
    return json.loads(run_program("convert_volume", *arguments).stdout)


def refusal(path):
    done = run_program("convert_volume", path, check=False)
    assert done.returncode == 1
    return done.stdout.split()[0]


def matrix_of(header):
    """Returns the matrix of a header, RAS."""
    return LPS @ np.vstack([np.reshape(header["to_mm"], (3, 4)), [0, 0, 0, 1]])


def matrix_of_image(image):
    """Returns the matrix of a SimpleITK image, RAS."""
    matrix = np.eye(4)
    matrix[:3, :3] = np.reshape(image.GetDirection(), (3, 3)) * image.GetSpacing()
    matrix[:3, 3] = image.GetOrigin()
    return LPS @ matrix


def image_of(values, matrix):
    """Returns a SimpleITK image of voxels with columns first."""
    image = SimpleITK.GetImageFromArray(np.ascontiguousarray(values.T))
    lps = LPS @ matrix
    spacing = np.linalg.norm(lps[:3, :3], axis=0)
    image.SetSpacing(spacing)
    image.SetOrigin(lps[:3, 3])
    image.SetDirection((lps[:3, :3] / spacing).ravel())
    return image


def check(folder, path, values=VALUES, matrix=None):
    """Checks that convert_volume reads these values at these places."""
    written = folder / "read.nrrd"
    written.unlink(missing_ok=True)
    header = convert(path, written, "float32")
    assert header["size"] == list(SHAPE)
    np.testing.assert_allclose(matrix_of(header), affine() if matrix is None else matrix, atol=1e-5)
    read = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(written)).T
    assert (read == values.astype(np.float32)).all()


# ---- what is written ----

@pytest.mark.parametrize("kind", ("int16", "float32"))
@pytest.mark.parametrize("name", ("a.nii", "a.nii.gz", "a.nrrd"))
@pytest.mark.parametrize("mirrored", (False, True))
def test_peers_read_what_is_written(tmp_path, name, kind, mirrored):
    values = np.random.default_rng(1).integers(-32768, 32768, SHAPE).astype(np.int16)
    for seed in range(6):
        matrix = affine(seed, mirrored)
        nibabel.save(nibabel.Nifti1Image(values, matrix), tmp_path / "source.nii")
        target = tmp_path / name
        target.unlink(missing_ok=True)
        convert(tmp_path / "source.nii", target, kind)
        image = SimpleITK.ReadImage(target)
        assert (SimpleITK.GetArrayFromImage(image).T == values).all()
        np.testing.assert_allclose(matrix_of_image(image), matrix, atol=1e-5)
        if name == "a.nrrd":
            continue
        peer = nibabel.load(target)
        assert peer.get_data_dtype() == kind
        assert (np.asarray(peer.dataobj) == values).all()
        for read, code in (peer.get_sform(coded=True), peer.get_qform(coded=True)):
            np.testing.assert_allclose(read, matrix, atol=1e-5)
            assert code == 1


def test_gzip_of_a_large_volume_is_whole(tmp_path):
    values = np.random.default_rng(2).integers(0, 100, (160, 150, 40)).astype(np.int16)
    nibabel.save(nibabel.Nifti1Image(values, affine()), tmp_path / "source.nii")
    convert(tmp_path / "source.nii", tmp_path / "a.nii.gz", "int16")
    assert (np.asarray(nibabel.load(tmp_path / "a.nii.gz").dataobj) == values).all()
    assert (SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(tmp_path / "a.nii.gz")).T == values).all()


# ---- what is read ----

@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("maker, name", ((nibabel.Nifti1Image, "a.nii"), (nibabel.Nifti1Image, "a.nii.gz"),
                                         (nibabel.Nifti1Pair, "a.hdr"), (nibabel.Nifti2Image, "a.nii"),
                                         (nibabel.Nifti2Image, "a.nii.gz"), (nibabel.Nifti2Pair, "a.hdr")))
def test_files_of_nibabel_are_read(tmp_path, maker, name, kind, order):
    header = maker.header_class(endianness=order)
    header.set_data_dtype(np.dtype(kind).newbyteorder(order))
    nibabel.save(maker(VALUES.astype(kind), affine(), header), tmp_path / name)
    check(tmp_path, tmp_path / name)


@pytest.mark.parametrize("mirrored", (False, True))
@pytest.mark.parametrize("sform, qform", ((1, 0), (0, 1), (4, 2), (2, 0), (0, 3)))
def test_either_form_gives_the_place(tmp_path, sform, qform, mirrored):
    for seed in range(6):
        matrix = affine(seed, mirrored)
        image = nibabel.Nifti1Image(VALUES.astype(np.uint8), matrix)
        image.set_sform(matrix, sform)
        image.set_qform(matrix, qform)
        nibabel.save(image, tmp_path / "a.nii")
        check(tmp_path, tmp_path / "a.nii", matrix=matrix)


def test_values_are_scaled(tmp_path):
    image = nibabel.Nifti1Image(VALUES.astype(np.int16), affine())
    image.header.set_slope_inter(0.5, -20)
    nibabel.save(image, tmp_path / "a.nii.gz")
    raw = nibabel.load(tmp_path / "a.nii.gz")
    assert raw.dataobj.slope == 0.5 and raw.dataobj.inter == -20
    check(tmp_path, tmp_path / "a.nii.gz", np.asarray(raw.dataobj))


def test_extensions_are_skipped(tmp_path):
    image = nibabel.Nifti1Image(VALUES.astype(np.uint8), affine())
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"labels " * 1000))
    nibabel.save(image, tmp_path / "a.nii.gz")
    check(tmp_path, tmp_path / "a.nii.gz")


def test_one_volume_of_four_axes_is_read(tmp_path):
    nibabel.save(nibabel.Nifti1Image(VALUES.astype(np.uint8)[..., None], affine()), tmp_path / "a.nii.gz")
    check(tmp_path, tmp_path / "a.nii.gz")


@pytest.mark.parametrize("compressed", (False, True))
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ("a.nii", "a.nii.gz", "a.hdr", "a.nrrd", "a.nhdr"))
def test_files_of_simpleitk_are_read(tmp_path, name, kind, compressed):
    SimpleITK.WriteImage(image_of(VALUES.astype(kind), affine()), tmp_path / name, useCompression=compressed)
    check(tmp_path, tmp_path / name)


@pytest.mark.parametrize("orientation", ("RAS", "LAS", "LPS", "PSR", "SAL"))
@pytest.mark.parametrize("name", ("a.nii.gz", "a.nrrd"))
def test_other_orientations_are_read(tmp_path, name, orientation):
    """Columns first of an axis that runs to the named side."""
    turned = SimpleITK.DICOMOrient(image_of(VALUES.astype(np.uint8), affine()), orientation)
    SimpleITK.WriteImage(turned, tmp_path / name)
    header = convert(tmp_path / name)
    assert header["size"] == list(turned.GetSize())
    np.testing.assert_allclose(matrix_of(header), matrix_of_image(turned), atol=1e-5)


@pytest.mark.parametrize("space, sides", (("right-anterior-superior", (-1, -1)), ("RAS", (-1, -1)),
                                          ("left-anterior-superior", (1, -1)), ("LAS", (1, -1)), ("LPS", (1, 1))))
def test_spaces_of_nrrd_are_those_of_simpleitk(tmp_path, space, sides):
    SimpleITK.WriteImage(image_of(VALUES.astype(np.uint8), affine()), tmp_path / "lps.nrrd")
    text = (tmp_path / "lps.nrrd").read_bytes().replace(b"space: left-posterior-superior", b"space: " + space.encode())
    (tmp_path / "a.nrrd").write_bytes(text)
    matrix = LPS @ np.diag([*sides, 1, 1]) @ LPS @ affine()
    check(tmp_path, tmp_path / "a.nrrd", matrix=matrix)
    if len(space) > 3:  # ITK ignores abbreviations
        np.testing.assert_allclose(matrix_of_image(SimpleITK.ReadImage(tmp_path / "a.nrrd")), matrix, atol=1e-5)


# ---- what is refused ----

def test_several_volumes_and_components_are_refused(tmp_path):
    colours = np.zeros(SHAPE, [("R", "u1"), ("G", "u1"), ("B", "u1")])
    for values in (np.zeros((*SHAPE, 2), np.uint8), np.zeros((*SHAPE, 1, 3), np.uint8), colours, np.zeros(SHAPE, np.complex64)):
        nibabel.save(nibabel.Nifti1Image(values, affine()), tmp_path / "a.nii.gz")
        assert refusal(tmp_path / "a.nii.gz") == "PROGRAM_NOT_3D"
    image = SimpleITK.GetImageFromArray(np.zeros((3, 5, 7, 3), np.uint8), isVector=True)
    for name in ("b.nii.gz", "b.nrrd"):
        SimpleITK.WriteImage(image, tmp_path / name)
        assert refusal(tmp_path / name) == "PROGRAM_NOT_3D"


def test_files_without_a_place_are_refused(tmp_path):
    image = nibabel.Nifti1Image(VALUES.astype(np.uint8), affine())
    image.set_sform(None, 0)
    image.set_qform(None, 0)
    nibabel.save(image, tmp_path / "a.nii")
    assert refusal(tmp_path / "a.nii") == "PROGRAM_GRID_DIFFERS"
    analyze = nibabel.AnalyzeImage(VALUES.astype(np.uint8), np.eye(4))
    nibabel.save(analyze, tmp_path / "b.hdr")
    assert refusal(tmp_path / "b.hdr") == "PROGRAM_OUTPUT_UNREADABLE"

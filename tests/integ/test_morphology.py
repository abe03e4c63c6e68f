"""Shape features of regions compared with pyradiomics' shape, scikit-image's marching cubes and SciPy's convex hull."""

import numpy as np
import pytest
import scipy.ndimage
import scipy.spatial
import SimpleITK
from radiomics.shape import RadiomicsShape
from radiomics.shape2D import RadiomicsShape2D
from skimage.measure import marching_cubes
from test_features import blob, features

SPACING = (0.7, 0.9, 2.5)  # along columns, rows, slices
OF_PYRADIOMICS = {
    "Elongation": "elongation", "Flatness": "flatness", "Maximum3DDiameter": "maximum_3d_diameter",
    "MajorAxisLength": "major_axis_length", "MinorAxisLength": "minor_axis_length", "LeastAxisLength": "least_axis_length",
    "MeshVolume": "mesh_volume", "SurfaceArea": "surface_area", "SurfaceVolumeRatio": "surface_to_volume_ratio",
    "Sphericity": "sphericity", "VoxelVolume": "volume", "Maximum2DDiameterSlice": "maximum_2d_diameter_slice",
    "Maximum2DDiameterColumn": "maximum_2d_diameter_column", "Maximum2DDiameterRow": "maximum_2d_diameter_row"}
IN_ONE_SLICE = {
    "MeshSurface": "mesh_surface", "PixelSurface": "pixel_surface", "Perimeter": "perimeter",
    "PerimeterSurfaceRatio": "perimeter_surface_ratio", "Sphericity": "sphericity",
    "SphericalDisproportion": "spherical_disproportion", "MaximumDiameter": "maximum_diameter",
    "MajorAxisLength": "major_axis_length", "MinorAxisLength": "minor_axis_length", "Elongation": "elongation"}
OF_MESH = {"MeshVolume", "SurfaceArea", "SurfaceVolumeRatio", "Sphericity"}


def regions():
    z, y, x = np.ogrid[:24, :40, :71]
    yield "smooth", scipy.ndimage.gaussian_filter(np.random.default_rng(3).normal(size=(13, 30, 40)), 3) > 0.02
    yield "rough", blob(2, (9, 33, 30))
    yield "ellipsoid", ((z - 11.2) / 10) ** 2 + ((y - 20) / 17) ** 2 + ((x - 33.5) / 32) ** 2 <= 1
    yield "all", np.ones((3, 4, 70), bool)
    yield "one slice", blob(4, (1, 40, 50))
    yield "one voxel", (z == 3) & (y == 4) & (x == 5)


def has_diagonals(mask):
    """Returns whether a face between four voxels has exactly two voxels of the region, diagonal to each other."""
    padded = np.pad(mask, 1)
    found = False
    for axis in range(3):
        plane = np.moveaxis(padded, axis, 0)
        a, b, c, d = plane[:, 1:, 1:], plane[:, 1:, :-1], plane[:, :-1, 1:], plane[:, :-1, :-1]
        found |= ((a & d & ~b & ~c) | (b & c & ~a & ~d)).any()
    return found


def measured(folder, mask):
    spacing = dict(zip("xyz", SPACING, strict=True))
    told = features(folder, np.zeros(mask.shape, np.int16), mask, families=1, **spacing)["families"]
    return {f["name"]: f["value"] for f in told if f["family"] in ("morphology", "shape")}


@pytest.mark.parametrize("name, mask", regions())
def test_shape_equals_pyradiomics(tmp_path, name, mask):
    """pyradiomics' axes use the population's variance, and its mesh has holes where voxels meet at an edge."""
    ours = measured(tmp_path, mask)
    given = []
    for array in np.zeros(mask.shape), mask.astype(np.uint8):
        given.append(SimpleITK.GetImageFromArray(array))
        given[-1].SetSpacing(SPACING)
    theirs = RadiomicsShape(*given).execute() if mask.sum() > 1 else {}
    voxels = mask.sum()
    compared = 0
    for key, named in OF_PYRADIOMICS.items():
        if key not in theirs or key in OF_MESH and has_diagonals(mask):
            continue
        value = ours[named] * (1000 if "Volume" in key and "Surface" not in key else 1)
        value *= np.sqrt((voxels - 1) / voxels) if "Axis" in key else 1
        assert value == pytest.approx(float(theirs[key]), rel=1e-9, abs=1e-7), key
        compared += 1
    print(f"{name}: {compared} features are pyradiomics'")
    assert compared >= (10 if voxels > 1 else 0)


@pytest.mark.parametrize("name, mask", regions())
def test_mesh_and_hull_equal_scikit_image_and_scipy(tmp_path, name, mask):
    ours = measured(tmp_path, mask)
    vertices, faces, _, _ = marching_cubes(np.pad(mask, 1).astype(float), 0.5, method="lorensen")
    vertices = vertices.astype(float) * SPACING[::-1]
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normals, axis=1).sum() / 2
    volume = abs(np.einsum("ij,ij->i", corners[:, 0], normals).sum()) / 6
    assert ours["surface_area"] == pytest.approx(area, rel=1e-12)
    assert ours["mesh_volume"] * 1000 == pytest.approx(volume, rel=1e-12)
    hull = scipy.spatial.ConvexHull(vertices)
    assert ours["volume_density_hull"] == pytest.approx(volume / hull.volume, rel=1e-12)
    assert ours["area_density_hull"] == pytest.approx(area / hull.area, rel=1e-12)
    ends = vertices[hull.vertices]
    assert ours["maximum_3d_diameter"] == pytest.approx(scipy.spatial.distance.pdist(ends).max(), rel=1e-12)


def farthest(vertices, axis):
    """The largest distance of two vertices with one coordinate in common."""
    planes = [vertices[vertices[:, axis] == place] for place in np.unique(vertices[:, axis])]
    return max(scipy.spatial.distance.pdist(plane).max(initial=0) for plane in planes)


@pytest.mark.parametrize("name, mask", regions())
def test_diameters_within_planes(tmp_path, name, mask):
    """Of vertices midway between a voxel of the region and another one."""
    ours, vertices = measured(tmp_path, mask), []
    padded = np.pad(mask, 1)
    for axis in range(3):
        found = np.argwhere(np.diff(padded, axis=axis)).astype(float)
        found[:, axis] += 0.5
        vertices.append(found * SPACING[::-1])
    vertices = np.concatenate(vertices)
    for axis, plane in enumerate(("slice", "column", "row")):
        assert ours[f"maximum_2d_diameter_{plane}"] == pytest.approx(farthest(vertices, axis), rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slices, place", ((1, 0), (5, 3)))
def test_shape_in_one_slice_equals_pyradiomics(tmp_path, seed, slices, place):
    mask = np.zeros((slices, 30, 70), bool)
    mask[place] = blob(seed, (1, 30, 70)) if seed < 3 else np.indices((30, 70))[1] == 64
    spacing = dict(zip("xyz", SPACING, strict=True))
    told = features(tmp_path, np.zeros(mask.shape, np.int16), mask, families=2, **spacing)["families"]
    ours = {f["name"]: f["value"] for f in told if f["family"] == "shape-2d"}
    given = []
    for array in np.zeros((1, 30, 70)), mask[place:place + 1].astype(np.uint8):
        given.append(SimpleITK.GetImageFromArray(array))
        given[-1].SetSpacing(SPACING)
    theirs = RadiomicsShape2D(*given, force2D=True, force2Ddimension=0)
    theirs.enableAllFeatures()
    theirs.enableFeatureByName("SphericalDisproportion")
    found = theirs.execute()
    assert ours.keys() == set(IN_ONE_SLICE.values())
    for key, named in IN_ONE_SLICE.items():
        assert ours[named] == pytest.approx(float(found[key]), rel=1e-9, abs=1e-7), key


def test_shape_in_one_slice_of_several_slices_is_absent(tmp_path):
    mask = np.zeros((3, 8, 9), bool)
    mask[:2, 3, 4] = True
    told = features(tmp_path, np.zeros(mask.shape, np.int16), mask, families=2)["families"]
    assert [f["value"] for f in told if f["family"] == "shape-2d"] == [None] * len(IN_ONE_SLICE)

"""Maps of features: `noctule run` on NRRD pairs and DICOM series against the voxel-based extraction of pyradiomics, the
written objects read by pydicom, highdicom and nibabel, and refusals."""

import itertools
import re
import subprocess
import types

import highdicom
import nibabel
import numpy as np
import pydicom
import pytest
import radiomics.featureextractor
import SimpleITK
from conftest import BIN, EMULATED, SOURCE, needs_emulator, phantom
from test_pmap import assert_dciodvfy_is_content
from test_responses import PADDING, planes
from test_run_images import ball, noctule, write_pair
from test_run_images import run as run_images  # noqa: F401
from texture_runs import TYPE

ROWS = re.findall(r'^VOXELWISE_(\w+)\(\w+, "[^"]+", "([^"]+)", "([^"]+)"\)', (SOURCE / "base" / "voxelwise.def").read_text(), re.M)
FAMILIES = {"first_order": "firstorder", "glcm": "glcm", "glrlm": "glrlm", "glszm": "glszm", "ngldm": "gldm", "ngtdm": "ngtdm"}
ALL = "".join(f'{family} = [ "all" ]; ' for family in FAMILIES)
GROUP = 'first_order = false; discretisation = "fixed-bin-number"; levels = {}; '


def generate_angles(size, distances, both, *_):
    """The offsets of a window. The function of pyradiomics ends the process with this version of Python."""
    reach = range(-max(distances), max(distances) + 1)
    return np.array([offset for offset in itertools.product(reach, repeat=3)
                     if any(offset) and all(abs(step) < side for step, side in zip(offset, size))], int)


@pytest.fixture
def theirs(monkeypatch):
    """Returns the maps of pyradiomics by family and name, on the voxels of the image; NAN: no value."""
    ours = types.SimpleNamespace(**{name: getattr(radiomics.firstorder.cMatrices, name)
                                    for name in dir(radiomics.firstorder.cMatrices) if name[0] != "_"})
    ours.generate_angles = generate_angles
    monkeypatch.setattr(radiomics.firstorder, "cMatrices", ours)

    def call(image, mask, families=FAMILIES, **settings):
        extractor = radiomics.featureextractor.RadiomicsFeatureExtractor(initValue=np.nan, **settings)
        extractor.disableAllFeatures()
        for family in families:
            extractor.enableFeaturesByName(**{FAMILIES[family]: [name for own, _, name in ROWS if own == family]})
        maps = extractor.execute(image, mask, voxelBased=True)
        found = {}
        for family, name, peer in ROWS:
            if family in families:
                map_ = SimpleITK.Resample(maps[f"original_{FAMILIES[family]}_{peer}"], image, SimpleITK.Transform(),
                                          SimpleITK.sitkNearestNeighbor, np.nan)
                found[family, name] = SimpleITK.GetArrayFromImage(map_)
        return found

    return call


def whole(path, shape, affine):
    """Reads a map of a box as one of the image, z first."""
    map_ = nibabel.load(path)
    first = np.rint((np.linalg.inv(affine) @ map_.affine)[:3, 3]).astype(int)
    assert np.allclose(affine[:3, :3], map_.affine[:3, :3]) and map_.get_data_dtype() == np.float64
    found = np.full(shape[::-1], np.nan)
    values = np.asarray(map_.dataobj)
    found[tuple(slice(start, start + side) for start, side in zip(first, values.shape))] = values
    return found.T


def assert_same(found, expected, name, inside, flat=None):
    """Compares a map within 1e-9 of its largest value. pyradiomics has no joint average and no MCC where a direction has no
    pairs, and another kurtosis of equal values."""
    if name == "kurtosis":
        expected = np.where(flat, 0, expected - 3)
    assert not np.isfinite(found[~inside]).any()
    compared = inside & np.isfinite(expected)
    if name == "maximal_correlation_coefficient" and not compared.any():
        return 0
    if name not in ("joint_average", "maximal_correlation_coefficient"):
        assert np.array_equal(np.isfinite(found), compared), name
    assert np.isfinite(found[compared]).all(), name
    assert np.abs(found - expected)[compared].max() <= 1e-8 * max(1e-3, np.abs(expected[compared]).max()), name
    return compared.sum()


@pytest.mark.parametrize("radius, masked, levels, share", ((1, True, 16, 1), (2, True, 32, 0.8), (1, False, 12, 1), (2, False, 32, 0.8),
                                                          (3, True, 7, 1), (2, True, 9, 0.3)))
def test_all_features_of_pyradiomics(run_images, theirs, tmp_path, radius, masked, levels, share):  # noqa: F811
    """Of an image of noise with structure and of a region with holes and single voxels, in all windows."""
    values, inside = ball((9, 12, 13), 31 + radius)
    values = np.rint(values * 300).astype(np.int16)
    if share < 1:
        inside &= np.random.default_rng(2).random(inside.shape) < share
        inside[0, 0, 0] = True
    image, mask = write_pair(tmp_path, values, inside, 1)
    run_images("-o", tmp_path / "out", "--image", tmp_path / "image.nrrd", "--mask", tmp_path / "mask.nrrd",
               texture=f'first_order = false; discretisation = "fixed-bin-number"; levels = {levels}; '
                       f"voxelwise = {{ radius = {radius}; masked = {str(masked).lower()}; {ALL} }};")
    affine = np.diag((-0.7310, -0.9170, 2.3190, 1.0))
    expected = theirs(image, mask, kernelRadius=radius, maskedKernel=masked, binCount=levels)
    flat = expected["first_order", "range"] == 0
    assert len(list((tmp_path / "out").glob("map-*"))) == len(expected) == len(ROWS)
    for family, name in expected:
        found = whole(tmp_path / "out" / f"map-1-1-{family}-{name}.nii.gz", inside.shape, affine)
        count = assert_same(found, expected[family, name], name, inside, flat)
        assert count > 0.5 * inside.sum() or name == "maximal_correlation_coefficient", name


def coefficient(window):
    """Returns the second largest singular value of p_ij / sqrt(p_i p_j), averaged over the directions with pairs; 0 for one level."""
    levels, ranks = np.unique(window, return_inverse=True)
    ranks, found = ranks.reshape(window.shape), []
    for step in itertools.product((-1, 0, 1), repeat=3):
        if step <= (0, 0, 0):
            continue
        first, second = (ranks[tuple(slice(max(0, sign * s), side - max(0, -sign * s)) for s, side in zip(step, window.shape))]
                         for sign in (-1, 1))
        p = np.zeros((len(levels), len(levels)))
        np.add.at(p, (first.ravel(), second.ravel()), 1)
        p = (p + p.T)[levels > 0][:, levels > 0] / 2
        sums = p.sum(0)
        p, sums = p[sums > 0][:, sums > 0], sums[sums > 0]
        if len(sums):
            found.append(np.linalg.svd(p / np.sqrt(np.outer(sums, sums)), compute_uv=False)[1] if len(sums) > 1 else 0)
    return np.mean(found) if found else np.nan


@pytest.mark.parametrize("pattern, levels", (("noise", 32), ("noise", 90), ("checkerboard", 3), ("blocks", 12), ("layers", 17), ("holes", 8)))
def test_maximal_correlation_of_numpy(run_images, tmp_path, pattern, levels):  # noqa: F811
    """Of windows with independent and dependent levels, with parts that have levels of their own, and with one level."""
    z, y, x = place = np.indices((9, 10, 11))
    noise = np.random.default_rng(levels).integers(0, levels, x.shape)
    values = {"noise": noise, "holes": noise, "checkerboard": place.sum(0) % 2 * 2, "layers": (x + 2 * y + 3 * z) % levels,
              "blocks": x // 4 + 4 * (y // 4) + (noise == 0)}[pattern]
    values[0, 0, 0], values[-1, -1, -1] = 0, levels - 1  # each value is a level
    inside = noise > 3 if pattern == "holes" else np.ones(x.shape, bool)
    inside[0, 0, 0] = inside[-1, -1, -1] = True
    write_pair(tmp_path, values.astype(np.int16), inside, 1)
    run_images("-o", tmp_path / "out", "--image", tmp_path / "image.nrrd", "--mask", tmp_path / "mask.nrrd",
               texture=GROUP.format(levels) + 'voxelwise = { radius = 2; glcm = [ "maximal_correlation_coefficient" ]; };')
    found = whole(tmp_path / "out" / "map-1-1-glcm-maximal_correlation_coefficient.nii.gz", x.shape,
                  np.diag((-0.7310, -0.9170, 2.3190, 1.0)))
    masked = np.where(inside, values + 1, 0)
    for at in np.argwhere(inside)[::3]:
        expected = coefficient(masked[tuple(slice(max(0, i - 2), i + 3) for i in at)])
        assert np.isnan(found[tuple(at)]) if np.isnan(expected) else abs(found[tuple(at)] - expected) < 1e-12, at


PARAMETERS = """
setting: {{ binWidth: 20, {} }}
imageType: {{ Original: {{}}, {} }}
featureClass: {{ firstorder: [ 10Percentile, Entropy ], glcm: [ Contrast, Imc1 ], gldm: [ DependenceVariance ], shape: }}
voxelSetting: {{ kernelRadius: 2, maskedKernel: {}, initValue: nan, voxelBatch: 1000 }}
"""


@pytest.mark.parametrize("setting, image_type, masked", (("", "", True), ("normalize: true, normalizeScale: 100", "", True),
                                                        ("label: 1", "Square: {}", True), ("", "Gradient: {}", False)))
def test_a_parameter_file(run_images, theirs, tmp_path, setting, image_type, masked):  # noqa: F811
    """Of voxelSetting becomes a pipeline with the maps that pyradiomics makes."""
    values, inside = ball((9, 12, 13), 3)
    image, mask = write_pair(tmp_path, np.rint(values * 300).astype(np.int16), inside, 1)
    file = tmp_path / "parameters.yaml"
    file.write_text(PARAMETERS.format(setting, image_type, str(masked).lower()))
    printed = noctule("profiles", "--pyradiomics", file)
    assert printed.returncode == 0, printed.stderr
    (tmp_path / "group.conf").write_text(printed.stdout)
    run_images("-o", tmp_path / "out", "--image", tmp_path / "image.nrrd", "--mask", tmp_path / "mask.nrrd",
               more='\n@include "group.conf"\n')
    maps = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, mask, voxelBased=True)
    maps = {name: map_ for name, map_ in maps.items() if not name.startswith("diagnostics")}
    names = {(FAMILIES[family], peer): (family, name) for family, name, peer in ROWS}
    assert len(maps) == 5 * (1 + bool(image_type)) == len(list((tmp_path / "out").glob("map-*")))
    for key, map_ in maps.items():
        kind, *peer = key.split("_")
        family, name = names[tuple(peer)]
        expected = SimpleITK.GetArrayFromImage(SimpleITK.Resample(map_, image, SimpleITK.Transform(),
                                                                  SimpleITK.sitkNearestNeighbor, np.nan))
        group = 1 + (kind != "original")
        found = whole(tmp_path / "out" / f"map-{group}-1-{family}-{name}.nii.gz", inside.shape,
                      np.diag((-0.7310, -0.9170, 2.3190, 1.0)))
        assert assert_same(found, expected, name, inside) == inside.sum(), key


def test_parameter_files_that_are_not_possible(tmp_path):
    file = tmp_path / "parameters.yaml"
    for text, message in (("featureClass: { glcm: [ SumVariance ] }\nvoxelSetting: { kernelRadius: 1 }", "no map of glcm SumVariance"),
                          ("featureClass: { glcm: }\nvoxelSetting: { kernelRadius: 9 }", "from 1 to 5"),
                          ("setting: { force2D: true }\nfeatureClass: { glcm: }\nvoxelSetting:", "force2D")):
        file.write_text(text)
        refused = noctule("profiles", "--pyradiomics", file)
        assert refused.returncode != 0 and message in refused.stderr, refused.stderr


@pytest.fixture
def run(tmp_path):
    def call(source, groups, programs=BIN, backend="cpu", extra="", status=0, name="out", segments=None, levels=32):
        config = tmp_path / "noctule.conf"
        part = f'{{ label = "Part"; method = "range"; range = [ 0.0, 60.0 ]; {TYPE} }}'
        config.write_text(f'root = "{tmp_path / "root"}"; compute = {{ backend = "{backend}"; }}; pipelines = ( {{ name = "maps"; '
                          f'segments = ( {segments or part} ); results = [ "seg" ]; min_slices = 1; {extra} '
                          f'texture = ( {", ".join("{ " + (GROUP.format(levels) if levels else "first_order = false; ") + group + " }" for group in groups)} ); }} );')
        done = subprocess.run([programs / "noctule", "--config", config, "run", "--pipeline", "maps", "--output",
                               tmp_path / name, source], text=True, capture_output=True, timeout=600)
        assert done.returncode == status, done.stderr
        return tmp_path / name if status == 0 else done.stderr

    return call


def ct(tmp_path, *arguments):
    phantom(tmp_path / "in", "--size", "24x20x9", *arguments)
    return tmp_path / "in"


def test_dicom_maps_are_those_of_pyradiomics(run, theirs, tmp_path):
    """The Parametric Map has the box of the region at its place; pydicom and highdicom read each double, and NIfTI the same."""
    output = run(ct(tmp_path), ['voxelwise = { radius = 1; files = [ "pmap", "nifti" ]; glcm = [ "all" ]; first_order = [ "mean", '
                                '"energy" ]; };'], extra="series_number = 40;")
    slices = sorted((pydicom.dcmread(path) for path in (tmp_path / "in").rglob("*.dcm")),
                    key=lambda each: each.ImagePositionPatient[2])
    values = np.stack([each.pixel_array * each.RescaleSlope + each.RescaleIntercept for each in slices])
    segment = pydicom.dcmread(output / "seg.dcm")
    inside = (values >= 0) & (values <= 60)
    assert planes(segment).sum() == inside.sum()
    image, mask = (SimpleITK.GetImageFromArray(a) for a in (values, inside.astype(np.uint8)))
    expected = theirs(image, mask, ("first_order", "glcm"), kernelRadius=1, binCount=32)
    z, y, x = np.nonzero(inside)
    box = np.s_[z.min():z.max() + 1, y.min():y.max() + 1, x.min():x.max() + 1]
    paths = sorted(output.glob("map-*.dcm"))
    assert len(paths) == 26
    for path in paths:
        family, name = path.stem.split("-")[3:]
        found = pydicom.dcmread(path)
        assert (found.SOPClassUID, found.BitsAllocated) == ("1.2.840.10008.5.1.4.1.1.30", 64)
        stored = planes(found)
        nifti = np.asarray(nibabel.load(path.with_suffix(".nii.gz")).dataobj).T
        assert np.array_equal(np.where(stored == PADDING, np.nan, stored), nifti, equal_nan=True)
        assert_same(nifti, expected[family, name][box], name, inside[box])
        first = found.PerFrameFunctionalGroupsSequence[0].PlanePositionSequence[0].ImagePositionPatient
        start = np.array(slices[z.min()].ImagePositionPatient, float) + np.array(
            [x.min() * slices[0].PixelSpacing[1], y.min() * slices[0].PixelSpacing[0], 0])
        assert np.allclose(np.array(first, float), start)
    found = pydicom.dcmread(output / "map-1-1-glcm-contrast.dcm")
    assert found.SeriesDescription == "maps, Contrast of Part" and found.SeriesNumber > 240
    mapping = found.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
    quantity = mapping.QuantityDefinitionSequence[0].ConceptCodeSequence[0]
    assert (quantity.CodeValue, quantity.CodingSchemeDesignator) == ("ACUI", "IBSI")
    assert mapping.LUTExplanation == "glcm contrast, radius 1"
    energy = pydicom.dcmread(output / "map-1-1-first_order-energy.dcm").SharedFunctionalGroupsSequence[0]
    assert energy.RealWorldValueMappingSequence[0].MeasurementUnitsCodeSequence[0].CodeValue == "[hnsf'U]2"
    read = highdicom.pm.ParametricMap.from_dataset(found)
    assert read.pixel_array.dtype == np.float64  # without it, highdicom decodes frames of integers only
    assert np.array_equal(read.get_frames(apply_real_world_transform=True).reshape(planes(found).shape), planes(found))
    assert_dciodvfy_is_content(output / "map-1-1-glcm-contrast.dcm", next((tmp_path / "in").rglob("*.dcm")))


def test_the_same_bytes_again_and_in_several_groups(run, tmp_path):
    """Groups with other radii and filters share one job; a group alone gives the same files."""
    source = ct(tmp_path)
    one = 'voxelwise = { radius = 1; files = [ "nifti" ]; glcm = [ "contrast" ]; };'
    two = 'filter = { kind = "mean"; size = 3; }; voxelwise = { radius = 2; glrlm = [ "run_entropy" ]; files = [ "pmap", "nifti" ]; };'
    both, alone = run(source, [one, two], name="both"), run(source, [two], name="alone")
    assert (both / "map-1-1-glcm-contrast.nii.gz").exists()
    assert (both / "map-2-1-glrlm-run_entropy.nii.gz").read_bytes() == (alone / "map-1-1-glrlm-run_entropy.nii.gz").read_bytes()
    again = run(source, [two], name="again")
    for path in alone.glob("map-*"):
        assert path.read_bytes() == (again / path.name).read_bytes()


def test_resampled_and_straightened(run, tmp_path):
    source = ct(tmp_path, "--tilt", "12")
    output = run(source, ['voxelwise = { files = [ "pmap", "nifti" ]; ngtdm = [ "contrast" ]; };',
                          'resample = { isotropic_mm = 7.0; }; voxelwise = { files = [ "nifti" ]; ngtdm = [ "contrast" ]; };'])
    found, nifti = (reader(output / f"map-1-1-ngtdm-contrast.{kind}") for reader, kind in ((pydicom.dcmread, "dcm"), (nibabel.load, "nii.gz")))
    values = np.asarray(nifti.dataobj).T
    assert np.array_equal(np.where(planes(found) == PADDING, np.nan, planes(found)), values, equal_nan=True)
    position = [float(v) for v in found.PerFrameFunctionalGroupsSequence[-1].PlanePositionSequence[0].ImagePositionPatient]
    assert np.allclose((nifti.affine @ [0, 0, len(values) - 1, 1])[:3] * [-1, -1, 1], position)
    assert np.allclose(nibabel.load(output / "map-2-1-ngtdm-contrast.nii.gz").header.get_zooms(), 7)


def test_an_empty_region_has_no_maps(run, tmp_path):
    empty = f'{{ label = "None"; method = "range"; range = [ 20000.0, 30000.0 ]; {TYPE} }}'
    part = f'{{ label = "Part"; method = "range"; range = [ 0.0, 60.0 ]; {TYPE} }}'
    output = run(ct(tmp_path), ["voxelwise = { glcm = [ \"contrast\" ]; };"], segments=f"{empty}, {part}")
    assert [path.name for path in output.glob("map-*")] == ["map-1-2-glcm-contrast.dcm"]


@pytest.mark.parametrize("group, status, message", (
    ("voxelwise = { radius = 2; };", 5, "no feature is given"),
    ('voxelwise = { glcm = [ "sum_variance" ]; };', 5, "sum_entropy"),
    ('voxelwise = { radius = 6; glcm = [ "all" ]; };', 5, "radius"),
    ('/* levels */ voxelwise = { glcm = [ "all" ]; };', 5, "at most 256"),
    ('resample = { isotropic_mm = 5.0; }; voxelwise = { glcm = [ "all" ]; };', 5, "nifti")))
def test_maps_that_are_not_possible(run, tmp_path, group, status, message):
    assert message in run(ct(tmp_path), [group], status=status, levels=32 if "levels" not in group else 300)


@needs_emulator
def test_gpus_write_the_same_files(run, tmp_path):
    source = ct(tmp_path)
    groups = [f'voxelwise = {{ radius = {radius}; {ALL} files = [ "pmap", "nifti" ]; }};' for radius in (1, 2)]
    folders = [run(source, groups, *programs, name=programs[1]) for programs in ((BIN, "cpu"), (EMULATED, "cuda"))]
    for path in folders[0].glob("map-*"):
        assert path.read_bytes() == (folders[1] / path.name).read_bytes()
    assert len(list(folders[1].glob("map-*"))) == 4 * len(ROWS)


@pytest.mark.parametrize("mib, group, code, message", (
    (64, f"voxelwise = {{ {ALL} }};", "JOB_TOO_LARGE", "the maps of 93 features of 163840 voxels need"),
    (0, 'discretisation = "fixed-bin-size"; bin_width = 2.0; voxelwise = { glcm = [ "contrast" ]; };', "VOXELWISE_LEVELS", "raise bin_width")))
def test_maps_that_a_job_cannot_make(run, tmp_path, mib, group, code, message):
    """They are refused before they are computed."""
    phantom(tmp_path / "in", "--size", "64x64x40")
    everything = f'{{ label = "All"; method = "range"; range = [ -1e9, 1e9 ]; {TYPE} }}'
    refused = run(tmp_path / "in", [group], status=1, segments=everything, extra=f"memory_mib = {mib};" * (mib > 0),
                  levels=None if "bin_width" in group else 32)
    assert code in refused and message in refused

"""Image types and normalisation of pyradiomics: features of filtered images, parameter files with imageType, and columns
with pyradiomics' names, against pyradiomics on its own five cases and on random images."""

import csv
import json
import subprocess
import types

import numpy as np
import pytest
import radiomics.featureextractor
import scipy.ndimage
import scipy.special
import SimpleITK
from test_run_images import BASELINE, CASES, COUNT, PROFILE, UNUSED, ball, compare, noctule, published, run, write_pair  # noqa: F401

CLASSES = ("firstorder", "glcm", "glrlm", "glszm", "gldm", "ngtdm")
# These have no equal feature in Noctule.
OTHER = {"firstorder_Kurtosis", "firstorder_TotalEnergy"}
ALL = ("setting: {{ binWidth: 25{} }}\nimageType:\n  Original: {{}}\n  Square: {{}}\n  SquareRoot: {{}}\n  Logarithm: {{}}\n"
       "  Exponential: {{}}\n  Gradient: {{}}\n  LBP2D: {{ binWidth: 1 }}\n  Wavelet: {{ binWidth: 10 }}\n"
       "  LoG: {{ sigma: [1.0, 3.0] }}\nfeatureClass:\n" + "".join(f"  {name}:\n" for name in CLASSES))


@pytest.fixture
def measured(run, tmp_path):  # noqa: F811
    """Runs the pipeline of a parameter file. Returns the row of the cohort table."""

    def call(text, image, mask):
        file = tmp_path / "parameters.yaml"
        file.write_text(text)
        printed = noctule("profiles", "--pyradiomics", file)
        assert printed.returncode == 0, printed.stderr
        (tmp_path / "group.conf").write_text(printed.stdout)
        (tmp_path / "pairs.csv").write_text(f"Image,Mask\n{image},{mask}\n")
        run("-o", tmp_path / "out", "--pairs", tmp_path / "pairs.csv", "--cohort", more='\n@include "group.conf"\n')
        with open(tmp_path / "out" / "cohort.csv") as table:
            (row,) = csv.DictReader(table)
        return file, row

    return call


def assert_equal(row, theirs, loose=()):
    """Compares all features of pyradiomics, which are columns of the same name. Those of images that begin with `loose` have a
    larger tolerance."""
    count = 0
    for name, value in theirs.items():
        image, _, feature = name.partition("_")
        if image == "diagnostics" or feature in OTHER or feature.startswith("shape"):
            continue
        value = float(value)
        if np.isnan(value):
            assert row[name] == "", name
            continue
        assert row[name] != "", name
        tolerance = 2e-5 if image.startswith(loose) else 1e-6
        # Differences of values near 0 are those of numbers as large as the values of the image.
        assert abs(float(row[name]) - value) <= tolerance * max(abs(value), 1e-6), (name, row[name], value)
        count += 1
    return count


@pytest.mark.parametrize("case", CASES)
def test_all_image_types_of_a_case(measured, case):
    image, mask = (BASELINE / f"{case}_{kind}.nrrd" for kind in ("image", "label"))
    file, row = measured(ALL.format(""), image, mask)
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(str(image), str(mask))
    assert_equal(row, theirs)


@pytest.mark.parametrize("hand", (1, -1), ids=("right", "left"))
@pytest.mark.parametrize("kind", ("int16", "float64"))
@pytest.mark.parametrize("more", (
    "", ", normalize: true, normalizeScale: 100, removeOutliers: 2", ", preCrop: true, padDistance: 3",
    ", resampledPixelSpacing: [1.103, 1.103, 1.103], interpolator: sitkLinear, padDistance: 2",
    ", normalize: true, normalizeScale: 200, resampledPixelSpacing: [1.103, 1.103, 1.103]",
    ", resegmentRange: [-50, 120]", ", force2D: true"))
def test_random_images(measured, tmp_path, more, kind, hand):
    """Odd and even sides, and axes whose slices Noctule sorts the other way."""
    values, inside = ball((16, 25, 28), 33)
    inside &= np.random.default_rng(2).random(inside.shape) < 0.97
    inside[:3] = inside[-3:] = False
    inside[:, :5] = inside[:, -5:] = False
    inside[:, :, :5] = inside[:, :, -5:] = False
    values = np.round(values * 300) if kind == "int16" else values * 100
    image, region = write_pair(tmp_path, values.astype(kind), inside, hand)
    text = ALL.format(more).replace("Exponential: {}", "Exponential: { binWidth: 0.5 }")  # of several grey levels
    file, row = measured(text, tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    bands = 4 if "force2D" in more else 8
    # SimpleITK stores the passes of LoG in 32 bits. A resampled value that differs by 1e-13 may be stored as the next number.
    loose = ("log-sigma",) if "resampled" in more else ()
    assert assert_equal(row, theirs, loose) > (9 + bands) * 80


@pytest.mark.parametrize("hand", (1, -1), ids=("right", "left"))
@pytest.mark.parametrize("interpolator", ("sitkBSpline", "sitkLinear"))
@pytest.mark.parametrize("shape, spacing, mm", (((9, 21, 25), (1, 1, 1), 2.0), ((9, 20, 22), (0.8, 0.9, 2.1), 1.37)))
def test_regions_at_the_far_border(measured, tmp_path, shape, spacing, mm, interpolator, hand):
    """The last voxels of the resampled image have their centres on the border, or beyond it: SimpleITK sets them to 0."""
    values, _ = ball(shape, 3)
    inside = np.zeros(shape, bool)
    inside[2:-1, 3:-2, 4:] = inside[-1, 8:12, 9:15] = True
    inside[4:6, 9:11, 8:12] = False
    image, region = write_pair(tmp_path, np.round(values * 300).astype(np.int16), inside, hand, spacing)
    file, row = measured(f"setting: {{ resampledPixelSpacing: [{mm}, {mm}, {mm}], interpolator: {interpolator} }}\nimageType:\n  Original: {{}}\n"
                         "  Gradient: {}\n  Wavelet: {}\n  LoG: { sigma: [2.0] }\n" + "featureClass:\n" + "".join(
                             f"  {kind}:\n" for kind in CLASSES), tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    assert assert_equal(row, theirs, ("log-sigma",)) == 11 * 91


@pytest.mark.parametrize("kind", ("float32", "float64"))
@pytest.mark.parametrize("more", ("", ", force2D: true", ", resegmentRange: [-90, 60]", ", binCount: 16"))
def test_voxels_beyond_the_region_that_are_not_numbers(measured, tmp_path, more, kind):
    values, inside = ball((12, 20, 22), 3)
    values = (values * 100).astype(kind)
    values[~inside & (np.random.default_rng(1).random(inside.shape) < 0.4)] = np.nan
    image, region = write_pair(tmp_path, values, inside, -1)
    file, row = measured(f"setting: {{ binWidth: 7.3{more} }}\nimageType:\n  Original: {{}}\nfeatureClass:\n" + "".join(
        f"  {name}:\n" for name in CLASSES), tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    assert assert_equal(row, theirs) == 91


@pytest.mark.parametrize("axis", (0, 1, 2))
def test_resampled_regions_of_one_voxel(measured, tmp_path, axis):
    """pyradiomics does not resample along such an axis: there are no values then. It is equal if the axis keeps its spacing."""
    values, inside = ball((12, 20, 22), 3)
    thin = np.zeros_like(inside)
    thin[(np.s_[:],) * axis + (6,)] = inside[(np.s_[:],) * axis + (6,)]
    image, region = write_pair(tmp_path, np.round(values * 300).astype(np.int16), thin, 1)
    text = ("setting: {{ resampledPixelSpacing: [1.103, 1.103, {}], interpolator: sitkLinear, minimumROIDimensions: 1 }}\nimageType:\n  Original: {{}}\n"
            "featureClass:\n" + "".join(f"  {name}:\n" for name in CLASSES))
    file, row = measured(text.format(1.103), tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    names = [name for name in row if name.startswith("original_")]
    assert len(names) >= 91 and all(row[name] == "" for name in names)
    features = json.loads(next((tmp_path / "out").rglob("features.json")).read_text())
    assert {feature["reason"] for feature in features} == {"THIN_REGION"}
    file, row = measured(text.format(0), tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    if axis > 0:
        assert all(row[name] == "" for name in names)
        return
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    assert assert_equal(row, theirs) == 91


REGIONS = {"one slice": np.s_[5], "one row of slices": np.s_[:, 9], "one line": np.s_[:, 9, 10], "ball": ...}


@pytest.mark.parametrize("name, more", (
    ("one slice", ""), ("one slice", ", force2D: true"), ("one slice", ", resegmentRange: [-90, 60]"), ("one row of slices", ""),
    ("one line", ""), ("three voxels", ""), ("three voxels", ", force2D: true"), ("ball", ", resegmentRange: [-3, 5]"),
    ("ball", ", force2D: true, resegmentRange: [-3, 30]"), ("ball", ", binCount: 2")))
def test_small_and_sparse_regions(measured, tmp_path, name, more):
    """pyradiomics leaves out directions of GLRLM without two voxels on a line, counts voxels without neighbours in NGTDM, and has
    values of GLCM for one grey level. Values on the edge of a bin have the level of pyradiomics' rounded edges."""
    values, inside = ball((12, 20, 22), 3)
    chosen = np.zeros_like(inside)
    if name in REGIONS:
        chosen[REGIONS[name]] = inside[REGIONS[name]]
    else:
        chosen[4, 5, 6] = chosen[4, 6, 6] = chosen[4, 6, 7] = True
    image, region = write_pair(tmp_path, np.round(values * 300).astype(np.int16), chosen, 1)
    file, row = measured(f"setting: {{ binWidth: 7.3, minimumROIDimensions: 1{more} }}\nimageType:\n  Original: {{}}\n  Square: {{}}\n"
                         "  Wavelet: {}\nfeatureClass:\n" + "".join(f"  {kind}:\n" for kind in CLASSES),
                         tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    bands = 4 if "force2D" in more else 8
    assert assert_equal(row, theirs) == (2 + bands) * 91


@pytest.mark.parametrize("levels", (256, 257, 65536))
def test_many_levels(measured, tmp_path, levels):
    """Up to 256 levels are counted by the lane, and more on the host. The GLCM of 65,536 levels is too large for both."""
    values, inside = ball((9, 12, 14), 3)
    values = np.argsort(np.argsort(values, axis=None)).reshape(values.shape)
    values = np.round(values * (levels - 1) / values.max() / 5) * 5  # so that runs and zones have several voxels
    values[inside & (values == values[inside].min())], values[inside & (values == values[inside].max())] = 0, levels - 1
    classes = [kind for kind in CLASSES if kind != "glcm" or levels < 65536]
    image, region = write_pair(tmp_path, values.astype(float), inside, 1)
    file, row = measured("setting: { binWidth: 1 }\nimageType:\n  Original: {}\nfeatureClass:\n" + "".join(
        f"  {kind}:\n" for kind in classes), tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    assert assert_equal(row, theirs) == (91 if levels < 65536 else 91 - 24)
    (features,) = (tmp_path / "out").rglob("features.csv")
    with open(features) as table:
        assert {line["levels"] for line in csv.DictReader(table) if line["family"] == "glrlm"} == {str(levels)}


@pytest.mark.parametrize("name, more, count", (("ball", "", 6), ("one slice", ", force2D: true", 9)))
def test_shapes_have_the_names_of_pyradiomics(measured, tmp_path, name, more, count):
    """Those that it defines in the same way. Volumes, axes and surfaces in space keep other names."""
    values, inside = ball((12, 20, 22), 3)
    chosen = np.zeros_like(inside)
    chosen[REGIONS[name]] = inside[REGIONS[name]]
    image, region = write_pair(tmp_path, np.round(values * 300).astype(np.int16), chosen, -1)
    file, row = measured(f"setting: {{ binWidth: 25{more} }}\nfeatureClass:\n  {'shape2D' if more else 'shape'}:\n  firstorder:\n",
                         tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    ours = {key: float(value) for key, value in row.items() if key.startswith("original_shape")}
    assert len(ours) == count and ours == pytest.approx({key: float(theirs[key]) for key in ours}, rel=1e-9)


@pytest.mark.parametrize("wavelet", ("db3", "coif3", "sym5", "db20", "bior2.2", "rbio3.1"))
def test_levels_of_wavelets_and_other_settings(measured, tmp_path, wavelet):
    values, inside = ball((14, 21, 24), 5)
    image, region = (SimpleITK.GetImageFromArray(a) for a in (values * 100, inside.astype(np.uint8)))
    SimpleITK.WriteImage(image, str(tmp_path / "image.nrrd"))
    SimpleITK.WriteImage(region, str(tmp_path / "mask.nrrd"))
    text = ("setting: { binCount: 16, voxelArrayShift: 300, gldm_a: 1 }\nimageType:\n"
            f"  Wavelet: {{ wavelet: {wavelet}, level: 2, start_level: 1 }}\n"
            "  Gradient: { gradientUseSpacing: false }\n"
            "  LBP2D: { lbp2DRadius: 1.5, lbp2DSamples: 9, lbp2DMethod: ror }\n")
    file, row = measured(text, tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    assert {name.split("_")[0] for name in theirs} >= {"wavelet-HLL", "wavelet2-LLL", "gradient", "lbp-2D", "original"}
    assert assert_equal(row, theirs) > 17 * 80


@pytest.mark.parametrize("wavelet, hand", (("haar", 1), ("haar", -1), ("db2", 1), ("bior1.3", -1), ("bior1.5", 1), ("bior2.2", -1),
                                           ("bior3.1", 1), ("rbio1.1", -1), ("rbio2.2", 1)))
def test_wavelets_of_whole_numbers(measured, tmp_path, wavelet, hand):
    """Like CT: air, soft tissue with equal neighbours, and the edge of the volume in the region. Many responses are 0 or on the edge
    of a bin in exact arithmetic, so that their level depends on the order of PyWavelets' sums."""
    values, inside = ball((16, 25, 28), 33)
    values = np.clip(np.round(values * 60) + 40, -30, 90)
    values[:, :9] = 40
    values[:, :, 17:] = -1024
    values[6:10, 10:14, 10:14] = 55
    inside[:, 4:] |= np.random.default_rng(1).random(inside[:, 4:].shape) < 0.1
    image, region = write_pair(tmp_path, values.astype(np.int16), inside, hand)
    text = (f"setting: {{ binWidth: 25 }}\nimageType:\n  Wavelet: {{ wavelet: {wavelet} }}\nfeatureClass:\n"
            + "".join(f"  {name}:\n" for name in CLASSES))
    file, row = measured(text, tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    assert assert_equal(row, theirs) == 728


def icosphere(subdivisions, radius):
    """Vertices as trimesh.creation.icosphere: those of an icosahedron, and the middles of its edges. trimesh 5.2.0 has the same 42
    within one unit in the last place. With its vertices pyradiomics' responses of the five cases, for radius 1 and 2, are the
    same within 2.2e-14, and so are all features."""
    assert subdivisions == 1
    golden = (1 + 5 ** 0.5) / 2
    corners = [(0, a, b * golden) for a in (1, -1) for b in (1, -1)]
    corners = np.array(corners + [(z, x, y) for x, y, z in corners] + [(y, z, x) for x, y, z in corners], float)
    middles = [(corners[i] + corners[j]) / 2 for i in range(12) for j in range(i)
               if abs(((corners[i] - corners[j]) ** 2).sum() - 4) < 1e-9]
    corners = np.concatenate([corners, middles]) + 0.0
    return types.SimpleNamespace(vertices=corners / np.linalg.norm(corners, axis=1)[:, None] * radius)


@pytest.fixture
def modules(monkeypatch):
    """pyradiomics 3.0.1 imports names of SciPy before 1.17, and trimesh for its icosphere."""
    monkeypatch.setattr(scipy.special, "sph_harm", lambda m, n, theta, phi: scipy.special.sph_harm_y(n, m, phi, theta),
                        raising=False)
    for name, members in (("scipy.ndimage.interpolation", {"map_coordinates": scipy.ndimage.map_coordinates}),
                          ("trimesh", {}), ("trimesh.creation", {"icosphere": icosphere})):
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(__import__("sys").modules, name, module)


@pytest.mark.parametrize("case", CASES)
def test_lbp_in_space_of_a_case(modules, measured, case):
    """Noctule sorts the slices of the brains the other way."""
    image, mask = (BASELINE / f"{case}_{kind}.nrrd" for kind in ("image", "label"))
    file, row = measured("setting: { binWidth: 0.37 }\nimageType:\n  LBP3D: {}\n", image, mask)
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(str(image), str(mask))
    assert assert_equal(row, theirs) == 3 * 91


@pytest.mark.parametrize("hand", (1, -1), ids=("right", "left"))
@pytest.mark.parametrize("kind", ("int16", "float64"))
def test_lbp_in_space(modules, measured, tmp_path, kind, hand):
    values, inside = ball((16, 22, 23), 4)
    values = np.round(values * 300) if kind == "int16" else values * 100
    image, region = write_pair(tmp_path, values.astype(kind), inside, hand)
    text = "setting: { binWidth: 0.37 }\nimageType:\n  LBP3D: { lbp3DLevels: 3 }\n"
    file, row = measured(text, tmp_path / "image.nrrd", tmp_path / "mask.nrrd")
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    assert {name.split("_")[0] for name in theirs} >= {"lbp-3D-m1", "lbp-3D-m2", "lbp-3D-m3", "lbp-3D-k"}
    assert assert_equal(row, theirs) > 4 * 80


@pytest.mark.parametrize("case", CASES)
def test_published_values_of_normalised_images(run, tmp_path, case):  # noqa: F811
    run("-o", tmp_path / "out", "--image", BASELINE / f"{case}_image.nrrd", "--mask", BASELINE / f"{case}_label.nrrd",
        texture=PROFILE + " bin_width = 5.0; normalise = { scale = 100.0; };")
    assert compare(tmp_path / "out", published(case, "_normalization")) == COUNT


def test_settings_of_image_types(run, tmp_path):  # noqa: F811
    """In the table of features, and in the report."""
    values, inside = ball((9, 17, 20), 3)
    image, region = (SimpleITK.GetImageFromArray(a) for a in (values * 100, inside.astype(np.uint8)))
    SimpleITK.WriteImage(image, str(tmp_path / "image.nrrd"))
    SimpleITK.WriteImage(region, str(tmp_path / "mask.nrrd"))
    run("-o", tmp_path / "out", "--image", tmp_path / "image.nrrd", "--mask", tmp_path / "mask.nrrd",
        texture=PROFILE + ' names = "pyradiomics"; normalise = { scale = 10.0; outliers = 3.0; }; '
        'filter = { kind = "pyradiomics-wavelet"; wavelet = "coif1"; kernels = "HLL"; };')
    contrast, = (f for f in json.loads((tmp_path / "out" / "features.json").read_text()) if f["name"] == "contrast"
                 and f["family"] == "glcm")
    assert contrast["filter"] == "pyradiomics-wavelet" and contrast["image_type"] == "wavelet-HLL"
    assert contrast["filter_settings"] == "coif1 HLL start_level 0 level 1"
    assert contrast["normalise_scale"] == 10 and contrast["normalise_sigma"] == 3


def test_groups_together_measure_as_each_of_them_alone(run, tmp_path):  # noqa: F811
    """Groups share values, responses of a filter and transforms, but not those of values normalised otherwise."""
    values, inside = ball((9, 17, 20), 3)
    image, region = (SimpleITK.GetImageFromArray(a) for a in (np.round(values * 100).astype(np.int16), inside.astype(np.uint8)))
    SimpleITK.WriteImage(image, str(tmp_path / "image.nrrd"))
    SimpleITK.WriteImage(region, str(tmp_path / "mask.nrrd"))
    mean, square = 'filter = { kind = "mean"; size = 3; };', 'filter = { kind = "pyradiomics-square"; };'
    wavelet = 'filter = {{ kind = "pyradiomics-wavelet"; wavelet = "coif1"; kernels = "{}"; }};'
    groups = (mean, mean + " normalise = { scale = 100.0; };", mean + " range = [ -100.0, 100.0 ];",
              mean + " normalise = { scale = 100.0; outliers = 1.0; };", square, square + " range = [ -100.0, 100.0 ];",
              square + " normalise = { scale = 100.0; };", "normalise = { scale = 100.0; };",
              'filter = { kind = "pyradiomics-gradient"; around = 2; };', 'filter = { kind = "pyradiomics-gradient"; };',
              wavelet.format("HLL"), wavelet.format("LHH"), wavelet.format("HLL") + " range = [ -100.0, 100.0 ];",
              wavelet.format("HLL").replace("};", " level = 2; start_level = 1; around = 3; };"),
              wavelet.format("HHH") + " normalise = { scale = 100.0; };", 'regions = [ "volume" ];' + wavelet.format("LLH"),
              'resample = { isotropic_mm = 2.0; };', 'resample = { isotropic_mm = 2.0; }; range = [ -50.0, 80.0 ];',
              'resample = { isotropic_mm = 2.0; }; families = [ "local-intensity" ];', mean + " resample = { isotropic_mm = 2.0; };")

    def measure(name, chosen):
        run("-o", tmp_path / name, "--image", tmp_path / "image.nrrd", "--mask", tmp_path / "mask.nrrd",
            more="texture = ( " + ", ".join(f"{{ {PROFILE} {group} }}" for group in chosen) + " );")
        found = json.loads((tmp_path / name / "features.json").read_text())
        return {json.dumps(feature, sort_keys=True) for feature in found}

    alone = set().union(*(measure(f"alone{i}", [group]) for i, group in enumerate(groups)))
    assert len(alone) > 90 * len(groups)  # of values; shapes are common to groups
    assert measure("together", groups) == measure("turned", groups[::-1]) == alone


def test_a_volume_that_is_too_small_for_log(run, tmp_path):  # noqa: F811
    """pyradiomics leaves the image out."""
    values, inside = ball((3, 17, 20), 3)
    image, region = (SimpleITK.GetImageFromArray(a) for a in (values * 100, np.ones(inside.shape, np.uint8)))
    SimpleITK.WriteImage(image, str(tmp_path / "image.nrrd"))
    SimpleITK.WriteImage(region, str(tmp_path / "mask.nrrd"))
    run("-o", tmp_path / "out", "--image", tmp_path / "image.nrrd", "--mask", tmp_path / "mask.nrrd",
        texture=PROFILE + ' filter = { kind = "pyradiomics-log"; sigma_mm = 1.0; };')
    found = [f for f in json.loads((tmp_path / "out" / "features.json").read_text()) if f["family"] == "first-order"]
    assert found and all(f["value"] is None for f in found)


@pytest.mark.parametrize("text, message", (
    ("imageType:\n  Colour: {}\n", "imageType Colour is not available"),
    ("imageType:\n  LoG: {}\n", "imageType LoG needs sigma"),
    ("imageType:\n  Wavelet: { wavelet: dmey }\n", "wavelet: dmey is not available"),
    ("imageType:\n  LBP2D: { lbp2DMethod: var }\n", "lbp2DMethod: var is not available"),
    ("imageType:\n  Wavelet: { normalize: true }\n", "setting normalize must be in the part setting"),
    ("setting:\n  resegmentRange: [-3, 3]\n  resegmentMode: sigma\nimageType:\n  Square: {}\n",
     "imageType Square is not available with resegmentMode sigma"),
    ("imageType: Wavelet\n", "imageType must have rows")))
def test_a_parameter_file_that_is_not_available(tmp_path, text, message):
    file = tmp_path / "parameters.yaml"
    file.write_text(text)
    printed = noctule("profiles", "--pyradiomics", file)
    assert printed.returncode == 1 and printed.stdout == "" and message in printed.stderr


@pytest.mark.parametrize("texture, message", (
    ('names = "pyradiomics"; aggregation = "3d-merged";', "pyradiomics has only the aggregations"),
    ('names = "pyradiomics"; filter = { kind = "mean"; size = 3; };', "pyradiomics has no such filter"),
    ('normalise = { scale = 1.0; }; patterns = [ "lbp" ];', "is not possible with patterns"),
    ('filter = { kind = "pyradiomics-wavelet"; wavelet = "coif1"; kernels = "HL"; };', "must name a kernel for each axis"),
    ('filter = { kind = "pyradiomics-square"; level = 2; };', "level: is only allowed with kind"),
    ('filter = { kind = "pyradiomics-square"; }; response = [ "nifti" ];',
     "response: is not possible with normalise, and not with image types of pyradiomics"),
    ('normalise = { scale = 1.0; }; filter = { kind = "mean"; size = 3; }; response = [ "pmap" ];',
     "response: is not possible with normalise, and not with image types of pyradiomics")))
def test_options_that_are_refused(tmp_path, texture, message):
    config = tmp_path / "noctule.conf"
    config.write_text(f'root = "{tmp_path}"; pipelines = ( {{ name = "a"; segments = ( {UNUSED} ); texture = {{ {PROFILE} {texture} }}; }} );')
    checked = subprocess.run([noctule.__globals__["BIN"] / "noctule", "check-config", config], capture_output=True, text=True)
    assert checked.returncode != 0 and message in checked.stderr, checked.stderr

"""Texture and intensity features compared with pyradiomics, mahotas, scikit-image and their definitions in numpy."""

import json

import mahotas.features
import numpy as np
import pydicom
import pytest
import radiomics
import scipy.ndimage
import SimpleITK
import skimage.feature
from conftest import SHARED, needs_shared, run_program
from radiomics.firstorder import RadiomicsFirstOrder
from radiomics.glcm import RadiomicsGLCM
from radiomics.gldm import RadiomicsGLDM
from radiomics.glrlm import RadiomicsGLRLM
from radiomics.glszm import RadiomicsGLSZM
from radiomics.ngtdm import RadiomicsNGTDM

radiomics.logger.setLevel("ERROR")

BIN_NUMBER, STORED_256, BIN_SIZE, PYRADIOMICS = range(4)
PER_SLICE, SLICE_MERGED, DIRECTION_MERGED, FLAT_MERGED, AVERAGED, MERGED = range(6)
PIXELS = {"uint8": 0, "int16": 1, "uint16": 2}

OF_PYRADIOMICS = {
    "Autocorrelation": "autocorrelation",
    "ClusterProminence": "cluster_prominence",
    "ClusterShade": "cluster_shade",
    "ClusterTendency": "cluster_tendency",
    "Contrast": "contrast",
    "Correlation": "correlation",
    "DifferenceAverage": "difference_average",
    "DifferenceEntropy": "difference_entropy",
    "DifferenceVariance": "difference_variance",
    "Id": "inverse_difference",
    "Idm": "inverse_difference_moment",
    "Idmn": "normalised_inverse_difference_moment",
    "Idn": "normalised_inverse_difference",
    "Imc1": "information_correlation_1",
    "Imc2": "information_correlation_2",
    "InverseVariance": "inverse_variance",
    "JointAverage": "joint_average",
    "JointEnergy": "angular_second_moment",
    "JointEntropy": "joint_entropy",
    "MCC": "maximal_correlation_coefficient",
    "MaximumProbability": "joint_maximum",
    "SumAverage": "sum_average",
    "SumEntropy": "sum_entropy",
    "SumSquares": "joint_variance",
}
FIRST_ORDER = {
    "10Percentile": "percentile_10",
    "90Percentile": "percentile_90",
    "Energy": "energy",
    "Entropy": "entropy",
    "InterquartileRange": "interquartile_range",
    "Maximum": "maximum",
    "Mean": "mean",
    "Median": "median",
    "Minimum": "minimum",
    "Range": "range",
    "RootMeanSquared": "root_mean_square",
    "Skewness": "skewness",
    "Variance": "variance",
}
OF_RUNS = {
    "GrayLevelNonUniformity": "R5YN",
    "GrayLevelNonUniformityNormalized": "OVBL",
    "GrayLevelVariance": "8CE5",
    "HighGrayLevelRunEmphasis": "G3QZ",
    "LongRunEmphasis": "W4KF",
    "LongRunHighGrayLevelEmphasis": "3KUM",
    "LongRunLowGrayLevelEmphasis": "IVPO",
    "LowGrayLevelRunEmphasis": "V3SW",
    "RunEntropy": "HJ9O",
    "RunLengthNonUniformity": "W92Y",
    "RunLengthNonUniformityNormalized": "IC23",
    "RunPercentage": "9ZK5",
    "RunVariance": "SXLW",
    "ShortRunEmphasis": "22OV",
    "ShortRunHighGrayLevelEmphasis": "GD3A",
    "ShortRunLowGrayLevelEmphasis": "HTZT",
}
OF_ZONES = {
    "GrayLevelNonUniformity": "JNSA",
    "GrayLevelNonUniformityNormalized": "Y1RO",
    "GrayLevelVariance": "BYLV",
    "HighGrayLevelZoneEmphasis": "5GN9",
    "LargeAreaEmphasis": "48P8",
    "LargeAreaHighGrayLevelEmphasis": "J17V",
    "LargeAreaLowGrayLevelEmphasis": "YH51",
    "LowGrayLevelZoneEmphasis": "XMSY",
    "SizeZoneNonUniformity": "4JP3",
    "SizeZoneNonUniformityNormalized": "VB3A",
    "SmallAreaEmphasis": "5QRC",
    "SmallAreaHighGrayLevelEmphasis": "HW1V",
    "SmallAreaLowGrayLevelEmphasis": "5RAI",
    "ZoneEntropy": "GU8N",
    "ZonePercentage": "P30P",
    "ZoneVariance": "3NSA",
}
OF_DEPENDENCES = {
    "DependenceEntropy": "FCBV",
    "DependenceNonUniformity": "Z87G",
    "DependenceNonUniformityNormalized": "OKJI",
    "DependenceVariance": "DNX2",
    "GrayLevelNonUniformity": "FP8K",
    "GrayLevelVariance": "1PFV",
    "HighGrayLevelEmphasis": "OAE7",
    "LargeDependenceEmphasis": "IMOQ",
    "LargeDependenceHighGrayLevelEmphasis": "9QMG",
    "LargeDependenceLowGrayLevelEmphasis": "NBZI",
    "LowGrayLevelEmphasis": "TL9H",
    "SmallDependenceEmphasis": "SODN",
    "SmallDependenceHighGrayLevelEmphasis": "JA6D",
    "SmallDependenceLowGrayLevelEmphasis": "EQ3F",
}
OF_TONES = {"Coarseness": "QCDE", "Contrast": "65HE", "Busyness": "NQ30", "Complexity": "HDEZ", "Strength": "1X9X"}
HARALICK = [
    "angular_second_moment",
    "contrast",
    "correlation",
    "joint_variance",
    "inverse_difference_moment",
    "sum_average",
    "sum_variance",
    "sum_entropy",
    "joint_entropy",
    "difference_variance",
    "difference_entropy",
    "information_correlation_1",
    "information_correlation_2",
]


def features(folder, volume, mask, **settings):
    """Returns the output of print_features for volume[z, y, x] within the mask."""
    volume.tofile(folder / "voxels")
    mask.astype(np.uint8).tofile(folder / "mask")
    slices, rows, columns = volume.shape
    settings |= {"columns": columns, "rows": rows, "slices": slices, "pixel": PIXELS[volume.dtype.name]}
    arguments = [f"{name}={value}" for name, value in settings.items()]
    return json.loads(run_program("print_features", folder / "voxels", folder / "mask", *arguments).stdout)


def assert_close(values, expected, names, relative=1e-9):
    wrong = {
        theirs: (values[ours], float(expected[theirs]))
        for theirs, ours in names.items()
        if not abs(values[ours] - float(expected[theirs])) <= relative * abs(float(expected[theirs]))
    }
    assert not wrong


def smooth(seed, shape, width=1.5):
    """A smooth, skewed random field between 0 and 1."""
    field = scipy.ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=shape), width)
    field = np.exp(field / field.std())
    return (field - field.min()) / np.ptp(field)


def blob(seed, shape):
    """A region with holes and a rough surface."""
    field = scipy.ndimage.gaussian_filter(np.random.default_rng(seed + 1000).normal(size=shape), 2)
    return field > np.quantile(field, 0.6)


def generated(name):
    if name == "smooth":
        return (smooth(1, (14, 40, 51)) * 500 - 100).astype(np.int16), blob(1, (14, 40, 51))
    if name == "rough":
        volume = np.random.default_rng(2).gamma(2, 60, (9, 33, 30)).astype(np.int16)
        return volume, np.ones(volume.shape, bool)
    volume = (smooth(3, (20, 65, 30), 4) * 3000).astype(np.uint16)  # long, thin, unsigned
    return volume, blob(3, volume.shape) & (volume < 800)


def series(name, first, count, rows, columns):
    """A part of a real series: volume and values of stored values."""
    parts = [pydicom.dcmread(path) for path in sorted((SHARED / name).glob("*.dcm"))]
    parts.sort(key=lambda part: float(part.ImagePositionPatient[2]))
    stack = np.stack([part.pixel_array for part in parts[first : first + count]])[:, rows, columns]
    return stack.astype(np.int16), float(parts[0].get("RescaleSlope", 1)), float(parts[0].get("RescaleIntercept", 0))


SETTINGS = {
    "default": (AVERAGED, PYRADIOMICS, {}),
    "force2D": (DIRECTION_MERGED, PYRADIOMICS, {"force2D": True}),
    "binCount": (AVERAGED, BIN_NUMBER, {"binCount": 32}),
    "merged": (MERGED, PYRADIOMICS, {"weightingNorm": "no_weighting"}),
    "distance 2": (AVERAGED, PYRADIOMICS, {"distances": [2]}),
    "merged binCount": (MERGED, BIN_NUMBER, {"weightingNorm": "no_weighting", "binCount": 64}),
}


def compare(folder, volume, mask, setting, slope=1.0, intercept=0.0, width=25):
    """Compares every feature of pyradiomics' GLCM class, and those of its first order class with the same definition."""
    aggregation, discretisation, options = SETTINGS[setting]
    ours = features(
        folder,
        volume,
        mask,
        aggregation=aggregation,
        discretisation=discretisation,
        levels=options.get("binCount", 32),
        width=width,
        distance=options.get("distances", [1])[0],
        slope=slope,
        intercept=intercept,
    )
    image = SimpleITK.GetImageFromArray(volume * slope + intercept)
    region = SimpleITK.GetImageFromArray(mask.astype(np.uint8))
    theirs = RadiomicsGLCM(image, region, binWidth=width, **options).execute()
    assert set(theirs) == set(OF_PYRADIOMICS)
    assert_close(ours["glcm"], theirs, OF_PYRADIOMICS)
    first_order = RadiomicsFirstOrder(image, region, binWidth=width, **options)
    first_order.enableAllFeatures()
    theirs = first_order.execute()
    assert_close(ours["basic"], theirs, FIRST_ORDER)
    assert abs(ours["basic"]["kurtosis"] + 3 - theirs["Kurtosis"]) <= 1e-9 * theirs["Kurtosis"]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["smooth", "rough", "thin"])
def test_generated_volumes_against_pyradiomics(tmp_path, name, setting):
    compare(tmp_path, *generated(name), setting)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("distance, alpha", [(1, 0), (2, 0), (3, 4)])
@pytest.mark.parametrize("name", ["smooth", "rough", "thin"])
def test_neighbourhoods_and_runs_against_pyradiomics(tmp_path, name, distance, alpha, flat):
    """pyradiomics merges slices for dependences and tones, and its runs have no distance. Voxels without a neighbour
    are left out, because its tones count them and IBSI's do not."""
    volume, mask = generated(name)
    around = np.ones((1 if flat else 3, 3, 3), int)
    mask &= scipy.ndimage.convolve(mask.astype(int), around, mode="constant") > 1
    ours = features(tmp_path, volume, mask, families=1, discretisation=PYRADIOMICS, distance=distance, alpha=alpha,
                    aggregation=DIRECTION_MERGED if flat else AVERAGED)
    ours = {feature["ibsi"]: feature["value"] for feature in ours["families"]}
    given = {"inputImage": SimpleITK.GetImageFromArray(volume.astype(float)),
             "inputMask": SimpleITK.GetImageFromArray(mask.astype(np.uint8)), "binWidth": 25, "force2D": flat}
    assert_close(ours, RadiomicsGLRLM(**given).execute(), OF_RUNS)
    assert_close(ours, RadiomicsGLSZM(**given).execute(), OF_ZONES)
    reaching = given | {"distances": list(range(1, distance + 1))}
    assert_close(ours, RadiomicsNGTDM(**reaching).execute(), OF_TONES)
    theirs = RadiomicsGLDM(**reaching, gldm_a=alpha).execute()
    assert set(theirs) == set(OF_DEPENDENCES)
    assert_close(ours, theirs, OF_DEPENDENCES)


def test_rescaled_values_against_pyradiomics(tmp_path):
    volume, mask = generated("smooth")
    for slope, intercept in (0.5, -1024.0), (-2.0, 100.0):
        compare(tmp_path, volume, mask, "default", slope, intercept, width=20)


@needs_shared
@pytest.mark.parametrize("setting", SETTINGS)
def test_computed_tomography_against_pyradiomics(tmp_path, setting):
    volume, slope, intercept = series("ct-head-5mm", 10, 8, slice(180, 300), slice(180, 300))
    values = volume * slope + intercept
    compare(tmp_path, volume, (values > -200) & (values < 300), setting, slope, intercept)


@needs_shared
@pytest.mark.parametrize("setting", SETTINGS)
def test_magnetic_resonance_against_pyradiomics(tmp_path, setting):
    volume, slope, intercept = series("mr-brain-t1", 150, 8, slice(150, 230), slice(150, 230))
    # Without rare levels, because pyradiomics adds 2.2e-16 to p_i. p_.j, the divisor of its MCC.
    mask = (volume > np.quantile(volume, 0.2)) & (volume < np.quantile(volume, 0.95))
    width = max(1, int(np.ptp(volume[mask]) * slope / 40))
    compare(tmp_path, volume, mask, setting, slope, intercept, width)


def by_definition(counts):
    """Returns all features of one matrix of counts by the formulas of IBSI's manual and Haralick's paper."""
    p = counts / counts.sum()
    n = len(p)
    i, j = np.meshgrid(np.arange(1, n + 1), np.arange(1, n + 1), indexing="ij")
    rows, columns = p.sum(1), p.sum(0)
    difference = np.array([p[abs(i - j) == k].sum() for k in range(n)])
    total = np.array([p[i + j == k].sum() for k in range(2, 2 * n + 1)])
    k_difference, k_total = np.arange(n), np.arange(2, 2 * n + 1)

    def entropy(array):
        array = array[array > 0]
        return -(array * np.log2(array)).sum()

    def moment(array, k, power):
        return ((k - (k * array).sum()) ** power * array).sum()

    mean_i, mean_j = (i * p).sum(), (j * p).sum()
    apart = np.outer(rows, columns)
    hxy1 = -(p[apart > 0] * np.log2(apart[apart > 0])).sum()
    both = i + j - mean_i - mean_j
    present = rows > 0
    q = (p[present] / rows[present, None]) @ (p[present] / np.where(columns > 0, columns, 1)).T
    off = i != j
    return {
        "joint_maximum": p.max(),
        "joint_average": mean_i,
        "joint_variance": ((i - mean_i) ** 2 * p).sum(),
        "joint_entropy": entropy(p),
        "difference_average": (k_difference * difference).sum(),
        "difference_variance": moment(difference, k_difference, 2),
        "difference_entropy": entropy(difference),
        "sum_average": (k_total * total).sum(),
        "sum_variance": moment(total, k_total, 2),
        "sum_entropy": entropy(total),
        "angular_second_moment": (p**2).sum(),
        "contrast": ((i - j) ** 2 * p).sum(),
        "dissimilarity": (abs(i - j) * p).sum(),
        "inverse_difference": (p / (1 + abs(i - j))).sum(),
        "normalised_inverse_difference": (p / (1 + abs(i - j) / n)).sum(),
        "inverse_difference_moment": (p / (1 + (i - j) ** 2)).sum(),
        "normalised_inverse_difference_moment": (p / (1 + (i - j) ** 2 / n**2)).sum(),
        "inverse_variance": (p[off] / (i - j)[off] ** 2).sum(),
        "correlation": ((i - mean_i) * (j - mean_j) * p).sum()
        / np.sqrt(((i - mean_i) ** 2 * p).sum() * ((j - mean_j) ** 2 * p).sum()),
        "autocorrelation": (i * j * p).sum(),
        "cluster_tendency": (both**2 * p).sum(),
        "cluster_shade": (both**3 * p).sum(),
        "cluster_prominence": (both**4 * p).sum(),
        "information_correlation_1": (entropy(p) - hxy1) / max(entropy(rows), entropy(columns)),
        "information_correlation_2": np.sqrt(1 - np.exp(-2 * (entropy(apart) - entropy(p)))),
        "maximal_correlation_coefficient": np.sqrt(np.sort(np.linalg.eigvals(q).real)[-2]),
    }


@pytest.mark.parametrize("symmetric", [0, 1])
@pytest.mark.parametrize("aggregation", range(6))
def test_definitions(tmp_path, aggregation, symmetric):
    volume, mask = generated("smooth")
    ours = features(
        tmp_path, volume, mask, aggregation=aggregation, discretisation=BIN_SIZE, width=40, symmetric=symmetric, counts=1
    )
    n = ours["levels"]
    flat = aggregation < AVERAGED
    counts = np.array(ours["counts"], float).reshape(-1, 4 if flat else 13, n, n)
    if symmetric:
        counts = counts + counts.transpose(0, 1, 3, 2)
    if aggregation in (SLICE_MERGED, FLAT_MERGED, MERGED):
        counts = counts.sum(1, keepdims=True)
    each = [by_definition(matrix) for matrix in counts.reshape(-1, n, n) if matrix.sum() > 0]
    mean = {name: np.mean([values[name] for values in each]) for name in each[0]}
    assert set(mean) == set(ours["glcm"])
    assert_close(ours["glcm"], mean, {name: name for name in mean})


@pytest.mark.parametrize("depth", [1, 12])
def test_haralick_against_mahotas(tmp_path, depth):
    """f1 to f13. Its f14 uses the correlation coefficients of the matrix's rows, which is another feature."""
    field = smooth(5, (depth, 40, 45))
    levels = np.searchsorted(np.quantile(field, np.arange(1, 16) / 16), field).astype(np.uint8) + 1
    mask = blob(5, levels.shape)
    ours = features(
        tmp_path,
        levels,
        mask,
        aggregation=PER_SLICE if depth == 1 else AVERAGED,
        discretisation=BIN_SIZE,
        width=1,
    )
    masked = np.where(mask, levels, 0)
    theirs = mahotas.features.haralick(
        masked[0] if depth == 1 else masked,
        ignore_zeros=True,
        use_x_minus_y_variance=True,
        preserve_haralick_bug=False,
    )
    assert len(theirs) == (4 if depth == 1 else 13)
    assert levels[mask].min() == 1  # so that both number the levels alike
    expected = dict(zip(HARALICK, theirs.mean(0), strict=True))
    assert_close(ours["glcm"], expected, {name: name for name in HARALICK})


def test_counts_and_properties_against_scikit_image(tmp_path):
    image = (smooth(7, (1, 60, 47)) * 255).astype(np.uint8)
    ours = features(
        tmp_path, image, np.ones(image.shape), aggregation=PER_SLICE, discretisation=STORED_256, levels=16, symmetric=0, counts=1
    )
    # skimage's angles turn towards larger rows: right, left and down, down, right and down.
    angles = [0, 3 * np.pi / 4, np.pi / 2, np.pi / 4]
    levels = (image[0].astype(int) * 16 // 256).astype(np.uint8)
    theirs = skimage.feature.graycomatrix(levels, [1], angles, levels=16)
    assert np.array_equal(np.array(ours["counts"]).reshape(4, 16, 16), theirs[:, :, 0].transpose(2, 0, 1))
    names = {
        "contrast": "contrast",
        "dissimilarity": "dissimilarity",
        "homogeneity": "inverse_difference_moment",
        "ASM": "angular_second_moment",
        "correlation": "correlation",
        "variance": "joint_variance",
    }
    properties = {name: skimage.feature.graycoprops(theirs, name).mean() for name in names}
    assert_close(ours["glcm"], properties, names)


def test_intensities_against_numpy(tmp_path):
    volume, mask = generated("smooth")
    ours = features(tmp_path, volume, mask, slope=0.25, intercept=-3, x=0.5, y=0.75, z=2.5, lo=-20, hi=60)["basic"]
    values = volume * 0.25 - 3
    mask = mask & (values >= -20) & (values <= 60)
    places = np.argwhere(mask)[:, ::-1]
    values = values[mask]
    size = (np.ptp(places, 0) + 1) * (0.5, 0.75, 2.5)
    centre = places.mean(0) * (0.5, 0.75, 2.5)
    expected = {
        "voxel_count": len(values),
        "volume": len(values) * 0.5 * 0.75 * 2.5 / 1000,
        "mean": values.mean(),
        "standard_deviation": values.std(),
        "variance": values.var(),
        "median": np.median(values),
        "minimum": values.min(),
        "percentile_10": np.percentile(values, 10),
        "percentile_90": np.percentile(values, 90),
        "maximum": values.max(),
        "interquartile_range": np.subtract(*np.percentile(values, [75, 25])),
        "range": np.ptp(values),
        "energy": (values**2).sum(),
        "root_mean_square": np.sqrt((values**2).mean()),
    }
    expected |= {f"centroid_{axis}": at for axis, at in zip("xyz", centre, strict=True)}
    expected |= {f"box_{axis}": edge for axis, edge in zip(("columns", "rows", "slices"), size, strict=True)}
    assert_close(ours, expected, {name: name for name in expected})


def test_undefined_features_are_absent(tmp_path):
    volume = np.full((3, 4, 5), 7, np.int16)
    mask = np.ones(volume.shape, bool)
    flat = features(tmp_path, volume, mask, discretisation=PYRADIOMICS)["glcm"]
    absent = {"correlation", "information_correlation_1", "maximal_correlation_coefficient"}
    assert {name for name, value in flat.items() if value is None} == absent
    mask[:] = False
    empty = features(tmp_path, volume, mask)
    assert set(empty["glcm"].values()) == {None}
    assert {name for name, value in empty["basic"].items() if value is not None} == {"voxel_count", "volume"}
    mask[1, 2, 3] = True
    assert set(features(tmp_path, volume, mask)["glcm"].values()) == {None}

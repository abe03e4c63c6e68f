"""All features compared with MIRP. It has those that pyradiomics lacks: densities, Moran's I and Geary's C, local
intensity, the intensity-volume histogram, and zones by distance. docs/features.md lists the differences and their
reasons."""

import numpy as np
import pytest
from conftest import needs_shared
from mirp import extract_features
from mirp._features.feature_generator import generate_features
from mirp.data_import.import_image import import_image
from mirp.data_import.import_mask import import_mask
from mirp.settings.feature_parameters import FeatureExtractionSettingsClass
from test_features import BIN_NUMBER, BIN_SIZE, blob, features, series, smooth
from test_ibsi import IN_ML, phantom
from test_morphology import has_diagonals

SPACING = (0.7, 0.9, 2.5)  # along columns, rows, slices
AGGREGATIONS = ["2d_average", "2d_slice_merge", "2.5d_direction_merge", "2.5d_volume_merge", "3d_average", "3d_volume_merge"]
# Features with one code of IBSI at 10 and at 90 percent, the differences of these, and a slip.
CODES = {"NK6P": ("BC2M", 10), "4279": ("BC2M", 90), "PWN1": ("GBPN", 10), "BOHI": ("GBPN", 90), "WITY": ("DDTU", 0),
         "JXJA": ("CNV2", 0), "P6QZ1": ("P6QZ", 0)}
WITHOUT_BENCHMARK = {"ZH1A", "IQYR", "SWZ1", "BRI8", "9CMM"}
OF_MESH = {"RNU0", "C0JK", "2PR5", "SKGS", "BQWJ", "KRCK", "QCFX", "25C7", "99N0", "PBX1", "R59B", "6BDE", "RDD2", "R3ER", "7T7F"}
LEVELS = 16
SHAPE = (11, 30, 38)  # slices, rows, columns


def of_mirp(values, mask, spacing, aggregation, options):
    """Returns {(code, percent): value}. Without files, because these would hold 32-bit floats."""
    dimension = AGGREGATIONS[aggregation].split("_")[0]
    options = {"base_feature_families": "all", "base_discretisation_method": "fixed_bin_number",
               "base_discretisation_n_bins": LEVELS, "no_approximation": True,
               **{f"{family}_spatial_method": AGGREGATIONS[aggregation] for family in ("glcm", "glrlm")},
               **{f"{family}_spatial_method": dimension for family in ("glszm", "gldzm", "ngtdm", "ngldm")}, **options}
    (image,), (region,) = import_image(values.astype(float), image_modality="ct"), import_mask(mask.astype(int))
    image.image_spacing = region.image_spacing = spacing[::-1]
    (told,) = extract_features(image=image, mask=region, **options)
    found = {}
    for feature in generate_features(FeatureExtractionSettingsClass(**options)):
        feature.create_table_name()
        if feature.ibsi_id and feature.ibsi_id not in WITHOUT_BENCHMARK:
            found[CODES.get(feature.ibsi_id, (feature.ibsi_id, 0))] = float(told[feature.table_name].iloc[0])
    return found


def of_noctule(folder, volume, mask, spacing, aggregation, settings):
    told = features(folder, volume, mask, families=1, aggregation=aggregation, **dict(zip("xyz", spacing, strict=True)),
                    **({"discretisation": BIN_NUMBER, "levels": LEVELS} | settings))["families"]
    return {(f["ibsi"], f["percent"]): np.nan if f["value"] is None else f["value"] * (1000 if f["ibsi"] in IN_ML else 1)
            for f in told if f["ibsi"]}


def compare(ours, theirs, without=frozenset()):
    assert set(ours) == set(theirs)
    compared = {key: (ours[key], theirs[key]) for key in theirs if key[0] not in without}
    print(f"{len(compared)} of {len(theirs)} features are MIRP's")
    wrong = {key: (a, b) for key, (a, b) in compared.items() if not np.isclose(a, b, rtol=1e-9, atol=1e-25, equal_nan=True)}
    assert not wrong


def region(name, shape):
    """A region from which no ball of 1 cm3 reaches the end of the volume, because MIRP uses its own value beyond it."""
    if name == "ellipsoid":
        axes = np.ogrid[tuple(slice(-1, 1, count * 1j) for count in shape)]
        radius = np.sqrt(sum(axis**2 for axis in axes))
        return (radius < 0.51) & (radius > 0.2)
    inner = tuple(slice(count // 4 + 1, -(count // 4) - 1) for count in shape)
    mask = np.zeros(shape, bool)
    if name == "slice":
        mask[(slice(shape[0] // 2, shape[0] // 2 + 1), *inner[1:])] = blob(2, (1, *mask[inner].shape[1:]))
    else:
        mask[inner] = blob(3, mask[inner].shape) if name == "holes" else np.random.default_rng(4).random(mask[inner].shape) < 0.4
    return mask


@pytest.mark.parametrize("aggregation", range(6))
def test_ellipsoid(tmp_path, aggregation):
    volume = (smooth(3, SHAPE) * 300 - 100).astype(np.int16)
    mask = region("ellipsoid", volume.shape)
    assert not has_diagonals(mask)
    compare(of_noctule(tmp_path, volume, mask, SPACING, aggregation, {}), of_mirp(volume, mask, SPACING, aggregation, {}))


@pytest.mark.parametrize("aggregation", [0, 4])
@pytest.mark.parametrize("name", ["holes", "dust", "slice"])
def test_rough_regions(tmp_path, name, aggregation):
    """MIRP's mesh joins voxels that meet at an edge. For a flat region it has no enclosing ellipsoid."""
    volume = np.random.default_rng(2).gamma(2, 60, SHAPE).astype(np.int16)
    mask = region(name, volume.shape)
    compare(of_noctule(tmp_path, volume, mask, SPACING, aggregation, {}), of_mirp(volume, mask, SPACING, aggregation, {}), OF_MESH)


IVH = {"range": ({}, {}),
       "bin size": ({"ivh": 2, "ivh_width": 2.5}, {"ivh_discretisation_method": "fixed_bin_size", "ivh_discretisation_bin_width": 2.5}),
       "bin number": ({"ivh": 1, "ivh_levels": 1000}, {"ivh_discretisation_method": "fixed_bin_number", "ivh_discretisation_n_bins": 1000})}


@pytest.mark.parametrize("ivh", IVH)
def test_range(tmp_path, ivh):
    """Re-segmentation makes the two masks differ. Bins of a fixed size begin at the lower end of the range."""
    volume = (smooth(3, SHAPE) * 300 - 100).astype(np.int16)
    mask = region("ellipsoid", volume.shape)
    ours, theirs = IVH[ivh]
    compare(of_noctule(tmp_path, volume, mask, SPACING, 5, {"discretisation": BIN_SIZE, "width": 25, "lo": -95, "hi": 20} | ours),
            of_mirp(volume, mask, SPACING, 5, {"base_discretisation_method": "fixed_bin_size", "base_discretisation_bin_width": 25.0,
                                               "resegmentation_intensity_range": [-95.0, 20.0]} | theirs))


def test_dependence_from_afar(tmp_path):
    """MIRP's NGTDM uses neighbours at distance 1, and its co-occurrence is compared at no other one."""
    volume = (smooth(3, SHAPE) * 300 - 100).astype(np.int16)
    mask = region("ellipsoid", volume.shape)
    compare(of_noctule(tmp_path, volume, mask, SPACING, 4, {"distance": 2, "alpha": 1}),
            of_mirp(volume, mask, SPACING, 4, {"ngldm_distance": 2.0, "ngldm_difference_level": 1.0}),
            {"QCDE", "65HE", "NQ30", "HDEZ", "1X9X"})


@needs_shared
@pytest.mark.parametrize("aggregation", range(6))
def test_digital_phantom(tmp_path, aggregation):
    volume, mask, spacing = phantom("ibsi_1_digital_phantom")
    spacing = tuple(spacing.values())
    compare(of_noctule(tmp_path, volume, mask, spacing, aggregation, {"levels": 6}),
            of_mirp(volume, mask, spacing, aggregation, {"base_discretisation_n_bins": 6}), OF_MESH if has_diagonals(mask) else set())


@needs_shared
@pytest.mark.parametrize("aggregation", [2, 5])
def test_computed_tomography(tmp_path, aggregation):
    volume, slope, intercept = series("ct-head-5mm", 10, 8, slice(180, 240), slice(180, 240))
    values, mask = volume * slope + intercept, np.zeros(volume.shape, bool)
    mask[2:-2, 15:-15, 15:-15] = (values[2:-2, 15:-15, 15:-15] > -200) & (values[2:-2, 15:-15, 15:-15] < 300)
    ours = {"slope": slope, "intercept": intercept, "lo": -200, "hi": 300}
    compare(of_noctule(tmp_path, volume, mask, (0.45, 0.45, 5.0), aggregation, ours),
            of_mirp(values, mask, (0.45, 0.45, 5.0), aggregation, {"resegmentation_intensity_range": [-200.0, 300.0]}))

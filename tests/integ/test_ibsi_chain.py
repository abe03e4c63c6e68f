"""The CT phantom of IBSI, from DICOM and its RTSTRUCT to features.json by one `noctule run` per configuration. It
must give the manual's diagnostics of every step, and its reference values of the implemented families."""

import csv
import json
import subprocess

import pydicom
import pytest
from conftest import BIN, SHARED, needs_shared
from test_contours import PHANTOM
from test_resample import resample

IMAGES, OBJECTS = SHARED / PHANTOM / "dicom" / "image", SHARED / PHANTOM / "dicom" / "mask"
SEGMENT = ('{ label = "GTV-1"; method = "object"; object = { kind = "rtstruct"; roi = "GTV-1"; }; '
           'type = { code = "86049000"; scheme = "SCT"; meaning = "Neoplasm, Primary"; }; }')
IN_SLICES = "2d-averaged", "2d-slice-merged", "2.5d-direction-merged", "2.5d-merged"
IN_SPACE = "3d-averaged", "3d-merged"
TWO_MM = "resample = { isotropic_mm = 2.0; };"
CUBIC = 'resample = { isotropic_mm = 2.0; interpolation = "cubic"; };'
SIZE_25 = 'discretisation = "fixed-bin-size"; bin_width = 25.0;'
NUMBER_32 = 'discretisation = "fixed-bin-number"; levels = 32;'
# Per configuration of the manual's table: interpolation; re-segmentation and discretisation; aggregations; grid and
# order for resample_volume.
CONFIGURATIONS = {
    "a": ("", "range = [ -500.0, 400.0 ];" + SIZE_25, IN_SLICES, ("spaced:0,0,0", 1)),
    "b": ("resample = { in_plane_mm = 2.0; };", "range = [ -500.0, 400.0 ];" + NUMBER_32, IN_SLICES, ("spaced:2,2,0", 1)),
    "c": (TWO_MM, 'range = [ -1000.0, 400.0 ]; ivh_discretisation = "fixed-bin-size"; ivh_bin_width = 2.5;' + SIZE_25, IN_SPACE, ("spaced:2,2,2", 1)),
    "d": (TWO_MM, "sigma = 3.0;" + NUMBER_32, IN_SPACE, ("spaced:2,2,2", 1)),
    "e": (CUBIC, 'range = [ -1000.0, 400.0 ]; sigma = 3.0; ivh_discretisation = "fixed-bin-number"; ivh_levels = 1000;' + NUMBER_32, IN_SPACE, ("spaced:2,2,2", 3)),
}
# Groups outside the configurations, for diagnostics of image and region before and after interpolation.
BOTH = 'regions = [ "segments", "volume" ];'
UNITS = {"ml": 1000.0, "[hnsf'U].ml": 1000.0}  # from the manual's mm3
PERCENT = {"ivh_v10": 10, "ivh_v90": 90, "ivh_i10": 10, "ivh_i90": 90}  # the two of each pair have one code
FAMILIES = 'families = [ "all" ];'


def published(name, configuration):
    with open(SHARED / "ibsi" / name, encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [row for row in rows if row["dataset"].endswith(f"config_{configuration}")]


@pytest.fixture
def measured(tmp_path, request):
    """Returns the measurements of noctule run for a configuration, from features.json."""
    configuration = request.getfixturevalue("configuration")
    interpolation, more, aggregations, _ = CONFIGURATIONS[configuration]
    groups = [BOTH] + [BOTH + interpolation] * bool(interpolation)
    groups += [f'{FAMILIES} {interpolation} {more} aggregation = "{aggregation}";' for aggregation in aggregations]
    config = tmp_path / "noctule.conf"
    config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "ibsi"; segments = ( {SEGMENT} ); '
                      f'results = [ "sr" ]; texture = ( {", ".join("{ " + group + " }" for group in groups)} ); }} );')
    (rtstruct,) = OBJECTS.glob("*.dcm")
    result = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "ibsi", "-o", tmp_path / "out", "--object",
                             rtstruct, IMAGES], text=True, capture_output=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads((tmp_path / "out" / "features.json").read_text())


def is_close(found, row):
    """Returns whether the value is within the tolerance, or within the three printed digits."""
    value, tolerance = float(row["value"]), float(row["tolerance"] or 0)
    return min(abs(found - value), abs(float(f"{found:.3g}") - value)) <= tolerance * (1 + 1e-12)


class Stage:
    """The features of a stage: original image, interpolated image, or re-segmented region."""

    def __init__(self, features, interpolated, resegmented):
        self.features = [f for f in features if bool(f["interpolation"]) == interpolated
                         and (f["family"] in ("shape", "morphology") or bool(f["range"] or f["sigma"]) == resegmented)]

    def value(self, name, segment):
        values = {f["value"] for f in self.features if (f["name"], f["segment_number"]) == (name, segment)}
        (value,) = values  # the same in several groups
        return value

    def image(self, spacing):
        sizes = dict(zip("xyz", (round(self.value(f"box_{side}", 0) / mm)
                                 for side, mm in zip(("columns", "rows", "slices"), spacing))))
        return {**{f"img_dim_{axis}": size for axis, size in sizes.items()},
                **{f"vox_dim_{axis}": mm for axis, mm in zip("xyz", spacing)},
                "mean_int": self.value("mean", 0), "min_int": self.value("minimum", 0), "max_int": self.value("maximum", 0)}

    def roi(self, spacing, image):
        boxes = dict(zip("xyz", (round(self.value(f"box_{side}", 1) / mm)
                                 for side, mm in zip(("columns", "rows", "slices"), spacing))))
        return {**{f"int_mask_dim_{axis}": image[f"img_dim_{axis}"] for axis in "xyz"},
                **{f"{kind}_mask_bb_dim_{axis}": boxes[axis] for kind in ("int", "morph") for axis in "xyz"},
                # The number of voxels follows from the sum and the mean of squares.
                "int_mask_vox_count": round(self.value("energy", 1) / self.value("root_mean_square", 1) ** 2),
                "morph_mask_vox_count": self.value("voxel_count", 1), "int_mask_mean_int": self.value("mean", 1),
                "int_mask_min_int": self.value("minimum", 1), "int_mask_max_int": self.value("maximum", 1)}


def boxes_of_values(folder, configuration, lo, hi):
    """Returns the sizes of the box around the region's voxels with values from lo to hi, which no feature has."""
    grid, order = CONFIGURATIONS[configuration][3]
    images = sorted(IMAGES.glob("*.dcm"))
    (rtstruct,) = OBJECTS.glob("*.dcm")
    volume, mask = (resample(folder, images, n, grid, rtstruct=drawn)[1] for n, drawn in ((order, "-"), (1, rtstruct)))
    values = volume + float(pydicom.dcmread(images[0], stop_before_pixels=True).RescaleIntercept)
    kept = (mask > 0) & (values >= lo) & (values <= hi)
    sides = [kept.any(axis=axes).nonzero()[0] for axes in ((0, 1), (0, 2), (1, 2))]
    return {f"int_mask_bb_dim_{axis}": side[-1] - side[0] + 1 for axis, side in zip("xyz", sides)}, kept.sum()


def assert_all_met(kind, configuration, results):
    met = sum(results.values())
    print(f"configuration {configuration.upper()}: {met} of {len(results)} {kind} met")
    assert met == len(results), [name for name, is_met in results.items() if not is_met]


@needs_shared
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_every_step_is_the_manuals(measured, tmp_path, configuration):
    interpolation = CONFIGURATIONS[configuration][0]
    source = (0.97699999809265, 0.97699999809265, 3.0)
    spacing = {"": source, "resample = { in_plane_mm = 2.0; };": (2.0, 2.0, 3.0)}.get(interpolation, (2.0, 2.0, 2.0))
    first, between, last = (Stage(measured, *which) for which in (
        (False, False), (bool(interpolation), False), (bool(interpolation), True)))
    image, interpolated = first.image(source), between.image(spacing)
    found = {
        **{f"{name}_init_img": value for name, value in image.items()},
        **{f"{name}_interp_img": value for name, value in interpolated.items()},
        **{f"{name}_init_roi": value for name, value in first.roi(source, image).items()},
        **{f"{name}_interp_roi": value for name, value in between.roi(spacing, interpolated).items()},
        **{f"{name}_reseg_roi": value for name, value in last.roi(spacing, interpolated).items()}}
    boxes, voxels = boxes_of_values(tmp_path, configuration, found["int_mask_min_int_reseg_roi"], found["int_mask_max_int_reseg_roi"])
    assert voxels == found["int_mask_vox_count_reseg_roi"]
    found |= {f"{name}_reseg_roi": size for name, size in boxes.items()}
    rows = published("ibsi_1_diagnostics.csv", configuration)
    assert len(rows) == 60
    assert_all_met("diagnostics", configuration, {row["ibsi_tag"]: is_close(found[row["ibsi_tag"]], row) for row in rows})


@needs_shared
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_features_are_the_manuals(measured, configuration):
    interpolation = CONFIGURATIONS[configuration][0]
    last = Stage(measured, bool(interpolation), True)
    found = {(f["ibsi_code"], f["aggregation_ibsi_code"] or "DHQ4", f["percent"]): f["value"] and f["value"] * UNITS.get(f["unit"], 1)
             for f in last.features if f["segment_number"] == 1 and f["ibsi_code"]}
    rows = {(row["ibsi_code"], row["aggregation_code"], PERCENT.get(row["ibsi_tag"])): row
            for row in published("ibsi_1_reference_values.csv", configuration) if row["value"]}
    assert_all_met("reference values", configuration, {
        f"{row['feature']} ({' '.join(map(str, filter(None, key)))}): {found.get(key)}, not {row['value']} +- {row['tolerance'] or 0}":
        found.get(key) is not None and is_close(found[key], row) for key, row in rows.items()})

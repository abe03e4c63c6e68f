"""`noctule run --image`: images and masks of NIfTI and NRRD against the values that pyradiomics publishes for its own five
cases, pyradiomics on random images, and the same job on DICOM files."""

import csv
import json
import os
import subprocess
import sys

import nibabel
import numpy as np
import pytest
import radiomics.featureextractor
import SimpleITK
from conftest import BIN, SOURCE, phantom
from test_features import FIRST_ORDER, OF_DEPENDENCES, OF_PYRADIOMICS, OF_RUNS, OF_TONES, OF_ZONES
from test_morphology import IN_ONE_SLICE
from test_run import exact_values  # noqa: F401
from texture_runs import TYPE

from pathlib import Path

BASELINE = Path(sys.prefix) / "share/pyradiomics"
CASES = ("brain1", "brain2", "breast1", "lung1", "lung2")
FAMILIES = {"firstorder": ("first-order", FIRST_ORDER | {"MeanAbsoluteDeviation": "mean_absolute_deviation",
                                                         "RobustMeanAbsoluteDeviation": "robust_mean_absolute_deviation"}),
            "glcm": ("glcm", OF_PYRADIOMICS), "glrlm": ("glrlm", OF_RUNS), "glszm": ("glszm", OF_ZONES),
            "gldm": ("ngldm", OF_DEPENDENCES), "ngtdm": ("ngtdm", OF_TONES)}
SHAPES = {"Maximum3DDiameter": "maximum_3d_diameter", "Elongation": "elongation", "Flatness": "flatness",
          "Maximum2DDiameterSlice": "maximum_2d_diameter_slice", "Maximum2DDiameterColumn": "maximum_2d_diameter_column",
          "Maximum2DDiameterRow": "maximum_2d_diameter_row"}
AXES = {"MajorAxisLength": "major_axis_length", "MinorAxisLength": "minor_axis_length", "LeastAxisLength": "least_axis_length"}
COUNT = sum(len(names) for _, names in FAMILIES.values())
PROFILE = 'profile = "pyradiomics-default";'
# A pipeline needs segments, which a mask replaces.
UNUSED = f'{{ label = "Unused"; method = "range"; range = [ 1.0, 2.0 ]; {TYPE} }}'


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with one pipeline, which measures. Returns the CompletedProcess."""
    config = tmp_path / "noctule.conf"

    def call(*arguments, texture=PROFILE, segments=UNUSED, status=0, results='"seg"', pipeline="measure", more=""):
        more = more or f"texture = {{ {texture} }};"
        config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "measure"; min_slices = 1; '
                          f'results = [ {results} ]; segments = ( {segments} ); {more} }} );')
        result = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", pipeline, *map(str, arguments)],
                                capture_output=True, text=True, timeout=600)
        assert result.returncode == status, result.stderr
        return result

    return call


def features(output):
    return json.loads((output / "features.json").read_text())


def by_family(output):
    """Returns the values per family, by name and by IBSI's code."""
    found = {}
    for feature in features(output):
        for key in ("name", "ibsi_code"):
            found.setdefault(feature["family"], {})[feature[key]] = feature["value"]
    return found


def compare(output, expected):
    """Compares with values of pyradiomics by class and name, within 1e-6. Returns how many."""
    ours, count = by_family(output), 0
    for kind, (family, names) in FAMILIES.items():
        for theirs, name in names.items():
            if (kind, theirs) not in expected: # of fewer classes
                continue
            value = float(expected[kind, theirs])
            if name == "entropy" and name not in ours[family]:  # one family of two has it
                found = ours["intensity-histogram"][name]
            else:
                found = ours[family][name]
            assert abs(found - value) <= 1e-6 * abs(value) + 1e-15, (kind, theirs, found, value)
            count += 1
    if ("firstorder", "Kurtosis") in expected:
        kurtosis = float(expected["firstorder", "Kurtosis"])
        assert abs(ours["first-order"]["kurtosis"] + 3 - kurtosis) <= 1e-6 * kurtosis
    return count


def published(case, variant):
    found = {}
    for kind in FAMILIES:
        with open(BASELINE / "baseline" / f"baseline_{kind}.csv") as table:
            for row in csv.DictReader(table):
                if case + variant in row:
                    found[kind, row["featureName"].split("_")[-1]] = row[case + variant]
    return found


# --- pyradiomics ---


@pytest.mark.parametrize("case", CASES)
def test_published_values_of_pyradiomics(run, tmp_path, case):
    run("-o", tmp_path / "out", "--image", BASELINE / f"{case}_image.nrrd", "--mask", BASELINE / f"{case}_label.nrrd",
        texture=PROFILE + " energy_shift = 2000.0;")
    assert compare(tmp_path / "out", published(case, "")) == COUNT
    shifted = {feature["name"]: feature["energy_shift"] for feature in features(tmp_path / "out")}
    assert {name for name, shift in shifted.items() if shift == 2000} == {"energy", "root_mean_square"}


def assert_published(found, kind, column, names, tolerance=1e-6):
    with open(BASELINE / "baseline" / f"baseline_{kind}.csv") as table:
        expected = {row["featureName"].split("_")[-1]: row[column] for row in csv.DictReader(table)}
    for theirs, name in names.items():
        assert found[name] == pytest.approx(float(expected[theirs]), rel=tolerance), theirs


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("variant", ("", "_resampling"))
def test_published_shapes(run, tmp_path, case, variant):
    """Volumes are in ml. Axes are of IBSI's variance of a sample. pyradiomics' mesh has holes where a face between four voxels has
    two of the region on a diagonal: with such faces, volume and surface of the mesh agree within 0.5 %."""
    resample = 'resample = { isotropic_mm = 2.0; interpolation = "pyradiomics-cubic"; };' * (variant != "")
    image, mask = (BASELINE / f"{case}_{kind}.nrrd" for kind in ("image", "label"))
    run("-o", tmp_path / "out", "--image", image, "--mask", mask, texture='families = [ "shape", "morphology" ]; first_order = false;' + resample)
    found = by_family(tmp_path / "out")
    assert_published(found["morphology"], "shape", case + variant, SHAPES)
    voxel = 8 if variant else np.prod(SimpleITK.ReadImage(str(mask)).GetSpacing())
    count = round(found["shape"]["volume"] * 1000 / voxel)
    other = {name: value * ((count - 1) / count) ** 0.5 if name.endswith("axis_length") else value * 1000
             for name, value in found["morphology"].items() if name in ("mesh_volume", *AXES.values())}
    assert_published(other, "shape", case + variant, AXES)
    assert_published({"volume": found["shape"]["volume"] * 1000}, "shape", case + variant, {"VoxelVolume": "volume"})
    holes = case + variant in ("brain1", "brain2", "lung2", "brain1_resampling", "lung2_resampling")
    assert_published(found["morphology"] | other, "shape", case + variant, {
        "MeshVolume": "mesh_volume", "SurfaceArea": "surface_area", "SurfaceVolumeRatio": "surface_to_volume_ratio",
        "Sphericity": "sphericity"}, 5e-3 if holes else 1e-6)


@pytest.mark.parametrize("case", CASES)
def test_published_shapes_in_one_slice(run, tmp_path, case):
    """pyradiomics' baseline has a mask of one slice per case."""
    with open(BASELINE / "baseline" / "baseline_shape2D.csv") as table:
        rows = {row["featureName"]: row[f"{case}_shape2D"] for row in csv.DictReader(table)}
    mask = SimpleITK.ReadImage(str(BASELINE / f"{case}_label.nrrd"))
    kept = SimpleITK.GetArrayFromImage(mask)
    for z in set(range(len(kept))) - {int(rows["diagnostics_Mask-corrected_BoundingBox"].split(",")[2])}:
        kept[z] = 0
    assert (kept == 1).sum() == int(rows["diagnostics_Mask-original_VoxelNum"])
    slice_ = SimpleITK.GetImageFromArray(kept)
    slice_.CopyInformation(mask)
    SimpleITK.WriteImage(slice_, str(tmp_path / "mask.nrrd"))
    for name, status in (("mask.nrrd", "one"), (f"{case}_label.nrrd", "several")):
        run("-o", tmp_path / status, "--image", BASELINE / f"{case}_image.nrrd", "--mask",
            tmp_path / name if status == "one" else BASELINE / name, texture='families = [ "shape-2d" ]; first_order = false;')
    assert_published(by_family(tmp_path / "one")["shape-2d"], "shape2D", f"{case}_shape2D",
                     {name: ours for name, ours in IN_ONE_SLICE.items() if name != "SphericalDisproportion"})
    assert {feature["reason"] for feature in features(tmp_path / "several")} == {"NOT_ONE_SLICE"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("variant, texture, count", (
    ("_2d", PROFILE + ' aggregation = "2.5d-direction-merged";', 75),
    ("_FBN", 'families = [ "first-order", "glcm", "glrlm", "glszm", "ngtdm", "ngldm" ]; discretisation = "fixed-bin-number"; '
     'levels = 64; aggregation = "3d-averaged"; ngldm_alpha = 0;', 75),
    ("_combined", PROFILE + ' aggregation = "3d-merged";', 40),
    ("_flatRegion", PROFILE + " bin_width = 5000.0; range = [ 0.0, 1e9 ];", 72)))
def test_published_values_of_other_settings(run, tmp_path, case, variant, texture, count):
    """Of one grey level, three features are 0 / 0: pyradiomics gives them a value, Noctule does not."""
    expected = published(case, variant)
    undefined = {("glcm", name): expected.pop(("glcm", name)) for name in ("Correlation", "Imc1", "MCC") if variant == "_flatRegion"}
    run("-o", tmp_path / "out", "--image", BASELINE / f"{case}_image.nrrd", "--mask", BASELINE / f"{case}_label.nrrd", texture=texture)
    assert compare(tmp_path / "out", expected) == count
    assert all(by_family(tmp_path / "out")["glcm"][OF_PYRADIOMICS[name]] is None for _, name in undefined)


@pytest.mark.parametrize("case", CASES)
def test_published_values_with_resegmentation(run, tmp_path, case):
    run("-o", tmp_path / "out", "--image", BASELINE / f"{case}_image.nrrd", "--mask", BASELINE / f"{case}_label.nrrd",
        texture=PROFILE + " sigma = 3.0;")
    assert compare(tmp_path / "out", published(case, "_resegmentation")) == COUNT


@pytest.mark.parametrize("case", CASES)
def test_published_values_of_normalised_images(run, tmp_path, case):
    """SimpleITK normalises, which gives an image of real numbers."""
    image = SimpleITK.ReadImage(str(BASELINE / f"{case}_image.nrrd"))
    normal = SimpleITK.Normalize(SimpleITK.Cast(image, SimpleITK.sitkFloat64)) * 100
    SimpleITK.WriteImage(normal, str(tmp_path / "normal.nrrd"))
    run("-o", tmp_path / "out", "--image", tmp_path / "normal.nrrd", "--mask", BASELINE / f"{case}_label.nrrd",
        texture=PROFILE + " bin_width = 5.0;")
    assert compare(tmp_path / "out", published(case, "_normalization")) == COUNT


@pytest.mark.parametrize("case", CASES)
def test_published_values_of_resampled_images(run, tmp_path, case):
    run("-o", tmp_path / "out", "--image", BASELINE / f"{case}_image.nrrd", "--mask", BASELINE / f"{case}_label.nrrd",
        texture=PROFILE + ' resample = { isotropic_mm = 2.0; interpolation = "pyradiomics-cubic"; };')
    assert compare(tmp_path / "out", published(case, "_resampling")) == COUNT


def ball(shape, seed):
    random = np.random.default_rng(seed)
    values = random.normal(0, 1, shape)
    for axis in range(3):
        values = (values + np.roll(values, 1, axis)) / 2
    place = np.indices(shape) - (np.array(shape)[:, None, None, None] - 1) / 2
    return values, (place ** 2).sum(0) < (min(shape) / 2.2) ** 2


def write_pair(folder, values, inside, hand, spacing=(0.7310, 0.9170, 2.3190)):
    """Writes image.nrrd and mask.nrrd, and returns both images. `hand`: -1: left-handed axes."""
    pair = [SimpleITK.GetImageFromArray(a) for a in (values, inside.astype(np.uint8))]
    for picture, name in zip(pair, ("image", "mask"), strict=True):
        picture.SetSpacing(spacing)
        picture.SetDirection((1, 0, 0, 0, hand, 0, 0, 0, 1))
        SimpleITK.WriteImage(picture, str(folder / f"{name}.nrrd"))
    return pair


@pytest.mark.parametrize("hand", (1, -1), ids=("right", "left"))
@pytest.mark.parametrize("kind", ("int16", "float64"))
@pytest.mark.parametrize("ours, theirs", (("linear", "sitkLinear"), ("cubic", "sitkBSpline"), ("nearest", "sitkNearestNeighbor")))
def test_the_grid_of_pyradiomics(run, tmp_path, ours, theirs, kind, hand):
    """Also of axes whose slices Noctule sorts the other way. Places that coincide with voxels would have whole values, which
    pyradiomics cuts off after an error of 1e-13."""
    values, inside = ball((16, 25, 28), 21)
    values = np.round(values * 300) if kind == "int16" else values * 100
    image, region = write_pair(tmp_path, values.astype(kind), inside, hand)
    extractor = radiomics.featureextractor.RadiomicsFeatureExtractor(resampledPixelSpacing=[1.103] * 3, interpolator=theirs)
    expected = {tuple(name.split("_")[1:]): value for name, value in extractor.execute(image, region).items()}
    run("-o", tmp_path / "out", "--image", tmp_path / "image.nrrd", "--mask", tmp_path / "mask.nrrd",
        texture=PROFILE + f' resample = {{ isotropic_mm = 1.103; interpolation = "pyradiomics-{ours}"; }};')
    assert compare(tmp_path / "out", expected) == COUNT


@pytest.mark.parametrize("kind, label", (("float64", 1), ("float32", 3), ("int16", 2), ("uint8", 1), ("int32", 700)))
def test_random_images_equal_pyradiomics(run, tmp_path, kind, label):
    """In NIfTI and NRRD, with spacing, rotation, and a label of another value beside it."""
    values, inside = ball((14, 21, 24), 5)
    values = {"uint8": values * 40 + 120, "int16": values * 300}.get(kind, values * 100)
    values = values if kind.startswith("float") else np.round(values)
    image = SimpleITK.GetImageFromArray(values.astype(kind))
    mask = np.where(inside, label, 0)
    mask[0] = label + 1
    region = SimpleITK.GetImageFromArray(mask.astype(np.uint16))
    turn = SimpleITK.VersorTransform((0.6, 0.3, -0.2), 0.7)
    for picture in (image, region):
        picture.SetSpacing((0.7, 1.1, 2.5))
        picture.SetDirection(turn.GetMatrix())
        picture.SetOrigin((-31, 12.5, 700))
    SimpleITK.WriteImage(image, str(tmp_path / "image.nrrd"))
    SimpleITK.WriteImage(image, str(tmp_path / "image.nii.gz"))
    SimpleITK.WriteImage(region, str(tmp_path / "mask.nii"))
    extractor = radiomics.featureextractor.RadiomicsFeatureExtractor(label=label)
    theirs = {tuple(name.split("_")[1:]): value for name, value in extractor.execute(image, region).items()}
    for name in ("image.nrrd", "image.nii.gz"):
        run("-o", tmp_path / name.replace(".", "-"), "--image", tmp_path / name, "--mask", tmp_path / "mask.nii",
            "--label", label)
        assert compare(tmp_path / name.replace(".", "-"), theirs) == COUNT


# --- parameter files of pyradiomics ---

PARAMETERS = {
    "defaults": "setting: {}\n",
    "bin count": "setting:\n  binCount: 24\n  force2D: true\n  label: 1\nimageType:\n  Original: {}\n"
                 "featureClass:\n" + "".join(f"  {kind}:\n" for kind in ("firstorder", "glcm", "glrlm", "glszm", "gldm", "ngtdm")),
    "resampled": "setting: { binWidth: 10, resampledPixelSpacing: [1.1, 1.1, 1.1], interpolator: sitkLinear }\n",
    "in plane": "setting: { binWidth: 10.5, resampledPixelSpacing: [1.013, 1.013, 0], interpolator: sitkBSpline }\n",
    "range": "setting: { resegmentRange: [-40, 70.5], voxelArrayShift: 300 }\n",
    "turned range": "setting: { resegmentRange: [70.5, -40] }\n",
    "no interpolator": "setting: { resampledPixelSpacing: [1.1, 1.1, 1.1], interpolator: ~ }\n",
    "deviations": "setting: { resegmentRange: [-2, 2], resegmentMode: sigma, gldm_a: 2, binWidth: 12 }\n",
}


def noctule(*arguments):
    return subprocess.run([BIN / "noctule", *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_file_of_pyradiomics(run, tmp_path, name):
    """pyradiomics by the file, and Noctule by the texture groups that it prints of it."""
    file = tmp_path / "parameters.yaml"
    file.write_text(PARAMETERS[name])
    values, inside = ball((16, 25, 28), 9)
    image, region = (SimpleITK.GetImageFromArray(a) for a in (values * 100, inside.astype(np.uint8)))
    for picture in (image, region):
        picture.SetSpacing((0.7310, 0.7310, 1.9190))
    SimpleITK.WriteImage(image, str(tmp_path / "image.nrrd"))
    SimpleITK.WriteImage(region, str(tmp_path / "mask.nrrd"))
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor(str(file)).execute(image, region)
    printed = noctule("profiles", "--pyradiomics", file)
    assert printed.returncode == 0, printed.stderr
    (tmp_path / "group.conf").write_text(printed.stdout)
    run("-o", tmp_path / "out", "--image", tmp_path / "image.nrrd", "--mask", tmp_path / "mask.nrrd",
        more='\n@include "group.conf"\n')
    assert compare(tmp_path / "out", {tuple(key.split("_")[1:]): value for key, value in theirs.items()}) == COUNT


def test_notes_of_a_parameter_file(tmp_path):
    (tmp_path / "p.yaml").write_text("setting: { label: 2, minimumROISize: 9, correctMask: on, voxelArrayShift: 1 }\n"
                                     "imageType:\n  LoG: { sigma: [3, 2.5] }\n")
    printed = noctule("profiles", "--pyradiomics", tmp_path / "p.yaml").stdout
    assert [line.split(":")[0] for line in printed.splitlines() if line.startswith("# ")][1:] == [
        "# label", "# minimumROISize", "# correctMask", "# sigma"]
    assert "--label 2" in printed and "are measured too" in printed and "sigma_mm = 3.0" in printed


@pytest.mark.parametrize("text, message", (
    ("setting:\n  weightingNorm: euclidean\n", "weightingNorm is not available"),
    ("setting:\n  colour: red\n", "setting colour is not known"),
    ("setting:\n  resampledPixelSpacing: [1, 2, 3]\n", "resampledPixelSpacing must be three equal numbers"),
    ("setting:\n  interpolator: sitkHammingWindowedSinc\n", "sitkHammingWindowedSinc is not available"),
    ("setting:\n  binWidth: -1\n", "binWidth must be a positive number"),
    ("setting:\n  force2D: maybe\n", "force2D must be true or false"),
    ("setting:\n  label: red\n", "label must be a whole number from 1"),
    ("featureClass:\n  shape2D:\n", "featureClass shape2D needs the setting force2D: true"),
    ("- a\n", "is no parameter file"), ("a: [\n", ":2: "), ("", "is no parameter file")))
def test_a_parameter_file_that_is_not_available(tmp_path, text, message):
    file = tmp_path / "parameters.yaml"
    file.write_text(text)
    printed = noctule("profiles", "--pyradiomics", file)
    assert printed.returncode == 1 and printed.stdout == "" and f"{file}" in printed.stderr and message in printed.stderr


# --- DICOM ---


@pytest.mark.parametrize("axes", ("as written", "turned"))
def test_a_job_on_dicom_gives_the_same_values(run, tmp_path, axes):
    """The results of a job on DICOM, volume and labels, measured as an image and its mask; also with other axes."""
    phantom(tmp_path / "in", "--size", "48x40x12", "--spacing", "1,2,3")
    segment = f'{{ label = "Part"; method = "range"; range = [ 30.5, 1e9 ]; {TYPE} }}'
    run("-o", tmp_path / "dicom", tmp_path / "in", segments=segment, results='"nifti"')
    files = [tmp_path / "dicom" / name for name in ("volume.nii.gz", "labels.nii.gz")]
    if axes == "turned":
        for place, name in enumerate(files):
            turned = nibabel.load(name).as_reoriented(np.array([[2, 1], [0, -1], [1, -1]]))
            files[place] = tmp_path / f"turned{place}.nii"
            nibabel.save(turned, files[place])
    run("-o", tmp_path / "out", "--image", files[0], "--mask", files[1])
    keys = ("name", "family", "value", "aggregation", "levels")
    ours, theirs = ([{key: feature[key] for key in keys} for feature in features(tmp_path / name) if not
                     feature["name"].startswith(("centroid", "box"))] for name in ("out", "dicom"))
    assert len(ours) == len(theirs) > 90
    for one, other in zip(ours, theirs):
        if axes == "as written":
            assert one == other
        else: # sums of other directions
            assert one["name"] == other["name"] and one["value"] == pytest.approx(other["value"], rel=1e-9), one


def test_an_image_without_a_mask_is_segmented(run, tmp_path):
    phantom(tmp_path / "in", "--size", "48x40x12")
    segment = f'{{ label = "Part"; method = "range"; range = [ 30.5, 1e9 ]; {TYPE} }}'
    run("-o", tmp_path / "dicom", tmp_path / "in", segments=segment, results='"seg", "nifti"')
    run("-o", tmp_path / "out", "--image", tmp_path / "dicom" / "volume.nii.gz", segments=segment, results='"seg", "nifti"')
    labels = [np.asarray(nibabel.load(tmp_path / name / "labels.nii.gz").dataobj) for name in ("dicom", "out")]
    assert labels[0].any() and (labels[0] == labels[1]).all()
    assert not (tmp_path / "out" / "seg.dcm").exists()  # there is no DICOM image to refer to


def test_values_between_whole_numbers_return_in_the_result(run, tmp_path):
    values, inside = ball((9, 17, 20), 8)
    nibabel.save(nibabel.Nifti1Image(values.astype(np.float32), np.diag([2, 2, 3, 1])), tmp_path / "image.nii")
    nibabel.save(nibabel.Nifti1Image(inside.astype(np.uint8), np.diag([2, 2, 3, 1])), tmp_path / "mask.nii")
    run("-o", tmp_path / "out", "--image", tmp_path / "image.nii", "--mask", tmp_path / "mask.nii", results='"nifti"')
    volume, labels = (nibabel.as_closest_canonical(nibabel.load(tmp_path / "out" / name)).get_fdata()
                      for name in ("volume.nii.gz", "labels.nii.gz"))
    assert (volume == values.astype(np.float32)).all() and (labels == inside).all()


# --- tables ---


def test_a_table_of_pairs(run, tmp_path):
    """Paths relative to the table, a quoted one, a label, and a pair that fails beside others."""
    lines = ["ID,Image,Mask,Label"]
    for number, label in enumerate((1, 7)):
        values, inside = ball((9, 17, 20), number)
        nibabel.save(nibabel.Nifti1Image(np.round(values * 100).astype(np.int16), np.eye(4)), tmp_path / f"im,{number}.nii")
        nibabel.save(nibabel.Nifti1Image((inside * label).astype(np.uint8), np.eye(4)), tmp_path / f"ma{number}.nii")
        lines.append(f'{number},"im,{number}.nii",ma{number}.nii,{label if label > 1 else ""}')
    lines.insert(2, '2,"im,1.nii",ma1.nii,1')
    (tmp_path / "pairs.csv").write_text("\r\n".join(lines) + "\r\n")
    result = run("-o", tmp_path / "out", "--pairs", tmp_path / "pairs.csv", "--cohort", status=1)
    assert "IMAGE_FILE_NO_LABEL: no voxel of the mask is 1" in result.stderr and "needs the key" not in result.stderr
    done = sorted((tmp_path / "out").glob("*/*/features.json"))
    assert len(done) == 2
    with open(tmp_path / "out" / "cohort.csv") as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == 2 and {row["source"] for row in rows} == {"folder:im,0.nii", "folder:im,1.nii"}
    assert [row["job"] for row in rows] == ["1", "3"]  # the numbers of the pairs


def test_the_example_of_the_document(tmp_path):
    """docs/features.md as printed, and values of pyradiomics itself."""
    chapter = (SOURCE / "docs" / "features.md").read_text().split("## Images of NIfTI and NRRD")[1]
    for name in ("lung1", "lung2"):
        for kind in ("image", "label"):
            (tmp_path / f"{name}_{kind}.nrrd").symlink_to(BASELINE / f"{name}_{kind}.nrrd")
    script = chapter.split("```sh\n")[1].split("```")[0]
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, check=True, timeout=600,
                   env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
    with open(tmp_path / "results" / "cohort.csv") as table:
        rows = list(csv.DictReader(table))
    peer = radiomics.featureextractor.RadiomicsFeatureExtractor(str(tmp_path / "params.yaml"))
    for name, row in zip(("lung1", "lung2"), rows, strict=True):
        found = peer.execute(str(tmp_path / f"{name}_image.nrrd"), str(tmp_path / f"{name}_label.nrrd"))
        compared = [key for key in found if key in row]
        assert len(compared) > 150 and "log-sigma-4-0-mm-3D_glrlm_RunEntropy" in compared
        for key in compared:
            assert float(row[key]) == pytest.approx(float(found[key]), rel=1e-6), key


@pytest.mark.parametrize("text, message, status", (
    ("Picture,Mask\n", "must name the columns Image and Mask", 2),
    ("Image,Mask\na.nii,\n", "line 2: needs an image, a mask", 2),
    ("Image,Mask,Label\na.nii,b.nii,-1\n", "line 2: needs an image, a mask", 2),
    ("Image,Mask\n", "lists no image", 2),
    ("Image,Mask\na.png,b.nii\n", "pairs.csv, line 2: a.png: the name of an image must end with .nii", 2),
    ("Image,Mask\n\nnowhere.nii,b.nii\n", "pairs.csv, line 3: {}/nowhere.nii: No such file", 3)))
def test_a_wrong_table_is_refused(run, tmp_path, text, message, status):
    (tmp_path / "pairs.csv").write_text(text)
    told = run("-o", tmp_path / "out", "--pairs", tmp_path / "pairs.csv", status=status).stderr
    assert message.format(tmp_path) in told
    assert not (tmp_path / "out").exists()


# --- refusals ---


def small(tmp_path, **more):
    values, inside = ball((9, 17, 20), 3)
    affine = more.get("affine", np.eye(4))
    nibabel.save(nibabel.Nifti1Image(more.get("values", np.round(values * 100).astype(np.int16)), affine), tmp_path / "i.nii.gz")
    nibabel.save(nibabel.Nifti1Image(more.get("mask", inside.astype(np.uint8)), np.eye(4)), tmp_path / "m.nii")
    return "-o", tmp_path / "out", "--image", tmp_path / "i.nii.gz", "--mask", tmp_path / "m.nii"


def test_a_mask_on_another_grid(run, tmp_path):
    arguments = small(tmp_path, affine=np.diag([1, 1, 1.5, 1]))
    assert "m.nii" in (text := run(*arguments, status=1).stderr) and "IMAGE_FILE_GRID" in text


def test_values_that_are_not_finite(run, tmp_path):
    """NaN beyond the regions is possible if no value there is used (test_image_types.py)."""
    inside = ball((9, 17, 20), 3)[1]
    place = tuple(np.argwhere(inside)[7])
    for value, at, texture, text in (
            (np.inf, (0, 0, 0), PROFILE, "is not a finite number"),
            (np.nan, place, PROFILE, "voxel {}, {}, {} of \"mask\" is not a finite number".format(*place)),
            (np.nan, (0, 0, 0), PROFILE + ' filter = { kind = "pyradiomics-wavelet"; wavelet = "haar"; kernels = "LLL"; };', "it is filtered"),
            (np.nan, (0, 0, 0), PROFILE + " normalise = { scale = 1.0; };", "it is normalised"),
            (np.nan, (0, 0, 0), PROFILE + ' regions = [ "volume" ];', "the volume is measured"),
            (np.nan, (0, 0, 0), PROFILE + ' resample = { isotropic_mm = 2.0; interpolation = "pyradiomics-linear"; };', "it is resampled")):
        values = np.linspace(0, 99, 9 * 17 * 20, dtype=np.float32).reshape(9, 17, 20)
        values[at] = value
        told = run(*small(tmp_path, values=values), texture=texture, status=1).stderr
        assert "IMAGE_FILE_VALUES" in told and text in told


def test_reals_are_not_rounded(run, tmp_path):
    values, _ = ball((9, 17, 20), 3)
    arguments = small(tmp_path, values=values.astype(np.float32))
    text = run(*arguments, texture='profile = "haralick-1973"; discretisation = "stored-256"; levels = 32;', status=1).stderr
    assert "IMAGE_FILE_VALUES" in text and "whole numbers of 16 bits, because texture is measured on stored values" in text
    segment = f'{{ label = "Part"; method = "range"; range = [ 0.5, 1e9 ]; {TYPE} }}'
    text = run(*arguments[:4], segments=segment, status=1).stderr
    assert "because a segment is found by its values" in text


def test_a_damaged_file(run, tmp_path):
    arguments = small(tmp_path)
    path = tmp_path / "i.nii.gz"
    path.write_bytes(path.read_bytes()[:-300])
    assert "IMAGE_FILE_UNREADABLE" in run(*arguments, status=1).stderr
    path.write_bytes(b"")
    assert "IMAGE_FILE_UNREADABLE" in run(*arguments, status=1).stderr


def test_four_axes(run, tmp_path):
    assert "IMAGE_FILE_UNREADABLE" in run(*small(tmp_path, values=np.ones((9, 17, 20, 2), np.int16)), status=1).stderr


def test_the_memory_of_reals_counts(run, tmp_path):
    """Twice 61 MiB of values, and 15 MiB of the volume, do not fit into 135 MiB."""
    values = np.random.default_rng(1).normal(0, 1, (200, 200, 200)).astype(np.float32)
    inside = np.zeros(values.shape, np.uint8)
    inside[90:110, 90:110, 90:110] = 1
    arguments = small(tmp_path, values=values, mask=inside)
    run(*arguments, more="texture = { first_order = true; }; memory_mib = 600.0;")
    text = run(*arguments, more="texture = { first_order = true; }; memory_mib = 135.0;", status=1).stderr
    assert "JOB_TOO_LARGE" in text


@pytest.mark.parametrize("arguments", (("--image", "a.nii", "folder"), ("--label", "3", "folder"), (),
                                       ("--image", "a.nii", "--image", "b.nii", "--mask", "c.nii"),
                                       ("--image", "a.nii", "--pairs", "p.csv")))
def test_options_that_contradict(run, tmp_path, arguments):
    run("-o", tmp_path / "out", *arguments, status=2)

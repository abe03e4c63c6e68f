"""noctule compare, against surface-distance, SimpleITK, platipy and plastimatch.

Only volumes are compared with the last two: their distances are between centres of voxels without regard to area.
Plastimatch averages those of both directions, and platipy takes the 95th percentile of two maxima."""

import json
import re
import subprocess

import numpy as np
import pydicom
import pytest
import scipy.ndimage
import SimpleITK
from pydicom.dataset import Dataset
from pydicom.uid import SegmentationStorage, generate_uid

from conftest import BIN, SHARED, needs_shared, phantom
from objects import new_object, save, segmentation, structure_set
from test_contours import draw
from test_run import seg_masks

# surface-distance names functions as SciPy and NumPy did before their versions 1.8 and 2.
scipy.ndimage.filters = scipy.ndimage.morphology = scipy.ndimage
np.Inf, np.NaN = np.inf, np.nan
import surface_distance  # noqa: E402
from platipy.imaging.label.comparison import compute_volume_metrics  # noqa: E402


@pytest.fixture
def compare(tmp_path):
    config = tmp_path / "noctule.conf"
    config.write_text(f'root = "{tmp_path / "root"}"; ')

    def call(*arguments, status=0, json_=True):
        result = subprocess.run([BIN / "noctule", "--config", config, "compare", *map(str, arguments),
                                 *(["--json"] if json_ else [])], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stdout + result.stderr
        return {**json.loads(result.stdout), "error": result.stderr} if json_ else result.stdout

    call.config = config
    return call


def seg(mask, spacing, frame, label="Liver", first=0):
    """Returns a SEG of mask[z, y, x] without its empty slices; spacing is x, y, z. It needs no images."""
    image = Dataset()
    image.PatientID, image.PatientName, image.StudyInstanceUID = "P", "P", frame + ".1"
    ds = new_object(image, SegmentationStorage, "SEG")
    ds.FrameOfReferenceUID, ds.SegmentationType = frame, "BINARY"
    series, segment, shared, orientation, measures, code = (Dataset() for _ in range(6))
    series.SeriesInstanceUID, series.ReferencedInstanceSequence = frame + ".2", []
    ds.ReferencedSeriesSequence = [series]
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = "10200004", "SCT", "Liver"
    segment.SegmentNumber, segment.SegmentLabel, segment.SegmentAlgorithmType = 1, label, "MANUAL"
    segment.SegmentedPropertyCategoryCodeSequence = segment.SegmentedPropertyTypeCodeSequence = [code]
    ds.SegmentSequence = [segment]
    orientation.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    measures.PixelSpacing, measures.SpacingBetweenSlices = [spacing[1], spacing[0]], spacing[2]
    shared.PlaneOrientationSequence, shared.PixelMeasuresSequence = [orientation], [measures]
    ds.SharedFunctionalGroupsSequence, ds.PerFrameFunctionalGroupsSequence = [shared], []
    slices = [z for z in range(len(mask)) if mask[z].any()]
    for z in slices:
        groups, position, number = Dataset(), Dataset(), Dataset()
        position.ImagePositionPatient = [-7.5, 12.25, f"{(z + first) * spacing[2]:.6f}"]
        number.ReferencedSegmentNumber = 1
        groups.PlanePositionSequence, groups.SegmentIdentificationSequence = [position], [number]
        ds.PerFrameFunctionalGroupsSequence.append(groups)
    ds.NumberOfFrames, ds.Rows, ds.Columns = len(slices), *mask.shape[1:]
    ds.SamplesPerPixel, ds.PhotometricInterpretation, ds.PixelRepresentation = 1, "MONOCHROME2", 0
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = 1, 1, 0
    bits = np.packbits(mask[slices].astype(np.uint8).ravel(), bitorder="little").tobytes()
    ds.PixelData = bits + b"\0" * (len(bits) % 2)
    ds["PixelData"].VR = "OB"
    return ds


def random_pair(random, number):
    """Two masks that are equal, shifted, or not related, in a volume of odd extents; spacing is z, y, x."""
    shape = random.integers(2, 32, 3)
    shape[2] = random.integers(1, 140)
    found = scipy.ndimage.gaussian_filter(random.normal(size=shape), random.uniform(0, 4))
    found = found > np.quantile(found, random.uniform(0.1, 0.95))
    reference = np.roll(found, random.integers(-2, 3, 3), (0, 1, 2)) if number % 3 else random.random(shape) > 0.9
    found.flat[random.integers(found.size)] = reference.flat[random.integers(found.size)] = True
    spacing = random.uniform(0.3, 5, 3) if number % 2 else random.choice([0.7, 1.0, 2.5, 5.0], 3)
    return found, reference, [float(f"{value:.3f}") for value in spacing]


def peer(found, reference, spacing, tolerance):
    distances = surface_distance.compute_surface_distances(reference, found, spacing)
    return [surface_distance.compute_dice_coefficient(reference, found),
            surface_distance.compute_robust_hausdorff(distances, 95),
            surface_distance.compute_surface_dice_at_tolerance(distances, tolerance)]


def itk_overlap(found, reference):
    measure = SimpleITK.LabelOverlapMeasuresImageFilter()
    measure.Execute(*(SimpleITK.GetImageFromArray(mask.astype(np.uint8)) for mask in (found, reference)))
    return measure.GetDiceCoefficient(), measure.GetVolumeSimilarity()


def volume_peers(found, reference, folder):
    """Returns common voxels, wrong voxels and Dice of platipy, and of plastimatch, which prints six digits."""
    images = [SimpleITK.GetImageFromArray(mask.astype(np.uint8)) for mask in (reference, found)]
    paths = [folder / f"{name}.mha" for name in ("reference", "found")]
    for image, path in zip(images, paths):
        SimpleITK.WriteImage(image, path)
    shares = compute_volume_metrics(*images)
    missed = shares["falseNegativeFraction"] * reference.sum()
    added = shares["falsePositiveFraction"] * (~reference).sum()
    # The fraction has no value without a voxel outside of the reference, and then no voxel is added.
    platipy = [shares["truePositiveFraction"] * reference.sum(), missed + np.nan_to_num(added), shares["DSC"]]
    printed = subprocess.run(["plastimatch", "dice", *paths], check=True, capture_output=True, text=True).stdout
    told = {name: float(value) for name, value in re.findall(r"^(TP|FN|FP|DICE):\s+(\S+)$", printed, re.M)}
    return platipy, [told["TP"], told["FN"] + told["FP"], told["DICE"]]


def test_pairs_equal_the_peers(compare, tmp_path):
    random = np.random.default_rng(38)
    pairs = [random_pair(random, number) for number in range(200)]
    for number, (found, reference, spacing) in enumerate(pairs):
        for folder, mask in (("found", found), ("reference", reference)):
            (tmp_path / folder).mkdir(exist_ok=True)
            save(seg(mask, spacing[::-1], f"1.2.3.{number}"), tmp_path / folder / f"{number:03}.dcm")
    answer = compare(tmp_path / "found", tmp_path / "reference", "--tolerance", "1.5")
    assert len(answer["regions"]) == 200
    for row, (found, reference, spacing) in zip(answer["regions"], pairs):
        assert [row["dice"], row["distance_95_mm"], row["surface_dice"]] == pytest.approx(
            peer(found, reference, spacing, 1.5), rel=1e-9), row["found"]
        voxel = np.prod(spacing) / 1000
        wrong, slices = (found != reference).sum(), np.flatnonzero((found | reference).any(axis=(1, 2)))
        volume = found[0].size * (slices[-1] - slices[0] + 1)  # without images: the grid of the frames
        assert row["wrong_voxels"] == wrong and row["wrong_share"] == pytest.approx(wrong / volume)
        assert row["volume_ratio"] == pytest.approx(found.sum() / reference.sum())
        assert row["bias_ml"] == pytest.approx((int(found.sum()) - int(reference.sum())) * voxel, abs=1e-9)
        platipy, plastimatch = volume_peers(found, reference, tmp_path)
        measures = [row["common_voxels"], row["wrong_voxels"], row["dice"]]
        assert measures == pytest.approx(platipy, rel=1e-9) and measures == pytest.approx(plastimatch, abs=1e-6, rel=1e-5)
        dice, similarity = itk_overlap(found, reference)
        assert row["dice"] == pytest.approx(dice)
        assert 2 * (row["ml"] - row["reference_ml"]) / (row["ml"] + row["reference_ml"]) == pytest.approx(
            similarity, abs=1e-9)
    (summary,) = answer["summary"]
    dice = [row["dice"] for row in answer["regions"]]
    bias = [row["bias_ml"] for row in answer["regions"]]
    assert summary["cases"] == 200 and summary["lowest_dice"] == min(dice)
    assert [summary["median_dice"], summary["mean_bias_ml"], summary["sd_bias_ml"]] == pytest.approx(
        [np.median(dice), np.mean(bias), np.std(bias, ddof=1)])
    shares = [row["wrong_share"] for row in answer["regions"]]
    assert [summary["mean_wrong_share"], summary["highest_wrong_share"]] == pytest.approx([np.mean(shares), max(shares)])


def test_slices_without_a_frame_count(compare, tmp_path):
    """The distance between parts of a region spans slices that neither object has."""
    found = np.zeros((9, 6, 7), bool)
    found[0, 2:4, 2:5] = True
    reference = found.copy()
    found[8, 1, 1] = True
    save(seg(found, (1, 1, 2.5), "1.2.3"), tmp_path / "a.dcm")
    save(seg(reference, (1, 1, 2.5), "1.2.3"), tmp_path / "b.dcm")
    (row,) = compare(tmp_path / "a.dcm", tmp_path / "b.dcm")["regions"]
    assert [row["dice"], row["distance_95_mm"], row["surface_dice"]] == pytest.approx(
        peer(found, reference, (2.5, 1, 1), 2), rel=1e-9)


def test_other_grids_need_the_images(compare, tmp_path):
    mask = np.ones((3, 4, 5), bool)
    for name, spacing, frame in (("a", (1, 1, 2), "1.2.3"), ("b", (1, 1.5, 2), "1.2.3"), ("c", (1, 1, 2), "1.2.4")):
        save(seg(mask, spacing, frame), tmp_path / f"{name}.dcm")
    assert "SEG_GRID_DIFFERS" in compare(tmp_path / "a.dcm", tmp_path / "b.dcm", status=1)["error"]
    assert "no reference of the same series" in compare(tmp_path / "a.dcm", tmp_path / "c.dcm", status=1)["error"]


def test_contours_and_frames_of_one_series(compare, tmp_path):
    """RTSTRUCT and SEG of one phantom; regions by name, by pattern, and the only ones."""
    files = phantom(tmp_path / "in", "--size", "40x36x12")
    drawn = save(structure_set(files), tmp_path / "drawn.dcm")
    hand = save(segmentation(files), tmp_path / "hand.dcm")
    (row,) = compare(drawn, hand, "--images", tmp_path / "in")["regions"]
    assert (row["region"], row["reference_region"]) == ("GTV", "Liver")
    (other,) = compare(hand, drawn, "--images", tmp_path / "in", "--region", "L*=G*")["regions"]
    assert other["dice"] == row["dice"] and other["distance_95_mm"] == row["distance_95_mm"]
    assert other["volume_ratio"] == pytest.approx(1 / row["volume_ratio"])
    assert "need the images" in compare(drawn, hand, status=1)["error"]
    missing = compare(drawn, hand, "--images", tmp_path / "in", "--region", "Lung=Liver", status=1)["regions"][0]
    assert missing["code"] == "ROI_NOT_FOUND"
    assert row["wrong_share"] == row["wrong_voxels"] / (40 * 36 * 12)
    text = compare(drawn, hand, "--images", tmp_path / "in", json_=False)
    assert f'  {row["wrong_voxels"]} wrong voxels, {100 * row["wrong_share"]:.4g} % of the volume\n' in text
    text = compare(hand, hand, "--images", tmp_path / "in", json_=False)
    assert "Dice 1.0000, surface Dice 1.0000 (2 mm), 95 % surface distance 0.00 mm" in text


@needs_shared
def test_a_clinical_structure_set(compare, tmp_path):
    """Regions of the shared structure set, shrunk by 2 mm, with their contours drawn by another program."""
    planning = SHARED / "chest/planning"
    region = ('{{ label = "{0}"; method = "object"; object = {{ kind = "rtstruct"; roi = "{0}"; }}; type = {{ code = "39607008"; '
              'scheme = "SCT"; meaning = "Lung"; }}; then = ( {{ shrink_mm = 2.0; }} ); }}')
    compare.config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "shrunk"; segments = ( '
                              f'{region.format("Lt Lung")}, {region.format("Heart")} ); }} );')
    subprocess.run([BIN / "noctule", "--config", compare.config, "run", "-p", "shrunk", "-o", tmp_path / "out",
                    planning / "dicom", planning / "rtstruct"], check=True, capture_output=True)
    images = sorted((pydicom.dcmread(file, stop_before_pixels=True) for file in (planning / "dicom").iterdir()),
                    key=lambda image: float(image.ImagePositionPatient[2]))
    found = seg_masks(tmp_path / "out/seg.dcm", images)
    spacing = (float(images[1].ImagePositionPatient[2]) - float(images[0].ImagePositionPatient[2]),
               *map(float, images[0].PixelSpacing))
    report, masks = draw(tmp_path, planning / "rtstruct/RTSTRUCT_0001.dcm", [image.filename for image in images])
    drawn = dict(zip([roi["name"] for roi in report["rois"] if not roi["code"]], masks))
    for number, row in enumerate(compare(tmp_path / "out", planning)["regions"]):
        reference = drawn[("Lt Lung", "Heart")[number]]
        assert row["reference_voxels"] == reference.sum()
        assert row["wrong_share"] == (found[number] != reference).mean() > 0
        for other in volume_peers(found[number], reference, tmp_path):
            assert [row["common_voxels"], row["wrong_voxels"], row["dice"]] == pytest.approx(other, rel=1e-5)
        assert [row["dice"], row["distance_95_mm"], row["surface_dice"]] == pytest.approx(
            peer(found[number], reference, spacing, 2), rel=1e-9)

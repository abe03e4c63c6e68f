"""Segments from annotated regions, through `noctule run --object`, compared with published masks and the definition
in Python."""

import json
import re
import subprocess

import highdicom
import numpy as np
import pydicom
import pydicom.uid
import pytest

from conftest import BIN, SHARED, assert_valid, needs_shared, phantom
from test_contours import PUBLISHED, Planes, nifti_mask, peer_mask, ring, structure_set
from test_grid import Reference, uneven
from test_resample import mask_on_grid, mask_on_planes
from test_run import assert_no_file_left, exact_values, seg_masks
from test_seg import assert_dciodvfy_is_silent
from test_sr import assert_dciodvfy_is_content, one

TYPE = 'type = { code = "86049000"; scheme = "SCT"; meaning = "Neoplasm, Primary"; };'


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with the given segments. Returns the output folder, or the error text if the status is not 0."""
    config = tmp_path / "noctule.conf"

    def call(segments, objects, *inputs, status=0, more="", output="out"):
        config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "drawn"; segments = ( {segments} ); '
                          f'{more} }} );')
        given = [part for path in objects for part in ("--object", path)]
        result = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "drawn", "-o", tmp_path / output,
                                 *map(str, [*given, *inputs])], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stdout + result.stderr
        return result.stderr if status else tmp_path / output

    return call


def drawn(label="GTV", wanted='roi = "*"', more=""):
    return (f'{{ label = "{label}"; method = "object"; object = {{ kind = "rtstruct"; {wanted + ";" if wanted else ""} }}; '
            f'{more} {TYPE} }}')


def mask_of(output, series):
    return seg_masks(output / "seg.dcm", [pydicom.dcmread(file, stop_before_pixels=True) for file in series])


def record_of(output):
    return json.loads((output / "job.json").read_text())


@needs_shared
@pytest.mark.parametrize(("image", "mask", "published", "voxels"), PUBLISHED)
def test_masks_are_the_published_ones(run, tmp_path, image, mask, published, voxels):
    (rtstruct,) = (SHARED / mask).glob("*.dcm")
    output = run(drawn(), [rtstruct], SHARED / image, more='texture = { first_order = true; }; results = [ "seg", "sr" ];')
    planes = Planes(sorted((SHARED / image).glob("*.dcm")))
    masks = mask_of(output, [file.filename for file in planes.files])
    assert np.count_nonzero(masks[0] != nifti_mask(SHARED / published)) == 0
    (segment,) = record_of(output)["segments"]
    assert segment["voxels"] == voxels and segment["slices_missing"] == 0
    values = exact_values([pydicom.dcmread(file.filename) for file in planes.files])[masks[0]]
    measured = {feature["name"]: feature["value"] for feature in json.loads((output / "features.json").read_text())}
    for name, value in (("mean", values.mean()), ("minimum", values.min()), ("maximum", values.max())):
        assert measured[name] == pytest.approx(value, rel=1e-9), name


@pytest.fixture
def series(tmp_path):
    return phantom(tmp_path / "series", "--size", "70x61x9")


@pytest.fixture
def rois(series):
    planes = Planes(series)
    step = np.dot(planes.origins[1] - planes.origins[0], planes.normal)
    return {
        "GTV-1": [("CLOSED_PLANAR", ring(planes, z, (33, 31), (20, 11 + z), 90)) for z in (1, 2, 5)],
        "GTV-2": [("CLOSED_PLANAR", ring(planes, 4, (30, 30), (9, 9), 40))],
        "Löwe": [("CLOSED_PLANAR", ring(planes, 3, (22, 30), (5, 9), 40))],
        "point": [("POINT", [planes.point(2, 20, 20)])],
        "none": [],
        "beside": [("CLOSED_PLANAR", ring(planes, 3, (900, 30), (5, 9), 40))],
        "off": [("CLOSED_PLANAR", ring(planes, 3, (22, 30), (5, 9), 40, 0.4 * step))],
    }


def test_regions_are_segments(run, tmp_path, series, rois):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, rois)
    output = run(", ".join([drawn("A", 'roi = "GTV-[1]"'), drawn("B", "number = 3"),
                            drawn("C", 'roi = "GTV-1"', 'minus = [ "B" ];')]), [path], tmp_path / "series")
    written = pydicom.dcmread(path).ROIContourSequence
    expected = [peer_mask(planes, [c.ContourData for c in written[i].ContourSequence]) for i in (0, 2)]
    masks = mask_of(output, [file.filename for file in planes.files])
    for mask, peer in zip(masks, [*expected, expected[0] & ~expected[1]], strict=True):
        assert np.count_nonzero(mask != peer) == 0 and peer.any()
    assert_valid(output / "seg.dcm")
    record = record_of(output)
    assert record["object_files"] == 1
    assert "A: 2 slices between drawn ones have no contour" in record["note"]
    assert [segment["slices_missing"] for segment in record["segments"]] == [2, 0, 2]
    written = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert written[0].SegmentDescription.startswith('region 1 "GTV-1" of RT Structure Set 1.2.9.1, drawn on 3 slices; 2 slices')
    assert written[2].SegmentDescription.endswith("; minus B")


def test_an_object_among_the_images_is_no_surprise(tmp_path, series, rois):
    planes = Planes(series)
    given = structure_set(tmp_path / "series", planes, rois)
    other = given.with_name("other.dcm")
    other.write_bytes(given.read_bytes())
    (tmp_path / "link.dcm").symlink_to(given)
    config = tmp_path / "noctule.conf"
    config.write_text(f'root = "{tmp_path}"; pipelines = ( {{ name = "drawn"; segments = ( {drawn(wanted="number = 2")} ); }} );')
    result = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "drawn", "-o", tmp_path / "out", "--json",
                             "--object", tmp_path / "link.dcm", tmp_path / "series"], text=True, capture_output=True, timeout=300)
    assert result.returncode == 0, result.stderr
    passed_over = json.loads(result.stdout)["passed_over"]
    assert [(file["file"], file["code"]) for file in passed_over] == [(str(other), "SOP_CLASS_UNSUPPORTED")]
    assert "rtstruct.dcm" not in result.stderr


def test_another_object_makes_another_result(run, tmp_path, series, rois):
    path = structure_set(tmp_path, Planes(series), rois)
    uids = []
    for output, uid in (("one", "1.2.9.1"), ("same", "1.2.9.1"), ("later", "1.2.9.7")):
        pydicom_set = pydicom.dcmread(path)
        pydicom_set.SOPInstanceUID = pydicom_set.file_meta.MediaStorageSOPInstanceUID = uid
        pydicom_set.save_as(tmp_path / "changed.dcm")
        folder = run(drawn(wanted="number = 2"), [tmp_path / "changed.dcm"], tmp_path / "series", output=output)
        uids.append(pydicom.dcmread(folder / "seg.dcm").SOPInstanceUID)
    assert uids[0] == uids[1] != uids[2]


def test_the_memory_of_a_job_includes_region_masks(run, tmp_path):
    """A mask of 512 x 512 x 32 voxels is 1 MiB."""
    planes = Planes(phantom(tmp_path / "large", "--size", "512x512x32"))
    path = structure_set(tmp_path, planes, {"A": [("CLOSED_PLANAR", ring(planes, 4, (30, 30), (9, 9), 40))]})
    needed = []
    for count in (1, 17):
        told = run(", ".join(drawn(f"A{i}") for i in range(count)), [path], tmp_path / "large", status=1, more="memory_mib = 1.0;")
        assert "JOB_TOO_LARGE" in told
        needed.append(int(re.search(r"need (\d+) MiB", told)[1]))
    assert needed[0] >= 17 and needed[1] - needed[0] == 16


def test_the_memory_of_a_straightened_job_includes_region_masks(run, tmp_path):
    """1 MiB per region on 32 planes, and a quarter on the grid. The limit applies at the start and, for large planes,
    during straightening."""
    planes = Planes(phantom(tmp_path / "large", "--size", "512x512x32", "--tilt", "12"))
    path = structure_set(tmp_path, planes, {"A": [("CLOSED_PLANAR", ring(planes, z, (250, 250), (90, 90), 40)) for z in range(32)]})
    needed = {}

    def need(count, mib):
        told = run(", ".join(drawn(f"A{i}") for i in range(count)), [path], tmp_path / "large", status=1,
                   more=f"memory_mib = {mib}; grid = {{ mm = 20.0; }};")
        assert "JOB_TOO_LARGE" in told and "besides" in told, told
        return [int(re.search(pattern, told)[1]) for pattern in (r"need (\d+) MiB", r"besides (\d+) for")]

    for count in (1, 17):
        first = need(count, 1.0)
        needed[count] = first, need(count, sum(first) + 1.0)
    (small, beside), (small_then, _) = needed[1]
    (large, more_beside), (large_then, _) = needed[17]
    assert more_beside - beside == 16, "the masks on the planes that results are made from"
    assert 16 < large - small < 24 and small_then > small and large_then > large
    assert large_then - small_then == pytest.approx(large - small, abs=1)


@pytest.mark.parametrize(("wanted", "code", "words"), [
    ('roi = "gtv-1"', "ROI_NOT_FOUND", 'rtstruct.dcm has no region named "gtv-1" for segment "GTV"; it has 1 "GTV-1", '),
    ("number = 17", "ROI_NOT_FOUND", "has no region with number 17"),
    ('roi = "GTV*"', "ROI_AMBIGUOUS", '"GTV-1" (1) and "GTV-2" (2)'),
    ('roi = "point"', "ROI_EMPTY", "points and open lines enclose no voxel. Draw it, or leave segment"),
    ('roi = "none"', "ROI_EMPTY", 'region "none": it has no contour. Draw it, or leave segment "GTV" out.'),
    ('roi = "beside"', "ROI_EMPTY", "its 1 closed contours have no voxel of this series in them. Was it drawn on it?"),
    ('roi = "off"', "CONTOUR_OFF_PLANES", "are allowed. Draw it on the slices of this series."),
])
def test_invalid_regions_are_refused(run, tmp_path, series, rois, wanted, code, words):
    path = structure_set(tmp_path, Planes(series), rois)
    complaint = run(drawn(wanted=wanted), [path], tmp_path / "series", status=1)
    assert f"{code}: " in complaint and words in complaint and str(path) in complaint
    assert_no_file_left(tmp_path / "out")


MEASURED = 'texture = { first_order = true; bin_width = 25.0; discretisation = "fixed-bin-size"; }; '


@pytest.mark.parametrize("study", ["", "1.2.79"])
def test_reports_refer_to_the_structure_set(run, tmp_path, series, rois, study):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, rois)
    ds = pydicom.dcmread(path)
    ds.StudyInstanceUID = study or planes.files[0].StudyInstanceUID
    ds.save_as(path)
    segments = ", ".join([drawn("A", "number = 1"), drawn("B", "number = 3")])
    output = run(segments, [path], tmp_path / "series", more=MEASURED + 'results = [ "sr" ];')
    assert not (output / "seg.dcm").exists()
    assert_dciodvfy_is_content(output / "sr.dcm")
    report = highdicom.sr.srread(output / "sr.dcm")
    groups = report.content.get_volumetric_roi_measurement_groups()
    assert [group.reference_type.value for group in groups] == ["130488", "130488"]
    for group, number in zip(groups, "13", strict=True):
        item = one(group[0], "COMPOSITE", "130488")
        assert item.ReferencedSOPSequence[0].ReferencedSOPClassUID == pydicom.uid.RTStructureSetStorage
        assert item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == "1.2.9.1"
        assert one(item, "TEXT", "130489").TextValue == number
    evidence = {study.StudyInstanceUID: [series.SeriesInstanceUID for series in study.ReferencedSeriesSequence]
                for study in report.CurrentRequestedProcedureEvidenceSequence}
    own = [planes.files[0].SeriesInstanceUID]
    assert evidence == ({planes.files[0].StudyInstanceUID: own, study: ["1.2.9.3"]} if study
                        else {planes.files[0].StudyInstanceUID: [*own, "1.2.9.3"]})


def test_reports_of_changed_regions_need_a_segmentation(run, tmp_path, series, rois):
    path = structure_set(tmp_path, Planes(series), rois)
    cut = drawn("A", "number = 1", "then = ( { grow_mm = 2.0; } );")
    complaint = run(cut, [path], tmp_path / "series", more=MEASURED + 'results = [ "sr" ];', status=5)
    assert '"sr" refers to the segments in "seg": add "seg"' in complaint
    run(cut, [path], tmp_path / "series", more=MEASURED + 'results = [ "seg", "sr" ];')


def elsewhere(ds, series="1.2.77", frame=None):
    item = ds.ReferencedFrameOfReferenceSequence[0]
    item.RTReferencedStudySequence[0].RTReferencedSeriesSequence[0].SeriesInstanceUID = series
    if frame:
        item.FrameOfReferenceUID = frame
        for roi in ds.StructureSetROISequence:
            roi.ReferencedFrameOfReferenceUID = frame


def test_objects_are_of_their_series(run, tmp_path, series, rois):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, rois)
    own = planes.files[0].SeriesInstanceUID
    cases = {"other": (dict(frame="1.2.78"), "OBJECT_OTHER_SERIES", "but on series 1.2.77. Use an object of this series."),
             "same-frame": ({}, "", ""),
             "frame": (dict(series=own, frame="1.2.78"), "OBJECT_OTHER_FRAME", "Have it written in the images' own.")}
    files = {}
    for name, (change, code, words) in cases.items():
        ds = pydicom.dcmread(path)
        elsewhere(ds, **change)
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = f"1.2.9.2{len(files)}"
        files[name] = tmp_path / f"{name}.dcm"
        ds.save_as(files[name])
        result = run(drawn(wanted="number = 2"), [files[name]], tmp_path / "series", status=1 if code else 0, output=name)
        assert not code or (f"{code}: {name}.dcm " in result and words in result)
    wanted = drawn(wanted="number = 2")
    missing = 'OBJECT_MISSING: segment "GTV" is a region of an RT Structure Set, and '
    assert missing + "the job has none" in run(wanted, [], tmp_path / "series", status=1)
    assert missing + "no object that the job has is one" in run(wanted, [series[0]], tmp_path / "series", status=1)
    assert "FILE_UNREADABLE: " in run(wanted, [tmp_path / "nothing.dcm"], tmp_path / "series", status=1)
    both = run(wanted, [path, files["same-frame"]], tmp_path / "series", status=1)
    assert "OBJECT_AMBIGUOUS: rtstruct.dcm and same-frame.dcm both " in both
    # A repeated region counts once, and regions of another series are ignored.
    output = run(wanted, [files["other"], path, path], tmp_path / "series", output="best")
    assert record_of(output)["segments"][0]["contours"] == 1


# ---- slices between annotated ones

def squares(mask, spacing):
    """Returns the distance of each pixel to the nearest one in the mask. A row's step is rounded to 2^-16 of a
    column's."""
    ys, xs = np.nonzero(mask)
    y, x = np.indices(mask.shape)
    step = int(np.floor(spacing[1] / spacing[0] * 2**16 + 0.5))
    best = np.full(mask.shape, np.iinfo(np.int64).max)
    for b, a in zip(ys, xs):
        best = np.minimum(best, ((x - a) * 2**16) ** 2 + ((y - b) * step) ** 2)
    return best.astype(object)


def between(mask, planes):
    """Returns planes without a contour between two with one (here: a voxel), as in kernels/mask/between.h."""
    result = mask.copy()
    drawn = np.flatnonzero(mask.any(axis=(1, 2)))
    heights = [np.dot(origin - planes.origins[0], planes.normal) for origin in planes.origins]
    for low, high in zip(drawn, drawn[1:]):
        a, b = mask[low], mask[high]
        inside, outside = ([np.where(a, one, other) for one, other in (pair, pair[::-1])][0] for pair in (
            (squares(~a, planes.spacing), squares(~b, planes.spacing)), (squares(b, planes.spacing), squares(a, planes.spacing))))
        for z in range(low + 1, high):
            part = int(np.floor((heights[z] - heights[low]) / (heights[high] - heights[low]) * 2**16 + 0.5))
            near, far = np.where(a, 2**16 - part, part).astype(object), np.where(a, part, 2**16 - part).astype(object)
            result[z] = (a & b) | (a ^ b) & (near**2 * inside >= far**2 * outside).astype(bool)
    return result


def signed(mask, spacing):
    from scipy.ndimage import distance_transform_edt as distance
    return distance(mask, spacing[::-1]) - distance(~mask, spacing[::-1])


@pytest.mark.parametrize("options", [(), ("--spacing", "0.8,1.1,3"), ("--tilt", "18.5")], ids=" ".join)
def test_slices_between_annotated_ones_are_interpolated(run, tmp_path, options):
    files = phantom(tmp_path / "series", "--size", "70x61x12", *options)
    planes = Planes(files)
    path = structure_set(tmp_path, planes, {"A": [
        ("CLOSED_PLANAR", ring(planes, z, (20 + 4 * z, 30 - z), (9 + z, 20 - z), 90)) for z in (1, 2, 5, 10)]})
    mask = peer_mask(planes, [item.ContourData for item in pydicom.dcmread(path).ROIContourSequence[0].ContourSequence])
    expected = between(mask, planes)
    output = run(drawn(wanted="number = 1; interpolate = true"), [path], tmp_path / "series")
    (found,) = mask_of(output, [file.filename for file in planes.files])
    assert np.count_nonzero(found != expected) == 0 and np.count_nonzero(expected) > 1.8 * np.count_nonzero(mask)
    # By SciPy's distances, except voxels on the border to the last digit of a root.
    value = 2 / 3 * signed(mask[2], planes.spacing) + 1 / 3 * signed(mask[5], planes.spacing)
    assert np.array_equal((found[3] == (value >= 0))[np.abs(value) > 1e-3], np.ones(np.sum(np.abs(value) > 1e-3), bool))
    assert "6 slices between drawn ones have no contour, and are interpolated" in record_of(output)["note"]
    # After a change it must not be reported as the annotated region.
    complaint = run(drawn(wanted="number = 1; interpolate = true"), [path], tmp_path / "series", status=5,
                    more=MEASURED + 'results = [ "sr" ];')
    assert '"sr" refers to the segments in "seg": add "seg"' in complaint


# ---- straightened stacks

def tilted(tmp_path, kind):
    """Returns files of a stack that is straightened: a tilted phantom, one with steps of 1 and 1.4, or a patient's
    head."""
    if kind == "head":
        return sorted((SHARED / "ct-head-tilted").glob("*.dcm"))
    files = phantom(tmp_path / "tilted", "--size", "70x61x12", "--tilt", kind if kind != "uneven" else "7")
    return uneven(files) if kind == "uneven" else files


def check_straightened(run, tmp_path, files, path, regions, mm=0.0):
    """Two regions unchanged, and the part of the first outside the second. Features are of the region's voxels on the
    grid."""
    segments = ", ".join([drawn("A", "number = 1"), drawn("B", "number = 2"), drawn("C", "number = 1", 'minus = [ "B" ];')])
    output = run(segments, [path], *files, more=MEASURED + f'results = [ "seg", "sr" ]; min_slices = 3; grid = {{ mm = {mm}; }};',
                 output=f"out-{mm}")
    reference = Reference(files, mm)
    values = reference.grid()
    there = [mask_on_grid(reference, reference.report, region) for region in regions]
    there.append(there[0] & ~there[1])
    on_planes = [*regions, mask_on_planes(reference, reference.report, there[2] & ~np.isnan(values))]
    masks = mask_of(output, [file.filename for file in reference.files])
    assert [np.count_nonzero(mask != expected) for mask, expected in zip(masks, on_planes, strict=True)] == [0, 0, 0]
    record = record_of(output)
    there = [mask & ~np.isnan(values) for mask in there]
    assert [segment["voxels"] for segment in record["segments"]] == [mask.sum() for mask in there] and min(map(np.sum, there)) > 0
    means = {feature["segment_number"]: feature["value"] for feature in json.loads((output / "features.json").read_text())
             if feature["name"] == "mean"}
    assert means == {number: pytest.approx(values[mask].mean(), rel=1e-9) for number, mask in enumerate(there, start=1)}
    assert "straightened" in record["note"] and "volumes are of that grid" in record["note"]
    return reference, there


@needs_shared
@pytest.mark.parametrize("kind", ["18.5", "-7", "uneven", "head"])
def test_regions_of_straightened_series_are_unchanged(run, tmp_path, kind):
    files = tilted(tmp_path, kind)
    planes = Planes(files)
    slices, rows, columns = planes.shape
    middle, sides = (0.45 * columns, 0.5 * rows), (0.3 * columns, 0.2 * rows)
    path = structure_set(tmp_path, planes, {
        "A": [("CLOSED_PLANAR", ring(planes, z, middle, (sides[0], sides[1] + z), 200)) for z in range(1, slices - 1)],
        "B": [("CLOSED_PLANAR", ring(planes, z, (columns, rows / 2), sides, 90)) for z in range(slices // 2, slices)]})
    regions = [peer_mask(planes, [item.ContourData for item in roi.ContourSequence])
               for roi in pydicom.dcmread(path).ROIContourSequence]
    reference, there = check_straightened(run, tmp_path, files, path, regions)
    assert kind == "head" or assert_valid(tmp_path / "out-0.0" / "seg.dcm") is None
    # Each plane has its own slice, so the way back is lossless. At twice the distance it is not.
    assert np.array_equal(mask_on_planes(reference, reference.report, there[0]), regions[0])
    if kind == "18.5":
        thick, there = check_straightened(run, tmp_path, files, path, regions, 2 * reference.report["spacing"][2])
        assert not np.array_equal(mask_on_planes(thick, thick.report, there[0]), regions[0])


def test_segmentations_of_straightened_series_are_unchanged(run, tmp_path):
    files = tilted(tmp_path, "18.5")
    pixels, datasets = parts(files)
    path = segmentation(tmp_path / "seg.dcm", datasets, pixels.astype(np.uint8), "BINARY")
    output = run(", ".join([found("A"), found("B", "number = 2")]), [path], tmp_path / "tilted")
    assert np.array_equal(mask_of(output, [file.filename for file in datasets]), np.moveaxis(pixels, 3, 0))


def test_a_region_between_the_slices_of_the_grid_is_refused(run, tmp_path):
    files = tilted(tmp_path, "18.5")
    planes = Planes(files)
    path = structure_set(tmp_path, planes, {"A": [("CLOSED_PLANAR", ring(planes, 1, (30, 30), (9, 9), 40))]})
    complaint = run(drawn(wanted="number = 1"), [path], tmp_path / "tilted", status=1, more="grid = { mm = 60.0; };")
    assert "ROI_EMPTY: " in complaint and "give the pipeline a smaller grid.mm" in complaint


@pytest.mark.parametrize(("wanted", "words"), [
    ('roi = "a"; number = 1', "exactly one of roi and number must be given"),
    ("", "exactly one of roi and number must be given"),
    ("number = 1; each = true", "each: requires roi, a pattern that several regions match"),
    ("number = 1; unite = true", "unite: requires roi, a pattern that several regions match"),
    ('roi = "*"; unite = true; each = true', "is not allowed with each: remove one of the two"),
    ('roi = "*"; contour_pixels = "corners"', "contour_pixels"),
])
def test_options_agree(run, tmp_path, series, wanted, words):
    assert words in run(drawn(wanted=wanted), [], tmp_path / "series", status=5)


# ---- segmentations of other software

def parts(series):
    """Returns two segments, empty in some slices, on the slices in ascending order, and the files in that order."""
    planes = Planes(series)
    z, y, x = np.indices(planes.shape)
    ball = (x - 33) ** 2 + (y - 29) ** 2 + 9 * (z - 4) ** 2 < 300
    block = (x > 50) & (y < 20) & (z > 2) & (z < 5)
    return np.stack([ball, block], axis=-1), [pydicom.dcmread(file.filename) for file in planes.files]


def segmentation(path, files, pixels, kind, **more):
    """Returns a SEG by highdicom. kind is its Segmentation Type."""
    segments = [highdicom.seg.SegmentDescription(
        number, label, highdicom.sr.CodedConcept("123037004", "SCT", "Anatomical Structure"),
        highdicom.sr.CodedConcept("10200004", "SCT", "Liver"), "MANUAL", tracking_id=f"{label} of 7", tracking_uid=f"1.2.66.{number}")
        for number, label in enumerate(("Ball", "Block"), start=1)]
    seg = highdicom.seg.Segmentation(files, pixels, kind, segments, "1.2.65.3", 1, more.pop("uid", "1.2.65.1"), 1, "Someone", "Else", "1",
                                     "7", **more)
    seg.save_as(path)
    return path


def encoded(path, files, given, kind, syntax):
    """Compresses frames with highdicom, and deflates data sets with pydicom."""
    if syntax.is_encapsulated:
        return segmentation(path, files, given, kind, transfer_syntax_uid=syntax)
    ds = pydicom.dcmread(segmentation(path, files, given, kind))
    ds.file_meta.TransferSyntaxUID = syntax
    ds.save_as(path)
    return path


def found(label="GTV", wanted='roi = "Ball"', more=""):
    return drawn(label, wanted, more).replace('"rtstruct"', '"seg"')


@pytest.mark.parametrize("kind", ["BINARY", "FRACTIONAL", "LABELMAP"])
@pytest.mark.parametrize("kept", [False, True], ids=["", "with empty frames"])
def test_segmentations_are_segments(run, tmp_path, series, kind, kept):
    pixels, files = parts(series)
    given = pixels.astype(np.uint8)
    if kind == "FRACTIONAL":
        given = np.where(pixels, 0.5, 0.2) * (pixels | (np.indices(pixels.shape)[2] % 3 == 0))
    path = segmentation(tmp_path / "seg.dcm", files, given, kind, omit_empty_frames=not kept,
                        **({"max_fractional_value": 200} if kind == "FRACTIONAL" else {}))
    output = run(", ".join([found("A"), found("B", "number = 2")]), [path], tmp_path / "series",
                 more=MEASURED + 'results = [ "seg", "sr" ];')
    masks = mask_of(output, [file.filename for file in files])
    assert np.array_equal(masks, np.moveaxis(pixels, 3, 0))
    # Findings keep their tracking identifiers.
    written = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert [(item.TrackingID, item.TrackingUID) for item in written] == [("Ball of 7", "1.2.66.1"), ("Block of 7", "1.2.66.2")]
    alone = dict(more=MEASURED + 'results = [ "sr" ];', output="alone")
    if kind == "LABELMAP":
        assert "OBJECT_NOT_REFERABLE: " in run(found(), [path], tmp_path / "series", status=1, **alone)
        return
    output = run(found(), [path], tmp_path / "series", **alone)
    assert_dciodvfy_is_content(output / "sr.dcm")
    (group,) = highdicom.sr.srread(output / "sr.dcm").content.get_volumetric_roi_measurement_groups()
    reference = one(group[0], "IMAGE", "121191").ReferencedSOPSequence[0]
    assert reference.ReferencedSOPInstanceUID == "1.2.65.1" and reference.ReferencedSegmentNumber == 1
    assert group.tracking_identifier == "Ball of 7" and group.tracking_uid == "1.2.66.1"


def network_segmentation(path, files, pixels):
    """Returns a segment of a network, with all attributes that a SEG can state of it, and a manual one."""
    family, name = (highdicom.sr.CodedConcept(*code) for code in (("123110", "DCM", "Artificial Intelligence"),
                                                                  ("LUNGNET", "99EXAMPLE", "Lung nodule network")))
    algorithm = highdicom.AlgorithmIdentificationSequence("LungNet 3D", family, "2.1.0-rc1", "Institut für Bildanalyse",
                                                          {"threshold": "0.5", "weights": "sha256:0ab1"})
    algorithm[0].AlgorithmNameCodeSequence = [name]
    altered = highdicom.sr.CodedConcept("49755003", "SCT", "Morphologically Altered Structure")
    segments = [
        highdicom.seg.SegmentDescription(
            1, "Ball", altered, highdicom.sr.CodedConcept("4147007", "SCT", "Mass"), "AUTOMATIC", algorithm,
            tracking_id="nodule 7", tracking_uid="1.2.66.7",
            anatomic_regions=[highdicom.sr.CodedConcept("39607008", "SCT", "Lung")]),
        highdicom.seg.SegmentDescription(
            2, "Block", altered, highdicom.sr.CodedConcept("4147007", "SCT", "Mass"), "MANUAL")]
    seg = highdicom.seg.Segmentation(files, pixels.astype(np.uint8), "BINARY", segments, "1.2.65.3", 1, "1.2.65.1", 1,
                                     "Example", "LungNet server", "4", "7")
    seg.SpecificCharacterSet = "ISO_IR 192"
    seg.save_as(path)
    return path


def code_of(sequence):
    return sequence[0].CodeValue, sequence[0].CodingSchemeDesignator, sequence[0].CodeMeaning


def children(item, relation="HAS CONCEPT MOD"):
    """Returns (code of the concept, value) of the modifiers of an item."""
    values = [(child, child.TextValue if child.ValueType == "TEXT" else child.ConceptCodeSequence[0].CodeValue)
              for child in item.ContentSequence if child.RelationshipType == relation]
    return [(child.ConceptNameCodeSequence[0].CodeValue, value) for child, value in values]


def test_the_provenance_of_a_segmentation_is_kept(run, tmp_path, series):
    pixels, files = parts(series)
    path = network_segmentation(tmp_path / "seg.dcm", files, pixels)
    untyped = found("A").replace(TYPE, "")
    output = run(", ".join([untyped, found("B", "number = 2")]), [path], tmp_path / "series",
                 more=MEASURED + 'results = [ "seg", "sr" ];')
    assert_dciodvfy_is_silent(output / "seg.dcm", path)
    given, written = pydicom.dcmread(path).SegmentSequence, pydicom.dcmread(output / "seg.dcm").SegmentSequence
    for keyword in ("SegmentAlgorithmType", "SegmentAlgorithmName", "SegmentationAlgorithmIdentificationSequence", "TrackingID",
                    "TrackingUID", "SegmentedPropertyCategoryCodeSequence", "SegmentedPropertyTypeCodeSequence",
                    "AnatomicRegionSequence"):
        assert written[0][keyword].value == given[0][keyword].value, keyword
    assert written[0].SegmentDescription.startswith('region 1 "Ball" of Segmentation 1.2.65.1, drawn on ')
    # The second one was drawn by hand, without an algorithm. Its type is configured.
    assert written[1].SegmentAlgorithmType == "MANUAL" and "SegmentAlgorithmName" not in written[1]
    assert "SegmentationAlgorithmIdentificationSequence" not in written[1]
    assert code_of(written[1].SegmentedPropertyTypeCodeSequence)[0] == "86049000"
    read = highdicom.seg.segread(output / "seg.dcm").get_segment_description(1)
    assert read.algorithm_type.value == "AUTOMATIC" and read.algorithm_identification.name == "LungNet 3D"
    assert read.algorithm_identification.parameters == {"threshold": "0.5", "weights": "sha256:0ab1"}

    group, drawn_group = highdicom.sr.srread(output / "sr.dcm").content.get_volumetric_roi_measurement_groups()
    assert group.tracking_identifier == "nodule 7" and group.tracking_uid == "1.2.66.7"
    assert children(one(group[0], "IMAGE", "121191")) == [
        ("ALGORITHM_TYPE", "AUTOMATIC"), ("111001", "LungNet 3D"), ("111003", "2.1.0-rc1"),
        ("111002", "threshold=0.5,weights=sha256:0ab1"), ("111000", "123110")]
    assert children(one(drawn_group[0], "IMAGE", "121191")) == [("ALGORITHM_TYPE", "MANUAL")]
    assert_dciodvfy_is_content(output / "sr.dcm")

    of = record_of(output)["segments"][0]["object"]
    assert {key: of[key] for key in ("sop_instance_uid", "number", "name", "tracking_uid", "changed", "manufacturer", "model",
                                     "algorithm_type", "algorithm_names")} == {
        "sop_instance_uid": "1.2.65.1", "number": 1, "name": "Ball", "tracking_uid": "1.2.66.7", "changed": False,
        "manufacturer": "Example", "model": "LungNet server", "algorithm_type": "AUTOMATIC", "algorithm_names": ["LungNet 3D"]}
    (algorithm,) = of["algorithms"]
    assert algorithm["family"]["code"] == "123110" and algorithm["code"]["code"] == "LUNGNET"
    assert (algorithm["name"], algorithm["version"], algorithm["source"]) == ("LungNet 3D", "2.1.0-rc1", "Institut für Bildanalyse")


def test_steps_on_a_region_are_stated_with_its_provenance(run, tmp_path, series):
    pixels, files = parts(series)
    path = network_segmentation(tmp_path / "seg.dcm", files, pixels)
    grown = "then = ( { grow_mm = 2.0; } );"
    output = run(", ".join([found("A", more=grown), found("B", "number = 2", grown)]), [path], tmp_path / "series",
                 more=MEASURED + 'results = [ "seg", "sr" ];')
    assert_dciodvfy_is_silent(output / "seg.dcm", path)
    given, written = pydicom.dcmread(path).SegmentSequence, pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert [item.SegmentAlgorithmType for item in written] == ["AUTOMATIC", "SEMIAUTOMATIC"]
    assert written[0].SegmentAlgorithmName == ["LungNet 3D", "Noctule steps on a region"]
    assert written[1].SegmentAlgorithmName == "Noctule steps on a region"
    sequences = [item.SegmentationAlgorithmIdentificationSequence for item in written]
    assert sequences[0] == given[0].SegmentationAlgorithmIdentificationSequence
    assert sequences[1][0].AlgorithmName == "Noctule steps on a region" and sequences[1][0].AlgorithmParameters.endswith("; then grow mm 2")
    assert code_of(sequences[1][0].AlgorithmFamilyCodeSequence)[0] == "123104"
    assert all(item.SegmentDescription.endswith("; then grow mm 2") for item in written)
    # A changed region is another finding.
    assert not {item.TrackingUID for item in written} & {"1.2.66.7"}
    highdicom.seg.segread(output / "seg.dcm")
    assert [segment["object"]["changed"] for segment in record_of(output)["segments"]] == [True, True]


@pytest.mark.parametrize(("stated", "description", "expected", "names"), [
    ("AUTOMATIC", "ContourNet 1.7", "AUTOMATIC", "ContourNet 1.7"),
    ("SEMIAUTOMATIC", None, "SEMIAUTOMATIC", "not stated by the source object"),
    ("MANUAL", None, "MANUAL", None),
    ("MANUAL", "drawn by hand", "MANUAL", None),
    ("", None, "SEMIAUTOMATIC", "not stated by the source object"),
    (None, "ContourNet 1.7", "SEMIAUTOMATIC", "ContourNet 1.7"),
    ("BY HAND", None, "SEMIAUTOMATIC", "not stated by the source object"),
])
def test_the_provenance_of_a_structure_set_is_kept(run, tmp_path, series, rois, stated, description, expected, names):
    path = structure_set(tmp_path, Planes(series), rois)
    ds = pydicom.dcmread(path)
    roi = ds.StructureSetROISequence[0]
    if stated is not None:
        roi.ROIGenerationAlgorithm = stated
    if description:
        roi.ROIGenerationDescription = description
    ds.save_as(path)
    output = run(drawn(wanted="number = 1"), [path], tmp_path / "series")
    assert_valid(output / "seg.dcm")
    (written,) = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert written.SegmentAlgorithmType == expected and written.get("SegmentAlgorithmName") == names
    assert "SegmentationAlgorithmIdentificationSequence" not in written
    assert ('described as "drawn by hand"' in written.SegmentDescription) == (description == "drawn by hand")
    of = record_of(output)["segments"][0]["object"]
    assert of["algorithm_type"] == (stated if stated in ("AUTOMATIC", "SEMIAUTOMATIC", "MANUAL") else "")
    assert of["algorithms"] == [] and of["algorithm_names"] == ([description] if description else [])


def test_the_derivation_algorithm_of_a_region_is_kept(run, tmp_path, series, rois):
    path = structure_set(tmp_path, Planes(series), rois)
    ds = pydicom.dcmread(path)
    roi = ds.StructureSetROISequence[0]
    roi.ROIGenerationAlgorithm = "AUTOMATIC"
    roi.ROIDerivationAlgorithmIdentificationSequence = highdicom.AlgorithmIdentificationSequence(
        "ContourNet", highdicom.sr.CodedConcept("123110", "DCM", "Artificial Intelligence"), "1.7", "Example")
    ds.save_as(path)
    output = run(drawn(wanted="number = 1"), [path], tmp_path / "series", more=MEASURED + 'results = [ "seg", "sr" ];')
    (written,) = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert written.SegmentAlgorithmType == "AUTOMATIC" and written.SegmentAlgorithmName == "ContourNet"
    assert written.SegmentationAlgorithmIdentificationSequence == roi.ROIDerivationAlgorithmIdentificationSequence


def explained_code(tmp_path, path):
    """Returns the code that explain predicts for the only segment, with the configuration of the last run."""
    done = subprocess.run([BIN / "noctule", "--config", tmp_path / "noctule.conf", "explain", "--json", "-p", "drawn", path,
                           tmp_path / "series"], text=True, capture_output=True, timeout=300)
    (waits,) = json.loads(done.stdout)["series"][0]["waits_for"]
    return waits["code"]


def test_a_segment_needs_a_type_if_its_object_has_no_type(run, tmp_path, series):
    pixels, files = parts(series)
    path = network_segmentation(tmp_path / "seg.dcm", files, pixels)
    ds = pydicom.dcmread(path)
    del ds.SegmentSequence[0].SegmentedPropertyTypeCodeSequence
    ds.save_as(path)
    complaint = run(found("A").replace(TYPE, ""), [path], tmp_path / "series", status=1)
    assert ('TAG_MISSING: seg.dcm, segment "Ball": Segmented Property Type Code Sequence (0062,000F) has no whole code. '
            'Give segment "A" of pipeline drawn a type.') in complaint
    assert explained_code(tmp_path, path) == "TAG_MISSING"
    run(found("A"), [path], tmp_path / "series")
    assert explained_code(tmp_path, path) == ""


SYNTAXES = {"BINARY": ["DeflatedExplicitVRLittleEndian"],
            "FRACTIONAL": ["DeflatedExplicitVRLittleEndian", "RLELossless", "JPEGLSLossless", "JPEG2000Lossless"],
            "LABELMAP": ["DeflatedExplicitVRLittleEndian", "RLELossless", "JPEGLSLossless", "JPEG2000Lossless"]}


@pytest.mark.parametrize(("kind", "syntax"), [(kind, syntax) for kind, syntaxes in SYNTAXES.items() for syntax in syntaxes])
def test_compressed_segmentations_are_segments(run, tmp_path, series, kind, syntax):
    """Two segments in frames of 70 x 61 pixels, which do not end at byte boundaries. Deflated, their frames
    alternate."""
    pixels, files = parts(series)
    given = pixels * 0.75 if kind == "FRACTIONAL" else pixels.astype(np.uint8)
    path = encoded(tmp_path / "seg.dcm", files, given, kind, getattr(pydicom.uid, syntax))
    assert pydicom.dcmread(path).file_meta.TransferSyntaxUID.name != "Explicit VR Little Endian"
    output = run(", ".join([found("A"), found("B", "number = 2")]), [path], tmp_path / "series")
    assert np.array_equal(mask_of(output, [file.filename for file in files]), np.moveaxis(pixels, 3, 0))


def test_fractions_are_cut_at_the_threshold(run, tmp_path, series):
    _, files = parts(series)
    values = np.zeros((*Planes(series).shape, 2))
    for i in range(11):
        values[2, 10, 5 * i:5 * i + 3, :] = i / 10
    path = segmentation(tmp_path / "seg.dcm", files, values, "FRACTIONAL", max_fractional_value=250)
    for threshold, count in (("0.0", 10), ("0.3", 8), ("0.5", 6), ("1.0", 1)):
        output = run(found(wanted=f'roi = "Ball"; threshold = {threshold}'), [path], tmp_path / "series", output=threshold)
        assert record_of(output)["segments"][0]["voxels"] == 3 * count


def test_frames_of_other_pixels_are_resampled(run, tmp_path, series):
    """Some of the slices, with pixels half as large. A voxel uses the pixel nearest to its centre."""
    pixels, files = parts(series)
    path = segmentation(tmp_path / "seg.dcm", files, pixels.astype(np.uint8), "BINARY", omit_empty_frames=False)
    ds = pydicom.dcmread(path)
    shared = ds.SharedFunctionalGroupsSequence[0]
    old = [float(value) for value in shared.PixelMeasuresSequence[0].PixelSpacing]
    shared.PixelMeasuresSequence[0].PixelSpacing = [old[0] / 2, old[1] / 2]
    generator = np.random.default_rng(5)
    frames = generator.integers(0, 2, (ds.NumberOfFrames, 40, 52)).astype(np.uint8)
    ds.Rows, ds.Columns = 40, 52
    ds.PixelData = np.packbits(frames.ravel(), bitorder="little").tobytes().ljust((frames.size + 15) // 16 * 2, b"\0")
    expected = np.zeros(Planes(series).shape, bool)
    planes = Planes(series)
    for frame, group in zip(frames, ds.PerFrameFunctionalGroupsSequence, strict=True):
        position = np.array(group.PlanePositionSequence[0].ImagePositionPatient, float)
        z = planes.nearest(position)
        moved = position + 10 * old[1] * planes.axes[0] + 20 * old[0] * planes.axes[1]
        group.PlanePositionSequence[0].ImagePositionPatient = [f"{value:.10g}" for value in moved]
        if group.SegmentIdentificationSequence[0].ReferencedSegmentNumber == 1:
            expected[z, 20:40, 10:36] = frame[::2, ::2]
    ds.save_as(path)
    output = run(found(), [path], tmp_path / "series")
    assert np.array_equal(mask_of(output, [file.filename for file in files])[0], expected)


def nearest_pixels(shift, count, spacing, own, size):
    """Returns the frame pixel of each plane pixel along an axis. size: outside the frame."""
    places = np.floor(np.floor((shift + np.arange(count) * spacing) / own * 65536 + 0.5) / 65536 + 0.5).astype(int)
    return np.where((places >= 0) & (places < size), places, size)


def frames_on_heights(path, planes, heights, told):
    """Returns frames with random pixels at these heights above the first plane, and those of the first segment, by
    height."""
    ds = pydicom.dcmread(path)
    measures = ds.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0]
    if told:
        measures.SpacingBetweenSlices = told
    elif "SpacingBetweenSlices" in measures:
        del measures.SpacingBetweenSlices
    frames = np.random.default_rng(9).integers(0, 2, (2, len(heights), ds.Rows, ds.Columns)).astype(np.uint8)
    groups = {1: [], 2: []}
    for group in ds.PerFrameFunctionalGroupsSequence:
        of = groups[group.SegmentIdentificationSequence[0].ReferencedSegmentNumber]
        position = planes.origins[0] + (heights[len(of)] if len(of) < len(heights) else 0) * planes.normal
        group.PlanePositionSequence[0].ImagePositionPatient = [f"{value:.10g}" for value in position]
        of.append(group)
    ds.PerFrameFunctionalGroupsSequence = [group for of in groups.values() for group in of[:len(heights)]]
    ds.NumberOfFrames = len(ds.PerFrameFunctionalGroupsSequence)
    ds.PixelData = np.packbits(frames.ravel(), bitorder="little").tobytes().ljust((frames.size + 15) // 16 * 2, b"\0")
    ds.save_as(path)
    return frames[0]


@pytest.mark.parametrize("told", [True, False], ids=["told", "as the closest"])
@pytest.mark.parametrize("step", [0.37, 1.0, 1.71])
def test_frames_between_the_slices_are_taken_by_the_nearest(run, tmp_path, series, step, told):
    """One frame in a regular sequence is missing. Slices nearest to the missing frame are empty."""
    pixels, files = parts(series)
    planes = Planes(series)
    path = segmentation(tmp_path / "seg.dcm", files, pixels.astype(np.uint8), "BINARY", omit_empty_frames=False)
    at = np.array([np.dot(origin - planes.origins[0], planes.normal) for origin in planes.origins])
    mm = step * float(np.median(np.diff(at)))
    heights = np.delete(-0.31 * mm + mm * np.arange(len(at)), 3)
    frames = frames_on_heights(path, planes, heights, f"{mm:.10g}" if told else "")
    expected = np.zeros(planes.shape, bool)
    for z, height in enumerate(at):
        i = int(np.argmin(np.abs(heights - height)))
        if abs(heights[i] - height) > mm / 2 * 1.0002:
            continue
        shift = planes.origins[z] - planes.origins[0] - heights[i] * planes.normal
        x, y = (nearest_pixels(np.dot(shift, planes.axes[axis]), planes.shape[2 - axis], planes.spacing[axis],
                               planes.spacing[axis], planes.shape[2 - axis]) for axis in (0, 1))
        expected[z] = np.pad(frames[i], ((0, 1), (0, 1)))[np.ix_(y, x)]
    assert expected.any() and not expected.any(axis=(1, 2)).all()
    output = run(found(), [path], tmp_path / "series")
    assert np.array_equal(mask_of(output, [file.filename for file in files])[0], expected)
    assert "each slice has the nearest frame" in record_of(output)["note"]


@pytest.mark.parametrize("times", [2, 3, 4])
def test_thick_frames_fill_their_slices(run, tmp_path, series, times):
    """Frames on every second, third or fourth slice: each slice uses the nearest frame, the lower of two equally
    near."""
    pixels, files = parts(series)
    planes = Planes(series)
    path = segmentation(tmp_path / "seg.dcm", files, pixels.astype(np.uint8), "BINARY", omit_empty_frames=False)
    at = np.array([np.dot(origin - planes.origins[0], planes.normal) for origin in planes.origins])
    heights = at[::times]
    frames = frames_on_heights(path, planes, heights, f"{heights[1] - heights[0]:.10g}")
    expected = np.zeros(planes.shape, bool)
    for z in range(len(at)):
        below, above = z // times, min(-(-z // times), len(heights) - 1)
        if z - times * below <= times / 2 or (below < above and times * above - z < times / 2):
            expected[z] = frames[below if z - times * below <= abs(times * above - z) else above]
    output = run(found(), [path], tmp_path / "series")
    assert np.array_equal(mask_of(output, [file.filename for file in files])[0], expected)
    assert "each slice has the nearest frame" in record_of(output)["note"]
    frames_on_heights(path, planes, heights, "")
    ds = pydicom.dcmread(path)
    del ds.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0].SliceThickness
    ds.save_as(path)
    sparse = run(found("B"), [path], tmp_path / "series")
    masks = mask_of(sparse, [file.filename for file in files])[0]
    assert not masks[1::times].any() and "slices between drawn ones have no frame, and stay empty" in record_of(sparse)["note"]


@pytest.mark.parametrize("off, planes_above", [(0.5, 0), (-0.5, 1)])
def test_frames_half_way_between_slices_belong_to_one_slice(run, tmp_path, series, off, planes_above):
    pixels, files = parts(series)
    planes = Planes(series)
    path = segmentation(tmp_path / "seg.dcm", files, pixels.astype(np.uint8), "BINARY", omit_empty_frames=False)
    at = np.array([np.dot(origin - planes.origins[0], planes.normal) for origin in planes.origins])
    mm = float(np.median(np.diff(at)))
    frames = frames_on_heights(path, planes, at[2:6] + off * mm, f"{mm:.10g}")
    expected = np.zeros(planes.shape, bool)
    expected[3 - planes_above:7 - planes_above] = frames
    output = run(found(), [path], tmp_path / "series")
    assert np.array_equal(mask_of(output, [file.filename for file in files])[0], expected)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows, columns", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_frames_turned_within_their_plane_are_taken(run, tmp_path, series, rows, columns, transposed):
    """As other software stores them: rows or columns in reverse order, or exchanged."""
    pixels, files = parts(series)
    path = segmentation(tmp_path / "seg.dcm", files, pixels.astype(np.uint8), "BINARY", omit_empty_frames=False)
    ds = pydicom.dcmread(path)
    shared = ds.SharedFunctionalGroupsSequence[0]
    across, down = np.split(np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float), 2)
    measures = shared.PixelMeasuresSequence[0]
    row_mm, column_mm = (float(value) for value in measures.PixelSpacing)
    frames = ds.pixel_array[:, ::rows, ::columns]
    shift = (down * row_mm * (ds.Rows - 1) if rows < 0 else 0) + (across * column_mm * (ds.Columns - 1) if columns < 0 else 0)
    for group in ds.PerFrameFunctionalGroupsSequence:
        position = group.PlanePositionSequence[0]
        position.ImagePositionPatient = [f"{value:.10g}" for value in np.array(position.ImagePositionPatient, float) + shift]
    axes = [across * columns, down * rows]
    if transposed:
        frames, axes = frames.transpose(0, 2, 1), axes[::-1]
        ds.Rows, ds.Columns, measures.PixelSpacing = ds.Columns, ds.Rows, [column_mm, row_mm]
    shared.PlaneOrientationSequence[0].ImageOrientationPatient = [f"{value:.8g}" for value in np.concatenate(axes)]
    ds.PixelData = np.packbits(frames.ravel(), bitorder="little").tobytes().ljust((frames.size + 15) // 16 * 2, b"\0")
    ds.save_as(path)
    output = run(found(), [path], tmp_path / "series")
    assert np.array_equal(mask_of(output, [file.filename for file in files])[0], np.moveaxis(pixels, 3, 0)[0])


def test_frames_closer_than_the_stated_distance_are_refused(run, tmp_path, series):
    """With the stated distance, slices without annotation would use the frame next to a gap."""
    pixels, files = parts(series)
    planes = Planes(series)
    path = segmentation(tmp_path / "seg.dcm", files, pixels.astype(np.uint8), "BINARY", omit_empty_frames=False)
    at = np.array([np.dot(origin - planes.origins[0], planes.normal) for origin in planes.origins])
    mm = float(np.median(np.diff(at)))
    heights = np.delete(-0.31 * mm + mm * np.arange(len(at)), [2, 3])
    frames_on_heights(path, planes, heights, f"{1.8 * mm:.10g}")
    printed = run(found(), [path], tmp_path / "series", status=1)
    assert "SEG_GRID_DIFFERS" in printed and "lies closer to the one before than its Spacing Between Slices" in printed
    frames_on_heights(path, planes, heights, f"{1.004 * mm:.4g}")  # rounded
    assert "each slice has the nearest frame" in record_of(run(found(), [path], tmp_path / "series"))["note"]


@pytest.mark.parametrize(("code", "words"), [
    ("SEG_GRID_DIFFERS", "is not parallel to the slices of the series, or turned within their plane. Have it made on the slices of this series."), ("SEG_GRID_DIFFERS", "lies on none of the series' slices"),
    ("SEG_GRID_DIFFERS", "lies on a slice that an earlier one lies on"), ("SEG_GRID_DIFFERS", "has no position"),
    ("OBJECT_OTHER_SERIES", "was not drawn on this series"), ("OBJECT_OTHER_FRAME", "another frame of reference"),
    ("ROI_EMPTY", "it has no contour"), ("ROI_NOT_FOUND", 'it has 1 "Ball", 2 "Block"'),
    ("ROI_AMBIGUOUS", '"Ball" (1) and "Block" (2)'), ("TRANSFER_SYNTAX_UNSUPPORTED", "is in JPEG 2000, which is lossy"),
    ("FILE_TRUNCATED", "bytes of pixel data"), ("TAG_INVALID", "two segments have 1"), ("TAG_INVALID", "there is no segment 9"),
    ("OWN_RESULT", "object = { own = true; }"), ("PIXELS_UNSUPPORTED", "pixels of 8 bits"),
])
def test_unusable_segmentations_are_refused(run, tmp_path, series, code, words):
    pixels, files = parts(series)
    path = segmentation(tmp_path / "seg.dcm", files, pixels.astype(np.uint8), "BINARY")
    ds = pydicom.dcmread(path)
    first = ds.PerFrameFunctionalGroupsSequence[0]
    wanted = 'roi = "Ball"'
    if "parallel" in words:
        ds.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence[0].ImageOrientationPatient = [1, 0, 0, 0, 0, 1]
    elif "none of" in words:
        planes = Planes(series)
        frames_on_heights(path, planes, [0.3 * float(planes.origins[1][2] - planes.origins[0][2])], "")
        ds = pydicom.dcmread(path)
    elif "earlier" in words:
        first.PlanePositionSequence = ds.PerFrameFunctionalGroupsSequence[1].PlanePositionSequence
    elif "position" in words:
        del first.PlanePositionSequence
    elif code.startswith("OBJECT"):
        ds.FrameOfReferenceUID = "1.2.78"
        if code == "OBJECT_OTHER_SERIES":
            ds.ReferencedSeriesSequence[0].SeriesInstanceUID = "1.2.77"
    elif code == "ROI_EMPTY":
        for group in ds.PerFrameFunctionalGroupsSequence:
            group.SegmentIdentificationSequence[0].ReferencedSegmentNumber = 2
    elif code.startswith("ROI"):
        wanted = 'roi = "ball"' if code == "ROI_NOT_FOUND" else 'roi = "B*"'
    elif code == "TRANSFER_SYNTAX_UNSUPPORTED":
        ds.file_meta.TransferSyntaxUID = pydicom.uid.JPEG2000
        ds.PixelData = pydicom.encaps.encapsulate([b"no frame"] * ds.NumberOfFrames)
    elif code == "FILE_TRUNCATED":
        ds.PixelData = ds.PixelData[:-100]
    elif "two segments" in words:
        ds.SegmentSequence[1].SegmentNumber = 1
    elif "segment 9" in words:
        first.SegmentIdentificationSequence[0].ReferencedSegmentNumber = 9
    elif code == "OWN_RESULT":
        ds.Manufacturer, ds.ManufacturerModelName = "Noctule", "noctuled"
    else:
        ds.BitsAllocated, ds.BitsStored, ds.HighBit = 8, 8, 7
    ds.save_as(path)
    complaint = run(found(wanted=wanted), [path], tmp_path / "series", status=1)
    assert f"{code}: " in complaint and words in complaint and str(path) in complaint
    assert_no_file_left(tmp_path / "out")


def test_own_results_are_used_if_the_pipeline_permits(run, tmp_path, series, rois):
    structures = structure_set(tmp_path, Planes(series), rois)
    one_seg = run(drawn("Ball", "number = 3"), [structures], tmp_path / "series", output="one") / "seg.dcm"
    again = run(found(wanted='roi = "Ball"; own = true'), [one_seg, structures], tmp_path / "series", output="again")
    masks = [seg_masks(path, [pydicom.dcmread(file, stop_before_pixels=True) for file in series])
             for path in (one_seg, again / "seg.dcm")]
    assert np.array_equal(*masks) and masks[0].any()
    assert "OBJECT_MISSING" in run(found(), [structures], tmp_path / "series", status=1)


# ---- every matching region

def grown(label="Lesions", wanted='roi = "lesion*"; each = true', more=""):
    return drawn(label, wanted, more)


def lesions(planes, count):
    """Regions of an organ and of lesions by their names. Lesions do not touch each other."""
    rois = {"Liver": [("CLOSED_PLANAR", ring(planes, z, (35, 30), (30, 25), 60)) for z in range(1, 8)]}
    for number in range(1, count + 1):
        rois[f"lesion {number}"] = [("CLOSED_PLANAR", ring(planes, z, (9 * number, 12), (3, 4 + number), 30)) for z in (2, 3)]
    return rois


def written_masks(path, planes, numbers):
    contours = pydicom.dcmread(path).ROIContourSequence
    return [peer_mask(planes, [c.ContourData for c in contours[n - 1].ContourSequence]) for n in numbers]


@pytest.mark.parametrize("count", [1, 3])
def test_each_matching_region_is_a_segment(run, tmp_path, series, count):
    """One configuration for patients with 1 to n lesions."""
    planes = Planes(series)
    path = structure_set(tmp_path, planes, lesions(planes, count))
    output = run(grown(), [path], tmp_path / "series", more=MEASURED + 'results = [ "seg", "sr" ];')
    numbers = range(2, count + 2)
    masks = mask_of(output, [file.filename for file in planes.files])
    assert np.array_equal(masks, written_masks(path, planes, numbers)) and len(masks) == count
    names = [f"lesion {number}" for number in range(1, count + 1)]
    segments = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert [(item.SegmentNumber, item.SegmentLabel) for item in segments] == list(enumerate(names, start=1))
    assert len({item.TrackingUID for item in segments}) == count
    record = record_of(output)["segments"]
    assert [(row["label"], row["region"], row["region_number"]) for row in record] == list(zip(names, names, numbers))
    features = json.loads((output / "features.json").read_text())
    assert {(row["segment_number"], row["label"]) for row in features} == set(enumerate(names, start=1))
    groups = highdicom.sr.srread(output / "sr.dcm").content.get_volumetric_roi_measurement_groups()
    assert len(groups) == count
    assert_valid(output / "seg.dcm")


def test_regions_bring_their_codes_colors_and_names(run, tmp_path, series):
    """Two regions of one name, one without a name, and one that another segment of the pipeline already uses."""
    planes = Planes(series)
    path = structure_set(tmp_path, planes, lesions(planes, 4))
    ds = pydicom.dcmread(path)
    for roi, name in zip(ds.StructureSetROISequence[1:], ("lesion", "lesion", "", "Liver"), strict=True):
        roi.ROIName = name
    coded = ds.RTROIObservationsSequence[1]
    coded.RTROIIdentificationCodeSequence = [codes(("94222008", "SCT", "Metastasis"))]
    coded.RTROIIdentificationCodeSequence[0].SegmentedPropertyTypeModifierCodeSequence = [codes(("24028007", "SCT", "Right"))]
    coded.SegmentedPropertyCategoryCodeSequence = [codes(("49755003", "SCT", "Morphologically Abnormal Structure"))]
    coded.AnatomicRegionSequence = [codes(("10200004", "SCT", "Liver"))]
    ds.ROIContourSequence[1].ROIDisplayColor = [0, 0, 255]
    half = ds.RTROIObservationsSequence[2]
    half.RTROIIdentificationCodeSequence = [codes(("94222008", "SCT", "Metastasis"))]
    del half.RTROIIdentificationCodeSequence[0].CodeMeaning
    half.AnatomicRegionSequence = [codes(("10200004", "SCT", "Liver"))]
    ds.save_as(path)
    output = run(", ".join([drawn("Liver", "number = 1"), grown(wanted='roi = "*"; each = true')]), [path], tmp_path / "series")
    segments = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert [item.SegmentLabel for item in segments] == ["Liver", "Liver (1)", "lesion", "lesion (3)", "Region 4", "Liver (5)"]
    own, other = segments[2], segments[3]
    assert code_of(own.SegmentedPropertyTypeCodeSequence) == ("94222008", "SCT", "Metastasis")
    assert code_of(own.SegmentedPropertyTypeCodeSequence[0].SegmentedPropertyTypeModifierCodeSequence)[2] == "Right"
    assert code_of(own.SegmentedPropertyCategoryCodeSequence)[0] == "49755003"
    assert code_of(own.AnatomicRegionSequence)[2] == "Liver"
    # Blue of sRGB under D50, as colour tables print it; see unit test seg_parts.
    lab = own.RecommendedDisplayCIELabValue
    assert (lab[0] / 655.35, lab[1] / 257 - 128, lab[2] / 257 - 128) == pytest.approx((29.57, 68.3, -112.03), abs=0.1)
    # the pipeline's, because the region's code is incomplete
    assert code_of(other.SegmentedPropertyTypeCodeSequence)[0] == "86049000"
    assert code_of(other.AnatomicRegionSequence)[2] == "Liver"


def codes(concept):
    item = pydicom.Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = concept
    return item


def code_of(sequence):
    return sequence[0].CodeValue, sequence[0].CodingSchemeDesignator, sequence[0].CodeMeaning


def test_matching_regions_are_united(run, tmp_path, series):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, {**lesions(planes, 3), "lesion 4": [("CLOSED_PLANAR", ring(planes, 3, (10, 12), (3, 5), 30))]})
    output = run(grown(wanted='roi = "lesion*"; unite = true'), [path], tmp_path / "series")
    (mask,) = mask_of(output, [file.filename for file in planes.files])
    assert np.array_equal(mask, np.any(written_masks(path, planes, (2, 3, 4, 5)), axis=0))
    (row,) = record_of(output)["segments"]
    assert (row["label"], row["region"], row["regions"]) == ("Lesions", "lesion 1, lesion 2, lesion 3, lesion 4", 4)
    assert row["voxels"] == mask.sum() and row["contours"] == 7
    (item,) = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert item.SegmentLabel == "Lesions" and "4 regions united" in \
        item.SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters


def test_empty_and_absent_regions_are_rows_with_a_reason(run, tmp_path, series, rois):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, rois)
    segments = ", ".join([drawn("A", 'roi = "GTV-1"; optional = true'), drawn("B", 'roi = "Boost"; optional = true'),
                          drawn("C", 'roi = "none"; optional = true'), drawn("D", "number = 2")])
    output = run(segments, [path], tmp_path / "series", more=MEASURED + 'results = [ "seg", "sr" ];')
    record = record_of(output)
    assert record["outcome"] == "DONE" and record["note"].startswith("empty segments (2 of 4; job.json has the reasons): B, C")
    boost = 'rtstruct.dcm has no region named "Boost" for segment "B"; it has 1 "GTV-1", 2 "GTV-2", 3 "Löwe", 4 "point", 5 "none", '
    none = 'rtstruct.dcm, region "none": it has no contour. Draw it, or leave segment "C" out.'
    assert [row.get("empty", "") for row in record["segments"]] == ["", boost + '6 "beside", 7 "off".', none, ""]
    masks = mask_of(output, [file.filename for file in planes.files])
    assert [bool(mask.any()) for mask in masks] == [True, False, False, True]
    features = json.loads((output / "features.json").read_text())
    assert {row["label"] for row in features if row["value"] is None} == {"B", "C"}
    assert {row["reason"] for row in features if row["label"] == "B" and row["value"] is None} == {"EMPTY_REGION"}
    assert_valid(output / "seg.dcm")
    assert_dciodvfy_is_content(output / "sr.dcm")
    alone = run(segments, [path], tmp_path / "series", more=MEASURED + 'results = [ "sr" ];', output="alone")
    assert_dciodvfy_is_content(alone / "sr.dcm")
    groups = highdicom.sr.srread(alone / "sr.dcm").content.get_volumetric_roi_measurement_groups()
    assert [one(one(group[0], "COMPOSITE", "130488"), "TEXT", "130489").TextValue for group in groups] == ["1", "5", "2"]


def test_without_an_optional_object_the_other_segments_are_made(run, tmp_path, series):
    bright = f'{{ label = "Bright"; method = "range"; range = [ -2000.0, 4000.0 ]; {TYPE} }}'
    segments = ", ".join([drawn("A", 'roi = "GTV"; optional = true'), bright])
    output = run(segments, [], tmp_path / "series", more=MEASURED + 'results = [ "seg", "sr" ];')
    absent, made = record_of(output)["segments"]
    assert absent["empty"] == 'segment "A" is a region of an RT Structure Set, and the job has none.' and absent["voxels"] == 0
    assert made["voxels"] == Planes(series).files[0].Rows * Planes(series).files[0].Columns * len(series)
    features = json.loads((output / "features.json").read_text())
    assert {row["reason"] for row in features if row["label"] == "A" and row["value"] is None} == {"EMPTY_REGION"}
    assert "OBJECT_MISSING" in run(segments.replace("; optional = true", ""), [], tmp_path / "series", status=1)


def test_each_leaves_empty_regions_empty(run, tmp_path, series, rois):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, rois)
    output = run(grown(wanted='roi = "[!o]*"; each = true'), [path], tmp_path / "series", more=MEASURED)
    record = record_of(output)
    assert [(row["label"], row["voxels"] > 0, "empty" in row) for row in record["segments"]] == [
        ("GTV-1", True, False), ("GTV-2", True, False), ("Löwe", True, False), ("point", False, True), ("none", False, True),
        ("beside", False, True)]
    assert "empty segments (3 of 6; " in record["note"]
    # Contours off the slices are not empty, and their content is unknown.
    assert "CONTOUR_OFF_PLANES" in run(grown(wanted='roi = "*"; each = true'), [path], tmp_path / "series", status=1, output="off")


def test_no_matching_region(run, tmp_path, series):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, lesions(planes, 0))
    assert "ROI_NOT_FOUND" in run(grown(), [path], tmp_path / "series", status=1)
    output = run(grown(wanted='roi = "lesion*"; each = true; optional = true'), [path], tmp_path / "series", status=7, output="empty")
    assert "EMPTY: no voxel belongs to a segment: rtstruct.dcm has no region named" in output
    record = record_of(tmp_path / "empty")
    assert (record["outcome"], record["code"]) == ("EMPTY", "EMPTY") and not (tmp_path / "empty" / "seg.dcm").exists()
    assert 'has no region named "lesion*"' in record["message"] and record["segments"][0]["voxels"] == 0
    output = run(", ".join([drawn("Liver", "number = 1"), grown(wanted='roi = "lesion*"; each = true; optional = true')]),
                 [path], tmp_path / "series", output="organ")
    assert [(row["label"], row.get("hidden", False)) for row in record_of(output)["segments"]] == [("Liver", False), ("Lesions", True)]
    assert len(pydicom.dcmread(output / "seg.dcm").SegmentSequence) == 1


def test_each_is_no_name_for_other_segments(run, tmp_path, series):
    told = run(", ".join([grown(), drawn("A", "number = 1", 'minus = [ "Lesions" ];')]), [], tmp_path / "series", status=5)
    assert '"Lesions" is one segment per region: name a segment with object.unite' in told


ORGANS = 104  # of TotalSegmentator's first version


def organs(files, shape):
    """Adjacent blocks of 5 x 5 x 2 voxels, except number 50, which is empty."""
    masks = np.zeros((*shape, ORGANS), np.uint8)
    for n in range(ORGANS):
        y, x = divmod(n, 13)
        masks[1 + n % 6:3 + n % 6, 2 + 7 * y:7 + 7 * y, 2 + 5 * x:7 + 5 * x, n] = n != 49
    segments = [highdicom.seg.SegmentDescription(
        n, f"organ {n}", highdicom.sr.CodedConcept("123037004", "SCT", "Anatomical Structure"),
        highdicom.sr.CodedConcept(str(10200000 + n), "SCT", f"Organ {n}"), "MANUAL", tracking_id=f"organ {n} of 7",
        tracking_uid=f"1.2.66.{n}", display_color=highdicom.color.CIELabColor(50, (n - 52) / 3, 20)) for n in range(1, ORGANS + 1)]
    return masks, segments


@pytest.mark.parametrize("kind", ["BINARY", "LABELMAP"])
def test_all_organs_of_a_segmentation(run, tmp_path, kind):
    planes = Planes(phantom(tmp_path / "series", "--size", "70x61x9"))
    files = [pydicom.dcmread(file.filename) for file in planes.files]
    masks, segments = organs(files, planes.shape)
    given = highdicom.seg.Segmentation(files, masks, kind, segments, "1.2.65.3", 1, "1.2.65.1", 1, "Total", "Segmentator", "1", "7")
    given.save_as(tmp_path / "organs.dcm")
    each = found("Organs", 'roi = "*"; each = true').replace(TYPE, "")
    output = run(each, [tmp_path / "organs.dcm"], tmp_path / "series", more=MEASURED + 'results = [ "seg", "sr" ];')
    written = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    for item, segment in zip(written, segments, strict=True):
        assert (item.SegmentNumber, item.SegmentLabel) == (segment.SegmentNumber, segment.SegmentLabel)
        assert (item.TrackingID, item.TrackingUID) == (segment.TrackingID, segment.TrackingUID)
        assert code_of(item.SegmentedPropertyTypeCodeSequence) == code_of(segment.SegmentedPropertyTypeCodeSequence)
        assert item.RecommendedDisplayCIELabValue == pytest.approx(segment.RecommendedDisplayCIELabValue, abs=100)
    assert np.array_equal(mask_of(output, [file.filename for file in planes.files]), np.moveaxis(masks, 3, 0).astype(bool))
    record = record_of(output)
    assert [row["region_number"] for row in record["segments"]] == list(range(1, ORGANS + 1))
    assert [row["label"] for row in record["segments"] if "empty" in row] == ["organ 50"]
    assert record["note"].startswith("empty segments (1 of 104; job.json has the reasons): organ 50")
    features = json.loads((output / "features.json").read_text())
    mean = {row["label"]: row["value"] for row in features if row["name"] == "mean"}
    values = exact_values(files)
    for n in range(ORGANS):
        own = mean[f"organ {n + 1}"]
        assert own is None if n == 49 else own == pytest.approx(values[masks[..., n] > 0].mean(), rel=1e-9)
    assert_valid(output / "seg.dcm")


def test_more_regions_than_a_pipeline_may_have(run, tmp_path, series):
    planes = Planes(series)
    path = structure_set(tmp_path, planes, {f"A{n}": [("CLOSED_PLANAR", ring(planes, 3, (30, 30), (9, 9), 12))] for n in range(256)})
    both = ", ".join([grown(wanted='roi = "A*"; each = true'), drawn("one", 'roi = "A7"')])
    assert "ROI_TOO_MANY" in run(both, [path], tmp_path / "series", status=1)
    output = run(grown(wanted='roi = "A*"; each = true'), [path], tmp_path / "series")
    assert len(pydicom.dcmread(output / "seg.dcm").SegmentSequence) == 256


# ---- contours through voxel centres

def test_contours_through_centres(run, tmp_path, series):
    """A block of 11 x 7 voxels with a hole of 3 x 1, outlined through the centres of its border voxels, and one
    voxel."""
    planes = Planes(series)
    block = [planes.point(3, x, y) for x, y in ((20, 10), (20, 16), (30, 16), (30, 10))]
    hole = [planes.point(3, x, y) for x, y in ((24, 12), (26, 12), (27, 13), (26, 14), (24, 14), (23, 13))]
    path = structure_set(tmp_path, planes, {"GTV": [("CLOSED_PLANAR", block), ("CLOSED_PLANAR", hole),
                                                    ("CLOSED_PLANAR", [planes.point(5, 40, 40)])]})
    expected = np.zeros(planes.shape, bool)
    expected[3, 10:17, 20:31] = True
    expected[3, 13, 24:27] = False
    expected[5, 40, 40] = True
    output = run(drawn(wanted='roi = "GTV"; contour_pixels = "centres"'), [path], tmp_path / "series")
    (mask,) = mask_of(output, [file.filename for file in planes.files])
    assert np.count_nonzero(mask != expected) == 0
    (row,) = record_of(output)["segments"]
    assert row["points_on_centres"] == 1 and row["voxels"] == 11 * 7 - 3 + 1
    (item,) = pydicom.dcmread(output / "seg.dcm").SegmentSequence
    assert "with the voxels whose centres contours cross" in item.SegmentDescription
    # Read as pixel edges, they lose half a pixel on each side, and this is reported.
    output = run(drawn(wanted='roi = "GTV"'), [path], tmp_path / "series", output="inside")
    record = record_of(output)
    assert record["segments"][0]["voxels"] < expected.sum()
    assert "10 of 10 contour points lie on voxel centres; if the region has these voxels, set object.contour_pixels" in record["note"]
    assert "lie on voxel centres" in record["segments"][0]["note"]
    round_ones = structure_set(tmp_path, planes, {"GTV": [("CLOSED_PLANAR", ring(planes, 3, (30.3, 30.3), (9, 9), 40))]})
    output = run(drawn(wanted='roi = "GTV"; contour_pixels = "centres"'), [round_ones], tmp_path / "series", output="round")
    assert "contour points lie on voxel centres, and object.contour_pixels is" in record_of(output)["note"]
    output = run(drawn(wanted='roi = "GTV"'), [round_ones], tmp_path / "series", output="usual")
    assert "centres" not in record_of(output)["note"]

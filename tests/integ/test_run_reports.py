"""Segments that start from points and outlines of an SR by highdicom, through `noctule run --object`."""

import highdicom
import numpy as np
import pydicom
import pytest
from highdicom.sr import CodedConcept

from conftest import phantom
from test_contours import Planes, peer_mask, ring
from test_grid import Reference
from test_resample import mask_on_grid
from test_run_objects import drawn, mask_of, record_of, run  # noqa: F401

SCT_NODULE, SCT_LESION = CodedConcept("27925004", "SCT", "Nodule"), CodedConcept("52988006", "SCT", "Lesion")


@pytest.fixture
def series(tmp_path):
    return phantom(tmp_path / "series", "--size", "70x61x12")


def group(planes, name, region, finding=SCT_NODULE, kind=highdicom.sr.PlanarROIMeasurementsAndQualitativeEvaluations, where="region"):
    return kind(tracking_identifier=highdicom.sr.TrackingIdentifier(uid=highdicom.UID(), identifier=name),
                finding_type=finding, **{f"referenced_{where}": region})


def space(planes, points, kind="POINT", frame=None):
    return highdicom.sr.ImageRegion3D(getattr(highdicom.sr.GraphicTypeValues3D, kind), np.array(points),
                                      frame or planes.files[0].FrameOfReferenceUID)


def on_image(file, points, kind="POINT", frames=None):
    image = highdicom.sr.SourceImageForRegion(file.SOPClassUID, file.SOPInstanceUID, frames)
    return highdicom.sr.ImageRegion(getattr(highdicom.sr.GraphicTypeValues, kind), np.array(points), source_image=image)


def report(path, planes, groups, evidence=None):
    """Returns a TID 1500 report with Measurement Groups."""
    person = highdicom.sr.PersonObserverIdentifyingAttributes(name="Reader^One")
    context = highdicom.sr.ObservationContext(observer_person_context=highdicom.sr.ObserverContext(
        observer_type=CodedConcept("121006", "DCM", "Person"), observer_identifying_attributes=person))
    content = highdicom.sr.MeasurementReport(
        observation_context=context, procedure_reported=CodedConcept("363679005", "SCT", "Imaging procedure"),
        imaging_measurements=groups, title=CodedConcept("126000", "DCM", "Imaging Measurement Report"))
    sr = highdicom.sr.Comprehensive3DSR(evidence or planes.files, content[0], "1.2.67.3", 1, "1.2.67.1", 1, manufacturer="Else")
    sr.save_as(path)
    return path


def marked(label="Marked", wanted='roi = "Nodule 1"', more=""):
    return drawn(label, wanted, more).replace('"rtstruct"', '"sr"')


def points_mask(planes, points):
    """Returns the voxel nearest to each point."""
    mask = np.zeros(planes.shape, bool)
    for point in points:
        z = planes.nearest(np.array(point))
        x, y = (int(np.floor(np.dot(point - planes.origins[z], planes.axes[axis]) / planes.spacing[axis] + 0.5)) for axis in (0, 1))
        mask[z, y, x] = True
    return mask


def test_points_and_outlines_are_regions(run, tmp_path, series):  # noqa: F811
    planes = Planes(series)
    inside = planes.point(4, 30.2, 25.9, 0.3)
    outline = ring(planes, 6, (33, 31), (20, 11), 60)
    column_row = [(20.0, 10.0), (40.0, 10.0), (40.0, 30.0), (20.0, 30.0), (20.0, 10.0)]
    path = report(tmp_path / "sr.dcm", planes, [
        group(planes, "Nodule 1", space(planes, [inside])),
        group(planes, "Nodule 2", space(planes, [*outline, outline[0]], "POLYGON")),
        group(planes, "Mark", on_image(planes.files[3], [(12.4, 17.6)]), SCT_LESION),
        group(planes, "Box", on_image(planes.files[3], column_row, "POLYLINE"), SCT_LESION)])
    output = run(", ".join([marked("A"), marked("B", "number = 2"), marked("C", 'roi = "Mar?"'), marked("D", 'roi = "Box"')]), [path],
                 tmp_path / "series")
    # Reports store single precision.
    points = pydicom.dcmread(path)
    data = []

    def walk(item):
        if "GraphicData" in item:
            data.append(np.array(item.GraphicData, float))
        for child in item.get("ContentSequence", []):
            walk(child)

    walk(points)
    square = [planes.point(3, x - 0.5, y - 0.5) for x, y in column_row]
    expected = [points_mask(planes, [data[0]]), peer_mask(planes, [data[1]]), points_mask(planes, [planes.point(3, 11.9, 17.1)]),
                peer_mask(planes, [np.ravel(square)])]
    masks = mask_of(output, [file.filename for file in planes.files])
    assert [np.count_nonzero(mask != one) for mask, one in zip(masks, expected, strict=True)] == [0, 0, 0, 0]
    assert expected[0][4, 26, 30] and expected[2][3, 17, 12] and expected[3].sum() == 400
    assert [segment.get("points") for segment in record_of(output)["segments"]] == [1, None, 1, None]


def test_circles_and_ellipses_on_slices(run, tmp_path):  # noqa: F811
    """Pixels whose centres lie within, by the equation; on pixels that are not square only the ellipse."""
    files = phantom(tmp_path / "series", "--size", "70x61x12", "--spacing", "2,2,4")
    planes = Planes(files)
    y, x = np.mgrid[:61, :70] + 0.5
    circle, ellipse = [(30.25, 20.5), (30.25, 33.75)], [(10.0, 30.0), (60.0, 30.0), (35.0, 20.5), (35.0, 39.5)]
    path = report(tmp_path / "sr.dcm", planes, [
        group(planes, "Round", on_image(planes.files[3], circle, "CIRCLE"), SCT_LESION),
        group(planes, "Long", on_image(planes.files[7], ellipse, "ELLIPSE"), SCT_LESION)])
    output = run(", ".join([marked("A", 'roi = "Round"'), marked("B", 'roi = "Long"')]), [path], tmp_path / "series")
    expected = np.zeros((2, 12, 61, 70), bool)
    expected[0, 3] = np.hypot(x - 30.25, y - 20.5) <= 13.25
    expected[1, 7] = ((x - 35) / 25) ** 2 + ((y - 30) / 9.5) ** 2 <= 1
    masks = mask_of(output, [file.filename for file in planes.files])
    assert [np.count_nonzero(mask != one) for mask, one in zip(masks, expected, strict=True)] == [0, 0]


def mask_of_frames(output, image):
    """Returns the mask of the first segment by frame of a multi-frame image."""
    def position(item):
        return tuple(map(float, item.PlanePositionSequence[0].ImagePositionPatient))

    seg = pydicom.dcmread(output / "seg.dcm")
    frames = [position(item) for item in image.PerFrameFunctionalGroupsSequence]
    mask = np.zeros((len(frames), image.Rows, image.Columns), bool)
    for item, pixels in zip(seg.PerFrameFunctionalGroupsSequence, seg.pixel_array.reshape(-1, *mask.shape[1:]), strict=True):
        mask[frames.index(position(item))] |= pixels.astype(bool)
    return mask


VOLUME = highdicom.sr.VolumetricROIMeasurementsAndQualitativeEvaluations
SQUARE, HOLE = ([(x, y) for x, y in ((a, a), (b, a), (b, b), (a, b), (a, a))] for a, b in ((10.0, 30.0), (15.0, 20.0)))


def test_regions_of_a_multi_frame_image_are_on_the_frames_that_they_name(run, tmp_path):  # noqa: F811
    """PS3.3 C.18.4: a reference without frame numbers is to all frames. C.18.6: the same coordinates on each of them."""
    (path,) = phantom(tmp_path / "series", "--size", "70x61x12", "--spacing", "2,2,4", "--multi-frame")
    image = pydicom.dcmread(path)
    circle = [(40.25, 30.5), (40.25, 42.75)]
    y, x = np.mgrid[:61, :70] + 0.5
    disc, square, hole, point = np.hypot(x - 40.25, y - 30.5) <= 12.25, *np.zeros((3, 61, 70), bool)
    square[10:30, 10:30], hole[15:20, 15:20], point[20, 33] = True, True, True
    every, first, some = range(12), [0], [4, 1, 7]
    cases = {  # figures, expected area on frames from 0
        "every": ([on_image(image, circle, "CIRCLE")], [(disc, every)]),
        "first": ([on_image(image, circle, "CIRCLE", [1])], [(disc, first)]),
        "some": ([on_image(image, circle, "CIRCLE", [n + 1 for n in some])], [(disc, some)]),
        "outline": ([on_image(image, SQUARE, "POLYLINE")], [(square, every)]),
        "hole": ([on_image(image, SQUARE, "POLYLINE"), on_image(image, HOLE, "POLYLINE", [4, 5])],
                 [(square, every), (~hole, [3, 4])]),
        "point": ([on_image(image, [(33.5, 20.5)])], [(point, every)])}
    sr = report(tmp_path / "sr.dcm", None, [group(None, name, figures, SCT_LESION, VOLUME, "regions")
                                            for name, (figures, _) in cases.items()], [image])
    for name, (_, areas) in cases.items():
        output = run(marked(name, f'roi = "{name}"'), [sr], tmp_path / "series", output=name)
        expected = np.zeros((12, 61, 70), bool)
        expected[list(areas[0][1])] = areas[0][0]
        for area, frames in areas[1:]:
            expected[list(frames)] &= area
        mask = mask_of_frames(output, image)
        assert np.count_nonzero(mask != expected) == 0 and expected.any(), name


def test_frames_that_are_not_of_the_image_or_no_numbers_are_refused(run, tmp_path):  # noqa: F811
    (path,) = phantom(tmp_path / "series", "--size", "70x61x12", "--multi-frame")
    image = pydicom.dcmread(path)
    sr = report(tmp_path / "sr.dcm", None, [group(None, "Nodule 1", on_image(image, SQUARE, "POLYLINE", [1234567]))], [image])
    told = run(marked(), [sr], tmp_path / "series", status=1)
    assert "OBJECT_OTHER_SERIES" in told and image.SOPInstanceUID in told
    content = sr.read_bytes()
    assert content.count(b"1234567 ") == 1
    for wrong in (b"two     ", b"0       ", b"-1      ", b"1\\two   ", b"1\\\\2    ", b"1.5     ", b"99999999999"[:8]):
        sr.write_bytes(content.replace(b"1234567 ", wrong))
        told = run(marked(), [sr], tmp_path / "series", status=1)
        code = "OBJECT_OTHER_SERIES" if wrong.isdigit() else "TAG_INVALID"
        assert code in told and (wrong.isdigit() or "Referenced Frame Number" in told), (wrong, told)


def test_many_points_on_many_frames_are_refused(run, tmp_path):  # noqa: F811
    """8000 points in a report of 64 KiB, on each of 600 frames: more than LIMIT_ROI_POINTS."""
    (path,) = phantom(tmp_path / "series", "--size", "16x16x600", "--multi-frame")
    image = pydicom.dcmread(path, stop_before_pixels=True)
    angles = np.linspace(0, 2 * np.pi, 7999)
    outline = np.stack([8 + 5 * np.cos(angles), 8 + 5 * np.sin(angles)], 1)
    outline = [*outline, outline[0]]
    for frames, code in ((None, "SIZE_IMPLAUSIBLE"), ([600], None)):
        sr = report(tmp_path / "sr.dcm", None, [group(None, "Nodule 1", on_image(image, outline, "POLYLINE", frames))], [image])
        told = run(marked(), [sr], tmp_path / "series", status=1 if code else 0)
        assert not code or code in told, told


def test_coordinates_of_several_slices_are_on_each_of_them(run, tmp_path, series):  # noqa: F811
    planes = Planes(series)
    region = on_image(planes.files[3], SQUARE, "POLYLINE")
    other = planes.files[7]
    region.ContentSequence.append(highdicom.sr.SourceImageForRegion(other.SOPClassUID, other.SOPInstanceUID))
    sr = report(tmp_path / "sr.dcm", planes, [group(planes, "Nodule 1", region)])
    output = run(marked(), [sr], tmp_path / "series")
    expected = np.zeros(planes.shape, bool)
    expected[[3, 7], 10:30, 10:30] = True
    assert np.array_equal(mask_of(output, [file.filename for file in planes.files])[0], expected)


@pytest.mark.parametrize("method", ["level-set", "fuzzy-connectedness"])
def test_segments_start_from_points(run, tmp_path, series, method):  # noqa: F811
    """The same result as from the point itself."""
    planes = Planes(series)
    point = planes.point(5, 35, 30)
    path = report(tmp_path / "sr.dcm", planes, [group(planes, "Nodule 1", space(planes, [point]))])
    seen = marked(more="hidden = true;")
    ways = {"level-set": "range = [ 0.0, 80.0 ]; ", "fuzzy-connectedness": "threshold = 0.3; "}
    at = ", ".join(map(str, point))
    own = {"level-set": f'shapes = ( {{ center = {{ mm = [ {at} ]; }}; radius_voxels = 0.5; }} );',
           "fuzzy-connectedness": f"seeds = ( {{ mm = [ {at} ]; }} );"}[method]
    found = [mask_of(run(segments, [path], tmp_path / "series", output=name), [file.filename for file in planes.files])[0]
             for name, segments in (
                 ("from", f'{seen}, {drawn("Nodule").replace("object", method, 1).split("object =")[0]} from = "Marked"; {ways[method]} '
                          'type = { code = "27925004"; scheme = "SCT"; meaning = "Nodule"; }; }'),
                 ("own", f'{{ label = "Nodule"; method = "{method}"; {own} {ways[method]} '
                         'type = { code = "27925004"; scheme = "SCT"; meaning = "Nodule"; }; }'))]
    assert np.array_equal(*found) and found[0].sum() > 100


def test_points_on_straightened_series(run, tmp_path):  # noqa: F811
    files = phantom(tmp_path / "series", "--size", "70x61x12", "--tilt", "18.5")
    planes = Planes(files)
    path = report(tmp_path / "sr.dcm", planes, [group(planes, "Nodule 1", space(planes, [planes.point(5, 35, 30)]))])
    output = run(marked(), [path], tmp_path / "series")
    mask = points_mask(planes, [planes.point(5, 35, 30)])
    assert np.array_equal(mask_of(output, [file.filename for file in planes.files])[0], mask)
    reference = Reference(files)
    assert record_of(output)["segments"][0]["voxels"] == mask_on_grid(reference, reference.report, mask).sum() == 1


@pytest.mark.parametrize(("wanted", "code", "words"), [
    ('roi = "nodule 1"', "ROI_NOT_FOUND", 'it has 1 "Nodule 1", 2 "Elsewhere"'),
    ('roi = "*odule*"', "ROI_AMBIGUOUS", '"Nodule 1" (1) and "Elsewhere" (2)'),
    ('roi = "Elsewhere"', "OBJECT_OTHER_FRAME", "1.2.78"),
    ('roi = "Beside"', "SEED_OUTSIDE", "has a point outside of the volume: "),
    ('roi = "Above"', "SEED_OUTSIDE", "has a point outside of the volume: "),
    ('roi = "Round"', "FIGURE_UNSUPPORTED", "is drawn as ELLIPSE"),
    ('roi = "Strange"', "OBJECT_OTHER_SERIES", "is drawn on an image that is no slice of the series: 1.2.79"),
    ('roi = "Slanted"', "CONTOUR_OBLIQUE", 'region "Slanted": '),
])
def test_invalid_regions_are_refused(run, tmp_path, series, wanted, code, words):  # noqa: F811
    planes = Planes(series)
    strange = pydicom.dcmread(planes.files[0].filename)
    strange.SOPInstanceUID = "1.2.79"
    slanted = [planes.point(z, x, y) for z, x, y in ((4, 5, 5), (4, 20, 5), (6, 20, 20), (6, 5, 20), (4, 5, 5))]
    round_ = [planes.point(3, x, y) for x, y in ((10, 20), (30, 20), (20, 10), (20, 30))]
    path = report(tmp_path / "sr.dcm", planes, [
        group(planes, "Nodule 1", space(planes, [planes.point(4, 30, 25)])),
        group(planes, "Elsewhere", space(planes, [planes.point(4, 30, 25)], frame="1.2.78")),
        group(planes, "Beside", space(planes, [planes.point(4, 71, 25)]), SCT_LESION),
        group(planes, "Above", space(planes, [planes.point(11, 30, 25, 8.0)]), SCT_LESION),
        group(planes, "Round", space(planes, round_, "ELLIPSE"), SCT_LESION),
        group(planes, "Strange", on_image(strange, [(3.0, 4.0)]), SCT_LESION),
        group(planes, "Slanted", space(planes, slanted, "POLYGON"), SCT_LESION)], [*planes.files, strange])
    complaint = run(marked(wanted=wanted), [path], tmp_path / "series", status=1)
    assert f"{code}: " in complaint and words in complaint and str(path) in complaint


def test_reports_without_regions_are_refused(run, tmp_path, series):  # noqa: F811
    planes = Planes(series)
    nothing = highdicom.sr.MeasurementsAndQualitativeEvaluations(
        tracking_identifier=highdicom.sr.TrackingIdentifier(uid=highdicom.UID(), identifier="Nodule 1"), finding_type=SCT_NODULE)
    path = report(tmp_path / "sr.dcm", planes, [nothing])
    assert "ROI_NOT_FOUND: " in run(marked(), [path], tmp_path / "series", status=1)
    ds = pydicom.dcmread(path)
    ds.ContentSequence = [item for item in ds.ContentSequence]
    ds.ContentSequence[0].ValueType = "NONE"
    ds.save_as(path)
    assert "TAG_INVALID: sr.dcm has content that cannot be read" in run(marked(), [path], tmp_path / "series", status=1)
    ds = pydicom.dcmread(series[0])
    assert "OBJECT_MISSING: " in run(marked(), [series[0]], tmp_path / "series", status=1)


def test_a_report_alone_cannot_refer_to_points(run, tmp_path, series):  # noqa: F811
    complaint = run(marked(), [], tmp_path / "series", status=5, more='texture = { first_order = true; }; results = [ "sr" ];')
    assert '"sr" refers to the segments in "seg": add "seg"' in complaint


def measured(planes, name, coordinates, finding=SCT_NODULE):
    """Returns a group of TID 1501 with a measurement (TID 300) inferred from coordinates."""
    length = highdicom.sr.Measurement(CodedConcept("103339001", "SCT", "Long axis"), 12.5, CodedConcept("mm", "UCUM", "mm"),
                                      referenced_coordinates=[coordinates])
    return highdicom.sr.MeasurementsAndQualitativeEvaluations(
        tracking_identifier=highdicom.sr.TrackingIdentifier(uid=highdicom.UID(), identifier=name), finding_type=finding,
        measurements=[length])


def test_coordinates_of_measurements_are_regions(run, tmp_path, series):  # noqa: F811
    """Coordinates of TID 300 below a number, in space and on an image, in a group without coordinates of its own."""
    planes = Planes(series)
    points = ring(planes, 6, (33, 31), (20, 11), 60)
    outline = [*points, points[0]]
    image = highdicom.sr.SourceImageForRegion(planes.files[3].SOPClassUID, planes.files[3].SOPInstanceUID)
    path = report(tmp_path / "sr.dcm", planes, [
        measured(planes, "Outlined", highdicom.sr.CoordinatesForMeasurement3D(
            "POLYGON", np.array(outline), planes.files[0].FrameOfReferenceUID)),
        measured(planes, "Pointed at", highdicom.sr.CoordinatesForMeasurement("POINT", np.array([(12.4, 17.6)]), image), SCT_LESION),
        measured(planes, "Across", highdicom.sr.CoordinatesForMeasurement(
            "POLYLINE", np.array([(12.0, 17.0), (20.0, 19.0)]), image), SCT_LESION)])
    output = run(", ".join([marked("A", 'roi = "Outlined"'), marked("B", "number = 2")]), [path], tmp_path / "series")
    expected = [peer_mask(planes, [np.float32(np.ravel(outline)).astype(float)]), points_mask(planes, [planes.point(3, 11.9, 17.1)])]
    masks = mask_of(output, [file.filename for file in planes.files])
    assert [np.count_nonzero(mask != one) for mask, one in zip(masks, expected, strict=True)] == [0, 0]
    complaint = run(marked(wanted='roi = "Across"'), [path], tmp_path / "series", status=1)
    assert "FIGURE_UNSUPPORTED: " in complaint and "is drawn as POLYLINE" in complaint


def test_measurements_in_any_container_are_found_by_structure(run, tmp_path, series):  # noqa: F811
    """TID 300 in a report without TID 1500: a container, a number below it, its coordinates below that."""
    planes = Planes(series)
    path = report(tmp_path / "sr.dcm", planes, [measured(planes, "Gone", highdicom.sr.CoordinatesForMeasurement3D(
        "POINT", np.array([planes.point(4, 30.2, 25.9)]), planes.files[0].FrameOfReferenceUID))])
    ds = pydicom.dcmread(path)
    group_ = next(item for item in ds.ContentSequence if item.ValueType == "CONTAINER").ContentSequence[0]
    (number,) = [item for item in group_.ContentSequence if item.ValueType == "NUM"]
    group_.ContentSequence = [number]
    ds.ContentSequence = [group_]
    ds.save_as(path)
    output = run(marked(wanted="number = 1"), [path], tmp_path / "series")
    mask = points_mask(planes, [planes.point(4, 30.2, 25.9)])
    assert np.array_equal(mask_of(output, [file.filename for file in planes.files])[0], mask)

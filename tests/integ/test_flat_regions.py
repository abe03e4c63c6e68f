"""Regions of reports (SR, TID 1410 and 1411 by highdicom) as masks of 2-D images: outlines, circles, ellipses and points, of
images and of frames, and refusals. Masks are compared with formulas in NumPy and with scikit-image."""

import highdicom
import numpy as np
import pydicom
import pytest
import skimage.measure
from conftest import PEERS, run_program, storescu, wait_for
from objects import send
from test_flat import CR, DX, SERVICE, image
from test_flat_results import CODES, US_FRAMES
from test_picture import errors
from test_run_reports import SCT_LESION, group, report, space

ROWS, COLUMNS = 60, 80
Y, X = np.mgrid[:ROWS, :COLUMNS] + 0.5  # centres of pixels; the corner of the first is 0, 0
STORED = np.random.default_rng(5).integers(0, 4000, (ROWS, COLUMNS)).astype(np.uint16)
STUDY = {"StudyID": "1", "SeriesNumber": 1, "AccessionNumber": "", "PatientBirthDate": "", "PatientSex": "", "StudyTime": "",
         "ReferringPhysicianName": "", "Manufacturer": "M"}


class Images:
    """2-D images, in the place of the slices of a series."""

    def __init__(self, *files):
        self.files = files


def figure(ds, points, kind, frames=None):
    return highdicom.sr.ImageRegion(kind, np.array(points, float), highdicom.sr.SourceImageForRegion(
        ds.SOPClassUID, ds.SOPInstanceUID, frames))


def opened(path):
    ds = pydicom.dcmread(path)
    ds.filename = str(path)
    return ds


def make(folder, stored=STORED, sop_class=DX, name="a.dcm", **more):
    folder.mkdir(exist_ok=True)
    image(folder / name, stored, sop_class, **STUDY, **more)
    return opened(folder / name)


def ellipse(major, minor):
    """Returns the mask of the points of an ELLIPSE: those within it, by its equation."""
    (a, b), (c, d) = np.array(major, np.float32).astype(float), np.array(minor, np.float32).astype(float)
    centre, u, v = (a + b) / 2, (b - a) / 2, (d - c) / 2
    p = np.stack([X - centre[0], Y - centre[1]])
    along = [np.tensordot(axis, p, 1) / (axis @ axis) for axis in (u, v)]
    return along[0] ** 2 + along[1] ** 2 <= 1


def circle(centre, point):
    return (X - centre[0]) ** 2 + (Y - centre[1]) ** 2 <= np.hypot(point[0] - centre[0], point[1] - centre[1]) ** 2


def polygon(points):
    inside = skimage.measure.points_in_poly(np.stack([X.ravel(), Y.ravel()], 1), np.array(points, np.float32).astype(float))
    return inside.reshape(ROWS, COLUMNS)


def run(folder, source, sr, wanted='roi = "Mark"', choice=(), check=True, more=""):
    path = folder / "flat.conf"
    path.write_text(f"""root = "{folder / 'root'}"; pipelines = ( {{ name = "flat"; flat = true; results = [ "seg", "sr" ];
        segments = ( {{ label = "Mark"; method = "object"; object = {{ kind = "sr"; {wanted} {more} }}; {CODES} }} );
        texture = {{ regions = [ "segments" ]; families = [ "first-order" ]; }}; }} );""".replace("; ;", ";"))
    return run_program("noctule", "--config", path, "run", "--pipeline", "flat", "--object", sr, *choice, "--output", folder / "out",
                       source, check=check)


def mask_of(out):
    assert errors(out / "seg.dcm") == [] and errors(out / "sr.dcm") == []
    return pydicom.dcmread(out / "seg.dcm").pixel_array.astype(bool)


OUTLINE = [(10.3, 5.2), (60.7, 9.1), (70.2, 50.6), (33.4, 40.9), (12.1, 55.3)]
SLANTED = [((20.0, 20.0), (52.0, 44.0)), ((30.0, 40.0), (42.0, 24.0))]
SHAPES = {
    "POLYLINE": ([*OUTLINE, OUTLINE[0]], polygon(OUTLINE)),
    "CIRCLE": ([(40.25, 30.5), (40.25, 47.75)], circle((40.25, 30.5), (40.25, 47.75))),
    "CIRCLE-beyond-the-border": ([(75.0, 3.0), (75.0, 23.25)], circle((75.0, 3.0), (75.0, 23.25))),
    "ELLIPSE": ([(10.0, 30.0), (70.0, 30.0), (40.0, 20.5), (40.0, 39.5)], ellipse([(10, 30), (70, 30)], [(40, 20.5), (40, 39.5)])),
    "ELLIPSE-slanted": ([*SLANTED[0], *SLANTED[1]], ellipse(*SLANTED)),
    "POINT": ([(12.4, 17.6)], (np.floor(X) == 12) & (np.floor(Y) == 17)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("spacing", [[0.2, 0.2], None])
def test_shapes(tmp_path, name, spacing):
    ds = make(tmp_path / "in", **({"PixelSpacing": spacing} if spacing else {}))
    points, expected = SHAPES[name]
    sr = report(tmp_path / "sr.dcm", Images(ds), [group(Images(ds), "Mark", figure(ds, points, name.split("-")[0]), SCT_LESION)])
    run(tmp_path, tmp_path / "in", sr)
    assert np.count_nonzero(mask_of(tmp_path / "out") != expected) == 0 and 0 < expected.sum() < expected.size


def test_an_ellipse_on_pixels_that_are_not_square(tmp_path):
    """Its axes may have a right angle in the pixels or in mm; a circle has no certain meaning."""
    ds = make(tmp_path / "in", PixelSpacing=[0.4, 0.1])
    # In mm, (x 0.1, y 0.4): the long axis is (24, 6) x (0.1, 0.4) = (2.4, 2.4) mm, the short one (-12, 3) = (-1.2, 1.2) mm.
    points = [(16.0, 24.0), (64.0, 36.0), (52.0, 27.0), (28.0, 33.0)]
    u, v, p = np.array([24.0, 6.0]), np.array([-12.0, 3.0]), np.stack([X - 40, Y - 30])
    along = np.tensordot(np.linalg.inv(np.stack([u, v], 1)), p, 1)
    expected = (along ** 2).sum(0) <= 1
    sr = report(tmp_path / "sr.dcm", Images(ds), [
        group(Images(ds), "Mark", figure(ds, points, "ELLIPSE"), SCT_LESION),
        group(Images(ds), "Round", figure(ds, [(40, 30), (50, 30)], "CIRCLE"), SCT_LESION)])
    run(tmp_path, tmp_path / "in", sr)
    assert np.count_nonzero(mask_of(tmp_path / "out") != expected) == 0 and expected.sum() > 100
    done = run(tmp_path, tmp_path / "in", sr, 'roi = "Round";', check=False)
    assert "FIGURE_UNSUPPORTED" in done.stderr and "CIRCLE on pixels that are not square" in done.stderr


def test_several_figures_of_a_finding_are_united(tmp_path):
    """TID 1411 has several regions: two circles apart, and an outline with a hole."""
    ds = make(tmp_path / "in")
    hole = [(30.1, 20.1), (50.1, 20.1), (50.1, 35.1), (30.1, 35.1)]
    outer = [(25.1, 15.1), (55.1, 15.1), (55.1, 40.1), (25.1, 40.1)]
    regions = [figure(ds, [*outer, outer[0]], "POLYLINE"), figure(ds, [*hole, hole[0]], "POLYLINE"),
               figure(ds, [(10.0, 50.0), (15.0, 50.0)], "CIRCLE"), figure(ds, [(70.0, 50.0), (76.0, 50.0)], "CIRCLE")]
    sr = report(tmp_path / "sr.dcm", Images(ds), [group(
        Images(ds), "Mark", regions, SCT_LESION, highdicom.sr.VolumetricROIMeasurementsAndQualitativeEvaluations, "regions")])
    run(tmp_path, tmp_path / "in", sr)
    expected = (polygon(outer) & ~polygon(hole)) | circle((10, 50), (15, 50)) | circle((70, 50), (76, 50))
    assert np.count_nonzero(mask_of(tmp_path / "out") != expected) == 0


def test_each_frame_has_its_own_regions(tmp_path):
    """Frames that a region names; without a number, it is on all frames."""
    ds = make(tmp_path / "in", np.stack([STORED] * 3), US_FRAMES)
    first, third, all_of = ((10 + 20 * i, 20.0) for i in range(3))
    sr = report(tmp_path / "sr.dcm", Images(ds), [
        group(Images(ds), "Mark", figure(ds, [first, (first[0] + 6, 20)], "CIRCLE", [1]), SCT_LESION),
        group(Images(ds), "Mark", figure(ds, [third, (third[0] + 7, 20)], "CIRCLE", [3]), SCT_LESION),
        group(Images(ds), "Everywhere", figure(ds, [all_of, (all_of[0] + 8, 20)], "CIRCLE"), SCT_LESION),
        group(Images(ds), "Both", figure(ds, [all_of, (all_of[0] + 8, 20)], "CIRCLE", [1, 2]), SCT_LESION)])
    for number, name, expected in ((1, "Mark", circle(first, (first[0] + 6, 20))), (3, "Mark", circle(third, (third[0] + 7, 20))),
                                   (2, "Everywhere", circle(all_of, (all_of[0] + 8, 20))),
                                   (1, "Both", circle(all_of, (all_of[0] + 8, 20))), (2, "Both", circle(all_of, (all_of[0] + 8, 20)))):
        run(tmp_path, tmp_path / "in", sr, f'roi = "{name}";', ("--stack", f"image 1, frame {number}"))
        assert np.count_nonzero(mask_of(tmp_path / "out") != expected) == 0
        (tmp_path / "out").rename(tmp_path / f"out-{number}-{name}")
    for name, number in (("Mark", 2), ("Both", 3)):
        done = run(tmp_path, tmp_path / "in", sr, f'roi = "{name}";', ("--stack", f"image 1, frame {number}"), check=False)
        assert "ROI_EMPTY" in done.stderr and "it is drawn on other images or frames" in done.stderr


def test_each_image_has_its_own_region(tmp_path):
    """One finding on two views of a series, as in mammography: each image takes its own region."""
    views = [make(tmp_path / "in", name=f"{i}.dcm", InstanceNumber=i) for i in (1, 2)]
    places = [(20.0, 20.0), (50.0, 30.0)]
    sr = report(tmp_path / "sr.dcm", Images(*views), [
        group(Images(*views), "Mark", figure(ds, [at, (at[0] + 9, at[1])], "CIRCLE"), SCT_LESION) for ds, at in zip(views, places)])
    for number, at in enumerate(places, 1):
        run(tmp_path, tmp_path / "in", sr, choice=("--stack", f"image {number}"))
        assert np.count_nonzero(mask_of(tmp_path / "out") != circle(at, (at[0] + 9, at[1]))) == 0
        (tmp_path / "out").rename(tmp_path / f"out-{number}")


REFUSED = {
    "open": ("FIGURE_UNSUPPORTED", "is drawn as POLYLINE"),
    "crossing": ("FIGURE_UNSUPPORTED", "has a circle or an ellipse that overlaps another outline"),
    "skew": ("FIGURE_UNSUPPORTED", "is an ELLIPSE whose axes have no common centre or no right angle"),
    "apart": ("FIGURE_UNSUPPORTED", "is an ELLIPSE whose axes have no common centre or no right angle"),
    "flat": ("FIGURE_UNSUPPORTED", "is without area: CIRCLE"),
    "space": ("OBJECT_OTHER_FRAME", "lies in space, in which a 2-D image has no place"),
    "beyond": ("SEED_OUTSIDE", "column 80.5, row 10.0"),
    "twice": ("ROI_AMBIGUOUS", '"twice" (8) and "twice" (9)'),
}


def test_refusals(tmp_path):
    ds = make(tmp_path / "in", FrameOfReferenceUID="1.2.3.4")
    of = Images(ds)
    several = (highdicom.sr.VolumetricROIMeasurementsAndQualitativeEvaluations, "regions")
    sr = report(tmp_path / "sr.dcm", of, [
        group(of, "open", figure(ds, OUTLINE, "POLYLINE"), SCT_LESION),
        group(of, "crossing", [figure(ds, [*OUTLINE, OUTLINE[0]], "POLYLINE"), figure(ds, [(40, 30), (45, 30)], "CIRCLE")], SCT_LESION, *several),
        group(of, "skew", figure(ds, [(10, 30), (70, 30), (30, 20), (50, 40)], "ELLIPSE"), SCT_LESION),
        group(of, "apart", figure(ds, [(10, 30), (70, 30), (42, 20), (42, 40)], "ELLIPSE"), SCT_LESION),
        group(of, "flat", figure(ds, [(10, 30), (10, 30)], "CIRCLE"), SCT_LESION),
        group(of, "space", space(of, [(1.0, 2.0, 3.0)], frame="1.2.3.4"), SCT_LESION),
        group(of, "beyond", figure(ds, [(80.5, 10.0)], "POINT"), SCT_LESION),
        group(of, "twice", figure(ds, [(40, 30), (45, 30)], "CIRCLE"), SCT_LESION),
        group(of, "twice", figure(ds, [(20, 30), (25, 30)], "CIRCLE"), SCT_LESION)])
    found = {}
    for name, (code, words) in REFUSED.items():
        done = run(tmp_path, tmp_path / "in", sr, f'roi = "{name}";', check=False)
        found[name] = code in done.stderr and words in done.stderr or done.stderr
    assert found == dict.fromkeys(REFUSED, True)
    path = tmp_path / "flat.conf"
    path.write_text(path.read_text().replace('kind = "sr"', 'kind = "rtstruct"'))
    done = run_program("noctule", "--config", path, "run", "--pipeline", "flat", "--output", tmp_path / "out", tmp_path / "in", check=False)
    assert "FLAT_UNSUITABLE" in done.stderr and 'object.kind = "rtstruct" of segment "Mark" needs a position in the patient' in done.stderr


def test_a_job_waits_for_its_report(daemon, tmp_path):
    """Through the service: the image comes first, its report by C-STORE later."""
    ds = make(tmp_path / "in", sop_class=CR, PixelSpacing=[0.2, 0.2])
    sr = report(tmp_path / "sr.dcm", Images(ds), [group(Images(ds), "Mark", figure(ds, [(40, 30), (52.5, 30)], "CIRCLE"), SCT_LESION)])
    settings = SERVICE.format(root=tmp_path / "daemon0" / "root", segment="")
    settings = settings[:settings.index("pipelines = (")] + f"""
        pipelines = ( {{ name = "flat"; flat = true; results = [ "seg", "sr" ]; texture = {{ families = [ "first-order" ]; }};
            segments = ( {{ label = "Mark"; method = "object"; object = {{ kind = "sr"; roi = "Mark"; }}; {CODES} }} ); }} );
        rules = ( {{ match = {{ modality = "CR"; }}; pipeline = "flat"; }} );"""
    d = daemon(settings=settings, dicom=PEERS).start()
    storescu(d.port, tmp_path / "in" / "a.dcm")
    wait_for(lambda: [job["code"] for job in d.jobs()] == ["OBJECT_WAITING"], 120, "the waiting job")
    assert send(d.port, pydicom.dcmread(sr)) == [0]
    (job,) = d.wait_jobs(1)
    expected = circle((40, 30), (52.5, 30))
    rows = d.query("SELECT name, value FROM v_features WHERE segment = 1 AND name IN ('mean', 'voxel_count')")
    assert {row["name"]: row["value"] for row in rows} == {"voxel_count": expected.sum(), "mean": pytest.approx(STORED[expected].mean(), rel=1e-12)}

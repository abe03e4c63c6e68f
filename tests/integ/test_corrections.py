"""Corrected masks: a SEG or RTSTRUCT for a result under review is measured, held for review, and delivered once accepted."""

import contextlib
import copy
import json
import math
import re

import highdicom
import numpy as np
import pydicom
import pytest
from cluster import cluster  # noqa: F401, the fixture
from conftest import PEERS, drop, phantom, storescu, wait_for
from objects import save, segmentation, send, structure_set
from pydicom.uid import generate_uid
from test_decide import Deciding, audit
from test_deliveries import destinations, states, to_folder, wait_states
from test_objects import POINTS
from test_review import BROKEN, expecting, small, under_review, wait_review
from test_slurm import on_slurm

PERSON = "Doe^Jane"
UNSUPPORTED = 0x0122


@pytest.fixture
def files(tmp_path):
    return small(tmp_path / "ct")


@pytest.fixture
def site(daemon, tmp_path, files):
    """A result under review (job 1), and a web UI in which rita is a reviewer."""
    site = Deciding(daemon, tmp_path / "secrets", undo=600, quiet=600.0, dicom=PEERS,
                    pipeline_extra='deliver = [ "OUT" ]; results = [ "seg", "rtstruct" ];',
                    extra=destinations(to_folder(tmp_path / "out")))
    expecting(site.daemon)
    site.start()
    drop(files, site.daemon.inbox)
    wait_review(site.daemon)
    return site


def result(d, job=1, kind="seg"):
    """Returns the data set of a result."""
    (row,) = d.query(f"SELECT path FROM v_results WHERE job = {job} AND kind = '{kind}'")
    return pydicom.dcmread(d.root / row["path"])


def cut(seg, person=PERSON, frames=1, **changes):
    """Returns a copy of a BINARY SEG without the voxels of that part of its frames, and their number."""
    edited = copy.deepcopy(seg)
    pixels = np.unpackbits(np.frombuffer(seg.PixelData, np.uint8), bitorder="little")
    size = int(seg.Rows * seg.Columns * frames)
    removed = int(pixels[:size].sum())
    pixels[:size] = 0
    edited.PixelData = np.packbits(pixels, bitorder="little").tobytes()
    edited.SOPInstanceUID = edited.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    edited.ContentCreatorName = person
    for name, value in changes.items():
        setattr(edited, name, value)
    return edited, removed


def voxels(seg):
    return int(np.unpackbits(np.frombuffer(seg.PixelData, np.uint8), bitorder="little")[
        :seg.Rows * seg.Columns * int(seg.NumberOfFrames)].sum())


def jobs(d):
    return d.query("SELECT job, state, corrects, corrected_by, superseded_by, code, message, reviewed_by FROM v_jobs ORDER BY job")


def wait_job(d, job, state="REVIEW"):
    wait_for(lambda: any((row["job"], row["state"]) == (job, state) for row in jobs(d)), 120, f"job {job} in {state}")
    return jobs(d)[job - 1]


def segment(d, job, label="Brain"):
    (row,) = d.query(f"SELECT * FROM v_segments WHERE job = {job} AND label = '{label}'")
    return row


def refusals(d):
    return d.query("SELECT job, detail FROM v_events WHERE kind = 'CORRECTION_REFUSED' ORDER BY event")


def test_an_edited_segmentation_is_measured_reviewed_and_delivered(site, tmp_path):
    d = site.daemon
    old = result(d)
    before = segment(d, 1)
    assert before["voxels"] == voxels(old)
    edited, removed = cut(old)
    assert removed > 0
    shown = under_review(d)[0]
    rita = {"Cookie": site.log_in("rita")}
    assert send(d.port, edited) == [0]
    job = wait_job(d, 2)
    assert (job["corrects"], job["corrected_by"]) == (1, PERSON)
    after = segment(d, 2)
    assert (after["voxels"], after["method"]) == (before["voxels"] - removed, "object")
    assert after["volume_ml"] == pytest.approx(before["volume_ml"] * after["voxels"] / before["voxels"], rel=1e-5)
    assert segment(d, 1)["voxels"] == before["voxels"] and result(d) == old  # no row or file of the old one changes
    # Decisions on the old one are refused: a page that was loaded before, a new one, and the command.
    for seen in (shown["version"], ""):
        answer = site.post("rita", action="accept", subject="job 1", **({"seen": seen} if seen else {}))
        assert answer.status == 409, answer.body
    assert "job 2 measures a correction of job 1" in d.ctl("accept", "1", check=False).stderr
    assert "job 2 measures a correction of job 1" in d.ctl("reject", "1", "no", check=False).stderr
    (row,) = audit(d)
    assert (row["action"], row["subject"], row["job"], row["how"], row["role"], row["address"]) == ("correct", "job 1", 1, "store", "sender", "")
    assert row["actor"] == d.query("SELECT sender FROM object")[0]["sender"] != "" and states(d) == []
    assert row["reason"].startswith(f"seg {edited.SOPInstanceUID}, ")
    told = d.ctl("review").stdout
    assert f"corrects  job 1, masks by {PERSON}; Brain: {after['volume_ml']:.2f} ml, before {before['volume_ml']:.2f} ml" in told
    page = site.send("GET", "review?id=2", **rita).body
    assert "Corrected masks" in page and f"{before['volume_ml']:.2f}" in page and f"{after['volume_ml']:.2f}" in page
    assert all(re.search(rf"<img[^>]*[=/]{job}[\".]", page) for job in (1, 2))
    assert "a person corrected it: job 2" in page and "corrects job 1: Brain" in page  # in the list of waiting results
    assert "Decide on <a href=\"review?id=2\">job 2</a>" in site.send("GET", "review?id=1", **rita).body
    for number in (1, 2):
        assert "Corrected masks" in site.send("GET", f"job?id={number}", **rita).body
    # The accepted correction is delivered, and names the person.
    d.ctl("accept", "2")
    wait_states(d, ("OUT", "SENT"), ("OUT", "SENT"))
    assert [(row["job"], row["state"], row["superseded_by"]) for row in jobs(d)] == [(1, "REJECTED", 2), (2, "DONE", None)]
    assert {row["job"] for row in d.query("SELECT job FROM v_deliveries")} == {2}
    row = audit(d)[1]
    assert (row["action"], row["job"]) == ("accept", 2) and row["actor"] == jobs(d)[1]["reviewed_by"]
    sent = {pydicom.dcmread(path).Modality: pydicom.dcmread(path) for path in (tmp_path / "out").iterdir()}
    assert sent["SEG"].ContentCreatorName == PERSON and voxels(sent["SEG"]) == after["voxels"]
    assert sent["SEG"].SegmentSequence[0].SegmentAlgorithmType == "SEMIAUTOMATIC"
    assert sent["RTSTRUCT"].OperatorsName == PERSON
    assert sent["SEG"].SOPInstanceUID not in (old.SOPInstanceUID, edited.SOPInstanceUID)
    # It must have the voxels that the person left.
    mine, theirs = (highdicom.seg.segread(save(ds, tmp_path / "x.dcm")) for ds in (sent["SEG"], edited))
    planes = {tuple(f.PlanePositionSequence[0].ImagePositionPatient): theirs.pixel_array.reshape(-1, 32, 32)[i]
              for i, f in enumerate(theirs.PerFrameFunctionalGroupsSequence)}
    for i, frame in enumerate(mine.PerFrameFunctionalGroupsSequence):
        place = tuple(frame.PlanePositionSequence[0].ImagePositionPatient)
        assert (mine.pixel_array.reshape(-1, 32, 32)[i] == planes[place]).all()
    # The result that comes back is no correction of itself.
    assert send(d.port, sent["SEG"]) == [0]
    (refusal,) = refusals(d)
    assert refusal["detail"].startswith("CORRECTION_UNCHANGED") and len(jobs(d)) == 2
    # A correction after the decision must be refused.
    assert send(d.port, cut(old, frames=0.5)[0]) == [0]
    assert refusals(d)[1]["detail"].startswith("CORRECTION_LATE") and len(jobs(d)) == 2


def test_a_rejected_correction_returns_to_the_result(site):
    d = site.daemon
    assert send(d.port, cut(result(d))[0]) == [0]
    wait_job(d, 2)
    d.ctl("reject", "2", "worse")
    assert [(row["job"], row["state"]) for row in jobs(d)] == [(1, "REVIEW"), (2, "REJECTED")]
    assert [row["job"] for row in under_review(d)] == [1] and states(d) == []
    # A second correction of it by another person; then a third one corrects the second.
    assert send(d.port, cut(result(d), "Roe^Richard", frames=0.5)[0]) == [0]
    assert (wait_job(d, 3)["corrects"], jobs(d)[2]["corrected_by"]) == (1, "Roe^Richard")
    assert send(d.port, cut(result(d, 3), frames=0.75)[0]) == [0]
    assert wait_job(d, 4)["corrects"] == 3
    assert "job 4 measures a correction of job 3" in d.ctl("accept", "3", check=False).stderr
    d.ctl("reject", "4", "no")
    d.ctl("accept", "3")
    assert [(row["job"], row["state"]) for row in jobs(d)] == [(1, "REJECTED"), (2, "REJECTED"), (3, "DONE"), (4, "REJECTED")]
    assert {row["job"] for row in d.query("SELECT job FROM v_deliveries")} == {3}


@pytest.mark.parametrize("kind", ["LABELMAP", "BINARY"])
def test_a_segmentation_by_another_program(site, files, kind):
    """highdicom writes it from images; it names neither Noctule nor its result."""
    d = site.daemon
    mask = np.zeros((len(files), 32, 32), np.uint8)
    mask[1:4, 10:20, 8:13] = 1  # 3 x 10 x 5 voxels
    assert send(d.port, segmentation(files, "Brain", kind=kind, mask=mask)) == [0]
    assert wait_job(d, 2)["corrects"] == 1
    assert segment(d, 2)["voxels"] == 150
    report = result(d, 2)
    assert voxels(report) == 150 and report.SegmentSequence[0].SegmentAlgorithmType == "MANUAL"


def test_a_structure_set(site, files):
    """The contour encloses the pixel centres of a square of 8 x 8 pixels on each of 6 slices."""
    d = site.daemon
    images = sorted((pydicom.dcmread(path) for path in files), key=lambda image: float(image.ImagePositionPatient[2]))
    dy, dx = map(float, images[0].PixelSpacing)
    drawn = structure_set([image.filename for image in images], roi="Brain")
    drawn.OperatorsName = PERSON
    for image, contour in zip(images, drawn.ROIContourSequence[0].ContourSequence):
        x, y, z = map(float, image.ImagePositionPatient)
        corners = [(9.5, 11.5), (17.5, 11.5), (17.5, 19.5), (9.5, 19.5)]  # columns 10 to 17, rows 12 to 19
        contour.ContourData = [f"{value:.4f}" for a, b in corners for value in (x + a * dx, y + b * dy, z)]
    assert send(d.port, drawn) == [0]
    assert wait_job(d, 2)["corrected_by"] == PERSON
    assert segment(d, 2)["voxels"] == 8 * 8 * len(images)
    d.ctl("accept", "2")
    wait_states(d, ("OUT", "SENT"), ("OUT", "SENT"))


def test_by_the_inbox_while_the_service_is_stopped(site):
    d = site.daemon
    edited, removed = cut(result(d))
    before = segment(d, 1)["voxels"]
    d.stop()
    save(edited, d.inbox / "edited.dcm")
    d.start()
    wait_job(d, 2)
    assert segment(d, 2)["voxels"] == before - removed
    (row,) = audit(d)
    assert (row["action"], row["actor"], row["how"], row["role"]) == ("correct", str(d.inbox), "inbox", "sender")
    d.kill_all()  # the decision is still to be made
    d.start()
    assert wait_job(d, 2)["corrects"] == 1 and len(jobs(d)) == 2 and states(d) == []


def test_an_emptied_mask(site):
    """No voxel is left: the correction has no results, and its acceptance ends the job as EMPTY."""
    d = site.daemon
    old = result(d)
    assert send(d.port, cut(old, frames=int(old.NumberOfFrames))[0]) == [0]
    wait_job(d, 2)
    assert segment(d, 2)["voxels"] == 0 and not d.query("SELECT 1 FROM v_results WHERE job = 2")
    d.ctl("accept", "2")
    assert [(row["job"], row["state"]) for row in jobs(d)] == [(1, "REJECTED"), (2, "EMPTY")] and states(d) == []


def test_a_pending_decision_is_dropped(site):
    """Rita accepted the old result, and can undo it for 600 seconds. The correction comes first: no result must be delivered."""
    d = site.daemon
    assert site.post("rita", action="accept", subject="job 1").status == 200
    assert under_review(d)[0]["decision"] == "accept"
    assert send(d.port, cut(result(d))[0]) == [0]
    wait_job(d, 2)
    assert [row["decision"] for row in under_review(d)] == ["", ""] and states(d) == []
    (event,) = d.query("SELECT detail FROM v_events WHERE kind = 'DECISION_UNDONE'")
    assert "a corrected mask arrived" in event["detail"]
    answer = site.post("rita", action="accept", subject="job 2")
    assert answer.status == 200 and states(d) == []
    assert [(row["action"], row["job"], row["actor"]) for row in audit(d) if row["role"] != "sender"] == [("accept", 1, "rita"), ("accept", 2, "rita")]


@pytest.mark.parametrize("point", POINTS[1:3])
def test_killed_while_it_arrives(site, tmp_path, point):
    """An acknowledged correction is measured once, wherever a process was killed."""
    d = site.daemon
    edited, removed = cut(result(d))
    before = segment(d, 1)["voxels"]
    d.stop()
    d.environment.update({"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(tmp_path / "crashed")})
    d.start()

    def acknowledged():
        if d.process.poll() is not None:
            d.start()
        with contextlib.suppress(AssertionError, RuntimeError, OSError, AttributeError):
            return send(d.port, edited) == [0]

    wait_for(acknowledged, 60, "the acknowledgement")
    assert (tmp_path / "crashed").exists()
    wait_job(d, 2)
    assert segment(d, 2)["voxels"] == before - removed and len(jobs(d)) == 2 and states(d) == []


SECOND = """{ label = "Block"; method = "range"; range = [ 0.0, 80.0 ]; within = [ "Brain" ];
              type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } );
    texture = { first_order = true; };"""


def features(d, job):
    return {(row["label"], row["name"]): row["value"] for row in d.query(
        f"SELECT label, name, value FROM v_features WHERE job = {job}")}


def test_other_segments_are_computed_again_within_the_corrected_one(daemon, tmp_path, files):
    """A block of 3 x 10 x 5 voxels takes the place of Brain. Block, which lies within Brain, is computed again."""
    d = daemon(quiet=600.0, dicom=PEERS)
    expecting(d, f'quantities = [ "diameters" ]; {BROKEN}')
    text = d.config.read_text()
    assert text.count('meaning = "Brain"; }; } );') == 1
    d.config.write_text(text.replace('meaning = "Brain"; }; } );', f'meaning = "Brain"; }}; }},\n{SECOND}'))
    d.start()
    drop(files, d.inbox)
    wait_review(d)
    mask = np.zeros((len(files), 32, 32), np.uint8)
    mask[1:4, 10:20, 8:13] = 1
    assert send(d.port, segmentation(files, "Brain", mask=mask)) == [0]
    wait_job(d, 2)
    images = sorted((pydicom.dcmread(path) for path in files), key=lambda image: float(image.ImagePositionPatient[2]))
    values = np.array([image.pixel_array * float(image.RescaleSlope) + float(image.RescaleIntercept) for image in images])
    inside = values[mask == 1]
    block = (values >= 0) & (values <= 80) & (mask == 1)
    assert (segment(d, 2)["voxels"], segment(d, 2)["mean"]) == (150, pytest.approx(inside.mean(), rel=1e-6))
    assert (segment(d, 2, "Block")["voxels"], segment(d, 2, "Block")["method"]) == (int(block.sum()), "range")
    d.ctl("accept", "2")
    told = features(d, 2)
    assert told["Brain", "mean"] == pytest.approx(inside.mean(), rel=1e-9)
    # From the middle of the upper edge of a corner pixel to that of the lower edge of the opposite one: 4 columns, 10 rows.
    rows, columns = map(float, images[0].PixelSpacing)
    assert told["Brain", "long_axis"] == pytest.approx(math.hypot(4 * columns, 10 * rows), rel=1e-9)


def add_pipeline(d):
    """Adds a copy of the pipeline, which the same series reach."""
    text = d.config.read_text()
    start, end = text.index('  { name = "head-ct"'), text.index("rules = (")
    other = text[start:end].replace('"head-ct"', '"other"')
    text = text[:start] + text[start:end].rstrip().removesuffix(");") + ",\n" + other + text[end:]
    d.config.write_text(text.replace('pipeline = "head-ct"; priority = 5; }', 'pipeline = "head-ct"; priority = 5; },\n'
                                     '{ match = { modality = "CT"; }; pipeline = "other"; }'))


def test_several_results_with_such_a_segment(daemon, tmp_path, files):
    """Two pipelines have a segment Brain: only the series of a result tells which one was corrected."""
    d = daemon(quiet=600.0, dicom=PEERS)
    expecting(d)
    add_pipeline(d)
    d.start()
    drop(files, d.inbox)
    wait_review(d, 2)
    assert send(d.port, segmentation(files, "Brain")) == [0]
    assert [row["detail"].split(":")[0] for row in refusals(d)] == ["CORRECTION_AMBIGUOUS"] * 2 and len(jobs(d)) == 2
    assert send(d.port, cut(result(d, 2))[0]) == [0]
    assert wait_job(d, 3)["corrects"] == 2
    # All results of a pipeline: the corrected one is left out.
    (pipeline,) = {row["pipeline"] for row in d.query("SELECT pipeline FROM v_jobs WHERE job = 2")}
    d.ctl("accept", "--pipeline", pipeline)
    assert [(row["job"], row["state"]) for row in jobs(d)] == [(1, "REVIEW"), (2, "REJECTED"), (3, "DONE")]


def test_refused_corrections_change_nothing(site, files, tmp_path):
    d = site.daemon
    old = result(d)
    # Without a person it is taken for the result itself. Unknown regions are no correction.
    assert send(d.port, cut(old, person="")[0]) == [UNSUPPORTED]
    assert send(d.port, segmentation(files, "Liver"), structure_set(files, roi="GTV")) == [0, 0]
    assert send(d.port, segmentation(small(tmp_path / "other", 2), "Brain")) == [0]  # of another series
    assert refusals(d) == [] and len(jobs(d)) == 1
    # In the series of the result, but with other names.
    renamed, _ = cut(old)
    renamed.SegmentSequence[0].SegmentLabel = "Skull"
    assert send(d.port, renamed) == [0]
    (row,) = refusals(d)
    assert row["job"] == 1 and row["detail"].startswith("CORRECTION_NO_SEGMENT") and len(jobs(d)) == 1
    # Another frame of reference, and another grid: the job fails by name, and the result stays under review.
    assert send(d.port, cut(old, FrameOfReferenceUID=generate_uid())[0]) == [0]
    assert wait_job(d, 2, "FAILED")["code"] == "OBJECT_OTHER_FRAME"
    moved, _ = cut(old)
    for frame in moved.PerFrameFunctionalGroupsSequence:
        place = frame.PlanePositionSequence[0]
        place.ImagePositionPatient = [float(value) + 5.3 for value in place.ImagePositionPatient]
    assert send(d.port, moved) == [0]
    assert wait_job(d, 3, "FAILED")["code"] == "SEG_GRID_DIFFERS"
    assert [(row["job"], row["decision"]) for row in under_review(d)] == [(1, "")] and states(d) == []
    d.ctl("accept", "1")
    wait_states(d, ("OUT", "SENT"), ("OUT", "SENT"))
    assert json.loads(d.ctl("review", "--json").stdout) == []


@pytest.mark.parametrize("size", [("--size", "44x38x14", "--spacing", "2.5,2.5,6", "--tilt", "-18.5"), ("--size", "48x40x12", "--spacing", "3,3,9", "--tilt", "12")])
def test_an_edited_segmentation_of_an_upright_grid(daemon, tmp_path, size):
    """A tilted stack, with its result on the upright grid: the copy that a person edited there is measured on that grid."""
    d = daemon(quiet=600.0, dicom=PEERS, pipeline_extra='seg_grid = "upright"; results = [ "seg" ];')
    expecting(d)
    d.start()
    drop(phantom(tmp_path / "ct", *size), d.inbox)
    wait_review(d)
    old = result(d)
    before = segment(d, 1)["voxels"]
    assert before == voxels(old)
    edited, removed = cut(old, frames=4)
    assert removed > 0
    # highdicom reads both as volumes of one grid.
    volumes = [highdicom.seg.segread(save(ds, tmp_path / f"{i}.dcm")).get_volume() for i, ds in enumerate((old, edited))]
    assert np.array_equal(volumes[0].affine, volumes[1].affine)
    assert send(d.port, edited) == [0]
    wait_job(d, 2)
    assert (segment(d, 2)["voxels"], segment(d, 2)["method"]) == (before - removed, "object")
    new = highdicom.seg.segread(save(result(d, 2), tmp_path / "new.dcm")).get_volume()
    full = lambda volume: {tuple(np.round(volume.map_indices_to_reference(index[None, :3])[0], 3))
                           for index in np.argwhere(volume.array.squeeze() > 0)}
    assert full(new) == full(volumes[1]) and len(full(new)) == before - removed
    # A grid that is neither the slices nor the upright grid is refused as before.
    moved, _ = cut(old, frames=2)
    for frame in moved.PerFrameFunctionalGroupsSequence:
        place = frame.PlanePositionSequence[0]
        place.ImagePositionPatient = [float(value) + 5.3 for value in place.ImagePositionPatient]
    d.ctl("reject", "2", "no")
    assert send(d.port, moved) == [0]
    assert wait_job(d, 3, "FAILED")["code"] == "SEG_GRID_DIFFERS"


def test_measured_in_slurm(daemon, cluster, tmp_path, files):  # noqa: F811
    """A node of Slurm measures a correction as a local worker does: the same bytes and values."""
    site = cluster(nodes=1)
    local = daemon(quiet=600.0, dicom=PEERS)
    remote = on_slurm(daemon, site, quiet=600.0, dicom=PEERS)
    found = []
    edited = None
    for d in (local, remote):
        expecting(d, f'quantities = [ "diameters" ]; {BROKEN}')
        d.start()
        drop(files, d.inbox)
        wait_review(d)
        edited = edited or cut(result(d))
        assert send(d.port, edited[0]) == [0]
        job = wait_job(d, 2)
        assert (job["corrects"], job["corrected_by"]) == (1, PERSON)
        d.ctl("accept", "2")
        found.append((segment(d, 2)["voxels"], features(d, 2), {path.name: path.read_bytes() for path in (d.root / "outbox" / "2").glob("*.dcm")}))
    assert found[0] == found[1] and set(found[0][2]) and found[0][1]
    assert found[0][0] == segment(local, 1)["voxels"] - edited[1]
    assert [row["executor"] for row in remote.jobs()] == ["slurm", "slurm"]

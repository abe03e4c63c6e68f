"""SEG objects of other software as job input, from highdicom's file through DCMTK's senders to the result.
test_objects.py has the same for RTSTRUCT."""

import copy
import subprocess

import pydicom
import pytest
from conftest import phantom, storescu, wait_for
from objects import save, segmentation
from test_objects import gtv, naming, objects

WANTED = 'kind = "seg"; roi = "Liver*";'


@pytest.fixture
def files(tmp_path):
    return phantom(tmp_path / "images", "--size", "32x32x6")


def dcmsend(d, *objects, calling="STORESCU", sent=True):
    """Sends them as files. Checks that all were stored, or were refused, as given."""
    paths = [save(ds, d.folder / f"{ds.SOPInstanceUID}.dcm") for ds in objects]
    done = subprocess.run(["dcmsend", "-v", "-aet", calling, "-aec", "NOCTULE", "127.0.0.1", str(d.port), *paths],
                          text=True, capture_output=True)
    assert (f"with status SUCCESS  : {len(paths)}" in done.stdout + done.stderr) == sent, done.stdout + done.stderr


def mask(d, job):
    """Returns the frames of the result from the feet to the head. Frames without a voxel are absent."""
    (row,) = d.query("SELECT path FROM v_results WHERE job = ? AND kind = 'seg'", job["job"])
    return pydicom.dcmread(d.root / row["path"]).pixel_array


@pytest.mark.parametrize("kind", ["BINARY", "FRACTIONAL", "LABELMAP"])
@pytest.mark.parametrize("first", ["the object", "the series"])
def test_a_job_waits_for_its_segmentation(daemon, files, tmp_path, first, kind):
    d = naming(daemon, tmp_path, wanted=WANTED)
    seg = segmentation(files, kind=kind)
    if first == "the object":
        dcmsend(d, seg)
    storescu(d.port, *files)
    if first == "the series":
        job = gtv(d, "DELAYED")
        assert job["code"] == "OBJECT_WAITING" and "segmentation (seg)" in job["message"], dict(job)
        d.kill_all()
        d.start()
        # of another patient
        dcmsend(d, segmentation(phantom(tmp_path / "other", "--size", "32x32x6", "--seed", "9")))
        assert gtv(d, "DELAYED")["job"] == job["job"]
        dcmsend(d, seg)
    job = gtv(d, "DONE", "FAILED")
    assert (job["state"], job["revision"]) == ("DONE", 1), job["message"]
    assert (mask(d, job) == (seg.pixel_array > 0)).all() and mask(d, job).sum() == 6 * 16 * 16
    assert [row["kind"] for row in objects(d, f"series_uid = '{job['series_uid']}'")] == ["seg"]


def test_each_segment_has_its_rows(daemon, files, tmp_path):
    """Two segments and an empty one, with one configuration that names none of them."""
    wanted = 'kind = "seg"; roi = "*"; each = true;'
    d = naming(daemon, tmp_path, wanted=wanted, measured="texture = { first_order = true; };")
    seg = segmentation(files)
    names = ["Liver", "Spleen", "Stomach"]
    for number, name in enumerate(names[1:], start=2):
        item = copy.deepcopy(seg.SegmentSequence[0])
        item.SegmentNumber, item.SegmentLabel = number, name
        seg.SegmentSequence.append(item)
    del seg.SharedFunctionalGroupsSequence[0].SegmentIdentificationSequence
    for place, frame in enumerate(seg.PerFrameFunctionalGroupsSequence):
        identified = pydicom.Dataset()
        identified.ReferencedSegmentNumber = 1 if place < 4 else 2
        frame.SegmentIdentificationSequence = [identified]
    dcmsend(d, seg)
    storescu(d.port, *files)
    job = gtv(d, "DONE", "FAILED")
    assert job["state"] == "DONE" and job["note"].startswith("empty segments (1 of 3; job.json has the reasons): Stomach"), dict(job)
    rows = {(row["segment"], row["label"]): (row["value"], row["reason"])
            for row in d.query("SELECT * FROM v_features WHERE job = ? AND name = 'mean'", job["job"])}
    assert sorted(rows) == list(enumerate(names, start=1))
    assert [reason for _, (_, reason) in sorted(rows.items())] == ["", "", "EMPTY_REGION"]


def test_a_revised_one_makes_a_new_revision(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted=WANTED)
    first = segmentation(files)
    dcmsend(d, first)
    storescu(d.port, *files)
    before = gtv(d, "DONE")
    dcmsend(d, first, segmentation(files, made="20250101"))  # the same object, and an older one: no effect
    dcmsend(d, segmentation(files[:3], made="20260301", series=first.SeriesInstanceUID))
    after = wait_for(lambda: (job := gtv(d, "DONE", "FAILED"))["revision"] == 2 and job, 60, "the new job")
    assert (after["state"], after["revision"]) == ("DONE", 2), after["message"]
    assert mask(d, after).shape[0] == 3 and mask(d, before).shape[0] == 6


def test_a_missing_segmentation_fails_the_job(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted=WANTED, patience=0.5)
    storescu(d.port, *files)
    job = gtv(d, "FAILED")
    assert job["code"] == "OBJECT_MISSING" and "segmentation (seg)" in job["message"], dict(job)
    dcmsend(d, segmentation(files))
    assert gtv(d, "DONE")["revision"] == 2


def test_one_from_another_title(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted=WANTED, sender='from_ae = "TPS";')
    storescu(d.port, *files)
    assert "segmentation (seg) from TPS" in gtv(d, "DELAYED")["message"]
    dcmsend(d, segmentation(files))
    assert len(objects(d)) == 1 and gtv(d, "DELAYED")
    mine = segmentation(files[:4])
    dcmsend(d, mine, calling="TPS")
    job = gtv(d, "DONE", "FAILED")
    assert job["state"] == "DONE" and (mask(d, job) == mine.pixel_array).all()


def test_submit_reports_the_awaited_object(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted=WANTED, rule="head-ct")
    storescu(d.port, *files)
    (job,) = d.wait_jobs()
    assert job["pipeline"] == "head-ct"
    uid, words = job["series_uid"], "OBJECT_WAITING: It waits for a segmentation (seg) drawn on the series."
    for option in ("--dry-run", "--force"):
        assert words in d.ctl("submit", "--pipeline", "gtv", option, uid).stdout
    assert gtv(d, "DELAYED")["message"] in words
    assert "already (gtv)" in d.ctl("submit", "--pipeline", "gtv", uid).stdout
    assert "Waits       1 job for annotation objects of the series" in d.ctl("status").stdout


def test_submit_refuses_jobs_that_wait_for_own_results(daemon, files, tmp_path):
    """A pipeline for objects that Noctule wrote, for a series without any other object."""
    d = naming(daemon, tmp_path, wanted=f"{WANTED} own = true;", rule="head-ct")
    storescu(d.port, *files)
    (job,) = d.wait_jobs()
    for option in ("--dry-run", "--force"):
        refused = d.ctl("submit", "--pipeline", "gtv", option, job["series_uid"], check=False)
        assert refused.returncode == 1 and "OBJECT_MISSING: pipeline gtv has object = { own = true; }" in refused.stdout
        assert "noctule run --object" in refused.stdout
    assert len(d.jobs()) == 1
    dcmsend(d, segmentation(files))
    assert "is new (gtv)\n" in d.ctl("submit", "--pipeline", "gtv", job["series_uid"]).stdout
    assert gtv(d, "DONE", "FAILED")["state"] == "DONE"


def disguised(seg):
    """A SEG from a system that writes its own equipment into forwarded objects."""
    seg.Manufacturer, seg.ManufacturerModelName, seg.SoftwareVersions = "Router", "Box", "1"
    return seg


def test_own_results_are_no_input(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted='kind = "seg"; roi = "*";')
    dcmsend(d, segmentation(files))
    storescu(d.port, *files)
    job = gtv(d, "DONE")
    (row,) = d.query("SELECT path FROM v_results WHERE job = ? AND kind = 'seg'", job["job"])
    ours = pydicom.dcmread(d.root / row["path"])
    dcmsend(d, ours, sent=False)
    assert len(objects(d)) == 1
    dcmsend(d, disguised(ours))  # its row is committed together with the decision
    assert [bool(row["own"]) for row in objects(d)] == [False, True]
    (series,) = d.query("SELECT * FROM v_series")
    assert (series["state"], series["revision"]) == ("SETTLED", 1)
    d.ctl("submit", "--pipeline", "gtv", "--force", job["series_uid"])
    (again,) = wait_for(lambda: [row for row in d.jobs() if row["job"] > job["job"] and row["pipeline"] == "gtv" and row["ended_at"]],
                        60, "its end")
    assert again["state"] == "DONE", again["message"]  # with both objects the code would be OBJECT_AMBIGUOUS

"""Changes since an earlier study (`changes`): volumes and quantities of drawn phantoms by hand, in the database, the tables, the
report, the page of the job and the API; reasons where no change can be measured."""

import json
import subprocess

import highdicom
import numpy as np
import pydicom
import pytest
from conftest import BIN, drop, phantom, wait_for
from test_objects_sr import nodule
from test_page import Site, settings_of
from test_sr import children, one
from texture_runs import TYPE, features, measurements_of, series

SPACING = (2.0, 2.0, 3.0)
ML = 2.0 * 2.0 * 3.0 / 1000
PIPELINE = """pipelines = ( {{ name = "p"; changes = true; min_slices = 3; results = [ "seg", "sr" ];
    segments = ( {{ label = "Part"; method = "range"; range = [ 0.0, 5000.0 ]; quantities = [ "diameters" ]; {expect} TYPE }},
                {{ label = "None"; method = "range"; range = [ 4000.0, 5000.0 ]; TYPE }} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "p"; }} );"""


def site_of(daemon, folder, expect=""):
    pipeline = PIPELINE.replace("{expect}", expect)
    return Site(daemon, settings=settings_of(folder / "daemon0" / "root", pipeline).replace("TYPE", TYPE)).start()


def study(folder, name, date, voxels, patient="P1", uid="", **attributes):
    """A row of voxels of 100 HU: its longest diameter is 2 mm times their number."""
    values = np.full((3, 20, 40), -500)
    values[1, 5, 3:3 + voxels] = 100
    return series(folder / name, (values + 1024).astype(np.uint16), SPACING, 1, -1024, PatientID=patient, StudyDate=date,
                  StudyInstanceUID=uid or f"1.2.826.0.1.3680043.10.1.{date}.{len(patient)}", **attributes)


def process(d, folder, state="DONE"):
    """Drops a study, and returns its job."""
    count = len(d.jobs())
    files = sorted(folder.glob("*.dcm"))
    drop(files, d.inbox / folder.name)
    d.declare_complete(files)
    wait_for(lambda: len(d.jobs()) == count + 1 and d.jobs()[-1]["state"] == state, 120, "the job")
    return d.jobs()[-1]["job"]


def changes(d, job, label="Part"):
    return {row["name"]: row["value"] if row["reason"] == "" else row["reason"] for row in d.query(
        "SELECT name, value, reason FROM v_features WHERE job = ? AND family = 'change' AND label = ?", job, label)}


REASONS = ("days_since_prior", "volume_change", "volume_relative_change", "long_axis_change", "long_axis_relative_change",
           "short_axis_change", "short_axis_relative_change")


def test_changes_by_hand(daemon, tmp_path):
    site = site_of(daemon, tmp_path)
    d = site.daemon
    other = process(d, study(tmp_path, "other", "20240301", 30, patient="P22"))
    first = process(d, study(tmp_path, "first", "20240228", 10))
    second = process(d, study(tmp_path, "second", "20250301", 15))  # 2024 is a leap year: 367 days
    assert changes(d, first) == changes(d, other) == dict.fromkeys(REASONS, "NO_PRIOR")
    expected = {"days_since_prior": 367.0, "volume_change": 5 * ML, "volume_relative_change": 50.0,
                "long_axis_change": 10.0, "long_axis_relative_change": 50.0,
                "short_axis_change": 0.0, "short_axis_relative_change": 0.0}
    assert changes(d, second) == {name: pytest.approx(value, rel=1e-12, abs=1e-12) for name, value in expected.items()}
    # 0 ml before and now: the change is 0, and relative to 0 it is not defined
    assert changes(d, second, "None") == {"days_since_prior": 367.0, "volume_change": 0.0,
                                          "volume_relative_change": "DIVISION_BY_ZERO"}
    (row,) = d.query("SELECT prior_job, prior_study_date, volume_change_ml, volume_change_percent FROM v_segments "
                     "WHERE job = ? AND label = 'Part'", second)
    assert tuple(row) == (first, "20240228", pytest.approx(5 * ML), pytest.approx(50.0))
    assert d.query("SELECT prior_job FROM v_jobs WHERE job = ?", first)[0]["prior_job"] is None

    output = d.root / "outbox" / str(second)
    found = {f["name"]: f["value"] for f in features(output) if f["family"] == "change" and f["label"] == "Part"}
    assert found == {name: pytest.approx(value, rel=1e-12, abs=1e-12) for name, value in expected.items()}
    report = pydicom.dcmread(output / "sr.dcm")
    group, _ = children(one(report, "CONTAINER", "126010"), "CONTAINER", "125007")
    told = {concept[0]: value for concept, value, unit, settings in measurements_of(group)}
    assert told["d_VOLUME"] == pytest.approx(5 * ML, abs=1e-9) and told["rd_LONG_AXIS"] == pytest.approx(50.0)
    assert b"114007" in (d.root / "outbox" / str(first) / "sr.dcm").read_bytes()

    page = site.text(f"job?id={second}")
    assert f'<a href="job?id={first}"><bdi>{first}</bdi></a>' in page and "2024-02-28" in page and "+0.06" in page and "Relative change of Volume" in page
    assert "+0.00" not in site.text(f"job?id={first}") and "+0.00" not in d.ctl("show", str(first)).stdout  # not measured
    answer = json.loads(site.get(f"api/v1/jobs/{second}/segments")[1])["items"]
    assert [row["prior_job"] for row in answer] == [first, first]


def test_which_study_is_the_earlier_one(daemon, tmp_path):
    """Neither one of the same day, nor a later one, nor one without a valid date; of two series the one of the same name; of two
    revisions the one that counts."""
    site = site_of(daemon, tmp_path)
    d = site.daemon
    process(d, study(tmp_path, "late", "20260101", 9))
    process(d, study(tmp_path, "odd", "2024", 9))
    process(d, study(tmp_path, "oldest", "20200101", 9))
    named = process(d, study(tmp_path, "named", "20240101", 12, SeriesDescription="Soft"))
    process(d, study(tmp_path, "sharp", "20240101", 9, SeriesDescription="Sharp"))
    again = d.ctl("retry", "--force", str(named))
    wait_for(lambda: d.jobs()[-1]["job"] > named + 1 and d.jobs()[-1]["state"] == "DONE", 120, again.stdout)
    current = d.jobs()[-1]["job"]
    process(d, study(tmp_path, "same", "20250101", 9, uid="1.2.3.4"))
    now = process(d, study(tmp_path, "now", "20250101", 15, SeriesDescription="Soft"))
    assert d.query("SELECT prior_job FROM v_jobs WHERE job = ?", now)[0]["prior_job"] == current
    assert changes(d, now)["volume_relative_change"] == pytest.approx(25.0) and changes(d, now)["days_since_prior"] == 366


def test_an_id_of_two_issuers_is_of_two_patients(daemon, tmp_path):
    """A study without an issuer may be of either."""
    site = site_of(daemon, tmp_path)
    d = site.daemon
    here = process(d, study(tmp_path, "here", "20240101", 10, IssuerOfPatientID="HERE"))
    there = process(d, study(tmp_path, "there", "20240601", 12, uid="1.2.3.5", IssuerOfPatientID="THERE"))
    assert changes(d, there) == dict.fromkeys(REASONS, "NO_PRIOR")
    now = process(d, study(tmp_path, "now", "20250101", 15, IssuerOfPatientID="HERE"))
    unknown = process(d, study(tmp_path, "unknown", "20250201", 18))
    assert [d.query("SELECT prior_job FROM v_jobs WHERE job = ?", job)[0][0] for job in (now, unknown)] == [here, now]
    assert changes(d, now)["volume_relative_change"] == pytest.approx(50.0)


def test_a_result_under_review_is_no_earlier_one(daemon, tmp_path):
    site = site_of(daemon, tmp_path, 'expect = {{ volume_ml = [ 0.15, 1.0 ]; }};')
    d = site.daemon
    first = process(d, study(tmp_path, "first", "20240101", 10), "REVIEW")
    second = process(d, study(tmp_path, "second", "20250101", 15))
    assert changes(d, second)["volume_change"] == "NO_PRIOR"
    d.ctl("accept", str(first))
    d.ctl("retry", "--force", str(second))
    wait_for(lambda: len(d.jobs()) == 3 and d.jobs()[-1]["state"] == "DONE", 120, "the repeated job")
    assert changes(d, d.jobs()[-1]["job"])["volume_change"] == pytest.approx(5 * ML)


def test_outside_the_queue_there_is_no_earlier_study(tmp_path):
    (tmp_path / "p.conf").write_text(f'root = "{tmp_path}/root"; ' + PIPELINE.format(expect="").replace("TYPE", TYPE))
    done = subprocess.run([BIN / "noctule", "--config", tmp_path / "p.conf", "run", "--pipeline", "p", "--output", tmp_path / "out",
                           study(tmp_path, "in", "20240101", 10)], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert {f["reason"] for f in features(tmp_path / "out") if f["family"] == "change"} == {"NO_PRIOR"}


def test_a_change_needs_the_same_settings(daemon, tmp_path):
    site = site_of(daemon, tmp_path)
    d = site.daemon
    first = process(d, study(tmp_path, "first", "20240228", 10))
    assert d.stop() == 0
    d.config.write_text(d.config.read_text().replace("range = [ 0.0,", "range = [ 50.0,"))
    d.start()
    second = process(d, study(tmp_path, "second", "20250301", 15))
    assert changes(d, second) == {**dict.fromkeys(REASONS, "PRIOR_DIFFERS"), "days_since_prior": 367.0}
    assert d.query("SELECT prior_job FROM v_jobs WHERE job = ?", second)[0]["prior_job"] == first


def test_results_from_before_the_option_can_be_compared(daemon, tmp_path):
    """The option changes no segment and no quantity."""
    site = site_of(daemon, tmp_path)
    d = site.daemon
    text = d.config.read_text()
    assert d.stop() == 0
    d.config.write_text(text.replace("changes = true;", "changes = false;"))
    d.start()
    first = process(d, study(tmp_path, "first", "20240228", 10))
    assert changes(d, first) == {} and d.stop() == 0
    d.config.write_text(text)
    d.start()
    second = process(d, study(tmp_path, "second", "20250301", 15))
    assert changes(d, second)["volume_change"] == pytest.approx(5 * ML)



# ------------------------------------------------------------------------------- Tracking UIDs --

DRAWN = """{{ name = "NAME"; changes = true; min_slices = 3; results = [ "seg" ];
    segments = ( {{ label = "LABEL"; method = "object"; object = {{ kind = "seg"; roi = "Lesion"; }}; TYPE }} ); }}"""
TRACKED = ("pipelines = ( " + ", ".join(DRAWN.replace("NAME", name).replace("LABEL", label)
                                        for name, label in (("p", "Lesion"), ("q", "Lesion"), ("r", "Node"))) + " );\n"
           "rules = ( " + ", ".join('{{ match = {{ description = "by NAME"; }}; pipeline = "NAME"; }}'.replace("NAME", name)
                                    for name in "pqr") + " );")


def drawn(site, folder, name, pipeline, date, voxels, uid):
    """A study with a SEG by highdicom: a row of voxels with this Tracking UID. Returns its job, and the ml of a voxel."""
    d = site.daemon
    count = len(d.jobs())
    files = sorted(phantom(folder / name, "--size", "32x32x6", "--seed", str(len(name))))
    images = []
    for path in files:
        image = pydicom.dcmread(path)
        image.PatientID, image.StudyDate, image.SeriesDescription = "P1", date, f"by {pipeline}"
        image.StudyInstanceUID, image.SeriesInstanceUID = f"1.2.826.0.1.{date}", f"1.2.826.0.1.{date}.1"
        image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = f"1.2.826.0.1.{date}.1.{image.InstanceNumber}"
        image.save_as(path)
        images.append(image)
    images.sort(key=lambda image: float(image.ImagePositionPatient[2]))
    pixels = np.zeros((len(images), 32, 32), np.uint8)
    pixels[2, 10, 3:3 + voxels] = 1
    code = highdicom.sr.CodedConcept
    finding = highdicom.seg.SegmentDescription(1, "Lesion", code("49755003", "SCT", "Morphologically Altered Structure"),
                                               code("4147007", "SCT", "Mass"), "MANUAL", tracking_id="lesion", tracking_uid=uid)
    seg = folder / f"{name}.seg.dcm"
    highdicom.seg.Segmentation(images, pixels, "BINARY", [finding], f"1.2.826.0.1.{date}.2", 2, f"1.2.826.0.1.{date}.2.1", 1, "Someone",
                               "Else", "1", "7").save_as(seg)
    drop(files, d.inbox / name)
    drop([seg], d.inbox / name)
    wait_for(lambda: len(d.jobs()) == count + 1 and d.jobs()[-1]["state"] == "DONE", 120, "the job")
    step = float(images[1].ImagePositionPatient[2]) - float(images[0].ImagePositionPatient[2])
    return d.jobs()[-1]["job"], np.prod(images[0].PixelSpacing) * step / 1000


def test_a_finding_is_followed_by_its_tracking_uid(daemon, tmp_path):
    site = Site(daemon, settings=settings_of(tmp_path / "daemon0" / "root", TRACKED).replace("TYPE", TYPE)).start()
    d = site.daemon
    first, _ = drawn(site, tmp_path, "a", "p", "20230101", 10, "1.2.66.1")
    assert changes(d, first, "Lesion")["volume_change"] == "NO_PRIOR"
    # The same name and pipeline, and another finding: there is no change of it.
    second, _ = drawn(site, tmp_path, "bb", "p", "20240101", 5, "1.2.66.2")
    assert changes(d, second, "Lesion") == {"days_since_prior": 365.0, "volume_change": "PRIOR_LACKS_IT",
                                            "volume_relative_change": "PRIOR_LACKS_IT"}
    # The same finding by a pipeline of another name with the same settings; its latest study is not the patient's latest.
    third, voxel = drawn(site, tmp_path, "ccc", "q", "20250101", 15, "1.2.66.1")
    rows = {row["job"]: row for row in d.query("SELECT * FROM v_segments")}
    assert changes(d, third, "Lesion") == {"days_since_prior": 731.0, "volume_change": pytest.approx(5 * voxel, rel=1e-5),
                                           "volume_relative_change": pytest.approx(50.0)}
    assert (rows[third]["prior_job"], rows[third]["prior_study_date"]) == (first, "20230101")
    assert [rows[job]["tracking_uid"] for job in (first, second, third)] == ["1.2.66.1", "1.2.66.2", "1.2.66.1"]
    # Other settings are not compared.
    fourth, _ = drawn(site, tmp_path, "dddd", "r", "20260101", 20, "1.2.66.1")
    assert changes(d, fourth, "Node") == {"days_since_prior": 365.0, "volume_change": "PRIOR_DIFFERS",
                                          "volume_relative_change": "PRIOR_DIFFERS"}
    assert d.query("SELECT prior_job FROM v_segments WHERE job = ?", fourth)[0]["prior_job"] == third
    page = site.text(f"job?id={third}")
    assert "Relative change of Volume" in page


REPORTED = """pipelines = ( {{ name = "p"; changes = true; min_slices = 3; results = [ "seg", "sr" ];
    segments = ( {{ label = "Lesion"; method = "object"; object = {{ kind = "sr"; roi = "Nodule*"; }}; TYPE }} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "p"; }} );"""


def reported(site, folder, name, date, side, uid):
    """A study with a report by highdicom: a square of voxels with this Tracking UID, at a place of its own. Returns its job."""
    d = site.daemon
    count = len(d.jobs())
    files = sorted(phantom(folder / name, "--size", "32x32x6", "--seed", str(len(name))))
    for path in files:
        image = pydicom.dcmread(path)
        image.PatientID, image.StudyDate = "P1", date
        image.StudyInstanceUID, image.SeriesInstanceUID = f"1.2.826.0.1.{date}", f"1.2.826.0.1.{date}.1"
        image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = f"1.2.826.0.1.{date}.1.{image.InstanceNumber}"
        image.save_as(path)
    (folder / f"{name}.sr").mkdir()
    report = nodule(folder / f"{name}.sr", files, side, name=f"Nodule {name}")
    (item,) = tracking_uids(report)
    item.UID = uid
    report.save_as(folder / f"{name}.dcm")
    drop([*files, folder / f"{name}.dcm"], d.inbox / name)
    wait_for(lambda: len(d.jobs()) == count + 1 and d.jobs()[-1]["state"] == "DONE", 120, "the job")
    return d.jobs()[-1]["job"]


def tracking_uids(item):
    if "ConceptNameCodeSequence" in item and item.ConceptNameCodeSequence[0].CodeValue == "112040":
        yield item
    for child in item.get("ContentSequence", ()):
        yield from tracking_uids(child)


def test_a_finding_of_a_report_is_followed_by_its_tracking_uid(daemon, tmp_path):
    """The areas are squares of 5, 7 and 9 voxels per side."""
    site = Site(daemon, settings=settings_of(tmp_path / "daemon0" / "root", REPORTED).replace("TYPE", TYPE)).start()
    d = site.daemon
    first = reported(site, tmp_path, "a", "20230101", 5, "1.2.66.1")
    second = reported(site, tmp_path, "bb", "20240101", 7, "1.2.66.2")
    assert changes(d, second, "Lesion") == {"days_since_prior": 365.0, "volume_change": "PRIOR_LACKS_IT",
                                            "volume_relative_change": "PRIOR_LACKS_IT"}
    third = reported(site, tmp_path, "ccc", "20250101", 9, "1.2.66.1")
    found = changes(d, third, "Lesion")
    assert found["days_since_prior"] == 731.0 and found["volume_relative_change"] == pytest.approx(100 * (81 - 25) / 25)
    (row,) = d.query("SELECT prior_job, tracking_uid FROM v_segments WHERE job = ?", third)
    assert tuple(row) == (first, "1.2.66.1")
    report = pydicom.dcmread(d.root / "outbox" / str(third) / "sr.dcm")
    assert [item.UID for item in tracking_uids(report)] == ["1.2.66.1"]

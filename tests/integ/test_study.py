"""Rules with a condition on other series of the study (`study`): jobs wait for these with a reason, up to a time
limit."""

import json
import re

import pydicom
import pytest
from conftest import SETTINGS, drop, local_time, phantom, wait_for

RULES = """rules = ( {{ match = {{ modality = "CT"; description = "contrast";
    study = ( {{ modality = "CT"; description = "native"; }}, {{ modality = "MR"; }} ); }}; pipeline = "head-ct"; }} );
"""


@pytest.fixture
def started(daemon):
    def start(patience=600):
        d = daemon(quiet=600.0)
        text = SETTINGS.format(root=d.root, after="keep", quiet=600.0, attempts=3, pipeline_extra=f"patience_seconds = {patience};")
        d.config.write_text(text[:text.index("rules = (")] + RULES.format())
        return d.start()

    return start


def series(folder, description, study="1.2.3.4", seed=1, kind="ct-head"):
    files = phantom(folder, "--size", "32x32x6", "--seed", str(seed), *(() if kind == "ct-head" else ("--kind", kind)))
    for path in files:
        dataset = pydicom.dcmread(path)
        dataset.StudyInstanceUID, dataset.SeriesDescription = study, description
        dataset.save_as(path)
    return files


def wait_complete(d, count):
    return wait_for(lambda: len(d.query("SELECT 1 FROM v_series WHERE state = 'SETTLED'")) == count, 60, "the series")


def lacks(d, *what):
    """Returns, from explain, the series that the first job would wait for, and the notes on the series conditions of
    its rule."""
    told = json.loads(d.ctl("explain", "--json", *what).stdout)["series"][0]
    return told["jobs"][0]["waits_for_series"], [condition["note"] for condition in told["rules"][0]["conditions"][2:]]


def test_a_job_waits_for_each_required_series(started, tmp_path):
    d = started()
    drop(series(tmp_path / "a", "with contrast"), d.inbox / "a")
    (job,) = wait_for(d.jobs, 60, "the job")
    assert (job["state"], job["code"]) == ("DELAYED", "STUDY_WAITING")
    assert job["message"] == 'It waits for another series of the study: CT "native".' and job["not_before_at"]
    status = d.ctl("status").stdout
    assert "1 job for other series of the study, the first until " + local_time(job["not_before_at"]) in status
    # The job starts as soon as the other series is there, so the end of the wait is not printed as its start.
    shown = d.ctl("show", str(job["job"])).stdout
    assert f"waits_until               {local_time(job['not_before_at'])}\n" in shown and "not_before" not in shown
    explained = d.ctl("explain", job["series_uid"]).stdout
    assert "head-ct" in explained
    conditions = d.ctl("explain", "--json", job["series_uid"]).stdout
    assert 'waits for another series of the study: CT \\"native\\"' in conditions
    assert lacks(d, job["series_uid"]) == ('CT "native"', ["it is not there, and the job waits (STUDY_WAITING)"] * 2)
    # A series of another study does not count. After one of the same study, one is still missing.
    drop(series(tmp_path / "other", "native", study="1.2.3.5", seed=2), d.inbox / "other")
    wait_complete(d, 2)
    assert [job["message"] for job in d.jobs()] == ['It waits for another series of the study: CT "native".']
    drop(series(tmp_path / "b", "Native 5 mm", seed=3), d.inbox / "b")
    wait_complete(d, 3)
    wait_for(lambda: [job["message"] for job in d.jobs()] == ["It waits for another series of the study: MR."], 60, "the rest")
    wanted, notes = lacks(d, job["series_uid"])
    assert wanted == "MR" and notes[0].startswith("it is there: 2.25.") and notes[1].startswith("it is not there")
    assert "would wait for another series of the study: MR" in re.sub(r"\s+", " ", d.ctl("explain", job["series_uid"]).stdout)
    # For files, those given in the same command count, but not those of another study.
    assert lacks(d, tmp_path / "a", tmp_path / "b")[0] == "MR" and lacks(d, tmp_path / "a", tmp_path / "other")[0] == 'CT "native"'
    drop(series(tmp_path / "c", "T1", seed=4, kind="mr-brain"), d.inbox / "c")
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE" and job["message"] == ""
    kinds = [row["kind"] for row in d.query("SELECT kind FROM v_events WHERE job = ? ORDER BY event", job["job"])]
    assert kinds[:4] == ["JOB_ADDED", "JOB_WAITS", "JOB_OBJECT_CAME", "JOB_STARTED"]


def test_existing_series_cause_no_wait(started, tmp_path):
    d = started()
    drop(series(tmp_path / "b", "native", seed=3), d.inbox / "b")
    drop(series(tmp_path / "c", "T1", seed=4, kind="mr-brain"), d.inbox / "c")
    wait_complete(d, 2)
    assert d.jobs() == []
    drop(series(tmp_path / "a", "with contrast"), d.inbox / "a")
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    assert not d.query("SELECT 1 FROM v_events WHERE kind = 'JOB_WAITS'")


def test_series_that_never_arrive_are_reported(started, tmp_path):
    d = started(patience=1)
    drop(series(tmp_path / "a", "with contrast"), d.inbox / "a")
    (job,) = d.wait_jobs(states=("FAILED",))
    assert job["code"] == "STUDY_INCOMPLETE" and job["attempts"] == 0
    assert job["message"].startswith('It waits for another series of the study: CT "native". It did not come within patience_seconds')
    assert "STUDY_INCOMPLETE" in d.ctl("report", check=False).stdout
    d.ctl("retry", str(job["job"]))  # which does not wait
    wait_for(lambda: [job["state"] for job in d.jobs()] == ["DONE"], 60, "the job")

"""An unexpected result is held for review, then accepted or rejected, and not delivered before."""

import getpass
import json
import subprocess

import highdicom
import pydicom
import pytest
from conftest import BIN, drop, phantom, storescp, wait_for
from test_daemon import change, reload
from test_deliveries import destinations, states, to_archive, to_folder, wait_states
from test_sr import assert_dciodvfy_is_content, one
from test_status import check

# The segment of SETTINGS has 910 ml.
BEFORE = 'type = { code = "12738006"'
BROKEN = 'expect = { volume_ml = [ 1200.0, 1900.0 ]; touches = "none"; };'


def small(folder, seed=1):
    return phantom(folder, "--size", "32x32x6", "--seed", str(seed))


def expecting(d, expect=BROKEN):
    """Returns the same daemon with this expectation."""
    text = d.config.read_text()
    assert text.count(BEFORE) == 1
    d.config.write_text(text.replace(BEFORE, f"{expect} {BEFORE}"))
    return d


def under_review(d):
    return json.loads(d.ctl("review", "--json").stdout)


def wait_review(d, count=1):
    wait_for(lambda: len(under_review(d)) == count, 60, "the review")
    return under_review(d)


def test_no_result_is_delivered_before_acceptance(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        d = expecting(daemon(quiet=600.0, pipeline_extra='deliver = [ "PACS", "OUT" ];',
                             extra=destinations(to_archive(archive.port), to_folder(tmp_path / "out")))).start()
        assert d.ctl("review").stdout == "no job is under review\n"
        drop(small(tmp_path / "ct"), d.inbox)
        (row,) = wait_review(d)
        assert row["code"] == "EXPECTATION_BROKEN" and "expected 1200 to 1900 ml" in row["message"]
        seg = d.root / row["result_path"]
        before = seg.read_bytes()
        assert (d.root / row["preview_path"]).is_file() and seg.is_file()
        record = json.loads((seg.parent / "job.json").read_text())
        assert record["outcome"] == "REVIEW"
        volume = record["broken_expectations"][0]
        assert (volume["segment"], volume["expectation"], volume["allowed"]) == ("Brain", "volume_ml", [1200, 1900])
        assert volume["found"] == record["segments"][0]["millilitres"]
        assert volume["text"] in row["message"]
        # Output for an administrator.
        told = check(d, "WARNING")
        assert "1 job is under review and not delivered" in told and " jobs_review=1 " in told
        told = d.ctl("review").stdout
        assert told.startswith("Job 1, pipeline head-ct, since 20") and f"preview   {d.root}/outbox/1/preview.png" in told
        assert "found     Brain: volume " in told
        assert "Review      1 job is under review" in d.ctl("status").stdout
        assert [job["state"] for job in d.jobs()] == ["REVIEW"]
        # Neither a restart nor commands for other jobs change this.
        d.stop()
        d.start()
        assert "job 1 is REVIEW: noctule accept or reject it" in d.ctl("cancel", "1", check=False).stderr
        assert "--force" in d.ctl("retry", "1", check=False).stderr
        assert d.ctl("resend", "--job", "1").stdout == "0 deliveries are sent again\n"
        assert "under review" in d.ctl("purge", "--yes", "--undelivered", row["series_uid"], check=False).stderr
        assert len(under_review(d)) == 1 and states(d) == [] and archive.files() == []
        assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
        # The accepted result equals the reviewed one byte by byte.
        assert d.ctl("accept", "1").stdout == "job 1 is accepted, and its results are delivered\n"
        wait_states(d, ("PACS", "SENT"), ("OUT", "SENT"))
        (copy,) = (tmp_path / "out").iterdir()
        assert copy.read_bytes() == before == seg.read_bytes()
        (sent,) = archive.files()
        assert pydicom.dcmread(sent) == pydicom.dcmread(seg)
        (job,) = d.jobs()
        assert (job["state"], job["reviewed_by"].split()[0]) == ("DONE", getpass.getuser())
        (event,) = d.query("SELECT detail FROM v_events WHERE kind = 'JOB_ACCEPTED'")
        assert event["detail"] == f"by {job['reviewed_by']}"
        check(d, "OK")
        again = d.ctl("accept", "1", check=False)
        assert again.returncode == 1 and again.stderr == f"noctule: job 1 is DONE: {job['reviewed_by']} accepted it\n"
        assert d.ctl("accept", "99", check=False).returncode == 3


def test_a_rejected_result_is_never_delivered(daemon, tmp_path):
    out = tmp_path / "out"
    d = expecting(daemon(quiet=600.0, pipeline_extra='deliver = [ "OUT" ];', extra=destinations(to_folder(out)))).start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_review(d)
    assert d.ctl("reject", "1", "", check=False).returncode == 2
    assert d.ctl("reject", "1", check=False).returncode == 2
    assert d.ctl("reject", "1", "it is the table").stdout == "job 1 is rejected; its results are not delivered\n"
    (job,) = d.jobs()
    assert (job["state"], job["code"]) == ("REJECTED", "REVIEW_REJECTED")
    assert job["message"].startswith(f"by {job['reviewed_by']}: it is the table (Brain: volume ")
    d.stop()
    d.start()
    assert d.ctl("accept", "1", check=False).stderr == f"noctule: job 1 is REJECTED: {job['reviewed_by']} rejected it\n"
    assert "job 1 is REJECTED with this pipeline already" in d.ctl("retry", "1", check=False).stderr
    check(d, "OK")
    # With another expectation in its pipeline the job has a normal result.
    change(d, "[ 1200.0, 1900.0 ]", "[ 1.0, 1900.0 ]")
    reload(d)
    d.ctl("retry", "--current", "1")
    wait_states(d, ("OUT", "SENT"))
    assert [(job["state"], job["superseded_by"]) for job in d.jobs()] == [("REJECTED", 2), ("DONE", None)]
    assert len(list(out.iterdir())) == 1


def test_review_deliver_marks_the_object(daemon, tmp_path):
    out = tmp_path / "out"
    measured = 'texture = { first_order = true; }; results = [ "seg", "sr" ];'
    d = expecting(daemon(quiet=600.0, pipeline_extra=f'deliver = [ "OUT" ]; review = "deliver"; {measured}',
                         extra=destinations(to_folder(out)))).start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_states(d, ("OUT", "SENT"), ("OUT", "SENT"))
    (job,) = d.jobs()
    assert (job["state"], job["code"]) == ("DONE", "EXPECTATION_BROKEN") and "Brain: volume" in job["message"]
    files = {pydicom.dcmread(file, stop_before_pixels=True).Modality: file for file in out.iterdir()}
    description = pydicom.dcmread(files["SEG"], stop_before_pixels=True).ContentDescription
    assert description.startswith("Not as expected: Brain: volume ") and len(description) <= 64
    report = highdicom.sr.srread(files["SR"])
    assert_dciodvfy_is_content(files["SR"])
    evaluations = one(report.content[0], "CONTAINER", "C0034375")
    assert one(evaluations, "TEXT", "121106").TextValue == f"Not as expected: {job['message']}"
    assert len(report.content.get_volumetric_roi_measurement_groups()) == 1
    assert under_review(d) == []


@pytest.mark.parametrize("point", ["daemon_after_done_before_commit", "daemon_after_done_after_commit",
                                   "daemon_before_answer"])
def test_killed_during_a_decision(daemon, tmp_path, point):
    """After a restart the review exists, and has exactly one decision."""
    once, out = tmp_path / "crashed", tmp_path / "out"
    d = expecting(daemon(quiet=600.0, pipeline_extra='deliver = [ "OUT" ];', extra=destinations(to_folder(out))))
    if point != "daemon_before_answer":
        d.environment.update({"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
    d.start()
    drop(small(tmp_path / "ct"), d.inbox)
    if point == "daemon_before_answer":
        wait_review(d)
        d.stop()
        d.environment.update({"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
        once.touch()  # the pings of the start are answered
        d.start()
        once.unlink()
        assert d.ctl("accept", "1", check=False).returncode == 4
    wait_for(once.exists, 60, f"the crash at {point}")
    d.process.wait(60)
    d.start()
    if point != "daemon_before_answer":
        wait_review(d)
        assert states(d) == []
        d.ctl("accept", "1")
    wait_states(d, ("OUT", "SENT"))
    assert [job["state"] for job in d.jobs()] == ["DONE"] and len(list(out.iterdir())) == 1


def test_run_reports_an_unexpected_result(daemon, tmp_path):
    d = expecting(daemon())
    files = small(tmp_path / "ct")

    def run(status, output, *options):
        done = subprocess.run([BIN / "noctule", "--config", d.config, "run", "--pipeline", "head-ct", "--output",
                               tmp_path / output, *options, tmp_path / "ct"], text=True, capture_output=True)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    assert files
    done = run(8, "held")
    assert "not as expected: Brain: volume " in done.stderr and "expected 1200 to 1900 ml" in done.stderr
    assert "noctule accept" in done.stderr and (tmp_path / "held" / "seg.dcm").is_file()
    assert json.loads(run(8, "json", "--json").stdout)["jobs"][0]["outcome"] == "REVIEW"
    d.config.write_text(d.config.read_text().replace("name = \"head-ct\";", "name = \"head-ct\"; review = \"deliver\";", 1))
    done = run(0, "delivered")
    assert "not as expected: Brain: volume " in done.stderr and "accept" not in done.stderr


def test_an_empty_result_is_unexpected(daemon, tmp_path):
    """The result has no objects, so after acceptance the job is EMPTY."""
    d = expecting(daemon(quiet=600.0), "expect = { };").start()
    change(d, "range = [ 0.0, 80.0 ]", "range = [ 20000.0, 20001.0 ]")
    reload(d)
    drop(small(tmp_path / "ct"), d.inbox)
    (row,) = wait_review(d)
    assert row["message"] == "Brain: the segment is empty" and row["result_path"] is None
    assert (d.root / row["preview_path"]).is_file()
    assert d.ctl("accept", "1").stdout == "job 1 is accepted: it has no results to deliver\n"
    assert [job["state"] for job in d.jobs()] == ["EMPTY"]


def test_all_of_a_pipeline_are_accepted(daemon, tmp_path):
    d = expecting(daemon(quiet=0.5)).start()
    for seed in (1, 2):
        drop(small(tmp_path / str(seed), seed), d.inbox / str(seed))
    wait_review(d, 2)
    assert d.ctl("accept", "--pipeline", "other").stdout == "no matching job\n"
    assert d.ctl("accept", "--code", "EMPTY").stdout == "no matching job\n"
    told = d.ctl("accept", "--dry-run", "--code", "EXPECTATION_BROKEN", "--pipeline", "head-ct").stdout
    assert told == "job 1: would be accepted\njob 2: would be accepted\n" and len(under_review(d)) == 2
    d.ctl("accept", "--pipeline", "head-ct")
    assert [job["state"] for job in d.jobs()] == ["DONE", "DONE"] and under_review(d) == []

"""Repeated runs of stored series: after a changed pipeline, after failures and after success. No result is lost."""

import json
import os
import signal

import pydicom
import pytest
from conftest import Clock, drop, phantom, storescp, wait_for
from test_daemon import change, reload
from test_deliveries import deliveries, destinations, states, to_archive, to_folder, wait_states


def small(folder, seed=1):
    return phantom(folder, "--size", "32x32x6", "--seed", str(seed))


def change_pipeline(d):
    """Changes the range of the pipeline, so that results differ, and reloads the configuration."""
    change(d, "range = [ 0.0, 80.0 ]", "range = [ 0.0, 81.0 ]")
    reload(d)


class Stopped:
    """Stops the worker, so that no job ends within this block."""

    def __init__(self, d):
        self.workers = d.children("worker")

    def __enter__(self):
        for pid in self.workers:
            os.kill(pid, signal.SIGSTOP)

    def __exit__(self, *_):
        for pid in self.workers:
            os.kill(pid, signal.SIGCONT)


def uids(d, job):
    return {row[0] for row in d.query("SELECT sop_instance_uid FROM v_results WHERE job = ? AND kind = 'seg'", job)}


def assert_whole(d, job):
    """Checks that all result files of the job exist."""
    rows = d.query("SELECT path, size_bytes FROM v_results WHERE job = ?", job)
    assert rows
    for row in rows:
        assert (d.root / row["path"]).stat().st_size == row["size_bytes"]


def test_a_changed_pipeline_makes_new_results_and_the_old_stay_until_then(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];',
                   extra=destinations(to_archive(archive.port))).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("PACS", "SENT"))
        assert "--force" in d.ctl("retry", "--current", "1", check=False).stderr  # the pipeline is unchanged
        change_pipeline(d)
        with Stopped(d):
            assert "job 2" in d.ctl("retry", "--current", "1").stdout
            wait_for(lambda: d.jobs("RUNNING"), 60, "the new job")
            old, _ = d.jobs()
            assert (old["state"], old["superseded_by"], states(d)) == ("DONE", None, [("PACS", "SENT")])
            assert_whole(d, 1)
        wait_states(d, ("PACS", "SENT"), ("PACS", "SENT"))
        old, new = d.jobs()
        assert (old["state"], old["superseded_by"], new["state"], new["superseded_by"]) == ("DONE", 2, "DONE", None)
        assert uids(d, 1).isdisjoint(uids(d, 2))
        assert_whole(d, 1)
        assert_whole(d, 2)
        got = {pydicom.dcmread(file, stop_before_pixels=True).SOPInstanceUID for file in archive.files()}
        assert got == uids(d, 1) | uids(d, 2)
        assert d.ctl("retry", "--force", "1", check=False).stderr.count("job 2 took the place") == 1


def test_a_repeated_job_makes_the_same_bytes(daemon, tmp_path):
    """After a crash before the end of the job was recorded, the second attempt makes the same UIDs and bytes."""
    d = daemon(quiet=60.0, environment={"NOCTULE_CRASH_AT": "daemon_after_done_before_commit"}).start()
    drop(small(tmp_path / "ct"), d.inbox)
    assert d.process.wait(60) == -signal.SIGKILL
    seg = d.root / "outbox" / "1" / "seg.dcm"
    before = seg.read_bytes()
    seg.unlink()
    del d.environment["NOCTULE_CRASH_AT"]
    d.start()
    (job,) = d.wait_jobs(1)
    assert job["attempts"] == 2 and seg.read_bytes() == before


def test_a_cancelled_retry_leaves_the_old_results(daemon, tmp_path):
    out = tmp_path / "out"
    d = daemon(quiet=60.0, pipeline_extra='deliver = [ "OUT" ];', extra=destinations(to_folder(out))).start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_states(d, ("OUT", "SENT"))
    with Stopped(d):
        d.ctl("retry", "--force", "1")
        wait_for(lambda: d.jobs("RUNNING"), 60, "the new job")
        d.ctl("cancel", "2")
    wait_for(lambda: not list((d.root / "jobs").iterdir()), 60, "the end of the attempt")
    old, new = d.jobs()
    assert (old["state"], old["superseded_by"], new["state"]) == ("DONE", None, "CANCELLED")
    assert_whole(d, 1)
    assert not (d.root / "outbox" / "2").exists()
    assert states(d) == [("OUT", "SENT")]
    d.ctl("resend", "1")
    wait_states(d, ("OUT", "SENT"))
    # The same pipeline makes the same object, which the destination already has. It must not be sent again.
    d.ctl("retry", "2")
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the second run")
    assert states(d) == [("OUT", "SENT"), ("OUT", "SENT")] and uids(d, 1) == uids(d, 2)
    assert deliveries(d)[1]["attempts"] == 0 and len(list(out.iterdir())) == 1


@pytest.mark.parametrize("point", ["worker_after_rename", "daemon_after_done_before_commit",
                                   "daemon_after_done_after_commit"])
def test_killed_while_the_new_job_runs(daemon, tmp_path, point):
    once = tmp_path / "crashed"
    d = daemon(quiet=60.0).start()
    drop(small(tmp_path / "ct"), d.inbox)
    d.wait_jobs(states=("DONE",))
    d.stop()
    d.environment.update({"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
    d.start()
    change_pipeline(d)
    d.ctl("retry", "--current", "1")
    wait_for(once.exists, 60, f"the crash at {point}")
    if point.startswith("daemon"):
        d.process.wait(60)
        assert_whole(d, 1)
        assert d.jobs()[0]["superseded_by"] == (2 if point.endswith("after_commit") else None)
        d.start()
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the end")
    assert d.jobs()[0]["superseded_by"] == 2
    assert_whole(d, 1)
    assert_whole(d, 2)
    assert not list(d.root.rglob("*.part"))


def test_a_failed_job_is_retried_at_once(daemon, tmp_path):
    d = daemon(quiet=60.0, attempts=1, environment={"NOCTULE_CRASH_AT": "worker_before_read"}).start()
    for seed in (1, 2):
        drop(small(tmp_path / str(seed), seed), d.inbox / str(seed))
    d.wait_jobs(2, states=("FAILED",))
    d.stop()
    del d.environment["NOCTULE_CRASH_AT"]
    d.start()
    for nothing in (["--pipeline", "other"], ["--code", "DISK_FULL"], ["--since", "2999-01-01"]):
        assert d.ctl("retry", "--failed", *nothing).stdout == "no matching job\n"
    assert [row["job"] for row in json.loads(d.ctl("jobs", "--code", "crashed", "--since", "1h", "--json").stdout)] == [2, 1]
    assert d.ctl("retry", "--failed", "--dry-run").stdout == "job 1: would run again\njob 2: would run again\n"
    assert d.ctl("retry", "--failed", "--dry-run", "--pipeline", "other").stdout == "no matching job\n"
    assert {row["state"] for row in d.jobs()} == {"FAILED"}
    told = d.ctl("retry", "--failed", "--pipeline", "head-ct", "--code", "CRASHED", "--since", "1h").stdout
    assert told.splitlines() == ["job 1 is ready to run again", "job 2 is ready to run again"]
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "their success")


# ------------------------------------------------------------------------------------ submit -------


def answers(told):
    """Returns the answers per series as its UID (the last digits) and the text."""
    return [(line.partition(": ")[0], line.partition(": ")[2]) for line in told.splitlines()]


def test_a_rule_added_later_processes_stored_series(daemon, tmp_path):
    d = daemon(quiet=60.0)
    change(d, 'modality = "CT"', 'modality = "PT"')
    d.start()
    for seed in (1, 2):
        drop(small(tmp_path / str(seed), seed), d.inbox / str(seed))
    wait_for(lambda: len(d.query("SELECT 1 FROM v_series WHERE state = 'SETTLED'")) == 2, 60, "the series")
    told = d.ctl("submit", "--rules").stdout
    assert [words for _, words in answers(told)] == ["NO_RULE: no rule selects a pipeline"] * 2
    change(d, 'modality = "PT"', 'modality = "CT"')
    reload(d)
    assert d.jobs() == []
    assert [words for _, words in answers(d.ctl("submit", "--rules", "--dry-run").stdout)] == \
        ["a job would be new (head-ct)"] * 2
    assert d.jobs() == []
    assert [words for _, words in answers(d.ctl("submit", "--rules").stdout)] == \
        ["job 1 is new (head-ct)", "job 2 is new (head-ct)"]
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the jobs")
    # A repeated request makes no job, because the job is already DONE.
    for _ in range(2):
        assert [words for _, words in answers(d.ctl("submit", "--rules").stdout)] == \
            ["job 1 is DONE already (head-ct)", "job 2 is DONE already (head-ct)"]
    assert d.ctl("submit", "--rules", "--since", "2999-01-01").stdout == "no matching series\n"
    assert d.jobs()[0]["priority"] == 5
    assert "submitted by" in d.query("SELECT detail FROM v_events WHERE kind = 'JOB_ADDED'")[0][0]
    change_pipeline(d)
    told = json.loads(d.ctl("submit", "--rules", "--all", "--json").stdout)
    assert [[job["job"], job["outcome"]] for series in told for job in series["jobs"]] == [[3, "new"], [4, "new"]]
    wait_for(lambda: len(d.jobs("DONE")) == 4, 60, "the new jobs")
    assert [row["superseded_by"] for row in d.jobs()] == [3, 4, None, None]


def test_submit_reports_the_reason_of_a_refusal(daemon, tmp_path):
    clock = Clock(tmp_path)
    # with "keep" a restart would find the file again
    d = daemon(quiet=20.0, after="delete", environment=clock.environment).start()
    good, refused, late = (small(tmp_path / str(seed), seed) for seed in (1, 2, 3))
    drop(good, d.inbox / "1")
    drop(refused[:2] + refused[4:], d.inbox / "2")
    d.wait_jobs(states=("DONE",))
    wait_for(lambda: len(d.query("SELECT 1 FROM v_instances")) == 10, 60, "all images")
    clock.pass_time(21)
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state = 'REFUSED'"), 60, "the refusal")
    d.stop()
    change(d, "quiet_seconds = 20.0", "quiet_seconds = 600.0")
    change(d, "complete_seconds = 0.3", "complete_seconds = 600.0")
    d.start()
    drop(late, d.inbox / "3")
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state = 'GATHERING' AND instances = 6"), 60, "the third")
    uid = {row["state"]: row["series_uid"] for row in d.query("SELECT * FROM v_series")}

    def refusal(*arguments):
        asked = d.ctl("submit", "--json", *arguments, check=False)
        assert asked.returncode == 1
        (told,) = json.loads(asked.stdout)
        assert told["message"] and told["jobs"] == []
        return told["code"]

    assert refusal("--pipeline", "head-ct", uid["REFUSED"]) == "MISSING_SLICE"
    assert refusal("--pipeline", "head-ct", uid["GATHERING"]) == "NOT_SETTLED"
    assert refusal("--pipeline", "head-ct", "--stacks", "echo 9", uid["SETTLED"]) == "STACK_NOT_FOUND"
    assert d.ctl("submit", "--pipeline", "other", uid["SETTLED"], check=False).returncode == 3
    unknown = d.ctl("submit", "--pipeline", "head-ct", "--json", "1.2.3", "1.2.4", check=False)
    assert unknown.returncode == 3 and ["no series 1.2." in told["message"] for told in json.loads(unknown.stdout)] == [True] * 2
    # The command line reads a pipeline that the daemon has not loaded yet.
    text = d.config.read_text()
    d.config.write_text(text.replace('name = "head-ct"', 'name = "new"').replace('pipeline = "head-ct"', 'pipeline = "new"'))
    assert refusal("--pipeline", "new", uid["SETTLED"]) == "NO_SUCH_PIPELINE"
    assert "NO_SUCH" not in d.ctl("submit", "--rules", uid["SETTLED"]).stdout
    d.config.write_text(text)
    assert "job 1 is DONE already" in d.ctl("submit", "--pipeline", "head-ct", uid["SETTLED"]).stdout
    assert "job 2 is new" in d.ctl("submit", "--force", "--pipeline", "head-ct", "--stacks", "all", uid["SETTLED"]).stdout
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the second run")
    next((d.root / "series" / uid["SETTLED"]).iterdir()).unlink()
    d.stop()
    d.start()
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE missing_files = 1"), 60, "the audit")
    assert refusal("--force", "--pipeline", "head-ct", uid["SETTLED"]) == "FILE_UNREADABLE"
    d.ctl("purge", "--yes", uid["SETTLED"])
    assert refusal("--pipeline", "head-ct", uid["SETTLED"]) == "SERIES_REMOVED"
    assert "SERIES_REMOVED" in d.ctl("retry", "--force", "2", check=False).stderr
    assert d.ctl("submit", "--rules").stdout == "no matching series\n"


def test_a_refused_series_is_checked_again(daemon, tmp_path):
    d = daemon(quiet=60.0)
    change(d, 'name = "head-ct";', 'name = "head-ct"; spacing_tolerance = 0.01; tilt = "refuse";')
    d.start()
    files = small(tmp_path / "ct")
    for path in files[3:]:  # 26.7 mm apart, with one step of 27
        dataset = pydicom.dcmread(path)
        dataset.ImagePositionPatient[2] += 0.3
        dataset.save_as(path)
    drop(files, d.inbox)
    (series,) = wait_for(lambda: d.query("SELECT * FROM v_series WHERE state = 'REFUSED'"), 60, "the refusal")
    assert series["code"] == "SPACING_NOT_UNIFORM"
    change(d, 'tilt = "refuse";', 'tilt = "straighten";')
    reload(d)
    d.ctl("complete", series["series_uid"])
    (job,) = d.wait_jobs()
    assert (job["state"], job["revision"]) == ("DONE", 2) and "6 planes 26.7 to 27 mm apart" in job["note"]
    assert d.ctl("complete", series["series_uid"], check=False).returncode == 1


@pytest.mark.parametrize("point", ["daemon_after_submit_before_commit", "daemon_before_answer"])
def test_killed_during_submit(daemon, tmp_path, point):
    d = daemon(quiet=60.0)
    change(d, 'modality = "CT"', 'modality = "PT"')
    d.start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state = 'SETTLED'"), 60, "the series")
    d.stop()
    before = len(d.query("SELECT * FROM v_events WHERE kind = 'JOB_ADDED'"))
    once = tmp_path / "crashed"
    once.touch()  # only after this file exists
    d.environment.update({"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
    change(d, 'modality = "PT"', 'modality = "CT"')
    d.start()
    once.unlink()
    assert d.ctl("submit", "--rules", check=False).returncode == 4
    d.process.wait(60)
    made = d.query("SELECT * FROM v_events WHERE kind = 'JOB_ADDED'")
    assert len(made) - before == (0 if point.endswith("before_commit") else 1)
    d.start()
    told = d.ctl("submit", "--rules").stdout
    assert ("is new" in told) == (not made)
    wait_for(lambda: [row["state"] for row in d.jobs()] == ["DONE"], 60, "the one job")


# -------------------------------------------------------------------------- hold, priority --------


def test_the_queue_is_held_over_a_restart(daemon, tmp_path):
    d = daemon(quiet=60.0).start()
    assert d.ctl("hold", "--queue", "--reason", "the archive moves").stdout == "queue is held\n"
    assert "held already" in d.ctl("hold", "--queue", check=False).stderr
    for seed in (1, 2):
        drop(small(tmp_path / str(seed), seed), d.inbox / str(seed))
    wait_for(lambda: len(d.jobs("READY")) == 2, 60, "the jobs")
    d.process.kill()
    d.process.wait()
    d.start()
    assert "Held        queue" in d.ctl("status").stdout
    assert d.ctl("jobs").stdout.count("READY, held") == 2
    (hold,) = d.query("SELECT * FROM v_holds")
    assert (hold["kind"], hold["reason"]) == ("queue", "the archive moves") and hold["held_by"]
    # The priority of a queued job may be changed meanwhile.
    assert d.ctl("priority", "2", "-7").stdout == "job 2 has priority -7\n"
    assert d.ctl("priority", "2", "1001", check=False).returncode == 1
    assert d.ctl("hold", "2").stdout == "job 2 is held\n"
    assert d.ctl("hold", "--pipeline", "other", check=False).stderr.startswith("noctule: NO_SUCH_PIPELINE")
    assert d.ctl("hold", "--pipeline", "head-ct").returncode == 0
    assert d.ctl("release", "--queue").stdout == "queue is released\n"
    assert [row["state"] for row in d.jobs()] == ["READY", "READY"]
    d.ctl("release", "--pipeline", "head-ct")
    wait_for(lambda: len(d.jobs("DONE")) == 1, 60, "the first")
    assert [(row["state"], row["held"]) for row in d.jobs()] == [("DONE", ""), ("READY", "job")]
    d.ctl("release", "2")
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the second")
    assert d.ctl("release", "2", check=False).returncode == 3
    assert "Held" not in d.ctl("status").stdout


def test_a_held_destination_waits_and_the_other_does_not(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS", "OUT" ];',
                   extra=destinations(to_archive(archive.port), to_folder(tmp_path / "out"))).start()
        assert d.ctl("hold", "--destination", "NONE", check=False).stderr.startswith("noctule: NO_SUCH_DESTINATION")
        d.ctl("hold", "--destination", "PACS")
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("PACS", "PENDING"), ("OUT", "SENT"))
        d.stop()
        d.start()
        assert "PENDING, held" in d.ctl("deliveries").stdout
        assert "up, held" in d.ctl("destinations").stdout
        assert states(d) == [("PACS", "PENDING"), ("OUT", "SENT")] and archive.files() == []
        d.ctl("release", "--destination", "PACS")
        wait_states(d, ("PACS", "SENT"), ("OUT", "SENT"))

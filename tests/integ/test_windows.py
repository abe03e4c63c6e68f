"""Time windows of pipelines, with a clock that a test sets: queued jobs state their reason, running jobs continue,
and windows may include midnight."""

import datetime
import json
import re

import pytest
from conftest import Clock, drop, local_time, wait_for
from test_again import Stopped, small
from test_daemon import change, reload



@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path)


def seconds_until(clock_time, now=None):
    """Returns the seconds from the daemon's time to a time in UTC."""
    now = now or datetime.datetime.now(datetime.timezone.utc)
    hour, minute = map(int, clock_time.split(":"))
    then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (then - now).total_seconds() % 86400


def daemon_at(clock, daemon, window='"22:00-06:00 UTC"', at="12:00", extra="", environment=None):
    """A daemon at the given time, with a pipeline that has the window."""
    clock.jump(seconds_until(at))
    return daemon(quiet=600.0, pipeline_extra=f"window = {window}; {extra}", environment={**clock.environment, **(environment or {})})


def rows_of(d, sql):
    return [tuple(row) for row in d.query(sql)]


def test_jobs_wait_for_their_window_with_a_reason(daemon, tmp_path, clock):
    d = daemon_at(clock, daemon).start()
    drop(small(tmp_path / "1", 1), d.inbox / "1")
    (job,) = wait_for(lambda: d.jobs("READY"), 60, "the job")
    assert job["window_closed"] == "22:00-06:00 UTC" and job["held"] == ""
    assert job["window_opens_at"][11:] == "22:00:00.000Z"
    assert "READY, window" in d.ctl("jobs").stdout
    status = d.ctl("status").stdout
    assert f"1 job of head-ct for its window, 22:00-06:00 UTC, which opens at {local_time(job['window_opens_at'])}" in status
    assert d.ctl("status", "--check").returncode == 0  # no alert
    # An hour before the window, also after a restart, the job still waits.
    clock.jump(9 * 3600)
    d.stop()
    d.start()
    assert [row["state"] for row in d.jobs()] == ["READY"]
    clock.jump(3600)
    wait_for(lambda: d.jobs("DONE"), 60, "the job, at night")
    assert rows_of(d, "SELECT is_open FROM v_windows") == [(1,)] and "its window" not in d.ctl("status").stdout
    # Over midnight, to the end of the window.
    clock.jump(4 * 3600)
    drop(small(tmp_path / "2", 2), d.inbox / "2")
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the second, after midnight")
    clock.jump(4 * 3600)
    wait_for(lambda: rows_of(d, "SELECT is_open FROM v_windows") == [(0,)], 60, "the end of the night")
    kinds = [kind for (kind,) in rows_of(d, "SELECT kind FROM v_events WHERE kind LIKE 'WINDOW_%' ORDER BY event")]
    assert kinds == ["WINDOW_CLOSED", "WINDOW_OPENED", "WINDOW_CLOSED"]


def test_running_jobs_continue_after_their_window(daemon, tmp_path, clock):
    d = daemon_at(clock, daemon, at="05:00").start()
    d.wait_log("event=child.ready child=worker")
    d.ctl("pause")
    for seed in range(4):
        drop(small(tmp_path / str(seed), seed), d.inbox / str(seed))
    wait_for(lambda: len(d.jobs("READY")) == 4, 60, "the jobs")
    with Stopped(d):
        d.ctl("resume")
        wait_for(lambda: d.jobs("RUNNING"), 60, "jobs that run")
        clock.jump(3600)
        wait_for(lambda: rows_of(d, "SELECT is_open FROM v_windows") == [(0,)], 60, "the end of the night")
        running = {row["job"] for row in d.jobs("RUNNING")}
    wait_for(lambda: {row["job"] for row in d.jobs("DONE")} == running, 60, "those that ran")
    assert len(d.jobs("READY")) == 4 - len(running)
    assert all(row["window_closed"] for row in d.jobs("READY"))


def test_the_current_configuration_sets_the_window(daemon, tmp_path, clock):
    d = daemon_at(clock, daemon).start()
    drop(small(tmp_path / "1", 1), d.inbox)
    wait_for(lambda: d.jobs("READY"), 60, "the job")
    assert "\nwindow" not in rows_of(d, "SELECT text FROM settings")[0][0]
    change(d, '"22:00-06:00 UTC"', '"Mon-Sun 11:30-13:00 UTC"')
    reload(d)
    wait_for(lambda: d.jobs("DONE"), 60, "the job")
    # The job is the same as before, because a window does not affect its results.
    assert "job 1 is DONE already" in d.ctl("submit", "--rules", d.jobs()[0]["series_uid"]).stdout


def test_the_default_time_zone_is_the_hosts(daemon, tmp_path, clock):
    d = daemon_at(clock, daemon, '"21:00-22:00"', environment={"TZ": "ABC-9:30"}).start()  # 9:30 hours ahead
    drop(small(tmp_path / "1", 1), d.inbox)
    wait_for(lambda: d.jobs("DONE"), 60, "the job: it is 21:30 there")
    assert rows_of(d, "SELECT substr(closes_at, 12, 5) FROM v_windows") == [("12:30",)]


def test_explain_prints_window_and_deadline(daemon, tmp_path, clock):
    d = daemon_at(clock, daemon, '"22:00-06:00 UTC"', extra='done_by = "07:00 UTC";').start()
    drop(small(tmp_path / "1", 1), d.inbox)
    (job,) = wait_for(lambda: d.jobs("READY"), 60, "the job")
    assert job["done_by_at"][11:] == "07:00:00.000Z"
    told = json.loads(d.ctl("explain", "--json", *sorted((tmp_path / "1").iterdir())).stdout)
    assert '"window": "22:00-06:00 UTC"' in json.dumps(told) and '"done_by": "07:00 UTC"' in json.dumps(told)
    said = " ".join(d.ctl("explain", *sorted((tmp_path / "1").iterdir())).stdout.split())
    assert "window, 22:00-06:00 UTC, deadline 07:00 UTC" in said


def test_a_missed_deadline_is_reported_before_the_job_exists(daemon):
    d = daemon(pipeline_extra='window = "Mon-Fri 22:00-06:00 UTC"; done_by = "07:00 UTC";').start()
    doubt = r"pipeline head-ct: jobs created after [-:+ 0-9]+ have the deadline [-:+ 0-9]+ \(done_by\), but its window \(Mon-Fri 22:00-06:00 UTC\) does not open"
    assert re.search(rf"^Attention   {doubt} between them$", d.ctl("status").stdout, re.M)
    told = d.ctl("status", "--check", check=False)
    assert told.returncode == 1 and re.match(rf"NOCTULE WARNING: done_by:head-ct: {doubt}", told.stdout)
    told = d.ctl("check-config")
    assert told.returncode == 0 and re.match(rf"noctule: warning: {doubt}", told.stderr), told.stderr
    change(d, 'done_by = "07:00 UTC"', 'done_by = "Tue-Sat 07:00 UTC"')
    assert d.ctl("check-config").stderr == "" and "Attention" not in d.ctl("status").stdout
    assert d.stop() == 0

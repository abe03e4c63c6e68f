"""Runs of programs in the queue of a whole service: restarts in each state, late slices, figures, alerts, metrics, removal."""

import hashlib
import json
import signal
import statistics

import pytest
from conftest import phantom, put, uncounted, wait_for
from test_page import Site as Page
from test_programs_daemon import BOTH, HALF, Site, assert_nothing_left, feed, runs, wait_running


@pytest.fixture
def site(daemon, tmp_path):
    return Site(daemon, tmp_path).configure()


def restart(d, end=signal.SIGKILL):
    d.stop(end)
    return d.start()


def test_a_waiting_run_stays_over_a_restart(site, tmp_path):
    d = site.start()
    d.ctl("hold", "--pipeline", "one")
    feed(d, tmp_path)
    wait_for(lambda: runs(d, "state") == [("READY",)], 60, "the run")
    restart(d)
    assert runs(d) == [(1, "READY", 0, "")]
    assert [(job["state"], job["code"]) for job in d.jobs()] == [("DELAYED", "PROGRAM_WAITING")]
    d.ctl("release", "--pipeline", "one")
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    assert runs(d) == [(1, "DONE", 1, "")]
    assert_nothing_left(d)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_delayed_run_is_repeated_after_a_restart(site, tmp_path, end):
    """A transient failure: the program is killed by a signal."""
    site.script.write_text("import os\nif os.path.exists(os.path.dirname(os.path.abspath(__file__)) + '/die'):\n"
                           "    os.kill(os.getpid(), 9)\n" + HALF)
    site.let("die")
    d = site.configure(more="").d
    d.config.write_text(d.config.read_text().replace("retry_seconds = 0.2; retry_max_seconds = 1.0;",
                                                     "retry_seconds = 600.0; retry_max_seconds = 600.0;"))
    d.start()
    feed(d, tmp_path)
    wait_for(lambda: runs(d) == [(1, "DELAYED", 1, "PROGRAM_CRASHED")], 60, "the failure")
    restart(d, end)
    assert runs(d) == [(1, "DELAYED", 1, "PROGRAM_CRASHED")]
    site.stop("die")
    d.config.write_text(d.config.read_text().replace("600.0; retry_max_seconds = 600.0;", "0.2; retry_max_seconds = 0.2;"))
    restart(d, end)  # waits are limited to the configured maximum
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    assert runs(d) == [(1, "DONE", 2, "")]
    assert_nothing_left(d)


def test_a_mask_stays_over_a_restart(site, tmp_path):
    """The run is DONE, and a job that needs its mask has not started."""
    d = site.configure(rules=BOTH).start()
    d.ctl("hold", "--pipeline", "two")
    feed(d, tmp_path)
    d.wait_jobs(states=("DONE",))
    (waits,) = [job for job in d.jobs() if job["state"] != "DONE"]
    assert (waits["state"], waits["pipeline"], waits["program_runs"]) == ("READY", "two", "1")
    restart(d)
    d.ctl("release", "--pipeline", "two")
    assert [job["state"] for job in d.wait_jobs(2, states=("DONE",))] == ["DONE", "DONE"]
    assert runs(d) == [(1, "DONE", 1, "")]


def test_a_failed_run_stays_over_a_restart(site, tmp_path):
    site.let("fail", "no model")
    d = site.start()
    feed(d, tmp_path)
    (job,) = d.wait_jobs()
    restart(d)
    assert runs(d) == [(1, "FAILED", 1, "PROGRAM_FAILED")]
    assert "no model" in (d.root / "programs/1/output.txt").read_text()
    site.stop("fail")
    d.ctl("retry", str(job["job"]))
    d.wait_jobs(states=("DONE",))
    assert runs(d) == [(1, "DONE", 1, "")]


def test_late_slices_replace_a_run(site, tmp_path):
    """The first run is stopped, since its images are not those of the series any more."""
    site.let("wait")
    d = site.start()
    files = uncounted(phantom(tmp_path / "series", "--size", "40x32x12"))
    put(files[:11], d.inbox / "series")
    d.declare_complete(files[:11])
    wait_running(d)
    put(files[11:], d.inbox / "late")
    d.declare_complete(files)
    wait_for(lambda: [row[0] for row in d.query("SELECT revision FROM v_series WHERE state = 'SETTLED'")] == [2], 60, "the second revision")
    wait_for(lambda: runs(d, "revision, state")[0] == (1, "CANCELLED"), 60, "the end of the first run")
    site.stop("wait")
    jobs = d.wait_jobs(2)
    assert [(job["revision"], job["state"], job["code"]) for job in jobs] == [(1, "CANCELLED", "SUPERSEDED"), (2, "DONE", "")]
    assert runs(d, "revision, state, attempts") == [(1, "CANCELLED", 1), (2, "DONE", 1)]
    assert_nothing_left(d)


def test_figures_and_metrics_are_those_of_the_runs(daemon, tmp_path):
    """Four series: three succeed, one fails; each starts a process."""
    page = Page(daemon, settings="root = 1;")
    site = Site(lambda **_: page.daemon, tmp_path).configure()
    page.daemon.config.write_text(page.daemon.config.read_text() + page.settings)
    page.start()
    d = page.daemon
    for number in range(1, 5):
        if number == 4:
            site.let("fail", "no model")
        feed(d, tmp_path, f"series{number}", "--seed", str(number))
        d.wait_jobs(number)
    (row,) = d.query("SELECT * FROM v_programs")
    made = d.query("SELECT * FROM v_program_runs WHERE state = 'DONE'")
    seconds = [run["write_seconds"] + run["program_seconds"] + run["read_seconds"] for run in made]
    assert (row["program"], row["state"], row["waiting"], row["running"]) == ("half", "READY", 0, 0)
    assert (row["runs"], row["failed"], row["starts"], row["cases_per_start"]) == (4, 1, 4, 1.0)
    assert (row["last_code"], row["whole_runs"], row["cpu_runs"]) == ("PROGRAM_FAILED", 0, 0)
    for name, value in (("mean", statistics.mean(seconds)), ("median", statistics.median(seconds)), ("max", max(seconds))):
        assert row[f"{name}_seconds"] == pytest.approx(value, abs=0.001), name
    assert row["mean_write_seconds"] == pytest.approx(statistics.mean(run["write_seconds"] for run in made), abs=0.001)
    assert row["weights_sha256"] and row["sandbox"]
    figures = page.figures()
    assert figures['noctule_program_up{program="half"}'] == 1
    assert figures['noctule_program_runs{state="WAITING"}'] == figures['noctule_program_runs{state="RUNNING"}'] == 0
    assert figures['noctule_program_runs_ended_total{state="DONE"}'] == 3
    assert figures['noctule_program_runs_ended_total{state="FAILED"}'] == 1
    assert figures['noctule_program_seconds_count{program="half"}'] == 3
    assert figures['noctule_program_seconds_sum{program="half"}'] == pytest.approx(sum(seconds), abs=0.01)


def alerts(d):
    return {alert["id"]: alert["text"] for alert in json.loads(d.ctl("status", "--json", check=False).stdout)["alerts"]}


def test_alerts_name_what_programs_lack(site, tmp_path):
    tool = site.folder / "half"
    d = site.configure(command=f'"{tool}"').start()
    feed(d, tmp_path)
    wait_for(lambda: d.jobs("DELAYED"), 60, "the job that waits")
    broken = wait_for(lambda: alerts(d).get("program_broken:half"), 60, "the alert")
    assert broken.startswith("program half cannot run: ") and str(tool) in broken
    assert alerts(d)["delayed:PROGRAM_WAITING"] == "1 job for a program"
    tool.write_text("#!/usr/bin/python3\n" + HALF)
    tool.chmod(0o755)
    site.reload()
    d.wait_jobs(states=("DONE",))
    assert not [alert for alert in alerts(d) if "program" in alert.lower()]
    kinds = [row[0] for row in d.query("SELECT kind FROM v_events WHERE kind IN ('PROGRAM_BROKEN', 'PROGRAM_READY') ORDER BY event")]
    assert kinds == ["PROGRAM_BROKEN", "PROGRAM_READY"]


def test_a_damaged_mask_is_made_again_by_an_operator(site, tmp_path):
    d = site.start()
    feed(d, tmp_path)
    (job,) = d.wait_jobs()
    mask = d.root / "programs/1/mask"
    data = mask.read_bytes()
    mask.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    d.ctl("retry", "--force", str(job["job"]))
    (_, failed) = d.wait_jobs(2)
    assert (failed["state"], failed["code"]) == ("FAILED", "PROGRAM_MASK_DAMAGED")
    d.ctl("retry", "--program", str(failed["job"]))
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the retried job")
    assert runs(d, "state, superseded_by") == [("DONE", 2), ("DONE", None)]
    again = d.root / "programs/2/mask"
    assert hashlib.sha256(again.read_bytes()).hexdigest() == d.query("SELECT mask_sha256 FROM v_program_runs WHERE run = 2")[0][0]
    assert again.read_bytes() == data


def test_a_purge_removes_masks(site, tmp_path):
    d = site.start()
    feed(d, tmp_path)
    d.wait_jobs()
    wait_for(lambda: not list((d.root / "jobs").iterdir()), 60, "the end of the job")
    uid = d.query("SELECT series_uid FROM v_series")[0][0]
    d.ctl("purge", "--yes", uid)
    wait_for(lambda: list((d.root / "programs").iterdir()) == [], 60, "the removal of the mask")
    (row,) = d.query("SELECT * FROM v_program_runs")
    assert row["removed_at"] and row["mask_path"] is None and row["output_path"] is None
    wait_for(lambda: d.query("SELECT count(*) FROM removal")[0][0] == 0, 60, "the end of the removal")

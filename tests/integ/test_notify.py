"""Single events passed to a command of the site: each once, in order, without patient data; failures, hangs, restarts."""

import json
import os
import pathlib
import signal

import pydicom
import pytest
from conftest import Clock, drop, phantom, wait_for
from patients import SIGNS, identify
from test_daemon import change, reload
from test_nights import script

# Keeps each object in a file of its own, 1, 2, ...; a file that grows is renamed into place. $KEPT/fail makes it fail.
KEEPS = """n=$(($(ls "$KEPT" | grep -c json) + 1)); cat > "$KEPT/part"; echo x >> "$KEPT/runs"
if [ -e "$KEPT/fail" ]; then echo "pager: no route" >&2; exit 75; fi
mv "$KEPT/part" "$KEPT/$n.json\""""


@pytest.fixture
def kept(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder


def notify(command, events=("alert", "job_failed", "job_review", "series_refused"), name="pager", interval=0, timeout=30):
    listed = ", ".join(f'"{event}"' for event in events)
    return (f'notify = ( {{ name = "{name}"; events = [ {listed} ]; command = "{command}"; '
            f'interval_seconds = {interval}.0; timeout_seconds = {timeout}.0; }} );\n')


def objects(kept):
    return [json.loads((kept / f"{n}.json").read_text()) for n in range(1, len(list(kept.glob("*.json"))) + 1)]


def events(kept):
    return [event for each in objects(kept) for event in each["events"]]


def missing_slice(folder, seed):
    """A series that the geometry check refuses, of a patient whose name would be found."""
    files = phantom(folder, "--size", "16x16x6", "--seed", str(seed))
    files[2].unlink()
    for path in files[:2] + files[3:]:
        dataset = pydicom.dcmread(path)
        identify(dataset)
        del dataset.ImagesInAcquisition
        dataset.save_as(path)
    return [path for path in files if path.exists()]


def refuse(d, folder, seed):
    files = missing_slice(folder, seed)
    drop(files, d.inbox)
    d.declare_complete(files)
    uid = pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state = 'REFUSED' AND series_uid = ?", uid), 60, "the refusal")
    return uid


def row(d):
    (found,) = d.query("SELECT * FROM v_notifications")
    return found


def test_each_event_is_passed_once_without_patient_data(daemon, tmp_path, kept):
    d = daemon(quiet=600.0, environment={"KEPT": str(kept)}, extra=notify(script(tmp_path, KEEPS)))
    d.start()
    refused = refuse(d, tmp_path / "refused", 1)
    wait_for(lambda: len(events(kept)) == 1, 60, "the first event")
    good = phantom(tmp_path / "good", "--size", "32x32x6")  # a job that ends well is no event
    drop(good, d.inbox)
    d.wait_jobs(states=("DONE",))
    second = refuse(d, tmp_path / "second", 2)
    wait_for(lambda: len(events(kept)) == 2, 60, "the second event")

    told = objects(kept)
    assert [list(each) for each in told] == [["noctule", "host", "notify", "more", "events"]] * 2
    assert {(each["host"], each["notify"], each["more"]) for each in told} == {(os.uname().nodename, "pager", False)}
    rows = d.query("SELECT * FROM v_events WHERE kind = 'SERIES_REFUSED' ORDER BY event")
    assert events(kept) == [{"event": row["event"], "at": row["at"], "kind": "SERIES_REFUSED", "series_uid": uid,
                             "code": "MISSING_SLICE"} for row, uid in zip(rows, (refused, second), strict=True)]
    assert not any(SIGNS.search(path.read_text()) for path in kept.iterdir())
    assert (row(d)["event"], row(d)["failures"], row(d)["message"]) == (rows[1]["event"], 0, "")

    # What was passed stays passed: after a restart and a reload there is nothing to run.
    runs = (kept / "runs").read_text()
    assert d.stop() == 0
    d.start()
    reload(d)
    third = refuse(d, tmp_path / "third", 3)
    wait_for(lambda: len(events(kept)) == 3, 60, "the third event")
    assert events(kept)[2]["series_uid"] == third and (kept / "runs").read_text() == runs + "x\n"


def test_a_job_that_fails_and_one_under_review(daemon, tmp_path, kept):
    d = daemon(quiet=600.0, attempts=1, environment={"KEPT": str(kept)},
               extra=notify(script(tmp_path, KEEPS), events=["job_failed", "job_review"]))
    text = d.config.read_text()
    d.config.write_text(text.replace('type = { code = "12738006"', 'expect = { volume_ml = [ 1200.0, 1900.0 ]; }; type = { code = "12738006"'))
    d.start()
    drop(phantom(tmp_path / "review", "--size", "32x32x6"), d.inbox)
    (review,) = d.wait_jobs(states=("REVIEW",))
    wait_for(lambda: len(events(kept)) == 1, 60, "the review")
    change(d, "max_attempts = 1;", "max_attempts = 1; memory_mib = 1.0;")
    reload(d)
    drop(phantom(tmp_path / "fails", "--size", "128x128x40", "--seed", "2"), d.inbox)
    (failed,) = d.wait_jobs(states=("FAILED",))
    wait_for(lambda: len(events(kept)) == 2, 60, "the failure")
    assert [(event["kind"], event["job"], event["pipeline"], event["code"]) for event in events(kept)] == [
        ("JOB_REVIEW", review["job"], "head-ct", "EXPECTATION_BROKEN"),
        ("JOB_FAILED", failed["job"], "head-ct", failed["code"])]


def test_a_failure_is_an_alert_and_loses_nothing(daemon, tmp_path, kept):
    clock = Clock(tmp_path)
    d = daemon(quiet=600.0, environment={**clock.environment, "KEPT": str(kept)}, extra=notify(script(tmp_path, KEEPS)))
    d.start()
    (kept / "fail").touch()
    first = refuse(d, tmp_path / "first", 1)
    wait_for(lambda: row(d)["failures"] == 1, 60, "the failure")
    assert row(d)["message"] == "pager: no route" and row(d)["failing_since_at"] == row(d)["ended_at"]
    (event,) = d.query("SELECT detail FROM v_events WHERE kind = 'NOTIFICATION_FAILED'")
    assert event["detail"] == "pager: pager: no route"
    check = d.ctl("status", "--check", check=False)
    assert check.returncode == 1 and 'notify:pager: the command of notify "pager" failed 1 time' in check.stdout
    second = refuse(d, tmp_path / "second", 2)  # the daemon goes on
    clock.jump(60)
    wait_for(lambda: row(d)["failures"] == 2, 60, "the second failure")
    assert d.stop() == 0
    (kept / "fail").unlink()
    clock.jump(60)
    d.start()
    wait_for(lambda: events(kept), 60, "the events")
    assert [event["series_uid"] for event in events(kept)] == [first, second] and len(objects(kept)) == 1
    wait_for(lambda: row(d)["failures"] == 0, 60, "the end of the alert")
    assert "notify:pager" not in d.ctl("status", "--check", check=False).stdout


def test_a_command_that_hangs_is_ended_and_one_that_is_cut_off_runs_again(daemon, tmp_path, kept):
    hangs = 'trap "" TERM; echo $$ > "$KEPT/pid"; sleep 1000 & sleep 1000'
    d = daemon(quiet=600.0, environment={"KEPT": str(kept)}, extra=notify(script(tmp_path, hangs), timeout=1))
    d.start()
    uid = refuse(d, tmp_path / "first", 1)
    pid = wait_for(lambda: (kept / "pid").exists() and (kept / "pid").read_text().strip(), 60, "the command")
    assert d.ctl("ping").returncode == 0
    wait_for(lambda: row(d)["failures"] == 1, 60, "its end")
    assert row(d)["message"] == "it took longer than timeout_seconds of notify (1 s)"
    wait_for(lambda: not pathlib.Path("/proc", pid).exists(), 60, "the end of its process")
    assert d.stop() == 0

    change(d, "timeout_seconds = 1.0", "timeout_seconds = 1000.0")
    d.environment.update(Clock(tmp_path).environment)
    Clock(tmp_path).jump(3600)
    (kept / "pid").unlink()
    d.start()
    pid = wait_for(lambda: (kept / "pid").exists() and (kept / "pid").read_text().strip(), 60, "the second run")
    d.kill_all()
    os.killpg(os.getpgid(int(pid)), signal.SIGKILL)  # a command outlives a daemon that is killed
    script(tmp_path, KEEPS)
    d.start()
    wait_for(lambda: events(kept), 60, "the event")
    assert [event["series_uid"] for event in events(kept)] == [uid]


def test_alerts_begin_and_end(daemon, tmp_path, kept):
    clock = Clock(tmp_path)
    d = daemon(quiet=600.0, environment={**clock.environment, "KEPT": str(kept)},
               extra=notify(script(tmp_path, KEEPS), events=["alert"]))

    def paused():  # a clock that runs ahead raises alerts of silent children, too
        return [event for event in events(kept) if event["alert"] == "paused"]

    d.start()
    d.ctl("pause", "--reason", "maintenance")
    clock.pass_time(61)
    wait_for(paused, 60, "the beginning")
    d.ctl("resume")
    clock.pass_time(11)
    wait_for(lambda: len(paused()) == 2, 60, "the end")
    begun, ended = paused()
    assert (begun["kind"], begun["severity"], begun["message"]) == ("ALERT_BEGAN", "attention", "jobs are paused")
    assert begun["remedy"] == "noctule resume" and begun["event"] < ended["event"]
    assert ended["kind"] == "ALERT_ENDED" and "maintenance" not in json.dumps(objects(kept))

    # An alert that lasts over a restart is not passed again.
    d.ctl("pause")
    clock.pass_time(11)
    wait_for(lambda: len(paused()) == 3, 60, "the second beginning")
    assert d.stop() == 0
    d.start()
    clock.pass_time(61)
    d.ctl("resume")
    clock.pass_time(11)
    wait_for(lambda: len(paused()) == 4, 60, "the second end")
    assert [event["kind"] for event in paused()] == ["ALERT_BEGAN", "ALERT_ENDED"] * 2


def test_the_interval_bounds_the_runs(daemon, tmp_path, kept):
    clock = Clock(tmp_path)
    d = daemon(quiet=600.0, environment={**clock.environment, "KEPT": str(kept)},
               extra=notify(script(tmp_path, KEEPS), interval=600))
    d.start()
    uids = [refuse(d, tmp_path / "1", 1)]
    wait_for(lambda: len(events(kept)) == 1, 60, "the first run")
    uids += [refuse(d, tmp_path / str(n), n) for n in (2, 3, 4)]
    assert len(objects(kept)) == 1
    clock.jump(601)
    wait_for(lambda: len(events(kept)) == 4, 60, "the second run")
    assert [event["series_uid"] for event in events(kept)] == uids and len(objects(kept)) == 2


def test_a_new_row_begins_with_new_events(daemon, tmp_path, kept):
    d = daemon(quiet=600.0, environment={"KEPT": str(kept)})
    d.start()
    refuse(d, tmp_path / "old", 1)
    with open(d.config, "a") as config:
        config.write(notify(script(tmp_path, KEEPS)))
    reload(d)
    wait_for(lambda: d.query("SELECT 1 FROM v_notifications"), 60, "the row")
    uid = refuse(d, tmp_path / "new", 2)
    wait_for(lambda: events(kept), 60, "the event")
    assert [event["series_uid"] for event in events(kept)] == [uid]
    text = d.config.read_text()
    d.config.write_text(text[:text.index("notify = (")])
    reload(d)
    wait_for(lambda: not d.query("SELECT 1 FROM v_notifications"), 60, "the row's end")

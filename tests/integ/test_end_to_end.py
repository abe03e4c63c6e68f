"""A series in the inbox gives a valid SEG, and the database records its progress."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import highdicom
import pydicom
import pytest
from conftest import SHARED, Clock, assert_valid, drop, needs_shared, phantom, released_only, run_program, uncounted, wait_for
from test_again import Stopped


def seg_path(daemon, job):
    return daemon.root / job["result_path"]


def test_a_dropped_series_gives_a_result(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "96x80x12")
    d = daemon().start()
    drop(files, d.inbox / "a" / "b")
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE", job["message"]
    assert job["pipeline"] == "head-ct" and job["attempts"] == 1
    assert job["segmented_voxels"] > 0 and job["voxels"] == 96 * 80 * 12
    for stage in ("read_seconds", "compute_seconds", "write_seconds", "verify_seconds", "total_seconds"):
        assert job[stage] >= 0, stage

    path = seg_path(d, job)
    assert_valid(path)
    seg = highdicom.seg.segread(path)
    assert seg.SOPInstanceUID == job["result_sop_instance_uid"]
    assert seg.number_of_segments == 1
    uids = [pydicom.dcmread(f, stop_before_pixels=True).SOPInstanceUID for f in files]
    mask = seg.get_pixels_by_source_instance(uids, combine_segments=False)
    assert int(mask.sum()) == job["segmented_voxels"]
    assert (path.parent / "preview.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((path.parent / "job.json").read_text())

    assert sorted(p.name for p in (d.inbox / "a" / "b").iterdir()) == [f.name for f in files]
    assert not list(d.root.rglob("*.part"))
    (series,) = d.query("SELECT * FROM v_series")
    assert series["state"] == "SETTLED" and series["instances"] == 12 and series["evidence"]
    assert d.stop() == 0
    assert d.jobs("DONE")


def test_no_patient_in_the_log_or_paths(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    for file in files:
        header = pydicom.dcmread(file)
        header.PatientName, header.PatientID = "Quirinus^Zeno", "QZ-4711"
        header.save_as(file)
    d = daemon().start()
    drop(files, d.inbox)
    d.wait_jobs()
    d.stop()
    words = [str(header.PatientName).split("^")[0], str(header.PatientID)]
    dump = "\n".join(sqlite3.connect(d.root / "noctule.db").iterdump())
    for word in words:
        assert word and word not in d.log.read_text()
        assert word not in dump
        assert not [p for p in d.root.rglob("*") if word in p.name and d.inbox not in p.parents]
    for line in d.log.read_text().splitlines():
        assert line.startswith("ts=") and " level=" in line and " event=" in line, line


def test_own_results_are_not_processed_again(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon().start()
    drop(files, d.inbox)
    (job,) = d.wait_jobs()
    shutil.copy(seg_path(d, job), d.inbox / "seg.dcm")
    more = phantom(tmp_path / "more", "--size", "32x32x6", "--seed", "2")
    drop(more, d.inbox / "more")
    d.wait_jobs(2)
    assert len(d.query("SELECT * FROM v_series")) == 2
    assert d.query("SELECT * FROM v_quarantine") == []


def test_a_late_slice_makes_a_new_revision(daemon, tmp_path):
    files = uncounted(phantom(tmp_path / "series", "--size", "32x32x8"))
    d = daemon(quiet=600.0).start()
    drop(files[:-1], d.inbox)
    d.declare_complete(files[:-1])
    (first,) = d.wait_jobs()
    drop(files[-1:], d.inbox)
    d.declare_complete(files)
    jobs = d.wait_jobs(2)
    assert [j["revision"] for j in jobs] == [1, 2]
    assert jobs[0]["superseded_by"] == jobs[1]["job"]
    assert jobs[1]["state"] == "DONE"
    assert jobs[0]["result_sop_instance_uid"] != jobs[1]["result_sop_instance_uid"]
    assert first["result_path"] != jobs[1]["result_path"]


def test_a_resend_has_no_effect(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon(quiet=600.0).start()  # each series is complete by its header
    drop(files, d.inbox / "once")
    d.wait_jobs()
    drop(files, d.inbox / "again")
    d.wait_log("event=file.arrived", 12, 60)
    other = phantom(tmp_path / "other", "--size", "32x32x6", "--seed", "3")
    drop(other, d.inbox / "other")
    d.wait_jobs(2)
    rows = d.query("SELECT revision, duplicate_conflicts FROM v_series")
    assert [tuple(r) for r in rows] == [(1, 0), (1, 0)]


def test_same_uid_other_bytes_keeps_the_first(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon(quiet=600.0).start()
    drop(files, d.inbox)
    d.wait_jobs()
    changed = pydicom.dcmread(files[0])
    changed.PixelData = bytes(len(changed.PixelData))
    changed.save_as(d.inbox / "changed.dcm.part")
    (d.inbox / "changed.dcm.part").rename(d.inbox / "changed.dcm")
    row = wait_for(lambda: d.query("SELECT * FROM v_quarantine"), 60, "the quarantine row")[0]
    assert row["code"] == "DUPLICATE_UID_DIFFERENT"
    (series,) = d.query("SELECT * FROM v_series")
    assert series["duplicate_conflicts"] == 1 and series["revision"] == 1
    (stored,) = [p for p in (d.root / "series").rglob("*.dcm")
                 if p.stem == pydicom.dcmread(files[0]).SOPInstanceUID]
    assert stored.read_bytes() == files[0].read_bytes()


def test_two_echoes_are_two_stacks_and_two_results(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6", "--echoes", "2")
    d = daemon().start()
    drop(files, d.inbox)
    jobs = d.wait_jobs(2)
    assert [j["state"] for j in jobs] == ["DONE", "DONE"]
    assert len({j["stack"] for j in jobs}) == 2
    assert len({pydicom.dcmread(seg_path(d, j)).SeriesInstanceUID for j in jobs}) == 2


@pytest.mark.parametrize("option,code", [
    (("--gap", "3"), "MISSING_SLICE"),
    (("--duplicate", "3"), "DUPLICATE_POSITION"),
    (("--tilt", "50"), "GANTRY_TILT"),
])
def test_the_gate_refuses_by_name(daemon, tmp_path, option, code):
    files = phantom(tmp_path / "series", "--size", "32x32x10", *option)
    d = daemon(quiet=600.0).start()
    drop(files, d.inbox)
    d.declare_complete(files)
    row = wait_for(lambda: d.query("SELECT * FROM v_series WHERE state = 'REFUSED'"), 60, "the refusal")[0]
    assert row["code"] == code and row["message"] and row["file_a"]
    assert d.jobs() == []
    shown = json.loads(d.ctl("series", "--json").stdout)
    assert shown[0]["code"] == code


@needs_shared
def test_real_series(daemon):
    d = daemon().start()
    for name in ("ct-head-tilted", "ct-head-5mm"):
        drop(sorted((SHARED / name).glob("*.dcm")), d.inbox / name)
    jobs = d.wait_jobs(2)
    for job in jobs:
        assert job["state"] == "DONE", job["message"]
        if "straightened" not in job["note"]:  # its patient module is invalid in the source
            assert_valid(seg_path(d, job))
    assert ["straightened" in job["note"] for job in jobs].count(True) == 1


@pytest.mark.parametrize("after", ["delete", "move"])
def test_originals_are_handled_as_configured(daemon, tmp_path, after):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon()
    text = d.config.read_text().replace('after = "keep";', f'after = "{after}"; ' + (
        f'move_to = "{tmp_path / "done"}";' if after == "move" else ""))
    d.config.write_text(text)
    d.start()
    drop(files, d.inbox / "sub")
    (d.inbox / "junk.dcm").write_bytes(b"not DICOM")
    d.wait_jobs()
    wait_for(lambda: not [p for p in d.inbox.rglob("*") if p.is_file()], 60, "the empty inbox")
    if after == "move":
        moved = sorted(p.name for p in (tmp_path / "done").rglob("*.dcm") if p.name != "junk.dcm")
        assert moved == [f.name for f in files]
    (row,) = d.query("SELECT * FROM v_quarantine")
    assert row["code"] == "NOT_DICOM"


def test_a_series_is_whole_or_refused(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x8")
    d = daemon(quiet=600.0).start()
    drop(files[:-1], d.inbox)
    d.declare_complete(files[:-1])
    (row,) = wait_for(lambda: d.query("SELECT * FROM v_series WHERE state = 'REFUSED'"), 60, "the refusal")
    assert row["code"] == "INCOMPLETE_SERIES" and "7 of the 8 images" in row["message"]
    assert d.jobs() == []
    drop(files[-1:], d.inbox)
    (job,) = d.wait_jobs()
    assert (job["state"], job["revision"]) == ("DONE", 2)


def test_settling_survives_a_restart(daemon, tmp_path):
    files = uncounted(phantom(tmp_path / "series", "--size", "32x32x6"))
    clock = Clock(tmp_path)
    d = daemon(quiet=45.0, environment=clock.environment).start()
    drop(files, d.inbox)
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE instances = 6"), 60, "the instances")
    d.kill_all()
    d.start()
    d.wait_log("event=child.ready child=intake", 2)  # the quiet time starts again
    clock.pass_time(46)
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"


def test_a_restart_reads_only_changed_files(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x8")
    d = daemon(quiet=3600.0).start()
    drop(files, d.inbox / "a")
    wait_for(lambda: d.query("SELECT count(*) FROM instance")[0][0] == 8, 60, "its instances")
    stored = {row["sop_instance_uid"]: d.root / row["path"] for row in d.query("SELECT * FROM instance")}

    def restart(arrived, recovered=0):
        """Restarts the daemon. Checks the numbers of files that it opens and reports, in the inbox and in series/."""
        d.stop()
        at = len(d.log.read_bytes())
        d.start()

        def log():
            return d.log.read_bytes()[at:].decode()

        wait_for(lambda: "event=inbox.swept" in log() and log().count("event=file.arrived") >= arrived, 60, "the files")
        wait_for(lambda: "event=recover.done" in log(), 60, "the end of the recovery")
        d.stop()  # current files are stored first
        assert log().count("event=file.arrived") == arrived
        assert int(re.search(r"event=recover.done files=(\d+)", log())[1]) == recovered

    restart(0)
    names = sorted(path.name for path in (d.inbox / "a").iterdir())
    (d.inbox / "a" / names[0]).rename(d.inbox / "a" / "renamed.dcm")
    os.utime(d.inbox / "a" / names[1])
    gone = stored[pydicom.dcmread(d.inbox / "a" / names[2]).SOPInstanceUID]
    gone.unlink()
    (d.inbox / "a" / names[3]).unlink()
    drop(phantom(tmp_path / "other", "--size", "32x32x2", "--seed", "2"), d.inbox / "b")
    restart(1 + 1 + 1 + 2)
    assert gone.exists(), "its original has brought it back"
    assert d.query("SELECT count(*) FROM kept")[0][0] == 9
    restart(0)
    with contextlib.closing(sqlite3.connect(d.root / "noctule.db")) as db:
        db.execute("DELETE FROM kept WHERE file IN (SELECT file FROM kept ORDER BY file LIMIT 4)")
        db.execute("UPDATE kept SET look = look + 1 WHERE file = (SELECT max(file) FROM kept)")
        db.commit()
    restart(5)  # files with a missing or different row are read
    restart(0)
    with contextlib.closing(sqlite3.connect(d.root / "noctule.db")) as db:
        db.execute("PRAGMA foreign_keys = ON")
        path = str(gone.relative_to(d.root))
        db.execute("UPDATE series SET instances = instances - 1, frames = frames - 1 "
                   "WHERE id = (SELECT series_id FROM instance WHERE path = ?)", [path])
        db.execute("DELETE FROM instance WHERE path = ?", [path])
        db.commit()
    restart(0, 1)  # a file without a row, received once before


def test_an_operator_completes_a_series(daemon, tmp_path):
    files = uncounted(phantom(tmp_path / "series", "--size", "32x32x6"))
    d = daemon(quiet=600).start()
    drop(files, d.inbox)
    (row,) = wait_for(lambda: d.query("SELECT * FROM v_series WHERE instances = 6"), 60, "the instances")
    d.ctl("complete", row["series_uid"])
    d.wait_jobs()
    (row,) = d.query("SELECT * FROM v_series")
    assert "operator" in row["evidence"]


@released_only
def test_ten_thousand_files_do_not_stall_the_service(daemon, tmp_path):
    source = tmp_path / "source"
    run_program("noctule-phantom", "--output", source, "--size", "16x16x100", "--count", "100")
    files = sorted(source.rglob("*.dcm"))
    assert len(files) == 10_000
    d = daemon(quiet=1.0).start()
    target = d.inbox / "flood"
    source.rename(target)
    answered, done = 0, 0  # while files arrive
    deadline = time.monotonic() + 300
    while done < 10_000:
        d.ctl("status")
        done = d.query("SELECT coalesce(sum(instances), 0) FROM v_series")[0][0]
        answered += 0 < done < 10_000
        assert time.monotonic() < deadline, f"{done} of 10000 after 300 s"
    assert answered >= 1
    jobs = d.wait_jobs(100, seconds=300)
    assert {j["state"] for j in jobs} <= {"DONE", "EMPTY"}
    assert d.query("SELECT sum(instances) FROM v_series")[0][0] == 10_000


def test_readers_may_hold_long_transactions(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon().start()
    reader = sqlite3.connect(f"file:{d.root / 'noctule.db'}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM v_jobs").fetchone() == (0,)
    drop(files, d.inbox)
    d.wait_jobs()
    assert reader.execute("SELECT count(*) FROM v_jobs").fetchone() == (0,)
    reader.execute("COMMIT")
    assert reader.execute("SELECT count(*) FROM v_jobs").fetchone() == (1,)


def test_an_empty_result_is_reported(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon()
    d.config.write_text(d.config.read_text().replace("[ 0.0, 80.0 ]", "[ 30000.0, 30001.0 ]"))
    d.start()
    drop(files, d.inbox)
    (job,) = d.wait_jobs()
    assert job["state"] == "EMPTY" and job["code"] == "EMPTY" and job["message"]
    assert not job["result_path"]
    assert not list((d.root / "outbox").rglob("*.dcm"))


def test_drain_gives_running_jobs_back(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "512x512x60")
    d = daemon(quiet=600.0).start()
    d.wait_log("event=child.ready child=worker")
    d.ctl("pause")
    drop(files, d.inbox)
    wait_for(lambda: d.jobs("READY"), 60, "a job that waits")
    with Stopped(d):  # the job is RUNNING until the worker continues
        d.ctl("resume")
        wait_for(lambda: d.jobs("RUNNING"), 60, "a running job")
        d.process.send_signal(signal.SIGTERM)
        d.wait_log("event=daemon.draining")
    assert d.stop() == 0
    (job,) = d.jobs()
    assert job["state"] in ("DONE", "READY")
    assert not list(d.root.rglob("*.part"))
    d.start()
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"


def test_reload(daemon, tmp_path):
    d = daemon().start()
    good = d.config.read_text()
    d.config.write_text(good + "\nno_such_option = 1;\n")
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'RELOAD_FAILED'"), 60, "the refusal")
    d.wait_log("no_such_option")

    d.config.write_text(good.replace("[ 0.0, 80.0 ]", "[ 30000.0, 30001.0 ]"))
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'RELOAD'"), 60, "the reload")
    drop(phantom(tmp_path / "series", "--size", "32x32x6"), d.inbox)
    (job,) = d.wait_jobs()
    assert job["state"] == "EMPTY"


def test_retry_and_cancel(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon().start()
    drop(files, d.inbox)
    (job,) = d.wait_jobs()
    asked = d.ctl("retry", job["job"], check=False)
    assert asked.returncode == 1 and "--force" in asked.stderr
    d.ctl("retry", "--force", job["job"])
    old, new = wait_for(lambda: len(d.jobs("DONE")) == 2 and d.jobs(), 60, "the second run")
    assert new["result_sop_instance_uid"] == old["result_sop_instance_uid"]
    assert (old["superseded_by"], new["superseded_by"]) == (new["job"], None)
    assert d.ctl("cancel", job["job"], check=False).returncode != 0
    assert d.ctl("show", job["job"], "--json").stdout
    assert d.ctl("show", 4711, check=False).returncode == 3


def test_a_second_daemon_is_refused(daemon):
    d = daemon().start()
    result = subprocess.run([*d.process.args], capture_output=True, text=True, timeout=60)
    assert result.returncode not in (0, 1) and result.returncode > 0
    assert str(d.root) in result.stderr
    assert d.process.poll() is None

"""If a process is killed at a named point, only its current attempt is repeated."""

import contextlib
import os
import random
import signal
import time

import pytest
import upper_layer
from conftest import PEERS, drop, phantom, wait_for

POINTS = {
    "worker": ["worker_before_read", "worker_after_compute", "worker_in_write", "worker_after_rename",
               "worker_before_done"],
    "intake": ["intake_after_copy_before_rename", "intake_after_rename_before_arrived",
               "intake_after_arrived", "intake_after_stored_before_original"],
    "daemon": ["daemon_before_commit", "daemon_after_commit_before_reply",
               "daemon_after_running_before_run", "daemon_after_done_before_commit"],
}


def assert_whole(d, slices):
    """Checks for one result of the one series, each instance once, no partial files, and no remaining process."""
    (job,) = d.jobs()
    assert job["state"] == "DONE", job["message"]
    assert job["attempts"] <= 2
    (series,) = d.query("SELECT * FROM v_series")
    assert series["instances"] == slices and series["revision"] == 1
    assert not list(d.root.rglob("*.part"))
    assert [p.name for p in (d.root / "outbox").rglob("*.dcm")] == ["seg.dcm"]
    assert len(list((d.root / "series").rglob("*.dcm"))) == slices
    assert d.query("PRAGMA integrity_check")[0][0] == "ok"


# With keep the original is never touched, so one point is not reached.
CASES = [(role, point, after) for role, points in POINTS.items() for point in points
         for after in ("keep", "delete") if (point, after) != ("intake_after_stored_before_original", "keep")]


@pytest.mark.parametrize("role,point,after", CASES)
def test_killed_at(daemon, tmp_path, role, point, after):
    files = phantom(tmp_path / "series", "--size", "48x40x8")
    once = tmp_path / "crashed"
    # the series is complete by its count, because a crash at the quiet time could make two revisions
    d = daemon(after=after, quiet=600.0,
               environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
    d.start(wait=role != "daemon")
    if role == "daemon":
        wait_for(lambda: d.process.poll() is not None or d.answers(), 60, "the daemon")
    drop(files, d.inbox)
    wait_for(once.exists, 60, f"the crash at {point}")
    if role == "daemon":
        d.process.wait(30)
        assert d.process.returncode == -signal.SIGKILL
        d.start()
    d.wait_jobs()
    wait_for(lambda: d.jobs("DONE"), 60, "DONE")
    if after == "delete":
        wait_for(lambda: not list(d.inbox.rglob("*.dcm")), 60, "the empty inbox")
    assert_whole(d, len(files))
    children = d.children()
    assert d.stop() == 0
    for pid in children:
        assert not os.path.exists(f"/proc/{pid}"), "a child outlived the daemon"


def test_a_refused_instance_gets_its_missing_row_at_the_next_start(daemon, tmp_path):
    """The sender does not repeat the instance. The quarantined file must have its row after the next start."""
    once = tmp_path / "crashed"
    d = daemon(dicom=PEERS, environment={"NOCTULE_CRASH_AT": "intake_after_rename_before_arrived",
                                         "NOCTULE_CRASH_ONCE": str(once)}).start()
    with contextlib.suppress(OSError, EOFError), upper_layer.associated(d.port) as peer:
        peer.store(b"no data set at all" * 300, "1.2.3")
    wait_for(once.exists, 60, "the crash")
    wait_for(lambda: d.children("intake"), 60, "the intake that follows")
    assert not d.query("SELECT * FROM v_quarantine")
    assert d.stop() == 0
    d.start()
    (row,) = d.query("SELECT * FROM v_quarantine")
    assert row["code"] == "FILE_UNREADABLE" and "was stopped" in row["message"]
    assert (d.root / row["path"]).is_file()


def test_children_die_with_the_daemon(daemon):
    d = daemon().start()
    children = wait_for(lambda: len(d.children()) >= 2 and d.children(), 60, "the children")
    d.process.kill()
    d.process.wait()
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), 60, "their end")


def test_a_job_that_always_kills_its_worker_fails(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon(quiet=600.0, attempts=2, environment={"NOCTULE_CRASH_AT": "worker_before_read"}).start()
    drop(files, d.inbox)
    (job,) = d.wait_jobs()
    assert (job["state"], job["code"], job["attempts"]) == ("FAILED", "CRASHED", 2)
    assert d.process.poll() is None
    assert d.ctl("status").returncode == 0


@pytest.mark.parametrize("role", ["intake", "worker"])
def test_random_kills_lose_no_result(daemon, tmp_path, role):
    files = [phantom(tmp_path / f"series{i}", "--size", "64x64x10", "--seed", str(i + 1)) for i in range(6)]
    chance = random.Random(role)
    d = daemon(quiet=600.0, attempts=20).start()
    for i, each in enumerate(files):
        # children that die before they are ready restart with growing delays
        d.wait_log(f"event=child.ready child={role}", i + 1)
        drop(each, d.inbox / str(i))
        time.sleep(chance.uniform(0, 0.4))  # the moment of the kill is random
        (pid,) = d.children(role)
        os.kill(pid, signal.SIGKILL)
    jobs = d.wait_jobs(6, seconds=120)
    assert [j["state"] for j in jobs] == ["DONE"] * 6
    assert d.query("SELECT sum(instances) FROM v_series")[0][0] == 60

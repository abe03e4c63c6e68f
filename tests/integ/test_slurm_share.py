"""A stalled or full shared folder, under a real Slurm of the test: jobs wait or are tried again."""

import hashlib
import os
import signal
import subprocess

import pytest
from cluster import cluster, waiting  # noqa: F401, the fixture
from conftest import BIN, small_file_system, stalling_file_system, wait_for
from test_slurm import assert_once, attempts, drop_all, many, move_in, on_slurm, settings, wait_swept


def gate(folder):
    """A program that starts its step when folder/go exists."""
    path = folder / "gate"
    path.write_text(f'#!/bin/sh\n{waiting(folder / "go")}\nexec {BIN}/noctule "$@"\n')
    path.chmod(0o755)
    return path


def wait_running(site, count=1):
    """Waits for the start on the node. RUNNING only means that Slurm has assigned the node."""
    wait_for(lambda: list(site.jobs().values()).count("RUNNING") == count <= len(site.steps()), 90, "steps that run")


def test_images_on_the_share_are_not_copied(daemon, cluster, tmp_path):
    """The root is on the share, so nodes read its series by the same path."""
    site = cluster()
    d = on_slurm(daemon, site, settings(site, program=gate(tmp_path), share=tmp_path)).start()
    drop_all(d, many(tmp_path / "in", 2))
    wait_running(site, 2)
    folders = list(tmp_path.glob("noctule-*/job-*"))
    assert len(folders) == 2 and not any((folder / "inputs").exists() for folder in folders)
    (tmp_path / "go").touch()
    d.wait_jobs(2)
    assert [job["attempts"] for job in d.jobs()] == [1, 1]
    assert_once(d, 2)


@pytest.mark.parametrize("seen", [True, False])
def test_an_image_changed_after_reception(daemon, cluster, tmp_path, seen):
    """Its digest was taken at reception, so the step detects the change, with a visible root or with copies."""
    site = cluster()
    d = on_slurm(daemon, site, settings(site, share=tmp_path if seen else None)).start()
    d.ctl("pause", "--reason", "to be altered")
    drop_all(d, many(tmp_path / "in", 1))
    wait_for(lambda: d.jobs("READY"), 60, "a job that waits")
    stored = d.query("SELECT path, sha256 FROM v_instances")
    assert len(stored) == 8
    for path, digest in stored:
        assert digest == hashlib.sha256((d.root / path).read_bytes()).hexdigest()
    with open(d.root / stored[0][0], "r+b") as image:
        image.seek(-1, os.SEEK_END)
        image.write(b"!")
    d.ctl("resume")
    wait_for(lambda: d.query("SELECT 1 FROM v_jobs WHERE code = 'ATTEMPT_FILE_DIFFERS'"), 60, "a step that finds it")
    assert not d.jobs("DONE")


@pytest.mark.parametrize("until", ["step", "manifest"])
def test_a_stalled_share(daemon, cluster, tmp_path, until):
    """The daemon replies and receives series meanwhile. After the stall its jobs continue, each once."""
    site = cluster()
    with stalling_file_system(tmp_path / "stalling", 64) as share:
        d = on_slurm(daemon, site, settings(site, program=gate(tmp_path), share=share.folder)).start()
        drop_all(d, many(tmp_path / "in", 2))
        wait_running(site, 2)
        if until == "manifest":  # the steps have ended, and the daemon is about to check
            d.process.send_signal(signal.SIGSTOP)
            (tmp_path / "go").touch()
            wait_for(lambda: len(list(share.folder.rglob("manifest"))) == 2, 90, "manifests")
        share.stall()
        try:
            (tmp_path / "go").touch()
            d.process.send_signal(signal.SIGCONT)
            move_in(d, many(tmp_path / "later", 3)[2])
            wait_for(lambda: len(d.jobs()) == 3, 90, "a job of the series that came meanwhile")
            assert d.ctl("ping").returncode == 0
            assert not d.jobs("FAILED") and not d.jobs("DELAYED")
        finally:
            share.resume()
        d.wait_jobs(3, seconds=120)
        assert_once(d, 3)
        assert [job["attempts"] for job in d.jobs()] == [1, 1, 1]
        d.stop()


def test_results_without_room_on_the_share(daemon, cluster, tmp_path):
    """The step reports this in its manifest, or cannot even write that. Another attempt follows when there is room."""
    site = cluster()
    with small_file_system(tmp_path / "small", 2) as small:
        d = on_slurm(daemon, site, settings(site, program=gate(tmp_path), share=small)).start()
        drop_all(d, many(tmp_path / "in", 1))
        wait_running(site)
        (folder,) = (path for path in small.rglob("job-*") if path.is_dir())
        room = os.statvfs(small)
        (small / "filler").write_bytes(bytes(room.f_bavail * room.f_bsize))
        (tmp_path / "go").touch()
        wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind IN ('JOB_DELAYED', 'JOB_RETURNED')"), 120,
                 "the end of the attempt")
        assert not list(folder.rglob("manifest"))
        (small / "filler").unlink()
        (job,) = d.wait_jobs(1, seconds=120)
        assert job["attempts"] >= 2
        assert_once(d, 1)
        d.stop()


def test_a_step_run_twice(daemon, cluster, tmp_path):
    """As after a requeue: both copies end, one result counts, and the other copy has no later effect."""
    site = cluster()
    d = on_slurm(daemon, site, settings(site, program=gate(tmp_path))).start()
    drop_all(d, many(tmp_path / "in", 1))
    wait_running(site)
    (folder,) = attempts(site)
    other = subprocess.Popen([tmp_path / "gate", "run-job", "--scratch", tmp_path, folder], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    (tmp_path / "go").touch()
    told, _ = other.communicate(timeout=120)
    assert "has a manifest" in told or "was voided" in told or "was left" in told, told
    (job,) = d.wait_jobs(1)
    assert job["attempts"] == 1
    assert_once(d, 1)
    wait_swept(site)

"""The stage of a running job in v_jobs, the command line and the web UI. Other jobs have no stage."""

import os
import re
import signal

import pytest
from conftest import drop, phantom, wait_for
from test_daemon import wait_midway
from test_page import Site

# All pairs of voxels: long enough for the worker to report the stage before it stops at the end of the stage.
TEXTURE = 'texture = { levels = 32; resample = { isotropic_mm = 2.5; }; families = [ "spatial-correlation" ]; };'
SIZE = ("--size", "160x160x60")
STOPS = {"NOCTULE_CRASH_AT": "worker_after_compute", "NOCTULE_CRASH_STOPS": ""}


def measuring(d, attempt=1):
    """Waits for a job in the stage texture. Returns the PID of its worker, which has stopped there, and the row of
    v_jobs."""
    pid = wait_midway(d)
    (job,) = wait_for(lambda: [job for job in d.jobs("RUNNING") if job["stage"] == "texture"], 60, "its stage")
    assert job["attempts"] == attempt and job["started_at"] <= job["stage_since"]
    return pid, job


def stages_shown(d):
    """Returns the stage of the only job in each place."""
    ((state, stage, since),) = [(job["state"], job["stage"], job["stage_since"]) for job in d.jobs()]
    return state, stage, since


@pytest.fixture
def site(daemon, tmp_path):
    site = Site(daemon, quiet=600.0, pipeline_extra=TEXTURE, environment=STOPS).start()
    drop(phantom(tmp_path / "in", *SIZE), site.daemon.inbox)
    return site


def test_the_stage_is_shown_in_each_place(site):
    d = site.daemon
    worker, _ = measuring(d)
    assert re.search(r"RUNNING, texture \d+ s", d.ctl("jobs").stdout)
    shown = d.ctl("show", "1").stdout
    assert re.search(r"^stage +texture$", shown, re.M) and re.search(r"^stage_since +20", shown, re.M)
    page = site.page("").data
    assert "Stage" in page and "texture" in page and "Estimate" in page
    os.kill(worker, signal.SIGCONT)
    d.wait_jobs()
    assert stages_shown(d) == ("DONE", "", None)


def test_the_stage_ends_with_the_attempt(site):
    d = site.daemon
    worker, first = measuring(d)
    d.ctl("pause")
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: d.jobs("DELAYED") + d.jobs("READY"), 60, "the end of the attempt")
    assert stages_shown(d)[1:] == ("", None)

    d.ctl("resume")
    _, second = measuring(d, 2)
    assert second["stage_since"] > first["stage_since"]
    d.ctl("pause")
    d.kill_all()  # the daemon too
    d.start()
    assert stages_shown(d)[1:] == ("", None)

    d.ctl("resume")
    worker, third = measuring(d, 3)
    assert third["stage_since"] > second["stage_since"]
    d.ctl("cancel", "1")
    assert stages_shown(d) == ("CANCELLED", "", None)
    os.kill(worker, signal.SIGCONT)
    assert d.stop() == 0

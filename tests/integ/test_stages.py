"""What a running job is at: told while it is, by v_jobs, the command line and the page, and of no job that does not run."""

import os
import re
import signal

import pytest
from conftest import drop, phantom, wait_for
from test_again import Stopped
from test_page import Site

# Some seconds: of all pairs of voxels, each time of others.
GROUP = '{{ levels = 32; resample = {{ isotropic_mm = {}; }}; families = [ "spatial-correlation" ]; }}'
SLOW = "texture = ( " + ", ".join(GROUP.format(mm) for mm in (1.4, 1.5, 1.6, 1.7)) + " );"
SIZE = ("--size", "160x160x60")


def measuring(d, attempt=1):
    """The worker, which does not move any more, and the job that is measured in it, as v_jobs tells it."""
    d.wait_log("stage=texture fraction=0\n", attempt)
    stopped = Stopped(d)
    stopped.__enter__()
    (job,) = wait_for(lambda: [job for job in d.jobs("RUNNING") if job["stage"] == "texture"], 30, "its stage")
    assert job["attempts"] == attempt and job["started_at"] <= job["stage_since"]
    return stopped, job


def told(d):
    """Of the one job there is."""
    ((state, stage, since),) = [(job["state"], job["stage"], job["stage_since"]) for job in d.jobs()]
    return state, stage, since


@pytest.fixture
def site(daemon, tmp_path):
    site = Site(daemon, quiet=0.5, pipeline_extra=SLOW).start()
    drop(phantom(tmp_path / "in", *SIZE), site.daemon.inbox)
    return site


def test_where_it_is_told(site):
    d = site.daemon
    stopped, _ = measuring(d)
    assert re.search(r"RUNNING, texture \d+ s", d.ctl("jobs").stdout)
    shown = d.ctl("show", "1").stdout
    assert re.search(r"^stage +texture$", shown, re.M) and re.search(r"^stage_since +20", shown, re.M)
    page = site.page("queue").data
    assert "STAGE" in page and "texture" in page and "ESTIMATE" in page and "PROGRESS" not in page
    stopped.__exit__()
    d.wait_jobs()
    assert told(d) == ("DONE", "", None)


def test_it_ends_with_the_attempt(site):
    d = site.daemon
    _, first = measuring(d)
    d.ctl("pause")
    (worker,) = d.children("worker")
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: d.jobs("DELAYED") + d.jobs("READY"), 30, "the end of the attempt")
    assert told(d)[1:] == ("", None)

    d.ctl("resume")
    _, second = measuring(d, 2)
    assert second["stage_since"] > first["stage_since"]
    d.ctl("pause")
    d.kill_all()  # the daemon, too
    d.start()
    assert told(d)[1:] == ("", None)

    d.ctl("resume")
    stopped, third = measuring(d, 3)
    assert third["stage_since"] > second["stage_since"]
    d.ctl("cancel", "1")
    assert told(d) == ("CANCELLED", "", None)
    stopped.__exit__()
    assert d.stop() == 0

"""Jobs in Slurm while the daemon, its child `cluster` or a step on its node is killed: each has one result at the
end."""

import signal

import pytest
from cluster import cluster  # noqa: F401, the fixture
from conftest import wait_for
from test_slurm import assert_once, drop_all, many, on_slurm, wait_swept


@pytest.mark.parametrize("point", [
    "cluster_before_sbatch", "cluster_after_sbatch", "cluster_before_results", "cluster_after_results",
    "daemon_after_running_before_run", "daemon_before_submitted", "daemon_before_commit",
    "daemon_after_done_before_commit", "daemon_after_done_after_commit",
    "attempt_before_attempt_file", "step_before_check", "worker_before_read", "worker_after_compute", "worker_in_write", "step_in_copy",
    "step_before_manifest", "step_after_manifest"])
def test_killed_at(daemon, cluster, tmp_path, point):
    """Kills the daemon, its child `cluster`, or the step on its node."""
    site = cluster()
    once = tmp_path / "crashed"
    d = on_slurm(daemon, site, environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
    is_daemon = point.startswith("daemon_")
    d.start(wait=not is_daemon)
    if is_daemon:
        wait_for(lambda: d.process.poll() is not None or d.ctl("ping", check=False).returncode == 0, 60, "the daemon")
    drop_all(d, many(tmp_path / "in", 2))
    wait_for(once.exists, 90, f"the crash at {point}")
    if is_daemon:
        d.process.wait(60)
        assert d.process.returncode == -signal.SIGKILL
        d.start()
    d.wait_jobs(2, states=("DONE", "FAILED"))
    assert_once(d, 2)
    # for these points the record of the attempt decides
    is_lost = point.startswith(("worker_", "step_")) and point != "step_after_manifest"
    assert sum(job["attempts"] for job in d.jobs()) == (3 if is_lost else 2)
    wait_swept(site)

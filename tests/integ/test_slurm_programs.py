"""Programs of the site with jobs in Slurm: a real slurmctld and slurmd of the test (cluster.py)."""

import hashlib
import pathlib

import pytest
from cluster import cluster  # noqa: F401, the fixture
from conftest import BIN, phantom, wait_for
from test_run_programs_cli import BONE, HANG, PICKY, left_over, pipeline, program_row, programs, segments, truth
from test_slurm import move_in, on_slurm, settings, wait_swept

SIZE = ("--size", "40x32x10")


def with_programs(d, folder, rules, *pipelines, text=BONE, **options):
    """Gives the daemon the program and pipelines, and its CT series these pipelines."""
    before = d.config.read_text()
    after = before.replace("pipelines = (", programs(program_row(folder, "bone", text, **options)) + "pipelines = (\n"
                           + ",\n".join(pipelines) + ",")
    matches = ", ".join(f'{{ match = {{ modality = "CT"; }}; pipeline = "{name}"; }}' for name in rules)
    after = after[:after.index("rules = (")] + f"rules = ( {matches} );\n"
    d.config.write_text(after)
    return d


def runs(d):
    return d.query("SELECT * FROM v_program_runs ORDER BY run")


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def seg(d, job):
    return d.root / "outbox" / str(job["job"]) / "seg.dcm"


def test_a_carrier_gives_the_same_bytes(daemon, cluster, tmp_path):
    """The program runs on the node, and the daemon keeps the mask, which a retry takes."""
    site = cluster()
    local = with_programs(daemon(), tmp_path, ["bone"], pipeline("bone", "bone")).start()
    remote = with_programs(on_slurm(daemon, site), tmp_path, ["bone"], pipeline("bone", "bone")).start()
    files = phantom(tmp_path / "in", *SIZE)
    for d in (local, remote):
        move_in(d, files)
        (job,) = d.wait_jobs(1)
        assert job["state"] == "DONE", dict(job)
    assert seg(local, job).read_bytes() == seg(remote, job).read_bytes()
    assert segments(seg(remote, job)) == {"Label 1": truth(files)}
    (here,), (there,) = runs(local), runs(remote)
    assert (here["executor"], there["executor"]) == ("local", "slurm")
    assert here["mask_sha256"] == there["mask_sha256"] == digest(remote.root / "programs" / str(there["run"]) / "mask")
    assert there["state"] == "DONE" and there["program_seconds"] > 0 and there["labelled_voxels"] == truth(files)
    folder = remote.root / "programs" / str(there["run"])
    assert "program program.py" in (folder / "output.txt").read_text()
    assert sorted(path.name for path in seg(remote, job).parent.iterdir()) == ["job.json", "preview.png", "seg.dcm"]
    wait_swept(site)
    remote.ctl("retry", "--force", "1")
    jobs = remote.wait_jobs(2)
    assert [row["state"] for row in jobs] == ["DONE", "DONE"] and len(runs(remote)) == 1
    assert seg(remote, jobs[1]).read_bytes() == seg(remote, jobs[0]).read_bytes()
    remote.ctl("retry", "--program", "2")
    assert [row["state"] for row in remote.wait_jobs(3)] == ["DONE"] * 3
    assert [(row["state"], row["executor"], row["superseded_by"]) for row in runs(remote)] == [
        ("DONE", "slurm", 2), ("DONE", "slurm", None)]
    assert runs(remote)[1]["mask_sha256"] == there["mask_sha256"]
    wait_for(lambda: not folder.exists(), 60, "the removal of the superseded mask")
    assert not left_over(tmp_path)


def test_a_mask_is_an_input_of_a_job_that_may_run_anywhere(daemon, cluster, tmp_path):
    """With executor = "both" the program runs here. The job of one pipeline can run in Slurm only, and takes the mask."""
    site = cluster()
    text = settings(site, executor="both", backlog_jobs=0)
    d = with_programs(on_slurm(daemon, site, text), tmp_path, ["here", "there"],
                      pipeline("here", "bone", extra='unreviewed = true; executor = "local";'),
                      pipeline("there", "bone", extra='unreviewed = true; executor = "slurm";'))
    d.start()
    d.ctl("hold", "--pipeline", "there")
    files = phantom(tmp_path / "in", *SIZE)
    move_in(d, files)
    wait_for(lambda: len(d.jobs("DONE")) == 1, 90, "the local job")
    d.ctl("release", "--pipeline", "there")
    here, there = d.wait_jobs(2)
    assert {job["state"] for job in (here, there)} == {"DONE"}
    assert {job["pipeline"]: job["executor"] for job in (here, there)} == {"here": "local", "there": "slurm"}
    (run,) = runs(d)
    assert run["executor"] == "local"
    for job in (here, there):
        assert segments(seg(d, job)) == {"Label 1": truth(files)}


def test_another_program_on_the_node_is_refused(daemon, cluster, tmp_path):
    """The step sees another file at the program's path."""
    site = cluster()
    step = tmp_path / "step"
    place = tmp_path / "bone" / "program.py"
    step.write_text(f'#!/bin/sh\necho "# another version" >> {place}\nexec {BIN}/noctule "$@"\n')
    step.chmod(0o755)
    d = with_programs(on_slurm(daemon, site, settings(site, program=step), attempts=1), tmp_path, ["bone"],
                      pipeline("bone", "bone")).start()
    move_in(d, phantom(tmp_path / "in", *SIZE))
    (job,) = d.wait_jobs(1)
    assert (job["state"], job["code"]) == ("FAILED", "PROGRAM_CHANGED"), dict(job)
    assert job["message"].startswith("on node node0: ")
    assert not [row for row in runs(d) if row["state"] in ("RUNNING", "DONE")]
    assert not seg(d, job).exists()


def test_a_program_that_fails_on_the_node(daemon, cluster, tmp_path):
    """Its code is that of the job. The log of the task has the end of its output."""
    site = cluster()
    d = with_programs(on_slurm(daemon, site), tmp_path, ["bone"], pipeline("bone", "bone"), text=PICKY).start()
    move_in(d, phantom(tmp_path / "in", "--size", "32x32x6"))
    (job,) = d.wait_jobs(1)
    assert (job["state"], job["code"]) == ("FAILED", "PROGRAM_FAILED"), dict(job)
    (log,) = site.share.rglob("task-*.log")
    assert "this one not" in log.read_text()
    move_in(d, phantom(tmp_path / "in2", *SIZE))
    assert [row["state"] for row in d.wait_jobs(2)] == ["FAILED", "DONE"]
    assert not left_over(tmp_path)


def test_two_jobs_share_the_run_of_one_carrier(daemon, cluster, tmp_path):
    """Both can run in Slurm only. The second waits for the first, and takes its mask as an input."""
    site = cluster()
    d = with_programs(on_slurm(daemon, site), tmp_path, ["a", "b"], pipeline("a", "bone"), pipeline("b", "bone")).start()
    files = phantom(tmp_path / "in", *SIZE)
    move_in(d, files)
    jobs = d.wait_jobs(2)
    assert [job["state"] for job in jobs] == ["DONE", "DONE"] and {job["executor"] for job in jobs} == {"slurm"}
    (run,) = runs(d)
    assert (run["state"], run["executor"], run["attempts"]) == ("DONE", "slurm", 1)
    for job in jobs:
        assert segments(seg(d, job)) == {"Label 1": truth(files)}


def test_a_lost_step_returns_the_run(daemon, cluster, tmp_path):
    """The next attempt of the job carries it again."""
    site = cluster()
    step = tmp_path / "step"
    step.write_text(f'#!/bin/sh\n[ -e {tmp_path}/lost ] || {{ touch {tmp_path}/lost; exit 1; }}\nexec {BIN}/noctule "$@"\n')
    step.chmod(0o755)
    d = with_programs(on_slurm(daemon, site, settings(site, program=step)), tmp_path, ["bone"],
                      pipeline("bone", "bone")).start()
    move_in(d, phantom(tmp_path / "in", *SIZE))
    (job,) = d.wait_jobs(1)
    assert (job["state"], job["attempts"]) == ("DONE", 2)
    (run,) = runs(d)
    assert (run["state"], run["attempts"]) == ("DONE", 2) and run["mask_sha256"]


def test_a_cancelled_carrier_ends_its_program(daemon, cluster, tmp_path):
    site = cluster()
    d = with_programs(on_slurm(daemon, site), tmp_path, ["bone"], pipeline("bone", "bone"), text=HANG).start()
    move_in(d, phantom(tmp_path / "in", *SIZE))
    wait_for(lambda: left_over(tmp_path), 90, "the program")
    d.ctl("cancel", "1")
    wait_for(lambda: not left_over(tmp_path), 90, "the end of the program")
    (job,) = d.wait_jobs(1)
    assert job["state"] == "CANCELLED"
    wait_for(lambda: [run["state"] for run in runs(d)] == ["CANCELLED"], 60, "the end of the run")
    wait_swept(site)


@pytest.mark.parametrize("point", ["cluster_after_results", "daemon_after_done_before_commit",
                                   "daemon_after_done_after_commit"])
def test_a_daemon_killed_at_the_end_keeps_one_mask(daemon, cluster, tmp_path, point):
    site = cluster()
    d = with_programs(on_slurm(daemon, site, environment={"NOCTULE_CRASH_AT": point,
                                                          "NOCTULE_CRASH_ONCE": str(tmp_path / "crashed")}),
                      tmp_path, ["bone"], pipeline("bone", "bone")).start()
    files = phantom(tmp_path / "in", *SIZE)
    move_in(d, files)
    wait_for((tmp_path / "crashed").exists, 90, "the crash")
    if point.startswith("daemon"):
        d.process.wait(60)
        d.kill_all()
        d.start()
    (job,) = d.wait_jobs(1)
    assert (job["state"], job["attempts"]) == ("DONE", 1) and segments(seg(d, job)) == {"Label 1": truth(files)}
    (run,) = runs(d)
    assert (run["state"], run["attempts"]) == ("DONE", 1)
    folder = d.root / "programs" / str(run["run"])
    assert run["mask_sha256"] == digest(folder / "mask")
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert sorted(path.name for path in seg(d, job).parent.iterdir()) == ["job.json", "preview.png", "seg.dcm"]
    wait_swept(site)


def test_a_waiting_job_carries_the_run_of_a_failed_carrier(daemon, cluster, tmp_path):
    """Both jobs can run in Slurm only, so that the program must not run here."""
    site = cluster()
    d = with_programs(on_slurm(daemon, site), tmp_path, ["a", "b"], pipeline("a", "bone"), pipeline("b", "bone"),
                      text=PICKY).start()
    move_in(d, phantom(tmp_path / "in", "--size", "32x32x6"))
    jobs = d.wait_jobs(2)
    assert [(job["state"], job["code"], job["executor"]) for job in jobs] == [("FAILED", "PROGRAM_FAILED", "slurm")] * 2
    assert {run["executor"] for run in runs(d)} == {"slurm"} or not d.log.read_text().count("event=program.started")

"""Jobs in Slurm: a real slurmctld and real slurmd processes of the test (cluster.py)."""

import contextlib
import functools
import hashlib
import json
import pathlib
import shutil
import signal
import sqlite3
import tempfile
import time

import pytest
from cluster import SOON, cluster, multiply_job, played, waiting  # noqa: F401, the fixture
from conftest import BIN, drop, phantom, run_program, small_file_system, wait_for
from test_page import Site
from test_review import expecting

SIZE = ("--size", "48x40x8")


def settings(site, executor="slurm", program=BIN / "noctule", share=None, **options):
    lines = " ".join(f"{name} = {json.dumps(value)};" for name, value in {"poll_seconds": 0.2, **options}.items())
    return (f'compute = {{ lanes = 2; executor = "{executor}"; slurm = {{ share = "{share or site.share}"; '
            f'program = "{program}"; {lines} }}; }};\n')


def on_slurm(make, site, text=None, environment=None, **options):
    """A daemon with that Slurm configured."""
    d = make(environment={**site.environment, **(environment or {})}, **options)
    before = d.config.read_text()
    for old, new in (("compute = { lanes = 2; };\n", text or settings(site)),
                     ("complete_seconds = 0.3", "complete_seconds = 0.05")):
        assert old in before
        before = before.replace(old, new)
    d.config.write_text(before)
    return d


def wait_worker(d):
    """Waits for the worker. Before that the daemon has no room for local jobs, and all jobs would go to Slurm."""
    d.wait_log("event=child.ready child=worker", seconds=60)


def drop_together(d, made):
    """Makes jobs of all these series READY while the queue is paused, so that one pass of the scheduler selects them
    together."""
    before = len(d.jobs())
    d.ctl("pause", "--reason", "so that they come together")
    drop_all(d, made)
    wait_for(lambda: len(d.jobs()) == before + len(made) and len(d.jobs("READY")) >= len(made), 90, "jobs that wait")
    d.ctl("resume")


def many(folder, count):
    return [phantom(folder / str(i), *SIZE, "--seed", i + 1) for i in range(count)]


def move_in(d, files):
    """Renames copies into the inbox, so that the receiver need not wait for stable sizes."""
    copies = pathlib.Path(tempfile.mkdtemp(dir=d.folder))
    drop(files, copies)
    for path in copies.iterdir():
        path.rename(d.inbox / f"{copies.name}-{path.name}")


def drop_all(d, made):
    for files in made:
        move_in(d, files)


def results(d):
    """Returns {(series, file): SHA-256} of all result objects."""
    return {(job["series_uid"], path.name): hashlib.sha256(path.read_bytes()).hexdigest()
            for job in d.jobs() for path in (d.root / "outbox" / str(job["job"])).glob("*.dcm")}


def attempts(site):
    """Returns the attempt folders on the share."""
    return list(site.share.glob("noctule-*/job-*"))  # not deeper, because they are being removed


def assert_once(d, count):
    """Checks that every job has one result, recorded once, and that no partial file remains."""
    assert [job["state"] for job in d.jobs()] == ["DONE"] * count, [dict(job) for job in d.jobs()]
    assert d.query("SELECT count(*) FROM v_events WHERE kind = 'JOB_DONE'")[0][0] == count
    assert d.query("SELECT count(*) FROM v_results WHERE kind = 'seg'")[0][0] == count
    assert len(list((d.root / "outbox").rglob("seg.dcm"))) == count
    assert not list(d.root.rglob("*.part"))


def wait_swept(site):
    wait_for(lambda: not attempts(site), 90, "the end of the attempts' folders")


def test_results_equal_those_of_a_local_worker(daemon, cluster, tmp_path):
    """Results are equal byte for byte."""
    site = cluster(nodes=2)
    local, remote = daemon(), on_slurm(daemon, site)
    made = many(tmp_path / "in", 4)
    for d in (local, remote):
        d.start()
        drop_all(d, made)
        d.wait_jobs(4)
        assert_once(d, 4)
    assert results(local) == results(remote) and len(results(local)) == 4
    for job in remote.jobs():
        assert (job["executor"], job["slurm_state"], job["attempts"]) == ("slurm", "", 1)
        assert job["slurm_id"] and job["node"] in site.names and job["submitted_at"]
    assert {job["executor"] for job in local.jobs()} == {"local"}
    kinds = [row["kind"] for row in remote.query("SELECT kind FROM v_events WHERE job = 1 ORDER BY event")]
    assert kinds == ["JOB_ADDED", "JOB_STARTED", "JOB_SUBMITTED", "JOB_DONE"]
    wait_swept(site)
    assert not list(site.share.rglob("*.log"))


@pytest.mark.parametrize("compression", ["none", "rle", "deflated"])
def test_every_object_equals_that_of_a_local_worker(daemon, cluster, tmp_path, compression):
    """Label map, structure set, pictures, report, NIfTI files, responses of filters and maps of features; job.json has times."""
    site = cluster(nodes=1)
    extra = (f'results = [ "seg", "labelmap", "rtstruct", "picture", "sr", "nifti" ]; compression = "{compression}"; '
             'texture = ( { first_order = true; bin_width = 25.0; discretisation = "fixed-bin-size"; }, '
             '{ levels = 16; first_order = false; filter = { kind = "log"; sigma_mm = 3.0; }; '
             'response = [ "pmap", "nifti" ]; voxelwise = { files = [ "pmap", "nifti" ]; glcm = [ "contrast" ]; }; } );')
    written = []
    for d in (daemon(pipeline_extra=extra), on_slurm(daemon, site, pipeline_extra=extra)):
        d.start()
        drop_all(d, many(tmp_path / str(len(written)), 1))
        (job,) = d.wait_jobs(1)
        assert job["state"] == "DONE", job["message"]
        folder = d.root / "outbox" / str(job["job"])
        written.append({path.name: path.read_bytes() for path in folder.iterdir() if path.name != "job.json"})
    assert job["executor"] == "slurm"
    assert written[0] == written[1]
    assert {"seg.dcm", "labelmap.dcm", "rtstruct.dcm", "picture.dcm", "picture-overview.dcm", "sr.dcm", "volume.nii.gz",
            "labels.nii.gz", "labels.json", "preview.png"} <= set(written[0])
    assert len([name for name in written[0] if name.endswith(".nii.gz")]) == 4 and len(written[0]) >= 14, sorted(written[0])


@pytest.mark.parametrize("state, options", [("DONE", "slices = true;"), ("REVIEW", "")])
def test_slices_of_a_node_are_shown(daemon, cluster, tmp_path, state, options):
    """The file of the slice viewer is that of a local worker, and the web UI reads planes of it. Jobs under review have it always."""
    site = cluster(nodes=1)
    written = []
    for make in (daemon, functools.partial(on_slurm, daemon, site)):
        ui = Site(make, options)
        if state == "REVIEW":
            expecting(ui.daemon)
        ui.start()
        drop_all(ui.daemon, many(tmp_path / str(len(written)), 1))
        (job,) = ui.daemon.wait_jobs(1, states=(state,))
        planes = f"api/v1/jobs/{job['job']}/planes"
        written.append([(ui.daemon.root / "outbox" / str(job["job"]) / "slices.nslc").read_bytes(),
                        *(ui.get(f"{planes}/{plane}")[1] for plane in ("ax/3", "cor/20.png", "sag/47"))])
        assert ui.get(f"{planes}/ax/8", 404)
    assert job["executor"] == "slurm"
    assert written[0] == written[1]


def test_a_restarted_daemon_adopts_running_jobs(daemon, cluster, tmp_path):
    """Jobs continue in Slurm meanwhile. No attempt is repeated, and finished ones have their results."""
    site = cluster(cpus=1)
    d = on_slurm(daemon, site).start()
    site.set_partition("DOWN")  # Slurm accepts jobs and starts none
    drop_all(d, many(tmp_path / "in", 3))
    wait_for(lambda: len([job for job in d.jobs() if job["slurm_state"] == "SUBMITTED"]) == 3, 90, "SUBMITTED")
    d.kill_all()
    site.set_partition("UP")
    wait_for(lambda: list(site.jobs().values()) == ["COMPLETED"] * 3, 90, "the end of the Slurm jobs")
    d.start()
    d.wait_jobs(3)
    assert_once(d, 3)
    assert [job["attempts"] for job in d.jobs()] == [1, 1, 1] and len(site.jobs()) == 3


def test_a_restarted_controller(daemon, cluster, tmp_path):
    site = cluster(asking=SOON)
    d = on_slurm(daemon, site).start()
    site.kill("slurmctld")
    drop_together(d, many(tmp_path / "in", 2))
    wait_for(lambda: len([job for job in d.jobs() if job["slurm_state"] == "SUBMITTING"]) == 2, 90, "SUBMITTING")
    site.start_controller()
    d.wait_jobs(2, seconds=180)
    assert_once(d, 2)


def test_a_dead_node_costs_one_attempt(daemon, cluster, tmp_path):
    """The dead node's result arrives late, under an invalid nonce. The result of the other node counts."""
    site = cluster(nodes=2, cpus=1)
    slow, release = tmp_path / "slow", tmp_path / "release"
    slow.write_text(f"#!/bin/sh\nif [ ! -e {tmp_path}/hung ]; then\ntouch {tmp_path}/hung\n"
                    f"{waiting(release)}\nfi\n"
                    f'exec {BIN}/noctule "$@"\n')
    slow.chmod(0o755)
    d = on_slurm(daemon, site, settings(site, program=slow)).start()
    drop_all(d, many(tmp_path / "in", 1))
    node = wait_for(lambda: d.jobs() and d.jobs()[0]["node"], 90, "its node")
    wait_for((tmp_path / "hung").exists, 90, "the step")
    site.kill(node)
    # as Slurm itself does after half a minute
    site.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")
    (job,) = d.wait_jobs(1, seconds=180)
    assert (job["state"], job["attempts"]) == ("DONE", 2) and job["node"] != node
    (event,) = d.query("SELECT detail FROM v_events WHERE kind = 'JOB_DELAYED'")
    assert event["detail"].startswith("SLURM_NODE_FAILED")
    seg = d.root / "outbox" / "1" / "seg.dcm"
    before = (seg.stat().st_ino, seg.read_bytes())
    release.touch()
    wait_for(lambda: not site.steps(), 60, "the end of the late step")
    wait_swept(site)
    assert_once(d, 1)
    assert before == (seg.stat().st_ino, seg.read_bytes())


def test_a_failing_node_gets_no_further_jobs(daemon, cluster, tmp_path):
    site = cluster(nodes=2, cpus=2)
    picky = tmp_path / "picky"
    picky.write_text(f'#!/bin/sh\n[ "$SLURMD_NODENAME" = node0 ] && exit 1\nexec {BIN}/noctule "$@"\n')
    picky.chmod(0o755)
    d = on_slurm(daemon, site, settings(site, program=picky), attempts=9).start()
    drop_all(d, many(tmp_path / "in", 4))
    d.wait_jobs(4, seconds=120)
    assert_once(d, 4)
    assert {job["node"] for job in d.jobs()} == {"node1"}
    (event,) = d.query("SELECT detail FROM v_events WHERE kind = 'NODE_EXCLUDED'")
    assert event["detail"].startswith("node0 lost 3 jobs in a row")


def test_small_jobs_travel_together(daemon, cluster, tmp_path):
    """After one job was measured, small jobs share a Slurm job. Each has a separate result."""
    site = cluster()
    d = on_slurm(daemon, site).start()
    made = many(tmp_path / "in", 7)
    move_in(d, made[0])
    d.wait_jobs(1)
    drop_together(d, made[1:])
    d.wait_jobs(7)
    assert_once(d, 7)
    assert len({job["slurm_id"] for job in d.jobs()}) < 7 and len(site.jobs()) < 7


def test_a_cancelled_job_ends_in_slurm(daemon, cluster, tmp_path):
    site = cluster()
    d = on_slurm(daemon, site, settings(site, program="/bin/sleep", arguments=["--job-name=overruled"])).start()
    d.stop()
    hang = tmp_path / "hang"
    hang.write_text("#!/bin/sh\nexec sleep 1000\n")
    hang.chmod(0o755)
    d.config.write_text(d.config.read_text().replace('"/bin/sleep"', f'"{hang}"').replace('"--job-name=overruled"', ""))
    d.start()
    drop_all(d, many(tmp_path / "in", 1))
    wait_for(lambda: d.jobs() and d.jobs()[0]["slurm_state"] == "SUBMITTED", 90, "SUBMITTED")
    wait_for(lambda: "RUNNING" in site.jobs().values(), 90, "the Slurm job that runs")
    d.ctl("cancel", 1)
    (job,) = d.wait_jobs(1, states=("CANCELLED",))
    wait_for(lambda: set(site.jobs().values()) == {"CANCELLED"}, 60, "the end of the Slurm job")
    wait_swept(site)


def test_an_ended_daemon_leaves_slurm_alone(daemon, cluster, tmp_path):
    site = cluster()
    hold = tmp_path / "go"
    wait = tmp_path / "wait"
    wait.write_text(f'#!/bin/sh\n{waiting(hold)}\nexec {BIN}/noctule "$@"\n')
    wait.chmod(0o755)
    d = on_slurm(daemon, site, settings(site, program=wait)).start()
    drop_all(d, many(tmp_path / "in", 2))
    wait_for(lambda: list(site.jobs().values()) == ["RUNNING"] * 2, 90, "jobs that run")
    assert d.stop() == 0
    assert list(site.jobs().values()) == ["RUNNING"] * 2
    d.start()
    hold.touch()
    d.wait_jobs(2)
    assert_once(d, 2)
    assert [job["attempts"] for job in d.jobs()] == [1, 1]


def test_jobs_refused_by_slurm_wait(daemon, cluster, tmp_path):
    site = cluster()
    d = on_slurm(daemon, site, settings(site, partition="none-such")).start()
    drop_all(d, many(tmp_path / "in", 1))
    (event,) = wait_for(lambda: d.query("SELECT detail FROM v_events WHERE kind = 'SLURM_REFUSED'"), 90, "the event")
    assert "partition" in event["detail"].lower()
    d.ctl("pause", "--reason", "so that it is not handed over again meanwhile")
    (job,) = wait_for(lambda: d.jobs("READY"), 90, "READY")
    assert job["attempts"] == 0
    assert "jobs wait for Slurm" in d.ctl("status", check=False).stdout
    d.config.write_text(d.config.read_text().replace('partition = "none-such"; ', ""))
    d.process.send_signal(signal.SIGHUP)
    d.ctl("resume")
    d.wait_jobs(1)
    assert_once(d, 1)


def test_both_at_once(daemon, cluster, tmp_path):
    """Jobs beyond the local backlog go to Slurm, and the others run here. The results are the same."""
    site = cluster(nodes=2)
    made = many(tmp_path / "in", 8)
    d = on_slurm(daemon, site, settings(site, executor="both", backlog_jobs=2)).start()
    wait_worker(d)
    drop_together(d, made)
    d.wait_jobs(8)
    assert_once(d, 8)
    where = [job["executor"] for job in d.jobs()]
    assert where.count("slurm") >= 3 and where.count("local") >= 3, where


def test_without_slurm_new_jobs_run_locally(daemon, cluster, tmp_path):
    """Except jobs that were being submitted when Slurm failed: these are found, or not, after its return."""
    site = cluster(asking=SOON)
    d = on_slurm(daemon, site, settings(site, executor="both", backlog_jobs=0)).start()
    wait_worker(d)
    site.kill("slurmctld")
    made = many(tmp_path / "in", 8)
    for together in (made[:4], made[4:]):
        drop_together(d, together)
        wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'SLURM_UNAVAILABLE'"), 90, "SLURM_UNAVAILABLE")
    wait_for(lambda: len(d.jobs("DONE")) == 6, 90, "jobs that were run here")
    assert len([job for job in d.jobs() if job["slurm_state"] == "SUBMITTING"]) == 2
    site.start_controller()
    d.wait_jobs(8, seconds=180)
    assert_once(d, 8)


def test_a_pipeline_selects_its_place(daemon, cluster, tmp_path):
    site = cluster()
    d = on_slurm(daemon, site, settings(site, executor="local"), pipeline_extra='executor = "slurm";').start()
    drop_all(d, many(tmp_path / "in", 1))
    (job,) = d.wait_jobs(1)
    assert (job["state"], job["executor"]) == ("DONE", "slurm")


def test_a_full_share_costs_no_attempt(daemon, cluster, tmp_path):
    site = cluster()
    with small_file_system(tmp_path / "small", 1) as small:
        (small / "filler").write_bytes(bytes((1 << 20) - 16384))
        d = on_slurm(daemon, site, settings(site, share=small)).start()
        drop_all(d, many(tmp_path / "in", 1))
        wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'DISK_FULL'"), 90, "DISK_FULL")
        d.ctl("pause", "--reason", "so that it is not handed over again meanwhile")
        assert [job["attempts"] for job in wait_for(lambda: d.jobs("READY"), 90, "READY")] == [0]
        (small / "filler").unlink()
        d.ctl("resume")
        d.wait_jobs(1)
        assert_once(d, 1)
        d.stop()


@pytest.mark.parametrize("count", [1000, 10000])
def test_a_restart_with_much_in_slurm(daemon, tmp_path, count):
    """Of 20 jobs 18 are known in Slurm, one is there under an unknown number, and one never arrived. One recorded
    squeue output resolves all."""
    site = played(tmp_path, squeue=f"cat {tmp_path}/queue", sbatch="exit 1", scancel="exit 0")
    d = on_slurm(daemon, site, settings(site, max_submitted=9000, poll_seconds=5.0)).start()
    d.ctl("pause", "--reason", "to be filled")
    drop_all(d, many(tmp_path / "in", 1))
    wait_for(lambda: d.jobs("READY"), 60, "a job")
    d.stop()
    now = "'2026-11-22T00:00:00.000Z'"
    multiply_job(d, count, state="'RUNNING'", attempts="1", worker="'slurm'", lane="n", started_at=now, executor="'slurm'",
                 nonce="printf('%08x%024x', n * 2654435761 % 4294967296, n)", submitted_at=f"iif(n % 20 > 1, {now}, NULL)",
                 slurm_id="iif(n % 20 > 1, n, NULL)")
    with contextlib.closing(sqlite3.connect(d.root / "noctule.db")) as db, db:
        db.execute(f"INSERT INTO event (at, kind, series_id, job_id, from_state, to_state, detail) SELECT {now}, "
                   "'JOB_STARTED', series_id, id, 'READY', 'RUNNING', '' FROM job WHERE id > 1")
    (tmp_path / "queue").write_text("".join(f"{n}|PENDING|{n * 2654435761 % 4294967296:08x}{n:024x}||Priority\n"
                                            for n in range(1, count + 1) if n % 20 != 1))
    began = time.monotonic()
    d.start()

    def is_stable():
        (row,) = d.query("SELECT count(*) FILTER (WHERE slurm_state = 'SUBMITTED' AND slurm_reason = 'Priority') AS known, "
                         "count(*) FILTER (WHERE state = 'READY') AS back FROM v_jobs")
        return tuple(row) == (count - count // 20, count // 20 + 1)

    wait_for(is_stable, 300, "a settled state")
    print(f"{count} jobs settled in {time.monotonic() - began:.2f} s")
    assert d.query("SELECT count(*) FROM v_jobs WHERE state NOT IN ('READY', 'RUNNING')")[0][0] == 0


def test_doctor_checks_the_slurm_site(daemon, cluster, tmp_path):
    site = cluster()
    d = on_slurm(daemon, site).start()

    def ask(*options, env=d.environment):
        return run_program("noctule", "--config", d.config, "doctor", *options, check=False, env=env)

    told = ask().stdout
    (line,) = [line for line in told.splitlines() if line.startswith("slurm")]
    assert "ok" in line and "Slurm accepts jobs" in line, told
    assert "node node0 and this machine read each other's files" in " ".join(ask("--nodes").stdout.split())
    picky = tmp_path / "picky"
    picky.write_text(f'#!/bin/sh\ncd "$(dirname "$0")" || exit 1\n. ./do\nexec {BIN}/noctule "$@"\n')
    picky.chmod(0o755)
    d.config.write_text(d.config.read_text().replace(f"{BIN}/noctule", str(picky)))
    for does, finding in (("echo noctule 0.0.1; exit 0", '"noctule 0.0.1", this machine has noctule'),
                          ("echo it is broken >&2; exit 1", "ended as FAILED, with the output: it is broken")):
        (tmp_path / "do").write_text(does)
        told = ask("--nodes").stdout
        assert finding in " ".join(told.split()), told
    stale = tmp_path / "bin" / "sbatch"
    stale.parent.mkdir()
    stale.write_text(f'#!/bin/sh\nfor folder; do :; done\n[ ! -e "$folder/here" ] || echo old >"$folder/here"\n'
                     f'exec {shutil.which("sbatch", path=site.environment["PATH"])} "$@"\n')
    stale.chmod(0o755)
    (tmp_path / "do").write_text("")
    told = ask("--nodes", env={**d.environment, "PATH": f"{stale.parent}:{site.environment['PATH']}"}).stdout
    assert "sees different data" in " ".join(told.split()), told
    assert not list(site.share.glob("doctor-*"))
    d.stop()
    site.kill("slurmctld")
    told = ask().stdout
    assert "check slurmctld and munge" in " ".join(told.split()), told

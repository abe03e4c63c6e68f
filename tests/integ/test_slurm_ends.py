"""Unexpected events in Slurm: it ends jobs, sbatch is killed half-way, or munge rejects users."""

import os
import pathlib
import shutil
import signal
import sys

import pytest
from cluster import SOON, Cluster, cluster, may_lay_cables, missing, played, waiting  # noqa: F401, the fixture
from conftest import BIN, run_program, wait_for
from test_slurm import assert_once, drop_all, many, on_slurm, settings, wait_swept
from test_slurm_many import with_jobs
from test_slurm_share import gate, wait_running
from test_status import NOBODY, open_folder  # noqa: F401


def details(d, kind):
    return [row["detail"] for row in d.query("SELECT detail FROM v_events WHERE kind = ?1 ORDER BY event", kind)]


# ------------------------------------------------------------------------------------- killed sbatch ----

def sbatch_that_dies(folder, site, moment):
    """Returns the environment with an sbatch that kills itself in its first call: `before` slurmctld has the job, or
    `after`. `late`: a background process submits the job as soon as folder/late exists."""
    real = shutil.which("sbatch", path=site.environment["PATH"])
    do = {"before": "", "after": f'{real} "$@" >/dev/null',
          "late": f"setsid sh -c '{waiting(folder / 'late')}; exec {real} \"$@\"' sbatch \"$@\" "
                  "</dev/null >/dev/null 2>&1 &"}[moment]
    (folder / "bin").mkdir()
    (folder / "bin" / "sbatch").write_text(f'#!/bin/sh\nif mkdir {folder}/died 2>/dev/null; then\n{do}\nkill -9 $$\nfi\n'
                                           f'exec {real} "$@"\n')
    (folder / "bin" / "sbatch").chmod(0o755)
    return {"PATH": f"{folder}/bin:{site.environment['PATH']}"}


def test_sbatch_killed_before_submission(daemon, cluster, tmp_path):
    site = cluster()
    d = on_slurm(daemon, site, environment=sbatch_that_dies(tmp_path, site, "before")).start()
    drop_all(d, many(tmp_path / "in", 1))
    (job,) = d.wait_jobs(1)
    assert job["attempts"] == 1 and "Slurm does not have it" in details(d, "JOB_RETURNED")[0]
    assert len(site.jobs()) == 1
    assert_once(d, 1)


def test_sbatch_killed_after_submission(daemon, cluster, tmp_path):
    """The nonce identifies the job."""
    site = cluster()
    d = on_slurm(daemon, site, environment=sbatch_that_dies(tmp_path, site, "after")).start()
    drop_all(d, many(tmp_path / "in", 1))
    (job,) = d.wait_jobs(1)
    assert job["attempts"] == 1 and not details(d, "JOB_RETURNED")
    assert list(site.jobs()) == [job["slurm_id"]]
    assert_once(d, 1)


def test_late_submission_by_a_killed_sbatch(daemon, cluster, tmp_path):
    """By then another Slurm job has the work under another nonce. The late one is cancelled, and finds no work."""
    site = cluster()
    d = on_slurm(daemon, site, settings(site, program=gate(tmp_path)),
                 environment=sbatch_that_dies(tmp_path, site, "late")).start()
    drop_all(d, many(tmp_path / "in", 1))
    wait_for(lambda: details(d, "JOB_RETURNED") and d.jobs()[0]["slurm_id"], 60, "the second submission")
    wait_running(site)
    ours = d.jobs()[0]["slurm_id"]
    (tmp_path / "late").touch()
    late = wait_for(lambda: set(site.jobs()) - {ours}, 90, "the late one").pop()
    wait_for(lambda: site.jobs()[late] == "CANCELLED", 90, "its end")
    (tmp_path / "go").touch()
    (job,) = d.wait_jobs(1)
    assert (job["slurm_id"], job["attempts"]) == (ours, 1)
    wait_swept(site)
    assert_once(d, 1)


# ----------------------------------------------------------------------------------------- jobs ended by Slurm ----

def test_a_time_limit_and_another_job(daemon, cluster, tmp_path):
    """TIMEOUT costs an attempt, PREEMPTED does not. Neither counts against a node."""
    site = cluster(nodes=2, cpus=1, settings={"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"},
                   lines="PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP\n")
    d = on_slurm(daemon, site, settings(site, program=gate(tmp_path))).start()
    drop_all(d, many(tmp_path / "in", 2))
    wait_running(site, 2)
    slow, pushed = wait_for(lambda: d.jobs() if all(job["node"] for job in d.jobs()) else None, 90, "their nodes")
    site.ask("scontrol", "update", f"JobId={slow['slurm_id']}", "EndTime=now+60")
    urgent = site.ask("sbatch", "--parsable", "--partition=urgent", f"--nodelist={pushed['node']}", "--output=/dev/null",
                      "--wrap=sleep 1000").strip()
    (returned,) = wait_for(lambda: details(d, "JOB_RETURNED"), 90, "the one that was preempted")
    assert "Slurm ended it for another job (PREEMPTED)" in returned
    site.ask("scancel", urgent)
    site.pass_time(120)
    (delayed,) = wait_for(lambda: details(d, "JOB_DELAYED"), 90, "the time limit")
    assert delayed.startswith("SLURM_TIMEOUT") and f"Slurm job {slow['slurm_id']} on {slow['node']} ended as TIMEOUT" in delayed
    (tmp_path / "go").touch()
    d.wait_jobs(2)
    assert {job["job"]: job["attempts"] for job in d.jobs()} == {slow["job"]: 2, pushed["job"]: 1}
    assert not details(d, "NODE_EXCLUDED")
    assert_once(d, 2)


@pytest.fixture
def cables():
    if not may_lay_cables():
        pytest.skip("network namespaces and veth are not allowed here: nodes cannot be cut off")


def first_waits(folder):
    """A program with a first step that waits until folder/go exists. The other steps start."""
    path = folder / "first-waits"
    path.write_text(f'#!/bin/sh\nif mkdir {folder}/first 2>/dev/null; then\n{waiting(folder / "go")}\nfi\n'
                    f'exec {BIN}/noctule "$@"\n')
    path.chmod(0o755)
    return path


def test_a_briefly_disconnected_node(daemon, cables, cluster, tmp_path):
    """The node continues, and Slurm has not given it up, so no attempt is lost."""
    site = cluster(apart=True)
    d = on_slurm(daemon, site, settings(site, program=gate(tmp_path))).start()
    drop_all(d, many(tmp_path / "in", 2))
    wait_running(site, 2)
    site.cut("node0")
    (tmp_path / "go").touch()
    (job, _) = d.wait_jobs(2)  # by their manifests, because Slurm cannot have their ends yet
    assert list(site.jobs().values()) == ["RUNNING"] * 2
    site.cables.mend("node0")
    wait_for(lambda: set(site.jobs().values()) == {"COMPLETED"}, 90, "what Slurm knows of it")
    assert_once(d, 2)
    assert [job["attempts"] for job in d.jobs()] == [1, 1]


def test_a_disconnected_node(daemon, cables, cluster, tmp_path):
    """Slurm gives up the node, and its job runs again on the other one. Both nodes reach the share, and the late
    result of the first is ignored."""
    site = cluster(apart=True, nodes=2, cpus=1, settings={"SlurmdTimeout": "5", "MessageTimeout": "5"})
    d = on_slurm(daemon, site, settings(site, program=first_waits(tmp_path))).start()
    drop_all(d, many(tmp_path / "in", 1))
    node = wait_for(lambda: d.jobs() and d.jobs()[0]["node"], 90, "its node")
    wait_running(site)
    (late,) = site.steps()
    site.cut(node)

    def node_is(state):
        site.pass_time(2)
        return site.node_states()[node].startswith(state)

    wait_for(lambda: node_is("down"), 180, "the end of Slurm's patience")
    (job,) = d.wait_jobs(1, seconds=180)
    assert job["attempts"] == 2 and job["node"] != node
    (delayed,) = details(d, "JOB_DELAYED")
    assert delayed.startswith("SLURM_NODE_FAILED") and f"on {node} ended as NODE_FAIL" in delayed
    seg = d.root / "outbox" / "1" / "seg.dcm"
    before = (seg.stat().st_ino, seg.read_bytes())
    assert late in site.steps(), "it knows nothing of that"
    (tmp_path / "go").touch()
    wait_for(lambda: late not in site.steps(), 60, "its end")
    site.cables.mend(node)
    wait_for(lambda: node_is("idle"), 180, "the node's return")
    wait_swept(site)
    assert_once(d, 1)
    assert before == (seg.stat().st_ino, seg.read_bytes())


def test_a_slurmd_killed_while_steps_run(daemon, cluster, tmp_path):
    """Steps continue without slurmd, and no attempt is repeated after its return."""
    site = cluster()
    d = on_slurm(daemon, site, settings(site, program=gate(tmp_path))).start()
    drop_all(d, many(tmp_path / "in", 2))
    wait_running(site, 2)
    site.kill("node0")
    site.start_node("node0")
    (tmp_path / "go").touch()
    d.wait_jobs(2, seconds=120)
    assert_once(d, 2)
    assert [job["attempts"] for job in d.jobs()] == [1, 1] and len(site.jobs()) == 2
    wait_swept(site)


FATES = {"NODE_FAIL": "SLURM_NODE_FAILED", "BOOT_FAIL": "SLURM_NODE_FAILED", "TIMEOUT": "SLURM_TIMEOUT", "DEADLINE": "SLURM_TIMEOUT",
         "OUT_OF_MEMORY": "SLURM_OUT_OF_MEMORY", "CANCELLED": "SLURM_CANCELLED", "FAILED": "SLURM_LOST", "REVOKED": "SLURM_LOST",
         "PREEMPTED": None, "POWER_UP_NODE": None}


def test_each_job_state_of_slurm(daemon, tmp_path):
    """Simulated: one Slurm job per state, without a manifest. None: no attempt is lost. squeue replies after all are
    submitted, and the second sbatch of a job never does."""
    queue = tmp_path / "queue"
    site = played(tmp_path, squeue=f"{waiting(queue)}\ncat {queue}", scancel="exit 0", sbatch=f"""
for each; do case $each in --comment=*) nonce=${{each#--comment=}} ;; */job-*) job=${{each##*/job-}} ;; esac; done
mkdir {tmp_path}/submitted-${{job%%.*}} || {{ {waiting(tmp_path / "never")}; }}
echo "${{job%%.*}} $nonce" >>{tmp_path}/jobs
echo "${{job%%.*}}" """)
    d = with_jobs(daemon, tmp_path, site, len(FATES)).start()
    d.ctl("resume")
    wait_for(lambda: len(d.query("SELECT 1 FROM v_jobs WHERE slurm_state = 'SUBMITTED'")) == len(FATES), 90, "all of them")
    nonces = dict(line.split() for line in (tmp_path / "jobs").read_text().splitlines())
    states = tmp_path / "states"
    states.write_text("".join(f"{job}|{state}|{nonces[str(job)]}|n{job}|None\n" for job, state in enumerate(FATES, 1)))
    states.rename(queue)
    count = sum(code is not None for code in FATES.values())
    wait_for(lambda: len(details(d, "JOB_DELAYED")) == count and details(d, "JOB_RETURNED"), 90, "their ends")
    told = {row["job"]: row["detail"].partition(":")[0]
            for row in d.query("SELECT job, detail FROM v_events WHERE kind = 'JOB_DELAYED'")}
    assert told == {job: code for job, code in enumerate(FATES.values(), 1) if code}
    (returned,) = details(d, "JOB_RETURNED")
    assert "for another job (PREEMPTED)" in returned
    assert not details(d, "NODE_EXCLUDED")
    d.kill_all()


MEMORY = pathlib.Path("/sys/fs/cgroup/memory")


@pytest.fixture
def control_groups():
    """Control groups of Slurm. Without them it reports FAILED for jobs over the memory limit, which is SLURM_LOST."""
    if os.geteuid() != 0 or not os.access(MEMORY / "cgroup.procs", os.W_OK):
        pytest.skip("Slurm has no control group of memory (cgroup v1) here: what it calls OUT_OF_MEMORY cannot be had")
    yield
    for folder in MEMORY.parent.glob("*/slurm_node0"):
        for path, _, _ in os.walk(folder, topdown=False):
            os.rmdir(path)


def test_a_job_over_its_memory_limit(daemon, control_groups, cluster, tmp_path):
    site = cluster(settings={"TaskPlugin": "task/cgroup", "ProctrackType": "proctrack/cgroup",
                             "SelectTypeParameters": "CR_CPU_Memory"},
                   control_groups="CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\n")
    greedy = tmp_path / "greedy"
    greedy.write_text(f"#!/bin/sh\nif mkdir {tmp_path}/tried 2>/dev/null; then\nexec {sys.executable} -c 'b\"1\" * (800 << 20)'\nfi\n"
                      f'exec {BIN}/noctule "$@"\n')
    greedy.chmod(0o755)
    d = on_slurm(daemon, site, settings(site, program=greedy, arguments=["--mem=400"])).start()
    drop_all(d, many(tmp_path / "in", 1))
    (job,) = d.wait_jobs(1)
    (delayed,) = details(d, "JOB_DELAYED")
    assert delayed.startswith("SLURM_OUT_OF_MEMORY") and job["attempts"] == 2
    assert_once(d, 1)


# ------------------------------------------------------------------------------------------------------- munge ----

def test_munge(daemon, cluster, tmp_path):
    """Without munge, or with another key, jobs wait with a reason. They continue after the repair."""
    site = cluster(munge=True, asking=SOON)
    d = on_slurm(daemon, site).start()
    made = many(tmp_path / "in", 3)

    def ask_doctor():
        return " ".join(run_program("noctule", "--config", d.config, "doctor", check=False, env=d.environment).stdout.split())

    drop_all(d, made[:1])
    d.wait_jobs(1)
    assert "Slurm accepts jobs" in ask_doctor()
    for count, key, said in ((2, None, "Munge encode failed"), (3, b"another", "Zero Bytes were transmitted")):
        site.kill("munge-asking", signal.SIGTERM)
        if key:
            site.start_munge("munge-asking", key=key)
        drop_all(d, made[count - 1:count])
        unavailable = wait_for(lambda n=count - 1: details(d, "SLURM_UNAVAILABLE")[n - 1:], 120, "SLURM_UNAVAILABLE")[0]
        assert said in unavailable, unavailable
        assert "check slurmctld and munge" in ask_doctor()
        assert "SLURM_UNAVAILABLE" in d.ctl("status", check=False).stdout
        assert not d.jobs("FAILED") and not d.jobs("DELAYED") and not details(d, "SLURM_REFUSED")
        if key:
            site.kill("munge-asking", signal.SIGTERM)
        site.start_munge("munge-asking")
        d.wait_jobs(count)
        assert len(details(d, "SLURM_ANSWERS")) == count - 1
    assert [job["attempts"] for job in d.jobs()] == [1, 1, 1]
    assert_once(d, 3)


@pytest.mark.skipif(os.geteuid() != 0 or bool(missing()), reason="root alone looks as somebody else, and at a Slurm")
def test_doctor_queries_slurm_as_the_service(open_folder, daemon):  # noqa: F811
    """Munge authenticates the process's user, and Slurm accepts no jobs of root as another user."""
    d = daemon()
    root = open_folder / "root"
    site = Cluster(open_folder / "slurm", munge=True)
    try:
        site.start()
        text = d.config.read_text().replace(str(d.root), str(root))
        d.config = open_folder / "noctule.conf"
        d.config.write_text(text.replace("compute = { lanes = 2; };\n", settings(site)))
        for path in (root, site.share):
            path.mkdir(exist_ok=True)
            os.chown(path, NOBODY, NOBODY)
            path.chmod(0o700)
        told = run_program("noctule", "--config", d.config, "doctor", "--nodes", check=False,
                           env={**os.environ, **site.environment}).stdout
        assert "Slurm accepts jobs" in " ".join(told.split()), told
        assert "node node0 and this machine read each other's files" in " ".join(told.split()), told
        assert site.ask("squeue", "--noheader", "--states=all", "--format=%u").split() == ["nobody"]
    finally:
        site.stop()

"""Programs of the site in the daemon: runs made for jobs and shared by them, restarts, reloads, holds, and retries."""

import os
import pathlib
import shutil
import signal

import numpy
import pydicom
import pytest
from conftest import phantom, put, wait_for

SMALL = ("--size", "40x32x12")

# Reads NIfTI without NumPy. It waits as long as there is a file "wait" next to it.
HALF = """\
import glob, gzip, os, struct, sys, time
here = os.path.dirname(os.path.abspath(sys.argv[0]))
print("threshold", sys.argv[3], flush=True)
while os.path.exists(here + "/wait"):
    time.sleep(0.05)
if os.path.exists(here + "/fail"):
    print(open(here + "/fail").read())
    sys.exit(1)
raw = gzip.open(glob.glob(sys.argv[1] + "/*.nii.gz")[0]).read()
head = bytearray(raw[:352])
count = 1
for size in struct.unpack_from("<3h", head, 42):
    count *= size
code = struct.unpack_from("<h", head, 70)[0]
values = struct.unpack_from("<%d%s" % (count, {4: "h", 16: "f"}[code]), raw, 352)
struct.pack_into("<hh", head, 70, 2, 8)
struct.pack_into("<ff", head, 112, 1.0, 0.0)
labels = bytes(value >= float(sys.argv[3]) for value in values)
with open(sys.argv[2] + "/case.nii.gz", "wb") as file:
    file.write(gzip.compress(bytes(head) + labels, 1))
"""

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 60.0; complete_seconds = 0.3; patience_seconds = 60.0; }};
jobs = {{ max_attempts = 2; retry_seconds = 0.2; retry_max_seconds = 1.0; }};
compute = {{ lanes = 2; }};
min_free_mib = 1;
log_level = "debug";
programs = (
  {{ name = "half"; command = [ {command}, "{{in}}", "{{out}}", "{threshold}" ]; weights = [ "{script}" ]; read = [ "{folder}" ];
    algorithm = {{ name = "half"; version = "1"; }}; deadline_seconds = 120; max_attempts = 2; {more} }} );
pipelines = (
  {{ name = "one"; unreviewed = true; segments = (
      {{ label = "Half"; method = "program"; program = "half"; value = 1; type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }},
  {{ name = "two"; unreviewed = true; segments = (
      {{ label = "Core"; method = "program"; program = "half"; value = 1; then = ( {{ shrink_mm = 2.0; }} );
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }} );
rules = ( {rules} );
"""
ONE = '{ match = { modality = "CT"; }; pipeline = "one"; }'
BOTH = ONE + ', { match = { modality = "CT"; }; pipeline = "two"; }'


class Site:
    """A daemon with the program "half", and the folder of that program."""

    def __init__(self, daemon, folder):
        self.folder = folder / "tool"
        self.folder.mkdir()
        self.script = self.folder / "half.py"
        self.script.write_text(HALF)
        self.d = daemon(settings="root = 1;")

    def configure(self, threshold=20, rules=ONE, command=None, more=""):
        command = command or f'"/usr/bin/python3", "{self.script}"'
        self.d.config.write_text(SETTINGS.format(root=self.d.root, command=command, script=self.script, folder=self.folder,
                                                 threshold=threshold, rules=rules, more=more))
        return self

    def start(self):
        self.d.start()
        return self.d

    def reload(self):
        self.d.ctl("reload")

    def let(self, name, text=""):
        (self.folder / name).write_text(text)

    def stop(self, name):
        (self.folder / name).unlink()


@pytest.fixture
def site(daemon, tmp_path):
    return Site(daemon, tmp_path).configure()


def runs(d, columns="run, state, attempts, code"):
    return [tuple(row) for row in d.query(f"SELECT {columns} FROM v_program_runs ORDER BY run")]


def wait_running(d):
    wait_for(lambda: "RUNNING" in [state for (state,) in runs(d, "state")], 60, "a run")
    d.wait_log("event=program.started")


def feed(d, tmp_path, name="series", *arguments):
    files = phantom(tmp_path / name, *SMALL, *arguments)
    put(files, d.inbox / name)
    return files


def seg(d, job):
    return pydicom.dcmread(d.root / "outbox" / str(job["job"]) / "seg.dcm")


def assert_nothing_left(d):
    """Checks that only folders of runs remain, and that no process of a program does."""
    left = sorted(path.name for path in (d.root / "programs").iterdir())
    assert left == [str(run) for run, state in runs(d, "run, state") if state in ("DONE", "FAILED")]
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            assert str(d.folder.parent / "tool" / "half.py").encode() not in command


def test_a_program_gives_the_voxels_of_a_threshold(site, tmp_path):
    d = site.start()
    files = feed(d, tmp_path)
    (job,) = d.wait_jobs()
    assert (job["state"], job["code"], job["programs"]) == ("DONE", "", "half") or print(d.log.read_text()[-5000:])
    assert runs(d) == [(1, "DONE", 1, "")]
    voxels = 0
    for path in files:
        dataset = pydicom.dcmread(path)
        values = dataset.pixel_array * float(dataset.RescaleSlope) + float(dataset.RescaleIntercept)
        voxels += int(numpy.count_nonzero(values >= 20))
    (found,) = d.query("SELECT labelled_voxels, output_path, mask_sha256, sandbox FROM v_program_runs")
    assert found["labelled_voxels"] == voxels > 0
    assert "threshold 20" in (d.root / "programs/1/output.txt").read_text()
    assert seg(d, job).SegmentSequence[0].SegmentAlgorithmType == "AUTOMATIC"
    assert d.query("SELECT voxels FROM v_segments")[0][0] == voxels
    wait_for(lambda: not list((d.root / "jobs").iterdir()), 60, "the end of the job")
    assert_nothing_left(d)
    kinds = [row["kind"] for row in d.query("SELECT kind FROM v_events WHERE program_run = 1 ORDER BY event")]
    assert kinds == ["PROGRAM_PLANNED", "PROGRAM_STARTED", "PROGRAM_DONE"]
    assert d.stop() == 0


def test_two_pipelines_share_a_run_and_a_retry_uses_its_mask(site, tmp_path):
    d = site.configure(rules=BOTH).start()
    feed(d, tmp_path)
    jobs = d.wait_jobs(2)
    assert [job["state"] for job in jobs] == ["DONE", "DONE"]
    assert runs(d) == [(1, "DONE", 1, "")]
    first = seg(d, jobs[0])
    d.ctl("retry", "--force", str(jobs[0]["job"]))
    again = [job for job in d.wait_jobs(3) if job["job"] not in (jobs[0]["job"], jobs[1]["job"])]
    assert runs(d) == [(1, "DONE", 1, "")], "the mask is used again"
    assert seg(d, again[0]).SOPInstanceUID == first.SOPInstanceUID
    d.ctl("retry", "--program", str(again[0]["job"]))
    (last,) = [job for job in d.wait_jobs(4) if job["job"] > again[0]["job"]]
    assert last["state"] == "DONE"
    assert runs(d, "run, state, superseded_by") == [(1, "DONE", 2), (2, "DONE", None)]
    assert seg(d, last).SOPInstanceUID == first.SOPInstanceUID, "the program gave the same mask"
    wait_for(lambda: not (d.root / "programs/1").exists(), 60, "the removal of the replaced mask")


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_restart_repeats_a_run(site, tmp_path, end):
    site.let("wait")
    d = site.start()
    feed(d, tmp_path)
    wait_running(d)
    if end == signal.SIGTERM:  # the second signal ends the time that running work has
        d.process.send_signal(end)
        d.wait_log("event=daemon.draining")
    d.process.send_signal(end)
    d.process.wait(60)
    d.start()
    wait_running(d)
    site.stop("wait")
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE" and job["attempts"] == 1
    assert runs(d) == [(1, "DONE", 2 if end == signal.SIGKILL else 1, "")]
    assert_nothing_left(d)


def test_the_death_of_the_process_costs_an_attempt(site, tmp_path):
    site.let("wait")
    d = site.start()
    feed(d, tmp_path)
    for attempt in (1, 2):
        wait_for(lambda number=attempt: runs(d, "state, attempts") == [("RUNNING", number)], 60, "the attempt")
        d.wait_log("event=program.started", attempt)
        (pid,) = wait_for(lambda: d.children("program"), 60, "the process")
        os.kill(pid, signal.SIGKILL)
    (job,) = d.wait_jobs()
    assert (job["state"], job["code"]) == ("FAILED", "CRASHED")
    assert "run 1 of half, attempt 2: its process died" in job["message"]
    assert runs(d) == [(1, "FAILED", 2, "CRASHED")]
    assert len(d.query("SELECT 1 FROM v_events WHERE kind = 'PROGRAM_DIED'")) == 2
    site.stop("wait")
    d.ctl("retry", str(job["job"]))
    wait_for(lambda: d.jobs("DONE"), 60, "the retried job")
    assert runs(d) == [(1, "DONE", 1, "")]


def test_a_failure_fails_its_jobs_until_a_retry(site, tmp_path):
    site.let("fail", "no model")
    d = site.start()
    feed(d, tmp_path)
    (job,) = d.wait_jobs()
    assert (job["state"], job["code"], job["attempts"]) == ("FAILED", "PROGRAM_FAILED", 0)
    assert "no model" in (d.root / "programs/1/output.txt").read_text()
    site.configure(rules=BOTH).reload()
    uid = d.query("SELECT series_uid FROM v_series")[0][0]
    d.ctl("submit", "--pipeline", "two", uid)
    (_, other) = d.wait_jobs(2)
    assert (other["state"], other["code"]) == ("FAILED", "PROGRAM_FAILED"), "it fails at once with the run's code"
    assert runs(d) == [(1, "FAILED", 1, "PROGRAM_FAILED")]
    site.stop("fail")
    d.ctl("retry", str(other["job"]))
    wait_for(lambda: d.jobs("DONE"), 60, "the retried job")
    d.ctl("retry", str(job["job"]))
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the other job")
    assert runs(d) == [(1, "DONE", 1, "")]


def test_a_missing_program_is_awaited(site, tmp_path):
    tool = site.folder / "half"
    site.configure(command=f'"{tool}"')
    d = site.start()
    feed(d, tmp_path)
    (job,) = wait_for(lambda: d.jobs("DELAYED"), 60, "the job that waits")
    assert job["code"] == "PROGRAM_WAITING" and "half" in job["message"] and runs(d) == []
    wait_for(lambda: d.query("SELECT code FROM v_programs")[0][0] == "PROGRAM_UNAVAILABLE", 60, "the check")
    tool.write_text("#!/usr/bin/python3\n" + HALF)
    tool.chmod(0o755)
    site.reload()
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    assert runs(d) == [(1, "DONE", 1, "")]


def test_a_removed_program_fails_its_jobs(site, tmp_path):
    d = site.start()
    d.ctl("hold", "--pipeline", "one")
    feed(d, tmp_path)
    wait_for(lambda: runs(d), 60, "the run")
    text = d.config.read_text()
    start, end = text.index("programs = ("), text.index("pipelines = (")
    d.config.write_text(text[:start] + 'pipelines = ();\n' + 'rules = ();\n' + text[end:].split("pipelines = (")[0])
    site.reload()
    (job,) = d.wait_jobs()
    assert (job["state"], job["code"]) == ("FAILED", "PROGRAM_UNKNOWN")
    assert d.query("SELECT 1 FROM v_programs") == []


def test_a_changed_command_is_for_runs_that_have_not_begun(site, tmp_path):
    site.let("wait")
    d = site.start()
    feed(d, tmp_path)
    wait_running(d)
    feed(d, tmp_path, "other", "--seed", "2")
    wait_for(lambda: runs(d, "state") == [("RUNNING",), ("READY",)], 60, "the second run")
    site.configure(threshold=60).reload()
    site.stop("wait")
    assert [job["state"] for job in d.wait_jobs(2)] == ["DONE", "DONE"]
    assert runs(d) == [(1, "DONE", 1, ""), (2, "CANCELLED", 0, ""), (3, "DONE", 1, "")]
    assert "threshold 20" in (d.root / "programs/1/output.txt").read_text()
    assert "threshold 60" in (d.root / "programs/3/output.txt").read_text()
    assert_nothing_left(d)


def test_a_changed_script_makes_another_run(site, tmp_path):
    """The script is in `weights`, so that its digest is part of the run's identity."""
    d = site.start()
    feed(d, tmp_path)
    d.wait_jobs()
    site.let("wait")
    d.ctl("hold", "--pipeline", "one")
    feed(d, tmp_path, "other", "--seed", "2")
    wait_for(lambda: len(runs(d)) == 2, 60, "the second run")
    replaced = site.folder / "half.new"
    replaced.write_text(HALF.replace(">= float", "> float"))
    shutil.move(replaced, site.script)
    site.stop("wait")
    d.ctl("release", "--pipeline", "one")
    (_, job) = d.wait_jobs(2)
    assert job["state"] == "DONE"
    assert [state for (state,) in runs(d, "state")] == ["DONE", "CANCELLED", "DONE"]
    (before, planned, after) = [identity for (identity,) in runs(d, "identity")]
    assert before == planned != after


def test_a_held_pipeline_starts_no_program(site, tmp_path):
    d = site.start()
    d.ctl("hold", "--pipeline", "one")
    feed(d, tmp_path)
    wait_for(lambda: runs(d, "state") == [("READY",)], 60, "the run")
    feed(d, tmp_path, "other", "--seed", "2")
    wait_for(lambda: runs(d, "state") == [("READY",), ("READY",)], 60, "the second run")
    assert "event=program.started" not in d.log.read_text()
    d.ctl("release", "--pipeline", "one")
    assert [job["state"] for job in d.wait_jobs(2)] == ["DONE", "DONE"]


def test_a_cancelled_job_stops_its_program(site, tmp_path):
    site.let("wait")
    d = site.start()
    feed(d, tmp_path)
    wait_running(d)
    (job,) = d.jobs("DELAYED")
    d.ctl("cancel", str(job["job"]))
    wait_for(lambda: runs(d, "state") == [("CANCELLED",)], 60, "the end of the run")
    assert_nothing_left(d)
    site.stop("wait")
    d.ctl("retry", str(job["job"]))
    assert d.wait_jobs(states=("DONE",))
    assert runs(d) == [(1, "DONE", 1, "")]

"""One worker per GPU: selection of GPUs, and loss of one. The GPUs are emulated."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import subprocess

import pydicom
import pytest
from conftest import EMULATED, SETTINGS, Clock, drop, needs_emulator, phantom, wait_for

LATE = "lost 20"  # in the second job of a worker
A, B, C, Z = (f"GPU-{letter * 8}-0000-4000-8000-000000000000" for letter in "abcf")
SMALL = ("--size", "32x32x6")

pytestmark = needs_emulator


class Gpus:
    """A folder of emulated GPUs. The name of a file is a UUID, and its content is the state of that GPU."""

    def __init__(self, folder, *names):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        for name in names:
            self.set(name)

    def set(self, name, how=""):
        new = self.folder / f".{name}"
        new.write_text(how)
        new.rename(self.folder / name)

    def remove(self, name):
        (self.folder / name).unlink()


@pytest.fixture
def gpus(tmp_path):
    return Gpus(tmp_path / "gpus", A, B)


@pytest.fixture
def start(daemon, gpus):
    """Starts a daemon with these lines in its compute group."""

    def begin(compute="", attempts=3, lanes=2, environment=None):
        clock = Clock(gpus.folder.parent)
        d = daemon(quiet=600.0, attempts=attempts, programs=EMULATED,
                   environment={"NOCTULE_EMULATOR_GPUS": str(gpus.folder), **clock.environment, **(environment or {})})
        d.clock = clock
        configure(d, compute, lanes)
        return d.start()

    return begin


def configure(d, compute, lanes=2):
    lines = [line for line in d.config.read_text().splitlines() if not line.startswith("compute =")]
    d.config.write_text("\n".join([*lines, f"compute = {{ lanes = {lanes}; {compute} }};", ""]))


def reload(d):
    before = len(events(d, "RELOAD"))
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(events(d, "RELOAD")) > before, 60, "the reload")


def events(d, kind):
    return [row["detail"] for row in d.query("SELECT detail FROM v_events WHERE kind = ? ORDER BY event", kind)]


def devices(d):
    """Returns the start device of each live worker, by its number."""
    found = {}
    for pid in d.children("worker"):
        try:
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "--device" in command:
            found[int(command[command.index("--slot") + 1])] = command[command.index("--device") + 1]
    return found


def is_device(pid, uuid):
    return uuid in pathlib.Path(f"/proc/{pid}/cmdline").read_text()


def wait_devices(d, expected):
    try:
        wait_for(lambda: devices(d) == expected, 60, f"the workers {expected}")
    except pytest.fail.Exception:
        print(devices(d), d.log.read_text()[-6000:])
        raise


def wait_hurried(d, condition, what):
    """Waits for a condition while time passes for the service: in all less than the 30 s that a child has to start."""
    left = 50

    def met():
        nonlocal left
        if left:
            left -= 1
            d.clock.pass_time(0.5)
        return condition()

    return wait_for(met, 120, what)


def feed(d, tmp_path, count, size=SMALL):
    for seed in range(1, count + 1):
        drop(phantom(tmp_path / f"series{seed}", *size, "--seed", str(seed)), d.inbox / str(seed))


# -------------------------------------------------------------------------------- selection ----


@pytest.mark.parametrize("compute,expected", [
    ('backend = "auto";', {0: A, 1: B}),
    ('backend = "cuda";', {0: A, 1: B}),
    (f'backend = "cuda"; devices = [ "GPU-{B[4:].upper()}" ];', {0: B}),
    (f'backend = "auto"; devices = [ "1", "{A}", "{B}" ];', {0: B, 1: A}),
    ('backend = "cpu";', {0: "cpu"}),
], ids=["all", "cuda", "by UUID in capitals", "by index, in order", "cpu"])
def test_a_worker_for_each(start, compute, expected):
    d = start(compute)
    wait_devices(d, expected)
    assert d.children("probe") == []
    (ready,) = wait_for(lambda: events(d, "COMPUTE_READY"), 60, "the event")
    assert ready == ", ".join(expected.values())


def test_jobs_run_on_all_gpus(start, tmp_path):
    d = start('backend = "cuda";', lanes=1)
    wait_devices(d, {0: A, 1: B})
    d.wait_log("child.ready child=worker", 2)
    workers = d.children("worker")
    for pid in workers:  # each worker keeps its first job until the other has one
        os.kill(pid, signal.SIGSTOP)
    feed(d, tmp_path, 8)
    wait_for(lambda: {detail.split(",")[0] for detail in events(d, "JOB_STARTED")} == {"worker-0", "worker-1"}, 60,
             "a job for each")
    for pid in workers:
        os.kill(pid, signal.SIGCONT)
    assert {job["state"] for job in d.wait_jobs(8)} == {"DONE"}


def test_the_memory_of_each_is_bound(start):
    """The limit applies to memory beyond that of an open GPU."""
    d = start('backend = "cuda";')
    wait_devices(d, {0: A, 1: B})
    d.config.write_text(d.config.read_text().replace("jobs = {", "jobs = { memory_mib = 100.0;"))
    reload(d)

    def limits():
        with contextlib.suppress(ProcessLookupError):
            return [resource.prlimit(pid, resource.RLIMIT_DATA)[0] for pid in d.children("worker")]

    least = (2 * 100 + 512) << 20  # of two lanes, and of the process
    wait_for(lambda: len(limits() or []) == 2 and min(limits() or [0]) > least, 60, "the limits")


def test_a_missing_gpu_is_reported_by_name(start):
    d = start(f'backend = "auto"; devices = [ "{B}", "{Z}" ];')
    wait_devices(d, {0: B})
    (missing,) = events(d, "DEVICE_MISSING")
    assert Z in missing
    d.wait_log(f"device={Z}")


def test_auto_without_any_takes_the_cpus(start, gpus, tmp_path):
    gpus.remove(A)
    gpus.remove(B)
    d = start('backend = "auto";')
    wait_devices(d, {0: "cpu"})
    feed(d, tmp_path, 1)
    assert d.wait_jobs()[0]["state"] == "DONE"


def test_cuda_without_a_gpu_waits_with_a_reason(start, gpus, tmp_path):
    gpus.remove(A)
    gpus.remove(B)
    d = start('backend = "cuda";')
    wait_for(lambda: events(d, "COMPUTE_WAITING"), 60, "the event")
    feed(d, tmp_path, 1)
    (job,) = wait_for(lambda: d.jobs("READY"), 60, "a job that waits")
    assert job["attempts"] == 0 and devices(d) == {}
    assert "no GPU was found" in d.query("SELECT compute_waiting FROM v_night")[0][0]
    d.wait_log("event=compute.waiting")
    assert "Compute     no job can run" in d.ctl("status").stdout
    gpus.set(C)
    reload(d)
    wait_devices(d, {0: C})
    assert d.wait_jobs()[0]["state"] == "DONE"
    assert d.query("SELECT compute_waiting FROM v_night")[0][0] is None
    assert d.stop() == 0


def test_a_reload_follows_the_configuration(start, gpus):
    d = start('backend = "auto";')
    wait_devices(d, {0: A, 1: B})
    before = d.children("worker")
    reload(d)
    wait_for(lambda: d.log.read_text().count("event=device.found") == 4 and not d.children("probe"), 60, "a probe")
    assert d.children("worker") == before, "nothing has changed for them"
    configure(d, f'backend = "auto"; devices = [ "{A}" ];')
    reload(d)
    wait_devices(d, {0: A})
    configure(d, 'backend = "cpu";')
    reload(d)
    wait_devices(d, {0: "cpu"})
    configure(d, 'backend = "auto";')
    gpus.set(C)
    reload(d)
    wait_devices(d, {0: A, 1: B, 2: C})


def test_a_failed_probe_leaves_the_cpu_workers(daemon, tmp_path):
    d = daemon(quiet=600.0, programs=EMULATED, environment={"NOCTULE_CRASH_AT": "probe_before_devices"})
    configure(d, 'backend = "auto";')
    d.start()
    wait_devices(d, {0: "cpu"})
    d.wait_log("event=probe.failed")
    feed(d, tmp_path, 1)
    assert d.wait_jobs()[0]["state"] == "DONE"


# -------------------------------------------------------------------------------------- lost GPUs ---


def test_a_job_that_kills_every_gpu_fails(start, gpus, tmp_path):
    gpus.set(A, "lost 1")
    gpus.set(B, "lost 1")
    d = start('backend = "auto";', attempts=2)
    feed(d, tmp_path, 1)
    (job,) = d.wait_jobs()
    assert (job["state"], job["code"], job["attempts"]) == ("FAILED", "COMPUTE_DEVICE_LOST", 2)
    assert len(events(d, "DEVICE_LOST")) == 2
    gpus.set(A)
    gpus.set(B)
    wait_devices(d, {0: A, 1: B})
    d.ctl("retry", job["job"])
    wait_for(lambda: d.jobs("DONE"), 60, "the retried job")


def test_the_jobs_of_a_lost_gpu_run_elsewhere(start, gpus, tmp_path):
    d = start('backend = "cuda";', attempts=3)
    wait_devices(d, {0: A, 1: B})
    d.wait_log("child.ready child=worker", 2)
    d.ctl("hold", "--queue")
    gpus.set(A, LATE)
    feed(d, tmp_path, 12)
    wait_for(lambda: len(d.jobs("READY")) == 12, 60, "jobs that wait")
    # The worker of B keeps its first jobs until A is lost. Otherwise B might take all jobs before A has its second.
    (other,) = [pid for pid in d.children("worker") if is_device(pid, B)]
    os.kill(other, signal.SIGSTOP)
    d.ctl("release", "--queue")
    wait_for(lambda: events(d, "DEVICE_LOST"), 60, "the loss of A")
    os.kill(other, signal.SIGCONT)
    jobs = d.wait_jobs(12, seconds=120)
    assert [job["state"] for job in jobs] == ["DONE"] * 12
    assert max(job["attempts"] for job in jobs) == 2, "the other GPU loses none"
    assert events(d, "DEVICE_LOST")
    # Each attempt is a start of a job, and each failed attempt was the loss of a device.
    started = events(d, "JOB_STARTED")
    returned, delayed = events(d, "JOB_RETURNED"), events(d, "JOB_DELAYED")
    assert all("COMPUTE_DEVICE_LOST" in detail for detail in delayed), delayed
    assert len(started) == 12 + len(returned) + len(delayed)
    assert sum(job["attempts"] for job in jobs) == 12 + len(delayed)


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_a_gpu_that_fails_each_job_costs_one_attempt_per_job(start, gpus, tmp_path, backend):
    """Only attempts are lost. The other worker and the receiver continue, and the other worker takes the jobs."""
    gpus.set(A, "lost 1")
    d = start(f'backend = "{backend}";', attempts=2)
    wait_devices(d, {0: A, 1: B})
    d.wait_log("child.ready child=worker", 2)
    others = [d.children("intake"), [pid for pid in d.children("worker") if is_device(pid, B)]]
    feed(d, tmp_path, 12)
    jobs = d.wait_jobs(12, seconds=120)
    assert [job["state"] for job in jobs] == ["DONE"] * 12
    assert max(job["attempts"] for job in jobs) == 2 and events(d, "DEVICE_LOST")
    assert all("COMPUTE_DEVICE_LOST" in detail for detail in events(d, "JOB_DELAYED"))
    assert d.children("intake") == others[0] and set(others[1]) <= set(d.children("worker"))


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_workers_continue_when_the_driver_stops_answering(start, gpus, tmp_path, backend):
    """A GPU that fell off the bus may kill each new process that queries it. Workers of other GPUs must continue."""
    d = start(f'backend = "{backend}";')
    wait_devices(d, {0: A, 1: B})
    d.wait_log("child.ready child=worker", 2)
    before = d.children("worker")
    gpus.set(A, "deadly")
    reload(d)
    d.wait_log("event=probe.failed")
    feed(d, tmp_path, 2)
    assert {job["state"] for job in d.wait_jobs(2)} == {"DONE"}
    assert d.children("worker") == before and not events(d, "COMPUTE_WAITING")
    gpus.set(A)
    reload(d)
    wait_for(lambda: d.log.read_text().count("event=device.found") == 4 and not d.children("probe"), 60, "a probe")
    assert d.children("worker") == before


def test_an_unusable_gpu_is_given_up(start, gpus, tmp_path):
    gpus.set(A, "broken")
    d = start('backend = "auto";')
    (detail,) = wait_hurried(d, lambda: events(d, "DEVICE_GIVEN_UP"), "the event")
    assert A in detail and "others work without it" in detail
    wait_devices(d, {1: B})
    feed(d, tmp_path, 2)
    assert {job["state"] for job in d.wait_jobs(2)} == {"DONE"}
    gpus.set(A)
    reload(d)
    wait_devices(d, {0: A, 1: B})


def test_the_cpus_replace_the_last_lost_gpu(start, gpus, tmp_path):
    gpus.set(A, "broken")
    gpus.set(B, "broken")
    d = start('backend = "auto";')
    feed(d, tmp_path, 1)
    (job,) = wait_hurried(d, lambda: d.jobs("DONE"), "the job")
    assert (job["attempts"], job["backend"]) == (1, "cpu")
    assert len(events(d, "DEVICE_GIVEN_UP")) == 2 and "jobs run on the CPUs" in events(d, "DEVICE_GIVEN_UP")[1]
    assert set(devices(d).values()) == {"cpu"}


def test_cuda_never_takes_the_cpus(start, gpus, tmp_path):
    gpus.set(A, "broken")
    gpus.set(B, "broken")
    d = start('backend = "cuda";')
    feed(d, tmp_path, 1)
    (detail,) = wait_hurried(d, lambda: events(d, "COMPUTE_WAITING"), "the event")
    assert "every GPU fails" in detail
    assert "every GPU fails" in d.query("SELECT compute_waiting FROM v_night")[0][0]
    assert d.jobs("READY") and not events(d, "DEVICE_GIVEN_UP")
    gpus.set(A)
    (job,) = wait_hurried(d, lambda: d.jobs("DONE"), "the job, once a GPU works again")
    assert job["attempts"] == 1


def test_a_dead_worker_is_not_a_lost_gpu(start, tmp_path):
    d = start('backend = "auto";')
    wait_devices(d, {0: A, 1: B})
    for _ in range(6):
        pid = min(wait_for(lambda: len(d.children("worker")) == 2 and d.children("worker"), 60, "both workers"))
        ready = d.log.read_text().count("child.ready child=worker")
        os.kill(pid, signal.SIGKILL)
        d.wait_log("child.ready child=worker", ready + 1)
    assert not events(d, "DEVICE_GIVEN_UP")
    wait_devices(d, {0: A, 1: B})


def test_random_worker_and_gpu_losses_lose_no_job(start, gpus, tmp_path):
    d = start('backend = "auto";', attempts=30)
    files = [phantom(tmp_path / f"series{seed}", "--size", "64x64x10", "--seed", str(seed)) for seed in range(1, 11)]
    for number, each in enumerate(files):
        drop(each, d.inbox / str(number))
        gpus.set(A, LATE if number % 3 == 0 else "")
        for pid in wait_for(lambda: d.children("worker"), 60, "a worker")[:1]:
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda gone=pid: gone not in d.children("worker"), 60, "its end")
    gpus.set(A)
    jobs = d.wait_jobs(10, seconds=180)
    assert [job["state"] for job in jobs] == ["DONE"] * 10
    assert len(list((d.root / "outbox").rglob("seg.dcm"))) == 10
    assert not list(d.root.rglob("*.part")) and d.query("PRAGMA integrity_check")[0][0] == "ok"


# A job of all pairs of voxels has no predicted time, so a GPU is opened for it. The other job ends before a GPU is
# open.
PAIRS = 'texture = { families = [ "spatial-correlation" ]; };'


@pytest.mark.parametrize("texture, backend", [("", "cpu"), (PAIRS, "cuda")])
def test_run_opens_a_gpu_for_long_jobs(tmp_path, gpus, texture, backend):
    """With backend "auto" and a working GPU. "cuda" always uses it."""
    files = phantom(tmp_path / "in", *SMALL)
    for wanted, used in (("auto", backend), ("cuda", "cuda")):
        config, output = tmp_path / "noctule.conf", tmp_path / wanted
        config.write_text(SETTINGS.format(root=tmp_path / "root", after="keep", quiet=1.0, attempts=1, pipeline_extra=texture)
                          .replace("lanes = 2;", f'backend = "{wanted}";'))
        done = subprocess.run([EMULATED / "noctule", "--config", config, "run", "-p", "head-ct", "-o", output, *files], text=True,
                              capture_output=True, env={**os.environ, "NOCTULE_EMULATOR_GPUS": str(gpus.folder)}, timeout=240)
        assert done.returncode == 0, done.stderr
        assert json.loads((output / "job.json").read_text())["backend"] == used
    one, other = (pydicom.dcmread(tmp_path / wanted / "seg.dcm") for wanted in ("auto", "cuda"))
    assert one.PixelData == other.PixelData and one.SOPInstanceUID == other.SOPInstanceUID

"""The complete service with GPU workers on a machine with GPUs, as gpu_runs.py for `noctule run`.

    PYTHONPATH=tests/integ NOCTULE_BIN=FOLDER python3 -m pytest tests/gpu_service.py

Needs pytest and pydicom, and the programs noctuled, noctule, noctule-phantom and libnoctule_intruder.so. With
NOCTULE_BACKEND=cpu some tests run without a GPU, and with the emulator's programs all of them."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pydicom
import pytest
from conftest import Daemon, drop, phantom, wait_for
from gpu_runs import SERIES, compared
from intruders import Intruders
from test_gpu_workers import A, B, Gpus, events
from test_programs_daemon import HALF, ONE, Site, runs

BACKEND = os.environ.get("NOCTULE_BACKEND", "cuda")
IS_EMULATED = BACKEND == "cuda" and not shutil.which("nvidia-smi")
LETTER = {"cuda": "g", "cpu": "w"}[BACKEND]
PIPELINE = """results = [ "seg", "pmap" ];
    texture = { regions = [ "segments", "volume" ]; patterns = [ "lbp", "tlbap", "lanadp" ]; glcm = { levels = 32; }; };"""


@pytest.fixture
def daemon(tmp_path):
    """Returns a factory of daemons, like the integration tests' fixture, which files outside their folder cannot use."""
    made = []

    def make(**options):
        made.append(Daemon(tmp_path / f"daemon{len(made)}", **options))
        return made[-1]

    yield make
    for each in made:
        each.kill_all()


def compute_on(backend, devices=("0",)):
    names = ", ".join(f'"{each}"' for each in devices)
    return f'backend = "cuda"; devices = [ {names} ];' if backend == "cuda" else 'backend = "cpu";'


def start(daemon, backend, jobs="", devices=("0",), **options):
    d = daemon(quiet=0.5, **options)
    compute = compute_on(backend, devices)
    text = d.config.read_text().replace("compute = { lanes = 2; }", f"compute = {{ lanes = 2; {compute} }}")
    text = text.replace('modality = "CT"; ', "")  # of any modality
    d.config.write_text(text.replace("jobs = {", f"jobs = {{ {jobs}"))
    return d.start()


def command_of(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()


def worker(d):
    return wait_for(lambda: d.children("worker"), 60, "the worker")[0]


def results_of(d, series):
    """Returns the results of each series by file name: tables unchanged, objects by their pixels."""
    found = {}
    for name, uid in series.items():
        (job,) = [row for row in d.jobs("DONE") if row["series_uid"] == uid]
        folder = d.root / "outbox" / str(job["job"])
        for path in sorted(folder.iterdir()):
            if path.name not in ("job.json", "preview.png"):
                found[f"{name}/{path.name}"] = compared(path)
    return found


def test_the_service_gives_the_same_results_as_the_cpu(daemon, tmp_path):
    sources = {name: phantom(tmp_path / name, *arguments) for name, arguments in SERIES.items()}
    given = {}
    for backend in (BACKEND, "cpu"):
        d = start(daemon, backend, pipeline_extra=PIPELINE)
        for name, files in sources.items():
            drop(files, d.inbox / name)
        rows = d.wait_jobs(len(sources), seconds=240)
        assert [row["state"] for row in rows] == ["DONE"] * len(sources), [row["message"] for row in rows]
        assert {row["backend"] for row in rows} == {backend}
        uids = {name: pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID
                for name, files in sources.items()}
        given[backend + str(len(given))] = results_of(d, uids)
        assert d.stop() == 0
    one, other = given.values()
    assert one.keys() == other.keys() and len(one) >= 3 * len(sources)
    assert not [name for name, content in one.items() if content != other[name]]


def test_straightened_series_are_equal(daemon, tmp_path):
    """Tilted planes with padding, which the device resamples twice: values, and positions of padding."""
    files = phantom(tmp_path / "tilted", "--kind", "ct-head", "--size", "131x120x28", "--tilt", "18.5")
    for file in files:
        dataset = pydicom.dcmread(file)
        dataset.PixelData = bytes(2 * 131 * 30) + dataset.PixelData[2 * 131 * 30:]
        dataset.add_new("PixelPaddingValue", "US", 0)
        dataset.save_as(file)
    uid = pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID
    given = []
    for backend in (BACKEND, "cpu"):
        d = start(daemon, backend, pipeline_extra=PIPELINE.replace(', "pmap"', ', "codes"'))
        drop(files, d.inbox)
        (row,) = d.wait_jobs(1, seconds=240)
        assert row["state"] == "DONE" and row["backend"] == backend, row["message"]
        assert "28 planes tilted by 18.5 degrees" in row["note"]
        given.append(results_of(d, {"tilted": uid}))
        assert d.stop() == 0
    one, other = given
    assert one.keys() == other.keys() and len(one) >= 4
    assert not [name for name, content in one.items() if content != other[name]]


def test_the_worker_is_confined(daemon, tmp_path):
    it = Intruders(daemon, tmp_path, compute=compute_on(BACKEND))
    landlock, seccomp = map(int, re.search(r"landlock=(\d+) seccomp=(\d)", it.daemon.log.read_text()).groups())
    print(f"the kernel has Landlock {landlock}, seccomp {seccomp}")
    assert landlock or seccomp, "this kernel keeps nothing: the test says nothing here"
    deeds = it.deeds("worker")
    kept_by_calls = {"run", "fork", "trace", "signal", "mount", "chmod", "control", "listen", "connect"}
    for name, who in it.may.items():
        if LETTER in who:
            assert deeds[name] == 0, name
        elif seccomp if name in kept_by_calls else landlock:
            assert deeds[name] != 0, name
    it.check_service(tmp_path)


def limit_of(pid):
    (limit,) = re.findall(r"Max data size +(\S+)", pathlib.Path(f"/proc/{pid}/limits").read_text())
    return limit


def test_memory_is_bounded(daemon, tmp_path):
    """By the job's own count, and by the system for the rest."""
    d = start(daemon, BACKEND, jobs="memory_mib = 64; ")
    pid = worker(d)
    wait_for(lambda: limit_of(pid) != "unlimited", 60, "the limit")
    drop(phantom(tmp_path / "large", "--size", "512x512x200"), d.inbox)
    (row,) = d.wait_jobs(seconds=240)
    assert (row["state"], row["code"]) == ("FAILED", "JOB_TOO_LARGE")
    drop(phantom(tmp_path / "small", "--size", "32x32x6"), d.inbox)
    d.wait_jobs(1, states=("DONE",))
    assert d.stop() == 0


def test_a_killed_worker_costs_an_attempt(daemon, tmp_path):
    d = start(daemon, BACKEND, pipeline_extra=PIPELINE, attempts=5)
    first, size = worker(d), "100x100x30" if IS_EMULATED else "512x512x100"  # no job may end before its worker does
    for seed in range(4):
        drop(phantom(tmp_path / str(seed), "--size", size, "--seed", str(seed)), d.inbox / str(seed))

    def is_caught():
        """Stops the worker. Continues it if no job is running after the daemon has handled all its frames."""
        os.kill(first, signal.SIGSTOP)
        for _ in range(2):
            d.ctl("ping")
        if d.jobs("RUNNING"):
            return True
        os.kill(first, signal.SIGCONT)
        return False

    wait_for(is_caught, 60, "a running job")
    os.kill(first, signal.SIGKILL)
    rows = d.wait_jobs(4, seconds=240)
    assert [row["state"] for row in rows] == ["DONE"] * 4, [row["message"] for row in rows]
    assert max(row["attempts"] for row in rows) > 1 and worker(d) != first
    assert {row["backend"] for row in rows} == {BACKEND}
    assert not list((d.root / "outbox").rglob("*.part"))
    assert d.stop() == 0


def two_gpus(folder):
    """Returns the settings for two GPUs of the machine or of the emulator, and their UUIDs."""
    if not IS_EMULATED:
        listed = subprocess.run(["nvidia-smi", "-L"], text=True, capture_output=True, check=True).stdout
        uuids = re.findall(r"UUID: (GPU-[0-9a-f-]+)", listed)[:2]
        return {"CUDA_VISIBLE_DEVICES": ",".join(uuids)}, uuids
    return {"NOCTULE_EMULATOR_GPUS": str(Gpus(folder, A, B).folder)}, [A, B]


@pytest.mark.skipif(BACKEND != "cuda", reason="needs two GPUs")
def test_a_lost_gpu_costs_its_jobs_one_attempt(daemon, tmp_path):
    """Only attempts are lost. The other GPU's worker continues and takes the jobs. Each worker of the lost GPU loses
    it in one of its first jobs: opening two lanes takes less than 140 calls."""
    environment, uuids = two_gpus(tmp_path / "gpus")
    if len(uuids) < 2:
        pytest.skip("one GPU")
    lost, other = uuids[:2]
    environment |= {"NOCTULE_CUDA_FAIL_IN": lost, "NOCTULE_CUDA_FAIL_AT": "200:lost"}
    d = start(daemon, BACKEND, attempts=2, environment=environment, devices=(lost, other))
    d.wait_log("child.ready child=worker", 2, 60)
    spared = [d.children("intake"), [pid for pid in d.children("worker") if other in command_of(pid)]]
    assert len(spared[1]) == 1
    # otherwise it might take all jobs before the other worker has enough of them
    os.kill(spared[1][0], signal.SIGSTOP)
    for seed in range(12):
        drop(phantom(tmp_path / str(seed), "--size", "128x128x40", "--seed", str(seed)), d.inbox / str(seed))
    wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'DEVICE_LOST'"), 60, "the loss")
    os.kill(spared[1][0], signal.SIGCONT)
    rows = d.wait_jobs(12, seconds=240)
    assert [row["state"] for row in rows] == ["DONE"] * 12, [row["message"] for row in rows]
    assert {row["attempts"] for row in rows} == {1, 2}
    told = d.query("SELECT kind, detail FROM v_events WHERE kind IN ('DEVICE_LOST', 'JOB_DELAYED')")
    assert {row["kind"] for row in told} == {"DEVICE_LOST", "JOB_DELAYED"}
    assert all(lost in row["detail"] if row["kind"] == "DEVICE_LOST" else "COMPUTE_DEVICE_LOST" in row["detail"] for row in told)
    assert d.children("intake") == spared[0] and spared[1][0] in d.children("worker")
    assert d.stop() == 0


# Takes the memory in MiB given as the last argument, on the one visible GPU, before the rest of the program.
TAKE = """\
import ctypes, sys
def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        print("CUDA out of memory" if status == 2 else "CUDA error", name, status)
        sys.exit(1)
if {is_real}:
    cuda = ctypes.CDLL("libcuda.so.1")
    call("cuInit", 0)
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t({mib} << 20))
    call("cuMemsetD8_v2", memory, 1, ctypes.c_size_t({mib} << 20))
print("took {mib} MiB", flush=True)
"""


def gpu_mib():
    if IS_EMULATED:
        return 8192
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits", "--id=0"]
    return int(subprocess.run(query, text=True, capture_output=True, check=True).stdout)


@pytest.mark.skipif(BACKEND != "cuda", reason="needs a GPU")
@pytest.mark.parametrize("gpu", ["shared", "whole"])
def test_a_large_program_beside_four_lanes(daemon, tmp_path, gpu):
    """50 jobs: 10 of a program that takes three quarters of the GPU's memory, 40 of the lanes."""
    mib, size = gpu_mib() * 3 // 4, "64x64x20" if IS_EMULATED else "256x256x100"
    site = Site(daemon, tmp_path)
    site.script.write_text(TAKE.format(is_real=not IS_EMULATED, mib=mib) + HALF)
    share = f"gpu_memory_mib = {mib + 1024};" if gpu == "shared" else ""
    site.configure(more=f'gpu = "{gpu}"; {share}', rules=ONE + ', { match = { modality = "MR"; }; pipeline = "lanes"; }')
    text = site.d.config.read_text().replace("lanes = 2;", f"lanes = 4; {compute_on(BACKEND)}")
    site.d.config.write_text(text.replace("pipelines = (", """pipelines = ( { name = "lanes"; unreviewed = true; segments = (
        { label = "Half"; method = "range"; range = [ 20.0, 4000.0 ]; type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } );
        texture = { glcm = { levels = 32; }; }; },"""))
    d = site.start()
    worker(d)
    for seed in range(1, 51):
        kind = "ct-head" if seed % 5 == 0 else "mr-brain"
        drop(phantom(tmp_path / str(seed), "--kind", kind, "--size", size, "--seed", str(seed)), d.inbox / str(seed))
    rows = d.wait_jobs(50, seconds=900)
    assert [row["state"] for row in rows] == ["DONE"] * 50, [row["message"] for row in rows if row["state"] != "DONE"]
    assert runs(d, "state, ran_as, attempts") == [("DONE", gpu, 1)] * 10
    on_cpu = [row for row in rows if row["backend"] != BACKEND]
    assert all("memory" in row["note"] for row in on_cpu), "recorded where the GPU's memory did not suffice"
    print(f"{gpu}: {len(on_cpu)} of 50 jobs on the CPUs, {len(events(d, 'GPU_LENT'))} times lent")
    assert events(d, "GPU_MEMORY_KEPT") == []
    assert d.stop() == 0

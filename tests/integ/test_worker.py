"""The worker process alone: the real noctuled --role worker, with this test as its daemon. NOCTULE_TEST_DEVICE=0 runs
the jobs on the first GPU instead."""

import json
import os
import pathlib
import random
import re
import resource
import struct
import subprocess
import time

import proto
import pydicom
import pytest
from conftest import BIN, limits_memory, phantom, wait_for

DEVICE = os.environ.get("NOCTULE_TEST_DEVICE", "cpu")
BACKEND = "cpu" if DEVICE == "cpu" else "cuda"
VERDICTS = ["DONE", "RETRY", "REJECT", "STOPPED"]

SETTINGS = """name = "ball";
segments = ( { label = "Ball"; range = [ 0.0, 80.0 ];
  shapes = ( { kind = "sphere"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 30.0; } );
  type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } );
min_slices = 1;"""


class Worker:
    def __init__(self, folder, lanes=1, extra=""):
        self.folder = pathlib.Path(folder)
        self.config = self.folder / "worker.conf"
        self.log = self.folder / "log"
        (self.folder / "root" / "outbox").mkdir(parents=True)
        self.config.write_text(f'root = "{self.folder}/root";\nlog_level = "debug";\n'
                               f"compute = {{ lanes = {lanes}; threads = 2; }};\ninbox = ();\n{extra}\n")
        self.peer = proto.Peer()
        fd = self.peer.child.fileno()
        command = [BIN / "noctuled", "--role", "worker", "--slot", "0", "--config", self.config, "--device", DEVICE]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{fd}', "bash", *command], stderr=log,
                                            stdout=log, stdin=subprocess.DEVNULL, pass_fds=[fd],
                                            env={**os.environ, "NOCTULE_TEST_PLACE": str(self.folder)})
        self.peer.child.close()
        self.until(lambda: self.peer.frames, what="HELLO")

    def until(self, condition, seconds=60, what="it"):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or self.peer.ended:
                pytest.fail(f"{what} did not come; the log:\n{self.log.read_text()[-3000:]}")
            self.peer.read(0.05)

    def write_job(self, number, inputs, settings):
        settings = settings.replace("\n", "\n\t")
        lines = ["noctule-job 1", f"id {number}", "stack ", f"output {self.folder}/root/outbox/{number}", "device N1",
                 f"settings {settings}", *(f"input {path}" for path in inputs), f"end {len(inputs)}"]
        path = self.folder / f"{number}.job"
        path.write_text("\n".join(lines) + "\n")
        return path

    def run(self, number, inputs, settings=SETTINGS):
        self.peer.send("RUN", number, self.write_job(number, inputs, settings))

    def done(self):
        """Returns the content of the DONE frames, by job."""
        rows = [f for f in self.peer.frames if f.name == "DONE"]
        assert len({r["job"] for r in rows}) == len(rows), "a job was told of twice"
        return {row["job"]: {**row, "verdict": VERDICTS[row["verdict"]]} for row in rows}

    def parts(self):
        return list(self.folder.rglob("*.part"))


@pytest.fixture
def worker(tmp_path):
    made = []

    def make(**options):
        made.append(Worker(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.peer.close()
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait(60)


def test_a_job_and_its_frames(worker, tmp_path):
    files = phantom(tmp_path / "in", "--size", "48x40x8")
    w = worker()
    hello = w.peer.frames[0]
    assert hello.name == "HELLO" and hello["role"] == "worker" and hello["build_id"]
    w.run(7, files)
    w.until(lambda: w.done(), what="DONE")
    told = w.done()[7]
    assert told["verdict"] == "DONE" and told["code"] == "" and told["empty"] == 0
    assert told["voxels"] == 48 * 40 * 8 and 0 < told["segmented"] < told["voxels"]
    assert told["backend"] == BACKEND and told["peak_bytes"] > 1 << 20
    for stage in ("read", "compute", "write", "verify"):
        assert 0 <= told[f"{stage}_seconds"] <= told["total_seconds"]
    (result,) = told["results"]
    path = tmp_path / "root" / "outbox" / "7" / result["file"]
    assert result["kind"] == "seg" and path.stat().st_size == result["size"] and result["frames"] > 0
    assert result["sop_instance"].startswith("2.25.") and result["series"].startswith("2.25.")
    assert not w.parts()


TEXTURE = SETTINGS + """
texture = { regions = [ "segments", "volume" ];
  glcm = { levels = 8; distances = [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 ]; };
  patterns = [ "lbp" ]; };"""


def distance_of(told):
    """Returns the distance in a feature's settings, "distance=1;levels=8"."""
    return dict(pair.split("=", 1) for pair in told["settings"].split(";") if pair).get("distance")



def test_measurements_are_sent_before_the_end(worker, tmp_path):
    """Complete, in order, in frames of a bounded size. A rejected job sends no measurement."""
    files = phantom(tmp_path / "in", "--size", "32x32x8")
    w = worker(lanes=2)
    w.run(1, files, TEXTURE)
    w.run(2, files, TEXTURE)
    w.run(3, files[:3], TEXTURE.replace("min_slices = 1", "min_slices = 5"))
    w.until(lambda: len(w.done()) == 3, what="three DONEs")
    assert [w.done()[job]["verdict"] for job in (1, 2, 3)] == ["DONE", "DONE", "REJECT"]
    of = {job: [f for f in w.peer.frames if f.name in ("FEATURES", "HISTOGRAM", "DONE")
                and f["job"] == job] for job in (1, 2, 3)}
    assert [f.name for f in of[3]] == ["DONE"]
    for job in (1, 2):
        assert [f.name for f in of[job]] == ["FEATURES", "FEATURES", "HISTOGRAM", "HISTOGRAM", "DONE"]
        assert len(of[job][0]["features"]) == 512
        features = json.loads((tmp_path / "root" / "outbox" / str(job) / "features.json").read_text())
        told = [feature for f in of[job][:2] for feature in f["features"]]
        assert [(f["segment"], f["name"], f["value"], distance_of(f)) for f in told] == [
            (f["segment_number"], f["name"], f["value"], f["distance"] and str(f["distance"])) for f in features]
        patterns = json.loads((tmp_path / "root" / "outbox" / str(job) / "patterns.json").read_text())
        assert [(f["segment"], f["pattern"], [row["voxels"] for row in f["counts"]]) for f in of[job][2:4]] == [
            (p["segment_number"], p["pattern"], p["histogram"]) for p in patterns]


def test_every_verdict(worker, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x8")
    w = worker()
    w.run(1, files)
    w.run(2, files[:3], SETTINGS.replace("min_slices = 1", "min_slices = 5"))
    w.run(3, [*files, tmp_path / "nowhere.dcm"])
    w.peer.send("RUN", 4, tmp_path / "nowhere.job")
    (tmp_path / "root" / "outbox").mkdir(exist_ok=True)
    (tmp_path / "root" / "outbox" / "5").write_text("in the way")
    w.run(5, files)
    w.until(lambda: len(w.done()) == 5, what="five DONEs")
    told = {job: (row["verdict"], row["code"]) for job, row in w.done().items()}
    assert told == {1: ("DONE", ""), 2: ("REJECT", "TOO_FEW_SLICES"), 3: ("REJECT", "FILE_UNREADABLE"),
                    4: ("RETRY", "JOB_FILE_UNREADABLE"), 5: ("RETRY", "OUTPUT_UNWRITABLE")}
    assert all(row["message"] for job, row in w.done().items() if job != 1)
    assert w.done()[2]["file_a"] == str(files[0])


# Each slice and direction has a matrix, and all of them are kept until they are written.
GREEDY = SETTINGS + """
texture = { regions = [ "volume" ];
  glcm = { levels = 256; aggregation = "2d-averaged"; matrices = "counts";
    distances = [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 ]; }; };"""


def noise(files):
    """Pixels without two equal neighbours, so that no cell of a matrix is empty."""
    draw = random.Random(1)
    for path in files:
        image = pydicom.dcmread(path)
        image.PixelData = draw.randbytes(len(image.PixelData))
        image.BitsStored, image.HighBit = 16, 15
        image.save_as(path)
    return files


def test_concurrent_jobs_divide_the_threads(worker, tmp_path):
    """A job that starts during another one has half of the threads, and a job that runs alone all."""
    files, small = noise(phantom(tmp_path / "in", "--size", "256x256x60")), phantom(tmp_path / "small", "--size", "48x40x8")
    w = worker(lanes=2)

    def threads(number):
        return json.loads((tmp_path / "root" / "outbox" / str(number) / "job.json").read_text())["threads"]

    w.run(1, files, GREEDY)
    w.until(lambda: any(f.name == "PROGRESS" for f in w.peer.frames), what="PROGRESS")
    w.run(2, small)
    w.until(lambda: 2 in w.done(), what="the second DONE")
    assert 1 not in w.done(), "it was to run beside the other"
    w.peer.send("STOP_JOB", 1)
    w.until(lambda: 1 in w.done(), 60, "the first's end")
    w.run(3, small)
    w.until(lambda: 3 in w.done(), what="the third DONE")
    assert (threads(2), threads(3)) == (1, 2)


@limits_memory
def test_memory_runs_out_for_one_job_alone(worker, tmp_path):
    """If memory runs out in a job, only this job fails, with a code. The process and its next job continue."""
    files = phantom(tmp_path / "in", "--size", "256x256x16")
    w = worker(extra="jobs = { memory_mib = 4096.0; };")
    w.run(1, files)
    w.until(lambda: w.done(), what="the first DONE")
    # The limit is that of its jobs, 64 MiB per thread and 512 MiB for the process.
    status = pathlib.Path(f"/proc/{w.process.pid}/status").read_text()
    taken = int(re.search(r"VmData:\s+(\d+) kB", status)[1]) << 10
    most = resource.prlimit(w.process.pid, resource.RLIMIT_DATA)[0]
    assert most > (4096 + 2 * 64 + 512) << 20 and taken <= most
    resource.prlimit(w.process.pid, resource.RLIMIT_DATA, (taken + (100 << 20),) * 2)
    w.run(2, noise(phantom(tmp_path / "noise", "--size", "256x256x16", "--seed", "2")), GREEDY)
    w.until(lambda: len(w.done()) == 2, 280, "the second DONE")
    w.run(3, files)
    w.until(lambda: len(w.done()) == 3, what="the third DONE")
    assert [w.done()[job]["verdict"] for job in (1, 2, 3)] == ["DONE", "RETRY", "DONE"], w.done()[2]
    assert w.done()[2]["code"] == "OUT_OF_MEMORY"
    assert w.done()[3]["backend"] == BACKEND and w.process.poll() is None
    assert not w.parts()


def test_drain_finishes_running_jobs_and_returns_the_rest(worker, tmp_path):
    files = phantom(tmp_path / "in", "--size", "256x256x40")
    w = worker()
    for number in range(1, 7):
        w.run(number, files)
    w.until(lambda: any(f.name == "PROGRESS" for f in w.peer.frames), what="PROGRESS")
    w.peer.send("DRAIN")
    w.until(lambda: len(w.done()) == 6, what="six DONEs")
    verdicts = [w.done()[number]["verdict"] for number in range(1, 7)]
    assert verdicts[0] == "DONE" and verdicts[-1] == "STOPPED"
    assert set(verdicts) == {"DONE", "STOPPED"}
    assert w.process.wait(60) == 0
    assert not w.parts()
    given_back = [number for number in range(1, 7) if w.done()[number]["verdict"] == "STOPPED"]
    assert not [number for number in given_back if (tmp_path / "root" / "outbox" / str(number)).exists()]


def test_a_job_is_stopped(worker, tmp_path):
    files = phantom(tmp_path / "in", "--size", "256x256x60")
    w = worker()
    w.peer.send("STOP_JOB", 99)  # as for a job that has just ended
    w.run(1, files)
    w.run(2, files)
    w.peer.send("STOP_JOB", 2)
    w.until(lambda: len(w.done()) == 2, what="two DONEs")
    assert w.done()[1]["verdict"] == "DONE"
    assert (w.done()[2]["verdict"], w.done()[2]["code"]) == ("STOPPED", "STOPPED")
    assert not (tmp_path / "root" / "outbox" / "2").exists()


def test_progress_is_not_a_flood(worker, tmp_path):
    files = phantom(tmp_path / "in", "--size", "256x256x100")
    w = worker()
    w.run(1, files)
    w.until(lambda: w.done(), what="DONE")
    told = [f for f in w.peer.frames if f.name == "PROGRESS"]
    begun = sum(1 for before, after in zip([None, *told], told) if before is None or before["stage"] != after["stage"])
    assert 1 <= len(told) <= 5 * w.done()[1]["total_seconds"] + 2 + begun
    assert all(f["stage"] in ("headers", "pixels", "compute", "write", "verify") and 0 <= f["fraction"] <= 1
               for f in told)


def test_the_end_of_the_pipe_is_the_end_of_the_worker(worker, tmp_path):
    files = phantom(tmp_path / "in", "--size", "256x256x60")
    w = worker(lanes=2)
    for number in range(1, 9):
        w.run(number, files)
    w.until(lambda: any(f.name == "PROGRESS" for f in w.peer.frames), what="PROGRESS")
    w.peer.close()
    assert w.process.wait(60) == 0
    assert not w.parts()
    finished = list((tmp_path / "root" / "outbox").iterdir()) if (tmp_path / "root" / "outbox").exists() else []
    assert len(finished) < 8
    for folder in finished:
        assert sorted(p.name for p in folder.iterdir()) == ["job.json", "preview.png", "seg.dcm"]


@pytest.mark.parametrize("data", [
    b"\xff" * 64,
    struct.pack("<IH", 2, 999),
    struct.pack("<IH", 2, 16),
    proto.encode("DRAIN")[:4] + struct.pack("<H", 16),
    struct.pack("<I", 11) + struct.pack("<H", 17) + struct.pack("<qB", 5, 1),
    proto.encode("ANSWER", 0, "what?", ""),
], ids=["noise", "unknown type", "RUN without fields", "short RUN", "left-over byte", "not for a worker"])
def test_a_broken_daemon_is_not_listened_to(worker, tmp_path, data):
    w = worker()
    w.peer.socket.sendall(data)
    assert w.process.wait(60) == 1
    assert "level=error" in w.log.read_text()


def test_the_worker_sends_signs_of_life_and_has_low_priority(worker, tmp_path):
    w = worker()
    process = pathlib.Path(f"/proc/{w.process.pid}")
    wait_for(lambda: (process / "oom_score_adj").read_text().strip() == "500", 60, "the OOM score")
    assert os.getpriority(os.PRIO_PROCESS, w.process.pid) >= 5
    w.until(lambda: any(f.name == "ALIVE" for f in w.peer.frames), 60, "ALIVE")
    w.peer.send("RELOAD", w.config.read_text().replace("debug", "error"))
    w.peer.send("RELOAD", "damaged {")
    w.until(lambda: any(f.name == "RENEW" for f in w.peer.frames), 60, "RENEW")
    w.peer.send("DRAIN")
    assert w.process.wait(60) == 0


def test_a_missing_configuration(tmp_path):
    result = subprocess.run([BIN / "noctuled", "--role", "worker", "--slot", "0", "--config", tmp_path / "none"],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and "worker.config" in result.stderr
